"""
Why isotonic calibration is dangerous
=====================================

Two reliability diagrams look alike. The calibrated size ratio (CSR) does not: it weighs an error at
confidence c by 1/(1 - c), and is 1 for a calibrated classifier.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skselect import SelectiveClassifier
from skselect.display import ReliabilityDisplay
from skselect.metrics import csr_test, expected_calibration_error

# Is a handwritten digit 5 or more? That is hard for a linear model.
X, digit = load_digits(return_X_y=True)
y = digit >= 5
linear = make_pipeline(StandardScaler(), LogisticRegression())

y_probas = {}
for name in ("isotonic", "temperature"):
    model = SelectiveClassifier(linear, calibration=name, random_state=0)
    y_probas[name] = cross_val_predict(model, X, y, method="predict_proba")

ReliabilityDisplay.from_models(y, y_probas, n_bins=8)
plt.show()

# %%
# Judged by the usual calibration error, isotonic regression is the better one. But it is certain of
# some answers that are wrong. No threshold removes such errors, because no answer is surer.
# Temperature scaling never reaches 1.
for name, proba in y_probas.items():
    test = csr_test(y, proba, random_state=0)
    certain = proba.max(axis=1) == 1
    wrong = proba.argmax(axis=1) != y
    print(
        f"{name:11}: ECE {expected_calibration_error(y, proba):.3f}, "
        f"CSR {test.csr:,.2f} (p {test.p_value:.3f}), "
        f"certain {certain.sum()} times, {(certain & wrong).sum()} of them wrong"
    )

# %%
# Isotonic regression says "certain" wherever its rows show no error. How often that happens to the
# surest tenth of the cases:
tenth = len(y) // 10
for name, proba in y_probas.items():
    surest = proba.max(axis=1).argsort()[-tenth:]
    print(f"{name:11}: {(proba.max(axis=1)[surest] == 1).mean():.0%} of {tenth} answers at 1")
