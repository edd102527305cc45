"""Which rows belong to which subgroup, and what a policy does with them; its shortlist.

The shortlist: its column, its files, its words, and what is refused.
"""

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, strategies as st

from skselect import AbstentionPolicy, Predictions, certify, select_threshold, selective_report
from skselect._lib.files import digest_json
from skselect.calibration._scopes import ClassCalibration
from skselect.policy.subgroups import GroupThresholds, PolicyShortlist, subgroup_codes
from tests.brute import examples, proba_cases
from tests.common import check_schema
from tests.policy.test_standalone import assert_same, gate_of, in_all_layouts, raw_scores
from tests.refusals import check_refused


def policy_with(groups):
    return AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=np.inf, groups=groups)


BY_SEX = GroupThresholds("sex", {"F": 0.6, "M": 0.9})
PROBA = np.array([[0.3, 0.7], [0.3, 0.7], [0.05, 0.95], [0.5, 0.5]])


SEXES = ["M", "F", None, "M"]


@pytest.mark.parametrize("values", [
    SEXES, np.array(SEXES, dtype=object), pd.Series(SEXES, index=[9, 8, 7, 6]),
    pd.Series(SEXES, dtype="category"), pd.Series(SEXES, dtype="string"), pl.Series(SEXES),
    pd.DataFrame({"sex": SEXES}),
])  # fmt: skip
def test_codes_of_one_attribute(values):
    codes, keys = subgroup_codes(values, 4)
    assert keys == ["F", "M"]
    assert codes.tolist() == [1, 0, -1, 1]


def test_codes_of_several_attributes_and_of_numbers():
    frame = pd.DataFrame({"a": [10, 2, 2, 2], "b": [True, False, False, None]})
    codes, keys = subgroup_codes(frame, 4)
    assert keys == [(2, False), (10, True)]
    assert codes.tolist() == [1, 0, 0, -1]
    assert subgroup_codes([10, 9, 10], 3)[1] == [9, 10]
    for values in (pd.cut([1, 2], [0, 1, 2]), [1.0, np.inf], pd.to_datetime(["2020", "2021"])):
        check_refused("subgroups", subgroup_codes, pd.Series(values), 2)
    for odd in (["F", "M"], [], np.array([["F"]]), np.array("F"), "F", {}, [["F"]]):
        check_refused("subgroups", lambda x=odd: policy_with(BY_SEX).decide(PROBA[:1], subgroups=x))


@pytest.mark.parametrize(
    "value",
    ["F", "", "ä", "F\0", 3, 2**70, True, 2.5, None, np.nan, np.int8(3), np.str_("F"), pd.NA],
)
def test_a_single_row_has_the_subgroup_that_it_has_in_a_table(value):
    def read(values):
        codes, keys = subgroup_codes(values, 1)
        return codes.tolist(), keys, [type(key) for key in keys]

    expected = read(pd.DataFrame({"a": [value]}, dtype=object))
    column = np.array([value], dtype=object)
    for alone in ([value], column, {"a": [value]}, pd.Series(column), (value,)):
        assert read(alone) == expected
    pair = pd.DataFrame({"a": [value], "b": ["x"]}, dtype=object)
    assert read({"a": [value], "b": np.array(["x"])}) == read(pair)


def test_each_row_is_held_to_the_threshold_of_its_subgroup():
    found = policy_with(BY_SEX).decide(PROBA, subgroups=["F", "M", "M", "F"])
    assert found["threshold"].tolist() == [0.6, 0.9, 0.9, 0.6]
    assert found["accepted"].tolist() == [True, False, True, False]
    accepted = policy_with(BY_SEX).accepts([0.7, 0.7], subgroups=["F", "M"])
    assert accepted.tolist() == [True, False]


def test_unseen_and_missing_subgroups_are_deferred_with_a_warning_or_refused():
    with pytest.warns(UserWarning, match=r"2 rows belong to no sex that has a threshold \(\['X'\]"):
        found = policy_with(BY_SEX).decide(PROBA, subgroups=["F", "X", None, "F"])
    assert found["accepted"].tolist() == [True, False, False, False]
    assert found["threshold"].tolist() == [0.6, np.inf, np.inf, 0.6]
    assert BY_SEX.look_up(["F", "X", None], 3).tolist() == [0.6, np.inf, np.inf]
    strict = policy_with(GroupThresholds("sex", BY_SEX.thresholds, unseen="raise"))
    plain = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.6)
    for policy, sites in [
        (strict, ["F", "X", "M", "F"]), (policy_with(BY_SEX), None), (policy_with(BY_SEX), ["F"]),
        (plain, ["F", "M", "M", "F"]),
    ]:  # fmt: skip
        check_refused("subgroups", lambda p=policy, s=sites: p.decide(PROBA, subgroups=s))


