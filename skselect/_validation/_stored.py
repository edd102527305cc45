"""What a saved calibration may hold: a damaged file must not decide."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from skselect._typing import FloatArray, LabelArray
from skselect._validation._options import ROUNDING, check_count, check_number


def _rises(x: FloatArray) -> bool:
    return bool(np.all(np.diff(x) >= -1e-12) and np.all((x >= 0) & (x <= 1)))


_RULES: dict[str, tuple[str, Callable[[FloatArray], Any]]] = {
    "share": ("in [0, 1]", lambda x: (x >= 0) & (x <= 1)),
    "prior": ("in [0, 1]", lambda x: (x >= 0) & (x <= 1)),
    "temperature": ("positive", lambda x: x > 0),
    "slope": ("at least 0", lambda x: x >= 0),
    "a": ("at least 0", lambda x: x >= 0),
    "b": ("at least 0", lambda x: x >= 0),
    "knots": ("ascending", lambda x: np.diff(x) > 0),
    "values": ("rising in [0, 1]", _rises),
    "lower": ("rising in [0, 1]", _rises),
    "upper": ("rising in [0, 1]", _rises),
}
_CURVES = ("knots", "values", "lower", "upper")


def check_map(parameters: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Return the parameters of a fitted map as numbers, if they are a rising map."""
    numbers = {name: np.asarray(value, dtype=np.float64) for name, value in parameters.items()}
    lengths = {len(np.atleast_1d(numbers[name])) for name in _CURVES if name in numbers}
    for name, x in numbers.items():
        ndim = 1 if name in _CURVES else 0
        if x.ndim != ndim and not (name == "prior" and x.ndim == 1):
            raise ValueError(f"maps: {name} must have {ndim} dimensions, got {x.ndim}.")
        wanted, holds = _RULES.get(name, ("finite", np.isfinite))
        if not np.all(np.isfinite(x)) or not np.all(holds(x)) or x.size == 0:
            raise ValueError(
                f"maps: {name} must be {wanted}, got {reprlib.repr(parameters[name])}."
            )
    if len(lengths) > 1:
        raise ValueError(f"maps: knots and values must have one length, got {sorted(lengths)}.")
    return numbers


def check_offset(value: Any) -> float:
    """Return the offset of log-odds."""
    offset = float(value)
    if not 0.0 < offset <= 0.5:
        raise ValueError(f"offset must lie in (0, 0.5], got {value!r}.")
    return offset


def check_stored_classes(classes: Any, dtype: str) -> LabelArray:
    """Return class labels in their dtype, if it holds them."""
    with np.errstate(invalid="ignore"):  # 1e308 becomes some integer, and is refused below
        labels = np.asarray(classes).astype(dtype)
    if labels.tolist() != list(classes):
        raise ValueError(f"classes_dtype: {dtype!r} cannot hold the classes {classes[:10]!r}.")
    return labels


def check_certified(certificate: Any, threshold: float, what: str, remedy: str) -> None:
    """Refuse a certificate beside another threshold than the one it is about."""
    if certificate is not None and certificate.threshold != threshold:
        raise ValueError(
            f"{what}, but the certificate is about the threshold {certificate.threshold!r}. Pass "
            f"{remedy} as well: nothing is promised about another threshold until certify() or "
            "select_threshold() has looked at fresh rows."
        )


def check_facts(policy: Any) -> None:
    """Refuse what a policy cannot remember of the rows that tuned it."""
    for name in ("confidence_quantiles", "metadata"):
        _check_mapping(name, getattr(policy, name))
    if policy.coverage is not None:
        check_number("coverage", policy.coverage, 0.0, 1.0)
    if policy.n is not None:
        check_count("n", policy.n)
    for name, value in policy.confidence_quantiles.items():
        check_number(f"confidence_quantiles[{name!r}]", value, closed="neither")
    _check_made(policy.created, policy.fingerprints)


#: Name, lowest and highest value, and which of the two are possible.
_NUMBERS = (
    ("target", 0.0, math.inf, "left"),
    ("delta", 0.0, 0.5, "right"),
    ("coverage", 0.0, 1.0, "both"),
    ("pointwise_bound", 0.0, math.inf, "left"),
    ("min_coverage", 0.0, 1.0, "both"),
    ("unit", 0.0, math.inf, "neither"),
)
_COUNTS = {"n": 1, "n_accepted": 0, "n_errors": 0, "rows_needed": 0, "looks": 1}
_NAMES = {
    "objective": ("risk", "generalized_risk", "coverage"),
    "guarantee": ("high_probability", "mean", "none"),
    "loss": ("zero_one", "cost", "graded"),
}


def check_certificate(fields: Mapping[str, Any]) -> None:
    """Refuse a certificate that says what none can say."""
    for name, known in _NAMES.items():
        if fields.get(name, known[0]) not in known:
            raise ValueError(f"certificate: {name} must be one of {list(known)}.")
    for name, low, high, closed in _NUMBERS:
        if name in fields:
            check_number(f"certificate: {name}", fields[name], low, high, closed=closed)
    for name, least in _COUNTS.items():
        if name in fields:
            check_count(f"certificate: {name}", fields[name], least)
    most = 1.0 if fields["objective"] == "coverage" else fields.get("unit", 1.0)
    if fields["target"] > most * (1.0 + ROUNDING):
        raise ValueError(f"certificate: no target can be above {most:g}, got {fields['target']:g}.")
    if not isinstance(fields["exact"], bool) or fields["exact"] == bool(fields["why_not"]):
        raise ValueError("certificate: exact must be true where why_not is empty, else false.")
    if fields["n_errors"] > fields["n_accepted"] or fields["n_accepted"] > fields["n"]:
        raise ValueError("certificate: n_errors, n_accepted and n must rise in this order.")
    _check_text("certificate: method", fields["method"])
    _check_text("certificate: cases", fields.get("cases", ""))
    _check_text("certificate: notice", fields.get("notice", ""))
    _check_made(fields["created"], fields["fingerprints"], "certificate: ")


def _check_made(created: Any, fingerprints: Any, where: str = "") -> None:
    """Refuse a date, or digests, that are no text."""
    _check_text(f"{where}created", created)
    _check_mapping(f"{where}fingerprints", fingerprints)
    for name, digest in fingerprints.items():
        _check_text(f"{where}fingerprints[{name!r}]", digest)


def _check_mapping(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a mapping, got {value!r}.")  # noqa: TRY004 - one kind


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, got {value!r}.")  # noqa: TRY004 - one kind of error


def check_texts(name: str, values: Any) -> list[str]:
    """Return a list of texts."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be a list of texts.")
    return values
