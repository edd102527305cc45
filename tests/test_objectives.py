"""Objectives: of several subgroups, in every place, and of machine and reviewer together."""

import contextlib
import pickle
import re
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import beta
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import skselect as sk
from skselect._lib.arrays import draw_rows
from skselect._lib.notebook import unwrap
from skselect.curve.curve import RiskCoverageCurve
from skselect.objectives import Loss, name_options, refusal
from skselect.thresholds import LevelSequence, rows_needed
from skselect.thresholds._advice import RowsNeeded
from tests.common import check_schema, mostly_slow, read_certificate
from tests.refusals import check_refused, refusals

SURE = sk.Outcomes(np.zeros(400), np.linspace(0.6, 0.9, 400))
GROUPS = np.arange(400) % 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (sk.Risk(0.1, method="empirical"), sk.Risk(0.1)),
        (sk.Risk(0.1), sk.Risk(0.1, method="empirical")),
        (sk.Cost(0.1, method="chow"), sk.Cost(0.1)),
    ],
)
def test_what_holds_for_all_subgroups_cannot_depend_on_which_comes_first(first, second):
    """Else rows that trained the classifier, or set the threshold, were taken for fresh ones."""
    with pytest.raises(ValueError, match=re.escape(f"{second!r} stands beside {first!r}")):
        sk.select_threshold(SURE, objective={0: first, 1: second}, subgroups=GROUPS)
    X, y = np.arange(400.0)[:, None], GROUPS
    fitted = FrozenEstimator(sk.SelectiveClassifier(DummyClassifier(strategy="prior")).fit(X, y))
    tuner = sk.ThresholdTuner(fitted, {0: first, 1: second}, group_by=lambda X: X[:, 0] % 2)
    check_refused("all look at the rows, or none does", tuner.fit, X, y)


@pytest.mark.parametrize(
    "stated", [sk.Risk(6.0, delta=0.03, max_analyses=2), sk.Cost(3), sk.Best()], ids=str
)
def test_what_an_objective_knows_of_its_rows_is_no_parameter(stated):
    costs = Loss("cost", 30.0)
    checked = stated.check(costs)
    placed = checked.on(costs, "of site 'a'", n_sharing=3, share=0.4)
    assert placed == checked
    assert repr(placed) == repr(checked)
    assert placed.get_params() == checked.get_params()
    assert placed.level == checked.delta / 3 / checked.max_analyses
    assert checked.cases == stated.cases == ""
    fresh = clone(placed)
    assert fresh == checked
    assert (fresh.cases, fresh.n_sharing, fresh.share, fresh.about) == ("", 1, 1.0, Loss())
    kept = pickle.loads(pickle.dumps(placed)).set_params(method="empirical")
    assert (kept.cases, kept.about, kept.method) == ("of site 'a'", costs, "empirical")
    check_refused("share", lambda: placed.set_params(share=1.0))


@pytest.mark.parametrize("loss", [np.repeat([0.0, 1.0], [60, 39]), np.linspace(0, 0.5, 99)])
def test_conformal_risk_control_says_what_it_could_have_met(loss):
    confidence = np.linspace(0.9, 0.6, 99)  # errors at the end
    rows = sk.Outcomes(loss, confidence)

    def found(target):
        objective = sk.GeneralizedRisk(target, method="mean")
        return sk.select_threshold(rows, objective=objective, assume="independent")

    with pytest.raises(sk.InfeasibleTargetError) as caught:
        found(0.0099)
    assert caught.value.least_target == pytest.approx((loss[0] + 1) / 100)
    assert caught.value.rows_needed == 101  # 1 / 102 < 0.0099 < 1 / 101
    selection = found(caught.value.least_target)
    assert selection.certificate.n_accepted >= 1
    assert selection.certificate.rows_needed == 99


# Every objective in every place: it works there, or is refused by name ---------------------------


STATED = {
    "risk": sk.Risk(0.3),
    "generalized_risk": sk.GeneralizedRisk(0.3),
    "coverage": sk.Coverage(0.5),
    "cost": sk.Cost(0.4),
    "system_risk": sk.SystemRisk(0.3),
    "system_risk, bound": sk.SystemRisk(0.4, overall_error=0.1),
    "system_risk, rate": sk.SystemRisk(0.3, deferred_error=0.1),
    "cwsa_plus": sk.Best(),
}
BY_COUNTS = {"risk", "generalized_risk", "coverage", "system_risk, bound"}
WITH_GUARANTEE = BY_COUNTS | {"system_risk, rate"}
ABOUT_A_PART = {word for word in STATED if not word.startswith("system_risk")}


@cache
def _rows():
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1, 1500)
    answer, wrong = rng.integers(0, 2, 1500), rng.random(1500) > sure
    proba = np.where(answer[:, None] == [0, 1], sure[:, None], 1 - sure[:, None])
    return np.where(wrong, 1 - answer, answer), proba


def _reviewed(objective):
    """Return what a person who is wrong in every tenth case answers, where that is read."""
    wrong = np.random.default_rng(1).random(1500) < 0.1
    reads = isinstance(objective, sk.SystemRisk) and objective.reads_reviewer
    return np.where(wrong, 1 - _rows()[0], _rows()[0]) if reads else None


