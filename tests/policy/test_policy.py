"""A policy decides the same rows in memory, from JSON, and in a fresh process."""

import dataclasses
import hashlib
import itertools
import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from fastjsonschema import JsonSchemaException
from scipy import stats
from sklearn.naive_bayes import GaussianNB

import skselect as sk
from skselect._lib.files import digest_json
from skselect.calibration._calibrators import CALIBRATORS
from skselect.calibration._scopes import SCOPES, ClassCalibration
from skselect.policy import policy as policy_module
from skselect.policy.policy import (
    VERSION,
    External,
    apply_policy,
    count_at_quantiles,
    label_decisions,
    warn_if_far,
)
from skselect.policy.subgroups import GroupThresholds, PolicyShortlist
from skselect.predictions.decisions import DecisionRule
from tests.common import check_schema, mostly_slow
from tests.refusals import check_refused


@pytest.fixture
def policy():
    return sk.AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.8)


def stored_fields(policy):
    """Return what the file of a policy holds."""
    return json.loads(policy.to_json())


def signed(stored):
    """Return the text of a file whose digest agrees, whatever was changed in it."""
    return json.dumps(stored | {"digest": digest_json(stored)})


def put(stored, path, value):
    """Change one value of a file, by its path; return the whole."""
    place = stored
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return stored


@pytest.mark.parametrize("confidence", ["margin", "entropy", "max_proba"])
def test_a_decision_claims_the_probability_of_its_answer_whatever_ranks_it(confidence, rng):
    proba = rng.dirichlet(np.ones(3), 20)
    ranks = sk.AbstentionPolicy(np.arange(3), 0.2, confidence)
    assert apply_policy(ranks, proba).claim.tolist() == proba.max(axis=1).tolist()


def test_decide_marks_what_is_not_sure_enough(policy):
    table = policy.decide([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]])
    assert table.columns.tolist() == ["label", "suggestion", "accepted", "confidence", "threshold"]
    assert table["accepted"].tolist() == [True, False, True]  # a tie with the threshold is accepted
    assert table["label"].isna().tolist() == [False, True, False]
    assert table["suggestion"].tolist() == ["no", "yes", "yes"]
    decisions = apply_policy(policy, np.array([[0.9, 0.1], [0.3, 0.7]]))
    with pytest.raises(ValueError, match=r"1 of 2 rows are not accepted.* no abstain_label"):
        label_decisions(policy, decisions)
    assert label_decisions(policy, apply_policy(policy, np.array([[0.9, 0.1]]))).tolist() == ["no"]
    asking = dataclasses.replace(policy, abstain_label="ask")
    assert label_decisions(asking, decisions).tolist()[1] == "ask"
    for second in ([0.1, 0.95, 0.2], [0.1], [[0.1], [0.95]], [[0.1]], np.float32([[0.1], [0.95]])):
        expected = ["no" if p < 0.5 else "yes" for p in np.ravel(second)]  # one column: class 2
        assert policy.decide(second)["label"].tolist() == expected


def test_decisions_join_the_table_that_they_are_about(policy):
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=["c", "a", "b"])
    raw = np.array([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]])
    joined = table.assign(said=policy.decide(raw, index=table.index)["suggestion"])
    assert joined["said"].tolist() == ["no", "yes", "yes"]
    frame = pd.DataFrame(raw, columns=["no", "yes"], index=[7, 8, 9])
    two_levels = pd.MultiIndex.from_product([["s"], [1, 2, 3]])
    for rows, index, expected in [
        (raw, None, range(3)), (frame, None, [7, 8, 9]), (frame, ["u", "v", "w"], ["u", "v", "w"]),
        (raw, two_levels, two_levels), (frame[["yes", "no"]], None, [7, 8, 9]),
    ]:  # fmt: skip
        decided = policy.decide(rows, index=index)
        assert decided.index.tolist() == list(expected)
        assert decided["suggestion"].tolist() == ["no", "yes", "yes"]
    assert policy.decide(raw[:0], index=table.index[:0]).empty
    for wrong in (table.index[:2], table, "abc", 3, [[1, 2, 3]]):
        check_refused("index", lambda w=wrong: policy.decide(raw, index=w))
    own = dataclasses.replace(policy, confidence=lambda p: p.max(axis=1) if len(p) else p[0])
    assert own.decide([]).shape == (0, 5)  # no rows need no confidence of your own


