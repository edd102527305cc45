"""`verbose` and callbacks: each fit inside a fit is told, and by default nothing is printed."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from skselect import SelectiveClassifier, ThresholdTuner

quiet = pytest.mark.filterwarnings("ignore:.*is best when everything", "ignore:.*binds")
has_callbacks = parse_version(sklearn.__version__) >= parse_version("1.9")
needs_callbacks = pytest.mark.skipif(not has_callbacks, reason="callbacks came with 1.9")


@pytest.fixture
def data(rng):
    X = rng.normal(size=(200, 4))
    return X, np.where(X[:, 0] + rng.normal(size=200) > 0, "yes", "no")


def calibrated(base=None, **options):
    return SelectiveClassifier(base or GaussianNB(), calibration="platt", cv=3, **options)


def lines(capsys):
    """What was printed, without the times."""
    out, err = capsys.readouterr()
    assert err == ""
    return [line.split(": ")[0] for line in out.splitlines()]


# verbose --------------------------------------------------------------------------------------


FOLDS = [f"fold {k} of 3" for k in (1, 2, 3)]


@quiet
@pytest.mark.parametrize(
    ("model", "said"),
    [
        (ThresholdTuner(calibrated(), cv=2),
         ["Fitting 2 folds, then all rows, totalling 6 fits", "fold 1 of 2", "fold 2 of 2",
          "all rows"]),
        (ThresholdTuner(GaussianNB(), "coverage", target=0.5),
         ["Fitting the rows not held out, totalling 1 fit", "the rows not held out"]),
        (ThresholdTuner(GaussianNB(), cv=0.3),
         ["Fitting the rows not held out, then all rows, totalling 2 fits",
          "the rows not held out", "all rows"]),
        (calibrated(), ["Fitting all rows, then 3 folds, totalling 4 fits", "all rows", *FOLDS]),
        (SelectiveClassifier(GaussianNB()), ["Fitting all rows, totalling 1 fit", "all rows"]),
    ],
)  # fmt: skip
def test_what_is_fitted_and_how_often_is_said_on_demand(data, model, said, capsys):
    model.fit(*data)
    assert lines(capsys) == []
    clone(model).set_params(verbose=1).fit(*data)
    assert lines(capsys) == [f"[{type(model).__name__}] {line}" for line in said]


def test_a_frozen_classifier_is_not_fitted_and_prints_nothing(data, capsys):
    frozen = FrozenEstimator(GaussianNB().fit(*data))
    SelectiveClassifier(frozen, calibration="platt", verbose=1).fit(*data)
    ThresholdTuner(frozen, objective="coverage", target=0.5, verbose=1).fit(*data)
    assert lines(capsys) == []


class CountingNB(GaussianNB):
    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        CountingNB.n_fits += 1
        return super().fit(X, y, sample_weight)


@quiet
@pytest.mark.parametrize(
    ("base", "cv", "groups"),
    [
        (CountingNB(), 5, None), (calibrated(CountingNB()), 3, None),
        (calibrated(CountingNB()), 4, None), (calibrated(CountingNB()), 4, np.arange(200) % 20),
    ],
)  # fmt: skip
def test_the_number_of_fits_is_true(data, base, cv, groups, capsys):
    CountingNB.n_fits = 0
    ThresholdTuner(base, cv=cv, verbose=1).fit(*data, groups=groups)
    assert f"totalling {CountingNB.n_fits} fit" in capsys.readouterr().out


# Callbacks ------------------------------------------------------------------------------------


class Recorder:
    """A callback that writes down what it is called with."""

    max_propagation_depth = None

    def __init__(self):
        self.calls = []

    def setup(self, estimator, context):
        self.calls.append(("setup", type(estimator).__name__, context.max_subtasks))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", type(estimator).__name__, context.max_subtasks))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.calls.append(("begin", type(estimator).__name__, context.task_name, X, y))

    def on_fit_task_end(self, estimator, context):
        self.calls.append(("end", type(estimator).__name__, context.task_name))


@needs_callbacks
@quiet
def test_callbacks_see_every_fit(data):
    recorder = Recorder()
    tuner = ThresholdTuner(GaussianNB(), cv=2).set_callbacks(recorder)
    tuner.fit(*data)
    own = [call for call in recorder.calls if call[1] == "ThresholdTuner"]
    assert own[0] == ("setup", "ThresholdTuner", 3)
    assert own[1][:3] == ("begin", "ThresholdTuner", "fit")
    assert own[1][3] is data[0]
    assert own[1][4].tolist() == data[1].tolist()
    assert own[-2:] == [("end", "ThresholdTuner", "fit"), ("teardown", "ThresholdTuner", 3)]
    rows = [len(call[3]) for call in recorder.calls if call[0] == "begin"]
    # All, each model of a fold, and the final one with the classifier inside.
    assert rows == [200, 100, 100, 200, 200]


@needs_callbacks
@quiet
def test_callbacks_change_no_number_and_stay_out_of_the_fitted_models(data):
    plain = ThresholdTuner(calibrated(), random_state=0).fit(*data)
    recorder = Recorder()
    recorder.max_propagation_depth = 1
    tuner = ThresholdTuner(calibrated(n_jobs=2), n_jobs=2, random_state=0).set_callbacks(recorder)
    tuner.fit(*data)
    np.testing.assert_array_equal(tuner.predict_proba(data[0]), plain.predict_proba(data[0]))
    assert tuner.threshold_ == plain.threshold_
    fitted = (tuner, tuner.estimator_, tuner.estimator_.estimator_)
    assert [bool(getattr(one, "_skl_callbacks", [])) for one in fitted] == [True, False, False]
    assert not [name for one in fitted for name in vars(one) if "callback_" in name]
    pickle.loads(pickle.dumps(tuner))


@needs_callbacks
def test_callbacks_end_after_an_error(data):
    recorder = Recorder()
    recorder.max_propagation_depth = 1
    broken = make_pipeline(StandardScaler(), GaussianNB(priors=[2.0, 3.0]))
    tuner = ThresholdTuner(broken, cv=2).set_callbacks(recorder)
    with pytest.raises(ValueError, match="priors"):
        tuner.fit(*data)
    assert recorder.calls[-1][0] == "teardown"
    assert not any("callback_" in name for name in vars(tuner))
    with pytest.raises(NotFittedError):
        tuner.predict(data[0])


@quiet
def test_without_callbacks_in_scikit_learn_the_fits_are_the_same(data, monkeypatch):
    from skselect._lib import sklearn as _sklearn

    expected = ThresholdTuner(calibrated(), random_state=0).fit(*data)
    for cls in (ThresholdTuner, SelectiveClassifier):
        none = lambda self, **_: _sklearn._NoContext()  # noqa: E731 - as in older versions
        monkeypatch.setattr(cls, "_init_callback_context", none)
    found = ThresholdTuner(calibrated(), random_state=0).fit(*data)
    assert found.threshold_ == expected.threshold_
