"""Policies: from raw scores to decisions, saved as JSON.

An estimator and a service that has only the JSON file run the same code, so they accept the
same rows.
"""

from __future__ import annotations

import json
import math
import os
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skselect._lib import decide as kernel
from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray, as_array, column_names
from skselect._lib.checks import rows as row_checks, shown, warn_user
from skselect._lib.checks.options import (
    check_abstain_label,
    check_choice,
    check_confidence_fits,
    check_count,
    check_delta,
    check_given,
    check_keys,
    check_learnable,
    check_number,
    check_threshold,
)
from skselect._lib.files import digest_json, give_text, read_json, restore_stored
from skselect._lib.notebook import NotebookText, percent, show_card, wrap
from skselect.bounds._pointwise import binomial_quantile, clopper_pearson_upper
from skselect.exceptions import ArgumentError
from skselect.policy import certificate as certificates
from skselect.policy.stages import CascadeRule, check_same_index
from skselect.policy.standalone import write_source
from skselect.policy.subgroups import (
    GroupThresholds,
    PolicyShortlist,
)
from skselect.predictions.confidence import (
    ANSWER_CONFIDENCES,
    LearnedScore,
    confidence_of_answers,
    confidence_of_proba,
)
from skselect.predictions.decisions import DecisionRule

if TYPE_CHECKING:
    from skselect.calibration._scopes import Calibration

SCHEMA = "skselect.policy"
VERSION = 6
#: Parts of a policy, each with the class that stores it as plain values and rebuilds it. A class
#: that few need is imported where a stored policy has such a part.
_PARTS: dict[str, Any] = {
    "groups": GroupThresholds,
    "certificate": certificates.Certificate,
    "shortlist": PolicyShortlist,
    "cascade": "skselect.extras.cascade:Cascade",
}
#: What it records about the rows that tuned it, as it stands in the file.
_FACTS = ("coverage", "n", "confidence_quantiles", "metadata", "created", "fingerprints")

#: All that a file may hold.
_KEYS = {
    *("schema", "version", "classes", "classes_dtype", "response", "calibration", "confidence"),
    *("decision", "cost_matrix", "threshold", "abstain_label", "abstain_answers", "digest"),
    *_PARTS,
    *_FACTS,
}

#: From how many rows on a table is compared with the rows that tuned the policy; how far a share
#: must be off, at least; and how often chance alone may say so, for rows of the same population.
_LARGE = 1_000
_FAR = 0.05
_CHANCE = 1e-3

