"""Evaluation on a Dask cluster: each block of rows is counted, and the counts are merged.

Workers exchange counts only, no rows. If a worker dies, its blocks are counted again, but only
once in the result: the tasks have no side effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib.arrays import ConfidenceSpec
from skselect._lib.checks.rows import check_labels
from skselect._lib.files import import_extra
from skselect.metrics._evaluate import DEFAULT_METRICS, requests
from skselect.policy.policy import AbstentionPolicy
from skselect.streaming.parquet import Paths, find_files, parquet_state as count_files
from skselect.streaming.state import SelectiveState

#: States that are merged by one task.
_FAN_IN = 8


def evaluate(
    y_true: Any,
    y_proba: Any,
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = DEFAULT_METRICS,
    **options: Any,
) -> pd.Series:
    """Compute metrics of predictions in a Dask collection.

    Parameters
    ----------
    y_true : dask Array, Series, or list of arrays or delayed objects
        True labels. In the same blocks of rows as `y_proba`.
    y_proba : dask Array of shape (n, K) or (n,), DataFrame, or list like `y_true`
        Class probabilities. As from ``DaskXGBClassifier.predict_proba``. Blocks of single columns
        are joined first.
    metrics : iterable of str, or mapping of str to dict
        Short names as in ``skselect.metrics.SPECS``. A mapping gives the parameters of each, such
        as ``{"cwsa": {"threshold": .8}, "aurc": {}}``; metrics that read classes are refused.
    **options
        `labels` and `confidence` of :func:`skselect.dask.state`.

    Returns
    -------
    Series
        As :meth:`skselect.SelectiveState.evaluate`; equal to the result of one process, bit by
        bit.

    Raises
    ------
    ValueError
        If the blocks of labels and probabilities do not match, or a value is impossible.
    ImportError
        If Dask is not installed.

    Notes
    -----
    Dask decides where to compute: on the cluster of the current
    ``dask.distributed.Client``, or in threads if there is none.

    Examples
    --------
    >>> import dask.array as da
    >>> import skselect.dask
    >>> y_true = da.from_array([0, 1, 1, 0], chunks=2)
    >>> y_proba = da.from_array([[.9, .1], [.2, .8], [.6, .4], [.7, .3]], chunks=(2, 2))
    >>> skselect.dask.evaluate(y_true, y_proba, ["aurc", "augrc"])
    aurc     0.06250
    augrc    0.03125
    dtype: float64
    """
    requests(metrics)  # refuses unknown names before the rows are read
    return state(y_true, y_proba, **options).evaluate(metrics)


def state(
    y_true: Any,
    y_proba: Any,
    *,
    labels: Any = None,
    confidence: ConfidenceSpec = "max_proba",
) -> SelectiveState:
    """Count the predictions in a Dask collection, for curves, intervals and thresholds.

    Parameters
    ----------
    y_true : dask Array, Series, or list of arrays or delayed objects
        True labels. In the same blocks of rows as `y_proba`.
    y_proba : dask Array of shape (n, K) or (n,), DataFrame, or list like `y_true`
        Class probabilities.
    labels : array-like of shape (K,), default=None
        All classes, in the order of the columns. None finds them in one more pass over
        `y_true`.
    confidence : {"max_proba", "margin", "entropy", "gini"} or callable, default="max_proba"
        How sure the classifier is of each row. In [0, 1].

    Returns
    -------
    SelectiveState

    Raises
    ------
    ValueError, ImportError
        As :func:`evaluate`.

    Examples
    --------
    >>> import dask.array as da
    >>> import skselect.dask
    >>> y_true = da.from_array([0, 1, 1, 0], chunks=2)
    >>> y_proba = da.from_array([[.9, .1], [.2, .8], [.6, .4], [.7, .3]], chunks=(2, 2))
    >>> skselect.dask.state(y_true, y_proba).finalize().coverage_at_risk(0.0)
    0.75
    """
    dask = import_extra("dask", "dask")
    truths = _row_blocks(y_true)
    probas = _row_blocks(_join_columns(y_proba))
    if not truths:
        raise ValueError("y_true has no blocks of rows; at least one row is needed.")
    if len(truths) != len(probas):
        raise ValueError(
            f"y_true comes in {len(truths)} blocks of rows and y_proba in {len(probas)}; rechunk "
            "one of them, as in y_true.rechunk(y_proba.chunks[0])."
        )
    if labels is None:
        labels = _find_labels(truths)
    empty = SelectiveState(labels=labels, confidence=confidence)
    count = dask.delayed(_count_block, pure=True)
    parts = [count(empty, truth, proba) for truth, proba in zip(truths, probas, strict=True)]
    return _merge_all(parts)


def evaluate_parquet(
    paths: Paths,
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = DEFAULT_METRICS,
    **options: Any,
) -> pd.Series:
    """Compute metrics of predictions in Parquet files, some files to each worker.

    Parameters
    ----------
    paths : str, Path or iterable of them
        Paths that every worker can read.
    metrics : iterable of str, or mapping of str to dict
        Short names as in ``skselect.metrics.SPECS``. A mapping gives the parameters of each, such
        as ``{"cwsa": {"threshold": .8}, "aurc": {}}``; metrics that read classes are refused.
    **options
        The other keywords of :func:`skselect.evaluate_parquet`: the names of the columns
        and `labels`.

    Returns
    -------
    Series
        Equal to that of :func:`skselect.evaluate_parquet`, bit by bit.

    Raises
    ------
    ValueError, ImportError
        As :func:`skselect.evaluate_parquet`, or if Dask is not installed.

    Examples
    --------
    >>> import pandas as pd, tempfile, pathlib
    >>> import skselect.dask
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> table = pd.DataFrame({"confidence": [.9, .8, .7, .6], "error": [0, 0, 0, 1]})
    >>> table.to_parquet(folder / "part.parquet")
    >>> skselect.dask.evaluate_parquet(folder, ["aurc"], confidence="confidence", loss="error")
    aurc    0.0625
    dtype: float64
    """
    requests(metrics)
    return parquet_state(paths, **options).evaluate(metrics)


def parquet_state(paths: Paths, **options: Any) -> SelectiveState:
    """Count the predictions in Parquet files, some files to each worker.

    Parameters
    ----------
    paths : str, Path or iterable of them
        As for :func:`evaluate_parquet`.
    **options
        The other keywords of :func:`skselect.streaming.parquet_state`: the names of the columns
        and `labels`.

    Returns
    -------
    SelectiveState

    Raises
    ------
    ValueError, ImportError
        As :func:`skselect.streaming.parquet_state`, or if Dask is not installed.

    Examples
    --------
    >>> import pandas as pd, tempfile, pathlib
    >>> import skselect.dask
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> table = pd.DataFrame({"label": [0, 0] * 60, "p_0": [.9, .4] * 60, "p_1": [.1, .6] * 60})
    >>> table.to_parquet(folder / "part.parquet")
    >>> columns = {"y_true": "label", "y_proba": ["p_0", "p_1"], "labels": [0, 1]}
    >>> state = skselect.dask.parquet_state(folder, **columns)
    >>> state.select_threshold(objective="risk", target=.1).policy
    <AbstentionPolicy: 2 classes, threshold 0.75, certified>
    """
    dask = import_extra("dask", "dask")
    files = find_files(paths)
    # A state may be larger than a file: use few parts, but enough to keep all workers busy.
    n_parts = min(len(files), 4 * _count_workers())
    count = dask.delayed(count_files, pure=True)
    options["progress"] = False
    parts = [count(files[k::n_parts], **options) for k in range(n_parts)]
    return _merge_all(parts)


def decide(policy: AbstentionPolicy, y_proba: Any) -> Any:
    """Decide the rows of a Dask collection by a policy with one threshold.

    Parameters
    ----------
    policy : AbstentionPolicy
    y_proba : dask DataFrame or Array of shape (n, K)
        Class probabilities. The columns of a DataFrame have the names of the classes.

    Returns
    -------
    dask DataFrame
        As :meth:`skselect.AbstentionPolicy.decide`, computed when you ask for it.

    Raises
    ------
    ValueError
        If the policy needs more than probabilities, such as subgroups.
    ImportError
        If Dask is not installed.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import skselect.dask
    >>> from skselect import AbstentionPolicy
    >>> policy = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.8)
    >>> y_proba = da.from_array([[.9, .1], [.3, .7]], chunks=(1, 2))
    >>> skselect.dask.decide(policy, y_proba)["accepted"].compute().tolist()
    [True, False]
    """
    frames = import_extra("dask.dataframe", "dask[dataframe]")
    classes = policy.classes.tolist()
    if not hasattr(y_proba, "map_partitions"):
        y_proba = frames.from_dask_array(_join_columns(y_proba), columns=classes)
    uniform = np.full((1, len(classes)), 1 / len(classes))
    example = policy.decide(pd.DataFrame(uniform, columns=classes))
    return y_proba.map_partitions(policy.decide, meta=example.iloc[:0])


def local_classifier(model: Any) -> Any:
    """Return a ``DaskXGBClassifier`` as the XGBClassifier that any scikit-learn tool can use.

    Wrap it in scikit-learn's ``FrozenEstimator`` and pass it to :class:`skselect.ThresholdTuner`
    or :class:`skselect.SelectiveClassifier`. So the cluster trains the trees, rows that fit in
    memory choose the threshold, and ``map_partitions`` of a Dask frame predicts the rest. Do not
    clone and refit it: it has the fitted trees, but not the parameters of `model`.

    Parameters
    ----------
    model : xgboost.dask.DaskXGBClassifier
        Fitted, with the labels 0 ... K - 1.

    Returns
    -------
    xgboost.XGBClassifier

    Raises
    ------
    ImportError
        If XGBoost is not installed.
    """
    xgboost = import_extra("xgboost", "xgboost")
    local = xgboost.XGBClassifier()
    local.load_model(model.get_booster().save_raw())
    return local


# Blocks ------------------------------------------------------------------------------------


def _join_columns(y_proba: Any) -> Any:
    """Join blocks of single columns, as Dask XGBoost returns them for two classes."""
    n_axes = len(getattr(y_proba, "numblocks", ()))
    if n_axes == 2:
        return y_proba.rechunk({1: -1})
    return y_proba


def _row_blocks(values: Any) -> list[Any]:
    """Return the blocks of rows of a collection."""
    if hasattr(values, "to_delayed"):
        # Optimising the graph may give two columns of one frame different partitions.
        blocks = values.to_delayed(optimize_graph=False)
        return list(np.ravel(blocks))
    if isinstance(values, list | tuple) and not any(map(np.isscalar, values)):
        return list(values)
    return [values]


def _find_labels(blocks: list[Any]) -> Any:
    """Return the labels that occur, in one pass over their blocks."""
    dask = import_extra("dask", "dask")
    find = dask.delayed(_distinct_labels)
    by_block = dask.compute(*[find(block) for block in blocks])
    parts = [labels for labels in by_block if len(labels)]
    return np.unique(np.concatenate(parts or [[]]))


def _distinct_labels(block: Any) -> Any:
    if len(block) == 0:
        return []
    labels = check_labels(block)
    return np.unique(labels)


def _count_block(empty: SelectiveState, y_true: Any, y_proba: Any) -> SelectiveState:
    counted = empty.empty_twin()
    if len(y_true) == len(y_proba) == 0:
        return counted
    return counted.update(y_true, y_proba)


def _merge_all(parts: list[Any]) -> SelectiveState:
    """Merge delayed states in a tree."""
    dask = import_extra("dask", "dask")
    merge = dask.delayed(SelectiveState.merge, pure=True)
    while len(parts) > 1:
        parts = [merge(*parts[k : k + _FAN_IN]) for k in range(0, len(parts), _FAN_IN)]
    (merged,) = dask.compute(*parts)
    return merged


def _count_workers() -> int:
    try:
        distributed = import_extra("dask.distributed", "distributed")
        workers = distributed.get_client().scheduler_info()["workers"]
        return max(len(workers), 1)
    except (ImportError, ValueError):  # no cluster: threads of this process
        return 1
