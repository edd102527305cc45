"""
Errors that cost differently
============================

Giving credit to a bad customer costs 5, refusing a good one costs 1: the costs that come with the
German credit data. Each case gets the answer of the least expected cost, or is handed over.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict

from skselect import Outcomes, Predictions, RiskCoverageCurve, SelectiveClassifier, ThresholdTuner
from skselect.datasets import DatasetNotFoundError, load_dataset

try:
    X, y = load_dataset("german_credit", download_if_missing=False, return_X_y=True)
    good, bad = "good", "bad"
    print("German credit, 1,000 customers")
except DatasetNotFoundError:
    X, y = load_dataset("breast_cancer", return_X_y=True)
    good, bad = "benign", "malignant"
    print("german_credit is not on this machine (see skselect.datasets): breast cancer instead")

#: Rows are the truth, columns the answer.
costs = pd.DataFrame({good: [0, 5], bad: [1, 0]}, index=[good, bad])
trees = HistGradientBoostingClassifier(
    max_iter=40, learning_rate=0.05, categorical_features="from_dtype", random_state=0
)
model = SelectiveClassifier(trees, calibration="temperature", cv=3)
proba = cross_val_predict(model, X, y, method="predict_proba")
labels = sorted([good, bad])

# %%
# Always answering: the most probable class against the class of the least expected cost.
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for decision in ("argmax", "min_cost"):
    answered = Predictions.from_proba(y, proba, labels=labels, decision=decision, cost_matrix=costs)
    outcomes = Outcomes.from_predictions(answered, loss="cost")
    curve = RiskCoverageCurve.from_outcomes(outcomes).to_frame().query("coverage >= 0.1")
    cost = 5 * curve["selective_risk"]  # losses are costs over the largest one
    print(f"{decision:8} mean cost of all cases {cost.iloc[-1]:.3f}")
    ax.plot(curve["coverage"], cost, label=decision)
ax.set(xlabel="coverage", ylabel="mean cost of a decided case", xlim=(0, 1), ylim=(0, None))
ax.legend(frameon=False)
plt.show()

# %%
# A promise in these units: costs are graded losses, which the method "betting" certifies.
in_costs = {"decision": "min_cost", "cost_matrix": costs}
split = {"cv": 0.6, "random_state": 0}
tuner = ThresholdTuner(model, objective="risk", target=0.7, **in_costs, **split)
print(tuner.fit(X, y).certificate_)
