"""Subgroups, some of the rows, other losses, and what is certified."""

import copy
import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binom

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
    select_threshold,
)
from skselect._lib.arrays import draw_rows
from skselect._lib.notebook import unwrap
from skselect.bounds._pointwise import rows_for_certificate
from skselect.objectives import GUARANTEES, Counts, Loss
from skselect.policy import Subgroups
from skselect.selection.by_group import share_delta
from skselect.selection.pick import name_levels
from skselect.selection.sample import Grouping
from skselect.thresholds import Combined, LevelSequence
from tests.common import read_certificate
from tests.refusals import check_refused, refusals

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


# Several guarantees ----------------------------------------------------------------------------

SEVERAL = [Risk(0.1), Coverage(0.4), GeneralizedRisk(0.1, given_class="sick")]


@pytest.fixture
def together(table, known):
    return predictions_of(table, known)


def test_a_threshold_of_several_guarantees_passes_each_at_its_share(together):
    found = select_threshold(together, objective=SEVERAL)
    alone = [
        select_threshold(together, objective=copy.copy(one).set_params(delta=0.05 / 3)).threshold
        for one in SEVERAL
    ]
    # The lowest that keeps the risks; the coverage is kept by its own threshold and all below.
    assert found.threshold >= max(alone[0], alone[2])
    assert found.threshold <= alone[1]
    assert any(found.threshold == pytest.approx(one, abs=1e-3) for one in (alone[0], alone[2]))
    made = found.certificate
    assert [one.delta for one in (made, *made.also)] == pytest.approx([0.05 / 3] * 3)
    assert {one.threshold for one in made.also} == {made.threshold}
    assert made.is_certified
    for statement in (made.statement, *(one.statement for one in made.also)):
        assert statement in read_certificate(made)
    assert "(95 % confidence)." in unwrap(str(made))


@pytest.mark.filterwarnings("ignore:REFUSED. each of these guarantees")
@pytest.mark.parametrize("about", ["given_class", "given_prediction"])
@pytest.mark.parametrize("target", [0.5, 0.9])
def test_a_list_proves_no_coverage_that_too_few_rows_cannot_prove(about, target, rng):
    n = 400
    is_rare = np.arange(n) < 5
    wrong = np.arange(n) >= 300
    y = np.where(is_rare, "rare", "often")
    answer = np.where(wrong & ~is_rare, "rare", y) if about == "given_class" else y
    proba = np.linspace(0.99, 0.51, n)
    columns = np.where(
        (answer == "rare")[:, None], np.c_[1 - proba, proba], np.c_[proba, 1 - proba]
    )
    order = rng.permutation(n)
    rows = Predictions.from_proba(y[order], columns[order], labels=["often", "rare"])
    objectives = [Risk(0.2), Coverage(target, **{about: "rare"})]
    found = select_threshold(rows, objective=objectives, on_infeasible="abstain")
    for certificate in (found.certificate, *found.certificate.also):
        if certificate.objective == "coverage" and found.certificate.is_certified:
            k, m = certificate.n_accepted, certificate.n
            is_proven = beta.sf(target, k, m + 1 - k) >= 1 - 0.05 / 2
            assert is_proven or found.threshold <= 0
    # Risk(0.2) passes thresholds that accept all five, and five rows do not prove nine tenths.
    if target == 0.9:
        assert not found.certificate.is_certified or found.threshold <= 0


def test_each_of_several_counts_its_own_rows(together):
    found = select_threshold(together, objective=SEVERAL)
    sure = found.accepts(together.y_proba.max(axis=1))
    wrong = together.y_pred != together.y_true
    for one, rows in zip(
        (found.certificate, *found.certificate.also),
        (slice(None), slice(None), together.y_true == 1),
        strict=True,
    ):
        counts = len(wrong[rows]), np.sum(sure[rows]), np.sum((sure & wrong)[rows])
        assert (one.n, one.n_accepted, one.n_errors) == counts


