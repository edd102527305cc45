"""Which calibration is safe to put a threshold on? Real tables, three models, few rows.

    python benchmarks/calibration.py FOLDER [--splits 5] [--only adult magic] [--out FILE.csv]

FOLDER holds Parquet tables whose column `target` is the label. Each table is split at random into
60 % to train on, 20 % to calibrate on (the first 100, 300 and 1000 of them) and 20 % to judge on;
tables too small for a number of rows are left out there. Needs `pip install ".[benchmarks]"`; two
processes take about half an hour the first time, raw scores are kept in benchmarks/.cache.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Memory, Parallel, delayed
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tqdm import tqdm
from xgboost import XGBClassifier

memory = Memory(Path(__file__).parent / ".cache", verbose=0)

# Frozen before any result was seen: every table of the folder with 500 rows or more, without
# mnist (cost), abalone (28 ages: a regression) and bank_marketing_full (bank_marketing again).
TABLES = """accelerometer adult balance_scale bank_marketing banknote breast_cancer breast_w car
covertype_small credit_approval credit_default german_credit ilpd kr_vs_kp letter magic mammography
mushroom naticusdroid nursery obesity optdigits pendigits phishing phoneme pima_diabetes segment
shuttle sick soybean spambase tic_tac_toe vehicle vowel wine_quality yeast""".split()
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
    """Return probabilities and codes of the rows to calibrate and to judge on."""
    X, codes = load(folder, name)
    order = np.random.default_rng([seed, 20261121]).permutation(len(codes))
    n_fifth = len(codes) // 5
    judge, calibrate, train = np.split(order, [n_fifth, 2 * n_fifth])
    train = train[:MOST_TRAINING_ROWS]
    model = make_model(kind, seed).fit(X.iloc[train], codes[train])
    parts = [(model.predict_proba(X.iloc[rows]), codes[rows]) for rows in (calibrate, judge)]
    return [(p.astype(np.float64), c) for p, c in parts]
