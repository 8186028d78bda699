"""The network that a command simulates between the parties that it has started."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple
from itertools import combinations, permutations
from typing import IO, Any

from blindfit.algorithms.errors import BlindfitError, TransportError
from blindfit.coordinator.job.network import Line, NetworkSettings
from blindfit.parties.wire.addresses import split_address

WORKER = (sys.executable, "-m", "blindfit.coordinator.running.network.worker")
STOP_TIMEOUT_S = 5.0
NAME = "the simulated network"

Routes = Mapping[str, Mapping[str, str]]  # address of each other party, by the party that dials


class Relays:
    """Relays between all parties of a job, in a separate process. See `relays`."""

    def __init__(self, network: NetworkSettings | None, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        """Take the process.

        Args:
            network: simulated network; None for a perfect network whose cables can be cut.
        """
        self._network, self._process, self._log = network, process, log
        self._parties: tuple[str, ...] = ()
        self._turn = threading.Lock()

    def open(self, addresses: Mapping[str, str]) -> Routes:
        """Open a relay for each pair of parties, and return the addresses at which each party finds the others.

        Args:
            addresses: addresses of the parties. If they changed since the last call, the relays lead to the new ones.
        """
        self._parties = tuple(addresses)
        pairs = list(permutations(addresses, 2))
        ports = self._order(open=[[*pair, *split_address(addresses[pair[1]]), *self._line(*pair)] for pair in pairs])
        routes: dict[str, dict[str, str]] = {name: {} for name in addresses}
        for (dialling, dialled), port in zip(pairs, ports, strict=True):
            routes[dialling][dialled] = f"127.0.0.1:{port}"
        return routes

    def cut(self, *parties: str) -> None:
        """Cut the cable between two parties, or all cables of one party: nothing arrives until they are mended."""
        self._order(cut=self._cables(parties))

    def mend(self, *parties: str, still_cut: Collection[str] = ()) -> None:
        """Mend the cables that `cut` of the same parties has cut.

        Args:
            still_cut: parties whose cables stay cut.
        """
        self._order(mend=[pair for pair in self._cables(parties) if not set(still_cut) & set(pair)])

    @property
    def error(self) -> BlindfitError | None:
        """Error that explains why the network ended, if its process has ended."""
        if self._process.poll() is None:
            return None
        self._log.seek(0)
        *_, last = ["it wrote nothing", *self._log.read().decode(errors="replace").split("\n")[:-1]]
        code = self._process.returncode
        return TransportError(f"{NAME} ended with exit code {code}: {last}", peer=NAME, step="run")

    def _line(self, one: str, other: str) -> Sequence[float | None]:
        return astuple(Line() if self._network is None else self._network.line_between(one, other))

    def _cables(self, parties: Sequence[str]) -> list[tuple[str, str]]:
        return [pair for pair in combinations(self._parties, 2) if set(parties) <= set(pair)]

    def _order(self, **order: Any) -> list[int]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise TypeError("the process has no pipes")
        with self._turn, contextlib.suppress(OSError):
            stdin.write(json.dumps(order).encode() + b"\n")
            stdin.flush()
            if answer := stdout.readline():
                ports: list[int] = json.loads(answer)
                return ports
        self._process.wait(STOP_TIMEOUT_S)
        raise self.error or TransportError(f"{NAME} does not answer", peer=NAME, step="run")


@contextlib.contextmanager
def relays(network: NetworkSettings | None) -> Iterator[Relays]:
    """Start the process of relays, and stop it at the end.

    Raises:
        TransportError: the process has ended, which may explain why the parties lost each other.
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        opened = Relays(network, process, log)
        try:
            yield opened
        except BlindfitError as error:
            raise opened.error or error from None
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Wait for the process, which ends when its standard input ends."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_TIMEOUT_S)
    process.kill()
    process.wait()
