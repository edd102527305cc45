"""The contents of a report as plain values, which `render` turns into text and a page."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib.arrays import ROUNDING, BoolArray, FloatArray, IntArray, is_graded, rows_of_codes
from skselect._lib.checks.options import choose_draws
from skselect._lib.checks.rows import check_has_proba, check_subgroups
from skselect._lib.notebook import count
from skselect.bounds._csr import run_csr_test
from skselect.bounds._pointwise import clopper_pearson_interval
from skselect.curve.curve import count_deferred, count_within
from skselect.display.risk_coverage import plan_hours
from skselect.inference.by_group import Rate, rate_classes, tabulate_metric
from skselect.inference.intervals import Sampling, interval_around
from skselect.metrics._evaluate import GAPS, SPECS
from skselect.metrics._metric import MetricSpec
from skselect.metrics._rows import ScoredRows, score_rows
from skselect.metrics._threshold import count_decisions
from skselect.monitoring.check import PolicyCheck, check_decided
from skselect.monitoring.decided import check_answers_fit, chose_threshold, sample_of
from skselect.monitoring.guarantees import Request
from skselect.policy.certificate import threshold_to_json
from skselect.policy.policy import AbstentionPolicy, accept_answers, apply_policy
from skselect.policy.subgroups import name_of_subgroups, subgroup_codes
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions, are_verdicts, find_column_order
from skselect.report.questions import (
    assess_calibration,
    explain_metric,
    plan_monitor,
    verify_guarantee,
)
from skselect.thresholds import simultaneous_band

#: What a single model is called, unless it is given a name.
UNNAMED = "model"
# A verdict names so many subgroups that are guaranteed nothing, and counts the others.
_MANY_SUBGROUPS = 10
_COVERAGES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
_CALIBRATION = ("ece", "smooth_ece", "top_label_brier", "csr")
_TARGETS = (0.005, 0.01, 0.02, 0.05, 0.1)
#: Of more classes the report shows those that are missed most often.
MOST_CLASSES = 10
#: Bounds for all thresholds at once have at least this confidence.
LEAST_LEVEL = 0.5
_DRAWS, _MANY_ROWS = 999, 1_000_000


@dataclass(frozen=True, eq=False)
class Case:
    """One model of a report: its predictions, and what its policy decides.

    Parameters
    ----------
    name : str
    raw : Predictions
        As given.
    policy : AbstentionPolicy or None
    threshold : float or None
        None without threshold and policy, and where there is one threshold per subgroup.
    scored : ScoredRows
        Predictions after the policy's calibration, with the confidence that has the threshold.
    accepted : ndarray of bool, shape (n,), or None
        None: it accepts everything.
    """

    name: str
    raw: Predictions
    policy: AbstentionPolicy | None
    threshold: float | None
    scored: ScoredRows
    accepted: BoolArray | None


def make_case(
    name: str,
    raw: Predictions,
    policy: AbstentionPolicy | None,
    threshold: float | None,
    subgroups: Any,
) -> Case:
    """Apply a policy, or a threshold, to the predictions of a model."""
    if policy is None:
        scored = score_rows(raw)
        confidence = scored.outcomes.confidence
        accepted = None if threshold is None else confidence >= threshold
        return Case(name, raw, None, threshold, scored, accepted)
    check_answers_fit(policy, raw, f"predictions of {name!r}")
    if policy.response != "predict_proba":
        raise ValueError(
            "policy: it reads decision values, and a report is about probabilities; pass the "
            "calibrated ones, predict_proba(X), with threshold= instead of the policy."
        )
    own = subgroups if policy.parts.are_given else None
    single = policy.threshold if policy.parts.by is None else None
    learned = isinstance(policy.confidence, LearnedScore)
    if raw.y_proba is None and (policy.calibration is None or learned):
        # Answers with a confidence, but without probabilities: only the threshold can be applied.
        scored = score_rows(raw)
        accepted = accept_answers(policy, scored.outcomes.confidence, raw.answers, own)
        return Case(name, raw, policy, single, scored, accepted)
    scores = check_has_proba(raw.y_proba, "a policy with a calibration")
    decisions = apply_policy(policy, scores, raw.y_pred, own)
    same = np.array_equal(decisions.y_pred, raw.y_pred)  # then kept in memory once
    answers = raw.y_pred if same else decisions.y_pred
    rows = raw.y_true, answers, raw.classes, decisions.y_proba
    after = Predictions(*rows, rule=policy.rule, reviewer=raw.reviewer)
    scored = score_rows(after, confidence=decisions.confidence, correctness=decisions.claim)
    return Case(name, raw, policy, single, scored, decisions.accepted)


def make_contents(
    case: Case,
    subgroups: Any,
    ids: Any,
    features: Any,
    n_errors: int,
    level: float,
    seed: Any,
    reviewing: Mapping[str, float],
    audits: Any,
) -> dict[str, Any]:
    """Return the contents of the report about one model."""
    errors = case.scored.outcomes.loss
    noted = None if case.policy is None else case.policy.metadata.get("classifier")
    return {
        "name": case.name if case.name != UNNAMED else str(noted or "Model"),
        "n_rows": len(errors),
        "n_errors": int(np.count_nonzero(errors)),
        "accuracy": 1.0 - float(np.mean(errors)),
        "threshold": None if case.threshold is None else threshold_to_json(case.threshold),
        "columns": find_column_order(case.scored.predictions),
        "verdict": _verdict(case, subgroups, audits),
        "metrics": _metrics(case, level),
        "decisions": _decisions(case, level),
        "by_class": _by_class(case, level),
        "workload": _workload(case, level, reviewing),
        "coverages": _coverages(case),
        "calibration": _calibration(case, level, seed),
        "certificate": _certificate(case),
        "errors": _errors(case, ids, features, n_errors),
        **({"subgroups": None} if subgroups is None else _subgroups(case, subgroups, level)),
    }


def check_case(case: Case, subgroups: Any) -> PolicyCheck | None:
    """Check the policy's guarantee on these rows; None where there is nothing to check."""
    policy, accepted = case.policy, case.accepted
    if policy is None or accepted is None:
        return None
    own = policy.certificate
    scored = case.scored
    if own is not None and own.reads_reviewer and scored.predictions.reviewer is None:
        return None
    confidence = scored.outcomes.confidence
    sample = sample_of(scored.predictions, accepted, confidence, policy.rule.default_loss)
    return check_decided(policy, sample, subgroups, scored.curve, Request())


