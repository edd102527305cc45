import numpy as np
import pandas as pd
import pytest

from skselect.datasets._contents import digest_of

TABLE = pd.DataFrame({
    "number": [1.0, 2.5, np.nan], "text": ["a", None, "b"], "target": [0, 1, 1],
})  # fmt: skip
CHANGES = {
    "value": lambda t: t.assign(number=[1.0, 2.6, np.nan]),
    "missing": lambda t: t.assign(number=[1.0, np.nan, 2.5]),
    "text": lambda t: t.assign(text=["a", None, "c"]),
    "text order": lambda t: t.assign(text=["b", None, "a"]),
    "missing text": lambda t: t.assign(text=["a", "b", None]),
    "label": lambda t: t.assign(target=[0, 1, 0]),
    "name": lambda t: t.rename(columns={"text": "txt"}),
    "column order": lambda t: t[["text", "number", "target"]],
    "row order": lambda t: t.iloc[::-1],
    "fewer rows": lambda t: t.iloc[:2],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_changes_it(change):
    assert digest_of(change(TABLE)) != digest_of(TABLE)


@pytest.mark.parametrize(
    "same",
    [
        lambda t: t.astype({"target": "uint8"}),
        lambda t: t.astype({"target": "float64"}),
        lambda t: t.astype({"text": "category"}),
        lambda t: t.assign(text=t["text"].astype("string")),
        lambda t: t.assign(number=t["number"].astype("Float64")),
        lambda t: t.set_axis([7, 8, 9]),
    ],
)
def test_types_do_not_count(same):
    assert digest_of(same(TABLE)) == digest_of(TABLE)


def test_negative_zero_is_zero():
    assert digest_of(pd.DataFrame({"a": [-0.0]})) == digest_of(pd.DataFrame({"a": [0.0]}))


def test_it_survives_a_file(tmp_path):
    TABLE.to_parquet(tmp_path / "t.parquet")
    assert digest_of(pd.read_parquet(tmp_path / "t.parquet")) == digest_of(TABLE)
