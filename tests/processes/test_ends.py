"""If a party's process ends in any way, its log or its launcher reports it in a line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from blindfit.algorithms.errors import PeerAborted, PeerUnreachable, PolicyRefused, TransportError
from blindfit.coordinator.running.launcher import KILLED, Launched, _port, process_lost

ROOT = Path(__file__).parents[2]

PARTY = """
import asyncio, contextlib, ctypes, signal, sys, threading
import structlog
from blindfit.parties.work import ending

def fails(secret):
    raise ValueError(secret)

async def dies():
    fails("s3cret")

async def forgets_a_task():
    stopping = asyncio.create_task(ending.wait_for_stop())
    await asyncio.sleep(0)
    asyncio.create_task(dies())
    await asyncio.sleep(0)
    signal.raise_signal(signal.SIGHUP)
    return await stopping

async def waits():
    stopping = asyncio.create_task(ending.wait_for_stop())
    await asyncio.sleep(0)
    print("up", flush=True)
    return await stopping

def out_of_memory():
    raise MemoryError("s3cret")

structlog.configure(
    processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
    logger_factory=structlog.PrintLoggerFactory(sys.stderr),
)
for does in sys.argv[1:]:
    with contextlib.suppress(BaseException), ending.log_ending("hospital"):
        print(eval(does))
"""


def party(*does: str, ignored: signal.Signals | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PARTY, *does],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=(lambda: signal.signal(ignored, signal.SIG_IGN)) if ignored else None,
    )


def records(log: str) -> list[dict[str, str]]:
    assert "s3cret" not in "\n".join(line for line in log.splitlines() if line.startswith("{"))
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


ENDS = {
    "asyncio.run(dies())": {"error": "ValueError", "level": "error"},
    "out_of_memory()": {"error": "MemoryError", "reason": "there is not enough memory"},
    "signal.raise_signal(signal.SIGTERM)": {"error": "SystemExit"},
    "sys.exit(3)": {"error": "SystemExit"},
    "1": {"level": "info"},
}


def test_the_last_line_says_how_it_ended() -> None:
    _, log = party(*ENDS).communicate(timeout=60)
    found = records(log)
    assert [record["signal"] for record in found if record["event"] == "party is stopped"] == ["SIGTERM"]
    lasts = [record for record in found if record["event"] == "party ended"]
    for expected, last in zip(ENDS.values(), lasts, strict=True):
        assert {**expected, "party": "hospital"}.items() <= last.items()


def test_a_signal_is_named_and_failures_beside_it_are_lines() -> None:
    thread = "[t := threading.Thread(target=fails, args=('s3cret',), name='helper'), t.start(), t.join()]"
    shown, log = party(f"[{thread}, asyncio.run(forgets_a_task())][1]").communicate(timeout=60)
    assert shown == "SIGHUP\n"
    events = {record["event"]: record for record in records(log)}
    assert events["thread failed"]["thread"] == "helper"
    assert events["thread failed"]["error"] == events["task failed"]["error"] == "ValueError"


def test_what_was_ignored_stays_ignored() -> None:
    """A party that was started under nohup outlives its terminal."""
    process = party("asyncio.run(waits())", ignored=signal.SIGHUP)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == "SIGTERM\n"


def test_a_crash_of_compiled_code_leaves_its_place() -> None:
    process = party("ctypes.string_at(0)")
    _, log = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in log
    assert "string_at" in log


# --- the launcher ----------------------------------------------------------------------------------------


def ended(command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sh", "-c", command])


CUT = PeerUnreachable(peer="hospital", address="localhost:1", step="Watch")
CANCELLED = PeerAborted(culprit="hospital", code="CANCELLED")


@pytest.mark.parametrize("error", [CUT, CANCELLED])
@pytest.mark.parametrize(
    ("command", "how"),
    [
        ("kill -KILL $$", "was killed (SIGKILL)"),
        ("kill -SEGV $$", "was killed (SIGSEGV)"),
        ("exit 70", "ended with exit code 70"),
        ("sleep 0.1", "ended with exit code 0"),
    ],
)
def test_whose_process_ended_and_how(tmp_path: Path, error: TransportError, command: str, how: str) -> None:
    (tmp_path / "hospital").mkdir()
    (tmp_path / "hospital" / "party.log").write_text("error: a bug in Blindfit: KeyError at x.py:1\n")
    up = subprocess.Popen(["sleep", "60"])
    launched = Launched({}, None, {"clinic": up, "hospital": ended(command)}, tmp_path)  # type: ignore[arg-type]
    try:
        found = launched.find_lost_process(error)
    finally:
        up.kill()
        up.wait()
    log = tmp_path / "hospital" / "party.log"
    assert found.message == f"hospital's process {how} in the middle of the job; its log is {log}"
    assert ("memory" in found.hint) == ("SIGKILL" in how)
    assert ("a bug in Blindfit" in found.hint) == ("70" in how)


def test_a_job_that_fails_for_another_reason_keeps_it(tmp_path: Path) -> None:
    up = subprocess.Popen(["sleep", "60"])
    try:
        for error in (CUT, PolicyRefused(party="hospital", field="dataset", reason="it has none")):
            launched = Launched({}, None, {"hospital": up}, tmp_path)  # type: ignore[arg-type]
            assert launched.find_lost_process(error) is error
            assert Launched({}, None).find_lost_process(error) is error  # type: ignore[arg-type]
    finally:
        up.kill()
        up.wait()


def test_a_signal_without_a_name(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    assert "was killed (signal 99)" in str(process_lost("hospital", -99, tmp_path / "log"))


def test_a_party_that_is_killed_before_it_is_up_has_not_been_given_wrong_input(tmp_path: Path) -> None:
    """The party's log is empty, and the exit status of a wrong file would mislead its operator."""
    (tmp_path / "hospital").mkdir()
    killed: Any = SimpleNamespace(poll=lambda: -signal.SIGKILL)
    nursery: Any = SimpleNamespace(code=None)
    with pytest.raises(TransportError, match=r"hospital's process was killed \(SIGKILL\) before it was ready") as lost:
        _port("hospital", killed, tmp_path, nursery)
    assert lost.value.hint == KILLED
