"""A fixed policy on fresh rows."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import skselect
from skselect import AbstentionPolicy, Predictions, Risk, select_threshold
from skselect._lib.notebook import percent, unwrap
from skselect.policy import Certificate
from skselect.policy.certificate import NOT_MET
from skselect.policy.subgroups import GroupThresholds
from tests import brute

PROBA = [[0.9, 0.1], [0.2, 0.8]]


def certify(policy, rows, subgroups=None, **options):
    """Certify rows that the tests write down in order, as if they had come in another one."""
    if isinstance(rows, Predictions):
        order = np.random.default_rng(0).permutation(len(rows))
        subgroups = None if subgroups is None else np.asarray(subgroups)[order]
        names = ("y_true", "y_pred", "y_proba", "confidence", "sample_weight")
        given = {name: getattr(rows, name) for name in names}
        rows = replace(rows, **{k: v[order] for k, v in given.items() if v is not None})
    return skselect.certify(policy, rows, subgroups=subgroups, **options)


@pytest.fixture
def policy():
    return AbstentionPolicy(classes=np.array([0, 1]), threshold=0.9)


def test_without_a_target_the_bound_is_measured_and_guarantees_nothing(policy):
    found = certify(policy, rows_with(6, 400, 500))
    bound = stats.beta.ppf(0.95, 7, 394)
    assert (found.guarantee, found.exact, found.is_certified) == ("measured", True, False)
    lines = unwrap(str(found)).splitlines()
    assert lines[0].startswith("UPPER BOUND ONLY: no target was named beforehand (target=), ")
    assert lines[1] == (
        f"With 95 % confidence, at most {percent(bound, up=True)} of its answers are wrong over "
        "all future cases like these 500. This is an average: single subgroups or weeks may be "
        "worse."
    )
    assert "It checks a fixed policy: nothing was chosen on these rows." in lines[-1]
    assert Certificate.from_dict(found.to_dict()) == found
    asked = certify(policy, rows_with(6, 400, 500), target=bound * 1.0001)
    assert unwrap(str(asked)).startswith("CERTIFIED\nWith 95 % confidence, at most ")
    kept = replace(policy, certificate=found)  # a measured bound is no guarantee to hold it to
    assert certify(kept, rows_with(100, 400, 500)).notice == ""


def test_certify_says_when_the_target_is_missed(policy, predictions):
    assert certify(policy, predictions, target=0.2).is_certified
    opposite = replace(predictions, y_true=1 - predictions.y_true)
    for rows, target in ((predictions, {"target": 0.01}), (opposite, {})):
        certificate = certify(policy, rows, **target)
        assert not certificate.is_certified
        assert certificate.guarantee == "none"
        assert "which guarantees nothing" in unwrap(str(certificate))
    text = unwrap(str(certify(policy, predictions, target=0.01)))
    start = "ESTIMATE, NOT CERTIFIED: the target 1 % is not met; the bound of these rows"
    assert text.startswith(start)
    assert "If future cases" not in text  # no guarantee, so none is quoted


@pytest.mark.parametrize(("n_errors", "n_accepted"), [(0, 300), (7, 400), (150, 400)])
@pytest.mark.parametrize("delta", [0.05, 0.1])
def test_a_target_is_certified_from_the_exact_bound_on(policy, n_errors, n_accepted, delta):
    """The chance of so few errors at that rate is delta, or less at any larger one."""
    rows = rows_with(n_errors, n_accepted, 500)
    edge = brute.edge(lambda rate: stats.binom.cdf(n_errors, n_accepted, rate) <= delta)
    assert certify(policy, rows, target=edge * (1 + 1e-9), delta=delta).is_certified
    assert not certify(policy, rows, target=edge * (1 - 1e-9), delta=delta).is_certified
    least = certify(policy, rows, delta=delta)
    assert (least.n, least.n_accepted, least.n_errors) == (500, n_accepted, n_errors)
    assert least.guarantee == "measured"
    assert least.least_target == least.pointwise_bound == least.target == pytest.approx(edge)


def test_rows_needed_are_those_that_certify_without_any_error(policy):
    for target, delta, looks in ((0.02, 0.05, 1), (0.2, 0.05, 1), (0.02, 0.1, 4)):
        needed = next(n for n in range(999) if (1 - target) ** n <= delta / looks)
        risk = Risk(target, delta=delta, max_analyses=looks)
        enough, few = (
            certify(policy, rows_with(0, n, n), objective=risk) for n in (needed, needed - 1)
        )
        assert enough.rows_needed == few.rows_needed == needed
        assert enough.is_certified
        assert not few.is_certified


def costly_rows():
    """Return 600 rows, their rule, and what the 500 sure ones lose as shares of a cost of 10."""
    answers = np.repeat([1, 0, 1], [300, 200, 100])
    y_true = answers.copy()
    y_true[:30], y_true[300:304] = 0, 1  # thirty false alarms at 1, four cases missed at 10
    sure = np.where(np.arange(600) < 500, 0.95, 0.6)
    proba = np.where(answers[:, None] == [0, 1], sure[:, None], 1 - sure[:, None])
    rows = Predictions.from_proba(y_true, proba, cost_matrix=[[0, 1], [10, 0]])
    return rows, np.repeat([0.1, 1.0, 0.0], [30, 4, 466])


@pytest.mark.parametrize("looks", [1, 3])
def test_a_target_in_costs_is_certified_where_bets_against_it_win(policy, looks):
    rows, losses = costly_rows()
    costly, level = replace(policy, rule=rows.rule), 0.05 / looks
    edge = 10 * brute.edge(lambda r: brute.log_wealth(losses, r, level) >= math.log(1 / level))
    assert 0.2 < edge < 0.5  # the mean cost is 0.14
    good = certify(costly, rows, objective=Risk(edge * 1.0001, max_analyses=looks))
    assert good.is_certified
    assert (good.method, good.unit, good.n_errors, good.n_accepted) == ("betting", 10.0, 34, 500)
    assert good.risk == pytest.approx(0.14)
    assert "its answers cost at most 0." in good.statement
    bound = 10 * brute.betting_bound(losses, level)
    assert good.pointwise_bound == pytest.approx(bound)
    for target in (edge * 0.9999, 0.15, 0.01):
        missed = certify(costly, rows, objective=Risk(target, max_analyses=looks))
        assert not missed.is_certified
        assert missed.guarantee == "none"
        assert missed.statement not in unwrap(str(missed))
        said = re.match("ESTIMATE, NOT CERTIFIED: the target (.*) is not met; the bound of "
                        "these rows is (.*), which guarantees nothing[.]\n",
                        unwrap(str(missed)))  # fmt: skip
        assert float(said[1]) == pytest.approx(target, rel=1e-5)
        assert float(said[2]) == pytest.approx(bound, rel=1e-5)
    least = certify(
        costly, rows, objective=Risk(None, max_analyses=looks)
    )  # no target: the bound takes its place
    assert least.guarantee == "measured"
    assert least.target == pytest.approx(bound)


def test_as_many_rows_without_loss_as_needed_are_enough_for_a_target_in_costs(policy):
    rows, _ = costly_rows()
    costly = replace(policy, rule=rows.rule)
    needed = certify(costly, rows, target=0.3).rows_needed
    costs = {"decision": "min_cost", "cost_matrix": rows.rule.cost_matrix}
    for n, certified in ((needed - 1, False), (needed, True)):
        right = Predictions.from_proba([0] * n, [[0.95, 0.05]] * n, labels=[0, 1], **costs)
        assert certify(costly, right, target=0.3).is_certified == certified
    found = certify(replace(costly, threshold=np.inf), rows, target=9.9)
    assert not found.is_certified  # no target is met by accepting nothing
    assert found.caveats == ("the policy accepts none of these rows",)
    assert found.pointwise_bound == 10.0


def test_certify_on_the_rows_that_chose_the_threshold_is_no_certificate(predictions):
    tuned = select_threshold(predictions, objective="risk", target=0.2).policy
    certificate = certify(tuned, predictions)
    assert not certificate.is_certified
    assert "also chose the threshold" in unwrap(str(certificate))
    assert "fixed before these rows" not in unwrap(str(certificate))
    assert certificate.notice == ""  # they say nothing against their guarantee
    nothing = AbstentionPolicy(classes=np.array([0, 1]), threshold=np.inf)
    caveats = certify(nothing, predictions, target=0.1).caveats
    assert caveats == ("the policy accepts none of these rows",)


def test_certify_refuses_what_would_guarantee_nothing(policy, predictions):
    with pytest.raises(ValueError, match=r"Did you mean 0.05\?"):
        certify(policy, predictions, delta=0.95)
    with pytest.raises(ValueError, match=r"Did you mean 0.02\?"):
        certify(policy, predictions, target=0.98)
    opposite = replace(predictions, y_true=1 - predictions.y_true)
    found = certify(policy, opposite)
    assert not found.is_certified
    assert "which guarantees nothing" in unwrap(str(found))


def test_looks_divide_the_delta_of_a_check(policy, predictions):
    look = certify(policy, predictions, objective=Risk(None, delta=0.1, max_analyses=4))
    assert look.target == certify(policy, predictions, delta=0.025).target
    assert (look.delta, look.max_analyses) == (0.1, 4)


# The policy's own guarantee -----------------------------------------------------------------------


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


def guaranteeing(policy, **facts):
    return replace(policy, certificate=certificate(**facts))


def ends(count, n, delta=0.05):
    """Clopper and Pearson's bounds from below and above, each at delta."""
    low = stats.beta.ppf(delta, count, n - count + 1) if count else 0.0
    return low, stats.beta.ppf(1 - delta, count + 1, n - count) if count < n else 1.0


