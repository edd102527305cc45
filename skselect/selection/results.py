"""A chosen threshold, or one per subgroup, the table of all thresholds, and the shortlist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import pandas as pd

from skselect._lib.arrays import BoolArray, FloatArray, IntArray
from skselect._lib.checks.options import check_count, check_delta, check_number, check_seed
from skselect._lib.checks.rows import refuse_weights
from skselect._lib.notebook import NotebookText, noun_of, percent, show_card, wrap
from skselect.bounds._pointwise import (
    clopper_pearson_upper,
    hoeffding_bentkus_upper,
    rows_for_quantile,
)
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import ArgumentError
from skselect.objectives import Best, Objective, Risk
from skselect.policy.certificate import Caveat, Certificate, fingerprint
from skselect.policy.policy import AbstentionPolicy
from skselect.policy.seen_rows import record_confidence
from skselect.policy.subgroups import GroupThresholds, PolicyShortlist, check_enough_classes
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions
from skselect.thresholds import Shortlist
from skselect.thresholds._rules import shortlist_cutoff

_SAME_ROWS = (
    "these rows also chose the threshold (skselect.thresholds.Shortlist({level:g}, share=0.5), in "
    "a terminal --shortlist {level:g} 0.5, sets rows apart)"
)
_NO_ERROR_RATE = "No error rate was asked for: that takes objective='risk', target=0.05."
_SEVERAL = "several analyses of growing rows are planned"
_QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


class _Selection(NotebookText):
    """What selections with and without subgroups share."""

    # Options of the table that a notebook shows.
    _most: ClassVar[dict[str, int]] = {}
    to_frame: Callable[..., pd.DataFrame]
    _card: Callable[[], str]
    curve: RiskCoverageCurve
    shortlist: PolicyShortlist | None
    waiting: IntArray | None
    n_unjudged: int
    if TYPE_CHECKING:
        # One of the two has them by row, the other by subgroup.

        @property
        def threshold(self) -> Any: ...

        @property
        def certificate(self) -> Any: ...

        @property
        def groups(self) -> Any: ...

    @property
    def parts(self) -> GroupThresholds:
        """The thresholds and certificates; that for all rows is the subgroup "all"."""
        return self.groups or GroupThresholds.of_all(self.threshold, self.certificate)

    @property
    def thresholds(self) -> dict[Any, float]:
        """The threshold of each subgroup; of all rows under "all"."""
        return dict(self.parts.thresholds)

    @property
    def certificates(self) -> dict[Any, Certificate | None]:
        """The certificate of each subgroup; of all rows under "all"."""
        return dict(self.parts.certificates)

    def accepts(self, confidence: FloatArray, subgroups: Any = None) -> BoolArray:
        """Tell which rows are accepted; rows of no subgroup are not."""
        return confidence >= self.parts.look_up(subgroups, len(confidence))

    @property
    def labels_used(self) -> int:
        """How many rows were judged: all, unless rows not judged yet count as errors."""
        if self.certificate is None:
            return self.curve.n_rows - self.n_unjudged
        # The curve may be that of a reading without copies.
        n_rows: int = self.certificate.n
        return n_rows - self.n_unjudged

    def next_to_judge(self, n: int) -> IntArray:
        """Return the positions, in the table given, of rows to judge next, the surest first.

        Only rows that can still raise the coverage are named: no threshold passes below them even
        if all rows that nobody has judged are right. None is left where no label can help.

        Parameters
        ----------
        n : int
            How many at most.

        Returns
        -------
        ndarray of shape (up to n,)

        Raises
        ------
        ValueError
            If the rows do not say which of them are judged.

        Examples
        --------
        >>> import numpy as np
        >>> from skselect import Predictions, select_threshold
        >>> score = np.random.default_rng(0).permutation(200)
        >>> verdict = np.where(score < 100, "", "right")
        >>> rows = Predictions.from_verdicts(verdict, score, unjudged="wrong")
        >>> found = select_threshold(rows, objective="risk", target=.05)
        >>> found.labels_used, round(found.coverage, 1), score[found.next_to_judge(3)].tolist()
        (100, 0.5, [99, 98, 97])
        """
        if self.waiting is None:
            raise ValueError("next_to_judge: build the rows with unjudged='wrong'.")
        return self.waiting[: check_count("n", n)]

    def _repr_html_(self) -> str:
        table = self.to_frame(**self._most).to_html(border=0, float_format="{:.4g}".format)
        return f'{self._card()}<div style="overflow-x:auto">{table}</div>'

    def to_policy(self, classes: Any, **decides: Any) -> AbstentionPolicy:
        """Return the policy of the chosen threshold or thresholds, with what is guaranteed.

        A selection from a table of predictions has it already, as `policy`. A selection from a
        curve or from outcomes knows neither the classes nor how confidences are computed.

        Parameters
        ----------
        classes : array-like of shape (K,)
            Class labels in the order of the raw scores' columns.
        **decides
            How rows are decided, as an :class:`AbstentionPolicy` takes it: `confidence`,
            `calibration`, `response`, `rule`, `abstain_label`, `metadata`.

        Returns
        -------
        AbstentionPolicy

        Raises
        ------
        ValueError
            If they do not fit each other.

        Examples
        --------
        >>> from skselect import Outcomes, select_threshold
        >>> outcomes = Outcomes([0, 1] * 60, [.9, .6] * 60)
        >>> selection = select_threshold(outcomes, objective="risk", target=.1)
        >>> selection.to_policy(["no", "yes"])
        <AbstentionPolicy: 2 classes, threshold 0.75, certified>
        """
        chosen = {
            "threshold": self.threshold,
            "certificate": self.certificate,
            "groups": self.groups,
            "shortlist": self.shortlist,
        }
        return AbstentionPolicy(classes, **(decides | chosen))


@dataclass(frozen=True, eq=False)
class ThresholdSelection(_Selection):
    """A chosen threshold and how it came about.

    Parameters
    ----------
    threshold : float
        inf: nothing is accepted.
    objective : Objective
        With checked parameters, on these rows; `target` is its own.
    coverage, risk : float
        On the rows that chose it (risk is nan when nothing is accepted), in units of the cost
        matrix where there is one.
    value : float or None
        The metric at the threshold, for metric objectives.
    certificate : Certificate or None
        None where nothing is guaranteed: metric objectives, cost, ``method="empirical"``.
    curve : RiskCoverageCurve
        Its losses are in [0, 1].
    policy : AbstentionPolicy or None
        None when only outcomes were given, which know no classes. After
        :meth:`Predictions.from_labels` it decides ``(y_pred=answers, confidence=scores)``.
    shortlist : PolicyShortlist or None
        Which classes are named where a case is deferred, None where that was not asked for.
    waiting : ndarray of int or None
        All that :meth:`next_to_judge` names, None where all rows had to be judged.
    n_unjudged : int
        Rows that count as errors because nobody has judged them.
    """

    _most: ClassVar = {"max_rows": 12}
    #: One threshold for all rows.
    groups: ClassVar[None] = None

    threshold: float
    objective: Objective
    coverage: float
    risk: float
    value: float | None
    certificate: Certificate | None
    curve: RiskCoverageCurve
    policy: AbstentionPolicy | None = None
    shortlist: PolicyShortlist | None = None
    waiting: IntArray | None = None
    n_unjudged: int = 0

    @property
    def target(self) -> float | None:
        """The target, None for a metric."""
        return cast("float | None", self.objective.target_given)

    @property
    def accepts_nothing(self) -> bool:
        """Whether no threshold was good enough."""
        return self.threshold == np.inf

    def __repr__(self) -> str:
        kind = ""
        if self.certificate is not None:
            kind = ", certified" if self.certificate.is_certified else ", not certified"
        return (
            f"<ThresholdSelection: {self.objective.name}, threshold {self.threshold:.6g}, coverage "
            f"{self.coverage:.4g}, risk {self.risk:.4g}{kind}>"
        )

    def __str__(self) -> str:
        if self.certificate is not None:
            return str(self.certificate)
        value = ""
        if self.value is not None:
            value = f" ({self.objective.name} {self.value:.4g})"
        text = (
            f"GUARANTEES NOTHING for new rows: threshold {self.threshold:.6g} by "
            f"{self.objective.name}{value}; on the {self.curve.n_rows} "
            f"{noun_of(self.curve.n_rows, 'row')} that chose it, "
            f"coverage {self.coverage:.4g} and risk {self.risk:.4g}."
        )
        if isinstance(self.objective, Best):
            text = f"{text} {_NO_ERROR_RATE}"
        if self.shortlist is not None:
            text = f"{text}\n{self.shortlist}"
        return wrap(text)

    def _card(self) -> str:
        """Return the threshold and what is guaranteed about it as HTML."""
        if self.certificate is not None:
            return self.certificate._repr_html_(str(self))
        numbers = {
            "of these cases answered": percent(self.coverage),
            "threshold": f"{self.threshold:.6g}",
        }
        return show_card(str(self), "open", numbers)

    def to_frame(self, *, delta: float | None = None, max_rows: int | None = 256) -> pd.DataFrame:
        """Return one row per threshold, from which an auditor can check the choice.

        Parameters
        ----------
        delta : float in (0, 0.5], default=None
            Probability that the guarantee fails. Each threshold has a bound of its own. None: that
            of the selection, divided by the planned analyses.
        max_rows : int or None, default=256
            About how many thresholds to show, evenly spread, with the chosen one. None shows
            all.

        Returns
        -------
        DataFrame
            `threshold`, `n_accepted`, `n_errors` (`total_loss` where losses are graded or
            weighted), `coverage`, `risk`, `pointwise_bound` (Clopper-Pearson; Hoeffding-Bentkus
            for graded losses; nan for weighted rows), `passes` (whether that bound is within a
            risk target; not for weighted rows) and `chosen`. Each bound holds for
            a threshold fixed beforehand; a threshold chosen from this table needs a certificate.

        Examples
        --------
        >>> from skselect import Outcomes, select_threshold
        >>> outcomes = Outcomes([0] * 59 + [1], ([.9] * 5 + [.8]) * 10)
        >>> selection = select_threshold(outcomes, objective="risk", target=.1)
        >>> print(selection.to_frame().drop(columns=["coverage", "risk"]).round(3).to_string())
           threshold  n_accepted  n_errors  pointwise_bound  passes  chosen
        0        0.9          50         0            0.058    True   False
        1        0.8          60         1            0.077    True    True
        """
        if delta is None:
            delta = self.objective.level
        check_delta(delta)
        curve = self.curve
        unit = self.objective.about.unit
        chosen = curve.n_blocks_at(self.threshold)
        shown = _spread(len(curve), chosen, max_rows)
        table: dict[str, Any] = {
            "threshold": curve.thresholds[shown],
            "n_accepted": curve.n_accepted[shown],
        }
        has_errors = curve.counted and not curve.is_graded
        loss = curve.accepted_loss[shown]
        if has_errors:
            table["n_errors"] = loss.astype(int)
        else:
            table["total_loss"] = unit * loss
        table["coverage"] = curve.coverage[shown]
        table["risk"] = unit * curve.selective_risk[shown]
        bound = _bound_pointwise(curve, shown, delta, has_errors=has_errors)
        table["pointwise_bound"] = unit * bound
        if isinstance(self.objective, Risk) and curve.counted:
            table["passes"] = table["pointwise_bound"] <= unit * self.objective.scaled_target
        table["chosen"] = shown == chosen - 1
        return pd.DataFrame(table)


@dataclass(frozen=True, eq=False)
class GroupedSelection(_Selection):
    """One chosen threshold per subgroup, each with a certificate of its own.

    Parameters
    ----------
    by : str
        What the subgroups are called.
    selections : dict
        A :class:`ThresholdSelection` per subgroup.
    curve : RiskCoverageCurve
        Of all rows.
    unseen : {"abstain", "raise"}
        What the policy does with rows of other subgroups.
    policy : AbstentionPolicy or None
    by_answer : bool
        Whether the answers are the subgroups.
    columns : tuple of str
        The attributes that make a subgroup, where there are several.
    shortlist : PolicyShortlist or None
        Of the deferred cases of all subgroups together.
    waiting, n_unjudged
        As for :class:`ThresholdSelection`.
    """

    #: The threshold of rows that belong to no subgroup; each subgroup has its own certificate.
    threshold: ClassVar[float] = np.inf
    certificate: ClassVar[None] = None

    by: str
    selections: dict[Any, ThresholdSelection]
    curve: RiskCoverageCurve
    unseen: str = "abstain"
    policy: AbstentionPolicy | None = None
    by_answer: bool = False
    columns: tuple[str, ...] = ()
    shortlist: PolicyShortlist | None = None
    waiting: IntArray | None = None
    n_unjudged: int = 0

    @property
    def groups(self) -> GroupThresholds:
        """The thresholds of the subgroups, as a policy stores them."""
        thresholds = {}
        certificates = {}
        for group, selection in self.selections.items():
            thresholds[group] = selection.threshold
            certificates[group] = selection.certificate
        return GroupThresholds(
            self.by, thresholds, certificates, self.unseen, self.by_answer, self.columns
        )

    def __repr__(self) -> str:
        n_groups = len(self.selections)
        n_deferred = sum(selection.accepts_nothing for selection in self.selections.values())
        return f"<GroupedSelection by {self.by}: {n_groups} subgroups, {n_deferred} deferred>"

    def __str__(self) -> str:
        paragraphs = []
        if any(self.certificates.values()):
            paragraphs.append(str(self.groups))
        else:
            for group, selection in self.selections.items():
                paragraphs.append(f"{self.by} {group!r}\n{selection}")
        if self.shortlist is not None:
            paragraphs.append(str(self.shortlist))
        return "\n\n".join(paragraphs)

    def _card(self) -> str:
        """Return what is guaranteed about each subgroup as HTML; one card says what is alike."""
        cards = self.groups.show()
        if not cards:
            return NotebookText._repr_html_(self)
        if self.shortlist is None:
            return cards
        shortlist = show_card(str(self.shortlist), "open")
        return f"{cards}{shortlist}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per subgroup: rows, threshold, coverage, risk, certified or not."""
        rows = {}
        for group, selection in self.selections.items():
            certificate = selection.certificate
            rows[group] = {
                "n": selection.curve.n_rows,
                "target": selection.target,
                "threshold": selection.threshold,
                "coverage": selection.coverage,
                "risk": selection.risk,
                "certified": certificate is not None and certificate.is_certified,
            }
        table = pd.DataFrame.from_dict(rows, orient="index")
        table.index = pd.Index(list(rows), name=self.by, tupleize_cols=False)
        return table


