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
from skselect._lib.notebook import unwrap
from skselect.cli import BROKEN, UNDECIDED, commands
from skselect.policy.policy import External
from skselect.policy.subgroups import GroupThresholds
from skselect.predictions.confidence import LearnedScore
from tests.cli.conftest import call

CLASSES = np.array(["no", "yes"])
WATCHED = {"target": 0.1, "label_delay": "1000D"}
BASE = (
    "monitor {log} --policy policy.json --label truth --time decided --state state.json "
    "--target 0.1 --label-delay 1000D "
)
BY_SITE = {"threshold": np.inf, "groups": GroupThresholds("site", {1: 0.6, 2: 0.8})}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    now = pd.Timestamp("2024-06-01", tz="UTC").timestamp()
    monkeypatch.setattr(commands, "monitor", partial(commands.monitor, clock=lambda: now))
    save_policy()


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


@pytest.fixture
def watch(run):
    """Return a function that writes a log, runs the command, and returns what it prints."""

    def watch(log, options="", code=0, kind="csv"):
        getattr(log, f"to_{kind}")(f"log.{kind}", index=False)
        return unwrap(run(BASE.format(log=f"log.{kind}") + options, code).out)

    return watch


@pytest.fixture
def refused(refuse):
    """Return a function that writes a log which the command refuses, and returns the reason."""

    def refused(log, options=""):
        log.to_csv("log.csv", index=False)
        return refuse(BASE.format(log="log.csv") + options)

    return refused


def save_policy(classes=CLASSES, threshold=0.7, **options):
    policy = AbstentionPolicy(classes=classes, threshold=threshold, **options)
    policy.to_json("policy.json", allow_external=True)
    return policy


def state():
    return json.loads(Path("state.json").read_text())


def restored():
    return SelectiveRiskMonitor.from_json("state.json")


def in_one_run(cases, options=""):
    """Return the state after one run, and forget it."""
    cases.to_csv("log.csv", index=False)
    assert call(BASE.format(log="log.csv") + options) in (0, UNDECIDED, BROKEN)
    found = state()
    Path("state.json").unlink()
    return found


def in_python(policy, rows, y_proba, *, options=WATCHED, **more):
    """Return the state of a monitor that is told the same."""
    monitor = SelectiveRiskMonitor(policy, **options)
    monitor.update(rows["truth"], y_proba, ids=rows["id"], when=rows["decided"], **more)
    return json.loads(monitor.to_json())


def flipped(cases):
    return cases.assign(truth=np.where(cases["said"] == "yes", "no", "yes"))


# One run does what Python does --------------------------------------------------------------------


def test_one_run_does_what_python_does(cases, watch):
    shuffled = cases.sample(frac=1, random_state=0)
    assert watch(shuffled).startswith("OK: no alarm. Guaranteed: at most 10 %")
    # Of cases of one instant the order is that of the log.
    rows = shuffled.sort_values("decided", kind="stable")
    policy = AbstentionPolicy.from_json("policy.json")
    assert state() == in_python(policy, rows, rows[["no", "yes"]])


@pytest.mark.parametrize("judged", [False, True])
def test_answers_with_a_confidence_and_verdicts_on_them(cases, judged):
    cases.loc[3, "score"] = None
    cases.loc[4, "said"] = None
    rows, base, classes = cases.drop([3, 4]), BASE, CLASSES
    answers = rows["said"]
    if judged:  # the answers may be any
        right, classes = cases["truth"] == cases["said"], np.array(["right", "wrong"])
        cases["truth"] = np.where(right, "correct", "incorrect")
        cases["said"] = [None if k == 4 else f"text {k}" for k in range(len(cases))]
        rows, base = (
            rows.assign(truth=np.where(right, *classes)[rows.index]),
            base.replace("--label truth", "--verdict truth"),
        )
        answers = ["right"] * len(rows)
    policy = save_policy(classes, threshold=7, confidence=External("score"))
    expected = in_python(policy, rows, None, y_pred=answers, confidence=rows["score"])
    assert expected["counts"]["n_decided"] == 598
    for n in (100, 600):
        cases[:n].to_csv("log.csv", index=False)
        command = f"{base.format(log='log.csv')} --answer said --confidence-column score"
        assert call(command) in (0, UNDECIDED, BROKEN)
    assert state() == expected


