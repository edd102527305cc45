"""The built site: every link and anchor inside it leads somewhere, and pages open in a browser.

Skipped until `python -m sphinx -b html docs docs/_build/html` has built it.
"""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser import look_at, needs_browser

SITE = Path(__file__).resolve().parents[1] / "docs" / "_build" / "html"
pytestmark = pytest.mark.skipif(
    not (SITE / "index.html").is_file(), reason="the site is not built: see CONTRIBUTING.md"
)


class Page(HTMLParser):
    """The anchors of a page, and what it links to."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given.get("id"), given.get("name")}
        self.links |= {given.get("href"), given.get("src")} - {None}


@pytest.fixture(scope="module")
def pages():
    return {path: Page(path) for path in SITE.rglob("*.html") if "_static" not in path.parts}


def test_links_and_anchors_lead_somewhere(pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            where = urlsplit(link)
            if where.scheme or where.netloc:
                continue
            target = (path.parent / unquote(where.path)).resolve() if where.path else path
            anchor = unquote(where.fragment)
            if not target.exists() or (
                anchor and target in pages and anchor not in pages[target].anchors
            ):
                broken.append(f"{path.relative_to(SITE)}: {link}")
    assert not broken


def test_names_in_prose_tables_and_code_are_links():
    metrics = (SITE / "metrics.html").read_text()
    assert re.search(r'<a [^>]*cwsa_plus_score"[^>]*><code[^>]*><span[^>]*>cwsa_plus<', metrics)
    start = (SITE / "start.html").read_text()
    assert re.search(r'<a [^>]*href="[^"]*#skselect.ThresholdTuner.decide"[^>]*>', start)
    assert "https://scikit-learn.org/stable/modules/generated/sklearn." in start
    check = (SITE / "api" / "generated" / "skselect.check_policy.html").read_text()
    assert re.search(r'classifier"><a [^>]*>AbstentionPolicy</a>', check)  # a parameter's type
    assert re.search(r'<a [^>]*AbstentionPolicy"[^>]*><span class="n">', check)  # its example


def test_attributes_are_in_the_contents_of_a_page():
    tuner = (SITE / "api" / "generated" / "skselect.ThresholdTuner.html").read_text()
    contents = tuner.split('id="pst-page-toc-nav')[1]
    places = [
        contents.index(f'#skselect.ThresholdTuner.{name}"')
        for name in ("policy_", "selection_", "fit")
    ]
    assert places == sorted(places)


def test_the_first_page_shows_what_its_code_makes():
    home = (SITE / "index.html").read_text()
    assert home.count('<div class="live-report">') == 2
    assert re.search(r"Tested on 539 cases: \d+ answered", home)
    assert (SITE / "report.html").is_file()
    assert 'rel="icon"' in home
    assert "logo_dark.svg" in home


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["index", "howto/index", "metrics", "api/index", "gallery/index"])
def test_pages_open_in_a_browser_and_nothing_reaches_beyond(name, width, tmp_path):
    seen = look_at(SITE / f"{name}.html", width, tmp_path)
    assert seen["width"] <= width
    assert not seen["beyond"]
    assert not seen["dead"]
    assert all(natural for _, natural in seen["images"])
    assert seen["headings"]
