"""What the reruns on real tables share: loading features and labels, and splitting rows."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tables import load_dataset

#: A text column with more values identifies rows, such as the time stamp of accelerometer.
MOST_LEVELS = 100


@dataclass
class Table:
    """Features, classes as 0 .. K-1, and how many of the first rows are the official training part.

    `n_train` is None where there is no official split.
    """

    X: pd.DataFrame
    codes: np.ndarray
    n_train: int | None


def load_table(
    name: str, data_home: Path | None = None, *, complete: bool = False, calibrated: bool = False
) -> Table:
    """Return a data set for models.

    Parameters
    ----------
    name : str
    data_home : Path, default=None
    complete : bool, default=False
        Whether to drop rows with missing values.
    calibrated : bool, default=False
        Whether to drop leaky columns and duplicate rows.
    """
    data = load_dataset(name, data_home=data_home, dropna=complete)
    X, y, n_train = data.data, data.target, data.n_train
    if calibrated:
        X = X.drop(columns=data.leaky_features)
        kept = ~X.assign(_target=y).duplicated().to_numpy()
        X, y = X[kept], y[kept]
        n_train = None if n_train is None else int(kept[:n_train].sum())
    texts = X.select_dtypes(["category", "object", "string"])
    names = [column for column in texts if texts[column].nunique() > MOST_LEVELS]
    codes = np.unique(y.astype(str), return_inverse=True)[1]
    return Table(X.drop(columns=names).reset_index(drop=True), codes, n_train)


def split_rows(table: Table, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and to test on: the official split, or 80 % and 20 %."""
    rows = np.arange(len(table.codes))
    if table.n_train is not None:
        return rows[: table.n_train], rows[table.n_train :]
    train, test = train_test_split(rows, test_size=0.2, stratify=table.codes, random_state=seed)
    return train, test


def make_encoder(*, scale: bool):
    """Return a transformer from any table to numbers.

    Trees (`scale=False`) get numbers as they are, gaps included; others get them standardised,
    gaps filled with the median.
    """
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
    names = make_column_selector(dtype_include=["category", "object", "string", "bool"])
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return make_column_transformer(
        (one_hot, names),
        (numbers if scale else "passthrough", make_column_selector(dtype_include="number")),
        verbose_feature_names_out=False,
    )
