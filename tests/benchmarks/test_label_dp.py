"""The label-DP benchmark: data, arms, the ensemble of networks, the audit, and what the report concludes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.neural_network._stochastic_optimizers import AdamOptimizer

from benchmarks.label_dp import (
    __main__ as label_dp,
)
from benchmarks.label_dp import (
    audit as label_dp_audit,
)
from benchmarks.label_dp import (
    data as label_dp_data,
)
from benchmarks.label_dp import (
    published as label_dp_published,
)
from benchmarks.label_dp import (
    runs as label_dp_runs,
)
from benchmarks.label_dp import (
    tables as label_dp_tables,
)
from benchmarks.label_dp.arms import ARMS, DELTA, NO_NOISE, OURS, Case, nearness, release
from benchmarks.label_dp.data import EPSILONS, Dataset
from benchmarks.label_dp.network import TOGETHER, Adam, Ensemble, TrainingSettings, first_weights, one_by_one, train
from benchmarks.label_dp.report import bold, exceptions, rivals_ahead
from benchmarks.label_dp.results import Results, outcome_of
from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid
from tests.benchmarks.differences import assert_gradients_are_of

DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture(scope="module")
def toy() -> Dataset:
    draw = np.random.default_rng(0)
    features = draw.random((400, 5))
    return Dataset(
        "Crime",
        features,
        np.round(features @ [0.4, 0.1, 0.2, 0.1, 0.2], 2),
        LabelGrid(0.0, 1.0, 1000),
        0.01,
        dict.fromkeys(EPSILONS, 0.3),
        {epsilon: epsilon / 3 for epsilon in EPSILONS},
    )


# --- data ------------------------------------------------------------------------------------------------


def test_the_data_are_the_published_ones() -> None:
    if not DATA.exists():
        pytest.skip("the data sets are not on this machine")
    crime, housing = label_dp_data.crime(DATA), label_dp_data.housing(DATA)
    assert crime.features.shape == (1994, 100)
    assert len(crime.split(0).train[1]) == 1595
    assert len(housing.split(0).train[1]) == 16_512
    assert np.isfinite(crime.features).all()
    for dataset in (crime, housing):
        on_grid = dataset.grid.reals(dataset.grid.steps(dataset.labels))
        np.testing.assert_allclose(on_grid, dataset.labels, atol=1.1e-5)  # Housing's ends are 0.14999 and 5.00001


def test_a_column_with_gaps_is_dropped_and_a_single_gap_filled(tmp_path: Path) -> None:
    file = tmp_path / label_dp_data.CRIME_FILE
    file.parent.mkdir()
    file.write_text(
        "state,county,community,communityname string,fold,a,OtherPerCap,gaps,ViolentCrimesPerPop\n"
        "1,?,?,x,1,0.1,0.2,?,0.5\n2,?,?,y,1,0.3,?,0.1,0.7\n3,?,?,z,1,0.4,0.6,0.2,0.9\n"
    )
    crime = label_dp_data.crime(tmp_path)
    np.testing.assert_allclose(crime.features, [[0.1, 0.2], [0.3, 0.4], [0.4, 0.6]])
    np.testing.assert_allclose(crime.labels, [0.5, 0.7, 0.9])


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"communities\.data does not exist"):
        label_dp_data.crime(tmp_path)


def test_splits_differ_by_seed_and_cover_all_rows(toy: Dataset) -> None:
    train, test = toy.split_rows(1)
    assert sorted([*train, *test]) == list(range(400))
    assert len(test) == 80
    assert set(test) != set(toy.split_rows(2)[1])


@pytest.mark.parametrize("name", ["Crime", "Housing", "Criteo"])
def test_published_tables_are_whole(name: str) -> None:
    table = label_dp_published.table(name)
    assert tuple(table) == (*EPSILONS, math.inf)
    assert all(set(row) == set(label_dp_published.COLUMNS) for row in table.values())


# --- arms ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arm", ARMS)
def test_an_arm_spends_its_epsilon_and_no_more(arm: str, toy: Dataset) -> None:
    fitted = release(Case(arm, 1.0), toy, toy.labels, 0).fitted
    assert 0.99 < fitted.epsilon <= 1.0
    assert fitted.epsilon_prior + fitted.mechanism.privacy_loss()[0] <= 1.0
    assert fitted.delta == (DELTA if arm == "gaussian" else 0.0)


def test_the_debiased_arm_has_the_same_outputs_and_the_right_mean(toy: Dataset) -> None:
    labels = np.full(20_000, 0.2)
    biased, debiased = (release(Case(arm, 2.0), toy, labels, 0) for arm in ("rp auto", "rp auto debiased"))
    np.testing.assert_array_equal(biased.steps, debiased.steps)
    error = debiased.labels.std() / math.sqrt(len(labels))
    assert abs(debiased.labels.mean() - 0.2) < 5 * error
    assert abs(biased.labels.mean() - 0.2) > 5 * error


@pytest.mark.parametrize("arm", ["rp", "rp auto", "rp-banded"])
def test_outputs_are_near_their_labels_as_often_as_the_formula_says(arm: str, toy: Dataset) -> None:
    labels = np.tile(toy.labels, 50)
    found = nearness(release(Case(arm, 1.5), toy, labels, 0), toy, labels)
    assert found is not None
    p = found.expected / found.labels
    assert found.labels > 1000
    assert abs(found.near - found.expected) <= 5 * math.sqrt(found.labels * p * (1 - p))


def test_a_true_prior_is_another_release(toy: Dataset) -> None:
    honest, leaking = (release(Case("rp", 1.0, varied), toy, toy.labels, 0) for varied in ("", "true prior"))
    assert honest.fitted.prior_mechanism == "laplace"
    assert leaking.fitted.prior_mechanism is None
    assert leaking.fitted.epsilon == pytest.approx(2 / 3)


# --- the audit -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_published_staircase_is_caught_and_ours_is_not(epsilon: float) -> None:
    noise = label_dp_audit.published_staircase(epsilon, 100_000)
    nearest = label_dp_audit.nearest(epsilon)
    assert nearest <= np.abs(noise).min() < 1.05 * nearest
    assert label_dp_audit.epsilon_at_least(noise, nearest) > epsilon
    assert label_dp_audit.epsilon_at_least(np.random.default_rng(1).laplace(0, 1 / epsilon, 100_000), nearest) < epsilon


def test_the_audit_finds_what_there_is() -> None:
    """Two uniform laws, of which one is ten times as often near zero."""
    draw = np.random.default_rng(0)
    noise = np.concatenate(
        (draw.choice([0.0, 9.0], 50_000, p=[0.5, 0.5]), draw.choice([0.75, 9.0], 50_000, p=[0.05, 0.95]))
    )
    assert math.log(10) - 0.1 < label_dp_audit.epsilon_at_least(noise, 0.1) < math.log(10)


# --- networks --------------------------------------------------------------------------------------------


def test_the_ensemble_trains_each_network_as_if_alone(toy: Dataset) -> None:
    split = toy.split(0)
    noise = np.random.default_rng(0).normal(size=(TOGETHER + 2, len(split.train[1])))
    labels = split.train[1] + 0.1 * noise
    settings = TrainingSettings(epochs=4, batch_rows=64)
    together = train(split.train[0], labels, split.test[0], settings, seed=5)
    alone = one_by_one(split.train[0], labels, split.test[0], settings, seed=5)
    assert np.abs(together[0] - together[1]).max() > 1e-3
    np.testing.assert_allclose(together, alone, atol=1e-4)


def test_gradients_are_those_of_the_loss() -> None:
    draw = np.random.default_rng(3)
    ensemble = Ensemble([draw.normal(size=(2, *weight.shape[-2:])) / 3 for weight in first_weights(5, seed=0)])
    x, y = draw.normal(size=(9, 5)), draw.normal(size=(2, 9, 1))

    def loss() -> float:
        """Return the loss of both networks, which share no parameter."""
        return float(np.square(ensemble.predict(x) - y).mean(axis=(1, 2)).sum())

    assert_gradients_are_of(loss, ensemble.parameters, ensemble.gradients(x, y)[0], draw)


def test_adam_takes_the_steps_of_scikit_learns() -> None:
    draw = np.random.default_rng(4)
    ours, theirs = (np.ones((3, 4)) for _ in range(2))
    adam, reference = Adam([ours], weight_decay=0.0), AdamOptimizer([theirs], learning_rate_init=0.01)
    for _ in range(5):
        gradient = draw.normal(size=(3, 4))
        reference.update_params([theirs], [gradient])
        adam.step([gradient.copy()], 0.01)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_weight_decay_is_added_to_the_gradient() -> None:
    decayed, plain = (np.full((2, 2), 3.0) for _ in range(2))
    gradient = np.array([[0.5, -0.2], [0.1, 0.3]])
    Adam([decayed], weight_decay=0.1).step([gradient.copy()], 0.01)
    Adam([plain], weight_decay=0.0).step([gradient + 0.1 * plain], 0.01)
    np.testing.assert_allclose(decayed, plain)


def test_the_rate_falls_as_published() -> None:
    text, code = TrainingSettings(), TrainingSettings(halving=True)
    assert [text.rate(epoch) for epoch in (0, 24, 25, 49)] == pytest.approx([1e-3, 1e-3, 1e-4, 1e-4])
    assert [code.rate(epoch) for epoch in (0, 9, 10, 49)] == pytest.approx([1e-3, 1e-3, 5e-4, 1e-3 / 16])


# --- the report ------------------------------------------------------------------------------------------


def test_bold_is_what_overlaps_the_best() -> None:
    arms = {"a": {"mean": 1.0, "std": 0.2}, "b": {"mean": 1.5, "std": 0.3}, "c": {"mean": 1.5, "std": 0.2}}
    assert bold(arms) == {"a", "b"}


def test_exceptions_are_found_and_only_they() -> None:
    arms = {arm: {"mean": 1.0, "std": 0.1} for arm in ARMS} | {arm: {"mean": 2.0, "std": 0.1} for arm in OURS}
    arms["rp debiased"] = {"mean": 1.05, "std": 0.1}
    arms["staircase"] = {"mean": 0.9, "std": 0.1}
    arms["gaussian"] = {"mean": 0.1, "std": 0.1}  # keeps a weaker promise, so it does not compete
    found = exceptions([{"epsilon": 1.0, "arms": arms}])
    assert [(e["rival"], e["ours"]) for e in found] == [("staircase", "rp debiased")]
    assert found[0]["behind"] == pytest.approx(0.15)


def test_a_single_seed_has_no_deviation_to_be_behind_by() -> None:
    arms = {arm: {"mean": mean, "std": 0.0} for mean, arm in enumerate(ARMS)}
    found = exceptions([{"epsilon": 1.0, "arms": arms}])
    assert found
    assert "A single seed does not show which mechanism is ahead" in rivals_ahead(
        "Crime", {"exceptions": found, "constant": {"mean": 9.0}}
    )


def test_no_seeds_are_refused() -> None:
    with pytest.raises(SystemExit, match="--seeds must be at least 1"):
        label_dp.main(["--seeds", "0"])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("docs") / "label_dp.md"
    path.write_text(f"before\n{label_dp_tables.BEGIN}\nold figures\n{label_dp_tables.END}\nafter\n")
    return path


def run(directory: Path, page: Path) -> dict[str, Any]:
    files = {"--results": directory / "results.jsonl", "--json": directory / "figures.json", "--docs": page}
    options = [str(part) for option in (*files.items(), ("--plot", directory)) for part in option]
    label_dp.main(["--quick", *options])
    result: dict[str, Any] = json.loads((directory / "figures.json").read_text())
    return result


def test_the_whole_benchmark_on_toy_data(
    toy: Dataset, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(label_dp_data, "crime", lambda _: toy)
    result = run(tmp_path, page)
    figures = result["datasets"]["Crime"]
    assert [row["epsilon"] for row in figures["rows"]] == [0.5, 8.0]
    assert all(set(row["arms"]) == set(ARMS) for row in figures["rows"])
    assert len(figures["rows"][0]["arms"]["laplace"]["per_seed"]) == 2
    assert figures["ensemble"]["largest_difference"] < 1e-5
    assert {sweep["varied"] for sweep in figures["sweeps"]} == {"half_width", "epsilon_prior", "true prior"}
    assert (tmp_path / "label-dp-crime.svg").stat().st_size > 10_000
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old figures" not in text
    explanation = " ".join(result["explanation"].split())
    assert explanation in " ".join(text.split())
    assert f"{figures['rows'][0]['arms']['laplace']['mean']:.4f}" in text
    assert explanation in " ".join(capsys.readouterr().out.split())

    def not_again(*_: object) -> None:
        raise AssertionError("a finished network was trained again")

    monkeypatch.setattr(label_dp_runs, "run_unit", not_again)
    assert run(tmp_path, page)["datasets"] == result["datasets"]


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ConfigError, match="no place for the figures"):
        label_dp_tables.put_into("a page\n", {"datasets": {}, "audit": [], "explanation": ""})


# --- what is kept ----------------------------------------------------------------------------------------


CASE = Case("rp", 1.0, "half_width", 0.5)


def test_kept_outcomes_are_found_again_bit_for_bit(toy: Dataset, tmp_path: Path) -> None:
    results, kept = Results(tmp_path / "new" / "results.jsonl", {"epochs": 3}), outcome_of(CASE, 4, 1 / 3)
    assert results.found(toy) == {}
    results.add(toy, [kept, outcome_of(Case(NO_NOISE, math.inf), 4, 0.25)])
    found = results.found(toy)
    assert found[4, CASE] == kept
    assert set(found) == {(4, CASE), (4, Case(NO_NOISE, math.inf))}


def test_a_line_that_a_killed_run_left_unfinished_is_ignored(toy: Dataset, tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl", {})
    results.add(toy, [outcome_of(CASE, seed, 0.5) for seed in range(2)])
    whole = results.path.read_bytes()
    results.path.write_bytes(whole[:-20])
    assert set(results.found(toy)) == {(0, CASE)}
    results.add(toy, [outcome_of(CASE, 2, 0.5)])
    assert set(results.found(toy)) == {(0, CASE), (2, CASE)}


def test_outcomes_of_other_settings_or_rows_are_not_found(toy: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    Results(path, {"epochs": 3}).add(toy, [outcome_of(CASE, 0, 0.5)])
    assert Results(path, {"epochs": 4}).found(toy) == {}
    assert Results(path, {"epochs": 3}).found(toy.standardised()) == {}
