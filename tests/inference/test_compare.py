"""Comparisons: paired, adjusted, and no more errors than they guarantee."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from skselect import Predictions
from skselect.inference import compare_models, metric_interval
from skselect.inference.compare import holm
from skselect.metrics import SPECS
from tests.brute import assert_close
from tests.common import mostly_slow
from tests.refusals import check_refused, refusals


def draw(n, seed, noise=(0.7, 0.7)):
    """Return labels and models that add noise of their own to the true log-odds."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    y_true = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    names = "abcdef"[: len(noise)]
    return y_true, {
        name: 1 / (1 + np.exp(-(z + rng.normal(0, scale, n))))
        for name, scale in zip(names, noise, strict=True)
    }


@pytest.mark.parametrize(("metric", "sign"), [("augrc", 1), ("selective_accuracy", -1)])
def test_the_table_has_what_each_function_says_the_best_model_first(metric, sign):
    y_true, models = draw(800, 0, (0.3, 1.0, 2.0))
    table = compare_models(y_true, dict(reversed(models.items())), metric)
    assert table.index.tolist() == ["a", "b", "c"]
    for name in table.index:
        one = metric_interval(y_true, models[name], metric)
        assert table.loc[name, ["estimate", "low", "high"]].tolist() == [
            one.estimate, one.low, one.high,
        ]  # fmt: skip
    assert table.loc["a", "difference"] == 0.0
    assert table.loc["a", "tied_with_best"]
    assert table.loc["c", "difference"] == pytest.approx(
        table.loc["c", "estimate"] - table.loc["a", "estimate"]
    )
    assert not table.loc["c", "tied_with_best"]
    assert (sign * table.loc["c", ["difference_low", "difference_high"]] > 0).all()
    assert "training run" in table.attrs["note"]


def test_the_difference_is_paired():
    """The same rows: much of the scatter is common to both models."""
    y_true, models = draw(800, 0, (0.3, 0.4))
    table = compare_models(y_true, models, "augrc")
    width = (table["difference_high"] - table["difference_low"]).max()
    assert width < 0.5 * (table["high"] - table["low"]).min()
    same = compare_models(y_true, {"a": models["a"], "copy": models["a"]}, "augrc")
    assert same["p_value"].tolist() == [1.0, 1.0]
    assert same["difference_high"].tolist() == [0.0, 0.0]


def test_a_baseline_is_compared_with_each_model_once():
    y_true, models = draw(400, 3, (0.7, 0.8, 0.9, 1.0))
    table = compare_models(y_true, models, "augrc", baseline="d")
    assert table.loc["d", "difference"] == 0.0
    assert "tied_with_baseline" in table
    alone = [
        compare_models(y_true, {"d": models["d"], k: models[k]}, "augrc", baseline="d").loc[
            k, "p_value"
        ]
        for k in "abc"
    ]
    assert table.loc[["a", "b", "c"], "p_value"].tolist() == pytest.approx(holm(np.array(alone)))


def test_without_a_baseline_all_pairs_belong_to_the_family():
    y_true, models = draw(400, 3, (0.5, 0.8, 1.1))
    pairs = {}
    for i, j in [("a", "b"), ("a", "c"), ("b", "c")]:
        pair = compare_models(y_true, {i: models[i], j: models[j]}, "augrc", baseline=i)
        pairs[i + j] = pair.loc[j, "p_value"]
    adjusted = dict(zip(pairs, holm(np.array(list(pairs.values()))), strict=True))
    table = compare_models(y_true, models, "augrc")
    best = table.index[0]
    for other in table.index[1:]:
        key = "".join(sorted(best + other))
        assert table.loc[other, "p_value"] == pytest.approx(adjusted[key], rel=1e-9)


@pytest.mark.parametrize("name", ["debiased_l2", "cw_auc", "eaurc"])
def test_the_bootstrap_serves_metrics_without_a_closed_form(name):
    y_true, models = draw(500, 0, (0.2, 3.0))
    drawn = {"method": "bootstrap", "n_resamples": 100, "random_state": 0}
    table = compare_models(y_true, models, name, **drawn)
    assert table.index[0] == "a"
    assert not table.loc["b", "tied_with_best"]
    pd.testing.assert_frame_equal(compare_models(y_true, models, name, **drawn), table)


def test_clusters_widen_the_difference():
    y_true, models = draw(300, 0, (0.5, 0.9))
    copies = np.tile(np.arange(300), 4)
    many = {name: p[copies] for name, p in models.items()}
    rows = compare_models(y_true[copies], many, "augrc")
    clusters = compare_models(y_true[copies], many, "augrc", cluster=copies)
    assert clusters["p_value"].min() > rows["p_value"].min()


@pytest.mark.filterwarnings("ignore:.*rest on fewer")
def test_what_cannot_be_told_apart_is_tied():
    for n in (1, 40):  # rows that do not differ say nothing
        table = compare_models([1] * n, {"a": [0.9] * n, "b": [0.6] * n}, "cwsa")
        assert table["tied_with_best"].isna().tolist() == [False, True]
        assert np.isnan(table["p_value"].iloc[1])


def test_few_errors_warn_and_a_baseline_without_a_value_is_refused():
    y_true, models = draw(20, 0)
    with pytest.warns(UserWarning, match=r"estimates of \['a', 'b'\] rest on fewer than 10"):
        compare_models(y_true, models, "augrc")
    models["perfect"] = np.where(y_true == 1, 0.9, 0.1)
    undefined = r"baseline: 'failure_auroc' is undefined \(nan\) for it"
    with pytest.warns(UserWarning, match="undefined"), pytest.raises(ValueError, match=undefined):
        compare_models(y_true, models, "failure_auroc", baseline="perfect")


