"""A party's own parts of models, one for each training session, signed with the party's own key.

Joint prediction takes them from here, wherever else a run has put its copies.
"""

from __future__ import annotations

import re
from pathlib import Path

from blindfit.algorithms.errors import DataError, RangeError
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.files import written
from blindfit.parties.files.vault import MODEL_KEY, PLAIN, Vault
from blindfit.parties.settings import SESSION


class ModelStore:
    def __init__(self, data_dir: Path, vault: Vault = PLAIN) -> None:
        self._directory, self._key_path, self._vault = data_dir / "models", data_dir / MODEL_KEY, vault

    def path(self, session: str) -> Path:
        if not re.fullmatch(SESSION, session):
            raise DataError("a session's name is no path")
        return self._directory / session / "model.json"

    def has(self, session: str) -> bool:
        return self.path(session).exists()

    def keep(self, part: VerticalModelPart, session: str) -> None:
        key = self._vault.signing_key(self._key_path)
        written.write_signed_json(self.path(session), {**part.to_dict(), "session": session}, key)

    def read(self, session: str) -> VerticalModelPart:
        """Raises DataError: it is not there, not as it was kept, or another session's; names the file."""
        path = self.path(session)
        if not self._key_path.exists():
            raise DataError(f"{self._key_path} does not exist, so {path} cannot be told from another party's")
        content = written.read_signed_json(path, self._vault.signing_key(self._key_path))
        if content.get("session") != session:
            raise DataError(f"{path} is the model of another session")
        try:
            return VerticalModelPart.from_dict(content)
        except (DataError, RangeError) as error:
            raise DataError(f"{path}: {error.message}", hint=error.hint) from None
