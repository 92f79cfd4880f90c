#!/usr/bin/env python3
"""Other methods on the same rows as `tha-train fit --auto`, for development.

    python3 bench/peers.py DIR [NAME ...]        DIR/NAME/train.csv and test.csv; needs numpy, pandas, scikit-learn, lightgbm
    python3 bench/peers.py DIR --ours target/release/tha-train --minutes 3

Every method sees lags of the inputs only (no past outputs). Memory and strength are chosen on five contiguous blocks of some 6 000 of the training
rows, or on whole records where there are five or more; then all training rows are fitted and the test file is read once. Rows with less history than the longest memory that was
tried are left out, for all methods alike; ours is scored by `evaluate` on all rows after its warm-up."""
import argparse, json, pathlib, subprocess, tempfile, time
import numpy as np, pandas as pd
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.preprocessing import PolynomialFeatures
from lightgbm import LGBMRegressor

ROWS = 2000     # of kernel ridge, which cannot take more
CHOICE = 6000   # on which memory and strength are chosen
COLUMNS = 400   # of lags, at most


def read(path):
    table = pd.read_csv(path)
    inputs, outputs = ([c for c in table if c[0] == kind] for kind in "uy")
    groups = table.groupby((table.record != table.record.shift()).cumsum()) if "record" in table else [(0, table)]
    return [(g[inputs].to_numpy(), g[outputs].to_numpy()) for _, g in groups]


def lagged(records, memory, skip, mean, spread):
    """Rows with their history, and their blocks."""
    rows = [(np.hstack([((u - mean) / spread)[skip - k:len(u) - k] for k in range(memory)]), y[skip:], np.full(len(u) - skip, k))
            for k, (u, y) in enumerate(records) if len(u) > skip]
    x, y, record = [np.concatenate(part) for part in zip(*rows)]
    return x, y, record % 5 if len(rows) >= 5 else np.arange(len(x)) * 5 // len(x)


def nrmse(truth, prediction):
    return float((np.sqrt(((truth - prediction) ** 2).mean(0)) / truth.std(0)).mean())


def linear(strength):
    return lambda x, y, z: Ridge(strength).fit(x, y).predict(z)


def quadratic(strength):
    def fit(x, y, z):
        if x.shape[1] > 50:
            return None
        wide = PolynomialFeatures(2, include_bias=False)
        a = wide.fit_transform(x)
        return Ridge(strength).fit(a, y).predict(wide.transform(z))
    return fit


def kernel(degree, strength):
    def fit(x, y, z):
        at = np.arange(0, len(x), max(1, len(x) // ROWS))
        model = KernelRidge(alpha=strength, kernel="poly", degree=degree, gamma=1 / x.shape[1], coef0=1)
        return model.fit(x[at], y[at]).predict(z)
    return fit


def trees(leaves):
    def fit(x, y, z):
        def one(target):
            model = LGBMRegressor(n_estimators=300, num_leaves=leaves, learning_rate=0.05, verbose=-1, n_jobs=2)
            return model.fit(x, target).predict(z)
        return np.column_stack([one(y[:, j]) for j in range(y.shape[1])])
    return fit


METHODS = {
    "linear ridge": [linear(s) for s in (1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)],
    "quadratic ridge": [quadratic(s) for s in (1.0, 10.0, 100.0, 1000.0)],
    "kernel ridge": [kernel(d, s) for d in (2, 3) for s in (1e-2, 1e-1, 1.0, 10.0)],
    "boosted trees": [trees(31)],
}

MEMORIES = {"kernel ridge": (1, 3, 10, 50), "boosted trees": (1, 5, 20)}


def best(method, train, test):
    lengths = sorted(len(u) for u, _ in train)
    memories = [m for m in (1, 2, 3, 5, 10, 20, 50, 100) if m <= lengths[len(lengths) // 2] // 8 + 1]
    stacked = np.vstack([u for u, _ in train])
    mean, spread = stacked.mean(0), np.where(stacked.std(0) < 1e-12, 1, stacked.std(0))
    skip = memories[-1] - 1
    found = (np.inf, None, None)
    for memory in memories:
        if memory * stacked.shape[1] > COLUMNS or memory not in MEMORIES.get(method, memories):
            continue
        x, y, block = lagged(train, memory, skip, mean, spread)
        every = max(1, len(x) // CHOICE)
        x, y, block = x[::every], y[::every], block[::every]
        for setting in METHODS[method]:
            held = np.zeros_like(y)
            for k in range(5):
                prediction = setting(x[block != k], y[block != k], x[block == k])
                if prediction is None:
                    break
                held[block == k] = prediction.reshape(-1, y.shape[1])
            else:
                found = min(found, (nrmse(y, held), memory, setting), key=lambda f: f[0])
    if found[1] is None:
        return float("nan")
    x, y, _ = lagged(train, found[1], skip, mean, spread)
    z, truth, _ = lagged(test, found[1], skip, mean, spread)
    return nrmse(truth, found[2](x, y, z).reshape(truth.shape))


def ours(program, folder, minutes):
    with tempfile.TemporaryDirectory() as scratch:
        model = f"{scratch}/model.tha"
        subprocess.run([program, "fit", folder / "train.csv", "--out", model, "--auto", "--minutes", str(minutes), "-q"], check=True)
        said = subprocess.run([program, "evaluate", model, folder / "test.csv", "--json", "-q"], check=True, capture_output=True)
        return json.loads(said.stdout)["nrmse"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ours")
    parser.add_argument("--minutes", type=float, default=3)
    args = parser.parse_args()
    names = args.names or sorted(p.name for p in args.folder.iterdir() if (p / "train.csv").exists())
    print("| recording | " + " | ".join(METHODS) + (" | fit --auto |" if args.ours else " |"))
    print("|---" * (1 + len(METHODS) + bool(args.ours)) + "|")
    for name in names:
        start = time.time()
        train, test = read(args.folder / name / "train.csv"), read(args.folder / name / "test.csv")
        print(f"| {name} |", end="", flush=True)
        for method in METHODS:
            print(f" {best(method, train, test):.3f} |", end="", flush=True)
        if args.ours:
            print(f" {ours(args.ours, args.folder / name, args.minutes):.3f} |", end="", flush=True)
        print(f"  ({time.time() - start:.0f} s)")
