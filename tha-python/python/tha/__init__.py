"""Nonlinear dynamic systems with many inputs, identified as Volterra tensor networks.

>>> import tha
>>> (U, Y), (U_test, Y_test) = tha.synth("volterra", samples=400)
>>> model = tha.Volterra(memory=4, degree=3, max_rank=2).fit(U, Y)
>>> bool(model.score(U_test, Y_test) > 0.99)
True
"""

from ._estimator import Volterra
from ._model import Model, analyze, load, synth
from ._tha import VERSION as __version__
from ._tha import Stream

__all__ = ["Model", "Stream", "Volterra", "__version__", "analyze", "distributed", "load", "synth"]


def __getattr__(name):
    # Engines are imported by those who use them.
    if name == "distributed":
        import importlib

        return importlib.import_module("tha.distributed")
    raise AttributeError(f"module 'tha' has no attribute {name!r}")
