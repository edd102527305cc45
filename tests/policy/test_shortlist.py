"""The shortlist of a policy: its column, its files, its words, and what is refused."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skselect import AbstentionPolicy, Predictions, certify
from skselect._lib.files import digest_json
from skselect.calibration._registry import CALIBRATORS
from skselect.calibration._scopes import ClassCalibration
from skselect.policy.shortlist import PolicyShortlist
from tests.brute import examples, proba_cases
from tests.common import check_schema
from tests.policy.test_standalone import assert_same, gate_of, in_all_layouts, raw_scores

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


def test_deferred_rows_get_the_probable_classes(policy):
    decided = policy.decide([[0.2, 0.7, 0.1], [0.9, 0.1, 0.0], [0.3, 0.3, 0.4], [0.1, 0.79, 0.11]])
    assert list(decided.columns)[-1] == "shortlist"
    assert decided["shortlist"].isna().tolist() == [False, True, False, False]
    assert decided["shortlist"][1] is pd.NA
    assert decided["shortlist"].dropna().tolist() == [("aa", "b"), ("é|", "b", "aa"), ("aa",)]
    none = policy.decide(np.empty((0, 3)))
    assert none["shortlist"].tolist() == []
    assert "shortlist" not in dataclasses.replace(policy, shortlist=None).decide(np.eye(3))
    all_answered = policy.decide(np.eye(3))["shortlist"]
    assert all_answered.dtype == object
    assert all_answered.isna().all()


def test_a_list_is_empty_where_no_class_is_probable_enough():
    decided = make_policy(LABELS["int"], least=0.5).decide([[0.4, 0.3, 0.3], [0.5, 0.5, 0.0]])
    assert decided["shortlist"].tolist() == [(), (3, -1)]


@examples(80)
@given(
    proba_cases(weights=("none",), classes=(3, 3)),
    st.sampled_from(list(LABELS)),
    st.sampled_from([0.0, 0.25, 0.6]),
)
def test_the_column_the_file_and_the_gate_agree(case, kind, least):
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
    order = np.random.default_rng(0).permutation(3)  # the classes in another order
    moved = make_policy(LABELS[kind][order], threshold=0.6, least=least)
    again = moved.decide(case.y_proba[:, order])
    assert [x if x is pd.NA else set(x) for x in again["shortlist"]] == [
        x if x is pd.NA else set(x) for x in decided["shortlist"]
    ]


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
def test_the_gate_lists_the_same_calibrated_classes(rng, kind, response):
    scores, codes = raw_scores(rng, 5, response)
    maps = ClassCalibration.fit(kind, response, scores, codes, 5)
    calibrated = maps.predict_proba(scores)
    least = float(np.sort(calibrated, axis=None)[300])  # one class has exactly this probability
    policy = make_policy(
        np.array(list("abcde")), 0.9, least, response=response, calibration=maps,
        confidence="margin",
    )  # fmt: skip
    for given_scores, _ in in_all_layouts(scores):
        table, found = policy.decide(given_scores), gate_of(policy).decide(given_scores)
        assert_same(found, table)
        lists = table["shortlist"].tolist()
        assert found["shortlist"].tolist() == [None if x is pd.NA else x for x in lists]
    deferred = ~policy.decide(scores)["accepted"].to_numpy()
    sizes = policy.decide(scores)["shortlist"].dropna().map(len)
    np.testing.assert_array_equal(sizes, (calibrated[deferred] >= least).sum(axis=1))


def test_lists_go_to_parquet_and_back(policy, tmp_path):
    decided = policy.decide([[0.2, 0.7, 0.1], [0.9, 0.1, 0.0]])
    decided.to_parquet(tmp_path / "decided.parquet")
    back = pd.read_parquet(tmp_path / "decided.parquet")["shortlist"]
    assert list(back[0]) == ["aa", "b"]
    assert back.isna().tolist() == [False, True]


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.8, np.inf, -np.inf])
@pytest.mark.parametrize("caveats", [(), ("because", "of that")])
def test_a_file_holds_the_shortlist(threshold, caveats):
    shortlist = PolicyShortlist(0.9, 0.1 + 0.2, threshold, 77, caveats)
    policy = AbstentionPolicy(classes=LABELS["int"], threshold=threshold, shortlist=shortlist)
    text = policy.to_json()
    assert AbstentionPolicy.from_json(text).shortlist == shortlist
    check_schema(text)
    guarantees = "Guarantees NOTHING for new rows: there is no certificate."
    assert f"{guarantees}\n\n{shortlist}" == gate_of(policy).CERTIFICATE


@pytest.mark.parametrize(
    "change",
    [
        {"level": 1.0}, {"level": None}, {"least_proba": -0.1}, {"least_proba": None}, {"n": 0},
        {"n": 1.5}, {"caveats": "text"}, {"caveats": [1]}, {"threshold": 0.7}, {"more": 1},
    ],
)  # fmt: skip
def test_a_damaged_shortlist_is_refused(policy, change):
    stored = policy.to_dict()
    stored["shortlist"] |= change
    stored["digest"] = digest_json(stored)
    with pytest.raises(ValueError, match="The policy is damaged or was changed"):
        AbstentionPolicy.from_json(json.dumps(stored))


# What is refused, what is said ------------------------------------------------------------------


def test_two_classes_are_refused():
    with pytest.raises(ValueError, match="three or more classes, and there are 2: of two classes"):
        make_policy(np.array(["no", "yes"]))


def test_a_shortlist_is_about_one_threshold(policy):
    with pytest.raises(ValueError, match=r"threshold=0\.7, but the shortlist is about the cases"):
        dataclasses.replace(policy, threshold=0.7)
    assert dataclasses.replace(policy, threshold=0.7, shortlist=None).threshold == 0.7


def test_the_words_say_exact_or_estimate(policy):
    says = "in 95 of 100 deferred cases the right answer is on the list"
    exact = str(policy.shortlist)
    assert exact.startswith(f"Shortlist: {says}")
    assert "Exact, from 100 deferred rows" in exact
    assert exact in str(policy)
    assert policy.shortlist.is_exact
    estimate = dataclasses.replace(policy.shortlist, level=0.999, caveats=("it rained",))
    assert not estimate.is_exact
    assert "Shortlist, an estimate from 100 deferred rows: in about 99.9 of 100" in str(estimate)
    assert str(estimate).endswith("Not exact: it rained.")


def test_a_later_certificate_leaves_the_list_to_the_policy(policy):
    truth = np.tile([0, 1, 2], 200)
    fresh = Predictions.from_proba(LABELS["str"][truth], np.eye(3)[truth], labels=LABELS["str"])
    again = dataclasses.replace(policy, certificate=certify(policy, fresh, target=0.02))
    assert str(again).endswith(str(policy.shortlist))
    assert str(policy.shortlist) in gate_of(again).CERTIFICATE