@pytest.mark.parametrize(
    "pair",
    [[0.9, 0.1], [0.8999, 0.1], [0.9, 0.8], np.float32([0.9, 0.1]), pd.Series([0.9, 0.1]),
     np.array([0.9, 0.1], dtype=object)],
)  # fmt: skip
def test_two_bare_numbers_are_neither_one_row_nor_two(policy, pair):
    gate = {}
    exec(policy.to_python(), gate)
    first, second = map(str, pair)
    one_row, two_rows = re.escape(f"[[{first}, {second}]]"), re.escape(f"[[{first}], [{second}]].")
    for decide, message in [
        (policy.decide, f"One row: pass {one_row}; two rows: .* {two_rows}"),
        (gate["decide"], r"got the shape \(2,\) .* pass one case as \[\[\.\.\.\]\]"),
    ]:
        with pytest.raises(ValueError, match=message):
            decide(pair)


@pytest.mark.parametrize("kind", [None, "temperature"])
def test_a_frame_and_an_array_give_the_same_bits(rng, kind):
    proba, codes = rng.dirichlet(np.ones(12), 400), rng.integers(0, 12, 400)
    maps = kind and ClassCalibration.fit(kind, "predict_proba", proba, codes, 12)
    policy = sk.AbstentionPolicy(np.arange(12), 0.4, confidence="entropy", calibration=maps)
    frame = pd.DataFrame({k: proba[:, k] for k in range(12)})  # lies column by column in memory
    pd.testing.assert_frame_equal(policy.decide(frame), policy.decide(proba), check_exact=True)


@pytest.mark.parametrize("threshold", [0.0, 0.123456789012345678, 1.0, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("classes", "dtype", "abstain"),
    [([1, 2], "Int64", -1), ([False, True], "boolean", None), ([0.5, 1.5], "Float64", -1.0),
     (["a", "b"], "string", "ask")],
)  # fmt: skip
def test_labels_are_nullable_and_survive_json(classes, dtype, abstain, threshold):
    policy = sk.AbstentionPolicy(np.array(classes), threshold=threshold, abstain_label=abstain)
    label = policy.decide([[0.9, 0.1], [0.4, 0.6]])["label"]
    assert str(label.dtype) == dtype
    accepted = [x for x, c in zip(classes, (0.9, 0.6), strict=True) if c >= threshold]
    assert label.dropna().tolist() == accepted
    restored = sk.AbstentionPolicy.from_json(policy.to_json())
    assert (restored.threshold, restored.abstain_label) == (threshold, abstain)
    assert restored.classes.dtype == policy.classes.dtype


def test_published_schema_describes_the_file(rng):
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    for calibration in CALIBRATORS:
        base = sk.SelectiveClassifier(GaussianNB(), calibration=calibration, cv=2)
        tuner = sk.ThresholdTuner(base, objective="coverage", target=0.5, cv=2).fit(X, y)
        check_schema(tuner.policy_.to_json())
    costly = sk.AbstentionPolicy(
        classes=np.array(["no", "yes"]), threshold=np.inf, confidence="expected_cost",
        rule=DecisionRule("min_cost", np.array([[0.0, 1.0], [9.0, 0.0]])),
        groups=GroupThresholds("a and b", {(True, 1): 0.6, (False, 2): np.inf}, columns=("a", "b")),
    )  # fmt: skip
    check_schema(costly.to_json())
    for key, wrong in [("threshold", "high"), ("version", VERSION + 1)]:
        with pytest.raises(JsonSchemaException):
            check_schema(json.dumps(json.loads(costly.to_json()) | {key: wrong}))


def test_an_own_confidence_is_saved_only_on_demand(policy):
    own = dataclasses.replace(policy, confidence=lambda p: p[:, 0])
    check_refused("allow_external", own.to_json)
    restored = sk.AbstentionPolicy.from_json(own.to_json(allow_external=True))
    check_refused("dataclasses.replace", restored.decide, [[0.9, 0.1]])
    again = dataclasses.replace(restored, confidence=lambda p: p[:, 0])
    assert again.decide([[0.9, 0.1]])["accepted"].tolist() == [True]


@pytest.mark.parametrize(("argument", "value"), [
    ("confidence", "margn"), ("confidence", "expected_cost"), ("threshold", np.nan),
    ("classes", np.array(["a", "a"])), ("coverage", 2.0), ("n", -1), ("abstain_label", "a"),
    ("response", "decision_function"),
])  # fmt: skip
def test_impossible_policies_are_refused_at_once(argument, value):
    given = {"classes": np.array(["a", "b"]), "threshold": 0.5, argument: value}
    check_refused(argument, lambda: sk.AbstentionPolicy(**given))


def test_accepts_compares_as_float64_and_subgroups_wait_for_their_room(policy):
    assert policy.accepts(np.array([0.8], dtype=np.float32)).tolist() == [True]  # 0.800000012
    assert policy.accepts([0.7999999999]).tolist() == [False]
    for call in (lambda: policy.decide([[0.5, 0.5]], subgroups=["a"]),
                 lambda: policy.accepts([0.5], subgroups=["a"])):  # fmt: skip
        check_refused("subgroups", call)


# Damaged calibrations ---------------------------------------------------------------------------


def stored_policy(kind, n_classes, scope):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(n_classes), 100)
    model = sk.SelectiveClassifier(
        sk.PrecomputedClassifier(np.arange(n_classes)), calibration=kind, calibration_scope=scope
    ).fit(P, rng.integers(0, n_classes, 100))
    return stored_fields(model.policy_)


