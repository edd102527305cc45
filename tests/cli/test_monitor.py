"""skselect monitor: a log that grows or is filled in, from run to run."""

import json
import os
import re
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skselect import AbstentionPolicy, SelectiveRiskMonitor
from skselect._lib import files as _files
from skselect._lib.files import digest_json
from skselect._lib.notebook import unwrap
from skselect.cli import BROKEN, UNDECIDED, commands, tables
from skselect.cli.main import main
from skselect.policy.policy import External
from skselect.policy.subgroups import GroupThresholds
from skselect.predictions.confidence import LearnedScore

CLASSES = np.array(["no", "yes"])
WATCHED = {"target": 0.1, "label_delay": "1000D"}
LOG = ["monitor", "log.csv", "--policy", "policy.json", "--label", "truth", "--time", "decided"]
BASE = [*LOG, "--state", "state.json", "--target", "0.1", "--label-delay", "1000D"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tables, "_PIECE", 100)
    monkeypatch.setattr(tables, "_BLOCK", 10_000)
    now = pd.Timestamp("2024-06-01", tz="UTC").timestamp()
    monkeypatch.setattr(commands, "monitor", partial(commands.monitor, clock=lambda: now))
    AbstentionPolicy(classes=CLASSES, threshold=0.7).to_json("policy.json")


