"""Guards against losing speed: ratios to np.sort in the same run, with a generous margin.

python -m pytest benchmarks/test_ratios.py -n 0
"""

import numpy as np
import pytest
from kernels import list_acts
from timing import best_in_turn

#: About twice what docs/performance.md measured on the machine whose np.sort is fast; on others
#: the ratios are smaller.
LIMITS = {
    "all metrics + curves, with checks": 16.0,
    "all metrics": 7.0,
    "all metrics, weighted": 18.0,
    "standard error of the AURC": 6.0,
    "standard error of the AUGRC": 4.0,
    "certify a risk of 9 %": 14.0,
    "exact state, float32": 8.0,
    "certified state, float32": 3.0,
}


@pytest.fixture(scope="module")
def acts():
    return list_acts(1_000_000, np.random.default_rng(0))


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_ratio_to_a_sort_has_not_grown(name, acts, benchmark):
    benchmark.pedantic(acts[name], rounds=3, warmup_rounds=1)
    best = best_in_turn({"sort": acts["np.sort"], name: acts[name]}, 5)
    benchmark.extra_info["x sort"] = best[name] / best["sort"]
    assert best[name] <= LIMITS[name] * best["sort"]
