"""What newcomers get wrong: each mistake is answered with the argument, or with the remedy.

The list is what people tried who had read the docs alone. Three mistakes look like right calls, and
have no answer but in the docs: columns that are swapped for ``decide``, which reads no labels, and
a policy stores nothing about single classes; ``GridSearchCV`` over `threshold`, whose scores are
numbers as any; ``set_params(target=)`` after ``fit``, which counts from the next ``fit`` on, as in
scikit-learn.
"""

import re
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

import skselect as sk
from skselect.cli.main import main
from skselect.inference import compare_models, metric_interval
from skselect.thresholds import rows_needed

X, y = make_classification(1600, 5, class_sep=2.0, random_state=0)
MODEL = GaussianNB()
FITTED = GaussianNB().fit(X[:600], y[:600])
P = FITTED.predict_proba(X[600:])
Y = y[600:]
FRAME = pd.DataFrame(X).rename(columns=str).assign(site=np.where(X[:, 0] > 0, "north", "south"))
FROZEN = FrozenEstimator(FITTED)
TUNER = sk.ThresholdTuner(FROZEN, "risk", target=0.1).fit(X[600:], Y)
POLICY = TUNER.policy_
BY_SITE = sk.ThresholdTuner(FROZEN, "risk", target=0.1, group_by=lambda X: X[:, 0] > 0)
TEN = np.array(list("jihgfedcba"))
TRUTH = np.random.default_rng(0).integers(0, 10, 1000)
SURE = 0.9 * np.eye(10)[TRUTH] + 0.01
REVERSED = SURE[:, ::-1] / SURE.sum(axis=1, keepdims=True)
SCORES = np.random.default_rng(1).random(50)
DAYS = pd.date_range("2026-01-01", periods=20, freq="D")


def fit(*given, **named):
    return sk.ThresholdTuner(*given, **named).fit(X, y)


def choose(target, rows=(Y, P)):
    return sk.select_threshold(*rows, objective="risk", target=target)


def watch():
    monitor = sk.SelectiveRiskMonitor(POLICY, label_delay="30D")
    return monitor.add_decisions(P[:20], ids=np.arange(20), when=DAYS)


def run(command):
    def call(folder):
        pd.DataFrame({"y": Y, "p": P[:, 1]}).to_csv(folder / "t.csv", index=False)
        verdicts = np.where(SCORES > 0.3, "right", "wrong")
        judged = pd.DataFrame({"judge": verdicts, "score": SCORES, "said": "yes"})
        judged.to_csv(folder / "llm.csv", index=False)
        columns = pd.DataFrame(REVERSED, columns=[f"p{k}" for k in range(10)])
        columns.assign(y=TEN[::-1][TRUTH]).to_csv(folder / "ten.csv", index=False)
        main(shlex.split(command.format(folder)))

    return call


def names_place(name):
    return lambda: exec(f"from skselect import {name}", {})