@pytest.fixture
def cases(rng):
    """Return 600 cases of 50 instants."""
    n = 600
    p = rng.random(n)
    right = rng.random(n) < 0.9
    return pd.DataFrame({
        "id": [f"c{i}" for i in range(n)],
        "decided": pd.date_range("2024-01-01", periods=50, freq="7h").repeat(12),
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
    monitor = SelectiveRiskMonitor(AbstentionPolicy.from_json("policy.json"), **WATCHED)
    rows = cases.sort_values("decided", kind="stable")
    monitor.update(rows["truth"], rows[["no", "yes"]], ids=rows["id"], when=rows["decided"])
    return json.loads(monitor.to_json())


def test_one_run_does_what_python_does(cases, capsys):
    shuffled = cases.sample(frac=1, random_state=0)
    code, found = run_all_at_once(shuffled)
    assert found == same_as_in_python(shuffled)
    assert capsys.readouterr().out.startswith(
        "OK: no alarm. Guaranteed: at most 10 %" if code == 0 else "ALARM"
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


def test_a_name_of_each_case_is_needed_whatever_the_order_of_rows(cases, capsys):
    _, expected = run_all_at_once(cases[::-1])
    for n in (12, 300, 600):  # newest rows first
        cases[:n][::-1].to_csv("log.csv", index=False)
        assert main(BASE) in (0, BROKEN)
    assert state() == expected
    before = Path("state.json").read_text()
    cases.drop(columns="id").to_csv("log.csv", index=False)
    assert main(BASE) == 2
    assert "--id: log.csv has no column 'id'; name the column" in capsys.readouterr().err
    assert Path("state.json").read_text() == before


def test_a_name_that_is_used_again_is_refused(cases, capsys):
    cases.assign(truth=None).to_csv("log.csv", index=False)
    main(BASE)
    waiting = SelectiveRiskMonitor.from_json("state.json").waiting_["id"][3]
    cases.loc[cases["id"] == waiting, "decided"] += pd.Timedelta("1h")
    cases.to_csv("log.csv", index=False)
    assert main(BASE) == 2
    assert f"such as {waiting!r}, were decided at another time" in capsys.readouterr().err


@pytest.mark.parametrize("label", ["YES", "yes ", "maybe"])
def test_labels_that_are_no_classes_are_refused(cases, label, capsys):
    cases[:300].to_csv("log.csv", index=False)
    main(BASE)
    before = Path("state.json").read_text()
    cases.loc[cases["score"][300:].idxmax(), "truth"] = label
    cases.to_csv("log.csv", index=False)
    capsys.readouterr()
    assert main(BASE) == 2
    said = capsys.readouterr().err
    assert "log.csv: column 'truth' has labels that are not among the classes" in said
    assert f"{[label]}. Correct them (capitals and blanks count)" in said
    assert Path("state.json").read_text() == before


def test_of_two_rows_of_a_case_the_last_label_counts(cases):
    wrong = cases.assign(truth=np.where(cases["truth"] == "yes", "no", "yes"))
    _, expected = run_all_at_once(wrong)
    pd.concat([cases, wrong]).to_csv("log.csv", index=False)
    main(BASE)
    assert state() == expected


def test_labels_that_wait_are_said_and_the_age_must_be(cases, capsys):
    cases.loc[cases["score"].gt(7).idxmax(), "truth"] = None
    cases.to_csv("log.csv", index=False)
    assert main([*BASE[:-1], "3D"]) == UNDECIDED
    said = unwrap(capsys.readouterr().out)
    name = cases["id"][cases["score"].gt(7).idxmax()]
    assert said.startswith(f"CANNOT GO ON: overdue cases have no label, such as {name!r}.")
    assert f"have a label, and wait behind case {name!r}, which has none" in said
    with pytest.raises(SystemExit):
        main(BASE[:-2])
    assert "required: --label-delay" in capsys.readouterr().err


def test_unlabelled_that_is_correct_counts_old_errors_too(cases):
    cases["truth"] = cases["truth"].where(cases["truth"] != cases["said"])  # errors only
    options = ["--label-delay", "3D", "--unlabelled", "correct"]
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
    main([*BASE, *options, "--now", "2024-03-01"])
    monitor = SelectiveRiskMonitor.from_json("state.json")
    assert (monitor.status_.n_known, monitor.status_.n_waiting) == (accepted.sum(), 0)


def test_exit_codes(cases, capsys):
    cases.assign(truth=None).to_csv("log.csv", index=False)
    assert main([*BASE, "--label-delay", "30D"]) == 0
    assert "No outcome is known yet" in unwrap(capsys.readouterr().out)
    assert main([*BASE, "--label-delay", "30D", "--now", "2024-03-01"]) == UNDECIDED
    assert "overdue" in capsys.readouterr().out
    wrong = cases.assign(truth=np.where(cases["said"] == "yes", "no", "yes"))
    wrong.to_csv("log.csv", index=False)
    assert main([*BASE, "--label-delay", "30D"]) == BROKEN
    assert "ALARM with case" in capsys.readouterr().out
    assert main([*BASE, "--label-delay", "30D"]) == BROKEN  # it stays
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
    monitor = SelectiveRiskMonitor(policy, **WATCHED)
    monitor.update(
        rows["truth"], None, ids=rows["id"], when=rows["decided"], y_pred=rows["said"],
        confidence=rows["score"],
    )  # fmt: skip
    assert json.loads(monitor.to_json()) == expected
    for n in (100, 600):
        cases[:n].to_csv("log.csv", index=False)
        main([*BASE, *options])
    assert state() == expected


def test_a_learned_confidence_is_read_as_it_was_decided(cases, capsys):
    learned = LearnedScore(("logit", "age"), np.array([0.5, -1.0]), 0.5)
    policy = AbstentionPolicy(classes=CLASSES, threshold=0.6, confidence=learned)
    policy.to_json("policy.json")
    age = {"age": np.linspace(0, 1, len(cases))}
    decided = policy.decide(cases[["no", "yes"]], auxiliary=age)
    table = cases.join(decided[["suggestion", "confidence"]])
    options = ["--answer", "suggestion", "--confidence-column", "confidence"]
    _, found = run_all_at_once(table, *options)
    monitor = SelectiveRiskMonitor(policy, **WATCHED)
    monitor.update(
        cases["truth"], cases[["no", "yes"]], ids=cases["id"], when=cases["decided"], auxiliary=age
    )
    assert json.loads(monitor.to_json()) == found
    assert main(BASE) == 2
    assert "its learned confidence also asks ['age']" in capsys.readouterr().err


def test_subgroups_and_audits(cases):
    groups = GroupThresholds("site", {1: 0.6, 2: 0.8})
    policy = AbstentionPolicy(classes=CLASSES, threshold=np.inf, groups=groups)
    policy.to_json("policy.json")
    options = ["--subgroups", "site", "--audited", "drawn", "--audit-proba", "chance"]
    _, found = run_all_at_once(cases, *options, "--min-audit-proba", "0.4")
    monitor = SelectiveRiskMonitor(policy, **WATCHED, min_audit_proba=0.4)
    monitor.update(
        cases["truth"], cases[["no", "yes"]], ids=cases["id"], when=cases["decided"],
        subgroups=cases["site"].astype(int), audited=cases["drawn"], audit_proba=cases["chance"],
    )  # fmt: skip
    assert json.loads(monitor.to_json()) == found


def test_subgroups_must_be_named(cases, capsys):
    groups = GroupThresholds("site", {1: 0.6, 2: 0.8})
    policy = AbstentionPolicy(classes=CLASSES, threshold=np.inf, groups=groups)
    policy.to_json("policy.json")
    cases.to_csv("log.csv", index=False)
    assert main(BASE) == 2
    assert "--subgroups is missing" in capsys.readouterr().err


def test_numbers_as_times_and_labels(cases):
    AbstentionPolicy(classes=np.array([0, 1]), threshold=0.7).to_json("policy.json")
    cases["truth"] = (cases["truth"] == "yes").astype(float).where(cases.index < 590)
    cases["decided"] = np.arange(600) // 12
    options = ["--proba", "no", "yes", "--label-delay", "30", "--id", "id"]
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
    (["--label-delay", "30D"], "was begun with --label-delay 1000D, not 30D"),
    (["--unlabelled", "correct"], "was begun with --unlabelled wait, not correct"),
    (["--label-delay", "soon"], "must be a span of time"),
    (["--now", "soon"], "--now must be a number, or a date such as 2026-01-31T09:30, got 'soon'"),
    (["--now", "7"], "when must hold dates"),
    (["--time", "truth"], "column 'truth' must hold numbers, or dates such as"),
    (["--time", "when"], "when"),
    (["--id", "site"], "each case needs a name of its own"),
    (["--audited", "site"], "column 'site' must hold true or false"),
    (["--audit-proba", "chance"], "--audited is missing"),
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
    Path("policy.json").write_text('{"damaged')
    assert main(BASE) == 2
    assert "--policy: policy.json: This is not a policy file" in capsys.readouterr().err
    AbstentionPolicy(classes=CLASSES, threshold=0.8).to_json("policy.json")
    for message, text in spoilt.items():
        Path("state.json").write_text(text)
        capsys.readouterr()
        assert main(BASE) == 2
        assert message in capsys.readouterr().err
        assert Path("state.json").read_text() == text


def test_without_a_guarantee_a_target_is_needed(cases, capsys):
    cases.to_csv("log.csv", index=False)
    assert main([*LOG, "--state", "state.json", "--label-delay", "3D"]) == 2
    assert "target is missing" in capsys.readouterr().err
    assert not Path("state.json").exists()


@pytest.mark.parametrize("place", ["replace", "write_text"])
def test_a_stopped_command_leaves_the_old_state(cases, place, monkeypatch):
    cases[:300].to_csv("log.csv", index=False)
    main(BASE)
    before = Path("state.json").read_text()
    cases.to_csv("log.csv", index=False)

    def stopped(path, *_, **__):
        path.write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Path, place, stopped)
        with pytest.raises(SystemExit) as done:
            main(BASE)
    assert done.value.code == 128 + signal.SIGTERM
    assert Path("state.json").read_text() == before
    assert main(BASE) in (0, BROKEN)
    assert state()["counts"]["n_decided"] == 600


def test_evaluate_names_the_option_for_unknown_labels(cases, capsys):
    cases.assign(truth="maybe").to_csv("log.csv", index=False)
    command = ["evaluate", "log.csv", "--label", "truth", "--policy", "policy.json"]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "log.csv: column 'truth' has labels that are not among the classes" in said
    assert "['maybe']" in said
    assert "--classes" in said


# What is not read is never silent ----------------------------------------------------------------


def run(log, *options, name="log.csv"):
    log.to_csv(name, index=False)
    return main([*BASE, *options])


def flipped(cases):
    return cases.assign(truth=np.where(cases["said"] == "yes", "no", "yes"))


@pytest.mark.parametrize("date", ["2099-01-01", "9999-12-31T00:00:00", "2024-06-02T00:00:01"])
def test_a_date_of_the_future_is_refused_before_anything_enters(cases, date, capsys):
    assert run(cases[:300]) == 0
    before = Path("state.json").read_bytes()
    dates = cases["decided"].astype(str).where(cases.index != 450, date)
    assert run(cases.assign(decided=dates)) == 2
    # Old versions of pandas know no such date, and name it as none.
    assert re.search(rf"line 452 (has|holds) '?{date[:10]}T", capsys.readouterr().err)
    assert Path("state.json").read_bytes() == before
    assert run(cases, "--now", "2099-01-01") == 2
    assert "--now is 2099-01-01T00:00, more than a day from now" in capsys.readouterr().err
    assert Path("state.json").read_bytes() == before
    dates[450] = "2024-06-02"  # a day from now may be another time zone
    assert run(cases.assign(decided=dates).iloc[[*range(450), *range(451, 600), 450]]) == 0


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ("%d.%m.%Y %H:%M", ["--dayfirst"]),
        ("%d/%m/%Y %H:%M:%S", ["--dayfirst"]),
        ("%d %b %Y %H:%M", ["--time-format", "%d %b %Y %H:%M"]),
    ],
)
def test_dates_of_other_forms_mean_the_same(cases, written, options):
    plain = run_all_at_once(cases)
    texts = cases["decided"].dt.strftime(written)
    assert run_all_at_once(cases.assign(decided=texts), *options) == plain


