"""What the reruns of the papers share: their options, and runs that can be resumed.

A rerun is a list of runs, each named by plain values. Finished runs are kept in a tidy CSV file,
one row per result; a second call continues where the first one was interrupted.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

#: Okabe and Ito's: distinct for colour-blind readers and, with line styles, in print.
COLORS = ("#0072B2", "#009E73", "#CC79A7", "#D55E00", "#E69F00", "#56B4E9", "#000000")


def command_line(description: str | None, name: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all reruns have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a smaller version, within minutes")
    parser.add_argument("--out", type=Path, default=Path("results") / name, metavar="DIR",
                        help="folder for tables and pictures (default: %(default)s)")  # fmt: skip
    parser.add_argument("--data-home", type=Path, default=None, metavar="DIR",
                        help="folder of Parquet files; see tables/README.md")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--afresh", action="store_true", help="forget the runs of earlier calls")
    return parser


def resumed(
    path: Path,
    keys: Iterable[dict[str, Any]],
    run: Callable[..., list[dict[str, Any]]],
    *,
    jobs: int = 2,
    afresh: bool = False,
) -> pd.DataFrame:
    """Do the runs that `path` does not hold yet, and return the results of all of them.

    Parameters
    ----------
    path : Path
        CSV file that grows by the rows of each finished run.
    keys : iterable of dict
        The plain values that name a run; they are its keyword arguments.
    run : callable
        Returns a list of dicts, one per result; the key is put in front of each.
    jobs : int, default=2
        Processes.
    afresh : bool, default=False
        Whether to forget what `path` holds.
    """
    wanted = list(keys)
    path.parent.mkdir(parents=True, exist_ok=True)
    if afresh:
        path.unlink(missing_ok=True)
    known = pd.read_csv(path) if path.exists() else pd.DataFrame()
    names = list(wanted[0])
    done = set(_named(known, names))
    missing = [key for key in wanted if tuple(map(str, key.values())) not in done]
    finished = Parallel(n_jobs=jobs, return_as="generator_unordered")(
        delayed(_kept)(run, key) for key in missing
    )
    for key, rows in tqdm(finished, total=len(missing), desc=path.stem, disable=not missing):
        table = pd.DataFrame([{**key, **row} for row in rows])
        known = pd.concat([known, table], ignore_index=True)
        # Written to another file and moved, so that an interrupted call leaves no partial file.
        known.to_csv(path.with_suffix(".part"), index=False)
        path.with_suffix(".part").replace(path)
    mine = {tuple(map(str, key.values())) for key in wanted}
    return known[[named in mine for named in _named(known, names)]].reset_index(drop=True)


def _named(table: pd.DataFrame, names: list[str]) -> list[tuple[str, ...]]:
    """Return the key of each row, as text."""
    if table.empty:
        return []
    return list(table[names].astype(str).itertuples(index=False, name=None))


def _kept(run: Callable[..., Any], key: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    return key, run(**key)


def save(figure: Any, path: Path) -> None:
    """Write a picture of 64 colours, which are enough and a third of the size."""
    from PIL import Image

    figure.savefig(path, dpi=110)
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(64)
    few.save(path, optimize=True)
    print(f"\nwrote {path}")
