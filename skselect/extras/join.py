"""Where the stages of a cascade keep a case: a rule from rows that do not certify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skselect._lib.arrays import BoolArray, FloatArray, draw_rows
from skselect._lib.checks import warn_user
from skselect._lib.checks.options import check_calibration, check_number, check_risk_limit
from skselect._lib.decide import calibrate_stage
from skselect.calibration._calibrators import CALIBRATORS
from skselect.calibration._scopes import Calibration, ClassCalibration, ConfidenceCalibration
from skselect.curve.curve import RiskCoverageCurve
from skselect.extras.cascade import Cascade, check_stages, check_stages_named, scores_of
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions
from skselect.thresholds._rules import combined_risk, empirical_risk, last_passed

#: How many cuts are tried for each stage: quantiles of its confidence.
_N_CUTS = 50
#: One row in so many of a table sets the rule, drawn with this seed.
_EVERY = 3
_SEED = 0
#: A planned threshold is certified at this delta, and accepts at least so much.
_DELTA = 0.05
_LEAST_COVERAGE = 0.1


class _Answers(NamedTuple):
    """How sure answers are, and which of them are wrong."""

    confidence: FloatArray
    wrong: BoolArray

    def keep_above(self, cut: float, others: _Answers) -> _Answers:
        """Return these answers where they are sure enough, else the others."""
        keeps = self.confidence >= cut
        return _Answers(
            confidence=np.where(keeps, self.confidence, others.confidence),
            wrong=np.where(keeps, self.wrong, others.wrong),
        )


def plan_cuts(
    confidence: Sequence[FloatArray],
    wrong: Sequence[BoolArray],
    target: float | None,
    max_loss: float,
    weight: FloatArray | None = None,
) -> tuple[float, ...]:
    """Return where each stage but the last keeps a case, planned from the last one backwards.

    A stage keeps as many cases as it can while the worth of the cascade falls by at most `max_loss`
    in all. The worth is the coverage that these rows would certify at the risk `target` (that they
    have, where they are weighted), or their accuracy without a target.

    Parameters
    ----------
    confidence : sequence of ndarray of shape (n,)
        Of each stage, how sure it is of each row, by models that have not seen it.
    wrong : sequence of ndarray of bool, shape (n,)
        Whether its answer is wrong.
    target : float or None
    max_loss : float in [0, 1]
    weight : ndarray of shape (n,), default=None

    Returns
    -------
    tuple of float
        The least confidence at which each stage but the last keeps a case; inf: it keeps none.
    """
    answers = _Answers(confidence[-1], wrong[-1])
    best = _worth(answers, target, weight)
    n_steps = len(confidence) - 1
    cuts: list[float] = []
    levels = np.linspace(0.0, 1.0, _N_CUTS)
    for k in reversed(range(n_steps)):
        stage = _Answers(confidence[k], wrong[k])
        least = best - max_loss * (n_steps - k) / n_steps
        candidates = np.quantile(confidence[k], levels, method="inverted_cdf", weights=weight)
        for cut in [*np.unique(candidates), np.inf]:
            joined = stage.keep_above(cut, answers)
            if cut == np.inf or (best > 0 and _worth(joined, target, weight) >= least):
                break
        answers = joined
        cuts.insert(0, float(cut))
    return tuple(cuts)


def _worth(answers: _Answers, target: float | None, weight: FloatArray | None) -> float:
    """Return the coverage that could be certified at a risk, or the accuracy without a target."""
    if target is None:
        return 1.0 - float(np.average(answers.wrong, weights=weight))
    outcomes = Outcomes(answers.wrong.astype(np.float64), answers.confidence, weight)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    rule = combined_risk if weight is None else empirical_risk
    passing = rule(curve, target, _DELTA, _LEAST_COVERAGE)
    coverage, _ = curve.working_point(last_passed(passing))
    return coverage


def check_plan(target: Any, max_loss: Any, calibration: Any) -> float | None:
    """Return the target of a plan, checked with its other parameters."""
    check_number("max_loss", max_loss, 0.0, 1.0)
    if calibration is not None:
        check_calibration(calibration, CALIBRATORS)
    if target is None:
        return None
    return check_risk_limit(check_number("target", target, 0.0, 1.0, closed="neither"))


def make_cascade(
    stages: Mapping[str, Predictions],
    costs: Any,
    target: float | None,
    max_loss: float,
    calibration: Any,
) -> Cascade:
    """Return the rule of a cascade from predictions for rows that its stages have not seen.

    The other parameters are checked; the weights are those of the first stage.
    """
    names = tuple(stages)
    if costs is None:
        costs = range(len(names))
    costs = check_stages_named(names, costs)
    ratings = [_rate_stage(part, calibration) for part in stages.values()]
    maps, confidence, wrong = zip(*ratings, strict=True)
    weight = stages[names[0]].sample_weight
    cuts = plan_cuts(confidence, wrong, target, max_loss, weight)
    if min(cuts) == np.inf:
        maps = (None,) * len(names)  # it then answers exactly as its last stage does alone
        warn_user(
            f"The cascade saves nothing: on the rows that plan it, no cut of {names[0]!r} loses "
            f"less than max_loss={max_loss:g}, so every case goes to {names[-1]!r}."
        )
    return Cascade(names, cuts, costs, maps)


def _rate_stage(
    part: Predictions, calibration: Any
) -> tuple[Calibration | None, FloatArray, BoolArray]:
    """Return how a stage is calibrated, and by that its confidence and errors."""
    table = scores_of(part)
    fitted = None
    if calibration is not None:
        fitted = _calibrate_stage(part, calibration)
        table = calibrate_stage(fitted.applied(), table)
    answers = part.y_pred if part.y_proba is None else table.argmax(axis=1)
    return fitted, table.max(axis=1).astype(np.float64), answers != part.y_true


def _calibrate_stage(part: Predictions, calibration: Any) -> Calibration:
    """Return what calibrates a stage's probabilities, or the confidence in its answers."""
    table = scores_of(part)
    weight = part.sample_weight
    if part.y_proba is None:
        confidence = table[:, 0]
        right = (part.y_pred == part.y_true).astype(np.float64)
        bounded = bool(np.all((confidence >= 0) & (confidence <= 1)))
        return ConfidenceCalibration.fit(
            calibration, confidence, right, weight, is_probability=bounded
        )
    has_class = part.y_true >= 0
    if weight is not None:
        weight = weight[has_class]
    return ClassCalibration.fit(
        calibration,
        "predict_proba",
        table[has_class],
        part.y_true[has_class],
        table.shape[1],
        weight,
    )


