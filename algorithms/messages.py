"""A protocol's view of the wire: message classes made of a few typed kinds, and a channel with two methods.

A message is a frozen dataclass whose fields are annotated with the kinds below; parties/wire/codec.py maps each kind to
its protobuf message and checks everything that it reads: shapes, lengths, ranges.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.paillier.ciphertexts import FreshCiphertext, ReceivedCiphertext
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.threshold import PartialDecryption, ReceivedPartialDecryption

ParameterValue = str | int | float | bool | tuple[str, ...]

RealTensor = Annotated[npt.NDArray[np.float64], "real_tensor"]
IntegerTensor = Annotated[npt.NDArray[np.int64], "integer_tensor"]
Int32Tensor = Annotated[npt.NDArray[np.int32], "int32_tensor"]
NarrowTensor = Annotated[npt.NDArray[np.int16 | np.int32], "int32_tensor"]  # held in 16 bits where they fit
ShareVector = Annotated[npt.NDArray[np.uint64], "share_vector"]
Texts = Annotated[tuple[str, ...], "texts"]
Text = Annotated[str, "text"]
Integer = Annotated[int, "integer"]
Real = Annotated[float, "real"]
Octets = Annotated[bytes, "octets"]
Parameters = Annotated[Mapping[str, ParameterValue], "parameters"]
Bits = Annotated[npt.NDArray[np.bool_], "bits"]  # (length,): a mask, membership
OctetVector = Annotated[npt.NDArray[np.uint8], "octet_vector"]  # (count, width): byte strings of one width
PublicKeyKind = Annotated[PublicKey, "paillier_public_key"]  # of the right form; the receiver checks the number
# In each pair, the first class is sent and the second received: `open` of either gives numbers to compute with.
CiphertextVector = Annotated[FreshCiphertext | ReceivedCiphertext, "ciphertext_vector"]
PartialDecryptionVector = Annotated[PartialDecryption | ReceivedPartialDecryption, "partial_decryption"]

M = TypeVar("M")


class Channel(Protocol):
    """One party's connection to the others within one session."""

    async def send(self, to: str, message: object) -> None: ...

    async def receive(self, sender: str, kind: type[M]) -> M: ...


def canonical_bytes(parameters: Mapping[str, ParameterValue]) -> bytes:
    """Return one byte string for one set of parameters: sorted, typed, every part preceded by its length."""
    return b"".join(_prefix_size(name.encode()) + _canonical_value(parameters[name]) for name in sorted(parameters))


def parameters_digest(parameters: Mapping[str, ParameterValue]) -> bytes:
    return hashlib.sha256(canonical_bytes(parameters)).digest()


def canonical_json(content: Mapping[str, Any]) -> bytes:
    """Return one byte string for one content, names sorted; raise ValueError for a number that JSON does not have."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _canonical_value(value: ParameterValue) -> bytes:
    if isinstance(value, bool):
        return b"b" + bytes([value])
    if isinstance(value, int):
        return b"i" + _prefix_size(str(value).encode())
    if isinstance(value, float):
        return b"f" + struct.pack("<d", value)
    if isinstance(value, str):
        return b"s" + _prefix_size(value.encode())
    return b"l" + struct.pack("<Q", len(value)) + b"".join(_prefix_size(item.encode()) for item in value)


def _prefix_size(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data