NAN, INCREASING = float("nan"), {"knots": [0.1, 0.9]}
#: What a calibration may hold, by its kind, number of classes and scope; a text is left out.
DAMAGES = {
    ("temperature", 3, "probabilities"): [
        {"temperature": -1.0}, {"temperature": 0.0}, {"prior": [0.5, 0.5]}, {"prior": 0.5}
    ],
    ("temperature", 2, "confidence"): [{"prior": [0.5, 0.5]}],
    ("temperature", 2, "probabilities"): [{"share": 2.0}],
    ("platt", 2, "probabilities"): [{"slope": -3.0}],
    ("platt", 3, "probabilities"): [
        {"slope": None}, {"slope": "nan"}, "slope", {"maps": []}, {"response": "foo"}
    ],
    ("platt", 2, "confidence"): [{"intercept": NAN}],
    ("beta", 3, "probabilities"): [{"a": -3.0}],
    ("isotonic", 2, "probabilities"): [
        {"knots": [0.9, 0.1], "values": [0.0, 1.0]}, {"knots": [], "values": []}
    ],
    ("isotonic", 2, "confidence"): [INCREASING | {"values": [0.5]}],
    ("smooth_isotonic", 2, "probabilities"): [
        INCREASING | {"values": [0.8, 0.2]}, INCREASING | {"values": [0.8, 3.0]}
    ],
    ("venn_abers", 2, "confidence"): [{"lower": [0.1]}],
}  # fmt: skip
for _scope in SCOPES:
    DAMAGES["platt", 2, _scope] += [{"offset": offset} for offset in (NAN, -1, 0, "much")]


@pytest.mark.parametrize(
    ("how", "damage"), [(how, damage) for how, all_of in DAMAGES.items() for damage in all_of]
)
def test_a_damaged_map_is_not_loaded(how, damage):
    stored = stored_policy(*how)
    sk.AbstentionPolicy.from_json(json.dumps(stored))
    calibration = stored["calibration"]
    if isinstance(damage, str):
        del calibration["maps"][0][damage]
    else:
        whole = {"offset", "maps", "response"} & set(damage)
        (calibration if whole else calibration["maps"][0]).update(damage)
    with pytest.raises(ValueError, match=r"The policy is damaged|NaN is not a finite number"):
        sk.AbstentionPolicy.from_json(signed(stored))


@pytest.mark.parametrize(("change", "named"), [
    ({"decision": "dice"}, "decision"), ({"decision": "min_cost"}, "cost_matrix"),
    ({"cost_matrix": [[0, 1]]}, "cost_matrix"),
    ({"cost_matrix": [[0, -1], [1, 0]]}, "cost_matrix"),
    ({"confidence": "expected_cost"}, "cost_matrix"),
    ({"classes": ["low", "high"], "classes_dtype": "<U1"}, "'<U1'"),
    *(({"classes_dtype": x}, repr(x))
      for x in ("<U400000000", "(100000000,)<U2", "<U2,<i4", "<M8[s]", "|O")),
    ({"classes": [0, 1], "classes_dtype": "<f16"}, "'<f16'"),
    ({"classes": ["\ud800", "b"], "classes_dtype": "<U1"}, "half a character"),
    *(({name: value}, "") for name, value in [
        ("threshold", "high"), ("confidence", "hope"), ("response", "predict"),
        ("calibration", {"kind": "magic", "maps": [], "response": "x"}), ("classes", None),
        ("metadata", 3), ("n", "x"), ("abstain_label", "lo"),
    ]),
    *(({"version": x}, repr(x)) for x in (VERSION - 1, 0, True, 6.0)),
])  # fmt: skip
def test_damaged_fields_are_a_clear_error(change, named):
    policy = sk.AbstentionPolicy(classes=np.array(["lo", "hi"]), threshold=0.8)
    damaged = "This policy has the" if "version" in change else "The policy is damaged"
    with pytest.raises(ValueError, match=f"{damaged} .*{re.escape(named)}"):
        sk.AbstentionPolicy.from_json(signed(stored_fields(policy) | change))


