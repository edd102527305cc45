"""Tables, nets and training for paper_004.py and losses.py."""

import gzip
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tables import load_dataset

try:
    import torch
    from torch import nn
except ImportError as error:
    raise SystemExit("paper_004.py trains its nets with torch: pip install torch") from error

torch.set_num_threads(1)
WIDTH, BATCH, PASSES = 128, 128, 20
#: Where Debian's package dataset-fashion-mnist puts the four files.
FASHION = Path("/usr/share/datasets/fashion-mnist")


class Split(NamedTuple):
    """Rows to train on, rows to test on, and all rows that were not trained on."""

    X: torch.Tensor
    y: torch.Tensor
    train: np.ndarray
    test: np.ndarray
    fresh: np.ndarray


def find_fashion(data_home=None):
    """Return the folder of the four files of Fashion-MNIST, or None."""
    folders = [FASHION] if data_home is None else [Path(data_home) / "fashion-mnist", FASHION]
    return next((f for f in folders if (f / "train-images-idx3-ubyte.gz").exists()), None)


def read_fashion(folder):
    """Return pixels, classes and the number of training rows of Fashion-MNIST."""

    def read(kind, header):
        packed = [(folder / f"{part}-{kind}-ubyte.gz").read_bytes() for part in ("train", "t10k")]
        return [np.frombuffer(gzip.decompress(one), np.uint8, offset=header) for one in packed]

    codes = read("labels-idx1", 8)
    pixels = np.concatenate(read("images-idx3", 16)).reshape(-1, 784)
    return pixels.astype(np.float32), np.concatenate(codes).astype(np.int64), len(codes[0])


@cache
def loaded(name, data_home):
    if name == "fashion_mnist":
        return read_fashion(find_fashion(data_home))
    table = load_dataset(name, data_home=data_home)
    codes = np.unique(table.target, return_inverse=True)[1]
    return table.data.to_numpy(np.float32), codes, table.n_train


def split(name, seed, n_train, n_test, data_home=None):
    """Draw the rows to train on; the official test part stays one where there is one."""
    X, codes, official = loaded(name, data_home)
    order = np.random.default_rng(seed).permutation(official or len(codes))
    train, fresh = order[:n_train], np.concatenate([order[n_train:], np.arange(len(order), len(X))])
    test = np.arange(official, len(X))[:n_test] if official else fresh[:n_test]
    if name.endswith("mnist"):
        X = X / 255  # most pixels hardly vary, so they are not standardised
    else:
        spread = X[train].std(axis=0)
        X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1)
    return Split(torch.tensor(X), torch.tensor(codes), train, test, fresh)


def two_hidden_layers(data, dropout=0.0):
    """Return a net that is not trained."""
    n_features, n_classes = data.X.shape[1], int(data.y.max()) + 1
    return nn.Sequential(
        nn.Linear(n_features, WIDTH), nn.ReLU(), nn.Dropout(dropout),
        nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Dropout(dropout), nn.Linear(WIDTH, n_classes),
    )  # fmt: skip


def trained(net, data, loss, *, weight_decay=0.0, epochs=20):
    """Train a net on a loss of logits and classes."""
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=weight_decay)
    X, y = data.X[data.train], data.y[data.train]
    for _ in range(epochs):
        for rows in torch.randperm(len(y)).split(BATCH):
            optimizer.zero_grad()
            loss(net(X[rows]), y[rows]).backward()
            optimizer.step()
    return net


@torch.no_grad()
def probabilities(net, X, passes=0):
    """Return class probabilities: without dropout, or the mean over passes with it."""
    net.train(passes > 0)
    return (
        sum(torch.softmax(net(X).double(), dim=1) for _ in range(max(passes, 1))) / max(passes, 1)
    ).numpy()
