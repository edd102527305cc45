"""Parquet files: one process and two Dask workers give one digest of all results.

    python benchmarks/files.py [rows]

Files of a million rows are written to a temporary folder first (4 bytes a row on disk).
"""

import hashlib
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from dask.distributed import Client
from tqdm import tqdm

import skselect.dask
from skselect import evaluate_parquet

METRICS = ["aurc", "eaurc", "augrc", "failure_auroc", "cw_accuracy", "csr", "cwsa", "cwsa_plus"]
PIECE = 1_000_000


def write(folder, n):
    for k in tqdm(range(max(n // PIECE, 1)), desc="writing"):
        rng = np.random.default_rng(k)
        size = min(PIECE, n)
        confidence = (1 - 0.5 * rng.beta(0.5, 3, size)).astype(np.float32)
        error = (rng.random(size) < 1 - 0.98 * confidence).astype(np.int8)
        pd.DataFrame({"confidence": confidence, "error": error}).to_parquet(
            Path(folder) / f"{k:04}.parquet"
        )


def told(name, act):
    start = time.perf_counter()
    found = act()
    digest = hashlib.sha256(found.to_numpy().tobytes()).hexdigest()[:16]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name:26} {time.perf_counter() - start:6.1f} s  {digest}  peak {peak:.0f} MiB")


def main():
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000_000
    modes = {"certified": {"mode": "certified", "thresholds": [0.5]}, "exact": {}}
    columns = {"confidence": "confidence", "loss": "error"}
    with tempfile.TemporaryDirectory() as folder:
        write(folder, n)
        for mode, how in modes.items():
            act = lambda how=how: evaluate_parquet(folder, METRICS, **columns, **how)  # noqa: E731
            told(f"{mode}, one process", act)
        with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"):
            for mode, how in modes.items():
                act = lambda how=how: skselect.dask.evaluate_parquet(  # noqa: E731
                    folder, METRICS, **columns, **how
                )
                told(f"{mode}, two Dask workers", act)


if __name__ == "__main__":
    main()