def test_a_list_of_one_is_that_one_and_the_order_of_rows_means_nothing(together, rng):
    one, alone = (select_threshold(together, objective=x) for x in ([Risk(0.1)], Risk(0.1)))
    assert one.threshold == alone.threshold
    assert one.certificate.also == ()
    mixed = together.take(rng.permutation(len(together)))
    thresholds = {select_threshold(x, objective=SEVERAL).threshold for x in (together, mixed)}
    assert len(thresholds) == 1


def test_several_refuse_by_the_one_that_fails_or_because_they_contradict(together):
    with pytest.raises(InfeasibleTargetError, match=r"REFUSED: at most 0\.01 % of the answers"):
        select_threshold(together, objective=[Coverage(0.5), Risk(0.0001)])
    with pytest.raises(InfeasibleTargetError, match=r"could be kept by itself") as refusal:
        select_threshold(together, objective=[Risk(0.02), Coverage(0.99)])
    assert "at least 99 % of all cases are answered (alone: " in refusal.value.guarantee
    assert "breaks the guarantee" in str(refusal.value)
    with pytest.raises(InfeasibleTargetError, match="By itself, a target of") as refusal:
        select_threshold(together, objective=[Coverage(0.5), Risk(0.003)])
    assert "To promise it" not in str(refusal.value)
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        none = select_threshold(
            together, objective=[Risk(0.02), Coverage(0.99)], on_infeasible="abstain"
        )
    assert none.threshold == np.inf


def test_everything_may_be_accepted_for_a_coverage_of_few_rows(rng):
    rows = Outcomes(np.zeros(60), rng.uniform(0.5, 1, 60))
    found = select_threshold(rows, objective=[Risk(0.2), Coverage(0.99)])
    assert found.threshold == -np.inf
    assert found.certificate.is_certified


@refusals([
    ("objective", bad) for bad in (
        [], [Risk(0.1), Risk(0.2)], [Risk(0.1), Best("cwsa")], [Risk(0.1), SystemRisk(0.1)],
        [Risk(0.1), Risk(0.2, method="sgr", given_class="sick")], [Risk(0.1), 0.2],
        [Risk(0.1), Coverage(0.5, delta=0.1)],
    )
])  # fmt: skip
def test_lists_that_one_threshold_cannot_keep(together, argument, call):
    check_refused(argument, lambda: select_threshold(together, objective=call))


def test_policies_of_several_guarantees_are_stored_checked_and_watched(table, known):
    y, proba, _ = table
    tuned, fresh = (np.flatnonzero(known)[k::2] for k in (0, 1))
    policy = select_threshold(predictions_of(table, tuned), objective=SEVERAL).policy
    again = AbstentionPolicy.from_json(policy.to_json())
    assert again.certificate == policy.certificate
    rows = y[fresh], proba[fresh]
    check = check_policy(again, *rows)
    assert [one.objective for one in check.guarantees] == [
        "risk", "coverage", "generalized_risk"
    ]  # fmt: skip
    sick = check.guarantees[2]
    assert sick.n == np.sum(y[fresh] == "sick")
    one = check_policy(again, *rows, objective=Risk(0.1))
    assert len(one.guarantees) == 1
    with pytest.raises(ValueError, match="several guarantees"):
        check_policy(again, *rows, target=0.1)
    [watched] = SelectiveRiskMonitor(again).status_.guarantees
    assert watched.target == 0.1


@pytest.mark.parametrize("n_draws", [pytest.param(60), pytest.param(1000, marks=pytest.mark.slow)])
def test_each_of_several_guarantees_fails_at_most_with_its_share_of_delta(n_draws):
    # Flat risks: every threshold breaks the first target, and all that are tested keep the second.
    rng, n, failed = np.random.default_rng(7), 400, 0
    for _ in range(n_draws):
        truth, sure = rng.random(n) < 0.5, rng.random(n)
        wrong = rng.random(n) < 0.101
        said = np.where(wrong, ~truth, truth).astype(int)
        rows = Predictions.from_labels(truth.astype(int), said, sure, labels=[0, 1])
        objectives = [Risk(0.1, delta=0.1), Risk(0.45, delta=0.1, given_class=1)]
        with warnings.catch_warnings(action="ignore"):
            found = select_threshold(rows, objective=objectives, on_infeasible="abstain")
        failed += found.threshold < np.inf
    share = 0.1 / 2
    assert failed / n_draws <= share + 3 * math.sqrt(share * (1 - share) / n_draws)


