"""Files that a party writes: readable JSON, complete or absent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.messages import canonical_json
from blindfit.parties.files.private_files import WRITABLE, make_private, replace_file
from blindfit.parties.files.regular import other_kind
from blindfit.parties.files.signing import SigningKey, verify


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_file(path, encode_json(content))


def encode_json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=2, allow_nan=False).encode() + b"\n"


def encode_signed_json(content: Mapping[str, Any], key: SigningKey) -> bytes:
    """Return the content with the party's signature of its canonical form, under `signature`."""
    signature = {"public_key": key.public_bytes.hex(), "ed25519": key.sign(canonical_json(content)).hex()}
    return encode_json({**content, "signature": signature})


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    write_file(path, encode_table(columns))


def encode_table(columns: Mapping[str, Any]) -> bytes:
    return csv_of(pa.table(dict(columns)))


def csv_of(table: Any, *, header: bool = True) -> bytes:
    """Return a csv file. Numbers have as many digits as it takes to read them back exactly."""
    encoded = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, encoded, pyarrow.csv.WriteOptions(include_header=header))
    return bytes(encoded.getvalue().to_pybytes())


def write_file(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read. A reader sees the old file or the new one.

    Raises:
        ConfigError: it cannot be written, or it may not survive a power cut.
    """
    try:
        make_private(path.parent)
        replace_file(path, content, mode=0o600)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", hint=WRITABLE) from None


def read_json(path: Path, read: Callable[[Path], bytes] = Path.read_bytes) -> Any:
    """Return the content of a JSON file. Raise DataError if it has an error; the message names the file."""
    try:
        if other := other_kind(path):
            raise DataError(f"{path} cannot be read: this is {other}")
        return json.loads(read(path).decode())
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path} is not JSON") from None


def read_signed_json(path: Path, key: SigningKey, read: Callable[[Path], bytes] = Path.read_bytes) -> dict[str, Any]:
    """Return the content of a file of `encode_signed_json`, without the signature.

    Raises:
        DataError: the file was changed, or another key signed it.
    """
    content = read_json(path, read)
    signature = content.pop("signature", None) if isinstance(content, dict) else None
    if not _is_signed(content, signature, key):
        raise DataError(
            f"{path} does not have this party's signature: it was changed, or is another party's",
            hint="restore the file that was written after the training, or train again",
        )
    return dict(content)


def _is_signed(content: Any, signature: Any, key: SigningKey) -> bool:
    try:
        return verify(key.public_bytes, canonical_json(content), bytes.fromhex(signature["ed25519"]))
    except (KeyError, TypeError, ValueError):  # no signature, or a number that JSON does not have
        return False
