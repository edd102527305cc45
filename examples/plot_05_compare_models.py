"""
Which classifier abstains best?
===============================

Four classifiers on handwritten digits, and which could be as good.
"""

import sys

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skselect.metrics import compare_models, metrics_by_group

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

table = compare_models(y, y_probas, "augrc")
print("AUGRC: mean rate of silent failures, lower is better\n")
print(table.round(4).to_string())
print(f"\n{table.attrs['note']}")

print("\nNaive Bayes, by the digit it reads, answers with a confidence of 0.9 or more:\n")
by_digit = metrics_by_group(
    y, y_probas["naive Bayes"], y_probas["naive Bayes"].argmax(axis=1),
    {"selective_risk": {"threshold": 0.9}, "cwsa": {"threshold": 0.9}},
)  # fmt: skip
print(by_digit.drop(columns="attribute").round(3).to_string(index=False))

if len(sys.argv) > 1:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
    shown = table.iloc[::-1]
    reach = [shown["estimate"] - shown["low"], shown["high"] - shown["estimate"]]
    ax.errorbar(shown["estimate"], shown.index, xerr=reach, fmt="o", color="#0072B2", capsize=4)
    ax.set(xscale="log", xlabel="AUGRC with 95 % interval (lower is better)")
    for name, row in shown.iterrows():
        if not row["tied_with_best"]:
            ax.annotate("worse than the best", (row["high"], name), xytext=(6, -3),
                        textcoords="offset points", fontsize=8, color="#555555")  # fmt: skip
    ax.set_xlim(right=5 * table["high"].max())
    ax.margins(y=0.2)
    figure.savefig(sys.argv[1], dpi=150)
