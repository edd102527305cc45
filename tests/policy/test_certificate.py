"""What a certificate says, and what it must not say."""

import json
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import beta, binom

from skselect import Outcomes, Predictions, Risk, select_threshold
from skselect._lib.notebook import percent, rounded, unwrap
from skselect.objectives import GUARANTEES
from skselect.policy import Certificate, caveats
from skselect.policy.certificate import percent_kept
from skselect.policy.certificate_text import write_date
from tests import brute
from tests.common import read_certificate


def make(rng, n=1000, *, kind="risk", target=0.05, on_infeasible="raise", **options):
    confidence = rng.random(n)
    wrong = rng.random(n) < 0.2 * (1 - confidence) ** 3
    return select_threshold(
        Outcomes(wrong, confidence),
        objective=GUARANTEES[kind](target, **options),
        on_infeasible=on_infeasible,
    ).certificate


CERTIFICATE_OF_RISK = Certificate(
    objective="risk", target=0.02, delta=0.05, method="band", guarantee="high_probability",
    exact=True, caveats=(), threshold=0.8, n=100, n_accepted=80, n_errors=0, coverage=0.8,
    risk=0.0, pointwise_bound=0.03, rows_needed=149,
)  # fmt: skip


def test_a_certificate_of_one_case_speaks_of_one_case():
    right = Outcomes([0.0], [0.9])
    certificate = select_threshold(right, objective=Risk(0.5, delta=0.5)).certificate
    text = unwrap(str(certificate))
    assert "while new cases are like this one and the model stays the same." in text
    vouched = "this case was drawn at random, that it neither trained nor chose the model and that"
    assert f"You vouch that {vouched} no other target was tried on it." in text
    assert "The policy answers this case, at any confidence." in unwrap(certificate.details())
    assert certificate.since.endswith(", 1 row")
    assert repr(certificate).endswith(", 1 row>")
    never = replace(certificate, objective="coverage", target=1.0)  # the first exception shows it
    assert "Check it again after about 1 case." in unwrap(str(never))
    with pytest.warns(UserWarning, match="REFUSED"):
        refused = select_threshold(right, objective=Risk(0.05), on_infeasible="abstain")
    assert "Tested on 1 case: it is not answered, but left to a person." in unwrap(str(refused))


@pytest.mark.parametrize(("n", "earlier", "training"), [
    (1, "equals an earlier one", "equals a training row"),
    (2, "equal an earlier one", "equal training rows"),
])  # fmt: skip
def test_one_copy_equals_and_several_equal(n, earlier, training):
    [copied] = caveats.copied_here(np.arange(3) < n)
    assert copied.reason.startswith(f"{n} of these 3 rows {earlier}, ")
    trained = caveats.others_trained(n, vouched=False)
    assert trained.reason.startswith(f"about {n} more of these rows {training} than chance")


def test_the_text_says_first_whether_it_is_certified_and_why_not(rng):
    certificate = make(rng)
    lines = unwrap(str(certificate)).splitlines()
    assert len(lines) == 6
    assert lines[0] == f"CERTIFIED, {write_date(certificate.created)}"
    assert lines[1] == "At most 5 % of the answers are wrong (95 % confidence)."
    n, n_answered, n_wrong = certificate.n, certificate.n_accepted, certificate.n_errors
    assert lines[2].startswith(f"Tested on {n:,} cases: {n_answered:,} answered (")
    assert f", {n_wrong} wrong; {n - n_answered} left to a person." in lines[2]
    assert lines[3].startswith("It holds on average, while new cases are like these")
    assert lines[4].startswith("You vouch that these cases were drawn at random, that ")
    review = re.fullmatch(r"Check it again after about ([\d,]+) labelled answers\.", lines[5])
    n_review = int(review[1].replace(",", ""))
    # So many answers show 7.5 % where 5 % are promised, in four of five checks.
    least = next(k for k in range(n_review) if binom.sf(k - 1, n_review, 0.05) <= 0.1)
    assert 0.78 <= binom.sf(least - 1, n_review, 0.075) <= 0.9
    doubted = {"exact": False, "caveats": ("fold models differ",)}
    certificate = replace(CERTIFICATE_OF_RISK, **doubted)
    assert str(certificate).startswith("ESTIMATE, NOT CERTIFIED: fold models differ")
    assert "A certificate would say: at most 2 % of the answers are wrong" in str(certificate)
    assert not certificate.is_certified
    beside = replace(CERTIFICATE_OF_RISK, also=(certificate,))
    assert CERTIFICATE_OF_RISK.is_certified
    assert not beside.is_certified
    mean = make(rng, method="mean")
    assert "(on average over tables like this one)." in unwrap(str(mean))
    mean = replace(mean, caveats=("fold models differ", *mean.caveats))
    assert "\nA certificate would say: at most 5 %" in unwrap(str(mean))
    covered = read_certificate(make(rng, kind="coverage", target=0.79996))
    assert "at least 79.99 % of all cases are answered" in covered
    assert percent(0.79996) == "80 %"  # what was merely counted is rounded to the nearest


