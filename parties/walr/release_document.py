"""The file of a WALR training for an auditor: one canonical JSON document, of which every byte is determined.

    {"format": .., "parts": {..}, "seal": .., "sha256": {part: ..}}

`sha256` has the digest of each part, and `seal` is the active party's Ed25519 signature of format and digests. The
bytes of the file are those of `canonical_json` and a line's end. Any other spelling of the same content is refused. The
file holds no label, no row and no id. It holds only these values that are computed from them: the release, the model,
and a salted hash of the rows. For encrypted rows it also holds the server's re-randomised ciphertexts with their roots;
for several parties with columns, each party's norm bound.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.messages import canonical_json
from blindfit.algorithms.paillier import key_checks
from blindfit.algorithms.protocols.walr.encrypted_rows import Opening
from blindfit.algorithms.rehearsal import STAMP
from blindfit.parties.files import signing
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.identity.key_proof import KeyProof
from blindfit.parties.store.receipts import MOST_RECEIPT_BYTES

FORMAT = "blindfit-release-4"
RELEASE_FILE = "release.json"  # next to the model that it is about
MOST_BYTES = 2**26
MOST_CERTIFICATE_BYTES = 2**14
MOST_SERVERS = 2
MOST_NUMBERS = fixed_point.MAX_COLUMNS  # with the intercept's
MOST_ROOT_BYTES = key_checks.MOST_BITS // 8
MOST_KEY_BYTES = 16 * MOST_ROOT_BYTES  # a modulus and its proof
OCTETS = r"^([0-9a-f]{2})+$"
UTC_SECONDS = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"

Name = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f]+$", max_length=256)]  # on one line
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Signature = Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]
Certificate = Annotated[str, Field(pattern=OCTETS, max_length=2 * MOST_CERTIFICATE_BYTES)]
Time = Annotated[str, Field(pattern=f"^{UTC_SECONDS}$")]


class _Part(BaseModel):
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )


class SignedReceipt(_Part):
    statement: str = Field(min_length=1, max_length=MOST_RECEIPT_BYTES)
    signature: Signature

    @property
    def signed(self) -> tuple[bytes, bytes]:
        return self.statement.encode(), bytes.fromhex(self.signature)

    @classmethod
    def of(cls, signed: tuple[bytes, bytes]) -> SignedReceipt:
        return cls(statement=signed[0].decode(), signature=signed[1].hex())


class Signer(_Part):
    """The signer, its key, and the proof that the key is its own."""

    name: Name
    key: Hash  # Ed25519, public
    certificate: Certificate  # DER
    key_signature: Certificate  # by the certificate's key

    @property
    def public_key(self) -> bytes:
        return bytes.fromhex(self.key)

    @property
    def proof(self) -> KeyProof:
        return KeyProof(bytes.fromhex(self.certificate), bytes.fromhex(self.key_signature))

    @classmethod
    def of(cls, name: str, key: bytes, proof: KeyProof) -> Signer:
        return cls(name=name, key=key.hex(), certificate=proof.certificate.hex(), key_signature=proof.signature.hex())


class EncryptedSum(_Part):
    """The sum that one measurement server signed without reading it, decrypted: `encrypted_rows.Opening`."""

    public_key: Annotated[str, Field(pattern=OCTETS, max_length=2 * MOST_KEY_BYTES)]
    ciphertexts: Annotated[str, Field(pattern=OCTETS, max_length=MOST_BYTES)]
    roots: list[Annotated[str, Field(pattern=OCTETS, max_length=2 * MOST_ROOT_BYTES)]] = Field(
        min_length=1, max_length=MOST_NUMBERS
    )

    @property
    def opening(self) -> Opening:
        """Proof of the decrypted sum. Raises DataError if a root has more bytes than it needs."""
        roots = tuple(int(root, 16) for root in self.roots)
        opening = Opening(bytes.fromhex(self.public_key), bytes.fromhex(self.ciphertexts), roots)
        if self.of(opening) != self:
            raise DataError("a root of an encrypted sum has more bytes than it needs")
        return opening

    @classmethod
    def of(cls, opening: Opening) -> EncryptedSum:
        roots = [root.to_bytes(max(1, (root.bit_length() + 7) // 8), "big").hex() for root in opening.roots]
        return cls(public_key=opening.public_key.hex(), ciphertexts=opening.ciphertexts.hex(), roots=roots)


class Answered(_Part):
    """The request to one measurement server, its answer, and its signature."""

    release: dict[str, Any]  # statement.statement
    encrypted: EncryptedSum | None  # only if rows and sum were encrypted
    entry: str = Field(min_length=1, max_length=2**16)  # the ledger's line
    receipt: SignedReceipt  # of the entry
    newest_receipt: SignedReceipt  # newest receipt of this population that the active party held after the training
    signer: Signer


class Sum(_Part):
    """The sum that was fitted: the answers of all servers together. With several parties' columns, only the active
    party's.
    """

    draw: str = Field(max_length=256)  # the job's privacy.release
    sums: list[int] = Field(min_length=1, max_length=MOST_NUMBERS)  # grid steps
    noise_std: float = Field(gt=0)  # grid steps
    epsilon_of_both: float | None = Field(ge=0)  # against only the active party, if two servers added noise
    # in grid steps; the bound of the active party's columns, if others hold columns too
    own_norm_bound: int | None = Field(ge=1, le=fixed_point.MAX_NORM_BOUND)


class Start(_Part):
    """The model towards which the fit shrinks, and its origin as the active party declares it."""

    weights: list[float] = Field(min_length=1, max_length=MOST_NUMBERS)
    public: Name | None  # dataset of the active party whose rows it declares public
    release: Hash | None  # SHA-256 of the release file of the training that made this model


class Fit(_Part):
    settings: dict[str, Any]  # the job's [walr]; a pre-trained start is `init`
    l2: float = Field(ge=0)
    solver: Name
    iterations: int = Field(ge=0, le=2**31)
    converged: bool
    batches_seed: Hash | None  # seed of the server, if the server fitted
    init: Start | None


class Message(_Part):
    step: Name
    sender: Name
    receiver: Name
    message: Name
    sha256: Hash


class Made(_Part):
    time: Time
    session: Name
    numpy: Name


class Parts(_Part):
    servers: list[Answered] = Field(min_length=1, max_length=MOST_SERVERS)
    sum: Sum
    party: Signer
    authority: Certificate
    fit: Fit
    model: dict[str, Any]  # WALRModel.to_dict, or the active party's VerticalModelPart.to_dict
    transcript: list[Message] = Field(max_length=16)
    made: Made

    @property
    def made_at(self) -> datetime:
        try:
            return datetime.fromisoformat(self.made.time)
        except ValueError:
            raise DataError("made.time is not a valid time") from None


@dataclass(frozen=True)
class Document:
    parts: Parts
    digests: Mapping[str, str]
    seal: str

    def check_seal(self) -> None:
        """Raise DataError if the party did not sign these parts."""
        key, signature = self.parts.party.public_key, bytes.fromhex(self.seal)
        if not signing.verify(key, _encode_sealed(self.digests), signature):
            raise DataError(f"the seal is not the signature of {self.parts.party.name} over these parts")


def encode(parts: Parts, key: SigningKey, *, rehearses: bool = False) -> bytes:
    """Return the bytes of the file.

    Args:
        rehearses: True if the parts come from a rehearsal: the format then records it, and no program reads the file.
    """
    content, kind = parts.model_dump(), STAMP if rehearses else FORMAT
    digests = _digests(content)
    seal = key.sign(_encode_sealed(digests, kind)).hex()
    return canonical_json({"format": kind, "parts": content, "sha256": digests, "seal": seal}) + b"\n"


def read_file(path: Path) -> bytes:
    """Read at most one byte more than a release file may have.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def read(encoded: bytes) -> Document:
    """Read a document; its seal is not checked here.

    Raises:
        DataError: this is not a document that `encode` would write, byte for byte.
    """
    if len(encoded) > MOST_BYTES:
        raise DataError(f"it is longer than {MOST_BYTES >> 20} MiB")
    content = _json(encoded)
    if not isinstance(content, dict) or content.keys() != {"format", "parts", "sha256", "seal"}:
        raise DataError("it has other parts than a release file")
    if content["format"] == STAMP:
        raise DataError(f"it comes from a {STAMP}")
    if content["format"] != FORMAT:
        raise DataError(f"its format is not {FORMAT}")
    try:
        parts = Parts.model_validate(content["parts"])
        seal = _Seal.model_validate({"seal": content["seal"]}).seal
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise DataError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    digests = _digests(content["parts"])
    if content["sha256"] != digests:
        raise DataError(f"the digest of {_first_other(content['sha256'], digests)} is not that of its content")
    return Document(parts, digests, seal)


class _Seal(_Part):
    seal: Signature


def _json(encoded: bytes) -> Any:
    try:
        content = json.loads(encoded.decode("ascii"), parse_constant=_refuse)
        canonical = canonical_json(content) + b"\n"
    except (ValueError, RecursionError):
        raise DataError("it is not JSON") from None
    if canonical != encoded:
        raise DataError("it is not in the exact form that Blindfit writes: it was changed, or cut")
    return content


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _digests(parts: Mapping[str, Any]) -> dict[str, str]:
    return {name: hashlib.sha256(canonical_json({name: part})).hexdigest() for name, part in parts.items()}


def _first_other(stated: object, digests: Mapping[str, str]) -> str:
    known = stated if isinstance(stated, dict) else {}
    return next((name for name, digest in digests.items() if known.get(name) != digest), "a part that is not there")


def _encode_sealed(digests: Mapping[str, str], kind: str = FORMAT) -> bytes:
    return canonical_json({"format": kind, "sha256": dict(digests)})
