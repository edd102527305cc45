"""Guards against losing speed: ratios to np.argsort in the same run, with a generous margin.

np.argsort differs less between CPUs than np.sort does.

python -m pytest benchmarks/test_ratios.py -n 0
"""

import numpy as np
import pytest
from kernels import list_acts
from timing import best_in_turn

#: About twice the ratio on the slower of two CPUs (docs/performance.md).
LIMITS = {
    "all metrics + curves, with checks": 4.5,
    "all metrics": 2.2,
    "all metrics, weighted": 5.0,
    "standard error of the AURC": 1.6,
    "standard error of the AUGRC": 0.8,
    "certify a risk of 9 %": 2.5,
    "certify a risk of 9 %, first call": 4.0,
    "certify a coverage of 80 %": 2.2,
    "certify by bets": 9.0,
    "a refusal, 20,000 rows": 0.2,
    "coverage_score(y_true, y_proba)": 3.2,
    "exact state, float32": 2.4,
    "certified state, float32": 0.6,
}


@pytest.fixture(scope="module")
def acts():
    return list_acts(1_000_000, np.random.default_rng(0))


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_ratio_to_a_sort_has_not_grown(name, acts, benchmark):
    benchmark.pedantic(acts[name], rounds=3, warmup_rounds=1)
    best = best_in_turn({"sort": acts["np.argsort"], name: acts[name]}, 5)
    benchmark.extra_info["x argsort"] = best[name] / best["sort"]
    assert best[name] <= LIMITS[name] * best["sort"]


def test_one_metric_takes_no_longer_than_a_plain_mask(acts):
    best = best_in_turn(
        {name: acts[name] for name in ("a plain mask", "coverage_score(y_true, y_proba)")}, 5
    )
    assert best["coverage_score(y_true, y_proba)"] <= 1.5 * best["a plain mask"]
