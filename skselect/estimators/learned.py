"""Learn from rows that no model has seen how likely each answer is right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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
from skselect._lib.sklearn import weight_parameter
from skselect.calibration._scopes import Calibration, ClassCalibration
from skselect.curve.curve import RiskCoverageCurve
from skselect.curve.influence import RankedInfluence, augrc_lines, clustered_error
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


class LearnedConfidence(BaseEstimator):
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
        lines = [f"{'USED' if self.used else 'NOT USED'}: {self.why}."]
        if self.coefficients:
            terms = "".join(
                f" {'-' if value < 0 else '+'} {abs(value):.3g} {name}"
                for name, value in self.coefficients.items()
                if name != "intercept"
            )
            lines.append(f"Log-odds of being right: {self.coefficients['intercept']:.3g}{terms}")
        return "\n".join(lines)


# Before fitting ------------------------------------------------------------------------------


def check_learner(learner: LearnedConfidence, base: Any, X: Any) -> dict[str, Any]:
    """Check the parameters of a learned confidence; return its auxiliary models, not fitted."""
    features = learner.features
    named = [] if isinstance(features, str) or not np.iterable(features) else list(features)
    if not named or not all(isinstance(name, str) for name in named):
        raise ValueError(
            "features must be a list of one or more of 'proba', 'auxiliary' and names of columns "
            f"of X, got {shown(features)}."
        )
    columns = _name_columns(learner)
    missing = [name for name in columns if name not in (arrays.column_names(X) or [])]
    if missing:
        raise ValueError(
            f"features: X has no column {missing}; name 'proba', 'auxiliary' or columns of X."
        )
    auxiliary = _check_auxiliary(learner, base, X)
    reserved = ["intercept", *OWN_FEATURES]
    taken = [*reserved, *auxiliary, *columns]
    if len(set(taken)) < len(taken):
        raise ValueError(
            f"auxiliary: two features have the same name. {reserved} are taken, {list(auxiliary)} "
            f"are the auxiliary models, {columns} columns of X; give them other names: "
            "auxiliary={'judge': ...}."
        )
    return auxiliary


def _name_columns(learner: LearnedConfidence) -> list[str]:
    return [name for name in learner.features if name not in ("proba", "auxiliary")]


def _check_auxiliary(learner: LearnedConfidence, base: Any, X: Any) -> dict[str, Any]:
    if learner.auxiliary is None and "auxiliary" in learner.features:
        return default_auxiliary(base, X)
    given = name_auxiliary(learner)
    if "auxiliary" in learner.features and not given:
        raise ValueError(
            f"auxiliary must be a list of classifiers, or a dict of them by name, got "
            f"{shown(learner.auxiliary)}. To ask none, leave 'auxiliary' out of features."
        )
    for name, model in given.items():
        is_model = hasattr(model, "fit") and hasattr(model, "predict_proba")
        if isinstance(model, type) or not is_model or not isinstance(name, str):
            raise ValueError(
                f"auxiliary: {name!r} must name, as a str, a classifier with fit and "
                f"predict_proba, got {shown(model)}. CalibratedClassifierCV gives probabilities to "
                "one that has only decision_function."
            )
    return given


def name_auxiliary(learner: LearnedConfidence) -> dict[str, Any]:
    """Return the auxiliary models given, each of a list by its class in small letters, numbered."""
    given = learner.auxiliary if "auxiliary" in learner.features else None
    if isinstance(given, Mapping):
        return dict(given)
    given = given if isinstance(given, list | tuple) else []
    kinds = [type(find_inner(model)).__name__.lower() for model in given]
    numbered = [
        kind if kinds.count(kind) == 1 else f"{kind}_{kinds[: k + 1].count(kind)}"
        for k, kind in enumerate(kinds)
    ]
    return dict(zip(numbered, given, strict=True))


# Fitting -------------------------------------------------------------------------------------


def learn_confidence(
    learner: LearnedConfidence,
    auxiliary: Mapping[str, Any],
    rows: TrainingRows,
    unseen: OutOfFold,
    calibration: Calibration | None,
) -> None:
    """Fit a learned confidence to out-of-fold rows, and its models to all rows if it is used."""
    answers = _find_answers(rows.rule, unseen, calibration)
    cluster = check_clusters(rows.split_params.get("groups"), len(rows.codes), "groups")
    if cluster is not None:
        cluster = np.unique(cluster[answers.rows], return_inverse=True)[1]
    columns = {name: x[answers.rows] for name, x in read_columns(learner, rows.X).items()}
    learner.score_, learner.report_ = _learn(learner, answers, columns, cluster)
    learner.auxiliary_ = {} if learner.score_ is None else rows.fit_auxiliary(auxiliary)


def read_auxiliary_proba(learner: LearnedConfidence, X: Any) -> dict[str, arrays.FloatArray]:
    """Return what a fitted confidence asks beside the classifier's probabilities, by name."""
    if learner.score_ is None:
        return {}
    return ask_auxiliary(learner.auxiliary_, X) | read_columns(learner, X)


