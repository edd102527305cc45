"""Does a policy still keep its guarantee? One answer at any time, from labels that come late."""

from __future__ import annotations

import copy
import functools
import json
import math
import operator
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray
from skselect._lib.checks import rows as row_checks
from skselect._lib.checks import shown, warn_user
from skselect._lib.checks.options import check_choice, check_delta, check_number
from skselect._lib.files import digest_json, give_text, read_json, replace_nan, restore_stored
from skselect.monitoring import evidence, history, log
from skselect.monitoring.decided import check_is_policy
from skselect.monitoring.status import GuaranteeStatus, MonitorStatus
from skselect.objectives import DOUBT, Risk, read_guarantee
from skselect.policy.policy import AbstentionPolicy, External

SCHEMA = "skselect.monitor"
VERSION = 5
#: What is asked of a monitor beside its policy.
OPTIONS = ("target", "delta", "label_delay", "unlabelled", "min_audit_proba", "batch")
# At least so many of the latest cases are summarised, where there are so many.
_LATEST = 200
# Fewer labels than this may all be for cases that were deferred.
_SEVERAL = 5
# Codes of classes begin at 0; a label that is none of them is -1.
_MISSING = -2


#: What is counted, as :class:`MonitorStatus` holds it.
_COUNTED = ("n_decided", "n_accepted", "n_unlabelled", "n_other")


F = TypeVar("F", bound=Callable[..., Any])


