"""What is calibrated: the class probabilities, or the confidence alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from skselect._lib.arrays import FloatArray, IntArray
from skselect._lib.checks.options import check_choice, check_keys
from skselect._lib.checks.rows import silence_repeats
from skselect._lib.decide import calibrate, calibrate_confidence, find_inputs
from skselect.calibration import _calibrators as calibrators


@dataclass(frozen=True, eq=False)
class Calibration(ABC):
    """Fitted maps of one scope: how they are stored, and how the kernel of decisions takes them.

    Parameters
    ----------
    kind : str
        A name in `CALIBRATORS`, or "external:" and the class name of a calibrator of yours.
    response : {"predict_proba", "decision_function"}
        What the raw scores are.
    maps : tuple of calibrators
    offset : float or None, default=1e-15
        Added to p and 1 - p before log-odds are taken: half the smallest raw probability of the
        calibration rows, so that 0 of 200 trees of a forest counts like half a tree, and not as
        certainty. None for a confidence that is no probability.
    """

    kind: str
    response: str
    maps: tuple[Any, ...]
    offset: float | None = calibrators.LEAST_OFFSET

    scope: ClassVar[str]
    #: What a file says of the maps, beside their numbers.
    stored: ClassVar[tuple[str, ...]] = ("scope", "kind", "offset")

    def applied(self) -> dict[str, Any]:
        """Return the calibration as :mod:`skselect._lib.decide` takes it."""
        maps = [partial(_apply_where_known, fitted) for fitted in self.maps]
        inputs = _describe(self.maps[0], self.kind, self.response, self.offset)
        return {**inputs, "scope": self.scope, "maps": maps}

    def to_dict(self, *, allow_external: bool = False) -> dict[str, Any]:
        """Return the maps as plain numbers; a calibrator of yours leaves its name only."""
        is_own = self.kind not in calibrators.CALIBRATORS
        if is_own and not allow_external:
            raise ValueError(
                f"calibration: {self.kind.removeprefix('external:')} is a calibrator of your own, "
                "which cannot be saved as JSON. Use a named calibration, or pass "
                "allow_external=True and pass it yourself after loading."
            )
        stored: dict[str, Any] = {name: getattr(self, name) for name in self.stored}
        stored["maps"] = []
        if is_own:
            return stored
        for calibrator in self.maps:
            numbers = {name: np.asarray(x).tolist() for name, x in calibrator.fitted.items()}
            stored["maps"].append(numbers)
        return stored

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Rebuild the maps from plain numbers."""
        check_keys("calibration", stored, [*cls.stored, "maps"])
        kind = str(stored["kind"])
        if kind.startswith("external:"):
            maps: tuple[Any, ...] = (calibrators.Missing(kind),)
        else:
            maps = tuple(calibrators.restore_map(kind, numbers) for numbers in stored["maps"])
        offset = stored["offset"]
        if offset is not None or "response" in cls.stored:
            offset = float(offset)
            if not 0.0 < offset <= 0.5:
                raise ValueError(f"offset must lie in (0, 0.5], got {offset!r}.")
        return cls(kind, stored.get("response", "predict_proba"), maps, offset)

    def predict_proba(self, scores: FloatArray) -> FloatArray:
        """Return the class probabilities as they are, unless these are calibrated."""
        return scores

    def calibrate_confidence(self, confidence: FloatArray) -> FloatArray:
        """Return the confidence as it is, unless this is calibrated."""
        return confidence

    @abstractmethod
    def check_fits(self, n_classes: int, response: str) -> None:
        """Refuse a number of classes or a response that the maps were not fitted to."""


