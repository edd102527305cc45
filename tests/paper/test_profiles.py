"""The synthetic classifiers do what their names say."""

import numpy as np
import pytest

from tests.paper.profiles import LAWS, MODES, judge, stream

N = 100_000
# Five standard errors of a mean of N numbers in [0, 1].
CLOSE = 5 * 0.5 / np.sqrt(N)


@pytest.mark.parametrize("law", LAWS)
def test_errors_follow_the_chance(law):
    for mode in MODES:
        rng = stream("profiles", law, N)
        confidence = LAWS[law](rng, N)
        state = rng.bit_generator.state
        correct = judge(rng, mode, confidence).loss == 0
        rng.bit_generator.state = state
        rng.random(N)  # which decides who is right
        chance = MODES[mode](rng, confidence)
        assert confidence.min() >= 0
        assert confidence.max() <= 1
        assert correct.mean() == pytest.approx(chance.mean(), abs=CLOSE)
        # Where the chance is higher, it is right more often.
        high = chance > np.median(chance)
        if 0 < high.sum() < N:
            assert correct[high].mean() == pytest.approx(chance[high].mean(), abs=2 * CLOSE)


@pytest.mark.parametrize(
    ("mode", "sign"),
    [("Perfect", 0), ("Underconf 0.2+0.8c", 1), ("Underconf sqrt", 1), ("Random over c", 1),
     ("Overconf 1-sqrt", -1), ("Overconf 0.5c", -1), ("Random under c", -1)],
)  # fmt: skip
def test_names_tell_the_direction(mode, sign):
    rng = stream("profiles", "Bell", 1000)
    confidence = LAWS["Bell"](rng, 1000)
    assert np.all(np.sign(MODES[mode](rng, confidence) - confidence) == sign)
