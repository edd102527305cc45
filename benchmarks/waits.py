"""What people wait for: the start of commands and services, checks, refusals, many subgroups.

    python benchmarks/waits.py

CPU time, the best of several calls, and the peak memory of processes of their own.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from timing import best_in_turn, children_time, keep_memory, run_python

from skselect import InfeasibleTargetError, Predictions, check_policy, select_threshold

_LOAD = "from skselect import AbstentionPolicy; AbstentionPolicy.from_json('policy.json')"
_LABEL = ["--label", "truth"]
_POLICY = ["--policy", "policy.json"]
_WHEN = ["--id", "case", "--time", "day", "--label-delay", "1D", "--now", "2026-03-28"]
#: The commands of 2,000 rows, after the imports that all need, which take half of their time.
COMMANDS = {
    "import pandas, scipy.special": ["-c", "import pandas, scipy.special"],
    "skselect --help": ["-m", "skselect", "--help"],
    "skselect tune": [
        *("-m", "skselect", "tune", "log.csv"), *_LABEL, "--target", "0.2", "--out", "policy.json",
    ],
    "skselect apply": ["-m", "skselect", "apply", "log.csv", *_POLICY, "--out", "decided.csv"],
    "skselect monitor": ["-m", "skselect", "monitor", "log.csv", *_POLICY, *_LABEL, *_WHEN],
    "skselect evaluate": ["-m", "skselect", "evaluate", "log.csv", *_LABEL],
    "skselect report": ["-m", "skselect", "report", "log.csv", *_LABEL, "--html", "report.html"],
    "load a policy": ["-c", _LOAD],
    "import skselect and all its names": ["-c", "from skselect import *"],
}  # fmt: skip


def write_log(folder):
    """Write a log of 2,000 decided cases."""
    rng = np.random.default_rng(0)
    p = rng.beta(6, 1, 2000)
    log = {
        "case": range(2000),
        "day": pd.date_range("2026-01-01", periods=2000, freq="h").astype(str),
        "truth": np.where(rng.random(2000) < p, "yes", "no"),
        "no": 1.0 - p,
        "yes": p,
    }
    pd.DataFrame(log).to_csv(folder / "log.csv", index=False)


def peak_of(arguments, folder):
    """Return the peak memory of a process, in MB: a process that starts it alone measures it."""
    code = (
        "import resource, subprocess, sys\n"
        "subprocess.run([sys.executable, *sys.argv[1:]], capture_output=True)\n"
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024\n"
        "open('peak', 'w').write(str(peak))"
    )
    run_python("-c", code, *arguments, folder=folder)
    return int((folder / "peak").read_text())


def draw(n, rng):
    """Return rows whose surest tenth is wrong in one case of twenty."""
    confidence = 0.5 + 0.5 * np.sqrt(rng.random(n))
    is_right = rng.random(n) < 0.13 + 0.84 * confidence
    return Predictions.from_verdicts(is_right, confidence)


def read_refusal(rows, target):
    """Ask for a target that nothing meets, and read why."""
    try:
        select_threshold(rows, objective="risk", target=target)
    except InfeasibleTargetError as refusal:
        return str(refusal)
    raise AssertionError("this target should be refused")


def list_acts(rng):
    """Return what is timed in this process."""
    many = draw(100_000, rng)
    policy = select_threshold(draw(20_000, rng), objective="risk", target=0.1).policy
    thousand = draw(1000, rng)
    users = rng.integers(0, 10_000, 100_000)
    sites = rng.integers(0, 1000, 100_000)
    by_site = select_threshold(
        draw(100_000, rng), objective="risk", target=0.2, subgroups=sites, on_infeasible="abstain"
    ).policy
    acts = {
        "check_policy, 1,000 rows": lambda: check_policy(policy, thousand),
        "check_policy, 100,000 rows in 1,000 subgroups": lambda: check_policy(
            by_site, many, subgroups=sites
        ),
        "a risk for each of 10,000 subgroups": lambda: select_threshold(
            many, objective="risk", target=0.2, subgroups=users, on_infeasible="abstain"
        ),
    }
    for n in (1000, 10_000, 100_000, 1_000_000):
        pool = iter([draw(n, rng) for _ in range(6)])
        acts[f"a refusal in words, {n:,} rows"] = lambda pool=pool: read_refusal(next(pool), 0.02)
    return acts


def main():
    """Print all times."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_log(folder)
        starts = {
            start: lambda arguments=arguments: run_python(*arguments, folder=folder)
            for start, arguments in COMMANDS.items()
        }
        best = best_in_turn(starts, 5, clock=children_time)
        for start, seconds in best.items():
            peak = peak_of(COMMANDS[start], folder)
            print(f"{start:48} {seconds:8.2f} s {peak:8} MB", flush=True)
    keep_memory()
    for act, seconds in best_in_turn(list_acts(np.random.default_rng(0)), 5).items():
        print(f"{act:48} {1e3 * seconds:8.1f} ms", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{'peak of this process':48} {peak:8} MB")


if __name__ == "__main__":
    sys.exit(main())
