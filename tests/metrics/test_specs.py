"""What every metric promises: this file iterates over SPECS, so new metrics are covered.

A metric that needs parameters gets them from REQUIRED.
"""

import inspect
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

from skselect import metrics
from skselect.confidence import CONFIDENCES
from skselect.metrics import SPECS
from tests.brute import assert_close, examples, proba_cases, repeated

NAN = float("nan")

#: Parameters without a default.
REQUIRED = {
    "risk_at_coverage": {"coverage": 0.7},
    "coverage_at_risk": {"max_risk": 0.3},
    "review_rate_at_reliability": {"reliability": 0.8},
}
#: Other parameters worth a look.
OPTIONS = {
    "coverage": [{"threshold": 0.8}],
    "selective_risk": [{"threshold": 0.8}],
    "selective_cost": [{"threshold": 0.8, "abstention_cost": 0.3}],
    "cwsa": [{"threshold": 0.8}, {"threshold": 0.6, "normalize": "all"}],
    "cwsa_plus": [{"threshold": 0.8}, {"threshold": 0.0, "normalize": "all"}],
    "aurc": [{"estimator": "integral"}, {"ties": "block"}],
    "accuracy_rejection_auc": [{"estimator": "integral"}],
    "augrc": [{"coverage_range": (0.3, 0.8)}],
    "aumcc": [
        {"metric": "selective_accuracy"},
        {"metric": "cwsa", "thresholds": [0.3, 0.6, 0.9]},
        {"metric": "generalized_risk", "estimator": "exact"},
    ],
    "csr": [{"eps": 0.125}],
    "ece": [{"strategy": "quantile", "n_bins": 4}, {"n_bins": 3}],
}
CALLS = [
    (name, {**REQUIRED.get(name, {}), **chosen})
    for name in SPECS
    for chosen in [{}, *OPTIONS.get(name, [])]
]
each_metric = pytest.mark.parametrize("name", SPECS)
each_call = pytest.mark.parametrize(("name", "parameters"), CALLS)


def score(name, y_true, y_proba, parameters=None, **options):
    """Return the metric; a documented warning is let through, a numpy warning is not."""
    parameters = REQUIRED.get(name, {}) if parameters is None else parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        return SPECS[name].function(y_true, y_proba, **parameters, **options)


def some_predictions(n_classes, n=60, seed=0):
    """Return codes and probabilities with ties, errors and every class."""
    rng = np.random.default_rng(seed)
    proba = rng.multinomial(8, rng.dirichlet(np.ones(n_classes), n)) / 8
    y_true = np.where(rng.random(n) < 0.7, proba.argmax(axis=1), rng.integers(0, n_classes, n))
    y_true[:n_classes] = range(n_classes)
    return y_true, proba


# The table -------------------------------------------------------------------------------


@each_metric
def test_the_table_is_consistent(name):
    spec = SPECS[name]
    assert spec.name == name
    assert spec.function.__name__ in metrics.__all__
    assert getattr(metrics, spec.function.__name__) is spec.function
    assert spec.needs in {"predictions", "outcomes", "curve"}
    assert spec.scorer_name == (name if spec.greater_is_better else f"neg_{name}")
    assert spec.undefined
    assert spec.reference
    assert ("threshold" in inspect.signature(spec.function).parameters) == spec.at_threshold


def test_every_public_score_is_in_the_table():
    public = {name for name in metrics.__all__ if name.endswith(("_score", "_error"))}
    assert public == {spec.function.__name__ for spec in SPECS.values()}


PUBLIC = sorted(
    name for name in metrics.__all__ if inspect.isfunction(getattr(metrics, name))
    and name != "evaluate"
)  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_metric_names_the_shared_arguments(name):
    parameters = inspect.signature(getattr(metrics, name)).parameters
    assert list(parameters)[:2] == ["y_true", "y_proba"]
    shared = ["confidence", "loss", "labels", "pos_label", "sample_weight"]
    for argument in shared:
        assert parameters[argument].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["loss"].default == "zero_one"
    others = [parameters[argument].default for argument in shared if argument != "loss"]
    assert others == [None] * 4


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_documented(name):
    function = getattr(metrics, name)
    text = inspect.getdoc(function)
    assert "%(" not in text
    for parameter in inspect.signature(function).parameters:
        assert f"\n{parameter} : " in text or f"{parameter}, " in text, parameter