def test_dates_that_cannot_be_read_name_the_options(cases, capsys):
    days_first = cases.assign(decided=cases["decided"].dt.strftime("%d.%m.%Y %H:%M"))
    assert run(days_first) == 2
    assert "'01.01.2024 00:00'" in (told := capsys.readouterr().err)
    assert "or say --dayfirst, or --time-format" in told
    assert run(days_first.assign(decided="31.02.2024"), "--dayfirst") == 2
    assert "holds '2024-02-31'" in capsys.readouterr().err
    assert run(days_first, "--dayfirst", "--time-format", "%d") == 2
    assert "--dayfirst goes without --time-format" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["now", "today", "Today "])
def test_words_are_no_times(cases, word, capsys):
    dates = cases["decided"].astype(str).where(cases.index != 50, word)
    assert run(cases.assign(decided=dates)) == 2
    assert f"holds {word!r}" in capsys.readouterr().err
    assert run(cases, "--now", word) == 2
    assert "--now must be a number, or a date" in capsys.readouterr().err


def test_rows_behind_a_date_of_the_future_are_named(cases, capsys):
    dates = cases["decided"].astype(str).where(cases.index != 299, "2099-01-01")
    log = flipped(cases).assign(decided=dates)
    assert run(cases.assign(decided=dates)[:300], "--allow-future") == 0
    assert run(log) == 2
    assert "--state: state.json was read 2099-01-01T00:00" in capsys.readouterr().err
    assert run(log, "--allow-future") == UNDECIDED
    said = unwrap(capsys.readouterr().out)
    assert said.startswith("NOT READ: 300 rows of the log at least, of 2024-01-08, 2024-01-09")
    assert "They lie before 2099-01-01 00:00:00+00:00, up to which cases were read" in said


