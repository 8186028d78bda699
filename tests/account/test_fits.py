"""A fit whose weights or gradients are opened is one model on every row that trains, at every data party."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, DataError, LedgerUnavailable, PolicyRefused
from blindfit.algorithms.statistics.vertical.score_leaks import MODEL_BITS, SCORE_BITS
from blindfit.parties.falcon import data_party
from blindfit.parties.snapshots.people import unpack
from blindfit.parties.store.account import Disclosure
from blindfit.parties.vertical.scored_rows import OPENED_FIT, SCORES, ScoreQuota
from tests.falcon.stopping import stopped_after
from tests.hints.following import refused
from tests.vertical.in_process import seated
from tests.world import World
from tests.world.vertical import DATA_PARTIES, bank_and_shops, bank_and_shops_in_shares

ROWS = 300
SHOPS = ("shop-a", "shop-b")
QUICK = {"security": "semi-honest", "batch_rows": 1000, "validation_fraction": 0}
MOST_OF_A_ROW = "models_per_row: some of these rows have had scores of 1 model,"


def with_columns(world: World, count: int) -> World:
    """Give each data party this many columns; nobody has allowed solving scores for them."""
    draw = np.random.default_rng(11)
    for name in DATA_PARTIES:
        table = world.table(name)
        world.write_table(name, table | {f"x{j}": draw.normal(size=len(table["id"])) for j in range(3, count)})
    world.set("datasets.rows.models_per_row", None, "bank")
    world.set("datasets.rows.models_per_row", None if count >= 4 else 0, *SHOPS)
    return world


def in_shares(root: Path, columns: int = 4) -> World:
    made = bank_and_shops_in_shares(root, rows=ROWS, epochs=2, falcon=QUICK, split={"test_fraction": 0})
    return with_columns(made, columns)


def under_taylor(root: Path, columns: int = 4) -> World:
    return with_columns(bank_and_shops(root, rows=ROWS), columns)


def fits(world: World, name: str) -> list[Disclosure]:
    with world.store(name) as store:
        return [entry for entry in store.reader().disclosures(subject="scores") if entry.event == OPENED_FIT]


def checks(world: World, name: str, level: str, *options: str) -> str:
    """Return what `blindfit check` finds about a party at a level."""
    found = world.check(*options)
    return " ".join(one.text for one in found if (one.level, one.about) == (level, name))


def publish_all(world: World) -> None:
    for name in DATA_PARTIES:
        world.publish(name)


# --- falcon ----------------------------------------------------------------------------------------------------


def test_one_training_and_its_predictions_are_one_model_and_another_training_is_refused(tmp_path: Path) -> None:
    """A row with four columns allows one model."""
    world = in_shares(tmp_path)
    first = world.run().id
    for name in DATA_PARTIES:
        (entry,) = fits(world, name)
        assert entry.learner == ",".join(sorted(set(DATA_PARTIES) - {name}))
        assert entry.session == first
        assert 6 <= entry.bits <= 16
        assert unpack(entry.people).sum() == ROWS
    again = world.run().id  # answered by the first
    for session in (first, again):
        world.run(f'predict.session="{session}"', job="predict.toml")
    assert [len(fits(world, name)) for name in DATA_PARTIES] == [1, 1, 1]
    with world.store("shop-a") as store:
        assert sum(entry.event == SCORES for entry in store.reader().disclosures(subject="scores")) == 1

    assert not checks(world, "shop-a", "refuses")
    assert "the same model again, and nothing is computed" in checks(world, "answered", "ok")
    publish_all(world)
    assert MOST_OF_A_ROW in checks(world, "shop-a", "refuses")
    with pytest.raises(PolicyRefused, match=MOST_OF_A_ROW):
        world.run()
    assert not checks(world, "shop-a", "refuses", 'falcon.weights="shared"')
    world.run('falcon.weights="shared"')
    for name in DATA_PARTIES:
        done = world.blindfit("ledger", f"{name}.toml", "--reset-account", "rows", "--reason", "a new year")
        assert done.returncode == 0, done.stderr
    world.run()


@pytest.fixture(scope="module")
def opened_and_lost(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A training whose weights were opened, and which the bank then claims it could not store."""
    world = in_shares(tmp_path_factory.mktemp("lost"))

    def lost(*_: object) -> None:
        raise DataError("the disk is gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_party, "write_part", lost)
        with pytest.raises(BlindfitError):
            world.run()
    (session,) = (path.name for path in (world.root / "state/bank/checkpoints").iterdir())
    return world.root, session


def test_weights_of_a_training_that_is_resumed_at_its_end_are_the_same_model(
    opened_and_lost: tuple[Path, str], tmp_path: Path
) -> None:
    world, session = World(opened_and_lost[0]).copied_to(tmp_path / "all"), opened_and_lost[1]
    resumed = world.run(f'falcon.resume="{session}"').id
    assert [len(fits(world, name)) for name in DATA_PARTIES] == [1, 1, 1]
    world.run(f'predict.session="{resumed}"', job="predict.toml")


@pytest.mark.parametrize("deviates", DATA_PARTIES)
def test_a_party_that_resumes_a_training_with_other_columns_gets_no_second_model_for_nothing(
    deviates: str, opened_and_lost: tuple[Path, str], tmp_path: Path
) -> None:
    """The party claims to have kept no epoch, so all epochs are computed again, from any columns that it sends."""
    world, session = World(opened_and_lost[0]).copied_to(tmp_path / "all"), opened_and_lost[1]
    for kept in (world.root / f"state/{deviates}/checkpoints/{session}").glob("epoch-*.json"):
        kept.unlink()
    world.set("datasets.rows.models_per_row", "unlimited", deviates)
    with pytest.raises(PolicyRefused, match=MOST_OF_A_ROW):
        world.run(f'falcon.resume="{session}"')
    world.set("datasets.rows.models_per_row", "unlimited", *DATA_PARTIES)
    world.run(f'falcon.resume="{session}"')
    assert [len(fits(world, name)) for name in DATA_PARTIES] == [2, 2, 2]


def test_a_training_that_was_lost_before_it_opened_a_weight_is_one_model(tmp_path: Path) -> None:
    world = in_shares(tmp_path)
    session = stopped_after(1, world)
    assert [fits(world, name) for name in DATA_PARTIES] == [[], [], []]
    resumed = world.run(f'falcon.resume="{session}"').id
    world.run(f'predict.session="{resumed}"', job="predict.toml")
    assert [len(fits(world, name)) for name in DATA_PARTIES] == [1, 1, 1]


def test_weights_that_stay_in_shares_are_no_model_of_a_row(tmp_path: Path) -> None:
    world = in_shares(tmp_path)
    world.run('falcon.weights="shared"')
    assert [fits(world, name) for name in DATA_PARTIES] == [[], [], []]


def test_no_weight_is_opened_before_every_data_party_has_counted_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, count = in_shares(tmp_path), ScoreQuota.count_fit

    def full_at_one_party(self: ScoreQuota, *arguments: object) -> None:
        if self._settings.name == "shop-a":
            raise LedgerUnavailable("the disk is full")
        count(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ScoreQuota, "count_fit", full_at_one_party)
    with pytest.raises(LedgerUnavailable):
        world.run()
    assert not list(world.root.glob("state/*/models/*/model.json"))
    assert not fits(world, "shop-a")


# --- taylor ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [4, 3])
def test_the_same_job_on_the_same_snapshots_is_the_same_model_and_any_other_is_another(
    columns: int, tmp_path: Path
) -> None:
    """Shops with three columns give no scores: a limit is never below one training.

    For other options the key node draws other noise, even if they differ only a little.
    """
    world = under_taylor(tmp_path, columns)
    without_test_rows = "split.test_fraction=0"
    assert not checks(world, "bank", "refuses", without_test_rows)
    seated(world, without_test_rows, session="first")
    assert not checks(world, "bank", "refuses", without_test_rows)
    seated(world, without_test_rows, session="again")
    for name in DATA_PARTIES:
        (entry,) = fits(world, name)
        assert entry.bits == SCORE_BITS
    others = ["taylor.batch_rows=100", "taylor.validation_fraction=0.2", "taylor.l2=0.0100001", "taylor.epochs=9"]
    for number, option in enumerate(others):
        assert MOST_OF_A_ROW in checks(world, "bank", "refuses", without_test_rows, option)
        with pytest.raises(PolicyRefused, match=MOST_OF_A_ROW):
            seated(world, without_test_rows, option, session=f"other-{number}")
    publish_all(world)
    assert MOST_OF_A_ROW in checks(world, "bank", "refuses", without_test_rows)
    with pytest.raises(PolicyRefused, match=MOST_OF_A_ROW):
        seated(world, without_test_rows, session="other-snapshot")


def test_label_dp_is_no_promise_about_features_so_its_gradients_count(tmp_path: Path) -> None:
    world = under_taylor(tmp_path)
    seated(world, "privacy.epsilon=1.0", session="first")
    assert [len(fits(world, name)) for name in DATA_PARTIES] == [1, 1, 1]


def test_without_the_key_nodes_noise_a_fit_reveals_a_whole_row(tmp_path: Path) -> None:
    world = under_taylor(tmp_path)
    seated(world, "taylor.gradient_noise=0", "taylor.unsafe=['no-gradient-noise']", session="first")
    assert [fits(world, name)[0].bits for name in DATA_PARTIES] == [MODEL_BITS] * 3  # the limit of one model


@pytest.mark.parametrize("lifted", DATA_PARTIES)
def test_each_data_party_has_its_own_limit_which_its_operator_may_lift(lifted: str, tmp_path: Path) -> None:
    world = under_taylor(tmp_path)
    world.set("datasets.rows.models_per_row", "unlimited", *(set(DATA_PARTIES) - {lifted}))
    seated(world, "split.test_fraction=0", session="first")
    with pytest.raises(PolicyRefused, match=f"{lifted} refuses the job: {MOST_OF_A_ROW}"):
        seated(world, "split.test_fraction=0", "taylor.batch_rows=100", session="second")
    assert [len(fits(world, name)) for name in DATA_PARTIES] == [1, 1, 1]  # nobody was charged
    world.set("datasets.rows.models_per_row", "unlimited", lifted)
    seated(world, "split.test_fraction=0", "taylor.batch_rows=100", session="third")


def test_the_ledger_shows_the_row_of_which_most_was_revealed_and_its_limits(tmp_path: Path) -> None:
    world = in_shares(tmp_path, columns=9)
    first = world.run().id
    world.run(f'predict.session="{first}"', job="predict.toml")
    (fit,) = fits(world, "shop-a")
    done = world.blindfit("ledger", "shop-a.toml")
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "(no population) each row's score, rows 1 model 2 models 1 model" in lines
    bits = max(fit.bits, SCORE_BITS)  # a fit and its scores are one model
    assert f"(no population) {bits:.0f} bits {2 * MODEL_BITS} bits {2 * MODEL_BITS - bits:.0f} bits" in lines


# --- what check says of it -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_discrete", [False, True])
def test_check_refuses_rows_that_hold_too_little_for_scores_as_publishing_does(
    is_discrete: bool, tmp_path: Path
) -> None:
    world = bank_and_shops(tmp_path, rows=ROWS)
    if is_discrete:
        world.columns("shop-a", **{f"x{j}": np.arange(ROWS) // (j + 1) % 5 for j in range(4)})
    world.set("datasets.rows.models_per_row", None, "shop-a")
    found = checks(world, "shop-a", "refuses")
    assert "a party that gets scores could compute its features" in found
    with pytest.raises(BlindfitError, match="a party that gets scores could compute its features"):
        world.publish("shop-a")
    world.set("datasets.rows.models_per_row", 0, "shop-a")
    assert "no scores of rows are given: have the job set split.test_fraction = 0" in checks(world, "shop-a", "refuses")
    assert not checks(world, "shop-a", "refuses", "split.test_fraction=0")
    world.publish("shop-a")
    with refused("no scores of {} are given: have the job set split.test_fraction = 0 to train without them"):
        seated(world, session="s1")
    seated(world, "split.test_fraction=0", session="s2")
