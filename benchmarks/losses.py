"""Training losses of papers against cross-entropy, on real tables and with the CAU paper's nets.

    python benchmarks/losses.py [--quick]

Needs xgboost, and torch for everything but XGBoost's rows, beside `pip install ".[benchmarks]"`.
1. XGBoost and an MLP on tables: error, AUGRC and CAU with each loss, beside cross-entropy.
2. The nets of the CAU paper: LeNet-5 against the dropout rate on MNIST and Fashion-MNIST, and its
   MLP with and without CAU in the loss on MNIST, on so few rows that it is right as often as the
   paper's.
Fashion-MNIST is Debian's package dataset-fashion-mnist, or its four files (.gz) in the folder
fashion-mnist of --data-home; without them it is left out. docs/losses.md says what came out.
"""

import importlib.util
import warnings
from functools import partial

import numpy as np
import pandas as pd
from papers import command_line, resumed
from scipy import stats
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder
from tabular import load_table, make_encoder
from xgboost import XGBClassifier

from skselect.losses import CAUObjective, SoftCWSAObjective
from skselect.metrics import augrc_score, cau_score, review_at_reliability

HAS_TORCH = importlib.util.find_spec("torch") is not None
TABLES = [
    "adult", "bank_marketing", "car", "covertype_small", "credit_default", "kr_vs_kp", "magic",
    "nursery", "optdigits", "pendigits", "phishing", "phoneme", "segment", "spambase",
]  # fmt: skip
LOSSES = {
    "cross-entropy": CAUObjective(alpha=0),
    "CAU .1": CAUObjective(alpha=0.1),
    "CAU .3": CAUObjective(alpha=0.3),
    "CAU 1": CAUObjective(alpha=1),
    "CAU .3, shares": CAUObjective(alpha=0.3, variant="shares"),
    "soft CWSA .5": SoftCWSAObjective(threshold=0.8, temperature=0.05, alpha=0.5),
    # A third of the learning rate, or of the epochs: whether a gain is one of training less.
    "cross-entropy, less": CAUObjective(alpha=0),
}
SEEDS = 1
N_TRAIN, N_TEMPERATURE, N_TEST, FEWEST = 2500, 500, 10_000, 40
TEMPERATURES = np.geomspace(0.25, 8, 61)
#: Paper, table 2: without and with CAU. AUGRC follows from accuracy and AUROC.
PRINTED = {
    "accuracy": (0.8008, 0.7493), "failure_auroc": (0.8732, 0.8977), "cau": (0.9908, 0.7988),
    "failure_average_precision": (0.5881, 0.7144), "average_precision_right": (0.9657, 0.9646),
    "augrc": (0.0401, 0.0506), "entropy, right": (0.4341, 0.5386),
    "entropy, wrong": (1.2564, 1.6410),
}  # fmt: skip
#: The paper prints none.
RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
#: Table 3, at 99.95 % reliability.
PRINTED_REVIEW = {
    "review_rate": (0.8691, 0.8106), "pass_rate": (0.1628, 0.2520),
    "invalid_review_cost": (6703.8, 5604.2),
}  # fmt: skip
#: Tables 1 and 4: Pearson's correlation with the dropout rate.
PRINTED_R = {
    "cau": (-0.889, -0.845, -0.859), "failure_auroc": (0.022, -0.649, -0.560),
    "failure_average_precision": (-0.461, -0.392, -0.216),
    "average_precision_right": (0.259, -0.602, -0.474),
}  # fmt: skip


# Tables ----------------------------------------------------------------------------------


