"""Classifiers of MNIST for paper_000.py."""

import warnings
from functools import partial
from importlib.util import find_spec

import numpy as np
from papers import resumed
from sklearn.linear_model import LogisticRegression
from tables import load_dataset

from skselect import Outcomes

KINDS = {"cnn": "the paper's net", "xgboost": "XGBoost", "logistic": "logistic regression"}


def mnist_runs(options, measure):
    """Return `measure` of each classifier's test predictions, as they are and sharpened."""
    kinds = [kind for kind in KINDS if kind != "cnn" or find_spec("torch")]
    if "cnn" not in kinds:
        print("torch is not installed: the paper's net is left out (pip install torch).")
    rows = 5000 if options.quick else 60_000
    seeds = {"cnn": 1 if options.quick else 3}
    keys = [
        {"model": kind, "seed": seed, "training_rows": rows}
        for kind in kinds
        for seed in range(seeds.get(kind, 1))
    ]
    # A process that has used much memory is replaced by a new one.
    warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
    run = partial(mnist_run, data_home=options.data_home, measure=measure)
    return resumed(options.out / "mnist.csv", keys, run, jobs=options.jobs, afresh=options.afresh)


def mnist_run(model, seed, training_rows, *, data_home, measure):
    """Train on the first rows of the official training part and evaluate on the test part."""
    table = load_dataset("mnist", data_home=data_home)
    X, y = table.data.to_numpy(np.float32) / 255, table.target.astype(int).to_numpy()
    test = slice(table.n_train, None)
    proba = PREDICTORS[model](X[:training_rows], y[:training_rows], X[test], seed)
    found = []
    for power in (1, 2):
        sharpened = proba.astype(np.float64) ** power
        sharpened /= sharpened.sum(axis=1, keepdims=True)
        rows = measure(Outcomes.from_proba(y[test], sharpened))
        found += [{"sharpened": power, **row} for row in rows]
    return found


def by_estimator(estimator, X, y, X_test, seed):
    """Fit a scikit-learn classifier; `estimator` makes one from a seed."""
    return estimator(seed).fit(X, y).predict_proba(X_test)


def xgboost(seed):
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1, random_state=seed)


def logistic(seed):
    return LogisticRegression(C=0.1, max_iter=1000, random_state=seed)


def by_net(X, y, X_test, seed):
    """Train the net of the paper's code: one convolution, two dense layers, three epochs."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    net = nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 13 * 13, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    X, y, X_test = torch.tensor(X), torch.tensor(y), torch.tensor(X_test)
    for _ in range(3):
        for rows in torch.randperm(len(X)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(X[rows]), y[rows]).backward()
            optimizer.step()
    with torch.no_grad():
        return torch.softmax(net(X_test).double(), dim=1).numpy()


PREDICTORS = {
    "cnn": by_net,
    "xgboost": partial(by_estimator, xgboost),
    "logistic": partial(by_estimator, logistic),
}
