"""The Python file of a policy decides as the policy does, bit by bit, with numpy alone."""

import ast
import dataclasses
import inspect
import itertools
import json
import pickle
import subprocess
import sys
import types

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression

from skselect import (
    AbstentionPolicy,
    Outcomes,
    SelectiveClassifier,
    ThresholdTuner,
    select_threshold,
)
from skselect._lib.decide import CONFIDENCES
from skselect.calibration._calibrators import CALIBRATORS
from skselect.calibration._scopes import ClassCalibration, ConfidenceCalibration
from skselect.policy.policy import External
from skselect.policy.subgroups import GroupThresholds
from skselect.predictions.confidence import ANSWER_CONFIDENCES, LearnedScore
from skselect.predictions.decisions import DecisionRule
from tests.brute import named

#: Imports every gate of a folder where the named packages do not exist, and lets it decide.
ALONE = """
import importlib, pickle, sys
BANNED = {"skselect", "sklearn", "scipy", "pandas"}
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BANNED:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocker())
for name in BANNED:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        continue
    raise SystemExit(name + " is there")
sys.path.insert(0, sys.argv[1])
with open(sys.argv[1] + "/inputs.pkl", "rb") as file:
    inputs = pickle.load(file)
found = []
for name, y_proba, rest in inputs:
    found.append(importlib.import_module(name).decide(y_proba, **rest))
assert not BANNED & set(sys.modules)
with open(sys.argv[1] + "/found.pkl", "wb") as file:
    pickle.dump(found, file)
"""


def gate_of(policy):
    """Return the module that the policy's Python file is."""
    module = types.ModuleType("gate")
    exec(compile(policy.to_python(), "gate.py", "exec"), module.__dict__)
    return module


def assert_same(found, table):
    """Compare arrays, of a gate or of a policy, with the policy's table, to the last bit."""
    assert list(found) == table.columns.tolist()
    assert found["label"].dtype == object
    assert found["label"].tolist() == [None if pd.isna(x) else x for x in table["label"]]
    assert found["suggestion"].tolist() == table["suggestion"].tolist()
    np.testing.assert_array_equal(found["accepted"], table["accepted"])
    for name in ("confidence", "threshold"):
        assert found[name].dtype == np.float64
        assert found[name].tobytes() == table[name].to_numpy().tobytes(), name


# What is compared -------------------------------------------------------------------------------


def raw_scores(rng, n_classes, response, n=150):
    """Return raw scores with ties, certainty and impossibility among them, and true codes."""
    logits = rng.normal(scale=3.0, size=(n, n_classes))
    codes = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    codes[:n_classes] = np.arange(n_classes)
    if response == "decision_function":
        return (logits[:, 1] - logits[:, 0] if n_classes == 2 else logits), codes
    proba = special.softmax(logits, axis=1)
    proba[-20:] = np.eye(n_classes)[codes[-20:]]
    proba[-30:-20] = 1.0 / n_classes
    proba[-40:-30] = proba[-50:-40]
    return proba, codes


