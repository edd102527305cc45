"""Certificates, checks and alarms that a page prints, shown as a notebook shows them.

A Sphinx extension: output that begins with a verdict leaves its block of code and becomes a card.
"""

import re
from collections.abc import Mapping

from docutils import nodes
from sphinx.application import Sphinx

from skselect._lib.notebook import VERDICTS, show_card

#: How outputs begin that become cards, and their colours.
TONES = {
    **dict(VERDICTS.values()), "CERTIFIED": "good", "ALARM": "bad", "UPPER BOUND ONLY": "open",
    "ESTIMATE, NOT CERTIFIED": "open", "GUARANTEES NOTHING": "open",
}  # fmt: skip
#: The large numbers of a certificate, found in its sentences.
NUMBERS = {
    "of these cases answered": r"answered \((\d[\d.]* %)\)",
    "wrong answers, guaranteed": r"(At most \d[\d.]* %) of the answers",
}
_SMALL = ("You vouch", "BROKEN or CONFIRMED")
# Lines of code, then lines of output, which end before the next prompt.
_CALL = re.compile(r"((?:^(?:>>>|\.\.\.).*\n)+)((?:^(?!>>>).*\n)*)", re.MULTILINE)


def make_card(said: str) -> str | None:
    """Return an output as HTML if it begins with a verdict."""
    verdict = next(filter(said.startswith, TONES), None)
    if verdict is None:
        return None
    text = said.replace("<BLANKLINE>\n", "").rstrip()
    text = re.sub(r"( ?\.\.\.)?(\n *\.\.\.)+$", " ...", text, flags=re.MULTILINE)  # once is enough
    first_small = re.search(rf"^({'|'.join(_SMALL)})", text, re.MULTILINE)
    small = re.findall(r"^(?! )", text[first_small.start() :], re.MULTILINE) if first_small else []
    found = {}
    if verdict == "CERTIFIED":
        one_line = " ".join(text.split())
        found = {name: re.search(pattern, one_line) for name, pattern in NUMBERS.items()}
    numbers = {name: match[1].replace("At most", "≤") for name, match in found.items() if match}
    return show_card(text, TONES[verdict], numbers, len(small))


def split_block(code: str, printed: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Return a block of code as parts in their order: ("code", lines) or ("card", HTML).

    What a statement has `printed` while the site was built stands for what the page says of it.
    """
    printed = printed or {}
    if not code.startswith(">>>"):
        card = make_card(code)
        return [("card", card)] if card else []
    parts, kept = [], ""
    for call, said in _CALL.findall(f"{code.rstrip()}\n"):
        *_, last_call = call.split(">>> ")
        statement = last_call.replace("\n... ", "\n").strip()
        card = make_card(printed.get(statement, said))
        kept += call if card else call + said
        if card:
            parts += [("code", kept.rstrip()), ("card", card)]
            kept = ""
    return [*parts, ("code", kept.rstrip())] if kept else parts


def show_cards(app: Sphinx, doctree: nodes.document) -> None:
    """Let the verdicts that a page prints leave their blocks."""
    printed = app.env.temp_data.get("printed")
    blocks = nodes.literal_block, nodes.doctest_block
    for block in list(doctree.findall(lambda node: isinstance(node, blocks))):
        parts = split_block(block.astext(), printed)
        if not any(kind == "card" for kind, _ in parts):
            continue
        made: list[nodes.Node] = []
        for kind, text in parts:
            if kind == "card":
                made.append(nodes.raw("", text, format="html"))
            else:
                part = block.copy()
                part.rawsource = text
                made.append(part)
                part += nodes.Text(text)
        block.replace_self(made)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("doctree-read", show_cards, priority=200)  # before names in code are linked
    return {"parallel_read_safe": True, "parallel_write_safe": True}
