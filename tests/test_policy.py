"""A policy decides the same rows in memory, from JSON, and in a fresh process."""

import dataclasses
import json
import subprocess
import sys

import jsonschema
import numpy as np
import pandas as pd
import pytest

from skselect import (
    AbstentionPolicy,
    PrecomputedClassifier,
    SelectiveClassifier,
    ThresholdTuner,
)
from skselect.calibration import CALIBRATORS, ClassCalibration
from skselect.decisions import DecisionRule
from skselect.groups import GroupThresholds
from skselect.policy import VERSION


@pytest.fixture
def policy():
    return AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.8)


def test_decide_marks_what_is_not_sure_enough(policy):
    table = policy.decide([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]])
    assert table.columns.tolist() == ["label", "suggestion", "accepted", "confidence", "threshold"]
    assert table["accepted"].tolist() == [True, False, True]  # a tie with the threshold is accepted
    assert table["label"].isna().tolist() == [False, True, False]
    assert table["suggestion"].tolist() == ["no", "yes", "yes"]


def test_columns_are_matched_by_name_and_the_index_is_kept(policy):
    frame = pd.DataFrame({"yes": [0.1, 0.7], "no": [0.9, 0.3]}, index=["a", "b"])
    table = policy.decide(frame)
    assert table.index.tolist() == ["a", "b"]
    assert table["suggestion"].tolist() == ["no", "yes"]


def test_one_column_is_the_second_class(policy):
    assert policy.decide([0.1, 0.95])["label"].tolist() == ["no", "yes"]


@pytest.mark.parametrize("kind", [None, "temperature"])
def test_a_frame_and_an_array_give_the_same_bits(rng, kind):
    proba = rng.dirichlet(np.ones(12), 400)
    calibration = None
    if kind is not None:
        calibration = ClassCalibration.fit(
            kind, "predict_proba", proba, rng.integers(0, 12, 400), 12
        )
    policy = AbstentionPolicy(
        classes=np.arange(12), threshold=0.4, confidence="entropy", calibration=calibration
    )
    frame = pd.DataFrame({k: proba[:, k] for k in range(12)})  # lies column by column in memory
    pd.testing.assert_frame_equal(policy.decide(frame), policy.decide(proba), check_exact=True)


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        ([1, 2], "Int64"),
        ([False, True], "boolean"),
        ([0.5, 1.5], "Float64"),
        (["a", "b"], "string"),
    ],
)
def test_labels_are_nullable(classes, dtype):
    policy = AbstentionPolicy(classes=np.array(classes), threshold=0.8)
    label = policy.decide([[0.9, 0.1], [0.4, 0.6]])["label"]
    assert str(label.dtype) == dtype
    assert label[0] == classes[0]
    assert label[1] is pd.NA


@pytest.mark.parametrize("threshold", [0.0, 0.123456789012345678, 1.0, np.inf, -np.inf])
def test_thresholds_survive_json(threshold):
    policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=threshold, abstain_label=-1)
    restored = AbstentionPolicy.from_json(policy.to_json())
    assert restored.threshold == threshold
    assert restored.classes.dtype == policy.classes.dtype
    assert restored.abstain_label == -1


