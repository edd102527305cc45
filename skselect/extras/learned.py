"""Learn from rows that no model has seen how likely each answer is right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skselect._lib import arrays
from skselect._lib.checks import shown
from skselect._lib.checks.rows import check_clusters
from skselect._lib.decide import OWN_FEATURES, describe_answers
from skselect._lib.notebook import NotebookText
from skselect._lib.sklearn import DescribedMixin, weight_parameter
from skselect.calibration._scopes import Calibration, ClassCalibration
from skselect.curve.curve import RiskCoverageCurve
from skselect.curve.influence import RankedInfluence, augrc_lines, clustered_error
from skselect.estimators.interfaces import ConfidenceLearner
from skselect.estimators.out_of_fold import OutOfFold
from skselect.estimators.raw_classifier import TrainingRows, ask_auxiliary, find_inner
from skselect.predictions.confidence import LearnedScore, confidence_of_answers
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.outcomes import Outcomes

#: With fewer errors among the out-of-fold answers the guard keeps the plain confidence.
LEAST_ERRORS = 20
#: The guard asks that AUGRC falls by more than this number of standard errors.
LEAST_Z = 1.0
#: C of the logistic regression: the features say much the same, and errors are few. On real tables
#: 0.05 gains as much as 1 where errors are many, and loses less where they are few.
_STRENGTH = 0.05
#: More levels of a categorical column than this are pooled for the default auxiliary models.
_MOST_LEVELS = 50


class LearnedConfidence(ConfidenceLearner, DescribedMixin, BaseEstimator):
    """Learn the probability that an answer is right, with the help of auxiliary models.

    Pass it to :class:`SelectiveClassifier` as `confidence`. The classifier keeps its answers. How
    sure it is of them is learnt from out-of-fold rows: by what its own probabilities say, and by
    how probable other kinds of models, the auxiliary models, find this very answer.

    Parameters
    ----------
    auxiliary : list of classifiers, dict of them by name, or None, default=None
        Classifiers with ``predict_proba``, of another kind than the one that answers; they are
        fitted in the same folds. `FrozenEstimator` and `PrecomputedClassifier` (another model's
        table, a judge, human raters) are used as they are: they must have learnt neither from
        these rows nor from those that certify, and their labels must be those of y (they may
        lack some, or have further ones, not both). None: a forest ("forest") and a scaled
        logistic regression ("linear"), behind encoders for categories and missing values;
        boosted trees ("boosting") in place of the one of the two that is of the classifier's
        own kind.
    estimator : classifier or None, default=None
        What learns right (1) and wrong (0) from the features. None: a logistic regression
        (C=0.05) on standardised features. Another one cannot be saved in a policy file.
    features : tuple or list of str, default=("proba", "auxiliary")
        "proba": of the calibrated probabilities the logit of the answer's, its lead over the next
        one on the log scale, and the entropy. "auxiliary": the logit that each auxiliary model
        gives to the answer. Any other name is a column of X that holds numbers, such as a novelty
        score.
    guard : bool, default=True
        Use the learned confidence only if, out of fold, there are at least 20 errors and its AUGRC
        is lower than that of the plain confidence by more than one standard error of the
        difference; else the plain one. `report_` says which.

    Attributes
    ----------
    report_ : LearnedReport
        AUGRC out of fold before and after, whether it is used, coefficients by name.
    score_ : LearnedScore or None
        What turns probabilities into the confidence; None where it is not used.
    auxiliary_ : dict
        The fitted auxiliary models by name; empty where they are not used.

    See Also
    --------
    SelectiveClassifier : Whose `confidence_` is the fitted one.

    Notes
    -----
    Each auxiliary model is fitted once per fold and once on all rows, beside the classifier. The
    auxiliary models' probabilities are calibrated by a temperature on the out-of-fold rows. For
    the guard the confidence is fitted again for each fold, to the rows of the others. Weights
    reach the auxiliary models that take them; the guard counts rows.

    The fitted confidence is fixed: certificates on fresh rows are exact, as for any other.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skselect import LearnedConfidence, SelectiveClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = RandomForestClassifier(30, random_state=0)
    >>> learned = LearnedConfidence(auxiliary={"forest": forest})
    >>> model = SelectiveClassifier(
    ...     GaussianNB(), calibration="temperature", confidence=learned, random_state=0
    ... )
    >>> print(model.fit(X[:600], y[:600]).confidence_.report_)
    USED: out of fold AUGRC falls by ... %, from 0.0... to 0.0... (z = ..., 600 rows, ... errors).
    Log-odds of being right: ...
    >>> model.predict_confidence(X[600:603]) > .9
    array([ True,  True,  True])
    """

    def __init__(
        self,
        *,
        auxiliary: Any = None,
        estimator: Any = None,
        features: Any = ("proba", "auxiliary"),
        guard: bool = True,
    ) -> None:
        self.auxiliary = auxiliary
        self.estimator = estimator
        self.features = features
        self.guard = guard

    # Before fitting ----------------------------------------------------------------------

    def _find_auxiliary(self, classifier: Any, X: Any) -> dict[str, Any]:
        """Check the parameters; return the auxiliary models of a classifier, not fitted."""
        self._check_features(X)
        auxiliary = self._check_auxiliary(classifier, X)
        columns = self._name_columns()
        reserved = ["intercept", *OWN_FEATURES]
        names = [*reserved, *auxiliary, *columns]
        if len(set(names)) < len(names):
            raise ValueError(
                f"auxiliary: two features have the same name. {reserved} are taken, "
                f"{list(auxiliary)} are the auxiliary models, {columns} columns of X; give them "
                "other names: auxiliary={'judge': ...}."
            )
        return auxiliary

    def _check_features(self, X: Any) -> None:
        """Refuse features that are no list of names, and columns that X has not."""
        features: list[Any] = []
        if np.iterable(self.features) and not isinstance(self.features, str):
            features = list(self.features)
        if not features or not all(isinstance(name, str) for name in features):
            raise ValueError(
                "features must be a list of one or more of 'proba', 'auxiliary' and names of "
                f"columns of X, got {shown(self.features)}."
            )
        known = arrays.column_names(X) or []
        missing = [name for name in self._name_columns() if name not in known]
        if missing:
            raise ValueError(
                f"features: X has no column {missing}; name 'proba', 'auxiliary' or columns of X."
            )

    def _name_columns(self) -> list[str]:
        return [name for name in self.features if name not in ("proba", "auxiliary")]

    def _check_auxiliary(self, classifier: Any, X: Any) -> dict[str, Any]:
        """Return the auxiliary models by name; refuse what is no classifier."""
        wants_auxiliary = "auxiliary" in self.features
        if self.auxiliary is None and wants_auxiliary:
            return default_auxiliary(classifier, X)
        models = self._name_auxiliary()
        if wants_auxiliary and not models:
            raise ValueError(
                f"auxiliary must be a list of classifiers, or a dict of them by name, got "
                f"{shown(self.auxiliary)}. To ask none, leave 'auxiliary' out of features."
            )
        for name, model in models.items():
            is_model = hasattr(model, "fit") and hasattr(model, "predict_proba")
            if isinstance(model, type) or not is_model or not isinstance(name, str):
                raise ValueError(
                    f"auxiliary: {name!r} must name, as a str, a classifier with fit and "
                    f"predict_proba, got {shown(model)}. CalibratedClassifierCV gives "
                    "probabilities to one that has only decision_function."
                )
        return models

    def _name_auxiliary(self) -> dict[str, Any]:
        """Return the user's models, each of a list by its class in small letters, numbered."""
        if "auxiliary" not in self.features:
            return {}
        if isinstance(self.auxiliary, Mapping):
            return dict(self.auxiliary)
        if not isinstance(self.auxiliary, list | tuple):
            return {}
        kinds = [type(find_inner(model)).__name__.lower() for model in self.auxiliary]
        names = []
        for k, kind in enumerate(kinds):
            number = kinds[: k + 1].count(kind)
            names.append(kind if kinds.count(kind) == 1 else f"{kind}_{number}")
        return dict(zip(names, self.auxiliary, strict=True))

    # Fitting -----------------------------------------------------------------------------

    def _learn(
        self,
        auxiliary: dict[str, Any],
        rows: TrainingRows,
        unseen: OutOfFold,
        calibration: Calibration | None,
    ) -> None:
        """Fit it to out-of-fold rows, and its auxiliary models to all rows if it is used."""
        answers = _find_answers(rows.rule, unseen, calibration)
        cluster = check_clusters(rows.split_params.get("groups"), len(rows.codes), "groups")
        if cluster is not None:
            _, cluster = np.unique(cluster[answers.rows], return_inverse=True)
        columns = {
            name: column[answers.rows] for name, column in self._read_columns(rows.X).items()
        }
        self.score_, self.report_ = self._learn_score(answers, columns, cluster)
        self.auxiliary_ = {}
        if self.score_ is not None:
            self.auxiliary_ = rows.fit_auxiliary(auxiliary)

    def _learn_score(
        self,
        answers: OutOfFold,
        columns: Mapping[str, arrays.FloatArray],
        cluster: arrays.IntArray | None,
    ) -> tuple[LearnedScore | None, LearnedReport]:
        """Return the learned confidence, None where the plain one is kept, and the report."""
        n_rows = len(answers.right)
        n_errors = int(np.sum(~answers.right))
        if n_errors in (0, n_rows) or (self.guard and n_errors < LEAST_ERRORS):
            needed = "nothing can be learnt"
            if self.guard:
                needed = f"at least {LEAST_ERRORS} are needed"
            why = f"{n_errors} of {n_rows} out-of-fold answers are wrong: {needed}"
            return None, LearnedReport(False, why, n_rows, n_errors)
        calibrations = _calibrate_auxiliary(answers)
        features = self._describe(answers, calibrations, columns)
        confidence = self._cross_fit(features, answers, cluster)
        augrc = _compare_augrc(answers, confidence, cluster)
        score = self._fit_score(features, answers.right, answers.weight)
        used = augrc.z > LEAST_Z or not self.guard
        why = f"{augrc.describe()} (z = {augrc.z:.2f}, {n_rows} rows, {n_errors} errors)"
        report = LearnedReport(used, why, n_rows, n_errors, *augrc, score.by_name)
        if not used:
            return None, report
        return replace(score, auxiliary=calibrations), report

    def _describe(
        self,
        answers: OutOfFold,
        calibrations: Mapping[str, ClassCalibration],
        columns: Mapping[str, arrays.FloatArray],
    ) -> dict[str, arrays.FloatArray]:
        """Return the features of the answers by name."""
        calibrated = {
            name: calibrations[name].predict_proba(proba)
            for name, proba in answers.auxiliary.items()
        }
        features = describe_answers(answers.scores, answers.y_pred, {**calibrated, **columns})
        if "proba" in self.features:
            return features
        return {name: values for name, values in features.items() if name not in OWN_FEATURES}

    def _cross_fit(
        self,
        features: Mapping[str, arrays.FloatArray],
        answers: OutOfFold,
        cluster: arrays.IntArray | None,
    ) -> arrays.FloatArray:
        """Return the learned confidence of each row, fitted to the rows of the other folds."""
        confidence = np.full(len(answers.right), np.mean(answers.right))
        folds = _find_folds(answers.fold, cluster)
        for fold in np.unique(folds):
            tested = folds == fold
            right = answers.right[~tested]
            if len(np.unique(right)) < 2:  # the mean says all
                continue
            weight = None if answers.weight is None else answers.weight[~tested]
            others = {name: values[~tested] for name, values in features.items()}
            score = self._fit_score(others, right, weight)
            confidence[tested] = score.judge(
                {name: values[tested] for name, values in features.items()}
            )
        return confidence

    def _fit_score(
        self,
        features: Mapping[str, arrays.FloatArray],
        right: arrays.BoolArray,
        weight: arrays.FloatArray | None,
    ) -> LearnedScore:
        """Fit what turns features into the chance of being right."""
        names = tuple(features)
        table = np.column_stack(list(features.values()))
        if self.estimator is None:
            return _fit_line(names, table, right, weight)
        params = {}
        if weight is not None:
            parameter = weight_parameter(self.estimator)
            if parameter is not None:
                params[parameter] = weight
        fitted = clone(self.estimator).fit(table, right.astype(np.int64), **params)
        no_coefficients = np.full(len(names), np.nan)
        return LearnedScore(names, no_coefficients, math.nan, classifier=fitted)

    # What is asked -----------------------------------------------------------------------

    def _read_columns(self, X: Any) -> dict[str, arrays.FloatArray]:
        """Return the columns of X that are features, as finite numbers."""
        return {name: _read_column(X, name) for name in self._name_columns()}

    def _ask(self, X: Any) -> dict[str, arrays.FloatArray]:
        """Return what it asks beside the classifier's probabilities, by name."""
        if self.score_ is None:
            return {}
        return ask_auxiliary(self.auxiliary_, X) | self._read_columns(X)


