import runpy
from pathlib import Path

import pytest

from skselect.datasets._registry import entry_of, registry


@pytest.mark.parametrize("name", registry())
def test_entries_agree_with_themselves(name):
    entry = entry_of(name)
    assert sum(entry.class_counts.values()) == entry.n_rows
    assert set(entry.categorical) <= set(entry.features)
    assert set(entry.texts) <= set(entry.features) - set(entry.categorical)
    assert set(entry.leaky_features) <= set(entry.features)
    assert len(set(entry.features)) == len(entry.features)
    assert "target" not in entry.features
    assert entry.n_train is None or 0 < entry.n_train < entry.n_rows
    assert entry.positive_class is None or entry.positive_class in entry.classes
    assert 0 < entry.majority < 1
    assert len(entry.digest) == 64
    assert entry.license
    assert entry.citation


def test_the_page_is_written_from_the_registry():
    docs = Path(__file__).resolve().parents[2] / "docs"
    text = runpy.run_path(str(docs / "make_datasets_table.py"))["text"]()
    assert (docs / "datasets.md").read_text() == text
    # Rounded once, from the counts: 11.253 % and 43.651 %.
    shares = {name: 100 * entry_of(name).majority for name in ["mnist", "wine_quality"]}
    assert {name: f"{share:.1f}" for name, share in shares.items()} == {
        "mnist": "11.3", "wine_quality": "43.7",
    }  # fmt: skip
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    assert all(f"| {share:.1f} % |" in rows[name] for name, share in shares.items())
