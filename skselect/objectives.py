"""What a threshold should achieve: how each objective finds it, bounds it and says it.

An objective stores what it gets and checks it when it is used, as scikit-learn's estimators do, so
that searches can set its parameters. :meth:`Objective.on` sets a copy on given rows.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import partial
from inspect import signature
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from scipy import special

from skselect._lib.arrays import BoolArray, FloatArray, LossSpec, draw_rows, reaches
from skselect._lib.checks import did_you_mean, shown, warn_user
from skselect._lib.checks.options import (
    check_choice,
    check_count,
    check_delta,
    check_number,
    check_range,
    check_risk_limit,
)
from skselect._lib.notebook import VERDICTS, percent, rounded
from skselect.bounds._pointwise import (
    anytime_upper,
    betting_upper,
    clopper_pearson_upper,
    critical_counts,
    least_count,
    rows_for_certificate,
    upper_from_counts,
)
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import ArgumentError, InfeasibleTargetError
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.outcomes import LOSSES, Outcomes
from skselect.predictions.predictions import check_is_predictions, rows_of_class
from skselect.thresholds import Combined, FixedSequence, LevelSequence
from skselect.thresholds import _metric as metrics
from skselect.thresholds import _rules as rules
from skselect.thresholds._rules import Passing, Rule
from skselect.thresholds._sequences import are_tied, count_system_errors, system_levels


@dataclass(frozen=True)
class Loss:
    """What an accepted row loses.

    Parameters
    ----------
    kind : {"zero_one", "cost", "graded"}
        An error counts 1; it costs what the cost matrix says; or a loss of the user's own.
    unit : float
        What a loss of 1 is in the user's own units.
    """

    kind: str = "zero_one"
    unit: float = 1.0

    @classmethod
    def of(cls, loss: LossSpec, rule: DecisionRule) -> Loss:
        """Return what a loss (no longer "auto") means under a decision rule."""
        if callable(loss):
            return cls("graded")
        return cls("cost", rule.unit) if loss == "cost" else cls()

    @property
    def is_error(self) -> bool:
        """Whether a loss is an error, so that a mean loss is a share of rows."""
        return self.kind == "zero_one"

    @property
    def is_cost(self) -> bool:
        """Whether a loss is a cost of the cost matrix."""
        return self.kind == "cost"

    def amount(self, value: float, *, up: bool | None = True) -> str:
        """Return a mean loss in the user's units as text: a per cent of errors, or a number.

        It is an upper bound unless `up` says otherwise, see :func:`rounded`.
        """
        return percent(value, up=up) if self.is_error else rounded(value, 6, up=up)


#: Ways to find a threshold that have parameters of their own.
METHOD_OBJECTS = (FixedSequence, LevelSequence, Combined)


class Method(NamedTuple):
    """One way to find a threshold, and what is guaranteed about it.

    `find` is a :data:`Rule`, or what the class of the objective calls. `guarantee` is
    "high_probability", "mean" or "none"; `caveat` says why the guarantee is not exact.
    """

    find: Callable[..., Any]
    guarantee: str = "high_probability"
    caveat: str = ""
    has_starts: bool = False


def _refuse_without_levels(*_: Any) -> BoolArray:
    """Refuse the word alone: only other rows can name levels."""
    raise ArgumentError(
        "method",
        "method='level_sequence' needs levels that other rows name: "
        "LevelSequence.of(curve, n, target, delta), or LevelSequence([...]).",
    )


_SGR = (
    "the published proof of SGR treats the probes of its bisection as fixed, but they depend on "
    "the rows (method='combined' certifies, and answers more)"
)
#: The share of its rows by which a tuner certifies, where they are enough.
HELD_OUT = 0.4
#: One row in so many names the thresholds that the others test.
NAMING = 5
#: A guarantee that is kept is in doubt with this probability at most; several share it evenly.
DOUBT = 0.1
#: The probability with which a verdict would have found what it says it would.
FOUND = 0.95
# The least coverage is said to bind where the chosen one is larger by less than this.
_NEAR = 0.05
#: Why a guarantee in expectation is an estimate.
MEAN_ONLY = (
    "the target is kept on average over many calibrations, and a single one misses it about every "
    "second time"
)


class Reviewing(NamedTuple):
    """What is known of a reviewer who decides the deferred cases.

    `bound` is an upper bound of the share of all cases that are deferred and then wrong, `rate` the
    share of the deferred cases that are wrong, None where none is given; `share` is what the bound,
    if it is estimated, leaves of `delta`; `assumes` is assumed before all else.
    """

    bound: float | None = None
    rate: float | None = None
    share: float = 1.0
    assumes: tuple[str, ...] = ()


# What all objectives have ------------------------------------------------------------------


class Objective:
    """What a threshold should achieve; see :class:`Risk` and the others.

    Two objectives are equal if they are of one class with equal parameters. They can change, so
    that they have no hash.
    """

    #: The word that stands for the objective.
    word: ClassVar[str]
    #: The methods by name; "auto" takes the first one.
    methods: ClassVar[Mapping[str, Method]]
    #: Whether "auto" takes the costs of a cost matrix as the loss.
    reads_costs: ClassVar[bool] = False
    #: What the target is, for the message that it is missing; "" where there is none.
    target_means: ClassVar[str] = ""
    #: Whether a certificate can come with the threshold.
    certifies: ClassVar[bool] = False

    delta: float = 0.05
    max_analyses: int = 1
    method: Any = "auto"
    min_coverage: Any = 0.0
    loss: LossSpec = "auto"
    given_prediction: Any = None
    given_class: Any = None
    largest_weight: float | None = None

    # What it knows on given rows, see `on`; these are no parameters.
    about: Loss = Loss()
    cases: str = ""
    n_sharing: int = 1
    share: float = 1.0

    # As scikit-learn's estimators: nothing is checked or copied before use.

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters by name."""
        return {one.name: getattr(self, one.name) for one in fields(cast(Any, self))}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Raises
        ------
        ValueError
            If a name is unknown.
        """
        known = list(self.get_params())
        for name, value in params.items():
            if name not in known:
                raise ArgumentError(
                    name,
                    f"{name}: {type(self).__name__} has no such parameter; it has {known}."
                    f"{did_you_mean(name, known)}",
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        values = {one: getattr(self, one.name) for one in fields(cast(Any, self))}
        said = [
            f"{one.name}={value!r}" if one.kw_only else repr(value)
            for one, value in values.items()
            if not (type(value) is type(one.default) and value == one.default)
        ]
        return f"{type(self).__name__}({', '.join(said)})"

    # What it is about ----------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The objective in a word."""
        return self.word

    @property
    def target_given(self) -> Any:
        """The target, as it was given; None where the best value is taken."""
        return getattr(self, "target", None)

    def choose_loss(self, *, has_costs: bool) -> LossSpec:
        """Return the loss, for "auto" the cost where there is one and it can be used."""
        if not callable(self.loss):
            check_choice("loss", self.loss, ["auto", *LOSSES])
            if self.loss == "auto":
                return "cost" if has_costs and self.reads_costs else "zero_one"
        return self.loss

    @property
    def plan(self) -> Method:
        """The method."""
        return self.methods[self.method_name]

    @property
    def guarantees(self) -> bool:
        """Whether a certificate comes with the threshold."""
        return self.certifies and self.plan.guarantee != "none"

    @property
    def reviewing(self) -> Reviewing:
        """What is known of a reviewer."""
        return Reviewing()

    @property
    def counts_deferred(self) -> bool:
        """Whether it counts deferred rows that a reviewer gets wrong."""
        return False

    @property
    def counts(self) -> bool:
        """Whether it counts rows that are right or wrong: a guarantee with high probability."""
        return self.certifies and self.plan.guarantee == "high_probability"

    @property
    def ignores_rows(self) -> bool:
        """Whether the threshold depends on no rows."""
        return self.method_name == "chow"

    @property
    def method_name(self) -> str:
        """The name of the method, also of a method object; "auto" is the first one."""
        known = ["auto", *self.methods]
        given = self.method
        name = given.name if isinstance(given, METHOD_OBJECTS) else given
        if not isinstance(name, str) or name not in known:
            raise ArgumentError(
                "method",
                f"method (of objective={self.name!r}) must be one of {known}, got {shown(given)}."
                f"{did_you_mean(name, known)}",
            )
        return known[1] if name == "auto" else name

    @property
    def is_of_class(self) -> bool:
        """Whether it is about the rows of one answer or of one true class."""
        return self.given_prediction is not None or self.given_class is not None

    def find_rows(self, source: Any) -> tuple[BoolArray | None, str]:
        """Return which rows it is about, None for all, and their name in messages."""
        for name, side in (("given_prediction", "predicted"), ("given_class", "true")):
            label = getattr(self, name)
            if label is None:
                continue
            predictions = check_is_predictions(source, name)
            known = predictions.classes.tolist()
            if label not in known:
                raise ValueError(
                    f"{name} must be one of the classes {known[:10]}, got {shown(label)}."
                )
            label = label.item() if isinstance(label, np.generic) else label
            rows, cases = rows_of_class(predictions, side, label)
            if not np.any(rows):
                raise ValueError(f"{name}={label!r}: there is no such row.")
            return rows, cases
        return None, ""

    # Checks ----------------------------------------------------------------------------------

    def check(self, loss: Loss, confidence: Any = None) -> Objective:
        """Return a copy with checked parameters, or raise.

        `confidence` is its name or a function, None for an array.
        """
        _ = self.method_name
        checked = copy.copy(self)
        checked._check(loss, confidence)  # noqa: SLF001 - the copy
        return checked

    def _check(self, loss: Loss, confidence: Any) -> None:
        """Check what is particular to the class."""
        raise NotImplementedError

    # On given rows ---------------------------------------------------------------------------

    def on(self, loss: Loss, cases: str = "", *, n_sharing: int = 1, share: float = 1.0) -> Self:
        """Return a copy that knows its rows.

        Parameters
        ----------
        loss : Loss
            What an accepted row loses.
        cases : str, default=""
            The cases it is about, as messages name them; "" for all.
        n_sharing : int, default=1
            How many guarantees, those of all subgroups, share `delta` evenly.
        share : float, default=1
            Which share of the rows given certifies: the others train, or set a shortlist.
        """
        placed = copy.copy(self)
        placed.about, placed.cases = loss, cases
        placed.n_sharing, placed.share = n_sharing, share
        return placed

    @property
    def unit(self) -> float:
        """In which units the target is, as a multiple of the largest loss."""
        return self.about.unit

    @property
    def own_delta(self) -> float:
        """Its part of `delta`."""
        return self.delta / self.n_sharing

    @property
    def level(self) -> float:
        """The share of `delta` that each analysis uses."""
        return self.reviewing.share * self.own_delta / self.max_analyses

    @property
    def rows_to_fail(self) -> float:
        """The fewest rows with which it uses `delta`; 0 where it divides delta for nothing."""
        return 0

    @property
    def reuse_warning(self) -> str:
        """What happens to the guarantee when rows are added for another analysis."""
        return ""

    def find(self, curve: RiskCoverageCurve) -> Found:
        """Find the threshold on a curve of rows that count once; inf where none is good enough."""
        raise NotImplementedError

    def refuse(
        self, curve: RiskCoverageCurve, *, again: str = "", remedy: str = ""
    ) -> InfeasibleTargetError:
        """Return the error where no threshold is good enough: why, and what would help."""
        raise NotImplementedError


