"""The definitions, written out slowly, and random cases to hold the library against.

A case is a list of rows (weight, confidence, loss) in exact fractions; rows of weight zero
are left out. Nothing here is sorted once or summed cleverly: every threshold looks at every
row again. Numbers that need logarithms use decimals of 50 digits. Definitions that only one
test file needs stand there.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, permutations, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import settings, strategies as st

from skselect import Outcomes, RiskCoverageCurve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


class Row(NamedTuple):
    weight: Fraction
    confidence: Fraction
    loss: Fraction


Rows = list[Row]


def rows_of(loss: Iterable[float], confidence: Iterable[float], weight: Any = None) -> Rows:
    """Return exact rows; those of weight zero do not exist."""
    loss, confidence = list(loss), list(confidence)
    weight = [1] * len(loss) if weight is None else list(weight)
    rows = [
        Row(Fraction(float(w)), Fraction(float(c)), Fraction(float(a)))
        for w, c, a in zip(weight, confidence, loss, strict=True)
    ]
    return [row for row in rows if row.weight > 0]


def repeated(values: Sequence[Any], weight: Iterable[float]) -> list[Any]:
    """Return each value as often as its whole weight says."""
    return [x for x, w in zip(values, weight, strict=True) for _ in range(int(w))]


# Comparison ------------------------------------------------------------------------------


def assert_close(actual: Any, expected: Any, *, rel: float = 1e-12, tiny: float = 1e-13) -> None:
    """Compare numbers or sequences of numbers; nan equals nan."""
    actual, expected = np.atleast_1d(actual), np.atleast_1d(expected)
    assert actual.shape == expected.shape
    for a, e in zip(actual.tolist(), expected.tolist(), strict=True):
        number = float(e)
        if math.isnan(number):
            assert math.isnan(a), (a, number)
        else:
            assert math.isclose(a, number, rel_tol=rel, abs_tol=tiny), (a, number)


# At a threshold --------------------------------------------------------------------------


def weight_of(rows: Rows) -> Fraction:
    return sum((row.weight for row in rows), Fraction(0))


def accepted(rows: Rows, threshold: Any) -> Rows:
    return [row for row in rows if row.confidence >= threshold]


def coverage(rows: Rows, threshold: Any) -> Fraction:
    return weight_of(accepted(rows, threshold)) / weight_of(rows)


def weighted_loss(rows: Rows) -> Fraction:
    return sum((row.weight * row.loss for row in rows), Fraction(0))


def selective_risk(rows: Rows, threshold: Any) -> Any:
    kept = accepted(rows, threshold)
    return weighted_loss(kept) / weight_of(kept) if kept else math.nan


def generalized_risk(rows: Rows, threshold: Any) -> Fraction:
    return weighted_loss(accepted(rows, threshold)) / weight_of(rows)


def selective_cost(rows: Rows, threshold: Any, abstention_cost: float) -> Fraction:
    deferred = weight_of(rows) - weight_of(accepted(rows, threshold))
    paid = weighted_loss(accepted(rows, threshold)) + Fraction(abstention_cost) * deferred
    return paid / weight_of(rows)


def cwsa_sum(kept: Rows, threshold: Fraction, *, plus: bool) -> Fraction:
    """Return the sum of w phi (1 - 2 l), or of w phi (1 - l), over the rows given."""
    total = Fraction(0)
    for row in kept:
        phi = (row.confidence - threshold) / (1 - threshold) if threshold < 1 else Fraction(1)
        total += row.weight * phi * (1 - row.loss * (1 if plus else 2))
    return total


def cwsa(rows: Rows, threshold: Any, *, plus: bool = False, normalize: str = "selected") -> Any:
    """At threshold 1 it is the limit from below (phi = 1 for a confidence of 1)."""
    kept = accepted(rows, threshold)
    if not kept:
        return Fraction(0)
    norm = weight_of(kept if normalize == "selected" else rows)
    return cwsa_sum(kept, Fraction(threshold), plus=plus) / norm


# The curve -------------------------------------------------------------------------------


def levels(rows: Rows) -> list[Fraction]:
    """Return the distinct confidences, the surest first."""
    return sorted({row.confidence for row in rows}, reverse=True)


def working_points(rows: Rows) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Return coverage, selective risk and generalised risk at each distinct confidence."""
    return [
        (coverage(rows, c), selective_risk(rows, c), generalized_risk(rows, c))
        for c in levels(rows)
    ]


