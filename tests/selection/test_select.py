"""select_threshold on tables of predictions."""

import dataclasses
import pickle
import re
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from skselect import (
    AbstentionPolicy,
    Best,
    Cost,
    Coverage,
    GeneralizedRisk,
    InfeasibleTargetError,
    Outcomes,
    Predictions,
    Risk,
    RiskCoverageCurve,
    SelectiveRiskMonitor,
    SystemRisk,
    certify,
    check_policy,
    evaluate,
    join_stages,
    select_threshold,
    selective_report,
)
from skselect._lib.notebook import unwrap
from skselect.inference import metrics_by_group
from skselect.metrics._threshold import cwsa_plus_score
from skselect.objectives import GUARANTEES, Counts
from skselect.predictions.predictions import draw_of
from skselect.selection.order import TAKE_LATEST, find_order
from skselect.thresholds import Combined, FixedSequence, LevelSequence, Shortlist
from skselect.thresholds._advice import plan_rows
from skselect.thresholds._least import find_least_target
from skselect.thresholds._rules import combined_risk
from tests.common import mostly_slow, read_certificate
from tests.refusals import check_refused, refusals


@pytest.mark.filterwarnings("ignore:min_coverage", "ignore:cwsa")
def test_metric_objective_returns_its_value_and_no_certificate(predictions):
    selection = select_threshold(predictions, objective="cwsa_plus")
    y, proba = predictions.y_true, predictions.y_proba
    assert selection.certificate is None
    assert selection.value == pytest.approx(
        cwsa_plus_score(y, proba, threshold=selection.threshold), abs=1e-9
    )
    assert selection.coverage >= 0.5
    text = " ".join(str(selection).split())
    assert text.startswith("GUARANTEES NOTHING")
    assert text.endswith("No error rate was asked for: that takes objective='risk', target=0.05.")


def test_binding_coverage_warns_and_is_kept(good):
    with pytest.warns(UserWarning, match=r"min_coverage=0\.5 binds"):
        selection = select_threshold(good, objective=Best("cwsa_plus", threshold_range=(0, 1)))
    assert selection.coverage >= 0.5
    with pytest.warns(UserWarning, match="binds"):
        smaller = select_threshold(
            good, objective=Best("cwsa_plus", min_coverage=0.2, threshold_range=(0, 1))
        )
    assert smaller.value > selection.value


def test_risk_is_kept_on_the_rows_and_certified_where_less_is_accepted(good):
    selection = select_threshold(good, objective="risk", target=0.02)
    kept = good.confidence >= selection.threshold
    assert selection.certificate.is_certified
    assert selection.risk == good.loss[kept].mean() < 0.02
    assert selection.to_frame().equals(selection.to_frame(max_rows=256))
    plain = select_threshold(good, objective=Risk(0.02, method="empirical"))
    assert plain.coverage > selection.coverage == kept.mean()
    assert plain.certificate is None
    assert str(plain).startswith("GUARANTEES NOTHING")
    assert "No error rate" not in str(plain)


@pytest.mark.parametrize("objective", ["risk", "generalized_risk"])
def test_infeasible_target_says_what_would_help(objective):
    few = Outcomes([0] * 50, np.linspace(0.5, 1, 50))
    goal = {"objective": objective, "target": 0.02}
    with pytest.raises(InfeasibleTargetError, match="REFUSED: at most 2 % of") as caught:
        select_threshold(few, **goal)
    lines = caught.value.reason.splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("Best of these 50 rows: the surest ")
    assert lines[2].startswith("A target of 5.82 % would have been met (")
    assert "use fresh rows" in lines[3]
    assert "these 50 prove 5.82 % at best" in lines[3]
    assert caught.value.guarantee == lines[0].removeprefix("REFUSED: ").removesuffix(".")
    low, high = caught.value.rows_needed_range
    assert 149 <= low <= high == caught.value.rows_needed
    assert caught.value.least_target == pytest.approx(1 - 0.05 ** (1 / 50), rel=2e-3)
    n_accepted, n_errors, bound = caught.value.best_set
    assert (n_errors, bound) == (0, pytest.approx(1 - 0.05 ** (1 / 50)))
    assert (n_accepted == 50) == (objective == "risk")
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        selection = select_threshold(few, on_infeasible="abstain", **goal)
    assert (selection.threshold, selection.coverage) == (np.inf, 0)
    assert np.isnan(selection.risk)


def test_a_refusal_looks_for_the_least_target_only_when_read(good, monkeypatch):
    asked, least = [], find_least_target

    def look(*arguments):
        asked.append(arguments)
        return least(*arguments)

    monkeypatch.setattr("skselect.thresholds._least.find_least_target", look)
    with pytest.raises(InfeasibleTargetError) as caught:
        select_threshold(good, objective="risk", target=0.0001)
    assert not asked
    again = pickle.loads(pickle.dumps(caught.value))
    assert len(asked) == 1
    for name in (
        "args", "guarantee", "least_target", "least_target_coverage", "rows_needed",
        "rows_needed_range", "best_set", "reason", "remedy",
    ):  # fmt: skip
        assert getattr(again, name) == getattr(caught.value, name)
    assert f"A target of {100 * again.least_target:.2f}"[:-1] in again.reason
    assert pickle.loads(pickle.dumps(again)).least_target == again.least_target  # sent on
    assert len(asked) == 1


@pytest.mark.parametrize("looks", [1, 4])
def test_a_refusal_counts_rows_that_certify_and_all_rows(looks, rng):
    """Half of the rows set the shortlist; subgroups count their own rows."""
    answers = rng.integers(0, 3, 600)
    truth = np.where(rng.random(600) < 0.05, (answers + 1) % 3, answers)
    rows = Predictions.from_proba(truth, 0.1 + 0.7 * np.eye(3)[answers])
    asked = {"objective": Risk(0.04, max_analyses=looks)}
    asked["shortlist"] = Shortlist(0.9, 0.5, random_state=0)
    with pytest.raises(InfeasibleTargetError) as caught:
        select_threshold(rows, **asked)
    said = str(caught.value).replace(",", "")
    [counts] = re.findall(r"these (\d+) certifying rows \((\d+) in all\)", said)
    [plans] = re.findall(r"about (\d+) to (\d+) such rows \((\d+) to (\d+) in all\)", said)
    low, high, low_in_all, high_in_all = map(int, plans)
    assert int(counts[1]) == 2 * int(counts[0])
    assert (low_in_all, high_in_all) == (2 * low, 2 * high)
    with pytest.raises(InfeasibleTargetError) as caught:
        select_threshold(rows, **asked, subgroups=np.repeat(["a", "b"], 300))
    counts = re.findall(r"'[ab]' +(\d+) ", str(caught.value))
    assert sum(map(int, counts)) == 300
    assert "Only certifying rows are counted, 50 % of all." in str(caught.value)


