"""What labelled rows show about the guarantees of a fixed policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeGuard, cast

import numpy as np
from scipy import special, stats

from skselect._lib.arrays import BoolArray, FloatArray
from skselect._lib.checks import shown
from skselect._lib.checks.rows import check_known, check_labels, encode_labels, refuse_weights
from skselect._lib.notebook import percent
from skselect.bounds._pointwise import (
    anytime_upper,
    betting_upper,
    bound_stakes,
    clopper_pearson_upper,
    least_count,
    log_evidence_below,
)
from skselect.curve.curve import RiskCoverageCurve
from skselect.objectives import (
    GUARANTEES,
    GeneralizedRisk,
    Guarantee,
    Loss,
    Risk,
    SystemRisk,
)
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Certificate
from skselect.policy.policy import (
    AbstentionPolicy,
    External,
    accept_answers,
    apply_policy,
    check_given_scores,
    count_at_quantiles,
    warn_if_far,
)
from skselect.policy.seen_rows import find_recorded
from skselect.predictions.confidence import LearnedScore, compute_confidence
from skselect.predictions.outcomes import compute_loss, reviewer_loss
from skselect.predictions.predictions import Predictions, read_rows, rows_of_class

# A notice spells out so many guarantees at most, and counts the others.
_MANY = 10
# A plan gives up above this number of rows, and settles a check with this probability.
_TOO_MANY, POWER = 10**9, 0.8


class Tested(NamedTuple):
    """What a policy is to keep, and which of the labelled rows it is about.

    Target and cases are those of a :class:`~skselect.policy.Certificate`; `delta`
    is the chance that is allowed for a wrong verdict, `max_analyses` as in
    :func:`~skselect.check_policy`, and `power` the chance that a plan for more rows settles it.
    """

    kind: type[Guarantee]
    target: float
    delta: float
    loss: Loss
    cases: str
    rows: BoolArray
    max_analyses: int | None
    power: float

    @property
    def level(self) -> float:
        """The chance of a wrong verdict that one analysis may use."""
        return self.delta / (self.max_analyses or 1)


@dataclass(frozen=True)
class GuaranteeCheck:
    """What labelled rows show about one guarantee.

    Parameters
    ----------
    verdict : {"holds", "broken", "undecided"}
    objective : {"risk", "generalized_risk", "coverage", "system_risk"}
    target : float
        The guaranteed bound.
    delta : float
        Chance that the verdict is wrong, at most.
    loss : {"zero_one", "cost"}
    unit : float
        The largest cost; numbers below are in its units.
    cases : str
        Which cases it is about, "" for all.
    value, low, high : float
        What the target bounds, observed (nan without rows), and its bounds, each at `delta`.
    n, n_accepted, n_errors : int
        Rows that it is about, those that the policy accepts, and accepted ones with a loss (for
        "system_risk" also the deferred ones that the reviewer gets wrong).
    n_more : int or None
        About how many fresh labelled rows settle it with probability 0.8, if they have exactly
        the rate of errors of these: accepted rows for the objective "risk", rows of any kind for
        others. With several guarantees the probability is that of settling all. The rows are added
        to these (for ``max_analyses=1`` they are checked by themselves). 0 where it is settled;
        None where no number would do.
    max_analyses : int or None
        How often the growing table may be checked; None: as often as one likes.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import AbstentionPolicy, Predictions, check_policy
    >>> policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    >>> fresh = Predictions.from_proba([1] * 300, np.tile([.1, .9], (300, 1)), labels=[0, 1])
    >>> one = check_policy(policy, fresh, target=.02).guarantees[0]
    >>> one.statement
    'at most 2 % of its answers are wrong'
    >>> one.verdict, one.found
    ('holds', 'Found here: 0 % (0 of 300; time-uniform 90 % interval 0 % to 1.492 %).')
    """

    verdict: str
    objective: str
    target: float
    delta: float
    loss: str
    unit: float
    cases: str
    value: float
    low: float
    high: float
    n: int
    n_accepted: int
    n_errors: int
    n_more: int | None
    max_analyses: int | None = None

    @property
    def statement(self) -> str:
        """The guarantee in words."""
        return self.kind.describe(self.target, Loss(self.loss, self.unit), self.cases)

    @property
    def is_empty(self) -> bool:
        """Whether no row counts: none is accepted, and the others do not matter."""
        return self.kind.is_selective and not self.n_accepted

    @property
    def kind(self) -> type[Guarantee]:
        """The class of the objective."""
        return GUARANTEES[self.objective]

    @property
    def found(self) -> str:
        """What was found, as a sentence."""
        # How often what must be rare, or what must be frequent, occurs.
        kind, loss = self.kind, Loss(self.loss, self.unit)
        count, n = kind.count(self.n, self.n_accepted, self.n_errors)
        if n == 0:
            return "Found here: no such case."
        count = n - count if kind.is_least else count
        shares = loss.is_error or kind.is_least
        least, seen, most = (
            kind.amount(value, loss, up=up)
            for value, up in ((self.low, False), (self.value, None), (self.high, True))
        )
        counted = f"{count:,} of {n:,}" if shares else f"{n:,} cases"
        interval = name_interval(self.delta, self.max_analyses)
        return f"Found here: {seen} ({counted}; {interval} {least} to {most})."


class Seen(NamedTuple):
    """How many rows there are, how many are accepted, and how many of these have a loss."""

    n: int
    n_accepted: int
    n_errors: int


def check_guarantees(
    policy: AbstentionPolicy,
    answered: Predictions,
    accepted: BoolArray,
    subgroups: Any,
    asked: Asked,
) -> tuple[GuaranteeCheck, ...]:
    """Compare what a policy guarantees with rows that it has decided."""
    found = find_guarantees(policy, _list_certificates(policy, answered, subgroups), asked)
    return tuple(_check_guarantee(guarantee, answered, accepted) for guarantee in found)


def _check_guarantee(
    guarantee: Tested, answered: Predictions, accepted: BoolArray
) -> GuaranteeCheck:
    """Compare a guarantee with bounds from below and above, each at its delta."""
    rows, kept = guarantee.rows, accepted[guarantee.rows]
    loss = compute_loss(answered, guarantee.loss.kind)[rows]
    n_errors = int(np.count_nonzero(loss[kept]))
    if guarantee.kind is SystemRisk:
        missed = reviewer_loss(answered)
        SystemRisk(guarantee.target).check_reviewed(answered=missed is not None)
        n_errors += int(np.count_nonzero(cast(FloatArray, missed)[rows & ~accepted]))
    seen = Seen(int(np.sum(rows)), int(np.sum(kept)), n_errors)
    if not guarantee.loss.is_graded:
        return check_counted(guarantee, seen)
    values = guarantee.kind.values(loss, kept)
    mean = float(np.mean(values)) if len(values) else math.nan
    bounds = mean_bounds(values, guarantee.delta, guarantee.max_analyses)
    return _compare(guarantee, seen, mean, bounds, partial(_more_by_bets, guarantee, values))


def check_counted(guarantee: Tested, seen: Seen) -> GuaranteeCheck:
    """Compare a guarantee with the bounds that counts of rows give."""
    count, n = guarantee.kind.count(*seen)
    mean = count / n if n else math.nan
    bounds = count_bounds(count, n, guarantee.delta, guarantee.max_analyses)
    return _compare(guarantee, seen, mean, bounds, partial(_more_by_counts, guarantee, count, n))


def chose_threshold(policy: AbstentionPolicy, curve: RiskCoverageCurve) -> bool:
    """Tell whether exactly these rows chose the policy's threshold, or made its certificate."""
    own = policy.certificate.fingerprints if policy.certificate else {}
    return certificates.fingerprint(curve) in (policy.fingerprints.get("data"), own.get("data"))