# Thresholds that nobody certified, files that were changed --------------------------------------


@pytest.fixture(scope="module")
def certified():
    """Return policies with a certificate: for all rows, for two sites."""
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1.0, 2000)
    wrong = rng.random(2000) < 0.4 * (1.0 - sure)
    rows = sk.Predictions.from_proba(wrong.astype(int), np.column_stack([sure, 1.0 - sure]))
    sites = np.repeat(["A", "B"], 1000)
    return {
        name: sk.select_threshold(rows, objective="risk", target=0.1, subgroups=subgroups).policy
        for name, subgroups in {"all": None, "sites": sites}.items()
    }


def test_another_threshold_is_not_certified(certified):
    policy, groups = certified["all"], certified["sites"].groups
    assert policy.certificate.is_certified
    check_refused("threshold", lambda: dataclasses.replace(policy, threshold=0.2))
    bolder = dataclasses.replace(policy, threshold=0.2, certificate=None)
    assert sk.AbstentionPolicy.from_json(bolder.to_json()).threshold == 0.2
    assert "GUARANTEES NOTHING" in bolder.to_python()
    noted = dataclasses.replace(policy, metadata={"ticket": 7})
    assert noted.certificate == policy.certificate
    assert all(certificate.is_certified for certificate in groups.certificates.values())
    bolder = {**groups.thresholds, "B": 0.2}
    with pytest.raises(ValueError, match=r"subgroup 'B' has the threshold 0\.2, but .*'B': None"):
        dataclasses.replace(groups, thresholds=bolder)
    open_about_it = {**groups.certificates, "B": None}
    groups = dataclasses.replace(groups, thresholds=bolder, certificates=open_about_it)
    assert dataclasses.replace(certified["sites"], groups=groups).groups.thresholds["B"] == 0.2
    with pytest.raises(ValueError, match="a threshold per subgroup, but the certificate is about"):
        dataclasses.replace(policy, groups=groups)
    with pytest.raises(ValueError, match="subgroup 'B' has the threshold inf, but"):
        GroupThresholds("site", {"A": np.inf}, {"B": policy.certificate})


#: What an editor may do to a file: the path of a value, and its new value.
EDITS = [
    ("all", ["threshold"], 0.2),
    ("all", ["certificate", "threshold"], 0.99),
    ("all", ["certificate", "target"], 0.0001),
    ("all", ["certificate"], None),
    ("all", ["classes"], [1, 0]),
    ("all", ["metadata", "ticket"], 7),
    ("all", ["digest"], None),
    ("sites", ["groups", "members", 0, "threshold"], 0.2),
    ("sites", ["groups", "members", 1, "group"], "C"),
]


@pytest.mark.parametrize(("name", "path", "value"), EDITS)
def test_an_edited_file_is_refused(certified, name, path, value):
    """Also one without its digest: else the classes could be swapped below a guarantee."""
    edited = put(json.loads(certified[name].to_json()), path, value)
    with pytest.raises(ValueError, match=r"its digest does not match.*dataclasses\.replace"):
        sk.AbstentionPolicy.from_json(json.dumps(edited))
    del edited["digest"]
    check_refused("digest is missing", sk.AbstentionPolicy.from_json, json.dumps(edited))


