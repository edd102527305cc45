"""Docstrings fit on a screen or two, and a parameter means the same wherever it occurs."""

import dataclasses
import importlib
import inspect
import re
from collections import defaultdict
from pathlib import Path

import pytest

from skselect import SelectiveClassifier, SelectiveRiskMonitor, ThresholdTuner
from skselect.objectives import Objective
from tests.brute import named
from tests.test_docs import script

TESTS = Path(__file__).resolve().parent
LONGEST = 120

#: Parameters whose first sentence differs, and why. The keys of a mapping are callables that have
#: words of their own; of all others the first sentence is the same.
REASONS = {
    "curve": "each says which rows its curve is of",
    "cv": "folds of a calibration, or the rows that choose a threshold",
    "method": "each statistic and each objective has its own methods",
    "names": "columns of a curve, or scorers",
    "name": "a title, a legend, or a scorer",
    "kind": "a population, or what a table holds",
    "options": "each says what it passes on",
    "random_state": "each says what is drawn",
    "estimator": "what it must be able to do, or a formula of a metric",
    "when": "decisions and labels have times of their own",
    "features": "what a confidence learns from, or columns of a report",
    "alpha": {"cau_loss": "a weight, not a level", "soft_cwsa_loss": "a weight, not a level"},
    "average": {"cw_auc_score": "AUCs have means only"},
    "auxiliary": {"LearnedConfidence": "models, not what they said"},
    "delta": {
        "check_policy": "a verdict is wrong, no guarantee fails",
        **dict.fromkeys(
            ("SelectiveRiskMonitor", "detectable_risk"), "an alarm is false, no guarantee fails"
        ),
    },
    "eps": dict.fromkeys(("cau_components", "cau_cost_score", "cau_score"), "clips entropies"),
    "labels": {"Predictions.from_labels": "there are no columns"},
    "max_analyses": {"check_policy": "tests, no choices"},
    "metric": {"aumcc_score": "is integrated"},
    "min_coverage": dict.fromkeys(("get_scorer", "on_accepted"), "bounds a score, not a search"),
    "normalize": dict.fromkeys(("right_entropy_score", "wrong_entropy_score"), "a unit"),
    "objective": dict.fromkeys(
        ("certify", "check_policy", "SelectiveRiskMonitor"), "nothing is chosen"
    ),
    "others": dict.fromkeys(
        ("SelectiveState.merge", "SubgroupStates.merge"), "states, not what follows the rows"
    ),
    "paths": {"evaluate_parquet": "files of a cluster"},
    "power": {"detectable_risk": "an alarm, no certificate"},
    "risk": {"detectable_risk": "is watched, not certified"},
    "safeguard": {"TemperatureCalibrator": "has its own"},
    "target": dict.fromkeys(("cau_loss", "soft_cwsa_loss"), "classes, as in torch"),
    "thresholds": dict.fromkeys(
        ("RiskCoverageCurve.cwsa", "RiskCoverageCurve.cwsa_plus", "aumcc_score"),
        "where to evaluate, not what to keep",
    ),
    "y_proba": dict.fromkeys(
        ("AbstentionPolicy.decide", "SelectiveRiskMonitor.add_decisions",
         "SelectiveRiskMonitor.update", "certify", "check_policy"),
        "a policy reads raw output, which may be no probabilities",
    ),
}  # fmt: skip


def is_result(thing):
    """Say whether a class lists what users read, not what they pass."""
    if not inspect.isclass(thing) or issubclass(thing, Objective):
        return False
    return dataclasses.is_dataclass(thing) or issubclass(thing, tuple)


def callables():
    """Return public functions and classes, and the public methods of classes, by name."""
    found = {}
    names = (TESTS / "golden" / "public_names.txt").read_text().split()
    for line in [*names, *(one for some in script("make_api").RESULTS.values() for one in some)]:
        room, _, name = line.rpartition(".")
        thing = getattr(importlib.import_module(room), name)
        if not callable(thing) or not getattr(thing, "__doc__", None):
            continue
        found[f"{thing.__module__}.{name}"] = thing
        for own, method in vars(thing).items() if inspect.isclass(thing) else ():
            function = getattr(method, "__func__", method)
            if inspect.isfunction(function) and own[0] != "_" and function.__doc__:
                found[f"{thing.__module__}.{name}.{own}"] = function
    return found


CALLABLES = callables()


def is_excused(name, reason):
    """Say whether a callable has its own words for a parameter."""
    return isinstance(reason, str) or any(name.endswith(f".{one}") for one in reason)


def first_sentences(thing):
    """Return the first sentence on each parameter that is described alone."""
    text = inspect.getdoc(thing)
    section = re.search(r"(?ms)^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n---+$|\Z)", text)
    said = {}
    for entry in re.split(r"\n(?=\S)", section[1]) if section else []:
        head, _, body = entry.partition("\n")
        sentence = re.split(r"(?<=\.) (?=\S)", " ".join(body.split()))[0]
        if sentence and not re.match(r"As (in|for) ", sentence):
            said[head.split(" : ")[0].lstrip("*")] = sentence
    return {name: sentence for name, sentence in said.items() if "," not in name}


def test_a_parameter_of_one_name_has_one_description():
    said = defaultdict(lambda: defaultdict(list))
    for name, thing in CALLABLES.items():
        if not is_result(thing):
            for parameter, sentence in first_sentences(thing).items():
                if not is_excused(name, REASONS.get(parameter, {})):
                    said[parameter][sentence].append(name)
    differing = {parameter: dict(texts) for parameter, texts in said.items() if len(texts) > 1}
    assert differing == {}


def test_reasons_are_needed():
    said = {name: first_sentences(one) for name, one in CALLABLES.items() if not is_result(one)}
    for parameter, reason in REASONS.items():
        texts = {one[parameter] for one in said.values() if parameter in one}
        assert len(texts) > 1, parameter
        for key in () if isinstance(reason, str) else reason:
            assert any(name.endswith(f".{key}") and parameter in one for name, one in said.items())


def test_docstrings_fit_on_two_screens_and_their_pages_exist():
    for name, thing in CALLABLES.items():
        with named(name):
            assert len(thing.__doc__.splitlines()) <= LONGEST
            for page in re.findall(r":doc:`/([\w/]+)`", thing.__doc__):
                assert (TESTS.parent / "docs" / f"{page}.md").exists()


@pytest.mark.parametrize("thing", [ThresholdTuner, SelectiveClassifier, SelectiveRiskMonitor])
def test_an_example_comes_first_and_parameters_stand_in_their_order(thing):
    before, after = inspect.getdoc(thing).split("\nParameters\n")
    assert 6 <= len(re.findall(r"(?m)^(>>>|\.\.\.)", before)) <= 10
    described = re.findall(r"(?m)^(\w+) : |^(policy)$", after.split("\nAttributes\n")[0])
    assert list(map("".join, described)) == list(inspect.signature(thing).parameters)
