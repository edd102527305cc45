"""Where a data set may lie: folders of Parquet files, scikit-learn, OpenML, UCI."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import pandas as pd
from sklearn import datasets as embedded

from skselect._files import import_extra, read_or_name
from skselect.datasets._registry import TARGET, Entry, digest_of, registered_form

#: Seconds without an answer after which a server counts as out of reach.
_PATIENCE = 4
# So many digits of a digest are enough to tell two copies apart, and short enough for a name.
_SHORT = 12
_VARIABLE = "SKSELECT_DATA"

#: A table and where it came from.
Found = tuple[pd.DataFrame, str]


def folders(data_home: Any) -> Iterator[tuple[str, Path]]:
    """Yield the folders to look into, in order, with what they are called."""
    if data_home is not None:
        yield "data_home", _check_folder("data_home", data_home)
    if os.environ.get(_VARIABLE):
        yield _VARIABLE, _check_folder(f"the environment variable {_VARIABLE}",
                                            os.environ[_VARIABLE])  # fmt: skip
    yield "cache", cache_folder()


def cache_folder() -> Path:
    """Return the folder for downloads, below scikit-learn's data home."""
    return Path(embedded.get_data_home()) / "skselect"


def file_of(entry: Entry, folder: Path) -> Path | None:
    """Return the file of a data set in a folder: the registered copy, or a downloaded one."""
    registered = folder / f"{entry.name}.parquet"
    if registered.is_file():
        return registered
    downloaded = sorted(folder.glob(f"{entry.name}-{'[0-9a-f]' * _SHORT}.parquet"))
    return downloaded[0] if downloaded else None


def read(path: Path, entry: Entry) -> pd.DataFrame:
    """Read a file and refuse other contents than its name promises."""
    parquet = import_extra("pyarrow.parquet", "pyarrow", "datasets")
    table = read_or_name(lambda file: parquet.read_table(file).to_pandas(), path)
    is_registered = path.stem == entry.name
    digest = digest_of(table)
    _check_contents(digest, entry.digest if is_registered else path.stem[-_SHORT:], path)
    if not is_registered:
        _tell_apart(entry)
    return table


def embedded_in_sklearn(entry: Entry) -> Found | None:
    """Return the table that scikit-learn itself ships, if it does."""
    name = entry.sources.get("scikit-learn")
    if name is None:
        return None
    loaded = getattr(embedded, f"load_{name}")(as_frame=True)
    frame = loaded.frame.copy()
    if entry.target_dtype == "str":
        frame[TARGET] = pd.Series(loaded.target_names.take(loaded.target).tolist())
    _check_contents(digest_of(frame), entry.digest, Path(f"load_{name} of scikit-learn"))
    return frame, "scikit-learn"


# Downloads ---------------------------------------------------------------------------------


def downloaded(entry: Entry, folder: Path, tried: list[str]) -> Found | None:
    """Return the table from where it is published and keep it, or note why there is none."""
    for source, (url, reader) in addresses(entry).items():
        try:
            frame = registered_form(_fetched(url, reader), entry)
        except (OSError, ValueError) as error:
            tried.append(f"{source}, {url}: {_reason(error)}")
        else:
            _keep(frame, entry, folder)
            return frame, source
    return None


def _reason(error: Exception) -> str:
    """Return what went wrong in a few words."""
    answered = getattr(error, "response", error) is not None
    return str(error).splitlines()[0] if answered else "no connection"


def addresses(entry: Entry) -> dict[str, tuple[str, Callable[[str], pd.DataFrame]]]:
    """Return the public addresses of a data set and how to read what they serve."""
    found: dict[str, tuple[str, Callable[[str], pd.DataFrame]]] = {}
    if "openml" in entry.sources:
        number = entry.sources["openml"]
        found["OpenML"] = (
            f"https://data.openml.org/datasets/{number // 10000:04d}/{number:04d}/"
            f"dataset_{number}.pq",
            pd.read_parquet,
        )
    if "uci" in entry.sources:
        number = entry.sources["uci"]
        found["UCI"] = (
            f"https://archive.ics.uci.edu/static/public/{number}/data.csv", pd.read_csv
        )  # fmt: skip
    return found


def _fetched(url: str, reader: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    """Download a file with a progress bar, and read it."""
    import_extra("pyarrow", "pyarrow", "datasets")
    import_extra("tqdm", "tqdm", "datasets")
    pooch = import_extra("pooch", "pooch", "datasets")
    pooch.get_logger().setLevel("WARNING")
    _check_name_resolves(url)
    with tempfile.TemporaryDirectory() as folder:
        downloader = pooch.HTTPDownloader(timeout=_PATIENCE, progressbar=True)
        return reader(pooch.retrieve(url, known_hash=None, path=folder, downloader=downloader))


def _check_name_resolves(url: str) -> None:
    """Give up on a machine without a network, where looking up a name may hang for minutes."""
    if getproxies():
        return  # then the proxy looks it up
    host = urlsplit(url).hostname
    found: list[Any] = []
    look_up = threading.Thread(
        target=lambda: found.extend(_addresses_of(host)), daemon=True
    )  # fmt: skip
    look_up.start()
    look_up.join(_PATIENCE)
    if not found:
        raise OSError("no connection")


def _addresses_of(host: str | None) -> list[Any]:
    try:
        return socket.getaddrinfo(host, 443)
    except OSError:
        return []


def _keep(frame: pd.DataFrame, entry: Entry, folder: Path) -> None:
    """Write a table beside its place and move it there, so that no half of it is ever found."""
    digest = digest_of(frame)
    name = entry.name
    if digest != entry.digest:
        name += f"-{digest[:_SHORT]}"
        _tell_apart(entry)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        part = Path(aside) / "part.parquet"
        frame.to_parquet(part, compression="zstd")
        part.replace(folder / f"{name}.parquet")


def _tell_apart(entry: Entry) -> None:
    warnings.warn(
        f"This copy of {entry.name!r} was downloaded; rows, classes and missing values are as "
        "registered, but some values or the order of rows differ from the registered copy, so "
        "published results may differ a little.",
        UserWarning, stacklevel=5,
    )  # fmt: skip


def _check_folder(name: str, folder: Any) -> Path:
    """Return the path of a folder that exists."""
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ValueError(f"{name} must be a folder that holds Parquet files, got {str(folder)!r}.")
    return path


def _check_contents(found: str, registered: str, path: Path) -> None:
    """Refuse a file whose contents are not the ones that its name promises."""
    if not found.startswith(registered):
        raise ValueError(
            f"{path} does not hold the table that is registered under this name: the SHA-256 of "
            f"its contents is {found[:12]}..., not {registered[:12]}... It is damaged or another "
            "version; delete it or move it away."
        )