#: One objective, several guarantees that one threshold keeps, or an objective for each subgroup.
Objectives = Objective | list[Objective] | Mapping[Any, Objective]


class Counts(NamedTuple):
    """How many rows there are, and how many are accepted; how many of these have a loss.

    `n_missed` are rows that are not accepted, and that a reviewer gets wrong.
    """

    n: int
    n_accepted: int
    n_errors: int
    n_missed: int = 0

    @classmethod
    def of(cls, loss: FloatArray, accepted: BoolArray, missed: FloatArray | None = None) -> Counts:
        """Count rows by their losses, and those of a reviewer, and by which rows are accepted."""
        wrong, of_reviewer = loss != 0, False if missed is None else missed != 0
        counted = accepted, accepted & wrong, of_reviewer & ~accepted
        return cls(len(loss), *(int(np.count_nonzero(one)) for one in counted))


class Finding(NamedTuple):
    """What rows show of a guarantee: the share or mean that it bounds, and bounds, in [0, 1].

    `p_value` is the exact chance of such rows, or worse, at the target. Rows like these would put a
    true share of `detectable`, or worse, in doubt with probability .95; nan where none.
    """

    verdict: str
    value: float
    low: float
    high: float
    p_value: float
    detectable: float


class Found(NamedTuple):
    """A threshold, None where an entry of the curve fixes it; its entries, the metric there."""

    threshold: float | None
    n_blocks: int
    value: float | None = None


# Guarantees --------------------------------------------------------------------------------


