"""The set-up that arXiv 2605.01796 prints, and its tables 6 and 7 beside what comes out.

    python benchmarks/paper_003_printed.py [--quick] [--sets NAME ...] [--trials 60] [--splits 5]

As printed: 60 % of the rows to train on, 20 % to fit the calibrator, 20 % to test on (an official
test part stays, and the other rows are split 75 to 25); XGBoost, tuned by Optuna in 60 trials of
five stratified folds, at most 2000 rounds, stopped after 30 without gain. The answer is the raw
model's: the printed accuracy is the same for all calibrations, so only the confidence changes.
Not printed, and chosen here: the ranges (those of paper_003.py), what a trial minimises (log loss),
the rounds of the final model (the mean of the folds' best), the seeds (0, 1, ...).
The printed numbers are in paper_003.csv. Needs `pip install ".[benchmarks]"`.
"""

from papers import command_line, resumed  # isort: skip  (sets the number of threads)

from functools import partial
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
from paper_003 import CERTAIN, N_FOLDS, SETS, make_model, of_skselect, suggested
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, train_test_split
from tabular import load_table, make_encoder, split_rows

from skselect import Outcomes, PrecomputedClassifier, evaluate
from skselect.bounds._csr import run_csr_test
from skselect.metrics._calibration_tests import run_ecd_test, run_t_cal_test

#: These take a few CPU minutes; tables with many classes or rows take many minutes per split.
SMALL_SETS = ["breast_cancer", "pima_diabetes", "ilpd"]
MOST_ROUNDS, PATIENCE = 2000, 30
#: By the names of paper_003.csv.
METRICS = {
    "cw_accuracy": {}, "cw_gain": {}, "ece": {}, "top_label_brier": {}, "tce": {}, "ecd": {},
    "isotonic_distance": {}, "cwsa": {"threshold": 0.5}, "cwsa_plus": {"threshold": 0.5},
}  # fmt: skip


# Models -------------------------------------------------------------------------------------------


def tuned_settings(X, codes, n_trials, seed):
    """Return the settings with the least mean log loss over the folds, and their best round.

    Without trials: XGBoost's defaults.
    """
    if n_trials == 0:
        return {}
    cv = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    folds = list(cv.split(X, codes))

    def loss(trial):
        settings = suggested(trial)
        losses, rounds = [], []
        for fit, valid in folds:
            model = make_model(
                seed, n_estimators=MOST_ROUNDS, early_stopping_rounds=PATIENCE, **settings
            )
            model.fit(X[fit], codes[fit], eval_set=[(X[valid], codes[valid])], verbose=False)
            losses.append(model.best_score)
            rounds.append(model.best_iteration + 1)
        trial.set_user_attr("n_estimators", round(np.mean(rounds)))
        return np.mean(losses)

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(loss, n_trials=n_trials)
    return study.best_params | study.best_trial.user_attrs


def calibrated(codes, scores, fresh):
    """Return the probabilities of fresh rows, calibrated on the scores of the validation part."""
    stored = FrozenEstimator(PrecomputedClassifier(np.arange(scores.shape[1])))
    of_scikit_learn = {
        name: CalibratedClassifierCV(stored, method=kind).fit(scores, codes).predict_proba(fresh)
        for name, kind in [("isotonic", "isotonic"), ("platt", "sigmoid")]
    }
    others = {
        f"{kind} (skselect)": of_skselect(kind, codes, scores, fresh)
        for kind in ["platt", "temperature", "smooth_isotonic"]
    }
    return {"raw": fresh, **of_scikit_learn, **others}


# Judging ------------------------------------------------------------------------------------------


def measure(codes, answers, proba):
    """Return the metrics of the answers, with the probability that `proba` gives to each."""
    confidence = proba[np.arange(len(codes)), answers] / proba.sum(axis=1)
    outcomes = Outcomes(answers != codes, confidence)
    test = run_csr_test(outcomes, random_state=0)
    certain = confidence > CERTAIN
    return {
        "rows": len(codes),
        "accuracy": 1 - outcomes.loss.mean(),
        "csr": test.csr,
        "sigma": test.sigma,
        "p_risk": test.p_risk,
        "p_value": test.p_value,
        "errors at certainty": int((outcomes.loss[certain] > 0).sum()),
        "answers at certainty": int(certain.sum()),
        "ecd_verdict": run_ecd_test(outcomes, random_state=0).decision,
        "t_cal_rejects": int(run_t_cal_test(outcomes).reject),
        **evaluate(outcomes, METRICS),
    }


