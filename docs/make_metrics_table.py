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
| How many cases can go through at 2 % errors? | `coverage_at_risk` with `max_risk=.02`; for a promise a [certificate](ideas/certificate.md) | selective accuracy without coverage |
| How good is it at the threshold in use? | `selective_risk`, always with `coverage` | either alone |
| How many errors will nobody look at? | `generalized_risk` | `selective_risk`: it is about the accepted cases only |
| How many of one class does it miss? | `metrics_by_class`, before and after abstaining | accuracy |
| Which depth, which number of leaves? | `cwsa_plus` at one threshold, with `min_coverage`; without a threshold `neg_augrc` | accuracy alone |
| What does it cost in all, hand-overs included? | `selective_cost` | a risk |
| Can its probabilities be believed? | `smooth_ece`; as a test `t_cal_test` | `ece` of few rows |
| Does it err where it is nearly certain? | `csr` with `csr_test` | `ece`, a reliability diagram |
| Which calibrator? | log loss, or `top_label_brier`, among those that pass `csr_test` | `cwsa_plus`: it rewards sharpness |

For each subgroup: `metrics_by_group`; for each class: `metrics_by_class`. With an interval: `metric_interval` ([all three](inference.md)). What
each metric sees and what it misses: [what each metric rewards](ideas/what_metrics_reward.md).

## How all of them are called

Every metric takes `(y_true, y_proba, *, ..., labels=None, pos_label=None, sample_weight=None)`, and `confidence=`,
`loss=` if it reads how sure and how wrong a row is. A weight of 2 equals the row twice. The order of rows does not matter
(except to a bootstrap of clusters), and rows of equal confidence are accepted or rejected together.

## The metrics

Written by `python docs/make_metrics_table.py` from `skselect.metrics.SPECS`, the one table of names in the code.
In the formulas c is the confidence, l the loss, a = 1 - l, w the weight and W its sum, t the threshold,
S(t) the accepted rows, n the rows, h the normalised entropy. In the second table of each section:

- *scoring string*: works as `scoring="..."` in scikit-learn after `import skselect`; every other
  metric is a scorer through `skselect.get_scorer(name, ...)`, where losses are called `neg_...`.
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

CWSA and CWSA+ rise with every confidence of a right answer, deserved or not: choose calibrators by log loss
or CSR. They also rise as the threshold falls below the lowest confidence, although no decision changes:
compare models at one threshold.

Calibration errors, `csr` and the confidence-weighted family read the confidence as the probability of
being right. Everywhere (function, `evaluate`, scorer, interval, comparison, by group, report) they get the
probability of the answer, whatever confidence the threshold is applied to and whatever name `confidence=`
gives. Only an array or a callable is read as it is: it may be a learnt probability of being right.
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
        formula = spec.formula.replace("|", "\\|")
        facts.append(
            f"| `{spec.name}` | `{spec.function.__name__}` | {spec.better} | {spec.range} | "
            f"{formula} | {spec.reference} |"
        )
        advice.append(
            f"| `{spec.name}` | {spec.use} | {spec.avoid} | {string} | "
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
