"""Write docs/api/ from the public names of the code: an index by task, and a page per room.

The site's build calls `write_pages`. Pages group names by the module that defines them, under the
first line of its docstring, so that a new public name shows up by itself.
"""

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

from make_members import list_members

from skselect.metrics import SPECS

#: Rooms that users import from.
ROOMS = (
    "skselect",
    "skselect.metrics",
    "skselect.inference",
    "skselect.calibration",
    "skselect.thresholds",
    "skselect.bounds",
    "skselect.losses",
    "skselect.monitoring",
    "skselect.policy",
    "skselect.scoring",
    "skselect.streaming",
    "skselect.display",
    "skselect.datasets",
    "skselect.dask",
)

#: What users come for, and the modules that serve it; in the index the headings of a room that
#: has several stand below.
TASKS = {
    "Wrap a classifier": "estimators extras",
    "Tune a threshold": "estimators.tuner extras.join objectives selection policy thresholds exceptions",
    "Measure": "metrics inference scoring",
    "Calibrate": "calibration",
    "Report and draw": "report display",
    "Watch it run": "monitoring",
    "Tables that do not fit into memory": "streaming dask",
    "Data": "datasets",
    "Train by losses of papers": "losses",
    "Pieces to build with": "predictions curve bounds _names",
}

#: Heading of the metrics that their table sets apart.
COMPARISON = "For comparison with published values"

#: Headings of large rooms, with the modules whose names stand below each. Names of a module that
#: is not here stand below the first line of its docstring.
HEADINGS = {
    "skselect": {
        "Estimators": (
            "estimators.classifier estimators.tuner extras.learned extras.cascade_classifier "
            "estimators.precomputed"
        ),
        "Objectives": "objectives",
        "Thresholds, certificates and policies": "selection extras.join policy exceptions",
        "Predictions": "predictions curve",
        "Metrics and scorers": "metrics scoring",
        "Reports and pictures": "report display",
        "After deployment": "monitoring",
        "Pieces and files": "streaming _names",
    },
    "skselect.metrics": {
        "At one threshold": "_threshold",
        "Areas and working points": "_areas",
        "Detecting errors": "_error_detection",
        "Weighted by confidence": "_confidence_weighted",
        "Overconfidence near certainty": "_csr",
        "Calibration errors": "_calibration_errors",
        "Tests of calibration": "_calibration_tests",
        "Correctness-aligned uncertainty": "_cau",
        "All of them": "_evaluate",
        COMPARISON: "",
    },
    "skselect.calibration": {
        "Calibrators": "_monotone _parametric _temperature",
    },
    "skselect.monitoring": {"Planning": "evidence"},
    "skselect.thresholds": {
        "Methods with options": "_sequences _rules",
        "Planning, and bounds for all thresholds": "_planning",
    },
}

#: Classes that users get and need not import: each is documented on the page of what returns it.
RESULTS = {
    "skselect.CascadeClassifier": ("skselect.extras.cascade.Cascade",),
    "skselect.SelectiveRiskMonitor": (
        "skselect.monitoring.status.MonitorStatus",
        "skselect.monitoring.status.GuaranteeStatus",
    ),
    "skselect.check_policy": (
        "skselect.monitoring.check.PolicyCheck",
        "skselect.monitoring.check.GuaranteeCheck",
    ),
    "skselect.inference.metric_interval": ("skselect.inference.intervals.MetricInterval",),
    "skselect.metrics.SPECS": ("skselect.metrics._metric.MetricSpec",),
    "skselect.metrics.cau_components": ("skselect.metrics._cau.CauComponents",),
    "skselect.metrics.csr_test": ("skselect.bounds._csr.CsrTest",),
    "skselect.metrics.ecce_test": ("skselect.metrics._calibration_tests.EcceTest",),
    "skselect.metrics.ecd_test": ("skselect.metrics._calibration_tests.EcdTest",),
    "skselect.metrics.review_at_reliability": ("skselect.metrics._areas.ReviewPlan",),
    "skselect.metrics.t_cal_test": ("skselect.metrics._calibration_tests.TCalTest",),
    "skselect.select_threshold": (
        "skselect.selection.results.ThresholdSelection",
        "skselect.selection.results.GroupedSelection",
    ),
    "skselect.selective_report": ("skselect.report.selective.SelectiveReport",),
}


def public_names(room: str) -> list[str]:
    """Return `__all__`, or what a module without one defines itself."""
    module = importlib.import_module(room)
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == room
    ]


def home(room: str, name: str) -> str:
    """Return the room whose page documents a name: the top one, if it is public there too."""
    top, here = importlib.import_module("skselect"), importlib.import_module(room)
    is_top = name in top.__all__ and getattr(top, name) is getattr(here, name)
    return "skselect" if is_top else room


def _modules(room: str) -> list[str]:
    return [name for name in sorted(sys.modules) if name == room or name.startswith(room + ".")]


def is_constant(room: str, name: str) -> bool:
    """Say whether a name is neither a function nor a class."""
    return not callable(getattr(importlib.import_module(room), name))


def comment(room: str, name: str) -> tuple[str, str]:
    """Return the module that defines a constant, and the ``#:`` lines above it."""
    for module in _modules(room):
        found = re.search(rf"(?m)((?:^#: .*\n)+){name}\b", inspect.getsource(sys.modules[module]))
        if found:
            return module, found[1].replace("#: ", "").replace("\n", " ").strip()
    raise LookupError(f"{room}.{name} has no comment that begins with '#:' where it is defined.")


