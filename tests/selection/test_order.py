"""Whether rows look like a fair sample: by their order, their classes, and who judged them."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_hypergeom

import skselect as sk
from skselect._lib.notebook import unwrap
from skselect.objectives import first_of, read_objective
from skselect.policy import Certificate
from skselect.selection.order import (
    CLASS_LEVEL,
    LEVEL,
    TAKE_LATEST,
    check_order,
    class_p_value,
    find_order,
    order_p_value,
)
from tests.common import mostly_slow

# Whether the rows depend on their order -----------------------------------------------------------


def reason(outcomes, objective="risk"):
    """Return what is said about the order, "" for nothing."""
    return "".join(
        caveat.reason
        for caveat in find_order(outcomes, first_of(read_objective(objective, 0.5)), TAKE_LATEST)
    )


def p_value_by_definition(values):
    """Return the p-value from exact partial sums and the series of Kolmogorov's distribution."""
    values = [Fraction(v) for v in values]
    n, mean = len(values), sum(values) / len(values)
    largest = max(abs(sum(v - mean for v in values[:k])) for k in range(1, n + 1))
    variance = sum((v - mean) ** 2 for v in values) / (n - 1)
    x = float(largest) / math.sqrt(n * variance)
    if x < 0.2:
        return 1.0
    return 2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * x) ** 2) for k in range(1, 200))


@pytest.mark.parametrize("kind", ["errors", "ties", "graded", "trend"])
def test_value_against_its_definition(kind, rng):
    for n in (2, 3, 10, 60):
        values = {
            "errors": rng.random(n) < 0.3,
            "ties": rng.integers(0, 4, n) / 4,
            "graded": rng.random(n),
            "trend": np.arange(n) + 5 * rng.random(n),
        }[kind].astype(float)
        if len(set(values)) > 1:
            expected = p_value_by_definition(values)
            assert order_p_value(values) == pytest.approx(expected, rel=1e-6, abs=1e-12)
            for same in (values[::-1], -3 * values, values + 7):
                assert order_p_value(same) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_equal_values_show_nothing():
    for values in (np.zeros(5), np.full(100_001, 0.9), np.array([0.3]), np.full(9, 1e308)):
        assert order_p_value(values) == 1.0
    assert order_p_value(np.array([1e308, -1e308] * 50)) == pytest.approx(1)


@pytest.mark.parametrize(
    "values", [[0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 1, 1], range(7), [0, 0, 1, 2, 2, 3, 90]]
)
def test_no_level_is_exceeded_over_all_orders(values):
    orders = itertools.permutations(values)
    found = np.array([order_p_value(np.array(one, dtype=float)) for one in orders])
    for level in (0.005, 0.01, 0.05, 0.1, 0.2):
        assert np.mean(found <= level) <= level


@pytest.mark.parametrize(
    ("change", "which"),
    [
        (lambda t: (0.02 + 0.08 * t, 0 * t), "losses"),  # a trend
        (lambda t: (0.05 + 0.1 * (t > 0.8), 0 * t), "losses"),  # a change at the end
        (lambda t: (0.05 + 0 * t, 0.05 * t), "confidences"),
        (lambda t: (0.02 + 0.1 * (t > 0.5), 0.1 * (t > 0.5)), "losses and confidences"),
        (lambda t: (0.05 + 0 * t, 0 * t), ""),
    ],
)
def test_it_finds_trends_and_changes(change, which, rng):
    risk, shift = change(np.arange(4000) / 4000)
    outcomes = sk.Outcomes(rng.random(4000) < risk, rng.uniform(0.6, 0.9, 4000) + shift)
    assert (f"the {which} change from one part" in reason(outcomes)) == bool(which)
    assert (TAKE_LATEST in reason(outcomes)) == bool(which)
    assert bool(reason(outcomes, "coverage")) == ("confidences" in which)
    assert reason(outcomes.take(rng.permutation(4000))) == ""


def test_losses_of_sure_answers_count_most(rng):
    confidence = rng.uniform(0.5, 1, 4000)
    late = np.arange(4000) >= 2000
    wrong = rng.random(4000) < np.where((confidence > 0.75) == late, 0.08, 0.02)
    assert order_p_value(wrong.astype(float)) > 0.05  # as many errors late as early
    assert "the losses change from one part" in reason(sk.Outcomes(wrong, confidence))
    moving = reason(sk.Outcomes(rng.random(4000) < 0.02 + 0.1 * late, np.ones(4000)))
    assert "the losses change from one part" in moving  # all equally sure
    extreme = sk.Outcomes(wrong, np.where(rng.random(4000) < 0.5, 1.7e308, -1.7e308))
    assert reason(extreme) == ""


