"""What labelled rows show about the promises of a fixed policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from skselect._checks import shown
from skselect._checks.labels import check_known, check_labels, encode_labels
from skselect._checks.options import check_number, check_risk_target
from skselect._checks.rows import refuse_weights
from skselect._typing import BoolArray, FloatArray
from skselect.bounds import (
    betting_upper,
    clopper_pearson_upper,
    least_count,
    rows_for_betting,
)
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Certificate
from skselect.policy.policy import AbstentionPolicy, External, apply_policy, check_scores
from skselect.predictions.confidence import compute_confidence
from skselect.predictions.learned import LearnedScore
from skselect.predictions.outcomes import compute_loss
from skselect.predictions.predictions import Predictions, read_rows

# A notice spells out so many promises at most, and counts the others.
_MANY = 10
# Rows beyond this number are no plan.
_TOO_MANY = 10**9


class Promise(NamedTuple):
    """What a policy is to keep, and which of the labelled rows it is about.

    Target, objective, loss, unit and cases are those of a :class:`~skselect.Certificate`; `delta`
    is the chance that is allowed for a wrong verdict.
    """

    objective: str
    target: float
    delta: float
    loss: str
    unit: float
    cases: str
    rows: BoolArray


@dataclass(frozen=True)
class PromiseCheck:
    """What labelled rows show about one promise.

    Parameters
    ----------
    verdict : {"holds", "broken", "undecided"}
    objective : {"risk", "generalized_risk", "coverage"}
    target : float
        The promised bound.
    delta : float
        Chance that the verdict is wrong, at most.
    loss : {"zero_one", "cost"}
    unit : float
        The largest cost; numbers below are in its units.
    cases : str
        Which cases it is about, "" for all.
    value, low, high : float
        What the target bounds, observed (nan without rows), and its exact bounds, each at `delta`.
    n, n_accepted, n_errors : int
        Rows that it is about, those that the policy accepts, and accepted ones with a loss.
    n_more : int or None
        About how many more labelled rows settle it, if they are like these: accepted rows for
        the objective "risk", rows of any kind for others. 0 where it is settled; None where no
        number would do.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import AbstentionPolicy, Predictions, check_policy
    >>> policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    >>> fresh = Predictions.from_proba([1] * 300, np.tile([.1, .9], (300, 1)), labels=[0, 1])
    >>> one = check_policy(policy, fresh, target=.02).promises[0]
    >>> one.promise
    'at most 2 % of the cases it decides alone are wrong in the long run'
    >>> one.verdict, one.found
    ('holds', 'Found here: 0 % (0 of 300; 90 % interval 0 % to 0.9937 %).')
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

    @property
    def promise(self) -> str:
        """The promise in words."""
        return certificates.describe_promise(self.objective, self.target, self.loss, self.cases)

    @property
    def found(self) -> str:
        """What was found, as a sentence."""
        counts = {
            "risk": (self.n_errors, self.n_accepted),
            "generalized_risk": (self.n_errors, self.n),
            "coverage": (self.n_accepted, self.n),
        }
        count, n = counts[self.objective]
        if n == 0:
            return "Found here: no such case."
        shares = self.loss == "zero_one" or self.objective == "coverage"
        kind = "zero_one" if shares else self.loss
        least, seen, most = (
            certificates.amount(value, kind, up=up)
            for value, up in ((self.low, False), (self.value, None), (self.high, True))
        )
        counted = f"{count} of {n}" if shares else f"{n} cases"
        level = certificates.percent(1.0 - 2.0 * self.delta, up=False)
        return f"Found here: {seen} ({counted}; {level} interval {least} to {most})."


class Seen(NamedTuple):
    """How many rows there are, how many are accepted, and how many of these have a loss."""

    n: int
    n_accepted: int
    n_errors: int


