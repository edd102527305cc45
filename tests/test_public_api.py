"""What is public is documented, runs as written, and stands where DESIGN says."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import skselect
import skselect.metrics
from tests.brute import named
from tests.common import run_python
from tests.test_docstrings import CALLABLES

ROOT = Path(__file__).resolve().parents[1]


def _public_names():
    """Return in full what the package and its public modules export."""
    rooms = [room.name for room in pkgutil.walk_packages(skselect.__path__, "skselect.")]
    public = ["skselect", *(room for room in rooms if "._" not in room)]
    modules = {room: importlib.import_module(room) for room in public if "__" not in room}
    names = {room: getattr(module, "__all__", []) for room, module in modules.items()}
    functions = inspect.getmembers(modules["skselect.dask"], inspect.isfunction)
    names["skselect.dask"] = [
        name for name, one in functions if one.__module__ == "skselect.dask" and name[0] != "_"
    ]
    return sorted(f"{room}.{name}" for room in names for name in names[room])


def test_public_names_change_on_purpose_only():
    # To change them: write them to the file, and say so in CHANGELOG.md.
    stored = (ROOT / "tests" / "golden" / "public_names.txt").read_text().split()
    assert _public_names() == stored


def test_completion_shows_what_users_need_and_no_modules():
    for room in ["", ".metrics", ".calibration", ".thresholds", ".bounds", ".datasets", ".losses"]:
        module = importlib.import_module(f"skselect{room}")
        assert len(set(module.__all__)) == len(module.__all__)
        assert {name for name in dir(module) if not name.startswith("_")} == set(module.__all__)
        assert all(not inspect.ismodule(getattr(module, name)) for name in module.__all__)


def test_import_is_light_and_makes_rooms_attributes(tmp_path):
    code = (
        "import skselect, sys; heavy = {'matplotlib', 'xgboost'} & set(sys.modules);"
        " assert not heavy, heavy; [getattr(skselect, room).__all__ for room in"
        " ('metrics', 'calibration', 'thresholds', 'bounds', 'datasets', 'losses')]"
    )
    run_python(code, folder=tmp_path)
    assert not hasattr(skselect, "dataset")
    assert not hasattr(skselect.metrics, "aurc")


def test_every_public_name_has_a_complete_docstring():
    for name, thing in CALLABLES.items():
        if name == f"{thing.__module__}.{thing.__qualname__}" and "." not in thing.__qualname__:
            with named(name):
                check_docstring(thing, inspect.getdoc(thing))


def check_docstring(thing, text):
    assert re.match(r"[A-Z].*\.$", text.splitlines()[0])
    # A renamed class once took the first word of a sentence along: "RawRows with confidence ...".
    words = set(re.findall(r"(?m)^ *([A-Z][a-z]+[A-Z]\w*) (?!or )[a-z]", text))
    assert words <= {*dir(skselect), *KNOWN_CLASSES}
    assert ">>>" in text or thing.__name__ in NO_EXAMPLE
    if inspect.isfunction(thing) and thing.__name__ != "unregister_scorers":
        assert "Returns\n" in text
    if inspect.isfunction(thing) and inspect.signature(thing).parameters:
        assert "Parameters\n" in text
        assert "Raises\n" in text or thing.__name__ in RAISE_NOTHING
        for name in inspect.signature(thing).parameters:
            assert re.search(rf"(?m)(^|[ ,*]){name}\b", text), name
    if inspect.isclass(thing):
        for name in inspect.signature(thing.__init__).parameters:
            is_private = name.startswith("_")
            if not is_private and name not in ("self", "args", "kwargs", "message"):
                assert re.search(rf"\b{name}\b", text), name


#: Functions that take what others have checked.
RAISE_NOTHING = {"best_start", "best_combined", "local_classifier", "walk_band"}


#: Names of other packages' classes that docstrings use as words.
KNOWN_CLASSES = {"FrozenEstimator"}


#: What other functions return, shown in their examples, and what has nothing to show.
NO_EXAMPLE = {
    "InfeasibleTargetError", "MetricSpec", "GroupedSelection", "ThresholdSelection", "Certificate",
    "CauComponents", "CsrTest", "EcceTest", "EcdTest", "MetricInterval", "MonitorStatus",
    "GuaranteeStatus", "ReviewPlan", "TCalTest",
    "get_scorer_names", "local_classifier", "register_scorers", "unregister_scorers",
}  # fmt: skip
