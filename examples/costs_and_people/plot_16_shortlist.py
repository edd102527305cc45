"""
Suggest a few answers for deferred cases
========================================

Where it abstains, the classifier names a few classes. The truth is among them in 95 of 100 cases.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from skselect import SelectiveClassifier, ThresholdTuner
from skselect.thresholds import Shortlist

# A poor scanner sees every second column of pixels.
X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X[:, ::2], y, test_size=0.3, random_state=0)
forest = RandomForestClassifier(50, random_state=0)
tuner = ThresholdTuner(
    SelectiveClassifier(forest, calibration="temperature"),
    objective="risk", target=0.03, shortlist=Shortlist(0.95, share=0.4), random_state=0,
)  # fmt: skip
tuner.fit(X, y)
print(tuner.certificate_)

# %%
# Six deferred digits with their lists. The truth is written below.
decided = tuner.decide(X_new)
deferred = np.flatnonzero(~decided["accepted"])
lists, truth = decided["shortlist"][deferred].tolist(), y_new[deferred]
listed = np.array([answer in names for answer, names in zip(truth, lists, strict=True)])
_, axes = plt.subplots(2, 3, layout="constrained")
for ax, row, names, true in zip(axes.flat, deferred, lists, truth, strict=False):
    ax.imshow(X_new[row].reshape(8, 4), cmap="gray_r", aspect=0.5, interpolation="bicubic")
    ax.set(xticks=[], yticks=[])
    ax.set_title(" or ".join(map(str, names)), size=18)
    ax.set_xlabel(f"it is {true}" if true in names else f"it is {true}: not listed")
plt.show()

# %%
# How long are the lists?
sizes = np.array([len(names) for names in lists])
print(f"{len(lists)} of {len(decided)} deferred, the truth on the list in {listed.mean():.1%}")
print(f"{sizes.mean():.1f} classes on average, at most two in {(sizes <= 2).mean():.0%}")
plt.bar(*np.unique(sizes, return_counts=True))
plt.gca().set(xlabel="classes on the list", ylabel="deferred cases")
plt.show()