#: Where a key may stand that nobody knows.
OBJECTS = [
    ("all", []), ("all", ["certificate"]), ("sites", ["groups"]),
    ("sites", ["groups", "members", 0]), ("sites", ["groups", "members", 0, "certificate"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "path"), OBJECTS)
def test_keys_that_nobody_knows_are_refused(certified, name, path):
    """Also where the digest is right: what a reader sees must be what counts."""
    stored = json.loads(certified[name].to_json())
    del stored["digest"]
    edited = put(stored, [*path, "note"], 1)
    check_refused("note", sk.AbstentionPolicy.from_json, signed(edited))


def test_what_a_file_may_hold_is_what_it_holds(certified):
    for policy in certified.values():
        abstaining = dataclasses.replace(policy, abstain_answers=["unsure"])
        assert set(json.loads(abstaining.to_json())) == policy_module._KEYS


@pytest.mark.parametrize(("name", "key"), [
    ("all", "threshold"), ("all", "exact"), ("sites", "group"), ("sites", "certificate"),
])  # fmt: skip
def test_a_key_that_stands_twice_is_refused(certified, name, key):
    """Python takes the last, a person the first; the digest is right for the last."""
    text = certified[name].to_json()
    twice = text.replace(f'"{key}":', f'"{key}": 0.0, "{key}":', 1)
    message = check_refused(key, sk.AbstentionPolicy.from_json, twice)
    assert "stands twice" in message


def test_metadata_whose_keys_are_one_in_json_are_not_saved(certified):
    policy = dataclasses.replace(certified["all"], metadata={1: "a", "1": "b"})
    assert "stands twice" in check_refused("metadata", policy.to_json)


@pytest.mark.parametrize("name", ["all", "sites"])
def test_the_layout_of_a_file_does_not_matter(certified, name, tmp_path):
    notes = {"1.0": 1.0, "ü": [0.1, 1e22, -0.0, {"b": 1e-300, "a": 2**70}], "": None, "t": (1, 2),
             10: 1, 9: 2}  # fmt: skip
    policy = dataclasses.replace(certified[name], metadata=notes)
    stored = json.loads(policy.to_json())
    texts = [
        json.dumps(stored),
        json.dumps(stored, sort_keys=True, ensure_ascii=False, separators=(",", ":")),
        json.dumps(dict(reversed(stored.items())), indent=7),
        json.dumps(stored).replace("1.0,", "1,").replace("1e+22", "1" + 22 * "0"),
    ]
    for text in texts:
        assert json.loads(sk.AbstentionPolicy.from_json(text).to_json()) == stored
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"):
        (tmp_path / "policy.json").write_bytes(texts[1].encode(encoding))
        loaded = sk.AbstentionPolicy.from_json(tmp_path / "policy.json")
        assert loaded.metadata["ü"] == notes["ü"]
    assert sk.AbstentionPolicy.from_json("\ufeff" + texts[0]).metadata["t"] == [1, 2]


def test_the_digest_is_what_the_schema_says(certified):
    stored = json.loads(certified["all"].to_json())
    digest = stored.pop("digest")

    def whole(value):
        if isinstance(value, dict):
            return {key: whole(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [whole(inner) for inner in value]
        return int(value) if isinstance(value, float) and value == int(value) else value

    text = json.dumps(whole(stored), sort_keys=True, separators=(",", ":"))
    assert digest == hashlib.sha256(text.encode("ascii")).hexdigest()


@pytest.mark.parametrize(("path", "value"), [
    ("coverage", 7), ("n", -3), ("confidence_quantiles", []),
    ("confidence_quantiles 0.5", "half"), ("metadata", []), ("created", 5),
    ("fingerprints", "abc"), ("fingerprints data", 3), ("threshold", 0.2),
    ("threshold", True), ("certificate threshold", 0.99), ("certificate risk", "<b>"),
    ("certificate loss", "none"), ("certificate target", 1.5), ("certificate cases", ["x"]),
])  # fmt: skip
def test_a_file_is_checked_field_by_field(certified, path, value):
    stored = put(stored_fields(certified["all"]), path.split(), value)
    named = "|".join([*path.split(), "its values do not fit", "a list of texts"])
    with pytest.raises(ValueError, match=f"The policy is damaged .*({named})"):
        sk.AbstentionPolicy.from_json(signed(stored))


HEAD = '{"schema": "skselect.policy", "version": '


@pytest.mark.parametrize(("text", "words"), [
    ('{"a":' * 100_000 + "1" + "}" * 100_000, "damaged JSON"), ("[" * 100_000, "damaged JSON"),
    ("5", "schema"), ('"x"', "schema"), (b"\xff\xfe{", "damaged JSON"), (b"", "damaged JSON"),
    ('{"schema": "something else"}', "schema"), (f"{HEAD}1", "damaged JSON"),
    (f"{HEAD}99}}", "update skselect"), (f"{HEAD}1}}", "never released"),
    (f'{HEAD}"6"}}', "'6'"), (f"{HEAD}6}}", "policy is damaged"),
    (f'{HEAD}6, "x": {"[" * 900 + "]" * 900}}}', "nested more than 100 deep"),
    *((f'{{"threshold": {x}}}', f"damaged JSON: {x} is not a finite number")
      for x in ("1e400", "-1e400", "Infinity", "NaN")),
], ids=lambda x: str(x)[:40])  # fmt: skip
def test_no_file_ends_in_a_traceback(tmp_path, text, words):
    data = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "policy.json").write_bytes(data)
    check_refused(words, sk.AbstentionPolicy.from_json, tmp_path / "policy.json")


def test_what_would_not_load_is_not_saved():
    notes: dict = {}
    for _ in range(900):
        notes = {"a": notes}
    policy = sk.AbstentionPolicy(np.array(["no", "yes"]), 0.8, metadata=notes)
    for save in (policy.to_json, policy.to_python):
        check_refused("nested more than 100 deep", save)
    wide = sk.AbstentionPolicy(np.array(["no", "yes", "perhaps"])[:2], 0.8)
    assert stored_fields(wide)["classes_dtype"] == "<U3"
    assert sk.AbstentionPolicy.from_json(wide.to_json()).classes.tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("no_such_file.json", "no_such_file.json"),
        ("x" * 5000, "path_or_text"),
        ("", "path_or_text"),
    ],
    ids=["absent", "long", "empty"],
)
def test_a_file_that_is_not_there_is_named(text, named):
    check_refused(named, sk.AbstentionPolicy.from_json, text)


