"""Timing for the benchmarks."""

import ctypes
import os
import subprocess
import sys
import time
from contextlib import suppress

# The settings of glibc's malloc that decide when it gives memory back, see mallopt(3).
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


def keep_memory():
    """Let malloc keep what is freed, so that no act times the page faults of a new array.

    Only glibc knows how; arrays of up to 32 MB are kept.
    """
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        libc.mallopt(_MMAP_THRESHOLD, 2**25)


def best_of_five(act):
    """Return the least CPU time of one thread over five calls, in seconds."""
    return best_in_turn({"act": act}, 5)["act"]


def best_in_turn(acts, rounds, tick=lambda: None, clock=time.thread_time):
    """Return the least CPU time of one thread of each act, in seconds.

    The acts take turns, so that a slow minute of the machine hits all of them; the first round
    only warms up.
    """
    times = {name: [] for name in acts}
    for _ in range(rounds + 1):
        for name, act in acts.items():
            start = clock()
            act()
            times[name].append(clock() - start)
            tick()
    return {name: min(taken[1:]) for name, taken in times.items()}


def children_time():
    """Return the CPU time of all processes that were started here and have ended, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def run_python(*arguments, folder):
    """Run Python in a process of its own; what it prints is not looked at."""
    run = [sys.executable, *map(str, arguments)]
    subprocess.run(run, cwd=folder, capture_output=True, check=False)
