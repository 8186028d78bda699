"""The cost of a training, on a machine of known speed."""

from __future__ import annotations

from blindfit.coordinator.taylor.cost import Cost, Speed
from tests.taylor.seats import Case

SPEED = Speed(product_s=4e-6, randomiser_s=4e-4, decryption_s=2.4e-3)


REFERENCE = Speed(product_s=4e-6, randomiser_s=1.4e-2, decryption_s=2.4e-3)  # python-paillier's, of the same day


def cost_of(case: Case) -> Cost:
    return Cost(case.parameters, [len(b) for b in case.plan.batches], len(case.held_out), 0, len(case.table.y))