@pytest.mark.parametrize("kind", ["dates", "numbers"])
def test_logs_in_the_wrong_order_and_late_rows_are_named(cases, kind, capsys):
    options = []
    if kind == "numbers":
        cases["decided"] = np.arange(600) // 12
        options = ["--label-delay", "3"]
    old, new = cases[:288], cases[288:]
    assert run(new, *options) == 0
    assert run(flipped(old), *options) == UNDECIDED
    said = unwrap(capsys.readouterr().out)
    # Of the day that holds both, fewer rows than were read are in the log.
    assert 240 <= int(said.split("NOT READ: ")[1].split(" row")[0]) <= 288
    late = cases[400:410].assign(id=[f"late{i}" for i in range(10)])
    assert run(pd.concat([new, late]), *options) == UNDECIDED
    assert "NOT READ: 10 rows of the log at least, of " in unwrap(capsys.readouterr().out)
    assert run(pd.concat([new.drop(index=405), late[:1]]), *options) == UNDECIDED
    assert "NOT READ: 1 row of the log at least, of " in unwrap(capsys.readouterr().out)
    assert run(new, *options) == 0


KINDS = [
    ("dates", "whole days go"), ("dates", "any rows go"), ("dates", "twice"),
    ("dates", "label rows"), ("dates", "no proba"), ("numbers", "whole days go"),
    ("numbers", "twice"), ("one number", "any rows go"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "log"), KINDS)