def tied(policy, scores, **rest):
    """Return the policy with a threshold that a row has exactly as its confidence."""
    confidence = policy.decide(scores, **rest)["confidence"].to_numpy()
    return dataclasses.replace(policy, threshold=float(np.sort(confidence)[len(confidence) // 2]))


def calibrated_cases(rng):
    names = itertools.cycle(CONFIDENCES)
    for kind, n_classes in itertools.product(CALIBRATORS, (2, 3, 12)):
        for response in ("predict_proba", "decision_function"):
            scores, codes = raw_scores(rng, n_classes, response)
            maps = ClassCalibration.fit(kind, response, scores, codes, n_classes)
            policy = AbstentionPolicy(
                classes=np.arange(n_classes), threshold=0.5, response=response, calibration=maps,
                confidence=next(names),
            )  # fmt: skip
            yield tied(policy, scores), in_all_layouts(scores)
    for kind, confidence in itertools.product(CALIBRATORS, CONFIDENCES):
        scores, codes = raw_scores(rng, 3, "predict_proba")
        correct = (scores.argmax(axis=1) == codes).astype(float)
        calibrated = ConfidenceCalibration.fit(kind, CONFIDENCES[confidence](scores), correct)
        policy = AbstentionPolicy(
            classes=np.arange(3), threshold=0.5, calibration=calibrated, confidence=confidence
        )
        yield tied(policy, scores), in_all_layouts(scores)


def in_all_layouts(scores, **rest):
    """Return inputs: the scores as they are, in single precision, by columns, row by row."""
    shapes = [scores, scores.astype(np.float32), np.asfortranarray(scores), scores[:1]]
    return [(shape, {name: x[: len(shape)] for name, x in rest.items()}) for shape in shapes]


def plain_cases(rng):
    decided = {"argmax": [*CONFIDENCES, *ANSWER_CONFIDENCES], "estimator": ANSWER_CONFIDENCES,
               "min_cost": ANSWER_CONFIDENCES}  # fmt: skip
    for n_classes in range(2, 13):
        scores, codes = raw_scores(rng, n_classes, "predict_proba")
        costs = rng.integers(0, 9, (n_classes, n_classes)) * (1 - np.eye(n_classes)) + 0.25
        for decision, names in decided.items():
            rest = {"y_pred": codes} if decision == "estimator" else {}
            for confidence in names:
                policy = AbstentionPolicy(
                    classes=np.arange(n_classes), threshold=0.5, confidence=confidence,
                    rule=DecisionRule(decision, costs),
                )  # fmt: skip
                yield tied(policy, scores, **rest), in_all_layouts(scores, **rest)
    policy = AbstentionPolicy(classes=np.array(["a", "b"]), threshold=0.75)
    second = np.array([0.25, 0.75, 0.0, 1.0, 0.5, 0.6])
    for threshold in (np.inf, -np.inf, 0.0, 0.75):
        yield dataclasses.replace(policy, threshold=threshold), in_all_layouts(second)
    rounded = [[1.0 + 1e-7, -1e-7], [0.5004, 0.5]]
    yield policy, [(np.eye(2, dtype=int), {}), (rounded, {}), (second.astype(object), {})]


def labelled_cases(rng):
    scores = rng.dirichlet(np.ones(3), 30)
    for labels in ([-1, 0, 7], ["neg", "", "größer"], [-0.5, 0.1, 2.0], [5]):
        kinds = {int: [np.int64, np.int8, np.uint8], float: [np.float64, np.float32], str: [str]}
        for dtype in kinds[type(labels[0])]:
            classes = np.array([0, 1, 200] if dtype is np.uint8 else labels, dtype=dtype)
            proba = scores if len(classes) == 3 else np.ones((30, 1))
            policy = AbstentionPolicy(classes=classes, threshold=0.6)
            yield policy, [(proba, {})]
            policy = dataclasses.replace(
                policy, rule=DecisionRule("estimator"), confidence="chosen_proba"
            )
            answers = rng.choice(classes, 30)
            yield policy, [(proba, {"y_pred": answers}), (proba, {"y_pred": answers.tolist()}),
                           (proba, {"y_pred": answers[:, None]})]  # fmt: skip
    policy = AbstentionPolicy(classes=np.array([True, False]), threshold=0.6)
    yield policy, [(rng.dirichlet(np.ones(2), 30), {})]


def grouped_cases(rng):
    scores = rng.dirichlet(np.ones(3), 8)
    policy = AbstentionPolicy(classes=np.array(["a", "b", "c"]), threshold=0.9)

    def case(subgroups, by, thresholds, **options):
        groups = GroupThresholds(by, thresholds, **options)
        rest = {} if subgroups is None else {"subgroups": subgroups}
        return dataclasses.replace(policy, groups=groups), [(scores, rest)]

    sites = np.array([1, 1, 2, 3, 2, 2, 1, 1])
    yield case(sites, "site", {1: 0.4, 2: np.inf})
    yield case(sites.tolist(), "site", {1: 0.4, 2: 0.5, 3: 0.6}, unseen="raise")
    yield case({"site": sites}, "site", {1.0: 0.4, "1": 0.9, 2: 0.6})
    mixed = ["x", None, 2.5, True, float("nan"), "x", "1", 1]
    yield case(mixed, "kind", {"x": 0.4, 2.5: 0.3, 1: 0.2})
    yield case(
        {"old": [True, False] * 4, "site": sites}, "site and old",
        {(1, True): 0.4, (2, False): 0.3}, columns=("site", "old"),
    )  # fmt: skip
    by_answer = {"by_answer": True}
    yield case(None, "predicted_class", {"a": 0.4, "b": 0.5, "c": np.inf}, **by_answer)
    yield case(None, "predicted_class", {"a": 0.4}, **by_answer)


def learned_cases(rng):
    for n_classes, kind in itertools.product((2, 3, 12), (None, "temperature", "isotonic")):
        scores, codes = raw_scores(rng, n_classes, "predict_proba")
        tables = {
            "forest": rng.permutation(scores),
            "judge": rng.dirichlet(np.ones(n_classes), 150),
        }
        fitted = {
            name: ClassCalibration.fit("temperature", "predict_proba", table, codes, n_classes)
            for name, table in tables.items()
        }
        names = ("logit", "lead", "entropy", "forest", "judge", "novelty")
        learned = LearnedScore(names, rng.normal(size=6), -0.3, fitted)
        maps = None
        if kind is not None:
            maps = ClassCalibration.fit(kind, "predict_proba", scores, codes, n_classes)
        policy = AbstentionPolicy(np.arange(n_classes), 0.5, confidence=learned, calibration=maps)
        novelty = rng.normal(size=150)

        def ask(change, n=150, tables=tables, novelty=novelty):
            given = {name: change(table[:n]) for name, table in tables.items()}
            return {"auxiliary": given | {"novelty": novelty[:n].tolist()}}

        yield (
            tied(policy, scores, **ask(np.asarray)),
            [
                (scores, ask(np.asarray)),
                (scores.astype(np.float32), ask(np.float32)),
                (np.asfortranarray(scores), ask(np.asfortranarray)),
                (scores[:1], ask(np.asarray, 1)),
                (
                    scores[:, ::-1].copy()[:, ::-1],
                    ask(lambda table: pd.DataFrame(table).to_numpy()),
                ),
            ],
        )


CASES = [calibrated_cases, plain_cases, labelled_cases, grouped_cases, learned_cases]


@pytest.mark.filterwarnings("ignore:subgroups")
def test_the_file_alone_and_the_arrays_decide_as_the_table_does(tmp_path, rng):
    inputs, tables = [], []
    for cases in CASES:
        for i, (policy, given_inputs) in enumerate(cases(rng)):
            gate = f"{cases.__name__}_{i}"
            policy.to_python(tmp_path / f"{gate}.py")
            for scores, rest in given_inputs:
                inputs.append((gate, scores, rest))
                tables.append(policy.decide(scores, **rest))
                assert_same(policy.decide_arrays(scores, **rest), tables[-1])
    (tmp_path / "inputs.pkl").write_bytes(pickle.dumps(inputs))
    subprocess.run([sys.executable, "-c", ALONE, str(tmp_path)], check=True)
    found = pickle.loads((tmp_path / "found.pkl").read_bytes())
    for (gate, *_), decisions, table in zip(inputs, found, tables, strict=True):
        with named(gate):
            assert_same(decisions, table)


def test_a_gate_has_only_what_its_policy_needs():
    scores, codes = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]), np.array([0, 1, 1])
    maps = ClassCalibration.fit("temperature", "predict_proba", scores, codes, 2)
    text = dataclasses.replace(PLAIN, calibration=maps).to_python()
    assert len(text.splitlines()) <= 150
    assert max(map(len, text.splitlines())) <= 100
    functions = {x.name for x in ast.parse(text).body if isinstance(x, ast.FunctionDef)}
    assert functions == {
        "decide", "accepts", "read_proba", "calibrate", "log_odds", "temperature_map"
    }  # fmt: skip


# From a tuner, by name, by confidence -----------------------------------------------------------


def test_a_tuned_policy_with_its_certificate(rng, tmp_path):
    X = rng.normal(size=(900, 3))
    y = np.where(X[:, 0] + rng.normal(scale=0.5, size=900) > 0, "yes", "no")
    model = SelectiveClassifier(LogisticRegression(), calibration="platt")
    tuner = ThresholdTuner(model, objective="risk", target=0.1, cv=0.5, refit=False, random_state=0)
    policy = tuner.fit(X, y).policy_
    gate = gate_of(policy)
    assert_same(gate.decide(tuner.raw_scores(X)), tuner.decide(X))
    assert str(tuner.certificate_) == gate.CERTIFICATE
    assert json.loads(policy.to_json()) == gate.POLICY
    assert gate.POLICY["certificate"]["guarantee"] == "high_probability"
    assert policy.to_python(tmp_path / "gate.py") is None
    assert (tmp_path / "gate.py").read_text(encoding="utf-8") == policy.to_python()


def test_frames_are_matched_by_name_and_confidences_compared_as_float64(rng):
    scores = rng.dirichlet(np.ones(3), 20)
    policy = AbstentionPolicy(classes=np.array([1, 2, 3]), threshold=0.5)
    gate = gate_of(policy)
    for names in ([3, 1, 2], ["2", "3", "1"]):
        frame = pd.DataFrame(scores, columns=names)
        assert_same(gate.decide(frame), policy.decide(frame))
    groups = GroupThresholds("a and b", {(1, "x"): 0.4}, columns=("a", "b"))
    policy = dataclasses.replace(policy, groups=groups)
    frame = pd.DataFrame({"b": ["x", "y"] * 10, "a": pd.array([1, None] * 10, dtype="Int64")})
    found = []
    for decide in (gate_of(policy).decide, policy.decide):
        with pytest.warns(UserWarning, match=r"10 rows belong to no a and b .*\['missing'\]"):
            found.append(decide(scores, subgroups=frame))
    assert_same(*found)
    confidence = np.array([0.8, 0.7999999, 0.9], dtype=np.float32)
    assert gate_of(PLAIN).accepts(confidence).tolist() == PLAIN.accepts(confidence).tolist()
    groups = GroupThresholds("predicted_class", {"no": 0.5, "yes": 0.85}, by_answer=True)
    policy = dataclasses.replace(PLAIN, groups=groups)
    for accepts in (policy.accepts, gate_of(policy).accepts):
        found = accepts(confidence, subgroups=["no", "yes", "yes"])
        assert found.tolist() == [True, False, True]


@pytest.mark.parametrize("kind", ["plain", "by site", "by answer"])
def test_answers_that_come_with_a_confidence(kind):
    policy = AbstentionPolicy(np.array(["no", "yes"]), 0.8, confidence=External("score"))
    rest = {"y_pred": ["yes", "no", "a text"], "confidence": np.float32([0.8, 0.9, 0.1])}
    if kind == "by site":
        groups = GroupThresholds("site", {"north": 0.5, "south": 0.9})
        policy = dataclasses.replace(policy, groups=groups)
        rest["subgroups"] = ["north", "south", "north"]
    elif kind == "by answer":
        groups = GroupThresholds("predicted_class", {"no": 0.5, "yes": 0.9}, by_answer=True)
        policy = dataclasses.replace(policy, groups=groups)
        rest["y_pred"] = ["yes", "no", "no"]
    gate = gate_of(policy)
    assert_same(gate.decide(**rest), policy.decide(**rest))
    arrays = policy.decide_arrays(**rest)
    assert arrays["label"].tolist() == gate.decide(**rest)["label"].tolist()
    assert list(inspect.signature(gate.decide).parameters) == list(rest)
    assert "y_proba" not in gate.decide.__doc__
    for decide in (policy.decide, gate.decide):
        with pytest.raises(ValueError, match="y_pred"):
            decide(**(rest | {"y_pred": ["no"]}))
        with pytest.raises(ValueError, match="finite"):
            decide(**(rest | {"confidence": [0.1, np.nan, 0.2]}))


# What does not fit ------------------------------------------------------------------------------

PLAIN = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.8)
THREE = AbstentionPolicy(classes=np.array(["a", "b", "c"]), threshold=0.8)
VALUES = np.array([-2.0, -1.0, 1.0, 2.0])
PLATT = ClassCalibration.fit("platt", "decision_function", VALUES, np.array([0, 1, 0, 1]), 2)
SCALED = ClassCalibration.fit(
    "temperature", "predict_proba", np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]), 2
)
ASKS = LearnedScore(("lead", "forest", "age"), np.array([1.0, 0.5, 0.1]), 0.0, {"forest": SCALED})