def test_a_learned_confidence_is_read_as_it_was_decided(cases, refused):
    learned = LearnedScore(("logit", "age"), np.array([0.5, -1.0]), 0.5)
    policy = save_policy(threshold=0.6, confidence=learned)
    age = {"age": np.linspace(0, 1, len(cases))}
    decided = policy.decide(cases[["no", "yes"]], auxiliary=age)
    table = cases.join(decided[["suggestion", "confidence"]])
    found = in_one_run(table, "--answer suggestion --confidence-column confidence")
    assert found == in_python(policy, cases, cases[["no", "yes"]], auxiliary=age)
    assert "its learned confidence also asks ['age']" in refused(table)


def test_subgroups_and_audits(cases, refused):
    policy = save_policy(**BY_SITE)
    audits = "--audited drawn --audit-proba chance --min-audit-proba 0.4"
    found = in_one_run(cases, f"--subgroups site {audits}")
    assert found == in_python(
        policy, cases, cases[["no", "yes"]], options=WATCHED | {"min_audit_proba": 0.4},
        subgroups=cases["site"].astype(int), audited=cases["drawn"], audit_proba=cases["chance"],
    )  # fmt: skip
    assert "--subgroups is missing" in refused(cases)
    save_policy(threshold=7, confidence=External("score"))
    cases.loc[5, "chance"] = 0.2
    told = refused(cases, f"--answer said --confidence-column score {audits}")
    assert "--audit-proba" in told


def test_numbers_as_times_and_labels(cases):
    save_policy(np.array([0, 1]))
    cases["truth"] = (cases["truth"] == "yes").astype(float).where(cases.index < 590)
    cases["decided"] = np.arange(600) // 12
    found = in_one_run(cases, "--proba no yes --label-delay 30 --id id")
    assert (found["last_decided"], found["kind"]) == (49, "number")
    assert set(found["waiting"]["id"]) <= set(cases["id"][590:])


@pytest.mark.parametrize(
    "names", [("name", "when", "case", "label"), ("label", "waits", "name", "is new")]
)
def test_columns_of_a_log_may_have_any_names(cases, names, watch):
    save_policy(**BY_SITE)
    options = "--label {} --proba no {} --subgroups {} --audited {}"
    columns = ["truth", "yes", "site", "drawn"]
    cases["truth"] = cases["truth"].where(cases.index < 590)
    expected = in_one_run(cases, options.format(*columns))
    for n in (300, 600):
        log = cases[:n].rename(columns=dict(zip(columns, names, strict=True)))
        watch(log, options.format(*map(repr, names)))
    assert state() == expected


# From run to run ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("how", ["filled in", "further rows", "old rows go", "newest first"])
def test_labels_that_come_later_give_the_state_of_one_run(cases, kind, how, rng):
    order = slice(None, None, -1 if how == "newest first" else 1)
    expected = in_one_run(cases[order])
    known_from = np.arange(600) + rng.integers(0, 300, 600)  # rows in the log when it is known
    words = rng.choice(["", "NULL", "n/a", "-", " "], 600)  # that say it is not known
    # 12 rows have the same instant; newest first, a log ends with all rows of one.
    lengths = (12, 300, 600, 900) if how == "newest first" else (100, 105, 250, 250, 431, 600, 900)
    for n in lengths:
        log = cases[:n].copy()
        unknown = known_from[: len(log)] > n
        log["truth"] = np.where(unknown, words[: len(log)], log["truth"])
        if how == "further rows":  # the last one counts
            later = cases[:n][~unknown]
            log = pd.concat([log.assign(truth=None), flipped(later), later], ignore_index=True)
        elif how == "old rows go":
            log = log[known_from[: len(log)] > n - 300]
        getattr(log[order], f"to_{kind}")(f"log.{kind}", index=False)
        assert call(BASE.format(log=f"log.{kind}")) in (0, BROKEN)
    assert state() == expected


