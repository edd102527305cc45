"""Links of the site: a public name in prose leads to its page, here or on another library's site.

A Sphinx extension. Names in code blocks are linked by `sphinx_codeautolink` and, in the gallery, by
`sphinx_gallery`. All of them look names of other libraries up in files that are written here from
the installed libraries, so that the site is built without a network.
"""

import importlib
import inspect
import re
import zlib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry
from sphinx.environment import BuildEnvironment
from sphinx.ext.intersphinx import InventoryAdapter
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

from skselect.metrics import SPECS
from skselect.metrics._evaluate import GAPS

#: Other libraries: their site, and the page of a name on it.
SITES = {
    "sklearn": ("https://scikit-learn.org/stable/", "modules/generated/{}.html"),
    "numpy": ("https://numpy.org/doc/stable/", "reference/generated/{}.html"),
    "pandas": ("https://pandas.pydata.org/docs/", "reference/api/{}.html"),
}

#: What the pages call objects of these classes.
INSTANCES = {
    "ThresholdTuner": "tuner",
    "AbstentionPolicy": "policy",
    "SelectiveRiskMonitor": "monitor",
    "RiskCoverageCurve": "curve",
    "ThresholdSelection": "selection",
    "SelectiveState": "state",
}

#: A name, perhaps with a call.
NAME = re.compile(r"([A-Za-z_][\w.]*)(\(.*\))?")


def _others_public(library: str) -> dict[str, Any]:
    """Return the classes and functions of a library that have a page of their own."""
    rooms = [library]
    if library == "sklearn":
        rooms = [f"sklearn.{room}" for room in [*sklearn.__all__, "base", "utils"]]
        rooms = [room for room in rooms if importlib.util.find_spec(room)]
    public = {}
    for room in rooms:
        module = importlib.import_module(room)
        for name, value in vars(module).items():
            is_type = inspect.isclass(value) and issubclass(value, np.generic)  # such as np.int64
            is_public = name in getattr(module, "__all__", [name]) and name[0] != "_"
            if callable(value) and is_public and not is_type:
                public[f"{room}.{name}"] = value
    return public


def _definition(value: Any) -> str:
    """Return where a class or function is defined: code leads there, not to its public name."""
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


def write_inventories(folder: Path) -> dict[str, tuple[str, str]]:
    """Write a file of names per library; return where its site is, for `intersphinx_mapping`."""
    folder.mkdir(parents=True, exist_ok=True)
    for library, (_, page) in SITES.items():
        lines = [
            f"{name} py:{'class' if inspect.isclass(value) else 'function'} 1 {page.format(public)} -\n"
            for public, value in _others_public(library).items()
            for name in {public, _definition(value)}
        ]
        head = f"# Sphinx inventory version 2\n# Project: {library}\n# Version: \n# zlib\n"
        body = zlib.compress("".join(sorted(lines)).encode())
        (folder / f"{library}.inv").write_bytes(head.encode() + body)
    return {name: (site, str(folder / f"{name}.inv")) for name, (site, _) in SITES.items()}


def find_written_pages(app: Sphinx) -> None:
    """Let pages that other extensions have just written be linked in the first build, too."""
    app.env.find_files(app.config, app.builder)


def note_definitions(_app: Sphinx, env: BuildEnvironment) -> None:
    """Let classes and methods be found where they are defined, too."""
    objects = env.domains.python_domain.objects
    for full_name, entry in list(objects.items()):
        if entry.objtype in ("class", "exception") and not entry.aliased:
            room, _, name = full_name.rpartition(".")
            place = _definition(getattr(importlib.import_module(room), name))
            for member in [name for name in objects if name.startswith(f"{full_name}.")]:
                alias = place + member.removeprefix(full_name)
                objects.setdefault(alias, objects[member]._replace(aliased=True))