def test_a_few_more_rows_are_no_plan():
    """1,200 rows that almost certify: the answer was 1201."""
    confidence, order = np.linspace(1, 0.5, 1200), np.arange(1200)
    nearly = []
    for every in range(70, 100):
        curve = RiskCoverageCurve.from_outcomes(Outcomes(order % every == every // 2, confidence))
        if not combined_risk(curve, 0.02, 0.05, 0.1).any():
            nearly.append(plan_rows(curve, 0.02, 0.05, 0.1).low)
    assert nearly
    assert min(nearly) >= 1500


def test_so_many_rows_like_these_certify():
    rng, n, n_draws, n_met = np.random.default_rng(0), 400, 40, 0
    confidence = rng.random(n)
    wrong = rng.random(n) < 0.3 * (1 - confidence) ** 3
    with pytest.raises(InfeasibleTargetError) as caught:
        select_threshold(Outcomes(wrong, confidence), objective="risk", target=0.005)
    for _ in range(n_draws):
        chosen = rng.integers(0, n, caught.value.rows_needed)
        moved = confidence[chosen] + 1e-9 * rng.random(len(chosen))
        curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong[chosen], moved))
        n_met += combined_risk(curve, 0.005, 0.05, 0.1).any()
    assert n_met / n_draws >= 0.8


def test_empirical_refusal_names_the_smallest_risk_and_says_nothing_of_looks():
    bad = Outcomes([1, 1, 0, 1], [0.9, 0.8, 0.7, 0.6])
    with pytest.raises(InfeasibleTargetError, match="smallest risk of any accepted set") as caught:
        select_threshold(bad, objective=Risk(0.1, method="empirical"))
    assert caught.value.least_target == pytest.approx(2 / 3)
    assert "asking again" not in str(caught.value)


def test_coverage_objective_accepts_a_little_more_than_the_share(good):
    selection = select_threshold(good, objective="coverage", target=0.8)
    assert 0.8 < selection.coverage < 0.83
    assert selection.certificate.is_certified
    assert "at least 80 % of all cases are answered" in read_certificate(selection.certificate)
    plain = select_threshold(good, objective=Coverage(0.8, method="empirical"))
    assert plain.coverage == 0.8


def test_cost_objective_minimises_cost_on_the_rows(predictions, good):
    selection = select_threshold(predictions, objective="cost", target=0.1)
    confidence = predictions.y_proba.max(axis=1)
    wrong = predictions.y_true != predictions.y_pred

    def cost(threshold):
        return np.mean(np.where(confidence >= threshold, wrong, 0.1))

    assert cost(selection.threshold) <= min(map(cost, [*np.unique(confidence), 2])) + 1e-12
    with pytest.warns(UserWarning, match="Abstaining on everything costs least"):
        nothing = select_threshold(Outcomes([1, 1], [0.9, 0.8]), objective="cost", target=0.1)
    assert nothing.threshold == np.inf
    free = select_threshold(good, objective="cost", target=0)  # abstaining may cost nothing
    first_error = np.max(good.confidence[good.loss > 0])
    assert (free.risk, free.coverage) == (0, np.mean(good.confidence > first_error))


def test_policy_of_a_table_decides_like_the_selection(predictions):
    selection = select_threshold(predictions, objective="risk", target=0.2)
    table = selection.policy.decide(predictions.y_proba)
    assert table["accepted"].mean() == selection.coverage == selection.policy.coverage
    assert selection.policy.certificate is selection.certificate
    outcomes = Outcomes([0], [0.9])
    assert select_threshold(outcomes, objective="selective_accuracy").policy is None


def test_answers_with_a_confidence_have_a_policy(rng):
    sure = rng.choice([0.2, 0.4, 0.6, 0.8, 1.0], 3000)  # shares of five votes
    y_true = np.where(rng.random(3000) < (1 - sure) / 8, "b", "a")
    rows = Predictions.from_labels(y_true[:2000], ["a"] * 2000, sure[:2000], labels=["a", "b"])
    found = select_threshold(rows, objective="risk", target=0.1)
    later = Predictions.from_labels(y_true[2000:], ["a"] * 1000, sure[2000:], labels=["a", "b"])
    policy = AbstentionPolicy.from_json(found.policy.to_json())
    decided = policy.decide(y_pred=later.answers, confidence=sure[2000:])
    np.testing.assert_array_equal(decided["accepted"], sure[2000:] >= found.threshold)
    assert check_policy(policy, later).verdict == "confirmed"
    monitor = SelectiveRiskMonitor(policy)
    monitor.add_decisions(ids=range(1000), y_pred=later.answers, confidence=sure[2000:])
    status = monitor.add_labels(range(1000), y_true[2000:]).status_
    assert (status.risk, status.n_known) == ("ok", int(decided["accepted"].sum()))


def test_constant_weights_change_nothing_and_others_are_refused(good):
    same = Outcomes(good.loss, good.confidence, np.full(2000, 0.3))
    one = select_threshold(good, objective="risk", target=0.03)
    two = select_threshold(same, objective="risk", target=0.03)
    assert (one.threshold, one.certificate.n_errors) == (two.threshold, two.certificate.n_errors)
    varied = Outcomes(good.loss, good.confidence, np.arange(2000.0))
    for objective in ("risk", "generalized_risk", "coverage"):
        with pytest.raises(ValueError, match="sample_weight: a certificate counts"):
            select_threshold(varied, objective=objective, target=0.5)
    assert select_threshold(varied, objective=Risk(0.03, method="empirical")).coverage > 0


