"""All parties of a Taylor training in one process, for tests: rows, keys, the plan, and the plain table."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.randomisers import OwnKey
from blindfit.algorithms.paillier.vectors import encrypt
from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.protocols.taylor import DataSeat, KeySeat, TaylorParameters
from blindfit.algorithms.statistics.vertical.grid import Grid
from blindfit.algorithms.statistics.vertical.optimiser import Optimiser, OptimiserSettings, Patience
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.parties.wire import codec
from blindfit.parties.wire.channel import LocalNetwork, Wire
from blindfit.protos import payload_pb2 as pb
from tests.oracles import taylor as taylor_oracle
from tests.oracles.taylor import PlainTable, Trained
from tests.paillier.tools import seeded

NAMES = ("bank", "shop", "post", "rail", "mill")
KEY_NODE = "keys"
NOISE_KEY = b"the key node's secret"
FACTOR_BITS = 8
QUICK = OptimiserSettings(learning_rate=0.5, schedule="constant", l2=0.01)


@cache
def _tables(key: PrivateKey) -> OwnKey:
    return OwnKey(key)


def randomisers(key: PrivateKey, seed: int) -> OwnKey:
    """Return encryptions of zero that repeat; the tables behind them are made once."""
    source = copy.copy(_tables(key))
    source._uniform = seeded(seed)
    return source


@dataclass
class Case:
    """One training: everything from which its parties and its plain table are made."""

    key: PrivateKey
    parameters: TaylorParameters
    settings: OptimiserSettings
    plan: RowPlan
    table: PlainTable
    mask: np.ndarray | None
    class_weights: np.ndarray | None

    @property
    def grid(self) -> Grid:
        return self.parameters.grid

    @property
    def held_out(self) -> np.ndarray:
        return self.plan.validation

    @property
    def batch(self) -> np.ndarray:
        return self.plan.batches[0]

    @property
    def names(self) -> tuple[str, ...]:
        return self.parameters.data_parties

    def with_parameters(self, **changes: Any) -> Case:
        return replace(self, parameters=replace(self.parameters, **changes))

    # --- roles ------------------------------------------------------------------------------------------

    def seat(self, name: str, run: int = 0) -> DataSeat:
        """Return a data party; two runs draw other randomness, and so do two parties of a run."""
        place = self.names.index(name)
        seed = 1000 * run + 10 * place
        block = self.table.blocks[name]
        optimiser = Optimiser(
            self.settings,
            np.zeros(block.shape[1]),
            name == self.table.intercept,
            len(self.plan.batches),
            self.grid.reals(block[self.plan.train]),
        )
        seat = DataSeat(name, block, optimiser, randomisers(self.key, seed), seeded(seed + 1))
        if self.mask is not None:
            source = randomisers(self.key, seed + 2)
            seat.mask_enc = encrypt(Fixed(self.mask, 0), source, bound=1)
        if place == 0:
            seat.y, seat.label_terms, seat.factors = self.table.y, self.table.label_terms, self.class_weights
        return seat

    def seats(self, run: int = 0) -> list[DataSeat]:
        return [self.seat(name, run) for name in self.names]

    def key_seat(self) -> KeySeat:
        p = self.parameters
        return KeySeat(self.key, NOISE_KEY, Patience(p.patience, p.tolerance, relative=p.masked))

    # --- the three ways -----------------------------------------------------------------------------------

    def network(self, **options: Any) -> LocalNetwork:
        roles = {**dict.fromkeys(self.names, "passive"), self.parameters.active: "active", KEY_NODE: "key-node"}
        return LocalNetwork(roles, taylor.TABLE, **options)

    def run(
        self, seats: Sequence[DataSeat], key_seat: KeySeat, network: LocalNetwork | None = None, **options: Any
    ) -> list[int]:
        """Run over channels, and return the number of epochs by role, the key node last. `options` are the roles'."""
        network = network or self.network()
        roles = [self.data_role(seat, network, **options) for seat in seats]
        return asyncio.run(first_failure(*roles, self.key_role(key_seat, network, **options)))

    async def data_role(self, seat: DataSeat, network: LocalNetwork, **options: Any) -> int:
        channel = network.channel(seat.name)
        await taylor.run_key_exchange(self.parameters.key_node, self.parameters.key_bits, channel)
        return await taylor.run_data_party(seat, self.plan, self.parameters, channel, **options)

    async def key_role(self, key_seat: KeySeat, network: LocalNetwork, **options: Any) -> int:
        channel = network.channel(KEY_NODE)
        await taylor.share_key(key_seat.private_key.public_key, self.parameters.data_parties, channel)
        rows = [len(batch) for batch in self.plan.batches]
        return await taylor.run_key_node(key_seat, rows, len(self.held_out), self.parameters, channel, **options)

    def run_locally(self, seats: Sequence[DataSeat], key_seat: KeySeat) -> int:
        return taylor.run_locally(seats, key_seat, self.plan, self.parameters)

    def oracle(self) -> Trained:
        return taylor_oracle.train(
            self.table,
            self.plan,
            self.grid,
            self.settings,
            epochs=self.parameters.epochs,
            patience=self.parameters.patience,
            tolerance=self.parameters.tolerance,
            noise=self.noise,
            hold_out_loss=self.parameters.hold_out_loss,
            relative_loss=self.parameters.masked,
        )

    def noise(self, party: str, epoch: int, batch: int, columns: int) -> list[int]:
        return taylor.gradient_noise(NOISE_KEY, self.parameters, (party, epoch, batch), columns)

    def loss_error(self, weights: dict[str, np.ndarray]) -> float:
        return taylor_oracle.loss_error(self.table, self.held_out, self.grid, weights)


