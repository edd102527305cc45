"""What is promised about a threshold, in words that a manager can read."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skselect import _validation as check
from skselect._typing import FloatArray
from skselect.bounds import BAND_SHARE, clopper_pearson_upper
from skselect.curves import RiskCoverageCurve
from skselect.thresholds import least_band_target

INDEPENDENT = "the rows are independent draws from the population the policy will meet"
FRESH = "the rows were not used to train, calibrate or choose the classifier, or the target"
UNCHANGED = "the classifier, its calibration and its confidence stay as they are"
FIXED = "the policy was fixed before these rows were seen"
#: What every guarantee rests on.
ASSUMPTIONS = (INDEPENDENT, FRESH, UNCHANGED)


class Doubt(NamedTuple):
    """Why a promise is not exact, and the assumption that is known not to hold ("": none)."""

    reason: str
    broken: str


FOLD_MODELS = Doubt(
    "the threshold comes from out-of-fold predictions, whose models differ from the final one "
    "(FrozenEstimator with fresh rows, or cv=0.3 with refit=False, certifies)",
    UNCHANGED,
)
REFITTED = Doubt(
    "the classifier was fitted again on all rows after the threshold was chosen (refit=False "
    "certifies)",
    UNCHANGED,
)
SAME_ROWS = Doubt(
    "these rows also fitted the calibration of the frozen classifier (cv=0.3 with refit=False, or "
    "a classifier calibrated on other rows, certifies)",
    FRESH,
)
TRAINED_HERE = Doubt("these rows also trained the classifier; fresh rows certify", FRESH)
CHOSEN_HERE = Doubt("these rows also chose the threshold; fresh rows certify", FIXED)
NOTHING = Doubt("no threshold meets the target, so nothing is accepted", "")
GROUPED = Doubt("rows of one group are not independent (groups= was given)", INDEPENDENT)


@dataclass(frozen=True)
class Certificate:
    """The promise that comes with a threshold, its numbers and its assumptions.

    Print it: the text begins with "CERTIFIED" only when the promise is exact.

    Parameters
    ----------
    objective : {"risk", "generalized_risk", "coverage"}
        What the target bounds.
    target : float
        The promised bound.
    delta : float
        Probability that the promise fails, over calibrations like this one.
    method : str
        How the promise was derived.
    guarantee : {"high_probability", "mean", "none"}
    exact : bool
        Whether the promise holds in finite samples under the assumptions alone.
    why_not : tuple of str
        Why the promise is not exact.
    threshold : float
    n : int
        Rows used.
    n_accepted, n_errors : int
        Accepted rows, and the wrong ones among them.
    coverage, risk : float
        Share of accepted rows; share of errors among them (nan when none is accepted).
    pointwise_bound : float
        Exact bound for this threshold as if it had been fixed beforehand. Not the promise:
        it ignores that the threshold was chosen.
    rows_needed : int
        The least number of rows that could certify the target at all.
    min_coverage : float
        Smaller accepted sets were not considered.
    assumptions : tuple of str
        What has to be taken on trust.
    created : str
        Date and time, ISO 8601.
    fingerprints : dict
        "data": digest of confidences and outcomes of the rows used. "model": digest of the
        (calibrated) probabilities for those rows. Both are independent of the rows' order.
    """

    objective: str
    target: float
    delta: float
    method: str
    guarantee: str
    exact: bool
    why_not: tuple[str, ...]
    threshold: float
    n: int
    n_accepted: int
    n_errors: int
    coverage: float
    risk: float
    pointwise_bound: float
    rows_needed: int
    min_coverage: float = 0.0
    assumptions: tuple[str, ...] = ASSUMPTIONS
    created: str = ""
    fingerprints: dict[str, str] = field(default_factory=dict)

    @property
    def is_certified(self) -> bool:
        """Whether the promise is exact and holds with high probability."""
        return self.exact and self.guarantee == "high_probability"

    @cached_property
    def least_target(self) -> float:
        """The smallest target that this threshold would have met on these rows.

        It is information about this threshold only. Quoting it as the promise would choose
        the target after seeing the rows; to certify it, use fresh ones. (For a coverage
        objective: the largest coverage. For the combined method, which looks at all surer
        rows, an upper bound. Computed when first asked for; can take seconds.)
        """
        if self.objective != "risk" or self.method not in ("band", "combined"):
            return self.pointwise_bound
        combined = self.method == "combined"
        counts = np.array([self.n_accepted]), np.array([self.n_errors])
        delta = BAND_SHARE * self.delta if combined else self.delta
        least = least_band_target(*counts, self.n, delta, self.min_coverage)
        return min(least, self.target) if combined and self.n_accepted else least

    def __str__(self) -> str:
        head = "CERTIFIED"
        if not self.is_certified:
            head = f"ESTIMATE, NOT CERTIFIED: {'; '.join(self.why_not)}."
        trust = f"Taken on trust: {'; '.join(self.assumptions)}."
        method = f"Method: {self.method}, delta {self.delta:g}."
        said = [head, self._sentence(), self._facts(), trust, method]
        return "\n".join(line for line in said if line)

    def _sentence(self) -> str:
        """Return the promise in plain words, hedged or left out where it is none."""
        if self.guarantee == "none" or self.n_accepted == 0:
            return ""
        confident = 100.0 - 100.0 * self.delta
        start = "If" if self.exact else "Only if these doubts did not matter: if"
        return (
            f"{start} future cases resemble these {self.n}, then in {confident:.12g} of 100 such "
            f"calibrations {self._promise()}; not per subgroup, not per period."
        )

    def _promise(self) -> str:
        bound = _percent(self.target, up=self.objective != "coverage")
        if self.objective == "risk":
            return f"at most {bound} of the cases it decides alone are wrong"
        if self.objective == "generalized_risk":
            return f"at most {bound} of all cases are decided alone and wrong"
        return f"it decides at least {bound} of all cases alone"

    def _facts(self) -> str:
        if self.n_accepted == 0:
            return f"It decides none of these {self.n} cases alone."
        start = "whatever the confidence"
        if self.n_accepted < self.n:
            start = f"from confidence {self.threshold:.6g} on"
        return (
            f"It decides {_percent(self.coverage)} of these cases alone ({self.n_accepted} of "
            f"{self.n}, {self.n_errors} of them wrong), {start}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; infinite and undefined numbers become None."""
        stored = asdict(self)
        stored["threshold"] = threshold_to_json(self.threshold)
        stored["risk"] = None if np.isnan(self.risk) else self.risk
        stored["why_not"] = list(self.why_not)
        stored["assumptions"] = list(self.assumptions)
        return stored

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Certificate:
        """Rebuild a certificate from :meth:`to_dict`."""
        values = dict(stored)
        values["threshold"] = threshold_from_json(stored["threshold"])
        values["risk"] = float("nan") if stored["risk"] is None else stored["risk"]
        values["why_not"] = tuple(stored["why_not"])
        values["assumptions"] = tuple(stored["assumptions"])
        return cls(**values)

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)


