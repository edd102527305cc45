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
from skselect._lib.notebook import count, rounded
from skselect.bounds._csr import run_csr_test
from skselect.bounds._pointwise import clopper_pearson_interval
from skselect.curve.curve import RiskCoverageCurve, count_deferred, count_within
from skselect.display.risk_coverage import plan_hours
from skselect.inference.by_group import Rate, rate_classes, tabulate_metric
from skselect.inference.intervals import Sampling, interval_around
from skselect.metrics._evaluate import GAPS, SPECS
from skselect.metrics._metric import MetricSpec
from skselect.metrics._rows import ScoredRows, score_rows
from skselect.metrics._threshold import count_decisions
from skselect.monitoring.check import PolicyCheck, check_decided
from skselect.monitoring.decided import (
    check_answers_fit,
    check_scores_fit,
    chose_threshold,
    sample_of,
)
from skselect.monitoring.guarantees import Request
from skselect.objectives import Loss
from skselect.policy.certificate import Certificate, threshold_to_json
from skselect.policy.policy import AbstentionPolicy, accept_answers, apply_policy
from skselect.policy.subgroups import name_of_subgroups, subgroup_codes
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import (
    Predictions,
    are_verdicts,
    find_column_order,
    hold_decision_values,
    raw_scores,
)
from skselect.report.glance import UNKNOWN_MODEL
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
# Limits of the mean cost of an answer, as shares of that of always answering.
_COST_SHARES = (0.1, 0.2, 0.3, 0.5, 0.75)
#: Of more classes the report shows those that are missed most often.
MOST_CLASSES = 10
#: Bounds for all thresholds at once have at least this confidence.
LEAST_LEVEL = 0.5
_DRAWS = 999
_MANY_ROWS = 1_000_000
# How a report calls a class that the classifier does not know.
_UNKNOWN = "unknown class"


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

    @property
    def certificate(self) -> Certificate | None:
        """What the policy guarantees with a single threshold, None without."""
        return None if self.policy is None else self.policy.certificate

    @property
    def has_costs(self) -> bool:
        """Whether each kind of error has a cost of its own."""
        return self.scored.predictions.rule.cost_matrix is not None


@dataclass(frozen=True, eq=False)
class Options:
    """What a report is asked for beside its models, checked.

    Parameters
    ----------
    level : float
        Of each interval.
    seed : int
    subgroups : array-like, DataFrame or None
        Of the rows, as given.
    ids : Series or None
        The name of each row.
    features : DataFrame or None
        Shown beside the most confident errors.
    n_errors : int
        How many of these are listed.
    review : mapping of str to float
        What is known of a reviewer and his hours.
    audits : tuple or None
        How a policy will be watched.
    """

    level: float
    seed: Any
    subgroups: Any
    ids: pd.Series | None
    features: pd.DataFrame | None
    n_errors: int
    review: Mapping[str, float]
    audits: Any


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
        accepted = None
        if threshold is not None:
            accepted = scored.at_threshold.outcomes.confidence >= threshold
        return Case(name, raw, None, threshold, scored, accepted)
    check_answers_fit(policy, raw, f"predictions of {name!r}")
    if policy.response == "decision_function" or hold_decision_values(raw):
        check_scores_fit(policy, raw)
    scored, accepted = _decide(policy, raw, subgroups)
    single_threshold = policy.threshold if policy.parts.by is None else None
    return Case(name, raw, policy, single_threshold, scored, accepted)


