"""A table of metrics that shows which calibration suits a classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import indexable

from skselect._lib.arrays import FloatArray, are_constant
from skselect._lib.checks import options as option_checks, shown
from skselect._lib.checks.rows import check_more_classes, silence_repeats, warn_small_weights
from skselect._lib.decide import max_proba
from skselect._lib.table import WholeTable
from skselect.bounds._csr import run_csr_test
from skselect.calibration._calibrators import CALIBRATORS
from skselect.calibration._choice import RawRows, cross_fit
from skselect.calibration._scopes import SCOPES
from skselect.estimators import out_of_fold
from skselect.estimators.classifier import SelectiveClassifier, check_y, make_rows, warn_if_fitted
from skselect.estimators.raw_classifier import TrainingRows, is_ready
from skselect.metrics._evaluate import evaluate
from skselect.predictions.outcomes import Outcomes
from skselect.report.questions import assess_calibration

_PLAIN = ("ece", "smooth_ece", "top_label_brier", "csr", "p_risk", "cw_accuracy", "aurc")
_METRICS = {name: dict[str, Any]() for name in _PLAIN} | {"cwsa_plus": {"threshold": 0.5}}
_COLUMNS = (
    "ece", "smooth_ece", "log_loss", "brier", "top_label_brier", "csr", "p_risk", "csr_p_value",
    "cw_accuracy", "aurc", "cwsa_plus",
)  # fmt: skip
# The least probability in log loss, which a probability of 0 would make infinite.
_LEAST = np.finfo(np.float64).eps


def calibration_report(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    calibrations: Any = None,
    calibration_scope: str = "probabilities",
    cv: Any = 5,
    sample_weight: Any = None,
    groups: Any = None,
    n_draws: int = 999,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Compare calibrations of one classifier on held-out rows.

    Parameters
    ----------
    estimator : classifier
        Anything with ``fit`` and ``predict_proba`` or ``decision_function``. A FrozenEstimator
        is not fitted again, so the rows must be fresh.
    X : array-like, data frame or sparse matrix of shape (n, n_features)
    y : array-like of shape (n,)
    calibrations : list of names, or mapping of str to name or calibrator, default=None
        What to compare with the raw probabilities. None: all named ones.
    calibration_scope : {"probabilities", "confidence"}, default="probabilities"
        What is calibrated: the class probabilities, or the confidence alone. The latter leaves
        probabilities and answers as they are.
    cv : int, splitter or iterable, default=5
        Folds: the classifier and the calibration of a row are fitted without its fold.
    sample_weight : array-like of shape (n,), default=None
        How often each row counts. For the classifier, the calibrations and the metrics.
    groups : array-like of shape (n,), default=None
        For the splitter.
    n_draws : int, default=999
        How many calibrated classifiers are simulated. For `csr_p_value`, at least 59.
    random_state : int, Generator or None, default=None
        Seed of the folds of an integer `cv`, and of the simulation.
    n_jobs : int, default=None
        Folds of `cv` fitted at the same time.

    Returns
    -------
    DataFrame
        One row per calibration, "raw" first (missing for a classifier without
        ``predict_proba``):

        ===============================  ==================================================
        ``ece``, ``smooth_ece``          difference between confidence and accuracy
        ``log_loss``, ``brier``          of the class probabilities (Brier: summed over classes)
        ``top_label_brier``              of the confidence
        ``csr``, ``p_risk``              overconfidence near certainty, as published
        ``csr_p_value``                  exact, by simulation; nan for unequal weights
        ``cw_accuracy``                  confidence-weighted accuracy
        ``aurc``, ``cwsa_plus``          selective prediction (CWSA+ at threshold 0.5)
        ``calibrated``                   is it? "yes", "no" (some test at the 5 % level finds a
                                         difference) or "unclear" (few rows, unequal weights)
        ===============================  ==================================================

    Raises
    ------
    ValueError
        If an argument is malformed, or the classifier has no scores.

    See Also
    --------
    skselect.inference.compare_models : Says whether a difference could be chance.

    Notes
    -----
    The classifier is fitted once per fold, whatever the number of calibrations: the map for a
    fold learns from the out-of-fold scores of the other folds. The metrics are those of all
    rows together. CWSA+ also rewards overconfidence; choose by log loss and by CSR.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skselect import calibration_report
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> table = calibration_report(GaussianNB(), X, y, calibrations=["temperature", "isotonic"],
    ...                            random_state=0)
    >>> table["calibrated"].to_dict()
    {'raw': 'no', 'temperature': 'yes', 'isotonic': 'no'}
    >>> table["log_loss"].idxmin()
    'temperature'
    """
    candidates = _check_calibrations(calibrations)
    option_checks.check_choice("calibration_scope", calibration_scope, SCOPES)
    # Three tests share the level of `calibrated`.
    option_checks.choose_draws(n_draws, 999, 0.05 / 3, 1)
    rng = option_checks.check_generator(random_state)
    option_checks.check_has_fit(estimator)
    X, y = indexable(X, y)
    seed = int(rng.integers(2**31))
    owner = SelectiveClassifier(estimator, cv=cv)
    split_params = {} if groups is None else {"groups": groups}
    training_rows = make_rows(owner, X, check_y(y), sample_weight, split_params)
    rows, parts = _score_rows(owner, training_rows, n_jobs, seed)
    option_checks.check_scope(calibration_scope, rows.response, estimator)
    warn_small_weights(rows.weight, "this report")
    measure = partial(_measure, rows, n_draws=n_draws, rng=rng)
    with silence_repeats():
        table = _compare(candidates, calibration_scope, rows, parts, measure)
    return WholeTable.from_dict(table, orient="index")


