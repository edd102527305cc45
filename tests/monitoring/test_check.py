"""Is the guarantee still true? Is there another? Against binomial distributions, and simulated."""

import json
import math
import re
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from skselect import (
    AbstentionPolicy,
    Predictions,
    Risk,
    SelectiveState,
    ThresholdTuner,
    certify,
    check_policy,
    select_threshold,
)
from skselect._lib.notebook import TONES, percent, unwrap
from skselect.bounds._pointwise import log_evidence_below
from skselect.objectives import GUARANTEES, Counts, Loss
from skselect.policy import Certificate, certificate as certificates
from skselect.policy.certificate import NOT_MET
from skselect.policy.policy import External
from skselect.policy.subgroups import GroupThresholds
from skselect.predictions.predictions import draw_of
from skselect.report.questions import verify_guarantee
from tests import brute
from tests.common import mostly_slow
from tests.refusals import check_refused


@pytest.fixture
def policy():
    return AbstentionPolicy(classes=np.array([0, 1]), threshold=0.9)


def rows_with(n_errors, n_accepted, n):
    """Return n rows, of which a policy at 0.9 accepts some, so many of them wrong."""
    sure = np.arange(n) < n_accepted
    proba = np.where(sure, 0.95, 0.6)
    y_true = np.where(np.arange(n) < n_errors, 0, 1)
    return Predictions.from_proba(y_true, np.column_stack([1 - proba, proba]), labels=[0, 1])


def certificate(**facts):
    """Return a certificate that at most 3 % are wrong, but for what is said."""
    known = {
        "objective": "risk", "target": 0.03, "delta": 0.05, "method": "combined",
        "guarantee": "high_probability", "exact": True, "caveats": (), "threshold": 0.9,
        "n": 500, "n_accepted": 400, "n_errors": 2, "coverage": 0.8, "risk": 0.005,
        "pointwise_bound": 0.02, "rows_needed": 99,
    }  # fmt: skip
    return Certificate(**known | facts)


#: Where most answers are wrong, another order of the columns is right more often.
mostly_wrong = pytest.mark.filterwarnings("ignore:y_proba. its columns seem")


def guaranteeing(policy, **facts):
    return replace(policy, certificate=certificate(**facts))


def ends(count, n, delta=0.05):
    """Clopper and Pearson's bounds from below and above, each at delta."""
    low = stats.beta.ppf(delta, count, n - count + 1) if count else 0.0
    return low, stats.beta.ppf(1 - delta, count + 1, n - count) if count < n else 1.0


#: Targets, each of at most 3 % of so many counted rows.
COUNTED = {"risk": (0.03, 400), "generalized_risk": (0.03, 600), "coverage": (0.97, 600)}


@pytest.mark.parametrize("delta", [0.05, 0.2])
@pytest.mark.parametrize("objective", COUNTED)
def test_one_analysis_is_two_exact_binomial_tests(policy, objective, delta):
    """Confirmed: so few errors have chance delta at most at the target; broken: so many."""
    target, n = COUNTED[objective]
    kept = replace(policy, certificate=certificate(objective=objective, delta=delta, target=target))
    for k in (0, 3, 4, 12, 17, 60):
        n_errors, n_accepted = (25, 600 - k) if objective == "coverage" else (k, 400)
        rows = rows_with(n_errors, n_accepted, 600)
        check = check_policy(kept, rows, max_analyses=1)
        few, many = stats.binom.cdf(k, n, 0.03) <= delta, stats.binom.sf(k - 1, n, 0.03) < delta
        doubted = stats.binom.sf(k - 1, n, 0.03) <= max(0.1, delta)
        rest = "in_doubt" if doubted else "no_breach"
        assert check.verdict == ("confirmed" if few else "broken" if many else rest)
        (one,) = check.guarantees
        assert one.p_value == pytest.approx(stats.binom.sf(k - 1, n, 0.03))
        seen = n_accepted if objective == "coverage" else k
        assert (one.value, one.target, one.delta, check.delta) == (seen / n, target, delta, delta)
        assert (one.low, one.high) == pytest.approx(ends(seen, n, delta))
        assert f"({seen} of {n})" in unwrap(str(check))
        assert f"{one.interval}" in unwrap(str(check))
        assert one.interval.endswith(f"(exact {100 - 200 * delta:g} % interval)")
        assert (check.n, check.n_accepted, check.n_errors) == (600, n_accepted, n_errors)
        assert (check.risk, check.coverage) == (n_errors / n_accepted, n_accepted / 600)
        assert check.risk_interval == pytest.approx(ends(n_errors, n_accepted, delta))
        assert check.coverage_interval == pytest.approx(ends(n_accepted, 600, delta))
        in_three = check_policy(kept, rows, delta=delta, max_analyses=3)
        assert in_three.risk_interval == pytest.approx(ends(n_errors, n_accepted, delta / 3))
        assert in_three.delta == in_three.guarantees[0].delta == delta


def averaged_ratio(n_errors, n, target, low, high):
    """Return the mean, over risks from low to high, of the likelihood over that at the target."""
    risk = low + (high - low) * (np.arange(20_000) + 0.5) / 20_000
    log = n_errors * np.log(risk / target) + (n - n_errors) * np.log((1 - risk) / (1 - target))
    return np.mean(np.exp(log))


@pytest.mark.parametrize("delta", [0.05, 0.2])
@pytest.mark.parametrize("objective", COUNTED)
def test_the_verdict_is_two_mixtures_of_likelihood_ratios(policy, objective, delta):
    """Confirmed: the ratio over smaller risks against the target is 1/delta; broken: larger."""
    target, n = COUNTED[objective]
    kept = replace(policy, certificate=certificate(objective=objective, delta=delta, target=target))
    for k in (0, 1, 3, 4, 12, 17, 19, 24, 25, 27, 28, 30, 31, 35, 60):
        rows = rows_with(0, n - k, n) if objective == "coverage" else rows_with(k, 400, n)
        verdict = check_policy(kept, rows).verdict
        assert (verdict == "confirmed") == (averaged_ratio(k, n, 0.03, 0, 0.03) >= 1 / delta)
        assert (verdict == "broken") == (averaged_ratio(k, n, 0.03, 0.03, 1) >= 1 / delta)


def test_the_target_passed_replaces_the_guaranteed_one(policy):
    rows, kept = rows_with(10, 300, 300), replace(policy, certificate=certificate())
    for one in (policy, kept):
        verdicts = [check_policy(one, rows, target=t).verdict for t in (0.005, 0.04, 0.08)]
        assert verdicts == ["broken", "no_breach", "confirmed"]
    once = {"max_analyses": 1}
    assert check_policy(policy, rows, target=0.02, delta=0.01, **once).verdict == "in_doubt"
    assert check_policy(policy, rows, target=0.05, delta=0.1, **once).verdict == "no_breach"
    assert check_policy(policy, rows, target=0.0525, delta=0.1, **once).verdict == "confirmed"
    assert check_policy(policy, rows, target=0.0525, delta=0.1).verdict == "no_breach"


# Found, or not tested ---------------------------------------------------------------------------


def chance_of_doubt(n, rate, target, doubt):
    """Return the chance that the exact test of at most a target doubts rows of a true rate."""
    errors = np.arange(n + 1)
    doubted = stats.binom.sf(errors - 1, n, target) <= doubt
    return np.sum(stats.binom.pmf(errors, n, rate)[doubted])


