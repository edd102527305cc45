"""The paper on CWSA and CWSA+ (arXiv 2505.18622), run again.

    python benchmarks/paper_000.py [--quick] [--published FOLDER]

Five synthetic classifiers, drawn as the text describes them and as the authors' published code
draws them, against thresholds from .50 to .99, and that code's tests with noise and imbalance; and
MNIST with its official split: the paper's small convolutional net (needs torch), XGBoost and
logistic regression. FOLDER is a copy of the authors' repository, github.com/jay-gatz/CWSA: its
predictions are then evaluated again, row by row. Published numbers are in paper_000.csv.
docs/paper_cwsa.md says what came out.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from paper_000_mnist import KINDS, mnist_runs
from papers import COLORS, command_line, resumed, save

from skselect import Outcomes, RiskCoverageCurve, evaluate
from skselect.datasets import make_model_profile

#: The grid of the published code, and the thresholds that the tables print.
GRID = np.linspace(0.5, 0.99, 20).round(4)
THRESHOLDS = np.unique([*GRID, 0.6, 0.7, 0.8, 0.9, 0.95])
N_ROWS = 1000

#: As the published code draws them: the share of right answers, and the confidences of right and
#: of other answers. The others are one of three classes at random, so a third of them is right
#: by luck.
AS_PUBLISHED = {
    "calibrated": (0.9, (0.8, 1.0), (0.5, 0.7)),
    "overconfident 90 %": (0.9, (0.9, 1.0), (0.9, 1.0)),
    "overconfident 70 %": (0.7, (0.9, 1.0), (0.9, 1.0)),
    "underconfident": (0.9, (0.4, 0.6), (0.4, 0.6)),
    "perfect": (1.0, (0.95, 1.0), (0.95, 1.0)),
    "random": (0.0, (0.3, 1.0), (0.3, 1.0)),
}
#: Its tests with noise and imbalance draw the calibrated model so that answers which are right by
#: luck are as sure as the others: the share of labels exchanged for another class at random.
NOISE = {f"tested with {percent} % noise": percent / 100 for percent in (0, 10, 20, 30, 40)}
#: The models of the paper's text in this library, by their names in the tables.
AS_DESCRIBED = {
    "calibrated": "calibrated", "overconfident 90 %": "overconfident",
    "underconfident": "underconfident", "perfect": "perfect_certain", "random": "random",
}  # fmt: skip
#: What is drawn; the paper's figures call the last one CWSA.
METRICS = {
    "coverage": "coverage", "selective_accuracy": "selective accuracy", "cwsa_plus": "CWSA+",
    "cwsa": "CWSA", "cwsa_all": "CWSA over all rows",
}  # fmt: skip


# Drawing and measuring -------------------------------------------------------------------


def draw(drawn, model, rng):
    """Return the outcomes of one sample."""
    if drawn == "as described":
        profile = make_model_profile(AS_DESCRIBED[model], N_ROWS, random_state=rng)
        return Outcomes(~profile.correct, profile.confidence)
    share, sure, unsure = AS_PUBLISHED["calibrated" if model in NOISE else model]
    meant = rng.random(N_ROWS) < share
    right = meant | (rng.random(N_ROWS) < 1 / 3)
    is_sure = right if model in NOISE else meant
    confidence = np.where(is_sure, rng.uniform(*sure, N_ROWS), rng.uniform(*unsure, N_ROWS))
    if model in NOISE:
        exchanged = rng.permutation(N_ROWS) < NOISE[model] * N_ROWS
        # Half of the wrong answers name the class that the label is exchanged for.
        right = np.where(exchanged, ~right & (rng.random(N_ROWS) < 0.5), right)
    return Outcomes(~right, confidence)


def swept(outcomes):
    """Return every metric at every threshold, and what needs no threshold."""
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    accepted = curve.accepted_at(THRESHOLDS)
    coverage = accepted.weight / len(outcomes)
    with np.errstate(invalid="ignore"):
        accuracy = 1 - accepted.loss / accepted.weight
    cwsa = curve.cwsa(THRESHOLDS)
    columns = {
        "coverage": coverage, "selective_accuracy": accuracy,
        "cwsa_plus": curve.cwsa_plus(THRESHOLDS), "cwsa": cwsa, "cwsa_all": cwsa * coverage,
    }  # fmt: skip
    whole = evaluate(outcomes, {"aurc": {}, "augrc": {}, "ece": {"n_bins": 10}, "aumcc": {}})
    whole["aumcc_exact"] = evaluate(curve, {"aumcc": {"estimator": "exact"}})["aumcc"]
    rows = [
        {"threshold": t, "metric": name, "value": value}
        for name, values in columns.items()
        for t, value in zip(THRESHOLDS, values, strict=True)
    ]
    rows += [{"threshold": np.nan, "metric": k, "value": v} for k, v in whole.items()]
    rows.append({"threshold": np.nan, "metric": "accuracy", "value": 1 - outcomes.loss.mean()})
    return rows


def synthetic_run(drawn, model, repetitions):
    """Return mean, standard deviation and the middle 95 % of samples of the published size."""
    rng = np.random.default_rng([0, repetitions, *f"{drawn} {model}".encode()])
    runs = pd.DataFrame([row for _ in range(repetitions) for row in swept(draw(drawn, model, rng))])
    values = runs.groupby(["threshold", "metric"], dropna=False, sort=False)["value"]
    table = values.agg(["mean", "std"])
    table["low"], table["high"] = values.quantile(0.025), values.quantile(0.975)
    return table.reset_index().to_dict("records")


# Comparing -------------------------------------------------------------------------------


def compared(synthetic, published):
    """Set each published number of a synthetic model beside the samples'."""
    tables = []
    for drawn, at in [("as described", "printed_threshold"), ("as published", "used_threshold")]:
        ours = synthetic[synthetic["drawn"] == drawn].copy()
        whole = published["metric"].isin(["accuracy", "aurc", "ece"])
        wanted = published[published["source"] != "mnist"].assign(
            threshold=published[at].mask(whole, -1).round(4)
        )
        ours["threshold"] = ours["threshold"].fillna(-1).round(4)
        both = wanted.merge(ours, on=["model", "threshold", "metric"])
        gap = (both["value"] - both["mean"]).mask(lambda g: g.abs() < 5e-5, 0.0)
        spread = both["std"].where(both["std"] > 1e-12, 0.0)
        # inf: no sample can have the published number.
        tables.append(both.assign(z=(gap / spread).fillna(0.0)))
    return pd.concat(tables)


