"""skselect.dask: the bits of one process, on any cluster, whatever dies."""

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import skselect as sk

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
import skselect.dask  # noqa: E402
from tests.refusals import check_refused  # noqa: E402

# The cluster's own threads and sockets are closed when they are, not when a test ends.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
]

NAMES = ["aurc", "eaurc", "augrc", "cwsa_plus", "csr", "coverage"]


def some_predictions(n=2000, n_classes=3):
    """Return labels, probabilities and their metrics in one process."""
    rng = np.random.default_rng(0)
    y, proba = rng.integers(0, n_classes, n), rng.dirichlet(np.ones(n_classes), n)
    return y, proba, sk.evaluate(sk.Predictions.from_proba(y, proba), NAMES)


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes."""
    distributed = pytest.importorskip("distributed", reason='needs `pip install -e ".[dask]"`')
    patient = {"distributed.comm.timeouts.connect": "90s", "distributed.comm.timeouts.tcp": "90s"}
    with (
        dask.config.set(patient),
        distributed.Client(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50, timeout=90
        ) as client,
    ):
        yield client


@pytest.mark.parametrize("labels", [None, [0, 1, 2]])
def test_arrays_give_the_bits_of_one_process(labels):
    y, proba, expected = some_predictions()
    blocks = da.from_array(y, chunks=150), da.from_array(proba, chunks=(150, 3))
    assert sk.dask.evaluate(*blocks, NAMES, labels=labels).equals(expected)


def test_blocks_of_single_classes_are_joined():
    """As binary Dask XGBoost returns them; block by block they would be read as one class."""
    y, proba, expected = some_predictions(n_classes=2)
    blocks = da.from_array(y, chunks=300), da.from_array(proba, chunks=(300, 1))
    assert sk.dask.evaluate(*blocks, NAMES).equals(expected)


def test_frames_and_lists_of_delayed_blocks_will_do():
    dd = pytest.importorskip("dask.dataframe")
    y, proba, expected = some_predictions()
    frame = dd.from_pandas(pd.DataFrame(proba, columns=[0, 1, 2]), npartitions=4)
    series = dd.from_pandas(pd.Series(y), npartitions=4)
    assert sk.dask.evaluate(series, frame, NAMES).equals(expected)
    lists = [[dask.delayed(part) for part in np.array_split(a, 5)] for a in (y, proba)]
    assert sk.dask.evaluate(*lists, NAMES).equals(expected)


def test_columns_of_one_frame_of_files_come_in_the_same_blocks(tmp_path):
    """Dask reads a single column of small files in fewer partitions than several columns."""
    dd = pytest.importorskip("dask.dataframe")
    y, proba, expected = some_predictions()
    table = pd.DataFrame(proba, columns=["0", "1", "2"]).assign(y=y)
    for k, rows in enumerate(np.array_split(np.arange(2000), 6)):
        table.iloc[rows].to_parquet(tmp_path / f"{k}.parquet")
    frame = dd.read_parquet(str(tmp_path))
    found = sk.dask.evaluate(frame["y"], frame[["0", "1", "2"]], NAMES)
    assert found.equals(expected)


def test_blocks_that_do_not_match_are_refused_and_empty_ones_count_nothing():
    y, proba, expected = some_predictions()
    unlike = da.from_array(y, chunks=500), da.from_array(proba, chunks=(400, 3))
    with pytest.raises(ValueError, match="4 blocks of rows and y_proba in 5"):
        sk.dask.evaluate(*unlike, NAMES)
    with pytest.raises(ValueError, match="y_true is empty"):
        sk.dask.evaluate([y[:0], y[5:]], [proba[:5], proba[5:]], NAMES, labels=[0, 1, 2])
    found = sk.dask.evaluate([y[:0], y], [proba[:0], proba], NAMES)
    assert found.equals(expected)
    assert sk.dask.evaluate(y, proba, NAMES).equals(expected)
    check_refused("no blocks of rows", sk.dask.evaluate, [], [], NAMES)


def test_parquet_files_on_a_cluster_give_the_bits_of_one_process(cluster, tmp_path, rng):
    for k in range(5):
        confidence = rng.random(1000).astype(np.float32)
        table = pd.DataFrame({"c": confidence, "e": rng.random(1000) > confidence})
        table.to_parquet(tmp_path / f"{k}.parquet")
    how = {"confidence": "c", "loss": "e"}
    expected = sk.evaluate_parquet(tmp_path, NAMES, **how, progress=False)
    assert sk.dask.evaluate_parquet(tmp_path, NAMES, **how).equals(expected)


def binary_predictions(n, seed):
    """Labels and calibrated probabilities of two classes, as text."""
    rng = np.random.default_rng(seed)
    second = rng.beta(0.3, 0.3, n)
    y = np.where(rng.random(n) < second, "yes", "no")
    return y, np.column_stack([1 - second, second])


@pytest.mark.parametrize("source", ["arrays", "files"])
def test_rows_of_a_cluster_choose_a_threshold_check_the_policy_and_are_decided(
    cluster, tmp_path, source
):
    dd = pytest.importorskip("dask.dataframe")
    classes = ["no", "yes"]

    def count(name, y, proba):
        if source == "arrays":
            blocks = da.from_array(y, chunks=700), da.from_array(proba, chunks=(700, 2))
            return sk.dask.state(*blocks, labels=classes)
        (tmp_path / name).mkdir()
        table = pd.DataFrame(proba, columns=classes).assign(y=y)
        for k, rows in enumerate(np.array_split(np.arange(len(y)), 3)):
            table.iloc[rows].to_parquet(tmp_path / name / f"{k}.parquet")
        columns = {"y_true": "y", "y_proba": classes, "labels": classes}
        return sk.dask.parquet_state(tmp_path / name, **columns)

    y, proba = binary_predictions(3000, 0)
    state = count("tune", y, proba)
    policy = state.select_threshold(objective="risk", target=0.1).policy
    here = sk.select_threshold(state.finalize(), objective="risk", target=0.1)
    assert policy.certificate.is_certified
    assert (policy.threshold, policy.classes.tolist()) == (here.threshold, classes)
    fresh = binary_predictions(3000, 1)
    check = sk.check_policy(policy, count("check", *fresh))
    there = sk.check_policy(policy, *fresh)
    assert (check.verdict, check.risk, check.coverage) == (
        there.verdict, there.risk, there.coverage
    )  # fmt: skip
    if source == "arrays":
        rows = da.from_array(fresh[1], chunks=(700, 2))
    else:
        rows = dd.read_parquet(str(tmp_path / "check"))[classes]
    decided = sk.dask.decide(policy, rows).compute().reset_index(drop=True)
    pd.testing.assert_frame_equal(decided, policy.decide(fresh[1]))


def test_decisions_of_columns_with_other_names_are_refused():
    dd = pytest.importorskip("dask.dataframe")
    policy = sk.AbstentionPolicy(classes=np.array(["no", "yes"]), threshold=0.8)
    frame = dd.from_pandas(pd.DataFrame({"no": [0.2], "maybe": [0.8]}), npartitions=1)
    check_refused("do not name the classes", sk.dask.decide(policy, frame).compute)


def _slow_block(part):
    time.sleep(0.3)
    return part


def test_a_worker_killed_midway_changes_nothing(cluster):
    y, proba, expected = some_predictions()
    slow = dask.delayed(_slow_block)
    truths, probas = ([slow(part) for part in np.array_split(a, 8)] for a in (y, proba))
    pids = cluster.run(os.getpid)
    victim = next(iter(pids.values()))
    killer = threading.Timer(0.9, os.kill, (victim, signal.SIGKILL))
    killer.start()
    found = sk.dask.evaluate(truths, probas, NAMES, labels=[0, 1, 2])
    killer.join()
    assert found.to_numpy().tobytes() == expected.to_numpy().tobytes()
    cluster.wait_for_workers(2, timeout=30)
    assert victim not in cluster.run(os.getpid).values()


def test_searches_and_tuners_run_on_the_cluster_through_joblib(cluster):
    joblib = pytest.importorskip("joblib")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    model = sk.SelectiveClassifier(LogisticRegression(), calibration="temperature")
    with joblib.parallel_config(backend="dask"):
        there = sk.ThresholdTuner(
            model, objective="risk", target=0.2, cv=3, n_jobs=2, random_state=0
        ).fit(X, y)
    here = clone(there).set_params(n_jobs=None).fit(X, y)
    assert there.threshold_ == here.threshold_


def test_what_belongs_on_the_cluster_is_refused_with_the_right_call():
    y, proba, _ = some_predictions(40)
    blocks = da.from_array(y, chunks=20), da.from_array(proba, chunks=(20, 3))
    policy = sk.AbstentionPolicy(classes=np.arange(3), threshold=0.5)
    for call in (
        lambda: sk.evaluate(*blocks),
        lambda: sk.select_threshold(*blocks, objective="cwsa_plus"),
        lambda: sk.check_policy(policy, *blocks, target=0.1),
    ):
        check_refused("Use skselect.dask.evaluate(y_true, y_proba)", call)


def test_a_model_of_the_cluster_is_refused_with_the_right_call():
    pytest.importorskip("distributed", reason='needs `pip install -e ".[dask]"`')
    xgboost_dask = pytest.importorskip("xgboost.dask")
    y, proba, _ = some_predictions(40)
    model = xgboost_dask.DaskXGBClassifier()
    for wrapped in (model, sk.SelectiveClassifier(model), FrozenEstimator(model)):
        with pytest.raises(ValueError, match=r"FrozenEstimator\(skselect.dask.local_classifier"):
            sk.ThresholdTuner(wrapped).fit(proba, y)


def test_a_model_trained_on_the_cluster_is_tuned_and_used_as_any_other(cluster):
    xgboost_dask = pytest.importorskip("xgboost.dask")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    y = (X[:, 0] + rng.normal(size=3000) > 0).astype(int)
    blocks = da.from_array(X, chunks=(750, 4)), da.from_array(y, chunks=750)
    model = xgboost_dask.DaskXGBClassifier(n_estimators=5, max_depth=2).fit(*blocks)
    proba = model.predict_proba(blocks[0])
    found = sk.dask.evaluate(blocks[1], proba, NAMES)
    local = sk.dask.local_classifier(model)
    expected = sk.evaluate(sk.Predictions.from_proba(y, local.predict_proba(X)), NAMES)
    assert found.equals(expected)
    tuner = sk.ThresholdTuner(FrozenEstimator(local), objective="risk", target=0.2)
    fresh = rng.normal(size=(2000, 4))
    truth = (fresh[:, 0] + rng.normal(size=2000) > 0).astype(int)
    assert tuner.fit(fresh, truth).certificate_.exact
