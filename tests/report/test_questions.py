"""Answers in words: right at their level, and with the numbers behind them."""

import html
import re

import numpy as np
import pytest
from scipy.stats import binomtest

import skselect as sk
from skselect._lib.notebook import TONES, percent
from skselect.bounds._csr import run_csr_test
from skselect.metrics._evaluate import SPECS
from skselect.monitoring import detectable_risk
from skselect.report.questions import (
    assess_calibration,
    explain_metric,
    show_number,
    show_share,
    which_is_best,
)
from tests.refusals import check_refused

pytestmark = pytest.mark.usefixtures("no_pictures")


def answer(loss, confidence, **options):
    outcomes = sk.Outcomes(loss, confidence)
    return assess_calibration(outcomes, run_csr_test(outcomes, random_state=0).p_value, **options)


@pytest.mark.parametrize("shape", [(2, 2), (0.3, 0.3), (0.05, 2)])
def test_an_honest_confidence_is_rarely_called_miscalibrated(shape):
    rng, n_runs = np.random.default_rng(0), 200
    said = []
    for _ in range(n_runs):
        shortfall = 0.5 * rng.beta(*shape, 200)
        said.append(answer(rng.random(200) < shortfall, 1 - shortfall).verdict)
    assert said.count("no") / n_runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_runs)


def test_errors_near_certainty_are_counted():
    confidence = np.append(np.full(1547, 0.9999), np.full(453, 0.9))
    for n_wrong in (3, 2):
        loss = np.zeros(2000)
        loss[:n_wrong] = loss[1547:1592] = 1  # and a tenth of the others
        said = answer(loss, confidence).text
        assert "overconfident: of 1,547 rows" in said
        assert f"{n_wrong} were wrong, where it expects 0.15." in said
    loss[:2] = 0
    assert answer(loss, confidence).verdict == "yes"
    told = "its most confident answers are wrong more often than it expects (p-value 0.001)"
    assert told in answer(np.arange(900) % 5 == 0, np.full(900, 0.87)).text
    modest, wrong = np.full(2000, 0.7), np.zeros(2000)
    modest[:100], wrong[:3] = 1, 1
    said = answer(wrong, modest).text
    assert "underconfident: it claims 71.5 % on average and is right in 99.85 %; but near" in said
    assert "of 100 rows it was nearly certain of" in said


def test_a_wrong_mean_is_told_with_its_direction(rng):
    wrong = rng.random(2000) < 0.2
    right = f"on average and is right in {100 * np.mean(~wrong):.4g} %"
    for claimed, word in [(0.9, "over"), (0.7, "under")]:
        said = answer(wrong, np.full(2000, claimed)).text
        assert said.startswith(f"No, it is {word}confident: it claims {100 * claimed:g} % {right}")
    after = answer(wrong, np.full(2000, 0.7), state="after calibration").text
    assert after.endswith("see calibration_report.")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(55691.7, "55,690"), (-7e5, "-700,000"), (1234.56, "1235"), (0.0766, "0.0766"), (0, "0"),
     (1e15, "1e+15"), (float("inf"), "inf")],
)  # fmt: skip
def test_large_numbers_have_no_exponent(value, shown):
    assert show_number(value) == shown


def test_a_difference_that_cancels_out_is_found(rng):
    confidence = np.repeat([0.65, 0.85], 1500)
    wrong = rng.random(3000) < np.where(confidence > 0.8, 0.05, 0.45)
    assert answer(wrong, confidence, state="before calibration").text == (
        f"No: it claims 75 % on average and is right in {100 * np.mean(~wrong):.4g} %, but at some "
        "confidences it claims too much or too little."
    )


