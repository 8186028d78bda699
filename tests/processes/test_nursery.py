"""The process from which parties are forked: a child's own state, and no child outlives its command."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from blindfit.algorithms.errors import TransportError
from blindfit.coordinator.running.forking import CANNOT_START, SEATS, WARM
from blindfit.coordinator.running.launcher import launch
from blindfit.coordinator.running.nursery import Child, Nursery
from blindfit.coordinator.running.study import find_cause
from blindfit.parties.systems import SYSTEMS
from tests.command import ROOT, forked_parties
from tests.world import World

OF_CODE = (sys.executable, "-m", "tests.processes.nursery_of_code")
WITHIN_S = 30.0
SOON = "from blindfit.coordinator.running import forking; forking.CHILDREN_END_WITHIN_S = 0.05"

OWN_STATE = """
import json, multiprocessing, os, random, secrets, signal, sys, threading
import numpy as np
print(json.dumps({
    "random": random.random(),
    "numpy": np.random.random(),
    "secret": secrets.token_hex(),
    "authkey": multiprocessing.current_process().authkey.hex(),
    "pid": os.getpid(),
}), flush=True)
"""
SHARED_STATE = """
import gc, json, os, signal, sys, threading
with os.scandir("/proc/self/fd") as names:
    files = {name.name: os.readlink(name.path) for name in names}
print(json.dumps({
    "folder": os.getcwd(),
    "environment": {name: os.environ.get(name) for name in ("NURSERY_TEST", "BEFORE")},
    "threads": threading.active_count(),
    "handlers": [signal.getsignal(n) is signal.SIG_DFL for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)],
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "woken": signal.set_wakeup_fd(-1),
    "pipes": sorted(number for number, what in files.items() if what.startswith("pipe:")),
    "writes to": [files["1"], files["2"]],
    "collects": gc.isenabled(),
    "shown": open("/proc/self/comm").read().strip(),
}), flush=True)
"""
WAITS = "import time; print('up', flush=True); time.sleep(600)"
ENDS_WITH_ITS_NURSERY = (
    """
import pathlib
from blindfit.parties.work import ending
ending.end_with_launcher(pathlib.Path("keys"))
"""
    + WAITS
)


@contextmanager
def open_nursery(*before: str) -> Iterator[Nursery]:
    with forked_parties(), Nursery([*OF_CODE, SOON, *before]) as nursery:
        yield nursery


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    with open_nursery() as nursery:
        yield nursery


def start(nursery: Nursery, code: str, log: Path) -> Child:
    log.touch()
    return nursery.start([code], [], log)


def until(ready: Callable[[], object]) -> None:
    give_up = time.monotonic() + WITHIN_S
    while not ready():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def printed(nursery: Nursery, code: str, log: Path) -> dict[str, Any]:
    assert start(nursery, code, log).wait(WITHIN_S) == 0, log.read_text()
    return dict(json.loads(log.read_text()))


def is_there(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


# --- what a child has of its own ---------------------------------------------------------------------------


def test_no_two_children_draw_the_same(nursery: Nursery, tmp_path: Path) -> None:
    """The nursery has NumPy's generator and a key of multiprocessing from before it forks."""
    children = [printed(nursery, OWN_STATE, tmp_path / f"{number}.log") for number in range(3)]
    for name in children[0]:
        assert len({child[name] for child in children}) == 3, name