def _decide(
    policy: AbstentionPolicy, raw: Predictions, subgroups: Any
) -> tuple[ScoredRows, BoolArray]:
    """Return the rows as a policy sees them, and which of them it accepts."""
    if not policy.parts.are_given:
        subgroups = None
    is_learned = isinstance(policy.confidence, LearnedScore)
    needs_proba = policy.calibration is not None and not is_learned
    if raw.y_proba is None and not needs_proba:
        # Answers with a confidence, but without probabilities: only the threshold can be applied.
        scored = score_rows(raw)
        confidence = scored.outcomes.confidence
        return scored, accept_answers(policy, confidence, raw.answers, subgroups)
    if not hold_decision_values(raw):
        check_has_proba(raw.y_proba, "a policy with a calibration")
    decisions = apply_policy(policy, raw_scores(raw), raw.y_pred, subgroups)
    answers = decisions.y_pred
    if np.array_equal(answers, raw.y_pred):
        answers = raw.y_pred  # kept in memory once
    decided = Predictions(
        raw.y_true,
        answers,
        raw.classes,
        decisions.y_proba,
        rule=policy.rule,
        reviewer=raw.reviewer,
    )
    confidence = decisions.fill(decisions.confidence)
    scored = score_rows(decided, confidence=confidence, correctness=decisions.fill(decisions.claim))
    return scored, decisions.accepted


def make_contents(case: Case, options: Options) -> dict[str, Any]:
    """Return the contents of the report about one model."""
    errors = case.scored.outcomes.loss
    threshold = case.threshold
    subgroup_parts: dict[str, Any] = {"subgroups": None}
    if options.subgroups is not None:
        subgroup_parts = _subgroups(case, options)
    return {
        "name": _name_model(case),
        "n_rows": len(errors),
        "n_errors": int(np.count_nonzero(errors)),
        "accuracy": 1.0 - float(np.mean(errors)),
        "threshold": None if threshold is None else threshold_to_json(threshold),
        "columns": find_column_order(case.scored.predictions),
        "verdict": _verdict(case, options),
        "metrics": _metrics(case, options.level),
        "always": _counts(errors, np.ones(len(errors), dtype=bool), options.level),
        "decisions": _decisions(case, options.level),
        "costs": _costs(case),
        "guarantee": _guarantee(case),
        "by_class": _by_class(case, options.level),
        "workload": _workload(case, options),
        "coverages": _coverages(case),
        "calibration": _calibration(case, options),
        "certificate": _certificate(case),
        "errors": _errors(case, options),
        **subgroup_parts,
    }


def _name_model(case: Case) -> str:
    """Return the user's name of a model, or that of its classifier."""
    if case.name != UNNAMED:
        return case.name
    classifier = None if case.policy is None else case.policy.metadata.get("classifier")
    return str(classifier or UNKNOWN_MODEL)


# Its guarantee ----------------------------------------------------------------------------


def check_case(case: Case, subgroups: Any) -> PolicyCheck | None:
    """Check the policy's guarantee on these rows; None where there is nothing to check."""
    policy = case.policy
    if policy is None or case.accepted is None:
        return None
    predictions = case.scored.predictions
    certificate = policy.certificate
    if certificate is not None and certificate.reads_reviewer and predictions.reviewer is None:
        return None
    sample = sample_of(
        predictions,
        case.accepted,
        case.scored.outcomes.confidence,
        policy.rule.default_loss,
        case.scored.curve,
    )
    return check_decided(policy, sample, subgroups, Request())


def _verdict(case: Case, options: Options) -> dict[str, Any] | None:
    """Return whether a policy keeps its guarantee on these rows, None without a policy."""
    check = check_case(case, options.subgroups)
    plan = []
    if options.audits is not None:
        plan.append(plan_monitor(check, options.audits))
    if case.policy is None:
        return None
    trust = ""
    if check is not None and not check.same_rows:
        trust = check.trust
    answer = verify_guarantee(case.policy, check)
    deferred = _deferred(case.policy, case, options.subgroups)
    lines = [answer.text, *deferred, *plan]
    n_guarantees = 0 if check is None else len(check.guarantees)
    return {
        "verdict": answer.verdict,
        "text": "\n".join(lines),
        "trust": trust,
        "n_guarantees": n_guarantees,
    }


