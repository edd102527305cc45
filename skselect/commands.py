"""What ``skselect evaluate``, ``tune`` and ``apply`` do with a table of predictions."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skselect import _validation as check
from skselect._typing import LabelArray
from skselect.policy import AbstentionPolicy, External
from skselect.report import selective_report
from skselect.selection import select_threshold
from skselect.selection._pick import policy_facts
from skselect.tables import (
    Columns,
    TableFile,
    classes_of,
    numbers_of_text,
    proba_of,
    read_outcomes,
    read_predictions,
    resolved_columns,
)

#: Where a policy remembers the columns that it was tuned on.
_COLUMNS = "columns"


def evaluate(given: Namespace) -> int:
    """Report on a table; return the exit code."""
    policy = None if given.policy is None else AbstentionPolicy.from_json(given.policy)
    file = TableFile.open(given.table)
    columns, classes = _described(file, given, policy)
    predictions, groups = read_predictions(file, columns, classes)
    threshold = given.threshold
    if policy is not None and predictions.y_proba is None:
        # Without probabilities there is nothing to calibrate: its threshold is all that counts.
        check.refuse_groups_without_proba(policy.groups)
        threshold, policy = policy.threshold, None
    report = selective_report(
        None, predictions, policy=policy, threshold=threshold, subgroups=_subgroups(groups),
        title=given.title or file.path.name,
    )  # fmt: skip
    if given.html is not None:
        report.to_html(given.html)
    if given.csv is not None:
        report.to_frame().to_csv(given.csv, index=False)
    print(report)
    return 0


def tune(given: Namespace) -> int:
    """Choose a threshold, write the policy; return the exit code."""
    check.check_folder_of(given.out, "--out")
    file = TableFile.open(given.table)
    columns, classes = _described(file, given, None)
    outcomes, groups = read_outcomes(file, columns, classes, given.confidence)
    subgroups = _subgroups(groups)
    found = select_threshold(
        outcomes, objective=given.objective, target=given.target, delta=given.delta,
        method=given.method, min_coverage=given.min_coverage, subgroups=subgroups,
    )  # fmt: skip
    accepted = found.accepts(outcomes.confidence, subgroups)
    policy = AbstentionPolicy(
        classes=classes,
        threshold=found.threshold,
        confidence=given.confidence if columns.proba else External(str(columns.confidence)),
        groups=found.groups,
        metadata={_COLUMNS: _remembered(columns)},
        **policy_facts(found, outcomes, accepted),
    )
    if given.python is not None:
        check.check_folder_of(given.python, "--python")
        check.check_has_columns_of_proba(columns.proba)
        policy.to_python(given.python)
    policy.to_json(given.out, allow_external=True)
    print(found)
    print(f"\nWritten: {', '.join(str(p) for p in (given.out, given.python) if p is not None)}")
    return 0


def apply(given: Namespace) -> int:
    """Decide every row of a table, piece by piece; return the exit code."""
    policy = AbstentionPolicy.from_json(given.policy)
    file = TableFile.open(given.table)
    columns = _columns_to_apply(file, given, policy)
    n_rows = n_accepted = 0
    with _writer(given.out) as write:
        for piece in file.pieces():
            decided = _decided(policy, piece, columns, file.path.name)
            decided = decided.add_prefix(given.prefix)
            kept = piece.drop(columns=list(columns.proba))
            check.check_free_columns(list(decided.columns), list(kept.columns))
            write(pd.concat([kept, decided], axis=1))
            n_rows += len(piece)
            n_accepted += int(decided[f"{given.prefix}accepted"].sum())
    check.check_any_rows(n_rows, file.path.name)
    share = 100 * n_accepted / n_rows
    print(
        f"{n_rows:,} rows: {n_accepted:,} decided alone ({share:.1f} %), "
        f"{n_rows - n_accepted:,} handed over.",
        file=sys.stderr,
    )
    return 0


# Reading --------------------------------------------------------------------------------------


def _described(
    file: TableFile, given: Namespace, policy: AbstentionPolicy | None
) -> tuple[Columns, LabelArray]:
    """Return which columns mean what, and the classes."""
    described = vars(given)
    if policy is not None and not given.proba and given.answer is None:
        described = described | _with_subgroups(given, policy)
    check.check_table_columns([given.label], file.names, file.path.name)
    named = _named_classes(file, given, policy)
    columns = resolved_columns(file, described, None)
    seen = classes_of(file, columns) if named is None else named
    columns = resolved_columns(file, described, seen.tolist())
    if columns.proba:
        _check_proba_columns(columns, seen)
        if named is None and columns.proba != tuple(map(str, seen.tolist())):
            _say_what_is_meant(columns, seen)
    return columns, seen


def _subgroups(groups: pd.DataFrame) -> pd.DataFrame | pd.Series | None:
    """Return several attributes as a table, one as a column, none as None."""
    return None if groups.shape[1] == 0 else groups.iloc[:, 0] if groups.shape[1] == 1 else groups


def _named_classes(
    file: TableFile, given: Namespace, policy: AbstentionPolicy | None
) -> LabelArray | None:
    """Return the classes of the policy, or those named on the command line."""
    if policy is not None:
        return policy.classes
    if not given.classes:
        return None
    check.check_table_columns([given.label], file.names, file.path.name)
    named = np.array(given.classes)
    if file.is_text:
        return check.check_classes(numbers_of_text(named), "--classes")
    first = next(iter(file.pieces([given.label])))[given.label]
    labels = check.check_labels(first.dropna(), f"column {given.label!r}")
    return check.check_classes(numbers_of_text(named) if labels.dtype.kind != "U" else named,
                               "--classes")  # fmt: skip


# Columns --------------------------------------------------------------------------------------


def _remembered(columns: Columns) -> dict[str, Any]:
    """Return what a policy is to remember of the columns that it was tuned on."""
    if columns.proba:
        return {"proba": list(columns.proba), "subgroups": list(columns.subgroups)}
    return {"answer": columns.answer, "confidence_column": columns.confidence,
            "subgroups": list(columns.subgroups)}  # fmt: skip


def _with_subgroups(given: Namespace, policy: AbstentionPolicy) -> dict[str, Any]:
    """Return the columns that a policy remembers; subgroups named anew count more."""
    remembered = dict(policy.metadata.get(_COLUMNS, {}))
    return remembered | ({"subgroups": given.subgroups} if given.subgroups else {})


def _columns_to_apply(file: TableFile, given: Namespace, policy: AbstentionPolicy) -> Columns:
    """Return the columns that hold what the policy reads: as named, or as it remembers."""
    described: dict[str, Any] = dict(vars(given))
    if not given.proba and given.answer is None:
        described |= _with_subgroups(given, policy)
    columns = resolved_columns(file, described, policy.classes.tolist())
    check.check_table_columns(columns.used, file.names, file.path.name)
    if columns.proba:
        _check_proba_columns(columns, policy.classes)
    return columns


def _check_proba_columns(columns: Columns, classes: LabelArray) -> None:
    """Refuse another number of columns than classes; of two classes the second is enough."""
    if len(columns.proba) == 1 and len(classes) == 2:
        return
    remedy = "; name one column for each class, in the order of --classes"
    check.check_class_columns(len(columns.proba), classes, "--proba", remedy)


def _say_what_is_meant(columns: Columns, classes: LabelArray) -> None:
    """Tell which class each column is taken for: nobody said so."""
    pairs = zip(columns.proba, classes.tolist()[-len(columns.proba) :], strict=True)
    meant = ", ".join(f"{column} for {label!r}" for column, label in pairs)
    print(f"skselect: note: probabilities: {meant} (--classes says otherwise)", file=sys.stderr)


def _decided(
    policy: AbstentionPolicy, piece: pd.DataFrame, columns: Columns, table: str
) -> pd.DataFrame:
    """Return the decisions for some rows."""
    for name in columns.used:
        check.check_no_missing(piece[name], name, table)
    subgroups = _subgroups(piece[list(columns.subgroups)])
    if columns.proba:
        decided = policy.decide(proba_of(piece, columns, table), subgroups=subgroups).set_index(
            piece.index
        )
        return decided.rename(columns={"label": "decision"})
    sure = check.check_numeric(piece[[str(columns.confidence)]], table)[:, 0]
    accepted = policy.accepts(sure, subgroups=subgroups)
    decision = piece[str(columns.answer)].astype(object).where(accepted, None)
    return pd.DataFrame({"decision": decision, "accepted": accepted}, index=piece.index)


# Writing --------------------------------------------------------------------------------------


@contextmanager
def _writer(out: Path | None) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that appends rows; the file appears when all of them are written."""
    if out is None:
        yield _csv_to(sys.stdout)
        return
    check.check_folder_of(out, "--out")
    part = out.with_name(out.name + ".part")
    try:
        if out.suffix.lower() in (".parquet", ".pq"):
            with _ParquetRows(part) as rows:
                yield rows.write
        else:
            with part.open("w", encoding="utf-8", newline="") as file:
                yield _csv_to(file)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)


def _csv_to(file: Any) -> Callable[[pd.DataFrame], None]:
    state = {"header": True}

    def write(rows: pd.DataFrame) -> None:
        rows.to_csv(file, index=False, header=state["header"], lineterminator="\n")
        state["header"] = False

    return write


class _ParquetRows:
    """A Parquet file that grows piece by piece, all pieces with the types of the first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.arrow = check.import_extra("pyarrow", "pyarrow", "parquet")
        self.parquet = check.import_extra("pyarrow.parquet", "pyarrow", "parquet")
        self.writer: Any = None

    def __enter__(self) -> _ParquetRows:
        return self

    def __exit__(self, *_: object) -> None:
        if self.writer is not None:
            self.writer.close()

    def write(self, rows: pd.DataFrame) -> None:
        """Append rows."""
        schema = None if self.writer is None else self.writer.schema
        table = self.arrow.Table.from_pandas(rows, schema=schema, preserve_index=False)
        if self.writer is None:
            self.writer = self.parquet.ParquetWriter(self.path, table.schema)
        self.writer.write_table(table)
