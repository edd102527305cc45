"""The fits inside one `fit`: printed where `verbose` asks for it, and shown to callbacks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from skselect._sklearn import begin_fit


@dataclass(frozen=True, eq=False)
class FitTask:
    """One of the fits inside a `fit`; it may run in another process.

    Parameters
    ----------
    owner : estimator
        Whose `fit` it belongs to.
    name : str
        The rows to train on, in words.
    context : CallbackContext
        What scikit-learn's callbacks are called with.
    """

    owner: Any
    name: str
    context: Any

    @contextmanager
    def run(self, model: Any, X: Any, y: Any) -> Iterator[None]:
        """Surround the fit of a model: tell the callbacks, pass them on, print the time."""
        start = time.perf_counter()
        with self.context.propagate_callback_context(model):
            self.context.call_on_fit_task_begin(estimator=self.owner, X=X, y=y)
            yield
        self.context.call_on_fit_task_end(estimator=self.owner, X=X, y=y)
        _say(self.owner, f"{self.name}: {time.perf_counter() - start:.1f} s")


def run(task: FitTask | None, model: Any, X: Any, y: Any) -> AbstractContextManager[None]:
    """Surround the fit of a model, which may belong to no task."""
    return nullcontext() if task is None else task.run(model, X, y)


class Fits:
    """All fits inside a `fit`.

    Parameters
    ----------
    owner : estimator
        It has `verbose`, and may have callbacks.
    X, y : array-like
        All rows, for the callbacks.
    """

    def __init__(self, owner: Any, X: Any, y: Any) -> None:
        self._owner, self._rows = owner, {"X": X, "y": y}
        self._context: Any = None
        self.tasks: list[FitTask] = []

    def begin(
        self, n_fits: int, *, first: Sequence[str] = (), n_folds: int = 0, last: Sequence[str] = ()
    ) -> list[FitTask]:
        """Say what will be fitted, and how often the classifier inside; return the tasks."""
        folds = [f"{n_folds} fold{'s' * (n_folds > 1)}"] if n_folds else []
        if n_fits:
            steps = ", then ".join([*first, *folds, *last])
            _say(self._owner, f"Fitting {steps}, totalling {n_fits} fit{'s' * (n_fits > 1)}")
        names = [*first, *(f"fold {k + 1} of {n_folds}" for k in range(n_folds)), *last]
        self._context = begin_fit(self._owner, len(names), **self._rows)
        tasks = [(name, self._context.subcontext(task_name=name)) for name in names]
        self.tasks = [FitTask(self._owner, name, context) for name, context in tasks]
        return self.tasks

    def end(self) -> None:
        """Tell the callbacks that all is done."""
        self._context.call_on_fit_task_end(estimator=self._owner, **self._rows)


def _say(owner: Any, text: str) -> None:
    """Print a line if the estimator is verbose."""
    if owner.verbose:
        print(f"[{type(owner).__name__}] {text}", flush=True)  # noqa: T201 - as scikit-learn does