def test_ordinary_logs_are_not_accused(cases, kind, log, rng, capsys):
    options = []
    if kind != "dates":
        cases["decided"] = np.arange(600) // 12
        options = ["--label-delay", "0" if kind == "one number" else "3"]
    if log == "no proba":
        cases.loc[rng.random(600) < 0.1, ["no", "yes"]] = None
    for before, n in ((0, 250), (250, 431), (431, 600), (600, 600)):
        rows = cases[:n]
        if log == "whole days go":
            rows = rows[rows["decided"] >= cases["decided"][max(0, n - 200)]]
        elif log == "any rows go":
            rows = rows[(rows.index >= before) | (rng.random(n) < 0.5)]
        elif log == "twice":
            rows = pd.concat([rows, rows.sample(frac=0.5, random_state=0)])
        elif log == "label rows":
            told = rows.assign(no=None, yes=None, drawn=None).to_dict("records")
            rows = pd.DataFrame([*rows.assign(truth=None).to_dict("records"), *told])
        run(rows.sample(frac=1, random_state=n), *options)
        said = capsys.readouterr().out
        assert "NOT READ" not in said
        assert "another loss" not in said
        if log == "any rows go" and before:  # a part of what was read: the rest is not known
            assert "NOTE: nothing is known of" in said


def test_corrected_labels_of_entered_cases_are_counted_and_named(cases, capsys):
    assert run(cases) == 0
    accepted = cases["score"] >= 7
    one = accepted[accepted].index[-1]
    few = cases.copy()
    few.loc[one, "truth"] = "yes" if cases["truth"][one] == "no" else "no"
    right = (cases["truth"] == cases["said"]) & accepted
    for log, n in ((cases, 0), (flipped(cases), right.sum()), (few, 1)):
        capsys.readouterr()
        assert run(log) == 0
        said = unwrap(capsys.readouterr().out)
        assert ("NOTE" in said) == bool(n)
        if n:
            found = int(said.split("NOTE: ")[1].split(" case")[0])
            assert 0.9 * n <= found <= n
            assert "that entered earlier at least, of 2024-01-" in said


def test_a_state_of_format_version_1_accuses_no_row_that_it_read(cases, capsys):
    run(cases[:300])
    old = state() | {"version": 1}
    for name in ("read", "entered", "recorded_from"):
        del old[name]
    old["options"]["silence"] = {"wait": "wait"}[old["options"].pop("unlabelled")]
    old["counts"]["n_silent"] = old["counts"].pop("n_unlabelled")
    old["options"]["mature_after"] = old["options"].pop("label_delay")
    old["waiting"]["promise"] = old["waiting"].pop("guarantee")
    old |= {"promises": old.pop("guarantees"), "course": old.pop("history")}
    Path("state.json").write_text(json.dumps(old | {"digest": digest_json(old)}))
    for n in (300, 600, 600):
        assert run(cases[:n]) == 0
        assert "NOT READ" not in capsys.readouterr().out
    assert run(pd.concat([cases, cases[400:401].assign(id="late")])) == UNDECIDED


@pytest.mark.parametrize(("locks", "is_first"), [(True, False), (False, True)])
def test_of_two_runs_at_once_the_slower_one_loses(cases, locks, is_first, capsys, monkeypatch):
    if not locks:
        monkeypatch.setattr(_files, "fcntl", None)
    if not is_first:
        run(cases[:100])
    read_log = commands._read_log
    flipped(cases)[:500].to_csv("newer.csv", index=False)

    def slowly(*args):
        monkeypatch.setattr(commands, "_read_log", read_log)
        assert main(["monitor", "newer.csv", *BASE[2:]]) == BROKEN
        return read_log(*args)

    monkeypatch.setattr(commands, "_read_log", slowly)
    assert run(cases[:300]) == 2
    assert "state.json was written by another run" in capsys.readouterr().err
    assert state()["counts"]["n_decided"] == 500
    assert main(["monitor", "newer.csv", *BASE[2:]]) == BROKEN


def test_labels_that_come_after_no_label_meant_correct_are_named(cases, capsys):
    options = ["--label-delay", "3D", "--unlabelled", "correct", "--now", "2024-03-01"]
    assert run(cases.assign(truth=None), *options) == 0
    assert "NOTE" not in capsys.readouterr().out
    assert run(flipped(cases), *options) == 0
    said = unwrap(capsys.readouterr().out)
    n = int((cases["score"] >= 7).sum())
    assert f"NOTE: {n} cases that entered earlier at least, of 2024-01-01, 2024-01-02" in said
