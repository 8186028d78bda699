"""The cluster without containers: its own files, with this machine's folders and ports in them."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.reading import CLUSTER, mounts
from tests.command import Forked, blindfit
from tests.ports import held_address


def run(*command: str | Path, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path, "COLUMNS": "200"}
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=100, env=environment)


def certify(folder: Path, *parties: str) -> dict[str, str]:
    """Do what the service `certificates` does, and return its output."""
    for party in parties:
        (folder / "identities" / party).mkdir(parents=True, exist_ok=True)

    def service() -> None:
        runpy.run_path(str(CLUSTER / "certificates.py"), run_name="__main__")

    done = blindfit(folder, str(folder / "authority"), str(folder / "identities"), main=service)
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


PROGRAMS = Path(sys.executable).parent  # folder of python and blindfit


def hand_out_data(folder: Path, programs: Path = PROGRAMS) -> list[str]:
    """Do what the service `data` does, and return its output."""
    done = try_to_hand_out_data(folder, programs)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def try_to_hand_out_data(folder: Path, programs: Path = PROGRAMS) -> subprocess.CompletedProcess[str]:
    for where in mounts("data"):
        (folder / Path(where).name).mkdir(parents=True, exist_ok=True)
    return run("sh", CLUSTER / "data.sh", folder, path=f"{programs}:/usr/bin:/bin")


def bring_here(source: Path, party: str, folder: Path, addresses: dict[str, str]) -> Path:
    """Return a file of the cluster as the party reads it, with this folder's paths and this machine's addresses."""
    text = source.read_text()
    volumes = {
        '"/identity/': f'"{folder}/identities/{party}/',
        ":/data/": f":{folder}/data/{party}/",
        '"/state"': f'"{folder}/state/{party}"',
        "0.0.0.0:7100": addresses.get(party, ""),
    }
    for there, here in volumes.items():
        text = text.replace(there, here)
    for other, address in addresses.items():
        text = text.replace(f'"{other}:7100"', f'"{address}"')
    path = folder / source.name
    path.write_text(text)
    return path


def party_file(party: str, folder: Path, addresses: dict[str, str] | None = None) -> Path:
    return bring_here(CLUSTER / f"{party}.toml", party, folder, addresses or {party: held_address()})


@contextmanager
def parties_up(*files: Path) -> Iterator[None]:
    processes = {file: _start(file) for file in files}
    try:
        give_up = time.monotonic() + 60
        for file, process in processes.items():
            while not file.with_suffix(".ready").exists():
                assert process.poll() is None, file.with_suffix(".log").read_text()
                assert time.monotonic() < give_up
                time.sleep(0.05)
        yield
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait(60)


def _start(file: Path) -> Forked:
    ready = file.with_suffix(".ready")
    ready.unlink(missing_ok=True)
    with file.with_suffix(".log").open("wb") as log:
        command = [sys.executable, "-m", "blindfit", "party", file, "--ready-file", ready]
        return Forked(command, stdout=log)
