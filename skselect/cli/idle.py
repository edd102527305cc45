"""No option without effect: one that would change nothing is refused in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skselect.cli.cells import is_text, value_type
from skselect.cli.options import (
    ApplyOptions,
    EvaluateOptions,
    FileOptions,
    MonitorOptions,
    TableOptions,
    TuneOptions,
)
from skselect.cli.reading import JSON, JSONL, PARQUET, WORKBOOKS
from skselect.cli.table_files import TableFile
from skselect.cli.tables import Table

#: Endings of files that no option about CSV concerns.
_NO_CSV = (*PARQUET, *WORKBOOKS, *JSONL, JSON)
#: When an option has an effect, where that depends on others or on the table: the command, the
#: option, and the condition in words. Where it does not hold, the option is refused.
CONDITIONS = {
    ("all", "--separator"): "a CSV file is read or written",
    ("all", "--encoding"): "a CSV file is read or written",
    ("all", "--decimal"): "a CSV file is read or written, or numbers stand as text",
    ("all", "--classes"): "probabilities are read, or there is no policy",
    ("evaluate", "--id"): "the report shows errors: without --brief, or with --html",
    ("evaluate", "--features"): "the report shows errors: without --brief, or with --html",
    ("evaluate", "--subgroups"): "the whole report is made, or a policy reads them",
    ("tune", "--out-next"): "--next says how many rows to write",
    ("tune", "--seed"): "--shortlist sets a share of the rows apart, or coins are drawn "
    "(--audit-proba, --reviewer)",
    ("tune", "--confidence"): "probabilities are read",
}


def refuse(command: str, option: str) -> None:
    """Refuse an option, and say when it has an effect."""
    raise ValueError(f"{option} has no effect here, but where {CONDITIONS[command, option]}.")


def refuse_layout(
    options: FileOptions, file: TableFile, numbers: Sequence[str], written: Sequence[Path | None]
) -> None:
    """Refuse what is said about CSV where no CSV file is read or written.

    Parameters
    ----------
    options : FileOptions
    file : TableFile
        The table, or the first one.
    numbers : list of str
        Its columns of numbers.
    written : list of Path or None
        The other tables that are read, and those that are written; None is standard output.
    """
    others_are_csv = any(path is None or path.suffix.lower() not in _NO_CSV for path in written)
    if file.is_csv or others_are_csv:
        return
    if options.separator is not None:
        refuse("all", "--separator")
    if options.encoding != "utf-8":
        refuse("all", "--encoding")
    has_text = any(is_text(value_type(file.types[name])) for name in numbers)
    if options.decimal != "." and not has_text:
        refuse("all", "--decimal")


def refuse_idle(options: TableOptions, table: Table) -> None:
    """Refuse the options of a command that change nothing with this table."""
    numbers = [*table.proba, *filter(None, [table.confidence, table.audit_proba])]
    refuse_layout(options, table.file, numbers, _other_tables(options))
    if isinstance(options, TuneOptions):
        _refuse_idle_of_tune(options, table)
    elif options.classes is not None and not table.proba and _has_policy(options):
        refuse("all", "--classes")
    if isinstance(options, EvaluateOptions) and options.brief and options.html is None:
        if options.id is not None:
            refuse("evaluate", "--id")
        if options.features is not None:
            refuse("evaluate", "--features")
        if options.subgroups is not None and options.policy is None and options.csv is None:
            refuse("evaluate", "--subgroups")


def _refuse_idle_of_tune(options: TuneOptions, table: Table) -> None:
    if options.out_next is not None and options.next is None:
        refuse("tune", "--out-next")
    sets_apart = options.shortlist is not None and len(options.shortlist) > 1
    draws = sets_apart or options.audit_proba is not None or options.reviewer is not None
    if options.seed is not None and not draws:
        refuse("tune", "--seed")
    if options.confidence is not None and not table.proba:
        refuse("tune", "--confidence")


def _has_policy(options: TableOptions) -> bool:
    """Tell whether a command follows a policy."""
    if isinstance(options, EvaluateOptions):
        return options.policy is not None
    return isinstance(options, ApplyOptions | MonitorOptions)


def _other_tables(options: TableOptions) -> list[Path | None]:
    """Return the tables that a command reads beside the first one, or writes."""
    if isinstance(options, EvaluateOptions):
        return [] if options.csv is None else [options.csv]
    if isinstance(options, TuneOptions):
        is_written = options.next is not None
        return [*options.table[1:], *([options.out_next] if is_written else [])]
    if isinstance(options, ApplyOptions):
        asks = [] if options.ask is None else [options.ask]
        out = None if options.out == Path("-") else options.out
        return [*options.table[1:], *asks, out]
    if isinstance(options, MonitorOptions):
        return [*options.table[1:]]
    return []
