"""Parties of a job in this process: real nodes on this machine, with their own real certificates, files
and databases.
"""

from __future__ import annotations

import asyncio
import copy
import csv
import gc
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from blindfit.algorithms.errors import BlindfitError, PeerUnreachable
from blindfit.algorithms.paillier.keys import PrivateKey, insecure_private_key
from blindfit.coordinator.job.job import read_job
from blindfit.coordinator.operator import deciding as operator
from blindfit.coordinator.running.control import Control
from blindfit.coordinator.running.session import JobSession, proposal_of
from blindfit.parties.node import PartyNode
from blindfit.parties.systems import load_party
from blindfit.parties.wire import exchange
from tests import quick_keys
from tests.certificates import make_identity, quick_connections
from tests.interference.recorder import Recorder, listening
from tests.interference.views import Record
from tests.postgres import PostgresServer
from tests.world import World
from tests.world.world import COORDINATOR

SERVERS: list[PostgresServer] = []
"""The server that holds a source "postgresql"."""

Rows = dict[str, dict[str, Any]]  # id -> column -> value, in the order of the table
Data = dict[str, Rows]  # tables by party
HANGS_S = 100.0
TABLES = (".csv", ".parquet", ".sqlite")


@dataclass(frozen=True, repr=False)
class Case:
    """A system as it is set up: its parties, their files, and the job.

    Attributes:
        roles: role of each party.
        datasets: each party's one table, as in its file without the url.
        policy: additions to each party's policy; the rest of a party's file is made here.
        more: further tables of each party's file.
        prepare: function that prepares the folder before the first job.
        covered: parties whose data changes the charge pays for.
        declares: names of kinds.py that are DECLARED here.
    """

    system: str
    roles: Mapping[str, str]
    data: Data
    datasets: Mapping[str, Mapping[str, Any]]
    job: Mapping[str, Any]
    policy: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    prepare: Callable[[Path], None] = lambda _root: None
    covered: frozenset[str] = frozenset()
    declares: tuple[str, ...] = ()
    source: str = "csv"

    def with_job(self, **changes: Any) -> Case:
        """Change options of the job file; __ stands for the dot of a path."""
        return replace(self, job=_changed(self.job, changes))

    def with_data(self, data: Data) -> Case:
        return replace(self, data=data)

    def with_dataset(self, party: str, **changes: Any) -> Case:
        return replace(self, datasets={**self.datasets, party: {**self.datasets[party], **changes}})

    def with_policy(self, party: str, **changes: Any) -> Case:
        return replace(self, policy={**self.policy, party: {**self.policy.get(party, {}), **changes}})

    @property
    def holders(self) -> list[str]:
        return [name for name in self.roles if name in self.datasets]