@each_metric
@examples(40)
@given(case=proba_cases())
def test_values_lie_in_the_range_of_the_table(name, case):
    low, high = SPECS[name].range.strip("[]()").split(", ", 1)
    high = 1.0 if high.startswith("max(1, d") else float(high)
    value = score(name, case.y_true, case.y_proba, **case.options)
    assert isinstance(value, float)
    assert math.isnan(value) or float(low) - 1e-12 <= value <= high + 1e-12


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.at_threshold])
@examples(20)
@given(case=proba_cases())
def test_no_value_is_worse_than_the_worst_of_the_table(name, case):
    spec = SPECS[name]
    value = score(name, case.y_true, case.y_proba, **case.options)
    assert math.isfinite(spec.worst)
    if not math.isnan(value):
        sign = 1 if spec.greater_is_better else -1
        assert sign * value >= sign * spec.worst - 1e-12


# Rows and weights ------------------------------------------------------------------------


@each_call
@examples(25)
@given(case=proba_cases(), seed=st.integers(0, 1000))
def test_the_order_of_the_rows_does_not_matter(name, parameters, case, seed):
    order = np.random.default_rng(seed).permutation(len(case.y_true))
    weight = None if case.weight is None else case.weight[order]
    shuffled = score(
        name, case.y_true[order], case.y_proba[order], parameters,
        labels=case.labels, sample_weight=weight,
    )  # fmt: skip
    assert_close(shuffled, score(name, case.y_true, case.y_proba, parameters, **case.options))


@each_call
@examples(30)
@given(case=proba_cases(weights=("integer",)))
def test_a_whole_weight_is_the_row_repeated(name, parameters, case):
    y_true = np.array(repeated(case.y_true, case.weight))
    y_proba = np.array(repeated(case.y_proba, case.weight))
    expected = score(name, y_true, y_proba, parameters, labels=case.labels)
    actual = score(name, case.y_true, case.y_proba, parameters, **case.options)
    assert_close(actual, expected, tiny=1e-11 if name == "naurc" else 1e-13)


@each_call
def test_a_weight_of_zero_is_an_absent_row(name, parameters):
    y_true, y_proba = some_predictions(3)
    weight = np.arange(60) % 3 > 0
    actual = score(name, y_true, y_proba, parameters, labels=[0, 1, 2], sample_weight=weight)
    expected = score(name, y_true[weight], y_proba[weight], parameters, labels=[0, 1, 2])
    assert_close(actual, expected)


@each_call
def test_weights_of_one_are_no_weights(name, parameters):
    y_true, y_proba = some_predictions(3)
    actual = score(name, y_true, y_proba, parameters, sample_weight=np.ones(60))
    assert actual == score(name, y_true, y_proba, parameters)


@each_call
def test_weights_matter(name, parameters):
    """Otherwise the tests of weights would show nothing."""
    y_true, y_proba = some_predictions(3, n=200)
    wrong = y_proba.argmax(axis=1) != y_true
    plain = score(name, y_true, y_proba, parameters)
    heavy = score(name, y_true, y_proba, parameters, sample_weight=1.0 + 9 * wrong)
    light = score(name, y_true, y_proba, parameters, sample_weight=np.linspace(0, 2, 200))
    assert heavy != plain or light != plain


SCALE_FREE = [call for call in CALLS if SPECS[call[0]].scale_free]


@pytest.mark.parametrize(("name", "parameters"), SCALE_FREE)
@pytest.mark.parametrize("scale", [0.125, 3.0, 1000.0])
@examples(20)
@given(case=proba_cases(weights=("none", "integer")))
def test_the_scale_of_weights_does_not_matter(name, parameters, scale, case):
    weight = np.ones(len(case.y_true)) if case.weight is None else case.weight
    scaled = score(
        name, case.y_true, case.y_proba, parameters,
        labels=case.labels, sample_weight=scale * weight,
    )  # fmt: skip
    assert_close(scaled, score(name, case.y_true, case.y_proba, parameters, **case.options))


