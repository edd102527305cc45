"""``skselect demo``: train, calibrate and certify a classifier on one table."""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from pathlib import Path
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
from skselect.cli.idle import refuse_layout
from skselect.cli.options import CsvLayout, DemoOptions
from skselect.cli.table_files import TableFile
from skselect.display.risk_coverage import RiskCoverageDisplay
from skselect.estimators.classifier import SelectiveClassifier
from skselect.estimators.tuner import ThresholdTuner
from skselect.metrics._evaluate import evaluate
from skselect.objectives import Loss, Risk
from skselect.predictions.predictions import Predictions

# Shares of the rows; the other 45 % train the classifier and its calibration.
_CERTIFY = 0.30
_TEST = 0.25
# The most levels of a category that scikit-learn's gradient boosting takes.
_MAX_LEVELS = 255
# Rows x features up to which one thread trains as fast as many.
_SMALL = 1_000_000
# What XGBoost's wheels do not bring along.
_OPENMP = "OpenMP: on a Mac brew install libomp, on Debian and Ubuntu apt install libgomp1"


def demo(options: DemoOptions) -> int:
    """Run the demo, print what it finds, write the results; return the exit code."""
    risk = Risk(options.target, delta=options.delta)
    risk.check(Loss())
    if options.label is not None and options.data is None:
        raise ValueError("--label goes with --data FILE; without it the demo reads digits.")
    if options.out == Path("-"):
        raise ValueError("--out must be a folder, not standard output.")
    if options.out.exists() and not options.out.is_dir():
        raise ValueError(f"--out must be a folder, but {str(options.out)!r} is a file.")
    import_extra("matplotlib", "matplotlib").use("Agg")
    X, y, name = load(options)
    booster, kind = make_booster(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    # On a busy machine many threads may take minutes for what one thread does in seconds.
    with threadpool_limits(1 if X.size <= _SMALL else None):
        _say(1, f"{name}: {_count_all(X, y)}")
        X, X_test, y, y_test = _split(X, y, _TEST, options.seed)
        models, certified, warning = _fit_models(X, y, booster, kind, risk, options.seed)
        _say(6, f"evaluate everything on {len(y_test)} test rows")
        table = compare(models, X_test, y_test)
        _write_results(table, certified, X_test, y_test, options)
    print(f"\n{warning or certified.certificate_}")
    print(f"\n{describe(table, options.target, len(y_test))}")
    print(f"\nWritten to {options.out}: policy.json, risk_coverage.png, metrics.csv")
    return 0


def _fit_models(
    X: pd.DataFrame, y: Any, booster: Any, kind: str, risk: Risk, seed: int
) -> tuple[dict[str, Any], ThresholdTuner, str]:
    """Train, calibrate and certify; return all models by name, the certified one, its warnings."""
    X_train, X_fresh, y_train, y_fresh = _split(X, y, _CERTIFY / (1 - _TEST), seed)
    target = f"risk <= {risk.target:g}"

    _say(2, f"train {kind} on {len(y_train)} rows, without calibration")
    raw = SelectiveClassifier(clone(booster)).fit(X_train, y_train)
    _say(3, "train it again with out-of-fold temperature scaling")
    calibrated = SelectiveClassifier(
        booster,
        calibration="temperature",
        cv=5,
        abstain_label=_find_free_label(y),
        random_state=seed,
    )
    calibrated.fit(X_train, y_train)

    _say(4, f"certify {target} on {len(y_fresh)} fresh rows")
    certified = ThresholdTuner(FrozenEstimator(calibrated), risk, on_infeasible="abstain")
    warning = _fit_and_listen(certified, X_fresh, y_fresh)
    _say(5, "explore (no guarantee): the threshold of the best CWSA+ on the same rows")
    explored = ThresholdTuner(FrozenEstimator(calibrated), "cwsa_plus")
    _fit_and_listen(explored, X_fresh, y_fresh)
    models = {
        "raw": raw,
        "calibrated": calibrated,
        "best CWSA+": explored,
        target: certified,
    }
    return models, certified, warning


def _write_results(
    table: pd.DataFrame,
    certified: ThresholdTuner,
    X_test: pd.DataFrame,
    y_test: Any,
    options: DemoOptions,
) -> None:
    """Write the policy, the metrics and the picture."""
    certified.policy_.to_json(options.out / "policy.json")
    with whole_file(options.out / "metrics.csv") as part:
        table.to_csv(part)
    display = RiskCoverageDisplay.from_estimator(
        certified, X_test, y_test, name="test rows", target=options.target
    )
    with whole_file(options.out / "risk_coverage.png") as part:
        display.figure_.savefig(part, dpi=120, format="png")


def _count_all(X: pd.DataFrame, y: Any) -> str:
    """Say how large a table is."""
    n_rows, n_features = X.shape
    n_classes = len(np.unique(y))
    return f"{n_rows} rows, {n_features} features, {n_classes} classes"


def _say(step: int, text: str) -> None:
    print(f"[{step}/6] {text}", file=sys.stderr, flush=True)


def _split(X: pd.DataFrame, y: Any, share: float, seed: int) -> Any:
    """Split at random; stratify only where a class would be lost otherwise."""
    parts = train_test_split(X, y, test_size=share, random_state=seed)
    _, _, y_first, _ = parts
    classes, counts = np.unique(y, return_counts=True)
    if len(np.unique(y_first)) == len(classes):
        return parts
    if counts.min() < 2:
        rarest = str(classes[counts.argmin()])
        raise ValueError(
            f"--label: a class has a single row, such as {rarest!r}; leave "
            "such rows out, or name a column of classes."
        )
    return train_test_split(X, y, test_size=share, random_state=seed, stratify=y)


def _find_free_label(y: Any) -> Any:
    """Return an abstain label that is not a class: mostly "auto"."""
    with suppress(ValueError):
        return check_abstain_label("auto", y)
    if y.dtype.kind != "U":
        return y.max() + 1
    n_signs = max(map(len, y))
    return "abstain" + n_signs * "_"


def _fit_and_listen(tuner: ThresholdTuner, X: pd.DataFrame, y: Any) -> str:
    """Fit a tuner, and return its warnings as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        tuner.fit(X, y)
    return "\n".join(str(warning.message) for warning in caught)


def compare(models: dict[str, Any], X: pd.DataFrame, y: Any) -> pd.DataFrame:
    """Return one column per model: coverage, accuracy and other metrics."""
    table = {}
    for name, model in models.items():
        rows = Predictions.from_proba(y, model.predict_proba(X), labels=model.classes_)
        is_right = rows.y_pred == rows.y_true
        decided = model.policy_.decide_arrays(model.raw_scores(X))
        accepted = np.asarray(decided["accepted"])
        accuracy = np.nan
        metrics: dict[str, Any] = {"augrc": {}, "csr": {}, "ece": {}}
        if accepted.any():
            accuracy = is_right[accepted].mean()
            # CWSA+ needs a threshold; without one take 0.5, as the scorers do.
            threshold = model.policy_.threshold if model.abstains else 0.5
            metrics["cwsa_plus"] = {"threshold": threshold}
        table[name] = {
            "coverage": accepted.mean(),
            "accuracy of its answers": accuracy,
            "accuracy if it always answered": is_right.mean(),
            **evaluate(rows, metrics),
        }
    return pd.DataFrame(table)


def describe(table: pd.DataFrame, target: float, n: int) -> str:
    """Say what the table means, in words and per cents."""
    always = "always answering"
    certified = f"target: at most {percent(target)} wrong"
    names = {
        "calibrated": always,
        f"risk <= {target:g}": certified,
        "best CWSA+": "best CWSA+ (exploration, no guarantee)",
    }
    coverage = table.loc["coverage", list(names)]
    accuracy = table.loc["accuracy of its answers", list(names)]
    shares = pd.DataFrame(
        {
            "answers on its own": coverage,
            "of these wrong": 1 - accuracy,
            "deferred": 1 - coverage,
        }
    )
    shown = shares.rename(names).map(_share)
    words = _say_in_words(n, shown.loc[always], shown.loc[certified])
    return f"{wrap(words)}\n\n{shown.to_string()}"


def _say_in_words(n: int, of_always: Any, of_target: Any) -> str:
    """Say what always answering is worth beside answering with the threshold."""
    wrong = of_always["of these wrong"]
    answered = of_target["answers on its own"]
    wrong_of_answered = of_target["of these wrong"]
    deferred = of_target["deferred"]
    also = ""
    if wrong_of_answered != "-":
        also = f" ({wrong_of_answered} of these answers are wrong)"
    return (
        f"Always answering, the classifier is wrong in {wrong} of {n} test rows, which no step "
        f"above has seen. With the threshold for the target it answers {answered} of them on its "
        f"own{also} and leaves {deferred} to a person."
    )


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.1f} %"


# Data and model ------------------------------------------------------------------------------


def load(options: DemoOptions) -> tuple[pd.DataFrame, Any, str]:
    """Return features, labels and a name for the table."""
    if options.data is None:
        if options.layout != CsvLayout():
            raise ValueError("--separator, --decimal and --encoding go with --data, a CSV file.")
        digits = load_digits(as_frame=True)
        return digits.data, digits.target.to_numpy(), "handwritten digits"
    name = options.data.name
    label = options.label
    file = TableFile.open(options.data, options.layout, "--data")
    refuse_layout(options, file, list(file.types), [])
    frame = file.typed()
    if label is None:
        raise ValueError(f"--label must name the column to predict: {list(frame.columns)[:20]}.")
    check_columns([label], list(frame.columns), name)
    n_unknown = int(frame[label].isna().sum())
    if n_unknown:
        print(f"{n_unknown} rows without a {label!r} are left out.")
        frame = frame.dropna(subset=label)
    y = check_labels(frame[label], "--label")
    if len(np.unique(y)) < 2:
        raise ValueError(f"--label: column {label!r} has one class only.")
    if frame.shape[1] < 2:
        raise ValueError(f"{name} has no columns besides the label.")
    features = [_prepare(frame[column]) for column in frame if column != label]
    # Columns are named by numbers: XGBoost refuses names such as "Glucose [mg/dL]".
    keys = map(str, range(len(features)))
    return pd.concat(features, axis=1, keys=keys), y, name


def _prepare(column: pd.Series) -> pd.Series:
    """Return dates and numbers as floats, anything else as categories of its text."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return column.astype("int64").astype("float64").where(column.notna())
    if pd.api.types.is_numeric_dtype(column):  # or booleans
        numbers = column.astype("float64")
        return numbers.where(numbers.abs() <= np.finfo(np.float32).max)  # XGBoost uses float32
    texts = column.astype(str).where(column.notna())
    values = texts.astype("category")
    if 0 < len(values.cat.categories) <= _MAX_LEVELS:
        return values
    return values.cat.codes.astype("float64")


def make_booster(seed: int) -> tuple[Any, str]:
    """Return XGBoost if it is installed and can be loaded, else scikit-learn's gradient boosting.

    XGBoost cannot be loaded without OpenMP, which is its own class of ValueError.
    """
    try:
        from xgboost import XGBClassifier  # noqa: PLC0415 - an extra
    except (ImportError, ValueError) as error:
        name = "HistGradientBoosting"
        if not isinstance(error, ImportError):
            name += f" (XGBoost needs {_OPENMP})"
        return HistGradientBoostingClassifier(max_iter=150, random_state=seed), name
    booster = XGBClassifier(
        n_estimators=300, max_depth=8, learning_rate=0.05, subsample=0.8, colsample_bytree=0.6,
        tree_method="hist", enable_categorical=True, random_state=seed,
    )  # fmt: skip
    return booster, "XGBoost"
