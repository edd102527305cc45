"""Selective classification for scikit-learn: let a classifier say "I don't know".

Importing the package makes its metrics scoring strings for scikit-learn
(``scoring="cwsa_plus"``).
"""

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

_ROOMS = ("inference", "metrics", "thresholds", "monitoring", "display", "policy", "scoring")

__version__ = "1.0.0rc1"


def _is_command() -> bool:
    """Tell whether Python was started to run ``skselect ...`` or ``python -m skselect ...``."""
    script = next(iter(sys.argv), "")
    if script != "-m":  # what Python says as long as it looks for the module to run
        return Path(script).stem == "skselect"
    started = sys.orig_argv
    return "-m" in started and started[started.index("-m") + 1 :][:1] == ["skselect"]


# The command line imports what a command uses: its help needs no scikit-learn.
if TYPE_CHECKING or not _is_command():
    from skselect._names import *  # noqa: F403
    from skselect._names import __all__ as __all__


def __getattr__(name: str) -> Any:
    """Import rooms that few need, or that a command imports itself, when they are first used."""
    if name in ("datasets", "losses", "objectives", "scoring"):
        return importlib.import_module(f"skselect.{name}")
    names = importlib.import_module("skselect._names")
    if name == "__all__" or name in names.__all__:
        return getattr(names, name)
    if name in globals():  # a room that the names have imported
        return globals()[name]
    message = f"module 'skselect' has no attribute {name!r}"
    error: type[Exception] = AttributeError
    for room in _ROOMS:
        if name in importlib.import_module(f"skselect.{room}").__all__:
            message = f"{name} is in skselect.{room}: from skselect.{room} import {name}"
            # Only an ImportError keeps its words in ``from skselect import``.
            caller = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001
            error = ImportError if caller == "importlib._bootstrap" else AttributeError
    raise error(message)


def __dir__() -> list[str]:
    """List the public names, without submodules."""
    return [*__getattr__("__all__"), "__version__"]
