"""A classifier whose X holds its predictions, made by any model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from skselect._lib.arrays import FloatArray, LabelArray, as_array, column_names, take_columns
from skselect._lib.checks import rows as row_checks, shown, warn_user
from skselect._lib.checks.options import check_choice
from skselect._lib.decide import RANGE_TOLERANCE, as_floats
from skselect._lib.sklearn import DescribedMixin

KINDS = ("proba", "logit", "logprob")


class PrecomputedClassifier(ClassifierMixin, DescribedMixin, BaseEstimator):
    """Serve stored predictions of any model (a deep net, an LLM) as a fitted classifier.

    Its X is a table with one column per class. So calibration, threshold tuning, searches
    and scorers work for models that scikit-learn cannot run: ``fit`` learns nothing.

    Parameters
    ----------
    classes : array-like of shape (K,)
        All class labels, in the order of the columns.
    columns : list of length K, default=None
        Which columns of X hold the classes, by name for a DataFrame or by position, so that
        X may hold other columns too. None: the columns of a DataFrame are matched with the
        classes by name, those of an array are taken in order.
    kind : {"proba", "logit", "logprob"}, default="proba"
        What X holds: probabilities, logits (turned into probabilities by the softmax), or
        logarithms of probabilities. A single column, for two classes, is that of the second
        class: its probability, the log-odds, or the logarithm of its probability.
    missing : {"raise", "spread"}, default="raise"
        What becomes of classes without a logarithm (NaN or -inf), as where a language model tells
        the most probable ones only. "spread": they share what the others leave of 1, evenly, and
        none gets more than the least of the others. What is left even then belongs to answers that
        are no class, and the row is divided by its sum. For ``kind="logprob"``.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)

    Examples
    --------
    >>> import pandas as pd
    >>> from skselect import PrecomputedClassifier, SelectiveClassifier
    >>> answers = pd.DataFrame({"id": [7, 8, 9], "cat": [2.5, -1.0, 0.2], "dog": [0.5, 1.0, 0.1]})
    >>> model = PrecomputedClassifier(["cat", "dog"], columns=["cat", "dog"], kind="logit")
    >>> model.predict_proba(answers).round(2)
    array([[0.88, 0.12],
           [0.12, 0.88],
           [0.52, 0.48]])
    >>> selective = SelectiveClassifier(model, threshold=0.8)
    >>> selective.fit(answers, ["cat", "dog", "dog"]).predict(answers)
    array(['cat', 'dog', 'abstain'], dtype='<U7')
    """

    def __init__(
        self, classes: Any, *, columns: Any = None, kind: str = "proba", missing: str = "raise"
    ) -> None:
        self.classes = classes
        self.columns = columns
        self.kind = kind
        self.missing = missing

    @property
    def classes_(self) -> LabelArray:
        """Class labels, in the order of the columns of ``predict_proba``."""
        return row_checks.check_classes(self.classes, "classes")

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PrecomputedClassifier:
        """Check that X holds predictions and y known classes; nothing is learnt.

        Parameters
        ----------
        X : array-like of shape (n, m)
        y : array-like of shape (n,), default=None
        sample_weight : array-like of shape (n,), default=None
            How often each row counts. It is checked and not used.

        Returns
        -------
        self
        """
        proba = self.predict_proba(X)
        row_checks.check_weight(sample_weight, len(proba), other="X")
        if y is not None:
            labels = row_checks.check_labels(y, "y")
            remedy = "Pass every class as classes=."
            codes = row_checks.encode_known(labels, self.classes_, "y", remedy)
            row_checks.check_length("X", proba, len(codes), "y")
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities that X holds.

        Parameters
        ----------
        X : array-like of shape (n, m)

        Returns
        -------
        ndarray of shape (n, K)

        Raises
        ------
        ValueError
            If columns are missing, or the numbers are not what `kind` says.
        """
        check_choice("kind", self.kind, KINDS)
        check_choice("missing", self.missing, ["raise", "spread"])
        if self.missing == "spread" and self.kind != "logprob":
            raise ValueError(f"missing='spread' goes with kind='logprob', not kind={self.kind!r}.")
        classes = self.classes_
        scores = self._check_scores(X, classes)
        if self.kind == "logit":
            scores = _read_logits(scores)
        elif self.kind == "logprob":
            scores = _read_logs(scores, spreads=self.missing == "spread")
        if scores.shape[1] == 1 and len(classes) == 2:
            scores = np.column_stack([1.0 - scores, scores])
        return row_checks.check_proba(scores, "X")

    def predict(self, X: Any) -> LabelArray:
        """Return the class of the largest probability of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _check_scores(self, X: Any, classes: LabelArray) -> FloatArray:
        """Return the numbers of the classes' columns as a matrix."""
        names = column_names(X)
        positions = self._find_positions(X, names, classes)
        if len(classes) == 2:
            row_checks.refuse_one_row_or_two(X if hasattr(X, "shape") else as_array(X, "X"), "X")
        if positions is not None and names is not None:  # further columns may hold text
            X = take_columns(X, [names[position] for position in positions])
        elif positions is not None:
            X = as_array(X, "X")[:, positions]
        table: FloatArray = as_floats(as_array(X, "X"), "X")
        if table.ndim == 1:
            table = table[:, None]
        if table.ndim != 2 or len(table) == 0:
            raise ValueError(f"X must have one row per case, got the shape {table.shape}.")
        self._check_finite(table, positions, names)
        if (table.shape[1], len(classes)) != (1, 2):
            remedy = "; name those that hold predictions with columns="
            row_checks.check_class_columns(table.shape[1], classes, "X", remedy)
        return table

    def _find_positions(
        self, X: Any, names: list[Any] | None, classes: LabelArray
    ) -> list[int] | None:
        """Return which columns hold the classes, None where all do, in their order."""
        if self.columns is not None:
            return _check_columns(self.columns, names, np.shape(X), classes)
        if names is None or len(names) == 1:
            return None
        remedy = "or name those that hold predictions with columns="
        return row_checks.match_columns(names, classes, "X", remedy)

    def _check_finite(
        self, table: FloatArray, positions: list[int] | None, names: list[Any] | None
    ) -> None:
        """Refuse missing and infinite values; minus infinity is a logit."""
        is_bad = table == np.inf
        if self.missing != "spread" or table.shape[1] == 1:
            is_bad |= np.isnan(table)
        bad = np.flatnonzero(np.any(is_bad, axis=0))
        if len(bad):
            column: Any = int(bad[0])
            if positions is not None:
                column = positions[column]
            if names is not None:
                column = names[column]
            raise ValueError(f"X has NaN or infinite values, first in the column {column!r}.")


