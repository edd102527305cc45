"""Pictures of risk, coverage and workload draw what the curve says."""

import numpy as np
import pytest

import skselect as sk
from skselect.display import WorkloadDisplay
from skselect.objectives import GUARANTEES
from skselect.thresholds import simultaneous_band
from tests.common import run_python
from tests.refusals import check_refused


@pytest.fixture
def curve(rng):
    confidence = rng.random(300)
    return sk.RiskCoverageCurve.from_outcomes(sk.Outcomes(rng.random(300) > confidence, confidence))


def test_line_is_the_curve(curve):
    display = sk.RiskCoverageDisplay(curve, name="model", target=0.1).plot(
        curve_kwargs={"c": "black"}
    )
    x, y = display.line_.get_data()
    np.testing.assert_array_equal(x, curve.coverage[29:])  # from 30 accepted rows on
    np.testing.assert_array_equal(y, curve.selective_risk[29:])
    assert display.line_.get_color() == "black"
    labels = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert labels == ["model", "target 10 %"]
    bad = sk.RiskCoverageCurve.from_outcomes(sk.Outcomes([1, 1], [0.9, 0.8]))
    low, high = sk.RiskCoverageDisplay(bad).plot(display.ax_).ax_.get_ylim()
    assert low == 0
    assert high >= 1  # it is not cut off


def test_threshold_is_marked_where_it_works(curve):
    display = sk.RiskCoverageDisplay(curve, threshold=0.6).plot()
    mark = display.ax_.lines[-1]
    k = int(np.sum(curve.thresholds >= 0.6))
    assert mark.get_xdata()[0] == curve.coverage[k - 1]
    assert mark.get_ydata()[0] == curve.selective_risk[k - 1]
    nothing = sk.RiskCoverageDisplay(curve, threshold=np.inf).plot()
    assert len(nothing.ax_.lines) == 1


def test_millions_of_points_are_thinned_both_ends_kept():
    n = 50_000
    curve = sk.RiskCoverageCurve.from_outcomes(sk.Outcomes(np.zeros(n), np.linspace(0, 1, n)))
    x = sk.RiskCoverageDisplay(curve).plot().line_.get_xdata()
    assert len(x) <= 2000
    assert x[0] <= 60 / n  # the first of them that has 30 rows
    assert x[-1] == 1.0


def test_rows_that_say_little_do_not_set_the_axis(rng):
    confidence = np.linspace(1, 0, 1000)
    loss = np.arange(1000) % 20 == 0  # the very first row is wrong, 5 % are
    curve = sk.RiskCoverageCurve.from_outcomes(sk.Outcomes(loss, confidence))
    assert sk.RiskCoverageDisplay(curve).plot().ax_.get_ylim()[1] < 0.1
    few = sk.RiskCoverageCurve.from_outcomes(sk.Outcomes(loss[:29], confidence[:29]))
    assert len(sk.RiskCoverageDisplay(few).plot().line_.get_xdata()) == 29


def test_without_matplotlib_the_error_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from skselect import *\n"
        "curve = RiskCoverageCurve.from_outcomes(Outcomes([0], [.5]))\n"
        "try: RiskCoverageDisplay(curve).plot()\n"
        "except ImportError as error: print(error)"
    )
    done = run_python(code, folder=tmp_path)
    assert done.stdout.strip().endswith("install it with pip install 'matplotlib'.")


# What is guaranteed -------------------------------------------------------------------------


def few_errors(rng, order=np.asarray):
    confidence = order(rng.random(3000))
    return sk.Outcomes(rng.random(3000) < 0.2 * (1 - confidence), confidence)


def legend_of(display):
    handles, labels = display.ax_.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


@pytest.mark.parametrize(
    ("objective", "target", "method", "said"),
    [
        ("risk", 0.05, "combined", "certified: at most 5 %"),
        ("risk", 0.05, "mean", "not certified: at most 5 %"),
        ("generalized_risk", 0.04, "auto", "certified: at most 4 % over all cases"),
        ("coverage", 0.6, "auto", "certified: coverage at least 60 %"),
    ],
)
def test_a_selection_is_drawn_with_what_is_guaranteed(rng, objective, target, method, said):
    stated = GUARANTEES[objective](target, method=method)
    selection = sk.select_threshold(few_errors(rng), objective=stated)
    drawn = legend_of(sk.RiskCoverageDisplay.from_selection(selection, name="model"))
    x, y = selection.coverage, selection.risk
    limit = {"risk": [x, target], "generalized_risk": [x, target / x], "coverage": [target, y]}
    assert drawn[said].get_xydata().tolist() == [[x, y], limit[objective]]
    dot = f"threshold {selection.threshold:.3g}: accepts {100 * x:.0f} %, {100 * y:.1f} % wrong"
    wanted = ["model", *(["target 5 %"] if objective == "risk" else []), said, dot]
    assert list(drawn) == wanted


