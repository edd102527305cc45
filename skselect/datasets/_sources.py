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

from skselect._files import import_extra, read_parquet
from skselect.datasets._registry import TARGET, Entry, as_registered, compute_digest

#: Seconds to wait for an answer of a server.
_PATIENCE = 4
# Digits of a digest in the name of a downloaded file.
_SHORT = 12
_VARIABLE = "SKSELECT_DATA"

#: A table and where it came from.
Found = tuple[pd.DataFrame, str]


def folders(data_home: Any) -> Iterator[tuple[str, Path]]:
    """Yield the folders to look into, in order, with what they are called."""
    if data_home is not None:
        yield "data_home", _check_folder("data_home", data_home)
    if os.environ.get(_VARIABLE):
        named = os.environ[_VARIABLE]
        yield _VARIABLE, _check_folder(f"the environment variable {_VARIABLE}", named)
    yield "cache", cache_folder()


def _check_folder(name: str, folder: Any) -> Path:
    """Return the path of a folder that exists."""
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ValueError(f"{name} must be a folder that holds Parquet files, got {str(folder)!r}.")
    return path


def cache_folder() -> Path:
    """Return the folder for downloads, below scikit-learn's data home."""
    return Path(embedded.get_data_home()) / "skselect"


def find_file(entry: Entry, folder: Path) -> Path | None:
    """Return the file of a data set in a folder: the registered copy, or a downloaded one."""
    registered = folder / f"{entry.name}.parquet"
    if registered.is_file():
        return registered
    downloaded = sorted(folder.glob(f"{entry.name}-{'[0-9a-f]' * _SHORT}.parquet"))
    return downloaded[0] if downloaded else None


def read(path: Path, entry: Entry) -> pd.DataFrame:
    """Read a file, and refuse it if its contents do not match its name."""
    parquet = import_extra("pyarrow.parquet", "pyarrow", "datasets")
    table = read_parquet(lambda file: parquet.read_table(file).to_pandas(), path)
    is_registered = path.stem == entry.name
    digest = compute_digest(table)
    _check_contents(digest, entry.digest if is_registered else path.stem[-_SHORT:], path)
    if not is_registered:
        _warn_differs(entry)
    return table


def _check_contents(found: str, registered: str, path: Path) -> None:
    """Refuse contents that do not match the digest."""
    if not found.startswith(registered):
        raise ValueError(
            f"{path} does not hold the table that is registered under this name: the SHA-256 of "
            f"its contents is {found[:12]}..., not {registered[:12]}... It is damaged or another "
            "version; delete it or move it away."
        )


def load_embedded(entry: Entry) -> Found | None:
    """Return the table that scikit-learn itself ships, if it does."""
    name = entry.sources.get("scikit-learn")
    if name is None:
        return None
    loaded = getattr(embedded, f"load_{name}")(as_frame=True)
    frame = loaded.frame.copy()
    if entry.target_dtype == "str":
        frame[TARGET] = pd.Series(loaded.target_names.take(loaded.target).tolist())
    _check_contents(compute_digest(frame), entry.digest, Path(f"load_{name} of scikit-learn"))
    return frame, "scikit-learn"


# Downloads ---------------------------------------------------------------------------------


def download(entry: Entry, folder: Path, tried: list[str]) -> Found | None:
    """Download the table and keep it in a folder; add what fails to `tried`."""
    for source, (url, reader) in addresses(entry).items():
        try:
            frame = as_registered(_fetch(url, reader), entry)
        except (OSError, ValueError) as error:
            tried.append(f"{source}, {url}: {_reason(error)}")
        else:
            _keep(frame, entry, folder)
            return frame, source
    return None


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


def _fetch(url: str, reader: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
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
    """Raise soon on a machine without a network, where looking up a name may take minutes."""
    if getproxies():
        return  # then the proxy looks it up
    host = urlsplit(url).hostname
    found: list[Any] = []
    look_up = threading.Thread(target=lambda: found.extend(_look_up(host)), daemon=True)
    look_up.start()
    look_up.join(_PATIENCE)
    if not found:
        raise OSError("no connection")


def _look_up(host: str | None) -> list[Any]:
    try:
        return socket.getaddrinfo(host, 443)
    except OSError:
        return []


def _reason(error: Exception) -> str:
    """Return what went wrong in a few words."""
    answered = getattr(error, "response", error) is not None
    return str(error).splitlines()[0] if answered else "no connection"


def _keep(frame: pd.DataFrame, entry: Entry, folder: Path) -> None:
    """Write a table elsewhere and move it to its place, so that no half-written file is found."""
    digest = compute_digest(frame)
    name = entry.name
    if digest != entry.digest:
        name += f"-{digest[:_SHORT]}"
        _warn_differs(entry)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        part = Path(aside) / "part.parquet"
        frame.to_parquet(part, compression="zstd")
        part.replace(folder / f"{name}.parquet")


def _warn_differs(entry: Entry) -> None:
    warnings.warn(
        f"This copy of {entry.name!r} was downloaded; rows, classes and missing values are as "
        "registered, but some values or the order of rows differ from the registered copy, so "
        "published results may differ a little.",
        UserWarning, stacklevel=5,
    )  # fmt: skip
