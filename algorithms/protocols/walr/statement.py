"""The statement that a measurement server's receipt proves about a WALR release, to a person who was not there.

The receipt signs the hash of the ledger's entry. The entry holds the hash of the statement made here, which has the
whole request (for the rows, a salted hash) and the whole answer. So one signature covers charge, parameters and noisy
sum, and parts of two releases cannot be combined. Only the noisy sum is computed from labels, and the active party
knows the whole statement: it reveals nothing that the answer did not reveal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from blindfit.algorithms.digest_format import DigestFormat
from blindfit.algorithms.errors import DataError, MalformedMessage
from blindfit.algorithms.messages import canonical_json
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.ledger import LedgerEntry, Receipt
from blindfit.algorithms.protocols.handshake import PROTOCOL_VERSION
from blindfit.algorithms.protocols.walr.messages import NOT_CONTENT, AggregateOpen, NoisySum
from blindfit.algorithms.protocols.walr.request import DIGEST, step_2_check
from blindfit.algorithms.protocols.walr.tally import step_6_check

FORMAT = "blindfit-walr-release-1"
ASKED = tuple(f.name for f in fields(AggregateOpen) if f.name not in NOT_CONTENT)
ANSWER_DIGEST = DigestFormat(
    renamed={"min_rows": "least_rows", "max_epsilon": "most_epsilon", "max_delta": "most_delta"},
    added={"rows_unknown": 0},
)
"""Form of an answer's fields in the statement; the request's fields have the form of `walr.DIGEST`."""
MOST_NAME_CHARS = 256
PROOF = ("entry", "receipt", "receipt_signature")
ANSWERED = tuple(f.name for f in fields(NoisySum) if f.name not in (*PROOF, "sums", "ciphertexts"))
_TYPES: dict[str, type] = {"Integer": int, "Real": float, "Text": str}
_TYPE_OF = {f.name: _TYPES[str(f.type)] for f in (*fields(AggregateOpen), *fields(NoisySum)) if str(f.type) in _TYPES}


@dataclass(frozen=True, slots=True)
class Between:
    """The parties of a release, and the population whose budget paid."""

    server: str
    consumer: str
    population: str


def statement(request: AggregateOpen, answer: NoisySum, about: Between) -> bytes:
    """Return the statement in canonical JSON."""
    return canonical_json(
        {
            "format": FORMAT,
            "server": about.server,
            "consumer": about.consumer,
            "population": about.population,
            "request_id": request.request_id,
            "content_sha256": request.content_sha256.hex(),
            "asked": DIGEST.fields({name: _TYPE_OF[name](getattr(request, name)) for name in ASKED}),
            "answered": ANSWER_DIGEST.fields({name: _TYPE_OF[name](getattr(answer, name)) for name in ANSWERED}),
            "sums": [int(value) for value in answer.sums],
            "ciphertexts_sha256": hashlib.sha256(answer.ciphertexts).hexdigest(),
        }
    )


def digest(request: AggregateOpen, answer: NoisySum, about: Between) -> str:
    """Return the digest of an answer that the ledger's entry holds."""
    return hashlib.sha256(statement(request, answer, about)).hexdigest()


