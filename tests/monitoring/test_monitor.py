"""The monitor against a loop over cases; late labels, subgroups, audits, files."""

import datetime as dt
import json
import math
import pickle
import sys
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, strategies as st

from skselect import (
    AbstentionPolicy,
    Outcomes,
    Predictions,
    Risk,
    SelectiveRiskMonitor,
    certify,
    check_policy,
    select_threshold,
)
from skselect._lib.files import digest_json
from skselect._lib.notebook import TONES, VERDICTS, unwrap
from skselect.monitoring.evidence import ALTERNATIVES, Watched, bets_on_cases, risk_interval
from skselect.monitoring.history import Workload
from skselect.policy.policy import External
from skselect.policy.subgroups import GroupThresholds
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.decisions import DecisionRule
from tests.brute import examples
from tests.refusals import check_refused

CLASSES = np.array(["no", "yes"])
COSTS = np.array([[0.0, 1.0], [4.0, 0.0]])


SURE = [0.9, 0.1]


def policy_of(threshold=0.7, **options):
    return AbstentionPolicy(classes=CLASSES, threshold=threshold, **options)


def watching(policy=None, target=0.1, **options):
    return SelectiveRiskMonitor(policy_of() if policy is None else policy, target=target, **options)


def rows(rng, n=900, risk=0.1):
    """Return probabilities, and labels that contradict the likelier class at a rate of `risk`."""
    p = rng.random(n)
    y = np.where((p > 0.5) ^ (rng.random(n) < risk), "yes", "no")
    return np.column_stack([1 - p, p]), y


def alarm_by_definition(loss, target, delta):
    """Return the first case, counted from 1, at which the evidence reaches its line."""
    money = np.zeros(len(ALTERNATIVES))
    for t, x in enumerate(loss):
        money = (money + 500 / ((t + 500) * (t + 501))) * (
            1 + bets_on_cases(target).stakes * (x - target)
        )
        if money.mean() + 500 / (t + 501) >= 1 / delta:
            return t + 1
    return None


@pytest.mark.parametrize(("target", "costs"), [(0.1, None), (0.4, COSTS)])
def test_alarm_comes_where_a_loop_over_cases_has_it(rng, target, costs):
    P, y = rows(rng, 1000, risk=0.25)
    policy = policy_of(0.7, rule=DecisionRule("argmax", costs))
    monitor = watching(policy, target=target, delta=0.01, batch=250).update(y, P)
    accepted, unit = P.max(axis=1) >= 0.7, 1 if costs is None else 4
    lost = (1 - np.eye(2) if costs is None else costs)[
        np.searchsorted(CLASSES, y), P.argmax(axis=1)
    ]
    status, loss = monitor.status_, lost[accepted]
    assert status.alarm_at == alarm_by_definition(loss / unit, target / unit, 0.01)
    assert (status.risk, status.loss) == ("alarm", "zero_one" if costs is None else "cost")
    assert status.estimate == pytest.approx(loss.mean())
    assert (status.n_decided, status.n_accepted) == (1000, accepted.sum())
    number = np.flatnonzero(accepted)[status.alarm_at - 1]
    assert status.alarm_when == f"case {number + 1}"
    low, high = status.interval
    assert low < loss.mean() < high
    assert unwrap(str(status)).startswith(f"ALARM with case {status.alarm_at} ")
    assert "reset()" in str(status)
    frame = monitor.to_frame()
    for k in range(4):
        part = slice(250 * k, 250 * k + 250)
        assert frame["accepted"][k] == accepted[part].sum()
        assert frame["risk"][k] == pytest.approx(lost[part][accepted[part]].mean())
    fresh = watching(policy, target=target, delta=0.01, batch=250)
    assert monitor.reset().to_json() == fresh.to_json()
    assert monitor.to_frame().empty
    monitor.add_decisions(np.empty((0, 2)), ids=[]).add_labels([], [])
    assert monitor.status_.n_decided == 0
    for wrong in (unit, 0.0):
        check_refused("target", lambda w=wrong: watching(policy, target=w))