@dataclass(frozen=True, eq=False)
class LearnedReport(NotebookText):
    """What out-of-fold rows say of a learned confidence; each is rated without its own fold.

    Parameters
    ----------
    used : bool
        Whether it is used in place of the plain confidence.
    why : str
        The reason, in words.
    n, n_errors : int
        Out-of-fold rows, and wrong answers among them.
    augrc_before, augrc_after, z : float
        AUGRC of the plain and of the learned confidence, and by how many standard errors the
        first one is larger; nan where nothing was learnt.
    coefficients : dict
        By name, with "intercept"; empty for a classifier of your own.
    """

    used: bool
    why: str
    n: int
    n_errors: int
    augrc_before: float = math.nan
    augrc_after: float = math.nan
    z: float = math.nan
    coefficients: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        verdict = "USED" if self.used else "NOT USED"
        lines = [f"{verdict}: {self.why}."]
        if self.coefficients:
            log_odds = f"Log-odds of being right: {self.coefficients['intercept']:.3g}"
            for name, value in self.coefficients.items():
                if name != "intercept":
                    sign = "-" if value < 0 else "+"
                    log_odds += f" {sign} {abs(value):.3g} {name}"
            lines.append(log_odds)
        return "\n".join(lines)


# Out-of-fold answers -------------------------------------------------------------------------


