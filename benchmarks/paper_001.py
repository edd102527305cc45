"""Rerun of Traub et al. 2024 (AUGRC, arXiv 2407.01032): toy rankings, and a ranking of confidences.

    python benchmarks/paper_001.py [--quick] [--data-home DIR] [--out DIR] [--splits 5]

Fifteen confidence scores on twenty tables of numbers and names, ranked by AURC and by AUGRC; the
paper's own data sets are images. A split is 80 % to train on (10,000 rows at most) and 20 % to
test on (5,000 at most); duplicate rows and leaky columns are dropped.
Needs `pip install ".[benchmarks]"`. Scores are kept in benchmarks/.cache: a second call is quick.
"""

from papers import COLORS, command_line, resumed, save  # isort: skip  (sets the number of threads)

import warnings
from functools import partial
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from joblib import Memory
from scipy import special
from scipy.stats import kendalltau, rankdata, wilcoxon
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tabular import load_table, make_encoder, split_rows
from xgboost import XGBClassifier

from skselect import (
    Outcomes,
    PrecomputedClassifier,
    Predictions,
    RiskCoverageCurve,
    SelectiveClassifier,
    evaluate,
)
from skselect._lib.decide import CONFIDENCES, max_proba
from skselect.inference import compare_models
from skselect.inference.compare import holm

memory = Memory(Path(__file__).parent / ".cache", verbose=0)

# Chosen before any result was seen: tables of 600 rows and more with enough errors to rank.
SETS = ["adult", "balance_scale", "bank_marketing", "covertype_small", "credit_approval",
        "credit_default", "german_credit", "magic", "mammography", "obesity", "phishing", "phoneme",
        "pima_diabetes", "segment", "spambase", "tic_tac_toe", "vehicle", "vowel",
        "wine_quality", "yeast"]  # fmt: skip
QUICK_SETS = ["balance_scale", "german_credit", "pima_diabetes", "tic_tac_toe", "vehicle", "yeast"]
MOST_TRAINING_ROWS, MOST_TEST_ROWS = 10_000, 5_000
N_FOLDS, N_NEIGHBOURS, N_TREES = 5, 15, 200
AREAS = ["aurc", "augrc"]
BASELINE = "max_proba"
#: Scores with a classifier of their own; the others score the answers of one XGBoost.
OWN_ANSWERS = ["forest", "logistic", "fold ensemble"]

#: The surest answer first; + is right, - is wrong. See docs/paper_augrc.md.
TOYS = {
    "A: accuracy .75, AUROC .667": "++++++++++-----+++++",
    "B: accuracy .80, AUROC .750": "-++++++++++++++++---",
}


# Scores -------------------------------------------------------------------------------------------


def make_model(seed):
    return XGBClassifier(n_estimators=150, max_depth=5, learning_rate=0.1, subsample=0.8,
                         tree_method="hist", n_jobs=1, random_state=seed)  # fmt: skip


def at_most(n_rows, rows, codes, seed):
    if len(rows) <= n_rows:
        return rows
    return train_test_split(rows, train_size=n_rows, stratify=codes[rows], random_state=seed)[0]


def neighbours_agree(X, codes, X_new, answers, *, themselves):
    """Return the share of the nearest training rows whose class is the answer."""
    search = NearestNeighbors(n_neighbors=N_NEIGHBOURS + themselves).fit(X)
    near = search.kneighbors(X_new, return_distance=False)[:, int(themselves) :]
    return (codes[near] == answers[:, np.newaxis]).mean(axis=1)


def sure_features(proba):
    """Return the log-odds of the three largest probabilities, and the answer, one-hot."""
    largest = -np.sort(-proba, axis=1)[:, : min(3, proba.shape[1])]
    answers = np.eye(proba.shape[1])[proba.argmax(axis=1)]
    return np.column_stack([special.logit(np.clip(largest, 1e-7, 1 - 1e-7)), answers])


def learned(features, right, new_features):
    """Return the chance of being right by a logistic regression; a constant if all are right."""
    if right.all():
        return np.ones(len(new_features))
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    return model.fit(features, right).predict_proba(new_features)[:, 1]


def calibrated(kind, scope, out_of_fold, codes, final):
    """Return the confidence of a final model that was calibrated on out-of-fold rows."""
    stored = FrozenEstimator(PrecomputedClassifier(np.arange(final.shape[1])))
    model = SelectiveClassifier(stored, calibration=kind, calibration_scope=scope)
    return model.fit(out_of_fold, codes).predict_confidence(final)


