"""Names and contents of data sets."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from skselect._validation._errors import DatasetNotFoundError


def check_dataset_name(name: Any, known: Sequence[str]) -> str:
    """Return `name` if it is a data set, or say which ones are spelled like it."""
    if isinstance(name, str) and name in known:
        return name
    near = difflib.get_close_matches(str(name), known, n=3) if isinstance(name, str) else []
    meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    raise ValueError(
        f"name must be one of the {len(known)} of list_datasets(), got {name!r}{meant}"
    )


def check_folder(name: str, folder: Any) -> Path:
    """Return the path of a folder that exists."""
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ValueError(f"{name} must be a folder that holds Parquet files, got {str(folder)!r}.")
    return path


def check_contents(found: str, registered: str, path: Path) -> None:
    """Refuse a file whose contents are not the ones that its name promises."""
    if not found.startswith(registered):
        raise ValueError(
            f"{path} does not hold the table that is registered under this name: the SHA-256 of "
            f"its contents is {found[:12]}..., not {registered[:12]}... It is damaged or another "
            "version; delete it or move it away."
        )


def check_dataset_shape(found: tuple[int, int], registered: tuple[int, int], name: str) -> None:
    """Refuse a table of another shape."""
    if tuple(found) != registered:
        raise ValueError(
            f"it has {found[0]} rows and {found[1]} columns, {name!r} has {registered[0]} and "
            f"{registered[1]}"
        )


def check_dataset_counts(what: str, found: Any, registered: Any, name: str) -> None:
    """Refuse a table that counts otherwise."""
    if found != registered:
        raise ValueError(f"its {what} are {found}, those of {name!r} {registered}")


def refuse_missing_dataset(name: str, tried: Sequence[str], advice: Sequence[str]) -> NoReturn:
    """Say what was tried, and how to get a data set."""
    lines = [f"The data set {name!r} is not on this machine. Tried:"]
    lines += [f"  - {one}" for one in tried]
    lines += ["To get it:"]
    lines += [f"  - {one}" for one in advice]
    raise DatasetNotFoundError("\n".join(lines))


def check_whole_rows(frame: Any, whole: Any, name: str) -> None:
    """Refuse to leave out every row."""
    if not whole.any():
        empty = [column for column in frame.columns if frame[column].isna().all()]
        raise ValueError(
            f"dropna=True would leave no row of {name!r}: the columns {empty} have no values; "
            "leave them out yourself."
        )
