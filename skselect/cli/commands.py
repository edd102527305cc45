"""The commands ``skselect evaluate``, ``report``, ``tune``, ``apply`` and ``monitor``."""

from __future__ import annotations

import ast
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from skselect._lib import files
from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray
from skselect._lib.checks import warn_user
from skselect._lib.checks.options import check_count, check_number
from skselect._lib.checks.rows import refuse_threshold_and_policy
from skselect._lib.notebook import count, wrap
from skselect.cli import BROKEN, INFEASIBLE, OPEN, REFUSED, table_files, tables
from skselect.cli.cells import look_up, plain
from skselect.cli.idle import refuse_idle
from skselect.cli.options import (
    ApplyOptions,
    CsvLayout,
    EvaluateOptions,
    MonitorOptions,
    TuneOptions,
)
from skselect.cli.reading import PARQUET
from skselect.cli.table_files import TableFile
from skselect.cli.tables import Table, open_table
from skselect.policy import policy as policies
from skselect.policy.policy import AbstentionPolicy, External
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions, abstain_answers_of, cascade_of

if TYPE_CHECKING:
    from skselect.cli.freshness import Span
    from skselect.cli.log_cases import Cases
    from skselect.cli.runs import History
    from skselect.monitoring.monitor import SelectiveRiskMonitor
    from skselect.monitoring.status import MonitorStatus
    from skselect.policy.policy import Decisions
    from skselect.report.selective import SelectiveReport
    from skselect.selection.results import GroupedSelection, ThresholdSelection
    from skselect.thresholds import Shortlist

# A command imports what only it needs in its function: `apply` starts without reports and fitting.
# ruff: noqa: PLC0415

#: Stands between the labels of a shortlist in a table.
_SEPARATOR = "|"
#: The exit code of each answer to "is it still true?".
_EXIT_CODES = {
    "broken": BROKEN, "in_doubt": OPEN, "not_tested": OPEN, "no_breach": 0, "confirmed": 0,
}  # fmt: skip
_DAY = 86400e6  # in microseconds
#: So many cases are passed to a monitor at a time.
_PIECE = 1 << 18
#: Stands for standard input or output.
_STANDARD = Path("-")
#: Endings of the tables that are written.
_ENDINGS = (".csv", ".tsv", *PARQUET)


def evaluate(options: EvaluateOptions) -> int:
    """Report on a table, and whether a policy keeps its guarantee; return the exit code."""
    from skselect.report.data import check_case
    from skselect.report.render import render_text

    outputs = {"--html": options.html, "--csv": options.csv}
    _check_outputs([options.table, options.policy], outputs)
    policy = None
    if options.policy is not None:
        policy = _read_policy(options.policy)
        refuse_threshold_and_policy(options.threshold)
    table = open_table(options.table, options, policy)
    refuse_idle(options, table)
    predictions, groups = table.predictions()
    report = _report_on(table, predictions, groups, policy, options)
    if options.html is not None:
        report.to_html(options.html, interactive=True)
    if options.csv is not None:
        metrics = pa.Table.from_pandas(report.to_frame(), preserve_index=False)
        _write(metrics, options.csv, options.layout)
    if policy is not None:
        groups = _known_subgroups(policy, groups)
    check = check_case(report.cases[0], _subgroups(groups))
    _print(render_text(report.contents, brief=options.brief))
    written = [str(path) for path in outputs.values() if path is not None]
    if written:
        _print(f"\nWritten: {', '.join(written)}")
    if check is not None:
        return _EXIT_CODES[check.verdict]
    certificate = None if policy is None else policy.certificate
    return OPEN if certificate is not None and certificate.reads_reviewer else 0


def _report_on(
    table: Table,
    predictions: Predictions,
    groups: pd.DataFrame,
    policy: AbstentionPolicy | None,
    options: EvaluateOptions,
) -> SelectiveReport:
    """Return the report on the predictions of a table."""
    from skselect.report.selective import selective_report

    ids: Any = groups.index + 1
    features = None
    if options.id is not None:
        names = table.file.rows([options.id])[options.id]
        ids = plain(names).loc[groups.index]
    if options.features:
        cells = table.file.rows(options.features)
        features = cells.apply(plain).loc[groups.index]
    if policy is not None:
        groups = _known_subgroups(policy, groups)
    reviewing = None
    if options.reviewing:
        reviewing = dict(options.reviewing)
    with files.waiting_line("computing the report", len(predictions)):
        return selective_report(
            predictions,
            policy=policy,
            threshold=options.threshold,
            ids=ids,
            features=features,
            audits=options.audits,
            reviewing=reviewing,
            subgroups=_subgroups(groups),
            title=options.title or table.name,
        )


def report(options: EvaluateOptions) -> int:
    """Write the page of a report, and print the short form; return the exit code."""
    return evaluate(replace(options, brief=True))


# Tuning -------------------------------------------------------------------------------------------


def tune(options: TuneOptions) -> int:
    """Choose a threshold, write the policy; return the exit code."""
    outputs = _name_outputs(options)
    _check_outputs(options.table, outputs)
    table = open_table(options.table[0], options)
    _refuse_misplaced_options(options, table)
    refuse_idle(options, table)
    selection, policy, rows = _choose(table, options)
    to_judge = None
    if options.next is not None:
        positions = selection.next_to_judge(options.next)
        to_judge = table.file.cells().take(rows[positions].to_numpy())
    certified_path = _keep_certified(policy, outputs)
    written = _write_results(policy, to_judge, outputs, table.file.layout)
    with redirect_stdout(sys.stderr if options.out == _STANDARD else sys.stdout):
        _print(selection)
        if policy.cascade is not None:
            _print(f"\n{wrap(str(policy.cascade))}")
        if options.unjudged is not None and not len(selection.next_to_judge(1)):
            _print("\nNo further label can raise the coverage: stop judging.")
        if written:
            _print(f"\nWritten: {', '.join(written)}")
        if certified_path:
            _print(f"\nKept: {certified_path} is certified, and a refusal replaces no certificate.")
    if certified_path:
        return INFEASIBLE
    for certificate in selection.certificates.values():
        if certificate is not None and not certificate.is_certified:
            return OPEN
    return 0


