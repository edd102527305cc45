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
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray
from skselect._lib.checks import rows as row_checks, shown, warn_user
from skselect._lib.checks.options import check_choice, check_delta, check_number
from skselect._lib.files import digest_json, give_text, read_json, replace_nan, restore_stored
from skselect._lib.notebook import noun_of
from skselect.monitoring import evidence, history, log
from skselect.monitoring.decided import check_is_policy
from skselect.monitoring.status import GuaranteeStatus, MonitorStatus
from skselect.objectives import DOUBT, Finding, Risk, read_guarantee
from skselect.policy.policy import AbstentionPolicy, External

SCHEMA = "skselect.monitor"
VERSION = 5
#: What is asked of a monitor beside its policy.
OPTIONS = (
    "target", "delta", "label_delay", "unlabelled", "min_audit_proba", "batch", "other_labels",
)  # fmt: skip
# At least so many of the latest cases are summarised, where there are so many.
_LATEST = 200
# Fewer labels than this may all be for cases that were deferred.
_SEVERAL = 5
# Codes of classes begin at 0; a label that is none of them is -1.
_MISSING = -2


#: What is counted, as :class:`MonitorStatus` holds it.
_COUNTED = ("n_decided", "n_accepted", "n_unlabelled", "n_other")


class _Decided(NamedTuple):
    """Cases that the policy has decided.

    An answer is a code; a guarantee is its number, -1 where there is none for the case.
    """

    accepted: BoolArray
    confidence: FloatArray
    answer: IntArray
    guarantee: IntArray


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
    <SelectiveRiskMonitor: alarm, 400 cases of known outcome, 0 wait>
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
        observation: so many decided cases, a span of time such as "1D" (UTC) or "7D", or "day",
        "week" (from Monday) or "month".
    other_labels : {"refuse", "wrong"}, default="refuse"
        What becomes of a label that is none of the policy's classes, which may be a slip of the
        pen. "wrong": any answer to such a case is an error, at the largest cost.

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
        other_labels: str = "refuse",
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
        age, age_kind = log.span_of_time(label_delay, "label_delay")
        if unlabelled == "correct" and age is None:
            raise ValueError(
                "label_delay is missing: unlabelled='correct' needs the age at which no label "
                "means that the answer was correct, such as label_delay='30D'."
            )
        self.label_delay = label_delay
        self._age = math.inf if age is None else age
        self.other_labels = check_choice("other_labels", other_labels, ["refuse", "wrong"])
        self.batch = batch
        self._batches = log.Batches.read(batch)
        self._loss, self._watched = evidence.find_watched(policy, target, self.delta)
        width_kind = None if self._batches.counts_cases else "time"
        if age_kind and width_kind and age_kind != width_kind:
            raise ValueError(
                "label_delay and batch must both be spans of time, or both numbers, got "
                f"{label_delay!r} and {batch!r}."
            )
        self._given_kind = age_kind or width_kind
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
        self._guarantees = [replace(guarantee) for guarantee in self._watched]
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
            state = {name: value for name, value in vars(self).items() if name != "_lock"}
            return copy.deepcopy(state)

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
            When the cases were decided: dates, or numbers. It must not go back, so that no case
            counts twice. None: there are no times, only the order; then a name is free again as
            soon as its case has entered.
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
        names, labels = self._read_labels(ids, y)
        truth = row_checks.encode_labels(labels, self.policy.classes, "y")
        _refuse_two_labels(names, truth)
        times, kind, until = self._times_of_labels(when, len(names))
        cases = self._waiting
        place = pd.Index(cases["id"], dtype=object).get_indexer(names)
        waits = place >= 0
        self._refuse_unknown(labels[waits], truth[waits])
        if len(cases) and len(names) >= _SEVERAL and not np.any(waits):
            warn_user(
                f"ids: none of these {len(names):,} labels is for a case that waits. They are for "
                f"cases such as {names[0]!r}; one that waits is called {cases['id'][0]!r}. Names "
                "are compared as text."
            )
        counts = waits
        if self.unlabelled == "correct":  # what came too late does not count
            age = times[waits] - cases["when"][place[waits]]
            counts = waits.copy()
            counts[waits] = age <= self._age
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
    ) -> _Decided:
        """Return which cases the policy accepts, its confidence, answers, and their guarantees."""
        decided = self.policy.decide_arrays(
            y_proba, y_pred=y_pred, confidence=confidence, subgroups=subgroups, auxiliary=auxiliary
        )
        answers = decided["suggestion"]
        if np.any(np.isnan(decided["confidence"])):
            # A case without an answer is deferred; which class stands there is not read.
            placeholder = self.policy.classes[0]
            answers, *_ = row_checks.fill_answers(answers, "y_pred", placeholder=placeholder)
        codes = row_checks.encode_known(answers, self.policy.classes, "y_pred")
        numbers = np.full(len(answers), -1)
        members = self.policy.parts.members(answers, subgroups)
        for number, guarantee in enumerate(self._guarantees):
            if guarantee.group in members:
                rows = members[guarantee.group]
                numbers[rows] = number
        return _Decided(decided["accepted"], decided["confidence"], codes, numbers)

    def _note(
        self,
        decided: _Decided,
        labels: tuple[LabelArray, IntArray] | None,
        ids: Any,
        when: Any,
        audited: Any,
        audit_proba: Any,
    ) -> None:
        """Check and count decided cases; those that were answered begin to wait."""
        cases, kind = self._read_cases(decided, labels, ids, when)
        cases["weight"], drawn = log.read_audits(
            audited, audit_proba, len(cases), self.min_audit_proba
        )
        waits = decided.accepted & drawn & (decided.guarantee >= 0)
        if labels is not None:
            values, truth = labels
            self._refuse_unknown(values[waits], truth[waits])
        # Nothing is changed before everything is checked.
        self._kind = kind
        if ids is not None and len(cases):
            self._keep_latest(cases["id"], cases["when"])
        self._count(cases["when"], decided.accepted, decided.confidence)
        self._waiting = np.append(self._waiting, cases[waits])

    def _read_cases(
        self, decided: _Decided, labels: tuple[LabelArray, IntArray] | None, ids: Any, when: Any
    ) -> tuple[history.Records, str | None]:
        """Return all decided cases as the log has them, and of which kind their times are."""
        n = len(decided.accepted)
        truth = None
        loss = np.full(n, np.nan)
        if labels is not None:
            _, truth = labels
            row_checks.check_length("y", truth, n, "y_proba")
            loss = self._losses(truth, decided.answer)
        number = self._counts["n_decided"] + np.arange(n)
        names = _names(ids, number, truth, decided.accepted)
        times, kind = self._read_when(when, number)
        self._refuse_taken(names, times)
        cases = log.cases_of(
            id=names,
            number=number,
            when=times,
            answer=decided.answer,
            guarantee=decided.guarantee,
            weight=np.ones(n),
            loss=loss,
        )
        return cases, kind

    def _refuse_taken(self, names: LabelArray, times: FloatArray) -> None:
        """Refuse names of cases that wait, or were decided at the same instant as the last one."""
        log.check_unique_ids(names, self._waiting["id"].tolist())
        log.check_unique_ids(names[times == self._last_decided], list(self._latest))

    def _keep_latest(self, names: LabelArray, times: FloatArray) -> None:
        """Keep the names of the cases that were decided at the same instant as the last one."""
        last = times[-1]
        latest = dict.fromkeys(names[times == last].tolist())
        if last == self._last_decided:
            latest = self._latest | latest
        self._latest = latest

    def _read_when(self, when: Any, number: IntArray) -> tuple[FloatArray, str | None]:
        """Return the times of decisions, which are the numbers of the cases if none are given."""
        needed = self.unlabelled == "correct" or not self._batches.counts_cases
        times, kind = log.read_times(when, len(number), self._kind, needed=needed)
        if when is None:
            times = number.astype(np.float64)
        if len(times) == 0:
            return times, kind
        before = np.append(self._last_decided, times[:-1])
        goes_back = times < before
        if np.any(goes_back):
            place = int(np.argmax(goes_back))
            last = log.show_time(before[place], kind)
            earlier = log.show_time(times[place], kind)
            raise ValueError(
                f"when must not go back: sort the table by it, and pass older tables first. "
                f"The last case was decided at {last}; got {earlier} after it."
            )
        return times, kind

    def _count(self, times: FloatArray, accepted: BoolArray, confidence: FloatArray) -> None:
        """Add decided cases to their batches."""
        n_before = self._counts["n_decided"]
        keys = self._batches.number(n_before + np.arange(len(times)), times)
        for rows in history.runs(keys):
            key = float(keys[rows.start])
            if key != self._key:
                self._begin_batch(key, n_before + rows.start, times[rows.start])
            answers = accepted[rows]
            self._workload.count(answers, confidence[rows])
            batch = self._history[-1:]
            batch["n"] += len(answers)
            batch["n_accepted"] += np.count_nonzero(answers)
            self._last_decided = float(times[rows][-1])
        self._counts["n_decided"] += len(times)
        self._counts["n_accepted"] += int(np.count_nonzero(accepted))

    def _begin_batch(self, key: float, position: int, start: float) -> None:
        """Close the batch before, and begin another with its first case, decided at `start`."""
        if self._key is not None:
            self._workload.close(self._level, self._last_decided)
        self._history = history.begin_batch(self._history, position, start)
        self._key = key

    def _enter(self) -> None:
        """Bet on cases in the order of decisions, up to the first that is still open."""
        cases = self._waiting
        unlabelled = np.isnan(cases["loss"])
        is_open = unlabelled
        if self.unlabelled == "correct":
            age = self._labels_until - cases["when"]
            is_open = unlabelled & (age <= self._age)
        loss = np.where(unlabelled, 0.0, cases["loss"])
        enters = np.zeros(len(cases), dtype=bool)
        wealth = np.empty(len(cases))
        for number, guarantee in enumerate(self._guarantees):
            rows = _before_first(cases["guarantee"] == number, is_open)
            if len(rows):
                enters[rows] = True
                money = guarantee.bet(loss[rows], cases["weight"][rows], cases["when"][rows])
                wealth[rows] = money * (guarantee.delta / self._level)
        if np.any(enters):
            self._counts["n_unlabelled"] += int(np.sum(unlabelled[enters]))
            history.enter_outcomes(self._history, cases[enters], loss[enters], wealth[enters])
            self._waiting = cases[~enters]

    # Answering ---------------------------------------------------------------------------

    @property
    @_locked
    def status_(self) -> MonitorStatus:
        """The answer, in words and numbers."""
        return MonitorStatus(
            guarantees=tuple(self._status_of(guarantee) for guarantee in self._guarantees),
            by=self.policy.parts.by,
            loss=self._loss.kind,
            n_known=sum(guarantee.n_known for guarantee in self._guarantees),
            unlabelled=self.unlabelled,
            coverage_then=self.policy.coverage,
            n_decided=self._counts["n_decided"],
            n_accepted=self._counts["n_accepted"],
            n_unlabelled=self._counts["n_unlabelled"],
            n_other=self._counts["n_other"],
            **self._status_of_latest(),
            **self._status_of_waiting(),
            **self._status_of_workload(),
        )

    def _status_of_latest(self) -> dict[str, Any]:
        """Return risk and coverage of the latest batches."""
        judged = history.latest_batches(self._history, _LATEST, "n_known")
        decided = history.latest_batches(self._history, _LATEST, "n")
        loss = self._loss.unit * judged["loss"].sum()
        weight = judged["weight"].sum()
        n_accepted = decided["n_accepted"].sum()
        n_decided = decided["n"].sum()
        return {
            "latest_risk": _ratio(loss, weight),
            "n_latest": int(judged["n_known"].sum()),
            "coverage": _ratio(n_accepted, n_decided),
        }

    def _status_of_waiting(self) -> dict[str, Any]:
        """Return which cases wait, for what, and since when."""
        cases = self._waiting
        names = cases["id"]
        is_open = np.isnan(cases["loss"])
        blocked = cases[~is_open]
        blocks = is_open & np.isin(cases["guarantee"], blocked["guarantee"])
        now = max(self._last_decided, self._labels_until)
        is_old = now - cases["when"] > self._age
        overdue = names[is_open & is_old]
        first_blocking = None
        if np.any(blocks):
            first_blocking = str(names[blocks][0])
        since = None
        if len(cases):
            since = self._show_time(cases["when"][0])
        return {
            "n_waiting": len(cases),
            "n_blocked": len(blocked),
            "blocked_by": first_blocking,
            "n_overdue": len(overdue),
            "overdue": tuple(overdue[:5].tolist()),
            "waiting_since": since,
        }

    def _status_of_workload(self) -> dict[str, Any]:
        """Return whether the cases look as they did when the policy was tuned."""
        changed = self._workload.changed
        if changed is not None:
            return {"workload": "changed", "workload_when": self._show_time(changed)}
        word = "ok" if self._workload.shares else "unknown"
        return {"workload": word, "workload_when": None}

    def _status_of(self, guarantee: evidence.Watched) -> GuaranteeStatus:
        unit = self._loss.unit
        share = guarantee.delta / self._level
        bets = evidence.bets_on_cases(guarantee.target)
        wealth = evidence.wealth_of(guarantee.evidence, bets)
        low, high = evidence.risk_interval(guarantee.loss, guarantee.weight, guarantee.delta)
        finding = self._judge(guarantee, high)
        alarm_when = None
        if guarantee.alarm_when is not None:
            alarm_when = self._show_time(guarantee.alarm_when)
        return GuaranteeStatus(
            verdict=finding.verdict,
            detectable=unit * finding.detectable,
            since=guarantee.since,
            group=guarantee.group,
            target=unit * guarantee.target,
            delta=guarantee.delta,
            evidence=wealth * share,
            alarm_line=1.0 / self._level,
            alarm_at=guarantee.alarm_at,
            alarm_when=alarm_when,
            n_known=guarantee.n_known,
            estimate=_ratio(unit * guarantee.loss, guarantee.weight),
            interval=(unit * low, unit * high),
        )

    def _judge(self, guarantee: evidence.Watched, high: float) -> Finding:
        """Return the verdict on a guarantee, `high` the upper end of the interval.

        Broken is what raised an alarm; cases that count as correct confirm nothing.
        """
        low = 0.0 if guarantee.alarm_at is None else 1.0
        if self._counts["n_unlabelled"]:
            high = 1.0
        doubt = max(DOUBT / len(self._guarantees), guarantee.delta)
        objective = Risk(guarantee.target)
        return objective.judge(
            guarantee.n_errors, guarantee.n_counted, (math.nan, low, high), doubt
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
            `wrong` (errors among them; nan where they have weights or costs), `risk` (their mean
            loss), `bound` (an upper bound of the risk at `delta`, of each batch by itself),
            `evidence` (the most after any of them, of any guarantee, scaled so that the alarm is at
            `alarm_line`), `alarm_line`. Where there would be more than 512 rows, neighbours are
            joined.
        """
        rows = pd.DataFrame(self._history)
        has_outcome = rows["weight"] > 0
        weight = rows["weight"].where(has_outcome)
        unit = self._loss.unit
        counts = self._loss.is_error and self.min_audit_proba == 1.0
        bounds = history.bound_risks(self._history, self._level, counted=counts)
        return pd.DataFrame(
            {
                "start": self._dates(rows["start"]),
                "decided": rows["n"],
                "accepted": rows["n_accepted"],
                "coverage": rows["n_accepted"] / rows["n"],
                "known": rows["n_known"],
                "wrong": rows["loss"].where(has_outcome & counts),
                "risk": unit * rows["loss"] / weight,
                "bound": unit * pd.Series(bounds, rows.index, dtype=float),
                "evidence": rows["evidence"].where(has_outcome),
                "alarm_line": 1.0 / self._level,
            }
        )

    @property
    def has_calendar(self) -> bool:
        """Whether the batches are days, weeks or months."""
        return self._batches.is_calendar

    @_locked
    def table(self) -> pd.DataFrame:
        """Return the history so far as a manager reads it: one row of text per batch.

        Returns
        -------
        DataFrame
            How many cases there were, how many of them were answered and left to a person, how many
            answers were wrong of those whose outcome is known, and an upper bound of that share (at
            `delta`, of each batch by itself). The rows are called after their days, weeks or months
            where these are the batches.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from skselect import AbstentionPolicy, SelectiveRiskMonitor
        >>> policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
        >>> monitor = SelectiveRiskMonitor(policy, target=.05, batch="month")
        >>> days = pd.date_range("2026-01-01", periods=400, freq="3h")
        >>> y = np.arange(400) % 40 == 0
        >>> monitor.update(y.astype(int), [[.9, .1], [.6, .4]] * 200, when=days).table()
                 cases    answered  left to a person              wrong  at most
        2026-01    248  124 (50 %)               124  7 of 124 (5.65 %)   10.4 %
        2026-02    152   76 (50 %)                76   3 of 76 (3.95 %)   9.89 %
        """
        names = [self._batches.name(start, self._kind) for start in self._history["start"]]
        return history.tabulate(self.to_frame(), names, self._loss)

    @_locked
    def __repr__(self) -> str:
        status = self.status_
        return (
            f"<SelectiveRiskMonitor: {status.risk}, {status.n_known} "
            f"{noun_of(status.n_known, 'case')} of known outcome, "
            f"{status.n_waiting} {'waits' if status.n_waiting == 1 else 'wait'}>"
        )

    def _repr_html_(self) -> str:
        card = self.status_._repr_html_()
        if not self.has_calendar:
            return card
        return f"{card}\n{self.table().to_html()}"

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
        policy = self.policy.to_json(allow_external=is_named)
        waiting = pd.DataFrame(self._waiting).to_dict("list")
        stored: dict[str, Any] = {
            "schema": SCHEMA,
            "version": VERSION,
            "policy": json.loads(str(policy)),
            "options": {name: log.plain_span(getattr(self, name)) for name in OPTIONS},
            "guarantees": [guarantee.to_dict() for guarantee in self._guarantees],
            "waiting": replace_nan(waiting),
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
        counts = stored["counts"]
        self._counts = {name: operator.index(counts[name]) for name in _COUNTED}
        batches = [tuple(batch) for batch in stored["history"]]
        self._history = np.array(batches, history.BATCH)
        self._workload.restore(stored["workload"])
        self._key = stored["batch_key"]
        self._kind = stored["kind"]
        if self._kind not in (None, *log.KINDS):
            raise ValueError(f"kind is {self._kind!r}")
        self._last_decided = _read_finite(stored["last_decided"])
        self._labels_until = _read_finite(stored["labels_until"])
        self._latest = dict.fromkeys(stored["latest"])

    # What several of the above need -----------------------------------------------------------

    @property
    def _level(self) -> float:
        """The chance of a false alarm of all guarantees together."""
        return sum(guarantee.delta for guarantee in self._guarantees)

    def _read_labels(self, ids: Any, y: Any) -> tuple[LabelArray, LabelArray]:
        """Return the names of cases, and a label for each."""
        names = log.check_names(ids)
        labels = np.empty(0, dtype=self.policy.classes.dtype)
        if np.size(y) or len(names):
            labels = row_checks.check_labels(y, "y")
        row_checks.check_length("y", labels, len(names), "ids")
        return names, labels

    def _known_labels(self, y: Any) -> tuple[LabelArray, IntArray]:
        """Return true labels, some of which may be missing, and their codes."""
        values = row_checks.label_array(y, "y")
        if values.ndim != 1:
            values = row_checks.check_labels(values, "y")
        is_known = ~np.asarray(pd.isna(values))
        truth = np.full(values.shape, _MISSING, dtype=np.int64)
        if np.any(is_known) or not values.size:
            labels = row_checks.check_labels(values[is_known], "y")
            truth[is_known] = row_checks.encode_labels(labels, self.policy.classes, "y")
        return values, truth

    def _dates(self, times: Any) -> Any:
        """Return times as users know them: dates, if they are."""
        return log.to_dates(times) if self._kind == "time" else times

    def _show_time(self, time: float) -> Any:
        """Return a time as users know it."""
        return log.show_time(time, self._kind)

    def _refuse_unknown(self, labels: LabelArray, truth: IntArray) -> None:
        """Refuse labels that are none of the classes."""
        unknown = labels[truth == -1]
        if len(unknown) and self.other_labels == "refuse":
            checked = row_checks.check_labels(unknown, "y")
            row_checks.encode_known(checked, self.policy.classes, "y", _REMEDY)

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
            [until], kind = log.read_times([when], 1, self._kind, needed=True)
            return np.full(n, until), kind, float(until)
        times, kind = log.read_times(when, n, self._kind, needed=True)
        until = float(np.max(times, initial=-math.inf))
        return times, kind, until


_REMEDY = (
    "Correct them; capitals and blanks count. If cases truly are of other classes, every answer to "
    "them is an error: other_labels='wrong'."
)


def _before_first(mine: BoolArray, is_open: BoolArray) -> IntArray:
    """Return the cases of a guarantee up to the first of them that is still open."""
    rows = np.flatnonzero(mine)
    is_open = is_open[rows]
    if not np.any(is_open):
        return rows
    return rows[: np.argmax(is_open)]


def _refuse_two_labels(names: LabelArray, truth: IntArray) -> None:
    """Refuse different labels for one case."""
    labels = pd.DataFrame({"name": names, "truth": truth}).drop_duplicates()
    has_two = labels["name"].duplicated()
    twice = labels.loc[has_two, "name"].tolist()
    if twice:
        raise ValueError(
            f"y has different labels for the same case, such as {twice[:5]}; pass one for each."
        )


def _names(ids: Any, number: IntArray, truth: IntArray | None, accepted: BoolArray) -> LabelArray:
    """Return the names of cases; those that come with their labels need none of their own."""
    if ids is None and truth is not None:
        waits = accepted & (truth == _MISSING)
        if np.any(waits):
            raise ValueError(
                "ids is missing: accepted cases without a label wait for it, and need a name."
            )
        return np.array([f"#{i}" for i in number.tolist()], dtype=object)
    names = log.check_names(ids)
    row_checks.check_length("ids", names, len(accepted), "y_proba")
    return names


def _ratio(numerator: float, denominator: float) -> float:
    return float(numerator / denominator) if denominator else math.nan


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _read_finite(stored: float | None) -> float:
    return -math.inf if stored is None else float(stored)
