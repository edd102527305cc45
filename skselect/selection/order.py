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
    counts = ~np.isnan(outcomes.confidence)
    if outcomes.sample_weight is not None:
        counts &= outcomes.sample_weight > 0
    if not counts.all():
        every_row = [np.arange(len(outcomes))]
        members = [rows[counts[rows]] for rows in members or every_row]
    parts: list[Any] = [slice(None)]
    if members is not None:
        parts = [rows for rows in members if len(rows)]
    subjects = _name_subjects(objective)
    depending = set()
    for subject, rows in product(subjects, parts):
        p_value = _READERS[subject](outcomes, rows)
        if p_value <= LEVEL / len(subjects) / len(parts):
            depending.add(subject)
    if not depending:
        return ()
    names = " and ".join(sorted(depending, reverse=True))
    caveat = in_order(names, LEVEL, advice, vouched=vouched)
    return (caveat,)


def _name_subjects(objective: Objective) -> list[str]:
    """Return what may depend on the order and matters to an objective."""
    if isinstance(objective, Coverage):
        return ["confidences"]
    subjects = ["losses", "confidences"]
    if isinstance(objective, SystemRisk) and objective.reads_reviewer:
        subjects.append("errors of the reviewer")
    return subjects


def _test_confidences(outcomes: Outcomes, rows: Any) -> float:
    return order_p_value(outcomes.confidence[rows])


def _test_losses(outcomes: Outcomes, rows: Any) -> float:
    """Test the losses, of the surer rows where some are not judged yet."""
    confidence = outcomes.confidence[rows]
    loss = outcomes.loss[rows]
    if outcomes.unjudged is None:
        return order_p_value(confidence, loss)
    unjudged = outcomes.unjudged[rows]
    surest_unjudged = np.max(confidence, where=unjudged, initial=-np.inf)
    surer = confidence > surest_unjudged
    return order_p_value(confidence[surer], loss[surer])


def _test_reviewer(outcomes: Outcomes, rows: Any) -> float:
    _, reviewer_loss, *_ = outcomes.reviewed
    return order_p_value(reviewer_loss[rows])


_READERS = {
    "confidences": _test_confidences,
    "losses": _test_losses,
    "errors of the reviewer": _test_reviewer,
}


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
    if members is None:
        rows_of_guarantee, _ = objective.find_rows(source)
        if rows_of_guarantee is not None:
            members = [np.flatnonzero(rows_of_guarantee)]
    block_starts = None
    if isinstance(source, Predictions):
        block_starts = _find_blocks(source)
    if block_starts is None:
        return find_order(outcomes, objective, advice, members=members, vouched=vouched)
    blocks = []
    for rows in members or [np.arange(len(outcomes))]:
        cuts = np.searchsorted(rows, block_starts)
        blocks += np.split(rows, cuts)
    caveats = find_order(outcomes, objective, advice, members=blocks, vouched=vouched)
    return (*caveats, SORTED_BY_CLASS)


def _find_blocks(predictions: Predictions) -> IntArray | None:
    """Return where blocks start if each of two true classes or more fills one, else None.

    Where all answers are the same, as in verdicts, classes only say which answers are wrong.
    """
    if predictions.unjudged is not None:  # not all classes are known
        return None
    truth = predictions.y_true
    changes = truth[1:] != truth[:-1]
    n_blocks = 1 + np.count_nonzero(changes)
    if not 1 < n_blocks <= len(predictions.classes) + 1:
        return None
    answers = predictions.y_pred
    if np.all(answers == answers[0]):
        return None
    n_classes = len(np.unique(truth))
    if n_blocks != n_classes:
        return None
    return np.flatnonzero(changes) + 1


