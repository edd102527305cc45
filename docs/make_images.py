"""Write the pictures of README and home page in docs/images: python docs/make_images.py.

Those of UCI Adult need the table (see benchmarks/tables), XGBoost, and for the report a Chromium.
All other pictures of the site come from the gallery, and those of papers from benchmarks/.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier

from skselect import RiskCoverageDisplay, SelectiveClassifier, ThresholdTuner, selective_report
from skselect.cli.demo import make_booster
from skselect.display.common import COLORS, STYLE
from skselect.inference import metrics_by_group

IMAGES = Path(__file__).parent / "images"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def use_style(_gallery=None, _example=None):
    """Let pictures that an example draws by itself look like the displays; sphinx-gallery calls it."""
    plt.rcParams.update(STYLE | {
        "axes.prop_cycle": plt.cycler(color=COLORS), "figure.constrained_layout.use": True,
        "figure.figsize": (6.4, 4.2), "font.size": 12, "legend.frameon": False, "savefig.dpi": 200,
    })  # fmt: skip


def draw_scheme():
    """Draw what becomes of the rows: some train, the others certify, new cases follow."""
    use_style()
    figure, axes = plt.subplots(figsize=(8, 2.4))
    axes.set_axis_off()
    axes.set(xlim=(0, 100), ylim=(0, 30))
    boxes = [
        (1, 15, 26, "60 % of your rows", "train and calibrate\nthe classifier", COLORS[0]),
        (1, 1, 26, "40 % of your rows", "choose and certify\nthe threshold", COLORS[0]),
        (36, 8, 25, "new cases", "classifier, confidence,\nthreshold", "0.35"),
        (
            69,
            15,
            31,
            "at the threshold or above",
            "answered, with a guaranteed\nerror rate",
            COLORS[1],
        ),
        (69, 1, 31, "below the threshold", "deferred to a person", "0.35"),
    ]
    for x, y, width, title, text, color in boxes:
        axes.add_patch(plt.Rectangle((x, y), width, 12, facecolor=color, alpha=0.15))
        axes.add_patch(plt.Rectangle((x, y), 0.8, 12, facecolor=color))
        axes.text(x + 2, y + 9.2, title, weight="bold", va="center", size=11)
        axes.text(x + 2, y + 4, text, va="center", size=10)
    for start, end in (((27, 21), (36, 16)), ((27, 7), (36, 12)), ((61, 16), (69, 21)),
                       ((61, 12), (69, 7))):  # fmt: skip
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "0.4"})
    save(figure.savefig, "how_it_works")


def draw_cases():
    """Draw five new digits with the confidence of the README's model, and what it does."""
    X, X_new, y, y_new = train_test_split(*load_digits(return_X_y=True), random_state=0)
    model = SelectiveClassifier(XGBClassifier(), calibration="auto")
    tuner = ThresholdTuner(model, "risk", target=0.02, random_state=0).fit(X, y)
    rows = [51, 53, 54, 170, 56]
    decided = tuner.decide(X_new[rows])
    use_style()
    figure, all_axes = plt.subplots(
        5, 2, figsize=(6.6, 3.4), width_ratios=[1, 9], gridspec_kw={"hspace": 0.1}
    )
    for (picture, bar), row, case in zip(all_axes, rows, decided.itertuples(), strict=True):
        picture.imshow(X_new[row].reshape(8, 8), cmap="gray_r")
        picture.set_axis_off()
        bar.barh(0, case.confidence, color=COLORS[1] if case.accepted else "0.7", height=0.6)
        bar.axvline(case.threshold, color="0.2", linestyle="--", linewidth=1.2)
        what = f"answers {case.suggestion}" if case.accepted else "defers"
        would = "" if case.accepted else f" (would say {case.suggestion}; true: {y_new[row]})"
        bar.text(1.01, 0, f"{case.confidence:.2f}  {what}{would}", va="center", size=13)
        bar.set(xlim=(0, 1.9), ylim=(-0.5, 0.5))
        bar.set_axis_off()
    all_axes[0, 1].text(
        decided["threshold"].iloc[0], 0.62, "threshold", ha="center", va="bottom", size=12
    )
    save(figure.savefig, "five_cases")


def draw_adult():
    """Train and certify on UCI Adult; draw the curve of the test rows, and their report."""
    sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
    from tables import load_dataset  # noqa: PLC0415 - on the path from here on

    X, y = load_dataset("adult", return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    X_train, X_fresh, y_train, y_fresh = train_test_split(
        X, y, test_size=0.4, random_state=0, stratify=y
    )
    booster, _ = make_booster(0)
    model = SelectiveClassifier(booster, calibration="temperature").fit(X_train, y_train)
    tuner = ThresholdTuner(FrozenEstimator(model), objective="risk", target=0.05)
    tuner.fit(X_fresh, y_fresh)

    use_style()
    curve = RiskCoverageDisplay.from_estimator(tuner, X_test, y_test, name="test rows", target=0.05)
    save(curve.figure_.savefig, "adult_risk_coverage")

    report = selective_report(
        y_test, tuner.raw_scores(X_test), policy=tuner.policy_, subgroups=X_test[["sex", "race"]],
        title="Income above 50,000 dollars: may it answer on its own?",
    )  # fmt: skip
    save(lambda path: photograph(report, path), "adult_report")
    draw_who_waits(model, (X_fresh, y_fresh), X_test, y_test)


def draw_who_waits(model, fresh, X_test, y_test):
    """Draw risk and coverage of women and men, with one threshold for all and with one each."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.6))
    titles = {"selective_risk": "Wrong among answered, %", "coverage": "Answered, %"}
    for place, (name, by) in enumerate({"one for all": None, "one each": "sex"}.items()):
        tuner = ThresholdTuner(FrozenEstimator(model), "risk", target=0.05, group_by=by).fit(*fresh)
        accepted = tuner.decide(X_test)["accepted"].to_numpy()
        table = metrics_by_group(
            y_test, model.predict_proba(X_test), X_test["sex"], list(titles),
            confidence=accepted, labels=model.classes_,
        ).set_index(["metric", "subgroup"])  # fmt: skip
        for ax, (metric, title) in zip(axes, titles.items(), strict=True):
            found = 100 * table.loc[metric, ["value", "low", "high"]].loc[["Female", "Male"]]
            reach = [found["value"] - found["low"], found["high"] - found["value"]]
            at = [k + 0.4 * place for k in range(2)]
            ax.bar(at, found["value"], 0.38, yerr=reach, label=f"thresholds: {name}", ecolor="0.3")
            ax.set(title=title, xticks=[0.2, 1.2], xticklabels=["women", "men"])
    axes[0].axhline(5, color="grey", linestyle="--")
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    save(figure.savefig, "adult_who_waits")


def photograph(report, path):
    """Show the page, folded as it is at first, in a browser, and take a picture of it."""
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    with TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        report.to_html(page)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        size = ["--window-size=900,1195", "--force-device-scale-factor=1.2"]
        taken = f"--screenshot={path}"
        subprocess.run(
            [browser, *options, *size, taken, page.as_uri()], check=True, stderr=subprocess.DEVNULL
        )


def save(write, name):
    """Write a picture with its 64 most different colours: a third of the size."""
    path = IMAGES / f"{name}.png"
    write(path)
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(64, method=Image.Quantize.MAXCOVERAGE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    draw_scheme()
    draw_cases()
    draw_adult()
