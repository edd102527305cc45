"""The demo on tables of every kind."""

import datetime as dt
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info

from skselect import AbstentionPolicy
from skselect._lib.notebook import unwrap
from skselect.cli import demo
from skselect.cli.main import make_parser
from skselect.cli.options import DemoOptions
from tests.refusals import check_refused

KINDS = pytest.mark.parametrize("kind", ["csv", "parquet"])


@pytest.fixture
def small_booster(monkeypatch):
    """The demo's own model is too large for a test on many tables."""

    def make(seed):
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(max_iter=15, random_state=seed), "a small booster"

    monkeypatch.setattr(demo, "make_booster", make)


@pytest.fixture
def options(tmp_path):
    """Return a function that gives the options of the demo, on a table that it writes."""

    def options(table=None, kind="csv", **given):
        out = tmp_path / "out"
        parsed = make_parser().parse_args(["demo", "--target", "0.1", "--out", str(out)])
        if table is not None:
            path = tmp_path / f"table.{kind}"
            getattr(table, f"to_{kind}")(path, index=False)
            given = {"data": path, "label": "answer"} | given
        return DemoOptions(**(vars(parsed) | given))

    return options


@pytest.fixture
def show(options, capsys):
    """Return a function that runs the demo to its end, and returns what it prints."""

    def show(*table, **given):
        assert demo.demo(options(*table, **given)) == 0
        return capsys.readouterr()

    return show


@pytest.fixture
def table(rng):
    n = 1200
    frame = pd.DataFrame({
        "age": rng.integers(18, 90, n).astype(float),
        "job": rng.choice(["nurse", "cook", "pilot"], n),
        "city": rng.choice([f"town {i}" for i in range(400)], n), "member": rng.random(n) < 0.5,
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
    })  # fmt: skip
    frame.loc[::9, "age"] = np.nan
    frame.loc[::11, "job"] = None
    score = frame["age"].fillna(40) / 20 + frame["member"] * 2
    frame["answer"] = np.where(score + rng.normal(scale=0.4, size=n) > 3.5, "yes", "no")
    return frame


def test_embedded_digits_end_with_a_certificate(tmp_path, show):
    printed = show(target=0.02)
    assert "\nCERTIFIED," in printed.out
    assert "[6/6]" in printed.err
    assert "explore (no guarantee)" in printed.err
    words = unwrap(printed.out.split("\n\n")[-3])
    shares = r"answers [\d.]+ % of them on its own \(.* wrong\) and leaves [\d.]+ % to"
    assert re.search(shares, words)
    assert "best CWSA+ (exploration, no guarantee)" in printed.out
    assert "AUGRC" not in printed.out
    out = tmp_path / "out"
    names = ["metrics.csv", "policy.json", "risk_coverage.png"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert AbstentionPolicy.from_json(out / "policy.json").certificate.is_certified
    metrics = pd.read_csv(out / "metrics.csv", index_col=0)
    assert metrics.loc["accuracy of its answers", "risk <= 0.02"] > 0.98
    assert metrics.loc["coverage", "risk <= 0.02"] > 0.5


@pytest.mark.usefixtures("small_booster")
@pytest.mark.parametrize(
    ("kind", "names"),
    [("csv", ["abstain", "yes"]), ("parquet", [False, True]), ("parquet", [-1, 1])],
)
def test_own_table_with_strings_dates_gaps_and_any_labels(tmp_path, table, kind, names, rng, show):
    table["answer"] = np.array(names)[(table["answer"] == "yes").astype(int)]
    assert "CERTIFIED" in show(table, kind).out
    policy = AbstentionPolicy.from_json(tmp_path / "out" / "policy.json")
    assert policy.classes.tolist() == names
    few = pd.DataFrame({"x": rng.normal(size=42), "answer": [f"c{k}" for k in range(7)] * 6})
    show(few, target=0.5)  # classes with fewer rows than folds


@pytest.mark.usefixtures("small_booster")
def test_refusal_is_shown_and_nothing_is_accepted(table, show):
    printed = show(table.iloc[:300], target=0.001).out
    assert "REFUSED: at most 0.1 % of the answers are wrong." in printed
    assert "would have been met" in printed
    assert "Nothing will be accepted" in printed


@pytest.mark.parametrize(("change", "given", "named"), [
    (None, {"data": Path("none.csv"), "label": "x"}, "--data"),
    (None, {"label": "answer"}, "--label"), (None, {"out": Path(__file__)}, "--out"),
    ({}, {"label": None}, "--label"),
    ({}, {"label": "anwser"}, "'answer'"),  # codespell:ignore anwser
    ({}, {"target": 5}, "target"), ({}, {"delta": 0}, "delta"),
    ({"answer": "yes"}, {}, "one class only"),
    ({"answer": np.linspace(0, 1, 1200)}, {}, "a class has a single row, such as '0.0'"),
    ("answer alone", {}, "has no columns besides the label"),
])  # fmt: skip
def test_bad_tables_are_explained(table, change, given, named, options):
    if isinstance(change, str):
        table = table[["answer"]]
    else:
        table = None if change is None else table.assign(**change)
    check_refused(named, demo.demo, options(table, "parquet", **given))


@KINDS
def test_columns_of_ordinary_tables(table, kind, options, capsys):
    n = len(table)
    frame = table.assign(**{
        "Glucose [mg/dL]": table["age"], "age<65": table["age"] < 65,
        "empty": pd.Series([None] * n, dtype=object), "nothing": np.nan,
        "ratio": np.where(np.arange(n) % 7 == 0, np.inf, 1.0),
        "large": np.where(np.arange(n) % 5 == 0, -1e300, 1.0),
        "day": [dt.date(2020, 1, 1 + k % 28) for k in range(n)],
        "maybe": pd.Series([True, None, False] * (n // 3), dtype=object),
        "when": pd.to_datetime(pd.Series(["2020-01-01", None] * (n // 2))),
    })  # fmt: skip
    frame["answer"] = frame["answer"].where(np.arange(n) % 10 > 0)
    X, y, _ = demo.load(options(frame, kind))
    told = capsys.readouterr().out
    assert "120 rows without a 'answer' are left out" in told
    assert len(X) == len(y) == 1080
    assert X.columns.tolist() == [str(k) for k in range(frame.shape[1] - 1)]
    booster, _ = demo.make_booster(0)
    booster.set_params(n_estimators=2) if "n_estimators" in booster.get_params() else None
    booster.fit(X, (y == "yes").astype(int))  # which would refuse names and infinite values


def test_without_openmp_the_demo_says_what_xgboost_needs(tmp_path, monkeypatch):
    # What XGBoost's module does where it finds no OpenMP: its error is a ValueError.
    (tmp_path / "xgboost.py").write_text("raise ValueError('libxgboost.dylib')")
    monkeypatch.delitem(sys.modules, "xgboost", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    booster, kind = demo.make_booster(0)
    assert type(booster).__name__ == "HistGradientBoostingClassifier"
    assert "brew install libomp" in kind


def test_small_tables_train_with_one_thread(table, options, monkeypatch):
    found = []

    def fit(self, X, y):
        found.append({library["num_threads"] for library in threadpool_info()})
        raise InterruptedError

    monkeypatch.setattr(demo.SelectiveClassifier, "fit", fit)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    assert demo.make_booster(0)[1] == "HistGradientBoosting"  # it steps in without XGBoost
    for small in [10**6, 0]:
        monkeypatch.setattr(demo, "_SMALL", small)
        with pytest.raises(InterruptedError):
            demo.demo(options(table))
    assert (found[0], len(found)) == ({1}, 2)