def _verdict(case: Case, subgroups: Any, audits: Any) -> dict[str, str] | None:
    """Return whether a policy keeps its guarantee on these rows, None without a policy."""
    check = check_case(case, subgroups)
    plan = [] if audits is None else [plan_monitor(check, audits)]
    if case.policy is None:
        return None
    trust = "" if check is None or check.same_rows else check.trust
    answer = verify_guarantee(case.policy, check)
    said = [answer.text, *_deferred(case.policy, case, subgroups), *plan]
    return {"verdict": answer.verdict, "text": "\n".join(said), "trust": trust}


def _deferred(policy: AbstentionPolicy, case: Case, subgroups: Any) -> list[str]:
    """Name the subgroups that are guaranteed nothing, because none of their cases is accepted."""
    groups, rows = policy.parts, case.scored.predictions
    if groups.by is None:
        return []
    sizes = dict.fromkeys(groups.thresholds, 0)
    sizes |= {x: len(own) for x, own in groups.members(rows.answers, subgroups).items()}
    missing = len(rows) - sum(sizes.values())
    none = {repr(x): n for x, n in sizes.items() if groups.thresholds.get(x, np.inf) == np.inf}
    none |= {"(missing)": missing} if missing else {}
    named = [f"{x} ({count(n, 'case')})" for x, n in none.items()]
    if named[_MANY_SUBGROUPS:]:
        named[_MANY_SUBGROUPS:] = [f"{len(named) - _MANY_SUBGROUPS:,} more"]
    said = f"Nothing is guaranteed for {groups.by} {', '.join(named)}: all of them are deferred."
    return [said] if named else []


def _metrics(case: Case, level: float) -> list[dict[str, Any]]:
    """Return each metric with its interval, where there is a closed form."""
    found = []
    for spec in sorted(SPECS.values(), key=lambda spec: spec.at_threshold):
        if not spec.meaning or (spec.at_threshold and case.threshold is None):
            continue
        parameters = {"threshold": case.threshold} if spec.at_threshold else {}
        rows = spec.choose_rows(case.scored)
        inside = is_unit(rows.outcomes) and 0 <= (parameters.get("threshold") or 0.0) < 1
        if spec.confidence != "any" and not inside:
            continue
        # The report shows nan and intervals.
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            value = spec.value(rows, parameters)
            low, high = _closed_interval(spec, rows, parameters, level)
        said = explain_metric(spec, value)
        measured = {"metric": spec.name, "value": value, "low": low, "high": high}
        found.append(measured | {"better": spec.better, "meaning": said})
    return found