def _find_answers(
    rule: DecisionRule, unseen: OutOfFold, calibration: Calibration | None
) -> OutOfFold:
    """Return the calibrated answers to out-of-fold rows; those of weight 0 do not count."""
    if unseen.weight is not None:
        unseen = unseen.take(np.flatnonzero(unseen.weight > 0))
    proba = unseen.scores
    if calibration is not None:
        proba = calibration.predict_proba(proba)
    y_pred = rule.choose(proba, unseen.y_pred)
    plain = confidence_of_answers(proba, y_pred, rule.default_confidence, rule)
    return replace(unseen, scores=proba, y_pred=y_pred, confidence=plain)


def _calibrate_auxiliary(answers: OutOfFold) -> dict[str, ClassCalibration]:
    """Return a temperature for each auxiliary model."""
    return {
        name: ClassCalibration.fit(
            "temperature", "predict_proba", proba, answers.codes, proba.shape[1], answers.weight
        )
        for name, proba in answers.auxiliary.items()
    }


def _find_folds(fold: arrays.IntArray, cluster: arrays.IntArray | None) -> arrays.IntArray:
    """Return the fold of each row; the rows of a single one are divided at random into five."""
    if len(np.unique(fold)) > 1:
        return fold
    unit = np.arange(len(fold)) if cluster is None else cluster
    order = np.random.default_rng(0).permutation(np.max(unit) + 1)
    return np.asarray(order[unit] % 5)


