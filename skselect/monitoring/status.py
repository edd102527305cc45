"""What a monitor knows, in numbers and in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from skselect._lib.files import replace_nan
from skselect._lib.notebook import VERDICTS, NotebookText, count, percent, rounded, show_card, wrap
from skselect.objectives import Loss, Risk


@dataclass(frozen=True)
class GuaranteeStatus:
    """Whether one guarantee is kept: the only one of a policy, or that of a subgroup.

    Parameters
    ----------
    verdict : {"broken", "in_doubt", "not_tested", "no_breach", "confirmed"}
        "broken" after an alarm, "confirmed" where the upper end of `interval` keeps the target, and
        else that of :func:`~skselect.check_policy` on the outcomes so far. A weight or a cost is
        counted by a coin.
    detectable : float
        The least true risk that would have been "in_doubt" with probability 0.95; nan where none.
    since : str
        When it was certified, and by how many rows; "" where no certificate guarantees it.
    group : label or tuple of labels
        The subgroup, "all" where the guarantee is about all cases.
    target, delta : float
        The largest risk, and the chance of a false alarm, however long it runs.
    evidence : float
        That the risk is above the target: the wealth of the bets, 1 at the start. Where there are
        several guarantees, times the guarantee's share of the whole `delta`: all have one alarm
        line.
    alarm_line : float
        Evidence at which there is an alarm: 1 / the sum of `delta` over all guarantees.
    alarm_at : int or None
        The alarm came with this case, counted from 1 among those with a known outcome.
    alarm_when : str, float or None
        When that case was decided.
    n_known : int
        Cases whose outcome has entered.
    estimate : float
        Their mean loss; nan if there are none.
    interval : tuple of float
        For the mean risk over these cases, at the level 1 - `delta`, at all times at once.
    """

    verdict: str
    detectable: float
    since: str
    group: Any
    target: float
    delta: float
    evidence: float
    alarm_line: float
    alarm_at: int | None
    alarm_when: Any
    n_known: int
    estimate: float
    interval: tuple[float, float]

    def __repr__(self) -> str:
        return (
            f"<GuaranteeStatus: {self.verdict}; target {self.target:g}, estimate "
            f"{self.estimate:.4g}>"
        )

    @property
    def risk(self) -> str:
        """The answer: "ok" or "alarm"."""
        return "ok" if self.alarm_at is None else "alarm"


@dataclass(frozen=True)
class MonitorStatus(NotebookText):
    """What a monitor knows: print it.

    `risk`, `evidence`, `alarm_at`, `alarm_when`, `estimate` and `interval` are those of the
    guarantee with the most evidence against it; see :class:`GuaranteeStatus`.

    Parameters
    ----------
    guarantees : tuple of GuaranteeStatus
        One, or one per subgroup.
    by : str or None
        What the subgroups are called; None where the guarantee is about all cases.
    loss : {"zero_one", "cost"}
        What is watched: the share of errors among accepted cases, or their mean cost.
    latest_risk : float
        Mean loss of the latest cases with a known outcome (nan if there are none).
    n_latest : int
        How many these are: some batches.
    n_decided, n_accepted, n_known : int
        Cases; those that were answered; those among them whose outcome has entered.
    n_waiting : int
        Answered cases that have not entered: they, or cases decided before them, have no label.
    n_blocked : int
        Those among them that have a label.
    blocked_by : str or None
        The name of the oldest case without a label behind which they wait.
    n_overdue : int
        Those among them without a label that are older than `label_delay`.
    overdue : tuple of str
        The names of the oldest of these, five at most.
    unlabelled : {"wait", "correct"}
        What becomes of them.
    waiting_since : str, float or None
        When the oldest of them was decided.
    n_unlabelled : int
        Cases that counted as correct because no label came.
    n_other : int
        Labels that did not count, of cases that did not wait: deferred, not drawn, entered
        before (because the label came too late, for instance), or unknown.
    coverage : float
        Share of answered cases in the latest batches (nan if there are none).
    coverage_then : float or None
        That on the rows that tuned the policy.
    workload : {"ok", "changed", "unknown"}
        Whether coverage and confidences look as they did then: a warning, no statement on risk.
    workload_when : str, float or None
        When the change was noticed.
    """

    guarantees: tuple[GuaranteeStatus, ...]
    by: str | None
    loss: str
    latest_risk: float
    n_latest: int
    n_decided: int
    n_accepted: int
    n_known: int
    n_waiting: int
    n_blocked: int
    blocked_by: str | None
    n_overdue: int
    overdue: tuple[str, ...]
    unlabelled: str
    waiting_since: Any
    n_unlabelled: int
    n_other: int
    coverage: float
    coverage_then: float | None
    workload: str
    workload_when: Any

    def __repr__(self) -> str:
        return (
            f"<MonitorStatus: {self.verdict}; {self.n_known} known outcomes of {self.n_decided} "
            f"cases, {self.n_waiting} wait>"
        )

    @property
    def worst(self) -> GuaranteeStatus:
        """The guarantee with an alarm, else with the most evidence against it."""
        return max(self.guarantees, key=lambda each: (each.risk == "alarm", each.evidence))

    @property
    def verdict(self) -> str:
        """The first of the five words that one of the guarantees has."""
        verdicts = {each.verdict for each in self.guarantees}
        return next(verdict for verdict in VERDICTS if verdict in verdicts)

    @property
    def is_stuck(self) -> bool:
        """Whether overdue labels keep later cases from entering."""
        return self.n_overdue > 0 and self.unlabelled == "wait"

    @property
    def risk(self) -> str:
        """The answer: "ok" or "alarm"."""
        return self.worst.risk

    @property
    def evidence(self) -> float:
        """See :class:`GuaranteeStatus`, as for the next four."""
        return self.worst.evidence

    @property
    def alarm_at(self) -> int | None:
        """The case with which the alarm came."""
        return self.worst.alarm_at

    @property
    def alarm_when(self) -> Any:
        """When that case was decided."""
        return self.worst.alarm_when

    @property
    def estimate(self) -> float:
        """Mean loss."""
        return self.worst.estimate

    @property
    def interval(self) -> tuple[float, float]:
        """Interval for the mean risk."""
        return self.worst.interval

    @property
    def is_below_so_far(self) -> bool:
        """Whether the mean risk of the cases so far is shown to be below the target.

        That is where the upper end of `interval` lies below it. At the times at which the mean is
        not below, this is ever true with probability at most `delta` / 2 of the guarantee, however
        often you look. It says nothing about the risk now: good old cases outweigh bad new ones.
        False where cases counted as correct because no label came, since that can hide errors.
        """
        return not self.n_unlabelled and self.interval[1] < self.worst.target

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; undefined numbers become None."""
        answer = {
            "verdict": self.verdict,
            "risk": self.risk,
            "is_below_so_far": self.is_below_so_far,
        }
        stored = answer | asdict(self)
        stored["guarantees"] = [{"risk": each.risk, **asdict(each)} for each in self.guarantees]
        return replace_nan(stored) | {"text": str(self)}

    def __str__(self) -> str:
        return self.tell()

    def tell(self, instead: str = "") -> str:
        """Return the answer in words.

        Parameters
        ----------
        instead : str, default=""
            Why there is no verdict today, such as that the log has no new rows. It stands in the
            place of the verdict; an alarm is told below it.

        Returns
        -------
        str
        """
        answer = self._alarm(instead) if self.risk == "alarm" else self._answer(instead)
        lines = [answer, self._numbers(), self._labels(), self._workload()]
        text = "\n".join(line for line in lines if line)
        return wrap(text)

    def _repr_html_(self) -> str:
        return self.show(str(self))

    def show(self, text: str, tone: str = "") -> str:
        """Return an answer as HTML, with its numbers large; without a tone that of the verdict."""
        worst = self.worst
        guarantee = Risk(worst.target).on(self._loss)
        numbers = guarantee.limit("target", worst.estimate)
        line = rounded(worst.alarm_line, 4)
        numbers[f"evidence of a breach, alarm at {line}"] = _show_evidence(worst)
        if not tone:
            _, tone = VERDICTS[self.verdict]
            if self.is_stuck and self.risk == "ok":
                tone = "open"
        return show_card(text, tone, numbers)

    def _answer(self, instead: str) -> str:
        if self.is_stuck and not instead:
            have = "has" if self.n_overdue == 1 else "have"
            instead = f"CANNOT GO ON: {count(self.n_overdue, 'overdue case')} {have} no label."
        verdict = "" if instead else self.worst.verdict
        life = self._life(verdict)
        n = len(self.guarantees)
        if n > 1:
            word, _ = VERDICTS[self.verdict]
            start = instead or f"{word}."
            instead = f"{start} Of {n} guarantees, this one is closest to an alarm."
        return f"{instead} {life} No alarm so far.".lstrip()

    def _alarm(self, instead: str) -> str:
        worst = self.worst
        life = self._life()
        n_others = sum(each.risk == "alarm" for each in self.guarantees) - 1
        if n_others:
            life += f" There is an alarm for {count(n_others, 'more subgroup')}."
        often = percent(sum(each.delta for each in self.guarantees))
        return (
            f"{instead}\nALARM with case {worst.alarm_at} of known outcome (decided: "
            f"{worst.alarm_when}): the guarantee is broken. {life} Such a monitor "
            f"raises a false alarm in at most {often} of deployments, however long they run.\n"
            "What to do: defer more cases, or all; look for what has changed. Then certify the "
            "policy on fresh rows, or fit and certify a new one. Begin again with reset(), or with "
            "a new monitor for a new policy (in a terminal: name it, and a new --history file)."
        ).lstrip()

    def _life(self, verdict: str = "") -> str:
        worst = self.worst
        outcome = "no outcome is known yet"
        if worst.n_known:
            estimate = self._amount(worst.estimate)
            outcome = f"{estimate} in {count(worst.n_known, 'case')} of known outcome"
        cases = "" if self.by is None else f"of {self.by} {worst.group!r}"
        guarantee = Risk(worst.target).on(self._loss, cases)
        return guarantee.tell_life(worst.since, verdict, outcome, worst.detectable)

    @property
    def _loss(self) -> Loss:
        return Loss(self.loss)

    def _numbers(self) -> str:
        worst = self.worst
        if not worst.n_known:
            return ""
        low, high = worst.interval
        interval = f"{self._loss.amount(low, up=False)} to {self._loss.amount(high)}"
        if len(self.guarantees) == 1 and self.n_latest < self.n_known:
            latest = self._amount(self.latest_risk)
            interval += f"; of the latest {self.n_latest:,}: {latest}"
        below = ""
        if self.is_below_so_far and worst.risk == "ok":
            below = (
                f" With {percent(1 - worst.delta / 2)} confidence, however often you look, the "
                "mean risk so far is below the target; that says nothing about the risk now."
            )
        line = rounded(worst.alarm_line, 4)
        evidence = _show_evidence(worst)
        against = f"{evidence}; an alarm is raised at {line} and stays."
        if worst.risk == "alarm":
            against = f"it reached {line}, the alarm line, with that case; now it is {evidence}."
        return (
            f"Interval for the mean risk so far: {interval}.{below} Evidence against the "
            f"guarantee: {against}"
        )

    def _amount(self, value: float) -> str:
        amount = self._loss.amount(value, up=None)
        if self._loss.is_error:
            return f"{amount} wrong"
        return f"{amount} on average"

    def _labels(self) -> str:
        lines = []
        if self.n_waiting:
            since = self.waiting_since
            cases = count(self.n_waiting, "answered case")
            if self.n_waiting == 1:
                lines.append(f"{cases} is waiting, since {since}.")
            else:
                lines.append(f"{cases} are waiting, the oldest since {since}.")
        if self.n_blocked:
            wait = "has a label, but waits" if self.n_blocked == 1 else "have a label, but wait"
            lines.append(
                f"{self.n_blocked:,} of them {wait} behind case {self.blocked_by!r}, which has "
                "none."
            )
        if self.n_overdue:
            lines.append(self._overdue())
        if self.n_unlabelled:
            verb = "counts" if self.n_unlabelled == 1 else "count"
            cases = count(self.n_unlabelled, "case")
            lines.append(f"{cases} {verb} as correct because no label arrived.")
        if self.n_other:
            why = (
                "their cases do not wait, such as deferred ones, or they have names that nobody "
                "decided"
            )
            if self.n_other == 1:
                why = "its case does not wait, or nobody decided a case of this name"
            lines.append(f"{count(self.n_other, 'further label')} did not count: {why}.")
        return " ".join(lines)

    def _overdue(self) -> str:
        names = ", ".join(map(repr, self.overdue))
        cases = f"{count(self.n_overdue, 'case')}, such as {names}"
        they_count = "they count"
        earliest = "the first of them"
        if self.n_overdue == 1:
            cases = f"1 case, {names}"
            they_count = "it counts"
            earliest = "it"
        then = f"{they_count} as correct as soon as labels are complete up to now."
        if self.unlabelled == "wait":
            then = f"nothing decided after {earliest} counts until its label arrives."
        return f"Overdue without a label: {cases}: {then}"

    def _workload(self) -> str:
        if not self.n_decided:
            return ""
        text = f"The policy answers {percent(self.coverage)} of the latest cases"
        if self.by is not None:
            text += ", all subgroups together"
        if self.coverage_then is not None:
            text += f" ({percent(self.coverage_then)} when tuned)"
        if self.workload != "changed":
            return f"{text}."
        return (
            f"WARNING since {self.workload_when}: coverage or confidences are not what they "
            f"were when the policy was tuned. {text}. That says nothing about errors."
        )


# Evidence beyond so many times the alarm line says nothing more.
_ENOUGH = 1000


def _show_evidence(guarantee: GuaranteeStatus) -> str:
    """Return the evidence as text: no number is so large that nobody can read it."""
    most = _ENOUGH * guarantee.alarm_line
    if guarantee.evidence > most:
        return f"more than {most:,.0f}"
    if guarantee.evidence >= 1000:
        return f"{float(rounded(guarantee.evidence, 3)):,.0f}"
    return rounded(guarantee.evidence, 3)
