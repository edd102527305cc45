"""What an object says of itself fits a line."""

import inspect

import numpy as np
import pytest

import skselect as sk
from skselect import display as pictures
from skselect._lib.notebook import LONGEST_LINE
from skselect.inference import metric_interval

LONG = "a name that is so long that it fills a line of a terminal by itself, and even more of it"
LABELS = np.array(["no", "yes"])


@pytest.fixture(scope="module")
def results():
    """Return public results by a name, with the longest contents that they have usually."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.4, 0.4, 3000)
    y = np.where(rng.random(3000) < p, "yes", "no")
    rows = sk.Predictions.from_proba(y, np.column_stack([1 - p, p]), labels=LABELS)
    guarantees = [sk.Risk(0.2), sk.Coverage(0.2), sk.Risk(0.3, given_class="yes")]
    selection = sk.select_threshold(rows, objective=guarantees)
    monitor = sk.SelectiveRiskMonitor(selection.policy, target=0.2, batch=100)
    monitor.update(y, rows.y_proba)
    half = rows.take(np.arange(1500))
    check = sk.check_policy(selection.policy, half)
    by_half = sk.select_threshold(rows, objective=sk.Risk(0.2), subgroups=np.arange(3000) % 2)
    return {
        "rows": rows,
        "outcomes": sk.Outcomes([0, 1], [0.9, 0.8]),
        "selection": selection,
        "certificate": selection.certificate,
        "policy": selection.policy,
        "selections of subgroups": by_half,
        "policy of subgroups": by_half.policy,
        "curve": selection.curve,
        "check": check,
        "check of a guarantee": check.guarantees[0],
        "monitor": monitor,
        "status": monitor.status_,
        "status of a guarantee": monitor.status_.guarantees[0],
        "report": sk.selective_report(half, policy=selection.policy),
        "interval": metric_interval(y, rows.y_proba, "augrc", labels=LABELS),
    }


def test_results_fit_a_line(results):
    for name, result in results.items():
        text = repr(result)
        assert text.startswith("<"), name
        assert text.endswith(">"), name
        assert len(text) <= LONGEST_LINE, text
        assert "\n" not in text
        assert "object at" not in text


def test_several_guarantees_are_named_or_counted(results):
    assert "3 guarantees" in repr(results["certificate"])


def test_pictures_fit_a_line(results):
    curve = results["curve"]
    kinds = [kind for _, kind in inspect.getmembers(pictures, inspect.isclass)]
    assert len(kinds) == 7
    for kind in kinds:
        assert kind.__repr__ is not object.__repr__
    for name, expected in [(None, ""), ("forest", ": forest")]:
        display = sk.RiskCoverageDisplay(curve, name=name)
        assert repr(display) == f"<RiskCoverageDisplay{expected}>"
    assert len(repr(sk.RiskCoverageDisplay(curve, name=LONG))) == LONGEST_LINE
    confusion = pictures.SelectiveConfusionDisplay(np.ones((2, 3)))
    assert repr(confusion) == "<SelectiveConfusionDisplay: 2 classes>"
