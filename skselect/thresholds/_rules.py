"""Every rule that reads a curve, by objective and method; the first of each is the default."""

from __future__ import annotations

from skselect.thresholds._coverage_cost import (
    certified_coverage,
    certified_generalized_risk,
    cheapest,
    empirical_coverage,
    empirical_generalized_risk,
    mean_coverage,
)
from skselect.thresholds._risk import (
    DEFAULT_STARTS,
    Rule,
    band_risk,
    bonferroni_risk,
    combined_risk,
    empirical_risk,
    mean_risk,
    sequence_rule,
    sgr_risk,
)

#: Rules by objective and method; the first method of each objective is its default.
RULES: dict[str, dict[str, Rule]] = {
    "risk": {
        "combined": combined_risk,
        "band": band_risk,
        "fixed_sequence": sequence_rule(),
        "bonferroni": bonferroni_risk,
        "sgr": sgr_risk,
        "mean": mean_risk,
        "empirical": empirical_risk,
    },
    "generalized_risk": {
        "binomial": certified_generalized_risk,
        "empirical": empirical_generalized_risk,
    },
    "coverage": {
        "order_statistic": certified_coverage,
        "mean": mean_coverage,
        "empirical": empirical_coverage,
    },
    "cost": {"empirical": cheapest},
}


def rule_of(objective: str, method: str, starts: tuple[float, ...] = DEFAULT_STARTS) -> Rule:
    """Return a rule by name; `starts` are for the fixed sequence."""
    return sequence_rule(starts) if method == "fixed_sequence" else RULES[objective][method]