def _spread(n: int, chosen: int, max_rows: int | None) -> IntArray:
    """Return the entries to show: evenly spread, both ends and the chosen one."""
    if max_rows is None or n <= check_count("max_rows", max_rows, 2):
        return np.arange(n)
    even = np.linspace(0, n - 1, max_rows - 1).round().astype(np.int64)
    return np.unique(np.append(even, max(chosen - 1, 0)))


def add_waiting(
    selection: ThresholdSelection | GroupedSelection,
    hope: ThresholdSelection | GroupedSelection,
    outcomes: Outcomes,
    subgroups: Any,
    counted: BoolArray | None,
) -> ThresholdSelection | GroupedSelection:
    """Return a selection with the rows to judge next; `hope` is that if all of them are right.

    Errors at or above a threshold alone decide whether it passes, so rows below those of `hope`
    change nothing, whatever their label. `counted` are the rows that count, None for all.
    """
    unjudged = outcomes.unjudged
    assert unjudged is not None
    if counted is not None:
        unjudged = unjudged & counted
    threshold = selection.parts.look_up(subgroups, len(outcomes))
    threshold_if_right = hope.parts.look_up(subgroups, len(outcomes))
    confidence = outcomes.confidence
    can_help = (confidence >= threshold_if_right) & (threshold > threshold_if_right)
    rows = np.flatnonzero(unjudged & can_help)
    surest_first = np.argsort(-confidence[rows], kind="stable")
    n_unjudged = int(np.count_nonzero(unjudged))
    return replace(selection, waiting=rows[surest_first], n_unjudged=n_unjudged)