@dataclass(repr=False)
class Guarantee(Objective):
    """An objective with a target that later cases keep with high probability."""

    certifies = True
    #: Whether the target is a lower bound.
    is_least: ClassVar[bool] = False
    #: Whether rows that are not accepted do not count.
    is_selective: ClassVar[bool] = False
    #: What is rare, or frequent, in a word or two.
    noun: ClassVar[str] = "wrong answers"

    target: Any
    _: KW_ONLY
    delta: float = 0.05
    max_analyses: int = 1
    method: str | FixedSequence | LevelSequence | Combined = "auto"
    given_prediction: Any = None
    given_class: Any = None
    largest_weight: float | None = None

    @property
    def scaled_target(self) -> float:
        """The target as a share of the largest loss, without what a reviewer takes of it."""
        return self.target / self.unit - (self.reviewing.bound or 0.0)

    @property
    def largest(self) -> float:
        """The largest share or mean that keeps the target, of what must be small."""
        return self.scaled_target

    @property
    def rule(self) -> Rule:
        """The function that tells which entries of a curve pass."""
        return self.plan.find if isinstance(self.method, str) else self.method

    @property
    def has_starts(self) -> bool:
        """Whether the user has fixed where a sequence begins."""
        return self.plan.has_starts or isinstance(self.method, Combined)

    def checked_target(self, loss: Loss) -> float:
        """Return the target, checked in the user's units."""
        target = check_number("target", self.target, 0.0, loss.unit, closed="neither")
        return check_risk_limit(target) if loss.is_error else target

    # In words

    def amount(self, value: float, *, up: bool | None = True) -> str:
        """Return a target as text, or any value (`up` as for :func:`rounded`)."""
        return self.about.amount(value, up=up)

    @property
    def what(self) -> str:
        """What it bounds, in a word or two."""
        return self.noun if self.about.is_error or self.is_least else "mean loss"

    def limit(self, word: str, found: float = math.nan) -> dict[str, str]:
        """Return the target, and a value that was found, by what they are; `word`: how sure."""
        seen = {} if math.isnan(found) else {f"{self.what}, found": self.amount(found, up=None)}
        sign = "≥" if self.is_least else "≤"
        return seen | {f"{self.what}, {word}": f"{sign} {self.amount(self.target)}"}

    def describe(self) -> str:
        """Return the guarantee in words, its bound rounded to the safe side."""
        raise NotImplementedError

    # On rows

    def count(self, seen: Counts) -> tuple[int, int]:
        """Return a count and its total: the share that must be small."""
        raise NotImplementedError

    def values(self, loss: FloatArray, accepted: BoolArray) -> FloatArray:
        """Return the values whose mean must be small."""
        return np.where(accepted, loss, self.reviewing.rate or 0.0)

    def review(self, outcomes: Outcomes | None, threshold: float) -> str:  # noqa: ARG002
        """Return what is said about a reviewer."""
        return ""

    def test(
        self,
        seen: Counts,
        graded: FloatArray | None = None,
        *,
        anytime: bool = False,
        doubt: float = DOUBT,
    ) -> Finding:
        """Test the guarantee on rows, for a threshold that was fixed beforehand.

        By counts, or by `graded` values: those that :meth:`values` returns. Each bound fails with
        probability `level`; `anytime`: even if one looks whenever rows were added. What is kept is
        in doubt with probability `doubt` at most. Losses are counted by a coin each: an error with
        this probability.
        """
        count, n = self.count(seen)
        bounds = find_mean(count, n, graded, self.level, anytime=anytime)
        if graded is not None and n:
            count = int(np.sum(Outcomes(graded, np.zeros(n)).count(0).loss))
        return self.judge(count, n, bounds, doubt)

    def judge(
        self, count: int, n: int, bounds: tuple[float, float, float], doubt: float
    ) -> Finding:
        """Return the verdict on a count of `n`, beside a mean and its bounds."""
        (value, low, high), largest = bounds, self.largest
        p_value = float(special.bdtr(n - count, n, 1.0 - largest))
        detectable = self.detectable(n, doubt)
        verdict = (
            "broken" if low > largest
            else "confirmed" if high <= largest
            else "in_doubt" if p_value <= doubt
            else "no_breach" if self.is_tested_by(n, doubt)
            else "not_tested"
        )  # fmt: skip
        if self.is_least:
            value, low, high, detectable = 1.0 - value, 1.0 - high, 1.0 - low, 1.0 - detectable
        return Finding(verdict, value, low, high, p_value, detectable)

    def detectable(self, n: int, doubt: float) -> float:
        """Return the least share that so many rows put in doubt with probability .95, nan if none.

        It is a share of what must be small.
        """
        right = int(critical_counts(np.array([n]), 1.0 - self.largest, doubt)[0])
        return clopper_pearson_upper(n - right - 1, n, 1.0 - FOUND) if right >= 0 else math.nan

    def is_tested_by(self, n: int, doubt: float) -> bool:
        """Tell whether so many rows put a share of three times the target in doubt."""
        most = 3.0 * self.largest
        return n > 0 and (most == 0.0 or self.detectable(n, doubt) <= most)

    def rows_to_test(self, doubt: float, n_kept: int = 0) -> int:
        """Return about how many rows, beside some that are kept, test it."""
        return least_count(lambda n: self.is_tested_by(n_kept + n, doubt))

    def weakest(self, counts: Iterable[Counts]) -> float:
        """Return the largest bound of what must be small, over the readings of the rows."""
        return float(max(upper_from_counts(*self.count(one), self.level) for one in counts))

    def bound(self, most: float) -> float:
        """Return what must be small at most as a target, in the user's units."""
        return self.unit * (1.0 - most if self.is_least else most) + (self.reviewing.bound or 0.0)

    def tell_life(
        self, since: str, verdict: str = "", found: str = "", detectable: float = math.nan
    ) -> str:
        """Return the life of a guarantee as one paragraph, the verdict first.

        Parameters
        ----------
        since : str
            When it was certified, and by how many rows; "" where no certificate guarantees it.
        verdict : str, default=""
        found : str, default=""
            What was found since.
        detectable : float, default=nan
            Which value would have been found, in the user's units.
        """
        word, tone = VERDICTS.get(verdict, ("", ""))
        start = f"Guaranteed ({since})" if since else "Target"
        said = [f"{word}." if word else "", f"{start}: {self.describe()}."]
        said.append(f"Found{' since' if since else ''}: {found}." if found else "")
        said.append("The certificate stands." if since and tone == "good" else "")
        if tone in ("open", "good") and not math.isnan(detectable):
            # Rounded away from the target, so that it is found with that probability at least.
            noun, unit, sign = "mean", 1.0, ""
            if self.about.is_error or self.is_least:
                noun, unit, sign = "rate", 100.0, " %"
            amount = rounded(unit * detectable, 2, up=not self.is_least) + sign
            said.append(f"A true {noun} of {amount} or {'less' if self.is_least else 'more'}")
            said.append(f"would have been found with probability {100 * FOUND:.0f} %.")
        return " ".join(filter(None, said))

    def find(self, curve: RiskCoverageCurve) -> Found:
        """Find the threshold on a curve of rows that count once."""
        return self.choose(curve, self.passes(curve))

    def passes(
        self,
        curve: RiskCoverageCurve,
        outcomes: Outcomes | None = None,  # noqa: ARG002
    ) -> Passing:
        """Return the thresholds that pass on a curve, whose rows are `outcomes` where known."""
        return Passing(self.rule(curve, self.scaled_target, self.level, self.min_coverage))

    def choose(self, curve: RiskCoverageCurve, passing: Passing) -> Found:
        """Choose the lowest threshold that passes; inf where none does."""
        n_blocks, levels = rules.last_passed(passing.entries), passing.levels
        if len(levels) and (n_by_level := int(curve.n_blocks_accepted(levels[-1:])[0])) >= n_blocks:
            return Found(float(levels[-1]), n_by_level)
        return Found(None if n_blocks else math.inf, n_blocks)

    def rows_needed(self) -> int:
        """Return the smallest number of rows that could meet the target."""
        if self.plan.guarantee == "mean":  # 1 / (n + 1) is at most the target
            return math.ceil(1.0 / self.scaled_target - 1.0 - 1e-9)
        return rows_for_certificate(self.scaled_target, self.level)

    @property
    def rows_to_fail(self) -> float:
        """The fewest rows with which the guarantee can fail: fewer certify nothing."""
        return self.rows_needed() if self.counts else 0

    def _check(self, loss: Loss, confidence: Any) -> None:  # noqa: ARG002
        self.delta = check_delta(self.delta)
        self.max_analyses = check_count("max_analyses", self.max_analyses)
        for name, means, given in (
            ("max_analyses", "divides delta", self.max_analyses > 1),
            ("largest_weight", "makes counts of weights", self.largest_weight is not None),
        ):
            if given and not self.counts:
                raise ArgumentError(
                    name,
                    f"{name}={getattr(self, name)} {means}, which objective={self.name!r} with "
                    f"method={self.method_name!r} does not use: it gives no guarantee that "
                    "holds with high probability. Leave it out.",
                )
        if self.given_prediction is not None and self.given_class is not None:
            raise ValueError(
                "given_prediction and given_class: a guarantee is about the rows of one answer or "
                "of one true class; pass one of the two."
            )
        if self.largest_weight is not None:
            check_number("largest_weight", self.largest_weight, 0.0, math.inf, closed="neither")
        self.target = self.checked_target(loss)

    # Refusals

    @property
    def reuse_warning(self) -> str:
        """What happens to the guarantee when rows are added for another analysis."""
        if not self.guarantees:
            return ""
        if self.max_analyses > 1:
            return (
                f" Rows may be added to these for the next of the {self.max_analyses} planned "
                "analyses, up to about the number that is needed. An analysis beyond the plan "
                "breaks the guarantee."
            )
        return (
            " Adding rows to these and asking again breaks the guarantee. Use fresh rows only, or "
            "plan the number of analyses before the first one (max_analyses=)."
        )

    def _in_all(self, n: int) -> int:
        """Return how many rows it takes in all so that `n` of them certify."""
        return math.ceil(n / self.share - 1e-9)

    def _name_all(self, n: int) -> str:
        """Say how many rows it takes in all so that `n` of them certify, "" where all do."""
        return f" ({self._in_all(n):,} in all)" if self.share < 1.0 else ""

    def refuse(
        self, curve: RiskCoverageCurve, *, again: str = "", remedy: str = ""
    ) -> InfeasibleTargetError:
        """Return the error where no threshold meets the target.

        The smallest target for a risk takes many times as long as the refusal itself, so that it
        is looked for when the message is read.
        """
        advice, needed = self._advise_rows(curve)

        def find_least() -> tuple[float | None, str]:
            least, text = self._describe_least(curve)
            return least, write(text)

        def write(about_least: str) -> str:
            told = [*advice]
            if self.min_coverage > 0:
                told.append(
                    f"only accepted shares of at least min_coverage={self.min_coverage:g} count"
                )
            told += [about_least] if about_least else []
            sentences = ". ".join(one[0].upper() + one[1:] for one in told)
            which = f"{curve.n_rows:,} rows"
            if self.share < 1.0:
                which = f"{curve.n_rows:,} certifying rows ({self._in_all(curve.n_rows):,} in all)"
            return (
                f"No threshold meets target={self.target:g} for objective={self.name!r} on "
                f"{which} with delta={self.own_delta:g}. {sentences}.{again}"
            )

        return InfeasibleTargetError(
            write(""), rows_needed=needed, remedy=remedy, find_least=find_least
        )

    def _advise_rows(self, _: RiskCoverageCurve) -> tuple[list[str], int | None]:
        """Say how many rows it takes; return that number, too."""
        if not self.guarantees:
            return [], None
        least = self.rows_needed()
        in_all = self._name_all(least)
        kind = "accepted rows" if self.is_selective else "rows"
        advice = [f"Even without a single error, at least {least:,} {kind}{in_all} are needed"]
        return advice, least

    def _describe_least(self, curve: RiskCoverageCurve) -> tuple[float | None, str]:
        """Return the smallest target that could be met, if it is known, and say so."""
        if not self.guarantees:
            allowed = reaches(curve.coverage, self.min_coverage)
            least = self.about.unit * float(np.min(self._observed(curve)[allowed]))
            return least, f"the smallest risk of any accepted set of these rows is {least:.4g}"
        least = self.about.unit * self._least_target(curve)
        if self.about.is_error and least > 0.5:
            return None, f"no target up to 0.5 could have been met by these {curve.n_rows} rows"
        return least, (
            f"the smallest target these {curve.n_rows:,} rows could have met is "
            f"{rounded(least, 4, up=True)}, but certifying it needs fresh rows"
        )

    def _observed(self, curve: RiskCoverageCurve) -> FloatArray:
        """Return what the target bounds, at each entry of a curve."""
        return curve.generalized_risk

    def _least_target(self, curve: RiskCoverageCurve) -> float:
        """Return the smallest target that these rows could have met, in [0, 1]."""
        return clopper_pearson_upper(curve.accepted_loss[0], curve.n_rows, self.level)