@examples(25)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 400), max_size=5))
def test_splits_of_cases_and_any_order_of_labels_change_no_bit(seed, cuts):
    rng = np.random.default_rng(seed)
    n = 400
    P, y = rows(rng, n, risk=0.15)
    site = rng.choice(["a", "b", "c"], n)
    groups = GroupThresholds("site", {"a": 0.6, "b": 0.7, "c": math.inf})
    policy = policy_of(
        math.inf, groups=groups, rule=DecisionRule("argmax", COSTS), coverage=0.6, n=500,
        confidence_quantiles={"0.25": 0.6, "0.5": 0.75},
    )  # fmt: skip
    audited, proba = rng.random(n) < 0.7, rng.uniform(0.3, 1, n)
    when = np.sort(rng.integers(0, 50, n)) * pd.Timedelta("6h") + pd.Timestamp("2024-01-01")
    options = {"target": 0.3, "batch": "1D", "min_audit_proba": 0.3}

    def feed(monitor, part):
        return monitor.add_decisions(
            P[part], ids=part, when=when[part], subgroups=site[part],
            audited=audited[part], audit_proba=proba[part],
        )  # fmt: skip

    whole = feed(SelectiveRiskMonitor(policy, **options), np.arange(n))
    whole.add_labels(np.arange(n), y, when="2024-02-01")
    pieces = SelectiveRiskMonitor(policy, **options)
    parts = np.split(np.arange(n), sorted(cuts))
    late = []
    for part in parts:
        feed(pieces, part)
        some = rng.permutation(part)
        here, later = some[: len(some) // 2], some[len(some) // 2 :]
        pieces.add_labels(here, y[here], when="2024-02-01")
        late.append(later)
        pieces = SelectiveRiskMonitor.from_json(pieces.to_json())
    for later in late[::-1]:
        pieces.add_labels(later, y[later], when="2024-02-01")
    assert pieces.to_json() == whole.to_json()
    pd.testing.assert_frame_equal(pieces.to_frame(), whole.to_frame())
    at_once = SelectiveRiskMonitor(policy, **options).update(
        y, P, ids=range(n), when=when, subgroups=site, audited=audited, audit_proba=proba
    )
    assert at_once.status_.guarantees == whole.status_.guarantees


def test_cases_enter_in_the_order_of_decisions_whenever_labels_come():
    monitor = watching().add_decisions([SURE] * 5, ids=list("abcde"))
    status = monitor.add_labels(["c", "b", "unknown"], ["yes", "no", "no"]).status_
    assert (status.n_known, status.n_waiting, status.n_other) == (0, 5, 1)
    assert status.waiting_since == "case 1"
    status = monitor.add_labels(["a"], ["no"]).status_
    assert (status.n_known, status.estimate) == (3, pytest.approx(1 / 3))
    status = monitor.add_labels(["a"], ["yes"]).status_  # it has entered
    assert status.estimate == pytest.approx(1 / 3)
    groups = GroupThresholds("site", {"a": 0.6, "b": 0.7})  # each subgroup has its own order
    monitor = watching(policy_of(math.inf, groups=groups))
    monitor.add_decisions([SURE] * 5, ids=list("vwxyz"), subgroups=list("abbaa"))
    assert monitor.add_labels(["y"], ["no"]).status_.blocked_by == "v"
    status = monitor.add_labels(["v", "x"], ["no", "no"]).status_
    assert (status.n_known, status.n_waiting, status.n_blocked) == (2, 3, 1)
    assert (status.blocked_by, status.n_overdue, status.overdue) == ("w", 0, ())


def test_unlabelled_counts_as_correct_at_the_age_that_was_said_and_not_before():
    monitor = watching(label_delay="10D", unlabelled="correct")
    when = ["2024-01-01", "2024-01-02", "2024-01-20"]
    monitor.add_decisions([SURE] * 3, ids=[1, 2, 3], when=when)
    assert monitor.status_.n_known == 0  # nobody has looked for labels yet
    monitor.add_labels([], [], when="2024-01-11")
    assert monitor.status_.n_known == 0  # the age itself is still in time
    status = monitor.add_labels(["2"], ["yes"], when="2024-01-12").status_
    assert (status.n_known, status.n_unlabelled, status.estimate) == (2, 1, 0.5)
    status = monitor.add_labels([3], ["yes"], when="2024-01-30 00:00:01").status_
    assert (status.n_known, status.n_unlabelled, status.n_other) == (3, 2, 1)
    assert "2 cases count as correct because no label arrived" in unwrap(str(status))


@examples(10)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 40))
def test_unlabelled_counts_the_same_however_often_one_looks(seed, step, later_step):
    rng = np.random.default_rng(seed)
    n, age = 150, 20
    when = np.sort(rng.integers(0, 120, n)).astype(float)
    wrong = rng.random(n) < 0.3
    delay = np.where(wrong, rng.integers(0, 30, n), rng.integers(10, 60, n))
    arrival = np.where(rng.random(n) < 0.7, when + delay, np.inf)

    def watched(step):
        monitor = SelectiveRiskMonitor(
            policy_of(), target=0.1, delta=0.2, label_delay=age, unlabelled="correct", batch=40
        )
        done, before = 0, -1
        for now in [*range(step, 200, step), 200]:
            new = int(np.searchsorted(when, now, side="right"))
            P = np.tile([0.9, 0.1], (new - done, 1))
            monitor.add_decisions(P, ids=range(done, new), when=when[done:new])
            told = np.flatnonzero((arrival > before) & (arrival <= now))
            told = told[np.argsort(arrival[told])]
            monitor.add_labels(told, np.where(wrong[told], "yes", "no"), when=arrival[told])
            monitor.add_labels([], [], when=now)
            done, before = new, now
        return monitor

    one, two = watched(step), watched(later_step)
    in_time = arrival - when <= age
    status = one.status_
    assert status.n_known == n
    assert status.n_unlabelled == np.sum(~in_time)
    assert status.alarm_at == alarm_by_definition(wrong & in_time, 0.1, 0.2)
    assert status.guarantees == two.status_.guarantees
    pd.testing.assert_frame_equal(one.to_frame(), two.to_frame())


def test_overdue_cases_are_named_where_no_label_means_nothing():
    cases = {"y_proba": [SURE] * 3, "ids": list("abc"), "when": [0, 5, 11]}
    status = watching(label_delay=10).add_decisions(**cases).add_labels(["b"], ["no"]).status_
    assert (status.n_waiting, status.n_overdue, status.waiting_since) == (3, 1, 0.0)
    assert (status.overdue, status.n_blocked, status.blocked_by) == (("a",), 1, "a")
    text = unwrap(str(status))
    assert text.startswith("CANNOT GO ON: 1 overdue case has no label. Target: at most ")
    assert text.count("'a'") == 2  # what it waits behind, and what is overdue
    assert "1 of them has a label, but waits behind case 'a', which has none." in text
    assert "Overdue without a label: 1 case, 'a': nothing decided after it counts until" in text
    trusting = watching(label_delay=10, unlabelled="correct").add_decisions(**cases)
    assert (trusting.status_.n_waiting, trusting.status_.n_overdue) == (3, 1)
    text = unwrap(str(trusting.status_))
    assert "it counts as correct as soon as labels are complete" in text


def test_one_case_is_spoken_of_as_one():
    monitor = watching(label_delay=10, unlabelled="correct")
    monitor.add_decisions([SURE], ids=["a"], when=0)
    text = unwrap(str(monitor.add_labels(["b"], ["no"], when=1).status_))
    assert "1 answered case is waiting, since 0." in text
    assert "1 further label did not count: its case does not wait, or nobody decided a" in text
    assert repr(monitor).endswith("0 cases of known outcome, 1 waits>")
    monitor.add_decisions([SURE], ids=["b"], when=11)
    assert "1 case, 'a': it counts as correct as soon as" in unwrap(str(monitor.status_))
    monitor.add_labels(["b"], ["no"], when=12)
    assert "1 case counts as correct because no label arrived." in unwrap(str(monitor.status_))