@cache
def _own_names(env: BuildEnvironment) -> dict[str, ObjectEntry]:
    """Return the documented objects under each name that pages call them by."""
    names: dict[str, ObjectEntry] = {}
    objects = env.domains.python_domain.objects
    public = [name for name, entry in objects.items() if not entry.aliased]
    n_called = Counter(name.rpartition(".")[2] for name in public)
    for full_name in sorted(public, key=lambda name: name.count("."), reverse=True):
        parts, entry = full_name.split("."), objects[full_name]
        is_member = entry.objtype in ("method", "attribute", "property")
        # A module has its full name only; "skselect" alone may be the command.
        ends = len(parts) > 1 if entry.objtype == "module" else len(parts) - is_member
        # The last entry stays: that of the shortest full name, which is imported from the top.
        for start in range(ends):
            names[".".join(parts[start:])] = entry
        if is_member and parts[-2] in INSTANCES:
            names[f"{INSTANCES[parts[-2]]}.{parts[-1]}"] = entry
        # A method of one class alone, such as "decide_arrays", needs no class before it.
        if entry.objtype == "method" and "_" in parts[-1] and n_called[parts[-1]] == 1:
            names[parts[-1]] = entry
    for spec in (SPECS | GAPS).values():
        names[spec.name] = names[spec.scorer_name] = names[spec.function.__name__]
    return names


@cache
def _other_names(env: BuildEnvironment) -> dict[str, str]:
    """Return the addresses of other libraries' names that no plain word is mistaken for."""
    names = {}
    for kind in ("py:class", "py:function"):
        for full_name, item in InventoryAdapter(env).main_inventory.get(kind, {}).items():
            last = full_name.rpartition(".")[2]
            short = full_name.replace("numpy.", "np.").replace("pandas.", "pd.")
            names |= dict.fromkeys([full_name, short], item.uri)
            if not last.islower() or "_" in last:
                names[last] = item.uri
    return names


class LinkNames(SphinxPostTransform):
    """Make links of inline code that is a public name."""

    default_priority = 5
    formats = ("html",)

    def run(self) -> None:
        """Look up each piece of inline code of a page."""
        own, others, page = _own_names(self.env), _other_names(self.env), self.env.docname
        for code in list(self.document.findall(nodes.literal)):
            found = NAME.fullmatch(code.astext())
            if found is None or _is_inside(code, nodes.title, nodes.reference, pending_xref):
                continue
            entry, address = own.get(found[1]), others.get(found[1])
            text = code.deepcopy()
            if entry is not None and entry.docname != page:
                link = make_refnode(self.app.builder, page, entry.docname, entry.node_id, text)
            elif entry is None and address is not None:
                link = nodes.reference("", "", text, internal=False, refuri=address)
            else:
                continue
            code.replace_self(link)
        self._link_types(own)

    def _link_types(self, own: dict[str, ObjectEntry]) -> None:
        """Link classes in the types of parameters and results, such as "Predictions or None"."""
        page = self.env.docname
        for text in list(self.document.findall(nodes.Text)):
            if not _is_inside(text, nodes.classifier, nodes.term):
                continue
            parts: list[nodes.Node] = []
            for word in re.split(r"(\w+)", text):
                part, entry = nodes.Text(word), own.get(word)
                if entry and entry.objtype in ("class", "exception") and entry.docname != page:
                    part = make_refnode(self.app.builder, page, entry.docname, entry.node_id, part)
                parts.append(part)
            if not _is_inside(text, nodes.reference):
                text.parent.replace(text, parts)


def find_short_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.TextElement
) -> nodes.reference | None:
    """Resolve the short names in docstrings' first lines, which the index repeats elsewhere."""
    entry = _own_names(env).get(node.get("reftarget", ""))
    if entry is None or node.get("refdomain") != "py":
        return None
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, text)


def _is_inside(node: nodes.Node, *kinds: type[nodes.Node]) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_post_transform(LinkNames)
    app.connect("builder-inited", find_written_pages)
    app.connect("missing-reference", find_short_name)
    app.connect("env-updated", note_definitions, priority=400)  # before names in code are looked up
    return {"parallel_read_safe": True, "parallel_write_safe": True}
