"""
Read more rows than memory holds
================================

Two million predictions in Parquet files, counted piece by piece. The resulting state gives the same
bits as all rows in memory, and thresholds and pictures can be made from it.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skselect import SelectiveState, evaluate_parquet, select_threshold


def month(number):
    """Return a month of predictions: how sure, and was it wrong?"""
    rng = np.random.default_rng(number)
    confidence = rng.beta(3.0, 0.5, 500_000)
    error = rng.random(len(confidence)) >= confidence
    return pd.DataFrame({"confidence": confidence.astype(np.float32), "error": error})


# %%
# Files: one process, bounded memory.
metrics = ["aurc", "augrc", "csr"]
with TemporaryDirectory() as folder:
    for number in range(4):
        month(number).to_parquet(Path(folder) / f"month_{number}.parquet")
    from_files = evaluate_parquet(
        folder, metrics, confidence="confidence", loss="error", progress=False
    )
print(from_files.round(5).to_string())

# %%
# Pieces, from anywhere: a state is fed, merged, pickled, and read at any time. Here after 1,000
# rows, 2,000, 4,000 and so on: which share of the cases may be decided alone, with a certificate of
# at most 5 % errors?
pieces = pd.concat([month(number) for number in range(4)])
sizes = [1000 * 2**power for power in range(11)] + [len(pieces)]
state, seen = SelectiveState(), 0
found = {}
for size in sizes:
    piece = pieces[seen:size]
    seen = size
    state.update_confidence(piece["confidence"], piece["error"])
    found[size] = select_threshold(state.finalize(), objective="risk", target=0.05)
same = state.evaluate(metrics).equals(from_files)
print(f"{state.n_rows:,} rows, {state.n_errors:,} errors; the same bits as from files: {same}")

# %%
# More rows do not make the model better. But they tell more about its errors, so it may answer more
# cases.
plt.plot(sizes, [100 * selection.coverage for selection in found.values()], "o-")
plt.gca().set(xscale="log", xlabel="Rows", ylabel="Accepted with at most 5 % errors")
plt.gca().yaxis.set_major_formatter("{x:.0f} %")
plt.show()
