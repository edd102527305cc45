"""skselect.streaming.parquet: files are counted as the rows in memory would be."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skselect import Outcomes, Predictions, evaluate, evaluate_parquet
from skselect.streaming import parquet as module, parquet_state
from tests.refusals import check_refused

NAMES = ["aurc", "augrc", "cwsa_plus", "csr"]


@pytest.fixture
def folder(tmp_path, rng):
    """Three files of labels, probabilities, confidences and errors; one has no rows."""
    proba = rng.dirichlet(np.ones(3), 300).astype(np.float32)
    proba /= proba.sum(axis=1, keepdims=True)
    truth = np.array(["a", "b", "c"])[rng.integers(0, 3, 300)]
    table = pd.DataFrame(proba, columns=["p_a", "p_b", "p_c"])
    table.insert(0, "label", truth)
    table["confidence"] = proba.max(axis=1)
    table["error"] = truth != np.array(["a", "b", "c"])[proba.argmax(axis=1)]
    (tmp_path / "deep").mkdir()
    table[:100].to_parquet(tmp_path / "part-1.parquet")
    table[100:100].to_parquet(tmp_path / "part-2.parquet")
    table[100:].to_parquet(tmp_path / "deep" / "part-3.parquet")
    return tmp_path, table


def by_class(**more):
    columns = ["p_a", "p_b", "p_c"]
    return {"y_true": "label", "y_proba": columns, "labels": ["a", "b", "c"], **more}


@pytest.mark.parametrize("batch", [7, 1 << 20])
def test_files_give_the_bits_of_the_rows_in_memory(folder, batch, monkeypatch):
    path, table = folder
    monkeypatch.setattr(module, "_BATCH", batch)
    proba = table[["p_a", "p_b", "p_c"]].to_numpy()
    expected = evaluate(Predictions.from_proba(table["label"], proba), NAMES)
    assert evaluate_parquet(path, NAMES, **by_class(progress=False)).equals(expected)
    found = evaluate_parquet(path, NAMES, confidence="confidence", loss="error", progress=False)
    assert found.equals(evaluate(Outcomes(table["error"], table["confidence"]), NAMES))


def test_files_folders_and_patterns_name_each_file_once(folder, monkeypatch):
    path, _ = folder
    every = module.find_files([path, path / "part-1.parquet", str(path / "part-*.parquet")])
    assert [file.name for file in every] == ["part-3.parquet", "part-1.parquet", "part-2.parquet"]
    monkeypatch.chdir(path)
    names = ["part-1.parquet", path / "part-1.parquet", "deep/../part-1.parquet"]
    assert len(module.find_files(names)) == 1
    (path / "link.parquet").symlink_to(path / "part-1.parquet")
    assert len(module.find_files(["part-1.parquet", "link.parquet"])) == 1
    (path / "part-1.parquet").rename(path / "run[1].parquet")  # no sign of a pattern here
    assert [file.name for file in module.find_files(path / "run[1].parquet")] == ["run[1].parquet"]


def test_a_file_that_is_none_or_empty_or_lacks_values_is_named(tmp_path, folder):
    file = tmp_path / "there" / "x.parquet"
    file.parent.mkdir()
    how, classes = {"confidence": "c", "loss": "e"}, by_class()
    missing = pa.table({"c": [0.5, None], "e": [0, 1]})
    twice = pa.table([[0.5], [0.6], [0]], names=["c", "c", "e"])
    for write, paths, columns, words in [
        (None, file.parent, how, "is not a file"),
        (None, [], how, "paths is empty"),
        (lambda: file.write_text("no"), file, how, "x.parquet cannot be read as Parquet"),
        (
            lambda: pq.write_table(missing, file),
            file,
            how,
            "x.parquet: the column 'c' has 1 missing",
        ),
        (lambda: pq.write_table(twice, file), file, how, "several columns of the name"),
        (None, folder[0] / "part-2.parquet", classes, "part-2.parquet has no rows"),
    ]:
        if write:
            write()
        asked = {"paths": paths, "metrics": NAMES, "progress": False} | columns
        check_refused(words, lambda a=asked: evaluate_parquet(**a))
    nowhere = {"paths": folder[0] / "nowhere", "metrics": ["aurcc"]}  # refused before it is read
    check_refused("'aurcc'", lambda: evaluate_parquet(**nowhere, **classes))


def test_a_progress_bar_counts_the_rows_on_a_terminal_and_not_in_a_log(folder, terminal, capsys):
    parquet_state(folder[0], **by_class())
    assert capsys.readouterr() == ("", "")
    shown = terminal()
    parquet_state(folder[0], **by_class(progress=False))
    assert shown.getvalue() == ""
    parquet_state(folder[0], **by_class())
    assert "/300 " in shown.getvalue()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("named", "change"), [
    ("labels", {"labels": None}), ("y_true", {"y_true": None}),
    ("loss", {"confidence": "confidence", "loss": "error"}),
    ("part-3.parquet has no column 'truth'", {"y_true": "truth"}),
    ("part-3.parquet: y_proba", {"y_proba": ["p_a", "p_b"], "labels": ["a", "b"]}),
])  # fmt: skip
def test_what_does_not_fit_is_named_with_its_file(folder, named, change):
    asked = by_class(progress=False) | change
    check_refused(named, lambda: evaluate_parquet(folder[0], **asked))
