"""
Choose a model's depth by CWSA+
===============================

``scoring="cwsa_plus"`` is a plain string for every scikit-learn search once skselect is imported.
It asks how well a model works when it may abstain, which accuracy does not.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, train_test_split

from skselect import Predictions, SelectiveClassifier, ThresholdDisplay, evaluate, get_scorer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)

trees = HistGradientBoostingClassifier(max_iter=30, random_state=0)
model = SelectiveClassifier(trees, calibration="temperature", threshold=0.9, cv=3)
search = GridSearchCV(
    model, {"estimator__max_depth": [1, 2, 4, None]}, scoring="cwsa_plus", cv=3
).fit(X_train, y_train)

results = pd.DataFrame(search.cv_results_)
results[["param_estimator__max_depth", "mean_test_score"]].round(3)

# %%
# The winner, on rows that the search has not seen:
best = search.best_estimator_
accepted = best.accepts(X_test)
wrong = accepted & (best.predict(X_test) != y_test)
print(search.best_params_)
print(
    f"On {len(y_test)} test rows it answers {accepted.mean():.1%}; {wrong.sum()} answers are wrong."
)

# %%
# One row each: the label (NA where it abstains), what it would have said, how sure it is.
best.decide(X_test).head(8)

# %%
# Every metric at once, from the same predictions; and a metric with a parameter as a scorer.
predictions = Predictions.from_proba(y_test, best.predict_proba(X_test))
at = {"threshold": 0.9}
wanted = {"coverage": at, "cwsa_plus": at, "augrc": {}, "csr": {}, "ece": {}}
print(evaluate(predictions, wanted).round(4).to_string())
most = get_scorer("coverage_at_risk", max_risk=0.01)
print(f"coverage at 1 % risk: {most(best, X_test, y_test):.3f}")
ThresholdDisplay.from_estimator(best, X_test, y_test)
plt.show()
