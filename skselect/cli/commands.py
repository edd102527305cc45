"""The commands ``skselect evaluate``, ``report``, ``tune``, ``apply`` and ``monitor``."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from skselect._lib.arrays import BoolArray, FloatArray, LabelArray
from skselect._lib.checks import warn_user
from skselect._lib.checks.options import check_count
from skselect._lib.checks.rows import (
    check_any_rows,
    check_class_columns,
    check_classes,
    check_columns,
    check_labels,
    refuse_threshold_and_policy,
)
from skselect._lib.files import (
    check_output,
    read_json,
    waiting_line,
    whole_file,
    write_together,
    write_whole,
)
from skselect._lib.notebook import count, wrap
from skselect.cli import BROKEN, UNDECIDED
from skselect.cli.tables import (
    COMMAS,
    JSONL,
    PARQUET,
    WORKBOOKS,
    Columns,
    CsvLayout,
    TableFile,
    check_table_file,
    find_classes,
    has_label,
    known_classes,
    known_numbers,
    majority_class_suffices,
    naming_rows,
    parse_times,
    read_booleans,
    read_judged,
    read_known_labels,
    read_layout,
    read_names,
    read_outcomes,
    read_predictions,
    read_times,
    resolve_columns,
    text_to_numbers,
    write_rows,
)
from skselect.policy.policy import (
    AbstentionPolicy,
    External,
    count_at_quantiles,
    decide_given,
    find_over_capacity,
    limit_deferred,
    nullable,
    warn_if_far,
)
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import VERDICTS, Predictions

if TYPE_CHECKING:
    from skselect.monitoring.monitor import SelectiveRiskMonitor
    from skselect.thresholds import Betting, Shortlist

# A command imports what only it needs in its function: `apply` starts without reports and fitting.
# ruff: noqa: PLC0415

#: Stands between the labels of a shortlist in a table.
_SEPARATOR = "|"
#: The entry of a policy's metadata that names the columns it was tuned on.
_COLUMNS = "skselect_columns"
#: The exit code of each answer to "is it still true?".
_EXIT_CODES = {"holds": 0, "broken": BROKEN, "undecided": UNDECIDED}
_A_DAY = pd.Timedelta("1D")
# Endings that name a format: no other format is written to such a file.
_FORMATS = {
    ".csv", ".tsv", ".parquet", ".pq", ".json", ".html", ".htm", ".py", ".pdf", ".png", ".gz",
    ".zip", *JSONL, *WORKBOOKS,
}  # fmt: skip


def evaluate(given: Namespace) -> int:
    """Report on a table, and whether a policy keeps its guarantee; return the exit code."""
    from skselect.report.data import check_case
    from skselect.report.render import render_text
    from skselect.report.selective import selective_report

    _check_outputs(
        [given.table, given.policy],
        {"--html": (given.html, [".html", ".htm"]), "--csv": (given.csv, [".csv"])},
    )
    policy = None if given.policy is None else _read_policy(given.policy)
    if policy is not None:
        refuse_threshold_and_policy(given.threshold)
    file = TableFile.open(given.table, layout=read_layout(given))
    columns, classes = _resolve(file, given, policy)
    predictions, groups = read_predictions(file, columns, classes)
    names, features = _read_cases(file, given, groups.index)
    if policy is not None:
        groups = _known_subgroups(policy, groups)
    _warn_if_swapped(columns, classes, predictions.y_true != predictions.y_pred)
    if policy is not None and predictions.y_proba is None:
        _refuse_uncalibrated_answers(policy)
    with waiting_line("computing the report", len(predictions)):
        found = selective_report(
            None, predictions, policy=policy, threshold=given.threshold, ids=names,
            features=features, audits=given.audits, reviewing=given.reviewing,
            subgroups=_subgroups(groups), title=given.title or file.path.name,
        )  # fmt: skip
    if given.html is not None:
        found.to_html(given.html, interactive=True)
    if given.csv is not None:
        with whole_file(given.csv) as part:
            found.to_frame().to_csv(part, index=False, **read_layout(given).writes(given.csv))
    [case] = found.cases
    check = check_case(case, _subgroups(groups))
    print(render_text(found.contents, brief=given.brief))
    written = [str(path) for path in (given.html, given.csv) if path is not None]
    if written:
        print(f"\nWritten: {', '.join(written)}")
    if check is not None:
        return _EXIT_CODES[check.verdict]
    own = None if policy is None else policy.certificate
    return UNDECIDED if own is not None and own.reads_reviewer else 0


def report(given: Namespace) -> int:
    """Write the page of a report, and print the short form; return the exit code."""
    given.brief = True
    return evaluate(given)


def _read_cases(
    file: TableFile, given: Namespace, rows: pd.Index
) -> tuple[pd.Series | None, pd.DataFrame | None]:
    """Return the names and the features of some rows, as they are written in the table."""
    features = given.features or []
    named = [*features] if given.id is None else [given.id, *features]
    if not named:
        return None, None
    table = pd.concat(file.pieces(named)).loc[rows]
    return (None if given.id is None else table[given.id], table[features] if features else None)


def tune(given: Namespace) -> int:
    """Choose a threshold, write the policy; return the exit code."""
    from skselect.objectives import Risk, name_options
    from skselect.selection.cascade import certifying, join_stages
    from skselect.selection.pick import make_policy
    from skselect.selection.select import select_threshold

    _check_outputs(
        given.table, {"--out": (given.out, [".json"]), "--python": (given.python, [".py"])}
    )
    file, *later = [TableFile.open(path, layout=read_layout(given)) for path in given.table]
    columns, classes = _resolve(file, given, None)
    _refuse_misplaced_options(given, columns, classes)
    names = ("delta", "max_analyses", "method", "min_coverage", "threshold_range", "reviewer")
    options = {name: vars(given)[name] for name in names}
    if given.audit_proba is not None or given.min_audit_proba is not None:
        columns = replace(columns, audit_proba=given.audit_proba)
        options["method"] = _bet_on_audits(given)
    if (bound := given.reviewer_error) is not None:
        options["reviewer_error"] = bound[0] if len(bound) == 1 else tuple(bound)
    objective = name_options(given.objective, given.target, **options)
    shortlist = None if given.shortlist is None else _parse_shortlist(given.shortlist, given.seed)
    if shortlist is None and not columns.is_judged and not later:
        outcomes, groups, counts = read_outcomes(file, columns, classes, given.confidence)
        source: Predictions | Outcomes = outcomes
    else:  # takes all rows at once
        if later:
            stages, groups = _join_tables([file, *later], given, columns, classes)
            target = given.target if isinstance(objective, Risk) else None
            options = {"costs": given.costs, "max_loss": given.max_loss}
            source, groups = join_stages(stages, target=target, **options), certifying(groups)
        else:
            source, groups = read_predictions(file, columns, classes)
        named = given.confidence if columns.proba else None
        outcomes = Outcomes.from_predictions(source, confidence=named)
        counts = np.bincount(source.y_true, minlength=len(classes))
    _warn_if_swapped(columns, classes, outcomes.loss)
    subgroups = _subgroups(groups)
    with waiting_line("choosing a threshold", len(source)):
        found = select_threshold(
            source,
            objective=objective,
            subgroups=subgroups,
            confidence=None if shortlist is None else given.confidence,
            shortlist=shortlist,
            assume=given.assume,
        )
    policy = make_policy(
        found,
        outcomes,
        found.accepts(outcomes.confidence, subgroups),
        classes=classes,
        confidence=given.confidence if columns.proba else External(str(columns.confidence)),
        cascade=source.cascade if isinstance(source, Predictions) else None,
        metadata={_COLUMNS: _store_columns(columns)},
    )
    texts = {given.out: f"{policy.to_json(allow_external=True)}\n"}
    if given.python is not None:
        texts[given.python] = str(policy.to_python())
    write_together(texts)
    if objective.reads_costs and objective.certifies and not columns.is_judged:
        note = majority_class_suffices(classes, counts, given.target)
        if note is not None:
            warn_user(note)
    print(found)
    if policy.cascade is not None:
        print(f"\n{wrap(str(policy.cascade))}")
    print(f"\nWritten: {', '.join(str(p) for p in (given.out, given.python) if p is not None)}")
    issued = [one for one in found.certificates.values() if one is not None]
    return 0 if all(one.is_certified for one in issued) else UNDECIDED


def _bet_on_audits(given: Namespace) -> Betting:
    """Return the method that certifies rows which were drawn with different probabilities."""
    from skselect.thresholds import Betting

    needed = (given.verdict, given.audit_proba, given.min_audit_proba)
    if None in needed or given.method is not None:
        raise ValueError(
            "--audit-proba goes with --verdict and --min-audit-proba, the smallest of these "
            "probabilities, and without --method: bets certify such rows."
        )
    return Betting(largest_weight=1.0 / given.min_audit_proba)


def _refuse_misplaced_options(given: Namespace, columns: Columns, classes: LabelArray) -> None:
    """Refuse options of `tune` that do not go with the table."""
    if len(given.table) == 1 and (given.id is not None or given.costs is not None):
        raise ValueError("--id and --costs go with several tables, the stages of a cascade.")
    if given.label in columns.subgroups:
        raise ValueError(
            f"--subgroups: {given.label!r} is the true label, which nobody knows when the policy "
            "decides. For a guarantee about the rows of one true class, in Python: "
            "select_threshold(..., objective=GeneralizedRisk(0.01, given_class=...))."
        )
    if given.shortlist is not None:
        if not columns.proba:
            raise ValueError("--shortlist goes with --proba: it is made of the probabilities.")
        _refuse_unclear_lists(classes, "--shortlist")


def apply(given: Namespace) -> int:
    """Decide every row of a table, piece by piece; return the exit code."""
    inputs = [*given.table, given.policy, given.python]
    outputs = {"--out": (given.out, [".csv", *PARQUET, ".tsv"]), "--ask": (given.ask, [".csv"])}
    _check_outputs(inputs, outputs)
    if given.capacity is not None:
        check_count("--capacity", given.capacity, 0)
    policy = _read_policy(given.policy)
    if given.python is not None:
        _check_twin(given.python, given.policy)
    file, *later = [TableFile.open(path, layout=read_layout(given)) for path in given.table]
    columns, _ = _resolve(file, given, policy)
    follows, asked, pieces = _follows(policy, columns, given), None, file.rows()
    if follows or given.capacity is not None:
        # Which cases go on, and which rows are least sure, only the whole table tells.
        whole = _whole(pieces, file)
        pieces = iter([whole])
    if follows:
        asked, waiting = _ask_stages(policy, columns, [file, *later], given, whole)
        if given.ask is not None:
            with whole_file(given.ask) as part:
                waiting.to_csv(part, index=False, **read_layout(given).writes(given.ask))
        if len(waiting):
            return _say_who_waits(waiting, given)
    n_rows = n_accepted = n_rated = 0
    counts = count_at_quantiles(policy, np.empty(0))
    with _writer(given.out, read_layout(given)) as write:
        for piece in pieces:
            if len(piece) == 0:
                continue
            decided, rated = _decide(policy, piece, columns, file, asked, given.capacity)
            counts += count_at_quantiles(policy, rated)
            n_rated += len(rated)
            decided = decided.add_prefix(given.prefix)
            kept = piece.drop(columns=list(columns.proba))
            taken = [name for name in decided.columns if name in kept.columns]
            if taken:
                raise ValueError(
                    f"The table has columns {taken} already; choose other names for the new ones, "
                    "such as --prefix gate_."
                )
            write(pd.concat([kept, decided], axis=1))
            n_rows += len(piece)
            n_accepted += int(decided[f"{given.prefix}accepted"].sum())
        check_any_rows(n_rows, file.path.name)
    warn_if_far(policy, counts, n_rated, "--proba" if columns.proba else "confidence")
    share = 100 * n_accepted / n_rows
    print(
        f"{count(n_rows, 'row')}: {n_accepted:,} answered ({share:.1f} %), "
        f"{n_rows - n_accepted:,} deferred.",
        file=sys.stderr,
    )
    return 0


def monitor(given: Namespace, clock: Callable[[], float] = time.time) -> int:
    """Take what a log has gained since last time; return the exit code.

    `clock` returns the seconds since 1970.
    """
    _check_outputs([given.table, given.policy], {"--state": (given.state, [".json"])})
    policy = _read_policy(given.policy)
    saved = _content(given.state)
    watched = _open_state(given, policy)
    before = watched.status_
    file = TableFile.open(given.table, layout=read_layout(given))
    columns, _ = _resolve(file, given, policy)
    if columns.answer is not None:
        _refuse_uncalibrated_answers(policy)
    if given.audited is None and (given.audit_proba or given.min_audit_proba < 1):
        raise ValueError("--audited is missing: name the column that says which cases were drawn.")
    if policy.groups is not None and not policy.groups.by_answer and not columns.subgroups:
        raise ValueError("--subgroups is missing: the policy has a threshold per subgroup.")
    latest = None if given.allow_future else pd.Timestamp(clock(), unit="s", tz="UTC") + _A_DAY
    now = None if given.now is None else _parse_now(given.now)
    _refuse_future(f"--state: {given.state.name} was read", watched.known_until_, latest)
    _refuse_future("--now is", now, latest)
    source = _Source(file, given, columns, watched)
    parts = list(_read_log(source, latest))
    changes = pd.DataFrame(columns=["start", "unread", "relabelled", "partial"])
    with waiting_line("comparing decisions with labels", sum(map(len, parts))):
        if parts:
            log = pd.concat(parts)
            if not log["is new"].all():
                changes = _find_changes(log[~log["is new"]], source)
            _take_decisions(log[log["is new"]], source)
            _take_labels(log, source)
        if now is not None:
            watched.add_labels([], [], when=now)

    def refuse_other_runs() -> None:
        if _content(given.state) != saved:
            raise ValueError(
                f"--state: {given.state.name} was written by another run while this one was at "
                "work; it is left as that one wrote it. Run the command again, after the other."
            )

    write_whole(given.state, f"{watched.to_json()}\n", refuse_other_runs)
    status = watched.status_
    _say_changes(changes, watched, "unread")
    print(status)
    _say_changes(changes, watched, "relabelled")
    _say_changes(changes, watched, "partial")
    print(
        f"\nSince last time: {status.n_decided - before.n_decided:,} cases decided, "
        f"{status.n_known - before.n_known:,} outcomes entered. Written: {given.state}"
    )
    if status.risk == "alarm":
        return BROKEN
    return UNDECIDED if status.is_stuck or changes["unread"].any() else 0


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _open_state(given: Namespace, policy: AbstentionPolicy) -> SelectiveRiskMonitor:
    """Return the monitor of the state file, a new one if there is none."""
    from skselect.monitoring.monitor import OPTIONS, SelectiveRiskMonitor

    new = SelectiveRiskMonitor(policy, **{name: vars(given)[name] for name in OPTIONS})
    if not given.state.exists():
        return new
    try:
        old = SelectiveRiskMonitor.from_json(given.state)
    except ValueError as error:
        raise ValueError(f"--state: {given.state.name}: {error}") from error
    if old.policy.to_json(allow_external=True) != policy.to_json(allow_external=True):
        raise ValueError(
            f"--state: {given.state.name} watches another policy than {given.policy.name}; name a "
            "new file for a new policy."
        )
    for name in OPTIONS:
        was, now = getattr(old, name), getattr(new, name)
        if was != now:
            raise ValueError(
                f"--state: {given.state.name} was begun with --{name.replace('_', '-')} {was}, not "
                f"{now}; say the same as then, or begin with a new file."
            )
    return old


def _parse_now(text: Any) -> Any:
    """Return a time of the command line."""
    time = parse_times(pd.Series([text])).iloc[0]
    if pd.isna(time):
        raise ValueError(
            f"--now must be a number, or a date such as 2026-01-31T09:30, got {text!r}."
        )
    return time


def _refuse_future(what: str, when: Any, latest: pd.Timestamp | None) -> None:
    """Refuse a date after `latest`; numbers are in units of which the clock knows nothing."""
    if latest is not None and isinstance(when, pd.Timestamp) and when > latest:
        raise ValueError(
            f"{what} {when:%Y-%m-%dT%H:%M}, more than a day from now ({latest - _A_DAY:%Y-%m-%d}): "
            "no case before that would be read any more. Correct the date (or the clock; after "
            "such a case was read, begin with a new --state file), or pass --allow-future."
        )


class _Source(NamedTuple):
    """A log, what its columns mean, and the monitor that reads it."""

    file: TableFile
    given: Namespace
    columns: Columns
    watched: SelectiveRiskMonitor


def _read_log(source: _Source, latest: pd.Timestamp | None) -> Iterator[pd.DataFrame]:
    """Yield the rows of each piece, and tell which of them are new, labelled and waiting."""
    from skselect.monitoring.log import join_hashes, row_hashes
    from skselect.monitoring.log import read_times as microseconds_of

    file, given, columns, watched = source
    if given.id is None and "id" not in file.names:
        raise ValueError(
            f"--id: {file.path.name} has no column 'id'; name the column of the cases' names, by "
            "which their labels are found later."
        )
    name = given.id or "id"
    audits = list(filter(None, [given.audited, given.audit_proba]))
    waiting = watched.waiting_
    numbers = pd.Index(row_hashes(waiting["id"].to_numpy(dtype=object)))
    for piece in file.pieces([name, given.time, *audits, *columns.used]):
        if len(piece) == 0:
            continue
        rows = piece[list(dict.fromkeys([*audits, *columns.used]))].assign(
            name=read_names(piece[name], file), when=read_times(piece[given.time], file, given)
        )
        if columns.is_judged:  # each answer is predicted to be right
            rows[given.label] = read_judged(rows[given.label], file)
            answers = rows[str(columns.answer)]
            rows[str(columns.answer)] = np.where(has_label(answers, VERDICTS), VERDICTS[0], "")
        last = int(rows["when"].argmax())
        place = file.place(rows.index[last])
        _refuse_future(f"{file.path.name}: {place} has", rows["when"].iloc[last], latest)
        when, _ = microseconds_of(rows["when"], len(rows), None, needed=True)
        named = row_hashes(rows["name"].to_numpy())
        rows["case"] = join_hashes(named, when)
        rows["has label"] = has_label(rows[given.label], watched.policy.classes)
        rows["is new"] = watched.is_new(rows["name"], rows["when"])
        number = numbers.get_indexer(pd.Index(named))
        rows["waits"] = ~rows["is new"] & (number >= 0)
        waits = rows[rows["waits"]]
        then = waiting["when"].array[number[rows["waits"]]]
        moved = waits["name"][waits["when"].array != then]
        if len(moved):
            raise ValueError(
                f"{file.path.name}: cases that wait for their label, such as {moved.iloc[0]!r}, "
                "were decided at another time when they were read: their names must be their own "
                "(see --id)."
            )
        yield rows


def _said(rows: pd.DataFrame, source: _Source) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return one row for each case that was decided, and the arguments that say how."""
    file, given, columns, watched = source
    inputs = columns.proba or (str(columns.confidence),)
    numbers, known = known_numbers(rows, inputs, file)
    if columns.answer is not None:
        known &= has_label(rows[columns.answer], watched.policy.classes).to_numpy(dtype=bool)
    # Further rows of a case bring its label only.
    known[known] = ~rows["case"][known].duplicated().to_numpy()
    rows, numbers = rows[known], numbers[known]
    said: dict[str, Any] = {"y_proba": numbers, "ids": rows["name"], "when": rows["when"]}
    if columns.answer is not None and len(rows):
        answers = read_known_labels(rows[columns.answer], watched.policy.classes, file)
        said |= {"y_proba": None, "y_pred": answers, "confidence": numbers[:, 0]}
    if given.audited is not None:
        said["audited"] = read_booleans(rows[given.audited], file)
    if given.audit_proba is not None:
        said["audit_proba"] = known_numbers(rows, [given.audit_proba], file)[0][:, 0]
    groups = _known_subgroups(watched.policy, rows[list(columns.subgroups)])
    return rows, said | {"subgroups": _subgroups(groups)}


