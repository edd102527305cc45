"""The paper on correctness-aligned uncertainty (CAU), run again.

    python benchmarks/paper_004.py [--quick]

Needs torch (CPU) beside `pip install ".[benchmarks]"`. Nets of two hidden layers on four tables:
CAU and other measures against the dropout rate and the weight decay; what training with CAU in the
loss does; and how many rows must be reviewed so that silent errors are rare, by the paper's rule
and by an exact one. docs/paper_cau.md says what came out.
"""

from functools import partial

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
#: Training with CAU differs more from seed to seed.
SEEDS = {"dropout": 3, "weight_decay": 3, "alpha": 6}
#: Measures in the order of the tables; 1 where larger is better.
NAMES = {
    "cau": -1, "cau_1": -1, "cau_0": -1, "cau_as_printed": -1, "entropy": -1, "failure_auroc": 1,
    "failure_average_precision": 1, "average_precision_right": 1, "naurc": -1, "aurc": -1,
    "augrc": -1, "ece": -1, "csr": -1, "log_loss": -1, "top_label_brier": -1,
    "cwsa_plus": 1, "accuracy": 1,
}  # fmt: skip

#: Pearson's correlation of a measure with the dropout rate: tables 1 and 4 of the paper.
PRINTED = pd.DataFrame(
    [(-0.839, -0.889, -0.845, -0.859), (0.523, 0.022, -0.649, -0.560),
     (0.553, -0.461, -0.392, -0.216), (0.519, 0.259, -0.602, -0.474)],
    ["cau", "failure_auroc", "failure_average_precision", "average_precision_right"],
    ["EMNIST", "MNIST", "Fashion-MNIST", "Kuzushiji-MNIST"],
)  # fmt: skip


# Tables ----------------------------------------------------------------------------------


def wide(runs):
    keys = ["table", "varied", "strength", "seed", "prediction"]
    return runs.pivot_table(index=keys, columns="measure", values="value").reset_index()


def correlations(runs, varied, with_what):
    """Return each measure's correlation over nets with a column, table by table."""
    few = wide(runs[(runs["varied"] == varied) & runs["measure"].isin([*NAMES])])
    return pd.DataFrame(
        {"varied": varied, "with": with_what, "prediction": prediction, "table": table,
         "measure": name, "spearman": stats.spearmanr(part[name], part[with_what]).statistic,
         "pearson": stats.pearsonr(part[name], part[with_what]).statistic}
        for (prediction, table), part in few.groupby(["prediction", "table"], sort=False)
        for name in NAMES if name != with_what
    )  # fmt: skip


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

    few = wide(runs[runs["varied"] == "dropout"])
    plain = few[few["prediction"] == "plain"]
    passes = few[few["prediction"] == f"{PASSES} passes"]
    rows = [
        ("CAU", [("cau", plain, "CAU"), ("cau_1", plain, "CAU_1, right rows"),
                 ("cau_0", plain, "CAU_0, wrong rows")]),
        ("AUGRC", [("augrc", plain, "without dropout"),
                   ("augrc", passes, f"{PASSES} passes with it")]),
    ]  # fmt: skip
    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    axes = figure.subplots(2, len(TABLES), sharex=True)
    for ax in axes[0, 1:]:
        ax.sharey(axes[0, 0])
    for row, (label, lines) in enumerate(rows):
        for ax, table in zip(axes[row], TABLES, strict=True):
            for style, (measure, part, name) in enumerate(lines):
                values = part[part["table"] == table].groupby("strength")[measure]
                look = {"color": (COLORS[6], COLORS[0], COLORS[3])[style], "label": name}
                ax.plot(values.mean(), linestyle=("-", "--", ":")[style], marker="o",
                        markersize=3, **look)  # fmt: skip
                ax.fill_between(values.mean().index, values.min(), values.max(),
                                color=look["color"], alpha=0.2)  # fmt: skip
            ax.set_ylim(bottom=0)
        axes[row, 0].set_ylabel(label)
    axes[0, 0].legend(fontsize=7, loc=(0.04, 0.17))
    axes[1, -1].legend(fontsize=7, loc="lower left")
    for column, table in enumerate(TABLES):
        axes[0, column].set_title(table, fontsize=9)
        axes[1, column].set_xlabel("dropout rate")
    return figure


# Everything ------------------------------------------------------------------------------


def list_keys(quick):
    tables = ["letter"] if quick else TABLES
    return [
        {"table": table, "varied": varied, "strength": strength, "seed": seed,
         "n_train": 2000 if quick else 5000, "n_test": 10_000}
        for seed in range(max(SEEDS.values()))
        for table in tables
        for varied, grid in GRIDS.items()
        if seed < (1 if quick else SEEDS[varied])
        for strength in (grid[::3] if quick else grid)
    ]  # fmt: skip


def main():
    options = command_line(__doc__, "paper_004").parse_args()
    run = partial(net_run, data_home=options.data_home)
    runs = resumed(
        options.out / "runs.csv", list_keys(options.quick), run, jobs=options.jobs,
        afresh=options.afresh,
    )  # fmt: skip
    links = [("dropout", "strength"), ("weight_decay", "strength"), ("dropout", "cau")]
    linked = pd.concat([correlations(runs, *link) for link in links])
    chosen = choices(runs)
    losses = trained_with_cau(runs)
    results = {"correlations": linked, "choices": chosen, "trained_with_cau": losses.reset_index()}
    for name, table in results.items():
        table.to_csv(options.out / f"{name}.csv", index=False)
    print("\n## Rank correlations over nets that predict without dropout\n")
    plain = linked[linked["prediction"] == "plain"]
    print(plain.pivot_table(index="measure", columns=["varied", "with", "table"],
                            values="spearman", sort=False).round(2).to_string())  # fmt: skip
    print("\n## Pearson's correlation with the dropout rate: printed, and ours\n")
    pearson = plain[(plain["varied"] == "dropout") & (plain["with"] == "strength")]
    ours = pearson.pivot_table(index="measure", columns="table", values="pearson")
    print(PRINTED.join(ours).round(3).to_string())
    print("\n## What it costs to choose the strength by a measure, mean over tables\n")
    costs = ["AUGRC over the best", "accuracy lost"]
    print(chosen.pivot_table(index="measure", columns="varied", values=costs, sort=False)
          .round(3).to_string())  # fmt: skip
    print("\n## Training on cross-entropy + alpha CAU, and review rates\n")
    print(losses.round(4).to_string())
    save(picture(runs), options.out / "cau.png")


if __name__ == "__main__":
    main()