def risk_at_coverage(rows: Rows, least: float) -> Fraction:
    return next(risk for cov, risk, _ in working_points(rows) if float(cov) >= least)


def coverage_at_risk(rows: Rows, most: float) -> Fraction:
    meets = [cov for cov, risk, _ in working_points(rows) if float(risk) <= most]
    return max(meets, default=Fraction(0))


def coverage_at_reliability(rows: Rows, reliability: float) -> Fraction:
    meets = [cov for cov, _, silent in working_points(rows) if float(1 - silent) >= reliability]
    return max(meets, default=Fraction(0))


def right_limits(rows: Rows, *, plus: bool) -> list[Fraction]:
    """Return CWSA(+) of each accepted set at the lower end of the interval that keeps it."""
    steps = [*levels(rows), Fraction(0)]
    values = []
    for level, below in pairwise(steps):
        kept = accepted(rows, level)
        values.append(cwsa_sum(kept, below, plus=plus) / weight_of(kept))
    return values


# AURC ------------------------------------------------------------------------------------


def blocks(rows: Rows) -> list[tuple[Fraction, Fraction]]:
    """Return weight and mean loss of the rows at each distinct confidence."""
    groups = [[row for row in rows if row.confidence == c] for c in levels(rows)]
    return [(weight_of(group), weighted_loss(group) / weight_of(group)) for group in groups]


def all_orders(rows: Rows) -> Iterable[list[Fraction]]:
    """Yield the losses, the surest first, in every order of tied rows; weights repeat rows."""
    groups = [
        repeated([r.loss for r in rows if r.confidence == c],
                 [r.weight for r in rows if r.confidence == c])
        for c in levels(rows)
    ]  # fmt: skip
    for orders in product(*(permutations(group) for group in groups)):
        yield [loss for order in orders for loss in order]


def aurc_over_all_orders(rows: Rows) -> Fraction:
    """Average the mean of R_k over every order of the tied rows, weights as repeated rows."""
    areas = []
    for ranked in all_orders(rows):
        risks = [sum(ranked[:k], Fraction(0)) / k for k in range(1, len(ranked) + 1)]
        areas.append(sum(risks, Fraction(0)) / len(risks))
    return sum(areas, Fraction(0)) / len(areas)


def aurc_repeated(rows: Rows) -> Fraction:
    """Return the expected mean of R_k for whole weights: a tied row has its block's mean loss."""
    area, n, loss = Fraction(0), 0, Fraction(0)
    for weight, mean_loss in blocks(rows):
        for _ in range(int(weight)):
            n, loss = n + 1, loss + mean_loss
            area += loss / n
    return area / n


def to_decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


@lru_cache(maxsize=4096)
def digamma(x: Fraction) -> Decimal:
    """Return psi(x) to more than 20 digits: recurrence up to 60, then the asymptotic series."""
    with localcontext() as context:
        context.prec = 50
        z, value = to_decimal(x), Decimal(0)
        while z < 60:
            value -= 1 / z
            z += 1
        series = [(2, 12), (4, -120), (6, 252), (8, -240), (10, 132)]
        return value + z.ln() - 1 / (2 * z) - sum(1 / (d * z**p) for p, d in series)


def harmonic_gap(start: Fraction, width: Fraction) -> Decimal:
    """Return psi(start + width + 1) - psi(start + 1)."""
    with localcontext() as context:
        context.prec = 50
        return digamma(start + width + 1) - digamma(start + 1)


def _aurc_by(rows: Rows, gap: Callable[[Fraction, Fraction], Decimal]) -> Decimal:
    with localcontext() as context:
        context.prec = 50
        area, before, loss = Decimal(0), Fraction(0), Fraction(0)
        for weight, mean_loss in blocks(rows):
            factor = to_decimal(loss - mean_loss * before)
            area += to_decimal(mean_loss * weight) + factor * gap(before, weight)
            before, loss = before + weight, loss + mean_loss * weight
        return area / to_decimal(before)


def aurc_digamma(rows: Rows) -> Decimal:
    """Return the closed form of the expected AURC, which also holds for fractional weights."""
    return _aurc_by(rows, harmonic_gap)


def aurc(rows: Rows) -> Any:
    whole = all(row.weight.denominator == 1 for row in rows)
    return aurc_repeated(rows) if whole else aurc_digamma(rows)


def aurc_integral(rows: Rows) -> Decimal:
    """Return the integral of selective risk over coverage, tied rows mixed evenly."""

    def gap(before: Fraction, weight: Fraction) -> Decimal:
        return to_decimal((before + weight) / before).ln() if before else Decimal(0)

    return _aurc_by(rows, gap)


