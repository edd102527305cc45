"""What is imported, in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import skselect


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
