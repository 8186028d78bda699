"""The defences between what is sent or opened and anyone who would read rows in it."""

from __future__ import annotations

from collections.abc import Iterator

from blindfit.algorithms.protocols.falcon import WEIGHT_BOUND
from blindfit.coordinator.falcon import privacy
from blindfit.coordinator.falcon.figures import Figures
from blindfit.coordinator.terminal.wording import join_names
from blindfit.coordinator.vertical import defence
from blindfit.coordinator.vertical import report as joint
from blindfit.coordinator.vertical.defence import Defence

# What each flag of falcon.unsafe gives up.
GIVEN_UP = {
    "weight-bits": "weights opened as they are, with 24 bits after the point: after few epochs a party's weights are "
    "nearly a gradient, which reveals labels",
}


SHARES = Defence(
    "Secret shares",
    True,
    "Features, labels, scores, residuals and gradients leave a party only as shares, or minus a mask that only this "
    "party knows. The other parties see uniform numbers.",
)


def defences_of(facts: Figures) -> Iterator[Defence]:
    yield _encryption(facts) if facts.job.falcon.is_encrypted else SHARES
    yield _macs(facts)
    if facts.job.privacy is not None:
        yield from privacy.defences(facts)
        return
    yield _rounding(facts)
    yield Defence(
        "Shortened rows",
        True,
        "Each party shortens its rows that stand out in their batch, because a weight would reveal their labels. "
        f"{joint.describe_shortened(facts)}",
    )


def _encryption(facts: Figures) -> Defence:
    return Defence(
        "Encrypted weights and secret shares",
        True,
        f"Each party's weights are encrypted under a {facts.job.falcon.key_bits}-bit key. Every data party has a share "
        "of the key, and decryption needs all shares. The decrypted values have a mask of each party, 40 bits longer "
        "than the numbers of the whole job. Labels and residuals are in shares.",
    )


def list_defences(facts: Figures) -> str:
    """List the defences that are on: A, b and c."""
    return defence.names_of_those_on(defences_of(facts))


def _macs(facts: Figures) -> Defence:
    who = join_names(facts.roles.chain)
    if facts.job.falcon.macs:
        text = f"Opened values carry MACs, which {who} check before anything unmasked is opened. If a party sends "
        return Defence("Checks by MACs", True, f"{text}wrong shares, all parties abort.")
    return Defence("Checks by MACs", False, f"{who} were trusted to send correct shares (semi-honest).")


def _rounding(facts: Figures) -> Defence:
    if facts.kept_bits is None:
        return Defence("Rounded weights", False, "Weights were opened as they are, with 24 bits after the point.")
    if facts.stays_shared:
        return Defence(
            "Weights in shares",
            True,
            f"Nobody has a weight: each of {join_names(facts.roles.chain)} keeps its shares of all weights, in steps "
            f"of 2^-{facts.kept_bits}, and scores are computed from them in shares.",
        )
    text = (
        f"Weights are rounded in shares before they are opened, in steps of 2^-{facts.kept_bits}, "
        f"from -{WEIGHT_BOUND:g} to below "
    )
    return Defence("Rounded weights", True, f"{text}{WEIGHT_BOUND:g}, {facts.weight_bits} bits each.")
