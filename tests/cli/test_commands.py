"""skselect evaluate, tune and apply: the same as in Python, from files to files."""

import json
import os
import re
import signal
import sys
import tempfile
import threading
from dataclasses import replace
from functools import partial
from io import TextIOWrapper
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from skselect import (
    AbstentionPolicy,
    Best,
    Outcomes,
    Predictions,
    Risk,
    check_policy,
    select_threshold,
)
from skselect._lib import files as _files
from skselect.calibration._scopes import ClassCalibration
from skselect.cli import BROKEN, UNDECIDED, commands, tables
from skselect.cli.main import main
from skselect.policy.subgroups import GroupThresholds, PolicyShortlist
from skselect.predictions.confidence import LearnedScore
from skselect.thresholds import Shortlist
from tests.brute import named
from tests.common import run_python


@pytest.fixture(autouse=True)
def _stopped_clock(monkeypatch):
    """Reports print the minute in which they were made; tests compare them."""
    monkeypatch.setattr("skselect.report.selective.now", lambda: "2026-01-31T09:30:00+00:00")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tables, "_PIECE", 1000)
    monkeypatch.setattr(tables, "_BLOCK", 50_000)


@pytest.fixture(scope="module")
def made():
    """Return the files that are alike in all tests of this module."""
    return {}


@pytest.fixture
def once(made):
    """Return a function that makes a file, or copies it from the test that made it first."""

    def make(name, write, *key):
        if (name, key) in made:
            Path(name).write_bytes(made[name, key])
        else:
            write()
            made[name, key] = Path(name).read_bytes()

    return make


@pytest.fixture
def tuned(once):
    """Return a function that makes policy.json of t.csv by a command that other tests check."""

    def make(columns=PROBA):
        tune = ["tune", "t.csv", *columns, "--target", "0.1"]
        once("policy.json", lambda: main(tune), *columns)

    return make


@pytest.fixture
def frame(rng, once):
    n = 3000
    p = rng.beta(0.4, 0.4, n)
    truth = np.where(rng.random(n) < p, "yes", "no")
    frame = pd.DataFrame({
        "id": np.arange(n), "truth": truth, "p_no": 1 - p, "p_yes": p,
        "site": rng.choice(["east", "west"], n),
    })  # fmt: skip
    frame["said"] = np.where(p > 0.5, "yes", "no")
    frame["score"] = 100 * np.maximum(p, 1 - p)
    once("t.csv", lambda: frame.to_csv("t.csv", index=False))
    once("t.parquet", lambda: frame.to_parquet("t.parquet", index=False))
    return frame


PROBA = ["--label", "truth", "--proba", "p_no", "p_yes", "--classes", "no", "yes"]
ANSWER = ["--label", "truth", "--answer", "said", "--confidence-column", "score"]


def predictions_of(frame):
    proba = frame[["p_no", "p_yes"]].to_numpy()
    return Predictions.from_proba(frame["truth"].to_numpy(), proba)


@pytest.mark.filterwarnings("ignore:min_coverage", "ignore:cwsa_plus is best")
@pytest.mark.parametrize("table", ["t.csv", "t.parquet"])
@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({"objective": "risk", "target": 0.1}, ["--target", "0.1"]),
        ({"objective": Risk(0.1, delta=0.2, method="band")},
         ["--target", "0.1", "--delta", "0.2", "--method", "band"]),
        ({"objective": Risk(0.1, max_analyses=3)},
         ["--target", "0.1", "--max-analyses", "3"]),
        ({"objective": "coverage", "target": 0.6}, ["--objective", "coverage", "--target", ".6"]),
        ({"objective": Best("cwsa_plus", min_coverage=0.3)},
         ["--objective", "cwsa_plus", "--min-coverage", "0.3"]),
        ({"objective": Best("cwsa", threshold_range=(0.6, 0.8), min_coverage=0.1)},
         ["--objective", "cwsa", "--threshold-range", "0.6", ".8", "--min-coverage", ".1"]),
        ({"objective": Best("selective_accuracy", method="lower_bound")},
         ["--objective", "selective_accuracy", "--method", "lower_bound"]),
    ],
)  # fmt: skip
def test_tune_chooses_what_python_chooses(frame, table, options, arguments, capsys):
    assert main(["tune", table, *PROBA, *arguments]) == 0
    policy = AbstentionPolicy.from_json("policy.json")
    expected = select_threshold(predictions_of(frame), **options)
    assert policy.threshold == expected.threshold
    assert policy.coverage == expected.policy.coverage
    assert policy.confidence_quantiles == expected.policy.confidence_quantiles
    assert policy.fingerprints == expected.policy.fingerprints
    if expected.certificate is not None:
        mine, theirs = policy.certificate.to_dict(), expected.certificate.to_dict()
        assert {k: v for k, v in mine.items() if k != "created"} == {
            k: v for k, v in theirs.items() if k != "created"
        }
    assert str(expected) in capsys.readouterr().out


@pytest.mark.parametrize("out", ["d.csv", "d.parquet"])
def test_apply_decides_as_the_policy(frame, out, capsys):
    assert main(["tune", "t.csv", *PROBA, "--target", "0.1"]) == 0
    assert main(["apply", "t.csv", "--policy", "policy.json", "--out", out]) == 0
    # As text first: an older pandas misses the last bit of numbers in a CSV file.
    exact = {"confidence": str}
    found = pd.read_csv(out, dtype=exact) if out.endswith("csv") else pd.read_parquet(out)
    policy = AbstentionPolicy.from_json("policy.json")
    expected = policy.decide(frame[["p_no", "p_yes"]].to_numpy())
    assert found["accepted"].tolist() == expected["accepted"].tolist()
    assert found["suggestion"].tolist() == expected["suggestion"].tolist()
    np.testing.assert_array_equal(found["confidence"].astype(float), expected["confidence"])
    np.testing.assert_array_equal(found["decision"].isna(), ~expected["accepted"])
    assert found["id"].astype(int).tolist() == frame["id"].tolist()
    assert "p_no" not in found
    accepted = int(expected["accepted"].sum())
    assert f"3,000 rows: {accepted:,} answered (" in capsys.readouterr().err
    assert not list(Path().glob("*.part"))


def test_apply_compares_the_whole_table_with_the_rows_that_tuned(frame, tuned, capsys):
    assert main(["tune", "t.csv", *PROBA, "--target", "0.1"]) == 0
    by_confidence = frame.sort_values("score").drop(columns="truth")  # each piece is unlike it
    by_confidence.to_csv("sorted.csv", index=False)
    by_confidence.assign(p_no=by_confidence["p_no"].where(frame["id"] % 4 > 0)).to_csv(
        "gaps.csv", index=False
    )
    for name in ("sorted.csv", "gaps.csv"):
        assert main(["apply", name, "--policy", "policy.json", "--out", "d.csv"]) == 0
        assert "rows have a confidence" not in capsys.readouterr().err
    softer = {name: 0.5 + 0.7 * (frame[name] - 0.5) for name in ("p_no", "p_yes")}
    frame.assign(**softer).to_csv("softer.csv", index=False)
    assert main(["apply", "softer.csv", "--policy", "policy.json", "--out", "d.csv"]) == 0
    assert "of these 3,000 rows have a confidence below" in capsys.readouterr().err


