"""The checks of a release file: each stands alone, so that one which fails hides no other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from blindfit.algorithms.errors import BlindfitError, DataError
from blindfit.algorithms.privacy.accountant import BUDGET_SLACK, composed_epsilon
from blindfit.algorithms.privacy.charges import Charges, events_of
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import gaussian_delta
from blindfit.algorithms.privacy.ledger import LedgerEntry, Receipt
from blindfit.algorithms.protocols import walr, walr_statement
from blindfit.algorithms.protocols.walr import AggregateOpen, NoisySum
from blindfit.algorithms.protocols.walr_statement import Between
from blindfit.algorithms.statistics import fields, walr_defaults
from blindfit.algorithms.statistics.scaling import Standardiser
from blindfit.algorithms.statistics.walr_model import WALRModel
from blindfit.parties.identity import key_proof
from blindfit.parties.store.receipts import check_given
from blindfit.parties.walr import release_document
from blindfit.parties.walr.release_document import Parts, SignedReceipt
from blindfit.parties.walr.release_file import transcript_of
from blindfit.parties.walr.settings import WalrSettings

MOST_COUNTED = 10_000  # releases that are composed one by one


@dataclass(frozen=True)
class Result:
    name: str
    why: str = ""  # empty: passed


@dataclass(frozen=True)
class Verified:
    results: list[Result]
    fingerprints: dict[str, str] = field(default_factory=dict)  # SHA-256 of the certificates in the file
    model: Mapping[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not any(result.why for result in self.results)


Check = Callable[["Read"], str]
"""Returns what it found; raises BlindfitError where it fails."""


@dataclass(frozen=True)
class Read:
    """A file's parts as the checks want them; what cannot be read raises where it is asked for."""

    parts: Parts
    document: release_document.Document
    given_authority: x509.Certificate | None

    @cached_property
    def stated(self) -> tuple[AggregateOpen, NoisySum, Between]:
        return walr_statement.read(self.parts.release)

    @cached_property
    def entry(self) -> LedgerEntry:
        return walr_statement.charged(self.parts.entry, self.receipt)

    @cached_property
    def receipt(self) -> Receipt:
        return self._receipt(self.parts.receipt)

    @cached_property
    def newest(self) -> Receipt:
        return self._receipt(self.parts.newest_receipt)

    def _receipt(self, receipt: SignedReceipt) -> Receipt:
        """Whose signature is right."""
        server = self.parts.server
        return check_given(receipt.signed, server.name, server.public_key, self.stated[2].population)

    @cached_property
    def authority(self) -> x509.Certificate:
        return key_proof.read_certificate_der(bytes.fromhex(self.parts.authority), "the authority")

    @cached_property
    def settings(self) -> WalrSettings:
        try:
            return WalrSettings.model_validate(self.parts.fit.settings)
        except ValueError:
            raise DataError("its settings are not those of a walr job") from None

    @cached_property
    def model(self) -> WALRModel:
        stored = self.parts.model
        kept = Standardiser.from_dict(fields.table(stored, "standardiser")).kept_columns
        in_order = dict(zip(kept, fields.weights_by_name(stored, kept), strict=True))  # canonical JSON sorts names
        model = WALRModel.from_dict({**stored, "weights": in_order})
        if model.to_dict() != self.parts.model:
            raise DataError("the model is not written as a training writes it")
        return model


def read_bytes(path: Path) -> bytes:
    """Raises DataError: it cannot be read. Never reads more than a file may have, and a byte."""
    try:
        with path.open("rb") as file:
            return file.read(release_document.MOST_BYTES + 1)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def verify(
    encoded: bytes,
    authority: x509.Certificate | None = None,
    more: Mapping[str, Check] | None = None,
) -> Verified:
    """
    Args:
        authority: whom the auditor trusts; None: the certificate in the file.
        more: further checks, such as those of features.
    """
    try:
        document = release_document.read(encoded)
    except DataError as error:
        return Verified([Result("file: format and digests", str(error))])
    parts = document.parts
    read = Read(parts, document, authority)
    results = [Result("file: format and digests")]
    results += [_run(name, check, read) for name, check in {**CHECKS, **(more or {})}.items()]
    return Verified(results, dict(_fingerprints(parts)), parts.model)


