"""How much is answered, and how often is the target broken? skselect beside its neighbours.

    python benchmarks/comparison.py FOLDER [--draws 20] [--out runs.csv] [--draw]
    python benchmarks/comparison.py FOLDER --rows 300 1000 --methods skselect kunko

FOLDER holds Parquet tables whose column `target` is the label. A classifier is trained on 2,000
rows of a table at random. All its other rows are the population, so that the true risk of each
threshold is known. From these, 500 rows (or --rows) choose a threshold that is to keep the target
with 95 % confidence (the same rows for all):

    skselect              `select_threshold(y, proba, objective="risk", target=target)`
    MAPIE                 MultiClassificationLTTController with its default grid and correction
    MAPIE, sequence       the same grid, the surest threshold first, `fwer_method="fixed_sequence"`
    zugzwang              `certify_threshold(confidence, wrong, risk=target)`
    kunko                 `certify_threshold`, begun where two errors pass, as `judge-audit run`
                          does; left out unless kunko-judge-audit is installed
    by hand               the lowest threshold whose error rate on these rows is at most the target

Answered: the share of the population that is answered. Broken: the share of draws in which more of
the answers are wrong than the target allows. Time: CPU of one thread for one threshold. The figures
and the picture of docs/comparison.md are made by `--draw`. Differences to skselect are means over
the populations, with their standard error. Needs `pip install ".[benchmarks]"`; two processes take
about ten minutes, and less the second time: raw scores are kept in benchmarks/.cache.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
import warnings
import zlib
from importlib.metadata import version
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from calibration import MODELS, load, make_model
from joblib import Memory, Parallel, delayed
from mapie.risk_control import MultiClassificationLTTController
from mapie.risk_control.risks import BinaryRisk
from tqdm import tqdm
from zugzwang import certify_threshold

from skselect import Outcomes, Risk, select_threshold

try:
    from judge_audit.metrics.selective import certify_threshold as certify
except ImportError:
    certify = None

memory = Memory(Path(__file__).parent / ".cache", verbose=0)

# Fixed before any result was seen: the tables of the folder with 10,000 rows or more and few copies
# of rows, without mnist (cost), and without those on which nothing is to be deferred (mammography,
# shuttle, accelerometer).
TABLES = ["adult", "bank_marketing_full", "covertype_small", "credit_default", "letter", "magic",
          "nursery", "pendigits"]  # fmt: skip
TARGETS, DELTA = [0.05, 0.02], 0.05
N_TRAIN, N_CERTIFY = 2000, 500
#: Errors among the first rows that kunko tests.
START_ERRORS = 2
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


def kunko(proba, codes, target):
    right = proba.argmax(axis=1) == codes
    found = certify(
        proba.max(axis=1).tolist(), right.tolist(), target, delta=DELTA, start_errors=START_ERRORS
    )
    if found["threshold"] is None:
        return np.inf
    return found["threshold"]


def by_hand(proba, codes, target):
    outcomes = Outcomes.from_proba(codes, proba, labels=np.arange(proba.shape[1]))
    rule = Risk(target, method="empirical")
    return select_threshold(outcomes, objective=rule, on_infeasible="abstain").threshold


METHODS = {
    "skselect": skselect,
    "kunko": kunko,
    "MAPIE": mapie(),
    "MAPIE, sequence": mapie(
        fwer_method="fixed_sequence", list_predict_params=np.linspace(0.99, 0, 100)
    ),
    "zugzwang": zugzwang,
    "by hand": by_hand,
}
if certify is None:
    del METHODS["kunko"]


@memory.cache
def population(folder, name, kind):
    """Return probabilities and classes of all rows but the training rows."""
    X, codes = load(folder, name)
    order = generator(name, kind).permutation(len(codes))
    train, others = order[:N_TRAIN], order[N_TRAIN:]
    known = np.isin(codes[others], codes[train])
    classes, train_codes = np.unique(codes[train], return_inverse=True)
    others = others[known]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about rare levels
        model = make_model(kind, 0).fit(X.iloc[train], train_codes)
        proba = model.predict_proba(X.iloc[others]).astype(np.float64)
    return proba, np.searchsorted(classes, codes[others]), len(codes)


def generator(name, kind):
    """Return the random numbers of one table and classifier."""
    return np.random.default_rng([zlib.crc32(name.encode()), MODELS.index(kind)])


def run(folder, name, kind, n_rows, n_draws, methods):
    """Return a row for each draw, target and method."""
    proba, truth, n_all = population(folder, name, kind)
    rng = generator(name, kind)
    rng.permutation(n_all)  # drew the training rows
    confidence, wrong = proba.max(axis=1), proba.argmax(axis=1) != truth
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about risks that cannot be controlled
        for draw in range(n_draws):
            seen = rng.choice(len(truth), n_rows, replace=False)
            for target in TARGETS:
                for method in methods:
                    start = time.process_time()
                    threshold = METHODS[method](proba[seen], truth[seen], target)
                    seconds = time.process_time() - start
                    answered = confidence >= threshold
                    risk = wrong[answered].mean() if answered.any() else 0.0
                    results.append((name, kind, n_rows, draw, target, method, answered.mean(), risk,
                                    wrong.mean(), 1000 * seconds))  # fmt: skip
    columns = ["table", "model", "rows", "draw", "target", "method", "answered", "risk", "errors",
               "ms"]  # fmt: skip
    return pd.DataFrame(results, columns=columns)


def summarise(runs):
    """Return shares by number of rows, target and method, over all tables, models and draws."""
    runs = runs.assign(broken=runs["risk"] > runs["target"], certified=runs["answered"] > 0)
    by = runs.groupby(["rows", "target", "method"], sort=False)
    found = by[["answered", "broken", "certified"]].mean()
    return found.assign(ms=by["ms"].median())


def beside_skselect(runs):
    """Return how much more than skselect each method answers: mean and error over populations."""
    populations = runs.pivot_table(
        "answered", ["rows", "target", "table", "model"], "method", sort=False
    )
    more = populations.drop(columns="skselect").sub(populations["skselect"], axis=0)
    by = more.groupby(["rows", "target"], sort=False)
    return (
        pd.concat({"mean": by.mean(), "se": by.sem()}, axis=1).swaplevel(axis=1).sort_index(axis=1)
    )


def draw(runs, path):
    """Draw for each method how much it answers, and how often the target is broken."""
    table = summarise(runs[runs["rows"] == N_CERTIFY]).reset_index()
    methods = runs["method"].unique()
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
        ax.set_yticks(np.arange(len(methods)), methods)
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
    parser.add_argument("--rows", type=int, nargs="+", default=[N_CERTIFY])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out")
    parser.add_argument("--draw", action="store_true")
    options = parser.parse_args()
    jobs = [(name, kind, n) for name in TABLES for kind in MODELS for n in options.rows]
    parts = Parallel(n_jobs=options.jobs)(
        delayed(run)(options.folder, *job, options.draws, options.methods)
        for job in tqdm(jobs, smoothing=0)
    )
    runs = pd.concat(parts, ignore_index=True)
    if options.out:
        runs.to_csv(options.out, index=False)
    print("MAPIE", version("MAPIE"), "zugzwang", version("zugzwang"))
    print(summarise(runs).round(3).to_string())
    if "skselect" in options.methods:
        print(beside_skselect(runs).round(3).to_string())
    answered = runs.pivot_table("answered", ["rows", "table", "target"], "method", sort=False)
    print(answered.round(3).to_string())
    if options.draw:
        draw(runs, "docs/images/comparison.png")


if __name__ == "__main__":
    main()
