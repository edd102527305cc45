"""How dense a package is to read, and how much of it each public function imports.

    python tests/density.py PACKAGE_FOLDER [MODULE ...]
    python tests/density.py --files PACKAGE_FOLDER      # expressions a statement of each file

First line: lines of code (no blank line, comment or docstring), statements that do something (no
import, definition, pass or bare annotation), expressions (but names and constants, annotations and
decorators), and for 1,000 statements: conditional expressions, packed assignments (a, b = c, d),
comprehensions, walruses; functions with more than 12 local names, 5 parameters, 30 statements.
Then, for each module named (such as skselect.monitoring.check), the code lines of all modules of
the package that importing it brings in.
"""

import ast
import sys
from functools import cache
from pathlib import Path

#: What may begin with a docstring.
HOLDERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(errors="ignore"))


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@cache
def code_lines(path: Path) -> int:
    text = path.read_text(errors="ignore")
    prose: set[int] = set()
    for node in ast.walk(parse(path)):
        body = getattr(node, "body", None)
        if isinstance(node, HOLDERS) and body and is_docstring(body[0]):
            prose |= set(range(body[0].lineno, body[0].end_lineno + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        bool(x.strip()) and not x.strip().startswith("#") and i not in prose for i, x in lines
    )


def measure(root: Path) -> dict[str, float]:
    paths = [
        p for p in root.rglob("*.py") if not {"tests", "test"} & set(p.relative_to(root).parts)
    ]
    found = dict.fromkeys(
        [
            "lines",
            "statements",
            "expressions",
            "ternaries",
            "packed",
            "comprehensions",
            "walruses",
            "functions",
            "many_locals",
            "many_parameters",
            "many_statements",
        ],
        0,
    )
    for path in paths:
        tree = parse(path)
        found["lines"] += code_lines(path)
        no_code = said_not_done(tree)
        for node in ast.walk(tree):
            if does(node):
                found["statements"] += 1
            if (
                isinstance(node, ast.expr)
                and not isinstance(node, ast.Name | ast.Constant)
                and id(node) not in no_code
            ):
                found["expressions"] += 1
            found["ternaries"] += isinstance(node, ast.IfExp)
            found["walruses"] += isinstance(node, ast.NamedExpr)
            found["comprehensions"] += isinstance(
                node, ast.ListComp | ast.DictComp | ast.SetComp | ast.GeneratorExp
            )
            found["packed"] += (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Tuple)
                and isinstance(node.targets[0], ast.Tuple)
            )
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                stored = {
                    n.id
                    for n in ast.walk(node)
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                }
                a = node.args
                own = [
                    x for x in a.posonlyargs + a.args + a.kwonlyargs if x.arg not in ("self", "cls")
                ]
                found["functions"] += 1
                found["many_locals"] += len(stored) > 12
                found["many_parameters"] += len(own) > 5
                found["many_statements"] += (
                    sum(isinstance(n, ast.stmt) for n in ast.walk(node)) > 31
                )
    return found


def does(node: ast.AST) -> bool:
    """Tell whether a statement does something: no import, definition, pass or bare annotation."""
    idle = (
        ast.Import,
        ast.ImportFrom,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Pass,
    )
    if not isinstance(node, ast.stmt) or isinstance(node, idle) or is_docstring(node):
        return False
    return not (isinstance(node, ast.AnnAssign) and node.value is None)


