"""The Python file of a policy decides as the policy does, bit by bit, with numpy alone."""

import ast
import dataclasses
import functools
import json
import re
import shutil
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special

from skselect import AbstentionPolicy, Outcomes, select_threshold
from skselect._lib.decide import CONFIDENCES
from skselect.calibration._scopes import ClassCalibration, ConfidenceCalibration
from skselect.extras.cascade import Cascade
from skselect.policy.policy import External
from skselect.policy.subgroups import GroupThresholds
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.decisions import DecisionRule
from tests.brute import named
from tests.refusals import check_refused

#: Imports a gate where the named packages do not exist, and lets it decide.
ALONE = """
import sys
BANNED = {"skselect", "sklearn", "scipy", "pandas"}
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BANNED:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocker())
sys.path.insert(0, sys.argv[1])
import gate
print(gate.decide([[0.9, 0.1], [0.6, 0.4]])["label"].tolist(), BANNED & set(sys.modules))
"""


@functools.cache
def compiled(code):
    return compile(code, "gate.py", "exec")


def gate_of(policy):
    """Return the module that the policy's Python file is; its code, the same in all, first."""
    module = types.ModuleType("gate")
    code, start, data = policy.to_python().partition("\nPOLICY = ")
    exec(compiled(code), module.__dict__)
    exec(start + data, module.__dict__)
    return module


def assert_same(found, table):
    """Compare arrays, of a gate or of a policy, with the policy's table, to the last bit."""
    assert list(found) == table.columns.tolist()
    assert found["label"].dtype == object
    assert found["label"].tolist() == [None if pd.isna(x) else x for x in table["label"]]
    suggestions = [None if pd.isna(x) else x for x in table["suggestion"]]
    assert found["suggestion"].tolist() == suggestions
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


def in_all_layouts(scores, **rest):
    """Return inputs: the scores as they are, in single precision, by columns, row by row."""
    shapes = [scores, scores.astype(np.float32), np.asfortranarray(scores), scores[:1]]
    return [(shape, {name: x[: len(shape)] for name, x in rest.items()}) for shape in shapes]


def fit_maps(kind, response, n_classes, rng):
    scores, codes = raw_scores(rng, n_classes, response)
    return ClassCalibration.fit(kind, response, scores, codes, n_classes), scores


def plain_cases(rng):
    """The kernel is the library's own text; what differs are the doors and what they read."""
    scores, codes = raw_scores(rng, 5, "predict_proba")
    costs = rng.integers(1, 9, (5, 5)) * 1.0
    for decision, rest in (("min_cost", {}), ("estimator", {"y_pred": codes})):
        rule = DecisionRule(decision, costs)
        policy = AbstentionPolicy(np.arange(5), 0.5, "chosen_proba", rule=rule)
        yield tied(policy, scores, **rest), in_all_layouts(scores, **rest)
    rated = CONFIDENCES["entropy"](scores), (scores.argmax(1) == codes).astype(float)
    maps = ConfidenceCalibration.fit("beta", *rated, is_probability=False)
    yield tied(AbstentionPolicy(np.arange(5), 0.5, "entropy", maps), scores), in_all_layouts(scores)
    for n_classes, response in (
        (2, "predict_proba"), (2, "decision_function"), (3, "decision_function")
    ):  # fmt: skip
        maps, scores = fit_maps("isotonic", response, n_classes, rng)
        policy = AbstentionPolicy(np.arange(n_classes), 0.5, "margin", maps, response)
        yield tied(policy, scores), in_all_layouts(scores)
    second = np.array([0.25, 0.75, 0.0, 1.0, 0.5, 0.6])
    for threshold in (np.inf, -np.inf, 0.0, 0.75):
        yield AbstentionPolicy(np.array(["a", "b"]), threshold), in_all_layouts(second)
    rounded = [[1.0 + 1e-7, -1e-7], [0.5004, 0.5]]
    yield PLAIN, [(np.eye(2, dtype=int), {}), (rounded, {}), (second.astype(object), {})]


