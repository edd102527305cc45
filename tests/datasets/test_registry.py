import pytest

from skselect.datasets._registry import entry_of, registry


@pytest.mark.parametrize("name", registry())
def test_entries_agree_with_themselves(name):
    entry = entry_of(name)
    assert sum(entry.class_counts.values()) == entry.n_rows
    assert set(entry.categorical) <= set(entry.features)
    assert set(entry.leaky_features) <= set(entry.features)
    assert len(set(entry.features)) == len(entry.features)
    assert "target" not in entry.features
    assert entry.n_train is None or 0 < entry.n_train < entry.n_rows
    assert entry.positive_class is None or entry.positive_class in entry.classes
    assert 0 < entry.majority < 1
    assert len(entry.digest) == 64
    assert entry.license
    assert entry.citation
