"""How often certificates fail, and how much they accept, where the true risk is known.

    python benchmarks/certificates.py [--draws 2000] [--rows 200 1000 5000 50000] [--out cells.csv]

Rows have ranks u in [0, 1], 0 the surest, an error probability eta(u) and a score that falls with
u, perhaps with ties. Each draw certifies on n rows and looks up the true risk and coverage of the
threshold. Four parts: a grid of profiles, targets and rows; harder cells (ties, rounded and
isotonic scores, risks that cross the target) at n = 1000 and 5000; a calibrated population; few
levels of confidence. A cell of an exact method that fails in more than delta + 3 standard errors of
the draws is drawn again with another seed.
`--peers` adds other libraries and leaves out n > 5000; take fewer draws then. Needs
`pip install ".[benchmarks]"`. Two processes take about 20 minutes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import warnings
import zlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import special
from sklearn.isotonic import IsotonicRegression
from tqdm import tqdm

from skselect import Outcomes, RiskCoverageCurve
from skselect.bounds._pointwise import rows_for_certificate
from skselect.curve.curve import threshold_below
from skselect.objectives import Loss, Risk
from skselect.thresholds import LevelSequence
from skselect.thresholds._rules import last_passed
from skselect.thresholds._sequences import BAND_BESIDE_LEVELS

GRID = np.linspace(0, 1, 200_001)
MIDDLES = (GRID[1:] + GRID[:-1]) / 2
MIN_COVERAGE = 0.1
HARD_ROWS, HARD_TARGETS = [1000, 5000], [0.05, 0.1]
CALIBRATED = {"rows": [1000, 3000], "target": 0.02, "delta": 0.05}
LEVELS, MAPS, ROWS_OF_A_MAP = 25, 20, 1000
NAMING = 10  # one row in ten names the levels that the others test
MOST_ROWS_OF_PEERS = 5000

# Error probabilities at rank u; r is the target. ----------------------------------------------

PROFILES = {
    "gradual": lambda u, _: 0.3 * u**2,
    "sharp": lambda u, _: 0.5 * u**6,
    "steep": lambda u, _: np.where(u < 0.6, 0.002, 0.25),
    "weak": lambda u, _: 0.02 + 0.2 * u,
    "overconfident top": lambda u, _: np.where(u < 0.05, 0.15, 0.0) + 0.3 * u**3,
    "flat": lambda u, r: np.full_like(u, 1.0001 * r),
}
CROSSING = {
    "crossing": lambda u, r: r * (1 + 0.9 * np.sin(25 * u - 1.3)),
    # The risk of the u surest is r (1 + .01 sin 40u): it crosses the target seven times, by 1 %.
    "crossing by 1 %": lambda u, r: r * (1 + 0.01 * np.sin(40 * u) + 0.4 * u * np.cos(40 * u)),
    # The risk never falls below the target, and touches it five times.
    "sawtooth": lambda u, r: r * np.where(np.floor(10 * u) % 2 == 0, 1.2001, 0.8001),
    "bad start": lambda u, r: r * np.where(u < 0.2, 1.05, np.where(u < 0.3, 0.6, 1.2)),
}


def calibrated(u, _):
    """Return .9 (1 - c) for c = .5 + .5 Beta(4, .7)."""
    return 0.45 * (1 - special.betaincinv(4, 0.7, 1 - u))


PROFILES |= CROSSING | {"calibrated": calibrated}

# Scores at rank u. --------------------------------------------------------------------------------


def plain(u):
    return 1 - u


def tied(u):
    return 1 - np.floor(LEVELS * u) / LEVELS


def rounded(u):
    return np.round(1 - u, 2)


def isotonic(eta, rng):
    """Return a score calibrated by isotonic regression on other rows of the population."""
    u = rng.random(ROWS_OF_A_MAP)
    right = rng.random(ROWS_OF_A_MAP) >= eta(u)
    fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(1 - u, right)
    return lambda u: np.interp(1 - u, fitted.X_thresholds_, fitted.y_thresholds_)


# Name: profile, score, and the answers that come first among equal scores. Certificates must not
# depend on that order, so both orders are tried.
HARD = {
    **{
        f"tied {profile}, {first} first": (profile, tied, first)
        for profile in ["gradual", "flat", "crossing"]
        for first in ["right", "wrong"]
    },
    "tied overconfident top": ("overconfident top", tied, None),
    **{f"rounded {p}": (p, rounded, None) for p in ["gradual", "flat", "crossing"]},
    **{name: (name, plain, None) for name in CROSSING},
    **{
        f"isotonic {profile}": (profile, isotonic, None)
        for profile in ["gradual", "flat", "crossing", "overconfident top"]
    },
}


#: Few levels: their shares and risks, rows, target. In the first four ties cost other methods most;
#: in the others, accepted sets lie just above the target.
FEW = {
    "two levels, 3 and 30 %": ([0.9, 0.1], [0.03, 0.3], 400, 0.05),
    "two levels, 2 and 20 %": ([0.6, 0.4], [0.02, 0.2], 300, 0.05),
    "four levels, 2 to 30 %": ([0.4, 0.3, 0.2, 0.1], [0.02, 0.03, 0.04, 0.3], 300, 0.05),
    "four levels, 1 to 20 %": ([0.25] * 4, [0.01, 0.02, 0.05, 0.2], 600, 0.04),
    "two levels, bad": ([0.9, 0.1], [0.0501, 0.0501], 400, 0.05),
    "first level bad": ([0.3, 0.3, 0.4], [0.0501, 0.02, 0.2], 400, 0.05),
    "second level bad": ([0.25] * 4, [0.0, 0.0802, 0.0401, 0.2], 600, 0.04),
} | {
    f"{k} levels, {name}, n = {n}": ([1 / k] * k, risks(np.arange(k)), n, 0.05)
    for k in [3, 8, 20, 50]
    for n in [200, 1000]
    for name, risks in {
        "flat": lambda k: np.full(len(k), 0.05001),
        "gradual": lambda k: 0.15 * ((k + 1) / len(k)) ** 2,
        "in and out": lambda k: np.where(k % 2 == 0, 0.05001, 0.045),
    }.items()
}  # fmt: skip


def few(name):
    """Return error probability and score of a population with few levels."""
    shares, risks, *_ = FEW[name]
    inner, k = np.cumsum(shares)[:-1], len(shares)
    levels = np.linspace(0.9, 0.5, k)
    return (
        lambda u: np.take(risks, np.searchsorted(inner, u, side="right")),
        lambda u: levels[np.searchsorted(inner, u, side="right")],
    )


class Population:
    def __init__(self, eta, score, first=None):
        self.eta, self.score, self.first = eta, score, first
        self.errors = np.concatenate([[0.0], np.cumsum(eta(MIDDLES)) / len(MIDDLES)])
        self.scores = np.minimum.accumulate(score(MIDDLES))
        self.levels = np.unique(self.scores)

    def draw(self, n, rng):
        u = rng.random(n)
        confidence, wrong = self.score(u), rng.random(n) < self.eta(u)
        if self.first:
            order = np.lexsort((wrong if self.first == "right" else ~wrong, -confidence))
            confidence, wrong = confidence[order], wrong[order]
        return confidence, wrong

    def oracle(self, target):
        """Return the largest share that a threshold can accept at a risk within the target."""
        ends = np.flatnonzero(np.append(self.scores[1:] != self.scores[:-1], True)) + 1
        good = ends[self.errors[ends] <= target * GRID[ends]]
        return GRID[good[-1]] if len(good) else 0.0

    def truth(self, threshold):
        """Return coverage and risk; risk 0 when nothing is accepted."""
        if self.score is plain:
            u = min(max(1.0 - threshold, 0.0), 1.0)
        else:
            u = GRID[np.searchsorted(-self.scores, -threshold, side="right")]
        return u, float(np.interp(u, GRID, self.errors)) / u if u > 0 else 0.0


def populations(name, target, rng):
    """Return the populations that the draws of a cell take turns in."""
    if name in FEW:
        return [Population(*few(name))]
    profile, score, first = HARD.get(name, (name, plain, None))

    def eta(u):
        return PROFILES[profile](u, target)

    if score is isotonic:
        return [Population(eta, isotonic(eta, rng)) for _ in range(MAPS)]
    return [Population(eta, score, first)]


# Methods ------------------------------------------------------------------------------------------


@dataclass
class Sample:
    population: Population
    confidence: np.ndarray
    wrong: np.ndarray
    seed: int

    def __post_init__(self):
        self.outcomes = Outcomes(self.wrong, self.confidence)
        self.curve = RiskCoverageCurve.from_outcomes(self.outcomes)


def own(rule):
    def threshold(sample, target, delta):
        n_blocks = last_passed(rule(sample.curve, target, delta, MIN_COVERAGE))
        return threshold_below(sample.curve, n_blocks)

    return threshold


def pointwise(curve, target, delta, min_coverage):
    """Negative control: every set whose own Clopper-Pearson bound keeps the target."""
    passed = special.bdtr(curve.accepted_loss, curve.n_accepted, target) <= delta
    return passed & (curve.coverage >= min_coverage)


def named_levels(sample, target, delta):
    """A tenth of the rows names levels, and the others test them, as in a tuner."""
    # Rows may be sorted by score: chance decides which ones name.
    names = np.random.default_rng(sample.seed).permutation(len(sample.wrong)) % NAMING == 0
    other, rows = (
        RiskCoverageCurve.from_outcomes(sample.outcomes.take(part)) for part in (names, ~names)
    )
    rule = LevelSequence.of(other, rows.n_rows, target, delta, BAND_BESIDE_LEVELS)
    return by_levels(rule, rows, target, delta)


def by_levels(rule, curve, target, delta):
    objective = Risk(target, delta=delta, method=rule, min_coverage=MIN_COVERAGE)
    found = objective.on(Loss()).find(curve)
    return threshold_below(curve, found.n_blocks) if found.threshold is None else found.threshold


def known_levels(sample, target, delta):
    """Test every level of the population."""
    return by_levels(LevelSequence(sample.population.levels), sample.curve, target, delta)


def sgr_of_zugzwang(sample, target, delta):
    from zugzwang import certify_threshold

    try:
        found = certify_threshold(sample.confidence, sample.wrong, risk=target, delta=delta)
    except ValueError:  # where nothing can be certified
        return np.inf
    return found.threshold


def ltt_of_mapie(fwer_method):
    """Learn-Then-Test by MAPIE's BinaryClassificationController.

    "Right" is its positive class and the confidence its probability, so that its `precision` is
    1 - selective risk and its best parameter (highest recall) accepts most. `calibrate` calls
    ltt_procedure: Hoeffding-Bentkus p-values (binary=True), then control_fwer(fwer_method). The
    50 thresholds are fixed: true quantiles of the population from 25 % coverage (or 1.25 times the
    rows that an error-free certificate needs) to everything, the surest first.
    """

    def threshold(sample, target, delta):
        from mapie.risk_control import BinaryClassificationController, precision

        n, scores = len(sample.confidence), sample.population.scores
        start = max(0.25, 1.25 * rows_for_certificate(target, delta) / n)
        if start > 1:
            return np.inf
        places = np.ceil(np.linspace(start, 1, 50) * len(scores)).astype(int) - 1
        controller = BinaryClassificationController(
            lambda confidence: np.column_stack([1 - confidence, confidence]), precision,
            target_level=1 - target, confidence_level=1 - delta,
            list_predict_params=scores[places], fwer_method=fwer_method,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about risks that cannot be controlled
            best = controller.calibrate(sample.confidence, ~sample.wrong).best_predict_param
        return np.inf if best is None else best

    return threshold


METHODS = {
    **{
        name: own(method.find)
        for name, method in Risk.methods.items()
        if name != LevelSequence.name  # other rows name the levels
    },
    "named_levels": named_levels,
    "known_levels": known_levels,
    "pointwise": own(pointwise),
}
NOT_EXACT = ["sgr", "mean", "empirical", "pointwise"]
PEERS = {
    "SGR (zugzwang)": sgr_of_zugzwang,
    "fixed sequence (MAPIE)": ltt_of_mapie("fixed_sequence"),
    "Holm (MAPIE)": ltt_of_mapie("bonferroni_holm"),
}

# Cells --------------------------------------------------------------------------------------------


def cell(part, name, n, target, delta, draws, methods, seed):
    # Both orders of equal scores use the same rows.
    key = f"{name if part == 'levels' else name.split(',')[0]}{n}{target}"
    rng = np.random.default_rng([seed, zlib.crc32(key.encode())])
    people = populations(name, target, rng)
    if part != "levels":
        methods = {k: v for k, v in methods.items() if v is not known_levels}
    found = {method: [] for method in methods}
    for i in range(draws):
        population = people[i % len(people)]
        sample = Sample(population, *population.draw(n, rng), seed=i)
        for method, threshold in methods.items():
            found[method].append(population.truth(threshold(sample, target, delta)))
    oracle = np.mean([population.oracle(target) for population in people])
    return [
        {
            "part": part, "profile": name, "n": n, "target": target, "delta": delta,
            "draws": draws, "method": method, "oracle": oracle,
            "failures": np.mean(risk > target * (1 + 1e-9)), "coverage": np.mean(coverage),
            "share": np.mean(coverage) / oracle if oracle > 0 else np.nan,
        }
        for method, (coverage, risk) in ((m, np.array(f).T) for m, f in found.items())
    ]  # fmt: skip


def cells(options):
    """Return part, name, rows, target and delta of every cell; many rows last."""
    grid = [n for n in options.rows if not options.peers or n <= MOST_ROWS_OF_PEERS]
    names = [name for name in PROFILES if name not in CROSSING and name != "calibrated"]
    found = [
        ("grid", name, n, r, options.delta) for n in grid for name in names for r in options.targets
    ]
    found += [("hard", name, n, r, options.delta)
              for n in HARD_ROWS for name in HARD for r in HARD_TARGETS]  # fmt: skip
    found += [
        ("calibrated", "calibrated", n, CALIBRATED["target"], CALIBRATED["delta"])
        for n in CALIBRATED["rows"]
    ]
    found += [("levels", name, n, target, 0.05) for name, (*_, n, target) in FEW.items()]
    return sorted((c for c in found if c[0] in options.parts), key=lambda c: c[2])


def is_above(table):
    """Tell where more draws fail than delta and three standard errors."""
    return table.failures > table.delta + 3 * np.sqrt(table.delta * (1 - table.delta) / table.draws)


def summary(table):
    """Return failures and shares of the oracle's coverage (n >= 1000) per method."""
    table = table.assign(above=is_above(table), share=table.share.where(table.n >= 1000))
    return table.groupby("method", sort=False).agg(
        cells=("failures", "size"), worst_failure=("failures", "max"), above=("above", "sum"),
        mean_share=("share", "mean"), worst_share=("share", "min"),
    )  # fmt: skip


