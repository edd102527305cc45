"""Break the package on purpose, one small change at a time, and see that the tests notice.

`python benchmarks/mutants.py` puts each change into a copy of the tree, runs the tests named
beside it as the default run does, and says which changes no test noticed. `python
benchmarks/mutants.py wealth` tries the changes whose file or new text contains a word. A text
that is not found, or found twice, is an error: the code moved, so the row has to follow.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("skselect", "tests", "conftest.py", "pyproject.toml")


class Mutant(NamedTuple):
    """A change to one file, and the test files of which one has to fail."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def _mutant(file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(f"skselect/{file}", old, new, tuple(f"tests/{test}" for test in tests))


MUTANTS = [
    # Bounds: the wrong side, a level that is not divided, an error too many.
    _mutant("bounds/_pointwise.py", "np.maximum(rows - errors, 1), 1.0 - delta)",
            "np.maximum(rows - errors, 1) + 1.0, 1.0 - delta)",
            "bounds/test_pointwise.py"),
    _mutant("bounds/_pointwise.py", "side = (1.0 - level) / 2.0", "side = 1.0 - level",
            "bounds/test_pointwise.py"),
    _mutant("bounds/_pointwise.py", "n_right + 1.0)) + math.log(delta)",
            "n_right + 1.0)) + math.log(2.0 * delta)",
            "bounds/test_pointwise.py"),
    _mutant("bounds/_pointwise.py", "return counts.astype(np.int64)",
            "return counts.astype(np.int64) + 1",
            "bounds/test_pointwise.py", "bounds/test_band.py"),
    _mutant("bounds/_pointwise.py", "while k / n < share", "while k / n <= share",
            "bounds/test_pointwise.py"),
    _mutant("bounds/_band.py", "crossing <= self.delta\n", "crossing <= 1.1 * self.delta\n",
            "bounds/test_band.py"),
    _mutant("bounds/_band.py", "fail_all(starts, (1.0 + SLACK) * delta)",
            "fail_all(starts, 0.5 * delta)", "bounds/test_band.py"),
    _mutant("bounds/_band.py", "alpha = delta / UNION_TESTS", "alpha = delta",
            "bounds/test_band.py"),
    _mutant("bounds/_band.py", "walk_band(n, target, band_share * delta, min_coverage)",
            "walk_band(n, target, delta, min_coverage)", "bounds/test_band.py"),
    _mutant("bounds/_pointwise.py", "bentkus = np.e * special.bdtr(", "bentkus = special.bdtr(",
            "bounds/test_pointwise.py"),
    _mutant("bounds/_band.py", "tenth = max(smallest, smallest_rank(n, _SMALL_SHARE))",
            "tenth = smallest", "bounds/test_band.py"),
    # Rules that find a threshold, and what is said where there is none.
    _mutant("thresholds/_rules.py", "min(0.1, 200.0 / n)", "min(0.1, 300.0 / n)",
            "thresholds/test_rules.py"),
    _mutant("thresholds/_advice.py", "level = 0.9 * delta", "level = 2.0 * delta",
            "thresholds/test_advice.py"),
    _mutant("thresholds/_advice.py", "loss)) + rows / n", "loss)) + 5.0 * rows / n",
            "thresholds/test_advice.py"),
    _mutant("thresholds/_least.py", "limits, target) <= self.delta", "limits, target) < 0.0",
            "thresholds/test_least.py"),
    _mutant("thresholds/_sequences.py", "level = delta / len(self.starts)",
            "level = delta", "thresholds/test_sequences.py"),
    _mutant("thresholds/_rules.py", "passing[begin[0] : stop]", "passing[:stop]",
            "thresholds/test_sequences.py"),
    _mutant("thresholds/_rules.py", "entries & np.append(False, passing.entries)[n_blocks]",
            "np.append(False, passing.entries)[n_blocks]", "thresholds/test_rules.py"),
    _mutant("policy/seen_rows.py", "len(times) < LEAST or ", "", "policy/test_seen_rows.py"),
    # Losses and weights that become counts: one stream for all tables, one coin for both.
    _mutant("predictions/outcomes.py", "Coins(seed, numbers, left_out, cases)",
            "Coins(0, numbers, left_out, cases)",
            "predictions/test_outcomes.py"),
    _mutant("predictions/outcomes.py", "coins.toss(_FOR_WEIGHT) < chance",
            "coins.toss(_FOR_LOSS) < chance",
            "predictions/test_outcomes.py"),
    _mutant("thresholds/_rules.py", "(curve.accepted_loss + 1.0) / (curve.accepted_weight + 1.0)",
            "(curve.accepted_loss + 0.0) / (curve.accepted_weight + 1.0)",
            "thresholds/test_rules.py"),
    _mutant("thresholds/_rules.py", "cheapest_sets[-1]", "cheapest_sets[0]",
            "thresholds/test_rules.py"),
    _mutant("thresholds/_rules.py", "special.betaincc(k, n + 1.0 - k, target) >= 1.0 - delta",
            "special.betaincc(k, n - k + 2.0, target) >= 1.0 - delta", "thresholds/test_rules.py"),
    _mutant("thresholds/_rules.py", "int(accepted), delta / probes)",
            "int(accepted), delta)", "thresholds/test_rules.py"),
    _mutant("thresholds/_metric.py", "np.flatnonzero(allowed_scores == best)[-1]",
            "np.flatnonzero(allowed_scores == best)[0]", "thresholds/test_metric.py"),
    _mutant("thresholds/_metric.py", "np.sqrt(variance / n_accepted)", "np.sqrt(variance)",
            "thresholds/test_metric.py"),
    _mutant("thresholds/_sequences.py", "entries < curve.n_within_loss(limits)",
            "entries <= curve.n_within_loss(limits)", "thresholds/test_sequences.py"),
    # The curve: ties, weights, order.
    _mutant("curve/tie_blocks.py", "n_wrong += int(sums[-1])", "n_wrong = int(sums[-1])",
            "curve/test_tie_blocks.py", "curve/test_curve.py"),
    _mutant("curve/scan.py", "surer = surer - chunk.loss / 2.0", "surer = surer + 0.0",
            "curve/test_scan.py",
            "curve/test_curve.py"),
    _mutant("curve/scan.py", "np.searchsorted(rising, -thresholds[here], side=\"right\")",
            "np.searchsorted(rising, -thresholds[here], side=\"left\")",
            "curve/test_scan.py", "curve/test_curve.py"),
    _mutant("metrics/_rows.py", "share * (1.0 - share) / self.n_trials * n",
            "share * (1.0 - share) / n * n", "metrics/test_rows.py"),
    _mutant("_lib/arrays.py", "rows[np.lexsort(keys_of_rows)]",
            "rows",
            "_lib/test_arrays.py"),
    _mutant("curve/areas.py", "credit = np.where(confidence >= threshold,",
            "credit = np.where(confidence > threshold,", "curve/test_areas.py"),
    _mutant("curve/tie_blocks.py", "np.bitwise_or(part, wrong[rows] != 0, out=part)",
            "np.bitwise_or(part, wrong[rows] == 0, out=part)", "curve/test_tie_blocks.py",
            "curve/test_curve.py"),
    _mutant("curve/curve.py", "return 0.0 if inside else float(\"-inf\")", "return 0.0",
            "curve/test_curve.py", "selection/test_pick.py", "selection/test_select.py"),
    _mutant("curve/curve.py", "        return float(\"inf\")\n    lowest",
            "        return curve.sums.largest\n    lowest", "curve/test_curve.py",
            "selection/test_pick.py", "selection/test_select.py"),
    # Predictions: class order, costs, confidences.
    _mutant("predictions/predictions.py", "proba[:, 1 - column] = 1.0 - positive",
            "proba[:, 1 - column] = positive", "predictions/test_predictions.py"),
    _mutant("predictions/outcomes.py", "is_wrong = predictions.y_pred != predictions.y_true",
            "is_wrong = (predictions.y_pred != predictions.y_true) & (predictions.y_true >= 0)",
            "predictions/test_outcomes.py"),
    _mutant("metrics/_areas.py", "1e4 * (n_right - n_passed) / total",
            "1e4 * (n_right - n_passed) / n_right", "metrics/test_areas.py"),
    _mutant("metrics/_calibration_errors.py", "edges, confidence[near], side=\"left\") - 1",
            "edges, confidence[near], side=\"right\") - 1", "metrics/test_calibration_errors.py"),
    _mutant("metrics/_error_detection.py", "surer = np.cumsum(right) - right / 2.0",
            "surer = np.cumsum(right)", "metrics/test_laws.py"),
    _mutant("metrics/_confidence_weighted.py", "cells = truth * k + predictions.y_pred",
            "cells = predictions.y_pred * k + truth", "metrics/test_confidence_weighted.py"),
    _mutant("bounds/_csr.py", "(1 + n_as_large) / (n_draws + 1) + error",
            "n_as_large / n_draws + error", "metrics/test_csr.py"),
    _mutant("metrics/_calibration_tests.py", "n_aside < n_min and size[n_pooled - 1] < n_min",
            "n_aside < n_min", "metrics/test_laws.py"),
    _mutant("metrics/_metric.py", "return -abs(value - self.best)", "return -value",
            "metrics/test_laws.py"),
    _mutant("predictions/doubts.py", "n_below + n_up_to", "2 * n_below",
            "predictions/test_doubts.py"),
    _mutant("inference/intervals.py", "n_right < interval.n_errors", "n_right > interval.n_errors",
            "inference/test_intervals.py"),
    _mutant("metrics/_cau.py", "== right) & (weight > 0)", "== right)",
            "metrics/test_cau.py"),
    _mutant("curve/influence.py", "variance = np.sum(sums * sums) * m / (m - 1.0)",
            "variance = np.sum(sums * sums)", "metrics/test_rows.py",
            "inference/test_intervals.py"),
    # Gaps between subgroups: a level that is not divided, a subgroup beside itself.
    _mutant("inference/intervals.py", "failure / (n_pairs - 1)", "failure / len(shares.names)",
            "inference/test_intervals.py"),
    _mutant("inference/intervals.py", "np.max(high - _least_other(low[::-1]))",
            "np.max(high - low[::-1].min(axis=1, keepdims=True))", "inference/test_intervals.py"),
    _mutant("metrics/_threshold.py", "shares = self.over[has_share] / self.under[has_share]",
            "shares = self.over / np.maximum(self.under, 1.0)", "metrics/test_threshold.py"),
    _mutant("_lib/decide.py", "(1.0 - share) * fitted + share * prior",
            "fitted + share * prior", "calibration/test_calibrators.py"),
    _mutant("calibration/_calibrators.py", "(block_success + 1.0)",
            "block_success", "calibration/test_calibrators.py"),
    _mutant("_lib/decide.py", "return np.column_stack([1.0 - mapped[0], mapped[0]])",
            "return np.column_stack([mapped[0], 1.0 - mapped[0]])", "calibration/test_scopes.py"),
    # Counting batch by batch.
    _mutant("streaming/counts.py", "number = np.concatenate([rows - errors, errors])",
            "number = np.concatenate([rows, errors])", "streaming/test_state.py"),
    _mutant("streaming/counts.py", "keys = used + number * PAGE",
            "keys = used", "streaming/test_state.py"),
    # The watch over a running policy.
    _mutant("monitoring/evidence.py", "enters = bets.patience / (before * (before + 1.0))",
            "enters = bets.patience / (before * before)", "monitoring/test_evidence.py"),
    _mutant("monitoring/evidence.py", "payoff = weight * (loss - bets.target)",
            "payoff = loss - bets.target", "monitoring/test_evidence.py"),
    _mutant("monitoring/evidence.py", "math.log(2.0 / delta)", "math.log(1.0 / delta)",
            "monitoring/test_evidence.py"),
    # What follows lies in rooms that are being rebuilt: these rows have to be found again there.
    _mutant("objectives/objective.py", "self.own_delta / self.max_analyses", "self.own_delta",
            "selection/test_select.py", "selection/test_pick.py"),
    # Levels: the band's share is spent twice, rows that name certify too.
    _mutant("thresholds/_sequences.py", "(1.0 - self.band_share) * delta", "delta",
            "thresholds/test_sequences.py"),
    _mutant("estimators/tuner.py", "unseen=unseen.take(~names)",
            "unseen=unseen", "thresholds/test_sequences.py"),
    # Machine and reviewer: rows that name thresholds certify too, ties, half of delta, all missed.
    _mutant("objectives/system_risk.py", "LevelSequence(levels)), outcomes.take(~names)",
            "LevelSequence(levels)), outcomes", "test_objectives.py"),
    _mutant("thresholds/_sequences.py", "np.searchsorted(confidence[order], levels)\n",
            "np.searchsorted(confidence[order], levels, side=\"right\")\n", "test_objectives.py"),
    _mutant("objectives/system_risk.py", "deferred = ~(outcomes.confidence >= threshold)",
            "deferred = ~(outcomes.confidence > threshold)",
            "test_objectives.py"),
    _mutant("objectives/system_risk.py", "return Reviewing(bound, share=0.5,",
            "return Reviewing(bound, share=1.0,", "test_objectives.py"),
    _mutant("objectives/counts.py", "(missed != 0) & ~accepted", "missed != 0",
            "test_objectives.py"),
    _mutant("predictions/outcomes.py", "coins.toss(_FOR_REVIEWER) < missed",
            "coins.toss(_FOR_LOSS) < missed",
            "predictions/test_outcomes.py"),
    _mutant("policy/policy.py", "least_sure_first[left:]", "least_sure_first[left + 1 :]",
            "policy/test_policy.py"),
    _mutant("objectives/objective.py", "return self.delta / self.n_sharing", "return self.delta",
            "selection/test_select.py"),
    _mutant("selection/order.py", "/ len(subjects) / len(parts)", "/ len(subjects)",
            "selection/test_order.py"),
    _mutant("objectives/guarantee.py", "elif high <= self.largest:",
            "elif high <= 1.01 * self.largest:",
            "monitoring/test_check.py"),
    _mutant("objectives/guarantee.py", "clopper_pearson_upper(n - n_right - 1, n, 1.0 - power)",
            "clopper_pearson_upper(n - n_right, n, 1.0 - power)", "monitoring/test_check.py"),
    _mutant("monitoring/guarantees.py", "cls(max_analyses, n_occurring, n_occurring)",
            "cls(max_analyses, 1, n_occurring)", "monitoring/test_check.py"),
    # Copies in a check: a verdict of one reading, the nearer bound; joins and histories of a log.
    _mutant("objectives/guarantee.py", "elif verdicts <= {\"broken\", \"in_doubt\"}:",
            "elif verdicts & {\"broken\", \"in_doubt\"}:", "monitoring/test_check.py"),
    _mutant("objectives/guarantee.py", "high=max(finding.high for", "high=min(finding.high for",
            "monitoring/test_check.py"),
    _mutant("cli/log_cases.py", "~index.duplicated(keep=False)", "~index.duplicated()",
            "cli/test_monitor.py"),
    _mutant("cli/log_cases.py", "np.argsort(rows.order[labelled], kind=\"stable\")",
            "np.arange(len(labelled))", "cli/test_monitor.py"),
    _mutant("cli/runs.py", "elif self.is_cut:", "elif False:", "cli/test_monitor.py"),
    _mutant("cli/freshness.py", "min(2.0 * gap, most)", "2.0 * gap", "cli/test_monitor.py"),
    _mutant("policy/policy.py", "accepted=confidence >= threshold,",
            "accepted=confidence > threshold,", "policy/test_policy.py"),
    _mutant("policy/policy.py", "accepted=values >= threshold", "accepted=values > threshold",
            "policy/test_policy.py"),
    _mutant("predictions/predictions.py", "return 1.0 / chance",
            "return chance", "predictions/test_predictions.py"),
    _mutant("predictions/predictions.py", "is_judged: BoolArray = codes >= 0",
            "is_judged: BoolArray = codes >= -1", "predictions/test_predictions.py"),
    _mutant("predictions/predictions.py", "np.lexsort((code, -counts, row))",
            "np.lexsort((-code, -counts, row))", "predictions/test_predictions.py"),
    _mutant("estimators/precomputed.py", "np.minimum(rest / unnamed, least)", "rest / unnamed",
            "estimators/test_precomputed.py"),
    _mutant("policy/certificate.py", "origin.drawn,\n", "\"\",\n", "selection/test_select.py"),
    _mutant("objectives/guarantee.py", "1.0 - most if self.is_least else most", "most",
            "policy/test_certificate.py"),
    _mutant("policy/subgroups.py", "codes, missing=np.inf)",
            "codes, missing=0.0)", "policy/test_subgroups.py"),
    _mutant("_lib/decide.py", "accepted = confidence >= threshold",
            "accepted = confidence > threshold", "policy/test_standalone.py"),
    _mutant("policy/certificate.py",
            "is_guaranteed = self.exact and self.guarantee == \"high_probability\"",
            "is_guaranteed = self.guarantee == \"high_probability\"", "policy/test_certificate.py"),
    _mutant("policy/certificate.py",
            "return is_guaranteed and all(other.is_certified for other in self.also)",
            "return is_guaranteed", "policy/test_certificate.py"),
    _mutant("selection/pick.py",
            "ObjectiveOnRows.of(rows_of_guarantee, objective, len(guarantees))",
            "ObjectiveOnRows.of(rows_of_guarantee, objective)", "selection/test_pick.py"),
    _mutant("estimators/classifier.py", "scored.take(scored.fold != k)", "scored",
            "estimators/test_out_of_fold.py", "estimators/test_tuner.py"),
    _mutant("estimators/out_of_fold.py", "weight = None if rows.weight is None else",
            "weight = None if True else", "estimators/test_out_of_fold.py",
            "estimators/test_tuner.py"),
    _mutant("estimators/raw_classifier.py", "table[:, columns[has_column]] = scores",
            "table[:, np.sort(columns[has_column])] = scores",
            "estimators/test_raw_classifier.py", "estimators/test_classifier.py"),
    # What an estimator says is read by position, groups stop at the outermost estimator.
    _mutant("_lib/checks/rows.py", "return arrays.as_array(table, name)[:, positions]",
            "return arrays.as_array(table, name)", "estimators/test_named_columns.py"),
    _mutant("estimators/groups.py", "if not are_routed or not _gets_groups(part, names):",
            "if not are_routed:", "estimators/test_groups.py"),
    _mutant("estimators/tuner.py", "wants_exact and not self._refits and",
            "wants_exact and", "estimators/test_tuner.py"),
    # Cascades: a tie that goes on, a rule from the rows that certify, costs and counts.
    _mutant("_lib/decide.py", "going = going[row_max(scores) < cut]",
            "going = going[row_max(scores) <= cut]", "extras/test_cascade.py"),
    _mutant("extras/join.py", "rule.join({name: part.take(~plans) for",
            "rule.join({name: part for", "extras/test_join.py"),
    _mutant("extras/join.py", "best - max_loss * (n_steps - k) / n_steps",
            "best - max_loss * (n_steps - k)", "extras/test_join.py"),
    _mutant("extras/cascade.py", "level = 1.0 - 0.05 / (len(self.names) - 1)", "level = 0.95",
            "extras/test_cascade.py"),
    _mutant("estimators/tuner.py", "is_fresh = not any(", "is_fresh = not all(",
            "extras/test_cascade_classifier.py"),
    _mutant("estimators/base.py", "for _, stage in estimator.stages_ for", "for _, stage in [] for",
            "extras/test_cascade_classifier.py"),
]  # fmt: skip


