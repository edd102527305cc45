"""What the library knows about each metric: one table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

from skselect._lib.checks.options import check_threshold
from skselect._lib.typing import FloatArray
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics import (
    _areas,
    _binned_errors,
    _calibration_tests,
    _cau,
    _confidence_weighted,
    _csr,
    _error_detection,
    _smooth_errors,
    _threshold,
)
from skselect.metrics._arguments import Judged
from skselect.metrics._threshold import check_cwsa_threshold


@dataclass(frozen=True)
class MetricSpec:
    """What the library knows about one metric.

    Parameters
    ----------
    name : str
        Short name, without ``_score``; scorers of losses put ``neg_`` before it.
    function : callable
        The public function of labels and probabilities.
    kernel : callable
        ``kernel(predictions, outcomes or curve, **parameters) -> float``.
    needs : {"predictions", "outcomes", "curve"}
        What the kernel reads.
    greater_is_better : bool
    range : str
        The values it can take.
    formula : str
    use, avoid : str
        What it is good for, and when another metric is better.
    reference : str
    undefined : str
        When the metric has no value, and what is returned then.
    for_comparison : bool
        Whether it is there only for comparison with published values.
    confidence : {"any", "unit", "probability"}
        What the confidence must be: any number; in [0, 1], and a threshold in [0, 1);
        the probability of being right.
    at_threshold : bool
        Whether the kernel takes a threshold.
    worst : float
        What a scorer returns (before the sign) where nothing, or less than `min_coverage`, is
        accepted, so that this is never rewarded.
    prices_abstention : bool
        Whether the metric itself counts abstaining as a cost, so that a scorer returns its value
        even where nothing is accepted.
    needs_right : bool
        Whether scorers return nan when no answer is right, so as not to reward it.
    scale_free : bool
        Whether multiplying all weights by a constant changes nothing.
    best : float or None
        The best value, where it lies inside the range. If it is 0, the sign tells the
        direction, and scorers take the absolute value.
    row_terms : callable or None
        ``row_terms(outcomes, **parameters)``: what each row adds, for a metric that is a sum
        over rows.
    interval : {"closed form", "ranking", "bootstrap"} or None
        How its interval is made. "ranking": a closed form that needs the curve alone.
    no_interval : str
        Why no interval can be relied on, where `interval` is None.
    chance_raises : {"nothing", "draws", "value"}
        For errors that are 0 at best: whether chance alone raises the value of a calibrated
        classifier above 0, or only the values of its bootstrap draws.
    rests_on : {"errors", "errors and right answers", "rows"}
        Of what an interval needs at least ten.
    registered : bool
        Whether the name is a scoring string.
    """

    name: str
    function: Callable[..., float]
    kernel: Callable[..., float]
    needs: str
    greater_is_better: bool
    range: str
    formula: str
    use: str
    avoid: str
    reference: str
    undefined: str
    for_comparison: bool = False
    confidence: Literal["any", "unit", "probability"] = "any"
    at_threshold: bool = False
    worst: float = float("nan")
    prices_abstention: bool = False
    needs_right: bool = False
    scale_free: bool = True
    best: float | None = None
    row_terms: Callable[..., FloatArray] | None = None
    interval: Literal["closed form", "ranking", "bootstrap"] | None = "bootstrap"
    no_interval: str = ""
    chance_raises: Literal["nothing", "draws", "value"] = "nothing"
    rests_on: Literal["errors", "errors and right answers", "rows"] = "errors"
    registered: bool = False

    @property
    def scorer_name(self) -> str:
        """The name of its scorer, where larger is always better."""
        return self.name if self.greater_is_better else f"neg_{self.name}"

    @property
    def better(self) -> str:
        """Which values are better, in words."""
        if self.best is not None:
            return f"near {self.best:g}"
        return "higher" if self.greater_is_better else "lower"

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest value; infinite where the range depends on a parameter."""
        least, most = self.range.strip("[]()").split(", ", 1)
        return float(least), float("inf") if most.startswith("max") else float(most)

    @property
    def signed(self) -> bool:
        """Whether 0 is best and the sign tells the direction."""
        return self.best == 0

    @property
    def reads_probability(self) -> bool:
        """Whether the confidence must be a probability of being right."""
        return self.confidence == "probability"

    def choose_rows(self, judged: Judged) -> Judged:
        """Return the rows with the confidence that it reads: their own, or the claim."""
        return judged.claimed if self.reads_probability else judged

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters of the kernel, without the rows that it reads."""
        _, *own = inspect.signature(self.kernel).parameters.values()
        return {parameter.name: parameter for parameter in own}

    def as_score(self, value: float) -> float:
        """Return a value of the metric as a score: larger is better."""
        value = abs(value) if self.signed else value
        return value if self.greater_is_better else -value


_Curve = RiskCoverageCurve
_CWSA = "arXiv 2505.18622"
_CSR = "arXiv 2605.01796"
_CAU = "conditional cross-entropy paper"
_AUGRC = "Traub et al. 2024"
_AURC = "Geifman et al. 2019"
_SELECTIVE = "Geifman & El-Yaniv 2017"
_NEVER = "always defined"
_CHANCE = "comparing models: never 0 in a sample; a test says more"


def _table(needs: str, **shared: Any) -> Callable[..., MetricSpec]:
    """Return a function that builds the rows of metrics with shared fields."""

    def row(
        name: str,
        function: Callable[..., float],
        kernel: Callable[..., float],
        better: str,
        values: str,
        **known: Any,
    ) -> MetricSpec:
        higher = better == "higher"
        return MetricSpec(name, function, kernel, needs, higher, values, **{**shared, **known})

    return row


_at_threshold = _table("curve", at_threshold=True, interval="closed form")
_area = _table("curve")
_counting = _table("curve", scale_free=False)
_ranking = _table("curve", reference=_AUGRC)
_weighted = _table("predictions", confidence="probability", reference=_CSR)
_classes = _table("predictions")
_claim = _table("outcomes", confidence="probability")
_claim_curve = _table("curve", confidence="probability", undefined=_NEVER)

# fmt: off
_ROWS = [
    _at_threshold(
        "coverage", _threshold.coverage_score, _threshold.coverage, "higher", "[0, 1]",
        formula="sum of w over S(t) / W", worst=0.0, undefined="nothing accepted: 0",
        use="how many cases are decided", avoid="alone: accepting everything wins",
        reference="El-Yaniv & Wiener 2010", registered=True, rests_on="rows"),
    _at_threshold(
        "selective_accuracy", _threshold.selective_accuracy_score, _threshold.selective_accuracy,
        "higher", "[0, 1]", formula="1 - selective risk", worst=0.0,
        undefined="nothing accepted: nan; scorer 0", use="how good the decisions are",
        avoid="without coverage beside it", reference=_SELECTIVE, registered=True),
    _at_threshold(
        "selective_risk", _threshold.selective_risk_score, _threshold.selective_risk,
        "lower", "[0, 1]", formula="sum of w l over S(t) / sum of w over S(t)", worst=1.0,
        undefined="nothing accepted: nan; scorer -1", use="how bad the decisions are",
        avoid="without coverage beside it", reference=_SELECTIVE),
    _at_threshold(
        "generalized_risk", _threshold.generalized_risk_score, _threshold.generalized_risk,
        "lower", "[0, 1]", formula="sum of w l over S(t) / W", worst=1.0,
        undefined="nothing accepted: 0; scorer -1", use="rate of silent errors among all cases",
        avoid="alone: accepting nothing wins", reference=_AUGRC),
    _at_threshold(
        "selective_cost", _threshold.selective_cost_score, _threshold.selective_cost,
        "lower", "[0, max(1, d)]", formula="generalised risk + d (1 - coverage)", worst=1.0,
        undefined="nothing accepted: d, the cost of abstaining",
        use="when the cost of abstaining is known", avoid="when it is a guess",
        reference="Chow 1970", registered=True, prices_abstention=True),
    _at_threshold(
        "cwsa", _threshold.cwsa_score, _threshold.cwsa, "higher", "[-1, 1]", worst=-1.0,
        formula="mean over S(t) of (c - t)/(1 - t) (1 - 2 l)",
        undefined="nothing accepted: 0; scorer -1",
        use="confident errors cost most, at one threshold",
        avoid="choosing calibrators: sharpness alone raises it", reference=_CWSA, registered=True,
        confidence="unit", row_terms=partial(_threshold.cwsa_terms, threshold=0.5, sign=-1.0)),
    _at_threshold(
        "cwsa_plus", _threshold.cwsa_plus_score, _threshold.cwsa_plus, "higher", "[0, 1]",
        worst=0.0, formula="mean over S(t) of (c - t)/(1 - t) (1 - l)",
        undefined="nothing accepted: 0; scorer 0",
        use="choosing model settings or a threshold, with min_coverage",
        avoid="choosing calibrators: sharpness alone raises it", reference=_CWSA, registered=True,
        confidence="unit", row_terms=partial(_threshold.cwsa_terms, threshold=0.5, sign=0.0)),
    _counting(
        "aurc", _areas.aurc_score, _Curve.aurc, "lower", "[0, 1]", registered=True,
        formula="mean over rows k of the risk of the k surest", undefined="no errors: 0",
        use="comparison with published values", reference=_AURC,
        avoid="comparing models: the first errors weigh without bound; see augrc",
        interval="ranking"),
    _counting(
        "eaurc", _areas.eaurc_score, _Curve.eaurc, "lower", "[0, 1]", registered=True,
        formula="AURC - AURC of the best order", undefined="no errors: 0",
        use="what better ranking could gain", reference=_AURC,
        avoid="comparing models of different accuracy", interval="ranking"),
    _counting(
        "naurc", _areas.naurc_score, _Curve.naurc, "lower", "[0, inf)",
        formula="(AURC - best)/(mean loss - best)", undefined="all losses equal: nan",
        use="share of the possible ranking that is missed", reference="Cattelan & Silva 2024",
        avoid="few errors: it is noisy"),
    _area(
        "augrc", _areas.augrc_score, _Curve.augrc, "lower", "[0, 0.5]", registered=True,
        formula="area under generalised risk over coverage", undefined="no errors: 0",
        use="comparing models, errors and ranking together", reference=_AUGRC,
        avoid="where one fixed threshold is in use: see selective_risk", interval="ranking"),
    _area(
        "aumcc", _areas.aumcc_score, _areas.aumcc, "higher", "[-1, 1]",
        formula="area under a metric over coverage, t = .50 ... .99", reference=_CWSA,
        undefined="coverage never moves: 0 (trapezoid)", use="a metric over many thresholds",
        avoid="estimator='trapezoid' for confident models: 0 for a perfect one"),
    _area(
        "risk_at_coverage", _areas.risk_at_coverage_score, _Curve.risk_at_coverage,
        "lower", "[0, 1]", formula="risk of the smallest S(t) with coverage >= q",
        undefined=_NEVER, use="a fixed capacity for review", avoid="as a promise for new cases",
        reference=_SELECTIVE),
    _area(
        "coverage_at_risk", _areas.coverage_at_risk_score, _Curve.coverage_at_risk,
        "higher", "[0, 1]", formula="largest coverage with selective risk <= r",
        undefined="no threshold meets the risk: 0", use="a fixed quality of decisions",
        avoid="as a promise for new cases: see ThresholdTuner", reference=_SELECTIVE),
    _area(
        "review_rate_at_reliability", _areas.review_rate_at_reliability_score,
        _areas.review_rate_at_reliability, "lower", "[0, 1]", reference=f"{_CAU}, eq. 14",
        formula="1 - largest coverage with generalised risk <= 1 - rho",
        undefined="no threshold is reliable enough: 1", use="how much a person must review",
        avoid="as a promise for new cases: see ThresholdTuner"),
    _ranking(
        "failure_auroc", _error_detection.failure_auroc_score, _error_detection.failure_auroc,
        "higher", "[0, 1]", formula="P(right surer than wrong) + P(tie)/2", registered=True,
        undefined="no errors or no right rows: nan", use="confidences of one classifier",
        avoid="comparing classifiers: it ignores how many errors there are",
        interval="ranking", rests_on="errors and right answers"),
    _ranking(
        "failure_average_precision", _error_detection.failure_average_precision_score,
        _error_detection.failure_average_precision, "higher", "[0, 1]",
        formula="sum of (gain in recall) x precision of finding errors",
        undefined="nothing to find: nan", use="searching for rare errors",
        avoid="comparing classifiers: more errors raise it"),
    _claim_curve(
        "cw_accuracy", _confidence_weighted.cw_accuracy_score, _confidence_weighted.cw_accuracy,
        "higher", "[0, 1]", formula="sum of w c a / sum of w c", registered=True,
        undefined="all confidences 0: nan", use="whether it is surer where it is right",
        avoid="without accuracy beside it", reference=_CSR, interval="closed form"),
    _claim_curve(
        "cw_gain", _confidence_weighted.cw_gain_score, _confidence_weighted.cw_gain, "higher",
        "[-1, 1]",
        formula="(cwA - acc)/(1 - min(cwA, acc))", undefined="no errors: nan",
        use="what confidence adds to accuracy", avoid="few errors", reference=_CSR),
    _weighted(
        "cw_precision", _confidence_weighted.cw_precision_score, _confidence_weighted.cw_precision,
        "higher", "[0, 1]", formula="cwTP/(cwTP + cwFP)",
        undefined="class never predicted: nan alone, 0 in a mean",
        use="false alarms, above all confident ones",
        avoid="confidences that are not probabilities"),
    _weighted(
        "cw_recall", _confidence_weighted.cw_recall_score, _confidence_weighted.cw_recall,
        "higher", "[0, 1]", formula="cwTP/(cwTP + cwFN)",
        undefined="class without rows: nan, left out of the mean",
        use="missed cases, above all confident misses",
        avoid="confidences that are not probabilities"),
    _weighted(
        "cw_specificity", _confidence_weighted.cw_specificity_score,
        _confidence_weighted.cw_specificity,
        "higher", "[0, 1]", formula="cwTN/(cwTN + cwFP)",
        undefined="no rows of other classes: nan, left out of the mean",
        use="how rarely other classes are taken for it", avoid="many classes: near 1 for all"),
    _weighted(
        "cw_f1", _confidence_weighted.cw_f1_score, _confidence_weighted.cw_f1, "higher", "[0, 1]",
        formula="2 cwTP/(2 cwTP + cwFP + cwFN)",
        undefined="class neither true nor predicted: nan, left out of the mean",
        use="precision and recall in one", avoid="confidences that are not probabilities"),
    _weighted(
        "cw_matthews", _confidence_weighted.cw_matthews_corrcoef, _confidence_weighted.cw_matthews,
        "higher", "[-1, 1]", formula="correlation of true and predicted class, weights w c",
        undefined="one true or one predicted class: nan", use="unbalanced classes",
        avoid="confidences that are not probabilities"),
    _weighted(
        "cw_auc", _confidence_weighted.cw_auc_score, _confidence_weighted.cw_auc, "higher",
        "[0, 1]",
        formula="mean over classes of the AUC of p_k, weights w c", registered=True,
        undefined="class with no row or all rows: nan, left out of the mean",
        use="ranking of classes where the model is sure", avoid="rating abstention: see augrc"),
    _claim_curve(
        "csr", _csr.csr_score, _csr.csr, "lower", "[0, inf)",
        formula="mean of l/(1 - c)", undefined="no errors: 0", use="errors near certainty",
        avoid="calibration as a whole: it sees the tail only", reference=_CSR, best=1.0,
        interval=None, no_interval="its mean rests on a few rare errors; csr_test tells whether "
        "it could be chance"),
    _claim_curve(
        "ece", _binned_errors.expected_calibration_error, _binned_errors.ece, "lower", "[0, 1]",
        formula="mean over bins of |mean a - mean c|", undefined=_NEVER, registered=True,
        use="the error that most papers report",
        avoid="few rows: it depends on the bins and is biased upwards",
        reference="Guo et al. 2017", chance_raises="value"),
    _claim(
        "debiased_l2", _binned_errors.debiased_calibration_error, _binned_errors.debiased_l2,
        "lower", "[0, 1]", formula="root of mean (a_b - c_b)^2 - a_b (1 - a_b)/(n_b - 1)",
        undefined="bins of one row: left out", scale_free=False, use="size of the error, few rows",
        avoid="ranking nearly calibrated models: many are exactly 0",
        reference="Kumar et al. 2019", chance_raises="draws"),
    _claim(
        "smooth_ece", _smooth_errors.smooth_calibration_error, _smooth_errors.smooth_ece,
        "lower", "[0, 1]", formula="s with integral |residuals smoothed by s| = s",
        undefined=_NEVER, use="the error without bins: first choice", avoid=_CHANCE,
        reference="Blasiok & Nakkiran 2023", chance_raises="value"),
    _claim_curve(
        "ecce_mad", _smooth_errors.ecce_mad, _smooth_errors.largest_cumulative_gap,
        "lower", "[0, 1]", formula="max over k of |sum over the k least sure of (a - c)|/n",
        use="one-sided miscalibration, with a p-value (ecce_test)", avoid=_CHANCE,
        reference="Arrieta-Ibarra et al. 2022", chance_raises="value"),
    _claim_curve(
        "ecce_r", _smooth_errors.ecce_r, _smooth_errors.range_of_cumulative_gaps,
        "lower", "[0, 1]", formula="largest |sum of (a - c)|/n over an interval of c",
        use="miscalibration anywhere, with a p-value (ecce_test)", avoid=_CHANCE,
        reference="Arrieta-Ibarra et al. 2022", chance_raises="value"),
    _claim_curve(
        "isotonic_distance", _smooth_errors.isotonic_calibration_distance,
        _smooth_errors.isotonic_distance, "lower", "[0, 1]", formula="mean |c - isotonic(c)|",
        use="what isotonic calibration would change", avoid="few rows: biased upwards",
        reference=_CSR, chance_raises="value"),
    _claim(
        "top_label_brier", _smooth_errors.top_label_brier_score, _smooth_errors.top_label_brier,
        "lower", "[0, 1]", formula="mean (c - a)^2", undefined=_NEVER,
        use="choosing calibrations that leave the predicted classes as they are",
        avoid="calibration alone: it also measures accuracy",
        reference="Brier 1950", interval="closed form"),
    _classes(
        "cau", _cau.cau_score, _cau.cau, "lower", "[0, inf)",
        formula="mean -log(1 - h) if right + lambda mean -log h if wrong, h = H(p)/log K",
        undefined="a part without rows: left out; scorer without right rows: nan",
        needs_right=True, use="whether entropy is low where right and high where wrong",
        avoid="calibration: it rewards certainty", reference=f"{_CAU}, eqs. 5-8", registered=True),
]

#: Metrics that are there only for comparison with published values.
_ROWS_FOR_COMPARISON = [
    _counting(
        "accuracy_rejection_auc", _areas.accuracy_rejection_auc_score,
        _areas.accuracy_rejection_auc, "higher", "[0, 1]", formula="1 - AURC",
        undefined="no errors: 1", use="comparison with published values",
        avoid="as for aurc", reference="Nadeem et al. 2009", interval="ranking"),
    _ranking(
        "oc_auc", _error_detection.oc_auc_score, _error_detection.oc_auc, "higher", "[0, 1]",
        formula="failure AUROC once errors in the least sure share are corrected",
        undefined="no errors left: nan", use="a fixed review budget with an oracle",
        reference="Kivlichan et al. 2021",
        avoid="comparing classifiers, or other budgets"),
    _ranking(
        "f1_retention_auc", _error_detection.f1_retention_auc_score,
        _error_detection.f1_retention_auc,
        "higher", "[0, 0.715]", formula="area under 2 T/(x + R) over the share x retained",
        undefined="no right rows: 0", use="comparison with published values",
        reference="Malinin et al. 2021",
        avoid="comparing classifiers: fewer errors can lower it"),
    _classes(
        "auroc_aurc", _error_detection.auroc_aurc_score, _error_detection.auroc_aurc, "lower",
        "[0, 1]",
        formula="mean over k of 1 - AUROC of the k surest rows (two classes)",
        undefined="one class only: nan", use="comparison with published values",
        avoid="comparing classifiers: it may gain by accepting one class", reference=_AUGRC),
    _claim_curve(
        "p_risk", _csr.p_risk_score, _csr.p_risk, "lower", "[0, 1]",
        formula="Phi((CSR - 1)/sigma) if CSR > 1, else 0", undefined="no errors: 0",
        scale_free=False, use="comparison with published values", registered=True,
        avoid="decisions: see csr_test, whose p-value is exact", reference=_CSR, interval=None,
        no_interval="it is a probability computed from the rows themselves; see csr_test"),
    _claim_curve(
        "mce", _binned_errors.maximum_calibration_error, _binned_errors.mce, "lower", "[0, 1]",
        formula="largest |mean a - mean c| of a bin", undefined=_NEVER, use="the worst bin",
        avoid="bins with few rows decide it", reference="Guo et al. 2017", interval=None,
        no_interval="the bin with the fewest rows decides it; take 'ece' or 'smooth_ece'"),
    _classes(
        "classwise_ece", _binned_errors.classwise_calibration_error, _binned_errors.classwise_ece,
        "lower", "[0, 1]", formula="mean over k of the ECE of p_k", undefined=_NEVER,
        use="every class's probability counts", avoid="many classes: near 0 for all",
        reference="Kull et al. 2019", interval=None,
        no_interval="its bootstrap is biased in every class; take 'ece', or t_cal_test"),
    _claim(
        "tce", _calibration_tests.tce_score, _calibration_tests.tce, "lower", "[0, 100]",
        undefined=_NEVER, scale_free=False,
        formula="percent of rows with p-value <= alpha in their bin",
        use="the share of rows with evidence of miscalibration",
        avoid="comparing samples of different size: more rows find more",
        reference="Matsubara et al. 2023", interval=None,
        no_interval="it counts the outcomes of tests, which change with the number of rows"),
    _claim(
        "ecd", _calibration_tests.ecd_score, _calibration_tests.ecd, "lower", "(-inf, inf)",
        formula="mean (c - a) log(c/(1 - c))", undefined=_NEVER, best=0.0,
        use="over- (+) or underconfident (-)", avoid="where both occur: they cancel",
        reference="Sumler et al. 2025", interval="closed form"),
]
# fmt: on

#: All metrics by their short name.
SPECS: dict[str, MetricSpec] = {
    **{spec.name: spec for spec in _ROWS},
    **{spec.name: replace(spec, for_comparison=True) for spec in _ROWS_FOR_COMPARISON},
}


def check_parameters(spec: MetricSpec, parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that the metric does not have, and a threshold it cannot take."""
    for key in parameters:
        if key not in spec.parameters:
            raise ValueError(
                f"{key}: the metric {spec.name!r} has no such parameter; it has "
                f"{list(spec.parameters)}."
            )
    for key, known in spec.parameters.items():
        if known.default is inspect.Parameter.empty and key not in parameters:
            raise ValueError(f"{key} is missing: the metric {spec.name!r} needs it.")
    if "threshold" in parameters:
        check_threshold(parameters["threshold"])
        if spec.confidence == "unit":
            check_cwsa_threshold(parameters["threshold"])
    if "average" in parameters and parameters["average"] is None:
        raise ValueError(
            f"average=None gives one value per class; {spec.name!r} must be one number here."
        )


def check_comparable(spec: MetricSpec, parameters: Mapping[str, Any]) -> None:
    """Refuse metrics whose differences do not say which model is better."""
    if spec.signed:
        raise ValueError(
            f"metric: {spec.name!r} is best at 0 and its sign tells the direction, so differences "
            f"do not say which model is better; test each model with {spec.name}_test."
        )
    if spec.chance_raises == "value":
        raise ValueError(
            f"metric: {spec.name!r} is never 0 in a sample: chance raises it, by an amount that "
            "differs from model to model. Compare 'top_label_brier' or 'debiased_l2', and test "
            "each model with t_cal_test."
        )
    check_direction(parameters)


def check_direction(parameters: Mapping[str, Any]) -> None:
    """Refuse an area under a risk: the table says that a larger area is better."""
    along = parameters.get("metric")
    if along in _areas.CURVE_METRICS and not SPECS[along].greater_is_better:
        raise ValueError(
            f"metric={along!r}: more of this area is worse; use 'selective_accuracy' or the metric "
            "'augrc' where models are ranked."
        )
