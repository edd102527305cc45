"""The first page: three numbers, one picture, and costs where there are any."""

import re

import numpy as np
import pytest

import skselect as sk
from skselect import Predictions, selective_report
from skselect._lib.notebook import unwrap
from skselect.report.glance import draw, make_bars, make_figures

COSTS = np.array([[0.0, 1.0], [5.0, 0.0]])
LABELS = ["no", "yes"]


def draw_rows(seed, n=1500, **options):
    """Return predictions whose confidence is about right."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.4, 0.4, n)
    y = np.where(rng.random(n) < p, "yes", "no")
    return Predictions.from_proba(y, np.column_stack([1 - p, p]), labels=LABELS, **options)


def with_costs(seed, **options):
    return draw_rows(seed, decision="min_cost", cost_matrix=COSTS, **options)


def model_of(report):
    [model] = report.to_dict()["models"].values()
    return model


@pytest.fixture(scope="module")
def costly():
    policy = sk.select_threshold(with_costs(0), objective=sk.Coverage(0.7)).policy
    rows = with_costs(1)
    return rows, policy, selective_report(rows, policy=policy)


def test_the_three_numbers_add_up_to_all_cases():
    rows = draw_rows(0)
    report = selective_report(rows, threshold=0.8)
    accepted = rows.y_proba.max(axis=1) >= 0.8
    right = rows.y_true == rows.y_pred
    answered, wrong, waiting = make_figures(model_of(report), 0.95)
    n = np.sum(accepted)
    assert answered.value == f"{100 * np.mean(accepted):.3g} %"
    assert answered.detail == f"{n:,} of 1,500"
    assert wrong.value == f"{100 * np.mean(~right[accepted]):.3g} %"
    assert wrong.detail.startswith(f"{np.sum(accepted & ~right)} of {n:,}; 95 % interval ")
    assert wrong.detail.endswith("nothing is guaranteed")
    assert waiting.value == f"{1500 - n:,}"
    assert waiting.detail == f"in {np.sum(~accepted & right)} of them its answer was right"
    text = unwrap(str(report))
    page = report.to_html().replace("\N{NO-BREAK SPACE}", " ")
    for figure in (answered, wrong, waiting):
        assert f"\n{figure}\n" in text
        assert f"<b>{figure.value}</b><p>{figure.label}</p>" in page
        assert figure.detail in page


@pytest.mark.parametrize("threshold", [None, np.inf, 0.0])
def test_all_or_nothing_is_answered(threshold):
    answered, wrong, waiting = make_figures(
        model_of(selective_report(draw_rows(0), threshold=threshold)), 0.95
    )
    if threshold == np.inf:
        assert (answered.value, wrong.value, waiting.value) == ("0 %", "None", "1,500")
    else:
        assert (answered.value, waiting.value) == ("100 %", "0")
    assert ("guaranteed" in wrong.detail) == (threshold is not None)


@pytest.mark.parametrize(
    ("objective", "coverage", "risk"),
    [
        (sk.Risk(0.2), "", "guaranteed: at most 20 %"),
        (sk.Coverage(0.5), "guaranteed: at least 50 %", "no limit is guaranteed"),
        (sk.GeneralizedRisk(0.1), "", "guaranteed: "),
        ([sk.Risk(0.2), sk.Coverage(0.2)], "guaranteed: at least 20 %", "guaranteed: at most 20 %"),
        (sk.Cost(0.2), "", "nothing is guaranteed"),
    ],
)
def test_what_is_guaranteed_stands_beside_its_number(objective, coverage, risk):
    policy = sk.select_threshold(draw_rows(0, 3000), objective=objective).policy
    model = model_of(selective_report(draw_rows(1), policy=policy))
    assert model["guarantee"]["coverage"] == coverage
    assert model["guarantee"]["risk"].startswith(risk)


def test_no_number_stands_in_two_roundings():
    policy = sk.select_threshold(draw_rows(0, 3000), objective=sk.Risk(0.2)).policy
    report = selective_report(draw_rows(1), policy=policy)
    decided = model_of(report)["decisions"]
    page = report.to_html(interactive=True).replace("\N{NO-BREAK SPACE}", " ")
    start = page[: page.index("<details>")]
    found = set(re.findall(r"(?<![\d.])[\d.]+(?= %)", start))
    for share in (decided["coverage"], decided["risk"]):
        near = {x for x in found if float(x) == pytest.approx(100 * share, rel=2e-3)}
        assert near == {f"{100 * share:.3g}"}


@pytest.mark.parametrize("threshold", [0.8, 0.6180339887])
def test_a_threshold_has_the_digits_that_decide_something(threshold):
    page = selective_report(draw_rows(0), threshold=threshold).to_html(interactive=True)
    shown = re.search(r"<output[^>]*>([\d.]+)</output>", page)[1]
    confidence = draw_rows(0).y_proba.max(axis=1)
    assert np.array_equal(confidence >= float(shown), confidence >= threshold)
    assert len(shown) <= 6


def test_the_picture_shows_the_shares():
    report = selective_report(draw_rows(0), threshold=0.8)
    model = model_of(report)
    always, decided = make_bars(model)
    assert dict(always.parts)["wrong"] == pytest.approx(model["n_errors"] / 1500)
    shares = dict(decided.parts)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["person"] == pytest.approx(1 - model["decisions"]["coverage"])
    picture = draw([always, decided])
    assert [len(line["parts"]) for line in picture["lines"]] == [2, 3]
    assert len(make_bars(model_of(selective_report(draw_rows(0))))) == 1


def test_titles_come_from_the_rows():
    assert str(selective_report(draw_rows(0))).startswith("1,500 cases: no or yes\n")
    numbers = selective_report([0, 1, 1], [0.2, 0.7, 0.4])
    assert str(numbers).startswith("3 cases: class 0 or 1\n")
    titles = {
        (-1, 1): ": class -1 or 1", (False, True): ": False or True", ("", "x"): ": class  or x",
        (0.5, 1.5): ": class 0.5 or 1.5", ("ß", "é"): ": ß or é",
        ("a" * 50, "b" * 50): " of 2 classes",
    }  # fmt: skip
    for labels, expected in titles.items():
        y = np.array(labels, dtype=object if isinstance(labels[0], str) else None)[[0, 1, 1]]
        report = selective_report(y, [0.2, 0.7, 0.4], pos_label=y[1])
        assert str(report).startswith(f"3 cases{expected}\n")
    classes = np.arange(200)
    many = selective_report(classes, np.eye(200) * 0.9 + 0.1 / 200)
    lines = unwrap(str(many)).split("\n")
    assert lines[0] == "200 cases of 200 classes"
    assert "class 9: 1, and 190 more)" in lines[3]
    mine = selective_report(draw_rows(0), title="<Mine>")
    assert str(mine).startswith("<Mine>\n")
    assert "<title>&lt;Mine&gt;</title>" in mine.to_html()


def test_many_guarantees_are_folded():
    site = np.arange(3000) % 3
    policy = sk.select_threshold(draw_rows(0, 3000), objective=sk.Risk(0.2), subgroups=site).policy
    report = selective_report(draw_rows(1, 3000), policy=policy, subgroups=site)
    page = report.to_html().replace("\N{NO-BREAK SPACE}", " ")
    card, folded = page[page.index("skselect-card") :].split("<summary>", 1)
    assert "3 guarantees (" in card
    assert "subgroup 0" not in card
    assert folded.startswith("Each of the 3 guarantees</summary>")
    for line in model_of(report)["verdict"]["text"].split("\n")[1:4]:
        assert f"<p>{line}</p>" in folded


# Costs --------------------------------------------------------------------------------------------


def test_costs_are_summed(costly):
    rows, policy, report = costly
    costs = COSTS[rows.y_true, rows.y_pred]
    decided = policy.decide(rows.y_proba)
    accepted = decided["accepted"].to_numpy()
    model = model_of(report)
    assert model["costs"]["always"] == pytest.approx(costs.sum())
    assert model["costs"]["answered"] == pytest.approx(costs[accepted].sum())
    assert model["costs"]["together"] is None
    _, figure, _ = make_figures(model, 0.95)
    assert float(figure.value.replace(",", "")) == pytest.approx(
        1000 * costs[accepted].sum() / 1500, rel=5e-3
    )
    text = unwrap(str(report))
    assert f"Wrong answers cost {costs.sum():,.0f} in all if it always answers" in text
    assert report.to_html().count('class="wrong"') == 2
    assert model_of(selective_report(draw_rows(1)))["costs"] is None


def test_the_reviewer_has_costs_too(costly):
    _, policy, _ = costly
    person = np.where(np.arange(1500) % 20 == 0, "yes", "no")
    rows = with_costs(1, reviewer=person)
    model = model_of(selective_report(rows, policy=policy))
    accepted = policy.decide(rows.y_proba)["accepted"].to_numpy()
    answers = np.where(accepted, rows.y_pred, person == "yes")
    assert model["costs"]["together"] == pytest.approx(COSTS[rows.y_true, answers].sum())


def test_limits_of_the_mean_cost_replace_shares_of_errors(costly):
    rows, policy, report = costly
    workload = model_of(report)["workload"]
    assert workload["in_costs"]
    confidence = policy.decide(rows.y_proba)["confidence"].to_numpy()
    costs = COSTS[rows.y_true, rows.y_pred]
    for point in workload["targets"]:
        sets = [confidence >= t for t in np.unique(confidence)]
        kept = [s for s in sets if costs[s].mean() <= point["target"] + 1e-9]
        share = max((s.mean() for s in kept), default=0.0)
        assert point["deferred"] == pytest.approx(1000 * (1 - share))
        if kept:
            largest = max(kept, key=np.sum)
            assert point["errors_cost"] == pytest.approx(1000 * costs[largest].sum() / 1500)
    assert "What does a limit on the cost take?" in str(report)
    assert "What does a risk target cost?" not in str(report)


def test_costlier_errors_come_first(costly):
    _, _, report = costly
    errors = model_of(report)["errors"]
    assert [error["cost"] for error in errors] == [5.0] * 10
    assert all(error["accepted"] for error in errors)
    assert "\nCostliest errors\n" in str(report)
    assert "Most confident errors" in str(selective_report(draw_rows(1)))


def test_calibration_is_compared_on_the_answers_of_the_policy():
    """Costs and calibration change the answers; the share of right ones is of the same."""
    from sklearn.datasets import make_classification
    from sklearn.naive_bayes import GaussianNB

    X, y = make_classification(1200, 8, flip_y=0.1, random_state=0)
    model = sk.SelectiveClassifier(
        GaussianNB(), decision="min_cost", cost_matrix=COSTS, calibration="platt", threshold=0.6
    ).fit(X[:600], y[:600])
    raw = model.raw_scores(X[600:])
    before, after = model_of(selective_report(y[600:], raw, policy=model.policy_))["calibration"]
    assert before["accuracy"] == after["accuracy"]
    answers = model.decide(X[600:])["suggestion"].to_numpy()
    assert after["accuracy"] == pytest.approx(np.mean(answers == y[600:]))
    assert before["mean_confidence"] == pytest.approx(raw[np.arange(600), answers].mean())


def test_the_ladder_stays_one_table_with_all_its_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "88")
    review = {"error": 0.03, "minutes": 6, "hourly_cost": 4000}
    text = str(selective_report(draw_rows(0), threshold=0.8, reviewing=review))
    lines = text.split("\n")
    head = next(line for line in lines if line.startswith("target "))
    assert head.endswith("threshold")
    for column in ("deferred", "95 % sure", "hours", "cost", "wrong here", "with reviewer"):
        assert column in head
    assert len(head) <= 88


def test_p_values_and_unreachable_targets_are_words():
    y = np.arange(300) % 2
    report = selective_report(y, np.where(np.arange(300) % 3, 0.9, 0.1))
    targets = model_of(report)["workload"]["targets"]
    assert targets[0]["deferred"] == 1000
    line = next(line for line in str(report).split("\n") if line.startswith("0.5 %"))
    assert line.split()[2] == "all"
    assert "e-" not in str(report)
