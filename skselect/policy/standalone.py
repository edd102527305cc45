"""Writes a policy as one Python file that decides with numpy alone.

The file holds the text of :mod:`skselect._lib.decide` and :mod:`skselect.policy.gate` below their
imports, the same for every policy, and then the policy as a literal.
"""

from __future__ import annotations

import ast
import hashlib
import pprint
from functools import cache
from importlib.resources import files
from typing import Any

_HEAD = '''"""Decide by a policy: from raw scores to an answer, or none, for each row.

    from gate import decide
    decide(y_proba)["label"]                 # the answers, None where the policy abstains
    decide(y_pred=y, confidence=c)["label"]  # for answers that come with a confidence

skselect wrote this file, which needs numpy alone, and Python 3.10 or newer. `POLICY`, below, holds
what the policy file holds, and `CERTIFICATE` what is guaranteed; all else is the same for every
policy. It decides as skselect does, bit by bit, on the same kind of processor with the same numpy;
else the last bit of exp and log may differ.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import warnings
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from inspect import currentframe
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
'''

_FOOT = """
policy = ready()

if __name__ == "__main__":
    check_file()
"""


def write_source(stored: dict[str, Any], certificate: str) -> str:
    """Return the Python file of a policy, as :meth:`AbstentionPolicy.to_python` saves it.

    Parameters
    ----------
    stored : dict
        The policy as its JSON file holds it.
    certificate : str
        What is guaranteed, in words.
    """
    digest = hashlib.sha256(ascii((stored, certificate)).encode()).hexdigest()
    data = "".join(
        f"{name} = {pprint.pformat(value, width=100, compact=True, sort_dicts=False)}\n"
        for name, value in [("POLICY", stored), ("CERTIFICATE", certificate), ("DIGEST", digest)]
    )
    return "".join(
        [
            _HEAD,
            _below_imports("_lib/decide.py"),
            _below_imports("policy/gate.py"),
            "\n\n",
            data,
            _FOOT,
        ]
    )


@cache
def _below_imports(name: str) -> str:
    """Return the text of a file of the package after its last import."""
    text = files("skselect").joinpath(name).read_text("utf-8")
    imports = [x for x in ast.parse(text).body if isinstance(x, ast.Import | ast.ImportFrom)]
    return "".join(text.splitlines(keepends=True)[imports[-1].end_lineno :])
