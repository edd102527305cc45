"""The private names of scikit-learn that we rely on are where we look for them."""

import gc
import importlib
import pkgutil
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skselect
from skselect._lib import sklearn as _sklearn
from skselect.scoring import register_scorers, registered_names, unregister_scorers
from tests.common import run_python


def test_every_site_holds_a_list_of_scoring_strings():
    for module in _sklearn.SCORING_MODULES:
        importlib.import_module(module)
    assert len(_sklearn.loaded_scoring_options()) == 13


def test_the_table_of_sites_is_complete_for_this_scikit_learn():
    # Import all of scikit-learn, then look at every object of that class in memory.
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.utils._param_validation import StrOptions

    for module in pkgutil.walk_packages(sklearn.__path__, "sklearn."):
        parts = module.name.split(".")
        if {"tests", "conftest", "externals", "_build_utils"} & set(parts):
            continue
        try:
            importlib.import_module(module.name)
        except Exception:
            continue
    register_scorers()
    known = {id(options) for options in _sklearn.loaded_scoring_options()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # objects of other libraries, looked at
        frozen = [
            found.options
            for found in gc.get_objects()
            if isinstance(found, StrOptions) and {"accuracy", "neg_log_loss", "r2"} <= found.options
        ]
    assert len(frozen) >= 13
    missed = [options for options in frozen if id(options) not in known]
    assert missed == []
    assert all("cwsa_plus" in options for options in frozen)


def test_registration_is_idempotent_and_reversible():
    assert register_scorers() == []
    assert set(registered_names()) <= set(get_scorer_names())
    unregister_scorers()
    try:
        assert not set(registered_names()) & set(get_scorer_names())
        assert all("cwsa_plus" not in o for o in _sklearn.loaded_scoring_options())
    finally:
        assert sorted(register_scorers()) == registered_names()
    assert all("cwsa_plus" in o for o in _sklearn.loaded_scoring_options())


def test_a_name_of_scikit_learn_is_never_replaced():
    theirs = get_scorer("accuracy")
    _sklearn.register_scoring_names({"accuracy": "ours"})
    assert repr(get_scorer("accuracy")) == repr(theirs)
    unregister_scorers()
    register_scorers()
    assert "accuracy" in get_scorer_names()


def test_a_missing_private_name_never_breaks_the_import(tmp_path):
    code = (
        "import sklearn.model_selection, sklearn.metrics._scorer as s; del s._SCORERS\n"
        "import skselect; print(skselect.scoring.get_scorer('cwsa_plus'))"
    )
    assert run_python(code, folder=tmp_path).stdout.strip() == "get_scorer('cwsa_plus')"


def test_sites_loaded_after_us_know_the_names(tmp_path):
    code = (
        "import skselect, sys; assert 'sklearn.feature_selection' not in sys.modules\n"
        "import sklearn.feature_selection as f\n"
        "from sklearn.linear_model import LogisticRegression as L\n"
        "f.SequentialFeatureSelector(L(), scoring='cwsa_plus', n_features_to_select=1)"
        ".fit([[0, 1], [1, 0], [0, 2], [1, 3]] * 5, [0, 1, 0, 1] * 5)"
    )
    run_python(code, folder=tmp_path)


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


def test_private_names_stay_behind_one_door():
    import re
    from pathlib import Path

    private = re.compile(r"sklearn(\.\w+)*\._|from sklearn[\w.]* import \(?[^#]*\b_\w+")
    for path in Path(skselect.__file__).parent.rglob("*.py"):
        if path.parts[-2:] == ("_lib", "sklearn.py"):
            continue
        for line in path.read_text().splitlines():
            assert not private.search(line) or "skselect" in line, (path.name, line)
