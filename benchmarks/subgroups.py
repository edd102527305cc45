"""Who waits? Risk gap and coverage gap, with one threshold for all and with one for each subgroup.

    python benchmarks/subgroups.py FOLDER [--splits 5]

FOLDER holds the tables of `tables`. Each split trains XGBoost, calibrated by temperature, on 45 %
of a table, certifies a risk on 30 % and measures on 25 %; all splits are at random. Tables,
attributes and targets were fixed beforehand. A subgroup without a certificate is deferred; it has
no risk. Needs `pip install ".[benchmarks]"`. One process takes six minutes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import warnings

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from tables import load_dataset
from tqdm import tqdm

from skselect import SelectiveClassifier, ThresholdTuner
from skselect.cli.demo import make_booster
from skselect.inference import metrics_by_group

#: Attributes of each table, and the risk that is allowed.
CASES = {
    "adult": (["sex", "race", "marital-status"], 0.05),
    "bank_marketing": (["marital", "education"], 0.05),
    "credit_default": (["SEX", "EDUCATION", "MARRIAGE"], 0.15),
}
GAPS = ["risk_gap", "coverage_gap"]


def measure(name, folder, seed):
    """Yield both gaps of each attribute, with one threshold and with one each."""
    attributes, target = CASES[name]
    X, y = load_dataset(name, data_home=folder, return_X_y=True, download_if_missing=False)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    X, X_fresh, y, y_fresh = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
    model = SelectiveClassifier(make_booster(seed)[0], calibration="temperature").fit(X, y)
    proba = model.predict_proba(X_test)
    for attribute in attributes:
        for thresholds, by in {"one": None, "each": attribute}.items():
            tuner = ThresholdTuner(
                FrozenEstimator(model), "risk", target=target, group_by=by, on_infeasible="abstain"
            )
            accepted = tuner.fit(X_fresh, y_fresh).decide(X_test)["accepted"].to_numpy()
            table = metrics_by_group(
                y_test, proba, X_test[attribute], GAPS, confidence=accepted, labels=model.classes_
            )
            run = {"table": name, "attribute": attribute, "thresholds": thresholds}
            for row in table.itertuples():
                run |= {row.metric: row.value, f"{row.metric} low": row.low}
                run |= {f"{row.metric} high": row.high}
            yield run | {"coverage": np.mean(accepted)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--splits", type=int, default=5)
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    cases = [(name, seed) for name in CASES for seed in range(given.splits)]
    runs = pd.DataFrame(
        [row for name, seed in tqdm(cases) for row in measure(name, given.folder, seed)]
    )
    keys = ["table", "attribute", "thresholds"]
    print((100 * runs.groupby(keys, sort=False).mean()).round(1).to_string())


if __name__ == "__main__":
    main()
