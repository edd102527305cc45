"""
Certify on the latest rows when the world changes
=================================================

Rows arrive in the order of time, and the world changes. A threshold from a random split keeps its
guarantee for the past. One from the latest rows holds for the rows that come next.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from skselect import SelectiveClassifier, ThresholdTuner

# 10,000 simulated rows: after 3,500 and again after 7,000 the same X means something else. The
# first 5,000 are known.
rng = np.random.default_rng(0)
X = rng.normal(size=(10_000, 2))
angle = np.repeat([0, 0.6, 1.2], [3500, 3500, 3000])
signal = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle)
y = (signal + 0.3 * rng.normal(size=10_000) > 0).astype(int)

# %%
# Both aim at 5 % wrong. The random split warns that the order matters: it is an estimate.
model = SelectiveClassifier(LogisticRegression(), calibration="temperature", random_state=0)
earlier_and_latest = slice(-1500), slice(-1500, None)
tuners = {
    "a random split": ThresholdTuner(model, objective="risk", target=0.05, random_state=0),
    "the last 1,500 rows": ThresholdTuner(
        model, objective="risk", target=0.05, cv=[earlier_and_latest]
    ),
}
for name, tuner in tuners.items():
    tuner.fit(X[:5000], y[:5000])
    print(f"{name}: accepts {tuner.policy_.coverage:.0%} of the rows that chose the threshold")
print("\n".join(tuners["a random split"].certificate_.caveats))

# %%
# What became of it, in blocks of 500 rows. The last rows before the grey line resemble the next
# 2,000, and their threshold holds for those. Nobody could foresee the second change: only a monitor
# with labels sees it.
block = np.arange(10_000) // 500
_, ax = plt.subplots()
for name, tuner in tuners.items():
    decided = tuner.decide(X)
    accepted = decided["accepted"].to_numpy()
    wrong = accepted & (decided["suggestion"].to_numpy() != y)
    risk = np.bincount(block, wrong) / np.bincount(block, accepted)
    ax.plot(500 * np.arange(20) + 250, 100 * risk, "o-", label=name)
ax.axhline(5, color="grey", linestyle="--", label="guaranteed")
ax.axvline(5000, color="grey")
ax.set(xlabel="Row, in the order of time", ylabel="Wrong among accepted rows")
ax.yaxis.set_major_formatter("{x:.0f} %")
ax.legend(title="Threshold chosen by")
plt.show()
