"""Heads on a cluster: tasks of some heads each by Dask, Ray or joblib, and the bytes of a fit on one machine.

The data go into the store of the engine once, and a worker decodes them once; where they are large, every task gets the columns of its
heads instead. A task fits some heads, as many as take a second or two, and gives back what is to be kept of them, a few files of some
kilobytes each; the client puts them into one folder and merges them. Where `checkpoint` of the estimator names a folder, that is where
they stay, and a second run goes on from there. An automatic fit is divided in the same way: its heads are settings that its search wants
to try, in rounds, since what it wants next depends on the results.
"""

from __future__ import annotations

import ctypes
import json
import tempfile
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np

from . import _tha
from ._estimator import Volterra, _Bar

__all__ = ["HeadError", "fit"]

# Bytes of data from which a task gets the columns of its heads alone: whole data cost every worker as much, columns every head 8 bytes
# per sample and input (500 inputs, 20 000 rows: 80 MB for a worker, 0.6 MB for a head of 4 inputs).
LARGE = 256 * 2**20
# Bytes of columns for a task; Dask warns of more than 10 MiB.
PART = 8 * 2**20
# Seconds of a task: an engine takes some 5 ms for one (bench/python.py), and what a worker that dies was at is done again.
SECONDS = 2.0
# Times that heads are handed out again after a worker of joblib died; the other engines count for themselves.
AGAIN = 3

# The last plan that this process has read, by the checksums at the end of its bytes.
_last: tuple[bytes, bytes, _tha.Plan] | None = None


class HeadError(ValueError):
    """A head that could not be fitted."""

    def __init__(self, head: int | str, reason: object) -> None:
        super().__init__(f"head {head}: {reason}")
        self.head, self.reason = head, str(reason)

    def __reduce__(self) -> Any:
        return HeadError, (self.head, self.reason)


def _plan(stored: np.ndarray, later: np.ndarray | None) -> _tha.Plan:
    """The plan in `stored`, or a later one for its data."""
    global _last
    first, second = stored[-8:].tobytes(), b"" if later is None else later[-8:].tobytes()
    if _last is None or _last[:2] != (first, second):
        plan = _last[2] if later is not None and _last is not None and _last[0] == first else _tha.Plan.from_bytes(stored)
        _last = (first, second, plan if later is None else plan.renewed(later))
    return _last[2]


def _keep_memory() -> None:
    """Has this process keep memory that it frees, up to 32 MiB a piece and 128 MiB in all.

    Workers of Dask and Ray give it back to the system at once, and a head takes and frees the same matrices again and again: 4000 page
    faults for each, a third of its time.
    """
    try:
        allocator = ctypes.CDLL(None)
        allocator.mallopt(-3, 32 * 2**20)
        allocator.mallopt(-1, 128 * 2**20)
    except (AttributeError, OSError, TypeError):
        # Another allocator than that of glibc.
        pass


def _heads(stored: np.ndarray, later: np.ndarray | None, known: dict[str, bytes], heads: list[int]) -> tuple[float, dict[str, bytes]]:
    """Fits some heads of a plan; gives the seconds and the files that the merge needs. This is what runs on a worker."""
    _keep_memory()
    plan, seconds = _plan(stored, later), 0.0
    with tempfile.TemporaryDirectory(prefix="tha-") as folder:
        for file, content in known.items():
            Path(folder, file).write_bytes(content)
        for k in heads:
            try:
                # Engines run one task per processor.
                seconds += plan.fit_head(Path(folder), k, 1)
            except Exception as error:
                raise HeadError(k, error) from error
        return seconds, {file.name: file.read_bytes() for file in Path(folder).glob("*.kept") if file.name not in known}


