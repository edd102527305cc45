"""Write README.md from the registry of data sets: python -m benchmarks.tables.make_page."""

from pathlib import Path

import pandas as pd

from .load import list_datasets

HEAD = """# Data sets

This page is written by `python -m benchmarks.tables.make_page` from `registry.json`.

```python
>>> from tables import load_dataset
>>> bunch = load_dataset("breast_cancer")
>>> bunch.data.shape, bunch.target_names
((569, 30), ['benign', 'malignant'])

```

`load_dataset` looks in `data_home=`, in the folder that the environment variable `SKSELECT_DATA` names (Parquet files such as
`adult.parquet`), in its cache, and among the tables that scikit-learn ships. Only then does it ask OpenML or UCI
(`pip install ".[benchmarks]"` adds what this needs). The contents are checked at every load.
`print(bunch.DESCR)` describes the traps of a table. Three of them matter when models are compared:

- *duplicates*: equal rows on both sides of a random split make a model look better than it is;
- *leaky columns* contain the answer: `bunch.leaky_features` names them, `bunch.data` still holds them;
- *training rows*: the first `bunch.n_train` rows are the official training part.

"Constant" is the accuracy of always giving the most frequent answer. In brackets after the number of columns: how many
are categories, or text.

## The table

"""


def _if_any(value: object, form: str) -> str:
    return form.format(value) if pd.notna(value) and value else ""


def _columns(facts: dict) -> str:
    """Return how many columns there are and, in brackets, how many are no numbers."""
    categories, texts = facts["n_categorical"], facts["n_text"]
    others = [f"{categories}"] * (categories > 0) + [f"{texts} text"] * (texts > 0)
    return f"{facts['n_features']}" + (f" ({', '.join(others)})" if others else "")


def _row(name: str, facts: dict) -> str:
    sources = (
        _if_any(facts["openml"], "[OpenML {0}](https://www.openml.org/d/{0})"),
        _if_any(facts["uci"], "[UCI {0}](https://archive.ics.uci.edu/dataset/{0})"),
    )
    cells = [
        f"`{name}`", facts["title"], f"{facts['n_rows']:,}",
        _columns(facts), f"{facts['n_classes']}", f"{100 * facts['majority']:.1f} %", f"{facts['n_missing']:,}",
        f"{facts['n_duplicates']:,}", _if_any(facts["positive_class"], "{}"),
        _if_any(facts["n_train"], "{:,}"), _if_any(facts["leaky_features"], "{}"),
        facts["license"], ", ".join(filter(None, sources)),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def text() -> str:
    lines = [
        "| name | what | rows | columns (categories) | classes | constant | missing cells | duplicates "
        "| positive class | training rows | leaky columns | license | source |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_row(name, facts) for name, facts in list_datasets().to_dict("index").items()]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "README.md").write_text(text())
