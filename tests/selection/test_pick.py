"""One threshold per subgroup, some of the rows, other losses: the paths of `pick`."""

import numpy as np
import pandas as pd
import pytest

from skselect import (
    Best,
    Cost,
    Coverage,
    InfeasibleTargetError,
    Outcomes,
    Predictions,
    Risk,
    certify,
    select_threshold,
)
from skselect._lib.notebook import unwrap
from skselect.objectives import GUARANTEES
from skselect.policy import Subgroups
from skselect.thresholds import Betting, Combined, FixedSequence

COSTS = [[0, 1], [10, 0]]


@pytest.fixture
def table(rng):
    """Calibrated rows of three subgroups, the last one hopeless."""
    n = 4000
    group = rng.choice(["a", "b", "hopeless"], n, p=[0.5, 0.4, 0.1])
    p = rng.beta(0.25, 0.25, n)
    y = (rng.random(n) < np.where(group == "hopeless", 0.5, p)).astype(int)
    return np.where(y == 1, "sick", "healthy"), np.column_stack([1 - p, p]), group


def predictions_of(table, rows=slice(None), **options):
    y, proba, _ = table
    return Predictions.from_proba(y[rows], proba[rows], labels=["healthy", "sick"], **options)


RISK = {"objective": "risk", "target": 0.1}


@pytest.fixture
def known(table):
    """Tell which rows are of the first two subgroups."""
    return table[2] != "hopeless"


# Subgroups -------------------------------------------------------------------------------------


def test_each_subgroup_is_selected_by_itself_at_its_share_of_delta(table):
    group = table[2]
    with pytest.warns(UserWarning, match="subgroup 'hopeless': No threshold.*will be deferred"):
        found = select_threshold(predictions_of(table), subgroups=group, **RISK)
    assert found.thresholds["hopeless"] == np.inf
    for name in ("a", "b"):
        alone = select_threshold(predictions_of(table, group == name), delta=0.05 / 3, **RISK)
        assert found.thresholds[name] == alone.threshold
        certificate = found.certificates[name]
        assert certificate.is_certified
        assert certificate.delta == pytest.approx(0.05 / 3)
        assert f"of its answers to cases of subgroup '{name}' are wrong" in unwrap(str(certificate))
        assert "subgroups or weeks" not in unwrap(str(certificate))
    frame = found.to_frame()
    assert frame["certified"].tolist() == [True, True, False]
    assert frame["n"].sum() == 4000
    assert "hopeless" in str(found)


def test_the_policy_of_subgroups_decides_like_the_selection(table):
    group = pd.Series(table[2], name="site")
    with pytest.warns(UserWarning, match="site 'hopeless'"):
        found = select_threshold(predictions_of(table), subgroups=group, **RISK)
    decided = found.policy.decide(table[1], subgroups=group)
    thresholds = np.array([found.thresholds[g] for g in group])
    assert decided["accepted"].tolist() == (table[1].max(axis=1) >= thresholds).tolist()
    assert found.policy.coverage == decided["accepted"].mean()


def test_targets_may_differ_by_answer(table, known):
    targets = {"healthy": 0.02, "sick": 0.2}
    rows = predictions_of(table, known)
    found = select_threshold(rows, objective="risk", target=targets, subgroups="predicted_class")
    accepted = found.policy.decide(table[1][known])["accepted"].to_numpy()
    for code, (name, target) in enumerate(targets.items()):
        kept = (rows.y_pred == code) & accepted
        assert np.sum(kept) > 0
        assert np.mean(table[0][known][kept] != name) < target
        assert found.certificates[name].target == target
    assert found.thresholds["healthy"] > found.thresholds["sick"]


def test_all_hopeless_is_an_error_or_a_warning(table, known):
    rows = predictions_of(table, ~known)
    half = np.where(np.arange(np.sum(~known)) % 2, "x", "y")
    with pytest.raises(InfeasibleTargetError, match=r"subgroup 'x': No threshold.*subgroup 'y'"):
        select_threshold(rows, subgroups=half, **RISK)
    with pytest.warns(UserWarning, match="will be deferred"):
        found = select_threshold(rows, subgroups=half, on_infeasible="abstain", **RISK)
    assert set(found.thresholds.values()) == {np.inf}


