"""The statistic of the monitor: bets against a guarantee, and which risks they notice.

At each case a little money enters, and all that has entered bets that the mean loss is above the
target. Money that enters just before a change has lost nothing in the good past.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from skselect._lib.arrays import BoolArray, FloatArray
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_count, check_delta, check_number
from skselect.exceptions import ArgumentError
from skselect.monitoring.guarantees import Request, Schedule, is_guarantee
from skselect.objectives import Loss, Risk, SystemRisk, read_guarantee
from skselect.policy.certificate import Certificate
from skselect.policy.policy import AbstentionPolicy
from skselect.policy.subgroups import GroupThresholds

#: Bets on cases are the best ones for risks that are so many times the target; half of the money
#: enters within so many cases.
ALTERNATIVES = np.array([1.25, 1.6, 2.0, 3.0, 5.0])
PATIENCE = 500
# Bets on shares lose so much of their money at a share of 0: a share varies less than a loss of 0
# or 1. There are fewer batches than cases.
_LOST = np.array([0.1, 0.25, 0.5, 0.75, 0.95])
_PATIENCE_OF_SHARES = 20
# Products are taken over so many cases, at fixed places in the sequence of cases: no batch changes
# a bit of the state, and no product leaves the range of floats.
_SPAN = 128
# The wealth is capped here: capping only lowers it, so that Ville's bound still holds.
_RICHEST = 1e100
# Exponents of the interval: small ones are for many cases.
_EXPONENTS = np.geomspace(0.001, 5.0, 20)

# Sums count in steps of one over this.
_GRAINS = 2.0**30

# A plan draws so many answers, in so many streams at least and at most.
_DRAWS = 2_000_000
_LEAST_STREAMS = 100
_MOST_STREAMS = 2000
# So many answers at most are planned, so many wrong ones raise an alarm, and the risk that is
# found is larger than one that is missed by this factor at most.
_MOST_LABELLED = 50_000
_ALL_WRONG = 1000
_FINE = 1.002


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the bets have made of the cases so far, one number per stake.

    Parameters
    ----------
    n : int
        Cases.
    carried : ndarray of shape (5, ...)
        Money at the start of the present span of 128 cases.
    product : ndarray of shape (5, ...)
        Product of the factors in this span.
    added : ndarray of shape (5, ...)
        Money that entered in this span, each part over the product at its time.
    """

    n: int = 0
    carried: FloatArray = field(default_factory=lambda: np.zeros(5))
    product: FloatArray = field(default_factory=lambda: np.ones(5))
    added: FloatArray = field(default_factory=lambda: np.zeros(5))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "n": self.n,
            "carried": self.carried.tolist(),
            "product": self.product.tolist(),
            "added": self.added.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Evidence:
        """Rebuild it from :meth:`to_dict`."""
        return cls(
            n=operator.index(stored["n"]),
            carried=_read_five(stored["carried"]),
            product=_read_five(stored["product"]),
            added=_read_five(stored["added"]),
        )


def _read_five(stored: Any) -> FloatArray:
    """Return stored numbers, one per stake."""
    return np.array(stored, float).reshape(5)


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
    stakes = (risks - target) / (target * (1.0 - target))
    return Bets(target, stakes, PATIENCE)


def bets_on_shares(most: float) -> Bets:
    """Return bets that the mean of shares, one per batch, is above what it was at most."""
    stakes = np.minimum(_LOST / most, 20.0)
    return Bets(most, stakes, _PATIENCE_OF_SHARES)


