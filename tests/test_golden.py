"""Policies, certificates, verdicts and decisions stay as they were; refused calls stay refused.

`python -m tests.test_golden` writes `golden/policies.json` again, says of which cases the numbers
or the decisions changed (and not only words), and is run only where a change is meant.
"""

import functools
import hashlib
import json
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from skselect import (
    AbstentionPolicy,
    Best,
    Cost,
    Coverage,
    GeneralizedRisk,
    Outcomes,
    Predictions,
    Risk,
    RiskCoverageCurve,
    SelectiveClassifier,
    SelectiveState,
    SystemRisk,
    ThresholdTuner,
    certify,
    check_policy,
    select_threshold,
)
from skselect.policy import Subgroups
from skselect.policy.certificate_text import write_date
from skselect.policy.policy import External
from skselect.thresholds import Combined, FixedSequence, Shortlist
from tests.policy.test_standalone import assert_same, gate_of
from tests.refusals import check_refused

FILE = Path(__file__).parent / "golden" / "policies.json"
#: Computed by functions of scipy, whose last digits may differ between versions and processors.
RELATIVE = 1e-9
#: The numbers of a policy that are compared to the last bit.
EXACT = {"threshold", "thresholds", "coverage"}
#: What the file does not hold: it changes with the clock, or stands in the text beside it.
LEFT_OUT = {"since", "created", "assumptions", "caveats"}

# Rows: integers over 1024, so that sums and products of probabilities are exact -----------------

COSTS = [[0, 1], [8, 0]]
FLAT = [[0, 8, 8], [8, 0, 8], [8, 8, 0]]
LABELS = {"two": np.array(["no", "yes"]), "three": np.array([0, 1, 2])}


