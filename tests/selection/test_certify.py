"""A fixed policy on fresh rows."""

import numpy as np
import pytest

from skselect import (
    AbstentionPolicy,
    Predictions,
    certify,
    select_threshold,
)


@pytest.fixture
def policy():
    return AbstentionPolicy(classes=np.array([0, 1]), threshold=0.9)


def test_certify_is_one_clopper_pearson_bound(policy, predictions):
    from scipy import stats

    certificate = certify(policy, predictions, delta=0.1)
    kept = predictions.y_proba.max(axis=1) >= 0.9
    wrong = (predictions.y_pred != predictions.y_true)[kept].sum()
    assert certificate.n_accepted == kept.sum()
    assert certificate.n_errors == wrong
    assert certificate.target == pytest.approx(stats.beta.ppf(0.9, wrong + 1, kept.sum() - wrong))
    assert certificate.is_certified


def test_certify_says_when_the_target_is_missed(policy, predictions):
    certificate = certify(policy, predictions, target=0.01)
    assert not certificate.is_certified
    text = str(certificate)
    assert text.startswith("ESTIMATE, NOT CERTIFIED: the target 1 % is not met; these rows certify")
    assert "If future cases" not in text  # no promise, so none is quoted
    assert certificate.guarantee == "none"
    assert certify(policy, predictions, target=0.2).is_certified


def test_certify_of_a_policy_that_answers_nothing(predictions):
    nothing = AbstentionPolicy(classes=np.array([0, 1]), threshold=np.inf)
    certificate = certify(nothing, predictions, target=0.1)
    assert certificate.why_not == ("the policy accepts none of these rows",)


def test_certify_on_the_rows_that_chose_the_threshold_is_no_certificate(predictions):
    tuned = select_threshold(predictions, objective="risk", target=0.2).policy
    certificate = certify(tuned, predictions)
    assert not certificate.is_certified
    assert "also chose the threshold" in str(certificate)
    assert "fixed before these rows" not in str(certificate)


def test_certify_wants_predictions(policy):
    with pytest.raises(ValueError, match="certify needs Predictions, got list"):
        certify(policy, [0, 1])


def test_certify_refuses_other_classes_and_weights(policy, predictions):
    other = Predictions.from_proba([0, 2], [[0.9, 0.1], [0.2, 0.8]])
    with pytest.raises(ValueError, match="predictions are about the classes"):
        certify(policy, other)
    weighted = Predictions.from_proba([0, 1], [[0.9, 0.1], [0.2, 0.8]], sample_weight=[1, 2])
    with pytest.raises(ValueError, match="sample_weight"):
        certify(policy, weighted)
    labels_only = Predictions.from_labels([0, 1], [0, 1], [0.9, 0.8])
    with pytest.raises(ValueError, match="raw probabilities"):
        certify(policy, labels_only)