def test_rows_of_no_subgroup_choose_nothing_and_are_deferred_or_refused_later(table, known):
    group = np.where(known, table[2], None)
    again = select_threshold(predictions_of(table, known), subgroups=group[known], **RISK)
    for unseen, later in (("abstain", "deferred"), ("raise", "refused")):
        message = rf"{np.sum(~known)} of 4000 rows have no subgroup.* and such rows will be {later}"
        with pytest.warns(UserWarning, match=message):
            found = select_threshold(
                predictions_of(table), subgroups=Subgroups(group, unseen=unseen), **RISK
            )
        assert found.thresholds == again.thresholds


@pytest.mark.parametrize(("n_groups", "others"), [(4, 0), (5, 0), (6, 1), (9, 4)])
def test_five_subgroups_are_told_of_and_the_others_counted(n_groups, others):
    outcomes, group = Outcomes([1] * 18, np.arange(18.0)), np.arange(18) % n_groups
    with pytest.warns(UserWarning, match="deferred|The same holds") as caught:
        select_threshold(outcomes, subgroups=group, on_infeasible="abstain", **RISK)
    told = [str(one.message) for one in caught]
    more = [f"The same holds for {others} more subgroups."] if others else []
    assert [text for text in told if text.startswith("The same")] == more
    assert len(told) == min(n_groups, 5) + len(more)


@pytest.mark.filterwarnings("ignore:cwsa", "ignore:min_coverage")
def test_subgroups_of_weight_zero_do_not_exist():
    outcomes = Outcomes([0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6], [1, 1, 0, 0])
    found = select_threshold(outcomes, objective="cost", target=0.5, subgroups=["a", "a", "b", "b"])
    assert list(found.thresholds) == ["a"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (RISK | {"subgroups": ["a"]}, "subgroups has 1 rows, but the table of predictions has"),
        (RISK | {"subgroups": [None] * 4000}, "every value is missing"),
        (RISK | {"subgroups": ["a"] * 4000, "target": {"b": 0.1}},
         r"missing: \['a'\], without rows: \['b'\]"),
        ({"subgroups": ["a"] * 4000, "objective": Risk(0.1, given_class="sick")},
         "given_class does not go with subgroups"),
        ({"objective": Risk(0.1, given_class="dead")}, "given_class must be one of the classes"),
        ({"objective": Risk(0.1, given_class=0, given_prediction=1)}, "pass one of the two"),
    ],
)  # fmt: skip
def test_bad_subgroups_are_named(table, options, message):
    with pytest.raises(ValueError, match=message):
        select_threshold(predictions_of(table), **options)


# Some of the rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "objective", "kind"),
    [("given_prediction", "risk", "whose answer is 'sick'"),
     ("given_class", "generalized_risk", "whose true class is 'sick'")],
)  # fmt: skip
def test_a_guarantee_about_some_rows_reads_these_rows(table, known, given, objective, kind):
    predictions = predictions_of(table, known)
    stated = GUARANTEES[objective](0.05, **{given: "sick"})
    found = select_threshold(predictions, objective=stated)
    codes = predictions.y_pred if given == "given_prediction" else predictions.y_true
    part = predictions_of((table[0][known][codes == 1], table[1][known][codes == 1], None))
    alone = select_threshold(part, objective=objective, target=0.05)
    assert found.threshold == alone.threshold
    assert found.certificate.n == (codes == 1).sum()
    assert kind in str(found.certificate)
    assert found.policy.coverage == found.policy.decide(table[1][known])["accepted"].mean()


# Losses ----------------------------------------------------------------------------------------


def test_costs_are_bounded_in_their_own_units(table, known):
    costly = predictions_of(table, known, decision="min_cost", cost_matrix=COSTS)
    found = select_threshold(costly, objective="risk", target=0.2)
    decided = found.policy.decide(table[1][known])
    kept = decided["accepted"].to_numpy()
    answer, y = decided["suggestion"].to_numpy(), table[0][known]
    cost = np.where(answer == y, 0, np.where(y == "sick", 10, 1))
    assert found.risk == pytest.approx(cost[kept].mean())
    assert found.risk < 0.2 < cost.mean()
    certificate = found.certificate
    assert certificate.is_certified
    assert (certificate.method, certificate.n_errors) == ("betting", np.sum(cost[kept] > 0))
    assert certificate.risk < certificate.pointwise_bound < 0.25
    assert "its answers cost at most 0.2 each on average" in unwrap(str(certificate))


def test_costs_of_one_kind_are_counted_exactly(table, known):
    plain = select_threshold(predictions_of(table, known), **RISK)
    sevens = predictions_of(table, known, cost_matrix=[[0, 7], [7, 0]])
    priced = select_threshold(sevens, objective="risk", target=0.7)
    assert priced.threshold == plain.threshold
    assert priced.certificate.method == "combined"
    assert priced.certificate.least_target == pytest.approx(7 * plain.certificate.least_target)


