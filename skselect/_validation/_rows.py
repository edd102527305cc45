"""Numbers with one entry per row: confidence, loss, weight."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skselect._rowwise import spans
from skselect._typing import BoolArray, FloatArray, IntArray
from skselect._validation._arrays import as_array

#: Sums of weights beyond it, or below its inverse, soon leave the range of floats.
_LARGEST = 1e200


def check_length(name: str, values: Any, n: int, other: str = "y_true") -> None:
    """Refuse `values` unless there is one per row."""
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} rows, but {other} has {n}.")


def check_vector(values: Any, name: str) -> FloatArray:
    vector = as_array(values, name)
    try:
        if vector.dtype.kind == "c":
            raise TypeError  # noqa: TRY301 - complex numbers are no numbers here
        vector = vector.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, got {type(values).__name__}.") from error
    return _check_one_per_row(vector, name)


def _check_one_per_row(vector: Any, name: str) -> Any:
    if vector.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got the shape {vector.shape}.")
    if vector.size == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    return vector


def check_confidence(values: Any, name: str = "confidence") -> FloatArray:
    """Return one finite confidence per row, as float64."""
    confidence = check_vector(values, name)
    if not (np.isfinite(confidence.min()) and np.isfinite(confidence.max())):
        raise ValueError(
            f"{name} has {int(np.sum(~np.isfinite(confidence)))} NaN or infinite values; "
            "every row needs a finite confidence."
        )
    return confidence


def check_unit_confidence(confidence: FloatArray, metric: str) -> FloatArray:
    """Refuse confidences outside [0, 1] for a metric that reads them as probabilities."""
    low, high = float(confidence.min()), float(confidence.max())
    if low < 0 or high > 1:
        raise ValueError(
            f"{metric} needs confidences in [0, 1], got values from {low:g} to {high:g}. "
            "Use 'max_proba', 'margin', 'entropy' or 'gini', or a metric that only reads the "
            "order, such as augrc_score."
        )
    return confidence


def check_unit_floats(name: str, values: Any) -> FloatArray:
    """Return confidences in [0, 1]; float32 stays float32, all else becomes float64."""
    array = as_array(values, name)
    array = array if array.dtype == np.float32 else check_vector(array, name)
    _check_one_per_row(array, name)
    if not (array.min() >= 0 and array.max() <= 1):  # nan is neither
        raise ValueError(
            f"{name} must lie in [0, 1] for every row, got values from {array.min():g} to "
            f"{array.max():g}."
        )
    return array


def check_counted_rows(confidence: Any, loss: Any) -> tuple[FloatArray, NDArray[Any]]:
    """Return a confidence in [0, 1] and an error, 0 or 1, per row.

    As they are: copies of float64 would cost more than counting float32 and booleans.
    """
    values = check_unit_floats("confidence", confidence)
    wrong = as_array(loss, "loss")
    if wrong.dtype == np.bool_:
        _check_one_per_row(wrong, "loss")
    else:
        wrong = check_loss(wrong)
        refuse_graded_test(wrong, "a state, which counts errors,")
    check_length("confidence", values, len(wrong), "loss")
    return values, wrong


def check_loss(values: Any, name: str = "loss") -> FloatArray:
    """Return one loss per row, in [0, 1]."""
    loss = check_vector(values, name)
    if not (loss.min() >= 0 and loss.max() <= 1):  # nan is neither
        raise ValueError(
            f"{name} must lie in [0, 1] for every row (divide a cost by its largest value), "
            f"got values from {np.min(loss):g} to {np.max(loss):g}."
        )
    return loss


def refuse_judged(confidence: Any, loss: Any) -> None:
    """Refuse another confidence or loss where rows are judged already."""
    if confidence is not None or loss != "zero_one":
        raise ValueError(
            "confidence and loss go with Predictions; Outcomes and curves hold theirs already."
        )


def check_row_counts(
    name: str, values: Any, n: int, *, most: FloatArray | IntArray | None = None
) -> IntArray:
    """Return whole numbers from 0 on, one for each of n entries and none above `most`."""
    numbers = check_vector(values, name)
    check_length(name, numbers, n, "confidence")
    if not (numbers.min() >= 0 and numbers.sum() <= 2.0**53 and np.all(numbers % 1 == 0)):
        raise ValueError(
            f"{name} must hold whole numbers that are not negative and add up to at most 2^53."
        )
    whole = numbers.astype(np.int64)
    if most is not None and np.any(whole > most):
        raise ValueError(f"{name} must not be larger than the number of rows, n.")
    return whole


def check_both_kinds(weight: FloatArray, positive: BoolArray, purpose: str) -> None:
    """Refuse rows of one class only where two are compared."""
    if not (np.any(weight[positive] > 0) and np.any(weight[~positive] > 0)):
        raise ValueError(f"y_true: {purpose} needs rows of both classes with positive weight.")


def check_clusters(values: Any, n: int, name: str = "cluster") -> IntArray | None:
    """Return the number of each row's cluster, or None; refuse missing ones."""
    if values is None:
        return None
    # numpy would turn a list such as ["a", nan] into strings without a word.
    listed = isinstance(values, list | tuple)
    array = np.asarray(values, dtype=object) if listed else as_array(values, name)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must hold one name or number per row, got the shape {array.shape}."
        )
    codes, seen = pd.factorize(array)
    check_length(name, codes, n)
    if np.any(codes < 0):
        raise ValueError(f"{name} has {int(np.sum(codes < 0))} missing values.")
    if len(seen) < 2:
        raise ValueError(f"{name} must name at least two clusters, got {len(seen)}.")
    return codes.astype(np.int64)


