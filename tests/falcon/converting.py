"""All parties' converters in one process, under one key, over channels that serialise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.threshold import deal
from blindfit.algorithms.protocols import falcon
from blindfit.algorithms.protocols.falcon.conversion import Converter
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.shares import Share
from blindfit.parties.wire.channel import LocalNetwork, Wire
from tests.paillier.tools import source

T = TypeVar("T")
PARTIES = tuple(f"party {place}" for place in range(8))


def largest(below: int) -> int:
    """Return the largest mask."""
    return below - 1


def smallest(_below: int) -> int:
    return 0


def converters(
    key: PrivateKey,
    parties: int,
    *,
    wire: Wire | None = None,
    uniform: UniformInt = system_uniform,
    kind: Callable[..., Converter] = Converter,
) -> list[Converter]:
    """
    Args:
        uniform: source of the masks only.
        kind: class of the first party's converter.
    """
    names = PARTIES[:parties]
    roles = {name: "passive" if place else "active" for place, name in enumerate(names)}
    options: dict[str, Any] = {} if wire is None else {"wire": wire}
    network = LocalNetwork(roles, falcon.TABLE, **options)
    made = []
    for place, (name, share) in enumerate(zip(names, deal(key, parties), strict=True)):
        others = [other for other in names if other != name]
        make = Converter if place else kind
        made.append(make(share, source(key), others, network.channel(name), uniform, first=place == 0))
    return made


def together(started: Sequence[Awaitable[T]]) -> list[T]:
    """Return what each party ends with; raise the first error."""

    async def all_of_them() -> list[T]:
        async def one(awaitable: Awaitable[T]) -> T:
            return await awaitable

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(one(awaitable)) for awaitable in started]
        return [task.result() for task in running]

    try:
        return asyncio.run(all_of_them())
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


def added_up(shares: Sequence[Share]) -> NDArray[np.int64]:
    return f.integers(f.total([share.value for share in shares]))


def shared(numbers: Sequence[int], parties: int) -> list[Share]:
    """Return uniform shares of the numbers."""
    whole = f.elements(np.array(numbers, dtype=np.int64))
    random = [f.elements([system_uniform(f.P) - f.P // 2 for _ in numbers]) for _ in range(parties - 1)]
    return [
        Share(part, None) for part in [*random, f.subtract(whole, f.total([f.elements([0] * len(numbers)), *random]))]
    ]


def integers_of(message: Any) -> list[int]:
    """Return the integers of a ciphertext vector, or of partial decryptions, as they arrived."""
    width = message.width_bytes
    return [int.from_bytes(message.data[at : at + width], "big") for at in range(0, len(message.data), width)]