def _run(name: str, check: Check, read: Read) -> Result:
    try:
        found = check(read)
    except BlindfitError as error:
        return Result(name, str(error))
    return Result(f"{name}: {found}" if found else name)


def _require(condition: bool, why: str) -> None:
    if not condition:
        raise DataError(why)


# --- who signed -----------------------------------------------------------------------------------------


def _fingerprints(parts: Parts) -> Iterator[tuple[str, str]]:
    encoded = (
        ("authority", parts.authority),
        (parts.server.name, parts.server.certificate),
        (parts.party.name, parts.party.certificate),
    )
    for name, certificate in encoded:
        digest = hashes.Hash(hashes.SHA256())
        digest.update(bytes.fromhex(certificate))
        yield name, digest.finalize().hex()


def _authority(read: Read) -> str:
    own = read.authority
    if read.given_authority is not None:
        _require(own == read.given_authority, "the file's authority is not the one that was given")
    key_proof.check_authority(own)
    return "the one that was given" if read.given_authority else "the file's own, which proves no name: see --authority"


def _seal(read: Read) -> str:
    read.document.check_seal()
    return ""


def _key_of(name: str, signs: str) -> Check:
    def check(read: Read) -> str:
        signer = getattr(read.parts, name)
        key_proof.check(signer.proof, signer.name, signs, signer.public_key, read.authority, read.parts.made_at)
        return str(signer.name)

    return check


def _names(read: Read) -> str:
    about, parts = read.stated[2], read.parts
    _require(about.server == parts.server.name, "the release names another server than the one that signs")
    _require(about.consumer == parts.party.name, "the release was made to another party than the one that seals")
    return f"{about.server} to {about.consumer}"


# --- what was charged -------------------------------------------------------------------------------------


def _receipt(read: Read) -> str:
    return f"entry {read.receipt.position} of the ledger"


def _newest(read: Read) -> str:
    first, last = read.receipt, read.newest
    _require(last.covers(first), "it proves fewer charges than the release's own receipt")
    _require(last.position >= first.position, "it is older than the release's own receipt")
    known = dict([(last.position, last.entry_hash), *last.landmarks])
    _require(known.get(first.position, first.entry_hash) == first.entry_hash, "it is of another ledger")
    return f"entry {last.position} of the ledger"


def _chain(read: Read) -> str:
    before = read.entry.previous_hash[:12]
    return f"entry {read.entry.position} follows {before}.." if read.entry.position > 1 else "the first entry"


def _charged(read: Read) -> str:
    walr_statement.check_entry(read.entry, *read.stated)
    charged, made = _moment(read.entry.time), read.parts.made_at
    _require(charged <= made, "the charge is later than the training")
    return f"at {read.entry.time}"


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise DataError("the time of the ledger entry is none") from None
    _require(moment.tzinfo is not None, "the time of the ledger entry has no zone")
    return moment


def _noise(read: Read) -> str:
    request, answer, _ = read.stated
    mechanism = walr.mechanism_of(request)
    _require(answer.event == mechanism.event(answer.neighbours).canonical(), "the event is not that of the parameters")
    _require(answer.sensitivity == float(request.sensitivity), "the sensitivity is not that of the norm bound")
    _require(answer.noise_std == math.sqrt(mechanism.sigma_squared), "noise_std is not that of epsilon and delta")
    delta = gaussian_delta(mechanism.noise_multiplier, request.epsilon)
    _require(delta <= request.delta * (1 + BUDGET_SLACK), "the noise is too small for epsilon and delta")
    claim = f"epsilon {request.epsilon:g}, delta {request.delta:g}"
    return f"{claim}, {answer.noise_std / request.sensitivity:.4g} times the sensitivity"