def _bound_pointwise(
    curve: RiskCoverageCurve, entries: IntArray, delta: float, *, has_errors: bool
) -> FloatArray:
    """Return the bound of each threshold as if it had been fixed beforehand."""
    n_accepted = curve.n_accepted[entries]
    if has_errors:
        n_errors = curve.accepted_loss[entries]
        return np.asarray(clopper_pearson_upper(n_errors, n_accepted, delta))
    if not curve.counted:
        return np.full(len(entries), np.nan)
    means = np.clip(curve.selective_risk[entries], 0.0, 1.0)
    return np.asarray(hoeffding_bentkus_upper(means, n_accepted, delta))


def make_policy(
    selection: ThresholdSelection | GroupedSelection,
    outcomes: Outcomes,
    accepted: BoolArray,
    *,
    model_print: str | None = None,
    rated_by_others: bool = False,
    trained: FloatArray | None = None,
    **decides: Any,
) -> AbstentionPolicy:
    """Return the policy of a selection, with what it records about the rows that tuned it.

    Parameters
    ----------
    selection : ThresholdSelection or GroupedSelection
    outcomes : Outcomes
        Of all rows, also of those set apart for a shortlist.
    accepted : ndarray of bool, shape (n,)
        Which of them it accepts.
    model_print : str, default=None
        Digest of the scores of these rows.
    rated_by_others : bool, default=False
        Whether other models than the final one rated these rows: the policy will not meet their
        confidences again, and records none.
    trained : ndarray of shape (m,), default=None
        The confidence of rows that trained the classifier.
    **decides
        What decides beside the thresholds, as :meth:`ThresholdSelection.to_policy` takes it.
    """
    curve = selection.curve
    if curve.n_rows != len(outcomes):
        # The threshold was chosen on a part of the rows.
        curve = RiskCoverageCurve.from_outcomes(outcomes.all_counted)
    fingerprints = {"data": fingerprint(curve)}
    quantiles = {}
    if model_print is not None:
        fingerprints["model"] = model_print
    if not rated_by_others:
        fingerprints["rows"] = record_confidence(curve.thresholds, curve.block_rows)
        values = np.nanquantile(outcomes.confidence, _QUANTILES).tolist()
        quantiles = {f"{q:g}": value for q, value in zip(_QUANTILES, values, strict=True)}
    if trained is not None:
        confidences, counts = np.unique(trained, return_counts=True)
        fingerprints["trained"] = record_confidence(confidences, counts)
    coverage = np.average(accepted, weights=outcomes.sample_weight)
    facts = {
        "coverage": float(coverage),
        "n": len(outcomes),
        "confidence_quantiles": quantiles,
        "fingerprints": fingerprints,
    }
    return selection.to_policy(**(decides | facts))


