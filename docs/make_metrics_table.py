"""Write docs/metrics.md from the table of metrics in the code.

python docs/make_metrics_table.py
"""

import inspect
from pathlib import Path

from skselect.metrics import SPECS, MetricSpec

HEAD = """# Metrics

## Which metric?

There are more than forty. These are enough to begin with:

| question | metric | do not use instead |
| --- | --- | --- |
| Which of two models abstains better? | `augrc`, with `compare_models` for what is chance | `failure_auroc` alone: it ignores how many errors there are |
| Are wrong answers less sure than right ones? | `failure_auroc` | calibration errors: they do not see the order |
| How many cases can go through at 2 % errors? | `coverage_at_risk` with `max_risk=.02`; for a guarantee a [certificate](ideas/certificate.md) | selective accuracy without coverage |
| How good is it at the threshold in use? | `selective_risk`, always with `coverage` | either alone |
| How many errors will nobody look at? | `generalized_risk` | `selective_risk`: it is about the accepted cases only |
| How many of one class does it miss? | `metrics_by_class`, before and after abstaining | accuracy |
| Which depth, which number of leaves? | `cwsa_plus` at one threshold, with `min_coverage`; without a threshold `neg_augrc` | accuracy alone |
| What does it cost in all, deferrals included? | `selective_cost` | a risk |
| Can its probabilities be believed? | `smooth_ece`; as a test `t_cal_test` | `ece` of few rows |
| Does it err where it is nearly certain? | `csr` with `csr_test` | `ece`, a reliability diagram |
| Which calibrator? | log loss, or `top_label_brier`, among those that pass `csr_test` | `cwsa_plus`: it rewards sharpness |

For each subgroup: `metrics_by_group`; for each class: `metrics_by_class`. With an interval: `metric_interval` ([all three](inference.md)). What
each metric sees and what it misses: [what each metric rewards](ideas/what_metrics_reward.md).

## How all of them are called

Every metric takes `(y_true, y_proba, *, ..., labels=None, pos_label=None, sample_weight=None)`, and `confidence=`,
`loss=` if it reads how sure and how wrong a row is. One column of probabilities is that of the second of two classes in sorted order, or of
`pos_label`; so `make_scorer(cwsa_plus_score, response_method="predict_proba")` of scikit-learn works with labels of every kind. A weight of 2 equals the row twice. The order of rows does not matter
(except to a bootstrap of clusters), and rows of equal confidence are accepted or rejected together.

## The metrics

Written by `python docs/make_metrics_table.py` from `skselect.metrics.SPECS`, the one table of names in the code.
In the formulas c is the confidence, l the loss, a = 1 - l, w the weight and W its sum, t the threshold,
S(t) the accepted rows, n the rows, h the normalised entropy. In the second table of each section:

- *scoring string*: works as `scoring="..."` in scikit-learn after `import skselect`; every other
  metric is a scorer through `skselect.scoring.get_scorer(name, ...)`, where losses are called `neg_...`.
- *weights' scale*: whether multiplying all weights by a constant changes the value.
- *without a value*: when the metric is undefined, what the function returns, and what the scorer
  returns where that differs. A scorer never rewards abstaining on everything.

"""

FOR_COMPARISON = """
## For comparison with published values

Papers report these. To judge a model, take a metric of the first table.

"""

