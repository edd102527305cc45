"""Classifiers that abstain, the search for their threshold, and scorers for both."""