# Shortlists ---------------------------------------------------------------------------------------


def check_shortlist(
    shortlist: Any, weight: Any, n_classes: int, random_state: Any = None
) -> Shortlist:
    """Return what was asked for, with a seed; refuse weights and one or two classes."""
    if not isinstance(shortlist, Shortlist):
        if isinstance(shortlist, int) and shortlist > 1:
            raise ArgumentError(
                "shortlist",
                f"shortlist={shortlist:g}: lists have no fixed length. Say in which share of the "
                "deferred cases the true class is listed, such as shortlist=0.95.",
            )
        shortlist = Shortlist(check_number("shortlist", shortlist, 0.0, 1.0, closed="neither"))
    refuse_weights(weight, "a shortlist")
    check_enough_classes(n_classes)
    seed = random_state if shortlist.random_state is None else shortlist.random_state
    return replace(shortlist, random_state=check_seed(seed))


def tuning_mask(shortlist: Shortlist, n: int, rows: BoolArray | None) -> BoolArray | None:
    """Return which of these `rows` choose the threshold; None stands for all n rows."""
    if not shortlist.share:
        return rows
    chooses = ~shortlist.set_apart(n)
    if rows is not None:
        chooses &= rows
    if not np.any(chooses):
        raise ValueError(
            f"shortlist: share={shortlist.share:g} leaves none of these rows to choose the "
            "threshold; use a smaller share."
        )
    return chooses