@pytest.mark.parametrize(("name", "parameters"), SCALE_FREE)
@examples(20)
@given(case=proba_cases(weights=("real",)))
def test_the_scale_of_real_weights_does_not_matter(name, parameters, case):
    scaled = score(
        name, case.y_true, case.y_proba, parameters,
        labels=case.labels, sample_weight=2.0**-10 * case.weight,
    )  # fmt: skip
    assert_close(scaled, score(name, case.y_true, case.y_proba, parameters, **case.options))


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.scale_free])
def test_a_metric_free_of_scale_does_not_warn_about_small_weights(name):
    y_true, y_proba = some_predictions(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SPECS[name].function(
            y_true, y_proba, sample_weight=np.full(60, 1e-3), **REQUIRED.get(name, {})
        )


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if not spec.scale_free])
def test_a_metric_that_counts_rows_depends_on_the_scale(name):
    y_true, y_proba = some_predictions(3)
    once = score(name, y_true, y_proba, sample_weight=np.ones(60))
    tenfold = score(name, y_true, y_proba, sample_weight=np.full(60, 10.0))
    assert abs(once - tenfold) > 1e-6


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if not spec.scale_free])
def test_a_metric_that_counts_rows_warns_about_small_weights(name):
    y_true, y_proba = some_predictions(3)
    with pytest.warns(UserWarning, match="sample_weight sums to"):
        SPECS[name].function(
            y_true, y_proba, sample_weight=np.full(60, 0.4), **REQUIRED.get(name, {})
        )


# Labels of every kind --------------------------------------------------------------------

INDEX = np.random.default_rng(5).permutation(60)
TWO = {
    "{0, 1}": np.array([0, 1]),
    "{-1, 1}": np.array([-1, 1]),
    "{1, 2}": np.array([1, 2]),
    "floats": np.array([0.0, 1.0]),
    "booleans": np.array([False, True]),
    "strings": np.array(["no", "yes"]),
    "object strings": np.array(["no", "yes"], dtype=object),
}
THREE = {
    "{1, 2, 3}": np.array([1, 2, 3]),
    "{-1, 0, 1}": np.array([-1, 0, 1]),
    "strings": np.array(["a", "bb", "ccc"]),
    "object strings": np.array(["a", "bb", "ccc"], dtype=object),
}
CONTAINERS = {
    "array": lambda y: y,
    "list": lambda y: y.tolist(),
    "Series": lambda y: pd.Series(y, index=INDEX),
    "categorical": lambda y: pd.Series(pd.Categorical(y), index=INDEX),
    "nullable": lambda y: pd.Series(y, index=INDEX).convert_dtypes(),
    "polars": lambda y: pl.Series(y.tolist()),
}


@each_metric
@pytest.mark.parametrize("container", CONTAINERS)
def test_two_classes_may_have_labels_of_every_kind(name, container):
    codes, y_proba = some_predictions(2)
    expected = score(name, codes, y_proba)
    for kind, labels in TWO.items():
        y_true = CONTAINERS[container](labels[codes])
        weight = pd.Series(np.ones(60), index=INDEX)
        assert score(name, y_true, y_proba, sample_weight=weight) == expected, kind
        one = score(name, y_true, y_proba[:, 1], pos_label=labels[1])
        assert_close(one, expected)
        if kind in ("{0, 1}", "{-1, 1}", "floats", "booleans"):
            assert_close(score(name, y_true, y_proba[:, 1]), expected)


@each_metric
@pytest.mark.parametrize("container", CONTAINERS)
def test_three_classes_may_have_labels_of_every_kind(name, container):
    codes, y_proba = some_predictions(3)
    expected = score(name, codes, y_proba)
    for kind, labels in THREE.items():
        y_true = CONTAINERS[container](labels[codes])
        assert score(name, y_true, y_proba) == expected, kind
        assert score(name, y_true, y_proba, labels=labels) == expected, kind
        assert score(name, y_true, y_proba, labels=labels.tolist()) == expected, kind