def test_the_positive_class_reaches_the_metric():
    y_true, models = draw(300, 0)
    names = np.array(["no", "yes"])[y_true]
    table = compare_models(
        names, models, "cw_f1",
        metric_params={"average": "binary"}, pos_label="yes", n_resamples=20, random_state=0,
    )  # fmt: skip
    expected = SPECS["cw_f1"].function(y_true, models["a"], average="binary")
    assert table.loc["a", "estimate"] == pytest.approx(expected, rel=1e-12)


@refusals({
    "y_probas": [{"y_probas": {}}, {"y_probas": [0.1] * 30}], "baseline": [{"baseline": "z"}],
    "'csr' has no interval": [{"metric": "csr"}], "ecd_test": [{"metric": "ecd"}],
    "metric": [{"metric": "aumcc", "metric_params": {"metric": "selective_risk"}}],
    "'top_label_brier'": [{"metric": "smooth_ece"}], "n_resamples": [{"n_resamples": 1}],
    "sample_weight": [{"sample_weight": np.arange(30)}], "cluster": [{"cluster": [0, 1]}],
    "confidence": [{"confidence": np.ones(30)}],
    "y_proba": [{"y_probas": {"a": [0.9] * 30, "b": [0.9] * 29}}],
})  # fmt: skip
def test_bad_requests_are_explained(argument, call):
    y_true, models = draw(30, 0)
    arguments = {"y_true": y_true, "y_probas": models, "metric": "augrc"} | call
    check_refused(argument, lambda: compare_models(**arguments))


def differences_found(metric, params, n, n_draws, seed):
    found = 0
    for draw_number in range(n_draws):
        y_true, models = draw(n, [seed, draw_number])
        table = compare_models(y_true, models, metric, metric_params=params)
        found += table["p_value"].min() <= 0.05
    return found / n_draws


NULL = [("augrc", {}), ("failure_auroc", {}), ("cwsa_plus", {"threshold": 0.6})]


@pytest.mark.filterwarnings("ignore:.*surest right answer")
@pytest.mark.parametrize(
    ("metric", "params", "n"),
    mostly_slow(
        [(*one, n) for n in (200, 1000) for one in [
            *NULL, ("aurc", {}), ("cw_accuracy", {}), ("selective_risk", {"threshold": 0.5})]],
        unpack=True,
    ),
)  # fmt: skip
def test_equal_models_are_seldom_told_apart(metric, params, n, request):
    draws = 2000 if request.node.get_closest_marker("slow") else 300
    share = differences_found(metric, params, n, draws, seed=1)
    low, high = (3 * np.sqrt(level * (1 - level) / draws) for level in (0.03, 0.07))
    assert 0.03 - low <= share <= 0.07 + high


def test_a_difference_that_one_confident_error_would_undo_is_named():
    """Model a errs on one in 250 of its surest rows; both have the same AURC, .0368."""
    rng = np.random.default_rng(0)
    plain = warned = 0
    draws = 120
    for _ in range(draws):
        rank_a, rank_b = rng.random((2, 250))
        y_true, answers = rng.integers(0, 2, 250), {}
        chances = np.where(rank_a > 0.8, 0.5, rank_a < 1 / 250), expit((rank_b - 0.8) / 0.163) / 2
        for name, rank, chance in zip("ab", (rank_a, rank_b), chances, strict=True):
            answer = np.where(rng.random(250) < chance, 1 - y_true, y_true)
            answers[name] = np.where(answer == 1, 1 - rank / 2, rank / 2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = compare_models(y_true, answers, "aurc")["p_value"].min() <= 0.05
        said = any("if the surest right answer" in str(one.message) for one in caught)
        assert found or not said
        plain, warned = plain + (found and not said), warned + said
    assert warned > draws / 10
    assert plain <= 0.05 * draws + 3 * np.sqrt(0.05 * 0.95 * draws)


# Holm and data sets ----------------------------------------------------------------------


def test_holm_by_hand():
    assert_close(holm(np.array([0.01, 0.04, 0.03])), [0.03, 0.06, 0.06])
    assert_close(holm(np.array([0.5, np.nan, 0.02])), [0.5, np.nan, 0.04])


def test_predictions_bring_answers_and_confidences_of_their_own(rng):
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    proba = np.column_stack([1 - p, p])
    answers, sure = proba.argmax(axis=1), proba.max(axis=1)
    blurred = sure + rng.normal(scale=0.2, size=400)
    given = {
        "sure": Predictions.from_labels(y, answers, 100 * sure),
        "blurred": Predictions.from_labels(y, answers, blurred),
    }
    found = compare_models(None, given, "augrc")
    expected = compare_models(y, {"sure": proba, "other": proba[::-1]}, "augrc")
    assert found.loc["sure", "estimate"] == pytest.approx(expected.loc["sure", "estimate"])
    assert found.index.tolist() == ["sure", "blurred"]
    with pytest.raises(ValueError, match="y_true=None"):
        compare_models(y, given, "augrc")
    with pytest.raises(ValueError, match="different rows"):
        compare_models(
            None, given | {"more": Predictions.from_labels(np.roll(y, 1), answers, sure)}, "augrc"
        )
    weighted = Predictions.from_labels(y, answers, sure, sample_weight=1 + y)
    with pytest.raises(ValueError, match="a comparison"):
        compare_models(None, given | {"weighted": weighted}, "augrc")
