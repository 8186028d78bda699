"""Guess whose ids are in a measurement server's table, from how long its joins take.

    python -m benchmarks.walr.join_attack [--pairs 60] [--uploads 6] [--json FILE] [--quick]

An active party uploads ids under a wrong hash, so that nothing is charged. It takes the time from the first row to the
refusal, over TLS, from another process. Two sets of ids are uploaded in turn, one that the table has and one that it
does not have. The attacker takes the set with the larger median for the known one; by chance half of the guesses are
right. There are two attacks:

- `one id`: each upload is one id in 200 batches of its own.
- `4,096 ids`: each upload is one batch of 4,096 ids, all known or all unknown.

Two servers are attacked. One is ours. The other continues with the known ids only, which shows what the attack can do
on this machine at all. Both have no limit of uploads without an answer; with the default policy the attacker has 20
uploads a day. Figures depend on other work of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import math
import multiprocessing
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import ConsumerRows, ReleaseSettings
from blindfit.parties.data.id_hash import Words
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.identity import connections
from blindfit.parties.identity.authority import create_authority, issue
from blindfit.parties.identity.identity import Identity, load_identity
from blindfit.parties.measurement import codec, label_index
from blindfit.parties.measurement.charging import LabelDataset
from blindfit.parties.measurement.label_index import JoinState, open_index, write_index
from blindfit.parties.measurement.server import MeasurementServicer
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.node import set_up_logs
from blindfit.parties.settings import PolicySettings
from blindfit.parties.store.database import Store
from blindfit.parties.wire.guard import Guard, current_caller
from blindfit.parties.wire.limits import Limits, server_options
from blindfit.protos import measurement_pb2 as pb
from blindfit.protos import measurement_pb2_grpc

PROCESSES = multiprocessing.get_context("forkserver")
MANY = 10**9
CROWD = 4_096
SERVERS = ("ours", "known ids only")
ATTACKS = ("one id", "4,096 ids")


@dataclass(frozen=True)
class Effort:
    """Size of the measurement: rows of the table, pairs of known and unknown ids, uploads of each, batches of one."""

    rows: int
    pairs: int
    uploads: int
    batches_of_one: int


FULL = Effort(200_000, 60, 6, 200)
QUICK = Effort(1_000, 1, 1, 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, help=f"of known and unknown ids, for each attack; default {FULL.pairs}")
    parser.add_argument("--uploads", type=int, help=f"of each set of ids; default {FULL.uploads}")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="one pair, one upload: to see that it runs")
    options = parser.parse_args()
    effort = QUICK if options.quick else FULL
    effort = replace(effort, pairs=options.pairs or effort.pairs, uploads=options.uploads or effort.uploads)
    results = [result for server in SERVERS for result in measure(server, effort)]
    show(results, Console())
    if options.json:
        options.json.write_text(json.dumps({"machine": machine.describe(), "results": results}, indent=2) + "\n")


def show(results: list[dict[str, Any]], console: Console) -> None:
    table = Table("server", "attack", "right", "chance of as many by luck", "known over unknown")
    for result in results:
        right = f"{result['right']} of {result['pairs']}"
        table.add_row(
            result["server"], result["attack"], right, f"{result['by_luck']:.2g}", f"{result['time_ratio']:.3f}"
        )
    console.print(table)


# --- the attacker -----------------------------------------------------------------------------------


def measure(server: str, effort: Effort) -> list[dict[str, Any]]:
    """Return every attack on one server."""
    with tempfile.TemporaryDirectory() as directory:
        identity = prepare(Path(directory), effort.rows)
        here, there = PROCESSES.Pipe()
        process = PROCESSES.Process(target=served, args=(Path(directory), server, there))
        process.start()
        there.close()
        try:
            address = f"127.0.0.1:{here.recv()}"
            return [
                {"server": server, "attack": attack} | guesses(asyncio.run(attacked(identity, address, attack, effort)))
                for attack in ATTACKS
            ]
        finally:
            here.close()
            process.join()


def guesses(times: NDArray[np.float64]) -> dict[str, Any]:
    known, unknown = np.median(times[:, 0], axis=1), np.median(times[:, 1], axis=1)
    pairs, right = len(times), int((known > unknown).sum())
    return {
        "pairs": pairs,
        "right": right,
        "by_luck": sum(math.comb(pairs, n) for n in range(right, pairs + 1)) / 2**pairs,
        "time_ratio": float(np.median(known / unknown)),
    }


async def attacked(identity: Identity, address: str, attack: str, effort: Effort) -> NDArray[np.float64]:
    """Return the seconds of each upload: (pair, known or unknown, upload)."""
    times = np.zeros((effort.pairs, 2, effort.uploads))
    draw = random.Random(1)
    async with await connections.open_channel(identity, "labels", address, Limits()) as channel:
        stub = measurement_pb2_grpc.MeasurementStub(channel)  # type: ignore[no-untyped-call]
        for pair in range(effort.pairs):
            sets = [list(ids_of(attack, pair, kind, effort)) for kind in ("row", "sow")]
            for upload in range(-1, effort.uploads):  # the first one warms up
                for which in draw.sample((0, 1), 2):
                    taken_s = await time_of(stub, sets[which])
                    if upload >= 0:
                        times[pair, which, upload] = taken_s
    return times


def ids_of(attack: str, pair: int, kind: str, effort: Effort) -> Iterator[tuple[str, ...]]:
    if attack == "one id":
        yield from [(f"{kind}-{pair}",)] * effort.batches_of_one
    else:
        yield tuple(f"{kind}-{pair * CROWD % (effort.rows - CROWD) + i}" for i in range(CROWD))


async def time_of(stub: measurement_pb2_grpc.MeasurementStub, batches: list[tuple[str, ...]]) -> float:
    """Return the seconds from the first row to the refusal."""
    n_rows = sum(map(len, batches))
    rows = ConsumerRows(tuple("x" for _ in range(n_rows)), np.ones((n_rows, 1), np.int32))
    settings = ReleaseSettings("visits", (await description(stub)).snapshot, epsilon=1.0, delta=1e-6)
    request = walr.step_1_open(rows, 2**16, settings)  # of other ids
    messages = [codec.request_to_pb(walr.WeightRows(ids, np.ones((len(ids), 1), np.int32))) for ids in batches]
    call = stub.Aggregate()
    await call.write(codec.request_to_pb(request))
    await call.read()
    started = time.perf_counter()
    for message in [*messages, codec.request_to_pb(walr.RowsEnd())]:
        await call.write(message)
    try:
        await call.read()
    except grpc.aio.AioRpcError:
        return time.perf_counter() - started
    raise RuntimeError("the upload was not refused")


async def description(stub: measurement_pb2_grpc.MeasurementStub) -> Any:
    return await stub.Describe(pb.DescribeDatasetRequest(dataset="visits"))


# --- the servers ------------------------------------------------------------------------------------


def prepare(directory: Path, rows: int) -> Identity:
    """Write the table and certificates, and return the attacker's identity."""
    with (directory / "visits.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "label"])
        table.writerows((f"row-{i}", i % 2) for i in range(rows))
    create_authority(directory / "certs", "Benchmark", days=2)
    return identity_of(directory, "shop")


def identity_of(directory: Path, name: str) -> Identity:
    files = issue(directory / "certs", name, days=1)
    return load_identity(files.certificate, files.key, files.authority, files.revoked)


def served(directory: Path, which: str, attacker: Connection) -> None:
    asyncio.run(serve(directory, which, attacker))


async def serve(directory: Path, which: str, attacker: Connection) -> None:
    """Send the attacker the port, and serve until the attacker closes the connection."""
    set_up_logs("error", "text")  # each refusal is a warning: thousands would fill a pipe that nobody reads
    if which != "ours":
        label_index.JoinState = Gathering  # type: ignore[misc]
    identity = identity_of(directory, "labels")
    guard = Guard("labels", lambda context: connections.caller(context, identity), {"shop": "active"})
    server = grpc.aio.server(interceptors=(guard,), options=server_options(Limits()))
    servicer = MeasurementServicer(service_in(directory), current_caller)
    measurement_pb2_grpc.add_MeasurementServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    port = server.add_secure_port("127.0.0.1:0", connections.server_credentials(identity))
    await server.start()
    attacker.send(port)
    await asyncio.to_thread(attacker.poll, None)
    await server.stop(0)


def service_in(directory: Path) -> MeasurementService:
    settings = PartyDatasetSettings(
        url="csv:visits.csv", id="id", label="label", population="people", active_parties=["shop"], unknown_rows="zero"
    )
    (directory / "index").mkdir()
    write_index(open_source(settings, directory, "visits"), directory / "index")
    dataset = LabelDataset("visits", settings, open_index(directory / "index"), "snapshot")
    policy = PolicySettings(min_rows=1, max_epsilon=50, max_failed_uploads=MANY)
    key = SigningKey.load_or_create(directory / "key.pem")
    store = Store(directory / "party.sqlite")
    return MeasurementService("labels", {"visits": dataset}, {"people": Budget(1, 1e-6)}, policy, store, key)


class Gathering(JoinState):
    """Join that picks out the known ids and does the rest only for them."""

    def _join_part(self, part: NDArray[np.int64], high: Words, low: Words, joined: Any) -> None:
        place, known = self._index._find(high, low)
        rows, place = part[known], place[known]
        byte, bit = place >> 3, (1 << (place & 7)).astype(np.uint8)
        used = self._used.array
        again = (used[byte] & bit) != 0
        if len(byte):
            starts = np.flatnonzero(np.concatenate([[True], byte[1:] != byte[:-1]]))
            used[byte[starts]] |= np.bitwise_or.reduceat(bit, starts)
        joined.known[rows] = True
        joined.again[rows] = again
        joined.label[rows] = np.where(again, 0, self._index._files["label"].array[place])


if __name__ == "__main__":
    main()
