"""What holds for every metric: this file iterates over SPECS, so new metrics are covered.

A metric that needs parameters gets them from REQUIRED; one that takes only some data gets
those (TWO_CLASSES, WHOLE_WEIGHTS).
"""

import inspect
import math
import re
import warnings
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.naive_bayes import GaussianNB

import skselect as sk
from skselect._lib.decide import CONFIDENCES
from skselect.metrics import SPECS
from skselect.metrics._evaluate import GAPS
from skselect.scoring import get_scorer
from tests import brute
from tests.kinds import CONTAINERS, TABLES, THREE, TWO, shuffled_index
from tests.metrics.definitions import OF_CLASSES, OF_ROWS, PARAMETERS, UNWEIGHTED

NAN = float("nan")

#: Parameters without a default.
VALUES = {"coverage": 0.7, "max_risk": 0.3, "reliability": 0.8}
REQUIRED = {
    name: {
        key: VALUES[key]
        for key, parameter in spec.parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    for name, spec in SPECS.items()
}
#: Defined for two classes only.
TWO_CLASSES = {"auroc_aurc"}
#: Count rows, so that a weight must be a whole number.
WHOLE_WEIGHTS = {"tce"}
#: Read classes or their probabilities: a loss has no say, and in the second set no confidence.
WITHOUT_LOSS = {
    "auroc_aurc_score", "cw_auc_score", "cw_confusion_matrix", "cw_f1_score",
    "cw_matthews_corrcoef", "cw_precision_score", "cw_recall_score", "cw_roc_curve",
    "cw_specificity_score", "metrics_by_class", "selective_confusion_matrix",
}  # fmt: skip
WITHOUT_CONFIDENCE = {
    "cau_components", "cau_cost_score", "cau_score", "classwise_calibration_error",
    "right_entropy_score", "wrong_entropy_score",
}  # fmt: skip
OF_MANY_CLASSES = sorted(set(SPECS) - TWO_CLASSES)


def shared_arguments(function_name):
    """Return the arguments that a function shares with others, in their order."""
    shared = ["confidence", "loss", "labels", "pos_label", "sample_weight"]
    if function_name in WITHOUT_CONFIDENCE:
        return shared[2:]
    return [one for one in shared if one != "loss" or function_name not in WITHOUT_LOSS]


def takes(name, argument):
    return argument in shared_arguments(SPECS[name].function.__name__)


def most_classes(name):
    return 2 if name in TWO_CLASSES else 3


def score(name, y_true, y_proba, parameters=None, **options):
    """Return the metric; a documented warning is let through, a numpy warning is not."""
    parameters = REQUIRED[name] if parameters is None else parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        return SPECS[name].function(y_true, y_proba, **parameters, **options)


def some_predictions(n_classes, n=60, seed=0, right=0.7):
    """Return codes and probabilities with ties, errors and every class."""
    rng = np.random.default_rng(seed)
    proba = rng.multinomial(8, rng.dirichlet(np.ones(n_classes), n)) / 8
    y_true = np.where(rng.random(n) < right, proba.argmax(axis=1), rng.integers(0, n_classes, n))
    y_true[:n_classes] = range(n_classes)
    return y_true, proba


# The table -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_the_table_is_consistent(name):
    spec = SPECS[name]
    assert spec.name == name
    assert spec.function.__name__ in sk.metrics.__all__
    assert getattr(sk.metrics, spec.function.__name__) is spec.function
    assert spec.needs in {"predictions", "outcomes", "curve"}
    assert spec.scorer_name == (name if spec.greater_is_better else f"neg_{name}")
    for text in [
        spec.undefined,
        *(spec.notes[key] for key in ("Formula", "Use for", "Not for", "Source")),
    ]:
        assert text == text.strip() != ""
    assert ("threshold" in inspect.signature(spec.function).parameters) == spec.at_threshold
    assert (spec.interval is None) == (spec.no_interval != "")
    assert spec.chance_raises == "nothing" or spec.confidence == "probability"
    assert not (spec.signed and spec.greater_is_better)


def test_metrics_for_comparison_with_published_values_stand_last_and_are_named():
    apart = [spec.for_comparison for spec in SPECS.values()]
    assert apart == sorted(apart)
    said = sk.metrics.__doc__.partition("For comparison with published values only:")[2]
    names = [name for name, spec in SPECS.items() if spec.for_comparison]
    assert set(re.findall(r"``(\w+)``", said)) == set(names)
    assert len(names) == 9


@pytest.mark.parametrize(
    ("name", "parameters"),
    product(
        [name for name, spec in SPECS.items() if spec.row_terms],
        [{}, {"threshold": 0.7}, {"normalize": "all"}],
    ),
)
def test_what_the_rows_add_sums_up_to_the_metric(name, parameters):
    y_true, y_proba = some_predictions(3)
    outcomes = sk.Outcomes.from_proba(y_true, y_proba, sample_weight=np.arange(60) % 4)
    terms = SPECS[name].row_terms(outcomes, **parameters)
    assert terms.shape == (60,)
    brute.assert_close(np.sum(terms), sk.evaluate(outcomes, {name: parameters})[name])


def test_every_public_score_is_in_the_table():
    ends = ("_score", "_error", "_corrcoef", "_distance", "ecce_mad", "ecce_r")
    public = {name for name in sk.metrics.__all__ if name.endswith(ends)}
    assert public == {spec.function.__name__ for spec in (SPECS | GAPS).values()}
    assert not SPECS.keys() & GAPS.keys()


@pytest.mark.parametrize("name", ["coverage_gap", "risk_gap"])
def test_what_compares_subgroups_is_refused_where_rows_are_sorted_or_drawn(name):
    spec, (y_true, y_proba) = GAPS[name], some_predictions(2)
    assert (spec.of_subgroups, spec.at_threshold, spec.better) == (True, True, "lower")
    with pytest.raises(ValueError, match="metrics_by_group and metric_interval compare"):
        sk.evaluate(y_true, y_proba, [name])
    with pytest.raises(ValueError, match="metrics_by_group and metric_interval compare"):
        sk.inference.compare_models(y_true, {"a": y_proba, "b": y_proba}, name)


#: Metrics, and what is built on them.
DOORS = {
    name: getattr(room, name)
    for room in (sk.metrics, sk.inference)
    for name in room.__all__
    if inspect.isfunction(getattr(room, name))
} | {"evaluate": sk.evaluate}

#: Whatever takes labels and probabilities: metrics, tests, curves.
PUBLIC = sorted(
    name
    for name, door in DOORS.items()
    if list(inspect.signature(door).parameters)[:2] == ["y_true", "y_proba"]
)


@pytest.mark.parametrize("name", SPECS)
def test_a_metric_has_the_parameters_of_its_kernel(name):
    spec = SPECS[name]
    parameters = inspect.signature(spec.function).parameters
    for of_kernel, known in spec.parameters.items():
        assert parameters[of_kernel].default == known.default
    assert set(parameters) == (
        spec.parameters.keys()
        | {"y_true", "y_proba"}
        | set(shared_arguments(spec.function.__name__))
    )


def test_every_metric_takes_labels_and_probabilities():
    assert {spec.function.__name__ for spec in SPECS.values()} < set(PUBLIC)
    assert set(PUBLIC) > WITHOUT_LOSS | WITHOUT_CONFIDENCE


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_metric_names_the_shared_arguments(name):
    parameters = inspect.signature(DOORS[name]).parameters
    shared = shared_arguments(name)
    assert list(parameters)[-len(shared) :] == shared
    assert not {"confidence", "loss"} - set(shared) & set(parameters)
    for argument in shared:
        assert parameters[argument].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[argument].default == ("zero_one" if argument == "loss" else None)


# Laws ----------------------------------------------------------------------------------

ALWAYS_DEFINED = [name for name, spec in SPECS.items() if spec.undefined == "always defined"]
#: Thresholds anywhere; CWSA takes those in [0, 1) only.
ANYWHERE = st.one_of(
    brute.thresholds, st.floats(-2, 2), st.sampled_from([0.25, 0.5, 1.0, math.inf, -math.inf])
)
#: How closely a metric must be met; 1e-12 where nothing is said.
PRECISION = {
    "naurc": 1e-11, "cw_matthews": 1e-10, "cw_gain": 1e-10, "f1_retention_auc": 1e-9,
    "smooth_ece": 1e-8,  # a root is found to 1e-9
    "debiased_l2": 1e-7,  # the root of a difference that may be 0
    "p_risk": 1e-10, "ecd": 1e-8,
    **dict.fromkeys(("cau", "cau_cost"), 1e-7),  # a clipped 1 - h is as exact as 1 - (1 - eps)
}  # fmt: skip


def precision(name, parameters):
    near_one = name in ("csr", "p_risk") and "eps" not in parameters
    return 1e-7 if near_one else PRECISION.get(name, 1e-12)


def is_whole(weight):
    return weight is None or np.array_equal(weight, np.rint(weight))


def chosen_parameters(name, pick, threshold, weight, n_rows):
    """Return the parameters that this draw tries."""
    listed = PARAMETERS.get(name, [REQUIRED[name]])
    if weight is None and n_rows > 1:  # of a single row one of them has no value
        listed = [*listed, *UNWEIGHTED.get(name, [])]
    chosen = listed[pick % len(listed)]
    if not SPECS[name].at_threshold:
        return chosen
    inside = 0 <= threshold < 1 or SPECS[name].confidence != "unit"
    return chosen | {"threshold": threshold if inside else 0.6}


def check_definition(name, parameters, value, case, rows):
    """Compare with the definition, where nothing but rounding decides who belongs to it."""
    loss = [row.loss for row in rows]
    exact = is_whole(case.weight) and all((4 * a).denominator == 1 for a in loss)
    if name == "smooth_ece" or (not exact and name in WORKING_POINTS):
        return
    if name in OF_CLASSES:
        expected = OF_CLASSES[name](case, **parameters)
    else:
        expected = OF_ROWS[name](rows, **parameters)
    power = 2 if name == "debiased_l2" else 1  # a root may be all of a rounding
    rel = precision(name, parameters)
    tiny = 1e-11 if power == 2 else min(rel, 1e-11)
    brute.assert_close(value**power, expected**power, rel=1e-12 if power == 2 else rel, tiny=tiny)


def check_value(name, parameters, value):
    """The value lies in the range of the row, and is no worse than the worst."""
    spec = SPECS[name]
    assert isinstance(value, float)
    if math.isnan(value):
        assert "nan" in spec.undefined
        return
    assert name not in ALWAYS_DEFINED or math.isfinite(value)
    assert math.isfinite(value) or "inf" in spec.range
    if set(parameters) <= {"threshold", "normalize", *REQUIRED[name]}:  # others change the range
        low, high = spec.limits
        assert low - 1e-12 <= value <= high + 1e-12
        if spec.at_threshold:
            sign = 1 if spec.greater_is_better else -1
            assert sign * value >= sign * spec.worst - 1e-12


def said_otherwise(name, case, seed, scale):
    """Yield the same rows: in another order, repeated, of another weight, with one of none."""
    y_true, y_proba = case.y_true, case.y_proba
    weight = np.ones(len(y_true)) if case.weight is None else case.weight
    order = np.random.default_rng(seed).permutation(len(y_true))
    moved = None if case.weight is None else weight[order]
    yield "shuffled", y_true[order], y_proba[order], moved
    if case.weight is None:
        yield "weights of one", y_true, y_proba, weight
    elif is_whole(weight):
        times = weight.astype(int)
        yield "written out", np.repeat(y_true, times), np.repeat(y_proba, times, axis=0), None
    if SPECS[name].scale_free:  # a scale of real weights would round
        yield "scaled", y_true, y_proba, weight * (scale if is_whole(weight) else 2.0**-10)
    k = order[0]
    with_a_ghost = np.append(y_true, y_true[k]), np.vstack([y_proba, y_proba[k]])
    yield "a row of weight zero", *with_a_ghost, np.append(weight, 0.0)


#: Whether a row counts as one of those that are enough may be decided by rounding.
WORKING_POINTS = {"risk_at_coverage", "coverage_at_risk", "review_rate_at_reliability"}
SEEDS, SCALES = st.integers(0, 1000), st.sampled_from([0.125, 3.0, 1000.0])
CASES = st.one_of(
    brute.proba_cases(max_rows=30),
    brute.proba_cases(max_rows=30, classes=(2, 2), weights=("none", "integer")),
)


def score_case(name, case, pick, threshold):
    """Return the parameters that this draw tries, and the metric."""
    parameters = chosen_parameters(name, pick, threshold, case.weight, len(case.y_true))
    return parameters, score(name, case.y_true, case.y_proba, parameters, **case.options)


def is_scored(name, case):
    if name in TWO_CLASSES and len(case.labels) > 2:
        return False
    return name not in WHOLE_WEIGHTS or is_whole(case.weight)


@pytest.mark.parametrize("name", SPECS)
@brute.examples(100)
@given(case=CASES, pick=SEEDS, threshold=ANYWHERE, seed=SEEDS, scale=SCALES)
def test_every_metric_is_its_definition_and_obeys_the_laws(
    name, case, pick, threshold, seed, scale
):
    assume(is_scored(name, case))
    parameters, value = score_case(name, case, pick, threshold)
    check_value(name, parameters, value)
    check_definition(name, parameters, value, case, case.rows())
    near = precision(name, parameters)
    for law, y_true, y_proba, weight in said_otherwise(name, case, seed, scale):
        if parameters in UNWEIGHTED.get(name, []) and weight is not None:
            continue
        options = {"labels": case.labels, "sample_weight": weight}
        with brute.named(law, parameters):
            again = score(name, y_true, y_proba, parameters, **options)
            brute.assert_close(again, value, rel=near, tiny=near)


@brute.examples(50)
@given(case=CASES, pick=SEEDS, threshold=ANYWHERE)
def test_all_metrics_together_are_each_by_itself(case, pick, threshold):
    names = [name for name in SPECS if is_scored(name, case)]
    scores = {name: score_case(name, case, pick, threshold) for name in names}
    requested = {name: parameters for name, (parameters, _) in scores.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        together = sk.evaluate(case.y_true, case.y_proba, metrics=requested, **case.options)
    assert together.index.tolist() == names
    brute.assert_close(together, [value for _, value in scores.values()])


def takes_rows(name, case):
    """Tell whether a metric reads confidences and losses of this kind."""
    if np.any((case.confidence < 0) | (case.confidence > 1)):
        return SPECS[name].confidence == "any" and name != "aumcc"
    if set(case.loss) <= {0.0, 1.0}:
        return name not in WHOLE_WEIGHTS or is_whole(case.weight)
    return name not in WHOLE_WEIGHTS and name != "debiased_l2"


@pytest.mark.parametrize("name", OF_ROWS)
@brute.examples(100)
@given(
    case=st.one_of(brute.row_cases(max_rows=30), brute.row_cases(max_rows=30, unit=False)),
    pick=SEEDS, threshold=ANYWHERE,
)  # fmt: skip
def test_losses_and_confidences_of_every_kind_meet_the_definitions(name, case, pick, threshold):
    """Graded losses everywhere, and confidences of any size where only their order counts."""
    assume(takes_rows(name, case))
    parameters = chosen_parameters(name, pick, threshold, case.weight, len(case.loss))
    with brute.named(parameters), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        value = brute.of_rows(SPECS[name].function, case, **parameters)
        check_definition(name, parameters, value, case, case.rows)


@pytest.mark.parametrize("name", SPECS)
def test_a_metric_that_is_always_defined_or_free_of_scale_is_silent(name):
    y_true, y_proba = some_predictions(most_classes(name))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if SPECS[name].scale_free:
            small = {"sample_weight": np.full(60, 1e-3)}
            SPECS[name].function(y_true, y_proba, **small, **REQUIRED[name])
        if name in ALWAYS_DEFINED:
            one = ([1], [[0.75, 0.25]])
            SPECS[name].function(*one, labels=[0, 1], **REQUIRED[name])


COUNTING = [name for name, spec in SPECS.items() if not spec.scale_free]


@pytest.mark.parametrize("name", COUNTING)
def test_a_metric_that_counts_rows_depends_on_the_scale_and_warns_of_small_weights(name):
    y_true, y_proba = some_predictions(3, right=0.4)
    parameters = {"eps": 0.2} if name == "p_risk" else None  # else 1 at any scale
    once = score(name, y_true, y_proba, parameters, sample_weight=np.ones(60))
    tenfold = score(name, y_true, y_proba, parameters, sample_weight=np.full(60, 10.0))
    assert abs(once - tenfold) > 1e-6
    metric, small = SPECS[name].function, {"sample_weight": np.full(60, 0.4)}
    if name in WHOLE_WEIGHTS:
        for weight in [*small.values(), np.linspace(0.5, 2, 60)]:
            with pytest.raises(ValueError, match=r"sample_weight.*whole numbers"):
                metric(y_true, y_proba, sample_weight=weight)
    else:
        with pytest.warns(UserWarning, match="sample_weight sums to"):
            metric(y_true, y_proba, **small, **REQUIRED[name])


# Chance --------------------------------------------------------------------------------

#: What compares accuracy with confidence; 0 for a classifier that is calibrated exactly.
ERRORS_OF_CALIBRATION = [
    "ece", "mce", "classwise_ece", "debiased_l2", "smooth_ece", "ecce_mad", "ecce_r",
    "isotonic_distance", "ecd",
]  # fmt: skip
LEVELS = [[0.8], [0.6, 0.9], [0.55, 0.75, 0.95], list(np.linspace(0.55, 0.97, 8))]


def calibrated_levels(levels, n_rows, rng):
    """Return labels and probabilities; each level is as often right as it says, but for chance."""
    confidence = np.repeat(levels, n_rows)
    is_right = rng.random(len(confidence)) < confidence
    return np.where(is_right, 0, 1), np.column_stack([confidence, 1 - confidence])


def mean_on_levels(name, levels, n_rows, n_draws, rng):
    """Return the mean size of a metric over draws of calibrated levels."""
    draws = [calibrated_levels(levels, n_rows, rng) for _ in range(n_draws)]
    return np.mean([abs(score(name, *rows, labels=[0, 1])) for rows in draws])


@pytest.mark.parametrize("levels", LEVELS, ids=len)
@pytest.mark.parametrize("name", ERRORS_OF_CALIBRATION)
def test_on_calibrated_levels_an_error_is_what_chance_gives(name, levels, rng):
    """A hundred times as many rows make it a tenth."""
    assert mean_on_levels(name, levels, 50, 40, rng) < 0.2
    assert mean_on_levels(name, levels, 5000, 10, rng) < 0.02


@pytest.mark.parametrize("n_rows", [12, 60, 300])
@pytest.mark.parametrize("levels", LEVELS, ids=len)
def test_on_calibrated_levels_tce_is_its_level(levels, n_rows, rng):
    """5 %, and 3.5 standard errors of 100 draws in which whole levels are rejected or not."""
    error = 100 * math.sqrt(0.05 * 0.95 / 100)
    assert mean_on_levels("tce", levels, n_rows, 100, rng) < 5 + 3.5 * error


@pytest.mark.parametrize("levels", LEVELS, ids=len)
@pytest.mark.parametrize("name", ["ecce_test", "ecd_test", "t_cal_test", "csr_test"])
def test_on_calibrated_levels_a_test_keeps_its_level(name, levels, rng):
    test = getattr(sk.metrics, name)
    options = {"n_draws": 99, "random_state": 0} if name in ("ecd_test", "csr_test") else {}
    p_values = []
    for _ in range(150):
        result = test(*calibrated_levels(levels, 40, rng), labels=[0, 1], **options)
        p_values.append(result.mad_p_value if name == "ecce_test" else result.p_value)
    assert np.mean(np.array(p_values) <= 0.05) < 0.05 + 3.5 * math.sqrt(0.05 * 0.95 / 150)


# Labels and probabilities of every kind --------------------------------------------------


def containers_and_kinds(name, kinds):
    """Return every pair for one metric, each container and each kind for the others."""
    if name == "coverage":
        return list(product(CONTAINERS, kinds))
    return [*product(["array"], kinds), *product(CONTAINERS, ["strings"])]


@pytest.mark.parametrize("name", SPECS)
def test_two_classes_may_have_labels_of_every_kind(name):
    codes, y_proba = some_predictions(2)
    expected, of_one = score(name, codes, y_proba), score(name, codes, y_proba, pos_label=1)
    column = y_proba[:, 1]
    weight = pd.Series(np.ones(60), index=shuffled_index(codes))
    for container, kind in containers_and_kinds(name, TWO):
        with brute.named(container, kind):
            y_true = CONTAINERS[container](TWO[kind][codes])
            assert score(name, y_true, y_proba, sample_weight=weight) == expected
            brute.assert_close(score(name, y_true, column, pos_label=TWO[kind][1]), of_one)
            if kind in ("{0, 1}", "{-1, 1}", "floats", "booleans"):
                brute.assert_close(score(name, y_true, column), expected)
    expected = score(name, codes, column)
    for kind in (
        pd.Series(column, index=shuffled_index(codes)),
        pl.Series(column),
        column.tolist(),
    ):
        assert score(name, codes, kind) == expected


@pytest.mark.parametrize("name", OF_MANY_CLASSES)
def test_three_classes_may_have_labels_and_probabilities_of_every_kind(name):
    codes, y_proba = some_predictions(3)
    expected = score(name, codes, y_proba)
    for container, kind in containers_and_kinds(name, THREE):
        with brute.named(container, kind):
            labels = THREE[kind]
            y_true = CONTAINERS[container](labels[codes])
            assert score(name, y_true, y_proba) == expected
            assert score(name, y_true, y_proba, labels=labels) == expected
    y_true = np.array(["a", "b", "c"])[codes]
    for table, make in TABLES.items():
        with brute.named(table):
            assert score(name, y_true, make(y_proba)) == expected
    # A class that is never true.
    rows = codes > 0
    expected = score(name, codes[rows], y_proba[rows], labels=[0, 1, 2])
    table = pd.DataFrame(y_proba[rows], columns=["a", "b", "c"])
    brute.assert_close(score(name, y_true[rows], table), expected)
    found = score(name, y_true[rows], table[["c", "a", "b"]], labels=["a", "b", "c"])
    brute.assert_close(found, expected)


@pytest.mark.parametrize(("name", "columns"), product(SPECS, [slice(None), 1]))
def test_float32_probabilities_count_as_their_float64_values(name, columns):
    rng = np.random.default_rng(0)
    p = rng.random(60).astype(np.float32)
    y_true = (rng.random(60) < p).astype(int)
    single = np.column_stack([1 - p, p])[:, columns]
    double = single.astype(np.float64)
    assert score(name, y_true, single) == score(name, y_true, double)
    if takes(name, "confidence"):
        options = {"confidence": "margin"}
        assert score(name, y_true, single, **options) == score(name, y_true, double, **options)


@pytest.mark.parametrize("name", [name for name in SPECS if takes(name, "confidence")])
def test_a_confidence_may_be_a_name_an_array_or_a_function(name):
    y_true, y_proba = some_predictions(most_classes(name))
    for confidence in ["margin", "entropy", "gini"]:
        with brute.named(confidence):
            function = CONFIDENCES[confidence]
            expected = score(name, y_true, y_proba, confidence=function)
            assert score(name, y_true, y_proba, confidence=function(y_proba)) == expected
            if (
                SPECS[name].confidence == "probability"
            ):  # a name of another confidence is no probability
                expected = score(name, y_true, y_proba)
            assert score(name, y_true, y_proba, confidence=confidence) == expected


@pytest.mark.parametrize("name", [name for name in SPECS if takes(name, "loss")])
def test_the_loss_may_be_a_function(name):
    y_true, y_proba = some_predictions(3)
    expected = score(name, y_true, y_proba)
    assert score(name, y_true, y_proba, loss=lambda a, b: a != b) == expected


def test_an_unknown_keyword_is_blamed_on_the_function_that_was_called():
    for door in DOORS.values():
        if "sample_weight" in inspect.signature(door).parameters:
            blamed = rf"^{door.__name__}\(\) got an unexpected keyword argument 'smaple_weight'"
            with pytest.raises(TypeError, match=blamed + r"\. Did you mean 'sample_weight'\?$"):
                door(Y, P, smaple_weight=[1, 1])
    with pytest.raises(TypeError, match=r"argument 'treshold'\. Did you mean 'threshold'\?"):
        sk.metrics.cwsa_plus_score(Y, P, treshold=0.5)  # codespell:ignore treshold
    with pytest.raises(TypeError, match=r"^cw_f1_score\(\) got .* argument 'loss'\.$"):
        sk.metrics.cw_f1_score(Y, P, loss="zero_one")
    predictions = sk.Predictions.from_proba(Y, P)
    with pytest.raises(TypeError, match=r"^compare_models\(\) got"):  # not passed over
        sk.inference.compare_models(
            None,
            {"a": predictions, "b": predictions},
            "aurc",
            basline="a",  # codespell:ignore basline
        )
    of_metrics = r"^{}\(\) got .* stand in {}=, such as"
    for function in (sk.evaluate, sk.inference.metrics_by_group):
        place = of_metrics.format(function.__name__, "metrics")
        with pytest.raises(TypeError, match=place):
            function(predictions, threshold=0.5)
    for function in (sk.inference.metric_interval, sk.inference.compare_models):
        place = of_metrics.format(function.__name__, "metric_params")
        with pytest.raises(TypeError, match=place):
            function(Y, P, threshold=0.5)
    shown = [sk.RiskCoverageDisplay, *(getattr(sk.display, name) for name in sk.display.__all__)]
    displays = [one for one in shown if hasattr(one, "from_predictions")]
    for one in displays:
        with pytest.raises(TypeError, match=rf"^{one.__name__}\.(from_predictions|plot)\(\) got"):
            one.from_predictions(Y, P, smaple_weight=[1, 1])
    assert len(displays) == 7


# Values at the edge ----------------------------------------------------------------------

#: Labels and probabilities where some metric has no value, or a fixed one.
SITUATIONS = {
    "nothing accepted": ([0, 1], [[0.4, 0.3, 0.3], [0.45, 0.275, 0.275]]),
    "no errors": ([0, 0], [[0.75, 0.25], [0.875, 0.125]]),
    "all errors": ([1, 1], [[0.75, 0.25], [0.875, 0.125]]),
    "one class is true": ([1, 1, 1], [[0.75, 0.25], [0.25, 0.75], [0.0, 1.0]]),
    "two of three classes": ([0, 1], [[0.75, 0.125, 0.125], [0.5, 0.375, 0.125]]),
    "a single row, right": ([0], [[0.75, 0.25]]),
    "a single row, wrong": ([1], [[0.75, 0.25]]),
    "a single row, a tie": ([1], [[0.5, 0.5]]),
    "coverage never moves": ([0, 1], [[0.75, 0.25], [0.25, 0.75]]),
    "all rows tie": ([0, 1, 0], [[0.625, 0.375]] * 3),
    "all rows certain": ([0, 1, 0], [[1.0, 0.0]] * 3),
}
EDGES = {
    situation: brute.ProbaCase(np.array(y_true), np.array(y_proba), None)
    for situation, (y_true, y_proba) in SITUATIONS.items()
}


def edges_of(name):
    return {at: case for at, case in EDGES.items() if len(case.labels) <= most_classes(name)}


def value_and_warnings(name, case, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = {"labels": case.labels} | options | REQUIRED[name]
        value = SPECS[name].function(case.y_true, case.y_proba, **options)
    assert [w for w in caught if not issubclass(w.category, UserWarning)] == []
    told = [str(w.message) for w in caught]
    if math.isnan(value):
        assert any("nan" in text for text in told)
    else:
        assert all("left out of the average" in text for text in told if "nan" in text)
    return value, told


@pytest.mark.parametrize("name", SPECS)
def test_values_at_the_edge_are_those_of_the_definition_and_of_the_table(name):
    values, all_told = [], []
    for situation, case in edges_of(name).items():
        with brute.named(situation):
            value, told = value_and_warnings(name, case)
            check_value(name, REQUIRED[name], value)
            check_definition(name, REQUIRED[name], value, case, case.rows())
            values, all_told = [*values, value], [*all_told, *told]
    if SPECS[name].confidence == "probability" and name.startswith("cw_"):
        value, told = value_and_warnings(name, EDGES["all rows tie"], confidence=[0, 0, 0])
        assert math.isnan(value)
        values, all_told = [*values, value], [*all_told, *told]
    said = SPECS[name].undefined.partition("; scorer")[0]
    if name != "debiased_l2":  # which leaves bins of one row out without a word
        assert bool(all_told) == ("nan" in said or "left out" in said)
    assert ("nan" in said) == any(map(math.isnan, values))
    with brute.named("one column"):
        one = brute.ProbaCase(np.zeros(3, int), np.ones((3, 1)), None)
        if name not in TWO_CLASSES:
            value_and_warnings(name, one)


class FixedAnswers(ClassifierMixin, BaseEstimator):
    """Answers row i of X with the probabilities in it."""

    def fit(self, X, y):
        self.classes_ = np.arange(X.shape[1])
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)


def scored(name, y_true, y_proba, **parameters):
    X = np.array(y_proba)
    model = FixedAnswers().fit(X, y_true)
    return get_scorer(SPECS[name].scorer_name, **parameters)(model, X, np.array(y_true))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SPECS)
def test_a_scorer_at_the_edge_is_the_metric_with_its_sign_or_what_the_table_says(name):
    spec = SPECS[name]
    for situation, case in edges_of(name).items():
        expected = spec.as_score(score(name, case.y_true, case.y_proba, labels=case.labels))
        nothing = situation == "nothing accepted" if spec.at_threshold else (
            all(row.loss for row in case.rows())
        )  # fmt: skip
        if nothing and "scorer" in spec.undefined:
            expected = float(spec.undefined.rpartition(" ")[2])
        with brute.named(situation):
            brute.assert_close(scored(name, case.y_true, case.y_proba, **REQUIRED[name]), expected)


@pytest.mark.parametrize("name", SPECS)
def test_a_score_is_best_where_the_metric_is(name):
    spec = SPECS[name]
    low, high = np.clip(spec.limits, -10, 10)
    best = spec.best
    if best is None:
        best = high if spec.greater_is_better else low
    others = [value for value in np.linspace(low, high, 41) if value != best]
    assert all(spec.as_score(value) < spec.as_score(best) for value in others)


@pytest.mark.parametrize("name", ["csr", "ecd"])
def test_a_scorer_prefers_the_calibrated_model(name):
    """Of eight rows at .75, six are right; fewer and more are worse."""
    y_proba = np.tile([0.75, 0.25], (8, 1))
    scores = []
    for n_right in range(9):
        y_true = np.where(np.arange(8) < n_right, 0, 1)
        value = score(name, y_true, y_proba, labels=[0, 1])
        scores.append(scored(name, y_true, y_proba))
        assert scores[-1] == -abs(value - SPECS[name].best)
    assert np.argmax(scores) == 6
    assert np.all(np.diff(scores[:7]) > 0)
    assert np.all(np.diff(scores[6:]) < 0)


# Bad input -------------------------------------------------------------------------------

Y, P = [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
#: One of each argument; what else is wrong with it stands in the tests of predictions.
BAD = {
    "no rows": (([], []), {}, "y_true is empty"),
    "rows missing": ((Y, P[:3]), {}, "y_proba has 3 rows"),
    "logits": ((Y, [[2.0, -2.0]] * 4), {}, "y_proba"),
    "one string without pos_label": ((list("aaaa"), [0.1, 0.9, 0.4, 0.5]), {}, "pos_label"),
    "label that is no class": ((Y, P), {"labels": [1, 2]}, "y_true"),
    "duplicated class": ((Y, P), {"labels": [0, 0]}, "labels"),
    "nan confidence": ((Y, P), {"confidence": [0.5, NAN, 0.5, 0.5]}, "confidence"),
    "loss above one": ((Y, P), {"loss": lambda a, b: 5.0 * (a != b)}, "loss"),
    "negative weight": ((Y, P), {"sample_weight": [1, 1, -1, 1]}, "sample_weight"),
}


@pytest.mark.parametrize("name", SPECS)
def test_every_metric_names_a_bad_argument(name):
    for case, (arguments, options, message) in BAD.items():
        if {"confidence", "loss"} & set(options) <= set(
            shared_arguments(SPECS[name].function.__name__)
        ):
            with brute.named(case), pytest.raises(ValueError, match=message):
                SPECS[name].function(*arguments, **options, **REQUIRED[name])


CWSA = "cwsa_score cwsa_plus_score cwsa_contributions"
RATIOS = "cw_precision_score cw_recall_score cw_specificity_score cw_f1_score"
BINNED = (
    "expected_calibration_error maximum_calibration_error classwise_calibration_error "
    "debiased_calibration_error reliability_curve"
)
#: Functions, a parameter of theirs, and values that they refuse by its name.
REFUSED = [
    ("coverage_score selective_risk_score selective_accuracy_score generalized_risk_score "
     "selective_cost_score", "threshold", [NAN, None, "0.5", [0.5], [0.5, 0.6], True]),
    (CWSA, "threshold",
     [1.0, 1, 1.5, -0.1, NAN, math.inf, -math.inf, None, "0.5", "high", [0.5], [0.5, 0.6]]),
    (CWSA, "normalize", ["none", "Selected", None, True]),
    ("selective_confusion_matrix", "threshold", ["high"]),
    ("selective_cost_score", "abstention_cost", [-0.1, NAN, math.inf, "cheap", None]),
    ("aurc_score accuracy_rejection_auc_score", "estimator", ["exact", "x"]),
    ("aurc_score", "ties", ["first"]),
    ("augrc_score", "estimator", ["ln"]),
    ("augrc_score", "coverage_range", [(0.5, 1.2)]),
    ("aumcc_score", "metric", ["accuracy"]),
    ("aumcc_score", "estimator", ["empirical"]),
    ("aumcc_score", "thresholds", [[0.5, 1.0], [0.5, NAN], "all"]),
    ("aumcc_score", "confidence", [[2.0, 1, 0, 0]]),
    ("risk_at_coverage_score", "coverage", [0, 1.5, 80, NAN]),
    ("coverage_at_risk_score", "max_risk", [5, True]),
    ("review_at_reliability review_rate_at_reliability_score", "reliability",
     [99, -0.1, "high", NAN, True, None]),
    ("oc_auc_score", "review_fraction", [1.0, -0.1, 10]),
    ("failure_average_precision_score", "positive", ["wrong"]),
    (RATIOS, "average", ["samples"]),
    ("cw_auc_score", "average", ["micro", "binary", "samples"]),
    (BINNED, "n_bins", [0, 7.5, [0, 0.5, 1]]),
    (BINNED, "strategy", ["equal"]),
    ("reliability_curve", "confidence_level", [1.0]),
    ("csr_score", "eps", [-1e-9, 0.5, NAN, "small"]),
    ("p_risk_score csr_test", "eps", [0.5]),
    ("ecd_score ecd_test cau_score", "eps", [0.0, 0.5]),
    ("cau_score", "lambda_", [-1.0, "auto"]),
    ("cau_cost_score", "cost_right", [-1]),
    ("cau_cost_score", "cost_wrong", ["auto"]),
    ("csr_test ecd_test t_cal_test", "random_state", ["now"]),
    ("csr_test ecd_test t_cal_test", "n_draws", [0, 9.5]),
    ("ecd_test t_cal_test", "method", ["bootstrap"]),
    ("ecd_test t_cal_test tce_score", "alpha", [0.0, 1.0, 5]),
    ("tce_score", "n_min", [0, 2.5]),
]  # fmt: skip
#: Parameters that do not go together, and what the message names.
AT_ODDS = [
    ("aurc_score", {"estimator": "ln", "sample_weight": [1, 2, 1, 1]}, "sample_weight"),
    ("augrc_score", {"estimator": "unbiased", "sample_weight": [1, 2, 1, 1]}, "sample_weight"),
    ("augrc_score", {"estimator": "unbiased", "coverage_range": (0, 0.5)}, "coverage_range"),
    ("aumcc_score", {"estimator": "exact", "thresholds": [0.5]}, "thresholds"),
    ("tce_score", {"n_min": 10, "n_max": 9}, "n_max"),
    ("csr_test", {"n_draws": 18}, "simulate at least 19"),
]
BY_FUNCTION = {spec.function.__name__: spec for spec in SPECS.values()}


@pytest.mark.parametrize(("call", "message"), [({function: {parameter: value}}, parameter)
     for functions, parameter, values in REFUSED
     for function, value in product(functions.split(), values)]
    + [({function: options}, message) for function, options, message in AT_ODDS])  # fmt: skip
def test_a_bad_parameter_is_named_by_the_function_and_by_evaluate(call, message):
    ((function, options),) = call.items()
    with pytest.raises(ValueError, match=message):
        getattr(sk.metrics, function)(Y, P, **options)
    spec = BY_FUNCTION.get(function)
    if spec is not None and set(options) <= set(spec.parameters):
        with pytest.raises(ValueError, match=message):
            sk.evaluate(Y, P, metrics={spec.name: options})


PROBABLE = [spec.function.__name__ for spec in SPECS.values() if spec.confidence == "probability"]
PROBABLE += ["cw_confusion_matrix", "cw_roc_curve", "reliability_curve"]
PROBABLE += ["csr_test", "ecce_test", "ecd_test", "t_cal_test"]


@pytest.mark.parametrize("name", [*PROBABLE, *CWSA.split()])
def test_what_reads_probabilities_refuses_other_confidences(name):
    whose = r"CWSA.*confidence.*\[0, 1\]" if name.startswith("cwsa") else r"confidences in \[0, 1\]"
    for confidence in ([1.5, 0.2, 0.3, 0.4], [-0.5, 0.2, 0.3, 0.4], lambda p: -p[:, 0]):
        with pytest.raises(ValueError, match=whose):
            getattr(sk.metrics, name)(Y, P, confidence=confidence)


# scikit-learn ----------------------------------------------------------------------------

RNG = np.random.default_rng(0)
CODES = np.arange(120) % 3
X = RNG.normal(size=(120, 2)) + CODES[:, None]
FOLDS = StratifiedKFold(3)


#: Labels, and what a scorer is told of them.
LABELLED = [
    ([-1, 1], {"pos_label": 1}), ([False, True], {"pos_label": True}),
    ([0, 1], {}), (["no", "yes"], {}), ([0, 1, 2], {}), (["a", "b", "c"], {}),
    ([0, 1, 2], {"labels": [0, 1, 2]}), (["a", "b", "c"], {"labels": ["a", "b", "c"]}),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "options"), LABELLED)
def test_a_metric_is_a_scorer(labels, options):
    """It gives what fitting on each fold and scoring the probabilities of its test rows gives."""
    y = np.array(labels)[np.minimum(CODES, len(labels) - 1)]
    names = [name for name in SPECS if len(labels) <= most_classes(name)]
    expected = {name: [] for name in names}
    for train, test in FOLDS.split(X, y):
        proba = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])
        for name in names:
            expected[name].append(score(name, y[test], proba, **options))
    scorers = {
        name: make_scorer(
            SPECS[name].function, response_method="predict_proba", **options, **REQUIRED[name]
        )
        for name in names
    }
    # The order of categories means nothing to scikit-learn.
    categories = pd.Series(pd.Categorical(y, categories=[*labels[1:], labels[0]]))
    for truth in [y] if options else [y, categories]:
        found = cross_validate(
            GaussianNB(), X, truth, scoring=scorers, cv=FOLDS, error_score="raise"
        )
        for name in names:
            with brute.named(name):
                brute.assert_close(found[f"test_{name}"], expected[name])