def add_shortlist(
    selection: ThresholdSelection | GroupedSelection,
    requested: Shortlist,
    predictions: Predictions,
    outcomes: Outcomes,
    subgroups: Any,
    *,
    objective: Objective,
    caveats: tuple[Caveat, ...] = (),
    unknown: BoolArray | None = None,
) -> ThresholdSelection | GroupedSelection:
    """Return a selection with the shortlist of the cases that it defers.

    Parameters
    ----------
    selection : ThresholdSelection or GroupedSelection
    requested : Shortlist
    predictions : Predictions
        All rows, with probabilities.
    outcomes : Outcomes
        Of all rows.
    subgroups : array-like of shape (n,), DataFrame or None
    objective : Objective
    caveats : tuple of Caveat, default=()
        Why what is found on these rows need not hold for the final classifier.
    unknown : ndarray of bool, shape (n,), default=None
        Rows whose true class the final classifier does not know.
    """
    readings = _read_deferred(selection, requested, outcomes, subgroups)
    n_rows = min(int(np.count_nonzero(rows)) for rows in readings)
    _refuse_too_few(n_rows, len(outcomes), requested)
    truth = predictions.y_true
    if unknown is not None:
        truth = np.where(unknown, -1, truth)
    proba = predictions.y_proba
    assert proba is not None
    # The list is long enough under each reading.
    least = min(shortlist_cutoff(proba[rows], truth[rows], requested.level) for rows in readings)
    if least == -np.inf:
        raise ArgumentError(
            "shortlist",
            f"shortlist={requested.level:g} cannot be reached: the true class of more than "
            f"{100 * (1 - requested.level):.3g} % of the deferred rows is unknown to the "
            "classifier.",
        )
    reasons = _doubt_shortlist(requested, objective, caveats)
    shortlist = PolicyShortlist(requested.level, least, selection.threshold, n_rows, reasons)
    selection = replace(selection, shortlist=shortlist)
    if selection.certificate is None:
        return selection
    certificate = replace(selection.certificate, shortlist=str(shortlist))
    return replace(selection, certificate=certificate)


