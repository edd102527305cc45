"""
Which calibration suits this classifier?
========================================

``calibration_report`` compares raw scores with every calibration, out of fold.
"""

import matplotlib.pyplot as plt
from sklearn.naive_bayes import GaussianNB

from skselect import calibration_report
from skselect.datasets import load_dataset

X, y = load_dataset("breast_cancer", return_X_y=True)
report = calibration_report(GaussianNB(), X, y, random_state=0)

# %%
# First drop what is overconfident near certainty (``csr_p_value`` below .01), then take the lowest
# log loss. Differences of a few thousandths are chance.
report[["log_loss", "csr", "csr_p_value", "smooth_ece", "aurc"]].round(4)

# %%
# In a picture: log loss of calibrations that are overconfident near certainty, and of the others.
honest = report["csr_p_value"] >= 0.01
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.barh(
    report.index[honest], report["log_loss"][honest], color="#0072B2", label="honest near certainty"
)
ax.barh(report.index[~honest], report["log_loss"][~honest], color="#D55E00", label="overconfident")
ax.set(xlabel="log loss (lower is better)")
ax.invert_yaxis()
ax.legend(frameon=False)
plt.show()
