"""Models in use: files, streams, reports, sources, analysis."""

import subprocess

import numpy as np
import pytest
import tha


def test_files(fitted, small, tmp_path):
    path = tmp_path / "model.tha"
    fitted.save(path)
    assert path.read_bytes() == fitted.to_bytes()
    loaded = tha.load(str(path))
    assert loaded.to_bytes() == fitted.to_bytes()
    np.testing.assert_array_equal(loaded.predict(small[2])[:, 0], fitted.predict(small[2]))
    assert loaded.score(small[2], small[3]) == fitted.score(small[2], small[3])
    assert loaded.inputs_ == ["u1", "u2"] and loaded.settled_ == 3 and "MACs per sample" in repr(loaded)
    fitted.save(path)
    notes = tmp_path / "notes.tha"
    notes.write_text("mine")
    with pytest.raises(ValueError, match="notes.tha"):
        fitted.save(notes)
    assert notes.read_text() == "mine"
    fitted.save(notes, force=True)
    assert notes.read_bytes() == fitted.to_bytes()


def test_intervals(fitted, small):
    y, low, high = fitted.predict(small[2], interval=True)
    np.testing.assert_array_equal(y, fitted.predict(small[2]))
    inside = (low <= small[3]) & (small[3] <= high)
    assert 0.7 < inside[2:].mean() <= 1.0 and np.isnan(low[:2]).all()
    with pytest.raises(ValueError, match="`coverage`"):
        tha.Volterra(coverage=1.5).fit(small[0], small[1])
    few = tha.Volterra(memory=1, degree=1, coverage=0.99).fit(small[0][:60], small[1][:60])
    with pytest.raises(ValueError, match="interval: the model has none"):
        few.predict(small[2], interval=True)


def test_damaged_files(fitted, tmp_path):
    path = tmp_path / "model.tha"
    good = fitted.to_bytes()
    for bad in (b"", b"nothing", good[:-1], good[:40] + b"\xff" + good[41:]):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match="model.tha: "):
            tha.load(path)
        with pytest.raises(ValueError, match="the bytes of the model: "):
            tha._tha.Model.from_bytes(bad)
    with pytest.raises(ValueError, match="cannot be read"):
        tha.load(tmp_path / "none.tha")
    with pytest.raises(ValueError, match="none/model.tha"):
        fitted.save(tmp_path / "none" / "model.tha")


def test_wrong_arguments_are_value_errors(fitted):
    for use in (tha.load, fitted.save, fitted.report, fitted.export_c, fitted.export_rust):
        for path in (None, 3, b"x", object()):
            with pytest.raises(ValueError, match="path: .*; expected the name of a file or folder"):
                use(path)
    for use, expected in [
        (lambda: fitted.export_c("x", name=7), "name: 7; expected text"),
        (lambda: fitted.inspect(rate="fast"), "rate: 'fast'; expected samples per second"),
        (lambda: fitted.stream().push("u"), "u: not a sample"),
    ]:
        with pytest.raises(ValueError, match=expected):
            use()


def test_streams_are_the_device(fitted, small):
    U = small[2]
    stream = fitted.stream()
    assert stream.remaining == 2
    pushed = np.array([stream.push(u) for u in U])
    assert pushed.dtype == np.float32 and pushed.shape == (len(U), 1)
    predicted = fitted.predict(U)
    assert np.isnan(pushed[:2]).all()
    np.testing.assert_allclose(pushed[2:, 0], predicted[2:], atol=1e-4)
    stream.reset()
    assert stream.remaining == 2
    for kind in (list, tuple, lambda u: u.astype(np.float32), lambda u: np.repeat(u, 2)[::2], lambda u: (float(v) for v in u)):
        stream.reset()
        again = np.array([stream.push(kind(u)) for u in U])
        np.testing.assert_array_equal(again, pushed)
    stream.push([1e6, 0.0])
    assert stream.flags["out_of_range"] and stream.channels == [("u1", "above")]
    stream.push([np.nan, 0.0])
    assert stream.flags["held"] and ("u1", "held") in stream.channels
    for wrong in ([1.0], [1.0, 2.0, 3.0], "ab", None, ["a", "b"], {"u": 1}, np.zeros((2, 2)), 3.0):
        with pytest.raises(ValueError):
            stream.push(wrong)


