"""Features, codes and names of three classes, for modules that bring no others."""

import numpy as np
import pytest


@pytest.fixture
def data(rng):
    X = rng.normal(size=(90, 3))
    codes = np.repeat([0, 1, 2], 30)
    X[:, 0] += codes * 2
    return X, codes, np.array(["a", "b", "c"])
