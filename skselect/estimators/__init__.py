"""Classifiers that abstain, and the search for their threshold."""
