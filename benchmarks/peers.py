"""What each metric costs, beside public packages that compute the same, in the same run.

    python benchmarks/peers.py [rows ...]

The kernels get confidence and correctness and return the number, as the peers do. CPU time
of one thread, best of at least five, in milliseconds; `ratio` is ours over the fastest peer's.
Peers that are not installed are left out: relplot, probcal, MAPIE, uncertainty-calibration,
mcgrad, seapig, torchmetrics, zugzwang.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import contextlib
import io
import sys
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from skselect import Outcomes, Predictions, RiskCoverageCurve
from skselect.metrics import SPECS
from skselect.metrics._calibration_tests import run_t_cal_test


def best_of_many(act):
    """Return the least time of at least five calls, more for short ones."""
    act()
    times = []
    while len(times) < 5 or (sum(times) < 0.2 and len(times) < 500):
        start = time.thread_time()
        act()
        times.append(time.thread_time() - start)
    return 1000 * min(times)


def peers(confidence, right):
    """Yield metric, peer and call for every peer that is installed."""
    c, a = confidence, right.astype(np.int64)
    yield "failure_auroc", "scikit-learn", lambda: roc_auc_score(a, c)
    yield "failure_average_precision", "scikit-learn", lambda: average_precision_score(1 - a, -c)
    yield "top_label_brier", "scikit-learn", lambda: brier_score_loss(a, c)
    yield (
        "isotonic_distance", "scikit-learn",
        lambda: np.abs(c - IsotonicRegression().fit_transform(c, a)).mean(),
    )  # fmt: skip
    with contextlib.suppress(ImportError):
        import relplot

        yield "ece", "relplot", lambda: relplot.metrics.binnedECE(c, a, 15)
        yield "smooth_ece", "relplot", lambda: relplot.smECE(c, a)
    with contextlib.suppress(ImportError):
        from probcal import metrics

        yield "ece", "probcal", lambda: metrics.ece(a, c, n_bins=15)
        yield "smooth_ece", "probcal (on logits)", lambda: metrics.smooth_ece(a, c)
        yield "ecce_r", "probcal", lambda: metrics.ecce(a, c)
        yield "debiased_l2", "probcal", lambda: metrics.ece_debiased(a, c)
    with contextlib.suppress(ImportError):
        from mapie.metrics import calibration

        yield (
            "ece",
            "MAPIE",
            lambda: calibration.expected_calibration_error(
                a, c, num_bins=16, split_strategy="uniform"
            ),
        )
        yield "ecce_mad", "MAPIE", lambda: calibration.kolmogorov_smirnov_statistic(a, c)
        yield "ecce_r", "MAPIE", lambda: calibration.kuiper_statistic(a, c)
    with contextlib.suppress(ImportError):
        from calibration.utils import bin as binned, get_equal_bins, unbiased_l2_ce

        yield (
            "debiased_l2",
            "uncertainty-calibration",
            lambda: unbiased_l2_ce(binned(list(zip(c, a, strict=True)), get_equal_bins(c, 15))),
        )
    with contextlib.suppress(ImportError):
        import torch
        from torchmetrics.functional.classification import binary_calibration_error

        torch.set_num_threads(1)
        score, truth = torch.from_numpy(c), torch.from_numpy(a)
        yield "ece", "torchmetrics", lambda: binary_calibration_error(score, truth, n_bins=15)
    with contextlib.suppress(ImportError):
        from zugzwang import core

        yield "aurc", "zugzwang", lambda: core.aurc(c, a == 0)
    with contextlib.suppress(ImportError):
        import torch
        from seapig.risk import risk_coverage

        score, wrong = torch.from_numpy(c), torch.from_numpy(1.0 - a)
        yield "augrc", "seapig", lambda: risk_coverage(score, wrong).auc_empirical
        yield "aurc", "seapig", lambda: risk_coverage(score, wrong, risk="selective").auc_empirical
    yield "aurc", "stable argsort", lambda: stable_argsort_aurc(c, 1.0 - a)


def stable_argsort_aurc(confidence, wrong):
    """Return the AURC as fd-shifts and others compute it: argsort, reorder, cumulative sums."""
    order = np.argsort(-confidence, kind="stable")
    return np.mean(np.cumsum(wrong[order]) / np.arange(1, len(wrong) + 1))


def ours(name, confidence, right):
    """Return a call that starts from confidence and correctness, checks left out."""
    spec = SPECS[name]
    outcomes = Outcomes(1.0 - right, confidence)
    if spec.needs == "outcomes":
        return lambda: spec.kernel(outcomes)
    return lambda: spec.kernel(RiskCoverageCurve.from_outcomes(outcomes))


def table(n, rng):
    confidence = rng.beta(3, 0.5, n)
    right = (rng.random(n) < confidence).astype(np.float64)
    times = {}
    for metric, peer, act in peers(confidence, right):
        try:
            times.setdefault(metric, {})[peer] = best_of_many(act)
        except Exception as error:
            times.setdefault(metric, {})[f"{peer}: {type(error).__name__}"] = np.nan
    rows = []
    for metric, found in times.items():
        mine = best_of_many(ours(metric, confidence, right))
        fastest = min((t for t in found.values() if t == t), default=np.nan)
        others = ", ".join(
            f"{peer} {ms:.2f}" for peer, ms in sorted(found.items(), key=lambda p: p[1])
        )
        rows.append({"metric": metric, "rows": n, "skselect": mine, "ratio": mine / fastest,
                     "peers": others})  # fmt: skip
    ece = best_of_many(ours("ece", confidence, right))
    outcomes = Outcomes(1.0 - right, confidence)
    t_cal = best_of_many(lambda: run_t_cal_test(outcomes))
    rows.append({"metric": "t_cal_test", "rows": n, "skselect": t_cal, "ratio": t_cal / ece,
                 "peers": "one ECE of ours"})  # fmt: skip
    proba = np.column_stack([1 - confidence, confidence])
    predictions = Predictions.from_proba(right.astype(int), proba, labels=[0, 1])
    mass = proba.max(axis=1)
    mine = best_of_many(lambda: SPECS["cw_auc"].kernel(predictions))
    peer = best_of_many(
        lambda: [roc_auc_score(predictions.y_true == k, proba[:, k], sample_weight=mass)
                 for k in range(2)]
    )  # fmt: skip
    rows.append({"metric": "cw_auc", "rows": n, "skselect": mine, "ratio": mine / peer,
                 "peers": f"scikit-learn, class by class {peer:.2f}"})  # fmt: skip
    return rows


def main():
    sizes = [int(float(a)) for a in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    rng = np.random.default_rng(0)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        rows = [row for n in sizes for row in table(n, rng)]
    with pd.option_context("display.width", 250, "display.max_colwidth", 120):
        print(pd.DataFrame(rows).sort_values(["metric", "rows"]).round(2).to_string(index=False))


if __name__ == "__main__":
    main()
