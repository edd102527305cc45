"""The contents of a report as plain values, which `render` turns into text and a page."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from skselect._lib.arrays import ROUNDING, BoolArray, FloatArray, IntArray, is_graded
from skselect._lib.checks.options import choose_draws
from skselect._lib.checks.rows import check_has_proba, check_subgroups
from skselect._lib.notebook import count
from skselect.bounds._pointwise import clopper_pearson_interval
from skselect.curve.curve import count_deferred, count_within
from skselect.inference.by_group import Rate, rate_classes, tabulate_metric
from skselect.inference.intervals import Sampling, interval_around
from skselect.metrics._csr import run_csr_test
from skselect.metrics._evaluate import GAPS, SPECS
from skselect.metrics._metric import MetricSpec
from skselect.metrics._rows import ScoredRows, score_rows
from skselect.metrics._threshold import count_decisions
from skselect.monitoring.check import (
    Asked,
    PolicyCheck,
    check_answers_fit,
    check_decided,
    chose_threshold,
)
from skselect.policy.certificate import threshold_to_json
from skselect.policy.policy import AbstentionPolicy, accept_answers, apply_policy
from skselect.policy.subgroups import name_of_subgroups, subgroup_codes
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions
from skselect.report.questions import (
    assess_calibration,
    explain_metric,
    read_numbers,
    verify_guarantee,
)
from skselect.thresholds import simultaneous_band

#: What a single model is called, unless it is given a name.
UNNAMED = "model"
# A verdict names so many subgroups that are guaranteed nothing, and counts the others.
_MANY_SUBGROUPS = 10
_COVERAGES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
_TARGETS = (0.005, 0.01, 0.02, 0.05, 0.1)
#: Of more classes the report shows those that are missed most often.
MOST_CLASSES = 10
#: Bounds for all thresholds at once have at least this confidence.
LEAST_LEVEL = 0.5
_DRAWS, _MANY_ROWS = 999, 1_000_000


class Review(NamedTuple):
    """What is known of a reviewer: his errors, and what a case takes.

    `error` is the share of deferred cases that he gets wrong.
    """

    error: float
    minutes: float
    hourly_cost: float

    @classmethod
    def read(cls, reviewing: Any) -> Review:
        """Check what the user says of the reviewer."""
        wanted = (
            "the share of deferred cases that the reviewer gets wrong (0 to 1), the minutes that a "
            "case takes (above 0) and the cost of an hour (0 or more), such as (0.03, 6, 40)"
        )
        return cls(*read_numbers("reviewing", reviewing, wanted, lambda error, minutes, cost: (
            0.0 <= error <= 1.0 and 0.0 < minutes < math.inf and 0.0 <= cost < math.inf
        )))  # fmt: skip

    def describe(self, coverage: float, risk: float) -> dict[str, float]:
        """Return what 1,000 cases take, and the share that machine and reviewer get wrong."""
        hours = 1000.0 * (1.0 - coverage) * self.minutes / 60.0
        errors = self.error * (1.0 - coverage) + (coverage * risk if coverage > 0.0 else 0.0)
        return {"hours": hours, "cost": hours * self.hourly_cost, "together": errors}


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
    def predictions(self) -> Predictions:
        """After the policy's calibration."""
        return self.scored.predictions


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
    own = subgroups if policy.groups is not None and not policy.groups.by_answer else None
    single = None if policy.groups is not None else policy.threshold
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
    review: Review | None = None,
) -> dict[str, Any]:
    """Return the contents of the report about one model."""
    errors = case.scored.outcomes.loss
    return {
        "name": _name(case),
        "n_rows": len(errors),
        "n_errors": int(np.count_nonzero(errors)),
        "accuracy": 1.0 - float(np.mean(errors)),
        "threshold": None if case.threshold is None else threshold_to_json(case.threshold),
        "verdict": _verdict(case, subgroups),
        "metrics": _metrics(case, level),
        "decisions": _decisions(case, level),
        "by_class": _by_class(case, level),
        "workload": _workload(case, level, review),
        "coverages": _coverages(case),
        "calibration": _calibration(case, level, seed),
        "certificate": _certificate(case),
        "errors": _errors(case, ids, features, n_errors),
        **({"subgroups": None} if subgroups is None else _subgroups(case, subgroups, level)),
    }


def _name(case: Case) -> str:
    """Return the name that a model was given, else that of the policy's classifier."""
    noted = None if case.policy is None else case.policy.metadata.get("classifier")
    return case.name if case.name != UNNAMED else str(noted or "Model")


def check_case(case: Case, subgroups: Any) -> PolicyCheck | None:
    """Check the policy's guarantee on these rows; None where there is nothing to check."""
    policy, accepted = case.policy, case.accepted
    if policy is None or accepted is None:
        return None
    own = policy.certificate
    if own is not None and own.reads_reviewer and case.predictions.reviewer is None:
        return None
    curve = case.scored.curve
    return check_decided(policy, case.predictions, accepted, subgroups, curve, Asked())


