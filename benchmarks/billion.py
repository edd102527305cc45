"""A billion predictions on one machine: the exact state, in bounded memory.

    python benchmarks/billion.py [rows] [--mode certified]

Rows are generated piece by piece and counted. The time of the generator is shown separately.
"""

import argparse
import resource
import time

import numpy as np
from tqdm import tqdm

from skselect import SelectiveState

PIECE = 1 << 22
METRICS = ["aurc", "eaurc", "augrc", "failure_auroc", "cw_accuracy", "csr", "cwsa", "cwsa_plus"]


def pieces(n, rng):
    for start in range(0, n, PIECE):
        u = rng.random(min(PIECE, n - start), dtype=np.float32)
        confidence = np.float32(1) - np.float32(0.5) * u * u
        yield confidence, rng.random(len(u), dtype=np.float32) > confidence


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="?", type=float, default=1e9)
    parser.add_argument("--mode", default="exact", choices=["exact", "certified"])
    arguments = parser.parse_args()
    n = int(arguments.rows)
    state = SelectiveState(arguments.mode, thresholds=[0.5] if arguments.mode != "exact" else None)
    counting, began = 0.0, time.perf_counter()
    with tqdm(total=n, unit=" rows", unit_scale=True) as bar:
        for confidence, wrong in pieces(n, np.random.default_rng(0)):
            start = time.thread_time()
            state.update_confidence(confidence, wrong)
            counting += time.thread_time() - start
            bar.update(len(wrong))
    start = time.thread_time()
    found = state.evaluate(METRICS)
    finished = time.thread_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{state}\n{found}\n")
    print(f"counting {1e9 * counting / n:.1f} ns/row, reading {finished:.1f} s")
    print(f"wall {time.perf_counter() - began:.0f} s with generation, peak {peak:.0f} MiB")
    if arguments.mode == "exact":
        print(state.interval("aurc"))


if __name__ == "__main__":
    main()