def doubt_reviewer(outcomes: Outcomes) -> tuple[Caveat, ...]:
    """Return the caveat about a reviewer who is right wherever the machine errs."""
    reviewer_loss = outcomes.reviewer_loss
    if reviewer_loss is None:
        return ()
    machine_errs = outcomes.loss > 0
    n_errors = np.count_nonzero(machine_errs)
    if n_errors < _NO_LUCK or np.any(reviewer_loss[machine_errs]):
        return ()
    reason = (
        f"y may be the reviewer's own answer, which is right in all {n_errors:,} rows in which the "
        "machine errs"
    )
    warning = f"Who gave the labels? {reason}. Then the reviewer's errors are not counted."
    caveat = Caveat(reason, strikes=False, warns=warning)
    return (caveat,)


def find_doubt(source: Predictions | Outcomes) -> tuple[Caveat, ...]:
    """Return the caveat about judged rows that were not drawn at random from those given."""
    if not isinstance(source, Predictions):
        return ()
    draw = draw_of(source)
    if not draw.doubt:
        return ()
    caveat = Caveat(draw.doubt, draw.assumed, warns=f"verdict: {draw.doubt}.")
    return (caveat,)


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
    n = len(values)
    if n == 0:
        return 1.0
    tested = _TestedNumbers(values, loss)
    # Equal numbers become 0 by subtracting one of them, which no rounding of the mean can do.
    [origin] = tested.read(slice(0, 1))
    mean = _mean_above(origin, tested)
    squares, largest = _sum_deviations(origin, mean, tested)
    if squares <= 0.0:
        return 1.0
    # nan where a value is: no order is found there
    deviation_of_sum = np.sqrt(squares * n / (n - 1))
    return float(kolmogorov(largest / deviation_of_sum))


class _TestedNumbers:
    """The numbers whose order is tested, scaled to a range of about one, and read in spans.

    They are the values or, with `loss`, the losses times how far the values are above the
    smallest one.
    """

    def __init__(self, values: FloatArray, loss: FloatArray | None) -> None:
        self.values = values
        self.loss = loss
        self.low = values.min()
        self.high = values.max()
        # A power of two that makes the range about one; differences of halves cannot overflow.
        _, exponent = math.frexp(self.high / 2 - self.low / 2)
        self.scale = math.ldexp(0.5, min(-exponent, 1000))

    def read(self, rows: slice) -> FloatArray:
        """Return the numbers of some rows, in an array of their own."""
        numbers = self.values[rows] * self.scale
        if self.loss is None:
            return numbers
        numbers -= self.low * self.scale
        if self.low < self.high:
            return np.multiply(numbers, self.loss[rows], out=numbers)
        return np.multiply(1.0, self.loss[rows], out=numbers)


def _mean_above(origin: float, tested: _TestedNumbers) -> float:
    """Return the mean of the numbers' distances from `origin`."""
    n = len(tested.values)
    total = 0.0
    for rows in spans(n):
        deviation = tested.read(rows) - origin
        total += float(deviation.sum())
    return total / n


def _sum_deviations(origin: float, mean: float, tested: _TestedNumbers) -> tuple[float, float]:
    """Return the sum of squared deviations from the mean, and their largest partial sum."""
    squares = 0.0
    partial_sum = 0.0
    largest = 0.0
    for rows in spans(len(tested.values)):
        deviations = tested.read(rows)
        deviations -= origin
        deviations -= mean
        squares += dot(deviations, deviations)
        deviations.cumsum(out=deviations)
        deviations += partial_sum
        partial_sum = float(deviations[-1])
        largest = max(largest, float(deviations.max()), -float(deviations.min()))
    return squares, largest


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
    occurs = total > 0
    here = here[occurs]
    total = total[occurs]
    rng = np.random.default_rng(0)
    drawn = rng.multivariate_hypergeometric(total, here.sum(), size=_N_DRAWS)
    # The totals are fixed, so that chi-square rises with the sum of squares over totals.
    least = np.sum(here**2 / total) * (1.0 - ROUNDING)
    squares = np.sum(drawn**2 / total, axis=1)
    n_as_far = np.count_nonzero(squares >= least)
    return float(1 + n_as_far) / (1 + _N_DRAWS)
