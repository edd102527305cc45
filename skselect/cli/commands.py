"""The commands ``skselect evaluate``, ``report``, ``tune``, ``apply`` and ``monitor``."""

from __future__ import annotations

import ast
import csv
import math
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skselect._lib import files
from skselect._lib.arrays import BoolArray, FloatArray, LabelArray
from skselect._lib.checks import warn_user
from skselect._lib.checks.options import check_count, check_number
from skselect._lib.checks.rows import refuse_threshold_and_policy
from skselect._lib.notebook import count, wrap
from skselect.cli import BROKEN, OPEN, tables
from skselect.cli.tables import PARQUET, Table, TableFile, open_table, read_layout
from skselect.policy import policy as policies
from skselect.policy.policy import AbstentionPolicy, External
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions, cascade_of, find_column_order

if TYPE_CHECKING:
    from skselect.monitoring.status import MonitorStatus

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
#: The columns of a history: what each run of `monitor` found.
_HISTORY = ["run", "since", "cases", "known", "evidence", "alarm_line", "answer", "alarm_when"]
#: Endings of the tables that are written.
_ENDINGS = (".csv", ".tsv", *PARQUET)


def evaluate(given: Namespace) -> int:
    """Report on a table, and whether a policy keeps its guarantee; return the exit code."""
    from skselect.report.data import check_case
    from skselect.report.render import render_text
    from skselect.report.selective import selective_report

    _check_outputs([given.table, given.policy], {"--html": given.html, "--csv": given.csv})
    policy = None if given.policy is None else _read_policy(given.policy)
    if policy is not None:
        refuse_threshold_and_policy(given.threshold)
    table = open_table(given.table, given, policy)
    predictions, groups = table.predictions()
    named = [*filter(None, [given.id]), *(given.features or [])]
    shown = table.file.rows(named).apply(tables.plain).loc[groups.index] if named else None
    if policy is not None:
        groups = _known_subgroups(policy, groups)
    with files.waiting_line("computing the report", len(predictions)):
        found = selective_report(
            predictions, policy=policy, threshold=given.threshold,
            ids=groups.index + 1 if shown is None or given.id is None else shown[given.id],
            features=None if shown is None or not given.features else shown[given.features],
            audits=given.audits, reviewing=given.reviewing and dict(given.reviewing),
            subgroups=_subgroups(groups), title=given.title or table.name,
        )  # fmt: skip
    if given.html is not None:
        found.to_html(given.html, interactive=True)
    if given.csv is not None:
        _write(pa.Table.from_pandas(found.to_frame(), preserve_index=False), given.csv, given)
    check = check_case(found.cases[0], _subgroups(groups))
    _print(render_text(found.contents, brief=given.brief))
    written = [str(path) for path in (given.html, given.csv) if path is not None]
    if written:
        _print(f"\nWritten: {', '.join(written)}")
    if check is not None:
        return _EXIT_CODES[check.verdict]
    own = None if policy is None else policy.certificate
    return OPEN if own is not None and own.reads_reviewer else 0


def report(given: Namespace) -> int:
    """Write the page of a report, and print the short form; return the exit code."""
    given.brief = True
    return evaluate(given)