def _closed_interval(
    spec: MetricSpec, rows: ScoredRows, parameters: dict[str, Any], level: float
) -> tuple[float, float]:
    """Return the interval of a metric from its closed form, nan where these rows have none."""
    influence = spec.influence(rows, parameters)
    if influence is None or np.isnan(influence.estimate):
        return np.nan, np.nan
    low, high, _, used = interval_around(influence, level)
    if used == "wilson":  # a report has exact intervals for all shares
        assert influence.n_trials is not None
        n_hits = round(influence.estimate * influence.n_trials)
        return clopper_pearson_interval(n_hits, influence.n_trials, level)
    return low, high


def _decisions(case: Case, level: float) -> dict[str, Any] | None:
    """Return coverage and risk; None if everything is accepted."""
    if case.accepted is None:
        return None
    rows, outcomes = case.scored.predictions, case.scored.outcomes
    found = _counts(outcomes.loss, case.accepted, level)
    if rows.rule.cost_matrix is not None and np.any(case.accepted):
        costs = Outcomes.of(rows, confidence=outcomes.confidence, loss="cost").loss
        found["mean_cost"] = rows.rule.unit * float(np.mean(costs[case.accepted]))
    return found


def _counts(loss: FloatArray, accepted: BoolArray, level: float) -> dict[str, Any]:
    n_accepted, wrong = int(np.sum(accepted)), float(np.sum(loss[accepted]))
    low = high = np.nan
    if not is_graded(loss):
        low, high = clopper_pearson_interval(wrong, n_accepted, level)
    return {
        "n_rows": len(loss),
        "n_accepted": n_accepted,
        "n_errors": wrong,
        "coverage": n_accepted / len(loss),
        "risk": wrong / n_accepted if n_accepted else np.nan,
        "low": low,
        "high": high,
        "n_right_deferred": float(np.sum(1.0 - loss[~accepted])),
    }


def _by_class(case: Case, level: float) -> dict[str, Any] | None:
    """Return what is answered for each true class, and its rates; None for verdicts."""
    if are_verdicts(case.scored.predictions):
        return None
    counted = replace(case.scored.predictions, sample_weight=None)  # a report counts rows
    rates = rate_classes(counted, case.accepted, level)
    shown, classes = _most_missed(rates), counted.classes.tolist()
    return {
        "n_classes": len(classes),
        "confusion": _confusion(case, shown),
        "rates": [
            {"class": str(classes[k])}
            | {
                rows: {name: _entry(rate, k) for name, rate in found.items()}
                for rows, found in rates.items()
            }
            for k in shown.tolist()
        ],
    }


def _most_missed(rates: dict[str, dict[str, Rate]]) -> IntArray:
    """Return the codes of all classes, or of those missed most often, the worst first."""
    always, alone = rates["all"]["missed"].n_hits, rates.get("accepted", rates["all"])["missed"]
    if len(always) <= MOST_CLASSES:
        return np.arange(len(always))
    return np.lexsort((-always, -alone.n_hits))[:MOST_CLASSES]


def _entry(rate: Rate, k: int) -> dict[str, Any]:
    """Return one class of a rate, as plain values."""
    return {name: values[k].item() for name, values in rate._asdict().items()}


def _confusion(case: Case, shown: IntArray) -> dict[str, Any]:
    """Return the confusion matrix with deferrals; classes that are not shown are one class."""
    rows, n = case.scored.predictions, len(shown)
    names = list(map(str, rows.classes[shown].tolist()))
    truth, answers = rows.y_true, rows.y_pred
    if len(rows.classes) > n:
        names.append("other classes")
        codes = np.full(len(rows.classes) + 1, n)
        codes[shown], codes[-1] = np.arange(n), -1  # the last place is that of unknown classes
        truth, answers = codes[truth], codes[answers]
    counts = count_decisions(truth, answers, case.accepted, len(names))
    unknown = ["unknown class"] if len(counts) > len(names) else []
    columns = names if case.accepted is None else [*names, "abstains"]
    table = counts[:, : len(columns)].tolist()
    return {"true": names + unknown, "answers": columns, "counts": table}