def test_apply_to_standard_output_with_a_prefix(frame, tuned, capsys):
    tuned()
    capsys.readouterr()
    frame.drop(columns="truth").assign(confidence=1).to_csv("new.csv", index=False)
    assert main(["apply", "new.csv", "--policy", "policy.json"]) == 2
    assert "columns ['confidence'] already" in capsys.readouterr().err
    assert main(["apply", "new.csv", "--policy", "policy.json", "--prefix", "gate_"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3001
    assert lines[0].endswith("gate_decision,gate_suggestion,gate_accepted,gate_confidence,"
                             "gate_threshold")  # fmt: skip


def test_an_answer_and_a_confidence_of_any_scale(frame, capsys):
    assert main(["tune", "t.csv", *ANSWER, "--target", "0.1", "--out", "llm.json"]) == 0
    expected = select_threshold(
        Outcomes.from_labels(frame["truth"], frame["said"], frame["score"]),
        objective="risk", target=0.1,
    )  # fmt: skip
    policy = AbstentionPolicy.from_json("llm.json")
    assert policy.threshold == expected.threshold
    capsys.readouterr()
    assert main(["apply", "t.csv", "--policy", "llm.json"]) == 0
    accepted = [line.split(",")[-1] == "True" for line in capsys.readouterr().out.splitlines()[1:]]
    assert accepted == (frame["score"] >= policy.threshold).tolist()
    assert main(["evaluate", "t.csv", *ANSWER, "--policy", "llm.json"]) == UNDECIDED
    assert f"{sum(accepted):,}" in capsys.readouterr().out


def test_subgroups(frame, capsys):
    arguments = ["--target", "0.12", "--subgroups", "site", "--out", "sites.json"]
    assert main(["tune", "t.parquet", *PROBA, *arguments]) == 0
    expected = select_threshold(
        predictions_of(frame), objective="risk", target=0.12, subgroups=frame["site"]
    )
    policy = AbstentionPolicy.from_json("sites.json")
    assert policy.groups.thresholds == expected.policy.groups.thresholds
    assert "site 'east'\nCERTIFIED" in capsys.readouterr().out
    assert main(["apply", "t.csv", "--policy", "sites.json", "--out", "d.csv"]) == 0
    decided = policy.decide(frame[["p_no", "p_yes"]].to_numpy(), subgroups=frame["site"])
    assert pd.read_csv("d.csv")["accepted"].tolist() == decided["accepted"].tolist()
    assert main(["evaluate", "t.csv", "--label", "truth", "--policy", "sites.json"]) == UNDECIDED
    assert "[east] CERTIFIED" in capsys.readouterr().out


@pytest.mark.parametrize(("table", "rows"), [("t.csv", " rows"), ("t.parquet", "/3.00k ")])
def test_reading_a_file_shows_progress_on_a_terminal(frame, table, rows, terminal, capsys):
    shown = terminal()
    assert main(["evaluate", table, *PROBA]) == 0
    assert f"{table}: " in shown.getvalue()
    assert rows in shown.getvalue()
    assert "\r" not in capsys.readouterr().out


@pytest.mark.parametrize("table", ["t.csv", "t.parquet"])
def test_evaluate_names_the_most_confident_errors(frame, table, capsys):
    frame["case"] = [f"00{i}" for i in frame["id"]]  # as a number it would lose its zeros
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet", index=False)
    named = ["--id", "case", "--features", "site", "p_yes"]
    assert main(["evaluate", table, *PROBA, *named]) == 0
    listed = capsys.readouterr().out.split("Most confident errors\n")[1].splitlines()
    assert " ".join(listed[0].split()) == ("case true answer confidence site p_yes")
    wrong = frame[frame["truth"] != frame["said"]]
    worst = wrong.sort_values("score", ascending=False, kind="stable").head(10)
    assert [line.split()[0] for line in listed[1:11]] == worst["case"].tolist()
    assert [line.split()[4] for line in listed[1:11]] == worst["site"].tolist()
    assert main(["evaluate", table, *PROBA, "--id", "cases"]) == 2
    assert "has no column 'cases'" in capsys.readouterr().err


def test_what_takes_long_is_told_on_a_terminal(frame, terminal, monkeypatch, capsys):
    monkeypatch.setattr(_files, "_MANY_ROWS", 1000)
    shown = terminal()
    assert main(["tune", "t.csv", *PROBA, "--target", "0.1"]) == 0
    assert "choosing a threshold ..." in shown.getvalue()
    assert main(["evaluate", "t.csv", *PROBA]) == 0
    assert "computing the report ..." in shown.getvalue()
    assert "..." not in capsys.readouterr().out.splitlines()


# Files as hospitals write them --------------------------------------------------------------


@pytest.fixture
def german(frame):
    return frame[:900].assign(site=lambda t: t["site"].replace("west", "Köln"), note="007")


LAYOUT = ["--separator", ";", "--decimal", ",", "--encoding"]


def test_tables_of_any_layout_are_the_same(german, monkeypatch, capsys):
    def say(table, out, *layout):
        """Return what the commands print, and what they write."""
        said = []
        for command, *options in [
            ["tune", *PROBA, "--target", ".2", "--subgroups", "site", "--out", out],
            ["evaluate", *PROBA, "--subgroups", "site", "--title", "T"],
            ["apply", "--policy", out, "--out", "d.csv"],
        ]:
            assert main([command, table, *options, *layout]) == 0
            said.append(capsys.readouterr().out.replace(out, ""))
        return [*said, AbstentionPolicy.from_json(out).groups.thresholds]

    def read_decisions(**layout):
        found = pd.read_csv("d.csv", dtype={"note": str}, **layout)
        assert found["site"].tolist() == german["site"].tolist()
        assert found["note"].eq("007").all()
        return found["accepted"].tolist()

    german.to_csv("plain.csv", index=False)
    expected, decided = say("plain.csv", "p.json"), read_decisions()
    for name, encoding, sep in [
        ("g.csv", "cp1252", ";"), ("g.csv", "utf-8-sig", ";"), ("g.txt", "utf-16", "\t"),
        ("g.tsv", "utf-8", "\t"), ("g.csv.gz", "cp1252", ";"), ("g.tsv.bz2", "utf-8", "\t"),
        ("g.csv.zst", "utf-8", ";"), ("-", "cp1252", ";"), ("-", "utf-8", ";"),
    ]:  # fmt: skip
        file = "stdin.csv" if name == "-" else name
        text = german.to_csv(sep=sep, decimal=",", index=False).encode(encoding)
        with pa.output_stream(file) as out:
            out.write(text)
        layout = ["--decimal", ",", "--encoding", encoding]
        layout += [] if ".tsv" in name else ["--separator", sep.replace("\t", "\\t")]
        with named(name), Path(file).open("rb") as raw:
            monkeypatch.setattr(sys, "stdin", Input(raw))
            assert say(name, "q.json", *layout) == expected
            # The ending .tsv is that of another file.
            marks = {"sep": "," if ".tsv" in name else sep, "decimal": ","}
            assert read_decisions(encoding=encoding, **marks) == decided
    assert not list(Path(tempfile.gettempdir()).glob("skselect-*.csv"))


class Input(TextIOWrapper):
    """Standard input that each command reads from its start."""

    @property
    def buffer(self):
        raw = super().buffer
        raw.seek(0)
        return raw


@pytest.mark.parametrize(
    ("write", "options", "message"),
    [
        ({"sep": ";"}, [], 'It looks as if a semicolon separates its cells: --separator ";".'),
        ({"sep": "\t"}, [], r'It looks as if a tab separates its cells: --separator "\t".'),
        ({}, ["--separator", ";"], 'if a comma separates its cells: --separator ",".'),
        ({"sep": ";", "decimal": ","}, ["--separator", ";"], "For decimal commas say --decimal ,."),
        ({"sep": ";"}, LAYOUT[:4], "It has a decimal point: leave --decimal out."),
        ({"encoding": "cp1252"}, [], "has the byte 0xf6. Name its encoding, such as --encoding "
         "cp1252"),
        ({"encoding": "utf-16"}, [], "such as --encoding utf-16."),
        ({"encoding": "utf-8"}, ["--encoding", "ascii"], "--encoding: bad.csv is not written in"),
    ],
)  # fmt: skip
def test_another_layout_is_told_and_not_guessed(german, write, options, message, capsys):
    german.to_csv("bad.csv", index=False, **write)
    assert main(["evaluate", "bad.csv", *PROBA, *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value"), [("--separator", ";;"), ("--separator", "é"), ("--encoding", "ansi-x"),
                          ("--decimal", ";")]
)  # fmt: skip
def test_layouts_that_do_not_exist(frame, option, value, capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", "t.csv", *PROBA, option, value])
    assert f"argument {option}: " in capsys.readouterr().err


def test_a_damaged_packed_table(frame, capsys):
    Path("t.csv.gz").write_bytes(b"no gzip")
    assert main(["evaluate", "t.csv.gz", *PROBA]) == 2
    assert "TABLE: t.csv.gz cannot be unpacked" in capsys.readouterr().err


def test_decisions_that_an_encoding_cannot_write(frame, capsys):
    frame.assign(truth=frame["truth"].replace("yes", "是")).to_csv("t.csv", index=False)
    assert main(["tune", "t.csv", *PROBA[:-1], "是", "--target", "0.1"]) == 0
    frame[["p_no", "p_yes"]].to_csv("new.csv", index=False)
    arguments = ["apply", "new.csv", "--policy", "policy.json", "--encoding", "cp1252"]
    assert main([*arguments, "--out", "d.csv"]) == 2
    assert "--encoding: cp1252 has no sign for '是'" in capsys.readouterr().err
    assert not Path("d.csv").exists()


@pytest.mark.parametrize("name", ["d.txt", "d.json", "d.csv.gz"])
def test_decisions_are_written_as_the_ending_says(frame, tuned, name, capsys):
    tuned()
    assert main(["apply", "t.csv", "--policy", "policy.json", "--out", name]) == 2
    assert "and the ending says what is written" in capsys.readouterr().err


def test_evaluate_writes_page_and_table(frame, capsys):
    arguments = ["--threshold", "0.9", "--html", "r.html", "--csv", "r.csv", "--title", "Mine"]
    assert main(["evaluate", "t.parquet", *PROBA, *arguments]) == 0
    assert capsys.readouterr().out.startswith("Mine\n====\n\n3,000 rows; classes no:")
    assert "<title>Mine</title>" in Path("r.html").read_text()
    table = pd.read_csv("r.csv").set_index("metric")
    sure = frame[["p_no", "p_yes"]].max(axis=1) >= 0.9
    assert table.loc["coverage", "value"] == pytest.approx(sure.mean())


def test_columns_named_like_the_classes_need_no_name(frame, capsys):
    frame.rename(columns={"p_no": "no", "p_yes": "yes"}).to_csv("n.csv", index=False)
    assert main(["tune", "n.csv", "--label", "truth", "--target", "0.1"]) == 0
    assert capsys.readouterr().err == ""
    policy = AbstentionPolicy.from_json("policy.json")
    assert policy.metadata["skselect_columns"]["proba"] == ["no", "yes"]


def test_a_guess_is_told(frame, capsys):
    named = ["--label", "truth", "--proba", "p_no", "p_yes"]
    assert main(["tune", "t.csv", *named, "--target", "0.1"]) == 0
    told = capsys.readouterr().err
    assert "p_no for 'no', p_yes for 'yes' (use --classes to change this)" in told


def test_classes_of_numbers(frame, capsys):
    frame.assign(truth=(frame["truth"] == "yes").astype(int)).to_parquet("i.parquet")
    named = ["--label", "truth", "--proba", "p_yes", "p_no", "--classes", "1", "0"]
    assert main(["tune", "i.parquet", *named, "--target", "0.1"]) == 0
    assert AbstentionPolicy.from_json("policy.json").classes.tolist() == [1, 0]


def test_out_of_reach_exits_with_three_and_writes_nothing(frame, capsys, tmp_path):
    before = sorted(tmp_path.iterdir())
    assert main(["tune", "t.csv", *PROBA, "--target", "0.0001"]) == 3
    assert "No threshold meets target=0.0001 for objective='risk'" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tune", "no.csv", *PROBA], "there is no file 'no.csv'"),
        (["tune", "t.csv", "--label", "truht", "--target", ".1"], "Did you mean 'truth'?"),
        (["tune", "t.csv", "--label", "truth", "--target", ".1"], "no columns ['no', 'yes']"),
        (["tune", "t.csv", *PROBA], "target"),
        (["tune", "t.csv", *PROBA, "--target", "2"], "target"),
        (["tune", "t.csv", *PROBA, "--target", ".1", "--method", "luck"], "method"),
        (["tune", "t.csv", *PROBA, "--target", ".1", "--confidence", "luck"], "confidence"),
        (["tune", "t.csv", *PROBA, "--target", ".1", "--out", "no/p.json"], "no folder 'no'"),
        (["tune", "t.csv", "--label", "truth", "--answer", "said", "--target", ".1"],
         "--answer and --confidence-column go together"),
        (["tune", "t.csv", *PROBA, "--answer", "said", "--confidence-column", "score"],
         "Name either"),
        (["tune", "t.csv", "--label", "truth", "--proba", "p_no", "p_yes", "score", "--target",
          ".1"], "--proba"),
        (["tune", "t.csv", *PROBA[:-1], "maybe", "--target", ".1"], "yes"),
        (["tune", "t.csv", "--label", "truth", "--proba", "site", "p_yes", "--target", ".1"],
         "column 'site' must hold numbers"),
        (["evaluate", "t.csv", *PROBA, "--policy", "t.csv"], "policy"),
        (["apply", "t.csv", "--policy", "none.json"], "--policy: there is no file 'none.json'"),
    ],
)  # fmt: skip
def test_clear_messages_and_exit_code(frame, arguments, message, capsys):
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert told.splitlines()[-1].startswith("skselect: ")
    assert message in told


def test_a_bad_row_leaves_no_half_file(frame, tuned, capsys, tmp_path):
    tuned()
    frame.astype({"p_no": object}).assign(
        p_no=frame["p_no"].where(frame.index != 2500, "?")
    ).to_csv("bad.csv", index=False)
    assert main(["apply", "bad.csv", "--policy", "policy.json", "--out", "d.csv"]) == 2
    assert "column 'p_no' must hold numbers, but line 2502 holds '?'" in capsys.readouterr().err
    assert not list(tmp_path.glob("d.csv*"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("columns", [PROBA, ANSWER], ids=["proba", "answer"])
def test_rows_that_lack_a_number_are_deferred(frame, tuned, kind, columns, monkeypatch):
    tuned(columns)
    frame = frame.iloc[:30]
    lacking = frame.index.isin([3, 4, 5, 6, 7, 8, 20])
    gaps = frame.assign(p_no=frame["p_no"].where(~lacking), score=frame["score"].where(~lacking))
    getattr(gaps, f"to_{kind}")(f"gaps.{kind}", index=False)
    getattr(frame, f"to_{kind}")(f"whole.{kind}", index=False)
    monkeypatch.setattr(tables, "_PIECE", 3)
    monkeypatch.setattr(tables, "_BLOCK", 400)
    found = []
    for name in ["gaps", "whole"]:
        out = f"{name}_d.parquet"
        assert main(["apply", f"{name}.{kind}", "--policy", "policy.json", "--out", out]) == 0
        found.append(pd.read_parquet(out))
    assert not found[0]["accepted"][lacking].any()
    assert found[0]["decision"][lacking].isna().all()
    same = ["decision", "accepted"]
    pd.testing.assert_frame_equal(found[0].loc[~lacking, same], found[1].loc[~lacking, same])


def test_python_policies_are_applied_by_class_names(frame, capsys):
    found = select_threshold(predictions_of(frame), objective="risk", target=0.1)
    found.policy.to_json("mine.json")
    assert main(["apply", "t.csv", "--policy", "mine.json"]) == 2
    assert "no columns ['no', 'yes']" in capsys.readouterr().err
    named = ["--proba", "p_no", "p_yes", "--out", "d.csv"]
    assert main(["apply", "t.csv", "--policy", "mine.json", *named]) == 0
    accepted = found.policy.decide(frame[["p_no", "p_yes"]].to_numpy())["accepted"]
    assert pd.read_csv("d.csv")["accepted"].tolist() == accepted.tolist()


def test_the_python_file_decides_the_same(frame, capsys):
    assert main(["tune", "t.csv", *PROBA, "--target", "0.1", "--python", "gate.py"]) == 0
    assert "Written: policy.json, gate.py" in capsys.readouterr().out
    gate = {"__name__": "gate"}
    exec(Path("gate.py").read_text(), gate)
    proba = frame[["p_no", "p_yes"]].to_numpy()
    expected = AbstentionPolicy.from_json("policy.json").decide(proba)
    assert gate["decide"](proba)["accepted"].tolist() == expected["accepted"].tolist()


def test_a_python_file_beside_another_policy_is_told(frame, tmp_path, capsys):
    """A kill between the two renames of `tune` leaves such a pair."""
    both = ["--out", "policy.json", "--python", "gate.py"]
    assert main(["tune", "t.csv", *PROBA, "--target", "0.1", *both]) == 0
    assert main(["tune", "t.csv", *PROBA, "--target", "0.2", "--out", "other.json"]) == 0
    Path("lost.json").write_text("{}")
    compare = ["apply", "t.csv", "--python", "gate.py", "--out", "d.csv", "--policy"]
    assert main([*compare, "policy.json"]) == 0
    capsys.readouterr()
    assert main([*compare, "other.json"]) == 2
    assert "--python: gate.py is not the Python file of other.json" in capsys.readouterr().err
    said = {
        "policy.json": (0, ""),
        "other.json": (1, "other.json is another policy than"),
        "lost.json": (1, "lost.json is no policy file with a digest (KeyError"),
        "none.json": (1, "none.json is no policy file with a digest (FileNotFoundError"),
    }
    for name, (code, words) in said.items():
        done = run_python(Path("gate.py").read_text(), name, folder=tmp_path, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False)
        assert words in done.stdout + done.stderr


def test_no_python_file_without_probabilities(frame, capsys, tmp_path):
    assert main(["tune", "t.csv", *ANSWER, "--target", "0.1", "--python", "gate.py"]) == 2
    assert "--python goes with --proba" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.json"))


def test_policies_are_plain_json(frame, tuned):
    tuned(ANSWER)
    stored = json.loads(Path("policy.json").read_text())
    assert stored["confidence"] == "external:score"
    assert stored["metadata"]["skselect_columns"] == {
        "answer": "said", "confidence_column": "score", "subgroups": []
    }  # fmt: skip


# What must not be misread -----------------------------------------------------------------------


def test_classes_in_another_order_mean_the_same(frame, capsys):
    swapped = ["--proba", "p_yes", "p_no", "--classes", "yes", "no"]
    assert main(["tune", "t.csv", *PROBA, "--target", "0.1"]) == 0
    assert main(["tune", "t.csv", "--label", "truth", *swapped, "--target", ".1", "--out",
                 "o.json"]) == 0  # fmt: skip
    one, two = (AbstentionPolicy.from_json(path) for path in ["policy.json", "o.json"])
    assert one.threshold == two.threshold
    for policy in ["policy.json", "o.json"]:
        texts = []
        for columns in [[], swapped, PROBA[2:]]:
            capsys.readouterr()
            arguments = ["t.csv", "--label", "truth", "--policy", policy, *columns]
            assert main(["evaluate", *arguments]) == UNDECIDED
            texts.append(capsys.readouterr().out)
        assert texts[0] == texts[1] == texts[2]
        decided = []
        for columns in [[], swapped, PROBA[2:]]:
            assert main(["apply", "t.csv", "--policy", policy, *columns, "--out", "d.csv"]) == 0
            decided.append(pd.read_csv("d.csv")["decision"].fillna("").tolist())
        assert decided[0] == decided[1] == decided[2]


def test_columns_named_like_the_classes_are_matched_by_name(frame, capsys):
    frame.rename(columns={"p_no": "no", "p_yes": "yes"}).to_csv("n.csv", index=False)
    named = ["--label", "truth", "--proba", "yes", "no", "--target", "0.1"]
    assert main(["tune", "n.csv", *named]) == 0
    assert capsys.readouterr().err == ""
    found = AbstentionPolicy.from_json("policy.json")
    assert (
        found.threshold
        == select_threshold(predictions_of(frame), objective="risk", target=0.1).threshold
    )


def test_columns_are_passed_through_as_they_are(frame, tuned, capsys):
    tuned()
    capsys.readouterr()
    Path("n.csv").write_text(
        'id,p_no,p_yes,note\n0007,0.90,.1,NA\n"a,b",0.5,5e-1,\n1.10,1,0,"say ""no"""\n'
    )
    assert main(["apply", "n.csv", "--policy", "policy.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("0007,NA,no,no,True,0.9,")
    assert lines[2].startswith('"a,b",,,')
    assert lines[3].startswith('1.10,"say ""no""",no,no,True,1.0,')


@pytest.mark.filterwarnings("ignore:subgroups")
def test_subgroups_of_a_text_file(frame, rng, capsys):
    frame["site"] = rng.choice(["1", "2"], len(frame))
    frame.loc[5, "site"] = ""
    frame.to_csv("s.csv", index=False)
    assert main(["tune", "s.csv", *PROBA, "--target", "0.12", "--subgroups", "site"]) == 0
    policy = AbstentionPolicy.from_json("policy.json")
    assert list(policy.groups.thresholds) == [1, 2]
    frame.loc[6, "site"] = "3"
    frame.to_csv("s.csv", index=False)
    capsys.readouterr()
    assert main(["apply", "s.csv", "--policy", "policy.json", "--out", "d.csv"]) == 0
    assert "belong to no site" in capsys.readouterr().err
    accepted = pd.read_csv("d.csv")["accepted"]
    site = pd.to_numeric(frame["site"], errors="coerce").astype("Int64")
    expected = policy.decide(frame[["p_no", "p_yes"]].to_numpy(), subgroups=site)["accepted"]
    assert accepted.tolist() == expected.tolist()
    assert not accepted[5]
    assert not accepted[6]


def test_what_is_said_counts_more_than_what_is_remembered(frame, tuned, capsys):
    tuned(ANSWER)
    frame.assign(other=0.0).to_csv("o.csv", index=False)
    named = ["--confidence-column", "other", "--out", "d.csv"]
    assert main(["apply", "o.csv", "--policy", "policy.json", *named]) == 0
    assert not pd.read_csv("d.csv")["accepted"].any()
    both = ["--policy", "policy.json", "--threshold", "0.5"]
    for columns in [ANSWER, PROBA]:
        assert main(["evaluate", "o.csv", *columns, *both]) == 2
    assert "threshold: a policy has its own" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "t.csv", *PROBA, "--html", "folder"],
        ["evaluate", "t.csv", *PROBA, "--csv", "folder"],
        ["evaluate", "t.csv", *PROBA, "--html", "r.html", "--csv", "no/x.csv"],
        ["tune", "t.csv", *PROBA, "--target", "0.1", "--out", "folder"],
        ["tune", "t.csv", *PROBA, "--target", "0.1", "--python", "folder"],
    ],
)
def test_outputs_that_cannot_be_written_are_told_first(frame, arguments, capsys, tmp_path):
    Path("folder").mkdir()
    before = sorted(tmp_path.iterdir())
    assert main(arguments) == 2
    assert "folder" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_one_column_of_the_first_class_is_refused(frame, tuned, capsys):
    named = ["--label", "truth", "--proba", "p_no", "--classes", "yes", "no", "--target", "0.1"]
    assert main(["tune", "t.csv", *named]) == 0  # no is the second class here
    tuned()
    named = ["--proba", "p_no", "--classes", "yes", "no", "--policy", "policy.json"]
    assert main(["apply", "t.csv", *named]) == 2
    assert "single column is the probability of 'yes'" in capsys.readouterr().err


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_one_column_is_enough_for_any_number_of_rows(frame, tuned, n, kind):
    tuned()
    for columns in (["p_no", "p_yes"], ["p_yes"]):
        rows = frame.loc[: n - 1, ["id", *columns]]
        rows.to_csv("n.csv", index=False)
        rows.to_parquet("n.parquet", index=False)
        named = ["--proba", *columns, "--out", f"{len(columns)}.csv"]
        assert main(["apply", f"n.{kind}", "--policy", "policy.json", *named]) == 0
    found, expected = pd.read_csv("1.csv"), pd.read_csv("2.csv")
    assert len(found) == n
    assert found["accepted"].tolist() == expected["accepted"].tolist()
    assert found["suggestion"].tolist() == expected["suggestion"].tolist()


@pytest.mark.parametrize("table", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("columns", [PROBA, ANSWER], ids=["proba", "answer"])
def test_pieces_of_a_file_have_one_type(frame, table, columns, monkeypatch, capsys):
    monkeypatch.setattr(tables, "_PIECE", 30)
    monkeypatch.setattr(tables, "_BLOCK", 3000)
    frame = frame[:300].copy()
    frame["note"] = np.where(frame.index < 50, None, "later")
    frame["count"] = frame["id"].where(frame.index > 30).astype("Int64")
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet", index=False)
    assert main(["tune", table, *columns, "--target", "0.1"]) == 0
    for out in ["d.csv", "d.parquet"]:
        assert main(["apply", table, "--policy", "policy.json", "--out", out]) == 0
    found = pd.read_parquet("d.parquet")
    assert found["decision"].isna().tolist() == (~found["accepted"]).tolist()
    assert found["accepted"].tolist() == pd.read_csv("d.csv")["accepted"].tolist()
    if table == "t.parquet":
        assert found["count"].isna().sum() == 31
        assert found["note"].isna().sum() == 50


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_without_rows(frame, tuned, kind, capsys, tmp_path):
    tuned()
    empty = f"e.{kind}"
    getattr(frame.iloc[:0], f"to_{kind}")(empty, index=False)
    for arguments in [
        ["apply", empty, "--policy", "policy.json", "--out", f"d.{kind}"],
        ["evaluate", empty, *PROBA], ["tune", empty, *PROBA, "--target", ".1", "--out", "x.json"],
    ]:  # fmt: skip
        assert main(arguments) == 2
        assert f"{empty} has no rows" in capsys.readouterr().err
    assert not list(tmp_path.glob("d.*"))


def test_notes_of_your_own_in_a_policy(frame, capsys):
    found = select_threshold(predictions_of(frame), objective="risk", target=0.1).policy
    mine = replace(found, metadata={"columns": ["age", "sex"], "label": "x"})
    mine.to_json("mine.json")
    assert main(["apply", "t.csv", "--policy", "mine.json", *PROBA[2:], "--out", "d.csv"]) == 0
    replace(found, metadata={"skselect_columns": {"proba": [1, 2]}}).to_json("bad.json")
    assert main(["apply", "t.csv", "--policy", "bad.json"]) == 2
    assert "the names of its columns are damaged" in capsys.readouterr().err
    Path("bad.json").write_text("{")
    assert main(["apply", "t.csv", "--policy", "bad.json"]) == 2
    assert "--policy: bad.json: This is not a policy file; it is damaged" in capsys.readouterr().err


def test_rows_that_depend_on_their_order_give_an_estimate_and_exit_code_5(frame, capsys):
    tune = ["tune", "sorted.csv", "--label", "truth", *PROBA[2:], "--target", "0.1"]
    frame.sort_values("p_yes").to_csv("sorted.csv", index=False)
    assert main(tune) == 5
    said = capsys.readouterr()
    assert said.out.startswith("ESTIMATE, NOT CERTIFIED: the")
    assert "The order of the rows matters" in said.err
    assert not AbstentionPolicy.from_json("policy.json").certificate.is_certified
    assert main([*tune, "--assume", "independent"]) == 0
    assert capsys.readouterr().out.startswith("CERTIFIED\nBut the ")


def test_doubts_about_the_order_are_told(frame, capsys):
    swapped = ["--label", "truth", "--proba", "p_no", "p_yes", "--classes", "yes", "no"]
    assert main(["evaluate", "t.csv", *swapped]) == 0
    assert "is the order of --classes right?" in capsys.readouterr().err
    assert main(["evaluate", "t.csv", *PROBA]) == 0
    assert capsys.readouterr().err == ""


def test_classes_that_contradict_the_policy_are_refused(frame, tuned, capsys):
    tuned()
    for command in [["apply", "t.csv"], ["evaluate", "t.csv", "--label", "truth"]]:
        swapped = ["--proba", "p_no", "p_yes", "--classes", "yes", "no"]
        assert main([*command, "--policy", "policy.json", *swapped]) == 2
        assert "was tuned with the columns ['p_no', 'p_yes']" in capsys.readouterr().err


def test_tables_are_not_written_as_workbooks(frame, tuned, capsys):
    tuned()
    assert main(["apply", "t.csv", "--policy", "policy.json", "--out", "d.xlsx"]) == 2
    assert "choose a name that ends in .csv or .parquet" in capsys.readouterr().err


def test_remembered_columns_in_another_order_are_the_same(frame, tuned):
    tuned()
    decided = []
    for columns in [[], ["--proba", "p_yes", "p_no"]]:
        assert main(["apply", "t.csv", "--policy", "policy.json", *columns, "--out", "d.csv"]) == 0
        decided.append(pd.read_csv("d.csv")["decision"].fillna("").tolist())
    assert decided[0] == decided[1]


def test_the_report_says_which_rows_a_certificate_is_about(frame, tuned, capsys):
    tuned()
    capsys.readouterr()
    assert main(["evaluate", "t.csv", "--label", "truth", "--policy", "policy.json"]) == UNDECIDED
    assert "These rows chose the threshold" in capsys.readouterr().out
    frame.iloc[:2000].to_csv("other.csv", index=False)
    arguments = ["other.csv", "--label", "truth", "--policy", "policy.json"]
    assert main(["evaluate", *arguments]) == UNDECIDED
    said = capsys.readouterr().out
    assert "with 3,000 rows. Its certificate is about those rows:" in said
    assert "OWN GUARANTEE" not in said


@pytest.mark.parametrize(
    ("n", "rate", "code"), [(3000, 0.02, 0), (3000, 0.3, BROKEN), (150, 0.1, UNDECIDED)]
)
@pytest.mark.parametrize("columns", [PROBA, ANSWER], ids=["proba", "answer"])
def test_the_exit_code_says_whether_the_guarantee_still_holds(
    frame, rng, columns, n, rate, code, capsys
):
    assert main(["tune", "t.csv", *columns, "--target", "0.1"]) == 0
    later = frame.iloc[:n].assign(
        p_yes=lambda t: np.clip(t["p_yes"] * 0.999, 0, 1), p_no=lambda t: 1 - t["p_yes"],
        score=lambda t: t["score"] - 1e-6,
    )  # fmt: skip
    wrong = rng.permutation(n) < rate * n
    later["said"] = np.where(later["p_yes"] > 0.5, "yes", "no")
    other = np.where(later["said"] == "yes", "no", "yes")
    later["truth"] = np.where(wrong, other, later["said"])
    later.to_csv("later.csv", index=False)
    capsys.readouterr()
    assert main(["evaluate", "later.csv", *columns, "--policy", "policy.json"]) == code
    policy = AbstentionPolicy.from_json("policy.json")
    rows = predictions_of(later)
    if columns == ANSWER:
        rows = Predictions.from_labels(later["truth"], later["said"], later["score"])
    expected = check_policy(policy, rows)
    assert capsys.readouterr().out.endswith(f"\n\nIs its guarantee still true?\n{expected}\n")
    assert expected.verdict == {0: "holds", BROKEN: "broken", UNDECIDED: "undecided"}[code]


def test_a_brief_report_fits_on_a_screen_and_begins_with_the_verdict(frame, capsys):
    assert main(["tune", "t.csv", *PROBA, "--target", "0.1"]) == 0
    later = frame.assign(p_yes=frame["p_yes"] * 0.999, p_no=1 - frame["p_yes"] * 0.999)
    later.to_csv("later.csv", index=False)
    rows = ["later.csv", *PROBA, "--policy", "policy.json"]
    capsys.readouterr()
    code = main(["evaluate", *rows])
    full = capsys.readouterr().out
    assert main(["evaluate", *rows, "--brief"]) == code
    brief = capsys.readouterr().out
    assert len(brief.splitlines()) <= 40
    assert brief.index("at most 10 %") < brief.index("What does a risk target cost?")
    assert full.startswith(brief.split("A row whose confidence")[0])
    assert main(["report", *rows]) == code
    assert capsys.readouterr().out == f"{brief}\nWritten: report.html\n"
    assert "What does a risk target cost?" in Path("report.html").read_text()


def test_without_a_guarantee_there_is_no_verdict(frame, capsys):
    policy = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.9)
    policy.to_json("plain.json")
    assert main(["evaluate", "t.csv", *PROBA, "--policy", "plain.json"]) == 0
    assert "still true" not in capsys.readouterr().out


@pytest.mark.parametrize("subgroups", [[], ["--subgroups", "site"]], ids=["all", "by site"])
def test_the_report_says_first_that_a_guarantee_is_not_met(frame, subgroups, capsys):
    main(["tune", "t.csv", *PROBA, "--target", "0.1", *subgroups])
    capsys.readouterr()
    drifted = frame.iloc[:1500].assign(p_no=frame["p_yes"], p_yes=frame["p_no"])
    drifted.to_csv("later.csv", index=False)
    arguments = ["later.csv", "--label", "truth", "--policy", "policy.json"]
    arguments += [] if subgroups else ["--html", "r.html"]
    assert main(["evaluate", *arguments]) == BROKEN
    shown = [capsys.readouterr().out]
    broken = "BROKEN: it is not true that at most 10 % of its answers"
    if subgroups:
        broken = "BROKEN: of 2 guarantees 2 broken, 0 undecided, 0 kept."
    else:
        page = Path("r.html").read_text()
        assert 'class="verdict broken"' in page
        shown.append(page.replace("</strong>", "").replace("\N{NO-BREAK SPACE}", " "))
    for text in shown:
        assert text.index(broken) < text.index("CERTIFIED")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "0.98"], "Did you mean 0.02?"),
        (["--target", "0.1", "--delta", "0.95"], "Did you mean 0.05?"),
        (
            ["--target", "0.1", "--max-analyses", "0"],
            "--max-analyses must be an integer of at least 1",
        ),
    ],
)
def test_tune_refuses_what_would_guarantee_nothing(frame, options, message, capsys):
    assert main(["tune", "t.csv", *PROBA, *options]) == 2
    assert message in capsys.readouterr().err
    assert not Path("policy.json").exists()


