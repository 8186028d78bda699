"""The messages of a Taylor training: one class for each arrow."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.algorithms.messages import CiphertextVector, Integer, IntegerTensor, OctetVector, PublicKeyKind


@dataclass(frozen=True, slots=True)
class TaylorKey:
    public_key: PublicKeyKind


@dataclass(frozen=True, slots=True)
class RowFactors:
    factors: CiphertextVector  # (rows,)


@dataclass(frozen=True, slots=True)
class HoldOutLabels:
    labels: CiphertextVector  # (hold-out rows,)


@dataclass(frozen=True, slots=True)
class ChainedResiduals:
    residuals: CiphertextVector  # (batch rows,)


@dataclass(frozen=True, slots=True)
class Residuals:
    residuals: CiphertextVector  # (batch rows,)


@dataclass(frozen=True, slots=True)
class MaskedGradient:
    gradient: CiphertextVector  # packed


@dataclass(frozen=True, slots=True, repr=False)
class NoisyGradient:
    values: OctetVector  # (columns, width): g + rho + noise, two's complement, big-endian


@dataclass(frozen=True, slots=True)
class PartialLoss:
    scores: CiphertextVector  # (hold-out rows,)
    loss: CiphertextVector  # (1,)


@dataclass(frozen=True, slots=True)
class HoldOutLoss:
    loss: CiphertextVector  # (1,)


@dataclass(frozen=True, slots=True)
class PartialSums:
    scores: CiphertextVector  # (hold-out rows,)
    sums: CiphertextVector  # (5,)


@dataclass(frozen=True, slots=True)
class CalibrationSums:
    sums: CiphertextVector  # (5,)


@dataclass(frozen=True, slots=True, repr=False)
class Calibration:
    slope: Integer  # in steps of 1/32; 0 if the rows do not determine it
    offset: Integer


@dataclass(frozen=True, slots=True)
class GridFigures:
    numbers: IntegerTensor  # (2, grid points): rounded mean losses and their deviations


@dataclass(frozen=True, slots=True)
class GridChoice:
    point: Integer  # of the grid, counted from 0


@dataclass(frozen=True, slots=True)
class Verdict:
    go_on: Integer
