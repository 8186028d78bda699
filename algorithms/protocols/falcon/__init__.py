"""Vertical logistic or linear regression in secret shares: nobody sees a gradient, a score or a residual.

Source: Damgard, Keller, Larraia, Pastro, Scholl, Smart 2013 (SPDZ) for authenticated shares; Mohassel, Zhang 2017 for
    matrices that are masked once; Wu, Cai, Xiao, Chen, Ooi 2020 (Falcon) for the task.
Model: any number of data parties may deviate and collude, all but one, with MACs ("malicious"); without them
    ("semi-honest") they are believed to follow the protocol. The key node deals what the shares need beforehand: it is
    trusted to deal rightly, to forget, and to collude with nobody. Trains on rows that were aligned before (align).

    step  who        does                                                              sends
    0     key node   draws a seed for each data party; the MAC key is a sum            DealtSeed.
    1     key node   ahead of need, follows the program: adds what the sums of the     Correction to the active party.
                     expanded seeds lack.
    2     each P_j   E_j = X_j - U_j, the active party y - u, under a mask that only   MaskedInput to every other.
                     it knows.
    2     each P_j   under differential privacy, before each epoch: its noise          MaskedInput to every other.
    2     active     if the job has a grid, after steps 3 and 4 of all folds of all    ChosenPoint to all.
                     points: the best point. It learns the points' figures as in
                     step 7.
    3     each P_j   a step's four rounds (sharing/descent.py), and all other          OpenedShares to every other.
                     openings: under masks of its own, except for step 5's bits.
                     With MACs, before the first step, also whether every label is
                     0 or 1, and class weights are small.
    4     each P_j   each epoch, and around each revealed value: compares the          CheckCommitment, CheckSeed,
                     openings; coefficients, then MAC residues, by commit and reveal.  ResidueCommitment, Residue.
    5     active     each epoch: two bits, was all in range, does training end here.   GoesOn to the key node.
                     The loss of the validation rows decides the second.
    6     each P_j   its weights, rounded, from under a mask that only it knows        nothing.
    7     active     the figures of the weights on the test rows, likewise             nothing.
                     (Under differential privacy: neither step 5's bits nor step 7.)

    With encrypted weights ("threshold", semi-honest) rows stay where they are. Weights stay at their parties too,
    encrypted under a key of which each data party has a share:

    step  who        does                                                              sends
    0     key node   makes the key, deals its shares, and forgets both                 DealtKeyShare.
    3     each P_j   [[X_j w_j]] and masks, packed, to be added up and decrypted       MaskedSums, PartialDecryptions.
                     together to shares (conversion.py); residuals in shares           OpenedShares.
    3     each P_j   masks under which residuals become ciphertexts; moves its [[w_j]] EncryptedMasks.

    Every dealt item has the session's name and its number in its own name: no mask is used twice (MATH 4.5).

Departures from the paper: preprocessing by a dealer; the sigmoid and the log loss by one opening (MATH 4.7). Departures
    from its threshold Paillier: a party's scores and its masks are one ciphertext, packed, and all parties add them up,
    so no score is sent. Residuals, not predictions, become ciphertexts. Weights are opened from shares, rounded.
Learns: each party learns its own rounded weights, and after each epoch whether to go on, and why not. The active party
    learns one figure of each grid point. For the test rows it learns the confusion matrix, log loss, AUC and KS, or the
    sum of squared errors, all rounded. The key node learns sizes and when training ends. Labels are revealed by opened
    weights, by figures of grid points and by the end of training; this is counted (docs/explanation/falcon.md).
"""

from __future__ import annotations

from blindfit.algorithms.protocols.falcon.check import arrows_of_check
from blindfit.algorithms.protocols.falcon.conversion import HIDING_BITS
from blindfit.algorithms.protocols.falcon.encrypted_descent import EncryptedScales, EncryptedState
from blindfit.algorithms.protocols.falcon.figures import TestErrors, TestFigures
from blindfit.algorithms.protocols.falcon.messages import (
    ChosenPoint,
    Correction,
    DealtKeyShare,
    DealtSeed,
    EncryptedMasks,
    GoesOn,
    MaskedInput,
    MaskedSums,
    OpenedShares,
    PartialDecryptions,
)
from blindfit.algorithms.protocols.falcon.noise import Noise
from blindfit.algorithms.protocols.falcon.parameters import (
    LEAST_TEST_ROWS,
    WEIGHT_BOUND,
    FalconParameters,
    bits_of_opened_weight,
)
from blindfit.algorithms.protocols.falcon.program import Held, Model, Progress, Trained
from blindfit.algorithms.protocols.falcon.roles import (
    check_parameters,
    deal_key,
    deal_seeds,
    receive_key_share,
    receive_seed,
    run_data_party,
    run_key_node,
)
from blindfit.algorithms.protocols.falcon.seats import ModelState
from blindfit.algorithms.protocols.table import ACTIVE, CHUNKS, DATA, EPOCH, KEY, ONCE, PASSIVE, ROUNDS, Arrow, Table
from blindfit.algorithms.statistics.vertical.selection import Selected

__all__ = [
    "HIDING_BITS",
    "LEAST_TEST_ROWS",
    "TABLE",
    "WEIGHT_BOUND",
    "EncryptedScales",
    "EncryptedState",
    "FalconParameters",
    "Held",
    "Model",
    "ModelState",
    "Noise",
    "Progress",
    "Selected",
    "TestErrors",
    "TestFigures",
    "Trained",
    "bits_of_opened_weight",
    "check_parameters",
    "deal_key",
    "deal_seeds",
    "receive_key_share",
    "receive_seed",
    "run_data_party",
    "run_key_node",
]

_ENCRYPTED = 'falcon.backend = "threshold"'
_SELECTS = "[select]"

TABLE = Table(
    "falcon",
    Arrow("0", KEY, DATA, DealtSeed, ONCE, "nothing: random bits", "a new training"),
    Arrow(
        "0",
        KEY,
        DATA,
        DealtKeyShare,
        ONCE,
        "the public key, and a share of the private key: nothing without all shares",
        f"a new training, {_ENCRYPTED}",
    ),
    Arrow("1", KEY, ACTIVE, Correction, CHUNKS, "nothing: uniform elements"),
    Arrow("2", DATA, DATA, MaskedInput, CHUNKS, "nothing: uniform elements"),
    Arrow(
        "3",
        DATA,
        DATA,
        OpenedShares,
        ROUNDS,
        "masked values; a bit of labels, one of class weights, two per epoch; own weights; the active party's figures",
    ),
    Arrow("3", DATA, DATA, EncryptedMasks, ROUNDS, "nothing: ciphertexts", _ENCRYPTED),
    Arrow("3", DATA, DATA, MaskedSums, ROUNDS, "nothing: ciphertexts", _ENCRYPTED),
    Arrow("3", DATA, DATA, PartialDecryptions, ROUNDS, "masked sums", _ENCRYPTED),
    *arrows_of_check("4", 'falcon.security = "malicious"'),
    Arrow("2", ACTIVE, PASSIVE, ChosenPoint, ONCE, "the grid point with the best figure", _SELECTS),
    Arrow("2", ACTIVE, KEY, ChosenPoint, ONCE, "the grid point with the best figure", _SELECTS),
    Arrow("5", ACTIVE, KEY, GoesOn, EPOCH, "whether training goes on"),
)