def test_a_refusal_warns_of_reuse_warning(frame, capsys):
    assert main(["tune", "t.csv", *PROBA, "--target", "0.00001"]) == 3
    assert "Adding rows to these and asking again breaks the guarantee" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["5%", "low"])
def test_targets_are_numbers(frame, target, capsys):
    with pytest.raises(SystemExit):
        main(["tune", "t.csv", *PROBA, "--target", target])
    assert "write 5 % as 0.05" in capsys.readouterr().err


def test_workbooks_are_told_apart(frame, capsys):
    Path("t.xlsx").write_bytes(b"PK")
    assert main(["evaluate", "t.xlsx", *PROBA]) == 2
    assert "is a workbook; to read it, install openpyxl, or save" in capsys.readouterr().err
    Path("t.ods").write_bytes(b"PK")
    assert main(["evaluate", "t.ods", *PROBA]) == 2
    assert "is a workbook; save the sheet as CSV" in capsys.readouterr().err


def test_a_sheet_is_read_like_the_csv_file(frame, capsys):
    pytest.importorskip("openpyxl")
    frame.to_excel("t.xlsx", index=False)
    printed = {}
    for table in ("t.csv", "t.xlsx"):
        assert main(["tune", table, *PROBA, "--target", "0.1"]) == 0
        printed[table] = capsys.readouterr().out
    assert printed["t.csv"] == printed["t.xlsx"]
    frame.assign(p_yes="many").to_excel("t.xlsx", index=False)
    assert main(["evaluate", "t.xlsx", *PROBA]) == 2
    assert "t.xlsx: column 'p_yes' must hold numbers, but line 2 holds" in capsys.readouterr().err


