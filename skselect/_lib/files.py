"""Files written whole or not at all, JSON with a digest, progress bars, optional packages."""

from __future__ import annotations

import errno
import hashlib
import importlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

# Seconds before a progress bar appears.
_BAR_DELAY = 1.0
# Rows from which on a line says what is being computed.
_MANY_ROWS = 100_000
# Error numbers of a full disk, a full quota and a file above the size limit.
_NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


def import_extra(module: str, package: str) -> Any:
    """Import a module of an optional package, or say how pip installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"This needs an optional package; install it with pip install {package!r}."
        ) from error


def read_parquet(read: Callable[[Path], Any], path: Path) -> Any:
    """Read a Parquet file with a function of a library, or say which file cannot be read."""
    try:
        return read(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from error


def row_bar(total: int | None, name: str, *, wanted: bool = True) -> Any:
    """Return a progress bar over rows, on standard error; a silent one where that is no terminal.

    A file that is read within a second shows none.
    """
    from tqdm import tqdm  # noqa: PLC0415 - not needed to import the library

    look = {"unit": " rows", "unit_scale": True, "leave": False, "delay": _BAR_DELAY}
    return tqdm(total=total, desc=name, disable=None if wanted else True, **look)


def waiting_line(text: str, n_rows: int) -> Any:
    """Show on a terminal, in a `with` block, what takes long for many rows."""
    from tqdm import tqdm  # noqa: PLC0415 - not needed to import the library

    is_hidden = None if n_rows >= _MANY_ROWS else True
    return tqdm(desc=text, bar_format="{desc} ...", leave=False, disable=is_hidden)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a new file to write; at the end it replaces `path`. After an error nothing changes.

    A link stays a link: the file behind it is replaced. Devices and pipes are written directly.
    """
    check_output(path, "path")
    target = Path(os.path.realpath(path))
    if _is_device(path):
        with naming_output(str(path)):
            yield path
        return
    part = target.with_name(f".skselect-{secrets.token_hex(8)}.part")
    with naming_output(str(path), instead_of=part), ExitStack() as stack:
        stack.callback(part.unlink, missing_ok=True)
        part.touch(mode=0o600 if target.exists() else 0o666, exist_ok=False)  # less the umask
        if target.exists():
            shutil.copymode(target, part)
        yield part
        _flush(part)
        part.replace(target)
        with suppress(OSError):  # not every system can
            _flush(target.parent)


def _flush(path: Path) -> None:
    """Have a file, or the names in a folder, written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_output(path: Path, argument: str) -> None:
    """Refuse a path that cannot be written, before anything is computed."""
    if not path.parent.is_dir():
        raise ValueError(f"{argument}: there is no folder {str(path.parent)!r} to write into.")
    if path.is_dir():
        raise ValueError(f"{argument}: {str(path)!r} is a folder; name a file in it.")
    folder = Path(os.path.realpath(path)).parent
    if not _is_device(path) and folder.is_dir() and not os.access(folder, os.W_OK):
        raise ValueError(
            f"{argument}: no file can be made in the folder {str(folder)!r}, but {path.name!r} is "
            "written there as a new file first, so that it is whole or as it was. Make the folder "
            "writable, or choose another."
        )


def _is_device(path: Path) -> bool:
    """Tell whether `path` is not a regular file but, say, /dev/stdout or a pipe."""
    return path.exists() and not path.is_file()


@contextmanager
def naming_output(name: str, instead_of: Path | None = None) -> Iterator[None]:
    """Put `name` into an error that names no file (a full disk) or the file `instead_of`."""
    try:
        yield
    except OSError as error:
        full = error.filename is None and error.errno in _NO_ROOM
        if full or (error.filename is not None and error.filename == str(instead_of)):
            raise OSError(error.errno, os.strerror(error.errno or 0), name) from error
        raise


def write_whole(path: Path, text: str) -> None:
    """Write the whole text, or leave the file as it was; see :func:`whole_file`."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def give_text(text: str, path: Any, end: str = "") -> str | None:
    """Return a text where there is no path, else write it there, with its `end`."""
    if path is None:
        return text
    write_whole(Path(path), text + end)
    return None


