"""The command line: ``skselect demo | evaluate | report | tune | apply | monitor``."""

from __future__ import annotations

import argparse
import codecs
import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Any, NoReturn

from skselect import __version__
from skselect._lib.files import import_extra, naming_output
from skselect._lib.notebook import terminal_width
from skselect.cli import CUT_SHORT, INFEASIBLE, INTERRUPTED, WRONG_INPUT
from skselect.cli.options import OPTIONS, DemoOptions
from skselect.exceptions import InfeasibleTargetError

_DEMO = """examples:
  skselect demo
  skselect demo --data loans.parquet --label defaulted --target 0.05 --out results

It trains, certifies and tests on one table. What it tries after the certificate is an exploration:
nothing is guaranteed for it.
"""
_EVALUATE = """The table has one row per labelled case: a column with the true label, and one column
of probabilities per class, or a column with the answer and one with its confidence. Where nobody
wrote the true label, a column may say which answers are right: --verdict.

examples:
  skselect evaluate answers.csv --label truth --proba p_no p_yes --classes no yes
  skselect evaluate answers.parquet --label truth --html report.html
      (columns of probabilities that are named like the classes need no --proba)
  skselect evaluate llm.csv --label truth --answer said --confidence-column score \\
      --threshold 0.8
  skselect evaluate new.csv --label truth --policy policy.json --subgroups site --id case \\
      --features age site
  skselect evaluate export.csv --label truth --separator ";" --decimal , --encoding cp1252

With --policy the first lines say whether its guarantee still holds, and so does the exit code.

exit codes: 0 confirmed or no breach found (or no guarantee), 4 broken, 5 in doubt or not tested
(too few rows, or they chose the threshold); 2 wrong input, 130 interrupted
"""
_REPORT = """The same as skselect evaluate --brief --html report.html.

example:
  skselect report new.csv --label truth --policy policy.json --html july.html

exit codes: as for skselect evaluate
"""
_TUNE = """The rows must be labelled and new to the model: they did not train or calibrate it.

examples:
  skselect tune answers.csv --label truth --target 0.02 --proba p_no p_yes \\
      --classes no yes
  skselect tune answers.parquet --label truth --target 0.05 --subgroups site --out sites.json
  skselect tune cases.csv --label truth --objective system_risk --target 0.06 --reviewer person
  skselect tune llm.jsonl --verdict judged --answer text --confidence-column score \\
      --target 0.1
  skselect tune cases.csv --verdict judged --answer text --confidence-column score \\
      --target 0.05 --unjudged wrong --next 50
  skselect tune cheap.csv strong.csv --id case --label truth --proba p_no p_yes --target 0.03

Several tables are the stages of a cascade: each case asks the cheapest model first, and goes on
where that is not sure enough. The files name the stages. All hold the same cases and columns; their
rows are joined by --id, in the order of the first table. A third of the rows, drawn by chance with
the seed 0, sets where a stage keeps a case; the others certify.

A policy is replaced only if --out names it, and rows to judge only if --out-next does. A refusal
never replaces a policy with a certificate.

exit codes: 0 written, 2 wrong input, 3 no threshold meets the target, 5 written, but the
certificate is an estimate (its first line says why) or more verdicts are needed (--unjudged),
130 interrupted (nothing is written)
"""
_APPLY = """The command appends the columns decision (empty where a row is deferred), suggestion,
accepted, confidence and threshold. It drops the columns of probabilities and keeps all others. A
policy with a shortlist also appends the column shortlist: the probable classes of a deferred row,
the most probable first, with | between them. For answers with a confidence it appends decision and
accepted only. With --capacity it appends over_capacity. The whole table is in memory: for a larger
one use skselect.dask.decide in Python.

A row is deferred if it lacks a probability, the answer or the confidence, or if its subgroup is
unknown. A number is missing if its cell is empty or contains NA, N/A, NaN, null, None or -; a text
only if its cell is empty: None is an answer. CSV is written as it is read: with the same separator,
decimal sign and encoding. It cannot hold lists and bytes: name a .parquet file for these. Text is
copied unchanged, so a spreadsheet may run cells such as =HYPERLINK(...) as formulas. If the policy
has a learned confidence that asks other models, name the columns suggestion and confidence of
policy.decide: --answer, --confidence-column.

For the policy of a cascade give a table of each stage, in their order. The later ones need only the
cases that ask them: --ask says which these are. The command also appends the column stage.

examples:
  skselect apply new.csv --policy policy.json --prefix gate_ > decided.csv
  skselect apply today.csv --policy policy.json --capacity 200 --out decided.csv
  skselect apply cheap.csv --policy policy.json --id case --ask ask.csv
  skselect apply cheap.csv strong.csv --policy policy.json --id case --out decided.csv

exit codes: 0 written, 2 wrong input, 5 cases must ask a further stage: --ask lists them, and no
decisions are written; 6 written, but the policy is REFUSED and answers nothing; 130 interrupted
(nothing is written), 141 the reader of standard output, such as head, stopped early
"""
_MONITOR = """The log has one row per decided case: its name, its time, what the model said, and
its true label, which is empty until somebody knows it. The command reads the whole log, in one file
or several, and computes everything again. Run it as often as you like, say every night. The order
of files and rows does not matter: cases count in the order of their times, then of their names. A
case is a name and a time. Its label may also come in a further row. Of two labels of a case that of
the later file or row counts; the answer says how many cases have two.

Cases before --since do not count; the answer says how many there are. The guarantee of the monitor
is about one beginning and about labels as they stand in the end: do not move --since, and keep all
rows since then in the log. With --history each run appends a line to a file. If a run raised an
alarm and the log raises none any more, the command names it and still ends with exit code 4. A
history is of one policy; it notices another beginning or target, and a log that has lost cases.

A row that holds a label alone brings it to the decision of its name and time or, at another time,
to the only decision of its name. If more than 3 such labels, and 1 % of all labels, find none, the
join is broken. (In a file where labels stand beside decisions, a row with a label alone is a
case that nobody decided.)

STALE: no decision is newer than --max-age. That is told from the times of the rows only.

Times are numbers, or dates in ISO 8601 (2026-01-31, 2026-01-31T09:30:00+01:00; UTC if there is no
zone); --dayfirst and --time-format read other dates. A date more than a day after now is refused.
With dates --label-delay has a unit, such as 30D. --now stands for the clock, also in the history.
Numbers have no clock: pass --now, or the last row counts as now. Numbers and verdicts are missing
if cells are empty or contain NA, N/A, NaN, null, None or -; labels and answers in words only if
their cells are empty. Rows that lack a probability, the answer or the confidence are deferred and
left out.

examples:
  skselect monitor log.csv --policy policy.json --label truth --time decided --id claim \\
      --label-delay 30D --history runs.csv
  skselect monitor 2026-*.csv --policy policy.json --label fraud --time decided --id claim \\
      --label-delay 30D --unlabelled correct --max-age 2D
  skselect monitor log.csv --policy policy.json --label truth --time decided --id claim \\
      --label-delay 30D --batch month --html month.html
  skselect monitor log.parquet --policy policy.json --label truth --time decided --id claim \\
      --label-delay 30D --audited drawn --min-audit-proba 0.2

exit codes: 0 no alarm, 4 alarm: the guarantee is broken; 5 STALE, labels without decisions, a
history that does not go on, or cases older than --label-delay have no label and the others wait for
them; 2 wrong input, 130 interrupted
"""


