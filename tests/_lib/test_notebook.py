"""One line without arrays in a console, the whole text in a notebook."""

import html
import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

import skselect as sk
from skselect._lib.notebook import TONES, show_card, unwrap, wrap
from skselect.calibration._calibrators import CALIBRATORS
from skselect.inference import metric_interval
from skselect.metrics import csr_test, ecce_test, ecd_test, t_cal_test


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1, 900)
    y = (rng.random(900) < p).astype(int)
    proba = np.column_stack([1 - p, p])
    predictions = sk.Predictions.from_proba(y, proba)
    site = np.where(rng.random(900) < 0.5, "<b>north</b>", "south")
    goal = {"objective": "risk", "target": 0.3}
    chosen = sk.select_threshold(predictions, **goal)
    by_site = sk.select_threshold(predictions, subgroups=site, **goal)
    outcomes = sk.Outcomes.of(predictions)
    quiet = {
        "Predictions": predictions,
        "Outcomes": outcomes,
        "weighted Outcomes": sk.Outcomes([0, 1], [0.9, 0.8], [1, 3]),
        "RiskCoverageCurve": sk.RiskCoverageCurve.from_outcomes(outcomes),
    }
    loud = {
        "ThresholdSelection": chosen,
        "metric ThresholdSelection": sk.select_threshold(predictions, objective="cwsa"),
        "GroupedSelection": by_site,
        "Certificate": chosen.certificate,
        "AbstentionPolicy": chosen.policy,
        "grouped AbstentionPolicy": by_site.policy,
        "plain AbstentionPolicy": sk.AbstentionPolicy(classes=[0, 1], threshold=0.7),
        "MetricInterval": metric_interval(y, proba, "augrc"),
        "SelectiveReport": sk.selective_report(y, proba),
        "CsrTest": csr_test(y, proba, n_draws=19),
        "EcceTest": ecce_test(y, proba),
        "EcdTest": ecd_test(y, proba),
        "TCalTest": t_cal_test(y, proba),
    }
    return quiet, loud


def read_html(page):
    """Return the text of a page, a space between its parts."""
    return html.unescape(re.sub("<[^>]*>", " ", page)).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.filterwarnings("ignore:cwsa", "ignore:min_coverage")
def test_one_line_without_arrays(results):
    for name, result in (results[0] | results[1]).items():
        text = repr(result)
        assert name.split()[-1] in text
        assert "\n" not in text
        assert "array(" not in text
        assert len(text) < 250, text


@pytest.mark.filterwarnings("ignore:cwsa", "ignore:min_coverage")
def test_notebooks_show_the_text_escaped(results):
    for name, result in results[1].items():
        page = result._repr_html_()
        assert page.count("skselect-card") == {
            "ThresholdSelection": 1, "metric ThresholdSelection": 1, "GroupedSelection": 1,
            "Certificate": 1, "AbstentionPolicy": 1, "grouped AbstentionPolicy": 1,
            "plain AbstentionPolicy": 1,
        }.get(name, 0)  # fmt: skip
        assert page.startswith("<pre") == ("skselect-card" not in page)
        assert "<b>north" not in page
        shown = set(read_html(page).lower().split())
        if "Grouped" not in name:  # whose table has the numbers of `to_frame`
            assert {word for word in str(result).split() if word.islower()} <= shown
    grouped = results[1]["grouped AbstentionPolicy"]._repr_html_()
    assert "&lt;b&gt;north&lt;/b&gt;" in grouped
    assert grouped.count("CERTIFIED") == 1  # one text says it of both subgroups
    assert grouped.count(">certified<") == 2
    assert "CERTIFIED" in str(results[1]["AbstentionPolicy"])


@pytest.mark.filterwarnings("ignore:cwsa")
def test_cards_begin_with_the_verdict_and_their_numbers_are_those_of_the_text(results):
    loud = results[1]
    tones = {"ThresholdSelection": "good", "metric ThresholdSelection": "open"}
    for name, tone in tones.items():
        page, text = loud[name]._repr_html_(), str(loud[name])
        verdict = re.search(f"background:{TONES[tone]}[^>]*>(.*?)</b>", page)[1]
        assert text.startswith(verdict)
        assert verdict.isupper()
        numbers = re.findall(r"font-size:1.7em[^>]*>(.*?)</b>", page)
        assert len(numbers) == (3 if tone == "good" else 2)
        for number in map(read_html, numbers):
            assert number.strip("≤≥% ") in text or name.startswith("metric")
        assert str(round(loud[name].to_frame(max_rows=12)["coverage"].iloc[0], 3)) in page


def test_a_card_of_any_text():
    page = show_card("NOT <b>", "open", {"a <i>": "5 %", "of none": ""}, n_small=9)
    assert read_html(page).split() == ["NOT", "<b>", "5", "%", "a", "<i>"]
    assert "<i>" not in page
    alarm = read_html(show_card("ALARM with case 3\n\nIt stays\n  true.", "bad"))
    assert alarm.split() == ["ALARM", "With", "case", "3", "It", "stays", "true."]
    assert read_html(show_card("A plain text", "good")).split() == ["A", "plain", "text"]


def test_a_tuner_shows_its_threshold_beside_the_diagram(rng):
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] > 0).astype(int)
    model = FrozenEstimator(GaussianNB().fit(X[:200], y[:200]))
    tuner = sk.ThresholdTuner(model, "risk", target=0.1)
    assert "skselect-card" not in tuner._repr_html_()
    tuner.fit(X[200:], y[200:])
    for page in (tuner._repr_html_(), tuner._repr_mimebundle_()["text/html"]):
        assert page.startswith(tuner.certificate_._repr_html_())
        assert "FrozenEstimator" in page
    with config_context(display="text"):
        assert not hasattr(tuner, "_repr_html_")
        assert list(tuner._repr_mimebundle_()) == ["text/plain"]


def test_fitted_calibrators_show_what_they_learnt(rng):
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    for name, learnt in {"platt": "slope", "temperature": "temperature", "beta": "c"}.items():
        assert ":" not in repr(CALIBRATORS[name]())
        model = sk.SelectiveClassifier(GaussianNB(), calibration=name).fit(X, y)
        assert f" {learnt} " in repr(model.calibration_)


def test_long_lines_are_wrapped_and_short_ones_stay():
    words = " ".join(f"word{k}" for k in range(60))
    text = f"{words}\n\nshort  line\n" + 20 * "12.5 % " + "'" + 100 * "x" + "-y'\n(each of 'a  b')"
    lines = wrap(text).split("\n")
    assert all(len(line) <= 88 for line in lines if "xxx" not in line)
    assert "short  line" in lines
    assert not any(line.strip().startswith("%") for line in lines)
    assert unwrap(wrap(text)) == text


@pytest.mark.parametrize(("columns", "longest"), [("60", 60), ("88", 88), ("300", 88)])
def test_lines_are_as_long_as_the_terminal_is_wide(monkeypatch, columns, longest):
    monkeypatch.setenv("COLUMNS", columns)
    text = " ".join(["word"] * 200)
    assert longest - 5 < max(map(len, wrap(text).split("\n"))) <= longest
    assert unwrap(wrap(text)) == text


@pytest.mark.filterwarnings("ignore:cwsa", "ignore:min_coverage")
def test_no_text_has_long_lines(results):
    for result in results[1].values():
        assert max(map(len, str(result).split("\n"))) <= 96, result