def test_labels_that_wait_are_said(cases, watch):
    first = cases["score"].gt(7).idxmax()
    cases.loc[first, "truth"] = None
    said = watch(cases, "--label-delay 3D", code=UNDECIDED)
    name = cases["id"][first]
    assert said.startswith(f"CANNOT GO ON: overdue cases have no label, such as {name!r}.")
    assert f"have a label, and wait behind case {name!r}, which has none" in said


def test_unlabelled_that_is_correct_counts_old_errors_too(cases, watch):
    cases["truth"] = cases["truth"].where(cases["truth"] != cases["said"])  # errors only
    options = "--label-delay 3D --unlabelled correct"
    watch(cases, options)
    accepted = cases["score"] >= 7
    ripe = accepted & (cases["decided"].max() - cases["decided"] > pd.Timedelta("3D"))
    status = restored().status_
    assert status.n_known >= ripe.sum()
    wrong = cases["truth"].notna()[accepted]
    assert status.estimate == pytest.approx(wrong[: status.n_known].mean())
    watch(cases, f"{options} --now 2024-03-01")
    status = restored().status_
    assert (status.n_known, status.n_waiting) == (accepted.sum(), 0)


def test_exit_codes(cases, watch):
    delay = "--label-delay 30D"
    watch(cases.assign(truth=None), delay)
    late = watch(cases.assign(truth=None), f"{delay} --now 2024-03-01", code=UNDECIDED)
    assert "overdue" in late
    assert "ALARM with case" in watch(flipped(cases), delay, code=BROKEN)
    again = watch(flipped(cases), delay, code=BROKEN)  # it stays
    assert "0 cases decided, 0 outcomes entered" in again


# Refusals leave the old state -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--delta 0.2", "was begun with --delta None, not 0.2"),
        ("--label-delay 30D", "was begun with --label-delay 1000D, not 30D"),
        ("--unlabelled correct", "was begun with --unlabelled wait, not correct"),
        ("--label-delay soon", "must be a span of time"),
        ("--now soon", "--now must be a number, or a date such as 2026-01-31T09:30, got 'soon'"),
        ("--now 7", "when must hold dates"),
        ("--now 2099-01-01", "--now is 2099-01-01T00:00, more than a day from now"),
        ("--time truth", "column 'truth' must hold numbers, or dates such as"),
        ("--time when", "when"),
        ("--id site", "each case needs a name of its own"),
        ("--audited site", "column 'site' must hold true or false"),
        ("--audit-proba chance", "--audited is missing"),
        ("--state policy.json", "is read or written by this command already"),
    ],
)
def test_options_that_do_not_fit_are_named(cases, options, message, watch, refused, refuse):
    watch(cases[:300])
    assert message in refused(cases, options)
    begin = "monitor log.csv --policy policy.json --label truth --time decided --state s.json"
    assert "required: --label-delay" in refuse(begin)
    assert "target is missing" in refuse(f"{begin} --label-delay 3D")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("truth", "YES", r"one of the classes \['no', 'yes'\] \(capitals and .* holds 'YES'"),
        ("truth", "yes ", r"log.csv: column 'truth' must hold one of .* row \d+ holds 'yes '"),
        ("truth", "maybe", r"log.csv: column 'truth' must hold one of .* holds 'maybe'"),
        # Old versions of pandas know no date in the year 9999, and name it as none.
        ("decided", "2099-01-01", r"row \d+ (has|holds) '?2099-01-01T"),
        ("decided", "9999-12-31T00:00:00", r"row \d+ (has|holds) '?9999-12-31T"),
        ("decided", "2024-06-02T00:00:01", r"row \d+ (has|holds) '?2024-06-02T"),
        ("decided", "now", "holds 'now'"),
        ("decided", "Today ", "holds 'Today '"),
    ],
)
def test_a_cell_that_does_not_fit_is_named(cases, column, value, message, watch, refused):
    watch(cases[:300])
    row = cases["score"][300:].idxmax()
    bad = cases.astype({"decided": str}) if column == "decided" else cases.copy()
    bad.loc[row, column] = value
    assert re.search(message, refused(bad))