_NO_GUARANTEE = "GUARANTEES NOTHING for new rows: there is no certificate."
#: What to do where Predictions of a policy with a learned confidence are wanted.
_NO_PREDICTIONS = (
    " Where Predictions are wanted, pass Predictions.from_labels(y_true, y_pred, confidence) with "
    "the columns suggestion and confidence of its decisions."
)


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a policy decides, one entry per row.

    Parameters
    ----------
    y_proba : ndarray of shape (n, K)
        Calibrated probabilities, never masked.
    y_pred : ndarray of shape (n,)
        Code of the answer, also where the policy abstains.
    confidence : ndarray of shape (n,)
        What the threshold is applied to.
    claim : ndarray of shape (n,)
        Claimed probability of being right: the confidence where the confidence is calibrated,
        else the probability of the answer.
    accepted : ndarray of shape (n,)
    threshold : ndarray of shape (n,)
    answers : ndarray or None, default=None
        The answers that `y_pred` counts, where they came with a confidence; None: the classes.
    stage : ndarray of shape (n,) or None, default=None
        Which stage of a cascade answered.
    over_capacity : ndarray of bool, shape (n,), or None, default=None
        Which rows are accepted only because too many would be deferred.
    """

    y_proba: FloatArray
    y_pred: IntArray
    confidence: FloatArray
    claim: FloatArray
    accepted: BoolArray
    threshold: FloatArray
    answers: LabelArray | None = None
    stage: IntArray | None = None
    over_capacity: BoolArray | None = None

    def fill(self, values: FloatArray) -> FloatArray:
        """Return confidences as metrics read them: of rows of zeros equal probabilities."""
        unknown = np.isnan(values)
        if not unknown.any():
            return values
        return np.where(unknown, kernel.chosen(self.y_proba, self.y_pred), values)


@dataclass(frozen=True, eq=False)
class AbstentionPolicy(NotebookText):
    """Answer or defer: calibration, confidence and threshold in one object that can be saved.

    Parameters
    ----------
    classes : ndarray of shape (K,)
        Class labels in the order of the raw scores' columns.
    threshold : float
        Rows with confidence >= threshold are accepted; inf accepts none. It becomes inf where there
        are `groups`.
    confidence : str, callable or LearnedScore, default="max_proba"
        How sure the classifier is of each row. Computed from the (calibrated) probabilities:
        "max_proba", "margin", "entropy", "gini"; or, for the answer alone, "chosen_proba" or
        "expected_cost". Or what a :class:`LearnedConfidence` has learnt, which also asks other
        models.
    calibration : ClassCalibration, ConfidenceCalibration or None, default=None
        Map from raw scores to calibrated probabilities, or from confidence to calibrated
        confidence.
    response : {"predict_proba", "decision_function"}, default="predict_proba"
        What the raw scores are.
    rule : DecisionRule, default=DecisionRule()
        How probabilities become an answer, and what errors cost.
    groups : GroupThresholds or None, default=None
        One threshold per subgroup, instead of `threshold` and `certificate`.
    abstain_label : label, default=None
        What an estimator's ``predict`` returns where it abstains.
    certificate : Certificate or None, default=None
        What is guaranteed about this threshold. A certificate for another one is refused.
    shortlist : PolicyShortlist or None, default=None
        Which classes it names where it defers a case. A shortlist for another threshold is
        refused.
    cascade : Cascade or None, default=None
        Which of several classifiers answers a case, where a :class:`CascadeClassifier` decides.
    abstain_answers : tuple, default=()
        What says that the model itself abstains, such as "unsure": such answers are deferred.
    coverage : float or None, default=None
        Share of accepted rows when the threshold was tuned (for drift checks).
    n : int or None, default=None
        Rows used to tune it.
    confidence_quantiles : dict, default={}
        Quantiles of the confidence on those rows (for drift checks), by level, such as "0.5". A
        tuner stores none where other models than the final one rated these rows (folds, a refit).
    metadata : dict, default={}
        Your own notes, of types that JSON can hold. A fitted estimator notes the name of its
        "classifier" for reports.
    created : str
        Date and time, ISO 8601.
    fingerprints : dict, default={}
        Digests of the rows that tuned it and of the probabilities for them; "rows", "trained":
        hashes of the confidences of at most 500 of these rows, and of rows that trained the
        classifier, by which :func:`~skselect.check_policy` and `certify` recognise them.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import AbstentionPolicy
    >>> policy = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.8)
    >>> policy.decide([[.9, .1], [.4, .6]])
      label suggestion  accepted  confidence  threshold
    0    no         no      True         0.9        0.8
    1  <NA>        yes     False         0.6        0.8
    >>> restored = AbstentionPolicy.from_json(policy.to_json())
    >>> restored.threshold
    0.8
    """

    classes: LabelArray
    threshold: float
    confidence: str | Callable[[FloatArray], Any] | LearnedScore = "max_proba"
    calibration: Calibration | None = None
    response: str = "predict_proba"
    rule: DecisionRule = field(default_factory=DecisionRule)
    groups: GroupThresholds | None = None
    abstain_label: Any = None
    certificate: certificates.Certificate | None = None
    shortlist: PolicyShortlist | None = None
    cascade: CascadeRule | None = None
    abstain_answers: tuple[Any, ...] = ()
    coverage: float | None = None
    n: int | None = None
    confidence_quantiles: dict[str, float] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    created: str = field(default_factory=certificates.now)
    fingerprints: dict[str, str] = field(default_factory=dict)

    @property
    def parts(self) -> GroupThresholds:
        """The thresholds and certificates; that for all rows is the subgroup "all"."""
        return self.groups or GroupThresholds.of_all(self.threshold, self.certificate)

    def __repr__(self) -> str:
        n_classes = len(self.classes)
        return f"<AbstentionPolicy: {n_classes} classes, threshold {self.parts.in_brief}>"

    def __str__(self) -> str:
        paragraphs = [wrap(repr(self)), str(self.parts), wrap(self._lives), *self._further_words()]
        return "\n\n".join(filter(None, paragraphs))

    def _repr_html_(self) -> str:
        if not self.parts.made:
            return show_card(f"NO CERTIFICATE: nothing is guaranteed.\n{self!r}", "open")
        further = "\n".join(self._further_words())
        card = show_card(further, "open") if further else ""
        paragraphs = [f"<p>{escape(line)}</p>" for line in self._lives.splitlines()]
        lives = "".join(paragraphs).replace(" %", "&nbsp;%")
        head = escape(repr(self))
        return f"<p>{head}</p>{self.parts._repr_html_()}{lives}{card}"

    @property
    def _lives(self) -> str:
        """When each guarantee was certified, and when to review it; "" for subgroups."""
        if self.parts.by is not None:
            return ""
        listed = self.parts.listed
        lives = [
            certificate.tell_life(len(listed))
            for certificate in listed
            if certificate.since and not certificate.is_of_users_loss
        ]
        return "\n".join(lives)

    def _further_words(self) -> list[str]:
        """Describe the cascade, and the shortlist unless the certificate does."""
        words = []
        if self.cascade is not None:
            words.append(str(self.cascade))
        is_in_certificate = self.certificate is not None and self.certificate.shortlist
        if self.shortlist is not None and not is_in_certificate:
            words.append(str(self.shortlist))
        return words

    def __post_init__(self) -> None:
        classes = row_checks.check_classes(self.classes, "classes")
        object.__setattr__(self, "classes", classes)
        self._check_threshold()
        check_choice("response", self.response, ["predict_proba", "decision_function"])
        rule = DecisionRule.checked(self.rule.decision, self.rule.cost_matrix, self.classes)
        object.__setattr__(self, "rule", rule)
        self._check_confidence()
        if self.abstain_label is not None:
            check_abstain_label(self.abstain_label, self.classes)
            object.__setattr__(self, "abstain_label", kernel.plain_value(self.abstain_label))
        object.__setattr__(
            self, "abstain_answers", _check_abstain_answers(self.abstain_answers, self.classes)
        )
        if self.calibration is not None:
            self.calibration.check_fits(len(self.classes), self.response)
        elif self.response == "decision_function":
            raise ValueError(
                "response='decision_function' needs a calibration, which turns decision values "
                "into probabilities."
            )
        if self.shortlist is not None:
            self.shortlist.check_fits(self.threshold, len(self.classes))
        if self.cascade is not None:
            self.cascade.check_fits(len(self.classes))
        _check_facts(self)

    def _check_threshold(self) -> None:
        """Check the threshold, and that the certificate is about it."""
        threshold = check_threshold(self.threshold)
        what = f"threshold={self.threshold!r}"
        if self.groups is not None:
            threshold = np.inf
            what = "groups: there is a threshold per subgroup"
        certificates.check_certified(self.certificate, threshold, what, "certificate=None")
        object.__setattr__(self, "threshold", threshold)

    def _check_confidence(self) -> None:
        """Check that the confidence is known, and fits the answers."""
        rule = self.rule
        if isinstance(self.confidence, LearnedScore):
            check_learnable(rule.decision)
            for calibration in self.confidence.auxiliary.values():
                calibration.check_fits(len(self.classes), "predict_proba")
        elif not callable(self.confidence):
            check_choice("confidence", self.confidence, [*kernel.CONFIDENCES, *ANSWER_CONFIDENCES])
            check_confidence_fits(self.confidence, rule.decision, rule.cost_matrix)

    if not TYPE_CHECKING:  # else mypy would take any attribute for one of these

        def __getattr__(self, name: str) -> Any:
            hint = "; call decide(model.predict_proba(X))" if name.startswith("predict") else ""
            raise AttributeError(f"An AbstentionPolicy has no {name!r}{hint}.")

    # Deciding ----------------------------------------------------------------------------

    def decide(
        self,
        y_proba: Any = None,
        *,
        y_pred: Any = None,
        confidence: Any = None,
        subgroups: Any = None,
        auxiliary: Any = None,
        index: Any = None,
        capacity: int | None = None,
    ) -> pd.DataFrame:
        """Turn raw probabilities into decisions, calibration included.

        Parameters
        ----------
        y_proba : array-like of shape (n, K) or (n,)
            The classifier's raw output (`response`), columns in the order of `classes`; the
            columns of a DataFrame are matched by name and its index is kept. (n,) or (n, 1) is
            the probability of the second of two classes. [.9, .1] is refused, because it may be
            one row or two: pass [[.9, .1]] or [[.9], [.1]]. No rows give an empty table. For a
            cascade a dict with such a table for each stage, NaN in rows where it was not asked.
            Leave it out with `confidence`.
        y_pred : array-like of shape (n,), default=None
            The classifier's own answers. For a policy with ``decision="estimator"``, or with
            `confidence`: any labels or texts.
        confidence : array-like of shape (n,), default=None
            How sure the classifier is of each row. Instead of `y_proba`, with the answers in
            `y_pred`: for a policy that was tuned on answers with a confidence.
        subgroups : array-like of shape (n,) or DataFrame, default=None
            The subgroup of each row. Needed for a policy with a threshold per subgroup, unless the
            answers are the subgroups.
        auxiliary : dict, default=None
            What a learned confidence asks, by name. Of each auxiliary model its raw probabilities
            for these rows, like `y_proba`; of each further column its values.
        index : pandas.Index or array-like of shape (n,), default=None
            What names the rows of the result: pass ``X_new.index`` where `y_proba` is an array, so
            that the decisions join the table they are about. Default: the index of `y_proba`, else
            0, 1, 2, ...
        capacity : int, default=None
            Defer at most so many of these rows: of those below the threshold the least sure ones,
            and of equally sure ones the first. The others are answered. No guarantee covers them,
            and a :class:`SystemRisk` does not hold for these rows.

        Returns
        -------
        DataFrame
            `label` (NA where abstained), `suggestion` (the answer everywhere), `accepted`,
            `confidence`, `threshold`; for a policy with a shortlist also `shortlist` (a tuple of
            labels where abstained, most probable first; else NA), for a cascade `stage`; with
            `capacity` also `over_capacity`, true where a row below the threshold is answered.

        Raises
        ------
        ValueError
            If the scores, answers, subgroups or auxiliary models do not fit the policy, or the
            index does not have one entry per row.

        Warns
        -----
        UserWarning
            If 1,000 rows or more do not look like those that tuned the policy: the share of rows
            below one of `confidence_quantiles` is off by .05, and by more than it is with
            probability .001 in two samples of one population. The probabilities may be
            calibrated already. Where the policy has no such quantiles, nothing is compared. If rows
            are answered over `capacity` although the policy has a certificate.
        """
        decisions = decide_given(self, y_proba, y_pred, subgroups, auxiliary, confidence)
        decisions = self._check_batch(decisions, capacity)
        n_rows = len(decisions.accepted)
        if index is not None:
            return tabulate_decisions(self, decisions, _check_index(index, n_rows))
        table = y_proba if confidence is None else confidence
        if isinstance(table, Mapping):
            table = next(iter(table.values()))
        return tabulate_decisions(self, decisions, find_index(table, n_rows))

    def begin(self, y_proba: Any = None, *, confidence: Any = None) -> LabelArray:
        """Say which stage of a cascade each row must ask next, so that no other is asked.

        Parameters
        ----------
        y_proba : dict of tables, or the table of the first stage
            As for :meth:`decide`, from the stages asked so far.
        confidence : dict of arrays, or the array of the first stage, default=None
            As for :meth:`decide`, where answers come with a confidence.

        Returns
        -------
        ndarray of str or None, shape (n,)
            The stage to ask; None where the row needs no other: :meth:`decide` decides it.

        Raises
        ------
        ValueError
            If the policy has no cascade, or the tables do not fit it.

        Examples
        --------
        >>> import numpy as np
        >>> from skselect import AbstentionPolicy
        >>> from skselect.extras.cascade import Cascade
        >>> rule = Cascade(("cheap", "strong"), (.8,), (0, 1), (None, None))
        >>> policy = AbstentionPolicy(np.array(["no", "yes"]), threshold=.7, cascade=rule)
        >>> cheap = np.array([[.9, .1], [.4, .6]])
        >>> policy.begin(cheap)
        array([None, 'strong'], dtype=object)
        >>> strong = np.array([[np.nan, np.nan], [.2, .8]])  # asked of the second row alone
        >>> policy.decide({"cheap": cheap, "strong": strong})[["label", "stage"]]
          label   stage
        0    no   cheap
        1   yes  strong
        """
        cascade = check_given(self.cascade, "cascade", "begin, which asks stage by stage,")
        tables = y_proba if confidence is None else confidence
        proba, stage = _follow(self, cascade, tables, kernel.follow_tables)
        waits = np.isnan(proba).any(axis=1)
        names = np.array([*cascade.names, None], dtype=object)
        return names[np.where(waits, stage, -1)]

    @property
    def expected_costs(self) -> pd.DataFrame:
        """What a case of a cascade costs, see :attr:`Cascade.expected_costs`."""
        rule: CascadeRule = check_given(self.cascade, "cascade", "expected_costs")
        return rule.expected_costs

    def decide_arrays(
        self,
        y_proba: Any = None,
        *,
        y_pred: Any = None,
        confidence: Any = None,
        subgroups: Any = None,
        auxiliary: Any = None,
        capacity: int | None = None,
    ) -> dict[str, LabelArray]:
        """Decide like :meth:`decide`, but return the columns as arrays, for services.

        One row takes a tenth of the time, most of which is that of the data frame.

        Parameters
        ----------
        y_proba, y_pred, confidence, subgroups, auxiliary, capacity
            As for :meth:`decide`, with the same checks.

        Returns
        -------
        dict of ndarray of shape (n,)
            The columns of :meth:`decide` by name; what is missing there is None. These are also
            the keys of ``decide`` in the file of :meth:`to_python`, which knows no capacity.

        Raises
        ------
        ValueError
            As for :meth:`decide`.

        Warns
        -----
        UserWarning
            As for :meth:`decide`.

        Examples
        --------
        >>> import numpy as np
        >>> from skselect import AbstentionPolicy
        >>> policy = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.8)
        >>> decided = policy.decide_arrays([[.4, .6]])
        >>> {name: column.item() for name, column in decided.items()}
        {'label': None, 'suggestion': 'yes', 'accepted': False, 'confidence': 0.6, 'threshold': 0.8}
        """
        decisions = decide_given(self, y_proba, y_pred, subgroups, auxiliary, confidence)
        decisions = self._check_batch(decisions, capacity)
        shortlist = None if self.shortlist is None else vars(self.shortlist)
        named = {"classes": self._answers(decisions), "shortlist": shortlist}
        threshold = decisions.threshold
        if decisions.over_capacity is not None:
            threshold = np.where(decisions.over_capacity, -np.inf, threshold)
        columns = kernel.tell(
            named, decisions.y_proba, decisions.y_pred, decisions.confidence, threshold
        )
        columns["threshold"] = decisions.threshold
        return columns | self._further_columns(decisions)

    def _check_batch(self, decisions: Decisions, capacity: int | None) -> Decisions:
        """Defer at most `capacity` rows; warn where many are unlike those that tuned the policy."""
        decisions = limit_deferred(self, decisions, capacity)
        if decisions.answers is not None:
            warn_of_scale(self, decisions.confidence)
        if len(decisions.accepted) >= _LARGE:
            name = "y_proba" if decisions.answers is None else "confidence"
            counts = count_at_quantiles(self, decisions.confidence)
            n_decided = int(np.sum(~np.isnan(decisions.confidence)))
            warn_if_far(self, counts, n_decided, name)
        return decisions

    def _answers(self, decisions: Decisions) -> LabelArray:
        """Return the answers that `y_pred` counts."""
        if decisions.answers is None:
            return self.classes
        return decisions.answers

    def _further_columns(self, decisions: Decisions) -> dict[str, LabelArray]:
        """Return which stage of a cascade answered, and what is over capacity, where it is so."""
        columns = {}
        if self.cascade is not None and decisions.stage is not None:
            columns["stage"] = np.array(self.cascade.names)[decisions.stage]
        if decisions.over_capacity is not None:
            columns["over_capacity"] = decisions.over_capacity
        return columns

    def accepts(self, confidence: Any, *, subgroups: Any = None) -> BoolArray:
        """Tell which confidences are high enough, compared as float64.

        Parameters
        ----------
        confidence : array-like of shape (n,)
        subgroups : array-like of shape (n,) or DataFrame, default=None
            The subgroup of each row. If the answers are the subgroups, pass them.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        values = _read_confidence(confidence)
        return np.asarray(values >= _find_thresholds(self, values, subgroups))

    def capacity_needed(self, n_cases: int, *, share: float = 0.95, delta: float = 0.05) -> int:
        """Return the `capacity` that suffices in most batches of so many cases.

        An estimate: the share of deferred cases is bounded (Clopper and Pearson) as if the rows
        that tuned the policy had not chosen its threshold.

        Parameters
        ----------
        n_cases : int
            Size of a batch.
        share : float in (0, 1), default=0.95
            The share of batches in which it suffices.
        delta : float in (0, 0.5], default=0.05
            Probability that the guarantee fails. Here it is about the share of deferred cases.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If an argument is out of range, or the policy does not know the rows that tuned it.

        Examples
        --------
        >>> import numpy as np
        >>> from skselect import AbstentionPolicy
        >>> policy = AbstentionPolicy(np.array(["no", "yes"]), .8, coverage=.9, n=2000)
        >>> policy.capacity_needed(1000)
        128
        """
        check_count("n_cases", n_cases, 0)
        check_number("share", share, 0.0, 1.0, closed="neither")
        check_delta(delta)
        if self.coverage is None or self.n is None:
            raise ValueError(
                "capacity_needed: this policy has no coverage and n, the facts about the rows that "
                "tuned it. Take the policy of a tuner or of select_threshold."
            )
        n_deferred = round((1.0 - self.coverage) * self.n)
        most_deferred = clopper_pearson_upper(n_deferred, self.n, delta)
        return binomial_quantile(share, n_cases, most_deferred)

    # Saving ------------------------------------------------------------------------------

    def to_dict(self, *, allow_external: bool = False) -> dict[str, Any]:
        """Return the policy as plain values; see :meth:`to_json`."""
        confidence = self._store_confidence(allow_external=allow_external)
        calibration = None
        if self.calibration is not None:
            calibration = self.calibration.to_dict(allow_external=allow_external)
        costs = self.rule.cost_matrix
        if costs is not None:
            costs = costs.tolist()
        classes = self.classes.tolist()
        dtype = self.classes.dtype
        if dtype.kind == "U":
            dtype = np.array(classes).dtype
        abstain_label = self.abstain_label
        if isinstance(abstain_label, np.generic):
            abstain_label = abstain_label.item()
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "classes": classes,
            "classes_dtype": dtype.str,
            "response": self.response,
            "calibration": calibration,
            "confidence": confidence,
            "decision": self.rule.decision,
            "cost_matrix": costs,
            "threshold": certificates.threshold_to_json(self.threshold),
            "groups": _store_part(self.groups),
            "abstain_label": abstain_label,
            "certificate": _store_part(self.certificate),
            "shortlist": _store_part(self.shortlist),
            "cascade": _store_part(self.cascade),
            **{name: getattr(self, name) for name in _FACTS},
            **self._store_abstain_answers(),
        }

    def _store_abstain_answers(self) -> dict[str, list[Any]]:
        """Return the answers that are deferred, where there are any."""
        if not self.abstain_answers:
            return {}
        return {"abstain_answers": list(self.abstain_answers)}

    def _store_confidence(self, *, allow_external: bool) -> Any:
        """Return the confidence as plain values; of a function its name."""
        confidence: Any = self.confidence
        if isinstance(confidence, LearnedScore):
            return confidence.to_dict()
        if not callable(confidence):
            return confidence
        if not allow_external and not isinstance(confidence, External):
            raise ValueError(
                "confidence: a function cannot be saved as JSON. Use a named confidence, or "
                "pass allow_external=True and pass the function again after loading."
            )
        name = getattr(confidence, "__name__", "callable")
        return f"external:{name}"

    def to_json(
        self, path: str | os.PathLike[str] | None = None, *, allow_external: bool = False
    ) -> str | None:
        """Save the policy as JSON: calibration, threshold and certificate in one file.

        The file ends with a digest of all that it holds, so that one that was changed
        afterwards is not loaded. Change the policy in Python instead, as in
        ``dataclasses.replace(policy, metadata={"ticket": 7})``, and save it again.

        Parameters
        ----------
        path : path, default=None
            Where to write. None returns the text instead.
        allow_external : bool, default=False
            Also save a policy whose confidence is your own function, or whose calibrator is
            your own object. The file holds only its name. After loading, pass the function or
            object with ``dataclasses.replace(policy, confidence=function)`` (or
            ``calibration=``); the policy decides nothing before that.

        Returns
        -------
        str or None

        Raises
        ------
        ValueError
            If the confidence is your own function or the calibrator your own object (see
            `allow_external`), or if JSON cannot hold `metadata`.
        """
        stored = self.to_dict(allow_external=allow_external)
        try:
            text = json.dumps(self.metadata, allow_nan=False)
            json.loads(text, object_pairs_hook=kernel.distinct_keys)  # 1 and "1" are one key
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"metadata must hold plain JSON values: {error}") from error
        stored["digest"] = digest_json(stored)
        text = json.dumps(stored, indent=2, allow_nan=False)
        return give_text(text, path, "\n")

    def to_python(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Save the policy as one Python file that decides with numpy alone.

        Where skselect, scikit-learn, scipy and pandas are not installed, the file makes the
        same decisions. Its functions are ``decide``, with the arguments of :meth:`decide_arrays`
        but `capacity`, ``accepts``, and ``begin`` for a cascade. For the rows of a file, use
        ``skselect apply``.

        Parameters
        ----------
        path : path, default=None
            Where to write. None returns the text instead.

        Returns
        -------
        str or None

        Raises
        ------
        ValueError
            If the policy cannot be saved as JSON (see :meth:`to_json`), or is a cascade of answers
            that come with a confidence.

        Notes
        -----
        All files hold the same code, that of the library, and differ in the policy below it; only
        the checks of what you pass use fewer words. On one
        machine with one numpy, accepted rows, answers and confidences are equal bit by bit. Another
        processor or numpy may change the last bit of exp and log, here as there; then a row
        exactly on a threshold or a step of the calibration may fall on its other side. The
        file holds all data of the policy, metadata included, as a readable literal.

        Examples
        --------
        >>> import numpy as np
        >>> from skselect import AbstentionPolicy
        >>> policy = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.8)
        >>> gate = {}
        >>> exec(policy.to_python(), gate)                  # or: from gate import decide
        >>> gate["decide"]([[.9, .1], [.4, .6]])["label"]
        array(['no', None], dtype=object)
        """
        if self.cascade is not None and isinstance(self.confidence, External):
            raise ValueError(
                "to_python: a cascade of answers that come with a confidence has no gate file; "
                "save the policy with to_json."
            )
        stored = json.loads(str(self.to_json()))
        guarantee = str(self.parts) if self.parts.made else _NO_GUARANTEE
        words = "\n\n".join([guarantee, *self._further_words()])
        return give_text(write_source(stored, words), path)

    @classmethod
    def from_json(cls, path_or_text: str | os.PathLike[str]) -> AbstentionPolicy:
        """Load a policy.

        Parameters
        ----------
        path_or_text : path or str
            A file, or the JSON text itself.

        Returns
        -------
        AbstentionPolicy

        Raises
        ------
        ValueError
            If the file is not a policy, is damaged or was changed after it was saved, has lost
            its digest, or has another format version.
        """
        stored = read_json(path_or_text, "policy file")
        return restore_stored(stored, "policy", SCHEMA, VERSION, cls._restore)

    @classmethod
    def _restore(cls, stored: dict[str, Any]) -> AbstentionPolicy:
        if stored.get("digest") != digest_json(stored):
            state = "does not match" if "digest" in stored else "is missing"
            raise ValueError(
                f"it was changed after it was saved, for its digest {state}; use the file as it "
                "was saved, or change the policy in Python with dataclasses.replace(policy, ...)"
            )
        check_keys("policy", stored, _KEYS)
        calibration = stored["calibration"]
        if calibration is not None:
            calibration = _restore_calibration(calibration)
        costs = stored["cost_matrix"]
        if costs is not None:
            costs = np.asarray(costs)
        parts: dict[str, Any] = {name: _restore_part(name, stored[name]) for name in _PARTS}
        return cls(
            classes=_check_stored_classes(stored["classes"], stored["classes_dtype"]),
            threshold=certificates.threshold_from_json(stored["threshold"]),
            confidence=_restore_confidence(stored["confidence"]),
            calibration=calibration,
            response=stored["response"],
            rule=DecisionRule(stored["decision"], costs),
            abstain_label=stored["abstain_label"],
            **parts,
            abstain_answers=stored.get("abstain_answers", ()),
            **{name: stored[name] for name in _FACTS},
        )


def _store_part(part: Any) -> dict[str, Any] | None:
    """Return a part of a policy as plain values."""
    if part is None:
        return None
    stored: dict[str, Any] = part.to_dict()
    return stored


def _restore_confidence(stored: Any) -> Any:
    """Rebuild what rates the rows: a name, a learned score, or a placeholder for a function."""
    if isinstance(stored, dict):
        return _restore_learned(stored)
    if str(stored).startswith("external:"):
        return External(str(stored).removeprefix("external:"))
    return stored


def _restore_calibration(stored: Any) -> Calibration:
    """Rebuild the maps of a calibration from plain numbers."""
    from skselect.calibration import _scopes as scopes  # noqa: PLC0415 - it needs scikit-learn

    return scopes.restore_calibration(stored)


def _restore_part(name: str, stored: Any) -> Any:
    """Rebuild a part of a policy from plain values."""
    if stored is None:
        return None
    kind = _PARTS[name]
    if isinstance(kind, str):
        kind = pkgutil.resolve_name(kind)
    return kind.from_dict(stored)


def _restore_learned(stored: dict[str, Any]) -> LearnedScore:
    """Rebuild a learned confidence from plain numbers."""
    check_keys("confidence", stored, ["kind", "intercept", "coefficients", "auxiliary"])
    check_choice("confidence: kind", stored["kind"], ["learned"])
    coefficients = stored["coefficients"]
    intercept = stored["intercept"]
    for name, value in {"intercept": intercept, **coefficients}.items():
        check_number(f"coefficient of {name!r}", value, closed="neither")
    auxiliary = {
        name: _restore_calibration(calibration) for name, calibration in stored["auxiliary"].items()
    }
    asked = set(coefficients) - set(kernel.OWN_FEATURES)
    if not coefficients or not set(auxiliary) <= asked:
        raise ValueError(
            f"confidence: {list(auxiliary)} and {list(coefficients)} do not fit together."
        )
    values = np.array(list(coefficients.values()))
    return LearnedScore(tuple(coefficients), values, float(intercept), auxiliary)


def label_decisions(policy: AbstentionPolicy, decisions: Decisions) -> LabelArray:
    """Return the predicted labels, the abstain label where a row is not accepted.

    Where there is an abstain label, False and True become 0 and 1: scikit-learn's metrics
    reject arrays that mix booleans and numbers.

    Raises
    ------
    ValueError
        If a row is not accepted and there is no abstain label.
    """
    labels = policy.classes[decisions.y_pred]
    if policy.abstain_label is None:
        n_rejected = int(np.sum(~decisions.accepted))
        if n_rejected:
            raise ValueError(
                f"{n_rejected} of {len(labels)} rows are not accepted, and this policy has no "
                "abstain_label to return for them; use decide(), whose label is missing there, "
                "or dataclasses.replace(policy, abstain_label=...)."
            )
        return labels
    # The dtype depends on the policy alone, not on whether this batch has rejected rows.
    if labels.dtype.kind in "US":
        width = max(len(policy.abstain_label), labels.dtype.itemsize // 4)
        labels = labels.astype(f"U{width}")
    elif labels.dtype.kind == "b":
        labels = labels.astype(np.int64)
    labels[~decisions.accepted] = policy.abstain_label
    return labels


def tabulate_decisions(
    policy: AbstentionPolicy, decisions: Decisions, index: Any = None
) -> pd.DataFrame:
    """Return decisions as a DataFrame."""
    labels = nullable(policy._answers(decisions))  # noqa: SLF001 - of this file
    accepted = decisions.accepted
    codes = np.where(accepted, decisions.y_pred, -1)
    suggested = np.where(np.isnan(decisions.confidence), -1, decisions.y_pred)
    columns = {
        "label": labels.take(codes, allow_fill=True),
        "suggestion": labels.take(suggested, allow_fill=True),
        "accepted": accepted,
        "confidence": decisions.confidence,
        "threshold": decisions.threshold,
    }
    if policy.shortlist is not None:
        shortlist = kernel.list_rejected(
            decisions.y_proba, accepted, policy.classes, policy.shortlist.least_proba
        )
        shortlist[accepted] = pd.NA
        columns["shortlist"] = shortlist
    columns |= policy._further_columns(decisions)  # noqa: SLF001 - of this file
    return pd.DataFrame(columns, index=index)


def decide_given(
    policy: AbstentionPolicy,
    y_proba: Any,
    y_pred: Any = None,
    subgroups: Any = None,
    auxiliary: Any = None,
    confidence: Any = None,
) -> Decisions:
    """Decide on what a user gives; nothing is compared with the rows that tuned the policy."""
    if y_proba is None and confidence is None and isinstance(policy.confidence, External):
        policy.confidence(np.empty(0))  # raises: it names what to pass
    applied = describe_policy(policy)
    kernel.refuse_ignored(applied, y_proba, y_pred, confidence, subgroups, auxiliary)
    if confidence is not None:
        return _decide_answers(policy, y_pred, confidence, subgroups)
    scores, stage = read_scores(policy, check_given(y_proba, "y_proba", "this policy"))
    answers = None
    if policy.rule.decision == "estimator":
        answers = _check_answers(policy, y_pred, len(scores))
    auxiliary_proba = None
    if applied["asks"] is not None:
        check_proba = partial(_check_proba, policy.classes)
        auxiliary_proba = kernel.read_auxiliary(
            applied, auxiliary, len(scores), check_proba, _check_column
        )
    return apply_policy(policy, scores, answers, subgroups, auxiliary_proba, stage)


def _check_column(values: Any, name: str) -> FloatArray:
    """Return the numbers of a further column that a learned confidence reads."""
    return kernel.check_numbers(as_array(values, name), name)


def limit_deferred(
    policy: AbstentionPolicy, decisions: Decisions, capacity: int | None, is_complete: Any = True
) -> Decisions:
    """Return decisions that defer at most `capacity` rows, the least sure ones; None: any number.

    Of equally sure rows the first are deferred; those that are not `is_complete` (they lack a
    number) are deferred before all others. Warn of rows where something is guaranteed.
    """
    if capacity is None:
        return decisions
    if isinstance(capacity, float) and 0.0 < capacity < 1.0:
        n_rows = len(decisions.accepted)
        raise ArgumentError(
            "capacity",
            f"capacity={capacity:g} must be a number of cases: {percent(capacity)} of these "
            f"{n_rows:,} is {math.floor(capacity * n_rows):,}.",
        )
    check_count("capacity", capacity, 0)
    accepted = decisions.accepted
    is_complete = np.broadcast_to(is_complete, len(accepted)) & ~np.isnan(decisions.confidence)
    left = max(capacity - int(np.count_nonzero(~is_complete)), 0)
    below = np.flatnonzero(~accepted & is_complete)
    order = np.argsort(decisions.confidence[below], kind="stable")
    least_sure_first = below[order]
    over_capacity = np.zeros(len(accepted), dtype=bool)
    over_capacity[least_sure_first[left:]] = True
    n_over = int(np.count_nonzero(over_capacity))
    if n_over and policy.parts.listed:
        _warn_of_capacity(policy, capacity, n_over, len(below))
    return replace(decisions, accepted=accepted | over_capacity, over_capacity=over_capacity)


def _warn_of_capacity(policy: AbstentionPolicy, capacity: int, n_over: int, n_below: int) -> None:
    """Warn that some answers are covered by no guarantee."""
    system = ""
    if any(certificate.reviewer for certificate in policy.parts.listed):
        system = ", and that of machine and reviewer together does not hold here"
    warn_user(
        f"capacity={capacity:,}: {n_over:,} of the {n_below:,} cases below the threshold are "
        f"answered all the same (over_capacity). No guarantee covers them{system}."
    )


def accept_answers(
    policy: AbstentionPolicy, confidence: Any, answers: LabelArray, subgroups: Any
) -> BoolArray:
    """Tell which answers are accepted, by their confidence; the answers may be the subgroups."""
    if policy.parts.by_answer:
        subgroups = answers
    return policy.accepts(confidence, subgroups=subgroups)


def _decide_answers(
    policy: AbstentionPolicy, y_pred: Any, confidence: Any, subgroups: Any
) -> Decisions:
    """Decide on answers that come with a confidence; they need not be among the classes."""
    stage = None
    check_same_index(y_pred=y_pred, confidence=confidence)
    if policy.cascade is not None and isinstance(policy.confidence, External):
        scores, stage = _follow(policy, policy.cascade, confidence, kernel.follow_to_end)
        confidence = scores[:, 0]
        y_pred = policy.cascade.take_answers(y_pred, stage)
    values = _read_confidence(confidence)
    answers = policy.classes[:0]
    if not _is_empty(y_pred):
        answers, unanswered, abstains = row_checks.fill_answers(
            y_pred, "y_pred", policy.abstain_answers, placeholder=policy.classes[0]
        )
        row_checks.check_length("y_pred", answers, len(values), "confidence")
        missing = (unanswered | np.isnan(values)) & ~abstains
        if missing.any():
            kernel.warn_undecided("confidence", missing)
        values = np.where(missing | abstains, np.nan, values)
    row_checks.check_length("y_pred", answers, len(values), "confidence")
    if policy.parts.by_answer:
        subgroups = answers
    threshold = _find_thresholds(policy, values, subgroups)
    return Decisions(
        y_proba=np.empty((len(values), 0)),
        y_pred=np.arange(len(values)),
        confidence=values,
        claim=values,
        accepted=values >= threshold,
        threshold=threshold,
        answers=answers,
        stage=stage,
    )


def _is_empty(y_pred: Any) -> bool:
    """Tell whether no answers are given."""
    return row_checks.label_array(y_pred, "y_pred").shape == (0,)


def _read_confidence(confidence: Any) -> FloatArray:
    """Return given confidences, checked; there may be none."""
    if as_array(confidence, "confidence").shape == (0,):
        return np.empty(0)
    return row_checks.check_rated(confidence)


def _find_thresholds(
    policy: AbstentionPolicy, confidence: FloatArray, subgroups: Any
) -> FloatArray:
    """Return the threshold of each row of checked confidences."""
    applied = describe_policy(policy)
    if policy.parts.by is None:
        kernel.refuse_subgroups(applied, subgroups)
    groups = policy.parts.encode(subgroups, len(confidence))
    return kernel.find_thresholds(applied, confidence, None, groups)


def read_scores(policy: AbstentionPolicy, y_proba: Any) -> tuple[FloatArray, IntArray | None]:
    """Return checked raw scores, and which stage of a cascade gave them.

    Scores have a column per class, or are one decision value for two classes.
    """
    if policy.cascade is not None:
        return _follow(policy, policy.cascade, y_proba, kernel.follow_to_end)
    if isinstance(y_proba, Mapping):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            "y_proba: this policy has no cascade; pass one table, not a dict."
        )
    if policy.response == "decision_function":
        values = kernel.check_decision_values(
            {"classes": policy.classes}, as_array(y_proba, "y_proba")
        )
        return values, None
    return _check_proba(policy.classes, y_proba, "y_proba"), None


def _follow(
    policy: AbstentionPolicy,
    cascade: CascadeRule,
    tables: Any,
    follow: Callable[..., tuple[FloatArray, IntArray]],
) -> tuple[FloatArray, IntArray]:
    """Return the scores of the stage at which each row is, NaN where it waits, and that stage.

    `follow` says whether rows may wait. Where answers come with a confidence, that is the one
    column of the scores.
    """
    check_same_index(y_proba=tables)
    rule = cascade.applied()
    if isinstance(policy.confidence, External):
        return follow(rule, tables, 1, _check_confidence_column)
    check_proba = partial(_check_proba, policy.classes)
    return follow(rule, tables, len(policy.classes), check_proba)


def _check_confidence_column(confidence: Any, name: str) -> FloatArray:
    """Return checked confidences as the one column of a table."""
    return row_checks.check_confidence(confidence, name)[:, np.newaxis]


def _check_proba(classes: LabelArray, table: Any, name: str) -> FloatArray:
    """Return checked probabilities, a column per class; of two the second may stand alone."""
    proba = as_array(table, name)
    columns = column_names(table)
    if proba.shape == (0,):
        proba = np.empty((0, len(classes)))
    elif columns is not None and {"suggestion", "confidence"} <= set(columns):
        raise ValueError(
            f"{name}: this is a table of decisions; pass what decide reads, such as "
            "tuner.raw_scores(X)."
        )
    elif columns is not None and proba.ndim == 2:
        proba = proba[:, row_checks.match_columns(columns, classes, name)]
    if len(classes) == 2 and (proba.ndim == 1 or proba.shape[1:] == (1,)):
        row_checks.refuse_labels(proba, name)
        row_checks.refuse_one_row_or_two(proba, name)
        second = proba.ravel().astype(np.float64)
        proba = np.column_stack([1.0 - second, second])
    if proba.ndim != 2 or proba.shape[1] != len(classes):
        raise ValueError(
            f"{name} needs a row per case with {len(classes)} numbers, one for each of the classes "
            f"{classes[:20].tolist()}, got the shape {proba.shape}; pass one case as [[...]]."
        )
    if len(proba) == 0:
        return np.empty(proba.shape)
    return row_checks.check_simplex(proba, name, missing="keep")


def _check_answers(policy: AbstentionPolicy, y_pred: Any, n: int) -> IntArray:
    """Check an estimator's own answers and return their codes."""
    answers = check_given(y_pred, "y_pred", "a policy with decision='estimator'")
    if n == 0 and _is_empty(answers):
        return np.empty(0, dtype=np.int64)
    labels = row_checks.check_labels(answers, "y_pred")
    row_checks.check_length("y_pred", labels, n, "y_proba")
    remedy = "The policy was made for these classes only."
    return row_checks.encode_known(labels, policy.classes, "y_pred", remedy)