def test_the_bound_for_all_thresholds_is_drawn_on_request(rng):
    selection = sk.select_threshold(few_errors(rng), objective="risk", target=0.05)
    drawn = legend_of(sk.RiskCoverageDisplay.from_selection(selection, band=True))
    band = drawn["bound for all thresholds at once"].get_xydata()
    expected = simultaneous_band(selection.curve)
    assert set(band[:, 1]) <= set(expected[expected < 1])
    assert np.all(band[:, 0] >= 0.1)
    assert "too few to certify 5 %" in drawn


def test_where_nothing_is_accepted_the_legend_says_so(rng):
    outcomes = sk.Outcomes(rng.random(300) < 0.2, rng.random(300))
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        selection = sk.select_threshold(
            outcomes, objective="risk", target=0.001, on_infeasible="abstain"
        )
    drawn = legend_of(sk.RiskCoverageDisplay.from_selection(selection))
    assert list(drawn) == ["target 0.1 %", "accepts nothing"]


@pytest.mark.filterwarnings("ignore:min_coverage")
def test_graded_and_metric_selections_are_drawn_without_what_they_lack(rng):
    confidence = rng.random(500)
    graded = sk.Outcomes(0.5 * (rng.random(500) < 0.2), confidence)
    graded_risk = {"objective": sk.Risk(0.3, min_coverage=0.3)}
    for options in (graded_risk, {"objective": sk.Best("selective_accuracy", min_coverage=0.3)}):
        selection = sk.select_threshold(graded, **options)
        labels = sk.RiskCoverageDisplay.from_selection(
            selection, band=True
        ).ax_.get_legend_handles_labels()[1]
        assert "bound for all thresholds at once" not in labels


def test_costs_are_drawn_in_their_own_units(rng):
    p = rng.beta(0.3, 0.3, 3000)
    y = (rng.random(3000) < p).astype(int)
    predictions = sk.Predictions.from_proba(
        y, np.column_stack([1 - p, p]), decision="min_cost", cost_matrix=[[0, 1], [10, 0]]
    )
    selection = sk.select_threshold(predictions, objective="risk", target=0.3)
    ax = sk.RiskCoverageDisplay.from_selection(selection).ax_
    labels = ax.get_legend_handles_labels()[1]
    assert "target 0.3" in labels
    assert any(label.endswith(f"mean {selection.risk:.3g}") for label in labels)
    assert ax.get_ylabel() == "Mean cost\nof accepted cases"
    assert ax.lines[0].get_ydata().max() == pytest.approx(10 * selection.curve.selective_risk.max())


def test_several_thresholds_are_drawn_one_by_one(rng):
    outcomes = sk.Outcomes(rng.random(600) < 0.02, rng.random(600))
    selection = sk.select_threshold(
        outcomes, objective="risk", target=0.1, subgroups=rng.choice(["a", "b"], 600)
    )
    with pytest.raises(ValueError, match=r"draw one of them, such as selection.selections\['a'\]"):
        sk.RiskCoverageDisplay.from_selection(selection)
    sk.RiskCoverageDisplay.from_selection(selection.selections["a"])


# Deferrals at each risk target --------------------------------------------------------------------


@pytest.fixture
def tied_curve(rng):
    confidence = rng.uniform(0.5, 1, 3000).round(2)
    return sk.RiskCoverageCurve.from_outcomes(
        sk.Outcomes(rng.random(3000) < (1 - confidence) / 3, confidence)
    )


def _least_deferred(tied_curve, risk, target):
    """Return the fewest deferrals per 1,000 of all thresholds that meet a target."""
    kept = [q for q, r in zip(tied_curve.coverage, risk, strict=True) if r <= target + 1e-12]
    return 1000 * (1 - max(kept, default=0))


def test_each_point_is_the_cheapest_threshold(tied_curve):
    x, y = WorkloadDisplay(tied_curve).plot().line_.get_xydata().T
    assert x[0] == 0
    for target, deferred in list(zip(x, y, strict=True))[::37]:
        expected = _least_deferred(tied_curve, tied_curve.selective_risk, target)
        assert deferred == pytest.approx(expected, abs=1e-9)
        assert deferred == pytest.approx(1000 * (1 - tied_curve.coverage_at_risk(target)))
    assert y[-1] == 0


def test_the_bound_is_that_of_all_thresholds_at_once(tied_curve):
    display = WorkloadDisplay(tied_curve, confidence_level=0.9).plot()
    (bound,) = [line for line in display.ax_.lines if line.get_label() == "with 90 % confidence"]
    band = simultaneous_band(tied_curve, 0.1)
    for target, deferred in bound.get_xydata()[::37]:
        assert deferred == pytest.approx(_least_deferred(tied_curve, band, target))
        assert deferred >= _least_deferred(tied_curve, tied_curve.selective_risk, target)


def test_a_threshold_is_marked(tied_curve):
    display = WorkloadDisplay(tied_curve, threshold=0.8).plot()
    ((x, y),) = display.ax_.lines[-1].get_xydata()
    outcomes = tied_curve.to_outcomes()
    kept = outcomes.confidence >= 0.8
    weight = outcomes.sample_weight
    assert y == pytest.approx(1000 * (1 - weight[kept].sum() / weight.sum()))
    assert x == pytest.approx(np.average(outcomes.loss[kept], weights=weight[kept]))
    labels = WorkloadDisplay(tied_curve, threshold=2).plot().ax_.get_legend_handles_labels()[1]
    assert labels == ["accepts nothing"]