@each_metric
def test_labels_may_name_a_class_that_is_never_true(name):
    codes, y_proba = some_predictions(3)
    rows = codes > 0
    table = pd.DataFrame(y_proba[rows], columns=["a", "b", "c"])
    by_labels = score(name, codes[rows], y_proba[rows], labels=[0, 1, 2])
    y_true = np.array(["a", "b", "c"])[codes[rows]]
    assert_close(score(name, y_true, table), by_labels)
    assert_close(score(name, y_true, table[["c", "a", "b"]], labels=["a", "b", "c"]), by_labels)


# Probabilities of every kind -------------------------------------------------------------

TABLES = {
    "list": lambda p: p.tolist(),
    "Fortran order": np.asfortranarray,
    "DataFrame": lambda p: pd.DataFrame(p, columns=["a", "b", "c"], index=INDEX),
    "DataFrame in another order": lambda p: pd.DataFrame(p, columns=list("abc"))[list("cab")],
    "nullable DataFrame": lambda p: pd.DataFrame(p, columns=list("abc")).astype("Float64"),
    "polars": lambda p: pl.DataFrame(p, schema=list("abc")),
    "polars in another order": lambda p: pl.DataFrame(p, schema=list("abc"))[list("bca")],
}


@each_metric
@pytest.mark.parametrize("table", TABLES)
def test_probabilities_may_come_in_every_kind_of_table(name, table):
    codes, y_proba = some_predictions(3)
    y_true = np.array(["a", "b", "c"])[codes]
    expected = score(name, y_true, y_proba)
    assert score(name, y_true, TABLES[table](y_proba)) == expected


@each_metric
@pytest.mark.parametrize("columns", [slice(None), 1], ids=["two columns", "one column"])
def test_float32_probabilities_count_as_their_float64_values(name, columns):
    rng = np.random.default_rng(0)
    p = rng.random(60).astype(np.float32)
    y_true = (rng.random(60) < p).astype(int)
    single = np.column_stack([1 - p, p])[:, columns]
    double = single.astype(np.float64)
    assert score(name, y_true, single) == score(name, y_true, double)
    options = {"confidence": "margin"}
    assert score(name, y_true, single, **options) == score(name, y_true, double, **options)


@each_metric
def test_one_column_may_come_as_a_series(name):
    y_true, y_proba = some_predictions(2)
    expected = score(name, y_true, y_proba[:, 1])
    assert score(name, y_true, pd.Series(y_proba[:, 1], index=INDEX)) == expected
    assert score(name, y_true, pl.Series(y_proba[:, 1])) == expected
    assert score(name, y_true, y_proba[:, 1].tolist()) == expected


@each_metric
@pytest.mark.parametrize("confidence", ["margin", "entropy", "gini"])
def test_a_confidence_may_be_a_name_an_array_or_a_function(name, confidence):
    y_true, y_proba = some_predictions(3)
    function = CONFIDENCES[confidence]
    expected = score(name, y_true, y_proba, confidence=confidence)
    assert score(name, y_true, y_proba, confidence=function) == expected
    assert score(name, y_true, y_proba, confidence=function(y_proba)) == expected


@each_metric
def test_the_loss_may_be_a_function(name):
    y_true, y_proba = some_predictions(3)
    expected = score(name, y_true, y_proba)
    assert score(name, y_true, y_proba, loss=lambda a, b: a != b) == expected


# Values at the edge ----------------------------------------------------------------------

