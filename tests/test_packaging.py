"""One version, checks that are the same everywhere, and packages that can be installed."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import skselect

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def read(name):
    return (ROOT / name).read_text()


def test_the_version_is_said_once_and_repeated_correctly():
    assert "version" not in PROJECT["project"]
    assert re.search(r"(?m)^## \[(.+?)\]", read("CHANGELOG.md"))[1] == skselect.__version__
    assert re.search(r"(?m)^version: (.+)$", read("CITATION.cff"))[1] == skselect.__version__


def test_a_released_version_has_the_same_day_everywhere():
    day = re.search(r"(?m)^## \[.+?\][^\d\n]*(\d{4}-\d\d-\d\d)?", read("CHANGELOG.md"))[1]
    cited = re.search(r"(?m)^date-released: \"?([\d-]+)", read("CITATION.cff"))
    assert (cited and cited[1]) == day


def test_groups_of_dependencies_are_the_extras_of_the_same_name():
    groups = PROJECT["dependency-groups"]
    assert groups == {name: [f"skselect[{name}]"] for name in groups}
    assert (
        {"test", "docs", "dev"} <= set(groups) <= set(PROJECT["project"]["optional-dependencies"])
    )


def test_nothing_is_added_up_over_rows_by_blas():
    # Its digits depend on the number of cores, and its threads wait for each other.
    found = {}
    for path in sorted((ROOT / "skselect").rglob("*.py")):
        text = path.read_text()
        tree = ast.walk(ast.parse(text)) if " @" in text else ()
        n = sum(isinstance(node, ast.MatMult) for node in tree)
        n += len(re.findall(r"\b(?:matmul|vdot|inner|tensordot|vecdot)\(|(?<!arrays)\.dot\(", text))
        found |= {path.name: n} if n else {}
    assert found == {"learned.py": 1}  # over columns


def test_hooks_before_a_commit_are_the_checks_of_ci():
    tools = re.findall(r"(?m)^\.venv/bin/(?:ruff|codespell|lint-imports|mypy).*$", read(".ci/run"))
    assert len(tools) >= 5
    assert re.findall(r"(?m)^ +entry: (.+)$", read(".pre-commit-config.yaml")) == tools


def test_the_workflow_runs_the_script_and_each_python():
    text = read(".github/workflows/ci.yml")
    assert "- run: .ci/run\n" in text
    assert os.access(ROOT / ".ci/run", os.X_OK)
    listed = [one.rpartition(" ")[2] for one in PROJECT["project"]["classifiers"] if "3." in one]
    sessions = re.findall(r"session: ([\w.-]+), python: \"([\d.]+)\"", text)
    assert sessions == [*((f"newest-{one}", one) for one in listed), ("oldest", listed[0])]
    release = read(".github/workflows/release.yml")
    assert "id-token: write" in release  # no password
    assert "__version__" in release  # the tag is the version
    for name, _ in sessions:
        assert f"def {name.partition('-')[0]}(" in read("noxfile.py")


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["10_15_x86_64", "14_0_x86_64", "12_0_arm64", "14_0_arm64"])
def test_macs_need_no_compiler(chip, tmp_path):
    """A wheel of each package that `.[test]`, and so `.[demo]`, names is there for Macs."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps"]
    wheels = [*pip, "--only-binary=:all:", "--target", str(tmp_path)]
    probe = [*wheels, "--retries=0", "--ignore-installed", "tqdm"]
    if subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("no package index can be reached")
    needs = PROJECT["project"]["dependencies"] + find_needs("test", "darwin")
    command = [*wheels, f"--platform=macosx_{chip}", *needs]
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def find_needs(extra, system):
    """Return what an extra installs on a system, those of other extras of ours included."""
    needs = []
    for one in map(Requirement, PROJECT["project"]["optional-dependencies"][extra]):
        if one.name == "skselect":
            needs += [need for other in one.extras for need in find_needs(other, system)]
        elif one.marker is None or one.marker.evaluate({"sys_platform": system}):
            one.marker = None
            needs.append(str(one))
    return needs


def test_the_demo_needs_one_xgboost_and_reads_files():
    for system, xgboost in {"darwin": "xgboost", "linux": "xgboost-cpu"}.items():
        names = [Requirement(one).name for one in find_needs("demo", system)]
        assert [name for name in names if name.startswith("xgboost")] == [xgboost]
        assert "pyarrow" in names


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the sdist, and the wheel from it."""
    for module in ("build", "hatchling"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed; it comes with the extra dev")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


@pytest.mark.slow
def test_packages_hold_what_they_need(built):
    wheel, sdist = built
    with zipfile.ZipFile(wheel) as file:
        inside = set(file.namelist())
    tracked = [one for one in (ROOT / "skselect").rglob("*") if one.is_file()]
    needed = {str(one.relative_to(ROOT)) for one in tracked if one.suffix != ".pyc"}
    assert {name for name in inside if not name.startswith("skselect-")} == needed
    assert any(name.endswith("/licenses/LICENSE") for name in inside)
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"tests/test_packaging.py", "docs/conf.py", "CITATION.cff", ".ci/run"} <= names
    assert not [name for name in names if "/.venv" in name or name.startswith("docs/_build")]


@pytest.mark.slow
def test_the_wheel_works_where_the_checkout_is_not(built, tmp_path):
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(site), str(built[0])], check=True)
    code = """
import pathlib, skselect
from importlib.metadata import version
assert pathlib.Path(skselect.__file__).is_relative_to(pathlib.Path("site").resolve())
assert version("skselect") == skselect.__version__
report = skselect.selective_report([0, 1, 1], [[.9, .1], [.2, .8], [.6, .4]])
assert "<html" in report.to_html()  # its templates are there
"""
    env = {**os.environ, "PYTHONPATH": str(site)}
    for command in (["-c", code], ["-m", "skselect", "--version"]):
        done = subprocess.run(
            [sys.executable, *command], env=env, cwd=tmp_path, check=True, capture_output=True
        )
    assert done.stdout.decode().strip() == f"skselect {skselect.__version__}"