def test_every_method_counts_graded_losses(good):
    graded = Outcomes(good.loss / 2, good.confidence)
    for method in ("combined", "band", "fixed_sequence", "bonferroni"):
        found = select_threshold(graded, objective=Risk(0.1, method=method)).certificate
        assert (found.method, found.loss, found.is_certified) == (method, "graded", True)
    # At most 70 % wrong is no guarantee; a mean loss of at most 0.7 may be one.
    assert select_threshold(graded, objective=Risk(0.7)).certificate.is_certified
    with pytest.raises(InfeasibleTargetError, match=r"A target of [0-9.]+ would have been met"):
        select_threshold(graded, objective=Risk(1e-4))


def test_a_threshold_passes_under_every_reading(rng):
    """The lowest one (for a coverage the highest) that passes alone in each of them."""
    n, least = 2000, Coverage(0.6)
    confidence = np.ceil(400 * rng.random(n)) / 400
    wrong = rng.random(n) < 0.15 * (1 - confidence)
    odd = wrong | (rng.random(n) < 0.5)  # half of the right answers may stand there by mistake
    readings = np.column_stack([np.ones(n, dtype=bool), odd, confidence < 0.8])
    rows = Outcomes(wrong, confidence, readings=readings)
    parts = [Outcomes(wrong[one], confidence[one]) for one in readings.T]
    for stated in (Risk(0.08, method="band"), GeneralizedRisk(0.06), least):
        found = select_threshold(rows, objective=stated)
        alone = [select_threshold(part, objective=stated).threshold for part in parts]
        strictest = min(alone) if stated is least else max(alone)
        assert found.threshold == pytest.approx(strictest, abs=1 / 400)
        assert len(set(alone)) > 1
        certificate = found.certificate
        assert (certificate.n, certificate.n_accepted) == (n, np.sum(confidence >= found.threshold))
        bounds = [
            stated.test_counts(
                Counts(
                    len(part),
                    int(np.sum(part.confidence >= found.threshold)),
                    int(np.sum(part.loss[part.confidence >= found.threshold])),
                )
            )
            for part in parts
        ]
        weakest = min(x.low for x in bounds) if stated is least else max(x.high for x in bounds)
        assert certificate.pointwise_bound == pytest.approx(weakest)
    empty = dataclasses.replace(rows, readings=readings & [True, True, False])
    with pytest.raises(InfeasibleTargetError):
        select_threshold(empty, objective=Risk(0.08))
    assert select_threshold(empty, objective=least).threshold == -np.inf


def test_a_table_that_was_read_twice_gains_nothing(good):
    twice = Outcomes(np.tile(good.loss, 2), np.tile(good.confidence, 2))
    once = select_threshold(good, objective="risk", target=0.03)
    found = select_threshold(twice, objective="risk", target=0.03, assume="independent")
    assert found.threshold == once.threshold
    assert found.certificate.is_certified
    text = read_certificate(found.certificate)
    said = "2,000 of these 4,000 rows equal an earlier one, label included; a threshold must hold"
    assert f"Caveats: {said} with and without them." in text
    assert said not in unwrap(str(found.certificate))
    assert "either all rows that equal earlier ones are copies, or none of them is" in text
    # Where one table alone refuses, and two would not, the copies are the reason; else no word.
    with pytest.raises(InfeasibleTargetError, match=said):
        select_threshold(twice, objective="risk", target=0.011, assume="independent")
    with pytest.raises(InfeasibleTargetError) as caught:
        select_threshold(twice, objective="risk", target=1e-4, assume="independent")
    assert "equal an earlier one" not in str(caught.value)
    rounded = Outcomes(good.loss, np.round(good.confidence, 2))
    tied = select_threshold(rounded, objective="risk", target=0.03).certificate
    assert "(copies cannot be found, because confidences are tied)" in unwrap(str(tied))


SITES = {"subgroups": [0, 1] * 1000}


@refusals({
    "objective": [
        {"objective": "hope"}, {"objective": {}, **SITES}, {"objective": {0: Risk(0.1), 1: 0.1}},
        {"objective": {0: Risk(0.1), 1: 0.1}, **SITES},
        {"objective": {0: Risk(0.1), 1: Risk(0.1, delta=0.1)}, **SITES},
    ],
    "target": [
        {"objective": "risk"}, {"objective": "cwsa_plus", "target": 0.02},
        {"objective": "risk", "target": {1: 0.1}}, {"objective": Risk(0.1), "target": 0.1},
        *({"objective": word, "target": bad} for word in ("risk", "generalized_risk", "coverage")
          for bad in (0, -0.5, 1.5, None, "low")),
    ],
    "abstention_cost": [{"objective": Cost(-0.5)}],
    "delta": [
        {"objective": "risk", "target": 0.1, "delta": 0}, {"objective": "cwsa_plus", "delta": 0.1},
        {"objective": "cost", "target": 0.1, "delta": 0.1}, {"objective": Risk(0.1), "delta": 0.1},
    ],
    "constraint": [
        {"objective": Best(constraint=bad)}
        for bad in (0.1, ("hope", 0.1), ("generalized_risk", 0.9), ("selective_accuracy", 0.02))
    ],
    "max_analyses": [
        {"objective": Risk(0.1, max_analyses=0)}, {"objective": Risk(0.1, max_analyses=1.5)},
        {"objective": Risk(0.1, max_analyses=2, method="mean")},
    ],
    "method": [
        {"objective": Risk(0.1, method="magic")}, {"objective": Risk(0.1, method="lower_bound")},
        {"objective": Coverage(0.1, method=FixedSequence(0.3))},
        {"objective": Best("cwsa_plus", method=FixedSequence(0.2))},
        {"objective": Risk(0.1, method=FixedSequence)}, {"objective": Coverage(0.1, method="chow")},
    ],
    "min_coverage": [{"objective": Risk(0.1, min_coverage=bad)} for bad in (2, "all")],
    "threshold_range": [
        {"objective": Best("selective_accuracy", threshold_range=(0, 1))},
        *({"objective": Best("cwsa", threshold_range=bad)} for bad in (0.5, (0.5, 0.5), (-0.1, 1))),
    ],
    "largest_weight": [
        {"objective": Risk(0.1, largest_weight=0)},
        {"objective": Risk(0.1, largest_weight=2, method="mean")},
    ],
    "loss": [{"objective": Risk(0.1, loss="hinge")}],
    "given_class": [{"objective": Risk(0.1, given_class=1)}],
    "confidence": [{"objective": "cwsa", "confidence": "margin"}],
    "on_infeasible": [{"objective": "cwsa_plus", "on_infeasible": "hope"}],
    "subgroups": [{"objective": "cwsa_plus", "subgroups": [1]}],
    "assume": [{"objective": Risk(0.1), "assume": ["true"]}],
})  # fmt: skip
def test_bad_arguments_are_named(argument, call, good):
    check_refused(argument, lambda: select_threshold(good, **call))


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ({"objective": "risk", "target": 0.1, "delta": 0.95}, "0.05"),
        ({"objective": "risk", "target": 0.98}, "0.02"),
        ({"objective": "generalized_risk", "target": 0.98}, "0.02"),
        ({"objective": Risk(0.98, method="band")}, "0.02"),
        ({"objective": Risk(0.98, method="empirical")}, "0.02"),
        ({"objective": "risk", "target": {0: 0.1, 1: 0.9}, **SITES}, "0.1"),
        ({"objective": Best(constraint=[("coverage", 0.5), ("risk", 0.9)])}, "0.1"),
    ],
)
def test_an_accuracy_in_place_of_an_error_rate_is_guessed(asked, meant, good):
    with pytest.raises(ValueError, match=rf"Did you mean {meant}\?"):
        select_threshold(good, **asked)


