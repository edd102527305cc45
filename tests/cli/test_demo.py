"""The demo on tables of every kind."""

import datetime as dt
import re
from argparse import Namespace

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info

from skselect import AbstentionPolicy
from skselect._lib.notebook import unwrap
from skselect.cli import demo
from skselect.cli.main import make_parser
from tests.common import mostly_slow


@pytest.fixture
def small_booster(monkeypatch):
    """The demo's own model is too large for a test on many tables."""

    def make(seed):
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(max_iter=15, random_state=seed), "a small booster"

    monkeypatch.setattr(demo, "make_booster", make)


def options(tmp_path, **given):
    parsed = make_parser().parse_args(["demo", "--target", "0.1", "--out", str(tmp_path / "out")])
    return Namespace(**(vars(parsed) | given))


@pytest.fixture
def table(rng):
    n = 1200
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "job": rng.choice(["nurse", "cook", "pilot"], n),
            "city": rng.choice([f"town {i}" for i in range(400)], n),
            "member": rng.random(n) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    frame.loc[::9, "age"] = np.nan
    frame.loc[::11, "job"] = None
    score = frame["age"].fillna(40) / 20 + frame["member"] * 2
    frame["answer"] = np.where(score + rng.normal(scale=0.4, size=n) > 3.5, "yes", "no")
    return frame


def test_embedded_digits_end_with_a_certificate(tmp_path, capsys):
    assert demo.demo(options(tmp_path, target=0.02)) == 0
    printed = capsys.readouterr()
    assert "\nCERTIFIED\n" in printed.out
    assert "[6/6]" in printed.err
    assert "explore (no guarantee)" in printed.err
    words = unwrap(printed.out.split("\n\n")[-3])
    assert re.search(
        r"answers [\d.]+ % of them on its own \(.* wrong\) and leaves [\d.]+ % to", words
    )
    assert "best CWSA+ (exploration, no guarantee)" in printed.out
    assert "AUGRC" not in printed.out
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "metrics.csv", "policy.json", "risk_coverage.png",
    ]  # fmt: skip
    policy = AbstentionPolicy.from_json(tmp_path / "out" / "policy.json")
    assert policy.certificate.is_certified
    metrics = pd.read_csv(tmp_path / "out" / "metrics.csv", index_col=0)
    assert metrics.loc["accuracy of its answers", "risk <= 0.02"] > 0.98
    assert metrics.loc["coverage", "risk <= 0.02"] > 0.5


@pytest.mark.usefixtures("small_booster")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_own_table_with_strings_dates_and_gaps(tmp_path, table, suffix, capsys):
    path = tmp_path / f"table.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    assert demo.demo(options(tmp_path, data=path, label="answer")) == 0
    assert "CERTIFIED" in capsys.readouterr().out
    policy = AbstentionPolicy.from_json(tmp_path / "out" / "policy.json")
    assert policy.classes.tolist() == ["no", "yes"]


@pytest.mark.usefixtures("small_booster")
def test_refusal_is_shown_and_nothing_is_accepted(tmp_path, table, capsys):
    path = tmp_path / "table.csv"
    table.iloc[:300].to_csv(path, index=False)
    assert demo.demo(options(tmp_path, data=path, label="answer", target=0.001)) == 0
    printed = capsys.readouterr().out
    assert "No threshold meets target=0.001" in printed
    assert "could have met is 0." in printed
    assert "Nothing will be accepted" in printed


@pytest.mark.usefixtures("small_booster")
@pytest.mark.parametrize("values", [[False, True], [-1, 1], [0, 1]])
def test_labels_that_need_another_abstain_label(tmp_path, table, values):
    path = tmp_path / "table.parquet"
    table.assign(answer=np.where(table["answer"] == "yes", values[1], values[0])).to_parquet(path)
    assert demo.demo(options(tmp_path, data=path, label="answer")) == 0


@pytest.mark.parametrize(
    ("name", "risk"), mostly_slow([("wine_quality", 0.2), ("adult", 0.05)], unpack=True)
)
@pytest.mark.usefixtures("small_booster")
def test_real_tables(data_folder, tmp_path, name, risk, capsys):
    path = data_folder / f"{name}.parquet"
    assert demo.demo(options(tmp_path, data=path, label="target", target=risk)) == 0
    assert "risk_coverage.png" in capsys.readouterr().out


def test_bad_tables_are_explained(tmp_path, table):
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    cases = [
        ({"data": tmp_path / "none.csv", "label": "x"}, "--data: there is no file"),
        ({"data": path}, "--label must name a column"),
        ({"data": path, "label": "hope"}, "--label must name a column"),
        ({"data": path, "label": "anwser"}, r"among its 6 columns are \['answer'\]"),
        ({"data": path, "label": "answer", "target": 5}, "--target must be a number"),
        ({"data": path, "label": "answer", "delta": 0}, "--delta must be a number"),
        ({"label": "answer"}, "--label goes with --data"),
        ({"out": path}, "--out must be a folder"),
    ]
    for given, message in cases:
        with pytest.raises(ValueError, match=message):
            demo.demo(options(tmp_path, **given))
    semicolons = tmp_path / "semicolons.csv"
    table.to_csv(semicolons, index=False, sep=";")
    with pytest.raises(ValueError, match="with a comma between them"):
        demo.demo(options(tmp_path, data=semicolons, label="answer"))
    one = tmp_path / "one.csv"
    table.assign(answer="yes").to_csv(one, index=False)
    with pytest.raises(ValueError, match="one class only"):
        demo.demo(options(tmp_path, data=one, label="answer"))
    measured = tmp_path / "measured.csv"
    table.assign(answer=np.linspace(0, 1, len(table))).to_csv(measured, index=False)
    with pytest.raises(ValueError, match="looks like a measurement or an identifier"):
        demo.demo(options(tmp_path, data=measured, label="answer"))


