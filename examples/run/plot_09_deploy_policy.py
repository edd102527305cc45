"""
Deploy a policy as JSON
=======================

A service needs the classifier and one JSON file. Later labelled cases say if its guarantee is kept.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skselect
from skselect import AbstentionPolicy, Predictions, SelectiveClassifier, ThresholdTuner

X, y = load_digits(return_X_y=True)
X_known, X_new, y_known, y_new = train_test_split(X, y, test_size=0.3, random_state=0)
linear = make_pipeline(StandardScaler(), LogisticRegression())
model = SelectiveClassifier(linear, calibration="temperature", random_state=0)
tuner = ThresholdTuner(model, objective="risk", target=0.02, cv=0.5, random_state=0)
tuner.fit(X_known, y_known)

# %%
# The file holds calibration, threshold and certificate as plain numbers.
with TemporaryDirectory() as folder:
    path = Path(folder) / "policy.json"
    tuner.policy_.to_json(path)
    print(f"{path.stat().st_size:,} bytes")
    print(json.dumps(json.loads(path.read_text())["calibration"])[:200], "...")
    policy = AbstentionPolicy.from_json(path)

# %%
# In the service: the classifier's own, raw output goes in. Calibration is part of the policy.
raw = tuner.raw_scores(X_new)
decisions = policy.decide(raw)
decisions.head()

# %%
# Later, with labels: is it still true? The policy is fixed, so that exact bounds suffice.
labelled = Predictions.from_proba(y_new, raw, labels=policy.classes)
print(skselect.check_policy(policy, labelled))

# %%
# Without labels one can at least compare confidences. Here the scanner has become noisy.
noisy = policy.decide(tuner.raw_scores(X_new + 4 * (X_new[::-1] > 8)))
print(f"answered at calibration: {policy.coverage:.1%}")
for name, table in {"now": decisions, "with noise": noisy}.items():
    print(f"answered {name}: {table['accepted'].mean():.1%}")
    plt.ecdf(table["confidence"], label=name)
plt.axvline(policy.threshold, color="grey", linestyle="--", label="threshold")
plt.gca().set(xlabel="Confidence", ylabel="Share of cases below")
plt.gca().yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
plt.legend()
plt.show()
