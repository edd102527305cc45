"""Objectives of several subgroups, and conformal risk control for silent failures."""

import re
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator

from skselect import (
    AbstentionPolicy,
    Best,
    Cost,
    Coverage,
    GeneralizedRisk,
    InfeasibleTargetError,
    Outcomes,
    PrecomputedClassifier,
    Predictions,
    Risk,
    SelectiveClassifier,
    SelectiveRiskMonitor,
    SelectiveState,
    SystemRisk,
    ThresholdTuner,
    certify,
    check_policy,
    select_threshold,
    selective_report,
)
from skselect.objectives import name_options
from skselect.thresholds import rows_needed
from tests.common import check_schema

SURE = Outcomes(np.zeros(400), np.linspace(0.6, 0.9, 400))
GROUPS = np.arange(400) % 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Risk(0.1, method="empirical"), Risk(0.1)),
        (Risk(0.1), Risk(0.1, method="empirical")),
        (Cost(0.1, method="chow"), Cost(0.1)),
    ],
)
def test_what_holds_for_all_subgroups_cannot_depend_on_which_comes_first(first, second):
    """Else rows that trained the classifier, or set the threshold, were taken for fresh ones."""
    with pytest.raises(ValueError, match=re.escape(f"{second!r} stands beside {first!r}")):
        select_threshold(SURE, objective={0: first, 1: second}, subgroups=GROUPS)
    X, y = np.arange(400.0)[:, None], GROUPS
    fitted = FrozenEstimator(SelectiveClassifier(DummyClassifier(strategy="prior")).fit(X, y))
    tuner = ThresholdTuner(fitted, {0: first, 1: second}, group_by=lambda X: X[:, 0] % 2)
    with pytest.raises(ValueError, match="all look at the rows, or none does"):
        tuner.fit(X, y)


def test_no_subgroup_has_a_guarantee_about_the_rows_of_one_class():
    objectives = {0: Risk(0.1), 1: Risk(0.1, given_class=1)}
    with pytest.raises(ValueError, match="given_class does not go with subgroups: each subgroup"):
        select_threshold(SURE, objective=objectives, subgroups=GROUPS)
    tuner = ThresholdTuner(DummyClassifier(), objectives, group_by=lambda X: X[:, 0] % 2)
    with pytest.raises(ValueError, match="given_class does not go with group_by: each subgroup"):
        tuner.fit(np.arange(400.0)[:, None], GROUPS)


@pytest.mark.parametrize("loss", [np.repeat([0.0, 1.0], [60, 39]), np.linspace(0, 0.5, 99)])
def test_conformal_risk_control_says_what_it_could_have_met(loss):
    confidence = np.linspace(0.9, 0.6, 99)  # errors at the end
    rows = Outcomes(loss, confidence)

    def found(target):
        objective = GeneralizedRisk(target, method="mean")
        return select_threshold(rows, objective=objective, assume="independent")

    with pytest.raises(InfeasibleTargetError) as caught:
        found(0.0099)
    assert caught.value.least_target == pytest.approx((loss[0] + 1) / 100)
    assert caught.value.rows_needed == 101  # 1 / 102 < 0.0099 < 1 / 101
    selection = found(caught.value.least_target)
    assert selection.certificate.n_accepted >= 1
    assert selection.certificate.rows_needed == 99


@pytest.mark.parametrize(
    ("word", "options", "takers"),
    [
        ("risk", {"threshold_range": (0, 1)}, "['cwsa_plus', 'cwsa', 'selective_accuracy']"),
        ("coverage", {"min_coverage": 0.3}, "['cwsa_plus', 'cwsa', 'selective_accuracy', 'risk']"),
        ("cost", {"delta": 0.1}, "['risk', 'generalized_risk', 'coverage', 'system_risk']"),
    ],
)
def test_an_option_of_another_objective_is_refused_by_the_words_that_take_it(word, options, takers):
    [name] = options
    found = re.escape(f"{name} goes with the objectives {takers}, not with {word!r}; leave it out.")
    with pytest.raises(ValueError, match=found):
        name_options(word, 0.5, **options)


def test_a_certificate_needs_an_objective():
    policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    with pytest.raises(ValueError, match=r"objective must be one of \['risk', .* got None"):
        certify(policy, [1], [[0.1, 0.9]], objective=None)


def test_objectives_are_imported_first_by_a_command():
    """A command imports what it uses, and not all names of the package."""
    code = "import sys; sys.argv = ['skselect']; import skselect.objectives"
    code += "; assert 'skselect.display' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


