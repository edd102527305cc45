"""What a policy is saved as: whole files, and a Python file that decides by itself."""

from __future__ import annotations

import inspect
import pprint
from pathlib import Path
from typing import Any

from skselect import _gate


def python_source(stored: dict[str, Any], certificate: str) -> str:
    """Return the source of `_gate`, with a policy and its promise in words in their place."""
    source = inspect.getsource(_gate)
    start, end = source.index("\nPOLICY: ") + 1, source.index("\n# The end of the policy")
    policy = pprint.pformat(stored, width=100, compact=True, sort_dicts=False)
    words = pprint.pformat(certificate, width=100)
    slot = f"POLICY: dict[str, Any] = {policy}\n\nCERTIFICATE = {words}\n"
    return source[:start] + slot + source[end:]


def write_whole(path: Path, text: str) -> None:
    """Write a file or nothing: a half-written policy must never be found."""
    if not path.parent.is_dir():
        raise ValueError(f"path: there is no folder {str(path.parent)!r} to write into.")
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
