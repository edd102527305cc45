"""The attributes and methods of a class on its page, in the order in which users need them.

Attributes that a docstring describes become entries of their own, so that a page's contents, the
search and links know them.
"""

import inspect
import re
from collections.abc import Iterator
from functools import cached_property

#: Methods that users call first, in this order. The others follow as in the source, those of base
#: classes last.
FIRST_METHODS = (
    "fit", "partial_fit", "update", "predict", "predict_proba", "score", "decide", "transform",
)  # fmt: skip
#: What of an objective is for users; its other methods are for the rooms that find a threshold.
OF_OBJECTIVES = ("name", "guarantees", "get_params", "set_params")
#: Classes whose members are described elsewhere.
FOREIGN = (
    "BaseEstimator", "ClassifierMixin", "MetaEstimatorMixin", "tuple", "Exception", "BaseException",
    "object",
)  # fmt: skip
#: Methods by which scikit-learn routes metadata.
HIDDEN = re.compile(r"_|get_metadata_routing|set_\w+_request")

_SECTION = re.compile(r"^Attributes\n-+\n(.*?)\n*(?=^\S[^\n]*\n-+$|\Z)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^([\w, ]+?)(?: : (.*))?\n((?:[ \n].*\n?)*)", re.MULTILINE)


def list_members(cls: type) -> str:
    """Return the directives that describe the members of a class, for its page."""
    attributes, methods = find_members(cls)
    lines: list[str] = []
    told: set[str] = set()
    for names, kind, text in read_attributes(cls):
        if text or not set(names) <= set(attributes):
            told.update(names)
            lines += _describe(names, kind, text)
    properties = [name for name in attributes if name not in told]
    # Before the methods stands what `fit` leaves behind, or what there is without a fit.
    early = [name for name in properties if name.endswith("_") or "fit" not in methods]
    lines += [f".. autoproperty:: {name}" for name in early]
    lines += [f".. automethod:: {name}" for name in methods]
    lines += [f".. autoproperty:: {name}" for name in properties if name not in early]
    return "\n".join(f"   {line}".rstrip() for line in lines)


def find_members(cls: type) -> tuple[list[str], list[str]]:
    """Return the names of the documented properties and of the documented methods of a class."""
    names: dict[str, None] = {}
    for base in cls.__mro__:
        if base is not cls and base.__name__ in FOREIGN:
            continue
        names |= dict.fromkeys(vars(base))
    if hasattr(cls, "refuse"):
        names = {name: None for name in OF_OBJECTIVES if name in dir(cls)}
    properties, methods = [], []
    for name in names:
        value = getattr(cls, name, None)
        if HIDDEN.match(name) or not inspect.getdoc(value):
            continue
        if isinstance(value, property | cached_property):
            properties.append(name)
        elif inspect.isroutine(value):
            methods.append(name)
    first = [name for name in FIRST_METHODS if name in methods]
    return properties, first + [name for name in methods if name not in first]


def read_attributes(cls: type) -> Iterator[tuple[list[str], str, str]]:
    """Yield the entries below "Attributes" in a docstring: names, what they are, what is said."""
    section = _SECTION.search(f"{inspect.getdoc(cls)}\n")
    for names, kind, text in _ENTRY.findall(section[1] + "\n" if section else ""):
        yield names.split(", "), kind, inspect.cleandoc(text)


def _describe(names: list[str], kind: str, text: str) -> list[str]:
    """Return the entry of attributes that stand together."""
    first, *others = names
    head = [f".. py:attribute:: {first}", *(f"                  {name}" for name in others), ""]
    said = text.splitlines()
    if kind and text:
        said = [kind, *(f"   {line}" for line in said)]
    elif kind:
        said = [kind]
    return [*head, *(f"   {line}" for line in said), ""]


def drop_attributes(_app, what, _name, _value, _options, lines):
    """Leave the section out of a class's own text: its entries follow below."""
    if what in ("class", "exception"):
        kept = _SECTION.sub("", "\n".join(lines) + "\n")
        lines[:] = [*kept.rstrip().split("\n"), ""]
