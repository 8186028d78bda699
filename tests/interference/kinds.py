"""One table of what each field that others see may hold. A field that the table lacks is compared as it is.

A name is "Message.field" of a protocol or of a service, "summary/NAME" for a party's final report to the coordinator,
or "progress/STEP" for its reports before that. Ciphertexts, shares and keys need no line: their kind
(algorithms/messages.py) declares that they hide.
"""

from __future__ import annotations

from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache


class Treatment(StrEnum):
    """Treatment of a value in a record."""

    EXACT = "exact"
    # a ciphertext, blinded point, share or masked value: kind and shape stay; other tests cover the rest
    HIDDEN = "hidden"
    RANDOM = "random"  # drawn again in every run, as `random_ids` checks; which values are equal still shows
    DERIVED = "derived"  # a hash or signature over RANDOM values: treated as RANDOM, but nobody drew it
    DECLARED = "declared"  # the protocol's table lets its receiver read it: kind and shape stay
    RELEASED = "released"  # paid for: kind and shape stay once the charge is durable, and the value before it
    UNPROTECTED = "unprotected"  # declared where no budget pays for the private unit; where one does, exact
    MACHINE = "machine"  # clocks and memory


HIDDEN, RANDOM, DERIVED = Treatment.HIDDEN, Treatment.RANDOM, Treatment.DERIVED
DECLARED, RELEASED, UNPROTECTED = Treatment.DECLARED, Treatment.RELEASED, Treatment.UNPROTECTED
MACHINE, EXACT = Treatment.MACHINE, Treatment.EXACT

BY_KIND = {
    "ciphertext_vector": HIDDEN,
    "partial_decryption": HIDDEN,
    "share_vector": HIDDEN,
    "paillier_public_key": HIDDEN,  # the harness gives one key to all runs: making a key takes longer than a run
}
"""Treatments by a message field's kind, where BY_NAME has no line for the field."""

BY_NAME = {
    # handshake, draw
    "Hello.snapshot": RANDOM,
    "Known.digest": DERIVED,
    "Commitment.digest": DERIVED,
    "Opening.drawn": RANDOM,
    "Ready.drawn": DERIVED,  # a name of what was drawn; at a key node, of its noise
    # align, link
    "PassedPoints.points": HIDDEN,
    "BlindedPoints.points": HIDDEN,
    "CommonRows.rows": DECLARED,  # own common rows, in a random order of shuffled places
    "KeyShare.public_value": RANDOM,
    "Filters.filters": DECLARED,  # the likeness of keyed filters
    "Slots.positions": DECLARED,  # positions of the party's own rows
    # taylor
    "NoisyGradient.values": RELEASED,  # without label DP the table declares it
    "GridFigures.numbers": DECLARED,  # the account counts them
    "GridChoice.point": DECLARED,
    # falcon
    "ChosenPoint.point": DECLARED,  # figures decide it, and the account counts them
    "DealtSeed.seed": RANDOM,
    "DealtKeyShare.share": RANDOM,
    "CheckCommitment.opened": DERIVED,
    "CheckCommitment.commitment": DERIVED,
    "CheckSeed.drawn": RANDOM,
    "ResidueCommitment.commitment": DERIVED,
    "Residue.blinding": RANDOM,
    # predict
    "MaskSeed.seed": RANDOM,
    "ZeroSharePart.part": RANDOM,
    "MaskedScores.scores": HIDDEN,  # hidden with two passive parties; with one, no protocol can hide it
    # the measurement server's answers
    "*snapshot": RANDOM,
    "DatasetDescription.receipt_key": RANDOM,
    "DatasetDescription.receipt_key_signature": RANDOM,
    "NoisySum.sums": RELEASED,
    "NoisySum.ciphertexts": RELEASED,
    "BlockContent.content_sha256": DERIVED,  # salted
    "AggregateOpen.blocks": DERIVED,
    "BlockOpen.content_sha256": DERIVED,
    "BlockOpen.content_salt": RANDOM,
    "BlockFit.*": RELEASED,
    "EncryptedRows.rows": HIDDEN,
    "MaskedRows.values": HIDDEN,
    "Challenge.seed": DERIVED,  # made from the draws of two servers
    "NoisySum.entry": DERIVED,
    "NoisyLabels.steps": RELEASED,
    "FittedRelease.parameters": RELEASED,
    "FittedRelease.share_outside": RELEASED,
    "SignedReceipt.statement": DERIVED,
    "SignedReceipt.signature": DERIVED,
    # an active party's receipts
    "PartyDescription.receipt_key": RANDOM,
    "ReceiptGiven.key": RANDOM,
    "Receipt*.statement": DERIVED,
    "Receipt*.signature": DERIVED,
    # hashes of the requested rows and ids, which the server receives
    "*Open.request_id": DECLARED,
    "AggregateOpen.content_sha256": DECLARED,
    "AggregateOpen.content_salt": RANDOM,
    "Agreement.request_sha256": DERIVED,  # hash of a salted request
    "WeightRows.weights": DECLARED,
    # progress
    "progress/ask for the release": MACHINE,  # two threads ask the two servers, in any order
    "progress/fit": RELEASED,  # losses of a fit to the released sum
    "progress/hold-out loss": UNPROTECTED,  # loss of each epoch as it ends: also in the summary
    # summaries
    "summary/timing.*": MACHINE,
    "summary/peak_memory_mib": MACHINE,
    "summary/fit.losses": UNPROTECTED,  # the hold-out loss, which the key node decrypts
    "summary/selection.*": UNPROTECTED,  # figures of grid points
    "summary/evaluation.*": UNPROTECTED,  # figures on the test rows
    "summary/privacy.rows_outside": RELEASED,
    "summary/privacy.noise_std": RELEASED,
    "summary/privacy.largest_bias": RELEASED,
    "summary/fit.iterations": RELEASED,
    "summary/fit.converged": RELEASED,
    "summary/fit.reason": RELEASED,
    "summary/fit.feasible": RELEASED,
}


@cache
def treatment_of(name: str, kind: str = "") -> Treatment:
    for pattern, treatment in BY_NAME.items():
        if fnmatchcase(name, pattern):
            return treatment
    return BY_KIND.get(kind, EXACT)
