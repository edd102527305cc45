"""Rows in every form that metrics read; shared parameters in docstrings.

Influence values against brute force: leave-one-out jackknife and direct double sums.
"""

from __future__ import annotations

import inspect
import itertools
import math

import numpy as np
import pytest

from skselect import Outcomes, Predictions, RiskCoverageCurve, SelectiveState
from skselect.curve.influence import clustered_error
from skselect.curve.tie_blocks import CHUNK
from skselect.metrics import SPECS
from skselect.metrics._rows import ScoredRows, score_proba, score_rows

Y, P = [0, 1, 1, 0], np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])
COSTS = {"decision": "min_cost", "cost_matrix": [[0, 1], [10, 0]]}


@pytest.mark.parametrize(
    ("how", "confidence"),
    [({}, None), ({}, "max_proba"), ({}, P[:, 0]), ({}, "margin"), (COSTS, None)],
)
def test_the_claim_is_the_probability_of_the_answer_and_no_copy_where_the_rows_say_it(
    how, confidence
):
    predictions = Predictions.from_proba(Y, P, **how)
    rows = score_rows(predictions, confidence=confidence)
    claim = rows.by_correctness
    said = P[:, 0] if isinstance(confidence, np.ndarray) else P[np.arange(4), predictions.y_pred]
    assert claim.outcomes.confidence.tolist() == said.tolist()
    assert claim.outcomes.loss.tolist() == rows.outcomes.loss.tolist()
    assert (claim is rows) == (rows.outcomes.confidence.tolist() == said.tolist())
    if claim is not rows:
        assert claim.predictions.confidence.tolist() == said.tolist()
    for spec in SPECS.values():
        expected = claim if spec.confidence == "probability" else rows
        assert spec.choose_rows(rows) is expected, spec.name


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
    last = part.take(np.array([1]))
    assert last.predictions.y_proba.tolist() == P[[2]].tolist()
    assert last.predictions.y_true.tolist() == [1]
    assert (
        ScoredRows(rows.outcomes).take(np.array([True, False, True, False])).labelled_rows is None
    )


PARAMETERS = {
    "coverage": [{"threshold": 0.7}],
    "selective_risk": [{"threshold": 0.7}],
    "selective_accuracy": [{"threshold": 0.7}],
    "generalized_risk": [{"threshold": 0.7}],
    "selective_cost": [{"threshold": 0.7, "abstention_cost": 0.3}],
    "cwsa": [{"threshold": 0.6}, {"threshold": 0.6, "normalize": "all"}],
    "cwsa_plus": [{"threshold": 0.6}, {"threshold": 0.6, "normalize": "all"}],
}
RANKED = [name for name, spec in SPECS.items() if spec.interval == "ranking"]
CLOSED = [name for name, spec in SPECS.items() if spec.interval == "closed form"] + RANKED
CALLS = [(name, chosen) for name in CLOSED for chosen in PARAMETERS.get(name, [{}])]


def influence(name, source, **parameters):
    return SPECS[name].influence(ScoredRows(source), parameters)


def some_outcomes(n, *, tied=False, graded=False, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.integers(50, 100, n) / 100 if tied else rng.uniform(0.5, 1.0, n)
    loss = (rng.random(n) > confidence).astype(float)
    if graded:
        loss *= rng.choice([0.25, 0.5, 1.0], n)
    return Outcomes(loss, confidence)


def value_of(name, outcomes, parameters):
    spec = SPECS[name]
    source = outcomes if spec.needs == "outcomes" else RiskCoverageCurve.from_outcomes(outcomes)
    return spec.kernel(source, **parameters)


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.closed_form])
def test_a_closed_form_takes_the_parameters_of_the_kernel(name):
    _, *parameters = inspect.signature(SPECS[name].closed_form).parameters.values()
    assert {p.name: p.default for p in parameters if p.name not in ("sign", "scale")} == {
        parameter: known.default for parameter, known in SPECS[name].parameters.items()
    }


