"""The commands that `blindfit init` prints work as they stand, on one machine and between organisations.

Each organisation has only its own file, certificate and table."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command import Done, Forked, blindfit
from tests.init.tables import FILES, PARTIES, WORDS, write_tables
from tests.ports import held_address

SYSTEMS = tuple(WORDS)
OUT = "our 'joint' model"
QUICK = {"taylor": ("--set", "taylor.epochs=2"), "falcon": ("--set", "falcon.epochs=1")}
STARTS_WITHIN_S = 60.0


def made(folder: Path, system: str) -> list[str]:
    """Write tables and let `blindfit init` write the files; return its output."""
    write_tables(folder)
    hosts = [word for name in PARTIES[system] for word in ("--host", f"{name}={held_address()}")]
    done = blindfit(folder, "init", "--system", system, *WORDS[system], *hosts, "--out", OUT)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def commands(lines: list[str], *, between: bool) -> list[list[str]]:
    """Return the printed commands without their first word: those for one machine, or between organisations."""
    at = next(number for number, line in enumerate(lines) if line.startswith("between organisations"))
    chosen = lines[at:] if between else lines[:at]
    return [shlex.split(line)[1:] for line in chosen if line.startswith("  blindfit ")]


def typed(folder: Path, words: list[str], *more: str) -> Done:
    done = blindfit(folder, *words, *more)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.mark.parametrize("system", SYSTEMS)
def test_on_one_machine(tmp_path: Path, system: str) -> None:
    said = commands(made(tmp_path, system), between=False)
    verbs = [words[0] for words in said]
    assert verbs == [
        "check",
        "run",
        *{"taylor": ["predict"], "falcon": ["predict"], "walr": ["evaluate"]}.get(system, []),
    ]
    for words in said:
        typed(tmp_path, words, *(QUICK.get(system, ()) if words[0] in ("check", "run") else ()))
    assert (tmp_path / OUT / "run/report.html").exists()


@contextmanager
def started(folder: Path, words: list[str]) -> Iterator[None]:
    """Yield a party that is running at the address of its file."""
    log = folder / "log"
    with log.open("ab") as out:
        party = Forked([sys.executable, "-m", "blindfit", *words], cwd=folder, stdout=out, stderr=out)
    try:
        host, port = re.findall(r'^listen = "(.*):(\d+)"', (folder / words[1]).read_text(), re.MULTILINE)[0]
        give_up = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                socket.create_connection((host, int(port)), 1).close()
                break
            except OSError:
                assert party.poll() is None, log.read_text()
                assert time.monotonic() < give_up, log.read_text()
                time.sleep(0.05)
        yield
    finally:
        party.kill()
        party.wait(60)


@pytest.mark.parametrize("system", SYSTEMS)
def test_between_organisations(tmp_path: Path, system: str) -> None:
    """Each organisation has only its own files in a folder, as on its own machine."""
    home = tmp_path / "home"
    home.mkdir()
    said = commands(made(home, system), between=True)
    for words in said:
        if words[0] == "certs":
            typed(home, words)
    parties = {Path(words[1]).stem: words for words in said if words[0] == "party"}
    assert set(parties) == set(PARTIES[system])
    with _all_up(home, tmp_path, parties):
        office = tmp_path / "office"
        _move(
            home,
            office,
            "coordinator",
            [path.name for path in (home / OUT).glob("*.toml") if path.stem not in parties],
        )
        own = tmp_path / PARTIES[system][0]  # this party submits a job too: the others' files are elsewhere
        for path in ("job.toml", "certificates/coordinator"):
            copy = shutil.copytree if (office / OUT / path).is_dir() else shutil.copy
            copy(office / OUT / path, own / OUT / path)
        typed(own, ["check", f"{OUT}/job.toml"], *QUICK.get(system, ()))
        session = ""
        for words in (words for words in said if words[0] in ("check", "submit")):
            words = [session if word == "SESSION" else word for word in words]
            done = typed(office, words, *(QUICK.get(system, ()) if words[1].endswith("job.toml") else ()))
            if found := re.findall(r"^session (\S+)$", done.stdout, re.MULTILINE):
                session = session or found[0]


@contextmanager
def _all_up(home: Path, root: Path, parties: dict[str, list[str]]) -> Iterator[None]:
    if not parties:
        yield
        return
    name, words = next(iter(parties.items()))
    _move(home, root / name, name, [f"{name}.toml"])
    if name in FILES:
        shutil.copy(home / FILES[name], root / name)
    with started(root / name, words), _all_up(home, root, {n: w for n, w in parties.items() if n != name}):
        yield


def _move(home: Path, folder: Path, name: str, files: list[str]) -> None:
    (folder / OUT / "certificates").mkdir(parents=True)
    for file in files:
        shutil.copy(home / OUT / file, folder / OUT)
    shutil.copytree(home / OUT / "certificates" / name, folder / OUT / "certificates" / name)