def labelled_cases(rng):
    scores = rng.dirichlet(np.ones(3), 30)
    kinds = [-1, 0, 7], np.uint8([0, 1, 200]), ["neg", "", "größer"], np.float32([-1, 2, 3])
    for labels in kinds:
        policy = AbstentionPolicy(np.array(labels), 0.6, "chosen_proba", rule=OWN)
        answers = rng.choice(policy.classes, 30)
        given = (answers, answers.tolist(), answers[:, None])
        yield policy, [(scores, {"y_pred": y_pred}) for y_pred in given]
    frames = [pd.DataFrame(scores, columns=names) for names in ([3, 1, 2], ["2", "3", "1"])]
    yield AbstentionPolicy(np.array([1, 2, 3]), 0.5), [(frame, {}) for frame in frames]
    yield AbstentionPolicy(np.array([5]), 0.6), [(np.ones((30, 1)), {})]
    yield AbstentionPolicy(np.array([True, False]), 0.6), [(rng.dirichlet([1, 1], 30), {})]


def grouped_cases(rng):
    scores = rng.dirichlet(np.ones(3), 8)

    def case(subgroups, by, thresholds, **options):
        rest = {} if subgroups is None else {"subgroups": subgroups}
        groups = GroupThresholds(by, thresholds, **options)
        return AbstentionPolicy(np.array(["a", "b", "c"]), 0.9, groups=groups), [(scores, rest)]

    sites = np.array([1, 1, 2, 3, 2, 2, 1, 1])
    yield case(sites, "site", {1: 0.4, 2: np.inf})
    yield case(sites.tolist(), "site", {1: 0.4, 2: 0.5, 3: 0.6}, unseen="raise")
    yield case({"site": sites}, "site", {1.0: 0.4, "1": 0.9, 2: 0.6})
    mixed = ["x", None, 2.5, True, float("nan"), "x", "1", 1]
    yield case(mixed, "kind", {"x": 0.4, 2.5: 0.3, 1: 0.2})
    pairs = {"old": [True, False] * 4, "site": sites}
    thresholds = {(1, True): 0.4, (2, False): 0.3}
    yield case(pairs, "site and old", thresholds, columns=("site", "old"))
    frame = pd.DataFrame({"b": ["x", "y"] * 4, "a": pd.array([1, None] * 4, dtype="Int64")})
    yield case(frame, "a and b", {(1, "x"): 0.4}, columns=("a", "b"))
    for thresholds in ({"a": 0.4, "b": 0.5, "c": np.inf}, {"a": 0.4}):
        yield case(None, "predicted_class", thresholds, by_answer=True)


def rated_cases(rng):
    """Answers that come with a confidence."""
    given = {"y_pred": ["yes", "no", "a text"], "confidence": np.float32([0.8, 0.9, 0.1])}
    policy = dataclasses.replace(PLAIN, confidence=External("score"))
    yield policy, [(None, given)]
    yield GIVEN, [(None, given)]
    sites = by("site", {"north": 0.5, "south": 0.9})
    rest = given | {"subgroups": ["north", "south", "north"]}
    yield dataclasses.replace(policy, **sites), [(None, rest)]
    answers = by("predicted_class", {"no": 0.5, "yes": 0.9}, by_answer=True)
    rest = given | {"y_pred": ["yes", "no", "no"]}
    yield dataclasses.replace(policy, **answers), [(None, rest)]