def _defining_module(room: str, name: str) -> ModuleType:
    if is_constant(room, name):
        return sys.modules[comment(room, name)[0]]
    return sys.modules[getattr(importlib.import_module(room), name).__module__]


def grouped(room: str) -> dict[str, list[str]]:
    """Return the names of a room by heading: a chosen one, or what the defining module says."""
    chosen = {module: heading for heading, modules in HEADINGS.get(room, {}).items()
              for module in modules.split()}  # fmt: skip
    groups: dict[str, list[str]] = {heading: [] for heading in HEADINGS.get(room, {})}
    set_apart = [spec.function.__name__ for spec in SPECS.values() if spec.for_comparison]
    for name in public_names(room):
        module = _defining_module(room, name)
        inside = module.__name__.removeprefix(room + ".").removeprefix("skselect.")
        own_words = inspect.getdoc(module).splitlines()[0].rstrip(".")
        heading = chosen.get(inside, chosen.get(inside.split(".")[0], own_words))
        heading = COMPARISON if name in set_apart else heading
        groups.setdefault(heading, []).append(name)
    return groups


def _summaries(names: list[str], *options: str) -> list[str]:
    return [".. autosummary::", *(f"   :{option}" for option in options), "",
            *(f"   {name}" for name in names), ""]  # fmt: skip


def _entries(room: str, names: list[str]) -> list[str]:
    constants = [name for name in names if is_constant(room, name)]
    rest = [f"~{home(room, name)}.{name}" for name in names if name not in constants]
    lines = _summaries(rest, "toctree: generated", "nosignatures:") if rest else []
    for name in constants:
        lines += [f".. py:data:: {name}", f"   :module: {room}", ""]
        lines += [f"   {comment(room, name)[1]}", "", results(f"{room}.{name}"), ""]
    return lines


def results(full_name: str) -> str:
    """Return what documents the classes that a public name returns, for the page of the name."""
    entries = [
        f".. py:currentmodule:: {module}\n\n.. rst-class:: result\n\n"
        f".. autoclass:: {name}\n\n{list_members(getattr(importlib.import_module(module), name))}\n"
        for module, _, name in (one.rpartition(".") for one in RESULTS.get(full_name, ()))
    ]
    return "\n".join(entries)


def members(room: str) -> dict[str, str]:
    """Return what documents the members of each public class of a room, for its page."""
    return {
        f"{home(room, name)}.{name}": list_members(getattr(importlib.import_module(room), name))
        for name in public_names(room)
        if inspect.isclass(getattr(importlib.import_module(room), name))
    }


def task(room: str, name: str) -> str:
    """Return what users need a name for: the task of its module, or of the room it is public in."""
    chosen = {module: task for task, modules in TASKS.items() for module in modules.split()}
    module = _defining_module(room, name).__name__
    module = (module if module.startswith(room) else room).removeprefix("skselect.")
    while module and module not in chosen:
        module = module.rpartition(".")[0]
    return chosen[module]


def _index() -> str:
    """Return the page that lists everything public by task."""
    tables: dict[str, dict[str, list[str]]] = {title: {} for title in TASKS}
    for room in ROOMS:
        for heading, names in grouped(room).items():
            part = f"{room}: {heading}" if heading in HEADINGS.get(room, {}) else room
            part = "" if room == "skselect" else part
            for name in names:
                if home(room, name) == room:
                    tables[task(room, name)].setdefault(part, []).append(f"{room}.{name}")
    lines = ["API", "===", "", ".. currentmodule:: skselect", ""]
    lines += ["Everything public. Names without a dot are imported from ``skselect``.", ""]
    for title, parts in tables.items():
        lines += [title, "-" * len(title), ""]
        for part, names in parts.items():
            lines += [f".. rubric:: {part}", ""] if part else []
            constants = [name for name in names if is_constant(*name.rsplit(".", 1))]
            shown = [name.removeprefix("skselect.") for name in names if name not in constants]
            lines += _summaries(shown, "nosignatures:") if shown else []
            lines += [f"- :py:data:`{name}`" for name in constants] + [""]
    lines += ["By module", "---------", "", ".. toctree::", "   :maxdepth: 1", ""]
    return "\n".join([*lines, *(f"   {room.replace('.', '_')}" for room in ROOMS)]) + "\n"


def _page(room: str) -> str:
    lines = [f".. py:module:: {room}", "", room, "=" * len(room), ""]
    lines += [inspect.getdoc(importlib.import_module(room)), "", ".. py:currentmodule:: None", ""]
    for group, names in grouped(room).items():
        lines += [group, "-" * len(group), "", *_entries(room, names)]
    return "\n".join(lines)


def write_pages(folder: Path) -> None:
    """Write one page per room, and an index of them."""
    folder.mkdir(exist_ok=True)
    written = {f"{home(room, name)}.{name}" for room in ROOMS for name in public_names(room)}
    for stub in (folder / "generated").glob("*.rst"):
        if stub.stem not in written:
            stub.unlink()
    for page in folder.glob("skselect*.rst"):
        if page.stem.replace("_", ".", 1) not in ROOMS:
            page.unlink()
    files = {room.replace(".", "_"): _page(room) for room in ROOMS}
    files["index"] = _index()
    for name, text in files.items():
        path = folder / f"{name}.rst"
        # An unchanged file keeps its time stamp, so that Sphinx need not read it again.
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
