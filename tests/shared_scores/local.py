"""All parties of a prediction in shares in one process, over channels that serialise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.protocols import shared_scores
from blindfit.algorithms.protocols.falcon import Trained
from blindfit.algorithms.protocols.shared_scores import HeldRows, ModelTold, parameters_of
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.kept import KeptShares
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.parties.wire.channel import LocalNetwork, Wire
from tests.falcon.local import KEY_NODE, PARTIES, Case, train

KEPT_BITS, LIMIT = 5, 28.0
SMALL: dict[str, Any] = {"epochs": 2, "kept_bits": KEPT_BITS, "weights_stay_shared": True}


@cache
def trained(n_parties: int = 2, *, macs: bool = True) -> Mapping[str, Trained]:
    """Return a model in shares; the same seeds and names would open the same weights."""
    return train(case_of(n_parties, macs=macs))


def case_of(n_parties: int = 2, **options: Any) -> Case:
    return Case(n_parties=n_parties, rows=160, options=SMALL | options)


@dataclass
class Scoring:
    """New rows under such a model.

    Args:
        bits: bits of each passive party's part of a score; 0: unrounded.
        kept: shares of some parties in place of their own.
    """

    n_parties: int = 2
    rows: int = 30
    bits: int = 0
    macs: bool = True
    limit: float = LIMIT
    seed: int = 9
    scaled: float = 1.0
    kept: dict[str, KeptShares] = field(default_factory=dict)
    before_scores: Callable[[str], None] = lambda _name: None
    run_name: str = "predict-1"

    def __post_init__(self) -> None:
        case = case_of(self.n_parties, macs=self.macs)
        self.parties, self.columns = PARTIES[: self.n_parties], case.parameters.columns
        rng = np.random.default_rng(self.seed)
        blocks = [self.scaled * rng.standard_normal((self.rows, width)).clip(-8, 8) for width in self.columns]
        blocks[0][:, -1] = 1.0
        self.features = [np.rint(block * 2**FEATURE_BITS).astype(np.int64) for block in blocks]
        model = trained(self.n_parties, macs=self.macs)
        self.held_shares = {name: shares_of(model[name]) for name in self.parties} | self.kept

    def told(self, name: str) -> ModelTold:
        bits = 0 if name == self.parties[0] else self.bits
        return ModelTold(np.array(self.columns), KEPT_BITS, self.limit, int(self.macs), bits)

    def network(self, wire: Wire | None = None) -> LocalNetwork:
        roles = {KEY_NODE: "key-node", self.parties[0]: "active", **dict.fromkeys(self.parties[1:], "passive")}
        return LocalNetwork(roles, shared_scores.TABLE, timeout_s=20.0, **({} if wire is None else {"wire": wire}))

    def run(self, network: LocalNetwork | None = None) -> dict[str, NDArray[np.int64] | None]:
        """Return what each data party ends with, in steps of 2^-(FEATURE_BITS + KEPT_BITS); raise the first error."""
        try:
            return asyncio.run(self._run(network or self.network()))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _run(self, network: LocalNetwork) -> dict[str, NDArray[np.int64] | None]:
        async with asyncio.TaskGroup() as tasks:
            started = {n: tasks.create_task(self._data_party(n, network)) for n in self.parties}
            tasks.create_task(self._key_node(network))
        return {name: task.result() for name, task in started.items()}

    async def _data_party(self, name: str, network: LocalNetwork) -> NDArray[np.int64] | None:
        channel, place = network.channel(name), self.parties.index(name)
        told = await shared_scores.tell_all(self.told(name), name, self.parties, KEY_NODE, channel)
        return await shared_scores.run_data_party(
            name,
            HeldRows(self.features[place], self.held_shares[name]),
            parameters_of(told, self.parties, KEY_NODE, self.rows),
            self.run_name,
            channel,
            before_scores=lambda: self.before_scores(name),
        )

    async def _key_node(self, network: LocalNetwork) -> None:
        channel = network.channel(KEY_NODE)
        told = await shared_scores.hear_at_key_node(self.parties, channel)
        parameters = parameters_of(told, self.parties, KEY_NODE, self.rows)
        await shared_scores.run_key_node(parameters, self.run_name, channel)

    # --- what it should be

    @property
    def weights(self) -> NDArray[np.int64]:
        """The weights that nobody knows, in steps of 2^-KEPT_BITS."""
        model = trained(self.n_parties, macs=self.macs)
        total = f.total([shares_of(model[name]).share.value for name in self.parties])
        return f.integers(total[: sum(self.columns)])

    def part(self, place: int) -> NDArray[np.int64]:
        start = sum(self.columns[:place])
        return self.features[place] @ self.weights[start : start + self.columns[place]]


def shares_of(model: Trained) -> KeptShares:
    assert model.kept is not None
    return model.kept


def changed(kept: KeptShares, place: int, by: int = 1) -> KeptShares:
    """Change one number that a party sends: a value, a MAC, or, last, its share of the key."""
    flat = kept.flat.copy()
    flat[place] = f.add(flat[place : place + 1], f.elements([by]))[0]
    n = len(kept.share)
    assert kept.share.mac is not None
    return KeptShares(replace(kept.share, value=flat[:n], mac=flat[n : 2 * n]), flat[2 * n :])