def test_a_child_has_the_folder_and_environment_of_its_caller_and_no_file_of_the_nursery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes are those of a user: one that is forked for a test has pipes of multiprocessing too."""
    (tmp_path / "there").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("BEFORE", "as the nursery starts")
    log = tmp_path / "child.log"
    with Nursery(OF_CODE) as nursery:
        monkeypatch.delenv("BEFORE")
        monkeypatch.setenv("NURSERY_TEST", "later")
        monkeypatch.chdir(tmp_path / "there")
        (tmp_path / "child.log").touch()
        started = nursery.start(["party", "a/bank.toml", SHARED_STATE], [], log)
        assert started.wait(WITHIN_S) == 0, log.read_text()
    assert json.loads(log.read_text()) == {
        "folder": str(tmp_path / "there"),
        "environment": {"NURSERY_TEST": "later", "BEFORE": None},
        "threads": 1,
        "handlers": [True, True, True],
        "interrupt": True,
        "blocked": 0,
        "woken": -1,
        "pipes": ["0"],
        "writes to": [str(log), str(log)],
        "collects": True,
        "shown": "blindfit bank",
    }


def test_a_signal_that_was_ignored_before_the_nursery_stays_ignored(tmp_path: Path) -> None:
    """A command that was started under nohup outlives its terminal, and so do its parties."""
    ignored = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    with open_nursery(ignored) as nursery:
        shown = "import signal; print(int(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN), end='')"
        child = start(nursery, f"{shown}\nimport sys; sys.stdout.flush()", tmp_path / "log")
        assert child.wait(WITHIN_S) == 0
    assert (tmp_path / "log").read_text() == "1"


def test_the_nursery_knows_the_seats_of_every_system() -> None:
    assert sorted(SEATS) == sorted(SYSTEMS)


def test_every_module_that_is_imported_early_is_there() -> None:
    for module in (*WARM, *(seat for seats in SEATS.values() for seat in seats)):
        assert find_spec(module) is not None, module


# --- how a child ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pass", 0),
        ("import sys; sys.exit(7)", 7),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os; os._exit(3)", 3),
    ],
)
def test_how_a_child_ended_is_reported(nursery: Nursery, tmp_path: Path, code: str, expected: int) -> None:
    child = start(nursery, code, tmp_path / "log")
    assert child.wait(WITHIN_S) == child.poll() == child.returncode == expected


@pytest.mark.parametrize(("name", "number"), [("terminate", signal.SIGTERM), ("kill", signal.SIGKILL)])
def test_a_signal_reaches_its_child_and_no_other(nursery: Nursery, tmp_path: Path, name: str, number: int) -> None:
    other, child = (start(nursery, WAITS, tmp_path / log) for log in ("other", "child"))
    until(lambda: "up" in (tmp_path / "child").read_text() and "up" in (tmp_path / "other").read_text())
    getattr(child, name)()
    assert child.wait(WITHIN_S) == -number
    assert other.poll() is None
    assert is_there(other.pid)


def test_a_signal_for_a_child_that_has_ended_is_sent_to_nobody(nursery: Nursery, tmp_path: Path) -> None:
    """Another process may have the same number by now."""
    ended, other = start(nursery, "pass", tmp_path / "ended"), start(nursery, WAITS, tmp_path / "other")
    assert ended.wait(WITHIN_S) == 0
    ended.returncode = None  # as if the command did not know yet
    ended.kill()
    assert printed(nursery, OWN_STATE, tmp_path / "next")["pid"] > 0  # the nursery still serves
    assert other.poll() is None


def test_a_child_that_cannot_be_forked_says_why_in_its_log(tmp_path: Path) -> None:
    no_room = "import os\ndef refuse(): raise BlockingIOError(11, 'Resource temporarily unavailable')\nos.fork = refuse"
    with open_nursery(no_room) as nursery:
        child = start(nursery, "pass", tmp_path / "log")
        assert child.wait(WITHIN_S) == CANNOT_START
        assert child.pid == 0
    assert (tmp_path / "log").read_text() == "error: no process can be started: Resource temporarily unavailable\n"


def test_a_child_that_fails_as_it_begins_is_no_second_nursery(tmp_path: Path) -> None:
    no_folder = "import os\ndef refuse(_): raise FileNotFoundError(2, 'No such file or directory')\nos.chdir = refuse"
    with open_nursery(no_folder) as nursery:
        child = start(nursery, "print('it goes on')", tmp_path / "log")
        assert child.wait(WITHIN_S) == 1
    assert "FileNotFoundError" in (tmp_path / "log").read_text()
    assert "it goes on" not in (tmp_path / "log").read_text()


def test_many_threads_share_a_nursery(nursery: Nursery, tmp_path: Path) -> None:
    pids: dict[int, int] = {}

    def run(number: int) -> None:
        pids[number] = printed(nursery, OWN_STATE, tmp_path / f"{number}.log")["pid"]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(pids.values())) == 8


# --- who outlives whom -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stopped", [False, True])
def test_no_child_outlives_a_nursery_that_is_closed(tmp_path: Path, stopped: bool) -> None:
    """This holds for a child that stands still, which cannot end by itself."""
    with open_nursery() as nursery:
        child = start(nursery, WAITS, tmp_path / "log")
        until(lambda: "up" in (tmp_path / "log").read_text())
        if stopped:
            child.send_signal(signal.SIGSTOP)
            until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_STOPPED)
        pid = child.pid
    until(lambda: not is_there(pid))
    assert child.returncode == -signal.SIGKILL


@pytest.mark.parametrize("stopped", [False, True])
def test_a_party_ends_when_its_nursery_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    """This holds for a party that stands still, as a fault may ask."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "keys").mkdir()
    with open_nursery() as nursery:
        child = start(nursery, ENDS_WITH_ITS_NURSERY, tmp_path / "log")
        until(lambda: "up" in (tmp_path / "log").read_text())
        if stopped:
            child.send_signal(signal.SIGSTOP)
            until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_STOPPED)
        os.kill(nursery.pid, signal.SIGKILL)
        assert child.wait(WITHIN_S) == nursery.code == -signal.SIGKILL
        until(lambda: not is_there(child.pid))
        late = start(nursery, "pass", tmp_path / "late")
        assert late.wait(WITHIN_S) == -signal.SIGKILL
    assert not (tmp_path / "keys").exists()


# --- a run -------------------------------------------------------------------------------------------------


def test_a_run_whose_nursery_cannot_start_says_so(project: World) -> None:
    command = [*OF_CODE, "raise SystemExit('error: a module is missing')"]
    out = project.path("out")
    with forked_parties(), pytest.raises(TransportError) as failed, launch(project.load(), out, command):
        pass
    assert failed.value.message == "the process from which the parties start ended with exit code 1"
    assert failed.value.hint == "a module is missing"


def test_a_run_whose_nursery_is_killed_blames_no_party(project: World) -> None:
    with forked_parties(), launch(project.load(), project.path("out")) as launched:
        assert launched.nursery is not None
        os.kill(launched.nursery.pid, signal.SIGKILL)
        lost = launched.find_lost_process(TransportError("it does not answer", peer="meter"))
        assert lost.message == "the process from which the parties start was killed (SIGKILL)"
        assert find_cause(lost) == ""


def test_runs_that_share_a_nursery_have_processes_of_their_own(project: World, tmp_path: Path) -> None:
    other = project.copied_to(tmp_path / "other")
    with (
        forked_parties(),
        Nursery() as nursery,
        launch(project.load(), project.path("out"), nursery=nursery) as one,
    ):
        with launch(other.load(), other.path("out"), nursery=nursery) as two:
            pids = [child.pid for run in (one, two) for child in run.processes.values()]
            assert len(set(pids)) == 4
        assert [child.returncode for child in two.processes.values()] == [0, 0]
        assert [child.poll() for child in one.processes.values()] == [None, None]