@pytest.mark.parametrize("objective", ["risk", "coverage"])
@pytest.mark.parametrize("target", [0.01, 0.5])
def test_targets_inside_the_range_are_taken(good, objective, target):
    assert select_threshold(good, objective=objective, target=target, delta=0.5).certificate


def test_so_many_rows_without_an_error_meet_a_target_on_average():
    objective = Risk(0.02, method="mean")
    assert select_threshold(Outcomes([0] * 49, [0.5] * 49), objective=objective).coverage == 1
    with pytest.raises(InfeasibleTargetError) as refused:
        select_threshold(Outcomes([0] * 48, [0.5] * 48), objective=objective)
    assert refused.value.rows_needed == 49


def test_a_cost_at_which_nothing_would_ever_be_deferred_is_refused(good):
    assert select_threshold(good, objective="cost", target=1).coverage == 1
    costs = {"decision": "min_cost", "cost_matrix": [[0, 1], [20, 0]]}
    table = Predictions.from_proba([0, 1, 1], [0.2, 0.7, 0.9], **costs)
    with pytest.raises(ValueError, match=r"at most 20, the cost of the worst error, got 21.*look"):
        select_threshold(table, objective="cost", target=21)
    assert select_threshold(table, objective="cost", target=20).coverage == 1


@pytest.mark.parametrize(("min_coverage", "said"), [(0.0, False), (0.001, True), ("auto", False)])
def test_a_refusal_names_the_least_coverage_where_there_is_one(min_coverage, said):
    stated = Risk(0.1, min_coverage=min_coverage)
    with pytest.raises(InfeasibleTargetError) as caught:
        select_threshold(Outcomes([1] * 9, np.arange(9)), objective=stated)
    assert ("Only shares of at least min_coverage=0.001 count" in str(caught.value)) is said


@pytest.mark.parametrize(
    ("objective", "target", "method"),
    [*(("risk", 0.04, name) for name in ("combined", "band", "fixed_sequence")),
     ("generalized_risk", 0.01, "auto"), ("coverage", 0.8, "auto")],
)  # fmt: skip
def test_each_look_spends_its_share_of_delta(good, objective, target, method):
    stated = partial(GUARANTEES[objective], target, method=method)
    share = select_threshold(good, objective=stated(delta=0.025))
    look = select_threshold(good, objective=stated(delta=0.1, max_analyses=4))
    assert look.threshold == share.threshold
    assert look.certificate.pointwise_bound == share.certificate.pointwise_bound
    assert look.certificate.rows_needed == share.certificate.rows_needed
    assert (look.certificate.delta, look.certificate.max_analyses) == (0.1, 4)
    assert look.to_frame().equals(share.to_frame())


def test_looks_and_subgroups_divide_delta_together(good):
    site = np.arange(2000) % 2
    planned = Risk(0.05, delta=0.08, max_analyses=2)
    looks = select_threshold(good, objective=planned, subgroups=site)
    share = select_threshold(good, objective=Risk(0.05, delta=0.04), subgroups=site)
    assert looks.thresholds == share.thresholds
    assert looks.certificates[0].delta == 0.04  # over both looks
    alone = Outcomes(good.loss[site == 0], good.confidence[site == 0])
    one = select_threshold(alone, objective="risk", target=0.05, delta=0.02)
    assert looks.thresholds[0] == one.threshold


@pytest.mark.parametrize(
    ("looks", "said"),
    [
        (1, "asking these again, or with more, breaks the guarantee"),
        (3, "add rows for the next of the 3 planned analyses"),
    ],
)
def test_a_refusal_says_what_another_analysis_does(good, looks, said):
    options = {"objective": Risk(0.0001, max_analyses=looks)}
    with pytest.raises(InfeasibleTargetError, match=said) as caught:
        select_threshold(good, **options)
    assert said in caught.value.reason  # the command line prints this part
    with pytest.warns(UserWarning, match=said):
        select_threshold(good, on_infeasible="abstain", **options)
    site = np.arange(2000) % 2
    with pytest.raises(InfeasibleTargetError) as caught:
        select_threshold(good, subgroups=site, **options)
    assert str(caught.value).count(said) == 1