def said_not_done(tree: ast.AST) -> set[int]:
    """Return the nodes of annotations and decorators, which compute nothing in a function."""
    roots: list[ast.AST | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            a = node.args
            every = a.posonlyargs + a.args + a.kwonlyargs + [x for x in (a.vararg, a.kwarg) if x]
            roots += [node.returns, *node.decorator_list, *(x.annotation for x in every)]
        elif isinstance(node, ast.AnnAssign):
            roots.append(node.annotation)
    return {id(x) for root in roots if root is not None for x in ast.walk(root)}


def reach(root: Path, start: str) -> tuple[int, int]:
    """Return how many modules importing `start` brings in, and their lines of code."""
    package = root.name
    modules = {}
    for path in root.rglob("*.py"):
        name = ".".join((package, *path.relative_to(root).with_suffix("").parts))
        modules[name.removesuffix(".__init__")] = path

    def imports(name: str) -> set[str]:
        out: set[str] = set()

        def visit(node: ast.AST) -> None:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                    continue
                if isinstance(child, ast.ImportFrom) and (child.module or "").startswith(package):
                    for one in child.names:
                        full = f"{child.module}.{one.name}"
                        out.add(full if full in modules else str(child.module))
                elif isinstance(child, ast.Import):
                    out.update(one.name for one in child.names)
                visit(child)

        visit(parse(modules[name]))
        return out & set(modules)

    seen: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        if name in seen or name not in modules:
            continue
        seen.add(name)
        parts = name.split(".")
        todo += [".".join(parts[:i]) for i in range(2, len(parts))]
        todo += imports(name)
    return len(seen), sum(code_lines(modules[x]) for x in seen)


def measure_file(path: Path) -> tuple[float, int]:
    """Return the expressions a statement of a file, and its statements."""
    tree = parse(path)
    no_code = said_not_done(tree)
    n_statements = sum(does(node) for node in ast.walk(tree))
    n_expressions = sum(
        isinstance(node, ast.expr)
        and not isinstance(node, ast.Name | ast.Constant)
        and id(node) not in no_code
        for node in ast.walk(tree)
    )
    return n_expressions / max(n_statements, 1), n_statements


def measure_files(root: Path) -> list[tuple[float, str]]:
    """Return the expressions a statement of each file of thirty statements or more."""
    rows = []
    for path in sorted(root.rglob("*.py")):
        per_statement, n_statements = measure_file(path)
        if n_statements >= 30:
            rows.append((per_statement, str(path)))
    return sorted(rows, reverse=True)


#: Names that are no nouns; they may stand where the next line uses them up.
VAGUE = {
    "asked",
    "found",
    "given",
    "kept",
    "known",
    "made",
    "own",
    "said",
    "seen",
    "stated",
    "told",
}


def find_vague_names(root: Path) -> list[str]:
    """Return where parameters, and locals that live beyond the next line, have no noun."""
    places = []
    for path in sorted(root.rglob("*.py")):
        for function in ast.walk(parse(path)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                names = _vague_names_of(function)
                places += [f"{path}:{function.lineno} {name}" for name in sorted(names)]
    return places


def _vague_names_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    names = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)} & VAGUE
    first_lines: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE:
            line = first_lines.get(node.id, node.lineno)
            first_lines[node.id] = min(line, node.lineno)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.lineno > first_lines.get(node.id, node.lineno) + 1:
            names.add(node.id)
    return names


def main() -> None:
    if sys.argv[1] == "--files":
        for per_statement, name in measure_files(Path(sys.argv[2])):
            print(f"{per_statement:.2f}  {name}")
        return
    folder = Path(sys.argv[1])
    counts = measure(folder)
    per_thousand = 1000 / counts["statements"]
    print(
        f"{folder.name}: {counts['lines']} lines, {counts['statements']} statements, "
        f"{counts['expressions']} expressions; "
        f"{counts['expressions'] / counts['statements']:.2f} a statement; of 1000 statements: "
        f"ternaries {per_thousand * counts['ternaries']:.0f}, "
        f"packed {per_thousand * counts['packed']:.0f}; {counts['functions']} functions, "
        f"more than 12 locals {counts['many_locals']}, 30 statements {counts['many_statements']}"
    )
    for module in sys.argv[2:]:
        n_modules, lines = reach(folder, module)
        print(f"{module}: {n_modules} modules, {lines / counts['lines']:.0%} of the package")


if __name__ == "__main__":
    main()
