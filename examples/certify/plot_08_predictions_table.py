"""
Certify a table of predictions of any model
===========================================

A deep net, an LLM, a service: often there is no estimator, only a table of its predictions.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_predict
from sklearn.neural_network import MLPClassifier

from skselect import PrecomputedClassifier, Predictions, ThresholdTuner, evaluate, select_threshold
from skselect.display import ConfidenceHistogramDisplay

# %%
# Some net read handwritten digits, and somebody kept its answers: ten probabilities per row, the
# truth, and where the row came from.
X, y = load_digits(return_X_y=True)
net = MLPClassifier((32,), max_iter=300, early_stopping=True, random_state=0)
digits = [f"p{digit}" for digit in range(10)]
table = pd.DataFrame(cross_val_predict(net, X, y, method="predict_proba"), columns=digits)
table = table.assign(truth=y, scanner=np.where(np.arange(len(y)) % 3 == 0, "old", "new"))
table.head(3).round(2)

# %%
# Metrics and a threshold need nothing but that. The certificate assumes that these rows
# were fresh.
predictions = Predictions.from_proba(table["truth"], table[digits].to_numpy())
print(evaluate(predictions, ["augrc", "failure_auroc", "csr"]).round(4).to_string())
selection = select_threshold(predictions, objective="risk", target=0.02)
print(selection.certificate)

# %%
# How sure the net is where it is right, and where it is wrong. Right of the line it decides alone.
ConfidenceHistogramDisplay.from_predictions(
    table["truth"], table[digits].to_numpy(), threshold=selection.threshold
)
plt.show()

# %%
# ``PrecomputedClassifier`` makes a fitted classifier of the table. What works with estimators works
# with it: calibration, searches, and here a threshold for each scanner.
stored = PrecomputedClassifier(range(10), columns=digits)
tuner = ThresholdTuner(
    stored, objective="risk", target=0.03, group_by="scanner", cv=0.7, random_state=0
).fit(table, table["truth"])
tuner.selection_.to_frame().round(3)