def read(
    stated: Mapping[str, Any], public_key: bytes = b"", ciphertexts: bytes = b""
) -> tuple[AggregateOpen, NoisySum, Between]:
    """Return the arguments of `statement`, without salt, session and proof; its numbers are checked for their range.

    Args:
        public_key, ciphertexts: key and ciphertexts of an encrypted sum; the statement has only their digests.

    Raises:
        MalformedMessage: a field has a value that no server and no active party would write; the error names it.
        DataError: it is not a statement.
    """
    try:
        asked, answered = DIGEST.restore(stated["asked"]), ANSWER_DIGEST.restore(stated["answered"])
        for name, value in (*asked.items(), *answered.items()):
            if type(value) is not _TYPE_OF[name]:
                raise TypeError
        about = Between(stated["server"], stated["consumer"], stated["population"])
        if not all(0 < len(name) <= MOST_NAME_CHARS for name in (about.server, about.consumer)):
            raise ValueError
        texts = [text for text in asked.values() if isinstance(text, str)]
        "".join([about.server, about.consumer, about.population, *texts]).encode()  # half a surrogate has no digest
        request = AggregateOpen(
            protocol_version=PROTOCOL_VERSION,
            request_id=stated["request_id"],
            content_sha256=bytes.fromhex(stated["content_sha256"]),
            receipt=b"",
            receipt_signature=b"",
            public_key=public_key,
            **asked,
        )
        sums = np.array(stated["sums"], np.int64)
        proof: dict[str, Any] = {"entry": "", "receipt": b"", "receipt_signature": b""}
        answer = NoisySum(sums=sums, ciphertexts=ciphertexts, **answered, **proof)
        whole = statement(request, answer, about) == canonical_json(stated)
        if whole:
            step_2_check(request, consumer=about.consumer)
            step_6_check(answer, request, server=about.server)
    except MalformedMessage:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        whole = False
    if not whole:
        raise DataError("not the statement of a WALR release")
    return request, answer, about


def attach_proof(answer: NoisySum, entry: LedgerEntry, receipt: tuple[bytes, bytes]) -> NoisySum:
    return replace(answer, entry=book.to_json_line(entry), receipt=receipt[0], receipt_signature=receipt[1])


def check_proof(request: AggregateOpen, answer: NoisySum, about: Between) -> LedgerEntry:
    """Check, at the active party, an answer whose receipt it knows to be signed by the server.

    Returns:
        The entry that charged the answer.

    Raises:
        MalformedMessage: the receipt does not prove this answer to this request.
    """
    try:
        entry = read_charge(answer.entry, Receipt.from_statement(answer.receipt))
        check_entry(entry, request, answer, about)
    except DataError as error:
        raise MalformedMessage(culprit=about.server, field="entry", reason=error.message, step="NoisySum") from None
    return entry


def read_charge(line: str, receipt: Receipt) -> LedgerEntry:
    """Read the entry of a ledger's line, and check that the receipt is the one of this entry.

    Raises:
        DataError: they do not belong together; the error states why.
    """
    entry = book.from_json_line(line, 1)
    if entry.hash != book.entry_hash(entry):
        raise DataError("the ledger entry's hash is not that of its content")
    if (receipt.position, receipt.entry_hash) != (entry.position, entry.hash):
        raise DataError("the receipt is of another ledger entry")
    if receipt.population != entry.population:
        raise DataError("the receipt and the ledger entry are about different populations")
    before = [at for position, at in receipt.landmarks if position == entry.position - 1]
    if before != ([entry.previous_hash] if entry.position > 1 else []):
        raise DataError("the ledger entry does not follow from the entry before it that the receipt shows")
    if entry.position == 1 and entry.previous_hash != book.NO_PREVIOUS_HASH:
        raise DataError("the first ledger entry follows from another one")
    return entry


def check_entry(entry: LedgerEntry, request: AggregateOpen, answer: NoisySum, about: Between) -> None:
    """Check that an entry charged this answer to this request.

    Raises:
        DataError: the entry charged something else, or another answer.
    """
    wanted = {
        "kind": "release",
        "population": about.population,
        "requester": about.consumer,
        "dataset": request.dataset,
        "snapshot": request.snapshot,
        "request_id": request.request_id,
        "content_sha256": request.content_sha256.hex(),
        "event": answer.event,
        "epsilon": request.epsilon,
        "delta": request.delta,
        "unit": answer.unit,
        "answer_sha256": digest(request, answer, about),
    }
    for name, value in wanted.items():
        if getattr(entry, name) != value:
            raise DataError(f"{name} of the ledger entry is not that of the release")
