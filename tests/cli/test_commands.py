"""skselect evaluate, tune and apply: the same as in Python, from files to files."""

import contextlib
import json
import os
import re
import shutil
import signal
import sys
import threading
from dataclasses import replace
from functools import partial
from io import TextIOWrapper
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import skselect as sk
from skselect._lib import files as _files
from skselect._lib.arrays import draw_rows
from skselect._lib.notebook import VERDICTS, unwrap
from skselect.calibration._scopes import ClassCalibration
from skselect.cli import BROKEN, CUT_SHORT, INFEASIBLE, OPEN, commands, table_files, tables
from skselect.policy.subgroups import GroupThresholds, PolicyShortlist
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.predictions import cascade_of
from skselect.report.questions import verify_guarantee
from skselect.thresholds import Shortlist
from tests.brute import named
from tests.cli.conftest import call
from tests.common import run_python

#: The file that each test finds is written again.
AGAIN = "tune --out policy.json"
PROBA = "--label truth --proba p_no p_yes --classes no yes"
ANSWER = "--label truth --answer said --confidence-column score"
#: The columns, and the policy that `tune` made of them.
BOTH = pytest.mark.parametrize(
    ("columns", "policy"), [(PROBA, "policy.json"), (ANSWER, "rated.json")], ids=["proba", "answer"]
)
KINDS = pytest.mark.parametrize("kind", ["csv", "parquet"])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a table, and a folder with its files and the policies that `tune` makes of it."""
    rng, n = np.random.default_rng(12345), 3000
    p = rng.beta(0.4, 0.4, n)
    truth = np.where(rng.random(n) < p, "yes", "no")
    frame = pd.DataFrame({
        "id": np.arange(n), "truth": truth, "p_no": 1 - p, "p_yes": p,
        "site": rng.choice(["east", "west"], n),
    })  # fmt: skip
    frame["said"] = np.where(p > 0.5, "yes", "no")
    frame["score"] = 100 * np.maximum(p, 1 - p)
    folder = tmp_path_factory.mktemp("made")
    with contextlib.chdir(folder):
        frame.to_csv("t.csv", index=False)
        frame.to_parquet("t.parquet", index=False)
        for columns, policy in [(PROBA, "policy.json"), (ANSWER, "rated.json")]:
            assert call(f"tune t.csv {columns} --target 0.1 --out {policy}") == 0
    return frame, folder


@pytest.fixture(autouse=True)
def frame(made, tmp_path, monkeypatch):
    """Return the table; the test runs in a folder of its own, which has all files."""
    frame, folder = made
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    # Reports print the minute in which they were made; tests compare them.
    monkeypatch.setattr("skselect.report.selective.now", lambda: "2026-01-31T09:30:00+00:00")
    return frame.copy()


def predictions_of(frame):
    proba = frame[["p_no", "p_yes"]].to_numpy()
    return sk.Predictions.from_proba(frame["truth"].to_numpy(), proba)


def read(path="policy.json"):
    return sk.AbstentionPolicy.from_json(path)


def write(frame, *names):
    """Write a table as the endings say."""
    for name in names:
        if name.endswith(".jsonl"):
            frame.to_json(name, orient="records", lines=True)
        else:
            getattr(frame, f"to_{name.split('.')[1]}")(name, index=False)


# The same as in Python --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:min_coverage", "ignore:cwsa_plus is best")
@KINDS
@pytest.mark.parametrize(("goal", "arguments"), [
    (sk.Risk(0.1), "--target 0.1"), (sk.Coverage(0.6), "--objective coverage --target .6"),
    (sk.Risk(0.1, delta=0.2, method="band", max_analyses=3),
     "--target 0.1 --delta 0.2 --method band --max-analyses 3"),
    (sk.Best("cwsa", threshold_range=(0.6, 0.8), min_coverage=0.1),
     "--objective cwsa --threshold-range 0.6 .8 --min-coverage .1"),
    (sk.Best("selective_accuracy", method="lower_bound"),
     "--objective selective_accuracy --method lower_bound"),
])  # fmt: skip
def test_tune_chooses_what_python_chooses(frame, kind, goal, arguments, run):
    said = run(f"{AGAIN} t.{kind} {PROBA} {arguments}").out
    expected, policy = sk.select_threshold(predictions_of(frame), objective=goal), read()
    for name in ("threshold", "coverage", "confidence_quantiles", "fingerprints"):
        assert getattr(policy, name) == getattr(expected.policy, name)
    if expected.certificate is not None:
        assert replace(policy.certificate, created="") == replace(expected.certificate, created="")
    assert str(expected) in said


@KINDS
def test_apply_decides_as_the_policy(frame, kind, run):
    said = run(f"apply t.csv --policy policy.json --out d.{kind}").err
    # As text first: an older pandas misses the last bit of numbers in a CSV file.
    text = {"dtype": {"confidence": str}} if kind == "csv" else {}
    found = getattr(pd, f"read_{kind}")(f"d.{kind}", **text)
    expected = read().decide(frame[["p_no", "p_yes"]].to_numpy())
    for name in ("accepted", "suggestion"):
        assert found[name].tolist() == expected[name].tolist()
    np.testing.assert_array_equal(found["confidence"].astype(float), expected["confidence"])
    np.testing.assert_array_equal(found["decision"].isna(), ~expected["accepted"])
    assert found["id"].astype(int).tolist() == frame["id"].tolist()
    assert "p_no" not in found
    assert f"3,000 rows: {expected['accepted'].sum():,} answered (" in said
    assert not list(Path().glob("*.part"))


@pytest.mark.parametrize(("policy", "change"), [("policy.json", 0.7), ("rated.json", 0.95)])
def test_apply_compares_the_table_with_the_rows_that_tuned(frame, policy, change, run):
    for scale, is_far in ((1.0, False), (change, True)):
        softer = {name: 0.5 + scale * (frame[name] - 0.5) for name in ("p_no", "p_yes")}
        write(frame.assign(**softer, score=scale * frame["score"]), "n.csv")
        told = run(f"apply n.csv --policy {policy} --out d.csv").err
        assert ("rows have a confidence below" in told) == is_far


def test_apply_to_standard_output_with_a_prefix(frame, run, refuse):
    write(frame.drop(columns="truth").assign(confidence=1), "new.csv")
    assert "columns ['confidence'] already" in refuse("apply new.csv --policy policy.json")
    lines = run("apply new.csv --policy policy.json --prefix gate_").out.splitlines()
    assert len(lines) == 3001
    names = ["decision", "suggestion", "accepted", "confidence", "threshold"]
    assert lines[0].endswith(",".join(f"gate_{name}" for name in names))


def test_subgroups(frame, run):
    said = run(f"tune t.parquet {PROBA} --target 0.12 --subgroups site --out sites.json").out
    expected = sk.select_threshold(
        predictions_of(frame), objective="risk", target=0.12, subgroups=frame["site"]
    )
    policy = read("sites.json")
    assert policy.groups.thresholds == expected.policy.groups.thresholds
    assert "site 'east'\nCERTIFIED" in said
    run("apply t.csv --policy sites.json --out d.csv")
    decided = policy.decide(frame[["p_no", "p_yes"]].to_numpy(), subgroups=frame["site"])
    assert pd.read_csv("d.csv")["accepted"].tolist() == decided["accepted"].tolist()
    said = run("evaluate t.csv --label truth --policy sites.json", code=OPEN).out
    assert "[east] CERTIFIED" in said


def test_what_takes_long_is_told_on_a_terminal(terminal, monkeypatch, run):
    monkeypatch.setattr(_files, "_MANY_ROWS", 1000)
    shown = terminal()
    said = run(EVALUATE).out + run(TUNE).out
    for words in ("computing the report ...", "choosing a threshold ..."):
        assert words in shown.getvalue()
    assert "\r" not in said
    assert "..." not in said.splitlines()


@KINDS
def test_evaluate_names_the_most_confident_errors(frame, kind, run, refuse):
    frame["case"] = [f"00{i}" for i in frame["id"]]  # as a number it would lose its zeros
    write(frame, f"t.{kind}")
    said = run(f"evaluate t.{kind} {PROBA} --id case --features site p_yes").out
    names, *listed = [line.split() for line in said.split("confident errors\n")[1].splitlines()]
    assert names == ["case", "true", "answer", "confidence", "site", "p_yes"]
    wrong = frame[frame["truth"] != frame["said"]]
    worst = wrong.sort_values("score", ascending=False, kind="stable").head(10)
    assert [line[0] for line in listed[:10]] == worst["case"].tolist()
    assert [line[4] for line in listed[:10]] == worst["site"].tolist()
    said = run(f"evaluate t.{kind} {PROBA}").out.split("confident errors\n")[1].splitlines()
    assert [int(line.split()[0]) for line in said[1:11]] == (worst["id"] + 1).tolist()
    assert "has no column 'cases'" in refuse(f"evaluate t.{kind} {PROBA} --id cases")


def test_evaluate_writes_page_and_table(frame, run):
    options = "--threshold 0.9 --html r.html --csv r.csv --title Mine"
    said = run(f"evaluate t.parquet {PROBA} {options}").out
    assert said.startswith("Mine\n====\n\n3,000 rows (class no:")
    page = Path("r.html").read_text()
    assert "<title>Mine</title>" in page
    assert page.count('type="range"') == 1
    table = pd.read_csv("r.csv").set_index("metric")
    sure = frame[["p_no", "p_yes"]].max(axis=1) >= 0.9
    assert table.loc["coverage", "value"] == pytest.approx(sure.mean())


# Files as hospitals write them --------------------------------------------------------------


@pytest.fixture
def german(frame):
    return frame[:900].assign(site=lambda t: t["site"].replace("west", "Köln"), note="007")


class Input(TextIOWrapper):
    """Standard input that each command reads from its start."""

    @property
    def buffer(self):
        raw = super().buffer
        raw.seek(0)
        return raw


def test_tables_of_any_layout_are_the_same(german, monkeypatch, run):
    def say(table, layout=""):
        """Return what the commands print, and what they write."""
        tune = f"{AGAIN} {table} {PROBA} --target .2 --subgroups site {layout}"
        evaluate = f"evaluate {table} {PROBA} --subgroups site --title T {layout}"
        apply = f"apply {table} --policy policy.json --out d.csv {layout}"
        said = [run(command).out for command in (tune, evaluate, apply)]
        return [*said, read().groups.thresholds]

    def read_decisions(**layout):
        found = pd.read_csv("d.csv", dtype={"note": str}, **layout)
        assert found["site"].tolist() == german["site"].tolist()
        assert found["note"].eq("007").all()
        return found["accepted"].tolist()

    write(german, "plain.csv")
    expected, decided = say("plain.csv"), read_decisions()
    for name, encoding, sep in [
        ("g.csv", "cp1252", ";"), ("g.txt", "utf-16", "\t"), ("g.tsv.bz2", "utf-8", "\t"),
        ("-", "cp1252", ";"),
    ]:  # fmt: skip
        file = "stdin.csv" if name == "-" else name
        with pa.output_stream(file) as out:
            out.write(german.to_csv(sep=sep, decimal=",", index=False).encode(encoding))
        layout = f"--decimal , --encoding {encoding}"
        layout += "" if ".tsv" in name else f" --separator '{sep}'".replace("\t", "\\t")
        with named(name), Path(file).open("rb") as raw:
            monkeypatch.setattr(sys, "stdin", Input(raw))
            assert say(name, layout) == expected
            # The ending .tsv is that of another file.
            marks = {"sep": "," if ".tsv" in name else sep, "decimal": ","}
            assert read_decisions(encoding=encoding, **marks) == decided


@pytest.mark.parametrize(("layout", "options", "remedy"), [
    ({"sep": ";"}, "", '--separator ";"'), ({"sep": "\t"}, "", r'--separator "\t"'),
    ({}, "--separator ';'", '--separator ","'),
    ({"sep": ";", "decimal": ","}, "--separator ';'", "say --decimal ,"),
    ({"sep": ";"}, "--separator ';' --decimal ,", "leave --decimal out"),
    ({"encoding": "cp1252"}, "", r"K\xf6ln,y'. Name its encoding, such as --encoding cp1252"),
    ({"encoding": "utf-16"}, "", "or --encoding utf-16"), ({}, "--separator é", "--separator"),
    *[({}, f"--encoding {name}", f"--encoding: {name!r} is no encoding of text")
      for name in ("ansi-x", "rot13", "idna")],
])  # fmt: skip
def test_another_layout_is_told_and_not_guessed(german, layout, options, remedy, refuse):
    german.to_csv("bad.csv", index=False, **layout)
    assert remedy in refuse(f"evaluate bad.csv {PROBA} {options}")


def test_a_sheet_is_read_like_the_csv_file(frame, run, refuse):
    pytest.importorskip("openpyxl")
    frame.to_excel("t.xlsx", index=False)
    tune = f"{AGAIN} t.csv {PROBA} --target 0.1"
    assert run(tune).out == run(tune.replace("t.csv", "t.xlsx")).out
    Path("t.xlsx").rename("t.xlsm")
    assert run(tune).out == run(tune.replace("t.csv", "t.xlsm")).out
    frame.assign(p_yes="many").to_excel("t.xlsx", index=False)
    told = refuse(f"evaluate t.xlsx {PROBA}")
    assert "t.xlsx: column 'p_yes' must hold numbers, but row 1 holds" in told
    with pd.ExcelWriter("t.xlsx") as book:
        pd.DataFrame().to_excel(book, sheet_name="cover", index=False)
        frame.to_excel(book, sheet_name="cases", index=False)
    assert "t.xlsx: its first sheet is empty" in refuse(f"evaluate t.xlsx {PROBA}")


def test_decisions_that_an_encoding_cannot_write(frame, run, refuse):
    write(frame.assign(truth=frame["truth"].replace("yes", "是")), "t.csv")
    run(f"{AGAIN} t.csv {PROBA.replace('no yes', 'no 是')} --target 0.1")
    write(frame[["p_no", "p_yes"]], "new.csv")
    told = refuse("apply new.csv --policy policy.json --encoding cp1252 --out d.csv")
    assert "--encoding: cp1252 has no sign for '是'" in told


@pytest.mark.usefixtures("frame")
def test_tune_keeps_several_guarantees_together(run):
    several = "--objective risk --target .1 --objective coverage --target .3"
    printed = run(f"tune t.csv {PROBA} {several} --out p.json").out
    assert "At most 10 % of the answers are wrong; at least 30 % of all cases are" in printed
    made = sk.AbstentionPolicy.from_json(Path("p.json")).certificate
    assert [made.objective, *(one.objective for one in made.also)] == ["risk", "coverage"]


# Refusals ---------------------------------------------------------------------------------------

TUNE, EVALUATE, APPLY = (
    f"{AGAIN} t.csv {PROBA} --target .1",
    f"evaluate t.csv {PROBA}",
    "apply t.csv --policy policy.json",
)
OTHER = "--proba p_no p_yes --classes yes no"


@pytest.mark.parametrize(("command", "named"), [
    (f"{AGAIN} no.csv {PROBA}", "no.csv"),
    (f"{AGAIN} t.csv --label truht --target .1", "'truth'"),
    (f"{AGAIN} t.csv --label truth --target .1", "no columns ['no', 'yes']"),
    (f"{AGAIN} t.csv {PROBA}", "target"), (f"{TUNE} --target .2", "--target"),
    (f"{TUNE} --objective risk coverage", "--objective risk --objective coverage"),
    (f"{TUNE[:4]} {TUNE[22:]}", "there is a file 'policy.json' already"),
    (f"{TUNE} --objective risk --objective cwsa --target .5", "cwsa"),
    (f"{TUNE} --max-analyses 0", "--max-analyses"), (f"{TUNE} --method luck", "method"),
    (f"{TUNE} --confidence luck", "confidence"), (f"{TUNE} --subgroups site truth", "'truth'"),
    (f"{AGAIN} t.csv --label truth --answer said", "--confidence-column"),
    (f"{AGAIN} t.csv {PROBA} --answer said --confidence-column score", "--answer"),
    (f"{AGAIN} t.csv --label truth --proba p_no p_yes score --target .1", "--proba"),
    (f"{AGAIN} t.csv {PROBA[:-3]}maybe --target .1", "yes"),
    (f"evaluate t.xlsx {PROBA}", "openpyxl"), (f"evaluate t.csv.gz {PROBA}", "t.csv.gz"),
    (f"{EVALUATE} --policy t.csv", "policy"),
    (f"{EVALUATE} --policy policy.json --threshold 0.5", "threshold"),
    (f"{EVALUATE} --audits 1000 .02 30", "--audits"),
    (f"{EVALUATE} --policy policy.json --audits 0 .02 30", "--audits"),
    ("apply t.csv --policy none.json", "none.json"),
    # The columns that the policy remembers, and others.
    (f"{APPLY} {OTHER}", "tuned with the columns ['p_no', 'p_yes']"),
    (f"evaluate t.csv --label truth --policy policy.json {OTHER}", "tuned with the columns"),
    (f"{APPLY} --proba p_no --classes yes no", "single column is the probability of 'yes'"),
    # The ending says what a file holds.
    (f"{APPLY} --out x.json", "--out"), (f"{APPLY} --out x.CSV.gz", "--out"),
    # Files that cannot be written, or that are read.
    (f"{EVALUATE} --html r.html --csv no/x.csv", "no folder 'no'"),
    (f"{EVALUATE} --html folder", "folder"), (f"{TUNE} --python folder", "folder"),
    *((command, "choose another name") for command in [
        f"{EVALUATE} --csv x --html ./x", f"{TUNE} --out t.csv", f"{TUNE} --out x --python x",
        f"{APPLY} --out policy.json",
    ]),
])  # fmt: skip
def test_a_refusal_names_what_is_wrong_and_writes_nothing(command, named, refuse):
    Path("folder").mkdir()
    Path("t.xlsx").write_bytes(b"PK")
    Path("t.csv.gz").write_bytes(b"no gzip")
    assert named in refuse(command).splitlines()[-1]


def test_out_of_reach_exits_with_three_and_writes_nothing(frame, refuse):
    told = refuse(f"{AGAIN} t.csv {PROBA} --target 0.0001", code=3)
    assert "REFUSED: at most 0.01 % of the answers are wrong." in told
    assert "asking these again, or with more, breaks the guarantee" in told
    write(frame.assign(site=frame["id"] % 300), "many.parquet")
    told = refuse(f"{AGAIN} many.parquet {PROBA} --target 0.01 --subgroups site", code=3)
    assert "in 300 subgroups (site) no threshold meets the target." in told
    assert "\nand 290 more\n" in told


@KINDS
def test_rows_that_stop_every_command_are_named(frame, kind, refuse):
    endless = frame.assign(p_no=frame["p_no"].where(frame["id"] != 1500, np.inf))
    for table, message in [
        (frame.iloc[:0], f"bad.{kind} has no rows"),
        (endless, "column 'p_no' must hold finite numbers, but row 1501 holds"),
    ]:
        write(table, f"bad.{kind}")
        for command in (f"{APPLY} --out d.csv", EVALUATE, TUNE):
            assert message in refuse(command.replace("t.csv", f"bad.{kind}"))


# What must not be misread -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "column", "missing"),
    [("policy.json", "p_no", None), ("rated.json", "score", None), ("rated.json", "said", None),
     ("policy.json", "p_no", "NA"), ("rated.json", "score", " ")],
)  # fmt: skip
@KINDS
def test_rows_that_lack_a_number_or_an_answer_are_deferred(
    frame, kind, policy, column, missing, run, refuse
):
    """So they are where a threshold is chosen; to evaluate, a missing number is refused."""
    frame = frame[:300].copy()
    lacking = frame.index.isin([3, *range(60, 150), 299])
    write(frame, f"whole.{kind}")
    frame[column] = frame[column].astype(object).where(~lacking, missing)
    frame = frame.astype({column: str}) if missing and kind == "parquet" else frame
    write(frame if missing else frame.convert_dtypes(), f"gaps.{kind}")
    found = []
    for name in ["whole", "gaps"]:
        run(f"apply {name}.{kind} --policy {policy} --out d.parquet")
        found.append(pd.read_parquet("d.parquet"))
    whole, gaps = found
    assert not gaps["accepted"][lacking].any()
    assert gaps["decision"][lacking].isna().all()
    same = ["decision", "accepted"]
    pd.testing.assert_frame_equal(gaps.loc[~lacking, same], whole.loc[~lacking, same])
    columns = PROBA if policy == "policy.json" else ANSWER
    what = "an answer (column 'said' is empty)"
    if column != "said":
        named = "columns ['p_no', 'p_yes']" if column == "p_no" else f"column '{column}'"
        what = f"a number ({named})"
    told = run(f"{AGAIN} --target .1 gaps.{kind} {columns}").err
    assert f"92 rows without {what} count as deferred at every threshold" in told
    certificate = read().certificate
    assert certificate.n == 300
    assert certificate.n_accepted <= 208
    if column == "said":
        assert f"92 rows without {what} are left out" in run(f"evaluate gaps.{kind} {columns}").err
    else:
        message = f"gaps.{kind}: column '{column}' has 92 missing values, the first in row 4;"
        assert message in refuse(f"evaluate gaps.{kind} {columns}")


def test_nothing_else_counts_in_a_row_that_lacks_a_probability(run):
    rows = "no,1.7,\nno,,?\nno,inf,NA\nno,.99,.01\n"
    Path("gaps.csv").write_text(f"truth,p_no,p_yes\n{rows}")
    run("apply gaps.csv --policy policy.json --out d.csv")
    assert pd.read_csv("d.csv")["accepted"].tolist() == [False, False, False, True]


@pytest.mark.parametrize("stored", ["p_no", ["p_no"], {"proba": "p_no"}, {"answer": 7}], ids=str)
def test_columns_that_were_written_into_a_policy_by_hand_are_checked(stored, refuse):
    replace(read(), metadata={tables.COLUMNS: stored}).to_json("hand.json")
    for command in ("apply t.csv", "evaluate t.csv --label truth"):
        assert "'skselect_columns'" in refuse(f"{command} --policy hand.json")


def test_policies_of_python_are_applied_by_class_names(frame, run, refuse):
    found = sk.select_threshold(predictions_of(frame), objective="risk", target=0.1).policy
    found.to_json("mine.json")
    assert "no columns ['no', 'yes']" in refuse("apply t.csv --policy mine.json")
    run("apply t.csv --policy mine.json --proba p_no p_yes --out d.csv")
    accepted = found.decide(frame[["p_no", "p_yes"]].to_numpy())["accepted"]
    assert pd.read_csv("d.csv")["accepted"].tolist() == accepted.tolist()
    replace(found, metadata={"columns": ["age", "sex"], "label": "x"}).to_json("notes.json")
    run("apply t.csv --policy notes.json --proba p_no p_yes --classes no yes --out d.csv")
    Path("bad.json").write_text("{")
    told = refuse("apply t.csv --policy bad.json")
    assert "--policy: bad.json: This is not a policy file; it is damaged" in told


VERDICT = "--verdict judged --answer said --confidence-column score"


def judge(frame, rng):
    """Add verdicts on a part of the rows, drawn by a known probability."""
    drawn = rng.choice([0.4, 0.8], len(frame))
    right = np.where(frame["said"] == frame["truth"], "correct", "incorrect")
    return frame.assign(
        chance=drawn, judged=pd.Series(right).where(rng.random(len(frame)) < drawn, None)
    )


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_verdicts_on_some_rows(frame, run, refuse, rng, kind):
    frame = judge(frame.assign(score=frame["score"].round(6)), rng)
    write(frame, f"v.{kind}")
    said = run(f"tune v.{kind} {VERDICT} --target 0.1 --out v.json").out
    rows = sk.Predictions.from_verdicts(frame["judged"], frame["score"])
    expected = sk.select_threshold(rows, objective="risk", target=0.1)
    assert read("v.json").threshold == expected.threshold
    assert str(expected.certificate) in said
    run(f"apply v.{kind} --policy v.json --out d.csv")  # rows without a verdict too
    accepted = pd.read_csv("d.csv")["accepted"]
    assert accepted.tolist() == (frame["score"] >= expected.threshold).tolist()
    said = run(f"evaluate v.{kind} --verdict judged --policy v.json --brief", OPEN).out
    assert f"{len(rows):,} rows" in said
    audits = "--audit-proba chance --min-audit-proba 0.4"
    run(f"tune v.{kind} {VERDICT} --target 0.1 --out w.json {audits}")
    drawn = sk.Predictions.from_verdicts(
        frame["judged"], frame["score"], audit_proba=frame["chance"]
    )
    weighted = sk.Risk(0.1, largest_weight=2.5)
    assert read("w.json").threshold == sk.select_threshold(drawn, objective=weighted).threshold
    for command, words in [
        (f"{AGAIN} v.{kind} {VERDICT} --label truth", "--label"),
        (f"{AGAIN} v.{kind} --target 0.1", "--label --verdict"),
        (f"{AGAIN} v.{kind} --verdict judged --target 0.1", "--answer"),
        (f"{AGAIN} v.{kind} {VERDICT} --reviewer truth", "--reviewer"),
        (f"{AGAIN} v.{kind} {VERDICT} --target 0.1 --audit-proba chance", "--min-audit-proba"),
        (f"{AGAIN} t.csv {ANSWER} --target 0.1 --audit-proba score", "--verdict"),
        (f"{AGAIN} v.{kind} {VERDICT} --target 0.1 --min-audit-proba 0.4", "--audit-proba"),
        (f"evaluate v.{kind} {VERDICT} --policy policy.json", "--verdict"),
    ]:
        assert words in refuse(command)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_cases_are_judged_from_the_surest_down(frame, run, refuse, kind):
    """The verdicts are filled in until no further one can help; then the policy is the full one."""
    frame = frame.assign(score=frame["score"].round(6)).sample(900, random_state=0)
    frame = frame.reset_index(drop=True)
    true = np.where(frame["said"] == frame["truth"], "right", "wrong")
    known = np.zeros(900, dtype=bool)
    command = f"{AGAIN} v.{kind} {VERDICT} --target 0.12 --unjudged wrong --next 200 --id id"
    command += " --out-next next.csv"
    for _ in range(6):
        frame["judged"] = pd.Series(true, dtype=object).where(known, None)
        write(frame, f"v.{kind}")
        assert call(command) in (0, INFEASIBLE, OPEN)
        batch = pd.read_csv("next.csv")
        assert batch.columns.tolist() == frame.columns.tolist()
        if len(batch) == 0:
            break
        rows = frame.index[frame["id"].isin(batch["id"])]
        assert not known[rows].any()
        assert batch["judged"].isna().all()
        assert np.all(np.diff(batch["score"]) <= 0)
        known[rows] = True
    assert len(batch) == 0
    assert 200 < known.sum() < 900
    told = run(command)
    assert "next.csv (0 rows to judge)" in told.out
    assert "No further label can raise the coverage: stop judging." in told.out
    assert "--out-next: there is a file 'next.csv' already" in refuse(command[:-20])
    assert "of a pool of 900" in unwrap(read().certificate.details())
    early = read().threshold
    write(frame.assign(judged=true), f"v.{kind}")
    run(f"{AGAIN} v.{kind} {VERDICT} --target 0.12")
    assert read().threshold == early
    for options, words in [
        ("--next 5", "--next goes with --unjudged wrong"),
        ("--unjudged wrong --next 0", "--next must be"),
        ("--unjudged right", "invalid choice"),
        ("--unjudged wrong --audit-proba score", "without --audit-proba"),
        (f"--unjudged wrong --next 5 --out-next v.{kind}", "--out-next: "),
    ]:
        told = refuse(f"{AGAIN} v.{kind} {VERDICT} --target 0.12 --out-next n.csv {options}")
        assert words in told


def test_labels_may_be_missing_while_rows_are_judged(frame, run, refuse):
    early = frame.assign(truth=frame["truth"].where(frame["score"] > 80, ""))
    early.to_csv("v.csv", index=False)
    for columns in (PROBA, ANSWER):
        run(f"{AGAIN} v.csv {columns} --target 0.1 --unjudged wrong --next 7 --out-next n.tsv")
        assert "count as wrong" in unwrap(read().certificate.details())
        found = pd.read_csv("n.tsv", sep="\t")
        assert (len(found), found["truth"].isna().all()) == (7, True)
        assert (found["score"] <= 80).all()
    for columns in (PROBA, ANSWER):
        assert "--unjudged wrong" in refuse(f"{AGAIN} v.csv {columns} --target 0.1")
    early.assign(truth="").to_csv("v.csv", index=False)
    told = refuse(f"{AGAIN} v.csv --label truth --proba p_no p_yes --target 0.1 --unjudged wrong")
    assert "--classes is missing: column 'truth' holds no label yet" in told
    options = "--classes no yes --unjudged wrong --next 9"
    assert "Nothing" not in run(f"{AGAIN} v.csv {ANSWER} --target 0.1 {options}", INFEASIBLE).out
    assert len(pd.read_csv("next.csv")) == 9


def test_a_name_that_occurs_twice_is_refused_in_one_table(frame, run, refuse):
    pd.concat([frame, frame[:2]]).to_csv("twice.csv", index=False)
    run(f"{AGAIN} t.csv {PROBA} --target 0.1 --id id")
    told = refuse(f"{AGAIN} twice.csv {PROBA} --target 0.1 --id id")
    assert "--id: twice.csv has several rows for 2 cases (" in told
    assert "no column 'name'" in refuse(f"{AGAIN} t.csv {PROBA} --target 0.1 --id name")


def test_the_python_file_decides_the_same_and_knows_its_policy(frame, tmp_path, run, refuse):
    """A kill between the two renames of `tune` leaves a file beside another policy."""

    def decide(**rows):
        gate = {"__name__": "gate"}
        exec(Path("gate.py").read_text(), gate)
        return gate["decide"](**rows)["accepted"].tolist()

    compare = "apply t.csv --python gate.py --out d.csv --policy"
    run(f"tune t.csv {ANSWER} --target 0.1 --python gate.py --out said.json")
    run(f"{compare} said.json")
    found = decide(y_pred=frame["said"], confidence=frame["score"])
    assert found == pd.read_csv("d.csv")["accepted"].tolist()
    said = run(f"{AGAIN} t.csv {PROBA} --target 0.1 --python gate.py").out
    assert "Written: policy.json, gate.py" in said
    run(f"tune t.csv {PROBA} --target 0.2 --out other.json")
    proba = frame[["p_no", "p_yes"]].to_numpy()
    assert decide(y_proba=proba) == read().decide(proba)["accepted"].tolist()
    Path("lost.json").write_text("{}")
    told = refuse(f"{compare} other.json")
    assert "--python: gate.py is not the Python file of other.json" in told
    run(f"{compare} policy.json")
    # Another policy that names the digest of the first, as the record of a change does.
    stored = json.loads(Path("policy.json").read_text())
    replaced = {"metadata": {"replaces": stored["digest"]}, "threshold": 0.5, "certificate": None}
    heir = replace(read(), **replaced)
    heir.to_json("heir.json")
    heir.to_python("heir.py")
    Path("edited.json").write_text(json.dumps(stored | {"threshold": 0.5}))
    twice = Path("policy.json").read_text().replace('"threshold":', '"threshold": 0, "threshold":')
    Path("twice.json").write_text(twice)
    Path("gate.txt").write_text(f"POLICY = open({stored['digest']!r})")
    for options in ("heir.json --python gate.py", "policy.json --python heir.py",
                    "policy.json --python gate.txt", "policy.json --python t.csv"):  # fmt: skip
        assert "is not the Python file of" in refuse(f"apply t.csv --out d.csv --policy {options}")
    for name, code, words in [
        ("policy.json", 0, ""),
        ("other.json", 1, "other.json is another policy than"),
        ("heir.json", 1, "heir.json is another policy than"),
        ("edited.json", 1, "edited.json is another policy than"),
        ("twice.json", 1, "twice.json is another policy than"),
        ("lost.json", 1, "lost.json is another policy than that of this file, or no policy"),
        ("none.json", 1, "none.json is no file"),
    ]:
        done = run_python(Path("gate.py").read_text(), name, folder=tmp_path, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False)
        assert words in done.stdout + done.stderr


def test_columns_and_classes_in_another_order_mean_the_same(frame, run):
    swapped = "--proba p_yes p_no --classes yes no"
    run(f"tune t.csv --label truth {swapped} --target .1 --out o.json")
    assert read().threshold == read("o.json").threshold
    for policy in ["policy.json", "o.json"]:
        found = []
        for columns in ["", swapped, "--proba p_no p_yes --classes no yes", "--proba p_yes p_no"]:
            if columns.endswith("p_no") and policy == "o.json":
                continue
            evaluate = f"evaluate t.csv --label truth --policy {policy} {columns}"
            text = run(evaluate, code=OPEN).out
            run(f"apply t.csv --policy {policy} {columns} --out d.csv")
            found.append((text, pd.read_csv("d.csv")["decision"].fillna("").tolist()))
        assert all(one == found[0] for one in found)
    said = run("evaluate t.csv --label truth --proba p_no p_yes --classes yes no").out
    assert "y_proba: its columns seem to be in another order, ['no', 'yes']" in unwrap(said)
    write(frame.assign(other=0.0), "o.csv")  # what is said counts more than what is remembered
    run("apply o.csv --policy rated.json --confidence-column other --out d.csv")
    assert not pd.read_csv("d.csv")["accepted"].any()


def test_classes_are_found_by_the_names_of_columns_or_guessed_aloud(frame, run, refuse):
    write(frame.rename(columns={"p_no": "no", "p_yes": "yes"}), "n.csv")
    threshold = read().threshold
    for columns in ("", "--proba yes no"):
        assert run(f"{AGAIN} n.csv --label truth {columns} --target 0.1").err == ""
        assert read().threshold == threshold
    run(f"{AGAIN} n.csv --label truth --target 0.1")
    assert read().metadata["skselect_columns"]["proba"] == ["no", "yes"]
    told = run(f"{AGAIN} t.csv --label truth --proba p_no p_yes --target 0.1").err
    assert "p_no for 'no', p_yes for 'yes' (use --classes to change this)" in told
    write(frame.assign(truth=(frame["truth"] == "yes").astype(int)), "i.parquet")
    run(f"{AGAIN} i.parquet --label truth --proba p_yes p_no --classes 1 0 --target 0.1")
    assert read().classes.tolist() == [1, 0]
    write(frame.assign(truth=frame["truth"].map({"no": "0", "yes": "1"}).astype("category")),
          "c.parquet")  # fmt: skip
    run(f"{AGAIN} c.parquet --label truth --proba p_no p_yes --classes 0 1 --target 0.1")
    assert read().classes.tolist() == ["0", "1"]
    write(frame.assign(truth="no"), "one.csv")
    told = refuse("evaluate one.csv --label truth --proba p_no p_yes")
    assert "holds the class 'no' only; name all classes" in told
    run(f"evaluate one.csv {PROBA}")


@pytest.mark.parametrize("names", [["1.10", "1.20"], ["250.00", "401.9"], ["-0", "1e3"]], ids=str)
def test_classes_that_look_like_numbers_keep_their_names(frame, names, run):
    renamed = dict(zip(["no", "yes"], names, strict=True))
    table = frame.assign(truth=frame["truth"].map(renamed))
    write(table.rename(columns={f"p_{x}": renamed[x] for x in renamed}), "n.csv")
    run(f"{AGAIN} n.csv --label truth --target 0.1")
    run("apply n.csv --policy policy.json --out d.csv")
    found = pd.read_csv("d.csv", dtype=str, keep_default_na=False)
    assert found["suggestion"].tolist() == frame["said"].map(renamed).tolist()
    assert set(found["decision"]) == {"", *names}
    classes = f"--classes {' '.join(names)}" if names[0] != "-0" else ""
    run(f"{AGAIN} n.csv --label truth --target 0.1 {classes}")


@pytest.mark.filterwarnings("ignore:subgroups")
@KINDS
def test_whole_numbers_as_subgroups(frame, rng, kind, run):
    """As text, as numbers or as floats; a missing or an unknown one defers."""
    frame["site"] = rng.choice([1, 20], len(frame))
    write(frame, "s.csv")
    run(f"{AGAIN} s.csv {PROBA} --target 0.12 --subgroups site")
    policy = read()
    assert list(policy.groups.thresholds) == [1, 20]
    gaps = frame["site"].astype("Int64").where(frame.index != 5)
    gaps[6] = 3
    for sites in (gaps, frame["site"], frame["site"].astype(float)):
        write(frame.assign(site=sites), f"n.{kind}")
        told = run(f"apply n.{kind} --policy policy.json --out d.csv").err
        assert ("belong to no site" in told) == (sites is gaps)
        decided = policy.decide(frame[["p_no", "p_yes"]].to_numpy(), subgroups=sites)["accepted"]
        assert pd.read_csv("d.csv")["accepted"].tolist() == decided.tolist()
    assert not policy.accepts([1.0, 1.0], subgroups=gaps[[5, 6]]).any()
    run(f"evaluate n.{kind} --label truth --policy policy.json", code=OPEN)


@BOTH
def test_other_columns_of_a_parquet_file_stay_as_they_are(frame, columns, policy, run):
    """As pandas reads them: categories, lists, integers of which one is missing, an index."""
    frame = frame[:300].set_index("id", drop=False)
    frame["case"] = frame["said"].astype("category")
    frame["many"], frame["raw"] = [[1, 2]] * 300, b"a"
    frame["count"] = (frame["id"] + 2**60).where(frame["id"] > 30).astype("Int64")
    frame.to_parquet("n.parquet")
    run(f"apply n.parquet --policy {policy} {columns[14:]} --out d.parquet")
    found = pd.read_parquet("d.parquet")
    others = ["id", "truth", "site", "case", "many", "raw", "count"]
    pd.testing.assert_frame_equal(found[others], frame[others])
    assert found["decision"].isna().tolist() == (~found["accepted"]).tolist()
    run(f"tune t.csv {columns} --target 0.1 --out made.json")
    stored = json.loads(Path("made.json").read_text())["metadata"]["skselect_columns"]
    answer = {"answer": "said", "confidence_column": "score"}
    proba = {"proba": ["p_no", "p_yes"]}
    assert stored == (answer if columns == ANSWER else proba) | {"subgroups": []}


def test_rows_that_depend_on_their_order_give_an_estimate_and_exit_code_5(frame, run):
    tune = f"{AGAIN} sorted.csv {PROBA} --target 0.1"
    write(frame.sort_values("p_yes"), "sorted.csv")
    said = run(tune, code=5)
    assert said.out.startswith("ESTIMATE, NOT CERTIFIED: the")
    assert "The order of the rows matters" in said.err
    assert not read().certificate.is_certified
    assert run(f"{tune} --assume independent").out.startswith("CERTIFIED, ")


def test_a_refusal_replaces_no_certificate_and_apply_names_a_refused_policy(frame, run):
    right = pd.Series(np.where(frame["said"] == frame["truth"], "right", "wrong"))
    write(frame.assign(judged=right.where(frame.index % 20 == 0)), "few.csv")
    judged = f"few.csv {VERDICT} --unjudged wrong --target 0.05"
    certified = Path("rated.json").read_text()
    run(f"tune {judged} --out new.json", code=5)
    kept = run(f"tune {judged} --out rated.json", code=3)
    assert "Kept: rated.json is certified, and a refusal replaces no certificate." in kept.out
    assert Path("rated.json").read_text() == certified
    applied = run("apply few.csv --policy new.json --answer said --confidence-column score", code=6)
    assert applied.err.startswith("REFUSED: new.json answers nothing")
    # A refused policy may replace another one that guarantees nothing.
    run(f"tune {judged} --out new.json", code=5)


# The report of a policy ---------------------------------------------------------------------------


@BOTH
def test_the_report_says_which_rows_a_certificate_is_about(frame, columns, policy, run):
    run(f"tune t.csv {columns} --target 0.12 --subgroups site --out sites.json")
    sure = frame["score"] if columns == ANSWER else frame[["p_no", "p_yes"]].max(axis=1)
    for file, sites in [(policy, None), ("sites.json", frame["site"])]:
        said = run(f"evaluate t.csv {columns} --policy {file}", code=OPEN).out
        accepted = read(file).accepts(sure, subgroups=sites)
        for words in ("CERTIFIED", "These rows chose", f"answered ({accepted.sum():,} of"):
            assert words in said
    write(frame.iloc[:2000], "other.csv")
    said = run(f"evaluate other.csv {columns} --policy {policy}", code=OPEN).out
    assert "with 3,000 rows. Its certificate is about those rows:" in said


@pytest.mark.parametrize(
    ("n", "rate", "verdict", "code"),
    [
        (3000, 0.02, "confirmed", 0),
        (3000, 0.3, "broken", BROKEN),
        (150, 0.1, "no_breach", 0),
        (150, 0.19, "in_doubt", OPEN),
        (25, 0.1, "not_tested", OPEN),
    ],
)
@BOTH
def test_the_exit_code_says_whether_the_guarantee_still_holds(
    frame, rng, columns, policy, n, rate, verdict, code, run
):
    later = frame.iloc[:n].assign(
        p_yes=lambda t: np.clip(t["p_yes"] * 0.999, 0, 1), p_no=lambda t: 1 - t["p_yes"],
        score=lambda t: t["score"] - 1e-6,
    )  # fmt: skip
    later["said"] = np.where(later["p_yes"] > 0.5, "yes", "no")
    other = np.where(later["said"] == "yes", "no", "yes")
    later["truth"] = np.where(rng.permutation(n) < rate * n, other, later["said"])
    write(later, "later.csv")
    said = run(f"evaluate later.csv {columns} --policy {policy}", code=code).out
    rows = predictions_of(later)
    if columns == ANSWER:
        rows = sk.Predictions.from_labels(later["truth"], later["said"], later["score"])
    expected = sk.check_policy(read(policy), rows)
    assert expected.verdict == verdict
    answer = verify_guarantee(read(policy), expected)
    assert unwrap(said).count(f"\n{answer.text}\n") == 1
    assert said.count(f"{VERDICTS[verdict][0]}. ") == 1
    sk.AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.9).to_json("plain.json")
    said = run(f"evaluate t.csv {PROBA} --policy plain.json").out
    assert "NOTHING TO CHECK: it guarantees nothing" in said


def test_a_brief_report_fits_on_a_screen_and_begins_with_the_verdict(frame, run):
    later = frame.assign(p_yes=frame["p_yes"] * 0.999, p_no=1 - frame["p_yes"] * 0.999)
    write(later, "later.csv")
    rows = f"later.csv {PROBA} --policy policy.json"
    full = run(f"evaluate {rows}").out
    brief = run(f"evaluate {rows} --brief").out
    planned = run(f"evaluate {rows} --brief --audits 1000 .02 30").out
    assert "a monitor gets" in unwrap(planned)
    assert len(planned.splitlines()) == len(brief.splitlines()) + 3
    assert len(brief.splitlines()) <= 40
    assert brief.index("at most 10 %") < brief.index("What does a risk target cost?")
    assert full.startswith(brief.split("A row whose confidence")[0])
    said = run(f"report {rows}").out
    assert said == f"{brief}\nWritten: report.html\n"
    assert "What does a risk target cost?" in Path("report.html").read_text()


# Files and streams --------------------------------------------------------------------------------


def test_decisions_go_through_pipes_and_links(run):
    os.mkfifo("pipe")
    Path("link.csv").symlink_to("real.csv")
    piped = []
    reader = threading.Thread(target=lambda: piped.append(Path("pipe").read_text()), daemon=True)
    reader.start()
    for name in ("d.csv", "pipe", "link.csv"):
        run(f"apply t.csv --policy policy.json --out {name}")
    reader.join()
    assert Path("link.csv").is_symlink()
    assert [*piped, Path("real.csv").read_text()] == [Path("d.csv").read_text()] * 2
    for name, files in [
        ("t.csv", "pipe --policy policy.json"),
        ("policy.json", "t.csv --policy pipe"),
    ]:
        text = Path(name).read_bytes()
        writer = threading.Thread(target=Path("pipe").write_bytes, args=[text], daemon=True)
        writer.start()
        run(f"apply {files} --out e.csv")  # as <(...) is read
        writer.join()
        assert Path("e.csv").read_text() == Path("d.csv").read_text()


def test_policy_and_python_file_are_written_together(monkeypatch, refuse):
    Path("gate.py").mkdir()  # nothing can be written there
    monkeypatch.setattr(commands, "_check_outputs", lambda *_: None)
    refuse(f"{AGAIN} t.csv {PROBA} --target 0.2 --python gate.py")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_leave_nothing_half_written(number, monkeypatch, refuse, request):
    # A job in the background may have been told to ignore the signal.
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    request.addfinalizer(partial(signal.signal, number, signal.signal(number, usual)))
    Path("d.csv").write_text("old")
    write_csv = table_files.write_csv

    def stopped(cells, file, *how):
        """Stop when the file is half written."""
        write_csv(cells[:1000], file, *how)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(table_files, "write_csv", stopped)
    told = refuse("apply t.csv --policy policy.json --out d.csv", code=128 + number)
    assert told == ("skselect: interrupted.\n" if number == signal.SIGINT else "")
    assert signal.getsignal(number) is usual


@pytest.mark.parametrize(("command", "stream", "code", "told"), [
    (TUNE, "stdout", 0, ""),
    (APPLY, "stdout", 2, "standard output is closed; name a file: --out decided.csv.\n"),
    ("evaluate - --label truth", "stdin", 2,
     "TABLE: standard input is closed; name a file.\n"),
    (APPLY, "stderr", 0, ""),
])  # fmt: skip
def test_closed_streams(command, stream, code, told, monkeypatch, run):
    monkeypatch.setattr(sys, stream, None)  # as Python does
    said = run(command, code=code)
    assert said.err == f"{'skselect: ' * bool(told)}{told}"
    lines = 3001 if stream == "stderr" else 0  # no message has strayed into the table
    assert said.out.count("\n") == lines


def test_full_and_broken_output(monkeypatch, run):
    ours, theirs = os.pipe()
    os.close(ours)
    full = "skselect: [Errno 28] No space left on device: 'standard output'\n"
    for name, command, code, told in [
        ("/dev/full", APPLY, 2, full), (theirs, APPLY, CUT_SHORT, ""),
        (theirs, f"{EVALUATE} --policy policy.json", OPEN, ""),
    ]:  # fmt: skip
        if name != "/dev/full" or Path(name).exists():
            with open(name, "w", closefd=name != theirs) as out:
                monkeypatch.setattr(sys, "stdout", out)
                assert run(command, code=code).err == told


# Shortlists -------------------------------------------------------------------------------------


@pytest.fixture
def animals(rng):
    proba = rng.dirichlet([0.2] * 4, 2000)
    names = np.array(["ant", "bee", "cow", "dog"])
    frame = pd.DataFrame(proba, columns=names)
    frame["truth"] = names[(rng.random((2000, 1)) > proba.cumsum(axis=1)[:, :-1]).sum(axis=1)]
    write(frame, "animals.csv")
    return frame


LISTS = f"{AGAIN} animals.csv --label truth --target 0.1 --shortlist"


@pytest.mark.parametrize(
    ("numbers", "shortlist"),
    [("0.9", 0.9), ("0.9 0.4 --seed 3", Shortlist(0.9, 0.4, random_state=3))],
)
def test_tune_lists_what_python_lists(animals, numbers, shortlist, run):
    said = run(f"{LISTS} {numbers} --confidence margin").out
    names = animals.columns[:4].tolist()
    expected = sk.select_threshold(
        sk.Predictions.from_proba(animals["truth"], animals[names], labels=names),
        objective="risk", target=0.1, confidence="margin", shortlist=shortlist,
    )  # fmt: skip
    policy = read()
    assert (policy.shortlist, policy.threshold) == (expected.shortlist, expected.threshold)
    assert policy.fingerprints == expected.policy.fingerprints
    assert str(expected) in said


@KINDS
def test_apply_writes_a_shortlist_as_text(animals, kind, run):
    run(f"{LISTS} 0.95")
    new = animals[["ant", "bee", "cow", "dog"]].copy()
    new.loc[3, "bee"] = np.nan
    write(new, "new.csv")
    run(f"apply new.csv --policy policy.json --out d.{kind}")
    found = getattr(pd, f"read_{kind}")(f"d.{kind}")
    listed = read().decide(new.drop(index=3))["shortlist"]
    expected = [None if names is pd.NA else "|".join(names) for names in listed]
    texts = found["shortlist"].astype(object)
    assert texts.where(texts.notna(), None).drop(index=3).tolist() == expected
    assert pd.isna(texts[3])  # a number is missing, so nothing is known of this row
    assert not found["accepted"][3]


def test_shortlists_that_a_table_cannot_hold_are_refused(animals, refuse):
    names = ["ant", "bee", "cow", "dog"]
    policy = sk.AbstentionPolicy(
        classes=np.array(names), threshold=0.8, shortlist=PolicyShortlist(0.95, 0.1, 0.8, 50)
    )
    barred = replace(policy, classes=np.array(["ant", "bee", "cow|calf", "dog"]))
    learned = LearnedScore(("doubt",), np.array([1.0]), 0.0)
    asks = replace(policy, classes=np.array(names[:3]), confidence=learned)
    write(animals.assign(suggestion="ant", confidence=0.9), "new.csv")
    apply = "apply new.csv --policy policy.json"
    for made, options, words in [
        (barred, "--proba ant bee cow dog", "class 'cow|calf' contains it"),
        (policy, "--answer truth --confidence-column ant", "probabilities of all classes"),
        (asks, DECIDED, "call policy.decide in Python"),
    ]:
        made.to_json("policy.json")
        assert words in refuse(f"{apply} {options}")
    assert "takes a level and perhaps a share" in refuse(f"{LISTS} 0.9 0.1 0.1")
    assert "needs at least 9999 rows" in refuse(f"{LISTS} 0.9999")
    renamed = animals.rename(columns={"cow": "cow|calf"}).replace({"truth": {"cow": "cow|calf"}})
    write(renamed, "animals.csv")
    assert "--shortlist: '|' stands between" in refuse(f"{LISTS} 0.9")


# Confidences that a table cannot give ---------------------------------------------------------

DECIDED = "--answer suggestion --confidence-column confidence"
BY_ANSWER = GroupThresholds("predicted_class", {"no": 0.8, "yes": 0.95}, by_answer=True)


@pytest.fixture
def calibrated(frame):
    """Return a policy that calibrates."""
    proba = frame[["p_no", "p_yes"]].to_numpy()
    codes = (frame["truth"] == "yes").to_numpy().astype(int)
    maps = ClassCalibration.fit("temperature", "predict_proba", proba, codes, 2)
    return sk.AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.8, calibration=maps)


def learned_of(policy, **options):
    """Return the policy with a confidence that asks an auxiliary model."""
    maps = {"rater": policy.calibration}
    learned = LearnedScore(("logit", "rater"), np.array([0.5, 0.7]), 1.0, maps)
    return replace(policy, threshold=0.9, confidence=learned, **options)


@pytest.mark.parametrize("groups", [None, BY_ANSWER])
def test_what_a_learned_confidence_decided_is_read_back(frame, calibrated, groups, rng, run):
    policy = learned_of(calibrated, groups=groups)
    policy.to_json("policy.json")
    proba = frame[["p_no", "p_yes"]].to_numpy()
    decided = policy.decide(proba, auxiliary={"rater": rng.permutation(proba)})
    write(frame.join(decided[["suggestion", "confidence"]]), "decided.csv")
    run(f"apply decided.csv --policy policy.json --out o.csv {DECIDED}")
    found = pd.read_csv("o.csv")
    assert found["accepted"].tolist() == decided["accepted"].tolist()
    assert 0 < found["accepted"].mean() < 1
    assert found["decision"].dropna().tolist() == decided["label"].dropna().tolist()
    said = run(f"evaluate decided.csv --label truth --policy policy.json {DECIDED}").out
    assert f"answered ({decided['accepted'].sum():,} of" in " ".join(said.split())


def test_what_a_table_cannot_give_is_refused(calibrated, refuse):
    calibrated.to_json("cal.json")
    for command in (f"apply t.csv {ANSWER[14:]}", f"evaluate t.csv {ANSWER}"):
        assert "is about a calibrated confidence" in refuse(f"{command} --policy cal.json")
    learned_of(calibrated).to_json("policy.json")
    for command in ("apply t.csv", "evaluate t.csv --label truth"):
        for columns in ("", "--proba p_no p_yes"):
            told = refuse(f"{command} --policy policy.json {columns}")
            assert "its learned confidence also asks ['rater']" in told
            assert DECIDED in told


# A reviewer who errs, and has so many hours ------------------------------------------------------


def _person(frame):
    wrong = np.random.default_rng(5).random(len(frame)) < 0.04
    return np.where(wrong == (frame["truth"] == "yes"), "no", "yes")


@KINDS
@pytest.mark.parametrize("columns", [PROBA, ANSWER], ids=["proba", "answer"])
def test_tune_reads_what_a_reviewer_answers(frame, kind, columns, run, refuse):
    write(frame.assign(person=_person(frame)), f"both.{kind}")
    plain = f"{AGAIN} both.{kind} {columns} --target 0.08"
    command = f"{plain} --objective system_risk"
    said = run(f"{command} --reviewer person").out
    if columns == PROBA:
        proba = frame[["p_no", "p_yes"]].to_numpy()
        rows = sk.Predictions.from_proba(frame["truth"], proba, reviewer=_person(frame))
    else:
        shown = [frame[name] for name in ("truth", "said", "score")]
        rows = sk.Predictions.from_labels(*shown, reviewer=_person(frame))
    expected = sk.select_threshold(rows, objective=sk.SystemRisk(0.08))
    assert read().threshold == expected.threshold < np.inf
    assert str(expected) in said
    evaluated = f"evaluate both.{kind} {columns} --policy policy.json"
    said = run(evaluated, code=OPEN).out
    assert "NOT TESTED: it guarantees how often machine and reviewer together" in unwrap(said)
    assert "NOTHING TO CHECK" not in run(f"{evaluated} --reviewer person", code=OPEN).out
    for option, error in [("0.03", 0.03), ("12 600", 0.03465)]:
        run(f"{command} --overall-error {option}")
        assert read().certificate.overall_error == pytest.approx(error, abs=1e-4)
    run(f"{command} --deferred-error 0.03")
    assert read().certificate.deferred_error == 0.03
    told = run(f"{evaluated} --reviewing error=.03 minutes=6 hours=40 cases=3000", code=OPEN)
    assert "40 hours are enough for 400 of 3,000 cases, so 86.7 % must be answered" in unwrap(
        told.out
    )
    for wrong, words in [
        (f"{evaluated} --reviewing .03 6 40", "'.03' has no name: write minutes=.03, say"),
        (f"{evaluated} --reviewing minutes=x", "--reviewing: minutes"),
        (f"{command} --deferred-error 3", "--deferred-error"),
        (command, "reviewer"),
        (f"{command} --overall-error some", "--overall-error"),
        (f"{command} --overall-error 12.5 600", "--overall-error"),
        (f"{command} --reviewer nobody", "no column 'nobody'"),
        (f"{plain} --reviewer person", "reviewer goes with the objectives ['system_risk']"),
    ]:
        assert words in refuse(wrong)


@BOTH
def test_apply_defers_the_least_sure_rows_of_the_whole_table(frame, columns, policy, run, refuse):
    lacking = frame["id"] < 20
    for name in ("p_no", "score"):
        frame[name] = frame[name].where(~lacking)
    write(frame, "t.csv")
    said = run(f"apply t.csv --policy {policy} --out d.csv --capacity 120").err
    assert "answered all the same (over_capacity). No guarantee covers them." in unwrap(said)
    assert "2,880 answered (96.0 %), 120 deferred" in said
    decided = pd.read_csv("d.csv")
    assert not decided["accepted"][lacking].any()
    sure = frame["p_yes"].where(frame["p_yes"] > 0.5, 1 - frame["p_yes"])[~lacking]
    deferred = decided.index[~decided["accepted"] & ~lacking]
    assert sorted(deferred) == sorted(sure.nsmallest(100).index)
    assert decided["decision"][decided["accepted"]].equals(frame["said"][decided["accepted"]])
    limit = read(policy).threshold / (1 if columns == PROBA else 100)
    over = (sure < limit).reindex(frame.index, fill_value=False) & decided["accepted"]
    assert decided["over_capacity"].tolist() == over.tolist()
    assert "--capacity must be an integer of at least 0" in refuse(
        f"apply t.csv --policy {policy} --out e.csv --capacity -1"
    )


# A cascade: a table for each stage ----------------------------------------------------------------

JOINED = "--label truth --proba p_no p_yes --classes no yes --id id"
TUNED = f"{JOINED} --target 0.05 --out c.json"


@pytest.fixture
def stages(frame):
    """Return the tables of three models, the cheapest first; the later ones have other orders."""
    rng, made = np.random.default_rng(7), {"cheap": frame}
    for name, right in [("middle", 0.9), ("strong", 0.97)]:
        sure = rng.beta(20 * right, 20 * (1 - right), len(frame)).clip(0.01, 0.99)
        p = np.where((rng.random(len(frame)) < sure) == (frame["truth"] == "yes"), sure, 1 - sure)
        made[name] = frame[["id", "truth"]].assign(p_no=1 - p, p_yes=p)
    for name, table in made.items():
        write(table, f"{name}.parquet")
        write(table if name == "cheap" else table.sample(frac=1, random_state=1), f"{name}.csv")
    return made


def facts(policy):
    """Return what a policy holds, without the time and the names of columns."""
    stored = json.loads(policy.to_json())
    stored["certificate"].pop("created")
    return {x: stored[x] for x in stored.keys() - {"created", "metadata", "digest"}}


@pytest.mark.parametrize("names", [["cheap", "strong"], ["cheap", "middle", "strong"]], ids=len)
def test_tables_are_the_stages_of_a_cascade_as_in_python(stages, names, run):
    files = " ".join(f"{x}.csv" for x in names)
    parts = {name: predictions_of(stages[name]) for name in names}
    found = sk.select_threshold(sk.join_stages(parts, target=0.05), objective=sk.Risk(0.05))
    mixed = " ".join(f"{x}.{'csv' if x == 'middle' else 'parquet'}" for x in names)
    for given in (mixed, files):  # their rows are in other orders
        said = run(f"tune {given} {TUNED} --python gate.py").out
        assert facts(read("c.json")) == facts(found.policy)
        assert str(found) in said
        assert str(found.policy.cascade) in unwrap(said)
    proba = {name: stages[name][["p_no", "p_yes"]].to_numpy() for name in names}
    for options, more in [("--python gate.py", {}), ("--capacity 100", {"capacity": 100})]:
        run(f"apply {files} --policy c.json --id id --out d.csv {options}")
        decided, expected = pd.read_csv("d.csv"), found.policy.decide(proba, **more)
        for name in ["suggestion", "accepted", "stage", *(["over_capacity"] if more else [])]:
            assert decided[name].tolist() == expected[name].tolist()
        np.testing.assert_allclose(decided["confidence"], expected["confidence"])
        assert decided["id"].tolist() == stages["cheap"]["id"].tolist()


def test_options_of_a_cascade(stages, run):
    tune = f"tune cheap.csv strong.csv {TUNED}"
    run(f"{tune} --costs 0.5 3 --max-loss 0.2")
    parts = {name: predictions_of(stages[name]) for name in ["cheap", "strong"]}
    plan = {"target": 0.05, "costs": [0.5, 3.0], "max_loss": 0.2}
    expected = cascade_of(sk.join_stages(parts, **plan))
    assert read("c.json").cascade.to_dict() == expected.to_dict()
    run(f"{tune} --subgroups site")
    site = stages["cheap"]["site"][~draw_rows(len(stages["cheap"]), 3, seed=0)]
    joined = sk.join_stages(parts, target=0.05)
    found = sk.select_threshold(joined, objective=sk.Risk(0.05), subgroups=site)
    assert read("c.json").groups.thresholds == found.thresholds
    person = _person(stages["cheap"])
    write(stages["cheap"].assign(person=person), "cheap.csv")
    run(f"{tune} --objective system_risk --reviewer person")
    cheap = replace(parts["cheap"], reviewer=(person == "yes").astype(int))
    joined = sk.join_stages({"cheap": cheap, "strong": parts["strong"]})
    found = sk.select_threshold(joined, objective=sk.SystemRisk(0.05))
    assert read("c.json").threshold == found.threshold


def test_later_stages_are_asked_only_for_the_cases_that_need_them(stages, run, refuse):
    run(f"tune cheap.csv middle.csv strong.csv {TUNED}")
    run("apply cheap.csv middle.csv strong.csv --policy c.json --id id --out all.csv")
    command = "apply cheap.csv --policy c.json --id id"
    first = refuse(command)
    assert re.search(r"[\d,]+ cases \('\d+', '\d+', '\d+', ...\) must ask 'middle'", first)
    assert not Path("d.csv").exists()
    for name in ["middle", "strong"]:
        run(f"{command} --ask ask.csv --out d.csv", code=OPEN)
        waiting = pd.read_csv("ask.csv")
        assert set(waiting["stage"]) == {name}
        assert not Path("d.csv").exists()
        table = stages[name][stages[name]["id"].isin(waiting["id"])]
        assert 0 < len(table) < len(stages[name])
        write(table, f"some_{name}.csv")
        command = command.replace(" --policy", f" some_{name}.csv --policy")
    run(f"{command} --ask ask.csv --out d.csv")
    assert Path("ask.csv").read_text() == "id,stage\n"
    assert Path("d.csv").read_bytes() == Path("all.csv").read_bytes()
    assert set(pd.read_csv("d.csv")["stage"]) == {"cheap", "middle", "strong"}
    write(table[1:], "some_strong.csv")
    assert "1 case (" in refuse(f"{command} --out d.csv")


def test_cases_without_numbers_are_deferred_and_ask_no_stage(stages, run):
    run(f"tune cheap.csv strong.csv {TUNED}")
    run("apply cheap.csv strong.csv --policy c.json --id id --out whole.csv")
    whole = pd.read_csv("whole.csv")
    cheap, strong = stages["cheap"].copy(), stages["strong"].copy()
    cheap.loc[:9, "p_no"] = np.nan
    strong.loc[5:400, ["p_no", "p_yes"]] = np.nan
    write(cheap, "cheap.csv")
    write(strong[10:], "strong.csv")
    run("apply cheap.csv strong.csv --policy c.json --id id --out d.csv")
    decided = pd.read_csv("d.csv")
    lost = (whole.index < 10) | ((whole["stage"] == "strong") & (whole.index <= 400))
    assert not decided["accepted"][lost].any()
    assert decided[["decision", "suggestion", "confidence", "stage"]][lost].isna().all(axis=None)
    names = ["decision", "accepted", "confidence", "stage"]
    assert decided.loc[~lost, names].equals(whole.loc[~lost, names])


def test_decisions_of_a_cascade_are_evaluated_and_watched(stages, run, refuse):
    run(f"tune cheap.csv strong.csv {TUNED}")
    new = {name: table.iloc[np.arange(3000) % 3 == 0] for name, table in stages.items()}
    for name, table in new.items():
        write(table.assign(when=np.arange(1000)), f"{name}.csv")
    run("apply cheap.csv strong.csv --policy c.json --id id --out d.csv")
    columns = "--label truth --answer suggestion --confidence-column confidence"
    decided = pd.read_csv("d.csv")
    write(decided.assign(truth=decided["suggestion"]), "d.csv")
    assert "CONFIRMED" in run(f"evaluate d.csv {columns} --policy c.json --brief").out
    watch = "--policy c.json --time when --id id --label-delay 9"
    assert "Counted: 1,000 cases" in run(f"monitor d.csv {columns} {watch}").out
    for command in [f"evaluate cheap.csv {PROBA} --policy c.json",
                    f"monitor cheap.csv {PROBA} {watch}"]:  # fmt: skip
        assert "it asks the stages ['cheap', 'strong'] in turn" in refuse(command)


def test_tables_that_make_no_cascade_are_refused(stages, refuse):
    strong, cheap = stages["strong"], stages["cheap"]
    flipped = strong["truth"].map({"no": "yes", "yes": "no"})
    other = strong.assign(truth=strong["truth"].where(strong["id"] > 1, flipped))
    Path("other").mkdir()
    for table, options, words in [
        (strong, TUNED.replace("--id id", ""), "--id is missing"),
        (strong[5:], TUNED, "only cheap.csv has 5 cases ('0', '1', '2', ...); each"),
        (pd.concat([strong, strong[:2]]), TUNED, "has several rows for 2 cases ('0', '1')"),
        (other, TUNED, "--label: cheap.csv and strong.csv differ for 2 cases ('0', '1')."),
        (strong, f"{TUNED} --costs 1", "costs"),
        (cheap, f"{ANSWER} --id id --target 0.1", "--proba"),
    ]:
        write(table, "other/strong.csv")
        assert words in refuse(f"{AGAIN} cheap.csv other/strong.csv {options}")
    write(strong, "other/cheap.csv")
    same = refuse(f"tune cheap.csv other/cheap.csv {TUNED}")
    assert "several tables have one name among ['cheap', 'cheap']" in same
    for option in ("--costs 0 1", "--max-loss 0.05"):
        assert option[:6] in refuse(f"{AGAIN} cheap.csv {PROBA} --target 0.05 {option}")
    swapped = refuse(f"tune cheap.csv strong.csv {TUNED.replace('no yes', 'yes no')}", code=3)
    assert "y_proba: its columns seem to be in another order" in swapped


def test_tables_that_do_not_fit_a_cascade_are_refused(stages, run, refuse):
    run(f"tune cheap.csv strong.csv {TUNED}")
    cheap = stages["cheap"]
    parts = {name: sk.Predictions.from_labels(cheap["truth"], cheap["said"], cheap["score"] / 100)
             for name in ["cheap", "strong"]}  # fmt: skip
    rated = sk.select_threshold(sk.join_stages(parts), objective=sk.Risk(0.1)).policy
    rated.to_json("answers.json", allow_external=True)
    for name in ["cheap", "strong"]:
        write(cheap[:0], f"{name}.parquet")
    by_id, order = "--policy c.json --out d.csv --id id", "stages are ['cheap', 'strong']; give a"
    answers = "a cascade of answers that come with a confidence"
    for command, words in [
        ("apply cheap.csv strong.csv --policy c.json --out d.csv", "--id is missing"),
        (f"apply strong.csv cheap.csv {by_id}", order),
        (f"apply cheap.csv middle.csv strong.csv {by_id}", order),
        ("apply cheap.csv strong.csv --policy policy.json --id id", "with the policy of a cascade"),
        ("apply cheap.csv --policy answers.json", answers),
        ("evaluate cheap.csv --policy answers.json --label truth", answers),
        (f"apply cheap.parquet {by_id}", "cheap.parquet has no rows"),
        (f"apply cheap.csv strong.parquet {by_id}", "strong.parquet has no rows"),
    ]:
        assert words in refuse(command)
