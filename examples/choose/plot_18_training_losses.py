"""
Train XGBoost with the losses of papers
=======================================

The CAU paper adds its measure to the training loss. Does the classifier then abstain better? A
search over training objectives tells.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from xgboost import XGBClassifier

from skselect import Predictions, RiskCoverageDisplay, SelectiveClassifier, evaluate
from skselect.losses import CAUObjective, SoftCWSAObjective

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

trees = XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1)
model = SelectiveClassifier(trees, calibration="temperature", cv=2, random_state=0)
losses = ["multi:softprob", CAUObjective(alpha=1), SoftCWSAObjective(threshold=0.8)]
search = GridSearchCV(model, {"estimator__objective": losses}, scoring="neg_augrc", cv=3)
search.fit(X_train, y_train)

# %%
# AUGRC is the mean rate of silent failures over all coverages: here with a minus sign, so higher is
# better.
pd.DataFrame(search.cv_results_)[["param_estimator__objective", "mean_test_score"]]

# %%
# On rows that the search has not seen. CAU as a measure may fall where the ranking gets worse.
found = {}
figure, ax = plt.subplots(layout="constrained")
for name, objective in zip(["cross-entropy", "with CAU", "with CWSA"], losses, strict=True):
    model.set_params(estimator__objective=objective).fit(X_train, y_train)
    y_proba = model.predict_proba(X_test)
    RiskCoverageDisplay.from_predictions(y_test, y_proba, name=name, ax=ax)
    measures = evaluate(Predictions.from_proba(y_test, y_proba), {"cau": {}, "augrc": {}})
    found[name] = {**measures, "errors": (model.predict(X_test) != y_test).sum()}
pd.DataFrame(found).T.round(4)

# %%
# The risk at each coverage. A stronger base model, or a learned confidence, does more than a loss.
plt.show()
