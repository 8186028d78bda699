"""What gradients would give away: each party shortens rows of its own that stand out, and the rest is checked before a
training, on what is public, as a refusal that hangs on rows would tell of them.

A party sees X_S^T w of each batch S: k numbers about s residuals, -b y + n + 2 a z of others. Every rule keeps k small
beside s, as a whole or row by row, or keeps what is seen from being exact. docs/gradients.md has the attacks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.statistics.taylor import label_bits, leverages

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Flag = Literal["no-jitter", "no-gradient-noise", "leverage", "label-bits", "small-hold-out", "class-weights"]

# At leverage h and jitter .25 an otherwise unknown label is guessed right with probability
# Phi(h / sqrt(h (1 - h) + h / 4)): .69 at .25, .79 at .5, .89 at .75, .98 at 1.
MOST_LEVERAGE = 0.5
# Lattices need nearly as many bits of equations as there are labels; a quarter leaves them none to find.
MOST_BITS_PER_ROW = 1 / 4
# k columns show k / s of the residuals' variance: a quarter is AUC .76 on labels that nothing else tells, and 4 k
# rows are what label bits ask for as well (4.6 k at jitter .25).
LEAST_ROWS_PER_COLUMN = 4
# Of slots that match: a party's rows and labels are hidden by so many of a batch, unless a flag says more.
MOST_MATCH_RATE = 0.5
# In units of the features, on a batch's sum. After 50 epochs a partner of 20 columns has 20 bits, at worst of 20 data
# sets 27, about a binary column of 128 rows that tells the label in 19 of 20; with a tenth of it 74, at worst 86.
LEAST_NOISE = 1.0
# Statistics of fewer than 11 persons are commonly not published; a hold-out loss is one, told to the key node, and so
# is whether it has fallen, told to all who train in shares.
LEAST_HOLD_OUT_ROWS = 11
# Two rows that are alone in a direction have leverage .5 each, however short they are, and a little more from the
# others: without slack they would be shortened to nothing. (.80 in place of .79.)
SLACK = 0.02
ALONE = 1e-9  # 1 - leverage below this is float error
MOST_ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class Leak:
    """What is unsafe.

    Attributes:
        rule: the check that found it.
        text: one line: what is unsafe, and what to do. No id, no value of a column.
        flag: of taylor.unsafe, which allows it.
    """

    rule: str
    text: str
    flag: Flag


# --- a party's own rows -------------------------------------------------------------------------------------


def _effective(found: Floats, match_rate: float) -> Floats:
    """Leverage when the other rows' x x^T counts only in part: q / (q + rate), q = h / (1 - h)."""
    if not 0 < match_rate <= 1:
        raise RangeError(f"match_rate must be above 0 and at most 1, not {match_rate}")
    return np.asarray(found / (found + match_rate * np.maximum(1 - found, 0.0) + (found == 0)))


def shorten_rows(
    columns: Floats, batches: Sequence[Rows], *, most: float = MOST_LEVERAGE, match_rate: float = 1.0
) -> tuple[Floats, int]:
    """The columns with every row that stands out in its batch shortened until it no longer does; how many were.

    Such a row keeps its direction; one that is alone in a direction becomes 0, and so does a whole batch of which all
    rows stand out, which `check_rows_against_features` refuses beforehand. It looks at this party's columns alone, so
    it tells nothing of labels.

    Args:
        columns: (n, k) of this party, as it trains on them.
        match_rate: the share of rows that count (a mask hides which): the others do not hide a row.

    Source: Cohen, Lee, Musco, Musco, Peng, Sidford 2015 (arXiv 1408.5099), Theorem 2: at most k / most rows need it.
        Bounded influence, as in Mallows' regression.
    """
    short = columns.copy()
    for batch in batches:
        short[batch] *= _factors(columns[batch], most, match_rate)[:, None]
    return short, int((short != columns).any(axis=1).sum())


def _limit(most: float, match_rate: float) -> float:
    """Of q = h / (1 - h)."""
    return most * match_rate / (1 - most)


def _factors(columns: Floats, most: float, match_rate: float) -> Floats:
    """(rows,) from 0 to 1; all 0 where others would be nearly 0.

    A row of q = h / (1 - h) that is made c times as long has c^2 q. Each that stands out goes to the limit, again and
    again, because shortening one makes others stand out.
    """
    limit = _limit(most, match_rate)
    factors = np.ones(len(columns))
    for _ in range(MOST_ROUNDS):
        found = leverages(columns * factors[:, None])
        out = _effective(found, match_rate) > most + SLACK
        if not out.any():
            return factors
        rest = 1 - found[out]
        alone = rest < ALONE
        if not alone.any() and found.sum() > len(columns) * limit / (1 + limit):  # their sum is the rank
            break
        factors[out] *= np.where(alone, 0.0, np.sqrt(limit * np.maximum(rest, 0.0) / np.maximum(found[out], ALONE)))
    return np.zeros(len(columns))


