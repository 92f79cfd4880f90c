"""From arrays, frames and lists of records to the data sets of the library, with the names of the columns."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from . import _tha

MATRIX = "expected numbers, samples x channels"


class KindError(ValueError, TypeError):
    """A value of a kind that is no number: a ValueError, and a TypeError for those who wait for one."""


def _is_frame(table: Any) -> bool:
    """Whether this is a data frame of pandas or Polars: both have columns with names, and `to_numpy`."""
    return hasattr(table, "columns") and hasattr(table, "to_numpy")


def _is_series(table: Any) -> bool:
    return hasattr(table, "to_numpy") and hasattr(table, "name")


def _matrix(table: Any, place: str, vector: bool) -> np.ndarray:
    """A table as a matrix of f64 or f32 that the library can read; a vector is one column where that is allowed."""
    if hasattr(table, "toarray") and hasattr(table, "nnz"):
        raise ValueError(f"{place}: a sparse matrix; {MATRIX}: give its .toarray()")
    try:
        array = np.asarray(table.to_numpy() if hasattr(table, "to_numpy") else table)
        if array.dtype.kind == "c":
            raise ValueError(f"{place}: Complex data not supported; give real and imaginary parts as channels of their own")
        if array.dtype.kind in "mM":
            raise ValueError(f"{place}: times; {MATRIX}")
        if array.dtype not in (np.float64, np.float32):
            if array.dtype.kind in "OSU" and any(isinstance(value, (str, bytes)) for value in array.flat):
                raise ValueError(f"{place}: text; {MATRIX}")
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        if str(error).startswith(f"{place}:"):
            raise
        raise KindError(f"{place}: {error}; {MATRIX}") from None
    if array.ndim == 1 and vector:
        array = array.reshape(-1, 1)
    if array.ndim != 2:
        hint = "; Reshape your data: .reshape(-1, 1) if it is one channel" if array.ndim == 1 else ""
        raise ValueError(f"{place}: {array.ndim} dimensions; {MATRIX}{hint}")
    if array.shape[0] == 0:
        raise ValueError(f"{place}: 0 sample(s) (shape={array.shape}) while a minimum of 1 is required; {MATRIX}")
    if array.shape[1] == 0:
        raise ValueError(f"{place}: 0 feature(s) (shape={array.shape}) while a minimum of 1 is required; {MATRIX}")
    if not (array.flags.aligned and array.dtype.isnative):
        array = np.array(array, dtype=array.dtype.newbyteorder("="))
    return array


def _names(table: Any) -> list[str] | None:
    """The names of the columns of a frame, where all of them are text; else there are none."""
    if _is_frame(table):
        names = list(table.columns)
    elif _is_series(table):
        names = [table.name]
    else:
        return None
    return names if names and all(isinstance(name, str) and name for name in names) else None


def _is_records(table: Any) -> bool:
    """Whether this is a list of records, and not a list of rows."""
    return isinstance(table, (list, tuple)) and len(table) > 0 and all(
        _is_frame(part) or _is_series(part) or (isinstance(part, np.ndarray) and part.ndim >= 1) for part in table
    ) and any(_is_frame(part) or _is_series(part) or part.ndim == 2 for part in table)


def _joined(tables: Sequence[Any], place: str, vector: bool) -> tuple[np.ndarray, list[str] | None, list[int]]:
    """The records one below the other, the names of their columns, and their lengths."""
    parts = [_matrix(part, f"{place}[{k}]", vector) for k, part in enumerate(tables)]
    names = _names(tables[0])
    for k, part in enumerate(parts):
        if part.shape[1] != parts[0].shape[1]:
            raise ValueError(f"{place}[{k}]: {part.shape[1]} columns, but {place}[0] has {parts[0].shape[1]}; records must be alike")
        if _names(tables[k]) != names:
            raise ValueError(f"{place}[{k}]: the columns are {_names(tables[k])}, those of {place}[0] {names}; records must be alike")
    return np.concatenate(parts), names, [len(part) for part in parts]


def _ids(records: Any) -> list[str]:
    """The id of every row as text."""
    if records is None:
        return []
    if isinstance(records, (str, bytes)) or not hasattr(records, "__len__"):
        raise ValueError("records: expected one id per row")
    column = records.to_numpy() if hasattr(records, "to_numpy") else np.asarray(records)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(f"records: {column.ndim} dimensions; expected one id per row")
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise ValueError("records: NaN or an infinite value; expected one id per row")
    return [str(value) for value in column.tolist()]


class Table:
    """Inputs, and outputs where there are any, as the library reads them."""

    def __init__(
        self, U: Any, Y: Any = None, records: Any = None, *, inputs: list[str] | None = None, outputs: list[str] | None = None
    ) -> None:
        self.lengths: list[int] | None = None
        if _is_records(U):
            if records is not None:
                raise ValueError("records: U is a list of records already; leave `records` out")
            u, u_names, self.lengths = _joined(U, "U", vector=False)
            records = np.repeat(np.arange(len(self.lengths)), self.lengths)
        else:
            u, u_names = _matrix(U, "U", vector=False), _names(U)
        self.names = u_names
        # Outputs that came without an axis for the channels leave so.
        self.one_column = False
        y, y_names = None, None
        if Y is not None:
            if self.lengths is not None:
                if not isinstance(Y, (list, tuple)) or len(Y) != len(self.lengths):
                    found = f"{len(Y)} records" if isinstance(Y, (list, tuple)) else "no list"
                    raise ValueError(f"Y: {found}, but U is a list of {len(self.lengths)} records; give one per record")
                y, y_names, lengths = _joined(Y, "Y", vector=True)
                for k, (a, b) in enumerate(zip(self.lengths, lengths)):
                    if a != b:
                        raise ValueError(f"Y[{k}]: {b} rows, but U[{k}] has {a}; they must be equal")
            else:
                y, y_names = _matrix(Y, "Y", vector=True), _names(Y)
            first = Y[0] if self.lengths is not None else Y
            self.one_column = y.shape[1] == 1 and not _is_frame(first) and len(np.asarray(first).shape) == 1
            if len(y) != len(u):
                raise ValueError(f"Y: {len(y)} rows, but U has {len(u)}; they must be equal")
        self.inputs = inputs or u_names or [f"u{k + 1}" for k in range(u.shape[1])]
        self.outputs = outputs or y_names or [f"y{k + 1}" for k in range(0 if y is None else y.shape[1])]
        self.width = u.shape[1]
        self.height = None if y is None else y.shape[1]
        self._parts = (u, y, _ids(records))

    def data(self) -> _tha.Data:
        u, y, ids = self._parts
        return _tha.Data(u, y, self.inputs, self.outputs, ids, ("U", "Y"))

    def divided(self, rows: np.ndarray) -> Any:
        """Rows as they came: in one piece, or in records."""
        return rows if self.lengths is None else np.split(rows, np.cumsum(self.lengths)[:-1])
