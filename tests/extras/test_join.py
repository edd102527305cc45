"""Where stages keep a case, against a search by hand; tables of several models become one."""

import contextlib
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import skselect as sk
from skselect._lib.arrays import draw_rows
from skselect.extras.join import plan_cuts
from skselect.predictions.predictions import cascade_of, draw_of
from tests.common import mostly_slow
from tests.refusals import check_refused


def worth_by_hand(confidence, wrong, target):
    """Return the accuracy, or what the certified road accepts."""
    if target is None:
        return 1 - np.mean(wrong)
    try:
        return sk.select_threshold(
            sk.Outcomes(wrong, confidence), objective=sk.Risk(target)
        ).coverage
    except sk.InfeasibleTargetError:
        return 0.0


def merge(cut, first, second):
    keeps = first[0] >= cut
    return [np.where(keeps, a, b) for a, b in zip(first, second, strict=True)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([None, 0.1, 0.3]), st.sampled_from([0.0, 0.02, 0.5]))
def test_a_stage_keeps_as_much_as_the_loss_allows(seed, target, max_loss):
    rng, n = np.random.default_rng(seed), 200
    stages = []
    for sharp in (1, 2, 3):
        confidence = rng.choice(np.linspace(0.4, 1.0, 13), n)  # many ties
        stages.append((confidence, rng.random(n) < (1 - confidence) / sharp))
    cuts = plan_cuts(*zip(*stages, strict=True), target, max_loss)
    best = worth_by_hand(*stages[2], target)
    tail = stages[2]
    for k, step in ((1, 1), (0, 2)):
        allowed = best - max_loss * step / 2
        good = [
            cut for cut in np.unique(stages[k][0])
            if best > 0 and worth_by_hand(*merge(cut, stages[k], tail), target) >= allowed
        ]  # fmt: skip
        assert cuts[k] == min(good, default=np.inf)
        tail = merge(cuts[k], stages[k], tail)


def test_stages_share_what_may_be_lost():
    wrong = [np.arange(100) < 3, np.arange(100) >= 97, np.zeros(100, dtype=bool)]
    confidence = [np.full(100, level) for level in (0.5, 0.7, 0.9)]
    assert plan_cuts(confidence, wrong, None, 0.05) == (0.5, np.inf)  # .025 and .05 may be lost
    assert plan_cuts(confidence, wrong, None, 0.06) == (0.5, 0.7)
    assert plan_cuts(confidence, wrong, None, 0.02) == (np.inf, np.inf)


def test_weights_are_repetitions_where_the_accuracy_counts(rng):
    confidence = [rng.choice([0.6, 0.7, 0.8, 0.9], 60) for _ in range(3)]
    wrong = [rng.random(60) < 0.3 for _ in range(3)]
    weight = rng.integers(1, 4, 60)
    twice = [np.repeat(one, weight) for one in confidence], [np.repeat(x, weight) for x in wrong]
    weighted = plan_cuts(confidence, wrong, None, 0.05, weight.astype(float))
    assert weighted == plan_cuts(*twice, None, 0.05)


def make_tables(rng, n=1500, labels=("no", "yes")):
    """Return predictions of a cheap model that knows the easy rows, and of a strong one."""
    codes, easy = rng.integers(0, 2, n), rng.random(n) < 0.6
    tables = []
    for sure in (np.where(easy, 0.98, 0.6), np.full(n, 0.98)):
        right = rng.random(n) < sure
        second = np.where((codes == 1) == right, sure, 1 - sure)
        tables.append(np.column_stack([1 - second, second]))
    y = np.array(labels)[codes]
    parts = [sk.Predictions.from_proba(y, table, labels=list(labels)) for table in tables]
    return dict(zip(("cheap", "strong"), parts, strict=True)), codes


@pytest.mark.parametrize("calibration", [None, "smooth_isotonic", "temperature"])
def test_joined_tables_certify_and_their_policy_follows_the_stages(rng, calibration):
    stages, codes = make_tables(rng)
    joined = sk.join_stages(stages, target=0.05, costs=[0, 3], calibration=calibration)
    rest = ~draw_rows(len(codes), 3, seed=0)  # the others set the rule
    assert joined.y_true.tolist() == codes[rest].tolist()
    selection = sk.select_threshold(joined, objective="risk", target=0.05)
    assert selection.certificate.is_certified
    tables = {name: part.y_proba[rest] for name, part in stages.items()}
    decided = selection.policy.decide(tables)
    assert decided["suggestion"].tolist() == joined.answers.tolist()
    np.testing.assert_array_equal(decided["confidence"], joined.y_proba.max(axis=1))
    costs = selection.policy.expected_costs
    assert costs["asked"]["strong"] == np.mean(decided["stage"] == "strong") < 0.6
    assert costs["cost"]["all"] == 3 * costs["asked"]["strong"]


