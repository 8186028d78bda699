"""The checks of one measurement server: its request, its charge and its answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import datetime

import numpy as np

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.privacy.accountant import BUDGET_SLACK, spent_epsilon
from blindfit.algorithms.privacy.charges import Charges, events_of
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import NOISE_REACH, gaussian_delta
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import statement, two_servers
from blindfit.coordinator.verify.read import ReadServer, require
from blindfit.coordinator.verify.results import NotCovered
from blindfit.parties.identity import key_proof
from blindfit.parties.identity.authority import role_of
from blindfit.parties.measurement.trust import ASK_TWO_SERVERS
from blindfit.parties.walr.release_document import Signer

MOST_COUNTED = 10_000  # releases that are composed one by one

ServerCheck = Callable[[ReadServer], str | NotCovered]
"""Function that returns what it found, or what the file does not show; raises BlindfitError for a failure."""


def check_role(signer: Signer, wanted: str) -> str | NotCovered:
    """Check the role in a signer's certificate.

    Raises:
        DataError: the certificate carries another role.
    """
    role = role_of(key_proof.read_certificate_der(signer.proof.certificate, signer.name))
    if role is None:
        return NotCovered(
            f"the certificate of {signer.name} carries no role, so any party of the authority could have signed: "
            f"`blindfit certs issue --role {wanted}` writes one"
        )
    require(role == wanted, f"the certificate of {signer.name} carries the role {role}, and not {wanted}")
    return role


def _role(server: ReadServer) -> str | NotCovered:
    return check_role(server.part.signer, "measurement")


def _key(server: ReadServer) -> str:
    signer, whole = server.part.signer, server.of
    key_proof.check(
        signer.proof, signer.name, key_proof.RECEIPTS, signer.public_key, whole.authority, whole.parts.made_at
    )
    return ""


def _names(server: ReadServer) -> str:
    about, party = server.about, server.of.parts.party.name
    require(about.server == server.name, "the release names another server than the signer")
    require(about.consumer == party, "the release was made to another party than the sealing party")
    require(server.name != party, f"{party} signs as its own measurement server: no other party counted or drew noise")
    return f"{about.server} to {about.consumer}"


def _receipt(server: ReadServer) -> str:
    return f"entry {server.receipt.position} of the ledger"


def _newest(server: ReadServer) -> str:
    first, last = server.receipt, server.newest
    require(last.covers(first), "it proves fewer charges than the release's own receipt")
    require(last.position >= first.position, "it is older than the release's own receipt")
    known = dict([(last.position, last.entry_hash), *last.landmarks])
    require(known.get(first.position, first.entry_hash) == first.entry_hash, "it belongs to another ledger")
    return f"entry {last.position} of the ledger"


def _chain(server: ReadServer) -> str:
    before = server.entry.previous_hash[:12]
    return f"entry {server.entry.position} follows {before}.." if server.entry.position > 1 else "the first entry"


def _check_charge(server: ReadServer) -> str:
    statement.check_entry(server.entry, *server.stated)
    charged, made = _moment(server.entry.time), server.of.parts.made_at
    require(charged <= made, "the charge is later than the training")
    return f"at {server.entry.time}"


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise DataError("the time of the ledger entry is not a valid time") from None
    require(moment.tzinfo is not None, "the time of the ledger entry has no zone")
    return moment


def _noise(server: ReadServer) -> str:
    request, answer = server.request, server.answer
    mechanism = walr.mechanism_of(request)
    require(
        answer.event == mechanism.event(answer.neighbours).canonical(), "the event does not follow from the parameters"
    )
    require(answer.sensitivity == float(request.sensitivity), "the sensitivity does not follow from the norm bound")
    require(answer.noise_std == math.sqrt(mechanism.sigma_squared), "noise_std does not follow from epsilon and delta")
    delta = gaussian_delta(mechanism.noise_multiplier, request.epsilon)
    require(delta <= request.delta * (1 + BUDGET_SLACK), "the noise is too small for epsilon and delta")
    claim = f"epsilon {request.epsilon:g}, delta {request.delta:g}"
    return f"{claim}, {answer.noise_std / request.sensitivity:.4g} times the sensitivity"


def _range(server: ReadServer) -> str:
    """Check that labels can give the sum. A share of a sum is any number of the field; a sum of labels is not."""
    request, answer = server.request, server.answer
    if server.of.settings.trust in ASK_TWO_SERVERS:
        two_servers.step_2_check(request, consumer=server.about.consumer)
        two_servers.step_6_check(answer, request, server=server.name)
        return "numbers modulo 2^61 - 1"
    sums = server.of.opened if request.key else answer.sums
    reach = request.n_rows * request.norm_bound + NOISE_REACH * answer.noise_std
    require(float(np.abs(sums.astype(np.float64)).max(initial=0.0)) <= reach, "no labels give this sum")
    return "a sum that labels can give"


def _events(charges: Charges) -> Iterator[ReleaseEvent]:
    counted = sum(count for _, count in charges.counted)
    require(counted <= MOST_COUNTED, f"a receipt counts more than {MOST_COUNTED} releases")
    for event, count in charges.counted:
        release = ReleaseEvent.from_canonical(event)
        require(release.sampling is None, "a receipt counts releases of samples, which no measurement server makes")
        yield from [release] * count
    for law, neighbours, units in charges.sums:
        yield from events_of(law, neighbours, units)


def _count(server: ReadServer) -> str:
    """Check that all charges up to the newest, with this one, are within the budget."""
    answer, newest = server.answer, server.newest
    if not server.receipt.charges.sums:
        require(answer.event in dict(server.receipt.charges.counted), "the receipt does not count this release")
    events = list(_events(newest.charges))
    spent = spent_epsilon(events, answer.budget_delta)
    require(spent <= answer.budget_epsilon * (1 + BUDGET_SLACK), f"{spent:.4g} is spent, which exceeds the budget")
    others = "at least " if newest.charges.sums else ""
    return f"{others}{len(events)} in all, {spent:.4g} of {answer.budget_epsilon:g} at delta {answer.budget_delta:g}"


def _policy(server: ReadServer) -> str:
    request, answer = server.request, server.answer
    require(request.n_rows >= answer.min_rows, "the request has fewer rows than min_rows")
    require(answer.rows_kept >= answer.min_rows, "fewer rows than min_rows counted")
    require(request.epsilon <= answer.max_epsilon, "epsilon is larger than max_epsilon")
    require(request.delta <= answer.max_delta, "delta is larger than max_delta")
    return f"min_rows {answer.min_rows}, max_epsilon {answer.max_epsilon:g}, max_delta {answer.max_delta:g}"


SERVER_CHECKS: dict[str, ServerCheck] = {
    "key of the measurement server": _key,
    "role of the measurement server": _role,
    "names": _names,
    "signature of the receipt": _receipt,
    "signature of the newest receipt": _newest,
    "ledger chain": _chain,
    "charge is of this release": _check_charge,
    "noise covers the claim": _noise,
    "range of the answer": _range,
    "releases to the population": _count,
    "policy": _policy,
}