def read_columns(learner: LearnedConfidence, X: Any) -> dict[str, arrays.FloatArray]:
    """Return the columns of X that are features, as finite numbers."""
    return {name: _read_column(X, name) for name in _name_columns(learner)}


def _find_answers(
    rule: DecisionRule, unseen: OutOfFold, calibration: Calibration | None
) -> OutOfFold:
    """Return the calibrated answers to out-of-fold rows; those of weight 0 do not count."""
    if unseen.weight is not None:
        unseen = unseen.take(np.flatnonzero(unseen.weight > 0))
    scores = unseen.scores
    proba = scores if calibration is None else calibration.predict_proba(scores)
    y_pred = rule.choose(proba, unseen.y_pred)
    plain = confidence_of_answers(proba, y_pred, rule.default_confidence, rule)
    return replace(unseen, scores=proba, y_pred=y_pred, confidence=plain)


def _learn(
    learner: LearnedConfidence,
    answers: OutOfFold,
    columns: Mapping[str, arrays.FloatArray],
    cluster: arrays.IntArray | None,
) -> tuple[LearnedScore | None, LearnedReport]:
    """Return the learned confidence, None where the plain one is kept, and the report."""
    n, n_errors = len(answers.right), int(np.sum(~answers.right))
    if n_errors in (0, n) or (learner.guard and n_errors < LEAST_ERRORS):
        needed = f"at least {LEAST_ERRORS} are needed" if learner.guard else "nothing can be learnt"
        why = f"{n_errors} of {n} out-of-fold answers are wrong: {needed}"
        return None, LearnedReport(False, why, n, n_errors)
    calibrations = {
        name: ClassCalibration.fit(
            "temperature", "predict_proba", table, answers.codes, table.shape[1], answers.weight
        )
        for name, table in answers.auxiliary.items()
    }
    auxiliary_proba = {
        name: calibrations[name].predict_proba(x) for name, x in answers.auxiliary.items()
    }
    features = describe_answers(answers.scores, answers.y_pred, {**auxiliary_proba, **columns})
    if "proba" not in learner.features:
        features = {name: x for name, x in features.items() if name not in OWN_FEATURES}
    learned = _cross_fit(learner, features, answers, cluster)
    before, after, z = _compare_augrc(answers, learned, cluster)
    score = _fit_score(learner, features, answers.right, answers.weight)
    used = z > LEAST_Z or not learner.guard
    why = (
        f"out of fold AUGRC {'falls' if after < before else 'rises'} by "
        f"{abs(100.0 * (after / before - 1.0)):.1f} %, from {before:.4f} to {after:.4f} "
        f"(z = {z:.2f}, {n} rows, {n_errors} errors)"
    )
    report = LearnedReport(used, why, n, n_errors, before, after, z, score.by_name)
    return (replace(score, auxiliary=calibrations) if used else None), report


def _cross_fit(
    learner: LearnedConfidence,
    features: Mapping[str, arrays.FloatArray],
    answers: OutOfFold,
    cluster: arrays.IntArray | None,
) -> arrays.FloatArray:
    """Return the learned confidence of each row, fitted to the rows of the other folds."""
    found = np.full(len(answers.right), np.mean(answers.right))
    folds = _find_folds(answers.fold, cluster)
    for fold in np.unique(folds):
        test = folds == fold
        if len(np.unique(answers.right[~test])) == 2:  # else the mean says all
            weight = None if answers.weight is None else answers.weight[~test]
            others = {name: x[~test] for name, x in features.items()}
            score = _fit_score(learner, others, answers.right[~test], weight)
            found[test] = score.judge({name: x[test] for name, x in features.items()})
    return found


