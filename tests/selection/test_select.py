"""select_threshold on tables of predictions."""

import numpy as np
import pytest

from skselect import (
    InfeasibleTargetError,
    Outcomes,
    Predictions,
    evaluate,
    select_threshold,
)
from skselect.metrics import cwsa_plus_score


@pytest.mark.filterwarnings("ignore:min_coverage", "ignore:cwsa")
def test_metric_objective_returns_its_value_and_no_certificate(predictions):
    selection = select_threshold(predictions, objective="cwsa_plus")
    y, proba = predictions.y_true, predictions.y_proba
    assert selection.certificate is None
    assert selection.value == pytest.approx(
        cwsa_plus_score(y, proba, threshold=selection.threshold), abs=1e-9
    )
    assert selection.coverage >= 0.5
    assert str(selection).startswith("PROMISES NOTHING")


def test_binding_coverage_warns_and_is_kept(good):
    with pytest.warns(UserWarning, match=r"min_coverage=0\.5 binds"):
        selection = select_threshold(good, objective="cwsa_plus")
    assert selection.coverage >= 0.5
    with pytest.warns(UserWarning, match="binds"):
        smaller = select_threshold(good, objective="cwsa_plus", min_coverage=0.2)
    assert smaller.value > selection.value


def test_risk_is_kept_on_the_rows_and_certified(good):
    selection = select_threshold(good, objective="risk", target=0.03)
    kept = good.confidence >= selection.threshold
    assert selection.certificate.is_certified
    assert selection.risk == good.loss[kept].mean() < 0.03
    assert selection.coverage == kept.mean()


def test_empirical_takes_more_and_promises_nothing(good):
    certified = select_threshold(good, objective="risk", target=0.02)
    plain = select_threshold(good, objective="risk", target=0.02, method="empirical")
    assert plain.coverage > certified.coverage
    assert plain.certificate is None
    assert str(plain).startswith("PROMISES NOTHING")


@pytest.mark.parametrize("objective", ["risk", "generalized_risk"])
def test_infeasible_target_says_what_would_help(objective):
    few = Outcomes([0] * 50, np.linspace(0.5, 1, 50))
    with pytest.raises(InfeasibleTargetError, match=r"at least 149 (accepted )?rows") as caught:
        select_threshold(few, objective=objective, target=0.02)
    text = str(caught.value)
    assert "could have met is 0.05" in text
    assert "needs fresh rows" in text
    assert caught.value.rows_needed >= 149
    assert caught.value.least_target == pytest.approx(1 - 0.05 ** (1 / 50), rel=2e-3)


def test_infeasible_may_abstain_instead():
    few = Outcomes([0] * 50, np.linspace(0.5, 1, 50))
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        selection = select_threshold(few, objective="risk", target=0.02, on_infeasible="abstain")
    assert selection.threshold == np.inf
    assert selection.coverage == 0
    assert np.isnan(selection.risk)


def test_empirical_refusal_names_the_smallest_risk():
    bad = Outcomes([1, 1, 0, 1], [0.9, 0.8, 0.7, 0.6])
    with pytest.raises(InfeasibleTargetError, match="smallest risk of any accepted set") as caught:
        select_threshold(bad, objective="risk", target=0.1, method="empirical")
    assert caught.value.least_target == pytest.approx(2 / 3)


def test_coverage_objective_accepts_a_little_more_than_the_share(good):
    selection = select_threshold(good, objective="coverage", target=0.8)
    assert 0.8 < selection.coverage < 0.83
    assert selection.certificate.is_certified
    assert "it decides at least 80 % of all cases alone" in str(selection)
    plain = select_threshold(good, objective="coverage", target=0.8, method="empirical")
    assert plain.coverage == 0.8


def test_cost_objective_minimises_cost_on_the_rows(predictions):
    selection = select_threshold(predictions, objective="cost", target=0.1)
    cost = {"threshold": selection.threshold, "abstention_cost": 0.1}
    best = evaluate(predictions, {"selective_cost": cost}).iloc[0]
    for t in np.linspace(0, 1.01, 300):
        other = {"threshold": float(t), "abstention_cost": 0.1}
        assert best <= evaluate(predictions, {"selective_cost": other}).iloc[0] + 1e-12


def test_cost_so_low_that_nothing_is_worth_answering():
    with pytest.warns(UserWarning, match="Abstaining on everything costs least"):
        selection = select_threshold(Outcomes([1, 1], [0.9, 0.8]), objective="cost", target=0.1)
    assert selection.threshold == np.inf


def test_policy_of_a_table_decides_like_the_selection(predictions):
    selection = select_threshold(predictions, objective="risk", target=0.2)
    table = selection.policy.decide(predictions.y_proba)
    assert table["accepted"].mean() == selection.coverage == selection.policy.coverage
    assert selection.policy.certificate is selection.certificate
    outcomes = Outcomes([0], [0.9])
    assert select_threshold(outcomes, objective="selective_accuracy").policy is None


