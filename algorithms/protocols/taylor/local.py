"""The specification of a Taylor training: all roles in one process, no channel."""

from __future__ import annotations

from collections.abc import Sequence

import blindfit.algorithms.protocols.taylor.calibration as calibration
import blindfit.algorithms.protocols.taylor.hold_out as hold_out
import blindfit.algorithms.protocols.taylor.steps as steps
from blindfit.algorithms.protocols.taylor.parameters import (
    DataSeat,
    Encrypted,
    KeySeat,
    TaylorParameters,
    check_parameters,
    check_seat,
)
from blindfit.algorithms.statistics.vertical.grid import Grid
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan, Rows


def run_locally(seats: Sequence[DataSeat], key_seat: KeySeat, plan: RowPlan, parameters: TaylorParameters) -> int:
    """Compute what the roles compute; return how many epochs ran. `seats`: the chain, the active party first."""
    check_parameters(parameters, [len(batch) for batch in plan.batches], len(plan.validation))
    for seat in seats:
        check_seat(seat, plan, parameters)
    grid, held_out = parameters.grid, plan.validation
    active, *passives = seats
    share_locally(active, passives, parameters)
    mu_enc = mu_locally(active, passives, held_out, grid) if parameters.hold_out_loss else {}
    for epoch in range(parameters.epochs):
        for number, batch in enumerate(plan.batches):
            residuals = steps.step_1_residuals(active, batch, grid)
            for seat in passives:
                residuals = steps.step_2_add(seat, batch, grid, residuals)
            for seat in seats:
                masked, rho = steps.step_3_gradient(seat, batch, grid, residuals)
                answer = steps.step_4_answer(key_seat, masked, parameters, (seat.name, epoch, number))
                seat.optimiser.step(steps.step_5_gradient(answer, rho, len(batch), parameters), epoch, number)
        if not parameters.is_judged(epoch):
            continue
        scores, loss = hold_out.step_6_start(active, held_out, grid)
        for seat in passives:
            loss = hold_out.step_6_loss(seat, held_out, grid, scores, loss, mu_enc[seat.name])
            if seat is not passives[-1]:
                scores = hold_out.step_6_scores(seat, held_out, grid, scores)
        if not hold_out.step_7_verdict(key_seat, loss, len(held_out), parameters).go_on:
            break
    if parameters.calibrate:
        scores, sums = calibration.step_8_start(active, held_out, grid)
        for seat in passives:
            sums = calibration.step_8_sums(seat, held_out, grid, scores, sums, mu_enc[seat.name])
            if seat is not passives[-1]:
                scores = hold_out.step_6_scores(seat, held_out, grid, scores)
        told = calibration.step_9_told(key_seat, sums, parameters)
        active.platt = calibration.step_9_calibration(active, told, parameters.key_node)
    return epoch + 1


def share_locally(active: DataSeat, passives: Sequence[DataSeat], parameters: TaylorParameters) -> None:
    active.factors_enc = steps.step_0_own_factors(active, parameters.grid)
    step = steps.step_0_factors if parameters.encrypted_factors else steps.step_0_own_factors
    for seat in passives:
        seat.factors_enc = step(active if parameters.encrypted_factors else seat, parameters.grid)


def mu_locally(active: DataSeat, passives: Sequence[DataSeat], rows: Rows, grid: Grid) -> dict[str, Encrypted]:
    return {
        seat.name: hold_out.step_0_mu(seat, rows, grid, hold_out.step_0_labels(active, rows, grid)) for seat in passives
    }
