"""After which calibration can a threshold be trusted? Real tables, three models, few rows.

    python benchmarks/calibration.py FOLDER [--splits 5] [--first-split 0] [--out runs.csv]

FOLDER holds Parquet tables whose column `target` is the label. Each table is split at random into
60 % to train on (10,000 rows at most), 20 % to calibrate on (the first 100, 300 and 1000 of them)
and 20 % to test on; tables too small for a number of rows are left out there. All calibrations
see the same rows. Needs `pip install ".[benchmarks]"`. Two processes take about ten minutes, the
second time two: raw scores are kept in benchmarks/.cache.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Memory, Parallel, delayed
from scipy import stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tqdm import tqdm
from xgboost import XGBClassifier

from skselect import PrecomputedClassifier, Predictions, evaluate
from skselect.calibration._calibrators import CALIBRATORS
from skselect.calibration._choice import RawRows, fit_calibration

memory = Memory(Path(__file__).parent / ".cache", verbose=0)

# Chosen before any result was seen: every table of the folder with 500 rows or more, without
# mnist (cost), abalone (28 ages: a regression) and bank_marketing_full (bank_marketing again).
TABLES = [
    "accelerometer", "adult", "balance_scale", "bank_marketing", "banknote", "breast_cancer",
    "breast_w", "car", "covertype_small", "credit_approval", "credit_default", "german_credit",
    "ilpd", "kr_vs_kp", "letter", "magic", "mammography", "mushroom", "naticusdroid", "nursery",
    "obesity", "optdigits", "pendigits", "phishing", "phoneme", "pima_diabetes", "segment",
    "shuttle", "sick", "soybean", "spambase", "tic_tac_toe", "vehicle", "vowel", "wine_quality",
    "yeast",
]  # fmt: skip
MODELS = ["xgboost", "random_forest", "logistic"]
ROWS = [100, 300, 1000]
MOST_TRAINING_ROWS = 10_000
LEAST_ROWS_OF_A_CLASS = 20
MOST_LEVELS = 100


def make_model(kind, seed):
    if kind == "xgboost":
        classifier = XGBClassifier(n_estimators=200, max_depth=5, learning_rate=0.1,
                                   tree_method="hist", n_jobs=1, random_state=seed)  # fmt: skip
    elif kind == "random_forest":
        classifier = RandomForestClassifier(n_estimators=200, random_state=seed)
    else:
        classifier = LogisticRegression(max_iter=2000)
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    names = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (names, make_column_selector(dtype_include=["category", "object", "string", "bool"])),
        (numbers, make_column_selector(dtype_include="number")),
    )
    return make_pipeline(columns, classifier)


def load(folder, name):
    table = pd.read_parquet(Path(folder) / f"{name}.parquet")
    counts = table["target"].value_counts()
    table = table[table["target"].isin(counts.index[counts >= LEAST_ROWS_OF_A_CLASS])]
    codes = np.unique(table["target"].astype(str), return_inverse=True)[1]
    features = table.drop(columns="target")
    names = features.select_dtypes(["category", "object", "string"])
    identifiers = [name for name in names if names[name].nunique() > MOST_LEVELS]
    return features.drop(columns=identifiers), codes


@memory.cache
def raw_scores(folder, name, kind, seed):
    """Return probabilities and codes of the rows to calibrate and to test on."""
    X, codes = load(folder, name)
    order = np.random.default_rng([seed, 20261121]).permutation(len(codes))
    n_fifth = len(codes) // 5
    test, calibrate, train = np.split(order, [n_fifth, 2 * n_fifth])
    train = train[:MOST_TRAINING_ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about empty columns, and levels that training lacks
        model = make_model(kind, seed).fit(X.iloc[train], codes[train])
        parts = [(model.predict_proba(X.iloc[rows]), codes[rows]) for rows in (calibrate, test)]
    return [(p.astype(np.float64), c) for p, c in parts]


# Calibrations -----------------------------------------------------------------------------------


def raw(_scores, _codes, new):
    return new, new.max(axis=1)


def calibrated(kind, scope):
    def calibrate(scores, codes, new):
        fitted = fit_calibration(
            kind, scope, RawRows("predict_proba", scores, codes, scores.shape[1])
        )
        proba = fitted.predict_proba(new)
        return proba, fitted.calibrate_confidence(proba.max(axis=1))

    return calibrate


def sigmoid_of_scikit_learn(scores, codes, new):
    n_classes = scores.shape[1]
    if len(np.unique(codes)) < n_classes:  # needs rows of every class
        return raw(scores, codes, new)
    served = FrozenEstimator(PrecomputedClassifier(np.arange(n_classes)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folds, which are not used here
        fitted = CalibratedClassifierCV(served, method="sigmoid").fit(scores, codes)
    proba = fitted.predict_proba(new)
    return proba, proba.max(axis=1)


METHODS = {
    "raw": raw,
    **{kind: calibrated(kind, "probabilities") for kind in CALIBRATORS},
    "sigmoid (scikit-learn)": sigmoid_of_scikit_learn,
    **{f"{kind}, confidence": calibrated(kind, "confidence") for kind in CALIBRATORS},
}


# Testing ------------------------------------------------------------------------------------------


def measure(proba, confidence, codes):
    """Return the metrics of one run. Log loss and Brier score are those of "is it right?"."""
    right = proba.argmax(axis=1) == codes
    chance = np.where(right, confidence, 1 - confidence)
    predictions = Predictions.from_labels(codes, proba.argmax(axis=1), confidence)
    values = evaluate(predictions, ["csr", "p_risk", "ece", "smooth_ece", "aurc", "cw_accuracy"])
    own = proba[np.arange(len(codes)), codes]
    return {
        **values,
        "beyond 3 sigma": values["p_risk"] > stats.norm.cdf(3),
        "log loss": -np.log(np.maximum(own, 1e-15)).mean(),
        "log loss of being right": -np.log(np.maximum(chance, 1e-15)).mean(),
        "Brier of being right": np.mean((1 - chance) ** 2),
        "accuracy": right.mean(),
        "certain": np.mean(confidence >= 1 - 1e-9),
        "rows judged": len(codes),
    }


def do_runs(folder, name, model, split):
    (scores, codes), (new, truth) = raw_scores(folder, name, model, split)
    found = []
    for n in ROWS:
        if len(codes) < n:
            continue
        for method, calibrate in METHODS.items():
            about = {"table": name, "model": model, "split": split, "rows": n, "method": method}
            proba, confidence = calibrate(scores[:n], codes[:n], new)
            found.append(about | measure(proba, confidence, truth))
    return found


def summarize(runs):
    """Return a row per method: runs beyond 3 sigma, and means over tables with 95 % intervals."""
    columns = {}
    beyond = runs.groupby("method")["beyond 3 sigma"]
    columns["beyond 3 sigma"] = (
        beyond.sum().astype(str) + " (" + (100 * beyond.mean()).round(1).astype(str) + " %)"
    )
    columns["median CSR"] = runs.groupby("method")["csr"].median().map("{:.2g}".format)
    columns["certain"] = (100 * runs.groupby("method")["certain"].mean()).map("{:.0f} %".format)
    for metric in ["log loss", "log loss of being right", "aurc", "ece"]:
        means = runs.pivot_table(index="table", columns="method", values=metric)
        gap = means.sub(means["raw"], axis=0)
        half = stats.t.ppf(0.975, len(gap) - 1) * gap.sem()
        columns[metric] = means.mean().map("{:.4f}".format)
        columns[f"{metric} - raw"] = (
            gap.mean().map("{:+.4f}".format) + " +- " + half.map("{:.4f}".format)
        )
    return pd.DataFrame(columns).loc[list(METHODS)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", default=None, help="CSV file for the single runs")
    options = parser.parse_args()
    jobs = [
        delayed(do_runs)(options.folder, name, model, split)
        for name in options.tables
        for model in MODELS
        for split in range(options.first_split, options.first_split + options.splits)
    ]
    done = Parallel(n_jobs=options.jobs, return_as="generator")(jobs)
    runs = pd.DataFrame([run for part in tqdm(done, total=len(jobs)) for run in part])
    if options.out:
        runs.to_csv(options.out, index=False)
    for n, part in runs.groupby("rows"):
        n_runs = len(part[["table", "model", "split"]].drop_duplicates())
        print(f"\n## {n} calibration rows: {part['table'].nunique()} tables, {n_runs} runs\n")
        print(summarize(part).to_string())


if __name__ == "__main__":
    main()
