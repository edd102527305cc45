"""Evaluation of Parquet files that do not fit in memory, in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib.checks.rows import check_any_rows, check_columns
from skselect._lib.files import import_extra, read_parquet, row_bar
from skselect.metrics._evaluate import DEFAULT_METRICS, requests
from skselect.streaming.state import SelectiveState

#: Rows read at a time.
_BATCH = 1 << 20

Paths = str | Path | Iterable[str | Path]


def evaluate_parquet(
    paths: Paths,
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = DEFAULT_METRICS,
    **options: Any,
) -> pd.Series:
    """Compute metrics of predictions in Parquet files, whatever their size.

    Parameters
    ----------
    paths : str, Path or iterable of them
        Files, folders (all ``*.parquet`` below them) or patterns such as ``"run-*.parquet"``.
    metrics : iterable of str, or mapping of str to dict
        Short names as in ``skselect.metrics.SPECS``. A mapping gives the parameters of each, such
        as ``{"cwsa": {"threshold": .8}, "aurc": {}}``; metrics that read classes are refused.
    **options
        The columns and how to count them, as in :func:`skselect.streaming.parquet_state`:
        ``y_true="label", y_proba=["p_no", "p_yes"], labels=["no", "yes"]``, or
        ``confidence="confidence", loss="error"``.

    Returns
    -------
    Series
        As :meth:`skselect.SelectiveState.evaluate`.

    Raises
    ------
    ValueError
        If no file is found, a column is missing or holds nulls, or a value is impossible; the
        message names the file.

    See Also
    --------
    skselect.streaming.parquet_state : The state itself, for curves, thresholds and intervals.

    Examples
    --------
    >>> import pandas as pd, tempfile, pathlib
    >>> from skselect import evaluate_parquet
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> table = pd.DataFrame({"confidence": [.9, .8, .7, .6], "error": [0, 0, 0, 1]})
    >>> table.to_parquet(folder / "part.parquet")
    >>> columns = {"confidence": "confidence", "loss": "error"}
    >>> evaluate_parquet(folder, ["aurc", "augrc"], **columns, progress=False)
    aurc     0.06250
    augrc    0.03125
    dtype: float64
    """
    requests(metrics)  # refuses unknown names before the files are read
    state = parquet_state(paths, **options)
    check_any_rows(state.n_rows, str(paths))
    return state.evaluate(metrics)


def parquet_state(
    paths: Paths,
    *,
    y_true: str | None = None,
    y_proba: str | Sequence[str] | None = None,
    confidence: str | None = None,
    loss: str | None = None,
    labels: Any = None,
    progress: bool = True,
) -> SelectiveState:
    """Count the predictions in Parquet files, for curves, thresholds and intervals.

    Parameters
    ----------
    paths : str, Path or iterable of them
        Files, folders (all ``*.parquet`` below them) or patterns such as ``"run-*.parquet"``.
    y_true, y_proba : str and str or list of str, default=None
        Columns of the true label and of the class probabilities, in the order of `labels`; one
        column is the probability of the second of two classes.
    confidence, loss : str and str, default=None
        Instead of them: columns of a confidence in [0, 1] and of the error, 0 or 1.
    labels : array-like of shape (K,), default=None
        All classes, in the order of the columns. Needed with `y_proba`.
    progress : bool, default=True
        Whether to show a progress bar, on a terminal.

    Returns
    -------
    SelectiveState

    Raises
    ------
    ValueError
        As :func:`skselect.evaluate_parquet`.

    Examples
    --------
    >>> import pandas as pd, tempfile, pathlib
    >>> from skselect.streaming import parquet_state
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> table = pd.DataFrame({"confidence": [.9, .8, .7, .6], "error": [0, 0, 0, 1]})
    >>> table.to_parquet(folder / "part.parquet")
    >>> state = parquet_state(folder, confidence="confidence", loss="error", progress=False)
    >>> state.finalize().coverage_at_risk(0.0)
    0.75
    """
    pq = import_extra("pyarrow.parquet", "pyarrow")
    _check_named(y_true, y_proba, confidence, loss)
    if y_true is not None and labels is None:
        raise ValueError(
            "labels is missing: one batch of rows need not hold every class, so pass all "
            "classes in the order of the columns of y_proba."
        )
    state = SelectiveState(labels=labels)
    if y_true is None:
        count: Callable[[Any, Any], Any] = state.update_confidence
        columns = [str(confidence), str(loss)]
    else:
        count = state.update
        of_classes = [y_proba] if isinstance(y_proba, str) else list(y_proba or [])
        columns = [y_true, *of_classes]
    files = find_files(paths)
    n_rows = 0
    for file in files:  # check every file before counting the first row
        n_rows += _count_rows(pq, file, columns)
    with row_bar(n_rows, "evaluate_parquet", wanted=progress) as bar:
        for file in files:
            with pq.ParquetFile(file) as opened:
                for batch in opened.iter_batches(_BATCH, columns=columns, use_threads=False):
                    _count(count, batch, columns, file)
                    bar.update(batch.num_rows)
    return state


def _check_named(*columns: Any) -> None:
    """Refuse anything but two columns: of label and probabilities, or of confidence and error."""
    is_named = [name is not None for name in columns]
    if is_named not in ([True, True, False, False], [False, False, True, True]):
        raise ValueError(
            "Name the columns of the label and of the probabilities, y_true= and y_proba=, or "
            "those of a confidence and of the error, confidence= and loss=, and not both."
        )


def _count_rows(pq: Any, file: Path, columns: list[str]) -> int:
    """Return how many rows a file says that it holds; refuse one without these columns."""
    metadata = read_parquet(pq.read_metadata, file)
    names = metadata.schema.to_arrow_schema().names
    check_columns(columns, names, str(file))
    for name in columns:
        if names.count(name) > 1:
            raise ValueError(f"{file} has several columns of the name {name!r}.")
    return int(metadata.num_rows)


def find_files(paths: Paths) -> list[Path]:
    """Return the files that paths, folders and patterns match, sorted, each once."""
    patterns = [paths] if isinstance(paths, str | Path) else list(paths)
    if not patterns:
        raise ValueError("paths is empty; name at least one file.")
    files: set[Path] = set()
    for pattern in map(Path, patterns):
        matches = [pattern]
        if pattern.is_dir():
            matches = list(pattern.rglob("*.parquet"))
        elif not pattern.is_file():
            matches = list(pattern.parent.glob(pattern.name))
        if not matches or not all(file.is_file() for file in matches):
            raise ValueError(
                f"paths: {str(pattern)!r} is not a file, and there are no *.parquet files below it."
            )
        files.update(file.resolve() for file in matches)
    return sorted(files)


def _count(count: Callable[[Any, Any], Any], batch: Any, columns: list[str], path: Path) -> None:
    """Count a batch: the first column, and the second one or a table of the others."""
    if batch.num_rows == 0:
        return
    values = []
    for name in columns:
        column = batch.column(name)
        if column.null_count:
            raise ValueError(f"{path}: the column {name!r} has {column.null_count} missing values.")
        values.append(column.to_numpy(zero_copy_only=False))
    subject, *others = values
    if len(others) == 1:
        (table,) = others
    else:
        table = np.column_stack(others)
    try:
        count(subject, table)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
