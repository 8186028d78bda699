"""Label DP of a whole vertical training, through the real parties: the effect of one label, and other refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from blindfit.algorithms.errors import ConfigError, PolicyRefused
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.privacy.gaussian import gaussian_delta
from blindfit.algorithms.protocols.taylor import TaylorParameters, gradient_noise
from blindfit.algorithms.statistics.vertical.loss import leverages
from tests.hints.following import refused
from tests.privacy.noise_checks import faults_of_normal
from tests.vertical.in_process import NOISE_KEY, Finished, finished, seated
from tests.world import World
from tests.world.vertical import bank_and_shops, with_numbers, write_rows

EPSILON, DELTA = 1.0, 1e-5
LABEL_DP = f"privacy.epsilon={EPSILON}"
SHORT = ("taylor.epochs=2", "split.test_fraction=0.1", "taylor.batch_rows=48")
ROWS = 120  # half of a training's time is the alignment of its rows
ALL_TRAINED = "split.test_fraction=0"  # then the one row of a rare value is in a batch, for any order
RANGE = (0.0, 10.0)


@pytest.fixture
def project(tmp_path: Path) -> World:
    return bank_and_shops(tmp_path, rows=ROWS)


# --- neighbours: labels that differ in one row ----------------------------------------------------------------


def all_features(made: Finished) -> np.ndarray:
    """(rows, columns of all parties) in steps, as they entered the training."""
    return np.hstack([made.seats[name].features for name in made.parameters.data_parties]).astype(object)


def flip(project: World, row: int, label: float) -> None:
    """Change the label of the `row`-th row by id, and publish it."""
    table = pyarrow.csv.read_csv(project.root / "bank.csv")
    ids, labels = table["id"].to_pylist(), table["bought"].to_numpy().copy()
    labels[ids.index(sorted(ids)[row])] = label
    place = table.column_names.index("bought")
    pyarrow.csv.write_csv(table.set_column(place, "bought", pa.array(labels)), project.root / "bank.csv")
    project.publish("bank")


@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_one_label_is_worth_one_draw_of_the_kept_noise_and_no_more(
    project: World, insecure_test_key: PrivateKey, model: str
) -> None:
    """The whole training, all epochs, is a function of X^T (b y) + kept noise. What a label changes there, the noise
    could have changed too; then every party ends with the same weights, bit for bit. That change is at most what
    the noise is made for."""
    job = (LABEL_DP, f"taylor.model={model}", *SHORT)
    if model == "linear":
        with_numbers(project, np.random.default_rng(0).normal(5, 2, ROWS), RANGE)
        flip(project, 0, -1e9)  # far outside: clipped
    first = finished(project, *job, key=insecure_test_key, session="one")
    rows, parameters, plan = all_features(first), first.parameters, first.plan
    squares = np.sum(rows * rows, axis=1)
    row = max((int(i) for i in plan.train), key=lambda i: squares[i])
    batch = next(number for number, batch in enumerate(plan.batches) if row in batch)
    before = first.seats["bank"].label_terms
    assert before is not None
    sign = 1 if before[row] > 0 else -1
    other = 1e9 * sign if model == "linear" else float(sign > 0)  # label terms are -b y
    flip(project, row, other)
    apart = finished(project, *job, key=insecure_test_key, session="two")
    after = apart.seats["bank"].label_terms
    assert after is not None
    (changed,) = np.flatnonzero(after != before)
    assert changed == row
    assert apart.weights() != first.weights()

    change = (before[row] - after[row]) * rows[row]  # exact: Python integers
    starts = np.cumsum([0, *parameters.columns])

    def instead(key: bytes, of: TaylorParameters, where: tuple[str, int, int], columns: int) -> list[int]:
        drawn, place = gradient_noise(key, of, where, columns), of.data_parties.index(where[0])
        own = change[starts[place] : starts[place + 1]] if where[2] == batch else [0] * columns
        return [a + int(b) for a, b in zip(drawn, own, strict=True)]

    together = finished(project, *job, key=insecure_test_key, session="three", noise=instead)
    assert together.weights() == first.weights()
    assert_covered(parameters, rows[plan.train], change, model)


def assert_covered(parameters: TaylorParameters, rows: np.ndarray, change: np.ndarray, model: str) -> None:
    """Check that the noise as drawn covers the change; `rows` are all that could have been the changed row."""
    grid, cross = parameters.grid, {"logistic": 1 / 2, "linear": 1.0}[model]
    longest = max(int(square) for square in np.sum(rows * rows, axis=1)) ** 0.5
    worst = 2 * cross * longest / 2**grid.feature_bits
    assert float(np.sum(change * change)) ** 0.5 / 2**grid.gradient_bits <= worst * (1 + 1e-9)
    assert gaussian_delta(parameters.kept_noise_std / worst, EPSILON) <= DELTA
    assert gaussian_delta(parameters.kept_noise_std / (1.01 * worst), EPSILON) > DELTA  # no more noise than necessary
    kept = replace(parameters, noise_std=0.0)
    drawn = np.array(gradient_noise(NOISE_KEY, kept, ("shop-a", 1, 0), 4000), dtype=np.float64)
    assert faults_of_normal(drawn / 2.0**grid.gradient_bits, parameters.kept_noise_std) == []
    assert parameters.noise_std == 1.0  # fresh, on top of it


# --- what protects features stays on ---------------------------------------------------------------------------


def with_a_rare_value(project: World) -> None:
    table = pyarrow.csv.read_csv(project.root / "shop-a.csv")
    rare = (np.arange(ROWS) == 0) * 1.0
    pyarrow.csv.write_csv(table.append_column("rare", pa.array(rare)), project.root / "shop-a.csv")


def worst_leverage(project: World, *overrides: str) -> float:
    made = seated(project, LABEL_DP, ALL_TRAINED, *overrides)
    columns = made.seats["shop-a"].features.astype(float)
    return max(float(leverages(columns[batch]).max()) for batch in made.plan.batches)


def test_under_label_dp_rows_that_stand_out_are_shortened(project: World) -> None:
    with_a_rare_value(project)
    unsafe = "taylor.unsafe=['leverage']"
    assert worst_leverage(project) < 0.55 < 0.8 < worst_leverage(project, unsafe)


@pytest.mark.parametrize(
    ("overrides", "flag", "said"),
    [
        (["taylor.gradient_noise=0"], "no-gradient-noise", "gradient noise"),
        (["taylor.batch_rows=14"], "leverage", "too many for a batch of"),
    ],
)
def test_under_label_dp_what_features_need_is_refused_without_its_flag(
    project: World, overrides: list[str], flag: str, said: str
) -> None:
    with_a_rare_value(project)
    allowed = f"taylor.unsafe=['{flag}']"
    with pytest.raises(PolicyRefused, match=said):
        seated(project, LABEL_DP, ALL_TRAINED, *overrides)
    made = seated(project, LABEL_DP, ALL_TRAINED, *overrides, allowed, session="s2")
    assert (made.parameters.noise_std == 0) == (flag == "no-gradient-noise")
    assert made.parameters.kept_noise_std > 0


@pytest.mark.parametrize("flag", ["no-jitter", "label-bits", "small-hold-out"])
def test_flags_of_rules_that_epsilon_replaces_do_nothing(project: World, flag: str) -> None:
    with pytest.raises(ConfigError, match=f"{flag} does nothing with privacy.epsilon"):
        seated(project, LABEL_DP, f"taylor.unsafe=['{flag}']")


@pytest.mark.parametrize(
    ("party", "line", "said"),
    [
        ("bank", "label_range = [0.0, 1.0]", "label_range: does nothing with binary labels, remove it"),
        ("shop-a", "label_range = [0.0, 1.0]", "label_range: does nothing here, remove it"),
    ],
)
def test_a_range_of_what_is_no_number(project: World, party: str, line: str, said: str) -> None:
    project.edit(f"{party}.toml", 'id = "id"\n', f'id = "id"\n{line}\n')
    with pytest.raises(ConfigError, match=said):
        seated(project)


def test_rows_of_persons_have_no_label_dp_of_rows(project: World) -> None:
    project.edit("bank.toml", 'row_is = "a client"', 'person = "x0"')
    with pytest.raises(
        ConfigError, match=r"datasets\.rows\.person: a vertical training with privacy\.epsilon protects rows"
    ):
        seated(project, LABEL_DP)


@pytest.mark.parametrize("test_labels", [0.0, 1.0])
def test_one_class_alone_ends_no_job_under_label_dp(
    project: World, insecure_test_key: PrivateKey, test_labels: float
) -> None:
    """Nobody may learn for free whether the rows of some split are all of one class."""
    job = (LABEL_DP, *SHORT, "taylor.epochs=1", "split.test_fraction=0.2")
    plan = finished(project, *job, key=insecure_test_key, session="one").plan
    labels = np.full(ROWS, int(test_labels))
    labels[plan.train] = 1 - int(test_labels)
    table = pyarrow.csv.read_csv(project.root / "bank.csv")
    ids = table["id"].to_pylist()
    by_id = dict(zip(sorted(ids), labels.tolist(), strict=True))
    column = pa.array([by_id[i] for i in ids])
    pyarrow.csv.write_csv(
        table.set_column(table.column_names.index("bought"), "bought", column), project.root / "bank.csv"
    )
    project.publish("bank")
    made = finished(project, *job, key=insecure_test_key, session="two")
    trained = made.seats["bank"].label_terms[plan.train]  # type: ignore[index]
    assert set(np.sign(trained)) == {np.sign(2 * test_labels - 1)}


# --- labels that are numbers -----------------------------------------------------------------------------------


def test_numbers_without_a_public_range_are_refused_before_the_session(project: World) -> None:
    with_numbers(project, np.arange(ROWS) * 1.0)
    with refused("set datasets.{}.label_range = [0.0, 100.0], or another range; choose it without looking at ") as told:
        seated(project, LABEL_DP, "taylor.model=linear")
    assert "datasets.rows.label_range is missing" in told.text
    assert told.options == {"datasets.rows.label_range": [0.0, 100.0]}
    project.edit("bank.toml", "[datasets.rows]\n", "[datasets.rows]\nlabel_range = [0.0, 100.0]\n")
    seated(project, LABEL_DP, "taylor.model=linear")


def test_under_label_dp_nothing_but_the_range_scales_labels(project: World) -> None:
    """A mean or a deviation of the labels would be released in addition."""
    with_numbers(project, np.array([-50.0, 0.0, 5.0, 10.0, 50.0] * (ROWS // 5)), RANGE)
    y = seated(project, LABEL_DP, "taylor.model=linear").seats["bank"].y
    assert y is not None
    assert sorted(set(y.tolist())) == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("label_range", [None, (0.0, 10.0)])
def test_without_label_dp_one_label_far_out_ends_no_job(
    project: World, label_range: tuple[float, float] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody may learn of it by a refusal; only the party's own operator is warned."""
    write_rows(project, 600)
    labels = np.random.default_rng(0).uniform(0, 10, 600)
    labels[7] = 1e9
    with_numbers(project, labels, label_range)
    made = seated(project, "taylor.model=linear", ALL_TRAINED, "taylor.validation_fraction=0")
    y = made.seats["bank"].y
    assert y is not None
    assert np.abs(y).max() == 8.0 if label_range is None else np.abs(y).max() < 2.0
    said = capsys.readouterr().out
    assert "labels far out are clipped" in said
    assert "rows=1" in said
    assert "1e9" not in said