def _verdict(case: Case, subgroups: Any) -> dict[str, str] | None:
    """Return whether a policy keeps its guarantee on these rows, None without a policy."""
    if case.policy is None:
        return None
    check = check_case(case, subgroups)
    trust = "" if check is None or check.same_rows else check.trust
    answer = verify_guarantee(case.policy, check)
    text = "\n".join([answer.text, *_deferred(case.policy, case, subgroups)])
    return {"verdict": answer.verdict, "text": text, "trust": trust}


def _deferred(policy: AbstentionPolicy, case: Case, subgroups: Any) -> list[str]:
    """Name the subgroups that are guaranteed nothing, because none of their cases is accepted."""
    groups, n = policy.groups, len(case.predictions)
    if groups is None:
        return []
    members = groups.members(case.predictions.answers, subgroups)
    sizes = dict.fromkeys(groups.thresholds, 0)
    sizes |= {key: int(np.sum(rows)) for key, rows in members.items()}
    named = [
        f"{key!r} ({count(size, 'case')})"
        for key, size in sizes.items()
        if groups.thresholds.get(key, np.inf) == np.inf
    ]
    missing = n - sum(sizes.values())
    named += [f"(missing) ({count(missing, 'case')})"] if missing else []
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
    found = _counts(case.scored.outcomes.loss, case.accepted, level)
    rule = case.predictions.rule
    if rule.cost_matrix is not None and np.any(case.accepted):
        costs = Outcomes.of(
            case.predictions, confidence=case.scored.outcomes.confidence, loss="cost"
        ).loss
        found["mean_cost"] = rule.unit * float(np.mean(costs[case.accepted]))
    return found


def _counts(loss: FloatArray, accepted: BoolArray, level: float) -> dict[str, Any]:
    n, n_accepted = len(loss), int(np.sum(accepted))
    wrong = float(np.sum(loss[accepted]))
    low = high = np.nan
    if not is_graded(loss):
        low, high = clopper_pearson_interval(wrong, n_accepted, level)
    risk = wrong / n_accepted if n_accepted else np.nan
    counted = {"n_rows": n, "n_accepted": n_accepted, "n_errors": wrong, "coverage": n_accepted / n}
    right = {"n_right_deferred": float(np.sum(1.0 - loss[~accepted]))}
    return counted | {"risk": risk, "low": low, "high": high} | right


