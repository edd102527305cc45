"""What is measured of each net of paper_004.py."""

import warnings
from functools import partial

import numpy as np
import torch
from paper_004_nets import PASSES, probabilities, split, trained, two_hidden_layers
from sklearn.metrics import log_loss

from skselect import (
    GeneralizedRisk,
    Outcomes,
    Predictions,
    RiskCoverageCurve,
    evaluate,
    select_threshold,
)
from skselect._lib.decide import normalized_entropy
from skselect.losses import cau_loss
from skselect.metrics._areas import review_at_reliability
from skselect.metrics._cau import cau_components, cau_score, right_entropy, wrong_entropy

MEASURES = {
    "cau": {}, "failure_auroc": {}, "failure_average_precision": {}, "aurc": {}, "augrc": {},
    "naurc": {}, "ece": {}, "top_label_brier": {}, "csr": {}, "cwsa_plus": {"threshold": 0.5},
}  # fmt: skip
TEMPERATURES = np.geomspace(0.25, 8, 41)
#: Table, rows that set the threshold, reliability asked for.
RULES = [
    ("mnist", 10_000, 0.9995), ("mnist", 10_000, 0.99), ("letter", 2000, 0.99),
    ("covertype_small", 2000, 0.98), ("magic", 2000, 0.98),
]  # fmt: skip
DELTA, DRAWS = 0.05, 500


# Measures of one net ---------------------------------------------------------------------


def measured(y, proba):
    """Return all measures of one table of probabilities."""
    predictions = Predictions.from_proba(y, proba)
    found = evaluate(predictions, MEASURES).to_dict()
    right_first = evaluate(predictions, {"failure_average_precision": {"positive": "correct"}})
    parts = cau_components(y, proba)
    right = proba.argmax(axis=1) == y
    h = normalized_entropy(proba)
    return found | {
        "accuracy": right.mean(), "log_loss": log_loss(y, proba), "entropy": h.mean(),
        "cau_1": parts.cau_1, "cau_0": parts.cau_0,
        # Table 2 and figures 3 and 6, in nats.
        "entropy, right": right_entropy(predictions, normalize=False),
        "entropy, wrong": wrong_entropy(predictions, normalize=False),
        "average_precision_right": right_first["failure_average_precision"],
        # What eqs. 5 and 8 print in place of the logarithms.
        "cau_as_printed": (1 - h[right]).mean() + h[~right].mean(),
    }  # fmt: skip


def best_temperatures(y, proba):
    """Return which temperature CAU likes best, which log loss does, and what becomes of both."""
    tables = [tempered(proba, t) for t in TEMPERATURES]
    found = {}
    for name, measure in [("cau", cau_score), ("log_loss", log_loss)]:
        best = int(np.argmin([measure(y, table) for table in tables]))
        chosen = measured(y, tables[best])
        found[f"temperature by {name}"] = TEMPERATURES[best]
        found |= {f"{k} at it, by {name}": chosen[k] for k in ["cau", "ece", "log_loss"]}
    return found


def tempered(proba, temperature):
    log_p = np.log(np.clip(proba, 1e-300, None)) / temperature
    powers = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def make_rows(prediction, values):
    return [{"prediction": prediction, "measure": k, "value": float(v)} for k, v in values.items()]


def net_run(table, varied, strength, seed, n_train, n_test, *, data_home):
    """Train one net and measure it; with dropout also as the mean of passes and as one pass."""
    warnings.simplefilter("ignore")
    data = split(table, seed, n_train, n_test, data_home)
    torch.manual_seed(seed)
    net = two_hidden_layers(data, dropout=strength if varied == "dropout" else 0.0)
    loss = partial(cau_loss, alpha=strength if varied == "alpha" else 0.0)
    decay = strength if varied == "weight_decay" else 0.0
    net = trained(net, data, loss, weight_decay=decay)
    y = data.y[data.test].numpy()
    plain = probabilities(net, data.X[data.test])
    rows = make_rows("plain", measured(y, plain))
    if varied == "dropout":
        for name, passes in [(f"{PASSES} passes", PASSES), ("one pass", 1)]:
            rows += make_rows(name, measured(y, probabilities(net, data.X[data.test], passes)))
    if varied == "alpha":
        rows += make_rows("plain", best_temperatures(y, plain))
        rows += [row for rule in RULES if rule[0] == table for row in reviewed(net, data, rule)]
    return rows


# Review rates ----------------------------------------------------------------------------


def reviewed(net, data, rule):
    """Return review rates: thresholds chosen and tested on the test rows, or chosen on drawn rows.

    All rows that were not trained on are the population. Rows are drawn from it with
    replacement and choose a threshold, which is tested on the population.
    """
    _, n_rows, reliability = rule
    rows = []
    for confidence in ["max_proba", "entropy"]:
        name = f"{confidence}, {reliability:g}"
        y, proba = data.y.numpy(), probabilities(net, data.X[data.fresh])
        everyone = Outcomes.from_proba(y[data.fresh], proba, confidence=confidence)
        test = probabilities(net, data.X[data.test])
        plan = review_at_reliability(
            y[data.test], test, reliability=reliability, confidence=confidence
        )
        rows += make_rows(name, {
            "review_rate": plan.review_rate, "pass_rate": plan.pass_rate,
            "invalid_review_cost": plan.invalid_review_cost, "silent_errors": plan.silent_errors,
        })  # fmt: skip
        rows += make_rows(name, drawn_thresholds(everyone, n_rows, 1 - reliability))
    return rows


def drawn_thresholds(everyone, n_rows, target):
    """Return how often each rule breaks its target on the population, and what it accepts."""
    rng = np.random.default_rng(0)
    curve = RiskCoverageCurve.from_outcomes(everyone)
    thresholds = {"plug_in": [], "exact": []}
    for _ in range(DRAWS):
        drawn = rng.integers(len(everyone), size=n_rows)
        sample = RiskCoverageCurve.from_outcomes(
            Outcomes(everyone.loss[drawn], everyone.confidence[drawn])
        )
        for name, method in [("plug_in", "empirical"), ("exact", "binomial")]:
            risk = GeneralizedRisk(target, delta=DELTA, method=method)
            found = select_threshold(sample, objective=risk, on_infeasible="abstain")
            thresholds[name].append(found.threshold)
    oracle = curve.coverage_at_reliability(1 - target)
    values = {"oracle_coverage": oracle}
    for name, chosen in thresholds.items():
        accepted = curve.accepted_at(np.array(chosen))
        values[f"{name}_violated"] = np.mean(accepted.loss / len(everyone) > target)
        values[f"{name}_silent"] = np.mean(accepted.loss / len(everyone))
        values[f"{name}_coverage"] = np.mean(accepted.weight / len(everyone))
    return values
