"""A fit beside Python: Ctrl-C, threads, forks, exceptions."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tha

# Minutes of work.
LONG = "tha.Volterra(memory=10, degree=3, heads=400, subset_size=6, max_rank=6).fit(*tha.synth('array', channels=16, samples=20000)[0])"
AUTO = "tha.Volterra(auto=True, minutes=5).fit(*tha.synth('array', channels=8, samples=20000)[0])"
FULL = "tha.Volterra(memory=12, degree=4, max_rank=8).fit(*tha.synth('array', channels=12, samples=20000)[0])"


@pytest.mark.parametrize("work", [LONG, AUTO, FULL], ids=["heads", "auto", "full"])
def test_ctrl_c_within_a_second(work):
    code = f"""
import time, tha, os, signal, threading
pressed = []
def press():
    time.sleep(2.5)
    pressed.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press, daemon=True).start()
try:
    {work}
except KeyboardInterrupt:
    print(time.monotonic() - pressed[0], flush=True)
"""
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.0
    assert time.monotonic() - start < 20, "and the program ends"


def test_other_threads_go_on(small):
    ticks = []
    done = threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.01)

    counter = threading.Thread(target=count)
    counter.start()
    U, y, *_ = small
    tha.Volterra(memory=6, degree=3, max_rank=4).fit(np.tile(U, (4, 1)), np.tile(y, 4))
    done.set()
    counter.join()
    assert np.diff(ticks).max() < 0.5


def test_fits_in_several_threads(small, fitted):
    U, y, *_ = small
    results = [None] * 3

    def fit(k):
        results[k] = tha.Volterra(memory=3, degree=2, max_rank=2, threads=k + 1).fit(U, y).to_bytes()

    threads = [threading.Thread(target=fit, args=(k,)) for k in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert set(results) == {fitted.to_bytes()}


def _bytes(U, y):
    return tha.Volterra(memory=3, degree=2, max_rank=2).fit(U, y).to_bytes()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forks_after_a_fit(small, fitted):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.starmap_async(_bytes, [small[:2]] * 2).get(60) == [fitted.to_bytes()] * 2


def test_an_exception_of_the_progress_ends_the_fit(small):
    def notify(done, of, text):
        raise LookupError("enough")

    table = tha._estimator.Table(small[0], small[1])
    options = tha.Volterra(memory=2, degree=2, heads=2, subset_size=1)._options()
    with pytest.raises(LookupError, match="enough"):
        tha._tha.fit(table.data(), options, notify)


def test_checkpoints(small, tmp_path):
    options = {"memory": 2, "degree": 2, "heads": 2, "subset_size": 1}
    model = tha.Volterra(**options, checkpoint=tmp_path / "kept").fit(small[0], small[1])
    assert model.to_bytes() == tha.Volterra(**options).fit(small[0], small[1]).to_bytes()
    assert len(os.listdir(tmp_path / "kept")) > 2
    with pytest.raises(ValueError, match="it belongs to a run with"):
        tha.Volterra(**{**options, "seed": 1}, checkpoint=tmp_path / "kept").fit(small[0], small[1])
