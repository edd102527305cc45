"""Whether rows look like a fair sample: by their order, their classes, and who judged them."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from scipy.special import kolmogorov

from skselect._lib.arrays import ROUNDING, FloatArray, IntArray, dot, spans
from skselect.objectives import Coverage, Objective, SystemRisk
from skselect.policy.certificate import SORTED_BY_CLASS, Caveat, in_order
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions, draw_of

#: Probability that rows in random order are said to depend on their order.
LEVEL = 0.01

#: The same for rows of other classes than those that trained the classifier, and how many tables
#: are drawn to tell.
CLASS_LEVEL = 0.001
_N_DRAWS = 2_999

# So many errors of the machine without one of the reviewer raise a doubt.
_NO_LUCK = 100

# What to do where the order matters: about a part of the rows, all of them, or the last ones.
HOLD_OUT_LATEST = (
    "certify on the latest rows (cv=[(train, test)], the positions of earlier and of later rows)"
)
TAKE_LATEST = "use the latest rows alone"
LEAVE_MARGIN = "leave a margin in the target (these rows are already the latest)"


def find_order(
    outcomes: Outcomes,
    objective: Objective,
    advice: str,
    *,
    members: list[IntArray] | None = None,
    vouched: bool = False,
) -> tuple[Caveat, ...]:
    """Return the caveat about rows whose losses or confidences depend on their order.

    With `members`, the rows of subgroups, each is tested by itself, at its share of the level.
    There is none in at least 99 of 100 tables whose rows are in random order. Only confidences
    count for a coverage. A loss counts in proportion to how sure the answer was:
    losses of sure answers are those that get accepted, and they show a change sooner. Where rows
    are not judged yet, the losses of the surer ones are tested: all of those are judged.
    """
    weight = outcomes.sample_weight
    if weight is not None:
        members = [rows[weight[rows] > 0] for rows in members or [np.arange(len(outcomes))]]
    parts: list[Any] = [slice(None)] if members is None else [rows for rows in members if len(rows)]
    names = ["confidences"] if isinstance(objective, Coverage) else ["losses", "confidences"]
    if isinstance(objective, SystemRisk) and objective.reads_reviewer:
        names.append("errors of the reviewer")
    found = set()
    for name, rows in product(names, parts):
        values, loss = outcomes.confidence[rows], None
        if name == "losses":
            loss = outcomes.loss[rows]
            if outcomes.unjudged is not None:
                judged = values > np.max(values, where=outcomes.unjudged[rows], initial=-np.inf)
                values, loss = values[judged], loss[judged]
        elif name == "errors of the reviewer":
            values = outcomes.reviewed[1][rows]
        if len(values) and order_p_value(values, loss) <= LEVEL / len(names) / len(parts):
            found.add(name)
    named = " and ".join(sorted(found, reverse=True))
    return (in_order(named, LEVEL, advice, vouched=vouched),) if found else ()


def check_order(
    source: Predictions | Outcomes,
    outcomes: Outcomes,
    objective: Objective,
    members: list[IntArray] | None,
    advice: str,
    *,
    vouched: bool,
) -> tuple[Caveat, ...]:
    """Return what :func:`find_order` says of the rows that a guarantee is about.

    Where the rows are sorted by class, it looks inside each class, and a caveat says so. That takes
    the classes as they stand and asks only whether the rows of a class are in random order, so the
    level is kept. It cannot see a change from one class to the next.
    """
    if members is None and (given := objective.find_rows(source)[0]) is not None:
        members = [np.flatnonzero(given)]
    starts = _find_blocks(source) if isinstance(source, Predictions) else None
    if starts is not None:
        every = members or [np.arange(len(outcomes))]
        members = [one for rows in every for one in np.split(rows, np.searchsorted(rows, starts))]
    found = find_order(outcomes, objective, advice, members=members, vouched=vouched)
    return found if starts is None else (*found, SORTED_BY_CLASS)


def _find_blocks(predictions: Predictions) -> IntArray | None:
    """Return where blocks start if each of two true classes or more fills one, else None.

    Where all answers are the same, as in verdicts, classes only say which answers are wrong.
    """
    truth, answers = predictions.y_true, predictions.y_pred
    changes = truth[1:] != truth[:-1]
    n_blocks = 1 + np.count_nonzero(changes)
    if not 1 < n_blocks <= len(predictions.classes) + 1 or np.all(answers == answers[0]):
        return None
    if predictions.unjudged is not None:  # not all classes are known
        return None
    return np.flatnonzero(changes) + 1 if n_blocks == len(np.unique(truth)) else None


def doubt_reviewer(outcomes: Outcomes) -> tuple[Caveat, ...]:
    """Return the caveat about a reviewer who is right wherever the machine errs."""
    errs, missed = outcomes.loss > 0, outcomes.reviewer_loss
    if missed is None or np.sum(errs) < _NO_LUCK or np.any(missed[errs]):
        return ()
    found = "y may be the reviewer's own answer, which is right in all"
    found = f"{found} {np.sum(errs):,} rows in which the machine errs"
    warns = f"Who gave the labels? {found}. Then the reviewer's errors are not counted."
    return (Caveat(found, strikes=False, warns=warns),)


def find_doubt(source: Predictions | Outcomes) -> tuple[Caveat, ...]:
    """Return the caveat about judged rows that were not drawn at random from those given."""
    if not isinstance(source, Predictions):
        return ()
    draw = draw_of(source)
    if not draw.doubt:
        return ()
    return (Caveat(draw.doubt, draw.assumed, warns=f"verdict: {draw.doubt}."),)


def order_p_value(values: FloatArray, loss: FloatArray | None = None) -> float:
    """Return the p-value of the hypothesis that every order of the rows is equally likely.

    The rows' values are tested or, with `loss`, their losses times how far the values are above
    the smallest one. The statistic is the largest absolute partial sum of the deviations from the
    mean, divided by their standard deviation and the square root of their number: a trend makes it
    large, and a change at any point. Its limit is the maximum of a Brownian bridge (Kolmogorov's
    distribution), which for few values, or few that differ from the others, is conservative.

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
    n, low, high = len(values), values.min(), values.max()
    # A power of two that makes the range about one; differences of halves cannot overflow.
    scale = math.ldexp(0.5, min(-math.frexp(high / 2 - low / 2)[1], 1000))

    def read(rows: slice) -> FloatArray:
        part = values[rows] * scale
        if loss is None:
            return part
        part -= low * scale
        return np.multiply(part if low < high else 1.0, loss[rows], out=part)

    # Equal values become 0 by subtracting one of them, which no rounding of the mean can do.
    first = read(slice(0, 1))[0]
    mean = sum(float((read(rows) - first).sum()) for rows in spans(n)) / n
    squares = total = largest = 0.0
    for rows in spans(n):
        part = read(rows)
        part -= first
        part -= mean
        squares += dot(part, part)
        part.cumsum(out=part)
        part += total
        total = float(part[-1])
        largest = max(largest, float(part.max()), -float(part.min()))
    return float(kolmogorov(largest / np.sqrt(squares * n / (n - 1)))) if squares > 0.0 else 1.0


def class_p_value(here: IntArray, there: IntArray) -> float:
    """Return the p-value of the hypothesis that rows counted by class were drawn alike.

    The statistic is Pearson's chi-square. It is compared with that of random tables of the same
    totals, so that the level holds for rare classes too.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.selection.order import class_p_value
    >>> class_p_value(np.array([50, 50]), np.array([950, 50])) < .001
    True
    >>> class_p_value(np.array([93, 7]), np.array([950, 50])) > .1
    True
    """
    total = here + there
    here, total = here[total > 0], total[total > 0]
    drawn = np.random.default_rng(0).multivariate_hypergeometric(total, here.sum(), size=_N_DRAWS)
    # The totals are fixed, so that chi-square rises with the sum of squares over totals.
    least = np.sum(here**2 / total) * (1.0 - ROUNDING)
    n_as_far = np.count_nonzero(np.sum(drawn**2 / total, axis=1) >= least)
    return float(1 + n_as_far) / (1 + _N_DRAWS)
