"""Predictions: labels and probabilities of every kind in, class codes out."""

import enum
import warnings
from collections import Counter
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, strategies as st

import skselect as sk
from skselect._lib.checks.rows import check_proba, distinct_labels, encode_labels
from skselect.display import SelectiveConfusionDisplay
from skselect.inference import compare_models, metric_interval
from skselect.metrics import augrc_score
from skselect.predictions.predictions import draw_of, find_column_order
from tests.kinds import CONTAINERS, NAMES, TABLES, TWO
from tests.refusals import check_refused, refusals

NAN = float("nan")
TRUTH = np.array([0, 1, 1, 0, 1, 0])
PROBA = np.array([[0.9, 0.1], [0.25, 0.75], [0.6, 0.4], [0.3, 0.7], [0.5, 0.5], [1.0, 0.0]])
PREDICTED = [0, 1, 0, 1, 0, 0]  # a tie goes to the first column

TRUTH3 = np.array([0, 1, 2, 2, 1])
PROBA3 = np.array(
    [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.5, 0.1, 0.4], [0.3, 0.4, 0.3]]
)
PAIR = [[0.9, 0.1], [0.2, 0.8]]
SHUFFLED = [7, 3, 5, 1, 9, 4]


# Codes and classes -----------------------------------------------------------------------


@pytest.mark.parametrize("labels", TWO.values(), ids=TWO)
def test_every_kind_of_label_gives_the_same_codes(labels):
    for container in CONTAINERS.values():
        y_true, y_pred = container(labels[TRUTH]), container(labels[PREDICTED])
        two = sk.Predictions.from_proba(y_true, PROBA)
        one = sk.Predictions.from_proba(y_true, PROBA[:, 1], pos_label=labels[1])
        assert two.y_true.dtype == two.y_pred.dtype == np.int64
        np.testing.assert_allclose(one.y_proba, two.y_proba, rtol=0, atol=1e-15)
        answers = sk.Predictions.from_labels(y_true, y_pred, np.linspace(0, 1, 6))
        for predictions in (two, one, answers):
            assert predictions.y_true.tolist() == TRUTH.tolist()
            assert predictions.y_pred.tolist() == PREDICTED
            assert predictions.classes.tolist() == labels.tolist()


@pytest.mark.parametrize(
    "labels", [[0, 1], [-1, 1], [False, True], [1, 2], [-1, 0], [0.5, 2.5], ["no", "yes"]], ids=str
)
def test_one_column_is_that_of_the_second_class_where_nothing_else_is_said(labels):
    y_true = [labels[code] for code in TRUTH]
    default = sk.Predictions.from_proba(y_true, PROBA[:, 1])
    np.testing.assert_allclose(default.y_proba, PROBA, rtol=0, atol=1e-15)
    assert sk.Predictions.from_proba(y_true, PROBA[:, 1], labels=labels).classes.tolist() == labels
    assert default.y_true.tolist() == TRUTH.tolist()
    assert default.classes.tolist() == labels
    # As classes of one kind: False == 0 would hide numbers in place of booleans.
    assert [type(c) for c in default.classes.tolist()] == [type(c) for c in labels]


@pytest.mark.parametrize(
    ("y_true", "pos_label"),
    [([1, 1], None), ([0, 0], None), ([-1, -1], None), (["a", "a"], "a"), ([True, True], True),
     ([False, False], None), ([2, 2], 2), (np.zeros(2, np.uint8), np.uint8(0))],
)  # fmt: skip
def test_one_column_works_where_only_one_class_is_true(y_true, pos_label):
    positive = y_true[0] == (1 if pos_label is None else pos_label)
    predictions = sk.Predictions.from_proba(y_true, [0.9, 0.2], pos_label=pos_label)
    right = predictions.y_pred == predictions.y_true
    assert right.tolist() == ([True, False] if positive else [False, True])
    assert predictions.y_proba.shape == (2, 2)


def test_labels_give_the_order_of_the_columns_and_classes_that_are_never_true():
    frame = pd.DataFrame(PROBA3, columns=["x", "y", "z"])
    y_true = np.array(["x", "y", "z"])[TRUTH3]
    predictions = sk.Predictions.from_proba(y_true, frame, labels=["z", "x", "y"])
    assert predictions.y_proba.tolist() == PROBA3[:, [2, 0, 1]].tolist()
    build, third = sk.Predictions.from_proba, [[0.1, 0.2, 0.7]] * 2
    of_one = build(["a", "a"], [0.9, 0.2], labels=["c", "a"], pos_label="a")
    answers = sk.Predictions.from_labels([1, 2], [2, 2], [9, -0.8], labels=[3, 2, 1])
    for found, classes, truth, predicted in [
        (predictions, ["z", "x", "y"], [1, 2, 0, 0, 2], [1, 2, 0, 1, 2]),
        (build(["a", "b"], PAIR, labels=["b", "a"]), ["b", "a"], [1, 0], [0, 1]),
        (build([2, 0], third, labels=[0, 1, 2]), [0, 1, 2], [2, 0], [2, 2]),
        (build(["a", "b"], [0.9, 0.2], pos_label="a"), ["a", "b"], [0, 1], [0, 1]),
        (of_one, ["a", "c"], [0, 0], [0, 1]),
        (answers, [3, 2, 1], [2, 1], [1, 1]),
    ]:
        assert found.classes.tolist() == classes
        assert (found.y_true.tolist(), found.y_pred.tolist()) == (truth, predicted)


