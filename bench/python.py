"""The Python package against the command line, and heads on two workers of Dask and of Ray against one process, in CPU time.

    python bench/python.py fit TRAIN            100 000 rows: fit and predict, in the process and by the program TRAIN; push
    python bench/python.py heads HEADS          500 inputs, 20 000 rows: so many heads of 4 inputs on two workers of Dask and of Ray

Wall times depend on what else the machine does; CPU time does not much.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager

import numpy as np
import tha


def cpu(who=None):
    """CPU seconds of this process and of its children that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN) if who is None else (who,)
    return sum(sum(resource.getrusage(one)[:2]) for one in whose)


def taken(work, who=None):
    before = cpu(who)
    result = work()
    return cpu(who) - before, result


def fit(train):
    (U, Y), _ = tha.synth("array", channels=8, samples=100_000)
    estimator = tha.Volterra(memory=4, degree=2, max_rank=3, restarts=1)
    flags = "--memory 4 --degree 2 --max-rank 3 --restarts 1".split()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        np.save("u.npy", U)
        np.save("y.npy", Y)
        run = lambda *words: subprocess.run([train, *words, "-q", "--force"], check=True)
        for _ in range(3):
            here, model = taken(lambda: estimator.fit(U, Y))
            there, _ = taken(lambda: run("fit", "--u", "u.npy", "--y", "y.npy", "--out", "m.tha", *flags), resource.RUSAGE_CHILDREN)
            print(f"fit: Python {here:.2f} s, command line {there:.2f} s, equal bytes: {open('m.tha', 'rb').read() == model.to_bytes()}")
            here, _ = taken(lambda: model.predict(U))
            there, _ = taken(lambda: run("predict", "m.tha", "--u", "u.npy", "--out", "p.csv"), resource.RUSAGE_CHILDREN)
            print(f"predict: Python {here:.3f} s, command line {there:.3f} s")
    (U, Y), _ = tha.synth("volterra", samples=1000)
    model = tha.Volterra(memory=4, degree=3, max_rank=2).fit(U, Y)
    stream, count = model.stream(), 50_000
    for name, sample in (("float64", U[5]), ("float32", U[5].astype(np.float32)), ("list", U[5].tolist())):
        seconds, _ = taken(lambda: [stream.push(sample) for _ in range(count)])
        print(f"push, {model.inspect()['macs_per_sample']} MACs, {name}: {seconds / count * 1e6:.2f} us")


def everywhere():
    """CPU seconds of this process and of all that it has started and that are still there."""
    import psutil

    me = psutil.Process()
    times = [one.cpu_times() for one in (me, *me.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def recording(rows, inputs):
    """Inputs in twenty correlated groups, and an output of forty products and linear terms of them."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal((rows, 20))
    U = 0.6 * common[:, rng.integers(0, 20, inputs)] + 0.8 * rng.standard_normal((rows, inputs))
    y = np.zeros(rows)
    for _ in range(40):
        i, j = rng.integers(0, inputs, 2)
        y += rng.standard_normal() * U[:, i] * np.roll(U[:, j], 1) + rng.standard_normal() * U[:, i]
    return U, y + 0.1 * y.std() * rng.standard_normal(rows)


@contextmanager
def dask():
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster) as client:
        yield client


@contextmanager
def ray():
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def heads(count):
    import tha.distributed

    U, y = recording(20_000, 500)
    options = {"memory": 3, "degree": 2, "max_rank": 3, "heads": count, "subset_size": 4, "verbose": False}
    moved, tasks, store, arguments = [], [], tha.distributed._store, tha.distributed._Work.arguments
    tha.distributed._store = lambda folder, files: (moved.append(sum(map(len, files.values()))), store(folder, files))
    tha.distributed._Work.arguments = lambda work, put, batch: (tasks.append(batch), arguments(work, put, batch))[1]
    local, model = taken(lambda: tha.Volterra(**options, threads=1).fit(U, y))
    print(f"one process: {local:.1f} s of CPU, {local / count:.4f} s per head")
    for name, engine, large in (("Dask", dask, None), ("Ray", ray, None), ("Dask, columns only", dask, 0), ("Ray, columns only", ray, 0)):
        tha.distributed.LARGE = 256 * 2**20 if large is None else large
        before, _ = everywhere(), moved.clear()
        with engine() as client:
            # Workers start and import what they need.
            tha.distributed.fit(tha.Volterra(**{**options, "heads": 8}), U[:100], y[:100], engine=client)
            ready, start = everywhere(), time.monotonic()
            moved.clear(), tasks.clear()
            divided = tha.distributed.fit(tha.Volterra(**options), U, y, engine=client)
            seconds, wall = everywhere() - ready, time.monotonic() - start
        again, _ = taken(lambda: tha.Volterra(**options, threads=1).fit(U, y))
        work = (local + again) / 2
        local = again
        print(
            f"{name}: {seconds:.1f} s of CPU, {100 * (seconds / work - 1):.1f} % more than the {work:.1f} s of one process around it; "
            f"{wall:.0f} s of wall time; start {ready - before:.1f} s; {len(tasks)} tasks; {sum(moved) / count:.0f} bytes back per head; "
            f"equal bytes: {divided.to_bytes() == model.to_bytes()}", flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("fit", "heads"):
        sys.exit(__doc__)
    fit(os.path.abspath(sys.argv[2])) if sys.argv[1] == "fit" else heads(int(sys.argv[2]))