def _find_folds(fold: arrays.IntArray, cluster: arrays.IntArray | None) -> arrays.IntArray:
    """Return the fold of each row; the rows of a single one are divided at random into five."""
    if len(np.unique(fold)) > 1:
        return fold
    unit = np.arange(len(fold)) if cluster is None else cluster
    return np.asarray(np.random.default_rng(0).permutation(np.max(unit) + 1)[unit] % 5)


def _fit_score(
    learner: LearnedConfidence,
    features: Mapping[str, arrays.FloatArray],
    right: arrays.BoolArray,
    weight: arrays.FloatArray | None,
) -> LearnedScore:
    """Fit what turns features into the chance of being right."""
    names, table = tuple(features), np.column_stack(list(features.values()))
    if learner.estimator is not None:
        parameter = None if weight is None else weight_parameter(learner.estimator)
        weighted = {} if parameter is None else {parameter: weight}
        fitted = clone(learner.estimator).fit(table, right.astype(np.int64), **weighted)
        return LearnedScore(names, np.full(len(names), np.nan), math.nan, classifier=fitted)
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - as for the auxiliary models

    scaler = StandardScaler().fit(table, sample_weight=weight)
    line = LogisticRegression(C=_STRENGTH, max_iter=1000)
    line.fit(scaler.transform(table), right, sample_weight=weight)
    coefficients = line.coef_[0] / scaler.scale_
    return LearnedScore(
        names, coefficients, float(line.intercept_[0] - coefficients @ scaler.mean_)
    )


def _compare_augrc(
    answers: OutOfFold, learned: arrays.FloatArray, cluster: arrays.IntArray | None
) -> tuple[float, float, float]:
    """Return AUGRC of the plain and of the learned confidence, and z of their difference."""
    if len(answers.right) < 3:
        return math.nan, math.nan, math.nan
    before = _find_augrc(answers, answers.confidence)
    after = _find_augrc(answers, learned)
    error = clustered_error(before.values - after.values, cluster)  # noqa: PD011
    gain = before.estimate - after.estimate
    return before.estimate, after.estimate, gain / error if error > 0 else 0.0


def _find_augrc(answers: OutOfFold, confidence: arrays.FloatArray) -> RankedInfluence:
    """Return AUGRC of the answers by a confidence, and how much each of them moves it."""
    loss = (~answers.right).astype(np.float64)
    outcomes = arrays.trusted(Outcomes, loss=loss, confidence=confidence)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    return RankedInfluence(curve.augrc(), "log", curve, augrc_lines, outcomes)


# Auxiliary models ---------------------------------------------------------------------------------


def default_auxiliary(base: Any, X: Any) -> dict[str, Any]:
    """Return two kinds of models other than the classifier's own, with encoders for X."""
    # Imported where they are fitted: most users of the library need none of them.
    from sklearn import ensemble, linear_model  # noqa: PLC0415

    sparse = hasattr(X, "tocsr")  # which histograms cannot read
    boosting = "GradientBoostingClassifier" if sparse else "HistGradientBoostingClassifier"
    kinds = {
        "forest": ensemble.RandomForestClassifier(200, random_state=0),
        "linear": linear_model.LogisticRegression(max_iter=2000),
        "boosting": getattr(ensemble, boosting)(random_state=0),
    }
    del kinds[_find_kind(base) or "boosting"]
    return {
        name: make_pipeline(*_encode(X, scale=name == "linear"), auxiliary_model)
        for name, auxiliary_model in kinds.items()
    }


def _find_kind(base: Any) -> str | None:
    """Return which of the two default auxiliary models is of the classifier's own kind, if any."""
    from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier  # noqa: PLC0415
    from sklearn.ensemble import RandomForestClassifier as Forest  # noqa: PLC0415

    base = find_inner(base)
    if isinstance(base, Forest | ExtraTreesClassifier | BaggingClassifier):
        return "forest"
    if type(base).__module__.startswith("sklearn.linear_model"):
        return "linear"
    searched = getattr(base, "estimator", None)  # inside a search, or CalibratedClassifierCV
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
    table = table.to_pandas() if hasattr(table, "to_pandas") else table
    table = table if hasattr(table, "iloc") else np.asarray(table)
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
        values = _as_numbers(_as_frame(arrays.take_columns(X, [name])))[:, 0]
    except (TypeError, ValueError) as error:
        raise ValueError(f"features: the column {name!r} must hold numbers: {error}.") from error
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"features: the column {name!r} has {int(np.sum(~np.isfinite(values)))} missing or "
            "infinite values; fill them in beforehand."
        )
    return values
