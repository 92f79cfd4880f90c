#!/usr/bin/env python3
"""The descent of tha-train beside a numpy prototype of it, in one run on one machine.

    python3 bench/descent.py PROTOTYPE.py [THREADS]

PROTOTYPE.py has a class `Network(q, degree, rank)` with `fit(X, y, ridge)`, which starts from where the last fit ended. The
prototype fits one network for each output on THREADS threads of its linear algebra (1 unless told); tha-train fits one for all
outputs on all cores. Both follow five ridges from strong to weak on rows of the same shape and law; the residuals show that both
arrive. Needs numpy and what the prototype imports. For development only: no test and no part of the product calls it."""
import importlib.util
import os
import subprocess
import sys
import time

if len(sys.argv) < 2:
    sys.exit(__doc__)
threads = sys.argv[2] if len(sys.argv) > 2 else "1"
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = threads

import numpy as np  # noqa: E402  (after the number of threads is set)

spec = importlib.util.spec_from_file_location("prototype", sys.argv[1])
prototype = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prototype)

ours = subprocess.run(
    ["cargo", "bench", "-q", "-p", "tha-train", "--bench", "descent"], check=True, capture_output=True, text=True
).stdout
rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in ours.splitlines() if line.startswith("| ")]

print("| N | q | d | l | rank | tha-train, seconds | residual | prototype, seconds | residual | ratio |")
print("|---|---|---|---|---|---|---|---|---|---|")
for count, q, degree, outputs, rank, seconds, _, residual in rows[1:]:
    n, width, l = int(count), int(q), int(outputs)
    draws = np.random.default_rng(1)
    z = draws.normal(size=(n, width - 1))
    noise = 0.3 * draws.normal(size=(n, l))
    y = np.column_stack([z[:, j] * z[:, j + 1] + z[:, 2] for j in range(l)]) + noise
    x = np.column_stack([np.ones(n), z / np.sqrt(width - 1)])
    start, error = time.time(), 0.0
    for j in range(l):
        network = prototype.Network(width, int(degree), int(rank))
        for ridge in (100.0, 10.0, 1.0, 0.1, 0.01):
            network.fit(x, y[:, j], ridge)
        error += ((network(x) - y[:, j]) ** 2).sum()
    other = time.time() - start
    left = np.sqrt(error / (y**2).sum())
    print(
        f"| {count} | {q} | {degree} | {outputs} | {rank} | {seconds} | {residual} | {other:.2f} | {left:.3f} "
        f"| {other / float(seconds):.1f} |",
        flush=True,
    )