@pytest.mark.parametrize("name", SPECS)
def test_a_scorer_passes_weights_on(name):
    scorer = make_scorer(SPECS[name].function, response_method="predict_proba", **REQUIRED[name])
    y = np.minimum(CODES, most_classes(name) - 1)
    model, weight = GaussianNB().fit(X, y), RNG.integers(0, 4, 120)
    expected = score(name, y, model.predict_proba(X), sample_weight=weight)
    brute.assert_close(scorer(model, X, y, sample_weight=weight), expected)


@pytest.mark.parametrize("name", SPECS)
def test_make_scorer_without_probabilities_names_both_ways(name):
    scorer = make_scorer(SPECS[name].function, **REQUIRED[name])
    y = np.minimum(CODES, most_classes(name) - 1)
    remedy = "response_method=.*greater_is_better=False.*get_scorer"
    with pytest.raises(ValueError, match=remedy):
        scorer(GaussianNB().fit(X, y), X, y)


@pytest.mark.parametrize("seen", [2, 3])
@pytest.mark.parametrize("name", OF_MANY_CLASSES)
def test_classes_that_a_fold_lacks_are_scored_by_name(name, seen):
    """Two or three classes train a model, and the other number is scored."""
    model = GaussianNB().fit(X[seen > CODES], CODES[seen > CODES])
    fold = 5 - seen > CODES
    by_hand = make_scorer(SPECS[name].function, response_method="predict_proba", **REQUIRED[name])
    with pytest.raises(ValueError, match=r"Where a fold lacks a class, .*get_scorer"):
        by_hand(model, X[fold], CODES[fold])
    by_name = get_scorer(SPECS[name].scorer_name, **REQUIRED[name])
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        assert math.isfinite(by_name(model, X[fold], CODES[fold]))