# Subgroups -------------------------------------------------------------------------------------


def test_each_subgroup_is_selected_by_itself_at_its_share_of_delta(table):
    group = table[2]
    with pytest.warns(UserWarning, match=r"(?s)REFUSED.*'hopeless' are wrong.*will be deferred"):
        found = select_threshold(predictions_of(table), subgroups=group, **RISK)
    assert found.thresholds["hopeless"] == np.inf
    for name in ("a", "b"):
        alone = select_threshold(predictions_of(table, group == name), delta=0.05 / 3, **RISK)
        assert found.thresholds[name] == alone.threshold
        certificate = found.certificates[name]
        assert certificate.is_certified
        assert certificate.delta == pytest.approx(0.05 / 3)
        assert f"of the answers to cases of subgroup '{name}' are wrong" in unwrap(str(certificate))
        assert "subgroups or weeks" not in unwrap(str(certificate))
    frame = found.to_frame()
    assert frame["certified"].tolist() == [True, True, False]
    assert frame["n"].sum() == 4000
    assert "hopeless" in str(found)


def test_a_tenth_of_the_rows_of_a_subgroup_names_the_levels_of_the_others(table):
    predictions, group = predictions_of(table), table[2].astype(object)
    confidence = np.round(Outcomes.from_predictions(predictions).confidence, 1)
    group[5], group[-19:-9], group[-9:] = None, "ten", "rare"
    one, planned = Risk(0.1), Risk(0.2, delta=0.1, max_analyses=2)
    each = {"a": one, "b": planned, "hopeless": GeneralizedRisk(0.1), "rare": one, "ten": one}
    found, names = name_levels(
        predictions, confidence, each, Grouping("site", group, len(group)), 3
    )
    assert list(found) == list(each)
    for key, level in (("a", 0.05 / 3), ("b", 0.1 / 2 / 3), ("ten", 0.05 / 4)):
        rows = np.flatnonzero(group == key)
        named = rows[draw_rows(len(rows), 10, seed=3)]
        assert np.array_equal(np.flatnonzero(names & (group == key)), named)
        other = RiskCoverageCurve.from_outcomes(Outcomes(named * 0.0, confidence[named]))
        n, target = len(rows) - len(named), each[key].target
        assert found[key].method == LevelSequence.of(other, n, target, level, 0.1)
        assert found[key].set_params(method="auto") == each[key]
    assert (found["hopeless"], found["rare"]) == (each["hopeless"], one)
    assert not np.any(names[~np.isin(group, ["a", "b", "ten"])])


@pytest.mark.parametrize("kind", ["text", "two columns", "numbers"])
def test_members_of_a_grouping_are_the_rows_of_each_key(kind, rng):
    keys = rng.integers(0, 40, 300).astype(object)
    keys[rng.random(300) < 0.1] = None
    if kind == "text":
        keys = np.array([None if key is None else f"site {key}" for key in keys])
    given = pd.DataFrame({"site": keys, "floor": 1}) if kind == "two columns" else keys
    wanted = {(key, 1) if kind == "two columns" else key for key in keys if key is not None}
    groups = Grouping("site", given, 300)
    for some in (np.arange(300), rng.permutation(300)[:50], rng.random(300) < 0.5):
        found, left = groups.take(some).members, keys[some]
        assert set(found) == {key for key in wanted if np.any(left == np.ravel([key])[0])}
        for key, rows in found.items():
            name = key[0] if kind == "two columns" else key
            assert rows.tolist() == [k for k, one in enumerate(left) if one == name]


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
    with pytest.raises(InfeasibleTargetError, match=r"in 2 subgroups(.|\n)*'x'(.|\n)*'y'"):
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


