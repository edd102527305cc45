"""Pure rules that pick a threshold from a risk-coverage curve.

A rule returns how many entries of the curve to accept (0: none). Only whole tie blocks can
be accepted, so no rule looks inside one.
"""

from skselect.curve.curve import threshold_below
from skselect.thresholds._betting import Betting, betting_generalized_risk, betting_risk
from skselect.thresholds._combined import Combined, best_combined
from skselect.thresholds._metric import (
    AT_LEAST,
    AT_MOST,
    TUNABLE_METRICS,
    MetricOptimum,
    best_metric,
    keeps,
)
from skselect.thresholds._planning import BAND_TARGETS, rows_needed, simultaneous_band
from skselect.thresholds._rules import (
    FixedSequence,
    band_risk,
    best_start,
    bonferroni_risk,
    certified_coverage,
    certified_generalized_risk,
    cheapest,
    chow,
    combined_risk,
    coverage_rank,
    empirical_coverage,
    empirical_generalized_risk,
    empirical_risk,
    least_band_target,
    least_risk_target,
    mean_coverage,
    mean_generalized_risk,
    mean_risk,
    rows_like_these,
    sgr_risk,
)
from skselect.thresholds._shortlist import Shortlist, least_listed, list_labels

__all__ = [
    "AT_LEAST",
    "AT_MOST",
    "BAND_TARGETS",
    "TUNABLE_METRICS",
    "Betting",
    "Combined",
    "FixedSequence",
    "MetricOptimum",
    "Shortlist",
    "band_risk",
    "best_combined",
    "best_metric",
    "best_start",
    "betting_generalized_risk",
    "betting_risk",
    "bonferroni_risk",
    "certified_coverage",
    "certified_generalized_risk",
    "cheapest",
    "chow",
    "combined_risk",
    "coverage_rank",
    "empirical_coverage",
    "empirical_generalized_risk",
    "empirical_risk",
    "keeps",
    "least_band_target",
    "least_listed",
    "least_risk_target",
    "list_labels",
    "mean_coverage",
    "mean_generalized_risk",
    "mean_risk",
    "rows_like_these",
    "rows_needed",
    "sgr_risk",
    "simultaneous_band",
    "threshold_below",
]