def _by_class(case: Case, level: float) -> dict[str, Any]:
    """Return what is answered for each true class, and the rates of each class."""
    counted = replace(case.predictions, sample_weight=None)  # a report counts rows
    rates = rate_classes(counted, case.accepted, level)
    shown = _most_missed(rates)
    classes = case.predictions.classes[shown].tolist()
    return {
        "n_classes": len(case.predictions.classes),
        "confusion": _confusion(case, shown),
        "rates": [
            {"class": str(label)}
            | {
                rows: {name: _entry(rate, k) for name, rate in found.items()}
                for rows, found in rates.items()
            }
            for k, label in zip(shown.tolist(), classes, strict=True)
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
    rows, n = case.predictions, len(shown)
    names = list(map(str, rows.classes[shown].tolist()))
    truth, answers = rows.y_true, rows.y_pred
    if len(rows.classes) > n:
        names.append("other classes")
        codes = np.full(len(rows.classes) + 1, n)
        codes[shown], codes[-1] = np.arange(n), -1  # the last place is that of unknown classes
        truth, answers = codes[truth], codes[answers]
    counts = count_decisions(truth, answers, case.accepted, len(names))
    unknown = ["unknown class"] if len(counts) > len(names) else []
    abstains = [] if case.accepted is None else ["abstains"]
    columns = names + abstains
    table = counts[:, : len(columns)].tolist()
    return {"true": names + unknown, "answers": columns, "counts": table}


def _workload(case: Case, level: float, review: Review | None) -> dict[str, Any]:
    """Return what is deferred per 1,000 cases now, and at a few risk targets."""
    curve, policy = case.scored.curve, case.policy
    made = None if policy is None else policy.certificate
    is_share = made is not None and made.kind.is_selective
    is_share = is_share and case.predictions.rule.cost_matrix is None  # else it is a cost
    targets = np.unique([*_TARGETS, *([made.target] if made and is_share else [])])
    chosen = count_within(curve.selective_risk, targets)
    surely = np.full(len(targets), np.nan)
    if curve.counted and level >= LEAST_LEVEL:
        surely = count_deferred(curve, simultaneous_band(curve, 1.0 - level), targets)
    found = []
    for target, n_blocks, most in zip(targets.tolist(), chosen.tolist(), surely, strict=True):
        coverage, risk = curve.working_point(n_blocks)
        threshold = curve.threshold_at(n_blocks - 1) if n_blocks else np.nan
        left = {"deferred": 1000.0 * (1.0 - coverage), "deferred_surely": float(most)}
        point = {"coverage": coverage, "risk": risk, "threshold": threshold}
        reviewed = {} if review is None else review.describe(coverage, risk)
        together = _wrong_together(case, threshold if n_blocks else np.inf)
        found.append({"target": target} | left | point | reviewed | together)
    now = None if case.accepted is None else 1000.0 * float(np.mean(~case.accepted))
    knows = policy is not None and policy.coverage is not None and policy.n is not None
    capacity = policy.capacity_needed(1000) if policy is not None and knows else None
    return {"deferred_now": now, "capacity": capacity, "targets": found}


def _wrong_together(case: Case, threshold: float) -> dict[str, float]:
    """Return the share that machine and reviewer get wrong, where the reviewer's answers are known.

    The machine answers from a threshold up.
    """
    rows = case.predictions
    if rows.reviewer is None:
        return {}
    answers = case.scored.outcomes.confidence >= threshold
    return {
        "together": float(np.mean(np.where(answers, rows.y_pred, rows.reviewer) != rows.y_true))
    }


def _coverages(case: Case) -> list[dict[str, float]]:
    """Return risk and threshold at a few coverages."""
    curve = case.scored.curve
    rows: list[dict[str, float]] = []
    for wanted in _COVERAGES:
        entries = range(len(curve) - 1)  # the last one, if no other covers enough
        entry = bisect_left(entries, wanted - ROUNDING, key=lambda e: curve.working_point(e + 1)[0])
        coverage, risk = curve.working_point(entry + 1)
        row = {"coverage": coverage, "risk": risk, "threshold": curve.threshold_at(entry)}
        rows += [row] if row not in rows else []  # ties may reach several coverages at once
    return rows


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
    names = ("ece", "smooth_ece", "top_label_brier", "csr")
    values = {name: SPECS[name].value(scored, {}) for name in names}
    n_draws = _count_draws(len(outcomes.loss), level)
    test = run_csr_test(outcomes, n_draws=n_draws, random_state=np.random.default_rng(seed))
    found = {
        "state": state,
        "mean_confidence": float(np.mean(outcomes.confidence)),
        "accuracy": 1.0 - float(np.mean(outcomes.loss)),
        "csr_p_value": float(test.p_value),
        "answer": assess_calibration(outcomes, test.p_value, level, state).text,
    }
    return found | values


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
    by_subgroup, same = None, chose_threshold(policy, case.scored.curve)
    if policy.groups is not None:
        groups = policy.groups
        texts = {str(key): str(one) for key, one in groups.made.items()}
        by_subgroup = {
            "table": groups.tabulate().to_dict("records"),
            "together": groups.together,
            "texts": {str(key): text for key, text in groups.texts.items()},
        }
        made = [groups.certificates.get(key) for key in groups.thresholds]
    else:
        made = [policy.certificate]
        texts = {} if policy.certificate is None else {"": str(policy.certificate)}
    certified = all(one is not None and one.is_certified for one in made)
    made_on = {"created": policy.created, "n": policy.n}
    about = {"by_subgroup": by_subgroup, "same_rows": same}
    return {"certified": certified, "texts": texts} | made_on | about


def _errors(case: Case, ids: Any, features: Any, n_errors: int) -> list[dict[str, Any]]:
    """Return the most confident errors, one dict each; answered ones first."""
    outcomes, predictions, accepted = case.scored.outcomes, case.predictions, case.accepted
    wrong = np.flatnonzero(outcomes.loss > 0)
    deferred = np.zeros(len(wrong)) if accepted is None else ~accepted[wrong]
    worst = wrong[np.lexsort((-outcomes.confidence[wrong], deferred))][:n_errors]
    classes = predictions.classes.tolist()
    found = []
    for row in worst.tolist():
        true = predictions.y_true[row]
        known: dict[str, Any] = {
            "row": row,
            "true": "unknown class" if true < 0 else classes[true],
            "answered": classes[predictions.y_pred[row]],
            "confidence": float(outcomes.confidence[row]),
        }
        if accepted is not None:
            known["accepted"] = bool(accepted[row])
        if ids is not None:
            known["id"] = _to_json_value(ids.iloc[row])
        columns = [] if features is None else list(features.columns)
        # Column by column: a row with integers and floats would become all floats.
        known["features"] = {
            str(name): _to_json_value(features[name].iloc[row]) for name in columns
        }
        found.append(known)
    return found


def _to_json_value(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int | float | bool | None) else str(value)


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
        codes, keys = subgroup_codes(column, len(loss))
        rows_of = [(str(key), codes == code) for code, key in enumerate(keys)]
        rows_of += [("(missing)", codes < 0)] if np.any(codes < 0) else []
        name = str(attribute) if named else name_of_subgroups(subgroups)
        found += [
            {"attribute": name, "subgroup": key} | _counts(loss[rows], accepted[rows], level)
            for key, rows in rows_of
        ]
        for gap in gaps if len(rows_of) > 1 else []:
            known = tabulate_metric(GAPS[gap], decided, {"subgroups": column}, every, how)
            kept = {key: known[key] for key in ("metric", "value", "low", "high")}
            apart.append({"attribute": name} | kept)
    return {"subgroups": found, "gaps": apart}


def count_classes(y_true: IntArray, classes: Any) -> dict[str, int]:
    """Return the number of rows of each class."""
    counts = {str(label): int(np.sum(y_true == k)) for k, label in enumerate(classes.tolist())}
    unknown = int(np.sum(y_true < 0))
    return counts | ({"unknown class": unknown} if unknown else {})