def _workload(case: Case, level: float, reviewing: Mapping[str, float]) -> dict[str, Any]:
    """Return what is deferred per 1,000 cases now, and at a few risk targets."""
    curve, rows, policy = case.scored.curve, case.scored.predictions, case.policy
    made, targets = None if policy is None else policy.certificate, np.array(_TARGETS)
    # A target of a cost matrix is a cost.
    if made and made.as_objective.is_selective and rows.rule.cost_matrix is None:
        targets = np.unique([*targets, made.target])
    chosen = count_within(curve.selective_risk, targets)
    surely = np.full(len(targets), np.nan)
    if curve.counted and level >= LEAST_LEVEL:
        surely = count_deferred(curve, simultaneous_band(curve, 1.0 - level), targets)
    found = []
    for target, n_blocks, most in zip(targets.tolist(), chosen.tolist(), surely, strict=True):
        coverage, risk = curve.working_point(n_blocks)
        threshold = curve.thresholds[n_blocks - 1] if n_blocks else np.inf
        point = {
            "target": target,
            "deferred": 1000.0 * (1.0 - coverage),
            "deferred_surely": float(most),
            "coverage": coverage,
            "risk": risk,
            "threshold": threshold if n_blocks else np.nan,
        }
        if "minutes" in reviewing:
            point["hours"] = 1000.0 * (1.0 - coverage) * reviewing["minutes"] / 60.0
        if "hourly_cost" in reviewing:
            point["cost"] = point["hours"] * reviewing["hourly_cost"]
        if "error" in reviewing:
            missed = reviewing["error"] * (1.0 - coverage)
            point["together"] = missed + (coverage * risk if n_blocks else 0.0)
        if rows.reviewer is not None:
            answers = case.scored.outcomes.confidence >= threshold
            wrong = np.where(answers, rows.y_pred, rows.reviewer) != rows.y_true
            point["together"] = float(np.mean(wrong))
        found.append(point)
    now = None if case.accepted is None else 1000.0 * float(np.mean(~case.accepted))
    capacity = None
    if policy is not None and policy.coverage is not None and policy.n is not None:
        capacity = policy.capacity_needed(1000)
    answer = None
    if "hours" in reviewing:
        certified = made is not None and made.is_certified and not made.as_objective.is_least
        share = float(np.mean(case.accepted)) if certified and case.accepted is not None else None
        _, answer = plan_hours(curve, reviewing, reviewing.get("error"), share)
    return {"deferred_now": now, "capacity": capacity, "targets": found, "answer": answer}


def _coverages(case: Case) -> list[dict[str, float]]:
    """Return risk and threshold at a few coverages."""
    curve = case.scored.curve
    entries = np.searchsorted(curve.coverage[:-1], np.array(_COVERAGES) - ROUNDING)
    return [
        {
            "coverage": float(curve.coverage[entry]),
            "risk": float(curve.selective_risk[entry]),
            "threshold": float(curve.thresholds[entry]),
        }
        for entry in np.unique(entries).tolist()  # ties may reach several coverages at once
    ]


def is_unit(outcomes: Outcomes) -> bool:
    """Tell whether all confidences lie in [0, 1]."""
    return bool(outcomes.confidence.min() >= 0 and outcomes.confidence.max() <= 1)


def find_claims(case: Case) -> list[tuple[str, ScoredRows]]:
    """Return rows with claimed probabilities, before and after the policy's calibration."""
    policy, after = case.policy, case.scored.by_correctness
    if policy is None or policy.calibration is None or case.raw.y_proba is None:
        return [("as given", after)]
    before = score_rows(case.raw).by_correctness
    return [("before calibration", before), ("after calibration", after)]


def _calibration(case: Case, level: float, seed: Any) -> list[dict[str, Any]]:
    """Return how well the confidence is calibrated, before and after the policy's calibration."""
    if not is_unit(case.scored.by_correctness.outcomes):
        return []
    return [_measure_calibration(state, rows, level, seed) for state, rows in find_claims(case)]


def _measure_calibration(state: str, scored: ScoredRows, level: float, seed: Any) -> dict[str, Any]:
    outcomes = scored.outcomes
    n_draws = _count_draws(len(outcomes.loss), level)
    test = run_csr_test(outcomes, n_draws=n_draws, random_state=np.random.default_rng(seed))
    return {
        "state": state,
        "mean_confidence": float(np.mean(outcomes.confidence)),
        "accuracy": 1.0 - float(np.mean(outcomes.loss)),
        "csr_p_value": float(test.p_value),
        "answer": assess_calibration(outcomes, test.p_value, level, state).text,
    } | {name: SPECS[name].value(scored, {}) for name in _CALIBRATION}


def _count_draws(n_rows: int, level: float) -> int:
    """Return how many classifiers to simulate: the p-value is exact with any number of them.

    Of many rows each takes long, so that there are only as many as can tell a p-value of a tenth
    of 1 - `level`. Three tests share 1 - `level`.
    """
    usual = _DRAWS if n_rows <= _MANY_ROWS else min(_DRAWS, round(10.0 / (1.0 - level)) - 1)
    return choose_draws(None, usual, (1.0 - level) / 3.0, 1)