def check_noise(noise_std: float, *, least: float = LEAST_NOISE) -> list[Leak]:
    """Of the key node's noise on each coordinate of a batch's sum; whether a party has a column of few values that it
    would show is not asked, as the answer would tell of the column.
    """
    if noise_std >= least:
        return []
    return [
        Leak(
            "gradient noise",
            f"with noise of {noise_std:g} a partner could read a column of few values from differences of gradients:"
            f" set taylor.gradient_noise to {least:g} or more",
            "no-gradient-noise",
        )
    ]


# --- what is public -----------------------------------------------------------------------------------------


def check_label_bits(n_columns: int, batch_rows: int, jitter: float) -> list[Leak]:
    """`n_columns` of all passive parties together, who may put what they see together; the smallest batch's rows that
    a mask leaves.
    """
    if jitter <= 0:
        return [
            Leak(
                "label bits",
                "without jitter the first gradients give away every label of a batch: set taylor.jitter, such as 0.25",
                "no-jitter",
            )
        ]
    bits, most = label_bits(n_columns, jitter), batch_rows * MOST_BITS_PER_ROW
    if bits <= most:
        return []
    needed = math.ceil(bits / MOST_BITS_PER_ROW)
    return [
        Leak(
            "label bits",
            f"{n_columns} passive columns give away up to {bits:.0f} bits about the {batch_rows} labels of a batch (at"
            f" most {most:.0f}): take batches of at least {needed} rows that count, or a larger taylor.jitter",
            "label-bits",
        )
    ]


def label_share(n_columns: int, batch_rows: int, jitter: float) -> float:
    """Bits that a layout of batches gives away of a label, at most: one without jitter."""
    return min(1.0, label_bits(n_columns, jitter) / batch_rows) if jitter > 0 else 1.0


def check_label_shares(before: Sequence[float], share: float) -> list[Leak]:
    """Of all layouts of batches that the same labels are trained in; the text is the same for any that were before, as
    others are told it, who need not have been there.
    """
    if sum(before) + share <= MOST_BITS_PER_ROW:
        return []
    return [
        Leak(
            "label bits",
            f"with other layouts of batches before, this one could give away more than {MOST_BITS_PER_ROW} bits of "
            "each label: keep parties, fractions and batch_rows, or set privacy.epsilon",
            "label-bits",
        )
    ]


def label_auc(n_columns: int, batch_rows: int, jitter: float) -> float:
    """AUC of the best linear guess, from one kept batch, at labels that nothing else tells; .5 is a coin.

    Label and noise project on n_columns of batch_rows dimensions: the guess of row i has mean h y_i and variance
    h (1 - h) + 4 jitter^2 h, with h = n_columns / batch_rows.
    """
    from scipy.special import ndtr

    h = min(1.0, n_columns / batch_rows)
    variance = h * (1 - h) + 4 * jitter**2 * h
    return float(ndtr(math.sqrt(2) * h / math.sqrt(variance))) if variance else 1.0 if h else 0.5


def check_rows_against_features(batch_rows: int, n_columns: int, *, match_rate: float = 1.0) -> list[Leak]:
    """Of one party: with nearly as many columns as rows its gradient is the residuals themselves.

    Leverages add up to the rank: so many rows can have one at the limit each, where only a share of them counts.
    """
    at_limit = _limit(MOST_LEVERAGE, match_rate)
    needed = math.ceil(max(LEAST_ROWS_PER_COLUMN, (1 + at_limit) / at_limit) * n_columns)
    if batch_rows >= needed:
        return []
    return [
        Leak(
            "rows against features",
            f"{n_columns} columns of one party are too many for a batch of {batch_rows} rows: take batches of at least"
            f" {needed} rows, or fewer columns",
            "leverage",
        )
    ]


def check_match_rate(match_rate: float, *, linked: bool) -> list[Leak]:
    """Whoever proposes a job says it, and the key node alone knows whether it is so."""
    if not linked or match_rate <= MOST_MATCH_RATE:
        return []
    text = f"align.match_rate = {match_rate:g} is nobody's to know, and where fewer slots match rows stand out"
    return [Leak("match rate", f"{text}: take at most {MOST_MATCH_RATE:g}", "leverage")]


def check_hold_out(rows: int) -> list[Leak]:
    """The key node reads the loss of the hold-out rows in every epoch; 0 rows have none."""
    return _few(rows, "hold-out", "the key node would see the loss", "taylor.validation_fraction")


def check_test(rows: int) -> list[Leak]:
    """The coordinator's report has the figures of the test rows; 0 rows have none."""
    return _few(rows, "test rows", "the coordinator would see the figures", "split.test_fraction")


def _few(rows: int, rule: str, who: str, option: str) -> list[Leak]:
    if rows == 0 or rows >= LEAST_HOLD_OUT_ROWS:
        return []
    text = f"{who} of only {rows} rows (at least {LEAST_HOLD_OUT_ROWS}): take a larger {option}, or 0"
    return [Leak(rule, text, "small-hold-out")]


def check_class_weights(weighted: bool) -> list[Leak]:
    """A residual is c (z/4 - y/2 + jitter): its weight c follows from the label, and multiplies the score, which moves.
    In differences of gradients jitter cancels, and labels stay.
    """
    if not weighted:
        return []
    text = "with class weights differences of gradients show labels, whatever jitter is: leave taylor.class_weights out"
    return [Leak("class weights", f"{text}, and lower taylor.threshold", "class-weights")]
