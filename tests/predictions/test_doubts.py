"""Confidences that are reversed, or those of a class: when they are named, and when not."""

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import mannwhitneyu
from sklearn.linear_model import LogisticRegression

import skselect as sk
from skselect.predictions.doubts import LEVEL, reversed_auroc

REVERSED = r"^confidence: smaller values seem to be surer.*pass its negative"


@pytest.fixture
def scores(rng):
    """Return scores of 300 answers, and whether each is right: mostly where the score is large."""
    score = rng.random(300)
    return score, rng.random(300) < 0.5 + 0.5 * score


@pytest.fixture
def silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("container", [np.asarray, list, pd.Series])
@pytest.mark.parametrize("unjudged", ["drop", "wrong"])
def test_a_reversed_score_of_verdicts_is_named(container, unjudged, scores):
    score, is_right = scores
    verdict = np.where(is_right, "right", "wrong").astype(object)
    verdict[score < 0.2] = None
    for distance in (1 - score, -score, 1e-300 * (1 - score)):
        with pytest.warns(UserWarning, match=REVERSED):
            sk.Predictions.from_verdicts(verdict, container(distance), unjudged=unjudged)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("unjudged", ["drop", "wrong"])
def test_a_score_in_order_and_one_that_says_nothing_are_not(unjudged, scores, rng):
    score, is_right = scores
    verdict = np.where(is_right, 1, 0)
    for confidence in (score, 1e300 * score, np.round(score), rng.random(300), np.ones(300)):
        sk.Predictions.from_verdicts(verdict, confidence, unjudged=unjudged)
    sk.Predictions.from_verdicts([1] * 50, score[:50])
    if unjudged == "wrong":
        sk.Predictions.from_verdicts([None] * 50, score[:50], unjudged=unjudged)
    sk.Predictions.from_verdicts([1, 1, 0], [0.1, 0.2, 0.9])  # too few rows to tell


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"], [False, True], [1.5, 2.5]])
def test_the_probability_of_a_class_is_named_beside_answers(labels, rng):
    p = rng.random(200)
    y_true = np.array(labels)[(rng.random(200) < p).astype(int)]
    for cut_off in (0.3, 0.5):
        answers = np.array(labels)[(p >= cut_off).astype(int)]
        for column, of_class in ((p, labels[1]), (1 - p, labels[0])):
            with pytest.warns(UserWarning, match=f"looks like the probability of {of_class!r}, "):
                sk.Predictions.from_labels(y_true, answers, column)


@pytest.mark.usefixtures("silent")
def test_the_probability_of_the_answer_is_not_even_where_it_sets_answers_apart(rng):
    p = rng.random(200)
    y_true = (rng.random(200) < p).astype(int)
    answers = (p >= 0.5).astype(int)
    sk.Predictions.from_labels(y_true, answers, np.maximum(p, 1 - p))
    sk.Predictions.from_labels(y_true, answers, np.where(answers, 0.9, 0.6))
    sk.Predictions.from_labels(y_true[:4], answers[:4], p[:4])  # too few rows to tell


def test_evaluate_and_a_refusal_name_a_reversed_score(scores):
    score, is_right = scores
    distance = 1 - score
    with pytest.warns(UserWarning, match=REVERSED):
        rows = sk.Predictions.from_verdicts(is_right, distance)
    outcomes = sk.Outcomes(1.0 - is_right, distance)
    curve = sk.RiskCoverageCurve.from_outcomes(outcomes)
    state = sk.SelectiveState().update_confidence(distance, 1.0 - is_right)
    for refused in (rows, outcomes, curve, state.finalize()):
        with (
            warnings.catch_warnings(action="ignore"),
            pytest.raises(sk.InfeasibleTargetError, match=REVERSED.replace("^", "")) as refusal,
        ):
            sk.select_threshold(refused, objective="risk", target=0.01)
        assert str(refusal.value).startswith("REFUSED: at most 1 % of the answers are wrong.")
    with pytest.warns(UserWarning, match=REVERSED):
        sk.select_threshold(outcomes, objective="coverage", target=0.5)
    with pytest.warns(UserWarning, match=REVERSED):
        sk.evaluate(sk.Outcomes(1.0 - is_right, distance), ["aurc"])
    y_proba = np.where(is_right, 0.9, 0.1)
    for own in (distance, lambda p: distance):
        with pytest.warns(UserWarning, match=REVERSED):
            sk.evaluate(np.ones(300, int), y_proba, ["aurc"], confidence=own, pos_label=1)


def test_the_test_is_the_same_in_large_tables_that_need_no_sort(rng):
    """Counts in intervals tell most tables; those near the limit, and a single one, are sorted."""
    wrong = rng.random(20_000) < 0.2
    for shift, doubted in ((0.0, False), (-0.1, False), (0.1, True)):
        for scale in (1.0, 1e-300, 1e300):
            confidence = scale * (rng.random(20_000) + shift * wrong)
            assert math.isnan(reversed_auroc(wrong, confidence)) != doubted
            confidence[0] = 1e308  # all others in one interval
            assert math.isnan(reversed_auroc(wrong, confidence)) != doubted


@pytest.mark.parametrize("decimals", [None, 1])
def test_the_test_is_that_of_mann_and_whitney_and_its_level_is_kept(decimals, rng):
    n_doubted = 0
    for _ in range(300):
        wrong = rng.random(60) < 0.3
        confidence = rng.random(60) + 0.4 * wrong
        if decimals is not None:
            confidence = np.round(confidence, decimals)
        right, errors = confidence[~wrong], confidence[wrong]
        test = mannwhitneyu(
            right, errors, alternative="less", method="asymptotic", use_continuity=False
        )
        auroc = reversed_auroc(wrong, confidence)
        if not math.isnan(auroc):
            n_doubted += 1
            assert auroc == pytest.approx(test.statistic / len(right) / len(errors))
            assert test.pvalue <= LEVEL
        elif decimals is None:
            assert test.pvalue > LEVEL
    assert 0 < n_doubted < 300


def test_a_tuner_names_a_confidence_of_its_own_that_is_reversed(rng):
    X = rng.normal(size=(600, 1))
    y = (rng.random(600) < expit(3 * X[:, 0])).astype(int)
    for sign in (1, -1):
        model = sk.SelectiveClassifier(LogisticRegression(), confidence=_Margin(sign))
        tuner = sk.ThresholdTuner(model, "coverage", target=0.5, random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tuner.fit(X, y)
        assert any(re.match(REVERSED, str(w.message)) for w in caught) == (sign < 0)


class _Margin:
    """The distance of the largest probability from one half, or its negative."""

    def __init__(self, sign):
        self.sign = sign

    def __call__(self, proba):
        return self.sign * (proba.max(axis=1) - 0.5)