def test_a_certified_coverage_of_scores_that_may_fall_below_zero_accepts_them(rng):
    """20 rows cannot guarantee 95 %, so that everything has to be accepted."""
    confidence = rng.random(20)
    proba = np.column_stack([confidence, 1 - confidence])
    table = Predictions.from_proba([0] * 20, proba, labels=[0, 1])
    outcomes = Outcomes([0] * 20, confidence)
    for source, named, threshold in [
        (outcomes, None, -np.inf), (RiskCoverageCurve.from_outcomes(outcomes), None, -np.inf),
        (Predictions.from_labels([0] * 20, [0] * 20, confidence), None, -np.inf),
        (table, confidence, -np.inf), (table, lambda p: p.max(axis=1) - 0.6, -np.inf),
        (table, None, 0.0), (table, "margin", 0.0),  # in [0, 1] by construction
    ]:  # fmt: skip
        found = select_threshold(source, objective="coverage", target=0.95, confidence=named)
        assert found.threshold == threshold


def test_losses_at_hand_do_not_choose_the_method(predictions):
    """Losses that happen to be 0 and 1 are counted as they are."""
    zero_one = lambda y, a: (y != a).astype(float)  # noqa: E731 - as a user writes it
    found = select_threshold(predictions, objective=Risk(0.3, loss=zero_one)).certificate
    plain = select_threshold(predictions, objective="risk", target=0.3).certificate
    assert (found.method, found.loss) == ("combined", "graded")
    assert (found.threshold, found.n_errors) == (plain.threshold, plain.n_errors)
    outcomes = Outcomes.from_predictions(predictions)
    graded = Outcomes(outcomes.loss / 2, outcomes.confidence)
    for objective in ("risk", "generalized_risk"):
        found = select_threshold(graded, objective=objective, target=0.3)
        assert found.certificate.is_certified


@pytest.mark.filterwarnings("ignore:min_coverage")
def test_cwsa_looks_where_the_paper_does_unless_told_otherwise():
    low = Outcomes([0, 0, 1, 1], [0.9, 0.8, 0.45, 0.3])
    for objective in ("cwsa", "cwsa_plus"):
        assert select_threshold(low, objective=objective).threshold >= 0.5
        wide = select_threshold(low, objective=Best(objective, threshold_range=(0, 1)))
        assert wide.threshold == np.nextafter(0.45, 1)
        more = select_threshold(low, objective=Best(objective, min_coverage=0.7))
        assert 0.3 < more.threshold <= 0.45  # 0.5 accepts half
    odd = Outcomes([1, 0, 0], [0.9, 0.8, 0.3])
    for rows, objective, message in [
        (low, Best(threshold_range=(0.95, 1)), r"the threshold 0.95 accepts 0 of them"),
        (low, Best(min_coverage=0.7, threshold_range=(0.5, 1)),
         r"accepts at least min_coverage=0.7 .* 0.5 of"),
        (odd, Best("cwsa", constraint=("risk", 0.01)),
         r"constraint risk 0.01 .* smallest risk there"),
    ]:  # fmt: skip
        with pytest.raises(InfeasibleTargetError, match=message):
            select_threshold(rows, objective=objective)


def test_a_least_coverage_that_binds_is_explained():
    sure = np.repeat([0.99, 0.6, 0.55], [45, 27, 28])  # as an isotonic calibration makes them
    wrong = np.zeros(100)
    wrong[45:72:3] = wrong[72::2] = 1
    mixed = np.random.default_rng(0).permutation(100)  # an order that means something warns, too
    with pytest.warns(UserWarning, match="min_coverage=0.5 binds") as caught:
        found = select_threshold(Outcomes(wrong, sure).take(mixed), objective="cwsa_plus")
    assert found.coverage == 0.72
    [text] = [str(one.message) for one in caught]
    assert "where 45 % of the rows are accepted (45), instead of" in text
    assert "where 72 % are. Fewer would be 45 %, for rows of equal confidence" in text
    untied = Outcomes(wrong, sure - np.linspace(0, 0.01, 100)).take(mixed)
    with pytest.warns(UserWarning, match="min_coverage=0.5 binds") as caught:
        assert select_threshold(untied, objective="cwsa_plus").coverage == 0.5
    assert "equal confidence" not in str(caught[0].message)


def test_accepting_everything_is_pointed_out_and_one_warning_is_enough():
    right = Outcomes([0, 0, 0], [0.9, 0.8, 0.7])
    with pytest.warns(
        UserWarning, match=r"risk 0 on these rows.*objective='risk', target=0\.05 is for"
    ):
        select_threshold(right, objective="cwsa_plus")
    with pytest.warns(UserWarning, match="best when everything is accepted"):
        assert select_threshold(right, objective="cwsa_plus").threshold == 0.5
    rows = Outcomes([0, 0, 1, 1], [0.99, 0.9, 0.2, 0.1])
    with pytest.warns(UserWarning, match="min_coverage=1 binds") as caught:
        select_threshold(rows, objective=Best(min_coverage=1, threshold_range=(0, 1)))
    assert len(caught) == 1


def test_how_verdicts_were_drawn_is_the_first_assumption(rng):
    sure = rng.random(8000)
    right, proba = rng.random(8000) > (1 - sure) / 5, np.where(sure < 0.5, 0.5, 0.25)
    judged = np.where(rng.random(8000) < proba, np.where(right, "right", "wrong"), "")
    at_random = np.where(rng.random(8000) < 0.4, np.where(right, "right", "wrong"), "")
    plain = Predictions.from_verdicts(at_random, sure)
    found = select_threshold(plain, objective="risk", target=0.1)
    first = "the cases with a verdict were drawn at random from those that the policy will decide"
    assert found.certificate.assumptions[0] == first
    assert found.certificate.assumptions[1:] == select_threshold(
        Predictions.from_labels(plain.answers, plain.answers, plain.confidence),
        objective="risk", target=0.1,
    ).certificate.assumptions  # fmt: skip
    assert certify(found.policy, plain, target=0.1).assumptions[0] == first
    drawn = Predictions.from_verdicts(judged, sure, audit_proba=proba)
    with pytest.raises(ValueError, match="largest_weight= if they are importance weights"):
        select_threshold(drawn, objective="risk", target=0.1)
    weighted = Risk(0.1, largest_weight=4)
    certificate = select_threshold(drawn, objective=weighted).certificate
    assert "drawn with the given probabilities" in certificate.assumptions[0]
    assert certificate.is_certified
    by_site = select_threshold(
        plain, objective="risk", target=0.15, subgroups=rng.choice(["a", "b"], len(plain))
    )
    assert {one.assumptions[0] for one in by_site.certificates.values()} == {first}


