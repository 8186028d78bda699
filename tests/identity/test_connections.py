"""Real servers and channels on loopback: who gets in, who does not, and the message for each."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from grpc_health.v1 import health_pb2, health_pb2_grpc

from blindfit.algorithms.errors import BlindfitError, ConfigError, PeerUnauthenticated, PeerUnreachable
from blindfit.parties.files.private_files import read_certificate
from blindfit.parties.identity import authority, probing, revocation
from blindfit.parties.identity import connections as module
from blindfit.parties.identity import identity as identity_module
from blindfit.parties.identity.authority import PartyFiles, issue, renew, revoke
from blindfit.parties.identity.connections import caller, channel, open_channel, server_credentials
from blindfit.parties.identity.identity import Identity, current, load_identity
from blindfit.parties.identity.probing import probe
from blindfit.parties.wire.limits import Limits, channel_options, server_options
from tests.certificates import NothingRevoked, demo_authority, load, make_identity
from tests.hints.following import refused

TIMEOUT_S = 20.0
LIMITS = Limits(connect_timeout_s=TIMEOUT_S)


class Health(health_pb2_grpc.HealthServicer):
    """Answers peers that `caller` lets in, and gives the others the reason."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.callers: list[str] = []

    async def Check(  # noqa: N802  # gRPC's name
        self, request: health_pb2.HealthCheckRequest, context: grpc.aio.ServicerContext
    ) -> health_pb2.HealthCheckResponse:
        try:
            self.callers.append(caller(context, self.identity))
        except BlindfitError as error:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
        return health_pb2.HealthCheckResponse(status="SERVING")


@contextlib.asynccontextmanager
async def serving(identity: Identity) -> AsyncIterator[tuple[str, Health]]:
    server = grpc.aio.server(options=server_options(LIMITS))
    health = Health(identity)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port = server.add_secure_port("127.0.0.1:0", server_credentials(identity))
    await server.start()
    try:
        yield f"127.0.0.1:{port}", health
    finally:
        await server.stop(None)


async def check(over: grpc.aio.Channel) -> None:
    async with over:
        await health_pb2_grpc.HealthStub(over).Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)


async def call(identity: Identity, peer: str, address: str) -> None:
    await check(await open_channel(identity, peer, address, LIMITS))


async def refusal(identity: Identity, peer: str, address: str) -> str:
    with pytest.raises(PeerUnauthenticated) as caught:
        await call(identity, peer, address)
    assert caught.value.peer == peer
    return caught.value.reason


async def status(calling: object) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await calling
    return caught.value


def unchecked(files: PartyFiles, identity: Identity) -> Identity:
    """Return an identity whose certificate `load_identity` would refuse, as a careless peer would show it."""
    return replace(
        identity,
        files=replace(files, revoked=None),
        certificate_pem=files.certificate.read_bytes(),
        key_pem=files.key.read_bytes(),
        stamps=identity_module._stamps(files),
        revoked=NothingRevoked(),
    )


@pytest.fixture
def alice(folder: Path) -> Identity:
    return make_identity(folder, "alice")


@pytest.fixture
def bob(folder: Path) -> Identity:
    return make_identity(folder, "bob")


@pytest.fixture
def expired(folder: Path, bob: Identity) -> Identity:
    files = issue(folder, "late", days=5, starts=datetime.now(UTC) - timedelta(days=10))
    return unchecked(files, replace(bob, name="late"))


@pytest.fixture
def stranger(tmp_path: Path) -> Identity:
    return make_identity(demo_authority(tmp_path / "elsewhere"), "bob")


# --- who gets in --------------------------------------------------------------------------------------


async def test_both_sides_know_each_others_name(alice: Identity, bob: Identity) -> None:
    async with serving(alice) as (address, health):
        await call(bob, "alice", address)
        await call(alice, "alice", address)
    assert health.callers == ["bob", "alice"]