class ClassCalibration(Calibration):
    """Calibrated class probabilities from raw scores: one map for two classes, else one per class.

    Temperature scaling needs one map for any number of classes.
    """

    scope = "probabilities"
    stored = ("scope", "kind", "response", "offset")

    @classmethod
    def fit(
        cls,
        calibrator: Any,
        response: str,
        scores: FloatArray,
        codes: IntArray,
        n_classes: int,
        sample_weight: FloatArray | None = None,
    ) -> ClassCalibration:
        """Fit one map per class to whether rows belong to it.

        Parameters
        ----------
        calibrator : str or object
            A name, or a calibrator that is cloned for each class.
        response : str
        scores : ndarray of shape (n, K), or (n,) for the decision values of two classes
        codes : ndarray of shape (n,)
            Class codes 0..K-1. A class without rows gets a map to almost 0.
        n_classes : int
        sample_weight : ndarray of shape (n,), default=None

        Notes
        -----
        A score of nan is the decision value of a class that a fold's model does not know; the map
        of that class is fitted without the row.
        """
        template = calibrators.copy_unfitted(calibrator)
        kind = calibrators.calibrator_name(template)
        weight = _fill_weight(sample_weight, len(codes))
        offset = calibrators.LEAST_OFFSET
        is_proba = response == "predict_proba"
        if is_proba:
            offset = calibrators.log_odds_offset(scores[weight > 0])
        if _is_native(kind, n_classes):
            softmax = calibrators.SoftmaxTemperature(safeguard=template.safeguard)
            (logits,) = find_inputs(_describe(softmax, kind, response, offset), scores)
            softmax.fit(logits, codes, weight)
            return cls(kind, response, (softmax,), offset)
        columns = find_inputs(_describe(template, kind, response, offset), scores)
        maps = _fit_maps(template, columns, codes, weight, is_proba=is_proba)
        return cls(kind, response, maps, offset)

    def predict_proba(self, scores: FloatArray) -> FloatArray:
        """Return probabilities of shape (n, K) that sum to one in each row.

        A row to which all maps give 0 gets equal probabilities. A class whose decision value is
        nan, because the model does not know it, gets 0.
        """
        return calibrate(self.applied(), scores)

    def check_fits(self, n_classes: int, response: str) -> None:
        """Refuse a number of classes or a response that the maps were not fitted to."""
        if isinstance(self.maps[0], calibrators.Missing):
            return
        n_maps = n_classes
        shape: tuple[int, ...] = ()
        if _is_native(self.kind, n_classes):
            n_maps = 1
            shape = (n_classes,)
        elif n_classes == 2:
            n_maps = 1
        shapes = {np.shape(getattr(fitted, "prior_", 0.0)) for fitted in self.maps}
        if len(self.maps) != n_maps or self.response != response or shapes != {shape}:
            raise ValueError(
                f"calibration: {len(self.maps)} maps of {self.response} do not fit {n_classes} "
                f"classes of {response}."
            )


def _fill_weight(sample_weight: FloatArray | None, n: int) -> FloatArray:
    return np.ones(n) if sample_weight is None else sample_weight


def _fit_maps(
    template: Any,
    columns: Sequence[FloatArray],
    codes: IntArray,
    weight: FloatArray,
    *,
    is_proba: bool,
) -> tuple[Any, ...]:
    """Return a map for each column of scores: one is that of the second class, else one a class."""
    n_columns = len(columns)
    positives = [1] if n_columns == 1 else range(n_columns)
    maps: list[Any] = []
    for column, k in zip(columns, positives, strict=True):
        has_score = ~np.isnan(column)
        outcome = (codes[has_score] == k).astype(np.float64)
        # The first map may warn about the weights; the others would repeat it.
        warnings_once = silence_repeats() if maps else nullcontext()
        with warnings_once:
            fitted = calibrators.fit_map(
                template, column[has_score], outcome, weight[has_score], is_proba=is_proba
            )
        maps.append(fitted)
    return tuple(maps)


def _describe(calibrator: Any, kind: str, response: str, offset: float | None) -> dict[str, Any]:
    """Return what decides the input of a map, for :func:`skselect._lib.decide.find_inputs`.

    The offset is None for scores that are no probabilities.
    """
    is_proba = response == "predict_proba" and offset is not None
    if isinstance(calibrator, calibrators.SoftmaxTemperature):
        kind = "softmax"
    return {
        "kind": kind,
        "reads_log_odds": is_proba and getattr(calibrator, "reads_log_odds", False),
        "response": response,
        "offset": offset,
    }