def tune(given: Namespace) -> int:
    """Choose a threshold, write the policy; return the exit code."""
    from skselect.objectives import Risk
    from skselect.selection.results import make_policy
    from skselect.selection.select import select_threshold
    from skselect.thresholds import Shortlist

    out = _named_or_new("--out", given.out, "policy.json")
    outputs = {"--out": out, "--python": given.python}
    if given.next is not None:
        outputs["--out-next"] = _named_or_new("--out-next", given.out_next, "next.csv")
    _check_outputs(given.table, outputs)
    table = open_table(given.table[0], given)
    _refuse_misplaced_options(given, table)
    objective, shortlist = _read_objective(given), None
    if given.shortlist is not None:
        level, share = (*given.shortlist, 0.0)[:2]
        shortlist = Shortlist(level, share, random_state=given.seed)
    confidence = given.confidence if table.proba else None
    if len(given.table) > 1:
        target = objective.target if isinstance(objective, Risk) else None
        source, groups = _join_tables(table, given, target)
    else:
        source, groups = table.predictions()
    outcomes = Outcomes.from_predictions(source, confidence=confidence)
    with files.waiting_line("choosing a threshold", len(source)):
        found = select_threshold(
            source,
            objective=objective,
            subgroups=_subgroups(groups),
            confidence=confidence,
            shortlist=shortlist,
            assume=given.assume,
        )
    policy = make_policy(
        found,
        outcomes,
        found.accepts(outcomes.confidence, _subgroups(groups)),
        classes=table.classes,
        confidence=confidence or External(str(table.confidence)),
        cascade=cascade_of(source),
        metadata={tables.COLUMNS: table.stored},
    )
    texts = {out: f"{policy.to_json(allow_external=True)}\n"}
    if given.python is not None:
        texts[given.python] = str(policy.to_python())
    written = [str(path) for path in texts]
    if given.next is not None:
        rows = found.next_to_judge(given.next)
        _write(table.file.cells().take(rows), outputs["--out-next"], given)
        written.append(f"{outputs['--out-next']} ({count(len(rows), 'row')} to judge)")
    files.write_together(texts)
    _print(found)
    if policy.cascade is not None:
        _print(f"\n{wrap(str(policy.cascade))}")
    if given.unjudged is not None and not len(found.next_to_judge(1)):
        _print("\nNo further label can raise the coverage: stop judging.")
    _print(f"\nWritten: {', '.join(written)}")
    issued = [one for one in found.certificates.values() if one is not None]
    return 0 if all(one.is_certified for one in issued) else OPEN


def _read_objective(given: Namespace) -> Any:
    """Return the objective that the options state, or several as a list."""
    from skselect.objectives import name_options

    names = ("delta", "max_analyses", "method", "min_coverage", "threshold_range")
    options = {name: vars(given)[name] for name in (*names, "reviewer", "deferred_error")}
    options["largest_weight"] = _largest_weight(given)
    if (bound := given.overall_error) is not None:
        options["overall_error"] = bound[0] if len(bound) == 1 else tuple(bound)
    words, targets = given.objective or ["risk"], given.target or [None]
    if len(words) != len(targets):
        raise ValueError("--target: give one for each --objective.")
    stated = [name_options(*one, **options) for one in zip(words, targets, strict=True)]
    return stated[0] if len(stated) == 1 else stated


def _largest_weight(given: Namespace) -> float | None:
    """Return the limit of the weights of rows that were drawn with different probabilities."""
    if given.audit_proba is None and given.min_audit_proba is None:
        return None
    if None in (given.verdict, given.audit_proba, given.min_audit_proba):
        raise ValueError(
            "--audit-proba goes with --verdict and --min-audit-proba, the smallest of these "
            "probabilities."
        )
    return 1.0 / check_number("--min-audit-proba", given.min_audit_proba, 0.0, 1.0, closed="right")


def _refuse_misplaced_options(given: Namespace, table: Table) -> None:
    """Refuse options of `tune` that do not go with the table."""
    several = len(given.table) > 1
    if not several and (given.costs, given.max_loss) != (None, None):
        raise ValueError("--costs and --max-loss go with several tables, the stages of a cascade.")
    if not several and given.id is not None:
        _read_ids(table, given)
    if given.unjudged is not None and (several or given.audit_proba is not None):
        raise ValueError("--unjudged goes with one table, and without --audit-proba.")
    if given.next is not None:
        if given.unjudged is None:
            raise ValueError("--next goes with --unjudged wrong.")
        check_count("--next", given.next)
    if given.label in table.subgroups:
        raise ValueError(
            f"--subgroups: {given.label!r} is the true label, which nobody knows when the policy "
            "decides. For a guarantee about the rows of one true class, in Python: "
            "select_threshold(..., objective=GeneralizedRisk(0.01, given_class=...))."
        )
    if given.shortlist is not None:
        if not table.proba:
            raise ValueError("--shortlist goes with --proba: it is made of the probabilities.")
        if len(given.shortlist) > 2:
            raise ValueError(
                f"--shortlist takes a level and perhaps a share, got {given.shortlist}."
            )
        _refuse_unclear_lists(table.classes, "--shortlist")