def test_files_are_never_written_over_what_is_read(frame, tuned, capsys):
    tuned()
    before = {path: path.read_bytes() for path in Path().iterdir()}
    for arguments in [
        ["evaluate", "t.csv", *PROBA, "--csv", "t.csv"],
        ["evaluate", "t.csv", *PROBA, "--csv", "x", "--html", "./x"],
        ["tune", "t.csv", *PROBA, "--target", ".1", "--out", "t.csv"],
        ["tune", "t.csv", *PROBA, "--target", ".1", "--out", "x", "--python", "x"],
        ["apply", "t.csv", "--policy", "policy.json", "--out", "policy.json"],
        ["apply", "t.csv", "--policy", "policy.json", "--out", "t.csv"],
    ]:
        assert main(arguments) == 2
        assert "choose another name" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in Path().iterdir()}


def test_a_calibrated_threshold_wants_probabilities(frame, capsys):
    proba = frame[["p_no", "p_yes"]].to_numpy()
    codes = (frame["truth"] == "yes").to_numpy().astype(int)
    maps = ClassCalibration.fit("temperature", "predict_proba", proba, codes, 2)
    policy = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.8, calibration=maps)
    policy.to_json("cal.json")
    for arguments in [["apply", "t.csv", *ANSWER[2:]], ["evaluate", "t.csv", *ANSWER]]:
        assert main([*arguments, "--policy", "cal.json"]) == 2
        assert "is about a calibrated confidence" in capsys.readouterr().err


