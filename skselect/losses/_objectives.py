"""For XGBoost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from skselect._lib.typing import FloatArray, IntArray
from skselect.losses import _kernels
from skselect.losses._kernels import Derivatives

_REMEDY = "it is for XGBClassifier(objective=...), not for XGBRegressor or xgboost.train."


class _Objective(ABC):
    """What XGBoost calls in each round.

    Two classes come as one margin per row: the logit of class 1 where that of class 0 is 0.
    """

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the first derivative of the loss by each margin, and a bound of the second.

        Parameters
        ----------
        y_true : ndarray of shape (n,)
            Classes, numbered from 0.
        y_pred : ndarray of shape (n,) or (n, K)
            Margins (logits).
        sample_weight : ndarray of shape (n,), default=None

        Returns
        -------
        gradient, hessian : ndarray of the shape of y_pred

        Raises
        ------
        ValueError
            If the labels are no numbers of classes, or come from ``xgboost.train``.
        """
        if hasattr(y_pred, "get_label"):
            raise ValueError(f"{type(self).__name__} got a DMatrix; {_REMEDY}")
        margin = np.asarray(y_pred, dtype=np.float64)
        binary = margin.ndim == 1
        logits = np.stack([np.zeros_like(margin), margin], axis=1) if binary else margin
        codes = self._check_codes(np.asarray(y_true), logits.shape[1])
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight
        weight = np.asarray(weight, dtype=np.float64)
        found = self._derivatives(logits, codes, weight)
        # XGBoost adds up rows; a mean would be lost beside its penalty on large steps.
        gradient, hessian = weight.sum() * found.gradient, weight.sum() * found.bound
        if binary:
            gradient, hessian = gradient[:, 1], hessian[:, 1]
        else:
            # Logits move at the same time. XGBoost's own softmax allows for it by the same factor.
            hessian *= 2.0
        return gradient, np.maximum(hessian, 1e-16)

    def _check_codes(self, y_true: Any, n_classes: int) -> IntArray:
        """Return numbers of classes; refuse what a regressor is asked to predict."""
        codes = y_true.astype(np.int64)
        if np.any((codes != y_true) | (codes < 0) | (codes >= n_classes)):
            raise ValueError(
                f"{type(self).__name__} got labels that are not 0 to {n_classes - 1}; {_REMEDY}"
            )
        return codes

    @abstractmethod
    def _derivatives(self, logits: FloatArray, codes: IntArray, weight: FloatArray) -> Derivatives:
        """Return the loss of rows of logits and its derivatives."""


@dataclass(frozen=True)
class CAUObjective(_Objective):
    """Cross-entropy + alpha (CAU_1 + lambda CAU_0), for XGBoost.

    A plain object for ``XGBClassifier(objective=CAUObjective(...))``: it can be cloned, pickled,
    compared, and be a value in a grid search. It is the same loss as :func:`cau_loss`.

    Parameters
    ----------
    alpha : float, not negative, default=0.1
        Weight of CAU. 0 is cross-entropy alone.
    lambda_ : float, not negative, default=1.0
        Weight of CAU_0, for being sure where wrong.
    variant : {"balanced", "shares"}, default="balanced"
        `"balanced"`: CAU_1 is a mean over right rows, CAU_0 one over wrong rows, so that both kinds
        count alike however few there are. `"shares"`: both are sums divided by the number of all
        rows, so that every row counts alike.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    See Also
    --------
    cau_loss : The same for torch.
    skselect.metrics.cau_score : CAU as a metric.

    Notes
    -----
    With h = entropy/log K of a row's probabilities, CAU_1 = mean of -log(1 - h) over right rows and
    CAU_0 = mean of -log h over wrong rows; the loss is eq. 13 of [1]_, with `"shares"` in the form
    of its eq. 10. A row is right if its class has the largest margin now. h is clipped to
    [1e-6, 1 - 1e-6]. The paper prints neither alpha nor lambda. Where there are no errors (or no
    right rows) in the training rows, their part is 0.

    XGBoost needs second derivatives above 0, which those of CAU are not always. It gets an upper
    bound: the second derivative along one margin is f' h'' + f'' h'^2, f being -log(1 - h) or
    -log h, and the bound takes both parts as positive. With three or more classes it is doubled,
    as in XGBoost's own softmax.

    References
    ----------
    .. [1] "Uncertainty quantification revisited: conditional cross-entropy for neural
       classifiers", eqs. 10, 11 and 13.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.losses import CAUObjective
    >>> gradient, hessian = CAUObjective(alpha=0.5)(np.array([0, 1]), np.array([-2.0, -1.0]))
    >>> gradient.round(3), hessian.round(3)
    (array([ 0.76 , -1.069]), array([0.683, 0.492]))
    """

    alpha: float = 0.1
    lambda_: float = 1.0
    variant: str = "balanced"

    def __post_init__(self) -> None:
        _kernels.check_cau(self.alpha, self.lambda_, self.variant)

    def _derivatives(self, logits: FloatArray, codes: IntArray, weight: FloatArray) -> Derivatives:
        return _kernels.cau_derivatives(
            logits, codes, weight, self.alpha, self.lambda_, self.variant
        )


