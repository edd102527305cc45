"""The one table of metrics: names, functions and what is known about each.

Scorers, tuner objectives, :func:`evaluate`, the documentation's table and the tests all
read it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skselect import _validation as check
from skselect.curves import RiskCoverageCurve
from skselect.metrics import _areas, _honesty, _threshold


@dataclass(frozen=True)
class MetricSpec:
    """What the library knows about one metric.

    Parameters
    ----------
    name : str
        Short name, without ``_score``; scorers of losses put ``neg_`` before it.
    function : callable
        The public function of labels and probabilities.
    kernel : callable
        ``kernel(outcomes or curve, **parameters) -> float``.
    greater_is_better : bool
    range : str
        The values it can take.
    needs : {"outcomes", "curve"}
        What the kernel reads.
    at_threshold : bool
        Whether the kernel takes a threshold.
    reads_probability : bool
        Whether the confidence must be a probability of being right.
    scale_free : bool
        Whether multiplying all weights by a constant changes nothing.
    worst : float
        What a scorer returns (before the sign) when it must not reward: nothing accepted,
        or less than `min_coverage`.
    undefined : str
        When the metric has no value, and what is returned then.
    reference : str
    registered : bool
        Whether the name is a scoring string.
    """

    name: str
    function: Callable[..., float]
    kernel: Callable[..., float]
    greater_is_better: bool
    range: str
    needs: str
    reference: str
    undefined: str
    at_threshold: bool = False
    reads_probability: bool = False
    scale_free: bool = True
    worst: float = float("nan")
    registered: bool = False

    @property
    def scorer_name(self) -> str:
        """The name of its scorer, where larger is always better."""
        return self.name if self.greater_is_better else f"neg_{self.name}"


def check_parameters(spec: MetricSpec, parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that the metric does not have, and a threshold it cannot take."""
    known = inspect.signature(spec.kernel).parameters
    own = list(known)[1:]  # the first one is what is scored
    for key in parameters:
        if key not in own:
            raise ValueError(
                f"{key}: the metric {spec.name!r} has no such parameter; it has {own}."
            )
    for key in own:
        if known[key].default is inspect.Parameter.empty and key not in parameters:
            raise ValueError(f"{key} is missing: the metric {spec.name!r} needs it.")
    if "threshold" in parameters:
        check.check_threshold(parameters["threshold"])
        if spec.name in ("cwsa", "cwsa_plus"):
            check.check_cwsa_threshold(parameters["threshold"])


_CWSA = "arXiv 2505.18622"
_CSR = "arXiv 2605.01796"
_AUGRC = "Traub et al. 2024"
_AURC = "Geifman et al. 2019"
_Curve = RiskCoverageCurve
_NEVER = "always defined"


def _spec(
    name: str, function: Callable[..., float], kernel: Callable[..., float], **known: Any
) -> MetricSpec:
    return MetricSpec(name=name, function=function, kernel=kernel, **known)


