"""The torch losses are those of the kernels, and autograd agrees with their derivatives."""

import re
from pathlib import Path

import numpy as np
import pytest

from skselect.losses import CAUObjective, cau_loss, soft_cwsa_loss
from tests.losses.cases import OBJECTIVES, rows

torch = pytest.importorskip("torch", reason="the torch losses need torch", exc_type=ImportError)
with_objectives = pytest.mark.parametrize("objective", OBJECTIVES, ids=str)


def loss(objective, logits, codes, weight=None):
    """Return the loss that has the parameters of an objective."""
    function = cau_loss if isinstance(objective, CAUObjective) else soft_cwsa_loss
    weight = None if weight is None else torch.tensor(weight)
    return function(logits, torch.tensor(codes), sample_weight=weight, **vars(objective))


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@with_objectives
def test_value_and_derivatives_are_those_of_the_kernels(objective, n_classes):
    table, codes, weight = rows(n_classes)
    wanted = objective._derivatives(table, codes, weight)
    logits = torch.tensor(table, requires_grad=True)
    found = loss(objective, logits, codes, weight)
    found.backward()
    second = torch.autograd.functional.hessian(
        lambda z: loss(objective, z, codes, weight), logits.detach()
    )
    second = second.reshape(table.size, table.size).diagonal().reshape(table.shape)
    assert found.item() == pytest.approx(wanted.value, rel=1e-12)
    np.testing.assert_allclose(logits.grad.numpy(), wanted.gradient, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(second.numpy(), wanted.hessian, rtol=1e-9, atol=1e-12)


@with_objectives
def test_one_logit_for_two_classes(objective):
    table, codes, _ = rows(2)
    margin = torch.tensor(table[:, 1] - table[:, 0])
    two = loss(objective, torch.tensor(table), codes)
    assert loss(objective, margin, codes).item() == pytest.approx(two.item(), rel=1e-12)


@pytest.mark.parametrize("kind", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("scale", [0.0, 1e-4, 30.0, 1e4])
@with_objectives
def test_probabilities_of_0_and_1_and_ties_are_safe(objective, kind, scale):
    table, codes, _ = rows(3)
    logits = torch.tensor(scale * table, dtype=getattr(torch, kind), requires_grad=True)
    found = loss(objective, logits, codes)
    found.backward()
    assert torch.isfinite(found)
    assert torch.isfinite(logits.grad).all()


@with_objectives
def test_a_part_without_rows_is_left_out(objective):
    table, _, _ = rows(3)
    codes = table.argmax(axis=1)
    for target in (codes, (codes + 1) % 3):
        logits = torch.tensor(table, requires_grad=True)
        loss(objective, logits, target).backward()
        assert torch.isfinite(logits.grad).all()


@with_objectives
def test_a_net_learns(objective):
    torch.manual_seed(0)
    X = torch.randn(200, 2)
    y = (X[:, 0] > 0).long().numpy()
    net = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    before = loss(objective, net(X), y).item()
    for _ in range(30):
        optimizer.zero_grad()
        loss(objective, net(X), y).backward()
        optimizer.step()
    assert loss(objective, net(X), y).item() < before
    assert (net(X).argmax(dim=1).numpy() == y).mean() > 0.9


def test_the_loop_in_the_docs_runs(capsys):
    text = (Path(__file__).parents[2] / "docs" / "losses.md").read_text()
    (loop,) = re.findall(r"(?s)```python\n(import torch.*?)```", text)
    torch.manual_seed(0)
    exec(loop, {})
    assert capsys.readouterr().out.startswith("CERTIFIED")