def apply_policy(
    policy: AbstentionPolicy,
    scores: FloatArray,
    y_pred: IntArray | None = None,
    subgroups: Any = None,
    auxiliary_proba: Mapping[str, FloatArray] | None = None,
    stage: IntArray | None = None,
) -> Decisions:
    """Decide on checked raw scores: used by policies, estimators and reports alike.

    Parameters
    ----------
    policy : AbstentionPolicy
    scores : ndarray of shape (n, K), or (n,) for the decision values of two classes
    y_pred : ndarray of shape (n,), default=None
        Codes of the estimator's own answers, where the policy asks for them.
    subgroups : array-like of shape (n,) or DataFrame, default=None
    auxiliary_proba : dict of ndarray, default=None
        What a learned confidence asks beside the scores.
    stage : ndarray of shape (n,), default=None
        Which stage of a cascade gave the scores.
    """
    applied = describe_policy(policy)
    if applied["asks"] is not None:
        auxiliary_proba = kernel.check_asked(applied, auxiliary_proba, _NO_PREDICTIONS)
    kernel.refuse_subgroups(applied, subgroups)
    groups = None
    if policy.parts.are_given:
        groups = policy.parts.encode(subgroups, len(scores))
    proba, answers, confidence, threshold = kernel.decide_rows(
        applied, scores, y_pred, auxiliary_proba, groups
    )
    claim = confidence
    if not _confidence_is_claim(policy):
        claim = confidence_of_answers(proba, answers, policy.rule.claim, policy.rule)
    return Decisions(
        y_proba=proba,
        y_pred=answers,
        confidence=confidence,
        claim=claim,
        accepted=confidence >= threshold,
        threshold=threshold,
        stage=stage,
    )


