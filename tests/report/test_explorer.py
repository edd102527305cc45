"""The slider of a report: bounds are rounded to the safe side, what rows show to the nearest."""

import html
import json
import re
from fractions import Fraction

import numpy as np
import pytest
from sklearn.utils import check_random_state

import skselect as sk
from skselect.thresholds import simultaneous_band
from tests.browser import look_at, needs_browser, run_in

pytestmark = pytest.mark.usefixtures("no_pictures")


def draw(seed, n, decimals=9):
    """Return predictions that are wrong more often the less sure they are."""
    rng = check_random_state(seed)
    p = np.round(rng.uniform(0.5, 1, n), decimals)
    return sk.Predictions.from_proba(rng.uniform(size=n) >= (1 - p) / 3, p, labels=[False, True])


@pytest.fixture(scope="module")
def policy():
    return sk.select_threshold(draw(0, 3000), objective="risk", target=0.06).policy


def usual(text):
    """Return a text with usual spaces only."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def read_stops(page):
    """Return the stops of each slider of a page."""
    found = re.findall(r'<script type="application/json">(.*?)</script>', usual(page))
    return [json.loads(one) for one in found]


def share(text):
    """Return a percentage as an exact number."""
    return Fraction(text.removeprefix("≤ ").removesuffix(" %")) / 100


@pytest.mark.parametrize(("n", "decimals"), [(2000, 9), (2000, 2), (40, 9), (4000, 1)])
def test_each_stop_says_what_the_band_and_the_rows_say(n, decimals):
    rows = draw(n, n, decimals)
    curve = sk.RiskCoverageCurve.from_proba(rows.y_true, rows.y_proba, labels=[False, True])
    confidence, wrong = rows.y_proba.max(axis=1), rows.y_true != rows.y_pred
    band = dict(zip(curve.n_accepted.tolist(), simultaneous_band(curve, 0.1), strict=True))
    report = sk.selective_report(None, rows, confidence_level=0.9)
    [stops] = read_stops(report.to_html(interactive=True))
    assert 0 < len(stops) <= 260
    met = []
    for _, _, threshold, coverage, bound, deferred, found, own in stops:
        accepted = confidence >= float(threshold)
        k, errors = int(accepted.sum()), int(wrong[accepted].sum())
        assert bound == ("no bound" if band[k] == 1 else f"≤ {100 * band[k]:g} %")
        assert float(share(coverage)) == pytest.approx(k / n, rel=5e-3)
        assert int(deferred.replace(",", "")) == -(-1000 * (n - k) // n)
        assert re.match(rf"Wrong in these rows: {errors:,} of {k:,} answers? \(", found)
        shown = float(share(re.search(r"\((.*)\)", found)[1]))
        assert shown == pytest.approx(errors / k, rel=5e-3)
        assert own == ""
        met.append(k)
    assert met == sorted(met)
    assert {max(k for k in band if band[k] <= most) for most in band.values()} <= set(met)
    assert stops[-1][3] == "100 %"


def test_what_is_certified_is_marked(policy):
    rows = draw(1, 1500)
    page = sk.selective_report(None, rows, policy=policy).to_html(interactive=True)
    [stops] = read_stops(page)
    [own] = [stop for stop in stops if stop[-1]]
    confidence = rows.y_proba.max(axis=1)
    assert len(own[2]) < 6
    assert np.array_equal(confidence >= float(own[2]), policy.accepts(confidence))
    assert own[-1] == "This is the certified threshold; its bound is that of the certificate."
    assert own[4] == "≤ 6 %"
    assert f'value="{stops.index(own)}" autocomplete' in page
    assert "certified: at most 6 %</text>" in usual(page)
    assert "Back to the certified threshold</button>" in page
    accepted = policy.accepts(rows.y_proba.max(axis=1))
    assert own[6].startswith(
        f"Wrong in these rows: {np.sum(accepted & (rows.y_true != rows.y_pred))} of"
    )


def test_only_a_certificate_about_all_answers_is_marked_as_certified():
    for objective in (sk.Risk(0.1, given_prediction=True), sk.Coverage(0.7)):
        policy = sk.select_threshold(draw(0, 3000), objective=objective).policy
        assert policy.certificate.is_certified
        page = sk.selective_report(None, draw(1, 900), policy=policy).to_html(interactive=True)
        assert "certified: at" not in page
        assert "This is the policy's threshold." in page
    rows = draw(2, 300)
    page = sk.selective_report(None, rows, threshold=0.75).to_html(interactive=True)
    marked = [stop[2::5] for stop in read_stops(page)[0] if stop[-1]]
    assert marked == [["0.75", "This is the chosen threshold."]]
    nothing = sk.selective_report(None, rows, threshold=1.5).to_html(interactive=True)
    assert "</button>" not in nothing
    unsure = sk.selective_report(None, rows, confidence_level=0.4)  # no bound holds
    assert "<script" not in unsure.to_html(interactive=True)


def test_each_model_has_a_slider_and_says_what_its_bounds_assume(policy):
    rows = draw(3, 900)
    site = np.arange(900) % 2
    grouped = sk.select_threshold(
        draw(4, 3000), objective="risk", target=0.1, subgroups=np.arange(3000) % 2
    ).policy
    report = sk.selective_report(
        {"one": rows, "each": rows, "bare": rows},
        policy={"one": policy, "each": grouped, "bare": None}, subgroups=site,
    )  # fmt: skip
    page = usual(html.unescape(report.to_html(interactive=True)))
    assert len(read_stops(page)) == 3
    assert page.count("With 95 % confidence the bounds hold for all thresholds at once") == 3
    assert page.count("one threshold for all cases; the policy has several") == 1


def test_lines_stay_lines_where_a_page_loses_style_and_script(policy):
    """Mail programs and strict servers drop both."""
    page = sk.selective_report(None, draw(1, 900), policy=policy).to_html(interactive=True)
    lines = re.findall(r"<path (?!class=.mark)[^>]*>", page)
    assert len(lines) > 3
    assert all('fill="none" stroke="#' in line for line in lines)
    assert page.count('<div class="controls" hidden>') == 1
    assert all("width=" in picture for picture in re.findall(r"<svg[^>]*>", page))


_SLIDE = """
  const slider = page.querySelector("input[type=range]");
  const read = () => [slider.value, ...[...page.querySelectorAll("output")].map(o => o.textContent),
                      slider.getAttribute("aria-valuetext"),
                      page.querySelector(".here").getAttribute("transform")];
  const move = act => { act(); slider.dispatchEvent(new view.Event("input")); return read(); };
  slider.focus();
  return {
    start: read(),
    focused: page.activeElement === slider && slider.labels.length === 1,
    left: move(() => slider.stepDown(3)),
    end: move(() => slider.value = slider.max),
    back: (page.querySelector("button").click(), read()),
    height: slider.getBoundingClientRect().height,
  };
"""


@needs_browser
def test_the_slider_moves_in_a_browser(policy, tmp_path):
    path = tmp_path / "report.html"
    sk.selective_report(None, draw(1, 1500), policy=policy).to_html(path, interactive=True)
    [stops] = read_stops(path.read_text())
    start = next(k for k, stop in enumerate(stops) if stop[-1])
    found = run_in(path, 390, tmp_path, _SLIDE)
    places = {"start": start, "left": start - 3, "end": len(stops) - 1, "back": start}
    for name, k in places.items():
        value, *said, spoken, moved = map(usual, found[name])
        assert value == str(k)
        assert said == stops[k][2:]
        assert all(word in spoken for word in said[:4])
        assert moved == f"translate({stops[k][0]:g} 0)"
    assert found["focused"]
    assert found["height"] >= 40
    seen = look_at(path, 390, tmp_path)
    assert seen["width"] <= 390
    assert seen["beyond"] == seen["cut"] == seen["dead"] == seen["asked"] == []
