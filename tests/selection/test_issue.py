"""The bound of accepted rows, and the certificate that states it."""

import numpy as np
import pytest
from scipy.stats import binom

from skselect import GeneralizedRisk, Outcomes, Risk, select_threshold
from skselect._lib.notebook import unwrap
from skselect.bounds._pointwise import betting_upper, rows_for_betting
from skselect.objectives import GUARANTEES


@pytest.mark.parametrize(
    ("objective", "n_trials", "n_events"),
    [("risk", 60, 3), ("generalized_risk", 100, 3), ("coverage", 100, 40)],
)
def test_a_bound_is_the_largest_share_that_the_counts_do_not_rule_out(
    objective, n_trials, n_events
):
    bound = GUARANTEES[objective].counted_bound(n=100, n_accepted=60, n_errors=3, delta=0.1)
    share = 1 - bound if objective == "coverage" else bound
    assert binom.cdf(n_events, n_trials, share) == pytest.approx(0.1)


def test_a_coverage_certificate_bounds_the_coverage_from_below(good):
    certificate = select_threshold(good, objective="coverage", target=0.7).certificate
    n_rejected = certificate.n - certificate.n_accepted
    assert binom.cdf(n_rejected, 2000, 1 - certificate.pointwise_bound) == pytest.approx(0.05)
    assert 0.7 <= certificate.pointwise_bound < certificate.coverage
    assert certificate.least_target == certificate.pointwise_bound
    assert certificate.rows_needed == 1


def test_silent_losses_are_certified_by_bets(good):
    graded = Outcomes(good.loss / 2, good.confidence)
    found = select_threshold(graded, objective=GeneralizedRisk(0.03, method="betting"))
    certificate = found.certificate
    assert certificate.is_certified
    assert "its answers lose at most 0.03 per case on average" in unwrap(str(certificate))
    silent = np.where(graded.confidence >= found.threshold, graded.loss, 0.0)
    assert certificate.pointwise_bound == betting_upper(silent, 0.05)
    assert certificate.rows_needed == rows_for_betting(0.03, 0.05)


@pytest.mark.parametrize(
    ("method", "reasons"),
    [("sgr", ["published proof of SGR", "no threshold meets"]), ("combined", ["no threshold"])],
)
def test_where_nothing_is_accepted_every_reason_is_given(good, method, reasons):
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        found = select_threshold(good, objective=Risk(1e-4, method=method), on_infeasible="abstain")
    caveats = found.certificate.caveats
    assert len(caveats) == len(reasons)
    assert all(reason in said for reason, said in zip(reasons, caveats, strict=True))
    assert found.certificate.pointwise_bound == 1.0