def report(table, methods):
    for part, rows in table.groupby("part", sort=False):
        print(f"\n## {part}: delta {rows.delta.iloc[0]:g}, {rows.draws.iloc[0]} draws a cell\n")
        if part == "calibrated":
            shown = rows.pivot_table(["coverage", "failures"], "method", "n")
            print(f"oracle coverage {rows.oracle.iloc[0]:.4f}\n")
        elif part == "levels":
            print(summary(rows).round(4).to_string(), "\n\ncoverage")
            shown = rows.pivot_table("coverage", "method", "profile", sort=False)
            shown = shown[list(FEW)[:4]]
        else:
            print(summary(rows).round(4).to_string(), "\n\nshare of oracle, n >= 1000")
            shown = rows[rows.n >= 1000].dropna().pivot_table("share", "profile", "method")
            shown = shown[[m for m in methods if m in shown]].T
        print(shown.loc[[m for m in methods if m in shown.index]].round(4).to_string())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000, 5000, 50_000])
    parser.add_argument("--targets", type=float, nargs="+", default=[0.01, 0.05, 0.1])
    parser.add_argument("--delta", type=float, default=0.1)
    parser.add_argument("--parts", nargs="+", default=["grid", "hard", "calibrated", "levels"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--peers", action="store_true", help="other libraries too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", default=None, help="CSV file for the single cells")
    options = parser.parse_args()
    methods = {name: METHODS[name] for name in options.methods}
    methods |= PEERS if options.peers else {}
    run = Parallel(n_jobs=options.jobs, return_as="generator")
    jobs = cells(options)
    work = (delayed(cell)(*job, options.draws, methods, options.seed) for job in jobs)
    table = pd.DataFrame([row for rows in tqdm(run(work), total=len(jobs)) for row in rows])
    report(table, methods)
    above = table[is_above(table) & ~table.method.isin([*NOT_EXACT, *PEERS])]
    jobs = above[["part", "profile", "n", "target", "delta", "method"]].itertuples(index=False)
    again = (
        delayed(cell)(*job, options.draws, {method: METHODS[method]}, options.seed + 1)
        for *job, method in jobs
    )
    above = pd.concat([above, pd.DataFrame([row for rows in run(again) for row in rows])])
    n_exact = np.sum(~table.method.isin([*NOT_EXACT, *PEERS]))
    print(f"\n## Of {n_exact} cells of exact methods above delta + 3 SE, and drawn again\n")
    print(above.drop(columns=["oracle", "share", "draws"]).to_string(index=False))
    if options.out:
        pd.concat([table, above[len(above) // 2 :]]).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
