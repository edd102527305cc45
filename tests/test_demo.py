"""The demo on tables of every kind."""

import numpy as np
import pandas as pd
import pytest

from skselect import AbstentionPolicy, demo
from skselect.demo import DemoOptions


@pytest.fixture
def small_booster(monkeypatch):
    """The demo's own model is too large for a test on many tables."""

    def make(seed):
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(max_iter=15, random_state=seed), "a small booster"

    monkeypatch.setattr(demo, "make_booster", make)


def options(tmp_path, **given):
    defaults = {"data": None, "target": None, "max_risk": 0.1, "delta": 0.05,
                "out": tmp_path / "out", "seed": 0}  # fmt: skip
    return DemoOptions(**(defaults | given))


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
    assert demo.run(options(tmp_path, max_risk=0.02)) == 0
    printed = capsys.readouterr()
    assert "\nCERTIFIED\n" in printed.out
    assert "[6/6]" in printed.err
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
    assert demo.run(options(tmp_path, data=path, target="answer")) == 0
    assert "CERTIFIED" in capsys.readouterr().out
    policy = AbstentionPolicy.from_json(tmp_path / "out" / "policy.json")
    assert policy.classes.tolist() == ["no", "yes"]


@pytest.mark.usefixtures("small_booster")
def test_refusal_is_shown_and_nothing_is_accepted(tmp_path, table, capsys):
    path = tmp_path / "table.csv"
    table.iloc[:300].to_csv(path, index=False)
    assert demo.run(options(tmp_path, data=path, target="answer", max_risk=0.001)) == 0
    printed = capsys.readouterr().out
    assert "No threshold meets target=0.001" in printed
    assert "Nothing will be accepted" in printed


@pytest.mark.usefixtures("small_booster")
@pytest.mark.parametrize("values", [[False, True], [-1, 1], [0, 1]])
def test_labels_that_need_another_abstain_label(tmp_path, table, values):
    path = tmp_path / "table.parquet"
    table.assign(answer=np.where(table["answer"] == "yes", values[1], values[0])).to_parquet(path)
    assert demo.run(options(tmp_path, data=path, target="answer")) == 0


@pytest.mark.parametrize(("name", "risk"), [("adult", 0.05), ("wine_quality", 0.2)])
@pytest.mark.usefixtures("small_booster")
def test_real_tables(data_folder, tmp_path, name, risk, capsys):
    path = data_folder / f"{name}.parquet"
    assert demo.run(options(tmp_path, data=path, target="target", max_risk=risk)) == 0
    assert "risk_coverage.png" in capsys.readouterr().out


def test_bad_tables_are_explained(tmp_path, table):
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    cases = [
        ({"data": tmp_path / "none.csv", "target": "x"}, "--data: there is no file"),
        ({"data": path}, "--target must name a column"),
        ({"data": path, "target": "hope"}, "--target must name a column"),
        ({"data": path, "target": "anwser"}, r"among its 6 columns are \['answer'\]"),
        ({"data": path, "target": "answer", "max_risk": 5}, "--max-risk must be a number"),
        ({"data": path, "target": "answer", "delta": 0}, "--delta must be a number"),
        ({"target": "answer"}, "--target goes with --data"),
        ({"out": path}, "--out must be a folder"),
    ]
    for given, message in cases:
        with pytest.raises(ValueError, match=message):
            demo.run(options(tmp_path, **given))
    semicolons = tmp_path / "semicolons.csv"
    table.to_csv(semicolons, index=False, sep=";")
    with pytest.raises(ValueError, match="separator must be a comma"):
        demo.run(options(tmp_path, data=semicolons, target="answer"))
    one = tmp_path / "one.csv"
    table.assign(answer="yes").to_csv(one, index=False)
    with pytest.raises(ValueError, match="one class only"):
        demo.run(options(tmp_path, data=one, target="answer"))
    measured = tmp_path / "measured.csv"
    table.assign(answer=np.linspace(0, 1, len(table))).to_csv(measured, index=False)
    with pytest.raises(ValueError, match="looks like a measurement or an identifier"):
        demo.run(options(tmp_path, data=measured, target="answer"))


def test_rows_without_a_label_are_left_out(tmp_path, table, capsys):
    path = tmp_path / "table.csv"
    table["answer"] = table["answer"].where(np.arange(len(table)) % 10 > 0)
    table.to_csv(path, index=False)
    X, y, _ = demo.load(options(tmp_path, data=path, target="answer"))
    assert len(X) == len(y) == 1080
    assert "120 rows without a 'answer' are left out" in capsys.readouterr().out


def test_scikit_learn_boosting_steps_in_without_xgboost(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "xgboost", None)
    assert demo.make_booster(0)[1] == "HistGradientBoosting"
