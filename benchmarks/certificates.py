"""How often certificates fail, and how much they answer, on populations whose truth is known.

    python benchmarks/certificates.py [--draws 300] [--rows 1000 5000] [--delta 0.1]

Rows have ranks u in [0, 1], 0 the surest, and an error probability eta(u). Each draw certifies on n
rows and looks up the true risk and coverage of the threshold. Needs `pip install ".[benchmarks]"`.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import zlib

import numpy as np
import pandas as pd
from tqdm import tqdm
from zugzwang import certify_threshold

from skselect import Outcomes, RiskCoverageCurve, thresholds

GRID = np.linspace(0, 1, 200_001)
PROFILES = {
    "sharp": lambda u: 0.5 * u**6,
    "gradual": lambda u: 0.3 * u**2,
    "steep": lambda u: np.where(u < 0.6, 0.002, 0.25),
    "weak": lambda u: 0.02 + 0.2 * u,
    "overconfident top": lambda u: np.where(u < 0.05, 0.15, 0.0) + 0.3 * u**3,
}
RULES = {name: rule.find for name, rule in thresholds.RISK_RULES.items()}


def own(rule):
    def threshold(confidence, wrong, target, delta):
        curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, confidence))
        return thresholds.threshold_below(curve, rule(curve, target, delta, 0.1))

    return threshold


def sgr_of_zugzwang(confidence, wrong, target, delta):
    try:
        return certify_threshold(confidence, wrong, risk=target, delta=delta).threshold
    except ValueError:  # nothing can be certified
        return np.inf


METHODS = {name: own(rule) for name, rule in RULES.items()} | {"SGR (zugzwang)": sgr_of_zugzwang}


class Population:
    def __init__(self, eta):
        self.eta = eta
        middle = (GRID[1:] + GRID[:-1]) / 2
        self.errors = np.concatenate([[0.0], np.cumsum(eta(middle)) / len(middle)])

    def oracle(self, target):
        good = np.flatnonzero(self.errors[1:] <= target * GRID[1:])
        return GRID[1:][good[-1]] if len(good) else 0.0

    def draw(self, n, rng):
        u = rng.random(n)
        return 1 - u, rng.random(n) < self.eta(u)

    def truth(self, threshold):
        """Return coverage and risk; risk 0 when nothing is accepted."""
        u = min(max(1.0 - threshold, 0.0), 1.0)
        return u, float(np.interp(u, GRID, self.errors)) / u if u > 0 else 0.0


def cell(name, eta, n, target, delta, draws):
    population, rng = (
        Population(eta),
        np.random.default_rng(zlib.crc32(f"{name}{n}{target}".encode())),
    )
    found = {method: [] for method in METHODS}
    for _ in range(draws):
        confidence, wrong = population.draw(n, rng)
        for method, threshold in METHODS.items():
            found[method].append(population.truth(threshold(confidence, wrong, target, delta)))
    oracle = population.oracle(target)
    for method, draws_of_method in found.items():
        coverage, risk = np.array(draws_of_method).T
        yield {
            "method": method, "profile": name, "n": n, "target": target,
            "failures": np.mean(risk > target * (1 + 1e-9)),
            "share of oracle": coverage.mean() / oracle if oracle > 0 else np.nan,
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--targets", type=float, nargs="+", default=[0.01, 0.05, 0.1])
    parser.add_argument("--delta", type=float, default=0.1)
    options = parser.parse_args()
    flat = {
        f"flat {target:g}": (lambda u, r=target: np.full_like(u, 1.0001 * r))
        for target in options.targets
    }
    jobs = [
        (name, eta, n, target)
        for name, eta in (PROFILES | flat).items()
        for n in options.rows
        for target in options.targets
        if not name.startswith("flat") or name == f"flat {target:g}"
    ]
    rows = [
        row
        for name, eta, n, target in tqdm(jobs)
        for row in cell(name, eta, n, target, options.delta, options.draws)
    ]
    table = pd.DataFrame(rows)
    shares = table.dropna().pivot_table("share of oracle", "method", "profile")
    whole = table.groupby("method").agg(
        worst_failure=("failures", "max"),
        mean_share=("share of oracle", "mean"),
        worst_share=("share of oracle", "min"),
    )
    print(f"delta {options.delta:g}, {options.draws} draws a cell, {len(jobs)} cells\n")
    print(whole.join(shares).round(3).to_string())


if __name__ == "__main__":
    main()
