"""Rerun of arXiv 2605.01796 (CSR, confidence-weighted metrics): tables 2, 6, 7 and 12, real data.

    python benchmarks/paper_003.py [--quick] [--data-home DIR] [--out DIR] [--trials 20]

XGBoost, tuned with Optuna, on the twelve of the paper's fifteen data sets that can be had, and how
far its confidences can be trusted, raw and calibrated. A split is 80 % to train on and 20 % to
test on; adult (complete rows) and mnist (20,000 training images) keep their official test part.
Needs `pip install ".[benchmarks]"`. Scores are kept in benchmarks/.cache: a second call is quick.
"""

from papers import COLORS, command_line, resumed, save  # isort: skip  (sets the number of threads)

import warnings
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import optuna
import pandas as pd
from joblib import Memory
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from tabular import load_table, make_encoder, split_rows
from xgboost import XGBClassifier

from skselect import PrecomputedClassifier, Predictions, SelectiveClassifier, evaluate
from skselect.metrics import csr_score, csr_test, ecd_test, t_cal_test

memory = Memory(Path(__file__).parent / ".cache", verbose=0)

SETS = [
    "adult", "bank_marketing", "breast_cancer", "credit_default", "pima_diabetes", "ilpd",
    "phishing", "naticusdroid", "accelerometer", "obesity", "wine_quality", "mnist",
]  # fmt: skip
QUICK_SETS = ["breast_cancer", "pima_diabetes", "ilpd", "obesity"]
#: Tables with duplicate rows (74 % and 47 %), and one with a leaky column.
TRAPS = ["naticusdroid", "phishing", "bank_marketing"]
MOST_TRAINING_ROWS = {"mnist": 20_000}
MOST_TUNING_ROWS = 12_500
N_FOLDS = 5
CERTAIN = 1 - 1e-7

METRICS = ["cw_accuracy", "cw_gain", "cw_auc", "ece", "top_label_brier", "smooth_ece", "ecce_mad",
           "ecce_r", "isotonic_distance", "tce", "ecd", "aurc", "augrc"]  # fmt: skip


# Models -------------------------------------------------------------------------------------------


def make_model(seed, **settings):
    return XGBClassifier(tree_method="hist", n_jobs=1, random_state=seed, **settings)


def suggested(trial):
    """Return settings to try; the paper does not print its ranges."""
    return {
        "max_depth": trial.suggest_int("max_depth", 3, 8),
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
        "subsample": trial.suggest_float("subsample", 0.5, 1.0),
        "colsample_bytree": trial.suggest_float("colsample_bytree", 0.3, 1.0),
        "min_child_weight": trial.suggest_float("min_child_weight", 1.0, 10.0, log=True),
        "reg_lambda": trial.suggest_float("reg_lambda", 0.1, 10.0, log=True),
    }


def tuned_settings(X, codes, n_trials, seed):
    """Return the settings with the least log loss on a fifth of the (at most 12,500) rows."""
    if len(codes) > MOST_TUNING_ROWS:
        X, _, codes, _ = train_test_split(
            X, codes, train_size=MOST_TUNING_ROWS, stratify=codes, random_state=seed
        )
    X_fit, X_valid, fit, valid = train_test_split(
        X, codes, test_size=0.2, stratify=codes, random_state=seed
    )

    def loss(trial):
        rounds = trial.suggest_int("n_estimators", 50, 200)
        model = make_model(seed, n_estimators=rounds, **suggested(trial)).fit(X_fit, fit)
        return log_loss(valid, model.predict_proba(X_valid), labels=model.classes_)

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(loss, n_trials=n_trials)
    return study.best_params