def _confidence_is_claim(policy: AbstentionPolicy) -> bool:
    """Tell whether the confidence itself claims how likely an answer is right."""
    if isinstance(policy.confidence, LearnedScore):
        return True
    if policy.calibration is not None and policy.calibration.scope == "confidence":
        return True
    return policy.confidence == policy.rule.claim


def describe_policy(policy: AbstentionPolicy) -> dict[str, Any]:
    """Return a policy as :mod:`skselect._lib.decide` takes it."""
    described: dict[str, Any] = {
        "classes": policy.classes,
        "response": policy.response,
        "calibration": None,
        "decision": policy.rule.decision,
        "cost_matrix": policy.rule.cost_matrix,
        "confidence": policy.confidence,
        "asks": None,
        "threshold": policy.threshold,
        "groups": None,
        "shortlist": None,
        "cascade": None,
    }
    confidence = policy.confidence
    if isinstance(confidence, LearnedScore):
        described["asks"] = {name: name in confidence.auxiliary for name in confidence.asks}
        described["confidence"] = confidence.rate
    elif callable(confidence):
        described["confidence"] = partial(_rate_by_function, confidence)
    if policy.calibration is not None:
        described["calibration"] = policy.calibration.applied()
    if policy.groups is not None:
        described["groups"] = vars(policy.groups)
    if policy.shortlist is not None:
        described["shortlist"] = vars(policy.shortlist)
    if policy.cascade is not None:
        described["cascade"] = policy.cascade.applied()
    return described


