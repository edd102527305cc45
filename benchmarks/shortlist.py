"""Is the right answer on the shortlist of deferred cases, and how long is the list?

    python benchmarks/shortlist.py FOLDER [--splits 5] [--tables NAME ...] [--out runs.csv]

FOLDER holds Parquet tables whose column `target` is the label. Each split trains XGBoost on 30 % of
a table at random (1500 rows at most); half of the other rows choose a threshold for at most 2 %
wrong answers, and set the list of the cases that it defers; the rest judges both. Beside the
shortlist stand adaptive prediction sets (MAPIE's, randomised and not) and the smallest fixed
number of most probable classes, set on the same deferred rows at the same level, 0.95. Needs
`pip install ".[benchmarks]"`. One process takes some ten minutes, half of them for mnist; the
second time three, because raw scores are kept in benchmarks/.cache.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import warnings
import zlib

import numpy as np
import pandas as pd
from calibration import load, make_model, memory
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin
from tqdm import tqdm

from skselect import Outcomes, Predictions, RiskCoverageCurve, select_threshold
from skselect.bounds._pointwise import conformal_quantile
from skselect.thresholds import Shortlist
from skselect.thresholds._rules import combined_risk

# Every table of the folder with three classes or more, but abalone (28 ages: a regression). Where
# nothing can be certified, or fewer than 20 rows are deferred, there is nothing to report.
TABLES = [
    "balance_scale", "car", "covertype_small", "ecoli", "glass", "heart_cleveland", "letter",
    "mnist", "nursery", "obesity", "optdigits", "pendigits", "segment", "shuttle", "soybean",
    "vehicle", "vowel", "wine_quality", "yeast",
]  # fmt: skip
LEVEL, TARGET = 0.95, 0.02
ROWS_OF_THE_LIST = {
    "set apart (half)": Shortlist(LEVEL, share=0.5),
    "those that chose": Shortlist(LEVEL),
}
#: Fewer deferred rows set no list, or judge none.
LEAST_DEFERRED = 20
MOST_TRAINING_ROWS, MOST_ROWS = 1500, 10_000


@memory.cache
def predict(folder, name, split):
    """Return codes and probabilities of the rows that did not train; classes in order."""
    X, codes = load(folder, name)
    order = np.random.default_rng([split, zlib.crc32(name.encode())]).permutation(len(codes))
    n_train = min(int(0.3 * len(codes)), MOST_TRAINING_ROWS)
    train, rest = order[:n_train], order[n_train : n_train + MOST_ROWS]
    present = np.unique(codes[train])  # XGBoost takes 0 .. K-1 only
    model = make_model("xgboost", split)
    model.fit(X.iloc[train], np.searchsorted(present, codes[train]))
    rest = rest[np.isin(codes[rest], present)]
    return np.searchsorted(present, codes[rest]), model.predict_proba(X.iloc[rest])


def do_runs(folder, name, split):
    codes, proba = predict(folder, name, split)
    half, classes = len(codes) // 2, np.arange(proba.shape[1])
    fresh = Predictions.from_proba(codes[:half], proba[:half], labels=classes)
    for which, shortlist in ROWS_OF_THE_LIST.items():
        apart = shortlist.set_apart(half)
        chooses = Outcomes.of(fresh).take(~apart)
        if not combined_risk(RiskCoverageCurve.from_outcomes(chooses), TARGET, 0.05, 0.1).any():
            continue  # nothing can be certified (to say why takes seconds)
        try:
            found = select_threshold(fresh, objective="risk", target=TARGET, shortlist=shortlist)
        except ValueError as error:
            assert "deferred" in str(error)  # noqa: PT017 - too few rows are
            continue
        decided = found.policy.decide(proba[half:])
        deferred = ~decided["accepted"].to_numpy()
        if min(found.shortlist.n, deferred.sum()) < LEAST_DEFERRED:
            continue
        chosen = ~found.accepts(proba[:half].max(axis=1))
        chosen &= apart if shortlist.share else True
        truth, scored = codes[half:][deferred], proba[half:][deferred]
        sets = {"shortlist": scored.astype(np.float64) >= found.shortlist.least_proba}
        sets |= rivals(codes[:half][chosen], proba[:half][chosen], scored, classes, split)
        about = {"table": name, "classes": len(classes), "split": split, "rows": which,
                 "set on": int(chosen.sum()), "scored": len(truth),
                 "coverage": float(np.mean(~deferred)),
                 "top right": float(np.mean(scored.argmax(axis=1) == truth))}  # fmt: skip
        for kind, table in sets.items():
            sizes = table.sum(axis=1)
            yield about | {
                "kind": kind, "truth on it": float(np.mean(table[np.arange(len(truth)), truth])),
                "size": float(sizes.mean()), "at most two": float(np.mean(sizes <= 2)),
            }  # fmt: skip


class Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose features are the probabilities."""

    def __init__(self, classes):
        self.classes = classes
        self.classes_ = classes
        self.is_fitted_ = True

    def fit(self, X, y):  # noqa: ARG002 - fitted already
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return self.classes[np.argmax(X, axis=1)]


def rivals(truth, proba, scored, classes, split):
    """Return the sets of other rules, set on the same rows."""
    found = {}
    proba, scored = (p.astype(float) / p.sum(axis=1, keepdims=True, dtype=float)
                     for p in (proba, scored))  # fmt: skip
    for kind, last in {"adaptive": True, "adaptive, randomised": "randomized"}.items():
        rule = SplitConformalClassifier(
            Given(classes), confidence_level=LEVEL, conformity_score="aps", random_state=split
        )
        rule.conformalize(proba, truth)
        _, sets = rule.predict_set(scored, conformity_score_params={"include_last_label": last})
        found[kind] = sets[:, :, 0]
    ranks = (-proba).argsort(axis=1).argsort(axis=1)
    k = conformal_quantile(ranks[np.arange(len(truth)), truth].astype(float), LEVEL) + 1
    found["fixed number"] = (-scored).argsort(axis=1).argsort(axis=1) < k
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--out", default=None, help="CSV file for the single runs")
    options = parser.parse_args()
    jobs = [(name, split) for name in options.tables for split in range(options.splits)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about empty columns and classes that a split lacks
        runs = pd.DataFrame([run for job in tqdm(jobs) for run in do_runs(options.folder, *job)])
    if runs.empty:
        print("no split defers enough rows at this target")
        return
    if options.out:
        runs.to_csv(options.out, index=False)
    numbers = ["set on", "scored", "coverage", "top right", "truth on it", "size", "at most two"]
    tables = runs.groupby(["rows", "kind", "table"], sort=False)[["classes", *numbers]].mean()
    print(f"## {runs['table'].nunique()} tables, each the mean of its splits\n")
    print(tables.round(3).to_string())
    print("\n## mean over the tables\n")
    print(tables.groupby(["rows", "kind"], sort=False).mean()[numbers].round(3).to_string())


if __name__ == "__main__":
    main()