def verdicts(comparison):
    """Return how far the printed numbers of each row lie from the samples: the largest |z|."""
    comparison = comparison.assign(z=comparison["z"].abs())
    keys = ["source", "model", "printed_threshold", "used_threshold", "drawn"]
    table = comparison.pivot_table(index=keys, columns="metric", values="z", sort=False)
    return table.assign(largest=table.max(axis=1)).round(1).reset_index()


def scored_again(folder):
    """Compare our metrics of the authors' predictions with their own result files."""
    rows = []
    for name, file in [("mnist", "mnist_metrics.csv"), ("cifar10", "cifar_10_metrics.csv")]:
        rows_of = pd.read_csv(folder / "Results/Real World Predictions" / f"{name}_predictions.csv")
        theirs = pd.read_csv(folder / "Results" / file)
        curve = RiskCoverageCurve.from_outcomes(
            Outcomes.from_labels(rows_of["y_true"], rows_of["y_pred"], rows_of["confidence"])
        )
        t = theirs["Threshold"].to_numpy()
        accepted = curve.accepted_at(t)
        coverage = accepted.weight / len(rows_of)
        ours = {
            "Coverage": coverage, "SelectiveAccuracy": 1 - accepted.loss / accepted.weight,
            "CWSA+": curve.cwsa_plus(t), "CWSA": curve.cwsa(t) * coverage,
        }  # fmt: skip
        gaps = {k: np.abs(v - theirs[k]).max() for k, v in ours.items()}
        gaps["CWSA over the accepted rows"] = np.abs(curve.cwsa(t) - theirs["CWSA"]).max()
        gaps["AURC"] = abs(curve.aurc() - theirs["AURC"][0])
        rows.append({"predictions": name, **gaps})
    return pd.DataFrame(rows)


