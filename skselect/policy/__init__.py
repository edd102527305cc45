"""The frozen decision, answer or abstain, and what is promised about it."""

from skselect.policy.certificate import Certificate

__all__ = ["Certificate"]
