"""A release file's parts as the checks need them. An unreadable part raises an error when a check asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from cryptography import x509

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.privacy.ledger import LedgerEntry, Receipt
from blindfit.algorithms.protocols.walr import (
    AggregateOpen,
    NoisySum,
    several_parties,
    statement,
    two_servers,
)
from blindfit.algorithms.protocols.walr.blocks import blocks_of
from blindfit.algorithms.protocols.walr.encrypted_rows import Opening
from blindfit.algorithms.protocols.walr.statement import Between
from blindfit.algorithms.statistics.linear import fields
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.coordinator.verify.results import Verified
from blindfit.parties.identity import key_proof
from blindfit.parties.store.receipts import check_given
from blindfit.parties.walr import release_document
from blindfit.parties.walr.release_document import Answered, Parts, SignedReceipt
from blindfit.parties.walr.rows import SentColumns
from blindfit.parties.walr.settings import WalrSettings


def require(condition: bool, why: str) -> None:
    """Raise DataError: the condition does not hold."""
    if not condition:
        raise DataError(why)


@dataclass(frozen=True)
class ReadServer:
    """The file's content about one measurement server."""

    part: Answered
    of: Read

    @property
    def name(self) -> str:
        """Name of the server, from the signer's certificate."""
        return self.part.signer.name

    @cached_property
    def stated(self) -> tuple[AggregateOpen, NoisySum, Between]:
        opening = self.opening
        if opening is None:
            return statement.read(self.part.release)
        return statement.read(self.part.release, opening.public_key, opening.ciphertexts)

    @cached_property
    def opening(self) -> Opening | None:
        """Opening of an encrypted sum; None for another sum."""
        return self.part.encrypted.opening if self.part.encrypted else None

    @property
    def request(self) -> AggregateOpen:
        return self.stated[0]

    @property
    def answer(self) -> NoisySum:
        return self.stated[1]

    @property
    def about(self) -> Between:
        return self.stated[2]

    @cached_property
    def entry(self) -> LedgerEntry:
        return statement.read_charge(self.part.entry, self.receipt)

    @cached_property
    def receipt(self) -> Receipt:
        return self._receipt(self.part.receipt)

    @cached_property
    def newest(self) -> Receipt:
        return self._receipt(self.part.newest_receipt)

    def _receipt(self, receipt: SignedReceipt) -> Receipt:
        """Return a receipt whose signature is correct."""
        return check_given(receipt.signed, self.name, self.part.signer.public_key, self.about.population)


def _no_start(_encoded: bytes) -> tuple[Read, Verified]:
    raise DataError("its release file was not read")


@dataclass(frozen=True)
class Read:
    """Parts of a release file, with what the auditor has.

    Args:
        given_authority, given_servers, given_starts: authority that the auditor trusts, names of the measurement
            servers, and release files of the trainings whose models are starts.
        is_refitted: True if the auditor has the rows, and the model is fitted again.
        of_start: function that checks the release file of a start.
    """

    parts: Parts
    document: release_document.Document
    given_authority: x509.Certificate | None = None
    given_servers: tuple[str, ...] = ()
    given_starts: tuple[bytes, ...] = ()
    is_refitted: bool = False
    of_start: Callable[[bytes], tuple[Read, Verified]] = field(repr=False, default=_no_start)

    @cached_property
    def servers(self) -> list[ReadServer]:
        """One server, or two servers that hold shares."""
        return [ReadServer(part, self) for part in self.parts.servers]

    @property
    def names(self) -> str:
        """Names of the servers."""
        return " and ".join(server.name for server in self.servers)

    @property
    def request(self) -> AggregateOpen:
        """Request of the first server. The other server's request is the same in all that the fit depends on."""
        return self.servers[0].request

    @cached_property
    def own(self) -> AggregateOpen:
        """Request for only the active party's rows if others hold columns too; else the request."""
        if not self.request.blocks:
            return self.request
        own_bound, consumer = self.parts.sum.own_norm_bound or 0, self.servers[0].about.consumer
        return several_parties.step_4_own(self.request, own_bound, consumer=consumer)

    @property
    def holders(self) -> tuple[str, ...]:
        """Parties with columns: the active party, then the passive parties by name."""
        blocks = blocks_of(self.request, culprit=self.servers[0].about.consumer)
        return (self.parts.party.name, *(block.holder for block in blocks))

    @cached_property
    def answer(self) -> NoisySum:
        """Answer of all servers together; an encrypted answer as the file opens it."""
        answers = [server.answer for server in self.servers]
        if len(answers) == 1:
            return replace(answers[0], sums=self.opened, ciphertexts=b"") if self.request.key else answers[0]
        return two_servers.step_6_add(answers, self.request, servers=[server.name for server in self.servers])

    @property
    def opened(self) -> npt.NDArray[np.int64]:
        """Content of an encrypted sum, as the active party states it."""
        try:
            return np.array(self.parts.sum.sums, np.int64)
        except OverflowError:
            raise DataError("no labels give this sum") from None

    @cached_property
    def authority(self) -> x509.Certificate:
        return key_proof.read_certificate_der(bytes.fromhex(self.parts.authority), "the authority")

    @cached_property
    def settings(self) -> WalrSettings:
        try:
            return WalrSettings.model_validate(self.parts.fit.settings)
        except ValueError:
            raise DataError("its settings are not those of a walr job") from None

    @cached_property
    def model(self) -> WALRModel:
        stored = self.parts.model
        kept = Standardiser.from_dict(fields.table(stored, "standardiser")).kept_columns
        in_order = dict(zip(kept, fields.weights_by_name(stored, kept), strict=True))  # canonical JSON sorts names
        model = WALRModel.from_dict({**stored, "weights": in_order})
        if model.to_dict() != self.parts.model:
            raise DataError("the model is not written as a training writes it")
        return model

    @cached_property
    def part(self) -> VerticalModelPart:
        """Part of the active party if others hold columns too."""
        part = VerticalModelPart.from_dict(self.parts.model)
        if part.to_dict() != self.parts.model:
            raise DataError("the part of the model is not written as a training writes it")
        return part

    @property
    def sent(self) -> SentColumns:
        """Sources of the active party's rows."""
        if self.request.blocks:
            return SentColumns(self.part.standardiser, self.part.intercept is not None)
        return SentColumns(self.model.standardiser, self.model.intercept)
