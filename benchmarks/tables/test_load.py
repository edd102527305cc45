import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.tables import DatasetNotFoundError, list_datasets, load as loading, load_dataset
from benchmarks.tables.registry import find_entry

#: Real data sets beside the checkout.
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
EMBEDDED = ["breast_cancer", "digits", "iris", "wine"]


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch, tmp_path):
    """No folder, an empty cache, and no network."""
    monkeypatch.delenv("SKSELECT_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "scikit-learn"))

    def offline(_url, **_):
        raise OSError("no connection")

    monkeypatch.setattr(loading, "_check_name_resolves", offline)


@pytest.fixture
def data_folder():
    if not DATA.is_dir():
        pytest.skip("the folder ../shared/data with real data sets is not there")
    return DATA


@pytest.fixture
def manifest(data_folder):
    return json.loads((data_folder / "manifest.json").read_text())


@pytest.mark.parametrize("most_rows", [5000, pytest.param(10**9, marks=pytest.mark.slow)])
def test_every_table_equals_its_manifest(most_rows, manifest, data_folder):
    assert set(list_datasets().index) == set(manifest) | set(EMBEDDED)
    for name, known in manifest.items():
        if known["n_rows"] > most_rows:
            continue
        bunch = load_dataset(name, data_home=data_folder)
        X, y = bunch.data, bunch.target
        assert X.shape == (known["n_rows"], known["n_features"]), name
        counts = {str(label): int(n) for label, n in y.value_counts().items()}
        assert counts == known["class_counts"], name
        assert bunch.categorical_names == known["categorical"], name
        assert int(X.isna().sum().sum()) == known["n_missing"], name
        assert int(bunch.frame.duplicated().sum()) == known["n_duplicate_rows"], name
        assert bunch.positive_class == known.get("positive_class"), name
        assert bunch.n_train == known.get("n_train"), name
        assert bunch.target_names == sorted(y.unique().tolist()), name
        assert bunch.license == known["license"], name
        assert bunch.citation == known["citation"], name
        assert set(bunch.leaky_features) <= set(X.columns), name
        texts = [
            column for column in X.columns.difference(known["categorical"])
            if not pd.api.types.is_numeric_dtype(X[column])
        ]  # fmt: skip
        assert list_datasets().loc[name, "n_text"] == len(texts), name


def test_list_datasets_equals_the_manifest(manifest):
    table = list_datasets()
    for name, known in manifest.items():
        row = table.loc[name]
        assert (row["n_rows"], row["n_classes"]) == (known["n_rows"], known["n_classes"])
        # Not rounded, so that a page can round it: mnist has 11.253 %, 11.3 and not 11.2.
        assert row["majority"] == max(known["class_counts"].values()) / known["n_rows"]
        openml, uci = known.get("openml_id"), known.get("uci_id")
        assert row["openml"] == openml if openml else pd.isna(row["openml"])
        assert pd.isna(row["uci"]) or row["uci"] == uci


def test_folders_are_searched_in_order(data_folder, tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    for folder in [first, second, loading.cache_folder()]:
        folder.mkdir(exist_ok=True, parents=True)
        shutil.copy(data_folder / "zoo.parquet", folder)
    monkeypatch.setenv("SKSELECT_DATA", str(second))
    assert load_dataset("zoo", data_home=first).source == "data_home"
    assert load_dataset("zoo").source == "SKSELECT_DATA"
    assert list_datasets().loc["zoo", "found"] == "SKSELECT_DATA"
    monkeypatch.delenv("SKSELECT_DATA")
    assert load_dataset("zoo").source == "cache"


@pytest.mark.parametrize("name", ["adult", "mnist", "accelerometer", "covertype_small"])
def test_offline_it_says_what_was_tried(name, tmp_path):
    pytest.importorskip("pooch", reason='needs `pip install -e ".[benchmarks]"`')
    mine = tmp_path / "mine"
    mine.mkdir()
    with pytest.raises(DatasetNotFoundError, match="SKSELECT_DATA") as raised:
        load_dataset(name, data_home=mine)
    message = str(raised.value)
    assert f"data_home: no {name}.parquet in {mine}" in message
    assert "cache: no" in message
    assert "breast_cancer, digits, iris, wine" in message
    assert list(mine.iterdir()) == []


def test_a_changed_value_and_a_truncated_file_are_refused(data_folder, tmp_path):
    whole, copy = data_folder / "zoo.parquet", tmp_path / "zoo.parquet"
    table = pd.read_parquet(whole)
    table.loc[3, "legs"] += 1
    table.to_parquet(copy)
    with pytest.raises(ValueError, match=r"zoo\.parquet does not hold .* SHA-256"):
        load_dataset("zoo", data_home=tmp_path)
    copy.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"zoo\.parquet cannot be read as Parquet"):
        load_dataset("zoo", data_home=tmp_path)


@pytest.mark.parametrize(
    ("name", "message"), [("adlut", "Did you mean 'adult'"), ("", "one of the 51"), (3, "got 3")]
)
def test_unknown_names(name, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(name)


def test_dropna_says_what_it_leaves(data_folder):
    with pytest.raises(ValueError, match=r"no row of 'sick'.*'TBG'"):
        load_dataset("sick", data_home=data_folder, dropna=True)
    bunch = load_dataset("soybean", data_home=data_folder, dropna=True)
    assert bunch.target_names == sorted(bunch.target.unique())
    assert f"Here: the {len(bunch.data):,} rows without missing cells." in bunch.DESCR


@pytest.fixture
def served(monkeypatch):
    """Serve tables by address; everything else has no connection."""
    tables = {}

    def fetched(url, _reader):
        assert url in {address for address, _ in loading.addresses(find_entry("zoo")).values()}
        for part, table in tables.items():
            if part in url:
                return table
        raise OSError("no connection")

    monkeypatch.setattr(loading, "_fetch", fetched)
    return tables


@pytest.fixture
def zoo(data_folder):
    return pd.read_parquet(data_folder / "zoo.parquet")


def test_the_registered_table_is_kept_and_found_again(served, zoo):
    served["openml"] = zoo.rename(columns={"target": "type"})
    bunch = load_dataset("zoo")
    assert bunch.source == "OpenML"
    served.clear()
    again = load_dataset("zoo")
    assert again.source == "cache"
    pd.testing.assert_frame_equal(again.frame, bunch.frame)
    assert [file.name for file in loading.cache_folder().iterdir()] == ["zoo.parquet"]


def test_a_copy_in_another_order_is_taken_with_a_warning_and_refused_once_damaged(served, zoo):
    served["uci"] = zoo.iloc[::-1].reset_index(drop=True).astype({"target": "category"})
    with pytest.warns(UserWarning, match="differ from the registered copy"):
        first = load_dataset("zoo")
    assert first.source == "UCI"
    served.clear()
    with pytest.warns(UserWarning, match="differ from the registered copy"):
        again = load_dataset("zoo")
    pd.testing.assert_frame_equal(again.frame, first.frame)
    (file,) = loading.cache_folder().iterdir()
    table = pd.read_parquet(file)
    table.loc[0, "legs"] = 99
    table.to_parquet(file)
    with pytest.raises(ValueError, match="SHA-256"):
        load_dataset("zoo")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda t: t.iloc[1:], "it has 100 rows and 17 columns, 'zoo' has 101 and 17"),
        (lambda t: t.drop(columns="legs"), "101 rows and 16 columns"),
        (lambda t: t.assign(target="bird"), "its class counts are {'bird': 101}"),
        (lambda t: t.assign(hair=t["hair"].astype(object).where(t.index > 0)), "missing cells"),
    ],
)
def test_another_table_is_refused_with_its_reason(served, zoo, spoil, reason):
    served["openml"] = spoil(zoo)
    with pytest.raises(DatasetNotFoundError) as raised:
        load_dataset("zoo")
    assert reason in str(raised.value)
    assert not loading.cache_folder().exists()
