"""Write docs/api/command_line.rst from the parser of the command line; the build calls it."""
# ruff: noqa: SLF001  (argparse has no public way to list what a parser reads)

import argparse
import re
from pathlib import Path

from skselect import cli
from skselect.cli import main

HEAD = f"""
Command line
============

``pip install`` adds the command ``skselect``. ``skselect --help`` and ``skselect tune --help`` say
the same as this page, which is written from the program.

.. list-table::
   :header-rows: 1

   * - exit code
     - meaning
   * - 0
     - done: written, no breach of the guarantee is found, no alarm
   * - {cli.WRONG_INPUT}
     - wrong input; a message says what, and nothing is written
   * - {cli.INFEASIBLE}
     - *tune*: no threshold meets the target; nothing is written
   * - {cli.BROKEN}
     - *evaluate*, *monitor*: the guarantee is broken
   * - {cli.OPEN}
     - *evaluate*: in doubt, or not tested; *monitor*: it cannot go on without labels that are overdue; *tune*:
       the certificate is an estimate; *apply*: cases must ask a further stage of a cascade
   * - {cli.INTERRUPTED}
     - interrupted; nothing is written

"""


def _escaped(text: str) -> str:
    return re.sub(r"([*`|_\\])", r"\\\1", text)


def _prose(text: str) -> list[str]:
    """Return help as rst. Indented lines are code; after them prose begins anew."""
    lines, was_code = [], False
    for line in text.splitlines():
        is_code = line.startswith("  ") or (was_code and not line)
        if is_code and not was_code:
            lines += ["", ".. code-block:: bash", ""]
        if was_code and not is_code:
            lines.append("")
        lines.append(f"   {line[2:]}" if is_code else _escaped(line))
        was_code = is_code
    return [*lines, ""]


def _command(name: str, parser: argparse.ArgumentParser) -> list[str]:
    formatter = argparse.HelpFormatter(parser.prog)
    lines = ["", name, "-" * len(name), "", parser.description, "", *_prose(parser.epilog or "")]
    lines += [f".. program:: {parser.prog}", ""]
    for action in parser._actions:
        values = formatter._format_args(action, action.dest.upper())
        names = ", ".join(f"{option} {values}".strip() for option in action.option_strings)
        is_needed = action.required and action.option_strings
        text = _escaped(formatter._expand_help(action)) + (" (required)" if is_needed else "")
        if action.dest != "help":
            lines += [f".. option:: {names or values}", "", f"   {text}", ""]
    return lines


def write_page(path: Path) -> None:
    """Write the page, unless it is the same as before."""
    parser = main.make_parser()
    [commands] = [action.choices for action in parser._actions if action.dest == "command"]
    lines = [line for name, command in commands.items() for line in _command(name, command)]
    text = HEAD + "\n".join(lines)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
