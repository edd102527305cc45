"""
One promise, many groups
========================

A promise about all cases together may be broken in a group. ``group_by=`` gives each group a
threshold and a certificate of its own.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from skselect import RiskCoverageDisplay, SelectiveClassifier, ThresholdTuner
from skselect.datasets import DatasetNotFoundError, load_dataset

try:
    X, y = load_dataset("adult", download_if_missing=False, return_X_y=True)
    group = X["education-num"].ge(13).map({True: "degree", False: "no degree"})
    print("UCI Adult: people with and without a degree")
except DatasetNotFoundError:
    X, digit = load_dataset("digits", return_X_y=True)
    y = digit.lt(5).map({True: "low", False: "high"})
    group = X.mean(axis=1).gt(4.9).map({True: "more ink", False: "less ink"})
    print("adult is not on this machine (see skselect.datasets): digits, by how much ink they took")
X = X.assign(group=group.astype("category"))

X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, random_state=0)
X_fresh, X_new, y_fresh, y_new = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
trees = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
model = SelectiveClassifier(trees, calibration="temperature", cv=2).fit(X_train, y_train)


# %%
# One threshold for all: at most 6 % wrong is promised, on average over both groups.
def by_group(tuner):
    """Return the coverage of each group, and the share of errors among what is answered."""
    table = tuner.decide(X_new).rename(columns={"accepted": "coverage"})
    wrong = (table["suggestion"] != y_new).astype(float)
    table["risk"] = wrong.where(table["coverage"])
    return table.groupby(X_new["group"], observed=True)[["coverage", "risk"]].mean()


pooled = ThresholdTuner(FrozenEstimator(model), objective="risk", target=0.06).fit(X_fresh, y_fresh)
by_group(pooled).round(3)

# %%
# Each group has a curve of its own:
proba = model.predict_proba(X_new)
RiskCoverageDisplay.from_subgroups(y_new, proba, X_new["group"], labels=model.classes_, target=0.06)
plt.show()

# %%
tuner = ThresholdTuner(FrozenEstimator(model), objective="risk", target=0.06, group_by="group")
tuner.fit(X_fresh, y_fresh)
tuner.selection_.to_frame().round(3)

# %%
# On the new rows each group keeps the promise.
by_group(tuner).round(3)