# Probabilities ---------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_every_kind_of_table_gives_the_same_probabilities(table):
    y_true = np.array(NAMES)[TRUTH3]
    predictions = sk.Predictions.from_proba(y_true, TABLES[table](PROBA3))
    assert predictions.y_proba.tolist() == PROBA3.tolist()
    assert predictions.y_pred.tolist() == [0, 1, 2, 0, 1]
    for dtype, near in ((np.float32, 1e-7), (np.float16, 1e-3)):
        narrow = sk.Predictions.from_proba(y_true, TABLES[table](PROBA3.astype(dtype)))
        np.testing.assert_allclose(narrow.y_proba, PROBA3, rtol=0, atol=near)


def test_columns_are_matched_by_name_for_numbers_and_for_their_text():
    """polars and files know text columns only."""
    order = [2, 0, 1]
    for columns in ([3, 1, 2], ["3", "1", "2"]):
        frame = pd.DataFrame(PROBA3[:, order], columns=columns)
        predictions = sk.Predictions.from_proba(TRUTH3 + 1, frame)
        assert predictions.y_proba.tolist() == PROBA3.tolist()


def test_the_columns_of_a_frame_name_a_class_that_is_never_true():
    frame = pd.DataFrame([[0.1, 0.2, 0.7], [0.3, 0.6, 0.1]], columns=["c", "b", "a"])
    predictions = sk.Predictions.from_proba(["a", "b"], frame)
    assert predictions.classes.tolist() == ["a", "b", "c"]
    assert predictions.y_proba.tolist() == [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]
    assert predictions.answers.tolist() == ["a", "b"]
    numbers = pl.DataFrame({"2": [0.7, 0.1], "0": [0.1, 0.3], "1": [0.2, 0.6]})
    assert sk.Predictions.from_proba([2, 1], numbers).answers.tolist() == [2, 1]


def test_rounded_probabilities_are_accepted_and_rounding_inside_a_model_is_clipped():
    for sums_to in (0.9991, 1.0009):
        sk.Predictions.from_proba([0, 1], [[sums_to - 0.3, 0.3], [0.5, 0.5]])
    predictions = sk.Predictions.from_proba([0, 1], [[1 + 1e-9, -1e-9], [0.5, 0.5]])
    assert predictions.y_proba[0].tolist() == [1.0, 0.0]
    one = sk.Predictions.from_proba([0, 1], [-1e-9, 1 + 1e-9])
    assert one.y_proba.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert sk.Predictions.from_proba([0, 1], [[1, 0], [0, 1]]).y_proba.dtype == np.float64


# Weights and tables ----------------------------------------------------------------------


def test_to_frame_shows_what_is_known():
    proba = [[0.9, 0.1], [0.75, 0.25]]
    frame = sk.Predictions.from_proba(["no", "yes"], proba, sample_weight=[1, 2]).to_frame()
    assert frame.to_dict("list") == {
        "y_true": ["no", "yes"], "y_pred": ["no", "no"], "no": [0.9, 0.75], "yes": [0.1, 0.25],
        "sample_weight": [1.0, 2.0],
    }  # fmt: skip
    frame = sk.Predictions.from_labels([1, 2], [2, 2], [0.9, 0.8]).to_frame()
    assert frame.to_dict("list") == {
        "y_true": [1, 2], "y_pred": [2, 2], "confidence": [0.9, 0.8]
    }  # fmt: skip
    unknown = sk.Predictions(np.array([-1, 0]), np.array([1, 0]), np.array(["a", "b"])).to_frame()
    assert unknown["y_true"].isna().tolist() == [True, False]
    assert unknown["y_pred"].tolist() == ["b", "a"]


@pytest.mark.parametrize("wrap", [pd.Categorical, pd.CategoricalIndex, "series"])
@pytest.mark.parametrize(
    "categories",
    [["yes", "a longer one", "no", "maybe"], [30, -7, 2, 10**12], [0.5, -1.5, 9.0, 2.0]],
)
def test_categories_are_read_as_the_labels_of_their_rows(wrap, categories, rng):
    """Some occur nowhere, and none is in order; rows and classes are those of plain labels."""
    codes = rng.integers(0, 2, 40) * 2  # of four categories two occur
    given = pd.Categorical.from_codes(codes, categories)
    given = pd.Series(given, index=rng.permutation(40)) if wrap == "series" else wrap(given)
    proba, weight = rng.dirichlet([1, 1], 40), rng.random(40)
    for y_proba, options in (
        (proba, {}), (proba[:, 1], {}), (proba[:, 1], {"pos_label": categories[0]}),
        (proba, {"labels": [categories[2], categories[0]], "reviewer": given}),
        (np.column_stack([proba / 2, proba / 2]), {"labels": categories}),
        (proba, {"decision": "estimator", "y_pred": given, "sample_weight": weight}),
        (proba, {"unjudged": "wrong"}),
    ):  # fmt: skip
        found = sk.Predictions.from_proba(given, y_proba, **options)
        expected = sk.Predictions.from_proba(np.array(categories)[codes], y_proba, **options)
        for name in ("y_true", "y_pred", "classes", "y_proba", "reviewer"):
            one, other = getattr(found, name), getattr(expected, name)
            assert np.array_equal(one, other), (options, name)
    check_refused("y_proba", sk.Predictions.from_proba, given, proba[:39])
    some = {"labels": categories[:2]}
    check_refused("y_true", lambda: sk.Predictions.from_proba(given, proba, **some))