def _find_changes(log: pd.DataFrame, source: _Source) -> pd.DataFrame:
    """Compare rows that are not new with what was read; of a case the last label counts."""
    file, given, columns, watched = source
    rows, said = _said(log, source)
    told = log[log["has label"]].drop_duplicates("case", keep="last").set_index("case")
    labels = told[given.label].reindex(rows["case"])
    with naming_rows(said["y_proba"], rows.index, columns.proba, file):
        return watched.find_changes(known_classes(labels, watched.policy.classes, file), **said)


def _take_decisions(log: pd.DataFrame, source: _Source) -> None:
    """Pass on the decisions of new rows, in the order of time."""
    rows, said = _said(log.sort_values("when", kind="stable"), source)
    if len(rows):
        with naming_rows(said["y_proba"], rows.index, source.columns.proba, source.file):
            source.watched.add_decisions(**said)


def _take_labels(log: pd.DataFrame, source: _Source) -> None:
    """Pass on the labels of cases that wait, as known in time: no column says when they came.

    Of several rows of a case the last one counts.
    """
    file, given, _, watched = source
    told = log[log["has label"] & (log["waits"] | log["is new"])]
    if told["is new"].any():
        told = told[told["waits"] | told["name"].isin(watched.waiting_["id"])]
    told = told.drop_duplicates("case", keep="last")
    if len(told):
        labels = read_known_labels(told[given.label], watched.policy.classes, file)
        watched.add_labels(told["name"], labels, when=told["when"])
    watched.add_labels([], [], when=log["when"].max())


