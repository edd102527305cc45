"""What is guaranteed about a threshold, in words that a manager can read."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from typing import Any, Self

import numpy as np

from skselect import objectives
from skselect._lib.arrays import ROUNDING, FloatArray, lexsort
from skselect._lib.checks.options import check_choice, check_count, check_number
from skselect._lib.notebook import (
    LONGEST_LINE,
    NotebookText,
    count,
    noun_of,
    percent,
    rounded,
    show_card,
    unwrap,
)
from skselect.bounds._band import BAND_SHARE
from skselect.curve.curve import RiskCoverageCurve
from skselect.policy.caveats import (
    ALL_COPIES as ALL_COPIES,
    ALL_SEEN as ALL_SEEN,
    ASSUMPTIONS as ASSUMPTIONS,
    CHOSEN_HERE as CHOSEN_HERE,
    FIRST_ANALYSIS as FIRST_ANALYSIS,
    FIXED as FIXED,
    FOLD_MODELS as FOLD_MODELS,
    FRESH as FRESH,
    FRESH_BY_WORD as FRESH_BY_WORD,
    GROUPED as GROUPED,
    INDEPENDENT as INDEPENDENT,
    MAY_HAVE_CHOSEN as MAY_HAVE_CHOSEN,
    MOST_SEEN as MOST_SEEN,
    MUST_PASS as MUST_PASS,
    NO_CAVEATS as NO_CAVEATS,
    NO_RECORD as NO_RECORD,
    NOT_MET as NOT_MET,
    NOTHING as NOTHING,
    NOTHING_CHECKED as NOTHING_CHECKED,
    OF_FIT as OF_FIT,
    OLD_RECORD as OLD_RECORD,
    PLANNED as PLANNED,
    POOL as POOL,
    REFITTED as REFITTED,
    ROW_RECORDS as ROW_RECORDS,
    SAME_ROWS as SAME_ROWS,
    SORTED_BY_CLASS as SORTED_BY_CLASS,
    STARTS as STARTS,
    UNCHANGED as UNCHANGED,
    UNORDERED as UNORDERED,
    UNSOUGHT as UNSOUGHT,
    VOUCHED as VOUCHED,
    WEIGHED as WEIGHED,
    Caveat as Caveat,
    check_vouched as check_vouched,
    copied_here as copied_here,
    equal_classes as equal_classes,
    in_order as in_order,
    mixed_rows as mixed_rows,
    note_coins as note_coins,
    other_classes as other_classes,
    others_trained as others_trained,
    trained_here as trained_here,
)
from skselect.policy.certificate_text import (
    percent_kept as percent_kept,
    write_details,
    write_lines,
)
from skselect.predictions.outcomes import Outcomes
from skselect.thresholds._least import least_band_target


@dataclass(frozen=True)
class Origin:
    """What is known of the rows of a certificate beside their outcomes.

    Parameters
    ----------
    caveats : tuple of Caveat, default=()
        Why a certificate is not exact.
    assumed : tuple of str, default=()
        What it assumes beside what all certificates do.
    provenance : str, default=""
        Which rows these are, as the certificate says.
    fingerprints : dict, default={}
        Their digests.
    drawn : str, default=""
        How the rows were drawn, which the certificate assumes first.
    seed : int, default=0
        What is drawn by chance is drawn with it.
    by_chance : bool, default=False
        Whether anything was: rows that named levels, or coins for losses and weights.
    analysis : str, default=FIRST_ANALYSIS
        What is assumed about analyses, where no more are planned.
    reviewer : str, default=""
        What is said about a reviewer.
    refusal : str, default=""
        Why nothing is guaranteed at all.
    """

    caveats: tuple[Caveat, ...] = ()
    assumed: tuple[str, ...] = ()
    provenance: str = ""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    drawn: str = ""
    seed: int = 0
    by_chance: bool = False
    analysis: str = FIRST_ANALYSIS
    reviewer: str = ""
    refusal: str = ""

    def with_pool(self, outcomes: Outcomes) -> Self:
        """Say how many of the rows are judged, where not all need to be."""
        if outcomes.unjudged is None:
            return self
        n = len(outcomes)
        waits = int(np.sum(outcomes.unjudged))
        rest = f"; the other {waits:,} count as wrong" if waits else ""
        which = f"{n - waits:,} judged cases of a pool of {n:,}{rest}"
        return replace(self, provenance=which, analysis=POOL)


class Stated:
    """What is guaranteed, as a certificate and a check of it hold it."""

    objective: str
    target: float
    delta: float
    loss: str
    unit: float
    cases: str
    deferred_error: float | None

    @property
    def as_objective(self) -> objectives.Guarantee:
        """The objective, on its rows."""
        objective = objectives.GUARANTEES[self.objective](self.target, delta=self.delta)
        if isinstance(objective, objectives.SystemRisk):
            objective.deferred_error = self.deferred_error
        return objective.on(objectives.Loss(self.loss, self.unit), self.cases)

    @property
    def statement(self) -> str:
        """What is guaranteed, in words; bounds are never rounded in its favour."""
        return self.as_objective.describe()


@dataclass(frozen=True)
class Certificate(Stated, NotebookText):
    """The guarantee that comes with a threshold, its numbers and its assumptions.

    Print it: the text begins with "CERTIFIED" only when the guarantee is exact.

    Parameters
    ----------
    objective : {"risk", "generalized_risk", "coverage", "system_risk"}
        What the target bounds.
    target : float
        The guaranteed bound, in units of the cost matrix where there is one.
    delta : float
        Probability that the guarantee fails, over calibrations like this one.
    max_analyses : int
        Planned analyses of growing rows, which share `delta` evenly.
    method : str
        How the guarantee was derived.
    guarantee : {"high_probability", "mean", "measured", "none"}
        "measured": the bound holds with high probability, but nobody asked for it beforehand.
    exact : bool
        Whether the guarantee holds in finite samples under the assumptions alone.
    caveats : tuple of str
        Why the guarantee is not exact, or what else keeps it from being taken plainly.
    threshold : float
    n : int
        Rows used.
    n_accepted, n_errors : int
        Accepted rows, and those among them that are wrong. A loss between 0 and 1 is an error with
        this probability; for method "mean" it is one if it is not 0.
    coverage, risk : float
        Share of accepted rows; their mean loss (nan when none is accepted).
    pointwise_bound : float
        Bound for this threshold as if it had been fixed beforehand. Not the guarantee:
        it ignores that the threshold was chosen.
    rows_needed : int
        The least number of rows that could certify the target at all.
    min_coverage : float
        Smaller accepted sets were not considered.
    loss : {"zero_one", "cost", "graded"}
        What is bounded: the share of errors, their mean cost, or a mean loss.
    unit : float
        The largest cost; target, risk and bound are in its units.
    cases : str
        Which cases it is about, "" for all: "of subgroup 'F'" or "whose answer is 'healthy'".
    assumptions : tuple of str
        What the rows cannot show.
    notice : str
        Where these rows contradict the policy's own guarantee, or do not confirm it; else "". See
        :func:`certify`.
    provenance : str
        Which of the rows given choose the threshold, where a splitter left some to training only.
    shortlist : str
        What is said about the shortlist of deferred cases, "" where there is none.
    reviewer : str
        What is said about the reviewer of deferred cases, "" where the target does not count the
        reviewer's errors.
    deferred_error, overall_error : float or None
        The share of the deferred cases that the reviewer is assumed to get wrong; or the bound of
        the share of all cases that are deferred and then wrong.
    seed : int or None
        It drew the rows that name levels, or the coins for losses and weights. None: nothing was
        drawn by chance.
    created : str
        Date and time, ISO 8601.
    fingerprints : dict
        "data": digest of the confidences of the rows used. "model": digest of the
        (calibrated) probabilities for those rows. Both are independent of the rows' order.
    n_sharing : int
        How many guarantees, those of all subgroups, share the delta that was asked for.
    also : tuple of Certificate
        Further guarantees of the same threshold, each at its share of the delta that was asked for;
        all hold together.
    """

    objective: str
    target: float
    delta: float
    method: str
    guarantee: str
    exact: bool
    caveats: tuple[str, ...]
    threshold: float
    n: int
    n_accepted: int
    n_errors: int
    coverage: float
    risk: float
    pointwise_bound: float
    rows_needed: int
    min_coverage: float = 0.0
    loss: str = "zero_one"
    unit: float = 1.0
    cases: str = ""
    assumptions: tuple[str, ...] = ASSUMPTIONS
    created: str = ""
    fingerprints: dict[str, str] = field(default_factory=dict)
    also: tuple[Certificate, ...] = ()
    max_analyses: int = 1
    notice: str = ""
    provenance: str = ""
    shortlist: str = ""
    reviewer: str = ""
    deferred_error: float | None = None
    overall_error: float | None = None
    seed: int | None = None
    n_sharing: int = 1

    @classmethod
    def of(
        cls,
        objective: objectives.Guarantee,
        threshold: float,
        working_point: tuple[float, float],
        counts: Sequence[objectives.Counts],
        origin: Origin,
    ) -> Certificate:
        """Write the certificate of an objective on its rows; without a target, of the bound.

        The counts are those of the first reading of the rows, the bound is the weakest of all.
        """
        guarantee = objective.plan.guarantee
        loss = objective.about
        bound = objective.bound(objective.weakest(counts))
        if math.isnan(objective.target):
            guarantee = "measured"
            objective = copy.copy(objective).set_params(target=bound)
        caveats = _order_caveats(origin)
        coverage, risk = working_point
        return cls(
            objective=objective.name,
            target=objective.target,
            delta=objective.own_delta,
            max_analyses=objective.max_analyses,
            method=objective.method_name,
            guarantee="none" if origin.refusal else guarantee,
            exact=not any(caveat.strikes for caveat in caveats),
            caveats=tuple(caveat.reason for caveat in caveats if caveat.reason),
            threshold=threshold,
            n=counts[0].n,
            n_accepted=counts[0].n_accepted,
            n_errors=counts[0].n_errors,
            coverage=coverage,
            risk=loss.unit * risk,
            pointwise_bound=bound,
            rows_needed=objective.rows_needed(),
            min_coverage=objective.least_coverage(counts[0].n),
            loss=loss.kind,
            unit=loss.unit,
            cases=objective.cases,
            assumptions=_list_assumptions(objective, origin, caveats),
            created=now(),
            fingerprints=dict(origin.fingerprints),
            provenance=origin.provenance,
            reviewer=origin.reviewer,
            deferred_error=objective.reviewing.rate,
            overall_error=objective.reviewing.bound,
            seed=origin.seed if origin.by_chance else None,
            n_sharing=objective.n_sharing,
        )

    @property
    def is_certified(self) -> bool:
        """Whether each guarantee is exact and holds with high probability."""
        is_guaranteed = self.exact and self.guarantee == "high_probability"
        return is_guaranteed and all(other.is_certified for other in self.also)

    @property
    def since(self) -> str:
        """When it was certified, and by how many rows; "" if it is not."""
        if not self.is_certified:
            return ""
        return ", ".join(filter(None, [self.created[:10], count(self.n, "row")]))

    def tell_life(self, n_sharing: int) -> str:
        """Return what is guaranteed since when, and how many labelled rows are enough to test it.

        `n_sharing` is how many guarantees are tested together.
        """
        guarantee = self.as_objective
        doubt = max(objectives.DOUBT / n_sharing, self.delta)
        n_rows = int(float(rounded(guarantee.rows_to_review(doubt), 2, up=True)))
        life = guarantee.tell_life(self.since)
        return f"{life} Next review: after about {count(n_rows, guarantee.counted)}."

    @property
    def can_fail(self) -> bool:
        """Whether it uses `delta`: with too few rows nothing is accepted, or all for a coverage."""
        objective = self.as_objective.set_params(max_analyses=self.max_analyses)
        return self.method == objectives.FIXED_METHOD or self.n >= max(
            self.rows_needed, objective.rows_to_fail
        )

    @cached_property
    def least_target(self) -> float:
        """The smallest target that this threshold would have met on these rows.

        It is information about this threshold only. Quoting it as the guarantee would choose
        the target after seeing the rows; to certify it, use fresh ones. (For a coverage
        objective: the largest coverage. For "band" it is exact; the other methods also look at
        surer rows, so that it is an upper bound. Computed when first asked for.)
        """
        if not self.as_objective.is_selective or self.method == objectives.FIXED_METHOD:
            return self.pointwise_bound
        share = {"band": 1.0, "combined": BAND_SHARE}.get(self.method)
        if share is None:
            return self.target if self.n_accepted else self.unit
        counts = self.n_accepted, self.n_errors
        delta = share * self.delta / self.max_analyses
        least = self.unit * least_band_target(*counts, self.n, delta, self.min_coverage)
        return min(least, self.target) if self.n_accepted else least

    @property
    def verdict(self) -> str:
        """CERTIFIED, REFUSED, or ESTIMATE, NOT CERTIFIED."""
        if self.is_certified:
            return "CERTIFIED"
        if NOTHING.reason in self.caveats:
            return "REFUSED"
        return "ESTIMATE, NOT CERTIFIED"

    def __repr__(self) -> str:
        each = [self, *self.also]
        guarantees = " and ".join(f"{x.objective} {x.target:g} {x.cases}".rstrip() for x in each)
        rows = f"{self.n} {noun_of(self.n, 'row')}"
        text = (
            f"<Certificate: {self.verdict}, {guarantees}, "
            f"delta {self.delta:g}, threshold {self.threshold:.6g}, {rows}>"
        )
        if len(text) <= LONGEST_LINE:
            return text
        return f"<Certificate: {self.verdict}, {len(each)} guarantees, {rows}>"

    def __str__(self) -> str:
        return write_lines(self)

    def details(self) -> str:
        """Return what the certificate rests on in full: caveats, assumptions, method.

        Returns
        -------
        str

        Examples
        --------
        >>> from skselect import Outcomes, select_threshold
        >>> rows = Outcomes([0] * 299 + [1], [.9, .9, .8] * 100)
        >>> certificate = select_threshold(rows, objective="risk", target=.05).certificate
        >>> print(certificate.details().splitlines()[-1])
        Method: combined, delta 0.05.
        """
        return write_details(self)

    def rows_to_review(self) -> int:
        """Return after about how many cases to check it again.

        So many would show a value of one and a half times the target with probability .8. They
        are answered cases for a selective risk, cases of any kind for the others.
        """
        n_rows = self.as_objective.rows_to_review(max(objectives.DOUBT, self.delta))
        return int(float(rounded(n_rows, 2, up=True)))

    def _repr_html_(self, text: str | None = None) -> str:
        """Return a text about this certificate as HTML, with its numbers large; None: its own."""
        is_met = not self.notice.startswith(NOT_MET)
        tone = "good" if self.is_certified and is_met else "open"
        card = show_card(text or str(self), tone, self._large_numbers(), n_small=2)
        details = escape(unwrap(self.details())).replace("\n", "<br>")
        fold = f"<details><summary>Details</summary><small>{details}</small></details>"
        return f"{card.removesuffix('</div>')}{fold}</div>"

    def _large_numbers(self) -> dict[str, str]:
        """Return the numbers that a card shows in large type; no bound where none is answered."""
        numbers = {"of these cases answered": percent(self.coverage)}
        if self.n_accepted == 0:
            return numbers
        word = "not guaranteed"
        if self.is_certified:
            word = "guaranteed"
        elif self.exact and self.guarantee == "measured":
            word = "bound only"
        for certificate in (self, *self.also):
            for name, value in certificate.as_objective.limit(word).items():
                numbers[f"{name} {certificate.cases}".strip()] = value
        if math.isfinite(self.threshold):
            numbers["least confidence of an answer"] = f"{self.threshold:.6g}"
        return numbers

    @property
    def bound(self) -> str:
        """The target as text, rounded to the safe side."""
        return self.as_objective.amount(self.target)

    @property
    def reads_reviewer(self) -> bool:
        """Whether only a reviewer's answers can test it."""
        known = (self.deferred_error, self.overall_error)
        return self.objective == objectives.SystemRisk.word and known == (None, None)

    @property
    def is_of_users_loss(self) -> bool:
        """Whether it bounds a loss of the user's own, which no policy holds."""
        return self.loss == "graded"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; infinite and undefined numbers become None."""
        stored = asdict(self)
        stored["threshold"] = threshold_to_json(self.threshold)
        stored["risk"] = None if np.isnan(self.risk) else self.risk
        stored["caveats"] = list(self.caveats)
        stored["assumptions"] = list(self.assumptions)
        if not self.reviewer:
            del stored["reviewer"], stored["deferred_error"], stored["overall_error"]
        if self.seed is None:
            del stored["seed"]
        if self.n_sharing == 1:
            del stored["n_sharing"]
        del stored["also"]
        return stored | ({"also": [other.to_dict() for other in self.also]} if self.also else {})

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Certificate:
        """Rebuild a certificate from :meth:`to_dict`."""
        values = stored | {"threshold": threshold_from_json(stored["threshold"])}
        risk = stored["risk"]
        values["risk"] = math.nan if risk is None else check_number("risk", risk, 0.0)
        for name in ("caveats", "assumptions"):
            values[name] = tuple(check_texts(name, values[name]))
        values["also"] = tuple(map(cls.from_dict, stored.get("also", ())))
        certificate = cls(**values)
        _check_values(certificate)
        for other in certificate.also:
            check_certified(other, certificate.threshold, "certificate: also", "also=()")
        str(certificate)  # other values of a wrong kind fail here, and not later
        return certificate

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)


def _order_caveats(origin: Origin) -> list[Caveat]:
    """Return the caveats of a certificate, those first that make it an estimate."""
    caveats = list(origin.caveats)
    if origin.refusal:
        caveats.append(Caveat(origin.refusal))
    return sorted(caveats, key=lambda caveat: not caveat.strikes)


def _list_assumptions(
    objective: objectives.Guarantee, origin: Origin, caveats: Sequence[Caveat]
) -> tuple[str, ...]:
    """Return what a certificate assumes, but for what its caveats deny."""
    denied = {caveat.violates for caveat in caveats if caveat.strikes}
    assumptions = (
        origin.drawn,
        *objective.reviewing.assumes,
        *ASSUMPTIONS,
        *(caveat.assumes for caveat in caveats),
        *origin.assumed,
        origin.analysis if objective.max_analyses == 1 else PLANNED,
    )
    return tuple(text for text in assumptions if text and text not in denied)


def _check_values(certificate: Certificate) -> None:
    """Refuse a stored certificate with values that none can have."""
    check_choice("guarantee", certificate.guarantee, _GUARANTEED)
    check_choice("loss", certificate.loss, _LOSSES)
    if not _fit_together(certificate):
        raise ValueError("certificate: its values do not fit together.")
    for name in ("coverage", "min_coverage", "deferred_error", "overall_error"):
        value = getattr(certificate, name)
        if value is not None or not name.endswith("_error"):
            check_number(name, value, 0.0, 1.0)
    check_number("pointwise_bound", certificate.pointwise_bound, 0.0)
    for name, least in {"rows_needed": 0, "max_analyses": 1, "n_sharing": 1, "seed": 0}.items():
        value = getattr(certificate, name)
        if value is not None or name != "seed":
            check_number(name, check_count(name, value, least))
    texts = [
        certificate.method,
        certificate.cases,
        certificate.notice,
        certificate.provenance,
        certificate.shortlist,
        certificate.reviewer,
    ]
    check_texts("text", texts)
    check_made(certificate.created, certificate.fingerprints)


def _fit_together(certificate: Certificate) -> bool:
    """Tell whether target, level, counts and verdict can stand in one certificate."""
    unit = certificate.as_objective.unit
    # A bound may be 0. No number of rows certifies a target next to 0.
    least = 1e-12 * unit
    if certificate.method == objectives.FIXED_METHOD:
        least = 0.0
    if not least <= certificate.target <= unit * (1.0 + ROUNDING):
        return False
    if not 0.0 < certificate.delta <= 0.5:
        return False
    counts = [0, certificate.n_errors, certificate.n_accepted, certificate.n]
    if counts != sorted(counts):
        return False
    exact: Any = certificate.exact  # a file may hold anything
    return isinstance(exact, bool) and (exact or len(certificate.caveats) > 0)


def fingerprint(curve: RiskCoverageCurve) -> str:
    """Return a digest of the rows' confidences that does not depend on their order.

    Losses and weights are left out: the same rows are recognised whatever counts as a loss.
    """
    digest = hashlib.sha256(np.ascontiguousarray(curve.thresholds).data)
    if len(curve) < curve.n_rows:
        digest.update(np.ascontiguousarray(curve.block_rows).data)
    return digest.hexdigest()[:16]


def scores_fingerprint(scores: FloatArray) -> str:
    """Return a digest of scores (n, K) or (n,) that does not depend on the rows' order.

    The scores of a model for given rows tell that model apart from another, and these rows
    from others.
    """
    table = np.asarray(scores, dtype=np.float64).reshape(len(scores), -1)
    ordered = table[lexsort([*table.T])]
    return hashlib.sha256(np.ascontiguousarray(ordered).tobytes()).hexdigest()[:16]


def now() -> str:
    """Return date and time as ISO 8601 text."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def threshold_to_json(threshold: float) -> float | str | None:
    """Return a threshold for JSON: inf as None, -inf as "-inf"."""
    if math.isinf(threshold):
        return None if threshold > 0 else "-inf"
    return threshold