def test_a_reviewer_who_errs_counts_in_all_cases(tied_curve):
    display = WorkloadDisplay(tied_curve, threshold=0.8, deferred_error=0.1).plot()
    share = tied_curve.coverage
    system = share * tied_curve.selective_risk + 0.1 * (1 - share)
    for target, deferred in list(zip(*display.line_.get_xydata().T, strict=True))[::37]:
        assert deferred == pytest.approx(_least_deferred(tied_curve, system, target), abs=1e-9)
    ((x, y),) = display.ax_.lines[-1].get_xydata()
    at = int(tied_curve.n_blocks_accepted(np.array([0.8]))[0]) - 1
    assert (x, y) == (pytest.approx(system[at]), pytest.approx(1000 * (1 - share[at])))
    assert "reviewer included" in display.ax_.get_xlabel()
    assert display.ax_.get_legend_handles_labels()[1][-1].endswith("% wrong in all")


@pytest.mark.parametrize(
    ("options", "shown", "unit"),
    [({"minutes": 6}, "Hours", 0.1), ({"minutes": 6, "hourly_cost": 40}, "Cost", 4.0)],
)
def test_a_second_axis_shows_what_review_takes(tied_curve, options, shown, unit):
    axes = WorkloadDisplay(tied_curve, **options).plot().ax_
    [right] = [one for one in axes.child_axes if one.get_ylabel()]
    assert right.get_ylabel() == f"{shown} of review per 1,000"
    axes.figure.canvas.draw()
    assert right.get_ylim() == pytest.approx(unit * np.array(axes.get_ylim()))
    WorkloadDisplay(tied_curve, **options).plot(axes)  # models share the second axis too
    assert [one for one in axes.child_axes if one.get_ylabel()] == [right]
    before = axes.get_children()
    with pytest.raises(ValueError, match="those of the first display on the same axes"):
        WorkloadDisplay(tied_curve, minutes=3).plot(axes)
    assert axes.get_children() == before


@pytest.mark.parametrize("error", [None, 0.03])
def test_hours_of_review_say_what_must_be_answered_automatically(error):
    c = np.linspace(1, 0.5, 3000)  # each fortieth of the surer rows is wrong
    curve = sk.RiskCoverageCurve.from_outcomes(sk.Outcomes(np.arange(3000) % 40 == 39, c))
    options = {"minutes": 6, "hours": 40, "cases": 1500, "deferred_error": error}
    axes = WorkloadDisplay(curve, **options).plot().ax_
    told = " ".join(axes.get_legend_handles_labels()[1][-1].split())
    n_wrong = np.sum(np.arange(2200) % 40 == 39)  # 400 of 1,500 cases, so that 2,200 of 3,000 stay
    expected = (
        "40 hours are enough for 400 of 1,500 cases, so 73.4 % must be answered automatically. The "
        f"risk there is {100 * n_wrong / 2200:.3g} % (estimate)"
    )
    if error is not None:
        both = 100 * (n_wrong + 0.03 * 800) / 3000
        expected += f"; with the reviewer {both:.3g} % of all cases are wrong"
    assert told == f"{expected}."
    assert axes.lines[-1].get_ydata()[0] == pytest.approx(1000 * 400 / 1500)
    enough = WorkloadDisplay(curve, minutes=6, hours=40, cases=399).plot().ax_
    [told] = enough.get_legend_handles_labels()[1]
    assert " ".join(told.split()) == (
        "40 hours are enough for 399 of 399 cases, so none must be answered automatically."
    )


@pytest.mark.parametrize("loss", [[0.0, 0.0], [1.0, 1.0]])
def test_no_errors_and_nothing_else(loss):
    tied_curve = sk.RiskCoverageCurve.from_outcomes(sk.Outcomes(loss, [0.6, 0.9]))
    x, y = WorkloadDisplay(tied_curve, confidence_level=0.95).plot().line_.get_xydata().T
    np.testing.assert_array_equal(y, np.where(x >= loss[0], 0, 1000))


@pytest.mark.parametrize(("argument", "options"), [
    ("confidence_level", {"confidence_level": 95}),
    ("confidence_level", {"confidence_level": 0.4}), ("threshold", {"threshold": "high"}),
    ("unweighted", {"sample_weight": np.arange(400), "confidence_level": 0.95}),
    ("hourly_cost", {"hourly_cost": 40}), ("minutes", {"minutes": 0}),
    ("hourly_cost", {"minutes": 1, "hourly_cost": -1}),
    ("deferred_error", {"deferred_error": 2}),
    ("deferred_error", {"deferred_error": 0.1, "confidence_level": 0.9}),
    ("cases", {"minutes": 6, "hours": 40}), ("minutes", {"hours": 40, "cases": 3000}),
    ("hours", {"minutes": 6, "cases": 3000}), ("hours", {"minutes": 6, "hours": 0, "cases": 3}),
])  # fmt: skip
def test_refusals(argument, options, drawn):
    check_refused(argument, lambda: WorkloadDisplay.from_predictions(*drawn, **options))
