"""arXiv 2605.01796: population values, and the synthetic tables 5, 8 and 9 cell by cell.

All 880 cells: `python -m pytest -m slow tests/paper`. `docs/paper_tables.md` lists the
conventions that the tables follow.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from skselect import Outcomes
from skselect.metrics import _overconfidence
from skselect.metrics._overconfidence import csr_z
from tests.paper.kernels import of_rows
from tests.paper.profiles import LAWS, MODES, judge, stream

REPETITIONS = 100
STATS = ["acc", "cwA", "gain", "CSR", "sigma", "gt1", "gt3", "Prisk"]
ROUNDED = 5e-5  # the reference tables have four digits

accuracy = of_rows("selective_accuracy")
cw_accuracy = of_rows("cw_accuracy")
cw_gain = of_rows("cw_gain")
csr = of_rows("csr")
csr_sigma = of_rows(_overconfidence.csr_sigma)
p_risk = of_rows("p_risk")

# A run without any error has no gain; it is left out of the mean.
pytestmark = pytest.mark.filterwarnings("ignore:cw_gain is undefined:UserWarning")


# Population values -----------------------------------------------------------------------

# Accuracy and cwA under perfect calibration.
PERFECT = {
    "Uniform": (0.5, 0.6667),
    "Skew High": (0.8571, 0.8889),
    "Skew Low": (0.1429, 0.3333),
    "Bimodal": (0.5, 0.8095),
    "Tight Hi": (0.9, 0.9037),
    "Tight Lo": (0.1, 0.1333),
    "Normal": (0.6996, 0.7137),
    "Log-Uniform Low": (0.1086, 0.5),
    "Log-Uniform High": (0.9344, 0.9614),
    "Bell": (0.5, 0.5455),
}

# The density of the confidence behaves like (1 - c)^(b - 1) near 1, the chance of an error like
# (1 - c)^e. The variance of l/(1 - c) is finite where b + e > 2, its mean where b + e > 1.
DENSITY = {
    "Uniform": 1.0, "Skew High": 0.5, "Skew Low": 3.0, "Bimodal": 0.5, "Tight Hi": 1.0,
    "Tight Lo": math.inf, "Normal": 1.0, "Log-Uniform Low": 1.0, "Log-Uniform High": 0.0,
    "Bell": 5.0,
}  # fmt: skip
ERRORS = {
    "Random 0.5": 0.0, "Perfect": 1.0, "Underconf 0.2+0.8c": 1.0, "Underconf sqrt": 1.0,
    "Random over c": 1.0, "Overconf 1-sqrt": 0.5, "Overconf 0.5c": 0.0, "Random under c": 0.0,
}  # fmt: skip


def standard_errors(rows: Outcomes) -> dict[str, float]:
    """Return the standard errors of accuracy, cwA, gain (in percent) and CSR, by linearising."""
    c, right = rows.confidence, 1.0 - rows.loss
    a, w = accuracy(rows, 0.0), cw_accuracy(rows)
    d_acc, d_cwa = right - a, c * (right - w) / np.mean(c)
    d_gain = 100 * (d_cwa - d_acc * (1 - w) / (1 - a)) / (1 - a)
    d_csr = rows.loss / (1 - c)
    return {
        name: float(np.std(values)) / math.sqrt(len(rows))
        for name, values in [("Acc", d_acc), ("cwA", d_cwa), ("gain", d_gain), ("E_CSR", d_csr)]
    }


@pytest.mark.parametrize("law", LAWS)
def test_perfect_calibration(law):
    rng = stream("perfect", law, 200_000)
    rows = judge(rng, "Perfect", LAWS[law](rng, 200_000))
    error = standard_errors(rows)
    a, w = PERFECT[law]
    assert accuracy(rows, 0.0) == pytest.approx(a, abs=4.5 * error["Acc"] + ROUNDED)
    assert cw_accuracy(rows) == pytest.approx(w, abs=4.5 * error["cwA"] + ROUNDED)


@pytest.mark.parametrize("law", LAWS)
def test_population_values(law, reference):
    expected = reference("csr_population.csv").set_index(["dist", "mode"])
    rng = stream("population", law, 1_000_000)
    confidence = LAWS[law](rng, 1_000_000)
    for mode in MODES:
        known = expected.loc[(law, mode)]
        rows = judge(rng, mode, confidence)
        error = standard_errors(rows)
        found = {
            "Acc": accuracy(rows, 0.0), "cwA": cw_accuracy(rows), "gain": 100 * cw_gain(rows),
        }  # fmt: skip
        if DENSITY[law] + ERRORS[mode] > 2:  # elsewhere the mean of many rows says nothing
            found["E_CSR"] = csr(rows, 0.0)
        for name, value in found.items():
            wanted = pytest.approx(known[name], abs=4.5 * error[name] + 1e-5)
            assert value == wanted, (mode, name)
    # The law itself: the mean confidence is exact to a few standard errors as well.
    spread = float(np.std(confidence)) / 1000
    assert np.mean(confidence) == pytest.approx(known["mean_conf"], abs=4.5 * spread + 1e-5)


# Tables 5, 8 and 9 -----------------------------------------------------------------------


def measure(rows: Outcomes) -> list[float]:
    """Return the eight published numbers of one repetition; nothing is clipped."""
    value, sigma = csr(rows, 0.0), csr_sigma(rows, 0.0)
    z = csr_z(value, sigma)
    return [
        accuracy(rows, 0.0), cw_accuracy(rows), 100 * cw_gain(rows), value, sigma,
        100.0 * (z > 1), 100.0 * (z > 3), 100 * p_risk(rows, 0.0),
    ]  # fmt: skip


def simulate(table: str, n: int, modes: list[str]) -> pd.DataFrame:
    """Return the mean over repetitions of every number, one row per cell."""
    cells = []
    for law in LAWS:
        # As published: the modes share the confidences. Each has its own random numbers.
        confidences = [LAWS[law](rng, n) for rng in stream(table, law, n).spawn(REPETITIONS)]
        for mode in modes:
            rngs = stream(f"{table} {mode}", law, n).spawn(REPETITIONS)
            runs = [measure(judge(rng, mode, c)) for rng, c in zip(rngs, confidences, strict=True)]
            means = np.nanmean(np.array(runs), axis=0)
            cells += [(table, n, law, mode, stat, x) for stat, x in zip(STATS, means, strict=True)]
    return pd.DataFrame(cells, columns=["table", "N", "dist", "mode", "stat", "found"])


def compare(found: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Join our cells with the reference, without those whose mean or variance is infinite."""
    keys = ["table", "N", "dist", "mode", "stat"]
    cells = found.merge(known.astype({"table": str}), on=keys, validate="one_to_one")
    assert len(cells) == len(found)
    # Heavy cells are CSR and sigma where one row decides the mean of a hundred repetitions.
    # Accuracy, cwA and the rates of the same classifiers are not heavy, and are compared.
    assert set(cells.loc[cells.heavy, "stat"]) <= {"CSR", "sigma"}
    return cells[~cells.heavy]