@pytest.mark.parametrize(
    ("objective", "target", "n_errors", "n_accepted"),
    [
        ("risk", 0.03, 216, 1285), ("risk", 0.03, 55, 1285), ("risk", 0.03, 10, 1285),
        ("risk", 0.03, 6, 132), ("generalized_risk", 0.03, 216, 1285),
        ("generalized_risk", 0.03, 40, 1285), ("generalized_risk", 0.03, 70, 1285),
        ("coverage", 0.7, 0, 1285), ("coverage", 0.64, 0, 1285), ("coverage", 0.6, 0, 1285),
    ],
)  # fmt: skip
def test_a_check_says_at_once_whether_the_own_guarantee_is_kept(
    policy, objective, target, n_errors, n_accepted
):
    rows = rows_with(n_errors, n_accepted, 2000)
    found = certify(guaranteeing(policy, objective=objective, target=target), rows)
    lines = unwrap(str(found)).splitlines()
    if objective == "coverage":
        low, high = ends(2000 - n_accepted, 2000)
        limit, seen = 1 - target, f"{n_accepted:,} of 2,000"
    else:
        n = n_accepted if objective == "risk" else 2000
        (low, high), limit, seen = ends(n_errors, n), target, f"{n_errors:,} of {n:,}"
    if low > limit:
        assert lines[0].startswith(NOT_MET)
        assert not found.is_certified
        assert "CERTIFIED" not in [line.strip() for line in lines]
        assert lines[1].startswith("UPPER BOUND ONLY")
    elif high > limit:
        assert lines[0].startswith("UPPER BOUND ONLY")
        start = "These rows cannot tell whether the policy keeps its own guarantee."
        assert lines[1].startswith(start)
    else:
        assert found.notice == ""
        return
    notice = found.notice
    assert f"({seen}; exact 90 % interval" in notice
    assert guaranteeing(policy, objective=objective, target=target).certificate.statement in notice
    assert Certificate.from_dict(found.to_dict()) == found