def _say_changes(changes: pd.DataFrame, watched: SelectiveRiskMonitor, what: str) -> None:
    """Print which days of the log are not as they were read."""
    days = changes[changes[what] > 0]
    if len(days) == 0:
        return
    n, shown = int(days[what].sum()), ", ".join(str(day)[:10] for day in days["start"][:3])
    more = f" and {count(len(days) - 3, 'later day')}" if len(days) > 3 else ""
    print(wrap({
        "unread": (
            f"NOT READ: {count(n, 'row')} of the log at least, of {shown}{more}. They lie before "
            f"{watched.known_until_}, up to which cases were read, and were not there then. They "
            "are not counted. Correct the log, and begin with a new --state file on all of it; or "
            "take them out of the log."
        ),
        "relabelled": (
            f"NOTE: {count(n, 'case')} that entered earlier at least, of {shown}{more}, would have "
            "another loss with the label that the log has now. It is not counted."
        ),
        "partial": (
            f"NOTE: nothing is known of {count(n, 'row')} of the log, of {shown}{more}: more rows "
            "of that time were read earlier, as where old rows are taken out of a log. Those that "
            "were not among them are not counted."
        ),
    }[what]))  # fmt: skip


def _check_outputs(
    inputs: Sequence[Path | None], outputs: Mapping[str, tuple[Path | None, Sequence[str]]]
) -> None:
    """Refuse output files that cannot be written, or that are used twice.

    `outputs` maps each option to its file and the endings of its format.
    """
    taken = [os.path.realpath(path) for path in inputs if path is not None]
    for option, (path, endings) in outputs.items():
        if path is None:
            continue
        check_output(path, option)
        if os.path.realpath(path) in taken:
            raise ValueError(
                f"{option}: {str(path)!r} is read or written by this command already; choose "
                "another name."
            )
        ending = path.suffix.lower()
        # The suffix selects the format of a table; other outputs have one format.
        known = _FORMATS if PARQUET[0] not in endings else {ending, *_FORMATS} - {""}
        if ending in known and ending not in endings:
            raise ValueError(
                f"{option}: {path.name!r} has the ending of another format, and the ending says "
                f"what is written; choose a name that ends in {' or '.join(endings)}."
            )
        taken.append(os.path.realpath(path))


