"""The history of a monitor in the terminal: a line for each run, and what an earlier run knew."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

#: What each run found; files of an earlier version lack the last two columns.
COLUMNS = (
    "run", "since", "cases", "known", "evidence", "alarm_line", "answer", "alarm_when", "policy",
    "target",
)  # fmt: skip
_OLD_COLUMNS = COLUMNS[:-2]


@dataclass(frozen=True)
class History:
    """The runs before this one.

    Parameters
    ----------
    path : Path
    columns : tuple of str
    runs : list of dict
    unread : list of int
        The numbers of the lines that hold no run, such as one that a full disk has cut.
    is_cut : bool
        Whether the file ends within a line.
    """

    path: Path
    columns: tuple[str, ...] = COLUMNS
    runs: list[dict[str, str]] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    is_cut: bool = False

    @classmethod
    def read(cls, path: Path) -> History:
        """Read a file, which need not exist yet; of a device nothing is read."""
        if not path.is_file():
            return cls(path)
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = [*csv.reader(text.splitlines())]
        if not lines:
            return cls(path)
        columns = tuple(lines[0])
        if columns not in (COLUMNS, _OLD_COLUMNS):
            raise ValueError(
                f"--history: {path.name} is no history of skselect monitor, for it does not "
                f"begin with the columns {list(COLUMNS)}; name a new file."
            )
        history = cls(path, columns, is_cut=not text.endswith("\n"))
        for number, cells in enumerate(lines[1:], start=2):
            history._take(number, cells)
        return history

    def _take(self, number: int, cells: list[str]) -> None:
        """Take a line; of a line that is torn at least whether it tells of an alarm."""
        if len(cells) == len(self.columns):
            self.runs.append(dict(zip(self.columns, cells, strict=True)))
            return
        self.unread.append(number)
        if "alarm" in cells:
            place = cells.index("alarm")
            when = cells[place + 1] if len(cells) > place + 1 else ""
            self.runs.append({"run": cells[0], "answer": "alarm", "alarm_when": when or "unknown"})

    @property
    def alarm(self) -> dict[str, str] | None:
        """The first run that raised an alarm."""
        for run in self.runs:
            if run["answer"] == "alarm":
                return run
        return None

    def refuse_other_policy(self, digest: str) -> None:
        """Refuse a history of another policy."""
        for run in self.runs:
            if run.get("policy", digest) != digest:
                raise ValueError(
                    f"--history: {self.path.name} is the history of another policy (the run of "
                    f"{run['run']}); name a new file for this one."
                )

    def find_changes(self, run: Mapping[str, str]) -> list[str]:
        """Say what a run has changed that must stay as long as a history goes on."""
        changes = []
        beginning: Mapping[str, str] = {}
        whole = [before for before in self.runs if "since" in before]
        if whole:
            beginning = whole[0]
        for name, what in _FIXED.items():
            before = beginning.get(name, run[name])
            if before != run[name]:
                changes.append(f"{what} was {before} and is {run[name]} now")
        most = max([int(before["cases"]) for before in whole], default=0)
        n_cases = int(run["cases"])
        if n_cases < most and beginning.get("since") == run["since"]:
            changes.append(f"an earlier run counted {most:,} cases, this one {n_cases:,}")
        if self.unread:
            numbers = ", ".join(map(str, self.unread[:5]))
            changes.append(f"some lines are no runs ({numbers})")
        return changes

    def append(self, run: Mapping[str, str]) -> None:
        """Add a run to the file."""
        line = ",".join(run[name] for name in self.columns)
        with self.path.open("a", encoding="utf-8") as file:
            if not file.tell():
                file.write(f"{','.join(self.columns)}\n")
            elif self.is_cut:
                file.write("\n")
            file.write(f"{line}\n")


# What a history compares with its first run.
_FIXED = {
    "since": "the beginning",
    "target": "the target",
    "alarm_line": "the alarm line",
}