def _rate_by_function(
    function: Callable[[FloatArray], Any], proba: FloatArray, *_: Any
) -> FloatArray:
    """Return what a user's function gives; it is not called without rows."""
    if len(proba) == 0:
        return np.empty(0)
    return confidence_of_proba(proba, function)


def count_at_quantiles(policy: AbstentionPolicy, confidence: FloatArray) -> IntArray:
    """Return how many confidences are below each stored quantile, and at most as high; (m, 2)."""
    quantiles = policy.confidence_quantiles.values()
    below = [np.sum(confidence < quantile) for quantile in quantiles]
    up_to = [np.sum(confidence <= quantile) for quantile in quantiles]
    return np.array([below, up_to], dtype=np.int64).T


def warn_of_scale(policy: AbstentionPolicy, confidence: FloatArray) -> None:
    """Warn where confidences leave [0, 1], and no stored quantile does, however few they are."""
    quantiles = policy.confidence_quantiles.values()
    if not quantiles or min(quantiles) < 0 or max(quantiles) > 1:
        return
    is_outside = (confidence < 0) | (confidence > 1)
    if not is_outside.any():
        return
    rows = row_checks.name_undecided(is_outside, "confidence")
    value = confidence[is_outside][0]
    warn_user(
        f"{rows}, with {value:g}, lie outside [0, 1], where those are that tuned this policy (by "
        "their quantiles). If they have another scale, such as per cents, divide them by 100: "
        "nothing is guaranteed about them."
    )