MISTAKES = {
    # Kinds of values
    "a length for a shortlist": (
        lambda: sk.select_threshold(TRUTH, SURE / SURE.sum(axis=1, keepdims=True),
                                    objective="risk", target=0.2, shortlist=3),
        "lists have no fixed length",
    ),
    "a share for a capacity": (
        lambda: POLICY.decide(P, capacity=0.15), "15 % of these 1,000 is 150"),
    "per cent as a confidence": (
        lambda: sk.Predictions.from_labels(["a"], ["a"], ["87%"]), "Write 87% as 0.87"),
    "decisions to check_policy": (
        lambda: sk.check_policy(POLICY, Y, POLICY.decide(P)), "table of decisions"),
    "costs in a flat dict": (
        lambda: sk.Predictions.from_proba(Y, P, decision="min_cost", cost_matrix={0: 1, 1: 5}),
        "a dict of answers for each true class",
    ),
    "group_by an array": (
        lambda: fit(MODEL, "risk", target=0.1, group_by=X[:, 0] > 0), "names columns of X"),
    "rows of different lengths": (lambda: POLICY.decide([[0.5, 0.5], [1.0]]), "different lengths"),
    "subgroups of different lengths": (
        lambda: sk.select_threshold(Y, P, objective="risk", target=0.3,
                                    subgroups={"a": [1] * len(Y), "b": [2]}),
        "one value per row in each of its columns",
    ),
    "half a character": (
        lambda: sk.select_threshold(Y, P, objective="risk", target=0.3,
                                    subgroups=["\ud800", "a"] * 500),
        "half a character",
    ),
    # The target
    "6 for 6 %": (lambda: choose(6), "Write 6 % as 0.06"),
    "1 for 1 %": (lambda: choose(1), "Write 1 % as 0.01"),
    "1 for 1 %, tuner": (lambda: fit(MODEL, "risk", target=1), "Write 1 % as 0.01"),
    "per cent sign": (lambda: choose("3%"), "Write 3 % as 0.03"),
    "per cent of a summary": (lambda: TUNER.summary([1, 2, 3]), "Write 1 % as 0.01"),
    "per cent typed": (run("tune {}/t.csv --label y --proba p --target 10%"), "10 % as 0.1"),
    "1 typed": (run("tune {}/t.csv --label y --proba p --target 1"), "Write 1 % as 0.01"),
    "accuracy for risk": (lambda: choose(0.97), "Did you mean 0.03"),
    "confidence for delta": (lambda: fit(MODEL, "risk", target=0.1, delta=0.95), "mean 0.05"),
    "no target": (lambda: fit(MODEL, "risk"), "target is missing.*target=0.02"),
    "no objective": (lambda: fit(MODEL, target=0.03), "use objective='risk'"),
    "target of a metric": (lambda: fit(MODEL, "cwsa", target=0.03), "use objective='risk'"),
    # The objective
    "target in its place": (lambda: fit(MODEL, 0.03), "objective.*'risk', target=0.03"),
    "unknown objective": (lambda: fit(MODEL, "error", target=0.03), "objective must be.*'risk'"),
    "a metric that has none": (lambda: fit(MODEL, "f1"), "objective must be one of"),
    "by position": (lambda: sk.select_threshold(Y, P, "risk", 0.06), "'risk' after.*objective="),
    "two of them, typed": (
        run("tune {}/t.csv --label y --proba p --objective risk coverage --target .1"),
        "--objective risk --objective coverage",
    ),
    "none at all": (lambda: sk.select_threshold(Y, P, target=0.06), "objective must be one of"),
    "riskier than the target": (lambda: rows_needed(0.03, expected_risk=0.05), "below the target"),
    "max_risk": (lambda: fit(MODEL, max_risk=0.03), "unexpected keyword argument 'max_risk'"),
    "groups": (lambda: fit(MODEL, groups="site"), "unexpected keyword argument 'groups'"),
    # What is fitted
    "a class": (lambda: fit(GaussianNB, "risk", target=0.1), r"LogisticRegression\(\)"),
    "a regressor": (lambda: fit(LinearRegression(), "risk", target=0.1), "must be a classifier"),
    "predict unfitted": (lambda: sk.ThresholdTuner(MODEL).predict(X), r"Call fit\(X, y\)"),
    "decide unfitted": (lambda: sk.ThresholdTuner(MODEL).decide(X), r"Call fit\(X, y\)"),
    "policy unfitted": (lambda: sk.ThresholdTuner(MODEL).policy_, r"Call fit\(X, y\)"),
    "certificate unfitted": (lambda: sk.ThresholdTuner(MODEL).certificate_, r"Call fit\(X, y\)"),
    "classifier unfitted": (lambda: sk.SelectiveClassifier(MODEL).predict(X), r"Call fit\(X, y\)"),
    "frozen unfitted": (lambda: fit(FrozenEstimator(MODEL)), "fit it before freezing"),
    "fitted, not frozen": (lambda: fit(GaussianNB().fit(X, y)), r"Pass FrozenEstimator"),
    "one class": (lambda: sk.ThresholdTuner(MODEL).fit(X, 0 * y), "y has one class only"),
    "NaN in y": (lambda: sk.ThresholdTuner(MODEL).fit(X, np.where(y, np.nan, y)), "y has missing"),
    "continuous y": (lambda: sk.ThresholdTuner(MODEL).fit(X, X[:, 0]), "label type: continuous"),
    "fit(y, X)": (lambda: sk.ThresholdTuner(MODEL).fit(y, X), r"the call is fit\(X, y\)"),
    "misspelt calibration": (
        lambda: sk.SelectiveClassifier(MODEL, calibration="isotonc").fit(X, y), "mean 'isotonic'"),
    "text as a feature": (
        lambda: sk.ThresholdTuner(MODEL, group_by="site").fit(FRAME, y), "to float: '(nor|sou)th'"),
    "one certificate of several": (lambda: BY_SITE.fit(X, y).certificate_, "see certificates_"),
    # Deciding
    "labels to decide": (lambda: POLICY.decide(Y), "look like labels, not probabilities"),
    "features to decide": (lambda: POLICY.decide(X), "2 numbers, one for each of the classes"),
    "other names": (lambda: POLICY.decide(pd.DataFrame(P, columns=["a", "b"])), "Rename the col"),
    "per cent to decide": (lambda: POLICY.decide(100 * P), "Divide percentages by 100"),
    "logits to decide": (lambda: POLICY.decide(np.log(P + 1e-9)), "from_logits"),
    "no subgroups": (lambda: BY_SITE.fit(X, y).policy_.decide(P), "subgroups"),
    "calibrated twice": (lambda: POLICY.decide(0.5 + (P - 0.5) / 4), "calibrated already"),
    "predict of a policy": (lambda: POLICY.predict(X), r"call decide\(model.predict_proba\(X\)\)"),
    "to_json of a tuner": (lambda: TUNER.to_json("p.json"), "call policy_.to_json"),
    "from_json of a tuner": (lambda: sk.AbstentionPolicy.from_json(TUNER), r"\.policy_"),
    # Labels and probabilities
    "swapped, check": (lambda: sk.check_policy(POLICY, P, Y), "y_true.*labels come first"),
    "swapped, evaluate": (lambda: sk.evaluate(P, Y), "y_true.*labels come first"),
    "swapped, threshold": (lambda: choose(0.1, (P, Y)), "y_true.*labels come first"),
    "labels for probabilities": (lambda: sk.evaluate(Y, FITTED.predict(X[600:])), "predict_proba"),
    "features for probabilities": (
        lambda: choose(0.1, (y, X)), r"5 columns for the 2 classes.*predict_proba\(X\)"),
    "other rows": (lambda: sk.evaluate(Y[:10], P), "y_proba has 1000 rows, but y_true has 10"),
    "reversed labels": (lambda: choose(0.1, (TEN[::-1][TRUTH], REVERSED)), "another order, "),
    "order of the data": (
        lambda: sk.evaluate(TEN[TRUTH], SURE / SURE.sum(axis=1)[:, None]), "order"),
    "two columns swapped": (lambda: choose(0.1, (Y, P[:, ::-1])), r"another order, \[1, 0\]"),
    "the other probability": (lambda: choose(0.1, (Y, P[:, 0])), r"another order, \[1, 0\]"),
    "swapped for a check": (
        lambda: sk.check_policy(POLICY, Y, P[:, ::-1]), r"another order, \[1, 0\]"),
    "order, typed": (
        run("tune {}/ten.csv --label y --target .1 --proba p0 p1 p2 p3 p4 p5 p6 p7 p8 p9"),
        "another order.*--classes"),
    "score, verdict": (
        lambda: sk.Predictions.from_verdicts(SCORES, SCORES > 0.3), "verdict.*before the conf"),
    "no answer of a verdict": (
        run("tune {}/llm.csv --verdict judge --target .1"), "--verdict goes with --answer"),
    "unknown option": (
        run("tune {}/llm.csv --verdict judge --answer said --score score"), "COMMAND --help"),
    "confidences above 1 as losses": (lambda: sk.Outcomes([2, 1], [0.5, 0.6]), "loss must lie in"),
    # Metrics, reports and pictures
    "misspelt metric": (lambda: sk.evaluate(Y, P, ["augcr"]), "metrics: Did you mean 'augrc'"),
    "a list of metrics": (
        lambda: compare_models(Y, {"a": P, "b": P}, ["augrc", "aurc"]), "metric must be one name"),
    "a dict of metrics": (
        lambda: compare_models(Y, {"a": P, "b": P}, {"augrc": {}}), "metric_params="),
    "models, features and labels": (
        lambda: sk.selective_report([FITTED], X, y), r"y_true and y_proba=model.predict"),
    "report of models": (
        lambda: sk.selective_report(Y, {"a": FITTED}), r"GaussianNB; pass its predict_proba"),
    "no metric": (lambda: str(metric_interval(Y, P)), "augrc .* 95 % interval"),
    "report of a tuner": (lambda: sk.selective_report(Y, TUNER), r"pass its predict_proba\(X\)"),
    "interval of models": (
        lambda: metric_interval(Y, {"a": P}, "augrc"), "y_proba must be the table of one model"),
    "curve of a tuner": (lambda: sk.RiskCoverageDisplay.from_selection(TUNER), "tuner.selection_"),
    "from_models of models": (
        lambda: sk.RiskCoverageDisplay.from_models({"a": FITTED}, X, y), "predict_proba"),
    "compare_models elsewhere": (names_place("compare_models"), "from skselect.inference import"),
    "metrics_by_group elsewhere": (names_place("metrics_by_group"), "from skselect.inference"),
    "rows_needed elsewhere": (names_place("rows_needed"), "from skselect.thresholds import"),
    "detectable_risk elsewhere": (names_place("detectable_risk"), "from skselect.monitoring"),
    "name of no scorer": (
        lambda: GridSearchCV(MODEL, {}, scoring="augrc").fit(X, y), "'scoring'.*'neg_augrc'"),
    # After the certificate
    "certified on its rows": (
        lambda: str(sk.certify(POLICY, Y, P, objective="risk", target=0.1)), "ESTIMATE.*threshold"),
    "the policy's file for a check": (lambda: sk.check_policy("p.json", Y, P), r"tuner\.policy_"),
    "a tuner for a check": (lambda: sk.check_policy(TUNER, Y, P), r"such as tuner\.policy_"),
    "delay in words": (
        lambda: sk.SelectiveRiskMonitor(POLICY, label_delay="thirty days"), "such as '30D'"),
    "file for a monitor": (lambda: sk.SelectiveRiskMonitor("p.json"), r"tuner\.policy_"),
    "tuner for a monitor": (lambda: sk.SelectiveRiskMonitor(TUNER), r"tuner\.policy_"),
    "a day back": (
        lambda: watch().add_decisions(P[:1], ids=[99], when=["2025-01-01"]), "must not go back"),
    "day before month": (
        lambda: watch().add_decisions(P[:1], ids=[99], when=["31/01/2026"]), "2026-01-31"),
    "labels in words": (lambda: watch().add_labels([1], ["YES"]), r"the classes are \[0, 1\]"),
    "labels as text": (lambda: watch().add_labels([1], ["1"]), "labels of the same kind"),
    "one name twice": (
        lambda: watch().add_decisions(P[:2], ids=[99, 99], when=DAYS[[-1, -1]]), "its own"),
    "unknown names": (lambda: watch().add_labels(list("abcde"), [0] * 5), "compared as text"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_with_its_remedy(mistake, tmp_path, capsys, recwarn):
    call, wanted = MISTAKES[mistake]
    try:
        result = call(tmp_path) if call.__code__.co_argcount else call()
        said = [str(one.message) for one in recwarn] + [result] * isinstance(result, str)
    except (Exception, SystemExit) as error:
        said = [str(error)]
    said = "\n".join([*said, *capsys.readouterr()])
    assert re.search(f"(?s){wanted}", said), said


def test_set_params_counts_from_the_next_fit_on_but_for_a_threshold():
    tuner = sk.ThresholdTuner(FROZEN, "risk", target=0.1).fit(X[600:], Y)
    before = tuner.decide(X)
    assert tuner.set_params(target=0.5).decide(X).equals(before)
    model = sk.SelectiveClassifier(FROZEN, threshold=0.5).fit(X, y)
    assert model.decide(X)["accepted"].all()
    assert not model.set_params(threshold=np.inf).decide(X)["accepted"].any()


def test_names_of_other_rooms_are_no_attributes_of_the_package():
    assert not hasattr(sk, "compare_models")  # which asks for an AttributeError