_TABLE = [
    _spec(
        "coverage", _threshold.coverage_score, _threshold.coverage,
        greater_is_better=True, range="[0, 1]", needs="outcomes", at_threshold=True, worst=0.0,
        undefined="nothing accepted: 0", reference="El-Yaniv & Wiener 2010", registered=True,
    ),
    _spec(
        "selective_accuracy", _threshold.selective_accuracy_score, _threshold.selective_accuracy,
        greater_is_better=True, range="[0, 1]", needs="outcomes", at_threshold=True, worst=0.0,
        undefined="nothing accepted: nan; scorer 0", reference="Geifman & El-Yaniv 2017",
        registered=True,
    ),
    _spec(
        "selective_risk", _threshold.selective_risk_score, _threshold.selective_risk,
        greater_is_better=False, range="[0, 1]", needs="outcomes", at_threshold=True, worst=1.0,
        undefined="nothing accepted: nan; scorer -1", reference="Geifman & El-Yaniv 2017",
    ),
    _spec(
        "generalized_risk", _threshold.generalized_risk_score, _threshold.generalized_risk,
        greater_is_better=False, range="[0, 1]", needs="outcomes", at_threshold=True, worst=1.0,
        undefined="nothing accepted: 0; scorer -1", reference=_AUGRC,
    ),
    _spec(
        "selective_cost", _threshold.selective_cost_score, _threshold.selective_cost,
        greater_is_better=False, range="[0, max(1, d)]", needs="outcomes", at_threshold=True,
        worst=1.0, undefined="nothing accepted: d, the cost of abstaining; scorer -1",
        reference="Chow 1970", registered=True,
    ),
    _spec(
        "cwsa", _threshold.cwsa_score, _threshold.cwsa,
        greater_is_better=True, range="[-1, 1]", needs="outcomes", at_threshold=True, worst=-1.0,
        undefined="nothing accepted: 0; scorer -1", reference=_CWSA, registered=True,
    ),
    _spec(
        "cwsa_plus", _threshold.cwsa_plus_score, _threshold.cwsa_plus,
        greater_is_better=True, range="[0, 1]", needs="outcomes", at_threshold=True, worst=0.0,
        undefined="nothing accepted: 0; scorer 0", reference=_CWSA, registered=True,
    ),
    _spec(
        "aurc", _areas.aurc_score, _Curve.aurc,
        greater_is_better=False, range="[0, 1]", needs="curve", scale_free=False,
        undefined="no errors: 0", reference=_AURC, registered=True,
    ),
    _spec(
        "eaurc", _areas.eaurc_score, _Curve.eaurc,
        greater_is_better=False, range="[0, 1]", needs="curve", scale_free=False,
        undefined="no errors: 0", reference=_AURC, registered=True,
    ),
    _spec(
        "naurc", _areas.naurc_score, _Curve.naurc,
        greater_is_better=False, range="[0, inf)", needs="curve", scale_free=False,
        undefined="all losses equal: nan", reference="Cattelan & Silva 2024",
    ),
    _spec(
        "augrc", _areas.augrc_score, _Curve.augrc,
        greater_is_better=False, range="[0, 0.5]", needs="curve",
        undefined="no errors: 0", reference=_AUGRC, registered=True,
    ),
    _spec(
        "aumcc", _areas.aumcc_score, _areas.aumcc,
        greater_is_better=True, range="[-1, 1]", needs="curve",
        undefined="coverage never moves: 0 (trapezoid)", reference=_CWSA,
    ),
    _spec(
        "accuracy_rejection_auc", _areas.accuracy_rejection_auc_score,
        _areas.accuracy_rejection_auc,
        greater_is_better=True, range="[0, 1]", needs="curve", scale_free=False,
        undefined="no errors: 1", reference="Nadeem et al. 2009",
    ),
    _spec(
        "risk_at_coverage", _areas.risk_at_coverage_score, _Curve.risk_at_coverage,
        greater_is_better=False, range="[0, 1]", needs="curve",
        undefined=_NEVER, reference="Geifman & El-Yaniv 2017",
    ),
    _spec(
        "coverage_at_risk", _areas.coverage_at_risk_score, _Curve.coverage_at_risk,
        greater_is_better=True, range="[0, 1]", needs="curve",
        undefined="no threshold meets the risk: 0", reference="Geifman & El-Yaniv 2017",
    ),
    _spec(
        "review_rate_at_reliability", _areas.review_rate_at_reliability_score,
        _areas.review_rate_at_reliability,
        greater_is_better=False, range="[0, 1]", needs="curve",
        undefined="no threshold is reliable enough: 1", reference="CAU paper, eq. 14",
    ),
    _spec(
        "cw_accuracy", _honesty.cw_accuracy_score, _honesty.cw_accuracy,
        greater_is_better=True, range="[0, 1]", needs="outcomes", reads_probability=True,
        undefined="all confidences 0: nan", reference=_CSR, registered=True,
    ),
    _spec(
        "csr", _honesty.csr_score, _honesty.csr,
        greater_is_better=False, range="[0, inf)", needs="outcomes", reads_probability=True,
        undefined="no errors: 0", reference=_CSR,
    ),
    _spec(
        "ece", _honesty.expected_calibration_error, _honesty.expected_calibration_error_of,
        greater_is_better=False, range="[0, 1]", needs="outcomes", reads_probability=True,
        undefined=_NEVER, reference="Guo et al. 2017", registered=True,
    ),
]  # fmt: skip

#: All metrics by their short name.
SPECS: dict[str, MetricSpec] = {spec.name: spec for spec in _TABLE}
