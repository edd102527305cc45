"""The definition of every metric, written out slowly; `tests/brute.py` has those of the curve.

`OF_ROWS` holds the metrics of losses, confidences and weights, as functions of exact rows;
`OF_CLASSES` those that read classes or their probabilities, as functions of a `ProbaCase`. Both
take the metric's parameters, with the defaults that the documentation names. What has no value
is nan. `PARAMETERS` lists the parameters worth a look.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
from scipy.integrate import quad
from scipy.stats import binomtest, norm

from tests import brute
from tests.brute import weight_of

NAN = math.nan


def right_weight(rows):
    return sum((row.weight * (1 - row.loss) for row in rows), Fraction(0))


def mean_of_defined(values, shares):
    kept = [(v, s) for v, s in zip(values, shares, strict=True) if s > 0 and not math.isnan(v)]
    total = math.fsum(s for _, s in kept)
    return math.fsum(v * s for v, s in kept) / total if kept else NAN


def calibrated_outcomes(confidence):
    """Yield every way to be right or wrong, and its chance if the confidences are true."""
    for loss in product([0.0, 1.0], repeat=len(confidence)):
        chances = [1 - c if wrong else c for wrong, c in zip(loss, confidence, strict=True)]
        if chance := math.prod(chances):
            yield np.array(loss), chance


# Areas and working points ----------------------------------------------------------------


def aurc(rows, estimator="empirical", ties="expected"):
    if ties == "block":
        return brute.aurc_block(rows)
    kinds = {"empirical": brute.aurc, "integral": brute.aurc_integral, "ln": brute.aurc_ln}
    return kinds[estimator](rows)


def augrc(rows, estimator="trapezoid", coverage_range=(0.0, 1.0)):
    return brute.augrc_unbiased(rows) if estimator == "unbiased" else (
        brute.augrc(rows, *coverage_range)
    )  # fmt: skip


def aumcc(rows, metric="cwsa_plus", estimator="trapezoid", thresholds=None):
    if estimator == "exact":
        return brute.aumcc_exact(rows, metric)
    return brute.aumcc(rows, metric, thresholds)


# Telling errors from right answers -------------------------------------------------------


def failure_auroc(rows):
    return brute.failure_auroc(rows) if right_weight(rows) and brute.weighted_loss(rows) else NAN


def average_precision(rows, positive="error"):
    """Add up precision times the gain in recall, the likeliest level first."""
    if positive == "error":
        score, truth = (lambda row: -row.confidence), (lambda row: row.loss)
    else:
        score, truth = (lambda row: row.confidence), (lambda row: 1 - row.loss)
    everything = sum(row.weight * truth(row) for row in rows)
    if not everything:
        return NAN
    value, recall_before = Fraction(0), Fraction(0)
    for level in sorted({score(row) for row in rows}, reverse=True):
        called = [row for row in rows if score(row) >= level]
        found = sum(row.weight * truth(row) for row in called)
        value += (found / everything - recall_before) * found / weight_of(called)
        recall_before = found / everything
    return value


def oc_auc(rows, review_fraction=0.1):
    """Put right what an oracle reviews, the least sure first; the share is read as a decimal."""
    budget, after = Fraction(str(review_fraction)) * weight_of(rows), []
    for level in reversed(brute.levels(rows)):
        tied = [row for row in rows if row.confidence == level]
        part = min(budget / weight_of(tied), Fraction(1))
        budget -= part * weight_of(tied)
        after += [row._replace(loss=row.loss * (1 - part)) for row in tied]
    return failure_auroc(after)


def f1_retention(rows):
    """Integrate 2 T/(x + R) over the share x retained, numerically; tied rows come evenly."""
    total, share, right, area = weight_of(rows), 0.0, 0.0, 0.0
    all_right = float(right_weight(rows) / total)
    for weight, mean_loss in brute.blocks(rows) if all_right else []:
        width, rate = float(weight / total), float(1 - mean_loss)

        def f1(x, share=share, right=right, rate=rate):
            return 2 * (right + rate * (x - share)) / (x + all_right)

        area += quad(f1, share, share + width)[0]
        share, right = share + width, right + rate * width
    return area


def auroc_aurc(case):
    """Loop over rows, and over pairs of accepted rows of different classes."""
    rows = [(w, Fraction(max(p)), Fraction(p[1]), y) for w, p, y in table(case)]
    total, counted = Fraction(0), Fraction(0)
    for w, c, _, _ in rows:
        wins, pairs = Fraction(0), Fraction(0)
        for w1, c1, p1, y1 in rows:
            for w0, c0, p0, y0 in rows:
                if c1 >= c and c0 >= c and y1 == 1 and y0 == 0:
                    pairs += w1 * w0
                    wins += w1 * w0 * (Fraction(p1 > p0) + Fraction(p1 == p0) / 2)
        if pairs:
            total, counted = total + w * (1 - wins / pairs), counted + w
    return total / counted if counted else NAN


# Confidence-weighted counts --------------------------------------------------------------


def table(case):
    """Return (weight, probabilities, true class) of the rows that exist."""
    weight = np.ones(len(case.y_true)) if case.weight is None else case.weight
    given = zip(weight.tolist(), case.y_proba.tolist(), case.y_true.tolist(), strict=True)
    return [(Fraction(w), p, y) for w, p, y in given if w > 0]


def masses(case, confidence="max_proba"):
    """Return (weight times confidence, true class, predicted class), in fractions."""
    surely = brute.CONFIDENCES[confidence]
    return [(w * Fraction(surely(p)), y, p.index(max(p))) for w, p, y in table(case)]


def mass(rows, true=None, predicted=None):
    """Add up the rows whose true and predicted classes satisfy the conditions."""
    kept = [
        m for m, y, a in rows
        if (true is None or true(y)) and (predicted is None or predicted(a))
    ]  # fmt: skip
    return sum(kept, Fraction(0))


def confusion(rows, classes):
    return [[mass(rows, lambda y, i=i: y == i, lambda a, j=j: a == j) for j in classes]
            for i in classes]  # fmt: skip


def four_counts(rows, k):
    """Return cwTP, cwFP, cwFN, cwTN of class k."""
    is_k, other = (lambda c: c == k), (lambda c: c != k)
    return [mass(rows, a, b) for a, b in [(is_k, is_k), (other, is_k), (is_k, other), (other,) * 2]]


def ratio(name, counts):
    tp, fp, fn, tn = counts
    over, under = {
        "precision": (tp, tp + fp),
        "recall": (tp, tp + fn),
        "specificity": (tn, tn + fp),
        "f1": (2 * tp, 2 * tp + fp + fn),
    }[name]
    return float(over / under) if under else NAN


def averaged(name):
    """Classes without a value are left out; "weighted" weighs by cwTP + cwFN.

    Only the precision of a class that has rows and is never predicted counts 0.
    """

    def metric(case, average="auto", pos_label=None):
        counts = [four_counts(masses(case), k) for k in case.labels]
        if average == "micro":
            return ratio(name, [sum(part) for part in zip(*counts, strict=True)])
        values = [ratio(name, c) for c in counts]
        if average is None:
            return values
        if average == "binary" or pos_label is not None:
            return values[1 if pos_label is None else pos_label]
        if name == "precision":
            values = [
                0.0 if math.isnan(v) and fn > 0 else v
                for v, (_, _, fn, _) in zip(values, counts, strict=True)
            ]
        shares = [float(tp + fn) if average == "weighted" else 1.0 for tp, _, fn, _ in counts]
        return mean_of_defined(values, shares)

    return metric


def matthews(case):
    """Correlate the indicators of true and predicted class, each class adding its covariance."""
    rows = masses(case)
    total = mass(rows)

    def covariance(a, b):
        value = Fraction(0)
        for k in case.labels:
            both = sum((m for m, *row in rows if row[a] == k and row[b] == k), Fraction(0))
            one = sum((m for m, *row in rows if row[a] == k), Fraction(0))
            two = sum((m for m, *row in rows if row[b] == k), Fraction(0))
            value += both / total - one / total * two / total
        return value

    spread = covariance(0, 0) * covariance(1, 1)
    return float(covariance(0, 1)) / math.sqrt(spread) if spread else NAN


def cw_accuracy(rows):
    total = sum((row.weight * row.confidence for row in rows), Fraction(0))
    right = sum((row.weight * row.confidence * (1 - row.loss) for row in rows), Fraction(0))
    return right / total if total else NAN


def cw_gain(rows):
    weighted = cw_accuracy(rows)
    accuracy = right_weight(rows) / weight_of(rows)
    room = 1 - min(weighted, accuracy)
    return (weighted - accuracy) / room if room and not math.isnan(weighted) else NAN


def pairs_of(case, k, confidence="max_proba"):
    """Yield the mass of each pair of a row of class k and another, and who is ahead."""
    surely = brute.CONFIDENCES[confidence]
    rows = [(w * Fraction(surely(p)), y, p[k]) for w, p, y in table(case)]
    for m, y, p in rows:
        for n, z, q in rows:
            if y == k and z != k:
                yield m * n, Fraction(p > q) + Fraction(p == q) / 2


def cw_auc(case, average="macro", confidence="max_proba"):
    """Return P(class k scored above another class) + half the ties, by mass of pairs."""
    values = []
    for k in case.labels:
        pairs = list(pairs_of(case, k, confidence))
        total = sum((m for m, _ in pairs), Fraction(0))
        values.append(float(sum(m * z for m, z in pairs) / total) if total else NAN)
    if average is None:
        return values
    support = [float(mass(masses(case), true=lambda y, k=k: y == k)) for k in case.labels]
    return mean_of_defined(values, support if average == "weighted" else [1.0] * len(values))


# Calibration, with bins and without ------------------------------------------------------


def quantile(rows, share):
    """Return the smallest confidence such that rows up to it weigh at least this share."""
    return min(
        level for level in brute.levels(rows)
        if weight_of([row for row in rows if row.confidence <= level]) >= share * weight_of(rows)
    )  # fmt: skip


def bins(rows, n_bins, strategy):
    """Return the rows of each bin that holds any; bins are closed on the right."""
    if strategy == "uniform":
        edges = [k / n_bins for k in range(1, n_bins)]  # an edge is a float, as users see it
    else:
        edges = [quantile(rows, Fraction(k, n_bins)) for k in range(1, n_bins)]
    filled = {}
    for row in rows:
        filled.setdefault(sum(edge < row.confidence for edge in edges), []).append(row)
    return list(filled.values())


def gap(rows):
    """Return the weighted sum of accuracy less confidence."""
    return sum((row.weight * (1 - row.loss - row.confidence) for row in rows), Fraction(0))


def ece(rows, n_bins=15, strategy="uniform"):
    return sum(abs(gap(part)) for part in bins(rows, n_bins, strategy)) / weight_of(rows)


def mce(rows, n_bins=15, strategy="uniform"):
    return max(abs(gap(part)) / weight_of(part) for part in bins(rows, n_bins, strategy))


def classwise_ece(case, n_bins=15, strategy="uniform"):
    errors = [
        ece(brute.rows_of(case.y_true != k, case.y_proba[:, k], case.weight), n_bins, strategy)
        for k in case.labels
    ]
    return sum(errors) / len(errors)


def debiased_square(rows, n_bins=15, strategy="quantile"):
    """Return the sum over bins of n_b/n [(a - c)^2 - a (1 - a)/(n_b - 1)], 0/1 losses."""
    total = Fraction(0)
    for part in bins(rows, n_bins, strategy):
        size = weight_of(part)
        if size > 1:
            accuracy = right_weight(part) / size
            total += size * ((gap(part) / size) ** 2 - accuracy * (1 - accuracy) / (size - 1))
    return total / weight_of(rows)


def cumulative_gaps(rows):
    """Return the sum of a - c over the rows up to each confidence, over all, with 0 first."""
    gaps = [gap([row for row in rows if row.confidence <= c]) for c in brute.levels(rows)[::-1]]
    return [Fraction(0), *(value / weight_of(rows) for value in gaps)]


def isotonic_distance(rows):
    """Fit by max-min over intervals of levels."""
    ascending = brute.levels(rows)[::-1]

    def accuracy(low, high):
        inside = [row for row in rows if low <= row.confidence <= high]
        return right_weight(inside) / weight_of(inside)

    means = {(a, b): accuracy(a, b) for a in ascending for b in ascending if a <= b}
    fit = {
        level: max(
            min(means[low, high] for high in ascending if high >= level)
            for low in ascending if low <= level
        )
        for level in ascending
    }  # fmt: skip
    total = sum(row.weight * abs(row.confidence - fit[row.confidence]) for row in rows)
    return total / weight_of(rows)


def brier(rows):
    total = sum(row.weight * (row.confidence - (1 - row.loss)) ** 2 for row in rows)
    return total / weight_of(rows)


def pava_bc(rows, n_min=10, n_max=1000):
    """Return the bins: lists of rows. Rows of equal confidence count as one piece.

    The last pieces are set aside until they hold n_min rows together, but none that holds as many
    by itself, nor what lies below it. The others are taken in ascending order; after each, the
    last two bins become one while they have at most n_min rows together, or at most n_max and an
    accuracy that does not rise. What was set aside is a bin of its own, or part of the last one if
    that keeps to n_max.
    """

    def accuracy(part):
        return right_weight(part) / weight_of(part)

    pieces = [[r for r in rows if r.confidence == c] for c in reversed(brute.levels(rows))]
    aside, found = [], []
    while pieces and weight_of(aside) < n_min and weight_of(pieces[-1]) < n_min:
        aside = pieces.pop() + aside
    for piece in pieces:
        found.append(piece)
        while len(found) > 1:
            size = weight_of(found[-2] + found[-1])
            falls = accuracy(found[-2]) >= accuracy(found[-1])
            if size > n_min and not (size <= n_max and falls):
                break
            found[-2:] = [found[-2] + found[-1]]
    if not aside:
        return found
    if found and weight_of(found[-1] + aside) <= n_max:
        found[-1] = found[-1] + aside
    else:
        found.append(aside)
    return found


def tce(rows, alpha=0.05, n_min=10, n_max=1000):
    refuted = Fraction(0)
    for part in pava_bc(rows, n_min, n_max):
        n, k = int(weight_of(part)), int(right_weight(part))
        for row in part:
            p_value = binomtest(k, n, float(row.confidence)).pvalue
            if p_value <= alpha or math.isclose(p_value, alpha, rel_tol=1e-12):
                refuted += row.weight
    return 100 * refuted / weight_of(rows)


# Near certainty --------------------------------------------------------------------------


def clipped(rows, eps):
    low, high = Fraction(eps), 1 - Fraction(eps)
    return [row._replace(confidence=min(max(row.confidence, low), high)) for row in rows]


def csr(rows, eps=1e-8):
    rows = clipped(rows, eps)
    if any(row.loss and row.confidence == 1 for row in rows):
        return math.inf
    return sum(row.weight * row.loss / (1 - row.confidence) for row in rows if row.loss) / (
        weight_of(rows)
    )


def csr_sigma(rows, eps=1e-8):
    rows = clipped(rows, eps)
    if any(row.confidence == 1 for row in rows):
        return math.inf
    total = sum(row.weight * row.confidence / (1 - row.confidence) for row in rows)
    return math.sqrt(total) / float(weight_of(rows))


def csr_z(rows, eps=1e-8):
    value, scale = csr(rows, eps), csr_sigma(rows, eps)
    if math.isinf(value):
        return math.inf
    if scale == 0:
        return math.copysign(math.inf, value - 1) if value != 1 else 0.0
    return float(value - 1) / scale


def p_risk(rows, eps=1e-8):
    return norm.cdf(csr_z(rows, eps)) if csr(rows, eps) > 1 else 0.0


def log_odds(confidence):
    return math.log(confidence) - math.log(1 - confidence)


def ecd(rows, eps=1e-8):
    terms = [
        float(row.weight * (row.confidence - (1 - row.loss))) * log_odds(row.confidence)
        for row in clipped(rows, eps)
    ]
    return math.fsum(terms) / float(weight_of(rows))


def ecd_sigma(rows, eps=1e-8):
    terms = [
        float(row.confidence * (1 - row.confidence)) * log_odds(row.confidence) ** 2
        for row in clipped(rows, eps)
    ]
    return math.sqrt(math.fsum(terms)) / len(rows)


# Correctness-aligned uncertainty ---------------------------------------------------------


def entropies(case, eps=0.0):
    """Return (weight, whether wrong, entropy over log K, clipped) of each row; 0 log 0 is 0."""
    found = []
    for w, p, y in table(case):
        h = math.fsum(-x * math.log(x) for x in p if x > 0) / math.log(len(p))
        found.append((float(w), p.index(max(p)) != y, min(max(h, eps), 1 - eps)))
    return found


def cau_parts(case, eps=1e-8):
    """Return weighted mean and weight of -log(1 - h) over right rows, of -log h over wrong ones."""
    parts = []
    for kind in (False, True):
        rows = [
            (w, -math.log(h if wrong else 1 - h))
            for w, wrong, h in entropies(case, eps) if wrong == kind
        ]  # fmt: skip
        total = sum(w for w, _ in rows)
        parts.append((math.fsum(w * x for w, x in rows) / total if rows else NAN, total))
    return parts


def cau(case, lambda_=1.0, eps=1e-8):
    """The sum of what there is."""
    (right, _), (wrong, _) = cau_parts(case, eps)
    return (0 if math.isnan(right) else right) + (0 if math.isnan(wrong) else lambda_ * wrong)


def cau_cost(case, cost_right=1.0, cost_wrong=1.0, eps=1e-8):
    """The mean over all rows."""
    total = [
        w * (cost_wrong * -math.log(h) if wrong else cost_right * -math.log(1 - h))
        for w, wrong, h in entropies(case, eps)
    ]
    return math.fsum(total) / math.fsum(w for w, _, _ in entropies(case))


def mean_entropy(kind):
    def metric(case, normalize=True):
        rows = [(w, h) for w, wrong, h in entropies(case) if wrong == (kind == "wrong")]
        mean = math.fsum(w * h for w, h in rows) / sum(w for w, _ in rows) if rows else NAN
        return mean if normalize else mean * math.log(len(case.labels))

    return metric


# All of them -----------------------------------------------------------------------------

OF_ROWS = {
    "coverage": lambda rows, threshold=0.5: brute.coverage(rows, threshold),
    "selective_risk": lambda rows, threshold=0.5: brute.selective_risk(rows, threshold),
    "selective_accuracy": lambda rows, threshold=0.5: 1 - brute.selective_risk(rows, threshold),
    "generalized_risk": lambda rows, threshold=0.5: brute.generalized_risk(rows, threshold),
    "selective_cost": lambda rows, threshold=0.5, abstention_cost=0.1: brute.selective_cost(
        rows, threshold, abstention_cost),
    "cwsa": lambda rows, threshold=0.5, normalize="selected": brute.cwsa(
        rows, threshold, normalize=normalize),
    "cwsa_plus": lambda rows, threshold=0.5, normalize="selected": brute.cwsa(
        rows, threshold, plus=True, normalize=normalize),
    "aurc": aurc,
    "eaurc": brute.eaurc,
    "naurc": brute.naurc,
    "augrc": augrc,
    "eaugrc": brute.eaugrc,
    "aumcc": aumcc,
    "accuracy_rejection_auc": lambda rows, **known: 1 - float(aurc(rows, **known)),
    "risk_at_coverage": lambda rows, **known: brute.risk_at_coverage(rows, *known.values()),
    "coverage_at_risk": lambda rows, **known: brute.coverage_at_risk(rows, *known.values()),
    "review_rate_at_reliability": lambda rows, reliability: 1 - brute.coverage_at_reliability(
        rows, reliability),
    "failure_auroc": failure_auroc,
    "failure_average_precision": average_precision,
    "oc_auc": oc_auc,
    "f1_retention_auc": f1_retention,
    "cw_accuracy": cw_accuracy,
    "cw_gain": cw_gain,
    "ece": ece,
    "mce": mce,
    "debiased_l2": lambda rows, **known: math.sqrt(max(debiased_square(rows, **known), 0)),
    "ecce_mad": lambda rows: max(map(abs, cumulative_gaps(rows))),
    "ecce_r": lambda rows: max(cumulative_gaps(rows)) - min(cumulative_gaps(rows)),
    "isotonic_distance": isotonic_distance,
    "top_label_brier": brier,
    "tce": tce,
    "csr": csr,
    "p_risk": p_risk,
    "ecd": ecd,
}  # fmt: skip
OF_CLASSES = {
    "auroc_aurc": auroc_aurc,
    "cw_precision": averaged("precision"),
    "cw_recall": averaged("recall"),
    "cw_specificity": averaged("specificity"),
    "cw_f1": averaged("f1"),
    "cw_matthews": matthews,
    "cw_auc": cw_auc,
    "classwise_ece": classwise_ece,
    "cau": cau,
    "cau_cost": cau_cost,
    "right_entropy": mean_entropy("right"),
    "wrong_entropy": mean_entropy("wrong"),
}

SHARES = [0.07, 0.1, 0.3, 0.5, 0.9, 1.0]
BINNED = [{}] + [
    {"n_bins": n_bins, "strategy": strategy}
    for strategy in ("uniform", "quantile") for n_bins in (1, 2, 5, 10, 15, 40)
]  # fmt: skip
AVERAGED = [{}, *({"average": name} for name in ("macro", "weighted", "micro"))]
CLIPPED = [{}, *({"eps": eps} for eps in (0.0, 2.0**-27, 0.25))]
GRIDS = [[0.6], [0.9, 0.3, 0.75], [0.0, 0.5, 0.6, 0.75, 0.9, 0.999, 1 - 1e-12]]
#: A test of many draws takes one of these for each; thresholds it draws itself.
PARAMETERS = {
    "selective_cost": [{"abstention_cost": cost} for cost in (0.0, 0.1, 0.7, 3.0)],
    "cwsa": [{"normalize": "selected"}, {"normalize": "all"}],
    "cwsa_plus": [{"normalize": "selected"}, {"normalize": "all"}],
    "aurc": [{}, {"estimator": "integral"}, {"ties": "block"}],
    "accuracy_rejection_auc": [{}, {"estimator": "integral"}],
    "augrc": [{}, *({"coverage_range": r} for r in ((0, 0.5), (0.3, 0.8), (0.25, 1), (0.9, 0.95)))],
    "aumcc": [
        {"metric": metric} | chosen
        for metric in brute.CURVE_METRICS
        for chosen in ({}, {"estimator": "exact"}, *({"thresholds": grid} for grid in GRIDS))
    ],
    "risk_at_coverage": [{"coverage": share} for share in SHARES],
    "coverage_at_risk": [{"max_risk": share} for share in (0.0, *SHARES)],
    "review_rate_at_reliability": [{"reliability": r} for r in (*SHARES, 0.0, 0.95, 0.99)],
    "failure_average_precision": [{}, {"positive": "correct"}],
    "oc_auc": [{"review_fraction": s} for s in (0.0, 0.07, 0.1, 0.25, 0.29, 0.5, 0.9, 0.99)],
    "ece": BINNED,
    "mce": BINNED,
    "debiased_l2": BINNED,
    "classwise_ece": BINNED,
    "tce": [
        {"n_min": low, "n_max": high, "alpha": alpha}
        for low, high in ((10, 1000), (1, 1000), (1, 1), (5, 5), (3, 12), (10, 30), (60, 60))
        for alpha in (0.05, 0.3)
    ],
    "csr": CLIPPED,
    "p_risk": CLIPPED,
    "ecd": [{}, {"eps": 2.0**-10}, {"eps": 0.25}],
    "cw_precision": AVERAGED,
    "cw_recall": AVERAGED,
    "cw_specificity": AVERAGED,
    "cw_f1": AVERAGED,
    "cw_auc": [{}, {"average": "weighted"}],
    "cau": [{}, {"lambda_": 0.0}, {"lambda_": 3.0, "eps": 2.0**-10}, {"eps": 0.25}],
    "cau_cost": [{}, {"cost_right": 0.5, "cost_wrong": 4.0}, {"cost_right": 0.0, "eps": 0.25}],
    "right_entropy": [{}, {"normalize": False}],
    "wrong_entropy": [{}, {"normalize": False}],
}
#: Of rows that all count alike.
UNWEIGHTED = {
    "aurc": [{"estimator": "ln"}],
    "accuracy_rejection_auc": [{"estimator": "ln"}],
    "augrc": [{"estimator": "unbiased"}],
}
