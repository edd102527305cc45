"""SelectiveState: the same bits for every order, split and merge tree; a state per subgroup."""

import copy
import pickle
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from skselect import Outcomes, Predictions, Risk, SelectiveState, evaluate, select_threshold
from skselect.inference.intervals import metric_interval
from skselect.metrics._evaluate import SPECS
from skselect.streaming import SubgroupStates, counts
from tests.brute import assert_close, examples
from tests.refusals import check_refused, refusals

ON_CURVES = [
    name for name, spec in SPECS.items()
    if spec.needs == "curve" and name not in ("risk_at_coverage", "coverage_at_risk",
                                              "review_rate_at_reliability")
]  # fmt: skip

CONFIDENCE = (
    st.floats(0, 1)
    | st.floats(0, 1, width=32)
    | st.sampled_from([0.0, 0.25, 0.5, 1.0, 1 - 1e-12, np.nextafter(1, 0), 1e-300])
)
ROWS = st.lists(st.tuples(CONFIDENCE, st.booleans()), min_size=1, max_size=40)


def columns(rows):
    return (np.array(column, dtype=float) for column in zip(*rows, strict=True))


def quietly(source, metrics):
    """Evaluate; undefined values are no news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = source.evaluate(metrics) if hasattr(source, "evaluate") else None
        return evaluate(source, metrics) if found is None else found


def split(confidence, loss, cuts):
    """Return a state of each piece of the rows."""
    edges = [0, *sorted({c % len(loss) for c in cuts}), len(loss)]
    return [
        SelectiveState().update_confidence(confidence[a:b], loss[a:b])
        for a, b in pairwise(edges)
        if b > a
    ]


@examples(50)
@given(ROWS, st.lists(st.integers(0, 100), max_size=4), st.randoms(use_true_random=False))
def test_every_order_split_and_merge_gives_the_bits_of_the_rows_in_memory(rows, cuts, random):
    confidence, loss = columns(rows)
    expected = quietly(Outcomes(loss, confidence), ON_CURVES)
    order = np.array(random.sample(range(len(loss)), len(loss)))
    states = split(confidence[order], loss[order], cuts)
    random.shuffle(states)
    while len(states) > 1:  # a merge tree of no particular form
        k = random.randint(2, len(states))
        states = [states[0].merge(*states[1:k]), *states[k:]]
    found = quietly(states[0], ON_CURVES)
    assert found.to_numpy().tobytes() == expected.to_numpy().tobytes()
    assert states[0].n_rows == len(loss)
    assert states[0].n_errors == loss.sum()


@pytest.mark.parametrize("kind", ["float32", "float64", "tied", "both"])
def test_many_rows_go_through_runs_and_pages_to_the_same_bits(kind, monkeypatch):
    monkeypatch.setattr(counts, "PAGE", 1 << 10)
    monkeypatch.setattr(counts, "PAGED_FROM", 1000)
    monkeypatch.setattr(counts, "SORTED_TOGETHER", 3000)
    rng = np.random.default_rng(0)
    n = 24_000
    confidence = {
        "float32": lambda: rng.uniform(0.5, 1, n).astype(np.float32),
        "float64": lambda: rng.random(n),
        "tied": lambda: rng.integers(0, 50, n) / 64,
        "both": lambda: np.append(rng.uniform(0.5, 1, n // 2).astype("f4"), rng.random(n // 2)),
    }[kind]()
    loss = rng.random(n) < 0.1
    state, other = SelectiveState(), SelectiveState()
    for rows in np.array_split(np.arange(n), 23):
        (state if rows[0] % 2 else other).update_confidence(confidence[rows], loss[rows])
    merged = pickle.loads(pickle.dumps(state)).merge(other)
    assert bool(merged.counts.narrow.pages) == (kind in ("float32", "both"))
    expected = evaluate(Outcomes(loss, confidence), ON_CURVES)
    assert merged.evaluate(ON_CURVES).to_numpy().tobytes() == expected.to_numpy().tobytes()
    curve = merged.finalize()
    assert curve.to_frame().equals(type(curve).from_outcomes(Outcomes(loss, confidence)).to_frame())


def test_metrics_of_rows_agree_to_rounding(rng):
    confidence, loss = np.round(rng.random(500), 2), rng.random(500) < 0.3
    names = ["smooth_ece", "top_label_brier", "debiased_l2", "ecd"]
    found = SelectiveState().update_confidence(confidence, loss).evaluate(names)
    assert_close(found, evaluate(Outcomes(loss, confidence), names), rel=1e-10)


def test_probabilities_are_scored_as_everywhere_else(rng):
    proba = rng.dirichlet(np.ones(3), 300)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 300)]
    names = ["aurc", "cwsa_plus", "csr"]
    state = SelectiveState(labels=["a", "b", "c"])
    for rows in np.array_split(np.argsort(y), 5):  # pieces without every class
        state.update(y[rows], proba[rows])
    expected = evaluate(Predictions.from_proba(y, proba), names)
    assert state.evaluate(names).equals(expected)
    margin = SelectiveState(confidence="margin", labels=state.labels).update(y, proba)
    expected = evaluate(Predictions.from_proba(y, proba), ["aurc"], confidence="margin")
    assert margin.evaluate(["aurc"]).equals(expected)


def test_merging_and_copying_change_none_of_the_states():
    one = SelectiveState().update_confidence([0.9, 0.8], [0, 1])
    two = SelectiveState().update_confidence([0.7], [1])
    merged = one.merge(two)
    merged.update_confidence([0.1], [1])
    one.update_confidence([0.95], [0])
    copy.copy(two).update_confidence([0.8], [1])
    copy.deepcopy(two).update_confidence([0.6], [1])
    assert (one.n_rows, two.n_rows, merged.n_rows) == (3, 1, 4)
    assert one.to_arrays()["confidence"].tolist() == [0.95, 0.9, 0.8]
    assert two.to_arrays()["confidence"].tolist() == [0.7]
    assert merged.to_arrays()["confidence"].tolist() == [0.9, 0.8, 0.7, 0.1]


def test_one_column_is_the_probability_of_the_second_class():
    p, y = [0.1, 0.9, 0.6, 0.7], ["no", "yes", "yes", "no"]
    expected = evaluate(Predictions.from_proba(y, p, pos_label="yes"), ["aurc"])
    assert SelectiveState(labels=["no", "yes"]).update(y, p).evaluate(["aurc"]).equals(expected)
    turned = SelectiveState(labels=["yes", "no"]).update(y, 1 - np.array(p))
    assert turned.evaluate(["aurc"]).equals(expected)


def test_counts_travel_as_arrays_and_come_back(rng):
    confidence, loss = np.round(rng.random(400), 2), rng.random(400) < 0.3
    state = SelectiveState().update_confidence(confidence, loss)
    arrays = state.to_arrays()
    grouped = pd.DataFrame({"c": confidence, "e": loss}).groupby("c")["e"].agg(["size", "sum"])
    grouped = grouped.sort_index(ascending=False)
    assert arrays["confidence"].tolist() == grouped.index.tolist()
    assert arrays["n"].tolist() == grouped["size"].tolist()
    assert arrays["n_errors"].tolist() == grouped["sum"].tolist()
    again = SelectiveState.from_counts(**arrays)
    assert again.evaluate().equals(state.evaluate())
    twice = {name: np.tile(values, 2) for name, values in arrays.items()}
    assert SelectiveState.from_counts(**twice).n_rows == 800


def test_a_threshold_is_certified_on_counts_as_on_rows(rng):
    confidence = rng.uniform(0.5, 1, 3000)
    loss = rng.random(3000) < (1 - confidence) / 4
    state = SelectiveState().update_confidence(confidence, loss)
    for options in ({"objective": "risk", "target": 0.05}, {"objective": "cost", "target": 0.1}):
        found = select_threshold(state.finalize(), **options)
        expected = select_threshold(Outcomes(loss, confidence), **options)
        assert found.threshold == expected.threshold
        assert found.coverage == expected.coverage
        if expected.certificate is not None:
            drop = {"caveats": None, "created": None}
            assert found.certificate.is_certified
            assert "only their sums are known" in found.certificate.caveats[0]
            assert found.certificate.to_dict() | drop == expected.certificate.to_dict() | drop
        policy = found.to_policy(["no", "yes"], confidence="margin")
        assert (policy.threshold, policy.certificate) == (found.threshold, found.certificate)
        assert (policy.confidence, policy.classes.tolist()) == ("margin", ["no", "yes"])


def test_a_curve_has_its_losses_already():
    curve = SelectiveState().update_confidence([0.9, 0.8], [0, 1]).finalize()
    for argument, risk, options in [
        ("loss", Risk(0.5, loss="cost"), {}), ("confidence", Risk(0.5), {"confidence": "margin"}),
        ("subgroups", Risk(0.5), {"subgroups": [1, 2]}),
        ("assume", Risk(0.5), {"assume": "independent"}),
    ]:  # fmt: skip
        check_refused(argument, lambda r=risk, o=options: select_threshold(curve, objective=r, **o))


@pytest.mark.parametrize("metric", ["aurc", "eaurc", "augrc", "failure_auroc"])
@pytest.mark.parametrize("tied", [False, True])
def test_intervals_are_those_of_the_rows(metric, tied, rng):
    p = np.round(rng.random(800), 2) if tied else rng.random(800)
    y = (rng.random(800) < p).astype(int)
    expected = metric_interval(y, p, metric)
    found = SelectiveState().update(y, np.column_stack([1 - p, p])).interval(metric)
    for name in ("estimate", "low", "high", "standard_error"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9)


# Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "act"),
    [
        ("confidence", lambda s: s.update_confidence([0.5, 1.5], [0, 1])),
        ("loss", lambda s: s.update_confidence([0.5, 0.6], [0, 0.5])),
        ("confidence", lambda s: s.update_confidence([0.5, 0.6], [0])),
        ("confidence", lambda s: s.update_confidence([], [])),
        ("y_proba", lambda s: s.update([0, 1], [[0.5, 0.6], [0.5, 0.5]])),
        ("merge", lambda s: s.merge(3)),
        ("confidence", lambda s: s.merge(SelectiveState(confidence="margin"))),
        ("cw_f1", lambda s: s.evaluate(["cw_f1"])),
    ],
)
def test_what_is_refused_is_named_and_leaves_the_state_as_it_was(argument, act):
    state = SelectiveState().update_confidence([0.9], [1])
    check_refused(argument, act, state)
    assert (state.n_rows, state.n_errors) == (1, 1)
    assert state.to_arrays()["n"].tolist() == [1]


ONE, STATES = SelectiveState(labels=[0, 1]), SubgroupStates()
OLD = SelectiveState().__getstate__() | {"version": 2}


@refusals([
    ("n_errors", lambda: SelectiveState.from_counts([0.5], [1], [2])),
    ("n", lambda: SelectiveState.from_counts([0.5], [1.5], [1])),
    ("n", lambda: SelectiveState.from_counts([0.5, 0.6], [1], [1])),
    ("counted no rows", lambda: SelectiveState().finalize()),
    ("labels", lambda: ONE.merge(SelectiveState(labels=[1, 0]))),
    ("merge", lambda: STATES.merge(5)),
    ("confidence", lambda: STATES.merge(SubgroupStates(confidence="margin"))),
    ("counted no rows", STATES.evaluate),
    ("subgroups", lambda: STATES.update_confidence([0.5], [0], subgroups={"a": [1], "b": [2]})),
    ("version 2", lambda: SelectiveState().__setstate__(OLD)),
])  # fmt: skip
def test_a_state_that_cannot_be_is_refused(argument, call):
    check_refused(argument, call)


# Map and reduce elsewhere -----------------------------------------------------------------


def test_states_travel_from_workers_with_read_only_arrays_and_empty_parts(rng):
    """As Spark and Ray send them: pickled, of arrays that cannot be written, some of no rows."""
    confidence = rng.random(5000).astype(np.float32)
    error = rng.random(5000) > confidence
    whole = SelectiveState().update_confidence(confidence, error)
    confidence.flags.writeable = error.flags.writeable = False
    sent = [pickle.dumps(SelectiveState(), protocol=5)]
    for rows in np.array_split(np.arange(5000), 7):
        one = SelectiveState().update_confidence(confidence[rows], error[rows])
        sent.append(pickle.dumps(one, protocol=5))
    states = list(map(pickle.loads, sent))
    found = states[0].merge(*states[1:]).evaluate(["aurc", "augrc"])
    assert found.equals(whole.evaluate(["aurc", "augrc"]))


def test_a_threshold_of_counted_rows_has_a_policy_where_the_state_rated_them():
    y, proba = [0, 1] * 60, [[0.9, 0.1], [0.4, 0.6]] * 60
    state = SelectiveState().update(y, proba)
    policy = state.select_threshold(objective="risk", target=0.1).policy
    assert (policy.classes.tolist(), policy.confidence) == ([0, 1], "max_proba")
    margin = SelectiveState(confidence="margin").update(y, proba)
    assert margin.select_threshold(objective="risk", target=0.1).policy.confidence == "margin"
    own = SelectiveState(labels=[0, 1]).update_confidence([0.9, 0.6] * 60, [0, 0] * 60)
    for counted in (own, own.merge(state), state.merge(own), pickle.loads(pickle.dumps(own))):
        assert counted.select_threshold(objective="risk", target=0.1).policy is None
    merged = pickle.loads(pickle.dumps(state)).merge(state)
    assert merged.select_threshold(objective="risk", target=0.1).policy is not None


# One state per subgroup ---------------------------------------------------------------------------


def test_each_subgroup_and_the_total_are_those_of_their_rows(rng):
    confidence, loss = rng.random(300), rng.random(300) < 0.3
    place = rng.choice(["north", "south", "west"], 300)
    one, two = SubgroupStates(), SubgroupStates()
    one.update_confidence(confidence[:100], loss[:100], subgroups=place[:100])
    two.update_confidence(confidence[100:], loss[100:], subgroups=place[100:])
    merged = one.merge(two)
    assert sorted(merged.states) == ["north", "south", "west"]
    for name, state in merged.states.items():
        rows = place == name
        alone = SelectiveState().update_confidence(confidence[rows], loss[rows])
        assert state.evaluate(["aurc"]).equals(alone.evaluate(["aurc"]))
    whole = SelectiveState().update_confidence(confidence, loss)
    assert merged.total().evaluate(["aurc"]).equals(whole.evaluate(["aurc"]))
    table = merged.evaluate(["aurc"])
    assert table.index.tolist() == ["north", "south", "west"]
    south = merged.states["south"].evaluate(["aurc"])
    assert table.loc["south"].equals(south.rename("south"))


def test_missing_subgroups_are_one_too():
    states = SubgroupStates().update_confidence([0.9, 0.8], [0, 1], subgroups=["a", None])
    assert {state.n_rows for state in states.states.values()} == {1}
    other = SubgroupStates().update_confidence([0.7], [1], subgroups=[float("nan")])
    merged = states.merge(other)
    assert set(merged.states) == {"a", None}
    assert merged.states[None].n_rows == 2


def test_neither_rows_nor_labels_of_a_bad_batch_are_kept():
    states, proba = SubgroupStates(), [[0.9, 0.1], [0.2, 0.8]]
    check_refused("subgroups", lambda: states.update([0, 1], proba, subgroups=["a"]))
    bad = {"confidence": [0.9, 1.8], "loss": [0, 1], "subgroups": ["a", "b"]}
    check_refused("confidence", lambda: states.update_confidence(**bad))
    assert states.states == {}
    states.update(["x", "y"], proba, subgroups=["a", "b"])
    assert states.template.labels.tolist() == ["x", "y"]


def test_subgroups_may_be_a_tensor():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    states = SubgroupStates().update_confidence(
        [0.9, 0.8, 0.7], [0, 1, 0], subgroups=torch.tensor([0, 1, 0])
    )
    assert {key: state.n_rows for key, state in states.states.items()} == {0: 2, 1: 1}
