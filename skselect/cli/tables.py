"""What the columns of a table mean: as it is said, as the policy stores it, or by their names."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray, look_up_codes
from skselect._lib.checks import rows as row_checks, shown, warn_user
from skselect._lib.decide import RANGE_TOLERANCE, SUM_TOLERANCE
from skselect._lib.notebook import count
from skselect.cli.cells import (
    is_empty,
    is_missing,
    is_text,
    look_up,
    means_missing,
    plain,
    read_words,
    text_to_numbers,
    value_type,
)
from skselect.cli.faults import naming_all
from skselect.cli.options import TableOptions
from skselect.cli.table_files import TableFile
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.predictions import VERDICT_WORDS, VERDICTS, Predictions, read_verdicts

#: What else may be done about labels that are missing.
_UNJUDGED = " (skselect tune --unjudged wrong counts such rows as errors until they are judged)"
_ONE_FOR_EACH = "; name one column for each class, in the order of --classes"
#: The entry of a policy's metadata that names the columns it was tuned on.
COLUMNS = "skselect_columns"
#: Commands that read the answers of a cut-off of the model's own beside its probabilities.
_READS_BOTH = ("evaluate", "report")


@dataclass(frozen=True)
class Table:
    """An open table, and which of its columns mean what.

    Parameters
    ----------
    file : TableFile
    classes : ndarray of shape (K,)
    label : str or None
        The true label, or the verdict; None where there is none yet.
    is_judged : bool
        Whether the label is a verdict on the answer: right or wrong.
    proba : tuple of str
        One column per class, in the order of the classes.
    answer, confidence : str or None
        Instead of probabilities.
    subgroups : tuple of str
    reviewer : str or None
        What a reviewer answers.
    audit_proba : str or None
        The probability with which a case was drawn for a verdict.
    keeps_unjudged : bool
        Whether rows without a label or verdict count as errors.
    verdict_words : dict or None
        The words of verdicts that the user names: 0 for right, 1 for wrong.
    """

    file: TableFile
    classes: LabelArray
    label: str | None = None
    is_judged: bool = False
    proba: tuple[str, ...] = ()
    answer: str | None = None
    confidence: str | None = None
    subgroups: tuple[str, ...] = ()
    reviewer: str | None = None
    audit_proba: str | None = None
    keeps_unjudged: bool = False
    verdict_words: Mapping[str, int] | None = None

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.file.name

    @property
    def used(self) -> list[str]:
        """All columns that mean something, each once."""
        single = [self.label, self.answer, self.confidence, self.reviewer, self.audit_proba]
        columns = [*filter(None, single), *self.proba, *self.subgroups]
        return list(dict.fromkeys(columns))

    @property
    def stored(self) -> dict[str, Any]:
        """The columns as a policy stores them."""
        subgroups = list(self.subgroups)
        if self.proba:
            return {"proba": list(self.proba), "subgroups": subgroups}
        return {
            "answer": self.answer,
            "confidence_column": self.confidence,
            "subgroups": subgroups,
        }

    # Classes

    def codes(self, column: pd.Series) -> IntArray:
        """Return the class of each cell, -1 where it is missing, -2 where it is no class."""
        if self._is_free_text(column):  # each answer is predicted to be right
            return -is_empty(column).astype(np.int64)
        self._tell_words(column)
        positions, cells = pd.factorize(column)
        if self._is_verdict(column):
            if self.verdict_words is None:
                return read_verdicts([*cells, ""])[positions]
            return look_up_codes(read_words(cells, self.verdict_words), positions, missing=-1)
        classes = self.classes.tolist()
        codes = look_up(cells, classes, self.file.layout.decimal)
        return look_up_codes(codes, positions, missing=-1)

    def known_codes(self, column: pd.Series) -> IntArray:
        """Return the class of each cell, -1 where it is missing; refuse what is no class."""
        codes = self.codes(column)
        is_unknown = codes < -1
        if is_unknown.any():
            wanted = (
                f"one of the classes {self.classes[:10].tolist()} (capitals and blanks count; "
                "--classes, if given, names every class)"
            )
            if self._is_verdict(column):
                wanted = f"{VERDICT_WORDS}; --right and --wrong name other words"
            if self._is_verdict(column) and self.verdict_words is not None:
                wanted = f"one of {list(self.verdict_words)}, the words of --right and --wrong"
            raise self.file.error(column, is_unknown.argmax(), wanted)
        return codes

    def all_codes(self, column: pd.Series) -> IntArray:
        """Return the class of each cell; refuse cells that are missing, or are no class."""
        codes = self.known_codes(column)
        self.file.refuse_missing(column, codes < 0)
        return codes

    def answered(self, rows: pd.DataFrame) -> BoolArray:
        """Tell which rows hold an answer; probabilities always give one."""
        if self.answer is None:
            return np.full(len(rows), True)
        answers = rows[self.answer]
        if self._is_free_text(answers) or self._has_text_classes():
            return ~is_empty(answers)
        return ~is_missing(answers)

    def _take_answered(self, rows: pd.DataFrame, *, defers: bool) -> pd.DataFrame:
        """Return the rows that hold an answer, or all if the others are deferred; say how many."""
        is_answered = self.answered(rows)
        if not is_answered.any():
            raise ValueError(f"{self.name}: column {self.answer!r} holds no answer.")
        lacking = f"an answer (column {self.answer!r} is empty)"
        return self._take(rows, is_answered, lacking, defers=defers)

    def _take_rated(self, rows: pd.DataFrame, *, defers: bool) -> pd.DataFrame:
        """Return the rows that hold all numbers, or all if the others are deferred; say how many.

        Nothing is asked of rows without an answer or a verdict.
        """
        counts = self._counts(rows)
        is_rated = ~(counts & self._lacks_number(rows))
        columns = self._number_columns
        if counts.any() and not (counts & is_rated).any():
            raise ValueError(f"{self.name}: no row holds numbers in the columns {columns}.")
        named = f"column {columns[0]!r}" if len(columns) == 1 else f"columns {columns}"
        return self._take(rows, is_rated, f"a number ({named})", defers=defers)

    def _take(
        self, rows: pd.DataFrame, is_whole: BoolArray, lacking: str, *, defers: bool
    ) -> pd.DataFrame:
        """Return the whole rows, or all rows if the others are deferred; say what they lack."""
        n_others = len(rows) - int(is_whole.sum())
        if n_others == 0:
            return rows
        others = f"{count(n_others, 'row')} without {lacking}"
        if defers:
            counted = "counts" if n_others == 1 else "count"
            warn_user(f"{self.name}: {others} {counted} as deferred at every threshold.")
            return rows
        are = "is" if n_others == 1 else "are"
        them = "it" if n_others == 1 else "them"
        warn_user(
            f"{self.name}: {others} {are} left out: skselect apply defers {them}, and all shares "
            "are of the others."
        )
        return rows[is_whole]

    def _counts(self, rows: pd.DataFrame) -> BoolArray:
        """Tell which rows hold an answer and, where rows are judged, a verdict."""
        counts = self.answered(rows)
        if self.is_judged and not self.keeps_unjudged:
            counts = counts & (self.codes(rows[str(self.label)]) != -1)
        return counts

    @property
    def _number_columns(self) -> list[str]:
        """The columns of probabilities, or that of the confidence."""
        return list(self.proba) or [str(self.confidence)]

    def _lacks_number(self, rows: pd.DataFrame) -> BoolArray:
        """Tell which rows lack a probability, or the confidence."""
        lacks: BoolArray = np.any([is_missing(rows[name]) for name in self._number_columns], axis=0)
        return lacks

    def _tell_unjudged(self, rows: pd.DataFrame) -> None:
        """Say how many rows are left out because nobody has judged them."""
        if not self.is_judged or self.keeps_unjudged:
            return
        n_unjudged = int(np.sum(self.codes(rows[str(self.label)]) == -1))
        if n_unjudged:
            are = "is" if n_unjudged == 1 else "are"
            warn_user(
                f"{self.name}: {count(n_unjudged, 'row')} without a verdict {are} left out. With "
                "--unjudged wrong they count as errors until they are judged, and --next names "
                "those to judge."
            )

    def _tell_words(self, column: pd.Series) -> None:
        """Say how many labels are words that mean missing: in numbers and verdicts alone."""
        if self._is_verdict(column) or not self._has_text_classes():
            self.file.tell_words(column)

    def _has_text_classes(self) -> bool:
        return self.classes.dtype.kind == "U"

    def _is_free_text(self, column: pd.Series) -> bool:
        """Tell whether a column holds answers that are judged, which may be any text."""
        return self.is_judged and column.name == self.answer

    def _is_verdict(self, column: pd.Series) -> bool:
        """Tell whether a column says which answers are right."""
        return self.is_judged and column.name == self.label

    # Probabilities and confidences

    def numbers(self, rows: pd.DataFrame) -> tuple[FloatArray, BoolArray]:
        """Return the probabilities, or the confidence in one column, and which rows have all."""
        names = self._number_columns
        for name in names:
            self.file.tell_words(rows[name])
        is_complete = ~self._lacks_number(rows)
        whole_rows = rows.loc[is_complete, names]  # nothing else in the other rows counts
        known_numbers = self._complete_numbers(whole_rows)
        numbers = np.full((len(rows), len(names)), np.nan, known_numbers.dtype)
        numbers[is_complete] = known_numbers
        return numbers, is_complete

    def _complete_numbers(self, rows: pd.DataFrame) -> FloatArray:
        """Return rows of checked probabilities, or of confidences; none of them is missing."""
        numbers = self.file.complete_numbers(rows)
        if not self.proba:
            return numbers
        self._check_range(numbers, rows.index)
        if len(self.proba) == 1:
            return numbers
        return self._check_sums(numbers, rows.index)

    def _check_range(self, proba: FloatArray, index: pd.Index) -> None:
        """Refuse probabilities outside [0, 1]."""
        is_outside = (proba < -RANGE_TOLERANCE) | (proba > 1 + RANGE_TOLERANCE)
        if is_outside.any():
            position, column = np.argwhere(is_outside)[0].tolist()
            row = index[position] + 1
            value = proba[position, column]
            advice = ""
            if 2 < proba.max() <= 100 and proba.min() >= 0:
                advice = " Divide percentages by 100."
            raise ValueError(
                f"{self.name}: column {self.proba[column]!r} must hold probabilities from 0 to 1, "
                f"but row {row} holds {value:g}.{advice}"
            )

    def _check_sums(self, proba: FloatArray, index: pd.Index) -> FloatArray:
        """Refuse rows that do not sum to one; divide those by their sum that are only rounded."""
        sums = row_checks.row_sums(proba)
        sums[~proba.any(axis=1)] = 1.0  # a row of zeros says: none of the classes
        gap = np.abs(sums - 1.0)
        is_off = gap > SUM_TOLERANCE
        if not is_off.any():
            return proba
        is_wrong = gap > max(SUM_TOLERANCE, _rounding_of_sums(proba))
        if is_wrong.any():
            position = int(is_wrong.argmax())
            row = index[position] + 1
            raise ValueError(
                f"{self.name}: the probabilities in the columns {list(self.proba)} must sum to "
                f"one, but in row {row} they sum to {sums[position]:g}. "
                "Name the column of every class with --proba, or divide each row by its sum."
            )
        warn_user(
            f"{self.name}: in {count(int(is_off.sum()), 'row')} the rounded probabilities do not "
            "sum to one; they are divided by their sum."
        )
        sums[~is_off] = 1.0
        return proba / sums[:, None].astype(proba.dtype)

    # Predictions

    def predictions(self, *, defers: bool = False) -> tuple[Predictions, pd.DataFrame]:
        """Return all predictions, and the subgroups; those in a CSV file are numbers if all are.

        Rows without an answer are left out, and those without a number are refused, unless
        `defers`: then no threshold accepts either. A pool leaves out both.
        """
        read_group = _typed if self.file.is_text else plain
        may_lack = defers
        defers = defers and not self.keeps_unjudged
        rows = self._take_answered(self.file.rows(self.used), defers=defers)
        if may_lack:
            rows = self._take_rated(rows, defers=defers)
            self._tell_unjudged(rows)
        with naming_all(lambda: self._reads(rows, defers=defers)):
            if not defers:
                self._refuse_unrated(rows)
            if self.is_judged:
                predictions, groups = self._verdicts(rows)
            else:
                predictions, groups = self._labelled(rows)
        return predictions, groups.apply(read_group)

    def _refuse_unrated(self, rows: pd.DataFrame) -> None:
        """Refuse rows that lack a number."""
        counted = rows[self._counts(rows)]
        for name in self._number_columns:
            self.file.refuse_missing(counted[name], is_missing(counted[name]))

    def _reads(self, rows: pd.DataFrame, *, defers: bool) -> list[Callable[[], object]]:
        """Return what reads rows that tune or test, column by column."""
        labels = rows[str(self.label)]
        codes = self.codes(labels)
        reads: list[Callable[[], object]] = [partial(self.known_codes, labels)]
        counted = rows[self._counts(rows)]
        if not self.is_judged:
            if self.reviewer is not None:
                reads.append(partial(self.all_codes, rows[self.reviewer]))
            if self.answer is not None:
                reads.append(partial(self.all_codes, counted[self.answer]))
        if not (self.is_judged or self.keeps_unjudged):
            reads.append(partial(self.file.refuse_missing, labels, codes == -1, _UNJUDGED))
        names = [*self.proba, *filter(None, [self.confidence, self.audit_proba])]
        if defers:
            counted = counted[~self._lacks_number(counted)]
        reads += _reads_of_numbers(self.file, counted[names])
        if self.proba:
            reads.append(partial(self._complete_numbers, counted[list(self.proba)]))
        return reads

    def _labelled(self, rows: pd.DataFrame) -> tuple[Predictions, pd.DataFrame]:
        """Return rows with labels and the subgroups."""
        labels = rows[str(self.label)]
        truth = self.known_codes(labels)
        unjudged = None
        if self.keeps_unjudged:
            unjudged = truth < 0
        else:
            self.file.refuse_missing(labels, truth < 0, _UNJUDGED)
        predictions = self._predict(rows, np.maximum(truth, 0))
        reviewer = None
        if self.reviewer is not None:
            reviewer = self.all_codes(rows[self.reviewer])
        predictions = replace(
            predictions, y_true=truth, classes=self.classes, reviewer=reviewer, unjudged=unjudged
        )
        return predictions, rows[list(self.subgroups)]

    def _predict(self, rows: pd.DataFrame, truth: IntArray) -> Predictions:
        """Return what the model says of rows with known codes of their classes."""
        codes = np.arange(len(self.classes))
        if not self.proba:
            is_answered = self.answered(rows)
            answer = np.zeros(len(rows), dtype=np.int64)
            answer[is_answered] = self.all_codes(rows.loc[is_answered, str(self.answer)])
            confidence = self._rate(rows, is_answered)
            with _without_second_note():
                return Predictions.from_labels(truth, answer, confidence, labels=codes)
        proba, _ = self.numbers(rows)
        if proba.shape[1] == 1:  # of the second of two classes
            of_first = 1.0 - proba.astype(np.float64)
            proba = np.column_stack([of_first, proba])
        with _without_second_note():
            if self.answer is None:
                return Predictions.from_proba(truth, proba, labels=codes)
            answer = self.all_codes(rows[self.answer])
            return Predictions.from_proba(
                truth, proba, labels=codes, decision="estimator", y_pred=answer
            )

    def _rate(self, rows: pd.DataFrame, is_answered: BoolArray) -> FloatArray:
        """Return the confidence of each answer, nan where it is missing and of the other rows."""
        confidence = np.full(len(rows), np.nan)
        numbers, _ = self.numbers(rows[is_answered])
        confidence[is_answered] = numbers[:, 0]
        return confidence

    def _verdicts(self, rows: pd.DataFrame) -> tuple[Predictions, pd.DataFrame]:
        """Read verdicts with the confidences of all rows, and the subgroups of those that count."""
        truth = self.known_codes(rows[str(self.label)])
        is_judged = truth >= 0
        counts = is_judged | self.keeps_unjudged
        if not counts.any():
            raise ValueError(f"{self.name}: column {self.label!r} holds no verdict{_UNJUDGED}.")
        audit_proba = None
        if self.audit_proba is not None:
            self.file.complete_numbers(rows.loc[counts, [self.audit_proba]])  # none is missing
            audit_proba = self.file.numbers(rows[self.audit_proba])
        confidence = self._rate(rows, counts & self.answered(rows))
        if not self.keeps_unjudged:  # whether judged rows are like the others is tested
            others = self.file.numbers(rows[str(self.confidence)])
            confidence = np.where(counts, confidence, others)
        with _without_second_note():
            predictions = Predictions.from_verdicts(
                np.where(is_judged, VERDICTS[truth], ""),
                confidence,
                audit_proba=audit_proba,
                unjudged="wrong" if self.keeps_unjudged else "drop",
            )
        return predictions, rows.loc[counts, list(self.subgroups)]


@contextmanager
def _without_second_note() -> Iterator[None]:
    """Drop the library's note about rows without a number: the table's own counts from 1."""
    with warnings.catch_warnings():
        note = r"(confidence|y_proba): .* rows \(the first is row"
        warnings.filterwarnings("ignore", message=note)
        yield


def _reads_of_numbers(file: TableFile, columns: pd.DataFrame) -> list[Callable[[], object]]:
    """Return what reads columns of numbers: none may be missing, or something else."""
    reads: list[Callable[[], object]] = []
    for name in columns:
        column = columns[name]
        reads.append(partial(file.numbers, column))
        reads.append(partial(file.refuse_missing, column, is_missing(column)))
    return reads


def _rounding_of_sums(proba: FloatArray) -> float:
    """Return how far sums of probabilities may be from one, by the decimals that they have.

    With d decimals each of K probabilities is off by half of the last one at most. A single decimal
    says too little: .9 and .2 are no rounded probabilities of one row.
    """
    n_classes = proba.shape[1]
    for n_decimals in range(2, 7):
        scaled = proba.astype(np.float64) * 10.0**n_decimals
        if np.all(np.abs(scaled - np.rint(scaled)) < 1e-4):
            return (n_classes / 2 + 1e-3) * 10.0**-n_decimals
    return 0.0


def _typed(column: pd.Series) -> pd.Series:
    """Return subgroups of a CSV file as numbers if all of them are numbers."""
    positions, cells = pd.factorize(column.mask(column == ""))
    typed = text_to_numbers(cells.to_numpy(dtype=str))
    kind = "Int64" if typed.dtype.kind == "i" else None  # integers that may be missing
    values = pd.Series(typed, dtype=kind)
    return values.reindex(positions).set_axis(column.index)


# Which column means what: as it is said, as the policy stores it, or by the names of the classes --


@dataclass(frozen=True)
class _Roles:
    """The columns that the command line or the policy names."""

    label: str | None
    verdict: str | None
    answer: str | None
    confidence: str | None
    reviewer: str | None
    audit_proba: str | None
    proba: tuple[str, ...]
    subgroups: tuple[str, ...]

    @property
    def single(self) -> list[str]:
        """The columns that have one meaning each, but for probabilities."""
        columns = (self.label, self.verdict, self.answer, self.confidence, self.reviewer)
        return [name for name in columns if name is not None]


def open_table(path: Path, options: TableOptions, policy: AbstentionPolicy | None = None) -> Table:
    """Open a table; find out which of its columns mean what, and the classes."""
    file = TableFile.open(path, options.layout)
    stored = {} if policy is None else _stored_columns(policy)
    roles = _find_roles(options, stored)
    _refuse_roles_apart(roles, reads_both=policy is None and options.command in _READS_BOTH)
    if policy is not None:
        _refuse_what_it_cannot_read(policy, roles.answer is not None, options.command)
    with naming_all(lambda: _reads_of_present(file, roles, options)):
        _check_types(file, roles, options.id)
    classes = _classes_of(file, roles, options, policy)
    proba = roles.proba
    if not proba and roles.answer is None:
        proba = _name_columns(file, classes)
    return Table(
        file,
        classes,
        label=roles.label or roles.verdict,
        is_judged=roles.verdict is not None,
        proba=_order(proba, options.classes, classes, stored),
        answer=roles.answer,
        confidence=roles.confidence,
        subgroups=roles.subgroups,
        reviewer=roles.reviewer,
        audit_proba=roles.audit_proba,
        keeps_unjudged=options.unjudged is not None,
        verdict_words=_name_verdicts(options),
    )


def _name_verdicts(options: TableOptions) -> dict[str, int] | None:
    """Return the words of verdicts that the command line names: 0 for right, 1 for wrong."""
    if options.right is None and options.wrong is None:
        return None
    if options.right is None or options.wrong is None or options.verdict is None:
        raise ValueError("--right and --wrong go together, and with --verdict.")
    words = {word.strip().casefold(): 0 for word in options.right}
    for word in options.wrong:
        if words.setdefault(word.strip().casefold(), 1) == 0:
            raise ValueError(f"--wrong: {word!r} is a word of --right, too.")
    return words


def _stored_columns(policy: AbstentionPolicy) -> dict[str, Any]:
    """Return the columns that the policy was tuned on; refuse what `tune` does not store."""
    stored = policy.metadata.get(COLUMNS, {})
    if not _fits(stored):
        raise ValueError(
            f"--policy: its metadata {COLUMNS!r} must map 'answer' and 'confidence_column' to a "
            "column, 'proba' and 'subgroups' to a list of columns, as skselect tune stores them, "
            f"got {shown(stored)}."
        )
    return dict(stored)


def _fits(stored: Any) -> bool:
    """Tell whether the metadata of a policy name columns as `tune` does."""
    if not isinstance(stored, dict):
        return False
    for role, columns in stored.items():
        if role not in ("proba", "subgroups"):
            if not isinstance(columns, str | None):
                return False
        elif not (isinstance(columns, list) and all(isinstance(name, str) for name in columns)):
            return False
    return True


def _find_roles(options: TableOptions, stored: dict[str, Any]) -> _Roles:
    """Return the columns that the command line names, else those that the policy stores."""
    answer = options.answer
    confidence = options.confidence_column
    proba = options.proba
    # Columns of probabilities replace a stored answer with its confidence, and vice versa.
    if not (options.answer or options.confidence_column):
        proba = proba or stored.get("proba")
    if not options.proba:
        answer = answer or stored.get("answer")
        confidence = confidence or stored.get("confidence_column")
    return _Roles(
        label=options.label,
        verdict=options.verdict,
        answer=answer,
        confidence=confidence,
        reviewer=options.reviewer,
        audit_proba=options.audit_proba,
        proba=tuple(proba or ()),
        subgroups=tuple(options.subgroups or stored.get("subgroups") or ()),
    )


def _refuse_roles_apart(roles: _Roles, *, reads_both: bool) -> None:
    """Refuse columns that do not go together; `reads_both` takes answers beside probabilities."""
    if roles.verdict and (roles.answer is None or roles.reviewer is not None):
        raise ValueError(
            "--verdict goes with --answer and --confidence-column, and without --reviewer (name "
            "--deferred-error): it does not say what the right answer is."
        )
    has_cut_off = bool(roles.proba) and roles.answer is not None and roles.confidence is None
    if has_cut_off and not (reads_both and roles.verdict is None):
        raise ValueError(
            "--answer beside --proba: evaluate and report read both, with --label and without "
            "--policy. Name either --proba columns, or --answer and --confidence-column."
        )
    if (roles.answer is None) != (roles.confidence is None) and not has_cut_off:
        raise ValueError("--answer and --confidence-column go together: name both columns.")
    if roles.proba and roles.confidence is not None:
        raise ValueError("Name either --proba columns, or --answer and --confidence-column.")
    names = [*roles.single, *roles.proba]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"Columns {repeated} are named twice; label, answer, confidence, probabilities and "
            "reviewer are columns of their own."
        )


def _reads_of_present(
    file: TableFile, roles: _Roles, options: TableOptions
) -> list[Callable[[], object]]:
    """Return what reads the columns of numbers that a table has."""
    if options.command in ("apply", "monitor"):  # they defer rows that lack a number
        return []
    names = [*roles.proba, *filter(None, [roles.confidence, roles.audit_proba])]
    return _reads_of_numbers(file, file.rows(name for name in names if name in file.types))


def _check_types(file: TableFile, roles: _Roles, id_column: str | None) -> None:
    """Refuse columns that are missing, or whose values are of no type that a role has."""
    optional = filter(None, [roles.audit_proba, id_column])
    names = [*roles.single, *optional, *roles.proba, *roles.subgroups]
    row_checks.check_columns(names, list(file.types), file.name)
    for name in names:
        kind = value_type(file.types[name])
        is_odd = pa.types.is_temporal(kind) or "binary" in str(kind)
        if pa.types.is_nested(kind) or (name == roles.answer and is_odd):
            raise ValueError(
                f"{file.name}: column {name!r} holds values of the type {kind}; name a column "
                "of numbers, text or booleans."
            )


def _classes_of(
    file: TableFile, roles: _Roles, options: TableOptions, policy: AbstentionPolicy | None
) -> LabelArray:
    """Return the classes: those of the policy, of verdicts, of --classes, or those that occur."""
    is_judged = roles.verdict is not None
    if policy is not None:
        classes = policy.classes.tolist()
        if is_judged and classes != VERDICTS.tolist():
            raise ValueError(
                f"--verdict: the policy was tuned on labels, {classes[:10]}; name "
                "the column of the true label, --label."
            )
        return policy.classes
    if is_judged:
        return VERDICTS
    label = str(roles.label)
    if options.classes:
        listed = np.array(options.classes)
        kind = value_type(file.types[label])
        if file.is_text or not is_text(kind):
            listed = text_to_numbers(listed)
        return row_checks.check_classes(listed, "--classes")
    columns = [label, *filter(None, [roles.answer])]
    return _find_classes(file, columns)


def _refuse_what_it_cannot_read(policy: AbstentionPolicy, by_answer: bool, command: str) -> None:
    """Refuse numbers of the table that are not those which the policy compares."""
    learned = None
    if isinstance(policy.confidence, LearnedScore):
        learned = policy.confidence
    if by_answer and policy.calibration is not None and learned is None:
        raise ValueError(
            "--policy: its threshold is about a calibrated confidence, which it computes from "
            "probabilities; name their columns, --proba."
        )
    asks = ""
    if policy.cascade is not None and command != "apply":
        stages = list(policy.cascade.names)
        asks = f"it asks the stages {stages} in turn. Decide with skselect apply"
    if learned is not None and learned.asks:
        asks = f"its learned confidence also asks {list(learned.asks)}. Call policy.decide"
    if asks and not by_answer:
        raise ValueError(
            f"--policy: {asks}, and name the columns of what it says: --answer suggestion "
            "--confidence-column confidence."
        )


def _find_classes(file: TableFile, names: Sequence[str]) -> LabelArray:
    """Return the classes that occur in the columns of labels and answers, sorted.

    A column of a CSV file holds numbers if all its cells are numbers, or words that mean missing.
    """
    rows = file.rows(names)
    columns = [_find_labels(file, rows[name]) for name in names]
    if all(len(labels) == 0 for labels in columns):
        raise ValueError(f"--classes is missing: column {names[0]!r} holds no label yet.")
    label_kind, *other_kinds = (labels.dtype.kind for labels in columns if len(labels))
    is_text = label_kind == "U"
    if any((kind == "U") != is_text for kind in other_kinds):
        if not file.is_text:
            raise ValueError(
                f"columns {names[0]!r} and {names[1]!r}: one holds text and the other does not; "
                "write labels and answers alike."
            )
        columns = [_find_labels(file, rows[name], as_text=True) for name in names]
    _check_spellings(names, columns)
    classes = np.unique(np.concatenate(columns))
    if len(names) == len(classes) == 1:
        raise ValueError(
            f"column {names[0]!r} holds the class {classes.tolist()[0]!r} only; name all classes, "
            "in the order of --proba: --classes ..."
        )
    return classes


def _check_spellings(names: Sequence[str], columns: Sequence[LabelArray]) -> None:
    """Refuse labels and answers of two vocabularies, and warn of classes that are nearly alike."""
    remedy = "say --classes with all classes"
    label_name, *answer_names = (f"column {name!r}" for name in names)
    labels, *answers = columns
    if not answers:
        row_checks.warn_of_spellings(labels, label_name, remedy)
        return
    row_checks.check_vocabulary(labels, answers[0], label_name, answer_names[0], remedy)


def _find_labels(file: TableFile, column: pd.Series, *, as_text: bool = False) -> LabelArray:
    """Return the labels that occur in a column; in a CSV file as numbers if all are numbers."""
    present = column[~is_empty(column)].unique().tolist()
    if not present:
        return np.array([], dtype="U1")
    labels = row_checks.check_labels(present, f"column {column.name!r}")
    if not file.is_text or as_text:
        return labels
    without_words = np.array([label for label in present if not means_missing(label)])
    numbers = text_to_numbers(without_words)
    return labels if numbers.dtype.kind == "U" else numbers


def _name_columns(file: TableFile, classes: LabelArray) -> tuple[str, ...]:
    """Return the columns that are named like the classes."""
    names = tuple(map(str, classes.tolist()))
    missing = [name for name in names if name not in file.types]
    if missing:
        raise ValueError(
            f"{file.name} has no columns {missing}, one for each class. Name the columns of "
            "the probabilities: --proba p_no p_yes --classes no yes; or those of an answer and its "
            f"confidence: --answer ... --confidence-column .... Its columns: "
            f"{list(file.types)[:20]}."
        )
    return names


def _order(
    proba: tuple[str, ...],
    listed: Sequence[str] | None,
    classes: LabelArray,
    stored: dict[str, Any],
) -> tuple[str, ...]:
    """Return the columns of the probabilities in the order of the classes.

    The order is that of --classes, or that of the policy, or follows from names: those of the
    classes, or that begin or end with one. Otherwise the columns are taken to be in the order of
    the classes. A note says which column is taken for which class.
    """
    names = [str(label) for label in classes.tolist()]
    if listed is not None and sorted(listed) != sorted(names):
        raise ValueError(
            f"--classes must name the classes {names}, in the order of --proba, got {listed}."
        )
    if not proba:
        return ()
    of_policy = stored.get("proba", [])
    are_stored = sorted(proba) == sorted(of_policy)
    if are_stored and listed is None:
        return tuple(of_policy)
    if listed is None and set(proba) == set(names):
        return tuple(names)
    ordered = _follow_classes(proba, listed, classes)
    if are_stored and list(ordered) != of_policy:
        raise ValueError(
            f"--classes: the policy was tuned with the columns {of_policy} for the classes "
            f"{classes.tolist()}, in this order."
        )
    if listed is None and ordered != (names[-1],):
        pairs = zip(ordered, names[-len(ordered) :], strict=True)
        meaning = ", ".join(f"{column} for {name!r}" for column, name in pairs)
        warn_user(f"probabilities: {meaning} (use --classes to change this)")
    return ordered


def _follow_classes(
    proba: tuple[str, ...], listed: Sequence[str] | None, classes: LabelArray
) -> tuple[str, ...]:
    """Return the columns in the order of the classes if they are given in that of --classes."""
    names = [str(label) for label in classes.tolist()]
    if len(proba) == 1 and len(names) == 2:
        is_in_order = listed is None or list(listed) == names
        if not is_in_order or _named_after(proba[0], names) == names[0]:
            raise ValueError(
                f"--proba: a single column is the probability of {names[-1]!r} here; name the "
                "columns of both classes."
            )
        return proba
    row_checks.check_class_columns(len(proba), classes, "--proba", _ONE_FOR_EACH)
    if listed is None:
        return _match_names(proba, names)
    return tuple(proba[listed.index(name)] for name in names)


def _match_names(proba: tuple[str, ...], names: list[str]) -> tuple[str, ...]:
    """Return the columns in the order of the classes after which they are named.

    Where none is named after a class, they stay in their order; a part of them is refused.
    """
    class_of = {column: _named_after(column, names) for column in proba}
    column_of = {name: column for column, name in class_of.items() if name is not None}
    if len(column_of) == len(names):
        return tuple(column_of[name] for name in names)
    for column, name in zip(proba, names, strict=True):
        if class_of[column] not in (None, name):
            raise ValueError(
                f"--proba: column {column!r} seems to be that of {class_of[column]!r}, but stands "
                f"for {name!r}; say --classes with the classes in the order of --proba."
            )
    return proba


def _named_after(column: str, names: list[str]) -> str | None:
    """Return the class with which a column's name begins or ends as a word, if there is one."""
    text = column.casefold()
    matches = set()
    for name in names:
        word = re.escape(name.casefold())
        # A word ends where letters or digits do: p_no and p1, but not casino or p11.
        begins = rf"{word}(?![^\W\d_])" if name[-1:].isalpha() else rf"{word}(?!\d)"
        ends = rf"(?<![^\W\d_]){word}$" if name[:1].isalpha() else rf"(?<!\d){word}$"
        if re.match(begins, text) or re.search(ends, text):
            matches.add(name)
    longest = {name for name in matches if not any(_is_end_of(name, other) for other in matches)}
    return longest.pop() if len(longest) == 1 else None


def _is_end_of(name: str, other: str) -> bool:
    """Tell whether a class is a part of another one, as no of not_no."""
    return name != other and name.casefold() in other.casefold()