@pytest.mark.parametrize("n_groups", [2, 10, 12])
def test_one_table_tells_of_the_subgroups_without_a_threshold(n_groups, rng):
    """Each with the advice that it would get alone, at its share of delta."""
    group = np.arange(20 * n_groups) % n_groups
    rows = Outcomes(rng.random(len(group)) < 0.9, rng.random(len(group)))
    with pytest.warns(UserWarning, match="will be deferred") as caught:
        select_threshold(rows, objective=Risk(0.4), subgroups=group, on_infeasible="abstain")
    [lines] = [str(one.message).splitlines() for one in caught]
    assert lines[0] == f"REFUSED: in {n_groups} subgroups (subgroup) no threshold meets the target."
    assert lines[1].split() == ["subgroup", "rows", "rows", "needed", "least", "target"]
    listed = [line.split() for line in lines[2:12] if "rows" not in line]
    assert [line[:2] for line in listed] == [[str(key), "20"] for key in range(min(n_groups, 10))]
    assert ("and 2 more" in lines) == (n_groups == 12)
    assert "Only rows that certify count" not in str(caught[0].message)
    for key in range(2):
        with pytest.raises(InfeasibleTargetError) as error:
            select_threshold(rows.take(group == key), objective=Risk(0.4, delta=0.05 / n_groups))
        needed, least = error.value.rows_needed, error.value.least_target
        assert listed[key][2:] == [str(needed or "none"), f"{least:.4g}" if least else "none"]


def test_objectives_that_miss_many_subgroups_name_ten(rng):
    group = np.arange(3000) % 1000
    rows = Outcomes(rng.random(3000) < 0.1, rng.random(3000))
    each = {key: Risk(0.4) for key in range(500, 1600)}
    message = check_refused(
        "objective", lambda: select_threshold(rows, objective=each, subgroups=group)
    )
    assert "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9] and 490 more, without rows: [1000, 1001" in message
    assert len(message) < 400


# Shares of delta -------------------------------------------------------------------------------


def most_shares(sizes, needed):
    """Return how many subgroups can share delta, by trying every set of them."""
    for k in range(len(sizes), 0, -1):
        enough = [n >= least for n, least in zip(sizes, needed(k), strict=True)]
        if any(all(some) for some in itertools.combinations(enough, k)):
            return k
    return 0


@pytest.mark.parametrize("same", [True, False])
def test_as_many_subgroups_share_delta_as_can_certify_at_their_share(same, rng):
    found = []
    for _ in range(300):
        n_groups = int(rng.integers(1, 7))
        sizes = rng.integers(1, 160, n_groups)
        targets = np.full(n_groups, 0.05) if same else rng.choice([0.02, 0.05, 0.2], n_groups)

        def needed(k, targets=targets):
            return np.array([rows_for_certificate(target, 0.1 / k) for target in targets])

        gets, k = share_delta(sizes, needed)
        assert k == np.sum(gets) == most_shares(sizes, needed)
        assert np.all(sizes[gets] >= needed(max(k, 1))[gets])
        assert np.all(sizes[~gets] < needed(k + 1)[~gets])
        if same:  # those with most rows, of equal ones the first
            assert np.flatnonzero(gets).tolist() == sorted(np.argsort(-sizes, kind="stable")[:k])
        found.append(k)
    assert set(found) >= {0, 1, 2, 3, 4}


def test_equal_subgroups_share_delta_in_the_order_in_which_they_come():
    """Eight of 50 with 99 rows can certify 5 % at delta / 8, and none at delta / 9."""
    gets, k = share_delta(
        np.full(50, 99), lambda k: np.full(50, rows_for_certificate(0.05, 0.05 / k))
    )
    assert (k, np.flatnonzero(gets).tolist()) == (8, list(range(8)))