def _table(**options):
    return sk.Predictions.from_proba(*_rows(), labels=[0, 1], **options)


def _policy(objective):
    rows = _table(reviewer=_reviewed(objective))
    return sk.select_threshold(rows, objective=objective).policy


def _fit(objective):
    y, proba = _rows()
    frozen = FrozenEstimator(sk.PrecomputedClassifier([0, 1]).fit(proba, y))
    tuner = sk.ThresholdTuner(frozen, objective, assume="fresh")
    return tuner.fit(proba, y, reviewer_pred=_reviewed(objective))


def _decides(objective):
    policy = _policy(objective)
    check_schema(policy.to_json())
    gate: dict = {"__name__": "gate"}
    exec(str(policy.to_python()), gate)
    accepted = sk.AbstentionPolicy.from_json(policy.to_json()).decide(_rows()[1])["accepted"]
    assert list(gate["decide"](_rows()[1])["accepted"]) == accepted.tolist()


def _choose(rows, **options):
    """Return a function that chooses a threshold on rows, which it makes for an objective."""
    return lambda one: sk.select_threshold(rows(one), objective=one, **options)


def _ask(call, rows):
    """Return a function that asks for an objective of a policy."""
    return lambda one: call(_policy(sk.Risk(0.3)), *rows(), objective=one)


def _both():
    return (_table(reviewer=_reviewed(sk.SystemRisk(0.3))),)


def _state():
    return sk.SelectiveState(labels=[0, 1]).update(*_rows())


