"""A report on one or several models, as text, table or web page."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib.checks import rows as row_checks
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_count, check_generator, check_number, check_threshold
from skselect._lib.files import give_text, replace_nan
from skselect._lib.notebook import NotebookText
from skselect.inference.compare import compared, read_predictions
from skselect.inference.intervals import Sampling
from skselect.metrics import SPECS
from skselect.monitoring.decided import predictions_for
from skselect.policy.certificate import now
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions.predictions import Predictions
from skselect.report import data
from skselect.report.questions import read_review, which_is_best
from skselect.report.render import render_page, render_text


@dataclass(frozen=True, eq=False)
class SelectiveReport(NotebookText):
    """The result of :func:`~skselect.selective_report`.

    Parameters
    ----------
    contents : dict
        The whole report, as plain values.
    cases : tuple of Case
        The models, from which the plots are drawn.

    Examples
    --------
    >>> from skselect import selective_report
    >>> report = selective_report([0, 1, 1], [[.9, .1], [.2, .8], [.6, .4]])
    >>> report
    <SelectiveReport: model; 3 rows>
    >>> report.to_dict()["models"]["model"]["n_errors"]
    1
    """

    contents: dict[str, Any]
    cases: tuple[data.Case, ...]

    def __str__(self) -> str:
        return render_text(self.contents)

    def __repr__(self) -> str:
        names = ", ".join(self.contents["models"])
        return f"<SelectiveReport: {names}; {self.contents['n_rows']} rows>"

    def to_dict(self) -> dict[str, Any]:
        """Return the whole report as plain values."""
        return self.contents

    def to_frame(self) -> pd.DataFrame:
        """Return the metrics as a tidy table.

        Returns
        -------
        DataFrame
            A row per model and metric: `model`, `metric`, `value`, `low`, `high` and `better`.
        """
        rows = [
            {"model": name, **row}
            for name, model in self.contents["models"].items()
            for row in model["metrics"]
        ]
        return pd.DataFrame(rows).drop(columns="meaning")

    def to_html(
        self, path: str | os.PathLike[str] | None = None, *, interactive: bool = False
    ) -> str | None:
        """Write the report as one web page, plots included.

        The page needs no network, and is readable on a phone and in print.

        Parameters
        ----------
        path : path, default=None
            Where to write. None returns the page as text.
        interactive : bool, default=False
            Whether a slider shows, for each threshold, how many cases are answered and deferred
            and at most how many answers are wrong. The bounds are those of
            :func:`~skselect.thresholds.simultaneous_band` at `confidence_level`, so that a
            threshold may be chosen after looking at all. Left out where losses are graded or the
            level is below 0.5.

        Returns
        -------
        str or None

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is not installed: ``pip install '.[report]'``.
        ValueError
            If there is no folder to write into.
        """
        page = render_page(self.contents, self.cases, interactive=interactive)
        return give_text(page, path)


def selective_report(
    *rows: Any,
    policy: Any = None,
    threshold: float | None = None,
    subgroups: Any = None,
    ids: Any = None,
    features: Any = None,
    audits: tuple[float, float, float] | None = None,
    reviewing: Mapping[str, float] | None = None,
    labels: Any = None,
    pos_label: Any = None,
    confidence_level: float = 0.95,
    n_errors: int = 10,
    title: str = "Selective classification report",
    random_state: Any = 0,
) -> SelectiveReport:
    """Report how far a model's confidence can be trusted, as text, table or web page.

    Parameters
    ----------
    *rows : `y_true, y_proba`, or one Predictions, or a mapping of str to Predictions
        True labels, then class probabilities: those of one model, of shape (n, K) or (n,), or of
        several by name. With a `policy` these are the raw ones, before its calibration. Predictions
        (of labels and a confidence, for example) bring their true labels. For the policy of a
        cascade a mapping of its stages to their tables.
    policy : AbstentionPolicy, or mapping of str to AbstentionPolicy, default=None
        Its threshold, calibration and certificate are reported. It applies its own calibration,
        so pass raw probabilities (``tuner.raw_scores(X)``): a second one is not noticed.
    threshold : float, default=None
        Rows with confidence >= threshold are accepted. Give it only without a policy.
    subgroups : array-like of shape (n,), or DataFrame of shape (n, m), default=None
        The subgroup of each row. Risk and coverage are reported for each, and how far two differ;
        policies with a threshold per subgroup need them too.
    ids : array-like of shape (n,), default=None
        One name per case. The most confident errors are listed by it.
    features : DataFrame of shape (n, d), Series or mapping of str to array-like, default=None
        Shown beside the most confident errors, such as ``X[["age", "site"]]``.
    audits : (float, float, float), default=None
        With a policy: cases a day, the share of its answers that will be audited, and the days
        until their labels come. The report says which risk a monitor would notice within 90 days
        (:func:`skselect.monitoring.detectable_risk`).
    reviewing : mapping of str to float, default=None
        A reviewer decides the deferred cases: ``{"error": .03, "minutes": 6, "hourly_cost": 40,
        "hours": 40, "cases": 3000}``, or some of these. "error" is the share of the deferred cases
        that he gets wrong, "minutes" what he needs for one. At each risk target the report says how
        many hours 1,000 cases need, what they cost, and which share of all cases machine and
        reviewer get wrong. Where the rows hold the reviewer's answers, these count. With "hours"
        for so many "cases" it says which share must be answered automatically, and at which risk.
    labels, pos_label
        As in the metrics.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of the intervals. Each holds by itself. Those of shares of rows are exact
        (Clopper-Pearson).
    n_errors : int, default=10
        How many of the most confident errors are shown.
    title : str
    random_state : int, Generator or None, default=0
        Seed of the simulated p-value. It compares with 999 calibrated classifiers; with more at
        confidence levels above .99; where there are more than a million rows with fewer (199 at
        the confidence level .95).

    Returns
    -------
    SelectiveReport
        ``print`` it, or call ``to_frame()``, ``to_dict()``, ``to_html("report.html")``.

    Raises
    ------
    ValueError
        If an argument is malformed, or models have different rows.

    See Also
    --------
    skselect.inference.compare_models : The comparison in full.
    calibration_report : Compares calibrations of a classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skselect import selective_report
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GaussianNB().fit(X[:300], y[:300])
    >>> report = selective_report(y[300:], model.predict_proba(X[300:]), threshold=.9)
    >>> values = report.to_frame().set_index("metric")["value"]
    >>> values[["coverage", "selective_accuracy"]]  # doctest: +DIGITS_VARY
    metric
    coverage              0.973978
    selective_accuracy    0.977099
    Name: value, dtype: float64
    """
    level = check_number("confidence_level", confidence_level, 0.0, 1.0, closed="neither")
    check_count("n_errors", n_errors, 0)
    is_table = len(rows) == 1 and isinstance(rows[0], Predictions | Mapping)
    if len(rows) != 2 and not is_table:
        raise ValueError(
            "rows must be y_true and y_proba=model.predict_proba(X), of several models a mapping "
            f"such as {{'forest': y_proba}}, got {', '.join(map(shown, rows)) or 'nothing'}."
        )
    y_true, y_proba = (None, *rows) if is_table else rows
    by_stage = isinstance(policy, AbstentionPolicy) and policy.cascade is not None
    given = y_proba if isinstance(y_proba, Mapping) and not by_stage else {data.UNNAMED: y_proba}
    names = list(map(str, given))
    if not names or len(set(names)) < len(names):
        raise ValueError(f"y_proba must hold models, each by a name of its own, got {names}.")
    policies = _resolve_policies(policy, threshold, names)
    tables = {
        str(name): _check_predictions(
            y_true, one, policies[str(name)], labels=labels, pos_label=pos_label
        )
        for name, one in given.items()
    }
    truth = row_checks.check_same_rows({name: (t.y_true, t.classes) for name, t in tables.items()})
    threshold = None if threshold is None else check_threshold(threshold)
    if ids is not None:
        named = row_checks.check_subgroups(ids, len(truth), "ids")
        if named.shape[1] > 1:
            raise ValueError(f"ids must be one column, got {list(named.columns)}.")
        ids = named.iloc[:, 0]
    if features is not None:
        features = features.to_pandas() if hasattr(features, "to_pandas") else features
        features = pd.DataFrame(features)
        row_checks.check_length("features", features, len(truth), "y_true")
    seed = check_generator(random_state).integers(2**63)
    cases = tuple(
        data.make_case(name, table, policies[name], threshold, subgroups)
        for name, table in tables.items()
    )
    review = {} if reviewing is None else read_review(reviewing)
    models = {
        case.name: data.make_contents(
            case, subgroups, ids, features, n_errors, level, seed, review, audits
        )
        for case in cases
    }
    comparison = _comparison(cases, level, seed)
    contents = {
        "title": str(title),
        "created": now(),
        "confidence_level": level,
        "n_rows": len(truth),
        "classes": data.count_classes(truth, cases[0].raw.classes),
        "models": models,
        "comparison": comparison,
        "best": None if comparison is None else which_is_best(comparison),
    }
    return SelectiveReport(replace_nan(contents), cases)


def _check_predictions(
    y_true: Any, given: Any, policy: AbstentionPolicy | None, **options: Any
) -> Predictions:
    is_table = isinstance(given, Predictions)
    if policy is not None and policy.cascade is not None and not is_table:
        return predictions_for(policy, y_true, given)
    found = read_predictions(y_true, given, options)
    row_checks.refuse_weights(found.sample_weight, "a report")
    return found


def _resolve_policies(policy: Any, threshold: float | None, names: list[str]) -> dict[str, Any]:
    """Return the policy of each model; refuse those for other models, and other objects."""
    if policy is None:
        return dict.fromkeys(names)
    row_checks.refuse_threshold_and_policy(threshold)
    found = dict(policy) if isinstance(policy, Mapping) else dict.fromkeys(names, policy)
    if set(found) != set(names):
        raise ValueError(
            f"policy: a mapping needs one for each model of {names}, got "
            f"{shown(list(found))}; None stands for a model without a policy."
        )
    for name, one in found.items():
        if one is not None and not isinstance(one, AbstentionPolicy):
            raise ValueError(
                f"policy: the one of {name!r} must be an AbstentionPolicy, such as policy_ of a "
                f"ThresholdTuner, got {type(one).__name__}."
            )
    return found


def _comparison(
    cases: tuple[data.Case, ...], level: float, seed: Any
) -> list[dict[str, Any]] | None:
    """Return the models, the best first, with the p-value of no difference."""
    if len(cases) < 2:
        return None
    # The intervals show that errors are few.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        scored = {case.name: case.scored for case in cases}
        # A bootstrap draws rows where they are too few for closed forms.
        how = Sampling(np.random.default_rng(seed), level)
        table = compared(scored, SPECS["augrc"], {}, how)
    columns = ["estimate", "low", "high", "difference", "p_value", "tied_with_best"]
    return [
        {"model": name, **{key: None if pd.isna(row[key]) else row[key] for key in columns}}
        for name, row in table.iterrows()
    ]