def _deferred(policy: AbstentionPolicy, case: Case, subgroups: Any) -> list[str]:
    """Name the subgroups that are guaranteed nothing, because none of their cases is accepted."""
    parts = policy.parts
    if parts.by is None:
        return []
    rows = case.scored.predictions
    sizes = dict.fromkeys(parts.thresholds, 0)
    for subgroup, members in parts.members(rows.answers, subgroups).items():
        sizes[subgroup] = len(members)
    names = []
    for subgroup, n in sizes.items():
        if parts.thresholds.get(subgroup, np.inf) == np.inf:
            names.append(f"{subgroup!r} ({count(n, 'case')})")
    n_missing = len(rows) - sum(sizes.values())
    if n_missing:
        names.append(f"(missing) ({count(n_missing, 'case')})")
    if not names:
        return []
    n_more = len(names) - _MANY_SUBGROUPS
    if n_more > 0:
        names[_MANY_SUBGROUPS:] = [f"{n_more:,} more"]
    listed = ", ".join(names)
    return [f"Nothing is guaranteed for {parts.by} {listed}: all of them are deferred."]


def _guarantee(case: Case) -> dict[str, str]:
    """Say what is guaranteed, beside the share of answers and beside that of wrong ones."""
    words = {"coverage": "", "risk": ""}
    if case.accepted is None:
        return words
    words["risk"] = "nothing is guaranteed"
    if case.policy is None:
        return words
    parts = case.policy.parts
    certified = [certificate for certificate in parts.listed if certificate.is_certified]
    if parts.by is not None:
        if certified:
            words["risk"] = f"a guarantee for each of {count(len(certified), parts.by)}"
        return words
    limits = []
    for certificate in certified:
        objective = certificate.as_objective
        is_of_all = not certificate.cases
        if objective.is_least and is_of_all:
            words["coverage"] = f"guaranteed: at least {certificate.bound}"
            words["risk"] = "no limit is guaranteed"
        elif objective.is_selective and Loss(certificate.loss).is_error and is_of_all:
            limits.append(f"at most {certificate.bound}")
        else:
            limits.append(certificate.statement)
    if limits:
        words["risk"] = f"guaranteed: {'; '.join(limits)}"
    return words


def _certificate(case: Case) -> dict[str, Any] | None:
    """Return the texts of the policy's certificates."""
    policy = case.policy
    if policy is None:
        return None
    parts = policy.parts
    by_subgroup = None
    certificates: dict[str, Certificate | None] = {"": policy.certificate}
    if parts.by is not None:
        by_subgroup = {
            "table": parts.tabulate().to_dict("records"),
            "together": parts.together,
            "texts": {str(key): text for key, text in parts.texts.items()},
        }
        certificates = {str(key): parts.certificates.get(key) for key in parts.thresholds}
    issued = {key: x for key, x in certificates.items() if x is not None}
    are_certified = [certificate.is_certified for certificate in issued.values()]
    return {
        "certified": len(issued) == len(certificates) and all(are_certified),
        "texts": {key: str(certificate) for key, certificate in issued.items()},
        "created": policy.created,
        "n": policy.n,
        "by_subgroup": by_subgroup,
        "same_rows": chose_threshold(policy, case.scored.curve),
    }


# Its metrics ------------------------------------------------------------------------------


def _metrics(case: Case, level: float) -> list[dict[str, Any]]:
    """Return each metric with its interval, where there is a closed form."""
    specs = sorted(SPECS.values(), key=lambda spec: spec.at_threshold)
    values = [_measure(spec, case, level) for spec in specs if _is_shown(spec, case)]
    return [value for value in values if value is not None]


def _is_shown(spec: MetricSpec, case: Case) -> bool:
    """Tell whether a report explains a metric, and has the threshold that it needs."""
    has_threshold = case.threshold is not None
    return bool(spec.meaning) and (has_threshold or not spec.at_threshold)


