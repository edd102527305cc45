"""Shortlists of select_threshold: which rows set them, when they are exact, how often they hold."""

import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from skselect import (
    AbstentionPolicy,
    Best,
    Cost,
    Coverage,
    Outcomes,
    Predictions,
    Risk,
    RiskCoverageCurve,
    select_threshold,
)
from skselect._lib.notebook import unwrap
from skselect.policy import Subgroups
from skselect.thresholds import Shortlist
from tests.refusals import check_refused


def draw(rng, n, n_classes=4, sharpness=0.15, hidden=0.0):
    """Draw truths from the probabilities, of which a share `hidden` is noise."""
    proba = rng.dirichlet(np.full(n_classes, sharpness), n)
    real = (1 - hidden) * proba + hidden * rng.dirichlet(np.ones(n_classes), n)
    truth = (rng.random((n, 1)) > real.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return truth, proba


@pytest.fixture
def predictions(rng):
    truth, proba = draw(rng, 2000)
    return Predictions.from_proba(truth, proba, labels=range(4))


def by_definition(predictions, deferred, level):
    """Return the least probability of a listed class, written with sorted lists."""
    rows = np.flatnonzero(deferred).tolist()
    scores = sorted(
        1 - Fraction(float(predictions.y_proba[i, predictions.y_true[i]])) for i in rows
    )
    rank = math.ceil((len(rows) + 1) * Fraction(str(level)))
    return float(1 - scores[rank - 1]), len(rows)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    st.sampled_from([0.5, 0.8, 0.9]), st.sampled_from([0.0, 0.3, 0.5]),
    st.sampled_from([{"objective": "risk"}, {"objective": "selective_accuracy"},
                     {"objective": "coverage", "target": 0.4, "confidence": "margin"}]),
    st.sampled_from([None, 10]), st.integers(0, 2**20),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:min_coverage")
def test_the_limit_is_the_quantile_of_the_deferred_rows(level, share, goal, parts, seed):
    rng = np.random.default_rng(seed)
    truth, proba = draw(rng, 800)
    if goal["objective"] == "risk":
        goal = goal | {"target": 0.1 if parts is None else 0.2}
    if parts is not None:  # ties
        proba = rng.multinomial(parts, proba) / parts
    labels = ["d", "a", "c", "b"]
    rows = Predictions.from_proba(np.array(labels)[truth], proba, labels=labels)
    asked = Shortlist(level, share=share, random_state=1)
    found = select_threshold(rows, shortlist=asked, **goal)
    apart = asked.set_apart(800)
    alone = Predictions.from_proba(
        np.array(labels)[truth[~apart]], proba[~apart], labels=labels
    )  # fmt: skip
    assert found.threshold == select_threshold(alone, **goal).threshold
    outcomes = Outcomes.of(rows, confidence=goal.get("confidence"))
    deferred = (outcomes.confidence < found.threshold) & (apart if share else True)
    least, n = by_definition(rows, deferred, level)
    assert found.shortlist.least_proba == least
    assert found.shortlist.n == n
    assert found.shortlist.is_exact == (share > 0)
    assert found.policy.shortlist == found.shortlist
    # The list is {k : p_k >= least}, ties included.
    decided = found.policy.decide(proba)
    listed = decided.loc[~decided["accepted"], "shortlist"]
    expected = (proba[~decided["accepted"]] >= least).sum(axis=1)
    assert listed.map(len).tolist() == expected.tolist()
    if not share:  # the order of rows and of classes does not matter
        order, columns = rng.permutation(800), rng.permutation(4)
        moved = Predictions.from_proba(
            np.array(labels)[truth[order]], proba[order][:, columns],
            labels=[labels[k] for k in columns],
        )  # fmt: skip
        assert select_threshold(moved, shortlist=level, **goal).shortlist == found.shortlist


def test_nothing_else_changes(predictions):
    plain = select_threshold(predictions, objective="risk", target=0.05)
    found = select_threshold(predictions, objective="risk", target=0.05, shortlist=0.95)
    assert found.threshold == plain.threshold
    one, other = found.certificate.to_dict(), plain.certificate.to_dict()
    assert other.pop("shortlist") == ""
    assert one.pop("shortlist") == str(found.shortlist)
    assert {**one, "created": ""} == {**other, "created": ""}
    text = unwrap(str(found.certificate))
    assert unwrap(str(plain.certificate)) == text.replace(f"\n{found.shortlist}", "")
    assert "shortlist" not in plain.policy.decide(np.eye(4))


def test_the_certificate_counts_the_rows_that_chose(predictions):
    apart = Shortlist(0.95, share=0.4)
    found = select_threshold(predictions, objective="risk", target=0.05, shortlist=apart)
    assert found.certificate.n == 1200
    assert found.certificate.is_certified
    assert found.policy.n == 2000
    text = str(found)
    assert text.startswith("CERTIFIED")
    assert "Shortlist: in 95 of 100 deferred cases the right answer is on the list" in text
    assert text == str(AbstentionPolicy.from_json(found.policy.to_json()).certificate)


@pytest.mark.parametrize(
    ("objective", "shortlist", "caveats"),
    [
        (Risk(0.05), Shortlist(0.9, share=0.5, random_state=0), []),
        (Cost(0.2, method="chow"), 0.9, []),  # no row chose that threshold
        (Risk(0.05), 0.9, ["these rows also chose the threshold.*Shortlist\\(0.9, share=0.5\\)"]),
        (Risk(0.05, max_analyses=2), Shortlist(0.9, share=0.5, random_state=0),
         ["several analyses of growing rows are planned"]),
    ],
)  # fmt: skip
def test_what_makes_it_an_estimate_is_said(predictions, objective, shortlist, caveats):
    found = select_threshold(predictions, objective=objective, shortlist=shortlist).shortlist
    assert found.is_exact == (not caveats)
    for said, expected in zip(found.caveats, caveats, strict=True):
        assert re.search(expected, said)
        assert said in str(found)


@pytest.mark.filterwarnings("ignore:subgroup")
def test_subgroups_share_one_list(predictions, rng):
    site = rng.choice(["a", "b", "c"], 2000, p=[0.5, 0.45, 0.05]).astype(object)
    site[:40] = None
    site[np.flatnonzero(site == "c")[2:]] = "a"  # two rows certify nothing
    found = select_threshold(
        predictions, objective="risk", target=0.1, subgroups=site, shortlist=0.9
    )
    limits = {**found.thresholds, None: np.inf}
    sure = predictions.y_proba.max(axis=1)
    deferred = sure < np.array([limits[one] for one in site])
    assert (found.shortlist.least_proba, found.shortlist.n) == by_definition(
        predictions, deferred, 0.9
    )
    assert str(found).endswith(str(found.shortlist))
    assert str(found.policy).endswith(str(found.shortlist))
    restored = AbstentionPolicy.from_json(found.policy.to_json())
    assert restored.decide(np.eye(4)[:2], subgroups=["a", "c"])["shortlist"].isna().tolist() == [
        True, False,
    ]  # fmt: skip
    # Rows without a site are refused later, so that they are not deferred.
    stern = select_threshold(
        predictions,
        objective="risk",
        target=0.1,
        subgroups=Subgroups(site, unseen="raise"),
        shortlist=0.9,
    )
    known = np.array([one is not None for one in site])
    assert stern.shortlist.n == np.sum(deferred & known)


def test_subgroups_with_rows_set_apart(predictions):
    half = Shortlist(0.9, share=0.5, random_state=0)
    apart = half.set_apart(2000)
    site = pd.DataFrame({"a": np.arange(2000) % 2, "b": np.repeat(["x", "y"], 1000)})
    for by in (site, "predicted_class"):
        found = select_threshold(predictions, objective=Risk(0.2), subgroups=by, shortlist=half)
        assert sum(one.certificate.n for one in found.selections.values()) == np.sum(~apart)
        assert found.shortlist.is_exact
    # A guarantee about some rows leaves the list to all.
    found = select_threshold(predictions, objective=Risk(0.2, given_prediction=2), shortlist=half)
    assert found.certificate.n == np.sum(~apart & (predictions.y_pred == 2))
    deferred = apart & (predictions.y_proba.max(axis=1) < found.threshold)
    assert found.shortlist.n == deferred.sum()


def test_classes_that_nobody_can_list_count_as_missed(predictions):
    truth = predictions.y_true.copy()
    full = select_threshold(predictions, objective=Risk(0.15), shortlist=0.9).shortlist
    truth[::40] = -1
    some = replace(predictions, y_true=truth.copy())
    found = select_threshold(some, objective=Risk(0.15), shortlist=0.9).shortlist
    assert found.least_proba < full.least_proba
    truth[::2] = -1
    with pytest.raises(ValueError, match=r"more than 10 % of the deferred rows is unknown"):
        select_threshold(replace(some, y_true=truth), objective=Coverage(0.5), shortlist=0.9)


# What is refused --------------------------------------------------------------------------------


def test_too_few_deferred_rows_are_refused_with_the_number_needed(predictions):
    n = select_threshold(predictions, objective=Coverage(0.97), shortlist=0.5).shortlist.n
    few = Predictions.from_proba([0, 1, 2] * 10, np.eye(3)[[0, 1, 2] * 10])
    some, apart = Shortlist(0.95, share=0.1), "that are deferred and set apart"
    for rows, coverage, shortlist, message in [
        (predictions, 0.97, 0.995, f"199 rows that are deferred, and {n} of these 2000 are"),
        (predictions, 0.97, some, f"at least 19 rows {apart}"),
        (few, 0.5, 0.9, "at least 9 rows that are deferred, and 0 of these"),
    ]:
        with pytest.raises(ValueError, match=message):
            select_threshold(rows, objective=Coverage(coverage), shortlist=shortlist)


def test_what_a_shortlist_cannot_do_is_refused(predictions, rng):
    truth, proba = predictions.y_true, predictions.y_proba
    outcomes, first = Outcomes.of(predictions), [0] + [1] * 9
    accuracy = Best("selective_accuracy")
    for argument, rows in [
        ("three or more classes",
         Predictions.from_proba(rng.integers(0, 2, 50), rng.dirichlet([1, 1], 50))),
        ("sample_weight", replace(predictions, sample_weight=1.0 + truth)),
        ("shortlist", outcomes), ("shortlist", RiskCoverageCurve.from_outcomes(outcomes)),
        ("shortlist", Predictions.from_labels(truth, predictions.y_pred, proba.max(axis=1))),
    ]:  # fmt: skip
        check_refused(argument, lambda: select_threshold(rows, objective=accuracy, shortlist=0.9))  # noqa: B023
    check_refused(
        "shortlist", lambda: select_threshold(predictions, objective=accuracy, shortlist=1)
    )
    one = Predictions.from_proba(first, np.eye(3)[first], labels=range(3))
    stated, late = Coverage(0.5, given_class=0), Shortlist(0.5, share=0.9, random_state=0)
    check_refused("share=0.9", lambda: select_threshold(one, objective=stated, shortlist=late))


# What it is worth: simulated --------------------------------------------------------------------


def chance_of_rank(n, level):
    """Return the exact chance that the next of n + 1 distinct values is at most the quantile."""
    return math.ceil((n + 1) * Fraction(str(level))) / (n + 1)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("n_classes", [3, 10])
@pytest.mark.parametrize("hidden", [0.0, 0.5])  # well calibrated, and far from it
@pytest.mark.parametrize("objective", ["risk", "coverage"])
def test_the_level_is_exact_where_rows_are_set_apart(level, n_classes, hidden, objective):
    """In each cell: the share of new deferred rows, on average over calibrations."""
    rng = np.random.default_rng([round(100 * level), n_classes, round(10 * hidden), len(objective)])
    asked = {"coverage": Coverage(0.6), "risk": Risk(0.1 + 0.3 * hidden, method="empirical")}
    covered, expected = [], []
    for _ in range(300):
        truth, proba = draw(rng, 300, n_classes, 0.2, hidden)
        rows = Predictions.from_proba(truth, proba, labels=range(n_classes))
        half = Shortlist(level, share=0.5, random_state=int(rng.integers(1 << 31)))
        try:
            found = select_threshold(
                rows, objective=asked[objective], shortlist=half, assume="independent"
            )
        except ValueError:  # because of the rows that chose, or of too few that were deferred
            continue
        truth, proba = draw(rng, 1500, n_classes, 0.2, hidden)
        of_truth = proba[np.arange(1500), truth][proba.max(axis=1) < found.threshold]
        covered.append(np.mean(of_truth >= found.shortlist.least_proba))
        expected.append(chance_of_rank(found.shortlist.n, level))
    assert len(covered) > 150
    error = np.std(covered) / math.sqrt(len(covered))
    assert abs(np.mean(covered) - np.mean(expected)) < 3 * error
    assert min(expected) >= level