def apply(given: Namespace) -> int:
    """Decide every row of a table; return the exit code."""
    inputs = [*given.table, given.policy, given.python]
    _check_outputs(inputs, {"--out": given.out, "--ask": given.ask})
    if given.out is not None and given.out.suffix.lower() not in ("", *_ENDINGS):
        raise ValueError(
            f"--out: the ending of {given.out.name!r} says what is written; choose a name that "
            f"ends in {' or '.join(_ENDINGS)}."
        )
    policy = _read_policy(given.policy)
    if given.python is not None:
        _check_twin(given.python, given.policy)
    table = open_table(given.table[0], given, policy)
    asked, rows = None, table.file.rows([*table.used, *filter(None, [given.id])])
    if _follows(policy, table, given):
        asked, waiting = _ask_stages(policy, table, given, rows)
        if given.ask is not None:
            _write(pa.Table.from_pandas(waiting, preserve_index=False), given.ask, given)
        if len(waiting):
            return _say_who_waits(waiting, given)
    decided, rated = _decide(policy, table, rows, asked, given.capacity)
    accepted, decided = decided["accepted"], decided.add_prefix(given.prefix)
    kept = table.file.cells(name for name in table.file.types if name not in table.proba)
    taken = [name for name in decided.columns if name in kept.column_names]
    if taken:
        raise ValueError(
            f"The table has columns {taken} already; choose other names for the new ones, such as "
            "--prefix gate_."
        )
    columns = {name: kept[name] for name in kept.column_names}
    columns |= {name: pa.array(decided[name], from_pandas=True) for name in decided}
    _write(pa.table(columns, metadata=kept.schema.metadata), given.out, given)
    counts = policies.count_at_quantiles(policy, rated)
    policies.warn_if_far(policy, counts, len(rated), "--proba" if table.proba else "confidence")
    n_accepted = int(accepted.sum())
    print(
        f"{count(len(rows), 'row')}: {n_accepted:,} answered ({100 * accepted.mean():.1f} %), "
        f"{len(rows) - n_accepted:,} deferred.",
        file=sys.stderr,
    )
    return 0


# Watching -----------------------------------------------------------------------------------------


def monitor(given: Namespace, clock: Callable[[], float] = time.time) -> int:
    """Compute from the whole log whether the guarantee is kept; return the exit code.

    `clock` returns the seconds since 1970.
    """
    from skselect.monitoring.log import KINDS, show_time
    from skselect.monitoring.monitor import OPTIONS, SelectiveRiskMonitor

    _check_outputs([*given.table, given.policy], {"--history": given.history})
    policy, past = _read_policy(given.policy), _read_alarm(given.history)
    watched = SelectiveRiskMonitor(policy, **{name: vars(given)[name] for name in OPTIONS})
    table, rows, kind = _read_log(given, policy)
    if (kind == "time") != isinstance(given.label_delay, str):
        wanted = "a number" if kind == "number" else f"a unit, such as {given.label_delay}D"
        raise ValueError(
            f"--label-delay: the times of the log are {KINDS[kind]}, so it needs {wanted}."
        )
    when = rows["when"].to_numpy()
    newest = float(np.max(when))
    # Numbers have no clock, and no policy was made at one.
    now, made = (clock() * 1e6, policy.created) if kind == "time" else (newest, -math.inf)
    now = now if given.now is None else _read_time("--now", given.now, kind)
    since = _read_time("--since", made if given.since is None else given.since, kind)
    no_verdict = stale = _find_stale(given, rows, now) if kind == "time" else ""
    cases, noted = _find_cases(rows)
    early = when[cases["row"]] < since
    cases, noted["earlier cases, left out (see --since)"] = cases[~early], int(np.sum(early))
    # No label means that the answer was correct only as far as the log goes.
    until = now if given.unlabelled == "wait" else newest
    status = _watch(watched, table, rows, cases, kind, until)
    answer = "stale" if stale else "overdue" if status.is_stuck else "ok"
    answer = "alarm" if status.risk == "alarm" else answer
    start = str(show_time(since, kind)) if since > -math.inf else "the first one"
    if given.history is not None:
        _append(given.history, [
            str(show_time(now, kind)).partition(".")[0], start, len(cases),
            status.n_known, status.evidence, status.worst.alarm_line, answer, status.alarm_when,
        ])  # fmt: skip
    start += " (when the policy was made)" if kind == "time" and given.since is None else ""
    seen = "".join(f" {n:,} {what}." for what, n in noted.items() if n)
    counted = wrap(f"Counted: {count(len(cases), 'case')} since {start}.{seen and ' Seen:'}{seen}")
    if past is not None and answer != "alarm":
        answer = "alarm"
        no_verdict = (
            f"ALARM on {past['run']}, in {given.history}: the guarantee was broken with a case of "
            f"{past['alarm_when']}. The log of today raises none: labels were corrected, or rows "
            "have changed. An alarm in the history stays; find out which of the two logs is true, "
            f"and begin with a new --history file. {stale or 'What follows is that of today.'}"
        )
    told = status.tell(no_verdict)
    known = len(cases) or answer == "alarm"  # else the counts say first why nothing is known
    _print(*([told, "", counted] if known else [counted, told]), sep="\n")
    return {"alarm": BROKEN, "ok": 0}.get(answer, OPEN)