@memory.cache(ignore=["data_home"])
def raw_scores(dataset, calibrated, split, n_trials, data_home):
    """Return what all calibrations start from.

    The classes of the training and test rows, the folds, the probabilities of all rows (training
    rows first) by each fold's model, and those of the test rows by the model of all training rows.
    """
    table = load_table(dataset, data_home, complete=dataset == "adult", calibrated=calibrated)
    train, test = split_rows(table, split)
    train = train[: MOST_TRAINING_ROWS.get(dataset)]
    encoder = make_encoder(scale=False)
    X, X_test = encoder.fit_transform(table.X.iloc[train]), encoder.transform(table.X.iloc[test])
    codes = table.codes[train]
    settings = tuned_settings(X, codes, n_trials, split)
    everything = np.concatenate([X, X_test])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")  # wine: 4 rows
        cv = StratifiedKFold(N_FOLDS, shuffle=True, random_state=split)
        folds = list(cv.split(X, codes))
    by_fold = [
        make_model(split, **settings).fit(X[fit], codes[fit]).predict_proba(everything)
        for fit, _ in folds
    ]
    final = make_model(split, **settings).fit(X, codes).predict_proba(X_test)
    return codes, table.codes[test], folds, np.array(by_fold), final


#: "(scikit-learn)": CalibratedClassifierCV over five folds; "(one part)": the same with a fifth of
#: the training rows held out once. The others are this library's, on all out-of-fold scores.
METHODS = [
    "raw", "isotonic (scikit-learn)", "isotonic (one part)", "isotonic",
    "sigmoid (scikit-learn)", "sigmoid (one part)", "platt", "temperature", "smooth_isotonic",
]  # fmt: skip


# Calibrations -------------------------------------------------------------------------------------


class FoldScores(ClassifierMixin, BaseEstimator):
    """Serve stored scores of the model that was trained on the rows that `fit` gets.

    Its X holds row numbers. So scikit-learn cross-validates a calibration without training again.
    """

    def __init__(self, folds, scores):
        self.folds = folds
        self.scores = scores

    def fit(self, rows, _codes):
        fits = [np.array_equal(rows[:, 0], fit) for fit, _ in self.folds]
        self.fold_ = fits.index(True)
        self.classes_ = np.arange(self.scores.shape[2])
        return self

    def predict_proba(self, rows):
        return self.scores[self.fold_, rows[:, 0]]


def of_scikit_learn(method, codes, folds, by_fold):
    """Return the mean of the calibrated fold models, as CalibratedClassifierCV has it."""
    rows = np.arange(by_fold.shape[1])[:, np.newaxis]
    stored = FoldScores(folds, by_fold)
    model = CalibratedClassifierCV(stored, method=method, cv=folds, ensemble=True)
    return model.fit(rows[: len(codes)], codes).predict_proba(rows[len(codes) :])


def of_skselect(kind, codes, out_of_fold, final):
    """Return the final model's probabilities, calibrated on the out-of-fold ones."""
    stored = FrozenEstimator(PrecomputedClassifier(np.arange(final.shape[1])))
    model = SelectiveClassifier(stored, calibration=kind).fit(out_of_fold, codes)
    return model.predict_proba(final)


def calibrated(codes, folds, by_fold, final):
    """Return the probabilities of the test rows under each calibration."""
    out_of_fold = np.empty_like(by_fold[0, : len(codes)])
    for scores, (_, rows) in zip(by_fold, folds, strict=True):
        out_of_fold[rows] = scores[rows]
    return {
        "raw": final,
        "isotonic (scikit-learn)": of_scikit_learn("isotonic", codes, folds, by_fold),
        "isotonic (one part)": of_scikit_learn("isotonic", codes, folds[:1], by_fold),
        "isotonic": of_skselect("isotonic", codes, out_of_fold, final),
        "sigmoid (scikit-learn)": of_scikit_learn("sigmoid", codes, folds, by_fold),
        "sigmoid (one part)": of_scikit_learn("sigmoid", codes, folds[:1], by_fold),
        "platt": of_skselect("platt", codes, out_of_fold, final),
        "temperature": of_skselect("temperature", codes, out_of_fold, final),
        "smooth_isotonic": of_skselect("smooth_isotonic", codes, out_of_fold, final),
    }


