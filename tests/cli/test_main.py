"""The command line: help, errors and exit codes."""

import pickle

import pytest

import skselect
from skselect.cli.main import _name_options, make_parser
from skselect.exceptions import ArgumentError


def test_help_and_version(run):
    assert "--data loans.parquet --label defaulted" in run("demo --help").out
    assert run("--version").out == f"skselect {skselect.__version__}\n"


@pytest.mark.parametrize("command", ["demo", "evaluate", "report", "tune", "apply", "monitor"])
def test_the_prose_of_help_is_as_wide_as_the_terminal(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        make_parser.__wrapped__().parse_args([command, "--help"])  # not the one that is kept
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if line[:1].strip()) <= 60
    assert any(line.startswith(f"  skselect {command}") for line in lines)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("", "usage: skselect"),
        ("hope", "usage: skselect"),
        ("demo --target 5%", "got '5%'. Write 5 % as 0.05"),
        ("demo --data no.csv --label y", "skselect: --data: there is no file 'no.csv'.\n"),
    ],
)
def test_wrong_usage_is_explained_and_exits_with_two(command, words, tmp_path, monkeypatch, refuse):
    monkeypatch.chdir(tmp_path)
    assert words in refuse(command)


@pytest.mark.parametrize(("argument", "message", "expected"), [
    ("target", "target must be at most 0.5, got 2: the target is",
     "--target must be at most 0.5, got 2: the target is"),
    ("min_coverage", "min_coverage must be", "--min-coverage must be"),
    ("random_state", "random_state must be", "random_state must be"),  # no option
    ("target", "target: lower min_coverage, max_analyses=3 or 'min_coverage'",
     "--target: lower --min-coverage, --max-analyses=3 or 'min_coverage'"),
])  # fmt: skip
def test_errors_name_the_option_of_their_argument(argument, message, expected):
    given = make_parser().parse_args(["tune", "t.csv", "--label", "x"])
    error = pickle.loads(pickle.dumps(ArgumentError(argument, message)))
    assert (error.argument, str(error)) == (argument, message)
    assert _name_options(error, given) == expected
    assert _name_options(ValueError(message), given) == expected
    assert _name_options(ValueError("The target must be"), given) == "The target must be"