def aurc_ln(rows: Rows) -> float:
    """Return the mean of loss times -ln(1 - r/(n + 1)); tied rows share their mean weight."""
    n = len(rows)
    ranked = sorted(rows, key=lambda row: row.confidence)
    logs = [-math.log1p(-r / (n + 1)) for r in range(1, n + 1)]
    total = []
    for level in levels(rows):
        tied = [i for i, row in enumerate(ranked) if row.confidence == level]
        shared = math.fsum(logs[i] for i in tied) / len(tied)
        total += [float(ranked[i].loss) * shared for i in tied]
    return math.fsum(total) / n


def aurc_block(rows: Rows) -> Fraction:
    """Return the mean over rows of the risk at the row's own confidence."""
    total = sum((r.weight * selective_risk(rows, r.confidence) for r in rows), Fraction(0))
    return total / weight_of(rows)


def best_order(rows: Rows) -> Rows:
    """Return the same rows, as sure as they are right; equal losses may tie."""
    return [Row(row.weight, -row.loss, row.loss) for row in rows]


def eaurc(rows: Rows) -> Any:
    return aurc(rows) - aurc(best_order(rows))


def naurc(rows: Rows) -> float:
    if len({row.loss for row in rows}) == 1:
        return math.nan
    mean_loss = weighted_loss(rows) / weight_of(rows)
    best = aurc(best_order(rows))
    spread = mean_loss - best if isinstance(best, Fraction) else to_decimal(mean_loss) - best
    return float(eaurc(rows)) / float(spread)


# AUGRC and other areas -------------------------------------------------------------------


def augrc(rows: Rows, low: float = 0.0, high: float = 1.0) -> Fraction:
    """Return the area under straight lines through the working points, over its width."""
    points = [(Fraction(0), Fraction(0))]
    points += [(cov, silent) for cov, _, silent in working_points(rows)]
    return area_between(points, Fraction(low), Fraction(high)) / (Fraction(high) - Fraction(low))


def eaugrc(rows: Rows) -> Fraction:
    return augrc(rows) - augrc(best_order(rows))


def area_between(
    points: Sequence[tuple[Fraction, Fraction]], low: Fraction, high: Fraction
) -> Fraction:
    """Cut each straight piece at both ends and add up the trapezoids."""
    area = Fraction(0)
    for (x0, y0), (x1, y1) in pairwise(points):
        left, right = max(x0, low), min(x1, high)
        if left < right:
            slope = (y1 - y0) / (x1 - x0)
            heights = y0 + slope * (left - x0), y0 + slope * (right - x0)
            area += (right - left) * (heights[0] + heights[1]) / 2
    return area


def augrc_unbiased(rows: Rows) -> Fraction:
    """Average, over ordered pairs of rows, the loss of the first if it is the surer one."""
    total, n = Fraction(0), len(rows)
    for i, first in enumerate(rows):
        for j, second in enumerate(rows):
            if i != j and first.confidence > second.confidence:
                total += first.loss
            elif i != j and first.confidence == second.confidence:
                total += first.loss / 2
    return total / (n * (n - 1))


def failure_auroc(rows: Rows) -> Fraction:
    """Return P(right row surer than wrong row) + half the ties; needs both kinds.

    A graded loss l is l of an error and 1 - l of a right answer.
    """
    wins, pairs = Fraction(0), Fraction(0)
    for right in (row for row in rows if row.loss < 1):
        for wrong in (row for row in rows if row.loss > 0):
            weight = right.weight * (1 - right.loss) * wrong.weight * wrong.loss
            pairs += weight
            if right.confidence > wrong.confidence:
                wins += weight
            elif right.confidence == wrong.confidence:
                wins += weight / 2
    return wins / pairs


CURVE_METRICS: dict[str, Callable[[Rows, Any], Any]] = {
    "cwsa": cwsa,
    "cwsa_plus": lambda rows, t: cwsa(rows, t, plus=True),
    "selective_accuracy": lambda rows, t: 1 - selective_risk(rows, t),
    "selective_risk": selective_risk,
    "generalized_risk": generalized_risk,
}


