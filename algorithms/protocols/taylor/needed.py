"""The number of randomisers that a data party draws: one for each ciphertext that it sends."""

from __future__ import annotations

from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.packing import Layout
from blindfit.algorithms.protocols.taylor.calibration import SUMS
from blindfit.algorithms.protocols.taylor.parameters import TaylorParameters
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan


def randomisers_needed(
    party: str, public_key: PublicKey, plan: RowPlan, rows: int, parameters: TaylorParameters, epochs: int
) -> int:
    """Count them for `epochs` epochs that patience does not end, with `rows` aligned rows."""
    held_out, to_the_next = len(plan.validation), party != parameters.last
    needed = 0
    for batch in plan.batches:
        slot_bits = parameters.grid.slot_bits(len(batch))
        gradient = Layout.of(public_key, parameters.columns_of(party), slot_bits)
        needed += epochs * (len(batch) + gradient.ciphertexts)
    if parameters.hold_out_loss:
        judged = min(epochs, 1) if parameters.judged_at_end else epochs
        needed += judged * (to_the_next * held_out + 1)
    if party == parameters.active:
        to_each = parameters.encrypted_factors * rows + parameters.hold_out_loss * held_out
        needed += to_each * (len(parameters.data_parties) - 1)
    return needed + parameters.calibrate * (to_the_next * held_out + SUMS)
