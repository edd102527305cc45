"""How the benchmarks take time."""

import time


def best_of_five(act):
    """Return the least CPU time of one thread over five calls, in seconds."""
    times = []
    for _ in range(5):
        start = time.thread_time()
        act()
        times.append(time.thread_time() - start)
    return min(times)
