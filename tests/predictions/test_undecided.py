"""Rows that no threshold accepts: without an answer, a confidence or a number, or zeros alone."""

import dataclasses
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

import skselect as sk
from skselect.inference import metric_interval, metrics_by_group
from skselect.metrics import (
    augrc_score,
    coverage_gap_score,
    coverage_score,
    cwsa_contributions,
    cwsa_score,
    generalized_risk_score,
    selective_confusion_matrix,
    selective_risk_score,
    top_label_brier_score,
)
from skselect.objectives import Risk
from skselect.predictions.predictions import undecided_of
from skselect.scoring import get_scorer
from skselect.streaming import SubgroupStates
from tests.refusals import check_refused

NAN = float("nan")
#: Thirty-nine rows that are surely right, and what stands in the first one.
RIGHT = np.tile([0.9, 0.1], (39, 1))


def table(row):
    return np.vstack([[row], RIGHT])


def gate_of(policy):
    gate = {}
    exec(policy.to_python(), gate)
    return gate["decide"]


CONTAINERS = {
    "array": np.asarray,
    "list": lambda proba: np.asarray(proba).tolist(),
    "object": lambda proba: np.asarray(proba, dtype=object),
    "DataFrame": lambda proba: pd.DataFrame(proba, columns=["no", "yes"]),
    "nullable": lambda proba: pd.DataFrame(proba, columns=["no", "yes"]).convert_dtypes(),
    "float32": lambda proba: np.asarray(proba, dtype=np.float32),
    "polars": lambda proba: pl.DataFrame(np.asarray(proba), schema=["no", "yes"]),
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("threshold", [-np.inf, 0.0, 0.5])
def test_rows_of_zeros_are_deferred_at_every_threshold(container, threshold):
    policy = sk.AbstentionPolicy(np.array(["no", "yes"]), threshold, abstain_label="?")
    scores = container(table([0.0, 0.0]))
    decided = policy.decide(scores)
    assert not decided["accepted"][0]
    assert decided["accepted"][1:].all()
    assert decided.loc[0, ["label", "suggestion", "confidence"]].isna().all()
    plain = policy.decide_arrays(scores)
    assert (plain["label"][0], plain["suggestion"][0]) == (None, None)
    rows = sk.Predictions.from_proba(["no"] * 40, scores, labels=["no", "yes"])
    check = sk.check_policy(policy, rows, objective=Risk(0.2, delta=0.4))
    assert check.to_dict()["guarantees"][0]["n_accepted"] == 39


@pytest.mark.parametrize("row", [[NAN, 0.5], [0.5, NAN], [NAN, NAN]])
def test_rows_that_lack_a_number_are_deferred_and_named(row):
    policy = sk.AbstentionPolicy(np.array(["no", "yes"]), -np.inf)
    for decide in (policy.decide, policy.decide_arrays, gate_of(policy)):
        with pytest.warns(UserWarning, match=r"y_proba: 1 of 40 rows .* row 0\); .*deferred"):
            decided = decide(table(row))
        assert list(decided["accepted"]) == [False] + [True] * 39
        assert pd.isna(decided["label"][0])
        assert np.isnan(decided["confidence"][0])
    with pytest.warns(UserWarning, match=r"y_proba: 1 of 40 rows .* row 0"):
        rows = sk.Predictions.from_proba(["no"] * 40, table(row), labels=["no", "yes"])
    assert undecided_of(rows).tolist() == [True] + [False] * 39
    for metric in ["augrc", "top_label_brier", "coverage"]:
        assert "row 0" in check_refused("y_proba", sk.evaluate, rows, [metric])


def test_answers_without_a_confidence_are_deferred_and_named():
    policy = sk.AbstentionPolicy(np.array(["no", "yes"]), 0.0)
    for decide in (policy.decide, policy.decide_arrays, gate_of(policy)):
        with pytest.warns(UserWarning, match=r"confidence: 2 of 3 rows .* row 1"):
            decided = decide(y_pred=["no", "yes", None], confidence=[0.0, NAN, 0.9])
        assert list(decided["accepted"]) == [True, False, False]
        assert [pd.isna(label) for label in decided["label"]] == [False, True, True]
    assert policy.accepts([0.0, NAN]).tolist() == [True, False]


def test_gate_and_policy_agree_on_rows_that_cannot_be_decided(rng):
    proba = rng.dirichlet([1, 1, 1], 60)
    proba[::7] = 0.0
    proba[3::11, 1] = NAN
    for confidence in ["max_proba", "margin", "entropy", "gini"]:
        policy = sk.AbstentionPolicy(np.array(["a", "b", "c"]), 0.3, confidence=confidence)
        with warnings.catch_warnings(action="ignore"):
            mine, file = policy.decide_arrays(proba), gate_of(policy)(proba)
        for name in mine:
            assert str(mine[name].tolist()) == str(file[name].tolist()), name
        undecided = np.isnan(mine["confidence"])
        assert undecided.tolist() == ((proba == 0).all(axis=1) | np.isnan(proba[:, 1])).tolist()
        assert not mine["accepted"][undecided].any()


def test_metrics_read_rows_of_zeros_as_equal_probabilities(rng):
    y = rng.integers(0, 3, 50)
    proba = rng.dirichlet([1, 1, 1], 50)
    proba[:5] = 0.0
    equal = proba.copy()
    equal[:5] = 1 / 3
    for metric in [augrc_score, top_label_brier_score]:
        assert metric(y, proba) == metric(y, equal)
    names = ["augrc", "ece", "failure_auroc", "csr", "selective_accuracy"]
    pd.testing.assert_series_equal(sk.evaluate(y, proba, names), sk.evaluate(y, equal, names))
    outcomes = sk.Outcomes.from_proba(y, proba)
    assert np.isnan(outcomes.confidence).sum() == 5
    curve = sk.RiskCoverageCurve.from_outcomes(outcomes)
    assert curve.coverage[-1] == 0.9
    check_refused("confidence", curve.augrc)
    check_refused("confidence", sk.evaluate, curve)


@pytest.mark.parametrize("n_zeros", [0, 1, 7])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 1 / 3, 0.5])
def test_no_threshold_of_a_metric_accepts_rows_of_zeros(n_zeros, threshold, rng):
    """They are deferred: without them the risk is the same, and the coverage smaller."""
    y = rng.integers(0, 3, 60)
    proba = rng.dirichlet([1, 1, 1], 60)
    proba[:n_zeros] = 0.0
    rest = slice(n_zeros, None)
    share = 1 - n_zeros / 60
    options = {"labels": [0, 1, 2], "threshold": threshold}
    for metric, factor in [
        (selective_risk_score, 1), (cwsa_score, 1), (coverage_score, share),
        (generalized_risk_score, share),
    ]:  # fmt: skip
        expected = factor * metric(y[rest], proba[rest], **options)
        assert metric(y, proba, **options) == pytest.approx(expected)
        name = metric.__name__.removesuffix("_score")
        request = {name: {"threshold": threshold}}
        rows = sk.Predictions.from_proba(y, proba)
        state = sk.SelectiveState(labels=[0, 1, 2]).update(y, proba)
        for found in (sk.evaluate(rows, request), state.evaluate(request)):
            assert found[name] == pytest.approx(expected)
        interval = metric_interval(y, proba, name, metric_params={"threshold": threshold})
        assert interval.estimate == pytest.approx(expected)
    matrix = selective_confusion_matrix(y, proba, **options)
    assert matrix[:, -1].sum() >= n_zeros
    assert cwsa_contributions(y, proba, **options)[:n_zeros].tolist() == [0] * n_zeros
    groups = np.where(np.arange(60) < max(n_zeros, 2), "zeros", "others")
    if n_zeros == 7 and threshold == 0:
        assert coverage_gap_score(y, proba, subgroups=groups, **options) == 1.0
        by_group = metrics_by_group(y, proba, groups, {"coverage": {"threshold": 0}})
        assert by_group.loc[by_group["subgroup"] == "others", "value"].tolist() == [1.0]