def test_a_guarantee_to_decide_everything_is_broken_by_one_row_only(policy):
    everything = guaranteeing(policy, objective="coverage", target=1.0)
    kept = certify(everything, rows_with(0, 200, 200))
    lines = unwrap(str(kept)).splitlines()
    assert lines[1].startswith("These rows cannot tell whether the policy keeps its own guarantee.")
    assert certify(everything, rows_with(0, 199, 200)).notice.startswith(NOT_MET)


def test_a_broken_guarantee_is_said_first_whatever_else_is_certified(policy):
    found = certify(guaranteeing(policy), rows_with(216, 1285, 2000), target=0.2)
    lines = unwrap(str(found)).splitlines()
    assert lines[0] == (
        f"{NOT_MET} by these rows. It says: at most 3 % of its answers are wrong. "
        "Found here: 16.81 % (216 of 1,285; exact 90 % interval 15.11 % to 18.63 %)."
    )
    assert lines[1] == "What these rows certify instead:"
    assert "at most 20 % of its answers are wrong" in lines[2]
    assert found.is_certified  # at most 20 %, as was asked


@pytest.mark.parametrize(
    "facts",
    [
        {"guarantee": "none", "exact": False, "caveats": ("refused",)},
        {"guarantee": "mean", "exact": False, "caveats": ("mean only",)},
        {"n_accepted": 0, "n_errors": 0}, {"loss": "graded"},
    ],
    ids=str,
)  # fmt: skip
def test_guarantees_that_these_rows_cannot_judge_are_left_alone(policy, facts):
    found = certify(guaranteeing(policy, **facts), rows_with(216, 1285, 2000))
    assert found.notice == ""
    assert str(found).startswith("UPPER BOUND ONLY")


