"""How much each row moves a metric: influence values, and standard errors from them.

A kernel returns the estimate and one value per row with mean zero. Their scatter, divided
by the root of the number of rows, is the standard error; their differences between two
models on the same rows compare the models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skselect import _validation as check
from skselect._typing import FloatArray, IntArray
from skselect.metrics import _threshold
from skselect.metrics._calibration_tests import ecd_terms
from skselect.metrics._evaluate import Judged
from skselect.outcomes import Outcomes


@dataclass(frozen=True, eq=False)
class Influence:
    """An estimate, what each row adds to its error, and the scale on which it is normal.

    Parameters
    ----------
    estimate : float
    values : ndarray of shape (n,)
    scale : {"identity", "signed share", "log", "logit", "proportion"}
        "signed share": normal, but within [-1, 1].
        "proportion": a share of `n_trials` independent rows.
    n_trials : float or None
    """

    estimate: float
    values: FloatArray
    scale: str
    n_trials: float | None = None


def standard_error(values: FloatArray, cluster: IntArray | None = None) -> float:
    """Return the standard error of a mean of influence values, rows or clusters independent."""
    n = len(values)
    sums = values if cluster is None else np.bincount(cluster, weights=values)
    m = len(sums)
    if m < 2:
        return math.nan
    return float(np.sqrt(np.sum(sums * sums) * m / (m - 1.0)) / n)


def _mean(terms: FloatArray, scale: str) -> Influence:
    estimate = float(np.mean(terms))
    return Influence(estimate, terms - estimate, scale)


def _ratio(over: FloatArray, under: FloatArray, scale: str) -> Influence | None:
    """Return the influence of sum(over)/sum(under) by the delta method."""
    total = float(np.sum(under))
    if not total > 0:
        return None
    estimate = float(np.sum(over)) / total
    return Influence(estimate, (over - estimate * under) * (len(under) / total), scale)


def _share(events: FloatArray, trials: FloatArray) -> Influence | None:
    """Return the influence of a share of the rows in `trials`, 0/1 or graded."""
    found = _ratio(events, trials, "logit")
    if found is None or check.is_graded(events):
        return found
    return replace(found, scale="proportion", n_trials=float(np.sum(trials)))


# At a threshold --------------------------------------------------------------------------


def _accepted(outcomes: Outcomes, threshold: float) -> FloatArray:
    return _threshold.accepted_rows(outcomes, threshold).astype(np.float64)


def _coverage(judged: Judged, threshold: float = 0.5) -> Influence | None:
    accepted = _accepted(judged.outcomes, threshold)
    return _share(accepted, np.ones_like(accepted))


def _selective_risk(judged: Judged, threshold: float = 0.5) -> Influence | None:
    accepted = _accepted(judged.outcomes, threshold)
    return _share(accepted * judged.outcomes.loss, accepted)


def _selective_accuracy(judged: Judged, threshold: float = 0.5) -> Influence | None:
    accepted = _accepted(judged.outcomes, threshold)
    return _share(accepted * (1.0 - judged.outcomes.loss), accepted)


def _generalized_risk(judged: Judged, threshold: float = 0.5) -> Influence | None:
    silent = _accepted(judged.outcomes, threshold) * judged.outcomes.loss
    return _share(silent, np.ones_like(silent))


def _selective_cost(
    judged: Judged, threshold: float = 0.5, abstention_cost: float = 0.1
) -> Influence:
    accepted = _accepted(judged.outcomes, threshold)
    return _mean(accepted * judged.outcomes.loss + abstention_cost * (1.0 - accepted), "identity")


def _cwsa_of(
    judged: Judged, threshold: float, normalize: str, sign: float, scale: str
) -> Influence | None:
    accepted = _accepted(judged.outcomes, threshold)
    gain = (1.0 - judged.outcomes.loss) + sign * judged.outcomes.loss
    terms = _threshold.cwsa_weight(judged.outcomes, threshold) * gain
    return _mean(terms, scale) if normalize == "all" else _ratio(terms, accepted, scale)


def _cwsa(judged: Judged, threshold: float = 0.5, normalize: str = "selected") -> Influence | None:
    return _cwsa_of(judged, threshold, normalize, -1.0, "signed share")


def _cwsa_plus(
    judged: Judged, threshold: float = 0.5, normalize: str = "selected"
) -> Influence | None:
    return _cwsa_of(judged, threshold, normalize, 0.0, "logit")


# Areas -----------------------------------------------------------------------------------


class _Ranked:
    """Rows in blocks of equal confidence, surest first: what precedes each row's block."""

    def __init__(self, judged: Judged) -> None:
        self.curve = curve = judged.curve
        self.block = curve.n_blocks_accepted(judged.outcomes.confidence) - 1
        self.before = curve.accepted_weight - curve.block_weight
        self.loss_before = curve.accepted_loss - curve.block_loss

    def per_block(self, values: FloatArray) -> FloatArray:
        """Return the mean over the positions of each block."""
        starts = self.before.astype(np.int64)
        return np.add.reduceat(values, starts) / self.curve.block_weight


