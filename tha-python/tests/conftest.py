"""Data and programs that several tests use."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tha

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def small():
    """Two inputs, one output, and a model of them that is fitted in no time."""
    (U, Y), (U_test, Y_test) = tha.synth("volterra", samples=300, test_samples=150)
    return U, Y[:, 0], U_test, Y_test[:, 0]


@pytest.fixture(scope="session")
def fitted(small):
    return tha.Volterra(memory=3, degree=2, max_rank=2).fit(small[0], small[1])


@pytest.fixture(scope="session")
def cli():
    """Runs the command line that was built from the same sources."""
    found = os.environ.get("THA_TRAIN") or shutil.which("tha-train") or str(ROOT / "target/release/tha-train")
    if not Path(found).exists():
        if os.environ.get("THA_REQUIRE_CLI"):
            pytest.fail("no tha-train; build it with cargo build --release, or name it in THA_TRAIN")
        pytest.skip("no tha-train; name it in THA_TRAIN")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    assert tha.__version__ in version, f"{found} is {version}, the package {tha.__version__}: build both from the same sources"

    def run(*words, code=0):
        done = subprocess.run([found, *map(str, words)], capture_output=True, text=True)
        assert done.returncode == code, f"{words}: {done.stderr}"
        return done

    return run


@pytest.fixture
def csv():
    """Writes a recording as the command line reads it."""

    def write(path, U, Y, records=None, inputs=None, outputs=None):
        Y = Y.reshape(len(Y), -1)
        names = [*(inputs or [f"u{k + 1}" for k in range(U.shape[1])]), *(outputs or [f"y{k + 1}" for k in range(Y.shape[1])])]
        with open(path, "w") as file:
            file.write(",".join((["record"] if records is not None else []) + names) + "\n")
            for t, row in enumerate(np.hstack([U, Y])):
                first = [str(records[t])] if records is not None else []
                file.write(",".join(first + [repr(float(value)) for value in row]) + "\n")
        return path

    return write
