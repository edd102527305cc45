"""Real tables by name, and generators whose truth is known."""

from skselect._validation import DatasetNotFoundError
from skselect.datasets._load import list_datasets, load_dataset
from skselect.datasets._profiles import (
    make_confidence_profile,
    make_model_profile,
    make_risk_profile,
)

__all__ = [
    "DatasetNotFoundError",
    "list_datasets",
    "load_dataset",
    "make_confidence_profile",
    "make_model_profile",
    "make_risk_profile",
]
