"""The page: whole, without a network, and readable in a real browser, wide and narrow."""

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import shuffle

from skselect import Predictions, SelectiveClassifier, ThresholdTuner, selective_report

BROWSER = next(filter(shutil.which, ["chromium", "chromium-browser", "google-chrome"]), None)


@pytest.fixture(scope="module")
def page():
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)  # the writers take turns
    model = SelectiveClassifier(GaussianNB(), calibration="temperature", cv=3).fit(X[:600], y[:600])
    tuner = ThresholdTuner(FrozenEstimator(model), objective="risk", target=0.25)
    tuner.fit(X[600:1200], y[600:1200])
    other = LogisticRegression(max_iter=2000).fit(X[:600] / 16, y[:600])
    report = selective_report(
        y[1200:],
        {"bayes": tuner.raw_scores(X[1200:]), "logistic <b>": other.predict_proba(X[1200:] / 16)},
        policy={"bayes": tuner.policy_, "logistic <b>": None},
        features=pd.DataFrame(X[1200:, 20:24], columns=["p <1>", "p2", "p3", "p4"]),
        subgroups=pd.DataFrame({"parity": y[1200:] % 2, "half": np.arange(597) // 300}),
        title="Digits & doubts",
    )
    return report.to_html()


def test_it_holds_everything(page):
    assert "<title>Digits &amp; doubts</title>" in page
    assert "CERTIFIED\nIf future cases" in html.unescape(page)
    assert "before calibration" in page
    assert "Most confident errors" in page
    assert "By class: what it decides alone" in page
    assert "By class: its answers" in page  # the second model never abstains
    assert "What does a risk target cost?" in page
    assert "<h2>Comparison</h2>" in page
    assert page.count("data:image/svg+xml;base64,") == 11


def test_it_asks_the_network_for_nothing(page):
    assert "<script" not in page
    assert "@import" not in page
    addresses = re.findall(r"(?:src|href)=\"([^\"]*)\"", page)
    assert addresses
    assert all(one.startswith(("data:", "#")) for one in addresses)
    assert not re.findall(r"url\((?!data:)", page)


def test_names_are_text_and_no_markup(page):
    assert "logistic <b>" not in page
    assert "p <1>" not in page
    assert "p &lt;1&gt;" in page


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    report = selective_report([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    assert report.to_html(tmp_path / "page.html") is None
    assert (tmp_path / "page.html").read_text().rstrip().endswith("</html>")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(ValueError, match="no folder"):
        report.to_html(tmp_path / "no" / "page.html")


def test_a_confidence_without_probabilities():
    given = Predictions.from_labels(["a", "b", "b", "a"], ["a", "b", "a", "a"], [3.0, 7.0, 2.5, 5])
    page = selective_report(None, given).to_html()
    assert "Is the confidence honest" not in page
    assert page.count("data:image/svg+xml") == 3


_PROBE = """
<body style="margin:0">
<iframe id="page" style="border:0;height:4000px;width:{width}px" srcdoc="{source}"></iframe>
<pre id="found"></pre>
<script>
document.getElementById("page").onload = event => {{
  const page = event.target.contentDocument, root = page.documentElement;
  const asked = event.target.contentWindow.performance.getEntriesByType("resource");
  const wide = [...page.querySelectorAll("h1, h2, h3, p, figure, img, .certificate, .scroll")]
    .filter(e => e.getBoundingClientRect().right > {width} + 1).map(e => e.tagName);
  document.getElementById("found").textContent = JSON.stringify({{
    width: root.scrollWidth, wide: wide, headings: page.querySelectorAll("h2").length,
    broken: [...page.images].filter(i => !(i.complete && i.naturalWidth > 0)).length,
    images: page.images.length, font: getComputedStyle(page.body).fontSize,
    asked: asked.map(e => e.name).filter(name => !name.startsWith("data:")),
  }});
}};
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [390, 1280])
def test_in_a_browser(page, width, tmp_path):
    probe = tmp_path / "probe.html"
    probe.write_text(_PROBE.format(width=width, source=html.escape(page, quote=True)))
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000",
         f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", probe.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', done.stdout)[1]))
    assert found["width"] <= width
    assert found["wide"] == []
    assert found["headings"] == 3
    assert found["images"] == 11
    assert found["broken"] == 0
    assert found["asked"] == []
    assert found["font"] == "16px"


@pytest.mark.parametrize("name", ["price $5_$6", "$\\frac$", "_hidden", "日本", "a & <b>"])
def test_names_of_every_kind(name):
    p = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    page = selective_report([0, 1, 1], {name: p, "other": p}).to_html()
    assert html.escape(name) in page
