"""Rows in every form that metrics read; shared parameters in docstrings."""

from __future__ import annotations

import inspect
from typing import Unpack

import numpy as np
import pytest

from skselect import Outcomes, Predictions, RiskCoverageCurve
from skselect.metrics import SPECS
from skselect.metrics._metric import CountOptions, share_options
from skselect.metrics._rows import ScoredRows, score_proba, score_rows


def indented(y_true, y_proba, *, average="macro", **options: Unpack[CountOptions]):
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


def stripped(y_true, y_proba, *, average="macro", **options: Unpack[CountOptions]):
    pass


# What Python 3.13 keeps of the docstring above.
stripped.__doc__ = inspect.cleandoc(indented.__doc__)


def test_docstrings_are_the_same_with_and_without_their_indentation():
    text = share_options(indented).__doc__
    assert share_options(stripped).__doc__ == text
    assert "%(" not in text
    parameters = [line.split(" : ")[0] for line in text.splitlines() if " : " in line]
    assert parameters == [
        *("y_true", "y_proba", "average"),
        *("confidence", "labels", "pos_label", "sample_weight"),
    ]
    assert "\n    True labels: numbers" in text


Y, P = [0, 1, 1, 0], np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])
COSTS = {"decision": "min_cost", "cost_matrix": [[0, 1], [10, 0]]}


@pytest.mark.parametrize("confidence", [None, "max_proba", P[:, 0]], ids=str)
def test_rows_that_are_their_own_claim_are_not_copied(confidence):
    rows = score_proba(Y, P, confidence=confidence)
    assert rows.by_correctness is rows


@pytest.mark.parametrize(("how", "confidence"), [({}, "margin"), (COSTS, None)])
def test_the_claim_is_the_probability_of_the_answer(how, confidence):
    predictions = Predictions.from_proba(Y, P, **how)
    rows = score_rows(predictions, confidence=confidence)
    answered = P[np.arange(4), predictions.y_pred]
    assert rows.outcomes.confidence.tolist() != answered.tolist()
    assert rows.by_correctness.outcomes.confidence.tolist() == answered.tolist()
    assert rows.by_correctness.predictions.confidence.tolist() == answered.tolist()
    assert rows.by_correctness.outcomes.loss.tolist() == rows.outcomes.loss.tolist()


@pytest.mark.parametrize("name", SPECS)
def test_the_table_says_which_confidence_a_metric_reads(name):
    rows = score_proba(Y, P, confidence="margin")
    expected = rows.by_correctness if SPECS[name].confidence == "probability" else rows
    assert SPECS[name].choose_rows(rows) is expected


def test_a_curve_stands_for_its_rows():
    outcomes = Outcomes([0, 1, 0], [0.9, 0.6, 0.9])
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    rows = ScoredRows(curve)
    assert rows.curve is curve
    assert rows.by_correctness is rows
    assert rows.outcomes.loss.tolist() == [0.0, 1.0]
    assert rows.outcomes.weight.tolist() == [2.0, 1.0]


def test_some_of_the_rows_keep_what_is_known_of_them():
    rows = score_proba(Y, P, confidence="margin", sample_weight=[1, 2, 3, 4])
    part = rows.take(np.array([True, False, True, False]))
    assert part.outcomes.confidence == pytest.approx([0.8, 0.2])
    assert part.outcomes.weight.tolist() == [1, 3]
    assert part.predictions.y_true.tolist() == [0, 1]
    assert part.predictions.y_proba.tolist() == P[[0, 2]].tolist()
    assert ScoredRows(rows.outcomes).take(np.array([True, False, True, False])).given is None