def _read_policy(path: Path) -> AbstentionPolicy:
    check_table_file(path, "--policy")
    try:
        policy = AbstentionPolicy.from_json(path)
    except ValueError as error:
        raise ValueError(f"--policy: {path.name}: {error}") from error
    stored = policy.metadata.get(_COLUMNS, {})
    if not isinstance(stored, dict) or not all(
        isinstance(value, list) and all(isinstance(x, str) for x in value)
        if name in ("proba", "subgroups")
        else isinstance(value, str)
        for name, value in stored.items()
    ):
        raise ValueError(f"--policy: the names of its columns are damaged: {stored!r}.")
    if policy.cascade is not None and isinstance(policy.confidence, External):
        raise ValueError(
            "--policy: it is a cascade of answers that come with a confidence, which no command "
            "reads; call policy.begin and policy.decide in Python."
        )
    return policy


def _check_twin(gate: Path, policy: Path) -> None:
    """Refuse a Python file that does not hold the digest of the policy file."""
    check_table_file(gate, "--python")
    digest = read_json(policy, "policy file").get("digest")
    if digest is None or digest not in gate.read_text(encoding="utf-8", errors="replace"):
        raise ValueError(
            f"--python: {gate.name} is not the Python file of {policy.name}, for it does not hold "
            "its digest; write both again, with skselect tune --python or policy.to_python."
        )


