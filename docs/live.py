"""A report that a page shows as its own code makes it while the site is built.

A Sphinx extension. A page with the directive ``live-report`` is run: the report that its code calls
`report` is shown there, in the colours of the site, and its cards hold what the code has printed.
So do the cards of `live_pages`.
"""

import doctest
import io
import re
from contextlib import chdir, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

#: What the directive shows, cut out of the written page: three numbers with a picture, or a slider.
PARTS = {
    "numbers": r'<div class="figures">.*?</svg>',
    "slider": r'<div class="explorer">.*?(?=</section>)',
}
#: Where the whole report is, beside the page.
FILE = "report.html"
#: Rules of the report's style sheet that concern these parts, and the colours of both themes.
_RULES = re.compile(r"^\.(?:soft|figures|glance|numbers|explorer|here)\b.*$", re.MULTILINE)
_NARROW = re.compile(r"^@media screen and \(max-width.*?^}", re.MULTILINE | re.DOTALL)
_COLORS = re.compile(r"--[a-z]+: #[0-9a-f]+;")


def run_code(page: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Run the code of a page; return its names, and what each statement has printed."""
    names: dict[str, Any] = {}
    printed = {}
    without_flags = re.sub(r"# doctest: .*", "", page)
    with TemporaryDirectory() as folder, chdir(folder):  # for files that the page writes
        for example in doctest.DocTestParser().get_examples(without_flags):
            output = io.StringIO()
            with redirect_stdout(output):
                exec(compile(example.source, "<page>", "single"), names)
            printed[example.source.strip()] = output.getvalue()
    return names, printed


def cut_out(page: str, part: str) -> str:
    """Return a part of a report's page with what it needs of the style and the script."""
    found = re.search(PARTS[part], page, re.DOTALL)
    if found is None:
        raise LookupError(f"The page of a report has no {part}: see PARTS in docs/live.py.")
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    themes = re.findall(r":root {.*?}", style, re.DOTALL)
    light, dark = (" ".join(_COLORS.findall(theme)) for theme in themes)
    rules = "\n".join(_RULES.findall(style) + _NARROW.findall(style))
    shown = f'<div class="live-report">\n{found[0]}\n</div>'
    if part == "slider":
        shown += re.search(r"<script>.*?</script>", page, re.DOTALL)[0]
    else:
        shown += f'\n<p><a href="{FILE}">See the whole report</a></p>'
    return (
        f"<style>\n.live-report {{ {light}\n{rules}\n}}\n"
        f'html[data-theme="dark"] .live-report {{ {dark} }}\n</style>\n{shown}'
    )


class LiveReport(SphinxDirective):
    """Shows a part of the report that the page's code makes: "numbers" or "slider"."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Run the page once, and write the whole report beside it."""
        values = self.env.temp_data
        if "report_page" not in values:
            names = run_page(self.env)
            values["report_page"] = names["report"].to_html(interactive=True)
            self.env.app.outdir.mkdir(parents=True, exist_ok=True)
            (self.env.app.outdir / FILE).write_text(values["report_page"])
        return [nodes.raw("", cut_out(values["report_page"], self.arguments[0]), format="html")]


def run_page(env: BuildEnvironment) -> dict[str, Any]:
    """Run the code of the page that is read; return its names, and keep what it has printed."""
    source = Path(env.doc2path(env.docname)).read_text()
    names, env.temp_data["printed"] = run_code(source)
    return names


def run_live_page(app: Sphinx, _doctree: nodes.document) -> None:
    """Run a page whose cards shall hold what its code prints."""
    if app.env.docname in app.config.live_pages:
        run_page(app.env)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_config_value("live_pages", (), "env")
    app.connect("doctree-read", run_live_page, priority=50)  # before cards are made
    app.add_directive("live-report", LiveReport)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