def test_metrics_count_errors_although_there_are_costs(table, known):
    stated = Best("selective_accuracy", constraint=("risk", 0.2), min_coverage=0.2)
    found = select_threshold(predictions_of(table, known, cost_matrix=COSTS), objective=stated)
    kept = table[1][known].max(axis=1) >= found.threshold
    answer = np.array(["healthy", "sick"])[table[1][known].argmax(axis=1)]
    assert found.value == pytest.approx(np.mean(answer[kept] == table[0][known][kept]))


def test_importance_weights_need_bets_and_are_assumed_true(table, rng):
    weighted = predictions_of(table, sample_weight=rng.uniform(0.5, 1, 4000))
    half = {"loss": lambda y, a: 0.5 * (y != a)}
    for stated, message in [
        (Risk(0.2), "use method='betting' if they are importance weights"),
        (Risk(0.2, method=Betting(0.9)), r"largest_weight=0.9, but sample_weight goes up to"),
        (Risk(0.2, **half), "use method='betting'"),
    ]:
        with pytest.raises(ValueError, match=message):
            select_threshold(weighted, objective=stated)
    known = select_threshold(weighted, objective=Risk(0.2, method=Betting(1.0))).certificate
    assert known.is_certified
    assert "no case weighs more than 1" in known.assumptions
    unknown = select_threshold(weighted, objective=Risk(0.2, method="betting")).certificate
    assert "rows may weigh more than the heaviest of these" in unwrap(str(unknown))
    assert not unknown.is_certified
    graded = select_threshold(predictions_of(table), objective=Risk(0.2, **half)).certificate
    assert graded.method == "betting"
    assert "lose at most 0.2 each on average" in unwrap(str(graded))


# Methods ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "guarantee", "certified"),
    [
        ("combined", "high_probability", True), ("band", "high_probability", True),
        ("fixed_sequence", "high_probability", True), ("bonferroni", "high_probability", True),
        ("betting", "high_probability", True), ("sgr", "high_probability", False),
        ("mean", "mean", False), (Combined(0.3, 0.5, sparse=True), "high_probability", True),
    ],
)  # fmt: skip
def test_what_each_method_says(good, method, guarantee, certified):
    certificate = select_threshold(good, objective=Risk(0.05, method=method)).certificate
    assert certificate.guarantee == guarantee
    assert certificate.is_certified == certified
    assert str(certificate).startswith("CERTIFIED" if certified else "ESTIMATE, NOT CERTIFIED: ")
    assert certificate.method == getattr(method, "name", method)
    assert certificate.risk <= 0.05
    if method == "mean":
        assert "On average over tables like this one, at most 5 %" in unwrap(str(certificate))
    if method == "fixed_sequence" or isinstance(method, Combined):
        assert any("of the sequence were fixed before" in a for a in certificate.assumptions)
    assert certificate.pointwise_bound <= certificate.least_target <= 0.05 or method in (
        "sgr",
        "mean",
    )


@pytest.mark.parametrize(("lowest", "n_below"), [(0.0, 0), (0.5, 0), (0.5, 100)])
@pytest.mark.parametrize("method", ["combined", "betting"])
def test_errors_at_the_threshold_itself_are_among_the_accepted(lowest, n_below, method):
    """No number lies between two neighbours, so that the upper one is the threshold."""
    around = [np.nextafter(lowest, 1), lowest, np.nextafter(lowest, -1)]
    confidence, loss = np.repeat(around, [190, 10, n_below]), np.zeros(200 + n_below)
    loss[[195, 196]] = loss[200:] = 1
    found = select_threshold(
        Outcomes(loss, confidence), objective=Risk(0.1, method=method), assume="independent"
    )
    assert found.threshold == (lowest if n_below else 0)
    assert (found.certificate.n_accepted, found.certificate.n_errors) == (200, 2)


@pytest.mark.parametrize("method", ["order_statistic", "mean", "empirical"])
def test_methods_for_coverage(good, method):
    found = select_threshold(good, objective=Coverage(0.8, method=method))
    expected = {"order_statistic": 0.815, "mean": 0.801, "empirical": 0.8}[method]
    assert found.coverage == pytest.approx(expected, abs=0.001)


