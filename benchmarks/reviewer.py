"""How much may the machine decide where a reviewer errs too?

    python benchmarks/reviewer.py FOLDER [--splits 4] [--draws 10] [--out runs.csv]

FOLDER holds Parquet tables whose column `target` is the label. Each split trains XGBoost on 3000
rows; each draw certifies on 2000 others, and the rest, 20,000 at most, say how often machine and
reviewer are wrong together. The reviewer errs more on hard cases: in proportion to .2 plus what a
logistic regression, which trained on the same rows, leaves to the wrong classes. Four objectives: a
risk of `target`, which says nothing about the reviewer; `overall_error` and `deferred_error`, both
with the true share of the reviewer's errors over all cases, which is too low for the deferred ones;
the reviewer's answers. Needs `pip install ".[benchmarks]"`.
Two processes take about 5 minutes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import warnings
import zlib

import numpy as np
import pandas as pd
from calibration import load, make_model
from joblib import Parallel, delayed

from skselect import Outcomes, Risk, SystemRisk, select_threshold

# Fixed beforehand: target of the system, and the reviewer's share of errors.
TABLES = {
    "credit_default": (0.12, 0.06), "covertype_small": (0.08, 0.04), "magic": (0.06, 0.03),
    "adult": (0.06, 0.03), "letter": (0.04, 0.02),
}  # fmt: skip
N_TRAINING, N_CERTIFYING, MOST_JUDGED, FLOOR = 3000, 2000, 20_000, 0.2


def split_outcomes(folder, name, split):
    """Return the outcomes of all rows that did not train, the reviewer's included."""
    X, codes = load(folder, name)
    rng = np.random.default_rng([split, zlib.crc32(name.encode())])
    order = rng.permutation(len(codes))
    train, rest = order[:N_TRAINING], order[N_TRAINING:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about empty columns, and levels that training lacks
        machine, easy = (
            make_model(kind, split).fit(X.iloc[train], codes[train])
            for kind in ("xgboost", "logistic")
        )
        proba, shown = (model.predict_proba(X.iloc[rest]) for model in (machine, easy))
    place = np.searchsorted(easy.classes_, codes[rest]).clip(max=len(easy.classes_) - 1)
    hard = FLOOR + 1.0 - shown[np.arange(len(rest)), place]
    error = TABLES[name][1]
    chance = np.clip(error * hard / hard.mean(), 0.0, 0.95)
    wrong = machine.classes_[proba.argmax(axis=1)] != codes[rest]
    return Outcomes(wrong, proba.max(axis=1), reviewer_loss=rng.random(len(rest)) < chance)


def do_runs(folder, name, split, draws):
    target, error = TABLES[name]
    rows, runs = split_outcomes(folder, name, split), []
    for draw in range(draws):
        order = np.random.default_rng([draw, split]).permutation(len(rows))
        given = rows.take(order[:N_CERTIFYING])
        judged = rows.take(order[N_CERTIFYING : N_CERTIFYING + MOST_JUDGED])
        plain = Outcomes(given.loss, given.confidence)
        for words, objective, table in (
            ("risk", Risk(target), plain),
            ("bound", SystemRisk(target, overall_error=error), plain),
            ("rate", SystemRisk(target, deferred_error=error), plain),
            ("answers", SystemRisk(target), given),
        ):
            found = select_threshold(
                table, objective=objective, assume="independent", on_infeasible="abstain"
            )
            kept = judged.confidence >= found.threshold
            system = np.where(kept, judged.loss, judged.reviewer_loss).mean()
            runs.append({
                "table": name, "objective": words, "split": split, "draw": draw,
                "machine": kept.mean(), "system": system, "broken": system > target,
                "refused": not np.any(kept), "reviewer alone": judged.reviewer_loss.mean(),
                "machine alone": judged.loss.mean(),
            })  # fmt: skip
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder")
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", default=None, help="CSV file for the single runs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done = Parallel(n_jobs=options.jobs)(
        delayed(do_runs)(options.folder, name, split, options.draws)
        for name in TABLES
        for split in range(options.splits)
    )
    runs = pd.DataFrame([run for part in done for run in part])
    if options.out:
        runs.to_csv(options.out, index=False)
    shown = ["machine", "system", "broken", "refused", "reviewer alone", "machine alone"]
    print(runs.groupby(["table", "objective"], sort=False)[shown].mean().round(3).to_string())


if __name__ == "__main__":
    main()
