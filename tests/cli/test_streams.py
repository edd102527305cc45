"""What is written to standard output and in other encodings, on every system."""

import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skselect import AbstentionPolicy
from skselect.cli.main import main

TABLE = "truth,p_no,p_yes,note\nno,0.75,0.25,é\nyes,0.125,0.875,\u09ad\n"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.7).to_json("policy.json")


@pytest.fixture
def windows(monkeypatch):
    """Return a function that runs a command where streams are those of Windows, redirected."""

    def windows(command):
        streams = {name: io.BytesIO() for name in ("stdout", "stderr")}
        for name, stream in streams.items():
            text = io.TextIOWrapper(stream, "cp1252", newline="\r\n", write_through=True)
            monkeypatch.setattr(sys, name, text)
        code = main(command.split())
        return code, streams["stdout"].getvalue(), streams["stderr"].getvalue()

    return windows


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_apply_writes_to_a_pipe_what_it_writes_to_a_file(newline, windows):
    Path("t.csv").write_bytes(TABLE.replace("\n", newline).encode())
    apply = "apply t.csv --policy policy.json --proba p_no p_yes"
    code, out, _ = windows(apply)
    assert code == 0
    windows(f"{apply} --out d.csv")
    assert out == Path("d.csv").read_bytes()
    assert out.count(newline.encode()) == out.count(b"\n") == 3
    assert pd.read_csv("d.csv")["note"].tolist() == ["é", "\u09ad"]
    Path("t.csv").write_bytes(TABLE.replace("\u09ad", "").encode("cp1252"))
    _, out, _ = windows(f"{apply} --encoding cp1252")
    assert pd.read_csv(io.BytesIO(out), encoding="cp1252")["note"].tolist()[0] == "é"


def test_messages_never_fail_by_their_own_encoding(windows):
    rows = "".join(f"{'ভ' if k % 3 else 'না'},0.{k}5\n" for k in range(9))
    Path("t.csv").write_text(f"truth,p\n{rows}", encoding="utf-8")
    code, out, _ = windows("evaluate t.csv --label truth --proba p")
    assert code == 0
    assert b"\\u09ad" in out
    code, _, told = windows("evaluate t.csv --label ভুল --proba p")
    assert code == 2
    assert b"has no column '\\u09ad" in told


class Input:
    """Standard input that holds a text."""

    def __init__(self, text):
        self.buffer = io.BytesIO(text.encode())

    def read(self):
        return self.buffer.read().decode()


def test_a_hyphen_is_standard_output_and_input(run, refuse, monkeypatch):
    rows = "".join(f"{('no', 'yes')[k % 2]},{0.1 + 0.8 * (1 - k % 2)},{k}\n" for k in range(99))
    Path("t.csv").write_text(f"truth,p_no,id\n{rows}".replace("p_no", "p_yes"))
    tune = "tune t.csv --label truth --proba p_yes --target .9 --objective coverage"
    told = run(f"{tune} --out -")
    assert AbstentionPolicy.from_json(told.out).threshold < 1
    assert "Written: -" in told.err
    apply = "apply t.csv --proba p_yes --policy"
    decided = run(f"{apply} policy.json --out -").out
    assert decided == run(f"{apply} policy.json").out
    monkeypatch.setattr(sys, "stdin", Input(Path("policy.json").read_text()))
    assert run(f"{apply} -").out == decided
    assert not Path("-").exists()
    assert "standard input can be read once" in refuse("apply - --policy -")
    for option in ("--csv -", "--html -"):
        told = refuse(f"evaluate t.csv --label truth --proba p_yes {option}")
        assert "name a file; only --out may be -" in told


@pytest.mark.parametrize(("command", "words"), [
    ("monitor t.csv --label truth --policy policy.json --time id --label-delay -1D", "delay"),
    ("evaluate t.csv --label truth --title -x --proba p_yes", ""),
    ("evaluate t.csv --label -truth --proba p_yes", "has no column '-truth'"),
    ("tune t.csv --label truth --proba p_yes --target -0.1 --out x.json", "--target"),
    ("evaluate t.csv --label truth --classes -1 1 --proba p_yes", "[-1, 1]"),
])  # fmt: skip
def test_values_may_begin_with_a_hyphen(command, words, capsys):
    Path("t.csv").write_text("truth,p_yes,id\nno,0.1,1\nyes,0.9,2\n")
    code = main(command.split())
    told = capsys.readouterr().err
    assert words in told
    assert code == (2 if words else 0)
