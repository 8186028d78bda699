"""Compare the network that `blindfit run --network` simulates with the kernel's own.

    python -m benchmarks.network [--network "40ms 100mbit"] [--rounds 3] [--json FILE] [--quick]

Transfers over plain TCP come first: they need no processor, so they show the network itself.

Each job runs between a bank, a post and a key node. It runs once in network namespaces, whose links the kernel delays
and limits, and once over relays, as in `blindfit run --network`. Each run begins with new processes and empty
databases.

The runs take turns, and the table has the seconds of the fastest round, because other work on the machine only adds to
them. They are the seconds of the job from its first connection to its end, or of the alignment for the intersection of
ids. The kernel's network needs root and Linux (benchmarks/network/kernel.py). Without them its column is empty.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from benchmarks.network import transfers
from benchmarks.network.kernel import is_available, kernel_network, namespace
from blindfit.coordinator.job.network import Line, NetworkSettings
from blindfit.coordinator.running.network.relays import Routes, relays
from blindfit.parties.identity import authority
from blindfit.parties.wire.addresses import split_address

ROLES = {"bank": "active", "post": "passive", "notary": "key-node"}
NETWORKS = ("40ms 100mbit", "10ms 1gbit")
ROOT = Path(__file__).parents[2]
PORT, READY_S = 7100, 120.0
BLINDFIT = (sys.executable, "-m", "blindfit")
AIM = 0.1  # of the kernel's time
TCP, QUICK_TRANSFERS = "tcp", 3
Run = Callable[[], dict[str, float]]


@dataclass(frozen=True)
class Case:
    """A job.

    Attributes:
        figure: timed part: the whole job, or one lap of the active party.
    """

    name: str
    system: str
    rows: int
    tables: str
    figure: str = "job"


CASES = (
    Case("psi", "falcon", 1_000, "[falcon]\nepochs = 1\nvalidation_fraction = 0.1\n", "align_s"),
    Case("taylor", "taylor", 400, "[taylor]\nepochs = 4\n"),
    Case("falcon", "falcon", 400, "[falcon]\nepochs = 2\nvalidation_fraction = 0.1\n"),
)
QUICK = tuple(Case(case.name, case.system, 400, case.tables, case.figure) for case in CASES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", action="append", help=f"repeatable; default: {', '.join(NETWORKS)}")
    parser.add_argument("--case", action="append", choices=[TCP, *(case.name for case in CASES)], help="repeatable")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--congestion", default="cubic", help="TCP's congestion control of the kernel's network")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument(
        "--quick", action="store_true", help="400 rows, one round, a quick network: to see that it runs"
    )
    options = parser.parse_args()
    networks = options.network or (("2ms 200mbit",) if options.quick else NETWORKS)
    cases = [case for case in (QUICK if options.quick else CASES) if case.name in (options.case or (case.name,))]
    rounds = 1 if options.quick else options.rounds
    found = []
    if TCP in (options.case or (TCP,)):
        for network in networks:
            found += measure_transfers(network, rounds, options.congestion, quick=options.quick)
    with tempfile.TemporaryDirectory(prefix="blindfit-network-") as folder:
        for case in cases:
            made = make_files(Path(folder) / case.name, case)
            for network in networks:
                found += measure(made, case, network, rounds, options.congestion)
    show(found, Console())
    if options.json:
        result = {"machine": machine.describe(), "congestion": options.congestion, "aim": AIM, "found": found}
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def measure(made: Path, case: Case, network: str, rounds: int, congestion: str) -> list[dict[str, Any]]:
    line = NetworkSettings.model_validate(network).line()
    runs: dict[str, Run] = {"simulated": partial(on_relays, made, case, network)}
    if rounds > 1:
        runs["none"] = partial(on_relays, made, case, "")
    if is_available():
        runs["kernel"] = partial(in_the_kernel, made, case, line, congestion)
    return take_turns(runs, network, rounds)


def take_turns(runs: Mapping[str, Run], network: str, rounds: int) -> list[dict[str, Any]]:
    """Return a row for each name in what the runs return."""
    taken: dict[str, list[dict[str, float]]] = {kind: [] for kind in runs}
    for number in range(rounds):
        for kind, run in runs.items():
            taken[kind].append(run())
            said = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in taken[kind][-1].items())
            print(f"{network}, round {number + 1}, {kind}: {said}", file=sys.stderr)
    rows = []
    for name in taken["simulated"][0]:
        seconds = {kind: [each[name] for each in of] for kind, of in taken.items()}
        fastest = {kind: min(of) for kind, of in seconds.items()}
        ratio = fastest["simulated"] / fastest["kernel"] if "kernel" in fastest else None
        rows.append({"case": name, "network": network, "seconds": seconds, "fastest": fastest, "ratio": ratio})
    return rows


def measure_transfers(network: str, rounds: int, congestion: str, *, quick: bool) -> list[dict[str, Any]]:
    settings = NetworkSettings.model_validate(network)
    count = QUICK_TRANSFERS if quick else len(transfers.TRANSFERS)

    def over_relays() -> dict[str, float]:
        with answering([], "127.0.0.1") as port, relays(settings) as opened:
            routes = opened.open({"asks": "127.0.0.1:1", "answers": f"127.0.0.1:{port}"})
            return _ask([], *split_address(routes["asks"]["answers"]), count)

    def over_the_kernel() -> dict[str, float]:
        with kernel_network(("asks", "answers"), settings.line(), congestion) as (there, _):
            host, inside = there["asks"]["answers"], ("ip", "netns", "exec")
            with answering([*inside, namespace("answers")], host) as port:
                return _ask([*inside, namespace("asks")], host, port, count)

    runs: dict[str, Run] = {"simulated": over_relays}
    if is_available():
        runs["kernel"] = over_the_kernel
    return take_turns(runs, network, rounds)


@contextlib.contextmanager
def answering(inside: list[str], host: str) -> Iterator[int]:
    """Start the process that answers, and yield its port."""
    words = [*inside, *transfers.words(f"serve({host!r}, 0)")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            if process.stdout is None:
                raise TypeError("the process has no pipe")
            yield int(process.stdout.readline())
        finally:
            process.kill()


def _ask(inside: list[str], host: str, port: int, count: int) -> dict[str, float]:
    words = [*inside, *transfers.words(f"print_seconds({host!r}, {port}, {count})")]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def show(found: list[dict[str, Any]], console: Console) -> None:
    table = Table("job", "network", "no network", "kernel", "simulated", "simulated / kernel")
    for row in found:
        fastest = row["fastest"]
        times = (f"{fastest[kind]:.2f} s" if kind in fastest else "" for kind in ("none", "kernel", "simulated"))
        table.add_row(row["case"], row["network"], *times, "" if row["ratio"] is None else f"{row['ratio']:.3f}")
    console.print(table)


# --- one job ---------------------------------------------------------------------------------------------


def on_relays(made: Path, case: Case, network: str) -> dict[str, float]:
    """Run it on this machine, over relays unless the network is empty."""
    ports = dict(zip(ROLES, free_ports(len(ROLES)), strict=True))
    direct = {party: f"127.0.0.1:{port}" for party, port in ports.items()}
    with copy_of(made) as base, contextlib.ExitStack() as stack:
        there: Routes = dict.fromkeys(ROLES, direct)
        if network:
            there = stack.enter_context(relays(NetworkSettings.model_validate(network))).open(direct)
        write_files(base, case, direct, there, direct)
        return submit(case, base, dict.fromkeys(ROLES, ()))


def in_the_kernel(made: Path, case: Case, line: Line, congestion: str) -> dict[str, float]:
    """Run it between namespaces."""
    with copy_of(made) as base, kernel_network(tuple(ROLES), line, congestion) as (hosts, direct):
        there = {party: {peer: f"{host}:{PORT}" for peer, host in of.items()} for party, of in hosts.items()}
        listen = dict.fromkeys(ROLES, f"0.0.0.0:{PORT}")
        write_files(base, case, listen, there, {party: f"{host}:{PORT}" for party, host in direct.items()})
        return submit(case, base, {party: ("ip", "netns", "exec", namespace(party)) for party in ROLES})


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [end.getsockname()[1] for end in held]


def submit(case: Case, base: Path, inside: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Start the parties, and return the seconds of the job.

    Args:
        inside: first words of the command of each party.
    """
    with parties_up(base, inside):
        return _figure(case, [*BLINDFIT, "submit", "job.toml", "--out", "out", "--json"], base)


