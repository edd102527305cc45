"""Real tables, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from skselect.datasets import _sources as sources
from skselect.datasets._registry import TARGET, Entry, find_entry, registry
from skselect.exceptions import DatasetNotFoundError


def load_dataset(
    name: str,
    *,
    data_home: str | Path | None = None,
    return_X_y: bool = False,
    download_if_missing: bool = True,
    dropna: bool = False,
) -> Bunch | tuple[pd.DataFrame, pd.Series]:
    """Load a public data set for classification.

    It is looked for in `data_home`, in the folder that the environment variable
    ``SKSELECT_DATA`` names, in a cache below scikit-learn's data home, and among the tables that
    scikit-learn ships; else it is downloaded from OpenML or UCI and kept in the cache.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`.
    data_home : str or Path, default=None
        Folder of Parquet files, one per data set: ``adult.parquet`` with the label in the column
        ``target``. Downloads are kept there too.
    return_X_y : bool, default=False
        Return features and labels only.
    download_if_missing : bool, default=True
        Whether to ask OpenML and UCI. Needs ``pip install 'skselect[datasets]'``.
    dropna : bool, default=False
        Leave out rows with missing values.

    Returns
    -------
    Bunch, or DataFrame of shape (n, d) and Series of shape (n,)
        The Bunch has these attributes:

        ======================================  =================================================
        ``data``, ``target``, ``frame``         features, labels (numbers or strings), and both
        ``feature_names``, ``target_names``     all columns but the target; the classes, sorted
        ``categorical_names``                   columns of categories
        ``positive_class``                      the class of interest of two, or None
        ``n_train``                             that many rows at the top are the official
                                                training part; None where there is none
        ``leaky_features``                      columns to leave out of an honest model
        ``license``, ``citation``, ``source``   texts; where this copy was found
        ``DESCR``                               all of this as text, with the known pitfalls
        ======================================  =================================================

    Raises
    ------
    ValueError
        If the name is unknown, or a file's contents are not those of the registered table.
    skselect.datasets.DatasetNotFoundError
        If it is not found; says what was tried and how to get it. It is an OSError.
    ImportError
        If a package to read or download it is missing.

    See Also
    --------
    list_datasets : What there is.

    Examples
    --------
    >>> from skselect.datasets import load_dataset
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
    seen = set(target.unique().tolist())  # fewer, if `dropna` left all rows of a class out
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
        As for :func:`load_dataset`.

    Returns
    -------
    DataFrame
        One row per data set, indexed by name. ``n_categorical`` and ``n_text`` count the features
        that are categories and free text, ``majority`` is the accuracy of a constant answer,
        ``found`` says where it would come from without a download ("" if nowhere).

    Examples
    --------
    >>> from skselect.datasets import list_datasets
    >>> table = list_datasets()
    >>> table.loc["adult", ["title", "n_rows", "positive_class"]].to_dict()
    {'title': 'Adult / Census Income', 'n_rows': 48842, 'positive_class': '>50K'}
    >>> table.query("n_classes == 2 and n_rows > 10_000").index[:3].tolist()
    ['accelerometer', 'adult', 'bank_marketing']
    """
    places = list(sources.folders(data_home))
    rows = {name: _summarize(entry, places) for name, entry in registry().items()}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("name")
    return table.astype(dict.fromkeys(["n_train", "openml", "uci"], "Int64"))


def _find(entry: Entry, data_home: Any, download_if_missing: bool) -> sources.Found:
    """Return the table from the first place that has it, or say where it was looked for."""
    tried = []
    for place, folder in sources.folders(data_home):
        path = sources.find_file(entry, folder)
        if path is not None:
            return sources.read(path, entry), place
        tried.append(f"{place}: no {entry.name}.parquet in {folder}")
    found = sources.load_embedded(entry)
    if found is None and download_if_missing:
        keep_in = sources.cache_folder() if data_home is None else Path(data_home).expanduser()
        found = sources.download(entry, keep_in, tried)
    elif found is None:
        tried.append("no download: download_if_missing=False")
    if found is None:
        lines = [f"The data set {entry.name!r} is not on this machine. Tried:"]
        lines += [f"  - {one}" for one in tried]
        lines += ["To get it:", *(f"  - {one}" for one in _advice(entry))]
        raise DatasetNotFoundError("\n".join(lines))
    return found


def _advice(entry: Entry) -> list[str]:
    advice = [
        f"name the folder that holds {entry.name}.parquet: data_home=, or SKSELECT_DATA in the "
        "environment"
    ]
    advice += [
        f"or, with a connection, let it be downloaded from {source} ({url})"
        for source, (url, _) in sources.addresses(entry).items()
    ]
    shipped = [name for name, other in registry().items() if "scikit-learn" in other.sources]
    advice.append(f"or take one that scikit-learn ships: {', '.join(shipped)}")
    return advice


def _summarize(entry: Entry, places: list[tuple[str, Path]]) -> dict[str, Any]:
    here = [place for place, folder in places if sources.find_file(entry, folder) is not None]
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
        lines.append(f"Leave out of an honest model: {', '.join(entry.leaky_features)}.")
    lines += [entry.notes] if entry.notes else []
    return "\n".join([*lines, "", f"Licence: {entry.license}", f"Citation: {entry.citation}"])
