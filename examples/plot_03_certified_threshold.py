"""
A certified threshold for XGBoost
=================================

At most 2 % wrong among what it decides alone.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier

from skselect import (
    AbstentionPolicy,
    InfeasibleTargetError,
    Predictions,
    SelectiveClassifier,
    ThresholdTuner,
    certify,
)

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, random_state=0, stratify=y)
X_fresh, X_new, y_fresh, y_new = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)

# Train and calibrate on one part of the rows ...
model = SelectiveClassifier(
    XGBClassifier(n_estimators=60, max_depth=3), calibration="temperature", cv=3
)
model.fit(X_train, y_train)

# ... and let fresh ones choose the threshold: then the certificate is exact.
tuner = ThresholdTuner(FrozenEstimator(model), objective="risk", target=0.02, delta=0.05)
tuner.fit(X_fresh, y_fresh)
print(tuner.certificate_)

table = tuner.decide(X_new)
wrong = table["accepted"] & (table["suggestion"] != y_new)
print(f"\nOn {len(y_new)} new rows it decides {table['accepted'].mean():.1%} alone, "
      f"{wrong.sum() / table['accepted'].sum():.2%} of them wrong.")  # fmt: skip

# The policy file carries calibration, threshold and certificate: a service decides the same rows.
with TemporaryDirectory() as folder:
    tuner.policy_.to_json(Path(folder) / "policy.json")
    policy = AbstentionPolicy.from_json(Path(folder) / "policy.json")
raw = model.estimator_.predict_proba(X_new)
assert np.array_equal(policy.decide(raw)["accepted"], table["accepted"])

# Later: check the same policy on newly labelled rows.
later = Predictions.from_proba(y_new, raw, labels=model.classes_)
print(f"\nOn the new rows the risk is certified to be at most {certify(policy, later).target:.2%}.")

# A target out of reach is refused, with what would help.
try:
    ThresholdTuner(FrozenEstimator(model), objective="risk", target=0.001).fit(X_fresh, y_fresh)
except InfeasibleTargetError as error:
    print(f"\n{error}")