@pytest.mark.parametrize("label", ["maybe", "NO", "no "])
def test_labels_that_are_no_classes_are_refused_where_they_would_count(label):
    P = [SURE, [0.6, 0.4], SURE]  # the second is deferred
    monitor = watching().add_decisions(P, ids=list("abc"))
    before = monitor.to_json()
    check_refused("y", lambda: monitor.update(["no", None, label], P, ids=list("def")))
    check_refused("y", monitor.add_labels, ["a", "c"], ["no", label])
    assert monitor.to_json() == before
    monitor.add_labels(list("abc"), ["no", label, "no"])
    status = monitor.update(["no", label, "no"], P, ids=list("def")).status_
    assert (status.n_known, status.estimate) == (4, 0)


def test_labels_for_no_case_that_waits_are_counted_and_noticed(rng):
    names = [f"{i:03}" for i in range(30)]
    monitor = watching().add_decisions([SURE] * 30, ids=names)
    with pytest.warns(UserWarning, match="none of these 30 labels .* '0'; .* is called '000'"):
        monitor.add_labels(range(30), ["no"] * 30)
    assert monitor.status_.n_other == 30
    assert "30 further labels did not count: their cases do not wait" in unwrap(
        str(monitor.status_)
    )
    monitor.add_labels([3], ["no"])  # few labels may all be for cases that were deferred
    status = monitor.add_labels(names, ["no"] * 30).status_
    assert (status.n_known, status.n_other) == (30, 31)
    P, y = rows(rng, 50)
    monitor = watching().add_decisions(P, ids=range(50))
    n_accepted = np.sum(P.max(axis=1) >= 0.7)
    assert monitor.status_.n_waiting == n_accepted
    assert monitor.add_labels(range(50), y).status_.n_other == 50 - n_accepted


def test_a_table_may_lack_labels_of_cases_that_wait_or_were_deferred():
    P = [SURE, [0.6, 0.4], SURE, SURE]
    monitor = watching().update(["yes", None, np.nan, "no"], P, ids=list("abcd"))
    assert (monitor.status_.n_known, monitor.status_.n_waiting) == (1, 2)
    assert monitor.add_labels(["c"], ["no"]).status_.n_known == 3
    monitor = watching(AbstentionPolicy(classes=np.array([0, 1]), threshold=0.7))
    assert monitor.update([1, None, 0, 0], P).status_.estimate == pytest.approx(1 / 3)
    nullable = pd.Series([0, pd.NA, 0, 0], dtype="Int64")
    assert monitor.update(nullable, P).status_.estimate == pytest.approx(1 / 6)
    check_refused("ids", monitor.update, [0, 0, None, 0], P)


def test_only_drawn_cases_enter_weighed_by_their_chance():
    audits = {"audited": [True, True, False], "audit_proba": [0.2, 0.4, 1.0]}
    status = watching(min_audit_proba=0.2).update(["yes", "no", "no"], [SURE] * 3, **audits).status_
    assert (status.n_accepted, status.n_known, status.n_waiting) == (3, 2, 0)
    assert status.estimate == pytest.approx(1 / (1 + 0.5))
    stakes = bets_on_cases(0.1).stakes
    money = np.full(5, 500 / (500 * 501)) * (1 + stakes * 0.9)
    money = (money + 500 / (501 * 502)) * (1 - stakes * 0.5 * 0.1)
    assert status.evidence == pytest.approx(money.mean() + 500 / 502)


def guaranteeing(rng, **options):
    P, y = rows(rng, 3000, risk=0.01)
    table = Predictions.from_proba(y, P, labels=CLASSES)
    return select_threshold(table, objective="risk", target=0.05, delta=0.1, **options).policy


def test_target_and_delta_are_those_of_a_certificate_that_guarantees(rng):
    status = SelectiveRiskMonitor(guaranteeing(rng)).status_
    assert (status.worst.target, status.worst.delta) == (0.05, 0.1)
    status = watching(guaranteeing(rng), target=0.2).status_
    assert (status.worst.target, status.worst.delta) == (0.2, 0.05)
    P, y = rows(rng, 3000, risk=0.01)
    table = Predictions.from_proba(y, P, labels=CLASSES)
    measured, guaranteed = certify(policy_of(), table), certify(policy_of(), table, target=0.05)
    assert measured.guarantee == "measured"
    check_refused("target", SelectiveRiskMonitor, policy_of(certificate=measured))
    assert watching(policy_of(certificate=measured), target=0.05).status_.worst.target == 0.05
    assert SelectiveRiskMonitor(policy_of(certificate=guaranteed)).status_.worst.target == 0.05
    nobody = GroupThresholds("site", {"a": math.inf})
    check_refused("policy", watching, policy_of(math.inf, groups=nobody))


@pytest.mark.parametrize(
    ("given", "cases"), [("given_prediction", "answer"), ("given_class", "true class")]
)
def test_a_guarantee_about_one_class_is_not_watched_and_says_what_to_do(rng, given, cases):
    P, y = rows(rng, 3000, risk=0.01)
    table = Predictions.from_proba(y, P, labels=CLASSES)
    policy = select_threshold(table, objective=Risk(0.2, **{given: "yes"})).policy
    says = rf"policy: its .* about cases whose {cases} is 'yes', .* does not watch these alone\. "
    with pytest.raises(ValueError, match=f"{says}.*check_policy.*, or pass target= to watch all"):
        SelectiveRiskMonitor(policy)
    assert watching(policy, target=0.2).status_.worst.target == 0.2


def test_what_was_known_when_the_feed_died_is_no_verdict_on_today(rng):
    policy = guaranteeing(rng)
    P, y = rows(rng, 3000, risk=0.02)
    status = SelectiveRiskMonitor(policy).update(y, P).status_
    verdict, certified = "CONFIRMED. Guaranteed (", "The certificate stands."
    assert unwrap(status.tell()).startswith(verdict)
    assert certified in unwrap(status.tell())
    told = unwrap(status.tell("STALE."))
    assert told.startswith("STALE. Guaranteed (")
    assert certified not in told
    flipped = np.where(y == "yes", "no", "yes")
    status = SelectiveRiskMonitor(policy).update(flipped, P).status_
    told = unwrap(status.tell("STALE."))
    assert told.startswith("STALE.\nALARM with case ")
    line = f"it reached {status.worst.alarm_line:.4g}, the alarm line, with that case; now it is "
    number = told.split(line)[1].removeprefix("more than ").split()[0]
    shown = float(number.rstrip(".").replace(",", ""))
    assert shown == pytest.approx(min(status.evidence, 1000 * status.worst.alarm_line), rel=0.01)


