"""
Decide when errors cost differently
===================================

A missed cancer costs 20, a false alarm 1. Each case gets the answer of the least expected cost, or
is deferred.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skselect import (
    Coverage,
    Outcomes,
    Predictions,
    RiskCoverageCurve,
    RiskCoverageDisplay,
    SelectiveClassifier,
    ThresholdTuner,
)

data, code = load_breast_cancer(return_X_y=True, as_frame=True)
X = data[["mean radius", "mean texture", "mean smoothness"]]
y = code.map({0: "malignant", 1: "benign"})
labels = ["benign", "malignant"]
costs = pd.DataFrame([[0, 1], [20, 0]], index=labels, columns=labels)  # row: truth, column: answer
linear = make_pipeline(StandardScaler(), LogisticRegression())
model = SelectiveClassifier(linear, calibration="temperature", random_state=0)
proba = cross_val_predict(model, X, y, method="predict_proba")

# %%
# The most probable class, or the class of the least expected cost: the second misses hardly any
# cancer, and gives many false alarms.
figure, ax = plt.subplots()
for name, decision in {"most probable class": "argmax", "least expected cost": "min_cost"}.items():
    answers = Predictions.from_proba(y, proba, labels=labels, decision=decision, cost_matrix=costs)
    errors = pd.crosstab(y, np.array(labels)[answers.y_pred])
    missed, alarms = errors.loc["malignant", "benign"], errors.loc["benign", "malignant"]
    print(f"{name}: {missed} of {errors.loc['malignant'].sum()} missed, {alarms} false alarms")
    curve = RiskCoverageCurve.from_outcomes(Outcomes.from_predictions(answers, loss="cost"))
    RiskCoverageDisplay(curve, name=name, loss="cost", unit=20).plot(ax)
plt.show()

# %%
# A price and a budget: people read at most 15 % of the cases, those of the largest expected cost.
careful = model.set_params(decision="min_cost", cost_matrix=costs)
tuner = ThresholdTuner(careful, Coverage(0.85), cv=0.6, random_state=0).fit(X, y)
RiskCoverageDisplay(curve, threshold=tuner.threshold_, loss="cost", unit=20).plot()
plt.show()

# %%
# A guarantee in these units: a cost counts as an error with the probability cost / largest cost.
tuner = ThresholdTuner(careful, objective="risk", target=0.5, cv=0.6, random_state=0)
print(tuner.fit(X, y).certificate_)
