"""Which promises of a policy are watched, and what the cases so far say against each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skselect._lib.checks.options import check_risk_target
from skselect._lib.typing import FloatArray
from skselect.exceptions import ArgumentError
from skselect.monitoring.batches import total
from skselect.monitoring.evidence import Evidence, advance, bets_on_cases
from skselect.policy.certificate import Certificate
from skselect.policy.policy import AbstentionPolicy
from skselect.selection.kept import is_promise


@dataclass
class Promise:
    """One promise and the bets against it; target and losses as shares of the largest cost.

    Parameters
    ----------
    group : label, tuple of labels or None
    target, delta : float
    evidence : Evidence
    weight, loss : float
        Sums over its cases of known outcome: of weights, and of weight times loss.
    n_known : int
        How many these are.
    alarm_at : int, default=None
        The first of them, counted from 1, after which the evidence reached 1 / `delta`.
    alarm_when : float, default=None
        When that was decided.
    """

    group: Any
    target: float
    delta: float
    evidence: Evidence = field(default_factory=Evidence)
    weight: float = 0.0
    loss: float = 0.0
    n_known: int = 0
    alarm_at: int | None = None
    alarm_when: float | None = None

    def bet(self, loss: FloatArray, weight: FloatArray, when: FloatArray) -> FloatArray:
        """Take further outcomes; return the wealth after each."""
        self.evidence, wealth = advance(self.evidence, bets_on_cases(self.target), loss, weight)
        rich = np.flatnonzero(wealth >= 1.0 / self.delta)
        if self.alarm_at is None and len(rich):
            self.alarm_at = self.n_known + int(rich[0]) + 1
            self.alarm_when = float(when[rich[0]])
        self.n_known += len(loss)
        self.weight += total(weight)
        self.loss += total(weight * loss)
        return wealth

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        group = list(self.group) if isinstance(self.group, tuple) else self.group
        return {**vars(self), "group": group, "evidence": self.evidence.to_dict()}

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take what cases have made of it from :meth:`to_dict`."""
        for name in ("weight", "loss", "n_known", "alarm_at", "alarm_when"):
            setattr(self, name, stored[name])
        self.evidence = Evidence.from_dict(stored["evidence"])


def find_watched(
    policy: AbstentionPolicy, target: float | None, delta: float | None
) -> tuple[str, list[Promise]]:
    """Return which loss is watched, and the promises."""
    certificates = _certificates_of_risk(policy)
    loss = policy.rule.default_loss
    if target is None:
        made = {
            group: certificate
            for group, certificate in certificates.items()
            if certificate is not None
            and certificate.objective == "risk"
            and is_promise(certificate)
        }
        _check_any(made, certificates)
        loss = next(iter(made.values())).loss
        certificates = {**made}
    elif not certificates:
        raise ValueError("policy: it hands over all cases of every subgroup; nothing is watched.")
    unit = policy.rule.unit if loss == "cost" else 1.0
    share = (0.05 if delta is None else delta) / len(certificates)
    promises = []
    for group, certificate in certificates.items():
        largest, level = target, share
        if target is None and certificate is not None:
            largest = certificate.target
            level = certificate.delta if delta is None else share
        promises.append(Promise(group, check_risk_target(largest, loss, unit) / unit, level))
    return loss, promises


def _certificates_of_risk(policy: AbstentionPolicy) -> dict[Any, Certificate | None]:
    """Return the certificate about all cases, or that of each subgroup that is answered."""
    groups, certificate = policy.groups, policy.certificate
    if groups is not None:
        return {
            group: groups.certificates.get(group)
            for group, threshold in groups.thresholds.items()
            if threshold < math.inf
        }
    is_about_some = certificate is not None and bool(certificate.cases)
    return {None: None if is_about_some else certificate}


def _check_any(
    made: Mapping[Any, Certificate], certificates: Mapping[Any, Certificate | None]
) -> None:
    """Refuse a policy that promises nothing, where there is no target."""
    if made:
        return
    if any(one is not None and one.loss == "graded" for one in certificates.values()):
        raise ValueError(
            "policy: its certificate is about a loss of your own, which a policy does not hold. "
            "Pass target=, to watch the share of errors (or the costs)."
        )
    raise ArgumentError(
        "target",
        "target is missing: no certificate of this policy promises a largest risk. Say what to "
        "watch, such as target=0.05.",
    )