@dataclass(frozen=True)
class SoftCWSAObjective(_Objective):
    """Cross-entropy - alpha soft CWSA, for XGBoost.

    A plain object for ``XGBClassifier(objective=SoftCWSAObjective(...))``: it can be cloned,
    pickled, compared, and be a value in a grid search. It is the same loss as
    :func:`soft_cwsa_loss`.

    Parameters
    ----------
    threshold : float in [0, 1), default=0.8
        The confidence t from which on rows are accepted.
    temperature : float above 0, default=0.05
        How soft the threshold is: the smaller, the nearer to CWSA, and the fewer rows matter.
    alpha : float, not negative, default=0.5
        Weight of soft CWSA. 0 is cross-entropy alone.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    See Also
    --------
    soft_cwsa_loss : The same for torch.
    skselect.metrics.cwsa_score : CWSA as a metric.

    Notes
    -----
    CWSA [1]_ adds up +-max(0, c - t)/(1 - t), + for right rows and - for wrong ones, where c is the
    largest probability and t the threshold, and divides by the number of rows with c >= t. Both
    are made smooth: with u = (c - t)/temperature, ::

        soft CWSA = sum of w (+-) temperature log(1 + e^u)/(1 - t)
                    / (sum of w/(1 + e^-u) + 1e-6 sum of w)

    As the temperature falls it tends to CWSA, 0 where nothing is accepted included. The
    surrogate is ours: the paper leaves one for later (its section 8). A row is right if its class
    has the largest margin now. That cannot teach which class is right, so the loss is
    cross-entropy - alpha soft CWSA.

    The second derivatives that XGBoost gets are upper bounds, as for :class:`CAUObjective`.

    References
    ----------
    .. [1] Shahnazari et al., "Trust, or don't predict", arXiv 2505.18622, 2025, eq. 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.losses import SoftCWSAObjective
    >>> objective = SoftCWSAObjective(threshold=0.8, temperature=0.1)
    >>> gradient, hessian = objective(np.array([0, 1]), np.array([-2.0, -1.0]))
    >>> gradient.round(3), hessian.round(3)
    (array([ 0.391, -1.211]), array([0.341, 0.533]))
    """

    threshold: float = 0.8
    temperature: float = 0.05
    alpha: float = 0.5

    def __post_init__(self) -> None:
        _kernels.check_soft_cwsa(self.threshold, self.temperature, self.alpha)

    def _derivatives(self, logits: FloatArray, codes: IntArray, weight: FloatArray) -> Derivatives:
        return _kernels.soft_cwsa_derivatives(
            logits, codes, weight, self.threshold, self.temperature, self.alpha
        )
