"""One measurement server is trusted with the labels, and gets the rows encrypted under a key of the active party.

The active party makes its Paillier key pair once and keeps it: only this key decrypts an answer that the server stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.paillier.keys import PrivateKey, generate_private_key
from blindfit.algorithms.paillier.randomisers import OwnKey
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, Tally, encrypted_rows
from blindfit.algorithms.protocols.walr.encrypted_rows import HiddenRows
from blindfit.parties.files.private_files import check_private, write_new
from blindfit.parties.files.vault import ROW_KEY, Vault
from blindfit.parties.measurement.calls import Aggregate
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.measurement.trust import ENCRYPTED_ROWS, UNCHECKED_ROWS
from blindfit.parties.measurement.ways import trusted, way
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session


class AtServer(trusted.AtServer):
    def check(self) -> None:
        super().check()
        check_is_allowed(self.call.service, self.request, self.call.consumer)

    def tally(self) -> Tally:
        return encrypted_rows.tally_of(self.request, self.call.keep_bits, consumer=self.call.consumer)


def check_is_allowed(service: MeasurementService, request: AggregateOpen, consumer: str) -> None:
    """Check that rows of unknown length are allowed: the policy lists the flag, or the operator approved a job with it.

    Raises:
        PolicyRefused: neither is the case.
    """
    job = service.approved_job(request.session, consumer) if service.policy.approve == "ask" else None
    if job and UNCHECKED_ROWS not in job.unsafe:
        service.refuse("key", "the approved job does not hide its rows")
    for field, reason in service.policy.refusals(request.epsilon, request.delta, (UNCHECKED_ROWS,)):
        service.refuse(field, reason)


class AtActiveParty(way.AtActiveParty):
    def __init__(self, session: Session[Any], servers: Sequence[str], private_key: PrivateKey) -> None:
        super().__init__(session, servers)
        self._private_key = private_key

    @classmethod
    async def open(cls, party: Party, session: Session[Any], servers: Sequence[str]) -> AtActiveParty:
        session.report("load key")
        return cls(session, servers, await asyncio.to_thread(load_or_create_key, party.data_dir, party.vault))

    def open_request(self, request: AggregateOpen) -> AggregateOpen:
        return encrypted_rows.step_1_open(request, self._private_key.public_key)

    def hide(self, rows: ConsumerRows, request: AggregateOpen) -> HiddenRows:
        layout = encrypted_rows.layout_of(request, self._private_key.public_key)
        return HiddenRows(rows, layout, OwnKey(self._private_key))

    def open_answer(self, aggregate: Aggregate, request: AggregateOpen, *, server: str) -> Aggregate:
        answer = encrypted_rows.step_6_decrypt(aggregate.answer, request, self._private_key, server=server)
        opening = encrypted_rows.step_6_open(aggregate.answer, self._private_key)
        return replace(aggregate, answer=answer, opening=opening)

    def report(self, request: AggregateOpen) -> dict[str, Any]:  # noqa: ARG002
        return {"trust": ENCRYPTED_ROWS}


def load_or_create_key(data_dir: Path, vault: Vault) -> PrivateKey:
    """Return the key pair. Raise ConfigError if the file holds none, others may read it, or the vault does not open
    it.
    """
    path = data_dir / ROW_KEY
    if not path.exists():
        try:
            write_new(path, vault.seal(path.name, generate_private_key().to_bytes()), mode=0o600)
        except ConfigError:
            # Another process may have made the key since the check; then both use the same key.
            if not path.exists():
                raise
    check_private(path)
    try:
        return PrivateKey.from_bytes(vault.read(path))
    except DataError as error:
        raise ConfigError(f"{path}: {error.message}", hint="restore it from a backup") from None
