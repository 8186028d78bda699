"""Cost of a step on encrypted weights for one data party: the third part of `python -m benchmarks.vertical.falcon`.

The key has 2048 bits; there are three data parties with 30 features in all, and batches of 128. All roles run in this
thread, and times are processor time. Two trainings of different lengths are run. Their difference has only steps, with
the dealer's part, and is divided by parties, steps and rows. So a party's time is all that it computes in a step: its
scores under encryption, packing, masks and their encryption, partial decryption, residuals in shares, and the move of
its weights.

`threshold_over_bound` is this time over that of the products mod n^2 that the parties' kernels counted. The same unit
computes a product just before and after. GMP may be below 1, because it multiplies halves without a reduction.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.kit.in_turn import in_turn
from benchmarks.kit.products import GMP, VECTOR_UNIT, Products
from blindfit.algorithms.paillier import kernel
from blindfit.algorithms.paillier.keys import PrivateKey, generate_private_key
from blindfit.algorithms.paillier.threshold import KeyShare, deal
from blindfit.algorithms.paillier.vector_unit import unit as vector_unit
from blindfit.algorithms.protocols import falcon
from blindfit.algorithms.protocols.falcon import FalconParameters, Held
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.parties.wire.channel import LocalNetwork

PARTIES, KEY_NODE = ("first", "second", "third"), "notary"
KEY_BITS = 2048
FULL, QUICK = (128, 5), (4, 2)  # rows of a batch, and steps of the longer training; the shorter has one
AIMS_MS = {"gmp": 5.0, "vector_unit": 1.5}


def threshold(repetitions: int, rows: int, steps: int) -> dict[str, Any]:
    """Measure by GMP, and by the vector unit if this machine has one, which then gives the headline figures."""
    key = generate_private_key(KEY_BITS)
    found = {"gmp": _by_gmp(key, repetitions, rows, steps)}
    if vector_unit.vector_unit(int(key.public_key.n)) is not None:
        found["vector_unit"] = _measured(key, repetitions, VECTOR_UNIT, rows, steps)
    best = found.get("vector_unit", found["gmp"])
    return {
        "threshold_ms_per_row_step": best["ms_per_row_step"],
        "threshold_over_bound": best["over_bound"],
        "threshold": found,
    }


def _by_gmp(key: PrivateKey, repetitions: int, rows: int, steps: int) -> dict[str, float]:
    with mock.patch.object(kernel, "vector_unit", return_value=None):
        return _measured(key, repetitions, GMP, rows, steps)


def _measured(key: PrivateKey, repetitions: int, unit: str, rows: int, steps: int) -> dict[str, float]:
    _seconds(key, rows, 1)  # makes what is made once
    times, bounds, counted = [], [], 0.0
    for _ in range(repetitions):
        before = _product_us(key, unit)
        (short, few), (long, many) = (_seconds(key, rows, number) for number in (1, steps))
        after = _product_us(key, unit)
        of_rows = (steps - 1) * rows * len(PARTIES)
        times.append((long - short) / of_rows * 1e3)
        counted = (many - few) / of_rows
        bounds.append(times[-1] * 1e3 / (counted * statistics.mean([before, after])))
    return {
        "ms_per_row_step": round(statistics.median(times), 4),
        "products_per_row_step": round(counted, 1),
        "over_bound": round(statistics.median(bounds), 3),
    }


def _product_us(key: PrivateKey, unit: str) -> float:
    bare = Products("mod n^2", int(key.public_key.n) ** 2)
    return statistics.median(bare.seconds(in_turn(bare.runs, 3))[unit]) * 1e6


def _seconds(key: PrivateKey, rows: int, steps: int) -> tuple[float, int]:
    """Return this thread's seconds for all data parties, and the products that they counted."""
    shares = deal(key, len(PARTIES))
    own = [KeyShare(replace(share.public_key), share.index, share.parties, share.exponent) for share in shares]
    started = time.thread_time()
    asyncio.run(_train(own, _parameters(rows, steps)))
    return time.thread_time() - started, sum(share.public_key.kernel.counts.products for share in own)


def _parameters(rows: int, steps: int) -> FalconParameters:
    return FalconParameters(
        data_parties=PARTIES,
        key_node=KEY_NODE,
        columns=(10, 10, 10),
        batch_rows=(rows,) * steps,
        validation_rows=0,
        test_rows=0,
        epochs=1,
        optimiser=OptimiserSettings(learning_rate=0.5, l2=0.01),
        intercept=False,
        macs=False,
        key_bits=KEY_BITS,
    )


async def _train(shares: list[KeyShare], p: FalconParameters) -> None:
    roles = {KEY_NODE: "key-node", PARTIES[0]: "active", **dict.fromkeys(PARTIES[1:], "passive")}
    network, seeds, rng = LocalNetwork(roles, falcon.TABLE), [Seed.random() for _ in PARTIES], np.random.default_rng(3)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(falcon.run_key_node(p, seeds, "benchmark", network.channel(KEY_NODE)))
        for place, (name, seed) in enumerate(zip(PARTIES, seeds, strict=True)):
            features = np.rint(rng.standard_normal((p.rows, 10)).clip(-4, 4) * 2**FEATURE_BITS).astype(np.int64)
            held = Held(features, rng.integers(0, 2, p.rows) if place == 0 else None)
            channel = network.channel(name)
            run = falcon.run_data_party(name, held, p, seed, "benchmark", channel, key_share=shares[place])
            tasks.create_task(run)
