"""The output of `blindfit verify`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from cryptography import x509
from rich.console import RenderableType
from rich.markup import escape

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.terminal.exit_codes import ExitCode
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.terminal import line
from blindfit.coordinator.terminal.wording import plain, quantity
from blindfit.coordinator.verify import checks
from blindfit.coordinator.verify.refit import Refit, SentRows
from blindfit.coordinator.verify.results import Result, Verified
from blindfit.parties.files.private_files import read_certificate
from blindfit.parties.walr.release_document import read_file


def verify(
    release: Path,
    *,
    authority: Path | None,
    servers: Sequence[str],
    starts: Sequence[Path],
    features: str | None,
    rows: Path | None,
    row_id: str,
) -> Found:
    if (features is None) != (rows is None):
        raise ConfigError(
            "--features and --rows go together",
            hint="--rows is the training_rows.json next to the active party's model",
        )
    trusted: x509.Certificate | None = read_certificate(authority) if authority else None
    more = Refit(features, row_id, SentRows.read(rows)).checks if features and rows else None
    earlier = [read_file(start) for start in starts]
    verified = checks.verify(read_file(release), trusted, more, servers=servers, starts=earlier)
    shown = tuple(_render(verified))
    return Found(_content(verified), shown, ExitCode.DONE if verified.passed else ExitCode.FAILED)


def _content(verified: Verified) -> dict[str, object]:
    results = [
        {"check": plain(r.name), "passed": not r.why, "why": plain(r.why), "not_covered": plain(r.not_covered)}
        for r in verified.results
    ]
    return {
        "passed": verified.passed,
        "covered": verified.passed and not verified.not_covered,
        "fingerprints": verified.fingerprints,
        "checks": results,
    }


def _render(verified: Verified) -> Iterator[RenderableType]:
    for name, fingerprint in verified.fingerprints.items():
        yield f"certificate of {plain(name)}: SHA-256 {fingerprint}"
    yield from (_line(result) for result in verified.results)
    if verified.passed and (open_lines := len(verified.not_covered)):
        yield f"No check failed. {quantity(open_lines, 'line')} above, marked NOT COVERED, rest only on a party's word."


def _line(result: Result) -> RenderableType:
    name = escape(plain(result.name))
    if result.why:
        return line(f"[bold red]FAILED[/]  {name}: {escape(plain(result.why))}")
    if result.not_covered:
        return line(f"[bold yellow]NOT COVERED[/]  {name}: {escape(plain(result.not_covered))}")
    return line(f"passed  {name}")
