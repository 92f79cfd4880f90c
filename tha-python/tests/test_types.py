"""The type stubs say what the compiled module has, and a type checker accepts the package and finds wrong uses of it."""

import subprocess
import sys

import pytest
from conftest import ROOT
from test_docs import blocks

pytest.importorskip("mypy")


def run(module, *words, folder):
    done = subprocess.run([sys.executable, "-m", module, *words], capture_output=True, text=True, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def test_stubs_are_those_of_the_module(tmp_path):
    code, said = run("mypy.stubtest", "tha._tha", "--concise", folder=tmp_path)
    assert code == 0, said


def test_the_package_and_its_use(tmp_path):
    (tmp_path / "guide.py").write_text("\n".join(blocks((ROOT / "docs/python.md").read_text())))
    right = "model.fit(U, Y).score(U, Y)\nstream = tha.load('m.tha').stream()\nprint(stream.push(U[0]).dtype, stream.remaining + 1)\n"
    wrong = "tha.Volterra(memory='long')\nmodel.stream().pull()\nstream.remaining + 'x'\n"
    start = "import tha\nimport tha.distributed\n(U, Y), _ = tha.synth('array')\nmodel = tha.Volterra(memory=3)\n"
    (tmp_path / "uses.py").write_text(start + right + wrong)
    code, said = run("mypy", "--ignore-missing-imports", "-p", "tha", folder=tmp_path)
    assert code == 0, said
    code, said = run("mypy", "--ignore-missing-imports", "guide.py", "uses.py", folder=tmp_path)
    found = [line for line in said.splitlines() if ": error:" in line]
    assert [line.split(":")[:2] for line in found] == [["uses.py", str(line)] for line in (8, 9, 10)], said
