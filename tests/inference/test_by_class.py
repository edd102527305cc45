"""Rates of each class against counts of single rows."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import precision_score, recall_score

from skselect import Predictions
from skselect.inference.by_class import rate_classes
from skselect.metrics import metrics_by_class

RATES = ("sensitivity", "specificity", "ppv", "npv", "missed")


def _draw(rng, n=200):
    labels = ["a", "b", "c"]
    y, p = rng.choice(labels, n), rng.dirichlet(np.ones(3), n)
    return y, p, np.array(labels)[p.argmax(axis=1)], p.max(axis=1)


def _counts(y, answer, rows, label, weight):
    """Count hits and rows of each rate by their definitions, one row at a time."""
    found = {name: [0, 0] for name in RATES}

    def see(name, hit, w):
        found[name][0] += w * hit
        found[name][1] += w

    for true, said, inside, w in zip(y, answer, rows, weight, strict=True):
        if true == label:
            see("missed", inside and said != label, w)
        if inside:
            see("sensitivity" if true == label else "specificity",
                (said == label) == (true == label), w)  # fmt: skip
            see("ppv" if said == label else "npv", (said == label) == (true == label), w)
    return found


@pytest.mark.parametrize("threshold", [0.0, 0.6, 0.8, np.inf])
def test_counts_and_exact_intervals(rng, threshold):
    y, p, answer, confidence = _draw(rng)
    table = metrics_by_class(y, p, threshold=threshold, confidence_level=0.9)
    assert len(table) == 3 * 2 * len(RATES)
    sets = {"all": np.ones(len(y), bool), "accepted": confidence >= threshold}
    for row in table.to_dict("records"):
        counts = _counts(y, answer, sets[row["rows"]], row["class"], np.ones(len(y)))
        hits, n = counts[row["metric"]]
        assert (row["n_hits"], row["n_rows"]) == (hits, n)
        if n == 0:
            assert np.isnan([row["value"], row["low"], row["high"]]).all()
            continue
        exact = binomtest(int(hits), int(n)).proportion_ci(0.9, "exact")
        assert row["value"] == hits / n
        assert (row["low"], row["high"]) == pytest.approx(tuple(exact), abs=1e-12)


def test_it_agrees_with_scikit_learn(rng):
    y, p, answer, confidence = _draw(rng)
    table = metrics_by_class(y, p, threshold=0.7).query("rows == 'accepted'")
    sure = confidence >= 0.7
    for name, score in [("sensitivity", recall_score), ("ppv", precision_score)]:
        expected = score(y[sure], answer[sure], average=None)
        assert table.query(f"metric == '{name}'")["value"].tolist() == pytest.approx(expected)


def test_a_weight_of_two_is_the_row_twice(rng):
    y, p, *_ = _draw(rng)
    weight = rng.integers(0, 3, len(y))
    one = metrics_by_class(y, p, threshold=0.6, sample_weight=weight, confidence_level=None)
    two = metrics_by_class(
        np.repeat(y, weight), np.repeat(p, weight, axis=0), threshold=0.6, confidence_level=None
    )
    for name in ("value", "n_hits", "n_rows"):
        np.testing.assert_allclose(one[name], two[name])
    assert one[["low", "high"]].isna().all(axis=None)


def test_weights_leave_no_rest_where_there_are_no_rows(rng):
    weight, p = rng.random(50), np.tile([0.1, 0.2, 0.7], (50, 1))
    table = metrics_by_class(
        ["c"] * 50, p, labels=["a", "b", "c"], sample_weight=weight, confidence_level=None
    )
    table = table[table["class"] == "c"].set_index(["rows", "metric"])
    for rows in ("all", "accepted"):
        assert table.loc[rows].loc[["specificity", "npv"], "n_rows"].tolist() == [0, 0]
        assert table.loc[rows].loc[["specificity", "npv"], "value"].isna().all()


def test_rows_of_an_unknown_class_are_of_no_class():
    rows = Predictions(np.array([0, -1, 1]), np.array([0, 1, 1]), np.array(["a", "b"]))
    found = rate_classes(rows, None, None)["all"]
    assert found["ppv"].n_hits.tolist() == [1, 1]
    assert found["ppv"].n_rows.tolist() == [1, 2]
    assert found["specificity"].n_rows.tolist() == [2, 2]
    assert found["specificity"].n_hits.tolist() == [2, 1]
    assert found["missed"].n_rows.tolist() == [1, 1]


def test_refusals(rng):
    y, p, *_ = _draw(rng)
    with pytest.raises(ValueError, match="confidence_level=None"):
        metrics_by_class(y, p, sample_weight=rng.random(len(y)))
    with pytest.raises(ValueError, match="confidence_level"):
        metrics_by_class(y, p, confidence_level=95)
    with pytest.raises(ValueError, match="threshold"):
        metrics_by_class(y, p, threshold=None)