UNDEFINED = {
    "coverage": {"nothing accepted": 0.0},
    "selective_accuracy": {"nothing accepted": NAN},
    "selective_risk": {"nothing accepted": NAN},
    "generalized_risk": {"nothing accepted": 0.0},
    "selective_cost": {"nothing accepted": 0.1},
    "cwsa": {"nothing accepted": 0.0},
    "cwsa_plus": {"nothing accepted": 0.0},
    "aurc": {"no errors": 0.0, "all errors": 1.0},
    "eaurc": {"no errors": 0.0, "all errors": 0.0},
    "naurc": {"no errors": NAN, "all errors": NAN},
    "augrc": {"no errors": 0.0, "all errors": 0.5},
    "accuracy_rejection_auc": {"no errors": 1.0, "all errors": 0.0},
    "risk_at_coverage": {"no errors": 0.0, "all errors": 1.0},
    "coverage_at_risk": {"no errors": 1.0, "all errors": 0.0},
    "review_rate_at_reliability": {"no errors": 0.0, "all errors": 1.0},
    "cw_accuracy": {"no errors": 1.0, "all errors": 0.0},
    "csr": {"no errors": 0.0},
}
CASES = [(name, case, value) for name, known in UNDEFINED.items() for case, value in known.items()]


@pytest.mark.parametrize(("name", "situation", "expected"), CASES)
def test_values_at_the_edge_are_those_of_the_table(name, situation, expected):
    sure = {"nothing accepted": [0.4, 0.45], "no errors": [0.8, 0.9], "all errors": [0.8, 0.9]}
    confidence = np.array(sure[situation])
    rest = (1 - confidence) / 2
    y_proba = np.column_stack([confidence, rest, rest])
    y_true = [1, 1] if situation == "all errors" else [0, 0]
    assert_close(score(name, y_true, y_proba, labels=[0, 1, 2]), expected)


EDGES = {
    "single row, right": ([0], [[0.75, 0.25]], [0, 1]),
    "single row, wrong": ([1], [[0.75, 0.25]], [0, 1]),
    "single row, a tie": ([1], [[0.5, 0.5]], [0, 1]),
    "one class is true": ([1, 1, 1], [[0.75, 0.25], [0.25, 0.75], [0.0, 1.0]], [0, 1]),
    "one column": ([3, 3, 3], [[1.0], [1.0], [1.0]], None),
    "all rows tie": ([0, 1, 0], [[0.6, 0.4]] * 3, [0, 1]),
    "all rows certain": ([0, 1, 0], [[1.0, 0.0]] * 3, [0, 1]),
    "nothing accepted": ([0, 1], [[0.4, 0.3, 0.3]] * 2, [0, 1, 2]),
}


@each_metric
@pytest.mark.parametrize("edge", EDGES)
def test_an_undefined_value_is_nan_and_never_without_a_warning(name, edge):
    y_true, y_proba, labels = EDGES[edge]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = SPECS[name].function(y_true, y_proba, labels=labels, **REQUIRED.get(name, {}))
    assert [w for w in caught if not issubclass(w.category, UserWarning)] == []
    assert isinstance(value, float)
    assert math.isnan(value) == any("nan" in str(w.message) for w in caught)


# Bad input -------------------------------------------------------------------------------

Y, P = [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
BAD = {
    "no rows": (([], []), {}, "y_true is empty"),
    "rows missing": ((Y, P[:3]), {}, "y_proba has 3 rows"),
    "nan label": (([0, 1, NAN, 0], P), {}, "y_true has missing"),
    "labels in two columns": ((np.eye(4)[:, :2], P), {}, "y_true must be one-dimensional"),
    "nan probability": ((Y, [[NAN, 0.1], *P[1:]]), {}, "y_proba"),
    "probabilities not summing to one": ((Y, [[0.8, 0.1], *P[1:]]), {}, "y_proba.*sum to one"),
    "logits": ((Y, [[2.0, -2.0]] * 4), {}, "y_proba"),
    "predicted labels": ((Y, [0, 1, 0, 0]), {}, "y_proba.*labels"),
    "one column of logits": ((Y, [1.7, -0.3, 2.0, 0.5]), {}, "y_proba"),
    "strings without pos_label": ((list("abab"), [0.1, 0.9, 0.4, 0.5]), {}, "pos_label"),
    "label that is no class": ((Y, P), {"labels": [1, 2]}, "y_true"),
    "duplicated class": ((Y, P), {"labels": [0, 0]}, "labels"),
    "unknown confidence": ((Y, P), {"confidence": "top"}, "confidence"),
    "nan confidence": ((Y, P), {"confidence": [0.5, NAN, 0.5, 0.5]}, "confidence"),
    "confidence too short": ((Y, P), {"confidence": [0.5, 0.5]}, "confidence"),
    "unknown loss": ((Y, P), {"loss": "log"}, "loss"),
    "loss above one": ((Y, P), {"loss": lambda a, b: 5.0 * (a != b)}, "loss"),
    "negative weight": ((Y, P), {"sample_weight": [1, 1, -1, 1]}, "sample_weight"),
    "weights all zero": ((Y, P), {"sample_weight": [0] * 4}, "sample_weight"),
    "nan weight": ((Y, P), {"sample_weight": [1, 1, NAN, 1]}, "sample_weight"),
    "weights too long": ((Y, P), {"sample_weight": [1] * 5}, "sample_weight"),
}


@each_metric
@pytest.mark.parametrize("case", BAD)
def test_every_metric_names_a_bad_argument(name, case):
    arguments, options, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        SPECS[name].function(*arguments, **options, **REQUIRED.get(name, {}))


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.reads_probability])
def test_a_metric_that_reads_probabilities_refuses_other_confidences(name):
    with pytest.raises(ValueError, match=r"confidences in \[0, 1\]"):
        score(name, Y, P, confidence=[2.0, 1.0, 0.5, 0.0])


