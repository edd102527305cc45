"""The reruns of the papers run, in their small versions, and leave their tables."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
NEEDS = {"paper_000": "xgboost", "paper_001": "xgboost", "paper_003": "optuna",
         "paper_003_printed": "optuna", "paper_004": "torch", "losses": "xgboost"}  # fmt: skip


#: Real data sets beside the checkout.
DATA = BENCHMARKS.parents[1] / "shared" / "data"


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the folder ../shared/data is not there")
@pytest.mark.parametrize("name", NEEDS)
def test_quick_reruns(name, tmp_path):
    pytest.importorskip(NEEDS[name])
    arguments = ["--quick", "--out", str(tmp_path), "--data-home", str(DATA)]
    script = BENCHMARKS / f"{name}.py"
    subprocess.run(
        [sys.executable, str(script), *arguments], check=True, cwd=tmp_path, timeout=900,
        env=os.environ | {"MPLBACKEND": "Agg"},
    )  # fmt: skip
    tables = list(tmp_path.glob("*.csv"))
    assert tables
    assert all(len(pd.read_csv(table)) for table in tables)
    if name not in ("paper_003_printed", "losses"):  # which have numbers only
        assert list(tmp_path.glob("*.png"))
    if name == "paper_000":
        verdicts = pd.read_csv(tmp_path / "verdicts.csv")
        tested = verdicts[verdicts["source"].str.contains("test")]
        assert len(tested) == 10
        assert tested["largest"].max() < 3