class Mute(ClassifierMixin, BaseEstimator):
    """Says none of the classes where the first column of X is 0."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        proba = np.full((len(X), 2), 0.5)
        proba[:, 0] += 0.1 * np.sign(X[:, 0])
        proba[:, 1] -= 0.1 * np.sign(X[:, 0])
        proba[X[:, 0] == 0] = 0.0
        return proba

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_scorers_defer_rows_of_zeros_at_every_threshold():
    X = np.array([[0.0], [1.0], [1.0], [-1.0]])
    y = np.array([0, 0, 1, 1])
    model = Mute().fit(X, y)
    frozen = FrozenEstimator(model)
    for estimator in (model, sk.SelectiveClassifier(frozen, threshold=0.0).fit(X, y)):
        for threshold, coverage in ((0.0, 0.75), (0.5, 0.75), (0.7, 0.0)):
            assert get_scorer("coverage", threshold=threshold)(estimator, X, y) == coverage


def test_states_count_what_cannot_be_decided(rng):
    """Thresholds defer it; metrics refuse what lacks a number, as those of rows do."""
    n = 400
    proba = rng.dirichlet([1, 1], n)
    y = (rng.random(n) < proba[:, 1]).astype(int)
    proba[:40] = 0.0
    objective = Risk(0.3, delta=0.3)
    for n_lacking in (0, 20):
        proba[n - n_lacking :] = NAN
        with warnings.catch_warnings(action="ignore"):
            rows = sk.Predictions.from_proba(y, proba)
            state = sk.SelectiveState(labels=[0, 1])
            for part in (slice(0, 100), slice(100, 350), slice(350, n)):
                state.update(y[part], proba[part])
            groups = SubgroupStates(labels=[0, 1]).update(y, proba, subgroups=y)
        assert (state.n_rows, state.n_undecided) == (n, 40 + n_lacking)
        chosen = sk.select_threshold(rows, objective=objective)
        for one in (state, state.merge(), groups.total(), pickle.loads(pickle.dumps(state))):
            assert one.select_threshold(objective=objective).thresholds == chosen.thresholds
        copy = sk.SelectiveState.from_counts(**state.to_arrays())
        assert copy.select_threshold(objective=objective).thresholds == chosen.thresholds
        if n_lacking:
            assert "20 of 400 rows" in check_refused("confidence", state.evaluate)
        else:
            names = {"augrc": {}, "ece": {}, "coverage": {"threshold": 0.0}}
            pd.testing.assert_series_equal(state.evaluate(names), sk.evaluate(rows, names))
            interval = sk.SelectiveState.interval(state, "augrc")
            assert interval.estimate == sk.evaluate(rows, ["augrc"])["augrc"]
    nothing = sk.SelectiveState().update_confidence([NAN], [0])
    assert nothing.finalize().coverage.tolist() == [0.0]
    check_refused("confidence", nothing.evaluate)
    with pytest.raises(sk.InfeasibleTargetError):
        nothing.select_threshold(objective=objective)


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.9])
def test_nothing_but_rows_of_zeros_has_no_coverage(threshold):
    y = [0, 1, 1]
    proba = np.zeros((3, 2))
    options = {"threshold": threshold}
    assert coverage_score(y, proba, **options) == 0.0
    assert cwsa_score(y, proba, **options) == 0.0
    assert generalized_risk_score(y, proba, **options) == 0.0
    with pytest.warns(UserWarning, match="No row is accepted"):
        assert np.isnan(selective_risk_score(y, proba, **options))
    state = sk.SelectiveState(labels=[0, 1]).update(y, proba)
    assert state.evaluate({"coverage": options})["coverage"] == 0.0
    assert metric_interval(y, proba, "coverage", metric_params=options).estimate == 0.0


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("objective", ["risk", "generalized_risk", "coverage"])
def test_thresholds_count_undecided_rows_as_deferred(objective, share, rng):
    """They are as good as rows of a confidence below all others that no threshold may reach."""
    n = 600
    confidence = rng.uniform(0.5, 1.0, n)
    truth = np.where(rng.random(n) < confidence, "a", "b")
    undecided = rng.random(n) < share
    answers = np.full(n, "a", dtype=object)
    answers[undecided] = "unsure"
    missing = np.where(undecided, NAN, confidence)
    target = {"risk": 0.3, "generalized_risk": 0.25, "coverage": 0.5}[objective]
    rows = sk.Predictions.from_labels(truth, answers, confidence, abstain_answers=["unsure"])
    found = sk.select_threshold(rows, objective=objective, target=target)
    certificate = found.certificate
    accepted = ~undecided & (confidence >= found.threshold)
    assert certificate.n == n
    assert certificate.n_accepted == accepted.sum()
    assert certificate.n_errors == np.sum(accepted & (truth == "b"))
    assert found.coverage == accepted.mean()
    assert rows.classes.tolist() == ["a", "b"]
    assert found.policy.n == n
    with warnings.catch_warnings(action="ignore"):
        other = sk.Predictions.from_labels(truth, ["a"] * n, missing)
    again = sk.select_threshold(other, objective=objective, target=target)
    assert again.threshold == found.threshold
    # A row of the table below all others, and wrong, gives no higher threshold than its deferral.
    if objective == "generalized_risk":
        last = np.where(undecided, 0.0, confidence)
        wrong = np.where(undecided | (truth == "b"), 1.0, 0.0)
        lowest = sk.select_threshold(
            sk.Outcomes(wrong, last), objective=objective, target=target
        ).threshold
        assert lowest >= found.threshold or lowest == 0.0


@pytest.mark.parametrize("method", ["combined", "band", "bonferroni", "sgr", "fixed_sequence",
                                    "mean", "empirical"])  # fmt: skip
def test_every_rule_takes_undecided_rows(method, rng):
    n = 400
    confidence = np.round(rng.uniform(0.5, 1.0, n), 2)
    loss = (rng.random(n) < (1 - confidence) / 2).astype(float)
    confidence[rng.random(n) < 0.5] = NAN
    objective = Risk(0.2, delta=0.2, method=method)
    found = sk.select_threshold(sk.Outcomes(loss, confidence), objective=objective)
    accepted = confidence >= found.threshold
    assert found.coverage == accepted.mean()
    assert 0 < accepted.mean() <= 0.6


def test_judged_answers_may_abstain():
    verdict = ["right"] * 60 + ["unsure"] * 20 + ["wrong"] * 2
    rows = sk.Predictions.from_verdicts(verdict, np.ones(82), abstain_answers=["unsure"])
    found = sk.select_threshold(rows, objective=Risk(0.3, delta=0.3))
    assert (found.certificate.n, found.certificate.n_accepted) == (82, 62)
    assert rows.to_frame()["y_pred"].isna().sum() == 20
    with pytest.warns(UserWarning, match=r"confidence: 1 of 82 rows \(the first is row 0\)"):
        sk.Predictions.from_verdicts(["right"] * 82, [NAN] + [0.5] * 81)
    for call in [
        lambda: sk.Predictions.from_labels(["a"], ["a"], [1], abstain_answers="unsure"),
        lambda: sk.Predictions.from_verdicts(["right"], [1], abstain_answers="unsure"),
    ]:
        check_refused("abstain_answers", call)


def test_a_table_without_any_row_to_decide_is_refused():
    for name, call in [
        ("y_pred", lambda: sk.Predictions.from_labels(["a", "b"], [None, None], [1, 2])),
        ("confidence", lambda: sk.Predictions.from_labels(["a", "b"], ["a", "b"], [NAN, NAN])),
        ("confidence", lambda: sk.Outcomes([0, 1], [NAN, NAN])),
        ("y_proba", lambda: sk.Predictions.from_proba([0, 1], [[NAN, NAN], [NAN, 1]])),
    ]:
        with warnings.catch_warnings(action="ignore"):
            check_refused(name, call)


def test_masked_rows_are_refused_by_policy_and_gate_file():
    policy = sk.AbstentionPolicy(np.array(["no", "yes"]), 0.6)
    masked = np.ma.array([[0.02, 0.98], [0.5, 0.5]], mask=[[1, 1], [0, 0]])
    for decide in (policy.decide, gate_of(policy)):
        check_refused("y_proba", decide, masked)
        for confidence in (np.ma.array([0.9, 0.8], mask=[1, 0]), [0.9, np.inf], ["87%", 0.9]):
            check_refused(
                "confidence", lambda d=decide, c=confidence: d(y_pred=["a", "b"], confidence=c)
            )


def test_policies_defer_the_answers_by_which_the_model_abstains():
    truth, answers = ["a", "b"] * 30, (["a", "b"] * 29) + ["unsure", "b"]
    rows = sk.Predictions.from_labels(truth, answers, np.ones(60), abstain_answers=["unsure"])
    policy = sk.select_threshold(rows, objective=Risk(0.3, delta=0.3)).policy
    restored = sk.AbstentionPolicy.from_json(policy.to_json())
    assert restored.abstain_answers == ("unsure",)
    for decide in (policy.decide, restored.decide_arrays, gate_of(policy)):
        decided = decide(y_pred=["a", "unsure"], confidence=[1.0, 1.0])
        assert list(decided["accepted"]) == [True, False]
        assert pd.isna(decided["suggestion"][1])
        assert not decide(y_pred=["unsure"], confidence=[1.0])["accepted"][0]
    for bad in ["unsure", ["a"]]:
        check_refused(
            "abstain_answers", lambda b=bad: dataclasses.replace(policy, abstain_answers=b)
        )


def test_monitors_defer_what_cannot_be_decided():
    proba = table([0.0, 0.0])
    rows = sk.Predictions.from_proba([0] * 40, RIGHT[[0] * 40], labels=[0, 1])
    policy = sk.select_threshold(rows, objective=Risk(0.3, delta=0.3)).policy
    monitor = sk.SelectiveRiskMonitor(policy).update(np.zeros(40, dtype=int), proba)
    assert (monitor.status_.n_decided, monitor.status_.n_accepted) == (40, 39)
