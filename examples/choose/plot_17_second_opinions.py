"""
Find more of the errors with second opinions
============================================

The same classifier with the same answers, ranked by two confidences: its own, and one that is
learnt with the help of a forest.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skselect import (
    LearnedConfidence,
    Outcomes,
    RiskCoverageCurve,
    RiskCoverageDisplay,
    SelectiveClassifier,
)

# Is a handwritten digit 5 or more? The linear model has been tested and approved: its answers stay.
X, digit = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, digit >= 5, test_size=0.5, random_state=0)
linear = make_pipeline(StandardScaler(), LogisticRegression())
asking = LearnedConfidence(auxiliary={"forest": RandomForestClassifier(60)})
model = SelectiveClassifier(linear, calibration="temperature", confidence=asking, random_state=0)
print(model.fit(X_train, y_train).confidence_.report_)

# %%
# Each dot is a new case. To the right it is sure of itself, at the top the forest agrees. Most of
# the wrong answers are far down: the forest doubts answers of which the linear model is sure.
wrong = model.predict(X_test) != y_test
own = model.predict_proba(X_test).max(axis=1)
learned = model.predict_confidence(X_test)
_, ax = plt.subplots()
ax.plot(own[~wrong], learned[~wrong], "o", markersize=3, alpha=0.3, label="right")
ax.plot(own[wrong], learned[wrong], "X", color="C4", markersize=6, label="wrong")
ax.set(xlabel="Its own probability", ylabel="Confidence with second opinions")
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
plt.show()

# %%
# Both curves end at the same point, because the answers are the same. Before it the learned
# confidence puts the wrong answers last.
_, ax = plt.subplots()
for name, confidence in {"its own probability": own, "with second opinions": learned}.items():
    curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, confidence))
    share = curve.coverage_at_risk(0.05)
    print(f"{name}: AUGRC {curve.augrc():.4f}, coverage at 5 % risk {share:.1%}")
    RiskCoverageDisplay(curve).plot(ax=ax, name=name)
plt.show()