def _fit_line(
    names: tuple[str, ...],
    table: arrays.FloatArray,
    right: arrays.BoolArray,
    weight: arrays.FloatArray | None,
) -> LearnedScore:
    """Fit a logistic regression on standardised features; its coefficients are for plain ones."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - as for the auxiliary models

    scaler = StandardScaler().fit(table, sample_weight=weight)
    line = LogisticRegression(C=_STRENGTH, max_iter=1000)
    line.fit(scaler.transform(table), right, sample_weight=weight)
    coefficients = line.coef_[0] / scaler.scale_
    intercept = float(line.intercept_[0] - coefficients @ scaler.mean_)
    return LearnedScore(names, coefficients, intercept)


class _Comparison(NamedTuple):
    """AUGRC of the plain and of the learned confidence, and z of their difference."""

    before: float
    after: float
    z: float

    def describe(self) -> str:
        moves = "falls" if self.after < self.before else "rises"
        change = abs(100.0 * (self.after / self.before - 1.0))
        return (
            f"out of fold AUGRC {moves} by {change:.1f} %, from {self.before:.4f} to "
            f"{self.after:.4f}"
        )


def _compare_augrc(
    answers: OutOfFold, learned: arrays.FloatArray, cluster: arrays.IntArray | None
) -> _Comparison:
    """Compare AUGRC of the plain and of the learned confidence."""
    if len(answers.right) < 3:
        return _Comparison(math.nan, math.nan, math.nan)
    before = _find_augrc(answers, answers.confidence)
    after = _find_augrc(answers, learned)
    error = clustered_error(before.values - after.values, cluster)  # noqa: PD011
    gain = before.estimate - after.estimate
    z = gain / error if error > 0 else 0.0
    return _Comparison(before.estimate, after.estimate, z)


def _find_augrc(answers: OutOfFold, confidence: arrays.FloatArray) -> RankedInfluence:
    """Return AUGRC of the answers by a confidence, and how much each of them moves it."""
    loss = (~answers.right).astype(np.float64)
    outcomes = arrays.trusted(Outcomes, loss=loss, confidence=confidence)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    return RankedInfluence(curve.augrc(), "log", curve, augrc_lines, outcomes)


# Auxiliary models ---------------------------------------------------------------------------------


def default_auxiliary(classifier: Any, X: Any) -> dict[str, Any]:
    """Return two kinds of models other than the classifier's own, with encoders for X."""
    # Imported where they are fitted: most users of the library need none of them.
    from sklearn import ensemble, linear_model  # noqa: PLC0415

    boosting = ensemble.HistGradientBoostingClassifier
    if hasattr(X, "tocsr"):  # a sparse matrix, which histograms cannot read
        boosting = ensemble.GradientBoostingClassifier
    models = {
        "forest": ensemble.RandomForestClassifier(200, random_state=0),
        "linear": linear_model.LogisticRegression(max_iter=2000),
        "boosting": boosting(random_state=0),
    }
    del models[_find_kind(classifier) or "boosting"]
    return {
        name: make_pipeline(*_encode(X, scale=name == "linear"), model)
        for name, model in models.items()
    }


