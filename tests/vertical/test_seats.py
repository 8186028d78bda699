"""The roles of parties in a training, as their job and their rows make them: bounds, jitter, a resumed order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from blindfit.algorithms.errors import ConfigError, DataError, PolicyRefused
from blindfit.algorithms.protocols.taylor import DataSeat
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.taylor.data_party import Taylor
from blindfit.parties.taylor.parameters import row_bound
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.seats import refuse_dataset
from tests.privacy.noise_checks import FALSE_ALARM
from tests.vertical.in_process import Seated, seated
from tests.world import World
from tests.world.vertical import COLUMNS, bank_and_shops, write_rows

ROWS = 120  # half of the time is their alignment
MANY = 240  # for a law
DATA_PARTIES = ("bank", "shop-a", "shop-b")
ALL_COLUMNS = len(DATA_PARTIES) * COLUMNS + 1  # and the intercept
LABEL_DP = "privacy.epsilon=1.0"
ALL_TRAINED = "split.test_fraction=0"  # then scales do not depend on the secret order of the rows


@pytest.fixture
def project(tmp_path: Path) -> World:
    return bank_and_shops(tmp_path, rows=ROWS)


def test_a_key_node_with_rows_takes_no_seat() -> None:
    refuse_dataset(Member("keys", "key-node", "", ""))
    with pytest.raises(PolicyRefused, match="keys refuses the job: dataset: a key node has no dataset"):
        refuse_dataset(Member("keys", "key-node", "", "loans"))


# --- label DP: no row of all parties is longer than R ---------------------------------------------------


@pytest.mark.parametrize("norm_bound", [2.0, 1.25])
@pytest.mark.parametrize("columns", [(4, 3, 3), (1, 1), (7, 1, 30, 2), (5,)])
def test_the_parties_bounds_make_up_one(norm_bound: float, columns: tuple[int, ...]) -> None:
    job = TaylorJob.model_validate({"privacy": {"epsilon": 1.0}, "taylor": {"norm_bound": norm_bound}})
    parts = [row_bound(job, own) for own in columns]
    assert row_bound(job, sum(columns)) == norm_bound * sum(columns) ** 0.5
    assert sum(part**2 for part in parts) == pytest.approx(row_bound(job, sum(columns)) ** 2)


@pytest.mark.parametrize(
    ("overrides", "norm_bound"),
    [(["taylor.norm_bound=0.6"], 0.6), ([], 1.25)],
    ids=["given", "default"],
)
def test_label_dp_shortens_every_row_of_all_parties_to_the_bound(
    project: World, overrides: list[str], norm_bound: float
) -> None:
    """The noise covers one label of a row of norm R. Every party cuts its part of a row to its own part of R."""
    made = seated(project, LABEL_DP, ALL_TRAINED, *overrides)
    bound = norm_bound * ALL_COLUMNS**0.5 * 2**FEATURE_BITS
    blocks = [made.seats[name].features for name in DATA_PARTIES]
    assert sum(made.parameters.columns) == ALL_COLUMNS
    for block in blocks:
        own = bound * (block.shape[1] / ALL_COLUMNS) ** 0.5
        assert 0.999 * own < norms(block).max() <= own  # some row reached it: the rows of the project are longer
    assert 0.999 * bound < norms(np.hstack(blocks)).max() <= bound


def norms(rows: np.ndarray) -> np.ndarray:
    lengths: np.ndarray = np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1))
    return lengths


@pytest.mark.parametrize("party", ["bank", "shop-a"])
def test_label_dp_of_rows_is_not_promised_of_persons(project: World, party: str) -> None:
    """A person with three rows would have three times the epsilon of the ledger."""
    project.set("datasets.rows.person", "name", party)
    project.set("datasets.rows.quasi_identifiers", None, party)
    if party == "bank":
        project.set("datasets.rows.row_is", None, party)
    with pytest.raises(
        ConfigError, match=r"^datasets\.rows\.person: a vertical training with privacy\.epsilon protects"
    ):
        seated(project, LABEL_DP)
    assert project.ledger("bank") == []
    seated(project)


# --- jitter ---------------------------------------------------------------------------------------------


def jitter_of(made: Seated) -> np.ndarray:
    """Return what the active party added to its labels' terms."""
    bank, grid = made.seats["bank"], made.parameters.grid
    assert bank.y is not None  # the active party's
    plain = grid.label_terms(bank.y, np.zeros(len(bank.y)))
    jitter: np.ndarray = (bank.label_terms - plain) * 2.0**-grid.residual_bits
    return jitter


@pytest.mark.parametrize(("overrides", "std"), [([], 0.25), (["taylor.jitter=1.5"], 1.5)], ids=["default", "given"])
def test_labels_enter_with_the_jitter_of_the_job(project: World, overrides: list[str], std: float) -> None:
    """Squares of n normal numbers add up to a chi-square of n. Three verdicts, each wrong once in three million: the
    test fails by chance at most once in a million."""
    write_rows(project, MANY)
    scaled = jitter_of(seated(project, *overrides)) / std
    squares = float((scaled**2).sum())
    verdicts = [stats.chi2.sf(squares, MANY), stats.chi2.cdf(squares, MANY), stats.kstest(scaled, "norm").pvalue]
    assert min(verdicts) > FALSE_ALARM / 3