def odd_columns(table):
    n = len(table)
    return table.assign(**{
        "Glucose [mg/dL]": table["age"], "age<65": table["age"] < 65,
        "empty": pd.Series([None] * n, dtype=object), "nothing": np.nan,
        "ratio": np.where(np.arange(n) % 7 == 0, np.inf, 1.0),
        "large": np.where(np.arange(n) % 5 == 0, -1e300, 1.0),
        "day": [dt.date(2020, 1, 1 + k % 28) for k in range(n)],
        "maybe": pd.Series([True, None, False] * (n // 3), dtype=object),
        "when": pd.to_datetime(pd.Series(["2020-01-01", None] * (n // 2))),
    })  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_of_ordinary_tables(tmp_path, table, suffix, capsys):
    path = tmp_path / f"table.{suffix}"
    frame = odd_columns(table)
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    X, y, _ = demo.load(options(tmp_path, data=path, label="answer"))
    told = capsys.readouterr().out
    assert "Columns without any value are left out: empty, nothing." in told
    assert "172 infinite values of the column 'ratio' are taken as missing." in told
    assert "240 infinite values of the column 'large' are taken as missing." in told
    assert X.shape[1] == frame.shape[1] - 3
    assert X.columns.tolist() == [str(k) for k in range(X.shape[1])]
    booster, _ = demo.make_booster(0)
    booster.set_params(n_estimators=2) if "n_estimators" in booster.get_params() else None
    booster.fit(X, (y == "yes").astype(int))  # which would refuse names and infinite values


def test_columns_that_are_no_features_are_named(tmp_path, table):
    path = tmp_path / "table.parquet"
    table.assign(scan=[[1, 2]] * len(table)).to_parquet(path)
    with pytest.raises(ValueError, match="column 'scan' holds values of the type"):
        demo.demo(options(tmp_path, data=path, label="answer"))
    table[["answer"]].to_parquet(path)
    with pytest.raises(ValueError, match="has no columns besides the label"):
        demo.demo(options(tmp_path, data=path, label="answer"))
    table[["answer"]].assign(x=np.nan).to_parquet(path)
    with pytest.raises(ValueError, match="no column besides the label holds any value"):
        demo.demo(options(tmp_path, data=path, label="answer"))


@pytest.mark.usefixtures("small_booster")
def test_a_class_called_abstain(tmp_path, table, capsys):
    path = tmp_path / "table.csv"
    table.replace({"answer": {"no": "abstain"}}).to_csv(path, index=False)
    assert demo.demo(options(tmp_path, data=path, label="answer")) == 0
    assert "CERTIFIED" in capsys.readouterr().out


@pytest.mark.parametrize(
    "y", [[0, 1], [-1, 1], [-1, -9], [False, True], ["abstain", "abstain_"], [0.5, -1.0]]
)
def test_the_abstain_label_is_none_of_the_classes(y):
    label = demo._find_free_label(np.array(y))
    assert label not in y


@pytest.mark.usefixtures("small_booster")
def test_classes_with_fewer_rows_than_folds(tmp_path, rng, capsys):
    path = tmp_path / "table.csv"
    few = pd.DataFrame({"x": rng.normal(size=42), "y": [f"c{k}" for k in range(7)] * 6})
    few.to_csv(path, index=False)
    assert demo.demo(options(tmp_path, data=path, label="y", target=0.5)) == 0
    assert demo._count_folds(np.array([0, 0, 1]), "y") == 2
    with pytest.raises(ValueError, match="no class of the column 'y' has two rows to train on"):
        demo._count_folds(np.array([0, 1, 2]), "y")


@pytest.mark.usefixtures("small_booster")
def test_a_target_that_one_answer_would_meet_is_told(tmp_path, rng, capsys):
    path = tmp_path / "table.csv"
    rare = pd.DataFrame({"x": rng.normal(size=1000), "y": 0})
    rare.loc[[5, 300, 700, 900], "y"] = 1
    rare.to_csv(path, index=False)
    assert demo.demo(options(tmp_path, data=path, label="y")) == 0
    assert "always answering '0' would meet this target: 0.4 % of" in capsys.readouterr().out


def test_small_tables_train_with_one_thread(tmp_path, table, monkeypatch):
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    found = []

    def fit(self, X, y):
        found.append((self.estimator.get_params().get("n_jobs", 1), threads_of_libraries()))
        raise InterruptedError

    monkeypatch.setattr(demo.SelectiveClassifier, "fit", fit)
    for small in [10**6, 0]:
        monkeypatch.setattr(demo, "_SMALL", small)
        with pytest.raises(InterruptedError):
            demo.demo(options(tmp_path, data=path, label="answer"))
    assert found[0] == (1, {1})
    assert found[1][0] in (None, 1)  # scikit-learn's has no such parameter


def threads_of_libraries():
    return {library["num_threads"] for library in threadpool_info()}


def test_rows_without_a_label_are_left_out(tmp_path, table, capsys):
    path = tmp_path / "table.csv"
    table["answer"] = table["answer"].where(np.arange(len(table)) % 10 > 0)
    table.to_csv(path, index=False)
    X, y, _ = demo.load(options(tmp_path, data=path, label="answer"))
    assert len(X) == len(y) == 1080
    assert "120 rows without a 'answer' are left out" in capsys.readouterr().out


def test_scikit_learn_boosting_steps_in_without_xgboost(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "xgboost", None)
    assert demo.make_booster(0)[1] == "HistGradientBoosting"