# scikit-learn ----------------------------------------------------------------------------

RNG = np.random.default_rng(0)
CODES = np.arange(120) % 3
X = RNG.normal(size=(120, 2)) + CODES[:, None]
FOLDS = StratifiedKFold(3)


def by_hand(name, X, y, **options):
    """Fit on each fold and score the probabilities of the test rows."""
    values = []
    for train, test in FOLDS.split(X, y):
        model = GaussianNB().fit(X[train], y[train])
        values.append(score(name, y[test], model.predict_proba(X[test]), **options))
    return values


@each_metric
@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], ["no", "yes"], [False, True]], ids=str)
def test_a_metric_is_a_scorer_of_two_classes(name, labels):
    y = np.array(labels)[np.minimum(CODES, 1)]
    spec = SPECS[name]
    scorer = make_scorer(
        spec.function, response_method="predict_proba",
        greater_is_better=spec.greater_is_better, pos_label=labels[1], **REQUIRED.get(name, {}),
    )  # fmt: skip
    values = cross_val_score(GaussianNB(), X, y, scoring=scorer, cv=FOLDS, error_score="raise")
    sign = 1 if spec.greater_is_better else -1
    assert_close(sign * values, by_hand(name, X, y))


@each_metric
def test_a_metric_is_a_scorer_of_zero_and_one_without_more_words(name):
    y = np.minimum(CODES, 1)
    scorer = make_scorer(
        SPECS[name].function, response_method="predict_proba", **REQUIRED.get(name, {})
    )
    values = cross_val_score(GaussianNB(), X, y, scoring=scorer, cv=FOLDS, error_score="raise")
    assert_close(values, by_hand(name, X, y))


@each_metric
@pytest.mark.parametrize("labels", [[0, 1, 2], ["a", "b", "c"]], ids=str)
@pytest.mark.parametrize("named", [True, False], ids=["with labels=", "all classes seen"])
def test_a_metric_is_a_scorer_of_three_classes(name, labels, named):
    y = np.array(labels)[CODES]
    options = {"labels": labels} if named else {}
    scorer = make_scorer(
        SPECS[name].function, response_method="predict_proba", **options, **REQUIRED.get(name, {})
    )
    values = cross_val_score(GaussianNB(), X, y, scoring=scorer, cv=FOLDS, error_score="raise")
    assert_close(values, by_hand(name, X, y))


@each_metric
def test_a_scorer_passes_weights_on(name):
    scorer = make_scorer(
        SPECS[name].function, response_method="predict_proba", **REQUIRED.get(name, {})
    )
    model, weight = GaussianNB().fit(X, CODES), RNG.integers(0, 4, 120)
    expected = score(name, CODES, model.predict_proba(X), sample_weight=weight)
    assert_close(scorer(model, X, CODES, sample_weight=weight), expected)
