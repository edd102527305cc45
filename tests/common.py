"""What tests of several rooms share: other processes, the schema of policies, slow cases."""

import json
import multiprocessing
import os
import subprocess
import sys
from functools import cache
from importlib.resources import files

import fastjsonschema
import pytest

from skselect._lib.notebook import unwrap
from skselect.policy.certificate_text import write_date

# Processes are forked from one that has imported these, which would take each a second or two.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["pandas", "scipy.stats", "sklearn.frozen", "sklearn.pipeline", "tqdm"]
)


def run_python(code, *argv, folder, check=True):
    """Run code as ``python -c`` does, in a process that has no module of ours; return what it did.

    What it prints goes through files in `folder`.
    """
    out, err = paths = folder / "stdout", folder / "stderr"
    process = FORKS.Process(target=_execute, args=(code, list(map(str, argv)), *map(str, paths)))
    process.start()
    process.join()
    done = subprocess.CompletedProcess(code, process.exitcode, out.read_text(), err.read_text())
    assert not (check and done.returncode), done.stderr
    return done


def _execute(code, argv, *paths):
    sys.argv = ["-c", *argv]
    for number, path in enumerate(paths, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout, sys.stderr = (open(n, "w", closefd=False) for n in (1, 2))  # noqa: SIM115
    exec(code, {"__name__": "__main__"})


def mostly_slow(cases, quick=1, *, unpack=False):
    """Return cases for ``parametrize``: all but the first ones run with ``-m slow`` alone.

    `unpack` belongs to several names of arguments.
    """
    return [
        pytest.param(*(case if unpack else [case]), marks=[pytest.mark.slow] * (k >= quick))
        for k, case in enumerate(cases)
    ]


@cache
def _policy_schema():
    schema = json.loads(files("skselect.policy").joinpath("policy.schema.json").read_text())
    return fastjsonschema.compile(schema)


def check_schema(policy_json):
    """Raise JsonSchemaException if the text is no policy by the published schema."""
    _policy_schema()(json.loads(policy_json))


def read_certificate(certificate):
    """Return text and details of a certificate as one line, without the day.

    The promise begins with a small letter, as its statement does.
    """
    day = f", {write_date(certificate.created)}"
    text = unwrap(f"{certificate}\n{certificate.details()}").replace(day, "", 1)
    for word in ("At most", "At least", "The answers", "Machine"):
        text = text.replace(f"\n{word}", f"\n{word[0].lower()}{word[1:]}", 1)
    return " ".join(text.split())
