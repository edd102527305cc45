"""Is one model better than another? Paired comparisons with Holm's adjustment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Unpack

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr

from skselect._lib.arrays import ROUNDING, ConfidenceSpec, FloatArray, IntArray, LossSpec
from skselect._lib.checks import warn_user
from skselect._lib.checks.options import check_models, check_shared_confidence
from skselect._lib.checks.rows import check_clusters, check_same_rows, refuse_weights
from skselect._lib.keywords import WeighedRowOptions, share_options
from skselect._lib.table import WholeTable
from skselect.curve.influence import clustered_error
from skselect.inference.intervals import (
    FEW_ERRORS,
    Measured,
    Resampler,
    Sampling,
    add_pos_label,
    bootstrap,
    find_interval,
    is_shaky,
    measure,
    quantile,
)
from skselect.metrics._evaluate import check_direction, request
from skselect.metrics._metric import MetricSpec
from skselect.metrics._rows import ScoredRows, score_rows
from skselect.predictions.predictions import Predictions

NOTE = (
    "Intervals and p-values are about new rows for these fitted models; how much another "
    "training run would change them is not included."
)

# Kernels ---------------------------------------------------------------------------------


def holm(p_values: FloatArray) -> FloatArray:
    """Return Holm's adjusted p-values; nan stays nan and does not count as a test."""
    adjusted = np.full(len(p_values), np.nan)
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
    return adjusted


def _p_value(difference: float, error: float, cluster: IntArray | None) -> float:
    """Return the two-sided p-value of equal values in the population."""
    if difference == 0:
        return 1.0
    if math.isnan(difference) or not error > ROUNDING:
        return math.nan  # all rows or draws are equal: the error is unknown
    z = abs(difference) / error
    if cluster is None:
        return float(2.0 * ndtr(-z))
    return float(2.0 * stdtr(max(cluster.max(), 1), -z))


def _find_errors(measured: Sequence[Measured], how: Sampling) -> FloatArray:
    """Return the standard error of the difference of each two of K models, shape (K, K)."""
    values = [model.influence.values for model in measured if model.influence is not None]  # noqa: PD011
    has_closed_form = len(values) == len(measured)
    if not has_closed_form:
        resamplers = [Resampler(model.spec, model.rows, model.parameters) for model in measured]
        values = list(bootstrap(resamplers, how).T)
    error = np.zeros((len(measured), len(measured)))
    for i, j in combinations(range(len(measured)), 2):
        differences = values[i] - values[j]
        if has_closed_form:
            error[i, j] = clustered_error(differences, how.cluster)
        else:
            error[i, j] = _standard_deviation(differences[np.isfinite(differences)])
        error[j, i] = error[i, j]
    return error


def _standard_deviation(values: FloatArray) -> float:
    if len(values) < 2:
        return math.nan
    return float(np.std(values, ddof=1))


def _compare_with_one(
    estimates: FloatArray, error: FloatArray, reference: int, baseline: str | None, how: Sampling
) -> dict[str, Any]:
    """Return Holm's p-value of each model against one, and which could be as good as this.

    The family of tests are all pairs of models, or those with the baseline.
    """
    pairs = list(combinations(range(len(estimates)), 2))
    if baseline is not None:
        pairs = [pair for pair in pairs if reference in pair]
    single = [_p_value(estimates[i] - estimates[j], error[i, j], how.cluster) for i, j in pairs]
    p_values = np.ones(len(estimates))
    for (i, j), adjusted in zip(pairs, holm(np.array(single)), strict=True):
        if i == reference:
            p_values[j] = adjusted
        elif j == reference:
            p_values[i] = adjusted
    tied = pd.array(p_values > 1.0 - how.level, dtype="boolean")
    tied[np.isnan(p_values)] = pd.NA
    name = "tied_with_best" if baseline is None else "tied_with_baseline"
    return {"p_value": p_values, name: tied}


def compared(
    models: Mapping[str, ScoredRows],
    spec: MetricSpec,
    parameters: Mapping[str, Any],
    how: Sampling,
    baseline: str | None = None,
) -> pd.DataFrame:
    """Return the table of :func:`compare_models`, with columns `shaky` and `hangs`."""
    measured = [measure(spec, model, parameters, how) for model in models.values()]
    intervals = [find_interval(model) for model in measured]
    estimates = np.array([model.estimate for model in measured])
    error = _find_errors(measured, how)
    scores = np.array([spec.as_score(value) for value in estimates])
    reference = _find_reference(list(models), scores, spec, baseline)
    table = pd.DataFrame(
        {
            "estimate": estimates,
            "low": [interval.low for interval in intervals],
            "high": [interval.high for interval in intervals],
            **_find_differences(measured, error, reference, baseline, how),
            "shaky": [is_shaky(interval) for interval in intervals],
        },
        index=pd.Index(list(models)),
    )
    return table.iloc[np.argsort(-scores, kind="stable")]


