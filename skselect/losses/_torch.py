"""For torch."""

from __future__ import annotations

import math
from typing import Any

from skselect._lib.files import import_extra
from skselect.losses import _kernels
from skselect.losses._kernels import EPS


def cau_loss(
    logits: Any,
    target: Any,
    *,
    alpha: float = 0.1,
    lambda_: float = 1.0,
    variant: str = "balanced",
    sample_weight: Any = None,
) -> Any:
    """Compute cross-entropy + alpha (CAU_1 + lambda CAU_0) of a batch, for torch.

    Parameters
    ----------
    logits : Tensor of shape (n, K) or (n,)
        Outputs before the softmax; for two classes also one per row, before the sigmoid.
    target : Tensor of shape (n,)
        Classes, numbered from 0.
    alpha : float, not negative, default=0.1
        Weight of CAU. 0 is cross-entropy alone.
    lambda_ : float, not negative, default=1.0
        Weight of CAU_0, for being sure where wrong.
    variant : {"balanced", "shares"}, default="balanced"
        `"balanced"`: CAU_1 is a mean over the right rows of the batch, CAU_0 one over the wrong
        rows, so that both kinds count alike however few there are. `"shares"`: both are sums
        divided by the number of all rows, so that every row counts alike.
    sample_weight : Tensor of shape (n,), default=None

    Returns
    -------
    Tensor
        One number, with a gradient, on the device of the logits.

    Raises
    ------
    ImportError
        If torch is not installed.
    ValueError
        If a parameter is outside its range.

    See Also
    --------
    CAUObjective : The same for XGBoost; its notes have the formula and its source.

    Notes
    -----
    A part without rows, such as CAU_0 in a batch without errors, is 0. Which rows are right counts
    as fixed. The loss of a batch is not the mean of the losses of its halves.

    Examples
    --------
    >>> import torch
    >>> from skselect.losses import cau_loss
    >>> logits = torch.tensor([[2.0, 0.0], [1.0, 0.0]], requires_grad=True)
    >>> loss = cau_loss(logits, torch.tensor([0, 1]), alpha=0.5)
    >>> loss.backward()
    >>> round(loss.item(), 3)
    1.182
    """
    _kernels.check_cau(alpha, lambda_, variant)
    torch, log_p, target, weight = _batch(logits, target, sample_weight)
    h = -(log_p.exp() * log_p).sum(dim=1) / math.log(log_p.shape[1])
    h = h.clamp(EPS, 1.0 - EPS)
    right = log_p.argmax(dim=1) == target
    parts = torch.where(right, -torch.log1p(-h), -lambda_ * torch.log(h))
    share = weight / weight.sum()
    if variant == "balanced":
        of_kind = torch.where(right, weight[right].sum(), weight[~right].sum())
        share = torch.where(of_kind > 0, weight / of_kind, 0.0)
    return _cross_entropy(log_p, target, weight) + alpha * (share * parts).sum()


def soft_cwsa_loss(
    logits: Any,
    target: Any,
    *,
    threshold: float = 0.8,
    temperature: float = 0.05,
    alpha: float = 0.5,
    sample_weight: Any = None,
) -> Any:
    """Compute cross-entropy - alpha soft CWSA of a batch, for torch.

    Parameters
    ----------
    logits : Tensor of shape (n, K) or (n,)
        Outputs before the softmax; for two classes also one per row, before the sigmoid.
    target : Tensor of shape (n,)
        Classes, numbered from 0.
    threshold : float in [0, 1), default=0.8
        The confidence t from which on rows are accepted.
    temperature : float above 0, default=0.05
        How soft the threshold is: the smaller, the nearer to CWSA, and the fewer rows matter.
    alpha : float, not negative, default=0.5
        Weight of soft CWSA. 0 is cross-entropy alone.
    sample_weight : Tensor of shape (n,), default=None

    Returns
    -------
    Tensor
        One number, with a gradient, on the device of the logits.

    Raises
    ------
    ImportError
        If torch is not installed.
    ValueError
        If a parameter is outside its range.

    See Also
    --------
    SoftCWSAObjective : The same for XGBoost; its notes have the formula and its source.

    Examples
    --------
    >>> import torch
    >>> from skselect.losses import soft_cwsa_loss
    >>> logits = torch.tensor([[2.0, 0.0], [1.0, 0.0]], requires_grad=True)
    >>> loss = soft_cwsa_loss(logits, torch.tensor([0, 1]), temperature=0.1)
    >>> loss.backward()
    >>> round(loss.item(), 3)
    0.532
    """
    _kernels.check_soft_cwsa(threshold, temperature, alpha)
    torch, log_p, target, weight = _batch(logits, target, sample_weight)
    log_c, answer = log_p.max(dim=1)
    above = (log_c.exp() - threshold) / temperature
    phi = temperature * torch.logaddexp(above, torch.zeros_like(above)) / (1.0 - threshold)
    share = weight / weight.sum()
    soft_cwsa = (share * torch.where(answer == target, phi, -phi)).sum()
    soft_cwsa = soft_cwsa / ((share * torch.sigmoid(above)).sum() + EPS)
    return _cross_entropy(log_p, target, weight) - alpha * soft_cwsa


def _batch(logits: Any, target: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
    """Return torch, log-probabilities of at least single precision, classes and weights."""
    torch = import_extra("torch", "torch", "torch")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if logits.ndim == 1:
        logits = torch.stack([torch.zeros_like(logits), logits], dim=1)
    weight = logits.new_ones(len(logits)) if sample_weight is None else sample_weight.to(logits)
    return torch, torch.log_softmax(logits, dim=1), target.long(), weight


def _cross_entropy(log_p: Any, target: Any, weight: Any) -> Any:
    per_row = -log_p.gather(1, target[:, None])[:, 0]
    return (weight * per_row).sum() / weight.sum()
