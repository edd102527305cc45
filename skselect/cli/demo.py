"""``skselect demo``: train, calibrate and certify a classifier on one table."""

from __future__ import annotations

import difflib
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from skselect._lib.checks.options import (
    check_abstain_label,
    check_delta,
    check_number,
    check_risk_limit,
)
from skselect._lib.checks.rows import check_labels
from skselect._lib.files import whole_file
from skselect._lib.notebook import percent, wrap
from skselect.cli.commands import majority_class_suffices
from skselect.cli.tables import TableFile, read_layout
from skselect.display.risk_coverage import RiskCoverageDisplay
from skselect.estimators.classifier import SelectiveClassifier
from skselect.estimators.tuner import ThresholdTuner
from skselect.metrics._evaluate import evaluate
from skselect.objectives import Risk
from skselect.predictions.predictions import Predictions

# Shares of the rows; the other 45 % train the classifier and its calibration.
_CERTIFY, _TEST = 0.30, 0.25
# The most levels of a category that scikit-learn's gradient boosting takes.
_MAX_LEVELS = 255
# Rows x features up to which one thread trains as fast as many.
_SMALL = 1_000_000
# Folds of the out-of-fold calibration.
_FOLDS = 5


def demo(given: Namespace) -> int:
    """Run the demo, print what it finds, write the results; return the exit code."""
    _check_options(given)
    X, y, what = load(given)
    given.out.mkdir(parents=True, exist_ok=True)
    # On a busy machine many threads may take minutes for what one thread does in seconds.
    with threadpool_limits(1 if X.size <= _SMALL else None):
        return _run(given, X, y, what)


def _check_options(given: Namespace) -> None:
    """Check the options before anything is trained."""
    target = check_number("--target", given.target, 0.0, 1.0, closed="neither")
    check_risk_limit(target, "--target")
    check_delta(given.delta, "--delta")
    if given.label is not None and given.data is None:
        raise ValueError("--label goes with --data FILE; without it the demo reads digits.")
    if given.out.exists() and not given.out.is_dir():
        raise ValueError(f"--out must be a folder, but {str(given.out)!r} is a file.")
    try:
        import matplotlib as mpl  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise ValueError(
            "The demo draws a plot, which needs matplotlib; install it in the folder of skselect "
            "with pip install '.[demo]'."
        ) from error


def _run(given: Namespace, X: pd.DataFrame, y: Any, what: str) -> int:
    """Split, train, certify, compare and save."""
    step = count(1)
    _say(step, f"{what}: {len(y)} rows, {X.shape[1]} features, {len(np.unique(y))} classes")
    trivial = majority_class_suffices(*np.unique(y, return_counts=True), given.target)
    X, X_test, y, y_test = _split(X, y, _TEST, given.seed)
    X_train, X_fresh, y_train, y_fresh = _split(X, y, _CERTIFY / (1 - _TEST), given.seed)

    booster, kind = make_booster(given.seed)
    if X.size <= _SMALL and "n_jobs" in booster.get_params():
        booster.set_params(n_jobs=1)
    _say(step, f"train {kind} on {len(y_train)} rows, without calibration")
    raw = SelectiveClassifier(clone(booster)).fit(X_train, y_train)
    _say(step, "train it again with out-of-fold temperature scaling")
    folds = _count_folds(y_train, given.label)
    model = SelectiveClassifier(
        booster, calibration="temperature", cv=folds, abstain_label=_find_free_label(y)
    ).fit(X_train, y_train)

    _say(step, f"certify risk <= {given.target:g} on {len(y_fresh)} fresh rows")
    risk = Risk(given.target, delta=given.delta)
    certified = ThresholdTuner(FrozenEstimator(model), risk, on_infeasible="abstain")
    told = _fit_and_listen(certified, X_fresh, y_fresh)
    _say(step, "explore (no guarantee): the threshold of the best CWSA+ on the same rows")
    sharpest = ThresholdTuner(FrozenEstimator(model), "cwsa_plus")
    _fit_and_listen(sharpest, X_fresh, y_fresh)

    _say(step, f"evaluate everything on {len(y_test)} test rows")
    columns = {
        "raw": raw, "calibrated": model, "best CWSA+": sharpest,
        f"risk <= {given.target:g}": certified,
    }  # fmt: skip
    table = compare(columns, X_test, y_test)
    _save(given, certified, table, X_test, y_test)
    print(f"\n{told or certified.certificate_}")
    if trivial is not None:
        print(f"\nNote: {trivial}")
    print(f"\n{describe(table, given.target, len(y_test))}")
    print(f"\nWritten to {given.out}: policy.json, risk_coverage.png, metrics.csv")
    return 0


