"""Predictions for labelled rows, their confidence and their loss. Labels end here."""

from skselect._lib.decide import entropy, gini, margin, max_proba
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions

__all__ = ["Outcomes", "Predictions", "entropy", "gini", "margin", "max_proba"]
