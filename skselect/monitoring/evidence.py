"""The statistic of the monitor: bets against a guarantee, started at every case. Pure functions.

At each case a little money enters, and all that has entered bets that the mean loss is above the
target. Money that enters just before a change has lost nothing in the good past.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from skselect._lib.arrays import FloatArray
from skselect.exceptions import ArgumentError
from skselect.monitoring.labelled import Asked, find_guarantees, is_guarantee
from skselect.objectives import Loss, Risk
from skselect.policy.certificate import Certificate
from skselect.policy.policy import AbstentionPolicy

#: Bets on cases are the best ones for risks that are so many times the target; half of the money
#: enters within so many cases.
ALTERNATIVES, PATIENCE = np.array([1.25, 1.6, 2.0, 3.0, 5.0]), 500
# Bets on shares lose so much of their money at a share of 0: a share varies less than a loss of 0
# or 1. There are fewer batches than cases.
_LOST, _PATIENCE_OF_SHARES = np.array([0.1, 0.25, 0.5, 0.75, 0.95]), 20
# Products are taken over so many cases, at fixed places in the sequence of cases: no batch changes
# a bit of the state, and no product leaves the range of floats.
_SPAN = 128
# The wealth is capped here: capping only lowers it, so that Ville's bound still holds.
_RICHEST = 1e100
# Exponents of the interval: small ones are for many cases.
_EXPONENTS = np.geomspace(0.001, 5.0, 20)

# Sums count in steps of one over this.
_GRAINS = 2.0**30


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the bets have made of the cases so far, one number per stake.

    Parameters
    ----------
    n : int
        Cases.
    carried : ndarray of shape (5,)
        Money at the start of the present span of 128 cases.
    product : ndarray of shape (5,)
        Product of the factors in this span.
    added : ndarray of shape (5,)
        Money that entered in this span, each part over the product at its time.
    """

    n: int = 0
    carried: FloatArray = field(default_factory=lambda: np.zeros(5))
    product: FloatArray = field(default_factory=lambda: np.ones(5))
    added: FloatArray = field(default_factory=lambda: np.zeros(5))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        arrays = {name: getattr(self, name).tolist() for name in ("carried", "product", "added")}
        return {"n": self.n, **arrays}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Evidence:
        """Rebuild it from :meth:`to_dict`."""
        arrays = [np.array(stored[name], float) for name in ("carried", "product", "added")]
        return cls(operator.index(stored["n"]), *(array.reshape(5) for array in arrays))


class Bets(NamedTuple):
    """Bets that a mean is above a target.

    Parameters
    ----------
    target : float in (0, 1)
    stakes : ndarray of shape (5,)
        The l of the factors 1 + l (loss - target).
    patience : int
        The t0 of the parts that enter, t0 / ((t + t0) (t + t0 + 1)).
    """

    target: float
    stakes: FloatArray
    patience: int


def bets_on_cases(target: float) -> Bets:
    """Return bets that the risk of the cases is above a target.

    The best stake if losses are 0 or 1 and their mean is q is (q - target) / (target (1 -
    target)). No q is above (1 + target) / 2, so that no bet loses more than half of its money.
    """
    risks = np.minimum(ALTERNATIVES * target, (1.0 + target) / 2.0)
    return Bets(target, (risks - target) / (target * (1.0 - target)), PATIENCE)


def bets_on_shares(most: float) -> Bets:
    """Return bets that the mean of shares, one per batch, is above what it was at most."""
    return Bets(most, np.minimum(_LOST / most, 20.0), _PATIENCE_OF_SHARES)


def wealth_of(evidence: Evidence, bets: Bets) -> float:
    """Return the wealth after the cases so far; 1 before the first."""
    money = evidence.product * (evidence.carried + evidence.added)
    return float(sum(money) / len(money) + bets.patience / (bets.patience + evidence.n))


def advance(
    evidence: Evidence, bets: Bets, loss: FloatArray, weight: FloatArray
) -> tuple[Evidence, FloatArray]:
    """Bet on further cases.

    With w_t = t0 / ((t + t0) (t + t0 + 1)) for the cases t = 0, 1, ... (t0 is the patience), the
    bets are M_j <- (M_j + w_t) (1 + l_j weight_t (loss_t - target)), and the wealth after case t
    is mean_j M_j + t0 / (t + 1 + t0): the second term is the money that has not entered yet.

    Parameters
    ----------
    evidence : Evidence
    bets : Bets
    loss, weight : ndarray of shape (n,)
        In [0, 1].

    Returns
    -------
    evidence : Evidence
        The same bits for every split of the cases into calls.
    wealth : ndarray of shape (n,)
        After each case; 1 before the first.
    """
    payoff = weight * (loss - bets.target)
    wealth = np.empty(len(loss))
    done = 0
    while done < len(loss):
        rows = slice(done, done + _SPAN - evidence.n % _SPAN)
        evidence, wealth[rows] = _advance_in_span(evidence, bets, payoff[rows])
        done = rows.stop
    return evidence, wealth


