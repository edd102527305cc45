"""From Parquet files of any size: evaluate, certify a threshold, check it, on one machine and more.

    python benchmarks/files.py [rows]

Files of a million rows are written to a temporary folder first (5 bytes a row) and removed at the
end. Each step runs in a new process, so that its memory is its own. All ways to count the same
files end in one SHA-256 digest.
"""

import hashlib
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from dask.distributed import Client
from tqdm import tqdm

import skselect.dask
from skselect import (
    AbstentionPolicy,
    SelectiveState,
    check_policy,
    evaluate_parquet,
    select_threshold,
)
from skselect.streaming import parquet_state

METRICS = ["aurc", "eaurc", "augrc", "failure_auroc", "cw_accuracy", "csr", "cwsa", "cwsa_plus"]
COLUMNS = {"confidence": "confidence", "loss": "error"}
PIECE, TARGET = 1_000_000, 0.05


def write(folder, n):
    """Write n rows whose confidence is a little too high."""
    for k in tqdm(range(max(n // PIECE, 1)), desc="writing"):
        rng = np.random.default_rng(k)
        u = rng.random(min(PIECE, n), dtype=np.float32)
        confidence = np.float32(1) - np.float32(0.5) * u * u
        error = rng.random(len(u), dtype=np.float32) > np.float32(0.98) * confidence
        pq.write_table(
            pa.table({"confidence": confidence, "error": error}), Path(folder) / f"{k:04}.parquet"
        )


def digest(found):
    return hashlib.sha256(found.to_numpy().tobytes()).hexdigest()[:16]


def evaluated(folder):
    return digest(evaluate_parquet(folder, METRICS, **COLUMNS, progress=False))


def halves(folder):
    files = sorted(Path(folder).glob("*.parquet"))
    return files[::2], files[1::2] or files


def certified(folder):
    """Certify a risk on every second file, and check it on the others."""
    first, others = halves(folder)
    how = {**COLUMNS, "progress": False}
    found = select_threshold(
        parquet_state(first, **how).finalize(), objective="risk", target=TARGET
    )
    policy = AbstentionPolicy(
        classes=[0, 1], threshold=found.threshold, certificate=found.certificate
    )
    check = check_policy(policy, parquet_state(others, **how))
    return (
        f"coverage {found.certificate.coverage:.4f}, risk {found.certificate.risk:.6f}; on the "
        f"other files: {check.verdict}, {check.risk:.6f}"
    )


def as_spark_does(folder):
    """Each task counts batches and yields a pickled state; the driver merges them."""
    import pickle

    def count(batches):
        state = SelectiveState()
        for batch in batches:
            state.update_confidence(batch["confidence"], batch["error"])
        yield pickle.dumps(state)

    files = sorted(Path(folder).glob("*.parquet"))
    tasks = [files[k::4] for k in range(min(4, len(files)))]
    sent = [row for task in tasks for row in count(pq.read_table(one).to_pandas() for one in task)]
    states = [pickle.loads(row) for row in sent]
    return digest(states[0].merge(*states[1:]).evaluate(METRICS))


def on_dask(folder, *, kill_after=None):
    with Client(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as client:
        victim = min(client.run(os.getpid).values())
        if kill_after:
            killer = threading.Timer(kill_after, os.kill, (victim, signal.SIGKILL))
            killer.start()
        found = skselect.dask.evaluate_parquet(folder, METRICS, **COLUMNS)
        if kill_after:
            killer.cancel()
            gone = victim not in client.run(os.getpid).values()
            return f"{digest(found)}, a worker killed after {kill_after} s: {gone}"
    return digest(found)


def measured(act, *arguments, **options):
    """Return what was found, wall time, CPU time with that of worker processes, and peak memory."""
    wall, cpu = time.perf_counter(), used_cpu()
    said = act(*arguments, **options)
    wall, cpu = time.perf_counter() - wall, used_cpu() - cpu
    return said, wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def used_cpu():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in both)


def told(name, n, act, *arguments, **options):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        said, wall, cpu, peak = process.submit(measured, act, *arguments, **options).result()
    print(
        f"{name:32} {wall:6.1f} s, {1e9 * cpu / n:5.1f} ns of CPU a row, peak {peak:5.0f} MiB: "
        f"{said}", flush=True,
    )  # fmt: skip


def main():
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000_000
    with tempfile.TemporaryDirectory() as folder:
        write(folder, n)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        print(f"{n:,} rows, {size / 2**30:.2f} GiB in files")
        told("evaluate", n, evaluated, folder)
        told("certify and check", n, certified, folder)
        told("map and reduce", n, as_spark_does, folder)
        told("two Dask workers", n, on_dask, folder)
        told("one of two killed", n, on_dask, folder, kill_after=4.0)


if __name__ == "__main__":
    main()
