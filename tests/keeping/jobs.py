"""A job of each kind with secrets planted in it, run by real nodes: all its messages, and all that is kept."""

from __future__ import annotations

import contextlib
import csv
import math
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from blindfit.algorithms.errors import BlindfitError
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.parties.files import vault as vault_
from blindfit.parties.files.vault import FILE, LOCKED, MODEL_KEY, RECEIPT_KEY, Vault, open_vault
from blindfit.parties.measurement.label_index_build import IndexKeys
from blindfit.parties.taylor import data_party, key_node
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.checkpoints import Checkpoints
from tests.canaries import Heard, Secret, listening
from tests.dp_lr import conftest as dp_lr
from tests.label_dp import conftest as label_dp
from tests.quick_keys import quick_keys
from tests.reports import write_report
from tests.world import World
from tests.world.vertical import bank_and_shops

PASSPHRASE = "four random words here"
PERSON, FEATURE, WRONG = "canary-person", 7654.3211234, "canary-wrong-cell"


@dataclass
class Kept:
    """A file or a directory."""

    mode: int
    content: bytes = b""


@dataclass
class Ran:
    """
    Attributes:
        keys: private keys and seeds that were drawn while it ran.
        rows: secrets planted in the parties' data.
        kept: content of all data_dirs, at their fullest; a training's checkpoints too.
        opened: content of locked files, as their owner reads it.
    """

    root: Path
    heard: Heard
    keys: dict[str, Secret] = field(default_factory=dict)
    rows: dict[str, Secret] = field(default_factory=lambda: {"person": PERSON, "feature": FEATURE, "cell": WRONG})
    kept: dict[str, Kept] = field(default_factory=dict)
    opened: dict[str, bytes] = field(default_factory=dict)
    reports: dict[str, bytes] = field(default_factory=dict)

    def vault_of(self, path: str) -> Vault:
        """Return the vault of the party that keeps this file."""
        directory = next(p for p in (self.root / path).parents if (p / FILE).exists())
        return open_vault(directory, PASSPHRASE.encode())

    # --- while it runs

    def look(self) -> None:
        """Record everything that is kept now, in addition to what was seen before."""
        for state in self.root.rglob("state*"):
            for path in [state, *state.rglob("*")]:
                with contextlib.suppress(FileNotFoundError):  # a checkpoint that has just gone
                    mode = stat.S_IMODE(path.lstat().st_mode)
                    self.kept[str(path.relative_to(self.root))] = Kept(
                        mode, path.read_bytes() if path.is_file() else b""
                    )

    def report(self, job: str, *overrides: str) -> str:
        """Run a job, and keep what its coordinator writes; return its session."""
        session = self.nodes.run(*overrides, job=job)
        out = self.root / "out" / session.id
        out.mkdir(parents=True)
        write_report(session, out, [])
        self.reports |= {
            str(path.relative_to(self.root)): path.read_bytes() for path in out.rglob("*") if path.is_file()
        }
        self.reports[f"summaries of {session.id}"] = repr(session.summaries).encode()
        return session.id

    def refused(self, job: str, *overrides: str) -> None:
        with pytest.raises(BlindfitError) as caught:
            self.nodes.run(*overrides, job=job)
        self.heard.error(caught.value)

    def forget_snapshots(self) -> None:
        """Remove the snapshots, so that the next job publishes the present files."""
        for path in self.root.rglob("party.sqlite"):
            with contextlib.closing(sqlite3.connect(path)) as database, database:
                database.execute("DELETE FROM snapshots")

    @property
    def nodes(self) -> World:
        return World(self.root, ["secrets.passphrase_file=words", "log_level=debug"])

    # --- what is planted

    def plant(self, file: str, row: int, **cells: str) -> str:
        """Put other cells into a row of a table; return the row's id before."""
        path = self.root / file
        with path.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        before = rows[row]["id"]
        rows[row] |= cells
        with path.open("w", newline="") as lines:
            writer = csv.DictWriter(lines, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return before

    def rename(self, file: str, person: str) -> None:
        path = self.root / file
        path.write_text(path.read_text().replace(f'"{person}"', f'"{PERSON}"').replace(f"\n{person},", f"\n{PERSON},"))


@contextlib.contextmanager
def running(root: Path) -> Iterator[Ran]:
    """Run with a umask that lets everybody read what a process writes, unless the process restricts it."""
    (root / "words").write_text(PASSPHRASE)
    before = os.umask(0)
    try:
        with listening() as heard, quick_keys(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(vault_, "STRETCH", {"n": 2, "r": 1, "p": 1})
            ran = Ran(root, heard)
            _watch_keys(ran, patch)
            yield ran
            ran.look()
            _collect_signing_keys(ran)
            _open_locked(ran)
    finally:
        os.umask(before)


def _watch_keys(ran: Ran, patch: pytest.MonkeyPatch) -> None:
    begin_data, begin_key = data_party.Taylor.begin, key_node.KeyNode._begin
    noise_key = key_node.noise_key_of
    remove, random = Checkpoints.remove, IndexKeys.random

    async def watched_data(self, read):
        begun, alignment = await begin_data(self, read)
        ran.keys[f"secret of {self._seats.me}"] = self._party.secret.key
        ran.rows |= columns_of(read.rows.take(alignment.positions), self._seats.me)
        return begun, alignment

    async def watched_key(self, session, *arguments):
        begun = await begin_key(self, session, *arguments)
        ran.keys |= {f"{what} of {session.id}": number for what, number in numbers_of(begun.private_key).items()}
        ran.keys[f"secret of {session.me.name}"] = self._party.secret.key
        return begun

    def watched_noise(party, session, slots, drawn):
        ran.keys[f"noise key of {session.id}"] = noise_key(party, session, slots, drawn)
        return ran.keys[f"noise key of {session.id}"]

    def watched_remove(self):
        ran.look()
        remove(self)

    def watched_random():
        keys = random()
        ran.keys |= {"key of ids": keys.ids.to_bytes()[:64], "key of persons": keys.persons.to_bytes()[:64]}
        return keys

    patch.setattr(data_party.Taylor, "begin", watched_data)
    patch.setattr(key_node.KeyNode, "_begin", watched_key)
    patch.setattr(key_node, "noise_key_of", watched_noise)
    patch.setattr(Checkpoints, "remove", watched_remove)
    patch.setattr(IndexKeys, "random", staticmethod(watched_random))


def columns_of(rows: PartyRows, party: str) -> dict[str, Secret]:
    """Return a party's first rows in the common order, as arrays of several types would hold them."""
    found: dict[str, Secret] = {f"feature of {party}": rows.features[:8, 0].tobytes()}
    if rows.labels is not None:
        for kind in ("<f8", "<i8", "i1"):
            first = rows.labels[:40].astype(kind)
            found |= {f"labels as {kind}": first.tobytes(), f"signed labels as {kind}": (2 * first - 1).tobytes()}
        found["labels as text"] = ", ".join(str(int(label)) for label in rows.labels[:40])
    return found


def numbers_of(key: PrivateKey) -> dict[str, int]:
    p, q = int(key.p), int(key.q)
    return {"p": p, "q": q, "lambda": math.lcm(p - 1, q - 1)}


def _collect_signing_keys(ran: Ran) -> None:
    for path in ran.kept:
        if Path(path).name in (MODEL_KEY, RECEIPT_KEY):
            key = ran.vault_of(path).signing_key(ran.root / path)
            ran.keys[path] = key._key.private_bytes_raw()
        if Path(path).name == FILE:
            ran.keys[path] = ran.vault_of(path)._key or b""
    ran.keys["passphrase"] = PASSPHRASE


def _open_locked(ran: Ran) -> None:
    for path, kept in ran.kept.items():
        if kept.content.startswith(LOCKED):
            copy = ran.root / Path(path).name
            copy.write_bytes(kept.content)
            ran.opened[path] = ran.vault_of(path).read(copy)


# --- the jobs ----------------------------------------------------------------------------------------

SMALL = ("taylor.epochs=2", "align.min_common=30")


def vertical(root: Path, rows: int = 100) -> None:
    bank_and_shops(root, rows=rows)


def plant_vertical(ran: Ran) -> None:
    """Add a person of whom every data party has a row, with a feature that nobody else has."""
    person = ran.plant("bank.csv", 3, x0=str(FEATURE))
    for name in ("bank", "shop-a", "shop-b"):
        ran.rename(f"{name}.csv", person)
    ran.plant("shop-a.csv", 5, x1=str(FEATURE))


def run_taylor(ran: Ran) -> None:
    """Run the job, and let it be refused for too few rows and for one wrong row."""
    vertical(ran.root)
    plant_vertical(ran)
    ran.report("job.toml", *SMALL)
    ran.refused("job.toml", *SMALL, "align.min_common=5000")
    ran.plant("bank.csv", 2, bought=WRONG)
    ran.forget_snapshots()
    ran.refused("job.toml", *SMALL)


def run_linkage(ran: Ran) -> None:
    vertical(ran.root)
    plant_vertical(ran)
    ran.report("linkage.toml", *SMALL)
    ran.forget_snapshots()  # another number is refused for the linked rows
    ran.refused("linkage.toml", *SMALL, "align.min_common=5000")


def run_label_dp_training(ran: Ran) -> None:
    vertical(ran.root)
    plant_vertical(ran)
    ran.report("job.toml", *SMALL, "privacy.epsilon=2")
    ran.refused("job.toml", *SMALL, "privacy.epsilon=2.5")  # no budget is left


def run_predict(ran: Ran) -> None:
    vertical(ran.root)
    plant_vertical(ran)
    session = ran.report("job.toml", *SMALL)
    ran.heard.messages.clear()
    model = (f"predict.session={session}", "align.min_common=30")
    ran.report("predict.toml", *model)
    ran.plant("shop-b.csv", 2, x0=WRONG)
    ran.forget_snapshots()
    ran.refused("predict.toml", *model)


def run_label_dp(ran: Ran) -> None:
    label_dp.write_project(ran.root)
    person = ran.plant("rows.csv", 3, age=str(FEATURE))
    for file in ("rows.csv", "labels.csv"):
        ran.rename(file, person)
    ran.rows["label"] = 7.123456789
    ran.plant("labels.csv", 4, spend="7.123456789")
    ran.report("job.toml")
    ran.refused("job.toml", "privacy.epsilon=4.5", "privacy.release=second")
    ran.plant("rows.csv", 2, visits=WRONG)
    ran.forget_snapshots()
    ran.refused("job.toml")


def run_dp_lr(ran: Ran) -> None:
    dp_lr.write_project(ran.root)
    person = ran.plant("patients.csv", 3, age=str(FEATURE))
    ran.rename("patients.csv", person)
    ran.nodes.publish("clinic", "archive")  # public, next to people with a budget: its operator publishes it
    ran.report("job.toml")
    ran.refused("job.toml", "privacy.epsilon=4.5")
    ran.plant("patients.csv", 2, ill=WRONG)
    ran.forget_snapshots()
    ran.refused("job.toml")


JOBS: dict[str, Callable[[Ran], None]] = {
    "taylor": run_taylor,
    "taylor, linkage": run_linkage,
    "taylor, label DP": run_label_dp_training,
    "predict": run_predict,
    "label-dp": run_label_dp,
    "dp-lr": run_dp_lr,
}