def _events(charges: Charges) -> Iterator[ReleaseEvent]:
    counts = [count for _, count in charges.counted]
    _require(all(count > 0 for count in counts), "a receipt counts no releases of an event")
    _require(sum(counts) <= MOST_COUNTED, f"a receipt counts more than {MOST_COUNTED} releases")
    for event, count in charges.counted:
        yield from [ReleaseEvent.from_canonical(event)] * count
    for law, neighbours, units in charges.sums:
        yield from events_of(law, neighbours, units)


def _count(read: Read) -> str:
    """That all charges up to the newest are within the budget, this one among them."""
    _, answer, _ = read.stated
    if not read.receipt.charges.sums:
        _require(answer.event in dict(read.receipt.charges.counted), "the receipt does not count this release")
    events = list(_events(read.newest.charges))
    _require(len(read.newest.charges.counted) <= read.newest.position, "a receipt counts more than the ledger has")
    if not read.newest.charges.sums:
        _require(len(events) <= read.newest.position, "a receipt counts more releases than the ledger has entries")
    spent = composed_epsilon(events, answer.budget_delta)
    _require(spent <= answer.budget_epsilon * (1 + BUDGET_SLACK), f"{spent:.4g} is spent, more than the budget")
    others = "at least " if read.newest.charges.sums else ""
    return f"{others}{len(events)} in all, {spent:.4g} of {answer.budget_epsilon:g} at delta {answer.budget_delta:g}"


def _policy(read: Read) -> str:
    request, answer, _ = read.stated
    _require(request.n_rows >= answer.least_rows, "fewer rows than least_rows were sent")
    _require(answer.rows_kept >= answer.least_rows, "fewer rows than least_rows counted")
    _require(request.epsilon <= answer.most_epsilon, "epsilon is more than most_epsilon")
    _require(request.delta <= answer.most_delta, "delta is more than most_delta")
    return f"least_rows {answer.least_rows}, most_epsilon {answer.most_epsilon:g}, most_delta {answer.most_delta:g}"


def _transcript(read: Read) -> str:
    _require(read.parts.transcript == transcript_of(*read.stated), "the messages are not those of this one release")
    return "one question, one answer"


# --- what was fitted --------------------------------------------------------------------------------------


def _fitted(read: Read) -> str:
    request, answer, _ = read.stated
    fit, settings, model = read.parts.fit, read.settings, read.model
    _require(len(model.standardiser.columns) + model.intercept == request.n_columns, "the model has other columns")
    _require(model.intercept == settings.intercept, "the model's intercept is not that of the settings")
    _require(model.norm_bound == request.norm_bound * 2.0**-request.frac_bits, "the model has another norm bound")
    _require(answer.rows_kept > 0 and answer.rows_scaled == 0, "the server changed rows, so nothing was fitted to them")
    of_settings = request.frac_bits if settings.frac_bits == "auto" else settings.frac_bits
    _require(of_settings == request.frac_bits, "the settings have other fraction bits than the release")
    if settings.l2 == "auto":
        _, noise_std = walr.step_6_mean(answer, request)
        l2 = walr_defaults.default_l2(noise_std, model.norm_bound, len(model.weights), request.epsilon)
    else:
        l2 = settings.l2
    _require(fit.l2 == l2, "l2 is not that of the settings and the noise")
    _require(fit.init is None or len(fit.init) == len(model.weights), "the start has other columns than the model")
    return f"{len(model.weights)} weights, l2 {fit.l2:.4g}, {fit.solver}"


CHECKS: dict[str, Check] = {
    "authority": _authority,
    "signature of the seal": _seal,
    "key of the sealing party": _key_of("party", key_proof.RELEASES),
    "key of the measurement server": _key_of("server", key_proof.RECEIPTS),
    "names": _names,
    "signature of the receipt": _receipt,
    "signature of the newest receipt": _newest,
    "ledger chain": _chain,
    "charge is of this release": _charged,
    "noise covers the claim": _noise,
    "releases to the population": _count,
    "policy": _policy,
    "transcript": _transcript,
    "model and fit": _fitted,
}
