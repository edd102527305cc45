"""What is known about each data set: its shape, its classes, its contents, its traps."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from skselect import _validation as check


@dataclass(frozen=True, eq=False)
class Entry:
    """One data set of the registry.

    Parameters
    ----------
    name, title : str
    n_rows : int
    features, categorical : list of str
        All columns but the target, and those that hold categories.
    class_counts : dict of str to int
        Rows per class, by the text of its label.
    target_dtype : {"int64", "str"}
    n_missing, n_duplicates : int
        Missing cells; rows that repeat an earlier one, target included.
    positive_class : object
        The class of interest of two, or None.
    n_train : int or None
        So many rows, the first ones, are the official training part.
    leaky_features : list of str
        Columns that say more about the target than is known in time.
    sources : dict of str to object
        Where to get it: scikit-learn's loader, OpenML's and UCI's number.
    license, citation, notes : str
    digest : str
        Of the contents, see :func:`skselect.datasets._contents.digest_of`.
    texts : list of str
        Columns of text that are no categories.
    """

    name: str
    title: str
    n_rows: int
    features: list[str]
    categorical: list[str]
    class_counts: dict[str, int]
    target_dtype: str
    n_missing: int
    n_duplicates: int
    positive_class: Any
    n_train: int | None
    leaky_features: list[str]
    sources: dict[str, Any]
    license: str
    citation: str
    notes: str
    digest: str
    texts: list[str] = field(default_factory=list)

    @property
    def classes(self) -> list[Any]:
        """The labels, sorted."""
        labels = list(self.class_counts)
        return sorted(map(int, labels)) if self.target_dtype == "int64" else sorted(labels)

    @property
    def majority(self) -> float:
        """The share of the largest class: the accuracy of a constant answer."""
        return max(self.class_counts.values()) / self.n_rows


@cache
def registry() -> dict[str, Entry]:
    """Return all entries by name."""
    text = resources.files("skselect.datasets").joinpath("registry.json").read_text("utf-8")
    return {name: Entry(name=name, **known) for name, known in sorted(json.loads(text).items())}


def entry_of(name: Any) -> Entry:
    """Return one entry, or say which names there are."""
    return registry()[check.check_dataset_name(name, list(registry()))]
