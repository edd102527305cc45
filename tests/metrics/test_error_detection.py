"""How well confidence tells errors from right answers: scikit-learn, ranks, values by hand."""

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from skselect import metrics
from tests import brute
from tests.brute import assert_close, of_rows


def test_auroc_aurc_of_many_rows():
    rng = np.random.default_rng(0)
    positive = rng.integers(0, 65, 300) / 64
    y_true = (rng.random(300) < positive).astype(int)
    confidence = np.maximum(positive, 1 - positive)
    risks = []
    for level in confidence:
        kept = confidence >= level
        if len(np.unique(y_true[kept])) == 2:
            risks.append(1 - roc_auc_score(y_true[kept], positive[kept]))
    assert_close(metrics.auroc_aurc_score(y_true, positive), np.mean(risks), rel=1e-10)


@pytest.mark.parametrize(
    ("n", "n_right", "value"),
    # The largest value is that of R = .556, not that of a perfect classifier.
    [(7, 7, 2 * (1 - math.log(2))), (10, 5, 0.7123), (10, 2, 0.5622), (1000, 556, 0.7148)],
)
def test_f1_retention_of_a_perfect_ranking_is_that_of_the_docstring(n, n_right, value):
    loss = np.where(np.arange(n) < n_right, 0.0, 1.0)
    case = brute.RowCase(loss, np.linspace(1, 0.5, n), None)
    assert_close(of_rows(metrics.f1_retention_auc_score, case), value, rel=1e-4)


@pytest.mark.parametrize("share", [0.07, 0.14, 0.28, 0.29, 0.55, 0.57, 0.58])
def test_a_review_of_all_errors_leaves_none_though_the_share_rounds(share):
    """A share times n may round below the whole number that it stands for."""
    loss = np.where(np.arange(100) < round(100 * share), 1.0, 0.0)
    case = brute.RowCase(loss, np.linspace(0.5, 1, 100), None)
    with pytest.warns(UserWarning, match="no errors"):
        assert math.isnan(of_rows(metrics.oc_auc_score, case, review_fraction=share))


@pytest.mark.parametrize(
    ("name", "y_true", "options", "reason"),
    [
        ("failure_auroc", [0, 1], {}, "no errors"),
        ("failure_auroc", [1, 0], {}, "no right answers"),
        ("failure_average_precision", [0, 1], {}, "no errors"),
        ("failure_average_precision", [1, 0], {"positive": "correct"}, "no right answers"),
        ("oc_auc", [0, 1], {}, "no errors"),
        ("oc_auc", [0, 0], {"review_fraction": 0.5}, "no errors"),
        ("oc_auc", [1, 0], {"review_fraction": 0}, "no right answers"),
        ("auroc_aurc", [1, 1], {}, "not rows of both classes"),
    ],
)
def test_an_undefined_value_is_nan_with_its_reason(name, y_true, options, reason):
    metric, y_proba = getattr(metrics, f"{name}_score"), [[0.75, 0.25], [0.375, 0.625]]
    with pytest.warns(UserWarning, match=rf"{name} is undefined \(nan\).*{reason}"):
        assert math.isnan(metric(y_true, y_proba, labels=[0, 1], **options))


@pytest.mark.parametrize("n_classes", [1, 3])
def test_auroc_aurc_needs_two_classes(n_classes):
    with pytest.raises(ValueError, match="auroc_aurc needs two classes"):
        metrics.auroc_aurc_score(np.arange(n_classes), np.eye(n_classes))