# Reading --------------------------------------------------------------------------------------


def _resolve(
    file: TableFile, given: Namespace, policy: AbstentionPolicy | None
) -> tuple[Columns, LabelArray]:
    """Return which columns mean what, and the classes."""
    is_judged = vars(given).get("verdict") is not None
    if is_judged:
        given.label = given.verdict
        if policy is not None and policy.classes.tolist() != VERDICTS.tolist():
            raise ValueError(
                f"--verdict: the policy was tuned on labels, {policy.classes.tolist()[:10]}; name "
                "the column of the true label, --label."
            )
    described = _find_options(given, policy)
    if policy is not None:
        _refuse_probabilities_alone(policy, described, given.command)
    if described["label"] is not None:
        check_columns([described["label"]], file.names, file.path.name)
    if policy is not None:
        classes = policy.classes
    elif is_judged:
        classes = VERDICTS
    elif given.classes:
        classes = _parse_classes(file, given)
    else:
        classes = find_classes(file, resolve_columns(file, described, None))
        if described["answer"] is None and len(classes) < 2:
            raise ValueError(
                f"column {given.label!r} holds the class {classes.tolist()[0]!r} only; name all "
                "classes, in the order of --proba: --classes ..."
            )
    columns = resolve_columns(file, described, classes.tolist())
    check_columns(columns.used, file.names, file.path.name)
    remembered = [] if policy is None else policy.metadata.get(_COLUMNS, {}).get("proba", [])
    known = bool(remembered) and sorted(columns.proba) == sorted(remembered)
    if known and given.classes is None:
        return replace(columns, proba=tuple(remembered)), classes
    proba = _order_columns(columns.proba, given.classes, classes)
    if known and list(proba) != remembered:
        raise ValueError(
            f"--classes: the policy was tuned with the columns {remembered} for the classes "
            f"{classes.tolist()}, in this order."
        )
    return replace(columns, proba=proba), classes


