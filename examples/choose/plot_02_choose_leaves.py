"""
Choose a tree by CWSA+, not by accuracy
=======================================

How small may the leaves of a tree be? Accuracy asks which tree is right most often if it answers
every case. ``scoring="cwsa_plus"`` asks how well it works if it may abstain. It is a plain string
for every search of scikit-learn once skselect is imported.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.tree import DecisionTreeClassifier

from skselect import SelectiveClassifier
from skselect.scoring import get_scorer

X, y = load_digits(return_X_y=True)
X_search, X_new, y_search, y_new = train_test_split(X, y, test_size=0.3, random_state=0)
tree = DecisionTreeClassifier(random_state=0)
leaves = [1, 2, 5, 10, 20, 40]
plain = GridSearchCV(tree, {"min_samples_leaf": leaves}, scoring="accuracy").fit(X_search, y_search)

# %%
# The wrapped tree is calibrated in each fold, and scored at its own threshold, 0.8.
model = SelectiveClassifier(tree, calibration="temperature", threshold=0.8, cv=3, random_state=0)
search = GridSearchCV(model, {"estimator__min_samples_leaf": leaves}, scoring="cwsa_plus", cv=3)
search.fit(X_search, y_search)

_, ax = plt.subplots()
for name, found in {"accuracy": plain, "CWSA+ at 0.8": search}.items():
    scores = found.cv_results_["mean_test_score"]
    (line,) = ax.plot(leaves, scores, "o-", label=name)
    ax.plot(leaves[scores.argmax()], scores.max(), "o", ms=14, mfc="none", color=line.get_color())
ax.set(xscale="log", xlabel="Least number of rows in a leaf", ylabel="Score")
ax.set(xticks=leaves, xticklabels=leaves, ylim=(0, 1))
ax.legend()
plt.show()

# %%
# Accuracy prefers leaves of one row. Each of them says 0 or 1, so wrong answers are as sure as
# right ones. The tree with larger leaves makes more errors, but less sure ones: it can answer most
# of the new rows with at most 5 % errors, the other tree none.
most = get_scorer("coverage_at_risk", max_risk=0.05)
for name, found in {"chosen by accuracy": plain, "chosen by CWSA+": search}.items():
    best = found.best_estimator_
    right = (best.predict_proba(X_new).argmax(axis=1) == y_new).mean()
    print(f"{name}: right in {right:.1%}, coverage at 5 % risk {most(best, X_new, y_new):.1%}")