def _read_logits(logits: FloatArray) -> FloatArray:
    """Return probabilities; a single column holds log-odds."""
    _warn_like_proba(logits)
    with np.errstate(invalid="ignore"):  # a row of -inf only: nan, refused later
        if logits.shape[1] == 1:
            return np.asarray(expit(logits))
        return np.asarray(softmax(logits, axis=1))


def _read_logs(logs: FloatArray, *, spreads: bool) -> FloatArray:
    """Return probabilities; those that are missing may share what the others leave."""
    highest = float(np.max(logs, initial=-np.inf, where=~np.isnan(logs)))
    if highest > RANGE_TOLERANCE:
        raise ValueError(
            "X must hold logarithms of probabilities, none above 0, got values up to "
            f"{highest:g}; logits need kind='logit'."
        )
    logs = np.minimum(logs, 0.0)
    if spreads and logs.shape[1] > 1:
        return spread_rest(logs)
    return np.exp(logs)


def spread_rest(logs: FloatArray) -> FloatArray:
    """Return probabilities of logarithms, of which some are NaN or -inf, as `missing` says.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.estimators.precomputed import spread_rest
    >>> spread_rest(np.log([[.6, .3, np.nan], [.7, .1, np.nan]])).round(3)
    array([[0.6  , 0.3  , 0.1  ],
           [0.778, 0.111, 0.111]])
    """
    named = np.isfinite(logs)
    highest = np.max(logs, axis=1, keepdims=True, initial=-np.inf, where=named)
    highest = np.where(named.any(axis=1, keepdims=True), highest, 0.0)
    # In units of the most probable class, so that no row underflows.
    parts = np.exp(np.where(named, logs - highest, -np.inf))
    with np.errstate(over="ignore"):
        whole = np.exp(-highest)
    rest = np.maximum(whole - parts.sum(axis=1, keepdims=True), 0.0)
    least = np.min(parts, axis=1, keepdims=True, initial=1.0, where=named)
    unnamed = np.maximum(np.sum(~named, axis=1, keepdims=True), 1)
    parts = np.where(named, parts, np.minimum(rest / unnamed, least))
    # A sum above 1 stays as it is, to be refused.
    return np.asarray(parts / np.minimum(parts.sum(axis=1, keepdims=True), whole))


def _check_columns(
    columns: Any, names: list[Any] | None, shape: tuple[int, ...], classes: LabelArray
) -> list[int]:
    """Return the positions of the columns that hold the classes."""
    n_classes = len(classes)
    is_single = isinstance(columns, str) or not np.iterable(columns)
    requested = [columns] if is_single else list(columns)
    if len(requested) != n_classes and (len(requested), n_classes) != (1, 2):
        raise ValueError(f"columns names {len(requested)} columns for {n_classes} classes.")
    column_names = list(range(shape[1])) if names is None else names
    if len(set(requested)) != len(requested):
        raise ValueError(f"columns={shown(requested)} names a column twice: one class, one column.")
    missing = [column for column in requested if column not in column_names]
    if missing:
        raise ValueError(f"columns: X has no {shown(missing)}; it has {column_names[:20]}.")
    texts = [str(column) for column in requested]
    labels = [str(label) for label in classes.tolist()]
    if names is not None and texts != labels and sorted(texts) == sorted(labels):
        raise ValueError(
            f"columns={shown(requested)} names the classes {classes.tolist()} in another order, so "
            "that answers would be swapped. List the columns in the order of classes."
        )
    return [column_names.index(column) for column in requested]


def _warn_like_proba(values: FloatArray) -> None:
    """Warn where logits look like probabilities."""
    are_shares = np.all((values >= 0.0) & (values <= 1.0))
    if values.shape[1] == 1 or not are_shares:
        return
    if np.allclose(values.sum(axis=1), 1.0, atol=1e-6):
        warn_user(
            "X looks like probabilities: all values lie in [0, 1] and every row sums to one. "
            "As logits they would make all classes nearly equally likely; use kind='proba'."
        )
