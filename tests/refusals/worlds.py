"""Parties and jobs for the cases, and changes that make them wrong."""

from __future__ import annotations

import json
import sqlite3
import tomllib
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import FORMAT as PART
from blindfit.algorithms.statistics.vertical.score_leaks import MODEL_BITS
from blindfit.parties.account.account import MOST_MEMBERSHIP, Account
from blindfit.parties.snapshots.people import join, pack
from blindfit.parties.store.answers import StoredAnswer
from blindfit.parties.store.database import stamp
from blindfit.parties.store.sessions import Prediction, SessionRow
from blindfit.parties.training.randomness import EVENT
from blindfit.parties.vertical.scored_rows import FIGURES
from blindfit.parties.wire.limits import Limits
from tests.backups import back_up, restore
from tests.hints.measured import alone, measured
from tests.modules import module_in_place
from tests.quick_keys import quick_keys
from tests.refusals.case import Change
from tests.world import World
from tests.world.holders import Holders
from tests.world.loans import loans

ROWS = 200


def walr(root: Path) -> World:
    return measured(root, "walr", ROWS)


def label_dp(root: Path) -> World:
    return measured(root, "label-dp", ROWS)


def dp_lr(root: Path) -> World:
    return alone(root, ROWS)


def taylor(root: Path) -> World:
    return loans(root, "taylor", ROWS)


def falcon(root: Path) -> World:
    return loans(root, "falcon", ROWS)


def wide_falcon(root: Path) -> World:
    """Make parties with so many columns that their weights would reveal much about each label."""
    return loans(root, "falcon", 2 * ROWS, (3, 60, 2))


def private_falcon(root: Path) -> World:
    world = falcon(root)
    names = ("bank", "post", "shop")
    world.set("falcon", {"validation_fraction": 0.0, "feature_bounds": ["*:-4:4"], "l2": 0.0, "epochs": 2}, "job")
    world.set("split.test_fraction", 0.0, "job")
    world.set("privacy.epsilon", 1.0, "job")
    world.set("datasets.loans.population", "customers", *names)
    world.set("populations.customers", {"epsilon": 2.0, "delta": 1e-5}, *names)
    return world


def few_common_rows(root: Path) -> World:
    """Make three parties with columns; the shop has fewer rows than their columns need."""
    world = Holders(root)
    world.write_table("shop", {name: values[:300] for name, values in world.table("shop").items()})
    world.set("datasets.rows.models_per_row", "unlimited", "bank", "chain")
    world.set("split.test_fraction", 0.0, "job")
    return world


def evaluation(root: Path) -> World:
    """Make a job that evaluates a model that was trained here."""
    world = walr(root)
    for name in ("shop", "meter"):
        world.set("policy.systems", ["walr", "evaluate"], name)
    session = world.run("seed=3").id
    return world.job("evaluate", evaluate={"session": session}, privacy={"epsilon": 1.0})


def prediction(root: Path) -> World:
    world = taylor(root).job("predict", predict={"session": "vertical-0123"})
    world.set("policy.systems", ["predict"])
    return world


def over_model(text: str) -> Change:
    """Write something else over the model of the training."""

    def write(world: World) -> None:
        (path,) = world.path("state", "shop", "models").glob("*/model.json")
        path.write_text(text)

    return write


def failed_session(world: World) -> None:
    with world.store("shop") as store, store.transaction() as transaction:
        (row,) = store.reader().sessions()
        transaction.change_session(row.session, state="FAILED", changed=row.changed)


def part_of_model(scored_by: str | None = None, path: str = "") -> Change:
    """Make the model one party's part of a joint one, and note a prediction.

    Args:
        scored_by: session of the prediction's model; empty: this one; None: no prediction.
        path: path of the scores, from the party's folder.
    """

    def change(world: World) -> None:
        (model,) = world.path("state", "shop", "models").glob("*/model.json")
        model.write_text(json.dumps({"format": PART}))
        if scored_by is not None:
            with world.store("shop") as store, store.transaction() as transaction:
                transaction.note_prediction(Prediction("scored-0123", scored_by or model.parent.name, "a table", path))

    return change


