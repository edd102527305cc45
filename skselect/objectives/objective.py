"""What all objectives have: parameters, a method, and what they know on given rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from skselect._lib.arrays import BoolArray, LossSpec
from skselect._lib.checks import did_you_mean, shown
from skselect._lib.checks.options import check_choice, check_number
from skselect._lib.decide import plain_value
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import ArgumentError, InfeasibleTargetError
from skselect.objectives.loss import Loss
from skselect.predictions.outcomes import LOSSES
from skselect.predictions.predictions import check_is_predictions, rows_of_class
from skselect.thresholds import Combined, FixedSequence, LevelSequence

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


def refuse_without_levels(*_: Any) -> BoolArray:
    """Refuse the word alone: only other rows can name levels."""
    raise ArgumentError(
        "method",
        "method='level_sequence' needs levels that other rows name: "
        "LevelSequence.of(curve, n, target, delta), or LevelSequence([...]).",
    )


def check_min_coverage(min_coverage: Any, auto: Any) -> Any:
    """Return the least coverage that counts, for "auto" that of the objective."""
    if isinstance(min_coverage, str) and min_coverage == "auto":
        return auto
    return check_number("min_coverage", min_coverage, 0.0, 1.0)


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
    #: When it was certified, and by how many rows; "" where no certificate guarantees it.
    since: str = ""

    def least_coverage(self, n: int) -> float:  # noqa: ARG002
        """Return the least coverage that counts on so many rows."""
        return float(self.min_coverage)

    # As scikit-learn's estimators: nothing is checked or copied before use.

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters by name."""
        names = [field.name for field in fields(cast(Any, self))]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Raises
        ------
        ValueError
            If a name is unknown.
        """
        names = list(self.get_params())
        for name, value in params.items():
            if name not in names:
                raise ArgumentError(
                    name,
                    f"{name}: {type(self).__name__} has no such parameter; it has {names}."
                    f"{did_you_mean(name, names)}",
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        arguments = []
        for field in fields(cast(Any, self)):
            value = getattr(self, field.name)
            if type(value) is type(field.default) and value == field.default:
                continue
            keyword = f"{field.name}=" if field.kw_only else ""
            arguments.append(f"{keyword}{value!r}")
        return f"{type(self).__name__}({', '.join(arguments)})"

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
        if callable(self.loss):
            return self.loss
        check_choice("loss", self.loss, ["auto", *LOSSES])
        if self.loss != "auto":
            return self.loss
        if has_costs and self.reads_costs:
            return "cost"
        return "zero_one"

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
        names = ["auto", *self.methods]
        method = self.method
        name = method.name if isinstance(method, METHOD_OBJECTS) else method
        if not isinstance(name, str) or name not in names:
            raise ArgumentError(
                "method",
                f"method (of objective={self.name!r}) must be one of {names}, got "
                f"{shown(method)}.{did_you_mean(name, names)}",
            )
        if name == "auto":
            return next(iter(self.methods))
        return name

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
            label = plain_value(label)
            predictions = check_is_predictions(source, name)
            classes = predictions.classes.tolist()
            if label not in classes:
                raise ValueError(
                    f"{name} must be one of the classes {classes[:10]}, got {shown(label)}."
                )
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
        on_rows = copy.copy(self)
        on_rows.about = loss
        on_rows.cases = cases
        on_rows.n_sharing = n_sharing
        on_rows.share = share
        return on_rows

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

    def find(self, curve: RiskCoverageCurve) -> Found:
        """Find the threshold on a curve of rows that count once; inf where none is good enough."""
        raise NotImplementedError

    def refuse(
        self, curve: RiskCoverageCurve, *, notes: Sequence[str] = (), remedy: str = ""
    ) -> InfeasibleTargetError:
        """Return the error where no threshold is good enough: why, and what would help."""
        raise NotImplementedError


#: One objective, several guarantees that one threshold keeps, or an objective for each subgroup.
Objectives = Objective | list[Objective] | Mapping[Any, Objective]


class Found(NamedTuple):
    """A threshold, None where an entry of the curve fixes it; its entries, the metric there."""

    threshold: float | None
    n_blocks: int
    value: float | None = None
