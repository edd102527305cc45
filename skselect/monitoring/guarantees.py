"""Which guarantees of a policy labelled rows can test, and about which of the rows each is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard, TypeVar

import numpy as np

from skselect import objectives
from skselect._lib.arrays import IntArray, trusted
from skselect._lib.checks.options import check_count, check_delta
from skselect.exceptions import ArgumentError
from skselect.policy.certificate import Certificate
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions import predictions as predicting
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.outcomes import Outcomes, compute_loss, reviewer_loss
from skselect.predictions.predictions import Predictions
from skselect.selection.sample import Sample

#: A plan for more rows settles a check with this probability.
POWER = 0.8

T = TypeVar("T")


def is_guarantee(certificate: Certificate | None) -> TypeGuard[Certificate]:
    """Tell whether a certificate guarantees something that later labels can check."""
    return (
        certificate is not None
        and certificate.n_accepted > 0
        and certificate.guarantee == "high_probability"
        and not certificate.is_of_users_loss
    )


@dataclass(frozen=True)
class Schedule:
    """How many guarantees are tested together, and how often.

    Parameters
    ----------
    max_analyses : int or None
        As in :func:`~skselect.check_policy`.
    n_tests : int
        Guarantees that share a level evenly.
    n_occurring : int
        Those among them that are about a row.
    """

    max_analyses: int | None
    n_tests: int
    n_occurring: int

    @classmethod
    def of(cls, sizes: Sequence[int], max_analyses: int | None) -> Schedule:
        """Return the schedule of guarantees that are about so many rows each."""
        n_occurring = max(sum(n > 0 for n in sizes), 1)
        if max_analyses is not None:
            return cls(max_analyses, n_occurring, n_occurring)
        # A level that holds at all times is fixed before subgroups appear in a growing table.
        return cls(None, max(len(sizes), 1), n_occurring)

    @property
    def is_anytime(self) -> bool:
        """Whether one may look whenever rows were added."""
        return self.max_analyses is None

    def kept(self, n: int) -> int:
        """Return how many of `n` rows stay where further ones are added: none in a single check."""
        return 0 if self.max_analyses == 1 else n

    @property
    def power(self) -> float:
        """The chance that a plan for more rows shows a breach, so that all plans show theirs."""
        return 1.0 - (1.0 - POWER) / self.n_occurring

    def doubt(self, guarantee: objectives.Guarantee) -> float:
        """Return the chance that a guarantee which is kept is in doubt."""
        # What is broken is in doubt, too.
        return max(objectives.DOUBT / self.n_tests, guarantee.level)


@dataclass(frozen=True)
class Request:
    """What a policy is tested for: what it guarantees, or what a user names in its place.

    Parameters
    ----------
    kind : type of Guarantee, default=None
        None: that of the certificate.
    target : float, default=None
        It replaces the guaranteed one, and bounds the risk where nothing is guaranteed.
    delta : float, default=None
        It is shared evenly.
    deferred_error : float, default=None
        That of :class:`SystemRisk`.
    max_analyses : int or None, default=None
    """

    kind: type[objectives.Guarantee] | None = None
    target: float | None = None
    delta: float | None = None
    deferred_error: float | None = None
    max_analyses: int | None = None

    @classmethod
    def read(cls, objective: Any, target: Any, delta: Any, max_analyses: Any) -> Request:
        """Return a checked request."""
        kind, target, delta = objectives.read_guarantee(objective, target, delta)
        if delta is not None:
            check_delta(delta)
        if max_analyses is not None:
            check_count("max_analyses", max_analyses)
        deferred_error = getattr(objective, "deferred_error", None)
        return cls(kind, target, delta, deferred_error, max_analyses)

    def choose(
        self, listed: list[tuple[Certificate | None, T]]
    ) -> list[tuple[Certificate | None, T]]:
        """Return the certificates that there is to test, each with what stands beside it.

        Only guarantees with high probability count, about a loss that the policy knows. Those that
        cannot fail need no test beside others.
        """
        if self.target is not None:
            return listed
        guaranteed: list[tuple[Certificate | None, T]] = []
        failing: list[tuple[Certificate | None, T]] = []
        for certificate, beside in listed:
            if is_guarantee(certificate):
                guaranteed.append((certificate, beside))
                if certificate.can_fail:
                    failing.append((certificate, beside))
        return failing or guaranteed

    def guarantee(
        self,
        certificate: Certificate | None,
        rule: DecisionRule,
        schedule: Schedule,
        cases: Any = "",
    ) -> objectives.Guarantee:
        """Return what is tested where a certificate stands, on its cases.

        Its `delta` is the chance that is allowed for "broken" or "confirmed" to be wrong.
        """
        share = (0.05 if self.delta is None else self.delta) / schedule.n_tests
        if self.kind is None and is_guarantee(certificate):
            guarantee = self._take_from(certificate, share)
            loss = certificate.loss
        else:
            kind = self.kind or objectives.Risk
            guarantee = kind(self.target, delta=share)
            loss = rule.default_loss
            if isinstance(guarantee, objectives.SystemRisk):
                guarantee.deferred_error = self.deferred_error
        if isinstance(guarantee, objectives.SystemRisk):
            loss = "zero_one"
        guarantee.max_analyses = schedule.max_analyses or 1
        meaning = objectives.Loss.of(loss, rule)
        guarantee = guarantee.on(meaning, cases)
        guarantee.target = guarantee.checked_target(meaning)
        return guarantee

    def _take_from(self, certificate: Certificate, share: float) -> objectives.Guarantee:
        """Return what a certificate guarantees, with what is requested in its place."""
        target = certificate.target if self.target is None else self.target
        delta = certificate.delta if self.delta is None else share
        guarantee: objectives.Guarantee
        if certificate.overall_error is not None:  # what is left is about the machine alone
            guarantee = objectives.GeneralizedRisk(target - certificate.overall_error, delta=delta)
        else:
            guarantee = objectives.GUARANTEES[certificate.objective](target, delta=delta)
        if isinstance(guarantee, objectives.SystemRisk):
            guarantee.deferred_error = certificate.deferred_error
        if self.target is None:
            guarantee.since = certificate.since
        return guarantee


def find_guarantees(
    policy: AbstentionPolicy, sample: Sample, subgroups: Any, request: Request
) -> tuple[list[tuple[objectives.Guarantee, Sample]], Schedule]:
    """Return each guarantee that is tested, with the rows that it is about; and how often."""
    if policy.parts.by is None:
        listed = _list_of_all(policy, sample, request)
    else:
        listed = _list_by_group(policy, sample, subgroups)
    tested = request.choose(listed)
    schedule = Schedule.of([len(rows) for _, rows in tested], request.max_analyses)
    pairs = []
    for certificate, rows in tested:
        guarantee = request.guarantee(certificate, policy.rule, schedule, rows.cases)
        pairs.append((guarantee, _read_for(guarantee, rows, policy.rule)))
    return pairs, schedule


def find_requested(policy: AbstentionPolicy, request: Request) -> Sequence[Certificate | None]:
    """Return the certificates that are tested without subgroups: the first one for a target."""
    certificates = policy.parts.listed
    if request.target is None:
        return certificates or [None]
    if len(certificates) > 1 and request.kind is None:
        raise ArgumentError(
            "target",
            "target: this policy has several guarantees; name the one to test with its target, "
            "such as objective=Risk(0.03).",
        )
    return certificates[:1] or [None]


def _list_of_all(
    policy: AbstentionPolicy, sample: Sample, request: Request
) -> list[tuple[Certificate | None, Sample]]:
    """Return the certificates of the one threshold, each with the rows that it is about."""
    listed: list[tuple[Certificate | None, Sample]] = []
    for certificate in find_requested(policy, request):
        if certificate is None or not certificate.cases:
            listed.append((certificate, sample))
            continue
        rows = _rows_named(sample.source, certificate.cases)
        if rows is not None:
            listed.append((certificate, sample.take(rows, certificate.cases)))
    return listed or [(None, sample)]


def _list_by_group(
    policy: AbstentionPolicy, sample: Sample, subgroups: Any
) -> list[tuple[Certificate | None, Sample]]:
    """Return the certificate of each subgroup of which something is accepted, with its rows."""
    groups = policy.parts
    members = groups.members(sample.source.answers, subgroups)
    nowhere = np.empty(0, dtype=np.int64)
    listed = []
    for group in dict.fromkeys([*members, *groups.thresholds]):
        if groups.thresholds.get(group, math.inf) < math.inf:
            rows = sample.take(members.get(group, nowhere), groups.name(group))
            listed.append((groups.certificates.get(group), rows))
    return listed


def _rows_named(predictions: Predictions, cases: str) -> IntArray | None:
    """Return the rows that a certificate names, None where its name means no class."""
    for side in ("predicted", "true"):
        for label in predictions.classes.tolist():
            rows, name = predicting.rows_of_class(predictions, side, label)
            if name == cases:
                return np.flatnonzero(rows)
    return None


def _read_for(guarantee: objectives.Guarantee, rows: Sample, rule: DecisionRule) -> Sample:
    """Return rows with the losses that a guarantee counts.

    A reviewer's answers say more than a rate, so that they take its place.
    """
    missed = None
    if isinstance(guarantee, objectives.SystemRisk):
        missed = reviewer_loss(rows.source)
        if missed is not None:
            guarantee.deferred_error = None
        guarantee.check_reviewed(answered=missed is not None)
    kind = guarantee.about.kind
    outcomes = trusted(
        Outcomes,
        loss=compute_loss(rows.source, kind),
        confidence=rows.outcomes.confidence,
        reviewer_loss=missed,
        readings=rows.outcomes.readings,
    )
    is_graded = rule.has_graded_costs and guarantee.about.is_cost
    return replace(rows, outcomes=outcomes, is_graded=is_graded)
