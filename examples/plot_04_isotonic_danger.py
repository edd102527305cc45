"""
Why isotonic calibration is dangerous
=====================================

Three reliability diagrams look alike. The calibrated size ratio (CSR) does not: it weighs an error
at confidence c by 1/(1 - c), and is 1 for an honest classifier.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from skselect import ReliabilityDisplay, SelectiveClassifier
from skselect.datasets import DatasetNotFoundError, load_dataset
from skselect.metrics import csr_test, expected_calibration_error

try:
    X, y = load_dataset("magic", download_if_missing=False, return_X_y=True)
    print("MAGIC gamma telescope, 19,020 rows")
except DatasetNotFoundError:
    X, y = load_dataset("digits", return_X_y=True)
    print("magic is not on this machine (see skselect.datasets): handwritten digits instead")

X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, random_state=0)
X_cal, X_test, y_cal, y_test = train_test_split(X_rest, y_rest, train_size=500, random_state=0)
forest = RandomForestClassifier(60, random_state=0).fit(X_train, y_train)
frozen = FrozenEstimator(forest)  # 500 other rows calibrate it

# %%
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharey=True)
for ax, calibration in zip(axes, (None, "isotonic", "temperature"), strict=True):
    model = SelectiveClassifier(frozen, calibration=calibration).fit(X_cal, y_cal)
    proba = model.predict_proba(X_test)
    certain = proba.max(axis=1) == 1
    wrong = model.predict(X_test) != y_test
    name = calibration or "raw"
    test = csr_test(y_test, proba, labels=model.classes_, random_state=0)
    print(
        f"{name}: ECE {expected_calibration_error(y_test, proba, labels=model.classes_):.3f}, "
        f"CSR {test.csr:.3g} (p {test.p_value:.3g}), "
        f"certain {certain.sum()} times, {(certain & wrong).sum()} of them wrong"
    )
    ReliabilityDisplay.from_predictions(y_test, proba, labels=model.classes_, name=name, ax=ax)
plt.show()

# %%
# Isotonic regression says "certain" where it has not seen an error yet. No threshold removes
# such errors: no answer is surer. Temperature scaling never reaches 1.
