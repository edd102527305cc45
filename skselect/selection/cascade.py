"""Where the stages of a cascade keep a case: a rule from rows that do not certify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib.arrays import BoolArray, FloatArray, draw_rows
from skselect._lib.checks import warn_user
from skselect._lib.checks.options import check_calibration, check_number, check_risk_limit
from skselect._lib.decide import calibrate_stage
from skselect.calibration._calibrators import CALIBRATORS
from skselect.calibration._scopes import Calibration, ClassCalibration, ConfidenceCalibration
from skselect.curve.curve import RiskCoverageCurve
from skselect.policy.cascade import Cascade, check_stages, check_stages_named, scores_of
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions
from skselect.thresholds._rules import combined_risk, empirical_risk, last_passed

#: How many cuts are tried for each stage: quantiles of its confidence.
_N_CUTS = 50
#: One row in three of a table sets the rule, drawn with this seed.
_EVERY, _SEED = 3, 0
#: A planned threshold is certified like this, and accepts at least a tenth.
_DELTA, _LEAST_COVERAGE = 0.05, 0.1


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
    own, lost = confidence[-1], wrong[-1]
    best, n_steps = _worth(own, lost, target, weight), len(confidence) - 1
    cuts: list[float] = []
    levels = np.linspace(0.0, 1.0, _N_CUTS)
    for k in reversed(range(n_steps)):
        least = best - max_loss * (n_steps - k) / n_steps
        tried = np.quantile(confidence[k], levels, method="inverted_cdf", weights=weight)
        for cut in [*np.unique(tried), np.inf]:
            keeps = confidence[k] >= cut
            both = np.where(keeps, confidence[k], own), np.where(keeps, wrong[k], lost)
            if cut == np.inf or (best > 0 and _worth(*both, target, weight) >= least):
                break
        own, lost = both
        cuts.insert(0, float(cut))
    return tuple(cuts)


def _worth(
    confidence: FloatArray, wrong: BoolArray, target: float | None, weight: FloatArray | None
) -> float:
    """Return the coverage that could be certified at a risk, or the accuracy without a target."""
    if target is None:
        return 1.0 - float(np.average(wrong, weights=weight))
    outcomes = Outcomes(wrong.astype(np.float64), confidence, weight)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    rule = combined_risk if weight is None else empirical_risk
    passing = rule(curve, target, _DELTA, _LEAST_COVERAGE)
    return curve.working_point(last_passed(passing))[0]


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
    names, parts = tuple(stages), list(stages.values())
    costs = check_stages_named(names, range(len(names)) if costs is None else costs)
    rated = (_rate_stage(part, calibration) for part in parts)
    maps, confidence, wrong = zip(*rated, strict=True)
    cuts = plan_cuts(confidence, wrong, target, max_loss, parts[0].sample_weight)
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
    table, codes, weight = scores_of(part), part.y_true, part.sample_weight
    fitted: Calibration | None = None
    if calibration is not None and part.y_proba is None:
        confidence, right = table[:, 0], (part.y_pred == codes).astype(np.float64)
        bounded = bool(np.all((confidence >= 0) & (confidence <= 1)))
        fitted = ConfidenceCalibration.fit(
            calibration, confidence, right, weight, is_probability=bounded
        )
    elif calibration is not None:
        known = codes >= 0
        own = None if weight is None else weight[known]
        fitted = ClassCalibration.fit(
            calibration, "predict_proba", table[known], codes[known], table.shape[1], own
        )
    if fitted is not None:
        table = calibrate_stage(fitted.applied(), table)
    answers = part.y_pred if part.y_proba is None else table.argmax(axis=1)
    return fitted, table.max(axis=1).astype(np.float64), answers != codes


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
    stages = dict(zip(stages, check_stages(stages), strict=True))
    plans = draw_rows(len(next(iter(stages.values()))), _EVERY, _SEED)
    planning = {name: part.take(plans) for name, part in stages.items()}
    rule = make_cascade(planning, costs, target, max_loss, calibration)
    return rule.join({name: part.take(~plans) for name, part in stages.items()})


def certifying(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that :func:`join_stages` keeps; the others set the rule."""
    return table[~draw_rows(len(table), _EVERY, _SEED)]