def _measure(spec: MetricSpec, case: Case, level: float) -> dict[str, Any] | None:
    """Return a metric with its interval; None where it needs a confidence in [0, 1]."""
    parameters: dict[str, Any] = {}
    if spec.at_threshold:
        parameters["threshold"] = case.threshold
    rows = spec.choose_rows(case.scored)
    if spec.confidence != "any":
        threshold = parameters.get("threshold") or 0.0
        if not is_unit(rows.outcomes) or not 0 <= threshold < 1:
            return None
    # The report shows nan and intervals.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        value = spec.value(rows, parameters)
        low, high = _closed_interval(spec, rows, parameters, level)
    return {
        "metric": spec.name,
        "value": value,
        "low": low,
        "high": high,
        "better": spec.better,
        "meaning": explain_metric(spec, value),
    }


def _closed_interval(
    spec: MetricSpec, rows: ScoredRows, parameters: dict[str, Any], level: float
) -> tuple[float, float]:
    """Return the interval of a metric from its closed form, nan where these rows have none."""
    influence = spec.influence(rows, parameters)
    if influence is None or np.isnan(influence.estimate):
        return np.nan, np.nan
    low, high, _, method = interval_around(influence, level)
    if method == "wilson":  # a report has exact intervals for all shares
        assert influence.n_trials is not None
        n_hits = round(influence.estimate * influence.n_trials)
        return clopper_pearson_interval(n_hits, influence.n_trials, level)
    return low, high


def is_unit(outcomes: Outcomes) -> bool:
    """Tell whether all confidences lie in [0, 1]."""
    lowest = outcomes.confidence.min()
    highest = outcomes.confidence.max()
    return bool(lowest >= 0 and highest <= 1)


# What it decides --------------------------------------------------------------------------


def _decisions(case: Case, level: float) -> dict[str, Any] | None:
    """Return coverage and risk; None if everything is accepted."""
    if case.accepted is None:
        return None
    rows = case.scored.predictions
    outcomes = case.scored.outcomes
    counts = _counts(outcomes.loss, case.accepted, level)
    if rows.rule.cost_matrix is not None and np.any(case.accepted):
        costs = find_costs(case).loss
        counts["mean_cost"] = rows.rule.unit * float(np.mean(costs[case.accepted]))
    return counts


def find_costs(case: Case) -> Outcomes:
    """Return what each answer costs, as a share of the largest cost."""
    confidence = case.scored.outcomes.confidence
    return Outcomes.of(case.scored.predictions, confidence=confidence, loss="cost")


def _costs(case: Case) -> dict[str, float | None] | None:
    """Return what the answers cost in all; None without a cost matrix."""
    rows = case.scored.predictions
    rule = rows.rule
    if rule.cost_matrix is None:
        return None
    outcomes = find_costs(case)
    accepted = find_accepted(case)
    answered = rule.unit * float(np.sum(outcomes.loss[accepted]))
    together = None
    if rows.reviewer is not None:
        of_reviewer = rule.costs(rows.y_true, rows.reviewer)
        of_reviewer[rows.reviewer < 0] = 1.0  # an answer that is no class costs most
        together = answered + rule.unit * float(np.sum(of_reviewer[~accepted]))
    return {
        "always": rule.unit * float(np.sum(outcomes.loss)),
        "answered": answered,
        "together": together,
    }


def _counts(loss: FloatArray, accepted: BoolArray, level: float) -> dict[str, Any]:
    """Return how many rows are accepted, and how many of these are wrong."""
    n_rows = len(loss)
    n_accepted = int(np.sum(accepted))
    n_errors = float(np.sum(loss[accepted]))
    right_deferred = 1.0 - loss[~accepted]
    interval: Any = (np.nan, np.nan)
    if not is_graded(loss):
        interval = clopper_pearson_interval(n_errors, n_accepted, level)
    low, high = interval
    return {
        "n_rows": n_rows,
        "n_accepted": n_accepted,
        "n_errors": n_errors,
        "coverage": n_accepted / n_rows,
        "risk": n_errors / n_accepted if n_accepted else np.nan,
        "low": low,
        "high": high,
        "n_right_deferred": float(np.sum(right_deferred)),
    }