def _is_noticed(mutant: Mutant) -> bool:
    """Run the tests of a mutant in a copy of the tree; tell whether one fails."""
    text = (ROOT / mutant.file).read_text()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        tree.mkdir()
        for name in COPIED:
            one = ROOT / name
            if one.is_dir():
                skipped = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(one, tree / name, ignore=skipped)
            else:
                shutil.copy(one, tree / name)
        (tree / mutant.file).write_text(text.replace(mutant.old, mutant.new))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", *mutant.tests]
        command += ["-p", "no:cacheprovider", "--no-header"]
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        place = {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
        environment = os.environ | threads | place
        done = subprocess.run(
            command, check=False, cwd=tree, env=environment, capture_output=True, text=True
        )
    if done.returncode not in (0, 1):  # neither all passed nor some failed
        raise RuntimeError(f"{mutant.file}: the tests did not run.\n{done.stdout}{done.stderr}")
    return done.returncode == 1


def check_found(mutants: list[Mutant]) -> None:
    """Refuse texts that are not there once, changes of bad syntax, and tests not there."""
    for mutant in mutants:
        text = (ROOT / mutant.file).read_text()
        n_found = text.count(mutant.old)
        if n_found != 1:
            raise SystemExit(f"{mutant.file}: found {n_found} times: {mutant.old}")
        compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
        missing = [test for test in mutant.tests if not (ROOT / test).exists()]
        if missing:
            raise SystemExit(f"{mutant.file}: no such tests: {missing}")


def main() -> None:
    """Try the mutants; end with an error if one survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="*", help="try only mutants that contain one of these")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at the same time")
    asked = parser.parse_args()
    words = asked.word or [""]
    tried = [one for one in MUTANTS if any(word in one.file + one.new for word in words)]
    check_found(tried)
    began = time.perf_counter()
    with ThreadPoolExecutor(asked.jobs) as pool:
        noticed = []
        for mutant, killed in zip(tried, pool.map(_is_noticed, tried), strict=True):
            noticed.append(killed)
            print(f"{'killed  ' if killed else 'SURVIVED'} {mutant.file}: {mutant.new}", flush=True)
    print(f"{sum(noticed)} of {len(tried)} killed in {time.perf_counter() - began:.0f} s")
    if not all(noticed):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
