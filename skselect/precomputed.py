"""A classifier whose features are its answers: predictions of any model, in a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from skselect import _validation as check
from skselect._typing import FloatArray, LabelArray

KINDS = ("proba", "logit", "logprob")


class PrecomputedClassifier(ClassifierMixin, BaseEstimator):
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

    def __init__(self, classes: Any, *, columns: Any = None, kind: str = "proba") -> None:
        self.classes = classes
        self.columns = columns
        self.kind = kind

    @property
    def classes_(self) -> LabelArray:
        """Class labels, in the order of the columns of ``predict_proba``."""
        return check.check_classes(self.classes, "classes")

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
            Checked and not used.

        Returns
        -------
        self
        """
        proba = self.predict_proba(X)
        check.check_weight(sample_weight, len(proba), other="X")
        if y is not None:
            truth, classes = check.check_labels(y, "y"), self.classes_
            check.check_length("X", proba, len(truth), "y")
            codes = check.encode_labels(truth, classes, "y")
            check.check_known(codes, truth, classes, "y")
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
            If columns are missing, or the numbers are not of the kind that was promised.
        """
        check.check_choice("kind", self.kind, KINDS)
        classes = self.classes_
        scores = self._scores(X, classes)
        if self.kind == "logit":
            check.warn_like_proba(scores, "X")
            with np.errstate(invalid="ignore"):  # a row of -inf only: nan, refused below
                scores = _of_one(scores, expit) if scores.shape[1] == 1 else softmax(scores, axis=1)
        elif self.kind == "logprob":
            scores = np.exp(check.check_log_proba(scores, "X"))
        if scores.shape[1] == 1 and len(classes) == 2:
            scores = _of_one(scores, np.asarray)
        return check.check_proba(scores, "X")

    def predict(self, X: Any) -> LabelArray:
        """Return the class of the largest probability of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _scores(self, X: Any, classes: LabelArray) -> FloatArray:
        """Return the numbers of the classes' columns as a matrix."""
        names = check.column_names(X)
        if self.columns is not None:
            places = check.check_columns(self.columns, names, np.shape(X), classes)
        elif names is not None and len(names) > 1:
            remedy = "or name those that hold predictions with columns="
            places = check.match_columns(names, classes, "X", remedy)
        else:
            places = None
        check.refuse_one_row_or_two(X, len(classes), "X")
        table = check.check_matrix(X if places is None else _take(X, names, places), "X")
        if (table.shape[1], len(classes)) != (1, 2):
            remedy = "; name those that hold predictions with columns="
            check.check_class_columns(table.shape[1], classes, "X", remedy)
        return table


def _take(X: Any, names: list[Any] | None, places: list[int]) -> Any:
    """Return some columns of an array, or of a table with named ones."""
    if names is None:
        return check.as_array(X, "X")[:, places]
    return check.take_columns(X, [names[place] for place in places])


def _of_one(scores: FloatArray, link: Any) -> FloatArray:
    """Return both probabilities from the column of the second class."""
    second = link(scores[:, 0])
    return np.column_stack([1.0 - second, second])
