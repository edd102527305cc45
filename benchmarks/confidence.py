"""What makes a confidence better? Second opinions, bagging, a pool, and what does not.

    python benchmarks/confidence.py FOLDER [--tables ...] [--split 0] [--out runs.csv]

FOLDER holds Parquet tables whose column `target` is the label. Half of each table trains, 2500 rows
at most, and everything that is learnt comes from five folds of them; the others are judged, 10,000
at most. AUGRC is compared with that of the same base classifier after temperature scaling;
Tables without an error are left out of the mean, and letter for its 26 classes. Certified
coverage is the mean over both directions of choosing a threshold on one half of the
judged rows and applying it to the other (nothing certified counts 0). Needs
`pip install ".[benchmarks]"`. One process takes about half an hour, the second time a minute:
predictions are kept in benchmarks/.cache.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
import warnings
import zlib
from functools import partial

import numpy as np
import pandas as pd
from calibration import TABLES, load, memory
from scipy import optimize, special
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from xgboost import XGBClassifier

from skselect import (
    LearnedConfidence,
    Outcomes,
    PrecomputedClassifier,
    RiskCoverageCurve,
    SelectiveClassifier,
    select_threshold,
)
from skselect.extras.learned import default_auxiliary

# Who is asked about the answers of each base classifier: as by default, other kinds than its own.
AUXILIARY = {
    "xgboost": ["forest", "linear"], "forest": ["boosting", "linear"],
    "linear": ["boosting", "forest"],
}  # fmt: skip
MOST_TRAINING_ROWS, MOST_JUDGED, LEAST_ROWS_OF_A_CLASS = 2500, 10_000, 20
SEEDS = 5
TARGETS = [0.01, 0.02, 0.05]


def make_kinds(X):
    """Return an unfitted model of each kind: the auxiliary models of the library, and XGBoost."""
    plain = default_auxiliary(None, X)
    boosting = default_auxiliary(RandomForestClassifier(), X)["boosting"]
    encoder = plain["forest"][:-1]
    return plain | {
        "boosting": boosting,
        "xgboost": make_pipeline(*[step for _, step in encoder.steps], make_xgboost(0)),
    }


def make_xgboost(seed):
    return XGBClassifier(
        n_estimators=100, max_depth=5, learning_rate=0.15, subsample=0.8, colsample_bytree=0.8,
        tree_method="hist", n_jobs=1, random_state=seed,
    )  # fmt: skip


@memory.cache
def predict_all(folder, name, split):
    """Return probabilities of every kind: out of fold, of test rows, and of test rows by fold."""
    X, codes, train, test, folds = split_table(folder, name, split)
    n_classes = codes.max() + 1
    inside, fresh, by_fold = {}, {}, []
    for name, model in make_kinds(X).items():
        table = np.zeros((len(train), n_classes))
        for known, left in folds:
            rows = train[known]
            present = np.unique(codes[rows])
            model.fit(X.iloc[rows], np.searchsorted(present, codes[rows]))
            table[np.ix_(left, present)] = model.predict_proba(X.iloc[train[left]])
            if name == "xgboost":
                of_test = np.zeros((len(test), n_classes))
                of_test[:, present] = model.predict_proba(X.iloc[test])
                by_fold.append(of_test)
        model.fit(X.iloc[train], codes[train])
        inside[name], fresh[name] = table, model.predict_proba(X.iloc[test]).astype(np.float64)
    encoder = model[:-1]  # of XGBoost, which comes last
    seeds = [fresh["xgboost"]] + [
        make_xgboost(seed)
        .fit(encoder.transform(X.iloc[train]), codes[train])
        .predict_proba(encoder.transform(X.iloc[test]))
        for seed in range(1, SEEDS)
    ]
    return inside, fresh, np.stack(by_fold), np.mean(seeds, axis=0)


def learn(inside, codes, folds, base):
    """Return the library's classifier with a learned confidence, from stored predictions."""
    kinds = [base, *AUXILIARY[base]]
    classes = np.arange(codes.max() + 1)
    stored = {
        kind: PrecomputedClassifier(classes, columns=name_columns(kind, classes)) for kind in kinds
    }
    model = SelectiveClassifier(
        stored[base], calibration="temperature", cv=folds,
        confidence=LearnedConfidence(
            auxiliary={kind: stored[kind] for kind in AUXILIARY[base]}, guard=False
        ),
    )  # fmt: skip
    return model.fit(as_table(inside), codes)


def name_columns(kind, classes):
    return [f"{kind} {k}" for k in classes]


def as_table(proba):
    return pd.DataFrame({
        f"{kind} {k}": column for kind, table in proba.items() for k, column in enumerate(table.T)
    })  # fmt: skip


def pool(inside, fresh, codes):
    """Return the log-linear pool of three kinds, with weights fitted out of fold."""
    kinds = ["xgboost", "forest", "linear"]
    logs, new = (
        np.stack([np.log(np.clip(tables[kind], 1e-4, 1)) for kind in kinds]) for tables in
        (inside, fresh)
    )  # fmt: skip
    row = np.arange(len(codes))

    def loss(weight):
        logits = np.tensordot(weight, logs, 1)
        q = special.softmax(logits, axis=1)
        gaps = np.sum(q * logs, axis=2) - logs[:, row, codes]
        return -np.mean(special.log_softmax(logits, axis=1)[row, codes]), gaps.mean(axis=1)

    weight = optimize.minimize(loss, np.full(3, 1 / 3), jac=True, bounds=[(0, None)] * 3).x
    return special.softmax(np.tensordot(weight, new, 1), axis=1)


def judge(codes, answers, confidence):
    outcomes = Outcomes((answers != codes).astype(float), confidence)
    return RiskCoverageCurve.from_outcomes(outcomes).augrc(), outcomes.loss.mean()