def test_a_guarantee_about_some_cases_is_compared_with_these_cases(policy):
    rows = rows_with(216, 1285, 2000)
    found = certify(guaranteeing(policy, cases="whose true class is 0"), rows)
    assert found.notice.startswith(f"{NOT_MET} by these rows. It says: at most 3 % of its answers ")
    assert "Found here: 100 % (216 of 216; exact 90 % interval" in found.notice
    assert certify(guaranteeing(policy, cases="whose true class is 1"), rows).notice == ""
    assert certify(guaranteeing(policy, cases="of site 'a'"), rows).notice == (
        "Not checked here: the policy's own guarantee, which covers only cases of site 'a'."
    )


def test_a_policy_with_a_threshold_per_subgroup_has_no_other(policy):
    groups = GroupThresholds("site", {"a": 0.5, "b": 0.5})
    grouped = replace(policy, threshold=0.8, groups=groups)
    found = certify(grouped, rows_with(6, 132, 200), subgroups=["a"] * 200)
    assert found.threshold == np.inf
    assert replace(grouped, certificate=found).certificate is found


def test_a_broken_guarantee_is_found_as_often_as_delta_allows(policy):
    """A policy whose true risk is just what it guaranteed is called broken at most in delta."""
    rng, delta, draws = np.random.default_rng(0), 0.1, 200
    guarantee = guaranteeing(policy, target=0.05)
    called = [
        NOT_MET in certify(guarantee, rows_with(int(e), 400, 400), delta=delta).notice
        for e in rng.binomial(400, 0.05, draws)
    ]
    assert 0.02 < np.mean(called) <= delta + 3 * np.sqrt(delta * (1 - delta) / draws)


