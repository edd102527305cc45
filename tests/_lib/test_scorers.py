"""The scoring strings stand in scikit-learn's tables, in all of them."""

import gc
import importlib
import pkgutil
import warnings

import sklearn
from sklearn.metrics import get_scorer, get_scorer_names

from skselect._lib import scorers
from skselect.scoring import register_scorers, registered_names, unregister_scorers
from tests.common import run_python


def test_every_site_holds_a_list_of_scoring_strings():
    for module in scorers.SCORING_MODULES:
        importlib.import_module(module)
    assert len(scorers.loaded_scoring_options()) == 13


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
    known = {id(options) for options in scorers.loaded_scoring_options()}
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
        assert all("cwsa_plus" not in o for o in scorers.loaded_scoring_options())
    finally:
        assert sorted(register_scorers()) == registered_names()
    assert all("cwsa_plus" in o for o in scorers.loaded_scoring_options())


def test_a_name_of_scikit_learn_is_never_replaced():
    theirs = get_scorer("accuracy")
    scorers.register_scoring_names({"accuracy": "ours"})
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