def test_one_class_does_not_say_which_column_is_whose(frame, capsys):
    frame.assign(truth="no").to_csv("one.csv", index=False)
    named = ["--label", "truth", "--proba", "p_no", "p_yes"]
    assert main(["evaluate", "one.csv", *named]) == 2
    assert "holds the class 'no' only; name all classes" in capsys.readouterr().err
    assert main(["evaluate", "one.csv", *PROBA]) == 0


def test_a_single_column_with_the_name_of_the_first_class(frame, capsys):
    frame.rename(columns={"p_no": "no", "p_yes": "yes"}).to_csv("n.csv", index=False)
    for classes in [["no", "yes"], ["yes", "no"]]:
        named = ["--label", "truth", "--classes", *classes]
        assert main(["evaluate", "n.csv", *named, "--proba", classes[0]]) == 2
        assert "a single column is the probability of" in capsys.readouterr().err
        assert main(["evaluate", "n.csv", *named, "--proba", classes[1]]) == 0
        right = (frame["said"] == frame["truth"]).mean()
        assert f"right in {100 * right:.3g} %" in capsys.readouterr().out


@pytest.mark.parametrize("spoil", [lambda t: t.replace("7,", "7,0,", 1), lambda t: t[:-9]],
                         ids=["a comma too many", "a line cut off"])  # fmt: skip
