"""Planted secrets, in every spelling, and everything that is printed or sent while a job runs."""

from __future__ import annotations

import base64
import contextlib
import io
import logging
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from blindfit.parties.wire.exchange import Encoded, ExchangeChannel

Secret = int | float | str | bytes


def spellings(secret: Secret) -> set[bytes]:
    """Return all ways to write the secret down."""
    if isinstance(secret, float):
        return {repr(secret).encode(), np.float64(secret).tobytes(), np.float64(secret).byteswap().tobytes()}
    if isinstance(secret, str):
        return {secret.encode(), *_encoded(secret.encode())}
    if isinstance(secret, bytes):
        return {secret, *_encoded(secret)}
    octets = secret.to_bytes((secret.bit_length() + 7) // 8, "big")
    return {str(secret).encode(), f"{secret:x}".encode(), octets, octets[::-1], *_encoded(octets)}


def _encoded(octets: bytes) -> set[bytes]:
    """Return hex, and base64 for each place in a longer text, without the ends that depend on neighbouring bytes."""
    shifted = {base64.b64encode(bytes(ahead) + octets)[4:-4] for ahead in range(3)}
    return {octets.hex().encode(), octets.hex().upper().encode(), *shifted}


def hits(secrets: Mapping[str, Secret], where: Mapping[str, bytes]) -> set[tuple[str, str]]:
    """Return which secret is found in which place."""
    spelt = {name: spellings(secret) for name, secret in secrets.items()}
    assert all(len(text) >= 6 for texts in spelt.values() for text in texts), "a secret so short is found anywhere"
    return {(s, place) for s, texts in spelt.items() for place, said in where.items() if any(t in said for t in texts)}


@dataclass
class Heard:
    """Everything that left the parties, by where it went."""

    logs: list[Any] = field(default_factory=list)
    records: list[str] = field(default_factory=list)
    output: io.StringIO = field(default_factory=io.StringIO)
    messages: dict[str, bytes] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def error(self, error: BaseException) -> None:
        """Record the error as the coordinator's user sees it, with all that a traceback would add."""
        self.errors += [str(error), str(getattr(error, "hint", "")), "".join(traceback.format_exception(error))]

    @property
    def said(self) -> dict[str, bytes]:
        texts = {"log": repr(self.logs), "records": "\n".join(self.records), "output": self.output.getvalue()}
        return {**{name: text.encode() for name, text in texts.items()}, "errors": "\n".join(self.errors).encode()}


class _Records(logging.Handler):
    def __init__(self, heard: Heard) -> None:
        super().__init__(logging.DEBUG)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self._heard.records.append(self.format(record))


@contextlib.contextmanager
def listening() -> Iterator[Heard]:
    """Record logs at DEBUG, of libraries too, standard output and error, and each message as it goes onto the wire."""
    heard, root, bring = Heard(), logging.getLogger(), ExchangeChannel.bring
    handler, level = _Records(heard), root.level

    async def heard_bring(self: Any, to: str, message: Encoded) -> None:
        heard.messages[message.step] = heard.messages.get(message.step, b"") + message.data
        await bring(self, to, message)

    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(ExchangeChannel, "bring", heard_bring)
        heard.logs = stack.enter_context(capture_logs())
        stack.enter_context(contextlib.redirect_stdout(heard.output))
        stack.enter_context(contextlib.redirect_stderr(heard.output))
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        try:
            yield heard
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
