"""Intervals: what they are, when they warn, and that they cover what they say.

The bootstrap computes each draw exactly as if its rows had been written out.
"""

import math
import warnings
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import expit
from scipy.stats import beta, binom, binomtest, norm

from skselect import Outcomes, Predictions, RiskCoverageCurve
from skselect.inference import compare_models, intervals, metric_interval, metrics_by_group
from skselect.metrics import SPECS
from skselect.metrics._rows import ScoredRows
from skselect.metrics._threshold import SubgroupShares
from tests import brute
from tests.common import mostly_slow
from tests.metrics import definitions
from tests.metrics.test_laws import REQUIRED
from tests.refusals import check_refused, refusals


def scored_rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 21, n) / 20
    y_true = (rng.random(n) < p).astype(int)
    predictions = Predictions.from_proba(y_true, np.column_stack([1 - p, p]), labels=[0, 1])
    return ScoredRows(Outcomes.from_predictions(predictions), predictions)


def repeated(scored, counts):
    rows = np.repeat(np.arange(len(counts)), counts)
    source = scored.predictions
    predictions = Predictions(
        source.y_true[rows], source.y_pred[rows], source.classes, source.y_proba[rows]
    )
    return ScoredRows(Outcomes.from_predictions(predictions), predictions)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_draw_is_its_rows_written_out():
    for name in SPECS:
        scored, rng = scored_rows(), np.random.default_rng(1)
        resampler = intervals.Resampler(SPECS[name], scored, REQUIRED[name])
        for _ in range(5):
            counts = intervals.draw_counts(60, None, rng)
            expected = SPECS[name].value(repeated(scored, counts), REQUIRED[name])
            exactly = pytest.approx(expected, rel=1e-11, abs=1e-13, nan_ok=True)
            assert resampler.value(counts[resampler.order]) == exactly, name


ROWS = st.tuples(
    st.floats(0, 1) | st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 0.9, 1.0]),
    st.sampled_from([0.0, 0.25, 1.0]),
    st.integers(0, 3),
)


