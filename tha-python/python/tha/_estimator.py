"""The estimator: the options of `tha-train fit` with the habits of scikit-learn."""

from __future__ import annotations

import inspect
import json
import os
import sys
import warnings
from typing import Any, Sequence

from . import _tha
from ._data import Table
from ._model import Fitted

try:
    from sklearn.base import BaseEstimator, RegressorMixin
except ImportError:

    class BaseEstimator:  # type: ignore[no-redef]
        """The part of scikit-learn's class that estimators need, for those who do not have it."""

        @classmethod
        def _names(cls) -> list[str]:
            return sorted(set(inspect.signature(cls.__init__).parameters) - {"self"})

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return {name: getattr(self, name) for name in self._names()}

        def set_params(self, **params: Any) -> BaseEstimator:
            for name, value in params.items():
                if name not in self._names():
                    raise ValueError(f"Invalid parameter {name!r} for estimator {self}; valid are {self._names()}")
                setattr(self, name, value)
            return self

        def __repr__(self) -> str:
            usual = inspect.signature(type(self).__init__).parameters
            given = (f"{k}={v!r}" for k, v in self.get_params().items() if v != usual[k].default)
            return f"{type(self).__name__}({', '.join(given)})"

    class RegressorMixin:  # type: ignore[no-redef]
        """Nothing, without scikit-learn."""


# Options that an automatic fit does not take: it chooses them.
CHOSEN = (
    "memory basis maps degree max_rank tolerance solver ridge gamma decay restarts val_fraction folds refit range subset_size "
    "subsets combine"
).split()
# Options of an automatic fit alone.
SEARCH = "minutes trials single".split()


