"""Overconfidence near certainty: calibrated size ratio (CSR), P_risk, and a test."""

from __future__ import annotations

from typing import Any, Unpack

from skselect._lib.keywords import WeighedRowOptions
from skselect.bounds._csr import CsrTest, csr, p_risk, run_csr_test
from skselect.metrics._metric import compute_by_correctness, defaults_of, metric

__all__ = ["csr_score", "csr_test", "p_risk_score"]


@metric(
    csr,
    "lower",
    range="[0, inf)",
    undefined="no errors: 0",
    best=1.0,
    no_interval="its mean rests on a few rare errors; csr_test tells whether it could be chance",
    meaning="If each error counts by 1 / (1 - confidence), it has {number} times the errors of "
    "a calibrated confidence.",
)
def csr_score(
    y_true: Any, y_proba: Any, *, eps: float = 1e-8, **options: Unpack[WeighedRowOptions]
) -> float:
    """Compute the calibrated size ratio, CSR: large if there are errors near certainty.

    :Formula: ``mean of l/(1 - c)``
    :Use for: errors near certainty
    :Not for: calibration as a whole: it sees the tail only
    :Source: arXiv 2605.01796

    Parameters
    ----------
    %(data)s
    eps : 0 or float in [1e-100, 0.5), default=1e-8
        Confidences are clipped to [eps, 1 - eps]. 0 does not clip (an error at confidence 1 then
        gives inf).
    %(options)s

    Returns
    -------
    float
        Not negative. 1 in the mean for a calibrated classifier; above, it is overconfident near
        certainty, below, underconfident. Its scorer, "neg_csr", is minus the distance from 1.

    %(raises_unit)s

    See Also
    --------
    csr_test : Tells whether the value could be chance.

    Notes
    -----
    CSR = (1/n) sum over wrong rows of 1/(1 - c) (definition 2 of [1]_). It detects
    overconfidence in the tail; it is not a test of calibration. One error at confidence 1, as
    after isotonic calibration, adds 1/(n eps): the value then depends on `eps` above all.

    References
    ----------
    .. [1] %(csr)s

    Examples
    --------
    >>> from skselect.metrics import csr_score
    >>> round(csr_score([0, 1, 1, 0], [.1, .9, .6, .75]), 4)
    1.0
    """
    return compute_by_correctness(csr, y_true, y_proba, options, eps=eps)


@metric(
    p_risk,
    "lower",
    undefined="no errors: 0",
    for_comparison=True,
    scale_free=False,
    no_interval="it is a probability computed from the rows themselves; see csr_test",
    registered=True,
)
def p_risk_score(
    y_true: Any, y_proba: Any, *, eps: float = 1e-8, **options: Unpack[WeighedRowOptions]
) -> float:
    """Compute P_risk, a normal approximation to the evidence that a classifier is overconfident.

    :Formula: ``Phi((CSR - 1)/sigma) if CSR > 1, else 0``
    :Use for: comparison with published values
    :Not for: decisions: see csr_test, whose p-value is exact
    :Source: arXiv 2605.01796

    Parameters
    ----------
    %(data)s
    eps : 0 or float in [1e-100, 0.5), default=1e-8
        Confidences are clipped to [eps, 1 - eps].
    %(options)s

    Returns
    -------
    float in [0, 1]
        0 where CSR <= 1; lower is safer.

    %(raises_unit)s

    Warns
    -----
    UserWarning
        If the weights sum to less than half the number of rows: they are counted as rows.

    See Also
    --------
    csr_test : Has an exact Monte-Carlo p-value; prefer it for a decision.

    Notes
    -----
    P_risk = Phi((CSR - 1)/sigma) if CSR > 1, else 0, with sigma = sqrt(sum c/(1 - c))/n
    (proposition 6 of [1]_). The normal approximation does not hold its level, because for most
    distributions of the confidence sigma does not converge: calibrated classifiers exceed "three
    sigma" up to ten times too often, and overconfident ones with heavy tails are hardly ever
    found.

    References
    ----------
    .. [1] %(csr)s

    Examples
    --------
    >>> from skselect.metrics import p_risk_score
    >>> round(p_risk_score([0, 1, 1, 0], [.1, .9, .6, .9]), 4)
    0.8695
    """
    return compute_by_correctness(p_risk, y_true, y_proba, options, eps=eps)


@defaults_of(run_csr_test)
def csr_test(
    y_true: Any,
    y_proba: Any,
    *,
    eps: float = 1e-8,
    n_draws: int = 999,
    random_state: Any = None,
    **options: Unpack[WeighedRowOptions],
) -> CsrTest:
    """Test whether a classifier is overconfident where it is nearly certain.

    Parameters
    ----------
    %(data)s
    eps : 0 or float in [1e-100, 0.5), default=1e-8
        Confidences are clipped to [eps, 1 - eps].
    n_draws : int, default=999
        How many calibrated classifiers are simulated. The p-value is never below 1/(n_draws + 1).
    random_state : int, Generator or None, default=None
        Seed of the simulation.
    %(options)s
        Only constant weights: a weight is not a number of independent rows.

    Returns
    -------
    CsrTest
        `csr`, `sigma`, `z` and `p_risk` as published; `p_value`, exact up to 100,000 rows and
        valid beyond; `e_value`.
        ``print`` it for a readable text.

    Raises
    ------
    ValueError
        If weights are not constant, losses are graded, `n_draws` is below 19, with which nothing
        could be found at the level 5 %, or an argument is malformed.

    Notes
    -----
    The p-value keeps the confidences and draws each row's error with chance 1 - c; it counts
    the draws whose CSR is as large, plus one, over the draws plus one. Beyond 100,000 rows,
    confidences where many errors are expected count with 1 - c rounded by less than 1 %, in the
    table and in the draws; the p-value is then raised by a bound on the error, at most .001, so
    that it stays valid. CSR itself has mean at
    most 1 when the classifier is not overconfident, so it is an e-value, without any
    approximation. Both look at the tail: a test of plain error counts finds a general lack of
    accuracy sooner.

    References
    ----------
    .. [1] Martin-Maroto, Abderrahaman & de Polavieja, "Beyond ECE: calibrated size ratio, risk
       assessment, and confidence-weighted metrics", arXiv 2605.01796, 2026,
       definition 2 and proposition 6.

    Examples
    --------
    >>> from skselect.metrics import csr_test
    >>> result = csr_test([0, 1, 1, 0, 1], [.1, .999, .6, .75, .001], random_state=0)
    >>> print(result)
    CSR test: overconfident near certainty (5 % level)
      CSR      200.8  (at most 1 in the mean when not overconfident)
      p-value  0.002  (999 simulated calibrated classifiers)
      e-value  200.8
      P_risk   1  (as published: sigma 8.97, z 22.27)
      2 errors among 5 rows, eps 1e-08
    """
    return compute_by_correctness(
        run_csr_test, y_true, y_proba, options, eps=eps, n_draws=n_draws, random_state=random_state
    )