def test_the_only_share_goes_to_the_subgroup_that_can_use_it():
    """12 rows certify 20 % at all of delta; 100 rows never certify 2 %."""
    gets, k = share_delta(
        np.array([12, 100]),
        lambda k: np.array([rows_for_certificate(t, 0.1 / k) for t in (0.2, 0.02)]),
    )
    assert (gets.tolist(), k) == ([True, False], 1)


def beside_tiny_ones(n_tiny, rng, sizes=(400, 600, 900)):
    """Return rows of large subgroups 0, 1, 2 and of tiny ones, some of which are hard."""
    group = np.repeat(np.arange(len(sizes) + n_tiny), [*sizes, *[8] * n_tiny])
    confidence = rng.random(len(group))
    return Outcomes(rng.random(len(group)) < 0.06 * (1 - confidence), confidence), group


def test_tiny_subgroups_take_no_delta_from_large_ones_and_are_told_of_once(rng):
    outcomes, group = beside_tiny_ones(50, rng)
    with pytest.warns(UserWarning, match="will be deferred") as caught:
        found = select_threshold(outcomes, objective="risk", target=0.05, subgroups=group)
    large = group < 3
    alone = select_threshold(
        outcomes.take(large), objective="risk", target=0.05, subgroups=group[large]
    )
    assert {key: found.thresholds[key] for key in range(3)} == alone.thresholds
    assert {one.delta for one in alone.certificates.values()} == {0.05 / 3}
    assert found.certificates[0].delta == 0.05 / 3
    assert all(found.thresholds[key] == np.inf for key in range(3, 53))
    assert len(found.to_frame()) == 53
    [told] = [str(one.message) for one in caught]
    lines = told.splitlines()
    assert lines[0].startswith("subgroup: 50 of 53 subgroups have too few rows")
    assert lines[1].split() == ["subgroup", "rows", "rows", "needed"]
    needed = rows_for_certificate(0.05, 0.05 / 4)
    assert [line.split() for line in lines[2:-2]] == [
        [str(key), "8", str(needed)] for key in range(3, 13)
    ]
    assert lines[-2] == "and 40 more"
    assert found.certificates[3].rows_needed == needed
    together = str(found.groups.together)
    assert together.startswith("Together the 3 certified guarantees hold with 95 % confidence")


def test_large_and_small_subgroups_that_are_refused_are_told_of_in_two_warnings(rng):
    group = np.repeat(["bad", "small", "worse"], [300, 8, 300])
    rows = Outcomes(rng.random(608) < 0.5, rng.random(608))
    options = {"subgroups": group, **RISK}
    with pytest.warns(UserWarning, match="will be deferred") as caught:
        select_threshold(rows, on_infeasible="abstain", **options)
    large, small = [str(one.message) for one in caught]
    assert [large.count(name) for name in ("'bad'", "'worse'", "'small'")] == [1, 1, 0]
    assert "'small'" in small
    with pytest.raises(InfeasibleTargetError, match=r"'bad' +300 +none(.|\n)*'small'") as error:
        select_threshold(rows, **options)
    assert error.value.rows_needed is None  # no number of rows like these would do


def test_no_subgroup_with_rows_enough_is_refused_as_if_each_had_all_of_delta():
    rows = Outcomes(np.zeros(60), np.arange(60.0))
    group, asked = np.arange(60) % 3, {"objective": "risk", "target": 0.05}
    with pytest.raises(InfeasibleTargetError) as alone:
        select_threshold(rows.take(group == 1), **asked)
    needed, least = alone.value.rows_needed, alone.value.least_target
    with pytest.raises(InfeasibleTargetError, match=rf"1 +20 +{needed} +{least:.4g}\n"):
        select_threshold(rows, **asked, subgroups=group)


