"""Honest class probabilities that sum to one: one map per class."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from skselect import _validation as check
from skselect._typing import FloatArray, IntArray
from skselect.calibration._common import LEAST_OFFSET, log_odds, offset_of
from skselect.calibration._kinds import (
    Missing,
    fitted_map,
    name_of,
    predicted,
    restored_maps,
    stored_maps,
    unfitted,
)
from skselect.calibration._temperature import SoftmaxTemperature


@dataclass(frozen=True, eq=False)
class ClassCalibration:
    """Honest class probabilities from raw scores: one map for two classes, else one per class.

    Temperature scaling has one map for any number of classes.

    Parameters
    ----------
    kind : str
        A name in `CALIBRATORS`, or "external:" and the class name of a calibrator of yours.
    response : {"predict_proba", "decision_function"}
        What the raw scores are.
    maps : tuple of calibrators
    offset : float, default=1e-15
        Added to p and 1 - p before log-odds are taken: half the smallest raw probability of the
        calibration rows, so that a forest's 0 of 200 trees speaks like half a tree and not like
        certainty.
    """

    kind: str
    response: str
    maps: tuple[Any, ...]
    offset: float = LEAST_OFFSET

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
        """Fit one map per column against "is it this class?".

        Parameters
        ----------
        calibrator : str or object
            A name, or a calibrator that is cloned for each class.
        response : str
        scores : ndarray of shape (n, K), or (n,) for the decision values of two classes
        codes : ndarray of shape (n,)
            Class codes 0..K-1. A class without rows gets the map of "never".
        n_classes : int
        sample_weight : ndarray of shape (n,), default=None

        Notes
        -----
        A score of nan (the decision value of a class that a fold's model does not know) says
        nothing, so the map of that class leaves the row out.
        """
        template = unfitted(calibrator)
        kind = name_of(template)
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight
        offset = offset_of(scores[weight > 0]) if response == "predict_proba" else LEAST_OFFSET
        if _is_native(kind, n_classes):
            softmax = SoftmaxTemperature(safeguard=template.safeguard)
            fitted = softmax.fit(_logits(response, scores, offset), codes, weight)
            return cls(kind, response, (fitted,), offset)
        positives = [1] if n_classes == 2 else range(n_classes)
        maps: list[Any] = []
        columns = _columns(template, response, scores, offset)
        for column, k in zip(columns, positives, strict=True):
            known = ~np.isnan(column)
            outcome = (codes[known] == k).astype(np.float64)
            # What the first map says about the weights holds for all.
            with check.no_word_on_weights() if maps else nullcontext():
                maps.append(fitted_map(template, column[known], outcome, weight[known]))
        return cls(kind, response, tuple(maps), offset)

    def proba_of(self, scores: FloatArray) -> FloatArray:
        """Return probabilities of shape (n, K) that sum to one in each row.

        A row for which every class map says "never" gets equal probabilities. A decision
        value of nan, of a class that the model does not know, speaks against it.
        """
        first = self.maps[0]
        if isinstance(first, SoftmaxTemperature | Missing):  # one map for all classes, or none
            logits = _logits(self.response, scores, self.offset)
            return first.predict(np.where(np.isnan(logits), -np.inf, logits))
        columns = _columns(first, self.response, scores, self.offset)
        mapped = [_of_known(m, x) for m, x in zip(self.maps, columns, strict=True)]
        if len(mapped) == 1:
            return np.column_stack([1.0 - mapped[0], mapped[0]])
        proba = np.column_stack(mapped)
        total = proba.sum(axis=1, keepdims=True)
        uniform = np.full_like(proba, 1.0 / proba.shape[1])
        return np.divide(proba, total, out=uniform, where=total > 0)

    def honest(self, confidence: FloatArray) -> FloatArray:
        """Return the confidence as it is: the probabilities it comes from are honest."""
        return confidence

    def to_dict(self, *, allow_external: bool = False) -> dict[str, Any]:
        """Return the maps as plain numbers; a calibrator of yours leaves its name only."""
        maps = stored_maps(self.kind, self.maps, allow_external=allow_external)
        return {
            "scope": "probabilities", "kind": self.kind, "response": self.response,
            "offset": self.offset, "maps": maps,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> ClassCalibration:
        """Rebuild the maps from plain numbers."""
        maps = restored_maps(stored["kind"], stored["maps"])
        offset = check.check_offset(stored.get("offset", LEAST_OFFSET))
        return cls(stored["kind"], stored["response"], maps, offset)

    def check_fits(self, n_classes: int, response: str) -> None:
        """Refuse to be used for another number of classes or another kind of scores."""
        if isinstance(self.maps[0], Missing):
            return
        native = _is_native(self.kind, n_classes)
        wanted = 1 if n_classes == 2 or native else n_classes
        priors = {np.shape(getattr(m, "prior_", 0.0)) for m in self.maps}
        shape = (n_classes,) if native else ()
        if len(self.maps) != wanted or self.response != response or priors != {shape}:
            raise ValueError(
                f"calibration: {len(self.maps)} maps of {self.response} do not fit {n_classes} "
                f"classes of {response}."
            )


def _columns(calibrator: Any, response: str, scores: FloatArray, offset: float) -> list[FloatArray]:
    """Return what each map reads: log-odds if it asks for them, else the score itself."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim == 1:
        columns = [scores]
    elif scores.shape[1] == 2:
        columns = [scores[:, 1]]
    else:
        columns = list(scores.T)
    wants_log_odds = getattr(calibrator, "reads_log_odds", False) and response == "predict_proba"
    return [log_odds(column, offset) for column in columns] if wants_log_odds else columns


def _of_known(fitted: Any, column: FloatArray) -> FloatArray:
    """Return what a map makes of a column, 0 where the class is not known."""
    unknown = np.isnan(column)
    if not unknown.any():
        return predicted(fitted, column)
    mapped = np.zeros(len(column))
    if not unknown.all():
        mapped[~unknown] = predicted(fitted, column[~unknown])
    return mapped


def _is_native(kind: str, n_classes: int) -> bool:
    """Tell whether one map serves all classes at once."""
    return kind == "temperature" and n_classes > 2


def _logits(response: str, scores: FloatArray, offset: float) -> FloatArray:
    """Return logits of shape (n, K): decision values, or logarithms of probabilities."""
    scores = np.asarray(scores, dtype=np.float64)
    return np.log(scores + offset) if response == "predict_proba" else scores