@dataclass(repr=False, kw_only=True)
class Risk(Guarantee):
    """Certify a selective risk of at most `target`, and answer as many cases as that allows.

    The selective risk is the mean loss of the accepted rows (for errors, the share of wrong
    answers). Most calls need only `target`: ``Risk(.05)``.

    Parameters
    ----------
    target : float
        The bound to keep. In (0, 0.5] for errors; in units of the cost matrix where there is one;
        up to 1 for a loss of your own.
    delta : float in (0, 0.5], default=0.05
        Probability that the guarantee fails. The probability is over calibrations like this one;
        subgroups with enough rows share it evenly.
    max_analyses : int, default=1
        How often at most you will choose a threshold while adding rows to the same set. Plan this
        number, and how many rows each analysis uses, before the first. Each analysis uses `delta` /
        `max_analyses`. Calls with fresh rows only need no plan.
    method : str, FixedSequence, LevelSequence or Combined, default="auto"
        How the threshold is found, and what is guaranteed; "auto" means "combined".

        - Certified: "combined" usually accepts most, and other rows may choose its start
          (:class:`~skselect.thresholds.Combined`); "band" is for classifiers that are worst where
          they are surest; "fixed_sequence" begins at 25 % of the rows, or where a
          :class:`~skselect.thresholds.FixedSequence` says; a
          :class:`~skselect.thresholds.LevelSequence` is for tied confidences, and a tuner uses it
          by itself if the training rows have few levels; "bonferroni".
        - Estimates: "sgr", "mean". No guarantee: "empirical".
    min_coverage : float in [0, 1] or "auto", default="auto"
        Smaller accepted sets are not considered. "auto": 0.1, or 0 for "empirical".
    loss : {"auto", "zero_one", "cost"} or callable, default="auto"
        How wrong an answer is. "auto": its cost where there is a cost matrix. A callable
        ``(y_true, y_pred) -> loss`` returns values in [0, 1]. A loss between 0 and 1 counts as an
        error with this probability.
    given_prediction : label, default=None
        The guarantee covers only rows with this answer: "healthy" for "at most 1 % wrong among the
        accepted negatives". The threshold is applied to all rows.
    given_class : label, default=None
        The guarantee covers only rows of this true class.
    largest_weight : float, default=None
        A limit, fixed beforehand, that no weight can exceed. It says that ``sample_weight`` holds
        importance weights: a row counts with probability weight / `largest_weight`. None: unequal
        weights are refused.

    See Also
    --------
    GeneralizedRisk : Counts silent errors among all rows.
    skselect.thresholds.rows_needed : How many rows a target needs.

    Examples
    --------
    >>> from skselect import Outcomes, Risk, select_threshold
    >>> outcomes = Outcomes([0] * 299 + [1], [.9, .9, .8] * 100)
    >>> found = select_threshold(outcomes, objective=Risk(.05, delta=.1, method="band"))
    >>> found.threshold < .8, found.certificate.is_certified
    (True, True)
    >>> Risk(.02).set_params(target=.05)
    Risk(0.05)
    """

    word = "risk"
    reads_costs = True
    is_selective = True
    target_means = "the largest selective risk, for example target=0.02"
    methods: ClassVar[Mapping[str, Method]] = {
        "combined": Method(rules.combined_risk),
        "band": Method(rules.band_risk),
        "fixed_sequence": Method(FixedSequence(), has_starts=True),
        "level_sequence": Method(_refuse_without_levels, has_starts=True),
        "bonferroni": Method(rules.bonferroni_risk),
        "sgr": Method(rules.sgr_risk, caveat=_SGR),
        "mean": Method(rules.mean_risk, "mean", MEAN_ONLY),
        "empirical": Method(rules.empirical_risk, "none"),
    }

    min_coverage: Any = "auto"
    loss: LossSpec = "auto"

    def _check(self, loss: Loss, confidence: Any) -> None:
        least = 0.1 if self.guarantees else 0.0
        self.min_coverage = _check_min_coverage(self.min_coverage, least)
        super()._check(loss, confidence)

    def describe(self) -> str:
        """Return the guarantee in words."""
        which = f" to cases {self.cases}" if self.cases else ""
        bound = self.amount(self.target)
        if self.about.is_error:
            return f"at most {bound} of the answers{which} are wrong"
        verb = "cost" if self.about.is_cost else "lose"
        return f"the answers{which} {verb} at most {bound} each on average"

    def count(self, seen: Counts) -> tuple[int, int]:
        """Return the errors among the accepted rows."""
        return seen.n_errors, seen.n_accepted

    def values(self, loss: FloatArray, accepted: BoolArray) -> FloatArray:
        """Return the losses of the accepted rows."""
        return loss[accepted]

    def _observed(self, curve: RiskCoverageCurve) -> FloatArray:
        return curve.selective_risk

    @property
    def is_open(self) -> bool:
        """Whether a tuner may choose how the threshold is found."""
        return isinstance(self.method, str) and self.method == "auto"

    def passes(self, curve: RiskCoverageCurve, outcomes: Outcomes | None = None) -> Passing:
        """Return the thresholds that pass on a curve, with the levels that were named."""
        found = super().passes(curve, outcomes)
        if not isinstance(self.method, LevelSequence):
            return found
        given = curve, self.scaled_target, self.level, self.min_coverage
        return found._replace(levels=self.method.find_passed(*given))

    def _least_target(self, curve: RiskCoverageCurve) -> float:
        return rules.least_risk_target(self.rule, curve, self.level, self.min_coverage)

    def _advise_rows(self, curve: RiskCoverageCurve) -> tuple[list[str], int | None]:
        advice, needed = super()._advise_rows(curve)
        if not advice or self.plan.guarantee == "mean":
            return advice, needed
        rows = "fresh rows" if self.max_analyses == 1 else "rows"
        needed = rules.rows_like_these(curve, self.scaled_target, self.level, self.min_coverage)
        # A tuner may have held out more of few rows than it would of more.
        in_all = self._name_all(needed or 0) if self.share <= HELD_OUT else ""
        advice.append(
            "more rows like these will not help, because even their most confident answers have a "
            "larger risk"
            if needed is None
            else f"about {needed:,} {rows}{in_all} should be enough if errors stay as common as in "
            "these"
        )
        if self._loses_by_ties(curve):
            advice.append(
                f"ties are the reason, because these rows have only {len(curve)} different "
                "confidences, and tests of these levels would pass. Let other rows name the "
                "levels: method=LevelSequence.of(...)"
            )
        return advice, needed

    def _loses_by_ties(self, curve: RiskCoverageCurve) -> bool:
        """Tell whether confidences are tied, and a test of their levels would have passed."""
        if not self.is_open or not are_tied(len(curve), curve.n_rows):
            return False
        levels = LevelSequence.of(curve, curve.n_rows, self.scaled_target, self.level)
        return len(levels.find_passed(curve, self.scaled_target, self.level, self.min_coverage)) > 0


@dataclass(repr=False, kw_only=True)
class GeneralizedRisk(Guarantee):
    """Certify that at most a share `target` of all cases gets a wrong answer (a silent failure).

    The generalised risk is the loss of the accepted rows divided by the number of all rows:
    accepted and wrong, as a share of all cases.

    Parameters
    ----------
    target : float
        As for :class:`Risk`.
    delta, max_analyses, loss, given_prediction, given_class, largest_weight
        As for :class:`Risk`. With ``given_class="sepsis"``: "at most 1 % of sepsis cases are
        silently dismissed".
    method : str, default="auto"
        Certified: "binomial" (the meaning of "auto"). An estimate: "mean", which keeps the target
        in expectation (conformal risk control [1]_) for losses of any kind. No guarantee:
        "empirical".

    References
    ----------
    .. [1] Angelopoulos, Bates, Fisch, Lei, Schuster (2024). Conformal Risk Control. ICLR, eq. 4.

    Examples
    --------
    >>> from skselect import GeneralizedRisk, Outcomes, select_threshold
    >>> outcomes = Outcomes([0] * 299 + [1], [.9, .9, .8] * 100)
    >>> select_threshold(outcomes, objective=GeneralizedRisk(.02)).coverage
    1.0
    """

    word = "generalized_risk"
    noun = "answered and wrong"
    reads_costs = True
    target_means = "the largest rate of silent failures, for example target=0.01"
    methods: ClassVar[Mapping[str, Method]] = {
        "binomial": Method(rules.certified_generalized_risk),
        "mean": Method(rules.mean_generalized_risk, "mean", MEAN_ONLY),
        "empirical": Method(rules.empirical_generalized_risk, "none"),
    }

    loss: LossSpec = "auto"

    def describe(self) -> str:
        """Return the guarantee in words."""
        which, bound = f" {self.cases}" if self.cases else "", self.amount(self.target)
        if self.about.is_error:
            return f"at most {bound} of all cases{which} get a wrong answer"
        verb = "cost" if self.about.is_cost else "lose"
        per = f"per case{which} on average (a deferred case counts 0)"
        return f"the answers {verb} at most {bound} {per}"

    def count(self, seen: Counts) -> tuple[int, int]:
        """Return the accepted errors among all rows."""
        return seen.n_errors, seen.n

    def _least_target(self, curve: RiskCoverageCurve) -> float:
        if self.plan.guarantee == "mean":
            return float(curve.accepted_loss[0] + 1.0) / (curve.n_rows + 1)
        return super()._least_target(curve)


