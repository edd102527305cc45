"""The metrics as scikit-learn scorers: objects, and plain strings after ``import skselect``."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring

from skselect._lib import scorers as private_scorers
from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray, reaches
from skselect._lib.checks import warn_user
from skselect._lib.checks.options import check_choice, check_number, check_threshold
from skselect._lib.checks.rows import (
    check_labels,
    check_length,
    check_weight,
    encode_labels,
    spread_zeros,
)
from skselect._lib.decide import max_proba, row_argmax
from skselect._lib.sklearn import take_rows
from skselect.curve.curve import RiskCoverageCurve
from skselect.estimators.base import check_own_proba, decide_rows, find_abstainer
from skselect.metrics import SPECS
from skselect.metrics._evaluate import check_direction
from skselect.metrics._metric import MetricSpec
from skselect.metrics._rows import ScoredRows, score_rows
from skselect.metrics._threshold import relative_to
from skselect.predictions.confidence import confidence_of_proba
from skselect.predictions.predictions import Predictions

__all__ = [
    "get_scorer",
    "get_scorer_names",
    "on_accepted",
    "register_scorers",
    "selective_scoring",
    "unregister_scorers",
]

#: Threshold at which a classifier that never abstains is scored.
DEFAULT_THRESHOLD = 0.5

_BY_SCORER_NAME = {spec.scorer_name: spec for spec in SPECS.values()}


# The outcomes of an estimator ----------------------------------------------------------------


def score_estimator(estimator: Any, X: Any, y_true: Any, sample_weight: Any = None) -> ScoredRows:
    """Predict once and compare with the labels; a label that it does not know is an error.

    The confidence is the estimator's own, to which its thresholds apply; the probability of being
    right is that of the answer, or the calibrated confidence.
    """
    labels = check_labels(y_true)
    abstainer, inner_X = find_abstainer(estimator, X)
    if abstainer is None:
        raw_proba = _predict_proba(estimator, X)
        proba = spread_zeros(raw_proba)
        confidence = max_proba(proba)
        predictions = _compare(labels, proba, row_argmax(proba), estimator.classes_, sample_weight)
        predictions = replace(predictions, _undecided=_find_zeros(raw_proba, proba))
        return score_rows(predictions, confidence=confidence, correctness=confidence)
    decisions = decide_rows(abstainer, inner_X)
    predictions = _compare(
        labels, decisions.y_proba, decisions.y_pred, abstainer.classes_, sample_weight
    )
    undecided = np.isnan(decisions.confidence)
    if undecided.any():
        predictions = replace(predictions, _undecided=undecided)
    return score_rows(
        predictions,
        confidence=decisions.fill(decisions.confidence),
        correctness=decisions.fill(decisions.claim),
        threshold=decisions.threshold if abstainer.abstains else None,
    )


def _compare(
    labels: LabelArray, proba: FloatArray, y_pred: IntArray, classes: Any, sample_weight: Any
) -> Predictions:
    """Return what was predicted beside checked labels."""
    check_length("X", proba, len(labels), "y_true")
    classes = np.asarray(classes)
    codes = encode_labels(labels, classes)
    weight = check_weight(sample_weight, len(labels))
    return Predictions(codes, y_pred, classes, proba, sample_weight=weight)


def _predict_proba(estimator: Any, X: Any) -> FloatArray:
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"estimator: {type(estimator).__name__} has no predict_proba, so it states no "
            "confidence. Wrap it in SelectiveClassifier(..., calibration='temperature'), or choose "
            "a classifier with probabilities."
        )
    return check_own_proba(estimator.predict_proba(X), X, estimator)


def _find_zeros(raw_proba: FloatArray, proba: FloatArray) -> BoolArray | None:
    """Return which rows are zeros, once they are spread; None for none."""
    if raw_proba is proba:
        return None
    return np.asarray(np.all(raw_proba == 0.0, axis=1))


def _curve_at(rows: ScoredRows, threshold: float | None) -> tuple[RiskCoverageCurve, float]:
    """Return a curve, and `threshold`, else that of the estimator, else the default."""
    if threshold is None and rows.threshold is not None:
        threshold = rows.single_threshold
        if threshold is None:  # one per subgroup
            shifted = relative_to(rows.at_threshold.outcomes, rows.threshold)
            return RiskCoverageCurve.from_outcomes(shifted), DEFAULT_THRESHOLD
    curve = rows.at_threshold.curve
    return curve, DEFAULT_THRESHOLD if threshold is None else threshold


# Scorers -------------------------------------------------------------------------------------


class _LabelGuard:
    """Takes the place of a scorer's metric in scikit-learn, and refuses to score labels.

    TunedThresholdClassifierCV would call the metric with thresholded labels. The signature of
    a call also tells scikit-learn that the scorer takes weights, and no other metadata.
    """

    __name__ = "skselect_metric"

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
        raise ValueError(
            f"The scorer {self.name!r} scores confidences, but it was given labels (as "
            "TunedThresholdClassifierCV does). Tune thresholds with skselect.ThresholdTuner."
        )


class SelectiveScorer(private_scorers.BaseScorer):
    """A metric as a scikit-learn scorer; larger is better. Get one from :func:`get_scorer`.

    Parameters
    ----------
    name : str
        Scorer name, with ``neg_`` for losses.
    min_coverage : float, default=0
        Less coverage gets the worst value (metrics at a threshold only).
    **params
        Parameters of the metric.
    """

    def __init__(self, name: str, min_coverage: float = 0.0, **params: Any) -> None:
        sign = 1 if _BY_SCORER_NAME[name].greater_is_better else -1
        super().__init__(_LabelGuard(name), sign, {}, "predict_proba")
        self.name = name
        self.min_coverage = min_coverage
        self.params = params
        self.__name__ = name

    def __repr__(self) -> str:
        params = dict(self.params)
        if self.min_coverage:
            params["min_coverage"] = self.min_coverage
        arguments = "".join(f", {key}={value!r}" for key, value in params.items())
        return f"get_scorer({self.name!r}{arguments})"

    def _score(
        self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any
    ) -> float:
        """Score an estimator; scikit-learn calls this (`method_caller` drops a column)."""
        rows = score_estimator(estimator, X, y_true, kwargs.get("sample_weight"))
        return self.score_rows(rows)

    def score_rows(self, rows: ScoredRows) -> float:
        """Score outcomes that several scorers can share, together with their curve."""
        spec = _BY_SCORER_NAME[self.name]
        if spec.at_threshold:
            return spec.as_score(self._at_threshold(spec, rows))
        if spec.needs_right and not np.any(rows.outcomes.loss < 1):
            return float("nan")
        return spec.as_score(spec.value(rows, self.params))

    def _at_threshold(self, spec: MetricSpec, rows: ScoredRows) -> float:
        params = {key: value for key, value in self.params.items() if key != "threshold"}
        curve, threshold = _curve_at(rows, self.params.get("threshold"))
        coverage = SPECS["coverage"].kernel(curve, threshold)
        must_not_reward = coverage == 0 and not spec.prices_abstention
        if must_not_reward or not reaches(coverage, self.min_coverage):
            # Abstaining may cost more than any error.
            return max(spec.worst, params.get("abstention_cost", spec.worst))
        return float(spec.kernel(curve, threshold, **params))


def get_scorer(name: str, *, min_coverage: float = 0.0, **params: Any) -> SelectiveScorer:
    """Return a scorer by its name, with parameters of your choice.

    The object works wherever the plain string does, and also where the string does not: inside
    an estimator that is sent to a worker process.

    Parameters
    ----------
    name : str
        A metric's short name, with ``neg_`` before a loss; see
        :func:`skselect.scoring.get_scorer_names`.
    min_coverage : float in [0, 1], default=0
        An estimator that accepts less gets the worst value of the metric (metrics at a
        threshold only).
    **params
        Parameters of the metric, such as ``max_risk=.02`` (or ``average="binary"`` with
        ``pos_label=``). ``threshold=`` replaces the
        threshold of the estimator, which otherwise counts; a classifier that never abstains
        is scored at 0.5.

    Returns
    -------
    SelectiveScorer
        ``scorer(estimator, X, y, sample_weight=None)``; larger is better.

    Raises
    ------
    ValueError
        If the name is unknown, or the metric has no such parameter.

    Notes
    -----
    A search with "cwsa_plus" or "cwsa" over `threshold` picks 0, which never abstains: values at
    different thresholds are not comparable, and ThresholdTuner finds thresholds. A search over
    `calibration` tends to pick "isotonic", the riskiest: use ``calibration="auto"``.

    Examples
    --------
    >>> from skselect.scoring import get_scorer
    >>> get_scorer("cwsa_plus", threshold=0.8, min_coverage=0.5)
    get_scorer('cwsa_plus', threshold=0.8, min_coverage=0.5)
    """
    if f"neg_{name}" in _BY_SCORER_NAME:
        raise ValueError(f"name: {name!r} is a loss, and scorers are maximised; use 'neg_{name}'.")
    spec = _BY_SCORER_NAME[check_choice("name", name, get_scorer_names())]
    check_number("min_coverage", min_coverage, 0.0, 1.0)
    if min_coverage and not spec.at_threshold:
        raise ValueError(f"min_coverage goes with a metric at a threshold, not with {name!r}.")
    spec.check_parameters(params)
    check_direction(params)
    _try_parameters(spec, params)
    return SelectiveScorer(name, min_coverage, **params)


def _try_parameters(spec: MetricSpec, params: dict[str, Any]) -> None:
    """Score four rows, so that a bad value fails here and not as nan inside a search."""
    if "pos_label" in params:  # the classes are not known yet
        return
    rows = Predictions.from_proba([0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        spec.value(score_rows(rows), params)


def get_scorer_names() -> list[str]:
    """Return all scorer names, including those that need parameters.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from skselect.scoring import get_scorer_names
    >>> get_scorer_names()[:3]
    ['accuracy_rejection_auc', 'aumcc', 'coverage']
    """
    return sorted(_BY_SCORER_NAME)


def registered_names() -> list[str]:
    """Return the names that work as plain scoring strings."""
    return sorted(spec.scorer_name for spec in SPECS.values() if spec.registered)


# Many metrics, one prediction ------------------------------------------------------------------


class _MultiScorer:
    """Several scorers for one prediction and one sort; returns a dict, as searches accept."""

    def __init__(self, scorers: dict[str, SelectiveScorer]) -> None:
        self.scorers = scorers
        self.__name__ = "selective_scoring"

    def __repr__(self) -> str:
        arguments = [f"{key}={scorer!r}" for key, scorer in self.scorers.items()]
        return f"selective_scoring({', '.join(arguments)})"

    def __call__(
        self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None
    ) -> dict[str, float]:
        rows = score_estimator(estimator, X, y_true, sample_weight)
        return {key: scorer.score_rows(rows) for key, scorer in self.scorers.items()}


def selective_scoring(
    *names: str | SelectiveScorer, **named: str | SelectiveScorer
) -> _MultiScorer:
    """Return one scorer for many metrics, which predicts once and sorts once.

    Parameters
    ----------
    *names : str or scorer
        Scorer names, or scorers from :func:`get_scorer`; results carry their names.
    **named : str or scorer
        Scorers whose results carry your own names, such as
        ``strict=get_scorer("coverage_at_risk", max_risk=.01)``.

    Returns
    -------
    callable
        For ``scoring=`` in cross_validate and in searches (with ``refit="name"``).

    Raises
    ------
    ValueError
        If no name is given, one is unknown, or one is given twice.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from skselect.scoring import selective_scoring
    >>> X, y = load_iris(return_X_y=True)
    >>> scoring = selective_scoring("cwsa_plus", "neg_augrc")
    >>> result = cross_validate(LogisticRegression(max_iter=1000), X, y, scoring=scoring)
    >>> result["test_cwsa_plus"].mean().round(2)  # doctest: +DIGITS_VARY
    np.float64(0.77)
    """
    if not names and not named:
        raise ValueError("names: give at least one scorer name.")
    scorers: dict[str, SelectiveScorer] = {}
    for name in names:
        scorer = get_scorer(name) if isinstance(name, str) else name
        if scorer.name in scorers:
            raise ValueError(
                f"names: {scorer.name!r} is given twice; name each, for example "
                "selective_scoring(strict=get_scorer(...), loose=get_scorer(...))."
            )
        scorers[scorer.name] = scorer
    for key, given in named.items():
        scorers[key] = get_scorer(given) if isinstance(given, str) else given
    return _MultiScorer(scorers)


# Any scorer, on the accepted rows ----------------------------------------------------------------


class _AcceptedScorer(private_scorers.BaseScorer):
    """A scikit-learn scorer on the rows that the estimator accepts; see :func:`on_accepted`."""

    def __init__(self, scorer: Any, min_coverage: float, threshold: float) -> None:
        super().__init__(_LabelGuard("on_accepted"), 1, {}, "predict_proba")
        self.scorer = scorer
        self.min_coverage = min_coverage
        self.threshold = threshold
        self.__name__ = "on_accepted"

    def __repr__(self) -> str:
        return (
            f"on_accepted({self.scorer!r}, min_coverage={self.min_coverage!r}, "
            f"threshold={self.threshold!r})"
        )

    def _score(
        self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any
    ) -> float:
        labels = check_labels(y_true)  # an object array of booleans becomes one of booleans
        accepted = _find_accepted(estimator, X, self.threshold)
        check_length("X", accepted, len(labels), "y_true")
        weight = kwargs.get("sample_weight")
        counted = np.ones(len(accepted)) if weight is None else np.asarray(weight, dtype=float)
        coverage = float(np.sum(counted[accepted]) / np.sum(counted))
        if coverage == 0 or not reaches(coverage, self.min_coverage):
            warn_user(
                f"on_accepted is nan: the estimator accepts a share of {coverage:.3g} of the rows "
                f"(min_coverage={self.min_coverage:g})."
            )
            return float("nan")
        rows = np.flatnonzero(accepted)
        if find_abstainer(estimator, None)[0] is not None:
            estimator = _Suggesting(estimator)
        metadata = {} if weight is None else {"sample_weight": counted[rows]}
        return float(self.scorer(estimator, take_rows(X, rows), labels[rows], **metadata))


class _Suggesting:
    """Wraps an abstaining estimator; `predict` returns its answer for every row."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def __getattr__(self, name: str) -> Any:
        return getattr(self.estimator, name)

    def predict(self, X: Any) -> LabelArray:
        abstainer, inner_X = find_abstainer(self.estimator, X)
        return np.asarray(np.asarray(abstainer.classes_)[decide_rows(abstainer, inner_X).y_pred])