def begun(*, other: bool = False, is_read: bool = False) -> Change:
    """Make checkpoints of a training that was cut, at all parties.

    Args:
        other: True if it had read another dataset of the bank.
        is_read: True if it had read the datasets of the job.
    """

    def change(world: World) -> None:
        for name in ("bank", "post", "shop", "notary"):
            writing(f"state/{name}/checkpoints/cut-0123/base.json", "{}")(world)
        if other:
            kept = tomllib.loads(world.path("bank.toml").read_text())["datasets"]["loans"]
            world.set("datasets.others", kept, "bank")
        for name in ("bank", *(("post", "shop") if is_read else ())) if other or is_read else ():
            read = "others" if other else "loans"
            world.publish(name, read)
            with world.store(name) as store, store.transaction() as transaction:
                (row,) = store.reader().snapshots(read)
                transaction.put_session_snapshot("cut-0123", row.id)

    return change


def archive(*, public: bool) -> Change:
    """Add rows with other columns to the shop."""

    def change(world: World) -> None:
        table = {"id": [f"a{i}" for i in range(40)], "other": [1.5, 2.5] * 20, "y": [0, 1] * 20}
        world.write_table("archive", table)
        about = {"url": "csv:archive.csv", "id": "id", "label": "y", "features": "rest", "public": public}
        world.set("datasets.archive", about, "shop")

    return change