@dataclass(repr=False)
class Coverage(Guarantee):
    """Certify that at least a share `target` of the cases is answered, by the highest threshold.

    Parameters
    ----------
    target : float in (0, 1]
        The bound to keep. Smallest share of accepted rows.
    delta, max_analyses, given_prediction, given_class, largest_weight
        As for :class:`Risk`.
    method : {"auto", "order_statistic", "mean", "empirical"}, default="auto"
        Certified: "order_statistic" (the meaning of "auto"). An estimate: "mean". No guarantee:
        "empirical".

    Examples
    --------
    >>> from skselect import Coverage, Outcomes, select_threshold
    >>> outcomes = Outcomes([0] * 299 + [1], [.9, .9, .8] * 100)
    >>> select_threshold(outcomes, objective=Coverage(.6)).threshold > .8
    True
    """

    word = "coverage"
    is_least = True
    noun = "answered"
    target_means = "the least coverage, for example target=0.8"
    methods: ClassVar[Mapping[str, Method]] = {
        "order_statistic": Method(rules.certified_coverage),
        "mean": Method(rules.mean_coverage, "mean", MEAN_ONLY),
        "empirical": Method(rules.empirical_coverage, "none"),
    }

    def choose(self, curve: RiskCoverageCurve, passing: Passing) -> Found:  # noqa: ARG002
        """Choose the highest threshold that passes; where none does, accept everything."""
        return Found(None, int(np.argmax(np.append(passing.entries[:-1], True))) + 1)

    def checked_target(self, loss: Loss) -> float:  # noqa: ARG002
        """Return the target, a share of rows."""
        return check_number("target", self.target, 0.0, 1.0, closed="right")

    @property
    def unit(self) -> float:
        """1: a coverage is a share of rows."""
        return 1.0

    @property
    def largest(self) -> float:
        """The largest share of rows that are not accepted."""
        return 1.0 - self.target

    def amount(self, value: float, *, up: bool | None = False) -> str:
        """Return a coverage as text."""
        return percent(value, up=up)

    def describe(self) -> str:
        """Return the guarantee in words."""
        which, least = f" {self.cases}" if self.cases else "", self.amount(self.target)
        return f"at least {least} of all cases{which} are answered"

    def count(self, seen: Counts) -> tuple[int, int]:
        """Return the rows that are not accepted."""
        return seen.n - seen.n_accepted, seen.n

    def values(self, loss: FloatArray, accepted: BoolArray) -> FloatArray:  # noqa: ARG002
        """Return 1 for each row that is not accepted."""
        return (~accepted).astype(np.float64)

    def rows_needed(self) -> int:
        """Return 1: a threshold can always be low enough."""
        return 1

    @property
    def rows_to_fail(self) -> float:
        """The fewest rows of which not all have to be accepted."""
        if not self.counts or self.target >= 1.0:
            return math.inf if self.counts else 0
        return least_count(lambda n: rules.coverage_rank(n, self.target, self.level) < n)


@dataclass(repr=False, kw_only=True)
class SystemRisk(Guarantee):
    """Certify that machine and reviewer together are wrong in at most a share `target` of cases.

    A reviewer who decides the deferred cases errs too. The system risk is the share of *all* cases
    that are decided wrongly: by the machine where it answers, by the reviewer elsewhere. The lowest
    threshold that keeps the target is chosen.

    Parameters
    ----------
    target : float in (0, 0.5]
        The bound to keep. Largest share of wrong cases, those of the reviewer included.
    delta, max_analyses, largest_weight
        As for :class:`Risk`.
    reviewer : str, default=None
        What a reviewer answers, or would answer, in each row. For a tuner: the column of the data
        frame X that holds the answers; the model never sees it. They may also come as
        ``fit(X, y, reviewer_pred=...)`` or ``Predictions.from_proba(..., reviewer=...)``.
    deferred_error : float in (0, 1), default=None
        In place of answers: the share of the *deferred* cases in which the reviewer errs. Each
        deferred row counts as an error with this probability, by a coin. The rate is assumed at
        every threshold that is tested; one measured on all cases is too low for the hard ones that
        are deferred.
    overall_error : float or tuple (errors, rows), default=None
        In place of answers: the share of *all* cases that are deferred and then wrong, or an upper
        bound of it. The share of the reviewer's errors over all cases is such a bound; one measured
        on easy cases is not. A tuple is a count on randomly drawn cases: the upper bound of Clopper
        and Pearson at half of `delta`, and the rest of `delta` is for the machine.
    method : str or LevelSequence, default="auto"
        "level_sequence" with the reviewer's answers or `deferred_error`: a fifth of the rows names
        thresholds and the one to begin with, where the system risk seems smallest; the other rows
        test them from there down until one fails. The fifth is drawn by chance: a tuner draws with
        its `random_state`, a table with the seed 0. A :class:`~skselect.thresholds.LevelSequence`
        names them beforehand. "binomial" with `overall_error`: it certifies
        ``GeneralizedRisk(target - overall_error)``.
    given_prediction, given_class
        Refused: the guarantee is about all cases.

    See Also
    --------
    GeneralizedRisk : Counts the errors of the machine alone.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, SystemRisk, select_threshold
    >>> rng = np.random.default_rng(0)
    >>> c = rng.uniform(.5, 1, 4000)
    >>> machine, reviewer = rng.random(4000) < 1 - c, rng.random(4000) < .05
    >>> rows = Outcomes(machine, c, reviewer_loss=reviewer)
    >>> round(select_threshold(rows, objective=SystemRisk(.08)).coverage, 1)
    0.3
    """

    word = "system_risk"
    noun = "wrong together"
    target_means = (
        "the largest share of cases that machine and reviewer get wrong, for example target=0.06"
    )
    methods: ClassVar[Mapping[str, Method]] = {
        "level_sequence": Method(_refuse_without_levels, has_starts=True),
        "binomial": Method(rules.certified_generalized_risk),
    }

    reviewer: str | None = None
    deferred_error: Any = None
    overall_error: Any = None

    @property
    def method_name(self) -> str:
        """The one method that fits what is known of the reviewer."""
        name = super().method_name
        fits = "level_sequence" if self.counts_deferred else "binomial"
        if self.method != "auto" and name != fits:
            raise ArgumentError(
                "method",
                f"method={name!r} does not go with overall_error={self.overall_error!r}: use "
                f"{fits!r}, which 'auto' chooses.",
            )
        return fits

    @property
    def counts_deferred(self) -> bool:
        """Whether it counts deferred rows that a reviewer gets wrong, by answers or coins."""
        return self.overall_error is None

    @property
    def reads_reviewer(self) -> bool:
        """Whether it reads a reviewer's answer to each row."""
        return self.counts_deferred and self.deferred_error is None

    @property
    def reviewing(self) -> Reviewing:
        """The rate or the bound of the reviewer's errors, counted or given, and what it assumes."""
        given, rate = self.overall_error, self.deferred_error
        if rate is not None:
            rate = check_number("deferred_error", rate, 0.0, 1.0, closed="neither")
            share = percent(rate, up=True)
            assumed = (
                f"the reviewer errs in at most {share} of the deferred cases, at every threshold "
                f"tested ({share} measured on all cases is optimistic for the hard ones that are "
                "deferred)"
            )
            return Reviewing(rate=rate, assumes=(assumed,))
        if given is None:
            return Reviewing(assumes=("the reviewer will work as well as on these rows",))
        if isinstance(given, tuple | list) and len(given) == 2:
            errors = check_count("overall_error: errors", given[0], 0)
            rows = check_count("overall_error: rows", given[1], max(errors, 1))
            most = float(clopper_pearson_upper(errors, rows, self.delta / 2))
            assumed = f"the reviewer's {rows:,} cases were drawn from all cases at random"
            return Reviewing(most, None, 0.5, (assumed,))
        most = check_number("overall_error", given, 0.0, 1.0, closed="left")
        share = percent(most, up=True)
        assumed = f"the reviewer errs on deferred cases in at most {share} of all cases"
        return Reviewing(most, assumes=(assumed,))

    def check_reviewed(self, *, answered: bool) -> None:
        """Refuse answers of a reviewer that are missing, or that stand beside a rate or bound."""
        if self.reads_reviewer and not answered:
            raise ArgumentError(
                "reviewer",
                "reviewer: objective='system_risk' needs to know how often the reviewer is wrong. "
                "Pass the answers, as Predictions.from_proba(..., reviewer=answers), "
                "tuner.fit(X, y, reviewer_pred=answers) or, for a tuner, "
                "SystemRisk(..., reviewer='column of X'); or the share of the deferred "
                "cases that the reviewer gets wrong, deferred_error=.",
            )
        if answered and not self.reads_reviewer:
            name = "overall_error" if self.deferred_error is None else "deferred_error"
            raise ArgumentError(
                name,
                f"{name}={getattr(self, name)!r} (of objective={self.name!r}) stands beside the "
                "reviewer's answers, which say how often the reviewer is wrong; leave one of them "
                "out.",
            )

    def with_reviewer(self, outcomes: Outcomes) -> Outcomes:
        """Return rows with a reviewer's losses: those of the answers, or the assumed rate."""
        self.check_reviewed(answered=outcomes.reviewer_loss is not None)
        rate = self.reviewing.rate
        if rate is None:
            return outcomes
        return replace(outcomes, reviewer_loss=np.full(len(outcomes), rate))

    def _check(self, loss: Loss, confidence: Any) -> None:
        for name in ("given_prediction", "given_class"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} does not go with SystemRisk, which is about all cases; leave it out."
                )
        if not loss.is_error:
            raise ValueError(
                "loss must be 0 or 1 in each row for objective='system_risk', which counts the "
                "wrong answers of machine and reviewer."
            )
        super()._check(loss, confidence)
        if self.reviewer is not None:
            self.check_reviewed(answered=True)
            if not isinstance(self.reviewer, str):
                raise ArgumentError(
                    "reviewer",
                    "reviewer must name a column of X; pass answers as "
                    f"fit(X, y, reviewer_pred=...). Got {shown(self.reviewer)}.",
                )
        if self.deferred_error is not None and self.overall_error is not None:
            raise ArgumentError(
                "deferred_error",
                "deferred_error (a share of the deferred cases) stands beside overall_error (a "
                "share of all cases); leave one of them out.",
            )
        bound = self.reviewing.bound
        if bound is not None and bound >= self.target:
            raise ArgumentError(
                "overall_error",
                f"overall_error={self.overall_error!r} leaves nothing to the machine: the "
                f"reviewer may be wrong in {percent(bound, up=True)} of all cases, and both "
                f"together in {percent(self.target)} (target). Use a larger target, or what "
                "is known of deferred cases only: the reviewer's answers, or deferred_error=.",
            )

    def describe(self) -> str:
        """Return the guarantee in words."""
        bound = self.amount(self.target)
        return f"machine and reviewer together are wrong in at most {bound} of cases"

    def count(self, seen: Counts) -> tuple[int, int]:
        """Return the errors, those of the reviewer included, among all rows."""
        return seen.n_errors + seen.n_missed, seen.n

    def name_levels(self, outcomes: Outcomes, seed: int = 0) -> tuple[SystemRisk, Outcomes]:
        """Let a fifth of the rows name the thresholds to test; return the rows that test them.

        The start and the thresholds must not depend on the rows that certify.
        """
        if not self.counts_deferred or isinstance(self.method, LevelSequence):
            return self, outcomes
        if len(outcomes) < NAMING:
            raise ValueError(
                f"objective='system_risk' needs {NAMING} rows or more: one in {NAMING} names "
                f"thresholds, and the others certify. Got {len(outcomes)}."
            )
        may_name = np.ones(len(outcomes), dtype=bool)
        if outcomes.readings is not None:  # a copy of a row that certifies must not name
            may_name = np.all(outcomes.readings, axis=1)
        names = np.zeros_like(may_name)
        names[may_name] = draw_rows(int(np.sum(may_name)), NAMING, seed)
        levels = system_levels(*outcomes.take(names).reviewed).tolist()
        return replace(self, method=LevelSequence(levels)), outcomes.take(~names)

    def passes(self, curve: RiskCoverageCurve, outcomes: Outcomes | None = None) -> Passing:
        """Return the levels before the first one where machine and reviewer err too often."""
        if not self.counts_deferred:
            return super().passes(curve, outcomes)
        assert outcomes is not None
        assert isinstance(self.method, LevelSequence)
        levels = np.array(self.method.levels)
        errors = count_system_errors(*outcomes.reviewed, levels)
        passed = clopper_pearson_upper(errors, len(outcomes), self.level) <= self.scaled_target
        nothing = np.zeros(len(curve), dtype=bool)
        return Passing(nothing, levels[np.logical_and.accumulate(passed)])

    def review(self, outcomes: Outcomes | None, threshold: float) -> str:
        """Return how often the reviewer gets deferred rows wrong, and what that means."""
        bound, rate = self.reviewing.bound, self.reviewing.rate
        if bound is not None:
            rest = percent(self.target - bound, up=False)
            return (
                f"The reviewer may be wrong in {percent(bound, up=True)} of all cases, which "
                f"leaves {rest} to the machine."
            )
        assert outcomes is not None
        loss, reviewer_loss, _ = outcomes.reviewed
        n, deferred = len(outcomes), outcomes.confidence < threshold
        n_wrong, n_deferred = int(reviewer_loss[deferred].sum()), int(np.sum(deferred))
        alone = percent(reviewer_loss.mean() if rate is None else rate)
        coins = "" if rate is None else f" (drawn by chance, at {percent(rate)})"
        together = n_wrong + int(loss[~deferred].sum())
        found = (
            f"The reviewer is wrong in {n_wrong:,} of the {n_deferred:,} deferred cases{coins}, "
            f"so together {together:,} of {n:,} are wrong ({percent(together / n)})."
        )
        if threshold == math.inf and isinstance(self.method, LevelSequence):
            start = np.array(self.method.levels[:1])
            [errors] = count_system_errors(*outcomes.reviewed, start)
            least = clopper_pearson_upper(errors, n, self.delta / self.max_analyses)
            found = (
                f"The smallest target that these rows could have met is {percent(least, up=True)}, "
                f"at confidence {start[0]:.6g} or higher, but certifying it needs fresh rows."
            )
        return (
            f"{found} Alone, the reviewer is wrong in {alone} of all these cases, and the machine "
            f"in {percent(loss.mean())}."
        )

    def _describe_least(self, curve: RiskCoverageCurve) -> tuple[float | None, str]:
        return (None, "") if self.counts_deferred else super()._describe_least(curve)

    def _least_target(self, curve: RiskCoverageCurve) -> float:
        return super()._least_target(curve) + cast(float, self.reviewing.bound)


