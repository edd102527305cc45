"""Finite-sample bounds on risks at one threshold, and limits for all thresholds at once."""

from skselect.bounds._band import (
    BAND_SHARE,
    band_accepts,
    band_may_accept,
    combined_limits,
    crossing_probability,
    even_ranks,
    limits_from_start,
    sequence_accepts,
    sequence_limits,
    staying_probability,
    union_limits,
    walk_band,
)
from skselect.bounds._binomial import (
    clopper_pearson_interval,
    clopper_pearson_upper,
    critical_counts,
    least_count,
    rows_for_certificate,
    smallest_rank,
    wilson_upper,
)
from skselect.bounds._conformal import conformal_quantile, rows_for_quantile
from skselect.bounds._mean import (
    betting_log_wealth,
    betting_stakes,
    betting_upper,
    empirical_bernstein_upper,
    hoeffding_bentkus_upper,
    rows_for_betting,
)

__all__ = [
    "BAND_SHARE",
    "band_accepts",
    "band_may_accept",
    "betting_log_wealth",
    "betting_stakes",
    "betting_upper",
    "clopper_pearson_interval",
    "clopper_pearson_upper",
    "combined_limits",
    "conformal_quantile",
    "critical_counts",
    "crossing_probability",
    "empirical_bernstein_upper",
    "even_ranks",
    "hoeffding_bentkus_upper",
    "least_count",
    "limits_from_start",
    "rows_for_betting",
    "rows_for_certificate",
    "rows_for_quantile",
    "sequence_accepts",
    "sequence_limits",
    "smallest_rank",
    "staying_probability",
    "union_limits",
    "walk_band",
    "wilson_upper",
]
