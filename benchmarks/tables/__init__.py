"""Real tables by name, checked by their contents at every load."""

from .load import DatasetNotFoundError, list_datasets, load_dataset

__all__ = ["DatasetNotFoundError", "list_datasets", "load_dataset"]