# Every objective in every place: it works there, or is refused by name ---------------------------


STATED = {
    "risk": Risk(0.3),
    "generalized_risk": GeneralizedRisk(0.3),
    "coverage": Coverage(0.5),
    "cost": Cost(0.4),
    "system_risk": SystemRisk(0.3),
    "system_risk, bound": SystemRisk(0.4, reviewer_error=0.1),
    "cwsa_plus": Best(),
}
WITH_GUARANTEE = {"risk", "generalized_risk", "coverage", "system_risk, bound"}
ABOUT_A_PART = set(STATED) - {"system_risk", "system_risk, bound"}


@cache
def _rows():
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1, 1500)
    answer, wrong = rng.integers(0, 2, 1500), rng.random(1500) > sure
    proba = np.where(answer[:, None] == [0, 1], sure[:, None], 1 - sure[:, None])
    return np.where(wrong, 1 - answer, answer), proba


def _reviewed(objective):
    """Return what a person who is wrong in every tenth case answers, where that is read."""
    wrong = np.random.default_rng(1).random(1500) < 0.1
    return np.where(wrong, 1 - _rows()[0], _rows()[0]) if objective.reads_reviewer else None


def _table(**options):
    return Predictions.from_proba(*_rows(), labels=[0, 1], **options)


def _policy(objective):
    rows = _table(reviewer=_reviewed(objective))
    return select_threshold(rows, objective=objective).policy


def _fit(objective):
    y, proba = _rows()
    frozen = FrozenEstimator(PrecomputedClassifier([0, 1]).fit(proba, y))
    tuner = ThresholdTuner(frozen, objective, assume="fresh")
    return tuner.fit(proba, y, reviewer_pred=_reviewed(objective))


def _decides(objective):
    policy = _policy(objective)
    check_schema(policy.to_json())
    gate: dict = {"__name__": "gate"}
    exec(str(policy.to_python()), gate)
    accepted = AbstentionPolicy.from_json(policy.to_json()).decide(_rows()[1])["accepted"]
    assert list(gate["decide"](_rows()[1])["accepted"]) == accepted.tolist()


#: What is called, and the objectives that it takes.
PLACES = {
    "tuner": (_fit, STATED),
    "table": (_policy, STATED),
    "state": (
        lambda one: select_threshold(
            SelectiveState(labels=[0, 1]).update(*_rows()).finalize(), objective=one
        ),
        set(STATED) - {"system_risk"},
    ),
    "subgroups": (
        lambda one: select_threshold(
            _table(), objective=one, subgroups=np.resize(["a", "b"], 1500)
        ),
        ABOUT_A_PART,
    ),
    "costs": (
        lambda one: select_threshold(
            _table(decision="min_cost", cost_matrix=[[0, 1], [1, 0]], reviewer=_reviewed(one)),
            objective=one,
        ),
        STATED,
    ),
    "file, schema and gate": (_decides, STATED),
    "report": (lambda one: selective_report(None, _table(), policy=_policy(one)), STATED),
    "certify": (
        lambda one: certify(_policy(Risk(0.3)), *_rows(), objective=one),
        WITH_GUARANTEE,
    ),
    "check_policy": (
        lambda one: check_policy(_policy(Risk(0.3)), *_rows(), objective=one),
        WITH_GUARANTEE,
    ),
    "certify, reviewed": (
        lambda one: certify(
            _policy(Risk(0.3)), _table(reviewer=_reviewed(SystemRisk(0.3))), objective=one
        ),
        {"risk", "generalized_risk", "coverage", "system_risk"},
    ),
    "check_policy, reviewed": (
        lambda one: check_policy(
            _policy(Risk(0.3)), _table(reviewer=_reviewed(SystemRisk(0.3))), objective=one
        ),
        WITH_GUARANTEE | {"system_risk"},
    ),
    "check_policy, state": (
        lambda one: check_policy(
            _policy(Risk(0.3)), SelectiveState(labels=[0, 1]).update(*_rows()), objective=one
        ),
        WITH_GUARANTEE,
    ),
    "monitor": (
        lambda one: SelectiveRiskMonitor(_policy(Risk(0.3)), objective=one),
        {"risk"},
    ),
    "rows_needed": (rows_needed, {"risk"}),
}


@pytest.mark.filterwarnings("ignore:cwsa_plus|min_coverage")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", STATED)
def test_every_objective_works_in_every_place_or_is_refused_by_name(place, word):
    call, taken = PLACES[place]
    if word in taken:
        call(STATED[word])
    else:
        with pytest.raises(ValueError, match="objective"):
            call(STATED[word])
