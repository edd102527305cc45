"""The command line: help, errors and exit codes."""

import subprocess
import sys

import pytest

import skselect
from skselect.cli.main import main, make_parser


def test_help_has_an_example(capsys):
    with pytest.raises(SystemExit) as done:
        main(["demo", "--help"])
    assert done.value.code == 0
    assert "--data loans.parquet --target defaulted" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0
    assert capsys.readouterr().out.strip() == f"skselect {skselect.__version__}"


def test_defaults():
    given = make_parser().parse_args(["demo"])
    assert (given.data, given.max_risk, given.delta, str(given.out)) == (
        None,
        0.02,
        0.05,
        "skselect-demo",
    )


def test_clear_message_and_exit_code(capsys):
    assert main(["demo", "--data", "nowhere.csv", "--target", "y"]) == 2
    assert capsys.readouterr().err.strip() == "skselect: --data: there is no file 'nowhere.csv'."


@pytest.mark.parametrize("arguments", [[], ["hope"], ["demo", "--max-risk", "low"]])
def test_wrong_usage_exits_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert done.value.code == 2
    assert "usage: skselect" in capsys.readouterr().err


def test_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "skselect", "--help"], capture_output=True, text=True, check=True
    )
    assert "demo" in done.stdout
