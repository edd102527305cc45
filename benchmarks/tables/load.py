"""Real tables, by name."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import pandas as pd
from sklearn import datasets as embedded
from sklearn.utils import Bunch

from skselect._lib.checks import warn_user
from skselect._lib.files import import_extra, read_parquet

from .registry import TARGET, Entry, as_registered, compute_digest, find_entry, registry

#: Seconds to wait for a server.
_PATIENCE = 4
# Digits of the digest in the name of a downloaded file.
_SHORT = 12
_VARIABLE = "SKSELECT_DATA"

#: A table and where it came from.
Found = tuple[pd.DataFrame, str]


class DatasetNotFoundError(OSError):
    """A data set is neither on this machine nor can it be downloaded."""


def load_dataset(
    name: str,
    *,
    data_home: str | Path | None = None,
    return_X_y: bool = False,
    download_if_missing: bool = True,
    dropna: bool = False,
) -> Bunch | tuple[pd.DataFrame, pd.Series]:
    """Load a public data set for classification.

    The table is searched in this order: in `data_home`, in the folder named by the environment
    variable ``SKSELECT_DATA``, in a cache below scikit-learn's data home, and among the tables
    that scikit-learn ships. Otherwise it is downloaded from OpenML or UCI and cached.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`.
    data_home : str or Path, default=None
        Folder of Parquet files, one per data set: ``adult.parquet`` with the label in the column
        ``target``. Downloads are saved there too.
    return_X_y : bool, default=False
        Return features and labels only.
    download_if_missing : bool, default=True
        Whether to download from OpenML and UCI. Needs ``pip install '.[benchmarks]'``.
    dropna : bool, default=False
        Leave out rows with missing values.

    Returns
    -------
    Bunch, or DataFrame of shape (n, d) and Series of shape (n,)
        The Bunch has these attributes:

        ======================================  =================================================
        ``data``, ``target``, ``frame``         features, labels (numbers or strings), and both
        ``feature_names``, ``target_names``     all columns but the target; the classes, sorted
        ``categorical_names``                   categorical columns
        ``positive_class``                      the class of interest of two, or None
        ``n_train``                             that many rows at the top are the official
                                                training part; None where there is none
        ``leaky_features``                      columns to leave out, because they are not
                                                known when a prediction is needed
        ``license``, ``citation``, ``source``   texts; where this copy was found
        ``DESCR``                               all of this as text, with the known pitfalls
        ======================================  =================================================

    Raises
    ------
    ValueError
        If the name is unknown, or a file does not contain the registered table.
    DatasetNotFoundError
        If it is not found; the message says how to get it. It is an OSError.
    ImportError
        If a package to read or download it is missing.

    See Also
    --------
    list_datasets : All data sets.

    Examples
    --------
    >>> from tables import load_dataset
    >>> bunch = load_dataset("breast_cancer")
    >>> bunch.data.shape, bunch.target_names, bunch.positive_class, bunch.source
    ((569, 30), ['benign', 'malignant'], 'malignant', 'scikit-learn')
    """
    entry = find_entry(name)
    frame, source = _find(entry, data_home, download_if_missing)
    n_train = entry.n_train
    description = _describe(entry)
    if dropna:
        whole = frame.notna().all(axis=1).to_numpy()
        if not whole.any():
            empty = [column for column in frame.columns if frame[column].isna().all()]
            raise ValueError(
                f"dropna=True would leave no row of {name!r}: the columns {empty} have no values; "
                "leave them out yourself."
            )
        description += f"\nHere: the {whole.sum():,} rows without missing cells."
        n_train = None if n_train is None else int(whole[:n_train].sum())
        frame = frame[whole].reset_index(drop=True)
    data, target = frame.drop(columns=TARGET), frame[TARGET]
    if return_X_y:
        return data, target
    seen = set(target.unique().tolist())  # dropna may have removed a whole class
    return Bunch(
        data=data, target=target, frame=frame,
        feature_names=list(data.columns),
        target_names=[label for label in entry.classes if label in seen],
        categorical_names=list(entry.categorical), positive_class=entry.positive_class,
        n_train=n_train, leaky_features=list(entry.leaky_features),
        license=entry.license, citation=entry.citation, source=source, DESCR=description,
    )  # fmt: skip


def list_datasets(*, data_home: str | Path | None = None) -> pd.DataFrame:
    """Return what is known about all data sets, without loading one.

    Parameters
    ----------
    data_home : str or Path, default=None
        Folder of Parquet files, one per data set, in which is looked first.

    Returns
    -------
    DataFrame
        One row per data set, indexed by name. ``n_categorical`` and ``n_text`` count the features
        that are categories and free text, ``majority`` is the accuracy of always
        predicting the largest class, ``found`` says where the table is on this machine ("" if it
        must be downloaded).

    Examples
    --------
    >>> from tables import list_datasets
    >>> table = list_datasets()
    >>> table.loc["adult", ["title", "n_rows", "positive_class"]].to_dict()
    {'title': 'Adult / Census Income', 'n_rows': 48842, 'positive_class': '>50K'}
    >>> table.query("n_classes == 2 and n_rows > 10_000").index[:3].tolist()
    ['accelerometer', 'adult', 'bank_marketing']
    """
    places = list(folders(data_home))
    rows = {name: _summarize(entry, places) for name, entry in registry().items()}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("name")
    return table.astype(dict.fromkeys(["n_train", "openml", "uci"], "Int64"))


def _find(entry: Entry, data_home: Any, download_if_missing: bool) -> Found:
    """Return the table from the first place that has it; else raise, naming all places."""
    tried = []
    for place, folder in folders(data_home):
        path = find_file(entry, folder)
        if path is not None:
            return read(path, entry), place
        tried.append(f"{place}: no {entry.name}.parquet in {folder}")
    found = load_embedded(entry)
    if found is None and download_if_missing:
        keep_in = cache_folder() if data_home is None else Path(data_home).expanduser()
        found = download(entry, keep_in, tried)
    elif found is None:
        tried.append("no download: download_if_missing=False")
    if found is None:
        lines = [f"The data set {entry.name!r} is not on this machine. Tried:"]
        lines += [f"  - {one}" for one in tried]
        lines += ["To get it:", *(f"  - {one}" for one in _list_remedies(entry))]
        raise DatasetNotFoundError("\n".join(lines))
    return found


def _list_remedies(entry: Entry) -> list[str]:
    advice = [
        f"name the folder that holds {entry.name}.parquet: data_home=, or SKSELECT_DATA in the "
        "environment"
    ]
    advice += [
        f"or, with a connection, have it downloaded from {source} ({url})"
        for source, (url, _) in addresses(entry).items()
    ]
    shipped = [name for name, other in registry().items() if "scikit-learn" in other.sources]
    advice.append(f"or take one that scikit-learn ships: {', '.join(shipped)}")
    return advice


def _summarize(entry: Entry, places: list[tuple[str, Path]]) -> dict[str, Any]:
    here = [place for place, folder in places if find_file(entry, folder) is not None]
    here += ["scikit-learn"] if "scikit-learn" in entry.sources else []
    return {
        "title": entry.title, "n_rows": entry.n_rows, "n_features": len(entry.features),
        "n_categorical": len(entry.categorical), "n_classes": len(entry.class_counts),
        "n_text": len(entry.texts), "majority": entry.majority, "n_missing": entry.n_missing,
        "n_duplicates": entry.n_duplicates, "positive_class": entry.positive_class,
        "n_train": entry.n_train, "leaky_features": ", ".join(entry.leaky_features),
        "openml": entry.sources.get("openml"), "uci": entry.sources.get("uci"),
        "license": entry.license, "found": here[0] if here else "",
    }  # fmt: skip


def _describe(entry: Entry) -> str:
    counts = ", ".join(f"{label}: {n:,}" for label, n in entry.class_counts.items())
    lines = [
        f"{entry.title} ({entry.name})",
        "",
        f"{entry.n_rows:,} rows, {len(entry.features)} features, {len(entry.categorical)} of them "
        f"categories, {len(entry.class_counts)} classes.",
        f"Classes: {counts}.",
        f"Missing cells: {entry.n_missing:,}. Rows that repeat another: {entry.n_duplicates:,}.",
    ]
    if entry.n_train is not None:
        lines.append(f"The first {entry.n_train:,} rows are the official training part.")
    if entry.leaky_features:
        lines.append(f"Leaky columns (leave them out): {', '.join(entry.leaky_features)}.")
    lines += [entry.notes] if entry.notes else []
    return "\n".join([*lines, "", f"Licence: {entry.license}", f"Citation: {entry.citation}"])


def folders(data_home: Any) -> Iterator[tuple[str, Path]]:
    """Yield the folders to search, in order, each with its name in messages."""
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
    parquet = import_extra("pyarrow.parquet", "pyarrow")
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
            tried.append(f"{source}, {url}: {_describe_error(error)}")
        else:
            _keep(frame, entry, folder)
            return frame, source
    return None


def addresses(entry: Entry) -> dict[str, tuple[str, Callable[[str], pd.DataFrame]]]:
    """Return by source the address of a data set and the function that reads it."""
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
    import_extra("pyarrow", "pyarrow")
    pooch = import_extra("pooch", "pooch")
    pooch.get_logger().setLevel("WARNING")
    _check_name_resolves(url)
    with tempfile.TemporaryDirectory() as folder:
        downloader = pooch.HTTPDownloader(timeout=_PATIENCE, progressbar=True)
        return reader(pooch.retrieve(url, known_hash=None, path=folder, downloader=downloader))


def _check_name_resolves(url: str) -> None:
    """Fail fast without a network, where looking up a host name may take minutes."""
    if getproxies():
        return  # the proxy looks it up
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


def _describe_error(error: Exception) -> str:
    """Return a short text about a failed download."""
    connected = getattr(error, "response", error) is not None
    return str(error).splitlines()[0] if connected else "no connection"


def _keep(frame: pd.DataFrame, entry: Entry, folder: Path) -> None:
    """Save a table as a temporary file and move it, so that no partial file is found."""
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
    warn_user(
        f"This copy of {entry.name!r} was downloaded; rows, classes and missing values are as "
        "registered, but some values or the order of rows differ from the registered copy, so "
        "published results may differ a little."
    )  # fmt: skip