# Rows that nobody has judged yet ------------------------------------------------------------------

MONOTONE = [
    Risk(0.3, delta=0.4),
    Risk(0.3, delta=0.4, method="band", min_coverage=0),
    Risk(0.3, delta=0.4, method="fixed_sequence"),
    Risk(0.3, delta=0.4, method="bonferroni"),
    Risk(0.3, delta=0.4, method=Combined(start=0.3, sparse=True)),
    Risk(0.3, delta=0.4, method=LevelSequence([0.7, 0.5, 0.2, 0])),
    Risk(0.3, delta=0.4, given_prediction="right"),
    GeneralizedRisk(0.2, delta=0.4),
    SystemRisk(0.3, delta=0.4, overall_error=0.1),
]


@st.composite
def pools(draw, most=30):
    """Draw confidences, errors, and who is judged."""
    n = draw(st.integers(1, most))
    sure = draw(st.lists(st.integers(0, 8), min_size=n, max_size=n))
    wrong = draw(st.lists(st.sampled_from([False] * 4 + [True]), min_size=n, max_size=n))
    judged = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return np.array(sure) / 8, np.array(wrong), np.array(judged)


def select_from(sure, wrong, judged, objective, **options):
    """Select from verdicts of which some are missing."""
    verdict = np.where(judged, np.where(wrong, "wrong", "right"), "")
    rows = Predictions.from_verdicts(verdict, sure, unjudged="wrong")
    return select_threshold(
        rows, objective=objective, on_infeasible="abstain", assume="independent", **options
    )


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=60, deadline=None)
@given(pools(), st.sampled_from(MONOTONE), st.data())
def test_what_passes_with_unjudged_rows_passes_with_every_label(pool, objective, data):
    sure, wrong, judged = pool
    early = select_from(sure, wrong, judged, objective)
    other = np.array(data.draw(st.lists(st.booleans(), min_size=len(sure), max_size=len(sure))))
    labels = np.where(judged, wrong, other)
    late = select_from(sure, labels, np.ones(len(sure), dtype=bool), objective)
    assert early.threshold >= late.threshold
    assert early.labels_used == judged.sum()
    more = judged | np.array(data.draw(st.lists(st.booleans(), min_size=len(sure),
                                                max_size=len(sure))))  # fmt: skip
    assert select_from(sure, labels, more, objective).threshold <= early.threshold
    plain = select_threshold(
        Predictions.from_labels(
            [str(x) for x in labels], ["False"] * len(sure), sure, labels=["False", "True"]
        )
        if objective.given_prediction is None
        else Predictions.from_verdicts(~labels, sure),
        objective=objective, on_infeasible="abstain", assume="independent",
    )  # fmt: skip
    assert (late.threshold, late.coverage, len(late.waiting)) == (
        plain.threshold, plain.coverage, 0,
    )  # fmt: skip


def check_look(rng, objective):
    """Check that no subgroup passes at one look what it does not pass when all rows are judged."""
    n = int(rng.integers(30, 120))
    sure = np.repeat(rng.random(n), 2)
    by = rng.choice(["x", "y"], 2 * n) if rng.random() < 0.7 else np.repeat("x", 2 * n)
    wrong = rng.random(2 * n) < rng.choice([0.0, 0.03, 0.1])
    if rng.random() < 0.5:
        wrong = np.repeat(wrong[::2], 2)
    judged = rng.random(2 * n) < rng.random()
    if rng.random() < 0.5:
        # Right rows first, the order that flatters most.
        judged &= ~wrong
    early = select_from(sure, wrong, judged, objective, subgroups=by)
    late = select_from(sure, wrong, np.ones(2 * n, dtype=bool), objective, subgroups=by)
    for group, threshold in late.thresholds.items():
        accepted_early = early.accepts(sure, by) & (by == group)
        assert early.thresholds[group] >= threshold or not np.any(
            accepted_early & (sure < threshold)
        )


LOOKS = [Risk(0.1, delta=0.3), Risk(0.2, delta=0.3, method="band"), GeneralizedRisk(0.2)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("draws", mostly_slow([40, 10_000]))
def test_subgroups_pass_at_no_look_what_fails_when_all_rows_are_judged(draws):
    rng = np.random.default_rng(1342)
    for k in range(draws):
        check_look(rng, LOOKS[k % len(LOOKS)])


def test_rows_of_other_subgroups_are_no_copies():
    sure = np.repeat(np.linspace(0.9, 0.3, 60), 2)
    right = np.zeros(120, dtype=bool)
    by = np.tile(["x", "y"], 60)
    alone = select_from(sure, right, ~right, Risk(0.3))
    apart = select_from(sure, right, ~right, Risk(0.3), subgroups=by)
    assert "60 of these 120 rows equal an earlier one" in str(alone.certificate.caveats)
    for certificate in apart.certificates.values():
        assert "equal an earlier one" not in str(certificate.caveats)


def test_rows_that_may_turn_out_to_be_copies_are_left_out_from_the_first_look():
    # Two by two: as long as nobody has judged the second of each pair it may equal the first.
    sure = np.repeat(np.linspace(0.9, 0.3, 14), 2)
    wrong, objective = np.zeros(28, dtype=bool), GeneralizedRisk(0.2, delta=0.4)
    judged = np.tile([True, False], 14)
    with warnings.catch_warnings(action="ignore"):
        early = select_from(sure, wrong, judged, objective)
        late = select_from(sure, wrong, np.ones(28, dtype=bool), objective)
        apart = select_from(sure, np.tile([False, True], 14), np.ones(28, dtype=bool), objective)
    assert "equal an earlier one" in str(early.certificate.caveats)
    assert early.threshold >= max(late.threshold, apart.threshold)
    assert "equal an earlier one" not in str(apart.certificate.caveats)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=10, deadline=None)