def _find_differences(
    measured: Sequence[Measured],
    error: FloatArray,
    reference: int,
    baseline: str | None,
    how: Sampling,
) -> dict[str, Any]:
    """Return the columns of the table that are about differences to one model."""
    estimates = np.array([model.estimate for model in measured])
    tests = _compare_with_one(estimates, error, reference, baseline, how)
    difference = estimates - estimates[reference]
    reach = quantile(how.level, how.cluster) * error[reference]
    left = np.abs(difference) - _taken_by_errors(measured, difference, reference)
    return {
        "difference": difference,
        "difference_low": difference - reach,
        "difference_high": difference + reach,
        **tests,
        "hangs": (tests["p_value"] <= 1.0 - how.level) & (left <= reach),
    }


def _find_reference(
    names: list[str], scores: FloatArray, spec: MetricSpec, baseline: str | None
) -> int:
    """Return the place of the model that the others are compared with: the baseline or the best."""
    if baseline is None:
        if np.all(np.isnan(scores)):
            raise ValueError(f"metric: {spec.name!r} is undefined (nan) for every model.")
        return int(np.nanargmax(scores))
    reference = names.index(baseline)
    if math.isnan(scores[reference]):
        raise ValueError(f"baseline: {spec.name!r} is undefined (nan) for it.")
    return reference


def _taken_by_errors(
    measured: Sequence[Measured], difference: FloatArray, reference: int
) -> FloatArray:
    """Return what a confident error takes from each difference: of the model, or the reference."""
    confident_error = np.array([model.confident_error for model in measured])
    sign = np.sign(difference)
    of_model = -sign * confident_error
    of_reference = sign * confident_error[reference]
    return np.maximum(of_model, of_reference)


# Public functions ------------------------------------------------------------------------