def _name_outputs(options: TuneOptions) -> dict[str, Path | None]:
    """Return the files that `tune` writes, by the options that name them."""
    outputs = {
        "--out": _named_or_new("--out", options.out, "policy.json"),
        "--python": options.python,
    }
    if options.next is not None:
        outputs["--out-next"] = _named_or_new("--out-next", options.out_next, "next.csv")
    return outputs


def _keep_certified(policy: AbstentionPolicy, outputs: dict[str, Path | None]) -> str:
    """Leave out the files of a refused policy where a certified one stands; name what is kept."""
    path = outputs["--out"]
    if not _is_refused(policy) or path is None or not path.is_file():
        return ""
    try:
        standing = AbstentionPolicy.from_json(path)
    except ValueError:
        # No policy stands there.
        return ""
    if not any(certificate.is_certified for certificate in standing.parts.listed):
        return ""
    outputs["--out"] = None
    outputs["--python"] = None
    return str(path)


def _is_refused(policy: AbstentionPolicy) -> bool:
    """Tell whether a policy answers nothing because no threshold met its target."""
    listed = policy.parts.listed
    return bool(listed) and all(certificate.verdict == "REFUSED" for certificate in listed)


def _choose(
    table: Table, options: TuneOptions
) -> tuple[ThresholdSelection | GroupedSelection, AbstentionPolicy, pd.Index]:
    """Return the threshold for the objective of the options, its policy, and which rows count."""
    from skselect.selection.results import make_policy
    from skselect.selection.select import select_threshold

    objective = _read_objective(options)
    shortlist = _read_shortlist(options)
    confidence = None
    if table.proba:
        confidence = options.confidence or "max_proba"
    predictions, groups = _read_certifying(table, options, objective)
    subgroups = _subgroups(groups)
    outcomes = Outcomes.from_predictions(predictions, confidence=confidence)
    with files.waiting_line("choosing a threshold", len(predictions)):
        selection = select_threshold(
            predictions,
            objective=objective,
            subgroups=subgroups,
            confidence=confidence,
            shortlist=shortlist,
            assume=options.assume,
            random_state=options.seed or 0,
        )
    policy = make_policy(
        selection,
        outcomes,
        selection.accepts(outcomes.confidence, subgroups),
        classes=table.classes,
        confidence=confidence or External(str(table.confidence)),
        cascade=cascade_of(predictions),
        abstain_answers=abstain_answers_of(predictions),
        metadata={tables.COLUMNS: table.stored},
    )
    return selection, policy, groups.index


def _write_results(
    policy: AbstentionPolicy,
    to_judge: pa.Table | None,
    outputs: Mapping[str, Path | None],
    layout: CsvLayout,
) -> list[str]:
    """Write the rows to judge next, then the policy; return what is written."""
    texts = {}
    for option, path in outputs.items():
        if path is None:
            continue
        if option == "--out" and path == _STANDARD:
            _print(policy.to_json(allow_external=True))
        elif option == "--out":
            texts[path] = f"{policy.to_json(allow_external=True)}\n"
        elif option == "--python":
            texts[path] = str(policy.to_python())
    written = [str(path) for option, path in outputs.items() if option != "--out-next" and path]
    if to_judge is not None:
        out_next = outputs["--out-next"]
        _write(to_judge, out_next, layout)
        written.append(f"{out_next} ({count(len(to_judge), 'row')} to judge)")
    files.write_together(texts)
    return written


def _read_certifying(
    table: Table, options: TuneOptions, objective: Any
) -> tuple[Predictions, pd.DataFrame]:
    """Return the rows that certify, and their subgroups."""
    from skselect.objectives import Risk

    if len(options.table) == 1:
        return table.predictions(defers=True)
    target = objective.target if isinstance(objective, Risk) else None
    return _join_tables(table, options, target)


def _read_shortlist(options: TuneOptions) -> Shortlist | None:
    """Return how the probable classes of deferred rows are chosen, if they are."""
    from skselect.thresholds import Shortlist

    if options.shortlist is None:
        return None
    level, *shares = options.shortlist
    share = shares[0] if shares else 0.0
    return Shortlist(level, share, random_state=options.seed)


def _read_objective(options: TuneOptions) -> Any:
    """Return the objective that the options state, or several as a list."""
    from skselect.objectives import name_options

    largest_weight = _largest_weight(options)
    overall_error: Any = options.overall_error
    if overall_error is not None:
        overall_error = tuple(overall_error)
        if len(overall_error) == 1:
            overall_error = overall_error[0]
    words = options.objective or ["risk"]
    targets: Sequence[float | None] = options.target or [None]
    if len(words) != len(targets):
        raise ValueError("--target: give one for each --objective.")
    objectives = []
    for word, target in zip(words, targets, strict=True):
        objective = name_options(
            word,
            target,
            delta=options.delta,
            max_analyses=options.max_analyses,
            method=options.method,
            min_coverage=options.min_coverage,
            threshold_range=options.threshold_range,
            reviewer=options.reviewer,
            deferred_error=options.deferred_error,
            largest_weight=largest_weight,
            overall_error=overall_error,
        )
        objectives.append(objective)
    return objectives[0] if len(objectives) == 1 else objectives


def _largest_weight(options: TuneOptions) -> float | None:
    """Return the limit of the weights of rows that were drawn with different probabilities."""
    smallest = options.min_audit_proba
    if options.audit_proba is None and smallest is None:
        return None
    if options.audit_proba is None or smallest is None or options.verdict is None:
        raise ValueError(
            "--audit-proba goes with --verdict and --min-audit-proba, the smallest of these "
            "probabilities."
        )
    return 1.0 / check_number("--min-audit-proba", smallest, 0.0, 1.0, closed="right")


