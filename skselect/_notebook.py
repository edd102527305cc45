"""How results look in a notebook."""

from __future__ import annotations

from html import escape


class NotebookText:
    """Shows in a notebook what `print` shows."""

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre-wrap">{escape(str(self))}</pre>'
