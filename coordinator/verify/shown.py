"""What `blindfit verify` prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cryptography import x509
from rich.console import Console
from rich.markup import escape

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.terminal.wording import plain
from blindfit.coordinator.verify import checks
from blindfit.coordinator.verify.checks import Verified
from blindfit.coordinator.verify.refit import Refit, SentRows
from blindfit.parties.files.private_files import read_certificate


def run(
    release: Path,
    console: Console,
    *,
    authority: Path | None,
    features: str | None,
    rows: Path | None,
    row_id: str,
    as_json: bool,
) -> bool:
    """Returns whether all passed."""
    if (features is None) != (rows is None):
        raise ConfigError(
            "--features and --rows go together", hint="--rows is the training_rows.json beside the active party's model"
        )
    trusted: x509.Certificate | None = read_certificate(authority) if authority else None
    more = Refit(features, row_id, SentRows.read(rows)).checks if features and rows else None
    verified = checks.verify(checks.read_bytes(release), trusted, more)
    if as_json:
        sys.stdout.write(json.dumps(_content(verified), indent=2) + "\n")
    else:
        _print(verified, console, trusted=trusted is not None)
    return verified.passed


def _content(verified: Verified) -> dict[str, object]:
    results = [{"check": plain(r.name), "passed": not r.why, "why": plain(r.why)} for r in verified.results]
    return {"passed": verified.passed, "fingerprints": verified.fingerprints, "checks": results}


def _print(verified: Verified, console: Console, *, trusted: bool) -> None:
    def line(text: str) -> None:
        console.print(text, soft_wrap=True, highlight=False)

    if verified.fingerprints and not trusted:
        line("No --authority was given: signatures are checked against the certificates in the file only.")
    for name, fingerprint in verified.fingerprints.items():
        line(f"certificate of {escape(plain(name))}: SHA-256 {fingerprint}")
    for result in verified.results:
        name = escape(plain(result.name))
        line(f"[bold red]FAILED[/]  {name}: {escape(plain(result.why))}" if result.why else f"passed  {name}")
