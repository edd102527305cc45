"""
Read CWSA beside coverage at every threshold
============================================

CWSA rewards confident right answers and punishes confident wrong ones; CWSA+ leaves the punishment
out. Both are about the accepted rows, so read them beside coverage.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skselect import Outcomes, RiskCoverageCurve
from skselect.display import ThresholdDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
models = {"forest": RandomForestClassifier(50, random_state=0), "naive Bayes": GaussianNB()}

# %%
# The forest is seldom sure, and right when it is: a higher threshold costs coverage, and CWSA and
# CWSA+ coincide. Naive Bayes is nearly always sure, and often wrong: its confident errors keep CWSA
# far below CWSA+, and no threshold helps.
for name, model in models.items():
    ThresholdDisplay.from_estimator(model.fit(X_train, y_train), X_test, y_test, name=name)
plt.show()

# %%
# Five simulated classifiers. "Overconfident" is right in 90 % as well, but its errors are as sure
# as its right answers: CWSA is below CWSA+ by the weight of the errors.
simulated = {  # the share of right answers; the confidence of right and of wrong ones is between
    "calibrated": (0.9, (0.8, 1.0), (0.5, 0.7)),
    "overconfident": (0.9, (0.9, 1.0), (0.9, 1.0)),
    "underconfident": (0.9, (0.4, 0.6), (0.4, 0.6)),
    "perfect": (1.0, (0.95, 1.0), (0.95, 1.0)),
    "random": (1 / 3, (0.3, 1.0), (0.3, 1.0)),
}
thresholds = [0.5, 0.7, 0.9]
for kind, (share, if_right, if_wrong) in simulated.items():
    rng = np.random.default_rng(0)
    correct = rng.random(10_000) < share
    confidence = rng.uniform(*np.where(correct[:, None], if_right, if_wrong).T)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(~correct, confidence))
    plus = curve.cwsa_plus(thresholds)
    print(f"{kind:15} CWSA {curve.cwsa(thresholds).round(2)}  CWSA+ {plus.round(2)}")