class Volterra(Fitted, RegressorMixin, BaseEstimator):
    """A Volterra tensor network, or an ensemble of them (Tensor Head Averaging).

    Rows are samples in the order of time. What an output depends on are the last samples of all inputs: never shuffle rows, and
    say where a recording has gaps (`records`, or lists of records).

    Parameters
    ----------
    memory : int, default 5
        Samples of each input that an output depends on.
    degree : int, default 3
        Highest order of products.
    basis : str, optional
        Filters in the place of lags: "levels:T", "differences:T", "kautz:RE,IM,N"; "lags:M" is `memory`.
    maps : int, optional
        Pieces of piecewise-linear maps of all features.
    max_rank : int, default 4
        Largest rank of the network; the rank is chosen.
    heads, subset_size : int, optional
        An ensemble of so many heads that see so many inputs each.
    subsets : str or list of lists, optional
        "random", "weighted", "covering", "adaptive", "per-output", or the inputs of every head by name or index.
    combine : str, optional
        "average", "stack" or "additive".
    auto : bool, default False
        Choose everything; then `minutes` or `trials`, `heads`, `single`, `budget_flash` and `budget_macs` say how far to go.
    solver, ridge, gamma, decay, tolerance, restarts, val_fraction, folds, refit, coverage, range, budget_flash, budget_macs, checkpoint
        As the options of `tha-train fit` with these names.
    seed : int, default 0
        Seed of everything: the same data and options give the same bytes, here and on the command line.
    portable : bool, default False
        The same bytes on every processor, by kernels that do not depend on it; without, other processors may differ in the last bits.
    threads : int, optional
        All processors when not given. The result is the same for any number.
    verbose : bool or "auto", default "auto"
        Progress by tqdm, where it is installed; "auto" shows it on a terminal and in a notebook, for what takes longer than a second.

    Examples
    --------
    >>> import tha
    >>> (U, Y), (U_test, Y_test) = tha.synth("array", channels=6, samples=600)
    >>> model = tha.Volterra(memory=4, degree=2, heads=6, subset_size=3, combine="additive").fit(U, Y)
    >>> bool(model.score(U_test, Y_test) > 0.9)
    True
    >>> tha.Volterra(memory=0).fit(U, Y)
    Traceback (most recent call last):
        ...
    ValueError: `memory`: 0 is out of range; expected 1 to 65535
    """

    def __init__(
        self,
        memory: int = 5,
        degree: int = 3,
        *,
        basis: str | None = None,
        maps: int | None = None,
        max_rank: int = 4,
        heads: int | None = None,
        subset_size: int | None = None,
        subsets: str | Sequence[Sequence[Any]] | None = None,
        combine: str | None = None,
        auto: bool = False,
        minutes: float | None = None,
        trials: int | None = None,
        single: bool = False,
        solver: str = "ladder",
        ridge: float | str = "auto",
        gamma: float | str = "auto",
        decay: float | str = "auto",
        tolerance: float = 1e-6,
        restarts: int | None = None,
        val_fraction: float | None = None,
        folds: int | None = None,
        refit: bool = True,
        coverage: float = 0.9,
        range: str | None = None,
        budget_flash: int | None = None,
        budget_macs: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        seed: int = 0,
        portable: bool = False,
        threads: int | None = None,
        verbose: bool | str = "auto",
    ) -> None:
        self.memory = memory
        self.degree = degree
        self.basis = basis
        self.maps = maps
        self.max_rank = max_rank
        self.heads = heads
        self.subset_size = subset_size
        self.subsets = subsets
        self.combine = combine
        self.auto = auto
        self.minutes = minutes
        self.trials = trials
        self.single = single
        self.solver = solver
        self.ridge = ridge
        self.gamma = gamma
        self.decay = decay
        self.tolerance = tolerance
        self.restarts = restarts
        self.val_fraction = val_fraction
        self.folds = folds
        self.refit = refit
        self.coverage = coverage
        self.range = range
        self.budget_flash = budget_flash
        self.budget_macs = budget_macs
        self.checkpoint = checkpoint
        self.seed = seed
        self.portable = portable
        self.threads = threads
        self.verbose = verbose

    def _options(self) -> dict[str, Any]:
        """The options by name; those that exclude each other are refused."""
        options = self.get_params(deep=False)
        usual = inspect.signature(Volterra.__init__).parameters
        given = {name for name, value in options.items() if value is not usual[name].default and value != usual[name].default}
        if options["auto"] and (wrong := sorted(given & set(CHOSEN))):
            raise ValueError(f"`{wrong[0]}` is chosen by `auto`; leave it out, or leave `auto` out")
        if not options["auto"] and (wrong := sorted(given & set(SEARCH))):
            raise ValueError(f"`{wrong[0]}` is for an automatic fit; add `auto=True`")
        if {"basis", "memory"} <= given:
            raise ValueError("`basis` and `memory` exclude each other; `memory=M` is `basis='lags:M'`")
        if options["minutes"] is not None and options["trials"] is not None:
            raise ValueError("`minutes` and `trials` exclude each other; leave one out")
        return options

    def fit(self, U: Any, Y: Any = None, records: Any = None) -> Volterra:
        """Fits the model.

        `U` (samples x inputs) and `Y` (samples, or samples x outputs) are arrays, pandas or Polars frames, whose column names the
        model keeps, or lists of them, one per record. `records` has an id for every row, where a recording has gaps.
        """
        table = self._fit_table(U, Y, records)
        data = table.data()
        for text in data.warnings():
            warnings.warn(text, stacklevel=2)
        with _Bar(self.verbose) as bar:
            model, figures = _tha.fit(data, self._options(), bar.notify)
        return self._take(table, model, json.loads(figures))

    def _fit_table(self, U: Any, Y: Any, records: Any) -> Table:
        if Y is None:
            raise ValueError("Y: None; this estimator requires y to be passed, but the target y is None: give the outputs")
        return Table(U, Y, records)

    def _take(self, table: Table, model: _tha.Model, figures: dict[str, Any]) -> Volterra:
        """Keeps what a fit gave."""
        self._compiled = model
        self._one_column = table.one_column
        self.n_features_in_ = table.width
        if table.names is not None:
            import numpy as np

            self.feature_names_in_ = np.array(table.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.train_ = figures.pop("train")
        self.validation_ = figures.pop("val")
        self.fit_ = figures
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self._compiled is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.regressor_tags.poor_score = True
        return tags

    def _repr_html_(self) -> str:
        if self._compiled is None and (shown := getattr(super(Fitted, self), "_repr_html_", None)) is not None:
            return shown() if callable(shown) else shown
        return Fitted._repr_html_(self)


class _Bar:
    """Progress by tqdm, where it is installed and wanted."""

    def __init__(self, verbose: bool | str) -> None:
        self.notify = None
        self._bar: Any = None
        wanted = (sys.stderr is not None and sys.stderr.isatty()) or "ipykernel" in sys.modules
        if verbose is False or (verbose == "auto" and not wanted):
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        # What is done within a second needs no bar.
        self._bar = tqdm(desc="fit", unit="", delay=0 if verbose is True else 1)
        self.notify = self._show

    def _show(self, done: int | None, of: int | None, text: str) -> None:
        if of is not None:
            self._bar.total = of
            self._bar.update(done - self._bar.n)
        elif self._bar.total is None:
            self._bar.update(1)
        self._bar.set_postfix_str(text, refresh=False)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()
