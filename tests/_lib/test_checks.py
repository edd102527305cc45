"""One table of bad input: each case is a clear error that names the argument and the remedy."""

import types
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB

import skselect as sk
from skselect.inference.intervals import metric_interval
from skselect.metrics._areas import aurc_score
from skselect.metrics._confidence_weighted import cw_f1_score
from skselect.metrics._threshold import cwsa_score, selective_risk_score
from skselect.policy.subgroups import GroupThresholds
from skselect.scoring import get_scorer, on_accepted
from tests.refusals import check_refused, refusals

Y, P = [0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]
X, Y_MANY = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
POLICY = sk.AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)


class Untrained(GaussianNB):
    """Must be refused before it is trained."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError


def masked(values):
    return np.ma.masked_array(values, np.arange(np.size(values)).reshape(np.shape(values)) == 0)


#: Beside the mistakes of newcomers: the argument that the message names.
REFUSED = [
    ("y_proba", lambda: aurc_score(Y, [[1.5, -0.5]] * 3)),
    ("labels", lambda: aurc_score([0, 1, 2], P)),
    ("pos_label", lambda: aurc_score(["no", "no", "no"], [0.1, 0.9, 0.2])),
    ("rows", lambda: sk.evaluate(Y)),
    ("target", lambda: sk.select_threshold(Y, P, objective="risk", target="2,5 %")),
    ("path_or_text", lambda: sk.AbstentionPolicy.from_json("x.json")),
    ("y_true", lambda: aurc_score(masked(Y), P)),
    ("y_proba", lambda: aurc_score(Y, masked(P))),
    ("sample_weight", lambda: aurc_score(Y, P, sample_weight=masked([1.0, 1, 1]))),
    ("y_proba", lambda: POLICY.decide(masked(P))),
    ("y_true", lambda: aurc_score(np.array(["2020-01-01"] * 3, dtype="M8[D]"), P)),
    ("y", lambda: sk.SelectiveClassifier(GaussianNB()).fit(X, Y_MANY.astype("M8[D]"))),
]


@refusals(REFUSED)
def test_bad_input_is_a_clear_error(argument, call):
    check_refused(argument, call)


def seldom():
    """Return labels and probabilities of 60 rows, 3 of them wrong, and a group with none."""
    y, sure = Y_MANY.copy(), np.linspace(0.6, 0.99, 60)
    proba = np.column_stack([1 - sure, sure])
    proba[y == 0] = proba[y == 0, ::-1]
    y[:3] = 1 - y[:3]
    return y, proba


RARE = seldom()
SITES = GroupThresholds("site", {"a": 0.5})


def gate():
    policy = sk.AbstentionPolicy(classes=np.array([0, 1]), threshold=0.5, groups=SITES)
    made = types.ModuleType("gate")
    exec(compile(policy.to_python(), "gate.py", "exec"), made.__dict__)
    return made


def strange_labels():
    monitor = sk.SelectiveRiskMonitor(POLICY, target=0.5)
    monitor.add_decisions(P * 20, ids=[f"case {k}" for k in range(60)])
    monitor.add_labels(range(60), [1] * 60)


#: Calls that warn: about nothing, about few rows, about what was probably not meant.
WARNS = {
    "evaluate": lambda: sk.evaluate([0, 0], [[0.9, 0.1]] * 2, ["failure_auroc"], labels=[0, 1]),
    "a metric at a threshold": lambda: selective_risk_score(Y, P, threshold=0.99),
    "a metric of small weights": lambda: aurc_score(Y, P, sample_weight=[0.1] * 3),
    "metric_interval": lambda: metric_interval(*RARE, "augrc"),
    "select_threshold": lambda: sk.select_threshold(*RARE, objective=sk.Best("cwsa_plus", min_coverage=0.99)),
    "a policy of subgroups": lambda: sk.AbstentionPolicy(
        classes=np.array([0, 1]), threshold=0.5, groups=SITES
    ).decide(P, subgroups=["a", "b", "a"]),
    "a gate": lambda: gate().decide(P, subgroups=["a", "b", "a"]),
    "SelectiveClassifier": lambda: sk.SelectiveClassifier(GaussianNB().fit(X, Y_MANY)).fit(X, Y_MANY),
    "ThresholdTuner": lambda: sk.ThresholdTuner(GaussianNB().fit(X, Y_MANY), objective="coverage",
                                             target=0.1).fit(X, Y_MANY),
    "PrecomputedClassifier": lambda: sk.PrecomputedClassifier(
        kind="logit", classes=[0, 1]).predict_proba(np.array(P)),
    "cross_val_score": lambda: cross_val_score(
        GaussianNB(), X, Y_MANY, scoring=on_accepted("accuracy", threshold=0.999), cv=2),
    "SelectiveRiskMonitor": strange_labels,
}  # fmt: skip


@pytest.mark.parametrize("door", WARNS)
def test_a_warning_points_at_the_line_that_called(door):
    with pytest.warns(UserWarning, match=".") as caught:
        WARNS[door]()
    assert {one.filename for one in caught} == {__file__}


def test_there_is_one_way_to_warn():
    room = Path(sk.__file__).parent
    calls = [p.name for p in room.rglob("*.py") if "warnings.warn(" in p.read_text()]
    assert calls == ["decide.py"]


PREDICTIONS, OUTCOMES = sk.Predictions.from_proba(Y, P), sk.Outcomes(Y, [0.9, 0.8, 0.6])
#: Arguments that must not end up whole in a message.
DOORS = {
    "y_true": lambda x: aurc_score(x, P),
    "y_proba": lambda x: aurc_score(Y, x),
    "labels": lambda x: aurc_score(Y, P, labels=x),
    "pos_label": lambda x: aurc_score(Y, [0.1, 0.9, 0.6], pos_label=x),
    "confidence": lambda x: aurc_score(Y, P, confidence=x),
    "loss": lambda x: aurc_score(Y, P, loss=x),
    "sample_weight": lambda x: aurc_score(Y, P, sample_weight=x),
    "cwsa threshold": lambda x: cwsa_score(Y, P, threshold=x),
    "average": lambda x: cw_f1_score(Y, P, average=x),
    "metrics": lambda x: sk.evaluate(PREDICTIONS, {"cwsa": x}),
    "objective": lambda x: sk.select_threshold(OUTCOMES, objective=x),
    "target": lambda x: sk.select_threshold(OUTCOMES, objective="risk", target=x),
    "delta": lambda x: sk.select_threshold(OUTCOMES, objective="risk", target=0.1, delta=x),
    "given_class": lambda x: sk.select_threshold(PREDICTIONS, objective=sk.Risk(0.1, given_class=x)),
    "constraint": lambda x: sk.select_threshold(OUTCOMES, objective=sk.Best("cwsa", constraint=x)),
    "policy": POLICY.decide,
    "policy threshold": lambda x: sk.AbstentionPolicy(classes=np.array([0, 1]), threshold=x),
    "estimator": lambda x: sk.SelectiveClassifier(x).fit(X, Y_MANY),
    "calibration": lambda x: sk.SelectiveClassifier(GaussianNB(), calibration=x).fit(X, Y_MANY),
    "abstain_label": lambda x: sk.SelectiveClassifier(
        GaussianNB(), threshold=0.5, abstain_label=x).fit(X, Y_MANY),
    "group_by": lambda x: sk.ThresholdTuner(GaussianNB(), group_by=x).fit(X, Y_MANY),
    "state": lambda x: sk.SelectiveState().update_confidence(x, [0]),
    "scorer": lambda x: get_scorer("cwsa", threshold=x),
}  # fmt: skip
DATA = {
    "array": np.full((30, 20, 2), 1.5),
    "dict": dict.fromkeys(range(3000), 0.5),
    "list": list(range(3000)),
    "text": "text" * 3000,
}


@pytest.mark.parametrize("data", DATA)
def test_a_message_does_not_print_the_data(data):
    for door, ask in DOORS.items():
        with pytest.raises((ValueError, TypeError)) as found:
            ask(DATA[data])
        assert len(str(found.value)) < 800, door


DAYS = np.array(["2020-01-01", "2020-01-02", "2020-01-05"], dtype="M8[D]")
#: What is no column of numbers, though numpy takes some of it for one.
NO_NUMBERS = {
    "dates": DAYS,
    "spans of time": DAYS - DAYS[0],
    "dates among objects": np.array([DAYS[0], DAYS[1], 0.5], dtype=object),
    "too large for a float": np.array([10**400, 1, 1], dtype=object),
    "complex numbers": np.array([0.5, 0.6, 0.7j]),
    "rows of several lengths": [[0.5], [0.6, 0.7], [0.8]],
    "records": np.array([(1, 0.5)] * 3, dtype="i4,f8"),
}
#: Where each row has a number, or each class: the argument, and a call with it.
NUMBERS = [
    ("sample_weight", lambda x: aurc_score(Y, P, sample_weight=x)),
    ("sample_weight", lambda x: sk.SelectiveClassifier(GaussianNB()).fit(X[:3], Y, sample_weight=x)),
    ("confidence", lambda x: aurc_score(Y, P, confidence=x)),
    ("confidence", POLICY.accepts),
    ("confidence", lambda x: POLICY.decide(y_pred=Y, confidence=x)),
    ("confidence", lambda x: gate().accepts(
        np.array(x, dtype=object) if isinstance(x, list) else x, subgroups=["a"] * 3)),
    ("confidence", lambda x: sk.Predictions.from_verdicts([1, 0, 1], x)),
    ("confidence", lambda x: sk.Predictions.from_verdicts([1, None, 1], x)),
    ("confidence", lambda x: sk.Predictions.from_labels(Y, Y, x)),
    ("audit_proba", lambda x: sk.Predictions.from_verdicts([1, 0, 1], P[0] + P[1][:1], audit_proba=x)),
    ("loss", lambda x: sk.Outcomes(x, P[0] + P[1][:1])),
    ("y_proba", POLICY.decide),
    ("y_proba", lambda x: POLICY.decide(x if isinstance(x, list) else np.column_stack([x, x]))),
    ("y_proba", lambda x: sk.evaluate(Y, x if isinstance(x, list) else np.column_stack([x, x]))),
    ("X", lambda x: sk.SelectiveClassifier(
        sk.PrecomputedClassifier([0, 1])).fit(x if isinstance(x, list) else np.column_stack([x, x]), Y)),
]  # fmt: skip


def test_the_name_of_a_column_in_the_place_of_its_values_is_named():
    for argument, ask in [
        ("subgroups", lambda x: sk.select_threshold(Y, P, objective="coverage", target=0.5, subgroups=x)),
        ("subgroups", lambda x: sk.selective_report(Y, P, subgroups=x)),
        ("y_true", lambda x: sk.evaluate(x, P)),
        ("y_pred", lambda x: sk.Predictions.from_labels(Y, x, P[0] + P[1][:1])),
        ("verdict", lambda x: sk.Predictions.from_verdicts(x, P[0] + P[1][:1])),
        ("reviewer", lambda x: sk.Predictions.from_proba(Y, P, reviewer=x)),
        ("groups", lambda x: sk.ThresholdTuner(GaussianNB()).fit(X, Y_MANY, groups=x)),
        ("sample_weight", lambda x: aurc_score(Y, P, sample_weight=x)),
    ]:  # fmt: skip
        with pytest.raises(
            ValueError, match=rf"^{argument} must be values, not the text 'age'.*X\['age'\]"
        ):
            ask("age")


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_number_is_refused_by_the_name_of_the_argument(kind):
    for argument, ask in NUMBERS:
        with pytest.raises(ValueError, match=rf"^{argument}\b"):
            ask(NO_NUMBERS[kind])


@pytest.mark.parametrize("value", [10**400, -(10**400), Fraction(10**400)])
@pytest.mark.parametrize(
    ("argument", "ask"),
    [
        ("target", lambda x: sk.select_threshold(Y, P, objective=sk.Risk(x))),
        ("threshold", lambda x: sk.AbstentionPolicy(np.array([0, 1]), x)),
        ("threshold", lambda x: sk.SelectiveClassifier(GaussianNB(), threshold=x).fit(X, Y_MANY)),
        ("abstain_label", lambda x: sk.AbstentionPolicy(np.array([0, 1]), 0.5, abstain_label=x)),
        ("abstain_label", lambda x: sk.AbstentionPolicy(np.array([0.0, 1]), 0.5, abstain_label=x)),
        ("sample_weight", lambda x: aurc_score(Y, P, sample_weight=x)),
        ("classes", lambda x: sk.AbstentionPolicy(np.array([x, 1], dtype=object), 0.5)),
        ("y_true", lambda x: aurc_score([x, 1, 1], P)),
    ],
)
def test_a_number_that_no_float_can_hold_is_refused(argument, ask, value):
    with pytest.raises(ValueError, match=rf"^{argument}\b"):
        ask(value)


def test_labels_of_any_kind_meet_the_classes_of_a_monitor():
    policy = sk.AbstentionPolicy(np.array(["no", "yes"]), 0.5)
    texts = np.array(["no", "yes", "yes"], dtype=np.dtypes.StringDType())
    monitor = sk.SelectiveRiskMonitor(policy, target=0.5)
    assert monitor.update(texts, P).status_.n_known == 3
    for labels in ([Fraction(1, 2)] * 3, [2**70, 1, 1], [0, 1, 1], [True, False, True]):
        check_refused("y", monitor.update, labels, P)
    with pytest.raises(ValueError, match="ids holds records or raw bytes"):
        monitor.add_decisions(P, ids=np.array([b"a", b"b", b"c"], dtype="V1"))


def test_good_arrays_are_left_as_they_were():
    y, proba, weight = np.array(Y), np.array(P), np.array([1.0, 2.0, 3.0])
    before = [a.copy() for a in (y, proba, weight)]
    sk.evaluate(sk.Predictions.from_proba(y, proba, sample_weight=weight))
    for array, copy in zip((y, proba, weight), before, strict=True):
        assert np.array_equal(array, copy)
