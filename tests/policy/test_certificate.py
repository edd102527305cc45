"""What a certificate says, and what it must not say."""

import json
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skselect import Certificate, Outcomes, select_threshold
from skselect.policy.certificate import _of_hundred, percent, rounded


def make(rng, n=1000, **options):
    confidence = rng.random(n)
    wrong = rng.random(n) < 0.2 * (1 - confidence) ** 3
    goal = {"objective": "risk", "target": 0.05} | options
    return select_threshold(Outcomes(wrong, confidence), **goal).certificate


CERTIFICATE_OF_RISK = Certificate(
    objective="risk", target=0.02, delta=0.05, method="band", guarantee="high_probability",
    exact=True, why_not=(), threshold=0.8, n=100, n_accepted=80, n_errors=0, coverage=0.8,
    risk=0.0, pointwise_bound=0.03, rows_needed=149,
)  # fmt: skip


def test_an_exact_promise_begins_with_certified(rng):
    text = str(make(rng))
    assert text.startswith("CERTIFIED\n")
    assert "in 95 of 100 such calibrations at most 5 % of the cases it decides alone are" in text
    assert "are wrong in the long run; not per subgroup" in text
    assert "not per subgroup, not per period" in text


def test_text_quotes_neither_pointwise_bound_nor_least_target(rng):
    certificate = make(rng, method="band")
    for value in (certificate.pointwise_bound, certificate.least_target):
        assert f"{value:.3g}" not in str(certificate)
        assert f"{100 * value:.3g} %" not in str(certificate)


def test_an_estimate_says_so_first_and_why():
    certificate = Certificate(
        objective="risk", target=0.02, delta=0.05, method="band", guarantee="high_probability",
        exact=False, why_not=("fold models differ",), threshold=0.8, n=100, n_accepted=80,
        n_errors=0, coverage=0.8, risk=0.0, pointwise_bound=0.03, rows_needed=149,
    )  # fmt: skip
    assert str(certificate).startswith("ESTIMATE, NOT CERTIFIED: fold models differ")
    assert "Only if these doubts did not matter" in str(certificate)
    assert not certificate.is_certified


def test_numbers_are_those_of_the_rows(rng):
    confidence = rng.random(800)
    wrong = rng.random(800) < 0.1 * (1 - confidence)
    selection = select_threshold(Outcomes(wrong, confidence), objective="risk", target=0.08)
    certificate = selection.certificate
    kept = confidence >= selection.threshold
    assert certificate.n == 800
    assert certificate.n_accepted == kept.sum()
    assert certificate.n_errors == wrong[kept].sum()
    assert certificate.coverage == kept.mean()
    assert certificate.risk == wrong[kept].mean()
    assert certificate.rows_needed == 36


def test_planned_looks_are_said_stored_and_taken_on_trust(rng):
    certificate = make(rng, looks=4)
    text = str(certificate)
    assert "in 95 of 100 such calibrations (each of up to 4 looks) at most 5 %" in text
    assert text.endswith("delta 0.05. Planned for up to 4 looks: each uses delta / 4.")
    assert "were planned before the first" in certificate.assumptions[-1]
    restored = Certificate.from_dict(json.loads(certificate.to_json()))
    assert restored == certificate
    assert restored.least_target == certificate.least_target <= 0.05


def test_one_look_is_taken_on_trust_and_old_files_had_one(rng):
    certificate = make(rng)
    assert "first look at these rows" in certificate.assumptions[-1]
    assert "looks: each" not in str(certificate)
    stored = certificate.to_dict()
    del stored["looks"], stored["notice"]
    assert Certificate.from_dict(stored) == certificate


@pytest.mark.parametrize("method", ["band", "combined"])
def test_least_target_lies_between_pointwise_bound_and_target(rng, method):
    certificate = make(rng, method=method)
    assert certificate.pointwise_bound < certificate.least_target <= certificate.target


@pytest.mark.parametrize("objective", ["risk", "generalized_risk", "coverage"])
def test_storage_keeps_everything(rng, objective):
    certificate = make(rng, objective=objective, target=0.5 if objective == "coverage" else 0.05)
    assert Certificate.from_dict(json.loads(certificate.to_json())) == certificate


def test_nothing_accepted_is_storable_and_readable(rng):
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        certificate = make(rng, n=20, target=0.01, on_infeasible="abstain")
    restored = Certificate.from_dict(json.loads(certificate.to_json()))
    assert restored.threshold == np.inf
    assert not restored.is_certified
    assert "nothing is accepted" in str(restored).splitlines()[0]
    assert np.isnan(restored.risk)
    assert "decides none of these 20 cases" in str(restored)


def test_pointwise_bound_is_clopper_pearson(rng):
    from scipy import stats

    certificate = make(rng)
    k, e = certificate.n_accepted, certificate.n_errors
    assert certificate.pointwise_bound == pytest.approx(stats.beta.ppf(0.95, e + 1, k - e))


