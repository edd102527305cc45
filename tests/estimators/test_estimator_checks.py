"""scikit-learn's own checks of an estimator, with every expected failure and its reason."""

import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

import skselect as sk
from skselect.calibration._calibrators import CALIBRATORS
from tests.brute import named

DENSE = "check_sample_weight_equivalence_on_dense_data"
SPARSE = "check_sample_weight_equivalence_on_sparse_data"

FOREST = "a random forest draws rows, not weights (it fails this check by itself)"
PIPELINE = "only the last step of a pipeline gets weights, so StandardScaler scales without"
HIST = "bins and leaf sizes count rows, not weights (seen once there are enough rows to split)"
ABSTAINS = "the check wants a class for every row, and this configuration abstains"
STACKS = "the check fixes the folds of the outer estimator only; those inside stacking differ"
CHEAPEST = "the check wants the most probable class, and the cheapest answer is another"
COINS = "whether a weighted row counts is drawn by chance, and repeated rows all count"
COUNTS = "a certificate counts independent rows, so it refuses weights"

VOTING = VotingClassifier([("one", GaussianNB()), ("two", LogisticRegression())], voting="soft")
STACKING = StackingClassifier([("one", GaussianNB())], cv=2)
LEARNED = sk.LearnedConfidence(auxiliary=[LogisticRegression()], guard=False)
RISK = {"objective": "risk", "target": 0.5, "on_infeasible": "abstain"}
WEIGHTED = sk.Risk(0.5, largest_weight=10)
CERTIFIED = {
    DENSE: COUNTS,
    "check_sample_weights_not_overwritten": COUNTS,
    "check_classifiers_one_label_sample_weights": COUNTS,
}

#: By default one configuration of each class; they share the code that fits, routes and tags.
CASES = [
    (sk.SelectiveClassifier(GaussianNB(), calibration="isotonic"), {}),
    (sk.ThresholdTuner(GaussianNB(), **RISK), CERTIFIED),
    (sk.CascadeClassifier([("one", GaussianNB()), ("two", LogisticRegression())]), {}),
]

#: By default only those checks that look at what was fitted.
OTHER_MODELS = [
    (sk.SelectiveClassifier(RandomForestClassifier(5, random_state=0)),
     {DENSE: FOREST, SPARSE: FOREST}),
    (sk.SelectiveClassifier(HistGradientBoostingClassifier(max_iter=5)), {DENSE: HIST}),
    (sk.SelectiveClassifier(LinearSVC(), calibration="temperature"), {}),
    (sk.ThresholdTuner(LogisticRegression()),
     {"check_classifiers_train": ABSTAINS}),
    (sk.SelectiveClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
     {DENSE: PIPELINE, SPARSE: "StandardScaler refuses to centre sparse rows"}),
    (sk.SelectiveClassifier(GaussianNB(), threshold=0.9, calibration="platt"),
     {"check_classifiers_train": ABSTAINS}),
    (sk.SelectiveClassifier(GaussianNB(), calibration="beta"), {}),
    (sk.SelectiveClassifier(VOTING), {}),
    (sk.SelectiveClassifier(STACKING), {DENSE: STACKS}),
]  # fmt: skip
FITTED = {
    DENSE, SPARSE, "check_classifiers_train", "check_estimators_pickle", "check_fit_idempotent",
    "check_methods_sample_order_invariance",
}  # fmt: skip

MORE_CASES = [
    *OTHER_MODELS,
    (sk.SelectiveClassifier(LogisticRegression(), threshold=0.7),
     {"check_classifiers_train": ABSTAINS}),
    (sk.SelectiveClassifier(GaussianNB(), calibration="platt", confidence=LEARNED), {}),
    (sk.SelectiveClassifier(GaussianNB(), calibration="platt", calibration_scope="confidence"), {}),
    (sk.SelectiveClassifier(LogisticRegression(), decision="estimator"), {}),
    (sk.ThresholdTuner(GaussianNB(), WEIGHTED, on_infeasible="abstain"),
     {DENSE: COINS}),
    (sk.ThresholdTuner(GaussianNB(), objective="coverage", target=0.5),
     CERTIFIED | {"check_classifiers_train": ABSTAINS}),
]  # fmt: skip


def each_of(cases):
    names = [repr(estimator) for estimator, _ in cases]
    return pytest.mark.parametrize(("estimator", "reasons"), cases, ids=names)


def run_checks(estimator, reasons):
    """Run all checks; those with a reason must fail, the others must not."""
    results = check_estimator(estimator, expected_failed_checks=reasons, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    passed = {result["check_name"] for result in results if result["status"] == "passed"}
    assert failed <= set(reasons)
    assert not passed & set(reasons)
    assert len(passed) > 40


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@each_of(CASES)
def test_scikit_learn_checks(estimator, reasons):
    run_checks(estimator, reasons)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@each_of(OTHER_MODELS)
def test_what_other_models_fit(estimator, reasons):
    checks = {
        check.func.__name__: check
        for _, check in estimator_checks_generator(estimator)
        if check.func.__name__ in FITTED - set(reasons)
    }
    assert len(checks) >= 3
    for name, check in checks.items():
        with named(name):
            check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@each_of(MORE_CASES)
def test_scikit_learn_checks_of_more_cases(estimator, reasons):
    run_checks(estimator, reasons)


# The rows of these are probabilities, or one score each; most checks draw features of their own.
WITHOUT_ROWS = {
    "check_do_not_raise_errors_in_init_or_set_param", "check_estimator_cloneable",
    "check_estimator_repr", "check_estimator_tags_renamed", "check_estimators_unfitted",
    "check_get_params_invariance", "check_mixin_order", "check_no_attributes_set_in_init",
    "check_parameters_default_constructible", "check_set_params", "check_valid_tag_types",
}  # fmt: skip


@pytest.mark.parametrize(
    "estimator", [sk.PrecomputedClassifier([0, 1]), *(kind() for kind in CALIBRATORS.values())]
)
def test_checks_that_need_no_rows(estimator):
    checks = [
        check
        for _, check in estimator_checks_generator(estimator)
        if check.func.__name__ in WITHOUT_ROWS
    ]
    assert len(checks) >= 8
    for check in checks:
        check(estimator)
