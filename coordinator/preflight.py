"""Pre-flight: what would leak, fail or take too long, before any byte leaves.

Where a party's file is here, its settings, data and ledger are read here; where only its address is, it is asked who it
is and what it takes part in. Nothing of a party's data is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from algorithms.errors import BlindfitError, BudgetExhausted
from algorithms.privacy import gaussian
from algorithms.privacy import ledger as book
from algorithms.privacy.events import ReleaseEvent
from algorithms.privacy.ledger import Budget
from algorithms.statistics import walr_defaults
from coordinator.job import Job
from coordinator.jobs import addresses_of, coordinator_identity
from coordinator.launcher import party_settings
from parties import identity
from parties.active import prepare_rows
from parties.measurement import UNITS
from parties.settings import PartySettings
from parties.sources import open_source
from parties.store import Store
from protos import control_pb2, control_pb2_grpc

Level = Literal["ok", "note", "warning", "refuses"]
BYTES_PER_ID = 12
SLOW_LINK_BYTES_PER_S = 100e6 / 8
CLIPPED_SHARE_WARNING = 0.05


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    about: str
    text: str

    @property
    def refuses(self) -> bool:
        return self.level == "refuses"


def check(job: Job, base_dir: Path) -> list[Finding]:
    findings = list(_leaks(job))
    if all(party.config is None for party in job.parties.values()):
        return [*findings, *asyncio.run(_ask_parties(job, base_dir))]
    for name, party in job.parties.items():
        if party.config is None:
            findings.append(Finding("note", name, "has no config here: not looked at"))
            continue
        findings += _caught(name, lambda name=name: _check_here(job, name, base_dir))
    return findings


def _caught(about: str, checks) -> list[Finding]:  # type: ignore[no-untyped-def]
    """The findings so far, and the error that ended them as the last."""
    findings: list[Finding] = []
    try:
        for finding in checks():
            findings.append(finding)
    except BlindfitError as error:
        findings.append(Finding("refuses", about, f"{error}" + (f" ({error.hint})" if error.hint else "")))
    return findings


# --- what leaks ------------------------------------------------------------------------------------------


def _leaks(job: Job) -> Iterator[Finding]:
    active, server = (_with_role(job, role) for role in ("active", "measurement"))
    yield Finding("note", "who learns what", f"{server} sees the ids and the rounded rows of {active}'s training rows")
    yield Finding(
        "note",
        "who learns what",
        f"{active} learns one noisy sum; (epsilon {job.privacy.epsilon:g}, delta {job.privacy.delta:g}) label DP",
    )
    if job.privacy.epsilon > 4:
        yield Finding("warning", "privacy.epsilon", f"{job.privacy.epsilon:g} promises little: e^epsilon is large")


def _with_role(job: Job, role: str) -> str:
    return next(name for name, party in job.parties.items() if party.role == role)


# --- parties whose file is here --------------------------------------------------------------------------


def _check_here(job: Job, name: str, base_dir: Path) -> Iterator[Finding]:
    path, settings = party_settings(job, name, base_dir)
    yield from _check_policy(job, name, settings)
    dataset = settings.datasets.get(job.parties[name].dataset)
    if dataset is None:
        yield Finding("refuses", name, f"has no dataset named {job.parties[name].dataset}")
        return
    if settings.role == "measurement":
        open_source(dataset, path.parent, job.parties[name].dataset)
        yield from _check_budget(job, name, settings, path.parent)
    else:
        yield from _check_rows(job, name, settings, path.parent)


def _check_policy(job: Job, name: str, settings: PartySettings) -> Iterator[Finding]:
    policy = settings.policy
    if settings.role != job.parties[name].role:
        yield Finding("refuses", name, f"is {settings.role}, the job says {job.parties[name].role}")
    if job.protocol not in policy.protocols:
        yield Finding("refuses", name, f"its policy has no protocol {job.protocol}")
    if job.privacy.epsilon > policy.most_epsilon:
        yield Finding("refuses", name, f"its policy allows epsilon {policy.most_epsilon:g} at most")
    if policy.approve == "ask":
        yield Finding("note", name, "its operator approves each job (`blindfit approve`)")


def _check_budget(job: Job, name: str, settings: PartySettings, base_dir: Path) -> Iterator[Finding]:
    dataset = settings.datasets[job.parties[name].dataset]
    population = settings.populations[str(dataset.population)]
    database = base_dir / settings.data_dir / "party.sqlite"
    entries = Store(database).reader().ledger(dataset.population) if database.exists() else []
    spent = book.spent(entries, population.delta)
    yield Finding(
        "note",
        name,
        f"budget of {dataset.population}: epsilon {spent:.4g} of {population.epsilon:g} is spent",
    )
    multiplier = gaussian.noise_multiplier(job.privacy.mechanism, job.privacy.epsilon, job.privacy.delta)
    event = ReleaseEvent("gaussian", multiplier, UNITS["person" if dataset.person else "row"][1])
    try:
        book.check_budget(
            [ReleaseEvent.from_canonical(entry.event) for entry in entries],
            event,
            Budget(population.epsilon, population.delta),
            str(dataset.population),
        )
    except BudgetExhausted as error:
        yield Finding("warning", name, f"{error}; only a request that was answered before gets its answer again")


def _check_rows(job: Job, name: str, settings: PartySettings, base_dir: Path) -> Iterator[Finding]:
    dataset = job.parties[name].dataset
    source = open_source(settings.datasets[dataset], base_dir, dataset)
    prepared = prepare_rows(source, job.parameters(), lambda *_: None)
    n, k = prepared.train.weights.shape
    bound = prepared.norm_bound * 2.0**-job.walr.frac_bits
    yield Finding("ok", name, f"{n:,} rows to train on, {len(prepared.test_ids):,} held out, {k} columns")
    share = prepared.rows_clipped / n
    level: Level = "warning" if share > CLIPPED_SHARE_WARNING else "ok"
    yield Finding(level, name, f"row norms are clipped at {bound:.3g}: {share:.1%} of the rows")
    yield _noise(job, n, k, bound)
    size = n * (4 * k + BYTES_PER_ID)
    yield Finding(
        "note",
        "bytes",
        f"about {size / 1e6:,.1f} MB to send: {size / SLOW_LINK_BYTES_PER_S:,.0f} s at 100 Mbit/s",
    )


def _noise(job: Job, n: int, k: int, bound: float) -> Finding:
    persons = job.privacy.max_rows_per_person or 1
    multiplier = gaussian.noise_multiplier(job.privacy.mechanism, job.privacy.epsilon, job.privacy.delta)
    noise_std = multiplier * bound * persons / n
    l2 = walr_defaults.default_l2(noise_std, bound, k, job.privacy.epsilon)
    text = f"standard deviation {noise_std:.2g} on each coordinate of the mean, default l2 {l2:.2g}"
    if noise_std > 0.05:
        return Finding("warning", "noise", f"{text}: expect a weak model; take more rows or a larger epsilon")
    return Finding("ok", "noise", text)


# --- parties that are up ---------------------------------------------------------------------------------


async def _ask_parties(job: Job, base_dir: Path) -> list[Finding]:
    own = coordinator_identity(job, base_dir)
    findings: list[Finding] = []
    for name, address in addresses_of(job).items():
        try:
            channel = await identity.open_channel(own, name, address)
            async with channel:
                stub = control_pb2_grpc.ControlStub(channel)  # type: ignore[no-untyped-call]
                findings += _compare(job, name, await stub.Describe(control_pb2.DescribePartyRequest(), timeout=10))
        except BlindfitError as error:
            findings.append(Finding("refuses", name, str(error)))
    return findings


def _compare(job: Job, name: str, told: control_pb2.PartyDescription) -> Iterator[Finding]:
    party = job.parties[name]
    yield Finding("ok", name, f"is up: {told.role}, version {told.version}")
    if told.role != party.role:
        yield Finding("refuses", name, f"is {told.role}, the job says {party.role}")
    if job.protocol not in told.protocols:
        yield Finding("refuses", name, f"takes no part in {job.protocol}")
    if party.dataset not in told.datasets:
        yield Finding("refuses", name, f"has no dataset named {party.dataset}")


# --- showing ---------------------------------------------------------------------------------------------

_MARKS = {
    "ok": "[green]ok[/]",
    "note": "[cyan]note[/]",
    "warning": "[yellow]warning[/]",
    "refuses": "[bold red]refuses[/]",
}


def show(findings: list[Finding], console: Console) -> None:
    table = Table.grid(padding=(0, 2))
    for finding in findings:
        table.add_row(_MARKS[finding.level], f"[bold]{finding.about}[/]", escape(finding.text))
    console.print(table)
