"""Two processes on one port or one folder: the second reports it in two lines, and gRPC prints nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.store.data_dir_lock import DataDirLock
from blindfit.parties.wire.listening import check_free
from tests.command import Piped
from tests.ports import held_address
from tests.world import World
from tests.world.measured import project

__all__ = ["project"]  # a fixture


def test_two_parties_on_one_folder_are_both_named(tmp_path: Path) -> None:
    first, second = DataDirLock(tmp_path / "state", "shop"), DataDirLock(tmp_path / "state", "meter")
    first.take()
    with pytest.raises(ConfigError) as refused:
        second.take()
    holder = f"shop (process {os.getpid()})"
    assert refused.value.message == f"data_dir = {tmp_path}/state: {holder} uses it, so meter cannot"
    first.release()
    second.take()
    second.release()


def test_a_process_that_died_keeps_nothing(tmp_path: Path) -> None:
    take = "import sys, os, pathlib; from blindfit.parties.store.data_dir_lock import DataDirLock as L; "
    take += "L(pathlib.Path(sys.argv[1]), 'shop').take(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", take, str(tmp_path)], check=False)
    assert (tmp_path / "party.lock").read_text().startswith("shop (process ")
    lock = DataDirLock(tmp_path, "meter")
    lock.take()
    lock.release()


def test_addresses_that_are_not_ours_to_listen_on() -> None:
    check_free(held_address())
    check_free("127.0.0.1:0")
    check_free("unix:/run/party")
    with pytest.raises(ConfigError, match=r"^listen = 192\.0\.2\.1:7100: the address cannot be bound: Cannot assign"):
        check_free("192.0.2.1:7100")  # TEST-NET-1: no machine has it


@pytest.mark.parametrize("listen", ["", "foo", "localhost:abc", "localhost:99999", ":7100", "localhost:"])
def test_an_address_that_is_none_is_a_mistake_of_the_file(project: World, listen: str) -> None:
    done = project.blindfit("party", "shop.toml", "--set", f'listen="{listen}"')
    assert done.returncode == 2
    assert (
        f"shop.toml with --set listen: listen: '{listen}' is not host:port with a port from 0 to 65535" in done.stderr
    )


def test_a_second_start_is_two_lines_of_ours(project: World) -> None:
    project.start("shop")
    address = project.path("shop.toml").read_text().split('listen = "')[1].split('"')[0]
    again = project.in_a_process("party", "shop.toml")
    assert again.returncode == 2
    said = [line for line in again.stderr.splitlines() if "[warning" not in line]
    assert said == [
        f"error: listen = {address}: the address cannot be bound: Address already in use",
        "hint: is another process using the port?",
    ]
    before = sorted(path.name for path in project.path("state/shop").iterdir())
    words = [sys.executable, "-m", "blindfit", "party", "meter.toml", "--set", "data_dir=state/shop"]
    other = Piped(words, cwd=project.root)
    _, errors = other.communicate(60)
    assert other.returncode == 2
    pid = project.processes["shop"].pid
    said = [line for line in errors.splitlines() if "[warning" not in line]
    assert said == [
        f"error: data_dir = state/shop: shop (process {pid}) uses it, so meter cannot",
        "hint: start each party once, with a data_dir of its own; "
        "for parties that are running use `blindfit submit JOB.TOML`",
    ]
    assert sorted(path.name for path in project.path("state/shop").iterdir()) == before