def _coverages(case: Case) -> list[dict[str, float]]:
    """Return risk and threshold at a few coverages."""
    curve = case.scored.curve
    shares = np.array(_COVERAGES) - ROUNDING
    entries = np.searchsorted(curve.coverage[:-1], shares)
    return [
        {
            "coverage": float(curve.coverage[entry]),
            "risk": float(curve.selective_risk[entry]),
            "threshold": float(curve.thresholds[entry]),
        }
        for entry in np.unique(entries).tolist()  # ties may reach several coverages at once
    ]


# Its classes ------------------------------------------------------------------------------


def _by_class(case: Case, level: float) -> dict[str, Any] | None:
    """Return what is answered for each true class, and its rates; None for verdicts."""
    predictions = case.scored.predictions
    if are_verdicts(predictions):
        return None
    unweighted = replace(predictions, sample_weight=None)  # a report counts rows
    rates = rate_classes(unweighted, case.accepted, level)
    classes = unweighted.classes.tolist()
    shown = _most_missed(rates)
    return {
        "n_classes": len(classes),
        "confusion": _confusion(case, shown),
        "rates": [{"class": str(classes[k])} | _rates_of(rates, k) for k in shown.tolist()],
    }


def _most_missed(rates: dict[str, dict[str, Rate]]) -> IntArray:
    """Return the codes of all classes, or of those missed most often, the worst first."""
    always = rates["all"]["missed"].n_hits
    if len(always) <= MOST_CLASSES:
        return np.arange(len(always))
    abstaining = rates.get("accepted", rates["all"])["missed"].n_hits
    return np.lexsort((-always, -abstaining))[:MOST_CLASSES]


def _rates_of(rates: dict[str, dict[str, Rate]], k: int) -> dict[str, Any]:
    """Return the rates of one class by rows, as plain values."""
    return {
        rows: {name: _entry(rate, k) for name, rate in rates_by_name.items()}
        for rows, rates_by_name in rates.items()
    }


def _entry(rate: Rate, k: int) -> dict[str, Any]:
    """Return one class of a rate, as plain values."""
    return {name: values[k].item() for name, values in rate._asdict().items()}


def _confusion(case: Case, shown: IntArray) -> dict[str, Any]:
    """Return the confusion matrix with deferrals; classes that are not shown are one class."""
    rows = case.scored.predictions
    truth = rows.y_true
    answers = rows.y_pred
    n_classes = len(rows.classes)
    names = list(map(str, rows.classes[shown].tolist()))
    if n_classes > len(shown):
        codes = np.full(n_classes + 1, len(shown))
        codes[shown] = np.arange(len(shown))
        codes[-1] = -1  # the last place is that of unknown classes
        names.append("other classes")
        truth = codes[truth]
        answers = codes[answers]
    counts = count_decisions(truth, answers, case.accepted, len(names))
    lines = list(names)
    if len(counts) > len(names):
        lines.append(_UNKNOWN)
    columns = list(names)
    if case.accepted is not None:
        columns.append("abstains")
    table = counts[:, : len(columns)].tolist()
    return {"true": lines, "answers": columns, "counts": table}


def count_classes(y_true: IntArray, classes: Any) -> dict[str, int]:
    """Return the number of rows of each class."""
    counts = {str(label): int(np.sum(y_true == k)) for k, label in enumerate(classes.tolist())}
    n_unknown = int(np.sum(y_true < 0))
    if n_unknown:
        counts[_UNKNOWN] = n_unknown
    return counts


# Its workload -----------------------------------------------------------------------------