@given(pools(7), st.sampled_from([Risk(0.45, delta=0.5, min_coverage=0), GeneralizedRisk(0.4)]))
def test_rows_to_judge_are_those_that_can_raise_the_coverage(pool, objective):
    """Try every labelling: the others change nothing, and none is named where nothing helps."""
    sure, wrong, judged = pool
    found = select_from(sure, wrong, judged, objective)
    named, free = found.next_to_judge(99), np.flatnonzero(~judged)
    assert not np.any(judged[named])
    assert np.all(np.diff(sure[named]) <= 0)
    everyone, best = np.ones(len(sure), dtype=bool), found.coverage
    for k in range(2 ** len(free)):
        labels = wrong.copy()
        labels[free] = (k >> np.arange(len(free))) & 1
        full = select_from(sure, labels, everyone, objective)
        best = max(best, full.coverage)
        seen = judged.copy()
        seen[named] = True
        assert select_from(sure, labels, seen, objective).threshold == full.threshold
    assert (len(named) > 0) == (best > found.coverage)


def test_a_refusal_that_no_verdict_can_lift_says_what_it_supposes():
    verdicts = np.where(np.arange(400) % 3 == 0, "wrong", "")
    rows = Predictions.from_verdicts(verdicts, np.linspace(1, 0.5, 400), unjudged="wrong")
    with pytest.raises(InfeasibleTargetError) as refusal:
        select_threshold(rows, objective=Risk(0.01))
    verdict, supposed, *_ = str(refusal.value).splitlines()
    assert verdict == "REFUSED: at most 1 % of the answers are wrong."
    assert supposed.endswith("even if the 266 rows that nobody has judged were all right:")
    assert refusal.value.guarantee
    assert refusal.value.least_target is None  # it is no target of these rows


def test_a_pool_is_judged_from_the_top_until_no_label_can_help(rng):
    sure = rng.random(1200)
    wrong = rng.random(1200) < 0.25 * (1 - sure)
    group = rng.choice(["a", "b"], 1200)
    for objective, options in [
        (Risk(0.05), {}),
        (Risk(0.09), {"subgroups": group}),
        (GeneralizedRisk(0.05), {}),
    ]:
        judged, n_looks = np.zeros(1200, dtype=bool), 0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = select_from(sure, wrong, judged, objective, **options)
        told = "Their cases will be deferred" if options else "No threshold passes yet"
        assert found.accepts(sure, group).any() or told in str(caught[0].message)
        while len(batch := found.next_to_judge(150)):
            judged[batch], n_looks = True, n_looks + 1
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                found = select_from(sure, wrong, judged, objective, **options)
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            plain = Predictions.from_verdicts(~wrong, sure)
            plain = select_threshold(plain, objective=objective, **options)
        assert found.thresholds == plain.thresholds
        assert found.labels_used == judged.sum() < 1200
        assert n_looks > 1
        for certificate in found.certificates.values():
            assert certificate.is_certified
            assert re.fullmatch(
                r"[\d,]+ judged cases of a pool of [\d,]+; the other [\d,]+ count as wrong",
                certificate.provenance,
            )
            assert "were fixed before the first label" in certificate.assumptions[-1]
            assert "first time" not in str(certificate.assumptions)


def test_where_no_label_can_help_the_target_is_refused():
    rows = Predictions.from_verdicts(["wrong"] * 50 + [None] * 50, [0.9] * 100, unjudged="wrong")
    with pytest.raises(InfeasibleTargetError, match="REFUSED: at most 5 %"):
        select_threshold(rows, objective="risk", target=0.05)
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        found = select_threshold(rows, objective="risk", target=0.05, on_infeasible="abstain")
    assert (found.threshold, found.next_to_judge(5).tolist()) == (np.inf, [])
    one = Predictions.from_verdicts([None], [0.5], unjudged="wrong")
    with pytest.raises(InfeasibleTargetError):
        select_threshold(one, objective="risk", target=0.05)


def test_missing_labels_of_probabilities_count_as_errors(rng):
    p = rng.random(900)
    truth = np.where(rng.random(900) < p, 1.0, 0.0)
    sure = np.maximum(p, 1 - p)
    known = np.where(sure > 0.8, truth, np.nan)
    rows = Predictions.from_proba(known, np.column_stack([1 - p, p]), unjudged="wrong")
    found = select_threshold(rows, objective="risk", target=0.15)
    errors = (p > 0.5) != truth
    by_hand = Outcomes(np.where(sure > 0.8, errors, 1), sure, unjudged=sure <= 0.8)
    assert found.coverage == select_threshold(by_hand, objective="risk", target=0.15).coverage > 0
    assert found.labels_used == np.sum(sure > 0.8)
    assert np.all(sure[found.next_to_judge(10)] <= 0.8)
    assert found.policy.threshold == found.threshold


def test_losses_of_the_judged_top_alone_show_an_order(rng):
    """Old labels at the begin of a table, and the surest ones later, are no trend in time."""
    sure = rng.random(2000)
    wrong = rng.random(2000) < 0.5 * (1 - sure)
    judged = (np.arange(2000) < 300) | (sure > 0.8)
    assert find_order(
        Outcomes(np.where(judged, wrong, 1), sure, unjudged=~judged), Risk(0.1), TAKE_LATEST
    ) == ()  # fmt: skip
    late = np.where(np.arange(2000) < 1000, 0, 1) * (rng.random(2000) < 0.3)
    drift = Outcomes(np.where(judged, late, 1), sure, unjudged=~judged)
    assert "losses" in find_order(drift, Risk(0.1), TAKE_LATEST)[0].reason


UNJUDGED = Predictions.from_proba(
    ["a", None, "b", "c"] * 40, [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3]] * 80, unjudged="wrong",
    cost_matrix=np.ones((3, 3)) - np.eye(3), reviewer=["a", "b"] * 80,
)  # fmt: skip


POLICY = AbstentionPolicy(classes=np.array(["a", "b", "c"]), threshold=0.5)


def select_as(stated, **options):
    return lambda rows: select_threshold(rows, objective=stated, **options)


