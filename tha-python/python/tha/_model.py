"""Models in use: prediction, figures, streams, reports, sources."""

from __future__ import annotations

import json
import os
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from . import _tha
from ._data import KindError, Table

try:
    from sklearn.exceptions import NotFittedError
except ImportError:

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """A method that needs a fitted model was called before `fit`."""


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise KindError(f"{place}: {value!r}; expected text")
    return value


def _path(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise KindError(f"path: {path!r}; expected the name of a file or folder")
    return Path(path)


class Fitted:
    """What a fitted estimator and a model from a file have in common."""

    _compiled: _tha.Model | None = None
    _one_column = False

    def _model(self) -> _tha.Model:
        if self._compiled is None:
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet; call `fit` first")
        return self._compiled

    def _table(self, U: Any, Y: Any = None, records: Any = None) -> Table:
        model = self._model()
        table = Table(U, Y, records)
        inputs, outputs = model.inputs, model.outputs
        if table.width != len(inputs):
            raise ValueError(
                f"X has {table.width} features, but {type(self).__name__} is expecting {len(inputs)} features as input: "
                f"give the channels {', '.join(inputs[:8])}{', ...' if len(inputs) > 8 else ''}, in this order"
            )
        named = getattr(self, "feature_names_in_", None)
        if table.names is not None and (named is not None or isinstance(self, Model)) and table.names != inputs:
            missing = sorted(set(inputs) - set(table.names))
            what = f"missing: {', '.join(missing)}" if missing else "the same in another order"
            raise ValueError(
                f"U: the feature names should match those that were passed during fit, {', '.join(inputs)}; {what}; "
                "select the columns with U[model.inputs_]"
            )
        if table.height is not None and table.height != len(outputs):
            raise ValueError(f"Y: {table.height} columns, but the model has {len(outputs)} outputs; give {', '.join(outputs)}")
        table.inputs, table.outputs = inputs, outputs if Y is not None else []
        return table

    @property
    def inputs_(self) -> list[str]:
        """Names of the inputs, in the order of the columns."""
        return self._model().inputs

    @property
    def outputs_(self) -> list[str]:
        """Names of the outputs."""
        return self._model().outputs

    @property
    def settled_(self) -> int:
        """The first sample of a record that is predicted, from 1: the memory, for lags."""
        return self._model().settled

    def to_bytes(self) -> bytes:
        """The bytes of the `.tha` file."""
        return self._model().bytes

    def predict(self, U: Any, records: Any = None, *, interval: bool = False) -> Any:
        """Predictions for all samples, NaN at the start of every record until the model has settled.

        A list of records gives a list of predictions. With `interval` the result is the prediction and the two ends of the
        interval in which measured outputs lie as often as the `coverage` of the fit says.

        >>> import tha
        >>> (U, Y), _ = tha.synth("volterra", samples=200)
        >>> tha.Volterra(memory=3, degree=2, max_rank=2).fit(U, Y).predict(U).shape
        (200, 1)
        """
        model = self._model()
        table = self._table(U, None, records)
        y = model.predict(table.data())
        leave = lambda y: table.divided(y[:, 0] if self._one_column else y)
        if not interval:
            return leave(y)
        if model.half_widths is None:
            raise ValueError("interval: the model has none; fit it again with more validation samples, or a smaller `coverage`")
        widths = np.array(model.half_widths)
        return leave(y), leave(y - widths), leave(y + widths)

    def score(self, U: Any, Y: Any = None, records: Any = None, *, y: Any = None) -> float:
        """The coefficient of determination R2 over the predicted samples, mean over the outputs.

        `y` is another name for `Y`, the one that scikit-learn knows.
        """
        return float(self.evaluate(U, y if Y is None else Y, records)["r2"])

    def evaluate(self, U: Any, Y: Any, records: Any = None) -> dict[str, Any]:
        """The figures of `tha-train evaluate`: relative residual, RMSE, NRMSE and R2, in total and per output."""
        if Y is None:
            raise ValueError("Y: None; give the recorded outputs")
        figures = json.loads(self._model().evaluate(self._table(U, Y, records).data()))
        if figures["r2"] is None:
            figures["r2"] = float("nan")
        return figures

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes the model file. Only a model is replaced, unless `force`."""
        self._model().save(_path(path), force)

    def stream(self) -> _tha.Stream:
        """The model as a device runs it: the code of the device, sample by sample.

        >>> import tha
        >>> (U, Y), _ = tha.synth("volterra", samples=200)
        >>> stream = tha.Volterra(memory=2, degree=2, max_rank=2).fit(U, Y).stream()
        >>> stream.push(U[0])
        array([nan], dtype=float32)
        >>> bool(stream.push(U[1]) == stream.push(U[1]))
        False
        >>> stream.remaining
        0
        """
        return self._model().stream()

    def report(
        self, path: str | os.PathLike[str], U: Any = None, Y: Any = None, records: Any = None, *, force: bool = False
    ) -> None:
        """Writes a page with plots about the data of the fit, or about the data that are given."""
        if (U is None) != (Y is None):
            raise ValueError("report: give both `U` and `Y`, or none for the data of the fit")
        data = None if U is None else self._table(U, Y, records).data()
        self._model().report(_path(path), data, _path(path).stem, force)

    def export_c(self, folder: str | os.PathLike[str], *, name: str = "model", force: bool = False) -> list[str]:
        """Writes a C99 header and source that compute the outputs of the device; gives the names of the files."""
        return self._model().export("c", _path(folder), _text(name, "name"), force)

    def export_rust(self, folder: str | os.PathLike[str], *, name: str = "model", force: bool = False) -> list[str]:
        """Writes a Rust module with the model for `tha-core`; gives the names of the files."""
        return self._model().export("rust", _path(folder), _text(name, "name"), force)

    def inspect(self, rate: float | None = None) -> dict[str, Any]:
        """What is in the model file: shape, heads, inputs, ranks, weights, bytes, operations; with a rate, times in seconds.

        >>> import tha
        >>> (U, Y), _ = tha.synth("volterra", samples=200)
        >>> found = tha.Volterra(memory=2, degree=2, max_rank=2).fit(U, Y).inspect()
        >>> found["memory"], found["degree"], len(found["heads"])
        (2, 2, 1)
        """
        if rate is not None and not isinstance(rate, Real):
            raise KindError(f"rate: {rate!r}; expected samples per second")
        return json.loads(self._model().inspect(float(rate) if rate is not None else None))

    def _rows(self) -> list[tuple[str, str]]:
        """What a notebook shows."""
        found = self.inspect()
        heads, outputs = found["heads"], found["outputs"]
        ranks = sorted({tuple(head["ranks"]) for head in heads})
        rows = [
            ("inputs, outputs", f"{len(found['inputs'])}, {len(outputs)}"),
            ("memory, degree", f"{found['memory']}, {found['degree']}"),
            ("heads, ranks", f"{len(heads)}, {' '.join(str(list(r)) for r in ranks[:4])}{' ...' if len(ranks) > 4 else ''}"),
        ]
        figures = getattr(self, "validation_", None)
        if figures:
            rows.append(("validation NRMSE", ", ".join(f"{o['name']} {o['nrmse']:.4g}" for o in figures["outputs"] if o["nrmse"] is not None)))
        else:
            rows.append(("RMS residual", ", ".join(f"{o['name']} {o['residual']:.4g}" for o in outputs)))
        rows.append(("flash", f"{found['flash_bytes']} bytes"))
        rows.append(("MACs per sample", str(found["macs_per_sample"])))
        return rows

    def _repr_html_(self) -> str:
        from html import escape

        if self._compiled is None:
            return f"<pre>{escape(repr(self))}</pre>"
        cells = "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in self._rows())
        return f"<table><caption>{escape(type(self).__name__)}, {escape(self.inspect()['provenance']['note'])}</caption>{cells}</table>"


class Model(Fitted):
    """A model from a file; `tha.load` makes it."""

    def __init__(self, compiled: _tha.Model) -> None:
        self._compiled = compiled

    def __repr__(self) -> str:
        return f"<tha.Model: {'; '.join(f'{a}: {b}' for a, b in self._rows())}>"


def load(path: str | os.PathLike[str]) -> Model:
    """The model in a `.tha` file, from Python or from the command line.

    >>> import tempfile, tha
    >>> (U, Y), _ = tha.synth("volterra", samples=200)
    >>> fitted = tha.Volterra(memory=2, degree=2, max_rank=2).fit(U, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fitted.save(f"{folder}/model.tha")
    ...     tha.load(f"{folder}/model.tha").to_bytes() == fitted.to_bytes()
    True
    """
    return Model(_tha.Model.read(_path(path)))


def analyze(full: Fitted, ensemble: Fitted, U: Any, Y: Any = None, records: Any = None) -> dict[str, Any]:
    """How far an ensemble is from the full model, and why: the fields of `tha-train analyze`.

    Without `Y` what needs the recorded outputs is None.

    >>> import tha
    >>> (U, Y), _ = tha.synth("volterra", samples=300)
    >>> full = tha.Volterra(memory=2, degree=2, max_rank=2).fit(U, Y)
    >>> heads = tha.Volterra(memory=2, degree=2, max_rank=2, heads=2, subset_size=1).fit(U, Y)
    >>> found = tha.analyze(full, heads, U, Y)
    >>> found["theorem2"]["holds"], bool(found["identity_gap"] < 1e-9)
    (True, True)
    """
    for name, model in (("full", full), ("ensemble", ensemble)):
        if not isinstance(model, Fitted):
            raise ValueError(f"{name}: not a model; give a fitted tha.Volterra, or what tha.load gives")
    data = full._table(U, Y, records).data()
    found = json.loads(_tha.analyze(full._model(), ensemble._model(), data))
    if Y is None:
        for field in ("full_residual", "ensemble_residual"):
            if field in found:
                found[field] = None
    return found


def synth(kind: str = "volterra", **options: Any) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Training data with noise and test data without, of a system with a known law: those of `tha-train synth`.

    `kind` is volterra, array or wiener-hammerstein; options: channels, outputs, memory, degree, rank, samples, test_samples,
    correlation, noise, seed.

    >>> import tha
    >>> (U, Y), (U_test, Y_test) = tha.synth("array", channels=6, samples=300)
    >>> U.shape, Y.shape
    ((300, 6), (300, 2))
    """
    try:
        return _tha.synth(kind, **options)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"synth: {error}") from None
