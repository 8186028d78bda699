"""The parameters of a Taylor training, the data of each seat, and the checks before the first ciphertext."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import ConfigError, LocalProtocolError, PrivacyError, RangeError
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, Randomisers
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.vectors import EncryptedVector
from blindfit.algorithms.privacy.gaussian import LEAST_STD_STEPS
from blindfit.algorithms.randomness import UniformInt
from blindfit.algorithms.statistics.linear.platt import IDENTITY, Platt
from blindfit.algorithms.statistics.vertical.grid import Grid
from blindfit.algorithms.statistics.vertical.optimiser import Optimiser, Patience
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan, Rows
from blindfit.algorithms.workers import THIS_PROCESS, Workers

Floats = npt.NDArray[np.float64]
Encrypted = EncryptedVector[Ciphertext]
NOISE_REACH = 64  # standard deviations: no noise is so large


@dataclass(frozen=True, slots=True)
class TaylorParameters:
    """Public parameters: the same at every party.

    Attributes:
        data_parties: the chain, the active party first.
        columns: number of columns of each data party, in the same order.
        encrypted_factors: True if rows have factors that only the active party knows (class weights); it sends them
            encrypted.
        masked: True if rows have a mask, which every data party has encrypted since the alignment.
        noise_std: deviation of the key node's fresh noise on every coordinate of a batch's sum, in units of the
            features.
        kept_noise_std: deviation of the noise that it adds to that under label DP, drawn once for each batch and the
            same in every epoch; 0 without label DP.
        hold_out_loss: True if step 6 runs; without it every epoch runs.
        judged_at_end: True if step 6 runs only after the last epoch.
        calibrate: True if steps 8 and 9 run, for a logistic model over rows with a mask and a hold-out loss.
    """

    data_parties: tuple[str, ...]
    key_node: str
    columns: tuple[int, ...]
    grid: Grid
    key_bits: int = 2048
    epochs: int = 20
    patience: int = 3
    tolerance: float = 1e-4
    encrypted_factors: bool = False
    masked: bool = False
    noise_std: float = 1.0
    kept_noise_std: float = 0.0
    hold_out_loss: bool = True
    calibrate: bool = False
    judged_at_end: bool = False

    def is_judged(self, epoch: int) -> bool:
        """Return whether step 6 runs after an epoch, counted from 0."""
        return self.hold_out_loss and (not self.judged_at_end or epoch + 1 == self.epochs)

    @property
    def has_label_dp(self) -> bool:
        return self.kept_noise_std > 0

    @property
    def active(self) -> str:
        return self.data_parties[0]

    @property
    def last(self) -> str:
        return self.data_parties[-1]

    def after(self, party: str) -> str:
        return self.data_parties[self.data_parties.index(party) + 1]

    def before(self, party: str) -> str:
        return self.data_parties[self.data_parties.index(party) - 1]

    def columns_of(self, party: str) -> int:
        return self.columns[self.data_parties.index(party)]


@dataclass(slots=True, repr=False)
class DataSeat:
    """The data of one data party: rows in the common order, weights, randomness.

    Attributes:
        features: (rows, k) integers of the grid.
        label_terms: (rows,) -b y + n, at the active party; None elsewhere.
        y: (rows,) at the active party.
        factors: (rows,) class weights in steps, at the active party.
        mask_enc: (rows,) [[m]], if there is a mask.
        factors_enc: (rows,) [[f]], which step 0 sets: the mask, or the active party's product with it.
        uniform: randomness of the masks rho.
        platt: slope and offset of the log odds, which step 9 sets at the active party.
    """

    name: str
    features: Rows
    optimiser: Optimiser
    randomisers: Randomisers
    uniform: UniformInt
    label_terms: Rows | None = None
    y: Floats | None = None
    factors: Rows | None = None
    mask_enc: Encrypted | None = None
    factors_enc: Encrypted | None = None
    platt: Platt = IDENTITY
    workers: Workers = THIS_PROCESS


@dataclass(slots=True, repr=False)
class KeySeat:
    """The data of the key node: the private key, and the secret of its noise, the same after a resume."""

    private_key: PrivateKey
    noise_key: bytes
    patience: Patience
    threads: int = 1


# --- checks before the first ciphertext --------------------------------------------------------


def check_parameters(parameters: TaylorParameters, batch_rows: Sequence[int], validation_rows: int) -> None:
    """Check that every number of this training fits, and that its options can be combined.

    Raises:
        RangeError: a bound does not fit under the key, in a slot or in 62 bits.
        ConfigError: too few parties, or no rows where rows are needed.
        PrivacyError: label DP with an option that would break its claim.
    """
    if len(parameters.data_parties) < 2 or parameters.grid.data_parties != len(parameters.data_parties):
        raise ConfigError("a training has an active and at least one passive party, and a grid for as many")
    if len(parameters.columns) != len(parameters.data_parties) or min(parameters.columns) < 1:
        raise ConfigError("each party of a training has at least one column")
    if not batch_rows or min(batch_rows) < 1:
        raise ConfigError("a training has batches of at least one row")
    if parameters.hold_out_loss and validation_rows < 1:
        raise ConfigError(
            "no row is held out, so there is no hold-out loss", hint="set taylor.validation_fraction to more than 0"
        )
    if parameters.calibrate and not (parameters.masked and parameters.hold_out_loss):
        raise ConfigError("sums under the mask need a mask and held-out rows")
    if not parameters.encrypted_factors and (parameters.grid.factor_bits, parameters.grid.factor_bound) != (0, 1):
        raise ConfigError("the grid has bits for class weights, but the rows have no class weights")
    if parameters.has_label_dp and parameters.encrypted_factors:
        raise PrivacyError("class weights break label DP: the effect of a label would grow with the score")
    if parameters.has_label_dp and parameters.hold_out_loss:
        raise PrivacyError(
            "stopping by the hold-out loss breaks label DP: the loss reveals something about the labels",
            hint="fix the number of epochs: set taylor.validation_fraction = 0",
        )
    if 0 < math.ldexp(parameters.kept_noise_std, parameters.grid.gradient_bits) < LEAST_STD_STEPS:
        raise PrivacyError(
            "label DP's noise has only a few steps of the gradients' grid, so its law differs from the one charged",
            hint="raise taylor.norm_bound",
        )
    _check_bounds(parameters, max(batch_rows), validation_rows)


def _check_bounds(parameters: TaylorParameters, batch_rows: int, validation_rows: int) -> None:
    grid, columns = parameters.grid, max(parameters.columns)
    grid.check()
    slot_bits = grid.slot_bits(batch_rows)
    max_noise = math.ldexp(grid.hiding_bound(batch_rows), -grid.gradient_bits) / NOISE_REACH
    if not (0 <= parameters.noise_std < max_noise and 0 <= parameters.kept_noise_std < max_noise):
        raise RangeError(
            f"gradient_noise = {parameters.noise_std:g}, or label DP's noise of {parameters.kept_noise_std:g}, is not "
            f"between 0 and {max_noise:.3g}"
        )
    most = max(
        1 << (slot_bits + 1),  # a slot and its place below half the modulus, as Layout has it
        grid.partial_loss_bound(validation_rows, columns) if parameters.hold_out_loss else 0,
    )
    if 2 * most >= 1 << (parameters.key_bits - 1):
        raise RangeError(
            f"a number of the training could need {most.bit_length() + 1} bits, more than a key of "
            f"{parameters.key_bits} bits holds",
            hint="use fewer fraction bits, fewer rows to a batch or a larger key",
        )


def check_seat(seat: DataSeat, plan: RowPlan, parameters: TaylorParameters) -> None:
    """Check that a party's own rows fit the parameters.

    Raises:
        LocalProtocolError: a field is missing, or has another shape.
        RangeError: a feature passes the grid's bound.
    """
    rows, grid = len(seat.features), parameters.grid
    active = seat.name == parameters.active
    shape = (rows, parameters.columns_of(seat.name))
    wrong = {
        "features": seat.features.shape != shape or len(seat.optimiser.weights) != shape[1],
        "plan": any(
            part.size and not 0 <= part.min() <= part.max() < rows for part in (*plan.batches, plan.validation)
        ),
        "label_terms": active and (seat.label_terms is None or len(seat.label_terms) != rows),
        "y": active and parameters.hold_out_loss and (seat.y is None or len(seat.y) != rows),
        "factors": (seat.factors is not None) != (active and parameters.encrypted_factors),
        "mask_enc": _wrong_mask(seat.mask_enc, rows) if parameters.masked else seat.mask_enc is not None,
    }
    for name in (name for name, is_wrong in wrong.items() if is_wrong):
        raise LocalProtocolError(f"{seat.name}: {name} is missing, or does not fit the parameters")
    if seat.features.size and max(int(seat.features.max()), -int(seat.features.min())) > grid.feature_steps:
        raise RangeError(f"a feature of {seat.name} passes {grid.feature_bound:g}", hint="clip with Grid.features")


def _wrong_mask(mask_enc: Encrypted | None, rows: int) -> bool:
    return mask_enc is None or (len(mask_enc), mask_enc.frac_bits, mask_enc.bound) != (rows, 0, 1)
