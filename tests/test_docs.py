"""The site shows everything public, and what its pages point at is there."""

import importlib.util
import json
import pkgutil
import re
import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB

import skselect
from skselect import Outcomes, select_threshold
from skselect.cli.main import make_parser
from skselect.inference import compare_models, metrics_by_group
from skselect.monitoring import detectable_risk
from skselect.thresholds import rows_needed

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = PAGES[0].read_text()
EXAMPLES = sorted((ROOT / "examples").glob("*/*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def script(name):
    """Import one of the scripts in docs/, which is no package, though they import each other."""
    if str(ROOT / "docs") not in sys.path:
        sys.path.append(str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def make_api():
    return script("make_api")


def test_every_room_has_a_page_or_is_all_at_the_top(make_api):
    packages = [found.name for found in pkgutil.iter_modules(skselect.__path__) if found.ispkg]
    for room in (f"skselect.{name}" for name in packages):
        names = set(getattr(importlib.import_module(room), "__all__", ()))
        above = {*skselect.__all__, *skselect.metrics.__all__}
        assert room in make_api.ROOMS or names <= above, room


def test_every_public_name_is_on_the_page_of_its_room(make_api, tmp_path):
    make_api.write_pages(tmp_path / "api")
    for room in make_api.ROOMS:
        module = importlib.import_module(room)
        text = (tmp_path / "api" / f"{room.replace('.', '_')}.rst").read_text()
        shown = set(re.findall(r"(?m)^(?:   ~|\.\. py:data:: )(?:[\w.]*\.)?(\w+)$", text))
        assert shown == set(make_api.public_names(room))
        assert shown >= set(getattr(module, "__all__", ()))


def test_members_stand_in_the_order_of_need():
    make_members = script("make_members")
    name = re.compile(r"^   (?:\.\. \S+|  {10,}) (\w+)$", re.MULTILINE)
    pages = {
        cls: name.findall(make_members.list_members(getattr(skselect, cls)))
        for cls in ("SelectiveClassifier", "ThresholdTuner", "Risk")
    }
    tuner, classifier = pages["ThresholdTuner"], pages["SelectiveClassifier"]
    assert {"threshold_", "policy_", "selection_"} <= set(tuner[: tuner.index("fit")])
    called = ["fit", "predict", "predict_proba", "score", "decide"]
    for names in (tuner, classifier):
        start = names.index("fit")
        assert names[start : start + len(called)] == called
        assert len(names) == len(set(names))
    assert classifier.index("policy_") < classifier.index("fit") < classifier.index("abstains")
    assert pages["Risk"] == ["name", "guarantees", "get_params", "set_params"]


def test_every_command_and_option_is_on_the_page_of_the_command_line(tmp_path, capsys):
    script("make_command_line").write_page(tmp_path / "page.rst")
    text = (tmp_path / "page.rst").read_text()
    for command in ("demo", "evaluate", "report", "tune", "apply", "monitor"):
        with pytest.raises(SystemExit):
            make_parser().parse_args([command, "--help"])
        part = text.split(f"\n{command}\n")[1].split("\n.. program:: ")[1]
        shown = set(re.findall(r"(?m)^\.\. option:: (--[a-z-]+)", part))
        assert shown == set(re.findall(r"(?m)^  (--[a-z-]+)", capsys.readouterr().out))


def test_verdicts_that_a_page_prints_become_cards():
    pytest.importorskip("docutils", reason='needs `pip install -e ".[docs]"`')
    cards = script("cards")
    said = "CERTIFIED, 1 May 2026\nAt most 1 % of the answers are wrong (95 % confidence).\n  <b>"
    said += "\nTested on 50 cases: 40 answered (80 %), 0 wrong; 10 left to a person."
    said += "\nYou vouch that they were drawn at random.\nCheck it again after about 20 answers."
    code = f">>> x = 1\n>>> print(certificate)\n{said}\n>>> x\n1"
    (_, first), (kind, card), (_, last) = cards.split_block(code)
    assert (first, kind, last) == (">>> x = 1\n>>> print(certificate)", "card", ">>> x\n1")
    assert card == cards.split_block(said)[0][1]
    assert "&lt;b&gt;" in card
    assert re.findall(r"line-height:1.2\">(.*?)</b>", card) == ["80&nbsp;%", "≤ 1&nbsp;%"]
    assert card.count('opacity:.8">You vouch') == 1
    alarm = cards.make_card("ALARM with case 3: broken. ...\n  ...\n...\nFound: 5 %.\n...\n")
    assert re.sub("<.*?>", "", alarm) == "ALARMWith case 3: broken. ...Found: 5&nbsp;%. ..."
    printed = {"print(certificate)": said}
    short = ">>> x = 1\n>>> print(certificate)\nCERTIFIED, ..."
    assert cards.split_block(short, printed)[1] == ("card", card)
    for plain in (">>> 1\n1\n>>> 2\n2", ">>> if x:\n...     y\n1", "certified"):
        assert not any(kind == "card" for kind, _ in cards.split_block(plain))


def test_a_page_shows_parts_of_the_report_that_its_code_makes():
    pytest.importorskip("sphinx", reason='needs `pip install -e ".[docs]"`')
    live = script("live")
    names, printed = live.run_code(
        ">>> from skselect import selective_report\n"
        ">>> report = selective_report([0, 1] * 20, [.3, .6] * 20)\n>>> print(1)\n1\n"
    )
    assert printed["print(1)"] == "1\n"
    page = names["report"].to_html(interactive=True)
    numbers, slider = (live.cut_out(page, part) for part in live.PARTS)
    for shown in (numbers, slider):
        assert shown.count("<div") == shown.count("</div>")
        assert shown.count("<svg") == shown.count("</svg>") == 1
        assert re.search(r'dark"] .live-report { (--[a-z]+: #\w+; ?){6}}', shown)
    assert "of the cases are answered" in numbers
    assert "<script>" not in numbers
    assert slider.count('type="range"') == 1
    assert slider.endswith("</script>")


def test_the_table_of_metrics_is_what_the_code_says():
    text = script("make_metrics_table").text()
    assert (ROOT / "docs" / "metrics.md").read_text() == text


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        prose = re.sub(r"(?s)```.*?```|`[^`\n]*`", "", page.read_text())
        for target in re.findall(r"\]\(([^)#\s]+)", prose):
            example = re.search(
                r"gallery/((?:\w+/)?)(?:images/sphx_glr_)?(plot\w+?)(?:_\d{3}\.png|\.rst)$", target
            )
            if example:
                task, name = example.groups()
                assert (ROOT / "examples" / task / f"{name}.py").exists(), (page, target)
            # API and gallery are written by the build.
            elif "://" not in target and not re.search(r"(^|/)(api|gallery)/", target):
                assert (page.parent / target).exists(), (page, target)


def test_the_readme_is_short_and_has_short_sentences():
    assert len(README.split()) <= 650
    prose = re.sub(r"(?s)```.*?```|!?\[[^\]]*\]\([^)]*\)|(?m:^[|#].*$)", "", README)
    paragraphs = re.split(r"\n\s*\n|\n- ", prose)
    sentences = [one for text in paragraphs for one in re.split(r"(?<=[.:!?])\s", text)]
    assert [one for one in sentences if len(one.split()) > 25] == []


def test_the_readme_knows_how_many_rows_it_takes():
    rows = re.findall(r"(?m)^\| (\d+) % \| ([\d,]+) \| ([\d,]+) \|$", README)
    assert len(rows) == 5
    for percent, *numbers in rows:
        target = int(percent) / 100
        needed = [rows_needed(target), rows_needed(target, expected_risk=target / 2)]
        assert [int(number.replace(",", "")) for number in numbers] == pytest.approx(
            needed, rel=0.02
        )


@pytest.mark.parametrize("page", ["README.md", "docs/ideas/certificate.md"])
def test_a_certificate_is_shown_as_it_is_printed_today(page):
    shown = re.search(r"(?s)```text\n(CERTIFIED, .*?)```", (ROOT / page).read_text()).group(1)
    rng = np.random.default_rng(0)
    confidence = rng.random(600)
    rows = Outcomes(rng.random(600) < 0.2 * (1 - confidence), confidence)
    printed = f"{select_threshold(rows, objective='risk', target=0.05).certificate}\n"
    words = [re.sub(r"[\d.,]*\d|[A-Z][a-z]+(?= \d{4})", "0", text) for text in (shown, printed)]
    assert words[0].split() == words[1].split()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The order of the rows matters")  # which an example shows
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_examples_run(example, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    runpy.run_path(str(example))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebooks_run_and_hold_no_output(notebook, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    cells = json.loads(notebook.read_text())["cells"]
    names = {}
    for cell in [cell for cell in cells if cell["cell_type"] == "code"]:
        assert not cell["outputs"]
        assert cell["execution_count"] is None
        exec("".join(cell["source"]), names)


def test_every_call_of_the_cheat_sheet_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X["site"] = X.index % 2
    X, X_new, y, y_new = train_test_split(X, y.map({0: "sick", 1: "well"}), random_state=0)
    fitted = GaussianNB().fit(X, y)
    proba, raw = fitted.predict_proba(X), fitted.predict_proba(X_new)
    names = {name: getattr(skselect, name) for name in skselect.__all__}
    for value in (compare_models, detectable_risk, metrics_by_group, rows_needed):
        names[value.__name__] = value
    names |= {"FrozenEstimator": FrozenEstimator, "GridSearchCV": GridSearchCV}
    names["strong"] = GaussianNB()
    names |= {"clf": GaussianNB(), "X": X, "y": y, "X_new": X_new, "y_new": y_new}
    names |= {"proba": proba, "raw": raw, "probas": {"a": proba, "b": 0.25 + proba / 2}}
    names |= {"earlier": slice(-150), "latest": slice(-150, None), "costs": [[0, 20], [1, 0]]}
    names |= {"verdict": fitted.predict(X) == y, "score": proba.max(axis=1)}
    names |= {"decided": {"accepted": proba.max(axis=1) > 0.9}}
    names |= {"person": y, "grid": {"estimator__var_smoothing": [1e-9, 1e-6]}}

    page = (ROOT / "docs" / "cheatsheet.md").read_text()
    cells = re.findall(r"(?m)^\| .*\? \| (.*) \|$", page)
    calls = [call for cell in cells for call in re.findall(r"`([^`]+)`", cell)]
    assert len(calls) > 20
    for call in calls:
        exec(call, names)
        if "tuner" in names:
            names["policy"] = names["tuner"].policy_
