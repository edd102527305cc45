"""How users say an objective: a word, an object, a list of them, or one for each subgroup."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from numbers import Real
from typing import Any, cast

import numpy as np

from skselect._lib.checks import shown
from skselect._lib.checks.options import check_choice, check_number
from skselect.exceptions import ArgumentError
from skselect.objectives.choice import Best, Cost
from skselect.objectives.coverage import Coverage
from skselect.objectives.guarantee import Guarantee
from skselect.objectives.loss import Loss
from skselect.objectives.objective import Objective, Objectives
from skselect.objectives.risk import GeneralizedRisk, Risk
from skselect.objectives.system_risk import SystemRisk
from skselect.thresholds import LevelSequence, _metric as metrics

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
    if not isinstance(objective, Objective | Mapping | list | tuple):
        word = _check_word(objective)
        return _read_word(word, target, delta)
    for name, value in (("target", target), ("delta", delta)):
        if value is not None:
            raise ArgumentError(
                name,
                f"{name} goes with the word of an objective, such as 'risk', and not with "
                f"{shown(objective)}, which has its own; leave {name}={shown(value)} out.",
            )
    if isinstance(objective, list | tuple):
        return _check_together(objective)
    if isinstance(objective, Mapping):
        return _check_alike(objective)
    return objective


def _read_word(word: str, target: Any, delta: Any) -> Objectives:
    """Return the objective of a word, or one for each subgroup that `target` names."""
    kind = _KINDS[word]
    options = {}
    if delta is not None:
        options["delta"] = delta
        if word not in GUARANTEES:
            raise ArgumentError(
                "delta",
                "delta goes with an objective that guarantees something "
                f"({', '.join(GUARANTEES)}), not with {word!r}; leave it out.",
            )
    if word in metrics.TUNABLE_METRICS:
        if target is not None:
            raise ArgumentError(
                "target",
                f"target: the objective {word!r} looks for the best value, so it has no target "
                f"(got {shown(target)}). Leave it out, or use objective='risk'.",
            )
        return kind()
    _check_targets(word, target)
    if isinstance(target, Mapping):
        return {group: kind(own_target, **options) for group, own_target in target.items()}
    return kind(target, **options)


def _check_targets(word: str, target: Any) -> None:
    """Refuse a target that is missing, and costs under the name that the user gave them."""
    if target is None:
        means = cast("type[Objective]", _KINDS[word]).target_means
        raise ArgumentError("target", f"target is missing: objective={word!r} needs {means}.")
    targets = target.values() if isinstance(target, Mapping) else [target]
    if not targets:
        raise ValueError("target is an empty mapping; give each subgroup its target.")
    if word == Cost.word:
        for cost in targets:
            check_number("target", cost, 0.0, np.inf, closed="left")


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
    reference = next(iter(objectives.values()))
    for group, objective in objectives.items():
        if not isinstance(objective, Objective):
            raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                f"objective: the subgroup {group!r} must have an objective such as Risk(0.02), got "
                f"{shown(objective)}."
            )
        both = f"{objective!r} stands beside {reference!r}"
        shared = ("delta", "max_analyses", "loss")
        if type(objective) is not type(reference) or _differ(objective, reference, *shared):
            raise ValueError(
                "objective: the subgroups share one kind of objective, one delta, one "
                f"max_analyses and one loss, but {both}."
            )
        # Rows are held out, and tested for their order, for all subgroups together.
        if _differ(objective, reference, "guarantees", "ignores_rows"):
            raise ValueError(
                "objective: the methods of all subgroups guarantee something, or none does, and "
                f"all look at the rows, or none does, but {both}."
            )
    return dict(objectives)


def _differ(objective: Objective, reference: Objective, *names: str) -> bool:
    return any(getattr(objective, name) != getattr(reference, name) for name in names)


def _check_together(objectives: Sequence[Any]) -> Objectives:
    """Refuse guarantees that one threshold cannot keep together, or that do not share delta."""
    if not objectives:
        raise ArgumentError("objective", "objective is an empty list; name a guarantee.")
    reference = objectives[0]
    subjects: list[tuple[Any, ...]] = []
    for objective in objectives:
        if not _goes_into_list(objective):
            raise ArgumentError(
                "objective",
                "objective: a list holds guarantees that hold with high probability, of Risk, "
                f"GeneralizedRisk or Coverage and without named levels, got {shown(objective)}.",
            )
        kind = type(objective).__name__
        subject = (kind, objective.given_prediction, objective.given_class)
        if subject in subjects:
            raise ArgumentError(
                "objective",
                f"objective: two of the guarantees are a {kind} of the same cases; leave one "
                "out, or name the cases with given_prediction or given_class.",
            )
        subjects.append(subject)
        for name in ("delta", "max_analyses", "largest_weight", "loss"):
            if _differ(objective, reference, name):
                raise ArgumentError(
                    "objective",
                    f"objective: the guarantees of a list share one {name}, but {objective!r} "
                    f"stands beside {reference!r}.",
                )
    if len(objectives) == 1:
        return reference
    return list(objectives)


def _goes_into_list(objective: Any) -> bool:
    """Tell whether one threshold can keep a guarantee beside others."""
    if not isinstance(objective, Guarantee) or isinstance(objective, SystemRisk):
        return False
    has_levels = isinstance(objective.method, LevelSequence)
    return objective.counts and not objective.plan.caveat and not has_levels


def each_of(objectives: Objectives) -> Iterable[Objective]:
    """Return the one objective, or all of several."""
    if isinstance(objectives, Mapping):
        return objectives.values()
    return for_all_rows(objectives)


def first_of(objectives: Objectives) -> Objective:
    """Return one of the objectives, which share delta and loss: one that reads the loss, if any."""
    return min(each_of(objectives), key=lambda objective: isinstance(objective, Coverage))


def for_all_rows(objectives: Objectives) -> list[Objective]:
    """Return the objectives of one threshold; refuse those of subgroups where there are none."""
    if isinstance(objectives, Objective):
        return [objectives]
    if isinstance(objectives, list):
        return objectives
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
        return [objective.check(loss, confidence) for objective in objectives]
    return {group: objective.check(loss, confidence) for group, objective in objectives.items()}


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
    guarantee = read_objective(objective, target, delta)
    if not isinstance(guarantee, Guarantee):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"objective must be one of {list(GUARANTEES)} or an object such as Risk(0.02), got "
            f"{shown(objective)}: the others guarantee nothing."
        )
    for name in ("given_prediction", "given_class"):
        if getattr(guarantee, name) is not None:
            raise ValueError(
                f"{name} goes with the choice of a threshold; to test a policy, pass the rows of "
                "one class alone."
            )
    if isinstance(guarantee, SystemRisk) and not guarantee.counts_deferred:
        guarantee = _machine_alone(guarantee)
    if not isinstance(objective, str):
        delta = guarantee.delta
    return type(guarantee), guarantee.target, delta


def _machine_alone(system: SystemRisk) -> GeneralizedRisk:
    """Return what a system risk leaves to the machine, where the reviewer's errors are bounded."""
    checked = cast(SystemRisk, system.check(Loss()))
    by_reviewer = cast(float, checked.reviewing.bound)
    return GeneralizedRisk(checked.target - by_reviewer, delta=checked.delta)


def name_options(word: str, target: Any, **options: Any) -> Objective:
    """Return the objective of a word with some of its options, those that are not None.

    Raises
    ------
    ValueError
        If it does not take one of them.
    """
    requested = {name: value for name, value in options.items() if value is not None}
    objective = read_objective(word, target)
    assert isinstance(objective, Objective)
    for name in requested:
        words = [other for other, kind in _KINDS.items() if name in signature(kind).parameters]
        if word not in words:
            raise ArgumentError(
                name, f"{name} goes with the objectives {words}, not with {word!r}; leave it out."
            )
    return objective.set_params(**requested)