def wealth_of(evidence: Evidence, bets: Bets) -> float:
    """Return the wealth after the cases so far; 1 before the first."""
    money = evidence.product * (evidence.carried + evidence.added)
    waiting = bets.patience / (bets.patience + evidence.n)
    return float(sum(money) / len(money) + waiting)


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
    loss : ndarray of shape (..., n)
        In [0, 1]. Each row is a stream of its own.
    weight : ndarray of shape (n,)
        In [0, 1].

    Returns
    -------
    evidence : Evidence
        The same bits for every split of the cases into calls.
    wealth : ndarray of shape (..., n)
        After each case; 1 before the first.
    """
    payoff = weight * (loss - bets.target)
    wealth = np.empty(loss.shape)
    done = 0
    while done < loss.shape[-1]:
        rows = slice(done, done + _SPAN - evidence.n % _SPAN)
        evidence, wealth[..., rows] = _advance_in_span(evidence, bets, payoff[..., rows])
        done = rows.stop
    return evidence, wealth


def _advance_in_span(old: Evidence, bets: Bets, payoff: FloatArray) -> tuple[Evidence, FloatArray]:
    """Bet on cases up to the end of the present span, all at once.

    Within it M_t = product_t (carried + added_t), where added_t is the sum of w_s / product_(s-1).
    """
    n_cases = payoff.shape[-1]
    before = bets.patience + old.n + np.arange(n_cases)
    enters = bets.patience / (before * (before + 1.0))
    waiting = bets.patience / (before + 1.0)
    factors = 1.0 + np.multiply.outer(bets.stakes, payoff)
    factors = np.concatenate([old.product[..., None], factors], axis=-1)
    product = np.multiply.accumulate(factors, axis=-1)
    shares = np.concatenate([old.added[..., None], enters / product[..., :-1]], axis=-1)
    added = np.add.accumulate(shares, axis=-1)
    money = product[..., 1:] * (old.carried[..., None] + added[..., 1:])
    wealth = sum(money) / len(money) + waiting
    n = old.n + n_cases
    if n % _SPAN:
        return Evidence(n, old.carried, product[..., -1], added[..., -1]), wealth
    carried = np.minimum(money[..., -1], _RICHEST)
    return Evidence(n, carried, np.ones_like(carried), np.zeros_like(carried)), wealth


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
    mean = min(loss / weight, 1.0)
    line = math.log(2.0 / delta)

    def is_ruled_out(m: float, sign: float) -> bool:
        exponents = sign * _EXPONENTS
        growth = np.log1p(m * np.expm1(exponents))
        logs = exponents * loss - weight * growth
        most = float(np.max(logs))
        average = float(np.mean(np.exp(logs - most)))
        return most + math.log(average) >= line

    low = _find_end(mean, 0.0, lambda m: is_ruled_out(m, 1.0))
    high = _find_end(mean, 1.0, lambda m: is_ruled_out(m, -1.0))
    return low, high


def _find_end(inside: float, outside: float, is_ruled_out: Callable[[float], bool]) -> float:
    """Return where the possible means end, between `inside` and 0 or 1, rounded outwards."""
    for _ in range(40):
        middle = (inside + outside) / 2.0
        if is_ruled_out(middle):
            outside = middle
        else:
            inside = middle
    return outside


def in_grains(values: FloatArray) -> FloatArray:
    """Return multiples of 2**-30, whose sums are exact and so do not depend on the order."""
    return np.round(values * _GRAINS) / _GRAINS


# Planning -----------------------------------------------------------------------------------------


def detectable_risk(
    risk: Any,
    n_labelled: int,
    delta: float | None = None,
    *,
    n_before: int = 0,
    power: float = 0.8,
) -> float:
    """Return the smallest risk that a monitor notices within a number of labelled answers.

    It simulates :class:`~skselect.SelectiveRiskMonitor`, always with the same random numbers.

    Parameters
    ----------
    risk : Risk or float in (0, 0.5]
        What is watched; a number is short for ``Risk(number, delta=delta)``. Only its target and
        delta count. Its loss must be the share of errors.
    n_labelled : int
        Answers whose label comes in time: cases a day, times the share of them that the policy
        answers, times the share of these that is audited (1 with ``unlabelled="correct"``), times
        the days minus the label delay. More than 50,000 count as 50,000.
    delta : float in (0, 0.5], default=None
        Probability of a false alarm, for all time. Give it only with a number. None: 0.05.
    n_before : int, default=0
        Labelled answers before the risk rises, all of them correct, which is the hardest past for
        the monitor. 0: the risk is that large from the first answer.
    power : float in (0, 1), default=0.8
        Probability that the alarm comes in time.

    Returns
    -------
    float
        With each larger risk the alarm comes in time with probability `power` or more. The standard
        error of the simulation is about 1 % of the risk.

    Raises
    ------
    ValueError
        If an argument is out of its range, the objective is not a risk of errors, or the answers
        are too few for an alarm even if all of them are wrong.

    See Also
    --------
    skselect.thresholds.rows_needed : How many labelled rows certify a target.

    Notes
    -----
    Answers are wrong independently of each other, each with the same probability. In every stream
    of answers the t-th one is wrong if a uniform number U_t is below the risk. A further error
    never lowers the wealth. So no stream that raises an alarm at one risk misses it at a larger
    one, and bisection finds the answer (to 0.2 %) for the simulated streams: 2,000 of them up to
    1,000 answers, then fewer, at least 100.

    Examples
    --------
    1,000 cases a day, 80 % of them answered, 2 % of the answers audited, labels after 30 days: what
    is noticed within 90 days?

    >>> from skselect.monitoring import detectable_risk
    >>> n = round(1000 * .8 * .02 * (90 - 30))
    >>> n, round(detectable_risk(.05, n), 3)
    (960, 0.079)
    """
    target, level = _read_watched(risk, delta)
    check_count("n_labelled", n_labelled)
    check_count("n_before", n_before, 0)
    check_number("power", power, 0.0, 1.0, closed="neither")
    bets = bets_on_cases(target)
    start, _ = advance(Evidence(), bets, np.zeros(n_before), np.ones(n_before))
    least = _count_for_alarm(start, bets, 1.0 / level)
    if n_labelled < least:
        raise ArgumentError(
            "n_labelled",
            f"n_labelled must be at least {least}, got {n_labelled}: with fewer answers the "
            "monitor raises no alarm even if all of them are wrong.",
        )
    n = min(n_labelled, _MOST_LABELLED)
    n_streams = min(max(_DRAWS // n, _LEAST_STREAMS), _MOST_STREAMS)
    draws = np.random.default_rng(0).random((n, n_streams)).T
    n_wanted = math.ceil(power * n_streams)
    return _least_noticed(start, bets, draws, n_wanted, 1.0 / level)


def _least_noticed(
    start: Evidence, bets: Bets, draws: FloatArray, n_wanted: int, line: float
) -> float:
    """Return the least risk that raises an alarm in so many streams of answers."""
    low = bets.target
    high = 1.0
    while high > _FINE * low:
        middle = math.sqrt(low * high)
        notices = _raise_alarms(start, bets, draws < middle, line)
        n_noticed = int(np.sum(notices))
        if n_noticed >= n_wanted:  # the others raise none at smaller risks either
            high = middle
            draws = draws[notices]
        else:
            low = middle
            draws = draws[~notices]
            n_wanted -= n_noticed
    return high


def _count_for_alarm(start: Evidence, bets: Bets, line: float) -> int:
    """Return how many wrong answers in a row raise an alarm."""
    wrong = np.ones(_ALL_WRONG)
    _, wealth = advance(start, bets, wrong, np.ones(_ALL_WRONG))
    return int(np.argmax(wealth >= line)) + 1


def _read_watched(risk: Any, delta: float | None) -> tuple[float, float]:
    """Return the target and the delta of a risk of errors."""
    if isinstance(risk, numbers.Real):
        kind, target, level = read_guarantee("risk", risk, delta)
    else:
        kind, target, level = read_guarantee(risk, None, delta)
    is_error = getattr(risk, "loss", "auto") in ("auto", "zero_one")
    if kind is None or not (kind.is_selective and is_error):
        raise ValueError(
            f"risk must be a number or a Risk of errors, such as Risk(0.05), got {shown(risk)}: "
            "no other objective is planned."
        )
    target = kind(target).checked_target(Loss())
    return target, check_delta(0.05 if level is None else level)


def _raise_alarms(start: Evidence, bets: Bets, wrong: BoolArray, line: float) -> BoolArray:
    """Tell in which streams of answers, the rows of `wrong`, the wealth reaches a line."""
    n_streams, n = wrong.shape
    streams = np.arange(n_streams)
    silent = streams
    evidence = _take_streams(start, np.zeros(n_streams, dtype=np.int64))
    for start_of_part in range(0, n, 2 * _SPAN):
        part = slice(start_of_part, start_of_part + 2 * _SPAN)
        loss = wrong[silent, part].astype(np.float64)
        evidence, wealth = advance(evidence, bets, loss, np.ones(loss.shape[1]))
        is_poor = np.all(wealth < line, axis=1)
        silent = silent[is_poor]
        evidence = _take_streams(evidence, is_poor)
    return ~np.isin(streams, silent)


def _take_streams(evidence: Evidence, which: Any) -> Evidence:
    """Return the evidence of some streams."""
    return Evidence(
        evidence.n,
        carried=evidence.carried.reshape(5, -1)[:, which],
        product=evidence.product.reshape(5, -1)[:, which],
        added=evidence.added.reshape(5, -1)[:, which],
    )


# What is watched ----------------------------------------------------------------------------------


# What cases have made of a guarantee that is watched, beside the evidence.
_RESTORED = ("weight", "loss", "n_known", "n_counted", "n_errors", "alarm_at", "alarm_when")


@dataclass
class Watched:
    """One guarantee and the bets against it; target and losses as shares of the largest cost.

    Parameters
    ----------
    group : label or tuple of labels
    target, delta : float
    since : str
        When it was certified, see :class:`~skselect.monitoring.check.GuaranteeCheck`.
    evidence : Evidence
    weight, loss : float
        Sums over its cases of known outcome: of weights, and of weight times loss.
    n_known : int
        How many these are.
    n_counted, n_errors : int
        How many count, and how many of these are errors: by a coin each for a weight and a loss.
    alarm_at : int, default=None
        The first of them, counted from 1, after which the evidence reached 1 / `delta`.
    alarm_when : float, default=None
        When that was decided.
    """

    group: Any
    target: float
    delta: float
    since: str = ""
    evidence: Evidence = field(default_factory=Evidence)
    weight: float = 0.0
    loss: float = 0.0
    n_known: int = 0
    n_counted: int = 0
    n_errors: int = 0
    alarm_at: int | None = None
    alarm_when: float | None = None

    def bet(self, loss: FloatArray, weight: FloatArray, when: FloatArray) -> FloatArray:
        """Take further outcomes; return the wealth after each."""
        bets = bets_on_cases(self.target)
        self.evidence, wealth = advance(self.evidence, bets, loss, weight)
        is_rich = wealth >= 1.0 / self.delta
        if self.alarm_at is None and np.any(is_rich):
            place = int(np.argmax(is_rich))
            self.alarm_at = self.n_known + place + 1
            self.alarm_when = float(when[place])
        bits = np.random.PCG64(0)
        bits.advance(2 * self.n_known)  # the same coins, however the cases are split into calls
        coins = np.random.Generator(bits).random((len(loss), 2))
        counts = coins[:, 0] < weight
        is_wrong = coins[:, 1] < loss
        self.n_counted += int(np.sum(counts))
        self.n_errors += int(np.sum(counts & is_wrong))
        self.n_known += len(loss)
        self.weight += float(np.sum(in_grains(weight)))
        self.loss += float(np.sum(in_grains(weight * loss)))
        return wealth

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        group = list(self.group) if isinstance(self.group, tuple) else self.group
        return {**vars(self), "group": group, "evidence": self.evidence.to_dict()}

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take what cases have made of it from :meth:`to_dict`."""
        for name in _RESTORED:
            setattr(self, name, stored[name])
        self.evidence = Evidence.from_dict(stored["evidence"])


