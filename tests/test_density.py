"""The code stays readable: few expressions a statement, few names a function, a short reach."""

from pathlib import Path

import pytest

from tests import density

PACKAGE = Path(__file__).resolve().parents[1] / "skselect"

#: Rooms of formulas may be denser.
FORMULAS = ("bounds", "curve", "metrics", "calibration")

#: Files that a reader of one certificate passes.
CORE = (
    "objectives/objective.py", "objectives/guarantee.py", "objectives/risk.py",
    "selection/select.py", "selection/pick.py", "selection/settle.py", "selection/by_group.py",
    "selection/results.py", "selection/order.py", "selection/sample.py", "estimators/tuner.py",
    "policy/policy.py", "policy/certificate.py", "monitoring/check.py", "monitoring/certify.py",
)  # fmt: skip

#: Parts of the package that importing a room may bring in.
REACH = {
    "skselect.monitoring.check": 0.41,
    "skselect.policy.policy": 0.33,
    "skselect.selection.select": 0.41,
    "skselect.estimators.tuner": 0.49,
}


@pytest.fixture(scope="module")
def package():
    return density.measure(PACKAGE)


def test_a_statement_does_one_thing(package):
    assert package["expressions"] / package["statements"] <= 2.8
    assert 1000 * package["packed"] / package["statements"] <= 1
    assert 1000 * package["ternaries"] / package["statements"] <= 30


def test_no_function_holds_more_than_a_dozen_names(package):
    assert package["many_locals"] == 0
    assert package["many_statements"] == 0


def test_names_that_live_longer_than_a_line_are_nouns():
    assert density.find_vague_names(PACKAGE) == []


def test_no_file_is_packed():
    for expressions, name in density.measure_files(PACKAGE):
        room, *_ = Path(name).relative_to(PACKAGE).parts
        limit = 3.4
        if room in FORMULAS:
            limit = 3.6
        assert expressions <= limit, name


def test_the_core_has_the_density_of_the_models_of_the_field():
    statements = 0
    expressions = 0.0
    for name in CORE:
        per_statement, n_statements = density.measure_file(PACKAGE / name)
        statements += n_statements
        expressions += per_statement * n_statements
    assert expressions / statements <= 2.6


@pytest.mark.parametrize("module", REACH)
def test_a_room_imports_a_part_of_the_package(module, package):
    _, lines = density.reach(PACKAGE, module)
    assert round(lines / package["lines"], 2) <= REACH[module]