def _join_tables(
    files: Sequence[TableFile], given: Namespace, columns: Columns, classes: LabelArray
) -> tuple[dict[str, Predictions], pd.DataFrame]:
    """Return what each stage says of the cases of the first table, and their subgroups."""
    if not columns.proba:
        raise ValueError(
            "Several tables are the stages of a cascade, and tune reads their probabilities, "
            "--proba. For answers with a confidence call join_stages in Python."
        )
    parts: dict[str, Predictions] = {}
    for file in files:
        name, ids = _stage(file.path), _read_ids(file, given)
        if name in parts:
            raise ValueError(
                f"TABLE: several tables have the name {name!r}, and their names are those of the "
                "stages; rename the files."
            )
        part, subgroups = read_predictions(file, columns, classes)
        _warn_if_swapped(columns, classes, part.y_true != part.y_pred, f"{file.path.name}: ")
        if not parts:
            first, order, groups = part, ids, subgroups
            columns = Columns(columns.label, columns.proba)  # the others are of the first table
        both = f"{files[0].path.name} and {file.path.name}"
        for other, lost in (files[0], order.difference(ids)), (file, ids.difference(order)):
            if len(lost):
                raise ValueError(
                    f"--id: of {both}, only {other.path.name} has {_name_some(lost)}; each table "
                    "needs all cases."
                )
        parts[name] = part.take(ids.get_indexer(order))
        differs = parts[name].y_true != first.y_true
        if differs.any():
            raise ValueError(f"--label: {both} differ for {_name_some(order[differs])}.")
    return parts, groups


def _stage(path: Path) -> str:
    """Return the stage that a table names: the file without its endings."""
    return Path(path.stem).stem if path.suffix in (".gz", ".bz2", ".zst") else path.stem


def _whole(pieces: Iterator[pd.DataFrame], file: TableFile) -> pd.DataFrame:
    """Return all rows of a file at once."""
    found = list(pieces)
    check_any_rows(sum(map(len, found)), file.path.name)
    return pd.concat(found)


def _read_ids(file: TableFile, given: Namespace, table: pd.DataFrame | None = None) -> pd.Index:
    """Return the names of the cases, each of which has one row."""
    if given.id is None:
        raise ValueError(
            "--id is missing: name the column of the cases' names, which joins the tables of a "
            "cascade."
        )
    check_columns([given.id], file.names, file.path.name)
    table = _whole(file.pieces([given.id]), file) if table is None else table
    names = pd.Index(read_names(table[given.id], file))
    if not names.is_unique:
        twice = names[names.duplicated()].unique()
        raise ValueError(
            f"--id: {file.path.name} has several rows for {_name_some(twice)}; each case has one."
        )
    return names


def _name_some(ids: Sequence[Any] | pd.Index) -> str:
    """Say how many cases there are, and the names of the first ones."""
    return f"{count(len(ids), 'case')} ({', '.join(map(repr, ids[:3]))}{', ...' * (len(ids) > 3)})"


def _find_options(given: Namespace, policy: AbstentionPolicy | None) -> dict[str, Any]:
    """Return the columns that the command line names, else those that the policy stores."""
    names = ("label", "verdict", "proba", "answer", "confidence_column", "subgroups", "reviewer")
    named = {name: vars(given).get(name) for name in names}
    remembered = {} if policy is None else policy.metadata.get(_COLUMNS, {})
    by_answer = named["answer"] or named["confidence_column"]
    # Columns of probabilities replace a stored answer with its confidence, and vice versa.
    replaced = (
        ("answer", "confidence_column") if named["proba"] else ("proba",) if by_answer else ()
    )
    known = {name: value for name, value in remembered.items() if name not in replaced}
    return {name: named[name] or known.get(name) for name in names}


def _order_columns(
    proba: tuple[str, ...], given: list[str] | None, classes: LabelArray
) -> tuple[str, ...]:
    """Return the columns of the probabilities in the order of the classes.

    The order is that of --classes, or follows from names that are those of the classes. Otherwise
    the columns are taken to be in the order of the classes, and a note says so.
    """
    names = [str(label) for label in classes.tolist()]
    if given is not None and sorted(given) != sorted(names):
        raise ValueError(
            f"--classes must name the classes {names}, in the order of --proba, got {given}."
        )
    if not proba:
        return proba
    if len(proba) == 1 and len(names) == 2:
        if (given or names) != names or names[0] in proba:
            raise ValueError(
                f"--proba: a single column is the probability of {names[-1]!r} here; name the "
                "columns of both classes."
            )
    else:
        remedy = "; name one column for each class, in the order of --classes"
        check_class_columns(len(proba), classes, "--proba", remedy)
        if given is not None:
            return tuple(proba[given.index(name)] for name in names)
        if set(proba) == set(names):
            return tuple(names)
    if given is None and proba != (names[-1],):
        _say_what_is_meant(proba, names)
    return proba


def _subgroups(groups: pd.DataFrame) -> pd.DataFrame | pd.Series | None:
    """Return several attributes as a table, a single one as a column, none as None."""
    return None if groups.shape[1] == 0 else groups.iloc[:, 0] if groups.shape[1] == 1 else groups


def _parse_classes(file: TableFile, given: Namespace) -> LabelArray:
    """Return the classes named on the command line, with the type of the labels."""
    named = np.array(given.classes)
    if not file.is_text:
        first = next(file.pieces([given.label]), pd.DataFrame({given.label: []}))[given.label]
        check_any_rows(len(first), file.path.name)
        labels = check_labels(first.dropna(), f"column {given.label!r}")
        if labels.dtype.kind == "U":
            return check_classes(named, "--classes")
    return check_classes(text_to_numbers(named), "--classes")