def by(*groups, **options):
    return {"groups": GroupThresholds(*groups, **options)}


DECIDING = dataclasses.replace(PLAIN, response="decision_function", calibration=PLATT)
GIVEN = dataclasses.replace(PLAIN, rule=DecisionRule("estimator"), confidence="chosen_proba")
GROUPED = dataclasses.replace(PLAIN, **by("site", {1: 0.6}, unseen="raise"))
PAIRED = dataclasses.replace(PLAIN, **by("a and b", {(1, 2): 0.6}, columns=("a", "b")))
ANSWERED = dataclasses.replace(PLAIN, **by("predicted_class", {"no": 0.6}, by_answer=True))
LEARNED = dataclasses.replace(PLAIN, confidence=ASKS)
ONE = [[0.5, 0.5]]
UNHASHABLE = np.empty(1, dtype=object)
UNHASHABLE[0] = [1]


def asking(**auxiliary):
    return {"auxiliary": auxiliary}


@pytest.mark.parametrize(
    ("policy", "scores", "rest", "message"),
    [
        (PLAIN, [[0.5, 0.2, 0.3]], {}, r"with 2 numbers, .* got the shape \(1, 3\)"),
        (PLAIN, [[0.9, 0.1], [0.9, 0.2]], {}, "each row must sum to one, row 1 sums to 1.1"),
        (PLAIN, 0.9, {}, r"a row per case with 2 numbers, .* got the shape \(\)"),
        (THREE, [0.8, 0.1, 0.1], {}, r"a row per case with 3 numbers, .* got the shape \(3,\)"),
        (PLAIN, [[np.nan, 0.2]], {}, "y_proba has NaN or infinite values"),
        (PLAIN, [[1.5, -0.5]], {}, "must lie in .0, 1., got values from -0.5 to 1.5"),
        (PLAIN, [["a", "b"]], {}, "y_proba must hold probabilities"),
        (PLAIN, [[True, False]], {}, "y_proba must hold probabilities, got bool"),
        (PLAIN, np.zeros((0, 3)), {}, r"with 2 numbers, .* got the shape \(0, 3\)"),
        (GROUPED, [], {}, "subgroups is missing"),
        (PLAIN, np.zeros((1, 2, 1)), {}, "y_proba needs a row per case"),
        (PLAIN, [0, 1], {}, "look like labels"),
        (PLAIN, pd.DataFrame({"no": [0.5], "maybe": [0.5]}), {}, "y_proba: the columns"),
        (PLAIN, pd.DataFrame({"no": [0.5], "yes": [0.5], "z": 0}), {}, "y_proba: .*columns"),
        (PLAIN, ONE, {"y_pred": ["no"]}, "y_pred goes with decision='estimator'"),
        (PLAIN, ONE, {"subgroups": ["a"]}, "subgroups: this policy has one threshold"),
        (DECIDING, ONE, {}, "built on decision_function"),
        (DECIDING, [np.inf], {}, "built on decision_function.* got NaN or infinite"),
        (GIVEN, ONE, {}, "y_pred is missing"),
        (GIVEN, ONE, {"y_pred": ["no", "no"]}, "y_pred"),
        (GIVEN, ONE, {"y_pred": ["maybe"]}, "labels that are not among the classes"),
        (GIVEN, ONE, {"y_pred": [None]}, "y_pred"),
        (GROUPED, ONE, {}, "subgroups is missing"),
        (GROUPED, ONE, {"subgroups": [1, 1]}, "subgroups"),
        (GROUPED, ONE, {"subgroups": "a"}, "subgroups must hold one value per row"),
        (GROUPED, ONE, {"subgroups": [[1]]}, "subgroups must hold one value per row"),
        (GROUPED, ONE, {"subgroups": [2]}, r"1 rows belong to no site .*\(\['2'\]; known"),
        (GROUPED, ONE, {"subgroups": [np.inf]}, "strings, finite numbers or booleans"),
        (GROUPED, ONE, {"subgroups": [(1, 2)]}, "subgroups"),
        (GROUPED, ONE, {"subgroups": UNHASHABLE}, "subgroups must be"),
        (PAIRED, ONE, {"subgroups": {"a": [1]}}, r"the columns \['a', 'b'\]"),
        (PAIRED, ONE, {"subgroups": [1]}, r"the columns \['a', 'b'\]"),
        (ANSWERED, ONE, {"subgroups": ["no"]}, "subgroups: the answers are the subgroups"),
        (PLAIN, ONE, asking(forest=ONE), "this policy's confidence uses none"),
        (LEARNED, ONE, {}, r"auxiliary must be a dict with the names \['forest', 'age'\]"),
        (LEARNED, ONE, asking(forest=ONE), r"got .*\['forest'\]"),
        (LEARNED, ONE, asking(forest=[[0.5, 0.6]], age=[1]), r"\['forest'\]: each row must sum to"),
        (
            LEARNED,
            ONE,
            asking(forest=ONE * 2, age=[1]),
            r"\['forest'\] has 2 rows, but y_proba has",
        ),
        (LEARNED, ONE, asking(forest=ONE, age=[np.nan]), r"auxiliary\['age'\] has NaN"),
    ],
)
def test_both_refuse_what_does_not_fit(policy, scores, rest, message):
    said = []
    for decide in (policy.decide, policy.decide_arrays):
        with pytest.raises(ValueError, match=message) as error:
            decide(scores, **rest)
        said.append(str(error.value))
    assert said[0] == said[1]
    # The file says it in fewer words, and takes no argument that it would ignore.
    named = next(x for x in ("y_pred", "subgroups", "auxiliary", "y_proba") if x in said[0])
    with pytest.raises((ValueError, TypeError), match=named):
        gate_of(policy).decide(scores, **rest)


