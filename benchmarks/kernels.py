"""What the curve and the metrics cost, as ratios to np.sort of as many floats in the same run.

    python benchmarks/kernels.py [rows ...]

CPU time of one thread, best of five.
"""

import sys

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from timing import best_of_five

from skselect import Outcomes, RiskCoverageCurve, evaluate, select_threshold


def ratios(n, rng):
    confidence = 1 - 0.5 * rng.beta(0.5, 3, n)
    loss = (rng.random(n) < 1 - 0.98 * confidence).astype(float)
    outcomes = Outcomes(loss, confidence)
    weighted = Outcomes(loss, confidence, rng.random(n))
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    sort = best_of_five(lambda: np.sort(confidence))
    acts = {
        "np.argsort": lambda: np.argsort(confidence),
        "sklearn roc_auc_score": lambda: roc_auc_score(1 - loss, confidence),
        "curve": lambda: RiskCoverageCurve.from_outcomes(outcomes),
        "curve, weighted": lambda: RiskCoverageCurve.from_outcomes(weighted),
        "AURC of a curve": curve.aurc,
        "AUGRC of a curve": curve.augrc,
        "CWSA+ at 50 thresholds": lambda: curve.cwsa_plus(np.linspace(0.5, 0.99, 50)),
        "all default metrics": lambda: evaluate(outcomes),
        "tune CWSA+ exactly": lambda: select_threshold(
            outcomes, objective="cwsa_plus", min_coverage=0.0
        ),
        "certify 20 % risk": lambda: select_threshold(outcomes, objective="risk", target=0.2),
    }
    row = {"np.sort, ms": 1000 * sort}
    return row | {name: best_of_five(act) / sort for name, act in acts.items()}


def main():
    rows = [int(float(a)) for a in sys.argv[1:]] or [1_000, 100_000, 1_000_000]
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"{n:,} rows": ratios(n, rng) for n in rows})
    print(table.round(2).to_string())


if __name__ == "__main__":
    main()