def test_each_subgroup_has_its_own_monitor_at_its_share_of_delta(rng):
    site = np.repeat(["a", "b", "c"], 1000)
    policy = guaranteeing(rng, subgroups=site)
    assert [p.delta for p in SelectiveRiskMonitor(policy).status_.guarantees] == [0.1 / 3] * 3
    monitor = SelectiveRiskMonitor(policy, target=0.05, delta=0.06)
    P, y = rows(rng, 3000, risk=0.01)
    quiet = monitor.update(y[:100], P[:100], subgroups=site[:100]).status_
    nearest = (
        "NOT TESTED. Of 3 guarantees, this one is closest to an alarm. NOT TESTED. Target: at "
    )
    nearest += f"most 5 % of the answers to cases of subgroup {quiet.worst.group!r} are wrong. "
    assert unwrap(str(quiet)).startswith(nearest)
    y[site == "b"] = np.where(rng.random(1000) < 0.3, "no", y[site == "b"])
    status = monitor.reset().update(y, P, subgroups=site).status_
    by_group = {guarantee.group: guarantee for guarantee in status.guarantees}
    assert {guarantee.delta for guarantee in status.guarantees} == {0.02}
    assert [by_group[g].risk for g in "abc"] == ["ok", "alarm", "ok"]
    assert status.worst.group == "b"
    table = policy.decide(P, subgroups=site)
    for group in "abc":
        mine = table["accepted"].to_numpy() & (site == group)
        wrong = (table["suggestion"].to_numpy(dtype=object) != y)[mine]
        assert by_group[group].alarm_at == alarm_by_definition(wrong, 0.05, 0.02)
        assert by_group[group].n_known == mine.sum()
    frame = monitor.to_frame()
    assert {p.alarm_line for p in status.guarantees} == set(frame["alarm_line"])  # on one scale
    assert frame["evidence"].max() >= frame["alarm_line"].iloc[0] == pytest.approx(1 / 0.06)
    text = unwrap(str(status))
    assert "of the answers to cases of subgroup 'b' are wrong" in text
    assert "of the latest cases, all subgroups together" in text


@pytest.mark.parametrize(
    ("n", "risk", "verdict"),
    [(20, 0.0, "not_tested"), (300, 0.08, "no_breach"), (900, 0.13, "in_doubt"),
     (900, 0.2, "broken"), (900, 0.03, "confirmed")],
)  # fmt: skip
def test_the_word_is_that_of_a_check_of_the_outcomes_so_far(n, risk, verdict):
    wrong = np.arange(n) % round(1 / risk) == 0 if risk else np.zeros(n, dtype=bool)
    P, y = np.tile(SURE, (n, 1)), np.where(wrong, "yes", "no")
    policy = guaranteeing(np.random.default_rng(0))
    monitor = watching(policy, target=0.1).update(y, P)
    [one] = monitor.status_.guarantees
    check = check_policy(policy, Predictions.from_proba(y, P, labels=CLASSES), target=0.1)
    [same] = check.guarantees
    assert monitor.status_.verdict == one.verdict == verdict == check.verdict
    assert one.detectable == same.detectable
    if verdict != "broken":
        assert unwrap(str(monitor.status_)).startswith(
            f"{VERDICTS[verdict][0]}. Target: at most 10"
        )
    assert f"background:{TONES[VERDICTS[verdict][1]]}" in monitor._repr_html_()
    assert SelectiveRiskMonitor(policy).status_.worst.since == policy.certificate.since != ""


def test_weights_and_costs_are_counted_by_coins(rng):
    n = 20_000
    loss, weight = rng.choice([0.0, 0.25, 1.0], n), rng.uniform(0.2, 1, n)
    whole, parts = Watched(None, 0.5, 0.05), Watched(None, 0.5, 0.05)
    whole.bet(loss, weight, np.arange(n))
    for rows in np.array_split(np.arange(n), 7):
        parts.bet(loss[rows], weight[rows], rows)
    assert (whole.n_counted, whole.n_errors) == (parts.n_counted, parts.n_errors)
    assert whole.n_counted / n == pytest.approx(0.6, abs=0.02)
    assert whole.n_errors / whole.n_counted == pytest.approx(1.25 / 3, abs=0.02)


def test_changed_workload_is_a_warning_and_no_alarm(rng):
    policy = policy_of(
        0.7, coverage=0.6, n=5000, confidence_quantiles={"0.25": 0.625, "0.5": 0.75, "0.75": 0.875}
    )
    P, y = rows(rng, 10_000, risk=0)
    made = certify(policy, Predictions.from_proba(y[:90], P[:90], labels=CLASSES), target=0.3)
    stranger = SelectiveRiskMonitor(replace(policy, certificate=made))  # of other rows
    assert stranger.update(y, P).status_.workload == "unknown"
    policy = replace(policy, certificate=replace(made, fingerprints={}))
    monitor = SelectiveRiskMonitor(policy, batch=200)
    assert monitor.update(y, P).status_.workload == "ok"
    sure = np.clip(np.sign(P - 0.5) * 0.2 + P, 0, 1)
    with pytest.warns(UserWarning, match="of these 10,000 rows have a confidence below"):
        status = monitor.update(y, sure / sure.sum(axis=1, keepdims=True)).status_
    assert (status.workload, status.risk) == ("changed", "ok")
    assert "WARNING since case" in unwrap(str(status))
    assert watching().update(y, P).status_.workload == "unknown"


def test_state_does_not_grow_with_cases_that_have_entered(rng):
    monitor, sizes = watching(batch=10), []
    for _ in range(6):
        P, y = rows(rng, 6000)
        sizes.append(len(monitor.update(y, P).to_json()))
        assert len(monitor.to_frame()) <= 512
    assert sizes[-1] < 1.1 * max(sizes[:2])
    frame = monitor.to_frame()
    assert frame["decided"].sum() == 36_000
    assert frame["known"].sum() == monitor.status_.n_known
    days = pd.date_range("2024-03-01", periods=6000, freq="h", tz="Europe/Paris")
    by_day = watching(batch="7D").update(y, P, when=days).to_frame()
    assert by_day["decided"].sum() == 6000
    assert str(by_day["start"].dt.tz) == "UTC"


