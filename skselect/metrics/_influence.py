"""How much each row moves a metric: influence values, and standard errors from them.

A kernel returns the estimate and one value per row with mean zero. Their scatter, divided
by the root of the number of rows, is the standard error; their differences between two
models on the same rows compare the models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skselect import _validation as check
from skselect._typing import FloatArray, IntArray
from skselect.curves import RiskCoverageCurve
from skselect.metrics import _threshold
from skselect.metrics._calibration_tests import ecd_terms
from skselect.metrics._clusters import clustered_error
from skselect.metrics._evaluate import Judged, JudgedCurve
from skselect.metrics._ranked_influence import (
    Lines,
    RankedInfluence,
    augrc_lines,
    aurc_lines,
    auroc_lines,
    eaurc_lines,
    negative_aurc_lines,
)
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

    def standard_error(self, cluster: IntArray | None = None) -> float:
        """Return the standard error, rows or clusters being independent."""
        return clustered_error(self.values, cluster)


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


def _augrc(
    judged: Judged | JudgedCurve, estimator: str = "trapezoid", coverage_range: Any = None
) -> RankedInfluence | None:
    if coverage_range is not None or judged.curve.n_rows < 3:
        return None
    return _ranked(judged, judged.curve.augrc(estimator=estimator), "log", augrc_lines)


def _aurc(
    judged: Judged | JudgedCurve, estimator: str = "empirical", ties: str = "expected"
) -> RankedInfluence | None:
    if estimator != "empirical" or ties != "expected":
        return None
    return _ranked(judged, judged.curve.aurc(), "log", aurc_lines)


def _eaurc(judged: Judged | JudgedCurve) -> RankedInfluence | None:
    if not judged.curve.mean_loss < 1 or judged.curve.is_graded:
        return None
    return _ranked(judged, judged.curve.eaurc(), "log", eaurc_lines)


def _accuracy_rejection_auc(
    judged: Judged | JudgedCurve, estimator: str = "empirical"
) -> RankedInfluence | None:
    if estimator != "empirical":
        return None
    return _ranked(judged, 1.0 - judged.curve.aurc(), "logit", negative_aurc_lines)


def _failure_auroc(judged: Judged | JudgedCurve) -> RankedInfluence | None:
    curve = judged.curve
    if curve.is_graded or min(curve.sums.loss, curve.n_rows - curve.sums.loss) < 2:
        return None
    return _ranked(judged, curve.sums.auroc, "logit", auroc_lines)


def _ranked(
    judged: Judged | JudgedCurve,
    estimate: float,
    scale: str,
    lines: Callable[[RiskCoverageCurve], Iterator[Lines]],
) -> RankedInfluence:
    rows = judged.outcomes if isinstance(judged, Judged) else None
    return RankedInfluence(estimate, scale, judged.curve, lines, rows)


# Confidence as a probability -------------------------------------------------------------


def _cw_accuracy(judged: Judged) -> Influence | None:
    right = judged.outcomes.confidence * (1.0 - judged.outcomes.loss)
    return _ratio(right, judged.outcomes.confidence, "logit")


def _top_label_brier(judged: Judged) -> Influence:
    return _mean((1.0 - judged.outcomes.loss - judged.outcomes.confidence) ** 2, "log")


def _ecd(judged: Judged, eps: float = 1e-8) -> Influence:
    return _mean(ecd_terms(judged.outcomes, eps), "identity")


#: Metrics of the ranking: their standard errors need the curve alone.
RANKED: Mapping[str, Callable[..., RankedInfluence | None]] = {
    "augrc": _augrc,
    "aurc": _aurc,
    "eaurc": _eaurc,
    "accuracy_rejection_auc": _accuracy_rejection_auc,
    "failure_auroc": _failure_auroc,
}

#: Metrics with a closed form: ``influence(judged, **parameters)``, None where it has none.
INFLUENCES: Mapping[str, Callable[..., Influence | RankedInfluence | None]] = {
    "coverage": _coverage,
    "selective_risk": _selective_risk,
    "selective_accuracy": _selective_accuracy,
    "generalized_risk": _generalized_risk,
    "selective_cost": _selective_cost,
    "cwsa": _cwsa,
    "cwsa_plus": _cwsa_plus,
    **RANKED,
    "cw_accuracy": _cw_accuracy,
    "top_label_brier": _top_label_brier,
    "ecd": _ecd,
}
