"""Stored labels: a label index as it was at a release, with the noisy labels in the place of the true ones.

An index may be built again at any time, under other keys and so in another order, but a released label must be found
again for ever. So a release keeps the hashes and their keys next to its labels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import LedgerUnavailable
from blindfit.parties.files.private_files import new_private, sync_directory
from blindfit.parties.files.vault import PLAIN, Vault
from blindfit.parties.measurement.label_index import HEADER, Header, LabelIndex, write_private
from blindfit.parties.measurement.label_index_build import FILES

LABEL = "<i8"
_READ_BYTES = 2**20


def freeze(index: LabelIndex, directory: Path, blocks: Iterable[NDArray[np.int64]], vault: Vault = PLAIN) -> str:
    """Write everything into an empty directory; it is on the disk when this returns.

    Args:
        blocks: noisy labels in the index's order.

    Returns:
        SHA-256 of the noisy labels, as 64-bit little-endian integers.
    """
    for name in ("high", "low"):
        _write(directory / name, index.in_order(name), FILES[name])
    write_private(directory / HEADER, vault.seal(HEADER, index.frozen(LABEL).to_json().encode()))
    sha256 = _write(directory / "label", blocks, LABEL)
    for path in (directory, directory.parent):
        sync_directory(path)
    return sha256


def open_frozen(directory: Path, sha256: str, vault: Vault = PLAIN) -> LabelIndex:
    """Open the stored labels of a release.

    Raises:
        LedgerUnavailable: the files are not the files that were stored; other noise must never take their place.
    """
    try:
        digest = hashlib.sha256()
        with (directory / "label").open("rb") as file:
            while octets := file.read(_READ_BYTES):
                digest.update(octets)
        header = Header.from_json(vault.read(directory / HEADER))
        if digest.hexdigest() == sha256:
            return LabelIndex(directory, header)
        reason = "are damaged"
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"cannot be read: {error}"
    raise LedgerUnavailable(
        f"the labels that were released are stored in {directory}, but {reason}: nothing is released",
        hint="restore this directory from a backup; another name of the release asks for new noise and is charged",
    )


def _write(path: Path, blocks: Iterable[NDArray[Any]], dtype: str) -> str:
    """Write a private file (mode 0600), and return SHA-256 of its content."""
    digest = hashlib.sha256()
    with new_private(path) as file:
        for block in blocks:
            octets = np.ascontiguousarray(block, dtype).tobytes()
            digest.update(octets)
            file.write(octets)
    return digest.hexdigest()
