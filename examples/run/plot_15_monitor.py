"""
Watch a policy while it runs
============================

Handwritten digits arrive day after day, and a threshold is certified. Then the scanner gets dirty.
The classifier still answers nearly as many cases, and more answers are wrong. A monitor notices it
from labels that come late.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from skselect import SelectiveClassifier, SelectiveRiskMonitor, ThresholdTuner
from skselect.display import MonitorDisplay

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=500, random_state=0)
X_fresh, X_later, y_fresh, y_later = train_test_split(
    X_rest, y_rest, train_size=600, random_state=0
)
forest = RandomForestClassifier(60, random_state=0)
model = SelectiveClassifier(forest, calibration="temperature", random_state=0).fit(X_train, y_train)
tuner = ThresholdTuner(FrozenEstimator(model), objective="risk", target=0.05)
print(tuner.fit(X_fresh, y_fresh).certificate_)

# %%
# A hundred digits a day, drawn again and again from those that are left. From day 30 on there is
# dirt on the scanner. Labels come ten days late, and enter in the order of decisions.
rng = np.random.default_rng(0)
monitor = SelectiveRiskMonitor(tuner.policy_, batch=100)
labels = {}
for day in range(100):
    drawn = rng.integers(len(X_later), size=100)
    dirt = rng.normal(scale=0 if day < 30 else 3, size=(100, X.shape[1]))
    ids = range(100 * day, 100 * day + 100)
    monitor.add_decisions(tuner.raw_scores((X_later[drawn] + dirt).clip(0, 16)), ids=ids)
    labels[day] = ids, y_later[drawn]
    if day >= 10:
        monitor.add_labels(*labels.pop(day - 10))
    if monitor.status_.risk == "alarm":
        break
print(f"On day {day}:")
print(monitor.status_)

# %%
# Above: the evidence against the guarantee, which grows as labels of the bad days come. Below: the
# errors that the labels show, and the coverage, all that can be seen without them.
_, axes = plt.subplots(2, sharex=True, figsize=(6, 4.2))
MonitorDisplay.from_monitor(monitor, axes=axes)
plt.show()