def combined_cases(rng):
    """Learned confidences and cascades, whose calibrations stand beside that of the policy."""
    for n_classes, kind in ((2, None), (2, "temperature"), (3, "isotonic"), (3, "beta")):
        scores, _ = raw_scores(rng, n_classes, "predict_proba")
        tables = {
            "forest": rng.permutation(scores),
            "judge": rng.dirichlet(np.ones(n_classes), 150),
        }
        maps = None if kind is None else fit_maps(kind, "predict_proba", n_classes, rng)[0]
        fitted = {x: fit_maps("temperature", "predict_proba", n_classes, rng)[0] for x in tables}
        names = ("logit", "lead", "entropy", "forest", "judge", "novelty")
        learned = LearnedScore(names, rng.normal(size=6), -0.3, fitted)
        policy = AbstentionPolicy(np.arange(n_classes), 0.5, learned, maps)
        novelty = rng.normal(size=150)
        inputs = []
        for change in (np.asarray, np.float32, np.asfortranarray, lambda table: table[:1]):
            asked = {name: change(table) for name, table in tables.items()}
            asked["novelty"] = change(novelty).tolist()
            inputs.append((change(scores), {"auxiliary": asked}))
        yield tied(policy, *inputs[0][:1], **inputs[0][1]), inputs
        rule = Cascade(("cheap", "strong"), (0.8,), (0, 1), (None, maps))
        policy = AbstentionPolicy(np.arange(n_classes), 0.9, calibration=None, cascade=rule)
        yield policy, [({"cheap": scores, "strong": tables["forest"]}, {})]


OWN = DecisionRule("estimator")
PLAIN = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.8)
GIVEN = dataclasses.replace(PLAIN, rule=OWN, confidence="chosen_proba")
CASES = [plain_cases, labelled_cases, grouped_cases, rated_cases, combined_cases]


def by(*groups, **options):
    return {"groups": GroupThresholds(*groups, **options)}


@pytest.mark.filterwarnings("ignore:subgroups")
@pytest.mark.parametrize("cases", CASES)
def test_the_file_and_the_arrays_decide_as_the_table_does(cases, rng):
    for i, (policy, inputs) in enumerate(cases(rng)):
        gate = gate_of(policy)
        for scores, rest in inputs:
            table = policy.decide(scores, **rest)
            arrays, found = policy.decide_arrays(scores, **rest), gate.decide(scores, **rest)
            with named(i):
                assert_same(arrays, table)
                assert_same(found, table)
                if scores is not None:  # answers of the user's own stay as they are
                    assert found["suggestion"].dtype == arrays["suggestion"].dtype


def test_the_file_needs_numpy_alone(tmp_path):
    PLAIN.to_python(tmp_path / "gate.py")
    run = [sys.executable, "-c", ALONE, str(tmp_path)]
    said = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert said == "['no', None] set()\n"


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="the page's command is for Unix")
def test_all_files_hold_the_code_whose_digest_the_docs_name(tmp_path, rng):
    """The kernel or the doors were changed: write the digest that this finds into the page."""
    page = Path(__file__).parents[2].joinpath("docs/howto/deployment.md").read_text("utf-8")
    (command,) = re.findall(r"^sed .*sha256sum", page, flags=re.MULTILINE)
    digests = set()
    for policy, _ in [(PLAIN, []), (CERTIFIED, []), *grouped_cases(rng), *combined_cases(rng)]:
        policy.to_python(tmp_path / "gate.py")
        run = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, check=True)
        digests.add(run.stdout.decode().split()[0])
    assert digests == set(re.findall(r"\b[0-9a-f]{64}\b", page))
    code = PLAIN.to_python().partition("\nPOLICY = ")[0].splitlines()
    assert len(code) < 1200
    assert max(map(len, code)) <= 100


# From a tuner, by name, by confidence -----------------------------------------------------------


def test_confidences_are_compared_as_float64():
    confidence = np.array([0.8, 0.7999999, 0.9], dtype=np.float32)
    thresholds = by("predicted_class", {"no": 0.5, "yes": 0.85}, by_answer=True)
    grouped, answers = dataclasses.replace(PLAIN, **thresholds), ["no", "yes", "yes"]
    for policy, subgroups in [(PLAIN, None), (grouped, answers)]:
        for door in (policy, gate_of(policy)):
            found = door.accepts(confidence, subgroups=subgroups)
            assert found.tolist() == [True, False, True]


# What does not fit ------------------------------------------------------------------------------