def _changed(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    changed = copy.deepcopy(dict(values))
    for path, value in changes.items():
        *tables, last = path.split("__")
        place = changed
        for table in tables:
            place = place.setdefault(table, {})
        place[last] = value
    return changed


# --- files ------------------------------------------------------------------------------------------------


def _of_one_type(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values as a parquet file has them: texts, if one of them is a text."""
    if any(isinstance(value, str) for value in values):
        return [None if value is None else str(value) for value in values]
    return values


def write_rows(root: Path, party: str, rows: Rows, source: str) -> str:
    """Write a party's table, and return its url."""
    columns = ["id", *next(iter(rows.values()))]
    lines = [[row, *(values[c] for c in columns[1:])] for row, values in rows.items()]
    for suffix in TABLES:
        # do not write to it: the file may belong to a folder put aside
        (root / f"{party}{suffix}").unlink(missing_ok=True)
    if source == "csv":
        with (root / f"{party}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([columns, *lines])
        return f"csv:{party}.csv"
    lines = [[None if value == "" else value for value in line] for line in lines]
    if source == "parquet":
        by_column = zip(columns, zip(*lines, strict=True), strict=True)
        table = pa.table({name: _of_one_type(values) for name, values in by_column})
        pyarrow.parquet.write_table(table, root / f"{party}.parquet")
        return f"parquet:{party}.parquet"
    if source == "postgresql":
        return _write_to_postgresql(f"{root.name}_{party}".replace("-", "_"), columns, lines)
    path = root / f"{party}.sqlite"
    database = sqlite3.connect(path)
    database.execute(_create("t", columns, lines[0], "NUMERIC"))
    marks = ", ".join("?" for _ in columns)
    database.executemany(f"INSERT INTO t VALUES ({marks})", lines)
    database.commit()
    database.close()
    return f"sqlite:///{path}?table=t"


def _write_to_postgresql(table: str, columns: Sequence[str], lines: Sequence[Sequence[Any]]) -> str:
    (server,) = SERVERS
    with server.connect() as connection:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(_create(table, columns, lines[0], "DOUBLE PRECISION"))
        with connection.cursor().copy(f"COPY {table} FROM STDIN") as copying:
            for line in lines:
                copying.write_row(line)
    return server.url(table)


def _create(table: str, columns: Sequence[str], line: Sequence[Any], number: str) -> str:
    kinds = ["TEXT" if isinstance(value, str) else number for value in line]
    return f"CREATE TABLE {table} ({', '.join(f'{c} {k}' for c, k in zip(columns, kinds, strict=True))})"


def files_of(case: Case, root: Path, authority: Path | None = None) -> World:
    """Write the files of a case, and its job.

    Args:
        authority: folder with the parties' certificates; None: the world makes an authority when it runs.
    """
    world = World(root)
    for name, role in case.roles.items():
        more: dict[str, Any] = {"compute": {"backend": "serial"}, **case.more.get(name, {})}
        if authority is not None:
            files = make_identity(authority, name).files
            identity = {kind: str(getattr(files, kind)) for kind in ("certificate", "key", "authority")}
            more |= {"listen": "127.0.0.1:0", "identity": identity}
        if name in case.datasets:
            more["about"] = {"url": write_rows(root, name, case.data[name], case.source), **case.datasets[name]}
        policy = {"systems": [case.system], "max_epsilon": 8.0, **case.policy.get(name, {})}
        world.party(name, role, None, {}, policy=policy, **more)
    return world.job(case.system, **case.job)


# --- running -----------------------------------------------------------------------------------------------


@dataclass
class _Patient(JobSession):
    """A coordinator that cancels nothing before every party has ended by itself: then all ends are reported."""

    async def _watch_all(self) -> None:
        watches = [asyncio.create_task(self._watch(name)) for name in self.addresses]
        _, hanging = await asyncio.wait(watches, timeout=HANGS_S)
        assert not hanging, "a party hangs"
        await asyncio.gather(*watches, return_exceptions=True)
        await super()._watch_all()


@dataclass(frozen=True, repr=False)
class Ran:
    """
    Attributes:
        errors: error with which each job ended, or "".
        kept: files that parties have written, by path below the folder.
    """

    record: Record
    errors: tuple[str, ...]
    kept: Mapping[str, str]


@dataclass(frozen=True, repr=False)
class Begun:
    """A first job that has run.

    Attributes:
        root: folder as the job left it.
    """

    case: Case
    root: Path
    record: Record
    error: str
    cut: bool

    @property
    def errors(self) -> tuple[str, ...]:
        return () if self.cut else (self.error,)

    @property
    def ran(self) -> Ran:
        return Ran(self.record, self.errors, _kept(self.root))


def run(case: Case, authority: Path) -> Ran:
    """Run the case's job from nothing."""
    with tempfile.TemporaryDirectory(prefix="interference-") as folder:
        return begin(case, authority, Path(folder)).ran


def begin(case: Case, authority: Path, root: Path, *, cut: bool = False) -> Begun:
    """Run the case's job from nothing, in an empty folder.

    Args:
        cut: True to cut the job off in its second epoch; further jobs resume it.
    """
    record = Record()
    with _running(authority, root, record) as recorder:
        files_of(case, root, authority)
        case.prepare(root)
        with cut_off() if cut else nullcontext():
            error = asyncio.run(_run_job(case, root, authority, recorder, "s1", ()))
    return Begun(case, root, record, error, cut)


def go_on(begun: Begun, authority: Path, then: Sequence[Data], *, publish: bool = False) -> Ran:
    """Run the job again for each of `then`, after the parties' tables became those; `begun` stays as it was.

    Args:
        publish: True to publish all tables before each job.
    """
    case, root, record = begun.case, begun.root, begun.record.copy()
    job = case.with_job(**{f"{case.system}__resume": "s1"}) if begun.cut else case
    errors = list(begun.errors)
    with _put_aside(root), _running(authority, root, record) as recorder:
        written = case.data
        for number, data in enumerate(then, 2):
            for party in case.holders:
                if data[party] != written[party] or case.source == "postgresql":  # other runs have gone on from it
                    write_rows(root, party, data[party], case.source)
            written = data
            publishing = case.holders if publish else ()
            errors.append(asyncio.run(_run_job(job, root, authority, recorder, f"s{number}", publishing)))
        return Ran(record, tuple(errors), _kept(root))


@contextmanager
def _running(authority: Path, root: Path, record: Record) -> Iterator[Recorder]:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("XDG_STATE_HOME", str(root / "user"))  # marks of ledgers, which stay with them
        recorder = stack.enter_context(listening(record))
        stack.enter_context(quick_keys.quick_keys(lambda *_: _one_key()))
        stack.enter_context(quick_connections(authority))
        stack.enter_context(quick_ends())
        stack.enter_context(quick_collection())
        yield recorder


@contextmanager
def _put_aside(root: Path) -> Iterator[None]:
    """Put a copy in the folder's place for a while. Its tables are the same files: to a party they have not changed."""
    aside = root.with_name(f"{root.name}-aside")
    root.rename(aside)
    try:
        shutil.copytree(aside, root)
        for path in aside.iterdir():
            if path.suffix in TABLES:
                (root / path.name).unlink()
                (root / path.name).hardlink_to(path)
        yield
    finally:
        shutil.rmtree(root)
        aside.rename(root)


async def _run_job(
    case: Case, root: Path, authority: Path, recorder: Recorder, session: str, publishing: Sequence[str]
) -> str:
    nodes = {name: PartyNode(load_party(root / f"{name}.toml"), root) for name in case.roles}
    for name in publishing:
        nodes[name].party.snapshots.publish("rows")
    recorder.session = session
    saying_yes = [asyncio.create_task(_says_yes(node, root, session)) for node in nodes.values()]
    try:
        for node in nodes.values():
            await node.start()
        addresses = {name: f"127.0.0.1:{node.port}" for name, node in nodes.items()}
        parties = {n: {"role": r, **({"dataset": "rows"} if n in case.datasets else {})} for n, r in case.roles.items()}
        job = read_job({"protocol": case.system, **case.job, "parties": parties})
        coordinator = _Patient(job, addresses, make_identity(authority, COORDINATOR), id=session)
        await _check(coordinator)
        try:
            await coordinator.run()
        except BlindfitError as error:
            return f"{type(error).__name__}: {error}"
        return ""
    finally:
        for asked in saying_yes:
            asked.cancel()
        for node in nodes.values():
            await _stop(node)


async def _check(coordinator: JobSession) -> None:
    """Ask every party what it would refuse of the job, as `blindfit check` does: its answers are compared, too."""
    proposal = proposal_of(coordinator.job, coordinator.id, coordinator.addresses)
    for name, address in coordinator.addresses.items():
        async with Control.open(coordinator.own, name, address) as control:
            with suppress(BlindfitError):
                await control.check(proposal, HANGS_S)


async def _says_yes(node: PartyNode, root: Path, session: str) -> None:
    """Approve every job, as an operator."""
    while node.settings.policy.approve == "ask":
        row = node.party.store.reader().session(session)
        if row is not None and row.state == "HELD":
            operator.decide(node.settings, root / "party.toml", session, row.digest, refuse=False)
            return
        await asyncio.sleep(0.05)


# Number of messages that a party has sent by then: a gradient for each epoch; two checks of the labels, and two for
# each epoch, to two other parties.
OF_THE_SECOND_EPOCH = {"MaskedGradient": 2, "CheckCommitment": 9}


@contextmanager
def cut_off() -> Iterator[None]:
    """Cut a party off from its peer when it is about to send a message of the second epoch."""
    encoded, sent = exchange.ExchangeChannel.encode, [0]

    def cut(self: Any, to: str, message: object) -> exchange.Encoded:
        name = type(message).__name__
        if name in OF_THE_SECOND_EPOCH and self.name == "shop-a":
            sent[0] += 1
            if sent[0] == OF_THE_SECOND_EPOCH[name]:
                raise PeerUnreachable(peer=to, address="-", step=name, reason="the connection was lost")
        return encoded(self, to, message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange.ExchangeChannel, "encode", cut)
        yield


async def _stop(node: PartyNode) -> None:
    """Stop the node as `PartyNode.stop` does, without its grace period."""
    await node.sessions.close()
    await node.server.stop(None)
    node.party.close()
    node.party.store.close()


def _kept(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text()
        for path in root.rglob("*")
        if path.suffix in (".csv", ".json") and "state" in path.parts[len(root.parts) :]
    }


# --- what would take time -------------------------------------------------------------------------------


@cache
def _one_key() -> PrivateKey:
    """Return one key for all runs: other tests check how well ciphertexts hide."""
    return insecure_private_key(quick_keys.BITS, uniform=random.Random(512).randrange)


@contextmanager
def quick_ends() -> Iterator[None]:
    """Shorten the time for which a failed party tries to inform a peer that has failed too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange, "ABORT_S", 0.5)
        yield


@contextmanager
def quick_collection() -> Iterator[None]:
    """Collect garbage only once, at the end: the records of all runs stay, and were looked through over and over."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
