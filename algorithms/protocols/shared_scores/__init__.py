"""Joint prediction under a model that no party has: scores in secret shares, revealed only to the active party.

Source: as falcon, which provides the seats, the dealing and the checks.
Model: any number of data parties may deviate and collude, all but one, if the training had MACs; without MACs they are
    believed to follow the protocol. The key node deals, under seeds of this session only: it is trusted to deal
    rightly, to forget, and to collude with nobody. Rows were aligned before (align).

    step  who        does                                                              sends
    0     each P_j   announces its part of the model. If each party has weights of     ModelTold to all others.
                     its own, scores are summed (predict), and this ends here.
    1     key node   draws a seed for each data party; the MAC key is a sum            DealtSeed.
    2     key node   follows the program: what the sums of the expanded seeds lack     Correction to the active party.
    3     each P_j   its kept shares of the weights, and its rows, less masks          MaskedInput to every other.
    4     each P_j   X_j w_j for each j in shares; a passive party's part clipped      OpenedShares to every other.
                     and rounded as announced. All other openings are masked, except
                     one bit: whether all put in the shares that they kept.
    5     each P_j   before that bit and the scores, and after: as in a training       CheckCommitment, CheckSeed,
                                                                                       ResidueCommitment, Residue.
    6     active     the scores, from under a mask that only it knows                  nothing.

Departures from the paper: as falcon.
Learns: the active party learns the scores. Scores of rows that it knows reveal something about the weights: about its
    own columns' weights and, with one passive party, about that party's part of each rounded score. The passive parties
    learn nothing. The key node learns the numbers of rows and columns.
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
        "masked values, whether all put in the shares that they kept, the active party's scores",
        SHARED,
    ),
    *arrows_of_check("5", 'a model in shares, of a training with falcon.security = "malicious"'),
)
