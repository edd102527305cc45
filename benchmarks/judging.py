"""Labels judged from the surest case down, against labels of random cases, on real tables.

    python benchmarks/judging.py [--pools 20] [--draw] [TABLE ...]

A classifier is trained on 2,000 rows; pools of 1,600 unlabelled cases are drawn from the others.
The target is half the error rate. In each pool, the cases are judged from the surest down, 50 at a
time (`unjudged="wrong"`), or as many random ones are judged and the others left out. Columns:

    coverage        what all 1,600 labels certify (the same in both ways), a mean over the pools
    labels          judged from the top until that coverage is certified
    risk above      judged from the top until these are wrong more often than the target; `lost`:
                    the coverage that stopping there costs
    no help         judged from the top until no further label can raise the coverage
    400 planned     coverage of 400 labels from the top of a pool of the size that `pool_size` names
    400 random      coverage of 400 random labels
    800 ...

`--draw` writes the picture of docs/howto/judging.md, a mean over the tables.
"""

import argparse
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict, train_test_split
from tables import load_dataset

from skselect import Outcomes, Predictions, Risk, select_threshold
from skselect.thresholds import pool_size

TABLES = ("adult", "bank_marketing_full", "covertype_small", "letter", "magic", "naticusdroid",
          "phoneme", "spambase")  # fmt: skip
N_TRAIN, N_POOL, STEP = 2000, 1600, 50
GRID = np.arange(0, N_POOL + 1, STEP)


def score(name):
    """Return confidence and errors of a classifier on new rows, and by other models in training."""
    bunch = load_dataset(name)
    X = bunch.data.drop(columns=bunch.leaky_features)
    for column in X.select_dtypes(exclude="number"):
        X[column] = X[column].astype("category")
    X, X_new, y, y_new = train_test_split(X, bunch.target, train_size=N_TRAIN, random_state=0)
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    unseen = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    proba, classes = model.fit(X, y).predict_proba(X_new), model.classes_
    return [
        (said.max(axis=1), classes[said.argmax(axis=1)] != truth.to_numpy())
        for said, truth in ((proba, y_new), (unseen, y))
    ]


def certify(shown, sure, target, unjudged):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first looks accept nothing
        return select_threshold(
            Predictions.from_verdicts(shown, sure, unjudged=unjudged),
            objective="risk", target=target, on_infeasible="abstain",
        )  # fmt: skip


def judge_planned(sure, wrong, target, expected, n, rng):
    """Return the coverage of n labels from the top of a pool of the planned size."""
    rows = rng.choice(len(sure), min(pool_size(n, expected), len(sure)), replace=False)
    rows = rows[np.argsort(-sure[rows], kind="stable")]
    shown = np.where(wrong[rows], "wrong", "right").astype(object)
    shown[n:] = None
    shuffled = rng.permutation(len(rows))
    return certify(shown[shuffled], sure[rows][shuffled], target, "wrong").coverage


def measure(sure, wrong, target, expected, seed):
    """Return the coverages after each step, in both ways, and when no label helps any more."""
    rng = np.random.default_rng(seed)
    planned = [judge_planned(sure, wrong, target, expected, n, rng) for n in GRID[1:]]
    rows = rng.choice(len(sure), N_POOL, replace=False)
    sure, verdict = sure[rows], np.where(wrong[rows], "wrong", "right").astype(object)
    n_useful, covered = N_POOL, {"wrong": [], "drop": []}
    orders = {"wrong": np.argsort(-sure, kind="stable"), "drop": rng.permutation(N_POOL)}
    for unjudged, order in orders.items():
        for n in GRID:
            shown = np.full(N_POOL, None)
            shown[order[:n]] = verdict[order[:n]]
            if unjudged == "drop" and n == 0:
                covered["drop"].append(0.0)
                continue
            found = certify(shown, sure, target, unjudged)
            covered[unjudged].append(found.coverage)
            if unjudged == "wrong" and len(found.waiting) == 0:
                n_useful = min(n_useful, n)
    top, random = (np.array(one) for one in covered.values())
    risk = np.cumsum(wrong[rows][orders["wrong"]]) / np.arange(1, N_POOL + 1)
    above = GRID[1:][risk[GRID[1:] - 1] > target]
    stop = int(above[0]) if len(above) else N_POOL
    return {
        "top": top, "random": random, "planned": np.array([0.0, *planned]),
        "labels": GRID[np.argmax(top >= top[-1])], "risk above": stop,
        "lost": top[-1] - top[stop // STEP], "no help": n_useful,
    }  # fmt: skip


def run(name, n_pools):
    (sure, wrong), (before, errors) = score(name)
    target = wrong.mean() / 2
    plain = Risk(target, method="empirical", min_coverage=0.01)
    expected = select_threshold(Outcomes(errors, before), objective=plain).coverage
    return target, [measure(sure, wrong, target, expected, seed) for seed in range(n_pools)]


def draw(found):
    """Draw coverage against labels, a mean over the tables."""
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for way, label, style in (
        ("planned", "from the surest down, pool of the planned size", "-"),
        ("random", "at random", "--"),
        ("top", "from the surest down, pool of 1,600", ":"),
    ):
        mean = np.mean([one[way] for _, pools in found.values() for one in pools], axis=0)
        ax.plot(GRID, 100 * mean, style, label=label)
    ax.set(xlabel="Labels", ylabel="Certified coverage, %", xlim=(0, N_POOL), ylim=(0, None))
    ax.legend(frameon=False, title="Judged")
    figure.savefig("docs/images/judging.png", dpi=100)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*", default=TABLES)
    parser.add_argument("--pools", type=int, default=20)
    parser.add_argument("--draw", action="store_true")
    given = parser.parse_args()
    results = Parallel(n_jobs=-1)(delayed(run)(name, given.pools) for name in given.tables)
    found = dict(zip(given.tables, results, strict=True))
    cells = [
        {
            "table": name, "target": target, "coverage": np.mean([one["top"][-1] for one in pools]),
            **{key: np.mean([one[key] for one in pools]) for key in
               ("labels", "risk above", "lost", "no help")},
            **{f"{n} {way}": np.mean([one[way][n // STEP] for one in pools])
               for n in (400, 800) for way in ("planned", "random")},
        }
        for name, (target, pools) in found.items()
    ]  # fmt: skip
    table = pd.DataFrame(cells).set_index("table")
    table.loc["mean"] = table.mean()
    print(table.round(3).to_string())
    if given.draw:
        draw(found)