def test_file_goes_on_where_it_was_and_changes_are_noticed(tmp_path, rng):
    P, y = rows(rng)
    monitor = watching(label_delay=pd.Timedelta("30D"))
    assert "no outcome is known yet" in unwrap(str(monitor.status_))
    monitor.add_decisions(P, ids=range(900), when="2024-01-01").add_labels(range(300), y[:300])
    path = tmp_path / "state.json"
    monitor.to_json(path)
    restored = SelectiveRiskMonitor.from_json(path)
    assert restored.status_ == monitor.status_
    for one in (monitor, restored):
        one.add_labels(range(300, 900), y[300:])
    assert restored.to_json() == monitor.to_json()
    assert repr(monitor).startswith("<SelectiveRiskMonitor: ok, ")
    told = json.loads(json.dumps(monitor.status_.to_dict(), allow_nan=False))
    assert told["text"].startswith("NO BREACH FOUND. Target: at most 10 % of the answers")
    assert told["verdict"] == told["guarantees"][0]["verdict"] == "no_breach"
    assert "with probability 95 %. No alarm so far.\n" in unwrap(told["text"])
    stored = json.loads(path.read_text())
    for text, words in [
        *((json.dumps(stored | change), "changed after it was saved")
          for change in [{"waiting": {}}, {"guarantees": []}, {"counts": {"n_decided": 7}}]),
        ('{"schema": "skselect.policy"}', "no state of a monitor"),
        ("nowhere.json", "nowhere.json"),
    ]:  # fmt: skip
        check_refused(words, SelectiveRiskMonitor.from_json, text)


def test_waiting_cases_are_listed():
    when = pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-03"])
    P = [SURE, [0.6, 0.4], [0.1, 0.9], SURE]
    monitor = watching().update(["no", "no", None, None], P, ids=list("abcd"), when=when)
    waiting = monitor.add_labels(["d"], ["no"]).waiting_
    assert waiting[["id", "has_label"]].to_numpy().tolist() == [["c", False], ["d", True]]
    assert waiting["when"].tolist() == [pd.Timestamp("2026-01-03", tz="UTC")] * 2
    assert watching().add_decisions(P[:1], ids=[1], when=7).waiting_["when"].tolist() == [7.0]


def test_dates_are_read_in_one_way_only():
    def waiting_since(when):
        n = len(when)
        return watching().add_decisions([SURE] * n, ids=range(n), when=when).waiting_["when"]

    first = pd.Timestamp("2024-01-01", tz="UTC")
    mixed = [
        dt.datetime(2024, 1, 1), pd.Timestamp("2024-01-01T03:00", tz="Europe/Paris"),
        pd.Timestamp("2024-01-01T02:00:00.5"),
    ]  # fmt: skip
    texts = ["2024-01-01", "2024-01-01T03:00+01:00", "2024-01-01 02:00:00.5"]
    for when in (mixed, texts, pd.Series(texts, dtype="string")):
        seconds = waiting_since(when) - first
        assert seconds.dt.total_seconds().tolist() == [0, 7200, 7200.5]
    assert waiting_since([dt.date(2024, 1, 1)])[0] == first
    for numbers in (np.array([1, 2], dtype=object), pd.Series([1, 2], dtype="Int64")):
        assert waiting_since(numbers).tolist() == [1.0, 2.0]
    both = np.array(["2024-01-01", 5], dtype=object)
    for when in (["1/2/2024"], ["5"], [True], [pd.Timedelta("1D")], both):
        check_refused("when", waiting_since, when)


def test_names_are_told_apart_as_long_as_they_may_be_asked_for():
    one = {"y_proba": [SURE], "ids": ["a"]}
    monitor = watching().add_decisions(**one, when="2026-01-01").add_labels(["a"], ["no"])
    check_refused("ids", lambda: monitor.add_decisions(**one, when="2026-01-01"))  # the same row
    monitor.add_decisions(**one, when="2026-01-02").add_labels(["a"], ["yes"])
    assert monitor.status_.estimate == 0.5
    numbered = watching().add_decisions([SURE], ids=["#1"])
    check_refused("ids", numbered.update, ["no"], [SURE])  # would be called #1
    numbers = watching().add_decisions([SURE] * 2, ids=[7, 8])
    assert numbers.add_labels([8.0, 7.0], ["no", "no"]).status_.n_known == 2
    monitor = watching().add_decisions([SURE] * 2, ids=[1, 2])
    check_refused("'2'", monitor.add_labels, [2, 2], ["no", "yes"])
    monitor.add_labels([2, 2], ["no", "no"]).add_labels([2], ["yes"]).add_labels([1], ["no"])
    assert monitor.status_.estimate == 0.5  # the last counts
    assert monitor.add_labels([2], ["no"]).status_.estimate == 0.5  # it has entered


def test_answers_with_a_confidence_are_watched_as_probabilities_are(rng):
    P, y = rows(rng)
    answers, confidence = CLASSES[P.argmax(axis=1)], P.max(axis=1)
    by_answer = watching(policy_of(confidence=External("score")))
    by_answer.update(y, None, y_pred=answers, confidence=confidence)
    by_proba = watching().update(y, P)
    assert by_answer.status_ == by_proba.status_
    assert SelectiveRiskMonitor.from_json(by_answer.to_json()).status_ == by_proba.status_
    policy = policy_of(0.6, confidence="chosen_proba", rule=DecisionRule("estimator"))
    own = {"y_proba": [[0.3, 0.7], [0.2, 0.8]], "y_pred": ["yes", "yes"]}
    status = watching(policy).update(["yes", "no"], **own).status_
    assert (status.n_known, status.estimate) == (2, 0.5)