def test_a_table_says_what_is_guaranteed_of_each_and_one_text_what_is_alike():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.1, 0.1], 4000)
    truth = (rng.random(4000) < proba[:, 1]).astype(int)
    site = np.repeat(["east", "west", "tiny", "<b>"], [1900, 1500, 20, 580])
    rows = Predictions.from_proba(truth, proba)
    groups = pd.Series(site, name="site")
    with pytest.warns(UserWarning, match=r"'tiny' +20 +42\n"):
        found = select_threshold(rows, objective="risk", target=0.1, subgroups=groups)
    table, *texts = str(found).split("\n\n")
    head, *lines = [re.split(r"  +", line.strip()) for line in table.splitlines()]
    assert " ".join(head) == "site n coverage threshold target verdict"
    expected = found.to_frame()
    assert len(lines) == 4
    for cells in lines:
        name, n, *rest = " ".join(cells).split(" ")
        row = expected.loc[name]
        assert int(n.replace(",", "")) == row["n"]
        assert float(rest[0]) == pytest.approx(100 * row["coverage"], rel=1e-3)
        threshold = "none" if np.isinf(row["threshold"]) else f"{row['threshold']:.4g}"
        assert rest[1:5] == ["%", threshold, "10", "%"]
        assert " ".join(rest[5:]) == ("certified" if row["certified"] else "defers all")
    certified = [name for name in expected.index if expected["certified"][name]]
    assert {"east", "west"} <= set(certified)
    assert texts[-1].startswith("site 'tiny'\nREFUSED: no threshold")
    alike = next(text for text in texts if f"site {certified[0]!r}" in text)
    assert alike.splitlines()[1].startswith("CERTIFIED, ")
    assert alike.endswith(f"for: {', '.join(certified[1:])}.")
    assert table in str(found.policy)
    together = "Together the 3 certified guarantees hold with 95 % confidence;"
    assert texts[0].startswith(together)
    assert "; certified for 3 of 4>" in repr(found.policy)
    report = selective_report(truth, proba, policy=found.policy, subgroups=site)
    written = [line.split() for line in str(report).splitlines()]
    assert all(line.split() in written for line in table.splitlines())
    page = report.to_html()
    assert page.count("defers all") == 1
    for text in (str(report), found.policy.to_python(), found.policy._repr_html_()):
        assert text.count(together) == 1
    assert "<b></td>" not in page


def test_subgroups_without_a_certificate_guarantee_nothing():
    assert re.search(r"F .*0\.6 .*guarantees nothing\n", str(policy_with(BY_SEX)))
    assert "Together" not in str(policy_with(BY_SEX))
    assert repr(BY_SEX) == "<GroupThresholds by sex: 'F' 0.6, 'M' 0.9; no certificate>"
    seven = GroupThresholds("age", dict.fromkeys(range(7), np.inf))
    assert repr(seven).endswith(": 0 inf, 1 inf, 2 inf, 3 inf, 4 inf, 2 more; no certificate>")


def test_answers_may_be_the_subgroups():
    groups = GroupThresholds("predicted_class", {"no": 0.9, "yes": 0.65}, by_answer=True)
    found = policy_with(groups).decide(PROBA)
    assert found["suggestion"].tolist() == ["yes", "yes", "yes", "no"]
    assert found["accepted"].tolist() == [True, True, True, False]
    check_refused("subgroups", lambda: policy_with(groups).decide(PROBA, subgroups=["F"] * 4))
    column = GroupThresholds("predicted_class", {"hi": 0.6, "lo": 0.9})  # a column of that name
    found = policy_with(column).decide(PROBA, subgroups=["hi", "lo", "lo", "hi"])
    assert found["accepted"].tolist() == [True, False, True, False]


def test_several_columns_are_matched_by_name():
    thresholds = {(True, False): 0.6, (False, True): 0.9}
    policy = policy_with(GroupThresholds("a and b", thresholds, columns=("a", "b")))
    frame = pd.DataFrame({"a": [True, False] * 2, "b": [False, True] * 2})
    first = policy.decide(PROBA, subgroups=frame)
    for other in (frame[["b", "a"]], pl.from_pandas(frame[["b", "a"]]), dict(frame[["b", "a"]])):
        assert policy.decide(PROBA, subgroups=other).equals(first)
    check_refused("columns ['a', 'b']", lambda: policy.decide(PROBA, subgroups=frame[["a"]]))


