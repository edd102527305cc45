"""Files, their columns, and packages that need not be installed."""

from __future__ import annotations

import errno
import importlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
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


def read_or_name(read: Callable[[Path], Any], path: Path) -> Any:
    """Read a file, or say which one cannot be read."""
    try:
        return read(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from error


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


def check_any_rows(n: int, table: str) -> None:
    """Refuse a table without rows."""
    if n == 0:
        raise ValueError(f"{table} has no rows.")
