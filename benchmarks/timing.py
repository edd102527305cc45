"""Timing for the benchmarks."""

import time


def best_of_five(act):
    """Return the least CPU time of one thread over five calls, in seconds."""
    return best_in_turn({"act": act}, 5)["act"]


def best_in_turn(acts, rounds, tick=lambda: None):
    """Return the least CPU time of one thread of each act, in seconds.

    The acts take turns, so that a slow minute of the machine hits all of them; the first round
    only warms up.
    """
    times = {name: [] for name in acts}
    for _ in range(rounds + 1):
        for name, act in acts.items():
            start = time.thread_time()
            act()
            times[name].append(time.thread_time() - start)
            tick()
    return {name: min(taken[1:]) for name, taken in times.items()}
