"""The answer of a monitor as a web page: its card, a table of batches, and the picture."""

from __future__ import annotations

import base64
import io
import warnings
from pathlib import Path
from string import Template

from skselect._lib.files import import_extra, write_whole
from skselect.display.monitor import MonitorDisplay
from skselect.monitoring.monitor import SelectiveRiskMonitor

_PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Is the guarantee kept?</title>
<style>
body { font-family: system-ui, sans-serif; margin: 2rem auto; max-width: 52rem; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border: 0; border-bottom: 1px solid #8888; padding: .3rem .8rem; text-align: right; }
div.wide { overflow-x: auto; }
img { max-width: 100%; }
p.note { font-size: .85em; opacity: .8; white-space: pre-line; }
</style>
</head>
<body>
<h1>Is the guarantee kept?</h1>
$card
<div class="wide">
$table
</div>
<p class="note">At most: an upper bound of each row by itself.</p>
<img alt="Evidence against the guarantee with the alarm line; below it risk and coverage"
src="$picture">
</body>
</html>
""")


def write_page(watched: SelectiveRiskMonitor, card: str, path: Path) -> None:
    """Write a page that stands alone, with a card of the answer."""
    table = watched.table().to_html(border=0)
    page = _PAGE.substitute(card=card, table=table, picture=_draw(watched))
    write_whole(path, page)


def _draw(watched: SelectiveRiskMonitor) -> str:
    """Return the picture as a data URL."""
    plt = import_extra("matplotlib.pyplot", "matplotlib")
    buffer = io.BytesIO()
    with plt.style.context("default"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # about letters that the font lacks
        display = MonitorDisplay.from_monitor(watched)
        display.figure_.savefig(buffer, format="svg", metadata={"Date": None})
        plt.close(display.figure_)
    encoded = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/svg+xml;base64,{encoded}"