def test_guaranteed_costs_are_compared_in_their_units():
    rng = np.random.default_rng(0)
    p = rng.beta(0.3, 0.3, 3000)
    y = (rng.random(3000) < p).astype(int)
    costs = {"decision": "min_cost", "cost_matrix": [[0, 1], [10, 0]]}
    proba = np.column_stack([1 - p, p])
    tuned = select_threshold(
        Predictions.from_proba(y[:2000], proba[:2000], **costs), objective="risk", target=0.5
    )
    kept = Predictions.from_proba(y[2000:], proba[2000:], **costs)
    assert NOT_MET not in unwrap(str(certify(tuned.policy, kept)))
    turned = Predictions.from_proba(1 - y[2000:], proba[2000:], **costs)
    found = certify(tuned.policy, turned)
    assert unwrap(str(found)).startswith(f"{NOT_MET} by these rows. It says: its answers cost ")
    accepted = tuned.policy.decide(proba[2000:])["accepted"].to_numpy()
    answers = tuned.policy.decide(proba[2000:])["suggestion"].to_numpy()
    cost = np.array([[0, 1], [10, 0]])[1 - y[2000:], answers.astype(int)][accepted].mean()
    assert f"Found here: {cost:.6g} ({accepted.sum():,} cases; exact 90 % interval " in found.notice


@pytest.mark.parametrize("by_answer", [False, True])
def test_each_subgroup_has_a_guarantee_of_its_own(by_answer):
    rng = np.random.default_rng(0)
    p = rng.beta(0.2, 0.2, 6000)
    y = (rng.random(6000) < p).astype(int)
    proba, site = np.column_stack([1 - p, p]), np.array(["east", "west"])[rng.integers(0, 2, 6000)]
    group = np.array(["0", "1"])[(p > 0.5).astype(int)] if by_answer else site
    old, new = np.arange(6000) < 3000, np.arange(6000) >= 3000
    tuned = select_threshold(
        Predictions.from_proba(y[old], proba[old]), objective="risk", target=0.1,
        subgroups="predicted_class" if by_answer else site[old],
    )  # fmt: skip
    given = {} if by_answer else {"subgroups": site[new]}
    good = certify(tuned.policy, Predictions.from_proba(y[new], proba[new]), **given)
    assert NOT_MET not in unwrap(str(good))
    worst = group[new][0]
    flipped = np.where(group[new] == worst, 1 - y[new], y[new])
    found = certify(tuned.policy, Predictions.from_proba(flipped, proba[new]), **given)
    first = unwrap(str(found)).splitlines()[0]
    assert first.startswith(NOT_MET)
    assert str(worst) in first.split("are wrong")[0]
    accepted = tuned.policy.decide(proba[new], **given)["accepted"].to_numpy()
    kept = accepted & (group[new] == worst)
    errors = (flipped != (p[new] > 0.5))[kept].sum()
    low, _ = ends(errors, kept.sum(), 0.025)
    assert (
        f"({errors:,} of {kept.sum():,}; exact 95 % interval {percent(low, up=False)} to" in first
    )
    assert found.notice.count(NOT_MET) == 1


@pytest.mark.parametrize(("n_groups", "others"), [(9, 0), (10, 0), (11, 1), (13, 3)])
def test_ten_broken_guarantees_are_said_and_the_others_counted(policy, n_groups, others):
    made = guaranteeing(policy).certificate
    sites = [f"s{i:02d}" for i in range(n_groups)]
    own = {site: replace(made, cases=f"of site {site!r}") for site in sites}
    groups = GroupThresholds("site", dict.fromkeys(sites, 0.9), certificates=own)
    rows = rows_with(30 * n_groups, 30 * n_groups, 30 * n_groups)  # all of them wrong
    notice = certify(
        replace(policy, groups=groups), rows, subgroups=np.tile(sites, 30)
    ).notice.splitlines()
    assert [line.startswith(NOT_MET) for line in notice[:10]] == [True] * min(n_groups, 10)
    assert all(repr(site) in line for site, line in zip(sites, notice[:10], strict=False))
    more = [f"The same is true of {others} more subgroups."] if others else []
    assert notice[10:] == more
