"""What evaluation costs, as ratios to sorting in the same run.

    python benchmarks/kernels.py [rows ...]

CPU time of one thread, the calls taken in turn, the best of each; extra memory is the largest
that numpy held at once. `x sort` and `x argsort` are ratios to np.sort and np.argsort of as
many float64, `x roc` is how often the act fits into one roc_auc_score of scikit-learn.
"""

import os
from contextlib import suppress

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import itertools
import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from timing import best_in_turn, keep_memory
from tqdm import tqdm

from skselect import (
    Best,
    InfeasibleTargetError,
    Outcomes,
    Predictions,
    Risk,
    RiskCoverageCurve,
    SelectiveState,
    ThresholdTuner,
    check_policy,
    evaluate,
    select_threshold,
)
from skselect.inference import metrics_by_group
from skselect.inference.intervals import metric_interval
from skselect.metrics._evaluate import SPECS
from skselect.metrics._rows import ScoredRows
from skselect.metrics._threshold import coverage_score, cwsa_plus_score
from skselect.scoring import get_scorer

METRICS = ["aurc", "eaurc", "augrc", "failure_auroc", "cw_accuracy", "csr", "cwsa", "cwsa_plus"]
CURVES = ["threshold", "coverage", "selective_risk", "cwsa", "cwsa_plus"]
DELTAS = itertools.count(0.05, -1e-9)


def draw_rows(n, rng):
    confidence = 1 - 0.5 * rng.beta(0.5, 3, n)
    return confidence, (rng.random(n) < 1 - 0.98 * confidence).astype(float)


def everything(loss, confidence):
    """Return all metrics and the curves at every threshold, checks included."""
    curve = RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence))
    return [SPECS[name].kernel(curve) for name in METRICS], curve.arrays(*CURVES)


def with_cwsa(outcomes):
    """Return all metrics, and CWSA and CWSA+ at every threshold."""
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    return [SPECS[name].kernel(curve) for name in METRICS], curve.arrays("cwsa", "cwsa_plus")


def counted_fully(state, confidence, wrong):
    """Count rows, those included that would wait to be sorted with others."""
    state.update_confidence(confidence, wrong)
    state.counts.settle()


def first_call(outcomes, target, method="auto"):
    """Select a threshold at a delta for which no band is known yet."""
    risk = Risk(target, method=method, delta=next(DELTAS))
    return select_threshold(outcomes, objective=risk, on_infeasible="abstain")


def draw_often(n, n_draws=999):
    """Draw rows as a bootstrap does, and compute nothing."""
    rng = np.random.default_rng(0)
    for _ in range(n_draws):
        np.bincount(rng.integers(0, n, n), minlength=n)


def refuse(outcomes, target):
    """Ask for a target that nothing meets, and do not read why."""
    with suppress(InfeasibleTargetError):
        select_threshold(outcomes, objective=Risk(target, delta=next(DELTAS)))


def refuse_in_words(outcomes, target):
    """Ask for a target that nothing meets, and read why."""
    try:
        select_threshold(outcomes, objective=Risk(target, delta=next(DELTAS)))
    except InfeasibleTargetError as refusal:
        return str(refusal)
    return ""


def mask_plainly(y_true, y_proba, threshold=0.8):
    """Return CWSA+ at a threshold as one would write it down."""
    confidence, answer = y_proba.max(axis=1), y_proba.argmax(axis=1)
    accepted = confidence >= threshold
    phi = (confidence[accepted] - threshold) / (1 - threshold)
    return np.mean(phi * (answer[accepted] == y_true[accepted]))