def regions(world: World) -> None:
    world.columns("shop", region=["north", "south"] * (ROWS // 2))
    world.set("datasets.rows.categories", ["region"], "shop")


def uploads(number: int, consumer: str = "shop") -> Change:
    """Make this many uploads without an answer."""

    def change(world: World) -> None:
        world.publish("meter")
        with world.store("meter") as store, store.transaction() as transaction:
            for _ in range(number):
                transaction.add_upload(consumer, "rows", stamp())

    return change


def many_sessions(world: World) -> None:
    """Let the coordinator have proposed the largest number of jobs for a day."""
    world.publish("meter")
    with world.store("meter") as store, store.transaction() as transaction:
        for number in range(Limits().proposals_a_day):
            transaction.add_session(SessionRow(f"job-{number}", "walr", "coordinator", "", "DONE", stamp(), b""))


def full_share(world: World) -> None:
    """Let the answers to the shop fill one active party's share of the server's disk."""
    world.publish("meter")
    world.set("policy.max_kept_mib", 1, "meter")
    with world.store("meter") as store, store.transaction() as transaction:
        transaction.add_answer("shop", "earlier", StoredAnswer("digest", b"", 0, "job-0", 2**20))


def setting(option: str, value: Any, *files: str) -> Change:
    return lambda world: world.set(option, value, *files)


def settings(*changes: tuple[str, Any, str]) -> Change:
    def change(world: World) -> None:
        for option, value, file in changes:
            world.set(option, value, file)

    return change


def writing(name: str, text: str) -> Change:
    def write(world: World) -> None:
        world.path(name).parent.mkdir(parents=True, exist_ok=True)
        world.path(name).write_text(text)

    return write


def other_coordinator(world: World) -> None:
    world.set("peers.coordinator", None, "meter")
    world.set("peers.organiser", {"role": "coordinator"}, "meter")


def published(name: str, change: Change) -> Change:
    """Publish the party's dataset, and then make the change."""

    def publish(world: World) -> None:
        world.publish(name)
        change(world)

    return publish


def edited_ledger(world: World) -> None:
    world.run()
    with sqlite3.connect(world.path("state", "shop", "party.sqlite")) as database:
        ((line,),) = database.execute("SELECT line FROM ledger").fetchall()
        edited = json.dumps({**json.loads(line), "epsilon": 0.5}, separators=(",", ":"))
        database.execute("UPDATE ledger SET line = ?", (edited,))


def lost_database(world: World) -> None:
    world.run()
    for file in world.path("state", "shop").glob("party.sqlite*"):
        file.unlink()


def person(name: str, dataset: str) -> Change:
    def change(world: World) -> None:
        world.columns(name, who=[f"w{i}" for i in range(ROWS)])
        world.set(f"datasets.{dataset}.person", "who", name)

    return change


def archive_of_private_rows(*, labels: bool) -> Change:
    """Declare rows public that are those of the shop's people.

    Args:
        labels: True if their labels are the same, too.
    """

    def change(world: World) -> None:
        table = world.table("shop")
        world.write_table("archive", table if labels else {**table, "y": 1 - table["y"].astype(int)})
        about = {"url": "csv:archive.csv", "id": "id", "label": "y", "features": "rest", "public": True}
        world.set("datasets.archive", about, "shop")
        world.publish("shop")

    return change


def model_of_other_columns(world: World) -> None:
    scale = Standardiser(("other",), (0,), (0.0,), (1.0,))
    world.path("start.json").write_text(Pretrained(scale, (0.5,), 0.0).to_json())


def restored(name: str) -> Change:
    """Run a job, and restore the party's database from before it."""

    def change(world: World) -> None:
        world.publish(name)
        copy = back_up(world.path("state", name, "party.sqlite"), world.path("backup.sqlite"))
        world.run()
        restore(copy, world.path("state", name, "party.sqlite"))

    return change


def without_phe() -> AbstractContextManager[object]:
    return module_in_place("phe", None)


def exchanged_parts(root: Path) -> World:
    """Make a joint prediction at whose start the post and the shop have each other's part of the model."""
    world = trained(root)
    (part,) = world.path("state", "post", "models").iterdir()
    world.set("data_dir", "state/post", "shop")
    world.set("data_dir", "state/shop", "post")
    return world.job("predict", predict={"session": part.name})


def trained(root: Path) -> World:
    """Make a finished training of one epoch. The post allows one model of its rows."""
    world = taylor(root)
    world.set("policy.systems", ["taylor", "predict"])
    world.set("taylor", {"epochs": 1}, "job")
    world.set("datasets.loans.models_per_row", "unlimited", "bank")
    world.set("datasets.loans.models_per_row", 1, "post")
    with quick_keys():
        world.run()
    return world


def trained_in_shares(root: Path) -> World:
    world = falcon(root)
    world.set("falcon.epochs", 1, "job")
    world.set("split.test_fraction", 0.25, "job")
    world.set("datasets.loans.models_per_row", "unlimited", "bank")
    world.set("datasets.loans.models_per_row", 1, "post")
    world.run()
    return world


def trained_under_label_dp(root: Path) -> World:
    world = taylor(root)
    world.set("taylor", {"epochs": 1}, "job")
    world.set("privacy.epsilon", 1.0, "job")
    world.set("populations.customers.epsilon", 1.0, "bank")
    world.set("datasets.loans.models_per_row", "unlimited", "bank")
    with quick_keys():
        world.run()
    return world


def trained_in_private(root: Path) -> World:
    world = private_falcon(root)
    world.set("falcon.epochs", 1, "job")
    world.set("populations.customers.epsilon", 1.0, "bank", "post", "shop")
    world.run()
    return world


def trained_alone(root: Path) -> World:
    world = dp_lr(root)
    world.set("populations.people.epsilon", 1.0, "shop")
    world.run()
    return world


def fill(world: World) -> None:
    """Fill the account of the bank's people, so that no bit about their labels is left."""
    if "bank" not in world.roles:
        return
    account = Account.of(world.settings("bank"), "loans")
    with world.store("bank") as store, store.transaction() as transaction:
        left = account.label_limit(transaction) - account.spent(transaction, "labels", account.label)
        if left > 0:
            transaction.add_disclosure(account.entry("labels", account.label, ["post"], "weights", "another", left))


def full(world: World) -> None:
    for name in ("bank", "post", "shop"):
        world.publish(name, "loans")
    fill(world)


def revealed_scores(world: World) -> None:
    """Let figures have revealed what the post allows about a row of its people, who have had no model."""
    world.set("datasets.loans.models_per_row", 1, "post")
    for name in ("bank", "post", "shop"):
        world.publish(name, "loans")
    account = Account.of(world.settings("post"), "loans")
    with world.store("post") as store, store.transaction() as transaction:
        known = transaction.people(account.population)
        here = pack(np.ones(len(join(known)), np.bool_))
        entry = account.entry("scores", "other", ["bank"], FIGURES, "figures of other", MODEL_BITS, ("", ""), here)
        transaction.add_disclosure(entry)


def many_draws(world: World) -> None:
    """Let as many draws of held-out rows have begun as the bank allows."""
    world.publish("bank", "loans")
    account = Account.of(world.settings("bank"), "loans")
    with world.store("bank") as store, store.transaction() as transaction:
        for number in range(MOST_MEMBERSHIP):
            entry = account.entry("membership", "post,shop", ["post", "shop"], EVENT, f"draw-{number}", 1)
            transaction.add_disclosure(entry)
