"""A certificate in six lines that one can sign, and its details."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

from skselect import objectives
from skselect._lib.notebook import count, percent, rounded, wrap
from skselect.policy import caveats as words

if TYPE_CHECKING:
    from skselect.policy.certificate import Certificate

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip

#: What a reader vouches for, in short. What has no words here stands as it is; "" stands in the
#: details alone: it follows from what the library did.
_VOUCHED = {
    words.INDEPENDENT: "these cases were drawn at random",
    words.FRESH: "they neither trained nor chose the model",
    words.FIRST_ANALYSIS: "no other target was tried on them",
    words.PLANNED: "the analyses were planned before the first one",
    words.POOL: "this pool and the target were fixed before the first label",
    words.UNCHANGED: "",
    words.STARTS: "",
    words.FIXED: "",
}
_VOUCHED_OF_ONE = _VOUCHED | {
    words.INDEPENDENT: "this case was drawn at random",
    words.FRESH: "it neither trained nor chose the model",
    words.FIRST_ANALYSIS: "no other target was tried on it",
}


def write_lines(certificate: Certificate) -> str:
    """Return a certificate in six lines: verdict, promise, counts, limits, trust, next check."""
    lines = [
        *_write_head(certificate),
        _write_promise(certificate),
        _write_counts(certificate),
        certificate.reviewer,
        certificate.shortlist,
        _write_limits(certificate),
        _write_trust(certificate),
        _write_review(certificate),
    ]
    return wrap("\n".join(line for line in lines if line))


def write_details(certificate: Certificate) -> str:
    """Return what a certificate rests on in full: caveats, assumptions, method."""
    lines = []
    if certificate.caveats:
        lines.append(f"Caveats: {'; '.join(certificate.caveats)}.")
    lines.append(f"Assumptions (not proved): {'; '.join(certificate.assumptions)}.")
    if certificate.provenance:
        verb = "Certified" if certificate.is_certified else "Estimated"
        lines.append(f"{verb} on {certificate.provenance}.")
    lines.append(_write_threshold(certificate))
    day = write_date(certificate.created)
    if day:
        lines.append(f"Written on {day}.")
    lines.append(_write_method(certificate))
    return wrap("\n".join(line for line in lines if line))


# Lines -------------------------------------------------------------------------------------


def write_date(created: str) -> str:
    """Return the day of an ISO 8601 text in words, "" where it is none."""
    try:
        day = datetime.fromisoformat(created)
    except ValueError:
        return ""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _write_head(certificate: Certificate) -> list[str]:
    """Say the verdict, and the day; where it is none that one asked for, why."""
    head = certificate.verdict
    day = write_date(certificate.created)
    if certificate.exact and certificate.guarantee == "measured":
        head = words.MEASURED
    elif not certificate.is_certified:
        head += f": {'; '.join(certificate.caveats)}."
    elif day:
        head += f", {day}"
    if not certificate.notice.startswith(words.NOT_MET):
        return [head, certificate.notice]
    if certificate.is_certified:
        head = "What these rows certify instead:"
    return [certificate.notice, head]


def _write_promise(certificate: Certificate) -> str:
    """Say what is guaranteed and how surely, "" where nothing is."""
    if certificate.guarantee == "none" or certificate.n_accepted == 0:
        return ""
    each = (certificate, *certificate.also)
    promises = "; ".join(one.statement for one in each)
    promise = f"{promises} ({_how_sure(certificate)})."
    if not (certificate.exact or certificate.caveats == (objectives.MEAN_ONLY,)):
        return f"A certificate would say: {promise}"
    return promise[0].upper() + promise[1:]


def _how_sure(certificate: Certificate) -> str:
    """Say with which probability it holds."""
    if certificate.guarantee == "mean":
        return "on average over tables like this one"
    delta = math.fsum(one.delta for one in (certificate, *certificate.also))
    how_sure = f"{percent_kept(delta)} % confidence"
    if certificate.n_sharing > 1 and not certificate.also:
        every = percent_kept(certificate.n_sharing * delta)
        how_sure += f"; all {certificate.n_sharing} together: {every} %"
    if certificate.max_analyses > 1:
        how_sure += f" in all of up to {certificate.max_analyses} analyses"
    return how_sure


def _write_counts(certificate: Certificate) -> str:
    """Say on how many cases it was tested, how many are answered, and how many of these wrong."""
    each = dict.fromkeys(_count_cases(one) for one in (certificate, *certificate.also))
    return " ".join(each)


def _count_cases(certificate: Certificate) -> str:
    """Say what one guarantee counts, on its own rows."""
    which = f" {certificate.cases}" if certificate.cases else ""
    kept_out = " kept out of training" if "holds out" in certificate.provenance else ""
    tested = f"Tested on {count(certificate.n, 'case')}{which}{kept_out}"
    if words.POOL in certificate.assumptions:
        tested += f" ({certificate.provenance})"
    if certificate.n_accepted == 0 and certificate.n == 1:
        return f"{tested}: it is not answered, but left to a person."
    if certificate.n_accepted == 0:
        return f"{tested}: none is answered, all are left to a person."
    share = f"{100.0 * certificate.coverage:.0f}"
    answered = f"{certificate.n_accepted:,} answered ({share} %)"
    errors = f"{certificate.n_errors:,} wrong"
    loss = certificate.as_objective.about
    if not loss.is_error:
        noun = "cost" if loss.is_cost else "loss"
        errors = f"mean {noun} {certificate.risk:.4g}"
    n_left = certificate.n - certificate.n_accepted
    left = f"{n_left:,} left to a person" if n_left else "none left to a person"
    return f"{tested}: {answered}, {errors}; {left}."


def _write_limits(certificate: Certificate) -> str:
    """Say what the promise does not cover, with the caveats that weaken it."""
    if certificate.guarantee == "none" or certificate.n_accepted == 0:
        return ""
    which = "this one" if certificate.n == 1 else "these"
    limits = f"It holds on average, while new cases are like {which} and the model stays the same."
    if not certificate.exact:
        return limits
    notes = [caveat for caveat in certificate.caveats if not caveat.endswith(words.MUST_PASS)]
    if not notes:
        return limits
    return f"{limits} Note: {'; '.join(notes)}."


def _write_trust(certificate: Certificate) -> str:
    """Say what the reader vouches for."""
    in_short = _VOUCHED_OF_ONE if certificate.n == 1 else _VOUCHED
    vouched = [in_short.get(text, text) for text in certificate.assumptions]
    if "holds out" in certificate.provenance:
        # The library kept these cases out of training by itself.
        vouched = [text for text in vouched if text != in_short[words.FRESH]]
    vouched = [text for text in vouched if text]
    if not vouched:
        return ""
    if len(vouched) == 1:
        return f"You vouch that {vouched[0]}."
    *others, last = vouched
    return f"You vouch that {', that '.join(others)} and that {last}."


def _write_review(certificate: Certificate) -> str:
    """Say when to check it again, "" where nothing is certified."""
    if not certificate.is_certified:
        return ""
    needed = count(certificate.rows_to_review(), certificate.as_objective.counted)
    return f"Check it again after about {needed}."


# Details -----------------------------------------------------------------------------------


def _write_threshold(certificate: Certificate) -> str:
    """Say from which confidence on a case is answered."""
    if certificate.n_accepted == 0:
        return ""
    where = "at any confidence"
    if math.isfinite(certificate.threshold) and certificate.threshold > 0:
        where = f"at confidence {certificate.threshold:.6g} or higher"
    elif certificate.n_accepted < certificate.n:
        where = "with a threshold for each subgroup"
    cases = "this case"
    if certificate.n > 1:
        cases = f"{percent(certificate.coverage)} of these cases"
    return f"The policy answers {cases}, {where}."


def _write_method(certificate: Certificate) -> str:
    """Say how the guarantee was derived."""
    methods = dict.fromkeys(one.method for one in (certificate, *certificate.also))
    each = " for each guarantee" if certificate.also else ""
    delta = rounded(certificate.delta, 6, up=True)
    sentences = [f"Method: {', '.join(methods)}, delta {delta}{each}."]
    if certificate.seed is not None:
        drawn = f"Rows or coins were drawn with the seed {certificate.seed}"
        sentences.append(f"{drawn}: the confidence is over the rows and these draws.")
    if words.FIXED in certificate.assumptions:
        sentences.append("The policy was fixed, so nothing was chosen on these rows.")
    if certificate.max_analyses > 1:
        sentences.append(
            f"Each of up to {certificate.max_analyses} planned analyses uses delta / "
            f"{certificate.max_analyses}."
        )
    return " ".join(sentences)


def percent_kept(delta: float) -> str:
    """Return 100 (1 - delta), rounded down so that no guarantee is overstated."""
    down = Context(rounding=ROUND_FLOOR)
    share = down.subtract(Decimal(100), down.multiply(Decimal(100), Decimal(f"{delta:.12g}")))
    place = Decimal("0.01") if delta > 1e-4 else Decimal("1e-10")
    return f"{share.quantize(place, ROUND_FLOOR).normalize():f}"
