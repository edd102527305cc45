"""How much is answered where losses lie between 0 and 1, or rows have weights.

    python benchmarks/counts.py [--draws 200] [--rows 500 2000]

Rows have ranks u, 0 the surest, and err with probability .25 u: with a cost of .5 or 1, of .1 or 1,
or a uniform one; or each row has a Brier score, or a small loss. Verdicts on answers that err with
probability .3 u are asked for with probability p where u < .5, and always elsewhere. Coverage and
broken targets come from the known population, delta is 5 %.
"""

import argparse
import warnings

import numpy as np
import pandas as pd

from skselect import Outcomes, Risk, select_threshold

#: The loss of rows by their rank, and the mean loss of a wrong one.
LOSSES = {
    "costs 0, .5, 1": (lambda u, rng: is_wrong(u, rng) * rng.choice([0.5, 1.0], len(u)), 0.75),
    "costs 0, .1, 1": (lambda u, rng: is_wrong(u, rng) * rng.choice([0.1, 1.0], len(u)), 0.55),
    "uniform costs": (lambda u, rng: is_wrong(u, rng) * rng.random(len(u)), 0.5),
    "Brier scores": (lambda u, rng: (is_wrong(u, rng) - 0.25 * u) ** 2, None),
    "all small": (lambda u, rng: 0.25 * u * rng.random(len(u)), 0.5),
}
GRID = np.linspace(0, 1, 100_001)


def is_wrong(u, rng):
    return rng.random(len(u)) < 0.25 * u


def draw_losses(name, n, rng):
    u = rng.random(n)
    return Outcomes(LOSSES[name][0](u, rng), 1 - u), 0.05, None


def draw_audited(p, n, rng):
    u = rng.random(n)
    proba = np.where(u < 0.5, p, 1.0)
    judged = rng.random(n) < proba
    wrong = rng.random(n) < 0.3 * u
    return Outcomes(wrong[judged], 1 - u[judged], 1 / proba[judged]), 0.1, 1 / p


def mean_loss(name, u):
    """Return the mean loss of the cases up to rank u."""
    if name not in LOSSES:
        return 0.15 * u
    mean = LOSSES[name][1]
    return 0.125 * u - 0.0625 * u**2 / 3 if mean is None else 0.125 * u * mean


def certify(rows, target, largest):
    """Return the threshold."""
    objective = Risk(target, largest_weight=largest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return select_threshold(rows, objective=objective, on_infeasible="abstain").threshold


def measure(name, draw, draws):
    rng, covered = np.random.default_rng(0), []
    for _ in range(draws):
        rows, target, largest = draw(rng)
        covered.append(min(1 - certify(rows, target, largest), 1.0) if len(rows) else 0.0)
    covered = np.maximum(covered, 0.0)
    good = GRID[mean_loss(name, GRID) <= target]
    return {
        "rows": name, "oracle": good[-1], "coverage": np.mean(covered),
        "se": np.std(covered) / np.sqrt(draws),
        "broken": np.mean(mean_loss(name, covered) > target * (1 + 1e-9)),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 2000])
    given = parser.parse_args()
    found = []
    for n in given.rows:
        for name in LOSSES:
            one = measure(name, lambda rng, n=n, name=name: draw_losses(name, n, rng), given.draws)
            found.append({"n": n} | one)
    for p, n in ((0.5, 3000), (0.2, 3000), (0.1, 6000)):
        name = f"audited, p = {p:g} or 1"
        found.append(
            {"n": n} | measure(name, lambda rng, n=n, p=p: draw_audited(p, n, rng), given.draws)
        )
    print(pd.DataFrame(found).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
