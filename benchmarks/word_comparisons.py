"""Count how often the code compares an objective, a method or a loss with words.

Run ``python benchmarks/word_comparisons.py [folder]``. Comparisons and membership tests of names
or attributes called `objective`, `method` or `loss` count, and look-ups by them.
"""

import ast
import sys
from collections import Counter
from pathlib import Path

NAMES = {"objective", "method", "loss"}


def _is_asked(node: ast.AST) -> bool:
    name = getattr(node, "id", getattr(node, "attr", None))
    return isinstance(node, ast.Name | ast.Attribute) and name in NAMES


def _is_word(node: ast.AST) -> bool:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return bool(node.elts) and all(map(_is_word, node.elts))
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _counts(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        member = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
        return any(map(_is_asked, sides)) and (member or any(map(_is_word, sides)))
    if isinstance(node, ast.Subscript):
        return _is_asked(node.slice)
    return isinstance(node, ast.Match) and _is_asked(node.subject)


def main(folder: str = "skselect") -> None:
    found = Counter(
        str(path)
        for path in sorted(Path(folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _counts(node)
    )
    for path, count in found.most_common():
        print(f"{count:4d}  {path}")
    print(f"{found.total():4d}  in {len(found)} files")


if __name__ == "__main__":
    main(*sys.argv[1:])