def test_under_label_dp_the_kept_noise_takes_the_place_of_jitter(project: World) -> None:
    assert not jitter_of(seated(project, LABEL_DP)).any()


# --- a training that is resumed ---------------------------------------------------------------------------


def test_a_resumed_training_has_the_order_and_the_jitter_that_it_began_with(project: World) -> None:
    begun, resumed = seated(project), seated(project, "taylor.resume='s1'", session="s2")
    for name in DATA_PARTIES:
        assert is_same(begun.seats[name], resumed.seats[name])


@pytest.fixture
def jitters(monkeypatch: pytest.MonkeyPatch) -> list[dict[int, float]]:
    """Jitter of each person in each training from now on, by the digest that the active party knows."""
    found: list[dict[int, float]] = []
    drawn_for = Taylor.draw_jitter

    def noted(method: Taylor, rows: PartyRows, common: PartyRows) -> Any:
        drawn = drawn_for(method, rows, common)
        assert drawn is not None
        found.append(dict(zip(method._people(common).tolist(), drawn.tolist(), strict=True)))
        return drawn

    monkeypatch.setattr(Taylor, "draw_jitter", noted)
    return found


@pytest.mark.parametrize("overrides", [(), ("split.test_fraction=0.3",), ("taylor.batch_rows=64",)])
def test_a_person_has_one_jitter_in_all_trainings(
    project: World, overrides: tuple[str, ...], jitters: list[dict[int, float]]
) -> None:
    """Two draws for one label would average out. The partner chooses which rows are common, and so their order."""
    seated(project)
    file = project.root / "shop-a.csv"
    header, *rows = file.read_text().splitlines()
    file.write_text("\n".join([header, *rows[30:]]) + "\n")
    project.publish("shop-a")
    seated(project, *overrides, 'taylor.unsafe=["label-bits"]', session="s2")  # two layouts of batches
    one, other = jitters
    assert 60 < len(other) < len(one) == ROWS
    assert other == {person: one[person] for person in other}
    assert len(set(one.values())) == ROWS


def test_a_person_has_the_same_jitter_in_a_new_snapshot_and_another_for_another_label(
    project: World, jitters: list[dict[int, float]]
) -> None:
    """A new draw for the same label would average out, and the same draw for both labels would cancel."""
    seated(project)
    table = project.table("bank")
    labels = [1 - label if number < 40 else label for number, label in enumerate(table["bought"])]
    project.columns("bank", bought=labels)
    columns = project.table("bank")
    project.write_table("bank", {name: values[::-1] for name, values in columns.items()})  # in another order
    project.publish("bank")
    seated(project, session="s2")
    one, other = jitters
    assert one.keys() == other.keys()
    changed = [person for person in one if one[person] != other[person]]
    assert len(changed) == 40
    assert not set(one.values()) & {other[person] for person in changed}  # each of 2^52 values


def test_another_label_column_or_model_is_another_draw(project: World, jitters: list[dict[int, float]]) -> None:
    """A column that has other labels for a few people only would give theirs away, by the difference."""
    project.columns("bank", sold=project.table("bank")["bought"])
    seated(project)
    project.set("datasets.rows.label", "sold", "bank")
    project.publish("bank")
    seated(project, session="s2")
    project.set("datasets.rows.label_kind", "number", "bank")
    project.set("datasets.rows.label_range", [-1.0, 1.0], "bank")  # then -1 is -1 and 1 is 1 in both models
    project.columns("bank", sold=2 * project.table("bank")["bought"] - 1)
    project.publish("bank")
    seated(project, "taylor.model=linear", session="s3")
    one, column, model = (set(drawn.values()) for drawn in jitters)
    assert not one & column
    assert not column & model


def test_another_size_of_jitter_is_another_draw(project: World) -> None:
    """One draw in two sizes gives the label: twice the one less the other."""
    one, other = jitter_of(seated(project)), jitter_of(seated(project, "taylor.jitter=0.5", session="s2"))
    assert np.isclose(2 * np.sort(one), np.sort(other), atol=1e-5).sum() <= 2


def is_same(one: DataSeat, other: DataSeat) -> bool:
    return np.array_equal(one.features, other.features) and np.array_equal(one.label_terms, other.label_terms)


@pytest.mark.parametrize("party", ["bank", "shop-a"])
def test_a_training_is_resumed_on_the_rows_that_it_began_with(project: World, party: str) -> None:
    """Kept positions would point at other rows, and a changed label would be released in addition to the old one."""
    begun = seated(project)
    table = project.root / f"{party}.csv"
    header, first, *rows = table.read_text().splitlines()
    table.write_text("\n".join([header, *rows, first]) + "\n")  # the same rows in another order
    project.publish(party)
    resumed = seated(project, "taylor.resume='s1'", session="s2")
    assert is_same(begun.seats[party], resumed.seats[party])
    project.publish(party, remove_older=True)
    with pytest.raises(DataError, match="the snapshot that s1 read no longer exists here"):
        seated(project, "taylor.resume='s1'", session="s3")