# Bad input -------------------------------------------------------------------------------

#: Missing labels, of every kind.
MISSING_LABELS = [
    [0.0, NAN], ["a", None], ["a", NAN], np.array(["a", NAN], dtype=object),
    np.array([1, NAN], dtype=object), pd.Series([1, None], dtype="Int64"), pd.Series(["a", None]),
    pd.Series(pd.Categorical(["a", None])), pd.Series(pd.to_datetime(["2020-01-01", None])),
    pl.Series(["a", None]), pl.Series([1, None]),
]  # fmt: skip
BAD_LABELS = [
    # No labels of one kind in one column.
    [], 1, None, [[0, 1], [1, 0]], [1, "a"], np.array([1, "a"], dtype=object), [True, "a"],
    pd.Categorical([1, "a"]), pd.Series(pd.to_datetime(["2020-01-01"] * 2)).astype("category"),
    pd.Categorical([], categories=["a"]), np.array([True, 2], dtype=object),
    pd.Series([(1, 2), (3, 4)]),
]  # fmt: skip


@pytest.mark.parametrize("bad", MISSING_LABELS)
def test_missing_labels_are_named(bad):
    check_refused("y_true", sk.Predictions.from_proba, bad, PROBA[:2])
    check_refused("y_true", sk.Predictions.from_labels, bad, ["a", "a"], [0.9, 0.8])
    check_refused("labels", lambda: sk.Predictions.from_proba(["a", "b"], PROBA[:2], labels=bad))


@pytest.mark.parametrize("bad", BAD_LABELS)
def test_bad_labels_are_named(bad):
    check_refused("y_true", sk.Predictions.from_proba, bad, PROBA[:2])
    check_refused("y_pred", sk.Predictions.from_labels, ["a", "b"], bad, [0.9, 0.8])
    if bad is not None:
        named = {"labels": bad}
        check_refused("labels", lambda: sk.Predictions.from_proba(["a", "b"], PROBA[:2], **named))


BAD_PROBA = [
    PROBA[:3], PROBA[:1], np.empty((0, 2)), np.empty((2, 0)), np.full((2, 2, 1), 0.5), 0.5, None,
    [[0.5, 0.5], [1.0]], [[NAN, 0.5], [NAN, 0.5]], [[np.inf, 0.5], [0.5, 0.5]],
    [[0.5, 0.4], [0.5, 0.5]], [[3, 1], [2, 2]], [[2.0, -2.0], [-1.0, 1.0]],
    [[1.1, -0.1], [0.5, 0.5]], [["a", "b"], ["c", "d"]], [[True, False], [False, True]],
    np.array([[0.5 + 1j, 0.5], [0.5, 0.5]]), np.array([[object(), 0.5], [0.5, 0.5]]),
    np.full((2, 3), 1 / 3), np.ones((2, 1)),
    # One column: labels, missing, out of range, decision values.
    [0, 1], [True, False], ["0", "1"], [NAN, NAN], [0.5, 1.5], [0.5, -0.5], [-2.3, 1.7],
    # Columns that name other classes, one class twice, one too many.
    pd.DataFrame([[0.5, 0.5]] * 2, columns=["no", "yes"]),
    pd.DataFrame([[0.5, 0.5]] * 2, columns=[0, 0]),
    pd.DataFrame([[0.5, 0.5, 0.0]] * 2, columns=[0, 1, "id"]),
]  # fmt: skip


@pytest.mark.parametrize("y_proba", BAD_PROBA)
def test_bad_probabilities_are_named(y_proba):
    check_refused("y_proba", sk.Predictions.from_proba, [0, 1], y_proba)


def build(y_true, y_proba=(0.3, 0.6), **options):
    return lambda: sk.Predictions.from_proba(y_true, y_proba, **options)


def answer(y_true, y_pred, **options):
    return lambda: sk.Predictions.from_labels(y_true, y_pred, [0.9, 0.8], **options)


def judge(verdict=(1, 0, 1), confidence=(0.1, 0.2, 0.3), **options):
    return lambda: sk.Predictions.from_verdicts(verdict, confidence[: len(verdict)], **options)


def count(votes):
    return lambda: sk.Predictions.count_votes(votes)


