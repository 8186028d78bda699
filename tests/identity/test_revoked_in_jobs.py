"""The commands of `blindfit init` and the pages suffice: a party that an operator then revokes takes no part."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from blindfit.algorithms.errors import BlindfitError, PeerUnauthenticated
from blindfit.parties.identity import authority
from blindfit.protos.control_pb2_grpc import ControlStub
from tests.certificates import demo_authority, make_identity
from tests.command import Done, blindfit
from tests.ports import held_address
from tests.vertical.nodes import NewJob, nodes_in
from tests.wire.calls import proposal
from tests.wire.meter import connect, metering
from tests.world import World

ROWS = 300
ENDLESS = ("taylor.epochs=10000", "taylor.patience=0")  # such a job ends on no machine meanwhile


def typed(directory: Path, line: str) -> Done:
    done = blindfit(directory, *line.replace("HOST", "localhost").split()[1:])
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def joint(tmp_path: Path) -> Iterator[World]:
    """Two tables, `blindfit init`, and every command that it prints for parties of several organisations."""
    (tmp_path / "shop.csv").write_text("id,x,z\n" + "".join(f"p{i},{i % 13},{i % 11}\n" for i in range(ROWS)))
    (tmp_path / "clinic.csv").write_text("id,visited\n" + "".join(f"p{i},{int(i % 13 > 6)}\n" for i in range(ROWS)))
    hosts = " ".join(f"--host {party}={held_address()}" for party in ("shop", "clinic"))
    made = typed(tmp_path, f"blindfit init --system walr shop.csv clinic.csv --label visited {hosts}")
    for line in made.stdout.splitlines():
        if line.startswith("  blindfit certs"):
            typed(tmp_path, line.strip())
    project = World(tmp_path / "joint")
    for party in ("shop", "clinic"):
        project.edit(f"{party}.toml", 'name = "', 'log_format = "json"\nname = "')
    project.start("shop", "clinic")
    yield project
    project.stop()


def submit(project: World) -> Done:
    return project.blindfit("submit", "job.toml", "--out", "out")


def test_the_documented_way_revokes(joint: World) -> None:
    for party in ("shop", "clinic"):
        assert '"event": "a revocation list is in force"' in joint.log(party)
    done = submit(joint)
    assert done.returncode == 0, done.stderr
    assert "revocation" not in done.stdout
    typed(joint.root, "blindfit certs revoke certificates shop")
    refused = submit(joint)
    assert refused.returncode == 1
    line = "error: the connection with shop is not authenticated: its certificate was revoked"
    assert refused.stderr.splitlines()[0].startswith(line)


def test_a_party_whose_file_names_a_list_does_not_start_without_it(joint: World) -> None:
    joint.kill("clinic")
    joint.path("certificates/clinic/crl.pem").unlink()
    with pytest.raises(AssertionError, match=r"certificates/clinic/crl\.pem"):
        joint.start("clinic")


def test_without_a_list_the_command_and_the_party_say_so(joint: World) -> None:
    for file, folder in (("job", "coordinator"), ("clinic", "clinic")):
        joint.edit(f"{file}.toml", f'revoked = "certificates/{folder}/crl.pem"', "")
    for folder in ("coordinator", "clinic"):
        joint.path(f"certificates/{folder}/crl.pem").unlink()
    joint.kill("clinic")
    joint.start("clinic")
    assert "no revocation list: a revoked certificate is accepted" in joint.log("clinic")
    done = submit(joint)
    assert done.returncode == 0, done.stderr
    assert "certificates/coordinator/crl.pem" in done.stdout


# --- between parties, of which any may have the list --------------------------------------------------------


def revoke_at(root: Path, party: str, at: str) -> None:
    """Revoke `party` at the authority, and copy the new list to only one party."""
    ca = root / "ca"
    with mock.patch.object(authority, "PARTY_NAME", mock.Mock(fullmatch=lambda _: None)):  # no folder gets it
        authority._write_crl(_revoked(ca, party), authority.CRL_DAYS)
    shutil.copy(ca / "crl.pem", ca / at / "crl.pem")


def _revoked(ca: Path, party: str) -> authority._Signer:
    authority._save_index(ca, authority._load_index(ca).with_revoked(party))
    return authority._open(ca, None)


async def fails(new_job: NewJob, *overrides: str, meanwhile: Callable[[], None] = lambda: None) -> BlindfitError:
    """Return the error of a job; `meanwhile` is called once its first epoch has begun at every party
    that counts any.
    """
    job = new_job(*overrides)
    begun: set[str] = set()

    def on_event(party: str, event: object) -> None:
        if str(event.progress.step).startswith("epoch") and party not in begun:  # type: ignore[attr-defined]
            begun.add(party)
            if len(begun) == 1:
                meanwhile()

    job.on_event = on_event
    with pytest.raises(BlindfitError) as caught:
        await job.run()
    return caught.value


def named(error: BlindfitError) -> str:
    assert isinstance(error, PeerUnauthenticated)
    assert "revoked" in error.reason
    return error.peer


@pytest.mark.parametrize(("revoked", "at"), [("bank", "shop-a"), ("shop-a", "bank"), ("notary", "shop-b")])
def test_one_party_that_has_the_list_is_enough(tmp_path: Path, revoked: str, at: str) -> None:
    async def run() -> BlindfitError:
        async with nodes_in(tmp_path) as (_, new_job):
            revoke_at(tmp_path, revoked, at)
            return await fails(new_job)

    assert named(asyncio.run(run())) == revoked


@pytest.mark.parametrize("revoked", ["bank", "shop-b", "notary", "coordinator"])
def test_a_party_that_is_revoked_in_the_middle_of_a_job(tmp_path: Path, revoked: str) -> None:
    at = "bank" if revoked != "bank" else "shop-a"

    async def run() -> BlindfitError:
        async with nodes_in(tmp_path) as (_, new_job):
            return await fails(new_job, *ENDLESS, meanwhile=lambda: revoke_at(tmp_path, revoked, at))

    assert named(asyncio.run(run())) == revoked


def test_a_list_that_cannot_be_read_in_the_middle_of_a_job_ends_no_job(tmp_path: Path) -> None:
    async def run() -> None:
        async with nodes_in(tmp_path) as (_, new_job):
            job = new_job("taylor.epochs=3")
            job.on_event = lambda _party, event: (
                (tmp_path / "ca/bank/crl.pem").write_text("half") if event.progress.step.startswith("epoch 1") else None
            )
            await job.run()

    asyncio.run(run())


async def test_a_session_in_which_nothing_is_sent_ends_too(tmp_path: Path) -> None:
    """Nobody calls: the party reads its list by itself."""
    ca = demo_authority(tmp_path)
    async with metering(ca, tmp_path) as node, connect(node, make_identity(ca, "coordinator")) as channel:
        await ControlStub(channel).Propose(proposal("monday"))
        session = node.sessions.get("monday")
        authority.revoke(ca, "coordinator")
        async with asyncio.timeout(60):
            await session.changed.until(lambda: session.state == "ENDED")
    assert isinstance(session.error, PeerUnauthenticated)
    assert session.error.peer == "coordinator"
