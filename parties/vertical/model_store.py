"""Vertical models that a party keeps, one file for each training session, signed with the party's own key.

Joint predictions read parts of models and shares of models only from here, also if a run has copies elsewhere. Shares
are stored only here, and are locked if the party has a passphrase. `blindfit purge` removes both.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Generic, TypeVar

from blindfit.algorithms.errors import DataError, RangeError
from blindfit.algorithms.protocols.shared_scores.model import SharedModelPart
from blindfit.algorithms.rehearsal import with_stamp
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.files import written
from blindfit.parties.files.vault import MODEL_KEY, PLAIN, Vault
from blindfit.parties.settings import SESSION

SHARES = "shares.json"
P = TypeVar("P", VerticalModelPart, SharedModelPart)


class PartStore(Generic[P]):
    """The files of one kind of model.

    Attributes:
        file: name of each file.
        kind: class of a file's content.
        is_secret: True if the party's passphrase locks the files.
    """

    file: str
    kind: type[P]
    is_secret = False

    def __init__(self, data_dir: Path, vault: Vault = PLAIN) -> None:
        self._directory, self._key_path, self._vault = data_dir / "models", data_dir / MODEL_KEY, vault
        self._lock = vault if self.is_secret else PLAIN

    def path(self, session: str) -> Path:
        if not re.fullmatch(SESSION, session):
            raise DataError("a session's name is not a path")
        return self._directory / session / self.file

    def has(self, session: str) -> bool:
        return self.path(session).exists()

    def keep(self, part: P, session: str, stamp: str = "") -> None:
        """Store a model.

        Args:
            stamp: stamp of a rehearsal; empty in a real job.
        """
        key = self._vault.signing_key(self._key_path)
        content = written.encode_signed_json(with_stamp({**part.to_dict(), "session": session}, stamp), key)
        written.write_file(self.path(session), self._lock.seal(self.file, content))

    def read(self, session: str) -> P:
        """Return a stored model. Raise DataError if its file is absent, changed or another session's; the error names
        the file.
        """
        path = self.path(session)
        if not self._key_path.exists():
            raise DataError(f"{self._key_path} does not exist, so {path} cannot be distinguished from another party's")
        content = written.read_signed_json(path, self._vault.signing_key(self._key_path), self._lock.read)
        if content.get("session") != session:
            raise DataError(f"{path} is the model of another session")
        try:
            return self.kind.from_dict(content)
        except (DataError, RangeError) as error:
            raise DataError(f"{path}: {error.message}", hint=error.hint) from None


class ModelStore(PartStore[VerticalModelPart]):
    """A party's own parts of models."""

    file, kind = "model.json", VerticalModelPart


class SharedModels(PartStore[SharedModelPart]):
    """A party's shares of models that no party holds as a whole."""

    file, kind, is_secret = SHARES, SharedModelPart, True
