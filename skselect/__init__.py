"""Selective classification for scikit-learn: let a classifier say "I don't know".

Importing the package makes its metrics scoring strings for scikit-learn
(``scoring="cwsa_plus"``). What is named here is imported when it is first used: a service that
loads a policy needs no scikit-learn.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from skselect._scoring_strings import register_when_imported

__version__ = "1.0.0rc1"

#: Where each public name lives.
_PLACES = {
    "AbstentionPolicy": "policy.policy",
    "Best": "objectives",
    "CascadeClassifier": "extras.cascade_classifier",
    "Cost": "objectives",
    "Coverage": "objectives",
    "GeneralizedRisk": "objectives",
    "InfeasibleTargetError": "exceptions",
    "LearnedConfidence": "extras.learned",
    "Outcomes": "predictions.outcomes",
    "PrecomputedClassifier": "estimators.precomputed",
    "Predictions": "predictions.predictions",
    "Risk": "objectives",
    "RiskCoverageCurve": "curve.curve",
    "RiskCoverageDisplay": "display.risk_coverage",
    "SelectiveClassifier": "estimators.classifier",
    "SelectiveRiskMonitor": "monitoring.monitor",
    "SelectiveState": "streaming.state",
    "SystemRisk": "objectives",
    "TRUSTED_TYPES": "_names",
    "ThresholdTuner": "estimators.tuner",
    "calibration_report": "report.calibration",
    "certify": "monitoring.certify",
    "check_policy": "monitoring.check",
    "evaluate": "metrics._evaluate",
    "evaluate_parquet": "streaming.parquet",
    "join_stages": "extras.join",
    "select_threshold": "selection.select",
    "selective_report": "report.selective",
}
#: Public modules, for ``skselect.metrics`` without an import of its own.
_ROOMS = (
    "bounds", "calibration", "curve", "dask", "datasets", "display", "estimators", "exceptions",
    "extras", "inference", "losses", "metrics", "monitoring", "objectives", "policy",
    "predictions", "report", "scoring", "selection", "streaming", "thresholds",
)  # fmt: skip
#: Rooms whose names are looked for, to say where a name is that is not here.
_NAMING = ("inference", "metrics", "thresholds", "monitoring", "display", "policy", "scoring")

if TYPE_CHECKING:
    from skselect._names import *  # noqa: F403
    from skselect._names import __all__ as __all__
else:
    __all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    """Import a public name, or a room, when it is first used."""
    if name in _ROOMS:
        return importlib.import_module(f"skselect.{name}")
    if name in _PLACES:
        place = importlib.import_module(f"skselect.{_PLACES[name]}")
        globals()[name] = getattr(place, name)
        return globals()[name]
    message = f"module 'skselect' has no attribute {name!r}"
    error: type[Exception] = AttributeError
    for room in _NAMING:
        if name in importlib.import_module(f"skselect.{room}").__all__:
            message = f"{name} is in skselect.{room}: from skselect.{room} import {name}"
            # Only an ImportError keeps its words in ``from skselect import``.
            caller = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001
            error = ImportError if caller == "importlib._bootstrap" else AttributeError
    raise error(message)


def __dir__() -> list[str]:
    """List the public names, without submodules."""
    return [*__all__, "__version__"]


register_when_imported()
