"""What estimators ask of parts that few need: cascades, and confidences that are learnt.

The parts themselves are in :mod:`skselect.extras`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from skselect._lib.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from skselect.calibration._scopes import Calibration
    from skselect.estimators.out_of_fold import OutOfFold
    from skselect.estimators.raw_classifier import RawClassifier, TrainingRows
    from skselect.policy.stages import CascadeRule
    from skselect.predictions.confidence import LearnedScore


class StagedClassifier(ABC):
    """A classifier that asks several others in turn."""

    cascade_: CascadeRule
    #: What it said of rows that its stages had not seen, until its caller has used it.
    _unseen: OutOfFold

    @abstractmethod
    def follow(self, X: Any) -> tuple[FloatArray, IntArray]:
        """Return probabilities, and which stage gave those of each row."""

    @abstractmethod
    def stage_proba(self, X: Any) -> dict[str, FloatArray]:
        """Return what each stage says before calibration, NaN in rows where it is not asked."""

    @abstractmethod
    def _plan_for(self, target: float | None, random_state: Any) -> None:
        """Fill in the risk that a tuner asks for, and its seed, where it has none of its own."""


class ConfidenceLearner(ABC):
    """What learns, from rows that no model has seen, how likely each answer is right."""

    auxiliary: Any
    estimator: Any
    auxiliary_: dict[str, RawClassifier]
    score_: LearnedScore | None

    @abstractmethod
    def _find_auxiliary(self, classifier: Any, X: Any) -> dict[str, Any]:
        """Check the parameters; return the auxiliary models of a classifier, not fitted."""

    @abstractmethod
    def _learn(
        self,
        auxiliary: dict[str, Any],
        rows: TrainingRows,
        unseen: OutOfFold,
        calibration: Calibration | None,
    ) -> None:
        """Fit it to out-of-fold rows, and its auxiliary models to all rows if it is used."""

    @abstractmethod
    def _read_columns(self, X: Any) -> dict[str, FloatArray]:
        """Return the columns of X that are features, as finite numbers."""

    @abstractmethod
    def _ask(self, X: Any) -> dict[str, FloatArray]:
        """Return what it asks beside the classifier's probabilities, by name."""