@pytest.mark.parametrize("name", ["a-", "a--b", "xn--a", "a" * 63])
async def test_odd_names_work(folder: Path, bob: Identity, name: str) -> None:
    async with serving(make_identity(folder, name)) as (address, health):
        await call(bob, name, address)
    assert health.callers == ["bob"]


async def test_a_key_under_a_passphrase_works_on_both_sides(folder: Path, bob: Identity) -> None:
    secret = b"correct horse battery staple"
    files = issue(folder, "carol", key_passphrase=secret)
    carol = load_identity(files.certificate, files.key, files.authority, files.revoked, secret)
    async with serving(carol) as (address, health):
        await call(carol, "carol", address)
    assert health.callers == ["carol"]


# --- clients that do not ------------------------------------------------------------------------------


async def test_a_client_of_another_authority_is_told_so(alice: Identity, bob: Identity, stranger: Identity) -> None:
    async with serving(alice) as (address, health):
        assert await refusal(stranger, "alice", address) == "its certificate comes from another authority"
        trusting = replace(stranger, authority_pem=bob.authority_pem, revoked=NothingRevoked())
        assert (await refusal(trusting, "alice", address)).startswith("it refused our certificate")
        raw = channel(trusting, "alice", address, alice.certificate_pem, channel_options(LIMITS))
        assert (await status(check(raw))).code() is grpc.StatusCode.UNAVAILABLE
    assert health.callers == []


async def test_an_expired_client_is_told_so(alice: Identity, expired: Identity) -> None:
    async with serving(alice) as (address, health):
        reason = f"(is {expired.files.certificate} of the same authority, and not expired?)"
        assert (await refusal(expired, "alice", address)).endswith(reason)
    assert health.callers == []


async def test_a_revoked_client_is_refused_even_on_a_connection_it_had(
    folder: Path, alice: Identity, bob: Identity
) -> None:
    async with (
        serving(alice) as (address, health),
        await open_channel(bob, "alice", address, LIMITS) as open_,
    ):
        stub = health_pb2_grpc.HealthStub(open_)
        await stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
        revoke(folder, "bob")
        for calling in (
            stub.Check(health_pb2.HealthCheckRequest()),
            call(replace(bob, revoked=NothingRevoked()), "alice", address),
        ):
            error = await status(calling)
            assert error.code() is grpc.StatusCode.UNAUTHENTICATED
            assert error.details() == "the connection with bob is not authenticated: its certificate was revoked"
    assert health.callers == ["bob"]


async def test_plaintext_and_nameless_clients_get_nowhere(alice: Identity) -> None:
    async with serving(alice) as (address, health):
        plain = grpc.aio.insecure_channel(address)
        assert (await status(check(plain))).code() is grpc.StatusCode.UNAVAILABLE
        nameless = grpc.aio.secure_channel(
            address,
            grpc.ssl_channel_credentials(alice.authority_pem),
            [("grpc.ssl_target_name_override", "alice")],
        )
        assert (await status(check(nameless))).code() is grpc.StatusCode.UNAVAILABLE
    assert health.callers == []