def _locked(method: F) -> F:
    """Let one thread at a time call the public methods of a monitor."""

    @functools.wraps(method)
    def call(self: SelectiveRiskMonitor, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return cast(F, call)


class SelectiveRiskMonitor:
    """Watch whether a policy keeps its guarantee, as labels arrive late or for some cases only.

    It raises an alarm as soon as the answers of the policy show that its risk is
    above the target. If that never happens, it raises one with probability at most `delta`,
    however long it runs and however often you look.

    >>> import numpy as np
    >>> from skselect import AbstentionPolicy, SelectiveRiskMonitor
    >>> policy = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.8)
    >>> monitor = SelectiveRiskMonitor(policy, target=.05)
    >>> p = [[.9, .1]] * 400
    >>> monitor.add_decisions(p, ids=range(400)).status_.n_waiting
    400
    >>> y = ["no"] * 200 + ["yes", "no", "no", "no"] * 50      # after 200 cases 25 % are wrong
    >>> monitor.add_labels(range(400), y)
    SelectiveRiskMonitor: alarm, 400 cases of known outcome, 0 wait
    >>> monitor.status_.alarm_at
    237

    Parameters
    ----------
    policy : AbstentionPolicy
    objective : Risk, default=None
        What to watch, by its target and delta. None: what the policy's certificate guarantees (each
        subgroup's own), or the `target`. A guarantee about the cases of one class is not watched.
    target : float, default=None
        The bound to keep. Give it only without an object: the largest risk of accepted cases, in
        units of the policy's cost matrix where it has one, instead of the guaranteed one.
    delta : float in (0, 0.5], default=None
        Probability of a false alarm, for all time. Subgroups share it evenly. None: that of the
        certificate, else 0.05.
    label_delay : str, timedelta or number, default=None
        The age at which the outcome of a case should be known, such as "30D". A number is in the
        units of numeric `when`.
    unlabelled : {"wait", "correct"}, default="wait"
        What it means that a case has no label at that age. "wait": nothing; it waits for its
        label, and the cases decided after it wait too. "correct": the answer was correct, for
        errors are reported; a label that comes later does not count.
    min_audit_proba : float in (0, 1], default=1.0
        No accepted case is drawn for an audit with a smaller probability. 1: no audits.
    batch : int, str or timedelta, default=1000
        What the history shows as one row, and the comparison of the workload takes as one
        observation: so many decided cases, or a span of time such as "1D" (UTC) or "7D".

    Attributes
    ----------
    status_ : MonitorStatus
        The answer, in words and numbers.
    waiting_ : DataFrame
        The cases that wait for a label, or for those before them.

    See Also
    --------
    skselect.certify : Judges a table of fresh rows once.

    Notes
    -----
    Let loss_t be the loss of the t-th accepted case in the order of decisions, r the target and
    t0 = 500. For stakes l_j, best for risks of 1.25, 1.6, 2, 3 and 5 times r,
    ``M_j <- (M_j + w_t) (1 + l_j (loss_t - r))`` with ``w_t = t0 / ((t + t0) (t + t0 + 1))``;
    the evidence is ``mean_j M_j + t0 / (t + 1 + t0)``. It begins at 1, is never negative, and
    falls or stays on average as long as the risk of each case, given the cases before it, is at
    most r: so it ever reaches 1 / delta with probability at most delta (Ville's inequality).
    Each w_t begins to bet at another case, so that a long good past costs little.

    Cases enter in the order in which they were decided, never in the order in which labels come:
    errors that are reported at once would look like a high risk. Within a subgroup, that is.
    Counting unlabelled cases as correct can hide an error and never adds one.

    Of audited cases each was drawn with its own probability p >= `min_audit_proba`; its bet is
    ``1 + l_j (min_audit_proba / p) (loss_t - r)``, on average the same for all cases.

    A monitor cannot be merged with another one: its cases have an order. Threads may share one: it
    serves one call at a time.

    References
    ----------
    .. [1] Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting",
       JRSS B 2024.
    .. [2] Shin, Ramdas & Rinaldo, "E-detectors: a nonparametric framework for sequential change
       detection", New England Journal of Statistics in Data Science 2024.
    """

    def __init__(
        self,
        policy: AbstentionPolicy,
        *,
        objective: Any = None,
        target: float | None = None,
        delta: float | None = None,
        label_delay: Any = None,
        unlabelled: str = "wait",
        min_audit_proba: float = 1.0,
        batch: Any = 1000,
    ) -> None:
        check_is_policy(policy)
        kind, target, delta = read_guarantee(objective, target, delta)
        if kind is not None and not kind.is_selective:
            raise ValueError(
                f"objective: a monitor watches a largest risk, such as Risk(0.05), got "
                f"{shown(objective)}; check_policy tests the others on a table of labelled rows."
            )
        self._lock = threading.RLock()
        self.policy = policy
        self.target = None if target is None else check_number("target", target, 0.0)
        self.delta = None if delta is None else check_delta(delta)
        self.unlabelled = check_choice("unlabelled", unlabelled, ["wait", "correct"])
        self.min_audit_proba = check_number(
            "min_audit_proba", min_audit_proba, 0.0, 1.0, closed="right"
        )
        self._age, age_kind = log.span_of_time(label_delay, "label_delay")
        self.label_delay = label_delay
        if unlabelled == "correct" and self._age is None:
            raise ValueError(
                "label_delay is missing: unlabelled='correct' needs the age at which no label "
                "means that the answer was correct, such as label_delay='30D'."
            )
        self.batch = batch
        self._width, width_kind = log.batch_width(batch)
        self._loss, self._found = evidence.find_watched(policy, target, self.delta)
        kinds = {kind for kind in (age_kind, width_kind) if kind}
        if len(kinds) > 1:
            raise ValueError(
                "label_delay and batch must both be spans of time, or both numbers, got "
                f"{label_delay!r} and {batch!r}."
            )
        self._given_kind = kinds.pop() if kinds else None
        self.reset()

    @_locked
    def reset(self) -> SelectiveRiskMonitor:
        """Begin again: evidence, counts, history and waiting cases are dropped.

        Labels of cases that were decided before do not count any more. The chance of a false
        alarm is `delta` again.

        Returns
        -------
        self
        """
        self._guarantees = [replace(guarantee) for guarantee in self._found]
        self._waiting = np.empty(0, log.CASE)
        self._counts = dict.fromkeys(_COUNTED, 0)
        self._history = np.empty(0, history.BATCH)
        self._workload = history.Workload.of_policy(self.policy)
        self._key: float | None = None
        self._kind = self._given_kind
        self._last_decided = self._labels_until = -math.inf
        self._latest: dict[str, None] = {}
        return self

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return copy.deepcopy({k: v for k, v in vars(self).items() if k != "_lock"})

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    # Feeding -----------------------------------------------------------------------------

    @_locked
    def add_decisions(
        self,
        y_proba: Any = None,
        *,
        ids: Any,
        when: Any = None,
        y_pred: Any = None,
        subgroups: Any = None,
        audited: Any = None,
        audit_proba: Any = None,
        confidence: Any = None,
        auxiliary: Any = None,
    ) -> SelectiveRiskMonitor:
        """Note cases that the policy has decided; their labels may come later, or never.

        Parameters
        ----------
        y_proba : array-like of shape (n, K) or (n,)
            The classifier's raw output, columns in the order of the policy's classes, or the
            probability of the second of two classes. None with `confidence`.
        ids : array-like of shape (n,)
            One name per case. Its label will be found by it. Compared as text. No case that waits,
            or was decided at the same instant as the last one, has the same name.
        when : array-like of shape (n,) or a single value, default=None
            When the cases were decided: dates, or numbers. It must not go back. None: there are
            no times, only the order.
        y_pred : array-like of shape (n,), default=None
            The classifier's own answers. For a policy with ``decision="estimator"`` or with
            `confidence`.
        subgroups : array-like of shape (n,) or DataFrame, default=None
            The subgroup of each row. Needed for a policy with a threshold per subgroup.
        audited : array-like of bool, shape (n,), default=None
            The cases whose label will be found out, drawn at random. None: all of them.
        audit_proba : float or array-like of shape (n,), default=None
            The probability with which each case was drawn. None: `min_audit_proba`.
        confidence : array-like of shape (n,), default=None
            How sure the classifier is of each row. Instead of `y_proba`, with the answers in
            `y_pred`: for a policy that reads a confidence of your own, as ``policy.decide`` does,
            or a learned one.
        auxiliary : dict, default=None
            What a learned confidence asks, by name. Of each auxiliary model its raw probabilities
            for these rows, of each further column its values.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an argument does not fit; the monitor is then as it was.
        """
        decided = self._decide(y_proba, y_pred, subgroups, confidence, auxiliary)
        self._note(decided, None, ids, when, audited, audit_proba)
        return self

    @_locked
    def add_labels(self, ids: Any, y: Any, *, when: Any = None) -> SelectiveRiskMonitor:
        """Note labels, in any order.

        Parameters
        ----------
        ids : array-like of shape (m,)
            One name per case. May be empty: nothing has come up to `when`.
        y : array-like of shape (m,)
            True labels. Those of cases that do not wait (deferred, entered before, unknown)
            are counted in ``status_.n_other`` and left alone. Of a case that waits the last one
            counts.
        when : array-like of shape (m,) or a single value, default=None
            When the labels came, or up to when all of them have come. Needed for
            ``unlabelled="correct"`` only: cases that were `label_delay` old by then, without a
            label, were right. So add labels in the order in which they came.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an argument does not fit, such as a label that is none of the classes, or two
            labels for one case; the monitor is then as it was.

        Warns
        -----
        UserWarning
            If cases wait, and none of 5 or more labels is for one of them.
        """
        names = log.check_names(ids)
        labels = np.empty(0, dtype=self.policy.classes.dtype)
        if np.size(y) or len(names):
            labels = row_checks.check_labels(y, "y")
        row_checks.check_length("y", labels, len(names), "ids")
        truth = row_checks.encode_labels(labels, self.policy.classes, "y")
        told = pd.DataFrame({"name": names, "truth": truth}).drop_duplicates()
        if twice := told.loc[told["name"].duplicated(), "name"].tolist():
            raise ValueError(
                f"y has different labels for the same case, such as {twice[:5]}; pass one for each."
            )
        times, kind, until = self._times_of_labels(when, len(names))
        cases = self._waiting
        place = pd.Index(cases["id"], dtype=object).get_indexer(names)
        counts = place >= 0
        self._refuse_unknown(labels[counts], truth[counts])
        if len(names) >= _SEVERAL and len(cases) and not np.any(counts):
            warn_user(
                f"ids: none of these {len(names):,} labels is for a case that waits. They are for "
                f"cases such as {names[0]!r}; one that waits is called {cases['id'][0]!r}. Names "
                "are compared as text."
            )
        if self.unlabelled == "correct":  # what came too late does not count
            counts[counts] = times[counts] - cases["when"][place[counts]] <= float(self._age or 0.0)
        place = place[counts]
        self._kind = kind
        cases["loss"][place] = self._losses(truth[counts], cases["answer"][place])
        self._counts["n_other"] += int(np.sum(~counts))
        self._labels_until = max(self._labels_until, until)
        self._enter()
        return self

    @_locked
    def update(
        self,
        y: Any,
        y_proba: Any,
        *,
        ids: Any = None,
        when: Any = None,
        y_pred: Any = None,
        subgroups: Any = None,
        audited: Any = None,
        audit_proba: Any = None,
        confidence: Any = None,
        auxiliary: Any = None,
    ) -> SelectiveRiskMonitor:
        """Note cases and their labels at once.

        Parameters
        ----------
        y : array-like of shape (n,)
            True labels. A case whose label is missing (None, NaN) waits for it; labels of cases
            that were deferred, or not drawn, are not read, others must be classes.
        y_proba : array-like of shape (n, K) or (n,)
            The classifier's raw output, columns in the order of the policy's classes, or the
            probability of the second of two classes. None with `confidence`.
        ids : array-like of shape (n,), default=None
            One name per case. Needed where an accepted case has no label yet.
        when : array-like of shape (n,) or a single value, default=None
            When the cases were decided, and their labels known: dates, or numbers. It must not
            go back. None: there are no times, only the order.
        y_pred : array-like of shape (n,), default=None
            The classifier's own answers. For a policy with ``decision="estimator"`` or with
            `confidence`.
        subgroups : array-like of shape (n,) or DataFrame, default=None
            The subgroup of each row. Needed for a policy with a threshold per subgroup.
        audited : array-like of bool, shape (n,), default=None
            The cases whose label will be found out, drawn at random. None: all of them.
        audit_proba : float or array-like of shape (n,), default=None
            The probability with which each case was drawn. None: `min_audit_proba`.
        confidence : array-like of shape (n,), default=None
            How sure the classifier is of each row. Instead of `y_proba`, with the answers in
            `y_pred`: for a policy that reads a confidence of your own, as ``policy.decide`` does,
            or a learned one.
        auxiliary : dict, default=None
            What a learned confidence asks, by name. Of each auxiliary model its raw probabilities
            for these rows, of each further column its values.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an argument does not fit; the monitor is then as it was.
        """
        labels = self._known_labels(y)
        decided = self._decide(y_proba, y_pred, subgroups, confidence, auxiliary)
        self._note(decided, labels, ids, when, audited, audit_proba)
        if when is not None:
            self._labels_until = max(self._labels_until, self._last_decided)
        self._enter()
        return self

    def _decide(
        self, y_proba: Any, y_pred: Any, subgroups: Any, confidence: Any, auxiliary: Any
    ) -> tuple[BoolArray, FloatArray, IntArray, IntArray]:
        """Return which cases the policy accepts, its confidence, answers, and their guarantees.

        Answers are codes; a guarantee is its number, -1 where there is none for the case.
        """
        decided = self.policy.decide_arrays(
            y_proba, y_pred=y_pred, confidence=confidence, subgroups=subgroups, auxiliary=auxiliary
        )
        answers = decided["suggestion"]
        codes = row_checks.encode_known(answers, self.policy.classes, "y_pred")
        numbers = np.full(len(answers), -1)
        members = self.policy.parts.members(answers, subgroups)
        for number, guarantee in enumerate(self._guarantees):
            if guarantee.group in members:
                numbers[members[guarantee.group]] = number
        return decided["accepted"], decided["confidence"], codes, numbers

    def _note(
        self, decided: tuple[BoolArray, FloatArray, IntArray, IntArray],
        labels: tuple[LabelArray, IntArray] | None, ids: Any, when: Any,
        audited: Any, audit_proba: Any,
    ) -> None:  # fmt: skip
        """Check and count decided cases; those that were answered begin to wait."""
        accepted, confidence, answer, guarantee = decided
        n, truth = len(accepted), None if labels is None else labels[1]
        if truth is not None:
            row_checks.check_length("y", truth, n, "y_proba")
        number = self._counts["n_decided"] + np.arange(n)
        names = _names(ids, number, truth, accepted)
        times, kind = self._read_when(when, number)
        log.check_unique_ids(names, self._waiting["id"].tolist())
        log.check_unique_ids(names[times == self._last_decided], list(self._latest))
        weight, drawn = log.read_audits(audited, audit_proba, n, self.min_audit_proba)
        loss = np.full(n, np.nan) if truth is None else self._losses(truth, answer)
        waits = accepted & drawn & (guarantee >= 0)
        if labels is not None:
            self._refuse_unknown(labels[0][waits], labels[1][waits])
        cases = log.cases_of(
            id=names, number=number, when=times, answer=answer, guarantee=guarantee,
            weight=weight, loss=loss,
        )  # fmt: skip
        # Nothing is changed before everything is checked.
        self._kind = kind
        if ids is not None and n:
            known = self._latest if times[-1] == self._last_decided else {}
            self._latest = known | dict.fromkeys(names[times == times[-1]].tolist())
        self._count(times, accepted, confidence)
        self._waiting = np.append(self._waiting, cases[waits])

    def _read_when(self, when: Any, number: IntArray) -> tuple[FloatArray, str | None]:
        """Return the times of decisions, which are the numbers of the cases if none are given."""
        needed = self.unlabelled == "correct" or not isinstance(self.batch, int | np.integer)
        times, kind = log.read_times(when, len(number), self._kind, needed=needed)
        if when is None:
            times = number.astype(np.float64)
        before = np.append(self._last_decided, times[:-1])[: len(times)]
        back = np.flatnonzero(times < before)
        if len(back):
            last, found = (log.show_time(x[back[0]], kind) for x in (before, times))
            raise ValueError(
                f"when must not go back: sort the table by it, and pass older tables first. "
                f"The last case was decided at {last}; got {found} after it."
            )
        return times, kind

    def _count(self, times: FloatArray, accepted: BoolArray, confidence: FloatArray) -> None:
        """Add decided cases to their batches."""
        first = self._counts["n_decided"]
        number = first + np.arange(len(times))
        by_count = isinstance(self.batch, int | np.integer)
        keys = np.floor_divide(number if by_count else times, self._width)
        for rows in history.runs(keys):
            if keys[rows.start] != self._key:
                if self._key is not None:
                    self._workload.close(self._level, self._last_decided)
                self._history = history.begin_batch(
                    self._history, first + rows.start, times[rows.start]
                )
                self._key = float(keys[rows.start])
            self._workload.count(accepted[rows], confidence[rows])
            self._history["n"][-1] += rows.stop - rows.start
            self._history["n_accepted"][-1] += np.count_nonzero(accepted[rows])
            self._last_decided = float(times[rows.stop - 1])
        self._counts["n_decided"] += len(times)
        self._counts["n_accepted"] += int(np.count_nonzero(accepted))

    def _enter(self) -> None:
        """Bet on cases in the order of decisions, up to the first that is still open."""
        cases = self._waiting
        unlabelled = np.isnan(cases["loss"])
        is_open = unlabelled
        if self.unlabelled == "correct":
            is_open = unlabelled & (self._labels_until - cases["when"] <= float(self._age or 0.0))
        enters = np.zeros(len(is_open), dtype=bool)
        wealth = np.empty(len(is_open))
        loss = np.where(unlabelled, 0.0, cases["loss"])
        for number, guarantee in enumerate(self._guarantees):
            mine = np.flatnonzero(cases["guarantee"] == number)
            rows = mine[: np.argmax(np.append(is_open[mine], True))]
            if len(rows):
                enters[rows] = True
                own = guarantee.bet(loss[rows], cases["weight"][rows], cases["when"][rows])
                wealth[rows] = own * (guarantee.delta / self._level)
        if np.any(enters):
            entered, loss = cases[enters], loss[enters]
            self._counts["n_unlabelled"] += int(np.sum(unlabelled[enters]))
            history.enter_outcomes(self._history, entered, loss, wealth[enters])
            self._waiting = cases[~enters]

    # Answering ---------------------------------------------------------------------------

    @property
    @_locked
    def status_(self) -> MonitorStatus:
        """The answer, in words and numbers."""
        cases, unit = self._waiting, self._loss.unit
        known = history.latest_batches(self._history, _LATEST, "n_known")
        decided = history.latest_batches(self._history, _LATEST, "n")
        is_open = np.isnan(cases["loss"])
        blocks = is_open & np.isin(cases["guarantee"], cases["guarantee"][~is_open])
        now = max(self._last_decided, self._labels_until)
        age = math.inf if self._age is None else self._age
        overdue = cases["id"][is_open & (now - cases["when"] > age)]
        workload = "ok" if self._workload.shares else "unknown"
        changed = self._workload.changed
        return MonitorStatus(
            guarantees=tuple(self._status_of(guarantee) for guarantee in self._guarantees),
            by=self.policy.parts.by,
            loss=self._loss.kind,
            latest_risk=_ratio(unit * known["loss"].sum(), known["weight"].sum()),
            n_latest=int(known["n_known"].sum()),
            **self._counts,
            n_known=sum(guarantee.n_known for guarantee in self._guarantees),
            n_waiting=len(cases),
            n_blocked=int(np.sum(~is_open)),
            blocked_by=str(cases["id"][blocks][0]) if np.any(blocks) else None,
            n_overdue=len(overdue),
            overdue=tuple(overdue[:5].tolist()),
            unlabelled=self.unlabelled,
            waiting_since=log.show_time(cases["when"][0], self._kind) if len(cases) else None,
            coverage=_ratio(decided["n_accepted"].sum(), decided["n"].sum()),
            coverage_then=self.policy.coverage,
            workload=workload if changed is None else "changed",
            workload_when=None if changed is None else log.show_time(changed, self._kind),
        )

    def _status_of(self, guarantee: evidence.Watched) -> GuaranteeStatus:
        unit, when = self._loss.unit, guarantee.alarm_when
        wealth = evidence.wealth_of(guarantee.evidence, evidence.bets_on_cases(guarantee.target))
        low, high = evidence.risk_interval(guarantee.loss, guarantee.weight, guarantee.delta)
        # Broken is what raised an alarm; cases that count as correct confirm nothing.
        ends = float(guarantee.alarm_at is not None), 1.0 if self._counts["n_unlabelled"] else high
        found = Risk(guarantee.target).judge(
            guarantee.n_errors, guarantee.n_counted, (math.nan, *ends),
            max(DOUBT / len(self._guarantees), guarantee.delta),
        )  # fmt: skip
        return GuaranteeStatus(
            verdict=found.verdict,
            detectable=unit * found.detectable,
            since=guarantee.since,
            group=guarantee.group,
            target=unit * guarantee.target,
            delta=guarantee.delta,
            evidence=wealth * (guarantee.delta / self._level),
            alarm_line=1.0 / self._level,
            alarm_at=guarantee.alarm_at,
            alarm_when=None if when is None else log.show_time(when, self._kind),
            n_known=guarantee.n_known,
            estimate=_ratio(unit * guarantee.loss, guarantee.weight),
            interval=(unit * low, unit * high),
        )

    @property
    @_locked
    def waiting_(self) -> pd.DataFrame:
        """The cases that wait: `id`, `when`, `has_label` (it waits for cases before it)."""
        cases = pd.DataFrame(self._waiting[["id", "when"]])
        cases["when"] = self._dates(cases["when"])
        return cases.assign(has_label=~np.isnan(self._waiting["loss"]))

    @_locked
    def to_frame(self) -> pd.DataFrame:
        """Return the history so far, one row per batch of decided cases.

        Returns
        -------
        DataFrame
            `start`, `decided`, `accepted`, `coverage`, `known` (outcomes that have entered),
            `risk` (their mean loss), `evidence` (the most after any of them, of any guarantee,
            scaled so that the alarm is at `alarm_line`), `alarm_line`. Where there would be more
            than 512 rows, neighbours are joined.
        """
        rows = pd.DataFrame(self._history)
        known = rows["weight"] > 0
        risk = self._loss.unit * rows["loss"] / rows["weight"].where(known)
        return pd.DataFrame(
            {
                "start": self._dates(rows["start"]),
                "decided": rows["n"],
                "accepted": rows["n_accepted"],
                "coverage": rows["n_accepted"] / rows["n"],
                "known": rows["n_known"],
                "risk": risk,
                "evidence": rows["evidence"].where(known),
                "alarm_line": 1.0 / self._level,
            }
        )

    @_locked
    def __repr__(self) -> str:
        status = self.status_
        return (
            f"SelectiveRiskMonitor: {status.risk}, {status.n_known} cases of known outcome, "
            f"{status.n_waiting} wait"
        )

    def _repr_html_(self) -> str:
        return self.status_._repr_html_()

    # Saving ------------------------------------------------------------------------------

    @_locked
    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Save the monitor as JSON: its policy, some numbers per guarantee, and waiting cases.

        It also holds the names of the cases that were decided at the same instant as the last
        one. Its size does not grow with the cases that have entered. The file ends with a digest,
        so that one that was changed afterwards is not loaded.

        Parameters
        ----------
        path : path, default=None
            Where to write. The new file takes the place of the old one at once, or not at all. None
            returns the text instead.

        Returns
        -------
        str or None

        Raises
        ------
        ValueError
            If the policy cannot be saved as JSON.
        """
        # A confidence of which the policy's own file holds only the name, too.
        is_named = isinstance(self.policy.confidence, External)
        stored: dict[str, Any] = {
            "schema": SCHEMA,
            "version": VERSION,
            "policy": json.loads(str(self.policy.to_json(allow_external=is_named))),
            "options": {name: log.plain_span(getattr(self, name)) for name in OPTIONS},
            "guarantees": [guarantee.to_dict() for guarantee in self._guarantees],
            "waiting": replace_nan(pd.DataFrame(self._waiting).to_dict("list")),
            "counts": self._counts,
            "history": self._history.tolist(),
            "workload": self._workload.to_dict(),
            "batch_key": self._key,
            "kind": self._kind,
            "last_decided": _finite_or_none(self._last_decided),
            "latest": list(self._latest),
            "labels_until": _finite_or_none(self._labels_until),
        }
        text = json.dumps(stored, allow_nan=False)
        text = f'{text[:-1]}, "digest": "{digest_json(text)}"}}'
        return give_text(text, path, "\n")

    @classmethod
    def from_json(cls, path_or_text: str | os.PathLike[str]) -> SelectiveRiskMonitor:
        """Load a monitor, which then goes on as if it had never been saved.

        Parameters
        ----------
        path_or_text : path or str
            A file, or the JSON text itself.

        Returns
        -------
        SelectiveRiskMonitor

        Raises
        ------
        ValueError
            If the file is not a monitor, is damaged or was changed after it was saved, or has
            another format version.
        """
        stored = read_json(path_or_text, "state file")
        return restore_stored(stored, "state of a monitor", SCHEMA, VERSION, cls._from_dict)

    @classmethod
    def _from_dict(cls, stored: dict[str, Any]) -> SelectiveRiskMonitor:
        if stored.get("digest") != digest_json(stored):
            raise ValueError(
                "it was changed after it was saved, for its digest does not match; use the file as "
                "it was saved"
            )
        policy = AbstentionPolicy.from_json(json.dumps(stored["policy"]))
        monitor = cls(policy, **stored["options"])
        monitor._restore(stored)
        str(monitor.status_), monitor.to_frame()  # damaged values fail here, and not later
        return monitor

    def _restore(self, stored: Mapping[str, Any]) -> None:
        for guarantee, saved in zip(self._guarantees, stored["guarantees"], strict=True):
            guarantee.restore(saved)
        self._waiting = log.cases_of(**stored["waiting"])
        self._counts = {name: operator.index(stored["counts"][name]) for name in _COUNTED}
        self._history = np.array([tuple(batch) for batch in stored["history"]], history.BATCH)
        self._workload.restore(stored["workload"])
        self._key, self._kind = stored["batch_key"], stored["kind"]
        if self._kind not in (None, *log.KINDS):
            raise ValueError(f"kind is {self._kind!r}")
        for name in ("last_decided", "labels_until"):
            time = stored[name]
            setattr(self, f"_{name}", -math.inf if time is None else float(time))
        self._latest = dict.fromkeys(stored["latest"])

    # What several of the above need -----------------------------------------------------------

    @property
    def _level(self) -> float:
        """The chance of a false alarm of all guarantees together."""
        return sum(guarantee.delta for guarantee in self._guarantees)

    def _known_labels(self, y: Any) -> tuple[LabelArray, IntArray]:
        """Return true labels, some of which may be missing, and their codes."""
        values = row_checks.label_array(y, "y")
        values = values if values.ndim == 1 else row_checks.check_labels(values, "y")
        known = ~np.asarray(pd.isna(values))
        truth = np.full(values.shape, _MISSING, dtype=np.int64)
        if np.any(known) or not values.size:
            truth[known] = row_checks.encode_labels(
                row_checks.check_labels(values[known], "y"), self.policy.classes, "y"
            )
        return values, truth

    def _dates(self, times: Any) -> Any:
        """Return times as users know them: dates, if they are."""
        return log.to_dates(times) if self._kind == "time" else times

    def _refuse_unknown(self, labels: LabelArray, truth: IntArray) -> None:
        """Refuse labels that are none of the classes."""
        if len(strange := labels[truth == -1]):
            row_checks.encode_known(
                row_checks.check_labels(strange, "y"), self.policy.classes, "y", _REMEDY
            )

    def _losses(self, truth: IntArray, answer: IntArray) -> FloatArray:
        """Return the loss of each answer, as a share of the largest cost; nan if not known."""
        if self._loss.is_cost:
            loss = self.policy.rule.costs(truth, answer)
        else:
            loss = (truth != answer).astype(np.float64)
        return np.where(truth == _MISSING, np.nan, loss)

    def _times_of_labels(self, when: Any, n: int) -> tuple[FloatArray, str | None, float]:
        """Return when labels came, of which kind the times are, and up to when none is missing."""
        if when is None and self.unlabelled == "wait":
            return np.empty(0), self._kind, -math.inf
        if np.ndim(when) == 0 and when is not None:  # the labels may be none
            times, kind = log.read_times([when], 1, self._kind, needed=True)
            return np.broadcast_to(times, (n,)), kind, float(times[0])
        times, kind = log.read_times(when, n, self._kind, needed=True)
        return times, kind, float(np.max(times, initial=-math.inf))


_REMEDY = (
    "Correct them; capitals and blanks count. If a case truly is of another class, every answer to "
    "it is an error: pass any class but the one that was answered."
)


def _names(ids: Any, number: IntArray, truth: IntArray | None, accepted: BoolArray) -> LabelArray:
    """Return the names of cases; those that come with their labels need none of their own."""
    if ids is None and truth is not None:
        if np.any(accepted & (truth == _MISSING)):
            raise ValueError(
                "ids is missing: accepted cases without a label wait for it, and need a name."
            )
        return np.array([f"#{i}" for i in number.tolist()], dtype=object)
    names = log.check_names(ids)
    row_checks.check_length("ids", names, len(accepted), "y_proba")
    return names


def _ratio(one: float, other: float) -> float:
    return float(one / other) if other else math.nan


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