def normal(proba):
    """Return float64 probabilities that sum to one exactly enough."""
    proba = proba.astype(np.float64)
    return proba / proba.sum(axis=1, keepdims=True)


def fold_models(X, codes, X_test, seed):
    """Return out-of-fold probabilities, and the mean of the fold models on the test rows."""
    n_classes = codes.max() + 1
    out_of_fold, mean = np.empty((len(X), n_classes)), np.zeros((len(X_test), n_classes))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(X, codes))
    for fit, rest in folds:
        model = make_model(seed).fit(X[fit], codes[fit])
        out_of_fold[rest] = model.predict_proba(X[rest])
        mean += model.predict_proba(X_test) / N_FOLDS
    return normal(out_of_fold), normal(mean)


def load_rows(dataset, split, data_home):
    """Return features and classes of the rows to train on and to test on."""
    table = load_table(dataset, data_home, calibrated=True)
    train, test = split_rows(table, split)
    train = at_most(MOST_TRAINING_ROWS, train, table.codes, split)
    test = at_most(MOST_TEST_ROWS, test, table.codes, split)
    encoder = make_encoder(scale=True).fit(table.X.iloc[train])
    X, X_test = (encoder.transform(table.X.iloc[rows]) for rows in (train, test))
    return X, table.codes[train], X_test, table.codes[test]


@memory.cache(ignore=["data_home"])
def scores_of(dataset, split, data_home):
    """Return the classes of the test rows, and the answers and confidences of every score."""
    X, codes, X_test, truth = load_rows(dataset, split, data_home)
    out_of_fold, fold_mean = fold_models(X, codes, X_test, split)
    final = normal(make_model(split).fit(X, codes).predict_proba(X_test))
    forest = RandomForestClassifier(N_TREES, random_state=split).fit(X, codes)
    forest = normal(forest.predict_proba(X_test))
    logistic = LogisticRegression(max_iter=3000).fit(X, codes).predict_proba(X_test)

    answers, guesses, rows = final.argmax(axis=1), out_of_fold.argmax(axis=1), np.arange(len(truth))
    right = guesses == codes
    near = neighbours_agree(X, codes, X_test, answers, themselves=False)
    near_before = neighbours_agree(X, codes, X, guesses, themselves=True)
    seen, new = sure_features(out_of_fold), sure_features(final)
    confidences = {
        **{name: function(final) for name, function in CONFIDENCES.items()},
        "temperature": calibrated("temperature", "probabilities", out_of_fold, codes, final),
        "isotonic": calibrated("isotonic", "confidence", out_of_fold, codes, final),
        "neighbours": near,
        "forest agreement": forest[rows, answers],
        "fold agreement": fold_mean[rows, answers],
        "learned": learned(seen, right, new),
        "learned, neighbours": learned(
            np.column_stack([seen, near_before]), right, np.column_stack([new, near])
        ),
        "random": np.random.default_rng(split).random(len(truth)),
    }
    scores = {name: (answers, confidence) for name, confidence in confidences.items()}
    for name, proba in zip(OWN_ANSWERS, (forest, logistic, fold_mean), strict=True):
        scores[name] = (proba.argmax(axis=1), max_proba(proba))
    return truth, final.shape[1], scores


# Judging ------------------------------------------------------------------------------------------


def compute_values(dataset, split, data_home=None):
    truth, _, scores = scores_of(dataset, split, data_home)
    found = []
    for name, (answers, confidence) in scores.items():
        predictions = Predictions.from_labels(truth, answers, np.round(confidence, 12))
        values = evaluate(predictions, AREAS)
        accuracy = (answers == truth).mean()
        found.append({"score": name, "rows": len(truth), "accuracy": accuracy, **values})
    return found


def as_proba(answers, confidence, n_classes):
    """Return probabilities with these answers, whose largest has the ranks of the confidence."""
    rank = rankdata(np.round(confidence, 12), method="dense")
    largest = 0.5 + 0.5 * rank / (rank.max() + 1)
    proba = np.repeat(((1 - largest) / (n_classes - 1))[:, np.newaxis], n_classes, axis=1)
    proba[np.arange(len(answers)), answers] = largest
    return proba


