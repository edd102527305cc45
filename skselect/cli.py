"""The command line: ``skselect demo``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

_EXAMPLES = """examples:
  skselect demo
  skselect demo --data loans.parquet --target defaulted --max-risk 0.05 --out results
"""


def _version() -> str:
    try:
        return metadata.version("skselect")
    except metadata.PackageNotFoundError:  # run from a folder that is not installed
        return "unknown"


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="skselect",
        description="Selective classification: let a classifier say 'I don't know'.",
    )
    parser.add_argument("--version", action="version", version=f"skselect {_version()}")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="train, calibrate and certify a classifier on one table",
        description="Train gradient boosting on a table, calibrate it, certify a threshold on "
        "fresh rows, and show what abstaining gains.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options: list[tuple[str, dict[str, Any]]] = [
        ("--data", {"type": Path, "metavar": "FILE",
                    "help": "CSV or Parquet table (default: scikit-learn's digits)"}),
        ("--target", {"metavar": "COLUMN", "help": "the column to predict, with --data"}),
        ("--max-risk", {"type": float, "default": 0.02, "metavar": "R",
                        "help": "largest share of wrong answers (default: %(default)s)"}),
        ("--delta", {"type": float, "default": 0.05,
                     "help": "probability that the certificate fails (default: %(default)s)"}),
        ("--out", {"type": Path, "default": Path("skselect-demo"), "metavar": "DIR",
                   "help": "folder for the results (default: %(default)s)"}),
        ("--seed", {"type": int, "default": 0, "help": "random seed (default: %(default)s)"}),
    ]  # fmt: skip
    for name, settings in options:
        demo.add_argument(name, **settings)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 after a clear message."""
    given = make_parser().parse_args(arguments)
    # Imported late, so that --help answers at once.
    from skselect.demo import DemoOptions, run  # noqa: PLC0415

    options = DemoOptions(
        given.data, given.target, given.max_risk, given.delta, given.out, given.seed
    )
    try:
        return run(options)
    except ValueError as error:
        print(f"skselect: {error}", file=sys.stderr)
        return 2
