"""Which rows belong to which subgroup, and what a policy does with them."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skselect import AbstentionPolicy, Predictions, select_threshold, selective_report
from skselect._lib.files import digest_json
from skselect.policy.subgroups import GroupThresholds, subgroup_codes
from tests.common import run_python


def policy(groups):
    return AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=np.inf, groups=groups)


BY_SEX = GroupThresholds("sex", {"F": 0.6, "M": 0.9})
PROBA = np.array([[0.3, 0.7], [0.3, 0.7], [0.05, 0.95], [0.5, 0.5]])


@pytest.mark.parametrize(
    "values",
    [
        ["M", "F", None, "M"],
        np.array(["M", "F", None, "M"], dtype=object),
        pd.Series(["M", "F", None, "M"], index=[9, 8, 7, 6]),
        pd.Series(["M", "F", None, "M"], dtype="category"),
        pd.Series(["M", "F", None, "M"], dtype="string"),
        pl.Series(["M", "F", None, "M"]),
        pd.DataFrame({"sex": ["M", "F", None, "M"]}),
    ],
)
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


@pytest.mark.parametrize(
    "value",
    ["F", "", "ä", "F\0", 3, 2**70, True, 2.5, None, np.nan, np.int8(3), np.str_("F"), pd.NA],
)
def test_a_single_row_has_the_subgroup_that_it_has_in_a_table(value):
    expected = subgroup_codes(pd.DataFrame({"a": [value]}, dtype=object), 1)
    column = np.array([value], dtype=object)
    for alone in ([value], column, {"a": [value]}, pd.Series(column), (value,)):
        codes, keys = subgroup_codes(alone, 1)
        assert codes.tolist() == expected[0].tolist()
        assert keys == expected[1]
        assert [type(key) for key in keys] == [type(key) for key in expected[1]]
    pair = pd.DataFrame({"a": [value], "b": ["x"]}, dtype=object)
    codes, keys = subgroup_codes({"a": [value], "b": np.array(["x"])}, 1)
    assert (codes.tolist(), keys) == (
        subgroup_codes(pair, 1)[0].tolist(),
        subgroup_codes(pair, 1)[1],
    )


@pytest.mark.parametrize(
    "odd", [["F", "M"], [], np.array([["F"]]), np.array("F"), "F", {}, [["F"]]]
)
def test_a_single_row_needs_a_single_subgroup(odd):
    with pytest.raises((ValueError, TypeError)):
        policy(BY_SEX).decide(PROBA[:1], subgroups=odd)


def test_each_row_is_held_to_the_threshold_of_its_subgroup():
    found = policy(BY_SEX).decide(PROBA, subgroups=["F", "M", "M", "F"])
    assert found["threshold"].tolist() == [0.6, 0.9, 0.9, 0.6]
    assert found["accepted"].tolist() == [True, False, True, False]
    accepted = policy(BY_SEX).accepts([0.7, 0.7], subgroups=["F", "M"])
    assert accepted.tolist() == [True, False]


def test_unseen_and_missing_subgroups_are_deferred_with_a_warning_or_refused():
    with pytest.warns(UserWarning, match=r"2 rows belong to no sex that has a threshold \(\['X'\]"):
        found = policy(BY_SEX).decide(PROBA, subgroups=["F", "X", None, "F"])
    assert found["accepted"].tolist() == [True, False, False, False]
    assert found["threshold"].tolist() == [0.6, np.inf, np.inf, 0.6]
    strict = GroupThresholds("sex", BY_SEX.thresholds, unseen="raise")
    with pytest.raises(ValueError, match="1 rows belong to no sex"):
        policy(strict).decide(PROBA, subgroups=["F", "X", "M", "F"])


def test_missing_or_superfluous_subgroups_are_errors():
    with pytest.raises(ValueError, match="subgroups is missing: this policy has one threshold per"):
        policy(BY_SEX).decide(PROBA)
    with pytest.raises(ValueError, match="subgroups has 1 rows, but the table"):
        policy(BY_SEX).decide(PROBA, subgroups=["F"])
    plain = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.6)
    with pytest.raises(ValueError, match="subgroups: this policy has one threshold for all rows"):
        plain.decide(PROBA, subgroups=["F", "M", "M", "F"])


def test_a_table_says_what_is_guaranteed_of_each_and_one_text_what_is_alike():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.1, 0.1], 4000)
    truth = (rng.random(4000) < proba[:, 1]).astype(int)
    site = np.repeat(["east", "west", "tiny", "<b>"], [1900, 1500, 20, 580])
    rows = Predictions.from_proba(truth, proba)
    groups = pd.Series(site, name="site")
    with pytest.warns(UserWarning, match="site 'tiny': No threshold meets"):
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
    assert texts[-1].startswith("site 'tiny'\nESTIMATE, NOT CERTIFIED: no threshold")
    alike = next(text for text in texts if f"site {certified[0]!r}" in text)
    assert alike.splitlines()[1] == "CERTIFIED"
    assert alike.endswith(f"for: {', '.join(certified[1:])}.")
    assert table in str(found.policy)
    report = selective_report(truth, proba, policy=found.policy, subgroups=site)
    written = [line.split() for line in str(report).splitlines()]
    assert all(line.split() in written for line in table.splitlines())
    page = report.to_html()
    assert page.count("defers all") == 1
    assert "<b></td>" not in page


def test_subgroups_without_a_certificate_guarantee_nothing():
    assert re.search(r"F .*0\.6 .*guarantees nothing\n", str(policy(BY_SEX)))


def test_answers_may_be_the_subgroups():
    groups = GroupThresholds("predicted_class", {"no": 0.9, "yes": 0.65}, by_answer=True)
    found = policy(groups).decide(PROBA)
    assert found["suggestion"].tolist() == ["yes", "yes", "yes", "no"]
    assert found["accepted"].tolist() == [True, True, True, False]
    with pytest.raises(ValueError, match="the answers are the subgroups"):
        policy(groups).decide(PROBA, subgroups=["F"] * 4)


def test_a_column_may_be_called_predicted_class():
    groups = GroupThresholds("predicted_class", {"hi": 0.6, "lo": 0.9})
    found = policy(groups).decide(PROBA, subgroups=["hi", "lo", "lo", "hi"])
    assert found["accepted"].tolist() == [True, False, True, False]


def test_several_columns_are_matched_by_name():
    thresholds = {(True, False): 0.6, (False, True): 0.9}
    groups = GroupThresholds("a and b", thresholds, columns=("a", "b"))
    frame = pd.DataFrame({"a": [True, False] * 2, "b": [False, True] * 2})
    first = policy(groups).decide(PROBA, subgroups=frame)
    for other in (frame[["b", "a"]], pl.from_pandas(frame[["b", "a"]]), dict(frame[["b", "a"]])):
        assert policy(groups).decide(PROBA, subgroups=other).equals(first)
    with pytest.raises(
        ValueError, match=r"subgroups must be a DataFrame with the columns \['a', 'b'\]"
    ):
        policy(groups).decide(PROBA, subgroups=frame[["a"]])


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
    stored = policy(groups)
    restored = AbstentionPolicy.from_json(stored.to_json()).groups
    assert restored.thresholds == groups.thresholds
    assert [
        list(map(type, g)) if isinstance(g, tuple) else type(g) for g in restored.thresholds
    ] == [list(map(type, g)) if isinstance(g, tuple) else type(g) for g in groups.thresholds]
    assert (restored.by, restored.unseen, restored.by_answer, restored.columns) == (
        groups.by, groups.unseen, groups.by_answer, groups.columns,
    )  # fmt: skip


def test_a_fresh_process_decides_the_same_per_subgroup(tmp_path, rng):
    confidence = rng.uniform(0.5, 1, 300)
    y_proba = np.column_stack([1 - confidence, confidence])
    sex = rng.choice(["F", "M"], 300)
    policy(BY_SEX).to_json(tmp_path / "policy.json")
    np.savez(tmp_path / "rows.npz", y_proba=y_proba, sex=sex)
    code = (
        "import numpy as np, sys; from skselect import AbstentionPolicy;"
        "rows = np.load(sys.argv[1] + '/rows.npz');"
        "policy = AbstentionPolicy.from_json(sys.argv[1] + '/policy.json');"
        "found = policy.decide(rows['y_proba'], subgroups=rows['sex']);"
        "print(found.to_json())"
    )
    done = run_python(code, tmp_path, folder=tmp_path)
    assert json.loads(done.stdout) == json.loads(
        policy(BY_SEX).decide(y_proba, subgroups=sex).to_json()
    )


MEMBER = {"group": "F", "threshold": 0.5, "certificate": None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"members": []}, "thresholds is empty"),
        ({"unseen": "guess"}, "unseen must be one of"),
        ({"by": None}, "by must be text"),
        (
            {"members": [{"group": None, "threshold": 0.5, "certificate": None}]},
            "subgroups must be",
        ),
        ({"members": [{"group": [], "threshold": 0.5, "certificate": None}]}, "as many attributes"),
        ({"members": [{"group": "F", "threshold": "x", "certificate": None}]}, "threshold must be"),
        (
            {"members": [{"group": "F", "threshold": 0.5, "certificate": None}] * 2},
            "more than once",
        ),
        ({"members": None}, "The policy is damaged"),
    ],
)
def test_damaged_groups_are_a_clear_error(change, message):
    stored = json.loads(policy(BY_SEX).to_json())
    stored["groups"] |= change
    stored["digest"] = digest_json(stored)  # else it finds every change, whatever it is
    with pytest.raises(ValueError, match=message):
        AbstentionPolicy.from_json(json.dumps(stored))


def test_subgroups_that_no_file_can_hold_are_refused():
    for values in (pd.cut([1, 2], [0, 1, 2]), [1.0, np.inf], pd.to_datetime(["2020", "2021"])):
        with pytest.raises(ValueError, match="subgroups must be strings, finite numbers"):
            subgroup_codes(pd.Series(values), 2)