def _refuse_misplaced_options(options: TuneOptions, table: Table) -> None:
    """Refuse options of `tune` that do not go with the table."""
    is_cascade = len(options.table) > 1
    if not is_cascade:
        if options.costs is not None or options.max_loss is not None:
            raise ValueError(
                "--costs and --max-loss go with several tables, the stages of a cascade."
            )
        if options.id is not None:
            _read_ids(table, options.id)
    if options.unjudged is not None and (is_cascade or options.audit_proba is not None):
        raise ValueError("--unjudged goes with one table, and without --audit-proba.")
    if options.next is not None:
        if options.unjudged is None:
            raise ValueError("--next goes with --unjudged wrong.")
        check_count("--next", options.next)
    if options.label in table.subgroups:
        raise ValueError(
            f"--subgroups: {options.label!r} is the true label, which nobody knows when the policy "
            "decides. For a guarantee about the rows of one true class, in Python: "
            "select_threshold(..., objective=GeneralizedRisk(0.01, given_class=...))."
        )
    if options.shortlist is not None:
        if not table.proba:
            raise ValueError("--shortlist goes with --proba: it is made of the probabilities.")
        if len(options.shortlist) > 2:
            raise ValueError(
                f"--shortlist takes a level and perhaps a share, got {options.shortlist}."
            )
        _refuse_unclear_lists(table.classes, "--shortlist")


# Applying -----------------------------------------------------------------------------------------


def apply(options: ApplyOptions) -> int:
    """Decide every row of a table; return the exit code."""
    inputs = [*options.table, options.policy, options.python]
    _check_outputs(inputs, {"--out": options.out, "--ask": options.ask})
    if options.out is not None:
        _check_ending(options.out)
    policy = _read_policy(options.policy)
    if _is_refused(policy):
        print(
            f"REFUSED: {options.policy} answers nothing, because no threshold met its target.",
            file=sys.stderr,
        )
    if options.python is not None:
        _check_twin(options.python, options.policy)
    table = open_table(options.table[0], options, policy)
    refuse_idle(options, table)
    rows = table.file.rows([*table.used, options.id])
    stage_scores = None
    if _follows(policy, table, options):
        stage_scores, waiting = _ask_stages(policy, table, options, rows)
        if options.ask is not None:
            listed = pa.Table.from_pandas(waiting, preserve_index=False)
            _write(listed, options.ask, table.file.layout)
        if len(waiting):
            return _say_who_waits(waiting, options)
    decided, confidence = _decide(policy, table, rows, stage_scores, options.capacity)
    _write_decisions(decided.add_prefix(options.prefix), table, options)
    _warn_of_unlike(policy, table, confidence)
    _say_how_many(decided["accepted"])
    if _is_refused(policy):
        return REFUSED
    return 0


def _warn_of_unlike(policy: AbstentionPolicy, table: Table, confidence: FloatArray) -> None:
    """Warn where rows have other confidences than those that tuned the policy."""
    numbers = "--proba"
    if not table.proba:
        numbers = "confidence"
        policies.warn_of_scale(policy, confidence)
    counts = policies.count_at_quantiles(policy, confidence)
    policies.warn_if_far(policy, counts, len(confidence), numbers)


def _say_how_many(accepted: pd.Series) -> None:
    """Say how many rows are answered and deferred."""
    n = len(accepted)
    n_accepted = int(accepted.sum())
    print(
        f"{count(n, 'row')}: {n_accepted:,} answered ({100 * accepted.mean():.1f} %), "
        f"{n - n_accepted:,} deferred.",
        file=sys.stderr,
    )


def _check_ending(out: Path) -> None:
    """Refuse a name that does not say what is written."""
    if out.suffix.lower() not in ("", *_ENDINGS):
        endings = " or ".join(_ENDINGS)
        raise ValueError(
            f"--out: the ending of {out.name!r} says what is written; choose a name that "
            f"ends in {endings}."
        )


def _write_decisions(decided: pd.DataFrame, table: Table, options: ApplyOptions) -> None:
    """Write the table with its decisions, without the probabilities."""
    cells = table.file.cells(name for name in table.file.types if name not in table.proba)
    taken = [name for name in decided.columns if name in cells.column_names]
    if taken:
        raise ValueError(
            f"The table has columns {taken} already; choose other names for the new ones, such as "
            "--prefix gate_."
        )
    columns = {name: cells[name] for name in cells.column_names}
    for name in decided:
        columns[name] = pa.array(decided[name], from_pandas=True)
    decisions = pa.table(columns, metadata=cells.schema.metadata)
    _write(decisions, options.out, table.file.layout)


# Watching -----------------------------------------------------------------------------------------


def monitor(options: MonitorOptions, clock: Callable[[], float] = time.time) -> int:
    """Compute from the whole log whether the guarantee is kept; return the exit code.

    `clock` returns the seconds since 1970.
    """
    from skselect.cli.freshness import check_length, find_span
    from skselect.cli.log_cases import find_cases
    from skselect.monitoring.monitor import SelectiveRiskMonitor

    outputs = {"--history": options.history, "--html": options.html}
    _check_outputs([*options.table, options.policy], outputs)
    policy = _read_policy(options.policy)
    digest = _digest(options.policy, policy)
    runs, trouble = _read_runs(options.history, digest)
    watched = SelectiveRiskMonitor(
        policy,
        target=options.target,
        delta=options.delta,
        label_delay=options.label_delay,
        unlabelled=options.unlabelled,
        min_audit_proba=options.min_audit_proba,
        batch=options.batch,
        other_labels=options.other_labels,
    )
    log = _read_log(options, policy)
    check_length("--label-delay", options.label_delay, log.kind)
    span = find_span(options, policy, log.rows["when"].to_numpy(), log.kind, clock)
    cases = find_cases(log.rows, span.since, log.kind, options.batch)
    status = _watch(watched, log, cases.table, span)
    run = _describe_run(digest, span, len(cases.table), status)
    answer = _answer(options, log, span, cases, status, runs, run)
    # An alarm is told whatever becomes of the files.
    _print(answer.text)
    if len(cases.table):
        _print_batches(watched)
    sys.stdout.flush()
    if trouble is None:
        trouble = _append_run(runs, run | {"answer": answer.word})
    if trouble is None:
        trouble = _write_page(watched, status.show(answer.text, answer.tone), options.html)
    if trouble is not None:
        if answer.code != BROKEN:
            raise ValueError(trouble)
        warn_user(trouble)
    return answer.code


