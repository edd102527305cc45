"""
Plan for a reviewer who errs too
================================

Machine and reviewer together are wrong in at most 6 % of all cases. The machine answers as many
cases as this allows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from skselect import SystemRisk, ThresholdTuner

# A poor scanner sees every second column of pixels. The reviewer is simulated: 4 % slips.
X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
slips = rng.random(len(y)) < 0.04
person = np.where(slips, (y + rng.integers(1, 10, len(y))) % 10, y)
X, X_new, y, y_new, person, person_new = train_test_split(
    X[:, ::2], y, person, test_size=0.3, random_state=0
)
forest = RandomForestClassifier(50, random_state=0)
tuner = ThresholdTuner(forest, SystemRisk(0.06), random_state=0)
tuner.fit(X, y, reviewer_pred=person)
print(tuner.certificate_)

# %%
# On new cases: the share that is wrong, machine and reviewer together, at each threshold.
decided = tuner.decide(X_new)
order = np.argsort(-decided["confidence"].to_numpy(), kind="stable")
machine = (decided["suggestion"].to_numpy() != y_new)[order]
reviewer = (person_new != y_new)[order]
together = np.append(0, machine.cumsum()) + reviewer.sum() - np.append(0, reviewer.cumsum())
n = len(y_new)
_, ax = plt.subplots(layout="constrained")
ax.plot(np.arange(n + 1) / n, together / n, label="machine and reviewer together")
ax.plot(0, reviewer.mean(), "o", label="reviewer alone")
ax.plot(1, machine.mean(), "o", label="machine alone")
ax.axvline(decided["accepted"].mean(), color="0.4", label="the certified threshold")
ax.axhline(0.06, color="0.4", linestyle=":", label="target")
ax.set(xlabel="Share that the machine answers", ylabel="Wrong, of all cases", ylim=0)
ax.legend()
plt.show()