def test_subgroups_with_a_target_each_need_rows_for_their_own(rng):
    sizes = {"easy": 40, "hard": 200, "large": 900}
    group = np.repeat(list(sizes), list(sizes.values()))
    rows = Outcomes(np.zeros(len(group)), rng.random(len(group)))
    each = {"easy": Risk(0.2), "hard": Risk(0.01), "large": Risk(0.05, method="band")}
    with pytest.warns(UserWarning, match=r"'hard' +200 +408\n") as caught:
        found = select_threshold(rows, objective=each, subgroups=group)
    assert len(caught) == 1
    assert found.certificates["hard"].rows_needed == rows_for_certificate(0.01, 0.05 / 3) == 408
    for name in ("easy", "large"):
        alone = each[name].set_params(delta=0.05 / 2)
        one = select_threshold(rows.take(group == name), objective=alone)
        assert found.thresholds[name] == one.threshold < np.inf


def test_subgroups_too_small_for_a_coverage_accept_everything_and_take_no_delta(rng):
    sizes = [500, 300, *range(1, 30)]
    group = np.repeat(np.arange(len(sizes)), sizes)
    rows = Outcomes(np.zeros(len(group)), rng.random(len(group)))
    found = select_threshold(rows, objective="coverage", target=0.9, subgroups=group)
    for key in (0, 1):
        alone = select_threshold(
            rows.take(group == key), objective="coverage", target=0.9, delta=0.025
        )
        assert found.thresholds[key] == alone.threshold > 0
    assert {found.thresholds[key] for key in range(2, len(sizes))} == {-np.inf}
    assert all(one.is_certified for one in found.certificates.values())
    assert [one.can_fail for one in found.certificates.values()] == [True] * 2 + [False] * 29
    assert "hold with 95 % confidence" in found.groups.together
    small = group > 1
    tiny = select_threshold(
        rows.take(small), objective="coverage", target=0.9, subgroups=group[small]
    )
    assert set(tiny.thresholds.values()) == {-np.inf}
    assert tiny.groups.together == ""
    assert math.fsum(one.delta for one in tiny.certificates.values()) == pytest.approx(0.05)


@pytest.mark.filterwarnings("ignore:REFUSED", "ignore:The order")
@pytest.mark.parametrize("level", [0.05, 0.011])
@pytest.mark.parametrize(
    "objective",
    [*(Risk(0.2, method=name) for name in
       ("combined", "band", "fixed_sequence", "bonferroni", "sgr")),
     GeneralizedRisk(0.2), Coverage(0.8), Coverage(0.3), Coverage(1.0)],
    ids=str,
)  # fmt: skip
def test_with_fewer_rows_than_can_fail_nothing_is_certified(objective, level):
    """Then no share of delta is used, whatever the labels are."""
    objective = copy.copy(objective).set_params(delta=level)
    needed = objective.on(Loss()).rows_to_fail
    options = {"objective": objective, "on_infeasible": "abstain", "assume": "independent"}
    is_coverage = isinstance(objective, Coverage)
    for n in range(1, int(min(needed, 40)) + 1):
        found = select_threshold(Outcomes(np.zeros(n), np.arange(n) / n), **options)
        assert found.certificate.can_fail == (n >= needed)
        if n < needed:
            assert found.coverage == is_coverage
        elif is_coverage or isinstance(objective, GeneralizedRisk):  # others divide delta further
            assert (found.coverage < 1) == is_coverage


@pytest.mark.parametrize("objective", ["cwsa_plus", "cost", "empirical", "mean"])
@pytest.mark.filterwarnings("ignore")
def test_what_guarantees_nothing_shares_as_before(objective, rng):
    outcomes, group = beside_tiny_ones(4, rng)
    stated = {"cwsa_plus": Best(), "cost": Cost(0.1)}.get(objective)
    stated = Risk(0.1, method=objective) if stated is None else stated
    found = select_threshold(outcomes, objective=stated, subgroups=group)
    assert {one.objective.own_delta for one in found.selections.values()} == {0.05 / 7}


@pytest.mark.filterwarnings("ignore:cwsa", "ignore:min_coverage")
def test_subgroups_of_weight_zero_do_not_exist():
    outcomes = Outcomes([0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6], [1, 1, 0, 0])
    found = select_threshold(outcomes, objective="cost", target=0.5, subgroups=["a", "a", "b", "b"])
    assert list(found.thresholds) == ["a"]


