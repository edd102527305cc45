"""Small curves with ties, and the rows behind them."""

import numpy as np
from hypothesis import strategies as st

from skselect import Outcomes, RiskCoverageCurve
from tests.brute import examples

profile = examples(120)


@st.composite
def curves(draw, max_rows=60, weighted=False):
    n = draw(st.integers(1, max_rows))
    levels = draw(st.sampled_from([3, 10, 1000]))
    confidence = [draw(st.integers(0, levels)) / levels for _ in range(n)]
    loss = [draw(st.integers(0, 1)) for _ in range(n)]
    weight = [draw(st.integers(1, 3)) for _ in range(n)] if weighted else None
    return RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence, weight)), (
        np.array(confidence), np.array(loss), np.array(weight or [1] * n),
    )  # fmt: skip


def passed(rule, curve, *given):
    """The entries that pass, one Boolean each."""
    found = rule(curve, *given)
    assert (found.dtype, found.shape) == (bool, (len(curve),))
    return np.flatnonzero(found).tolist()
