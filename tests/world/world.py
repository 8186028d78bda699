"""A World: two or more parties with files and a job, and three ways to run them."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow.csv
from cryptography import x509

from blindfit.algorithms.privacy.ledger import LedgerEntry
from blindfit.coordinator.job.job import Job, load_job
from blindfit.coordinator.jobs.check import Finding, check
from blindfit.coordinator.running.launcher import identity_of
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.running.snapshots import snapshots_of
from blindfit.parties.files.private_files import read_certificate
from blindfit.parties.identity import authority
from blindfit.parties.node import PartyNode
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Store
from blindfit.parties.systems import load_party
from tests.certificates import quick_connections
from tests.command import Done, Forked, Piped, blindfit, in_a_process
from tests.ports import held_address
from tests.world.files import toml_of, write_csv

COORDINATOR = "coordinator"
STARTS_WITHIN_S = 60.0


@dataclass
class World:
    """Parties in one folder. `World(root)` of a folder that has files already runs those.

    Args:
        overrides: options for every party that runs in this process, as for `--set`.
        roles: the role of each party that was added here.
    """

    root: Path
    overrides: Sequence[str] = ()
    roles: dict[str, str] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes] | Forked] = field(default_factory=dict)

    # --- who takes part, and in what

    def active(self, name: str, rows: Mapping[str, Any] | None = None, **more: Any) -> World:
        """Add an active party: its rows have features, and labels if `about` names the column."""
        return self.party(name, "active", rows, {"features": "rest"}, **more)

    def passive(self, name: str, rows: Mapping[str, Any] | None = None, **more: Any) -> World:
        """Add a party with other columns of the same people."""
        return self.party(name, "passive", rows, {"features": "rest"}, **more)

    def server(self, name: str, labels: Mapping[str, Any] | None = None, **more: Any) -> World:
        """Add a measurement server, which answers the active parties that were added before."""
        active_parties = [party for party, role in self.roles.items() if role == "active"]
        budget = {"people": {"epsilon": 8.0, "delta": 1e-5}}
        meaning = {"label": "label", "population": "people", "active_parties": active_parties}
        return self.party(name, "measurement", labels, meaning, **{"populations": budget, **more})

    def key_node(self, name: str, **more: Any) -> World:
        return self.party(name, "key-node", None, {}, **more)

    def party(
        self,
        name: str,
        role: str,
        rows: Mapping[str, Any] | None,
        meaning: Mapping[str, Any],
        *,
        dataset: str = "rows",
        file: str = "",
        about: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> World:
        """Write a party's file and its table, and make it and the others peers.

        Args:
            rows: columns; None if the party has no table, or if the caller writes it.
            file: the table's name, by default the party's.
            about: further options of the dataset.
            settings: further options and tables of the party's file.
        """
        content: dict[str, Any] = {"name": name, "role": role, "data_dir": f"state/{name}"}
        content["identity"] = {"certificate": "-", "key": "-", "authority": "-"}
        content["peers"] = {COORDINATOR: {"role": COORDINATOR}} | {
            p: {"role": r} for p, r in self.roles.items() if p != name
        }
        content["policy"] = {"accept_seed": True, **settings.pop("policy", {})}
        content |= settings
        if role != "key-node":
            file = file or f"{name}.csv"
            described = {"url": f"{Path(file).suffix[1:]}:{file}", "id": "id", **meaning, **(about or {})}
            content["datasets"] = {dataset: described, **settings.get("datasets", {})}
        for peer in self.roles.keys() - {name}:
            path = self.root / f"{peer}.toml"
            told = tomllib.loads(path.read_text())
            told["peers"][name] = {"role": role}
            path.write_text(toml_of(told))
        self.roles[name] = role
        (self.root / f"{name}.toml").write_text(toml_of(content))
        if rows is not None:
            write_csv(self.root / file, rows)
        return self

    def walr(self, *, epsilon: float, **tables: Any) -> World:
        """Write a job that fits by WALR, between all parties."""
        return self.job("walr", seed=3, privacy={"epsilon": epsilon}, **tables)

    def job(
        self, protocol: str, *, file: str = "job.toml", parties: Sequence[str] = (), dataset: str = "", **options: Any
    ) -> World:
        """Write a job file.

        Args:
            parties: parties that take part, by default every party.
            dataset: dataset of every party that has one, by default its first.
            options: further options and tables of the job file.
        """
        seats = {name: self._seat(name, dataset) for name in parties or self.roles}
        content = {"name": Path(file).stem, "protocol": protocol, **options, "parties": seats}
        if any("address" in seat for seat in seats.values()):
            content["coordinator"] = self._identity(COORDINATOR)
        (self.root / file).write_text(toml_of(content))
        return self

    def _seat(self, name: str, dataset: str) -> dict[str, str]:
        settings = tomllib.loads((self.root / f"{name}.toml").read_text())
        datasets = [dataset or first for first in list(settings.get("datasets", {}))[:1]]
        seat = {"role": settings["role"], "config": f"{name}.toml"} | ({"dataset": datasets[0]} if datasets else {})
        return seat | ({"address": settings["listen"]} if "listen" in settings else {})

    def at_addresses(self) -> World:
        """Give every party and the coordinator a certificate, and every party an address; write the jobs afterwards."""
        self._issued(COORDINATOR)
        for name in self.roles:
            path = self.root / f"{name}.toml"
            content = tomllib.loads(path.read_text())
            content = {"name": name, "role": content["role"], "listen": held_address(), **content}
            path.write_text(toml_of({**content, "identity": {**self._identity(name), "revoked": "ca/crl.pem"}}))
        return self

    def _identity(self, name: str) -> dict[str, str]:
        return {kind: f"ca/{self._issued(name)}/{kind}.pem" for kind in ("certificate", "key", "authority")}

    # --- what its files say

    def path(self, *parts: str) -> Path:
        return self.root.joinpath(*parts)

    def settings(self, name: str) -> PartySettings:
        return load_party(self.root / f"{name}.toml")

    def edit(self, file: str, before: str, after: str) -> None:
        """Replace a text in a file.

        Raises:
            AssertionError: the file does not have it.
        """
        text = self.path(file).read_text()
        assert before in text, f"{file} does not have {before!r}"
        self.path(file).write_text(text.replace(before, after))

    def set(self, option: str, value: Any = None, *files: str) -> None:
        """Set an option by its dotted name, such as policy.min_rows, or remove it if the value is None.

        Args:
            files: names of TOML files without their ending; by default the file of every party.
        """
        for file in files or self.roles:
            path = self.path(f"{file}.toml")
            content = tomllib.loads(path.read_text())
            *tables, last = option.split(".")
            place = content
            for table in tables:
                place = place.setdefault(table, {})
            if value is None:
                del place[last]
            else:
                place[last] = value
            path.write_text(toml_of(content))

    def table(self, name: str) -> dict[str, np.ndarray]:
        """Return the columns of a party's CSV file."""
        read = pyarrow.csv.read_csv(self.path(f"{name}.csv"))
        return {column: read[column].to_numpy() for column in read.column_names}

    def columns(self, party: str, /, **columns: Any) -> None:
        """Add columns to a party's CSV file, or replace them."""
        self.write_table(party, self.table(party) | columns)

    def write_table(self, name: str, columns: Mapping[str, Any]) -> None:
        """Write a party's CSV file again."""
        write_csv(self.path(f"{name}.csv"), columns)

    def copied_to(self, root: Path) -> Self:
        """Copy the folder with all that its parties keep."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        other = copy.copy(self)
        other.root, other.processes = root, {}
        return other

    def load(self, *overrides: str, job: str = "job.toml") -> Job:
        return load_job(self.root / job, list(overrides))

    # --- in this process: the pre-flight, and nodes over mutual TLS

    def check(self, *overrides: str) -> list[Finding]:
        return check(self.load(*overrides))

    def run(
        self, *overrides: str, job: str = "job.toml", beside: Callable[[dict[str, PartyNode]], None] = lambda _: None
    ) -> JobSession:
        """Run a job to its end between nodes of this process; `beside` is called once they are running.

        Raises:
            BlindfitError: as the coordinator receives it.
        """

        async def to_its_end() -> JobSession:
            async with self.up(loaded) as nodes:
                beside(nodes)
                session = self.session(loaded, nodes)
                await session.run()
                return session

        loaded = self.load(*overrides, job=job)
        with quick_connections(self.root / "ca"):
            return asyncio.run(to_its_end())

    @contextlib.asynccontextmanager
    async def up(self, job: Job, *, first_snapshots: bool = True) -> AsyncIterator[dict[str, PartyNode]]:
        """Yield the job's parties as nodes that serve."""
        nodes: dict[str, PartyNode] = {}
        try:
            for name, party in job.parties.items():
                files = authority.PartyFiles.in_folder(self.root / "ca" / self._issued(name))
                paths = {"certificate": files.certificate, "key": files.key, "authority": files.authority}
                identity = ", ".join(f"{what} = {json.dumps(str(path))}" for what, path in paths.items())
                given = ["listen=127.0.0.1:0", f"identity={{{identity}}}", *self.overrides]
                settings = load_party(self.root / str(party.config), given)
                nodes[name] = PartyNode(settings, self.root, first_snapshots=first_snapshots)
                await nodes[name].start()
            yield nodes
        finally:
            for node in nodes.values():
                await node.stop()

    def session(self, job: Job, nodes: Mapping[str, PartyNode]) -> JobSession:
        """Return a session of a job between running nodes."""
        addresses = {name: f"127.0.0.1:{node.port}" for name, node in nodes.items()}
        return JobSession(job, addresses, identity_of(self.root / "ca", self._issued(COORDINATOR)))

    @property
    def authority(self) -> x509.Certificate:
        return read_certificate(self.root / "ca" / "authority.pem")

    def _issued(self, name: str) -> str:
        certificates = self.root / "ca"
        if not certificates.exists():
            authority.create_authority(certificates, "test-authority")
        if not (certificates / name).exists():
            role = COORDINATOR if name == COORDINATOR else self.roles.get(name)
            authority.issue(certificates, name, ["localhost"], role=role)
        return name

    # --- by the command line, with forked parties or with processes that start from nothing

    def blindfit(self, *arguments: str, pictures: bool = False) -> Done:
        return blindfit(self.root, *arguments, pictures=pictures)

    def in_a_process(self, *arguments: str) -> Done:
        return in_a_process(self.root, *arguments)

    def launch(self, *overrides: str, job: str = "job.toml", out: str = "out") -> Done:
        """Run `blindfit run`, which starts a forked process for each party."""
        sets = [word for override in overrides for word in ("--set", override)]
        return self.blindfit("run", str(self.root / job), "--out", str(self.root / out), *sets)

    @staticmethod
    def command(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "blindfit", *arguments]

    def start(
        self,
        *names: str,
        program: Sequence[str] = (),
        module: Sequence[str] = ("blindfit",),
        sets: Sequence[str] = (),
    ) -> None:
        """Start parties that keep running at their addresses.

        Args:
            module: module of a forked party, with its first arguments; {name} stands for the party's name.
            program: program that Python runs in a separate process; by default the party is forked.
        """
        for name in names:
            self.path(f"{name}.ready").unlink(missing_ok=True)
            with self.path(f"{name}.log").open("ab") as out:
                words = [sys.executable, *(program or ("-m", *(word.format(name=name) for word in module)))]
                words += ["party", f"{name}.toml"]
                start = subprocess.Popen if program else Forked
                words += ["--ready-file", f"{name}.ready", *(word for one in sets for word in ("--set", one))]
                self.processes[name] = start(words, cwd=self.root, stdout=out, stderr=out)
        for name in names:
            give_up = time.monotonic() + STARTS_WITHIN_S
            while not self.path(f"{name}.ready").exists():
                assert self.processes[name].poll() is None, self.log(name)
                assert time.monotonic() < give_up, self.log(name)
                time.sleep(0.02)

    def log(self, name: str) -> str:
        return self.path(f"{name}.log").read_text(errors="replace")

    def kill(self, name: str, number: int = signal.SIGKILL) -> int:
        process = self.processes.pop(name)
        process.send_signal(number)
        return process.wait(60)

    def stop(self) -> None:
        for name in list(self.processes):
            self.kill(name)

    @contextlib.contextmanager
    def submitting(self, *arguments: str) -> Iterator[Piped]:
        process = Piped(self.command("submit", "job.toml", "--out", "out", *arguments), cwd=self.root)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            process.close()

    # --- what its parties keep

    @contextlib.contextmanager
    def store(self, name: str) -> Iterator[Store]:
        with contextlib.closing(Store(self.path("state", name, "party.sqlite"))) as store:
            yield store

    def publish(self, name: str, dataset: str = "rows", *, remove_older: bool = False) -> None:
        """Do what `blindfit snapshot` does."""
        settings = load_party(self.root / f"{name}.toml", self.overrides)
        with self.store(name) as store:
            snapshots = snapshots_of(settings, self.root, store)
            snapshots.publish(dataset)
            if remove_older:
                snapshots.remove_older(dataset)

    def ledger(self, name: str) -> list[LedgerEntry]:
        with self.store(name) as store:
            return store.reader().ledger()

    def written(self, name: str, session: JobSession | str, file: str = "model.json") -> Any:
        """Return a JSON file that a party keeps of a session."""
        session = session if isinstance(session, str) else session.id
        return json.loads(self.path("state", name, "models", session, file).read_text())
