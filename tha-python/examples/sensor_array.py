# %% [markdown]
# # From a recording to a device
#
# Cells for a notebook; as a script, `python sensor_array.py [train.csv test.csv]`. A recording has inputs `u*`, outputs `y*` and, where it
# has gaps, a column `record`. Without one, a synthetic sensor array stands in: eight correlated channels with cross-talk and saturation.

# %%
import sys

import numpy as np
import tha


def recording(path):
    """Inputs, outputs and records of a CSV file."""
    import pandas

    table = pandas.read_csv(path)
    inputs = [name for name in table if name.startswith("u")]
    outputs = [name for name in table if name.startswith("y")]
    return table[inputs], table[outputs], table["record"] if "record" in table else None


if len(sys.argv) == 3 and sys.argv[1].endswith(".csv"):
    U, Y, records = recording(sys.argv[1])
    U_test, Y_test, test_records = recording(sys.argv[2])
else:
    (U, Y), (U_test, Y_test) = tha.synth("array", samples=1500, noise=0.05)
    records = test_records = None

# %% [markdown]
# ## A yardstick, a model, an ensemble
# A linear model first. What is better has to be better than that on data which nobody has seen.

# %%
models = {
    "linear": tha.Volterra(memory=6, degree=1),
    "quadratic": tha.Volterra(memory=4, degree=2),
    "additive heads": tha.Volterra(memory=4, degree=2, heads=8, subset_size=min(4, U.shape[1]), combine="additive"),
    "automatic": tha.Volterra(auto=True, trials=6),
}
for name, model in models.items():
    model.fit(U, Y, records=records)
    print(f"{name:>15}: R2 {model.score(U_test, Y_test, records=test_records):.4f}, {len(model.to_bytes())} bytes")

# %% [markdown]
# ## What to expect
# An automatic fit says what to expect on new data, from blocks that took no part in its choices.

# %%
best = models["automatic"]
found = best.evaluate(U_test, Y_test, records=test_records)
print(f"promised NRMSE {best.fit_['error']:.3f} +- {best.fit_['standard_error']:.3f}, measured {found['nrmse']:.3f}")
best

# %% [markdown]
# ## On the device
# The stream is the code of the microcontroller. It gives single precision, and it says when an input leaves its range.

# %%
stream = best.stream()
rows = np.asarray(U_test)[:200]
pushed = np.array([stream.push(u) for u in rows])
batch = np.asarray(best.predict(U_test[:200]))
print("largest difference to the batch:", np.nanmax(np.abs(pushed - batch)))
stream.push(rows[0] * 100)
print("an input far out:", stream.flags["out_of_range"], stream.channels[:2])

# %%
best.save("best.tha", force=True)
print(best.export_c("firmware", name="plant", force=True))
best.report("best.html", force=True)
