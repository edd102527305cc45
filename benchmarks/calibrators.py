"""What fitting a calibrator costs, as a multiple of scikit-learn's IsotonicRegression.fit.

    python benchmarks/calibrators.py [rows ...]

CPU time of one thread, best of five.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys

import numpy as np
import pandas as pd
from sklearn.isotonic import IsotonicRegression
from timing import best_of_five

from skselect import calibration


def ratios(n, rng):
    score = rng.normal(0, 2, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-score / 1.5))).astype(float)
    base = best_of_five(lambda: IsotonicRegression(out_of_bounds="clip").fit(score, y))
    row = {"IsotonicRegression.fit, ms": 1000 * base}
    for name in calibration.__all__:
        kind = getattr(calibration, name)
        fitted = kind().fit(score, y)
        row[f"{name}.fit"] = best_of_five(lambda kind=kind: kind().fit(score, y)) / base
        row[f"{name}.predict"] = best_of_five(lambda f=fitted: f.predict(score)) / base
    return row


def main():
    rows = [int(float(a)) for a in sys.argv[1:]] or [10_000, 100_000]
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"{n:,} rows": ratios(n, rng) for n in rows})
    print(table.round(2).to_string())


if __name__ == "__main__":
    main()
