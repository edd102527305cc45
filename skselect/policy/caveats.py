"""What a certificate assumes, and what keeps it from being exact or from being taken plainly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skselect._lib.arrays import BoolArray
from skselect._lib.checks.options import check_choice
from skselect._lib.coins import Coins
from skselect._lib.notebook import count, percent

if TYPE_CHECKING:
    from skselect.policy.seen_rows import Overlap

INDEPENDENT = "the rows are independent draws from the population the policy will meet"
FRESH = (
    "the rows were not used to train, calibrate or choose the classifier, nor to choose the target"
)
UNCHANGED = "the classifier, its calibration and its confidence are not changed"
FIXED = "the policy was fixed before these rows were seen"
FIRST_ANALYSIS = "these rows, and every part of them, are analysed for the first time"
POOL = (
    "these rows, their confidences, the objective with its target and options were fixed before "
    "the first label; adding rows is a second analysis (judging more of them is not)"
)
PLANNED = (
    "the analyses of these rows, and how many rows each uses, were planned before the first one"
)
WEIGHED = (
    "each weight says how much more often such cases will occur in service than in this sample"
)
#: What every guarantee rests on.
ASSUMPTIONS = (INDEPENDENT, FRESH, UNCHANGED)
#: What recognised rows have to do with a threshold.
MUST_PASS = "a threshold must hold with and without them"
#: Where rows were recognised: readings of which one must be true.
ALL_SEEN = "either all rows that equal training rows are cases that came back, or none of them is"
ALL_COPIES = "either all rows that equal earlier ones are copies, or none of them is"
STARTS = "the starts or levels of the sequence were fixed before these rows were seen"

#: The first line of a bound without a target.
MEASURED = (
    "UPPER BOUND ONLY: no target was named beforehand (target=), so nothing is guaranteed. These "
    "rows give this bound."
)
#: How the notice begins where rows contradict the policy's own guarantee.
NOT_MET = "THE POLICY'S OWN GUARANTEE IS NOT MET"


class Caveat(NamedTuple):
    """A reason why a certificate is not exact, or not to be taken plainly.

    `violates` is the assumption that does not hold ("": none). With `strikes` the certificate
    becomes an estimate; without, it stands, names the reason below its first line, if there is
    one, and `assumes` what makes it true. `warns` is said aloud where something is accepted.
    """

    reason: str
    violates: str = ""
    strikes: bool = True
    assumes: str = ""
    warns: str = ""


NO_CAVEATS: tuple[Caveat, ...] = ()
FOLD_MODELS = Caveat(
    "the threshold comes from out-of-fold predictions, whose models differ from the final one "
    "(FrozenEstimator with fresh rows, or cv='auto' and refit='auto', certifies)",
    UNCHANGED,
)
REFITTED = Caveat(
    "the classifier was fitted again on all rows after the threshold was chosen (without "
    "refit=True the classifier is kept, which certifies)",
    UNCHANGED,
)
SAME_ROWS = Caveat(
    "these rows also fitted the calibration of the frozen classifier (cv='auto' and refit='auto', "
    "or a classifier calibrated on other rows, certifies)",
    FRESH,
)


NO_RECORD = Caveat(
    "skselect cannot tell whether these rows also trained the classifier", strikes=False
)
#: The same where the user says that they did not.
FRESH_BY_WORD = NO_RECORD._replace(reason=f"{NO_RECORD.reason} (assume='fresh' says no)")
OLD_RECORD = Caveat(
    "the record of the training rows was saved by an older version, which recognises only rows "
    "with a value of their own",
    strikes=False,
)
NOTHING_CHECKED = Caveat(
    "no row can be recognised, so skselect cannot tell whether copies of these rows also trained "
    "the classifier",
    strikes=False,
)
#: A larger share of rows that also trained the classifier makes a certificate an estimate.
MOST_SEEN = 0.2
#: The fingerprints that record rows: those that chose the threshold, and that trained.
ROW_RECORDS = ("rows", "trained")
#: The assumptions that a user can vouch for against what the rows show.
VOUCHED = {"fresh": FRESH, "independent": INDEPENDENT, "balanced": INDEPENDENT}
SORTED_BY_CLASS = Caveat(
    "these rows are sorted by class, so their order was tested within each class, which cannot "
    "show a change from one class to the next",
    strikes=False,
)


def trained_here(overlap: Overlap, *, few: bool, asks: bool, vouched: bool) -> Caveat:
    """Return the caveat about rows of which some also trained the classifier.

    Where they are `few`, a threshold must pass with and without them. With `asks` it may have been
    an auxiliary model that its confidence asks.
    """
    what = "the classifier or an auxiliary model" if asks else "the classifier"
    of = f"{overlap.n_seen:,} of {overlap.n_recognisable:,} recognisable rows"
    if few:
        same = f"{of} also occur in the training data of {what}"
        passes = f"{same}; {MUST_PASS}"
        return Caveat(passes, strikes=False, assumes=ALL_SEEN)
    doubt = f"{of} also trained {what}"
    if vouched:
        return Caveat(f"{doubt}, overruled by assume='fresh'", FRESH, strikes=False)
    return Caveat(f"{doubt}, and only fresh rows certify (assume='fresh' overrules this)", FRESH)


def mixed_rows(share: float, rows: str, bound: str) -> Caveat:
    """Return the caveat about rows of which a share also trained the classifier.

    If all of them leaked, or all came back, a threshold holds under one of the two readings. If
    some leaked and others came back, the others bear all errors: `bound` is what still holds.
    """
    doubt = f"{percent(share, up=True)} of the {rows} also occur in the training data"
    if share > MOST_SEEN:
        return Caveat(
            f"{doubt}, and only fresh rows certify (assume='fresh' overrules this)", FRESH
        )
    mixed = f"if some of these leaked and others came back, {bound} holds instead of the target"
    return Caveat(f"{doubt}; {mixed}", strikes=False)


def others_trained(n: int, *, vouched: bool) -> Caveat:
    """Return the caveat about rows that trained the classifier and cannot be told from others."""
    equal = "equals a training row" if n == 1 else "equal training rows"
    doubt = f"about {n:,} more of these rows {equal} than chance explains"
    doubt += ", and it cannot be told which"
    if vouched:
        return Caveat(f"{doubt}, overruled by assume='fresh'", FRESH, strikes=False)
    return Caveat(f"{doubt}; only fresh rows certify (assume='fresh' overrules this)", FRESH)


def copied_here(copies: BoolArray | None, included: str = "label included") -> tuple[Caveat, ...]:
    """Return the caveat about rows of which some are copies of others; None: nothing can tell."""
    if copies is None or not np.any(copies):
        return (UNSOUGHT,) if copies is None else ()
    n_copies = np.sum(copies)
    equal = "equals" if n_copies == 1 else "equal"
    doubt = f"{n_copies:,} of these {len(copies):,} rows {equal} an earlier one, {included}"
    return (Caveat(f"{doubt}; {MUST_PASS}", strikes=False, assumes=ALL_COPIES),)


def in_order(subjects: str, level: float, advice: str, *, vouched: bool) -> Caveat:
    """Return the caveat about rows whose losses or confidences change along their order."""
    reason = (
        f"the {subjects} change from one part of the table to another, by more than chance "
        f"explains (level {level:g})"
    )
    if vouched:
        return Caveat(f"{reason}, overruled by assume='independent'", INDEPENDENT, strikes=False)
    reason += (
        f"; if the rows are in time order, new cases may differ, so {advice}, and monitor "
        "the policy (SelectiveRiskMonitor); if they are merely sorted (by site, say), pass "
        "assume='independent'"
    )
    return Caveat(reason, INDEPENDENT, warns=f"The order of the rows matters: {reason}.")


def equal_classes(n: int) -> Caveat:
    """Return the caveat about classes of which each has exactly `n` rows."""
    reason = f"all classes have {count(n, 'row')}; if they were balanced by hand (SMOTE, over- or "
    reason += "undersampling), the certificate is about cases that are balanced in the same way"
    return Caveat(reason, strikes=False)


def other_classes(shares: str, level: float, *, equal: bool, vouched: bool) -> Caveat:
    """Return the caveat about classes whose shares are not those of the training rows.

    It strikes where the classes are `equal` in size, as after balancing.
    """
    reason = f"{shares} those that trained the classifier, by more than chance explains (level "
    reason += f"{level})"
    if equal:
        reason += ", and all classes have the same number of rows, as if they were balanced by hand"
        reason += ", overruled by" if vouched else "; if new cases are balanced in that way, pass"
        reason += " assume='balanced'"
    return Caveat(reason, INDEPENDENT if equal else "", strikes=equal and not vouched)


def check_vouched(assume: Any) -> frozenset[str]:
    """Return the assumptions that a user vouches for; refuse other words."""
    names = [assume] if isinstance(assume, str) or not np.iterable(assume) else list(assume)
    for name in names:
        check_choice("assume", name, list(VOUCHED))
    return frozenset(names)


#: Ties of a table without features that need not be copies.
UNSOUGHT = Caveat(
    "",
    strikes=False,
    assumes="no row is a copy of another (copies cannot be found, because confidences are tied)",
)
CHOSEN_HERE = Caveat("these rows also chose the threshold; only fresh rows can certify", FIXED)
OF_FIT = Caveat(
    "some of these rows trained the classifier or chose the threshold; only fresh rows can certify",
    FRESH,
)
UNORDERED = Caveat(
    "skselect cannot tell whether the rows depend on their order, because only their sums are "
    "known",
    strikes=False,
)
MAY_HAVE_CHOSEN = Caveat(
    "skselect cannot tell whether some of these rows chose the threshold; do not pass rows used in "
    "fit",
    strikes=False,
)
NOTHING = Caveat("no threshold meets the target, so all cases are deferred")
#: The probability of a certificate is over coins, too, and few differ from table to table.
SHARED_COINS = Caveat(
    "most of these rows equal another one, so users with such a table and the same seed share "
    "their coins",
    strikes=False,
)
GROUPED = Caveat("rows of the same group are not independent (groups= was given)", INDEPENDENT)


def note_coins(coins: Coins) -> tuple[Caveat, ...]:
    """Return the caveat where fewer than half of the rows have values of their own."""
    return (SHARED_COINS,) if coins.share_distinct < 0.5 else NO_CAVEATS