def strange_scores(rng, n_classes, classes):
    """Yield scores of many kinds, good and bad."""
    proba = rng.dirichlet(np.ones(n_classes), 6)
    yield from (proba * scale for scale in (1, 1.0009, 1.002, 100))
    yield from (proba.astype(dtype) for dtype in ("f2", "f4", "U", "c16", object))
    yield from (np.where(proba > 0.9, x, proba) for x in (np.nan, np.inf, -1e-8, -1e-5))
    yield from (proba[0], proba[:, 0], proba[:, :1], proba[:2, 0], proba[:, :-1], proba[..., None])
    yield from (proba > 0.5, (proba > 0.5).astype(int), (proba > 0.5)[:, 0].astype(np.uint8))
    yield from ([], None, 0.5, "x", [[0.5, None]], np.empty((0, n_classes)))
    for names in (classes, classes[::-1], [str(x) for x in classes], range(n_classes), "p" * 3):
        yield pd.DataFrame(proba, columns=list(names)[:n_classes])


@pytest.mark.parametrize("classes", [["no", "yes"], [3, 4], ["a", "b", "c"]])
def test_the_file_takes_what_the_policy_takes(rng, classes):
    policy = AbstentionPolicy(np.array(classes), 0.7)
    decide = gate_of(policy).decide
    for i, scores in enumerate(strange_scores(rng, len(classes), classes)):
        with named(i):
            try:
                table = policy.decide(scores)
            except ValueError:
                with pytest.raises(ValueError, match=r"."):
                    decide(scores)
            else:
                assert_same(decide(scores), table)