@pytest.mark.parametrize("delta", [0.05, 0.2])
@pytest.mark.parametrize("n", [1, 30, 140, 150, 400, 2500])
@pytest.mark.parametrize("objective", COUNTED)
def test_the_power_is_that_of_this_test(policy, objective, n, delta):
    """Of all counts that are in doubt; not tested are rows that miss three times the target."""
    target, _ = COUNTED[objective]
    kept = replace(policy, certificate=certificate(objective=objective, target=target, delta=delta))
    check = check_policy(kept, rows_with(0, n, n))
    [one] = check.guarantees
    chance = partial(chance_of_doubt, target=0.03, doubt=max(0.1, delta))
    found = 1 - one.detectable if objective == "coverage" else one.detectable
    assert chance(n, found) == pytest.approx(0.95)
    assert chance(n, found) > chance(n, 0.999 * found)
    tested = chance(n, 0.09) >= 0.95
    if check.verdict == "confirmed":
        return
    assert check.verdict == ("no_breach" if tested else "not_tested")
    assert (one.n_more == 0) == tested
    if not tested:
        assert chance(n + one.n_more, 0.09) >= 0.95 > chance(n + one.n_more - 1, 0.09)
        assert re.search(
            r"About [\d,]+ more labelled (answers|cases) are enough", unwrap(str(check))
        )
    side = "less" if objective == "coverage" else "more"
    # A rate above a half says nothing to anybody.
    is_said = objective == "coverage" or found <= 0.5
    told = f" % or {side} would have been found with probability 95 %."
    assert (told in unwrap(str(check))) == is_said


def test_a_check_finds_a_rate_as_often_as_it_says(policy):
    """Over all counts of errors: in doubt or broken, by the verdicts themselves."""
    rows = [check_policy(policy, rows_with(k, 200, 200), target=0.05) for k in range(60)]
    found = [check.verdict in ("in_doubt", "broken") for check in rows]
    rate = rows[10].guarantees[0].detectable
    assert np.sum(stats.binom.pmf(np.arange(60), 200, rate)[found]) == pytest.approx(0.95)
    said = unwrap(str(rows[10]))
    assert f"A true rate of {math.ceil(100 * rate)} % or more would have been" in said


@pytest.mark.parametrize("max_analyses", [None, 1, 3])
@pytest.mark.parametrize("objective", ["risk", "generalized_risk", "coverage"])
def test_so_many_more_rows_like_these_show_a_breach(policy, objective, max_analyses):
    """In 80 of 100 tables: counted with the binomial distribution of what is added."""
    target = {"risk": 0.03, "generalized_risk": 0.025, "coverage": 0.8}[objective]
    kept = replace(policy, certificate=certificate(objective=objective, target=target))
    n_errors, n, n_accepted = 15 if objective == "generalized_risk" else 14, 400, 308
    check = check_policy(kept, rows_with(n_errors, n_accepted, n), max_analyses=max_analyses)
    assert check.verdict == "in_doubt"
    count, base = {
        "risk": (n_errors, n_accepted), "generalized_risk": (n_errors, n),
        "coverage": (n - n_accepted, n),
    }[objective]  # fmt: skip
    start, first = (0, 0) if max_analyses == 1 else (count, base)
    limit, size = (1 - target if objective == "coverage" else target), first + check.n_more

    def shows(k):
        if max_analyses is None:
            return averaged_ratio(k, size, limit, limit, 1) >= 20
        return stats.binom.sf(k - 1, size, limit) <= 0.05 / max_analyses

    added = np.arange(check.n_more + 1)
    chance = stats.binom.pmf(added, check.n_more, count / base)
    likely = added[chance > 1e-6]
    settled = np.sum(chance[likely], where=[shows(start + k) for k in likely])
    assert 0.8 - 1e-3 <= settled <= 0.9
    unit = 10 ** (len(str(check.n_more)) - 2)
    assert f"About {math.ceil(check.n_more / unit) * unit:,} more" in unwrap(str(check))


def test_what_no_row_or_no_number_of_rows_tests(policy):
    check = check_policy(policy, rows_with(0, 0, 50), target=0.05)
    assert (check.verdict, check.n_accepted) == ("not_tested", 0)
    tested = [chance_of_doubt(n, 0.15, 0.05, 0.1) >= 0.95 for n in range(200)]
    assert tested[check.n_more]
    assert not tested[check.n_more - 1]
    assert "The policy answers none of these rows" in unwrap(str(check))
    assert json.loads(json.dumps(check.to_dict(), allow_nan=False))["risk"] is None
    whole = replace(policy, certificate=certificate(objective="coverage", target=1.0))
    assert check_policy(whole, rows_with(0, 50, 50)).verdict == "no_breach"
    assert check_policy(whole, rows_with(0, 49, 50)).verdict == "broken"


def costly_rows(rng, n, mean):
    """Return rows whose costs are 0, 1 or 10, with this mean cost, and their costs."""
    answers = rng.integers(0, 2, n)
    share = np.where(answers == 1, mean, mean / 10)
    truth = np.where(rng.random(n) < share, 1 - answers, answers)
    proba = np.where(answers[:, None] == [0, 1], 0.95, 0.05)
    rows = Predictions.from_proba(truth, proba, cost_matrix=[[0, 1], [10, 0]])
    return rows, np.where(truth == answers, 0.0, np.where(truth == 1, 10.0, 1.0))


@pytest.mark.parametrize(
    ("target", "verdict"), [(0.2, "broken"), (0.5, "no_breach"), (1, "confirmed")]
)
def test_costs_of_several_sizes_are_bounded_by_bets(policy, rng, target, verdict):
    rows, _ = costly_rows(rng, 600, 0.5)
    costly = replace(policy, rule=rows.rule, threshold=0.5)
    check = check_policy(costly, rows, target=target, max_analyses=1)
    answered = costly.decide(rows.y_proba)
    kept = answered["accepted"].to_numpy()
    cost = np.array([[0, 1], [10, 0]])[rows.y_true, answered["suggestion"].astype(int)][kept]
    assert check.verdict == verdict
    (one,) = check.guarantees
    low = 10 * (1 - brute.betting_bound(1 - cost / 10, 0.05))
    assert (one.low, one.value, one.high) == pytest.approx(
        (low, cost.mean(), 10 * brute.betting_bound(cost / 10, 0.05))
    )
    assert check.risk_interval == (one.low, one.high)
    assert 10 * Risk(target / 10).detectable(one.n_accepted, 0.1) == pytest.approx(one.detectable)
    if verdict == "no_breach":
        amount = f"{math.ceil(100 * one.detectable) / 100:g}"
        assert f"A true mean of {amount} or more would have been found" in unwrap(str(check))
    assert "cost at most" in unwrap(str(check))


def test_each_subgroup_is_tested_at_its_share_of_delta(policy):
    made = {site: certificate(delta=0.05 / 3, cases=f"of site {site!r}") for site in "abc"}
    groups = GroupThresholds("site", dict.fromkeys("abc", 0.9), certificates=made)
    grouped = replace(policy, threshold=0.9, groups=groups)
    rows = rows_with(40, 600, 600)
    site = np.repeat(["b", "a"], 300)  # all errors in b; c does not occur
    check = check_policy(grouped, rows, subgroups=site, max_analyses=1)
    found = {one.cases: one for one in check.guarantees}
    assert {cases: one.verdict for cases, one in found.items()} == {
        "of site 'a'": "confirmed", "of site 'b'": "broken", "of site 'c'": "not_tested",
    }  # fmt: skip
    assert found["of site 'b'"].low == pytest.approx(ends(40, 300, 0.05 / 3)[0])
    assert check.verdict == "broken"
    assert check.delta == pytest.approx(0.05 / 3 * 2)  # two of the three are tested
    first = unwrap(str(check)).splitlines()[0]
    assert first.startswith(
        "BROKEN: 3 guarantees (1 broken, 1 not tested, 1 confirmed). Defer all cases"
    )
    for most, share in ((1, 0.05), (None, 0.1 / 3)):
        # Levels that hold at all times are fixed before the third appears.
        good = check_policy(
            grouped, rows_with(0, 600, 600), subgroups=site, delta=0.1, max_analyses=most
        )
        assert good.verdict == "not_tested"  # nothing is known of c
        assert [one.delta for one in good.guarantees] == [pytest.approx(share)] * 3
    both = check_policy(grouped, rows_with(0, 900, 900), subgroups=np.repeat(["a", "b", "c"], 300))
    assert both.verdict == "confirmed"


