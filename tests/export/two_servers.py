"""Releases of two servers, for auditors."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blindfit.coordinator.verify import checks
from blindfit.coordinator.verify.refit import Refit, SentRows
from blindfit.coordinator.verify.results import Verified
from blindfit.parties.files.private_files import read_certificate
from tests.export import tampering
from tests.export.tampering import Change
from tests.world.split_labels import Split


@dataclass
class Trained:
    """
    Attributes:
        directories: the active party's directory for each job.
    """

    house: Split
    directories: dict[str, Path] = field(default_factory=dict)

    def train(self, name: str, *overrides: str, job: str) -> None:
        session = self.house.run(*overrides, job=job)
        self.directories[name] = self.house.root / "state/shop/models" / session.id

    def file(self, name: str) -> bytes:
        return (self.directories[name] / "release.json").read_bytes()

    def parts(self, name: str) -> dict[str, Any]:
        parts: dict[str, Any] = json.loads(self.file(name))["parts"]
        return parts

    def refit(self, name: str) -> Refit:
        sent = SentRows.read(self.directories[name] / "training_rows.json")
        return Refit(str(self.house.root / "features.csv"), "id", sent)

    def verify(self, encoded: bytes, refit: Refit | None = None) -> Verified:
        authority = read_certificate(self.house.root / "ca" / "authority.pem")
        return checks.verify(encoded, authority, refit.checks if refit else None)

    def lied(self, name: str, change: Change) -> dict[str, str]:
        """Return the reasons of the checks that fail, by name, for a file that its active party seals."""
        changed = tampering.sealed_again(self.file(name), self.house.root / "state/shop", change)
        failed = {result.name: result.why for result in self.verify(changed).results if result.why}
        assert not [why for why in failed.values() if "\n" in why]
        assert "signature of the seal" not in failed
        return failed


ANSWERED = (
    r"/servers/[01]/(entry|signer/(key|certificate|key_signature)|(newest_)?receipt/(statement|signature)"
    r"|release/(request_id|content_sha256|asked/snapshot|sums/\d+))"
)


RANDOM = re.compile(
    rf"{ANSWERED}|/sum/sums/\d+|/authority|/made/(time|session)|/party/(key|certificate|key_signature)"
    r"|/fit/(iterations|converged)|/model/(weights/\w+|intercept)|/transcript/\d/sha256"
)
