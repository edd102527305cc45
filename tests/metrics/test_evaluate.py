"""evaluate: many metrics for one sort, each equal to its own function."""

from functools import cache

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import skselect as sk
from skselect.metrics import SPECS
from skselect.scoring import get_scorer
from tests.brute import assert_close
from tests.metrics.test_laws import (
    REQUIRED,
    FixedAnswers,
    score,
    some_predictions,
    takes,
)

NAN = float("nan")
ALL = {name: REQUIRED[name] for name in SPECS}
WITHOUT_PROBABILITIES = {
    name: parameters for name, parameters in ALL.items() if SPECS[name].needs != "predictions"
}
PREDICTIONS = sk.Predictions.from_proba([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])

quiet = pytest.mark.filterwarnings("ignore::UserWarning")


def test_outcomes_or_labels_with_a_confidence_will_do():
    y_true, y_proba = some_predictions(3)
    weight = np.arange(60)
    outcomes = sk.Outcomes.from_proba(y_true, y_proba, sample_weight=weight)
    confidence = np.random.default_rng(0).integers(0, 9, 60) / 8
    answers = y_proba.argmax(axis=1)
    labels = sk.Predictions.from_labels(y_true, answers, confidence, sample_weight=weight)
    for rows, own in [(outcomes, {}), (labels, {"confidence": confidence})]:
        options = own | {"sample_weight": weight}
        expected = [score(name, y_true, y_proba, **options) for name in WITHOUT_PROBABILITIES]
        assert_close(sk.evaluate(rows, WITHOUT_PROBABILITIES), expected)


def test_labels_and_scores_of_any_size_will_do_where_only_the_order_counts():
    predictions = sk.Predictions.from_labels([0, 1, 0], [0, 0, 0], [30.0, -5.0, 2.0])
    values = sk.evaluate(predictions, ["aurc", "augrc", "eaurc"])
    assert_close(values, [1 / 9, 1 / 18, 0.0])
    with pytest.raises(ValueError, match=r"confidences in \[0, 1\]"):
        sk.evaluate(predictions, ["cwsa"])


def test_confidence_and_loss_are_options():
    y_true, y_proba = some_predictions(3)
    predictions = sk.Predictions.from_proba(y_true, y_proba)

    def loss(a, b):
        return np.abs(a - b) / 2

    names = ["aurc", "cwsa", "coverage"]
    values = sk.evaluate(predictions, names, confidence="margin", loss=loss)
    options = {"confidence": "margin", "loss": loss}
    assert_close(values, [score(name, y_true, y_proba, **options) for name in names])


# One number on every path ----------------------------------------------------------------

COSTS = [[0, 1], [10, 0]]
#: How rows are judged: options of `Predictions.from_proba`, and the confidence asked for.
JUDGED = {
    "max_proba": ({}, None),
    "margin": ({}, "margin"),
    "entropy": ({}, "entropy"),
    "gini": ({}, "gini"),
    "min_cost": ({"decision": "min_cost", "cost_matrix": COSTS}, None),
    "chosen_proba": ({"decision": "min_cost", "cost_matrix": COSTS}, "chosen_proba"),
}


def scored_rows():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(200), 3)
    return (rng.random(200) < p**2).astype(int), np.column_stack([1 - p, p])


@cache
def fit_and_report(scored):
    """Return a model that judges rows in this way, and the metrics in its report."""
    y_true, y_proba = scored_rows()
    how, confidence = JUDGED[scored]
    model = sk.SelectiveClassifier(
        FixedAnswers(), threshold=0.5, confidence=confidence or "auto", **how
    )
    report = sk.selective_report(y_true, y_proba, policy=model.fit(y_proba, y_true).policy_)
    return model, report.to_frame().set_index("metric")["value"]