@pytest.mark.parametrize(
    ("given", "objective"), [("given_prediction", "risk"), ("given_class", "generalized_risk")]
)
def test_a_guarantee_about_one_class_is_checked_on_its_rows(rng, given, objective):
    def table(n, flip):
        p = rng.beta(0.2, 0.2, n)
        y = (rng.random(n) < p).astype(int)
        asked = (p > 0.5) if given == "given_prediction" else (y == 1)
        wrong = (rng.random(n) < flip) & asked
        proba = np.column_stack([1 - p, p])
        if given == "given_class":  # cases of class 1 that the model calls class 0
            proba[wrong] = proba[wrong][:, ::-1]
            return Predictions.from_proba(y, proba)
        return Predictions.from_proba(np.where(wrong, 1 - y, y), proba)

    stated = GUARANTEES[objective](0.1, **{given: 1})
    tuned = select_threshold(table(4000, 0), objective=stated).policy
    fresh = table(3000, 0.4)
    check = check_policy(tuned, fresh)
    decided = tuned.decide(fresh.y_proba)
    answer = decided["suggestion"].to_numpy().astype(int)
    rows = (answer if given == "given_prediction" else fresh.y_true) == 1
    (one,) = check.guarantees
    assert check.verdict == "broken"
    assert (one.n, one.n_accepted) == (rows.sum(), (rows & decided["accepted"]).sum())
    assert "1" in one.cases


def test_a_target_is_tested_where_nothing_is_guaranteed_of_these_cases(policy):
    elsewhere = replace(policy, certificate=certificate(cases="of site 'a'"))
    check_refused("target", check_policy, elsewhere, rows_with(6, 400, 500))
    check = check_policy(elsewhere, rows_with(6, 400, 500), target=0.04)
    assert (check.verdict, check.guarantees[0].n_accepted) == ("confirmed", 400)
    groups = GroupThresholds("site", {"a": 0.9, "b": 0.9, "shut": np.inf})
    site = np.repeat(["a", "b", "shut", "new"], 100)
    with pytest.warns(UserWarning, match="belong to no site"):
        check = check_policy(
            replace(policy, groups=groups), rows_with(0, 400, 400), target=0.1, subgroups=site
        )
    found = [(one.cases, one.delta) for one in check.guarantees]
    assert found == [("of site 'a'", 0.025), ("of site 'b'", 0.025)]
    assert (check.verdict, check.n_accepted) == ("confirmed", 200)
    rated = replace(policy, threshold=7.0, confidence=External("rating"))
    rows = Predictions.from_labels([0, 1] * 100, [0, 1] * 100, [8.0] * 150 + [3.0] * 50)
    check = check_policy(rated, rows, target=0.05)  # answers with a confidence
    assert (check.verdict, check.n_accepted) == ("confirmed", 150)


def test_the_answer_in_words(policy):
    """What it says word by word, and when, stands in the golden file."""
    kept = guaranteeing(policy, created="2026-01-02T03:04:05+00:00")
    good, bad = (check_policy(kept, rows_with(e, 400, 500)) for e in (2, 60))
    (low, high), share = good.risk_interval, good.coverage_interval
    assert low < ends(2, 400, 0.05)[0] < ends(2, 400, 0.05)[1] < high
    assert (
        f"Intervals: wrong answers: {percent(low, up=False)} to {percent(high, up=True)} "
        f"(time-uniform 90 % interval); answered: {percent(share[0], up=False)} to "
    ) in unwrap(str(good))
    assert "interval" not in good.summary
    assert "Guaranteed (2026-01-02, 500 rows)" in unwrap(str(good))
    asked = str(check_policy(kept, rows_with(2, 400, 500), target=0.03))
    estimate = guaranteeing(policy, exact=False, caveats=("folds",))
    for said in (asked, str(check_policy(estimate, rows_with(2, 400, 500)))):
        assert "Guaranteed" not in said
    for one in (bad, asked, str(check_policy(estimate, rows_with(2, 400, 500)))):
        assert "stands" not in str(one)
    assert "Guaranteed (" not in unwrap(str(estimate))
    assert max(map(len, str(bad).splitlines())) <= 88
    for check, tone in ((good, "good"), (bad, "bad")):
        page = check._repr_html_()
        assert f"background:{TONES[tone]}" in page
        assert f">{check.verdict.upper()}</b>" in page
    assert json.loads(json.dumps(bad.to_dict()))["guarantees"][0]["verdict"] == "broken"
    rows = Predictions.from_verdicts(["right", None] * 300, [0.95, 0.3] * 300)
    judged = select_threshold(
        Predictions.from_verdicts(["right"] * 300, [0.9] * 300), objective="risk", target=0.05
    ).policy
    assert check_policy(judged, rows, target=0.1).assumptions[0] == draw_of(rows).assumed


@pytest.mark.parametrize("facts", [
    {"guarantee": "none", "exact": False, "caveats": ("refused",)},
    {"guarantee": "mean", "exact": False, "caveats": ("mean only",)},
    {"guarantee": "measured"}, {"n_accepted": 0, "n_errors": 0}, {"loss": "graded"},
], ids=str)  # fmt: skip
def test_without_a_guarantee_a_target_is_needed(policy, facts):
    rows = rows_with(2, 400, 500)
    kept = replace(policy, certificate=certificate(**facts))
    for one in (policy, kept):
        check_refused("target", check_policy, one, rows)
        assert check_policy(one, rows, target=0.03).verdict == "confirmed"
    found = certify_shuffled(kept, rows_with(216, 1285, 2000))  # nothing to compare them with
    assert found.notice == ""
    assert str(found).startswith("UPPER BOUND ONLY")


WEIGHED = replace(rows_with(2, 400, 500), sample_weight=np.linspace(1, 2, 500))


@pytest.mark.parametrize(("change", "asked", "argument"), [
    ({"policy": None}, {}, "policy"), ({"rows": [0, 1]}, {}, "rows"),
    ({"rows": WEIGHED}, {}, "sample_weight"), ({}, {"target": 0.98}, "target"),
    ({}, {"delta": 0.95}, "delta"),
])  # fmt: skip
def test_what_cannot_be_checked_is_refused(policy, change, asked, argument):
    rows = {"policy": policy, "rows": rows_with(2, 400, 500)} | change
    for call in (check_policy, certify):
        check_refused(argument, lambda c=call: c(*rows.values(), **{"target": 0.1} | asked))


def test_a_certificate_and_a_check_agree(policy):
    """A check holds from the same bound on that certifies a target."""
    rows = rows_with(7, 400, 500)
    for most in (1, 4):
        bound = certify(policy, rows, objective=Risk(None, max_analyses=most), assume="independent")
        edge = bound.target
        for target in (edge * (1 + 1e-9), edge * (1 - 1e-9)):
            holds = (
                check_policy(policy, rows, target=target, max_analyses=most).verdict == "confirmed"
            )
            risk = Risk(target, max_analyses=most)
            certificate = certify(policy, rows, objective=risk, assume="independent")
            assert holds == certificate.is_certified