ONES, SITES = [[0, 1], [1, 0]], np.resize(["a", "b"], 1500)
#: What is called, and the objectives that it takes.
PLACES = {
    "tuner": (_fit, STATED),
    "table": (_policy, STATED),
    "state": (_choose(lambda _: _state().finalize()), ABOUT_A_PART | {"system_risk, bound"}),
    "subgroups": (_choose(lambda _: _table(), subgroups=SITES), ABOUT_A_PART),
    "costs": (_choose(lambda one: _table(
        decision="min_cost", cost_matrix=ONES, reviewer=_reviewed(one))), STATED),
    "file, schema and gate": (_decides, STATED),
    "report": (lambda one: sk.selective_report(None, _table(), policy=_policy(one)), STATED),
    "certify": (_ask(sk.certify, _rows), WITH_GUARANTEE),
    "check_policy": (_ask(sk.check_policy, _rows), WITH_GUARANTEE),
    "certify, reviewed": (_ask(sk.certify, _both),
                          {"risk", "generalized_risk", "coverage", "system_risk"}),
    "check_policy, reviewed": (_ask(sk.check_policy, _both), WITH_GUARANTEE | {"system_risk"}),
    "check_policy, state": (_ask(sk.check_policy, lambda: (_state(),)), BY_COUNTS),
    "monitor": (_ask(sk.SelectiveRiskMonitor, tuple), {"risk"}),
    "rows_needed": (rows_needed, {"risk"}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:cwsa_plus|min_coverage")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", STATED)
def test_every_objective_works_in_every_place_or_is_refused_by_name(place, word):
    call, taken = PLACES[place]
    if word in taken:
        call(STATED[word])
    else:
        check_refused("objective", call, STATED[word])


def _outcomes(n=4000, seed=0, reviewer=0.05):
    """Return rows whose machine is wrong in a share 1 - c at confidence c."""
    rng = np.random.default_rng(seed)
    c = rng.uniform(0.5, 1, n)
    return sk.Outcomes(rng.random(n) < 1 - c, c, reviewer_loss=rng.random(n) < reviewer)


def _errors(rows, level):
    machine = rows.confidence >= level
    return int(np.where(machine, rows.loss, rows.reviewer_loss).sum())


def _upper(k, n, delta):
    return beta.ppf(1 - delta, k + 1, n - k)


# Machine and reviewer together: what is certified -----------------------------------------------


@pytest.mark.parametrize("decimals", [2, 15])  # with ties, and without
def test_the_levels_that_a_fifth_names_are_tested_one_by_one(decimals):
    """Against the definition, row by row and level by level."""
    rows = _outcomes()
    rows = sk.Outcomes(rows.loss, rows.confidence.round(decimals), reviewer_loss=rows.reviewer_loss)
    apart = draw_rows(len(rows), 5, seed=0)
    naming, testing = rows.take(apart), rows.take(~apart)
    named = np.quantile(naming.confidence, np.linspace(0, 1, 51), method="higher")
    named = sorted(set(named), reverse=True)
    errors = [_errors(naming, level) for level in named]
    assert errors[-1] == naming.loss.sum()
    named[-1] = 0.0  # the last one accepts all
    shares = [np.mean(naming.confidence >= level) for level in named]
    start = int(np.argmin(np.polynomial.Polynomial.fit(shares, errors, 2)(np.array(shares))))
    chosen = None
    for level in named[start:]:
        if _upper(_errors(testing, level), len(testing), 0.05 / 2) > 0.08:
            break
        chosen = level
    found = sk.select_threshold(rows, objective=sk.SystemRisk(0.08, max_analyses=2))
    assert found.threshold == chosen < max(named)
    assert found.objective.method.levels == tuple(named[start:])
    made, n = found.certificate, len(testing)
    assert made.is_certified
    assert made.pointwise_bound == pytest.approx(_upper(_errors(testing, chosen), n, 0.05 / 2))
    machine = testing.confidence >= chosen
    assert (made.n, made.n_accepted) == (n, machine.sum())
    assert made.n_errors == testing.loss[machine].sum()
    together = _errors(testing, chosen)
    said = read_certificate(made)
    assert "machine and reviewer together are wrong in at most 8 % of cases (" in said
    assert f"together {together:,} of {n:,} are wrong" in said
    assert said.index("reviewer will work as well as on these rows") < said.index(
        "independent draws"
    )


def test_the_last_level_accepts_rows_that_are_less_sure_than_those_that_named_it():
    rows = _outcomes(500)
    right = sk.Outcomes(np.zeros(500), rows.confidence, reviewer_loss=rows.reviewer_loss)
    assert sk.select_threshold(right, objective=sk.SystemRisk(0.05)).threshold == 0.0
    scores = sk.Outcomes(np.zeros(500), 10 * rows.confidence, reviewer_loss=rows.reviewer_loss)
    found = sk.select_threshold(scores, objective=sk.SystemRisk(0.05))
    assert found.coverage == 1.0
    assert found.threshold < 2.0  # of scores from 5 to 10


def test_levels_that_the_user_names_leave_all_rows_to_test_them():
    method = LevelSequence([0.95, 0.9])
    found = sk.select_threshold(_outcomes(), objective=sk.SystemRisk(0.08, method=method))
    assert found.threshold == 0.9
    assert found.certificate.n == 4000


@pytest.mark.parametrize(
    ("bound", "most", "delta"), [(0.03, 0.03, 0.05), ((12, 600), _upper(12, 600, 0.025), 0.025)]
)
def test_a_bound_of_the_reviewer_leaves_the_rest_of_the_target_to_the_machine(bound, most, delta):
    """An estimated bound takes half of delta."""
    rows = sk.Outcomes(_outcomes().loss, _outcomes().confidence)
    found = sk.select_threshold(
        rows, objective=sk.SystemRisk(0.06, overall_error=bound)
    ).certificate
    machine = sk.GeneralizedRisk(0.06 - most, delta=delta)
    plain = sk.select_threshold(rows, objective=machine).certificate
    numbers = ("threshold", "n", "n_accepted", "n_errors", "rows_needed")
    assert [getattr(found, name) for name in numbers] == [getattr(plain, name) for name in numbers]
    assert found.pointwise_bound == pytest.approx(plain.pointwise_bound + most)
    assert (found.delta, found.overall_error) == (0.05, pytest.approx(most))
    assert "wrong in at most 6 % of cases" in unwrap(str(found))
    if bound == 0.03:
        said = "the reviewer errs on deferred cases in at most 3 % of all cases"
        assert found.assumptions[0] == said


def test_a_rate_of_the_reviewer_is_a_coin_in_each_row():
    """The levels are tested one by one, as with answers that the coins draw."""
    plain = sk.Outcomes(_outcomes().loss, _outcomes().confidence)
    objective = sk.SystemRisk(0.08, deferred_error=0.05)
    found = sk.select_threshold(plain, objective=objective)
    rated = sk.Outcomes(plain.loss, plain.confidence, reviewer_loss=np.full(4000, 0.05))
    coins = rated.take(~draw_rows(4000, 5, seed=0)).count(0)
    levels = found.objective.method.levels
    tested = [_upper(_errors(coins, level), 3200, 0.05) <= 0.08 for level in levels]
    assert found.threshold == levels[tested.index(False) - 1] > min(levels)
    assert found.coverage > sk.select_threshold(
        plain, objective=sk.SystemRisk(0.08, overall_error=0.05)
    ).coverage  # fmt: skip
    made = found.certificate
    assert made.is_certified
    assert made.pointwise_bound == pytest.approx(
        _upper(_errors(coins, found.threshold), 3200, 0.05)
    )
    assert (made.deferred_error, made.overall_error, made.seed) == (0.05, None, 0)
    assert made.assumptions[0] == (
        "the reviewer errs in at most 5 % of the deferred cases, at every threshold tested (5 % "
        "measured on all cases is optimistic for the hard ones that are deferred)"
    )
    deferred = coins.confidence < found.threshold
    n_wrong = int(coins.reviewer_loss[deferred].sum())
    said = f"wrong in {n_wrong} of the {deferred.sum():,} deferred cases (drawn by chance, at 5 %)"
    assert said in unwrap(str(made))
    assert "Alone, the reviewer is wrong in 5 % of all these cases" in unwrap(str(made))
    again = sk.select_threshold(
        rated, objective=sk.SystemRisk(0.08)
    )  # the rate of each row is known
    assert (again.threshold, again.objective.method) == (found.threshold, found.objective.method)


def test_a_refusal_says_what_each_would_do_alone_and_which_target_could_be_met():
    rows = _outcomes()
    with pytest.raises(sk.InfeasibleTargetError) as caught:
        sk.select_threshold(rows, objective=sk.SystemRisk(0.02))
    assert "Tested on these 3,200 certifying rows (4,000 in all)." in str(caught.value)
    testing = rows.take(~draw_rows(4000, 5, seed=0))
    machine, reviewer = (f"{100 * x.mean():.4g} %" for x in (testing.loss, testing.reviewer_loss))
    said = re.search(
        "smallest target that these rows could have met is ([0-9.]+) %.* Alone, the reviewer is "
        f"wrong in {reviewer} of all these cases, and the machine in {machine}",
        str(caught.value),
    )
    least = float(said[1]) / 100
    assert sk.select_threshold(rows, objective=sk.SystemRisk(least)).certificate.is_certified
    with pytest.raises(sk.InfeasibleTargetError):
        sk.select_threshold(rows, objective=sk.SystemRisk(least - 2e-4))
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        found = sk.select_threshold(rows, objective=sk.SystemRisk(0.02), on_infeasible="abstain")
    assert found.threshold == np.inf


def test_the_order_of_the_reviewers_errors_is_tested_too():
    rows = _outcomes()
    tired = np.sort(rows.reviewer_loss)
    with pytest.warns(UserWarning, match="the errors of the reviewer change from"):
        found = sk.select_threshold(
            sk.Outcomes(rows.loss, rows.confidence, reviewer_loss=tired),
            objective=sk.SystemRisk(0.1),
        )
    assert not found.certificate.is_certified


# Known truth: the share of draws that break the guarantee ----------------------------------------


def _population(name, target):
    """Return errors of machine and reviewer at 20 levels of confidence, surest first."""
    x = (np.arange(20) + 0.5) / 20
    above = 1.0001 * target
    machine, reviewer = {
        "both exactly at the target": (np.full(20, above), np.full(20, above)),
        "the reviewer exactly at the target, the machine worse": (
            above + x / 4,
            np.full(20, above),
        ),
        "the second level just above the target": (
            np.where(x < 0.1, 0.0, np.where(x < 0.15, 4.702 * target, 0.9)),
            np.full(20, 0.9 * target),
        ),
        "in and out": (above * (1 + 0.9 * np.sin(25 * x - 1.3)), np.full(20, above)),
        "a slow rise": (2.2 * above * x, np.where(x < 0.2, 2 * above, 0.8 * above)),
        "the reviewer errs where the machine does": (3 * above * x**2, 2 * above * x),
    }[name]
    shifts = np.cumsum(np.append(0.0, (machine - reviewer) / 20))
    return machine, reviewer, reviewer.mean() + shifts[1:]


CELLS = (
    "both exactly at the target",
    "the second level just above the target",
    "the reviewer exactly at the target, the machine worse",
    "in and out",
    "a slow rise",
    "the reviewer errs where the machine does",
)


@pytest.mark.parametrize(("cell", "by_rate", "draws"), mostly_slow([
    *((cell, by_rate, 200) for cell in CELLS[:2] for by_rate in (False, True)),
    *((cell, False, 4000) for cell in CELLS), *((cell, True, 4000) for cell in CELLS[:4]),
], quick=4, unpack=True))  # fmt: skip
@pytest.mark.parametrize(("n", "target", "delta"), [(400, 0.1, 0.1), (1500, 0.05, 0.05)])
def test_the_guarantee_fails_as_rarely_as_it_says(cell, by_rate, draws, n, target, delta):
    """How often a threshold is too low; the reviewer is known by answers or by one rate."""
    machine, reviewer, truth = _population(cell, target)
    rate = reviewer[0] if by_rate else None
    assert rate is None or np.all(reviewer == rate)
    objective = sk.SystemRisk(target, delta=delta, deferred_error=rate).check(Loss())
    rng, broken = np.random.default_rng(CELLS.index(cell)), 0
    for _ in range(draws):
        k = rng.integers(0, 20, n)
        missed = None if by_rate else rng.random(n) < reviewer[k]
        rows = sk.Outcomes(rng.random(n) < machine[k], 20.0 - k, reviewer_loss=missed)
        named, testing = objective.name_levels(objective.with_reviewer(rows))
        testing = testing.count(0)
        curve = RiskCoverageCurve.from_outcomes(testing)
        found = named.choose(curve, named.passes(curve, testing))
        if np.isfinite(found.threshold or 0.0):
            broken += truth[min(20 - int(found.threshold), 19)] > target
    assert broken / draws <= delta + 3 * np.sqrt(delta * (1 - delta) / draws)


def test_a_weekday_that_is_hard_does_not_name_the_thresholds_alone():
    """Rows of weekdays in turn; Mondays are hard, and 5.6 % are wrong at best."""
    rng, n_false, monday = np.random.default_rng(0), 0, np.arange(1000) % 5 == 0
    for _ in range(60):
        sure = rng.random(1000)
        machine = rng.random(1000) < np.where(monday, 0.30, 0.02)
        person = rng.random(1000) < np.where(monday, 0.20, 0.02)
        rows = sk.Outcomes(machine * 1.0, sure, reviewer_loss=person * 1.0)
        with contextlib.suppress(sk.InfeasibleTargetError):
            found = sk.select_threshold(rows, objective=sk.SystemRisk(0.04))
            n_false += found.certificate.is_certified
    assert n_false <= 0.05 * 60 + 3 * np.sqrt(60 * 0.05 * 0.95)


# The tuner ----------------------------------------------------------------------------------------


@cache
def _people():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(3000, 3)), columns=["a", "b", "c"])
    y = np.where(X.sum(axis=1) + rng.logistic(size=3000) / 4 > 0, "yes", "no")
    person = np.where(rng.random(3000) < 0.05, np.where(y == "no", "yes", "no"), y)
    return X, y, person