def _number(text: str) -> int | float | str:
    """Return a number where it is one, such as 1000 cases, else the text, such as 1D."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text  # what reads it refuses any other text


def _named(text: str) -> tuple[str, int | float | str]:
    """Return a name and its number, such as minutes=6."""
    name, sign, number = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"{text!r} has no name: write minutes={text}, say")
    return name, _number(number)


def _separator(text: str) -> str:
    """Return the sign between cells; a tab may be typed as backslash and t."""
    sign = "\t" if text in ("\\t", "tab") else text
    if len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in '"\r\n.':
        raise argparse.ArgumentTypeError(f'{text!r} is not one sign, such as ";" or "\\t"')
    return sign


def _encoding(text: str) -> str:
    """Return the name by which Python knows an encoding of text."""
    try:
        ("a,b\n" * 99).encode(text)  # rot13 and hex are none, and idna has no long texts
        return codecs.lookup(text).name
    except (LookupError, UnicodeError) as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no encoding of text that Python knows, such as utf-8, cp1252 or utf-16"
        ) from error


Option = tuple[str, dict[str, Any]]


def _option(name: str, meaning: str, **settings: Any) -> Option:
    """Return an option (or a position) with what `add_argument` takes."""
    return name, {"help": meaning, **settings}


def _column(name: str, meaning: str, **settings: Any) -> Option:
    return _option(name, meaning, metavar="COLUMN", **settings)


def _file(name: str, meaning: str, **settings: Any) -> Option:
    return _option(name, meaning, type=Path, metavar="FILE", **settings)


# fmt: off
# The last options of every command.
_CSV: list[Option] = [
    _option("--separator", "the sign between the cells of a CSV file, such as \";\" (default: a "
            "comma, in .tsv files a tab)", type=_separator, metavar="SIGN"),
    _option("--decimal", "the decimal sign of its numbers, . or , (default: a point)",
            choices=[".", ","], default=".", metavar="SIGN"),
    _option("--encoding", "the encoding of its text, such as cp1252 (Windows), utf-16 or latin-1 "
            "(default: %(default)s, with or without a byte order mark)", type=_encoding,
            default="utf-8", metavar="NAME"),
]
_TABLE: list[Option] = [
    _option("table", "CSV, JSON (an array of objects, or one object per line, all with the same "
            "keys), Parquet or Feather file, also packed (.gz, .bz2, .xz, .zst, a .zip of one "
            "file), the first sheet of an Excel file (.xlsx, .xlsm; needs openpyxl), or - for "
            "standard input. Errors count its rows from 1, the first one below the header",
            type=Path, metavar="TABLE"),
]
_TABLES: list[Option] = [
    _option("table", f"{_TABLE[0][1]['help']}. Or one table for each stage of a cascade, the "
            "cheapest model first", type=Path, metavar="TABLE", nargs="+"),
]
_INPUTS: list[Option] = [
    _column("--proba", "columns of the probabilities, in the order of the classes (of two classes "
            "the second is enough)", nargs="+"),
    _column("--answer", "instead of --proba: the column of the model's answer; evaluate and report "
            "also take it beside --proba, for answers by another cut-off than the largest one"),
    _column("--confidence-column", "with --answer: the column of its confidence"),
    _option("--classes", "the classes in the order of --proba (default: matched by name, else "
            "sorted)", nargs="+", metavar="CLASS"),
    _column("--subgroups", "columns of the subgroups", nargs="+"),
]
_LABELLED: list[Option] = [
    _column("--label", "the column of the true label"),
    _column("--verdict", "instead of --label, with --answer: the column that says whether the "
            "answer is right (right/wrong, correct/incorrect, true/false, yes/no, pass/fail, 1/0). "
            "Rows with an empty cell are left out (unless tune has --unjudged): those with a "
            "verdict must be drawn at random"),
    _option("--right", "with --verdict: its words for right, if they are others, such as good",
            nargs="+", metavar="WORD"),
    _option("--wrong", "with --right: its words for wrong", nargs="+", metavar="WORD"),
]
_EVALUATED: list[Option] = [
    *_TABLE, *_LABELLED, *_INPUTS,
    _file("--policy", "report on the decisions of this policy, its calibration included"),
    _column("--reviewer", "with --policy of machine and reviewer together: the column of what the "
            "reviewer answers"),
    _option("--threshold", "instead of --policy: accept rows of at least this confidence",
            type=float),
    _column("--id", "the column of the cases' names, which the most confident errors show "
            "(default: the number of the row)"),
    _column("--features", "columns to show beside the most confident errors", nargs="+"),
    _option("--audits", "with --policy: cases a day, the share of its answers that is audited, and "
            "the days until their labels come, such as 1000 0.02 30; the report says which risk "
            "skselect monitor would notice within 90 days", type=float, nargs=3,
            metavar=("CASES", "SHARE", "DAYS")),
    _option("--reviewing", "what is known of the reviewer, all or some of: error=.03 (the share of "
            "the deferred cases that he gets wrong) minutes=6 (of a case) hourly_cost=40 hours=40 "
            "cases=3000 (hours for so many cases); the report says what each risk target takes, "
            "and what the hours leave to the machine", type=_named, nargs="+",
            metavar="NAME=NUMBER"),
    _file("--csv", "write the metrics as a table"),
    _option("--title", "title of the report (default: the name of the table)"),
]
_COMMANDS: dict[str, tuple[str, str, list[Option]]] = {
    "demo": ("train, calibrate and certify a classifier on one table", _DEMO, [
        _file("--data", "CSV, Parquet or Excel table (default: scikit-learn's digits)"),
        _column("--label", "with --data: the column to predict"),
        _option("--target", "largest share of wrong answers (default: %(default)s)", type=_number,
                default=0.02, metavar="RISK"),
        _option("--delta", "probability that the certificate fails (default: 0.05)", type=float,
                default=0.05),
        _option("--out", "folder for the results (default: %(default)s)", type=Path,
                default=Path("skselect-demo"), metavar="DIR"),
        _option("--seed", "random seed (default: %(default)s)", type=int, default=0),
    ]),
    "evaluate": ("report on a table of predictions", _EVALUATE, [
        *_EVALUATED,
        _file("--html", "write the report as a web page, with a slider for the threshold"),
        _option("--brief", "print only the verdict and what a risk target costs",
                action="store_true"),
    ]),
    "report": ("write the report on a table of predictions as a web page", _REPORT, [
        *_EVALUATED,
        _file("--html", "the page (default: %(default)s)", default=Path("report.html")),
    ]),
    "tune": ("choose a threshold with a certificate; write it as a policy", _TUNE, [
        *_TABLES, *_LABELLED, *_INPUTS,
        _option("--unjudged", "wrong: rows without a label or verdict count as errors until "
                "they are judged, in any order, the surest first at best; run tune again "
                "whenever more are", choices=["wrong"]),
        _option("--next", "with --unjudged wrong: write so many rows that are to be judged next",
                type=int, metavar="ROWS"),
        _file("--out-next", "where to (default: next.csv, if there is none yet)"),
        _column("--id", "the column of the cases' names: refuse a name that occurs twice; of "
                "several tables, it joins them"),
        _option("--costs", "with several tables: what asking each stage adds to the cost of a case "
                "(default: 0 1 ...)", type=float, nargs="+", metavar="COST"),
        _option("--max-loss", "with several tables: how much coverage the cascade may lose against "
                "its last stage alone (default: 0.01)", type=float, metavar="SHARE"),
        _option("--objective", "risk, generalized_risk, coverage, system_risk, cost, or a metric "
                "such as cwsa_plus (default: risk); repeat it, each with its --target, for "
                "guarantees that one threshold keeps together", action="append", metavar="NAME"),
        _option("--target", "the value that the objective must meet, such as 0.02", type=_number,
                action="append"),
        _option("--delta", "probability that the certificate fails (default: 0.05)", type=float),
        _column("--reviewer", "with --objective system_risk: the column of a reviewer's answers"),
        _option("--deferred-error", "instead of --reviewer: the share of the deferred cases that "
                "the reviewer gets wrong, such as 0.03", type=float, metavar="SHARE"),
        _option("--overall-error", "instead of --reviewer: the largest share of all cases that "
                "are deferred and then wrong, or errors and rows of a count, such as 12 600",
                type=_number, nargs="+", metavar=("SHARE", "ROWS")),
        _option("--max-analyses", "how often you will run tune at most while you add rows to this "
                "table, this run included; plan it before the first run; all runs share --delta "
                "(default: 1)", type=int, metavar="K"),
        _option("--seed", "seed of the rows that --shortlist sets apart (default: any), and of the "
                "coins of --audit-proba and --reviewer (default: 0)", type=int),
        _option("--assume", "independent: the order of the rows means nothing, although it shows "
                "in losses or confidences (the table is sorted by site, say)", nargs="+",
                default=(), choices=["independent"]),
        _option("--method", "how a threshold is found and certified, such as band", metavar="NAME"),
        _column("--audit-proba", "with --verdict: the column of the probability with which each "
                "case was drawn for a verdict (default: the same for all cases)"),
        _option("--min-audit-proba", "the least of these probabilities", type=float, metavar="P"),
        _option("--min-coverage", "smallest share of accepted rows (default: 0.1 for risk, 0.5 for "
                "a metric)", type=_number, metavar="SHARE"),
        _option("--threshold-range", "for cwsa and cwsa_plus: try thresholds of at least LOW and "
                "below HIGH (default: 0.5 1, or 0 1 where 0.5 accepts less than --min-coverage)",
                type=float, nargs=2, metavar=("LOW", "HIGH")),
        _option("--confidence", "of probabilities: max_proba, margin, entropy or gini (default: "
                "max_proba)", metavar="NAME"),
        _option("--shortlist", "name the probable classes of each deferred row, so that the true "
                "one is among them in this share of such rows, such as 0.95 (an estimate; 0.95 0.5 "
                "sets half of the rows apart for it: exact)", type=float, nargs="+",
                metavar=("LEVEL", "SHARE")),
        _file("--out", "the policy (default: policy.json, if there is none yet), - for standard "
              "output"),
        _file("--python", "also write the policy as one Python file"),
    ]),
    "apply": ("decide the rows of a table by a policy", _APPLY, [
        *_TABLES,
        _file("--policy", "the policy: a file of skselect tune or policy.to_json, - for standard "
              "input", required=True),
        *_INPUTS,
        _column("--id", "with the policy of a cascade: the column of the cases' names"),
        _file("--ask", "with the policy of a cascade: a CSV file of the cases that must ask a "
              "further stage, and of that stage; decisions are written once there are none"),
        _file("--python", "refuse to decide unless this Python file belongs to the policy"),
        _file("--out", ".csv, .tsv, .parquet or .pq (default, or -: CSV on standard output)"),
        _option("--capacity", "defer at most so many rows, the least sure ones; the others are "
                "answered, marked over_capacity, and no guarantee covers them", type=int,
                metavar="ROWS"),
        _option("--prefix", "text to put before the names of the new columns", default=""),
    ]),
    "monitor": ("watch whether a policy keeps its guarantee, from a log that grows", _MONITOR, [
        _option("table", f"{_TABLE[0][1]['help']}; or several such files, in any order",
                type=Path, metavar="TABLE", nargs="+"),
        *_LABELLED,
        _column("--time", "the column of the times of the decisions", required=True),
        _option("--dayfirst", "read dates such as 31.01.2026 or 31/01/2026", action="store_true"),
        _option("--time-format", "read dates such as \"%%d %%b %%Y %%H:%%M\"", metavar="FORMAT"),
        _file("--policy", "the policy: a file of skselect tune or policy.to_json", required=True),
        _option("--since", "cases before this time do not count (default: when the policy was "
                "made)", type=_number, metavar="TIME"),
        _file("--history", "append a line for this run to a CSV file; an alarm in it stays"),
        _option("--max-age", "the log is STALE if its newest decision is older, such as 2D "
                "(default: twice the longest usual gap between days with decisions in the last 90 "
                "days, at least 2 days, 8 as long as the log is shorter than two weeks, at most "
                "14, or one and a half median gaps of batches that are further apart)",
                type=_number, metavar="AGE"),
        _option("--now", "the present time (default: that of the clock)", type=_number,
                metavar="TIME"),
        _column("--id", "the column of the cases' names (default: id)"),
        *_INPUTS,
        _option("--target", "largest risk (default: what is certified)", type=_number),
        _option("--delta", "chance of a false alarm, for all time (default: that of the "
                "certificate, else 0.05)", type=float),
        _option("--label-delay", "age at which a label should be known, such as 30D", type=_number,
                required=True, metavar="AGE"),
        _option("--unlabelled", "what it means that a case of that age has no label: wait for it, "
                "or the answer was correct (default: %(default)s)", default="wait",
                metavar="wait|correct"),
        _option("--other-labels", "what becomes of a label that is none of the classes: refuse it, "
                "or any answer to such a case is wrong (default: %(default)s)", default="refuse",
                metavar="refuse|wrong"),
        _option("--batch", "how many cases are compared with those of the tuning at a time, or a "
                "length of time such as 1D; day, week or month prints a table of these, too "
                "(default: %(default)s)", type=_number, default=1000, metavar="N"),
        _file("--html", "write the answer, the table of the batches and a picture as a web page"),
        _column("--audited", "the column that is true where a case was drawn for an audit"),
        _column("--audit-proba", "the column of the probability with which it was drawn"),
        _option("--min-audit-proba", "the smallest of these probabilities, or that of all cases",
                type=float, default=1.0, metavar="P"),
    ]),
}
# fmt: on


class _Parser(argparse.ArgumentParser):
    """A parser that says where the options stand."""

    def _parse_optional(self, arg_string: str) -> Any:
        """Take what begins with one hyphen as a value, unless it is an option: -1D, -, -x."""
        is_option = arg_string in self._option_string_actions
        if arg_string[:1] == "-" and arg_string[:2] != "--" and not is_option:
            return None
        return super()._parse_optional(arg_string)

    def error(self, message: str) -> NoReturn:
        """Refuse what was typed."""
        if message.startswith("unrecognized arguments"):
            message += (
                ". An option that you may repeat has one value each time, such as --objective risk "
                "--objective coverage"
            )
        super().error(f"{message}. The options stand in: skselect COMMAND --help")


@cache
def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = _Parser(
        prog="skselect",
        description="Selective classification: let a classifier say 'I don't know'.",
    )
    parser.add_argument("--version", action="version", version=f"skselect {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (purpose, epilog, options) in _COMMANDS.items():
        command = commands.add_parser(
            name, help=purpose, description=_fill(f"{purpose[0].upper()}{purpose[1:]}."),
            epilog=_fill(epilog),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        either: Any = command
        if "--verdict" in dict(options):
            either = command.add_mutually_exclusive_group(required=True)
        for option, settings in [*options, *_CSV]:
            owner = either if option in ("--label", "--verdict") else command
            owner.add_argument(option, **settings)
    return parser


def _fill(text: str) -> str:
    """Return prose in lines of the terminal's width, indented lines and empty ones as they are."""
    filled: list[str] = []
    for is_prose, group in groupby(text.splitlines(), lambda line: line[:1].strip() != ""):
        lines = list(group)
        if is_prose:
            lines = [fill(" ".join(lines), terminal_width())]
        filled += lines
    return "\n".join(filled)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    is_closed = sys.stdout is None
    with _open_streams():
        parsed = make_parser().parse_args(arguments)
        code = CUT_SHORT
        try:
            with _stopped_by_signals(), naming_output("standard output"):
                code = _run(parsed, is_closed)
                sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as `head`, has closed the pipe, perhaps early
            _abandon_output()
        except KeyboardInterrupt:
            _say("interrupted.")
            return INTERRUPTED
        except InfeasibleTargetError as error:
            reason = _name_options(error.reason, parsed)
            _say(f"{reason} Nothing is written.")
            return INFEASIBLE
        except (ValueError, ImportError, OSError) as error:
            _say(_name_options(error, parsed))
            if isinstance(error, OSError):
                _abandon_output()
            return WRONG_INPUT
        return code