def test_numbers_are_those_of_the_rows(rng):
    confidence = rng.random(800)
    wrong = rng.random(800) < 0.1 * (1 - confidence)
    found = select_threshold(Outcomes(wrong, confidence), objective="risk", target=0.08)
    kept, made = confidence >= found.threshold, found.certificate
    assert (made.n, made.n_accepted, made.n_errors) == (800, kept.sum(), wrong[kept].sum())
    assert (made.coverage, made.risk, made.rows_needed) == (kept.mean(), wrong[kept].mean(), 36)


def test_planned_looks_are_said_stored_and_taken_on_trust(rng):
    certificate = make(rng, max_analyses=4)
    text = read_certificate(certificate)
    assert "(95 % confidence in all of up to 4 analyses)" in text
    assert text.endswith("delta 0.05. Each of up to 4 planned analyses uses delta / 4.")
    assert "were planned before the first" in certificate.assumptions[-1]
    restored = Certificate.from_dict(json.loads(certificate.to_json()))
    assert restored == certificate
    assert restored.least_target == certificate.least_target <= 0.05
    once = make(rng)
    assert "analysed for the first time" in once.assumptions[-1]
    assert "analyses: each" not in unwrap(str(once))
    stored = once.to_dict()  # as old files are, which had one analysis
    del stored["max_analyses"], stored["notice"], stored["provenance"]
    assert Certificate.from_dict(stored) == once


@pytest.mark.parametrize("method", ["band", "combined"])
def test_least_target_lies_between_pointwise_bound_and_target_and_none_is_said(rng, method):
    certificate = make(rng, method=method)
    least, bound = certificate.least_target, certificate.pointwise_bound
    assert bound < least <= certificate.target
    k, e = certificate.n_accepted, certificate.n_errors
    assert bound == pytest.approx(beta.ppf(0.95, e + 1, k - e))  # Clopper and Pearson's
    for value in {bound, least} - {certificate.delta, certificate.target}:
        assert f"{value:.3g}" not in unwrap(str(certificate))
        assert f"{100 * value:.3g} %" not in unwrap(str(certificate))


@pytest.mark.parametrize("objective", ["risk", "generalized_risk", "coverage"])
def test_storage_keeps_everything(rng, objective):
    certificate = make(rng, kind=objective, target=0.5 if objective == "coverage" else 0.05)
    for one in (certificate, replace(certificate, threshold=-np.inf)):
        assert Certificate.from_dict(json.loads(one.to_json())) == one
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        nothing = make(rng, n=20, target=0.01, on_infeasible="abstain")
    restored = Certificate.from_dict(json.loads(nothing.to_json()))
    assert restored.threshold == np.inf
    assert not restored.is_certified
    assert (
        "REFUSED: no threshold meets the target, so all cases are deferred."
        in unwrap(str(restored)).splitlines()[0]
    )
    assert np.isnan(restored.risk)
    assert "Tested on 20 cases: none is answered" in unwrap(str(restored))


