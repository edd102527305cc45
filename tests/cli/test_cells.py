"""One meaning of a cell in every command: answered or not, missing or a word, number or text."""

import numpy as np
import pandas as pd
import pytest

from skselect import AbstentionPolicy

ANSWERS = "--answer said --confidence-column score"
MONITOR = "--time decided --label-delay 1D --since 2025-01-01 --now 2026-06-01 --max-age 999D"
#: What a language model may say; only the empty cell is no answer.
SPELLINGS = [
    "", "None", "none", "NONE", "N/A", "n/a", "NA", "na", "#N/A", "<NA>", "nan", "NaN", "null",
    "NULL", "-", " None ", "No", "0", "nil", "missing",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def judged(rng):
    """Return judged answers of two spellings, named, with times and confidences."""
    n = 240
    score = np.round(rng.random(n), 4)
    is_right = rng.random(n) < 0.5 + 0.5 * score
    return pd.DataFrame({
        "id": [f"q{k}" for k in range(n)],
        "said": rng.choice(["odd", "Paris"], n),
        "score": score,
        "verdict": np.where(is_right, "right", "wrong"),
        "decided": pd.date_range("2026-01-01", periods=n, freq="h").astype(str),
    })  # fmt: skip


def counted(text, what):
    """Return the number before some words."""
    return int(text.partition(what)[0].split()[-1].replace(",", ""))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_command_counts_the_same_answers(spelling, judged, run):
    judged["said"] = judged["said"].replace("odd", spelling)
    judged.to_csv("t.csv", index=False)
    run(f"tune t.csv --verdict verdict {ANSWERS} --target .4 --out p.json")
    certificate = AbstentionPolicy.from_json("p.json").certificate
    answered = judged["said"] != ""
    assert certificate.n == answered.sum()

    run("apply t.csv --policy p.json --out d.csv")
    accepted = pd.read_csv("d.csv", keep_default_na=False)["accepted"]
    threshold = AbstentionPolicy.from_json("p.json").threshold
    np.testing.assert_array_equal(accepted, answered & (judged["score"] >= threshold))
    assert certificate.n_accepted == accepted.sum()

    run("evaluate t.csv --verdict verdict --policy p.json --csv m.csv", code=5)
    metrics = pd.read_csv("m.csv").set_index("metric")["value"]
    assert metrics["coverage"] * answered.sum() == pytest.approx(accepted.sum())
    told = run(f"monitor t.csv --verdict verdict --policy p.json --id id {MONITOR}").out
    assert counted(" ".join(told.split()), " cases of known outcome") == accepted.sum()


def test_rows_without_an_answer_are_never_judged_next(judged, run):
    judged["verdict"] = ""
    judged["said"] = judged["said"].replace("odd", "")
    judged.to_csv("t.csv", index=False)
    unjudged = "--unjudged wrong --next 300 --out-next n.csv"
    run(f"tune t.csv --verdict verdict {ANSWERS} --target .4 {unjudged} --out p.json", code=5)
    batch = pd.read_csv("n.csv")
    expected = judged[judged["said"] == "Paris"].sort_values("score", ascending=False)
    assert batch["id"].tolist() == expected["id"].tolist()[: len(batch)]


def test_a_word_is_no_missing_label_where_classes_are_text(judged, run, refuse):
    judged["truth"] = judged["said"]
    judged.to_csv("t.csv", index=False)
    run(f"tune t.csv --label truth {ANSWERS} --target .4 --out p.json")
    judged.loc[7, "truth"] = "None"
    judged.to_csv("t.csv", index=False)
    monitor = f"monitor t.csv --label truth --policy p.json --id id {MONITOR} --unlabelled correct"
    assert "column 'truth' must hold one of the classes ['Paris', 'odd']" in refuse(monitor)
    judged.loc[7, "truth"] = ""
    judged.to_csv("t.csv", index=False)
    assert "note" not in run(monitor).err


def test_a_word_is_a_missing_number_and_is_counted(judged, run):
    judged["said"] = (judged["said"] == "odd").astype(int)
    judged["truth"] = judged["said"].astype(str)
    judged.to_csv("t.csv", index=False)
    run(f"tune t.csv --label truth {ANSWERS} --target .4 --out p.json")
    judged.loc[:2, "truth"] = "NA"
    judged.loc[5, "score"] = np.nan
    judged.to_csv("t.csv", index=False, na_rep="n/a")
    told = run(f"monitor t.csv --label truth --policy p.json --id id {MONITOR}", code=5).err
    assert "3 cells of column 'truth' counted as missing, because of a word such as 'NA'" in told
    assert "1 cell of column 'score' counted as missing, because of a word such as 'n/a'" in told


@pytest.mark.parametrize(
    ("labels", "answers"), [("int", "float"), ("float", "int"), ("int", "int"), ("float", "Int64")]
)
def test_columns_of_numbers_are_read_each_by_itself(labels, answers, judged, run):
    """What apply writes comes back from pandas with 1.0 for 1."""
    said = (judged["said"] == "odd").astype(int)
    truth = np.where(judged["verdict"] == "right", said, 1 - said)
    judged["truth"] = pd.Series(truth).astype(labels)
    judged["said"] = said.astype(answers)
    judged.to_csv("t.csv", index=False)
    told = run(f"evaluate t.csv --label truth {ANSWERS}").out
    assert f"({(judged['verdict'] == 'wrong').sum()} errors)" in told


def test_labels_and_answers_of_two_kinds_are_told_apart(judged, refuse):
    judged["truth"] = 1
    judged.to_json("t.jsonl", orient="records", lines=True)
    told = refuse(f"evaluate t.jsonl --label truth {ANSWERS}")
    assert "columns 'truth' and 'said': one holds text and the other does not" in told