def join_stages(
    stages: Mapping[str, Predictions],
    *,
    target: float | None = None,
    costs: Any = None,
    max_loss: float = 0.01,
    calibration: Any = "smooth_isotonic",
) -> Predictions:
    """Join the predictions of a cheap model and stronger ones for the same rows into a cascade.

    A third of the rows, drawn by chance with the seed 0, sets the rule: how each stage is
    calibrated, and where it keeps a case. The others are returned with what the cascade answers, so
    that they can certify a threshold.

    Parameters
    ----------
    stages : dict of Predictions
        As for :class:`CascadeClassifier`, by name, the cheapest first: the probabilities of the
        same rows in the same order, or answers with a confidence. Of judged answers
        (:meth:`Predictions.from_verdicts`) the cases count that were judged in all stages.
    target, costs, max_loss, calibration
        As for :class:`CascadeClassifier`.

    Returns
    -------
    Predictions
        With the `cascade`, which the policy of :func:`select_threshold` takes over.

    Raises
    ------
    ValueError
        If the stages hold other rows or classes than the first, or some of them no probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Predictions, join_stages, select_threshold
    >>> rng = np.random.default_rng(0)
    >>> y, easy = rng.integers(0, 2, 3000), rng.random(3000) < .6
    >>> sure = np.where(easy, .99, .6)
    >>> right = rng.random(3000) < sure
    >>> cheap = np.where((y == 1) == right, sure, 1 - sure)
    >>> strong = np.where((y == 1) == (rng.random(3000) < .99), .99, .01)
    >>> joined = join_stages({"cheap": Predictions.from_proba(y, cheap),
    ...                       "strong": Predictions.from_proba(y, strong)}, target=.05)
    >>> policy = select_threshold(joined, objective="risk", target=.05).policy
    >>> bool(policy.expected_costs["asked"]["strong"] < .5)
    True
    """
    target = check_plan(target, max_loss, calibration)
    parts = check_stages(stages)
    stages = dict(zip(stages, parts, strict=True))
    plans = draw_rows(len(parts[0]), _EVERY, _SEED)
    planning = {name: part.take(plans) for name, part in stages.items()}
    rule = make_cascade(planning, costs, target, max_loss, calibration)
    return rule.join({name: part.take(~plans) for name, part in stages.items()})


def certifying(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that :func:`join_stages` keeps; the others set the rule."""
    plans = draw_rows(len(table), _EVERY, _SEED)
    return table[~plans]