def test_rows_of_another_length_stop_every_command(frame, tuned, spoil, capsys, tmp_path):
    tuned()
    text = frame[["id", "truth", "p_no", "p_yes", "site"]].to_csv(index=False)
    Path("rag.csv").write_text(spoil(text))
    before = sorted(tmp_path.iterdir())
    capsys.readouterr()
    for arguments in [
        ["apply", "--policy", "policy.json"], ["evaluate", *PROBA],
        ["tune", *PROBA, "--target", "0.1", "--out", "other.json"],
    ]:  # fmt: skip
        assert main([arguments[0], "rag.csv", *arguments[1:]]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert re.search(r"rag\.csv: line \d+ has [46] cells, the first line has 5\.", told.err)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("word", ["NA", " "])  # all words: test_tables.py
@pytest.mark.parametrize("columns", [PROBA, ANSWER], ids=["proba", "answer"])
def test_usual_words_for_missing_numbers_deferral(frame, word, columns, capsys):
    main(["tune", "t.csv", *columns, "--target", "0.1", "--out", "p.json"])
    lacking = frame.index.isin([3, 2500])
    gaps = frame.astype({"p_no": object, "score": object})
    gaps.loc[lacking, ["p_no", "score"]] = word
    gaps.to_csv("gaps.csv", index=False)
    found = []
    for name in ["gaps", "t"]:
        assert main(["apply", f"{name}.csv", "--policy", "p.json", "--out", "d.csv"]) == 0
        found.append(pd.read_csv("d.csv")["accepted"].to_numpy())
    np.testing.assert_array_equal(found[0], found[1] & ~lacking)
    capsys.readouterr()
    for command in [["tune", "gaps.csv", *columns, "--target", ".1"],
                    ["evaluate", "gaps.csv", *columns]]:  # fmt: skip
        assert main(command) == 2
        column = "score" if columns == ANSWER else "p_no"
        message = f"gaps.csv: column '{column}' has 1 missing values, the first in line 5;"
        assert message in capsys.readouterr().err


def test_infinite_numbers_are_named_by_file_row_and_column(frame, tuned, capsys):
    tuned()
    frame["p_no"] = frame["p_no"].where(frame.index != 1500, np.inf)
    frame.to_csv("inf.csv", index=False)
    frame.to_parquet("inf.parquet", index=False)
    for table in ["inf.csv", "inf.parquet"]:
        place = "line 1502 " if table == "inf.csv" else "row 1500 "
        for arguments in [["apply", table, "--policy", "policy.json"], ["evaluate", table, *PROBA],
                          ["tune", table, *PROBA, "--target", ".1"]]:  # fmt: skip
            capsys.readouterr()
            assert main(arguments) == 2
            told = capsys.readouterr().err
            assert f"{table}: column 'p_no' must hold finite numbers, but {place}" in told


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_without_an_answer_are_deferred(frame, tuned, kind):
    tuned(ANSWER)
    expected = []
    for name in ["whole", "gaps"]:
        getattr(frame, f"to_{kind}")(f"{name}.{kind}", index=False)
        out = ["--policy", "policy.json", "--out", f"d.{kind}"]
        assert main(["apply", f"{name}.{kind}", *out]) == 0
        expected.append(getattr(pd, f"read_{kind}")(f"d.{kind}")["accepted"].to_numpy())
        lacking = frame.index % 5 == 0
        frame["said"] = frame["said"].where(~lacking)
    np.testing.assert_array_equal(expected[1], expected[0] & ~lacking)


def test_the_certificate_of_an_answer_and_its_confidence_is_told(frame, capsys):
    for more in [[], ["--subgroups", "site"]]:
        assert main(["tune", "t.csv", *ANSWER, "--target", "0.12", *more]) == 0
        capsys.readouterr()
        assert main(["evaluate", "t.csv", *ANSWER, "--policy", "policy.json"]) == UNDECIDED
        told = capsys.readouterr().out
        assert "CERTIFIED" in told
        assert "These rows chose the threshold" in told
        policy = AbstentionPolicy.from_json("policy.json")
        sites = frame["site"] if more else None
        n_accepted = int(policy.accepts(frame["score"], subgroups=sites).sum())
        assert f"of the rows on its own ({n_accepted:,})" in told


def test_no_certificate_per_true_class(frame, capsys, tmp_path):
    before = sorted(tmp_path.iterdir())
    for subgroups in [["truth"], ["site", "truth"]]:
        arguments = [*PROBA, "--target", "0.1", "--subgroups", *subgroups]
        assert main(["tune", "t.csv", *arguments]) == 2
        told = capsys.readouterr().err
        assert "'truth' is the true label" in told
        assert "given_class=" in told
    assert sorted(tmp_path.iterdir()) == before


def test_many_subgroups_out_of_reach_are_counted(frame, capsys):
    frame.assign(site=frame["id"] % 300).to_parquet("many.parquet", index=False)
    arguments = [*PROBA, "--target", "0.01", "--subgroups", "site"]
    assert main(["tune", "many.parquet", *arguments]) == 3
    told = capsys.readouterr().err
    assert "The same holds for 295 more subgroups." in told
    assert told.count("No threshold meets") == 5
    assert told.count("\n") == 1


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_whole_numbers_of_subgroups_may_be_written_as_floats(frame, kind, capsys):
    frame["site"] = np.where(frame["site"] == "east", 1, 20)
    frame.to_csv("t.csv", index=False)
    arguments = ["--target", "0.12", "--subgroups", "site"]
    assert main(["tune", "t.csv", *PROBA, *arguments]) == 0
    accepted = []
    for site in [frame["site"], frame["site"].astype(float)]:
        getattr(frame.assign(site=site), f"to_{kind}")(f"n.{kind}", index=False)
        out = ["--policy", "policy.json", "--out", "d.csv"]
        assert main(["apply", f"n.{kind}", *out]) == 0
        accepted.append(pd.read_csv("d.csv")["accepted"].tolist())
        assert main(["evaluate", f"n.{kind}", "--label", "truth", *out[:2]]) == UNDECIDED
    assert sum(accepted[0]) > 0
    assert all(one == accepted[0] for one in accepted)
    assert "belong to no site" not in capsys.readouterr().err


@pytest.mark.parametrize(("target", "is_trivial"), [("0.1", True), ("0.02", False)])
def test_a_target_that_one_answer_would_meet_is_told(frame, rng, target, is_trivial, capsys):
    rare = frame.assign(truth=np.where(rng.random(len(frame)) < 0.05, "yes", "no"), p_no=0.999,
                        p_yes=0.001)  # fmt: skip
    rare.to_csv("rare.csv", index=False)
    assert main(["tune", "rare.csv", *PROBA, "--target", target]) == (0 if is_trivial else 3)
    told = capsys.readouterr().err
    assert ("always answering 'no' would meet this target: " in told) == is_trivial


@pytest.mark.parametrize(
    ("command", "option", "name", "right"),
    [("apply", "--out", "x.json", ".csv or .parquet"), ("apply", "--out", "x.CSV.gz", ".csv"),
     ("evaluate", "--csv", "x.parquet", ".csv"), ("evaluate", "--html", "x.csv", ".html"),
     ("tune", "--out", "x.csv", ".json"), ("tune", "--python", "x.json", ".py")],
)  # fmt: skip
def test_endings_say_what_a_file_holds(
    frame, tuned, command, option, name, right, capsys, tmp_path
):
    tuned()
    before = sorted(tmp_path.iterdir())
    more = {"apply": ["--policy", "policy.json"], "evaluate": PROBA,
            "tune": [*PROBA, "--target", "0.1"]}[command]  # fmt: skip
    assert main([command, "t.csv", *more, option, name]) == 2
    told = capsys.readouterr().err
    assert f"{option}: '{name}' has the ending of another format" in told
    assert f"ends in {right}" in told
    assert sorted(tmp_path.iterdir()) == before


def test_policy_and_python_file_are_written_together(frame, monkeypatch, capsys):
    Path("policy.json").write_text("old")
    Path("gate.py").mkdir()  # nothing can be written there
    monkeypatch.setattr(commands, "_check_outputs", lambda *_: None)
    pair = ["--out", "policy.json", "--python", "gate.py"]
    assert main(["tune", "t.csv", *PROBA, "--target", "0.1", *pair]) == 2
    assert Path("policy.json").read_text() == "old"


def test_decisions_go_through_pipes_and_links(frame, tuned):
    tuned()
    out = ["apply", "t.csv", "--policy", "policy.json", "--out"]
    assert main([*out, "d.csv"]) == 0
    expected = Path("d.csv").read_text()
    os.mkfifo("pipe")
    Path("link.csv").symlink_to("real.csv")
    read = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()), daemon=True)
    reader.start()
    assert main([*out, "pipe"]) == 0
    reader.join()
    assert main([*out, "link.csv"]) == 0
    assert Path("link.csv").is_symlink()
    assert [*read, Path("real.csv").read_text()] == [expected, expected]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_leave_nothing_half_written(
    frame, tuned, number, tmp_path, monkeypatch, capsys, request
):
    # A job in the background may have been told to ignore the signal.
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    request.addfinalizer(partial(signal.signal, number, signal.signal(number, usual)))
    tuned()
    Path("d.csv").write_text("old")
    before = sorted(tmp_path.iterdir())
    rows = tables.TableFile.rows

    def stopped(file):
        """Stop when the file is half written: after its first piece."""
        yield next(rows(file))
        os.kill(os.getpid(), number)
        yield from rows(file)

    monkeypatch.setattr(tables.TableFile, "rows", stopped)
    apply = ["apply", "t.csv", "--policy", "policy.json", "--out", "d.csv"]
    if number == signal.SIGINT:
        assert main(apply) == 128 + number
    else:
        with pytest.raises(SystemExit) as done:
            main(apply)
        assert done.value.code == 128 + number
        assert signal.getsignal(number) is signal.SIG_DFL
    said = "skselect: interrupted.\n" if number == signal.SIGINT else ""
    assert capsys.readouterr().err == said
    assert Path("d.csv").read_text() == "old"
    assert sorted(tmp_path.iterdir()) == before