def warn_if_far(policy: AbstentionPolicy, counts: IntArray, n: int, name: str = "y_proba") -> None:
    """Warn where many rows have other confidences than the rows that tuned the policy."""
    difference = describe_far(policy, counts, n, name)
    if difference:
        warn_user(f"{name}: {difference}.")


def describe_far(policy: AbstentionPolicy, counts: IntArray | FloatArray, n: int, name: str) -> str:
    """Say where many rows have other confidences than those that tuned the policy, "" if not.

    Two samples of one population are a random deal of their rows, so that the share of one below
    an order statistic of the other obeys Hoeffding's bound for draws without replacement
    (Serfling 1974), whatever the distribution; 1 / policy.n is for the interpolation of quantiles.
    With ties it only gets rarer.
    """
    levels = np.array([float(name) for name in policy.confidence_quantiles])
    if n < _LARGE or not policy.n or len(levels) == 0:
        return ""
    below, up_to = counts.T / n
    off = np.maximum(below - levels, levels - up_to)
    spread = (1 / policy.n + 1 / n) * (1 + 1 / n)
    by_chance = np.sqrt(np.log(2 * len(levels) / _CHANCE) / 2 * spread) + 1 / policy.n
    worst = int(np.argmax(off))
    if off[worst] <= max(_FAR, by_chance):
        return ""
    quantiles = list(policy.confidence_quantiles.values())
    changed = (
        "the probabilities are calibrated already (the policy reads the classifier's own output, "
        "raw_scores(X))"
    )
    if name == "confidence":
        changed = "the confidence is computed in another way"
    return (
        f"{below[worst]:.1%} of these {n:,} rows have a confidence below "
        f"{quantiles[worst]:.4g}, but "
        f"about {levels[worst]:.0%} of the rows that tuned this policy do; either {changed}, or "
        "these rows trained the classifier, or they are cases of another kind, about which the "
        "policy guarantees nothing"
    )