def _certificate(case: Case) -> dict[str, Any] | None:
    """Return the texts of the policy's certificates."""
    policy = case.policy
    if policy is None:
        return None
    groups, by_subgroup, made = policy.parts, None, {"": policy.certificate}
    if groups.by is not None:
        by_subgroup = {
            "table": groups.tabulate().to_dict("records"),
            "together": groups.together,
            "texts": {str(key): text for key, text in groups.texts.items()},
        }
        made = {str(key): groups.certificates.get(key) for key in groups.thresholds}
    return {
        "certified": all(one is not None and one.is_certified for one in made.values()),
        "texts": {key: str(one) for key, one in made.items() if one is not None},
        "created": policy.created,
        "n": policy.n,
        "by_subgroup": by_subgroup,
        "same_rows": chose_threshold(policy, case.scored.curve),
    }


def _errors(case: Case, ids: Any, features: Any, n_errors: int) -> list[dict[str, Any]]:
    """Return the most confident errors, one dict each; answered ones first."""
    outcomes, rows, accepted = case.scored.outcomes, case.scored.predictions, case.accepted
    wrong = np.flatnonzero(outcomes.loss > 0)
    deferred = np.zeros(len(wrong)) if accepted is None else ~accepted[wrong]
    worst = wrong[np.lexsort((-outcomes.confidence[wrong], deferred))][:n_errors]
    names = [*rows.classes.tolist(), "unknown class"]  # the last place is that of the code -1
    found: dict[str, Sequence[Any]] = {
        "row": worst.tolist(),
        "true": [names[k] for k in rows.y_true[worst]],
        "answered": [names[k] for k in rows.y_pred[worst]],
        "confidence": outcomes.confidence[worst].tolist(),
    }
    if accepted is not None:
        found["accepted"] = accepted[worst].tolist()
    if ids is not None:
        found["id"] = _to_json_values(ids.iloc[worst])
    shown = pd.DataFrame(index=worst) if features is None else features.iloc[worst]
    columns = {str(name): _to_json_values(column) for name, column in shown.items()}
    found["features"] = [{name: columns[name][k] for name in columns} for k in range(len(worst))]
    return [{name: found[name][k] for name in found} for k in range(len(worst))]


def _to_json_values(column: pd.Series) -> list[Any]:
    """Return values that JSON can hold."""
    plain = [x.item() if isinstance(x, np.generic) else x for x in column.tolist()]
    return [x if isinstance(x, str | int | float | None) else str(x) for x in plain]


def _subgroups(case: Case, subgroups: Any, level: float) -> dict[str, Any]:
    """Return coverage and risk of each subgroup, attribute by attribute, and how they differ."""
    loss = case.scored.outcomes.loss
    every = np.ones(len(loss), dtype=bool)
    accepted = every if case.accepted is None else case.accepted
    decided = ScoredRows(Outcomes(loss, accepted.astype(np.float64)))
    gaps = ["risk_gap"] if case.accepted is None else list(GAPS)
    how = Sampling(np.random.default_rng(0), level)
    frame = check_subgroups(subgroups, len(loss))
    named = hasattr(subgroups, "columns") or hasattr(subgroups, "keys")  # a table, of any make
    found, apart = [], []
    for attribute, column in frame.items():
        name = {"attribute": str(attribute) if named else name_of_subgroups(subgroups)}
        codes, keys = subgroup_codes(column, len(loss))
        names = [*map(str, keys), "(missing)"]
        members = rows_of_codes(codes % len(names), len(names))  # -1, missing, comes last
        rows_of = [(key, rows) for key, rows in zip(names, members, strict=True) if len(rows)]
        for key, rows in rows_of:
            found.append(name | {"subgroup": key} | _counts(loss[rows], accepted[rows], level))
        for gap in gaps if len(rows_of) > 1 else []:
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # it shows nan
                known = tabulate_metric(GAPS[gap], decided, {"subgroups": column}, how)
            apart.append(name | {key: known[key] for key in ("metric", "value", "low", "high")})
    return {"subgroups": found, "gaps": apart}


def count_classes(y_true: IntArray, classes: Any) -> dict[str, int]:
    """Return the number of rows of each class."""
    counts = {str(label): int(np.sum(y_true == k)) for k, label in enumerate(classes.tolist())}
    unknown = int(np.sum(y_true < 0))
    return counts | ({"unknown class": unknown} if unknown else {})
