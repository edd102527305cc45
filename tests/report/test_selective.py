"""What a report says is what the library says."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binomtest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skselect import (
    AbstentionPolicy,
    Predictions,
    SelectiveClassifier,
    ThresholdTuner,
    evaluate,
    select_threshold,
    selective_report,
)
from skselect._lib.notebook import unwrap
from skselect.calibration._scopes import ClassCalibration
from skselect.inference import compare_models, metric_interval
from skselect.predictions.decisions import DecisionRule
from skselect.report import data
from tests.refusals import check_refused


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "so", "yes"], 900, p=[0.3, 0.3, 0.4])
    shift = pd.Series(y).map({"no": 0, "so": 1, "yes": 2.0}).to_numpy()[:, None]
    X = pd.DataFrame(rng.normal(size=(900, 3)) + shift, columns=["a", "b", "c"])
    return X, y


@pytest.fixture(scope="module")
def tuned(rows):
    X, y = rows
    model = SelectiveClassifier(GaussianNB(), calibration="temperature", cv=3).fit(X[:300], y[:300])
    tuner = ThresholdTuner(FrozenEstimator(model), objective="risk", target=0.2)
    return tuner.fit(X[300:600], y[300:600])


@pytest.fixture(scope="module")
def report(rows, tuned):
    X, y = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return selective_report(
            y[600:], tuned.raw_scores(X[600:]), policy=tuned.policy_, features=X[600:],
            subgroups=X["a"][600:] > 1,
        )  # fmt: skip


def test_metrics_and_intervals(rows, tuned, report):
    X, y = rows
    proba = tuned.predict_proba(X[600:])
    table, predictions = report.to_frame(), Predictions.from_proba(y[600:], proba)
    table = table.set_index("metric")
    decided = report.to_dict()["models"]["model"]["decisions"]
    n, n_accepted, n_wrong = (decided[x] for x in ("n_rows", "n_accepted", "n_errors"))
    hits = {  # of shares of rows: their intervals are exact
        "coverage": (n_accepted, n), "generalized_risk": (int(n_wrong), n),
        "selective_accuracy": (n_accepted - int(n_wrong), n_accepted),
    }  # fmt: skip
    for name, row in table.iterrows():
        parameters = {"threshold": tuned.threshold_} if name in (*hits, "cwsa", "cwsa_plus") else {}
        expected = evaluate(predictions, {name: parameters})[name]
        assert row["value"] == pytest.approx(expected, abs=1e-12)
        if name in hits:
            low, high = binomtest(*hits[name]).proportion_ci(method="exact")
            assert (row["low"], row["high"]) == pytest.approx((low, high))
        elif not np.isnan(row["low"]):
            found = metric_interval(y[600:], proba, name, metric_params=parameters)
            assert (row["low"], row["high"]) == pytest.approx((found.low, found.high))
    assert table.loc["augrc", "better"] == "lower"
    assert table.loc["csr", "better"] == "near 1"


def test_decisions_are_those_of_the_policy_and_its_certificate_is_quoted(rows, tuned, report):
    X, y = rows
    table = tuned.decide(X[600:])
    accepted = table["accepted"].to_numpy()
    right = table["suggestion"].to_numpy() == y[600:]
    model = report.to_dict()["models"]["model"]
    decided, wrong = model["decisions"], int(np.sum(accepted & ~right))
    assert (decided["n_accepted"], decided["n_errors"]) == (accepted.sum(), wrong)
    interval = binomtest(wrong, int(accepted.sum())).proportion_ci(0.95, "exact")
    assert (decided["low"], decided["high"]) == pytest.approx(tuple(interval))
    assert decided["n_right_deferred"] == np.sum(~accepted & right)
    assert model["certificate"]["certified"]
    assert model["certificate"]["texts"] == {"": str(tuned.certificate_)}
    assert str(tuned.certificate_) in str(report)


def test_calibration_before_and_after(rows, tuned, report):
    X, y = rows
    before, after = report.to_dict()["models"]["model"]["calibration"]
    raw = Predictions.from_proba(y[600:], tuned.raw_scores(X[600:]))
    calibrated = Predictions.from_proba(y[600:], tuned.predict_proba(X[600:]))
    assert before["state"] == "before calibration"
    assert before["ece"] == pytest.approx(evaluate(raw, ["ece"])["ece"])
    assert after["csr"] == pytest.approx(evaluate(calibrated, ["csr"])["csr"])
    assert before["mean_confidence"] == pytest.approx(raw.y_proba.max(axis=1).mean())


def test_errors_are_the_most_confident_ones(rows, tuned, report):
    X, y = rows
    proba = tuned.predict_proba(X[600:])
    answer = tuned.classes_[proba.argmax(axis=1)]
    wrong = np.flatnonzero(answer != y[600:])
    worst = wrong[np.argsort(-proba[wrong].max(axis=1), kind="stable")][:10]
    errors = report.to_dict()["models"]["model"]["errors"]
    assert [error["row"] for error in errors] == worst.tolist()
    assert [error["true"] for error in errors] == y[600:][worst].tolist()
    assert errors[0]["features"]["b"] == X["b"].iloc[600 + worst[0]]


def test_subgroups_add_up(report):
    model = report.to_dict()["models"]["model"]
    groups = model["subgroups"]
    assert [group["subgroup"] for group in groups] == ["False", "True"]
    assert sum(group["n_accepted"] for group in groups) == model["decisions"]["n_accepted"]
    assert sum(group["n_errors"] for group in groups) == model["decisions"]["n_errors"]
    assert groups[0]["attribute"] == "a"
    gaps = {gap["metric"]: gap for gap in model["gaps"]}
    for metric, share in [("coverage_gap", "coverage"), ("risk_gap", "risk")]:
        assert gaps[metric]["value"] == pytest.approx(abs(groups[0][share] - groups[1][share]))
        assert 0 <= gaps[metric]["low"] <= gaps[metric]["value"] <= gaps[metric]["high"] <= 1
        assert gaps[metric]["attribute"] == "a"
    assert "Largest difference between two" in str(report)


def test_gaps_need_two_subgroups_and_a_threshold():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 90), rng.random(90)
    table = pd.DataFrame({"one": 1, "two": np.where(np.arange(90) % 2, "a", None)})
    for threshold, metrics in [(None, ["risk_gap"]), (0.7, ["coverage_gap", "risk_gap"])]:
        report = selective_report(y, p, threshold=threshold, subgroups=table)
        gaps = report.to_dict()["models"]["model"]["gaps"]
        assert [(gap["attribute"], gap["metric"]) for gap in gaps] == [("two", m) for m in metrics]
    nobody = selective_report(y, p, threshold=np.inf, subgroups=table)
    assert nobody.to_dict()["models"]["model"]["gaps"][1]["value"] is None
    assert "two" in str(nobody)


def test_coverages_are_points_of_the_curve(rows, tuned, report):
    c = tuned.predict_confidence(rows[0][600:])
    for row in report.to_dict()["models"]["model"]["coverages"]:
        assert np.mean(c >= row["threshold"]) == pytest.approx(row["coverage"])
    tied = selective_report([0, 1, 1, 0], [0.9, 0.9, 0.9, 0.1], pos_label=1)
    assert len(tied.to_dict()["models"]["model"]["coverages"]) == 1


def test_several_models_are_compared(rows):
    X, y = rows
    models = {"bayes": GaussianNB(), "logistic": LogisticRegression(max_iter=500)}
    probas = {name: m.fit(X[:300], y[:300]).predict_proba(X[300:]) for name, m in models.items()}
    report = selective_report(y[300:], probas, threshold=0.7)
    expected = compare_models(y[300:], probas, "augrc")
    rows_of = report.to_dict()["comparison"]
    assert [row["model"] for row in rows_of] == expected.index.tolist()
    assert [row["estimate"] for row in rows_of] == pytest.approx(expected["estimate"].tolist())
    assert set(report.to_frame()["model"]) == set(models)
    assert "Comparison by AUGRC" in str(report)
    assert repr(report) == "<SelectiveReport: bayes, logistic; 600 rows>"
    few = selective_report([0, 1], {"a": [0.2, 0.7], "b": [0.6, 0.7]}, pos_label=1)
    assert [row["model"] for row in few.to_dict()["comparison"]] == ["a", "b"]


def test_labels_and_a_confidence_are_enough():
    given = Predictions.from_labels(["a", "b", "b", "a"], ["a", "b", "a", "a"], [3.0, 7.0, 2.5, 5])
    report = selective_report(None, given, threshold=2.7)
    names = set(report.to_frame()["metric"])
    assert "augrc" in names
    assert not names & {"csr", "ece", "cwsa"}  # no chance of being right
    model = report.to_dict()["models"]["model"]
    assert model["calibration"] == []
    assert model["decisions"]["n_errors"] == 0


def test_thresholds_per_subgroup(rows):
    X, y = rows
    site = pd.Series(np.where(np.arange(900) % 2, "west", "east"), name="site")
    raw = GaussianNB().fit(X[:300], y[:300]).predict_proba(X)
    chosen = Predictions.from_proba(y[300:600], raw[300:600])
    objective = {"objective": "risk", "target": 0.25}
    policy = select_threshold(chosen, subgroups=site[300:600], **objective).policy
    report = selective_report(y[600:], raw[600:], policy=policy, subgroups=site[600:])
    part = report.to_dict()["models"]["model"]
    assert set(part["certificate"]["texts"]) == {"east", "west"}
    accepted = policy.decide(raw[600:], subgroups=site[600:])["accepted"]
    assert part["decisions"]["n_accepted"] == accepted.sum()
    assert part["threshold"] is None
    assert "[east] CERTIFIED" in str(report)
    assert str(report).index("\nSubgroups\n") < str(report).index("\nMetrics\n")
    assert part["certificate"]["certified"]
    unsigned = replace(policy, groups=replace(policy.groups, certificates={}), certificate=None)
    report = selective_report(y[600:], raw[600:], policy=unsigned, subgroups=site[600:])
    assert not report.to_dict()["models"]["model"]["certificate"]["certified"]


def test_a_refused_subgroup_is_named_and_its_errors_come_last():
    rng = np.random.default_rng(0)
    site = pd.Series(np.repeat(["east", "west"], 1000), name="site")
    wrong = rng.random(2000) < np.repeat([0.02, 0.4], 1000)
    sure = rng.uniform(0.6, 0.9, 2000) + np.repeat([0, 0.1], 1000)  # the west errs and is surer
    rows = Predictions.from_proba(1 - wrong, sure)
    options = {"objective": "risk", "target": 0.1, "subgroups": site, "assume": "independent"}
    with pytest.warns(UserWarning, match="REFUSED: at most 10 %"):
        policy = select_threshold(rows, **options).policy

    def report_on(sites, **more):
        """Return a report, its model, and the last line of its verdict."""
        report = selective_report(rows, policy=policy, subgroups=sites, **more)
        model = report.to_dict()["models"]["model"]
        return report, model, model["verdict"]["text"].splitlines()[-1]

    report, model, said = report_on(site, n_errors=2000, confidence_level=0.9)
    start, end = "Nothing is guaranteed for site 'west' (", "): all of them are deferred."
    assert said == f"{start}1,000 cases{end}"
    expected = sorted(np.flatnonzero(wrong), key=lambda row: (site[row] == "west", -sure[row], row))
    assert [error["row"] for error in model["errors"]] == expected
    assert [error["accepted"] for error in model["errors"]] == (site[expected] == "east").tolist()
    with pytest.warns(UserWarning, match="belong to no site"):
        _, _, said = report_on(site.replace("east", "north").mask(wrong))
    n_wrong, n_west = np.sum(wrong), np.sum(wrong[1000:])
    others = f"'north' ({1000 - n_wrong + n_west} cases), (missing) ({n_wrong} cases"
    assert said == f"{start}{1000 - n_west} cases), {others}{end}"
    lines = str(report).split("Most confident errors\n")[1].splitlines()
    assert lines[0].split()[-2:] == ["decided", "confidence"]
    assert " answered " in lines[1]
    assert " deferred " in lines[len(expected)]
    assert re.search("west +1,000 +1,000 +0 %", str(report))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("threshold", [-1.0, 1.0, 2.0, np.inf])
def test_extreme_thresholds(rows, threshold):
    X, y = rows
    proba = GaussianNB().fit(X, y).predict_proba(X)
    report = selective_report(y, proba, threshold=threshold)
    assert "cwsa" not in set(report.to_frame()["metric"])
    assert ("answers none" in str(report)) == (threshold >= 1)
    right = selective_report([0, 1, 1], [0.1, 0.8, 0.7], threshold=threshold)
    assert "0 errors" in str(right)
    assert right.to_dict()["models"]["model"]["errors"] == []


THREE = [0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
TWO = Predictions.from_proba([0, 1], [0.2, 0.7])
MAPS = ClassCalibration.fit("platt", "decision_function", np.array([-1.0, 1]), np.array([0, 1]), 2)


def policy_of(classes=(0, 1), **options):
    return AbstentionPolicy(classes=np.array(classes), threshold=0.5, **options)


REFUSED = [
    ("policy", THREE, {"policy": 3}),
    ("policy", THREE, {"policy": {"other": None}}),
    ("threshold", THREE, {"threshold": 0.5, "policy": policy_of()}),
    ("policy", THREE, {"policy": policy_of((1, 2))}),
    ("policy", THREE, {"policy": policy_of(response="decision_function", calibration=MAPS)}),
    ("features", THREE, {"features": pd.DataFrame({"a": [1]})}),
    *((name, THREE, {name: value}) for name, value in [
        ("n_errors", -1), ("confidence_level", 2), ("subgroups", ["a"]), ("random_state", "x"),
        ("ids", ["a"]), ("ids", "abc"), ("ids", {"a": [1] * 3, "b": [2] * 3}),
    ]),
    *(("reviewing", THREE, {"reviewing": reviewing}) for reviewing in [
        (0.03, 6, 40), {}, {"mins": 6}, {"error": 3}, {"minutes": 0}, {"minutes": "6"},
        {"minutes": 6, "hourly_cost": -1}, {"hourly_cost": 40}, {"hours": 40},
    ]),
    ("rows", ([0, 1],), {}),
    ("y_true", ([0, 1], TWO), {}),
    ("y_proba", ([0, 1], {}), {}),
    ("y_proba", ([0], {1: [0.2], "1": [0.2]}), {}),
    ("different rows", ({"a": TWO, "b": Predictions.from_proba([1, 0], [0.2, 0.7])},), {}),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "given", "options"), REFUSED)
def test_refusals(argument, given, options):
    check_refused(argument, lambda: selective_report(*given, **options))


def test_predictions_may_stand_alone():
    expected = selective_report([0, 1], [0.2, 0.7]).to_frame()
    assert selective_report(TWO).to_frame().equals(expected)
    assert list(selective_report({"a": TWO, "b": TWO}).contents["models"]) == ["a", "b"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict])
def test_features_of_any_table_stay_as_they_are(make):
    large = 2**53 + 1
    columns = {"row": [1, 2, large], "confidence": [0.5, 0.5, 0.25], "site": ["a", "b", "c"]}
    report = selective_report(*THREE, features=make(columns))
    (error,) = report.to_dict()["models"]["model"]["errors"]
    assert error["features"] == {"row": large, "confidence": 0.25, "site": "c"}
    assert (error["row"], error["confidence"]) == (2, 0.6)
    assert str(large) in str(report)
    for given, expected in [
        (pd.Series([30, 40, 50], name="age"), {"age": 50}),
        (np.eye(3), {"0": 0.0, "1": 0.0, "2": 1.0}),
        ({"when": pd.to_datetime(["2026-01-31"] * 3)}, {"when": "2026-01-31 00:00:00"}),
    ]:
        (error,) = selective_report(*THREE, features=given).to_dict()["models"]["model"]["errors"]
        assert error["features"] == expected


COSTS = np.array([[0, 1, 5], [1, 0, 1], [9, 1, 0.0]])


@pytest.mark.parametrize(
    ("confidence", "rule"),
    [("margin", DecisionRule()), ("expected_cost", DecisionRule("min_cost", COSTS))],
)
def test_the_comparison_judges_what_the_policies_decide(rows, confidence, rule):
    X, y = rows
    models = {"bayes": GaussianNB(), "logistic": LogisticRegression(max_iter=500)}
    probas = {name: m.fit(X[:300], y[:300]).predict_proba(X[300:]) for name, m in models.items()}
    policy = policy_of(np.unique(y), confidence=confidence, rule=rule)
    report = selective_report(y[300:], probas, policy=policy)
    metrics = report.to_frame().query("metric == 'augrc'").set_index("model")["value"]
    for row in report.to_dict()["comparison"]:
        assert row["estimate"] == pytest.approx(metrics[row["model"]], abs=1e-12)
    table = policy.decide(probas["bayes"])
    accepted = table["accepted"].to_numpy()
    true, said = (np.searchsorted(policy.classes, z) for z in (y[300:], table["suggestion"]))
    decided = report.to_dict()["models"]["bayes"]["decisions"]
    costs = COSTS[true, said][accepted].mean() if rule.cost_matrix is not None else None
    assert decided.get("mean_cost") == pytest.approx(costs)
    assert ("is the cost of wrong answers" in str(report)) == (costs is not None)


def test_own_answers_are_not_guessed(rows):
    X, y = rows
    proba = GaussianNB().fit(X, y).predict_proba(X)
    own = policy_of(np.unique(y), confidence="chosen_proba", rule=DecisionRule("estimator"))
    check_refused("y_pred", lambda: selective_report(y, proba, policy=own))
    given = Predictions.from_proba(y, proba, decision="estimator", y_pred=np.full(900, "so"))
    report = selective_report(None, given, policy=own)
    assert report.to_dict()["models"]["model"]["accuracy"] == pytest.approx(np.mean(y == "so"))


def test_it_is_strict_json(report):
    extreme = selective_report([0, 1], [0.2, 0.7], threshold=np.float32(2.0))
    for one, n_rows in ((report, 300), (extreme, 2)):
        assert json.loads(json.dumps(one.to_dict(), allow_nan=False))["n_rows"] == n_rows


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict, None])
def test_attributes_keep_their_names(make):
    y, p = [0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    columns = {"a": pd.Series([1, 1, 2], name="a"), "b": ["x", "y", "y"]}
    plain = {name: list(column) for name, column in columns.items()}
    given = columns["a"] if make is None else make(plain)
    rows = selective_report(y, p, subgroups=given).to_dict()["models"]["model"]["subgroups"]
    found = [(row["attribute"], row["subgroup"], row["n_rows"]) for row in rows]
    assert found[:2] == [("a", "1", 2), ("a", "2", 1)]
    assert found[2:] in ([], [("b", "x", 1), ("b", "y", 2)])


def test_without_a_closed_form_there_is_no_interval():
    y, p = [1] * 9 + [0], np.linspace(0.6, 0.99, 10)  # one error: its AUROC has no standard error
    table = selective_report(y, p, pos_label=1).to_frame().set_index("metric")
    assert 0 <= table.loc["failure_auroc", "value"] <= 1
    assert np.isnan(table.loc["failure_auroc", ["low", "high"]].astype(float)).all()


def _decided(y, proba, classes, threshold):
    answer = np.array(classes)[proba.argmax(axis=1)]
    return answer, proba.max(axis=1) >= threshold


def test_classes_before_and_after_abstaining(rows, tuned, report):
    X, y = rows
    table = tuned.decide(X[600:])
    y, answer = y[600:], table["suggestion"].to_numpy()
    sure = table["accepted"].to_numpy()
    found = report.to_dict()["models"]["model"]["by_class"]
    classes = ["no", "so", "yes"]
    assert found["confusion"]["answers"] == [*classes, "abstains"]
    assert found["confusion"]["counts"] == [
        [*(int(np.sum((y == true) & (answer == said) & sure)) for said in classes),
         int(np.sum((y == true) & ~sure))]
        for true in found["confusion"]["true"]
    ]  # fmt: skip
    for one in found["rates"]:
        mine = y == one["class"]
        always, alone = one["all"]["missed"], one["accepted"]["missed"]
        assert always["n_hits"] == np.sum(mine & (answer != y))
        assert alone["n_hits"] == np.sum(mine & (answer != y) & sure)
        assert alone["n_rows"] == mine.sum()  # of all its cases, those deferred included
        assert one["accepted"]["sensitivity"]["n_rows"] == np.sum(mine & sure)
        exact = binomtest(alone["n_hits"], alone["n_rows"]).proportion_ci(method="exact")
        assert (alone["low"], alone["high"]) == pytest.approx(tuple(exact))
    counts = pd.DataFrame({"always": answer != y, "alone": (answer != y) & sure}).groupby(y)
    worst = counts["alone"].mean().sort_values(ascending=False, kind="stable").index[:2]
    told = [
        f"class {name}: {counts['alone'].sum()[name]} of {sum(y == name)} "
        f"({counts['always'].sum()[name]} if it always answered)"
        for name in worst
    ]
    assert f"Missed most often: {'; '.join(told)}." in " ".join(str(report).split())


def test_of_many_classes_the_worst_are_shown(rng):
    classes = [f"c{k:02}" for k in range(14)]
    y, proba = rng.choice(classes, 600), rng.dirichlet(np.full(14, 0.2), 600)
    report = selective_report(y, proba, labels=classes, threshold=0.5)
    answer, sure = _decided(y, proba, classes, 0.5)
    missed = pd.Series(sure & (answer != y)).groupby(y).sum()
    found = report.to_dict()["models"]["model"]["by_class"]
    shown = [one["class"] for one in found["rates"]]
    assert len(shown) == 10
    assert missed[shown].tolist() == sorted(missed, reverse=True)[:10]
    assert found["confusion"]["true"] == [*shown, "other classes"]
    assert found["confusion"]["answers"] == [*shown, "other classes", "abstains"]
    counts = np.array(found["confusion"]["counts"])
    assert counts.sum() == 600
    assert counts[:, -1].sum() == np.sum(~sure)
    others = ~np.isin(y, shown)
    assert counts[-1, -2] == np.sum(others & sure & ~np.isin(answer, shown))
    assert "of 14 classes the 10 that are missed most often" in str(report)


def test_rows_of_an_unknown_class_are_counted():
    rows = Predictions(np.array([0, 1, -1]), np.array([0, 1, 0]), np.array(["a", "b"]),
                       np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]))  # fmt: skip
    report = selective_report(None, rows, threshold=0.75)
    model = report.to_dict()["models"]["model"]
    assert model["by_class"]["confusion"]["true"] == ["a", "b", "unknown class"]
    assert model["by_class"]["confusion"]["counts"] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert [error["true"] for error in model["errors"]] == ["unknown class"]
    assert "Class a: 0 of 1 missed (0 if it always answered); class b: 0 of 1" in str(report)


def test_constant_weights_do_not_count_as_rows(rng):
    y, p = rng.integers(0, 2, 60), rng.random(60)
    same = Predictions.from_proba(y, p, sample_weight=np.full(60, 0.3))
    plain, weighted = (
        selective_report(rows, threshold=0.7).to_dict()["models"]["model"]
        for rows in (Predictions.from_proba(y, p), same)
    )
    assert weighted["by_class"] == plain["by_class"]
    targets = plain["workload"]["targets"], weighted["workload"]["targets"]
    for one, other in zip(*targets, strict=True):
        assert other["deferred"] == pytest.approx(one["deferred"])
        assert other["deferred_surely"] is None
    unsure = selective_report(y, p, confidence_level=0.4)  # no bound holds for all targets
    found = unsure.to_dict()["models"]["model"]["workload"]["targets"]
    assert all(row["deferred_surely"] is None for row in found)
    assert "Deferrals per 1,000" in unsure.to_html()


def test_without_a_threshold_nothing_abstains(rng):
    y, p = rng.integers(0, 2, 50), rng.random(50)
    model = selective_report(y, p).to_dict()["models"]["model"]
    assert model["by_class"]["confusion"]["answers"] == ["0", "1"]
    assert list(model["by_class"]["rates"][0]) == ["class", "all"]
    assert model["workload"]["deferred_now"] is None
    text = str(selective_report(y, p))
    assert "abstains" not in text
    assert "By class: its answers" in text


def test_the_cheapest_threshold_of_each_target(rows, tuned, report):
    X, y = rows
    proba = tuned.predict_proba(X[600:])
    c, wrong = proba.max(axis=1), tuned.classes_[proba.argmax(axis=1)] != y[600:]
    found = report.to_dict()["models"]["model"]["workload"]
    assert [row["target"] for row in found["targets"]] == [0.005, 0.01, 0.02, 0.05, 0.1, 0.2]
    for row in found["targets"]:  # the last one is that of the certificate
        sets = [c >= t for t in np.unique(c)]
        kept = [np.mean(s) for s in sets if np.mean(wrong[s]) <= row["target"] + 1e-12]
        assert row["deferred"] == pytest.approx(1000 * (1 - max(kept, default=0)))
        assert row["deferred_surely"] >= row["deferred"]
        if row["threshold"] is not None:
            accepted = c >= row["threshold"]
            assert row["coverage"] == pytest.approx(accepted.mean())
            assert row["risk"] == pytest.approx(wrong[accepted].mean())
    decided = tuned.decide(X[600:])["accepted"]
    assert found["deferred_now"] == pytest.approx(1000 * np.mean(~decided))
    capacity = found["capacity"]
    assert capacity == tuned.policy_.capacity_needed(1000)
    assert f"Plan for {capacity:,} reviews per 1,000 cases; an estimated 95 % of batches" in unwrap(
        str(report)
    )


def test_a_report_says_what_review_takes(rng):
    y, p = rng.integers(0, 2, 400), rng.random(400)
    p = np.where(rng.random(400) < 0.8, 0.5 * (p + y), p)
    person = np.where(rng.random(400) < 0.05, 1 - y, y)
    for rows in (Predictions.from_proba(y, p), Predictions.from_proba(y, p, reviewer=person)):
        report = selective_report(rows, reviewing={"error": 0.03, "minutes": 6, "hourly_cost": 40})
        for row in report.to_dict()["models"]["model"]["workload"]["targets"]:
            least = np.inf if row["threshold"] is None else row["threshold"]
            answers = np.maximum(p, 1 - p) >= least
            by_person = 0.03 if rows.reviewer is None else person != y
            wrong = np.where(answers, (p >= 0.5) != y, by_person)
            assert row["together"] == pytest.approx(wrong.mean())
            assert row["hours"] == pytest.approx(100 * np.mean(~answers))
            assert row["cost"] == pytest.approx(40 * row["hours"])
        assert "with reviewer" in str(report)
    assert "with reviewer" not in str(selective_report(y, p))


def test_a_report_says_what_hours_of_review_leave_to_the_machine(rows, tuned):
    """As the picture of the workload does."""
    X, y = rows
    proba, work = tuned.predict_proba(X[600:]), {"minutes": 6, "hours": 2, "cases": 100}
    report = selective_report(y[600:], proba, reviewing=work)
    told = "2 hours are enough for 20 of 100 cases, so 80 % must be answered automatically"
    assert told in unwrap(str(report))
    assert told in " ".join(report.to_html().split())
    target = report.to_dict()["models"]["model"]["workload"]["targets"][0]
    assert "hours" in target
    assert "cost" not in target
    answered, raw = 100 * tuned.decide(X[600:])["accepted"].mean(), tuned.raw_scores(X[600:])
    said = unwrap(str(selective_report(y[600:], raw, policy=tuned.policy_, reviewing=work)))
    allowed = re.search(r"\(estimate\); the certificate allows ([0-9.]+) %\.", said)
    assert answered - 0.1 <= float(allowed[1]) <= answered


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series])
def test_errors_are_named_by_their_case(make):
    report = selective_report(*THREE, ids=make(["007", "008", "<b>"]))
    (error,) = report.to_dict()["models"]["model"]["errors"]
    assert error["id"] == "<b>"
    assert ["<b>", "1", "0"] in [line.split()[:3] for line in str(report).splitlines()]
    assert "&lt;b&gt;" in report.to_html()
    levels = pd.MultiIndex.from_tuples([("x", 7), ("x", 8), ("y", 7)])
    (error,) = selective_report(*THREE, ids=levels).to_dict()["models"]["model"]["errors"]
    assert error["id"] == "('y', 7)"


@pytest.mark.parametrize(("level", "n_draws"), [(0.9, 99), (0.95, 199), (0.99, 999), (0.999, 5999)])
def test_many_rows_are_compared_with_fewer_classifiers(level, n_draws):
    assert data._count_draws(1_000_000, level) == max(n_draws, 999)
    assert data._count_draws(1_000_001, level) == n_draws
    assert 1 / (n_draws + 1) <= (1 - level) / 3  # it can still say no


def test_verdicts_are_no_classes(rng):
    """Judged answers have no confusion matrix, but errors, some of them accepted."""
    score = rng.random(400)
    is_wrong = rng.random(400) > score
    rows = Predictions.from_verdicts(np.where(is_wrong, "wrong", "right"), score)
    report = selective_report(rows, threshold=0.5)
    text, page = str(report), report.to_html()
    accepted = np.sum(is_wrong & (score >= 0.5))
    assert f"\n{is_wrong.sum()} of 400 answers are wrong, {accepted} of them accepted.\n" in text
    assert f"(right: {np.sum(~is_wrong)}, wrong: {is_wrong.sum()});" in text
    assert f"{is_wrong.sum()} of 400 answers are wrong.\n" in str(selective_report(rows))
    assert text.startswith("400 judged answers\n")
    for word in ["lass", "issed", "ensitivity", "PPV", "true"]:
        assert word not in text.replace("Selective classification", "")
    assert "By class" not in page
