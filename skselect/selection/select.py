"""Choose a threshold from a table of predictions, without an estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from skselect._lib.arrays import BoolArray, ConfidenceSpec
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_choice
from skselect._lib.checks.rows import refuse_own_confidence
from skselect._lib.sklearn import take_rows
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics._metric import ClassOptions, share_options
from skselect.objectives import (
    Coverage,
    Loss,
    Objective,
    check_objective,
    each_of,
    first_of,
    read_objective,
)
from skselect.policy.certificate import check_vouched
from skselect.policy.subgroups import Subgroups, name_of_subgroups, subgroup_codes
from skselect.predictions.confidence import check_confidence_by_row
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions, read_rows, rows_of_class
from skselect.selection.engine import make_policy, pick, pick_by_group, pick_on_curve
from skselect.selection.issue import Setting
from skselect.selection.order import TAKE_LATEST, find_order, warn_of_order
from skselect.selection.results import GroupedSelection, ThresholdSelection
from skselect.selection.shortlist import add_shortlist, check_shortlist, tuning_mask
from skselect.thresholds import Shortlist


@share_options
def select_threshold(
    *rows: Any,
    objective: Any,
    target: Any = None,
    delta: float | None = None,
    subgroups: Any = None,
    confidence: ConfidenceSpec | None = None,
    shortlist: float | Shortlist | None = None,
    assume: str | Sequence[str] = (),
    on_infeasible: str = "raise",
    **options: Unpack[ClassOptions],
) -> ThresholdSelection | GroupedSelection:
    """Choose a threshold from a table of predictions, without an estimator.

    Parameters
    ----------
    *rows : `y_true, y_proba`, or one Predictions, Outcomes or RiskCoverageCurve
        Labelled rows that did not train or calibrate the model. Where losses or
        confidences depend on the order of the rows (tested at level 0.01), there is a warning,
        and a certificate is an estimate. Weights are
        refused where rows are counted; ``method="betting"`` reads them as importance weights.
        A curve, such as :meth:`SelectiveState.finalize` returns, goes without subgroups.
    objective : Objective, mapping of them, or str
        What the threshold should achieve. :class:`~skselect.Risk`,
        :class:`~skselect.GeneralizedRisk`, :class:`~skselect.Coverage`, :class:`~skselect.Cost` and
        :class:`~skselect.Best` hold all options; with `subgroups` one for each, if you like. A word
        is short for one: "risk", "generalized_risk", "coverage" and "cost" with a `target`, or a
        metric, "cwsa_plus", "cwsa" or "selective_accuracy".
    target : float or mapping, default=None
        The bound to keep. Give it only with a word such as "risk". With `subgroups` a mapping may
        give one target each.
    delta : float in (0, 0.5], default=None
        Probability that the guarantee fails. Give it only with a word. None: 0.05.
    subgroups : array-like of shape (n,), DataFrame, "predicted_class" or Subgroups, default=None
        The subgroup of each row. One threshold per subgroup, each certified by itself at `delta`
        over their number. The policy defers rows of other subgroups, or refuses them where a
        :class:`~skselect.policy.Subgroups` says so.
    confidence : str, callable or array of shape (n,), default=None
        How sure the classifier is of each row. None: the default of the decision rule. Outcomes say
        it.
    shortlist : float in (0, 1) or Shortlist, default=None
        Name the probable classes of each deferred case (of three or more), so that the true one is
        among them in this share of these cases. The rows that choose the threshold set the list
        too, so that the share is an estimate; ``Shortlist(0.95, share=0.5)`` of
        ``skselect.thresholds`` sets rows apart: exact.
    assume : "independent" or (), default=()
        What you vouch for although the rows speak against it. "independent": the order of the rows
        means nothing, although losses or confidences change along it (the table is sorted by class,
        say). The certificate stands, and names the finding.
    on_infeasible : {"raise", "abstain"}, default="raise"
        When no threshold meets the target: raise, or warn and accept nothing.
    %(options)s

    Returns
    -------
    ThresholdSelection, or GroupedSelection with `subgroups`

    Raises
    ------
    InfeasibleTargetError
        If no threshold meets the target; it says how many rows would be enough. With
        `subgroups`: if none of them meets it; if only some do not, those are deferred with
        a warning.
    ValueError
        If an argument is malformed, or the method does not fit weights or graded losses.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, select_threshold
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(.5, 1, 2000)
    >>> wrong = rng.random(2000) < (1 - confidence) / 4
    >>> selection = select_threshold(Outcomes(wrong, confidence), objective="risk", target=.05)
    >>> print(selection)
    CERTIFIED
    With 95 % confidence, at most 5 % of its answers are wrong over all future cases
      like these 2000. This is an average: single subgroups or weeks may be worse.
    It answers ... of these cases on its own (... of 2000, ... of them wrong), at
      confidence ... or higher.
    Assumptions (not proved): ...
    Method: combined, delta 0.05.
    """
    source = read_rows(rows, (Predictions, Outcomes, RiskCoverageCurve), **options)
    objectives = read_objective(objective, target, delta)
    check_choice("on_infeasible", on_infeasible, ["raise", "abstain"])
    rule = source.rule if isinstance(source, Predictions) else DecisionRule()
    loss = first_of(objectives).choose_loss(has_costs=rule.cost_matrix is not None)
    # Whether confidences came with the rows, as an array.
    own = not isinstance(source, Predictions) or source.confidence is not None
    named = None if own else rule.default_confidence
    setting = Setting(Loss.of(loss, rule), on_infeasible)
    objectives = check_objective(
        objectives, setting.loss, named if confidence is None else confidence
    )
    first = first_of(objectives)
    if isinstance(source, RiskCoverageCurve):
        refuse_own_confidence(confidence, loss)
        _refuse_for_curve(
            subgroups=subgroups, shortlist=shortlist, assume=assume or None,
            given_prediction=first.given_prediction, given_class=first.given_class,
        )  # fmt: skip
        return pick_on_curve(source, the_only(objectives), setting)
    outcomes = Outcomes.of(source, confidence=confidence, loss=loss)
    if isinstance(source, Predictions):
        check_confidence_by_row(source.y_proba, confidence)
    asked = None if shortlist is None else _check_listable(shortlist, source)
    bounded = not callable(confidence)
    if isinstance(first, Coverage):
        # A user's own confidences may be below 0 in later rows, which must be accepted as well.
        bounded = isinstance(confidence, str) or (confidence is None and not own)
    setting = setting._replace(bounded=bounded, share=1.0 - (asked.share if asked else 0.0))
    vouched = "independent" in check_vouched(assume)
    found: ThresholdSelection | GroupedSelection
    if subgroups is not None:
        by = Subgroups.read(subgroups)
        refuse_given(objectives, "subgroups: each subgroup has its own guarantee.")
        subgroups = by.by
        name = subgroups if by.by_answer else name_of_subgroups(subgroups)
        if by.by_answer:
            subgroups = check_is_predictions(source, "subgroups='predicted_class'").answers
        part = tuning_mask(asked, len(outcomes), None)
        chosen, members = outcomes, subgroups
        if part is not None:
            chosen, members = outcomes.take(part), take_rows(subgroups, part)
        codes, _ = subgroup_codes(members, len(chosen))
        caveats = find_order(chosen, first, TAKE_LATEST, codes=codes, vouched=vouched)
        found = pick_by_group(
            chosen, members, name, objectives, setting._replace(caveats=caveats),
            by_answer=by.by_answer, unseen=by.unseen,
        )  # fmt: skip
    else:
        part, cases = rows_given(source, first)
        part = tuning_mask(asked, len(outcomes), part)
        chosen = outcomes if part is None else outcomes.take(part)
        caveats = find_order(chosen, first, TAKE_LATEST, vouched=vouched)
        setting = setting._replace(caveats=caveats)
        found = pick(chosen, the_only(objectives), setting, cases)
    if min(found.thresholds.values()) < np.inf:
        warn_of_order(caveats)
    if asked is not None:
        assert isinstance(source, Predictions)
        found = add_shortlist(found, asked, source, outcomes, subgroups, objective=first)
    return _add_policy(found, source, outcomes, confidence, subgroups)


def _refuse_for_curve(**needing: Any) -> None:
    """Refuse what needs the rows of a curve."""
    for name, value in needing.items():
        if value is not None:
            raise ValueError(
                f"{name} needs rows, and a curve holds only their sums; pass Predictions."
            )


def the_only(objectives: Objective | Mapping[Any, Objective]) -> Objective:
    """Refuse objectives of subgroups where there are none."""
    if isinstance(objectives, Objective):
        return objectives
    raise ValueError(
        f"objective (or its target) has one entry for each of {list(objectives)[:10]}; say what "
        "these subgroups are with subgroups= (select_threshold) or group_by= (ThresholdTuner)."
    )


def refuse_given(objectives: Objective | Mapping[Any, Objective], instead: str) -> None:
    """Refuse a guarantee about the rows of one class where that cannot be told."""
    for objective in each_of(objectives):
        for name in ("given_prediction", "given_class"):
            if getattr(objective, name) is not None:
                raise ValueError(f"{name} does not go with {instead}")


def rows_given(
    source: Predictions | Outcomes, objective: Objective
) -> tuple[BoolArray | None, str]:
    """Return which rows a guarantee is about, None for all, and their name in messages."""
    for name, side in (("given_prediction", "predicted"), ("given_class", "true")):
        label = getattr(objective, name)
        if label is None:
            continue
        predictions = check_is_predictions(source, name)
        known = predictions.classes.tolist()
        if label not in known:
            raise ValueError(f"{name} must be one of the classes {known[:10]}, got {shown(label)}.")
        label = label.item() if isinstance(label, np.generic) else label
        rows, cases = rows_of_class(predictions, side, label)
        if not np.any(rows):
            raise ValueError(f"{name}={label!r}: there is no such row.")
        return rows, cases
    return None, ""


def _add_policy(
    found: ThresholdSelection | GroupedSelection,
    source: Predictions | Outcomes,
    outcomes: Outcomes,
    confidence: ConfidenceSpec | None,
    subgroups: Any,
) -> ThresholdSelection | GroupedSelection:
    """Add the policy, where the table knows classes and the confidence is a rule."""
    if not isinstance(source, Predictions) or source.y_proba is None:
        return found
    if confidence is not None and not (isinstance(confidence, str) or callable(confidence)):
        return found  # an array cannot be applied to new rows
    policy = make_policy(
        found,
        outcomes,
        found.accepts(outcomes.confidence, subgroups),
        classes=source.classes,
        confidence=source.rule.default_confidence if confidence is None else confidence,
        rule=source.rule,
    )
    return replace(found, policy=policy)


def _check_listable(shortlist: Any, source: Any) -> Shortlist:
    """Check a shortlist, which takes the probabilities of three or more classes."""
    predictions = check_is_predictions(source, "shortlist")
    if predictions.y_proba is None:
        raise ValueError(
            "shortlist needs the probabilities of all classes; build the predictions with "
            "Predictions.from_proba(y_true, y_proba)."
        )
    return check_shortlist(shortlist, predictions.sample_weight, len(predictions.classes))


def check_is_predictions(source: Any, purpose: str) -> Any:
    """Refuse anything but Predictions where classes are needed."""
    if not hasattr(source, "y_pred"):
        raise ValueError(
            f"{purpose} needs Predictions, got {type(source).__name__}; build them with "
            "Predictions.from_proba(y_true, y_proba)."
        )
    return source
