"""
Certify a threshold for XGBoost
===============================

At most 2 % of its answers are wrong: fresh rows choose the threshold, and a certificate guarantees
it.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier

from skselect import InfeasibleTargetError, RiskCoverageDisplay, SelectiveClassifier, ThresholdTuner

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, random_state=0, stratify=y)
X_fresh, X_new, y_fresh, y_new = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)

# Train and calibrate on one part of the rows ...
booster = XGBClassifier(n_estimators=60, max_depth=3, n_jobs=1)
model = SelectiveClassifier(booster, calibration="temperature", cv=3, random_state=0).fit(
    X_train, y_train
)

# ... and let fresh ones choose the threshold: then the certificate is exact.
tuner = ThresholdTuner(FrozenEstimator(model), objective="risk", target=0.02, delta=0.05)
tuner.fit(X_fresh, y_fresh)
print(tuner.certificate_)

# %%
# Rows that are new to everything:
table = tuner.decide(X_new)
wrong = table["accepted"] & (table["suggestion"] != y_new)
print(
    f"On {len(y_new)} new rows it decides {table['accepted'].mean():.1%} alone, "
    f"{wrong.sum() / table['accepted'].sum():.2%} of them wrong."
)

# %%
# The dot is the threshold on these rows; the line above it ends at what is certified.
RiskCoverageDisplay.from_selection(tuner.selection_)
plt.show()

# %%
# The bound that holds for all thresholds at once is above the curve, and wider where few cases are
# accepted.
RiskCoverageDisplay.from_selection(tuner.selection_, band=True)
plt.show()

# %%
# A target out of reach is refused, and the error says what would help.
try:
    ThresholdTuner(FrozenEstimator(model), objective="risk", target=0.001).fit(X_fresh, y_fresh)
except InfeasibleTargetError as error:
    print(error)
