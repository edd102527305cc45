"""The questions that a report asks, answered in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from skselect._lib.checks import shown
from skselect._lib.checks.options import check_number, check_review
from skselect._lib.notebook import count, percent, rounded
from skselect.bounds._pointwise import clopper_pearson_interval
from skselect.exceptions import ArgumentError
from skselect.metrics._calibration_tests import run_ecce_test
from skselect.metrics._metric import MetricSpec
from skselect.monitoring.check import PolicyCheck
from skselect.monitoring.evidence import detectable_risk
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions.outcomes import Outcomes

# "Nearly certain" is the one of these confidences from which on the errors surprise most.
_NEARLY_CERTAIN = (0.99, 0.999, 0.9999, 0.99999)
_OVERCONFIDENT = "No, it is overconfident"
# An interval for the share of right answers that is wider than this leaves the question open.
_WIDEST = 0.1
_REMEDIES = {
    "as given": "Calibrate it: calibration_report shows what suits.",
    "before calibration": "",
    "after calibration": "Calibrate it on more rows or in another way: see calibration_report.",
}

# A plan of audits looks so many days ahead.
_HORIZON = 90


class Answer(NamedTuple):
    """An answer in one word, such as "yes", "no" or "unclear", and in full."""

    verdict: str
    text: str


def assess_calibration(
    outcomes: Outcomes, csr_p_value: float, level: float = 0.95, state: str = "as given"
) -> Answer:
    """Say whether a confidence is the chance of being right, as far as these rows can tell.

    Three tests share 1 - `level` evenly: CSR finds errors near certainty; the exact interval of
    the share of right answers, a wrong mean; the cumulative gaps, any other difference. The
    interval of equal chances is valid for unequal ones with the same mean, which vary less.
    """
    each = (1.0 - level) / 3.0
    mean = _Mean.of(outcomes, 1 - each)
    differences: dict[str, str] = {}
    if not mean.low <= mean.claimed <= mean.high:
        is_over = mean.claimed > mean.high
        differences[_OVERCONFIDENT if is_over else "No, it is underconfident"] = str(mean)
    if csr_p_value <= each:
        near = _errors_near_certainty(outcomes)
        if not near:
            near = (
                "its most confident answers are wrong more often than it expects (p-value "
                f"{csr_p_value:.2g})"
            )
        start = _OVERCONFIDENT
        if start in differences:
            near = f"{differences[start]}, and {near}"
        elif differences:
            start = "but near certainty it is overconfident"
        differences[start] = near
    if not differences:
        gaps = run_ecce_test(outcomes)
        if gaps.has_many_rows and gaps.r_p_value <= each:
            differences["No"] = f"{mean}, but at some confidences it claims too much or too little"
    if differences:
        words = "; ".join(f"{start}: {text}" for start, text in differences.items())
        return Answer("no", f"{words}. {_REMEDIES[state]}".strip())
    return mean.answer()


class _Mean(NamedTuple):
    """What a confidence claims on average, how often it is right, and the interval of that."""

    n: int
    claimed: float
    right: float
    low: float
    high: float
    level: float

    @classmethod
    def of(cls, outcomes: Outcomes, level: float) -> _Mean:
        """Return it for these rows."""
        n = len(outcomes.loss)
        n_right = n - int(np.sum(outcomes.loss))
        low, high = clopper_pearson_interval(n_right, n, level)
        claimed = float(np.mean(outcomes.confidence))
        return cls(n, claimed, n_right / n, float(low), float(high), level)

    def __str__(self) -> str:
        right = percent(self.right)
        return f"it claims {percent(self.claimed)} on average and is right in {right}"

    def answer(self) -> Answer:
        """Return the answer where no test finds a difference."""
        least = percent(self.low, up=False)
        most = percent(self.high, up=True)
        interval = f"{percent(self.level, up=False)} interval {least} to {most}"
        width = self.high - self.low
        if width > _WIDEST:
            exact = math.ceil(self.n * (width / _WIDEST) ** 2)
            needed = float(rounded(exact, 2, up=True))
            return Answer(
                "unclear",
                f"Cannot be told with {count(self.n, 'row')}: {self} ({interval}). It takes about "
                f"{needed:,.0f} labelled rows to tell.",
            )
        return Answer(
            "yes",
            f"Yes, as far as these {self.n:,} rows can tell: {self} ({interval}), and no test "
            "finds too many errors near certainty, or another difference.",
        )


def _errors_near_certainty(outcomes: Outcomes) -> str:
    """Count the errors among the surest rows, where they surprise most; "" if nowhere."""
    sentence = ""
    largest = 0.0
    for cut in _NEARLY_CERTAIN:
        is_sure = outcomes.confidence >= cut
        n_wrong = np.sum(outcomes.loss[is_sure])
        expected = np.sum(1.0 - outcomes.confidence[is_sure])
        surprise = (n_wrong - expected) / math.sqrt(expected + 1e-9)
        if surprise > largest:
            largest = surprise
            sentence = _describe_errors(cut, int(np.sum(is_sure)), n_wrong, expected)
    return sentence


def _describe_errors(cut: float, n_sure: int, n_wrong: float, expected: float) -> str:
    """Say how many of the surest rows are wrong, and how many were expected."""
    number = f"{expected:,.0f}" if expected >= 10 else f"{expected:.2g}"
    verb = "was" if n_wrong == 1 else "were"
    return (
        f"of {count(n_sure, 'row')} it was nearly certain of (confidence "
        f"{cut:g} or more), {n_wrong:,.0f} {verb} wrong, where it expects {number}"
    )


def verify_guarantee(policy: AbstentionPolicy, check: PolicyCheck | None) -> Answer:
    """Say whether a policy keeps its guarantee on these rows.

    It is the verdict of a check; "certified" if these rows chose the threshold and certify it;
    "nothing" if there is no guarantee that labelled rows can check.
    """
    if check is None and policy.certificate is not None and policy.certificate.reads_reviewer:
        return Answer(
            "not_tested",
            "NOT TESTED: it guarantees how often machine and reviewer together are wrong, and "
            "these rows lack the reviewer's answers; pass them (reviewer=, --reviewer).",
        )
    if check is None:
        return Answer(
            "nothing", "NOTHING TO CHECK: it guarantees nothing that these rows can check."
        )
    if not check.same_rows:
        return Answer(check.verdict, _round_found(check))
    issued = [certificate for certificate in policy.parts.listed if certificate.n_accepted]
    if not all(certificate.is_certified for certificate in issued):
        return Answer("not_tested", check.summary)
    guarantee = check.guarantees[0].statement
    if policy.parts.by is not None:
        guarantee = f"{count(len(issued), 'guarantee')}, each about one {policy.parts.by}"
    return Answer(
        "certified",
        f"CERTIFIED on these rows: {guarantee}. These rows chose the threshold, so only "
        "fresh labelled rows can test it.",
    )


def _round_found(check: PolicyCheck) -> str:
    """Return the summary of a check; what was found has the digits that a report has elsewhere."""
    text = check.summary
    for guarantee in check.guarantees:
        objective = guarantee.as_objective
        value = guarantee.value
        shorter = show_share(value) if objective.about.is_error else f"{value:.3g}"
        exact = objective.amount(value, up=None)
        text = text.replace(guarantee.found, guarantee.found.replace(exact, shorter, 1))
    return text


def plan_monitor(check: PolicyCheck | None, audits: Any) -> str:
    """Say which risk a monitor of this policy would notice."""
    cases, share, delay = _read_audits(audits)
    subjects = []
    if check is not None:
        subjects = [(test.objective, test.loss, test.cases) for test in check.guarantees]
    if check is None or subjects != [("risk", "zero_one", "")]:
        raise ArgumentError(
            "audits",
            "audits needs a policy with one guarantee, a largest share of wrong answers over all "
            "cases; for others call skselect.monitoring.detectable_risk.",
        )
    [guarantee] = check.guarantees
    n_labels = int(cases * check.coverage * share * (_HORIZON - delay))
    plan = (
        f"With {cases:,.10g} cases a day, {percent(share)} of its answers audited and labels after "
        f"{delay:g} days, a monitor gets {n_labels:,} labelled answers within {_HORIZON} days."
    )
    try:
        risk = detectable_risk(guarantee.target, n_labels, guarantee.delta)
    except ArgumentError:  # of so few answers
        return f"{plan} They are too few to notice anything."
    return (
        f"{plan} If the risk is {rounded(100.0 * risk, 2, up=True)} % or more from the first day, "
        "it raises an alarm by then with probability 80 %."
    )


def _read_audits(audits: Any) -> tuple[float, float, float]:
    """Return the cases a day, the share that is audited, and the days until labels come."""
    cases = math.nan
    share = math.nan
    delay = math.nan
    with suppress(TypeError, ValueError):
        if np.ndim(audits) == 1:  # a set has no order
            cases, share, delay = map(float, audits)
    if 0.0 < cases < math.inf and 0.0 < share <= 1.0 and 0.0 <= delay < _HORIZON:
        return cases, share, delay
    wanted = (
        "the cases a day (above 0), the share of the answers that is audited (above 0, up to 1) "
        f"and the days until their labels come (0 or more, below {_HORIZON}), such as "
        "(1000, 0.02, 30)"
    )
    raise ArgumentError("audits", f"audits must be {wanted}, got {shown(audits)}.")


def read_review(reviewing: Any) -> Mapping[str, float]:
    """Return what is known of a reviewer and his hours, by name."""
    example = {"error": 0.03, "minutes": 6, "hourly_cost": 40, "hours": 40, "cases": 3000}
    is_mapping = isinstance(reviewing, Mapping) and len(reviewing) > 0
    if not is_mapping or not reviewing.keys() <= example.keys():
        wanted = f"numbers by name, all or some of {example}"
        raise ArgumentError("reviewing", f"reviewing must give {wanted}, got {shown(reviewing)}.")
    error = reviewing.get("error", 0.0)
    check_number("reviewing: error", error, 0.0, 1.0)
    check_review(reviewing, "reviewing: ")
    return reviewing


def explain_metric(spec: MetricSpec, value: float) -> str:
    """Say what a value of a metric means, in one sentence."""
    if math.isnan(value):
        return f"It has no value here: {spec.undefined.split(':')[0]}."
    return spec.meaning.format(
        share=show_share(value),
        points=f"{rounded(100 * value, 2)} points",
        number=show_number(value),
    )


def show_number(value: float) -> str:
    """Return a number with four digits, a large one without an exponent."""
    text = f"{value:.4g}"
    if 1e4 <= abs(value) < 1e12:
        return f"{float(text):,.0f}"
    return text


def show_amount(value: float) -> str:
    """Return a sum of costs or hours with three digits, a large one as a whole number."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def show_p_value(value: float) -> str:
    """Return a p-value, of which small ones only say that they are small."""
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def show_share(share: float, digits: int = 3) -> str:
    """Return a share as a percentage with three digits; only 1 is shown as 100 %."""
    shown = rounded(100.0 * share, digits)
    if shown == "100" and share < 1:
        shown = rounded(100.0 * share, digits, up=False)
    return f"{shown} %"


def which_is_best(comparison: list[dict[str, Any]]) -> str:
    """Say which model is best by AUGRC, and which others could be as good; the best comes first."""
    best, *others = comparison
    as_good = [row["model"] for row in others if row["tied_with_best"] in (None, True)]
    smallest = f"{best['model']} has the smallest AUGRC ({show_share(best['estimate'])})"
    if not as_good:
        return f"{smallest}, by more than chance."
    names = " and ".join(as_good)
    return f"Cannot be told with these rows: {smallest}, but {names} could be as good."