class External:
    """Placeholder for a function, or a column, of which the JSON file holds only the name."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, _: FloatArray) -> FloatArray:
        """Refuse to compute, and say what to do instead."""
        raise ValueError(
            f"confidence: this policy uses your function or column {self.__name__!r}, which its "
            "file only names. If you have the answers and confidences, call "
            "policy.decide(y_pred=answers, confidence=...); pass a function with "
            "dataclasses.replace(policy, confidence=function)."
        )


def nullable(labels: LabelArray) -> Any:
    """Return labels as a pandas array whose dtype has room for NA."""
    kinds = {"b": "boolean", "U": "string", "i": "Int64", "u": "UInt64", "f": "Float64"}
    dtype: Any = kinds[labels.dtype.kind]
    return pd.array(labels, dtype=dtype)


def find_index(table: Any, n: int) -> pd.Index:
    """Return the index of a pandas object, else 0..n-1."""
    index = getattr(table, "index", None)
    if isinstance(index, pd.Index):
        return index
    return pd.RangeIndex(n)


def _check_index(index: Any, n: int) -> pd.Index:
    """Return an index for `n` rows; refuse one of another length."""
    rows = index if isinstance(index, pd.Index) else row_checks.label_array(index, "index")
    if rows.shape != (n,):
        raise ValueError(
            f"index must have one entry for each of the {n} rows of y_proba, such as X_new.index, "
            f"got {shown(index)}."
        )
    if isinstance(rows, pd.Index):
        return rows
    return pd.Index(index)


def _check_stored_classes(classes: Any, dtype: str) -> LabelArray:
    """Return class labels in their dtype; refuse a dtype that changes them."""
    wanted = np.dtype(dtype)
    labels = np.asarray(classes)
    if wanted.kind == "u" and all(type(label) is int and label >= 0 for label in classes):
        labels = np.array(classes, dtype=np.uint64)  # numpy makes floats of 0 beside 2**63
    if wanted.kind not in "biufU" or wanted.itemsize > labels.itemsize:
        raise ValueError(f"classes_dtype: {dtype!r} is not what these classes need.")
    # 1e308 becomes an arbitrary integer, which is refused below.
    with np.errstate(invalid="ignore"):
        labels = labels.astype(wanted)
    if labels.tolist() != list(classes):
        raise ValueError(f"classes_dtype: {dtype!r} cannot hold the classes {classes[:10]!r}.")
    return labels


def _check_abstain_answers(answers: Any, classes: LabelArray) -> tuple[Any, ...]:
    """Return the answers by which a model abstains, as plain values; they are no classes."""
    if not isinstance(answers, list | tuple):
        raise ArgumentError(
            "abstain_answers",
            f"abstain_answers must be a list, such as ['unsure'], got {shown(answers)}.",
        )
    plain = tuple(kernel.check_subgroup(answer) for answer in answers)
    clashes = [answer for answer in plain if answer in classes.tolist()]
    if clashes:
        raise ArgumentError(
            "abstain_answers",
            f"abstain_answers: {clashes[0]!r} is one of the classes {classes[:10].tolist()}.",
        )
    return plain


def _check_facts(policy: Any) -> None:
    """Check what a policy records about the rows that tuned it, and when."""
    for name in ("confidence_quantiles", "metadata", "fingerprints"):
        value = getattr(policy, name)
        if not isinstance(value, Mapping):
            raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                f"{name} must be a mapping, got {shown(value)}."
            )
    if policy.coverage is not None:
        check_number("coverage", policy.coverage, 0.0, 1.0)
    if policy.n is not None:
        check_count("n", policy.n)
    for name, value in policy.confidence_quantiles.items():
        check_number(f"confidence_quantiles[{name!r}]", value, closed="neither")
        if not re.fullmatch(r"0?\.\d+", str(name)):
            raise ValueError(f"confidence_quantiles: {name!r} is no level such as '0.5'.")
    certificates.check_made(policy.created, policy.fingerprints)