def test_a_learned_confidence_asks_its_auxiliary(rng):
    P, y = rows(rng)
    learned = LearnedScore(("logit", "age"), np.array([0.5, -1.0]), 0.5)
    policy, ids, age = policy_of(confidence=learned), np.arange(len(y)), rng.random(len(y))
    decided = policy.decide(P, auxiliary={"age": age})
    monitors = [SelectiveRiskMonitor(policy, target=0.1) for _ in range(3)]
    monitors[0].add_decisions(P, ids=ids, auxiliary={"age": age}).add_labels(ids, y)
    monitors[1].update(y, P, ids=ids, auxiliary={"age": age})
    monitors[2].update(
        y, None, ids=ids, y_pred=decided["suggestion"], confidence=decided["confidence"]
    )
    assert {one.status_.n_known for one in monitors} == {decided["accepted"].sum()}
    assert len({one.status_.evidence for one in monitors}) == 1
    answered = {"y_pred": ["no"], "confidence": [0.5], "auxiliary": {"age": [0]}}
    for proba, asked in ((P, {"ids": ids + 1000}), (None, {"ids": [-1]} | answered)):
        check_refused("auxiliary", lambda p=proba, a=asked: monitors[0].add_decisions(p, **a))


@pytest.fixture(scope="module")
def saved():
    """Return the state of a monitor, as it is saved."""
    about = select_threshold(Outcomes([0.0] * 50, np.ones(50)), objective="risk", target=0.2)
    certificate = replace(about.certificate, threshold=0.7, fingerprints={})
    policy = policy_of(coverage=0.5, n=100, certificate=certificate)
    monitor = watching(policy, label_delay=3)
    monitor.add_decisions([SURE] * 3, ids=list("abc"), when=[1, 2, 3]).add_labels(["a"], ["no"])
    return monitor.to_json()


@pytest.mark.parametrize("change", [
    ("policy", {}), ("options", "target", 7), ("guarantees", []), ("waiting", {}),
    ("waiting", "weight", []), ("waiting", "weight", [1.0]), ("waiting", "when", 0, "x"),
    ("counts", "n_decided", "7"),
    ("guarantees", 0, "evidence", "product", [1, 1]), ("guarantees", 0, "evidence", "n", None),
    ("guarantees", 0, "loss", "x"), ("history", 0, 0, {}), ("workload", "evidence", []),
    ("workload", "counts", [1]), ("workload", "changed", "x"), ("last_decided", "x"),
    ("kind", "x"),
], ids=str)  # fmt: skip
def test_files_with_a_true_digest_and_wrong_contents_are_refused(saved, change):
    *path, name, value = change
    stored = place = json.loads(saved)
    for key in path:
        place = place[key]
    place[name] = value
    stored["digest"] = digest_json(stored)
    check_refused("damaged", SelectiveRiskMonitor.from_json, json.dumps(stored))


@pytest.mark.parametrize(("version", "remedy"), [(4, "make it again"), (6, "update skselect")])
def test_other_format_versions_are_refused_with_one_sentence(saved, version, remedy):
    stored = json.loads(saved) | {"version": version}
    check_refused(remedy, SelectiveRiskMonitor.from_json, json.dumps(stored))


@pytest.mark.parametrize(("options", "argument"), [
    ({"target": None}, "target"), ({"target": 0}, "target"), ({"delta": 0.95}, "delta"),
    ({"unlabelled": "correct"}, "label_delay"), ({"unlabelled": "wrong"}, "unlabelled"),
    ({"label_delay": "30"}, "label_delay"), ({"label_delay": "soon"}, "label_delay"),
    ({"label_delay": -1}, "label_delay"), ({"label_delay": 3, "batch": "1D"}, "batch"),
    ({"batch": 0}, "batch"), ({"batch": 1.5}, "batch"),
    ({"min_audit_proba": 0}, "min_audit_proba"), ({"policy": "policy.json"}, "policy"),
], ids=str)  # fmt: skip
def test_bad_options_are_named(options, argument):
    check_refused(argument, lambda: watching(**options))


ANSWERED = {"y_proba": None, "confidence": [0.9]}


@pytest.mark.parametrize(("method", "given", "argument"), [
    *(("add_decisions", given, argument) for given, argument in [
        ({"ids": [7, 8]}, "ids"), ({"ids": [None]}, "ids"), ({"ids": ["a"]}, "ids"),
        ({"y_proba": [SURE] * 2, "ids": ["x", "x"]}, "ids"),
        ({"when": 1}, "when"), ({"when": None}, "when"), ({"when": "2024-01-01"}, "when"),
        ({"when": [5, 6]}, "when"), ({"when": math.nan}, "when"),
        ({"audit_proba": 0.5}, "audited"), ({"audited": [1]}, "audited"),
        ({"audited": [True], "audit_proba": 0.5}, "audit_proba"),
        ({"audited": [True], "audit_proba": "half"}, "audit_proba"),
        ({"confidence": [0.9]}, "y_pred"), (ANSWERED | {"y_pred": ["maybe"]}, "y_pred"),
        ({"subgroups": ["a"]}, "subgroups"), ({"y_proba": [[0.9, 0.2]]}, "y_proba"),
    ]),
    *(("add_labels", given, argument) for given, argument in [
        ({"y": [1]}, "y"), ({"y": []}, "y"), ({"y": [None]}, "y"),
        ({"when": "2024-01-01"}, "when"),
    ]),
    ("update", {"y_proba": [SURE] * 2}, "y"), ("update", {"y": [["no", "no"]]}, "y"),
], ids=str)  # fmt: skip
def test_bad_calls_are_named_and_change_nothing(method, given, argument):
    right = {
        "add_decisions": {"y_proba": [SURE], "ids": ["x"], "when": 5},
        "add_labels": {"ids": ["a"], "y": ["no"]},
        "update": {"y": ["no"], "y_proba": [SURE], "when": 5},
    }[method]
    monitor = watching().add_decisions([SURE], ids=["a"], when=2)
    before = monitor.to_json()
    check_refused(argument, lambda: getattr(monitor, method)(**(right | given)))
    assert monitor.to_json() == before