def test_each_case_needs_a_name_that_is_used_once(cases, watch, refused):
    # A day from now may be another time zone.
    dates = cases["decided"].astype(str).where(cases.index != 599, "2024-06-02")
    cases["decided"] = pd.to_datetime(dates, format="ISO8601")
    watch(cases.assign(truth=None))
    told = refused(cases.drop(columns="id"))
    assert "--id: log.csv has no column 'id'; name the column" in told
    waiting = restored().waiting_["id"][3]
    cases.loc[cases["id"] == waiting, "decided"] += pd.Timedelta("1h")
    assert f"such as {waiting!r}, were decided at another time" in refused(cases)


def test_states_and_policies_of_others_are_refused(cases, watch, refused):
    watch(cases)
    good, policy = Path("state.json").read_text(), Path("policy.json").read_text()
    Path("policy.json").write_text('{"damaged')
    assert "--policy: policy.json: This is not a policy file" in refused(cases)
    save_policy(threshold=0.8)
    for message, text in {
        "watches another policy than policy.json": good,
        "changed after it was saved": good.replace('"n_decided": 6', '"n_decided": 5'),
        "state.json: This is not a state file; it is damaged JSON": good[:-40],
        "state.json: This JSON is no state of a monitor": policy,
    }.items():
        Path("state.json").write_text(text)
        assert message in refused(cases)


@pytest.mark.parametrize("place", ["replace", "write_text"])
def test_a_stopped_command_leaves_the_old_state(cases, place, monkeypatch, watch):
    watch(cases[:300])
    before = Path("state.json").read_text()

    def stopped(path, *_, **__):
        path.write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Path, place, stopped)
        watch(cases, code=128 + signal.SIGTERM)
    assert Path("state.json").read_text() == before
    watch(cases)
    assert state()["counts"]["n_decided"] == 600


@pytest.mark.parametrize(("locks", "is_first"), [(True, False), (False, True)])
def test_of_two_runs_at_once_the_slower_one_loses(cases, locks, is_first, monkeypatch, run):
    if not locks:
        monkeypatch.setattr(_files, "fcntl", None)
    if not is_first:
        cases[:100].to_csv("log.csv", index=False)
        run(BASE.format(log="log.csv"))
    read_log = commands._read_log
    flipped(cases)[:500].to_csv("newer.csv", index=False)
    newer = BASE.format(log="newer.csv")

    def slowly(*args):
        monkeypatch.setattr(commands, "_read_log", read_log)
        assert call(newer) == BROKEN
        return read_log(*args)

    monkeypatch.setattr(commands, "_read_log", slowly)
    cases[:300].to_csv("log.csv", index=False)
    told = run(BASE.format(log="log.csv"), code=2).err
    assert "state.json was written by another run" in told
    assert state()["counts"]["n_decided"] == 500
    run(newer, code=BROKEN)


# What is not read is never silent ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ("%d.%m.%Y %H:%M", "--dayfirst"),
        ("%d/%m/%Y %H:%M:%S", "--dayfirst"),
        ("%d %b %Y %H:%M", "--time-format '%d %b %Y %H:%M'"),
    ],
)
def test_dates_of_other_forms_mean_the_same(cases, written, options):
    plain = in_one_run(cases)
    texts = cases["decided"].dt.strftime(written)
    assert in_one_run(cases.assign(decided=texts), options) == plain


