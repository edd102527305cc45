"""evaluate: many metrics for one sort, each equal to its own function."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from skselect import Outcomes, Predictions, evaluate
from skselect.metrics import SPECS
from tests.brute import assert_close, examples, proba_cases
from tests.metrics.test_specs import (
    CALLS,
    REQUIRED,
    TWO_CLASSES,
    WHOLE_WEIGHTS,
    most_classes,
    score,
    some_predictions,
)

NAN = float("nan")
ALL = {name: REQUIRED.get(name, {}) for name in SPECS}
WITHOUT_PROBABILITIES = {
    name: parameters for name, parameters in ALL.items() if SPECS[name].needs != "predictions"
}
PREDICTIONS = Predictions.from_proba([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])

quiet = pytest.mark.filterwarnings("ignore::UserWarning")


def compare_with_functions(case, requested):
    values = evaluate(Predictions.from_proba(case.y_true, case.y_proba, **case.options), requested)
    assert values.index.tolist() == list(requested)
    assert values.dtype == np.float64
    expected = [score(name, case.y_true, case.y_proba, **case.options) for name in requested]
    assert_close(values, expected)


@quiet
@examples(40)
@given(proba_cases())
def test_every_metric_of_many_classes_equals_its_function(case):
    left_out = TWO_CLASSES | WHOLE_WEIGHTS
    compare_with_functions(case, {n: p for n, p in ALL.items() if n not in left_out})


@quiet
@examples(20)
@given(proba_cases(classes=(2, 2), weights=("none", "integer")))
def test_every_metric_equals_its_function(case):
    compare_with_functions(case, ALL)


@pytest.mark.parametrize(("name", "parameters"), CALLS)
def test_parameters_reach_the_metric(name, parameters):
    y_true, y_proba = some_predictions(most_classes(name))
    weight = np.arange(60) % 4 + 1
    predictions = Predictions.from_proba(y_true, y_proba, sample_weight=weight)
    value = evaluate(predictions, {name: parameters})[name]
    assert_close(value, score(name, y_true, y_proba, parameters, sample_weight=weight))


def test_outcomes_will_do():
    y_true, y_proba = some_predictions(3)
    outcomes = Outcomes.from_proba(y_true, y_proba)
    expected = [score(name, y_true, y_proba) for name in WITHOUT_PROBABILITIES]
    assert_close(evaluate(outcomes, WITHOUT_PROBABILITIES), expected)


def test_labels_and_a_confidence_will_do():
    y_true, y_proba = some_predictions(3)
    confidence = np.random.default_rng(0).integers(0, 9, 60) / 8
    predictions = Predictions.from_labels(
        y_true, y_proba.argmax(axis=1), confidence, sample_weight=np.arange(60)
    )
    options = {"confidence": confidence, "sample_weight": np.arange(60)}
    expected = [score(name, y_true, y_proba, **options) for name in WITHOUT_PROBABILITIES]
    assert_close(evaluate(predictions, WITHOUT_PROBABILITIES), expected)


def test_labels_and_scores_of_any_size_will_do_where_only_the_order_counts():
    predictions = Predictions.from_labels([0, 1, 0], [0, 0, 0], [30.0, -5.0, 2.0])
    values = evaluate(predictions, ["aurc", "augrc", "eaurc"])
    assert_close(values, [1 / 9, 1 / 18, 0.0])
    with pytest.raises(ValueError, match=r"confidences in \[0, 1\]"):
        evaluate(predictions, ["cwsa"])


def test_confidence_and_loss_are_options():
    y_true, y_proba = some_predictions(3)
    predictions = Predictions.from_proba(y_true, y_proba)

    def loss(a, b):
        return np.abs(a - b) / 2

    names = ["aurc", "cwsa", "coverage"]
    values = evaluate(predictions, names, confidence="margin", loss=loss)
    options = {"confidence": "margin", "loss": loss}
    assert_close(values, [score(name, y_true, y_proba, **options) for name in names])


def test_metrics_that_read_a_probability_use_the_largest_one():
    y_true, y_proba = some_predictions(3)
    names = [name for name, spec in SPECS.items() if spec.reads_probability]
    values = evaluate(Predictions.from_proba(y_true, y_proba), names, confidence="entropy")
    assert_close(values, [score(name, y_true, y_proba) for name in names])


def test_the_order_of_the_names_is_kept():
    assert evaluate(PREDICTIONS, ["ece", "aurc", "cwsa"]).index.tolist() == ["ece", "aurc", "cwsa"]
    assert evaluate(PREDICTIONS, iter(["ece", "aurc"])).index.tolist() == ["ece", "aurc"]


def test_one_name_is_enough():
    values = evaluate(PREDICTIONS, "aurc")
    assert isinstance(values, pd.Series)
    assert_close(values, [1 / 9])


def test_without_names_there_is_a_useful_choice():
    values = evaluate(PREDICTIONS)
    assert {"coverage", "cwsa_plus", "aurc", "augrc", "ece"} <= set(values.index)
    assert np.all(np.isfinite(values))


def test_an_undefined_value_is_nan_with_a_warning():
    with pytest.warns(UserWarning, match="No row is accepted"):
        value = evaluate(PREDICTIONS, {"selective_risk": {"threshold": 0.95}})["selective_risk"]
    assert math.isnan(value)


# Bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "metrics", ["accuracy", ["aurc", "acc"], {"AURC": {}}, [None], ["neg_aurc"]]
)
def test_an_unknown_name_is_refused(metrics):
    with pytest.raises(ValueError, match=r"metrics.* must be one of"):
        evaluate(PREDICTIONS, metrics)


@pytest.mark.parametrize(
    ("name", "parameter"),
    [(name, parameter) for name, needed in REQUIRED.items() for parameter in needed],
)
def test_a_missing_parameter_is_named(name, parameter):
    with pytest.raises(ValueError, match=f"{name}.*{parameter}|{parameter}.*{name}"):
        evaluate(PREDICTIONS, [name])


BAD = {
    "threshold nan": ({"coverage": {"threshold": NAN}}, "threshold"),
    "threshold text": ({"selective_risk": {"threshold": "0.5"}}, "threshold"),
    "threshold missing": ({"generalized_risk": {"threshold": None}}, "threshold"),
    "cwsa threshold": ({"cwsa": {"threshold": 1.0}}, "threshold"),
    "cwsa_plus threshold": ({"cwsa_plus": {"threshold": -0.5}}, "threshold"),
    "normalize": ({"cwsa": {"normalize": "none"}}, "normalize"),
    "estimator": ({"aurc": {"estimator": "best"}}, "estimator"),
    "coverage": ({"risk_at_coverage": {"coverage": 0}}, "coverage"),
    "n_bins": ({"ece": {"n_bins": 0}}, "n_bins"),
}


@pytest.mark.parametrize(("metrics", "argument"), BAD.values(), ids=BAD)
def test_a_bad_parameter_is_named(metrics, argument):
    with pytest.raises(ValueError, match=argument):
        evaluate(PREDICTIONS, metrics)


@pytest.mark.parametrize("table", [np.array([0, 1]), [0, 1], None], ids=["array", "list", "None"])
def test_only_predictions_and_outcomes_are_taken(table):
    with pytest.raises((TypeError, ValueError), match="Predictions, Outcomes or a Risk"):
        evaluate(table, ["aurc"])


def test_an_unknown_confidence_or_loss_is_named():
    with pytest.raises(ValueError, match="confidence"):
        evaluate(PREDICTIONS, ["aurc"], confidence="top")
    with pytest.raises(ValueError, match="loss"):
        evaluate(PREDICTIONS, ["aurc"], loss="log")
    labels_only = Predictions.from_labels([0, 1], [0, 1], [0.9, 0.8])
    with pytest.raises(ValueError, match="confidence"):
        evaluate(labels_only, ["aurc"], confidence="entropy")
