"""Labels and tables of every kind that users bring: all of one kind must give the same numbers."""

import numpy as np
import pandas as pd
import polars as pl

#: Labels of two classes and of three, in their order.
TWO = {
    "{0, 1}": np.array([0, 1]),
    "{-1, 1}": np.array([-1, 1]),
    "{1, 2}": np.array([1, 2]),
    "{0, 2}": np.array([0, 2]),
    "floats": np.array([0.0, 1.0]),
    "booleans": np.array([False, True]),
    "strings": np.array(["no", "yes"]),
    "strings of other lengths": np.array(["a", "longer"]),
    "object strings": np.array(["no", "yes"], dtype=object),
}
THREE = {
    "{1, 2, 3}": np.array([1, 2, 3]),
    "{10, 20, 30}": np.array([10, 20, 30]),
    "{-1, 0, 1}": np.array([-1, 0, 1]),
    "strings": np.array(["a", "bb", "ccc"]),
    "object strings": np.array(["a", "bb", "ccc"], dtype=object),
}


def shuffled_index(y):
    """Return an index that does not count the rows."""
    return np.random.default_rng(5).permutation(len(y)) + 1000


#: Columns of labels, from an array of them.
CONTAINERS = {
    "array": lambda y: y,
    "list": lambda y: y.tolist(),
    "tuple": lambda y: tuple(y.tolist()),
    "Series": lambda y: pd.Series(y, index=shuffled_index(y)),
    "categorical": lambda y: pd.Series(pd.Categorical(y), index=shuffled_index(y)),
    "nullable": lambda y: pd.Series(y, index=shuffled_index(y)).convert_dtypes(),
    "polars": lambda y: pl.Series(y.tolist()),
}
NAMES = ["a", "b", "c"]
#: Tables of the probabilities of three classes that are named so, from an array of them.
TABLES = {
    "array": lambda p: p,
    "Fortran order": np.asfortranarray,
    "list": lambda p: p.tolist(),
    "object": lambda p: p.astype(object),
    "DataFrame": lambda p: pd.DataFrame(p, columns=NAMES, index=shuffled_index(p)),
    "DataFrame in another order": lambda p: pd.DataFrame(p, columns=NAMES)[list("cab")],
    "nullable DataFrame": lambda p: pd.DataFrame(p, columns=NAMES).astype("Float64"),
    "polars": lambda p: pl.DataFrame(p, schema=NAMES),
    "polars in another order": lambda p: pl.DataFrame(p, schema=NAMES)[list("bca")],
}