def paths(name, scored):
    """Yield what each way to a metric returns, and what the way is called."""
    spec, parameters = SPECS[name], REQUIRED[name]
    y_true, y_proba = scored_rows()
    how, confidence = JUDGED[scored]
    predictions = sk.Predictions.from_proba(y_true, y_proba, **how)
    asked = {} if confidence is None else {"confidence": confidence}
    yield "evaluate", sk.evaluate(predictions, {name: parameters}, **asked)[name]
    if not how:
        own = asked if takes(name, "confidence") else {}
        yield "function", spec.function(y_true, y_proba, **parameters, **own)
        table = sk.inference.metrics_by_group(
            y_true, y_proba, np.arange(len(y_true)) % 2, {name: parameters},
            confidence_level=None, **asked,
        )  # fmt: skip
        yield "by group", table["value"][0]
    if spec.interval and not how:
        found = sk.inference.metric_interval(
            y_true, y_proba, name, n_resamples=2, metric_params=parameters, **asked
        )
        yield "interval", found.estimate
    if spec.interval and spec.chance_raises != "value" and not spec.signed:
        table = sk.inference.compare_models(
            None, {"a": predictions, "b": predictions}, name, n_resamples=2,
            metric_params=parameters, **asked,
        )  # fmt: skip
        yield "comparison", table["estimate"]["a"]
    model, reported = fit_and_report(scored)
    yield "scorer", get_scorer(spec.scorer_name, **parameters)(model, y_proba, y_true)
    if name in reported.index:
        yield "report", reported[name]


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("scored", JUDGED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_way_to_a_metric_ends_in_the_same_number(name, scored):
    values = dict(paths(name, scored))
    by_scorer = values.pop("scorer")
    value = values["evaluate"]
    assert_close(by_scorer, SPECS[name].as_score(value))
    assert_close(list(values.values()), [value] * len(values))


@pytest.mark.parametrize("name", ["csr_test", "ecd_test", "ecce_test", "t_cal_test"])
def test_tests_of_calibration_read_the_probability_of_the_answer(name):
    y_true, y_proba = some_predictions(2, n=200)
    test = getattr(sk.metrics, name)
    seed = {} if name == "ecce_test" else {"random_state": 0}
    found = test(y_true, y_proba, confidence="margin", **seed)
    assert repr(found) == repr(test(y_true, y_proba, **seed))


def test_an_array_or_a_function_is_read_as_the_probability_on_every_path():
    y_true, y_proba = some_predictions(3)
    predictions = sk.Predictions.from_proba(y_true, y_proba)
    for name in ["top_label_brier", "cw_f1", "cw_auc"]:
        expected = score(name, y_true, y_proba, confidence=y_proba[:, 0])
        assert expected != score(name, y_true, y_proba)
        for confidence in (y_proba[:, 0], lambda p: p[:, 0]):
            assert sk.evaluate(predictions, [name], confidence=confidence)[name] == expected
            found = sk.inference.metric_interval(
                y_true, y_proba, name, n_resamples=2, confidence=confidence
            )
            assert found.estimate == expected


def test_a_state_that_counted_margins_knows_no_probability():
    state = sk.SelectiveState(confidence="margin").update(*some_predictions(2))
    with pytest.raises(ValueError, match="reads the probability of being right"):
        state.evaluate(["csr"])
    assert state.evaluate(["aurc"])["aurc"] > 0


def test_the_order_of_the_names_is_kept_and_without_names_there_is_a_useful_choice():
    assert sk.evaluate(PREDICTIONS, ["ece", "aurc", "cwsa"]).index.tolist() == [
        "ece",
        "aurc",
        "cwsa",
    ]
    assert sk.evaluate(PREDICTIONS, iter(["ece", "aurc"])).index.tolist() == ["ece", "aurc"]
    values = sk.evaluate(PREDICTIONS)
    assert {"coverage", "cwsa_plus", "aurc", "augrc", "ece"} <= set(values.index)
    assert np.all(np.isfinite(values))


# Bad input -------------------------------------------------------------------------------


LABELS_ONLY = sk.Predictions.from_labels([0, 1], [0, 1], [0.9, 0.8])
MISSING = [(name, parameter) for name, needed in REQUIRED.items() for parameter in needed]


@pytest.mark.parametrize(
    ("rows", "asked", "options", "message"),
    [
        *((PREDICTIONS, unknown, {}, r"metrics.* must be one of")
          for unknown in ("accuracy", ["aurc", "acc"], {"AURC": {}}, [None])),
        (PREDICTIONS, ["neg_aurc"], {}, "^metrics: 'neg_aurc' is a scorer; the metric is 'aurc'"),
        (GaussianNB(), ["aurc"], {}, r"^y_true must be .*GaussianNB; call evaluate\(y, classifier"),
        *((PREDICTIONS, [name], {}, f"{name}.*{one}|{one}.*{name}") for name, one in MISSING),
        *((rows, ["aurc"], {}, "Predictions or Outcomes or Risk") for rows in ([0, 1], None)),
        (PREDICTIONS, ["aurc"], {"confidence": "top"}, "confidence"),
        (PREDICTIONS, ["aurc"], {"loss": "log"}, "loss"),
        (LABELS_ONLY, ["aurc"], {"confidence": "entropy"}, "confidence"),
    ],
)  # fmt: skip
def test_bad_requests_are_explained(rows, asked, options, message):
    with pytest.raises(ValueError, match=message):
        sk.evaluate(rows, asked, **options)