def _parse_shortlist(numbers: list[float], seed: int | None) -> Shortlist:
    from skselect.thresholds import Shortlist

    if len(numbers) > 2:
        raise ValueError(f"--shortlist takes a level and perhaps a share, got {numbers}.")
    level, share = (*numbers, 0.0)[:2]
    return Shortlist(level, share, random_state=seed)


def _store_columns(columns: Columns) -> dict[str, Any]:
    """Return the columns of the table as a policy stores them."""
    if columns.proba:
        return {"proba": list(columns.proba), "subgroups": list(columns.subgroups)}
    return {"answer": columns.answer, "confidence_column": columns.confidence,
            "subgroups": list(columns.subgroups)}  # fmt: skip


def _say_what_is_meant(proba: tuple[str, ...], names: list[str]) -> None:
    """Say which class each column is taken for, where the user did not."""
    pairs = zip(proba, names[-len(proba) :], strict=True)
    meant = ", ".join(f"{column} for {name!r}" for column, name in pairs)
    warn_user(f"probabilities: {meant} (use --classes to change this)")


def _warn_if_swapped(columns: Columns, classes: LabelArray, wrong: Any, where: str = "") -> None:
    """Ask whether two classes are swapped, where swapping would make more answers right."""
    right = 1.0 - float(np.mean(wrong))
    if columns.proba and len(classes) == 2 and right < 0.5:
        warn_user(
            f"{where}right in {100 * right:.1f} % of the rows, but with the classes swapped in "
            f"{100 - 100 * right:.1f} %: is the order of --classes right?"
        )


# Deciding -------------------------------------------------------------------------------------


def _follows(policy: AbstentionPolicy, columns: Columns, given: Namespace) -> bool:
    """Tell whether the tables are followed from stage to stage; refuse those that do not fit."""
    if policy.cascade is None or not columns.proba:
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
    policy: AbstentionPolicy,
    columns: Columns,
    files: Sequence[TableFile],
    given: Namespace,
    first: pd.DataFrame,
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
    ids, names = _read_ids(files[0], given, first), policy.cascade.names
    known, stage, proba = np.full(len(ids), True), np.full(len(ids), names[0], object), {}
    for name, file in zip(names, files, strict=False):
        asks = stage == name
        if not asks.any():
            break
        wanted = [given.id, *columns.proba]
        table = first if file is files[0] else _whole(file.pieces(wanted), file)
        numbers, complete = known_numbers(table, columns.proba, file)
        rows = _read_ids(file, given, table).get_indexer(ids)
        known &= ~asks | (rows < 0) | complete[rows]
        told = (asks & known & (rows >= 0))[:, None]
        proba[name] = np.where(told, numbers[rows], np.nan)
        with naming_rows(numbers, table.index, columns.proba, file):
            stage = policy.begin(proba)
    waits = known & pd.notna(stage)
    for name in names:
        proba.setdefault(name, np.full_like(proba[names[0]], np.nan))
        proba[name][~known] = 1.0 / len(policy.classes)  # a placeholder: these rows are deferred
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
    return UNDECIDED


def _decide(
    policy: AbstentionPolicy,
    piece: pd.DataFrame,
    columns: Columns,
    file: TableFile,
    asked: tuple[dict[str, FloatArray], BoolArray] | None,
    capacity: int | None,
) -> tuple[pd.DataFrame, FloatArray]:
    """Decide some rows, defer those that lack a number; also return the known confidences."""
    subgroups: Any = _subgroups(_known_subgroups(policy, piece[list(columns.subgroups)]))
    proba: Any
    if columns.proba:
        proba, known = asked or known_numbers(piece, columns.proba, file)
        if asked is None:
            proba[~known] = 1.0 / len(policy.classes)  # a placeholder: these rows are deferred
        with naming_rows(None if asked else proba, piece.index, columns.proba, file):
            # `apply` compares the confidences of the whole table, not of a piece.
            decisions = decide_given(policy, proba, subgroups=subgroups)
        decisions = limit_deferred(policy, decisions, capacity, known)
        decided = policy.frame(decisions, piece.index)
        named = decided.columns.intersection(["label", "suggestion", "stage"])
        decided.loc[~known, named] = pd.NA
        decided.loc[~known, "confidence"] = np.nan
        decided["accepted"] &= known
        if policy.shortlist is not None:
            decided["shortlist"] = _join_labels(decided["shortlist"].where(known, pd.NA), policy)
        return decided.rename(columns={"label": "decision"}), decisions.confidence[known]
    _refuse_uncalibrated_answers(policy)
    if policy.shortlist is not None:
        asks = isinstance(policy.confidence, LearnedScore) and policy.confidence.asks
        raise ValueError(
            "--policy: its shortlist is made of the probabilities of all classes; "
            f"{'call policy.decide in Python' if asks else 'name their columns, --proba'}."
        )
    sure, known = known_numbers(piece, [str(columns.confidence)], file)
    answers = piece[str(columns.answer)]
    given = (answers.notna() & (answers.astype(object) != "")).to_numpy(dtype=bool)
    # Placeholders for missing answers, so that all pieces have the same type.
    stand_in = answers.where(given, policy.classes[0])
    if policy.groups is not None and policy.groups.by_answer:
        subgroups = read_known_labels(stand_in, policy.classes, file)
    rated = sure[known, 0]
    accepted = policy.accepts(np.where(known, sure[:, 0], 0.0), subgroups=subgroups)
    known = known & given
    accepted &= known
    decision = nullable(check_labels(stand_in, f"column {columns.answer!r}"))
    marks = {"accepted": accepted}
    if capacity is not None:
        over = find_over_capacity(policy, accepted, sure[:, 0], capacity, known)
        marks = {"accepted": accepted | over, "over_capacity": over}
    decision[~marks["accepted"]] = pd.NA
    return pd.DataFrame({"decision": decision, **marks}, index=piece.index), rated


