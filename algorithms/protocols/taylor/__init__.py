"""Vertical logistic or linear regression on the Taylor loss, under Paillier, with or without an encrypted mask.

Source: Hardy et al. 2017 (arXiv 1711.10677), Algorithms 1 to 3, and its fourth, for mu.
Model: semi-honest; the key node colludes with nobody. One active party (labels), any number of passive parties, in one
    order, the chain. theta, X and y never leave their owners. Trains on rows that were aligned before (align, link).

    step  who        does                                                               sends
    0     key node   key pair                                                           TaylorKey.
    0     active     [[f]] = [[m]] o c: class weights, if used                          RowFactors.
    0     active     [[f o y]] on the hold-out rows                                     HoldOutLabels.
    0     passive    [[mu]] = X_H^T [[f o y]], kept                                     nothing.
    1     active     on batch S: [[w]] = [[f]] o (2a z_A - b y + n), re-randomised      ChainedResiduals.
    2     passive    [[w]] <- [[w]] + [[f]] o 2a z_p, re-randomised                     ChainedResiduals to the next,
                                                                                        the last: Residuals to all.
    3     each       [[g]] = X_S^T [[w]], packed, plus rho, re-randomised               MaskedGradient.
    4     key node   decrypts, adds noise                                               NoisyGradient to its owner.
    5     each       theta <- theta - rate ((g + noise) / s + l2 theta)                 nothing.
    6     active     each epoch, hold-out: [[f o z_A]], [[loss of z_A]]                 PartialLoss.
    6     passive    adds 2a z_p . [[f o z_before]] + a [[f]] . z_p^2 - b theta . mu    PartialLoss to the next,
                                                                                        the last: HoldOutLoss.
    7     key node   decrypts the loss; patience                                        Verdict to all.
    7     key node   after all folds of a grid, two rounded numbers of each point       GridFigures to the active party.
    7     key node   and the best point                                                 GridChoice to all.
    8     active     once, hold-out, masked: [[f o z_A]], sums of [[f]],                PartialSums.
                     [[f y]], [[f z_A]], a [[f z_A^2]], b [[f y z_A]]
    8     passive    adds its scores to both, as in step 6                              PartialSums to the next,
                                                                                        the last: CalibrationSums.
    9     key node   decrypts the five sums: slope and offset of the log odds, rounded  Calibration to the active party.

    f_i multiplies row i. Without a mask it is 1; then nothing is sent and factors are plain. With a mask it is the
    mask's 0 or 1; then all have [[m]] from the alignment. It can be a class's weight c_i, or both. Let n be the jitter
    of each row, drawn once. The factors a and b are those of statistics.taylor. The loss is the mean of f_i loss_i over
    the slots, as the gradient is.

    If the job has a grid, steps 0 to 5 run for each fold of each point first, and steps 6 and 7 after the last epoch of
    each.

    Under label DP the key node adds two noises. One is kept for each batch and covers the labels: -b y never changes,
    so all epochs are one release, of sensitivity b D R. The other is drawn for every answer and covers features in
    differences of gradients, where the kept noise cancels. There is no jitter then, and no step 6.

Departures from the paper: the corrections 2 theta.mu / 4h, u' = (u o u), v = log 2 / h. The mean over a batch is over
    its slots. Every ciphertext is re-randomised before it leaves: otherwise the active party could divide the answer by
    what it sent and read 2a z_p. Gradients are masked, packed and noised. There can be any number of passive parties.
Learns: each party learns its own noisy gradients. The key node learns masked gradients and the hold-out loss of each
    epoch, which it announces as "go on" or "stop". After linkage it also learns five sums over the hold-out rows that
    match, and sends the active party a slope and an offset in steps of 1/32. Nobody learns another party's weights,
    scores or labels. What gradients reveal, and the defences, is in docs/explanation/threat_model/index.md.
"""

from __future__ import annotations