WAITING = {"labels": [0, 1], "unjudged": "wrong"}
#: What does not go together. "pos_label" helps where advice on columns does not.
REFUSED = [
    ("labels", build([0, 1], PAIR, labels=[0, 2])),
    ("labels", build([0, 1], PAIR, labels=[0, 1, 1])),
    ("y_true", build([0, 1], PAIR, labels=["0", "1"])),
    ("labels", build([0, 1], PAIR, labels=[0, 1, 2])),
    ("pos_label", build(["a", "a"])),
    ("pos_label", build([2, 2])),
    ("pos_label", build(["a", "b"], labels=["b", "a"])),
    ("y_proba", build(["a", "b"], labels=["a", "b", "c"])),
    ("pos_label", build([0, 1], pos_label=7)),
    ("pos_label", build(["a", "b"], labels=["a", "b"], pos_label="c")),
    ("pos_label", build([0, 0], pos_label="yes")),
    ("y_proba", build([0, 1], labels=[0, 1, 2], pos_label=1)),
    ("labels", build([None, None], PAIR, unjudged="wrong")),
    ("labels", build([None, 1], PAIR, unjudged="wrong")),
    ("sample_weight", build([0, None], PAIR, sample_weight=2, **WAITING)),
    ("y_true", build([], np.empty((0, 2)), **WAITING)),
    ("y_pred", answer([0, 1], [0])),
    ("y_pred", answer(["0", "1"], [0, 1])),
    ("y_pred", answer([0, 1], [0, 2], labels=[0, 1])),
    ("verdict", judge(["right", "maybe", 2])),
    ("verdict", judge([None, None, ""])),
    ("verdict", judge([["right"] * 3], [[0.1, 0.2, 0.3]])),
    ("verdict", judge([], unjudged="wrong")),
    ("confidence", judge([1, 0, 1], [0.1, 0.2])),
    ("confidence", judge([1, 0, 1], [0.1, 0.2, np.inf])),
    ("confidence", judge(["right", None], [0.5, NAN], unjudged="wrong")),
    ("audit_proba", judge(audit_proba=[0.5, 0, 1])),
    ("audit_proba", judge(audit_proba=[0.5, 2, 1])),
    ("audit_proba", judge(audit_proba=[0.5])),
    ("audit_proba", judge(["right", None], audit_proba=[1, 1], unjudged="wrong")),
    ("unjudged", judge(["right", None], unjudged="right")),
    ("unjudged", lambda: sk.Outcomes([0, 0], [1, 2], unjudged=[1, 0])),
    ("unjudged", lambda: sk.Outcomes([0, 0], [1, 2], unjudged=[True, False])),
    ("unjudged", lambda: sk.Outcomes([0, 0], [1, 2], unjudged=[True])),
    ("votes", count(["a", "b"])),
    ("votes", count(np.empty((0, 3)))),
    ("sample_weight", lambda: sk.evaluate(build(TRUTH, PROBA)(), sample_weight=SHUFFLED)),
    ("finalize", lambda: sk.evaluate(sk.SelectiveState())),
    ("policy", lambda: sk.certify(None, TRUTH, PROBA)),
    ("y_true", lambda: sk.check_policy(POLICY, TRUTH, PROBA, target=0.3)),
    ("y_true", lambda: sk.certify(POLICY, ["maybe"] * 6, PROBA)),
    ("y_proba", lambda: sk.certify(POLICY, ["yes", "no"], [0.9, 0.1])),
]


@refusals(REFUSED)
def test_what_does_not_go_together_is_named(argument, call):
    check_refused(argument, call)


# Labels that are no plain strings -----------------------------------------------------------


class Answer(str, enum.Enum):  # noqa: UP042 - whose str() is not its value
    NO = "no"
    YES = "yes"


class Plain(enum.Enum):
    NO = "no"
    YES = "yes"


class Number(enum.Enum):
    NO = 0
    YES = 1


class Mute(str):
    """Prints other text than it is equal to."""

    __slots__ = ()

    def __str__(self):
        return "x"


#: What makes a label of a plain one.
DRESSED = {
    "str Enum": Answer,
    "Enum": Plain,
    "StrEnum": enum.StrEnum("Word", {"NO": "no", "YES": "yes"}),
    "subclass of str": Mute,
    "numpy": np.str_,
}
OBJECTS = {
    "list": list,
    "tuple": tuple,
    "array": lambda labels: np.fromiter(labels, dtype=object, count=len(labels)),
    "Series": lambda labels: pd.Series(labels, dtype=object),
    "Categorical": pd.Categorical,
}


