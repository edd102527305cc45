"""A report on one or several models, as text, table or web page."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib.arrays import IntArray
from skselect._lib.checks import rows as row_checks, shown
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
    y_true: Any,
    y_proba: Any = None,
    *others: Any,
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
    title: str | None = None,
    random_state: Any = 0,
) -> SelectiveReport:
    """Report how far a model's confidence can be trusted, as text, table or web page.

    Parameters
    ----------
    y_true : array-like of shape (n,), Predictions, or mapping of str to Predictions
        True labels. Predictions (of labels and a confidence, for example) bring them, and stand
        alone: those of one model, or of several by name.
    y_proba : array-like of shape (n, K) or (n,), or mapping of str to array-like, default=None
        Class probabilities. A mapping holds those of several models by name. With a `policy` these
        are the raw ones, before its calibration. For the policy of a cascade a mapping of its
        stages to their tables.
    *others
        Refused.
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
    y_true, y_proba = _split_rows(y_true, y_proba, others)
    models = _name_models(y_proba, policy)
    policies = _resolve_policies(policy, threshold, list(models))
    tables = _read_models(y_true, models, policies, {"labels": labels, "pos_label": pos_label})
    truth = _check_same_truth(tables)
    if threshold is not None:
        threshold = check_threshold(threshold)
    options = data.Options(
        level=level,
        subgroups=subgroups,
        ids=_check_ids(ids, len(truth)),
        features=_check_features(features, len(truth)),
        seed=check_generator(random_state).integers(2**63),
        n_errors=n_errors,
        review={} if reviewing is None else read_review(reviewing),
        audits=audits,
    )
    cases = tuple(
        data.make_case(name, table, policies[name], threshold, subgroups)
        for name, table in tables.items()
    )
    return SelectiveReport(_make_contents(cases, options, title), cases)


def _make_contents(
    cases: tuple[data.Case, ...], options: data.Options, title: str | None
) -> dict[str, Any]:
    """Return the whole report as plain values."""
    rows = cases[0].raw
    comparison = _comparison(cases, options)
    contents = {
        "title": None if title is None else str(title),
        "created": now(),
        "confidence_level": options.level,
        "n_rows": len(rows),
        "classes": data.count_classes(rows.y_true, rows.classes),
        "models": {case.name: data.make_contents(case, options) for case in cases},
        "comparison": comparison,
        "best": None if comparison is None else which_is_best(comparison),
    }
    return replace_nan(contents)


def _split_rows(y_true: Any, y_proba: Any, others: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return true labels and what a report is about; tables bring their labels: then None."""
    is_alone = y_proba is None and not others
    if is_alone and isinstance(y_true, Predictions | Mapping):
        return None, y_true
    if is_alone or others:
        arguments = (y_true,) if is_alone else (y_true, y_proba, *others)
        raise ValueError(
            "rows must be y_true and y_proba=model.predict_proba(X), of several models a mapping "
            f"such as {{'forest': y_proba}}, got {', '.join(map(shown, arguments))}."
        )
    return y_true, y_proba


def _name_models(y_proba: Any, policy: Any) -> dict[str, Any]:
    """Return what each model said, by the name of the model."""
    by_stage = isinstance(policy, AbstentionPolicy) and policy.cascade is not None
    if by_stage or not isinstance(y_proba, Mapping):
        return {data.UNNAMED: y_proba}
    names = list(map(str, y_proba))
    if not names or len(set(names)) < len(names):
        raise ValueError(f"y_proba must hold models, each by a name of its own, got {names}.")
    return dict(zip(names, y_proba.values(), strict=True))


def _check_ids(ids: Any, n_rows: int) -> pd.Series | None:
    """Return the names of the rows as one column."""
    if ids is None:
        return None
    columns = row_checks.check_subgroups(ids, n_rows, "ids")
    if columns.shape[1] > 1:
        raise ValueError(f"ids must be one column, got {list(columns.columns)}.")
    return columns.iloc[:, 0]


def _check_features(features: Any, n_rows: int) -> pd.DataFrame | None:
    """Return what is shown beside the errors as a table."""
    if features is None:
        return None
    if hasattr(features, "to_pandas"):
        features = features.to_pandas()
    table = pd.DataFrame(features)
    row_checks.check_length("features", table, n_rows, "y_true")
    return table


def _read_models(
    y_true: Any, models: dict[str, Any], policies: dict[str, Any], class_options: dict[str, Any]
) -> dict[str, Predictions]:
    """Return what each model said as predictions."""
    return {
        name: _check_predictions(y_true, model, policies[name], class_options)
        for name, model in models.items()
    }


def _check_predictions(
    y_true: Any, model: Any, policy: AbstentionPolicy | None, class_options: dict[str, Any]
) -> Predictions:
    """Return what one model said as predictions, which have no weights."""
    is_table = isinstance(model, Predictions)
    if policy is not None and not is_table:
        reads_scores = policy.response == "decision_function"
        if policy.cascade is not None or reads_scores:
            return predictions_for(policy, y_true, model)
    predictions = read_predictions(y_true, model, class_options)
    row_checks.refuse_weights(predictions.sample_weight, "a report")
    return predictions


def _check_same_truth(tables: dict[str, Predictions]) -> IntArray:
    """Return the true classes of the rows, which all models share, as codes."""
    labels = {name: (table.y_true, table.classes) for name, table in tables.items()}
    return row_checks.check_same_rows(labels)


def _resolve_policies(policy: Any, threshold: float | None, names: list[str]) -> dict[str, Any]:
    """Return the policy of each model; refuse those for other models, and other objects."""
    if policy is None:
        return dict.fromkeys(names)
    row_checks.refuse_threshold_and_policy(threshold)
    policies = dict.fromkeys(names, policy)
    if isinstance(policy, Mapping):
        policies = dict(policy)
    if set(policies) != set(names):
        raise ValueError(
            f"policy: a mapping needs one for each model of {names}, got "
            f"{shown(list(policies))}; None stands for a model without a policy."
        )
    for name, policy_of_model in policies.items():
        if policy_of_model is not None and not isinstance(policy_of_model, AbstentionPolicy):
            raise ValueError(
                f"policy: the one of {name!r} must be an AbstentionPolicy, such as policy_ of a "
                f"ThresholdTuner, got {type(policy_of_model).__name__}."
            )
    return policies


def _comparison(cases: tuple[data.Case, ...], options: data.Options) -> list[dict[str, Any]] | None:
    """Return the models, the best first, with the p-value of no difference."""
    if len(cases) < 2:
        return None
    scored = {case.name: case.scored for case in cases}
    # A bootstrap draws rows where they are too few for closed forms.
    sampling = Sampling(np.random.default_rng(options.seed), options.level)
    # The intervals show that errors are few.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        table = compared(scored, SPECS["augrc"], {}, sampling)
    columns = ["estimate", "low", "high", "difference", "p_value", "tied_with_best"]
    table = table[columns].astype(object)
    table.insert(0, "model", table.index)
    ranked: list[Any] = table.where(table.notna(), None).to_dict("records")
    return ranked