def _print_batches(watched: SelectiveRiskMonitor) -> None:
    """Print a table of days, weeks or months."""
    if watched.has_calendar:
        _print(f"\n{watched.table()}")
        _print(wrap("At most: an upper bound of each row by itself."))


def _write_page(watched: SelectiveRiskMonitor, card: str, path: Path | None) -> str | None:
    """Write the answer as a web page; return why it cannot be written, None where it can."""
    from skselect.cli.monitor_page import write_page

    if path is None:
        return None
    try:
        write_page(watched, card, path)
    except OSError as error:
        return f"--html: {path}: {error.strerror}."
    return None


class _Log(NamedTuple):
    """What the files of a log hold: their columns, all rows, and of which kind the times are."""

    table: Table
    rows: pd.DataFrame
    kind: str


class _Answer(NamedTuple):
    """The answer of a run: in a word for the history, as text, and as exit code."""

    word: str
    text: str
    code: int

    @property
    def tone(self) -> str:
        """The colour of a page; "" for that of the verdict."""
        if self.code == BROKEN:
            return "bad"
        return "open" if self.code == OPEN else ""


def _read_runs(path: Path | None, digest: str) -> tuple[History | None, str | None]:
    """Return the runs before this one, and why they cannot be read, None where they can."""
    from skselect.cli.runs import History

    if path is None:
        return None, None
    try:
        runs = History.read(path)
    except OSError as error:
        return History(path), _tell_unwritten(path, error)
    runs.refuse_other_policy(digest)
    return runs, None


def _tell_unwritten(history: Path, error: OSError) -> str:
    return f"--history: {history}: {error.strerror}. This run does not stand in it."


def _digest(path: Path, policy: AbstentionPolicy) -> str:
    """Return a digest that tells policies apart: that of the file, which a later version keeps."""
    if path.is_file():
        return files.digest_json(path.read_text(encoding="utf-8"))[:16]
    return files.digest_json(policy.to_dict(allow_external=True))[:16]


def _append_run(runs: History | None, run: Mapping[str, str]) -> str | None:
    """Add a run to the history; return why it cannot be added, None where it can."""
    if runs is None:
        return None
    try:
        runs.append(run)
    except OSError as error:
        return _tell_unwritten(runs.path, error)
    return None


def _describe_run(digest: str, span: Span, n_cases: int, status: MonitorStatus) -> dict[str, str]:
    """Return what a history keeps of a run, but for its answer."""
    from skselect.monitoring.log import show_time

    now, _, _ = str(show_time(span.now, span.kind)).partition(".")
    alarm_when = "" if status.alarm_when is None else str(status.alarm_when)
    targets = dict.fromkeys(f"{each.target:g}" for each in status.guarantees)
    return {
        "run": now,
        "since": span.start,
        "cases": str(n_cases),
        "known": str(status.n_known),
        "evidence": str(status.evidence),
        "alarm_line": str(status.worst.alarm_line),
        "alarm_when": alarm_when,
        "policy": digest,
        "target": " ".join(targets),
    }


def _answer(
    options: MonitorOptions,
    log: _Log,
    span: Span,
    cases: Cases,
    status: MonitorStatus,
    runs: History | None,
    run: Mapping[str, str],
) -> _Answer:
    """Return what a run says: an alarm first, then why there is no verdict."""
    from skselect.cli.freshness import tell_no_clock

    reasons = _find_reasons(options, log, span, cases, runs, run)
    instead = "\n".join(reasons.values())
    word = "ok"
    if status.risk == "alarm":
        word = "alarm"
    elif reasons:
        word = next(iter(reasons))
    elif status.is_stuck:
        word = "overdue"
    code = 0 if word == "ok" else OPEN
    verdict = status.tell(instead)
    past_alarm = None if runs is None else runs.alarm
    if word == "alarm":
        code = BROKEN
    elif past_alarm is not None:
        code = BROKEN
        verdict = status.tell(_recall(past_alarm, options.history, instead))
    counted = _say_what_counts(len(cases.table), span, cases.remarks)
    no_clock = tell_no_clock(span, options.max_age)
    if no_clock:
        counted = f"{counted}\n{wrap(no_clock)}"
    if len(cases.table) == 0 and code != BROKEN:  # the counts say first why nothing is known
        return _Answer(word, f"{counted}\n{verdict}", code)
    return _Answer(word, f"{verdict}\n\n{counted}", code)


def _find_reasons(
    options: MonitorOptions,
    log: _Log,
    span: Span,
    cases: Cases,
    runs: History | None,
    run: Mapping[str, str],
) -> dict[str, str]:
    """Return why there is no verdict, by the words that a history has for it."""
    from skselect.cli.freshness import find_stale

    reasons = {}
    stale = find_stale(log.rows, span, options.max_age)
    if stale:
        reasons["stale"] = stale
    if cases.lost:
        reasons["unmatched"] = f"LABELS WITHOUT DECISIONS: {cases.lost} {_LOST}"
    changes = [] if runs is None else runs.find_changes(run)
    if changes:
        told = "; ".join(changes)
        reasons["changed"] = f"THE HISTORY DOES NOT GO ON: in {options.history} {told}. {_CHANGED}"
    return reasons


_LOST = (
    "Labels find their decisions by the name, or by name and time where a name comes back; "
    "capitals and blanks count. What follows leaves these labels out."
)
_CHANGED = (
    "A guarantee is about one beginning, one target and a whole log; begin with a new --history "
    "file where the change is meant."
)