@refusals({
    "subgroups": [RISK | {"subgroups": [None] * 4000},
                  {"subgroups": ["a"] * 4000, "objective": SEVERAL}],
    "target": [RISK | {"subgroups": ["a"] * 4000, "target": {"b": 0.1}}],
    "given_class": [{"subgroups": ["a"] * 4000, "objective": Risk(0.1, given_class="sick")},
                    {"objective": Risk(0.1, given_class="dead")},
                    {"objective": Risk(0.1, given_class=0, given_prediction=1)}],
})  # fmt: skip
def test_bad_subgroups_are_named(table, argument, call):
    check_refused(argument, lambda: select_threshold(predictions_of(table), **call))


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
    assert found.risk < 0.21 < cost.mean()  # coins certify it
    certificate = found.certificate
    assert certificate.is_certified
    assert certificate.method == "combined"
    dear = np.sum(cost[kept] == 10)  # these are errors, and about a tenth of those that cost 1
    assert dear <= certificate.n_errors < dear + 0.2 * np.sum(cost[kept] == 1)
    assert certificate.pointwise_bound <= 0.2
    assert "the answers cost at most 0.2 each on average" in read_certificate(certificate)


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


def test_importance_weights_need_a_limit_and_are_assumed_true(table, rng):
    weighted = predictions_of(table, sample_weight=rng.uniform(0.5, 1, 4000))
    half = {"loss": lambda y, a: 0.5 * (y != a)}
    for stated, message in [
        (Risk(0.2), "pass the objective largest_weight= if they are importance weights"),
        (Coverage(0.2), "pass the objective largest_weight= if they are importance weights"),
        (Risk(0.2, **half), "largest_weight= if they are importance"),
        (Risk(0.2, method="mean"), "a weight is not a number of independent rows"),
        (Risk(0.2, method="mean", largest_weight=1), "largest_weight=1 makes counts of weights"),
        (Risk(0.2, method="empirical", largest_weight=1), "method='empirical' does not use"),
        (Risk(0.2, largest_weight=0.9), r"largest_weight=0.9, but sample_weight goes up to"),
    ]:
        with pytest.raises(ValueError, match=message):
            select_threshold(weighted, objective=stated)
    known = select_threshold(weighted, objective=Risk(0.2, largest_weight=1.0)).certificate
    assert known.is_certified
    assert "no case weighs more than 1" in known.assumptions
    assert 2800 < known.n < 3200  # the weights are .75 on average
    by_site = select_threshold(
        weighted, objective=Coverage(0.5, largest_weight=1.0), subgroups=np.arange(4000) % 2
    )
    assert 2800 < sum(one.n for one in by_site.certificates.values()) < 3200
    graded = select_threshold(predictions_of(table), objective=Risk(0.2, **half)).certificate
    assert graded.method == "combined"
    assert "lose at most 0.2 each on average" in unwrap(str(graded))


