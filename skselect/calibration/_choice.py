"""A calibration is fitted to rows of other folds, and ``calibration="auto"`` chooses one."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from skselect._lib.arrays import ConfidenceSpec, FloatArray, IntArray, are_constant
from skselect._lib.checks import warn_user
from skselect._lib.checks.rows import silence_repeats, spread_zeros
from skselect.bounds._csr import run_csr_test
from skselect.calibration._scopes import Calibration, ClassCalibration, ConfidenceCalibration
from skselect.predictions.confidence import confidence_of_proba
from skselect.predictions.outcomes import Outcomes

#: What `calibration="auto"` chooses from in each scope, the simplest first: the maps that looked
#: overconfident (CSR beyond 3 sigma) in fewer than a tenth of the runs of docs/calibration.md at
#: each number of rows. Raw scores are not among them; Venn-Abers is left out because it shrinks
#: like smooth isotonic, and more.
SAFE = {
    ClassCalibration.scope: ("temperature", "platt", "smooth_isotonic"),
    ConfidenceCalibration.scope: ("temperature", "smooth_isotonic"),
}


class RawRows(NamedTuple):
    """Raw scores of rows that the classifier has not seen, and what is known of the rows.

    `confidence` is what a calibration of the confidence maps.
    """

    response: str
    scores: FloatArray
    codes: IntArray
    n_classes: int
    weight: FloatArray | None = None
    confidence: ConfidenceSpec = "max_proba"

    def take(self, rows: IntArray) -> RawRows:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return self._replace(scores=self.scores[rows], codes=self.codes[rows], weight=weight)


def fit_calibration(
    calibrator: Any, scope: str, rows: RawRows, fold: IntArray | None = None
) -> Calibration:
    """Fit the calibration of a scope to rows that the classifier has not seen.

    "auto" needs the `fold` of each row, for which its candidates are fitted to the other folds.
    """
    if rows.response == "predict_proba":
        rows = rows._replace(scores=spread_zeros(rows.scores))
    if fold is not None and isinstance(calibrator, str) and calibrator == "auto":
        calibrator = choose_calibrator(scope, rows, fold)
    if scope == ClassCalibration.scope:
        return ClassCalibration.fit(calibrator, *rows[:5])  # all but the confidence
    is_right = rows.scores.argmax(axis=1) == rows.codes
    return ConfidenceCalibration.fit(
        calibrator,
        confidence_of_proba(rows.scores, rows.confidence),
        is_right.astype(np.float64),
        rows.weight,
        is_probability=not callable(rows.confidence),
    )


def cross_fit(
    calibrator: Any, scope: str, rows: RawRows, parts: Sequence[tuple[IntArray, IntArray]]
) -> tuple[FloatArray, FloatArray]:
    """Return class probabilities and confidences of each row, by a map that was fitted without it.

    `parts` holds pairs: the rows that fit a map, and those that it maps.
    """
    proba = np.empty((len(rows.codes), rows.n_classes))
    confidences = np.empty(len(rows.codes))
    for train, test in parts:
        fitted = fit_calibration(calibrator, scope, rows.take(train))
        mapped = fitted.predict_proba(rows.scores[test])
        proba[test] = mapped
        raw = confidence_of_proba(mapped, rows.confidence)
        confidences[test] = fitted.calibrate_confidence(raw)
    return proba, confidences


class _Candidate(NamedTuple):
    """A calibrator that "auto" may choose: its cross-fitted log loss, and what it claims."""

    name: str
    loss: float
    outcomes: Outcomes


def choose_calibrator(scope: str, rows: RawRows, fold: IntArray) -> str:
    """Return the safe calibrator with the lowest cross-fitted log loss, the simplest of equals.

    It is the log loss of the true class, or of being right where the confidence is calibrated.
    Rows of weight 0 take no part. The choice is warned of where CSR still finds it overconfident.
    """
    if rows.weight is not None:
        counted = np.flatnonzero(rows.weight > 0)
        rows = rows.take(counted)
        fold = fold[counted]
    parts = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold)]
    if len(parts) < 2:
        raise ValueError(
            "calibration='auto' compares calibrators on rows of other folds, so that it needs two "
            "folds with rows, got one. Use an integer cv, or name one: calibration='temperature'."
        )
    names = SAFE[scope]
    if scope == ClassCalibration.scope:
        rows = rows._replace(confidence="max_proba")
    elif not isinstance(rows.confidence, str) or rows.confidence != "max_proba":
        names = names[1:]  # temperature reads "max_proba" only
    candidates = [_try_calibrator(name, scope, rows, parts) for name in names]
    chosen = min(candidates, key=attrgetter("loss"))
    if are_constant(rows.weight):
        _warn_if_overconfident(chosen)
    return chosen.name


def _try_calibrator(
    name: str, scope: str, rows: RawRows, parts: Sequence[tuple[IntArray, IntArray]]
) -> _Candidate:
    with silence_repeats():  # the fit of the chosen one warns
        proba, claimed = cross_fit(name, scope, rows, parts)
    right = proba.argmax(axis=1) == rows.codes
    if scope == ConfidenceCalibration.scope:
        chance = np.where(right, claimed, 1.0 - claimed)
    else:
        chance = proba[np.arange(len(right)), rows.codes]
    surprise = -np.log(np.maximum(chance, np.finfo(np.float64).eps))
    loss = np.average(surprise, weights=rows.weight)
    # The tenth digit depends on the processor.
    return _Candidate(name, round(float(loss), 9), Outcomes(~right, claimed))


def _warn_if_overconfident(chosen: _Candidate) -> None:
    """Warn at a level at which a calibrated classifier is warned of in one of 1000 tables."""
    test = run_csr_test(chosen.outcomes, random_state=0)
    if test.p_value <= 0.001:
        warn_user(
            f"calibration='auto' chose {chosen.name!r}, the best of the safe ones, but its "
            "confidence is still too high near certainty (csr_test, p = .001). See "
            "calibration_report."
        )