def test_yes_and_unclear_show_their_interval(rng):
    shortfall = rng.uniform(0, 0.5, 3000)
    wrong = rng.random(3000) < shortfall
    for n, verdict, start in [(3000, "yes", "Yes, as far as these 3,000 rows can tell: "),
                              (40, "unclear", "Cannot be told with 40 rows: ")]:  # fmt: skip
        found = answer(wrong[:n], 1 - shortfall[:n])
        low, high = binomtest(int(n - wrong[:n].sum()), n).proportion_ci(1 - 0.05 / 3, "exact")
        shown = re.search(r"interval ([\d.]+) % to ([\d.]+) %", found.text)
        assert (found.verdict, found.text[: len(start)]) == (verdict, start)
        assert float(shown[1]) == pytest.approx(100 * low, abs=0.01)
        assert float(shown[2]) == pytest.approx(100 * high, abs=0.01)
    assert answer([0], [0.9]).text.startswith("Cannot be told with 1 row: ")


def test_the_best_model_is_named_where_chance_is_ruled_out():
    best = {"model": "a", "estimate": 0.0123456, "tied_with_best": True}
    others = [best | {"model": "b", "tied_with_best": tied} for tied in (False, True, None)]
    start = "a has the smallest AUGRC (1.23 %), "
    assert which_is_best([best, others[0]]) == f"{start}by more than chance."
    for open_ in others[1:]:
        said = which_is_best([best, others[0], open_])
        assert said == f"Cannot be told with these rows: {start}but b could be as good."


def draw(rng, n, rate, *, in_order=False):
    """Return predictions of which this share is wrong, more often the less sure they are."""
    p = rng.uniform(0.5, 1, n)
    wrong = rng.random(n) < rate * (1 - p) / 0.25
    order = np.argsort(wrong, kind="stable") if in_order else np.arange(n)
    return sk.Predictions.from_proba(~wrong[order], p[order], labels=[False, True])


PLAIN = sk.AbstentionPolicy(classes=np.array([False, True]), threshold=0.8)


def verdict_on(policy, rows, **options):
    """Return the verdict of a report, which its text and its page show before all else."""
    report = sk.selective_report(None, rows, policy=policy, **options)
    (model,) = report.to_dict()["models"].values()
    said, verdict = model["verdict"]["text"].split("\n")[0], model["verdict"]["verdict"]
    text, page = (" ".join(shown.split()) for shown in (str(report), report.to_html()))
    assert text.index(said) < text.index("of the cases are answered")
    head, rest = re.fullmatch(r"([A-Z][A-Z ]+[A-Z])\W*(.*)", said).groups()
    card = html.unescape(page[page.index("skselect-card") :]).replace("\N{NO-BREAK SPACE}", " ")
    tone = {
        "confirmed": "good", "no_breach": "good", "certified": "good", "broken": "bad",
        "in_doubt": "doubt",
    }.get(verdict, "open")  # fmt: skip
    assert f"background:{TONES[tone]}" in card
    assert card.index(f">{head.upper()}</b>") < card.index(f">{rest[0].upper()}{rest[1:]}</p>")
    return verdict, said


def test_the_verdict_is_that_of_a_check(rng):
    policy = sk.select_threshold(draw(rng, 3000, 0.1), objective="risk", target=0.1).policy
    expected = {
        "confirmed": draw(rng, 3000, 0.05), "broken": draw(rng, 3000, 0.4),
        "not_tested": draw(rng, 20, 0.1), "no_breach": draw(rng, 300, 0.1),
        "in_doubt": sk.Predictions.from_proba(np.arange(100) >= 16, [0.9] * 100),
    }  # fmt: skip
    for verdict, rows in expected.items():
        check = sk.check_policy(policy, rows)
        assert check.verdict == verdict
        [guarantee] = check.guarantees
        found = guarantee.found.replace(percent(guarantee.value), show_share(guarantee.value))
        expected_text = check.summary.split("\n")[0].replace(guarantee.found, found)
        assert verdict_on(policy, rows) == (verdict, expected_text)
    assert verdict_on(PLAIN, draw(rng, 50, 0.1))[0] == "nothing"
    plain = sk.selective_report(None, draw(rng, 50, 0.1), threshold=0.8).to_dict()
    assert plain["models"]["model"]["verdict"] is None


