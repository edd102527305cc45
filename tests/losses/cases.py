"""Rows of logits, and the losses written down a second time, row by row."""

from __future__ import annotations

import math

import numpy as np

from skselect.losses import CAUObjective, SoftCWSAObjective

OBJECTIVES = [
    CAUObjective(alpha=0.7, lambda_=1.3),
    CAUObjective(alpha=0.7, lambda_=1.3, variant="shares"),
    SoftCWSAObjective(threshold=0.6, temperature=0.1, alpha=0.8),
]


def rows(n_classes, n=12, seed=0):
    """Return logits, classes and weights."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=1.5, size=(n, n_classes))
    return logits, rng.integers(n_classes, size=n), rng.uniform(0.5, 2.0, size=n)


def probabilities(logits):
    powers = [math.exp(z - max(logits)) for z in logits]
    return [power / sum(powers) for power in powers]


def brute(objective, logits, codes, weight, right=None):
    """Return the loss; `right` says which rows count as right, by default those that are."""
    tables = [probabilities(row) for row in logits]
    if right is None:
        right = [p.index(max(p)) == k for p, k in zip(tables, codes, strict=True)]
    triples = list(zip(tables, right, weight, strict=True))
    total = sum(weight)
    cross_entropy = sum(
        -w * math.log(p[k]) for p, k, w in zip(tables, codes, weight, strict=True)
    ) / total  # fmt: skip
    if isinstance(objective, SoftCWSAObjective):
        t = objective.threshold
        above = accepted = 0.0
        for p, is_right, w in triples:
            u = (max(p) - t) / objective.temperature
            phi = objective.temperature * math.log(1 + math.exp(u)) / (1 - t)
            above += w * phi * (1 if is_right else -1)
            accepted += w / (1 + math.exp(-u))
        return cross_entropy - objective.alpha * above / (accepted + 1e-6 * total)
    parts = {True: [0.0, 0.0], False: [0.0, 0.0]}
    for p, is_right, w in triples:
        h = -sum(q * math.log(q) for q in p) / math.log(len(p))
        parts[is_right][0] += w * -math.log(1 - h if is_right else h)
        parts[is_right][1] += w
    cau_1, cau_0 = (
        found / (total if objective.variant == "shares" else n) for found, n in parts.values()
    )
    return cross_entropy + objective.alpha * (cau_1 + objective.lambda_ * cau_0)