def _read_deferred(
    selection: ThresholdSelection | GroupedSelection,
    requested: Shortlist,
    outcomes: Outcomes,
    subgroups: Any,
) -> list[BoolArray]:
    """Return the deferred rows that set the list, under each reading of the rows."""
    deferred = ~selection.accepts(outcomes.confidence, subgroups)
    if selection.parts.unseen == "raise":
        deferred &= selection.parts.have(subgroups, len(outcomes))
    if requested.share:
        deferred &= requested.set_apart(len(outcomes))
    if outcomes.readings is None:
        return [deferred]
    return [deferred & rows for rows in outcomes.readings.T]


def _doubt_shortlist(
    requested: Shortlist, objective: Objective, caveats: tuple[Caveat, ...]
) -> tuple[str, ...]:
    """Return why a shortlist is an estimate; none where it is certified."""
    reasons = [caveat.reason for caveat in caveats if caveat.strikes]
    if not requested.share and not objective.ignores_rows:
        reasons.insert(0, _SAME_ROWS.format(level=requested.level))
    if objective.max_analyses > 1:
        reasons.append(_SEVERAL)
    return tuple(reasons)


def _refuse_too_few(n: int, n_rows: int, requested: Shortlist) -> None:
    needed = rows_for_quantile(requested.level)
    if n >= needed:
        return
    which = "deferred"
    larger_share = ""
    if requested.share:
        which = "deferred and set apart"
        larger_share = ", a larger share"
    raise ArgumentError(
        "shortlist",
        f"shortlist={requested.level:g} needs at least {needed} rows that are {which}, and {n} of "
        f"these {n_rows} are. Use more rows, a lower level{larger_share}, a goal that defers more, "
        "or leave shortlist out.",
    )