@share_options
def compare_models(
    y_true: Any,
    y_probas: Mapping[str, Any],
    metric: str = "augrc",
    *,
    baseline: str | None = None,
    confidence_level: float = 0.95,
    cluster: Any = None,
    method: str = "analytic",
    metric_params: Mapping[str, Any] | None = None,
    n_resamples: int = 999,
    random_state: Any = None,
    **options: Unpack[WeighedRowOptions],
) -> pd.DataFrame:
    """Compare models on the same rows: who is best, and who could be as good.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None
        True labels.
    y_probas : mapping of str to array-like of shape (n, K) or (n,), or to Predictions
        The class probabilities of each model, for the same rows. Predictions have their own
        predicted classes, confidence and true labels: with them pass ``y_true=None``.
    metric : str, default="augrc"
        Short name as in ``skselect.metrics.SPECS``, such as "augrc".
    baseline : str, default=None
        The model that all others are compared with. None: the best one.
    confidence_level : float in (0, 1), default=0.95
    cluster : array-like of shape (n,), default=None
        Which rows belong together (one patient, one day): clusters, not rows, are then treated as
        independent.
    method : {"analytic", "bootstrap"}, default="analytic"
        "analytic": closed forms where there are any, else the bootstrap.
    metric_params : dict, default=None
        Parameters of the metric, such as ``{"threshold": 0.8}``.
    n_resamples : int, default=999
        Draws of the bootstrap.
    random_state : int, Generator or None, default=None
        Seed of the bootstrap.
    %(options)s
        Only constant weights: a weight is not a number of independent rows.

    Returns
    -------
    DataFrame
        A row per model, the best first: `estimate` with its interval `low`, `high`;
        `difference` to the best model (or to the baseline) with its interval; the `p_value`
        of no difference, adjusted by Holm; `tied_with_best` (or `tied_with_baseline`): the
        p-value exceeds 1 - confidence_level, missing where there is none.
        ``attrs["note"]`` says what is not included.

    Raises
    ------
    ValueError
        If there are fewer than two models, the baseline is not one of them or has no value,
        weights are not constant, differences of the metric do not say which model is better (ecd)
        or measure chance (ece, smooth_ece, ecce, isotonic_distance), or an argument is malformed.

    Warns
    -----
    UserWarning
        If an estimate rests on fewer than 10 errors or right answers, or a difference with a
        p-value of at most 1 - confidence_level would be within chance if the surest right answer of
        one model were wrong.

    Notes
    -----
    Differences are tested with the paired influence values of both models on the same rows
    (see :func:`metric_interval`). Without a baseline the best model is chosen by the same
    rows, so all pairs belong to the family that Holm's method adjusts. Only new rows are
    considered: retraining the models would change their values too, and that variance is not
    in the table. A Wilcoxon test over bootstrap samples is no substitute: its p-value falls
    with the number of bootstrap samples, and it finds a difference between equal models in
    about nine of ten data sets. The intervals of the differences are not adjusted for the
    number of models, the p-values are. Neither allows for confident errors of which the rows
    hold none (`low` and `high` allow for one): in simulations two models with equal AURC, of which
    one errs on its surest row in 250, were told apart in 29 % of draws of 250 rows.

    References
    ----------
    .. [1] DeLong et al., "Comparing the areas under two or more correlated receiver operating
       characteristic curves", 1988.
    .. [2] Holm, "A simple sequentially rejective multiple test procedure", 1979.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.inference import compare_models
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=1000)
    >>> y_true = (rng.uniform(size=1000) < p).astype(int)
    >>> blurred = np.clip(p + rng.normal(scale=.2, size=1000), 0, 1)
    >>> table = compare_models(y_true, {"exact": p, "blurred": blurred}, "augrc")
    >>> table[["estimate", "difference", "tied_with_best"]].round(4)
             estimate  difference  tied_with_best
    exact      0.0827      0.0000            True
    blurred    0.1203      0.0376           False
    """
    how = Sampling.checked(method, confidence_level, n_resamples, random_state)
    spec, parameters = request(metric, metric_params)
    if spec.signed:
        raise ValueError(
            f"metric: {spec.name!r} is best at 0 and its sign tells the direction, so differences "
            f"do not say which model is better; test each model with {spec.name}_test."
        )
    if spec.chance_raises == "value":
        raise ValueError(
            f"metric: {spec.name!r} is never 0 in a sample: chance raises it, by an amount that "
            "differs from model to model. Compare 'top_label_brier' or 'debiased_l2', and test "
            "each model with t_cal_test."
        )
    check_direction(parameters)
    names = check_models(y_probas, baseline)
    parameters = add_pos_label(spec, parameters, y_probas[names[0]], options.get("pos_label"))
    confidence = options.pop("confidence", None)
    loss = options.pop("loss", "zero_one")
    check_shared_confidence(confidence)
    tables = {name: read_predictions(y_true, y_probas[name], options) for name in names}
    check_same_rows({name: (t.y_true, t.classes) for name, t in tables.items()})
    models = _score_models(tables, confidence, loss)
    how = how._replace(cluster=check_clusters(cluster, len(tables[names[0]])))
    comparison = compared(models, spec, parameters, how, baseline)
    _warn_if_doubtful(comparison, names, spec, baseline)
    whole = WholeTable(comparison)
    whole.attrs["note"] = NOTE
    return whole


def _score_models(
    tables: Mapping[str, Predictions], confidence: ConfidenceSpec | None, loss: LossSpec
) -> dict[str, ScoredRows]:
    """Compute loss and confidence of each row of each model; refuse weights."""
    for table in tables.values():
        refuse_weights(table.sample_weight, "a comparison")
    models = {}
    for name, table in tables.items():
        unweighted = replace(table, sample_weight=None)
        models[name] = score_rows(unweighted, confidence=confidence, loss=loss)
    return models


def _warn_if_doubtful(
    comparison: pd.DataFrame, names: list[str], spec: MetricSpec, baseline: str | None
) -> None:
    """Take the columns `shaky` and `hangs` out of a comparison, and warn of their models."""
    shaky = comparison.pop("shaky")
    hangs = comparison.pop("hangs")
    few = [name for name in names if shaky[name]]
    if few:
        warn_user(
            f"{spec.name}: the estimates of {few} rest on fewer than {FEW_ERRORS} errors or right "
            "answers; intervals and p-values may be far off."
        )
    hanging = [name for name in names if hangs[name]]
    if hanging:
        reference = comparison.index[0] if baseline is None else baseline
        warn_user(
            f"{spec.name}: if the surest right answer of one model were wrong, the differences of "
            f"{hanging} from {reference!r} would be within chance; these rows cannot rule that out."
        )


def read_predictions(y_true: Any, y_proba: Any, options: Mapping[str, Any]) -> Predictions:
    """Return Predictions as they are, or those of labels and probabilities."""
    if not isinstance(y_proba, Predictions):
        return Predictions.from_proba(y_true, y_proba, **options)
    if y_true is not None:
        raise ValueError("y_true: Predictions hold the true labels already; pass y_true=None.")
    return y_proba