@brute.examples(100)
@given(
    st.lists(ROWS, min_size=1, max_size=25).filter(lambda rows: any(count for *_, count in rows)),
    st.sampled_from(["uniform", "quantile"]),
    st.integers(1, 30),
)
def test_a_draw_of_bins_is_the_calibration_error_of_its_rows(rows, strategy, n_bins):
    confidence, loss, counts = map(np.array, zip(*rows, strict=True))
    resampler = intervals.BinResampler(ScoredRows(Outcomes(loss, confidence)), n_bins, strategy)
    expected = definitions.ece(brute.rows_of(loss, confidence, counts), n_bins, strategy)
    found = resampler.value(counts[resampler.order])
    assert found == pytest.approx(float(expected), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("cluster", [None, np.arange(200) // 3])
def test_bins_and_curves_are_computed_of_the_same_draws_in_any_order_of_the_rows(strategy, cluster):
    rows, back = scored_rows(200), np.arange(200)[::-1]
    turned = ScoredRows(rows.outcomes.take(back), rows.predictions.take(back))
    there = None if cluster is None else cluster[back]
    curves, *bins = (
        intervals.bootstrap(
            [one], intervals.Sampling(np.random.default_rng(3), n_resamples=20, cluster=whole)
        )
        for one, whole in (
            (intervals.Resampler(SPECS["ece"], rows, {"strategy": strategy}), cluster),
            (intervals.BinResampler(rows, strategy=strategy), cluster),
            (intervals.BinResampler(turned, strategy=strategy), there),
        )
    )
    for found in bins:
        assert found == pytest.approx(curves, rel=1e-12, abs=1e-15)


def test_draws_keep_the_number_of_rows_or_of_clusters():
    rng = np.random.default_rng(0)
    assert intervals.draw_counts(50, None, rng).sum() == 50
    cluster = np.array([0] * 10 + [1] * 5 + [2])
    for _ in range(10):
        counts = intervals.draw_counts(16, cluster, rng)
        per_cluster = [np.unique(counts[cluster == k]) for k in range(3)]
        assert all(len(values) == 1 for values in per_cluster)
        assert sum(values[0] for values in per_cluster) == 3


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("metric", ["aurc", "augrc", "failure_auroc"])
def test_cells_scatter_like_rows(metric, tied):
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(4, 1.5, 3000), 2 if tied else 12) * 0.98
    y = (rng.random(3000) < p).astype(int)
    errors = [
        metric_interval(y, p, metric, method=m, n_resamples=300, random_state=1).standard_error
        for m in ("bootstrap", "cell_bootstrap")
    ]
    # A standard deviation of 300 draws is known to 1/sqrt(600), two of them to .058.
    assert errors[1] == pytest.approx(errors[0], rel=4 * 0.058)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_bins_of_many_rows_are_drawn_from_cells(strategy, monkeypatch):
    monkeypatch.setattr(intervals, "_MANY", 20_000)
    rng = np.random.default_rng(0)
    p = rng.beta(4, 1.5, 20_000)
    y = (rng.random(20_000) < p**1.2).astype(int)
    options = {"n_resamples": 100, "random_state": 1, "metric_params": {"strategy": strategy}}
    rows, cells = (
        metric_interval(y, p, "ece", **options, **how) for how in ({"method": "bootstrap"}, {})
    )
    assert cells.estimate == rows.estimate
    assert cells.high != rows.high
    # A standard deviation of 100 draws is known to 1/sqrt(200).
    assert cells.standard_error == pytest.approx(rows.standard_error, rel=4 * 0.1)
    for end in ("low", "high"):
        apart = getattr(cells, end) - getattr(rows, end)
        assert abs(apart) < rows.standard_error


def some_predictions(n=400, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize(
    "name", [name for name, spec in SPECS.items() if spec.interval is not None]
)
@pytest.mark.parametrize("method", ["analytic", "bootstrap"])
def test_every_metric_has_an_interval_around_its_value(name, method):
    y_true, y_proba = some_predictions()
    needed = REQUIRED[name]
    found = metric_interval(
        y_true, y_proba, name,
        method=method, metric_params=needed, n_resamples=60, random_state=0,
    )  # fmt: skip
    assert found.estimate == SPECS[name].function(y_true, y_proba, **needed)
    assert found.n_rows == 400
    if name in ("coverage", "coverage_at_risk") and found.estimate == 1.0:  # in every draw, too
        assert found.method == "none" if found.method != "wilson" else found.high == 1.0
    elif method == "analytic" and SPECS[name].interval != "bootstrap":
        assert found.low < found.estimate < found.high
        assert found.method in {"log", "logit", "normal", "wilson"}
    else:  # calibration errors are biased upwards in every draw
        assert found.low <= found.high
        assert found.method == "bootstrap"


# Gaps between subgroups ----------------------------------------------------------------------


def shares_of(hits, n, *, is_graded=False):
    names = list(range(len(n)))
    return SubgroupShares(names, np.asarray(hits, float), np.asarray(n, float), is_graded)


def squares(delta):
    """Return the corners (x, y) of the squares that two normal variables leave with `delta`."""
    cosines = np.cos(np.arange(16) * np.pi / 32)

    def inside(radius):
        edges = norm.cdf(np.append(radius * cosines, -np.inf))
        return np.sum((edges[:-1] - edges[1:]) * norm.cdf(radius * cosines[::-1]))

    radius = brute.edge(lambda r: inside(40 * r) >= 1 - delta) * 40
    return list(zip(radius * cosines, radius * cosines[::-1], strict=True))


@cache
def bounds_of(hits, n, z):
    """Return Clopper-Pearson's bounds, each wrong with the probability of a normal score z."""
    low = beta.isf(norm.cdf(z), hits, n - hits + 1) if hits else 0.0
    return low, beta.ppf(norm.cdf(z), hits + 1, n - hits) if hits < n else 1.0


@pytest.mark.parametrize(
    ("hits", "n"),
    [
        ([3, 9], [10, 10]),
        ([1, 50, 55], [2, 100, 100]),
        ([0, 5, 40], [3, 60, 50]),
        ([0, 7, 7, 12], [0, 8, 30, 12]),
    ],
)
def test_a_gap_lies_between_what_all_pairs_allow(hits, n):
    """The definition, pair by pair and corner by corner."""
    low, high, k = [], [], len(n)
    upper, lower = squares(0.05), squares(0.05 / (k * (k - 1) - 1))
    for a, b in permutations(range(k), 2):
        first, second = (hits[a], n[a]), (hits[b], n[b])
        high.append(max(bounds_of(*first, x)[1] - bounds_of(*second, y)[0] for x, y in upper))
        low.append(min(bounds_of(*first, x)[0] - bounds_of(*second, y)[1] for x, y in lower))
    expected = (max(0.0, *low), max(high))
    assert intervals.gap_interval(shares_of(hits, n), 0.9) == pytest.approx(expected, rel=1e-6)


def test_many_subgroups_cost_little_time_and_only_the_lower_end():
    rng = np.random.default_rng(0)
    n = np.full(3000, 50)
    low, high = intervals.gap_interval(shares_of(rng.binomial(n, 0.3), n), 0.95)
    assert low == 0 < high < 1
    hits = np.where(np.arange(3000) < 1500, 0, n)
    assert intervals.gap_interval(shares_of(hits, n), 0.95)[0] > 0.4


@pytest.mark.parametrize("k", [2, 3, 7, 90])
def test_the_interval_of_a_gap_holds_its_value_in_any_order(k):
    rng = np.random.default_rng(k)
    for most in (3, 30, 1000):
        n = rng.integers(1, most, k)
        hits, order = rng.binomial(n, rng.random(k)), rng.permutation(k)
        for level in (0.01, 0.95, 0.999999):
            low, high = intervals.gap_interval(shares_of(hits, n), level)
            assert 0 <= low <= np.ptp(hits / n) + 1e-12 <= high + 2e-12 <= 1 + 2e-12
            again = intervals.gap_interval(shares_of(hits[order], n[order]), level)
            assert again == pytest.approx((low, high), rel=1e-12, abs=1e-13)


def test_a_subgroup_without_rows_may_have_any_share():
    low, high = intervals.gap_interval(shares_of([10, 60], [100, 100]), 0.95)
    more = intervals.gap_interval(shares_of([10, 60, 0], [100, 100, 0]), 0.95)
    assert 0 < more[0] < low < high < more[1]
    assert more[1] == pytest.approx(1 - bounds_of(10, 100, squares(0.025)[0][0])[0], abs=0.05)


@cache
def ends_of(hits, n):
    return intervals.gap_interval(shares_of(hits, n), 0.8)  # too short an interval would show


def holds(hits, n, true):
    low, high = ends_of(tuple(hits), tuple(n))
    return low <= true + 1e-12 and true - 1e-12 <= high


def test_the_interval_of_a_gap_holds_it_in_all_outcomes_of_a_few_rows():
    n = (9, 6)
    for shares in product([0.02, 0.2, 0.5, 0.7, 0.95], repeat=2):
        true = abs(shares[0] - shares[1])
        chance = sum(
            binom.pmf(a, n[0], shares[0]) * binom.pmf(b, n[1], shares[1])
            for a, b in product(range(10), range(7))
            if holds((a, b), n, true)
        )
        assert chance >= 0.8


#: Sizes and shares: no gap, subgroups that are known, many, few that differ.
POPULATIONS = [
    ([40, 8], [0.1, 0.1]), ([10**6, 200], [0.3, 0.3]), ([10**6, 200], [0.3, 0.6]),
    ([1000, 300], [0.58, 0.85]), ([30, 30], [0.02, 0.98]), ([10**6, 1], [0.03, 0.99]),
    ([10**6] + [50] * 9, [0.2] * 10), ([20] * 30, [0.3] * 30),
    ([10**6] * 2 + [50] * 8, [0.1, 0.9] + [0.5] * 8),
    ([50] * 2 + [500] * 8, [0.1, 0.9] + [0.5] * 8),
]  # fmt: skip


@pytest.mark.parametrize(("n", "shares"), mostly_slow(POPULATIONS, unpack=True))
def test_the_interval_of_a_gap_holds_the_gap(n, shares):
    rng, true = np.random.default_rng(0), max(shares) - min(shares)
    missed = sum(not holds(rng.binomial(n, shares).tolist(), n, true) for _ in range(1000))
    assert missed / 1000 <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / 1000)


def test_the_interval_of_a_gap_of_graded_losses():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 900), rng.random(900)
    groups = np.repeat(["a", "b", "c"], 300)
    graded = 0.25 + 0.5 * (groups == "b") * rng.random(900)
    asked = {"metric_params": {"subgroups": groups}, "loss": lambda true, answer: graded}
    found = metric_interval(y, p, "risk_gap", **asked)
    means = [graded[groups == group].mean() for group in "abc"]
    assert found.estimate == pytest.approx(max(means) - min(means))
    assert 0 < found.low < found.estimate < found.high < 1
    wider = metric_interval(y, p, "risk_gap", confidence_level=0.99, **asked)
    assert wider.low < found.low < found.high < wider.high


def test_the_bounds_of_a_gap_are_those_of_every_method():
    y, p = some_predictions(40)
    asked = {"metric_params": {"subgroups": np.arange(40) % 2}}
    exact, drawn = (
        metric_interval(y, p, "risk_gap", method=method, **asked)
        for method in ("analytic", "bootstrap")
    )
    assert (exact.low, exact.high) == (drawn.low, drawn.high)


@pytest.mark.parametrize("name", ["augrc", "failure_auroc", "cwsa_plus", "cw_accuracy", "aurc"])
def test_closed_forms_and_the_bootstrap_agree(name):
    y_true, y_proba = some_predictions(2000)
    closed = metric_interval(y_true, y_proba, name)
    drawn = metric_interval(y_true, y_proba, name, method="bootstrap", random_state=0)
    assert drawn.standard_error == pytest.approx(closed.standard_error, rel=0.1)  # 4 SE of 999
    assert drawn.low == pytest.approx(closed.low, abs=0.5 * closed.standard_error)
    assert drawn.high == pytest.approx(closed.high, abs=0.5 * closed.standard_error)


def test_shares_have_wilsons_interval():
    y_true, y_proba = some_predictions()
    params = {"threshold": 0.8}
    found = metric_interval(y_true, y_proba, "selective_risk", metric_params=params)
    accepted = np.maximum(y_proba, 1 - y_proba) >= 0.8
    errors = int(np.sum((y_proba > 0.5)[accepted] != y_true[accepted]))
    expected = binomtest(errors, int(accepted.sum())).proportion_ci(0.95, method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert found.method == "wilson"
    assert found.n_errors == errors
    assert f"wilson; 400 rows, {accepted.sum()} accepted, {errors} errors" in str(found)


def test_no_errors_still_have_an_upper_bound_but_an_area_without_has_no_interval():
    with pytest.warns(UserWarning, match="rests on 0 errors; with fewer than 10"):
        found = metric_interval([0] * 50 + [1] * 50, [0.1] * 50 + [0.9] * 50, "selective_risk")
    assert found.low == 0.0
    assert 0.02 < found.high < 0.05
    for method in ("analytic", "bootstrap"):  # draws do not differ
        with pytest.warns(UserWarning, match="rests on 0 errors"):
            found = metric_interval([0, 1] * 20, [0.1, 0.9] * 20, "augrc", method=method)
        assert found.estimate == 0.0
        assert math.isnan(found.low)
        assert math.isnan(found.high)
    assert found.method == "none"


def test_the_bad_end_reaches_further_by_one_confident_error():
    y_true, y_proba = some_predictions(100)
    found = metric_interval(y_true, y_proba, "aurc")
    factor = math.exp(1.959964 * found.standard_error / found.estimate)
    place = np.argmax(np.where((y_proba > 0.5) == y_true, np.abs(y_proba - 0.5), 0))
    y_true[place] = 1 - y_true[place]
    turned = SPECS["aurc"].function(y_true, y_proba) - found.estimate
    assert found.low == pytest.approx(found.estimate / factor)
    assert found.high == pytest.approx(found.estimate * factor + turned)


def few_right(n_right, n=40, seed=0):
    """Return labels and probabilities: the first rows are right, the others wrong."""
    confidence = np.random.default_rng(seed).uniform(0.5, 1, n)
    return np.where(np.arange(n) < n_right, 0, 1), np.column_stack([confidence, 1 - confidence])


SPREADING = ["failure_auroc", "naurc", "augrc", "aurc", "cw_gain", "failure_average_precision"]


@pytest.mark.parametrize("method", ["analytic", "bootstrap"])
@pytest.mark.parametrize("name", SPREADING)
def test_a_single_right_answer_has_an_interval_and_is_counted(name, method):
    options = {"labels": [0, 1], "method": method, "n_resamples": 99, "random_state": 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message="y_proba")
        interval = metric_interval(*few_right(1), name, **options)
    assert interval.low < interval.estimate < interval.high
    (warned,) = [str(w.message) for w in caught]
    assert warned == (
        f"{name}: the interval rests on 1 right answer; with fewer than 10 it may be far off."
    )


@pytest.mark.parametrize(
    ("name", "n_right", "counted"),
    [("augrc", 9, "9 right answers"), ("augrc", 31, "9 errors"), ("right_entropy", 9, "9 right"),
     ("wrong_entropy", 31, "9 errors"), ("selective_risk", 9, "9 right"), ("right_entropy", 31, ""),
     ("wrong_entropy", 9, ""), ("augrc", 10, ""), ("augrc", 30, ""), ("coverage", 1, "")],
)  # fmt: skip
def test_the_scarcer_answers_are_counted(name, n_right, counted):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message="y_proba")
        metric_interval(*few_right(n_right), name, labels=[0, 1], n_resamples=9, random_state=0)
    assert len(caught) == (counted != "")
    assert all(f"rests on {counted}" in str(w.message) for w in caught)


@pytest.mark.filterwarnings("ignore:y_proba")
def test_subgroups_and_comparisons_with_one_right_answer_have_intervals():
    y_true, y_proba = few_right(1)
    options = {"labels": [0, 1], "random_state": 0, "n_resamples": 99}
    with pytest.warns(UserWarning, match="rest on fewer than 10 errors or right answers"):
        table = metrics_by_group(y_true, y_proba, np.arange(40) % 2, ["failure_auroc"], **options)
    assert np.isfinite(table[["low", "high"]].iloc[:2]).all(axis=None)  # all rows, and those of 0
    models = {"a": y_proba, "b": y_proba[::-1]}
    with pytest.warns(UserWarning, match="rest on fewer than 10 errors or right answers"):
        table = compare_models(y_true, models, "failure_auroc", **options)
    assert np.isfinite(table[["low", "high"]]).all(axis=None)


def test_a_perfect_separation_has_a_lower_end():
    y_true, y_proba = np.repeat([1, 0], [160, 20]), np.linspace(0.99, 0.51, 180)
    found = metric_interval(y_true, y_proba, "failure_auroc")
    assert (found.estimate, found.high, found.method) == (1.0, 1.0, "pairs")
    assert found.low == pytest.approx(0.025 ** (1 / 20))  # 20 independent pairs, all in order
    turned = metric_interval(y_true, y_proba[::-1].copy(), "failure_auroc")
    assert (turned.estimate, turned.low) == (0.0, 0.0)
    assert turned.high == pytest.approx(1 - 0.025 ** (1 / 20))
    clustered = metric_interval(y_true, y_proba, "failure_auroc", cluster=np.arange(180) // 2)
    assert math.isnan(clustered.low)  # its pairs are not independent


@pytest.mark.filterwarnings("ignore:.*rests on")
def test_rows_that_do_not_differ_say_nothing_and_an_interval_stays_in_the_range():
    for name in ("cwsa", "top_label_brier", "cw_accuracy"):
        found = metric_interval([1] * 30, [0.9] * 30, name)
        assert found.method == "none"
        assert math.isnan(found.low)
    found = metric_interval([1] * 5, [0.999, 0.99, 0.98, 0.999, 0.7], "cwsa")
    assert found.high == 1.0
    options = {"cluster": np.arange(300) % 2, "confidence_level": 0.9999}
    wide = metric_interval(*some_predictions(300), "augrc", **options)
    assert 0 <= wide.low < wide.estimate < wide.high < math.inf


@pytest.mark.parametrize("name", ["ece", "smooth_ece", "ecce_r", "isotonic_distance"])
def test_a_calibration_error_may_be_zero_unless_a_test_says_otherwise(name):
    y_true, y_proba = some_predictions(500)
    found = metric_interval(y_true, y_proba, name, n_resamples=50, random_state=0)
    assert found.low == 0.0
    assert found.high > found.estimate
    sharper = y_proba**3 / (y_proba**3 + (1 - y_proba) ** 3)
    found = metric_interval(y_true, sharper, name, n_resamples=50, random_state=0)
    assert 0 < found.low <= found.estimate


def test_a_higher_level_is_wider_a_seed_repeats_and_constant_weights_are_ignored():
    rows = some_predictions()
    wide, narrow = (metric_interval(*rows, "augrc", confidence_level=x) for x in (0.99, 0.8))
    assert wide.low < narrow.low < narrow.high < wide.high
    one, two = (metric_interval(*rows, "ece", n_resamples=30, random_state=3) for _ in range(2))
    assert one == two
    weighted = metric_interval(*rows, "augrc", sample_weight=np.full(400, 7.0))
    assert metric_interval(*rows, "augrc") == weighted


def test_clusters_count_as_one_draw():
    """Every row four times: the rows seem to be more, the clusters know better."""
    y_true, y_proba = some_predictions(300)
    once = metric_interval(y_true, y_proba, "cw_accuracy")
    copies = np.tile(np.arange(300), 4)
    many = metric_interval(y_true[copies], y_proba[copies], "cw_accuracy")
    clustered = metric_interval(y_true[copies], y_proba[copies], "cw_accuracy", cluster=copies)
    assert many.standard_error == pytest.approx(once.standard_error / 2, rel=0.01)
    assert clustered.standard_error == pytest.approx(once.standard_error, rel=1e-9)
    assert clustered.high - clustered.low > once.high - once.low  # Student's t
    names = np.array(["a", "b", "c"])[copies % 3]
    options = {"cluster": names, "n_resamples": 20, "random_state": 0}
    assert metric_interval(y_true[copies], y_proba[copies], "ece", **options).method == "bootstrap"


CELLS = {"method": "cell_bootstrap"}
GAP = {"metric_params": {"subgroups": np.arange(400) % 2}}


@refusals({
    "metric": [("hope", {}), ("neg_augrc", {})],
    "csr_test": [("csr", {})], "'mce' has no interval": [("mce", {})],
    "confidence_level": [("augrc", {"confidence_level": 95})],
    "threshold": [("augrc", {"metric_params": {"threshold": 1}})],
    "max_risk": [("coverage_at_risk", {})], "subgroups": [("risk_gap", {})],
    "sample_weight": [("augrc", {"sample_weight": np.arange(400)})],
    "cluster": [
        *(("augrc", {"cluster": bad}) for bad in (
            [1, 2], np.zeros(400), "a", np.zeros((400, 1)), [("a", 1)] * 400,
            [None] + [1, 2, 3] * 133, ["a", float("nan")] * 200)),
        ("aurc", CELLS | {"cluster": np.arange(400) // 4}),
        ("risk_gap", GAP | {"cluster": np.arange(400) // 4}),
    ],
    "n_resamples": [("augrc", {"n_resamples": 1})],
    "random_state": [("ece", {"random_state": "x"})],
    "ln": [("aurc", {"metric_params": {"estimator": "ln"}})],
    "method": [("augrc", {"method": "hope"}), ("cw_f1", CELLS), ("ece", CELLS),
               ("risk_gap", GAP | CELLS)],
})  # fmt: skip
def test_bad_requests_are_explained(argument, call):
    metric, asked = call
    check_refused(argument, lambda: metric_interval(*some_predictions(), metric, **asked))


# Coverage --------------------------------------------------------------------------------

#: Error probability of a row as a function of its rank (0 = surest), and the rows to draw so
#: that at least 15 errors are expected (accepted ones, for the risk at a threshold).
SMOOTH = {
    "sharp": (lambda u: 0.5 * u**6, 220),
    "gradual": (lambda u: 0.3 * u**2, 200),
    "weak": (lambda u: 0.02 + 0.2 * u, 200),
    "overconfident top": (lambda u: np.where(u < 0.05, 0.3, 0.1 * u), 260),
}
HARD = {
    "a rare confident error": (lambda u: np.where(u < 0.005, 0.8, 0.5 * (u > 0.8)), 250),
    "nearly separated": (lambda u: np.minimum(expit((u - 0.88) / 0.0075) + 0.0008, 1), 200),
    "four levels": (lambda u: np.take([0.01, 0.02, 0.06, 0.25], (4 * u).astype(int)), 200),
    "overconfident top 3 %": (lambda u: np.where(u < 0.03, 0.3, 0.2 * u), 200),
    "flat": (lambda u: np.full(len(u), 0.1), 200),
}
#: Two such errors are expected, one in seven draws holds none: the docs name it as the worst.
WORST = {"two rare confident errors": (lambda u: np.where(u < 0.008, 1.0, 0.5 * (u > 0.8)), 250)}
PROFILES = SMOOTH | HARD | WORST
METRICS = {
    "augrc": {},
    "aurc": {},
    "eaurc": {},
    "failure_auroc": {},
    "cw_accuracy": {},
    "selective_risk": {"threshold": 0.1},
    "cwsa": {"threshold": 0.1},
    "cwsa_plus": {"threshold": 0.1},
}
#: Those of which a confident error is a large part.
RANKING = ("augrc", "aurc", "eaurc", "failure_auroc", "cwsa_plus")


def confidence_of(profile, u):
    return 0.875 - np.floor(4 * u) / 4 if profile == "four levels" else 1 - u


def population_value(name, profile, params):
    """Return the metric of a fine grid of ranks with their error probabilities as losses."""
    u = (np.arange(400_000) + 0.5) / 400_000
    loss, confidence = PROFILES[profile][0](u), confidence_of(profile, u)
    if name == "failure_auroc":
        _, block = np.unique(-confidence, return_inverse=True)
        wrong, right = np.bincount(block, loss), np.bincount(block, 1 - loss)
        right_above = (np.cumsum(right) - right / 2) / np.sum(right)
        return float(np.sum(wrong * right_above) / np.sum(wrong))
    if name in ("aurc", "eaurc"):  # equal confidences come in random order
        best = np.mean(loss) + (1 - np.mean(loss)) * np.log1p(-np.mean(loss))
        risk = np.cumsum(loss) / np.arange(1, len(u) + 1)
        return float(np.mean(risk) - (best if name == "eaurc" else 0))
    grid, spec = Outcomes(loss, confidence), SPECS[name]
    return spec.kernel(
        grid if spec.needs == "outcomes" else RiskCoverageCurve.from_outcomes(grid), **params
    )


def covered(name, profile, n, n_draws, seed, method="analytic"):
    """Return the share of intervals that hold the population value, among those there are."""
    chance, params = PROFILES[profile][0], METRICS[name]
    truth = population_value(name, profile, params)
    rng = np.random.default_rng(seed)
    hits = []
    for _ in range(n_draws):
        u = rng.random(n)
        wrong = (rng.random(n) < chance(u)).astype(int)
        given = Predictions(wrong, np.zeros(n, int), np.arange(2))  # all are taken for class 0
        rows = ScoredRows(Outcomes(wrong, confidence_of(profile, u)), given)
        how = intervals.Sampling.checked(method, 0.95, 39, rng, "cell_bootstrap")
        found = intervals.find_interval(intervals.measure(SPECS[name], rows, params, how))
        if not math.isnan(found.low):
            hits.append(found.low <= truth <= found.high)
    return np.mean(hits)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("profile", mostly_slow(["sharp", "weak"]))
def test_intervals_cover_the_population_value(name, profile):
    n = 1000 if name == "selective_risk" and profile == "sharp" else PROFILES[profile][1]
    share = covered(name, profile, n, 400, seed=1)
    assert 0.93 - 3 * 0.0128 <= share <= 0.98 + 3 * 0.007  # standard errors of 400 draws


@pytest.mark.parametrize("name", ["augrc", "aurc", "failure_auroc"])
@pytest.mark.parametrize("profile", ["a rare confident error", "nearly separated"])
def test_intervals_allow_for_a_confident_error_that_was_not_drawn(name, profile):
    share = covered(name, profile, PROFILES[profile][1], 400, seed=1)
    assert share >= 0.95 - 3 * 0.0109


def test_bootstrap_intervals_allow_for_it_too():
    share = covered("aurc", "a rare confident error", 250, 40, seed=1, method="bootstrap")
    assert share >= 0.93 - 3 * 0.04


@pytest.mark.slow
@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("profile", SMOOTH | HARD)
@pytest.mark.parametrize("times", [1, 5])
def test_intervals_cover_the_population_value_at_length(name, profile, times):
    if profile in HARD and name not in RANKING:
        pytest.skip("ranks do not matter to it")
    n = times * PROFILES[profile][1]
    share = covered(name, profile, n, 4000, seed=2)
    assert 0.93 - 3 * 0.004 <= share <= 0.985 + 3 * 0.0019


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("augrc", 0.94, 1.0), ("failure_auroc", 0.9, 0.94), ("aurc", 0.8, 0.86), ("eaurc", 0.8, 0.86)],
)
def test_what_intervals_cannot_see_is_as_large_as_the_docs_say(name, low, high):
    share = covered(name, "two rare confident errors", 250, 2000, seed=3)
    assert low - 3 * 0.008 <= share <= high + 3 * 0.008
