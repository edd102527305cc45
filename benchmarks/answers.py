"""Judged answers of two language models: what is certified, and what comes true later.

    python benchmarks/answers.py

For each model, score and target: the share of cases that is answered, among the 1,000 judged ones
that certify and among 1,000 later ones, and the share of these later answers that is wrong.
"""

import warnings
from pathlib import Path

import pandas as pd

from skselect import Predictions, select_threshold

FOLDER = Path(__file__).parents[1] / "docs" / "data"
N_FIRST, TARGETS = 1500, [0.05, 0.1, 0.15, 0.2, 0.3]


def agree(table):
    """Return the share of the samples that agree with the answer."""
    samples = table["samples"].str.split(expand=True)
    return samples.eq(table["answer"], axis=0).mean(axis=1)


def measure(model, score, target):
    table = pd.read_json(FOLDER / f"{model}.jsonl.gz", lines=True)
    table = table.assign(agree=agree(table))
    first, later = table[:N_FIRST], table[N_FIRST:]
    rows = Predictions.from_verdicts(first["verdict"], first[score])
    found = select_threshold(rows, objective="risk", target=target, on_infeasible="abstain")
    accepted = later[later[score] >= found.threshold]
    wrong = (accepted["verdict"] == "wrong").mean()
    return {
        "model": model, "score": score, "target": target, "certified": found.coverage,
        "later": len(accepted) / len(later), "wrong later": wrong,
    }  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # refused targets
    cells = [
        measure(model, score, target)
        for model in ("large", "small")
        for score in ("score", "agree")
        for target in TARGETS
    ]
    print(pd.DataFrame(cells).round(3).to_string(index=False))