def share_reused(policy: AbstentionPolicy, curve: RiskCoverageCurve) -> float | None:
    """Return the share of rows that chose the threshold, None where nothing can tell.

    It is their share of these rows, or how many of them are here, whichever is larger: the whole
    table of `fit` holds all of them, however few they are. Rows are recognised by their confidence,
    where no other row of their table holds it.
    """
    record = policy.fingerprints.get("rows", "")
    found, n_recorded = find_recorded(record, curve.thresholds, curve.block_rows)
    return max(found.share, found.n_seen / n_recorded) if found.is_checked else None


def _compare(
    guarantee: Tested,
    seen: Seen,
    mean: float,
    bounds: tuple[float, float],
    count_more: Callable[[float], int | None],
) -> GuaranteeCheck:
    """Say whether a mean with its bounds from below and above keeps a guarantee."""
    low, high = bounds
    kind, loss = guarantee.kind, guarantee.loss
    unit = kind.unit_of(loss)
    largest = 1.0 - guarantee.target if kind.is_least else guarantee.target / unit
    verdict = "broken" if low > largest else "undecided" if high > largest else "holds"
    n_more = count_more(largest) if verdict == "undecided" else 0
    if kind.is_least:
        low, mean, high = 1.0 - high, 1.0 - mean, 1.0 - low
    return GuaranteeCheck(
        verdict,
        kind.word,
        guarantee.target,
        guarantee.delta,
        loss.kind,
        loss.unit,
        guarantee.cases,
        value=unit * mean,
        low=unit * low,
        high=unit * high,
        **seen._asdict(),
        n_more=n_more,
        max_analyses=guarantee.max_analyses,
    )


