"""Classifiers that abstain, the search for their threshold, and scorers for both."""

from skselect.estimators.scoring import get_scorer_names, register_scorers, unregister_scorers

__all__ = ["get_scorer_names", "register_scorers", "unregister_scorers"]