# Pictures --------------------------------------------------------------------------------


def draw_metrics(ax, table, points, title):
    """Draw the metrics against the threshold, and published values as dots."""
    styles = ["-", "--", "-", ":", "-."]
    for (name, label), color, style in zip(METRICS.items(), COLORS, styles, strict=False):
        line = table[table["metric"] == name].dropna(subset="threshold").sort_values("threshold")
        ax.plot(line["threshold"], line["mean"], color=color, linestyle=style, label=label)
        if "low" in line:
            ax.fill_between(line["threshold"], line["low"], line["high"], color=color, alpha=0.15)
        known = points[points["metric"] == name]
        ax.plot(known["used_threshold"], known["value"], "o", color=color, markersize=3.5)
    ax.set_title(title, fontsize=9)
    ax.set_xlim(0.49, 1.0)


def picture(synthetic, mnist, published):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 5.4), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    ours = synthetic[synthetic["drawn"] == "as published"]
    shown = [
        ("calibrated", "five models", "“calibrated”"),
        ("overconfident 90 %", "table 2", "“overconfident”, 90 % meant right"),
        ("underconfident", "five models", "“underconfident”"),
        ("perfect", "five models", "“perfect”"),
        ("random", "table 3", "“random”"),
    ]
    for ax, (model, source, title) in zip(axes, shown, strict=False):
        points = published[(published["source"] == source) & (published["model"] == model)]
        draw_metrics(ax, ours[ours["model"] == model], points, title)
    kind = "cnn" if "cnn" in set(mnist["model"]) else "xgboost"
    points = published[(published["source"] == "mnist") & (published["model"] == kind)]
    table = mnist[(mnist["model"] == kind) & (mnist["sharpened"] == 1)]
    table = table.groupby(["threshold", "metric"])["value"].mean().rename("mean").reset_index()
    draw_metrics(axes[5], table, points, f"MNIST, {KINDS[kind]}")
    for ax in axes[3:]:
        ax.set_xlabel("threshold")
    axes[0].legend(fontsize=7.5, loc="lower left")
    figure.suptitle("Lines: ours, with the middle 95 % of 1000-row samples. Dots: published.",
                    fontsize=9)  # fmt: skip
    return figure


# Everything ------------------------------------------------------------------------------


def main():
    parser = command_line(__doc__, "paper_000")
    parser.add_argument("--published", type=Path, default=None, metavar="FOLDER")
    options = parser.parse_args()
    published = pd.read_csv(Path(__file__).with_suffix(".csv"))
    repetitions = 50 if options.quick else 400
    models = {"as described": AS_DESCRIBED, "as published": AS_PUBLISHED | NOISE}
    keys = [
        {"drawn": drawn, "model": model, "repetitions": repetitions}
        for drawn in models
        for model in models[drawn]
    ]
    shared = {"jobs": options.jobs, "afresh": options.afresh}
    synthetic = resumed(options.out / "synthetic.csv", keys, synthetic_run, **shared)
    mnist = mnist_runs(options, swept)
    comparison = compared(synthetic, published)
    comparison.to_csv(options.out / "comparison.csv", index=False)
    table = verdicts(comparison)
    table.to_csv(options.out / "verdicts.csv", index=False)
    print("\n## Standard deviations between the published numbers and samples\n")
    print(table.to_string(index=False, na_rep=""))
    print("\n## MNIST, official split\n")
    few = mnist[mnist["threshold"].isna() | mnist["threshold"].isin([0.5, 0.9, 0.99])]
    wide = few.pivot_table(
        index=["threshold", "metric"], columns=["model", "sharpened"], values="value", dropna=False
    )
    print(wide.dropna(how="all").round(4).to_string())
    if options.published:
        print("\n## The published predictions, evaluated again: largest differences\n")
        print(scored_again(options.published).to_string(index=False))
    save(picture(synthetic, mnist, published), options.out / "cwsa.png")


if __name__ == "__main__":
    main()