def _augrc(
    judged: Judged, estimator: str = "trapezoid", coverage_range: Any = None
) -> Influence | None:
    """Return the pseudo-values of the U-statistic (its kernel made symmetric)."""
    n = len(judged.outcomes)
    if coverage_range is not None or n < 3:
        return None
    ranked, loss = _Ranked(judged), judged.outcomes.loss
    size, block = ranked.curve.block_weight, ranked.block
    lower = n - ranked.before - size + (size - 1.0) / 2.0  # ties count by half
    upper_loss = ranked.loss_before + ranked.curve.block_loss / 2.0
    pseudo = (loss * lower[block] + upper_loss[block] - loss / 2.0) / (n - 1.0)
    values = (pseudo - np.mean(pseudo)) * ((n - 1.0) / (n - 2.0))
    estimate = ranked.curve.augrc(estimator=estimator)
    return Influence(estimate, values, "log")


def _aurc(judged: Judged, estimator: str = "empirical", ties: str = "expected") -> Influence | None:
    """Return R_j + l_j sum_{k>=j} 1/k - sum_{k>=j} R_k/k - AURC, averaged inside tie blocks."""
    if estimator != "empirical" or ties != "expected":
        return None
    ranked, loss = _Ranked(judged), judged.outcomes.loss
    curve = ranked.curve
    rank = np.arange(1.0, len(judged.outcomes) + 1.0)
    place = np.repeat(np.arange(len(curve)), curve.block_rows)
    rho = curve.block_loss / curve.block_weight
    risk = (ranked.loss_before[place] + rho[place] * (rank - ranked.before[place])) / rank
    later = np.cumsum((1.0 / rank)[::-1])[::-1]
    later_risk = np.cumsum((risk / rank)[::-1])[::-1]
    fixed = ranked.per_block(risk - later_risk)[ranked.block]
    values = fixed + loss * ranked.per_block(later)[ranked.block]
    estimate = curve.aurc()
    return Influence(estimate, values - np.mean(values), "log")


def _eaurc(judged: Judged) -> Influence | None:
    error = float(np.mean(judged.outcomes.loss))
    area = _aurc(judged)
    if area is None or not error < 1 or check.is_graded(judged.outcomes.loss):
        return None
    best = -math.log1p(-error) * (judged.outcomes.loss - error)
    estimate = judged.curve.eaurc()
    return Influence(estimate, area.values - best, "log")


def _accuracy_rejection_auc(judged: Judged, estimator: str = "empirical") -> Influence | None:
    area = _aurc(judged, estimator)
    if area is None:
        return None
    return Influence(1.0 - area.estimate, -area.values, "logit")


def _failure_auroc(judged: Judged) -> Influence | None:
    """Return DeLong's placements, scaled so that the standard error is DeLong's."""
    wrong = judged.outcomes.loss == 1
    n_wrong, n = int(np.sum(wrong)), len(judged.outcomes)
    n_right = n - n_wrong
    if min(n_wrong, n_right) < 2 or np.any(judged.outcomes.loss[~wrong] != 0):
        return None
    ranked = _Ranked(judged)
    curve = ranked.curve
    right = curve.block_weight - curve.block_loss
    right_above = (np.cumsum(right) - right / 2.0)[ranked.block] / n_right
    wrong_below = (n_wrong - ranked.loss_before - curve.block_loss / 2.0)[ranked.block] / n_wrong
    estimate = float(np.mean(right_above[wrong]))
    centred = np.where(wrong, right_above, wrong_below) - estimate
    factor = np.where(
        wrong,
        math.sqrt(n_wrong / (n_wrong - 1)) / n_wrong,
        math.sqrt(n_right / (n_right - 1)) / n_right,
    )
    return Influence(estimate, n * factor * centred, "logit")


# Confidence as a probability -------------------------------------------------------------


def _cw_accuracy(judged: Judged) -> Influence | None:
    right = judged.outcomes.confidence * (1.0 - judged.outcomes.loss)
    return _ratio(right, judged.outcomes.confidence, "logit")


def _top_label_brier(judged: Judged) -> Influence:
    return _mean((1.0 - judged.outcomes.loss - judged.outcomes.confidence) ** 2, "log")


def _ecd(judged: Judged, eps: float = 1e-8) -> Influence:
    return _mean(ecd_terms(judged.outcomes, eps), "identity")


#: Metrics with a closed form: ``influence(judged, **parameters)``, None where it has none.
INFLUENCES: Mapping[str, Callable[..., Influence | None]] = {
    "coverage": _coverage,
    "selective_risk": _selective_risk,
    "selective_accuracy": _selective_accuracy,
    "generalized_risk": _generalized_risk,
    "selective_cost": _selective_cost,
    "cwsa": _cwsa,
    "cwsa_plus": _cwsa_plus,
    "augrc": _augrc,
    "aurc": _aurc,
    "eaurc": _eaurc,
    "accuracy_rejection_auc": _accuracy_rejection_auc,
    "failure_auroc": _failure_auroc,
    "cw_accuracy": _cw_accuracy,
    "top_label_brier": _top_label_brier,
    "ecd": _ecd,
}