@pytest.mark.parametrize(("name", "parameters"), CALLS)
@pytest.mark.parametrize("tied", [False, True])
def test_the_estimate_is_the_metric_and_the_values_are_centred_and_follow_the_rows(
    name, parameters, tied
):
    outcomes = some_outcomes(200, tied=tied)
    effect = influence(name, outcomes, **parameters)
    assert effect.estimate == pytest.approx(value_of(name, outcomes, parameters), rel=1e-12)
    assert effect.values.shape == (200,)
    assert abs(np.sum(effect.values)) < 1e-9 * 200
    order = np.random.default_rng(1).permutation(200)
    moved = influence(name, outcomes.take(order), **parameters).values
    np.testing.assert_allclose(moved, effect.values[order], atol=1e-12)


@pytest.mark.parametrize(("name", "parameters"), CALLS)
@pytest.mark.parametrize("tied", [False, True])
def test_values_agree_with_the_jackknife(name, parameters, tied):
    """(n - 1)(metric - metric without row i) differs from the influence by O(1/n)."""
    n = 400
    outcomes = some_outcomes(n, tied=tied)
    whole = value_of(name, outcomes, parameters)
    jackknife = np.empty(n)
    for i in range(n):
        rest = Outcomes(np.delete(outcomes.loss, i), np.delete(outcomes.confidence, i))
        jackknife[i] = (n - 1) * (whole - value_of(name, rest, parameters))
    values = influence(name, outcomes, **parameters).values
    assert np.corrcoef(values, jackknife)[0, 1] > 0.999
    assert clustered_error(values) == pytest.approx(
        clustered_error(jackknife - jackknife.mean()), rel=0.04
    )


@pytest.mark.parametrize("name", [*RANKED, "ecd"])
@pytest.mark.parametrize("tied", [False, True])
def test_a_confident_error_adds_what_turning_the_surest_right_answer_wrong_does(name, tied):
    outcomes = some_outcomes(400, tied=tied)
    loss = outcomes.loss.copy()
    loss[np.argmax(np.where(loss == 0, outcomes.confidence, 0))] = 1
    expected = value_of(name, Outcomes(loss, outcomes.confidence), {}) - value_of(
        name, outcomes, {}
    )
    assert influence(name, outcomes).confident_error == pytest.approx(expected, rel=0.05)
    no_right_answer = Outcomes([1, 1, 1, 1], [0.9, 0.8, 0.7, 0.6])
    assert influence("aurc", no_right_answer).confident_error == 0.0


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("graded", [False, True])
def test_augrc_values_are_the_pseudo_values_of_the_u_statistic(tied, graded):
    outcomes = some_outcomes(40, tied=tied, graded=graded)
    n, loss, confidence = 40, outcomes.loss, outcomes.confidence
    pseudo = np.zeros(n)
    for i in range(n):
        for j in range(n):
            if i != j:
                surer = (confidence[i] > confidence[j]) + 0.5 * (confidence[i] == confidence[j])
                pseudo[i] += (loss[i] * surer + loss[j] * (1 - surer)) / (n - 1)
    found = influence("augrc", outcomes, estimator="unbiased")
    assert np.mean(pseudo) / 2 == pytest.approx(found.estimate, rel=1e-12)
    expected = (pseudo - pseudo.mean()) * (n - 1) / (n - 2)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("tied", [False, True])