def _workload(case: Case, options: Options) -> dict[str, Any]:
    """Return what is deferred per 1,000 cases now, and at a few risk targets."""
    policy = case.policy
    deferred_now = None
    if case.accepted is not None:
        deferred_now = 1000.0 * float(np.mean(~case.accepted))
    capacity = None
    if policy is not None and policy.coverage is not None and policy.n is not None:
        capacity = policy.capacity_needed(1000)
    answer = None
    if "hours" in options.review:
        error = options.review.get("error")
        _, answer = plan_hours(case.scored.curve, options.review, error, _certified_share(case))
    place_targets = _place_costs if case.has_costs else _place_targets
    return {
        "deferred_now": deferred_now,
        "capacity": capacity,
        "in_costs": case.has_costs,
        "targets": place_targets(case, options),
        "answer": answer,
    }


def _place_costs(case: Case, options: Options) -> list[dict[str, Any]]:
    """Return what each limit of the mean cost defers on these rows."""
    unit = case.scored.predictions.rule.unit
    curve = RiskCoverageCurve.from_outcomes(find_costs(case))
    targets = _choose_cost_targets(case, unit * curve.mean_loss)
    points = []
    for target in targets:
        n_blocks = int(count_within(curve.selective_risk, np.array([target / unit])).item())
        coverage, risk = curve.working_point(n_blocks)
        point = _place_target(case, options.review, target, curve, n_blocks)
        point["risk"] = unit * risk
        point["errors_cost"] = 1000.0 * coverage * unit * risk if n_blocks else 0.0
        points.append(point)
    return points


def _choose_cost_targets(case: Case, mean_cost: float) -> list[float]:
    """Return limits of the mean cost of an answer, that of the policy among them."""
    targets = {float(rounded(share * mean_cost, 2)) for share in _COST_SHARES}
    certificate = case.certificate
    if certificate is not None and certificate.as_objective.is_selective:
        targets.add(certificate.target)
    return sorted(target for target in targets if target > 0)


def _place_targets(case: Case, options: Options) -> list[dict[str, Any]]:
    """Return what each risk target costs, on these rows and with confidence."""
    curve = case.scored.curve
    targets = _choose_targets(case)
    n_blocks = count_within(curve.selective_risk, targets)
    deferred_surely = np.full(len(targets), np.nan)
    if curve.counted and options.level >= LEAST_LEVEL:
        band = simultaneous_band(curve, 1.0 - options.level)
        deferred_surely = count_deferred(curve, band, targets)
    points = []
    for target, n, deferred in zip(targets, n_blocks, deferred_surely, strict=True):
        point = _place_target(case, options.review, float(target), curve, int(n))
        point["deferred_surely"] = float(deferred)
        points.append(point)
    return points


def _choose_targets(case: Case) -> FloatArray:
    """Return the risk targets of the table, that of the policy among them."""
    certificate = case.certificate
    if certificate is None or not certificate.as_objective.is_selective:
        return np.array(_TARGETS)
    return np.unique([*_TARGETS, certificate.target])


def _place_target(
    case: Case,
    review: Mapping[str, float],
    target: float,
    curve: RiskCoverageCurve,
    n_blocks: int,
) -> dict[str, Any]:
    """Return what a target costs, and what its threshold does."""
    coverage, risk = curve.working_point(n_blocks)
    deferred = 1000.0 * (1.0 - coverage)
    threshold = curve.thresholds[n_blocks - 1] if n_blocks else np.inf
    point = {
        "target": target,
        "deferred": deferred,
        "coverage": coverage,
        "risk": risk,
        "threshold": threshold if n_blocks else np.nan,
    }
    rows = case.scored.predictions
    if "minutes" in review:
        point["hours"] = deferred * review["minutes"] / 60.0
    if "hourly_cost" in review:
        point["cost"] = point["hours"] * review["hourly_cost"]
    if "error" in review and rows.rule.cost_matrix is None:
        missed = review["error"] * (1.0 - coverage)
        point["together"] = missed + (coverage * risk if n_blocks else 0.0)
    if rows.reviewer is not None:
        is_answered = case.scored.at_threshold.outcomes.confidence >= threshold
        answers = np.where(is_answered, rows.y_pred, rows.reviewer)
        point["together"] = float(np.mean(answers != rows.y_true))
    return point