def find_mean(
    count: int, n: int, graded: FloatArray | None, level: float, *, anytime: bool
) -> tuple[float, float, float]:
    """Return a mean, and bounds from below and above that fail with probability `level` each.

    It is that of `graded` values, or a share: `count` of `n`.
    """
    if graded is not None:
        mean = float(np.mean(graded)) if len(graded) else math.nan
        low = 1.0 - betting_upper(1.0 - graded, level, anytime=anytime)
        return mean, low, betting_upper(graded, level, anytime=anytime)
    upper = anytime_upper if anytime else clopper_pearson_upper
    mean = count / n if n else math.nan
    return mean, 1.0 - upper(n - count, n, level), upper(count, n, level)


# No guarantee ------------------------------------------------------------------------------


@dataclass(repr=False)
class Cost(Objective):
    """Choose the threshold of least cost, where each abstention costs `abstention_cost`.

    Parameters
    ----------
    abstention_cost : float
        Cost of abstaining on one row, in units of one error. At most 1; in units of the cost matrix
        where there is one, at most its largest cost.
    method : {"auto", "empirical", "chow"}, default="auto"
        "empirical" (the meaning of "auto"): the least cost on these rows. "chow": the threshold
        1 - `abstention_cost`, which is best where confidences are calibrated [1]_.
    loss : {"auto", "zero_one", "cost"} or callable, default="auto"
        As for :class:`Risk`.

    References
    ----------
    .. [1] Chow (1970). On optimum recognition error and reject tradeoff. IEEE Transactions on
       Information Theory 16 (1).

    Examples
    --------
    >>> from skselect import Cost, Outcomes, select_threshold
    >>> outcomes = Outcomes([0, 0, 0, 1], [.9, .8, .7, .6])
    >>> select_threshold(outcomes, objective=Cost(.3)).coverage
    0.75
    """

    word = "cost"
    reads_costs = True
    target_means = "the cost of abstaining in units of one error, for example target=0.1"
    methods: ClassVar[Mapping[str, Method]] = {
        "empirical": Method(rules.cheapest, "none"),
        "chow": Method(rules.chow, "none"),
    }

    abstention_cost: Any
    _: KW_ONLY
    method: str = "auto"
    loss: LossSpec = "auto"

    @property
    def target_given(self) -> Any:
        """The cost of abstaining."""
        return self.abstention_cost

    def _check(self, loss: Loss, confidence: Any) -> None:
        suitable = ("expected_cost",) if loss.is_cost else ("max_proba", "chosen_proba")
        if self.ignores_rows and isinstance(confidence, str) and confidence not in suitable:
            raise ValueError(
                f"method='chow' uses the threshold 1 - target, which is only right for a "
                f"confidence that is one minus the expected loss: one of {list(suitable)} for this "
                f"loss, not {confidence!r}. Use method='empirical', or another confidence."
            )
        cost = check_number("abstention_cost", self.abstention_cost, 0.0, np.inf, closed="left")
        if cost > loss.unit:
            meant = f" Did you mean {1 / cost:.6g} (an error costs {cost:g} times as much)?"
            raise ArgumentError(
                "target",
                f"abstention_cost (target=) must be at most {loss.unit:g}, the cost of "
                f"{'an' if loss.unit == 1 else 'the worst'} error, got {cost:g}: it is the cost of "
                "abstaining on one row, and at this one every row would be accepted without "
                f"looking.{meant if loss.unit == 1 else ''}",
            )
        self.abstention_cost = cost

    def find(self, curve: RiskCoverageCurve) -> Found:
        """Find the cheapest threshold, or Chow's."""
        cost = self.abstention_cost / self.unit
        if self.ignores_rows:
            threshold = rules.chow(cost)
            return Found(threshold, int(curve.n_blocks_accepted(np.array([threshold]))[0]))
        n_blocks = rules.cheapest(curve, cost)
        return Found(None if n_blocks else math.inf, n_blocks)

    def tell_infeasible(self) -> str:
        """Say that accepting any row costs more than abstaining on it."""
        which = f" {self.cases}" if self.cases else ""
        return (
            f"Abstaining on everything costs least at target={self.abstention_cost:g} per row: "
            f"accepting any of these rows{which} would cost more."
        )


