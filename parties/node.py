"""A party process: identity, policy, sessions and health, behind one gRPC server with mutual TLS."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from blindfit.algorithms.errors import ConfigError, SessionUnknown
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.protocols import handshake
from blindfit.algorithms.protocols.handshake import PROTOCOL_VERSION
from blindfit.algorithms.protocols.table import Table
from blindfit.algorithms.texts import cut, printable
from blindfit.parties.identity import connections as tls
from blindfit.parties.identity.identity import open_identity
from blindfit.parties.sessions.admission import Admission
from blindfit.parties.sessions.events import state_to_pb
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Part, Run, Session
from blindfit.parties.sessions.session_log import keeper
from blindfit.parties.sessions.sessions import Sessions
from blindfit.parties.sessions.system import ChecksMembers, Seat, System
from blindfit.parties.sessions.transcript import Transcript
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.charging import check_chain
from blindfit.parties.store.data_dir_lock import DataDirLock
from blindfit.parties.store.database import Store
from blindfit.parties.store.excess import PASSES_LIMIT
from blindfit.parties.systems import read_proposed, seats_of, services_of, snapshot_writer, system
from blindfit.parties.wire.doorkeeper import Doorkeeper, fitting, raise_open_files
from blindfit.parties.wire.exchange import ExchangeServicer
from blindfit.parties.wire.guard import Guard, current_caller
from blindfit.parties.wire.limits import Limits, server_options
from blindfit.parties.wire.listening import cannot_bind, check_free
from blindfit.parties.wire.waits import report_to_pb
from blindfit.parties.work import ending
from blindfit.parties.work.compute import cluster_of
from blindfit.parties.work.counted_threads import threads_for
from blindfit.parties.work.memory import give_back_freed
from blindfit.protos import control_pb2, control_pb2_grpc, exchange_pb2, exchange_pb2_grpc
from blindfit.version import __version__

log = structlog.get_logger(__name__)

SHUTDOWN_GRACE_S = 3.0
LOCK_POLL_S = 0.05
SCHEDULE_S = 30.0  # time between two checks of the schedules of snapshots
MOST_LOGGED_CHARS = 2000  # length of one text


# --- the checks of a proposal, at a party process and in `blindfit check` --------------------------------


MakePart = Callable[[System[Any], Seat[Any]], Part]


def part_of(its: System[Any], seat: Seat[Any]) -> Part:
    part = Part(seat.check, seat.run, its.tables(), its.wrong_roles)
    return replace(part, check_members=seat.check_members) if isinstance(seat, ChecksMembers) else part


def admission_of(party: Party, seats: Mapping[str, Seat[Any]], make_part: MakePart = part_of) -> Admission:
    """Return the admission of a party.

    Args:
        seats: the party's role in each system, by system, as `seats_of` opens them.
        make_part: function from a system and the party's role in it to the party's part.
    """
    return Admission(
        party.settings,
        party.store,
        party.limits,
        lambda peer, address: tls.open_channel(party.identity, peer, address, party.limits),
        read_proposed,
        {name: make_part(system(name), seat) for name, seat in seats.items()},
        party.snapshots,
        lambda: party.receipts,
        party.pulse,
    )


def open_admission(party: Party) -> Admission:
    """Return the admission of a party that serves nobody."""
    return admission_of(party, seats_of(party))


# --- the process -----------------------------------------------------------------------------------------


class PartyNode:
    """Everything of one party. `start` binds the address; `wait` returns when a signal stops the process."""

    def __init__(
        self, settings: PartySettings, base_dir: Path, limits: Limits | None = None, *, first_snapshots: bool = True
    ) -> None:
        """Args:
        first_snapshots: True to publish each dataset that was never published.
        """
        self.settings = settings
        identity = open_identity(settings.identity, base_dir)
        if identity.name != settings.name:
            raise ConfigError(
                f"name = {settings.name}, but {settings.identity.certificate} is the certificate of {identity.name}"
            )
        if identity.role not in (None, settings.role):
            raise ConfigError(
                f"role = {settings.role}, but the role in {settings.identity.certificate} is {identity.role}",
                hint="correct the party's file, or ask the authority's operator for a certificate of the other role",
            )
        identity.revoked.report(settings.name)
        store = Store.of(settings, base_dir)
        store.excess.on_sentence = lambda sentence: log.warning(sentence, **{PASSES_LIMIT: True})
        check_chain(store)
        self.party = Party(settings, base_dir, identity, store, limits or Limits())
        self.party.write_snapshot = snapshot_writer(settings.role, self.party.vault, cluster_of(settings, base_dir))
        if not self.party.vault.locks:
            log.warning(
                "keys and checkpoints are kept unlocked: secrets.passphrase_file is not set", party=settings.name
            )
        if first_snapshots:
            self.party.snapshots.make_first()
        self._services = services_of(settings.role)
        self._seats = seats_of(self.party)
        self.server: grpc.aio.Server
        self.guard: Guard
        self._door: asyncio.Task[None]
        self.port = 0

    @property
    def sessions(self) -> Sessions:
        return self.party.sessions

    def _part(self, its: System[Any], seat: Seat[Any]) -> Part:
        run, tables = _measure(seat.run), its.tables()
        if tables and its.recorded:
            run = self._record(run, tables)
        return replace(part_of(its, seat), run=run)

    def _record(self, run: Run, tables: Sequence[Table]) -> Run:
        """Return a run that also records the size of its messages, and a transcript of what it received, even if it
        fails.
        """

        async def record(session: Session[Any]) -> dict[str, ParameterValue]:
            transcript = Transcript((handshake.TABLE, *tables))
            session.channel.on_received = transcript.add
            try:
                summary = await run(session)
                sent = {"bytes_sent": session.channel.bytes_sent, "messages_sent": session.channel.messages_sent}
                return {**summary, **sent}
            finally:
                self.party.write(session.id, "transcript.jsonl", transcript.encode())

        return record

    async def start(self) -> None:
        party = self.party
        party.sessions = Sessions(admission_of(party, self._seats, self._part), party.identity.first_revoked)
        party.pulse.start()
        coordinators = sum(peer.role == "coordinator" for peer in self.settings.peers.values())
        asyncio.get_running_loop().set_default_executor(threads_for(coordinators, party.limits.running))
        roles = {name: peer.role for name, peer in self.settings.peers.items()}
        self.guard = Guard(
            self.settings.name,
            lambda context: tls.caller(context, party.identity),
            roles,
            party.limits,
            lambda context: tls.check_not_revoked(context, party.identity),
        )
        self.server = grpc.aio.server(
            interceptors=(self.guard,),
            options=server_options(party.limits),
            maximum_concurrent_rpcs=party.limits.calls_of(len(roles)),
        )
        await self._add_services()
        self.port = self._bind()  # a second start by mistake ends here, before it changes anything
        party.sessions.end_what_ran_before()
        party.snapshots.settle()
        party.snapshots.tell_of_changes()
        self._publishing = asyncio.create_task(self._publish_by_schedule(), name="snapshots")
        await self.server.start()
        doorkeeper = Doorkeeper(self.port, party.limits, self.guard.is_serving)
        self._door = asyncio.create_task(doorkeeper.watch(), name="doorkeeper")
        log.info("party is running", party=self.settings.name, role=self.settings.role, port=self.port)

    async def _publish_by_schedule(self) -> None:
        snapshots = self.party.snapshots
        while True:
            for dataset in self.settings.datasets:
                try:
                    await asyncio.to_thread(snapshots.make_overdue, dataset)
                except Exception as error:  # noqa: BLE001 - the earlier snapshot stays; the next round tries again
                    log.error("dataset is not published", dataset=dataset, **ending.describe_error(error))
            await asyncio.sleep(SCHEDULE_S)

    def _bind(self) -> int:
        try:
            return self.server.add_secure_port(self.settings.listen, tls.server_credentials(self.party.identity))
        except RuntimeError:
            raise cannot_bind(self.settings.listen) from None

    async def _add_services(self) -> None:
        health = HealthServicer()
        names = ["grpc.health.v1.Health", reflection.SERVICE_NAME]
        control_pb2_grpc.add_ControlServicer_to_server(  # type: ignore[no-untyped-call]
            ControlServicer(self), self.server
        )
        exchange_pb2_grpc.add_ExchangeServicer_to_server(  # type: ignore[no-untyped-call]
            ExchangeServicer(self.sessions.channel_of, current_caller), self.server
        )
        names += [d.services_by_name[n].full_name for d, n in _SERVICES]
        names += [add(self.party, self.server) for add in self._services]
        health_pb2_grpc.add_HealthServicer_to_server(health, self.server)
        for name in ["", *names]:
            await health.set(name, health_pb2.HealthCheckResponse.SERVING)
        reflection.enable_server_reflection(names, self.server)

    async def stop(self) -> None:
        self._publishing.cancel()
        self._door.cancel()
        await self.sessions.close()
        self.party.pulse.stop()
        await self.server.stop(SHUTDOWN_GRACE_S)
        self.party.close()
        self.party.store.close()


def _measure(run: Run) -> Run:
    """Return a run that also measures its use of the machine."""

    async def measure(session: Session[Any]) -> dict[str, ParameterValue]:
        return {**await run(session), "peak_memory_mib": peak_memory_mib()}

    return measure


_SERVICES = ((control_pb2.DESCRIPTOR, "Control"), (exchange_pb2.DESCRIPTOR, "Exchange"))


class ControlServicer(control_pb2_grpc.ControlServicer):
    """The service for coordinators. A coordinator sees and changes only the sessions that it proposed."""

    def __init__(self, node: PartyNode) -> None:
        self._node = node

    async def Describe(self, request: Any, context: Any) -> control_pb2.PartyDescription:  # noqa: N802, ARG002
        settings = self._node.settings
        keeps_a_ledger = settings.role in ("active", "passive") and bool(settings.populations)
        return control_pb2.PartyDescription(
            name=settings.name,
            role=settings.role,
            version=__version__,
            protocol_version=PROTOCOL_VERSION,
            systems=settings.policy.systems,
            datasets=sorted(settings.datasets),
            published=sorted(self._node.party.snapshots.names_published()),
            receipt_key=self._node.party.receipts.public_key if keeps_a_ledger else b"",
        )

    async def Propose(self, request: control_pb2.Proposal, context: Any) -> control_pb2.ProposalAnswer:  # noqa: N802, ARG002
        session = await self._node.sessions.propose(request, current_caller())
        return control_pb2.ProposalAnswer(state=state_to_pb(session.state))

    async def Check(self, request: control_pb2.Proposal, context: Any) -> control_pb2.CheckAnswer:  # noqa: N802, ARG002
        self._node.sessions.check(request, current_caller())
        return control_pb2.CheckAnswer()

    async def Reserve(self, request: control_pb2.SessionRequest, context: Any) -> control_pb2.Place:  # noqa: N802, ARG002
        self._own(request.session)
        return control_pb2.Place(ahead=self._node.sessions.reserve(request.session))

    async def Start(self, request: control_pb2.SessionRequest, context: Any) -> control_pb2.SessionAnswer:  # noqa: N802, ARG002
        self._own(request.session)
        session = await self._node.sessions.start(request.session)
        return control_pb2.SessionAnswer(state=state_to_pb(session.state))

    async def Watch(self, request: control_pb2.SessionRequest, context: Any) -> AsyncIterator[control_pb2.Event]:  # noqa: N802, ARG002
        self._own(request.session)
        async for event in self._node.sessions.watch(request.session):
            yield event

    async def Cancel(self, request: control_pb2.SessionRequest, context: Any) -> control_pb2.SessionAnswer:  # noqa: N802, ARG002
        self._own(request.session)
        session = await self._node.sessions.cancel(request.session, current_caller(), request.blamed)
        return control_pb2.SessionAnswer(state=state_to_pb(session.state))

    async def Waiting(  # noqa: N802
        self,
        request: control_pb2.SessionRequest,
        context: Any,  # noqa: ARG002
    ) -> control_pb2.WaitingAnswer:
        session = self._node.sessions.get(request.session)
        if current_caller() not in (session.proposed_by, *session.members):
            raise SessionUnknown("no such session")  # the same answer as for a session that does not exist
        return report_to_pb(self._node.sessions.report_of(session))

    def _own(self, session: str) -> None:
        if self._node.sessions.get(session).proposed_by != current_caller():
            raise SessionUnknown("no such session")


# --- running ---------------------------------------------------------------------------------------------


async def serve(
    settings: PartySettings,
    base_dir: Path,
    on_ready: Callable[[int], None],
    *,
    first_snapshots: bool = True,
    patience_s: float = 0.0,
) -> None:
    """Run one party until a signal stops it.

    Args:
        on_ready: function that gets the port.
        first_snapshots: see `PartyNode`.
        patience_s: time for which another process may still keep the party's folder.
    """
    os.umask(0o077)  # only the operator may read files of this process
    stopping = asyncio.create_task(ending.wait_for_stop())
    giving_back = asyncio.create_task(give_back_freed(), name="memory")
    check_free(settings.listen)  # a second start by mistake ends here, before a dataset is read or published
    keeps = DataDirLock(base_dir / settings.data_dir, settings.name)
    await _take(keeps, patience_s)
    limits = fitting(Limits(), raise_open_files())
    node = PartyNode(settings, base_dir, limits, first_snapshots=first_snapshots)
    await node.start()
    on_ready(node.port)
    log.info("party stops", party=settings.name, signal=await stopping)
    giving_back.cancel()
    await node.stop()
    keeps.release()


async def _take(keeps: DataDirLock, patience_s: float) -> None:
    """Take the lock of the folder. Raise ConfigError if another process keeps it for too long."""
    give_up = time.monotonic() + patience_s
    while True:
        try:
            return keeps.take()
        except ConfigError:
            if time.monotonic() >= give_up:
                raise
        await asyncio.sleep(LOCK_POLL_S)


def peak_memory_mib() -> float:
    """Return the peak memory of this process, by the operating system."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage's figure begins with that of the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return round(int(line.split()[1]) / 2**10, 1)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def _as_logged(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Cut and clean texts for the log: a peer's texts in errors must not fill the operator's disk, nor steer the
    terminal.
    """
    return {
        name: printable(cut(value, MOST_LOGGED_CHARS)) if isinstance(value, str) else value
        for name, value in event.items()
    }


def set_up_logs(level: str, log_format: str, data_dir: Path | None = None) -> None:
    """Log events to standard error, never data, keys or shares. Events of a session are kept in `data_dir` too."""
    kept = [] if data_dir is None else [keeper(data_dir)]
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _as_logged,
            *kept,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
