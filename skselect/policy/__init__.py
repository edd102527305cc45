"""The frozen decision, answer or abstain, and what is promised about it."""
