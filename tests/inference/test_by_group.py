"""Tables of metrics: by subgroup, and of each class."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binomtest

from skselect import Predictions
from skselect.inference import metric_interval, metrics_by_class, metrics_by_group
from skselect.inference.by_group import rate_classes
from skselect.metrics import SPECS
from tests.refusals import check_refused, refusals


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    p = rng.random(600)
    return (rng.random(600) < p).astype(int), p, rng.choice(["f", "m", "x"], 600, p=[0.5, 0.4, 0.1])


def test_values_and_intervals_are_those_of_each_subgroup(rows):
    y_true, y_proba, group = rows
    names = ["coverage", "selective_risk", "cwsa", "augrc", "ece", "cau", "cw_auc", "csr"]
    table = metrics_by_group(y_true, y_proba, group, names, confidence_level=None)
    assert table["subgroup"].unique().tolist() == ["all", "f", "m", "x"]
    assert len(table) == 4 * len(names)
    for record in table.to_dict("records"):
        part = np.ones(600, bool) if record["subgroup"] == "all" else group == record["subgroup"]
        expected = SPECS[record["metric"]].function(y_true[part], y_proba[part])
        assert record["value"] == pytest.approx(expected, rel=1e-12)
        assert record["n_rows"] == part.sum()
        assert record["n_errors"] == np.sum((y_proba[part] > 0.5) != y_true[part])
        assert np.isnan(record["contribution"]) == (record["metric"] != "cwsa")
    table = metrics_by_group(y_true, y_proba, group, ["augrc", "selective_risk"])
    for record in table[table["subgroup"] != "all"].to_dict("records"):
        part = group == record["subgroup"]
        one = metric_interval(y_true[part], y_proba[part], record["metric"])
        assert (record["low"], record["high"]) == (one.low, one.high)


@pytest.mark.parametrize("name", ["cwsa", "cwsa_plus"])
@pytest.mark.parametrize("normalize", ["selected", "all"])
def test_contributions_add_up(rows, name, normalize):
    y_true, y_proba, group = rows
    frame = pd.DataFrame({"sex": group, "old": np.arange(600) % 2 == 0})
    weight = np.random.default_rng(1).integers(0, 4, 600)
    params = {"threshold": 0.7, "normalize": normalize}
    table = metrics_by_group(
        y_true, y_proba, frame, {name: params}, confidence_level=None, sample_weight=weight
    )
    whole = SPECS[name].function(y_true, y_proba, sample_weight=weight, **params)
    accepted = np.maximum(y_proba, 1 - y_proba) >= 0.7
    assert table["n_errors"].iloc[0] == np.sum((weight * ((y_proba > 0.5) != y_true))[accepted])
    sums = table.groupby("attribute")["contribution"].sum()
    assert sums.to_dict() == pytest.approx(dict.fromkeys(["all", "sex", "old"], whole))
    assert table["value"].iloc[0] == pytest.approx(whole)


def test_subgroups_of_every_kind(rows):
    y_true, y_proba, group = rows
    expected = metrics_by_group(y_true, y_proba, group, confidence_level=None)
    for given, name in [
        (group.tolist(), "subgroup"), (pd.Series(group, index=np.arange(600)[::-1]), "subgroup"),
        (pd.Series(pd.Categorical(group)), "subgroup"), (pl.Series(group.tolist()), ""),
        (pd.Series(group, name="sex"), "sex"), ({"sex": group}, "sex"),
    ]:  # fmt: skip
        found = metrics_by_group(y_true, y_proba, given, confidence_level=None)
        assert not name or found["attribute"].unique().tolist() == ["all", name]
        drop = ["attribute", "subgroup"]
        pd.testing.assert_frame_equal(found.drop(columns=drop), expected.drop(columns=drop))
    holed = pd.Series(group, dtype=object).where(group != "x", None)  # missing ones are one, too
    found = metrics_by_group(y_true, y_proba, holed, confidence_level=None)
    assert found["subgroup"].isna().sum() == 4
    assert sorted(found["n_rows"]) == sorted(expected["n_rows"])


GAPS = {"coverage_gap": {"threshold": 0.6}, "risk_gap": {"threshold": 0.6}}


def test_gaps_stand_last_attribute_by_attribute(rows):
    y_true, y_proba, group = rows
    frame = pd.DataFrame({"sex": np.where(group == "x", "m", group), "age": np.arange(600) % 3})
    plain = {"coverage": {"threshold": 0.6}, "selective_risk": {"threshold": 0.6}}
    table = metrics_by_group(y_true, y_proba, frame, GAPS | plain)
    without = metrics_by_group(y_true, y_proba, frame, plain)
    pd.testing.assert_frame_equal(table.iloc[:-4], without)
    last = table.iloc[-4:]
    assert last["attribute"].tolist() == ["sex", "sex", "age", "age"]
    assert last["subgroup"].unique().tolist() == ["all"]
    assert last["n_rows"].unique().tolist() == [600]
    for record in last.to_dict("records"):
        share = {"coverage_gap": "coverage", "risk_gap": "selective_risk"}[record["metric"]]
        mine = (without["attribute"] == record["attribute"]) & (without["metric"] == share)
        values = without[mine]["value"]
        assert record["value"] == pytest.approx(values.max() - values.min(), rel=1e-12)
        one = metric_interval(
            y_true, y_proba, record["metric"],
            metric_params={"subgroups": frame[record["attribute"]], "threshold": 0.6},
        )  # fmt: skip
        assert (record["low"], record["high"]) == (one.low, one.high)
        assert one.method == "simultaneous"
        assert record["n_errors"] == one.n_errors == without["n_errors"].iloc[0]


def test_a_weight_counts_the_row_and_leaves_no_interval(rows):
    y_true, y_proba, group = rows
    weight = np.random.default_rng(1).integers(0, 4, 600) * (group != "x")
    wanted = GAPS | {"cwsa": {}}
    table = metrics_by_group(
        y_true, y_proba, group, wanted, sample_weight=weight, confidence_level=None
    )
    often = np.repeat(np.arange(600), weight)
    twice = metrics_by_group(
        y_true[often], y_proba[often], group[often], wanted, confidence_level=None
    )
    assert table["subgroup"].tolist() == ["all", "f", "m", "all", "all"]  # x does not exist
    assert table["value"].tolist() == pytest.approx(twice["value"].tolist())
    assert table["n_rows"].tolist() == twice["n_rows"].tolist()
    assert table["low"].isna().all()


def test_few_errors_are_named_once(rows):
    y_true, y_proba, group = rows
    group = np.where(np.arange(600) < 8, "rare", group)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metrics_by_group(y_true, y_proba, group, ["augrc", "selective_risk"])
    messages = [str(w.message) for w in caught]
    assert len(messages) == 1
    assert "augrc of rare, selective_risk of rare" in messages[0]


@refusals({
    "subgroups": [
        {"subgroups": ["f"]}, {"metrics": {"risk_gap": {"subgroups": [1]}}},
        {"metrics": ["risk_gap"], "subgroups": ["f"] * 600},
    ],
    "metrics": [{"metrics": ["hope"]}], "'csr' has no interval": [{"metrics": ["csr"]}],
    "confidence_level": [{"confidence_level": 2}, {"sample_weight": np.arange(600)}],
    "method": [{"method": "hope"}],
    "in a subgroup of 1 rows": [{
        "subgroups": [0] + [1] * 599, "metrics": {"augrc": {"estimator": "unbiased"}},
        "confidence_level": None,
    }],
})  # fmt: skip
def test_bad_requests_are_explained(rows, argument, call):
    y_true, y_proba, group = rows
    arguments = {"y_true": y_true, "y_proba": y_proba, "subgroups": group} | call
    check_refused(argument, lambda: metrics_by_group(**arguments))


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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.6, 0.8, np.inf])
def test_counts_and_exact_intervals(rng, threshold, weighted):
    y, p, answer, confidence = _draw(rng)
    weight = rng.integers(0, 3, len(y)) if weighted else np.ones(len(y))
    options = {"sample_weight": weight, "confidence_level": None} if weighted else (
        {"confidence_level": 0.9}
    )  # fmt: skip
    table = metrics_by_class(y, p, threshold=threshold, **options)
    assert len(table) == 3 * 2 * len(RATES)
    sets = {"all": np.ones(len(y), bool), "accepted": confidence >= threshold}
    for row in table.to_dict("records"):
        counts = _counts(y, answer, sets[row["rows"]], row["class"], weight)
        hits, n = counts[row["metric"]]
        assert (row["n_hits"], row["n_rows"]) == pytest.approx((hits, n))
        assert np.isnan([row["low"], row["high"]]).all() == (n == 0 or weighted)
        if n == 0:
            assert np.isnan(row["value"])
            continue
        assert row["value"] == pytest.approx(hits / n, rel=1e-12)
        if not weighted:
            exact = binomtest(int(hits), int(n)).proportion_ci(0.9, "exact")
            assert (row["low"], row["high"]) == pytest.approx(tuple(exact), abs=1e-12)


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
    for argument, options in [
        ("confidence_level=None", {"sample_weight": rng.random(len(y))}),
        ("confidence_level", {"confidence_level": 95}), ("threshold", {"threshold": None}),
    ]:  # fmt: skip
        check_refused(argument, partial(metrics_by_class, y, p, **options))


def test_predictions_take_the_place_of_labels_and_probabilities(rng):
    y, p, answer, confidence = _draw(rng)
    site = rng.choice(["a", None], len(y))
    rows = Predictions.from_proba(y, p)
    pd.testing.assert_frame_equal(metrics_by_class(rows), metrics_by_class(y, p))
    pd.testing.assert_frame_equal(
        metrics_by_group(rows, subgroups=site), metrics_by_group(y, p, site)
    )
    answers = Predictions.from_labels(y, answer, confidence)
    table = metrics_by_group(answers, subgroups=site, metrics=["coverage_gap", "selective_risk"])
    assert table["value"].notna().all()
    check_refused("labels", partial(metrics_by_class, rows, labels=[0, 1, 2]))
    check_refused("subgroups", metrics_by_group, y, p)
