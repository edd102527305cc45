"""Selective classification for scikit-learn."""
from skselect.curves import RiskCoverageCurve
from skselect.metrics import evaluate
from skselect.outcomes import Outcomes
from skselect.predictions import Predictions
__version__ = "0.1.0"
