"""Whole jobs on the same people: the revealed bits add up over snapshots, and stay below one limit."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.statistics.vertical.score_leaks import MODEL_BITS
from blindfit.parties.account.account import Account
from blindfit.parties.snapshots.people import join, pack, unpack
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.vertical.scored_rows import FIGURES
from tests.each_case import each_case
from tests.hints.following import refused
from tests.vertical.in_process import seated
from tests.world import World
from tests.world.files import write_csv
from tests.world.vertical import bank_and_shops, bank_and_shops_in_shares, write_rows

ROWS = 160
DAYS = 10


def revealed(world: World) -> tuple[float, float]:
    """Return the bits revealed about the bank's labels, and their limit."""
    account = Account.of(world.settings("bank"), "rows")
    with world.store("bank") as store:
        reader = store.reader()
        return account.spent(reader, "labels", account.label), account.label_limit(reader)


def publish_all(world: World) -> None:
    for name, role in world.roles.items():
        if role != "key-node":
            world.publish(name)


@pytest.mark.parametrize(("passives", "rows"), [(1, ROWS), (2, ROWS), (4, 2 * ROWS)])
def test_rows_that_are_published_and_trained_on_daily_stay_below_one_limit(
    passives: int, rows: int, tmp_path: Path
) -> None:
    """A layout counts the columns of all passive parties together. As many trainings fit as the limit allows."""
    shops = [f"shop-{letter}" for letter in "abcd"[:passives]]
    world = bank_and_shops(tmp_path, rows=rows, shops=shops)
    trained = 0
    for day in range(DAYS):
        publish_all(world)
        try:
            seated(world, session=f"day-{day}")
        except PolicyRefused as refused:
            assert refused.field == "label bits"  # noqa: PT017 - a day may pass or be refused
        else:
            trained += 1
        spent, limit = revealed(world)
        assert limit == rows / 4
        assert spent <= limit
    with world.store("bank") as store:
        entries = store.reader().disclosures(subject="labels")
    assert len({entry.session for entry in entries}) == trained
    assert {entry.learner for entry in entries} == {",".join(shops)}
    assert 1 <= trained < DAYS
    assert spent + spent / trained > limit


def test_the_same_people_in_another_snapshot_keep_their_jitter_and_their_new_layout_counts(
    tmp_path: Path,
) -> None:
    world = bank_and_shops(tmp_path, rows=ROWS)
    first = seated(world, session="first")
    spent, _ = revealed(world)
    table = world.table("bank")
    order = np.random.default_rng(7).permutation(ROWS)
    world.write_table(
        "bank",
        {name: np.append(column[order], column[:1]) for name, column in table.items()}
        | {
            "id": np.append(table["id"][order], "somebody else"),
            "name": np.append(table["name"][order], "somebody else"),
        },
    )
    world.publish("bank")
    second = seated(world, session="second")
    terms = [made.seats["bank"].label_terms for made in (first, second)]
    assert terms[0] is not None
    assert terms[1] is not None
    assert sorted(terms[0]) == sorted(terms[1])
    assert revealed(world) == (2 * spent, (ROWS + 1) / 4)


def test_a_new_person_has_a_label_to_reveal(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=ROWS)
    publish_all(world)
    write_rows(world, 2 * ROWS)
    publish_all(world)
    assert revealed(world) == (0, 2 * ROWS / 4)


def test_a_declared_rate_lowers_the_limit(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=ROWS)
    world.set("datasets.rows.label_rate", 0.01, "bank")
    world.publish("bank")
    _, limit = revealed(world)
    assert limit == pytest.approx(ROWS / 4 * 0.0808, rel=1e-3)
    with pytest.raises(PolicyRefused, match="label bits"):
        seated(world, session="s1")


