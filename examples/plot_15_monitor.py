"""
Watch a policy while it runs
============================

Calls of a bank in the order of time: a classifier is trained on the first, its threshold certified
on the next. Then the world changes. With labels that come late, a monitor notices.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator

from skselect import MonitorDisplay, SelectiveRiskMonitor, ThresholdTuner
from skselect.datasets import DatasetNotFoundError, load_dataset

try:
    X, y = load_dataset("bank_marketing", download_if_missing=False, return_X_y=True)
    X = X.drop(columns="duration")  # not known before the call
    n_train, n_certify, target = 8000, 4000, 0.08
    print("UCI Bank Marketing, 41,188 calls from 2008 to 2010, in the order of time")
except DatasetNotFoundError:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20_000, 2)))
    angle = np.where(np.arange(20_000) < 12_000, 0, 0.5)
    signal = X[0] * np.cos(angle) + X[1] * np.sin(angle)
    y = np.where(signal + 0.3 * rng.normal(size=20_000) > 0, "yes", "no")
    n_train, n_certify, target = 2000, 2000, 0.05
    print("bank_marketing is not on this machine (see skselect.datasets): simulated cases instead")

end = n_train + n_certify
trees = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
trees.fit(X[:n_train], y[:n_train])
tuner = ThresholdTuner(FrozenEstimator(trees), objective="risk", target=target)
tuner.fit(X[n_train:end], y[n_train:end])
print(tuner.certificate_)

# %%
# Every 500 cases somebody looks. The labels known by then are those of the cases 1000 and more
# before: the monitor takes them in the order of decisions, and waits for the others.
monitor = SelectiveRiskMonitor(tuner.policy_, batch=500)
late = 1000
for first in range(end, len(X) - 500 + 1, 500):
    rows = np.arange(first, first + 500)
    monitor.decided(tuner.raw_scores(X[first : first + 500]), ids=rows)
    if first - late >= end:
        monitor.labelled(rows - late, y[first - late : first - late + 500])
    if monitor.status_.risk == "alarm":
        break
print(monitor.status_)

# %%
# What nobody would have seen without labels: the coverage below.
MonitorDisplay.from_monitor(monitor)
plt.show()
