"""SubgroupStates: each subgroup is a state of its own rows."""

import numpy as np
import pytest

from skselect import SelectiveState
from skselect.streaming import SubgroupStates

NAMES = ["aurc", "selective_risk"]


def some_rows():
    rng = np.random.default_rng(0)
    confidence, loss = rng.random(300), rng.random(300) < 0.3
    return confidence, loss, rng.choice(["north", "south", "west"], 300)


@pytest.mark.parametrize("mode", ["exact", "certified"])
def test_each_subgroup_and_the_total_are_those_of_their_rows(mode):
    confidence, loss, place = some_rows()
    one, two = SubgroupStates(mode), SubgroupStates(mode)
    one.update_confidence(confidence[:100], loss[:100], subgroups=place[:100])
    two.update_confidence(confidence[100:], loss[100:], subgroups=place[100:])
    merged = one.merge(two)
    assert sorted(merged.states) == ["north", "south", "west"]
    for name, state in merged.states.items():
        rows = place == name
        alone = SelectiveState(mode).update_confidence(confidence[rows], loss[rows])
        assert state.evaluate(NAMES[:1]).equals(alone.evaluate(NAMES[:1]))
    whole = SelectiveState(mode).update_confidence(confidence, loss)
    assert merged.total().evaluate(NAMES[:1]).equals(whole.evaluate(NAMES[:1]))


def test_the_table_has_a_row_per_subgroup():
    confidence, loss, place = some_rows()
    table = SubgroupStates().update_confidence(confidence, loss, subgroups=place).evaluate(NAMES)
    assert table.index.tolist() == ["north", "south", "west"]
    assert table.loc["south", "selective_risk"] == pytest.approx(
        loss[(place == "south") & (confidence >= 0.5)].mean()
    )


def test_missing_subgroups_are_one_too():
    states = SubgroupStates().update_confidence([0.9, 0.8], [0, 1], subgroups=["a", None])
    assert {state.n_rows for state in states.states.values()} == {1}
    other = SubgroupStates().update_confidence([0.7], [1], subgroups=[float("nan")])
    merged = states.merge(other)
    assert set(merged.states) == {"a", None}
    assert merged.states[None].n_rows == 2


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.merge(5), "merge takes other SubgroupStates"),
        (lambda s: s.merge(SubgroupStates("certified")), "differ in mode"),
        (lambda s: s.evaluate(), "has counted no rows"),
        (
            lambda s: s.update_confidence([0.5], [0], subgroups={"a": [1], "b": [2]}),
            "must be one value per row",
        ),
    ],
)
def test_what_does_not_fit_is_refused(act, message):
    with pytest.raises(ValueError, match=message):
        act(SubgroupStates())


def test_labels_are_kept_only_with_the_rows():
    states, proba = SubgroupStates(), [[0.9, 0.1], [0.2, 0.8]]
    with pytest.raises(ValueError, match="subgroups"):
        states.update([0, 1], proba, subgroups=["a"])
    states.update(["x", "y"], proba, subgroups=["a", "b"])
    assert states.template.labels.tolist() == ["x", "y"]


def test_a_bad_row_counts_nowhere():
    states = SubgroupStates()
    with pytest.raises(ValueError, match="confidence must lie"):
        states.update_confidence([0.9, 1.8], [0, 1], subgroups=["a", "b"])
    assert states.states == {}


def test_subgroups_may_be_a_tensor():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    states = SubgroupStates().update_confidence(
        [0.9, 0.8, 0.7], [0, 1, 0], subgroups=torch.tensor([0, 1, 0])
    )
    assert {key: state.n_rows for key, state in states.states.items()} == {0: 2, 1: 1}


def test_one_column_is_the_probability_of_the_second_class_here_too():
    p, y = [0.1, 0.9, 0.6, 0.7], ["no", "yes", "yes", "no"]
    states = SubgroupStates(labels=["yes", "no"])
    states.update(y, 1 - np.array(p), subgroups=["a", "b", "a", "b"])
    whole = SelectiveState(labels=["yes", "no"]).update(y, 1 - np.array(p))
    assert states.total().evaluate(NAMES).equals(whole.evaluate(NAMES))
