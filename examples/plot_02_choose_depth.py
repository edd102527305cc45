"""
Choose a model's depth with scoring="cwsa_plus"
===============================================

``scoring="cwsa_plus"`` is a plain string for every scikit-learn search once skselect is imported.
"""

import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, train_test_split

from skselect import Predictions, SelectiveClassifier, evaluate, get_scorer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)

model = SelectiveClassifier(
    HistGradientBoostingClassifier(random_state=0), calibration="platt", threshold=0.9
)
search = GridSearchCV(
    model,
    {"estimator__max_depth": [1, 3, None], "estimator__max_iter": [20, 100]},
    scoring="cwsa_plus",
    n_jobs=2,
).fit(X_train, y_train)

results = pd.DataFrame(search.cv_results_)
columns = ["param_estimator__max_depth", "param_estimator__max_iter", "mean_test_score"]
print(results[columns].sort_values("mean_test_score", ascending=False).to_string(index=False))
print("\nbest:", search.best_params_)

best = search.best_estimator_
print(f"\nOn {len(y_test)} test rows it answers {best.accepts(X_test).mean():.1%}:")
print(best.decide(X_test).head(8))
wrong = best.accepts(X_test) & (best.predict(X_test) != y_test)
print(f"{wrong.sum()} of its answers are wrong.")

# Every metric at once, from the same predictions:
predictions = Predictions.from_proba(y_test, best.predict_proba(X_test))
print(evaluate(predictions, {"coverage": {"threshold": 0.9}, "cwsa_plus": {"threshold": 0.9},
                             "augrc": {}, "csr": {}, "ece": {}}).round(4))  # fmt: skip
print("coverage at 1 % risk:", get_scorer("coverage_at_risk", max_risk=0.01)(best, X_test, y_test))
