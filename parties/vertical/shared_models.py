"""A party's shares of models that nobody holds, one file for each training session: signed with the party's own key,
and locked where the party has a passphrase.

They go to no other place than this: a joint prediction takes them from here, and `blindfit purge` removes them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.protocols.shared_scores.model import SharedModelPart
from blindfit.parties.files import written
from blindfit.parties.files.vault import MODEL_KEY, PLAIN, Vault
from blindfit.parties.settings import SESSION

SHARES = "shares.json"


class SharedModels:
    def __init__(self, data_dir: Path, vault: Vault = PLAIN) -> None:
        self._directory, self._key_path, self._vault = data_dir / "models", data_dir / MODEL_KEY, vault

    def path(self, session: str) -> Path:
        if not re.fullmatch(SESSION, session):
            raise DataError("a session's name is no path")
        return self._directory / session / SHARES

    def has(self, session: str) -> bool:
        return self.path(session).exists()

    def keep(self, part: SharedModelPart, session: str) -> None:
        path, key = self.path(session), self._vault.signing_key(self._key_path)
        content = written.signed({**part.to_dict(), "session": session}, key)
        written.write_file(path, self._vault.sealed(path.name, written.encoded_json(content)))

    def read(self, session: str) -> SharedModelPart:
        """Raises DataError: they are not there, not as they were kept, or another session's; names the file."""
        path = self.path(session)
        if not self._key_path.exists():
            raise DataError(f"{self._key_path} does not exist, so {path} cannot be told from another party's")
        content = written.checked_signature(self._content(path), path, self._vault.signing_key(self._key_path))
        if content.get("session") != session:
            raise DataError(f"{path} has the shares of another session's model")
        try:
            return SharedModelPart.from_dict(content)
        except DataError as error:
            raise DataError(f"{path}: {error.message}", hint=error.hint) from None

    def _content(self, path: Path) -> Any:
        try:
            return json.loads(self._vault.read(path))
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError):
            raise DataError(f"{path} is not JSON") from None