def test_dates_that_cannot_be_read_name_the_options(cases, refused):
    days_first = cases.assign(decided=cases["decided"].dt.strftime("%d.%m.%Y %H:%M"))
    told = refused(days_first)
    assert "'01.01.2024 00:00'" in told
    assert "or say --dayfirst, or --time-format" in told
    impossible = days_first.assign(decided="31.02.2024")
    assert "holds '2024-02-31'" in refused(impossible, "--dayfirst")
    both = "--dayfirst --time-format %d"
    assert "--dayfirst goes without --time-format" in refused(days_first, both)


def test_rows_behind_a_date_of_the_future_are_named(cases, watch, refused):
    dates = cases["decided"].astype(str).where(cases.index != 299, "2099-01-01")
    log = flipped(cases).assign(decided=dates)
    watch(cases.assign(decided=dates)[:300], "--allow-future")
    assert "--state: state.json was read 2099-01-01T00:00" in refused(log)
    said = watch(log, "--allow-future", code=UNDECIDED)
    assert said.startswith("NOT READ: 300 rows of the log at least, of 2024-01-08, 2024-01-09")
    assert "They lie before 2099-01-01 00:00:00+00:00, up to which cases were read" in said


def in_numbers(cases, delay=3):
    """Give the cases numbers as times, and return the option that goes with them."""
    cases["decided"] = np.arange(600) // 12
    return f"--label-delay {delay}"


@pytest.mark.parametrize("kind", ["dates", "numbers"])
def test_logs_in_the_wrong_order_and_late_rows_are_named(cases, kind, watch):
    options = in_numbers(cases) if kind == "numbers" else ""
    old, new = cases[:288], cases[288:]
    watch(new, options)
    said = watch(flipped(old), options, code=UNDECIDED)
    # Of the day that holds both, fewer rows than were read are in the log.
    assert 240 <= int(said.split("NOT READ: ")[1].split(" row")[0]) <= 288
    late = cases[400:410].assign(id=[f"late{i}" for i in range(10)])
    for log, words in [
        (pd.concat([new, late]), "NOT READ: 10 rows of the log at least, of "),
        (pd.concat([new.drop(index=405), late[:1]]), "NOT READ: 1 row of the log at least, of "),
    ]:
        assert words in watch(log, options, code=UNDECIDED)
    watch(new, options)


@pytest.mark.parametrize(
    ("kind", "log"),
    [
        ("dates", "whole days go"), ("dates", "any rows go"), ("dates", "twice"),
        ("dates", "label rows"), ("dates", "no proba"), ("numbers", "whole days go"),
        ("numbers", "twice"), ("one number", "any rows go"),
    ],
)  # fmt: skip
def test_ordinary_logs_are_not_accused(cases, kind, log, rng, watch):
    options = "" if kind == "dates" else in_numbers(cases, 0 if kind == "one number" else 3)
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
        said = watch(rows.sample(frac=1, random_state=n), options)
        assert "NOT READ" not in said
        assert "another loss" not in said
        if log == "any rows go" and before:  # a part of what was read: the rest is not known
            assert "NOTE: nothing is known of" in said


def test_corrected_labels_of_entered_cases_are_counted_and_named(cases, watch):
    watch(cases)
    accepted = cases["score"] >= 7
    few = cases.copy()
    last = accepted[accepted].index[-1]
    few.loc[last, "truth"] = "yes" if cases["truth"][last] == "no" else "no"
    right = (cases["truth"] == cases["said"]) & accepted
    for log, n in ((cases, 0), (flipped(cases), right.sum()), (few, 1)):
        said = watch(log)
        assert ("NOTE" in said) == bool(n)
        if n:
            assert 0.9 * n <= int(said.split("NOTE: ")[1].split(" case")[0]) <= n
            assert "that entered earlier at least, of 2024-01-" in said
    Path("state.json").unlink()  # a label that comes after no label meant "correct"
    options = "--label-delay 3D --unlabelled correct --now 2024-03-01"
    assert "NOTE" not in watch(cases.assign(truth=None), options)
    said = watch(flipped(cases), options)
    assert f"NOTE: {accepted.sum()} cases that entered earlier at least, of 2024-01-01, " in said
