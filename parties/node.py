"""A party process: identity, policy, sessions, health; one gRPC server, mutual TLS, nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from blindfit.algorithms.errors import ConfigError, SessionUnknown
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.algorithms.protocols import align, handshake, link, predict, ready, taylor
from blindfit.algorithms.protocols.handshake import PROTOCOL_VERSION
from blindfit.algorithms.protocols.table import Table
from blindfit.parties.data.source import open_source
from blindfit.parties.dp_lr.trainer import DPLogisticRole
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.identity import connections as tls
from blindfit.parties.identity.connections import Identity
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.label_dp.consumer import LabelRegressionRole
from blindfit.parties.measurement.charging import Asked
from blindfit.parties.measurement.label_index import open_or_build
from blindfit.parties.measurement.server import ApprovedJob, LabelDataset, MeasurementService, MeasurementServicer
from blindfit.parties.predict.prediction import JointPrediction
from blindfit.parties.sessions.sessions import Member, Run, Session, Sessions, state_to_pb
from blindfit.parties.sessions.transcript import Transcript
from blindfit.parties.settings import IdentitySettings, PartySettings
from blindfit.parties.store.store import Store
from blindfit.parties.taylor.data_party import VerticalParty
from blindfit.parties.taylor.key_node import KeyNode
from blindfit.parties.walr.consumer import ActiveParty
from blindfit.parties.wire.exchange import ExchangeServicer
from blindfit.parties.wire.guard import Guard, current_caller
from blindfit.parties.wire.limits import Limits, server_options
from blindfit.parties.work.compute import workers_of
from blindfit.protos import (
    control_pb2,
    control_pb2_grpc,
    exchange_pb2,
    exchange_pb2_grpc,
    measurement_pb2_grpc,
)

log = structlog.get_logger(__name__)

SHUTDOWN_GRACE_S = 3.0
VERSION = "0.1.0"

# What the parties of a session send each other; a protocol that is not here sends nothing on this way.
TABLES: Mapping[str, Sequence[Table]] = {
    "taylor": (taylor.TABLE, align.TABLE, link.TABLE, ready.TABLE, predict.TABLE),
    "predict": (align.TABLE, predict.TABLE),
}


class PartyNode:
    """Everything of one party. `start` binds the address; `wait` returns when the process is told to stop."""

    def __init__(self, settings: PartySettings, base_dir: Path, limits: Limits | None = None) -> None:
        self.settings, self.base_dir, self.limits = settings, base_dir, limits or Limits()
        self.identity = open_identity(settings.identity, base_dir)
        if self.identity.name != settings.name:
            raise ConfigError(
                f"name = {settings.name}, but {settings.identity.certificate} "
                f"is the certificate of {self.identity.name}"
            )
        self.data_dir = base_dir / settings.data_dir
        self.store = Store(self.data_dir / "party.sqlite")
        self.measurement = self._open_measurement() if settings.role == "measurement" else None
        self.active = (
            ActiveParty(settings, base_dir, self.identity, self.store, self.limits)
            if settings.role == "active"
            else None
        )
        self.label_regression = (
            LabelRegressionRole(settings, base_dir, self.identity, self.store, self.limits)
            if settings.role == "active"
            else None
        )
        self.dp_logistic = DPLogisticRole(settings, base_dir, self.store) if settings.role == "active" else None
        self.key_node = KeyNode(settings, base_dir) if settings.role == "key-node" else None
        self._closing = contextlib.ExitStack()
        self.vertical = self._open_vertical() if settings.role in ("active", "passive") else None
        self.prediction = JointPrediction(settings, base_dir) if settings.role in ("active", "passive") else None
        self.sessions: Sessions
        self.server: grpc.aio.Server
        self.port = 0

    def _open_vertical(self) -> VerticalParty:
        workers = self._closing.enter_context(workers_of(self.settings, self.base_dir))
        return VerticalParty(self.settings, self.base_dir, self.store, workers)

    # --- measurement role

    def _open_measurement(self) -> MeasurementService:
        datasets = {}
        for name, dataset in self.settings.datasets.items():
            source = open_source(dataset, self.base_dir, name)
            index = open_or_build(source, self.data_dir / "index" / name)
            datasets[name] = LabelDataset(name, dataset, index)
            log.info("dataset is ready", dataset=name, rows=index.n_rows, version=index.version)
        budgets = {n: Budget(p.epsilon, p.delta) for n, p in self.settings.populations.items()}
        key = SigningKey.load_or_create(self.data_dir / "receipt_key.pem")
        return MeasurementService(
            self.settings.name, datasets, budgets, self.settings.policy, self.store, key, self._approved_job
        )

    def _approved_job(self, session_id: str, consumer: str) -> ApprovedJob | None:
        try:
            session = self.sessions.get(session_id)
        except SessionUnknown:
            return None
        if session.state not in ("RUNNING", "DONE") or consumer not in session.members:
            return None
        return ApprovedJob(session.me.dataset, session.job.required_privacy.epsilon, session.job.required_privacy.delta)

    def _on_answered(self, consumer: str, request: Asked) -> None:
        with contextlib.suppress(SessionUnknown):
            session = self.sessions.get(request.session)
            if consumer in session.members:
                session.aggregate_answered.set()

    async def _run_measurement(self, session: Session) -> dict[str, ParameterValue]:
        """The work is done in Aggregate and ReleaseLabels calls; the session lasts until its own has been answered."""
        assert self.measurement is not None  # noqa: S101 - for the type checker
        active = session.with_role("active")
        session.report("answer", waiting_for=active.name)
        await session.channel.wait_for(
            session.aggregate_answered.wait(), active.name, "the request", session.job.timeouts.session_s
        )
        dataset = self.measurement.datasets[session.me.dataset]
        budget = self.measurement.describe_budget(dataset.population)
        return {
            "dataset": dataset.name,
            "dataset_rows": dataset.index.n_rows,
            "population": budget.population,
            "budget_epsilon": budget.epsilon,
            "spent_epsilon": budget.spent_epsilon,
            "releases": int(budget.releases),
            "peak_memory_mib": peak_memory_mib(),
        }

    async def _run_walr_active(self, session: Session) -> dict[str, ParameterValue]:
        assert self.active is not None  # noqa: S101 - for the type checker
        return {**await self.active.run_walr(session), "peak_memory_mib": peak_memory_mib()}

    async def _run_label_regression(self, session: Session) -> dict[str, ParameterValue]:
        assert self.label_regression is not None  # noqa: S101 - for the type checker
        return {**await self.label_regression.run(session), "peak_memory_mib": peak_memory_mib()}

    # --- the process

    def _runs(self) -> dict[str, Run]:
        by_role: dict[str, dict[str, Run]] = {
            "active": {"walr": self._run_walr_active, "label-dp": self._run_label_regression},
            "measurement": {"walr": self._run_measurement, "label-dp": self._run_measurement},
        }
        runs = by_role.get(self.settings.role, {})
        if self.vertical is not None:
            runs["taylor"] = self._recorded(self.vertical.run_taylor)
        if self.dp_logistic is not None:
            runs["dp-lr"] = _measured(self.dp_logistic.run)
        if self.prediction is not None:
            runs["predict"] = self._recorded(self.prediction.run)
        if self.key_node is not None:
            runs["taylor"] = self._recorded(self.key_node.run_taylor)
            runs["predict"] = self._recorded(self.key_node.run_predict)
        return runs

    def _recorded(self, run: Run) -> Run:
        """With what the process used, and a transcript of what it received, kept also when the session fails."""

        async def recorded(session: Session) -> dict[str, ParameterValue]:
            transcript = Transcript((handshake.TABLE, *_tables_of(session.job.protocol)))
            session.channel.on_received = transcript.received
            try:
                return await _measured(run)(session)
            finally:
                directory = self.settings.output_dir or self.settings.data_dir / "models" / session.id
                transcript.write(self.base_dir / directory / "transcript.jsonl")

        return recorded

    def _check_role(self, job: JobParameters, me: Member) -> None:
        if job.protocol == "walr" and self.active is not None:
            self.active.check(job, me)
        if job.protocol == "label-dp" and self.label_regression is not None:
            self.label_regression.check(job, me)
        if job.protocol == "dp-lr" and self.dp_logistic is not None:
            self.dp_logistic.check(job, me)
        if job.protocol == "taylor" and self.vertical is not None:
            self.vertical.check(job, me)
        if job.protocol == "predict" and self.prediction is not None:
            self.prediction.check(job, me)
        if job.protocol in ("taylor", "predict") and self.key_node is not None:
            self.key_node.check(job, me)

    async def start(self) -> None:
        self.sessions = Sessions(
            self.settings,
            self.store,
            self.limits,
            lambda peer, address: tls.open_channel(self.identity, peer, address, self.limits),
            self._runs(),
            self._check_role,
            _tables_of,
        )
        roles = {name: peer.role for name, peer in self.settings.peers.items()}
        guard = Guard(self.settings.name, lambda context: tls.caller(context, self.identity), roles)
        self.server = grpc.aio.server(
            interceptors=(guard,),
            options=server_options(self.limits),
            maximum_concurrent_rpcs=self.limits.concurrent_calls,
        )
        await self._add_services()
        self.port = self._bind()
        await self.server.start()
        log.info("party is up", party=self.settings.name, role=self.settings.role, port=self.port)

    def _bind(self) -> int:
        try:
            return self.server.add_secure_port(self.settings.listen, tls.server_credentials(self.identity))
        except RuntimeError:
            raise ConfigError(
                f"listen = {self.settings.listen}: the address cannot be bound",
                hint="is another process using the port?",
            ) from None

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
        if self.measurement is not None:
            measurement_pb2_grpc.add_MeasurementServicer_to_server(  # type: ignore[no-untyped-call]
                MeasurementServicer(self.measurement, current_caller, self._on_answered), self.server
            )
            names.append("blindfit.v1.Measurement")
        health_pb2_grpc.add_HealthServicer_to_server(health, self.server)
        for name in ["", *names]:
            await health.set(name, health_pb2.HealthCheckResponse.SERVING)
        reflection.enable_server_reflection(names, self.server)

    async def stop(self) -> None:
        await self.sessions.close()
        await self.server.stop(SHUTDOWN_GRACE_S)
        self._closing.close()
        self.store.close()


def _tables_of(protocol: str) -> Sequence[Table]:
    return TABLES.get(protocol, ())


def _measured(run: Run) -> Run:
    """What it tells, and what that took."""

    async def measured(session: Session) -> dict[str, ParameterValue]:
        told = await run(session)
        return {**told, "peak_memory_mib": peak_memory_mib(), "bytes_sent": session.channel.bytes_sent}

    return measured


_SERVICES = ((control_pb2.DESCRIPTOR, "Control"), (exchange_pb2.DESCRIPTOR, "Exchange"))


class ControlServicer(control_pb2_grpc.ControlServicer):
    """A coordinator sees and changes the sessions that it proposed, and no others."""

    def __init__(self, node: PartyNode) -> None:
        self._node = node

    async def Describe(self, request: Any, context: Any) -> control_pb2.PartyDescription:  # noqa: N802, ARG002
        settings = self._node.settings
        return control_pb2.PartyDescription(
            name=settings.name,
            role=settings.role,
            version=VERSION,
            protocol_version=PROTOCOL_VERSION,
            protocols=settings.policy.protocols,
            datasets=sorted(settings.datasets),
        )

    async def Propose(self, request: control_pb2.Proposal, context: Any) -> control_pb2.ProposalAnswer:  # noqa: N802, ARG002
        session = await self._node.sessions.propose(request, current_caller())
        return control_pb2.ProposalAnswer(state=state_to_pb(session.state))

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
        session = await self._node.sessions.cancel(request.session)
        return control_pb2.SessionAnswer(state=state_to_pb(session.state))

    def _own(self, session: str) -> None:
        if self._node.sessions.get(session).proposed_by != current_caller():
            raise SessionUnknown("no such session")


# --- running ---------------------------------------------------------------------------------------------


def open_identity(settings: IdentitySettings, base_dir: Path) -> Identity:
    passphrase = None
    if settings.passphrase_file is not None:
        try:
            passphrase = (base_dir / settings.passphrase_file).read_bytes().rstrip(b"\r\n")
        except OSError as error:
            raise ConfigError(f"{settings.passphrase_file} cannot be read: {error.strerror}") from None
    return tls.load_identity(
        base_dir / settings.certificate,
        base_dir / settings.key,
        base_dir / settings.authority,
        base_dir / settings.revoked if settings.revoked else None,
        passphrase,
    )


async def serve(settings: PartySettings, base_dir: Path, on_ready: Callable[[int], None]) -> None:
    """Runs one party until SIGTERM or SIGINT; `on_ready` is told the port."""
    os.umask(0o077)  # whatever this process writes is its operator's alone
    node = PartyNode(settings, base_dir)
    await node.start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    on_ready(node.port)
    await stop.wait()
    log.info("party stops", party=settings.name)
    await node.stop()


def peak_memory_mib() -> float:
    """Of this process, the operating system's own figure."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage's figure begins with that of the process which started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return round(int(line.split()[1]) / 2**10, 1)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def set_up_logs(level: str, log_format: str) -> None:
    """To standard error: what happened, never data, keys or shares."""
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