@pytest.mark.parametrize("kind", ["isotonic", "platt", None])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fresh_process_accepts_the_same_float32_rows(tmp_path, rng, kind, n_classes):
    from xgboost import XGBClassifier

    X = rng.normal(size=(600, 5)).astype(np.float32)
    y = (X[:, 0] + rng.normal(scale=0.7, size=600) > 0).astype(int) + (X[:, 1] > 1) * (
        n_classes - 2
    )
    base = XGBClassifier(n_estimators=15, max_depth=2, n_jobs=1)
    tuner = ThresholdTuner(
        SelectiveClassifier(base, calibration=kind, cv=3), objective="risk", target=0.2, cv=3
    ).fit(X, y)
    raw = tuner.estimator_.estimator_.predict_proba(X)
    assert raw.dtype == np.float32
    tuner.policy_.to_json(tmp_path / "policy.json")
    np.save(tmp_path / "raw.npy", raw)
    code = (
        "import numpy as np, sys; from skselect import AbstentionPolicy\n"
        "policy = AbstentionPolicy.from_json(sys.argv[1] + '/policy.json')\n"
        "table = policy.decide(np.load(sys.argv[1] + '/raw.npy'))\n"
        "table.to_pickle(sys.argv[1] + '/table.pkl')\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    there = pd.read_pickle(tmp_path / "table.pkl")
    pd.testing.assert_frame_equal(there, tuner.decide(X), check_exact=True)
    assert 0 < there["accepted"].mean() < 1


def test_published_schema_describes_the_file(rng):
    from importlib.resources import files

    schema = json.loads(files("skselect").joinpath("policy.schema.json").read_text())
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    from sklearn.naive_bayes import GaussianNB

    for calibration in CALIBRATORS:
        base = SelectiveClassifier(GaussianNB(), calibration=calibration, cv=2)
        tuner = ThresholdTuner(base, objective="coverage", target=0.5, cv=2).fit(X, y)
        stored = json.loads(tuner.policy_.to_json())
        jsonschema.validate(stored, schema)
        assert stored["version"] == VERSION == schema["properties"]["version"]["const"]
    costly = AbstentionPolicy(
        classes=np.array(["no", "yes"]), threshold=np.inf, confidence="expected_cost",
        rule=DecisionRule("min_cost", np.array([[0.0, 1.0], [9.0, 0.0]])),
        groups=GroupThresholds("a and b", {(True, 1): 0.6, (False, 2): np.inf}, columns=("a", "b")),
    )  # fmt: skip
    jsonschema.validate(json.loads(costly.to_json()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**stored, "threshold": "high"}, schema)


def test_an_own_confidence_is_saved_only_on_demand(policy):
    own = dataclasses.replace(policy, confidence=lambda p: p[:, 0])
    with pytest.raises(ValueError, match="allow_external=True"):
        own.to_json()
    restored = AbstentionPolicy.from_json(own.to_json(allow_external=True))
    with pytest.raises(ValueError, match=r"dataclasses\.replace"):
        restored.decide([[0.9, 0.1]])
    again = dataclasses.replace(restored, confidence=lambda p: p[:, 0])
    assert again.decide([[0.9, 0.1]])["accepted"].tolist() == [True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": "skselect.policy", "version": 1', "damaged JSON"),
        ('{"schema": "something else"}', "'schema' is not"),
        ('{"schema": "skselect.policy", "version": 99}', "Update skselect"),
        ('{"schema": "skselect.policy", "version": "1"}', "format version"),
        ('{"schema": "skselect.policy", "version": 1}', "policy is damaged"),
        ("no_such_file.json", "no policy file"),
    ],
)
def test_unreadable_policies_say_why(text, message):
    with pytest.raises(ValueError, match=message):
        AbstentionPolicy.from_json(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [("threshold", "high"), ("threshold", float("nan")), ("confidence", "hope"),
     ("response", "predict"), ("calibration", {"kind": "magic", "maps": [], "response": "x"}),
     ("classes", None), ("metadata", 3)],
)  # fmt: skip
def test_a_damaged_field_is_refused(policy, field, value):
    stored = json.loads(policy.to_json())
    stored[field] = value
    with pytest.raises(ValueError, match="damaged"):
        AbstentionPolicy.from_json(json.dumps(stored))


@pytest.mark.parametrize(
    "damage",
    [
        lambda s: s["calibration"]["maps"][0].pop("slope"),
        lambda s: s["calibration"]["maps"].pop(),
        lambda s: s["calibration"]["maps"][0].update(slope=None),
        lambda s: s["calibration"]["maps"][0].update(slope="nan"),
        lambda s: s["calibration"].update(response="foo"),
        lambda s: s.update(n="x"),
        lambda s: s.update(abstain_label=0),
        lambda s: s.update(version=0),
        lambda s: s.update(version=True),
    ],
)
def test_a_damaged_calibration_is_found_when_loading(rng, damage):
    from sklearn.naive_bayes import GaussianNB

    X, y = rng.normal(size=(90, 2)), np.arange(90) % 3
    model = SelectiveClassifier(GaussianNB(), calibration="platt", threshold=0.5).fit(X, y)
    stored = json.loads(model.policy_.to_json())
    damage(stored)
    with pytest.raises(ValueError, match=r"damaged|version"):
        AbstentionPolicy.from_json(json.dumps(stored))


def test_impossible_policies_are_refused_at_once():
    classes = np.array(["a", "b"])
    with pytest.raises(ValueError, match="confidence must be one of"):
        AbstentionPolicy(classes=classes, threshold=0.5, confidence="margn")
    with pytest.raises(ValueError, match="abstain_label='a' is one of the classes"):
        AbstentionPolicy(classes=classes, threshold=0.5, abstain_label="a")
    with pytest.raises(ValueError, match="path_or_text"):
        AbstentionPolicy.from_json("x" * 5000)


def test_nothing_half_written_is_left_behind(policy, tmp_path):
    bad = dataclasses.replace(policy, metadata={"x": object()})
    with pytest.raises(ValueError, match="metadata"):
        bad.to_json(tmp_path / "policy.json")
    with pytest.raises(ValueError, match="no folder"):
        policy.to_json(tmp_path / "nowhere" / "policy.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[0.5, 0.2, 0.3]], "3 columns"),
        ([[0.9, 0.2]], "sum to one"),
        ([[np.nan, 0.2]], "NaN"),
        (pd.DataFrame({"no": [0.5], "maybe": [0.5]}), "do not name the classes"),
        ([0, 1], "look like labels"),
    ],
)
def test_scores_that_do_not_fit_are_refused(policy, scores, message):
    with pytest.raises(ValueError, match=message):
        policy.decide(scores)