from blindfit.algorithms.protocols.table import (
    ACTIVE,
    BATCH,
    CIPHERTEXTS,
    DATA,
    EPOCH,
    KEY,
    ONCE,
    PASSIVE,
    Arrow,
    Table,
)
from blindfit.algorithms.protocols.taylor.local import run_locally
from blindfit.algorithms.protocols.taylor.messages import (
    Calibration,
    CalibrationSums,
    ChainedResiduals,
    GridChoice,
    GridFigures,
    HoldOutLabels,
    HoldOutLoss,
    MaskedGradient,
    NoisyGradient,
    PartialLoss,
    PartialSums,
    Residuals,
    RowFactors,
    TaylorKey,
    Verdict,
)
from blindfit.algorithms.protocols.taylor.needed import randomisers_needed
from blindfit.algorithms.protocols.taylor.parameters import DataSeat, KeySeat, TaylorParameters, check_parameters
from blindfit.algorithms.protocols.taylor.roles import (
    Progress,
    run_data_party,
    run_key_exchange,
    run_key_node,
    share_key,
)
from blindfit.algorithms.protocols.taylor.selection import Folds, select_data_party, select_key_node
from blindfit.algorithms.protocols.taylor.steps import gradient_noise
from blindfit.algorithms.statistics.vertical.selection import Selected

__all__ = [
    "TABLE",
    "DataSeat",
    "Folds",
    "KeySeat",
    "Progress",
    "Selected",
    "TaylorParameters",
    "check_parameters",
    "gradient_noise",
    "randomisers_needed",
    "run_data_party",
    "run_key_exchange",
    "run_key_node",
    "run_locally",
    "select_data_party",
    "select_key_node",
    "share_key",
]

_CLASS_WEIGHTS, _HOLD_OUT = "class weights", "a hold-out loss"
_CALIBRATED = "calibration after linkage"
_SELECTS = "[select]"

TABLE = Table(
    "taylor",
    Arrow("0", KEY, DATA, TaylorKey, ONCE, "the public key"),
    Arrow("0", ACTIVE, PASSIVE, RowFactors, ONCE, CIPHERTEXTS, _CLASS_WEIGHTS),
    Arrow("0", ACTIVE, PASSIVE, HoldOutLabels, ONCE, CIPHERTEXTS, _HOLD_OUT),
    Arrow("1", ACTIVE, PASSIVE, ChainedResiduals, BATCH, CIPHERTEXTS),
    Arrow("2", PASSIVE, PASSIVE, ChainedResiduals, BATCH, CIPHERTEXTS, "two passive parties or more"),
    Arrow("2", PASSIVE, DATA, Residuals, BATCH, CIPHERTEXTS),
    Arrow("3", DATA, KEY, MaskedGradient, BATCH, "a gradient plus a uniform mask"),
    Arrow("4", KEY, DATA, NoisyGradient, BATCH, "own noisy gradient"),
    Arrow("6", DATA, PASSIVE, PartialLoss, EPOCH, CIPHERTEXTS, _HOLD_OUT),
    Arrow("6", PASSIVE, KEY, HoldOutLoss, EPOCH, "the hold-out loss", _HOLD_OUT),
    Arrow("7", KEY, DATA, Verdict, EPOCH, "go on or stop", _HOLD_OUT),
    Arrow("7", KEY, ACTIVE, GridFigures, ONCE, "a rounded loss of each grid point", _SELECTS),
    Arrow("7", KEY, DATA, GridChoice, ONCE, "the grid point with the lowest loss", _SELECTS),
    Arrow("8", DATA, PASSIVE, PartialSums, ONCE, CIPHERTEXTS, _CALIBRATED),
    Arrow("8", PASSIVE, KEY, CalibrationSums, ONCE, "five sums over matches", _CALIBRATED),
    Arrow("9", KEY, ACTIVE, Calibration, ONCE, "slope and offset", _CALIBRATED),
)