THREE = AbstentionPolicy(classes=np.array(["a", "b", "c"]), threshold=0.8)
VALUES = np.array([-2.0, -1.0, 1.0, 2.0])
PLATT = ClassCalibration.fit("platt", "decision_function", VALUES, np.array([0, 1, 0, 1]), 2)
SCALED = ClassCalibration.fit(
    "temperature", "predict_proba", np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]), 2
)
ASKS = LearnedScore(("lead", "forest", "age"), np.array([1.0, 0.5, 0.1]), 0.0, {"forest": SCALED})
DECIDING = dataclasses.replace(PLAIN, response="decision_function", calibration=PLATT)
RATED = dataclasses.replace(PLAIN, confidence=External("score"))
GROUPED = dataclasses.replace(PLAIN, **by("site", {1: 0.6}, unseen="raise"))
PAIRED = dataclasses.replace(PLAIN, **by("a and b", {(1, 2): 0.6}, columns=("a", "b")))
ANSWERED = dataclasses.replace(PLAIN, **by("predicted_class", {"no": 0.6}, by_answer=True))
LEARNED = dataclasses.replace(PLAIN, confidence=ASKS)
STAGED = dataclasses.replace(PLAIN, cascade=Cascade(("a", "b"), (0.8,), (0, 1), (None, None)))
ONE = [[0.5, 0.5]]
UNHASHABLE = np.empty(1, dtype=object)
UNHASHABLE[0] = [1]


def asking(**auxiliary):
    return {"auxiliary": auxiliary}


def said(*answers, **more):
    """Return the arguments of answers with a confidence."""
    return None, {"y_pred": list(answers), "confidence": [0.5] * len(answers)} | more


def of(*values):
    """Return the arguments of one row for each of some values of its subgroup."""
    return [(ONE, {"subgroups": value}) for value in values]


#: Policy, argument, and calls that all doors refuse by its name.
REFUSED = [
    (PLAIN, "y_proba", [
        (None, {}), ([[0.9, 0.1], [0.9, 0.2]], {}), ({"a": ONE}, {}), (ONE, {"confidence": [0.5]}),
        (pd.DataFrame([[0.5] * 3], columns=["no", "yes", "yes"]), {}),
    ]),
    (THREE, "y_proba", [([[-0.1, 0.6, 0.5]], {})]),
    (PLAIN, "y_pred", [(ONE, {"y_pred": ["no"]}), (None, {"confidence": [0.5]})]),
    (PLAIN, "subgroups", of(["a"])),
    (PLAIN, "auxiliary", [(ONE, asking(forest=ONE))]),
    (DECIDING, "y_proba", [(ONE, {}), ([np.inf], {})]),
    (GIVEN, "y_pred", [
        (ONE, {}), *((ONE, {"y_pred": given}) for given in (["no", "no"], ["maybe"], [None])),
    ]),
    (RATED, "y_pred", [(None, {}), said("no", confidence=[0.1, 0.2])]),
    (RATED, "confidence", [said("no", confidence=[np.inf])]),
    (RATED, "subgroups", [said("no", subgroups=[1])]),
    (GROUPED, "subgroups", [
        (ONE, {}), said("a"), *of([1, 1], "a", [[1]], [2], [np.inf], [(1, 2)], UNHASHABLE),
    ]),
    (PAIRED, "subgroups", of(
        {"a": [1]}, [1], pd.DataFrame([[1, 2, 2]], columns=[*"abb"]),
    )),
    (ANSWERED, "subgroups", of(["no"])),
    (STAGED, "y_proba", [(ONE, {}), ({"a": ONE}, {})]),
    (LEARNED, "auxiliary", [
        (ONE, {}), *((ONE, asking(**given)) for given in [
            {"forest": ONE}, {"forest": [[0.5, 0.6]], "age": [1]},
            {"forest": ONE * 2, "age": [1]}, {"forest": ONE, "age": [np.nan]},
        ]),
    ]),
]  # fmt: skip