def check_promise(
    promise: Promise, policy: AbstentionPolicy, answered: Predictions, accepted: BoolArray
) -> PromiseCheck:
    """Compare a promise with exact bounds from below and above, each at its delta."""
    rows, kept = promise.rows, accepted[promise.rows]
    loss = compute_loss(answered, promise.loss)[rows]
    seen = Seen(int(np.sum(rows)), int(np.sum(kept)), int(np.count_nonzero(loss[kept])))
    if not (promise.loss == "cost" and policy.rule.has_graded_costs):
        return check_counted(promise, seen)
    values = _bounded_values(promise.objective, loss, kept)
    mean = float(np.mean(values)) if len(values) else math.nan
    bounds = mean_bounds(values, promise.delta)
    return _judge(
        promise, seen, mean, bounds,
        lambda largest: _more_by_bets(len(values), mean, largest, promise.delta, bounds),
    )  # fmt: skip


def check_counted(promise: Promise, seen: Seen) -> PromiseCheck:
    """Compare a promise with the bounds that counts of rows give."""
    count, n = {
        "risk": (seen.n_errors, seen.n_accepted),
        "generalized_risk": (seen.n_errors, seen.n),
        "coverage": (seen.n - seen.n_accepted, seen.n),
    }[promise.objective]
    return _judge(
        promise, seen, count / n if n else math.nan, count_bounds(count, n, promise.delta),
        lambda largest: _more_by_counts(count, n, largest, promise.delta),
    )  # fmt: skip


def _judge(
    promise: Promise,
    seen: Seen,
    mean: float,
    bounds: tuple[float, float],
    count_more: Callable[[float], int | None],
) -> PromiseCheck:
    """Say whether a mean with its bounds from below and above keeps a promise."""
    low, high = bounds
    is_coverage = promise.objective == "coverage"
    unit = 1.0 if is_coverage else promise.unit
    largest = 1.0 - promise.target if is_coverage else promise.target / unit
    verdict = "broken" if low > largest else "undecided" if high > largest else "holds"
    n_more = count_more(largest) if verdict == "undecided" else 0
    if is_coverage:
        low, mean, high = 1.0 - high, 1.0 - mean, 1.0 - low
    stated = promise._asdict()
    del stated["rows"]
    return PromiseCheck(
        verdict, **stated, value=unit * mean, low=unit * low, high=unit * high, **seen._asdict(),
        n_more=n_more,
    )  # fmt: skip


def _bounded_values(objective: str, loss: FloatArray, accepted: BoolArray) -> FloatArray:
    """Return the values whose mean a promise bounds from above."""
    if objective == "coverage":
        return (~accepted).astype(np.float64)
    return loss[accepted] if objective == "risk" else np.where(accepted, loss, 0.0)


def mean_bounds(values: FloatArray, delta: float) -> tuple[float, float]:
    """Return exact bounds on a mean from below and from above, each at `delta`."""
    return 1.0 - betting_upper(1.0 - values, delta), betting_upper(values, delta)


def count_bounds(count: int, n: int, delta: float) -> tuple[float, float]:
    """Return exact bounds on a share from below and from above, each at `delta`."""
    return 1.0 - clopper_pearson_upper(n - count, n, delta), clopper_pearson_upper(count, n, delta)


def _more_by_bets(
    n: int, mean: float, largest: float, delta: float, bounds: tuple[float, float]
) -> int | None:
    """Estimate how many more values like these settle whether their mean is above a limit."""
    if n == 0:
        return rows_for_betting(largest, delta)
    if mean == largest:
        return None
    # The distance of a bound from the mean shrinks with the square root of the rows.
    bound = bounds[1] if mean < largest else bounds[0]
    needed = n * ((bound - mean) / (largest - mean)) ** 2
    return math.ceil(needed) - n if needed < _TOO_MANY else None