def _tuner(**options):
    return sk.ThresholdTuner(LogisticRegression(), sk.SystemRisk(0.08, **options), random_state=0)


def test_the_seed_of_the_draw_stands_in_the_certificate():
    X, y, person = _people()
    (truth, proba), objective = _rows(), sk.SystemRisk(0.3)

    def fit(seed):
        tuner = sk.ThresholdTuner(sk.PrecomputedClassifier([0, 1]), objective, random_state=seed)
        return tuner.fit(proba, truth, reviewer_pred=_reviewed(objective)).selection_

    found = {seed: fit(seed) for seed in (7, 8)}
    same, other = fit(7), found[8]
    assert same.certificate == replace(found[7].certificate, created=same.certificate.created)
    assert same.objective.method == found[7].objective.method != other.objective.method
    assert "Rows or coins were drawn with the seed 7: " in same.certificate.details()
    for one in (*found.values(), fit(None), fit(np.random.RandomState(0))):
        made = one.certificate
        again = fit(made.seed).certificate
        assert again == replace(made, created=again.created)
        loaded = sk.AbstentionPolicy.from_json(one.policy.to_json()).certificate
        assert loaded == made
        check_schema(one.policy.to_json())
    table = sk.select_threshold(_outcomes(), objective=sk.SystemRisk(0.08)).certificate
    assert table.seed == 0
    assert _tuner().fit(X, y, reviewer_pred=person).certificate_.seed == 0
    levels = sk.SystemRisk(0.08, method=LevelSequence([0.95, 0.9]))
    for one in (levels, sk.Risk(0.1), sk.SystemRisk(0.4, overall_error=0.1)):
        rows = _outcomes() if one is levels else _table()
        made = sk.select_threshold(rows, objective=one).certificate
        assert made.seed is None
        assert "seed" not in made.to_dict()
        assert "drawn by chance" not in unwrap(str(made))
    for seed in (-1, "x"):
        check_refused("random_state", fit, seed)


