"""Files, their columns, and packages that need not be installed."""

from __future__ import annotations

import errno
import importlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

# What a system says when a disk, a quota or a limit is full.
_NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


def import_extra(module: str, package: str, extra: str) -> Any:
    """Import a module that an extra installs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"This needs the package {package!r}; install it with pip install 'skselect[{extra}]'."
        ) from error


def check_file_columns(
    y_true: str | None,
    y_proba: str | Sequence[str] | None,
    confidence: str | None,
    loss: str | None,
    labels: Any,
) -> list[str]:
    """Return the columns to read: label and probabilities, or confidence and loss."""
    by_class = y_true is not None and y_proba is not None
    by_row = confidence is not None and loss is not None
    half = (y_true is None) != (y_proba is None) or (confidence is None) != (loss is None)
    if by_class == by_row or half:
        raise ValueError(
            "Name the columns of the label and of the probabilities, y_true= and y_proba=, or "
            "those of a confidence and of the error, confidence= and loss=, and not both."
        )
    if not by_class:
        return [str(confidence), str(loss)]
    if labels is None:
        raise ValueError(
            "labels is missing: one batch of rows need not hold every class, so pass all "
            "classes in the order of the columns of y_proba."
        )
    proba = [y_proba] if isinstance(y_proba, str) else list(y_proba or [])
    return [str(y_true), *proba]


def check_files(given: Path, files: Sequence[Path]) -> None:
    """Refuse a path behind which there is no file."""
    if not files or not all(file.is_file() for file in files):
        raise ValueError(f"paths: {str(given)!r} is no file, and no *.parquet files are below it.")


def check_any_path(n: int) -> None:
    """Refuse an empty list of paths."""
    if n == 0:
        raise ValueError("paths is empty; name at least one file.")


def read_or_name(read: Callable[[Path], Any], path: Path) -> Any:
    """Read a file, or say which one cannot be read."""
    try:
        return read(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from error


def check_parquet_columns(present: Sequence[str], wanted: Sequence[str], path: Path) -> None:
    """Refuse a file that lacks a column."""
    missing = [name for name in wanted if name not in present]
    if missing:
        raise ValueError(f"{path} has no column {missing}; it has {list(present)[:20]}.")
    twice = [name for name in wanted if list(present).count(name) > 1]
    if twice:
        raise ValueError(f"{path} has several columns of the name {twice}.")


def check_no_nulls(n_nulls: int, name: str, path: Path) -> None:
    """Refuse missing values."""
    if n_nulls:
        raise ValueError(f"{path}: the column {name!r} has {n_nulls} missing values.")


def check_same_blocks(n_true: int, n_proba: int) -> None:
    """Refuse labels and probabilities that are cut into different blocks of rows."""
    if n_true == 0:
        raise ValueError("y_true has no blocks of rows; at least one row is needed.")
    if n_true != n_proba:
        raise ValueError(
            f"y_true comes in {n_true} blocks of rows and y_proba in {n_proba}; rechunk one of "
            "them, as in y_true.rechunk(y_proba.chunks[0])."
        )


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a file to write that takes the place of `path` at the end, or leaves it as it was.

    A link stays a link: the file behind it is replaced. Written directly are a device, a pipe,
    and a file whose folder takes no other.
    """
    check_output(path, "path")
    target = Path(os.path.realpath(path))
    if _is_device(path) or (target.is_file() and not os.access(target.parent, os.W_OK)):
        with naming_output(str(path)):
            yield path
        return
    part = target.with_name(f".skselect-{secrets.token_hex(8)}.part")
    with naming_output(str(path), instead_of=part):
        try:
            _make_like(part, target)
            yield part
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file or nothing."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_together(texts: Mapping[Path, str]) -> None:
    """Write all of these files, or leave all of them as they were."""
    with ExitStack() as stack:
        for path, text in texts.items():
            stack.enter_context(_put_back_on_failure(path, text.encode()))
        for path, text in texts.items():
            stack.enter_context(whole_file(path)).write_bytes(text.encode())


def _is_device(path: Path) -> bool:
    """Tell whether there is something that no file can replace, such as /dev/stdout or a pipe."""
    return path.exists() and not path.is_file()


def _make_like(part: Path, target: Path) -> None:
    """Make an empty file with the owner and the mode of the one that it is to replace."""
    try:
        old = target.stat()
    except FileNotFoundError:
        part.touch(mode=0o666, exist_ok=False)  # less what the user's umask takes away
        return
    part.touch(mode=0o600, exist_ok=False)
    if hasattr(os, "chown"):  # not on Windows
        with suppress(OSError):  # who may not give a file away keeps it
            os.chown(part, old.st_uid, old.st_gid)
    part.chmod(stat.S_IMODE(old.st_mode))


@contextmanager
def _put_back_on_failure(path: Path, new: bytes) -> Iterator[None]:
    """Restore what a file held if something fails after `new` has taken its place."""
    old = path.read_bytes() if path.is_file() else None
    try:
        yield
    except BaseException:
        if path.is_file() and path.read_bytes() == new:
            if old is None:
                Path(os.path.realpath(path)).unlink()
            else:
                with whole_file(path) as part:
                    part.write_bytes(old)
        raise


@contextmanager
def naming_output(name: str, instead_of: Path | None = None) -> Iterator[None]:
    """Say what it is that cannot be written: a full disk names nothing."""
    try:
        yield
    except OSError as error:
        full = error.filename is None and error.errno in _NO_ROOM
        if full or (error.filename is not None and error.filename == str(instead_of)):
            raise OSError(error.errno, os.strerror(error.errno or 0), name) from error
        raise


def check_output(path: Path, argument: str) -> None:
    """Refuse a file that cannot be written where it is wanted, before anything is computed."""
    if not path.parent.is_dir():
        raise ValueError(f"{argument}: there is no folder {str(path.parent)!r} to write into.")
    if path.is_dir():
        raise ValueError(f"{argument}: {str(path)!r} is a folder; name a file in it.")
    if path.is_file() and _is_open_stream(path):
        raise ValueError(
            f"{argument}: {str(path)!r} is where the standard output (or error) of this program "
            "goes, and would be replaced; choose another name."
        )


def _is_open_stream(path: Path) -> bool:
    """Tell whether a regular file is the standard output or error, as /dev/stdout may be."""
    for descriptor in (1, 2):
        with suppress(OSError):  # it is closed
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                return True
    return False