def mean_bounds(values: FloatArray, delta: float, max_analyses: int | None) -> tuple[float, float]:
    """Return bounds on a mean from below and from above, each at `delta` over all analyses."""
    level, anytime = delta / (max_analyses or 1), max_analyses is None
    return (
        1.0 - betting_upper(1.0 - values, level, anytime=anytime),
        betting_upper(values, level, anytime=anytime),
    )


def count_bounds(count: int, n: int, delta: float, max_analyses: int | None) -> tuple[float, float]:
    """Return bounds on a share from below and from above, each at `delta` over all analyses."""
    upper = anytime_upper if max_analyses is None else clopper_pearson_upper
    level = delta / (max_analyses or 1)
    return 1.0 - upper(n - count, n, level), upper(count, n, level)


def name_interval(delta: float, max_analyses: int | None) -> str:
    """Say which interval stands beside a verdict."""
    level = percent(1.0 - 2.0 * delta, up=False)
    if max_analyses is None:
        return f"time-uniform {level} interval"
    return f"exact {level} interval" + (f" of {max_analyses} analyses" if max_analyses > 1 else "")


def _more_by_bets(guarantee: Tested, values: FloatArray, largest: float) -> int | None:
    """Estimate how many values like these settle whether their mean is above a limit."""
    n_kept = _n_kept(len(values), guarantee)
    if np.sum(values) > len(values) * largest:  # the complements are then too small
        values, largest = 1.0 - values, 1.0 - largest
    found, counts = np.unique(values if len(values) else [0.0], return_counts=True)
    share, payoff = counts / np.sum(counts), (found - largest) / (1.0 - largest)
    surplus = stats.norm.ppf(guarantee.power)

    def settles(more: int) -> bool:
        n = n_kept + more
        among = None if guarantee.max_analyses is None else n
        stakes, log_prior = bound_stakes(among, guarantee.level)
        # The log of the wealth is a sum over rows, so that it is about normally distributed.
        gain = np.log1p(np.multiply.outer(-stakes, payoff))
        mean = np.einsum("ji,i->j", gain, share)  # not by BLAS, as in `dot`
        spread = np.sqrt(np.einsum("ji,i->j", (gain - mean[:, None]) ** 2, share) * more)
        wealth = special.logsumexp(log_prior + n * mean - surplus * spread)
        return bool(wealth >= -math.log(guarantee.level))

    return least_count(settles) if settles(_TOO_MANY) else None


def _more_by_counts(guarantee: Tested, count: int, n: int, largest: float) -> int | None:
    """Return how many rows like these settle whether a share is above a limit."""
    if count > n * largest:  # the others are then too few
        count, largest = n - count, 1.0 - largest
    n_kept = _n_kept(n, guarantee)
    rate, count = count / max(n, 1), count if n_kept else 0

    def settles(more: int) -> bool:
        most = count + int(stats.binom.ppf(guarantee.power, more, rate))
        if guarantee.max_analyses is None:
            evidence = log_evidence_below(most, n_kept + more, largest)
            return bool(evidence >= -math.log(guarantee.delta))
        return bool(clopper_pearson_upper(most, n_kept + more, guarantee.level) <= largest)

    return least_count(settles) if settles(_TOO_MANY) else None


def _n_kept(n: int, guarantee: Tested) -> int:
    """Return how many of these rows another analysis may count again."""
    return 0 if guarantee.max_analyses == 1 else n


# Which guarantees, about which rows ---------------------------------------------------------------


def check_is_policy(policy: Any) -> None:
    """Refuse anything but a policy, such as the tuner that made it."""
    if not isinstance(policy, AbstentionPolicy):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"policy must be an AbstentionPolicy, such as tuner.policy_, got {shown(policy)}."
        )


