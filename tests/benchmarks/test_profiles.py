import numpy as np
import pytest
from scipy import stats

from benchmarks.profiles import MODELS, make_model_profile

N = 100_000
# Five standard errors of a mean of N numbers in [0, 1].
CLOSE = 5 * 0.5 / np.sqrt(N)


def check_labels(drawn):
    assert np.array_equal(drawn.y_true == drawn.y_pred, drawn.correct)
    assert drawn.confidence.min() >= 0
    assert drawn.confidence.max() <= 1


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "perfect_certain"])
def test_models(kind):
    drawn = make_model_profile(kind, N, random_state=0)
    check_labels(drawn)
    share = {"perfect": 1.0, "random": 1 / 3}.get(kind, 0.9)
    assert drawn.correct.mean() == pytest.approx(share, abs=CLOSE)
    low, high = {
        "calibrated": (0.8, 1), "underconfident": (0.4, 0.6), "random": (0.3, 1),
        "perfect": (0.95, 1),
    }.get(kind, (0.9, 1))  # fmt: skip
    right = drawn.confidence[drawn.correct]
    assert stats.kstest(right, "uniform", args=(low, high - low)).pvalue > 1e-4
    wrong = drawn.confidence[~drawn.correct]
    if kind == "calibrated":
        assert wrong.max() < 0.7
        assert wrong.min() >= 0.5
    elif kind != "perfect":
        assert stats.kstest(wrong, "uniform", args=(low, high - low)).pvalue > 1e-4


def test_the_perfect_model_of_the_text():
    drawn = make_model_profile("perfect_certain", 100, random_state=0)
    check_labels(drawn)
    assert drawn.correct.all()
    assert np.all(drawn.confidence == 1)