def test_tables_that_do_not_belong_together_are_refused(rng):
    stages, codes = make_tables(rng, 60)
    cheap, table, y = stages["cheap"], stages["strong"].y_proba, np.array(["no", "yes"])[codes]
    read = partial(sk.Predictions.from_proba, labels=["no", "yes"])
    answers = sk.Predictions.from_labels(y, y, np.full(60, 0.9))
    for strong in (
        read(y[::-1], table), read(y, table, sample_weight=[2.0] * 60), answers,
        sk.Predictions.from_proba(y, np.full((60, 3), 1 / 3), labels=["no", "other", "yes"]),
        read(y, cheap.y_proba, decision="estimator", y_pred=y),
    ):  # fmt: skip
        check_refused("stages", sk.join_stages, {"cheap": cheap, "strong": strong})
    for parts in ({"cheap": cheap}, [cheap, cheap], {"cheap": answers, "strong": y}):
        check_refused("stages", sk.join_stages, parts)
    check_refused("max_loss", partial(sk.join_stages, stages, max_loss=-0.1))


def draw_flat(rng, n_stages, risk, n=450):
    """Return stages that are wrong in a share `risk` of the cases, however sure they are."""
    y, stages = rng.integers(0, 2, n), {}
    for k in range(n_stages):
        sure, wrong = rng.uniform(0.5, 1.0, n), rng.random(n) < risk
        stages[f"stage {k}"] = sk.Predictions.from_proba(y, np.where(wrong == y, 1 - sure, sure))
    return stages


@pytest.mark.filterwarnings("ignore::UserWarning")  # no cut is good enough; an order by chance
@pytest.mark.parametrize(
    ("n_stages", "plan", "draws"),
    mostly_slow([(2, None, 200), (2, 0.1, 1000), (3, None, 1000)], unpack=True),
)
def test_a_risk_just_above_the_target_is_certified_as_rarely_as_delta_allows(n_stages, plan, draws):
    rng, n_false = np.random.default_rng(0), 0
    for _ in range(draws):
        stages = draw_flat(rng, n_stages, 1.0001 * 0.05)
        joined = sk.join_stages(stages, target=plan, calibration=None)
        try:
            selection = sk.select_threshold(joined, objective="risk", target=0.05, delta=0.1)
        except sk.InfeasibleTargetError:
            continue
        n_false += selection.coverage > 0
    assert 0.01 * draws < n_false < draws * 0.1 + 3 * np.sqrt(draws * 0.1 * 0.9)


@pytest.mark.filterwarnings("ignore:The cascade saves nothing")
def test_three_questions_for_each_document_in_turn_are_no_gap():
    """The first question of each document is hard: 7.3 % of all answers are wrong."""
    rng, n, n_false = np.random.default_rng(0), 1500, 0
    risk = np.where(np.arange(n) % 3 == 0, 0.18, 0.02)
    for _ in range(40):
        y, stages = rng.integers(0, 2, n), {}
        for name in ("cheap", "strong"):
            sure, wrong = rng.uniform(0.5, 1.0, n), rng.random(n) < risk
            stages[name] = sk.Predictions.from_proba(y, np.where(wrong == y, 1 - sure, sure))
        joined = sk.join_stages(stages, target=0.15, calibration=None)
        assert len(joined) == 1000
        with contextlib.suppress(sk.InfeasibleTargetError):
            n_false += sk.select_threshold(joined, objective=sk.Risk(0.05)).coverage > 0.1
    assert n_false <= 0.05 * 40 + 3 * np.sqrt(40 * 0.05 * 0.95)