def test_a_caller_without_a_usable_certificate(
    folder: Path, alice: Identity, expired: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reason(pem: bytes | None) -> str:
        with pytest.raises(PeerUnauthenticated) as caught:
            caller({"x509_pem_cert": [pem]} if pem else {}, alice)
        return str(caught.value)

    prefix = "the connection with {} is not authenticated: {}"
    assert reason(None) == prefix.format("a caller", "it showed no certificate")
    assert reason(alice.authority_pem) == prefix.format("a caller", "its certificate names no party")
    assert reason(expired.certificate_pem) == prefix.format("late", "its certificate has expired")
    (folder / "alice" / "crl.pem").unlink()
    with pytest.raises(ConfigError, match=r"alice/crl\.pem cannot be read"):
        caller({"x509_pem_cert": [alice.certificate_pem]}, alice)


# --- servers that are not the peer --------------------------------------------------------------------


async def test_a_server_of_another_authority(bob: Identity, stranger: Identity) -> None:
    async with serving(stranger) as (address, _):
        assert await refusal(bob, "bob", address) == "its certificate comes from another authority"


async def test_an_expired_server(bob: Identity, expired: Identity) -> None:
    async with serving(expired) as (address, _):
        assert await refusal(bob, "late", address) == "its certificate has expired"


async def test_a_server_that_is_not_valid_yet(folder: Path, bob: Identity) -> None:
    files = issue(folder, "early", days=1, starts=datetime.now(UTC) + timedelta(hours=5))
    async with serving(unchecked(files, bob)) as (address, _):
        assert await refusal(bob, "early", address) == "its certificate is not valid yet (is a clock wrong?)"


async def test_a_revoked_server(folder: Path, alice: Identity, bob: Identity) -> None:
    async with serving(alice) as (address, health):
        revoke(folder, "alice")
        assert await refusal(bob, "alice", address) == "its certificate was revoked"
    assert health.callers == []


async def test_another_partys_server_even_if_its_certificate_lists_the_name_as_a_host(
    folder: Path, bob: Identity
) -> None:
    async with serving(load(issue(folder, "carol", ["alice"]))) as (address, health):
        assert await refusal(bob, "alice", address) == "the party that answers there is carol"
    assert health.callers == []


async def test_our_own_expired_revocation_list_lets_nobody_in(
    alice: Identity, bob: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(alice) as (address, _):
        monkeypatch.setattr(bob.revoked, "_check_fresh", lambda: (_ for _ in ()).throw(ConfigError("crl expired")))
        with pytest.raises(ConfigError, match="crl expired"):
            await call(bob, "alice", address)


async def test_a_server_swapped_after_the_probe_is_refused(folder: Path, bob: Identity) -> None:
    first = load(issue(folder, "alice"))
    async with serving(first) as (address, health):
        leaf = await asyncio.to_thread(probe, bob, "alice", address, TIMEOUT_S)
        assert leaf == first.certificate_pem
        renew(folder, "alice")  # a valid certificate of the same party, but not the one that was checked
        error = await status(check(channel(bob, "alice", address, leaf, channel_options(LIMITS))))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert "CERTIFICATE_VERIFY_FAILED" in error.details()
        assert health.callers == []
        await call(bob, "alice", address)
    assert health.callers == ["bob"]


# --- renewal ------------------------------------------------------------------------------------------


async def test_a_renewed_certificate_is_served_without_a_restart(folder: Path, bob: Identity) -> None:
    files = issue(folder, "alice", days=1)
    async with serving(load(files)) as (address, health):
        serials = []
        for _ in range(3):
            leaf = await asyncio.to_thread(probe, bob, "alice", address, TIMEOUT_S)
            assert leaf == files.certificate.read_bytes()
            serials.append(read_certificate(files.certificate).serial_number)
            await call(bob, "alice", address)
            renew(folder, "alice", days=1)
        files.certificate.write_bytes(b"half a cert")  # not accepted: the last good one still serves
        await call(bob, "alice", address)
    assert len(set(serials)) == 3
    assert health.callers == ["bob"] * 4


class Recorder:
    """Stand-in for the revocation list, which records the certificates that were shown."""

    def __init__(self) -> None:
        self.serials: list[int] = []

    def has(self, certificate: x509.Certificate) -> bool:
        self.serials.append(certificate.serial_number)
        return False


async def test_a_client_takes_its_own_renewed_certificate(folder: Path, alice: Identity) -> None:
    carol, recorder = load(issue(folder, "carol")), Recorder()
    async with serving(replace(alice, revoked=recorder)) as (address, _):
        await call(carol, "alice", address)
        renew(folder, "carol")
        await call(carol, "alice", address)
    first = x509.load_pem_x509_certificate(carol.certificate_pem).serial_number
    assert recorder.serials == [first, read_certificate(carol.files.certificate).serial_number]


@pytest.mark.parametrize("told_apart_by", ["all of an identity", "its name"])
def test_a_renewed_certificate_is_shown_at_the_first_handshake_too(
    folder: Path, alice: Identity, monkeypatch: pytest.MonkeyPatch, told_apart_by: str
) -> None:
    """Nothing is kept of an identity beyond the next handshake; a name by itself would be kept."""
    shown: list[int] = []

    def greet(tls: ssl.SSLSocket) -> None:
        shown.append(x509.load_der_x509_certificate(tls.getpeercert(binary_form=True) or b"").serial_number)
        tls.send(b" ")

    if told_apart_by == "its name":
        kept: dict[str, ssl.SSLContext] = {}
        make = probing._client_context
        monkeypatch.setattr(probing, "_client_context", lambda own: kept.setdefault(own.name, make(own)))
    dave = load(issue(folder, "dave"))
    with listening(tls_answer(alice, ["h2"], greet, verify_mode=ssl.CERT_REQUIRED)) as address:
        for _ in range(2):
            probe(current(dave), "alice", address, TIMEOUT_S)
        renew(folder, "dave")
        probe(current(dave), "alice", address, TIMEOUT_S)
    first = x509.load_pem_x509_certificate(dave.certificate_pem).serial_number
    renewed = read_certificate(dave.files.certificate).serial_number
    assert shown == [first, first, renewed if told_apart_by == "all of an identity" else first]


# --- nobody there, or nobody who speaks our language ----------------------------------------------------


@contextlib.contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yield a TCP server that calls `answer` for every connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def tls_answer(
    identity: Identity,
    protocols: list[str],
    then: Callable[[ssl.SSLSocket], object] = lambda tls: tls.recv(1),
    **settings: object,
) -> Callable[[socket.socket], None]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.files.certificate, identity.files.key)
    context.load_verify_locations(cadata=identity.authority_pem.decode())
    for name, value in settings.items():
        setattr(context, name, value)
    if protocols:
        context.set_alpn_protocols(protocols)

    def answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as tls:
            then(tls)

    return answer


def unreachable(identity: Identity, address: str, timeout_s: float = TIMEOUT_S) -> str:
    with pytest.raises(PeerUnreachable) as caught:
        probe(identity, "alice", address, timeout_s)
    assert caught.value.step == "connect"
    assert caught.value.hint.startswith("start `blindfit party` at alice")
    return caught.value.message.removeprefix(f"cannot reach alice at {address} at step connect: ")
    assert caught.value.hint.startswith("start `blindfit party` at alice")
    return str(caught.value).removeprefix(f"cannot reach alice at {address} at step connect: ")


def unauthenticated(identity: Identity, address: str) -> str:
    with pytest.raises(PeerUnauthenticated) as caught:
        probe(identity, "alice", address, TIMEOUT_S)
    return caught.value.reason


async def test_nobody_listens(alice: Identity, bob: Identity) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with refused("start `blindfit party` at {}, and let this machine connect to {}") as told:
        await call(bob, "alice", f"127.0.0.1:{port}")
    assert "step connect: Connection refused" in told.text
    async with serving(alice) as (address, _):
        await call(bob, "alice", address)


def test_no_such_host(bob: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert unreachable(bob, "nowhere.invalid:443") == "Name or service not known"


async def test_a_resolver_that_hangs_does_not_hang_us(bob: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(module, "probe", lambda *_: release.wait(10))
    with pytest.raises(PeerUnreachable, match=r"no answer in 0\.1 s( \(|$)"):
        await open_channel(bob, "alice", "a:1", Limits(connect_timeout_s=0.1))
    release.set()


def test_silence(bob: Identity) -> None:
    def read_until_hung_up(connection: socket.socket) -> None:
        while connection.recv(4096):
            pass

    with listening(read_until_hung_up) as address:
        assert unreachable(bob, address, timeout_s=0.3) == "no answer in 0.3 s"


def test_a_hang_up_in_the_handshake(bob: Identity) -> None:
    with listening(lambda connection: connection.recv(4096) and None) as address:
        assert unreachable(bob, address) == probing.HUNG_UP


def test_a_server_without_tls(bob: Identity) -> None:
    with listening(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as address:
        assert unauthenticated(bob, address) == "the process that answers there does not speak TLS"


async def test_a_grpc_server_without_tls(bob: Identity) -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    with pytest.raises(PeerUnauthenticated, match=r"the process that answers there does not speak TLS$"):
        await call(bob, "alice", f"127.0.0.1:{port}")
    await server.stop(None)


def test_an_alert_that_is_not_about_our_certificate(bob: Identity) -> None:
    no_cipher_in_common = b"\x15\x03\x03\x00\x02\x02\x28"
    with listening(lambda connection: connection.sendall(no_cipher_in_common)) as address:
        assert unauthenticated(bob, address) == "the handshake failed: handshake failure"


def test_a_server_of_our_authority_that_names_no_party(
    folder: Path, alice: Identity, bob: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = x509.SubjectAlternativeName([x509.DNSName("alice.example.org")])
    monkeypatch.setattr(authority, "_alternative_names", lambda *_: names)
    nameless = unchecked(issue(folder, "nameless", days=1), alice)
    with listening(tls_answer(nameless, ["h2"])) as address:
        assert unauthenticated(bob, address) == "its certificate names no party"


def test_a_reset_after_the_handshake_is_a_refusal(
    alice: Identity, bob: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "LOOK_AGAIN_S", (0.0, 0.0, 0.0))

    def reset(tls: ssl.SSLSocket) -> None:
        tls.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with listening(tls_answer(alice, ["h2"], reset, minimum_version=ssl.TLSVersion.TLSv1_3)) as address:
        assert unauthenticated(bob, address).startswith(
            "it refused our certificate: it closed the connection after the handshake"
        )


def test_no_time_is_left(bob: Identity) -> None:
    with listening(lambda _: None) as address:
        assert unreachable(bob, address, timeout_s=0) == "no answer in 0 s"


def test_a_tls_server_that_is_not_grpc(alice: Identity, bob: Identity) -> None:
    with listening(tls_answer(alice, [])) as address:
        assert unreachable(bob, address) == "the process that answers there is not a gRPC server"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_alert_about_our_certificate_is_told(
    alice: Identity, bob: Identity, expired: Identity, stranger: Identity, version: ssl.TLSVersion
) -> None:
    trusting = replace(stranger, authority_pem=bob.authority_pem)
    answer = tls_answer(alice, ["h2"], verify_mode=ssl.CERT_REQUIRED, minimum_version=version, maximum_version=version)
    with listening(answer) as address:
        assert unauthenticated(expired, address) == "it refused our certificate: certificate expired"
        assert unauthenticated(trusting, address) == "it refused our certificate: unknown ca"


def test_a_server_that_goes_down_is_unreachable_not_unauthenticated(alice: Identity, bob: Identity) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(alice.files.certificate, alice.files.key)
    context.set_alpn_protocols(["h2"])
    connections = []

    def die_after_the_first_handshake(connection: socket.socket) -> None:
        connections.append(connection)
        if len(connections) == 1:
            context.wrap_socket(connection, server_side=True).close()

    with listening(die_after_the_first_handshake) as address:
        assert unreachable(bob, address) == probing.HUNG_UP
    assert len(connections) == len(revocation.LOOK_AGAIN_S)


def test_our_own_files_that_no_longer_fit_are_our_error(folder: Path, bob: Identity, alice: Identity) -> None:
    bob.files.key.write_bytes(alice.files.key.read_bytes())
    with (
        listening(tls_answer(alice, ["h2"])) as address,
        pytest.raises(ConfigError, match=r"key\.pem do not load"),
    ):
        probe(bob, "alice", address, TIMEOUT_S)
