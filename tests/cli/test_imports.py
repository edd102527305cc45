"""What is imported, in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import skselect
from skselect.cli import WRONG_INPUT

# The package of these tests, wherever a process starts.
ENV = {**os.environ, "PYTHONPATH": str(Path(skselect.__file__).parents[1])}


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
rooms = {f"skselect.{name}" for name in ("display", "estimators", "report")}
assert not more & {"matplotlib", "sklearn.metrics", *rooms}, more
"""
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path, env=ENV)
    assert "demo" in done.stdout
    assert "--policy: there is no file 'none.json'" in done.stderr


def test_without_pyarrow_all_but_files_works(tmp_path):
    code = """
import sys
from importlib.abc import MetaPathFinder
class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from skselect import *
from skselect.cli.main import main
X, y = load_iris(return_X_y=True, as_frame=True)
tuner = ThresholdTuner(GaussianNB(), "risk", target=.2, random_state=0).fit(X, y.astype(str))
policy = AbstentionPolicy.from_json(tuner.policy_.to_json())
assert len(policy.decide(tuner.raw_scores(X))) == 150
large = X.iloc[:, 0] > 6
print(selective_report(y.astype(str), tuner.raw_scores(X), policy=policy, subgroups=large))
try:
    evaluate_parquet("none", confidence="a", loss="b")
except ImportError as error:
    print(error, file=sys.stderr)
sys.exit(main(["tune", "answers.csv", "--label", "truth", "--target", ".02"]))
"""
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path, env=ENV)
    told = "This needs an optional package; install it with pip install 'pyarrow'.\n"
    assert done.stderr == f"{told}skselect: {told}"
    assert done.returncode == WRONG_INPUT


def test_a_script_of_that_name_has_all_names(tmp_path):
    script = tmp_path / "skselect"
    script.write_text(
        "import skselect\nassert skselect.metrics\nfrom skselect import certify\n"
        "print(dir(skselect))"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True,
        env=ENV,
    )  # fmt: skip
    assert done.stdout.strip() == str(sorted(dir(skselect)))