@pytest.mark.parametrize("dress", DRESSED.values(), ids=DRESSED)
@pytest.mark.parametrize("container", OBJECTS.values(), ids=OBJECTS)
def test_labels_of_any_type_keep_what_they_are(dress, container):
    """Answers of which 2 in 6 are wrong, in a type that numpy would melt into one class."""
    words = np.array(["no", "yes"])
    y_true = container([dress(word) for word in words[TRUTH]])
    y_pred = container([dress(word) for word in words[PREDICTED]])
    expected = sk.Predictions.from_labels(words[TRUTH], words[PREDICTED], np.arange(6.0))
    for rows in [
        sk.Predictions.from_labels(y_true, y_pred, np.arange(6.0), reviewer=y_true),
        sk.Predictions.from_labels(words[TRUTH], y_pred, np.arange(6.0), reviewer=y_true),
        sk.Predictions.from_proba(y_true, PROBA, decision="estimator", y_pred=y_pred),
        sk.Predictions.from_proba(y_true, PROBA, labels=[dress("no"), dress("yes")]),
    ]:
        assert rows.classes.tolist() == ["no", "yes"]
        assert type(rows.classes.tolist()[0]) is str
        assert rows.y_true.tolist() == expected.y_true.tolist()
        assert rows.y_pred.tolist() == expected.y_pred.tolist()
    assert rows.rule.decision == "argmax"


def test_single_labels_of_any_type_are_plain_values():
    words = np.array(["no", "yes"])[TRUTH]
    for kind in [Answer, Plain]:
        frame = pd.DataFrame(PROBA, columns=[kind.NO, kind.YES])
        assert sk.Predictions.from_proba(words, frame).classes.tolist() == ["no", "yes"]
        one = sk.Predictions.from_proba(words[:1], [0.9], pos_label=kind.NO)
        assert one.classes.tolist() == ["no", "not no"]
        votes, _ = sk.Predictions.count_votes([[kind.NO, kind.YES, kind.NO]])
        assert votes.tolist() == ["no"]
        rows = sk.Predictions.from_labels(words, words, np.arange(6.0))
        about = sk.Risk(0.4, delta=0.5, given_class=kind.NO)
        assert sk.select_threshold(rows, objective=about).certificate.n == 3
        policy = sk.AbstentionPolicy(np.array(["a", "b"]), 0.6, abstain_label=kind.NO)
        assert policy.abstain_label == "no"
    assert sk.Predictions.from_labels([Number.NO, 1], [0, Number.YES], [1, 2]).classes.tolist() == [
        0, 1]  # fmt: skip
    verdict = enum.Enum("verdict", {"GOOD": "right", "BAD": "wrong"}, type=str)
    judged = sk.Predictions.from_verdicts([verdict.GOOD, verdict.BAD, None], [0.9, 0.8, 0.7])
    assert judged.y_true.tolist() == [0, 1]


def test_labels_that_an_array_would_change_are_refused():
    """A trailing NUL, and a whole number that no float is: two classes would be one."""
    containers = [list, lambda x: np.array(x, dtype=object)]
    for labels in (["a", "a\0"] * 3, [2**53 + 1, 0.5] * 3):
        for container in [*containers, pd.Categorical] if labels[0] == "a" else containers:
            message = check_refused(
                "y_true", sk.Predictions.from_labels, container(labels), labels, np.arange(6.0)
            )
            assert repr(labels[0]) in message or repr(labels[1]) in message
    for labels in ([b"a", b"b"], np.array([b"a", b"b"])):
        check_refused("y_true", sk.Predictions.from_proba, labels, PAIR)


def test_policies_and_gate_files_answer_in_plain_values():
    for kind in [Answer, Plain]:
        policy = sk.AbstentionPolicy(np.array([kind.NO, kind.YES], dtype=object), 0.6)
        gate = {}
        exec(policy.to_python(), gate)
        for decide in (policy.decide_arrays, gate["decide"]):
            decided = decide(y_pred=[kind.YES, kind.NO, kind.YES], confidence=[0.9, 0.7, 0.2])
            assert decided["label"].tolist() == ["yes", "no", None]
            assert {type(label) for label in decided["suggestion"].tolist()} == {str}


# Rows by position ------------------------------------------------------------------------


