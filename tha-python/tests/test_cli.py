"""Python and the command line give the same bytes for the same options."""

import json

import numpy as np
import pytest
import tha

SETS = {
    "volterra": ("volterra", {"samples": 600}),
    "array": ("array", {"channels": 6, "samples": 500}),
    "wiener": ("wiener-hammerstein", {"channels": 3, "samples": 500}),
}
FITS = {
    "full": ({"memory": 3, "degree": 2}, "--memory 3 --degree 2"),
    "clamped folds": ({"memory": 2, "degree": 2, "folds": 3, "range": "clamp"}, "--memory 2 --degree 2 --folds 3 --range clamp"),
    "average": ({"memory": 2, "degree": 2, "heads": 4, "subset_size": 2, "seed": 5}, "--memory 2 --degree 2 --heads 4 --subset-size 2 --seed 5"),
    "additive": (
        {"memory": 2, "degree": 2, "heads": 3, "subset_size": 2, "combine": "additive"},
        "--memory 2 --degree 2 --heads 3 --subset-size 2 --combine additive",
    ),
    "filters": ({"basis": "levels:8", "maps": 4, "degree": 2, "max_rank": 2}, "--basis levels:8 --maps 4 --degree 2 --max-rank 2"),
    "auto": ({"auto": True, "trials": 3}, "--auto --trials 3"),
    "portable": ({"memory": 2, "degree": 2, "heads": 3, "subset_size": 2, "portable": True}, "--memory 2 --degree 2 --heads 3 --subset-size 2 --portable"),
}


@pytest.mark.parametrize("kind", SETS)
def test_bytes(kind, cli, csv, tmp_path):
    name, options = SETS[kind]
    (U, Y), _ = tha.synth(name, **options)
    csv(tmp_path / "data.csv", U, Y)
    for fit, (keywords, flags) in FITS.items():
        out = tmp_path / "model.tha"
        cli("fit", tmp_path / "data.csv", "--out", out, *flags.split(), "-q")
        assert tha.Volterra(**keywords).fit(U, Y).to_bytes() == out.read_bytes(), (kind, fit)


def test_names_records_and_figures(cli, csv, tmp_path):
    pandas = pytest.importorskip("pandas")
    (U, Y), (V, W) = tha.synth("array", channels=4, outputs=1, samples=400)
    records = np.repeat(["one", "two"], 200)
    frame = pandas.DataFrame(U, columns=["valve_a", "valve_b", "T_in", "flow"])
    csv(tmp_path / "plant.csv", U, Y, records, inputs=list(frame), outputs=["T_out"])
    out = tmp_path / "plant.tha"
    done = cli("fit", tmp_path / "plant.csv", "--inputs", "valve_*,T_in,flow", "--outputs", "T_out", "--memory", 2, "--degree", 2, "--out", out, "--json")
    model = tha.Volterra(memory=2, degree=2).fit(frame, pandas.Series(Y[:, 0], name="T_out"), records=records)
    assert model.to_bytes() == out.read_bytes()
    said = json.loads(done.stdout)
    assert said["val"]["nrmse"][0] == model.validation_["outputs"][0]["nrmse"]
    csv(tmp_path / "test.csv", V, W, inputs=list(frame), outputs=["T_out"])
    said = json.loads(cli("evaluate", out, tmp_path / "test.csv", "--json").stdout)
    assert said["r2"] == model.score(V, W)
    cli("predict", out, tmp_path / "test.csv", "--out", tmp_path / "p.csv", "-q")
    lines = (tmp_path / "p.csv").read_text().splitlines()[1:]
    np.testing.assert_array_equal(np.array([float(line.strip(chr(34)) or "nan") for line in lines]), model.predict(V))
    assert json.loads(cli("inspect", out, "--json").stdout) == model.inspect()


def test_synth(cli, tmp_path):
    cli("synth", "--kind", "array", "--channels", 5, "--samples", 100, "--test-samples", 50, "--seed", 3, "--out", tmp_path / "data")
    (U, Y), _ = tha.synth("array", channels=5, samples=100, test_samples=50, seed=3)
    written = np.loadtxt(tmp_path / "data" / "train.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(written, np.hstack([U, Y]))
