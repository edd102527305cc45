"""Scorers: metrics of classifiers that abstain, for scikit-learn's searches."""

from skselect.estimators.scoring import (
    get_scorer,
    get_scorer_names,
    on_accepted,
    register_scorers,
    selective_scoring,
    unregister_scorers,
)

__all__ = [
    "get_scorer",
    "get_scorer_names",
    "on_accepted",
    "register_scorers",
    "selective_scoring",
    "unregister_scorers",
]