def test_models_of_integers(fitted, small, cli, csv, tmp_path):
    fitted.save(tmp_path / "m.tha")
    csv(tmp_path / "train.csv", small[0], small[1])
    cli("quantize", tmp_path / "m.tha", tmp_path / "train.csv", "--out", tmp_path / "m16.tha")
    model = tha.load(tmp_path / "m16.tha")
    stream = model.stream()
    pushed = np.array([stream.push(u)[0] for u in small[2]])
    assert stream.remaining == 0 and np.isnan(pushed[:2]).all()
    # Both are the device.
    np.testing.assert_array_equal(pushed[2:], np.ravel(model.predict(small[2]))[2:].astype(np.float32))
    np.testing.assert_allclose(pushed[2:], fitted.predict(small[2])[2:], atol=1e-2)
    stream.push([np.nan, 0.0])
    assert stream.flags["held"] and ("u1", "held") in stream.channels
    stream.reset()
    assert stream.remaining == 2


def test_one_input_takes_numbers():
    (U, Y), _ = tha.synth("wiener-hammerstein", channels=1, samples=300)
    stream = tha.Volterra(memory=1, degree=2).fit(U, Y).stream()
    assert stream.push(0.5) == stream.push(np.array([0.5])) == stream.push(np.float64(0.5))


def test_reports(fitted, small, tmp_path):
    fitted.report(tmp_path / "fit.html")
    assert "the data of the fit" in (tmp_path / "fit.html").read_text()
    fitted.report(tmp_path / "test.html", small[2], small[3])
    loaded_from = tmp_path / "model.tha"
    fitted.save(loaded_from)
    loaded = tha.load(loaded_from)
    loaded.report(tmp_path / "test.html", small[2], small[3])
    for arguments, expected in [((), "give `U` and `Y`"), ((small[2],), "give both `U` and `Y`")]:
        with pytest.raises(ValueError, match=expected):
            loaded.report(tmp_path / "no.html", *arguments)
    auto = tha.Volterra(auto=True, trials=2).fit(small[0], small[1])
    auto.report(tmp_path / "auto.html")
    assert "settings" in (tmp_path / "auto.html").read_text()


def test_sources(fitted, tmp_path):
    files = fitted.export_c(tmp_path / "c", name="plant")
    assert sorted(name.rsplit("/")[-1] for name in files) == ["plant.c", "plant.h"]
    compiled = subprocess.run(["gcc", "-std=c99", "-c", "plant.c", "-o", "plant.o"], cwd=tmp_path / "c", capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    fitted.export_rust(tmp_path / "rust")
    assert "static FILE" in (tmp_path / "rust" / "model.rs").read_text()
    with pytest.raises(ValueError, match="`name`: 'math' is the name of a header file"):
        fitted.export_c(tmp_path / "c", name="math")


def test_inspect_and_notebooks(fitted):
    found = fitted.inspect(rate=10.0)
    assert found["flash_bytes"] == len(fitted.to_bytes())
    assert found["stage"]["settled_seconds"] == pytest.approx(0.3)
    page = fitted._repr_html_()
    for word in ("MACs per sample", str(found["macs_per_sample"]), f"{found['flash_bytes']} bytes", "validation NRMSE", "memory, degree"):
        assert word in page


def test_analysis(small):
    U, y, U_test, _ = small
    options = {"memory": 2, "degree": 2, "max_rank": 2}
    full = tha.Volterra(**options).fit(U, y)
    heads = tha.Volterra(**options, heads=2, subset_size=1).fit(U, y)
    found = tha.analyze(full, heads, U, y)
    assert found["identity_gap"] < 1e-9 and found["theorem2"]["holds"] and len(found["heads"]) <= 2
    without = tha.analyze(full, heads, U)
    assert without["error"] == found["error"] and without["full_residual"] is None
    other = tha.Volterra(memory=3, degree=2).fit(U, y)
    for wrong, expected in [
        (lambda: tha.analyze(full, other, U), "fit both with the same `memory`"),
        (lambda: tha.analyze(full, "heads", U), "ensemble: not a model"),
        (lambda: tha.analyze(full, heads, U[:, :1]), "X has 1 features"),
        (lambda: tha.analyze(full, heads, U[:1]), "fewer than the memory"),
    ]:
        with pytest.raises(ValueError, match=expected):
            wrong()


def test_synth_refuses_in_a_sentence():
    for options, expected in [({"kind": "x"}, "`kind`: there is no 'x'"), ({"samples": -1}, "synth: "), ({"channels": 0}, "channels"), ({"height": 3}, "synth: ")]:
        with pytest.raises(ValueError, match=expected):
            tha.synth(**options)