def test_chow_takes_one_minus_the_cost_of_a_calibrated_confidence(table, known):
    rows, chow = predictions_of(table, known), Cost(0.2, method="chow")
    found = select_threshold(rows, objective=chow)
    assert found.threshold == 0.8
    best = select_threshold(rows, objective="cost", target=0.2)
    cost = [s.risk * s.coverage + 0.2 * (1 - s.coverage) for s in (found, best)]
    assert cost[0] == pytest.approx(cost[1], abs=0.003)
    costly = predictions_of(table, known, cost_matrix=COSTS)
    for source, confidence in ((rows, "margin"), (costly, None)):
        with pytest.raises(ValueError, match="only right for a confidence that is one minus"):
            select_threshold(source, objective=chow, confidence=confidence)


def test_several_starts_share_delta(good):
    def found(starts, delta):
        method = FixedSequence(starts)
        return select_threshold(good, objective=Risk(0.02, delta=delta, method=method))

    both = found([0.1, 0.5], 0.1)
    each = [found(start, 0.05) for start in (0.1, 0.5)]
    assert both.coverage == max(one.coverage for one in each) > 0
    assert each[0].coverage != each[1].coverage


@pytest.mark.filterwarnings("ignore:cwsa", "ignore:min_coverage")
def test_constraints_and_lower_bounds(good):
    free, safe, bound = (
        select_threshold(good, objective=Best("cwsa_plus", min_coverage=0.01, **options))
        for options in (
            {}, {"method": "lower_bound"}, {"constraint": [("risk", 0.01), ("coverage", 0.3)]},
        )
    )  # fmt: skip
    assert safe.coverage > free.coverage
    assert safe.value < free.value
    assert bound.risk <= 0.01
    assert bound.coverage >= 0.3
    all_right = Best(constraint=[("risk", 0.0), ("coverage", 1.0)], threshold_range=(0, 1))
    with pytest.raises(InfeasibleTargetError, match="No threshold keeps the constraint risk 0"):
        select_threshold(good, objective=all_right)


# Checking again --------------------------------------------------------------------------------


def test_certify_counts_costs_and_subgroups_of_a_fixed_policy(table, known):
    old, group = np.arange(4000) < 2000, table[2]
    options = {"decision": "min_cost", "cost_matrix": COSTS}
    found = select_threshold(
        predictions_of(table, old & known, **options), objective="risk", target=1.0
    )
    fresh = predictions_of(table, ~old & known, **options)
    certificate = certify(found.policy, fresh, target=1.5)
    assert certificate.is_certified
    assert "cost at most 1.5 each" in unwrap(str(certificate))
    with pytest.warns(UserWarning, match="hopeless"):
        grouped = select_threshold(predictions_of(table, old), subgroups=group[old], **RISK)
    fresh = certify(grouped.policy, predictions_of(table, ~old), subgroups=group[~old])
    kept = grouped.policy.decide(table[1][~old], subgroups=group[~old])["accepted"]
    assert fresh.n_accepted == kept.sum()
    assert "with a threshold for each subgroup" in unwrap(str(fresh))


@pytest.mark.parametrize("loss", ["zero_one", lambda y, a: 0.5 * (y != a)], ids=["wrong", "half"])
def test_rows_that_chose_are_known_again_whatever_the_loss(table, loss, rng):
    weight = rng.uniform(0.5, 1, 4000) if loss == "zero_one" else None
    rows = predictions_of(table, sample_weight=weight)
    found = select_threshold(rows, objective=Risk(0.2, method="betting", loss=loss))
    again = certify(found.policy, predictions_of(table), target=0.5)
    assert not again.is_certified
    assert "also chose the threshold" in unwrap(str(again))


def test_a_policy_that_keeps_own_answers_needs_them(table):
    proba = table[1]
    answers = np.where(proba[:, 1] > 0.3, "sick", "healthy")
    own = predictions_of(table, decision="estimator", y_pred=answers)
    found = select_threshold(own, objective="risk", target=0.2)
    decided = found.policy.decide(proba, y_pred=answers)
    assert decided["suggestion"].tolist() == answers.tolist()
    chosen = np.where(answers == "sick", proba[:, 1], proba[:, 0])
    assert decided["accepted"].tolist() == (chosen >= found.threshold).tolist()
    with pytest.raises(ValueError, match="y_pred is missing"):
        found.policy.decide(proba)
    with pytest.raises(ValueError, match="y_pred has 2 rows, but y_proba has 4000"):
        found.policy.decide(proba, y_pred=["sick", "sick"])
    with pytest.raises(ValueError, match="the policy keeps the classifier's own answers"):
        certify(found.policy, predictions_of(table))
    assert certify(found.policy, own).n_accepted == decided["accepted"].sum()