def outside(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells outside the band that holds 99.7 % of means of 100 repetitions."""
    return cells[
        (cells.found < cells.lo3s - ROUNDED) | (cells.found > cells.hi3s + ROUNDED)
    ]  # fmt: skip


def scores(cells: pd.DataFrame, column: str, spread: float) -> pd.Series:
    """Return the distances from `column` of the nearly normal numbers, in standard deviations."""
    normal = cells[cells.stat.isin(["acc", "cwA", "gain"])]
    return (normal.found - normal[column]) / (spread * normal.sd100)


def test_part_of_the_tables(reference):
    known = reference("csr_tables_5_8_9.csv")
    modes = ["Perfect", "Underconf sqrt", "Overconf 0.5c"]
    found = pd.concat([simulate("5", 100, ["Perfect"]), simulate("8/9", 1000, modes)])
    cells = compare(found, known)
    assert len(cells) > 280  # of 320
    misses = outside(cells)
    assert len(misses) <= 4, misses  # 0.8 are expected
    assert scores(cells, "mine", 1.0).abs().max() < 5


@pytest.mark.parametrize(
    ("mode", "published"),
    [("Random 0.5", 138863.1), ("Overconf 0.5c", 57168.2), ("Random under c", 116891.9)],
)
def test_the_synthetic_tables_do_not_clip(mode, published):
    # Skew High, N = 1000. The mean of CSR is infinite here; with eps = 1e-8, as on the paper's
    # real data, it is about 18,750 and the published values are out of reach.
    rngs = stream(f"clipped {mode}", "Skew High", 1000).spawn(REPETITIONS)
    runs = [judge(rng, mode, LAWS["Skew High"](rng, 1000)) for rng in rngs]
    clipped = [csr(rows, 1e-8) for rows in runs]
    error = np.std(clipped) / math.sqrt(REPETITIONS)
    assert np.mean(clipped) == pytest.approx(18_750, abs=4.5 * error)
    assert published > np.mean(clipped) + 8 * error
    assert np.mean([csr(rows, 0.0) for rows in runs]) > np.mean(clipped) + 8 * error


@pytest.mark.slow
def test_all_880_cells(reference):
    known = reference("csr_tables_5_8_9.csv")
    sizes = [100, 10_000, 100_000]  # the text says 1,000,000 where the table has 100,000
    found = [simulate("5", n, ["Perfect"]) for n in sizes]
    cells = pd.concat([*found, simulate("8/9", 1000, list(MODES))])
    assert len(cells) == 880
    cells = compare(cells, known)
    assert len(cells) == 816
    misses = outside(cells)
    assert len(misses) <= 8, misses  # 2.2 are expected
    ours = scores(cells, "mine", 1.0)
    assert ours.abs().max() < 5
    assert np.sqrt(np.mean(ours**2)) == pytest.approx(1.0, abs=0.25)
    # The printed value and ours are two draws of the same mean.
    printed = scores(cells, "paper", math.sqrt(2))
    assert printed.abs().max() < 4.5
    assert np.sum(printed.abs() > 3) <= 4