def test_threads_share_a_monitor_and_save_it_under_load(rng):
    P, y = rows(rng, 20)
    monitor = watching(batch=50)
    n_threads, n_calls, failed, saved = 4, 30, [], []

    def feed(thread):
        try:
            for call in range(n_calls):
                ids = [f"{thread}-{call}-{row}" for row in range(20)]
                monitor.add_decisions(P, ids=ids).add_labels(ids, y)
                str(monitor.status_)
                if call % 10 == thread:
                    saved.extend([monitor.to_json(), pickle.dumps(monitor)])
        except Exception as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=feed, args=(number,)) for number in range(n_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failed == []
    status = monitor.status_
    n_accepted = n_threads * n_calls * int((P.max(axis=1) >= 0.7).sum())
    assert (status.n_decided, status.n_known) == (n_threads * n_calls * 20, n_accepted)
    assert SelectiveRiskMonitor.from_json(monitor.to_json()).status_ == status
    for text in saved:
        load = SelectiveRiskMonitor.from_json if isinstance(text, str) else pickle.loads
        assert load(text).status_.n_decided % 20 == 0


def test_mean_risk_below_the_target_is_said_and_is_no_word_about_now(rng):
    P, y = rows(rng, 2000, risk=0.02)
    monitor = watching(label_delay=1, unlabelled="correct")
    times = np.arange(2000)
    monitor.update(y[:1000], P[:1000], ids=range(1000), when=times[:1000])
    status = monitor.status_
    assert status.is_below_so_far == (status.interval[1] < 0.1)
    assert status.to_dict()["is_below_so_far"] is True
    said = unwrap(str(status))
    assert "With 97.5 % confidence, however often you look, the mean risk so far is below" in said
    assert "that says nothing about the risk now" in said
    monitor.add_decisions(P[1000:], ids=times[1000:], when=times[1000:]).add_labels(
        [], [], when=3000
    )
    assert monitor.status_.interval[1] < 0.1
    assert not monitor.status_.is_below_so_far  # who was silent may have been wrong
    assert "below the target" not in unwrap(str(monitor.status_))


# False alarms at the target, and how soon a change is found ---------------------------------------


RUNS, N = 250, 4000


#: How often cases of confidences c from .8 to 1 are audited; wrong are 1 - c of them.
AUDITS = {
    "uniform": lambda c: np.full(N, 0.2),
    "doubtful often": lambda c: 0.1 + 4 * (1 - c),
    "sure often": lambda c: 0.1 + 4 * (c - 0.8),
}


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.05, 0.2])
@pytest.mark.parametrize("case", [0.01, 0.02, 0.05, 0.1, 0.3, *AUDITS])
def test_false_alarms_at_the_target_of_all_cases_and_of_audited_ones(case, delta):
    alarms, is_audit = 0, case in AUDITS
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        c = rng.uniform(0.8, 1.0, N) if is_audit else np.full(N, 0.9)
        y = np.where(rng.random(N) < (1 - c if is_audit else case), "yes", "no")
        options, audits = {} if is_audit else {"target": case}, {}
        if is_audit:
            chance = AUDITS[case](c)
            options["min_audit_proba"] = 0.2 if case == "uniform" else 0.1
            audits = {"audited": rng.random(N) < chance, "audit_proba": chance}
        monitor = watching(delta=delta, **options)
        alarms += monitor.update(y, np.column_stack([c, 1 - c]), **audits).status_.risk == "alarm"
    assert alarms / RUNS <= delta + 3 * np.sqrt(delta * (1 - delta) / RUNS)


def batches_until_warning(rng, shift, most):
    """Tune on confidences, and watch later ones, whose days differ by chance, moved by `shift`."""
    tuned = rng.random(2000)
    quantiles = {f"{q}": float(np.quantile(tuned, q)) for q in (0.05, 0.25, 0.5, 0.75)}
    about = select_threshold(Outcomes(np.zeros(50), tuned[:50]), objective="risk", target=0.2)
    certificate = replace(about.certificate, threshold=0.3, fingerprints={})
    workload = Workload.of_policy(
        policy_of(0.3, coverage=float(np.mean(tuned >= 0.3)), n=2000,
               confidence_quantiles=quantiles, certificate=certificate)
    )  # fmt: skip
    for day in range(most):
        confidence = rng.random(100) + shift + 0.03 * rng.normal()
        workload.count(confidence >= 0.3, confidence)
        workload.close(0.05, day)
        if workload.changed is not None:
            return day + 1
    return np.inf


@pytest.mark.slow
def test_warning_is_rare_without_and_comes_with_another_workload():
    runs = [np.random.default_rng(seed) for seed in range(100)]
    # What is known of the rows that tuned it fails with a chance of at most .5 % a share, of 8.
    limit = 0.05 + 8 * 0.005
    false = np.mean([np.isfinite(batches_until_warning(rng, 0.0, 200)) for rng in runs])
    assert false <= limit + 3 * np.sqrt(limit * (1 - limit) / 100)
    assert np.median([batches_until_warning(rng, -0.1, 200) for rng in runs[:30]]) <= 60
    assert np.median([batches_until_warning(rng, 0.1, 200) for rng in runs[:30]]) <= 60


@pytest.mark.slow
def test_interval_holds_at_all_times_while_the_risk_moves():
    missed, runs, n = 0, 200, 3000
    looks = np.unique(np.geomspace(1, n, 60).astype(int))
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        risk = 0.1 + 0.08 * np.sin(np.arange(n) / 300)
        total, mean = np.cumsum(rng.random(n) < risk), np.cumsum(risk)
        for k in looks:
            low, high = risk_interval(float(total[k - 1]), float(k), 0.1)
            if not low <= mean[k - 1] / k <= high:
                missed += 1
                break
    assert missed / runs <= 0.1 + 3 * np.sqrt(0.09 / runs)


