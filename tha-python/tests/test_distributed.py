"""Heads on real clusters of processes: the bytes of the local run, also when a worker is killed; one error that names the head."""

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


def test_a_killed_worker_changes_nothing(engine, data, expected, monkeypatch, tmp_path):
    started = tmp_path / "started"

    def slow(stored, known, k):
        # Long enough to be killed in the middle of.
        with open(started, "a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(0.3)
        return tha.distributed._head(stored, known, k)

    killed = []

    def kill():
        while not (started.exists() and len(pids := started.read_text().split()) > 3):
            time.sleep(0.01)
        killed.append(int(pids[-1]))
        os.kill(killed[0], signal.SIGKILL)

    run = tha.distributed._engine(engine)
    monkeypatch.setattr(tha.distributed, "_engine", lambda engine: lambda e, task, *rest: run(e, slow, *rest))
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    model = tha.distributed.fit(tha.Volterra(**OPTIONS), *data, engine=engine)
    assert killed and killed[0] != os.getpid()
    pids = started.read_text().split()
    assert len(pids) > OPTIONS["heads"], "the work of the killed worker was done again"
    assert model.to_bytes() == expected


def test_a_failing_task_names_its_head(engine, data, monkeypatch):
    def failing(stored, known, k):
        if k == 5:
            raise OSError("No space left on device")
        return tha.distributed._head(stored, known, k)

    run = tha.distributed._engine(engine)
    monkeypatch.setattr(tha.distributed, "_engine", lambda engine: lambda e, task, *rest: run(e, failing, *rest))
    with pytest.raises(ValueError, match=r"^head 5: .*No space left on device"):
        tha.distributed.fit(tha.Volterra(**OPTIONS), *data, engine=engine)


def test_the_folder_of_heads(joblib, data, expected, tmp_path, cli):
    estimator = tha.Volterra(**OPTIONS, checkpoint=tmp_path / "work")
    assert tha.distributed.fit(estimator, *data, engine=joblib).to_bytes() == expected
    calls = []
    run = tha.distributed._by_joblib
    again = lambda *arguments: calls.append(arguments[-1]) or run(*arguments)
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


def test_refusals(joblib, data):
    for estimator, engine, expected in [
        (tha.Volterra(auto=True), joblib, "`auto` cannot be divided"),
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
