"""Joint prediction under a model that nobody holds: scores in secret shares, revealed to the active party alone.

Source: as falcon, whose seats, dealing and checks these are.
Model: any number of data parties may deviate and collude, all but one, where the training had MACs; without them they
    are believed to follow the protocol. The key node deals, under seeds of this session alone: it is trusted to deal
    rightly, to forget, and to collude with nobody. Rows were aligned before (align).

    step  who        does                                                              sends
    0     each P_j   says what its part of the model is; where each has weights of     ModelTold to all others
                     its own, scores are summed (predict), and this ends here
    1     key node   draws a seed for each data party; the MAC key is a sum            DealtSeed
    2     key node   as the program asks: what the sums of the expanded seeds lack     Correction to the active party
    3     each P_j   what it kept of the weights, and its rows, less masks             MaskedInput to every other
    4     each P_j   X_j w_j for each j in shares; a passive party's clipped and       OpenedShares to every other
                     rounded as its part says; all else that is opened is masked, but
                     for one bit: whether all put in what they kept
    5     each P_j   before that bit and the scores, and after: as in a training       CheckCommitment, CheckSeed
                                                                                       ResidueCommitment, Residue
    6     active     the scores, from under a mask that it alone knows                 --

Departures from the paper: as falcon.
Learns: the active party, the scores; of weights what scores of rows that it knows tell of its own columns', and with
    one passive party, of what that party's part of each rounded score is. The passive parties, nothing. The key node,
    how many rows and columns there are.
"""

from __future__ import annotations

from blindfit.algorithms.protocols.falcon.check import arrows_of_check
from blindfit.algorithms.protocols.falcon.messages import Correction, DealtSeed, MaskedInput, OpenedShares
from blindfit.algorithms.protocols.shared_scores.messages import ModelTold
from blindfit.algorithms.protocols.shared_scores.parameters import ScoringParameters, parameters_of
from blindfit.algorithms.protocols.shared_scores.program import HeldRows
from blindfit.algorithms.protocols.shared_scores.roles import hear_at_key_node, run_data_party, run_key_node, tell_all
from blindfit.algorithms.protocols.table import ACTIVE, CHUNKS, DATA, KEY, ONCE, ROUNDS, VERTICAL, Arrow, Table

__all__ = [
    "TABLE",
    "HeldRows",
    "ModelTold",
    "ScoringParameters",
    "hear_at_key_node",
    "parameters_of",
    "run_data_party",
    "run_key_node",
    "tell_all",
]

SHARED = "a model in shares"

TABLE = Table(
    "shared scores",
    Arrow("0", DATA, VERTICAL, ModelTold, ONCE, "whether the model is in shares; columns, scales, bits of a score"),
    Arrow("1", KEY, DATA, DealtSeed, ONCE, "nothing: random bits", SHARED),
    Arrow("2", KEY, ACTIVE, Correction, CHUNKS, "nothing: uniform elements", SHARED),
    Arrow("3", DATA, DATA, MaskedInput, CHUNKS, "nothing: uniform elements", SHARED),
    Arrow(
        "4",
        DATA,
        DATA,
        OpenedShares,
        ROUNDS,
        "masked values, whether all put in what they kept, the active party's scores",
        SHARED,
    ),
    *arrows_of_check("5", 'a model in shares, of a training with falcon.security = "malicious"'),
)