def _advance_in_span(old: Evidence, bets: Bets, payoff: FloatArray) -> tuple[Evidence, FloatArray]:
    """Bet on cases up to the end of the present span, all at once.

    Within it M_t = product_t (carried + added_t), where added_t is the sum of w_s / product_(s-1).
    """
    before = bets.patience + old.n + np.arange(len(payoff))
    enters = bets.patience / (before * (before + 1.0))
    factors = 1.0 + bets.stakes[:, None] * payoff
    product = np.multiply.accumulate(np.column_stack([old.product, factors]), axis=1)
    shares = np.column_stack([old.added, enters / product[:, :-1]])
    added = np.add.accumulate(shares, axis=1)
    money = product[:, 1:] * (old.carried[:, None] + added[:, 1:])
    wealth = sum(money) / len(money) + bets.patience / (before + 1.0)
    n = old.n + len(payoff)
    if n % _SPAN == 0:
        return Evidence(n, np.minimum(money[:, -1], _RICHEST)), wealth
    return Evidence(n, old.carried, product[:, -1], added[:, -1]), wealth


def risk_interval(loss: float, weight: float, delta: float) -> tuple[float, float]:
    """Return an interval for the mean risk so far that holds at all times at once.

    The risk may change from case to case: the interval is about the (weighted) mean of the risks
    of the cases so far. It misses that at any time with probability at most `delta`.

    Parameters
    ----------
    loss : float
        Sum of weight times loss, each in [0, 1].
    weight : float
        Sum of weights.
    delta : float in (0, 1)

    Returns
    -------
    low, high : float

    Notes
    -----
    For e > 0 the mean over exponents e of exp(e L - W log(1 - m + m exp(e))), L the sum of weight
    times loss and W that of weights, is at most 1 on average at the mean risk m; it falls with m,
    and the lower end is where it is 2 / delta. With -e it gives the upper end.

    References
    ----------
    .. [1] Howard, Ramdas, McAuliffe & Sekhon, "Time-uniform, nonparametric, nonasymptotic
       confidence sequences", Annals of Statistics 2021.
    """
    if weight <= 0.0:
        return 0.0, 1.0
    mean, line = min(loss / weight, 1.0), math.log(2.0 / delta)

    def is_ruled_out(m: float, sign: float) -> bool:
        growth = np.log1p(m * np.expm1(sign * _EXPONENTS))
        logs = sign * _EXPONENTS * loss - weight * growth
        most = float(np.max(logs))
        return most + math.log(float(np.mean(np.exp(logs - most)))) >= line

    return _end(mean, 0.0, is_ruled_out, 1.0), _end(mean, 1.0, is_ruled_out, -1.0)


def _end(inside: float, outside: float, is_ruled_out: Any, sign: float) -> float:
    """Return where the possible means end, between `inside` and 0 or 1, rounded outwards."""
    for _ in range(40):
        middle = (inside + outside) / 2.0
        if is_ruled_out(middle, sign):
            outside = middle
        else:
            inside = middle
    return outside


def total(values: FloatArray) -> float:
    """Return a sum that does not depend on the order: of multiples of 2**-30, which is exact."""
    return float(np.sum(np.round(values * _GRAINS)) / _GRAINS)


# What is watched ----------------------------------------------------------------------------------


@dataclass
class Watched:
    """One guarantee and the bets against it; target and losses as shares of the largest cost.

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
) -> tuple[Loss, list[Watched]]:
    """Return which loss is watched, and the guarantees."""
    certificates = _certificates_of_risk(policy)
    made = {
        group: one
        for group, one in certificates.items()
        if target is not None or (is_guarantee(one) and one.kind.is_selective)
    }
    _check_any(made, certificates, target)
    listed = [(one, "", np.ones(1, dtype=bool)) for one in made.values()]
    asked = Asked(None if target is None else Risk, target, delta)
    found = find_guarantees(policy, listed, asked)
    return found[0].loss, [
        Watched(group, one.target / one.loss.unit, one.delta)
        for group, one in zip(made, found, strict=True)
    ]


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


def _check_any(made: Mapping[Any, Any], certificates: Mapping[Any, Any], target: Any) -> None:
    """Refuse a policy that guarantees nothing, or decides nothing."""
    if made:
        return
    if target is not None:
        raise ValueError("policy: it defers all cases of every subgroup; nothing is watched.")
    if any(one is not None and one.is_of_users_loss for one in certificates.values()):
        raise ValueError(
            "policy: its certificate is about a loss of your own, which a policy does not hold. "
            "Pass target=, to watch the share of errors (or the costs)."
        )
    raise ArgumentError(
        "target",
        "target is missing: no certificate of this policy guarantees a largest risk. Say what to "
        "watch, such as target=0.05.",
    )