# Judging ------------------------------------------------------------------------------------------


def measure(codes, proba):
    proba = proba.astype(np.float64)
    proba /= proba.sum(axis=1, keepdims=True)
    predictions = Predictions.from_proba(codes, proba, labels=np.arange(proba.shape[1]))
    options = {"labels": np.arange(proba.shape[1]), "random_state": 0}
    test = csr_test(codes, proba, **options)
    wrong = proba.argmax(axis=1) != codes
    certain = proba.max(axis=1) > CERTAIN
    auc_of = proba[:, 1] if proba.shape[1] == 2 else proba
    return {
        "rows": len(codes),
        "errors": int(wrong.sum()),
        "accuracy": 1 - wrong.mean(),
        "csr": test.csr,
        "sigma": test.sigma,
        "z": test.z,
        "p_risk": test.p_risk,
        "p_value": test.p_value,
        "certain": certain.mean(),
        "errors at certainty": int((wrong & certain).sum()),
        "csr, eps 1e-6": csr_score(codes, proba, eps=1e-6, labels=options["labels"]),
        "auc": roc_auc_score(codes, auc_of, multi_class="ovr", labels=options["labels"]),
        "log_loss": log_loss(codes, np.maximum(proba, 1e-15), labels=options["labels"]),
        "t_cal rejects": t_cal_test(codes, proba, **options).reject,
        "ecd_p_value": ecd_test(codes, proba, **options).p_value,
        **evaluate(predictions, METRICS),
    }


def run(dataset, reading, split, trials, data_home=None):
    codes, truth, *scores = raw_scores(dataset, reading == "calibrated", split, trials, data_home)
    found = calibrated(codes, *scores)
    return [{"method": name, **measure(truth, proba)} for name, proba in found.items()]


# Tables and picture -------------------------------------------------------------------------------


def mean_of_sets(runs, column):
    """Return the mean over the splits of each set, one column per calibration."""
    means = runs.pivot_table(index="dataset", columns="method", values=column, observed=True)
    return means.reindex(index=[s for s in SETS if s in means.index], columns=METHODS)


def risky_table(runs):
    """Return how often each calibration is overconfident, as expected numbers of sets."""
    runs = runs.assign(
        **{
            "beyond 1 sigma": runs["z"] > 1,
            "beyond 3 sigma": runs["z"] > 3,
            "exact p < 0.00135": runs["p_value"] < 0.00135,
            "exact p < 0.05": runs["p_value"] < 0.05,
            "an error at certainty": runs["errors at certainty"] > 0,
        }
    )
    names = ["beyond 1 sigma", "beyond 3 sigma", "exact p < 0.00135", "exact p < 0.05",
             "an error at certainty"]  # fmt: skip
    table = pd.DataFrame({name: mean_of_sets(runs, name).sum() for name in names})
    repeated = runs[runs["dataset"] != "mnist"]
    by_split = repeated.pivot_table(
        index="method", columns="split", values="beyond 3 sigma", aggfunc="sum", observed=True
    )
    by_split = by_split.loc[METHODS].astype(int)
    fewest, most = by_split.min(axis=1).astype(str), by_split.max(axis=1).astype(str)
    table["fewest .. most in a split, without mnist"] = fewest + " .. " + most
    return table


def summarize(runs):
    """Return a tidy table: means over the splits, medians where a mean says nothing."""
    keys = ["reading", "dataset", "method"]
    groups = runs.assign(**{"beyond 3 sigma": runs["z"] > 3}).groupby(keys, sort=False)
    medians = groups[["csr", "sigma", "z", "p_value"]].median().add_prefix("median ")
    others = runs.select_dtypes(["number", "bool"]).columns
    means = groups[[*others.drop(["split", "trials", "csr", "sigma", "z", "p_value"]),
                    "beyond 3 sigma"]].mean()  # fmt: skip
    return medians.join(means).reset_index()