def _certified_share(case: Case) -> float | None:
    """Return the share that a certified policy answers; None where nothing bounds its errors."""
    if case.policy is None or case.accepted is None:
        return None
    certificate = case.policy.certificate
    if certificate is None or not certificate.is_certified or certificate.as_objective.is_least:
        return None
    return float(np.mean(case.accepted))


# Its calibration --------------------------------------------------------------------------


def find_claims(case: Case) -> list[tuple[str, ScoredRows]]:
    """Return rows with claimed probabilities, before and after the policy's calibration."""
    after = case.scored.by_correctness
    policy = case.policy
    if policy is None or policy.calibration is None or case.raw.y_proba is None:
        return [("as given", after)]
    return [("before calibration", _claim_before(case)), ("after calibration", after)]


def _claim_before(case: Case) -> ScoredRows:
    """Return the answers of the policy with the probabilities that they had before calibration."""
    raw = case.raw
    answers = case.scored.predictions.y_pred
    if np.array_equal(answers, raw.y_pred):
        return score_rows(raw).by_correctness
    same_answers = Predictions(
        raw.y_true, answers, raw.classes, raw.y_proba, rule=DecisionRule("estimator")
    )
    return score_rows(same_answers, confidence="chosen_proba").by_correctness


def _calibration(case: Case, options: Options) -> list[dict[str, Any]]:
    """Return how well the confidence is calibrated, before and after the policy's calibration."""
    if not is_unit(case.scored.by_correctness.outcomes):
        return []
    return [_measure_calibration(state, rows, options) for state, rows in find_claims(case)]


def _measure_calibration(state: str, scored: ScoredRows, options: Options) -> dict[str, Any]:
    outcomes = scored.outcomes
    level = options.level
    n_draws = _count_draws(len(outcomes.loss), level)
    rng = np.random.default_rng(options.seed)
    p_value = run_csr_test(outcomes, n_draws=n_draws, random_state=rng).p_value
    errors = {name: SPECS[name].value(scored, {}) for name in _CALIBRATION}
    return {
        "state": state,
        "mean_confidence": float(np.mean(outcomes.confidence)),
        "accuracy": 1.0 - float(np.mean(outcomes.loss)),
        "csr_p_value": float(p_value),
        "answer": assess_calibration(outcomes, p_value, level, state).text,
        **errors,
    }


def _count_draws(n_rows: int, level: float) -> int:
    """Return how many classifiers to simulate: the p-value is exact with any number of them.

    Of many rows each takes long, so that there are only as many as can tell a p-value of a tenth
    of 1 - `level`. Three tests share 1 - `level`.
    """
    n_draws = _DRAWS
    if n_rows > _MANY_ROWS:
        enough = round(10.0 / (1.0 - level)) - 1
        n_draws = min(n_draws, enough)
    return choose_draws(None, n_draws, (1.0 - level) / 3.0, 1)


# Its errors -------------------------------------------------------------------------------


def _errors(case: Case, options: Options) -> list[dict[str, Any]]:
    """Return the most confident errors, one dict each; answered ones first."""
    rows = case.scored.predictions
    confidence = case.scored.outcomes.confidence
    worst = _find_worst(case, options.n_errors)
    names = [*rows.classes.tolist(), _UNKNOWN]  # the last place is that of the code -1
    columns: dict[str, Sequence[Any]] = {
        "row": worst.tolist(),
        "true": [names[k] for k in rows.y_true[worst]],
        "answered": [names[k] for k in rows.y_pred[worst]],
        "confidence": confidence[worst].tolist(),
    }
    if case.accepted is not None:
        columns["accepted"] = case.accepted[worst].tolist()
    if rows.rule.cost_matrix is not None:
        columns["cost"] = (rows.rule.unit * find_costs(case).loss[worst]).tolist()
    if options.ids is not None:
        columns["id"] = _to_json_values(options.ids.iloc[worst])
    features = pd.DataFrame(index=worst)
    if options.features is not None:
        features = options.features.iloc[worst]
    values = {str(name): _to_json_values(column) for name, column in features.items()}
    columns["features"] = _turn(values, len(worst))
    return _turn(columns, len(worst))


