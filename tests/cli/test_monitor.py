"""skselect monitor: a log that grows or is filled in, from run to run."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skselect import AbstentionPolicy, SelectiveRiskMonitor
from skselect.cli import tables
from skselect.cli.main import BROKEN, UNDECIDED, main
from skselect.policy.policy import External
from skselect.policy.subgroups import GroupThresholds

CLASSES = np.array(["no", "yes"])
LOG = ["monitor", "log.csv", "--policy", "policy.json", "--label", "truth", "--time", "decided"]
BASE = [*LOG, "--state", "state.json", "--target", "0.1"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tables, "_PIECE", 100)
    AbstentionPolicy(classes=CLASSES, threshold=0.7).to_json("policy.json")


@pytest.fixture
def cases(rng):
    """Return 600 cases of 50 instants."""
    n = 600
    p = rng.random(n)
    right = rng.random(n) < 0.9
    return pd.DataFrame({
        "id": [f"c{i}" for i in range(n)],
        "decided": pd.date_range("2026-01-01", periods=50, freq="7h").repeat(12),
        "no": 1 - p, "yes": p, "truth": np.where((p > 0.5) == right, "yes", "no"),
        "site": rng.choice(["1", "2"], n), "said": np.where(p > 0.5, "yes", "no"),
        "score": 10 * np.maximum(p, 1 - p), "drawn": rng.random(n) < 0.5,
        "chance": rng.uniform(0.4, 1, n),
    })  # fmt: skip


def state():
    return json.loads(Path("state.json").read_text())


def run_all_at_once(cases, *options):
    cases.to_csv("log.csv", index=False)
    code = main([*BASE, *options])
    found = state()
    Path("state.json").unlink()
    return code, found


def same_as_in_python(cases):
    monitor = SelectiveRiskMonitor(AbstentionPolicy.from_json("policy.json"), target=0.1)
    rows = cases.sort_values("decided", kind="stable")
    monitor.update(rows["truth"], rows[["no", "yes"]], ids=rows["id"], when=rows["decided"])
    return json.loads(monitor.to_json())


def test_one_run_does_what_python_does(cases, capsys):
    shuffled = cases.sample(frac=1, random_state=0)
    code, found = run_all_at_once(shuffled)
    assert found == same_as_in_python(shuffled)
    assert capsys.readouterr().out.startswith(
        "OK: no alarm. Promised: at most 10 %" if code == 0 else "ALARM"
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("how", ["filled in", "further rows", "old rows go"])
def test_labels_that_come_later_give_the_state_of_one_run(cases, kind, how, rng, monkeypatch):
    _, expected = run_all_at_once(cases)
    command = [*BASE]
    command[1] = f"log.{kind}"
    known_from = np.arange(600) + rng.integers(0, 300, 600)  # rows in the log when it is known
    for n in (100, 105, 250, 250, 431, 600, 900):  # 12 rows have the same instant
        log = cases[:n].copy()
        log.loc[known_from[: len(log)] > n, "truth"] = None
        if how == "further rows":
            later = cases[:n][log["truth"].notna()]
            log["truth"] = None
            log = pd.concat([log, later], ignore_index=True)
        elif how == "old rows go":
            log = log[known_from[: len(log)] > n - 300]
        if kind == "csv":
            log.to_csv("log.csv", index=False)
        else:
            log.to_parquet("log.parquet", index=False)
        assert main(command) in (0, BROKEN)
    assert state() == expected


def test_rows_without_names_are_known_by_their_places(cases, capsys):
    cases = cases.drop(columns="id")
    _, expected = run_all_at_once(cases)
    for n in (7, 300, 600):
        cases[:n].assign(truth=cases["truth"].where(cases.index < n - 20)).to_csv(
            "log.csv", index=False
        )
        assert main(BASE) in (0, BROKEN)
    cases.to_csv("log.csv", index=False)
    main(BASE)
    assert state() == expected
    cases[:300].assign(truth=None).to_csv("log.csv", index=False)
    Path("state.json").unlink()
    main(BASE)
    before = Path("state.json").read_text()
    cases[50:].to_csv("log.csv", index=False)
    assert main(BASE) == 2
    assert "must keep their places" in capsys.readouterr().err
    assert Path("state.json").read_text() == before


def test_silence_that_means_right_counts_old_errors_too(cases):
    cases["truth"] = cases["truth"].where(cases["truth"] != cases["said"])  # errors only
    options = ["--mature-after", "3D", "--silence", "right"]
    run_all_at_once(cases, *options)
    cases.to_csv("log.csv", index=False)
    main([*BASE, *options])
    accepted = cases["score"] >= 7
    ripe = accepted & (cases["decided"].max() - cases["decided"] > pd.Timedelta("3D"))
    monitor = SelectiveRiskMonitor.from_json("state.json")
    assert monitor.status_.n_known >= ripe.sum()
    assert monitor.status_.estimate == pytest.approx(
        cases["truth"].notna()[accepted][: monitor.status_.n_known].mean()
    )
    main([*BASE, *options, "--now", "2026-03-01"])
    monitor = SelectiveRiskMonitor.from_json("state.json")
    assert (monitor.status_.n_known, monitor.status_.n_waiting) == (accepted.sum(), 0)


def test_exit_codes(cases, capsys):
    cases.assign(truth=None).to_csv("log.csv", index=False)
    assert main([*BASE, "--mature-after", "30D"]) == 0
    assert "No outcome is known yet" in capsys.readouterr().out
    assert main([*BASE, "--mature-after", "30D", "--now", "2026-03-01"]) == UNDECIDED
    assert "overdue" in capsys.readouterr().out
    wrong = cases.assign(truth=np.where(cases["said"] == "yes", "no", "yes"))
    wrong.to_csv("log.csv", index=False)
    assert main([*BASE, "--mature-after", "30D"]) == BROKEN
    assert "ALARM with case" in capsys.readouterr().out
    assert main([*BASE, "--mature-after", "30D"]) == BROKEN  # it stays
    assert "0 cases decided, 0 outcomes entered" in capsys.readouterr().out


def test_answers_with_a_confidence(cases):
    policy = AbstentionPolicy(classes=CLASSES, threshold=7, confidence=External("score"))
    policy.to_json("policy.json", allow_external=True)
    cases.loc[3, "score"] = None
    cases.loc[4, "said"] = None
    options = ["--answer", "said", "--confidence-column", "score"]
    _, expected = run_all_at_once(cases, *options)
    assert expected["counts"]["n_decided"] == 598
    rows = cases.drop([3, 4])
    monitor = SelectiveRiskMonitor(policy, target=0.1)
    monitor.update(
        rows["truth"], None, ids=rows["id"], when=rows["decided"], y_pred=rows["said"],
        confidence=rows["score"],
    )  # fmt: skip
    assert json.loads(monitor.to_json()) == expected
    for n in (100, 600):
        cases[:n].to_csv("log.csv", index=False)
        main([*BASE, *options])
    assert state() == expected


def test_subgroups_and_audits(cases):
    groups = GroupThresholds("site", {1: 0.6, 2: 0.8})
    policy = AbstentionPolicy(classes=CLASSES, threshold=np.inf, groups=groups)
    policy.to_json("policy.json")
    options = ["--subgroups", "site", "--audited", "drawn", "--audit-proba", "chance"]
    _, found = run_all_at_once(cases, *options, "--min-audit-proba", "0.4")
    monitor = SelectiveRiskMonitor(policy, target=0.1, min_audit_proba=0.4)
    monitor.update(
        cases["truth"], cases[["no", "yes"]], ids=cases["id"], when=cases["decided"],
        subgroups=cases["site"].astype(int), audited=cases["drawn"], audit_proba=cases["chance"],
    )  # fmt: skip
    assert json.loads(monitor.to_json()) == found


def test_numbers_as_times_and_labels(cases):
    AbstentionPolicy(classes=np.array([0, 1]), threshold=0.7).to_json("policy.json")
    cases["truth"] = (cases["truth"] == "yes").astype(float).where(cases.index < 590)
    cases["decided"] = np.arange(600) // 12
    options = ["--proba", "no", "yes", "--mature-after", "30", "--id", "id"]
    code, found = run_all_at_once(cases, *options)
    assert (code, found["last_decided"], found["kind"]) == (0, 49, "number")
    assert set(found["waiting"]["id"]) <= set(cases["id"][590:])


@pytest.mark.parametrize("word", ["NULL", "n/a", "-", " "])
def test_words_for_a_missing_label_are_no_label(cases, word):
    cases["truth"] = word
    run_all_at_once(cases)
    cases[:20].to_csv("log.csv", index=False)
    main(BASE)
    assert SelectiveRiskMonitor.from_json("state.json").status_.n_known == 0


def test_a_log_without_rows_begins_a_state(cases):
    code, found = run_all_at_once(cases[:0])
    assert (code, found["counts"]["n_decided"]) == (0, 0)
    cases[:0].to_parquet("log.parquet")
    command = [*BASE]
    command[1] = "log.parquet"
    assert main(command) == 0


BAD = [
    (["--delta", "0.2"], "was begun with --delta None, not 0.2"),
    (["--mature-after", "30D"], "was begun with --mature-after None, not 30D"),
    (["--silence", "right"], "mature_after is missing"),
    (["--mature-after", "soon"], "must be a span of time"),
    (["--now", "soon"], "--now: column '--now' must hold numbers, or dates"),
    (["--now", "7"], "when must hold dates"),
    (["--time", "truth"], "column 'truth' must hold numbers, or dates such as"),
    (["--time", "when"], "when"),
    (["--id", "site"], "each case needs a name of its own"),
    (["--audited", "said"], "column 'said' must hold true or false"),
    (["--state", "state.txt.csv"], "another format"),
    (["--state", "policy.json"], "is read or written by this command already"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_clear_messages_and_an_old_state(cases, options, message, capsys):
    cases[:300].to_csv("log.csv", index=False)
    main(BASE)
    before = Path("state.json").read_text()
    cases.to_csv("log.csv", index=False)
    capsys.readouterr()
    assert main([*BASE, *options]) == 2
    assert message in capsys.readouterr().err
    assert Path("state.json").read_text() == before


def test_states_of_others_are_refused(cases, capsys):
    cases.to_csv("log.csv", index=False)
    main(BASE)
    good = Path("state.json").read_text()
    spoilt = {
        "watches another policy than policy.json": good,
        "state.json: The state was changed after it was saved": good.replace(
            '"n_decided": 6', '"n_decided": 5'
        ),
        "state.json: This is not a state file; it is damaged JSON": good[:-40],
        "state.json: This JSON is no state of a monitor": Path("policy.json").read_text(),
    }
    AbstentionPolicy(classes=CLASSES, threshold=0.8).to_json("policy.json")
    for message, text in spoilt.items():
        Path("state.json").write_text(text)
        capsys.readouterr()
        assert main(BASE) == 2
        assert message in capsys.readouterr().err
        assert Path("state.json").read_text() == text


def test_without_a_promise_a_target_is_needed(cases, capsys):
    cases.to_csv("log.csv", index=False)
    assert main([*LOG, "--state", "state.json"]) == 2
    assert "target is missing" in capsys.readouterr().err
    assert not Path("state.json").exists()


@pytest.mark.parametrize(
    ("number", "place"), [(signal.SIGTERM, "replace"), (signal.SIGKILL, "write_text")]
)
def test_a_killed_command_leaves_the_old_state(cases, number, place, tmp_path):
    cases[:300].to_csv("log.csv", index=False)
    main(BASE)
    before = Path("state.json").read_text()
    cases.to_csv("log.csv", index=False)
    code = f"""
import os, sys
from pathlib import Path
from skselect.cli.main import main
def stopped(path, *_, **__):
    path.write_bytes(b"half")
    os.kill(os.getpid(), {int(number)})
setattr(Path, {place!r}, stopped)
sys.exit(main({BASE!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode in (-number, 128 + number)
    assert Path("state.json").read_text() == before
    assert main(BASE) in (0, BROKEN)
    assert state()["counts"]["n_decided"] == 600
