"""The Paillier key pair under which a party hides its rows from a measurement server: made once and kept, because an
answer that a server remembers can be read with the same key alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.paillier.keys import PrivateKey, generate_private_key
from blindfit.algorithms.paillier.randomisers import OwnKey
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, encrypted_rows
from blindfit.algorithms.protocols.walr.encrypted_rows import HiddenRows
from blindfit.parties.files.private_files import check_private, write_new
from blindfit.parties.files.vault import ROW_KEY, Vault
from blindfit.parties.measurement.client import Aggregate


@dataclass(frozen=True, repr=False)
class RowKey:
    private_key: PrivateKey

    @classmethod
    def load_or_create(cls, data_dir: Path, vault: Vault) -> RowKey:
        """Raises ConfigError: the file is not a key pair, others may read it, or the vault does not open it."""
        path = data_dir / ROW_KEY
        if not path.exists():
            try:
                write_new(path, vault.sealed(path.name, generate_private_key().to_bytes()), mode=0o600)
            except ConfigError:
                # Another process may have made it since we looked; then both use the same key.
                if not path.exists():
                    raise
        check_private(path)
        try:
            return cls(PrivateKey.from_bytes(vault.read(path)))
        except DataError as error:
            raise ConfigError(f"{path}: {error.message}", hint="restore it from a backup") from None

    def request(self, request: AggregateOpen) -> AggregateOpen:
        """The same, for rows that are hidden."""
        return encrypted_rows.step_1_open(request, self.private_key.public_key)

    async def begin(self, rows: ConsumerRows, request: AggregateOpen) -> None:
        """Nothing goes before the rows."""

    async def prove(self) -> None:
        """Nothing is proved of them."""

    async def end(self) -> None:
        """Nobody waits for it."""

    def hidden(self, rows: ConsumerRows, request: AggregateOpen) -> HiddenRows:
        layout = encrypted_rows.layout_of(request, self.private_key.public_key)
        return HiddenRows(rows, layout, OwnKey(self.private_key))

    def opened(self, aggregate: Aggregate, request: AggregateOpen, *, server: str) -> Aggregate:
        """Raises MalformedMessage, as `step_6_decrypt`."""
        answer = encrypted_rows.step_6_decrypt(aggregate.answer, request, self.private_key, server=server)
        return replace(aggregate, answer=answer, opening=encrypted_rows.step_6_open(aggregate.answer, self.private_key))