@pytest.mark.parametrize(("n", "target", "delta"), [(200, 0.8, 0.05), (2000, 0.3, 0.1)])
def test_bounds_of_a_guaranteed_coverage_are_binomial(rng, n, target, delta):
    """The largest coverage at which so many accepted rows come with a chance of only delta."""
    certificate = make(rng, n, kind="coverage", target=target, delta=delta)
    k = certificate.n_accepted
    bound = brute.edge(lambda share: binom.sf(k - 1, n, share) >= delta)
    assert target <= bound < k / n
    assert certificate.pointwise_bound == pytest.approx(bound)
    assert certificate.least_target == certificate.pointwise_bound


# Nothing accepted: of the rows an accepting policy decides, nothing is known; silent failures are
# as rare as n rows without one show.
@pytest.mark.parametrize(("objective", "method", "bound", "least"), [
    ("risk", "combined", 1.0, 1.0), ("risk", "band", 1.0, 1.0),
    ("generalized_risk", "auto", 1 - 0.05 ** (1 / 20), 1 - 0.05 ** (1 / 20)),
])  # fmt: skip
@pytest.mark.parametrize("unit", [1, 7])
@pytest.mark.filterwarnings("ignore:y_proba. its columns seem")  # all answers are wrong
def test_numbers_where_nothing_is_accepted(objective, method, bound, least, unit):
    proba = np.linspace(0.55, 0.95, 20)
    rows = Predictions.from_proba(
        [0] * 20, np.column_stack([1 - proba, proba]), labels=[0, 1],
        cost_matrix=None if unit == 1 else [[0, 7], [7, 0]],
    )  # fmt: skip
    stated = GUARANTEES[objective](0.01 * unit, method=method)
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        found = select_threshold(rows, objective=stated, on_infeasible="abstain").certificate
    assert (found.n_accepted, found.n_errors, found.coverage) == (0, 0, 0.0)
    assert found.pointwise_bound == pytest.approx(unit * bound)
    assert found.least_target == pytest.approx(unit * least)
    assert found.rows_needed == next(n for n in range(1, 999) if 0.99**n <= 0.05)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("objective", "target"), [("risk", 0.14), ("generalized_risk", 0.11)])
def test_a_certificate_of_losses_and_weights_counts_and_tells_the_mean(
    rng, objective, target, weighted
):
    n = 1200
    confidence = np.ceil(50 * rng.random(n)) / 50  # with ties
    loss = rng.choice([0, 0.25, 0.5, 1], n) * (rng.random(n) < (1 - confidence) ** 2)
    weight = rng.choice([4.0, 2.0, 1.0], n, p=[0.6, 0.2, 0.2]) if weighted else None
    rows, largest = Outcomes(loss, confidence, weight), 4.0 if weighted else None
    stated = GUARANTEES[objective](target, largest_weight=largest)
    certificate = select_threshold(rows, objective=stated).certificate
    counted = rows.count(0, largest).read()[0]
    alone = select_threshold(counted, objective=objective, target=target).certificate
    for name in ("threshold", "n", "n_accepted", "n_errors", "pointwise_bound", "rows_needed"):
        assert getattr(certificate, name) == getattr(alone, name), name
    kept = confidence >= certificate.threshold
    assert 0 < kept.sum() < n
    share = np.ones(n) if weight is None else weight
    assert certificate.coverage == pytest.approx(np.sum(share[kept]) / np.sum(share))
    assert certificate.risk == pytest.approx(np.average(loss[kept], weights=share[kept]))
    assert (certificate.method, certificate.loss) == (alone.method, "graded")
    assert certificate.is_certified
    text = read_certificate(certificate)
    said = {
        "risk": "the answers lose at most 0.14 each on average",
        "generalized_risk": "the answers lose at most 0.11 per case on average (a deferred case "
        "counts 0)",
    }[objective]
    assert f"{said} (95 % confidence)." in text
    assert f"mean loss {certificate.risk:.4g};" in text
    assert f"{alone.n_errors} errors" not in text
    drawn = f"Certified on {len(counted):,} of 1,200 rows, drawn in proportion to their weights."
    assert (drawn in text) is weighted
    coins = "with the seed 0: the confidence is over the rows and these draws."
    assert coins in text