@pytest.mark.parametrize(
    "sites", [["b", 1, None, "b", 2, np.nan] * 3, np.array(["b", "1", "c"] * 6), [pd.NA, 1.0] * 9]
)
def test_both_warn_of_the_same_rows_of_unknown_subgroups(sites):
    found = []
    policy = dataclasses.replace(PLAIN, groups=GroupThresholds("site", {1: 0.6, "b": 0.7}))
    for decide in (policy.decide, gate_of(policy).decide):
        with pytest.warns(UserWarning, match="rows belong to no") as warned:
            found.append(decide([[0.9, 0.1]] * 18, subgroups=sites))
        found.append(str(warned[0].message))
    assert_same(found[2], found[0])
    assert found[3] == found[1]


@pytest.mark.parametrize(
    ("policy", "row", "rest"),
    [
        (PLAIN, [[0.9, 0.1]], {}),
        (PLAIN, pd.DataFrame({"yes": [0.9], "no": [0.1]}), {}),
        (DECIDING, [1.5], {}),
        (GIVEN, [[0.9, 0.1]], {"y_pred": ["no"]}),
        (GROUPED, [[0.9, 0.1]], {"subgroups": [1]}),
        (PAIRED, [[0.9, 0.1]], {"subgroups": {"a": [1], "b": [2]}}),
        (ANSWERED, [[0.9, 0.1]], {}),
        (LEARNED, ONE, asking(forest=ONE, age=[1.0])),
        (dataclasses.replace(PLAIN, classes=np.array([False, True])), [[0.9, 0.1]], {}),
        (dataclasses.replace(PLAIN, classes=np.array([1, 2, 3])), [[0.9, 0.1, 0.0]], {}),
    ],
)
def test_no_rows_give_no_decisions_of_the_same_kinds(policy, row, rest):
    gate = gate_of(policy)
    table, arrays = policy.decide(row, **rest), gate.decide(row, **rest)
    no_rest = {
        name: {key: [] for key in value} if isinstance(value, dict) else []
        for name, value in rest.items()
    }
    none_of = row.iloc[:0] if isinstance(row, pd.DataFrame) else np.asarray(row)[:0]
    for nothing in ([], none_of):
        pd.testing.assert_frame_equal(policy.decide(nothing, **no_rest), table.iloc[:0])
        for decide in (policy.decide_arrays, gate.decide):
            found = decide(nothing, **no_rest)
            assert {name: (x.shape, x.dtype) for name, x in found.items()} == {
                name: ((0,), x.dtype) for name, x in arrays.items()
            }
    if policy is PLAIN:
        assert policy.accepts([]).tolist() == gate.accepts([]).tolist() == []