def _find_worst(case: Case, n_errors: int) -> IntArray:
    """Return the rows of the most confident, or costliest, errors; answered ones first."""
    outcomes = case.scored.outcomes
    wrong = np.flatnonzero(outcomes.loss > 0)
    is_deferred: BoolArray = np.zeros(len(wrong), dtype=bool)
    if case.accepted is not None:
        is_deferred = ~case.accepted[wrong]
    costs = np.zeros(len(wrong))
    if case.has_costs:
        costs = find_costs(case).loss[wrong]
    order = np.lexsort((-outcomes.confidence[wrong], -costs, is_deferred))
    return wrong[order][:n_errors]


def _turn(columns: Mapping[str, Sequence[Any]], n: int) -> list[dict[str, Any]]:
    """Return the rows of a table, one dict each."""
    return [{name: values[k] for name, values in columns.items()} for k in range(n)]


def _to_json_values(column: pd.Series) -> list[Any]:
    """Return values that JSON can hold."""
    plain = [x.item() if isinstance(x, np.generic) else x for x in column.tolist()]
    return [x if isinstance(x, str | int | float | None) else str(x) for x in plain]


# Its subgroups ----------------------------------------------------------------------------


def _subgroups(case: Case, options: Options) -> dict[str, Any]:
    """Return coverage and risk of each subgroup, attribute by attribute, and how they differ."""
    loss = case.scored.outcomes.loss
    subgroups = options.subgroups
    sampling = Sampling(np.random.default_rng(0), options.level)
    is_table = hasattr(subgroups, "columns") or hasattr(subgroups, "keys")  # of any make
    counts = []
    differences = []
    for attribute, column in check_subgroups(subgroups, len(loss)).items():
        name = {"attribute": str(attribute) if is_table else name_of_subgroups(subgroups)}
        counts_of_subgroups = _count_subgroups(case, column, options.level)
        counts += [name | row for row in counts_of_subgroups]
        if len(counts_of_subgroups) > 1:
            differences += [name | row for row in _measure_gaps(case, column, sampling)]
    return {"subgroups": counts, "gaps": differences}


def _count_subgroups(case: Case, column: Any, level: float) -> list[dict[str, Any]]:
    """Return the counts of each subgroup that has rows; rows without one come last."""
    loss = case.scored.outcomes.loss
    accepted = find_accepted(case)
    codes, keys = subgroup_codes(column, len(loss))
    names = [*map(str, keys), "(missing)"]
    members = rows_of_codes(codes % len(names), len(names))  # -1, missing, comes last
    return [
        {"subgroup": name, **_counts(loss[rows], accepted[rows], level)}
        for name, rows in zip(names, members, strict=True)
        if len(rows)
    ]


def _measure_gaps(case: Case, column: Any, sampling: Sampling) -> list[dict[str, Any]]:
    """Return the largest differences between two subgroups, with their intervals."""
    confidence = find_accepted(case).astype(np.float64)
    decided = ScoredRows(Outcomes(case.scored.outcomes.loss, confidence))
    gaps = ["risk_gap"] if case.accepted is None else list(GAPS)
    differences = []
    for gap in gaps:
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # it shows nan
            table = tabulate_metric(GAPS[gap], decided, {"subgroups": column}, sampling)
        differences.append({key: table[key] for key in ("metric", "value", "low", "high")})
    return differences


def find_accepted(case: Case) -> BoolArray:
    """Return which rows are accepted: all without a threshold."""
    if case.accepted is None:
        return np.ones(len(case.scored.outcomes.loss), dtype=bool)
    return case.accepted