def test_a_reviewer_who_is_never_wrong_may_have_given_the_labels():
    said = "y may be the reviewer's own answer, which is right in all"
    y, proba = _rows()
    tuner = sk.ThresholdTuner(sk.PrecomputedClassifier([0, 1]), sk.SystemRisk(0.1))
    with pytest.warns(UserWarning, match=f"Who gave the labels.*{said} [0-9]+ rows"):
        certificate = tuner.fit(proba, y, reviewer_pred=y).certificate_
    assert certificate.is_certified
    assert f"Note: {said}" in unwrap(str(certificate))
    rows, policy = _fresh(reviewer=0.0), _fixed()
    with pytest.warns(UserWarning, match=said):
        assert said in str(
            sk.select_threshold(rows, objective=sk.SystemRisk(0.09)).certificate.caveats
        )
    with pytest.warns(UserWarning, match=said):
        assert said in str(sk.certify(policy, rows, objective=sk.SystemRisk(0.09)).caveats)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sk.select_threshold(rows, objective=sk.Risk(0.1))
        sk.certify(policy, rows, target=0.3)


@pytest.mark.parametrize(
    ("n_errors", "n_missed", "doubted"), [(100, 0, 1), (99, 0, 0), (100, 1, 0)]
)
def test_a_hundred_errors_without_one_of_the_reviewer_raise_the_doubt(n_errors, n_missed, doubted):
    rng, loss, missed = np.random.default_rng(0), np.zeros(1000), np.zeros(1000)
    loss[:n_errors], missed[:n_missed], missed[-20:] = 1.0, 1.0, 1.0  # wrong elsewhere all the same
    order = rng.permutation(1000)
    rows = sk.Outcomes(loss[order], rng.random(1000), reviewer_loss=missed[order])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        made = sk.select_threshold(rows, objective=sk.SystemRisk(0.2)).certificate
    assert [len(heard), len(made.caveats)] == [doubted, doubted]


def test_the_model_never_sees_the_column_of_the_reviewer():
    X, y, person = _people()
    both = X.assign(annotator=person)
    tuner = _tuner(reviewer="annotator").fit(both, y)
    other = _tuner().fit(X, y, reviewer_pred=person)
    assert tuner.certificate_.is_certified
    assert 0.1 < tuner.policy_.coverage <= 1
    # A table without the column has another layout in memory, and with it other last digits.
    assert tuner.threshold_ == pytest.approx(other.threshold_)
    assert list(tuner.feature_names_in_) == ["a", "b", "c"]
    pd.testing.assert_frame_equal(tuner.decide(both), other.decide(X))  # new rows may lack it
    pd.testing.assert_frame_equal(tuner.decide(X), other.decide(X))
    np.testing.assert_allclose(tuner.decision_function(both), other.decision_function(X))
    loaded = sk.AbstentionPolicy.from_json(tuner.policy_.to_json())
    assert loaded.certificate == tuner.certificate_
    assert pickle.loads(pickle.dumps(tuner)).threshold_ == tuner.threshold_
    assert clone(tuner).set_params(objective__target=0.1).objective.target == 0.1