MASK = np.ma.array([0.02, 0.98], mask=[True, False])
#: Policy, argument, and what every door refuses in the words of `MASKED` or of ragged rows.
HIDDEN = [
    (PLAIN, "y_proba", np.ma.array([[0.02, 0.98]], mask=[[True, False]]), {}),
    (PLAIN, "y_proba", np.ma.array([0.98], mask=[True]), {}),
    (PLAIN, "y_proba", [MASK], {}),
    (DECIDING, "y_proba", np.ma.array([1.0], mask=[True]), {}),
    (STAGED, "y_proba", {"a": np.ma.array([[0.1, 0.9]], mask=True), "b": ONE}, {}),
    (GIVEN, "y_pred", ONE, {"y_pred": np.ma.array(["no"], mask=[True])}),
    (RATED, "confidence", None, {"y_pred": ["no"], "confidence": np.ma.array([0.9], mask=[True])}),
    (RATED, "y_pred", None, {"y_pred": np.ma.array(["no"], mask=[True]), "confidence": [0.9]}),
    (LEARNED, "auxiliary", ONE, asking(forest=np.ma.array(ONE, mask=True), age=[1])),
    (LEARNED, "auxiliary", ONE, asking(forest=ONE, age=np.ma.array([1], mask=[True]))),
]


@pytest.mark.parametrize(("policy", "argument", "scores", "rest"), HIDDEN)
def test_all_refuse_masked_values(policy, argument, scores, rest):
    """numpy would take the values below the mask."""
    for door in (policy.decide, policy.decide_arrays, gate_of(policy).decide):
        assert "masked values" in check_refused(argument, lambda d=door: d(scores, **rest))
    whole = np.ma.array([[0.1, 0.9]], mask=False)
    for door in (PLAIN.decide_arrays, gate_of(PLAIN).decide):
        assert door(whole)["label"].tolist() == ["yes"]
    for accepts in (PLAIN.accepts, gate_of(PLAIN).accepts):
        assert "masked" in check_refused("confidence", accepts, np.ma.array([0.9], mask=[True]))


@pytest.mark.filterwarnings("ignore:subgroups")
def test_a_masked_subgroup_is_missing():
    masked = np.ma.array([1, 1], mask=[True, False])
    paired = {"a": masked, "b": [2, 2]}
    deferring = dataclasses.replace(GROUPED, **by("site", {1: 0.6}))
    for policy, subgroups in ((deferring, masked), (PAIRED, paired)):
        for door in (policy.decide_arrays, gate_of(policy).decide):
            decided = door([[0.1, 0.9]] * 2, subgroups=subgroups)
            assert decided["accepted"].tolist() == [False, True]


@pytest.mark.parametrize(("policy", "argument", "scores", "rest"), [
    (PLAIN, "y_proba", [[0.1, 0.9], [0.2, 0.3, 0.5]], {}),
    (STAGED, "y_proba", {"a": [[0.1, 0.9], [0.5]]}, {}),
    (RATED, "confidence", None, {"y_pred": ["no", "no"], "confidence": [0.5, [0.1, 0.2]]}),
    (LEARNED, "auxiliary", ONE * 2, asking(forest=[[0.1, 0.9], [0.5]], age=[1, 2])),
])  # fmt: skip
def test_all_name_the_row_of_another_length(policy, argument, scores, rest):
    for door in (policy.decide, policy.decide_arrays, gate_of(policy).decide):
        message = check_refused(argument, lambda d=door: d(scores, **rest))
        assert "row 1 holds" in message
        assert "inhomogeneous" not in message


@pytest.mark.parametrize(("policy", "argument", "calls"), REFUSED)
def test_all_refuse_what_does_not_fit_by_the_name_of_the_argument(policy, argument, calls):
    for decide in (policy.decide, policy.decide_arrays, gate_of(policy).decide):
        for scores, rest in calls:
            check_refused(argument, lambda d=decide, s=scores, r=rest: d(s, **r))


