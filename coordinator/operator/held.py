"""A job that waits for a party's operator, as it is shown: dangers first, then the parties, the cost, and the rest.

Texts of a coordinator are shown as in a job file, in printable ASCII: they can neither move the cursor nor look like
Blindfit's own lines.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.markup import escape

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.privacy import ledger as book
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.operator.account import summarise
from blindfit.coordinator.preflight.findings import Finding, judge_epsilon, table_of
from blindfit.coordinator.systems import view
from blindfit.coordinator.terminal.terminal import line
from blindfit.coordinator.terminal.titles import with_title
from blindfit.coordinator.terminal.whole_table import WholeTable
from blindfit.coordinator.terminal.wording import join_names
from blindfit.parties.sessions.proposal import Member, Proposed, read_proposal
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Store
from blindfit.parties.store.sessions import SessionRow
from blindfit.parties.systems import read_proposed
from blindfit.parties.tables import Settings
from blindfit.protos import control_pb2 as pb

GLARING = "bold white on red"


@dataclass(frozen=True)
class HeldJob:
    """A job that waits for approval.

    Attributes:
        since: time of the proposal.
        settings: settings of the party.
        file: file of the settings.
    """

    asked: Proposed
    since: str
    settings: PartySettings
    file: Path

    @classmethod
    def of(cls, row: SessionRow, settings: PartySettings, file: Path) -> HeldJob:
        """Raise DataError: the database shows another job than the one that waits."""
        asked = read_proposal(pb.Proposal.FromString(row.proposal), row.proposed_by, read_proposed)
        if asked.digest != row.digest:
            raise DataError(f"{row.session}: the party's database shows another job than the one that waits")
        return cls(asked, row.changed, settings, file)

    @property
    def command(self) -> str:
        return shlex.join(["blindfit", "approve", str(self.file), self.asked.session, self.asked.digest])

    def describe(self, store: Store) -> Iterator[RenderableType]:
        asked = self.asked
        yield line(
            f"[bold]{asked.session}[/]: {with_title(asked.protocol)}, proposed by {asked.proposed_by}, {self.since}"
        )
        for flag in asked.job.unsafe:
            yield line(f"[{GLARING}] UNSAFE {flag} [/] {view(asked.protocol).given_up[flag]}")
        yield self._members()
        yield table_of(self._findings())
        yield asked.job.promise
        if asked.job.holds_against:
            yield asked.job.holds_against
        yield self._describe_charge(store)
        if account := self._describe_account(store):
            yield line(escape(account))
        if options := [f"  {name} = {value}" for name, value in not_default("", asked.job)]:
            yield "options that the job sets:"
            yield from options
        unsafe = f" [{GLARING}] this is UNSAFE [/]" if asked.job.unsafe else ""
        yield line(f"digest [bold]{asked.digest}[/]{unsafe}\n{escape(self.command)}\n")

    def document(self, store: Store) -> dict[str, Any]:
        """Return the same facts for a program."""
        asked = self.asked
        return {
            "session": asked.session,
            "protocol": asked.protocol,
            "proposed_by": asked.proposed_by,
            "since": self.since,
            "unsafe": list(asked.job.unsafe),
            "members": [{"party": m.name, "role": m.role, "dataset": m.dataset} for m in asked.members.values()],
            "findings": self._findings(),
            "promise": asked.job.promise,
            "holds_against": asked.job.holds_against,
            "charged": self._describe_charge(store),
            "account": self._describe_account(store),
            "options": dict(not_default("", asked.job)),
            "digest": asked.digest,
        }

    def _findings(self) -> list[Finding]:
        """Return the findings of `blindfit check` for the proposing party: who learns what, and against whom."""
        members = {m.name: {"role": m.role, "dataset": m.dataset} for m in self.asked.members.values()}
        job: Job[Any] = Job({**self.asked.job.to_tables(), "parties": members}, called=self.asked.session)
        return [*view(job.protocol).leaks(job), *judge_epsilon(job.parameters.epsilon)]

    def _members(self) -> WholeTable:
        table = WholeTable("party", "role", "dataset")
        for member in self.asked.members.values():
            here = " (here)" if member.name == self.settings.name else ""
            table.add_row(member.name + here, member.role, escape(to_toml(member.dataset)) if member.dataset else "-")
        return table

    def _payers(self) -> list[Member]:
        """Return the members that pay for a release: each measurement server, or the active party, or all owners of
        rows.

        The party with the labels pays.
        """
        members = list(self.asked.members.values())
        if self.asked.job.charges_all_data_parties:
            return [member for member in members if member.dataset]
        servers = [member for member in members if member.role == "measurement"]
        return servers or [member for member in members if member.role == "active"]

    def _describe_charge(self, store: Store) -> str:
        if not self.asked.job.epsilon:
            return "no budget is charged"
        payers = {member.name: member for member in self._payers()}
        payer = payers.get(self.settings.name)
        if payer is None:
            return f"charged to a budget of {join_names(list(payers))}; nothing is charged here"
        dataset = self.settings.datasets.get(payer.dataset)
        if dataset is None:
            return f"there is no dataset named {payer.dataset} any more: the job will fail"
        name = dataset.population
        if name is None:
            return f"datasets.{payer.dataset} has no population, and so no budget: the job will fail"
        budget = self.settings.populations[name]
        spent = book.spent(store.reader().ledger(name), budget.delta)
        left = max(0.0, budget.epsilon - spent)
        return (
            f"charged here, to the population {name}: of epsilon {budget.epsilon:g} at delta {budget.delta:g}, "
            f"{spent:.4g} is spent and {left:.4g} is left"
        )

    def _describe_account(self, store: Store) -> str:
        """Return the disclosure account of the own dataset; an empty text if the job reads no dataset here."""
        own = self.asked.members.get(self.settings.name)
        if own is None or own.dataset not in self.settings.datasets:
            return ""
        return summarise(self.settings, store, own.dataset)


def not_default(prefix: str, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield each option that a job file would have to set, under its own name: "taylor.epochs", "3"."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, Settings):
            yield from not_default(f"{prefix}{name}.", value)
        elif value != field.get_default(call_default_factory=True):
            yield prefix + name, to_toml(value)


def to_toml(value: Any) -> str:
    """Return a value as TOML, in printable ASCII."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {to_toml(inner)}" for name, inner in value.items()) + " }"
    return json.dumps(value).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