def check_subgroups(
    values: Any, n: int, name: str = "subgroups", other: str = "y_true"
) -> pd.DataFrame:
    """Return subgroups as a frame, one column per attribute."""
    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    elif hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):
        values = as_array(values, name)  # items of a tensor would all be different
    if isinstance(values, pd.DataFrame | Mapping):
        frame = pd.DataFrame(values)
        if not frame.columns.is_unique:
            raise ValueError(f"{name} has several columns of one name: {list(frame.columns)}.")
    elif isinstance(values, str) or np.ndim(values) != 1:
        raise ValueError(
            f"{name} must hold one value per row, such as X['sex'], or be a DataFrame with a "
            "column per attribute, "
            f"got {type(values).__name__} of shape {np.shape(values)}."
        )
    else:
        title = getattr(values, "name", None)
        column = np.empty(len(values), dtype=object)
        column[:] = [None if value is np.ma.masked else value for value in values]
        frame = pd.DataFrame({"subgroup" if title is None else title: column}).infer_objects()
    check_length(name, frame, n, other)
    if frame.shape[1] == 0:
        raise ValueError(f"{name} has no columns; pass the subgroup of each row.")
    return frame.reset_index(drop=True)


def check_value_table(values: Any, name: str = "values") -> pd.DataFrame:
    """Return one finite number per data set (row) and model (column)."""
    frame = pd.DataFrame(values.to_pandas() if hasattr(values, "to_pandas") else values)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()].tolist()
        raise ValueError(f"{name} names the models {twice} twice.")
    try:
        numbers = frame.to_numpy(dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}.") from error
    if len(frame) < 2:
        raise ValueError(f"{name} needs at least two data sets (rows), got {len(frame)}.")
    if not np.all(np.isfinite(numbers)):
        raise ValueError(
            f"{name} has {int(np.sum(~np.isfinite(numbers)))} missing or infinite values; leave "
            "out the data sets that some model has no value for."
        )
    return frame


def check_weight(
    values: Any, n: int, name: str = "sample_weight", other: str = "y_true"
) -> FloatArray | None:
    """Return non-negative weights with a positive sum, or None."""
    if values is None:
        return None
    if isinstance(values, numbers.Real):
        values = np.full(n, float(values))
    weight = check_vector(values, name)
    check_length(name, weight, n, other)
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise ValueError(f"{name} must hold finite numbers that are not negative.")
    if not np.any(weight > 0):
        raise ValueError(f"{name} is zero for every row; at least one row must count.")
    smallest, largest = float(np.min(weight[weight > 0])), float(np.max(weight))
    if largest > _LARGEST or smallest < 1.0 / _LARGEST:
        raise ValueError(
            f"{name} must lie between {1 / _LARGEST:g} and {_LARGEST:g} where it is not 0; "
            "multiply it by a constant."
        )
    return weight


def is_graded(loss: FloatArray) -> bool:
    """Tell whether there are losses other than 0 and 1."""
    parts = (loss[rows] for rows in spans(len(loss)))  # one of them may settle it
    return not all(np.array_equal(part != 0.0, part) for part in parts)


def refuse_graded(loss: FloatArray) -> None:
    """Refuse losses other than 0 and 1 where errors must be counted."""
    if is_graded(loss):
        raise ValueError(
            "loss: this method counts errors, and there are losses between 0 and 1. Use "
            "method='betting', which certifies graded losses, or 'empirical', which promises "
            "nothing."
        )


def check_countable(curve: Any) -> None:
    """Refuse a curve of weighted rows or graded losses where errors are counted."""
    if not curve.counted or curve.is_graded:
        raise ValueError(
            "curve: this bound counts errors, so rows must be unweighted with losses of 0 or 1."
        )