def compare(models: dict[str, Any], X: pd.DataFrame, y: Any) -> pd.DataFrame:
    """Return one column per model: coverage, accuracy and other metrics."""
    table = {}
    for name, model in models.items():
        predictions = Predictions.from_proba(y, model.predict_proba(X), labels=model.classes_)
        own = {"threshold": model.policy_.threshold}
        # CWSA+ needs a threshold; without one take 0.5, as the scorers do.
        at = own if model.abstains else {"threshold": 0.5}
        metrics: dict[str, Any] = {"coverage": own, "augrc": {}, "csr": {}, "ece": {}}
        if evaluate(predictions, metrics)["coverage"] > 0:
            metrics |= {"selective_accuracy": own, "cwsa_plus": at}
        values = evaluate(predictions, metrics)
        right = predictions.y_pred == predictions.y_true
        table[name] = {
            "coverage": values["coverage"],
            "accuracy of its answers": values.get("selective_accuracy", np.nan),
            "accuracy if it always answered": float(np.mean(right)),
            "CWSA+": values.get("cwsa_plus", 0.0),
            "AUGRC": values["augrc"],
            "CSR": values["csr"],
            "ECE": values["ece"],
        }
    return pd.DataFrame(table)


def describe(table: pd.DataFrame, target: float, n: int) -> str:
    """Say what the table means, in words and per cents."""
    shares = {
        "answers on its own": table.loc["coverage"],
        "of these wrong": 1.0 - table.loc["accuracy of its answers"],
        "deferred": 1.0 - table.loc["coverage"],
    }
    shown = pd.DataFrame(shares).loc[["calibrated", f"risk <= {target:g}", "best CWSA+"]]
    shown.index = pd.Index(
        ["always answering", f"target: at most {percent(target)} wrong",
         "best CWSA+ (exploration, no guarantee)"]
    )  # fmt: skip
    always, kept, _ = shown.itertuples(index=False, name=None)
    wrong = "" if kept[0] == 0 else f" ({_share(kept[1])} of these answers are wrong)"
    words = (
        f"Always answering, the classifier is wrong in {_share(always[1])} of {n} test rows, which "
        f"no step above has seen. With the threshold for the target it answers {_share(kept[0])} "
        f"of them on its own{wrong} and leaves {_share(kept[2])} to a person."
    )
    lines = shown.to_string(formatters=dict.fromkeys(shares, _share)).splitlines()
    return "\n".join([wrap(words), "", *lines])


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.1f} %"


def _say(step: Iterator[int], text: str) -> None:
    print(f"[{next(step)}/6] {text}", file=sys.stderr, flush=True)


# Data --------------------------------------------------------------------------------------


def load(given: Namespace) -> tuple[pd.DataFrame, Any, str]:
    """Return features, labels and a name for the table."""
    if given.data is None:
        digits = load_digits(as_frame=True)
        return digits.data, digits.target.to_numpy(), "handwritten digits"
    frame = TableFile.open(given.data, read_layout(given), "--data").whole()
    if given.label is None or given.label not in frame.columns:
        names = list(map(str, frame.columns))
        near = difflib.get_close_matches(str(given.label), names) or names[:20]
        raise ValueError(
            f"--label must name a column of {given.data.name}, got {given.label!r}; among "
            f"its {len(names)} columns are {near}."
        )
    known = frame[given.label].notna()
    if not known.all():
        print(f"{int((~known).sum())} rows without a {given.label!r} are left out.")
        frame = frame[known]
    y = check_labels(frame[given.label], "--label")
    if len(np.unique(y)) < 2:
        raise ValueError(f"--label: column {given.label!r} has one class only.")
    _refuse_measurements(y, given.label)
    features = frame.drop(columns=given.label)
    if features.shape[1] == 0:
        raise ValueError(f"{given.data.name} has no columns besides the label.")
    return prepare(features), y, given.data.name


