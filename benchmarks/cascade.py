"""What does a cascade of a cheap and a strong model save, and does its certificate hold?

    python benchmarks/cascade.py FOLDER [--out runs.csv] [--picture docs/images/cascade.png]
    python benchmarks/cascade.py [--draws 1000] [--seed 0] [--out cells.csv]

FOLDER holds Parquet tables whose column `target` is the label. A tree of depth 7 asks XGBoost where
it is not sure; ThresholdTuner certifies the cascade, and XGBoost alone, on the same 40 % of the
rows. Without a folder populations of known truth: each is a list of cases with their probabilities,
so that the true risk of a certified cascade is a sum over the list. Needs
`pip install ".[benchmarks]"`. Two processes take two minutes, and half an hour.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import itertools
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from papers import COLORS, save
from sklearn.tree import DecisionTreeClassifier
from tqdm import tqdm
from xgboost import XGBClassifier

from skselect import (
    CascadeClassifier,
    InfeasibleTargetError,
    Predictions,
    Risk,
    ThresholdTuner,
    join_stages,
    select_threshold,
)

# Real tables ------------------------------------------------------------------------------------

# Tables, targets and learners were fixed before any cascade was seen.
TARGETS = {
    "adult": 0.05, "bank_marketing": 0.03, "covertype_small": 0.08, "credit_default": 0.10,
    "letter": 0.03, "magic": 0.05, "mammography": 0.01, "naticusdroid": 0.02, "nursery": 0.01,
    "optdigits": 0.02, "pendigits": 0.01, "phishing": 0.02, "phoneme": 0.06, "spambase": 0.03,
    "wine_quality": 0.20,
}  # fmt: skip
LEAST_ROWS_OF_A_CLASS = 20
LEAST_SAVED = 10  # per cent, for a name in the picture


def load(folder, name):
    """Return features, names as numbers, and codes of the classes with enough rows."""
    table = pd.read_parquet(Path(folder) / f"{name}.parquet")
    counts = table["target"].value_counts()
    table = table[table["target"].isin(counts.index[counts >= LEAST_ROWS_OF_A_CLASS])]
    X = table.drop(columns="target")
    for column in X.select_dtypes(["category", "object", "string"]):
        X[column] = X[column].astype("category").cat.codes
    codes = np.unique(table["target"].astype(str), return_inverse=True)[1]
    return X.to_numpy(dtype=float), codes


def tune(model, name, seed, X, y):
    tuner = ThresholdTuner(
        model, "risk", target=TARGETS[name], random_state=seed, on_infeasible="abstain"
    )
    return tuner.fit(X, y).policy_


def do_table(folder, name, seed):
    X, y = load(folder, name)
    cheap = DecisionTreeClassifier(max_depth=7, random_state=0)
    strong = XGBClassifier(n_jobs=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # about targets out of reach, and cascades that save nothing
        both = CascadeClassifier([("cheap", cheap), ("strong", strong)], random_state=seed)
        joined, alone = (tune(model, name, seed, X, y) for model in (both, strong))
    coverage, reference = (100 * (policy.coverage or 0.0) for policy in (joined, alone))
    return {
        "table": name, "seed": seed, "classes": int(y.max()) + 1, "target": TARGETS[name],
        "strong": reference, "cascade": coverage, "loss": reference - coverage,
        "asked": 100 * joined.cascade.expected_costs.loc["strong", "asked"],
        "saves": joined.cascade.saves,
    }  # fmt: skip


def report_tables(runs, picture):
    tables = runs.drop(columns="seed").groupby("table").mean()
    print(tables.round(2).to_string())
    losses = [tables["loss"].mean(), tables["loss"].max(), runs["loss"].max()]
    print("\nloss in points: mean {:.2f}, worst table {:.2f}, worst run {:.2f}".format(*losses))
    if picture:
        save(draw(tables), picture)


def draw(tables):
    """Draw the coverage that a cascade loses against the share of cases that it saves."""
    figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
    axes.axhline(0, color="0.7", linewidth=1)
    saved = 100 - tables["asked"]
    axes.plot(saved, tables["loss"], "o", color=COLORS[0])
    for name, x, y in zip(tables.index, saved, tables["loss"], strict=True):
        if x > LEAST_SAVED:
            axes.annotate(name, (x, y), xytext=(0, 7), textcoords="offset points", ha="center")
    axes.set(xlim=(-3, 103), xlabel="Cases that never ask the strong model, %",
             ylabel="Coverage lost, points")  # fmt: skip
    return figure


# Cells of known truth ---------------------------------------------------------------------------

TARGET, DELTA, KINDS = 0.05, 0.1, 400
STAGES, ROWS = [2, 3], [500, 1500]
# How the rule is planned. A looser plan lets the first stages keep cases where no set is within the
# target.
RULES = {
    "as certified": {"target": TARGET},
    "for accuracy": {"target": None},
    "looser, raw": {"target": 2 * TARGET, "calibration": None},
}


@dataclass
class Population:
    """Cases of two classes with their weights, and the probability of class 1 by each stage."""

    y: np.ndarray
    proba: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, confidence, wrong):
        """Return a population of equally many cases of each kind.

        Confidences and error probabilities have a row per kind and a column per stage. Given its
        kind, a case is of either class alike, and its stages err independently.
        """
        parts = []
        for y, *errs in itertools.product([0, 1], *[[False, True]] * confidence.shape[1]):
            says_one = (y == 1) != np.array(errs)
            proba = np.where(says_one, confidence, 1 - confidence)
            parts.append((np.full(len(wrong), y), proba, np.where(errs, wrong, 1 - wrong).prod(1)))
        y, proba, weight = map(np.concatenate, zip(*parts, strict=True))
        return cls(y, proba, weight / weight.sum())

    def tables(self, rows):
        return {f"stage {k}": self.proba[rows, k] for k in range(self.proba.shape[1])}

    def draw(self, n, rng):
        rows = rng.choice(len(self.y), n, p=self.weight)
        return {
            name: Predictions.from_proba(self.y[rows], table, labels=[0, 1])
            for name, table in self.tables(rows).items()
        }

    def truth(self, policy):
        """Return coverage and selective risk of a policy; risk 0 when it accepts nothing."""
        decided = policy.decide_arrays(self.tables(slice(None)))
        weight = self.weight * decided["accepted"]
        coverage, wrong = weight.sum(), weight[decided["suggestion"] != self.y].sum()
        return coverage, wrong / coverage if coverage > 0 else 0.0


def falling(u):
    return 1 - 0.45 * u


def gradual(u, _):
    """Return confidences and error probabilities: each stage ranks better than the last."""
    return falling(u), 0.5 * u ** (1.5 * (1 + np.arange(u.shape[1])))


def overconfident(u, r):
    """Let the first stage be sure everywhere, and wrong in a quarter."""
    confidence, wrong = gradual(u, r)
    confidence[:, 0], wrong[:, 0] = 1 - 0.03 * u[:, 0], 0.25
    return confidence, wrong


def never_both(u, r):
    """Let each stage err in a share r of the kinds, and no two in the same."""
    kinds = np.arange(len(u))[:, None] // (r * len(u))
    return falling(u), (np.floor(kinds) == np.arange(u.shape[1])).astype(float)


# A row of u says how hard a case is for each stage, r is the target. FLAT has no set that keeps the
# target; in the cells of ALIKE all stages say the same, so that its risk is known at each rank.
FLAT = 1.0001
POPULATIONS = {
    "gradual": gradual,
    "overconfident": overconfident,
    "never both": never_both,
    "flat": lambda u, r: (falling(u), np.full_like(u, FLAT * r)),
    "flat, tied": lambda u, r: (falling(np.floor(4 * u) / 4), np.full_like(u, FLAT * r)),
    "flat, then bad": lambda u, r: (falling(u), np.where(u < 0.5, FLAT * r, 0.4)),
    "crossing": lambda u, r: (falling(u), r * (1 + 0.9 * np.sin(25 * u - 1.3))),
    "touching": lambda u, r: (
        falling(u), r * np.where(np.floor(10 * u) % 2 == 0, 1.2001, 0.8001)
    ),
}  # fmt: skip
ALIKE = ("crossing", "touching")


def make_population(name, n_stages, rng):
    hard = rng.random((KINDS, 1))
    own = 0.0 if name in ALIKE else rng.random((KINDS, n_stages)) - hard
    return Population.of(*POPULATIONS[name](hard + 0.5 * own + np.zeros(n_stages), TARGET))


def do_cell(name, rule, n_stages, n, draws, seed):
    rng = np.random.default_rng([seed, zlib.crc32(f"{name}{n_stages}{n}".encode())])
    people, found = make_population(name, n_stages, rng), []
    for _ in range(draws):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about cascades that save nothing, and order by chance
            joined = join_stages(people.draw(n, rng), **RULES[rule])
            asked = joined.cascade.expected_costs.loc[f"stage {n_stages - 1}", "asked"]
            try:
                policy = select_threshold(joined, objective=Risk(TARGET, delta=DELTA)).policy
            except InfeasibleTargetError:
                found.append((0.0, 0.0, asked))
            else:
                found.append((*people.truth(policy), asked))
    coverage, risk, asked = np.array(found).T
    return {
        "population": name, "rule": rule, "stages": n_stages, "rows": n,
        "asks last": asked.mean(), "answers": np.mean(coverage > 0), "coverage": coverage.mean(),
        "broken": np.mean(risk > TARGET * (1 + 1e-9)),
    }  # fmt: skip


def report_cells(cells, draws):
    limit = DELTA + 3 * np.sqrt(DELTA * (1 - DELTA) / draws)
    most, n_above = cells["broken"].max(), np.sum(cells["broken"] > limit)
    print(cells.round(3).to_string(index=False))
    print(f"\n{len(cells)} cells of {draws} draws, delta {DELTA:g}: broken in at most {most:.3f}; "
          f"{n_above} cells above {limit:.3f}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", nargs="?", help="of the real tables; none: cells of known truth")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--picture", type=Path, help="file to draw the real tables in")
    parser.add_argument("--out", default=None, help="CSV file for the single runs or cells")
    options = parser.parse_args()
    if options.folder:
        jobs = [delayed(do_table)(options.folder, *job)
                for job in itertools.product(TARGETS, range(3))]  # fmt: skip
    else:
        grid = itertools.product(POPULATIONS, RULES, STAGES, ROWS)
        jobs = [delayed(do_cell)(*cell, options.draws, options.seed) for cell in grid]
    done = Parallel(n_jobs=options.jobs, return_as="generator")(jobs)
    found = pd.DataFrame(list(tqdm(done, total=len(jobs))))
    if options.out:
        found.to_csv(options.out, index=False)
    if options.folder:
        report_tables(found, options.picture)
    else:
        report_cells(found, options.draws)


if __name__ == "__main__":
    main()