def threshold_from_json(stored: Any) -> float:
    """Return the threshold that :func:`threshold_to_json` wrote."""
    if stored is None or stored == "-inf":
        return math.inf if stored is None else -math.inf
    return check_number("threshold", stored, closed="neither")


def check_certified(certificate: Any, threshold: float, what: str, remedy: str) -> None:
    """Refuse a certificate that is about another threshold."""
    if certificate is not None and certificate.threshold != threshold:
        raise ValueError(
            f"{what}, but the certificate is about the threshold {certificate.threshold!r}. Pass "
            f"{remedy} as well: nothing is guaranteed about another threshold until certify() or "
            "select_threshold() has looked at fresh rows."
        )


# Stored certificates ------------------------------------------------------------------------

#: How a guarantee holds, and what it bounds.
_GUARANTEED = ("high_probability", "mean", "measured", "none")
_LOSSES = ("zero_one", "cost", "graded")


def check_made(created: Any, fingerprints: Any) -> None:
    """Check that the date and the digests are text."""
    check_texts("created, fingerprints", [created, *fingerprints.values()])
    for name in ROW_RECORDS:
        if not re.fullmatch("([0-9a-f]{8})*", fingerprints.get(name, "")):
            raise ValueError(f"fingerprints[{name!r}] must hold eight hexadecimal digits a row.")


def check_texts(name: str, values: Any) -> list[str]:
    """Check that a value is a list of texts."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be a list of texts.")
    return values