def predictions_for(policy: AbstentionPolicy, y_true: Any, y_proba: Any) -> Predictions:
    """Read labels and raw probabilities as the policy does: its classes, one column for two."""
    truth = check_labels(y_true)
    codes = encode_labels(truth, policy.classes)
    check_known(codes, truth, policy.classes, "y_true", "The policy cannot answer with others.")
    scores = check_given_scores(policy, y_proba)
    found = Predictions.from_proba(truth, scores, labels=policy.classes)
    return found if policy.cascade is None else replace(found, cascade=policy.cascade)


def decide_labelled(
    policy: AbstentionPolicy,
    rows: tuple[Any, ...],
    subgroups: Any,
    purpose: str,
    tables: tuple[type, ...] = (Predictions,),
) -> tuple[Predictions, BoolArray, FloatArray]:
    """Return predictions with the policy's answers, which rows it accepts, and its confidence.

    `tables` are what the caller takes beside `(y_true, y_proba)`; here they are Predictions.
    """
    check_is_policy(policy)
    if policy.response != "predict_proba":
        raise ValueError(
            "policy: it reads decision values, which Predictions cannot hold, so it cannot be "
            "certified later. Certify it when it is tuned, or use a classifier with predict_proba."
        )
    predictions = read_rows(rows, tables, partial(predictions_for, policy))
    by_column = isinstance(policy.confidence, External) and policy.calibration is None
    by_column = by_column or isinstance(policy.confidence, LearnedScore)
    if predictions.y_proba is None and not by_column:
        raise ValueError(
            "predictions must hold the raw probabilities that the policy reads: build them with "
            "Predictions.from_proba(y_true, y_proba)."
        )
    refuse_weights(predictions.sample_weight, purpose)
    check_answers_fit(policy, predictions)
    if predictions.y_proba is None:  # answers with a confidence: only the threshold is applied
        confidence = compute_confidence(predictions, None)
        accepted = accept_answers(policy, confidence, predictions.answers, subgroups)
        return predictions, accepted, confidence
    decisions = apply_policy(policy, predictions.y_proba, predictions.y_pred, subgroups)
    warn_if_far(policy, count_at_quantiles(policy, decisions.confidence), len(decisions.accepted))
    answered = replace(predictions, y_pred=decisions.y_pred, rule=policy.rule)
    return answered, decisions.accepted, decisions.confidence


def check_answers_fit(
    policy: AbstentionPolicy, predictions: Predictions, which: str = "predictions"
) -> None:
    """Refuse predictions of other classes, or without the answers that a policy keeps."""
    if policy.classes.tolist() != predictions.classes.tolist():
        raise ValueError(
            f"policy: it is for the classes {policy.classes.tolist()}, but the {which} are for "
            f"{predictions.classes.tolist()}; pass labels= in the order of the policy's."
        )
    if policy.rule.decision == "estimator" and predictions.rule.decision != "estimator":
        raise ValueError(
            f"{which}: the policy keeps the classifier's own answers; build them with "
            "Predictions.from_proba(y_true, y_proba, decision='estimator', y_pred=...), and pass "
            "them alone."
        )
    # Decisions that a cascade of probabilities has written come with their final confidence.
    decided = predictions.y_proba is None and not isinstance(policy.confidence, External)
    cascade = None if decided else policy.cascade
    joined = predictions.cascade
    rule = None if joined is None else (joined.names, joined.cuts)
    if cascade is not None and rule != (cascade.names, cascade.cuts):
        raise ValueError(
            f"{which}: this policy asks the stages {list(cascade.names)} in turn, and these "
            "were not joined by its rule; pass the labels and a dict of the tables of the stages, "
            "or policy.cascade.join({stage: Predictions, ...})."
        )


class Asked(NamedTuple):
    """What a policy is tested for, as :func:`~skselect.check_policy` takes it.

    A `target` replaces the guaranteed one, and bounds the risk where nothing is guaranteed; a
    `kind` says what else it bounds. A `delta` is shared evenly.
    """

    kind: type[Guarantee] | None = None
    target: float | None = None
    delta: float | None = None
    max_analyses: int | None = None


#: A certificate or None, the name of its cases, and its rows.
Listed = tuple[Certificate | None, str, BoolArray]


