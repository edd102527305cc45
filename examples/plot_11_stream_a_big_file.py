"""
Stream a big file
=================

Two million predictions in Parquet files, counted piece by piece. The resulting state gives the same
bits as all rows in memory, and thresholds and pictures can be made from it.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skselect import RiskCoverageDisplay, SelectiveState, evaluate_parquet, select_threshold
from skselect.datasets import make_confidence_profile


def month(number):
    """Return a month of predictions: how sure, and was it wrong?"""
    drawn = make_confidence_profile("skew_high", "perfect", 500_000, random_state=number)
    return pd.DataFrame(
        {"confidence": drawn.confidence.astype(np.float32), "error": ~drawn.correct}
    )


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
# Pieces, from anywhere: a state is fed, merged, pickled, and read at any time.
states = []
for number in range(4):
    rows = month(number)
    states.append(SelectiveState().update_confidence(rows["confidence"], rows["error"]))
year = states[0].merge(*states[1:])
same = year.evaluate(metrics).equals(from_files)
print(f"{year.n_rows:,} rows, {year.n_errors:,} errors; the same bits as from files: {same}")

# %%
# The rest of the library goes on from the curve.
curve = year.finalize()
selection = select_threshold(curve, objective="risk", target=0.05)
print(selection)
RiskCoverageDisplay(curve, target=0.05, threshold=selection.threshold).plot()
plt.show()
