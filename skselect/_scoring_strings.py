"""The scoring strings stand in scikit-learn as soon as both packages are imported.

Whichever is imported first: scikit-learn alone takes half of a second to import, which a service
or a command that never scores an estimator need not spend.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

#: The module that holds scikit-learn's table of scoring strings, once it is imported as a whole.
_METRICS = "sklearn.metrics"


def register_when_imported() -> None:
    """Register the scoring strings now, or else right after scikit-learn's metrics are imported."""
    if _METRICS in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _Finder())


def _register() -> None:
    """Import the scorers, which register their names."""
    importlib.import_module("skselect.scoring")


class _Finder(MetaPathFinder):
    """Finds scikit-learn's metrics as all others do, and leaves after that."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of scikit-learn's metrics, with a loader that registers the strings."""
        del path, target
        if fullname != _METRICS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Loads a module as its own loader does, then registers the scoring strings."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave the module to its own loader."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, give it back its own loader, and register the strings."""
        self.loader.exec_module(module)
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        _register()
