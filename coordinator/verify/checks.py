"""The checks of a release file, one by one, so that a failure hides no other failure.

There are checks of the file, of each measurement server, and of all servers together. The last kind is left out if the
servers' answers do not belong together, because it has no meaning then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from blindfit.algorithms.errors import BlindfitError, DataError
from blindfit.algorithms.privacy.gaussian import gaussian_epsilon
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import (
    encrypted_rows,
    several_parties,
    shared_rows,
    two_servers,
)
from blindfit.algorithms.protocols.walr.grid import Grid
from blindfit.coordinator.verify.inputs import INPUTS
from blindfit.coordinator.verify.read import Read, require
from blindfit.coordinator.verify.results import NotCovered, Result, Verified
from blindfit.coordinator.verify.server_checks import SERVER_CHECKS, check_role
from blindfit.parties.identity import key_proof
from blindfit.parties.measurement.trust import ASK_TWO_SERVERS, ENCRYPTED_ROWS, SHARED_ROWS, TRUSTED
from blindfit.parties.walr import release_document
from blindfit.parties.walr.fit import l2_of
from blindfit.parties.walr.holders import walr_part
from blindfit.parties.walr.release_document import Document, Parts
from blindfit.parties.walr.release_file import transcript_of

T = TypeVar("T")


Check = Callable[[Read], str | NotCovered]
"""Function that returns what it found, or what the file does not show; raises BlindfitError for a failure."""
More = Callable[[Read], Mapping[str, Check]]


def verify(
    encoded: bytes,
    authority: x509.Certificate | None = None,
    more: More | None = None,
    *,
    servers: Sequence[str] = (),
    starts: Sequence[bytes] = (),
) -> Verified:
    """Check a release file.

    Args:
        authority: certificate that the auditor trusts; None takes the certificate in the file.
        more: additional checks, such as those of features.
        servers: measurement servers that the auditor expects; empty takes the servers in the file.
        starts: release files of earlier trainings, one of which may have made the start of this training.
    """
    try:
        document = release_document.read(encoded)
    except DataError as error:
        return Verified([Result("file: format and digests", error.message)])
    return _check_document(document, authority, more, tuple(servers), tuple(starts))[1]


def _check_document(
    document: Document,
    authority: x509.Certificate | None,
    more: More | None,
    servers: tuple[str, ...],
    starts: tuple[bytes, ...],
) -> tuple[Read, Verified]:
    def of_start(encoded: bytes) -> tuple[Read, Verified]:
        """Check an earlier file. The same features fit its model again if it has the same rows."""
        earlier = release_document.read(encoded)
        first = Read(earlier.parts, earlier)
        again = more if first.request.content_sha256 == read.request.content_sha256 else None
        others = tuple(other for other in starts if other != encoded)  # so that a chain of starts ends
        return _check_document(earlier, authority, again, servers, others)

    parts = document.parts
    read = Read(parts, document, authority, servers, starts, is_refitted=more is not None, of_start=of_start)
    results = [Result("file: format and digests"), *_run_all(CHECKS, read)]
    for server in read.servers:
        results += _run_all(SERVER_CHECKS, server, f"{server.name}: ")
    belong = _run_all(BELONGING, read)
    results += belong
    if not any(result.why for result in belong):
        results += _run_all({**TOGETHER, **INPUTS, **(more(read) if more else {})}, read)
    encrypted = tuple(server.name for server in read.servers if server.part.encrypted)
    return read, Verified(results, dict(_fingerprints(parts)), parts.model, encrypted)


def _run_all(checks: Mapping[str, Callable[[T], str | NotCovered]], read: T, of: str = "") -> list[Result]:
    return [_run(f"{of}{name}", check, read) for name, check in checks.items()]


def _run(name: str, check: Callable[[T], str | NotCovered], read: T) -> Result:
    try:
        found = check(read)
    except BlindfitError as error:
        return Result(name, error.message)
    if isinstance(found, NotCovered):
        return Result(name, not_covered=found.what)
    return Result(f"{name}: {found}" if found else name)


# --- signatures -- -----------------------------------------------------------------------------------------


def _fingerprints(parts: Parts) -> Iterator[tuple[str, str]]:
    signers = (*(server.signer for server in parts.servers), parts.party)
    for name, certificate in (("authority", parts.authority), *((s.name, s.certificate) for s in signers)):
        digest = hashes.Hash(hashes.SHA256())
        digest.update(bytes.fromhex(certificate))
        yield name, digest.finalize().hex()


def _authority(read: Read) -> str | NotCovered:
    own = read.authority
    if read.given_authority is not None:
        require(own == read.given_authority, "the file's authority is not the given one")
    key_proof.check_authority(own)
    if read.given_authority is None:
        return NotCovered(
            "signatures are checked against the file's own authority, which proves no name: give yours by --authority"
        )
    return "the given authority"


def _server_names(read: Read) -> str | NotCovered:
    if not read.given_servers:
        return NotCovered(f"{read.names} signs: name the server that you expect by --server NAME")
    given, signers = " and ".join(sorted(read.given_servers)), sorted(server.name for server in read.servers)
    require(signers == sorted(read.given_servers), f"{' and '.join(signers)} signs, and not {given}")
    return f"{given}, as you expect"


def _seal(read: Read) -> str:
    read.document.check_seal()
    return ""


def _key(read: Read) -> str:
    party = read.parts.party
    key_proof.check(party.proof, party.name, key_proof.RELEASES, party.public_key, read.authority, read.parts.made_at)
    return party.name


def _role(read: Read) -> str | NotCovered:
    return check_role(read.parts.party, "active")


# --- the servers' answers belong together -- ---------------------------------------------------------


def _servers(read: Read) -> str:
    trust, signers = read.settings.trust, [server.part.signer for server in read.servers]
    wanted = two_servers.SERVERS if trust in ASK_TWO_SERVERS else 1
    require(len(signers) == wanted, f'walr.trust = "{trust}" needs {wanted} servers, and the file has {len(signers)}')
    require(len({signer.name for signer in signers}) == wanted, f"{signers[0].name} occurs twice")
    require(len({signer.key for signer in signers}) == wanted, "both sign with one key")
    for server in read.servers:
        request, name = server.request, server.name
        require(not request.blocks or trust == TRUSTED, f"{name} released a sum of several parties' columns")
        has_own_bound = read.parts.sum.own_norm_bound is not None
        require(
            has_own_bound == bool(request.blocks),
            "own_norm_bound goes only with columns of several parties, and always",
        )
        is_asked = (bool(request.in_shares), bool(request.key)) == (trust == SHARED_ROWS, trust == ENCRYPTED_ROWS)
        require(is_asked, f'{name} got another request than walr.trust = "{trust}" makes')
    return f'{read.names}, walr.trust = "{trust}"'


def _question(read: Read) -> str:
    """Check that all servers got one request of one draw: its name follows from its content and from the draw."""
    for server in read.servers:
        other = two_servers.find_difference(read.request, server.request)
        require(not other, f"{read.names} answered different requests: {other} differs")
    for server in read.servers:
        own = read.own if server.request.blocks else server.request
        name = walr.step_1_name(own, read.parts.sum.draw)
        name = several_parties.step_4_name(name, server.request.blocks) if server.request.blocks else name
        name = shared_rows.step_1_name(name) if server.request.in_shares else name
        name = encrypted_rows.step_1_name(name, server.request.key) if server.request.key else name
        require(
            server.request.request_id == name, f"{server.name} answered another request, or a request of another draw"
        )
    return "the same at both servers" if len(read.servers) > 1 else "its name follows from its content"


# --- all servers together -- --------------------------------------------------------------------


def _sum(read: Read) -> str:
    stated, answer, opening = read.parts.sum, read.answer, read.servers[0].opening
    if opening is not None:
        consumer = read.servers[0].about.consumer
        encrypted_rows.step_6_check_opening(opening, stated.sums, read.request, server=read.names, consumer=consumer)
    require(stated.sums == answer.sums.tolist(), f"it is not what {read.names} answered")
    require(
        not read.request.blocks or len(stated.sums) == read.own.n_columns, "it does not have one number for each column"
    )
    require(stated.noise_std == answer.noise_std, f"its noise is not that of {read.names}")
    found = "both answers modulo 2^61 - 1" if len(read.servers) > 1 else "the answer"
    whose = f", only of {read.parts.party.name}'s columns" if read.request.blocks else ""
    return f"{len(stated.sums)} numbers{whose}, {found if opening is None else 'as the signed ciphertexts hold them'}"


def _epsilon(read: Read) -> str:
    """Return the epsilon against each attacker."""
    request, stated, consumer = read.request, read.parts.sum, read.parts.party.name
    if len(read.servers) == 1:
        require(stated.epsilon_of_both is None, "epsilon_of_both needs two servers")
        unchecked = ", if its rows were as short as it states, which no server could check" if request.key else ""
        everyone = f"{' and '.join(read.holders)} together" if request.blocks else consumer
        return f"{request.epsilon:g} against {everyone}{unchecked}"
    of_noise = gaussian_epsilon(read.answer.noise_std / read.answer.sensitivity, request.delta)
    if stated.epsilon_of_both is None or not math.isclose(stated.epsilon_of_both, of_noise, rel_tol=1e-6, abs_tol=1e-9):
        raise DataError("epsilon_of_both does not follow from both servers' noise")
    return f"{request.epsilon:g} against {consumer} with one server, {of_noise:.4g} against only {consumer}"


def _transcript(read: Read) -> str:
    expected = [message for server in read.servers for message in transcript_of(*server.stated)]
    require(read.parts.transcript == expected, "the messages are not those of this release")
    return "one request, one answer" + (" at each server" if len(read.servers) > 1 else "")


def _check_model(read: Read) -> str:
    return _part(read) if read.request.blocks else _whole(read)


def _whole(read: Read) -> str:
    request = read.request
    fit, settings, model = read.parts.fit, read.settings, read.model
    require(len(model.standardiser.columns) + model.intercept == request.n_columns, "the model has other columns")
    require(model.intercept == settings.intercept, "the model's intercept differs from the settings")
    require(model.norm_bound == request.norm_bound * 2.0**-request.frac_bits, "the model has another norm bound")
    _check_fit(read, len(model.weights))
    has_start_of_model = fit.init is None or len(fit.init.weights) == len(model.weights)
    require(has_start_of_model, "the start has other columns than the model")
    require(fit.batches_seed is not None, "the seed of the fit is missing")
    return f"{len(model.weights)} weights, l2 {fit.l2:.4g}, {fit.solver}"


def _part(read: Read) -> str:
    """Check the active party's part of a model whose columns several parties hold."""
    fit, part, own, name = read.parts.fit, read.part, read.own, read.parts.party.name
    require(part.party == name and part.data_parties == read.holders, "the part of the model names other parties")
    require(read.sent.width == own.n_columns, "the part of the model has other columns")
    has_intercept = part.intercept is not None
    require(has_intercept == read.settings.intercept, "the model's intercept differs from the settings")
    grid = Grid(own.frac_bits, own.norm_bound)
    made = walr_part(name, read.holders, part.standardiser, part.weights, part.intercept, grid)
    require(part.to_dict() == made.to_dict(), "the part of the model is not as a WALR training makes it")
    require(fit.batches_seed is None and fit.init is None, "the server fitted the model, but the file describes a fit")
    _check_fit(read, read.request.n_columns)
    return f"{len(part.weights)} weights of {name}'s columns, l2 {fit.l2:.4g}, {fit.solver}"


def _check_fit(read: Read, n_features: int) -> None:
    request, answer, settings = read.request, read.answer, read.settings
    require(answer.rows_kept > 0 and answer.rows_scaled == 0, "the server changed rows, so nothing was fitted to them")
    of_settings = request.frac_bits if settings.frac_bits == "auto" else settings.frac_bits
    require(of_settings == request.frac_bits, "the settings have other fraction bits than the release")
    l2 = l2_of(settings, answer, request, n_features)
    require(read.parts.fit.l2 == l2, "l2 does not follow from the settings and the noise")


CHECKS: dict[str, Check] = {
    "authority": _authority,
    "signature of the seal": _seal,
    "key of the sealing party": _key,
    "role of the sealing party": _role,
    "names of the measurement servers": _server_names,
}
BELONGING: dict[str, Check] = {
    "servers": _servers,
    "question": _question,
}
TOGETHER: dict[str, Check] = {
    "noisy sum": _sum,
    "epsilon": _epsilon,
    "transcript": _transcript,
    "model and fit": _check_model,
}
