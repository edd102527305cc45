"""Whether rows depend on their order, so that new cases may be unlike them."""

from __future__ import annotations

import numpy as np
from scipy.special import kolmogorov

from skselect._lib.arrays import FloatArray, IntArray
from skselect._lib.checks import warn_user
from skselect.objectives import Coverage, Objective
from skselect.policy.certificate import Caveat, in_order
from skselect.predictions.outcomes import Outcomes

#: Probability that rows in random order are said to depend on their order.
LEVEL = 0.01

# What to do where the order matters: about a part of the rows, all of them, or the last ones.
HOLD_OUT_LATEST = (
    "hold out the latest of them, by cv=[(train, test)] with the positions of earlier and of later "
    "rows"
)
TAKE_LATEST = "take the latest of them alone"
LEAVE_MARGIN = "these rows are the latest already, so leave a margin in the target"


def find_order(
    outcomes: Outcomes,
    objective: Objective,
    advice: str,
    *,
    codes: IntArray | None = None,
    vouched: bool = False,
) -> tuple[Caveat, ...]:
    """Return the caveat about rows whose losses or confidences depend on their order.

    With `codes`, those of subgroups, each subgroup is tested by itself, at its share of the level.
    There is none in at least 99 of 100 tables whose rows are in random order. Only confidences
    count for a coverage. A loss counts in proportion to how sure the answer was:
    losses of sure answers are those that get accepted, and they show a change sooner.
    """
    codes = np.zeros(len(outcomes), dtype=np.int64) if codes is None else codes
    codes = np.where(outcomes.weight > 0, codes, -1)
    found, groups = set(), np.unique(codes[codes >= 0])
    for group in groups:
        tested = _ordered(outcomes.take(codes == group), objective)
        for name, values in tested.items():
            level = LEVEL / len(tested) / len(groups)
            if order_p_value(values) <= level:
                found.add(name)
    named = " and ".join(sorted(found, reverse=True))
    return (in_order(named, LEVEL, advice, vouched=vouched),) if found else ()


def _ordered(outcomes: Outcomes, objective: Objective) -> dict[str, FloatArray]:
    """Return what is tested of rows in their order."""
    confidences = {"confidences": outcomes.confidence}
    if isinstance(objective, Coverage):
        return confidences
    half = outcomes.confidence / 2  # differences of halves cannot overflow
    above = half - half.min() if np.ptp(half) > 0 else 1.0
    return {"losses": outcomes.loss * above} | confidences


def warn_of_order(caveats: tuple[Caveat, ...]) -> None:
    """Warn of what :func:`find_order` found, unless the user vouches for the rows."""
    for caveat in caveats:
        if caveat.strikes:
            warn_user(f"The order of the rows matters: {caveat.reason}.")


def order_p_value(values: FloatArray) -> float:
    """Return the p-value of the hypothesis that every order of the values is equally likely.

    The statistic is the largest absolute partial sum of the deviations from the mean, divided by
    their standard deviation and the square root of their number: a trend makes it large, and a
    change at any point. Its limit is the maximum of a Brownian bridge (Kolmogorov's distribution),
    which for few values, or few that differ from the others, is conservative. The cost is linear.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.selection.order import order_p_value
    >>> errors = np.repeat([0., 1.], [90, 10])
    >>> order_p_value(errors) < 1e-6
    True
    >>> round(order_p_value(np.random.default_rng(0).permutation(errors)), 2)
    0.55
    """
    largest = np.max(np.abs(values), initial=0.0)
    if largest == 0.0:
        return 1.0
    scaled = values / largest
    scaled -= scaled[0]  # equal values become 0, which no rounding of the mean can do
    scaled -= scaled.mean()
    n, squares = len(scaled), scaled @ scaled
    if squares == 0.0:
        return 1.0
    partial = np.cumsum(scaled, out=scaled)
    return float(kolmogorov(np.max(np.abs(partial)) / np.sqrt(squares * n / (n - 1))))
