"""Fit the calibration of a scope; what `calibration="auto"` chooses, and from what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skselect._lib.arrays import are_constant
from skselect._lib.checks import warn_user
from skselect._lib.checks.rows import silence_repeats
from skselect._lib.typing import ConfidenceSpec, FloatArray, IntArray
from skselect.calibration._scopes import (
    SCOPES,
    Calibration,
    ClassCalibration,
    ConfidenceCalibration,
)
from skselect.metrics._csr import run_csr_test
from skselect.predictions.confidence import confidence_of_proba
from skselect.predictions.outcomes import Outcomes

#: What `calibration="auto"` chooses from in each scope, the simplest first: the maps that looked
#: overconfident (CSR beyond 3 sigma) in fewer than a tenth of the runs of docs/calibration.md at
#: each number of rows. Raw scores are not among them; Venn-Abers is left out because it shrinks
#: like smooth isotonic, and more.
SAFE = {
    SCOPES[0]: ("temperature", "platt", "smooth_isotonic"),
    SCOPES[1]: ("temperature", "smooth_isotonic"),
}


def fit_calibration(
    calibrator: Any,
    scope: str,
    response: str,
    scores: FloatArray,
    codes: IntArray,
    n_classes: int,
    sample_weight: FloatArray | None = None,
    confidence: ConfidenceSpec = "max_proba",
    fold: IntArray | None = None,
) -> Calibration:
    """Fit the calibration of a scope to raw scores of rows that the classifier has not seen.

    "auto" needs the `fold` of each row, for which its candidates are fitted to the other folds.
    """
    if fold is not None and isinstance(calibrator, str) and calibrator == "auto":
        calibrator = choose_calibrator(
            scope, response, scores, codes, n_classes, sample_weight, confidence, fold
        )
    if scope == SCOPES[0]:
        return ClassCalibration.fit(calibrator, response, scores, codes, n_classes, sample_weight)
    return ConfidenceCalibration.fit(
        calibrator,
        confidence_of_proba(scores, confidence),
        (scores.argmax(axis=1) == codes).astype(np.float64),
        sample_weight,
        is_probability=not callable(confidence),
    )


def cross_fit(
    calibrator: Any,
    scope: str,
    response: str,
    scores: FloatArray,
    codes: IntArray,
    n_classes: int,
    sample_weight: FloatArray | None,
    confidence: ConfidenceSpec,
    parts: Sequence[tuple[IntArray, IntArray]],
) -> tuple[FloatArray, FloatArray]:
    """Return class probabilities and confidences of each row, by a map that was fitted without it.

    `parts` holds pairs: the rows that fit a map, and those that it maps.
    """
    proba, confidences = np.empty((len(codes), n_classes)), np.empty(len(codes))
    for train, test in parts:
        weight = None if sample_weight is None else sample_weight[train]
        fitted = fit_calibration(
            calibrator, scope, response, scores[train], codes[train], n_classes, weight, confidence
        )
        proba[test] = fitted.predict_proba(scores[test])
        confidences[test] = fitted.honest(confidence_of_proba(proba[test], confidence))
    return proba, confidences


def choose_calibrator(
    scope: str,
    response: str,
    scores: FloatArray,
    codes: IntArray,
    n_classes: int,
    sample_weight: FloatArray | None,
    confidence: ConfidenceSpec,
    fold: IntArray,
) -> str:
    """Return the safe calibrator with the lowest cross-fitted log loss, the simplest of equals.

    It is the log loss of the true class, or of being right where the confidence is calibrated.
    Rows of weight 0 take no part. The choice is warned of where CSR still finds it overconfident.
    """
    counted = np.arange(len(codes)) if sample_weight is None else np.flatnonzero(sample_weight > 0)
    weight = None if sample_weight is None else sample_weight[counted]
    scores, codes, fold = scores[counted], codes[counted], fold[counted]
    parts = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold)]
    if len(parts) < 2:
        raise ValueError(
            "calibration='auto' compares calibrators on rows of other folds, so that it needs two "
            "folds with rows, got one. Use an integer cv, or name one: calibration='temperature'."
        )
    names, of_answers = SAFE[scope], scope == SCOPES[1]
    if not of_answers:
        confidence = "max_proba"
    elif not isinstance(confidence, str) or confidence != "max_proba":
        names = names[1:]  # temperature reads "max_proba" only
    found = {}
    for name in names:
        with silence_repeats():  # the fit of the chosen one warns
            proba, claimed = cross_fit(
                name, scope, response, scores, codes, n_classes, weight, confidence, parts
            )
        right = proba.argmax(axis=1) == codes
        own = np.where(right, claimed, 1.0 - claimed) if of_answers else _take_own(proba, codes)
        loss = np.average(-np.log(np.maximum(own, np.finfo(np.float64).eps)), weights=weight)
        # The tenth digit depends on the processor.
        found[name] = round(float(loss), 9), Outcomes(~right, claimed)
    chosen = min(found, key=lambda name: found[name][0])
    if are_constant(weight):
        _warn_if_overconfident(chosen, found[chosen][1])
    return chosen


def _take_own(proba: FloatArray, codes: IntArray) -> FloatArray:
    """Return the probability of each row's true class."""
    return proba[np.arange(len(codes)), codes]


def _warn_if_overconfident(chosen: str, outcomes: Outcomes) -> None:
    """Warn where a calibrated classifier would look as overconfident in one of 1000 tables."""
    if run_csr_test(outcomes, random_state=0).p_value <= 0.001:
        warn_user(
            f"calibration='auto' took {chosen!r}, the best of the safe ones, but its confidence is "
            "still too high near certainty (csr_test, p = .001). See calibration_report."
        )