@pytest.mark.slow
@pytest.mark.parametrize("start", [0.1, 0.3])
def test_mean_risk_is_rarely_said_to_be_below_where_it_is_not(start):
    # The null is a mean risk so far at the target or above; a risk at the target is the tightest.
    runs, n, target, delta = 600, 3000, 0.1, 0.1
    rng = np.random.default_rng(int(100 * start))
    risk = np.where(np.arange(n) < 200, start, target)
    total, seen = np.cumsum(rng.random((runs, n)) < risk, axis=1), np.arange(1, n + 1)
    exponents = np.geomspace(0.001, 5.0, 20)
    # By definition, at each case: the upper end is below the target if that mean is ruled out.
    bets = (np.exp(-e * total - seen * np.log1p(target * np.expm1(-e))) for e in exponents)
    wealth = sum(bets) / len(exponents)
    is_below = wealth > 2 / delta
    wrong = np.mean(is_below.any(axis=1))
    assert wrong <= delta / 2 + 3 * np.sqrt(delta / 2 / runs)
    for run in range(0, runs, 60):
        k = int(np.argmax(wealth[run])) + 1
        found = risk_interval(float(total[run, k - 1]), float(k), delta)[1] < target
        assert found == is_below[run, k - 1]


def test_names_and_times_let_no_case_count_twice(rng):
    P, y = rows(rng, 300)
    names = np.arange(300)
    days = pd.date_range("2026-01-01", periods=300, freq="h")
    monitor = watching().add_decisions(P[:200], ids=names[:200], when=days[:200])
    check_refused("when", lambda: monitor.add_decisions(P, ids=names, when=days))
    monitor.add_labels(names[:200], y[:200])
    check_refused("when", lambda: monitor.add_decisions(P, ids=names, when=days))
    # The case of the last instant has entered, and its name is known all the same.
    check_refused("ids", lambda: monitor.update(y[199:], P[199:], ids=names[199:], when=days[199:]))
    assert monitor.status_.n_decided == 200
    waiting = watching().add_decisions(P, ids=names)
    check_refused("ids", lambda: waiting.add_decisions(P, ids=names))


# Days, weeks, months ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "form"), [("day", "%Y-%m-%d"), ("week", "%G-W%V"), ("month", "%Y-%m")]
)
def test_batches_of_the_calendar(rng, batch, form):
    P, y = rows(rng, 1000, risk=0.05)
    days = pd.Series(pd.date_range("2024-12-20", "2025-03-10", periods=1000))
    monitor = watching(batch=batch)
    for part in np.array_split(np.arange(1000), 7):
        monitor.update(y[part], P[part], when=days[part])
    names = days.dt.strftime(form)
    accepted = pd.Series(P.max(axis=1) >= 0.7)
    wrong = accepted & (CLASSES[P.argmax(axis=1)] != y)
    expected = pd.DataFrame({"n": accepted.groupby(names).size(),
                             "accepted": accepted.groupby(names).sum(),
                             "wrong": wrong.groupby(names).sum()})  # fmt: skip
    frame = monitor.to_frame()
    table = monitor.table()
    assert table.index.tolist() == expected.index.tolist()
    assert frame["decided"].tolist() == expected["n"].tolist()
    assert frame["accepted"].tolist() == expected["accepted"].tolist()
    assert frame["wrong"].fillna(0).tolist() == expected["wrong"].tolist()
    for k, row in enumerate(expected.itertuples()):
        if row.accepted:
            bound = 1.0 if row.wrong == row.accepted else scipy.stats.beta.ppf(
                0.95, row.wrong + 1, row.accepted - row.wrong
            )  # fmt: skip
            assert frame["bound"][k] == pytest.approx(bound)
            assert table["wrong"].iloc[k].startswith(f"{row.wrong} of {row.accepted} (")
        assert table["left to a person"].iloc[k] == str(row.n - row.accepted)
    again = SelectiveRiskMonitor.from_json(monitor.to_json())
    pd.testing.assert_frame_equal(again.table(), table)
    assert "<table" in monitor._repr_html_()
    assert "<table" not in watching()._repr_html_()


def test_a_table_says_what_is_not_known(rng):
    P, y = rows(rng, 200)
    days = pd.date_range("2026-01-01", periods=200, freq="D")
    waiting = watching(batch="month").add_decisions(P, ids=range(200), when=days).table()
    assert waiting["wrong"].tolist() == ["no outcome yet"] * len(waiting)
    assert waiting["at most"].tolist() == [""] * len(waiting)
    costs = watching(policy_of(rule=DecisionRule("argmax", COSTS)), target=0.4, batch="month")
    table = costs.update(y, P, when=days).table()
    assert "mean cost" in table
    assert costs.to_frame()["wrong"].isna().all()
    audited = watching(batch="month", min_audit_proba=0.5)
    audited.update(y, P, when=days, audited=rng.random(200) < 0.5)
    frame = audited.to_frame()
    assert frame["wrong"].isna().all()
    assert (frame["bound"] >= frame["risk"]).all()


@pytest.mark.parametrize("batch", ["year", "months", "Month", 0, "0D", True])
def test_other_batches_are_refused(batch):
    check_refused("batch", lambda: watching(batch=batch))


def test_numbers_of_an_answer_can_be_read(rng):
    one = watching().update(["no"], [SURE]).status_
    assert "in 1 case of known outcome" in unwrap(str(one))
    assert "would have been found" not in unwrap(str(one))
    P, y = rows(rng, 3000, risk=0.9)
    broken = watching().update(y, P)
    assert "now it is more than 20,000." in unwrap(str(broken.status_))
    assert "e+" not in broken._repr_html_()


def test_labels_of_other_classes_are_wrong_where_that_is_said(rng):
    P, y = rows(rng, 50)
    y = y.astype(object)
    accepted = np.flatnonzero(P.max(axis=1) >= 0.7)
    y[accepted[:3]] = "maybe"
    check_refused("y", lambda: watching().update(y, P))
    answers = CLASSES[P.argmax(axis=1)]
    n_wrong = np.sum(answers[accepted] != y[accepted])
    for monitor in (
        watching(other_labels="wrong").update(y, P),
        watching(other_labels="wrong").add_decisions(P, ids=range(50)).add_labels(range(50), y),
    ):
        assert monitor.status_.estimate == pytest.approx(n_wrong / len(accepted))
    again = SelectiveRiskMonitor.from_json(watching(other_labels="wrong").to_json())
    assert again.other_labels == "wrong"
    costs = watching(policy_of(rule=DecisionRule("argmax", COSTS)), 0.4, other_labels="wrong")
    costs.update(["maybe"], [SURE])
    assert costs.status_.estimate == 4.0
