"""Write the pictures of UCI Adult in docs/images: python docs/make_images.py.

They need the table (see benchmarks/tables), XGBoost, and for the report a Chromium. All other
pictures of the site come from the gallery, and those of papers from benchmarks/.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
from PIL import Image
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from skselect import RiskCoverageDisplay, SelectiveClassifier, ThresholdTuner, selective_report
from skselect.cli.demo import make_booster
from skselect.display.common import COLORS, STYLE

IMAGES = Path(__file__).parent / "images"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def use_style(_gallery=None, _example=None):
    """Let pictures that an example draws by itself look like the displays; sphinx-gallery calls it."""
    plt.rcParams.update(STYLE | {
        "axes.prop_cycle": plt.cycler(color=COLORS), "figure.constrained_layout.use": True,
        "figure.figsize": (6.4, 4.2), "font.size": 12, "legend.frameon": False, "savefig.dpi": 200,
    })  # fmt: skip


def write_pictures():
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
        title="Income above 50,000 dollars: may it decide alone?",
    )  # fmt: skip
    save(lambda path: photograph(report, path), "adult_report")


def photograph(report, path):
    """Show the page in a browser, and take a picture of its top."""
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    with TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        report.to_html(page)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        size = ["--window-size=900,1560", "--force-device-scale-factor=1.2"]
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
    write_pictures()
