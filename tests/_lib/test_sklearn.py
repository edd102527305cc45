"""The private names of scikit-learn that we rely on are where we look for them."""

import html
import inspect
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skselect
from skselect._lib import sklearn as _sklearn


@pytest.mark.parametrize(("estimator", "name"), [
    (LogisticRegression(), "sample_weight"),
    (make_pipeline(StandardScaler(), LogisticRegression()),
     "logisticregression__sample_weight"),
    (make_pipeline(StandardScaler(), make_pipeline(LogisticRegression())),
     "pipeline__logisticregression__sample_weight"),
    (GridSearchCV(LogisticRegression(), {}), "sample_weight"),
    (KNeighborsClassifier(), None),
])  # fmt: skip
def test_weights_find_their_way_into_pipelines_and_searches(estimator, name):
    assert _sklearn.weight_parameter(estimator) == name


def test_rows_of_every_kind_of_table():
    import pandas as pd
    import polars as pl
    from scipy import sparse

    X = np.arange(12).reshape(6, 2)
    rows = np.array([4, 1])
    for table in (X, pd.DataFrame(X), pl.DataFrame(X), sparse.csr_matrix(X), X.tolist()):
        part = _sklearn.take_rows(table, rows)
        dense = part.toarray() if sparse.issparse(part) else np.asarray(part)
        assert dense.tolist() == [[8, 9], [2, 3]]


@pytest.mark.parametrize(("package", "way"), [("dask", r"X\.compute"), ("narwhals", "to_native")])
def test_a_frame_without_positions_names_the_one_to_pass(package, way):
    import pandas as pd

    frame, rows = pd.DataFrame({"a": range(6)}), np.array([4, 1])
    if package == "dask":
        table = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)
    else:
        table = pytest.importorskip("narwhals").from_native(frame)
    with pytest.raises(ValueError, match=rf"X: rows of a {package} DataFrame .*{way}"):
        _sklearn.take_rows(table, rows)


@pytest.mark.skipif(
    "doc_link" not in inspect.signature(getattr(BaseEstimator, "_get_params_html", len)).parameters,
    reason="scikit-learn 1.8 and newer describe parameters in notebooks",
)
@pytest.mark.parametrize(("estimator", "said"), [
    (skselect.ThresholdTuner(LogisticRegression()), "What the threshold should achieve."),
    (skselect.SelectiveClassifier(LogisticRegression()), "None never abstains, inf always."),
    (skselect.CascadeClassifier([("a", LogisticRegression())]), None),
    (skselect.PrecomputedClassifier([0, 1]), None),
    (skselect.LearnedConfidence(), None),
])  # fmt: skip
def test_notebooks_describe_parameters_and_link_nowhere(estimator, said):
    names = estimator.get_params(deep=False)
    inside = [make_pipeline(StandardScaler(), estimator)] if hasattr(estimator, "fit") else []
    for shown in (estimator, *inside):
        page = shown._repr_html_()
        own = [name for name in names if f"--doc-link-{name};" in page]
        assert own
        assert said is None or said in html.unescape(page)
        assert "about:blank" not in page
        links = re.findall(r'href="(.*?)"', page)
        assert all(link.startswith("https://scikit-learn.org/") for link in links)


def test_private_names_stay_behind_their_doors():
    from pathlib import Path

    private = re.compile(r"sklearn(\.\w+)*\._|from sklearn[\w.]* import \(?[^#]*\b_\w+")
    for path in Path(skselect.__file__).parent.rglob("*.py"):
        if path.parts[-2:] in (("_lib", "sklearn.py"), ("_lib", "scorers.py")):
            continue
        for line in path.read_text().splitlines():
            assert not private.search(line) or "skselect" in line, (path.name, line)