def aumcc(rows: Rows, metric: str, thresholds: Iterable[float] | None = None) -> Fraction:
    """Apply the trapezoidal rule to (coverage, metric) from the highest threshold down."""
    grid = [k / 100 for k in range(50, 100)] if thresholds is None else thresholds
    used = [t for t in sorted(grid, reverse=True) if accepted(rows, t)]
    points = [(coverage(rows, t), CURVE_METRICS[metric](rows, t)) for t in used]
    return sum(((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(points)), Fraction(0))


def aumcc_exact(rows: Rows, metric: str) -> Fraction:
    """Return the mean over rows of the metric at the row's own confidence."""
    total = sum((r.weight * CURVE_METRICS[metric](rows, r.confidence) for r in rows), Fraction(0))
    return total / weight_of(rows)


# Bets ----------------------------------------------------------------------------------------


def betting_bound(losses: Any, delta: float) -> float:
    """The largest mean that bets at stakes which know no mean do not rule out."""
    least = min(math.sqrt(2 * math.log(1 / delta) / len(losses)), 0.75)
    steps = math.ceil(math.log(0.75 / least, 3))
    stakes = [least * (0.75 / least) ** (j / steps) if steps else least for j in range(steps + 1)]

    def poor(mean: float) -> bool:
        wealth = [math.prod(1 - x / (1 - mean) * (y - mean) for y in losses) for x in stakes]
        return sum(wealth) / len(wealth) < 1 / delta

    return edge(lambda mean: not poor(mean))


def edge(met: Callable[[float], bool]) -> float:
    """The number between 0 and 1 from which on something is met, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if met(middle) else (middle, high)
    return high


# Confidences -----------------------------------------------------------------------------


def max_proba(p: Sequence[float]) -> float:
    return max(float(x) for x in p)


def margin(p: Sequence[float]) -> float:
    first, second = sorted((Fraction(float(x)) for x in p), reverse=True)[:2]
    return float(first - second)


def entropy(p: Sequence[float]) -> float:
    terms = [-float(x) * math.log(float(x)) for x in p if x > 0]
    return 1 - math.fsum(terms) / math.log(len(p))


def gini(p: Sequence[float]) -> float:
    squares = sum((Fraction(float(x)) ** 2 for x in p), Fraction(0))
    return float((len(p) * squares - 1) / (len(p) - 1))


CONFIDENCES = {"max_proba": max_proba, "margin": margin, "entropy": entropy, "gini": gini}


# Random cases ----------------------------------------------------------------------------


#: Drawn labels now and then fit the columns better in another order, and the library says so.
SWAPPED_BY_CHANCE = pytest.mark.filterwarnings(
    "ignore:y_proba. its columns seem to be in another order:UserWarning"
)


def examples(n: int) -> Callable[[Any], Any]:
    """Return a decorator: n percent of the profile's examples, the same ones in every run."""
    most = n * settings().max_examples // 100
    in_every_run = settings(derandomize=True, deadline=None, max_examples=max(most, 4))

    def decorate(test: Any) -> Any:
        return SWAPPED_BY_CHANCE(in_every_run(test))

    return decorate


@contextmanager
def named(*case: Any) -> Iterator[None]:
    """Name the case in the message of what fails inside."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"The case: {case}")
        raise


POOLS = {
    "few": [0.5, 0.6, 0.75, 0.9, 1.0],
    "edges": [0.0, 1e-300, 1e-12, 0.5, 1 - 1e-12, math.nextafter(1, 0), 1.0],
    "tenths": [k / 10 for k in range(11)],
}


@dataclass(frozen=True)
class RowCase:
    """Losses, confidences and weights, as the library and as the definitions take them."""

    loss: np.ndarray
    confidence: np.ndarray
    weight: np.ndarray | None

    @property
    def rows(self) -> Rows:
        return rows_of(self.loss, self.confidence, self.weight)

    @property
    def outcomes(self) -> Outcomes:
        return Outcomes(self.loss, self.confidence, self.weight)

    @property
    def curve(self) -> RiskCoverageCurve:
        return RiskCoverageCurve.from_outcomes(self.outcomes)


@dataclass(frozen=True)
class ProbaCase:
    """True class codes 0..K-1 and probabilities; `labels` names every class."""

    y_true: np.ndarray
    y_proba: np.ndarray
    weight: np.ndarray | None

    @property
    def labels(self) -> list[int]:
        return list(range(self.y_proba.shape[1]))

    @property
    def options(self) -> dict[str, Any]:
        return {"labels": self.labels, "sample_weight": self.weight}

    def rows(self, confidence: str = "max_proba") -> Rows:
        table = self.y_proba.tolist()
        predicted = [p.index(max(p)) for p in table]
        loss = [float(a != b) for a, b in zip(predicted, self.y_true.tolist(), strict=True)]
        return rows_of(loss, [CONFIDENCES[confidence](p) for p in table], self.weight)


def _weights(rng: np.random.Generator, kind: str, n: int) -> np.ndarray | None:
    if kind == "none":
        return None
    if kind == "real":
        return rng.uniform(0.5, 2.5, n)
    weight = rng.integers(0, 4, n).astype(float)
    if not weight.any():
        weight[0] = 1.0
    return weight


WEIGHTS = ("none", "integer", "real")
LOSSES = ("zero_one", "dyadic", "real")


def of_rows(metric: Callable[..., Any], case: RowCase, /, **options: Any) -> Any:
    """Score bare losses and confidences through a public function."""
    n = len(case.loss)
    return metric(
        np.zeros(n), np.tile([1.0, 0.0], (n, 1)), labels=[0, 1], confidence=case.confidence,
        loss=lambda a, b: case.loss, sample_weight=case.weight, **options,
    )  # fmt: skip


def of_probabilities(metric: Callable[..., Any], case: ProbaCase, /, **options: Any) -> Any:
    """Score class probabilities through a public function."""
    return metric(case.y_true, case.y_proba, **case.options, **options)


@st.composite
def row_cases(
    draw: st.DrawFn,
    *,
    weights: Sequence[str] = WEIGHTS,
    losses: Sequence[str] = LOSSES,
    unit: bool = True,
    max_rows: int = 50,
) -> RowCase:
    """Draw rows: ties or none, 0/1 or graded losses ("dyadic" ones add up exactly)."""
    n = draw(st.integers(1, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    pool = draw(st.sampled_from([*POOLS, "distinct"]))
    confidence = rng.random(n) if pool == "distinct" else rng.choice(POOLS[pool], n)
    if not unit:
        confidence = draw(st.sampled_from([1.0, 10.0, 1e6])) * (confidence - 0.5)
    kind = draw(st.sampled_from(list(losses)))
    error_rate = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    wrong = rng.random(n) < error_rate
    if kind == "zero_one":
        loss = wrong.astype(float)
    elif kind == "dyadic":
        loss = np.where(wrong, rng.choice([0.25, 0.5, 1.0], n), 0.0)
    else:
        loss = np.where(wrong, rng.random(n), 0.0)
    return RowCase(loss, confidence, _weights(rng, draw(st.sampled_from(list(weights))), n))


@st.composite
def proba_cases(
    draw: st.DrawFn,
    *,
    weights: Sequence[str] = WEIGHTS,
    classes: tuple[int, int] = (2, 5),
    max_rows: int = 50,
) -> ProbaCase:
    """Draw probabilities with few or many levels; some classes may never be true."""
    n, n_classes = draw(st.integers(1, max_rows)), draw(st.integers(*classes))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    sharpness = draw(st.sampled_from([0.2, 1.0]))
    proba = rng.dirichlet(np.full(n_classes, sharpness), n)
    parts = draw(st.sampled_from([None, 4, 10]))
    if parts is not None:
        proba = rng.multinomial(parts, proba) / parts
    present = draw(st.integers(1, n_classes))
    guess = np.minimum(proba.argmax(axis=1), present - 1)
    y_true = np.where(rng.random(n) < 0.7, guess, rng.integers(0, present, n))
    return ProbaCase(y_true, proba, _weights(rng, draw(st.sampled_from(list(weights))), n))


@st.composite
def perfect_cases(draw: st.DrawFn) -> RowCase:
    """Draw rows whose confidence falls as the loss grows; ties only among equal losses."""
    n = draw(st.integers(1, 50))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    pool = draw(st.sampled_from([[0.0, 1.0], [0.0, 0.1, 0.2, 0.3, 1.0], [0.3]]))
    loss = rng.choice(pool, n)
    inside = rng.integers(0, draw(st.sampled_from([1, 2, 50])), n)
    weight = _weights(rng, draw(st.sampled_from(WEIGHTS)), n)
    return RowCase(loss, 1 - (loss + inside / 1000) / 2, weight)


#: Thresholds in [0, 1): anywhere, at the levels of the pools, and at both ends.
thresholds = st.one_of(
    st.floats(0, 1, exclude_max=True),
    st.sampled_from([0.0, 0.5, 0.6, 0.75, 0.9, 1 - 1e-12, math.nextafter(1, 0)]),
)
