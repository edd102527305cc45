"""Predictions of logits, log-probabilities and decision values."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.datasets import load_digits, make_classification
from sklearn.svm import LinearSVC

import skselect as sk
from skselect.predictions.predictions import raw_scores, undecided_of
from tests.refusals import check_refused

NAN = float("nan")
LOGITS = np.array([[2.0, 0.0, -1.0], [0.5, 1.0, 3.0], [-800.0, 10.0, 800.0], [0.0, 0.0, 0.0]])
TRUTH = ["a", "c", "c", "b"]


@pytest.mark.parametrize("shift", [0.0, 50.0, -1e6])
def test_logits_are_probabilities_by_the_softmax(shift):
    rows = sk.Predictions.from_logits(TRUTH, LOGITS + shift)
    np.testing.assert_allclose(rows.y_proba, special.softmax(LOGITS, axis=1), atol=1e-9)
    frame = pd.DataFrame(LOGITS + shift, columns=list("abc"))[list("cab")]
    named = sk.Predictions.from_logits(TRUTH, frame)
    np.testing.assert_allclose(named.y_proba, rows.y_proba, atol=1e-9)


def test_log_probabilities_give_the_probabilities_back():
    proba = np.array([[0.7, 0.2, 0.1], [0.0, 0.0, 1.0], [0.25, 0.5, 0.25], [0.0, 0.0, 0.0]])
    with np.errstate(divide="ignore"):
        rows = sk.Predictions.from_logits(TRUTH, np.log(proba))
    np.testing.assert_allclose(rows.y_proba[:3], proba[:3], rtol=1e-15)
    assert undecided_of(rows).tolist() == [False, False, False, True]  # none of the classes
    one = sk.Predictions.from_logits(["no", "yes"], [-1.0, 2.0])
    np.testing.assert_allclose(one.y_proba[:, 1], special.expit([-1.0, 2.0]))
    with pytest.warns(UserWarning, match="row 0"):
        rows = sk.Predictions.from_logits(
            TRUTH, np.where(np.eye(4, 3) > 0, NAN, LOGITS)[[0, 3, 3, 3]]
        )
    assert undecided_of(rows).tolist() == [True, False, False, False]


def test_bad_logits_and_scores_are_named():
    for argument, call in [
        ("logits", lambda: sk.Predictions.from_logits(TRUTH, [[np.inf, 0, 0]] * 4)),
        ("logits", lambda: sk.Predictions.from_logits(TRUTH, np.zeros((4, 3, 1)))),
        ("logits", lambda: sk.Predictions.from_logits(TRUTH, [["a"] * 3] * 4)),
        ("logits", lambda: sk.Predictions.from_logits([0, 1], [0, 1])),
        ("y_proba", lambda: sk.Predictions.from_logits(TRUTH[:2], LOGITS)),
        ("scores", lambda: sk.Predictions.from_scores(TRUTH, [np.inf, 0, 0, 0])),
        ("scores", lambda: sk.Predictions.from_scores(TRUTH, [1.0, 0, 0, 0])),
        ("scores", lambda: sk.Predictions.from_scores([0, 1], [[1.0, 2.0]] * 2)),
        ("scores", lambda: sk.Predictions.from_scores([0, 1], [1.0, 2.0, 3.0])),
        ("scores", lambda: sk.Predictions.from_scores(TRUTH, np.zeros((4, 4)))),
        ("decision", lambda: sk.Predictions.from_scores([0, 1], [1.0, 2.0], decision="min_cost")),
    ]:
        check_refused(argument, call)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_a_policy_of_decision_values_is_checked_certified_and_reported(n_classes):
    """A LinearSVC, whose policy is tuned, checked, certified, reported and watched."""
    if n_classes == 2:
        X, codes = make_classification(1500, 6, class_sep=2.0, random_state=0)
        y = np.array(["no", "yes"])[codes]
    else:
        X, y = load_digits(return_X_y=True)
    model = sk.SelectiveClassifier(LinearSVC(), calibration="platt")
    with warnings.catch_warnings(action="ignore"):
        tuner = sk.ThresholdTuner(model, "risk", target=0.15, random_state=0).fit(
            X[:1000], y[:1000]
        )
    policy, scores, truth = tuner.policy_, tuner.raw_scores(X[1000:]), y[1000:]
    assert policy.response == "decision_function"
    rows = sk.Predictions.from_scores(truth, scores, labels=policy.classes)
    assert raw_scores(rows) is not None
    decided = policy.decide(scores)
    answered = decided["accepted"].to_numpy()
    wrong = answered & (decided["suggestion"].to_numpy() != truth)
    for given in [(truth, scores), (rows,)]:
        check = sk.check_policy(policy, *given).guarantees[0]
        assert (check.n_accepted, check.n_errors) == (answered.sum(), wrong.sum())
        certificate = sk.certify(policy, *given, target=0.15)
        assert (certificate.n_accepted, certificate.n_errors) == (answered.sum(), wrong.sum())
        report = sk.selective_report(*given, policy=policy)
        assert report.contents["models"]
    for metric in ["augrc", "coverage", "ece"]:
        check_refused("predictions", sk.evaluate, rows, [metric])
    check_refused("predictions", lambda: sk.select_threshold(rows, objective="risk", target=0.1))
    check_refused("predictions", sk.selective_report, rows)
    proba = sk.AbstentionPolicy(policy.classes, 0.7)
    check_refused("predictions", sk.check_policy, proba, rows)
    table = sk.Predictions.from_proba(truth, tuner.predict_proba(X[1000:]), labels=policy.classes)
    check_refused("predictions", sk.check_policy, policy, table)