def _apply_where_known(fitted: Any, column: FloatArray) -> FloatArray:
    """Return the probabilities of a column of scores, 0 where the score is nan."""
    has_score = ~np.isnan(column)
    if isinstance(fitted, calibrators.SoftmaxTemperature):
        return fitted.predict(np.where(has_score, column, -np.inf))
    if has_score.all():  # no copy of the rows
        return calibrators.apply_map(fitted, column)
    mapped = np.zeros(len(column))
    if has_score.any():
        mapped[has_score] = calibrators.apply_map(fitted, column[has_score])
    return mapped


def _is_native(kind: str, n_classes: int) -> bool:
    """Tell whether one map serves all classes at once."""
    return kind == "temperature" and n_classes > 2


class ConfidenceCalibration(Calibration):
    """One rising map from confidence to the probability that the predicted class is right.

    Predicted classes and probabilities stay as they are, and so does the order of the rows by
    confidence, except that some may tie.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.calibration._scopes import ConfidenceCalibration
    >>> confidence = np.array([.6, .7, .8, .9, .99, .999])
    >>> correct = np.array([0., 1., 0., 1., 1., 1.])
    >>> calibration = ConfidenceCalibration.fit("smooth_isotonic", confidence, correct)
    >>> calibration.calibrate_confidence(np.array([.6, .9, .99])).round(2)
    array([0.33, 0.71, 0.8 ])
    """

    scope = "confidence"

    @classmethod
    def fit(
        cls,
        calibrator: Any,
        confidence: FloatArray,
        correct: FloatArray,
        sample_weight: FloatArray | None = None,
        *,
        is_probability: bool = True,
    ) -> ConfidenceCalibration:
        """Fit the map to rows that the classifier has not seen.

        Parameters
        ----------
        calibrator : str or object
            A name, or a calibrator that is cloned.
        confidence : ndarray of shape (n,)
        correct : ndarray of shape (n,)
            1 where the predicted class was right.
        sample_weight : ndarray of shape (n,), default=None
        is_probability : bool, default=True
            Whether the confidence lies in [0, 1].
        """
        template = calibrators.copy_unfitted(calibrator)
        weight = _fill_weight(sample_weight, len(correct))
        offset = None
        if is_probability:
            offset = calibrators.log_odds_offset(confidence[weight > 0])
        kind = calibrators.calibrator_name(template)
        (scores,) = find_inputs(_describe(template, kind, "predict_proba", offset), confidence)
        fitted = calibrators.fit_map(template, scores, correct, weight, is_proba=is_probability)
        return cls(kind, "predict_proba", (fitted,), offset)

    def calibrate_confidence(self, confidence: FloatArray) -> FloatArray:
        """Return the calibrated confidence: the probability of being right, shape (n,)."""
        return calibrate_confidence(self.applied(), confidence)

    def check_fits(self, n_classes: int, response: str) -> None:  # noqa: ARG002 - any number
        """Refuse scores that are not probabilities, and a map of all classes at once."""
        check_choice("response", response, ["predict_proba"])
        if len(self.maps) != 1 or np.ndim(getattr(self.maps[0], "prior_", 0.0)):
            raise ValueError("calibration: a map of class probabilities cannot map a confidence.")


_KINDS: dict[str, type[Calibration]] = {
    kind.scope: kind for kind in (ClassCalibration, ConfidenceCalibration)
}

#: Names accepted by `calibration_scope=`.
SCOPES = tuple(_KINDS)


def restore_calibration(stored: dict[str, Any]) -> Calibration:
    """Rebuild a calibration of any scope from plain numbers."""
    scope = check_choice("scope", stored["scope"], SCOPES)
    return _KINDS[scope].from_dict(stored)
