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
    seed: Octets  # what all that is dealt to the receiver, and its share of the MAC key, expand from


@dataclass(frozen=True, slots=True, repr=False)
class Correction:
    values: ShareVector  # a piece of what the dealer's sums still lack, in the order in which it is dealt


@dataclass(frozen=True, slots=True, repr=False)
class MaskedInput:
    values: ShareVector  # a piece of what the sender puts in, less a mask that it knows alone


@dataclass(frozen=True, slots=True, repr=False)
class OpenedShares:
    values: ShareVector  # the sender's shares of what is opened in one round


@dataclass(frozen=True, slots=True)
class CheckCommitment:
    opened: Octets  # SHA-256 of all that was opened so far
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
    share: Octets  # the receiver's part of the exponent that decrypts


@dataclass(frozen=True, slots=True)
class MaskedSums:
    sums: CiphertextVector  # packed, the sender's summands and masks


@dataclass(frozen=True, slots=True, repr=False)
class PartialDecryptions:
    partials: PartialDecryptionVector  # of the sum of all parties' masked sums


@dataclass(frozen=True, slots=True)
class EncryptedMasks:
    masks: CiphertextVector  # (rows,)
