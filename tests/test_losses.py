"""Values and derivatives agree with the definitions; XGBoost and torch train with them."""

import copy
import itertools
import math
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

from skselect import SelectiveClassifier, ThresholdTuner
from skselect.losses import CAUObjective, SoftCWSAObjective, cau_loss, soft_cwsa_loss
from skselect.metrics import cau_score, cwsa_score
from tests.refusals import check_refused

OBJECTIVES = [
    CAUObjective(alpha=0.7, lambda_=1.3),
    CAUObjective(alpha=0.7, lambda_=1.3, variant="shares"),
    SoftCWSAObjective(threshold=0.6, temperature=0.1, alpha=0.8),
]


def rows(n_classes, n=12, seed=0):
    """Return logits, classes and weights."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=1.5, size=(n, n_classes))
    return logits, rng.integers(n_classes, size=n), rng.uniform(0.5, 2.0, size=n)


def probabilities(logits):
    powers = [math.exp(z - max(logits)) for z in logits]
    return [power / sum(powers) for power in powers]


def brute(objective, logits, codes, weight, right=None):
    """Return the loss; `right` says which rows count as right, by default those that are."""
    tables = [probabilities(row) for row in logits]
    if right is None:
        right = [p.index(max(p)) == k for p, k in zip(tables, codes, strict=True)]
    triples = list(zip(tables, right, weight, strict=True))
    total = sum(weight)
    cross_entropy = sum(
        -w * math.log(p[k]) for p, k, w in zip(tables, codes, weight, strict=True)
    ) / total  # fmt: skip
    if isinstance(objective, SoftCWSAObjective):
        t = objective.threshold
        above = accepted = 0.0
        for p, is_right, w in triples:
            u = (max(p) - t) / objective.temperature
            phi = objective.temperature * np.logaddexp(0, u) / (1 - t)
            above += w * phi * (1 if is_right else -1)
            accepted += w * expit(u)
        return cross_entropy - objective.alpha * above / (accepted + 1e-6 * total)
    parts = {True: [0.0, 0.0], False: [0.0, 0.0]}
    for p, is_right, w in triples:
        h = -sum(q * math.log(q) for q in p) / math.log(len(p))
        parts[is_right][0] += w * -math.log(1 - h if is_right else h)
        parts[is_right][1] += w
    cau_1, cau_0 = (
        found / (total if objective.variant == "shares" else n) for found, n in parts.values()
    )
    return cross_entropy + objective.alpha * (cau_1 + objective.lambda_ * cau_0)


with_objectives = pytest.mark.parametrize("objective", OBJECTIVES, ids=str)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@with_objectives
def test_derivatives_are_differences_of_the_definition(objective, n_classes):
    logits, codes, weight = rows(n_classes)
    right = logits.argmax(axis=1) == codes
    found = objective._derivatives(logits, codes, weight)

    def moved(row, column, by):
        other = logits.copy()
        other[row, column] += by
        return brute(objective, other, codes, weight, right)

    step = 1e-4
    for row, column in np.ndindex(*logits.shape):
        up, here, down = (moved(row, column, by) for by in (step, 0.0, -step))
        first, second = (up - down) / (2 * step), (up - 2 * here + down) / step**2
        assert found.gradient[row, column] == pytest.approx(first, rel=1e-5, abs=1e-8)
        assert found.bound[row, column] > 0
        assert found.bound[row, column] >= abs(second) * (1 - 1e-4) - 1e-6


@with_objectives
def test_a_weight_counts_the_row_and_the_order_of_rows_and_classes_does_not_matter(objective):
    logits, codes, weight = rows(4)
    counts = np.arange(len(codes)) % 3
    found = objective._derivatives(logits, codes, counts.astype(float))
    twice = np.repeat(np.arange(len(codes)), counts)
    again = objective._derivatives(logits[twice], codes[twice], np.ones(len(twice)))
    # Soft CWSA is a ratio: its second derivatives depend on whether two rows move together.
    n_same = 1 if isinstance(objective, SoftCWSAObjective) else 2
    for mine, its in list(zip(found, again, strict=True))[:n_same]:
        np.testing.assert_allclose(mine[twice], its * counts[twice][:, None], rtol=1e-10)
        assert np.all(mine[counts == 0] == 0)
    found = objective._derivatives(logits, codes, weight)
    order = np.random.default_rng(1).permutation(len(codes))
    moved = objective._derivatives(logits[order], codes[order], weight[order])
    names = np.array([2, 0, 3, 1])  # the new number of each class
    renamed = objective._derivatives(logits[:, np.argsort(names)], names[codes], weight)
    for mine, its, theirs in zip(found, moved, renamed, strict=True):
        np.testing.assert_allclose(mine[order], its, rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(mine, theirs[:, names], rtol=1e-9, atol=1e-14)


@with_objectives
def test_probabilities_of_0_and_1_and_ties_are_safe_and_so_are_right_rows_alone(objective):
    for scale, truth in itertools.product([0.0, 1e-9, 1e-4, 30.0, 1e4], [0, 1, 2, "answered"]):
        logits = scale * np.array([[1.0, -1.0, -1.0], [-1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
        codes = logits.argmax(axis=1) if truth == "answered" else np.full(3, truth)
        found = objective._derivatives(logits, codes, np.ones(3))
        assert all(np.all(np.isfinite(table)) for table in found)
        assert np.abs(found.gradient).max() < 1e4


def test_the_metrics_are_the_same_terms():
    logits, codes, weight = rows(3, n=40)
    proba = np.array([probabilities(row) for row in logits])
    alone = brute(CAUObjective(alpha=0), logits, codes, weight)
    found = brute(CAUObjective(alpha=0.7, lambda_=1.3), logits, codes, weight)
    score = cau_score(codes, proba, lambda_=1.3, sample_weight=weight)
    assert found == pytest.approx(alone + 0.7 * score, rel=1e-12)
    # As the mask becomes hard, the surrogate becomes the score; nothing accepted is worth nothing.
    for threshold in (0.6, 1 - 1e-4):
        hard = SoftCWSAObjective(threshold=threshold, temperature=1e-6, alpha=0.8)
        score = cwsa_score(codes, proba, threshold=threshold, sample_weight=weight)
        found = brute(hard, logits, codes, weight)
        assert found == pytest.approx(alone - 0.8 * score, rel=1e-5)
    assert score == 0


both = pytest.mark.parametrize("n_classes", [2, 3])


@pytest.fixture
def xgboost():
    return pytest.importorskip("xgboost")


def table(n_classes, n=240):
    return make_classification(
        n, n_features=6, n_informative=4, n_classes=n_classes, flip_y=0.1, random_state=0
    )


def boosted(xgboost, objective, **options):
    options = {"n_estimators": 5, "max_depth": 2, "n_jobs": 1, "base_score": 0.5} | options
    return xgboost.XGBClassifier(objective=objective, **options)


# What XGBoost is told --------------------------------------------------------------------


@with_objectives
@both
def test_the_loss_is_a_sum_of_rows_and_falls_by_newton_steps(objective, n_classes):
    logits, codes, weight = rows(n_classes, n=40)
    binary = n_classes == 2
    margin = logits[:, 1] - logits[:, 0] if binary else logits

    def value(margin):
        table = np.stack([0 * margin, margin], axis=1) if binary else margin
        return brute(objective, table, codes, weight)

    gradient, hessian = objective(codes.astype(np.float32), margin, sample_weight=weight)
    assert gradient.shape == hessian.shape == margin.shape
    step = 1e-5 * gradient
    change = weight.sum() * (value(margin + step) - value(margin - step))
    assert change == pytest.approx(2 * np.sum(gradient * step), rel=1e-4)
    assert value(margin - 0.1 * gradient / hessian) < value(margin)


@with_objectives
@both
def test_second_derivatives_are_positive_and_single_precision_holds_all(objective, n_classes):
    for scale in [0.0, 1e-4, 1.0, 1e4]:
        logits, codes, _ = rows(n_classes, n=50)
        margin = (scale * (logits[:, 1] if n_classes == 2 else logits)).astype(np.float32)
        gradient, hessian = objective(codes, margin)
        assert np.all(np.isfinite(gradient.astype(np.float32)))
        assert np.all(hessian.astype(np.float32) > 0)


@with_objectives
def test_two_classes_are_softmax_with_two_columns(objective):
    logits, codes, _ = rows(2)
    margin = logits[:, 1] - logits[:, 0]
    gradient, hessian = objective(codes, margin)
    gradients, hessians = objective(codes, logits)
    np.testing.assert_allclose(gradient, gradients[:, 1], rtol=1e-9)
    np.testing.assert_allclose(-gradient, gradients[:, 0], rtol=1e-9)
    np.testing.assert_allclose(hessian, hessians[:, 1] / 2, rtol=1e-9)


# Objects ---------------------------------------------------------------------------------


@with_objectives
def test_they_are_plain_values(objective):
    assert len({objective, copy.deepcopy(objective), pickle.loads(pickle.dumps(objective))}) == 1


@pytest.mark.parametrize(("kind", "wrong"), [
    (CAUObjective, {"alpha": -1}), (CAUObjective, {"alpha": np.inf}),
    (CAUObjective, {"lambda_": "1"}), (CAUObjective, {"variant": "log"}),
    (SoftCWSAObjective, {"threshold": 1.0}), (SoftCWSAObjective, {"temperature": 0}),
    (SoftCWSAObjective, {"alpha": None}),
])  # fmt: skip
def test_wrong_parameters_are_named(kind, wrong):
    check_refused(next(iter(wrong)), lambda: kind(**wrong))


# XGBoost ---------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("objective", [CAUObjective(alpha=0), SoftCWSAObjective(alpha=0)], ids=str)
def test_alpha_0_is_what_xgboost_does_itself(xgboost, objective, n_classes):
    X, y = table(n_classes)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    own = boosted(xgboost, "binary:logistic").fit(X, y, sample_weight=weight)
    ours = boosted(xgboost, objective).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.predict_proba(X), own.predict_proba(X), atol=1e-5)


@with_objectives
@both
def test_probabilities_survive_clone_pickle_and_file(xgboost, objective, n_classes, tmp_path):
    X, y = table(n_classes)
    model = boosted(xgboost, objective).fit(X, y)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), np.ones(len(y)), atol=1e-6)
    assert (proba.argmax(axis=1) == y).mean() > 0.6
    model.save_model(tmp_path / "model.json")
    loaded = xgboost.XGBClassifier()
    loaded.load_model(tmp_path / "model.json")
    for other in (clone(model).fit(X, y), pickle.loads(pickle.dumps(model)), loaded):
        np.testing.assert_array_equal(other.predict_proba(X), proba)


def test_inside_a_selective_classifier_and_a_search(xgboost):
    X, codes = table(3)
    X = pd.DataFrame(X, columns=list("abcdef")).assign(
        kind=pd.Categorical(np.where(codes > 0, "yes", "no"))
    )
    X.loc[::7, "a"] = np.nan
    y = np.array(["low", "middle", "high"])[codes]
    model = SelectiveClassifier(
        boosted(xgboost, "binary:logistic", base_score=None, enable_categorical=True),
        calibration="temperature", cv=2,
    )  # fmt: skip
    choices = ["binary:logistic", CAUObjective(alpha=0.1), SoftCWSAObjective()]
    search = GridSearchCV(
        model, {"estimator__objective": choices}, scoring="neg_augrc", cv=2, error_score="raise"
    ).fit(X, y)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_params_["estimator__objective"] in choices
    tuner = ThresholdTuner(
        clone(model).set_params(estimator__objective=choices[1]),
        objective="risk", target=0.3, random_state=0,
    ).fit(X, y)  # fmt: skip
    again = pickle.loads(pickle.dumps(tuner))
    np.testing.assert_array_equal(again.predict(X), tuner.predict(X))


def test_other_ways_to_call_xgboost_are_refused(xgboost):
    X, y = table(2)
    with pytest.raises(ValueError, match="DMatrix; it is for XGBClassifier"):
        xgboost.train({}, xgboost.DMatrix(X, y), num_boost_round=1, obj=CAUObjective())
    regressor = xgboost.XGBRegressor(objective=SoftCWSAObjective(), n_estimators=1, n_jobs=1)
    for labels in (y + 0.5, y - 1, y + 1):
        check_refused("XGBClassifier", regressor.fit, X, labels)


# In torch, with autograd --------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="the torch losses need torch", exc_type=ImportError)


def loss(objective, logits, codes, weight=None):
    """Return the loss that has the parameters of an objective."""
    function = cau_loss if isinstance(objective, CAUObjective) else soft_cwsa_loss
    import torch

    weight = None if weight is None else torch.tensor(weight)
    return function(logits, torch.tensor(codes), sample_weight=weight, **vars(objective))


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@with_objectives
def test_the_value_is_the_definition_and_its_derivative_that_of_the_kernels(
    objective, n_classes, torch
):
    table, codes, weight = rows(n_classes)
    logits = torch.tensor(table, requires_grad=True)
    found = loss(objective, logits, codes, weight)
    found.backward()
    assert found.item() == pytest.approx(brute(objective, table, codes, weight), rel=1e-12)
    wanted = objective._derivatives(table, codes, weight).gradient
    np.testing.assert_allclose(logits.grad.numpy(), wanted, rtol=1e-9, atol=1e-13)


@with_objectives
def test_one_logit_for_two_classes(objective, torch):
    table, codes, _ = rows(2)
    margin = torch.tensor(table[:, 1] - table[:, 0])
    two = loss(objective, torch.tensor(table), codes)
    assert loss(objective, margin, codes).item() == pytest.approx(two.item(), rel=1e-12)


@with_objectives
def test_0_and_1_ties_and_parts_without_rows_are_safe_in_torch(objective, torch):
    table, codes, _ = rows(3)
    right = table.argmax(axis=1)
    kinds, scales = ["float64", "float32", "bfloat16"], [0.0, 1e-4, 1.0, 30.0, 1e4]
    for kind, scale, target in itertools.product(kinds, scales, [codes, right, (right + 1) % 3]):
        logits = torch.tensor(scale * table, dtype=getattr(torch, kind), requires_grad=True)
        found = loss(objective, logits, target)
        found.backward()
        assert torch.isfinite(found)
        assert torch.isfinite(logits.grad).all()


def test_the_loop_in_the_docs_runs(capsys, torch):
    text = (Path(__file__).parents[1] / "docs" / "losses.md").read_text()
    (loop,) = re.findall(r"(?s)```python\n(import torch.*?)```", text)
    torch.manual_seed(0)
    exec(loop, {})
    assert capsys.readouterr().out.startswith("CERTIFIED")
