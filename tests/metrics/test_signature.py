"""Shared parameters are written into the docstrings of all metrics."""

import inspect

from skselect.metrics._signature import count_metric


def indented(y_true, y_proba, *, average="macro", **options):
    """Return something.

    Parameters
    ----------
    %(data)s
    %(average)s
    %(options)s

    Returns
    -------
    float
    """


def stripped(y_true, y_proba, *, average="macro", **options):
    pass


# What Python 3.13 keeps of the docstring above.
stripped.__doc__ = inspect.cleandoc(indented.__doc__)


def test_docstrings_are_the_same_with_and_without_their_indentation():
    text = count_metric(indented).__doc__
    assert count_metric(stripped).__doc__ == text
    assert "%(" not in text
    parameters = [line.split(" : ")[0] for line in text.splitlines() if " : " in line]
    assert parameters == [
        *("y_true", "y_proba", "average"),
        *("confidence", "labels", "pos_label", "sample_weight"),
    ]
    assert "\n    True labels: numbers" in text