def find_watched(
    policy: AbstentionPolicy, target: float | None, delta: float | None
) -> tuple[Loss, list[Watched]]:
    """Return which loss is watched, and the guarantees."""
    groups = policy.parts
    answered = [group for group, at in groups.thresholds.items() if at < math.inf]
    listed = [(_find_risk(groups, group), group) for group in answered]
    request = Request(None if target is None else Risk, target, delta)
    tested = request.choose(listed)
    if not tested:
        raise _refuse(policy, target)
    schedule = Schedule.of([1] * len(tested), None)
    watched = []
    losses = []
    for certificate, group in tested:
        guarantee = request.guarantee(certificate, policy.rule, schedule)
        watched.append(Watched(group, guarantee.scaled_target, guarantee.delta, guarantee.since))
        losses.append(guarantee.about)
    return losses[0], watched


def _find_risk(groups: GroupThresholds, group: Any) -> Certificate | None:
    """Return the guarantee of a largest risk or cost that is about all cases of a subgroup."""
    leading = groups.made.get(group)
    if leading is None:
        return None
    for certificate in (leading, *leading.also):
        is_about_all = certificate.cases == groups.name(group)
        is_selective = certificate.as_objective.is_selective
        if is_guarantee(certificate) and is_about_all and is_selective:
            return certificate
    return None


