"""``skselect demo``: train, calibrate and certify a classifier on one table."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from skselect._lib.checks.options import check_abstain_label
from skselect._lib.checks.rows import check_columns, check_labels
from skselect._lib.files import import_extra, whole_file
from skselect._lib.notebook import percent, wrap
from skselect.cli.tables import TableFile, read_layout
from skselect.display.risk_coverage import RiskCoverageDisplay
from skselect.estimators.classifier import SelectiveClassifier
from skselect.estimators.tuner import ThresholdTuner
from skselect.metrics._evaluate import evaluate
from skselect.objectives import Loss, Risk
from skselect.predictions.predictions import Predictions

# Shares of the rows; the other 45 % train the classifier and its calibration.
_CERTIFY, _TEST = 0.30, 0.25
# The most levels of a category that scikit-learn's gradient boosting takes.
_MAX_LEVELS = 255
# Rows x features up to which one thread trains as fast as many.
_SMALL = 1_000_000
# What XGBoost's wheels do not bring along.
_OPENMP = "OpenMP: on a Mac brew install libomp, on Debian and Ubuntu apt install libgomp1"


def demo(given: Namespace) -> int:
    """Run the demo, print what it finds, write the results; return the exit code."""
    risk = Risk(given.target, delta=given.delta)
    risk.check(Loss())
    if given.label is not None and given.data is None:
        raise ValueError("--label goes with --data FILE; without it the demo reads digits.")
    if given.out.exists() and not given.out.is_dir():
        raise ValueError(f"--out must be a folder, but {str(given.out)!r} is a file.")
    import_extra("matplotlib", "matplotlib").use("Agg")
    X, y, what = load(given)
    booster, kind = make_booster(given.seed)
    given.out.mkdir(parents=True, exist_ok=True)
    # On a busy machine many threads may take minutes for what one thread does in seconds.
    with threadpool_limits(1 if X.size <= _SMALL else None):
        _say(1, f"{what}: {len(y)} rows, {X.shape[1]} features, {len(np.unique(y))} classes")
        X, X_test, y, y_test = _split(X, y, _TEST, given.seed)
        X_train, X_fresh, y_train, y_fresh = _split(X, y, _CERTIFY / (1 - _TEST), given.seed)

        _say(2, f"train {kind} on {len(y_train)} rows, without calibration")
        raw = SelectiveClassifier(clone(booster)).fit(X_train, y_train)
        _say(3, "train it again with out-of-fold temperature scaling")
        model = SelectiveClassifier(
            booster, calibration="temperature", cv=5, abstain_label=_find_free_label(y),
            random_state=given.seed,
        ).fit(X_train, y_train)  # fmt: skip

        _say(4, f"certify risk <= {given.target:g} on {len(y_fresh)} fresh rows")
        certified = ThresholdTuner(FrozenEstimator(model), risk, on_infeasible="abstain")
        told = _fit_and_listen(certified, X_fresh, y_fresh)
        _say(5, "explore (no guarantee): the threshold of the best CWSA+ on the same rows")
        sharpest = ThresholdTuner(FrozenEstimator(model), "cwsa_plus")
        _fit_and_listen(sharpest, X_fresh, y_fresh)

        _say(6, f"evaluate everything on {len(y_test)} test rows")
        columns = {"raw": raw, "calibrated": model, "best CWSA+": sharpest}
        table = compare(columns | {f"risk <= {given.target:g}": certified}, X_test, y_test)
        certified.policy_.to_json(given.out / "policy.json")
        with whole_file(given.out / "metrics.csv") as part:
            table.to_csv(part)
        drawn = RiskCoverageDisplay.from_estimator(
            certified, X_test, y_test, name="test rows", target=given.target
        )
        with whole_file(given.out / "risk_coverage.png") as part:
            drawn.figure_.savefig(part, dpi=120, format="png")
    print(f"\n{told or certified.certificate_}")
    print(f"\n{describe(table, given.target, len(y_test))}")
    print(f"\nWritten to {given.out}: policy.json, risk_coverage.png, metrics.csv")
    return 0


def _say(step: int, text: str) -> None:
    print(f"[{step}/6] {text}", file=sys.stderr, flush=True)


def _split(X: pd.DataFrame, y: Any, share: float, seed: int) -> Any:
    """Split at random; stratify only where a class would be lost otherwise."""
    parts = train_test_split(X, y, test_size=share, random_state=seed)
    classes, counts = np.unique(y, return_counts=True)
    if len(np.unique(parts[2])) == len(classes):
        return parts
    if counts.min() < 2:
        raise ValueError(
            f"--label: a class has a single row, such as {str(classes[counts.argmin()])!r}; leave "
            "such rows out, or name a column of classes."
        )
    return train_test_split(X, y, test_size=share, random_state=seed, stratify=y)


def _find_free_label(y: Any) -> Any:
    """Return an abstain label that is not a class: mostly "auto"."""
    with suppress(ValueError):
        return check_abstain_label("auto", y)
    return f"abstain{'_' * max(map(len, y))}" if y.dtype.kind == "U" else y.max() + 1


def _fit_and_listen(tuner: ThresholdTuner, X: pd.DataFrame, y: Any) -> str:
    """Fit a tuner, and return its warnings as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        tuner.fit(X, y)
    return "\n".join(str(w.message) for w in caught)


