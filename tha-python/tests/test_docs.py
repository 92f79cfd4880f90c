"""The code of the guides, the examples and the docstrings runs as it stands."""

import doctest
import importlib
import re
import runpy

import pytest
from conftest import ROOT

MODULES = ["tha", "tha._estimator", "tha._model", "tha.distributed"]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0


def blocks(text):
    """The Python blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", ["docs/python.md", "docs/cluster.md", "tha-python/README.md"])
def test_pages(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = blocks((ROOT / page).read_text())
    assert code
    names = {"__name__": "guide"}
    for k, block in enumerate(code):
        exec(compile(block, f"{page}, block {k + 1}", "exec"), names)


@pytest.mark.parametrize("path", sorted((ROOT / "tha-python/examples").glob("*.py")), ids=lambda path: path.name)
def test_examples(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