def test_rows_of_weight_zero_are_not_there(rng):
    loss, confidence = rng.random(400) < 0.1, rng.uniform(0.5, 1, 400)
    behind = np.r_[np.ones(400), np.zeros(300)]
    longer = sk.Outcomes(np.r_[loss, np.ones(300)], np.r_[confidence, np.zeros(300)], behind)
    assert reason(sk.Outcomes(loss, confidence)) == ""
    assert reason(longer) == ""


def draw(rng, n=3000):
    confidence = rng.uniform(0.5, 1, n)
    return (rng.random(n) < (1 - confidence) / 4).astype(float), confidence


@pytest.mark.parametrize("by", [None, "place"])
def test_certificates_of_such_rows_are_estimates_unless_the_user_vouches(by, rng):
    loss, confidence = draw(rng)
    places = None if by is None else pd.DataFrame({"place": rng.integers(0, 2, 3000)})
    order = np.argsort(confidence[:1000])

    def select(rows, **options):
        return sk.select_threshold(
            sk.Outcomes(loss[rows], confidence[rows]), objective="risk", target=0.05,
            subgroups=None if by is None else places.iloc[rows], **options,
        ).certificates.values()  # fmt: skip

    for certificate in select(np.arange(3000)):
        assert certificate.is_certified
        assert certificate.caveats == ()
    rows = np.r_[order, 1000:3000]
    with pytest.warns(UserWarning, match="The order of the rows matters: .*SelectiveRiskMonitor"):
        doubted = select(rows)
    for certificate in doubted:
        assert not certificate.is_certified
        assert "change from one part of the table" in certificate.caveats[0]
        first = unwrap(str(certificate)).splitlines()[0]
        assert first.startswith("ESTIMATE, NOT CERTIFIED: the confidences change from one part")
        assert not any("independent draws" in one for one in certificate.assumptions)
        assert Certificate.from_dict(certificate.to_dict()) == certificate
    for certificate in select(rows, assume="independent"):
        assert certificate.is_certified
        assert str(certificate).startswith("CERTIFIED, ")
        limits = unwrap(str(certificate)).splitlines()[3]
        assert "Note: the confidences change from one part of the table" in limits
        assert "overruled by assume='independent'" in limits
        assert any("independent draws" in one for one in certificate.assumptions)
        assert Certificate.from_dict(certificate.to_dict()) == certificate


@pytest.mark.parametrize("objective", ["risk", "generalized_risk", "coverage", "cwsa_plus", "cost"])
def test_every_objective_warns(objective, rng):
    """Only confidences count for coverage, whose certificate is about nothing else."""
    loss, confidence = draw(rng)
    options = {"objective": objective}
    if objective != "cwsa_plus":
        options["target"] = 0.8 if objective == "coverage" else 0.05
    order = np.argsort(confidence)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "cwsa_plus is best|min_coverage")
        with pytest.warns(UserWarning, match="The order of the rows matters"):
            sk.select_threshold(sk.Outcomes(loss[order], confidence[order]), **options)
        sk.select_threshold(sk.Outcomes(loss, confidence), **options)
        more = rng.random(3000) < (1 - confidence) * np.arange(3000) / 6000
        later = sk.Outcomes(more, confidence)
        if objective == "coverage":
            assert sk.select_threshold(later, **options).certificate.is_certified
        else:
            with pytest.warns(UserWarning, match="the losses change from"):
                sk.select_threshold(later, **options)


def test_the_rows_that_a_guarantee_is_about_are_tested():
    """Of 2 % of the rows the risk rises along them; among all rows that is rarely seen."""
    goal, found = {"objective": "risk", "target": 0.35}, {"all": 0, "among": 0, "by answer": 0}
    more = {
        "among": {"objective": sk.Risk(0.35, given_prediction=0), "target": None},
        "by answer": {"subgroups": "predicted_class"},
    }
    n, some = 20_000, np.arange(20_000) % 50 == 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        confidence = rng.uniform(0.5, 1, n)
        wrong = rng.random(n) < np.where(some, 0.35 * np.arange(n) / n, 0.02)
        proba = np.column_stack([1 - confidence, confidence])
        proba[some] = proba[some, ::-1]
        rows = sk.Predictions.from_proba(np.where(wrong, some, ~some).astype(int), proba)
        for how in found:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The order of the rows matters")
                chosen = sk.select_threshold(rows, **(goal | more.get(how, {})))
            issued = chosen.certificates.values()
            found[how] += any(
                "from one part of the table" in " ".join(one.caveats) for one in issued
            )
    assert found["all"] <= 4
    assert min(found["among"], found["by answer"]) >= 9


