"""The command line: help, errors and exit codes."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import skselect
from skselect.cli.main import _name_option, main, make_parser
from skselect.exceptions import ArgumentError


def test_help_has_an_example(capsys):
    with pytest.raises(SystemExit) as done:
        main(["demo", "--help"])
    assert done.value.code == 0
    assert "--data loans.parquet --label defaulted" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0
    assert capsys.readouterr().out.strip() == f"skselect {skselect.__version__}"


def test_defaults():
    given = make_parser().parse_args(["demo"])
    assert (given.data, given.target, given.delta, str(given.out)) == (
        None,
        0.02,
        0.05,
        "skselect-demo",
    )


def test_clear_message_and_exit_code(capsys):
    assert main(["demo", "--data", "nowhere.csv", "--label", "y"]) == 2
    assert capsys.readouterr().err.strip() == "skselect: --data: there is no file 'nowhere.csv'."


@pytest.mark.parametrize("arguments", [[], ["hope"], ["demo", "--target", "low"]])
def test_wrong_usage_exits_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert done.value.code == 2
    assert "usage: skselect" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["demo", "--target", "answer"], "the column to predict is --label"),
        (["tune", "t.csv", "--label", "y", "--target", "0.1", "--max-risk", "0.05"],
         "The largest share of wrong answers is --target"),
    ],
)  # fmt: skip
def test_a_word_that_belongs_elsewhere_is_explained(arguments, hint, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert hint in capsys.readouterr().err


def test_a_command_imports_what_it_uses(tmp_path):
    code = """
import sys, runpy
def run(*arguments):
    sys.argv = ["skselect", *arguments]
    try:
        runpy.run_module("skselect", run_name="__main__")
    except SystemExit:
        pass
    return set(sys.modules)
few = run("--help") | run("apply", "--help") | run("--version")
assert not few & {"numpy", "pandas", "sklearn", "scipy", "matplotlib"}, few
more = run("apply", "none.csv", "--policy", "none.json")
assert not more & {"matplotlib", "sklearn.metrics", "skselect.estimators", "skselect.report"}, more
"""
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "demo" in done.stdout
    assert "--policy: there is no file 'none.json'" in done.stderr


def test_a_script_of_that_name_has_all_names(tmp_path):
    script = tmp_path / "skselect"
    script.write_text(
        "import skselect\nassert skselect.metrics\nfrom skselect import certify\n"
        "print(dir(skselect))"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(skselect.__file__).parents[1])},
    )  # fmt: skip
    assert done.stdout.strip() == str(sorted(dir(skselect)))


@pytest.mark.parametrize(
    ("argument", "message", "expected"),
    [
        ("target", "target must be at most 0.5, got 2: the target is",
         "--target must be at most 0.5, got 2: the target is"),
        ("min_coverage", "min_coverage must be", "--min-coverage must be"),
        ("random_state", "random_state must be", "random_state must be"),  # no option
    ],
)  # fmt: skip
def test_errors_name_the_option_of_their_argument(argument, message, expected):
    given = make_parser().parse_args(["tune", "t.csv", "--label", "x"])
    error = pickle.loads(pickle.dumps(ArgumentError(argument, message)))
    assert (error.argument, str(error)) == (argument, message)
    assert _name_option(error, given) == expected
    assert _name_option(ValueError(message), given) == message
