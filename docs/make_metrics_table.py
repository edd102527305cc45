"""Write docs/metrics.md from the table of metrics in the code.

python docs/make_metrics_table.py
"""

import inspect
from pathlib import Path

from skselect.metrics import SPECS

HEAD = """# Metrics

This page is written by `python docs/make_metrics_table.py` from `skselect.metrics.SPECS`, the one
table of names in the code. Every metric takes `(y_true, y_proba, *, ..., confidence=None,
loss="zero_one", labels=None, pos_label=None, sample_weight=None)`. A weight of 2 equals the row
twice, the order of rows never matters, and tied confidences are never parted.

| name | function | better | range | scoring string | weights' scale | without a value | source |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""

TAIL = """
- *scoring string*: works as `scoring="..."` in scikit-learn after `import skselect`; every other
  metric is a scorer through `skselect.get_scorer(name, ...)`, where losses are called `neg_...`.
- *weights' scale*: whether multiplying all weights by a constant changes the value.
- *without a value*: when the metric is undefined, what the function returns, and what the scorer
  returns where that differs. A scorer never rewards abstaining on everything.
- `cwsa_contributions` gives what each row adds to CWSA.

## Which one?

| question | metric |
| --- | --- |
| Which of two models ranks its own errors better? | `augrc` (AURC weighs the very first errors without bound) |
| Is there anything left to gain by ranking better? | `eaurc`, `naurc` |
| How many cases can it decide at 2 % errors? | `coverage_at_risk` with `max_risk=.02` (a description; a promise needs `ThresholdTuner`) |
| How good is it at the threshold in use? | `selective_accuracy` with `coverage`, or `cwsa_plus` |
| Which threshold or model depth? | `cwsa_plus` with `min_coverage`, `neg_augrc` |
| Can its probabilities be believed? | `ece`; near certainty `csr` |

CWSA and CWSA+ reward sharpness as such: choose calibrators by log loss or CSR, not by CWSA+. They also
rise as the threshold falls below the lowest confidence, although no decision changes: compare models
at one threshold.

`csr`, `ece` and `cw_accuracy` read the confidence as the probability of being right. Scorers and
`evaluate` therefore give them the largest probability, whatever confidence the threshold is about.
"""


def main() -> None:
    rows = []
    for spec in SPECS.values():
        string = f"`{spec.scorer_name}`" if spec.registered else ""
        first = inspect.getdoc(spec.function).splitlines()[0]
        assert first.startswith("Compute "), spec.name
        rows.append(
            f"| `{spec.name}` | `{spec.function.__name__}` | "
            f"{'higher' if spec.greater_is_better else 'lower'} | {spec.range} | {string} | "
            f"{'none' if spec.scale_free else 'matters'} | {spec.undefined} | {spec.reference} |"
        )
    text = HEAD + "\n".join(rows) + "\n" + TAIL
    (Path(__file__).parent / "metrics.md").write_text(text)


if __name__ == "__main__":
    main()
