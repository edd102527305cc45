"""How much is answered, and how often is the target broken? skselect beside its neighbours.

    python benchmarks/comparison.py FOLDER [--draws 20] [--out runs.csv] [--draw]

FOLDER holds Parquet tables whose column `target` is the label. A classifier is trained on 2,000
rows of a table at random. All its other rows are the population, so that the true risk of each
threshold is known. From these, 500 rows choose a threshold that is to keep the target with 95 %
confidence (the same rows for all):

    skselect              `select_threshold(y, proba, objective="risk", target=target)`
    MAPIE                 MultiClassificationLTTController with its default grid and correction
    MAPIE, sequence       the same grid, the surest threshold first, `fwer_method="fixed_sequence"`
    zugzwang              `certify_threshold(confidence, wrong, risk=target)`
    by hand               the lowest threshold whose error rate on these rows is at most the target

Answered: the share of the population that is answered. Broken: the share of draws in which more of
the answers are wrong than the target allows. Time: CPU of one thread for one threshold. The figures
and the picture of docs/comparison.md are made by `--draw`. Needs `pip install ".[benchmarks]"`;
two processes take about ten minutes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
import warnings
import zlib
from importlib.metadata import version

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from calibration import MODELS, load, make_model
from joblib import Parallel, delayed
from mapie.risk_control import MultiClassificationLTTController
from mapie.risk_control.risks import BinaryRisk
from tqdm import tqdm
from zugzwang import certify_threshold

from skselect import Outcomes, Risk, select_threshold

# Fixed before any result was seen: the tables of the folder with 10,000 rows or more and few copies
# of rows, without mnist (cost), and without those on which nothing is to be deferred (mammography,
# shuttle, accelerometer).
TABLES = ["adult", "bank_marketing_full", "covertype_small", "credit_default", "letter", "magic",
          "nursery", "pendigits"]  # fmt: skip
TARGETS, DELTA = [0.05, 0.02], 0.05
N_TRAIN, N_CERTIFY = 2000, 500
NAMES = {
    "xgboost": "XGBoost",
    "random_forest": "random forest",
    "logistic": "logistic regression",
}


def skselect(proba, codes, target):
    found = select_threshold(
        codes, proba, objective="risk", target=target, delta=DELTA, on_infeasible="abstain",
        labels=np.arange(proba.shape[1]),
    )  # fmt: skip
    return found.threshold


def mapie(**options):
    def threshold(proba, codes, target):
        risk = BinaryRisk(lambda y, answer: y != answer, lambda _, answer: ~np.isnan(answer), False)
        controller = MultiClassificationLTTController(
            lambda rows: rows, [risk], [target], confidence_level=1 - DELTA,
            classes=np.arange(proba.shape[1]), **options,
        )  # fmt: skip
        best = controller.calibrate(proba, codes).best_predict_param
        return np.inf if best is None else best

    return threshold


def zugzwang(proba, codes, target):
    wrong = proba.argmax(axis=1) != codes
    try:
        return certify_threshold(proba.max(axis=1), wrong, risk=target, delta=DELTA).threshold
    except ValueError:  # where nothing can be certified
        return np.inf


def by_hand(proba, codes, target):
    outcomes = Outcomes.from_proba(codes, proba, labels=np.arange(proba.shape[1]))
    rule = Risk(target, method="empirical")
    return select_threshold(outcomes, objective=rule, on_infeasible="abstain").threshold


METHODS = {
    "skselect": skselect,
    "MAPIE": mapie(),
    "MAPIE, sequence": mapie(
        fwer_method="fixed_sequence", list_predict_params=np.linspace(0.99, 0, 100)
    ),
    "zugzwang": zugzwang,
    "by hand": by_hand,
}


def run(folder, name, kind, n_draws):
    """Return a row for each draw, target and method."""
    X, codes = load(folder, name)
    rng = np.random.default_rng([zlib.crc32(name.encode()), MODELS.index(kind)])
    order = rng.permutation(len(codes))
    train, others = order[:N_TRAIN], order[N_TRAIN:]
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about rare levels, and risks that cannot be controlled
        known = np.isin(codes[others], codes[train])
        classes, train_codes = np.unique(codes[train], return_inverse=True)
        others = others[known]
        model = make_model(kind, 0).fit(X.iloc[train], train_codes)
        proba = model.predict_proba(X.iloc[others]).astype(np.float64)
        truth = np.searchsorted(classes, codes[others])
        confidence, wrong = proba.max(axis=1), proba.argmax(axis=1) != truth
        for draw in range(n_draws):
            seen = rng.choice(len(others), N_CERTIFY, replace=False)
            for target in TARGETS:
                for method, find in METHODS.items():
                    start = time.process_time()
                    threshold = find(proba[seen], truth[seen], target)
                    seconds = time.process_time() - start
                    answered = confidence >= threshold
                    risk = wrong[answered].mean() if answered.any() else 0.0
                    rows.append((name, kind, draw, target, method, answered.mean(), risk,
                                 wrong.mean(), 1000 * seconds))  # fmt: skip
    columns = ["table", "model", "draw", "target", "method", "answered", "risk", "errors", "ms"]
    return pd.DataFrame(rows, columns=columns)


def summarise(runs):
    """Return shares by target and method, over all tables, models and draws."""
    runs = runs.assign(broken=runs["risk"] > runs["target"], certified=runs["answered"] > 0)
    by = runs.groupby(["target", "method"], sort=False)
    found = by[["answered", "broken", "certified"]].mean()
    return found.assign(ms=by["ms"].median())


def draw(runs, path):
    """Draw for each method how much it answers, and how often the target is broken."""
    table = summarise(runs).reset_index()
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
    for ax, column, title in zip(
        axes, ["answered", "broken"], ["Cases answered", "Draws in which the target is broken"],
        strict=True,
    ):  # fmt: skip
        for i, target in enumerate(TARGETS):
            part = table[table["target"] == target]
            places = np.arange(len(part)) + (i - 0.5) * 0.38
            bars = ax.barh(places, part[column], 0.36, color=["#3b6ea5", "#a9c4e0"][i],
                           label=f"at most {target:.0%} wrong")  # fmt: skip
            ax.bar_label(bars, [f"{value:.0%}" for value in part[column]], padding=3, fontsize=8)
        ax.set_yticks(np.arange(len(METHODS)), list(METHODS))
        ax.set_title(title, fontsize=10, loc="left")
        ax.xaxis.set_major_formatter("{x:.0%}")
        ax.set_xlim(0, 1)
        ax.spines[["top", "right"]].set_visible(False)
    axes[1].axvline(DELTA, color="black", lw=0.8, ls=":")
    axes[1].text(DELTA + 0.09, 0.5, "5 % of the draws may break it", fontsize=8)
    axes[0].invert_yaxis()
    axes[1].legend(frameon=False, fontsize=8, loc="center right")
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out")
    parser.add_argument("--draw", action="store_true")
    options = parser.parse_args()
    jobs = [(name, kind) for name in TABLES for kind in MODELS]
    parts = Parallel(n_jobs=options.jobs)(
        delayed(run)(options.folder, name, kind, options.draws)
        for name, kind in tqdm(jobs, smoothing=0)
    )
    runs = pd.concat(parts, ignore_index=True)
    if options.out:
        runs.to_csv(options.out, index=False)
    print("MAPIE", version("MAPIE"), "zugzwang", version("zugzwang"))
    print(summarise(runs).round(3).to_string())
    answered = runs.pivot_table("answered", ["table", "target"], "method", sort=False)
    print(answered.round(3).to_string())
    if options.draw:
        draw(runs, "docs/images/comparison.png")


if __name__ == "__main__":
    main()
