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


def timed(stored, later, known, heads):
    """The task of a worker, with its CPU seconds among the files."""
    import time

    import tha.distributed

    start = time.process_time()
    seconds, files = tha.distributed._heads(stored, later, known, heads)
    return seconds, {**files, "cpu": time.process_time() - start}


def heads(count):
    import tha.distributed as many

    U, y = recording(20_000, 500)
    options = {"memory": 3, "degree": 2, "max_rank": 3, "heads": count, "subset_size": 4, "verbose": False}
    fit, model = taken(lambda: tha.Volterra(**options).fit(U, y))
    inside, moved, given = [], [], []

    class Work(many._Work):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.task = timed

        def arguments(self, put, batch):
            found = super().arguments(put, batch)
            given.append(found[0].nbytes if self.whole is None else 0)
            return found

    def store(folder, files, usual=many._store):
        inside.append(files.pop("cpu"))
        moved.append(sum(map(len, files.values())))
        usual(folder, files)

    many._Work, many._store = Work, store
    import joblib

    def run(engine):
        inside.clear(), moved.clear(), given.clear()
        start = time.monotonic()
        before = everywhere()
        divided = many.fit(tha.Volterra(**options), U, y, engine=engine)
        assert divided.to_bytes() == model.to_bytes()
        return everywhere() - before, time.monotonic() - start

    # One task after the other in this process: what is not in tasks is the plan, the merge and the files.
    total, _ = run(joblib.Parallel(1))
    work, rest = sum(inside), total - sum(inside)
    print(f"one process: fit {fit:.1f} s of CPU; heads {work:.1f} s, {work / count:.4f} each; plan and merge {rest:.1f} s", flush=True)
    for name, engine, large in (("Dask", dask, 2**28), ("Ray", ray, 2**28), ("Dask, columns only", dask, 0), ("Ray, columns only", ray, 0)):
        many.LARGE = large
        with engine() as client:
            # Workers start and import what they need.
            many.fit(tha.Volterra(**{**options, "heads": 8}), U[:100], y[:100], engine=client)
            idle, _ = everywhere(), time.sleep(5)
            idle = (everywhere() - idle) / 5
            total, wall = run(client)
        over = total - sum(inside) - rest
        print(
            f"{name}: {len(inside)} tasks, {sum(inside) / count:.4f} s each head; beside tasks, plan and merge {over:.1f} s, "
            f"{100 * over / (sum(inside) + rest):.1f} %, of which idling {wall * idle:.1f} s in {wall:.0f} s of wall time; "
            f"{sum(given) / count:.0f} bytes to and {sum(moved) / count:.0f} from a head",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("fit", "heads"):
        sys.exit(__doc__)
    fit(os.path.abspath(sys.argv[2])) if sys.argv[1] == "fit" else heads(int(sys.argv[2]))