def held_out_locally(seats: Sequence[DataSeat], rows: np.ndarray, grid: Grid) -> Iterator[tuple[Any, Any]]:
    """Yield the encrypted scores and loss after each party's step 6, as if it were the last."""
    mu_enc = taylor.local.mu_locally(seats[0], seats[1:], rows, grid)
    scores, loss = taylor.hold_out.step_6_start(seats[0], rows, grid)
    yield scores, loss
    for seat in seats[1:]:
        loss = taylor.hold_out.step_6_loss(seat, rows, grid, scores, loss, mu_enc[seat.name])
        scores = taylor.hold_out.step_6_scores(seat, rows, grid, scores)
        yield scores, loss


async def first_failure(*roles: Awaitable[Any]) -> list[Any]:
    """Return what all ended with; if one fails, raise its error, and stop the others."""
    tasks = [asyncio.ensure_future(role) for role in roles]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


# --- building one -----------------------------------------------------------------------------------------


def case_of(
    key: PrivateKey,
    *,
    n_passive: int = 1,
    model: str = "logistic",
    masked: bool = False,
    class_weights: bool = False,
    settings: OptimiserSettings = QUICK,
    n_batches: int = 2,
    batch_rows: int = 12,
    held_out_rows: int = 9,
    jitter: float = 0.25,
    columns: Sequence[int] = (3, 2, 1, 2, 2),
    grid: dict[str, Any] | None = None,
    seed: int = 0,
    **parameters: Any,
) -> Case:
    names = NAMES[: 1 + n_passive]
    rng = np.random.default_rng(seed)
    n = n_batches * batch_rows + held_out_rows
    factors = {"factor_bits": FACTOR_BITS, "factor_bound": 4 << FACTOR_BITS} if class_weights else {}
    lattice = Grid(model, len(names), **{**factors, **(grid or {})})
    reals = {name: rng.normal(size=(n, k)) for name, k in zip(names, columns, strict=False)}
    reals[names[0]][:, -1] = 1.0  # the intercept
    score = sum(x @ rng.normal(size=x.shape[1]) for x in reals.values())
    y = np.where(score + rng.logistic(size=n) > 0, 1.0, -1.0) if model == "logistic" else score / 3
    blocks = {name: lattice.features(x) for name, x in reals.items()}
    mask = (rng.random(n) < 0.7).astype(np.int64) if masked else None
    if mask is not None:
        blocks = {name: np.where(mask[:, None] + (i != 1), block, 0) for i, (name, block) in enumerate(blocks.items())}
    weights = np.where(y > 0, 1 << FACTOR_BITS, 700).astype(np.int64) if class_weights else None
    order = rng.permutation(n)
    plan = RowPlan(
        tuple(order[held_out_rows:].reshape(n_batches, batch_rows)), order[:held_out_rows], np.zeros(0, np.int64)
    )
    table = PlainTable(
        blocks,
        y,
        lattice.label_terms(y, jitter * rng.normal(size=n)),
        _product(mask, weights),
        intercept=names[0],
    )
    chosen: dict[str, Any] = {"epochs": 3, "patience": 0, "noise_std": 0.05, "key_bits": key.public_key.bits}
    chosen |= {"encrypted_factors": class_weights, "masked": masked, **parameters}
    widths = tuple(block.shape[1] for block in blocks.values())
    return Case(key, TaylorParameters(names, KEY_NODE, widths, lattice, **chosen), settings, plan, table, mask, weights)


def _product(mask: np.ndarray | None, weights: np.ndarray | None) -> np.ndarray | None:
    if mask is None or weights is None:
        return mask if weights is None else weights
    return mask * weights


# --- wires --------------------------------------------------------------------------------------------------


class Tap:
    """A wire that lets everything pass and keeps it."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str, bytes]] = []

    def __call__(self, sender: str, receiver: str, step: str, data: bytes) -> bytes:
        self.seen.append((sender, receiver, step, data))
        return data

    def ciphertexts(self, kind: type[Any] | None = None) -> list[tuple[str, str, list[int]]]:
        """(sender, receiver, all ciphertexts of the message), of one class of messages or of all."""
        found = []
        for sender, receiver, step, data in self.seen:
            if kind is None or step == kind.__name__:
                vectors = [f.ciphertext_vector for f in pb.Message.FromString(data).fields if f.HasField(CIPHERTEXTS)]
                found.append((sender, receiver, [integer for vector in vectors for integer in split(vector)]))
        return found


CIPHERTEXTS = "ciphertext_vector"


def split(vector: Any) -> list[int]:
    width = vector.width_bytes
    return [int.from_bytes(vector.data[i : i + width], "big") for i in range(0, len(vector.data), width)]


def forged(sender: str, kind: type[Any], field: str, change: Callable[[bytes, int], bytes]) -> Wire:
    """Return a wire on which the ciphertexts of one field are other octets: (data, width) -> data."""

    def wire(source: str, _receiver: str, step: str, data: bytes) -> bytes:
        if (source, step) != (sender, kind.__name__):
            return data
        message = pb.Message.FromString(data)
        for part in message.fields:
            if part.name == field:
                vector = part.ciphertext_vector
                vector.data = change(vector.data, vector.width_bytes)
        return message.SerializeToString()

    return wire


def replaced(sender: str, kind: type[Any], other: Callable[[Any], object]) -> Wire:
    """Return a wire on which a sender's messages of one class are other ones."""

    def wire(source: str, _receiver: str, step: str, data: bytes) -> bytes:
        if (source, step) != (sender, kind.__name__):
            return data
        return codec.encode(other(codec.decode(data, kind, culprit=source)))

    return wire