def test_a_check_of_a_fixed_policy_is_an_estimate_too(rng):
    loss, confidence = draw(rng)
    policy = sk.AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    proba = np.column_stack([1 - confidence, confidence])
    assert sk.certify(policy, 1 - loss, proba, target=0.05).is_certified
    rows = np.argsort(confidence)
    with pytest.warns(UserWarning, match="The order of the rows matters"):
        doubted = sk.certify(policy, 1 - loss[rows], proba[rows], target=0.05)
    assert not doubted.is_certified
    vouched = sk.certify(policy, 1 - loss[rows], proba[rows], target=0.05, assume="independent")
    assert vouched.is_certified
    assert vouched.caveats[0] in unwrap(str(vouched))


def test_subgroups_share_the_level():
    confidence = np.append(np.repeat([0.5, 0.75], [5, 10]), np.full(30, 0.5))
    assert LEVEL / 3 < order_p_value(confidence[:15]) < LEVEL
    outcomes = sk.Outcomes(np.zeros(45), confidence)
    assert find_order(outcomes.take(np.arange(15)), "coverage", TAKE_LATEST)
    members = np.split(np.arange(45), 3)
    assert not find_order(outcomes, "coverage", TAKE_LATEST, members=members)


# Tables sorted by class ---------------------------------------------------------------------------


def draw_classes(rng, n=3000):
    """Return rows of three classes that differ in errors and confidence."""
    truth = rng.integers(0, 3, n)
    sure = rng.uniform(0.5 + 0.1 * truth, 1)
    wrong = rng.random(n) < (1 - sure) * (3 - truth) / 8
    proba = np.repeat(((1 - sure) / 2)[:, None], 3, axis=1)
    proba[np.arange(n), (truth + wrong) % 3] = sure
    return np.array(["a", "b", "c"])[truth], proba


def certify_rows(y, proba, rows, how):
    """Return the certificates of some rows in this order."""
    y, proba = y[rows], proba[rows]
    if how == "certify":
        policy = sk.AbstentionPolicy(classes=np.array(["a", "b", "c"]), threshold=0.6)
        return [sk.certify(policy, y, proba, target=0.1)]
    options = {
        "all": {"objective": sk.Risk(0.1)},
        "answer": {"objective": sk.Risk(0.1, given_prediction="b")},
        "class": {"objective": sk.Risk(0.1, given_class="a")},
        "places": {"objective": sk.Risk(0.1), "subgroups": rows % 2},
        "answers": {"objective": sk.Risk(0.1), "subgroups": "predicted_class"},
        "coverage": {"objective": sk.Coverage(0.5)},
    }[how]
    return list(sk.select_threshold(y, proba, **options).certificates.values())


SORTED = "sorted by class, so their order was tested within each class"
WAYS = ["all", "answer", "class", "places", "answers", "coverage", "certify"]


@pytest.mark.parametrize("how", WAYS)
def test_a_table_sorted_by_class_certifies_as_a_shuffled_one_does(how, rng):
    y, proba = draw_classes(rng)
    ordered = np.argsort(y, kind="stable")
    for rows in (ordered, ordered[::-1]):
        for one, other in zip(
            certify_rows(y, proba, rows, how), certify_rows(y, proba, np.arange(3000), how),
            strict=True,
        ):  # fmt: skip
            assert one.is_certified
            assert other.is_certified
            assert one.threshold == other.threshold
            assert SORTED in one.caveats[-1]
            assert other.caveats == ()


@pytest.mark.parametrize("how", WAYS)
def test_a_change_within_a_class_is_seen(how, rng):
    y, proba = draw_classes(rng)
    rows = np.lexsort((proba.max(axis=1), y))
    with pytest.warns(UserWarning, match="The order of the rows matters"):
        found = certify_rows(y, proba, rows, how)
    assert not all(one.is_certified for one in found)
    assert "change from one part of the table" in found[0].caveats[0]
    assert SORTED in found[0].caveats[1]