def test_labels_that_are_declared_public_have_no_limit(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=ROWS)
    world.edit("bank.toml", 'population = "people"', "public = true")
    world.set("populations", None, "bank")
    seated(world, session="s1")
    checked = world.blindfit("check", "job.toml").stdout
    assert "declared public, and do not count" in " ".join(checked.split())
    with world.store("bank") as store:
        assert not store.reader().disclosures(subject="labels")


def test_a_population_that_is_named_later_has_the_account_of_its_people(tmp_path: Path) -> None:
    """A name that is removed again does not begin the account again either."""
    world = bank_and_shops(tmp_path, rows=ROWS)
    population = 'population = "people"'
    world.edit("bank.toml", population, "snapshot_every_h = 24")
    world.set("populations", None, "bank")
    seated(world, session="s1")
    before = revealed(world)
    assert before[0] > 0
    world.edit("bank.toml", "snapshot_every_h = 24", population)
    world.set("populations.people", {"epsilon": 3.0, "delta": 1e-5}, "bank")
    told = " ".join(world.blindfit("snapshot", "bank.toml", "rows").stdout.split())
    with world.store("bank") as store:
        entries = len(store.reader().disclosures(""))
    assert f"{entries} entries of its account are carried over" in told
    assert revealed(world) == before
    world.publish("bank")
    assert revealed(world) == before
    world.edit("bank.toml", population, "snapshot_every_h = 24")
    world.set("populations", None, "bank")
    world.publish("bank")
    assert revealed(world) == before


