"""Both roles of WALR in one process, for tests: rows, a request, and a desk without ledger or disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from blindfit.algorithms.fixed_point import quantise_rows
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, NoisySum, ReleaseSettings, Tally
from blindfit.algorithms.randomness import UniformInt
from blindfit.parties.wire.channel import LocalNetwork, Wire

FRAC_BITS = 16
NORM_BOUND = 4 * 2**FRAC_BITS
SETTINGS = ReleaseSettings("visits", "v1", epsilon=1.0, delta=1e-6, frac_bits=FRAC_BITS)


def rows_of(n_rows: int = 50, n_columns: int = 3, seed: int = 0, largest: float = np.inf) -> ConsumerRows:
    """Return standard normal features, of norm at most `largest` together, and a constant."""
    real = np.random.default_rng(seed).normal(size=(n_rows, n_columns))
    real *= np.minimum(1, largest / np.linalg.norm(real, axis=1, keepdims=True))
    real[:, -1] = 1.0
    ids = tuple(f"row-{i}" for i in range(n_rows))
    return ConsumerRows(ids, quantise_rows(real, NORM_BOUND, FRAC_BITS))


def labels_of(rows: ConsumerRows, seed: int = 0) -> dict[str, int]:
    drawn = np.random.default_rng([seed, 1]).integers(0, 2, len(rows.ids))
    return dict(zip(rows.ids, drawn.tolist(), strict=True))


def request_for(rows: ConsumerRows, **changes: Any) -> AggregateOpen:
    """Return a request; `changes` are its fields on the wire, so that it may be one that no active party would make."""
    return replace(walr.step_1_open(rows, NORM_BOUND, SETTINGS), **changes)


class MemoryDesk:
    """walr.Desk: every request is admitted; `dropped` rows do not count, as if their person had too many."""

    def __init__(self, labels: Mapping[str, int], uniform: UniformInt, dropped: Sequence[str] = ()) -> None:
        self._labels, self._uniform, self._dropped = labels, uniform, set(dropped)
        self.answer: NoisySum | None = None
        self._kept = b""

    def admit(self, request: AggregateOpen) -> NoisySum | None:
        return self.answer

    async def before_rows(self, request: AggregateOpen, answer: NoisySum | None) -> None:
        """Do nothing: there is only one server."""

    async def before_release(self, tally: Tally) -> None:
        """Do nothing: there is only one server."""

    def redact(self, answer: NoisySum) -> NoisySum:
        return answer

    def tally(self, request: AggregateOpen) -> Tally:
        return Tally(request, self.keep_bits)

    def join(self, ids: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        kept = np.array([i not in self._dropped for i in ids])
        return np.array([self._labels[i] for i in ids], np.uint8), kept

    def keep_bits(self, bits: bytes) -> None:
        self._kept += bits

    def pieces_to_keep(self) -> Iterator[bytes]:
        yield self._kept[:1]
        yield self._kept[1:]

    def release(self, tally: Tally) -> NoisySum:
        draft = walr.step_5_draft(tally, self._uniform, neighbours="row")
        self.answer = walr.answer_of(draft, unit="row", terms=walr.Terms())
        return self.answer

    async def in_background(self, work: Callable[[], Any]) -> Any:
        return work()


def run_both(
    rows: ConsumerRows,
    request: AggregateOpen,
    desk: Any,
    wire: Wire = lambda _s, _r, _step, data: data,
    consumer: str = "shop",
) -> tuple[NoisySum, np.ndarray, list[tuple[str, str, str]]]:
    """Return the answer, the flags of rows that counted, and the messages."""
    network = LocalNetwork({consumer: "active", "labels": "measurement"}, walr.TABLE, wire=wire)
    active = walr.run_active(rows, request, "labels", network.channel(consumer), desk.in_background)
    server = walr.run_measurement_server(consumer, network.channel("labels"), desk)
    answer, kept = asyncio.run(first_failure(active, server))
    assert not network.unread
    return answer, kept, network.sent


async def first_failure(active: Awaitable[Any], server: Awaitable[Any]) -> Any:
    """Return what the active party ends with; if either party fails, raise its error, and stop the other one."""
    tasks = [asyncio.ensure_future(active), asyncio.ensure_future(server)]
    try:
        return (await asyncio.gather(*tasks))[0]
    finally:
        for task in tasks:
            task.cancel()


async def talk(desk: Any, *messages: object) -> NoisySum:
    """Run the server's role with an active party that sends exactly these messages."""
    network = LocalNetwork({"shop": "active", "labels": "measurement"}, walr.TABLE, timeout_s=1)
    for message in messages:
        await network.channel("shop").send("labels", message)
    return await walr.run_measurement_server("shop", network.channel("labels"), desk)