WORDS = np.array(["no", "yes"])
POLICY = sk.AbstentionPolicy(classes=WORDS, threshold=0.6)
#: Each takes (y_true, y_proba), or Predictions.
DOORS = {
    "evaluate": sk.evaluate,
    "select_threshold": lambda *rows: sk.select_threshold(
        *rows, objective=sk.Best("cwsa", threshold_range=(0, 1), min_coverage=0)).threshold,
    "check_policy": lambda *rows: sk.check_policy(POLICY, *rows, target=0.3).to_dict(),
    "certify": lambda *rows: sk.certify(POLICY, *rows, target=0.3).to_dict() | {"created": ""},
    "from_policy": lambda *rows: SelectiveConfusionDisplay.from_policy(
        POLICY, *rows).confusion_matrix.tolist(),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_rows_by_position_are_predictions(door):
    given = WORDS[TRUTH], PROBA
    expected = DOORS[door](sk.Predictions.from_proba(*given))
    assert str(DOORS[door](*given)) == str(expected)
    frame = pd.DataFrame(PROBA[:, ::-1], columns=WORDS[::-1])
    assert str(DOORS[door](given[0], frame)) == str(expected)
    for rows, argument in [
        (given[:1], "y_proba"), ((given[0][:2], PROBA), "y_proba"),
        ((*given, 5), "metrics" if door == "evaluate" else "rows"),
        ((given[0], np.tile([0.2, 0.3, 0.5], (6, 1))), "y_proba"),
    ]:  # fmt: skip
        check_refused(argument, DOORS[door], *rows)
    with pytest.raises((TypeError, ValueError), match=r"rows|y_true"):
        DOORS[door]()


def test_metrics_may_follow_the_rows():
    table = sk.Predictions.from_proba(TRUTH, PROBA, sample_weight=SHUFFLED)
    expected = sk.evaluate(table, metrics={"aurc": {}})
    given = {"labels": [0, 1], "sample_weight": SHUFFLED}
    assert sk.evaluate(TRUTH, PROBA, ["aurc"], **given).equals(expected)
    assert sk.evaluate(TRUTH, PROBA, metrics="aurc", **given).equals(expected)
    assert sk.evaluate(table, iter(["aurc"])).equals(expected)
    assert sk.evaluate(sk.Outcomes([0, 1], [0.9, 0.8]), ["aurc"]).shape == (1,)


def test_rows_for_a_policy_are_read_as_the_policy_reads_them():
    column = sk.check_policy(POLICY, WORDS[TRUTH], PROBA[:, 1], target=0.3)
    assert column == sk.check_policy(POLICY, WORDS[TRUTH], PROBA, target=0.3)
    one_class = ["yes"] * 6  # the policy knows the other class
    assert sk.check_policy(POLICY, one_class, PROBA, target=0.3).n == 6


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64, np.int64, bool, float])
def test_labels_looked_up_in_a_table_are_found_like_sorted_ones(kind, rng):
    for low, high in ((0, 2), (-1, 2), (-100, 100), (-4096, 4096), (3, 5000), (0, 2**40)):
        labels = rng.integers(low, high, 500).astype(kind)
        expected = np.unique(labels)
        seen = distinct_labels(labels)
        assert np.array_equal(seen, expected)
        assert seen.dtype == expected.dtype
        classes = rng.permutation(expected)[:-1] if len(expected) > 2 else expected
        place = {label: k for k, label in enumerate(classes.tolist())}
        codes = encode_labels(labels, classes)
        assert codes.dtype == np.int64
        assert codes.tolist() == [place.get(label, -1) for label in labels.tolist()]


@pytest.mark.parametrize("n_classes", [2, 5, 100])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_probabilities_are_kept_or_rounded_or_refused(n_classes, kind, rng):
    proba = rng.dirichlet(np.ones(n_classes), 5000).astype(kind)
    assert check_proba(proba) is proba
    for value in (np.nan, -0.01, 1.5, 0.9):
        wrong = proba.copy()
        wrong[4321] = 0.5 / n_classes
        wrong[4321, 0] = value
        check_refused("y_proba" if value != 0.9 else "row 4321", check_proba, wrong)
    nearly = proba.copy()
    nearly[4321], nearly[4321, 0] = 0.0, 1.0
    nearly[4321, 1] = -1e-7
    assert np.array_equal(check_proba(nearly), np.clip(nearly, 0, 1))


# Verdicts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "verdict",
    [
        ["right", None, "WRONG", " correct ", "incorrect", ""],
        [True, None, False, True, False, None],
        [1, np.nan, 0, 1, 0, np.nan],
        pd.array([True, pd.NA, False, True, False, pd.NA], dtype="boolean"),
        pd.Series(["1", None, "0", "true", "False", None]),
        pl.Series([True, None, False, True, False, None]),
    ],
)
def test_verdicts(verdict):
    sure = [0.9, np.nan, 0.2, 0.8, 0.4, np.inf]  # read where there is a verdict
    rows = sk.Predictions.from_verdicts(verdict, sure)
    expected = sk.Predictions.from_labels(
        ["right", "wrong", "right", "wrong"], ["right"] * 4, [0.9, 0.2, 0.8, 0.4]
    )
    pd.testing.assert_frame_equal(rows.to_frame(), expected.to_frame())
    assert rows.classes.tolist() == ["right", "wrong"]
    drawn = sk.Predictions.from_verdicts(verdict, sure, audit_proba=[0.5, 0, 1, 0.25, 0.1, np.nan])
    assert drawn.sample_weight.tolist() == [2, 1, 4, 10]


# Votes ------------------------------------------------------------------------------------------


@given(st.integers(1, 6).flatmap(
    lambda k: st.lists(st.lists(st.sampled_from("abcd"), min_size=k, max_size=k), min_size=1)
))  # fmt: skip
def test_votes_are_counted(votes):
    answers, share = sk.Predictions.count_votes(votes)
    for row, answer, part in zip(votes, answers.tolist(), share.tolist(), strict=True):
        most = max(Counter(row).values())
        assert answer == min(x for x in row if row.count(x) == most)
        assert part == most / len(row)


