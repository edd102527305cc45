"""The paper on correctness-aligned uncertainty (CAU), run again.

    python benchmarks/paper_004.py [--quick]

Needs torch (CPU) beside `pip install ".[benchmarks]"`. Nets of two hidden layers on four tables:
CAU and other measures against the dropout rate and the weight decay; what training with CAU in the
loss does; and how many rows must be reviewed so that silent errors are rare, by the paper's rule
and by an exact one. docs/paper_cau.md says what came out.
"""

from functools import partial

import numpy as np
import pandas as pd
from paper_004_measures import net_run
from paper_004_nets import PASSES
from papers import COLORS, command_line, resumed, save
from scipy import stats

TABLES = ["mnist", "letter", "covertype_small", "magic"]
GRIDS = {
    "dropout": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
    "weight_decay": [0.0, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2],
    "alpha": [0.0, 0.1, 0.3, 1.0],
}
#: Measures in the order of the tables; 1 where larger is better.
NAMES = {
    "cau": -1, "cau_1": -1, "cau_0": -1, "cau_as_printed": -1, "entropy": -1, "failure_auroc": 1,
    "failure_average_precision": 1, "naurc": -1, "aurc": -1, "augrc": -1, "ece": -1, "csr": -1,
    "log_loss": -1, "top_label_brier": -1, "cwsa_plus": 1, "accuracy": 1,
}  # fmt: skip


# Tables ----------------------------------------------------------------------------------


def wide(runs):
    keys = ["table", "varied", "strength", "seed", "prediction"]
    return runs.pivot_table(index=keys, columns="measure", values="value").reset_index()


def correlations(runs, varied, with_what):
    """Return each measure's rank correlation with a column: the mean over tables, and the range."""
    few = wide(runs[(runs["varied"] == varied) & runs["measure"].isin([*NAMES])])
    rows = []
    for prediction, part in few.groupby("prediction", sort=False):
        for name in [n for n in NAMES if n != with_what]:
            values = [
                stats.spearmanr(t[name], t[with_what]).statistic for _, t in part.groupby("table")
            ]
            rows.append({"varied": varied, "with": with_what, "prediction": prediction,
                         "measure": name, "mean": np.mean(values), "lowest": min(values),
                         "highest": max(values)})  # fmt: skip
    return pd.DataFrame(rows)


def choices(runs):
    """Return what choosing the strength by each measure costs, in AUGRC and in accuracy."""
    few = wide(runs[(runs["varied"] != "alpha") & runs["measure"].isin([*NAMES])])
    few = few[few["prediction"] == "plain"]
    mean = few.groupby(["table", "varied", "strength"])[[*NAMES]].mean().reset_index()
    rows = []
    for name, sign in NAMES.items():
        for (table, varied), part in mean.groupby(["table", "varied"]):
            chosen = part.loc[(sign * part[name]).idxmax()]
            rows.append({"measure": name, "table": table, "varied": varied,
                         "chosen": chosen["strength"],
                         "AUGRC over the best": chosen["augrc"] / part["augrc"].min() - 1,
                         "accuracy lost": part["accuracy"].max() - chosen["accuracy"]})  # fmt: skip
    return pd.DataFrame(rows)


def trained_with_cau(runs):
    part = runs[runs["varied"] == "alpha"]
    return part.pivot_table(
        index=["table", "prediction", "measure"], columns="strength", values="value", sort=False
    )


def picture(runs):
    from matplotlib.figure import Figure

    few = wide(runs[(runs["varied"] == "dropout") & runs["measure"].isin(["cau", "augrc"])])
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    axes = figure.subplots(2, len(TABLES), sharex=True)
    for column, table in enumerate(TABLES):
        for row, measure in enumerate(["cau", "augrc"]):
            ax = axes[row, column]
            kinds = ["plain", f"{PASSES} passes", "one pass"]
            for color, style, kind in zip(COLORS, ["-", "--", ":"], kinds, strict=False):
                part = few[(few["table"] == table) & (few["prediction"] == kind)]
                line = part.groupby("strength")[measure]
                ax.plot(line.mean(), color=color, linestyle=style, marker="o", markersize=3,
                        label=kind)  # fmt: skip
                ax.fill_between(line.mean().index, line.min(), line.max(), color=color, alpha=0.2)
            ax.set_ylim(bottom=0)
        axes[0, column].set_title(table, fontsize=9)
        axes[1, column].set_xlabel("dropout rate")
    axes[0, 0].set_ylabel("CAU")
    axes[1, 0].set_ylabel("AUGRC")
    axes[0, 0].legend(fontsize=7.5)
    return figure


# Everything ------------------------------------------------------------------------------


def keys_of(quick):
    tables, seeds = (["letter"], 1) if quick else (TABLES, 3)
    return [
        {"table": table, "varied": varied, "strength": strength, "seed": seed,
         "n_train": 2000 if quick else 5000, "n_test": 10_000}
        for seed in range(seeds)
        for table in tables
        for varied, grid in GRIDS.items()
        for strength in (grid[::3] if quick else grid)
    ]  # fmt: skip


def main():
    options = command_line(__doc__, "paper_004").parse_args()
    run = partial(net_run, data_home=options.data_home)
    runs = resumed(
        options.out / "runs.csv", keys_of(options.quick), run, jobs=options.jobs,
        afresh=options.afresh,
    )  # fmt: skip
    links = [("dropout", "strength"), ("weight_decay", "strength"), ("dropout", "cau")]
    linked = pd.concat([correlations(runs, *link) for link in links])
    chosen = choices(runs)
    losses = trained_with_cau(runs)
    results = {"correlations": linked, "choices": chosen, "trained_with_cau": losses.reset_index()}
    for name, table in results.items():
        table.to_csv(options.out / f"{name}.csv", index=False)
    print("\n## Rank correlations over nets, mean over tables\n")
    print(linked.pivot_table(index="measure", columns=["varied", "with", "prediction"],
                             values="mean", sort=False).round(2).to_string())  # fmt: skip
    print("\n## What it costs to choose the strength by a measure, mean over tables\n")
    costs = ["AUGRC over the best", "accuracy lost"]
    print(chosen.pivot_table(index="measure", columns="varied", values=costs, sort=False)
          .round(3).to_string())  # fmt: skip
    print("\n## Training on cross-entropy + alpha CAU, and review rates\n")
    print(losses.round(4).to_string())
    save(picture(runs), options.out / "cau.png")


if __name__ == "__main__":
    main()
