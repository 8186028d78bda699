"""Record what the shop sends to servers, and their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows
from blindfit.parties.measurement import codec
from blindfit.parties.measurement.servers import Server, Servers
from tests.world.split_labels import Split


def overheard(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return all that measurement servers receive from the shop in their calls, in order."""
    seen: list[bytes] = []
    from_pb = codec.Messages.from_pb

    def noted(self: codec.Messages, envelope: Any, kind: type, *, culprit: str) -> Any:
        if culprit == "shop":
            seen.append(envelope.SerializeToString())
        return from_pb(self, envelope, kind, culprit=culprit)

    monkeypatch.setattr(codec.Messages, "from_pb", noted)
    return seen


Change = Callable[[ConsumerRows], ConsumerRows]


def listen(house: Split, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Change] | None = None) -> dict[str, Any]:
    """Return each server's final answer; an active party that changes its rows for a server sends it their hash."""
    answers: dict[str, Any] = {}
    ask = Servers._ask

    async def asked(self: Servers, server: Server, request: AggregateOpen, rows: ConsumerRows) -> Any:
        name = server.member.name
        if change := (changed or {}).get(name):
            rows = change(rows)
            content = walr.ContentDigest()
            for batch in rows.batches():
                content.update(batch)
            request = replace(request, content_sha256=content.digest(), request_id=f"of {name}")
        house.asked[name] = request, rows
        aggregate = await ask(self, server, request, rows)
        answers[name] = aggregate.answer
        return aggregate

    monkeypatch.setattr(Servers, "_ask", asked)
    return answers
