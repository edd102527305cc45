"""The rule of a cascade against a loop over rows, in the library and in the gate file."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import stats

import skselect as sk
from skselect.calibration._scopes import ClassCalibration
from skselect.extras.cascade import Cascade
from tests.refusals import check_refused

NAMES = ("cheap", "middle", "strong")


def draw_tables(rng, n, n_classes):
    """Return probabilities of three stages; some confidences are tied."""
    return {name: rng.dirichlet(np.ones(n_classes), n).round(2) for name in NAMES}


def whole(tables):
    """Return tables whose rows sum to one."""
    return {name: table / table.sum(axis=1, keepdims=True) for name, table in tables.items()}


def follow_by_hand(tables, cuts):
    """Return the kept probabilities and stages, row by row."""
    kept, stages = [], []
    for row in range(len(tables[NAMES[0]])):
        for k, name in enumerate(NAMES):
            own = tables[name][row]
            if k == len(NAMES) - 1 or max(own) >= cuts[k]:
                kept.append(own)
                stages.append(name)
                break
    return np.array(kept), stages


def make_policy(n_classes, cuts=(0.6, 0.7), calibrations=(None, None, None), **options):
    rule = Cascade(NAMES, cuts, (0, 1, 5), calibrations)
    return sk.AbstentionPolicy(np.arange(n_classes), threshold=0.65, cascade=rule, **options)


def run_gate(policy):
    gate = {}
    exec(policy.to_python(), gate)
    return gate


@given(st.integers(0, 10**6), st.sampled_from([2, 3, 6]), st.sampled_from([1, 2, 40]))
def test_each_row_is_answered_by_the_first_stage_that_keeps_it(seed, n_classes, n):
    rng = np.random.default_rng(seed)
    tables = whole(draw_tables(rng, n, n_classes))
    cuts = tuple(rng.choice(np.append(tables[name].max(axis=1), np.inf)) for name in NAMES[:2])
    policy = make_policy(n_classes, cuts)
    decided = policy.decide(tables)
    proba, stages = follow_by_hand(tables, cuts)
    assert decided["stage"].tolist() == stages
    np.testing.assert_array_equal(decided["confidence"], proba.max(axis=1))
    assert decided["suggestion"].tolist() == proba.argmax(axis=1).tolist()


@given(st.integers(0, 10**6))
def test_stage_by_stage_asks_as_few_rows_and_decides_the_same(seed):
    rng = np.random.default_rng(seed)
    tables = whole(draw_tables(rng, 30, 3))
    policy, asked = make_policy(3), {NAMES[0]: tables[NAMES[0]]}
    for name in NAMES[1:]:
        rows = policy.begin(asked) == name
        asked[name] = np.where(rows[:, None], tables[name], np.nan)
    assert not any(policy.begin(asked))
    assert policy.decide(asked).equals(policy.decide(tables))
    _, stages = follow_by_hand(tables, (0.6, 0.7))
    for k, name in enumerate(NAMES):
        needed = sum(NAMES.index(stage) >= k for stage in stages)
        assert np.sum(~np.isnan(asked[name][:, 0])) == needed


@pytest.mark.parametrize("kind", ["smooth_isotonic", "temperature", "platt", "beta", "isotonic"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_files_decide_the_same_with_the_calibration_of_each_stage(kind, n_classes, tmp_path):
    rng = np.random.default_rng(0)
    tables = whole(draw_tables(rng, 200, n_classes))
    codes = rng.integers(0, n_classes, 200)
    maps = [
        ClassCalibration.fit(kind, "predict_proba", tables[name], codes, n_classes)
        for name in NAMES[:2]
    ]
    policy = make_policy(n_classes, (0.5, 0.55), (*maps, None))
    decided = policy.decide(tables)
    path = tmp_path / "policy.json"
    policy.to_json(path)
    assert sk.AbstentionPolicy.from_json(path).decide(tables).equals(decided)
    gate, arrays = run_gate(policy), policy.decide_arrays(tables)
    for name, values in gate["decide"](tables).items():
        np.testing.assert_array_equal(values, arrays[name])
    first = tables[NAMES[0]]
    np.testing.assert_array_equal(gate["begin"](first), policy.begin(first))


SURE, OPEN = [[0.9, 0.1]], [[0.5, 0.5]]


@pytest.mark.parametrize(("tables", "named"), [
    ({"strong": SURE}, "asks the stages ['cheap', 'middle', 'strong'] in turn"),
    ({"cheap": SURE, "best": SURE}, "the first one at least"),
    ({"cheap": OPEN}, "must still ask the stage 'middle'"), (SURE, "y_proba"),
    ({name: pd.DataFrame(SURE, index=[name]) for name in ("cheap", "strong")}, "index"),
    ({"cheap": OPEN, "middle": OPEN * 2}, "2 rows, but the first stage has 1"),
    ({"cheap": [[0.5, 0.6]]}, "y_proba['cheap']"),
    ({"cheap": OPEN, "middle": [[0.5, np.nan]]}, "must still ask the stage 'middle'"),
])  # fmt: skip
def test_tables_that_do_not_fit_are_refused_here_and_in_the_gate(tables, named):
    policy = make_policy(2)
    check_refused(named, policy.decide, tables)
    check_refused("y_proba", run_gate(policy)["decide"], tables)


def test_a_policy_without_a_cascade_takes_no_dict_and_asks_nothing():
    policy = sk.AbstentionPolicy(np.array([0, 1]), threshold=0.8)
    with pytest.raises(ValueError, match="this policy has no cascade; pass one table"):
        policy.decide({"cheap": [[0.9, 0.1]]})
    check_refused("cascade", policy.begin, [[0.9, 0.1]])


@pytest.mark.parametrize(("named", "change"), [
    ("name", {"names": ("one", "one", "two")}), ("'all'", {"names": ("one", "all", "two")}),
    ("stages", {"cuts": (0.5,)}), ("costs", {"costs": (0, 1, -1)}),
    ("does not fit 8 rows", {"n_asked": (9, 5, 2), "n": 8}),
])  # fmt: skip
def test_a_rule_that_does_not_fit_itself_is_refused(named, change):
    fields = {"names": NAMES, "cuts": (0.5, 0.6), "costs": (0, 1, 2), "calibrations": (None,) * 3}
    check_refused(named, lambda: Cascade(**(fields | change)))


def test_expected_costs_are_shares_times_costs_with_exact_intervals():
    stage = np.repeat([0, 1, 2], [50, 30, 20])
    plain = Cascade(NAMES, (0.5, 0.6), (1, 2, 10), (None,) * 3)
    rule = plain.count_asked(stage, is_fresh=True)
    table = rule.expected_costs
    assert table["asked"].tolist()[:3] == [1.0, 0.5, 0.2]
    assert table["cost"].tolist() == [1.0, 1.0, 2.0, 4.0]
    for name, k in (("middle", 50), ("strong", 20)):  # both at once: 97.5 % each
        low, high = stats.binomtest(k, 100).proportion_ci(0.975, method="exact")
        np.testing.assert_allclose(table.loc[name, ["low", "high"]].astype(float), [low, high])
    assert "did not choose the rule" in table.attrs["note"]
    assert "95 % interval" in str(rule)
    estimate = rule.count_asked(stage, is_fresh=False)
    assert "an estimate" in estimate.expected_costs.attrs["note"]
    assert "an estimate" in str(estimate)
    with pytest.raises(ValueError, match="no rows were counted"):
        _ = plain.expected_costs


@pytest.mark.parametrize(("n_strong", "little"), [(94, False), (95, True)])
def test_a_cascade_that_asks_the_last_stage_of_nearly_all_cases_says_so(n_strong, little):
    counts = (100, 100, n_strong), 100
    rule = Cascade(NAMES, (0.5, 0.6), (0, 1, 2), (None,) * 3, *counts)
    assert str(rule).endswith("a case; it saves next to nothing." if little else "a case.")
    idle = Cascade(NAMES, (np.inf, np.inf), (0, 1, 2), (None,) * 3)
    assert str(idle).endswith("every case goes to 'strong'; it saves nothing.")


def test_checks_and_reports_read_the_stages_and_refuse_one_of_them_alone():
    rng = np.random.default_rng(0)
    tables, y = whole(draw_tables(rng, 400, 3)), rng.integers(0, 3, 400)
    policy = make_policy(3)
    decided = policy.decide(tables)
    accepted = decided["accepted"].to_numpy()
    wrong = int(np.sum(accepted & (decided["suggestion"] != y)))
    certificate = sk.certify(policy, y, tables, target=0.5)
    assert (certificate.n_accepted, certificate.n_errors) == (accepted.sum(), wrong)
    check = sk.check_policy(policy, y, tables, target=0.5)
    assert f"({wrong} of {accepted.sum()})." in str(check)
    monitor = sk.SelectiveRiskMonitor(policy, target=0.5).update(y, tables)
    assert monitor.status_.n_known == accepted.sum()
    shown = sk.selective_report(y, tables, policy=policy).to_frame().set_index("metric")["value"]
    assert shown["coverage"] == accepted.mean()
    alone = sk.Predictions.from_proba(y, tables["cheap"])
    for call in (
        lambda: sk.certify(policy, alone, target=0.5),
        lambda: sk.check_policy(policy, alone, target=0.5),
        lambda: sk.selective_report(alone, policy=policy),
    ):
        check_refused("these were not joined by its rule; pass the labels", call)
    with pytest.raises(ValueError, match="pass a dict of what each of them says"):
        sk.selective_report(y, tables["cheap"], policy=policy)
