"""Downloads, from a server that exists in the test only."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skselect.datasets import DatasetNotFoundError, load_dataset
from skselect.datasets import _sources as sources
from skselect.datasets._registry import find_entry


@pytest.fixture
def served(monkeypatch, tmp_path):
    """Serve tables by address; everything else has no connection."""
    monkeypatch.delenv("SKSELECT_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "scikit-learn"))
    tables = {}

    def fetched(url, reader):
        assert url in {
            address for address, _ in sources.addresses(find_entry("adult")).values()
        } | {address for address, _ in sources.addresses(find_entry("zoo")).values()}
        for part, table in tables.items():
            if part in url:
                return table
        raise OSError("no connection")

    monkeypatch.setattr(sources, "_fetch", fetched)
    return tables


@pytest.fixture
def zoo(data_folder):
    return pd.read_parquet(data_folder / "zoo.parquet")


def test_the_registered_table_is_kept_and_found_again(served, zoo):
    served["openml"] = zoo.rename(columns={"target": "type"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bunch = load_dataset("zoo")
        assert bunch.source == "OpenML"
        served.clear()
        again = load_dataset("zoo")
    assert again.source == "cache"
    pd.testing.assert_frame_equal(again.frame, bunch.frame)
    assert [file.name for file in sources.cache_folder().iterdir()] == ["zoo.parquet"]


def test_a_copy_in_another_order_is_taken_with_a_warning(served, zoo):
    served["uci"] = zoo.iloc[::-1].reset_index(drop=True).astype({"target": "category"})
    with pytest.warns(UserWarning, match="differ from the registered copy"):
        first = load_dataset("zoo")
    assert first.source == "UCI"
    served.clear()
    with pytest.warns(UserWarning, match="differ from the registered copy"):
        again = load_dataset("zoo")
    pd.testing.assert_frame_equal(again.frame, first.frame)


def test_a_damaged_download_is_refused_later(served, zoo):
    served["uci"] = zoo.iloc[::-1].reset_index(drop=True)
    with pytest.warns(UserWarning, match="registered copy"):
        load_dataset("zoo")
    (file,) = sources.cache_folder().iterdir()
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
    assert not sources.cache_folder().exists()


def test_spellings_of_public_files(served, data_folder):
    ours = pd.read_parquet(data_folder / "adult.parquet")
    theirs = ours.astype(object).where(ours.notna(), " ?").rename(columns={"target": "income"})
    test_part = theirs.index >= 32_561
    theirs.loc[test_part, "income"] = theirs.loc[test_part, "income"] + "."
    served["uci"] = theirs
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bunch = load_dataset("adult")
    assert bunch.source == "UCI"
    pd.testing.assert_frame_equal(bunch.frame, ours, check_dtype=False, check_categorical=False)


def test_addresses():
    found = sources.addresses(find_entry("car"))
    assert found["OpenML"][0] == "https://data.openml.org/datasets/0004/40975/dataset_40975.pq"
    assert found["UCI"][0] == "https://archive.ics.uci.edu/static/public/19/data.csv"
    assert sources.addresses(find_entry("digits")) == {}


def test_reasons():
    class NoAnswerError(OSError):
        response = None

    assert sources._reason(NoAnswerError("Max retries ...")) == "no connection"
    assert sources._reason(ValueError("it has 3 rows\nmore")) == "it has 3 rows"


def test_what_is_fetched_is_read(monkeypatch, tmp_path):
    table = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", "y"]})
    table.to_csv(tmp_path / "data.csv", index=False)
    monkeypatch.setattr(sources, "_check_name_resolves", lambda url: None)
    pooch = pytest.importorskip("pooch")

    def retrieve(url, *, known_hash, path, downloader):
        assert known_hash is None
        assert downloader.progressbar
        return str(tmp_path / "data.csv")

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    fetched = sources._fetch("https://archive.ics.uci.edu/static/public/2/data.csv", pd.read_csv)
    pd.testing.assert_frame_equal(fetched, table)
