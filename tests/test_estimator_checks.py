"""scikit-learn's own checks of an estimator, with every expected failure and its reason."""

import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skselect import SelectiveClassifier, ThresholdTuner

DENSE = "check_sample_weight_equivalence_on_dense_data"
SPARSE = "check_sample_weight_equivalence_on_sparse_data"

FOREST = "a random forest draws rows, not weights (it fails this check by itself)"
PIPELINE = "only the last step of a pipeline gets weights, so StandardScaler scales without"
HIST = "bins and leaf sizes count rows, not weights (seen once there are enough rows to split)"
ABSTAINS = "the check wants a class for every row, and this configuration abstains"
ASKS = "the check uses the classes {-1, 1}, for which fit asks for an abstain label by design"

CASES = [
    (SelectiveClassifier(LogisticRegression()), {}),
    (SelectiveClassifier(GaussianNB()), {}),
    (SelectiveClassifier(RandomForestClassifier(5, random_state=0)),
     {DENSE: FOREST, SPARSE: FOREST}),
    (SelectiveClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
     {DENSE: PIPELINE, SPARSE: "StandardScaler refuses to centre sparse rows"}),
    (SelectiveClassifier(HistGradientBoostingClassifier(max_iter=5)), {DENSE: HIST}),
    (SelectiveClassifier(LogisticRegression(), calibration="platt"), {}),
    (SelectiveClassifier(GaussianNB(), calibration="isotonic"), {}),
    (SelectiveClassifier(LogisticRegression(), threshold=0.7),
     {"check_classifiers_train": ABSTAINS, "check_classifiers_classes": ASKS}),
    (SelectiveClassifier(GaussianNB(), threshold=0.9, calibration="platt"),
     {"check_classifiers_train": ABSTAINS, "check_classifiers_classes": ASKS}),
    (ThresholdTuner(LogisticRegression()), {"check_classifiers_classes": ASKS}),
]  # fmt: skip

EXPECTED = {repr(estimator): reasons for estimator, reasons in CASES}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@parametrize_with_checks(
    [estimator for estimator, _ in CASES],
    expected_failed_checks=lambda estimator: EXPECTED[repr(estimator)],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