@pytest.mark.parametrize("calibration", [None, "smooth_isotonic", "platt"])
@pytest.mark.parametrize("judged", [False, True])
def test_answers_with_a_score_are_joined_and_decided_stage_by_stage(rng, judged, calibration):
    n, names = 1500, ("small", "large")
    truth, scores, answers = rng.choice(["a", "b"], n), {}, {}
    for name, skill in zip(names, (1.0, 3.0), strict=True):
        scores[name] = rng.normal(size=n)
        right = rng.random(n) < 1 / (1 + np.exp(-skill * (scores[name] + 1)))
        answers[name] = np.where(right, truth, np.where(truth == "a", "b", "a"))
    stages = {
        name: (
            sk.Predictions.from_verdicts(answers[name] == truth, scores[name])
            if judged
            else sk.Predictions.from_labels(truth, answers[name], scores[name])
        )
        for name in names
    }
    joined = sk.join_stages(stages, target=0.1, calibration=calibration)
    policy = sk.select_threshold(joined, objective="risk", target=0.1).policy
    rest = ~draw_rows(n, 3, seed=0)
    first = policy.begin(confidence=scores["small"][rest])
    goes_on = first == "large"
    asked = np.where(goes_on, scores["large"][rest], np.nan)
    said = np.where(goes_on, answers["large"][rest], "")
    decided = policy.decide(
        y_pred={"small": answers["small"][rest], "large": said},
        confidence={"small": scores["small"][rest], "large": asked},
    )
    np.testing.assert_array_equal(decided["confidence"], joined.confidence)
    expected = np.where(goes_on, answers["large"][rest], answers["small"][rest])
    assert decided["suggestion"].tolist() == expected.tolist()
    assert (decided["stage"] == "large").tolist() == goes_on.tolist()
    wrong = decided["accepted"] & (expected != truth[rest])
    assert int(wrong.sum()) == policy.certificate.n_errors
    fresh = policy.cascade.join({name: part.take(rest) for name, part in stages.items()})
    assert sk.check_policy(policy, fresh).n_accepted == decided["accepted"].sum()
    check_refused("stages", sk.check_policy, policy, stages["small"])
    check_refused("stages", policy.cascade.join, dict(reversed(stages.items())))
    again = sk.AbstentionPolicy.from_json(policy.to_json(allow_external=True))
    assert again.begin(confidence=scores["small"][rest]).tolist() == first.tolist()
    for argument, said, sure in (
        ("'large'", answers, {"small": scores["small"]}), ("y_pred", answers["small"], scores),
        ("dict", answers["small"], scores["small"]),
    ):  # fmt: skip
        check_refused(argument, partial(policy.decide, y_pred=said, confidence=sure))
    named = {"small": pd.Series(scores["small"]), "large": pd.Series(scores["large"])}
    other = {name: pd.Series(answers[name], index=range(n)[::-1]) for name in names}
    with pytest.raises(ValueError, match=r"confidence\['small'\] has another index than y_pred"):
        policy.decide(y_pred=other, confidence=named)
    with pytest.raises(ValueError, match="has no gate file"):
        policy.to_python()


def judge_two_models(rng, n, share):
    """Return the verdicts of two models on cases of one list, each drawn for itself."""
    hard = rng.random(n) < 0.3
    chance = {"cheap": np.where(hard, 0.4, 0.02), "strong": np.where(hard, 0.3, 0.01)}
    score = {"cheap": np.where(hard, 0.3, 0.9), "strong": np.full(n, 0.5)}
    stages = {}
    for name, wrong in chance.items():
        verdict = np.where(rng.random(n) < wrong, "wrong", "right")
        drawn = rng.random(n) < share
        sure = score[name] + rng.random(n) / 100
        stages[name] = sk.Predictions.from_verdicts(np.where(drawn, verdict, ""), sure)
    return stages, hard


def test_verdicts_of_stages_are_joined_case_by_case(rng):
    """They were paired by number: the strong model met easy cases where the cheap one passed on."""
    stages, hard = judge_two_models(rng, 4000, 0.5)
    shared = np.intersect1d(draw_of(stages["cheap"]).position, draw_of(stages["strong"]).position)
    with pytest.warns(UserWarning, match=r"of [\d,]+ judged cases are left out, for they were not"):
        joined = sk.join_stages(stages, target=0.15, calibration=None)
    assert np.isin(draw_of(joined).position, shared).all()
    assert len(joined) == len(shared) - -(-len(shared) // 3)
    cut = cascade_of(joined).cuts[0]
    sure = dict(zip(draw_of(stages["cheap"]).position, stages["cheap"].confidence, strict=True))
    goes_on = np.array([sure[at] < cut for at in draw_of(joined).position])
    wrong = joined.y_true == 1
    assert hard[draw_of(joined).position][goes_on].mean() > 0.9
    assert wrong[goes_on].mean() > 0.2  # paired by number it was .1
    with pytest.warns(UserWarning, match="judged cases are left out"):
        assert len(cascade_of(joined).join(stages)) == len(shared)
    apart = {
        name: sk.Predictions.from_verdicts(["right", ""][::k] * 50, np.arange(100))
        for name, k in (("a", 1), ("b", -1))
    }
    with pytest.raises(ValueError, match="no case was judged in all of them"):
        sk.join_stages(apart, target=0.1)