def test_failure_auroc_has_delongs_standard_error(tied):
    outcomes = some_outcomes(120, tied=tied)
    right, wrong = (outcomes.confidence[outcomes.loss == k] for k in (0, 1))
    wins = (right[:, None] > wrong) + 0.5 * (right[:, None] == wrong)
    delong = np.var(wins.mean(axis=1), ddof=1) / len(right)
    delong += np.var(wins.mean(axis=0), ddof=1) / len(wrong)
    found = influence("failure_auroc", outcomes)
    assert found.estimate == pytest.approx(wins.mean(), rel=1e-12)
    n = len(outcomes.loss)
    expected = math.sqrt(delong * n / (n - 1))  # rows, not classes, are counted at the end
    assert clustered_error(found.values) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("augrc", {"coverage_range": (0.2, 0.8)}),
        ("aurc", {"estimator": "integral"}),
        ("aurc", {"ties": "block"}),
        ("accuracy_rejection_auc", {"estimator": "ln"}),
        ("selective_risk", {"threshold": 2.0}),
        ("cwsa", {"threshold": 0.999999}),
    ],
)
def test_what_has_no_closed_form_says_so(name, parameters):
    outcomes = Outcomes([0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6])
    assert influence(name, outcomes, **parameters) is None


def test_a_share_knows_how_many_rows_it_is_of():
    outcomes = Outcomes([0, 1, 1, 0], [0.9, 0.8, 0.6, 0.55])
    assert influence("selective_risk", outcomes, threshold=0.7).n_trials == 2
    assert influence("coverage", outcomes, threshold=0.7).n_trials == 4
    graded = Outcomes([0, 0.5, 1, 0], [0.9, 0.8, 0.6, 0.55])
    assert influence("selective_risk", graded, threshold=0.7).scale == "logit"


@pytest.mark.parametrize("name", ["coverage", "selective_risk", "generalized_risk"])
def test_a_share_has_the_standard_error_of_its_values(name):
    for threshold, n in itertools.product([0, 0.6, 0.9], [1, 2, 57]):
        found = influence(name, some_outcomes(n), threshold=threshold)
        if found is not None:
            expected = pytest.approx(clustered_error(found.values), rel=1e-12, abs=0, nan_ok=True)
            assert found.standard_error() == expected


def test_standard_error_of_rows_and_of_clusters():
    values = np.array([1.0, -1.0, 2.0, -2.0])
    assert clustered_error(values) == pytest.approx(np.std(values, ddof=1) / 2)
    # Two clusters with sums 0 and 0: nothing is left between them.
    assert clustered_error(values, np.array([0, 0, 1, 1])) == 0.0
    # Sums 3 and -3: sqrt((9 + 9) 2/1)/4.
    assert clustered_error(values, np.array([0, 1, 0, 1])) == pytest.approx(1.5)
    assert math.isnan(clustered_error(np.zeros(1)))


@pytest.mark.parametrize("name", RANKED)
def test_blocks_and_rows_say_the_same(name):
    for decimals, n in itertools.product([17, 1, 3], [30, 2 * CHUNK + 5]):
        rng = np.random.default_rng(0)
        outcomes = Outcomes(rng.random(n) < 0.3, rng.random(n).round(decimals))
        rows = influence(name, outcomes)
        blocks = influence(name, RiskCoverageCurve.from_outcomes(outcomes))
        assert blocks.estimate == rows.estimate
        assert blocks.standard_error() == pytest.approx(clustered_error(rows.values), rel=1e-9)


@pytest.mark.parametrize("name", RANKED)
def test_chunks_that_are_read_again_say_what_those_that_are_kept_say(name, monkeypatch):
    outcomes = some_outcomes(2 * CHUNK + 5)
    kept = influence(name, outcomes)
    found = kept.estimate, kept.standard_error(), kept.confident_error
    monkeypatch.setattr("skselect.curve.scan.FEW", 0)
    monkeypatch.setattr("skselect.curve.influence.FEW", 0)
    again = influence(name, outcomes)
    assert found == (again.estimate, again.standard_error(), again.confident_error)


@pytest.mark.filterwarnings("ignore:.*rests on 0 right answers")
def test_rows_that_do_not_differ_say_nothing():
    confidence = np.repeat([0.75, 0.5, 0.25], [4, 9, 9])
    state = SelectiveState().update_confidence(confidence, np.ones(22))
    found = state.interval("augrc")
    assert found.method == "none"
    assert found.standard_error < 1e-12