def compare_pairs(dataset, split, data_home=None):
    """Compare each pair of scores on the same rows, by AURC and by AUGRC; p-values are raw."""
    truth, n_classes, scores = scores_of(dataset, split, data_home)
    probas = {name: as_proba(*score, n_classes) for name, score in scores.items()}
    names = list(probas)
    found = []
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            row = {"first": first, "second": second}
            for area in AREAS:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", message=".*fewer than 10 errors")
                    pair = {name: probas[name] for name in (first, second)}
                    table = compare_models(
                        truth, pair, area, baseline=first, labels=range(n_classes)
                    )
                row[area] = table.loc[second, "difference"]
                row[f"{area}_p"] = table.loc[second, "p_value"]
            found.append(row)
    return found


# Tables and pictures ------------------------------------------------------------------------------


def compare_across_datasets(values):
    """Compare each score with the baseline by one value per data set: the smaller, the better.

    The p-values are those of Wilcoxon's signed ranks, adjusted by Holm.
    """
    gain = values.rsub(values[BASELINE], axis=0)
    others = gain.columns.drop(BASELINE)
    raw = [
        wilcoxon(gain[name], zero_method="pratt").pvalue if gain[name].any() else 1.0
        for name in others
    ]
    table = pd.DataFrame({
        "mean": values.mean(),
        "mean_rank": values.rank(axis=1).mean(),
        "difference": -gain.median(),
        "wins": (gain > 0).sum(),
        "losses": (gain < 0).sum(),
        "p_value": pd.Series(holm(np.array(raw)), others).reindex(values.columns, fill_value=1.0),
    })  # fmt: skip
    return table.sort_values("mean_rank", kind="stable")


def rank_scores(values):
    """Return mean, mean rank and p-value over data sets, under both areas side by side."""
    tables = {}
    for area in AREAS:
        means = values.pivot_table(index="dataset", columns="score", values=area)
        tables[area] = compare_across_datasets(means).add_prefix(f"{area} ")
    return tables["augrc"].join(tables["aurc"])


def measure_agreement(values):
    """Return how far the order of the scores differs between the areas, per data set."""
    rows = []
    for dataset, part in values.groupby("dataset"):
        means = part.groupby("score")[AREAS].mean()
        best = means.idxmin()
        gaps = [means[area].to_numpy()[:, None] - means[area].to_numpy() for area in AREAS]
        upper = np.triu_indices(len(means), 1)
        turned = (gaps[0] * gaps[1])[upper] < 0
        rows.append({
            "dataset": dataset,
            "tau": kendalltau(*means.to_numpy().T).statistic,
            "pairs turned": int(turned.sum()),
            "pairs": len(turned),
            "best by AURC": best["aurc"],
            "best by AUGRC": best["augrc"],
            "same best": means.loc[best["aurc"], "augrc"] == means["augrc"].min(),
        })  # fmt: skip
    return pd.DataFrame(rows).set_index("dataset")


def count_conflicts(pairs):
    """Count pairs by what the paired tests say under the two areas (5 %, not adjusted)."""
    said = {area: np.sign(pairs[area]).where(pairs[f"{area}_p"] < 0.05, 0) for area in AREAS}
    told = {area: said[area] != 0 for area in AREAS}
    return pd.Series({
        "pairs": len(pairs),
        "the values disagree": int((pairs["aurc"] * pairs["augrc"] < 0).sum()),
        "told apart by both, alike": int(((said["aurc"] == said["augrc"]) & told["aurc"]).sum()),
        "told apart by both, opposite": int(((said["aurc"] * said["augrc"]) < 0).sum()),
        "told apart by AUGRC only": int((told["augrc"] & ~told["aurc"]).sum()),
        "told apart by AURC only": int((told["aurc"] & ~told["augrc"]).sum()),
    })  # fmt: skip


def areas_of_one_error(rank, n):
    """Return AURC and AUGRC of n answers of which the one at a rank is wrong."""
    wrong = np.arange(1, n + 1) == rank
    curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, np.arange(n, 0, -1) / n))
    return curve.aurc(), curve.augrc()


