"""The frozen decision, answer or abstain, and what is guaranteed about it."""

from skselect.policy.certificate import Certificate
from skselect.policy.subgroups import Subgroups

__all__ = ["Certificate", "Subgroups"]
