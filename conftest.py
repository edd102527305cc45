"""Threads and the width of texts, set before anything is imported; quick tests; what doctests need.

Two test processes that each use all cores would mostly wait for one another.
"""

import doctest
import importlib.util
import os
import re
from pathlib import Path

import pytest

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# The width that texts have without a terminal.
os.environ["COLUMNS"] = "88"

collect_ignore = [
    "docs/conf.py",
    "docs/cards.py",
    "docs/links.py",
    "docs/live.py",
]  # parts of Sphinx, without doctests
TORCH_EXAMPLES = {"skselect.losses.cau_loss", "skselect.losses.soft_cwsa_loss"}

#: What `-m quick` runs: of every room the files that show soonest that something is broken.
ROOT = Path(__file__).parent
QUICK = {
    ROOT / "tests" / file
    for file in [
        "bounds/test_pointwise.py", "calibration/test_calibrators.py", "cli/test_main.py",
        "curve/test_areas.py", "curve/test_tie_blocks.py",
        "display/test_thresholds.py", "extras/test_cascade.py",
        "estimators/test_precomputed.py", "estimators/test_shortlist.py",
        "inference/test_by_group.py", "metrics/test_threshold.py",
        "monitoring/test_evidence.py", "policy/test_certificate.py",
        "predictions/test_predictions.py", "report/test_calibration.py", "selection/test_select.py",
        "streaming/test_parquet.py", "_lib/test_checks.py", "thresholds/test_metric.py",
    ]
}  # fmt: skip


@pytest.fixture(autouse=True)
def _same_chance():
    """Let splits without a seed, which scikit-learn draws from numpy's own, repeat in each run."""
    import numpy as np  # noqa: PLC0415 - the threads are set first

    np.random.seed(0)  # noqa: NPY002 - the generator that scikit-learn uses


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the other files unread: to collect all tests takes longer than the quick ones."""
    others = collection_path.is_file() and collection_path not in QUICK
    return (config.getoption("markexpr") == "quick" and others) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in them, and skip the examples that need torch where it is missing."""
    skip_torch = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")
    for item in items:
        if item.name in TORCH_EXAMPLES:
            item.add_marker(skip_torch)
        is_slow = item.get_closest_marker("slow") or "n_jobs" in item.name  # starts processes
        if item.path in QUICK and not is_slow:
            item.add_marker("quick")


# The numbers of a fitted model depend on the processor and on versions. An example that shows
# them is marked `# doctest: +DIGITS_VARY`: a number may differ by 5 % of the shown one, or by 0.01.
# `+NUMBERS_VARY` is for counts of rows and of errors: any number may stand for the shown one.
DIGITS_VARY = doctest.register_optionflag("DIGITS_VARY")
NUMBERS_VARY = doctest.register_optionflag("NUMBERS_VARY")
_NUMBER = r"-?(?:\d{1,3}(?:,\d{3})+|\d+(?:\.(?!\.)\d*)?|\.\d+)(?:e[-+]?\d+)?"
_PART = re.compile(rf"({_NUMBER}|\.\.\.|\s+)")
_check_output = doctest.OutputChecker.check_output


def _read(number: str) -> float:
    return float(number.replace(",", ""))


def _agrees(want: str, got: str, any_number: bool) -> bool:
    """Tell whether the words are the same, and the numbers almost, or any."""
    parts = _PART.split(want.replace("<BLANKLINE>", "").strip())
    numbers = [_read(part) for part in parts if re.fullmatch(_NUMBER, part)]
    patterns = [
        f"({_NUMBER})" if re.fullmatch(_NUMBER, part)
        else ".*?" if part == "..." else r"\s+" if part.isspace() else re.escape(part)
        for part in parts
    ]  # fmt: skip
    match = re.fullmatch("".join(patterns), got.strip(), re.DOTALL)
    if match is None or any_number:
        return match is not None
    return [_read(x) for x in match.groups()] == pytest.approx(numbers, rel=0.05, abs=0.01)


def _check_almost(checker: doctest.OutputChecker, want: str, got: str, optionflags: int) -> bool:
    if optionflags & (DIGITS_VARY | NUMBERS_VARY):
        return _agrees(want, got, bool(optionflags & NUMBERS_VARY))
    return _check_output(checker, want, got, optionflags)


doctest.OutputChecker.check_output = _check_almost