def _watch(
    watched: SelectiveRiskMonitor, log: _Log, cases: pd.DataFrame, span: Span
) -> MonitorStatus:
    """Tell a new monitor the cases in their order, and return what it knows at a time."""
    from skselect.monitoring.log import to_dates

    as_times: Callable[[Any], Any] = to_dates if log.kind == "time" else np.asarray
    with files.waiting_line("comparing decisions with labels", len(log.rows)):
        for start in range(0, len(cases), _PIECE):
            _tell_cases(watched, log, cases[start : start + _PIECE], start, as_times)
        [asked_at] = as_times([span.until])
        status = watched.add_labels([], [], when=asked_at).status_
    names = log.rows["id"].iloc[cases["row"]]
    overdue = tuple(names.iloc[int(case)] for case in status.overdue)
    blocked_by = status.blocked_by
    if blocked_by:
        blocked_by = names.iloc[int(blocked_by)]
    return replace(status, overdue=overdue, blocked_by=blocked_by)


def _tell_cases(
    watched: SelectiveRiskMonitor,
    log: _Log,
    cases: pd.DataFrame,
    start: int,
    as_times: Callable[[Any], Any],
) -> None:
    """Tell a monitor some cases, the first of which has the number `start`."""
    # A name may come back at another time; the number of a case does not.
    ids = [str(number) for number in range(start, start + len(cases))]
    decided = log.rows.iloc[cases["row"]]
    labels = np.array([*log.table.classes.tolist(), _other_label(log.table), None], dtype=object)
    proba_columns = [name for name in decided if isinstance(name, int)]
    proba = decided[proba_columns].to_numpy() if proba_columns else None
    groups = decided.filter(like="subgroup ").set_axis(list(log.table.subgroups), axis=1)
    others = decided.columns.intersection(["y_pred", "confidence", "audited", "audit_proba"])
    watched.update(
        labels[cases["label"].to_numpy()],
        proba,
        ids=ids,
        when=as_times(decided["when"].to_numpy()),
        subgroups=_subgroups(groups),
        **{name: decided[name].infer_objects().to_numpy() for name in others},
    )


def _other_label(table: Table) -> Any:
    """Return a label that is none of the classes, but of their kind."""
    classes = table.classes
    if classes.dtype.kind == "U":
        return f"not {max(classes.tolist(), key=len)}"
    return classes.max().item() + 1


def _say_what_counts(n_cases: int, span: Span, remarks: Sequence[str]) -> str:
    """Say how many cases count, since when, and what is odd in the log."""
    start = span.start
    if span.is_from_policy:
        start += " (when the policy was made)"
    sentences = [f"Counted: {count(n_cases, 'case')} since {start}."]
    if remarks:
        sentences += ["Seen:", *remarks]
    return wrap(" ".join(sentences))


def _recall(run: Mapping[str, str], history: Path | None, instead: str) -> str:
    """Say that an earlier run raised an alarm, and that the log of today raises none."""
    return (
        f"ALARM on {run['run']}, in {history}: the guarantee was broken with a case of "
        f"{run['alarm_when']}. The log of today raises none: labels were corrected, or rows "
        "have changed. An alarm in the history stays; find out which of the two logs is true, "
        f"and begin with a new --history file. {instead or 'What follows is that of today.'}"
    )


def _read_log(options: MonitorOptions, policy: AbstentionPolicy) -> _Log:
    """Read the files of a log."""
    first_path, *later_paths = options.table
    table = open_table(first_path, options, policy)
    refuse_idle(options, table)
    rows, kind = _read_rows(table, options, policy)
    parts = [rows]
    kinds = {kind}
    for path in later_paths:
        later = replace(table, file=TableFile.open(path, options.layout))
        rows, kind = _read_rows(later, options, policy)
        parts.append(rows)
        kinds.add(kind)
    if len(kinds) > 1:
        raise ValueError("--time: one file holds dates in this column, another one numbers.")
    return _Log(table, pd.concat(parts, ignore_index=True), kind)


def _read_rows(
    table: Table, options: MonitorOptions, policy: AbstentionPolicy
) -> tuple[pd.DataFrame, str]:
    """Return the rows of a file, with columns of fixed names, and which kind of times they have.

    `is decided` tells the rows that hold a decision, `brings label` those that bring the label of
    a case that another row decided.
    """
    file = table.file
    id_column = options.id or "id"
    if id_column not in file.types and options.id is None:
        raise ValueError(
            f"--id: {table.name} has no column 'id'; name the column of the cases' names."
        )
    cells = file.rows([id_column, options.time, *table.used, options.audited])
    when, kind = file.times(cells[options.time], options.time_format, dayfirst=options.dayfirst)
    numbers, is_decided = table.numbers(cells)
    rows = _known_subgroups(policy, cells[list(table.subgroups)]).add_prefix("subgroup ")
    rows["when"] = when
    rows["id"] = _as_column(file.names(cells[id_column]), cells.index)
    codes = _read_labels(table, cells[str(table.label)], options)
    rows["label"] = codes.astype(np.int32)
    if table.proba:
        rows[list(range(numbers.shape[1]))] = numbers
    else:
        answers = table.known_codes(cells[str(table.answer)])
        is_decided &= table.answered(cells)
        rows["y_pred"] = table.classes[answers]
        rows["confidence"] = numbers[:, 0]
    rows["is decided"] = is_decided
    has_label = codes >= 0
    # Where labels stand beside decisions, a row with a label alone is a case nobody decided.
    rows["brings label"] = has_label & ~is_decided & ~np.any(has_label & is_decided)
    decided = cells[is_decided]
    if options.audited is not None:
        rows["audited"] = pd.Series(file.booleans(decided[options.audited]), decided.index)
    if options.audit_proba is not None:
        numbers = file.numbers(decided[options.audit_proba])
        rows["audit_proba"] = pd.Series(numbers, decided.index)
    return rows, kind


def _read_labels(table: Table, labels: pd.Series, options: MonitorOptions) -> IntArray:
    """Return the class of each label, -1 where it is missing; one after the last may be any."""
    if options.other_labels != "wrong":
        return table.known_codes(labels)
    codes = table.codes(labels)
    return np.where(codes < -1, len(table.classes), codes)


def _as_column(names: Any, index: pd.Index) -> pd.Series:
    """Return text in Arrow as a column."""
    return pd.Series(names, index, pd.ArrowDtype(pa.large_string()))


