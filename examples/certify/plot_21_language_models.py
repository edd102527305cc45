"""
Certify answers of language models that a person has judged
===========================================================

Two small language models complete words. A person has judged some answers, and each has a score.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from skselect import (
    Outcomes,
    Predictions,
    RiskCoverageCurve,
    RiskCoverageDisplay,
    evaluate,
    select_threshold,
)

# %%
# Each line is a case: what the model saw, its answer, the log-probability of this answer, those
# of five samples, and a verdict on the cases that were drawn for one.
folder = next(x for x in map(Path, ("docs/data", "../../docs/data")) if x.is_dir())
tables = {
    name: pd.read_json(folder / f"{name}.jsonl.gz", lines=True)[:1500]
    for name in ("small", "large")
}
tables["large"][["prompt", "answer", "score", "verdict"]].head()

# %%
# Two scores: the log-probability of the answer, and the share of the samples that agree with it.
rows = {}
for name, table in tables.items():
    samples = table["samples"].str.split(expand=True)
    share = samples.eq(table["answer"], axis=0).mean(axis=1)
    rows[name, "log-probability"] = Predictions.from_verdicts(table["verdict"], table["score"])
    rows[name, "five samples"] = Predictions.from_verdicts(table["verdict"], share)
metrics = ["augrc", "failure_auroc"]
pd.DataFrame({key: evaluate(some, metrics) for key, some in rows.items()}).T.round(3)

# %%
# The large model may answer half of the cases on its own, at most 10 % of them wrongly. The curve
# of the small one is far above.
selection = select_threshold(rows["large", "log-probability"], objective="risk", target=0.1)
print(selection.certificate)
display = RiskCoverageDisplay.from_selection(selection, name="large model")
small = RiskCoverageCurve.from_outcomes(Outcomes.of(rows["small", "log-probability"]))
RiskCoverageDisplay(small).plot(ax=display.ax_, name="small model")
plt.show()