def split(name, seed, data_home):
    """Return features and classes of rows to train on, for the temperature, and to test on."""
    table = load_table(name, data_home, complete=True, calibrated=True)
    counts = np.bincount(table.codes)
    kept = np.flatnonzero(counts[table.codes] >= FEWEST)
    codes = LabelEncoder().fit_transform(table.codes[kept])
    n_train = min(N_TRAIN, len(kept) // 2)
    train, rest = train_test_split(
        np.arange(len(kept)), train_size=n_train, stratify=codes, random_state=seed
    )
    n_temperature = min(N_TEMPERATURE, len(kept) // 8)
    parts = [train, rest[:n_temperature], rest[n_temperature:][:N_TEST]]
    X = table.X.iloc[kept]
    encoder = make_encoder(scale=True).fit(X.iloc[train])
    return [(encoder.transform(X.iloc[part]).astype(np.float32), codes[part]) for part in parts]


def boosted(X, y, objective, seed, less):
    """Return what predicts: 100 trees of depth 4."""
    model = XGBClassifier(
        n_estimators=100, max_depth=4, learning_rate=0.1 if less else 0.3, base_score=0.5, n_jobs=1,
        objective=objective, random_state=seed,
    )  # fmt: skip
    return model.fit(X, y).predict_proba


def mlp(X, y, objective, seed, less):
    """Return what predicts: a net of 128 and 64 units."""
    import torch
    from paper_004_nets import Split, probabilities, trained
    from torch import nn

    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Linear(X.shape[1], 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(),
        nn.Linear(64, int(y.max()) + 1),
    )  # fmt: skip
    rows = np.arange(len(y))
    data = Split(torch.tensor(X), torch.tensor(y), rows, rows, rows)
    trained(net, data, torch_loss(objective), epochs=10 if less else 30)
    return lambda X: probabilities(net, torch.tensor(X))


def torch_loss(objective):
    """Return the torch loss of the same parameters."""
    from skselect.losses import cau_loss, soft_cwsa_loss

    function = cau_loss if isinstance(objective, CAUObjective) else soft_cwsa_loss
    return partial(function, **vars(objective))


def tempered(proba, temperature):
    powers = np.maximum(proba, 1e-30).astype(float) ** (1 / temperature)
    return powers / powers.sum(axis=1, keepdims=True)


def table_run(table, model, seed, *, data_home):
    """Train with each loss, and measure on the test rows after a temperature."""
    warnings.simplefilter("ignore")
    (X, y), (X_temperature, y_temperature), (X_test, y_test) = split(table, seed, data_home)
    rows = []
    for name, objective in LOSSES.items():
        fit = {"XGBoost": boosted, "MLP": mlp}[model]
        predict = fit(X, y, objective, seed, less="less" in name)
        few, raw = predict(X_temperature), predict(X_test).astype(float)
        best = min(TEMPERATURES, key=lambda t: log_loss(y_temperature, tempered(few, t)))
        proba = tempered(raw, best)
        found = {
            "error": np.mean(proba.argmax(axis=1) != y_test), "AUGRC": augrc_score(y_test, proba),
            "CAU": cau_score(y_test, tempered(raw, 1)), "CAU, tempered": cau_score(y_test, proba),
        }  # fmt: skip
        rows += [{"loss": name, "measure": k, "value": float(v)} for k, v in found.items()]
    return rows


def beside_cross_entropy(runs):
    """Return means over tables of each loss and of its differences to cross-entropy.

    AUGRC % is a geometric mean: on some tables hardly anything is left to be wrong.
    """
    mean = runs.pivot_table(index=["model", "loss", "table"], columns="measure", values="value")
    rows = []
    for model, loss in mean.index.droplevel("table").unique():
        part, base = mean.loc[(model, loss)], mean.loc[(model, "cross-entropy")]
        ratio = np.log(part["AUGRC"] / base["AUGRC"])
        points = 100 * (part["error"] - base["error"])
        rows.append({
            "model": model, "loss": loss, "CAU": part["CAU"].mean(),
            "CAU, tempered": part["CAU, tempered"].mean(),
            "error, points": points.mean(), "se": points.sem(),
            "AUGRC %": 100 * np.expm1(ratio.mean()), "se of it": 100 * ratio.sem(),
            "median": 100 * np.expm1(ratio.median()), "best": 100 * np.expm1(ratio.min()),
            "worst": 100 * np.expm1(ratio.max()), "worse in": f"{sum(ratio > 0)} of {len(ratio)}",
        })  # fmt: skip
    order = {name: position for position, name in enumerate(LOSSES)}
    return pd.DataFrame(rows).sort_values(["model", "loss"], key=lambda c: c.map(order).fillna(0))


# The paper's nets ------------------------------------------------------------------------


def lenet(dropout):
    """Return LeNet-5 with ReLU, dropout after both hidden layers of its head."""
    from torch import nn

    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Dropout(dropout),
        nn.Linear(120, 84), nn.ReLU(), nn.Dropout(dropout), nn.Linear(84, 10),
    )  # fmt: skip


def net_run(images, net, dropout, alpha, seed, n_train, epochs, *, data_home):
    """Train one net, and measure it."""
    warnings.simplefilter("ignore")
    import torch
    from paper_004_measures import make_rows, measured
    from paper_004_nets import probabilities, split as drawn, trained
    from torch import nn

    data = drawn(images, seed, n_train, 10_000, data_home)
    torch.manual_seed(seed)
    layers = [nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)]
    model = lenet(dropout) if net == "LeNet-5" else nn.Sequential(*layers)
    trained(model, data, torch_loss(CAUObjective(alpha=alpha)), epochs=epochs)
    proba = probabilities(model, data.X[data.test])
    y = data.y[data.test].numpy()
    plan = review_at_reliability(y, proba, reliability=0.9995)
    review = {name: getattr(plan, name) for name in PRINTED_REVIEW}
    return make_rows("plain", measured(y, proba) | review)