def _figure(case: Case, words: list[str], base: Path) -> dict[str, float]:
    done = subprocess.run(words, cwd=base, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{case.name}: {' '.join(words[2:])}: {done.stderr}")
    report = json.loads(done.stdout)["report"]
    if case.figure == "job":
        return {case.name: float(report["seconds"]["job"])}
    return {case.name: float(report["parties"]["bank"]["summary"]["timing"][case.figure])}


@contextlib.contextmanager
def parties_up(base: Path, inside: Mapping[str, Sequence[str]]) -> Iterator[None]:
    processes = []
    try:
        for party in ROLES:
            words = [*inside[party], *BLINDFIT, "party", f"{party}.toml"]
            with (base / f"{party}.log").open("wb") as log:
                ready = ["--ready-file", f"{party}.port"]
                processes.append(subprocess.Popen([*words, *ready], cwd=base, stdout=log, stderr=log))
        give_up = time.monotonic() + READY_S
        while not all((base / f"{party}.port").exists() for party in ROLES):
            if time.monotonic() > give_up or any(process.poll() is not None for process in processes):
                sys.exit("\n".join((base / f"{party}.log").read_text() for party in ROLES))
            time.sleep(0.05)
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


@contextlib.contextmanager
def copy_of(made: Path) -> Iterator[Path]:
    """Copy the files, so that each job begins with empty databases."""
    base = made.with_name(f"{made.name}-run")
    shutil.copytree(made, base)
    try:
        yield base
    finally:
        shutil.rmtree(base)


# --- files -----------------------------------------------------------------------------------------------


def make_files(base: Path, case: Case) -> Path:
    """Write tables and certificates."""
    base.mkdir()
    draw = np.random.default_rng(5)
    columns = draw.normal(size=(case.rows, 10)).round(4)
    labels = (columns[:, 0] + columns[:, 5] + draw.logistic(size=case.rows) > 0).astype(int)
    for number, party in enumerate(("bank", "post")):
        rows = [["id", *(["paid"] if party == "bank" else []), *(f"{party}{j}" for j in range(5))]]
        for person in draw.permutation(case.rows):
            own = [labels[person]] if party == "bank" else []
            rows.append([f"person-{person:07d}", *own, *columns[person, 5 * number : 5 * number + 5]])
        (base / f"{party}.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    authority.create_authority(base / "ca", "benchmark")
    for name, role in {**ROLES, "coordinator": "coordinator"}.items():
        authority.issue(base / "ca", name, ["localhost"], role=role)
    return base


def write_files(base: Path, case: Case, listen: Mapping[str, str], there: Routes, direct: Mapping[str, str]) -> None:
    """Write each party's file and the job.

    Args:
        listen: address at which each party listens.
        there: addresses at which each party finds the others.
        direct: addresses at which the coordinator finds the parties.
    """
    for party, role in ROLES.items():
        (base / f"{party}.toml").write_text(party_file(party, role, case.system, listen[party], there[party]))
    job = f'name = "{case.name}"\nprotocol = "{case.system}"\n[coordinator]\n{identity("coordinator")}{case.tables}'
    for party, role in ROLES.items():
        dataset = "" if role == "key-node" else 'dataset = "loans"\n'
        job += f'[parties.{party}]\nrole = "{role}"\n{dataset}address = "{direct[party]}"\n'
    (base / "job.toml").write_text(job)


def party_file(name: str, role: str, system: str, listen: str, there: Mapping[str, str]) -> str:
    text = f'name = "{name}"\nrole = "{role}"\nlisten = "{listen}"\ndata_dir = "state/{name}"\n'
    text += f'[policy]\nsystems = ["{system}"]\n[identity]\n{identity(name)}'
    for peer, its in {**ROLES, "coordinator": "coordinator"}.items():
        if peer != name:
            text += f'[peers.{peer}]\nrole = "{its}"\n'
            text += f'address = "{there[peer]}"\n' if peer in there else ""
    if role == "key-node":
        return text
    text += f'[datasets.loans]\nurl = "csv:{name}.csv"\nid = "id"\nfeatures = "rest"\nmodels_per_row = "unlimited"\n'
    return text + ('label = "paid"\n' if role == "active" else "")


def identity(name: str) -> str:
    return "".join(f'{kind} = "ca/{name}/{kind}.pem"\n' for kind in ("certificate", "key", "authority"))


if __name__ == "__main__":
    main()