def test_votes_of_any_kind_and_missing_ones():
    columns = {"a": [3, 2], "b": [1, 1], "c": [3, 3]}
    for votes in ([[3, 1, 3], [2, 1, 3]], pd.DataFrame(columns), pl.DataFrame(columns)):
        answers, share = sk.Predictions.count_votes(votes)
        assert answers.tolist() == [3, 1]
        np.testing.assert_allclose(share, [2 / 3, 1 / 3])
    for votes, words in [
        ([["a", "b"], ["a", None]], "row 1 has no vote in column 1"),
        ([["a", "b"], ["", "b"]], "row 1 has no vote in column 0"),
        (np.array([[1.0, np.nan]]), "row 0 has no vote in column 1"),
    ]:
        with pytest.raises(ValueError, match=words):
            sk.Predictions.count_votes(votes)


def test_rows_that_nobody_has_judged_are_kept_and_wrong():
    rows = sk.Predictions.from_verdicts(
        ["right", None, "wrong", ""], [4, 3, 2, 1], unjudged="wrong"
    )
    assert rows.unjudged.tolist() == [False, True, False, True]
    assert rows.take([3, 0]).unjudged.tolist() == [True, False]
    outcomes = sk.Outcomes.from_predictions(rows)
    assert outcomes.loss.tolist() == [0, 1, 1, 1]
    assert outcomes.take([1, 2]).unjudged.tolist() == [True, False]
    assert rows.to_frame()["y_true"].isna().tolist() == [False, True, False, True]
    dropped = sk.Predictions.from_verdicts(["right", None, "wrong", ""], [4, 3, 2, 1])
    assert (dropped.unjudged, draw_of(dropped).position.tolist()) == (None, [0, 2])
    assert draw_of(dropped.take([1])).position.tolist() == [2]


@pytest.mark.parametrize("labels", [
    ["no", None, "yes"], [0, np.nan, 1], np.array([0, np.nan, 1]), pd.Series([0, None, 1]),
    pd.array([0, None, 1], dtype="Int64"), pd.array(["no", None, "yes"]), [False, None, True],
    np.array([[0], [np.nan], [1]]),
])  # fmt: skip
def test_labels_may_be_missing_until_somebody_knows_them(labels):
    proba = [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]
    rows = sk.Predictions.from_proba(labels, proba, unjudged="wrong")
    assert rows.unjudged.tolist() == [False, True, False]
    assert rows.y_true.tolist() == [0, -1, 1]
    with pytest.raises(ValueError, match=r"y_true has (missing|masked) values"):
        sk.Predictions.from_proba(labels, proba)