def _refuse(policy: AbstentionPolicy, target: float | None) -> ArgumentError:
    """Return the error for a policy that guarantees nothing that is watched, or decides nothing."""
    certificates = policy.parts.listed
    leading = policy.certificate
    check = "Check it with check_policy(policy, rows) on fresh labelled rows"
    if target is not None:
        why = "it defers all cases; nothing is watched."
    elif any(each.objective == SystemRisk.word for each in certificates):
        why = (
            "its certificate is about machine and reviewer together, and the monitor does not "
            f"watch the reviewer. {check} with the reviewer's answers (in a terminal: skselect "
            "evaluate --policy), or pass target= to watch the answers of the machine alone."
        )
    elif is_guarantee(leading) and leading.cases:
        why = (
            f"its certificate is only about cases {leading.cases}, and the monitor does not watch "
            f"these alone. {check} (in a terminal: skselect evaluate --policy), or pass target= "
            "to watch all answers together."
        )
    elif any(each.is_of_users_loss for each in certificates):
        why = (
            "its certificate is about a loss of your own, which a policy does not hold. Pass "
            "target=, to watch the share of errors (or the costs)."
        )
    else:
        return ArgumentError(
            "target",
            "target is missing: no certificate of this policy guarantees a largest risk. Say what "
            "to watch, such as target=0.05.",
        )
    return ArgumentError("policy", f"policy: {why}")