@pytest.mark.parametrize(
    "groups",
    [
        BY_SEX,
        GroupThresholds("site", {1: 0.6, 2: np.inf, 30: -np.inf}, unseen="raise"),
        GroupThresholds("a and b", {(True, "x"): 0.6, (False, "y"): 0.2}, columns=("a", "b")),
        GroupThresholds("predicted_class", {"no": 0.5, "yes": 0.8}, by_answer=True),
    ],
)
def test_a_policy_comes_back_from_json(groups):
    def kinds(thresholds):
        return [[type(x) for x in key] if isinstance(key, tuple) else type(key)
                for key in thresholds]  # fmt: skip

    restored = AbstentionPolicy.from_json(policy_with(groups).to_json()).groups
    assert kinds(restored.thresholds) == kinds(groups.thresholds)
    for name in ("thresholds", "by", "unseen", "by_answer", "columns"):
        assert getattr(restored, name) == getattr(groups, name)


MEMBER = {"group": "F", "threshold": 0.5, "certificate": None}


@pytest.mark.parametrize(("part", "change", "named"), [
    ("groups", {"members": []}, "one subgroup or more"), ("groups", {"members": None}, "damaged"),
    ("groups", {"members": [MEMBER | {"group": None}]}, "subgroups"),
    ("groups", {"members": [MEMBER | {"group": []}]}, "attributes"),
    ("groups", {"members": [MEMBER] * 2}, "more than once"),
    ("groups", {"unseen": "guess"}, "unseen"), ("groups", {"by": None}, "by"),
    ("groups", {"by": None, "members": [MEMBER | {"group": "all"}]}, "by"),
    ("shortlist", {"level": 1.0}, "level"), ("shortlist", {"least_proba": None}, "least_proba"),
    ("shortlist", {"n": 1.5}, "n"), ("shortlist", {"caveats": [1]}, "list of texts"),
    ("shortlist", {"threshold": 0.7}, "shortlist"), ("shortlist", {"more": 1}, "damaged"),
])  # fmt: skip
def test_damaged_parts_of_a_file_are_a_clear_error(policy, part, change, named):
    whole = policy_with(BY_SEX) if part == "groups" else policy
    stored = json.loads(whole.to_json())
    stored[part] |= change
    stored["digest"] = digest_json(stored)  # else it finds every change, whatever it is
    check_refused(named, AbstentionPolicy.from_json, json.dumps(stored))


LABELS = {
    "int": np.array([3, -1, 7]),
    "float": np.array([0.5, 2.0, -1.0]),
    "str": np.array(["b", "aa", "é|"]),
}


@pytest.fixture
def policy():
    return make_policy(LABELS["str"])


def make_policy(classes, threshold=0.8, least=0.2, **rest):
    shortlist = PolicyShortlist(0.95, least, threshold, 100)
    return AbstentionPolicy(classes=classes, threshold=threshold, shortlist=shortlist, **rest)


def test_deferred_rows_get_the_probable_classes(policy, tmp_path):
    decided = policy.decide([[0.2, 0.7, 0.1], [0.9, 0.1, 0.0], [0.3, 0.3, 0.4], [0.1, 0.79, 0.11]])
    assert list(decided.columns)[-1] == "shortlist"
    assert decided["shortlist"].isna().tolist() == [False, True, False, False]
    assert decided["shortlist"][1] is pd.NA
    assert decided["shortlist"].dropna().tolist() == [("aa", "b"), ("é|", "b", "aa"), ("aa",)]
    decided.to_parquet(tmp_path / "decided.parquet")
    back = pd.read_parquet(tmp_path / "decided.parquet")["shortlist"]
    assert list(back[0]) == ["aa", "b"]
    assert back.isna().tolist() == [False, True, False, False]
    assert policy.decide(np.empty((0, 3)))["shortlist"].tolist() == []
    assert "shortlist" not in dataclasses.replace(policy, shortlist=None).decide(np.eye(3))
    all_answered = policy.decide(np.eye(3))["shortlist"]
    assert all_answered.dtype == object
    assert all_answered.isna().all()
    few = make_policy(LABELS["int"], least=0.5).decide([[0.4, 0.3, 0.3], [0.5, 0.5, 0.0]])
    assert few["shortlist"].tolist() == [(), (3, -1)]  # where no class is probable enough