def places(stored):
    """Return every container with each of its keys."""
    keys = stored if isinstance(stored, dict) else range(len(stored))
    found = [(stored, key) for key in keys]
    for key in keys:
        if isinstance(stored[key], dict | list):
            found += places(stored[key])
    return found


ODD = [None, True, -1, 0, 7, 0.5, 10**400, -(10**400), 1e308, "", "<b>", "nan", "-inf", [], [[]],
       [0, 1], {}, {"a": 1}, ["a", None]]  # fmt: skip


@pytest.mark.parametrize("step", mostly_slow([3, 1]))  # of three values of ODD one, or all
@pytest.mark.parametrize("name", ["all", "sites", "calibrated", "costly"])
def test_any_wrong_value_is_refused_or_works(certified, name, step):
    costly = sk.AbstentionPolicy(
        classes=np.array(["no", "yes"]), threshold=0.5, confidence="expected_cost",
        rule=DecisionRule("min_cost", np.array([[0.0, 1.0], [9.0, 0.0]])), abstain_label="?",
    )  # fmt: skip
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 90)
    maps = ClassCalibration.fit("platt", "predict_proba", proba, np.arange(90) % 3, 3)
    calibrated = sk.AbstentionPolicy(classes=np.arange(3), threshold=0.5, calibration=maps)
    policies = {**certified, "costly": costly, "calibrated": calibrated}
    stored = stored_fields(policies[name])
    del stored["digest"]
    text = json.dumps(stored)
    for (place, key), odd in list(itertools.product(places(stored), ODD))[::step]:
        kept, place[key] = place[key], odd
        try:
            changed = signed(stored)
            try:
                loaded = sk.AbstentionPolicy.from_json(changed)
            except ValueError:
                continue
            again = sk.AbstentionPolicy.from_json(loaded.to_json())
            assert again.to_json() == loaded.to_json()
            assert str(loaded.certificate) == str(again.certificate)
            assert loaded.to_python()
        finally:
            place[key] = kept
    assert json.dumps(stored) == text


# Rows unlike those that tuned it ----------------------------------------------------------------

LEVELS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
CONFIDENCES = {
    "smooth": lambda rng, n: 0.5 + rng.beta(5.0, 0.5, n) / 2,
    "three values": lambda rng, n: rng.choice([0.5, 0.75, 1.0], p=[0.2, 0.5, 0.3], size=n),
    "one value": lambda rng, n: np.full(n, 0.9),
}


def policy_of_rows(tuned):
    quantiles = zip(LEVELS, np.quantile(tuned, LEVELS).tolist(), strict=True)
    return sk.AbstentionPolicy(
        classes=np.array(["no", "yes"]), threshold=0.8, n=len(tuned),
        confidence_quantiles={f"{level:g}": value for level, value in quantiles},
    )  # fmt: skip


def proba_of(confidence):
    return np.column_stack([confidence, 1.0 - confidence])


@pytest.mark.parametrize("shape", CONFIDENCES)
@pytest.mark.parametrize("n", [100, 1000])
def test_rows_of_the_same_population_are_not_called_others(shape, n, rng, monkeypatch):
    """The level bounds how often chance alone warns; 0.1 here, so that it would be seen."""
    monkeypatch.setattr(policy_module, "_CHANCE", 0.1)
    monkeypatch.setattr(policy_module, "_FAR", 0.0)
    draw = CONFIDENCES[shape]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(200):
            policy, new = policy_of_rows(draw(rng, n)), draw(rng, 1000)
            warn_if_far(policy, count_at_quantiles(policy, new), 1000)
    assert len(warned) / 200 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 200)


