"""skselect monitor: a fold over a log, in one file or several, in any order."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skselect import AbstentionPolicy, SelectiveRiskMonitor
from skselect._lib.notebook import TONES, unwrap
from skselect.cli import BROKEN, OPEN, commands
from skselect.cli.freshness import usual_age
from skselect.cli.runs import History
from skselect.policy.policy import External
from skselect.policy.subgroups import GroupThresholds
from skselect.predictions.confidence import LearnedScore
from tests.cli.conftest import call
from tests.common import mostly_slow

CLASSES = np.array(["no", "yes"])
WATCHED = {"target": 0.1, "label_delay": "1000D"}
BASE = (
    "monitor {log} --policy policy.json --label truth --time decided --target 0.1 "
    "--label-delay 1000D --now 2024-01-16 "
)
BY_SITE = {"threshold": np.inf, "groups": GroupThresholds("site", {1: 0.6, 2: 0.8})}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "_PIECE", 100)
    now = pd.Timestamp("2024-06-01", tz="UTC").timestamp()
    monkeypatch.setattr(commands, "monitor", partial(commands.monitor, clock=lambda: now))
    save_policy()


@pytest.fixture
def cases(rng):
    """Return 600 cases of 50 instants, in their order."""
    n = 600
    p = rng.random(n)
    right = rng.random(n) < 0.9
    return pd.DataFrame({
        "id": [f"c{i:03}" for i in range(n)],
        "decided": pd.date_range("2024-01-01", periods=50, freq="7h").repeat(12),
        "no": 1 - p, "yes": p, "truth": np.where((p > 0.5) == right, "yes", "no"),
        "site": rng.choice(["1", "2"], n), "said": np.where(p > 0.5, "yes", "no"),
        "score": 10 * np.maximum(p, 1 - p), "drawn": rng.random(n) < 0.5,
        "chance": rng.uniform(0.4, 1, n),
    })  # fmt: skip


@pytest.fixture
def watch(run):
    """Return a function that writes a log, runs the command, and returns what it prints."""

    def watch(*logs, options="", code=0, kind="csv"):
        names = [f"log{k}.{kind}" for k in range(len(logs))]
        for name, log in zip(names, logs, strict=True):
            getattr(log, f"to_{kind}")(name, index=False)
        return unwrap(run(BASE.format(log=" ".join(names)) + options, code).out)

    return watch


@pytest.fixture
def refused(refuse):
    """Return a function that writes a log which the command refuses, and returns the reason."""

    def refused(log, options=""):
        log.to_csv("log.csv", index=False)
        return refuse(BASE.format(log="log.csv") + options)

    return refused


def save_policy(classes=CLASSES, threshold=0.7, **options):
    options = {"created": "2023-12-31T09:00:00+00:00", **options}
    policy = AbstentionPolicy(classes=classes, threshold=threshold, **options)
    policy.to_json("policy.json", allow_external=True)
    return policy


def fold(*logs, options="", kind="csv", base=BASE):
    """Return what the command computes of a log, to the last bit."""
    Path("bits.csv").unlink(missing_ok=True)
    names = [f"log{k}.{kind}" for k in range(len(logs))]
    for name, log in zip(names, logs, strict=True):
        getattr(log, f"to_{kind}")(name, index=False)
    command = f"{base.format(log=' '.join(names))} {options} --history bits.csv"
    assert call(command) in (0, OPEN, BROKEN)
    found = pd.read_csv("bits.csv", dtype=str, keep_default_na=False).iloc[0]
    return found[["cases", "known", "evidence", "alarm_line", "alarm_when"]].tolist()


def in_python(policy, rows, y_proba, *, options=WATCHED, **more):
    """Return the same of a monitor that is told the same."""
    monitor = SelectiveRiskMonitor(policy, **options)
    status = monitor.update(
        rows["truth"], y_proba, ids=rows["id"], when=rows["decided"], **more
    ).status_
    found = [status.n_decided, status.n_known, status.evidence, status.worst.alarm_line]
    return [*map(str, found), str(status.alarm_when or "")]


def flipped(cases):
    return cases.assign(truth=np.where(cases["said"] == "yes", "no", "yes"))


# The fold does what Python does -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_fold_over_files_in_any_order_is_one_run_in_python(cases, kind, rng):
    cases.loc[rng.random(600) < 0.1, ["no", "yes"]] = None  # deferred, and left out
    known = cases.dropna()
    policy = AbstentionPolicy.from_json("policy.json")
    for table in (cases, flipped(cases)):
        rows = table.loc[known.index]
        expected = in_python(policy, rows, rows[["no", "yes"]])
        shuffled = table.sample(frac=1, random_state=0)
        parts = [shuffled[:100], shuffled[100:450], shuffled[450:]]
        assert fold(table, kind=kind) == fold(*parts, kind=kind) == expected
        assert fold(*parts[::-1], kind=kind) == expected
        # Labels may come in rows of their own, and rows may come twice.
        told = table.assign(no=None, yes=None, drawn=None).astype({"no": float, "yes": float})
        assert fold(told, table.assign(truth=None).astype({"truth": str}).replace("None", "-"),
                    table[:300], kind=kind) == expected  # fmt: skip
    assert expected[-1]  # an alarm


def test_an_alarm_stays_as_the_log_grows(cases):
    found = [fold(flipped(cases)[:n])[-1] for n in (12, 96, 300, 600)]
    assert found[0] == ""
    assert found[1] == found[2] == found[3] > ""


@pytest.mark.parametrize("judged", [False, True])
def test_answers_with_a_confidence_and_verdicts_on_them(cases, judged):
    cases.loc[3, "score"] = None
    cases.loc[4, "said"] = None
    rows, base, classes = cases.drop([3, 4]), BASE, CLASSES
    answers = rows["said"]
    if judged:  # the answers may be any
        right, classes = cases["truth"] == cases["said"], np.array(["right", "wrong"])
        cases["truth"] = np.where(right, "correct", "incorrect")
        base = BASE.replace("--label truth", "--verdict truth")
        cases["said"] = [None if k == 4 else f"text {k}" for k in range(len(cases))]
        rows = rows.assign(truth=np.where(right, *classes)[rows.index])
        answers = ["right"] * len(rows)
    policy = save_policy(classes, threshold=7, confidence=External("score"))
    expected = in_python(policy, rows, None, y_pred=answers, confidence=rows["score"])
    assert expected[0] == "598"
    options = "--answer said --confidence-column score"
    assert fold(cases, options=options, base=base) == expected


def test_a_learned_confidence_is_read_as_it_was_decided(cases, refused):
    learned = LearnedScore(("logit", "age"), np.array([0.5, -1.0]), 0.5)
    policy = save_policy(threshold=0.6, confidence=learned)
    age = {"age": np.linspace(0, 1, len(cases))}
    decided = policy.decide(cases[["no", "yes"]], auxiliary=age)
    table = cases.join(decided[["suggestion", "confidence"]])
    found = fold(table, options="--answer suggestion --confidence-column confidence")
    assert found == in_python(policy, cases, cases[["no", "yes"]], auxiliary=age)
    assert "its learned confidence also asks ['age']" in refused(table)


def test_subgroups_and_audits(cases, refused):
    policy = save_policy(**BY_SITE)
    audits = "--audited drawn --audit-proba chance --min-audit-proba 0.4"
    found = fold(cases, options=f"--subgroups site {audits}")
    assert found == in_python(
        policy, cases, cases[["no", "yes"]], options=WATCHED | {"min_audit_proba": 0.4},
        subgroups=cases["site"].astype(int), audited=cases["drawn"], audit_proba=cases["chance"],
    )  # fmt: skip
    assert "--subgroups is missing" in refused(cases)
    save_policy(threshold=7, confidence=External("score"))
    cases.loc[5, "chance"] = 0.2
    told = refused(cases, f"--answer said --confidence-column score {audits}")
    assert "--audit-proba" in told


def test_columns_of_a_log_may_have_any_names(cases):
    save_policy(**BY_SITE)
    options = "--label {} --proba no {} --subgroups {} --audited {}"
    columns = ["truth", "yes", "site", "drawn"]
    expected = fold(cases, options=options.format(*columns))
    for names in [("id ", "when", "label", "is decided"), ("label", "0", "subgroup site", "y")]:
        log = cases.rename(columns=dict(zip(columns, names, strict=True)))
        assert fold(log, options=options.format(*map(repr, names))) == expected


def test_numbers_as_times_have_no_clock(cases, watch, refused):
    save_policy(np.array([0, 1]))
    cases["truth"] = (cases["truth"] == "yes").astype(float).where(cases.index < 580)
    cases["decided"] = np.arange(600) // 12
    numbers = "--proba no yes --label-delay 3"
    said = watch(cases, options=f"{numbers} --now 50")
    assert "Counted: 600 cases since the first one." in said
    assert "overdue" in watch(cases, options=f"{numbers} --now 60", code=OPEN)
    assert "Counted: 120 cases since 40.0." in watch(
        cases, options=f"{numbers} --since 40 --now 50"
    )
    told = refused(cases, f"{numbers}D --now 50")
    assert "--label-delay: the times of the log are numbers, so it needs a number" in told
    told = refused(cases, numbers)
    assert "--now must be a number, as the times of the log are, got '2024-01-16'" in told


# Which rows and labels count ----------------------------------------------------------------------


def test_of_two_labels_that_of_the_later_file_counts(cases, watch):
    wrong = flipped(cases)[:200]
    assert fold(wrong, cases) == fold(cases)
    assert fold(cases, wrong) == fold(pd.concat([wrong, cases[200:]])) != fold(cases)
    n = (wrong["truth"] != cases["truth"][:200]).sum()
    assert f" {n} cases with two labels, of which the later counts." in watch(
        cases, wrong, code=BROKEN
    )
    assert "two labels" not in watch(cases, cases)
    assert "600 rows that decide a case again" in watch(cases, cases)


def test_a_case_is_a_name_and_a_time(cases):
    few = cases.assign(id=[f"c{i % 12 + 10}" for i in range(600)])  # each name comes back
    assert fold(few) == fold(cases)


def test_waiting_cases_are_called_by_their_own_names(cases, watch):
    cases["id"] = [f"c{i % 500}" for i in range(600)]
    accepted = cases["score"] >= 7
    one, other = cases.index[accepted][[0, 40]]
    cases.loc[[one, other], "truth"] = None
    said = watch(cases, options="--label-delay 3D", code=OPEN)
    names = f"{cases['id'][one]!r}, {cases['id'][other]!r}"
    assert said.startswith("CANNOT GO ON: 2 overdue cases have no label. Target: at most 10 %")
    assert said.count(f"Overdue without a label: 2 cases, such as {names}: nothing decided") == 1
    assert f"have a label, but wait behind case {cases['id'][one]!r}, which has none" in said


def test_cases_before_the_beginning_do_not_count_and_are_counted_aloud(cases, watch):
    save_policy(created="2024-01-08T00:00:00+00:00")
    early = cases["decided"] < "2024-01-08"
    said = watch(cases)
    assert f"Counted: {600 - early.sum()} cases since 2024-01-08 00:00:00 (when the policy" in said
    assert f"Seen: {early.sum()} earlier cases, left out (see --since)." in said
    assert fold(cases) == fold(cases[~early])
    assert fold(cases, options="--since 2023-01-01") == in_python(
        AbstentionPolicy.from_json("policy.json"), cases, cases[["no", "yes"]]
    )
    nothing = watch(cases, options="--since 2024-01-16T00:00")
    assert nothing.startswith(
        "Counted: 0 cases since 2024-01-16 00:00:00. Seen: 600 earlier cases, left out (see "
        "--since).\nNOT TESTED."
    )
    assert "no outcome is known yet." in nothing


def test_names_of_a_column_that_turned_float_match(cases):
    numbers = cases.assign(id=range(100, 700))
    labels = numbers.assign(no=np.nan, yes=np.nan, id=numbers["id"].astype(float))
    unlabelled = numbers.assign(truth=pd.Series([None] * 600, dtype=str))
    assert fold(unlabelled, labels, kind="parquet") == fold(cases, kind="parquet")


def test_unlabelled_that_is_correct_is_counted_by_the_log_and_not_by_the_clock(cases, watch):
    cases["truth"] = cases["truth"].where(cases["truth"] != cases["said"])  # errors only
    options = "--label-delay 3D --unlabelled correct --max-age 9999D"
    said = watch(cases, options=options)
    accepted = cases["score"] >= 7
    ripe = accepted & (cases["decided"].max() - cases["decided"] > pd.Timedelta("3D"))
    waits = int(re.search(r"(\d+) answered cases are waiting", said)[1])
    assert 0 < waits <= accepted.sum() - ripe.sum()
    assert watch(cases, options=f"{options} --now 2025-01-01") == said
    later = cases[-1:].assign(id="last", decided=pd.Timestamp("2024-01-30"), no=None, yes=None)
    said = watch(cases, later, options=f"{options} --now 2024-01-31")
    assert "wait," not in said


# Labels that find no decision ---------------------------------------------------------------------


def decisions_and_labels(cases):
    """Return a table of decisions, and one of labels that were noted five hours later."""
    decisions = cases.drop(columns=["truth", "said", "score", "drawn", "chance"])
    labels = cases[["id", "decided", "truth"]].assign(no=None, yes=None)
    labels["decided"] += pd.Timedelta("5h")
    return decisions.assign(truth=None), labels


CORRECT = "--unlabelled correct --label-delay 1D --now 2024-01-20 --max-age 99D"


def test_a_label_of_another_time_finds_the_only_decision_of_its_name(cases, watch):
    decisions, labels = decisions_and_labels(flipped(cases))
    assert fold(decisions, labels) == fold(flipped(cases))
    said = watch(decisions, labels, options=CORRECT, code=BROKEN)
    assert "600 labels with another time than the only decision of their name." in said
    # A correction in a later row counts, whatever its time.
    later = labels.assign(truth=cases["truth"], decided=labels["decided"] - pd.Timedelta("9D"))
    assert fold(decisions, labels, later) == fold(cases)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda names: names + " ", "such as that of 'c000 ' at 2024-01-01 05:00:00: the nearest"),
        (str.upper, "the nearest name that was decided is 'c000'"),
        (lambda name: f"{name[:3]}-{name[3:]}", "the nearest name that was decided is 'c000'"),
        (lambda name: f"x{name}", "no name like it was decided"),
    ],
)
def test_a_broken_join_is_an_alarm_of_its_own(cases, watch, change, told):
    decisions, labels = decisions_and_labels(flipped(cases))
    labels["id"] = labels["id"].map(change)
    for options in (CORRECT, "--max-age 99D"):
        said = watch(decisions, labels, options=options, code=OPEN)
        assert said.startswith("LABELS WITHOUT DECISIONS: 600 labels of no decision, such as")
        assert told in said
        assert "Counted: 600 cases" in said


def test_a_few_labels_without_decisions_are_only_said(cases, watch):
    decisions, labels = decisions_and_labels(cases)
    labels.loc[:5, "id"] = "nobody"
    assert " 6 labels of no decision, such as that of 'nobody'" in watch(decisions, labels)
    labels.loc[:6, "id"] = "nobody"
    watch(decisions, labels, code=OPEN)
    some = labels[20:40].assign(id=[*labels["id"][20:37], "a", "b", "c"])
    assert "3 labels of no decision" in watch(decisions, some)


def test_a_name_that_was_decided_twice_needs_the_time_of_its_decision(cases, watch):
    cases["id"] = [f"c{i % 300}" for i in range(600)]
    decisions, labels = decisions_and_labels(cases)
    said = watch(decisions, labels, code=OPEN)
    assert "such as that of 'c0' at 2024-01-01 05:00:00: this name was decided 2 times, the" in said
    assert "the nearest at 2024-01-01 00:00:00." in said
    assert "300 cases of a name that was decided at another time, too." in said
    labels["decided"] -= pd.Timedelta("5h")
    assert fold(decisions, labels) == fold(cases)


def test_labels_of_undecided_cases_are_no_broken_join(cases, watch):
    cases.loc[:99, ["no", "yes"]] = None
    in_one_table = watch(cases)
    assert "100 cases without a probability, answer or confidence." in in_one_table
    assert "LABELS" not in in_one_table
    decisions, labels = decisions_and_labels(cases)
    labels["decided"] -= pd.Timedelta("5h")
    assert "LABELS" not in watch(decisions, labels)


def test_cases_that_suddenly_lack_decisions_are_said(cases, watch):
    cases.loc[550:, ["no", "yes"]] = None
    cases.loc[7, ["no", "yes"]] = None
    told = "Of the latest 100 cases 50 % have no probability, answer or confidence, of those before"
    assert told in watch(cases, options="--batch 100 --max-age 9D")
    spread = cases.sample(frac=1, random_state=0)
    spread["decided"] = cases["decided"].to_numpy()
    assert "Of the latest" not in watch(spread, options="--batch 100 --max-age 9D")
    assert "Of the latest 84 cases 59.52 %" in watch(cases, options="--batch 2D --max-age 9D")


def test_labels_of_other_classes_may_count_as_wrong(cases, watch, refused):
    accepted = cases["score"] >= 7
    cases.loc[cases.index[accepted][:5], "truth"] = "maybe"
    assert "must hold one of the classes" in refused(cases)
    wrong = cases.assign(
        truth=cases["truth"].mask(cases["truth"] == "maybe", flipped(cases)["said"])
    )
    wrong["truth"] = np.where(
        cases["truth"] == "maybe", np.where(cases["said"] == "yes", "no", "yes"), cases["truth"]
    )
    assert fold(cases, options="--other-labels wrong") == fold(wrong)
    assert "other_labels" not in watch(cases, options="--other-labels wrong")


# A table of months --------------------------------------------------------------------------------


def test_months_weeks_and_days_are_a_table_for_a_manager(cases, watch, run):
    expected = {"month": 1, "week": 3, "day": 15}
    for batch, n_rows in expected.items():
        watch(cases, options=f"--batch {batch} --html page.html")
        lines = run(BASE.format(log="log0.csv") + f"--batch {batch}").out.splitlines()
        head = next(k for k, line in enumerate(lines) if "left to a person" in line)
        assert len([line for line in lines[head + 1 :] if line.startswith("2024-")]) == n_rows
        assert "At most: an upper bound of each row by itself." in lines[-1]
        page = Path("page.html").read_text()
        assert page.count("<tr") == 1 + n_rows
        assert 'src="data:image/svg+xml;base64,' in page
        assert "NO BREACH FOUND" in page
        assert "http" not in page.replace("http-equiv", "")
    assert "left to a person" not in watch(cases)
    # What stands in no file is told all the same.
    said = watch(flipped(cases), options="--batch month --html page.html", code=BROKEN)
    assert "ALARM with case" in said
    assert "ALARM" in Path("page.html").read_text()
    watch(cases, options="--html page.html --since 2024-01-16")
    assert "0 cases" in Path("page.html").read_text()
    # A page that holds no verdict has not the colour of one.
    watch(cases, options="--html page.html --now 2024-03-01 --target 0.5", code=OPEN)
    page = Path("page.html").read_text()
    assert TONES["open"] in page
    assert TONES["good"] not in page


# A dead feed, and runs before ---------------------------------------------------------------------


def test_exit_codes(cases, watch, refused):
    unknown, delay = cases.assign(truth=None), "--label-delay 30D --max-age 99D"
    watch(unknown, options=delay)
    said = watch(unknown, options=f"{delay} --now 2024-03-01", code=OPEN)
    assert said.startswith("CANNOT GO ON: ")
    wrong = flipped(cases)
    assert watch(wrong, code=BROKEN).startswith("ALARM with case")
    stale = watch(wrong, options="--now 2024-06-01", code=BROKEN)
    assert stale.startswith("STALE: ")
    assert "\nALARM with case" in stale
    assert "has no rows" in refused(cases[:0])
    cases[:0].to_parquet("empty.parquet")
    assert call(BASE.format(log="empty.parquet")) == 2


def test_a_dead_feed_is_stale(cases, watch, refused):
    said = watch(cases, options="--now 2024-01-18T00:00", code=OPEN)
    assert said.startswith(
        "STALE: the newest decision of the log is of 2024-01-15 07:00:00, 2.708 days before now; "
        "at most 2 days are expected (--max-age). Whether the guarantee is kept now is not known; "
        "what follows was known then. Target: at most 10 %"
    )
    assert "No alarm so far." in said
    watch(cases, options="--now 2024-01-18T00:00 --max-age 3D")
    watch(cases, options="--now 2024-01-16 --max-age 12h", code=OPEN)
    weekdays = cases[cases["decided"].dt.day_of_week < 5]
    for now, code in (("2024-01-20T16:00", 0), ("2024-01-22T00:00", OPEN)):
        watch(weekdays, options=f"--now {now}", code=code)  # the longest gap has three days
    young = cases[cases["decided"] < "2024-01-04"]
    for now, code in (("2024-01-11", 0), ("2024-01-12", OPEN)):
        watch(young, options=f"--now {now}", code=code)
    # The clock counts where --now does not say the time.
    cases.to_csv("log.csv", index=False)
    assert call(BASE.format(log="log.csv").replace("--now 2024-01-16", "")) == OPEN
    assert "--max-age must be a span of time" in refused(cases, "--max-age soon")
    assert "--max-age: the times of the log are dates, so it needs a unit" in refused(
        cases, "--max-age 7"
    )


def stale(when, now):
    """Return whether the newest of some days, numbers with fractions, is too old by default."""
    return now * 86400e6 - np.max(when) * 86400e6 > usual_age(np.asarray(when) * 86400e6)


@pytest.mark.parametrize("seed", mostly_slow(range(60), quick=4))
def test_streams_with_weekly_gaps_are_never_stale_as_long_as_they_run(seed):
    rng = np.random.default_rng(seed)
    weekdays = rng.choice(7, rng.integers(1, 8), replace=False)
    days = [day for day in range(rng.integers(0, 7), 60) if day % 7 in weekdays]
    when = np.sort(np.concatenate([day + rng.random(rng.integers(1, 4)) for day in days]))
    # Between two rows the log is oldest just before the second one.
    assert not any(stale(when[:k], when[k] - 1e-9) for k in range(1, len(when)))
    last = when[-1]
    assert stale(when, last + 2 * 7 + 1e-6)  # no gap is longer than a week


def test_an_alarm_that_is_gone_stands_in_the_history(cases, watch, refused):
    history = "--history runs.csv"
    for log, code in ((cases, 0), (flipped(cases), BROKEN), (cases, BROKEN), (cases, BROKEN)):
        said = watch(log, options=history, code=code)
    when = SelectiveRiskMonitor(AbstentionPolicy.from_json("policy.json"), **WATCHED).update(
        flipped(cases)["truth"], cases[["no", "yes"]], ids=cases["id"], when=cases["decided"]
    ).status_.alarm_when  # fmt: skip
    assert said.startswith("ALARM on 2024-01-16 00:00:00, in runs.csv: the guarantee was broken")
    assert f"with a case of {when}. The log of today raises none" in said
    assert "What follows is that of today. Target: at most 10 % of " in said
    runs = pd.read_csv("runs.csv")
    assert runs["answer"].tolist() == ["ok", "alarm", "ok", "ok"]
    assert runs["since"].tolist() == ["2023-12-31 09:00:00"] * 4
    assert runs["alarm_when"].tolist()[1] == when
    watch(cases, options="--history new.csv")
    watch(cases, options="--history new.csv --now 2024-03-01T09:30:00.5", code=OPEN)
    new = pd.read_csv("new.csv")
    assert new["answer"].tolist() == ["ok", "stale"]
    assert new["run"].tolist() == ["2024-01-16 00:00:00", "2024-03-01 09:30:00"]
    Path("empty.csv").touch()
    watch(cases, options="--history empty.csv")
    assert "log.csv: name" not in refused(cases, "--history log0.csv")
    for name, words in {
        "log0.csv": "--history: log0.csv is no history of skselect monitor",
        "log.csv": "is read or written by this command already",
        "nowhere/h.csv": "--history: there is no folder 'nowhere'",
    }.items():
        assert words in refused(cases, f"--history {name}")


def test_a_history_says_what_may_not_change(cases, watch, refused):
    history = "--history runs.csv"
    watch(cases, options=history)
    saved = Path("runs.csv").read_text()
    for log, options, told in [
        (cases[:300], "--max-age 99D", "an earlier run counted 600 cases, this one 300"),
        (cases, "--since 2024-01-03", "the beginning was 2023-12-31 09:00:00 and is 2024-01-03 00"),
        (cases, "--target 0.5", "the target was 0.1 and is 0.5 now"),
        (cases, "--delta 0.2", "the alarm line was 20.0 and is 5.0 now"),
    ]:
        said = watch(log, options=f"{history} {options}", code=OPEN)
        assert said.startswith("THE HISTORY DOES NOT GO ON: in runs.csv ")
        assert told in said
        # It stays said, as long as the history goes on.
        watch(log, options=f"{history} {options}", code=OPEN)
        Path("runs.csv").write_text(saved)
    watch(cases, options=history)
    save_policy(threshold=0.8)
    assert "--history: runs.csv is the history of another policy" in refused(cases, history)


def test_a_torn_line_loses_no_alarm(cases, watch):
    history = "--history runs.csv"
    watch(cases, options=history)
    with Path("runs.csv").open("a") as file:
        file.write("2024-01-15 00:00:00,2023-12")
    watch(flipped(cases), options=history, code=BROKEN)
    said = watch(cases, options=history, code=BROKEN)
    assert said.startswith("ALARM on 2024-01-16 00:00:00, in runs.csv")
    assert "THE HISTORY DOES NOT GO ON: in runs.csv some lines are no runs (3)" in said
    # A line that an earlier version has written behind a torn one.
    lines = Path("runs.csv").read_text().splitlines()
    torn = [lines[0], lines[1], lines[2] + lines[3]]
    Path("torn.csv").write_text("\n".join(torn))
    assert watch(cases, options="--history torn.csv", code=BROKEN).startswith("ALARM on 2024-01-15")


def test_a_history_of_an_earlier_version_goes_on(cases, watch):
    Path("runs.csv").write_text(
        "run,since,cases,known,evidence,alarm_line,answer,alarm_when\n"
        "2024-01-10 00:00:00,2023-12-31 09:00:00,100,50,1.0,20.0,ok,\n"
    )
    watch(cases, options="--history runs.csv")
    assert pd.read_csv("runs.csv")["cases"].tolist() == [100, 600]


def test_an_alarm_is_told_whatever_becomes_of_the_history(cases, watch, run, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    for name in ("append", "read"):
        with monkeypatch.context() as patch:
            patch.setattr(History, name, fail)
            for log, code in ((flipped(cases), BROKEN), (cases, 2)):
                log.to_csv("log0.csv", index=False)
                told = run(BASE.format(log="log0.csv") + "--history runs.csv", code)
                assert ("ALARM with case" if code == BROKEN else "NO BREACH FOUND") in told.out
                assert "--history: runs.csv: No space left on device." in told.err
    assert not Path("runs.csv").exists()


def test_numbers_have_no_clock_unless_one_is_named(cases, watch, refused):
    save_policy(np.array([0, 1]))
    cases["truth"] = (cases["truth"] == "yes").astype(int)
    cases["decided"] = np.arange(600) // 12
    numbers = "--proba no yes --label-delay 1000"
    no_clock = "The times are numbers, which have no clock"
    base = BASE.replace("--now 2024-01-16", "")
    cases.to_csv("log.csv", index=False)
    assert no_clock in watch(cases, options=f"{numbers} --now 50")
    assert no_clock not in watch(cases, options=f"{numbers} --now 50 --max-age 3")
    said = watch(cases, options=f"{numbers} --now 60 --max-age 3", code=OPEN)
    assert said.startswith("STALE: the newest decision of the log is of 49.0, 11 before now; at")
    assert call(f"{base.format(log='log.csv')} {numbers} --max-age 3") == 2
    assert "--max-age: the times of the log are numbers" in refused(
        cases, f"{numbers} --now 50 --max-age 2D"
    )


def test_rows_without_a_decision_keep_no_log_fresh(cases, watch):
    later = cases[-60:].assign(no=None, yes=None)
    later["decided"] += pd.Timedelta("30D")
    later["id"] += "+"
    now = "--now 2024-02-15"
    assert watch(cases, later, options=now, code=OPEN).startswith("STALE: the newest decision")
    assert "2024-01-15 07:00:00, " in watch(cases, later, options=now, code=OPEN)
    nothing = cases.assign(no=None, yes=None)
    assert "STALE: no row of the log holds a decision." in watch(nothing, code=OPEN)


def test_an_outage_makes_no_log_wait_longer():
    daily = [*range(40), *range(84, 130)]
    assert not stale(daily, 130.9)
    assert stale(daily, 131.1)
    weekly = np.arange(0, 130, 7)
    assert not stale(weekly, weekly[-1] + 14)
    assert stale(weekly, weekly[-1] + 14.1)
    # The weekly log waits no longer after an outage of seven weeks.
    after_outage = [*range(0, 71, 7), *range(119, 150, 7)]
    assert stale(after_outage, 147 + 14.1)


@pytest.mark.parametrize("apart", [14, 30, 91, 365])
def test_batches_far_apart_may_be_half_as_late_again(apart):
    for n_batches in (2, 3, 12):
        batches = np.arange(n_batches) * apart
        assert not stale(batches, batches[-1] + 1.5 * apart)
        assert stale(batches, batches[-1] + 1.5 * apart + 0.1)


# Times --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ("%d.%m.%Y %H:%M", "--dayfirst"),
        ("%d/%m/%Y %H:%M:%S", "--dayfirst"),
        ("%d %b %Y %H:%M", "--time-format '%d %b %Y %H:%M'"),
        ("%Y%m%d%H", "--time-format %Y%m%d%H"),
        ("%Y-%m-%d %H:%M:%S UTC", ""),
        ("%Y-%m-%d %H:%M:%S,000", ""),
    ],
)
def test_dates_of_other_forms_mean_the_same(cases, written, options):
    texts = cases["decided"].dt.strftime(written)
    assert fold(cases.assign(decided=texts), options=options) == fold(cases)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_days_of_eight_digits_are_dates_or_refused(cases, kind, refused, refuse):
    days = cases["decided"].dt.strftime("%Y%m%d").astype(int)
    by_day = cases.assign(decided=cases["decided"].dt.floor("D"))
    options = "--time-format %Y%m%d"
    written = cases.assign(decided=days)
    assert fold(written, kind=kind, options=options) == fold(by_day, kind=kind)
    told = refused(written)
    assert 'Say --time-format "%Y%m%d" for dates, or write numbers as 20240101.0' in told
    cases.to_parquet("log.parquet")
    for option in (options, "--dayfirst"):
        told = refuse(f"{BASE.format(log='log.parquet')} {option}")
        assert "column 'decided' holds values of the type timestamp" in told


def test_times_with_and_without_a_zone_in_one_column(cases, watch):
    # Pandas 2 reads a text without a zone in the zone of the text before it.
    zoned = cases["decided"].dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata").map(str)
    texts = cases["decided"].map(str).where(np.arange(600) % 2 == 0, zoned)
    for kind in ("csv", "parquet"):
        assert fold(cases.assign(decided=texts), kind=kind) == fold(cases, kind=kind)
    last = cases["decided"].max()
    assert f"of {last}, " in watch(
        cases.assign(decided=texts), options="--now 2024-02-01", code=OPEN
    )


def test_dates_that_cannot_be_read_name_the_options(cases, refused):
    days_first = cases.assign(decided=cases["decided"].dt.strftime("%d.%m.%Y %H:%M"))
    told = refused(days_first)
    assert "'01.01.2024 00:00'" in told
    assert "or say --dayfirst, or --time-format" in told
    impossible = days_first.assign(decided="31.02.2024")
    assert "holds '31.02.2024'" in refused(impossible, "--dayfirst")
    american = cases.assign(decided="01/13/2024")
    assert "(or say --time-format)" in refused(american)
    both = "--dayfirst --time-format %d"
    assert "--dayfirst goes without --time-format" in refused(days_first, both)


def test_one_file_with_dates_and_one_with_numbers_are_refused(cases, refuse):
    cases.to_csv("dates.csv", index=False)
    cases.assign(decided=range(600)).to_csv("numbers.csv", index=False)
    told = refuse(BASE.format(log="dates.csv numbers.csv"))
    assert "--time: one file holds dates in this column, another one numbers" in told


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "named"), [
    ("--label-delay soon", "--label-delay"), ("--now soon", "--now"), ("--now 7", "--now"),
    ("--since 7", "--since"), ("--max-age 7", "--max-age"), ("--time truth", "'truth'"),
    ("--time when", "when"), ("--id nobody", "'nobody'"), ("--audited site", "'site'"),
    ("--audit-proba chance", "--audited"),
    ("--label-delay 10", "--label-delay: the times of the log are dates"),
])  # fmt: skip
def test_options_that_do_not_fit_are_named(cases, options, named, refused, refuse):
    cases["site"] = "a"
    assert named in refused(cases, options)
    begin = "monitor log.csv --policy policy.json --label truth --time decided"
    assert "required: --label-delay" in refuse(begin)
    assert "target is missing" in refuse(f"{begin} --label-delay 3D")


@pytest.mark.parametrize(("column", "value", "named"), [
    *(("truth", x, f"column 'truth' must hold one of .* holds {x!r}")
      for x in ("YES", "yes ", "maybe")),
    ("decided", "2099-01-01", "case 'c007' has 2099-01-01 00:00:00"),
    # Old versions of pandas know no date in the year 9999, and name it as none.
    ("decided", "9999-12-31T00:00:00", r"(c007' has|holds) '?9999-12-31"),
    ("decided", "2024-01-17T00:00:01", r"case 'c007' has 2024-01-17 00:00:01"),
    ("decided", "now", "holds 'now'"), ("decided", "Today ", "holds 'Today '"),
    ("id", None, "column 'id' has 1 missing values"),
])  # fmt: skip
def test_a_cell_that_does_not_fit_is_named(cases, column, value, named, refused):
    bad = cases.astype({"decided": str})
    bad.loc[7, column] = value
    assert re.search(named, refused(bad))


def test_a_date_of_another_time_zone_may_be_ahead(cases, watch, refused):
    watch(cases.assign(decided=cases["decided"].where(cases.index < 599, "2024-01-16 23:59")))
    assert "--id: log.csv has no column 'id'; name the column" in refused(cases.drop(columns="id"))
    Path("policy.json").write_text('{"damaged')
    assert "--policy: policy.json: This is not a policy file" in refused(cases)


# The promise --------------------------------------------------------------------------------------


def has_alarm(seed, risk, n=1500):
    """Tell whether the fold over one log of accepted cases, with a beginning, raises an alarm."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.7, 1, n)
    start = pd.Timestamp("2023-12-25")  # before the policy was made
    when = start + pd.to_timedelta(np.sort(rng.uniform(0, 21, n)), unit="D")
    label = np.where(rng.random(n) < risk, "no", "yes")
    log = pd.DataFrame({"id": rng.permutation(n), "decided": when, "no": 1 - p, "yes": p})
    log["truth"] = np.where(rng.random(n) < np.arange(n)[::-1] / 100, label, "")
    log.sample(frac=1, random_state=seed).to_parquet("log.parquet", index=False)
    code = call(f"{BASE.format(log='log.parquet')} --delta 0.05")
    assert code in (0, BROKEN)
    return code == BROKEN


def test_few_streams_at_the_target_and_all_far_above_it_raise_an_alarm():
    assert sum(has_alarm(seed, 0.1) for seed in range(10)) <= 3
    assert all(has_alarm(seed, 0.3) for seed in range(3))


@pytest.mark.slow
def test_false_alarms_of_the_fold_at_the_target():
    # Each case is wrong with the target as its risk, which is the tightest; one beginning.
    alarms = np.mean([has_alarm(seed, 0.1) for seed in range(1000)])
    assert alarms <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)
