"""No option without effect: it changes something, or is refused in words."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skselect.cli.idle import CONDITIONS
from skselect.cli.main import _COMMANDS
from tests.cli.conftest import call
from tests.common import mostly_slow

ANSWERS = "--answer said --confidence-column score"
LOG = "--label-delay 1D --since 2025-01-01 --now 2026-02-01 --max-age 99D --id id"
#: Commands on tables of all kinds.
CONTEXTS = [
    "evaluate t.csv --label truth --brief",
    "tune t.csv --label truth --target .3",
    f"apply t.csv --policy answers.json --prefix x_ --out d.csv {ANSWERS}",
    f"monitor t.parquet --label truth --policy sites.json --time when {LOG}",
    "evaluate t.csv --label truth",
    f"evaluate t.csv --label truth {ANSWERS}",
    f"evaluate t.csv --verdict verdict {ANSWERS}",
    "evaluate t.csv --label truth --policy proba.json",
    "evaluate t.csv --label truth --policy answers.json",
    "evaluate t.parquet --label truth",
    "evaluate t.jsonl --label truth",
    "report t.csv --label truth",
    f"tune t.csv --label truth {ANSWERS} --target .3",
    f"tune t.csv --verdict half {ANSWERS} --target .3 --unjudged wrong",
    "tune t.parquet --label truth --target .3",
    "tune t.csv strong.csv --label truth --target .4 --id id",
    "tune t.csv --label truth --objective cwsa_plus",
    "apply t.csv --policy proba.json --out d.csv",
    "apply t.parquet --policy sites.json --out d.parquet",
    "apply t.jsonl --policy answers.json --out d.csv",
    f"monitor t.csv --label truth --policy proba.json --time when {LOG}",
    "monitor t.csv --label truth --policy proba.json --time number --label-delay 10 --id id "
    "--now 700",
]
VALUES = {
    "--separator": ";", "--decimal": ",", "--encoding": "utf-16", "--label": "person",
    "--verdict": "verdict", "--right": "wrong --wrong right", "--wrong": "right --right wrong",
    "--proba": "number", "--answer": "person", "--confidence-column": "yes",
    "--classes": "yes no",
    "--subgroups": "drawn", "--policy": "proba.json", "--reviewer": "person", "--threshold": ".7",
    "--id": "truth", "--features": "site", "--audits": "1000 .02 30", "--reviewing": "minutes=6",
    "--csv": "m.csv", "--title": "x", "--html": "x.html", "--brief": "", "--unjudged": "wrong",
    "--next": "5", "--out-next": "n.csv",
    "--objective": "coverage", "--target": ".25", "--delta": ".1", "--deferred-error": ".1",
    "--overall-error": ".1", "--max-analyses": "3", "--seed": "3", "--method": "band",
    "--audit-proba": "chance", "--min-audit-proba": ".3", "--min-coverage": ".2",
    "--threshold-range": ".6 .9", "--confidence": "margin", "--shortlist": ".9", "--out": "o.csv",
    "--python": "gate.py", "--ask": "ask.csv", "--capacity": "3", "--prefix": "g_",
    "--time": "number", "--dayfirst": "", "--time-format": "%Y-%m-%d", "--since": "2026-01-03",
    "--history": "h.csv", "--max-age": "1h", "--now": "2026-03-01", "--label-delay": "9D",
    "--audited": "drawn",
}  # fmt: skip
#: What depends on the table: whether the order shows, whether labels of other classes occur.
OF_THE_TABLE = {
    "--assume", "--other-labels", "--unlabelled", "--batch", "--costs", "--max-loss",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of tables and policies."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    n = 300
    p = np.round(rng.random(n), 4)
    truth = np.where(rng.random(n) < p, "yes", "no")
    said = np.where(p > 0.5, "yes", "no")
    verdict = np.where(said == truth, "right", "wrong")
    table = pd.DataFrame({
        "id": [f"c{k}" for k in range(n)], "truth": truth, "no": np.round(1 - p, 4), "yes": p,
        "said": said, "score": np.round(np.maximum(p, 1 - p), 4), "verdict": verdict,
        "half": np.where(rng.random(n) < 0.5, verdict, ""), "site": rng.choice(["a", "b"], n),
        "person": np.roll(truth, 1), "drawn": rng.random(n) < 0.5,
        "when": pd.date_range("2026-01-01", periods=n, freq="h").astype(str),
        "number": np.arange(n) * 1.5, "chance": np.round(rng.uniform(0.3, 1, n), 2),
    })  # fmt: skip
    table.loc[9, "truth"] = truth[9]
    table.to_csv(folder / "t.csv", index=False)
    table.to_csv(folder / "strong.csv", index=False)
    table.to_parquet(folder / "t.parquet")
    table.to_json(folder / "t.jsonl", orient="records", lines=True)
    return folder


@pytest.fixture
def outcome(folder, monkeypatch, capsys):
    """Return a function that runs a command, and returns all that it says and writes."""
    monkeypatch.chdir(folder)
    policies = {
        "proba": "--target .3",
        "answers": f"--target .2 {ANSWERS}",
        "sites": "--target .4 --subgroups site",
    }
    for name, options in policies.items():
        if not Path(f"{name}.json").exists():
            assert call(f"tune t.csv --label truth --out {name}.json {options}") == 0
    kept = {path.name for path in Path().iterdir()}

    def outcome(command):
        capsys.readouterr()
        code = call(command)
        texts = capsys.readouterr()
        written = {}
        for path in sorted(Path().iterdir()):
            if path.name not in kept:
                written[path.name] = path.read_bytes()
                path.unlink()
        return code, without_times(texts.out), texts.err, without_times(str(written))

    return outcome


def without_times(text):
    """Return a text without what changes from run to run."""
    date = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00)?|sha256:\w+"
    return re.sub(date, "", text)


@pytest.mark.parametrize("context", mostly_slow(CONTEXTS, quick=2))
def test_every_option_changes_something_or_is_refused(context, outcome):
    name = context.partition(" ")[0]
    layout = ["--separator", "--decimal", "--encoding"]
    options = [option for option, _ in _COMMANDS[name][2] if option.startswith("--")]
    usual = outcome(context)
    assert usual[0] in (0, 4, 5)
    idle = set()
    for option in (*options, *layout):
        if option not in OF_THE_TABLE and f"{option} " not in f"{context} ":
            found = outcome(f"{context} {option} {VALUES[option]}")
            if found == usual:
                idle.add(option)
    assert not idle


@pytest.mark.parametrize(("command", "option"), [
    ("evaluate t.parquet --label truth --separator ;", "--separator"),
    ("evaluate t.jsonl --label truth --encoding cp1252", "--encoding"),
    ("evaluate t.parquet --label truth --decimal ,", "--decimal"),
    ("apply t.csv --policy answers.json --classes no yes", "--classes"),
    ("evaluate t.csv --label truth --brief --id id", "--id"),
    ("evaluate t.csv --label truth --brief --features site", "--features"),
    ("evaluate t.csv --label truth --brief --subgroups site", "--subgroups"),
    ("tune t.csv --label truth --target .3 --out-next n.csv", "--out-next"),
    ("tune t.csv --label truth --target .3 --seed 3", "--seed"),
    ("tune t.csv --label truth --target .3 --shortlist .9 --seed 3", "--seed"),
    (f"tune t.csv --label truth --target .3 {ANSWERS} --confidence margin", "--confidence"),
])  # fmt: skip
def test_an_option_without_effect_is_refused_in_words(command, option, outcome):
    code, out, told, written = outcome(command)
    assert (code, out, written) == (2, "", "{}")
    words = next(words for (_, name), words in CONDITIONS.items() if name == option)
    assert f"{option} has no effect here, but where {words}" in told


@pytest.mark.usefixtures("outcome")
def test_the_table_of_conditions_names_options_that_exist():
    for command, option in CONDITIONS:
        names = ["evaluate", "tune", "apply"] if command == "all" else [command]
        layout = {"--separator", "--decimal", "--encoding"}
        for name in names:
            assert option in layout | {known for known, _ in _COMMANDS[name][2]}