def _join_labels(shortlist: pd.Series, policy: AbstentionPolicy) -> pd.Series:
    """Return shortlists as text."""
    _refuse_unclear_lists(policy.classes, "--policy")
    texts = shortlist.map(lambda names: _SEPARATOR.join(map(str, names)), na_action="ignore")
    return texts.astype("string")


def _refuse_unclear_lists(classes: LabelArray, option: str) -> None:
    """Refuse classes whose names contain what stands between them in a list."""
    unclear = [label for label in map(str, classes.tolist()) if _SEPARATOR in label]
    if unclear:
        raise ValueError(
            f"{option}: {_SEPARATOR!r} stands between the labels of a shortlist, and the class "
            f"{unclear[0]!r} contains it; rename the class, or work in Python: "
            "select_threshold(...), policy.decide(...)."
        )


def _refuse_uncalibrated_answers(policy: AbstentionPolicy) -> None:
    """Refuse a confidence of the user's where the threshold is for one that the policy calibrates.

    A learned confidence comes from the policy itself, as its decisions show it.
    """
    if policy.calibration is not None and not isinstance(policy.confidence, LearnedScore):
        raise ValueError(
            "--policy: its threshold is about a calibrated confidence, which it computes from "
            "probabilities; name their columns, --proba."
        )


def _refuse_probabilities_alone(
    policy: AbstentionPolicy, described: Mapping[str, Any], command: str
) -> None:
    """Refuse probabilities where the policy also asks models that no option names."""
    by_answer = described["answer"] or described["confidence_column"]
    if policy.cascade is not None and command != "apply" and not by_answer:
        raise ValueError(
            f"--policy: it asks the stages {list(policy.cascade.names)} in turn, and {command} "
            "reads one table. Decide with skselect apply, and name the columns that it writes: "
            "--answer suggestion --confidence-column confidence."
        )
    if isinstance(policy.confidence, LearnedScore) and policy.confidence.asks and not by_answer:
        raise ValueError(
            f"--policy: its learned confidence also asks {list(policy.confidence.asks)}, and a "
            "command reads no auxiliary models. Write the columns suggestion and confidence of "
            "policy.decide into the table, and name them: --answer suggestion --confidence-column "
            "confidence."
        )


def _known_subgroups(policy: AbstentionPolicy, groups: pd.DataFrame) -> pd.DataFrame:
    """Return subgroups with the policy's types: a text file may write 3 as "3" or "3.0"."""
    if policy.groups is None or policy.groups.by_answer:
        return groups
    keys = [key if isinstance(key, tuple) else (key,) for key in policy.groups.thresholds]
    typed = {}
    for k, name in enumerate(groups.columns):
        own = {key[k] for key in keys if k < len(key)}
        known: dict[Any, Any] = {float(key): key for key in own if type(key) in (int, float)}
        known |= {str(key): key for key in own}
        typed[name] = groups[name].map(partial(_look_up, known))
    return pd.DataFrame(typed, index=groups.index)


def _look_up(known: Mapping[Any, Any], value: Any) -> Any:
    """Return the subgroup that a cell of a text file means."""
    if not isinstance(value, str):
        return value
    with suppress(KeyError, ValueError):
        return known[value] if value in known else known[float(value)]
    return value or None


# Writing --------------------------------------------------------------------------------------


@contextmanager
def _writer(out: Path | None, layout: CsvLayout) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that appends rows; the file appears once all are written."""
    with ExitStack() as stack:
        part = None if out is None else stack.enter_context(whole_file(out))
        if out is not None and part is not None and out.suffix.lower() in PARQUET:
            yield partial(_append_to_parquet, stack, part, [])
            return
        file = sys.stdout
        if part is not None:
            file = stack.enter_context(part.open("w", encoding=layout.encoding, newline=""))
        elif layout.encoding != COMMAS.encoding and isinstance(file, TextIOWrapper):
            file.reconfigure(encoding=layout.encoding)
        options = layout.writes(out or Path())
        header = iter([True])

        def write(rows: pd.DataFrame) -> None:
            text = write_rows(rows, layout.separates(out or Path()), layout.decimal)
            shown = rows if text is None else rows.iloc[:0]
            first = next(header, False)
            shown.to_csv(file, index=False, header=first, lineterminator="\n", **options)
            file.write(text or "")

        try:
            yield write
        except UnicodeEncodeError as error:
            raise ValueError(
                f"--encoding: {layout.encoding} has no sign for {error.object[error.start]!r}, "
                "which the decisions contain."
            ) from error


def _append_to_parquet(
    stack: ExitStack, path: Path, writers: list[Any], rows: pd.DataFrame
) -> None:
    """Append rows to a Parquet file, all of them with the types of the first ones."""
    schema = writers[0].schema if writers else None
    table = pa.Table.from_pandas(rows, schema=schema, preserve_index=False)
    if not writers:
        writers.append(stack.enter_context(pq.ParquetWriter(path, table.schema)))
    writers[0].write_table(table)