# Files --------------------------------------------------------------------------------------------


def _named_or_new(option: str, named: Path | None, default: str) -> Path:
    """Return the file that an option names, else the default one, which must not exist yet."""
    if named is not None:
        return named
    if Path(default).exists():
        raise ValueError(
            f"{option}: there is a file {default!r} already. Name another one, or, to replace it, "
            f"name it: {option} {default}."
        )
    return Path(default)


def _check_outputs(inputs: Sequence[Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Refuse the files of options that cannot be written, or that are used twice."""
    if list(inputs).count(_STANDARD) > 1:
        raise ValueError("-: standard input can be read once; name a file.")
    taken = {os.path.realpath(path) for path in inputs if path not in (None, _STANDARD)}
    for option, path in outputs.items():
        if path is None or (path == _STANDARD and option == "--out"):
            continue
        if path == _STANDARD:
            raise ValueError(f"{option}: name a file; only --out may be -, standard output.")
        if not (option == "--history" and path.is_file()):  # to which a line is added
            files.check_output(path, option)
        real_path = os.path.realpath(path)
        if real_path in taken:
            raise ValueError(
                f"{option}: {str(path)!r} is read or written by this command already; choose "
                "another name."
            )
        taken.add(real_path)


def _read_policy(path: Path) -> AbstentionPolicy:
    """Read a policy that a command can follow."""
    source: str | Path = path
    if path == _STANDARD:
        source = sys.stdin.read() if sys.stdin is not None else ""
    elif not path.exists():
        raise ValueError(f"--policy: there is no file {str(path)!r}.")
    try:
        policy = AbstentionPolicy.from_json(source)
    except ValueError as error:
        raise ValueError(f"--policy: {path.name}: {error}") from error
    if policy.cascade is not None and isinstance(policy.confidence, External):
        raise ValueError(
            "--policy: it is a cascade of answers that come with a confidence, which no command "
            "reads; call policy.begin and policy.decide in Python."
        )
    return policy


def _check_twin(gate: Path, policy: Path) -> None:
    """Refuse a Python file that does not hold the policy of the policy file."""
    if policy == _STANDARD:
        raise ValueError("--python goes with a policy file, not with standard input.")
    if not gate.is_file():
        raise ValueError(f"--python: there is no file {str(gate)!r}.")
    if _read_gate(gate) != files.read_json(policy, "policy file"):
        raise ValueError(
            f"--python: {gate.name} is not the Python file of {policy.name}, for it holds another "
            "policy, or none; write both again, with skselect tune --python or policy.to_python."
        )


def _read_gate(gate: Path) -> Any:
    """Return the policy that a Python file holds, None if it holds none; the file is not run."""
    with suppress(SyntaxError, ValueError, TypeError, LookupError, RecursionError):
        values = {}
        for statement in ast.parse(gate.read_bytes()).body:
            if isinstance(statement, ast.Assign):
                values[ast.unparse(statement.targets[0])] = statement.value
        return ast.literal_eval(values["POLICY"])
    return None


def _print(*texts: object, sep: str = " ") -> None:
    """Print for a reader who may have closed the pipe, such as `head`; the exit code stays."""
    with suppress(BrokenPipeError):
        print(*texts, sep=sep)


def _write(cells: pa.Table, out: Path | None, layout: CsvLayout) -> None:
    """Write a whole table as the ending says, as CSV to standard output if there is no file."""
    if out is None or out == _STANDARD:
        if isinstance(sys.stdout, TextIOWrapper):  # no letter and no line end is translated
            sys.stdout.reconfigure(encoding=layout.encoding, errors="strict", newline="")
        _write_csv(cells, sys.stdout, Path(), layout)
        return
    with files.whole_file(out) as part:
        if out.suffix.lower() in PARQUET:
            pq.write_table(cells, part)
            return
        with part.open("w", encoding=layout.encoding, newline="") as file:
            _write_csv(cells, file, out, layout)


def _write_csv(cells: pa.Table, file: TextIO, path: Path, layout: CsvLayout) -> None:
    """Write a table as CSV to an open file of that name."""
    try:
        separator = layout.between(path)
        table_files.write_csv(cells, file, separator, layout.decimal, layout.newline)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"--encoding: {layout.encoding} has no sign for {error.object[error.start]!r}, "
            "which the table contains."
        ) from error
    file.flush()


# Cascades -----------------------------------------------------------------------------------------


@dataclass
class _StageScores:
    """What the stages of a cascade say, and which cases lack no number."""

    proba: dict[str, FloatArray]
    is_complete: BoolArray

    @classmethod
    def before(cls, stages: Sequence[str], n_rows: int, n_columns: int) -> _StageScores:
        """Return what is known before any stage is asked."""
        proba = {}
        for stage in stages:
            proba[stage] = np.full((n_rows, n_columns), np.nan)
        return cls(proba, np.full(n_rows, True))

    def hear(
        self, stage: str, asks: BoolArray, numbers: FloatArray, lacks_number: BoolArray
    ) -> None:
        """Add what a stage says of the cases that ask it."""
        self.is_complete &= ~(asks & lacks_number)
        is_read = asks & self.is_complete
        self.proba[stage][is_read] = numbers[is_read]

    def fill(self, value: float) -> None:
        """Give rows that lack a number a placeholder: they are deferred."""
        for proba in self.proba.values():
            proba[~self.is_complete] = value


def _stage(path: Path) -> str:
    """Return the stage that a table names: the file without its endings."""
    if path.suffix in (".gz", ".bz2", ".zst"):
        path = Path(path.stem)
    return path.stem


def _join_tables(
    table: Table, options: TuneOptions, target: float | None
) -> tuple[Predictions, pd.DataFrame]:
    """Return what the stages together say of the certifying cases, and their subgroups."""
    from skselect.extras.join import certifying, join_stages

    if not table.proba:
        raise ValueError(
            "Several tables are the stages of a cascade, and tune reads their probabilities, "
            "--proba. For answers with a confidence call join_stages in Python."
        )
    names = [_stage(path) for path in options.table]
    if len(set(names)) < len(names):
        raise ValueError(
            f"TABLE: several tables have one name among {names}, and their names are those of the "
            "stages; rename the files."
        )
    predictions, groups = table.predictions()
    ids = _read_ids(table, options.id)
    stages = {names[0]: predictions}
    of_stage = replace(table, subgroups=(), reviewer=None)
    for name, path in zip(names[1:], options.table[1:], strict=True):
        later = replace(of_stage, file=TableFile.open(path, options.layout))
        stages[name] = _take_stage(later, options.id, table.name, ids, predictions.y_true)
    limits = {}
    if options.max_loss is not None:
        limits["max_loss"] = options.max_loss
    joined = join_stages(stages, target=target, costs=options.costs, **limits)
    return joined, certifying(groups)


def _take_stage(
    later: Table, id_column: str | None, first_name: str, ids: pd.Index, truth: LabelArray
) -> Predictions:
    """Return what a later stage says of the cases of the first table, in its order."""
    predictions, _ = later.predictions()
    later_ids = _read_ids(later, id_column)
    both = f"{first_name} and {later.name}"
    only_in = {first_name: ids.difference(later_ids), later.name: later_ids.difference(ids)}
    for name, lost in only_in.items():
        if len(lost):
            raise ValueError(
                f"--id: of {both}, only {name} has {_name_some(lost)}; each table needs all cases."
            )
    predictions = predictions.take(later_ids.get_indexer(ids))
    differs = predictions.y_true != truth
    if differs.any():
        raise ValueError(f"--label: {both} differ for {_name_some(ids[differs])}.")
    return predictions


def _read_ids(table: Table, column: str | None, rows: pd.DataFrame | None = None) -> pd.Index:
    """Return the names of the cases, each of which has one row."""
    if column is None:
        raise ValueError(
            "--id is missing: name the column of the cases' names, which joins the tables of a "
            "cascade."
        )
    if rows is None:
        rows = table.file.rows([column])
    names = table.file.names(rows[column]).to_pylist()
    ids = pd.Index(names, dtype=object)
    if not ids.is_unique:
        repeated = ids[ids.duplicated()].unique()
        raise ValueError(
            f"--id: {table.name} has several rows for {_name_some(repeated)}; each case has one."
        )
    return ids


def _name_some(ids: Sequence[Any] | pd.Index) -> str:
    """Say how many cases there are, and the names of the first ones."""
    names = [repr(name) for name in ids[:3]]
    if len(ids) > 3:
        names.append("...")
    return f"{count(len(ids), 'case')} ({', '.join(names)})"


def _follows(policy: AbstentionPolicy, table: Table, options: ApplyOptions) -> bool:
    """Tell whether the tables are followed from stage to stage; refuse those that do not fit."""
    if policy.cascade is None or not table.proba:
        if len(options.table) > 1 or options.id is not None or options.ask is not None:
            raise ValueError(
                "--policy: several tables, --id and --ask go with the policy of a cascade and the "
                "probabilities of its stages."
            )
        return False
    stages = policy.cascade.names
    names = [_stage(path) for path in options.table]
    has_moved = False
    for name, stage in zip(names, stages, strict=False):
        has_moved = has_moved or (name in stages and name != stage)
    if len(names) > len(stages) or has_moved:
        raise ValueError(
            f"--policy: its stages are {list(stages)}; give a table of each, in this order, got "
            f"{[path.name for path in options.table]}."
        )
    return True


def _ask_stages(
    policy: AbstentionPolicy, table: Table, options: ApplyOptions, rows: pd.DataFrame
) -> tuple[_StageScores, pd.DataFrame]:
    """Follow the cases of the first table from stage to stage.

    Returns
    -------
    asked : _StageScores
    waiting : DataFrame
        The cases that must ask a stage whose table has no row of them, and that stage.
    """
    assert policy.cascade is not None
    names = policy.cascade.names
    ids = _read_ids(table, options.id, rows)
    stage_scores = _StageScores.before(names, len(ids), len(table.proba))
    stage = np.full(len(ids), names[0], object)
    for position, path in enumerate(options.table):
        name = names[position]
        asks = stage == name
        if not asks.any():
            break
        if position > 0:
            table = replace(table, file=TableFile.open(path, options.layout))
            rows = table.file.rows([options.id, *table.proba])
        stage_scores.hear(name, asks, *_align(table, options.id, rows, ids))
        stage = policy.begin({name: stage_scores.proba[name] for name in names[: position + 1]})
    waits = stage_scores.is_complete & pd.notna(stage)
    stage_scores.fill(1.0 / len(policy.classes))
    waiting = {str(options.id): ids[waits], "stage": stage[waits]}
    return stage_scores, pd.DataFrame(waiting)


def _align(
    table: Table, id_column: str | None, rows: pd.DataFrame, ids: pd.Index
) -> tuple[FloatArray, BoolArray]:
    """Return the numbers of cases, nan where the table has no row, and which rows lack one."""
    numbers, complete = table.numbers(rows)
    position = _read_ids(table, id_column, rows).get_indexer(ids)
    has_row = position >= 0
    numbers = numbers[position]
    numbers[~has_row] = np.nan
    return numbers, has_row & ~complete[position]


def _say_who_waits(waiting: pd.DataFrame, options: ApplyOptions) -> int:
    """Say which cases must ask a further stage, and return the exit code."""
    stages = " or ".join(map(repr, waiting["stage"].unique()))
    cases = _name_some(waiting[options.id].tolist())
    message = (
        f"{cases} must ask {stages}, and its table has no row of "
        f"them. Nothing is decided yet; {options.ask or '--ask FILE'} lists them."
    )
    if options.ask is None:
        raise ValueError(message)
    print(f"skselect: {message}", file=sys.stderr)
    return OPEN


# Deciding -----------------------------------------------------------------------------------------


def _decide(
    policy: AbstentionPolicy,
    table: Table,
    rows: pd.DataFrame,
    stage_scores: _StageScores | None,
    capacity: int | None,
) -> tuple[pd.DataFrame, FloatArray]:
    """Decide some rows, defer those that lack a number; also return the known confidences.

    `stage_scores` is what the stages of a cascade say, and which rows lack no number.
    """
    groups = rows[list(table.subgroups)]
    subgroups: Any = _subgroups(_known_subgroups(policy, groups))
    if table.proba:
        decisions, is_complete = _decide_proba(policy, table, rows, stage_scores, subgroups)
    else:
        decisions, is_complete = _decide_answers(policy, table, rows, subgroups)
    decisions = policies.limit_deferred(policy, decisions, capacity, is_complete)
    decided = policies.tabulate_decisions(policy, decisions, rows.index)
    decided["accepted"] = decisions.accepted & is_complete
    if table.proba:
        decided = _blank_unknown(policy, decided, is_complete)
    else:
        answers = rows[str(table.answer)]
        marks = decided.columns.intersection(["accepted", "over_capacity"])
        decided = decided[marks].assign(decision=answers.where(decided["accepted"]))
        decided = decided[["decision", *marks]]
    return decided, decisions.confidence[is_complete]


def _decide_proba(
    policy: AbstentionPolicy,
    table: Table,
    rows: pd.DataFrame,
    stage_scores: _StageScores | None,
    subgroups: Any,
) -> tuple[Decisions, BoolArray]:
    """Decide rows of probabilities; also return which rows lack none of them."""
    if stage_scores is not None:
        decisions = policies.decide_given(policy, stage_scores.proba, subgroups=subgroups)
        return decisions, stage_scores.is_complete
    numbers, is_complete = table.numbers(rows)
    # Rows that lack a number are deferred, and get placeholders.
    numbers[~is_complete] = 1.0 / len(policy.classes)
    return policies.decide_given(policy, numbers, subgroups=subgroups), is_complete


def _decide_answers(
    policy: AbstentionPolicy, table: Table, rows: pd.DataFrame, subgroups: Any
) -> tuple[Decisions, BoolArray]:
    """Decide answers that come with a confidence; also return which rows have both."""
    numbers, is_complete = table.numbers(rows)
    _refuse_lists_of_answers(policy)
    answers = rows[str(table.answer)]
    is_complete &= table.answered(rows)
    codes = np.zeros(len(rows), dtype=int)  # any class where only the confidence matters
    if policy.parts.by_answer:
        codes = table.known_codes(answers)
    confidence = np.where(is_complete, numbers[:, 0], 0.0)
    labels = policy.classes[codes]
    decisions = policies.decide_given(policy, None, labels, subgroups, confidence=confidence)
    return decisions, is_complete


def _blank_unknown(
    policy: AbstentionPolicy, decided: pd.DataFrame, is_complete: BoolArray
) -> pd.DataFrame:
    """Return decisions as a table holds them: nothing is said of rows that lack a number."""
    named = decided.columns.intersection(["label", "suggestion", "stage"])
    decided.loc[~is_complete, named] = pd.NA
    decided.loc[~is_complete, "confidence"] = np.nan
    if policy.shortlist is not None:
        _refuse_unclear_lists(policy.classes, "--policy")
        listed = decided["shortlist"].where(is_complete, pd.NA)
        texts = listed.map(_join_labels, na_action="ignore")
        decided["shortlist"] = texts.astype("string")
    return decided.rename(columns={"label": "decision"})


def _join_labels(labels: Sequence[Any]) -> str:
    """Return a shortlist as a table holds it."""
    return _SEPARATOR.join(map(str, labels))


def _refuse_lists_of_answers(policy: AbstentionPolicy) -> None:
    """Refuse a shortlist of answers that come with a confidence."""
    if policy.shortlist is None:
        return
    remedy = "name their columns, --proba"
    if isinstance(policy.confidence, LearnedScore) and policy.confidence.asks:
        remedy = "call policy.decide in Python"
    raise ValueError(
        f"--policy: its shortlist is made of the probabilities of all classes; {remedy}."
    )


def _refuse_unclear_lists(classes: LabelArray, option: str) -> None:
    """Refuse classes whose names contain what stands between them in a list."""
    unclear = [label for label in map(str, classes.tolist()) if _SEPARATOR in label]
    if unclear:
        raise ValueError(
            f"{option}: {_SEPARATOR!r} stands between the labels of a shortlist, and the class "
            f"{unclear[0]!r} contains it; rename the class, or work in Python: "
            "select_threshold(...), policy.decide(...)."
        )


def _subgroups(groups: pd.DataFrame) -> pd.DataFrame | pd.Series | None:
    """Return several attributes as a table, a single one as a column, none as None."""
    n_columns = groups.shape[1]
    if n_columns == 0:
        return None
    return groups if n_columns > 1 else groups.iloc[:, 0]


def _known_subgroups(policy: AbstentionPolicy, groups: pd.DataFrame) -> pd.DataFrame:
    """Return subgroups with the policy's types: a text file may write 3 as "3" or "3.0"."""
    if not policy.parts.are_given:
        return groups.apply(plain)
    typed = {}
    for position, name in enumerate(groups.columns):
        values = _values_of(policy, position)
        typed[name] = _type_cells(groups[name], values)
    return pd.DataFrame(typed, index=groups.index)


def _values_of(policy: AbstentionPolicy, position: int) -> list[Any]:
    """Return the values of an attribute for which a policy has thresholds."""
    values = set()
    for key in policy.parts.thresholds:
        attributes = key if isinstance(key, tuple) else (key,)
        if position < len(attributes):
            values.add(attributes[position])
    return list(values)


def _type_cells(column: pd.Series, values: list[Any]) -> Any:
    """Return cells as the values that they mean, None where they mean nothing."""
    codes, cells = pd.factorize(column)
    meanings = []
    for place, cell in zip(look_up(cells, values), cells, strict=True):
        if place >= 0:
            meanings.append(values[place])
        else:
            meanings.append(cell if place < -1 else None)
    return np.array([*meanings, None], dtype=object)[codes]