def _compare(
    candidates: dict[str, Any],
    scope: str,
    rows: RawRows,
    parts: out_of_fold.Splits,
    measure: Callable[[FloatArray, FloatArray], dict[str, Any]],
) -> dict[str, dict[str, Any]]:
    """Return the metrics of each calibration, those of the raw probabilities first."""
    table = {}
    if rows.response == "predict_proba":
        table["raw"] = measure(rows.scores, max_proba(rows.scores))
    for name, calibrator in candidates.items():
        proba, claim = cross_fit(calibrator, scope, rows, parts)
        table[name] = measure(proba, claim)
    return table


def _check_calibrations(calibrations: Any) -> dict[str, Any]:
    """Return the calibrations to compare, by name; None means all named ones."""
    calibrator_names = list(CALIBRATORS)
    if calibrations is None:
        return {name: name for name in calibrator_names}
    if isinstance(calibrations, str) or not isinstance(calibrations, Iterable):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"calibrations must be a list of names, such as {calibrator_names[:2]}, or a mapping "
            f"of names to calibrators, got {shown(calibrations)}."
        )
    if isinstance(calibrations, Mapping):
        names = list(calibrations)
        calibrators = list(calibrations.values())
    else:
        calibrators = list(calibrations)
        names = [c if isinstance(c, str) else type(c).__name__ for c in calibrators]
    candidates = dict(zip(names, calibrators, strict=True))
    if len(candidates) < len(names) or "raw" in candidates or None in candidates.values():
        raise ValueError(
            f"calibrations: {list(map(str, names))} must be names of calibrators, each "
            "once; a mapping gives others a name. The row 'raw' is always shown; leave None out."
        )
    for calibrator in candidates.values():
        option_checks.check_calibration(calibrator, calibrator_names)
    return candidates


def _score_rows(
    owner: SelectiveClassifier, rows: TrainingRows, n_jobs: int | None, seed: int
) -> tuple[RawRows, out_of_fold.Splits]:
    """Score every row out of fold; return the folds, whose first rows may teach a calibration."""
    check_more_classes(rows.classes, "there is nothing to calibrate")
    codes = rows.codes
    parts = out_of_fold.make_folds(owner.cv, rows, rows.split_params, seed)
    n_tested = sum(len(test) for _, test in parts)
    if n_tested < len(codes):
        raise ValueError(
            f"cv must put every row into exactly one test part, but {owner.cv} does not; use an "
            "integer or a splitter such as StratifiedKFold."
        )
    if is_ready(owner.estimator):
        fitted = rows.fit(owner.estimator)
        scores = fitted.scores(rows.X)
        response = fitted.response
        fitted.check_decision(rows.X, scores, "argmax")
    else:
        warn_if_fitted(owner.estimator)
        knows_class = out_of_fold.find_known_rows(parts, codes)
        option_checks.warn_unseen(
            knows_class, codes, "no calibration learns from them, and they count as wrong"
        )
        score = partial(out_of_fold.score_rows, estimator=owner.estimator, decision="argmax")
        out = out_of_fold.predict_folds(score, rows, parts, n_jobs)
        scores = out.scores[np.argsort(out.rows)]
        response = out.response
        parts = [(train[knows_class[train]], test) for train, test in parts]
    return RawRows(response, scores, codes, len(rows.classes), rows.weight), parts


def _measure(
    rows: RawRows, proba: FloatArray, claim: FloatArray, n_draws: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return the metrics of one calibration, and whether its confidence is calibrated."""
    outcomes = Outcomes(proba.argmax(axis=1) != rows.codes, claim, rows.weight)
    p_value = np.nan
    calibrated = "unclear"
    if are_constant(rows.weight):
        p_value = run_csr_test(outcomes, n_draws=n_draws, random_state=rng).p_value
        calibrated = assess_calibration(outcomes, p_value).verdict
    truth = np.eye(rows.n_classes)[rows.codes]
    proba_of_truth = np.maximum(np.sum(proba * truth, axis=1), _LEAST)
    squares = np.sum((proba - truth) ** 2, axis=1)
    values = evaluate(outcomes, _METRICS).to_dict()
    values["log_loss"] = np.average(-np.log(proba_of_truth), weights=rows.weight)
    values["brier"] = np.average(squares, weights=rows.weight)
    values["csr_p_value"] = p_value
    table = {name: float(values[name]) for name in _COLUMNS}
    return table | {"calibrated": calibrated}