def test_subgroups_wait_for_their_room(policy):
    with pytest.raises(ValueError, match="subgroups"):
        policy.decide([[0.5, 0.5]], subgroups=["a"])
    with pytest.raises(ValueError, match="subgroups"):
        policy.accepts([0.5], subgroups=["a"])


def test_accepts_compares_as_float64(policy):
    assert policy.accepts(np.array([0.8], dtype=np.float32)).tolist() == [True]  # 0.800000012
    assert policy.accepts([0.7999999999]).tolist() == [False]


# Damaged calibrations ---------------------------------------------------------------------------


def stored_policy(kind, n_classes, scope):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(n_classes), 100)
    model = SelectiveClassifier(
        PrecomputedClassifier(np.arange(n_classes)), calibration=kind, calibration_scope=scope
    ).fit(P, rng.integers(0, n_classes, 100))
    return json.loads(model.policy_.to_json())


@pytest.mark.parametrize(
    ("kind", "n_classes", "scope", "damage"),
    [
        ("temperature", 3, "probabilities", {"temperature": -1.0}),
        ("temperature", 3, "probabilities", {"temperature": 0.0}),
        ("temperature", 3, "probabilities", {"prior": [0.5, 0.5]}),
        ("temperature", 3, "probabilities", {"prior": 0.5}),
        ("temperature", 2, "confidence", {"prior": [0.5, 0.5]}),
        ("temperature", 2, "probabilities", {"share": 2.0}),
        ("platt", 2, "probabilities", {"slope": -3.0}),
        ("beta", 3, "probabilities", {"a": -3.0}),
        ("isotonic", 2, "probabilities", {"knots": [0.9, 0.1], "values": [0.0, 1.0]}),
        ("isotonic", 2, "probabilities", {"knots": [], "values": []}),
        ("isotonic", 2, "confidence", {"knots": [0.1, 0.9], "values": [0.5]}),
        ("smooth_isotonic", 2, "probabilities", {"knots": [0.1, 0.9], "values": [0.8, 0.2]}),
        ("smooth_isotonic", 2, "probabilities", {"knots": [0.1, 0.9], "values": [0.8, 3.0]}),
        ("venn_abers", 2, "confidence", {"lower": [0.1]}),
        ("platt", 2, "confidence", {"intercept": float("nan")}),
    ],
)
def test_a_damaged_map_is_not_loaded(kind, n_classes, scope, damage):
    stored = stored_policy(kind, n_classes, scope)
    AbstentionPolicy.from_json(json.dumps(stored))
    stored["calibration"]["maps"][0] |= damage
    with pytest.raises(ValueError, match="The policy is damaged"):
        AbstentionPolicy.from_json(json.dumps(stored))


@pytest.mark.parametrize("scope", ["probabilities", "confidence"])
@pytest.mark.parametrize("offset", [float("nan"), -1, 0, "much"])
def test_a_damaged_offset_is_not_loaded(scope, offset):
    stored = stored_policy("platt", 2, scope)
    stored["calibration"]["offset"] = offset
    with pytest.raises(ValueError, match="The policy is damaged"):
        AbstentionPolicy.from_json(json.dumps(stored))


def test_files_of_version_1_still_load():
    policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    stored = json.loads(policy.to_json()) | {"version": 1}
    for name in ("decision", "cost_matrix", "groups"):
        del stored[name]
    restored = AbstentionPolicy.from_json(json.dumps(stored))
    assert restored.rule.decision == "argmax"
    assert restored.groups is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decision": "dice"}, "decision must be one of"),
        ({"decision": "min_cost"}, "cost_matrix is missing"),
        ({"cost_matrix": [[0, 1]]}, "cost_matrix must hold numbers"),
        ({"cost_matrix": [[0, -1], [1, 0]]}, "finite costs of at least 0"),
        ({"confidence": "expected_cost"}, "needs a cost_matrix"),
        ({"classes": ["low", "high"], "classes_dtype": "<U1"}, "'<U1' cannot hold the classes"),
    ],
)
def test_damaged_decisions_are_a_clear_error(change, message):
    policy = AbstentionPolicy(classes=np.array(["lo", "hi"]), threshold=0.8)
    with pytest.raises(ValueError, match=f"The policy is damaged .*{message}"):
        AbstentionPolicy.from_json(json.dumps(json.loads(policy.to_json()) | change))


def test_decision_values_need_a_calibration():
    with pytest.raises(ValueError, match="needs a calibration"):
        AbstentionPolicy(
            classes=np.array(["no", "yes"]), threshold=0.5, response="decision_function"
        )


def test_one_row_as_a_flat_list_is_asked_about():
    policy = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.5)
    with pytest.warns(UserWarning, match=r"pass \[\[\.\.\.\]\]"):
        assert len(policy.decide([0.9, 0.1])) == 2
    gate = {}
    exec(policy.to_python(), gate)
    with pytest.warns(UserWarning, match=r"pass \[\[\.\.\.\]\]"):
        assert len(gate["decide"]([0.9, 0.1])["label"]) == 2
