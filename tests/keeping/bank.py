"""A party's disk, with sessions on it."""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner, Result

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.vertical import model as vertical
from blindfit.coordinator.cli.main import app
from blindfit.parties.files.written import encode_json, write_file
from blindfit.parties.store.database import Store
from blindfit.parties.store.sessions import SessionRow
from blindfit.parties.systems import load_party
from tests.unconnected import unconnected


class Bank:
    """A party's disk, with sessions on it."""

    def __init__(self, root: Path, *overrides: str) -> None:
        self.root, self.state = root, root / "state/bank"
        self.store = Store(self.state / "party.sqlite")
        self.party = unconnected(load_party(root / "bank.toml", overrides), root, self.store)

    def session(self, name: str, state: str = "DONE", changed: str = "2026-03-01T10:00:00+00:00") -> None:
        with self.store.transaction() as transaction:
            if transaction.session(name) is None:
                transaction.add_session(SessionRow(name, "taylor", "coordinator", "", state, changed, b""))
            else:
                transaction.change_session(name, state=state, changed=changed)

    def writes(self, session: str, *names: str, kind: str = "models") -> list[Path]:
        content = encode_json({"session": session, "format": vertical.FORMAT})
        return [self.party.write(session, name, content, kind) for name in names]

    def stops(self, session: str, training: str) -> list[Path]:
        """Write checkpoints of a training that the session had begun or resumed."""
        directory = self.party.note(self.state / "checkpoints" / training, session)
        for name in ("base.json", "epoch-1.json"):
            write_file(directory / name, b"{}")
        return [directory / "base.json", directory / "epoch-1.json"]

    def purge(self, *arguments: str, answer: str = "") -> Result:
        return CliRunner().invoke(app, ["purge", str(self.root / "bank.toml"), *arguments], input=answer)

    def refused(self, *arguments: str) -> str:
        result = self.purge(*arguments)
        assert isinstance(result.exception, ConfigError), result.output
        return result.exception.message

    def removed(self, *arguments: str) -> set[Path]:
        result = self.purge(*arguments, "--yes")
        assert result.exit_code == 0, result.output
        return {Path(path).resolve() for path in re.findall(r"^removed (.*) \([\d,]+ bytes\)$", result.output, re.M)}


def resolved(*paths: Path) -> set[Path]:
    return {path.resolve() for path in paths}