def test_any_text_is_embedded_as_it_is_and_the_file_says_what_it_is_for(tmp_path):
    wild = ["\"\"\" ''' \\", "\nPOLICY: x\n# The end of the policy", "\udc80 ü \u202e", "a" * 500]
    notes = {text: [text, None, True, 1e-300] for text in wild}
    policy = dataclasses.replace(PLAIN, metadata=notes, certificate=certificate_of(0.8))
    gate = gate_of(policy)
    assert gate.POLICY["metadata"] == policy.metadata
    assert json.loads(policy.to_json()) == gate.POLICY
    anew = types.ModuleType("gate")  # only laid out anew, it decides
    exec(compile(ast.unparse(ast.parse(policy.to_python())), "gate.py", "exec"), anew.__dict__)
    assert anew.decide([[0.9, 0.1]])["label"].tolist() == ["no"]
    assert anew.CERTIFICATE.startswith("CERTIFIED")
    assert "GUARANTEES NOTHING" in gate_of(PLAIN).CERTIFICATE
    (tmp_path / "gate.py").write_text(PLAIN.to_python(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "gate.py"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"Import `decide`, or run: python gate.py policy.json" in done.stderr
    for change in ({"confidence": lambda p: p[:, 0]}, {"metadata": {"x": object()}}):
        said = []
        for save in (AbstentionPolicy.to_json, AbstentionPolicy.to_python):
            with pytest.raises(ValueError, match=r".") as error:
                save(dataclasses.replace(PLAIN, **change))
            said.append(str(error.value))
        assert said[0] == said[1]


def certificate_of(threshold, **change):
    """Return the certificate of a threshold that was chosen for its coverage."""
    rows = Outcomes(np.zeros(400), np.linspace(0.5, 1.0, 400))
    found = select_threshold(
        rows, objective="coverage", target=0.5, assume="independent"
    ).certificate
    return dataclasses.replace(found, threshold=threshold, **change)


@pytest.mark.parametrize(
    ("written", "edited"),
    [
        ("'cost_matrix': None, 'threshold': 0.8", "'cost_matrix': None, 'threshold': 0.2"),
        ("'classes': ['no', 'yes']", "'classes': ['yes', 'no']"),
        ("least 50 %", "least 90 %"),
        ("DIGEST = '", "DIGEST = '0"),
    ],
)
def test_an_edited_file_does_not_decide(written, edited):
    text = dataclasses.replace(PLAIN, certificate=certificate_of(0.8)).to_python()
    assert text.count(written) == 1
    with pytest.raises(ValueError, match="was changed after skselect wrote this file"):
        exec(text.replace(written, edited), {})