def _draw(seed, n, top):
    """Return whole numbers in [0, top), by integer arithmetic alone (splitmix64)."""
    state = (np.arange(1, n + 1, dtype=np.uint64) + np.uint64(seed * 10**6)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((state ^ (state >> np.uint64(31))) % np.uint64(top)).astype(np.int64)


def _proba(seed, n, n_classes):
    """Return answers, and probabilities of which that of the answer is above 1/2."""
    answer, sure = _draw(seed, n, n_classes), 513 + _draw(seed + 1, n, 511)
    second = (answer + 1 + _draw(seed + 2, n, n_classes - 1)) % n_classes
    parts = np.zeros((n, n_classes))
    rows, rest = np.arange(n), 1024 - sure
    parts[rows, answer] = sure
    taken = rest if n_classes == 2 else rest - rest // 4
    parts[rows, second] += taken
    if n_classes == 3:
        parts[rows, 3 - answer - second] += rest - taken
    return answer, parts / 1024


@functools.cache
def _rows(kind, seed=1, n=800):
    """Return true labels, probabilities, own answers and sites; surer rows are wrong less often."""
    classes = LABELS[kind]
    answer, proba = _proba(10 * seed, n, len(classes))
    left = 1024 - np.max(proba, axis=1) * 1024
    wrong = _draw(10 * seed + 5, n, 1024) < left * 0.75 + 4
    true = np.where(wrong, np.argsort(-proba, axis=1, kind="stable")[:, 1], answer)
    own = np.where(_draw(10 * seed + 6, n, 40) == 0, (answer + 1) % len(classes), answer)
    site = np.array(["east", "north", "west"])[_draw(10 * seed + 7, n, 3)]
    return classes[true], proba, classes[own], site


def _reviewer(true, seed):
    """Return what a reviewer of two classes answers who is wrong in one case of 32."""
    wrong = _draw(10 * seed + 8, len(true), 32) == 0
    return np.where(wrong == (true == "yes"), "no", "yes")


def _source(rows, seed=1, n=800):
    """Return what a row of the table below calls "rows": predictions of one kind or another."""
    kind = "three" if rows in ("three", "flat", "own") else "two"
    true, proba, own, _ = _rows(kind, seed, n)
    weight = 1 + _draw(3, n, 5) / 4
    graded = Outcomes((true != LABELS[kind][proba.argmax(1)]) * 0.75, proba.max(1))
    build = functools.partial(Predictions.from_proba, true, proba, labels=LABELS[kind])
    return {
        "two": build,
        "three": build,
        "costs": functools.partial(build, decision="min_cost", cost_matrix=COSTS),
        "flat": functools.partial(build, cost_matrix=FLAT),
        "own": functools.partial(build, decision="estimator", y_pred=own),
        "weights": functools.partial(build, sample_weight=weight),
        "reviewed": functools.partial(build, reviewer=_reviewer(true, seed)),
        "labels": functools.partial(Predictions.from_labels, true, own, proba.max(1)),
        "graded": lambda: graded,
        "curve": lambda: RiskCoverageCurve.from_outcomes(Outcomes.from_predictions(build())),
        "state": lambda: SelectiveState(labels=LABELS[kind]).update(true, proba).finalize(),
    }[rows]()


class Formula(ClassifierMixin, BaseEstimator):
    """A classifier that learns the classes alone: its probabilities are columns of X."""

    def __init__(self, cut=False):
        self.cut = cut

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        return self

    def predict_proba(self, X):
        shown = np.asarray(X[[f"p{k}" for k in range(1, len(self.classes_))]], dtype=np.float64)
        return np.column_stack([1.0 - shown.sum(axis=1), shown])

    def predict(self, X):
        if self.cut:  # an own cut-off: the last class from 3/8 on
            proba = self.predict_proba(X)
            last = len(self.classes_) - 1
            return self.classes_[np.where(proba[:, -1] >= 0.375, last, proba.argmax(axis=1))]
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _features(rows, seed=1, n=800):
    """Return X, y and an unfitted classifier for the rows of that name."""
    kind = "three" if rows in ("three", "flat", "own") else "two"
    true, proba, _, site = _rows(kind, seed, n)
    columns = {f"p{k}": proba[:, k] for k in range(1, proba.shape[1])}
    X = pd.DataFrame({**columns, "site": site})
    options = {"costs": {"decision": "min_cost", "cost_matrix": COSTS},
               "flat": {"cost_matrix": FLAT}, "own": {"decision": "estimator"}}  # fmt: skip
    model = Formula(cut=rows == "own")
    return X, true, SelectiveClassifier(model, **options[rows]) if rows in options else model


def half_wrong(y_true, y_pred):
    """A graded loss: an error costs half if the answer is the first class."""
    return np.where(y_true == y_pred, 0.0, np.where(y_pred == np.min(y_pred), 0.5, 1.0))


def _squared(proba):
    return proba.max(axis=1) ** 2


# The table -------------------------------------------------------------------------------------

#: The rows of a check by their number: 1 are those that chose the thresholds.
ROWS = {1: {}, 2: {"seed": 2, "n": 4000}, 3: {"seed": 3, "n": 1200}}
CASES = {
    "table two": [
        Best("cwsa_plus"), Best("cwsa", threshold_range=(0.25, 0.875)),
        Best("selective_accuracy", min_coverage=0.375), (Best("cwsa"), {"subgroups": "site"}),
        Risk(0.1), Risk(0.1, delta=0.1, method="combined", min_coverage=0.0),
        Risk(0.1, max_analyses=3, method=Combined(0.5, 0.5)),
        Risk(0.1, method=Combined(0.25, 0.5, True)),
        Risk(0.1, max_analyses=2, method="band", min_coverage=0.25),
        Risk(0.1, method=FixedSequence((0.125, 0.5))), Risk(0.15, method="bonferroni"),
        Risk(0.1, method="sgr"), Risk(0.1, method="mean"),
        Risk(0.05, method="empirical", min_coverage=0.125),
        (Risk(0.01), {"on_infeasible": "abstain"}), Risk(0.15, given_prediction="no"),
        ({"no": Risk(0.15), "yes": Risk(0.1)}, {"subgroups": "predicted_class"}),
        (Risk(0.2), {"subgroups": "site", "unseen": "raise"}),
        ({site: Risk(target, delta=0.15, max_analyses=2) for site, target in [
            ("east", 0.2), ("north", 0.01), ("west", 0.125)]},
         {"subgroups": "site", "on_infeasible": "abstain"}), (Risk(0.1), {"confidence": _squared}),
        GeneralizedRisk(0.05), GeneralizedRisk(0.05, delta=0.1, max_analyses=4, method="binomial"),
        GeneralizedRisk(0.03, method="empirical"), GeneralizedRisk(0.1, given_class="yes"),
        SystemRisk(0.125, deferred_error=0.0625), SystemRisk(0.125, overall_error=0.0625),
        SystemRisk(0.125, overall_error=(25, 800)), Coverage(0.8), Coverage(0.8, method="mean"),
        (Coverage(0.75, method="order_statistic"), {"subgroups": "site"}), Cost(0.1),
        Cost(0.125, method="chow"),
    ],
    "table three": [
        Best("cwsa", min_coverage=0.25, method="lower_bound"),
        Best("selective_accuracy", method="lower_bound",
             constraint=[("coverage", 0.25), ("generalized_risk", 0.125)]),
        Risk(0.15, method="fixed_sequence"), Risk(0.1, loss=half_wrong),
        (Risk(0.125), {"shortlist": 0.9}),
        (Risk(0.125), {"shortlist": Shortlist(0.9, share=0.25, random_state=1)}),
        (Risk(0.15),
         {"shortlist": Shortlist(0.9, share=0.25, random_state=1), "subgroups": "site"}),
        (Risk(0.125), {"confidence": "margin"}), (Risk(0.125), {"confidence": "entropy"}),
        (Coverage(0.7), {"confidence": "gini"}), Coverage(0.6, method="empirical"),
    ],
    "table weights": [
        Best("cwsa_plus", constraint=("risk", 0.1)), Risk(0.2, largest_weight=2.5),
        GeneralizedRisk(0.1, largest_weight=3.0), Coverage(0.75, largest_weight=2.5),
        (Cost(0.1, method="empirical"), {"subgroups": "site"}),
    ],
    "table flat": [
        (Best("cwsa_plus"), {"subgroups": "predicted_class"}), Risk(0.9, max_analyses=2),
        (GeneralizedRisk(0.5), {"subgroups": "predicted_class"}),
    ],
    "table graded": [Risk(0.15)],
    "table costs": [
        Risk(0.375), Risk(0.1, method="combined", loss="zero_one"),
        (Risk(0.5), {"subgroups": "site", "assume": "independent"}), GeneralizedRisk(0.25),
        Cost(0.5), (Cost(0.5, method="chow"), {"confidence": "expected_cost"}),
    ],
    "table own": [Risk(0.15), (GeneralizedRisk(0.1), {"confidence": "chosen_proba"})],
    "table labels": [Risk(0.15)],
    "table curve": [Risk(0.1), Coverage(1.0, max_analyses=2)],
    "table state": [Risk(0.15, method="band")],
    "table reviewed": [
        SystemRisk(0.0625), SystemRisk(0.125, delta=0.1, max_analyses=2),
        (SystemRisk(0.01), {"on_infeasible": "abstain"}),
    ],
    "frozen two": [
        Best("cwsa_plus"), (Risk(0.1), {"assume": ["fresh", "independent"]}),
        (Risk(0.15, method="band"), {"abstain_label": "ask"}),
        ({"east": Risk(0.2), "north": Risk(0.15), "west": Risk(0.125)},
         {"group_by": "site", "unseen": "raise"}),
        (Coverage(0.8), {"cv": [(range(200), range(200, 800))]}),
        (Risk(0.2, largest_weight=2.5), {"sample_weight": True, "random_state": 0}),
        Risk(0.15, given_prediction="yes"),
    ],
    "frozen costs": [(Risk(0.375), {"random_state": 0}), (Cost(0.5), {"group_by": ["site"]})],
    "frozen flat": [(Risk(0.9), {"group_by": "predicted_class"})],
    "frozen own": [Risk(0.125)],
    "frozen three": [
        (GeneralizedRisk(0.1),
         {"shortlist": Shortlist(0.875, share=0.5, random_state=2), "random_state": 2}),
    ],
    "fit two": [
        (Best("cwsa"), {"cv": 4, "random_state": 3}), (Risk(0.15), {"random_state": 0}),
        (Risk(0.125), {"cv": 5, "random_state": 0}),
        (Risk(0.125, method="mean"), {"cv": 0.5, "refit": True, "random_state": 0}),
        (Risk(0.01), {"on_infeasible": "abstain", "random_state": 0}),
        (Cost(0.125, method="chow"), {"cv": 4, "random_state": 1}),
        (GeneralizedRisk(0.1), {"group_by": "site", "random_state": 4}),
    ],
    "fit three": [
        (Best("selective_accuracy", method="lower_bound"), {"random_state": 3}),
        (Coverage(0.75, method="mean"), {"random_state": 1, "shortlist": 0.9}),
    ],
    "fit costs": [(Risk(0.5), {"cv": 0.5, "random_state": 0})],
}  # fmt: skip
#: Which of the cases above (or "plain", a threshold of 3/4) makes the policy that is checked on
#: fresh rows of the same name; a seed of 1 takes the same rows again.
CHECKS = [
    ("certify", "plain", {"target": 0.15, "seed": 2}),
    ("certify", "plain", {"seed": 2}),
    ("certify", "plain", {"target": 0.125, "delta": 0.1, "max_analyses": 3, "seed": 3}),
    ("certify", "plain", {"target": 0.01, "seed": 3}),
    ("certify", "table two Risk(0.1)", {"target": 0.1, "seed": 1}),
    ("certify", "table two Risk(0.1)", {"target": 0.2, "seed": 2}),
    ("certify", "table costs Risk(0.375)", {"target": 0.375, "seed": 2}),
    ("certify", "table two Risk(0.2) subgroups unseen", {"target": 0.2, "seed": 2}),
    ("certify", "table two Coverage(0.8)", {"target": 0.2, "seed": 2}),
    ("check_policy", "plain", {"target": 0.15, "seed": 2}),
    ("check_policy", "plain", {"target": 0.09, "seed": 2}),
    ("check_policy", "plain", {"target": 0.02, "delta": 0.1, "max_analyses": 1, "seed": 2}),
    ("check_policy", "table two Risk(0.1)", {"seed": 1}),
    ("check_policy", "table two Risk(0.1)", {"seed": 2}),
    (
        "check_policy",
        "table two Risk(0.1, max_analyses=2, method='band', min_coverage=0.25)",
        {"seed": 3},
    ),
    ("check_policy", "table costs Risk(0.375)", {"seed": 2}),
    ("check_policy", "table costs Risk(0.375)", {"seed": 2, "target": 0.25, "max_analyses": 2}),
    ("check_policy", "table flat Risk(0.9, max_analyses=2)", {"seed": 2}),
    ("check_policy", "table two Risk(0.15, given_prediction='no')", {"seed": 2}),
    ("check_policy", "table two GeneralizedRisk(0.05)", {"seed": 2}),
    ("check_policy", "table two GeneralizedRisk(0.1, given_class='yes')", {"seed": 2}),
    ("check_policy", "table reviewed SystemRisk(0.0625)", {"seed": 2}),
    ("check_policy", "table two SystemRisk(0.125, deferred_error=0.0625)", {"seed": 2}),
    ("check_policy", "table two SystemRisk(0.125, overall_error=0.0625)", {"seed": 2}),
    ("check_policy", "table two Coverage(0.8)", {"seed": 2}),
    ("check_policy", "table two Coverage(0.8)", {"seed": 2, "target": 0.99}),
    ("check_policy", "table two Risk(0.15) Risk(0.1) subgroups", {"seed": 2}),
    ("check_policy", "table two Risk(0.2) subgroups unseen", {"seed": 2, "delta": 0.2}),
    ("check_policy", "table three Risk(0.125) shortlist", {"seed": 2, "max_analyses": 5}),
    ("check_policy", "frozen two Risk(0.1) assume", {"seed": 2}),
]


def _name(place, objective, options):
    objectives = objective.values() if isinstance(objective, dict) else [objective]
    name = " ".join([place, *map(repr, objectives), *options])
    return re.sub(r"<function (\w+) at \w+>", r"\1", name)


def _named():
    """Return cases by name; the second of a name gets a number."""
    named = {}
    for place, cases in CASES.items():
        for case in cases:
            objective, options = case if isinstance(case, tuple) else (case, {})
            name = _name(place, objective, options)
            name = f"{name} #2" if name in named else name
            named[name] = (*place.split(), objective, options)
    return named


POLICIES = _named()


def _check_name(how, which, options):
    words = [f"{name}={value}" for name, value in options.items()]
    return " ".join([how, f"<{which}>", *words])


# The adapter: the one place that knows how a row of the tables becomes a call ------------------


def _call(where, rows, objective, options):
    """Return the policy of a case, None where its rows make none, and the certificates."""
    options = dict(options)
    kind = "three" if rows in ("three", "flat", "own") else "two"
    unseen = {"unseen": options.pop("unseen")} if "unseen" in options else {}
    for name in ("subgroups", "group_by"):
        if where == "table" and isinstance(options.get(name), str) and options[name] == "site":
            options[name] = pd.Series(_rows(kind)[3], name="site")
        if unseen and name in options:
            options[name] = Subgroups(options[name], **unseen)
    if where == "table":
        found = select_threshold(_source(rows), objective=objective, **options)
        return found.policy, found.thresholds, found.certificates
    X, y, model = _features(rows)
    fit = {"sample_weight": 1 + _draw(3, len(y), 5) / 4} if options.pop("sample_weight", 0) else {}
    if "abstain_label" in options:
        model = SelectiveClassifier(model, abstain_label=options.pop("abstain_label"))
    if where == "frozen":
        if isinstance(model, SelectiveClassifier):
            model.set_params(estimator=FrozenEstimator(model.estimator.fit(X, y)))
        else:
            model = FrozenEstimator(model.fit(X, y))
    tuner = ThresholdTuner(model, objective, **options).fit(X, y, **fit)
    return tuner.policy_, tuner.thresholds_, tuner.certificates_


def _call_check(how, which, options):
    """Return the certificate or the verdict for a policy and rows of some seed."""
    options = dict(options)
    rows = "two" if which == "plain" else which.split()[1]
    policy = (
        AbstentionPolicy(classes=LABELS["two"], threshold=0.75)
        if which == "plain"
        else _call(*POLICIES[which])[0]
    )
    kind = "three" if rows in ("three", "flat", "own") else "two"
    true, proba, _, site = _rows(kind, **ROWS[options.pop("seed")])
    if policy.groups is not None and policy.groups.by == "site":
        options["subgroups"] = site
    if rows == "reviewed":
        reviewer = _reviewer(true, 2)
        reviewed = Predictions.from_proba(true, proba, labels=LABELS[kind], reviewer=reviewer)
        return check_policy(policy, reviewed, **options)
    if how == "check_policy":
        return check_policy(policy, true, proba, **options)
    if "max_analyses" in options:
        names = ("delta", "max_analyses")
        own = {name: options.pop(name) for name in names if name in options}
        return certify(policy, true, proba, objective=Risk(options.pop("target"), **own), **options)
    return certify(policy, true, proba, **options)


# What is kept of a case ------------------------------------------------------------------------


def _plain(value):
    """Return values as JSON holds them, but dates and what the texts say; long digests in short."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items() if k not in LEFT_OUT}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, str) and len(value) > 1500 and " " not in value:
        return hashlib.sha256(value.encode()).hexdigest()[:16]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _undated(certificate):
    """Return the text of a certificate and its details, without the day."""
    day = write_date(certificate.created)
    return f"{str(certificate).replace(f', {day}', '', 1)}\n--\n{certificate.details()}"


def _decide(policy, rows):
    """Return the decisions of a policy on 40 rows, a text or a list for each column."""
    kind = "three" if rows in ("three", "flat", "own") else "two"
    _, proba, own, site = _rows(kind, seed=7, n=40)
    options = {"y_pred": own} if policy.rule.decision == "estimator" else {}
    if policy.groups is not None and policy.groups.by != "predicted_class":
        options["subgroups"] = site
    if isinstance(policy.confidence, External):
        proba, options["confidence"] = None, proba.max(axis=1)
    table = policy.decide(proba, **options)
    assert_same(policy.decide_arrays(proba, **options), table)
    if not callable(policy.confidence) or isinstance(policy.confidence, External):
        assert_same(gate_of(policy).decide(proba, **options), table)
    assert table["accepted"].tolist() == table["label"].notna().tolist()
    words = ["label", "suggestion", *table.columns[5:]]
    texts = {name: " ".join(_short(one) for one in table[name]) for name in words}
    surest = proba is not None and table["confidence"].tolist() == proba.max(axis=1).tolist()
    confidence = "max" if surest else table["confidence"].tolist()
    at = table["threshold"].tolist()
    threshold = at[0] if len(set(at)) == 1 else at
    return texts | _plain({"confidence": confidence, "threshold": threshold})


def _short(value):
    if isinstance(value, tuple):
        return "/".join(str(one) for one in value)
    return "-" if value is pd.NA else str(value)


def _make(name):
    """Return what is kept of a policy: its JSON, texts and decisions, or what else was found."""
    case = POLICIES[name]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        policy, thresholds, certificates = _call(*case)
    kept = {"warnings": len(warned), "thresholds": _plain(thresholds)}
    kept["texts"] = {str(k): _undated(one) for k, one in certificates.items() if one is not None}
    if policy is None:
        given = {k: one.to_dict() for k, one in certificates.items() if one is not None}
        return kept | {"certificates": _plain(given)}
    stored = _plain(policy.to_dict(allow_external=True))
    if policy.confidence == "entropy":  # its logarithms may differ in the last bit
        stored["fingerprints"] = stored["certificate"]["fingerprints"] = {}
    if stored["certificate"] is not None and certificates:
        assert _undated(policy.certificate) == kept["texts"]["all"]
    stored["confidence_quantiles"] = list(stored["confidence_quantiles"].values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kept | {"policy": stored, "decisions": _decide(policy, case[1])}


def _make_check(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _call_check(*VERDICTS[name])
    text = re.sub(r"\d{4}-\d\d-\d\d", "2026-01-01", str(found))
    return {"text": text, "found": _plain(found.to_dict())}


VERDICTS = {_check_name(*check): check for check in CHECKS}


def _assert_same(new, old, place=""):
    """Compare values; computed numbers may differ in their last digits."""
    assert type(new) is type(old), place
    if isinstance(new, dict):
        assert list(new) == list(old), place
        for key, value in new.items():
            _assert_same(value, old[key], f"{place}/{key}")
    elif isinstance(new, list):
        assert len(new) == len(old), place
        for k, value in enumerate(new):
            _assert_same(value, old[k], place if isinstance(value, float) else f"{place}/{k}")
    elif isinstance(new, float) and not set(place.split("/")) & EXACT:
        assert new == pytest.approx(old, rel=RELATIVE, abs=0), place
    else:
        assert new == old, place


@functools.cache
def _stored():
    return json.loads(FILE.read_text())


@pytest.mark.parametrize("name", POLICIES)
def test_policies_stay_as_they_were(name):
    made = json.loads(json.dumps(_make(name)))
    _assert_same(made, _stored()[name])


@pytest.mark.parametrize("name", VERDICTS)
def test_certificates_and_verdicts_on_fresh_rows_stay_as_they_were(name):
    made = json.loads(json.dumps(_make_check(name)))
    _assert_same(made, _stored()[name])


def test_every_objective_method_and_verdict_has_a_case():
    assert set(_stored()) == {*POLICIES, *VERDICTS, "refusals"}
    found = {_stored()[name]["found"].get("verdict") for name in VERDICTS} - {None}
    assert found == {"broken", "in_doubt", "not_tested", "no_breach", "confirmed"}


def test_a_tuner_decides_as_its_policy():
    for name, case in POLICIES.items():
        if case[0] == "fit" and not case[3].get("shortlist"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                policy = _call(*case)[0]
                restored = AbstentionPolicy.from_json(policy.to_json())
            assert _decide(policy, case[1]) == _decide(restored, case[1]), name


# What is refused -------------------------------------------------------------------------------

NO = Risk(0.1, given_prediction="no")
#: The argument, and a case or a check. The file holds the full text of their messages, which
#: other tests leave alone.
REFUSED = [
    ("target", "table", "two", "risk", {"target": "0.1"}),
    ("target", "table", "two", "cwsa", {"target": 0.1}),
    ("method", "table", "two", Best("cwsa", method="combined"), {}),
    ("method", "table", "two", Cost(0.1, method="combined"), {}),
    ("method", "table", "two", GeneralizedRisk(0.1, method=Combined(0.5, 0.5)), {}),
    ("constraint", "table", "two", Best("cwsa", constraint=("risk", 1e-9)), {}),
    ("given_prediction", "table", "two", Risk(0.1, given_prediction="maybe"), {}),
    ("given_prediction", "table", "two", NO, {"subgroups": "predicted_class"}),
    ("given_prediction", "table", "graded", NO, {}),
    ("largest_weight", "table", "weights", Risk(0.2, largest_weight=1.0), {}),
    ("sample_weight", "table", "weights", Risk(0.2), {}),
    ("largest_weight", "table", "two", Risk(0.2, method="mean", largest_weight=1.0), {}),
    ("shortlist", "table", "three", Risk(0.1), {"shortlist": 1.5}),
    ("confidence", "table", "two", Risk(0.1), {"confidence": "expected_cost"}),
    ("loss", "table", "two", Risk(0.1, loss="cost"), {}),
    ("delta", "fit", "two", Risk(0.1, delta=1), {}),
    *((name, "fit", "two", Risk(0.1), {name: value}) for name, value in [
        ("refit", "never"), ("group_by", "city"), ("assume", "luck"), ("abstain_label", "no"),
    ]),
    ("target", "certify", "plain", {"target": 0.6, "seed": 2}),
    ("delta", "certify", "plain", {"target": 0.1, "delta": 0.0, "seed": 2}),
    ("max_analyses", "certify", "plain", {"target": 0.1, "max_analyses": 0, "seed": 2}),
    ("assume", "certify", "plain", {"target": 0.1, "assume": "fresh air", "seed": 2}),
    ("subgroups", "certify", "plain", {"target": 0.1, "subgroups": [1], "seed": 2}),
    ("target", "check_policy", "plain", {"seed": 2}),
    ("delta", "check_policy", "plain", {"target": 0.1, "delta": 0.9, "seed": 2}),
    ("max_analyses", "check_policy", "plain", {"target": 0.1, "max_analyses": 0, "seed": 2}),
]  # fmt: skip


def _refuse(argument, *case):
    """Return the message of a refused case, which names its argument."""
    call = _call_check if case[0] in ("certify", "check_policy") else _call
    return check_refused(argument, call, *case)


@pytest.mark.parametrize(("k", "case"), enumerate(REFUSED), ids=lambda one: str(one)[:60])
def test_illegal_calls_are_refused_by_the_name_of_the_argument(k, case):
    assert _refuse(*case) == _stored()["refusals"][k]


# Writing the file ------------------------------------------------------------------------------


def _numbers(value):
    """Return all numbers in some values and texts, and the decisions."""
    return re.findall(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?", json.dumps(value))


def _write():
    made = {name: _make(name) for name in POLICIES}
    made |= {name: _make_check(name) for name in VERDICTS}
    old = _stored() if FILE.exists() else {}
    for name in sorted({*old, *made} - {"refusals"}):
        for part in sorted({*old.get(name, ()), *made.get(name, ())}):
            now, before = (_numbers(table.get(name, {}).get(part)) for table in (made, old))
            if now != before:
                print(f"numbers changed: {name}: {part}")  # noqa: T201 - a script here
    made["refusals"] = [_refuse(*case) for case in REFUSED]
    lines = [json.dumps({name: one}, separators=(",", ":"))[1:-1] for name, one in made.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    _write()
