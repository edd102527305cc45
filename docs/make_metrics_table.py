"""Write docs/metrics.md from the table of metrics in the code.

python docs/make_metrics_table.py
"""

import inspect
from pathlib import Path

from skselect.metrics import SPECS
from skselect.metrics._evaluate import GAPS
from skselect.metrics._metric import MetricSpec

HEAD = """# Metrics

## Which metric?

There are more than forty. Begin with these twelve:

| question | metric | do not use instead |
| --- | --- | --- |
| Which of two models abstains better? | `augrc`, with `compare_models` for what is chance | `failure_auroc` alone: it ignores how many errors there are |
| Are wrong answers less sure than right ones? | `failure_auroc` | calibration errors: they do not see the order |
| How many cases can go through at 2 % errors? | `coverage_at_risk` with `max_risk=.02`; for a guarantee a [certificate](ideas/certificate.md) | selective accuracy without coverage |
| How good is it at the threshold in use? | `selective_risk`, always with `coverage` | either alone |
| How many errors pass unseen? | `generalized_risk` | `selective_risk`: it is about the accepted cases only |
| How many of one class does it miss? | `metrics_by_class`, before and after abstaining | accuracy |
| Whose cases wait for a person? | `coverage_gap` between subgroups, with `risk_gap` | either alone: [they compete](howto/groups.md#who-waits) |
| Which depth, which number of leaves? | `neg_augrc`; at one threshold `cwsa_plus` with `min_coverage` | accuracy alone |
| What does it cost in all, deferrals included? | `selective_cost` | a risk |
| Can its probabilities be believed? | `smooth_ece`; as a test `t_cal_test` | `ece` of few rows |
| Does it err where it is nearly certain? | `csr` with `csr_test` | `ece`, a reliability diagram |
| Which calibrator? | log loss, or `top_label_brier`, among those that pass `csr_test` | `cwsa_plus`: it rewards sharpness |

[Intervals, subgroups, classes](inference.md); [what each metric rewards](ideas/what_metrics_reward.md).

## How to call them

Every metric accepts `(y_true, y_proba, *, ..., labels=None, pos_label=None, sample_weight=None)`, and most accept `confidence=` and `loss=`.
One column of probabilities belongs to the second of two classes in sorted order, or to `pos_label`. A weight of 2 equals the row twice.
Rows of equal confidence are accepted or rejected together.

Strings for `scoring="..."` after `import skselect`: @STRINGS@. `skselect.scoring.get_scorer(name, ...)` makes a scorer of every other
metric but the two gaps; losses are called `neg_...`. A scorer never rewards abstaining on everything.
The page of each function says what the metric is not for.

## The metrics

In the formulas c is the confidence, l the loss, a = 1 - l, w the weight and W its sum, t the threshold,
S(t) the accepted rows, n the rows, h the normalised entropy. Arrows show the better direction.

If nothing is accepted, coverage, generalised risk and CWSA(+) are 0, selective risk and accuracy are nan, and a scorer returns its worst value
(more in `SPECS[name].undefined`). Multiplying all weights by a constant changes @SCALED@ alone.

"""

FOR_COMPARISON = """
## For comparison with published values

Papers report these. To judge a model, use a metric of the first table.

"""

TAIL = """
## Beside the tables

`csr_test`, `ecce_test`, `ecd_test` and `t_cal_test` are tests; `cwsa_contributions` computes what each row adds to CWSA.
Compare models by CWSA or CWSA+ at one threshold, because both rise as the threshold falls. Calibration errors, `csr` and
the confidence-weighted family read the probability of the answer, unless `confidence=` is an array or a callable.

## Part of a curve, graded answers, regression, several sites

*Part of a curve.* AUGRC from coverage .5 on, divided by its width:

```python
>>> from skselect.metrics import augrc_score, cwsa_score
>>> augrc_score([0, 1, 1, 0], [.1, .9, .4, .7], coverage_range=(.5, 1))
0.25

```

*Graded answers.* With grades from 0 to 4, one grade off is a loss of .25:

```python
>>> grades = [[.9, .1, 0, 0, 0], [0, .2, .7, .1, 0]]
>>> distance = lambda true, answer: abs(true - answer) / 4
>>> round(cwsa_score([0, 1], grades, labels=range(5), loss=distance), 2)
0.5

```

*Regression.* A prediction is wrong if it is off by more than a tolerance, and the surer the smaller its spread:

```python
>>> import numpy as np
>>> from skselect import Outcomes, select_threshold
>>> rng = np.random.default_rng(0)
>>> spread = rng.uniform(.5, 2, 2000)
>>> error = rng.normal(0, spread)
>>> near = Outcomes(np.abs(error) > 2, -spread)
>>> selection = select_threshold(near, objective="risk", target=.05)
>>> selection.certificate.is_certified  # where the spread is at most -selection.threshold
True

```

*Several sites that share no rows.* Each site sends a [state](scale.md#a-state), and the states are merged. A state is not anonymous.
"""


#: The better direction as a sign.
BETTER = {"higher": "↑", "lower": "↓"}


def _rows(specs: list[MetricSpec]) -> str:
    """Return the table of these metrics."""
    rows = [
        "| name | function | range | formula |",
        "| --- | --- | --- | --- |",
    ]
    for spec in specs:
        first = inspect.getdoc(spec.function).splitlines()[0]
        assert first.startswith("Compute "), spec.name
        formula = spec.notes["Formula"].replace("|", "\\|")
        rows.append(
            f"| `{spec.name}` | `{spec.function.__name__}` | "
            f"{spec.range} {BETTER.get(spec.better, spec.better)} | "
            f"{formula} |"
        )
    return "\n".join(rows) + "\n"


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def text() -> str:
    """Return the whole page."""
    specs = [*SPECS.values(), *GAPS.values()]
    main = [spec for spec in specs if not spec.for_comparison]
    others = [spec for spec in specs if spec.for_comparison]
    strings = _names([spec.scorer_name for spec in specs if spec.registered])
    scaled = _names([spec.name for spec in specs if not spec.scale_free])
    head = HEAD.replace("@STRINGS@", strings).replace("@SCALED@", scaled)
    return head + _rows(main) + FOR_COMPARISON + _rows(others) + TAIL


if __name__ == "__main__":
    (Path(__file__).parent / "metrics.md").write_text(text())