def test_rows_that_chose_the_threshold_are_certified_or_test_nothing(rng):
    goal = {"objective": "risk", "target": 0.1}
    rows, site = draw(rng, 3000, 0.1), rng.choice(["east", "west"], 3000)
    found = sk.select_threshold(rows, **goal)
    verdict, said = verdict_on(found.policy, rows)
    assert verdict == "certified"
    assert said.startswith(f"CERTIFIED on these rows: {found.certificate.statement}. These rows")
    by_site = sk.select_threshold(rows, subgroups=site, **goal).policy
    verdict, said = verdict_on(by_site, rows, subgroups=site)
    assert (verdict, "2 guarantees, each about one subgroup" in said) == ("certified", True)
    rows = draw(rng, 3000, 0.1, in_order=True)
    with pytest.warns(UserWarning, match="The order of the rows matters"):
        in_order = sk.select_threshold(rows, **goal).policy
    assert verdict_on(in_order, rows)[0] == "not_tested"
    rows = draw(rng, 3000, 0.1)
    estimate = sk.select_threshold(
        rows, objective=sk.Risk(goal["target"], method="empirical")
    ).policy
    assert verdict_on(estimate, rows)[0] in ("not_tested", "nothing")


def test_audits_say_what_a_monitor_of_the_policy_would_notice(rng):
    rows = draw(rng, 3000, 0.05)
    policy = sk.select_threshold(rows, objective="risk", target=0.1).policy
    fresh = draw(rng, 1000, 0.05)
    report = sk.selective_report(None, fresh, policy=policy, audits=(2000, 0.05, 30.5))
    n = int(2000 * np.mean(policy.accepts(fresh.y_proba.max(axis=1))) * 0.05 * 59.5)
    least = 100 * detectable_risk(0.1, n)
    said, page = (" ".join(text.split()) for text in (str(report), report.to_html()))
    expected = (
        f"With 2,000 cases a day, 5 % of its answers audited and labels after 30.5 days, a monitor "
        f"gets {n:,} labelled answers within 90 days. If the risk is (.*) % or more from the first "
        "day, it raises an alarm by then with probability 80 %."
    )
    (found,) = re.findall(expected, said)
    assert float(found) == np.ceil(least)
    assert "a monitor gets" in page
    few = sk.selective_report(None, fresh, policy=policy, audits=(10, 0.01, 30))
    assert "within 90 days. They are too few to notice anything." in " ".join(str(few).split())


@pytest.mark.parametrize(
    "audits", [(1000, 0.02), 1000, "plan", (0, 0.02, 30), (1000, 2, 30), (1000, 0.02, 90)]
)
def test_a_plan_of_audits_is_checked(audits, rng):
    asked = {"policy": PLAIN, "audits": audits}
    check_refused("audits", lambda: sk.selective_report(None, draw(rng, 90, 0.1), **asked))


def test_audits_are_planned_for_one_risk_of_errors_only(rng):
    rows, site = draw(rng, 3000, 0.05), rng.choice(["east", "west"], 3000)
    by_site = sk.select_threshold(rows, objective="risk", target=0.1, subgroups=site).policy
    others = (sk.Coverage(0.5), sk.GeneralizedRisk(0.1), sk.Risk(0.1, given_prediction=True))
    found = [sk.select_threshold(rows, objective=objective).policy for objective in others]
    for policy in (None, PLAIN, by_site, *found):
        asked = {"policy": policy, "subgroups": site, "audits": (1000, 0.02, 30)}
        check_refused("audits", lambda a=asked: sk.selective_report(None, rows, **a))


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.meaning])
def test_what_a_metric_says_holds_its_value(name):
    said = explain_metric(SPECS[name], 0.0372)
    assert re.search(r"3\.72 %|3\.7 points|0\.0372", said)
    assert explain_metric(SPECS[name], np.nan).startswith("It has no value here")
    assert "{" not in said
    assert SPECS[name]


def test_only_all_is_shown_as_100_percent():
    shown = {1.0: "100 %", 0.99999: "99.9 %", 0.9731: "97.3 %", 0.5: "50 %", 1e-6: "0.0001 %"}
    assert {share: show_share(share) for share in shown} == shown