@pytest.mark.parametrize("shape", ["smooth", "three values"])
def test_rows_unlike_those_that_tuned_it_are_told(shape, rng):
    policy = policy_of_rows(CONFIDENCES[shape](rng, 2000))
    new = CONFIDENCES[shape](rng, 2000)
    policy.decide(proba_of(new))
    unsure = 0.5 + 0.6 * (new - 0.5)
    for decide in (policy.decide, policy.decide_arrays):
        message = r"% of these 2,000 rows .* already .* or these"
        with pytest.warns(UserWarning, match=message) as told:
            decide(proba_of(unsure))
        assert told[0].filename == __file__
        decide(proba_of(unsure[:999]))  # too few to say
    for unknown in ({"confidence_quantiles": {}}, {"n": None}):
        dataclasses.replace(policy, **unknown).decide(proba_of(unsure))
    message = r": 0.0% of these .*but about \d\d% of the rows that tuned"
    with pytest.warns(UserWarning, match=message):
        policy.decide(proba_of(np.maximum(new, 0.999)))
    policy.decide(proba_of(np.where(rng.random(2000) < 0.03, 0.5, new)))  # slightly other


def test_probabilities_that_are_calibrated_already_are_told():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 6000)
    X = np.column_stack([y + 1.2 * rng.normal(size=6000)] * 4) + 0.3 * rng.normal(size=(6000, 4))
    X, X_new, y = X[:4000], X[4000:], y[:4000]
    model = sk.SelectiveClassifier(GaussianNB(), calibration="temperature")
    tuner = sk.ThresholdTuner(model, objective="coverage", target=0.5, random_state=0)
    tuner.fit(X, y)
    tuner.policy_.decide(tuner.raw_scores(X_new))
    with pytest.warns(UserWarning, match="calibrated already"):
        tuner.policy_.decide(tuner.predict_proba(X_new))
    # Other models than the final one rated the rows of folds, and of a refit.
    for options in ({"cv": 3}, {"cv": 0.4, "refit": True}):
        tuner.set_params(**options).fit(X, y)
        assert tuner.policy_.confidence_quantiles == {}
        tuner.policy_.decide(tuner.predict_proba(X_new))
    odd = {"confidence_quantiles": {"median": 0.7}}
    check_refused("'median'", lambda: dataclasses.replace(tuner.policy_, **odd))


def test_answers_with_a_confidence_need_no_probabilities():
    policy = sk.AbstentionPolicy(np.array(["no", "yes"]), 0.8, confidence=External("score"))
    table = policy.decide(
        y_pred=["Paris", "no"], confidence=pd.Series([0.8, 0.7], index=["q1", "q2"])
    )
    assert table.index.tolist() == ["q1", "q2"]
    assert table["label"].isna().tolist() == [False, True]
    assert table["suggestion"].tolist() == ["Paris", "no"]
    assert table["accepted"].tolist() == policy.accepts([0.8, 0.7]).tolist() == [True, False]
    assert policy.decide(y_pred=[], confidence=[]).shape == (0, 5)
    gate = {}
    exec(policy.to_python(), gate)
    check_refused("y_pred", lambda: gate["decide"](y_pred=["x"], confidence=[1.0, 1.0]))
    restored = sk.AbstentionPolicy.from_json(policy.to_json())  # nothing is lost: it holds a name
    assert isinstance(restored.confidence, External)
    moved = {"y_pred": pd.Series(["a", "b"], [1, 2]), "confidence": pd.Series([1.0, 0.5], [2, 1])}
    answered = {"y_pred": ["no"], "confidence": [0.9]}
    for given, argument in [
        ({}, "y_pred"), ({"y_proba": [[0.9, 0.1]]}, "'score'"), ({"confidence": [0.9]}, "y_pred"),
        (answered | {"y_proba": [[0.9, 0.1]]}, "y_proba"), (moved, "confidence"),
        (answered | {"confidence": [0.9, 0.8]}, "y_pred"),
        (answered | {"subgroups": ["a"]}, "subgroups"),
        (answered | {"auxiliary": {"a": 1}}, "auxiliary"),
    ]:  # fmt: skip
        check_refused(argument, lambda g=given: policy.decide(**g))
    check_refused("y_proba", sk.AbstentionPolicy(np.array(["no", "yes"]), 0.8).decide)


# So many hours ----------------------------------------------------------------------------------


def _batch(n=200):
    sure = np.random.default_rng(0).uniform(0.5, 1, n).round(2)  # with ties
    return np.column_stack([1 - sure, sure])