def list_nets(quick, *, fashion):
    lenets = [
        {"images": images, "net": "LeNet-5", "dropout": rate, "alpha": 0.0, "seed": seed,
         "n_train": 1000 if quick else 10_000, "epochs": 1 if quick else epochs}
        for images, epochs in [("mnist", 6), ("fashion_mnist", 8)][: 1 + fashion]
        for seed in range(1 if quick else 3) for rate in RATES
    ]  # fmt: skip
    mlps = [
        {"images": "mnist", "net": "MLP", "dropout": 0.0, "alpha": alpha, "seed": seed,
         "n_train": 200, "epochs": 50}
        for seed in range(1 if quick else 20) for alpha in (0.0, 0.3, 1.0, 3.0)
    ]  # fmt: skip
    return lenets + mlps


def against_dropout(runs):
    """Return Pearson's correlation of each measure with the dropout rate, over nets."""
    table = pd.DataFrame(PRINTED_R, index=["MNIST", "Fashion-MNIST", "Kuzushiji-MNIST"]).T
    lenets = runs[runs["net"] == "LeNet-5"]
    for images, largest in [("mnist", 0.5), ("mnist", 0.8), ("fashion_mnist", 0.8)]:
        part = lenets[(lenets["images"] == images) & (lenets["dropout"] <= largest)]
        if part.empty:
            continue
        wide = part.pivot_table(index=["dropout", "seed"], columns="measure", values="value")
        rate = wide.index.get_level_values("dropout")
        found = {k: stats.pearsonr(wide[k], rate).statistic for k in (*PRINTED_R, "augrc")}
        table = table.join(pd.Series(found, name=f"ours: {images}, to {largest}"), how="outer")
    return table


def with_and_without(runs):
    """Return means over seeds by alpha, with the standard error of the change from alpha = 0."""
    part = runs[runs["net"] == "MLP"]
    wide = part.pivot_table(index="measure", columns=["alpha", "seed"], values="value")
    mean = wide.T.groupby(level="alpha").mean().T
    error = pd.DataFrame({
        f"se of {alpha:g} - 0": (wide[alpha] - wide[0.0]).sem(axis=1) for alpha in mean if alpha
    })  # fmt: skip
    printed = pd.DataFrame(PRINTED | PRINTED_REVIEW, index=["printed, without", "printed, with"]).T
    return mean.join(error).join(printed)


# Everything ------------------------------------------------------------------------------


def main():
    options = command_line(__doc__, "losses").parse_args()
    tables = ["phoneme"] if options.quick else TABLES
    models = ["XGBoost", "MLP"] if HAS_TORCH else ["XGBoost"]
    keys = [
        {"table": table, "model": model, "seed": seed}
        for seed in range(1 if options.quick else SEEDS) for table in tables for model in models
    ]  # fmt: skip
    shared = {"jobs": options.jobs, "afresh": options.afresh}
    run = partial(table_run, data_home=options.data_home)
    runs = resumed(options.out / "tables.csv", keys, run, **shared)
    results = {"beside_cross_entropy": beside_cross_entropy(runs)}
    if HAS_TORCH:
        from paper_004_nets import find_fashion

        fashion = find_fashion(options.data_home) is not None
        if not fashion:
            print("Fashion-MNIST is left out: install Debian's dataset-fashion-mnist, or put its "
                  "four files (.gz) into the folder fashion-mnist of --data-home.")  # fmt: skip
        run = partial(net_run, data_home=options.data_home)
        keys = list_nets(options.quick, fashion=fashion)
        nets = resumed(options.out / "nets.csv", keys, run, **shared)
        results["against_dropout"] = against_dropout(nets).reset_index()
        results["with_and_without"] = with_and_without(nets).reset_index()
    else:
        print("torch is not installed: no MLP, no nets of the paper.")
    for name, table in results.items():
        table.to_csv(options.out / f"{name}_summary.csv", index=False)
        print(f"\n## {name}\n\n{table.round(4).to_string(index=False)}")


if __name__ == "__main__":
    main()
