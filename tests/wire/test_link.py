"""The time that a link waits between two attempts."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from blindfit.algorithms.errors import PeerUnreachable
from blindfit.parties.wire.link import FIRST_WAIT_S, LONGEST_WAIT_S, Link, Timeouts


async def test_each_attempt_waits_longer_up_to_the_longest_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """An arrival begins the waits again."""
    waits: list[float] = []
    outbox = SimpleNamespace(acknowledged=0)

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    async def cut(_give_up: float, _before: object) -> PeerUnreachable:
        if len(waits) == 15:
            raise asyncio.CancelledError
        outbox.acknowledged += len(waits) == 12
        return PeerUnreachable(peer="post", address="a:1", step="Letter")

    cut_link: Any = SimpleNamespace(
        _outbox=outbox,
        _waits=SimpleNamespace(pulse=SimpleNamespace(stood_s=lambda _since: 0.0)),
        _timeouts=Timeouts(reconnect_s=1e9),
        _stream_until_cut=cut,
        _is_open=False,
    )
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "sleep", wait)
        with pytest.raises(asyncio.CancelledError):
            await Link._keep_open(cut_link)
    expected = [min(FIRST_WAIT_S * 2**number, LONGEST_WAIT_S) for number in range(12)]
    assert waits == [*expected, *expected[:3]]
    assert LONGEST_WAIT_S in expected