@dataclass(repr=False)
class Best(Objective):
    """Choose the threshold where a metric is best, at a coverage of at least `min_coverage`.

    Among equal values the largest coverage is chosen. Nothing is guaranteed for new rows.

    Parameters
    ----------
    metric : {"cwsa_plus", "cwsa", "selective_accuracy"}, default="cwsa_plus"
    min_coverage : float in [0, 1] or "auto", default="auto"
        Smaller accepted sets are not considered. "auto": 0.5.
    threshold_range : tuple (low, high) or "auto", default="auto"
        For "cwsa" and "cwsa_plus" (the other refuses it): only thresholds from `low` on and below
        `high` are tried. "auto": (0.5, 1.0), as in the paper, or (0.0, 1.0) where 0.5 accepts less
        than `min_coverage`. Below the lowest confidence both metrics rise as the threshold falls,
        although no decision changes, so that from 0 on the best one usually accepts everything.
    constraint : tuple (str, float) or list of them, default=None
        What must also hold on these rows: ("risk", .05), ("generalized_risk", .01),
        ("coverage", .7) or ("selective_accuracy", .9). It guarantees nothing for new rows.
    method : {"empirical", "lower_bound"}, default="empirical"
        "empirical": the largest value on these rows; "lower_bound": the largest value minus 1.645
        standard errors, which a few lucky rows cannot mislead.

    Examples
    --------
    >>> from skselect import Best, Outcomes, select_threshold
    >>> outcomes = Outcomes([0, 0, 1, 0], [.9, .8, .7, .6])
    >>> best = Best("selective_accuracy", min_coverage=.75, constraint=("risk", .4))
    >>> select_threshold(outcomes, objective=best).coverage
    1.0
    """

    methods: ClassVar[Mapping[str, Method]] = dict.fromkeys(
        ("empirical", "lower_bound"),
        Method(metrics.best_metric, "none"),
    )

    metric: str = "cwsa_plus"
    _: KW_ONLY
    min_coverage: Any = "auto"
    threshold_range: Any = "auto"
    constraint: Any = None
    method: str = "empirical"

    @property
    def name(self) -> str:
        """The metric."""
        return self.metric

    @property
    def bounds_luck(self) -> bool:
        """Whether the value less some standard errors is to be largest."""
        return bool(self.method == "lower_bound")

    @property
    def sweeps(self) -> bool:
        """Whether the metric depends on the threshold itself, and not on what it accepts alone."""
        return self.metric != "selective_accuracy"

    def _check(self, loss: Loss, confidence: Any) -> None:  # noqa: ARG002
        check_choice("metric", self.metric, metrics.TUNABLE_METRICS)
        self.min_coverage = _check_min_coverage(self.min_coverage, 0.5)
        if not isinstance(self.threshold_range, str):
            if not self.sweeps:
                raise ArgumentError(
                    "threshold_range",
                    "threshold_range goes with the metrics 'cwsa' and 'cwsa_plus', not with "
                    f"{self.metric!r}; leave it out.",
                )
            self.threshold_range = check_range("threshold_range", self.threshold_range)
        else:
            check_choice("threshold_range", self.threshold_range, ["auto"])
        self.constraint = _check_constraints(self.constraint)

    def find(self, curve: RiskCoverageCurve) -> Found:
        """Find the threshold where the metric is best."""
        best = metrics.best_metric(
            curve, self.metric, self.min_coverage, self.constraint,
            bounds_luck=self.bounds_luck, threshold_range=self.range_on(curve),
        )  # fmt: skip
        if best is None:
            return Found(math.inf, 0)
        self._warn_of(curve, best)
        return Found(best.threshold, best.n_blocks, best.value)

    def _warn_of(self, curve: RiskCoverageCurve, best: metrics.MetricOptimum) -> None:
        """Say where the least coverage binds, or everything is accepted."""
        before = best.n_blocks - 2
        binds = best.unconstrained > best.best and not self.constraint
        chosen, below = (curve.coverage[k - 1] for k in (best.n_blocks, best.n_unconstrained))
        # The next smaller accepted set may be far below the least coverage: rows are tied.
        is_least = before >= 0 and not reaches(curve.coverage[before], self.min_coverage)
        if binds and (chosen < self.min_coverage + _NEAR or is_least):
            bound = "the lower bound of " if self.bounds_luck else ""
            n_below = curve.n_accepted[best.n_unconstrained - 1]
            fewer = ""
            if is_least and curve.n_accepted[before + 1] - curve.n_accepted[before] > 1:
                least = percent(curve.coverage[before])
                fewer = f"Fewer would be {least}, for rows of equal confidence are accepted "
                fewer += "together. "
            warn_user(
                f"min_coverage={self.min_coverage:g} binds: {bound}{self.name} would be "
                f"{best.unconstrained:.4g} where {percent(below)} of the rows are accepted "
                f"({n_below:,.0f}), instead of {best.best:.4g} where {percent(chosen)} are. "
                f"{fewer}Lower min_coverage only where so many rows are enough: the best of few "
                "is often luck."
            )
        elif best.n_blocks == len(curve) and self.sweeps:
            low, high = self.range_on(curve)
            warn_user(
                f"{self.name} is best when everything is accepted: of the thresholds from "
                f"{low:g} to {high:g} it is largest at {best.threshold:.4g}, and no confidence is "
                f"lower. All answers together have the risk {curve.mean_loss:.3g} on these rows. "
                "To defer cases all the same, name a smaller one: objective='risk', target=0.05 is "
                "for at most 5 % wrong answers."
            )

    def range_on(self, curve: RiskCoverageCurve) -> tuple[float, float]:
        """Return where the metric looks for a threshold.

        "auto" is the range that the CWSA paper sweeps. Where that accepts too few of the rows, as
        with unsure answers among many classes, CWSA and CWSA+ look everywhere.
        """
        if not self.sweeps:
            return -math.inf, math.inf
        if not isinstance(self.threshold_range, str):
            return self.threshold_range
        coverage, _ = curve.working_point(int(curve.n_blocks_accepted(np.array([0.5]))[0]))
        return (0.5 if coverage > 0 and reaches(coverage, self.min_coverage) else 0.0), 1.0

    def refuse(
        self, curve: RiskCoverageCurve, *, again: str = "", remedy: str = ""
    ) -> InfeasibleTargetError:
        """Say that the range accepts too few rows, or that a constraint cannot be kept."""
        return InfeasibleTargetError(f"{self._advise(curve)}{again}", remedy=remedy)

    def _advise(self, curve: RiskCoverageCurve) -> str:
        low, high = self.range_on(curve)
        n_blocks = int(curve.n_blocks_accepted(np.array([low]))[0])
        most, _ = curve.working_point(n_blocks)
        allowed = reaches(curve.coverage[:n_blocks], self.min_coverage)
        if not np.any(allowed):
            return (
                f"No threshold of threshold_range=({low:g}, {high:g}) accepts at least "
                f"min_coverage={self.min_coverage:g} of the rows: the threshold {low:g} accepts "
                f"{most:.4g} of them. Begin the range lower, or lower min_coverage."
            )
        wanted = " and ".join(f"{name} {bound:g}" for name, bound in self.constraint)
        least = float(np.min(curve.selective_risk[:n_blocks][allowed]))
        return (
            f"No threshold keeps the constraint {wanted} at a coverage of at least "
            f"min_coverage={self.min_coverage:g}: the smallest risk there is {least:.4g}. Relax "
            "the constraint or lower min_coverage."
        )


def _check_min_coverage(given: Any, auto: float) -> float:
    is_auto = isinstance(given, str) and given == "auto"
    return auto if is_auto else check_number("min_coverage", given, 0.0, 1.0)


def _check_constraints(constraint: Any) -> tuple[tuple[str, float], ...]:
    """Return the constraints as pairs of a name and a bound."""
    if constraint is None:
        return ()
    single = isinstance(constraint, tuple) and len(constraint) == 2
    given = [constraint] if single and isinstance(constraint[0], str) else constraint
    try:
        pairs = [(name, bound) for name, bound in given]
    except (TypeError, ValueError):
        raise ValueError(
            "constraint must be a pair such as ('risk', 0.05), or a list of pairs, got "
            f"{shown(constraint)}."
        ) from None
    for name, bound in pairs:
        check_choice("constraint", name, [*metrics.AT_MOST, *metrics.AT_LEAST])
        least = 0.5 if name == "selective_accuracy" else 0.0
        check_number(f"constraint {name!r}", bound, least, 1.0)
        if name in metrics.AT_MOST:
            check_risk_limit(bound, f"constraint {name!r}")
    return tuple((name, float(bound)) for name, bound in pairs)


# How users say it --------------------------------------------------------------------------

#: The guarantees by name, as certificates store them.
GUARANTEES: dict[str, type[Guarantee]] = {
    kind.word: kind for kind in (Risk, GeneralizedRisk, Coverage, SystemRisk)
}
_KINDS: dict[str, Callable[..., Objective]] = {
    **{metric: partial(Best, metric) for metric in metrics.TUNABLE_METRICS},
    **GUARANTEES,
    Cost.word: Cost,
}
#: The words that stand for objectives.
WORDS = tuple(_KINDS)


