"""Heads on real clusters of processes: the bytes of the local run, also when a worker is killed; one error that names the head."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tha
import tha.distributed

OPTIONS = {"memory": 3, "degree": 2, "max_rank": 3, "heads": 16, "subset_size": 4, "subsets": "weighted", "seed": 2}


@pytest.fixture(scope="module")
def data():
    (U, Y), _ = tha.synth("array", channels=10, samples=3000)
    return U, Y


@pytest.fixture(scope="module")
def expected(data):
    return tha.Volterra(**OPTIONS).fit(*data).to_bytes()


@pytest.fixture(scope="module")
def dask():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            yield client


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray")
    # As many workers as tests want, whatever the machine has.
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def joblib():
    joblib = pytest.importorskip("joblib")
    return joblib.Parallel(n_jobs=2)


@pytest.fixture(params=["dask", "ray", "joblib"])
def engine(request):
    return request.getfixturevalue(request.param)


def test_engines_and_one_machine_give_the_same_bytes(engine, data, expected):
    model = tha.distributed.fit(tha.Volterra(**OPTIONS), *data, engine=engine)
    assert model.to_bytes() == expected
    assert model.validation_["nrmse"] < 1 and model.score(*data) > 0.1
    full = {"memory": 2, "degree": 2, "max_rank": 2}
    for options in (full, {**full, "heads": 3, "subset_size": 3, "combine": "additive"}):
        one_piece = tha.distributed.fit(tha.Volterra(**options), *data, engine=engine)
        assert one_piece.to_bytes() == tha.Volterra(**options).fit(*data).to_bytes()


def with_task(monkeypatch, task):
    """Has workers run another task in the place of the usual one."""
    work = tha.distributed._Work.__init__

    def changed(self, *arguments):
        work(self, *arguments)
        self.task = task

    monkeypatch.setattr(tha.distributed._Work, "__init__", changed)


def test_a_killed_worker_changes_nothing(engine, data, expected, monkeypatch, tmp_path):
    started = tmp_path / "started"

    def slow(stored, later, known, heads):
        # Long enough to be killed in the middle of.
        with open(started, "a") as file:
            file.write("".join(f"{os.getpid()}\n" for _ in heads))
        time.sleep(0.3)
        return tha.distributed._heads(stored, later, known, heads)

    killed = []

    def kill():
        while not (started.exists() and len(pids := started.read_text().split()) > 3):
            time.sleep(0.01)
        killed.append(int(pids[-1]))
        os.kill(killed[0], signal.SIGKILL)

    with_task(monkeypatch, slow)
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    model = tha.distributed.fit(tha.Volterra(**OPTIONS), *data, engine=engine)
    assert killed and killed[0] != os.getpid()
    pids = started.read_text().split()
    assert len(pids) > OPTIONS["heads"], "the work of the killed worker was done again"
    assert model.to_bytes() == expected


def test_a_failing_task_names_its_head(engine, data, monkeypatch):
    def failing(stored, later, known, heads):
        class Failing:
            def fit_head(self, folder, k, threads):
                if k == 5:
                    raise OSError("No space left on device")
                return plan.fit_head(folder, k, threads)

        plan = tha.distributed._plan(stored, later)
        usual, tha.distributed._plan = tha.distributed._plan, lambda *_: Failing()
        try:
            return tha.distributed._heads(stored, later, known, heads)
        finally:
            tha.distributed._plan = usual

    with_task(monkeypatch, failing)
    with pytest.raises(ValueError, match=r"^head 5: .*No space left on device"):
        tha.distributed.fit(tha.Volterra(**OPTIONS), *data, engine=engine)


def test_large_data_move_by_columns(engine, data, expected, monkeypatch):
    sizes = []
    arguments = tha.distributed._Work.arguments

    def weighed(self, put, batch):
        found = arguments(self, put, batch)
        sizes.append((found[0].nbytes, len(batch)))
        return found

    monkeypatch.setattr(tha.distributed._Work, "arguments", weighed)
    monkeypatch.setattr(tha.distributed, "LARGE", 0)
    assert tha.distributed.fit(tha.Volterra(**OPTIONS), *data, engine=engine).to_bytes() == expected
    # Four inputs of 10, and 2 outputs.
    column = 8 * len(data[0])
    assert all(size < 6.2 * column for size, heads in sizes if heads == 1) and len(sizes) > 1


def test_heads_come_in_batches_of_seconds(data, tmp_path):
    estimator = tha.Volterra(**{**OPTIONS, "heads": 100})
    plan = tha._tha.Plan(estimator._fit_table(*data, None).data(), estimator._options(), tmp_path)
    work = tha.distributed._Work(plan, list(range(100)), 0, {})
    assert [work.batch(2) for _ in range(4)] == [[0], [1], [2], [3]], "as long as nobody knows how long they take"
    work.took([0, 1, 2, 3], (0.4, {}))
    assert work.batch(2) == list(range(4, 20)), "the others would be left without work by twenty of a tenth of a second"
    work.took(list(range(4, 20)), (160.0, {}))
    assert work.batch(2) == [20], "heads take long"
    assert work.batch(1000) == [21]


def test_an_automatic_fit_in_rounds(engine, cli, csv, tmp_path):
    (U, Y), _ = tha.synth("array", channels=5, outputs=1, samples=300)
    options = {"auto": True, "trials": 12, "heads": 3}
    expected = tha.Volterra(**options).fit(U, Y).to_bytes()
    work = tmp_path / "work"
    model = tha.distributed.fit(tha.Volterra(**options, checkpoint=work), U, Y, engine=engine)
    assert model.to_bytes() == expected and "error" in model.fit_
    assert len(list(work.glob("done-*.kept"))) >= 12, "all but the first setting came from workers"


def test_the_folder_of_heads(joblib, data, expected, tmp_path, cli):
    estimator = tha.Volterra(**OPTIONS, checkpoint=tmp_path / "work")
    assert tha.distributed.fit(estimator, *data, engine=joblib).to_bytes() == expected
    calls = []
    run = tha.distributed._by_joblib
    again = lambda engine, work: calls.append(work.left) or run(engine, work)
    for path in (tmp_path / "work").glob("done-00007-*.kept"):
        path.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tha.distributed, "_engine", lambda engine: again)
        assert tha.distributed.fit(estimator, *data, engine=joblib).to_bytes() == expected
    assert calls == [[7]], "only what is missing is fitted"
    # The folder is that of the command line, built from the same sources with the same options.
    cli("merge", tmp_path / "work", "--out", tmp_path / "model.tha", "-q")
    assert (tmp_path / "model.tha").read_bytes() == expected


def test_the_command_line_gives_the_same_bytes(data, expected, cli, csv, tmp_path):
    csv(tmp_path / "data.csv", *data)
    flags = "--memory 3 --degree 2 --max-rank 3 --heads 16 --subset-size 4 --subsets weighted --seed 2".split()
    cli("plan", tmp_path / "data.csv", "--dir", tmp_path / "work", *flags, "-q")
    cli("head", tmp_path / "work", *reversed(range(16)), "-q")
    cli("merge", tmp_path / "work", "--out", tmp_path / "model.tha", "-q")
    assert (tmp_path / "model.tha").read_bytes() == expected


def test_portable_fits_and_others_in_one_process(joblib, data, expected):
    portable = tha.Volterra(**OPTIONS, portable=True).fit(*data).to_bytes()
    assert tha.distributed.fit(tha.Volterra(**OPTIONS), *data, engine=joblib, portable=True).to_bytes() == portable
    with concurrent.futures.ThreadPoolExecutor() as pool:
        models = list(pool.map(lambda portable: tha.Volterra(**OPTIONS, portable=portable, threads=2).fit(*data), [True, False, True]))
    assert [model.to_bytes() for model in models] == [portable, expected, portable]


def test_refusals(joblib, data):
    for estimator, engine, expected in [
        (tha.Volterra(auto=True), joblib, "`auto` on a cluster needs `trials`"),
        (tha.Volterra(memory=0), joblib, "`memory`: 0 is out of range"),
        (tha.Volterra(), "cluster", "engine: 'cluster' is none; give a distributed.Client"),
        (tha.Volterra(), None, "engine: None is none"),
        ("model", joblib, "estimator: str; give a tha.Volterra"),
    ]:
        with pytest.raises(ValueError, match=expected):
            tha.distributed.fit(estimator, *data, engine=engine)
    code = "import ray, tha, tha.distributed\ntha.distributed.fit(tha.Volterra(), [[1.0]], [1.0], engine=ray)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ValueError: engine: Ray is not initialised; call ray.init() first" in done.stderr
