"""Web pages as a real browser shows them."""

import html
import json
import re
import shutil
import subprocess

import pytest

_NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"]
_BROWSER = next(filter(shutil.which, _NAMES), None)
needs_browser = pytest.mark.skipif(
    _BROWSER is None, reason="no browser: install Chromium or Chrome to run this test"
)

# The page stands in a frame: windows of some browsers are never as narrow as a phone.
_PROBE = """
<body style="margin:0">
<iframe id="page" style="border:0;height:4000px;width:{width}px" src="{address}"></iframe>
<pre id="found"></pre>
<script>
document.getElementById("page").onload = async event => {{
  const page = event.target.contentDocument, view = event.target.contentWindow;
  await Promise.all([...page.images].filter(i => !i.complete).map(image => {{
    image.loading = "eager";  // the browser's clock waits for files, but not for decoding
    return new Promise(done => image.onload = image.onerror = done);
  }}));
  const look = () => {{ {script} }};
  document.getElementById("found").textContent = JSON.stringify(look());
}};
</script>
"""
# What may not reach beyond the page, unless a box around it can be scrolled.
_LOOK = """
  page.querySelectorAll("details").forEach(part => part.open = true);
  const width = document.getElementById("page").clientWidth;
  const scrolls = e => e && e !== page.body && e !== page.documentElement &&
    (["auto", "scroll"].includes(view.getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  const hidden = e => ["hidden", "clip"].includes(view.getComputedStyle(e).overflowX);
  const name = e => e.tagName + " " + (e.id || e.className || e.textContent.slice(0, 40));
  const shown = "h1, h2, h3, p, li, a, img, pre, table, div, nav, figure, figcaption, svg, input";
  const blocks = [...page.querySelectorAll(shown)].filter(e => !scrolls(e));
  const asked = view.performance.getEntriesByType("resource").map(e => e.name);
  const links = [...page.querySelectorAll("a[href^='#']")].map(a => a.getAttribute("href"));
  return {
    width: page.documentElement.scrollWidth,
    beyond: blocks.filter(e => e.getBoundingClientRect().right > width + 1).map(name),
    cut: blocks.filter(e => hidden(e) && e.scrollWidth > e.clientWidth + 1).map(name),
    links: links.length,
    dead: links.filter(to => to !== "#" && !page.getElementById(decodeURIComponent(to.slice(1)))),
    images: [...page.images].map(i => [i.clientWidth, i.naturalWidth]),
    headings: [...page.querySelectorAll("h1, h2, h3")].map(e => e.textContent),
    font: view.getComputedStyle(page.body).fontSize,
    asked: asked.filter(name => !name.startsWith("data:")),
  };
"""


def look_at(path, width, folder):
    """Open an HTML file in a page of this width; return what a browser finds.

    `width` is that of the whole content; `beyond` and `cut` name elements that a reader cannot
    see whole, `dead` the links within the page that lead nowhere. `images` has the shown and the
    natural width of each (0: not loaded), `asked` the addresses that the page loaded.
    `folder` is for the probe and the browser's own files.
    """
    return run_in(path, width, folder, _LOOK)


def run_in(path, width, folder, script):
    """Open an HTML file in a page of this width; return what a script returns there.

    The script is the body of a function that knows `page` (the document) and `view` (its window).
    """
    probe = folder / "probe.html"
    address = html.escape(path.resolve().as_uri())
    probe.write_text(_PROBE.format(width=width, address=address, script=script))
    done = subprocess.run(
        [_BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000",
         "--allow-file-access-from-files", "--disable-dev-shm-usage", "--hide-scrollbars",
         f"--user-data-dir={folder / 'profile'}", "--dump-dom", probe.as_uri()],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    found = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, f"the browser has not loaded {path}: {done.stderr[-2000:]}"
    return json.loads(html.unescape(found[1]))
