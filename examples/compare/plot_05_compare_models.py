"""
Which classifier abstains best?
===============================

Four classifiers on handwritten digits: which is best, and which could be as good?
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skselect.inference import compare_models

X, y = load_digits(return_X_y=True)
models = {
    "forest": RandomForestClassifier(random_state=0),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "neighbours": KNeighborsClassifier(n_neighbors=15),
    "naive Bayes": GaussianNB(),
}
y_probas = {
    name: cross_val_predict(model, X, y, cv=5, method="predict_proba")
    for name, model in models.items()
}

# %%
# AUGRC is the mean rate of silent failures over all coverages: lower is better. Each pair of
# models is compared row by row, and the p-values are adjusted for the number of comparisons.
table = compare_models(y, y_probas, "augrc")
print(table.attrs["note"])
table.round(4)

# %%
# Models can differ although their intervals overlap: rows that are hard for both cancel out in the
# comparison of pairs.
figure, ax = plt.subplots(figsize=(6.4, 3.2))
shown = table.iloc[::-1]
reach = [shown["estimate"] - shown["low"], shown["high"] - shown["estimate"]]
ax.errorbar(shown["estimate"], shown.index, xerr=reach, fmt="o", capsize=4)
ax.set(xscale="log", xlabel="AUGRC with 95 % interval (lower is better)")
for name, row in shown.iterrows():
    if not row["tied_with_best"]:
        at = {"xytext": (6, -3), "textcoords": "offset points"}
        ax.annotate("worse than the best", (row["high"], name), **at)
ax.set_xlim(right=5 * table["high"].max())
ax.margins(y=0.2)
plt.show()