# Both verdicts keep their level ------------------------------------------------------------------

#: True risk as a multiple of the target: two at most the target, two above it.
_TRUTHS = (0.7, 1.0, 1.0001, 1.4)


def is_within(n_wrong, n_draws, level):
    """Tell whether so many wrong verdicts are at most the level, within 3 standard errors."""
    return n_wrong / n_draws <= level + 3 * math.sqrt(level * (1 - level) / n_draws)


def limits(target, delta, n):
    """Return, per number of rows up to n, the most errors that say "confirmed" (-1: none do)."""
    rows, low = np.arange(n + 1), np.full(n + 1, -1)
    high = rows.copy()
    while np.any(low < high):
        middle = (low + high + 1) // 2
        shows = log_evidence_below(middle, rows, target) >= -math.log(delta)
        low, high = np.where(shows, middle, low), np.where(shows, high, middle - 1)
    return low


def chance_of_crossing(most, risk):
    """Return the chance that at some number of rows there are so few errors."""
    state, crossed = np.zeros(len(most) + 1), 0.0
    state[0] = 1.0
    for few in most[1:].tolist():
        state[1:] = state[1:] * (1 - risk) + state[:-1] * risk
        state[0] *= 1 - risk
        crossed += state[: few + 1].sum()
        state[: few + 1] = 0.0
    return crossed


@pytest.mark.parametrize("target", [0.02, 0.05, 0.3])
def test_asking_after_every_row_keeps_the_level(policy, target):
    """The population where it is tightest: a risk of exactly the target."""
    few, few_right = limits(target, 0.05, 5000), limits(1 - target, 0.05, 5000)
    for n in (300, 1000):
        for n_errors in (few[n], few[n] + 1, n - few_right[n], n - few_right[n] - 1):
            verdict = check_policy(policy, rows_with(n_errors, n, n), target=target).verdict
            assert (verdict == "confirmed") == (n_errors <= few[n])
            assert (verdict == "broken") == (n - n_errors <= few_right[n])
    assert 0.03 < chance_of_crossing(few, target) <= 0.05
    assert 0.01 < chance_of_crossing(few_right, 1 - target) <= 0.05
    assert chance_of_crossing(few, 1.05 * target) < chance_of_crossing(few, target)


def taken(rows, chosen):
    """Return some of costly rows."""
    return Predictions.from_proba(
        rows.y_true[chosen], rows.y_proba[chosen], cost_matrix=[[0, 1], [10, 0]]
    )


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["confirmed", "broken"])
def test_tables_with_costs_keep_their_level_however_often_they_are_asked(policy, wrong):
    rng, delta, n_draws, n_wrong = np.random.default_rng(7), 0.1, 200, 0
    target = 0.5 if wrong == "broken" else 0.4999
    for _ in range(n_draws):
        rows, _ = costly_rows(rng, 2000, 0.5)
        costly = replace(policy, rule=rows.rule, threshold=0.5)
        said = ""
        for n in (50, 200, 600, 2000):
            check = check_policy(costly, taken(rows, np.arange(n)), target=target, delta=delta)
            said = said or (check.verdict if check.verdict in ("broken", "confirmed") else "")
        n_wrong += said == wrong
    assert is_within(n_wrong, n_draws, delta)


@pytest.mark.slow
@pytest.mark.parametrize("max_analyses", [None, 1])
def test_so_many_more_costs_like_these_show_a_breach(policy, max_analyses):
    rng, n_draws, n_settled = np.random.default_rng(8), 100, 0
    rows, _ = costly_rows(rng, 300, 0.5)
    costly = replace(policy, rule=rows.rule, threshold=0.5)
    asked = {"target": 0.25, "max_analyses": max_analyses}
    check = check_policy(costly, rows, **asked)
    assert check.verdict == "in_doubt"
    assert 0 < check.n_more < 100_000
    for _ in range(n_draws):
        kept = [] if max_analyses == 1 else np.arange(300)
        chosen = np.append(kept, rng.integers(0, 300, check.n_more)).astype(int)
        n_settled += check_policy(costly, taken(rows, chosen), **asked).verdict == "broken"
    assert 0.8 - 3 * math.sqrt(0.16 / n_draws) <= n_settled / n_draws


@pytest.mark.slow
def test_a_kept_guarantee_in_costs_is_rarely_in_doubt_and_others_are_found_as_promised(policy):
    """The coins: a mean cost of the target, and one that is said to be found."""
    rng, n_draws = np.random.default_rng(9), 400
    n, target = 600, 0.5
    found = 10 * Risk(target / 10).detectable(n, 0.1)
    for mean, low, high in ((target, 0.0, 0.1), (found, 0.95, 1.0)):
        n_found = 0
        for _ in range(n_draws):
            rows, _ = costly_rows(rng, n, mean)
            costly = replace(policy, rule=rows.rule, threshold=0.5)
            verdict = check_policy(costly, rows, target=target).verdict
            n_found += verdict in ("in_doubt", "broken")
        spread = 3 * math.sqrt(0.25 / n_draws) * 0.6
        assert low - spread <= n_found / n_draws <= high + spread


@pytest.mark.slow
@pytest.mark.parametrize("truth", _TRUTHS)
@pytest.mark.parametrize("n_groups", [2, 5])
def test_verdicts_on_subgroups_share_their_level(policy, n_groups, truth):
    """All subgroups have the same risk: one wrong verdict among them is one too many."""
    rng, delta, n, n_draws = np.random.default_rng([n_groups, round(1000 * truth)]), 0.1, 200, 1000
    sites = [f"s{k}" for k in range(n_groups)]
    made = {
        s: certificate(target=0.1, delta=delta / n_groups, cases=f"of site {s!r}") for s in sites
    }
    groups = GroupThresholds("site", dict.fromkeys(sites, 0.9), certificates=made)
    grouped = replace(policy, groups=groups)
    site, sure = np.repeat(sites, n), np.full(n_groups * n, 0.95)
    n_wrong = 0
    for _ in range(n_draws):
        y_true = (rng.random(len(sure)) >= truth * 0.1).astype(int)
        rows = Predictions.from_proba(y_true, np.column_stack([1 - sure, sure]), labels=[0, 1])
        check = check_policy(grouped, rows, subgroups=site)
        wrong = "broken" if truth <= 1 else "confirmed"
        n_wrong += any(one.verdict == wrong for one in check.guarantees)
    assert is_within(n_wrong, n_draws, delta)


def test_subgroups_that_have_to_be_accepted_whole_need_no_test(rng):
    """A coverage cannot fail where everything is accepted, so the verdict is about the others."""
    sizes = [400, 400, *[8] * 30]
    site = np.repeat([f"s{k:02}" for k in range(32)], sizes)
    proba = rng.dirichlet([1, 1], len(site))
    truth, new = (rng.random((2, len(site))) < proba[:, 1]).astype(int)
    found = select_threshold(
        Predictions.from_proba(truth, proba), objective="coverage", target=0.8, subgroups=site
    )
    fresh = Predictions.from_proba(new, rng.dirichlet([1, 1], len(site)))
    check = check_policy(found.policy, fresh, subgroups=site)
    assert [one.delta for one in check.guarantees] == [0.025, 0.025]
    assert check.delta == 0.05
    named = check_policy(found.policy, fresh, subgroups=site, objective=Risk(0.4))
    assert len(named.guarantees) == 32


# Counted rows ------------------------------------------------------------------------------------


def counted(predictions):
    y = predictions.classes[predictions.y_true]
    halves = np.array_split(np.arange(len(y)), 2)
    states = [
        SelectiveState(labels=predictions.classes).update(y[rows], predictions.y_proba[rows])
        for rows in halves
    ]
    return states[0].merge(states[1])


