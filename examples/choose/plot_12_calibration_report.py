"""
Which calibration suits this classifier?
========================================

``calibration_report`` compares raw scores with every calibration, out of fold.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

from skselect import calibration_report

X, y = load_breast_cancer(return_X_y=True)
report = calibration_report(GaussianNB(), X, y, random_state=0)

# %%
# First drop what is not calibrated: too many errors near certainty, too sure or too modest on
# average. Then take the lowest log loss. Differences of a few thousandths are chance.
report[["calibrated", "log_loss", "csr", "csr_p_value", "smooth_ece", "aurc"]].round(4)

# %%
# In a picture: log loss of what is not calibrated, and of the others.
is_off = report["calibrated"] == "no"
_, ax = plt.subplots()
ax.barh(report.index[~is_off], report["log_loss"][~is_off], label="calibrated as far as tested")
ax.barh(report.index[is_off], report["log_loss"][is_off], color="C4", label="not calibrated")
ax.set(xlabel="log loss (lower is better)")
ax.invert_yaxis()
ax.legend()
plt.show()