class _Work:
    """Heads that are to be fitted, in batches: single ones until it is known how long they take."""

    def __init__(self, plan: _tha.Plan, heads: list[int], size: int, known: dict[str, bytes]) -> None:
        self.plan, self.left, self.known = plan, list(heads), known
        self.whole = None if plan.apart and size > LARGE else plan.to_bytes(None)
        self._most = len(heads) if self.whole is not None else max(1, PART // plan.to_bytes(heads[:1]).nbytes)
        self._stored: Any = None
        # A later plan for the same data.
        self.later: np.ndarray | None = None
        self.task: Callable[..., Any] = _heads
        self._seconds, self._done = 0.0, 0

    def batch(self, workers: int) -> list[int]:
        """The next heads: for SECONDS, but so that no worker is left without work at the end; none when there are no more."""
        size = 1
        if self._done:
            in_time = int(SECONDS * self._done / max(self._seconds, 1e-9))
            size = max(1, min(in_time, self._most, len(self.left) // (3 * workers)))
        batch, self.left = self.left[:size], self.left[size:]
        return batch

    def arguments(self, put: Callable[[np.ndarray], Any], batch: list[int]) -> tuple[Any, ...]:
        """What a task gets: a part of the plan, or what stands for all of it once it was put into the store of an engine."""
        if self.whole is None:
            return self.plan.to_bytes(batch), self.later, self.known, batch
        if self._stored is None:
            self._stored = put(self.whole)
        return self._stored, self.later, self.known, batch

    def took(self, batch: list[int], result: tuple[float, dict[str, bytes]]) -> dict[str, bytes]:
        seconds, files = result
        self._seconds += seconds
        self._done += len(batch)
        return files


Results = Iterator["tuple[list[int], dict[str, bytes]]"]


def _failed(batch: list[int], error: BaseException) -> HeadError:
    if isinstance(error, HeadError):
        return error
    return HeadError(batch[0] if len(batch) == 1 else f"{batch[0]} to {batch[-1]}", error)


def _by_dask(client: Any, work: _Work) -> Results:
    from distributed import as_completed

    def put(whole: np.ndarray) -> Any:
        # A future under a name of its own: equal data of an earlier fit may be on their way out.
        return client.scatter([whole], hash=False, broadcast=True)[0]

    under_way: dict[Any, list[int]] = {}
    completed = as_completed()
    try:
        while True:
            workers = max(1, sum(client.nthreads().values()))
            while len(under_way) < 2 * workers and (batch := work.batch(workers)):
                future = client.submit(work.task, *work.arguments(put, batch), pure=False)
                under_way[future] = batch
                completed.add(future)
            if not under_way:
                return
            future = next(completed)
            batch = under_way.pop(future)
            try:
                yield batch, work.took(batch, future.result())
            except Exception as error:
                raise _failed(batch, error) from error
    finally:
        client.cancel(list(under_way))


def _by_ray(ray: Any, work: _Work) -> Results:
    remote = ray.remote(work.task)
    under_way: dict[Any, list[int]] = {}
    try:
        while True:
            workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
            while len(under_way) < 2 * workers and (batch := work.batch(workers)):
                under_way[remote.remote(*work.arguments(ray.put, batch))] = batch
            if not under_way:
                return
            [future], _ = ray.wait(list(under_way), num_returns=1)
            batch = under_way.pop(future)
            try:
                yield batch, work.took(batch, ray.get(future))
            except ray.exceptions.RayTaskError as error:
                raise _failed(batch, error.cause) from error
            except ray.exceptions.RayError as error:
                raise _failed(batch, error) from error
    finally:
        for future in under_way:
            ray.cancel(future, force=True)


def _named(task: Callable[..., Any], *arguments: Any) -> tuple[list[int], Any]:
    """A result with its heads; an error is a result too, so that joblib does not lose them."""
    try:
        return arguments[-1], task(*arguments)
    except Exception as error:
        return arguments[-1], error


def _by_joblib(parallel: Any, work: _Work) -> Results:
    import joblib

    left = list(work.left)
    workers = joblib.effective_n_jobs(parallel.n_jobs)
    again = joblib.Parallel(n_jobs=parallel.n_jobs, return_as="generator_unordered", batch_size=1)

    def tasks() -> Iterator[Any]:
        while batch := work.batch(workers):
            # A large array goes into shared memory once, whatever the number of tasks.
            yield joblib.delayed(_named)(work.task, *work.arguments(lambda whole: whole, batch))

    for attempt in range(AGAIN + 1):
        try:
            for batch, result in again(tasks()):
                if isinstance(result, Exception):
                    raise _failed(batch, result) from result
                left = [k for k in left if k not in batch]
                yield batch, work.took(batch, result)
            return
        except HeadError:
            raise
        except Exception as error:
            # A worker that died takes the pool with it.
            if type(error).__name__ not in ("TerminatedWorkerError", "BrokenProcessPool") or attempt == AGAIN:
                raise HeadError(left[0], f"{error}; {len(left)} heads are left") from error
            work.left = list(left)


def _engine(engine: Any) -> Callable[[Any, _Work], Results]:
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


def fit(estimator: Volterra, U: Any, Y: Any, records: Any = None, *, engine: Any, portable: bool = False) -> Volterra:
    """Fits the heads of an ensemble, or tries the settings of an automatic fit, on a cluster; the model has the bytes of `estimator.fit`.

    `engine` is a `distributed.Client`, the module `ray` after `ray.init()`, or a `joblib.Parallel`. Heads that depend on each other
    (`combine="additive"`, `subsets="adaptive"`) and full models are one task. `auto` needs `trials`. With `portable`
    (or an estimator that is) workers with different processors give the same bytes, those of a portable `estimator.fit`.

    >>> import joblib, tha, tha.distributed
    >>> (U, Y), _ = tha.synth("array", channels=6, samples=300)
    >>> model = tha.Volterra(memory=2, degree=2, max_rank=2, heads=4, subset_size=2)
    >>> model = tha.distributed.fit(model, U, Y, engine=joblib.Parallel(n_jobs=2))
    >>> model.to_bytes() == tha.Volterra(memory=2, degree=2, max_rank=2, heads=4, subset_size=2).fit(U, Y).to_bytes()
    True
    """
    if portable not in (True, False):
        raise ValueError(f"portable: {portable!r}; expected True or False")
    if not isinstance(estimator, Volterra):
        raise ValueError(f"estimator: {type(estimator).__name__}; give a tha.Volterra")
    options = estimator._options()
    if portable:
        options["portable"] = True
    if options["auto"] and options["trials"] is None:
        raise ValueError("`auto` on a cluster needs `trials`: what a search of some `minutes` tries depends on the machines")
    run = _engine(engine)
    table = estimator._fit_table(U, Y, records)
    data = table.data()
    for text in data.warnings():
        warnings.warn(text, stacklevel=2)
    kept, options["checkpoint"] = options["checkpoint"], None
    with tempfile.TemporaryDirectory(prefix="tha-") if kept is None else nullcontext(kept) as folder, _Bar(estimator.verbose) as bar:
        folder = Path(folder)
        work: _Work | None = None
        while True:
            plan = _tha.Plan(data, options, folder)
            if kept is not None:
                plan.write(folder)
            heads = plan.missing(folder)
            if not heads:
                break
            if work is None:
                known = {} if plan.apart else {file.name: file.read_bytes() for file in folder.glob("subsets-*.kept")}
                work = _Work(plan, heads, data.nbytes, known)
            else:
                work.left, work.later = heads, plan.to_bytes([])
            done = plan.heads - len(heads)
            for batch, files in run(engine, work):
                _store(folder, files)
                done += len(batch)
                if bar.notify:
                    bar.notify(done, plan.heads, f"head {batch[-1]}")
            if not options["auto"]:
                break
        model, figures = plan.merge(folder, options["threads"])
    return estimator._take(table, model, json.loads(figures))


def _store(folder: Path, files: dict[str, bytes]) -> None:
    """Puts the files of some heads into the folder, those that say that they are done last, and each whole or not at all."""
    for name in sorted(files, key=lambda name: name.startswith("done-")):
        part = folder / f"{name}.part"
        part.write_bytes(files[name])
        part.replace(folder / name)
