"""The estimator has the habits of scikit-learn, and works without it."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import tha
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

ORDER = "rows are samples in time: a prediction depends on the rows before it, and the first rows have none"
EXPECTED = {
    "check_methods_sample_order_invariance": ORDER,
    "check_methods_subset_invariance": ORDER,
}


@pytest.mark.filterwarnings("ignore")
def test_check_estimator_but_for_exchangeable_rows():
    results = check_estimator(
        tha.Volterra(memory=2, degree=2, max_rank=2), expected_failed_checks=EXPECTED, on_fail=None, on_skip=None
    )
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed
    # What is expected to fail does fail: the list is no longer than it must be.
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == set(EXPECTED)


def test_parameters_and_clones(small):
    model = tha.Volterra(memory=3, degree=2, heads=2, subset_size=1)
    assert model.get_params()["heads"] == 2
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(memory=2).memory == 2
    with pytest.raises(ValueError, match="Invalid parameter 'heights'"):
        model.set_params(heights=2)
    assert is_regressor(model)
    assert clone(model.fit(small[0], small[1]))._compiled is None


def test_pipeline_grid_and_cross_validation(small):
    U, y, U_test, y_test = small
    pipeline = make_pipeline(StandardScaler(), tha.Volterra(memory=4, max_rank=2))
    search = GridSearchCV(pipeline, {"volterra__degree": [1, 3]}, cv=KFold(3), n_jobs=2)
    search.fit(U, y)
    assert search.best_params_ == {"volterra__degree": 3}
    assert search.score(U_test, y_test) > 0.9
    scores = cross_val_score(tha.Volterra(memory=3, degree=1), U, y, cv=3)
    assert scores.shape == (3,) and np.isfinite(scores).all()


def test_pickle_and_joblib_keep_the_bytes(fitted, small, tmp_path):
    joblib.dump(fitted, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model.joblib")):
        assert copy.to_bytes() == fitted.to_bytes()
        assert copy.get_params() == fitted.get_params()
        np.testing.assert_array_equal(copy.predict(small[2]), fitted.predict(small[2]))
        with pytest.raises(ValueError, match="give `U` and `Y`"):
            copy.report(tmp_path / "r.html")
    processes = joblib.Parallel(n_jobs=2)(joblib.delayed(tha.Volterra.predict)(fitted, small[2]) for _ in range(2))
    np.testing.assert_array_equal(processes[0], fitted.predict(small[2]))


def test_not_fitted(small):
    model = tha.Volterra()
    for use in (lambda: model.predict(small[0]), model.to_bytes, model.stream, lambda: model.save("x.tha"), lambda: model.inputs_):
        with pytest.raises(NotFittedError, match="not fitted yet; call `fit` first"):
            use()
    assert "Volterra" in model._repr_html_()


def test_options_that_exclude_each_other(small):
    for options, expected in [
        ({"auto": True, "memory": 3}, "`memory` is chosen by `auto`"),
        ({"minutes": 1.0}, "`minutes` is for an automatic fit; add `auto=True`"),
        ({"auto": True, "minutes": 1.0, "trials": 3}, "`minutes` and `trials` exclude each other"),
        ({"basis": "levels:8", "memory": 3}, "`basis` and `memory` exclude each other"),
        ({"folds": 3, "val_fraction": 0.2}, "`folds` and `val_fraction` exclude each other"),
        ({"combine": "stack"}, "`combine` is for ensembles; add `heads`"),
    ]:
        with pytest.raises(ValueError, match=expected):
            tha.Volterra(**options).fit(small[0], small[1])


def test_wrong_options_are_value_errors(small):
    numbers = "memory degree maps max_rank heads subset_size restarts folds budget_flash seed threads".split()
    wrong = [(name, value) for name in numbers for value in (-1, "many", 1.5, 2**70, [1])]
    wrong += [(name, value) for name in ("ridge", "gamma", "decay", "tolerance", "val_fraction", "coverage") for value in ("much", -1.0, float("nan"), {})]
    wrong += [(name, value) for name in ("solver", "range", "combine", "subsets", "basis") for value in ("nothing", 7, "", b"x")]
    wrong += [("subsets", [[0, 0]]), ("subsets", [["u9"]]), ("subsets", [[5]]), ("subsets", [[]]), ("subsets", []), ("memory", 0), ("memory", 10**6)]
    wrong += [("checkpoint", 3), ("refit", "perhaps"), ("auto", "yes"), ("threads", 0)]
    for name, value in wrong:
        ensemble = {"heads": 2} if name in "subset_size combine budget_flash checkpoint".split() else {}
        with pytest.raises(ValueError, match=name):
            tha.Volterra(**{**ensemble, name: value}).fit(small[0], small[1])


def test_auto_by_trials_is_repeatable():
    (U, y), (U_test, y_test) = tha.synth("array", channels=4, outputs=1, samples=400)
    model = tha.Volterra(auto=True, trials=3).fit(U, y)
    assert model.to_bytes() == tha.Volterra(auto=True, trials=3, threads=1).fit(U, y).to_bytes()
    # What is promised for new data holds on them.
    assert (1 - model.score(U_test, y_test)) ** 0.5 == pytest.approx(model.fit_["error"], rel=0.3)
    assert model.fit_["complete"] in (True, False)


def test_progress_by_tqdm(small, capsys):
    tha.Volterra(memory=2, degree=2, heads=2, subset_size=1, verbose=True).fit(small[0], small[1])
    assert "2/2" in capsys.readouterr().err
    tha.Volterra(memory=2, degree=2, verbose=False).fit(small[0], small[1])
    assert capsys.readouterr().err == ""


def test_without_scikit_learn_and_tqdm():
    code = """
import sys
for name in ("sklearn", "tqdm", "joblib", "pandas", "polars"): sys.modules[name] = None
import tha, pickle
(U, Y), (V, W) = tha.synth("volterra", samples=300)
model = tha.Volterra(memory=4, max_rank=2, verbose=True)
assert model.set_params(degree=3).get_params()["degree"] == 3 and repr(model) == "Volterra(max_rank=2, memory=4, verbose=True)", model
try: model.predict(U)
except ValueError as error: assert "not fitted" in str(error)
try: model.set_params(x=1)
except ValueError: pass
assert model.fit(U, Y).score(V, W) > 0.99 and "<table>" in model._repr_html_()
assert pickle.loads(pickle.dumps(model)).to_bytes() == model.to_bytes()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
