"""Write docs/metrics.md from the table of metrics in the code.

python docs/make_metrics_table.py
"""

import inspect
from pathlib import Path

from skselect.metrics import SPECS

HEAD = """# Metrics

This page is written by `python docs/make_metrics_table.py` from `skselect.metrics.SPECS`, the one
table of names in the code. Every metric takes `(y_true, y_proba, *, ..., labels=None, pos_label=None,
sample_weight=None)`, and `confidence=`, `loss=` where it reads how sure and how wrong a row is. A weight
of 2 equals the row twice, the order of rows never matters (but to a bootstrap of clusters), and tied confidences are never parted.

## Which one?

| question | metric |
| --- | --- |
| Which of two models abstains better? | `augrc`, with `compare_models` for chance |
| Is there anything left to gain by ranking better? | `eaurc`, `naurc` |
| How many cases can it decide at 2 % errors? | `coverage_at_risk` with `max_risk=.02` (a description; a promise needs `ThresholdTuner`) |
| How good is it at the threshold in use? | `selective_accuracy` with `coverage`, or `cwsa_plus` |
| Which threshold or model depth? | `cwsa_plus` with `min_coverage`, `neg_augrc` |
| Can its probabilities be believed? | `smooth_ece`; a test: `t_cal_test`, `ecce_test`; over or under: `ecd_test` |
| Does it err while it is nearly certain? | `csr_test` |
| How much must a person review? | `review_at_reliability` |
| Does it hold for every subgroup? | `metrics_by_group` |

## The table

In the formulas c is the confidence, l the loss, a = 1 - l, w the weight and W its sum, t the threshold,
S(t) the accepted rows, n the rows, h the normalised entropy.

"""

TAIL = """
- *scoring string*: works as `scoring="..."` in scikit-learn after `import skselect`; every other
  metric is a scorer through `skselect.get_scorer(name, ...)`, where losses are called `neg_...`.
- *weights' scale*: whether multiplying all weights by a constant changes the value.
- *without a value*: when the metric is undefined, what the function returns, and what the scorer
  returns where that differs. A scorer never rewards abstaining on everything.

Functions beside the table: `cwsa_contributions` (what each row adds to CWSA), `cw_confusion_matrix`,
`cw_roc_curve`, `cau_components`, `review_at_reliability`; the tests `csr_test`, `ecce_test`, `ecd_test`
and `t_cal_test`; and [intervals, comparisons and subgroups](inference.md).

CWSA and CWSA+ reward sharpness as such: choose calibrators by log loss or CSR, not by CWSA+. They also
rise as the threshold falls below the lowest confidence, although no decision changes: compare models
at one threshold.

Calibration errors, `csr` and the confidence-weighted family read the confidence as the probability of
being right. On every path (function, `evaluate`, scorer, interval, comparison, by group, report) they are
given the probability of the answer, whatever confidence the threshold is about and whatever name
`confidence=` says. Only the values of an array or a callable are read as they are: a learnt chance of
being right, say.
"""


def text() -> str:
    facts = [
        "| name | function | better | range | formula | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    advice = [
        "",
        "| name | use it for | rather not | scoring string | weights' scale | without a value |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for spec in SPECS.values():
        string = f"`{spec.scorer_name}`" if spec.registered else ""
        first = inspect.getdoc(spec.function).splitlines()[0]
        assert first.startswith("Compute "), spec.name
        better = "higher" if spec.greater_is_better else "lower"
        better = "nearer 0" if spec.signed else better
        formula = spec.formula.replace("|", "\\|")
        facts.append(
            f"| `{spec.name}` | `{spec.function.__name__}` | {better} | {spec.range} | "
            f"{formula} | {spec.reference} |"
        )
        advice.append(
            f"| `{spec.name}` | {spec.use} | {spec.avoid} | {string} | "
            f"{'none' if spec.scale_free else 'matters'} | {spec.undefined} |"
        )
    return HEAD + "\n".join([*facts, *advice]) + "\n" + TAIL


if __name__ == "__main__":
    (Path(__file__).parent / "metrics.md").write_text(text())
