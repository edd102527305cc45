"""Write what public packages compute on fixed rows: the tests compare ours with these numbers.

    python -P benchmarks/peers_values.py

Run it by hand with the packages installed, `pip install -e ".[benchmarks]"`, after a change to what
is compared. (-P: `calibration` is a package here, not the file beside this one.) Each CSV file in
`tests/peers/` holds rows and what a package says of them; `metrics.csv` is about `cases.csv`.
"""

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "peers"


def overlapping(n, rng):
    """Draw log-odds that are too sure, and outcomes."""
    true = rng.normal(0.4, 1.5, n)
    return np.round(1.7 * true, 3), (rng.random(n) < special.expit(true)).astype(int)


def beta_calibration(rng):
    from betacal import BetaCalibration

    score, y = overlapping(400, rng)
    column = special.expit(score)[:, None]
    found = BetaCalibration(parameters="abm").fit(column, y).predict(column)
    return pd.DataFrame({"score": score, "y": y, "betacal": found})


def venn_abers(rng):
    """Rows with an outcome were calibrated on; the others have an interval."""
    from venn_abers import VennAbers

    score = rng.integers(0, 60, 300) / 60
    y = (rng.random(300) < score).astype(int)
    new = np.round(rng.random(200), 4)
    peer = VennAbers()
    with np.errstate(all="ignore"):
        peer.fit(np.column_stack([1 - score, score]), y)
        _, interval = peer.predict_proba(np.column_stack([1 - new, new]))
    intervals = pd.DataFrame({"score": new, "low": interval[:, 0], "high": interval[:, 1]})
    return pd.concat([pd.DataFrame({"score": score, "y": y}), intervals]).astype({"y": "Int64"})


def cases(rng):
    """Confidences of two classifiers, one too sure, which are right on the same rows."""
    calibrated = rng.beta(3, 0.8, 1000)  # not rounded: MAPIE sorts equal ones by chance
    right = (rng.random(1000) < calibrated).astype(int)
    return pd.DataFrame(
        {"calibrated": calibrated, "overconfident": calibrated**0.6, "right": right}
    )


def metrics(confidence, right):
    """Yield metric, its number of bins, package and value."""
    import relplot
    from calibration import utils
    from mapie.metrics import calibration as mapie
    from probcal import metrics as probcal

    yield "ece", 15, "relplot", relplot.metrics.binnedECE(confidence, right, 15)
    yield "smooth_ece", None, "relplot", relplot.metrics.smECE(confidence, right)
    yield "ece", 10, "probcal", probcal.ece(right, confidence, n_bins=10, strategy="width")
    # MAPIE's `num_bins` counts edges.
    found = mapie.expected_calibration_error(right, confidence, 16, split_strategy="uniform")
    yield "ece", 15, "MAPIE", found
    # MAPIE divides both statistics by sigma itself. It leaves out the empty sum, which counts only
    # where all sums have one sign: here they have both.
    yield "mad / sigma", None, "MAPIE", mapie.kolmogorov_smirnov_statistic(right, confidence)
    yield "r / sigma", None, "MAPIE", mapie.kuiper_statistic(right, confidence)
    yield "mad_p_value", None, "MAPIE", mapie.kolmogorov_smirnov_p_value(right, confidence)
    yield "r_p_value", None, "MAPIE", mapie.kuiper_p_value(right, confidence)
    rows = list(zip(confidence, right, strict=True))
    binned = utils.bin(rows, [(k + 1) / 15 for k in range(15)])
    yield "ece", 15, "uncertainty-calibration", utils.plugin_ce(binned, power=1)
    yield "debiased_l2", 15, "uncertainty-calibration", utils.unbiased_l2_ce(binned)


def metrics_of(table):
    names = ["metric", "n_bins", "peer", "value"]
    found = [
        pd.DataFrame(metrics(table[case].to_numpy(), table["right"].to_numpy()), columns=names)
        for case in ("calibrated", "overconfident")
    ]
    return (
        pd.concat(found, keys=["calibrated", "overconfident"], names=["case", None])
        .astype({"n_bins": "Int64"})
        .reset_index(level=0)
    )


def main():
    rows = cases(np.random.default_rng(3))
    tables = {
        "beta_calibration": beta_calibration(np.random.default_rng(0)),
        "venn_abers": venn_abers(np.random.default_rng(0)),
        "cases": rows,
        "metrics": metrics_of(rows),
    }
    FOLDER.mkdir(exist_ok=True)
    for name, table in tables.items():
        table.to_csv(FOLDER / f"{name}.csv", index=False)
    for peer in ("betacal", "venn-abers", "relplot", "probcal", "MAPIE", "uncertainty-calibration"):
        print(peer, version(peer))


if __name__ == "__main__":
    main()