def _refuse_measurements(y: Any, label: str) -> None:
    """Refuse a column with too many different values to be classes."""
    n_classes = len(np.unique(y))
    if n_classes > max(20, len(y) // 20):
        raise ValueError(
            f"--label: column {label!r} has {n_classes} different values in {len(y)} rows; it "
            "looks like a measurement or an identifier, not like classes."
        )


def prepare(X: pd.DataFrame) -> pd.DataFrame:
    """Turn every column into numbers or categories for gradient boosting.

    The columns are named by numbers: XGBoost refuses names such as "Glucose [mg/dL]".
    """
    is_empty = X.isna().all()
    if is_empty.any():
        names = map(str, X.columns[is_empty][:10])
        print(f"Columns without any value are left out: {', '.join(names)}.")
    if is_empty.all():
        raise ValueError("--data: no column besides the label holds any value.")
    found = [_prepare_column(X[name]) for name in X.columns[~is_empty]]
    return pd.concat(found, axis=1, keys=map(str, range(len(found))))


def _prepare_column(column: pd.Series) -> pd.Series:
    """Return dates and numbers as floats, and what else can be told apart as categories."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return column.astype("int64").astype("float64").where(column.notna())
    if pd.api.types.is_numeric_dtype(column):  # or booleans
        numbers = column.astype("float64")
        too_large = numbers.abs() > np.finfo(np.float32).max  # XGBoost uses float32
        if too_large.any():
            n = int(too_large.sum())
            print(f"{n} infinite values of the column {column.name!r} are taken as missing.")
        return numbers.mask(too_large)
    first = column.dropna().iloc[0]
    if not pd.api.types.is_hashable(first):
        raise ValueError(
            f"--data: column {column.name!r} holds values of the type {type(first).__name__}; "
            "features are numbers, text, booleans or dates. Leave this column out."
        )
    values = column.astype(str).where(column.notna()).astype("category")  # XGBoost takes text
    few = len(values.cat.categories) <= _MAX_LEVELS
    return values if few else values.cat.codes.astype("float64")


def _split(X: pd.DataFrame, y: Any, share: float, seed: int) -> Any:
    """Split at random; stratify only where a class would be lost otherwise."""
    parts = train_test_split(X, y, test_size=share, random_state=seed)
    if set(np.unique(parts[2])) == set(np.unique(y)):
        return parts
    counts = np.unique(y, return_counts=True)[1]
    if counts.min() < 2:
        raise ValueError("--label: a class has a single row; leave such rows out.")
    return train_test_split(X, y, test_size=share, random_state=seed, stratify=y)


def _find_free_label(y: Any) -> Any:
    """Return an abstain label that is not a class: mostly "auto"."""
    classes = np.unique(y)
    longer = "abstain" + "_" * max(len(str(label)) for label in classes)
    numbers = [*range(-9, -10 - len(classes), -1), *range(len(classes) + 1)]
    for label in ["auto", longer, *numbers]:
        with suppress(ValueError):
            check_abstain_label(label, classes)
            return label
    raise ValueError("--label: no value is left that is not one of the classes.")


def _count_folds(y: Any, label: str | None) -> int:
    """Return the number of folds, at most the rows of the largest class."""
    most = int(np.unique(y, return_counts=True)[1].max())
    if most < 2:
        raise ValueError(
            f"--label: no class of the column {label!r} has two rows to train on; the demo needs "
            "more rows."
        )
    return min(_FOLDS, most)


# Model and results ----------------------------------------------------------------------------


def make_booster(seed: int) -> tuple[Any, str]:
    """Return XGBoost if it is installed, else scikit-learn's gradient boosting."""
    try:
        from xgboost import XGBClassifier  # noqa: PLC0415 - an extra
    except ImportError:
        booster = HistGradientBoostingClassifier(max_iter=150, random_state=seed)
        return booster, "HistGradientBoosting"
    booster = XGBClassifier(
        n_estimators=300, max_depth=8, learning_rate=0.05, subsample=0.8, colsample_bytree=0.6,
        tree_method="hist", enable_categorical=True, random_state=seed,
    )  # fmt: skip
    return booster, "XGBoost"


def _fit_and_listen(tuner: ThresholdTuner, X: pd.DataFrame, y: Any) -> str:
    """Fit a tuner, and return its warnings as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        tuner.fit(X, y)
    return "\n".join(str(w.message) for w in caught)


def _save(given: Namespace, tuner: ThresholdTuner, table: pd.DataFrame, X: Any, y: Any) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    mpl.use("Agg")
    tuner.policy_.to_json(given.out / "policy.json")
    with whole_file(given.out / "metrics.csv") as part:
        table.to_csv(part)
    display = RiskCoverageDisplay.from_estimator(tuner, X, y, name="test rows", target=given.target)
    with whole_file(given.out / "risk_coverage.png") as part:
        display.figure_.savefig(part, dpi=120, format="png")