def issue(
    curve: RiskCoverageCurve,
    n_blocks: int,
    *,
    objective: str,
    target: float,
    delta: float,
    method: str,
    threshold: float,
    rows_needed: int,
    min_coverage: float = 0.0,
    doubts: tuple[Doubt, ...] = (),
    refusal: str = "",
    assumptions: tuple[str, ...] = ASSUMPTIONS,
) -> Certificate:
    """Write the certificate for accepting the first `n_blocks` entries of a curve.

    `doubts` say why the promise is not exact, `refusal` why there is none at all.
    """
    why_not = tuple(doubt.reason for doubt in doubts)
    broken = {doubt.broken for doubt in doubts}
    k = int(curve.n_accepted[n_blocks - 1]) if n_blocks else 0
    errors = round(float(curve.accepted_loss[n_blocks - 1])) if n_blocks else 0
    return Certificate(
        objective=objective,
        target=target,
        delta=delta,
        method=method,
        guarantee="none" if refusal else "high_probability",
        exact=not why_not and not refusal,
        why_not=(*why_not, refusal) if refusal else why_not,
        threshold=threshold,
        n=curve.n_rows,
        n_accepted=k,
        n_errors=errors,
        coverage=k / curve.n_rows,
        risk=errors / k if k else float("nan"),
        pointwise_bound=pointwise_bound(objective, k, errors, curve.n_rows, delta),
        rows_needed=rows_needed,
        min_coverage=min_coverage,
        assumptions=tuple(a for a in assumptions if a not in broken),
        created=now(),
        fingerprints={"data": fingerprint(curve)},
    )


def pointwise_bound(objective: str, k: int, errors: int, n: int, delta: float) -> float:
    """Return the exact bound for a threshold that was fixed before these rows were seen."""
    if objective == "risk":
        return clopper_pearson_upper(errors, k, delta) if k else 1.0
    if objective == "generalized_risk":
        return clopper_pearson_upper(errors, n, delta)
    return 1.0 - clopper_pearson_upper(n - k, n, delta)


def fingerprint(curve: RiskCoverageCurve) -> str:
    """Return a digest of confidences and outcomes that does not depend on the rows' order."""
    digest = hashlib.sha256()
    for values in (curve.thresholds, curve.block_weight, curve.block_loss):
        digest.update(np.ascontiguousarray(values, dtype=np.float64).tobytes())
    return digest.hexdigest()[:16]


def scores_fingerprint(scores: FloatArray) -> str:
    """Return a digest of scores (n, K) or (n,) that does not depend on the rows' order.

    The scores of a model for given rows tell that model apart from another, and these rows
    from others.
    """
    table = np.asarray(scores, dtype=np.float64).reshape(len(scores), -1)
    ordered = table[np.lexsort(table.T)]
    return hashlib.sha256(np.ascontiguousarray(ordered).tobytes()).hexdigest()[:16]


def now() -> str:
    """Return date and time as ISO 8601 text."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def threshold_to_json(threshold: float) -> float | str | None:
    """Return a threshold as JSON can hold it: None answers nothing, "-inf" everything."""
    if math.isinf(threshold):
        return None if threshold > 0 else "-inf"
    return threshold


def threshold_from_json(stored: Any) -> float:
    """Return the threshold that :func:`threshold_to_json` wrote."""
    return (
        math.inf
        if stored is None
        else check.check_threshold(-math.inf if stored == "-inf" else stored)
    )


def _percent(share: float, *, up: bool = False) -> str:
    """Return a percentage with four digits; a proven upper bound is never rounded down."""
    text = f"{100.0 * share:.4g}"
    if up and float(text) < 100.0 * share * (1.0 - 1e-12):
        digits = 3 - math.floor(math.log10(100.0 * share))
        text = f"{math.ceil(100.0 * share * 10.0**digits) / 10.0**digits:.4g}"
    return f"{text} %"
