"""Simulated models of arXiv 2505.18622."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

#: Share of right answers, and the range of the confidence of right and of wrong ones.
MODELS = {
    "calibrated": (0.9, (0.8, 1.0), (0.5, 0.7)),
    "overconfident": (0.9, (0.9, 1.0), (0.9, 1.0)),
    "underconfident": (0.9, (0.4, 0.6), (0.4, 0.6)),
    "perfect": (1.0, (0.95, 1.0), (0.95, 1.0)),
    "perfect_certain": (1.0, (1.0, 1.0), (1.0, 1.0)),
    "random": (1 / 3, (0.3, 1.0), (0.3, 1.0)),
}


def make_model_profile(
    kind: str = "calibrated", n_samples: int = 1000, *, random_state: Any = None
) -> Bunch:
    """Draw predictions of one of six kinds of model.

    Parameters
    ----------
    kind : {"calibrated", "overconfident", "underconfident", "perfect", "perfect_certain", \
"random"}, default="calibrated"
        See the table.
    n_samples : int, default=1000
        Number of rows n.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    Bunch
        ``confidence``, ``chance`` (probability of being right, the same in all rows) and
        ``correct`` (bool), arrays of shape (n,); ``y_true`` and ``y_pred``, labels that agree
        with ``correct``: 0 and 1, of "random" 0 to 2.

    Notes
    -----
    ===============  =========  ==================  ==================
    kind             right      confidence, right   confidence, wrong
    ===============  =========  ==================  ==================
    calibrated       90 %       U(.8, 1)            U(.5, .7)
    overconfident    90 %       U(.9, 1)            U(.9, 1)
    underconfident   90 %       U(.4, .6)           U(.4, .6)
    perfect          100 %      U(.95, 1)
    perfect_certain  100 %      exactly 1
    random           a third    U(.3, 1)            U(.3, 1)
    ===============  =========  ==================  ==================

    "calibrated", "overconfident" and "random" follow the paper's text on tables 1 to 3; the ranges
    of "underconfident" and "perfect" are those of the authors' published code (which lets a third
    of the wrong answers be right by luck). The perfect model of the text is "perfect_certain":
    CWSA, CWSA+ and coverage are 1 at every threshold, ECE and AURC 0. The names are the paper's:
    the confidence of "calibrated" separates right from wrong answers, which calibration does not
    require.

    References
    ----------
    .. [1] arXiv 2505.18622, section 4.

    Examples
    --------
    >>> from skselect import Outcomes, RiskCoverageCurve
    >>> from profiles import make_model_profile
    >>> drawn = make_model_profile("calibrated", random_state=0)
    >>> curve = RiskCoverageCurve.from_outcomes(Outcomes(~drawn.correct, drawn.confidence))
    >>> curve.cwsa([.5, .8]).round(2)
    array([0.7 , 0.48])
    """
    rng = np.random.default_rng(random_state)
    share, right, wrong = MODELS[kind]
    correct = rng.random(n_samples) < share
    low, high = np.where(correct[:, None], right, wrong).T
    confidence = rng.uniform(low, high)
    n_classes = 3 if kind == "random" else 2
    y_pred = rng.integers(n_classes, size=n_samples)
    other = (y_pred + rng.integers(1, n_classes, size=n_samples)) % n_classes
    return Bunch(
        confidence=confidence, chance=np.full(n_samples, share), correct=correct,
        y_true=np.where(correct, y_pred, other), y_pred=y_pred,
    )  # fmt: skip