def list_acts(n, rng):
    confidence, loss = draw_rows(n, rng)
    outcomes = Outcomes(loss, confidence)
    narrow = Outcomes(loss, confidence.astype(np.float32))
    weighted = Outcomes(loss, confidence, rng.random(n) + 0.5)
    graded = Outcomes(loss * rng.random(n), confidence)
    few, fewer, thousand = (
        outcomes.take(np.arange(min(n, most))) for most in (20_000, 10_000, 1_000)
    )
    tied = Outcomes(loss, np.append(confidence[1], confidence[1:]))
    ten = rng.dirichlet(np.ones(10), n)
    one_of_ten = rng.integers(0, 10, n)
    hundred = rng.dirichlet(np.ones(100), max(n // 10, 1))
    one_of_hundred = rng.integers(0, 100, len(hundred))
    without_auroc = [name for name in METRICS if name != "failure_auroc"]
    curve = RiskCoverageCurve.from_outcomes(outcomes)

    def standard_error(name):
        return SPECS[name].influence(ScoredRows(curve), {}).standard_error()

    X = rng.normal(size=(max(n // 10, 100), 50))
    y = (X[:, :5].sum(axis=1) + rng.normal(size=len(X)) > 0).astype(int)
    metrics = {"aurc": {}, "coverage": {"threshold": 0.8}}
    sites = rng.integers(0, 1000, n)
    users = rng.integers(0, 10_000, n)
    float32 = confidence.astype(np.float32)
    state = SelectiveState().update_confidence(float32, loss > 0)
    state.counts.settle()
    y_true = np.where(loss > 0, 1, 0)
    y_proba = np.column_stack([confidence, 1 - confidence])
    predictions = Predictions.from_proba(y_true, y_proba)
    selection = select_threshold(
        predictions, objective="risk", target=0.09, on_infeasible="abstain"
    )
    fresh_confidence, fresh_loss = draw_rows(1000, rng)
    fresh = Predictions.from_proba(
        (fresh_loss > 0).astype(int), np.column_stack([fresh_confidence, 1 - fresh_confidence])
    )
    categories = pd.Categorical.from_codes(y_true, ["no", "yes"])
    return {
        "np.sort": lambda: np.sort(confidence),
        "np.argsort": lambda: np.argsort(confidence),
        "sklearn roc_auc_score": lambda: roc_auc_score(1 - loss, confidence),
        "all metrics + curves, with checks": lambda: everything(loss, confidence),
        "all metrics + CWSA curves": lambda: with_cwsa(outcomes),
        "all metrics": lambda: evaluate(outcomes, METRICS),
        "all metrics, one tie": lambda: evaluate(tied, METRICS),
        "all metrics, float32": lambda: evaluate(narrow, METRICS),
        "all metrics, weighted": lambda: evaluate(weighted, METRICS),
        "all metrics, graded losses": lambda: evaluate(graded, without_auroc),
        "standard error of the AURC": lambda: standard_error("aurc"),
        "standard error of the AUGRC": lambda: standard_error("augrc"),
        "tune CWSA+ over all thresholds": lambda: select_threshold(
            outcomes, objective=Best("cwsa_plus", min_coverage=0.3)
        ),
        "certify a risk of 9 %": lambda: select_threshold(
            outcomes, objective="risk", target=0.09, on_infeasible="abstain"
        ),
        "certify a risk of 9 %, first call": lambda: first_call(outcomes, 0.09),
        "certify 1,000 rows, first call": lambda: first_call(thousand, 0.09),
        "certify graded losses": lambda: first_call(graded, 0.04),
        "certify a coverage of 80 %": lambda: select_threshold(
            outcomes, objective="coverage", target=0.8, on_infeasible="abstain"
        ),
        "a refusal, at most 20,000 rows": lambda: refuse(few, 0.003),
        "a refusal of at most 20,000 rows, in words": lambda: refuse_in_words(few, 0.003),
        "a check of 1,000 rows": lambda: check_policy(selection.policy, fresh),
        "six fits to a tenth of the rows": lambda: [
            LogisticRegression().fit(X, y) for _ in range(6)
        ],
        "ThresholdTuner, six fits": lambda: ThresholdTuner(
            LogisticRegression(), random_state=0
        ).fit(X, y),
        "two metrics of ten subgroups": lambda: metrics_by_group(
            predictions, subgroups=sites % 10, metrics=metrics
        ),
        "two metrics of a thousand subgroups": lambda: metrics_by_group(
            predictions, subgroups=sites, metrics=metrics
        ),
        "a coverage for each of a thousand subgroups": lambda: select_threshold(
            outcomes, objective="coverage", target=0.8, subgroups=sites, on_infeasible="abstain"
        ),
        "a risk for each of a thousand subgroups": lambda: select_threshold(
            outcomes, objective="risk", target=0.09, subgroups=sites, on_infeasible="abstain"
        ),
        "a coverage for each of ten thousand subgroups": lambda: select_threshold(
            outcomes,
            objective="coverage",
            target=0.8,
            subgroups=users,
            on_infeasible="abstain",
        ),
        "a plain mask": lambda: mask_plainly(y_true, y_proba),
        "coverage_score(y_true, y_proba)": lambda: coverage_score(y_true, y_proba, threshold=0.8),
        "cwsa_plus_score(y_true, y_proba)": lambda: cwsa_plus_score(y_true, y_proba, threshold=0.8),
        "aurc_score(y_true, y_proba)": lambda: SPECS["aurc"].function(y_true, y_proba),
        "argmax and max of two columns": lambda: (y_proba.argmax(axis=1), y_proba.max(axis=1)),
        "Outcomes.from_proba": lambda: Outcomes.from_proba(y_true, y_proba),
        "argmax and take of ten columns": lambda: ten[np.arange(n), ten.argmax(axis=1)],
        "Outcomes.from_proba, ten classes": lambda: Outcomes.from_proba(one_of_ten, ten),
        "argmax and max of a hundred columns, a tenth of the rows": lambda: (
            hundred.argmax(axis=1),
            hundred.max(axis=1),
        ),
        "Outcomes.from_proba, a hundred classes, a tenth of the rows": lambda: Outcomes.from_proba(
            one_of_hundred, hundred, labels=np.arange(100)
        ),
        "ECE alone": lambda: SPECS["ece"].function(y_true, y_proba),
        "interval of the ECE": lambda: metric_interval(y_true == 0, confidence, "ece"),
        "999 draws of at most 10,000 rows": lambda: draw_often(len(fewer)),
        "interval of the ECE, at most 10,000 rows": lambda: metric_interval(
            fewer.loss == 0, fewer.confidence, "ece"
        ),
        "Predictions.from_proba alone": lambda: Predictions.from_proba(y_true, y_proba),
        "Predictions.from_proba, text in categories": lambda: Predictions.from_proba(
            categories, y_proba
        ),
        "a state, float32": lambda: counted_fully(state, float32, loss > 0),
    }


def measure_peak(act):
    """Return the largest memory that an act held at once, in bytes."""
    tracemalloc.start()
    act()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def make_table(n, rng):
    keep_memory()
    acts = list_acts(n, rng)
    rounds = 30 if n <= 10_000 else 7 if n <= 1_000_000 else 4
    with tqdm(total=(rounds + 1) * len(acts), desc=f"{n:,} rows", leave=False) as bar:
        best = best_in_turn(acts, rounds, tick=bar.update)
    records = {}
    for name, seconds in best.items():
        records[name] = {
            "ns/row": 1e9 * seconds / n,
            "x sort": seconds / best["np.sort"],
            "x argsort": seconds / best["np.argsort"],
            "x roc": best["sklearn roc_auc_score"] / seconds,
            "extra B/row": measure_peak(acts[name]) / n,
        }
    return pd.DataFrame(records).T


def scorer_overheads(rng):
    """Return what a scorer call costs beyond predict_proba for 1000 rows, in milliseconds."""
    X = rng.normal(size=(1000, 5))
    y = (X[:, 0] + rng.normal(size=1000) > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    acts = {"predict_proba": lambda: model.predict_proba(X)}
    for name in ("cwsa_plus", "neg_aurc", "neg_augrc", "neg_ece", "failure_auroc", "cw_accuracy"):
        scorer = get_scorer(name)
        acts[name] = lambda scorer=scorer: scorer(model, X, y)
    best = best_in_turn(acts, 50)
    alone = best.pop("predict_proba")
    return pd.Series({name: 1000 * (seconds - alone) for name, seconds in best.items()})


def main():
    sizes = [int(float(a)) for a in sys.argv[1:]] or [1000, 100_000, 1_000_000, 10_000_000]
    rng = np.random.default_rng(0)
    warnings.simplefilter("ignore", UserWarning)  # about the chosen thresholds
    for n in sizes:
        print(f"\n{n:,} rows\n{make_table(n, rng).round(2).to_string()}")
    print("\nscorer calls at 1000 rows beyond predict_proba, ms")
    print(scorer_overheads(rng).round(3).to_string())


if __name__ == "__main__":
    main()