@examples(80)
@given(
    proba_cases(weights=("none",), classes=(3, 3)),
    st.sampled_from(list(LABELS)),
    st.sampled_from([0.0, 0.25, 0.6]),
)
def test_the_column_and_the_file_agree_whatever_the_order_of_classes(case, kind, least):
    policy = make_policy(LABELS[kind], threshold=0.6, least=least)
    decided = policy.decide(case.y_proba)
    classes = LABELS[kind].tolist()
    for row, names, accepted in zip(
        case.y_proba, decided["shortlist"], decided["accepted"], strict=True
    ):
        if accepted:
            assert names is pd.NA
            continue
        assert set(names) == {c for c, p in zip(classes, row, strict=True) if p >= least}
        places = [(-row[classes.index(name)], classes.index(name)) for name in names]
        assert places == sorted(places)
        assert all(type(name) is type(classes[0]) for name in names)
    restored = AbstentionPolicy.from_json(policy.to_json())
    pd.testing.assert_frame_equal(restored.decide(case.y_proba), decided)
    order = np.random.default_rng(0).permutation(3)
    moved = make_policy(LABELS[kind][order], threshold=0.6, least=least)
    again = moved.decide(case.y_proba[:, order])["shortlist"]
    assert again.dropna().map(set).tolist() == decided["shortlist"].dropna().map(set).tolist()
    assert again.isna().tolist() == decided["shortlist"].isna().tolist()


@pytest.mark.parametrize("kind", ["temperature", "isotonic"])
def test_the_gate_lists_the_same_calibrated_classes(rng, kind):
    scores, codes = raw_scores(rng, 5, "predict_proba")
    maps = ClassCalibration.fit(kind, "predict_proba", scores, codes, 5)
    calibrated = maps.predict_proba(scores)
    least = float(np.sort(calibrated, axis=None)[300])  # one class has exactly this probability
    policy = make_policy(np.array(list("abcde")), 0.9, least, calibration=maps, confidence="margin")
    for given_scores, _ in in_all_layouts(scores):
        table, found = policy.decide(given_scores), gate_of(policy).decide(given_scores)
        assert_same(found, table)
        lists = table["shortlist"].tolist()
        assert found["shortlist"].tolist() == [None if x is pd.NA else x for x in lists]
    decided = policy.decide(scores)
    sizes = (calibrated >= least).sum(axis=1)[~decided["accepted"]]
    assert decided["shortlist"].dropna().map(len).tolist() == sizes.tolist()


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.8, np.inf, -np.inf])
@pytest.mark.parametrize("caveats", [(), ("because", "of that")])
def test_a_file_holds_the_shortlist(threshold, caveats):
    shortlist = PolicyShortlist(0.9, 0.1 + 0.2, threshold, 77, caveats)
    policy = AbstentionPolicy(classes=LABELS["int"], threshold=threshold, shortlist=shortlist)
    text = policy.to_json()
    assert AbstentionPolicy.from_json(text).shortlist == shortlist
    check_schema(text)
    guarantees = "GUARANTEES NOTHING for new rows: there is no certificate."
    assert f"{guarantees}\n\n{shortlist}" == gate_of(policy).CERTIFICATE


def test_a_shortlist_is_about_one_threshold_and_three_classes_and_says_if_it_is_exact(policy):
    check_refused("three or more classes", make_policy, np.array(["no", "yes"]))
    check_refused("threshold", lambda: dataclasses.replace(policy, threshold=0.7))
    assert dataclasses.replace(policy, threshold=0.7, shortlist=None).threshold == 0.7
    exact = str(policy.shortlist)
    assert exact.startswith(
        "Shortlist: in 95 of 100 deferred cases the right answer is on the list"
    )
    assert "Exact, from 100 deferred rows" in exact
    assert policy.shortlist.is_exact
    estimate = dataclasses.replace(policy.shortlist, level=0.999, caveats=("it rained",))
    assert not estimate.is_exact
    assert "Shortlist, an estimate from 100 deferred rows: in about 99.9 of 100" in str(estimate)
    assert str(estimate).endswith("Not exact: it rained.")
    truth = np.tile([0, 1, 2], 200)
    fresh = Predictions.from_proba(LABELS["str"][truth], np.eye(3)[truth], labels=LABELS["str"])
    again = dataclasses.replace(policy, certificate=certify(policy, fresh, target=0.02))
    assert str(again).endswith(exact)  # a later certificate leaves the list to the policy
    assert exact in gate_of(again).CERTIFICATE