#: How a threshold that was fixed beforehand is certified: by counting.
FIXED_METHOD = "clopper-pearson"


def read_objective(objective: Any, target: Any = None, delta: Any = None) -> Objectives:
    """Return an objective, several, or one per subgroup, from objects or a word.

    Parameters
    ----------
    objective : Objective, list or mapping of them, or str
    target : float, mapping or None
        Beside a word: what it needs, or one for each subgroup.
    delta : float or None
        Beside the word of a guarantee.

    Raises
    ------
    ValueError
        If `target` or `delta` stand beside an object, the word is unknown or lacks its target, or
        the objectives of subgroups differ in more than their targets and methods.
    """
    if isinstance(objective, Objective | Mapping | list | tuple):
        for name, value in (("target", target), ("delta", delta)):
            if value is not None:
                raise ArgumentError(
                    name,
                    f"{name} goes with the word of an objective, such as 'risk', and not with "
                    f"{shown(objective)}, which has its own; leave {name}={shown(value)} out.",
                )
        if isinstance(objective, list | tuple):
            return _check_together(objective)
        return objective if isinstance(objective, Objective) else _check_alike(objective)
    kind = _KINDS[_check_word(objective)]
    options = {} if delta is None else {"delta": delta}
    if delta is not None and objective not in GUARANTEES:
        raise ArgumentError(
            "delta",
            f"delta goes with an objective that guarantees something ({', '.join(GUARANTEES)}), "
            f"not with {objective!r}; leave it out.",
        )
    if objective in metrics.TUNABLE_METRICS:
        if target is not None:
            raise ArgumentError(
                "target",
                f"target: the objective {objective!r} looks for the best value, so it has no "
                f"target (got {shown(target)}). Leave it out, or use objective='risk'.",
            )
        return kind()
    if target is None:
        means = cast("type[Objective]", kind).target_means
        raise ArgumentError("target", f"target is missing: objective={objective!r} needs {means}.")
    targets = target.values() if isinstance(target, Mapping) else [target]
    if not targets:
        raise ValueError("target is an empty mapping; give each subgroup its target.")
    if kind is Cost:  # which names it otherwise
        for one in targets:
            check_number("target", one, 0.0, np.inf, closed="left")
    if isinstance(target, Mapping):
        return {group: kind(one, **options) for group, one in target.items()}
    return kind(target, **options)


def _check_word(objective: Any) -> str:
    """Refuse what is no word of an objective, such as a target in its place."""
    if isinstance(objective, Real):
        raise ArgumentError(
            "objective",
            f"objective must come before the number: 'risk', target={objective}. Got "
            f"{shown(objective)} alone.",
        )
    return check_choice("objective", objective, WORDS)


def _check_alike(objectives: Mapping[Any, Any]) -> dict[Any, Objective]:
    """Refuse objectives of subgroups that cannot share one delta and one loss."""
    if not objectives:
        raise ValueError("objective is an empty mapping; give each subgroup its objective.")
    first = next(iter(objectives.values()))
    for group, one in objectives.items():
        if not isinstance(one, Objective):
            raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                f"objective: the subgroup {group!r} must have an objective such as Risk(0.02), got "
                f"{shown(one)}."
            )
        for name in ("delta", "max_analyses", "loss"):
            if type(one) is not type(first) or getattr(one, name) != getattr(first, name):
                raise ValueError(
                    "objective: the subgroups share one kind of objective, one delta, one "
                    f"max_analyses and one loss, but {one!r} stands beside {first!r}."
                )
        # Rows are held out, and tested for their order, for all subgroups together.
        if one.guarantees != first.guarantees or one.ignores_rows != first.ignores_rows:
            raise ValueError(
                "objective: the methods of all subgroups guarantee something, or none does, and "
                f"all look at the rows, or none does, but {one!r} stands beside {first!r}."
            )
    return dict(objectives)


def _check_together(objectives: Sequence[Any]) -> Objectives:
    """Refuse guarantees that one threshold cannot keep together, or that do not share delta."""
    seen: list[tuple[Any, ...]] = []
    for one in objectives:
        counts = isinstance(one, Guarantee) and not isinstance(one, SystemRisk) and one.counts
        if not counts or one.plan.caveat or isinstance(one.method, LevelSequence):
            raise ArgumentError(
                "objective",
                "objective: a list holds guarantees that hold with high probability, of Risk, "
                f"GeneralizedRisk or Coverage and without named levels, got {shown(one)}.",
            )
        about = type(one).__name__, one.given_prediction, one.given_class
        if about in seen:
            raise ArgumentError(
                "objective",
                f"objective: two of the guarantees are a {about[0]} of the same cases; leave one "
                "out, or name the cases with given_prediction or given_class.",
            )
        seen.append(about)
        for name in ("delta", "max_analyses", "largest_weight", "loss"):
            if getattr(one, name) != getattr(objectives[0], name):
                raise ArgumentError(
                    "objective",
                    f"objective: the guarantees of a list share one {name}, but {one!r} stands "
                    f"beside {objectives[0]!r}.",
                )
    if not seen:
        raise ArgumentError("objective", "objective is an empty list; name a guarantee.")
    return objectives[0] if len(seen) == 1 else list(objectives)


def each_of(objectives: Objectives) -> Iterable[Objective]:
    """Return the one objective, or all of several."""
    return objectives.values() if isinstance(objectives, Mapping) else for_all_rows(objectives)


def first_of(objectives: Objectives) -> Objective:
    """Return one of the objectives, which share delta and loss: one that reads the loss, if any."""
    return min(each_of(objectives), key=lambda one: isinstance(one, Coverage))


def for_all_rows(objectives: Objectives) -> list[Objective]:
    """Return the objectives of one threshold; refuse those of subgroups where there are none."""
    if isinstance(objectives, Objective | list):
        return [objectives] if isinstance(objectives, Objective) else objectives
    raise ValueError(
        f"objective (or its target) has one entry for each of {list(objectives)[:10]}; say what "
        "these subgroups are with subgroups= (select_threshold) or group_by= (ThresholdTuner)."
    )


def refuse_given(objectives: Objectives, instead: str) -> None:
    """Refuse several guarantees, and one about the rows of one class, where they cannot be told."""
    if isinstance(objectives, list):
        raise ArgumentError("objective", f"objective: a list does not go with {instead}")
    for objective in each_of(objectives):
        if isinstance(objective, SystemRisk):
            raise ArgumentError("objective", f"objective='system_risk' does not go with {instead}")
        for name in ("given_prediction", "given_class"):
            if getattr(objective, name) is not None:
                raise ValueError(f"{name} does not go with {instead}")


def check_objective(objectives: Objectives, loss: Loss, confidence: Any) -> Any:
    """Return checked copies of one objective, of several, or of one per subgroup."""
    if isinstance(objectives, Objective):
        return objectives.check(loss, confidence)
    if isinstance(objectives, list):
        return [one.check(loss, confidence) for one in objectives]
    return {group: one.check(loss, confidence) for group, one in objectives.items()}


def read_guarantee(
    objective: Any, target: Any, delta: Any
) -> tuple[type[Guarantee] | None, Any, Any]:
    """Return the kind, target and delta that a policy is tested for.

    The kind is None where the policy's certificate says it, the target where nothing does. The
    other parameters of an object choose a threshold, and do not count for a policy, which has one.
    """
    if objective is None:
        return None, target, delta
    if isinstance(objective, str) and objective in GUARANTEES and target is None:
        return GUARANTEES[objective], None, delta
    stated = read_objective(objective, target, delta)
    if not isinstance(stated, Guarantee):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"objective must be one of {list(GUARANTEES)} or an object such as Risk(0.02), got "
            f"{shown(objective)}: the others guarantee nothing."
        )
    for name in ("given_prediction", "given_class"):
        if getattr(stated, name) is not None:
            raise ValueError(
                f"{name} goes with the choice of a threshold; to test a policy, pass the rows of "
                "one class alone."
            )
    if isinstance(stated, SystemRisk) and not stated.counts_deferred:
        stated = cast(SystemRisk, stated.check(Loss()))  # what is left is about the machine alone
        left = stated.target - cast(float, stated.reviewing.bound)
        stated = GeneralizedRisk(left, delta=stated.delta)
    return type(stated), stated.target, delta if isinstance(objective, str) else stated.delta


def name_options(word: str, target: Any, **options: Any) -> Objective:
    """Return the objective of a word with some of its options, those that are not None.

    Raises
    ------
    ValueError
        If it does not take one of them.
    """
    stated = {name: value for name, value in options.items() if value is not None}
    objective = read_objective(word, target)
    assert isinstance(objective, Objective)
    for name in stated:
        takers = [one for one, kind in _KINDS.items() if name in signature(kind).parameters]
        if word not in takers:
            raise ArgumentError(
                name, f"{name} goes with the objectives {takers}, not with {word!r}; leave it out."
            )
    return objective.set_params(**stated)