@pytest.mark.parametrize("routing", [False, True])
def test_answers_reach_the_tuner_through_a_search(routing):
    X, y, person = _people()
    tuner = _tuner().set_params(on_infeasible="abstain")
    with sklearn.config_context(enable_metadata_routing=routing):
        search = GridSearchCV(tuner, {"objective__target": [0.08, 0.3]}, cv=2, error_score="raise")
        search.fit(X, y, reviewer_pred=person)
    assert search.best_params_ == {"objective__target": 0.3}  # answers most


class _Untrained(LogisticRegression):
    def fit(self, X, y):
        raise AssertionError("trained before the check")


def _ask(given=None, columns=(), objective=None, **options):
    """Return a function that lets a tuner see answers and columns of answers."""

    def fit():
        X, y, _ = _people()
        person = np.full(3000, given) if isinstance(given, str) else given
        tuner = sk.ThresholdTuner(_Untrained(), objective or sk.SystemRisk(0.08, **options))
        tuner.fit(X.assign(**dict(columns)), y, reviewer_pred=person)

    return fit


def _count(loss, confidence, weight=None, reviewer=None):
    """Return a function that counts machine and reviewer together."""

    def select():
        rows = sk.Outcomes(loss, confidence, weight, reviewer_loss=reviewer)
        sk.select_threshold(rows, objective=sk.SystemRisk(0.1), assume="independent")

    return select


#: Columns of answers: of one class, and with a missing one.
P, GAPS = [("p", "yes")], [("p", None)]
HUNDRED = np.linspace(0, 1, 100)
ONE_CLASS = {0: sk.Risk(0.1), 1: sk.Risk(0.1, given_class=1)}


@pytest.mark.parametrize(("objective", "sentence"), [
    (sk.Risk(0.05), "at least 59 such rows, and this one cannot say whether any number would do."),
    (sk.GeneralizedRisk(0.05), "59 such rows, a plan, not a promise (this one proves 95 % at best)."
                               " Now: use fresh rows (asking this one again, or with more, breaks"),
    (sk.Risk(0.05, method="mean"), "about 19 such rows, a plan, not a promise (this one proves"),
    (sk.Risk(0.05, method="empirical"), "of the answers are wrong, on this one row.\nThe smallest "
                                        "risk of any accepted set of this row is 1."),
    (sk.Risk(0.05, max_analyses=2), "this one cannot say"),
])  # fmt: skip
def test_a_refusal_on_one_row_speaks_of_one_row(objective, sentence):
    wrong = sk.Outcomes([1.0], [0.9])
    with pytest.raises(sk.InfeasibleTargetError) as refused:
        sk.select_threshold(wrong, objective=objective)
    text = str(refused.value)
    assert sentence in text
    assert not re.search(r"\b(?i:these)\b|\b1 [a-z]+s\b", text)


def test_one_row_that_is_right_cannot_say_whether_more_would_do():
    with pytest.raises(sk.InfeasibleTargetError) as refused:
        sk.select_threshold(sk.Outcomes([0.0], [0.9]), objective=sk.Risk(0.4, delta=0.1))
    assert "at best). This row cannot say whether more would do." in str(refused.value)


