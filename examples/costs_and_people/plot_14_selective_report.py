"""
Write a report for the people who decide
========================================

``selective_report`` begins with three numbers: how many cases are answered, how many answers are
wrong, and how many cases wait for a person. Below it says how far the confidence can be trusted,
how good the answers are in each group, and which errors are the most confident ones.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skselect import SelectiveClassifier, ThresholdTuner, selective_report
from skselect.display import ReliabilityDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X[["mean radius", "mean texture", "mean smoothness"]]
X_known, X_new, y_known, y_new = train_test_split(X, y, test_size=0.4, random_state=0)
linear = make_pipeline(StandardScaler(), LogisticRegression())
model = SelectiveClassifier(linear, calibration="temperature", random_state=0)
tuner = ThresholdTuner(model, objective="risk", target=0.08, cv=0.5, random_state=0)
tuner.fit(X_known, y_known)

# %%
# The policy takes the raw probabilities, and the report says what becomes of them.
size = X_new["mean radius"].gt(14).map({True: "large", False: "small"}).rename("tumour")
raw = tuner.raw_scores(X_new)
report = selective_report(
    y_new, raw, policy=tuner.policy_, subgroups=size, features=X_new, n_errors=3
)
print(report)

# %%
# The same as one web page that needs no network, with a slider for the threshold; and as a table.
with TemporaryDirectory() as folder:
    path = Path(folder) / "report.html"
    report.to_html(path, interactive=True)
    print(f"{path.stat().st_size / 1000:.0f} kB")
report.to_frame().head(6)

# %%
# The web page holds pictures like this one.
ReliabilityDisplay.from_predictions(y_new, tuner.predict_proba(X_new), n_bins=6, name="calibrated")
plt.show()