def compare(models: dict[str, Any], X: pd.DataFrame, y: Any) -> pd.DataFrame:
    """Return one column per model: coverage, accuracy and other metrics."""
    table = {}
    for name, model in models.items():
        rows = Predictions.from_proba(y, model.predict_proba(X), labels=model.classes_)
        right = rows.y_pred == rows.y_true
        accepted = np.asarray(model.policy_.decide_arrays(model.raw_scores(X))["accepted"])
        metrics: dict[str, Any] = {"augrc": {}, "csr": {}, "ece": {}}
        if accepted.any():
            # CWSA+ needs a threshold; without one take 0.5, as the scorers do.
            threshold = model.policy_.threshold if model.abstains else 0.5
            metrics["cwsa_plus"] = {"threshold": threshold}
        table[name] = {
            "coverage": accepted.mean(),
            "accuracy of its answers": right[accepted].mean() if accepted.any() else np.nan,
            "accuracy if it always answered": right.mean(),
        } | dict(evaluate(rows, metrics))
    return pd.DataFrame(table)


def describe(table: pd.DataFrame, target: float, n: int) -> str:
    """Say what the table means, in words and per cents."""
    names = {
        "calibrated": "always answering",
        f"risk <= {target:g}": f"target: at most {percent(target)} wrong",
        "best CWSA+": "best CWSA+ (exploration, no guarantee)",
    }
    coverage, accuracy = (table.loc[x, list(names)] for x in table.index[:2])
    columns = ["answers on its own", "of these wrong", "deferred"]
    shown = pd.DataFrame(dict(zip(columns, [coverage, 1 - accuracy, 1 - coverage], strict=True)))
    shown = shown.rename(names).map(_share)
    (_, wrong, _), (answered, of_these, deferred), _ = shown.itertuples(index=False, name=None)
    also = "" if of_these == "-" else f" ({of_these} of these answers are wrong)"
    words = (
        f"Always answering, the classifier is wrong in {wrong} of {n} test rows, which no step "
        f"above has seen. With the threshold for the target it answers {answered} of them on its "
        f"own{also} and leaves {deferred} to a person."
    )
    return f"{wrap(words)}\n\n{shown.to_string()}"


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.1f} %"


# Data and model ------------------------------------------------------------------------------


def load(given: Namespace) -> tuple[pd.DataFrame, Any, str]:
    """Return features, labels and a name for the table."""
    if given.data is None:
        digits = load_digits(as_frame=True)
        return digits.data, digits.target.to_numpy(), "handwritten digits"
    frame = TableFile.open(given.data, read_layout(given), "--data").typed()
    if given.label is None:
        raise ValueError(f"--label must name the column to predict: {list(frame.columns)[:20]}.")
    check_columns([given.label], list(frame.columns), given.data.name)
    unknown = int(frame[given.label].isna().sum())
    if unknown:
        print(f"{unknown} rows without a {given.label!r} are left out.")
        frame = frame.dropna(subset=given.label)
    y = check_labels(frame[given.label], "--label")
    if len(np.unique(y)) < 2:
        raise ValueError(f"--label: column {given.label!r} has one class only.")
    if frame.shape[1] < 2:
        raise ValueError(f"{given.data.name} has no columns besides the label.")
    # Columns are named by numbers: XGBoost refuses names such as "Glucose [mg/dL]".
    features = [_prepare(frame[name]) for name in frame if name != given.label]
    return pd.concat(features, axis=1, keys=map(str, range(len(features)))), y, given.data.name


def _prepare(column: pd.Series) -> pd.Series:
    """Return dates and numbers as floats, anything else as categories of its text."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return column.astype("int64").astype("float64").where(column.notna())
    if pd.api.types.is_numeric_dtype(column):  # or booleans
        numbers = column.astype("float64")
        return numbers.where(numbers.abs() <= np.finfo(np.float32).max)  # XGBoost uses float32
    values = column.astype(str).where(column.notna()).astype("category")
    fits = 0 < len(values.cat.categories) <= _MAX_LEVELS
    return values if fits else values.cat.codes.astype("float64")


def make_booster(seed: int) -> tuple[Any, str]:
    """Return XGBoost if it is installed and can be loaded, else scikit-learn's gradient boosting.

    XGBoost cannot be loaded without OpenMP, which is its own class of ValueError.
    """
    try:
        from xgboost import XGBClassifier  # noqa: PLC0415 - an extra
    except (ImportError, ValueError) as error:
        why = "" if isinstance(error, ImportError) else f" (XGBoost needs {_OPENMP})"
        booster = HistGradientBoostingClassifier(max_iter=150, random_state=seed)
        return booster, f"HistGradientBoosting{why}"
    booster = XGBClassifier(
        n_estimators=300, max_depth=8, learning_rate=0.05, subsample=0.8, colsample_bytree=0.6,
        tree_method="hist", enable_categorical=True, random_state=seed,
    )  # fmt: skip
    return booster, "XGBoost"
