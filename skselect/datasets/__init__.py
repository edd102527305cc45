"""Real tables by name, and simulated predictions whose true risk is known."""

from skselect.datasets._load import list_datasets, load_dataset
from skselect.datasets._profiles import (
    make_confidence_profile,
    make_model_profile,
    make_risk_profile,
)
from skselect.exceptions import DatasetNotFoundError

__all__ = [
    "DatasetNotFoundError",
    "list_datasets",
    "load_dataset",
    "make_confidence_profile",
    "make_model_profile",
    "make_risk_profile",
]