def run(dataset, split, trials, data_home=None):
    table = load_table(dataset, data_home, complete=dataset == "adult")
    rest, test = split_rows(table, split)
    train, valid = train_test_split(
        rest, test_size=0.25, stratify=table.codes[rest], random_state=split
    )
    encoder = make_encoder(scale=False).fit(table.X.iloc[train])
    X, X_valid, X_test = (encoder.transform(table.X.iloc[part]) for part in (train, valid, test))
    settings = tuned_settings(X, table.codes[train], trials, split)
    model = make_model(split, **settings).fit(X, table.codes[train])
    scores, fresh = (model.predict_proba(part).astype(np.float64) for part in (X_valid, X_test))
    answers = fresh.argmax(axis=1)
    found = calibrated(table.codes[valid], scores, fresh)
    return [
        {"calibration": name, **measure(table.codes[test], answers, proba)}
        for name, proba in found.items()
    ]


# Tables -------------------------------------------------------------------------------------------


def printed():
    """Return tables 6, 7 and 12 of the paper by our names, shares instead of percent."""
    table = pd.read_csv(Path(__file__).with_name("paper_003.csv"))
    percent = [name for name in table if name.endswith("_percent")]
    shares = (table[percent] / 100).rename(columns=lambda name: name.removesuffix("_percent"))
    table = table.drop(columns=percent).join(shares)
    # The paper prints the share of rows, this library percent.
    return table.assign(tce=100 * table["tce"]).set_index(["dataset", "calibration"])


def beside(runs):
    """Set each printed number beside the least, median and largest of the splits."""
    keys, names = ["dataset", "calibration"], ["accuracy", "csr", "sigma", "p_risk", *METRICS]
    long = runs.melt(id_vars=keys, value_vars=names, var_name="metric")
    ours = long.groupby([*keys, "metric"], sort=False)["value"].agg(["min", "median", "max"])
    known = printed()[names].melt(ignore_index=False, var_name="metric", value_name="printed")
    return ours.join(known.set_index("metric", append=True)).reset_index()


def verdicts(runs):
    """Return in how many cells a split has the printed verdicts, and another of our splits ours.

    wine_quality is printed without calibration, so only its raw row counts.
    """
    cells = runs[(runs["dataset"] != "wine_quality") | (runs["calibration"] == "raw")]
    rows = []
    for name in ["ecd_verdict", "t_cal_rejects"]:
        ours = cells.pivot_table(index=["dataset", "calibration"], columns="split", values=name)
        both = ours.join(printed()[name].rename("printed"), how="inner")
        alike = pd.DataFrame({a: {b: (both[a] == both[b]).sum() for b in both} for a in both})
        among = alike.to_numpy()[np.triu_indices(len(alike) - 1, 1)]
        agreeing = alike.loc[ours.columns, "printed"]
        rows.append({
            "test": name, "cells": len(both), "as printed: least": agreeing.min(),
            "mean": agreeing.mean(), "most": agreeing.max(),
            "two of our splits alike, mean": pd.Series(among).mean(),
        })  # fmt: skip
    return pd.DataFrame(rows)


def main():
    parser = command_line(__doc__, "paper_003_printed")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SMALL_SETS, metavar="NAME",
                        help="(default: the three smallest)")  # fmt: skip
    parser.add_argument("--trials", type=int, default=60,
                        help="of Optuna; 0: not tuned (default: %(default)s)")  # fmt: skip
    parser.add_argument("--splits", type=int, default=5, help="(default: %(default)s)")
    options = parser.parse_args()
    n_splits, trials = (1, 2) if options.quick else (options.splits, options.trials)
    keys = [
        {"dataset": name, "split": split, "trials": trials}
        for name in options.sets
        for split in range(n_splits)
    ]
    home = options.data_home and str(options.data_home)
    runs = resumed(options.out / "runs.csv", keys, partial(run, data_home=home),
                   jobs=options.jobs, afresh=options.afresh)  # fmt: skip
    table = beside(runs)
    table.to_csv(options.out / "beside.csv", index=False)
    counts = ["errors at certainty", "answers at certainty"]
    print(runs.groupby(["dataset", "calibration"], sort=False)[counts].agg(list).to_string())
    print(table.dropna().to_string(index=False, float_format="{:.4g}".format))
    print(verdicts(runs).to_string(index=False))


if __name__ == "__main__":
    main()
