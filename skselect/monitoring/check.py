"""Is a policy's promise still true? One answer from one table of labelled rows."""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from skselect._array_ops import replace_nan
from skselect._checks.options import check_delta
from skselect._typing import BoolArray
from skselect.bounds import clopper_pearson_upper
from skselect.curve.curve import RiskCoverageCurve
from skselect.policy import certificate as certificates
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions.outcomes import Outcomes, compute_loss
from skselect.predictions.predictions import Predictions
from skselect.selection.kept import (
    PromiseCheck,
    check_promise,
    decide_labelled,
    find_bounds,
    find_promises,
)