def certify(codes, answers, confidence):
    """Return the coverage of a certified threshold on rows that did not choose it, by target."""
    outcomes = Outcomes((answers != codes).astype(float), confidence)
    halves = np.array_split(np.random.default_rng(0).permutation(len(codes)), 2)
    found = {}
    for target in TARGETS:
        shares = []
        for one, other in (halves, halves[::-1]):
            threshold = select_threshold(
                outcomes.take(one), objective="risk", target=target, on_infeasible="abstain"
            ).threshold
            shares.append(np.mean(confidence[other] >= threshold))
        found[f"certified at {target:g}"] = np.mean(shares)
    return found


def split_table(folder, name, split):
    """Return features, codes, the rows to train on and to judge, and the folds of the former."""
    X, codes = load(folder, name)
    rng = np.random.default_rng([split, zlib.crc32(name.encode())])
    order = rng.permutation(len(codes))
    n_train = min(len(codes) // 2, MOST_TRAINING_ROWS)
    counts = np.bincount(codes[order[:n_train]], minlength=codes.max() + 1)
    rows = order[counts[codes[order]] >= LEAST_ROWS_OF_A_CLASS][: MOST_JUDGED + n_train]
    codes = np.unique(codes[rows], return_inverse=True)[1]
    n_train = min(len(codes) // 2, MOST_TRAINING_ROWS)
    train, test = np.split(np.arange(len(codes)), [n_train])
    folds = list(StratifiedKFold(5, shuffle=True, random_state=split).split(train, codes[train]))
    return X.iloc[rows].reset_index(drop=True), codes, train, test, folds


def do_table(folder, name, split):
    _, codes, train, test, folds = split_table(folder, name, split)
    inside, fresh, by_fold, bag = predict_all(folder, name, split)
    truth, new = codes[test], as_table(fresh)
    about = {"table": name, "rows": len(train), "scored": len(test), "classes": codes.max() + 1}
    runs = []
    for base in AUXILIARY:
        model = learn(inside, codes[train], folds, base)
        report = model.confidence_.report_
        proba = model.predict_proba(new)
        answers = proba.argmax(axis=1)
        recipes = {"plain": (answers, proba.max(axis=1))}
        learned = (answers, model.predict_confidence(new))
        recipes["second opinions, no guard"] = learned
        kept = report.n_errors >= 20 and report.z > 1
        recipes["second opinions"] = learned if kept else recipes["plain"]
        if base == "xgboost":
            scale = partial(model.calibration_.predict_proba)
            folds_say = by_fold[:, np.arange(len(answers)), answers]
            recipes["folds: mean less deviation"] = (
                answers, folds_say.mean(axis=0) - folds_say.std(axis=0)
            )  # fmt: skip
            for recipe, table in {
                "five seeds": scale(bag), "pool of three kinds": pool(inside, fresh, codes[train]),
                "soft voting of three kinds":
                    np.mean([fresh[kind] for kind in ("xgboost", "forest", "linear")], axis=0),
            }.items():  # fmt: skip
                recipes[recipe] = table.argmax(axis=1), table.max(axis=1)
        for recipe, (said, confidence) in recipes.items():
            augrc, error = judge(truth, said, confidence)
            run = about | {"base": base, "recipe": recipe, "augrc": augrc, "error": error,
                           "out-of-fold errors": report.n_errors, "z": report.z}  # fmt: skip
            if recipe in ("plain", "second opinions"):
                run |= certify(truth, said, confidence)
            runs.append(run)
    return runs


def summarize(runs):
    """Return the mean change of each recipe over tables, in percent of AUGRC and in points."""
    keys = ["table", "base"]
    plain = runs[runs.recipe == "plain"].set_index(keys)
    lines = []
    for (base, recipe), group in runs[runs.recipe != "plain"].groupby(["base", "recipe"]):
        found, before = group.set_index(keys), plain.loc[group.set_index(keys).index]
        change = 100 * (found.augrc / before.augrc - 1)
        change = change[before.augrc > 0]
        line = {
            "base": base, "recipe": recipe, "tables": len(change), "AUGRC %": change.mean(),
            "+-": change.std(ddof=1) / np.sqrt(len(change)), "median": change.median(),
            "better": int((change < 0).sum()), "worse": int((change > 0).sum()),
            "worst": change.max(), "of": change.idxmax()[0],
            "errors, points": 100 * (found.error - before.error).mean(),
        }  # fmt: skip
        for target in TARGETS:
            column = f"certified at {target:g}"
            if found[column].notna().all():
                line[column] = 100 * (found[column] - before[column]).mean()
        lines.append(line)
    return pd.DataFrame(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder")
    parser.add_argument("--tables", nargs="+", default=[t for t in TABLES if t != "letter"])
    parser.add_argument("--split", type=int, default=0)
    parser.add_argument("--out", default=None, help="CSV file for the single runs")
    options = parser.parse_args()
    runs = []
    for name in options.tables:
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of classes that a fold lacks, and missed targets
            runs += do_table(options.folder, name, options.split)
        seen = pd.DataFrame(runs)
        here = seen[seen.table == name]
        changes = here.pivot_table(index="recipe", columns="base", values="augrc")
        changes = (100 * (changes / changes.loc["plain"] - 1)).round(1)
        kept = changes.loc["second opinions"].to_dict()
        print(f"{name}: {kept}, {time.perf_counter() - started:.0f} s", flush=True)
        if options.out:
            seen.to_csv(options.out, index=False)
    with pd.option_context("display.width", 250, "display.max_columns", 30):
        print(summarize(pd.DataFrame(runs)).round(2).to_string(index=False))


if __name__ == "__main__":
    main()