def test_fingerprint_does_not_depend_on_the_order_of_rows(rng):
    confidence = rng.random(300)
    wrong = rng.random(300) < 0.01
    order = rng.permutation(300)
    one = select_threshold(Outcomes(wrong, confidence), objective="risk", target=0.1)
    two = select_threshold(Outcomes(wrong[order], confidence[order]), objective="risk", target=0.1)
    assert one.certificate.fingerprints == two.certificate.fingerprints
    assert one.threshold == two.threshold


@given(st.floats(1e-9, 1e9), st.integers(2, 8))
def test_a_proven_bound_is_never_printed_closer_than_it_is(bound, digits):
    dust = 1e-11 * bound  # what 0.07 + 1e-17 has too much is not printed
    low, near, high = (float(rounded(bound, digits, up=up)) for up in (False, None, True))
    assert low <= bound + dust
    assert high >= bound - dust
    assert high - low <= 1.001 * bound * 10.0 ** (1 - digits)
    assert near in (low, high)
    assert abs(near - bound) <= min(bound - low, high - bound) + 2 * dust


@given(st.floats(1e-6, 0.5), st.sampled_from(["risk", "generalized_risk"]))
def test_a_promised_risk_is_printed_rounded_up(target, objective):
    said = replace(CERTIFICATE_OF_RISK, objective=objective, target=target)
    shown = re.search(r"at most ([^ ]+) %", said.promise)
    assert target * (1 - 1e-10) <= float(shown[1]) / 100 <= target * 1.002


@given(st.floats(1e-6, 1.0))
def test_a_promised_coverage_is_printed_rounded_down(target):
    said = replace(CERTIFICATE_OF_RISK, objective="coverage", target=target)
    shown = re.search(r"at least ([^ ]+) %", said.promise)
    assert target * 0.998 <= float(shown[1]) / 100 <= target * (1 + 1e-10)


@given(st.floats(1e-6, 1e6))
def test_a_promised_cost_is_printed_rounded_up(target):
    said = replace(CERTIFICATE_OF_RISK, loss="cost", unit=2e6, target=target)
    shown = re.search(r"cost at most ([^ ]+) each", said.promise)
    assert target * (1 - 1e-10) <= float(shown[1]) <= target * 1.0001


@given(st.floats(1e-12, 0.5))
def test_how_often_it_holds_is_printed_rounded_down(delta):
    assert Decimal(_of_hundred(delta)) <= 100 - 100 * Decimal(delta) * (1 - Decimal("1e-11"))
    assert Decimal(_of_hundred(delta)) >= 100 - 100 * Decimal(delta) - Decimal("0.0101")


def test_a_coverage_just_below_80_percent_is_not_called_80_percent(rng):
    text = str(make(rng, objective="coverage", target=0.79996))
    assert "it decides at least 79.99 % of all cases alone in the long run" in text
    assert percent(0.79996) == "80 %"  # what was merely counted is rounded to the nearest


def test_tiny_delta_is_printed_in_full(rng):
    assert "in 99.999999 of 100 such" in str(make(rng, n=3000, delta=1e-8))


def test_thresholds_without_end_are_storable():
    confidence = np.random.default_rng(0).normal(size=500)
    selection = select_threshold(Outcomes(np.zeros(500), confidence), objective="risk", target=0.05)
    assert selection.threshold == -np.inf
    restored = Certificate.from_dict(json.loads(selection.certificate.to_json()))
    assert restored == selection.certificate


@pytest.mark.parametrize(
    "change",
    [
        {"loss": "foo"}, {"target": "abc"}, {"delta": 2}, {"n": -5}, {"unit": "a"},
        {"why_not": "abc"}, {"objective": "zz"}, {"exact": "yes"}, {"exact": False},
        {"guarantee": "foo"}, {"n_errors": 10**6}, {"assumptions": [1]}, {"coverage": None},
        {"looks": 0}, {"delta": 0.95}, {"notice": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_certificate_is_an_error_and_never_a_promise(rng, change):
    stored = make(rng).to_dict() | change
    with pytest.raises(ValueError, match=r"certificate: |must be a list of texts"):
        Certificate.from_dict(stored)


def test_a_mean_with_another_doubt_is_hedged(rng):
    certificate = make(rng, method="mean")
    assert "\nIf future cases" in str(certificate)
    doubted = replace(certificate, why_not=("fold models differ", *certificate.why_not))
    assert "\nOnly if these doubts did not matter" in str(doubted)


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        (0.05, "95"),
        (0.025, "97.5"),
        (0.05 / 3, "98.33"),
        (0.0071, "99.29"),
        (1e-6, "99.9999"),
        (1e-17, "99.9999999999"),
        (1 - 0.95, "95"),
        (0.1, "90"),
    ],
)
def test_how_often_is_rounded_down(delta, said):
    assert _of_hundred(delta) == said