@pytest.mark.parametrize(
    ("n_levels", "loss", "shared"), [(40, 0.1, True), (10**9, 0.1, False), (40, 0.0, False)]
)
def test_a_certificate_says_where_users_share_their_coins(rng, n_levels, loss, shared):
    confidence = np.ceil(n_levels * rng.random(400)) / n_levels
    rows = Outcomes(np.full(400, loss), confidence)
    certificate = select_threshold(rows, objective="risk", target=0.3).certificate
    assert certificate.is_certified
    assert ("share their coins" in read_certificate(certificate)) is shared


@given(st.floats(1e-9, 1e9), st.integers(2, 8))
def test_a_proven_bound_is_never_printed_closer_than_it_is(bound, digits):
    dust = 1e-11 * bound  # what 0.07 + 1e-17 has too much is not printed
    low, near, high = (float(rounded(bound, digits, up=up)) for up in (False, None, True))
    assert low <= bound + dust
    assert high >= bound - dust
    assert high - low <= 1.001 * bound * 10.0 ** (1 - digits)
    assert near in (low, high)
    assert abs(near - bound) <= min(bound - low, high - bound) + 2 * dust


@given(st.floats(1e-6, 0.5))
def test_what_is_guaranteed_is_printed_rounded_to_the_safe_side(target):
    for objective in ("risk", "generalized_risk"):
        said = replace(CERTIFICATE_OF_RISK, objective=objective, target=target).statement
        shown = float(re.search(r"at most ([^ ]+) %", said)[1]) / 100
        assert target * (1 - 1e-10) <= shown <= target * 1.002
    said = replace(CERTIFICATE_OF_RISK, objective="coverage", target=2 * target).statement
    shown = float(re.search(r"at least ([^ ]+) %", said)[1]) / 200
    assert target * 0.998 <= shown <= target * (1 + 1e-10)
    cost = 2e6 * target
    said = replace(CERTIFICATE_OF_RISK, loss="cost", unit=2e6, target=cost).statement
    shown = float(re.search(r"cost at most ([^ ]+) each", said)[1])
    assert cost * (1 - 1e-10) <= shown <= cost * 1.0001


@given(st.floats(1e-12, 0.5))
def test_how_often_it_holds_is_printed_rounded_down(delta):
    assert Decimal(percent_kept(delta)) <= 100 - 100 * Decimal(delta) * (1 - Decimal("1e-11"))
    assert Decimal(percent_kept(delta)) >= 100 - 100 * Decimal(delta) - Decimal("0.0101")


def test_how_often_is_rounded_down():
    shown = {0.05: "95", 0.05 / 3: "98.33", 1e-6: "99.9999", 1e-17: "99.9999999999"}
    assert {delta: percent_kept(delta) for delta in shown} == shown
    certificate = replace(CERTIFICATE_OF_RISK, delta=0.025)
    assert "(97.5 % confidence)" in unwrap(str(certificate))


@pytest.mark.parametrize("change", [
    {"target": 1.5}, {"delta": 0.95}, {"n_errors": 10**6}, {"exact": False},
    {"guarantee": "foo"}, {"assumptions": [1]}, {"caveats": "abc"}, {"fingerprints": {"a": 1}},
    {"exact": "yes"}, {"coverage": 2}, {"min_coverage": "x"}, {"overall_error": "x"},
    {"reviewer": 0}, {"pointwise_bound": None}, {"rows_needed": "x"}, {"max_analyses": 0},
    {"seed": -1}, {"seed": 0.5}, {"seed": "7"},
], ids=str)  # fmt: skip
def test_a_damaged_certificate_is_an_error_and_never_a_guarantee(rng, change):
    stored = make(rng).to_dict() | change
    with pytest.raises(
        ValueError,
        match=r"its values do not fit|must be (a list of texts|one of|a number|an integer)",
    ):
        Certificate.from_dict(stored)
