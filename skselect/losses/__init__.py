"""Training losses of papers on selective classification, for XGBoost and torch.

They are here so that the papers can be repeated and built upon. Where we measured them,
cross-entropy alone abstained better on average: see the page on training losses.
"""

from skselect.losses._objectives import CAUObjective, SoftCWSAObjective
from skselect.losses._torch import cau_loss, soft_cwsa_loss

__all__ = ["CAUObjective", "SoftCWSAObjective", "cau_loss", "soft_cwsa_loss"]
