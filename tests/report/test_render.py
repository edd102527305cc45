"""The page: whole, without a network, and readable in a real browser, wide and narrow."""

import html
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle

from skselect import Predictions, SelectiveClassifier, ThresholdTuner, selective_report
from skselect.report import render, selective
from tests.browser import look_at, needs_browser


@pytest.fixture(scope="module")
def report():
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)  # the writers take turns
    model = SelectiveClassifier(GaussianNB(), calibration="temperature", cv=3).fit(X[:600], y[:600])
    tuner = ThresholdTuner(FrozenEstimator(model), objective="risk", target=0.25)
    tuner.fit(X[600:1200], y[600:1200])
    other = LogisticRegression(max_iter=2000).fit(X[:600] / 16, y[:600])
    return selective_report(
        y[1200:],
        {"bayes": tuner.raw_scores(X[1200:]), "logistic <b>": other.predict_proba(X[1200:] / 16)},
        policy={"bayes": tuner.policy_, "logistic <b>": None},
        features=pd.DataFrame(X[1200:, 20:24], columns=["p <1>", "p2", "p3", "p4"]),
        subgroups=pd.DataFrame({"parity": y[1200:] % 2, "half": np.arange(597) // 300}),
        title="Digits & caveats",
    )


@pytest.fixture(scope="module")
def page(report):
    return report.to_html()


def test_it_holds_everything_and_asks_the_network_for_nothing(page):
    assert "<title>Digits &amp; caveats</title>" in page
    assert page.count(">CERTIFIED</b>") == 1
    assert page.count("data:image/svg+xml;base64,") == 11
    for words in [
        "before calibration", "Most confident errors", "By class: answered cases",
        "By class: its answers",  # the second model never abstains
        "What does a risk target cost?", "<h2>Comparison by AUGRC</h2>", "p &lt;1&gt;",
    ]:  # fmt: skip
        assert words in page
    for words in ["logistic <b>", "p <1>", "<script", "@import"]:
        assert words not in page
    addresses = re.findall(r"(?:src|href)=\"([^\"]*)\"", page)
    assert addresses
    assert all(one.startswith(("data:", "#")) for one in addresses)
    assert not re.findall(r"url\((?!data:)", page)
    answers = ["a", "b", "a", "a"]
    given = Predictions.from_labels(["a", "b", "b", "a"], answers, [3.0, 7.0, 2.5, 5])
    bare = selective_report(None, given).to_html()
    assert "Is the confidence calibrated" not in bare
    assert bare.count("data:image/svg+xml") == 3


def test_all_that_is_to_be_read_is_the_main_part_of_the_page(page):
    [main] = re.findall(r"<main>(.*)</main>", page, re.DOTALL)
    for part in ("<h1>", "<nav", "<section", "Made by skselect"):
        assert main.count(part) == page.count(part) > 0


def test_labels_lie_inside_their_picture(monkeypatch):
    drawn = []
    make = render.new_figure
    monkeypatch.setattr(
        render, "new_figure", lambda **given: drawn.append(make(**given)) or drawn[-1]
    )
    selective_report([0, 1, 1, 0] * 9, [0.1, 0.9, 0.8, 0.6] * 9).to_html()
    assert len(drawn) == 5
    for ax in drawn:
        ax.figure.draw_without_rendering()
        whole, x, y = ax.figure.bbox, ax.xaxis.label, ax.yaxis.label
        below, beside = x.get_window_extent(), y.get_window_extent()
        assert whole.x0 <= below.x0 <= below.x1 <= whole.x1, x.get_text()
        assert whole.y0 <= beside.y0 <= beside.y1 <= whole.y1, y.get_text()


def test_text_and_page_show_the_same_in_the_same_order(report, page):
    titles = [html.unescape(title) for title in re.findall(r"<h[23]>(.*?)</h[23]>", page)]
    titles = [title for title in titles if title != "In pictures"]
    text = str(report)
    places, start = [], 0
    for title in titles:
        start = text.index(f"\n{title}\n", start)
        places.append(start)
    assert len(titles) == 3 + 8 + 7
    cells = re.findall(r"<td[^>]*>(.*?)</td>", page)
    words, shown = set(text.split()), " ".join(map(html.unescape, cells))
    assert set(shown.replace("\N{NO-BREAK SPACE}", " ").split()) <= words


def test_text_is_no_wider_than_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    hours = {"error": 0.1, "minutes": 6, "hourly_cost": 40}
    text = str(selective_report([0, 1, 1, 0] * 9, [0.1, 0.9, 0.8, 0.6] * 9, reviewing=hours))
    assert max(map(len, text.split("\n"))) <= 70
    assert "lowest confidence" in text  # the last column of a table that is wider


@pytest.mark.usefixtures("no_pictures")
def test_the_name_of_a_model():
    X, y = load_digits(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), GaussianNB())
    model = SelectiveClassifier(pipe, threshold=0.9).fit(X[:500], y[:500])
    raw = model.raw_scores(X[500:])
    for given, policy, name in [
        (raw, model.policy_, "GaussianNB"), ({"mine": raw}, model.policy_, "mine"),
        (raw, None, "Model"),
    ]:  # fmt: skip
        report = selective_report(y[500:], given, policy=policy)
        start = "" if name == "Model" else f"{name} on "
        assert str(report).split("\n")[3].startswith(f"{start}1,297 rows (class 0: ")
        assert f">{start}1,297 rows (class 0: " in report.to_html()
        assert "<h2>" not in report.to_html()  # a class is no heading


def test_a_file_is_written_whole_or_not_at_all(report, page, tmp_path, monkeypatch):
    monkeypatch.setattr(selective, "render_page", lambda *_, **__: page)
    assert report.to_html(tmp_path / "page.html") is None
    assert (tmp_path / "page.html").read_text().rstrip().endswith("</html>")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(ValueError, match="no folder"):
        report.to_html(tmp_path / "no" / "page.html")


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_in_a_browser(page, width, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page)
    found = look_at(path, width, tmp_path)
    assert found["width"] <= width
    assert found["beyond"] == found["cut"] == found["dead"] == found["asked"] == []
    assert found["links"] == 3  # comparison, two models
    assert [name for name in found["headings"] if name in ("bayes", "logistic <b>")] == [
        "bayes", "logistic <b>",
    ]  # fmt: skip
    assert found["font"] == "16px"
    assert len(found["images"]) == 11
    letter = 10 * 96 / 72  # of 10 points, in a picture of its natural width
    assert all(letter * shown / natural >= 11 for shown, natural in found["images"])


@pytest.mark.usefixtures("no_pictures")  # but the one that shows all names
def test_names_of_every_kind():
    names = ["price $5_$6", "$\\frac$", "_hidden", "日本", "a & <b>"]
    p = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    page = selective_report([0, 1, 1], dict.fromkeys(names, p)).to_html()
    assert [name for name in names if html.escape(name) not in page] == []