@contextmanager
def _open_streams() -> Iterator[None]:
    """Send output that was closed by ``>&-`` to os.devnull; no letter stops a message."""
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        redirect_stdout(sys.stdout or nowhere),
        redirect_stderr(sys.stderr or nowhere),
        _taking_any_letter(sys.stdout),
        _taking_any_letter(sys.stderr),
    ):
        yield


@contextmanager
def _taking_any_letter(stream: Any) -> Iterator[None]:
    """Have a stream write a code for a letter that its encoding lacks."""
    if not isinstance(stream, io.TextIOWrapper):
        yield
        return
    usual = stream.errors
    stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        with suppress(OSError, ValueError):  # its reader may be gone
            stream.reconfigure(errors=usual)


def _abandon_output() -> None:
    """Discard unwritten output, which Python would try to write again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Stop at SIGTERM and SIGHUP as at Ctrl-C, so that partial files are removed."""
    both = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}  # Windows has no SIGHUP
    is_main = threading.current_thread() is threading.main_thread()  # it alone may set handlers
    numbers = []
    for number in both:
        if is_main and signal.getsignal(number) is signal.SIG_DFL:
            numbers.append(number)
            signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _stop(number: int, _: object) -> None:
    sys.exit(128 + number)


def _run(parsed: argparse.Namespace, is_closed: bool) -> int:
    """Call the command, which is imported late to keep --help fast."""
    if is_closed and parsed.command == "apply" and str(parsed.out or "-") == "-":
        raise ValueError("standard output is closed; name a file: --out decided.csv.")
    import_extra("pyarrow", "pyarrow")  # it reads and writes tables
    options = OPTIONS[parsed.command](**vars(parsed))
    if isinstance(options, DemoOptions):
        from skselect.cli.demo import demo  # noqa: PLC0415

        return demo(options)
    from skselect.cli import commands  # noqa: PLC0415

    def note(message: object) -> None:
        _say(f"note: {_name_options(message, parsed)}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: note(message)
        command = getattr(commands, options.command)
        return int(command(options))


def _say(message: object) -> None:
    print(f"skselect: {message}", file=sys.stderr)


def _name_options(message: object, parsed: argparse.Namespace) -> str:
    """Return a message with options in place of the arguments that it names.

    These are the argument that a message begins with, and all whose names are no English words.
    """
    text = str(message)
    first_word, _, _ = text.partition(" ")
    subject = first_word.rstrip(":")
    for name in vars(parsed):
        option = f"--{name.replace('_', '-')}"
        if name == subject:
            text = text.replace(name, option, 1)
        if "_" in name:
            text = re.sub(rf"(?<!['\"\w]){name}\b(=(?=[ .]))?", option, text)
        text = re.sub(rf"\b{name}='(\w+)'", rf"{option} \1", text)
    return text
