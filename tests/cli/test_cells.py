"""One meaning of a cell in every command: answered or not, missing or a word, number or text."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from skselect import AbstentionPolicy, Predictions
from skselect.cli.cells import to_numbers

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


def count_wrong(report):
    """Return how many answers are wrong, as a report says."""
    text = " ".join(report.split())
    return int(re.search(r"of the answers are wrong \((\d+)\b", text)[1])


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
    assert certificate.n == len(judged)

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
    n_wrong = (judged["verdict"] == "wrong").sum()
    assert count_wrong(told) == n_wrong


def test_labels_and_answers_of_two_kinds_are_told_apart(judged, refuse):
    judged["truth"] = 1
    judged.to_json("t.jsonl", orient="records", lines=True)
    told = refuse(f"evaluate t.jsonl --label truth {ANSWERS}")
    assert "columns 'truth' and 'said': one holds text and the other does not" in told


# Columns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("proba", "classes", "ordered"), [
    ("prob_POSITIVE prob_NEGATIVE prob_NEUTRAL", "NEGATIVE NEUTRAL POSITIVE",
     "prob_NEGATIVE prob_NEUTRAL prob_POSITIVE"),
    ("p_yes p_no", "no yes", "p_no p_yes"), ("Yes_p No_p", "no yes", "No_p Yes_p"),
    ("p1 p0", "0 1", "p0 p1"), ("p_11 p_1", "1 11", "p_1 p_11"),
    ("not_no_p no_p", "no not_no", "no_p not_no_p"), ("b_score a_score", "a b", "a_score b_score"),
    ("casino piano", "no yes", "casino piano"), ("left right", "no yes", "left right"),
    ("p_yes other", "no yes", None), ("other p_no", "no yes", None),
    ("p_no other", "no yes", "p_no other"),
])  # fmt: skip
def test_columns_named_after_classes_are_matched_or_refused(proba, classes, ordered, run, refuse):
    columns, classes = proba.split(), classes.split()
    rows = [dict.fromkeys(columns, 1 / len(columns)) | {"truth": name} for name in classes]
    pd.DataFrame(rows).to_csv("t.csv", index=False)
    if ordered is None:
        assert "seems to be that of" in refuse(f"evaluate t.csv --label truth --proba {proba}")
        return
    told = " ".join(run(f"evaluate t.csv --label truth --proba {proba}").err.split())
    pairs = zip(ordered.split(), classes, strict=True)
    assert ", ".join(f"{column} for {name!r}" for column, name in pairs) in told


def test_a_single_column_of_the_first_class_is_refused(run, refuse):
    frame = pd.DataFrame({"truth": ["default", "paid"], "p_default": [0.9, 0.2]})
    frame.assign(p_paid=[0.1, 0.8]).to_csv("t.csv", index=False)
    evaluate = "evaluate t.csv --label truth --proba"
    assert "a single column is the probability of 'paid' here" in refuse(f"{evaluate} p_default")
    run(f"{evaluate} p_paid")
    run(f"{evaluate} p_paid p_default")


@pytest.mark.parametrize(("labels", "answers"), [
    (["family", "sport"], ["family car", "sports car"]), ([0, 1], ["LABEL_0", "LABEL_1"]),
    (["Positive", "Negative"], ["POSITIVE", "NEGATIVE"]),
    (["Healthy", "Sick"], ["Healthy ", "Sick "]),
])  # fmt: skip
@pytest.mark.parametrize("command", ["evaluate", "tune --target .2 --out p.json"])
def test_labels_and_answers_in_two_vocabularies_are_refused(labels, answers, command, refuse):
    frame = pd.DataFrame({"truth": labels * 9, "said": answers * 9, "score": np.arange(18) / 18})
    frame.to_csv("t.csv", index=False)
    told = refuse(f"{command} t.csv --label truth {ANSWERS}")
    assert "column 'said': no answer is a label that occurs in column 'truth'" in told
    assert "say --classes with all classes if every answer is wrong" in told


def test_classes_that_are_nearly_alike_are_told(run):
    said = ["Melanoma", "nevus"] * 9
    frame = pd.DataFrame({"truth": said, "said": said, "score": np.arange(18) / 18})
    frame.loc[::3, "said"] = frame["said"].str.lower()
    frame.to_csv("t.csv", index=False)
    told = run(f"evaluate t.csv --label truth {ANSWERS}").err
    assert "the classes 'Melanoma' and 'melanoma' differ only in case" in " ".join(told.split())


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_truths_beside_ones_and_zeros_are_the_same_classes(kind, run):
    score = np.arange(20) / 20
    truth = (np.arange(20) % 2 == 0).astype(int)
    frame = pd.DataFrame({"truth": truth, "said": (truth == 1) | (score < 0.2), "score": score})
    n_errors = int(np.sum(frame["truth"] != frame["said"]))
    if kind == "jsonl":
        frame.to_json("t.jsonl", orient="records", lines=True)
    elif kind == "csv":
        frame.to_csv("t.csv", index=False)
    else:
        frame.to_parquet("t.parquet")
    told = run(f"evaluate t.{kind} --label truth {ANSWERS}").out
    assert count_wrong(told) == n_errors


# Verdicts and numbers ---------------------------------------------------------------------------


VERDICT_WORDS = [
    ("yes", "no"), ("Y", "N"), ("pass", "FAIL"), ("passed", "failed"), ("ja", "nein"),
    ("oui", "non"), ("true", "false"), ("1", "0"), ("Correct", "incorrect"),
]  # fmt: skip


@pytest.mark.parametrize("words", VERDICT_WORDS, ids=" ".join)
def test_common_words_of_judges_are_verdicts(words, judged, run):
    right, wrong = words
    n_wrong = (judged["verdict"] == "wrong").sum()
    judged["verdict"] = judged["verdict"].map({"right": right, "wrong": wrong})
    judged.to_csv("t.csv", index=False)
    told = run(f"evaluate t.csv --verdict verdict {ANSWERS}").out
    assert count_wrong(told) == n_wrong
    codes = Predictions.from_verdicts(judged["verdict"], judged["score"]).y_true
    assert codes.sum() == n_wrong


def test_any_words_may_be_verdicts_if_they_are_named(judged, run, refuse):
    n_wrong = (judged["verdict"] == "wrong").sum()
    judged["verdict"] = judged["verdict"].map({"right": "5", "wrong": "poor"})
    judged.loc[0, "verdict"] = "" if judged.loc[0, "verdict"] == "5" else "Bad "
    judged.to_csv("t.csv", index=False)
    evaluate = f"evaluate t.csv --verdict verdict {ANSWERS}"
    told = run(f"{evaluate} --right 4 5 --wrong POOR bad").out
    assert count_wrong(told) == n_wrong
    assert "--right and --wrong name other words" in refuse(evaluate)
    told = refuse(f"{evaluate} --right 5 --wrong bad")
    assert "must hold one of ['5', 'bad'], the words of --right and --wrong" in told
    assert "go together, and with --verdict" in refuse(f"{evaluate} --right 5")
    assert "'5' is a word of --right, too" in refuse(f"{evaluate} --right 5 --wrong 5")


def test_verdicts_are_missing_in_python_as_in_a_terminal():
    codes = Predictions.from_verdicts(["right", "N/A", None, "-", "wrong"], [0.9] * 5).y_true
    assert codes.tolist() == [0, 1]


@pytest.mark.parametrize(("written", "number"), [
    ("87%", 0.87), ("90 %", 0.9), ("99.95%", 0.9995), ("100\u00a0%", 1.0), ("0 %", 0.0),
])  # fmt: skip
def test_per_cents_are_numbers(written, number):
    assert to_numbers(pa.array([written, None, "50%"]), ".").tolist()[0] == number


def test_per_cents_as_confidences(judged, run, refuse):
    judged.to_csv("t.csv", index=False)
    tune = f"tune t.csv --verdict verdict {ANSWERS} --target .4 --out p.json"
    expected = run(tune).out
    judged["score"] = [f"{100 * score:.2f} %" for score in judged["score"]]
    judged.to_csv("t.csv", index=False)
    assert run(tune).out == expected
    judged.loc[7, "score"] = "0.5"
    judged.to_csv("t.csv", index=False)
    told = refuse(tune)
    assert "row 8 holds '0.5'. Write all numbers of a column with a per cent sign, or none." in told


def test_rounded_probabilities_are_divided_by_their_sum(rng, run, refuse):
    proba = np.round(rng.dirichlet(np.ones(8), size=60), 3)
    columns = [f"p{k}" for k in range(8)]
    frame = pd.DataFrame(proba, columns=columns)
    assert np.any(np.abs(proba.sum(axis=1) - 1) > 0.0015)
    frame.assign(truth=rng.integers(8, size=60)).to_csv("t.csv", index=False)
    evaluate = f"evaluate t.csv --label truth --proba {' '.join(columns)}"
    told = " ".join(run(f"{evaluate} --classes 0 1 2 3 4 5 6 7").err.split())
    assert "rows the rounded probabilities do not sum to one; they are divided by" in told
    frame["p0"] += 0.005
    frame.assign(truth=rng.integers(8, size=60)).to_csv("t.csv", index=False)
    assert "must sum to one" in refuse(f"{evaluate} --classes 0 1 2 3 4 5 6 7")


def test_all_faults_of_a_table_are_told_at_once(judged, refuse):
    judged = judged.astype({"verdict": object, "score": object})
    judged.loc[3, "verdict"] = "perhaps"
    judged.loc[5, "score"] = "high"
    judged.loc[8, "score"] = None
    judged.rename(columns={"said": "said "}).to_csv("t.csv", index=False)
    told = refuse(f"evaluate t.csv --verdict verdict {ANSWERS}")
    assert "3 faults" in told
    assert "Did you mean 'said '" in told
    assert "row 6 holds 'high'" in told
    assert "'score' has 1 missing values, the first in row 9" in told
    judged.to_csv("t.csv", index=False)
    told = refuse(f"evaluate t.csv --verdict verdict {ANSWERS}")
    assert "3 faults" in told
    assert "row 4 holds 'perhaps'" in told
    judged.drop(index=[3, 5]).to_csv("t.csv", index=False)
    assert "fault" not in refuse(f"evaluate t.csv --verdict verdict {ANSWERS}")


def test_tune_names_the_way_to_use_rows_without_a_verdict(judged, run):
    judged.loc[:4, "verdict"] = None
    judged.to_csv("t.csv", index=False)
    told = run(f"tune t.csv --verdict verdict {ANSWERS} --target .5 --out p.json").err
    assert "t.csv: 5 rows without a verdict are left out. With --unjudged wrong" in told


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_row_of_zeros_is_deferred(kind, run):
    frame = pd.DataFrame({"truth": ["no", "yes"] * 40, "no": [0.9, 0.1] * 40})
    frame["yes"] = 1 - frame["no"]
    frame.loc[3, ["no", "yes"]] = 0.0
    getattr(frame, f"to_{kind}")(f"t.{kind}", index=False)
    run(f"tune t.{kind} --label truth --target .2 --out p.json")
    assert AbstentionPolicy.from_json("p.json").certificate.n_accepted == 79
    run(f"apply t.{kind} --policy p.json --out d.csv")
    decided = pd.read_csv("d.csv")
    assert decided["accepted"].tolist() == [k != 3 for k in range(80)]
    run(f"evaluate t.{kind} --label truth --policy p.json")  # all are tied: no row is known
