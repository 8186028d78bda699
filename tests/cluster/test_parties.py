"""The cluster's parties, as processes: their health checks and jobs."""

from __future__ import annotations

import runpy
import shutil
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from blindfit.algorithms.errors import ConfigError, TransportError
from blindfit.coordinator.operator import health
from tests.cluster.reading import CLUSTER, job_of
from tests.cluster.running import bring_here, certify, parties_up, party_file, run
from tests.command import Done, blindfit
from tests.ports import held_address
from tests.processes.reading import error_line

# --- jobs

QUICK = {"taylor": ["--set", "taylor.epochs=1"]}
ON_THE_SAME_PARTIES = [["taylor"], ["walr", "walr-split", "walr-shares"]]


@pytest.mark.parametrize("names", ON_THE_SAME_PARTIES, ids="+".join)
def test_the_parties_do_the_jobs(tmp_path: Path, data: Path, names: list[str], full_size_keys: None) -> None:
    parties = sorted({party for name in names for party in job_of(name).parties})
    addresses = {party: held_address() for party in parties}
    certify(tmp_path, "coordinator", *parties)
    shutil.copytree(data, tmp_path / "data")
    with parties_up(*(party_file(party, tmp_path, addresses) for party in parties)):
        for name in names:
            job = bring_here(CLUSTER / "jobs" / f"{name}.toml", "coordinator", tmp_path, addresses)
            done = blindfit(tmp_path, "submit", str(job), "--out", f"out/{name}", *QUICK.get(name, []))
            assert done.returncode == 0, done.stderr
            assert (tmp_path / "out" / name / "report.json").exists()
    assert len([*(tmp_path / "state" / "hospital").rglob("model.json")]) == len(names)


# --- health


HEALTH = "blindfit.coordinator.operator.health"


def check(file: Path, *, anew: bool = False) -> list[Done]:
    """Check by the command, and by a container's check: here, or in a process that starts from nothing."""
    by_container = run(sys.executable, "-m", HEALTH, file) if anew else blindfit(file.parent, str(file), main=_health)
    return [blindfit(file.parent, "health", str(file)), by_container]


def _health() -> None:
    with warnings.catch_warnings(action="ignore"):  # a warning that the module is imported already
        try:
            runpy.run_module(HEALTH, run_name="__main__")
        except SystemExit as ended:
            sys.stderr.write(f"{ended.code}\n")  # as an interpreter does
            raise


def test_a_party_is_healthy_while_it_is_up(tmp_path: Path) -> None:
    certify(tmp_path, "notary")
    file = party_file("notary", tmp_path)
    with parties_up(file):
        assert [done.returncode for done in check(file, anew=True)] == [0, 0]
        certify(tmp_path, "notary")  # a renewed certificate is taken without a restart
        assert [done.returncode for done in check(file)] == [0, 0]
    down = check(file, anew=True)
    assert [done.returncode for done in down] == [1, 1]
    assert all("cannot reach notary" in error_line(done) for done in down)


def test_what_else_answers_there_is_not_the_party(tmp_path: Path) -> None:
    certify(tmp_path, "archive", "notary")
    file = party_file("notary", tmp_path)
    other = tmp_path / "other.toml"
    other.write_text(file.read_text().replace("identities/notary", "identities/archive"))
    with parties_up(file):
        assert all("the party that answers there is notary" in error_line(done) for done in check(other))


def test_a_party_that_does_not_know_itself_is_told_how(tmp_path: Path) -> None:
    certify(tmp_path, "notary")
    file = party_file("notary", tmp_path)
    file.write_text(file.read_text().replace("[peers.notary]", "[peers.another]"))
    with parties_up(file):
        by_command, by_container = check(file)
    assert (by_command.returncode, by_container.returncode) == (2, 1)
    assert "refuses a health check from itself" in error_line(by_command)
    assert "[peers.notary]" in by_command.stderr


class Answers:
    """Stand-in for gRPC's channel and stub at the party's address."""

    def __init__(self, said: str | grpc.StatusCode) -> None:
        self._said = said

    async def __aenter__(self) -> Answers:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def Check(self, _request: object, timeout: float) -> health_pb2.HealthCheckResponse:  # noqa: N802
        if isinstance(self._said, grpc.StatusCode):
            raise grpc.aio.AioRpcError(self._said, grpc.aio.Metadata(), grpc.aio.Metadata())
        return health_pb2.HealthCheckResponse(status=self._said)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("NOT_SERVING", "notary does not serve"),
        ("UNKNOWN", "notary does not serve"),
        (grpc.StatusCode.UNAVAILABLE, "notary is running, but its health check ended with UNAVAILABLE"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "notary is running, but its health check ended with DEADLINE_EXCEEDED"),
    ],
)
async def test_a_party_that_is_up_and_not_well(
    monkeypatch: pytest.MonkeyPatch, answer: str | grpc.StatusCode, said: str
) -> None:
    async def open_channel(*_: object) -> Answers:
        return Answers(answer)

    monkeypatch.setattr(health, "open_channel", open_channel)
    monkeypatch.setattr(health.health_pb2_grpc, "HealthStub", lambda channel: channel)
    own: Any = SimpleNamespace(name="notary")
    with pytest.raises(TransportError, match=f"^{said}$"):
        await health.ask(own, "127.0.0.1:7100")


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("0.0.0.0:7100", "127.0.0.1:7100"),
        ("[::]:7100", "[::1]:7100"),
        ("[fd00::7]:7100", "[fd00::7]:7100"),
        ("localhost:7100", "localhost:7100"),
    ],
)
def test_where_a_party_answers(listen: str, address: str) -> None:
    assert health.address_of(listen) == address


def test_a_port_that_changes_with_every_start_cannot_be_asked() -> None:
    with pytest.raises(ConfigError, match="each start takes another port"):
        health.address_of("127.0.0.1:0")