def test_where_the_output_goes_is_not_replaced(frame, tuned, capsys):
    tuned()
    usual = os.dup(1)
    with Path("log.txt").open("w") as log:
        os.dup2(log.fileno(), 1)
    try:
        out = ["--out", "/dev/stdout"]
        assert main(["apply", "t.csv", "--policy", "policy.json", *out]) == 2
    finally:
        os.dup2(usual, 1)
        os.close(usual)
    assert "--out: '/dev/stdout' is where the standard output" in capsys.readouterr().err


def test_columns_without_a_name_stay(frame, tuned):
    tuned()
    frame.head(50).to_csv("unnamed.csv")  # with its index
    assert main(["apply", "unnamed.csv", "--policy", "policy.json", "--out", "d.csv"]) == 0
    first = Path("d.csv").read_text().splitlines()[0]
    assert first.startswith(",id,truth,")
    assert pd.read_csv("d.csv").iloc[:, 0].tolist() == list(range(50))


@pytest.mark.parametrize(
    ("arguments", "stream", "code", "told"),
    [
        (["tune", "t.csv", *PROBA, "--target", "0.1"], "stdout", 0, ""),
        (["apply", "t.csv", "--policy", "policy.json"], "stdout", 2,
         "skselect: standard output is closed; name a file: --out decided.csv.\n"),
        (["evaluate", "-", "--label", "truth"], "stdin", 2,
         "skselect: TABLE: standard input is closed; name a file.\n"),
        (["apply", "t.csv", "--policy", "policy.json"], "stderr", 0, ""),
    ],
)  # fmt: skip
def test_closed_streams(frame, tuned, arguments, stream, code, told, monkeypatch, capsys):
    tuned()
    capsys.readouterr()
    monkeypatch.setattr(sys, stream, None)  # as Python does
    assert main(arguments) == code
    said = capsys.readouterr()
    assert said.err == told
    lines = 3001 if stream == "stderr" else 0  # no message has strayed into the table
    assert said.out.count("\n") == lines