def test_constant_weights_change_nothing_and_others_are_refused(good):
    same = Outcomes(good.loss, good.confidence, np.full(2000, 0.3))
    one = select_threshold(good, objective="risk", target=0.03)
    two = select_threshold(same, objective="risk", target=0.03)
    assert (one.threshold, one.certificate.n_errors) == (two.threshold, two.certificate.n_errors)
    varied = Outcomes(good.loss, good.confidence, np.arange(2000.0))
    for objective in ("risk", "generalized_risk", "coverage"):
        with pytest.raises(ValueError, match="sample_weight: a certificate counts"):
            select_threshold(varied, objective=objective, target=0.5)
    assert select_threshold(varied, objective="risk", target=0.03, method="empirical").coverage > 0


def test_counting_methods_refuse_graded_losses(good):
    graded = Outcomes(good.loss / 2, good.confidence)
    for method in ("combined", "band", "fixed_sequence", "bonferroni"):
        with pytest.raises(ValueError, match=r"this method counts errors.*method='betting'"):
            select_threshold(graded, objective="risk", target=0.1, method=method)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objective": "hope"}, "objective must be one of"),
        ({"objective": "risk"}, "target is missing"),
        ({"objective": "cwsa_plus", "target": 0.02}, "has no target"),
        ({"objective": "risk", "target": 0}, r"target must be a number in \(0, 1\)"),
        ({"objective": "risk", "target": "low"}, "target must be a number"),
        ({"objective": "coverage", "target": 1.5}, "target must be a number"),
        ({"objective": "risk", "target": 0.1, "delta": 0}, "delta must be a number"),
        ({"objective": "risk", "target": 0.1, "method": "magic"}, "method .*must be one of"),
        ({"objective": "risk", "target": 0.1, "min_coverage": 2}, "min_coverage must be a number"),
        ({"objective": "coverage", "target": 0.1, "min_coverage": 0.2}, "min_coverage goes with"),
        ({"objective": "cwsa_plus", "on_infeasible": "hope"}, "on_infeasible must be one of"),
        ({"objective": "cwsa_plus", "constraint": ("hope", 0.1)}, "constraint must be one of"),
        ({"objective": "cwsa_plus", "constraint": 0.1}, "constraint must be a pair"),
        ({"objective": "risk", "target": 0.1, "constraint": ("risk", 0.1)}, "constraint goes with"),
        (
            {"objective": "risk", "target": 0.1, "selection": "lower_bound"},
            "selection=.* goes with",
        ),
        ({"objective": "risk", "target": 0.1, "starts": 0.3}, "starts go with"),
        ({"objective": "coverage", "target": 0.1, "method": "chow"}, "method .*must be one of"),
        ({"objective": "risk", "target": {1: 0.1}}, "one entry per subgroup"),
        ({"objective": "risk", "target": 0.1, "loss": "hinge"}, "loss must be one of"),
        ({"objective": "risk", "target": 0.1, "among": ("true", 1)}, "among needs Predictions"),
        ({"objective": "cwsa_plus", "subgroups": [1]}, "subgroups"),
    ],
)
def test_bad_arguments_are_named(arguments, message, good):
    with pytest.raises(ValueError, match=message):
        select_threshold(good, **arguments)


def test_coverage_of_an_own_confidence_is_kept_below_zero_too(rng):
    broken = 0
    for _ in range(200):
        top = rng.beta(4, 1, 50) * 0.5 + 0.5
        proba = np.column_stack([top, 1 - top])
        table = Predictions.from_proba(np.zeros(50, int), proba, labels=[0, 1])
        selection = select_threshold(
            table, objective="coverage", target=0.99, confidence=lambda p: p.max(axis=1) - 0.6
        )
        broken += selection.threshold > -np.inf  # 50 rows cannot promise 99 %: accept everything
    assert broken == 0


def test_confidence_and_loss_of_outcomes_are_theirs(good):
    with pytest.raises(ValueError, match="confidence and loss go with Predictions"):
        select_threshold(good, objective="cwsa_plus", confidence="margin")


def test_something_else_than_predictions_is_refused():
    with pytest.raises(ValueError, match="predictions_or_outcomes must be Predictions"):
        select_threshold([0, 1], objective="cwsa_plus")


# certify -----------------------------------------------------------------------------------


def test_accepting_everything_is_pointed_out():
    with pytest.warns(UserWarning, match="best when everything is accepted"):
        select_threshold(Outcomes([0, 0, 1], [0.9, 0.8, 0.7]), objective="cwsa_plus")
