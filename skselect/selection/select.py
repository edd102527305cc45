"""Pick a threshold from a table of predictions, without any estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from skselect._lib.checks import shown
from skselect._lib.checks.rows import refuse_among, refuse_judged
from skselect._lib.sklearn import take_rows
from skselect._lib.typing import BoolArray, ConfidenceSpec, LabelArray, LossSpec
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics._metric import ClassOptions, share_options
from skselect.policy.certificate import check_vouched
from skselect.policy.policy import AbstentionPolicy
from skselect.policy.subgroups import asks_for_answers, name_of_subgroups, subgroup_codes
from skselect.predictions.confidence import check_confidence_by_row
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.outcomes import Outcomes, choose_loss
from skselect.predictions.predictions import Predictions, read_rows
from skselect.selection.engine import pick, pick_by_group, pick_on_curve, policy_facts
from skselect.selection.goal import Goal, check_is_predictions
from skselect.selection.kept import rows_of_class
from skselect.selection.order import TAKE_LATEST, find_order, warn_of_order
from skselect.selection.results import GroupedSelection, ThresholdSelection
from skselect.selection.shortlist import add_shortlist, check_shortlist, rows_to_choose
from skselect.thresholds import Betting, Combined, FixedSequence, Shortlist


@share_options
def select_threshold(
    *rows: Any,
    objective: str,
    target: Any = None,
    delta: float = 0.05,
    max_analyses: int = 1,
    method: str | FixedSequence | Combined | Betting = "auto",
    min_coverage: float | str = "auto",
    threshold_range: tuple[float, float] | str = "auto",
    constraint: Any = None,
    among: tuple[str, Any] | None = None,
    subgroups: Any = None,
    unseen: str = "abstain",
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "auto",
    shortlist: float | Shortlist | None = None,
    assume: str | Sequence[str] = (),
    on_infeasible: str = "raise",
    **options: Unpack[ClassOptions],
) -> ThresholdSelection | GroupedSelection:
    """Pick a threshold from a table of predictions, without any estimator.

    Parameters
    ----------
    *rows : `y_true, y_proba`, or one Predictions, Outcomes or RiskCoverageCurve
        Labelled rows that did not train or calibrate the model. Where losses or
        confidences depend on the order of the rows (tested at level 0.01), there is a warning,
        and a certificate is an estimate. Weights are
        refused where rows are counted; ``method="betting"`` reads them as importance weights.
        A curve, such as :meth:`SelectiveState.finalize` returns, goes without subgroups.
    objective : str
        ============================================  =======================================
        "cwsa_plus", "cwsa", "selective_accuracy"     best value at coverage >= `min_coverage`
        "risk"                                        largest coverage whose selective risk is
                                                      certified to be at most `target`
        "generalized_risk"                            the same for the rate of silent failures
        "coverage"                                    highest threshold whose coverage is
                                                      certified to be at least `target`
        "cost"                                        least cost on these rows when abstaining
                                                      costs `target` errors
        ============================================  =======================================
    target : float or mapping, default=None
        As the objective says; none for a metric. In units of the cost matrix where there is
        one; a share of errors is at most 0.5, a cost of abstaining that of an error. With
        `subgroups` a mapping may give one target each.
    delta : float in (0, 0.5], default=0.05
        Probability that a certificate fails, over calibrations like this one. Subgroups share
        it evenly.
    max_analyses : int, default=1
        How often at most you will select a threshold while adding rows to the same set. Plan
        this number, and how many rows each takes, before the first. Each analysis uses
        `delta` / `max_analyses`, so that `delta` holds for all together. Calls with fresh rows
        only need no plan.
    method : str, FixedSequence, Combined or Betting, default="auto"
        How the threshold is found, and what is promised; "auto" takes the first one.

        - "risk", certified: "combined" usually accepts most, and its start may be chosen by other
          rows (:class:`~skselect.thresholds.Combined`); "band" is for classifiers that are worst
          where they are surest; "fixed_sequence" begins at 25 % of the rows, or where
          a :class:`~skselect.thresholds.FixedSequence` says; "bonferroni"; "betting", or a
          :class:`~skselect.thresholds.Betting`, is for graded losses and importance weights
          ("auto" takes it for costs of several sizes and for a callable `loss`; graded
          Outcomes have to name it).
          Estimates: "sgr", "mean". No promise: "empirical".
        - "generalized_risk", certified: "binomial"; "betting", as above. No promise: "empirical".
        - "coverage", certified: "order_statistic". An estimate: "mean". No promise: "empirical".
        - "cost": "empirical", the least cost on these rows; "chow", the threshold 1 - `target`,
          which is best where confidences are calibrated.
        - a metric: "empirical", the largest value on these rows; "lower_bound", the largest
          value less 1.645 standard errors, which a few lucky rows cannot mislead.
    min_coverage : float in [0, 1] or "auto", default="auto"
        Smaller accepted sets are not considered. "auto": 0.5 for a metric, 0.1 for a
        certified risk, else 0.
    threshold_range : tuple (low, high) or "auto", default="auto"
        For "cwsa" and "cwsa_plus" (the others refuse it): only thresholds from `low` on and
        below `high` are tried.
        "auto": (0.5, 1.0), as in the paper, or (0.0, 1.0) where 0.5 accepts less than
        `min_coverage`. Below the lowest confidence both metrics rise as the threshold falls,
        although no decision changes, so that from 0 on the best one usually accepts everything.
    constraint : tuple (str, float) or list of them, default=None
        For a metric: what must also hold on these rows, ("risk", .05), ("generalized_risk",
        .01), ("coverage", .7) or ("selective_accuracy", .9). It promises nothing for new rows.
    among : tuple ("predicted" or "true", label), default=None
        The promise is about these rows alone: ("predicted", "healthy") for "at most 1 % wrong
        among the accepted negatives", ("true", "sepsis") with "generalized_risk" for "at most
        1 % of sepsis cases silently dismissed". The threshold is applied to all rows.
    subgroups : array-like of shape (n,), DataFrame or "predicted_class", default=None
        One threshold per subgroup, each certified by itself at `delta` over their number.
    unseen : {"abstain", "raise"}, default="abstain"
        What the policy does with rows of other subgroups: hand them over with a warning, or
        raise an error.
    confidence : str, callable or array of shape (n,), default=None
        How sure each row is. None: the default of the decision rule. Outcomes say it.
    loss : {"auto", "zero_one", "cost"} or callable, default="auto"
        How wrong each row is. "auto": the cost where there is a cost matrix
        (metrics count errors all the same).
    shortlist : float in (0, 1) or Shortlist, default=None
        With probabilities of three or more classes: name the probable classes
        of each handed-over case, so that the true one is among them in this share of the cases.
        The rows that choose the threshold set the list too, so that the share is an estimate;
        ``Shortlist(0.95, share=0.5)`` of ``skselect.thresholds`` sets rows apart: exact.
    assume : "independent" or (), default=()
        "independent": the order of the rows means nothing, although losses or confidences
        change along it (the table is sorted by class, say). The certificate stands, and names
        the finding.
    on_infeasible : {"raise", "abstain"}, default="raise"
        What to do when no threshold meets the target: raise, or warn and accept nothing.
    %(options)s

    Returns
    -------
    ThresholdSelection, or GroupedSelection with `subgroups`

    Raises
    ------
    InfeasibleTargetError
        If no threshold meets the target; it says how many rows would be enough. With
        `subgroups`: if none of them meets it; if only some do not, those are handed over with
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
    If future cases resemble these 2000, then in 95 of 100 such calibrations at most 5 % of
      the cases it decides alone are wrong in the long run; not per subgroup, not per
      period.
    It decides ... of these cases alone (... of 2000, ... of them wrong), from confidence
      ... on.
    Taken on trust: ...
    Method: combined, delta 0.05.
    """
    source = read_rows(rows, (Predictions, Outcomes, RiskCoverageCurve), **options)
    rule = source.rule if isinstance(source, Predictions) else DecisionRule()
    loss = choose_loss(loss, objective, has_costs=rule.cost_matrix is not None)
    # Whether confidences came with the rows, as an array.
    own = not isinstance(source, Predictions) or source.confidence is not None
    named = None if own else rule.default_confidence
    goal = Goal.checked(
        objective,
        delta=delta,
        max_analyses=max_analyses,
        method=method,
        min_coverage=min_coverage,
        threshold_range=threshold_range,
        constraint=constraint,
        on_infeasible=on_infeasible,
        loss=loss,
        rule=rule,
        confidence=named if confidence is None else confidence,
    )
    if isinstance(source, RiskCoverageCurve):
        refuse_judged(confidence, loss)
        needing = {"subgroups": subgroups, "among": among, "shortlist": shortlist,
                   "assume": assume or None}  # fmt: skip
        for name, value in needing.items():
            if value is not None:
                raise ValueError(
                    f"{name} needs rows, and a curve holds only their sums; pass Predictions."
                )
        return pick_on_curve(source, goal.with_target(target))
    outcomes = Outcomes.of(source, confidence=confidence, loss=loss)
    if isinstance(source, Predictions):
        check_confidence_by_row(source.y_proba, confidence)
    asked = None if shortlist is None else _check_listable(shortlist, source)
    goal = replace(goal, share=1.0 - (asked.share if asked else 0.0))
    bounded = not callable(confidence)
    if objective == "coverage":
        # A user's own confidences may be below 0 in later rows, which must be accepted as well.
        bounded = isinstance(confidence, str) or (confidence is None and not own)
    vouched = "independent" in check_vouched(assume)
    found: ThresholdSelection | GroupedSelection
    if subgroups is not None:
        refuse_among(among, "subgroups")
        by_answer = asks_for_answers(subgroups)
        by = subgroups if by_answer else name_of_subgroups(subgroups)
        if by_answer:
            subgroups = check_is_predictions(source, "subgroups='predicted_class'").answers
        part = rows_to_choose(asked, len(outcomes), None)
        chosen, members = outcomes, subgroups
        if part is not None:
            chosen, members = outcomes.take(part), take_rows(subgroups, part)
        codes, _ = subgroup_codes(members, len(chosen))
        caveats = find_order(chosen, objective, TAKE_LATEST, codes=codes, vouched=vouched)
        found = pick_by_group(
            chosen, members, by, target, goal,
            by_answer=by_answer, caveats=caveats, bounded=bounded, unseen=unseen,
        )  # fmt: skip
    else:
        part, cases = rows_among(source, among)
        part = rows_to_choose(asked, len(outcomes), part)
        chosen = outcomes if part is None else outcomes.take(part)
        caveats = find_order(chosen, objective, TAKE_LATEST, vouched=vouched)
        goal_here = goal.with_target(target, cases=cases)
        found = pick(chosen, goal_here, caveats=caveats, bounded=bounded)
    if min(found.thresholds.values()) < np.inf:
        warn_of_order(caveats)
    if asked is not None:
        assert isinstance(source, Predictions)
        found = add_shortlist(found, asked, source, outcomes, subgroups, goal=goal)
    return _add_policy(found, source, outcomes, confidence, subgroups)


def rows_among(
    source: Predictions | Outcomes, among: tuple[str, Any] | None
) -> tuple[BoolArray | None, str]:
    """Return which rows a promise is about, None for all, and their name in messages."""
    if among is None:
        return None, ""
    predictions = check_is_predictions(source, "among")
    side, label = _check_among(among, predictions.classes)
    rows, cases = rows_of_class(predictions, side, label)
    if not np.any(rows):
        raise ValueError(f"among={among!r}: there is no such row.")
    return rows, cases


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
    policy = AbstentionPolicy(
        classes=source.classes,
        threshold=found.threshold,
        confidence=source.rule.default_confidence if confidence is None else confidence,
        rule=source.rule,
        groups=found.groups,
        shortlist=found.shortlist,
        **policy_facts(found, outcomes, found.accepts(outcomes.confidence, subgroups)),
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


def _check_among(among: Any, classes: LabelArray) -> tuple[str, Any]:
    """Check `among`; return "predicted" or "true", and the class as a plain value."""
    pair = isinstance(among, tuple | list) and len(among) == 2
    if not pair or among[0] not in ("predicted", "true") or among[1] not in classes.tolist():
        raise ValueError(
            "among must be ('predicted', label) or ('true', label) with one of the classes "
            f"{classes[:10].tolist()}, got {shown(among)}."
        )
    label = among[1]
    return among[0], label.item() if isinstance(label, np.generic) else label
