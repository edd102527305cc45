"""One table of bad input: each case is a clear error that names the argument and the remedy."""

import json
import warnings

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.naive_bayes import GaussianNB

from skselect import (
    AbstentionPolicy,
    Outcomes,
    Predictions,
    RiskCoverageCurve,
    SelectiveClassifier,
    ThresholdTuner,
    evaluate,
    get_scorer,
    select_threshold,
)
from skselect.metrics import augrc_score, aurc_score, cwsa_plus_score, cwsa_score

Y, P = [0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]
X, Y_MANY = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
POLICY = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)


def cut_off():
    inner = GaussianNB().fit(X, X[:, 0] > 0)
    moved = FixedThresholdClassifier(inner, threshold=0.1, response_method="predict_proba")
    return SelectiveClassifier(moved).fit(X, X[:, 0] > 0)


def newer_policy():
    stored = json.loads(POLICY.to_json()) | {"version": 3}
    return AbstentionPolicy.from_json(json.dumps(stored))


CASES = {
    "empty y_true": (lambda: aurc_score([], np.empty((0, 2))), "y_true is empty; at least one row"),
    "empty confidence": (lambda: Outcomes([], []), "loss is empty; at least one row"),
    "nan confidence": (lambda: Outcomes(Y, [0.1, np.nan, 1]), "confidence has 1 NaN or infinite"),
    "infinite confidence": (
        lambda: Outcomes(Y, [0.1, np.inf, 1]),
        "confidence has 1 NaN or infinite values; every row needs a finite",
    ),
    "rows that do not sum to one": (
        lambda: aurc_score(Y, [[0.9, 0.3]] * 3),
        "y_proba: each row must sum to one, row 0 sums to 1.2. Pass one column for every class",
    ),
    "outside [0, 1]": (
        lambda: aurc_score(Y, [[1.5, -0.5]] * 3),
        r"y_proba must lie in \[0, 1\], got values from -0.5 to 1.5. Turn logits",
    ),
    "nan probability": (lambda: aurc_score(Y, [[np.nan, 0.5]] * 3), "y_proba has NaN or infinite"),
    "wrong lengths": (lambda: aurc_score(Y, P[:2]), "y_proba has 2 rows, but y_true has 3"),
    "wrong length of weights": (
        lambda: aurc_score(Y, P, sample_weight=[1, 2]),
        "sample_weight has 2 rows, but y_true has 3",
    ),
    "negative weights": (
        lambda: aurc_score(Y, P, sample_weight=[1, -1, 1]),
        "sample_weight must hold finite numbers that are not negative",
    ),
    "all weights zero": (
        lambda: aurc_score(Y, P, sample_weight=[0, 0, 0]),
        "sample_weight is zero for every row; at least one row must count",
    ),
    "labels as probabilities": (
        lambda: cwsa_plus_score(Y, [0, 1, 1]),
        "y_proba is one-dimensional and holds int64 values: these look like labels.*predict_proba",
    ),
    "unknown label": (lambda: aurc_score([0, 1, 2], P), "y_proba has 2 columns for the 3 classes.*"
                      "Pass labels="),
    "unnamed positive class": (
        lambda: aurc_score(["no", "yes", "no"], [0.1, 0.9, 0.2]),
        "pos_label must name the class whose probability y_proba holds.*Pass pos_label=",
    ),
    "one class": (lambda: SelectiveClassifier(LogisticRegression()).fit(X, [1] * 60), "class"),
    "unknown metric": (lambda: evaluate(Outcomes(Y, [1, 1, 1]), ["hope"]), "metrics must be one of"),
    "unknown scorer": (lambda: get_scorer("hope"), "name must be one of"),
    "unknown confidence": (lambda: aurc_score(Y, P, confidence="hope"), "confidence must be one of"),
    "unknown loss": (lambda: aurc_score(Y, P, loss="hope"), "loss must be one of"),
    "unknown estimator of AURC": (lambda: aurc_score(Y, P, estimator="x"), "estimator must be one"),
    "unknown calibration": (
        lambda: SelectiveClassifier(GaussianNB(), calibration="x").fit(X, Y_MANY),
        "calibration must be one of",
    ),
    "sigmoid": (
        lambda: SelectiveClassifier(GaussianNB(), calibration="sigmoid").fit(X, Y_MANY),
        "Use calibration='platt'",
    ),
    "CWSA threshold of one": (lambda: cwsa_score(Y, P, threshold=1.0), r"threshold must lie in \[0,"),
    "negative CWSA threshold": (
        lambda: cwsa_plus_score(Y, P, threshold=-0.1),
        r"threshold must lie in \[0, 1\) for CWSA",
    ),
    "CWSA of unbounded confidences": (
        lambda: RiskCoverageCurve.from_outcomes(Outcomes(Y, [3, 2, 1])).cwsa(),
        r"needs confidences in \[0, 1\], got values from 1 to 3. Use 'max_proba'",
    ),
    "threshold nan": (
        lambda: SelectiveClassifier(GaussianNB(), threshold=np.nan).fit(X, Y_MANY),
        "threshold must be a number",
    ),
    "coverage of zero": (
        lambda: RiskCoverageCurve.from_outcomes(Outcomes(Y, [3, 2, 1])).risk_at_coverage(0),
        r"coverage must be a number in \(0, 1\]",
    ),
    "coverage range turned round": (
        lambda: augrc_score(Y, P, coverage_range=(0.8, 0.2)),
        r"coverage_range\[1\] must be a number in \(0.8, 1\]",
    ),
    "unfitted": (
        lambda: SelectiveClassifier(GaussianNB()).predict(X),
        r"not fitted yet. Call fit\(X, y\) first",
    ),
    "unfitted tuner": (lambda: ThresholdTuner(GaussianNB()).predict(X), "not fitted yet"),
    "fitted, not frozen": (
        lambda: SelectiveClassifier(GaussianNB().fit(X, Y_MANY)).fit(X, Y_MANY),
        r"estimator: this GaussianNB is already fitted.*Pass FrozenEstimator\(estimator\)",
    ),
    "predict is not the argmax": (cut_off, "estimator: .*predict differs.*Choose decision='estimator'"),
    "target with a metric": (
        lambda: ThresholdTuner(GaussianNB(), objective="cwsa_plus", target=0.1).fit(X, Y_MANY),
        "target: the objective 'cwsa_plus' .*Leave it out, or use objective='risk'",
    ),
    "risk without target": (
        lambda: select_threshold(Outcomes(Y, [1, 1, 1]), objective="risk"),
        "target is missing: objective='risk' needs the largest selective risk, for example",
    ),
    "weights with a certificate": (
        lambda: ThresholdTuner(GaussianNB(), objective="risk", target=0.1).fit(X, Y_MANY, np.arange(60)),
        "sample_weight: a certificate counts independent rows.*Leave sample_weight out",
    ),
    "graded losses with a certificate": (
        lambda: select_threshold(
            Outcomes([0, 0.5], [0.9, 0.8]), objective="risk", target=0.1, method="band"
        ),
        "loss: this method counts errors.* Use method='betting'",
    ),
    "groups of thresholds": (
        lambda: ThresholdTuner(GaussianNB(), group_by="sex").fit(X, Y_MANY),
        "group_by='sex': X has no column .*Pass columns of X, a function of X, or 'predicted_class'",
    ),
    "frozen classifier of other classes": (
        lambda: SelectiveClassifier(FrozenEstimator(GaussianNB().fit(X, Y_MANY)))
        .fit(X, Y_MANY + 1),
        "y has labels that are not among the classes .*was not trained on them",
    ),
    "policy that is no JSON": (lambda: AbstentionPolicy.from_json("{"), "damaged JSON"),
    "policy that is not there": (lambda: AbstentionPolicy.from_json("x.json"), "path_or_text"),
    "newer policy": (newer_policy, "format version 3; this skselect reads up to 2. Update skselect"),
    "policy for other columns": (
        lambda: POLICY.decide([[0.2, 0.3, 0.5]]),
        "y_proba has 3 columns, but the policy is for the classes .*pass one column for each",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_a_clear_error(case):
    act, message = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a fitted, unfrozen classifier warns: here it raises
        with pytest.raises((ValueError, UserWarning), match=message):
            act()


def test_frozen_outcomes_do_not_follow_later_edits():
    loss, confidence, weight = np.array([0.0, 1.0]), np.array([0.9, 0.8]), np.array([1.0, 2.0])
    outcomes = Outcomes(loss, confidence, weight)
    for array in (loss, confidence, weight):
        array[:] = 0.5
    assert outcomes.loss.tolist() == [0.0, 1.0]
    assert outcomes.confidence.tolist() == [0.9, 0.8]
    assert outcomes.weight.tolist() == [1.0, 2.0]


def test_good_arrays_are_left_as_they_were():
    y, proba, weight = np.array(Y), np.array(P), np.array([1.0, 2.0, 3.0])
    before = [a.copy() for a in (y, proba, weight)]
    evaluate(Predictions.from_proba(y, proba, sample_weight=weight))
    for array, copy in zip((y, proba, weight), before, strict=True):
        assert np.array_equal(array, copy)