@pytest.mark.parametrize("objective", ["risk", "generalized_risk", "coverage"])
def test_counted_rows_give_the_answer_of_the_rows(policy, objective):
    kept, asked = replace(policy, certificate=certificate(objective=objective)), {"delta": 0.2}
    for n_errors, n_accepted in product([0, 4, 60], [0, 400, 600]):
        rows = rows_with(n_errors, n_accepted, 600)
        state = counted(rows)
        for one, options in ((kept, {}), (policy, asked | {"target": 0.01})):
            expected = str(check_policy(one, rows, **options).to_dict())
            assert str(check_policy(one, state, **options).to_dict()) == expected


def test_counted_rows_that_chose_the_threshold_decide_nothing():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 5000).astype(np.float32)
    wrong = rng.random(5000) < 0.9 * (1 - confidence)
    state = SelectiveState().update_confidence(confidence, wrong)
    found = select_threshold(state.finalize(), objective="risk", target=0.1)
    policy = AbstentionPolicy([0, 1], threshold=found.threshold, certificate=found.certificate)
    assert check_policy(policy, state).same_rows
    fresh = SelectiveState().update_confidence(confidence[1:], wrong[1:])
    assert check_policy(policy, fresh, max_analyses=1).verdict == "confirmed"


@pytest.mark.parametrize(("change", "argument"), [
    ({"groups": GroupThresholds("site", {"a": 0.9}), "threshold": math.inf}, "policy"),
    ({"rule": costly_rows(np.random.default_rng(0), 9, 0.5)[0].rule, "threshold": 0.5},
     "policy"),
    ({"confidence": "margin"}, "policy"),
    ({"certificate": certificate(cases="whose answer is 1")}, "policy"),
    ({"classes": np.array(["no", "yes"])}, "policy"),
])  # fmt: skip
def test_a_state_that_cannot_tell_what_the_policy_decides_is_refused(policy, change, argument):
    rows, target = counted(rows_with(3, 400, 600)), 0.05
    check_refused(argument, lambda: check_policy(replace(policy, **change), rows, target=target))
    check_refused("target", check_policy, policy, rows)


def test_rows_unlike_those_that_tuned_the_policy_are_said_below_the_verdict(policy):
    rows = rows_with(3, 1990, 2000)  # all but ten at a confidence of .95
    same, other = (replace(policy, confidence_quantiles={"0.5": at}, n=2000) for at in (0.95, 0.99))
    plain = check_policy(same, rows, target=0.03)
    assert (plain.verdict, plain.caveats) == ("confirmed", ())
    with pytest.warns(UserWarning, match="y_proba: 100.0% of these 2,000 rows"):
        doubted = check_policy(other, rows, target=0.03)
    said = unwrap(str(doubted)).splitlines()
    assert said[0] == unwrap(str(plain)).splitlines()[0]
    start = "This verdict is about rows like these only: 100.0% of these 2,000 rows have a confi"
    assert said[1].startswith(start)
    assert "calibrated already" in said[1]
    assert said[1] in doubted.summary
    assert doubted.to_dict()["caveats"] == (said[1],)
    for check, tone in ((plain, "good"), (doubted, "open")):
        assert f"background:{TONES[tone]}" in check._repr_html_()


# Rows that chose the threshold -------------------------------------------------------------------


def drawn(rng, n, digits=16):
    """Return rows whose confidences are honest, rounded to so many digits."""
    p = rng.uniform(0, 1, n).round(digits)
    return (rng.random(n) < p).astype(int), np.column_stack([1 - p, p])


def stacked(*tables):
    return Predictions.from_proba(*(np.concatenate(column) for column in zip(*tables, strict=True)))


