"""The messages of a Falcon training: one class for each arrow."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.algorithms.messages import (
    CiphertextVector,
    Integer,
    Octets,
    PartialDecryptionVector,
    PublicKeyKind,
    ShareVector,
)


@dataclass(frozen=True, slots=True, repr=False)
class DealtSeed:
    seed: Octets  # the receiver's dealt items and its share of the MAC key are expanded from it


@dataclass(frozen=True, slots=True, repr=False)
class Correction:
    values: ShareVector  # a piece of the corrections to the dealer's sums, in dealing order


@dataclass(frozen=True, slots=True, repr=False)
class MaskedInput:
    values: ShareVector  # a piece of the sender's input, less a mask that only the sender knows


@dataclass(frozen=True, slots=True, repr=False)
class OpenedShares:
    values: ShareVector  # the sender's shares of the values opened in one round


@dataclass(frozen=True, slots=True)
class CheckCommitment:
    opened: Octets  # SHA-256 of all openings so far
    commitment: Octets  # to the sender's part of the coefficients


@dataclass(frozen=True, slots=True)
class CheckSeed:
    drawn: Octets


@dataclass(frozen=True, slots=True)
class ResidueCommitment:
    commitment: Octets


@dataclass(frozen=True, slots=True, repr=False)
class Residue:
    value: ShareVector  # (1,)
    blinding: Octets  # of the commitment


@dataclass(frozen=True, slots=True)
class GoesOn:
    go_on: Integer


@dataclass(frozen=True, slots=True)
class ChosenPoint:
    point: Integer  # of the grid, counted from 0


# --- with encrypted weights -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class DealtKeyShare:
    public_key: PublicKeyKind
    share: Octets  # the receiver's part of the decryption exponent


@dataclass(frozen=True, slots=True)
class MaskedSums:
    sums: CiphertextVector  # packed, the sender's summands and masks


@dataclass(frozen=True, slots=True, repr=False)
class PartialDecryptions:
    partials: PartialDecryptionVector  # of the sum of all parties' masked sums


@dataclass(frozen=True, slots=True)
class EncryptedMasks:
    masks: CiphertextVector  # (rows,)