TAIL = """
## Beside the tables

Other functions: `cwsa_contributions` (what each row adds to CWSA), `cw_confusion_matrix`,
`cw_roc_curve`, `cau_components`, `review_at_reliability`; the tests `csr_test`, `ecce_test`, `ecd_test`
and `t_cal_test`; and [intervals, comparisons and subgroups](inference.md).

CWSA and CWSA+ rise with the confidence of an accepted right answer, deserved or not: choose calibrators by
log loss or CSR. CWSA+ also rises as the threshold falls below the lowest confidence, although no decision
changes: compare models at one threshold. Both may fall where a right answer comes in just above the threshold,
since the mean then counts a small weight:

```python
>>> from skselect import Outcomes, evaluate
>>> for surer in [.5, .61]:  # two right answers
...     both = Outcomes(loss=[0, 0], confidence=[.9, surer])
...     print(evaluate(both, {"cwsa_plus": {"threshold": .6}}).round(4).to_dict())
{'cwsa_plus': 0.75}
{'cwsa_plus': 0.3875}

```

The mean over all rows, `normalize="all"`, never falls with the confidence of a right answer. The paper's axiom
of monotonicity (A.2) is about the weight of one row, not about the metric.

Calibration errors, `csr` and the confidence-weighted family read the confidence as the probability of
being right. Everywhere (function, `evaluate`, scorer, interval, comparison, by group, report) they get the
probability of the answer, whatever confidence the threshold is applied to and whatever name `confidence=`
gives. Only an array or a callable is read as it is: it may be a learnt probability of being right.

## Part of a curve, graded answers, regression, several sites

*Part of a curve.* If at least half of the cases must be decided, AUGRC from coverage .5 on, divided by its width:

```python
>>> from skselect.metrics import augrc_score, cwsa_score
>>> augrc_score([0, 1, 1, 0], [.1, .9, .4, .7], coverage_range=(.5, 1))
0.25

```

*Graded answers.* Agreement from 0 to 1, the kappa of the CWSA paper's A.6, is 1 - loss. With grades from 0 to 4,
one grade off is an agreement of .75:

```python
>>> grades = [[.9, .1, 0, 0, 0], [0, .2, .7, .1, 0]]
>>> distance = lambda true, answer: abs(true - answer) / 4
>>> round(cwsa_score([0, 1], grades, labels=range(5), loss=distance), 2)
0.5

```

*Regression.* A prediction is wrong if it is off by more than a tolerance, and the surer the smaller its spread:

```python
>>> import numpy as np
>>> from skselect import select_threshold
>>> rng = np.random.default_rng(0)
>>> spread = rng.uniform(.5, 2, 2000)
>>> error = rng.normal(0, spread)
>>> near = Outcomes(np.abs(error) > 2, -spread)
>>> selection = select_threshold(near, objective="risk", target=.05)
>>> selection.certificate.is_certified  # where the spread is at most -selection.threshold
True

```

*Several sites that share no rows.* Each sends a [state](scale.md#a-state); merged, they are the state of all rows. It holds counts
for each distinct confidence, which is less than the rows but not anonymous:

```python
>>> from skselect import SelectiveState
>>> north = SelectiveState().update_confidence([.9, .8], [False, True])
>>> south = SelectiveState().update_confidence([.7], [False])
>>> north.merge(south).evaluate(["augrc"]).round(4).to_dict()
{'augrc': 0.1667}

```
"""


def _rows(specs: list[MetricSpec]) -> str:
    """Return two tables: what each metric is, and when to use it."""
    facts = [
        "| name | function | better | range | formula | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    advice = [
        "",
        "| name | use it for | rather not | scoring string | weights' scale | without a value |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for spec in specs:
        string = f"`{spec.scorer_name}`" if spec.registered else ""
        first = inspect.getdoc(spec.function).splitlines()[0]
        assert first.startswith("Compute "), spec.name
        formula = spec.notes["Formula"].replace("|", "\\|")
        facts.append(
            f"| `{spec.name}` | `{spec.function.__name__}` | {spec.better} | {spec.range} | "
            f"{formula} | {spec.notes['Source']} |"
        )
        advice.append(
            f"| `{spec.name}` | {spec.notes['Use for']} | {spec.notes['Not for']} | {string} | "
            f"{'none' if spec.scale_free else 'matters'} | {spec.undefined} |"
        )
    return "\n".join([*facts, *advice]) + "\n"


def text() -> str:
    """Return the whole page."""
    main = [spec for spec in SPECS.values() if not spec.for_comparison]
    others = [spec for spec in SPECS.values() if spec.for_comparison]
    return HEAD + _rows(main) + FOR_COMPARISON + _rows(others) + TAIL


if __name__ == "__main__":
    (Path(__file__).parent / "metrics.md").write_text(text())