def _more_by_counts(count: int, n: int, largest: float, delta: float) -> int | None:
    """Estimate how many more rows like these settle whether a share is above a limit."""
    mean = count / n if n else 0.0

    def settles(k: int) -> bool:
        if mean <= largest:
            return bool(clopper_pearson_upper(-(-count * k // max(n, 1)), k, delta) <= largest)
        return bool(1.0 - clopper_pearson_upper(k - count * k // n, k, delta) > largest)

    return least_count(settles, first=max(n, 1)) - n if settles(_TOO_MANY) else None


# Which promises, about which rows ----------------------------------------------------------------


def check_is_policy(policy: Any) -> None:
    """Refuse anything but a policy, such as the tuner that made it."""
    if not isinstance(policy, AbstentionPolicy):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"policy must be an AbstentionPolicy, such as tuner.policy_, got {shown(policy)}."
        )


def _predictions_for(policy: AbstentionPolicy, y_true: Any, y_proba: Any) -> Predictions:
    """Read labels and raw probabilities as the policy does: its classes, one column for two."""
    truth = check_labels(y_true)
    codes = encode_labels(truth, policy.classes)
    check_known(codes, truth, policy.classes, "y_true", "The policy cannot answer with others.")
    scores = check_scores(y_proba, policy.classes, policy.response)
    return Predictions.from_proba(truth, scores, labels=policy.classes)


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
    predictions = read_rows(rows, tables, partial(_predictions_for, policy))
    by_column = isinstance(policy.confidence, External) and policy.calibration is None
    by_column = by_column or isinstance(policy.confidence, LearnedScore)
    if predictions.y_proba is None and not by_column:
        raise ValueError(
            "predictions must hold the raw probabilities that the policy reads: build them with "
            "Predictions.from_proba(y_true, y_proba)."
        )
    if policy.classes.tolist() != predictions.classes.tolist():
        raise ValueError(
            f"predictions are about the classes {predictions.classes.tolist()}, but the policy is "
            f"for {policy.classes.tolist()}; pass labels= in this order."
        )
    refuse_weights(predictions.sample_weight, purpose)
    if policy.rule.decision == "estimator" and predictions.rule.decision != "estimator":
        raise ValueError(
            "predictions: the policy keeps the classifier's own answers; build them with "
            "Predictions.from_proba(y_true, y_proba, decision='estimator', y_pred=...)."
        )
    if predictions.y_proba is None:  # answers with a confidence: only the threshold is applied
        by_answer = policy.groups is not None and policy.groups.by_answer
        confidence = compute_confidence(predictions, None)
        of_rows = predictions.answers if by_answer else subgroups
        return predictions, policy.accepts(confidence, subgroups=of_rows), confidence
    decisions = apply_policy(policy, predictions.y_proba, predictions.y_pred, subgroups)
    answered = replace(predictions, y_pred=decisions.y_pred, rule=policy.rule)
    return answered, decisions.accepted, decisions.confidence


def find_promises(
    policy: AbstentionPolicy,
    answered: Predictions,
    subgroups: Any,
    *,
    target: float | None = None,
    delta: float | None = None,
) -> list[Promise]:
    """Return the promises of a policy that labelled rows can check.

    Only promises with high probability count, about a loss that the policy knows, and about all
    rows, those of a subgroup, or those of one answer or one true class. A `target` replaces the
    promised one, and bounds the risk where nothing is promised. A `delta` is shared evenly.
    """
    listed = _list_certificates(policy, answered, subgroups)
    return spell_out(policy, listed, target=target, delta=delta)


def spell_out(
    policy: AbstentionPolicy,
    listed: list[tuple[Certificate | None, str, BoolArray]],
    *,
    target: float | None,
    delta: float | None,
) -> list[Promise]:
    """Return what certificates promise, each with the name of its cases and its rows."""
    made = [one for one in listed if target is not None or is_promise(one[0])]
    occurring = sum(bool(np.any(rows)) for _, _, rows in made)
    share = (0.05 if delta is None else delta) / max(occurring, 1)
    found = []
    for certificate, cases, rows in made:
        objective, loss, level = "risk", policy.rule.default_loss, share
        own = target
        if certificate is not None and is_promise(certificate):
            objective, loss = certificate.objective, certificate.loss
            level = certificate.delta if delta is None else share
            own = certificate.target if target is None else target
        unit = policy.rule.unit if loss == "cost" else 1.0
        checked = _check_target(own, objective, loss, unit)
        found.append(Promise(objective, checked, level, loss, unit, cases, rows))
    return found


def _list_certificates(
    policy: AbstentionPolicy, answered: Predictions, subgroups: Any
) -> list[tuple[Certificate | None, str, BoolArray]]:
    """Return certificates that a policy may have, each with the name of its cases and its rows."""
    n, own, groups = len(answered.y_pred), policy.certificate, policy.groups
    if groups is None:
        cases = "" if own is None else own.cases
        rows = _find_rows(answered, cases)
        return [(None, "", np.ones(n, dtype=bool)) if rows is None else (own, cases, rows)]
    members = groups.members(answered.answers if groups.by_answer else subgroups, n)
    nowhere = np.zeros(n, dtype=bool)
    return [
        (groups.certificates.get(group), f"of {groups.by} {group!r}", members.get(group, nowhere))
        for group in dict.fromkeys([*members, *groups.thresholds])
        if groups.thresholds.get(group, math.inf) < math.inf
    ]


def is_promise(certificate: Certificate | None) -> bool:
    """Tell whether a certificate promises something that later labels can check."""
    return (
        certificate is not None
        and certificate.n_accepted > 0
        and certificate.guarantee == "high_probability"
        and certificate.loss != "graded"
    )


def _check_target(target: Any, objective: str, loss: str, unit: float) -> float:
    if objective == "coverage":
        return check_number("target", target, 0.0, 1.0, closed="right")
    return check_risk_target(target, loss, unit)


def rows_of_class(predictions: Predictions, side: str, label: Any) -> tuple[BoolArray, str]:
    """Return which rows are answered ("predicted"), or are ("true"), a class, and their name."""
    codes = predictions.y_pred if side == "predicted" else predictions.y_true
    kind = "whose answer is" if side == "predicted" else "whose true class is"
    return (predictions.classes[codes] == label) & (codes >= 0), f"{kind} {label!r}"


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


def own_promise(
    policy: AbstentionPolicy,
    answered: Predictions,
    accepted: BoolArray,
    subgroups: Any,
    delta: float | None = None,
) -> str:
    """Say which promises of a policy these rows contradict, and which they do not confirm.

    "" where they confirm all of them.

    Parameters
    ----------
    policy : AbstentionPolicy
    answered : Predictions
        The policy's own answers.
    accepted : ndarray of shape (n,)
    subgroups : array-like of shape (n,), DataFrame or None
    delta : float, default=None
        As in :func:`find_promises`.
    """
    made = [
        promise
        for promise in find_promises(policy, answered, subgroups, delta=delta)
        if np.any(promise.rows)
    ]
    checks = [check_promise(promise, policy, answered, accepted) for promise in made]
    starts = {
        "broken": f"{certificates.NOT_MET} by these rows.",
        "undecided": "These rows cannot tell whether the policy keeps its own promise.",
    }
    texts = [
        f"{start} It says: {check.promise}. {check.found}"
        for verdict, start in starts.items()
        for check in checks
        if check.verdict == verdict and (check.n_accepted or check.objective != "risk")
    ]
    own = policy.certificate
    if policy.groups is None and own is not None and own.cases and is_promise(own) and not made:
        texts.append(f"Not looked at here: the policy's own promise, which is about the cases "
                    f"{own.cases} alone.")  # fmt: skip
    more = [f"The same is true of {len(texts) - _MANY} more subgroups."] if texts[_MANY:] else []
    return "\n".join(texts[:_MANY] + more)
