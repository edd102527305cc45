"""How soon is a broken guarantee noticed, and how often one that holds? Simulated streams.

    python benchmarks/monitoring.py [--runs 200] [--peer-runs 5]

Each stream holds 10,000 accepted cases with known outcome. False alarms: the risk is the target
throughout. Delays: the risk is 0.6 times the target, and from some case on 1.5 or 2 times; counted
are the cases from there to the alarm (median; share of streams with an alarm within 3000 cases).
All aim at 5 %. Beside the monitor: its bets with a single start; CUSUM, whose threshold is
simulated for streams of exactly this length (it knows when the watching ends); an exact lower bound
(Clopper-Pearson) from the last 500 cases, looked at every 50; and, with `pip install MAPIE`, its
monitor, told the target. Some minutes with one process; MAPIE takes most of them.
"""

import argparse
import importlib.util
import time

import numpy as np
import pandas as pd
from tqdm import tqdm

from skselect import AbstentionPolicy, SelectiveRiskMonitor
from skselect.bounds._pointwise import clopper_pearson_interval
from skselect.monitoring.evidence import Evidence, advance, bets_on_cases

N, DELTA, WITHIN = 10_000, 0.05, 3000
CHANGES = [(start, ratio) for start in (1000, 6000) for ratio in (2.0, 1.5)]


def stream(seed, target, start=0, ratio=1.0):
    """Return losses: 0.6 times the target before `start`, `ratio` times from there on."""
    rng = np.random.default_rng(seed)
    return (rng.random(N) < np.where(np.arange(N) < start, 0.6, ratio) * target).astype(float)


def first(is_alarm):
    """Return the place of the first alarm, the length of the stream where there is none."""
    found = np.flatnonzero(is_alarm)
    return int(found[0]) if len(found) else N


def monitor(loss, target):
    return first(advance(Evidence(), bets_on_cases(target), loss, np.ones(N))[1] >= 1 / DELTA)


def single_start(loss, target):
    stakes = bets_on_cases(target).stakes[:, None]
    wealth = np.exp(np.cumsum(np.log1p(stakes * (loss - target)), axis=1)).mean(axis=0)
    return first(wealth >= 1 / DELTA)


def cusum_path(loss, target):
    """Return the CUSUM of errors at twice the target against errors at the target."""
    low, high = target, 2 * target
    step = np.where(loss > 0, np.log(high / low), np.log((1 - high) / (1 - low)))
    total = np.cumsum(step)
    return total - np.minimum.accumulate(np.append(0.0, total))[:-1]


def sliding_window(loss, target, size=500, every=50):
    ends = np.arange(size, N + 1, every)
    total = np.append(0, np.cumsum(loss))
    low, _ = clopper_pearson_interval(total[ends] - total[ends - size], size, 1 - 2 * DELTA)
    found = np.flatnonzero(low > target)
    return int(ends[found[0]]) - 1 if len(found) else N


def mapie(loss, target, every=250):
    from mapie.exchangeability_testing import RiskMonitoring

    watch = RiskMonitoring("accuracy", test_level=DELTA, threshold=target, warn=False)
    for end in range(every, N + 1, every):
        part = loss[end - every : end].astype(int)
        watch.update(np.zeros(every, dtype=int), part)
        if watch.harmful_shift_detected:
            return end - 1
    return N


def measured(rule, target, runs):
    """Return one row of the table."""
    at_target = [rule(stream(seed, target), target) for seed in range(runs)]
    row = {"false alarms": np.mean(np.array(at_target) < N)}
    for start, ratio in CHANGES:
        alarms = np.array(
            [rule(stream(seed, target, start, ratio), target) for seed in range(runs)]
        )
        delay = np.where(alarms < N, alarms - start + 1, np.inf)[alarms >= start]
        found = np.mean(delay <= WITHIN) if len(delay) else np.nan
        middle = np.median(delay) if len(delay) else np.nan
        row[f"x{ratio:g} at {start}"] = f"{middle:.0f} ({found:.2f})"
    return row


def cost(n=10_000, repeats=7):
    """Return microseconds per row of a batch of n rows, beyond what the policy takes itself."""
    policy = AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.6)
    rng = np.random.default_rng(0)
    p = rng.random(n)
    proba, y = np.column_stack([1 - p, p]), np.where(rng.random(n) < p, "yes", "no")
    when = pd.date_range("2026-01-01", periods=n, freq="min")

    def fresh():
        return SelectiveRiskMonitor(policy, target=0.3, batch="1D")

    calls = {
        "policy": lambda: policy.decide(proba),
        "decided, then labelled": lambda: (
            fresh()
            .add_decisions(proba, ids=range(n), when=when)
            .add_labels(range(n), y, when=when[-1])
        ),
        "update": lambda: fresh().update(y, proba, when=when),
    }
    least = dict.fromkeys(calls, np.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.process_time()
            call()
            least[name] = min(least[name], 1e6 * (time.process_time() - start) / n)
    own = least.pop("policy")
    return {name: round(spent - own, 2) for name, spent in least.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--peer-runs", type=int, default=5, help="0: without MAPIE")
    options = parser.parse_args()
    print("microseconds per row beyond the policy, in batches of 10,000:", cost())
    for target in (0.05, 0.02):
        # Other seeds than those that are judged.
        peaks = [np.max(cusum_path(stream(10**6 + s, target), target)) for s in range(options.runs)]
        line = np.quantile(peaks, 1 - DELTA)
        rules = {
            "monitor": monitor,
            "bets with a single start": single_start,
            "CUSUM, simulated for 10,000": lambda x, t, line=line: first(cusum_path(x, t) > line),
            "sliding window of 500": sliding_window,
        }
        rows = {
            name: measured(rule, target, options.runs)
            for name, rule in tqdm(rules.items(), desc=f"target {target:.0%}")
        }
        if options.peer_runs and importlib.util.find_spec("mapie") is not None:
            name = f"MAPIE ({options.peer_runs} streams)"
            rows[name] = measured(mapie, target, options.peer_runs)
        print(f"\ntarget {target:.0%}, {options.runs} streams")
        print(pd.DataFrame(rows).T.to_string())


if __name__ == "__main__":
    main()