@pytest.mark.parametrize("capacity", [0, 1, 30, np.int64(90), 500])
def test_only_the_least_sure_rows_are_deferred_where_people_are_few(policy, capacity):
    plain, decided = policy.decide(_batch()), policy.decide(_batch(), capacity=capacity)
    below = [row for row in range(200) if not plain["accepted"][row]]
    least_sure = sorted(below, key=lambda row: (plain["confidence"][row], row))[:capacity]
    assert decided.index[~decided["accepted"]].tolist() == sorted(least_sure)
    over = sorted(set(below) - set(least_sure))
    assert decided.index[decided["over_capacity"]].tolist() == over
    assert (decided["label"][over] == decided["suggestion"][over]).all()
    assert decided["label"][least_sure].isna().all()
    same = ["suggestion", "confidence", "threshold"]
    pd.testing.assert_frame_equal(decided[same], plain[same])
    assert "over_capacity" not in plain
    for wrong in (-1, 1.5, True, "10"):
        check_refused("capacity", lambda w=wrong: policy.decide(_batch(), capacity=w))
    arrays = policy.decide_arrays(_batch(), capacity=capacity)
    assert list(arrays) == list(decided)
    for name, column in arrays.items():
        known = decided[name].astype(object).where(decided[name].notna(), None)
        assert column.tolist() == known.tolist()
    named = sk.AbstentionPolicy(
        np.array(["a", "b", "c"]), 0.8, shortlist=PolicyShortlist(0.9, 0.2, 0.8, 100)
    )
    proba = [[0.5, 0.3, 0.2], [0.7, 0.3, 0.0], [0.9, 0.1, 0.0]]
    assert named.decide(proba, capacity=1)["shortlist"].isna().tolist() == [False, True, True]
    lists = named.decide_arrays(proba, capacity=1)["shortlist"]
    assert [names is None for names in lists] == [False, True, True]


def test_answers_over_capacity_are_covered_by_no_guarantee():
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1, 2000)
    wrong, person = rng.random(2000) > sure, rng.random(2000) < 0.02
    rows = sk.Predictions.from_proba(
        np.where(wrong, 0, 1), np.column_stack([1 - sure, sure]), labels=[0, 1],
        reviewer=np.where(person == wrong, 1, 0),
    )  # fmt: skip
    for objective, more in ((sk.Risk(0.2), False), (sk.SystemRisk(0.1), True)):
        policy = sk.select_threshold(rows, objective=objective).policy
        with pytest.warns(UserWarning, match="No guarantee covers them") as caught:
            policy.decide(_batch(), capacity=3)
        [told] = [str(one.message) for one in caught]
        assert ("machine and reviewer together does not hold here" in told) == more
        assert re.match(r"capacity=3: \d+ of the \d+ cases below", told)
        policy.decide(_batch(), capacity=200)  # nothing to warn of


def test_the_capacity_that_suffices_in_most_batches():
    policy = sk.AbstentionPolicy(np.array([0, 1]), 0.8, coverage=0.9, n=2000)
    most = stats.beta.ppf(0.9, 201, 1800)
    for n, share in ((1000, 0.95), (50, 0.5), (0, 0.95)):
        found = policy.capacity_needed(n, share=share, delta=0.1)
        assert stats.binom.cdf(found, n, most) >= share
        assert found == 0 or stats.binom.cdf(found - 1, n, most) < share
    check_refused("coverage", sk.AbstentionPolicy(np.array([0, 1]), 0.8).capacity_needed, 100)


@pytest.mark.parametrize(("score", "row", "is_odd"), [
    (0.85, 0, False), (1.0, 0, False), (85.0, 1, True), (-0.1, 2, True),
])  # fmt: skip
def test_a_confidence_of_another_scale_is_named_in_the_smallest_batch(score, row, is_odd, rng):
    confidence = rng.random(400)
    rows = sk.Predictions.from_labels(["a"] * 400, ["a"] * 400, confidence)
    policy = sk.select_threshold(rows, objective=sk.Risk(0.1)).policy
    today = np.full(3, 0.9)
    today[row] = score
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        policy.decide(y_pred=["a"] * 3, confidence=today)
        sk.check_policy(policy, sk.Predictions.from_labels(["a"] * 3, ["a"] * 3, today))
    said = [str(w.message) for w in caught if "another scale" in str(w.message)]
    assert len(said) == 2 * is_odd
    assert all(f"the first is row {row}), with {score:g}, " in text for text in said)
    if is_odd:  # scores that were never shares have no such scale
        rows = sk.Predictions.from_labels(["a"] * 400, ["a"] * 400, 100 * confidence - 1)
        policy = sk.select_threshold(rows, objective=sk.Risk(0.1)).policy
        with warnings.catch_warnings(action="error"):
            policy.decide(y_pred=["a"] * 3, confidence=today)
