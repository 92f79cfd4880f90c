"""Arrays, frames and records of every kind give the same model; what is wrong is a ValueError with place and remedy."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import tha

OPTIONS = {"memory": 3, "degree": 2, "max_rank": 2}


def fit(U, Y, **options):
    return tha.Volterra(**OPTIONS).fit(U, Y, **options)


def test_layouts_give_the_same_bytes(small):
    U, y, *_ = small
    expected = fit(U, y).to_bytes()
    frozen = U.copy()
    frozen.flags.writeable = False
    wide = np.zeros((2 * len(U), 6))
    wide[::2, 1::3] = U
    swapped = U.astype(">f8")
    packed = np.zeros(len(U), dtype=[("a", "i1"), ("u", "f8", 2)])
    packed["u"] = U
    for other in (np.asfortranarray(U), frozen, wide[::2, 1::3], U[::-1][::-1], swapped, packed["u"], U.astype(object), U.tolist()):
        assert fit(other, y).to_bytes() == expected
    assert fit(U, y.reshape(-1, 1)).to_bytes() == expected
    assert fit(U, np.asfortranarray(np.stack([y, y], axis=1))[:, :1]).to_bytes() == expected
    narrow = U.astype(np.float32)
    assert fit(narrow, y).to_bytes() == fit(narrow.astype(np.float64), y).to_bytes()
    assert fit((10 * U).astype(int), y).to_bytes() == fit((10 * U).astype(int).astype(float), y).to_bytes()


def test_outputs_leave_as_they_came(small):
    U, y, *_ = small
    assert fit(U, y).predict(U).shape == (len(U),)
    assert fit(U, y[:, None]).predict(U).shape == (len(U), 1)
    assert fit(U, np.stack([y, -y], axis=1)).predict(U).shape == (len(U), 2)
    assert fit(U, pd.Series(y)).predict(U).shape == (len(U),)
    predicted = fit(U, y).predict(U)
    assert np.isnan(predicted[:2]).all() and np.isfinite(predicted[2:]).all()


def test_frames_keep_their_names(small):
    U, y, *_ = small
    expected = None
    for frame, column in [
        (pd.DataFrame(U, columns=["valve", "T_in"]), pd.Series(y, name="T_out")),
        (pd.DataFrame(U, columns=["valve", "T_in"]), pd.DataFrame({"T_out": y})),
        (pl.DataFrame(U, schema=["valve", "T_in"]), pl.Series("T_out", y)),
        (pl.DataFrame(U, schema=["valve", "T_in"]), pl.DataFrame({"T_out": y})),
    ]:
        model = fit(frame, column)
        assert (model.inputs_, model.outputs_) == (["valve", "T_in"], ["T_out"])
        assert list(model.feature_names_in_) == ["valve", "T_in"]
        expected = expected or model.to_bytes()
        assert model.to_bytes() == expected
        model.predict(frame)
        model.predict(U)
        with pytest.raises(ValueError, match="feature names should match.*the same in another order"):
            model.predict(frame[["T_in", "valve"]])
    numbered = pd.DataFrame(U)
    assert fit(numbered, y).inputs_ == ["u1", "u2"]
    subset = tha.Volterra(**OPTIONS, subsets=[["T_in"], ["valve", "T_in"]]).fit(pd.DataFrame(U, columns=["valve", "T_in"]), y)
    assert {tuple(head["inputs"]) for head in subset.inspect()["heads"]} <= {("T_in",), ("valve", "T_in")}


def test_records(small):
    U, y, *_ = small
    ids = np.repeat(["b", "a", "c"], 100)
    expected = fit(U, y, records=ids)
    assert expected.to_bytes() != fit(U, y).to_bytes()
    parts = lambda table: [table[:100], table[100:200], table[200:]]
    frames = parts(pd.DataFrame(U, columns=["u1", "u2"]))
    for other in (fit(parts(U), parts(y)), fit(tuple(parts(U)), parts(y[:, None])), fit(frames, parts(pd.Series(y, name="y1"))),
                  fit(U, y, records=pd.Series(ids)), fit(U, y, records=np.repeat([1.0, 2.0, 3.0], 100)), fit(U, y, records=list(ids))):
        assert other.to_bytes() == expected.to_bytes()
    model = fit(parts(U), parts(y))
    predicted = model.predict(parts(U))
    assert [len(part) for part in predicted] == [100, 100, 100]
    whole = model.predict(U, records=ids)
    np.testing.assert_array_equal(np.concatenate(predicted), whole)
    assert np.isnan(whole).sum() == 6
    assert model.score(parts(U), parts(y)) == model.score(U, y, records=ids)


class Odd:
    """Something without any meaning as data."""


def test_wrong_data_are_value_errors(small):
    U, y, *_ = small
    nan, inf, large = U.copy(), y.copy(), U.copy()
    nan[7, 1], inf[8], large[9, 0] = np.nan, -np.inf, 1e300
    text = U.astype(object)
    text[3, 1] = "high"
    for wrong_u, wrong_y, expected in [
        (nan, y, "U, row 7, column 'u2': NaN; fill the gap"),
        (U, inf, "Y, row 8, column 'y1': an infinite value; fill the gap"),
        (large, y, "U, row 9, column 'u1': 1e300 does not fit"),
        (U[:, 0], y, r"U: 1 dimensions; expected numbers, samples x channels; Reshape your data"),
        (U[None], y, "U: 3 dimensions"),
        (U, y[:-1], "Y: 299 rows, but U has 300; they must be equal"),
        (U[:0], y[:0], "U: 0 sample"),
        (U[:, :0], y, "U: 0 feature"),
        (U, np.zeros((300, 0)), "Y: 0 feature"),
        (U[:1], y[:1], "U: the longest record has 1 samples, fewer than the memory of 3"),
        (U[:3], y[:3], "U"),
        (text, y, "U: text; expected numbers"),
        (U.astype(str), y, "U: text; expected numbers"),
        (U + 1j, y, "U: Complex data not supported"),
        (np.array([[Odd(), Odd()]] * 300), y, "U: .*Odd.*; expected numbers"),
        (Odd(), y, "U: "),
        (None, y, "U: "),
        (3.0, y, "U: 0 dimensions"),
        ("data.csv", y, "U: text"),
        (U, None, "Y: None; this estimator requires y"),
        (U, Odd(), "Y: "),
        (np.array(["2026-01-01"] * 300, dtype="datetime64[D]").reshape(-1, 1), y, "U: times"),
        ([[1.0, 2.0], [3.0]], [1.0, 2.0], "U: .*expected numbers"),
        (pd.DataFrame({"a": ["x"] * 300}), y, "U: text"),
        (pl.DataFrame({"a": [None] * 300, "b": [1.0] * 300}), y, "U, row 0, column 'a': NaN"),
        (pd.DataFrame(U, columns=["y1", "b"]), y, "Y: two channels are named 'y1'"),
        (pd.DataFrame(U, columns=["b", "b"]), y, "U: two channels are named 'b'"),
        ([U[:150], U[150:]], y, "Y: no list, but U is a list of 2 records"),
        ([U[:150], U[150:]], [y[:150]], "Y: 1 records, but U is a list of 2 records"),
        ([U[:150], U[150:]], [y[:149], y[149:]], r"Y\[0\]: 149 rows, but U\[0\] has 150"),
        ([U[:150], U[150:, :1]], [y[:150], y[150:]], r"U\[1\]: 1 columns, but U\[0\] has 2"),
        ([U[:150], nan[:150] * 0 + "x" if False else U[:0]], [y[:150], y[:0]], r"U\[1\]: 0 sample"),
    ]:
        with pytest.raises(ValueError, match=expected):
            fit(wrong_u, wrong_y)
    for records, expected in [
        (np.zeros(5), "records: 5 ids, but U has 300 rows"),
        ([0] * 100 + [1] * 100 + [0] * 100, "record '0' comes back"),
        ("ab", "records: expected one id per row"),
        (7, "records: expected one id per row"),
        (np.zeros((300, 2)), "records: 2 dimensions"),
        (np.full(300, np.nan), "records: NaN"),
    ]:
        with pytest.raises(ValueError, match=expected):
            fit(U, y, records=records)
    with pytest.raises(ValueError, match="U is a list of records already"):
        tha.Volterra(**OPTIONS).fit([U], [y], records=np.zeros(300))


def test_wrong_data_for_a_model(fitted, small):
    U, y, *_ = small
    for use, expected in [
        (lambda: fitted.predict(U[:, :1]), "X has 1 features, but Volterra is expecting 2 features as input"),
        (lambda: fitted.predict(U[:, 0]), "U: 1 dimensions"),
        (lambda: fitted.predict(U * np.nan), "U, row 0, column 'u1': NaN"),
        (lambda: fitted.score(U, np.stack([y, y], axis=1)), "Y: 2 columns, but the model has 1 outputs"),
        (lambda: fitted.score(U, None), "Y: None"),
        (lambda: fitted.score(U[:2], y[:2]), "the longest record has 2 samples, fewer than the memory of 3"),
        (lambda: fitted.evaluate(U, y[1:]), "Y: 299 rows, but U has 300"),
    ]:
        with pytest.raises(ValueError, match=expected):
            use()
    assert np.isnan(fitted.predict(U[:2])).all(), "too short to predict anything"


def test_constant_inputs_are_warned_of(small):
    U, y, *_ = small
    with pytest.warns(UserWarning, match="input 'u3' is constant"):
        fit(np.hstack([U, np.ones((300, 1))]), y)