def test_doors_of_other_policies_are_refused():
    check_refused("this policy has no cascade", gate_of(PLAIN).begin, ONE)
    for policy, argument in [(PLAIN, ["a"]), (GROUPED, None)]:
        accepts = gate_of(policy).accepts
        check_refused("subgroups", lambda a=accepts, s=argument: a([0.5], subgroups=s))


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
        with named(i), warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*lack a number")
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
    policy = dataclasses.replace(PLAIN, **by("site", {1: 0.6, "b": 0.7}))
    for decide in (policy.decide, gate_of(policy).decide):
        with pytest.warns(UserWarning, match="rows belong to no") as warned:
            found.append(decide([[0.9, 0.1]] * 18, subgroups=sites))
        found.append(str(warned[0].message))
    assert_same(found[2], found[0])
    assert found[3] == found[1]


@pytest.mark.parametrize(
    ("policy", "row", "rest"),
    [
        (PLAIN, pd.DataFrame({"yes": [0.9], "no": [0.1]}), {}),
        (DECIDING, [1.5], {}),
        (GIVEN, [[0.9, 0.1]], {"y_pred": ["no"]}),
        (GROUPED, [[0.9, 0.1]], {"subgroups": [1]}),
        (PAIRED, [[0.9, 0.1]], {"subgroups": {"a": [1], "b": [2]}}),
        (ANSWERED, [[0.9, 0.1]], {}),
        (LEARNED, ONE, asking(forest=ONE, age=[1.0])),
        (dataclasses.replace(PLAIN, classes=np.array([False, True])), [[0.9, 0.1]], {}),
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


# The data in the file ---------------------------------------------------------------------------


def certificate_of(threshold):
    """Return the certificate of a threshold that was chosen for its coverage."""
    rows = Outcomes(np.zeros(400), np.linspace(0.5, 1.0, 400))
    found = select_threshold(rows, objective="coverage", target=0.5, assume="independent")
    return dataclasses.replace(found.certificate, threshold=threshold)


CERTIFIED = dataclasses.replace(PLAIN, certificate=certificate_of(0.8))


def test_any_text_is_embedded_as_it_is():
    wild = ["\"\"\" ''' \\", "\nPOLICY = x\nDIGEST = y", "\udc80 ü \u202e", "a" * 500]
    notes = {text: [text, None, True, 1e-300] for text in wild}
    policy = dataclasses.replace(CERTIFIED, metadata=notes)
    gate = gate_of(policy)
    assert gate.POLICY["metadata"] == notes
    assert json.loads(policy.to_json()) == gate.POLICY
    assert gate.CERTIFICATE.startswith("CERTIFIED")
    assert "GUARANTEES NOTHING" in gate_of(PLAIN).CERTIFICATE
    anew = types.ModuleType("gate")  # only laid out anew, it decides
    exec(compile(ast.unparse(ast.parse(policy.to_python())), "gate.py", "exec"), anew.__dict__)
    assert anew.decide([[0.9, 0.1]])["label"].tolist() == ["no"]
    for change in ({"confidence": lambda p: p[:, 0]}, {"metadata": {"x": object()}}):
        said = []
        for save in (AbstentionPolicy.to_json, AbstentionPolicy.to_python):
            with pytest.raises(ValueError, match=r".") as error:
                save(dataclasses.replace(PLAIN, **change))
            said.append(str(error.value))
        assert said[0] == said[1]


@pytest.mark.parametrize(
    ("written", "edited"),
    [
        (" 'threshold': 0.8,\n 'groups'", " 'threshold': 0.2,\n 'groups'"),
        ("'classes': ['no', 'yes']", "'classes': ['yes', 'no']"),
        ("least 50 %", "least 90 %"),
        ("DIGEST = '", "DIGEST = '0"),
    ],
)
def test_an_edited_file_does_not_decide(written, edited):
    text = CERTIFIED.to_python()
    assert text.count(written) == 1
    with pytest.raises(ValueError, match="was changed after skselect wrote this file"):
        exec(text.replace(written, edited), {})