def test_full_and_broken_output(frame, tuned, monkeypatch, capsys):
    tuned()
    ours, theirs = os.pipe()
    os.close(ours)
    full = "skselect: [Errno 28] No space left on device: 'standard output'\n"
    for name, code, told in [("/dev/full", 2, full), (theirs, 0, "")]:
        if name == "/dev/full" and not Path(name).exists():
            continue
        with open(name, "w") as out:  # noqa: PTH123 - one is a number
            monkeypatch.setattr(sys, "stdout", out)
            assert main(["apply", "t.csv", "--policy", "policy.json"]) == code
        assert capsys.readouterr().err == told


# Shortlists -------------------------------------------------------------------------------------


@pytest.fixture
def animals(rng):
    proba = rng.dirichlet([0.2] * 4, 2000)
    names = np.array(["ant", "bee", "cow", "dog"])
    frame = pd.DataFrame(proba, columns=names)
    frame["truth"] = names[(rng.random((2000, 1)) > proba.cumsum(axis=1)[:, :-1]).sum(axis=1)]
    frame.to_csv("animals.csv", index=False)
    frame.drop(columns="truth").to_csv("new.csv", index=False)
    return frame


@pytest.mark.parametrize(
    ("numbers", "shortlist"),
    [(["0.9"], 0.9), (["0.9", "0.4", "--seed", "3"], Shortlist(0.9, 0.4, random_state=3))],
)
def test_tune_lists_what_python_lists(animals, numbers, shortlist, capsys):
    tune = ["tune", "animals.csv", "--label", "truth", "--target", "0.1"]
    assert main([*tune, "--shortlist", *numbers, "--confidence", "margin"]) == 0
    names = animals.columns[:4].tolist()
    predictions = Predictions.from_proba(animals["truth"], animals[names], labels=names)
    expected = select_threshold(
        predictions, objective="risk", target=0.1, confidence="margin", shortlist=shortlist
    )
    policy = AbstentionPolicy.from_json("policy.json")
    assert policy.shortlist == expected.shortlist
    assert policy.threshold == expected.threshold
    assert policy.fingerprints == expected.policy.fingerprints
    assert str(expected) in capsys.readouterr().out


@pytest.mark.parametrize("out", ["d.csv", "d.parquet"])
def test_apply_writes_a_shortlist_as_text(animals, out):
    tune = ["tune", "animals.csv", "--label", "truth", "--target", "0.1", "--shortlist", "0.95"]
    assert main(tune) == 0
    new = animals[["ant", "bee", "cow", "dog"]].copy()
    new.loc[3, "bee"] = np.nan
    new.to_csv("new.csv", index=False)
    assert main(["apply", "new.csv", "--policy", "policy.json", "--out", out]) == 0
    found = pd.read_csv(out) if out.endswith("csv") else pd.read_parquet(out)
    expected = AbstentionPolicy.from_json("policy.json").decide(new.drop(index=3))
    for names, text in zip(expected["shortlist"], found["shortlist"].drop(index=3), strict=True):
        if names is pd.NA:
            assert pd.isna(text)
        else:
            assert text == "|".join(names)
    assert pd.isna(found["shortlist"][3])  # a number is missing, so nothing is known of this row
    assert not found["accepted"][3]


def test_shortlists_that_a_table_cannot_hold_are_refused(animals, capsys):
    policy = AbstentionPolicy(
        classes=np.array(["ant", "bee", "cow|calf", "dog"]), threshold=0.8,
        shortlist=PolicyShortlist(0.95, 0.1, 0.8, 50),
    )  # fmt: skip
    policy.to_json("policy.json")
    decide = ["apply", "new.csv", "--policy", "policy.json"]
    columns = ["--proba", "ant", "bee", "cow", "dog"]
    assert main([*decide, *columns]) == 2
    assert "class 'cow|calf' contains it" in capsys.readouterr().err
    replace(policy, classes=np.array(["ant", "bee", "cow", "dog"])).to_json("policy.json")
    animals.assign(said="ant", score=0.9).to_csv("new.csv", index=False)
    assert main([*decide, "--answer", "said", "--confidence-column", "score"]) == 2
    assert "its shortlist is made of the probabilities of all classes" in capsys.readouterr().err
    tune = ["tune", "animals.csv", "--label", "truth", "--target", "0.1", "--shortlist"]
    assert main([*tune, "0.9", "0.1", "0.1"]) == 2
    assert "takes a level and perhaps a share" in capsys.readouterr().err
    assert main([*tune, "0.9999"]) == 2
    assert "needs at least 9999 rows" in capsys.readouterr().err
    renamed = animals.rename(columns={"cow": "cow|calf"}).replace({"truth": {"cow": "cow|calf"}})
    renamed.to_csv("animals.csv", index=False)
    assert main([*tune, "0.9"]) == 2
    assert "--shortlist: '|' stands between" in capsys.readouterr().err


def learned_policy(**options):
    """Return a policy whose confidence asks an auxiliary model."""
    maps = ClassCalibration.fit(
        "temperature", "predict_proba", np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]),
        np.array([0, 1, 1]), 2,
    )  # fmt: skip
    learned = LearnedScore(("logit", "rater"), np.array([0.5, 0.7]), 1.0, {"rater": maps})
    return AbstentionPolicy(
        classes=np.array(["no", "yes"]), threshold=0.9, confidence=learned, calibration=maps,
        **options,
    )  # fmt: skip


DECIDED = ["--answer", "suggestion", "--confidence-column", "confidence"]
BY_ANSWER = GroupThresholds("predicted_class", {"no": 0.8, "yes": 0.95}, by_answer=True)


@pytest.mark.parametrize("groups", [None, BY_ANSWER])
def test_what_a_learned_confidence_decided_is_read_back(frame, groups, rng, capsys):
    policy = learned_policy(groups=groups)
    policy.to_json("policy.json")
    proba = frame[["p_no", "p_yes"]].to_numpy()
    decided = policy.decide(proba, auxiliary={"rater": rng.permutation(proba)})
    table = frame.join(decided[["suggestion", "confidence"]])
    table.to_csv("decided.csv", index=False)
    assert (
        main(["apply", "decided.csv", "--policy", "policy.json", "--out", "o.csv", *DECIDED]) == 0
    )
    found = pd.read_csv("o.csv")
    assert found["accepted"].tolist() == decided["accepted"].tolist()
    assert 0 < found["accepted"].mean() < 1
    assert found["decision"].dropna().tolist() == decided["label"].dropna().tolist()
    rows = ["decided.csv", "--label", "truth", "--policy", "policy.json", *DECIDED]
    capsys.readouterr()
    assert main(["evaluate", *rows]) == 0
    n_accepted = decided["accepted"].sum()
    assert f"rows on its own ({n_accepted:,})" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("columns", [[], PROBA[2:5]])
@pytest.mark.parametrize("command", [["apply"], ["evaluate", "--label", "truth"]])
def test_probabilities_alone_are_refused_where_a_confidence_asks_more(
    frame, columns, command, capsys
):
    learned_policy().to_json("policy.json")
    assert main([command[0], "t.csv", *command[1:], "--policy", "policy.json", *columns]) == 2
    error = capsys.readouterr().err
    assert "its learned confidence also asks ['rater']" in error
    assert "--answer suggestion --confidence-column confidence" in error


def test_the_terminal_makes_no_shortlists_of_a_learned_confidence(animals, capsys):
    learned = LearnedScore(("doubt",), np.array([1.0]), 0.0)
    AbstentionPolicy(
        classes=np.array(["ant", "bee", "cow"]), threshold=0.8, confidence=learned,
        shortlist=PolicyShortlist(0.95, 0.1, 0.8, 50),
    ).to_json("policy.json")  # fmt: skip
    animals.assign(suggestion="ant", confidence=0.9).to_csv("new.csv", index=False)
    assert main(["apply", "new.csv", "--policy", "policy.json", *DECIDED]) == 2
    assert "of all classes; call policy.decide in Python" in capsys.readouterr().err