def _watch(
    watched: Any, table: Table, rows: pd.DataFrame, cases: pd.DataFrame, kind: str, until: float
) -> MonitorStatus:
    """Tell a new monitor the cases in their order, and return what it knows at a time."""
    from skselect.monitoring.log import to_dates

    shown, when = to_dates if kind == "time" else np.asarray, rows["when"].to_numpy()
    with files.waiting_line("comparing decisions with labels", len(rows)):
        for first in range(0, len(cases), _PIECE):
            part = cases[first : first + _PIECE]
            # A name may come back at another time; the number of a case does not.
            numbers = list(map(str, range(first, first + len(part))))
            decided, label = rows.iloc[part["row"]], part["label"].to_numpy()
            given = rows.columns.intersection(["y_pred", "confidence", "audited", "audit_proba"])
            proba = [name for name in rows if isinstance(name, int)]
            groups = decided.filter(like="subgroup ").set_axis(list(table.subgroups), axis=1)
            watched.update(
                np.array([*table.classes.tolist(), None], dtype=object)[label],
                decided[proba].to_numpy() if proba else None,
                ids=numbers,
                when=shown(when[part["row"]]),
                subgroups=_subgroups(groups),
                **{name: decided[name].infer_objects().to_numpy() for name in given},
            )
        status = watched.add_labels([], [], when=shown([until])[0]).status_
    names = rows["id"].iloc[cases["row"]]
    return replace(
        status,
        overdue=tuple(names.iloc[int(case)] for case in status.overdue),
        blocked_by=status.blocked_by and names.iloc[int(status.blocked_by)],
    )


def _append(history: Path, values: list[Any]) -> None:
    """Add a run to a history, which may be new."""
    line = ",".join("" if value is None else str(value) for value in values)
    with history.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n" if file.tell() else f"{','.join(_HISTORY)}\n{line}\n")


def _read_alarm(history: Path | None) -> dict[str, str] | None:
    """Return the first run in a history that raised an alarm."""
    if history is None or not history.exists():
        return None
    with history.open(encoding="utf-8", newline="") as file:
        runs = csv.DictReader(file)
        if runs.fieldnames not in (None, _HISTORY):
            raise ValueError(
                f"--history: {history.name} is no history of skselect monitor, for it does not "
                f"begin with the columns {_HISTORY}; name a new file."
            )
        return next((run for run in runs if run["answer"] == "alarm"), None)


def _read_time(option: str, value: Any, kind: str) -> float:
    """Return a time of the command line or of a policy, as the times of the log are."""
    from skselect.monitoring.log import read_dates

    is_number = isinstance(value, int | float)
    found = float(value) if is_number else float(read_dates([value])[0])
    if math.isnan(found) or is_number != (kind == "number"):
        wanted = "a number" if kind == "number" else "a date such as 2026-01-31T09:30"
        raise ValueError(f"{option} must be {wanted}, as the times of the log are, got {value!r}.")
    return found