@mostly_wrong
@pytest.mark.parametrize("n", [300, 4000])
def test_a_table_with_the_rows_that_chose_does_not_plainly_hold(rng, n):
    chose = drawn(rng, n)
    policy = select_threshold(stacked(chose), objective="risk", target=0.2).policy
    policy = AbstentionPolicy.from_json(policy.to_json())
    same, of_fit = stacked(chose), stacked(chose, drawn(rng, 2 * n))
    among = "some of these rows trained the classifier or chose the threshold"
    for rows, is_same, start in ((same, True, "these rows chose"), (of_fit, False, among)):
        check = check_policy(policy, rows, target=0.4)
        assert (check.verdict, check.same_rows, check.n_more) == ("not_tested", is_same, None)
        assert [one.verdict for one in check.guarantees] == ["not_tested"]
        assert unwrap(str(check)).startswith(f"NOT TESTED: {start}")
        assert "other than those of fit" in unwrap(str(check))
        again = certify_shuffled(policy, rows, target=0.4)
        assert not again.is_certified
        said = "these rows also chose the threshold" if is_same else among
        assert unwrap(str(again)).startswith(f"ESTIMATE, NOT CERTIFIED: {said}; only fresh")
        assert "policy was fixed" not in unwrap(str(again))
        assert again.notice == ""  # they say nothing against their guarantee
    assert check.reused == 1
    assert verify_guarantee(policy, check).verdict == "not_tested"
    flipped = (1 - of_fit.y_true, of_fit.y_proba)
    assert check_policy(policy, Predictions.from_proba(*flipped), target=0.4).verdict == "broken"
    half = tuple(column[: n // 2] for column in chose)
    assert check_policy(policy, stacked(half), target=0.4).verdict == "not_tested"
    # A few among many rows that chose nothing: such as those that trained, beside a small share.
    many = check_policy(policy, stacked(chose, drawn(rng, 9 * n)), target=0.4)
    assert (many.verdict, many.reused) == ("not_tested", 1)
    tenth = tuple(column[: n // 10] for column in chose)
    few = check_policy(policy, stacked(tenth, drawn(rng, n)), target=0.4)
    assert few.verdict == "confirmed"
    assert few.reused == pytest.approx(1 / 10, abs=0.05)
    assert "of these rows have the confidence of one of them" in unwrap(str(few))
    fresh = check_policy(policy, stacked(drawn(rng, 4 * n)), target=0.4)
    assert (fresh.verdict, fresh.reused) == ("confirmed", 0)
    assert "None of these rows is among them." in unwrap(str(fresh))


def test_rows_that_cannot_be_recognised_are_said_to_be_unchecked(rng):
    chose = drawn(rng, 2000, digits=2)  # 51 confidences
    policy = select_threshold(stacked(chose), objective="risk", target=0.2).policy
    old = drawn(rng, 2000)
    recorded = select_threshold(stacked(old), objective="risk", target=0.2).policy
    known = {name: value for name, value in recorded.fingerprints.items() if name != "rows"}
    for one, table in ((policy, chose), (replace(recorded, fingerprints=known), old)):
        check = check_policy(one, stacked(table, drawn(rng, 2000)), target=0.4)
        assert (check.verdict, check.reused) == ("confirmed", None)
        assert "skselect cannot tell whether some of these rows chose" in unwrap(str(check))


@pytest.mark.parametrize("refit", ["auto", True])
def test_rows_of_fit_are_recognised_unless_the_classifier_was_fitted_again(rng, refit):
    X = rng.normal(size=(1500, 3))
    y = (X[:, 0] + rng.normal(size=1500) > 0).astype(int)
    tuner = ThresholdTuner(
        LogisticRegression(), "risk", target=0.2, cv=0.4, refit=refit, random_state=0
    ).fit(X, y)
    rows = Predictions.from_proba(y, tuner.raw_scores(X), labels=[0, 1])
    check = check_policy(tuner.policy_, rows, target=0.4)
    if refit == "auto":
        assert check.verdict == "not_tested"
        assert check.reused > 0.95  # of those that chose
    else:
        assert (check.verdict, check.reused) == ("confirmed", None)
    assert "rows" not in tuner.certificate_.fingerprints


def tuned(model, rng, n, n_train):
    """Return a tuner whose first rows trained it, and a function that draws cases like its own."""

    def draw(n):
        X = rng.normal(size=(n, 4))
        return X, (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > 1).astype(int)

    X, y = draw(n)
    tuner = ThresholdTuner(model, "risk", target=0.3, cv=[(slice(n_train), slice(n_train, n))])
    return tuner.fit(X, y), X, y, draw


MODELS = [LogisticRegression(), HistGradientBoostingClassifier()]


@pytest.mark.parametrize(
    ("model", "n_train"), [(MODELS[0], 600), (MODELS[0], 6000), (MODELS[1], 900)]
)
def test_rows_that_trained_the_classifier_do_not_test_its_policy(model, n_train, rng):
    tuner, X, y, _ = tuned(model, rng, n_train + 600, n_train)
    policy = AbstentionPolicy.from_json(tuner.policy_.to_json())
    said = "some of these rows trained the classifier or chose the threshold"
    for rows in (slice(n_train), slice(n_train // 2), slice(None)):
        check = check_policy(policy, y[rows], tuner.raw_scores(X[rows]), target=0.45)
        assert (check.verdict, check.same_rows) == ("not_tested", False)
        assert unwrap(str(check)).startswith(f"NOT TESTED: {said}, so they cannot test it.")
        raw = tuner.raw_scores(X[rows])
        again = certify(policy, y[rows], raw, target=0.45, assume="independent")
        assert not again.is_certified
        assert unwrap(str(again)).startswith(f"ESTIMATE, NOT CERTIFIED: {said}; only fresh")
        assert certificates.FRESH not in again.assumptions
        assert certificates.FIXED not in again.assumptions
    assert len(policy.fingerprints["trained"]) == 8 * 500


@pytest.mark.parametrize("n_tables", mostly_slow([10, 200]))
def test_fresh_rows_are_never_taken_for_training_rows(n_tables, rng):
    for model in MODELS:
        tuner, _, _, draw = tuned(model, rng, 1500, 900)
        for n in rng.integers(100, 3000, n_tables).tolist():
            X, y = draw(n)
            check = check_policy(tuner.policy_, y, tuner.raw_scores(X), target=0.45)
            assert check.reused < 0.02
            assert check.caveats == ()
            found = certify(
                tuner.policy_, y, tuner.raw_scores(X), target=0.45, assume="independent"
            )
            assert found.exact  # rows that are equal by chance are read with them and without
            told = [x for x in found.caveats if not x.endswith(certificates.MUST_PASS)]
            assert told == [] or "overruled" in told[0]


def test_rows_unlike_those_that_tuned_a_policy_are_named_in_both(rng):
    forest = RandomForestClassifier(20, random_state=0)  # too many ties for a record
    tuner, X, y, draw = tuned(forest, rng, 2000, 1200)
    assert tuner.policy_.fingerprints["trained"] == ""
    raw = tuner.raw_scores(X[:1200])
    with pytest.warns(UserWarning, match="or these rows trained the classifier, or they are"):
        check = check_policy(tuner.policy_, y[:1200], raw, target=0.45)
    with pytest.warns(
        UserWarning, match=r"y_proba: \d.* of these 1,200 rows have a confidence below"
    ):
        found = certify(tuner.policy_, y[:1200], raw, target=0.45)
    said = found.caveats[-1]
    assert check.caveats == (f"This verdict is about rows like these only: {said}.",)
    assert found.is_certified
    assert str(found).startswith("CERTIFIED, ")
    limits = next(line for line in unwrap(str(found)).splitlines() if "Note: " in line)
    assert limits.endswith(f"; {said}.")
    X, y = draw(1200)
    assert check_policy(tuner.policy_, y, tuner.raw_scores(X), target=0.45).caveats == ()
    assert len(certify(tuner.policy_, y, tuner.raw_scores(X), target=0.45).caveats) == 1


# A new certificate for a fixed policy -------------------------------------------------------------


def certify_shuffled(policy, rows, subgroups=None, **options):
    """Certify rows that the tests write down in order, as if they had come in another one."""
    if isinstance(rows, Predictions):
        order = np.random.default_rng(0).permutation(len(rows))
        subgroups = None if subgroups is None else np.asarray(subgroups)[order]
        names = ("y_true", "y_pred", "y_proba", "confidence", "sample_weight")
        given = {name: getattr(rows, name) for name in names}
        rows = replace(rows, **{k: v[order] for k, v in given.items() if v is not None})
    return certify(policy, rows, subgroups=subgroups, **options)


@mostly_wrong
@pytest.mark.parametrize(("n_errors", "n_accepted"), [(0, 300), (7, 400), (150, 400)])
@pytest.mark.parametrize(("delta", "looks"), [(0.05, 1), (0.1, 1), (0.1, 4)])
def test_a_target_is_certified_from_the_exact_bound_on(policy, n_errors, n_accepted, delta, looks):
    """The chance of so few errors at that rate is delta, or less at any larger one."""
    rows = rows_with(n_errors, n_accepted, 500)
    edge = brute.edge(lambda rate: stats.binom.cdf(n_errors, n_accepted, rate) <= delta / looks)
    above, below, least = (
        certify_shuffled(policy, rows, objective=Risk(target, delta=delta, max_analyses=looks))
        for target in (edge * (1 + 1e-9), edge * (1 - 1e-9), None)
    )
    assert str(above).startswith("CERTIFIED, ")
    assert (below.is_certified, below.guarantee) == (False, "none")
    said = r"ESTIMATE, NOT CERTIFIED: the target .* is not met; the bound of these rows is .*, whi"
    assert re.match(said, unwrap(str(below)))
    assert below.statement not in unwrap(str(below))  # no guarantee, so none is quoted
    assert (least.delta, least.max_analyses) == (delta, looks)
    assert (least.n, least.n_accepted, least.n_errors) == (500, n_accepted, n_errors)
    assert (least.guarantee, least.exact, least.is_certified) == ("measured", True, False)
    assert least.least_target == least.pointwise_bound == least.target == pytest.approx(edge)
    lines = unwrap(str(least)).splitlines()
    assert lines[0].startswith("UPPER BOUND ONLY: no target was named beforehand (target=), ")
    assert "The policy was fixed, so nothing was chosen on these rows." in unwrap(least.details())
    assert Certificate.from_dict(least.to_dict()) == least
    kept = replace(policy, certificate=least)  # a measured bound is no guarantee to hold it to
    assert certify_shuffled(kept, rows_with(400, 400, 500)).notice == ""
    needed = next(n for n in range(999) if (1 - edge) ** n <= delta / looks)
    for n, is_enough in ((needed, True), (needed - 1, False)):
        risk = Risk(edge, delta=delta, max_analyses=looks)
        found = certify_shuffled(policy, rows_with(0, n, n), objective=risk)
        assert (found.rows_needed, found.is_certified) == (needed, is_enough)


def test_a_bound_above_one_half_and_no_accepted_row_guarantee_nothing(policy):
    found = certify_shuffled(policy, rows_with(300, 400, 500))
    assert (found.guarantee, found.is_certified) == ("none", False)
    assert "which guarantees nothing" in unwrap(str(found))
    nothing = certify_shuffled(replace(policy, threshold=np.inf), rows_with(0, 9, 9), target=0.1)
    assert nothing.caveats == ("the policy accepts none of these rows",)


@pytest.mark.parametrize(("target", "reason"), [
    (0.05, "the target 5 % is not met; the bound of these rows is "),
    (None, "the bound of these rows is "),
])  # fmt: skip
def test_why_it_is_an_estimate_comes_before_what_is_noted(target, reason):
    rows = read_again(0, 0.6, 300, times=2)
    certificate = certify(EVERYTHING, *rows, target=target)
    assert certificate.guarantee == "none"
    head, *_ = unwrap(str(certificate)).splitlines()
    assert head.startswith(f"ESTIMATE, NOT CERTIFIED: {reason}")
    assert "; 300 of these 600 rows equal an earlier one" in head


def test_a_reason_that_strikes_stands_beside_the_target_that_is_not_met():
    """Both make it an estimate, so that both come before a note."""
    caveats = (certificates.Caveat("noted", strikes=False), certificates.Caveat("doubted"))
    origin = certificates.Origin(caveats=caveats, refusal="refused")
    counts = [Counts(10, 5, 1)]
    certificate = Certificate.of(Risk(0.1).on(Loss()), 0.5, (0.5, 0.2), counts, origin)
    assert certificate.caveats == ("doubted", "refused", "noted")
    assert not certificate.exact


def rows_of_two_costs():
    """Return 600 rows, their rule, and what the 500 sure ones lose as shares of a cost of 10."""
    answers = np.repeat([1, 0, 1], [300, 200, 100])
    y_true = answers.copy()
    y_true[:30], y_true[300:304] = 0, 1  # thirty false alarms at 1, four cases missed at 10
    sure = np.where(np.arange(600) < 500, 0.95, 0.6)
    proba = np.where(answers[:, None] == [0, 1], sure[:, None], 1 - sure[:, None])
    rows = Predictions.from_proba(y_true, proba, cost_matrix=[[0, 1], [10, 0]])
    return rows, np.repeat([0.1, 1.0, 0.0], [30, 4, 466])


@pytest.mark.parametrize("looks", [1, 3])
def test_a_target_in_costs_is_certified_where_the_rows_it_counts_certify_it(policy, looks):
    """The thirty costs of 1 are each an error with probability .1, the four of 10 are errors."""
    rows, losses = rows_of_two_costs()
    costly, level = replace(policy, rule=rows.rule), 0.05 / looks
    ask = partial(certify_shuffled, costly, rows)
    first = ask(objective=Risk(0.5, max_analyses=looks))
    assert first.is_certified
    assert (first.method, first.unit, first.n_accepted) == ("clopper-pearson", 10.0, 500)
    assert 4 <= first.n_errors <= 14  # 7 on average, of 34 rows with a cost
    assert first.risk == pytest.approx(0.14) == 10 * losses.mean()
    edge = 10 * brute.edge(lambda r: stats.binom.cdf(first.n_errors, 500, r) <= level)
    assert first.pointwise_bound == pytest.approx(edge)
    good = ask(objective=Risk(edge * 1.0001, max_analyses=looks))
    assert good.is_certified
    assert "the answers cost at most 0." in good.statement
    for target in (edge * 0.9999, 0.1, 0.01):
        missed = ask(objective=Risk(target, max_analyses=looks))
        assert not missed.is_certified
        assert missed.guarantee == "none"
        assert missed.statement not in unwrap(str(missed))
        said = re.match("ESTIMATE, NOT CERTIFIED: the target (.*) is not met; the bound of "
                        "these rows is (.*), which guarantees nothing[.]\n",
                        unwrap(str(missed)))  # fmt: skip
        assert float(said[1]) == pytest.approx(target, rel=1e-5)
        assert float(said[2]) == pytest.approx(edge, rel=1e-5)
    least = ask(objective=Risk(None, max_analyses=looks))
    assert (least.guarantee, least.target) == ("measured", pytest.approx(edge))
    costs = {"decision": "min_cost", "cost_matrix": rows.rule.cost_matrix}
    for n, certified in ((good.rows_needed - 1, False), (good.rows_needed, True)):
        right = Predictions.from_proba([0] * n, [[0.95, 0.05]] * n, labels=[0, 1], **costs)
        again = certify_shuffled(costly, right, objective=Risk(good.target, max_analyses=looks))
        assert again.is_certified == certified
    nothing = certify_shuffled(replace(costly, threshold=np.inf), rows, target=9.9)
    assert (nothing.is_certified, nothing.pointwise_bound) == (False, 10.0)


# The policy's own guarantee -----------------------------------------------------------------------


@pytest.mark.parametrize(("objective", "target", "n_errors", "n_accepted"), [
    ("risk", 0.03, 216, 1285), ("risk", 0.03, 55, 1285), ("risk", 0.03, 10, 1285),
    ("risk", 0.03, 6, 132), ("generalized_risk", 0.03, 216, 1285),
    ("generalized_risk", 0.03, 40, 1285), ("generalized_risk", 0.03, 70, 1285),
    ("coverage", 0.7, 0, 1285), ("coverage", 0.64, 0, 1285), ("coverage", 0.6, 0, 1285),
    ("coverage", 1.0, 0, 2000), ("coverage", 1.0, 0, 1999),
])  # fmt: skip
def test_a_check_says_at_once_whether_the_own_guarantee_is_kept(
    policy, objective, target, n_errors, n_accepted
):
    own, rows = {"objective": objective, "target": target}, rows_with(n_errors, n_accepted, 2000)
    kept = guaranteeing(policy, **own)
    found = certify_shuffled(kept, rows)
    lines = unwrap(str(found)).splitlines()
    if objective == "coverage":
        low, high = ends(2000 - n_accepted, 2000)
        limit, seen = 1 - target, f"{n_accepted:,} of 2,000"
    else:
        n = n_accepted if objective == "risk" else 2000
        (low, high), limit, seen = ends(n_errors, n), target, f"{n_errors:,} of {n:,}"
    count, n = (int(number.replace(",", "")) for number in seen.split(" of "))
    count = n - count if objective == "coverage" else count
    p_value = stats.binom.sf(count - 1, n, limit)
    tested = limit == 0 or chance_of_doubt(n, min(3 * limit, 1), limit, 0.1) >= 0.95
    if high <= limit or (low <= limit and p_value > 0.1 and tested):
        assert found.notice == ""
        return
    if low > limit:
        assert lines[0].startswith(f"{NOT_MET} by these rows. It says: ")
        assert lines[1].startswith("UPPER BOUND ONLY")
        assert not found.is_certified
    else:
        assert lines[0].startswith("UPPER BOUND ONLY")
        start = "These rows put the policy's own" if p_value <= 0.1 else "These rows are too few to"
        assert lines[1].startswith(start)
    assert f"({seen})." in found.notice
    assert kept.certificate.statement in found.notice
    assert Certificate.from_dict(found.to_dict()) == found
    if objective == "risk" and low > limit:  # said first, whatever else is certified
        other = certify_shuffled(kept, rows, target=0.2)
        assert other.is_certified
        lines = unwrap(str(other)).splitlines()
        assert lines[0].startswith(NOT_MET)
        assert lines[1] == "What these rows certify instead:"
        assert lines[2].startswith("At most 20 % of the answers are wrong")


def test_a_guarantee_about_some_cases_is_compared_with_these_cases(policy):
    rows = rows_with(216, 1285, 2000)
    found = certify_shuffled(guaranteeing(policy, cases="whose true class is 0"), rows)
    assert found.notice.startswith(f"{NOT_MET} by these rows. It says: at most 3 % of the answers ")
    assert "Found: 100 % (216 of 216)." in found.notice
    assert certify_shuffled(guaranteeing(policy, cases="whose true class is 1"), rows).notice == ""
    assert certify_shuffled(guaranteeing(policy, cases="of site 'a'"), rows).notice == (
        "The policy's own guarantee was not checked, because it covers only cases of site 'a'."
    )


@mostly_wrong
@pytest.mark.parametrize(("n_groups", "others"), [(9, 0), (10, 0), (11, 1), (13, 3)])
def test_ten_broken_guarantees_are_said_and_the_others_counted(policy, n_groups, others):
    made = guaranteeing(policy).certificate
    sites = [f"s{i:02d}" for i in range(n_groups)]
    own = {site: replace(made, cases=f"of site {site!r}") for site in sites}
    groups = GroupThresholds("site", dict.fromkeys(sites, 0.9), certificates=own)
    rows = rows_with(30 * n_groups, 30 * n_groups, 30 * n_groups)  # all of them wrong
    notice = certify_shuffled(
        replace(policy, groups=groups), rows, subgroups=np.tile(sites, 30)
    ).notice.splitlines()
    assert [line.startswith(NOT_MET) for line in notice[:10]] == [True] * min(n_groups, 10)
    assert all(repr(site) in line for site, line in zip(sites, notice[:10], strict=False))
    noun = "subgroup" if others == 1 else "subgroups"
    more = [f"The same is true of {others} more {noun}."] if others else []
    assert notice[10:] == more


@pytest.mark.parametrize(("threshold", "verb"), [(0.0, "answers"), (1.5, "defers")])
def test_a_check_of_one_case_speaks_of_one_case(threshold, verb):
    policy = replace(EVERYTHING, threshold=threshold)
    check = check_policy(policy, [1], [[0.1, 0.9]], target=0.05)
    assert f"The policy {verb} this one case." in unwrap(str(check))
    assert repr(check).endswith(f"0 errors in {check.n_accepted} accepted of 1 row>")


# Rows that equal earlier ones ---------------------------------------------------------------------


def read_again(seed, risk, n=600, times=1):
    """Return labels and probabilities of drawn rows, all answered, each so many times."""
    rng = np.random.default_rng(seed)
    proba = rng.uniform(0.5, 1.0, n)
    y = np.where(rng.random(n) < risk, 0, 1)
    proba = np.column_stack([1.0 - proba, proba])
    return np.tile(y, times), np.tile(proba, (times, 1))


EVERYTHING = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.0)


@pytest.mark.parametrize("times", [2, 5, 10])
def test_a_file_that_was_read_several_times_proves_no_more_than_once(times):
    differing = 0
    for seed in range(20):
        for risk in (0.03, 0.051, 0.075):
            once = check_policy(EVERYTHING, *read_again(seed, risk), target=0.05)
            check = check_policy(EVERYTHING, *read_again(seed, risk, times=times), target=0.05)
            [single], [several] = once.guarantees, check.guarantees
            assert check.copies == 600 * (times - 1)
            assert several.readings[1] == once.verdict
            assert several.low <= single.low
            assert several.high >= single.high
            for name in ("risk_interval", "coverage_interval"):
                assert getattr(check, name)[0] <= getattr(once, name)[0]
                assert getattr(check, name)[1] >= getattr(once, name)[1]
            if once.verdict in ("no_breach", "not_tested"):
                assert check.verdict == once.verdict
            if check.verdict in ("broken", "confirmed"):
                assert once.verdict == check.verdict
            differing += len(set(several.readings)) > 1
    assert differing > 0


def test_what_copies_change_is_said_and_assumed():
    y, proba = read_again(0, 0.0, 40, times=10)
    check = check_policy(EVERYTHING, y, proba, target=0.05)
    assert check.guarantees[0].readings == ("confirmed", "not_tested")
    assert check.verdict == "not_tested"
    text = unwrap(str(check))
    assert "360 of these 400 rows equal an earlier one, label included: with them the" in text
    assert "CONFIRMED, without them NOT TESTED" in text
    assert certificates.ALL_COPIES in check.assumptions
    same = check_policy(EVERYTHING, *read_again(0, 0.0, 400, times=2), target=0.05)
    assert same.verdict == "confirmed"
    assert "the verdict is the same with and without them" in unwrap(str(same))
    assert same.n_more == 0
    alone = check_policy(EVERYTHING, *read_again(0, 0.0, 40), target=0.05)
    assert check.n_more >= alone.n_more - 1 > 0


def test_rows_that_may_be_copies_but_cannot_be_found_are_assumed_to_be_none():
    tied = rows_with(2, 400, 600)
    assert certificates.UNSOUGHT.assumes in check_policy(EVERYTHING, tied, target=0.05).assumptions
    distinct = check_policy(EVERYTHING, *read_again(0, 0.02), target=0.05)
    assert certificates.UNSOUGHT.assumes not in distinct.assumptions


def test_in_a_growing_table_the_original_of_a_copy_stays_the_first():
    y, proba = read_again(3, 0.05, 300)
    for n_again in (0, 20, 100, 300):
        table = np.r_[y, y[:n_again]], np.vstack([proba, proba[:n_again]])
        check = check_policy(EVERYTHING, *table, target=0.05)
        alone = check_policy(EVERYTHING, y, proba, target=0.05)
        assert check.copies == n_again
        if n_again:
            assert check.guarantees[0].readings[1] == alone.verdict


def test_rows_of_different_subgroups_are_no_copies():
    groups = GroupThresholds("site", {"a": 0.0, "b": 0.0})
    policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=math.inf, groups=groups)
    y, proba = read_again(0, 0.02, 300, times=2)
    for sites, n_copies in ((np.repeat(["a", "b"], 300), 0), (np.full(600, "a"), 300)):
        check = check_policy(policy, y, proba, target=0.05, subgroups=sites)
        assert check.copies == n_copies
        certificate = certify(policy, y, proba, target=0.05, subgroups=sites)
        assert (certificates.ALL_COPIES in certificate.assumptions) == (n_copies > 0)
        assert (certificates.ALL_COPIES in check.assumptions) == (n_copies > 0)


def test_own_guarantees_are_told_with_and_without_copies():
    kept = guaranteeing(EVERYTHING, threshold=0.0)
    y, proba = read_again(1, 0.06, 300, times=5)
    notice = certify(kept, y, proba, target=0.2).notice
    assert not notice.startswith(NOT_MET)
    assert certify(kept, *read_again(1, 0.06, 1500), target=0.2).notice.startswith(NOT_MET)


@pytest.mark.slow
@pytest.mark.parametrize(("risk", "word"), [(0.051, "confirmed"), (0.049, "broken")])
@pytest.mark.parametrize("times", [5, 10])
def test_copies_make_no_false_verdict_more_frequent(risk, word, times):
    n_draws = 1000
    tables = (read_again(seed, risk, times=times) for seed in range(n_draws))
    n_false = sum(check_policy(EVERYTHING, *table, target=0.05).verdict == word for table in tables)
    assert n_false <= stats.binom.ppf(0.999, n_draws, 0.05)


@pytest.mark.parametrize(("n_levels", "shared"), [(5, True), (10**9, False)])
def test_certify_says_where_users_share_their_coins(rng, n_levels, shared):
    confidence = 0.9 + 0.1 * np.ceil(n_levels * rng.random(300)) / n_levels
    proba = np.column_stack([1 - confidence, confidence])
    truth = [0, *[1] * 299]
    costs = {"decision": "min_cost", "cost_matrix": [[0, 1], [2, 0]]}
    policy = select_threshold(
        Predictions.from_proba(truth, proba, **costs), objective=Risk(0.5, method="empirical")
    ).policy
    certificate = certify(policy, truth, proba, objective="risk", target=0.5)
    assert certificate.target == 0.5
    assert ("share their coins" in unwrap(certificate.details())) is shared
