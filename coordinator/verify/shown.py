"""What `blindfit verify` finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from rich.console import RenderableType
from rich.markup import escape

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.terminal.exit_codes import ExitCode
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.terminal import line
from blindfit.coordinator.terminal.wording import plain
from blindfit.coordinator.verify import checks
from blindfit.coordinator.verify.checks import Verified
from blindfit.coordinator.verify.refit import Refit, SentRows
from blindfit.parties.files.private_files import read_certificate


def verify(release: Path, *, authority: Path | None, features: str | None, rows: Path | None, row_id: str) -> Found:
    if (features is None) != (rows is None):
        raise ConfigError(
            "--features and --rows go together", hint="--rows is the training_rows.json beside the active party's model"
        )
    trusted: x509.Certificate | None = read_certificate(authority) if authority else None
    more = Refit(features, row_id, SentRows.read(rows)).checks if features and rows else None
    verified = checks.verify(checks.read_bytes(release), trusted, more)
    shown = tuple(_render(verified, trusted=trusted is not None))
    return Found(_content(verified), shown, ExitCode.DONE if verified.passed else ExitCode.FAILED)


def _content(verified: Verified) -> dict[str, object]:
    results = [{"check": plain(r.name), "passed": not r.why, "why": plain(r.why)} for r in verified.results]
    return {"passed": verified.passed, "fingerprints": verified.fingerprints, "checks": results}


def _render(verified: Verified, *, trusted: bool) -> Iterator[RenderableType]:
    if verified.fingerprints and not trusted:
        yield "No --authority was given: signatures are checked against the certificates in the file only."
    for name, fingerprint in verified.fingerprints.items():
        yield f"certificate of {plain(name)}: SHA-256 {fingerprint}"
    for result in verified.results:
        name = escape(plain(result.name))
        yield line(f"[bold red]FAILED[/]  {name}: {escape(plain(result.why))}" if result.why else f"passed  {name}")