def _find_stale(given: Namespace, rows: pd.DataFrame, now: float) -> str:
    """Say that the newest date of the log is too old, nothing if it is not; refuse the future."""
    from skselect.monitoring.log import show_time, span_of_time

    when = rows["when"].to_numpy()
    last, most = int(np.argmax(when)), span_of_time(given.max_age, "max_age")[0]
    newest, days = show_time(when[last], "time"), np.unique(when // _DAY)
    if when[last] > now + _DAY:
        raise ValueError(
            f"--time: case {rows['id'].iloc[last]!r} has {newest}, more than a day after now "
            f"({show_time(now, 'time')}); correct the date, or the clock."
        )
    if most is None:  # a log of less than two weeks may not have shown its weekend
        least = 1.0 if days[-1] - days[0] >= 14 else 4.0
        most = 2.0 * float(np.max(np.diff(days), initial=least)) * _DAY
    if now - when[last] <= most:
        return ""
    return (
        f"STALE: the newest row of the log is of {newest}, {(now - when[last]) / _DAY:.4g} days "
        f"before now; at most {most / _DAY:.4g} days are expected (--max-age). Whether the "
        "guarantee is kept now is not known; what follows was known then."
    )


def _read_log(given: Namespace, policy: AbstentionPolicy) -> tuple[Table, pd.DataFrame, str]:
    """Return the columns of the log, the rows of all files, and which kind of times they have."""
    table = open_table(given.table[0], given, policy)
    later = (TableFile.open(path, read_layout(given)) for path in given.table[1:])
    parts = [_read_rows(replace(table, file=x), given, policy) for x in (table.file, *later)]
    rows, kinds = zip(*parts, strict=True)
    if len(set(kinds)) > 1:
        raise ValueError("--time: one file holds dates in this column, another one numbers.")
    return table, pd.concat(rows, ignore_index=True), kinds[0]


def _read_rows(
    table: Table, given: Namespace, policy: AbstentionPolicy
) -> tuple[pd.DataFrame, str]:
    """Return the rows of a file, with columns of fixed names, and which kind of times they have.

    `is decided` tells the rows that hold a decision; the others bring a label only.
    """
    name, file = given.id or "id", table.file
    if name not in file.types and given.id is None:
        raise ValueError(
            f"--id: {table.name} has no column 'id'; name the column of the cases' names."
        )
    cells = file.rows([name, given.time, *table.used, *filter(None, [given.audited])])
    when, kind = file.times(cells[given.time], given)
    numbers, is_decided = table.numbers(cells)
    rows = _known_subgroups(policy, cells[list(table.subgroups)]).add_prefix("subgroup ")
    rows["when"] = when
    rows["id"] = pd.Series(file.names(cells[name]), cells.index, pd.ArrowDtype(pa.large_string()))
    rows["label"] = table.known_codes(cells[str(table.label)]).astype(np.int32)
    if table.proba:
        rows[list(range(numbers.shape[1]))] = numbers
    else:
        answers = table.known_codes(cells[table.answer])
        is_decided &= answers >= 0
        rows["y_pred"], rows["confidence"] = table.classes[answers], numbers[:, 0]
    rows["is decided"], decided = is_decided, cells[is_decided]
    for option, read in (("audited", file.booleans), ("audit_proba", file.numbers)):
        if (column := vars(given)[option]) is not None:
            rows[option] = pd.Series(read(decided[column]), decided.index)
    return rows, kind


def _find_cases(rows: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """Find the cases in the rows of a log, whatever their order.

    Returns
    -------
    cases : DataFrame
        In the order of time, then of names: the row that holds the decision, and the code of the
        label, -1 where there is none. Of several decisions the first counts, of labels the last.
    noted : dict
        How many rows or cases are not as they should be.
    """
    keys = pa.table({"when": rows["when"].to_numpy(), "id": pa.array(rows["id"])})
    # Rows of one case keep their order.
    order = pc.sort_indices(keys, [("when", "ascending"), ("id", "ascending")]).to_numpy()
    keys = keys.take(order)
    same = [pc.equal(keys[name][1:], keys[name][:-1]) for name in keys.column_names]
    case = np.cumsum(np.append([False], ~pc.and_(*same).to_numpy()), dtype=np.int32)
    label = rows["label"].to_numpy()[order]
    told, decided = np.flatnonzero(label >= 0), np.flatnonzero(rows["is decided"].to_numpy()[order])
    last = np.full(case[-1] + 1, -1, label.dtype)
    last[case[told]] = label[told]  # of several the last one stays
    others = (np.diff(case[told]) == 0) & (np.diff(label[told]) != 0)
    first = decided[np.diff(case[decided], prepend=-1) > 0]
    return pd.DataFrame({"row": order[first], "label": last[case[first]]}), {
        "cases without a probability, answer or confidence": len(last) - len(first),
        "rows that decide a case again": len(decided) - len(first),
        "cases with two labels, of which the later counts": len(set(case[told[1:]][others])),
    }


# Files --------------------------------------------------------------------------------------------


def _named_or_new(option: str, named: Path | None, default: str) -> Path:
    """Return the file that an option names, else the default one, which must not exist yet."""
    if named is None and Path(default).exists():
        raise ValueError(
            f"{option}: there is a file {default!r} already. Name another one, or, to replace it, "
            f"name it: {option} {default}."
        )
    return named or Path(default)


def _check_outputs(inputs: Sequence[Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Refuse the files of options that cannot be written, or that are used twice."""
    taken = [os.path.realpath(path) for path in inputs if path is not None]
    for option, path in outputs.items():
        if path is None:
            continue
        files.check_output(path, option)
        if os.path.realpath(path) in taken:
            raise ValueError(
                f"{option}: {str(path)!r} is read or written by this command already; choose "
                "another name."
            )
        taken.append(os.path.realpath(path))


def _read_policy(path: Path) -> AbstentionPolicy:
    """Read a policy that a command can follow."""
    if not path.exists():
        raise ValueError(f"--policy: there is no file {str(path)!r}.")
    try:
        policy = AbstentionPolicy.from_json(path)
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
    if not gate.is_file():
        raise ValueError(f"--python: there is no file {str(gate)!r}.")
    held = None
    with suppress(SyntaxError, ValueError, TypeError, LookupError, RecursionError):
        body = ast.parse(gate.read_bytes()).body  # it is not run
        values = {ast.unparse(x.targets[0]): x.value for x in body if isinstance(x, ast.Assign)}
        held = ast.literal_eval(values["POLICY"])
    if held != files.read_json(policy, "policy file"):
        raise ValueError(
            f"--python: {gate.name} is not the Python file of {policy.name}, for it holds another "
            "policy, or none; write both again, with skselect tune --python or policy.to_python."
        )


def _print(*said: object, sep: str = " ") -> None:
    """Print for a reader who may have closed the pipe, such as `head`; the exit code stays."""
    with suppress(BrokenPipeError):
        print(*said, sep=sep)


def _write(cells: pa.Table, out: Path | None, given: Namespace) -> None:
    """Write a whole table as the ending says, as CSV to standard output if there is no file."""
    layout = read_layout(given)
    with ExitStack() as stack:
        file: Any = sys.stdout
        if out is not None:
            part = stack.enter_context(files.whole_file(out))
            if out.suffix.lower() in PARQUET:
                pq.write_table(cells, part)
                return
            file = stack.enter_context(part.open("w", encoding=layout.encoding, newline=""))
        elif layout.encoding != "utf-8" and isinstance(file, TextIOWrapper):
            file.reconfigure(encoding=layout.encoding)
        try:
            tables.write_csv(cells, file, layout.between(out or Path()), layout.decimal)
        except UnicodeEncodeError as error:
            raise ValueError(
                f"--encoding: {layout.encoding} has no sign for {error.object[error.start]!r}, "
                "which the table contains."
            ) from error
        file.flush()


# Cascades -----------------------------------------------------------------------------------------


def _stage(path: Path) -> str:
    """Return the stage that a table names: the file without its endings."""
    return Path(path.stem).stem if path.suffix in (".gz", ".bz2", ".zst") else path.stem


def _join_tables(
    table: Table, given: Namespace, target: float | None
) -> tuple[Predictions, pd.DataFrame]:
    """Return what the stages together say of the certifying cases, and their subgroups."""
    from skselect.extras.join import certifying, join_stages

    if not table.proba:
        raise ValueError(
            "Several tables are the stages of a cascade, and tune reads their probabilities, "
            "--proba. For answers with a confidence call join_stages in Python."
        )
    names = [_stage(path) for path in given.table]
    if len(set(names)) < len(names):
        raise ValueError(
            f"TABLE: several tables have one name among {names}, and their names are those of the "
            "stages; rename the files."
        )
    (first, groups), order = table.predictions(), _read_ids(table, given)
    parts, stage = {names[0]: first}, replace(table, subgroups=(), reviewer=None)
    for name, path in zip(names[1:], given.table[1:], strict=True):
        later = replace(stage, file=TableFile.open(path, read_layout(given)))
        (part, _), ids = later.predictions(), _read_ids(later, given)
        both = f"{table.name} and {later.name}"
        for other, lost in (table.name, order.difference(ids)), (later.name, ids.difference(order)):
            if len(lost):
                raise ValueError(
                    f"--id: of {both}, only {other} has {_name_some(lost)}; each table needs all "
                    "cases."
                )
        parts[name] = part.take(ids.get_indexer(order))
        differs = parts[name].y_true != first.y_true
        if differs.any():
            raise ValueError(f"--label: {both} differ for {_name_some(order[differs])}.")
    for path, part in zip(given.table, parts.values(), strict=True):
        if found := find_column_order(part):
            warn_user(f"{path.name}: {found}")
    plan = {"target": target, "costs": given.costs, "max_loss": given.max_loss}
    said = {name: value for name, value in plan.items() if value is not None}
    return join_stages(parts, **said), certifying(groups)


def _read_ids(table: Table, given: Namespace, rows: pd.DataFrame | None = None) -> pd.Index:
    """Return the names of the cases, each of which has one row."""
    if given.id is None:
        raise ValueError(
            "--id is missing: name the column of the cases' names, which joins the tables of a "
            "cascade."
        )
    rows = table.file.rows([given.id]) if rows is None else rows
    names = pd.Index(table.file.names(rows[given.id]).to_pylist(), dtype=object)
    if not names.is_unique:
        twice = names[names.duplicated()].unique()
        raise ValueError(
            f"--id: {table.name} has several rows for {_name_some(twice)}; each case has one."
        )
    return names


def _name_some(ids: Sequence[Any] | pd.Index) -> str:
    """Say how many cases there are, and the names of the first ones."""
    return f"{count(len(ids), 'case')} ({', '.join(map(repr, ids[:3]))}{', ...' * (len(ids) > 3)})"


def _follows(policy: AbstentionPolicy, table: Table, given: Namespace) -> bool:
    """Tell whether the tables are followed from stage to stage; refuse those that do not fit."""
    if policy.cascade is None or not table.proba:
        if len(given.table) > 1 or given.id is not None or given.ask is not None:
            raise ValueError(
                "--policy: several tables, --id and --ask go with the policy of a cascade and the "
                "probabilities of its stages."
            )
        return False
    stages, names = policy.cascade.names, [_stage(path) for path in given.table]
    moved = (x in stages and x != y for x, y in zip(names, stages, strict=False))
    if len(names) > len(stages) or any(moved):
        raise ValueError(
            f"--policy: its stages are {list(stages)}; give a table of each, in this order, got "
            f"{[path.name for path in given.table]}."
        )
    return True


def _ask_stages(
    policy: AbstentionPolicy, first: Table, given: Namespace, whole: pd.DataFrame
) -> tuple[tuple[dict[str, FloatArray], BoolArray], pd.DataFrame]:
    """Follow the cases of the first table from stage to stage.

    Returns
    -------
    asked : tuple of dict and ndarray of bool
        What each stage says, and which cases lack no number.
    waiting : DataFrame
        The cases that must ask a stage whose table has no row of them, and that stage.
    """
    assert policy.cascade is not None
    ids, names = _read_ids(first, given, whole), policy.cascade.names
    known, stage = np.full(len(ids), True), np.full(len(ids), names[0], object)
    proba = {name: np.full((len(ids), len(first.proba)), np.nan) for name in names}
    for k, (name, path) in enumerate(zip(names, given.table, strict=False)):
        asks = stage == name
        if not asks.any():
            break
        table, rows = first, whole
        if k > 0:
            table = replace(first, file=TableFile.open(path, read_layout(given)))
            rows = table.file.rows([given.id, *table.proba])
        numbers, complete = table.numbers(rows)
        row = _read_ids(table, given, rows).get_indexer(ids)
        known &= ~asks | (row < 0) | complete[row]
        told = asks & known & (row >= 0)
        proba[name][told] = numbers[row[told]]
        stage = policy.begin(dict(list(proba.items())[: k + 1]))
    waits = known & pd.notna(stage)
    for said in proba.values():
        said[~known] = 1.0 / len(policy.classes)  # a placeholder: these rows are deferred
    return (proba, known), pd.DataFrame({given.id: ids[waits], "stage": stage[waits]})


def _say_who_waits(waiting: pd.DataFrame, given: Namespace) -> int:
    """Say which cases must ask a further stage, and return the exit code."""
    stages = " or ".join(map(repr, waiting["stage"].unique()))
    said = (
        f"{_name_some(waiting[given.id].tolist())} must ask {stages}, and its table has no row of "
        f"them. Nothing is decided yet; {given.ask or '--ask FILE'} lists them."
    )
    if given.ask is None:
        raise ValueError(said)
    print(f"skselect: {said}", file=sys.stderr)
    return OPEN


# Deciding -----------------------------------------------------------------------------------------


def _decide(
    policy: AbstentionPolicy, table: Table, rows: pd.DataFrame, asked: Any, capacity: int | None
) -> tuple[pd.DataFrame, FloatArray]:
    """Decide some rows, defer those that lack a number; also return the known confidences.

    `asked` is what the stages of a cascade say, and which rows lack no number.
    """
    subgroups: Any = _subgroups(_known_subgroups(policy, rows[list(table.subgroups)]))
    numbers, known = asked or table.numbers(rows)
    # Rows that lack a number are deferred, and get placeholders.
    if table.proba:
        if asked is None:
            numbers[~known] = 1.0 / len(policy.classes)
        decisions = policies.decide_given(policy, numbers, subgroups=subgroups)
    else:
        _refuse_lists_of_answers(policy)
        answers = rows[str(table.answer)]
        known &= ~tables.is_empty(answers)
        by_answer = policy.parts.by_answer
        codes = table.known_codes(answers) if by_answer else np.zeros(len(rows), dtype=int)
        sure = np.where(known, numbers[:, 0], 0.0)
        said = policy.classes[codes]  # any class where only the confidence matters
        decisions = policies.decide_given(policy, None, said, subgroups, confidence=sure)
    decisions = policies.limit_deferred(policy, decisions, capacity, known)
    decided, accepted = policy.frame(decisions, rows.index), decisions.accepted & known
    decided["accepted"] = accepted
    if not table.proba:
        marks = decided.columns.intersection(["accepted", "over_capacity"])
        decided = decided[marks].assign(decision=answers.where(accepted))
        return decided[["decision", *marks]], decisions.confidence[known]
    named = decided.columns.intersection(["label", "suggestion", "stage"])
    decided.loc[~known, named] = pd.NA
    decided.loc[~known, "confidence"] = np.nan
    if policy.shortlist is not None:
        _refuse_unclear_lists(policy.classes, "--policy")
        listed = decided["shortlist"].where(known, pd.NA)
        texts = listed.map(lambda names: _SEPARATOR.join(map(str, names)), na_action="ignore")
        decided["shortlist"] = texts.astype("string")
    return decided.rename(columns={"label": "decision"}), decisions.confidence[known]


def _refuse_lists_of_answers(policy: AbstentionPolicy) -> None:
    """Refuse a shortlist of answers that come with a confidence."""
    if policy.shortlist is not None:
        asks = isinstance(policy.confidence, LearnedScore) and policy.confidence.asks
        raise ValueError(
            "--policy: its shortlist is made of the probabilities of all classes; "
            f"{'call policy.decide in Python' if asks else 'name their columns, --proba'}."
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
    return None if groups.shape[1] == 0 else groups.iloc[:, 0] if groups.shape[1] == 1 else groups


def _known_subgroups(policy: AbstentionPolicy, groups: pd.DataFrame) -> pd.DataFrame:
    """Return subgroups with the policy's types: a text file may write 3 as "3" or "3.0"."""
    if not policy.parts.are_given:
        return groups.apply(tables.plain)
    keys = [key if isinstance(key, tuple) else (key,) for key in policy.parts.thresholds]
    typed = {}
    for k, name in enumerate(groups.columns):
        own = list({key[k] for key in keys if k < len(key)})
        codes, cells = pd.factorize(groups[name])
        places = zip(tables.look_up(cells, own), cells, strict=True)
        meant = [own[at] if at >= 0 else cell if at < -1 else None for at, cell in places]
        typed[name] = np.array([*meant, None], dtype=object)[codes]
    return pd.DataFrame(typed, index=groups.index)