def _find_accepted(estimator: Any, X: Any, threshold: float) -> BoolArray:
    abstainer, inner_X = find_abstainer(estimator, X)
    if abstainer is not None and abstainer.abstains:
        return np.asarray(abstainer.accepts(inner_X))
    return np.asarray(confidence_of_proba(_predict_proba(estimator, X), "max_proba") >= threshold)


def on_accepted(
    scoring: Any, *, min_coverage: float = 0.0, threshold: float = DEFAULT_THRESHOLD
) -> _AcceptedScorer:
    """Turn any scikit-learn scorer into one on the accepted rows.

    Parameters
    ----------
    scoring : str or scorer
        Such as "f1" or ``make_scorer(...)``.
    min_coverage : float in [0, 1], default=0
        Below it the score is nan (with a warning), which searches rank last.
    threshold : float, default=0.5
        Rows with confidence >= threshold are accepted. It is applied to the largest probability of
        a classifier that never abstains.

    Returns
    -------
    scorer

    Raises
    ------
    ValueError
        If `scoring` is unknown.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skselect import SelectiveClassifier
    >>> from skselect.scoring import on_accepted
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SelectiveClassifier(LogisticRegression(max_iter=1000), threshold=.9).fit(X, y)
    >>> on_accepted("accuracy")(model, X, y)  # doctest: +DIGITS_VARY
    1.0
    """
    check_number("min_coverage", min_coverage, 0.0, 1.0)
    check_threshold(threshold)
    scorer = check_scoring(scoring=scoring)
    if not math.isfinite(threshold):
        raise ValueError(f"threshold must be finite, got {threshold}.")
    return _AcceptedScorer(scorer, min_coverage, threshold)


# Registration ------------------------------------------------------------------------------------


def register_scorers() -> list[str]:
    """Make the scorer names plain strings for scikit-learn; ``import skselect`` does it.

    Returns
    -------
    list of str
        The names that were new. A name that scikit-learn already has is left alone.
    """
    return private_scorers.register_scoring_names(
        {name: SelectiveScorer(name) for name in registered_names()}
    )


def unregister_scorers() -> None:
    """Take the scorer names out of scikit-learn again."""
    private_scorers.unregister_scoring_names()


register_scorers()
