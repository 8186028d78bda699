"""The inputs of a fit, each with its cover: a charged release, a declaration of its owner, or nothing.

A fit is a function of the noisy sum, the rows, the penalty, the other settings, the start, and for one solver the seed
of its batches. An input that was computed from true labels would carry them into the model without a charge. So each
input has its own line, which states if nothing in the file covers the input.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.coordinator.verify.read import Read, ReadServer, require
from blindfit.coordinator.verify.results import NotCovered, Verified
from blindfit.parties.measurement.trust import ENCRYPTED_ROWS
from blindfit.parties.walr.settings import WalrSettings
from blindfit.parties.walr.start import as_pretrained

SIGNED_SETTINGS = {"trust", "intercept", "norm_bound", "norm_quantile", "frac_bits"}
"""Settings that only act on what the server signs: the rows of the request, and their grid."""
OWN_LINE = {"l2", "init"}
SAME_START = 1e-9  # relative: another build may add products in another order


def noisy_sum(read: Read) -> str:
    charges = [f"entry {server.entry.position} of the ledger of {server.name}" for server in read.servers]
    return f"charged, {' and '.join(charges)}"


def rows(read: Read) -> str | NotCovered:
    party = read.parts.party.name
    if read.request.key or read.request.in_shares:
        how = "encrypted" if read.request.key else "in shares"
        extra = ", nor how long they were" if read.settings.trust == ENCRYPTED_ROWS else ""
        return NotCovered(
            f"rows came {how}: no server saw that rows with this hash were sent{extra}; only {party} states it"
        )
    return f"{read.names} read them and signed their hash; epsilon protects labels, but not these features"


def penalty(read: Read) -> str | NotCovered:
    if read.settings.l2 == "auto":
        return "it follows from the noise"
    return NotCovered(f"walr.l2 = {read.settings.l2:g} was chosen, and no signature shows from what")


def settings(read: Read) -> str | NotCovered:
    usual = WalrSettings()
    chosen = {
        name: value
        for name, value in read.settings.model_dump().items()
        if name not in SIGNED_SETTINGS | OWN_LINE and value != getattr(usual, name)
    }
    if not chosen:
        return "those of every job by default"
    named = ", ".join(f"walr.{name} = {value}" for name, value in chosen.items())
    return NotCovered(f"{named}: chosen, and no signature shows from what")


def seed(read: Read) -> str | NotCovered:
    if read.parts.fit.solver != "hybrid-minibatch":
        return f"{read.parts.fit.solver} uses no seed"
    return NotCovered(f"only {read.parts.party.name} states that it drew the seed of the batches by chance")


def fit(read: Read) -> str | NotCovered:
    if read.request.blocks:
        server = read.servers[0].name
        return NotCovered(
            f"{server} fitted the model: only {read.parts.party.name} states that these weights are the fit"
        )
    if read.is_refitted:
        return "fitted again from these inputs, see below"
    return NotCovered("nobody fitted the model again: --features and --rows do so")


# --- the start ------------------------------------------------------------------------------------------


def start(read: Read) -> str | NotCovered:
    stated, party = read.parts.fit.init, read.parts.party.name
    if stated is None:
        return "zero weights"
    require(stated.public is None or stated.release is None, "it names two origins, and can have only one")
    many = f"{len(stated.weights)} weights"
    if stated.public is not None:
        return f"{many} fitted to the rows of {stated.public}, which its owner {party} declares public"
    if stated.release is None:
        return NotCovered(f"{many} of a model that no signature and no declaration covers: it may contain true labels")
    return _match_release(read, stated.release, np.array(stated.weights))


def _match_release(read: Read, digest: str, weights: Floats) -> str | NotCovered:
    """Check that the start is the model of a charged release of the same ledger."""
    given = [encoded for encoded in read.given_starts if hashlib.sha256(encoded).hexdigest() == digest]
    if not given:
        return NotCovered(
            f"the file states that it is the model of the release file with SHA-256 {digest}: give that file by --start"
        )
    earlier, verified = read.of_start(given[0])
    if failed := [result for result in verified.results if result.why]:
        raise DataError(f"its release file does not hold: {failed[0].name}: {failed[0].why}")
    if reason := _of_another_ledger(read, earlier):
        return NotCovered(f"it is the model of another release, {reason}")
    model = as_pretrained(earlier.model)
    converted = model.weights_for(read.model.standardiser, intercept=read.model.intercept)
    is_same = converted.shape == weights.shape and np.allclose(converted, weights, rtol=SAME_START, atol=0)
    require(is_same, "it is not the model of the release file that it names")
    found = f"the model of {noisy_sum(earlier).removeprefix('charged, ')}"
    if open_inputs := _not_covered_in(verified):
        return NotCovered(f"{found}, whose inputs are not all covered: {', '.join(open_inputs)}")
    return found


def _of_another_ledger(read: Read, earlier: Read) -> str:
    """Return why the budget of this release does not bound the earlier release too; empty if it does."""
    now = {server.name: server for server in read.servers}
    if now.keys() != {server.name for server in earlier.servers}:
        return f"by {earlier.names}"
    for server in earlier.servers:
        if reason := _not_counted(now[server.name], server):
            return reason
    return ""


def _not_counted(now: ReadServer, then: ReadServer) -> str:
    if now.part.signer.key != then.part.signer.key:
        return f"signed by another key of {now.name}"
    if now.about.population != then.about.population:
        return f"about the population {then.about.population}"
    known = dict([(now.newest.position, now.newest.entry_hash), *now.newest.landmarks])
    at = known.get(then.receipt.position, then.receipt.entry_hash)
    if then.receipt.position > now.newest.position or at != then.receipt.entry_hash:
        return f"in another ledger of {now.name}"
    return "" if now.newest.covers(then.receipt) else f"which the newest receipt of {now.name} does not count"


def _not_covered_in(verified: Verified) -> list[str]:
    found = [result.name for result in verified.results if result.not_covered]
    return [name.removeprefix(PREFIX) for name in found if name.startswith(PREFIX)]


PREFIX = "input: "
INPUTS: dict[str, Callable[[Read], str | NotCovered]] = {
    f"{PREFIX}noisy sum": noisy_sum,
    f"{PREFIX}rows": rows,
    f"{PREFIX}penalty": penalty,
    f"{PREFIX}settings": settings,
    f"{PREFIX}start": start,
    f"{PREFIX}seed": seed,
    f"{PREFIX}fit": fit,
}