def refuse_rows_of_curve(**given: Any) -> None:
    """Refuse arguments that tell rows apart where only their curve is known."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} needs rows, and a curve holds their sums; pass Predictions.")


def check_fits_cells(metric: str, *, fits: bool) -> None:
    """Refuse the bootstrap over cells for a metric that does not fit it."""
    if not fits:
        raise ValueError(
            f"method='cell_bootstrap' is for metrics of the risk-coverage curve; {metric!r} "
            "reads rows or classes, or is raised by chance. Use method='bootstrap'."
        )


def refuse_clustered_cells(cluster: IntArray | None) -> None:
    """Refuse clusters where rows are drawn from cells."""
    if cluster is not None:
        raise ValueError(
            "cluster goes with method='analytic' and 'bootstrap': cells mix rows of all clusters."
        )


def refuse_bets_on_curve(method: str) -> None:
    """Refuse bets where the rows are not at hand."""
    if method == "betting":
        raise ValueError(
            "method='betting' reads rows, and a curve holds their sums; use 'auto' for errors."
        )


def refuse_graded_curve(curve: Any) -> None:
    """Refuse a curve of graded losses where its rows are asked for."""
    if curve.is_graded:
        raise ValueError("curve: rows with graded losses cannot be told from their sums.")


def refuse_graded_test(loss: FloatArray, purpose: str = "a test that simulates errors") -> None:
    """Refuse losses other than 0 and 1 where errors are drawn or counted."""
    if is_graded(loss):
        raise ValueError(f"loss: {purpose} needs a loss of 0 or 1 per row; use loss='zero_one'.")


def warn_small_weights(weight: FloatArray | None, metric: str) -> None:
    """Warn where weights count as rows but add up to far fewer."""
    if weight is not None:
        warn_small_total(float(np.sum(weight)), int(np.sum(weight > 0)), metric)


def warn_small_total(total: float, n_rows: int, metric: str, remedy: str = "") -> None:
    """Warn where a sum of weights stands for far fewer rows than there are."""
    if total < n_rows / 2:
        warnings.warn(
            f"sample_weight sums to {total:g} for {n_rows} rows, but {metric} counts weights as "
            f"rows. Scale them to mean one{remedy}.",
            stacklevel=5,
        )


@contextmanager
def no_word_on_weights() -> Iterator[None]:
    """Keep :func:`warn_small_total` quiet where it is said once for several fits."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "sample_weight sums to", UserWarning)
        yield


def check_whole(weight: FloatArray, purpose: str) -> None:
    """Refuse weights that are not whole numbers, or too many, where rows are counted."""
    if np.any(weight != np.rint(weight)):
        raise ValueError(f"sample_weight: {purpose} counts rows, so weights must be whole numbers.")
    if np.sum(weight) > 2**31:
        raise ValueError(
            f"sample_weight: {purpose} counts rows, and these weights stand for "
            f"{np.sum(weight):g}; more than 2^31 cannot be counted."
        )


def check_least_rows(n: int, least: int, purpose: str) -> None:
    """Refuse too few rows."""
    if n < least:
        raise ValueError(f"y_true: {purpose} needs at least {least} rows, got {n}.")


def are_constant(weight: FloatArray | None) -> bool:
    """Tell whether every row counts alike, so that rows can be counted."""
    return weight is None or not np.any(weight != weight[0])


def refuse_weights(weight: FloatArray | None, purpose: str, remedy: str = "") -> None:
    """Refuse weights that are not constant where rows must be independent draws."""
    if not are_constant(weight):
        raise ValueError(
            f"sample_weight: {purpose} counts independent rows, and a weight is not a number of "
            f"independent rows. Leave sample_weight out{remedy}."
        )


def refuse_weighted_rows(weight: FloatArray | None, *, bets: bool) -> None:
    """Refuse weights where a certificate counts; `bets` says whether bets could read them."""
    betting = ", use method='betting' if they are importance weights" if bets else ""
    refuse_weights(weight, "a certificate", f"{betting}, or use a metric objective")


def check_mapped(values: Any, n_rows: int, calibrator: str) -> FloatArray:
    """Return what a calibrator of the user's own made of n scores, if these are probabilities."""
    mapped = np.asarray(values, dtype=np.float64)
    if mapped.shape != (n_rows,) or not np.all((mapped >= 0.0) & (mapped <= 1.0)):
        raise ValueError(
            f"calibration: {calibrator}.predict must return {n_rows} probabilities in [0, 1] for "
            f"{n_rows} scores, but it returned values of shape {mapped.shape}"
            + ("." if mapped.shape != (n_rows,) else ", some of them outside or nan.")
        )
    return mapped


def check_finite_range(low: float, high: float) -> None:
    """Refuse confidences too far apart for an axis."""
    if not math.isfinite(float(high) - float(low)):
        raise ValueError(
            f"confidence: from {low:g} to {high:g} is too wide a range to draw; rescale it."
        )