def draw(runs, path):
    """Draw CSR of every run: a row per set, a mark per calibration."""
    marks = {
        "raw": "o", "isotonic (scikit-learn)": "v", "isotonic (one part)": ">", "isotonic": "^",
        "sigmoid (scikit-learn)": "s", "temperature": "P", "smooth_isotonic": "X",
    }  # fmt: skip
    colours = [COLORS[-1], *COLORS[3:6], *COLORS[:3]]
    names = [name for name in SETS if name in set(runs["dataset"])]
    figure, axes = plt.subplots(figsize=(7.2, 0.5 * len(names) + 1.5), layout="constrained")
    for place, (method, mark) in enumerate(marks.items()):
        part = runs[runs["method"] == method]
        height = part["dataset"].map(names.index) + (place - 3) * 0.11
        axes.scatter(part["csr"].clip(lower=0.1), height, marker=mark, s=14, color=colours[place],
                     label=method, linewidths=0)  # fmt: skip
    axes.axvline(1, color="0.5", linewidth=0.8, zorder=0)
    axes.set(xscale="log", xlabel="CSR on the test rows (1: honest; below 0.1 drawn at 0.1)",
             yticks=range(len(names)), yticklabels=names)  # fmt: skip
    axes.invert_yaxis()
    axes.grid(axis="x", linewidth=0.3)
    figure.legend(loc="outside upper center", ncols=4, fontsize=8, markerscale=1.6)
    save(figure, path)


def show(runs):
    runs = runs.assign(method=pd.Categorical(runs["method"], METHODS))
    for reading, part in runs.groupby("reading", sort=False):
        n_sets, n_splits = part["dataset"].nunique(), part["split"].nunique()
        print(f"\n## Reading: {reading}; {n_sets} sets, {n_splits} splits\n")
        print("Expected number of sets (mnist has one split):\n")
        print(risky_table(part).round(1).to_string())
        print("\nTables 2 and 6, median CSR:\n")
        medians = part.pivot_table(
            index="dataset", columns="method", values="csr", aggfunc="median", observed=True
        )
        print(medians.to_string(float_format="{:.3g}".format))
        for title, column in [("accuracy", "accuracy"), ("cwA", "cw_accuracy"),
                              ("gain", "cw_gain"), ("Table 7: ECE", "ece"),
                              ("Table 7: Brier", "top_label_brier"),
                              ("Table 12: AUC", "auc"), ("Table 12: cwAUC", "cw_auc"),
                              ("log loss", "log_loss"), ("AUGRC", "augrc")]:  # fmt: skip
            print(f"\n{title}, mean over splits:\n")
            print(mean_of_sets(part, column).round(4).to_string())


def main():
    parser = command_line(__doc__, "paper_003")
    parser.add_argument("--trials", type=int, default=20, help="of Optuna (default: %(default)s)")
    parser.add_argument("--splits", type=int, default=5, help="(default: %(default)s)")
    options = parser.parse_args()
    sets, n_splits = (QUICK_SETS, 2) if options.quick else (SETS, options.splits)
    keys = [
        {"dataset": name, "reading": reading, "split": split, "trials": options.trials}
        for reading, names in [("paper", sets), ("calibrated", [s for s in TRAPS if s in sets])]
        for name in names[::-1]  # the longest first
        for split in range(1 if name == "mnist" else n_splits)
    ]
    home = options.data_home and str(options.data_home)
    runs = resumed(options.out / "runs.csv", keys, partial(run, data_home=home),
                   jobs=options.jobs, afresh=options.afresh)  # fmt: skip
    summarize(runs).to_csv(options.out / "summary.csv", index=False)
    draw(runs[runs["reading"] == "paper"], options.out / "csr.png")
    show(runs)
    print(f"\nTables and picture: {options.out}")


if __name__ == "__main__":
    main()