def _find_kind(classifier: Any) -> str | None:
    """Return which of the two default auxiliary models is of the classifier's own kind, if any."""
    from sklearn.ensemble import (  # noqa: PLC0415
        BaggingClassifier,
        ExtraTreesClassifier,
        RandomForestClassifier as Forest,
    )

    inner = find_inner(classifier)
    if isinstance(inner, Forest | ExtraTreesClassifier | BaggingClassifier):
        return "forest"
    if type(inner).__module__.startswith("sklearn.linear_model"):
        return "linear"
    searched = getattr(inner, "estimator", None)  # inside a search, or CalibratedClassifierCV
    return _find_kind(searched) if hasattr(searched, "fit") else None


def _encode(X: Any, *, scale: bool) -> list[Any]:
    """Return the steps that turn rows like these into numbers without gaps."""
    from sklearn.compose import ColumnTransformer  # noqa: PLC0415
    from sklearn.impute import SimpleImputer  # noqa: PLC0415

    if hasattr(X, "tocsr"):
        return [StandardScaler(with_mean=False)] if scale else []
    _as_frame(X)  # refuses what is no table
    numbers = make_pipeline(
        FunctionTransformer(_as_numbers),
        SimpleImputer(strategy="median", keep_empty_features=True),
        StandardScaler() if scale else "passthrough",
    )
    texts = make_pipeline(
        FunctionTransformer(_as_texts),
        OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=_MOST_LEVELS),
    )
    columns = ColumnTransformer(
        [("numbers", numbers, _find_numbers)], remainder=texts, sparse_threshold=0.0
    )
    return [FunctionTransformer(_as_frame), columns]


def _as_frame(table: Any) -> pd.DataFrame:
    """Return a table as a data frame with values as they are: 1 in a column of texts stays 1."""
    if hasattr(table, "to_pandas"):
        table = table.to_pandas()
    if not hasattr(table, "iloc"):
        table = np.asarray(table)
    if table.ndim != 2:
        raise ValueError(
            "auxiliary: the default ones read tables with one row per case, got "
            f"{shown(table)}; pass auxiliary=[...] that read what the classifier reads."
        )
    return pd.DataFrame(table).set_axis(range(table.shape[1]), axis=1)


def _find_numbers(frame: pd.DataFrame) -> list[int]:
    """Return the columns that hold numbers."""
    kinds = frame.infer_objects().dtypes
    return [k for k, kind in enumerate(kinds) if pd.api.types.is_numeric_dtype(kind)]


def _as_numbers(frame: pd.DataFrame) -> arrays.FloatArray:
    return frame.astype(np.float64).to_numpy(dtype=np.float64, na_value=np.nan)


def _as_texts(table: Any) -> Any:
    """Return every value as text, the same one for all kinds of missing values."""
    frame = _as_frame(table).astype(object)
    return frame.map(str).where(frame.notna(), "missing").to_numpy(dtype=object)


def _read_column(X: Any, name: str) -> arrays.FloatArray:
    """Return a column of X as finite numbers."""
    try:
        frame = _as_frame(arrays.take_columns(X, [name]))
        values = _as_numbers(frame)[:, 0]
    except (TypeError, ValueError) as error:
        raise ValueError(f"features: the column {name!r} must hold numbers: {error}.") from error
    n_bad = np.count_nonzero(~np.isfinite(values))
    if n_bad:
        raise ValueError(
            f"features: the column {name!r} has {n_bad} missing or infinite values; fill them in "
            "beforehand."
        )
    return values
