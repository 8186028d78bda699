"""All parties of WALR in shares in one process: a shop, a key node and two servers, each of which may be replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, dealt_masks, shared_rows, two_servers
from blindfit.algorithms.protocols.walr.messages import MaskedRows, MasksUsed
from blindfit.algorithms.protocols.walr.shared_rows import Server, SharedRows, SharedRowsTally
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.short_rows import Plan
from blindfit.parties.wire.channel import LocalNetwork, Wire
from tests.walr.seats import request_for

SERVERS = ("east", "west")
ROLES = {"shop": "active", "dealer": "key-node", "east": "measurement", "west": "measurement"}
NORM_BOUND = 2**15

Prove = Callable[[SharedRows, Channel], Awaitable[None]]


def rows_of(n_rows: int = 40, n_columns: int = 3, seed: int = 0) -> ConsumerRows:
    rng = np.random.default_rng(seed)
    real = rng.normal(size=(n_rows, n_columns))
    lengths = rng.uniform(0, NORM_BOUND - 1, size=(n_rows, 1)) / np.linalg.norm(real, axis=1, keepdims=True)
    return ConsumerRows(tuple(f"row-{i}" for i in range(n_rows)), (real * lengths).astype(np.int32))


async def honest(rows: SharedRows, channel: Channel) -> None:
    await shared_rows.run_active(rows, SERVERS, channel)


@dataclass
class Seats:
    """
    Attributes:
        masked: function that replaces the shop's masked rows for each server.
        prove: the shop's step 5.
        server: class of a server; another class lies.
        told_dealer: function that changes the shop's plan for the key node.
    """

    rows: ConsumerRows
    labels: np.ndarray
    wire: Wire = lambda _s, _r, _step, data: data
    masked: Callable[[str, MaskedRows], MaskedRows] = lambda _server, batch: batch
    prove: Prove = honest
    servers: dict[str, type[Server]] = field(default_factory=dict)
    kept: np.ndarray | None = None
    norm_bound: int = NORM_BOUND
    told_dealer: Callable[[Plan], Plan] = lambda plan: plan

    def __post_init__(self) -> None:
        self.shares = dict(zip(SERVERS, two_servers.split(self.labels), strict=True))
        self.network = LocalNetwork(ROLES, shared_rows.TABLE, wire=self.wire, timeout_s=5.0)
        self.seen: dict[str, list[MaskedRows]] = {name: [] for name in SERVERS}

    @property
    def request(self) -> AggregateOpen:
        return replace(request_for(self.rows), norm_bound=self.norm_bound, in_shares=1)

    def run(self) -> Elements:
        """X^T y mod p, from both servers' shares."""
        return asyncio.run(self._run())

    async def _run(self) -> Elements:
        plan = dealt_masks.plan_of(self.request)
        shop = self.network.channel("shop")
        await dealt_masks.ask_for_masks(self.told_dealer(plan), ("dealer",), shop)
        await dealt_masks.ask_for_masks(plan, SERVERS, shop)
        dealer = asyncio.ensure_future(self._dealer())
        seed = await dealt_masks.receive_seed("dealer", shop)
        shared = SharedRows(self.rows, plan, seed)
        tasks = [asyncio.ensure_future(self._server(name, shared)) for name in SERVERS]
        tasks += [dealer, asyncio.ensure_future(self._proves(shared, shop))]
        try:
            done: list[Any] = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return np.asarray(two_servers.field.add(done[0], done[1]))

    async def _proves(self, shared: SharedRows, shop: Channel) -> None:
        await self.prove(shared, shop)
        await shop.send("dealer", MasksUsed())

    async def _dealer(self) -> None:
        channel = self.network.channel("dealer")
        plan = await dealt_masks.receive_plan("shop", channel)
        await dealt_masks.run_key_node(plan, "shop", SERVERS, channel)
        await channel.receive("shop", MasksUsed)

    async def _server(self, name: str, shared: SharedRows) -> Elements:
        place = SERVERS.index(name)
        channel = self.network.channel(name)
        plan = await dealt_masks.receive_plan("shop", channel)
        dealt = await dealt_masks.receive_dealt(plan, place, "shop", "dealer", channel)
        tally = SharedRowsTally(self.request, lambda _: None)
        labels = dict(zip(self.rows.ids, self.shares[name], strict=True))
        kept = np.ones(len(self.rows.ids), np.bool_) if self.kept is None else self.kept
        counts = dict(zip(self.rows.ids, kept, strict=True))

        def join(ids: Any) -> Any:
            return np.array([labels[i] for i in ids]), np.array([counts[i] for i in ids])

        for batch in shared.batches():
            said = self.masked(name, batch)
            self.seen[name].append(said)
            tally.add(said, join, consumer="shop")
        tally.finish(consumer="shop")
        kind = self.servers.get(name, Server)
        return await kind(name, SERVERS[1 - place], "shop", dealt, "run", channel).sum_of(tally)
