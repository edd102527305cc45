"""Which classes are probable enough to be named where a case is deferred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skselect._lib.checks.options import check_generator, check_number
from skselect._lib.typing import BoolArray, FloatArray, IntArray
from skselect.bounds._binomial import conformal_quantile, rows_for_quantile


@dataclass(frozen=True)
class Shortlist:
    """Name the probable classes of deferred cases: ``shortlist=Shortlist(...)``.

    ``shortlist=0.95`` is the same without a share.

    Parameters
    ----------
    level : float in (0, 1)
        How often the right answer is to be on the list of a deferred case.
    share : float in [0, 1), default=0.0
        The share of the rows, by chance, that set the limit of the list and do not choose the
        threshold: the level is then exact. 0: all rows do both, and the level is an estimate.
    random_state : int, RandomState, Generator or None, default=None
        Which rows these are. None: others at each call; a tuner takes its own.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Predictions, select_threshold
    >>> from skselect.thresholds import Shortlist
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([.2, .2, .2], 4000)
    >>> truth = [rng.choice(["cat", "dog", "fox"], p=p) for p in proba]
    >>> found = select_threshold(Predictions.from_proba(truth, proba), objective="risk",
    ...                          target=.02,
    ...                          shortlist=Shortlist(0.95, share=0.5, random_state=0))
    >>> found.policy.decide([[.55, .43, .02], [1, 0, 0]])["shortlist"].tolist()
    [('cat', 'dog'), <NA>]
    """

    level: float
    share: float = 0.0
    random_state: Any = None

    def __post_init__(self) -> None:
        """Check both."""
        rows_for_quantile(self.level)
        check_number("share", self.share, 0.0, 1.0, closed="left")

    def set_apart(self, n: int) -> BoolArray:
        """Return which of n rows do not choose the threshold."""
        apart = np.zeros(n, dtype=bool)
        rng = check_generator(self.random_state)
        apart[rng.permutation(n)[: int(self.share * n)]] = True
        return apart


def shortlist_cutoff(proba: FloatArray, truth: IntArray, level: float) -> float:
    """Return the least probability of a class on the list, so that the truth is on it.

    The truth of one more row, exchangeable with these, has at least this probability with
    probability `level` or more.

    Parameters
    ----------
    proba : ndarray of shape (n, K)
    truth : ndarray of shape (n,)
        Code of the true class; -1 is a class that is on no list.
    level : float in (0, 1)

    Returns
    -------
    float
        -inf where too many truths are on no list.
    """
    of_truth = proba[np.arange(len(truth)), truth].astype(np.float64)
    return -conformal_quantile(np.where(truth < 0, np.inf, -of_truth), level)
