"""The options of each command, typed: each set is made once, from what the parser read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CsvLayout:
    """How CSV files are written.

    Parameters
    ----------
    separator : str or None
        What stands between cells; None is a tab for the ending .tsv, else a comma.
    decimal : {".", ","}
    encoding : str
    newline : str
        How lines end; not an option, but as in the table that was read.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    newline: str = "\n"

    def between(self, path: Path) -> str:
        """Return what stands between the cells of a file."""
        if self.separator is not None:
            return self.separator
        endings = (path.suffix.lower(), Path(path.stem).suffix.lower())
        return "\t" if ".tsv" in endings else ","


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """What every command is told: its name, and how CSV files are written."""

    command: str
    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    @property
    def layout(self) -> CsvLayout:
        """How CSV files are written."""
        return CsvLayout(self.separator, self.decimal, self.encoding)


@dataclass(frozen=True, kw_only=True)
class DemoOptions(FileOptions):
    """The options of ``skselect demo``."""

    data: Path | None
    label: str | None
    target: float
    delta: float
    out: Path
    seed: int


@dataclass(frozen=True, kw_only=True)
class TableOptions(FileOptions):
    """What the commands that read predictions are told of the columns.

    No command has all of these options; those that it lacks are None.
    """

    proba: Sequence[str] | None
    answer: str | None
    confidence_column: str | None
    classes: Sequence[str] | None
    subgroups: Sequence[str] | None
    label: str | None = None
    verdict: str | None = None
    id: str | None = None
    reviewer: str | None = None
    audit_proba: str | None = None
    right: Sequence[str] | None = None
    wrong: Sequence[str] | None = None
    unjudged: str | None = None


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(TableOptions):
    """The options of ``skselect evaluate`` and ``skselect report``."""

    table: Path
    policy: Path | None
    threshold: float | None
    features: Sequence[str] | None
    audits: tuple[float, float, float] | None
    reviewing: Sequence[tuple[str, float]] | None
    csv: Path | None
    title: str | None
    html: Path | None
    brief: bool = False


@dataclass(frozen=True, kw_only=True)
class TuneOptions(TableOptions):
    """The options of ``skselect tune``."""

    table: Sequence[Path]
    next: int | None
    out_next: Path | None
    costs: Sequence[float] | None
    max_loss: float | None
    objective: Sequence[str] | None
    target: Sequence[float] | None
    delta: float | None
    deferred_error: float | None
    overall_error: Sequence[float] | None
    max_analyses: int | None
    seed: int | None
    assume: Sequence[str]
    method: str | None
    min_audit_proba: float | None
    min_coverage: float | None
    threshold_range: Sequence[float] | None
    confidence: str | None
    shortlist: Sequence[float] | None
    out: Path | None
    python: Path | None


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(TableOptions):
    """The options of ``skselect apply``."""

    table: Sequence[Path]
    policy: Path
    ask: Path | None
    python: Path | None
    out: Path | None
    capacity: int | None
    prefix: str


@dataclass(frozen=True, kw_only=True)
class MonitorOptions(TableOptions):
    """The options of ``skselect monitor``."""

    table: Sequence[Path]
    time: str
    dayfirst: bool
    time_format: str | None
    policy: Path
    since: float | str | None
    history: Path | None
    html: Path | None
    max_age: float | str | None
    now: float | str | None
    target: float | None
    delta: float | None
    label_delay: float | str
    unlabelled: str
    batch: int | str
    other_labels: str
    audited: str | None
    min_audit_proba: float


#: The set of options of each command.
OPTIONS: dict[str, type[FileOptions]] = {
    "demo": DemoOptions,
    "evaluate": EvaluateOptions,
    "report": EvaluateOptions,
    "tune": TuneOptions,
    "apply": ApplyOptions,
    "monitor": MonitorOptions,
}
