"""Commands as they are typed: what they say, and that a refused one writes nothing."""

import shlex
from pathlib import Path

import pytest

from skselect.cli.main import main


def call(command):
    """Run a command, and return its exit code."""
    try:
        return main(shlex.split(command))
    except SystemExit as done:
        return done.code


@pytest.fixture
def run(capsys):
    """Return a function that runs a command, checks its exit code, and returns what it said."""

    def run(command, code=0):
        capsys.readouterr()
        assert call(command) == code, capsys.readouterr()
        return capsys.readouterr()

    return run


def contents():
    """Return what the files of this folder hold."""
    return {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}


@pytest.fixture
def refuse(run):
    """Return a function that runs a command which must write nothing, and returns the reason."""

    def refuse(command, code=2):
        before = contents()
        said = run(command, code)
        assert (said.out, contents()) == ("", before)
        return said.err

    return refuse