def test_scores_that_were_given_before_a_population_was_named_count_for_the_same_people(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=ROWS)
    world.publish("shop-a")
    with world.store("shop-a") as store, store.transaction() as transaction:
        account, some = Account.of(world.settings("shop-a"), "rows"), pack(np.arange(ROWS) % 3 == 0)
        transaction.add_disclosure(account.entry("scores", "", ["bank"], "scores", "a model", 11, people=some))
    table = world.table("shop-a")
    order = np.random.default_rng(3).permutation(ROWS)[: ROWS // 2]
    world.write_table("shop-a", {name: column[order] for name, column in table.items()})
    world.set("datasets.rows.population", "clients", "shop-a")
    world.set("populations.clients", {"epsilon": 3.0, "delta": 1e-5}, "shop-a")
    world.publish("shop-a")
    with world.store("shop-a") as store:
        (old,), (new,) = (store.reader().disclosures(name, "scores") for name in ("", "clients"))
        people = {name: join(store.reader().people(name)) for name in ("", "clients")}
    scored = people[""][unpack(old.people, len(people[""]))]
    assert set(people["clients"][unpack(new.people, len(people["clients"]))]) == set(scored) & set(people["clients"])
    assert new.bits == old.bits


def test_people_of_two_datasets_whom_one_model_has_scored_count_when_one_gets_the_population_of_the_other(
    tmp_path: Path,
) -> None:
    world, half = bank_and_shops(tmp_path, rows=ROWS), ROWS // 2
    table = world.table("shop-a")
    world.set("populations.clients", {"epsilon": 3.0, "delta": 1e-5}, "shop-a")
    world.set("datasets.rows.population", "clients", "shop-a")
    more = '\n[datasets.more]\nurl = "csv:more.csv"\nid = "id"\nfeatures = ["x0"]\nmodels_per_row = "unlimited"\n'
    world.path("shop-a.toml").write_text(world.path("shop-a.toml").read_text() + more)
    shutil.copy(world.path("shop-a.csv"), world.path("more.csv"))
    world.write_table("shop-a", {name: column[:half] for name, column in table.items()})
    write_csv(world.path("more.csv"), {name: column[half:] for name, column in table.items()})
    world.publish("shop-a")
    world.publish("shop-a", "more")
    with world.store("shop-a") as store, store.transaction() as transaction:
        for name in ("rows", "more"):
            account, everybody = Account.of(world.settings("shop-a"), name), pack(np.ones(half, np.bool_))
            transaction.add_disclosure(
                account.entry("scores", "t", ["bank"], "scores", "a model", 11, people=everybody)
            )
    text = world.path("shop-a.toml").read_text()
    world.path("shop-a.toml").write_text(text.replace(more, f'{more}population = "clients"\n'))
    world.publish("shop-a", "more")
    with world.store("shop-a") as store:
        (entry,) = store.reader().disclosures("clients", "scores")
    assert unpack(entry.people).sum() == ROWS


def test_a_dataset_that_was_public_is_published_before_a_job_reads_it_as_a_private_one(tmp_path: Path) -> None:
    """Nobody was counted among its people, so every training would be refused for labels that were never revealed."""
    world = bank_and_shops(tmp_path, rows=ROWS)
    world.set("populations", None, "bank")
    world.edit("bank.toml", 'population = "people"', "public = true")
    world.publish("bank")
    world.edit("bank.toml", "public = true", "snapshot_every_h = 24")
    with world.store("bank") as store:
        assert Snapshots(world.settings("bank"), world.root, store).current("rows") is None
    seated(world, session="s1")  # publishes it, as `blindfit run` does
    assert revealed(world)[1] == ROWS / 4


def test_other_people_have_no_account_yet_by_their_operators_word(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=ROWS)
    population = 'population = "people"'
    world.edit("bank.toml", population, "snapshot_every_h = 24")
    world.set("populations", None, "bank")
    seated(world, session="s1")
    world.edit("bank.toml", "snapshot_every_h = 24", population)
    world.set("populations.people", {"epsilon": 3.0, "delta": 1e-5}, "bank")
    assert world.blindfit("snapshot", "bank.toml", "rows", "--other-people").returncode == 0
    assert revealed(world)[0] == 0


@pytest.mark.parametrize("has_population", [True, False])
def test_an_operator_who_renames_the_label_is_told_that_its_limit_is_a_new_one(
    has_population: bool, tmp_path: Path
) -> None:
    world = bank_and_shops(tmp_path, rows=ROWS)
    if not has_population:
        world.edit("bank.toml", 'population = "people"', "snapshot_every_h = 24")
        world.set("populations", None, "bank")
    seated(world, session="s1")
    told = " ".join(world.blindfit("snapshot", "bank.toml", "rows").stdout.split())
    assert "a limit and a jitter of its own" not in told
    world.columns("bank", sold=world.table("bank")["bought"])
    world.set("datasets.rows.label", "sold", "bank")
    told = " ".join(world.blindfit("snapshot", "bank.toml", "rows").stdout.split())
    assert "published as bought before, and sold has a limit and a jitter of its own" in told
    assert revealed(world) == (0, ROWS / 4)


def test_an_operator_starts_the_account_again_with_a_reason(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=ROWS)
    seated(world, session="s1")
    assert revealed(world)[0] > 0
    refused = world.blindfit("ledger", "bank.toml", "--reset-account", "rows")
    assert refused.returncode == 2
    assert "needs --reason" in refused.stderr
    done = world.blindfit("ledger", "bank.toml", "--reset-account", "rows", "--reason", "new contract")
    assert done.returncode == 0, done.stderr
    assert revealed(world)[0] == 0
    shown = world.blindfit("ledger", "bank.toml").stdout
    assert "new contract" in shown
    assert "batch layout" in shown


@each_case(
    "options, says",
    [
        (["--reset-account", "rows", "--reason", "x", "--acknowledge", "y"], "--acknowledge does nothing"),
        (["--reset-account", "rows", "--reason", "x", "--export", "chain.jsonl"], "--export does nothing"),
        (["--reset-account", "rows", "--reason", "two\nlines"], "printable"),
        (["--reset-account", "rows", "--reason", "x" * 501], "printable"),
        (["--reason", "x"], "--reason does nothing"),
        (["--acknowledge", "x", "--reason", "y"], "--reason does nothing"),
        (["--verify", "--reason", "x"], "--reason does nothing"),
    ],
)
def test_options_that_do_not_go_together_are_refused_and_nothing_starts_again(
    options: list[str], says: str, bank: World
) -> None:
    refused = bank.blindfit("ledger", "bank.toml", *options)
    assert refused.returncode == 2
    assert says in refused.stderr
    with bank.store("bank") as store:
        assert not store.reader().disclosures()


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = bank_and_shops(tmp_path_factory.mktemp("bank"), rows=ROWS)
    world.publish("bank")
    return world


def test_figures_that_are_computed_again_count_again(tmp_path: Path) -> None:
    """An active party that claims to have lost an answer could send other columns, and get other figures."""
    world = bank_and_shops_in_shares(tmp_path, epochs=2, split={"test_fraction": 0.2})
    counted = []
    for forgotten in (False, False, True):
        if forgotten:
            for answers in world.root.glob("**/answers"):
                if "bank" in answers.parts[-2]:
                    shutil.rmtree(answers)
        world.run()
        with world.store("shop-a") as store:
            counted.append(sum(entry.event == FIGURES for entry in store.reader().disclosures(subject="scores")))
    assert counted == [1, 1, 2]


def test_check_says_of_a_full_account_what_run_does(tmp_path: Path) -> None:
    """The kept answer serves the same training; another training, or one on a new snapshot, is refused."""
    world = bank_and_shops_in_shares(tmp_path, epochs=2, split={"test_fraction": 0.0})
    world.run()
    fill_the_account(world)
    checked = world.blindfit("check", "job.toml")
    assert checked.returncode == 0, checked.stdout
    assert "finished before with the same draws, and adds nothing" in " ".join(checked.stdout.split())
    world.run()
    assert world.blindfit("check", "job.toml", "--set", "falcon.l2=0.02").returncode != 0
    with pytest.raises(PolicyRefused, match="with earlier trainings"):
        world.run("falcon.l2=0.02")
    world.publish("bank")
    checked = world.blindfit("check", "job.toml")
    assert checked.returncode != 0
    with pytest.raises(PolicyRefused, match="with earlier trainings"):
        world.run()


def test_check_says_of_a_taylor_account_without_room_for_an_end_what_run_does(tmp_path: Path) -> None:
    """A layout that was counted before is free; the place where a training ends is not."""
    world = bank_and_shops(tmp_path, rows=ROWS)
    seated(world, session="s1")
    fill_the_account(world, leave=3)
    checked = world.blindfit("check", "job.toml")
    assert "finished before with the same draws, and adds only its end, 2.0 bits" in " ".join(checked.stdout.split())
    seated(world, session="s2")
    checked = world.blindfit("check", "job.toml")
    assert checked.returncode != 0
    with pytest.raises(PolicyRefused, match="label bits"):
        seated(world, session="s3")
    seated(world, "taylor.patience=0", session="s4")


def fill_the_account(world: World, leave: float = 1) -> None:
    spent, limit = revealed(world)
    account = Account.of(world.settings("bank"), "rows")
    with world.store("bank") as store, store.transaction() as transaction:
        bits = limit - spent - leave
        transaction.add_disclosure(account.entry("labels", account.label, ["shop-a"], "weights", "another", bits))


def test_figures_of_test_rows_that_do_not_fit_are_refused_and_the_training_runs_without_them(tmp_path: Path) -> None:
    world = bank_and_shops_in_shares(tmp_path, epochs=2, split={"test_fraction": 0.2})
    world.set("datasets.rows.models_per_row", 0, "shop-a")
    world.publish("shop-a")
    with world.store("shop-a") as store, store.transaction() as transaction:
        account = Account.of(world.settings("shop-a"), "rows")
        transaction.add_disclosure(account.entry("scores", "", ["bank"], "weights of a fit", "another", MODEL_BITS))
    with refused('have the job set falcon.weights = "shared", or '):
        world.run()
    with refused("have the job set split.test_fraction = 0, or "):
        world.run('falcon.weights="shared"')
    world.run('falcon.weights="shared"', "split.test_fraction=0")
