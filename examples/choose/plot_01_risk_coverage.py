"""
See what abstaining gains
=========================

Sort the answers of a classifier from the surest down and cut: each cut has a coverage (the share of
cases that are answered) and a selective risk (the share of errors among the answers).
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skselect import RiskCoverageCurve, RiskCoverageDisplay
from skselect.display import ConfidenceHistogramDisplay

X, y = load_digits(return_X_y=True)
models = {
    "linear": make_pipeline(StandardScaler(), LogisticRegression()),
    "naive Bayes": GaussianNB(),
}
y_probas = {
    name: cross_val_predict(model, X, y, method="predict_proba") for name, model in models.items()
}

# %%
# The linear model starts at 8 % errors. With every fifth case deferred 1 % is left. Naive Bayes
# starts higher and gains less. Half of its answers have the same confidence, 1: no threshold can
# separate them, and its curve begins there.
for name, proba in y_probas.items():
    curve = RiskCoverageCurve.from_proba(y, proba)
    risks = {f"{share:.0%}": f"{curve.risk_at_coverage(share):.1%}" for share in (1, 0.9, 0.8, 0.5)}
    print(f"{name}: errors at coverage {risks}")

RiskCoverageDisplay.from_models(y, y_probas)
plt.show()

# %%
# Why: the errors of the linear model have low confidence, those of naive Bayes do not. The fewer
# errors are among the surest answers, the more abstaining gains.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for ax, (name, proba) in zip(axes, y_probas.items(), strict=True):
    ConfidenceHistogramDisplay.from_predictions(y, proba, name=name, ax=ax)
plt.show()