@pytest.mark.parametrize("how", ["verdicts", "one answer", "two blocks of a class", "outcomes"])
def test_what_is_not_sorted_by_class_is_tested_as_it_stands(how, rng):
    loss, confidence = draw(rng)
    rows = np.argsort(loss, kind="stable")
    wrong, confidence = loss[rows], confidence[rows]
    right = (1 - wrong).astype(int)
    if how == "verdicts":
        table = sk.Predictions.from_verdicts(right, confidence)
    elif how == "one answer":
        table = sk.Predictions.from_labels(right, np.ones(3000, dtype=int), confidence)
    elif how == "outcomes":
        table = sk.Outcomes(wrong, confidence)
    else:
        answers = np.where(np.arange(3000) < 1000, 0, np.where(np.arange(3000) < 2000, 1, 0))
        table = sk.Predictions.from_labels(np.abs(answers - wrong), answers, confidence)
    with pytest.warns(UserWarning, match="The order of the rows matters: the losses"):
        found = sk.select_threshold(table, objective="risk", target=0.05).certificate
    assert not found.is_certified
    assert SORTED not in " ".join(found.caveats)


@pytest.mark.parametrize("n_runs", mostly_slow([60, 6000]))
@pytest.mark.parametrize("sizes", [(20, 100, 180), (2, 298)])
def test_tables_sorted_by_class_keep_the_level(sizes, n_runs):
    rng = np.random.default_rng(sizes)
    found, y = 0, np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(n_runs):
        confidence = rng.uniform(0.5 + 0.1 * y, 1)
        wrong = rng.random(300) < (1 - confidence) / (1 + y)
        answers = (y + wrong) % len(sizes)
        rows = sk.Predictions.from_labels(y, answers, confidence)
        outcomes = sk.Outcomes(wrong, confidence)
        said = check_order(rows, outcomes, sk.Risk(0.1), None, TAKE_LATEST, vouched=False)
        assert SORTED in said[-1].reason
        found += len(said) > 1
    assert found / n_runs <= LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / n_runs)


# Whether two tables hold the same classes ---------------------------------------------------------


def test_p_value_of_classes_against_all_tables(rng):
    """Every table with the same totals, its probability, and Pearson's chi-square."""
    for _ in range(12):
        here, there = rng.integers(0, 7, 3), rng.integers(1, 9, 3)
        if here.sum() == 0:
            continue
        total = here + there
        every = [
            one for one in itertools.product(*(range(t + 1) for t in total))
            if sum(one) == here.sum()
        ]  # fmt: skip
        expected = total * here.sum() / total.sum()
        far = [np.sum((np.array(one) - expected) ** 2 / total) for one in every]
        least = np.sum((here - expected) ** 2 / total) - 1e-9
        chance = multivariate_hypergeom.pmf(every, total, here.sum())
        p = float(chance[np.array(far) >= least].sum())
        assert class_p_value(here, there) == pytest.approx(p, abs=4 * math.sqrt(p / 2999) + 1e-3)


@pytest.mark.parametrize("n_runs", mostly_slow([200, 20_000]))
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.97, 0.01, 0.01, 0.01), (0.999, 0.001)])
def test_rows_of_the_same_classes_are_rarely_accused(shares, n_runs):
    rng = np.random.default_rng(len(shares))
    found = np.array(
        [
            class_p_value(rng.multinomial(200, shares), rng.multinomial(700, shares))
            for _ in range(n_runs)
        ]
    )
    for level in (CLASS_LEVEL, 0.01, 0.05):
        allowed = level + 3 * math.sqrt(level * (1 - level) / n_runs)
        assert np.mean(found <= level) <= allowed


def test_a_class_that_only_one_table_holds_counts():
    assert class_p_value(np.array([90, 10, 0]), np.array([950, 0, 0])) <= CLASS_LEVEL
    assert class_p_value(np.array([100, 0, 0]), np.array([950, 0, 0])) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("risk", [0.005, 0.02, 0.2])
@pytest.mark.parametrize(("n", "n_runs"), [(300, 8000), (2000, 6000), (20_000, 3000)])
def test_silent_on_shuffled_rows_at_its_level(n, n_runs, risk, tied):
    rng = np.random.default_rng([n, int(1000 * risk), tied])
    found = 0
    for _ in range(n_runs):
        confidence = rng.uniform(0.5, 1, n)
        if tied:
            confidence = np.minimum(np.round(confidence, 1), 0.9)
        wrong = rng.random(n) < np.minimum(4 * risk * (1 - confidence), 1)
        found += bool(reason(sk.Outcomes(wrong, confidence)))
    assert found / n_runs <= LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / n_runs)
