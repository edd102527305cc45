"""
Second opinions
===============

The same classifier with the same answers, ranked by two confidences: its own, and one that has
learnt how likely an answer is right when a forest and a logistic regression are asked about it.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from skselect import (
    LearnedConfidence,
    Outcomes,
    RiskCoverageCurve,
    RiskCoverageDisplay,
    SelectiveClassifier,
)
from skselect.datasets import DatasetNotFoundError, load_dataset

try:
    X, y = load_dataset("magic", download_if_missing=False, return_X_y=True)
    print("MAGIC gamma telescope, 19,020 rows")
except DatasetNotFoundError:
    X, y = load_dataset("digits", return_X_y=True)
    print("magic is not on this machine (see skselect.datasets): handwritten digits instead")

X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=min(3000, len(X) // 2), random_state=0
)
boosting = HistGradientBoostingClassifier(max_iter=40, random_state=0)
model = SelectiveClassifier(
    boosting, calibration="temperature", confidence=LearnedConfidence()
).fit(X_train, y_train)
print(model.confidence_.report_)

# %%
wrong = model.predict(X_test) != y_test.to_numpy()
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, confidence in {
    "its own probability": model.predict_proba(X_test).max(axis=1),
    "with second opinions": model.predict_confidence(X_test),
}.items():
    curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, confidence))
    share = curve.coverage_at_risk(0.05)
    print(f"{name}: AUGRC {curve.augrc():.4f}, coverage at 5 % risk {share:.1%}")
    RiskCoverageDisplay(curve).plot(ax=ax, name=name)
plt.show()

# %%
# Both curves end at the same point, for the answers are the same. In between the learned
# confidence puts more of the wrong answers last.