REFUSED = [
    ("reviewer", _ask()),
    ("reviewer", _ask(reviewer="x")),
    ("reviewer", _ask(reviewer=3)),
    ("reviewer_pred", _ask("yes", P, reviewer="p")),
    ("reviewer_pred", _ask(None, GAPS, reviewer="p")),
    ("reviewer_pred", _ask("maybe")),
    ("reviewer_pred", _ask(np.full(9, "yes"))),
    ("reviewer_pred", _ask("yes", objective=sk.Risk(0.08))),
    ("overall_error", _ask(None, P, reviewer="p", overall_error=0.01)),
    ("overall_error", _ask("yes", overall_error=0.01)),
    ("overall_error", _ask(overall_error=0.08)),
    ("overall_error", _ask(overall_error=(100, 1000))),
    ("overall_error", _ask(overall_error=(3, 2))),
    ("overall_error", _ask(overall_error=(3, 2, 1))),
    ("overall_error", _ask(overall_error=-0.1)),
    ("deferred_error", _ask(None, P, reviewer="p", deferred_error=0.01)),
    ("deferred_error", _ask("yes", deferred_error=0.01)),
    ("deferred_error", _ask(deferred_error=0.01, overall_error=0.01)),
    ("deferred_error", _ask(deferred_error=3)),
    ("deferred_error", _ask(deferred_error=(12, 600))),
    ("method", _ask(deferred_error=0.1, method="binomial")),
    ("method", _ask("yes", method="binomial")),
    ("given_class", _ask("yes", given_class="yes")),
    ("loss", _count([0, 0.5] * 50, HUNDRED, None, np.zeros(100))),
    ("reviewer_loss", _count([0, 1], [1, 2], reviewer=[1.5, 1])),
    ("reviewer_loss", _count([0, 1], [1, 2], reviewer=[1])),
    ("5 rows", _count([0, 1], [1, 2], reviewer=[1, 0])),
    ("reviewer", _count([0, 1], [1, 2])),
    ("largest_weight", _count([0, 1] * 50, HUNDRED, np.arange(100), np.zeros(100))),
    ("given_class", lambda: sk.select_threshold(SURE, objective=ONE_CLASS, subgroups=GROUPS)),
    ("given_class", lambda: sk.ThresholdTuner(
        DummyClassifier(), ONE_CLASS, group_by=lambda X: X[:, 0] % 2).fit(
            np.arange(400.0)[:, None], GROUPS)),
    ("threshold_range", lambda: name_options("risk", 0.5, threshold_range=(0, 1))),
    ("min_coverage", lambda: name_options("coverage", 0.5, min_coverage=0.3)),
    ("delta", lambda: name_options("cost", 0.5, delta=0.1)),
    ("objective", lambda: sk.certify(POLICY, [1], [[0.1, 0.9]], objective=None)),
    ("summary", lambda: _tuner().fit(
        *_people()[:2], reviewer_pred=_people()[2]).summary([0.1])),
    ("reviewer", lambda: sk.Predictions.from_labels(
        ["a", "b"], ["a", "a"], [0.9, 0.8], reviewer=["b"])),
]  # fmt: skip
POLICY = sk.AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)


@refusals(REFUSED)
def test_bad_input_is_refused_before_anything_is_trained(argument, call):
    check_refused(argument, call)


# A fixed policy -----------------------------------------------------------------------------------


def _fresh(n=4000, reviewer=0.05, wrong=0.0, seed=9):
    """Return fresh rows; the machine is wrong by `wrong` more often than it says."""
    rng = np.random.default_rng(seed)
    c = rng.uniform(0.5, 1, n)
    answer = rng.integers(0, 2, n)
    truth = np.where(rng.random(n) < 1 - c + wrong, 1 - answer, answer)
    person = np.where(rng.random(n) < reviewer, 1 - truth, truth)
    proba = np.where(answer[:, None] == [0, 1], c[:, None], 1 - c[:, None])
    return sk.Predictions.from_proba(truth, proba, labels=[0, 1], reviewer=person)


def _alone(rows):
    """Return the rows without a reviewer's answers."""
    return sk.Predictions(rows.y_true, rows.y_pred, rows.classes, rows.y_proba)


@cache
def _fixed(**options):
    rows = _fresh(seed=1)
    if options:
        rows = _alone(rows)
    return sk.select_threshold(rows, objective=sk.SystemRisk(0.09, **options)).policy


def test_fresh_rows_certify_machine_and_reviewer_together():
    policy, rows = _fixed(), _fresh(reviewer=0.03)
    made = sk.certify(policy, rows, objective=sk.SystemRisk(0.09))
    outcomes = sk.Outcomes.of(rows)
    errors = _errors(outcomes, policy.threshold)
    assert made.is_certified
    assert made.pointwise_bound == pytest.approx(_upper(errors, 4000, 0.05))
    assert f"together {errors} of 4,000" in unwrap(str(made))
    assert made.notice == ""  # the policy's own guarantee holds too
    assert not sk.certify(policy, rows, objective="system_risk", target=0.05).is_certified
    assert made.n_errors == outcomes.loss[outcomes.confidence >= policy.threshold].sum()
    alone = _alone(rows)
    assert "needs the reviewer's answers" in sk.certify(policy, alone, target=0.2).notice
    for call in (sk.certify, sk.check_policy):
        check_refused("reviewer", lambda c=call: c(policy, alone, objective=sk.SystemRisk(0.09)))


def test_a_certificate_by_a_bound_is_made_on_fresh_rows_too():
    rows = _fresh()
    alone = _alone(rows)
    objective = sk.SystemRisk(0.09, overall_error=0.04)
    made = sk.certify(_fixed(), alone, objective=objective)
    plain = sk.certify(_fixed(), alone, objective=sk.GeneralizedRisk(0.05))
    assert made.is_certified == plain.is_certified
    assert made.pointwise_bound == pytest.approx(plain.pointwise_bound + 0.04)


@pytest.mark.parametrize(
    ("reviewer", "wrong", "verdict"),
    [(0.02, 0.0, "confirmed"), (0.2, 0.0, "broken"), (0.03, 0.4, "broken")],
)
def test_a_check_notices_when_either_gets_worse(reviewer, wrong, verdict):
    rows = _fresh(reviewer=reviewer, wrong=wrong)
    check = sk.check_policy(_fixed(), rows)
    assert check.verdict == verdict
    [one] = check.guarantees
    errors = _errors(sk.Outcomes.of(rows), _fixed().threshold)
    assert one.value == pytest.approx(errors / 4000)
    assert "machine and reviewer together are wrong in at most 9 % of cases" in one.statement
    assert "(not proved): the reviewer will work as well as on these rows; the rows" in unwrap(
        str(check)
    )