@refusals([
    *(("method", select_as(Risk(0.2, method=name))) for name in ("sgr", "mean", "empirical")),
    *(("method", select_as(kind(0.2, method=name))) for kind, name in (
        (GeneralizedRisk, "mean"), (Risk, "betting"))),
    ("objective", select_as(Cost(0.2))), ("objective", select_as("cwsa_plus")),
    ("loss", select_as(Risk(0.2))), ("loss", select_as(Risk(0.2, loss=lambda y, p: y != p))),
    ("reviewer", select_as(SystemRisk(0.2))),
    ("given_class", select_as(Risk(0.2, given_class="a", loss="zero_one"))),
    ("shortlist",
     select_as(Risk(0.2, loss="zero_one"), shortlist=0.9, on_infeasible="abstain")),
    ("metric", lambda x: evaluate(x, ["aurc"])),
    ("curve", lambda x: RiskCoverageCurve.from_outcomes(Outcomes.of(x))),
    ("check_policy", lambda x: check_policy(POLICY, x, target=0.2)),
    ("reviewer", lambda x: certify(POLICY, x, objective=SystemRisk(0.2))),
    ("stage", lambda x: join_stages({"one": x, "two": x})),
    ("metric", lambda x: selective_report(None, x)),
    ("metric", lambda x: metrics_by_group(x, None, ["a"] * 160)),
])  # fmt: skip
def test_rows_not_judged_yet_are_refused_by_name(argument, call):
    check_refused(argument, call, UNJUDGED)


@pytest.mark.parametrize("target", [0.3, None])
def test_a_fixed_policy_is_certified_while_rows_are_judged(target):
    sure = np.linspace(0.99, 0.5, 400)
    verdict = np.where(np.arange(400) % 10 == 0, "wrong", "right").astype(object)
    verdict[300:] = None
    policy = select_threshold(
        Predictions.from_verdicts(["right"] * 400, sure),
        objective="risk", target=0.2, assume="independent",
    ).policy  # fmt: skip
    found = certify(
        policy, Predictions.from_verdicts(verdict, sure + 1e-4, unjudged="wrong"), target=target,
        assume="independent",
    )  # fmt: skip
    assert found.n_errors == 130
    assert found.provenance == "300 judged cases of a pool of 400; the other 100 count as wrong"
    assert "first label" in found.assumptions[-1]
    assert found.pointwise_bound == pytest.approx(0.3648, abs=2e-3)
    assert found.notice.startswith("The policy's own guarantee was not checked, because not all")
    assert not found.is_certified


def test_verdicts_on_the_surest_cases_alone_certify_nothing(rng):
    """The 200 surest of 1,200 are judged, and left out are the others: this was CERTIFIED."""
    sure = rng.random(1200)
    wrong = rng.random(1200) < 0.4 * (1 - sure)
    top = np.argsort(-sure)[:200]
    wrong[top] = np.arange(200) % 100 == 0
    verdict = np.full(1200, None)
    verdict[top] = ~wrong[top]
    rows = Predictions.from_verdicts(verdict, sure)
    with pytest.warns(UserWarning, match=r"^verdict: the cases with a verdict have other confid"):
        found = select_threshold(rows, objective="risk", target=0.05)
    assert found.threshold == sure[top].min()
    certificate = found.certificate
    assert str(certificate).startswith("ESTIMATE, NOT CERTIFIED: the cases with a verdict have")
    assert "unjudged='wrong'" in certificate.caveats[0]
    assert "at random" not in str(certificate.assumptions)
    assert f"at confidence {found.threshold:.6g} or higher" in read_certificate(certificate)
    with pytest.warns(UserWarning, match="have other confidences"):
        assert not certify(found.policy, rows, target=0.2).is_certified
    assert "have other confidences" in str(check_policy(found.policy, rows, target=0.2).caveats)
    weighed = Predictions.from_verdicts(verdict, sure, audit_proba=np.full(1200, 0.5))
    assert draw_of(weighed).doubt == ""


def test_verdicts_at_random_are_seldom_doubted(rng):
    """The level is .001; ties, constant confidences and missing ones of unjudged rows are fine."""
    n_doubted = 0
    for k in range(300):
        sure = rng.random(200).round(1 + k % 3)
        verdict = np.where(rng.random(200) < 0.3, "right", "")
        n_doubted += bool(draw_of(Predictions.from_verdicts(verdict, sure)).doubt)
    assert n_doubted <= 3
    assert draw_of(Predictions.from_verdicts(["right", None] * 50, [0.5] * 100)).doubt == ""
    assert draw_of(Predictions.from_verdicts(["right", None] * 50, [0.5, np.nan] * 50)).doubt == ""
    assert draw_of(Predictions.from_verdicts(["right", None] * 50, [0.5, "x"] * 50)).doubt == ""


@pytest.mark.parametrize("seed", [3, None])
def test_coins_are_drawn_with_a_seed_that_the_certificate_states(seed, rng):
    n = 2000
    rows = Outcomes(np.round(rng.random(n) ** 8, 6), np.round(rng.random(n), 6))
    options = {"objective": Risk(0.3)}
    found = select_threshold(rows, **options, random_state=seed).certificate
    again = select_threshold(rows, **options, random_state=found.seed).certificate
    assert again.to_dict() == found.to_dict() | {"created": again.to_dict()["created"]}
    assert f"drawn with the seed {found.seed}" in found.details()
    assert seed in (found.seed, None)
    assert select_threshold(rows, **options).certificate.seed == 0
    drawn = {select_threshold(rows, **options, random_state=None).certificate.seed for _ in "123"}
    assert len(drawn) == 3


def test_a_check_of_costs_states_its_seed(rng):
    y = rng.integers(0, 2, 400)
    proba = np.where(y[:, None] == [0, 1], 0.9, 0.1)
    proba[::10] = proba[::10, ::-1]  # errors cost 2 or 5
    costs = {0: {1: 2}, 1: {0: 5}}
    rows = Predictions.from_proba(y, proba, cost_matrix=costs)
    policy = select_threshold(rows, objective=Risk(1.0)).policy
    for seed in (0, 7, None):
        options = {} if seed == 0 else {"random_state": seed}
        certificate = certify(policy, y, proba, objective=Risk(1.0), **options)
        assert seed in (certificate.seed, None)
