"""
Count what is missed in each class
==================================

The confusion matrix of a classifier that may abstain has one more column: the cases that a person
reads. And how many would a person read at another risk target?
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skselect import SelectiveClassifier, ThresholdTuner
from skselect.display import SelectiveConfusionDisplay, WorkloadDisplay
from skselect.inference import metrics_by_class

table = load_breast_cancer(as_frame=True)
X = table.data[["mean radius", "mean texture", "mean smoothness", "mean symmetry"]]
y = table.target_names[table.target]
X_known, X_new, y_known, y_new = train_test_split(X, y, test_size=0.4, random_state=0)
linear = make_pipeline(StandardScaler(), LogisticRegression())
model = SelectiveClassifier(linear, calibration="temperature", random_state=0)
tuner = ThresholdTuner(model, objective="risk", target=0.06, cv=0.5, random_state=0)
tuner.fit(X_known, y_known)
proba = tuner.predict_proba(X_new)

# %%
# Before and after: most of the cancers that it would miss are deferred.
figure, axes = plt.subplots(1, 2, figsize=(8, 3.8))
thresholds = {"Always answering": 0, "Abstaining": tuner.threshold_}
for ax, (title, threshold) in zip(axes, thresholds.items(), strict=True):
    SelectiveConfusionDisplay.from_predictions(
        y_new, proba, threshold=threshold, ax=ax, colorbar=False, im_kw={"aspect": "auto"}
    )
    ax.set(title=title)
plt.show()

# %%
# The same as shares of all cases of the class, with exact intervals.
rates = metrics_by_class(y_new, proba, threshold=tuner.threshold_)
rates[rates["metric"] == "missed"].round(3)

# %%
# What would another target cost? Fewer errors, more work; the dot is the threshold in use. Grey is
# what 95 % confidence needs, for all targets at once.
WorkloadDisplay.from_estimator(tuner, X_new, y_new, name="new cases", confidence_level=0.95)
plt.show()