def find_guarantees(policy: AbstentionPolicy, listed: list[Listed], asked: Asked) -> list[Tested]:
    """Return what certificates guarantee that labelled rows can check.

    Only guarantees with high probability count, about a loss that the policy knows, and about all
    rows, those of a subgroup, or those of one answer or one true class.
    """
    stated, target, delta, max_analyses = asked
    made = [one for one in listed if target is not None or is_guarantee(one[0])]
    occurring = sum(bool(np.any(rows)) for _, _, rows in made)
    # A level that holds at all times is fixed before subgroups appear in a growing table.
    n_tests = max(occurring if max_analyses is not None else len(made), 1)
    share = (0.05 if delta is None else delta) / n_tests
    power = 1.0 - (1.0 - POWER) / max(occurring, 1)
    found = []
    for certificate, cases, rows in made:
        kind, loss, level = stated or Risk, policy.rule.default_loss, share
        own = target
        if stated is None and is_guarantee(certificate):
            kind, loss = certificate.kind, certificate.loss
            level = certificate.delta if delta is None else share
            own = certificate.target if target is None else target
            if certificate.reviewer_error is not None:  # what is left is about the machine alone
                kind, own = GeneralizedRisk, own - certificate.reviewer_error
        loss = "zero_one" if kind is SystemRisk else loss
        what = Loss.of(loss, policy.rule)
        checked = kind.check_bound(own, what)
        found.append(Tested(kind, checked, level, what, cases, rows, max_analyses, power))
    return found


def _list_certificates(
    policy: AbstentionPolicy, answered: Predictions, subgroups: Any
) -> list[Listed]:
    """Return certificates that a policy may have, each with the name of its cases and its rows."""
    n, own, groups = len(answered.y_pred), policy.certificate, policy.groups
    if groups is None:
        cases = "" if own is None else own.cases
        rows = _find_rows(answered, cases)
        return [(None, "", np.ones(n, dtype=bool)) if rows is None else (own, cases, rows)]
    members = groups.members(answered.answers, subgroups)
    nowhere = np.zeros(n, dtype=bool)
    return [
        (groups.certificates.get(group), f"of {groups.by} {group!r}", members.get(group, nowhere))
        for group in dict.fromkeys([*members, *groups.thresholds])
        if groups.thresholds.get(group, math.inf) < math.inf
    ]


def is_guarantee(certificate: Certificate | None) -> TypeGuard[Certificate]:
    """Tell whether a certificate guarantees something that later labels can check."""
    return (
        certificate is not None
        and certificate.n_accepted > 0
        and certificate.guarantee == "high_probability"
        and not certificate.is_of_users_loss
    )


def _find_rows(predictions: Predictions, cases: str) -> BoolArray | None:
    """Return the rows that a certificate names, None where its name means no class."""
    if not cases:
        return np.ones(len(predictions), dtype=bool)
    of_classes = (
        rows_of_class(predictions, side, label)
        for side in ("predicted", "true")
        for label in predictions.classes.tolist()
    )
    return next((rows for rows, name in of_classes if name == cases), None)


def own_guarantee(
    policy: AbstentionPolicy,
    answered: Predictions,
    accepted: BoolArray,
    subgroups: Any,
    delta: float | None = None,
) -> str:
    """Say which guarantees of a policy these rows contradict, and which they do not confirm.

    "" where they confirm all of them.

    Parameters
    ----------
    policy : AbstentionPolicy
    answered : Predictions
        The policy's own answers.
    accepted : ndarray of shape (n,)
    subgroups : array-like of shape (n,), DataFrame or None
    delta : float, default=None
        As in :class:`Asked`.
    """
    own = policy.certificate
    if own is not None and own.reads_reviewer and answered.reviewer is None:
        return "Not checked here: the policy's own guarantee, which needs the reviewer's answers."
    asked = Asked(delta=delta, max_analyses=1)
    checks = check_guarantees(policy, answered, accepted, subgroups, asked)
    checks = tuple(check for check in checks if check.n)
    starts = {
        "broken": f"{certificates.NOT_MET} by these rows.",
        "undecided": "These rows cannot tell whether the policy keeps its own guarantee.",
    }
    texts = [
        f"{start} It says: {check.statement}. {check.found}"
        for verdict, start in starts.items()
        for check in checks
        if check.verdict == verdict and not check.is_empty
    ]
    if policy.groups is None and is_guarantee(own) and own.cases and not checks:
        texts.append(
            f"Not checked here: the policy's own guarantee, which covers only cases {own.cases}."
        )
    more = [f"The same is true of {len(texts) - _MANY} more subgroups."] if texts[_MANY:] else []
    return "\n".join(texts[:_MANY] + more)