def test_a_check_by_a_bound_is_about_the_machine_alone():
    policy = _fixed(overall_error=0.04)
    [one] = sk.check_policy(policy, _fresh()).guarantees
    assert (one.objective, one.target) == ("generalized_risk", pytest.approx(0.05))
    [asked] = sk.check_policy(
        policy, _fresh(), objective=sk.SystemRisk(0.1, overall_error=0.04)
    ).guarantees
    assert (asked.objective, asked.target) == ("generalized_risk", pytest.approx(0.06))


def test_a_rate_of_the_reviewer_is_certified_on_fresh_rows_too():
    policy, rows, objective = _fixed(), _fresh(), sk.SystemRisk(0.11, deferred_error=0.05)
    made, outcomes = sk.certify(policy, _alone(rows), objective=objective), sk.Outcomes.of(rows)
    accepted = outcomes.confidence >= policy.threshold
    outcomes = replace(outcomes, reviewer_loss=np.full(4000, 0.05))
    coins = replace(outcomes.count(0), confidence=accepted * 1.0)
    assert made.is_certified
    assert made.pointwise_bound == pytest.approx(_upper(_errors(coins, 1.0), 4000, 0.05))
    assert (made.seed, made.deferred_error) == (0, 0.05)
    check_refused("deferred_error", lambda: sk.certify(policy, rows, objective=objective))


@pytest.mark.parametrize(("wrong", "verdict"), [(-0.05, "confirmed"), (0.4, "broken")])
def test_a_check_by_a_rate_counts_it_in_each_deferred_row(wrong, verdict):
    policy, rows = _fixed(deferred_error=0.03), _fresh(reviewer=0.02, wrong=wrong)
    check, outcomes = sk.check_policy(policy, _alone(rows)), sk.Outcomes.of(rows)
    assert check.verdict == verdict
    [one] = check.guarantees
    accepted = outcomes.confidence >= policy.threshold
    assert one.value == pytest.approx(np.where(accepted, outcomes.loss, 0.03).mean())
    assert one.low < one.value < one.high
    assert one.n_errors == outcomes.loss[accepted].sum()
    assert one.found.endswith(" % (4,000 cases)")
    assert "(not proved): the reviewer errs in at most 3 % of the deferred" in unwrap(str(check))
    [asked] = sk.check_policy(
        _fixed(), _alone(rows), objective=sk.SystemRisk(0.09, deferred_error=0.03)
    ).guarantees
    assert (asked.deferred_error, asked.verdict) == (0.03, verdict)
    [answered] = sk.check_policy(policy, rows).guarantees  # where there are answers, these count
    assert answered.value == pytest.approx(_errors(outcomes, policy.threshold) / 4000)
    assert answered.deferred_error is None


def test_what_knows_no_answers_of_the_reviewer_says_so():
    policy, rows = _fixed(), _fresh()
    alone = _alone(rows)
    state = sk.SelectiveState(labels=[0, 1])
    state.update(rows.classes[rows.y_true], rows.y_proba)
    for call, given in (
        (sk.check_policy, alone),
        (sk.check_policy, state),
        (sk.SelectiveRiskMonitor, None),
    ):
        check_refused("reviewer", call, policy, *([] if given is None else [given]))
    assert sk.SelectiveRiskMonitor(policy, target=0.2).target == 0.2
    report = " ".join(str(sk.selective_report(None, alone, policy=policy)).split())
    assert "NOT TESTED: it guarantees how often machine and reviewer together are wrong" in report


def test_tables_show_the_answers_of_the_reviewer():
    rows = _fresh(50)
    assert (rows.to_frame()["reviewer"] == rows.classes[rows.reviewer]).all()
    wrong = sk.Outcomes.of(rows).to_frame()["reviewer_loss"]
    assert (wrong == (rows.reviewer != rows.y_true)).all()
    by_label = sk.Predictions.from_labels(["a", "b"], ["a", "a"], [0.9, 0.8], reviewer=["b", "b"])
    assert sk.Outcomes.of(by_label).reviewer_loss.tolist() == [1.0, 0.0]


def test_a_refusal_that_more_rows_cannot_lift_names_the_size_of_the_sets():
    rng = np.random.default_rng(0)
    outcomes = sk.Outcomes(rng.random(3000) < 0.4, rng.random(3000))
    with pytest.raises(sk.InfeasibleTargetError) as refusal:
        sk.select_threshold(outcomes, objective=sk.Risk(0.01))
    text = " ".join(str(refusal.value).split())
    size = "of at least 10 % of the cases (min_coverage=0.1)"
    assert f"More rows will not help: every accepted set {size} has a risk above" in text


def test_a_plan_of_no_more_rows_than_were_asked_says_that_as_many_may_do():
    guarantee = sk.Risk(0.1).on(Loss())
    curve = RiskCoverageCurve.from_outcomes(sk.Outcomes([0] * 90 + [1] * 10, range(100)))
    for high, words in ((100, "about as many rows as these,"), (140, "about 80 to 140 such rows,")):
        plan = RowsNeeded(80, high)
        assert f"10 % needs {words}" in refusal._tell_plan(guarantee, curve, plan)