def write_together(texts: Mapping[Path, str]) -> None:
    """Write all of these files whole before the first of them replaces an old one."""
    with ExitStack() as stack:
        for path, text in texts.items():
            stack.enter_context(whole_file(path)).write_text(text, encoding="utf-8")


# JSON files that end with a digest of what they say ----------------------------------------------


def read_json(path_or_text: Any, kind: str) -> Any:
    """Return the content of a JSON file, or of the text itself; `kind` names the file in errors."""
    from skselect._lib.decide import distinct_keys  # noqa: PLC0415 - help needs no numpy

    if not isinstance(path_or_text, str | os.PathLike):
        hint = " It has its policy already: .policy_" if hasattr(path_or_text, "policy_") else ""
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"path_or_text must be the name of a {kind} or its text, got "
            f"{type(path_or_text).__name__}.{hint}"
        )
    text = str(path_or_text).removeprefix("\ufeff")
    if not text.strip():
        raise ValueError(f"path_or_text is empty; pass the name of a {kind}, or its whole text.")
    source: str | bytes = text
    if not text.lstrip().startswith("{"):
        try:
            source = Path(path_or_text).read_bytes()
        except OSError as error:
            raise ValueError(
                f"path_or_text: there is no {kind} {text[:200]!r} ({error.strerror})."
            ) from error
    try:
        # Bytes may be UTF-16 or begin with a byte order mark, as Windows writes them.
        return json.loads(
            source,
            parse_float=_parse_finite,
            parse_constant=_parse_finite,
            object_pairs_hook=distinct_keys,
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This is not a {kind}; it is damaged JSON: {error}") from error


def restore_stored(
    stored: Any, what: str, schema: str, version: int, restore: Callable[[dict[str, Any]], T]
) -> T:
    """Rebuild what a JSON file holds; refuse another schema or version, and damaged values."""
    if not isinstance(stored, dict) or stored.get("schema") != schema:
        raise ValueError(f"This JSON is no {what}: its 'schema' is not {schema!r}.")
    stored_version = stored.get("version")
    if type(stored_version) is not int or stored_version != version:
        raise ValueError(
            f"This {what} has the format version {stored_version!r}, but this skselect reads "
            f"version {version}: for a higher one update skselect; a lower one was never released, "
            "so make it again."
        )
    try:
        return restore(stored)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError,
            RecursionError) as error:  # fmt: skip
        raise ValueError(
            f"The {what} is damaged or was changed ({type(error).__name__}: {error})."
        ) from error


def _parse_finite(text: str) -> float:
    """Parse a number of a JSON file; refuse NaN and numbers too large for a float."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def digest_json(stored: Mapping[str, Any] | str) -> str:
    """Return a digest of all that a JSON file (or text) says but its digest, in any layout."""
    text = stored if isinstance(stored, str) else json.dumps(stored)
    plain = json.loads(text, parse_float=_parse_number)
    plain.pop("digest", None)
    _refuse_deep(plain)
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode())
    return digest.hexdigest()


#: Values of a JSON file are nested at most so deep; Python's own limit would end in a traceback.
_DEEPEST = 100


def _refuse_deep(value: Any, room: int = _DEEPEST) -> None:
    """Refuse values that are nested too deep."""
    if room == 0:
        raise ValueError(f"JSON: values are nested more than {_DEEPEST} deep.")
    inner = list(value.values()) if isinstance(value, dict) else value
    if isinstance(inner, list):
        for part in inner:
            _refuse_deep(part, room - 1)


def _parse_number(text: str) -> float:
    """Parse a number, 1.0 as the integer 1: some programs rewrite one as the other."""
    number = float(text)
    return int(number) if number.is_integer() else number


def replace_nan(value: Any) -> Any:
    """Replace nan, which JSON cannot hold, by None in nested values."""
    if isinstance(value, dict):
        return {key: replace_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(replace_nan, value))
    if isinstance(value, float) and math.isnan(value):
        return None
    return value