def draw_toys(path):
    """Draw two rankings, of which B errs less and ranks better, and what an error adds by rank."""
    figure, panels = plt.subplots(1, 3, figsize=(9.5, 3.4), layout="constrained")
    for (label, marks), colour, line in zip(
        TOYS.items(), COLORS[::3][:2], ["-", "--"], strict=True
    ):
        n = len(marks)
        wrong = np.array([mark == "-" for mark in marks], dtype=float)
        curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, np.arange(n, 0, -1) / n))
        for axes, risk, area in [
            (panels[0], curve.selective_risk, f"AURC {curve.aurc():.3f}"),
            (panels[1], curve.generalized_risk, f"AUGRC {curve.augrc():.3f}"),
        ]:
            style = {"color": colour, "linestyle": line, "label": f"{label}; {area}"}
            axes.plot(curve.coverage, risk, marker=".", **style)
    ranks = np.arange(1, 21)
    added = [areas_of_one_error(rank, len(ranks)) for rank in ranks]
    for values, name, colour in zip(np.transpose(added), AREAS, COLORS[1:3], strict=True):
        panels[2].plot(ranks, values, marker=".", color=colour, label=name.upper())
    titles = ["wrong among the accepted", "wrong and accepted", "added by one error"]
    for axes, title in zip(panels, titles, strict=True):
        axes.set(xlabel="coverage", ylabel=title)
        axes.set_ylim(0, None)
        axes.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False)
        axes.grid(linewidth=0.3)
    panels[2].set(xlabel="rank of the error (1 is the surest)", xticks=[1, 5, 10, 15, 20])
    save(figure, path)


def spread(heights, gap):
    """Return heights that keep their order and are at least `gap` apart."""
    order = np.argsort(heights)
    placed = np.array(heights, dtype=float)
    for _ in range(200):
        for low, high in pairwise(order):
            lack = gap - (placed[high] - placed[low])
            if lack > 0:
                placed[low] -= lack / 2
                placed[high] += lack / 2
    return placed


def draw_ranks(ranking, path):
    """Draw the mean ranks under AURC and AUGRC, joined by a line for each score."""
    figure, axes = plt.subplots(figsize=(6.8, 4.6), layout="constrained")
    labels = [spread(ranking[f"{area} mean_rank"].to_numpy(), 0.45) for area in AREAS]
    for place, name in enumerate(ranking.index):
        ends = [ranking.loc[name, f"{area} mean_rank"] for area in AREAS]
        own = name in OWN_ANSWERS
        axes.plot([0, 1], ends, color=COLORS[3 * own], linestyle="--" if own else "-", marker="o",
                  markersize=4)  # fmt: skip
        for x, heights, side, away in [(0, labels[0], "right", -1), (1, labels[1], "left", 1)]:
            axes.plot([x, x + 0.08 * away], [ends[x], heights[place]], color="0.7", linewidth=0.6)
            axes.text(x + 0.1 * away, heights[place], name, ha=side, va="center", fontsize=8)
    axes.set(xlim=(-0.6, 1.6), xticks=[0, 1], xticklabels=["AURC", "AUGRC"],
             ylabel="mean rank over the data sets (1 is best)")  # fmt: skip
    axes.invert_yaxis()
    save(figure, path)


def main():
    parser = command_line(__doc__, "paper_001")
    parser.add_argument("--splits", type=int, default=5, help="(default: %(default)s)")
    options = parser.parse_args()
    sets, n_splits = (QUICK_SETS, 2) if options.quick else (SETS, options.splits)
    keys = [{"dataset": name, "split": split} for name in sets for split in range(n_splits)]
    home = options.data_home and str(options.data_home)
    values, pairs = (
        resumed(options.out / f"{name}.csv", keys, partial(run, data_home=home),
                jobs=options.jobs, afresh=options.afresh)
        for name, run in [("values", compute_values), ("pairs", compare_pairs)]
    )  # fmt: skip
    ranking, agreement = rank_scores(values), measure_agreement(values)
    ranking.to_csv(options.out / "ranking.csv")
    agreement.to_csv(options.out / "agreement.csv")
    draw_toys(options.out / "toy.png")
    draw_ranks(ranking, options.out / "ranks.png")
    print(f"\n## Ranking over {len(sets)} data sets, {n_splits} splits (p against max_proba)\n")
    print(ranking.round(4).to_string())
    print("\n## Does the order of the scores change between AURC and AUGRC?\n")
    print(agreement.round(3).to_string())
    print("\n## Pairs of scores on the same rows, all data sets and splits\n")
    print(count_conflicts(pairs).to_string())
    print(f"\nTables and pictures: {options.out}")


if __name__ == "__main__":
    main()