def test_classes_are_named_while_labels_do_not_show_them():
    for labels in [[None, None], [None, 1]]:
        rows = sk.Predictions.from_proba(labels, PAIR, **WAITING)
        assert rows.unjudged.sum() == labels.count(None)
    assert sk.Outcomes([1, 0], [1, 2], unjudged=[True, False]).unjudged.tolist() == [True, False]


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_the_order_of_the_columns_is_found(order, rng):
    """Columns j that are about class order[j]: the best of all orders, counted one by one."""
    truth = rng.integers(0, 4, 400)
    answers = np.where(rng.random(400) < 0.8, truth, rng.integers(0, 4, 400))
    right = 0.7 * np.eye(4)[answers] + 0.3 * rng.dirichlet(np.ones(4), 400)
    classes = np.array(["zebra", "ant", "dog", "cat"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = sk.Predictions.from_proba(classes[truth], right[:, order], labels=classes)
    said = find_column_order(rows)
    assert [str(warning.message) for warning in caught] == [said] * bool(said)
    assert bool(said) == (order != (0, 1, 2, 3))
    if said:
        counts = {
            tried: np.mean(classes[list(tried)][rows.y_pred] == classes[truth])
            for tried in permutations(range(4))
        }
        best = max(counts, key=counts.get)
        assert best == order
        assert f"{classes[list(best)].tolist()}: then {100 * counts[best]:.4g} %" in said
        assert f"now {100 * counts[0, 1, 2, 3]:.4g} % are" in said


@pytest.mark.parametrize("n_classes", [2, 5])
def test_no_order_is_named_by_chance(n_classes, rng):
    for n in [1, 2, 5, 20, 200] * 20:
        truth, proba = rng.integers(0, n_classes, n), rng.dirichlet(np.ones(n_classes), n)
        assert not find_column_order(
            sk.Predictions.from_proba(truth, proba, labels=range(n_classes))
        )
    # A poor model of a rare class, which another order would serve a little better.
    truth = np.repeat([0, 1], [900, 100])
    poor = np.r_[np.full(900, 0.4), np.zeros(100)]
    assert not find_column_order(sk.Predictions.from_proba(truth, poor))
    assert not find_column_order(sk.Predictions.from_labels(truth, 1 - truth, np.ones(1000)))


@pytest.mark.parametrize("swapped", ["columns", "positive class"])
def test_a_wrong_order_of_columns_is_named_in_every_place(swapped, rng):
    truth = rng.integers(0, 2, 500)
    p = np.where(rng.random(500) < 0.9, truth, 1 - truth) * 0.8 + 0.1
    rows = truth, (np.column_stack([p, 1 - p]) if swapped == "columns" else 1 - p)
    policy = sk.AbstentionPolicy(np.array([0, 1]), threshold=0.7)
    doors = [
        lambda: sk.Predictions.from_proba(*rows),
        lambda: sk.Outcomes.from_proba(*rows),
        lambda: sk.RiskCoverageCurve.from_proba(*rows),
        lambda: sk.evaluate(*rows),
        lambda: augrc_score(*rows),
        lambda: metric_interval(*rows, "augrc"),
        lambda: compare_models(truth, {"a": rows[1], "b": rows[1]}, "augrc"),
        lambda: sk.RiskCoverageDisplay.from_predictions(*rows),
        lambda: sk.select_threshold(*rows, objective="selective_accuracy"),
        lambda: sk.check_policy(policy, *rows, target=0.05),
        lambda: sk.selective_report(*rows),
    ]
    for door in doors:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            door()
        assert any("another order, [1, 0]" in str(warning.message) for warning in caught)
    with pytest.warns(UserWarning, match=r"another order, \[1, 0\]") as caught:
        report = sk.selective_report(*rows)
    assert "another order, [1, 0]" in str(report).replace("\n  ", " ")
    with (
        pytest.warns(UserWarning, match=r"another order, \[1, 0\]"),
        pytest.raises(sk.InfeasibleTargetError, match=r"another order, \[1, 0\]"),
    ):
        sk.select_threshold(*rows, objective="risk", target=0.05)


SPELLINGS = {
    "case": ("Positive", "POSITIVE"),
    "a blank at the end": ("yes", "yes "),
    "blanks inside": ("family car", "family  car"),
    "zeros in front": ("7", "007"),
    "the format of a number": ("1", "1.0"),
    "a decimal comma": ("1.5", "1,5"),
}


@pytest.mark.parametrize("pair", SPELLINGS.values(), ids=SPELLINGS)
def test_labels_and_answers_are_of_one_vocabulary(pair):
    """No answer that occurs as a label is refused; classes that are nearly alike are named."""
    label, answer = pair
    for other in [answer, "LABEL_1"]:
        with pytest.raises(ValueError, match="y_pred: no answer is a label") as caught:
            sk.Predictions.from_labels([label] * 3, [other] * 3, [1, 2, 3])
        assert repr(label) in str(caught.value)
        assert repr(other) in str(caught.value)
    # A third class is the same in both.
    table = ["no", label, label], ["no", answer, "no"], [1, 2, 3]
    with pytest.warns(UserWarning, match="count as two") as caught:
        sk.Predictions.from_labels(*table)
    assert repr(label) in str(caught[0].message)
    assert repr(answer) in str(caught[0].message)
    sk.Predictions.from_labels(*table, labels=["no", *pair])
    with pytest.warns(UserWarning, match="count as two"):
        sk.Predictions.from_proba(pair, np.eye(2))
    sk.Predictions.from_proba(pair, np.eye(2), labels=pair)


def test_numbers_are_one_class_in_any_format():
    rows = sk.Predictions.from_labels([1, 2, 1], [1.0, 2.0, 2.0], [1, 2, 3])
    assert rows.classes.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="y_pred"):
        sk.Predictions.from_labels([1, 2, 1], ["1", "2", "2"], [1, 2, 3])


def test_rows_of_one_index_in_another_order_are_refused(rng):
    names = [f"case {k}" for k in range(6)]
    y = pd.Series([0, 1] * 3, index=names)
    p = pd.DataFrame(rng.dirichlet([1, 1], 6), index=names)
    shuffled = rng.permutation(names)
    sk.Predictions.from_proba(y, p)
    sk.Predictions.from_proba(y.loc[shuffled], p.reset_index(drop=True))
    score = p.max(axis=1)
    policy = sk.AbstentionPolicy(np.array([0, 1]), 0.5)
    for name, call in [
        ("y_proba", lambda: sk.Predictions.from_proba(y.loc[shuffled], p)),
        ("y_proba", lambda: sk.evaluate(y, p.loc[shuffled])),
        ("sample_weight", lambda: sk.Predictions.from_proba(
            y, p, sample_weight=score.loc[shuffled])),
        ("reviewer", lambda: sk.Predictions.from_proba(y, p, reviewer=y.loc[shuffled])),
        ("y_pred", lambda: sk.Predictions.from_labels(y, y.loc[shuffled], score)),
        ("confidence", lambda: sk.Predictions.from_labels(y, y, score.loc[shuffled])),
        ("confidence", lambda: sk.Predictions.from_verdicts(y, score.loc[shuffled])),
        ("y_proba", lambda: sk.check_policy(policy, y, p.loc[shuffled], target=0.3)),
        ("subgroups", lambda: sk.check_policy(
            policy, y, p, target=0.3, subgroups=y.loc[shuffled])),
        ("subgroups", lambda: sk.select_threshold(
            y, p, objective="risk", target=0.3, subgroups=y.loc[shuffled])),
    ]:  # fmt: skip
        assert "another order" in check_refused(name, call)
