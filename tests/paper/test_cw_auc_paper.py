"""arXiv 2605.01796, tables 10 and 11: AUC and its confidence-weighted form, two classes.

The tables come out only if the class that is not predicted has the probability min(c, 1 - c),
and the predicted class stays what it was: the rows of such a matrix sum to less than one where
c < 1/2, so the public functions refuse it and the tests hand it to the kernel.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from skselect import Predictions
from skselect.metrics import SPECS
from tests.common import mostly_slow
from tests.paper.profiles import LAWS, MODES, judge, stream

REPETITIONS = 100
N = 1000
REFERENCE_RUNS = 40  # repetitions behind a mean in the reference tables

cw_auc = SPECS["cw_auc"].kernel


def classify(rng: np.random.Generator, law: str, mode: str) -> Predictions:
    """Draw rows of two equally frequent classes; `confidence` is that in the predicted class."""
    c = LAWS[law](rng, N)
    y_true = rng.integers(0, 2, N)
    wrong = judge(rng, mode, c).loss.astype(int)
    y_pred = y_true ^ wrong
    proba = np.empty((N, 2))
    rows = np.arange(N)
    proba[rows, y_pred] = c
    proba[rows, 1 - y_pred] = np.minimum(c, 1 - c)
    return Predictions(y_true, y_pred, np.array([0, 1]), proba, confidence=c)


def unweighted(predictions: Predictions) -> Predictions:
    """Return the same rows with equal confidences, whose cwAUC is the plain AUC."""
    p = predictions
    return Predictions(p.y_true, p.y_pred, p.classes, p.y_proba, confidence=np.ones(len(p)))


@cache
def runs(law: str, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the AUC and the cwAUC of each repetition."""
    rngs = stream(f"10 {mode}", law, N).spawn(REPETITIONS)
    drawn = [classify(rng, law, mode) for rng in rngs]
    return np.array([cw_auc(unweighted(p)) for p in drawn]), np.array([cw_auc(p) for p in drawn])


# Published in table 11 (perfect calibration, one run): AUC and cwAUC.
TABLE_11 = {
    "Uniform": (0.6804, 0.8142),
    "Skew High": (0.9324, 0.9468),
    "Skew Low": (0.5025, 0.5311),
    "Bimodal": (0.7201, 0.9274),
    "Tight Hi": (0.9297, 0.9326),
    "Tight Lo": (0.5, 0.4987),
    "Normal": (0.7776, 0.7904),
    "Log-Uniform Low": (0.5081, 0.6775),
    "Log-Uniform High": (0.9917, 0.9940),
    "Bell": (0.5704, 0.5996),
}  # fmt: skip


@pytest.mark.parametrize(
    "law", mostly_slow(sorted(LAWS, key=["Tight Lo", "Uniform"].__contains__, reverse=True), 2)
)
def test_table_11_is_a_run_of_ours(law):
    found = runs(law, "Perfect")
    if law == "Tight Lo":
        # Every c is below 1/2, so both classes of a row have the same probability, and the AUCs
        # of the two classes add up to one whatever the weights. The published .4987 does not.
        np.testing.assert_allclose(found, 0.5, rtol=1e-12)
        return
    for published, values in zip(TABLE_11[law], found, strict=True):
        sd = float(np.std(values, ddof=1))
        assert published == pytest.approx(float(np.mean(values)), abs=3 * sd)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_means_of_table_10(mode, reference):
    table = reference("cwauc_table10.csv")
    chosen = (table["rule"] == "B:min(c,1-c)") & (table["mode"] == mode)
    known = table[chosen].set_index("dist")
    for law in LAWS:
        (auc, weighted), row = runs(law, mode), known.loc[law]
        error = row.sd * math.sqrt(1 / REPETITIONS + 1 / REFERENCE_RUNS)
        gain = np.mean(weighted - auc)
        assert gain == pytest.approx(row.delta, abs=4.5 * error + 1e-5), law
