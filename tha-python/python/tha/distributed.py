"""Heads on a cluster: one task per head by Dask, Ray or joblib, and the bytes of a fit on one machine.

The data go into the store of the engine once. Every task fits one head and gives back what is to be kept of it, a few files of some
kilobytes; the client puts them into one folder and merges them. Where `checkpoint` of the estimator names a folder, that is where they
stay, and a second run goes on from there.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator

import numpy as np

from . import _tha
from ._estimator import Volterra, _Bar

__all__ = ["fit"]

# Times that heads are handed out again after a worker of joblib died; the other engines count for themselves.
AGAIN = 3

# The last plan that this process has read: every task of a fit needs it, and reading it takes as long as reading the data.
_plan: tuple[bytes, _tha.Plan] | None = None


class HeadError(ValueError):
    """A head that could not be fitted."""

    def __init__(self, head: int, reason: object) -> None:
        super().__init__(f"head {head}: {reason}")


def _head(stored: np.ndarray, known: dict[str, bytes], k: int) -> dict[str, bytes]:
    """Fits head `k` of a plan; gives the files that the merge needs. This is what runs on a worker."""
    global _plan
    # The checksum at its end tells one plan from another.
    name = stored[-8:].tobytes()
    if _plan is None or _plan[0] != name:
        _plan = (name, _tha.Plan.from_bytes(stored.tobytes()))
    with tempfile.TemporaryDirectory(prefix="tha-") as folder:
        for file, content in known.items():
            Path(folder, file).write_bytes(content)
        _plan[1].fit_head(Path(folder), k, 1)
        return {file.name: file.read_bytes() for file in Path(folder).glob("*.kept") if file.name not in known}


Task = Callable[[Any, Any, int], dict[str, bytes]]
Result = "tuple[int, dict[str, bytes]]"


def _by_dask(client: Any, task: Task, stored: np.ndarray, known: dict[str, bytes], heads: list[int]) -> Iterator[Any]:
    from distributed import as_completed

    # A future under a name of its own: equal data of an earlier fit may be on their way out.
    [data] = client.scatter([stored], hash=False, broadcast=True)
    futures = {client.submit(task, data, known, k, pure=False): k for k in heads}
    try:
        for future in as_completed(list(futures)):
            try:
                yield futures[future], future.result()
            except Exception as error:
                raise HeadError(futures[future], error) from error
    finally:
        client.cancel(list(futures))


def _by_ray(ray: Any, task: Task, stored: np.ndarray, known: dict[str, bytes], heads: list[int]) -> Iterator[Any]:
    data, remote = ray.put(stored), ray.remote(task)
    futures = {remote.remote(data, known, k): k for k in heads}
    waiting = list(futures)
    try:
        while waiting:
            [done], waiting = ray.wait(waiting, num_returns=1)
            try:
                yield futures[done], ray.get(done)
            except ray.exceptions.RayTaskError as error:
                raise HeadError(futures[done], error.cause) from error
            except ray.exceptions.RayError as error:
                raise HeadError(futures[done], error) from error
    finally:
        for future in waiting:
            ray.cancel(future, force=True)


def _named(task: Task, stored: np.ndarray, known: dict[str, bytes], k: int) -> tuple[int, Any]:
    """A result with its number; an error is a result too, so that joblib does not lose its number."""
    try:
        return k, task(stored, known, k)
    except Exception as error:
        return k, error


def _by_joblib(parallel: Any, task: Task, stored: np.ndarray, known: dict[str, bytes], heads: list[int]) -> Iterator[Any]:
    import joblib

    left = list(heads)
    again = joblib.Parallel(n_jobs=parallel.n_jobs, return_as="generator_unordered")
    for attempt in range(AGAIN + 1):
        try:
            # A large array goes into shared memory once, whatever the number of tasks.
            for k, result in again(joblib.delayed(_named)(task, stored, known, k) for k in list(left)):
                if isinstance(result, Exception):
                    raise HeadError(k, result) from result
                left.remove(k)
                yield k, result
            return
        except HeadError:
            raise
        except Exception as error:
            # A worker that died takes the pool with it.
            if type(error).__name__ not in ("TerminatedWorkerError", "BrokenProcessPool") or attempt == AGAIN:
                raise HeadError(left[0], f"{error}; {len(left)} heads are left") from error


def _engine(engine: Any) -> Callable[..., Iterator[Any]]:
    """The way to run tasks on an engine, by the object that is given."""
    kind = f"{type(engine).__module__}.{type(engine).__name__}"
    if getattr(engine, "__name__", None) == "ray":
        if not engine.is_initialized():
            raise ValueError("engine: Ray is not initialised; call ray.init() first")
        return _by_ray
    if kind.startswith("distributed.") and hasattr(engine, "scatter"):
        return _by_dask
    if kind.startswith("joblib.") and hasattr(engine, "n_jobs"):
        return _by_joblib
    raise ValueError(f"engine: {engine!r} is none; give a distributed.Client, the module ray after ray.init(), or a joblib.Parallel")


def fit(estimator: Volterra, U: Any, Y: Any, records: Any = None, *, engine: Any) -> Volterra:
    """Fits the heads of an ensemble on a cluster, one task each; the model has the bytes of `estimator.fit`.

    `engine` is a `distributed.Client`, the module `ray` after `ray.init()`, or a `joblib.Parallel`. Heads that depend on each other
    (`combine="additive"`, `subsets="adaptive"`) and full models are one task. `auto` is not divided.

    >>> import joblib, tha, tha.distributed
    >>> (U, Y), _ = tha.synth("array", channels=6, samples=300)
    >>> model = tha.Volterra(memory=2, degree=2, max_rank=2, heads=4, subset_size=2)
    >>> model = tha.distributed.fit(model, U, Y, engine=joblib.Parallel(n_jobs=2))
    >>> model.to_bytes() == tha.Volterra(memory=2, degree=2, max_rank=2, heads=4, subset_size=2).fit(U, Y).to_bytes()
    True
    """
    if not isinstance(estimator, Volterra):
        raise ValueError(f"estimator: {type(estimator).__name__}; give a tha.Volterra")
    options = estimator._options()
    if options["auto"]:
        raise ValueError("`auto` cannot be divided: what is tried next follows from what was tried; fit on one machine, or give `heads`")
    run = _engine(engine)
    table = estimator._fit_table(U, Y, records)
    data = table.data()
    for text in data.warnings():
        warnings.warn(text, stacklevel=2)
    kept, options["checkpoint"] = options["checkpoint"], None
    with tempfile.TemporaryDirectory(prefix="tha-") if kept is None else nullcontext(kept) as folder:
        folder = Path(folder)
        plan = _tha.Plan(data, options, folder)
        stored = np.frombuffer(plan.to_bytes(), dtype=np.uint8)
        known = {file.name: file.read_bytes() for file in folder.glob("subsets-*.kept")}
        heads = _missing(folder, range(plan.heads))
        with _Bar(estimator.verbose) as bar:
            done = plan.heads - len(heads)
            for k, files in run(engine, _head, stored, known, heads):
                _store(folder, files)
                done += 1
                if bar.notify:
                    bar.notify(done, plan.heads, f"head {k}")
        model, figures = plan.merge(folder, options["threads"])
    return estimator._take(table, model, json.loads(figures))


def _missing(folder: Path, heads: Iterable[int]) -> list[int]:
    """The heads of which the folder has nothing; what it has is checked by the merge."""
    return [k for k in heads if not any(folder.glob(f"done-{k:05}-*.kept"))]


def _store(folder: Path, files: dict[str, bytes]) -> None:
    """Puts the files of a head into the folder, the one that says that it is done last, and each whole or not at all."""
    for name in sorted(files, key=lambda name: name.startswith("done-")):
        part = folder / f"{name}.part"
        part.write_bytes(files[name])
        part.replace(folder / name)
