from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.tables import make_page
from benchmarks.tables.registry import compute_digest, find_entry, registry


def test_entries_agree_with_themselves():
    for name in registry():
        entry = find_entry(name)
        assert sum(entry.class_counts.values()) == entry.n_rows, name
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
    text = make_page.text()
    assert Path(__file__).with_name("README.md").read_text() == text
    # Rounded once, from the counts: 11.253 % and 43.651 %.
    shares = {name: 100 * find_entry(name).majority for name in ["mnist", "wine_quality"]}
    assert {name: f"{share:.1f}" for name, share in shares.items()} == {
        "mnist": "11.3", "wine_quality": "43.7",
    }  # fmt: skip
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    assert all(f"| {share:.1f} % |" in rows[name] for name, share in shares.items())


TABLE = pd.DataFrame({
    "number": [1.0, 2.5, np.nan], "text": ["a", None, "b"], "target": [0, 1, 1],
})  # fmt: skip
CHANGES = [
    TABLE.assign(number=[1.0, 2.6, np.nan]), TABLE.assign(number=[1.0, np.nan, 2.5]),
    TABLE.assign(text=["b", None, "a"]), TABLE.assign(text=["a", "b", None]),
    TABLE.assign(target=[0, 1, 0]), TABLE.rename(columns={"text": "txt"}),
    TABLE[["text", "number", "target"]], TABLE.iloc[::-1], TABLE.iloc[:2],
]  # fmt: skip


def test_every_change_changes_the_digest_but_no_type_and_no_file_does(tmp_path):
    TABLE.to_parquet(tmp_path / "t.parquet")
    assert compute_digest(TABLE) not in map(compute_digest, CHANGES)
    for same in (
        TABLE.astype({"target": "uint8"}), TABLE.astype({"target": "float64"}),
        TABLE.astype({"text": "category"}), TABLE.astype({"text": "string"}),
        TABLE.astype({"number": "Float64"}), TABLE.set_axis([7, 8, 9]),
        pd.read_parquet(tmp_path / "t.parquet"),
    ):  # fmt: skip
        assert compute_digest(same) == compute_digest(TABLE)
    assert compute_digest(pd.DataFrame({"a": [-0.0]})) == compute_digest(pd.DataFrame({"a": [0.0]}))