# Methods ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "guarantee", "certified"),
    [
        ("combined", "high_probability", True), ("band", "high_probability", True),
        ("fixed_sequence", "high_probability", True), ("bonferroni", "high_probability", True),
        ("sgr", "high_probability", False),
        ("mean", "mean", False), (Combined(0.3, 0.5, sparse=True), "high_probability", True),
        (LevelSequence([0.9, 0.8]), "high_probability", True),
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
        assert "(on average over tables like this one)" in unwrap(str(certificate))
    if method == "fixed_sequence" or isinstance(method, Combined | LevelSequence):
        assert any("of the sequence were fixed before" in a for a in certificate.assumptions)
    assert certificate.pointwise_bound <= certificate.least_target <= 0.05 or method in (
        "sgr",
        "mean",
    )


@pytest.mark.parametrize(("lowest", "n_below"), [(0.0, 0), (0.5, 0), (0.5, 100)])
def test_errors_at_the_threshold_itself_are_among_the_accepted(lowest, n_below):
    """No number lies between two neighbours, so that the upper one is the threshold."""
    around = [np.nextafter(lowest, 1), lowest, np.nextafter(lowest, -1)]
    confidence, loss = np.repeat(around, [190, 10, n_below]), np.zeros(200 + n_below)
    loss[[195, 196]] = loss[200:] = 1
    found = select_threshold(Outcomes(loss, confidence), objective=Risk(0.1), assume="independent")
    assert found.threshold == (lowest if n_below else 0)
    assert (found.certificate.n_accepted, found.certificate.n_errors) == (200, 2)


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
    assert "with a threshold for each subgroup" in read_certificate(fresh)


@pytest.mark.parametrize("loss", ["zero_one", lambda y, a: 0.5 * (y != a)], ids=["wrong", "half"])
def test_rows_that_chose_are_known_again_whatever_the_loss(table, loss, rng):
    weight = rng.uniform(0.5, 1, 4000) if loss == "zero_one" else None
    rows = predictions_of(table, sample_weight=weight)
    largest = None if weight is None else 1.0
    found = select_threshold(rows, objective=Risk(0.2, loss=loss, largest_weight=largest))
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
    check_refused("y_pred", found.policy.decide, proba)
    check_refused("y_pred", lambda: found.policy.decide(proba, y_pred=["sick", "sick"]))
    check_refused("the classifier's own answers", certify, found.policy, predictions_of(table))
    assert certify(found.policy, own).n_accepted == decided["accepted"].sum()


# What is stated of the accepted rows --------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "n_trials", "n_events"),
    [("risk", 60, 3), ("generalized_risk", 100, 3), ("coverage", 100, 40)],
)
def test_a_bound_is_the_largest_share_that_the_counts_do_not_rule_out(
    objective, n_trials, n_events
):
    _, value, low, high, *_ = GUARANTEES[objective](0.5, delta=0.1).test_counts(Counts(100, 60, 3))
    if objective == "coverage":
        value, low, high = 1 - value, 1 - high, 1 - low
    assert value == pytest.approx(n_events / n_trials)
    assert binom.cdf(n_events, n_trials, high) == pytest.approx(0.1)
    assert binom.sf(n_events - 1, n_trials, low) == pytest.approx(0.1)


def test_a_coverage_certificate_bounds_the_coverage_from_below(good):
    certificate = select_threshold(good, objective="coverage", target=0.7).certificate
    n_rejected = certificate.n - certificate.n_accepted
    assert binom.cdf(n_rejected, 2000, 1 - certificate.pointwise_bound) == pytest.approx(0.05)
    assert 0.7 <= certificate.pointwise_bound < certificate.coverage
    assert certificate.least_target == certificate.pointwise_bound
    assert certificate.rows_needed == 1


def test_silent_losses_are_counted(good):
    graded = Outcomes(good.loss / 2, good.confidence)
    found = select_threshold(graded, objective=GeneralizedRisk(0.03))
    certificate = found.certificate
    assert certificate.is_certified
    assert "the answers lose at most 0.03 per case on average" in read_certificate(certificate)
    silent = graded.confidence >= found.threshold
    assert found.risk == pytest.approx(graded.loss[silent].mean())
    assert binom.cdf(certificate.n_errors, 2000, 0.03) <= 0.05
    assert certificate.rows_needed == select_threshold(
        good, objective=GeneralizedRisk(0.03)
    ).certificate.rows_needed  # fmt: skip


@pytest.mark.parametrize(
    ("method", "reasons"),
    [("sgr", ["published proof of SGR", "no threshold meets"]), ("combined", ["no threshold"])],
)
def test_where_nothing_is_accepted_every_reason_is_given(good, method, reasons):
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        found = select_threshold(good, objective=Risk(1e-4, method=method), on_infeasible="abstain")
    caveats = found.certificate.caveats
    assert len(caveats) == len(reasons)
    assert all(reason in said for reason, said in zip(reasons, caveats, strict=True))
    assert found.certificate.pointwise_bound == 1.0
