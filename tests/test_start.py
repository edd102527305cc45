"""What each door imports, in a process of its own: who needs little starts soon."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import skselect
from skselect import _names

#: The package of these tests, wherever a process starts.
ENV = {**os.environ, "PYTHONPATH": str(Path(skselect.__file__).parents[1])}

#: What takes longest to import, and who may import it.
HEAVY = """
import sys
HEAVY = {"sklearn", "scipy.stats", "scipy.optimize", "matplotlib", "xgboost"}
def check(door, *allowed):
    loaded = HEAVY & set(sys.modules)
    assert loaded <= set(allowed), (door, loaded)
"""


def run_fresh(code, folder):
    """Run code in a process that has imported nothing, and return what it printed."""
    run = [sys.executable, "-W", "error", "-c", HEAVY + code]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=folder, env=ENV)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_policy_is_loaded_and_decides_without_scikit_learn(tmp_path):
    policy = skselect.AbstentionPolicy(np.array(["no", "yes"]), 0.8)
    policy.to_json(tmp_path / "policy.json")
    code = """
import skselect
assert "numpy" not in sys.modules
policy = skselect.AbstentionPolicy.from_json("policy.json")
print(policy.decide([[.1, .9], [.6, .4]])["label"].tolist())
skselect.Predictions.from_proba(["no", "yes"] * 20, [[.9, .1], [.2, .8]] * 20)
check("policy")
skselect.select_threshold(["no", "yes"] * 200, [[.9, .1], [.2, .8]] * 200, objective="risk",
                          target=.1)
check("select_threshold")
"""
    assert run_fresh(code, tmp_path).strip() == "['yes', <NA>]"


def test_commands_import_what_they_use(tmp_path, rng):
    n = 400
    p = rng.beta(6, 1, n)
    log = {
        "case": range(n),
        "day": pd.date_range("2026-01-01", periods=n, freq="h").astype(str),
        "truth": np.where(rng.random(n) < p, "yes", "no"),
        "no": 1.0 - p,
        "yes": p,
    }
    pd.DataFrame(log).to_csv(tmp_path / "log.csv", index=False)
    code = """
from skselect.cli.main import main
def run(*arguments):
    try:
        return main(list(arguments))
    except SystemExit as end:
        return end.code
label = ["--label", "truth"]
assert run("tune", "log.csv", *label, "--target", "0.3", "--out", "policy.json") == 0
check("tune")
assert run("tune", "log.csv", *label, "--target", "0.0001", "--out", "none.json") == 3
check("a refusal")
assert run("apply", "log.csv", "--policy", "policy.json", "--capacity", "9", "--out", "a.csv") == 0
check("apply")
when = ["--id", "case", "--time", "day", "--label-delay", "1D", "--now", "2026-01-19"]
assert run("monitor", "log.csv", "--policy", "policy.json", *label, *when) in (0, 5)
check("monitor", "scipy.optimize")
assert run("evaluate", "log.csv", *label) == 0
check("evaluate", "scipy.optimize")
assert run("evaluate", "log.csv", *label, "--policy", "policy.json") == 5
check("evaluate --policy", "scipy.optimize")
assert run("report", "log.csv", *label, "--html", "report.html") == 0
check("report", "scipy.optimize", "matplotlib")
"""
    run_fresh(code, tmp_path)


@pytest.mark.parametrize("first", [
    "import skselect, sklearn.model_selection",  # its import begins before that of the scorers
    "import skselect; from sklearn.linear_model import LogisticRegressionCV",
    "from skselect import SelectiveClassifier",
    "from sklearn.model_selection import GridSearchCV; import skselect",
])  # fmt: skip
def test_scoring_strings_are_there_whatever_is_imported_first(first, tmp_path):
    code = f"""
{first}
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV
X, y = [[0, 1], [1, 0], [0, 2], [1, 3]] * 5, [0, 1, 0, 1] * 5
GridSearchCV(LogisticRegression(), {{}}, scoring="cwsa_plus", error_score="raise").fit(X, y)
print(get_scorer("cwsa_plus"))
assert not [finder for finder in sys.meta_path if "skselect" in type(finder).__module__]
"""
    assert run_fresh(code, tmp_path).strip() == "get_scorer('cwsa_plus')"


def _modules_with_scikit_learn():
    root = Path(skselect.__file__).parent
    for path in sorted(root.rglob("*.py")):
        is_met_first = path.name != "scorers.py"  # only the scorers import it
        if is_met_first and re.search("^ *(from|import) sklearn", path.read_text(), re.MULTILINE):
            module = path.relative_to(root.parent).with_suffix("")
            yield ".".join(module.parts)


@pytest.mark.slow
@pytest.mark.parametrize("module", _modules_with_scikit_learn())
def test_each_module_may_be_imported_first(module, tmp_path):
    code = f"import {module}, sklearn.model_selection; sklearn.metrics.get_scorer('cwsa_plus')"
    run_fresh(code, tmp_path)


def test_each_public_name_is_where_the_package_looks_for_it():
    places = skselect._PLACES
    assert sorted(places) == sorted(_names.__all__)
    for name, place in places.items():
        module = getattr(skselect, name)
        if name != "TRUSTED_TYPES":
            assert module.__module__.removeprefix("skselect.").startswith(place)
