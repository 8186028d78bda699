"""Leaks of gradients. Each party shortens its own rows that stand out; the rest is checked before a training.

The checks use only public facts: a refusal that depended on rows would reveal something about them.

A party sees X_S^T w of each batch S: k numbers about s residuals, -b y + n + 2 a z of others. Every rule keeps k small
compared with s, as a whole or row by row, or keeps the visible numbers from being exact.
docs/explanation/gradient_leaks.md has the attacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.held_out import FRACTIONS, hold_out_more
from blindfit.algorithms.statistics.vertical.grid import MOST_BATCH_ROWS, min_batch_rows
from blindfit.algorithms.statistics.vertical.loss import label_bits, leverages
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan, rows_of_batches

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Flag = Literal["no-jitter", "no-gradient-noise", "leverage", "label-bits", "small-hold-out", "class-weights"]

# At leverage h and jitter 0.25 an otherwise unknown label is guessed right with probability
# Phi(h / sqrt(h (1 - h) + h / 4)): 0.69 at 0.25, 0.79 at 0.5, 0.89 at 0.75, 0.98 at 1.
MOST_LEVERAGE = 0.5
# Lattices need nearly as many bits of equations as there are labels; a quarter leaves them none to find.
MOST_BITS_PER_ROW = 1 / 4
# k columns show k / s of the residuals' variance. A quarter is AUC 0.76 on labels that nothing else reveals, and label
# bits ask for 4 k rows as well (4.6 k at jitter 0.25).
LEAST_ROWS_PER_COLUMN = 4
# Share of slots that match: a party's rows and labels are hidden by so many of a batch, unless a flag allows more.
MOST_MATCH_RATE = 0.5
# In units of the features, on a batch's sum. Take a binary column of 128 rows that reveals the label in 19 of 20. After
# 50 epochs a partner of 20 columns has 20 bits about it, at worst of 20 data sets 27. With a tenth of this noise the
# partner has 74 bits, at worst 86.
LEAST_NOISE = 1.0
# Statistics of fewer than 11 persons are commonly not published. A hold-out loss is such a statistic, which the key
# node learns; whether it has fallen is another, which all parties of a training in shares learn.
LEAST_HOLD_OUT_ROWS = 11
# Two rows that have a direction to themselves have leverage 0.5 each, however short they are, and a little more from
# the others: without slack they would be shortened to nothing. (0.80 in place of 0.79.)
SLACK = 0.02
ALONE = 1e-9  # 1 - leverage below this is float error
MOST_ROUNDS = 1000
LABEL_BITS = "label bits"
MOST_JITTER = 2.0  # that a job may request


@dataclass(frozen=True, slots=True)
class Leak:
    """Something unsafe that follows from public facts.

    Attributes:
        rule: name of the check that found it.
        text: one line that describes what is unsafe, without an id or a value of a column.
        advice: one line that describes what to change.
        flag: value of taylor.unsafe that allows it.
        party: party whose columns it concerns; empty if it concerns the whole job.
    """

    rule: str
    text: str
    advice: str
    flag: Flag
    party: str = ""

    def __str__(self) -> str:
        return f'{self.text}: {self.advice}; taylor.unsafe = ["{self.flag}"] allows it'


# --- a party's own rows -------------------------------------------------------------------------------------


def _effective(found: Floats, match_rate: float) -> Floats:
    """Return leverage if the other rows' x x^T counts only in part: q / (q + rate), q = h / (1 - h)."""
    if not 0 < match_rate <= 1:
        raise RangeError(f"match_rate must be above 0 and at most 1, not {match_rate}")
    return np.asarray(found / (found + match_rate * np.maximum(1 - found, 0.0) + (found == 0)))


def shorten_rows(
    columns: Floats, batches: Sequence[Rows], *, most: float = MOST_LEVERAGE, match_rate: float = 1.0
) -> tuple[Floats, int]:
    """Shorten every row that stands out in its batch until it no longer does; return the columns and the count.

    Such a row keeps its direction. A row that has a direction to itself becomes 0. A batch of which all rows stand out
    becomes 0 too; `check_rows_against_features` refuses it beforehand. The function uses only this party's columns,
    so it reveals nothing about labels.

    Args:
        columns: (n, k) of this party, as it trains on them.
        match_rate: share of rows that count (a mask hides which): the others do not hide a row.

    Source: Cohen, Lee, Musco, Musco, Peng, Sidford 2015 (arXiv 1408.5099), Theorem 2: at most k / most rows need it.
        Bounded influence, as in Mallows' regression.
    """
    short = columns.copy()
    for batch in batches:
        short[batch] *= _factors(columns[batch], most, match_rate)[:, None]
    return short, int((short != columns).any(axis=1).sum())


def _limit(most: float, match_rate: float) -> float:
    """Return the limit of q = h / (1 - h)."""
    return most * match_rate / (1 - most)


def _factors(columns: Floats, most: float, match_rate: float) -> Floats:
    """Return factors (rows,) from 0 to 1; all 0 if other factors would be nearly 0.

    A row of q = h / (1 - h) that is multiplied by c has c^2 q. Each row that stands out goes to the limit, again and
    again, because shortening one row makes others stand out.
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


# --- public facts -----------------------------------------------------------------------------------------


def check_noise(noise_std: float, *, least: float = LEAST_NOISE) -> list[Leak]:
    """Check the key node's noise on each coordinate of a batch's sum.

    No check asks whether a party has a column of few values, which little noise would reveal: the answer would reveal
    something about the column.
    """
    if noise_std >= least:
        return []
    return [
        Leak(
            "gradient noise",
            f"with noise of {noise_std:g} a partner could read a column of few values from differences of gradients",
            f"set taylor.gradient_noise = {least:g}, or more",
            "no-gradient-noise",
        )
    ]


def check_jitter(jitter: float) -> list[Leak]:
    """Check that labels have jitter."""
    if jitter > 0:
        return []
    text = "without jitter the first gradients reveal every label of a batch"
    return [Leak(LABEL_BITS, text, "set taylor.jitter = 0.25", "no-jitter")]


def rows_that_count(batch_rows: int, match_rate: float) -> int:
    """Return the least number of rows of a batch that match, as far as parties other than the key node know."""
    return max(1, int(batch_rows * match_rate))


def rows_for_features(n_columns: int, match_rate: float = 1.0) -> int:
    """Return the number of rows that each batch needs for the columns of one party.

    With nearly as many columns as rows its gradient is the residuals themselves. Leverages add up to the rank: so many
    rows can have one at the limit each, if only a share of them counts.
    """
    at_limit = _limit(MOST_LEVERAGE, match_rate)
    return math.ceil(max(LEAST_ROWS_PER_COLUMN, (1 + at_limit) / at_limit) * n_columns)


def rows_for_labels(n_columns: int, jitter: float, match_rate: float = 1.0, cross: float = 0.5) -> int:
    """Return the number of rows that each batch needs for the columns of all passive parties, which may collude.

    Only the share `match_rate` of the rows has labels that count.
    """
    counted = math.ceil(label_bits(n_columns, jitter, cross) / MOST_BITS_PER_ROW)
    rows = max(1, int(counted / match_rate) - 1)
    while rows_that_count(rows, match_rate) < counted:
        rows += 1
    return rows


@dataclass(frozen=True, slots=True)
class BatchRules:
    """The rules about the rows of a batch that a job must pass, all at once.

    Attributes:
        match_rate: share of rows that count.
        jitter: standard deviation of the labels' jitter.
        cross: b of the loss, the factor of labels.
        features: True if the columns of each party are checked. A flag of the job may allow any number.
        labels: True if the columns of all passive parties are checked. A flag, or label DP, takes the rule's place.
    """

    match_rate: float
    jitter: float
    features: bool = True
    labels: bool = True
    cross: float = 0.5

    def count_needed(self, columns: Sequence[int]) -> int:
        """Return the number of rows that each batch needs.

        Args:
            columns: number of columns of each party, the active party first.
        """
        needed = [rows_for_features(own, self.match_rate) for own in columns] if self.features else []
        if self.labels and self.jitter > 0:
            needed.append(rows_for_labels(sum(columns[1:]), self.jitter, self.match_rate, self.cross))
        return max(needed, default=1)


def check_batches(columns: Mapping[str, int], plan: RowPlan, rules: BatchRules) -> list[Leak]:
    """Check the smallest batch against the columns of each party, and against those of all passive parties together.

    Args:
        columns: number of columns of each party, the active party first.
    """
    return [*_check_features(columns, plan, rules), *_check_labels(columns, plan, rules)]


def _check_features(columns: Mapping[str, int], plan: RowPlan, rules: BatchRules) -> list[Leak]:
    leaks, smallest = [], min(map(len, plan.batches))

    def count_needed_with(party: str, own: int) -> int:
        return rules.count_needed([own if name == party else count for name, count in columns.items()])

    for party, own in columns.items():
        if smallest >= rows_for_features(own, rules.match_rate):
            continue
        fewer = _fewer_columns(own, plan, partial(count_needed_with, party))
        advice = _larger_batches(plan, count_needed_with(party, own), fewer)
        text = f"{party} has {own} columns, which are too many for a batch of {smallest} rows"
        leaks.append(Leak("rows against features", text, advice, "leverage", party))
    return leaks


def _check_labels(columns: Mapping[str, int], plan: RowPlan, rules: BatchRules) -> list[Leak]:
    passive, jitter, rate = sum(list(columns.values())[1:]), rules.jitter, rules.match_rate
    rows = rows_that_count(min(map(len, plan.batches)), rate)
    bits, most = label_bits(passive, jitter, rules.cross), rows * MOST_BITS_PER_ROW
    if jitter <= 0 or bits <= most:
        return []
    more = _more_jitter(passive, rows_that_count(_one_batch(plan), rate), rules)
    fewer = _fewer_columns(passive, plan, lambda count: rows_for_labels(count, jitter, rate, rules.cross))
    needed = rules.count_needed(list(columns.values()))
    advice = _larger_batches(plan, needed, more + fewer, _more_jitter(passive, rows, rules))
    text = (
        f"the {passive} columns of all passive parties could reveal {bits:.0f} bits about the {rows} labels of a "
        f"batch (at most {most:.0f})"
    )
    return [Leak(LABEL_BITS, text, advice, "label-bits")]


def _larger_batches(plan: RowPlan, needed: int, with_one: Sequence[str], instead: Sequence[str] = ()) -> str:
    """Return the changes with which every batch has `needed` rows.

    Args:
        with_one: additional changes, if no batch size is enough, but one batch of all rows would be.
        instead: other changes, if a batch size is enough.
    """
    train = len(plan.train)
    if batch_rows := min_batch_rows(train, needed):
        return " or ".join([f"set taylor.batch_rows = {batch_rows}", *instead])
    largest = max(2, min(train, MOST_BATCH_ROWS))
    ways = [f"set taylor.batch_rows = {largest} and {change}" for change in with_one]
    ways += [f"set {change}" for change in _fewer_test_rows(plan, needed)]
    return "; or ".join([f"no taylor.batch_rows is enough for {train} training rows", *ways, "use more rows"])


def _one_batch(plan: RowPlan) -> int:
    """Return the rows of the smallest batch if a job asks for the largest batches."""
    return min(rows_of_batches(len(plan.train), min(len(plan.train), MOST_BATCH_ROWS)))


def _fewer_columns(n_columns: int, plan: RowPlan, needed: Callable[[int], int]) -> list[str]:
    """Return the number of columns with which the largest batches pass; nothing if no number, or all, would pass."""
    room = _one_batch(plan)
    most = next((fewer for fewer in range(n_columns, 0, -1) if needed(fewer) <= room), 0)
    return [f"use at most {most} of these columns"] if 0 < most < n_columns else []


def _more_jitter(n_columns: int, rows: int, rules: BatchRules) -> list[str]:
    """Return the jitter with which a batch of so many rows passes, in steps of 0.01; nothing if no jitter would."""
    squeezed = 2.0 ** min(2 * MOST_BITS_PER_ROW * rows / n_columns, 1000.0) - 1
    more = math.ceil(100 * rules.cross / math.sqrt(squeezed)) / 100 if squeezed > 0 else math.inf
    while more <= MOST_JITTER and label_bits(n_columns, more, rules.cross) > rows * MOST_BITS_PER_ROW:
        more = round(more + 0.01, 2)
    return [f"taylor.jitter = {more:g}"] if rules.jitter < more <= MOST_JITTER else []


def _fewer_test_rows(plan: RowPlan, needed: int) -> list[str]:
    """Return a fraction of test rows and a batch size with which enough rows are trained on, if they exist."""
    rows = len(plan.train) + len(plan.validation) + len(plan.test)
    to_spare = rows - len(plan.validation) - needed
    if not len(plan.test) or to_spare < 0:
        return []
    fraction = max(fraction for fraction in FRACTIONS if round(rows * fraction) <= to_spare)
    fraction = fraction if round(rows * fraction) >= LEAST_HOLD_OUT_ROWS else 0.0
    batch_rows = min_batch_rows(rows - len(plan.validation) - round(rows * fraction), needed)
    return [f"split.test_fraction = {fraction:g} and taylor.batch_rows = {batch_rows}"] if batch_rows else []


def too_many_label_bits() -> Leak:
    """Return the leak of a layout of batches that does not fit together with earlier ones.

    The text is the same for all earlier layouts: other parties read it, and may not have been there.
    """
    return Leak(
        LABEL_BITS,
        f"with earlier trainings on the same people, this one could reveal more than {MOST_BITS_PER_ROW} bits "
        "of each label",
        "keep the snapshots, parties, fractions and taylor.batch_rows of an earlier training, or set privacy.epsilon",
        "label-bits",
    )


def label_auc(n_columns: int, batch_rows: int, jitter: float) -> float:
    """Return the AUC of the best linear guess from one kept batch, at labels that nothing else reveals.

    Label and noise project on n_columns of batch_rows dimensions: the guess of row i has mean h y_i and variance
    h (1 - h) + 4 jitter^2 h, with h = n_columns / batch_rows.
    """
    from scipy.special import ndtr

    h = min(1.0, n_columns / batch_rows)
    variance = h * (1 - h) + 4 * jitter**2 * h
    return float(ndtr(math.sqrt(2) * h / math.sqrt(variance))) if variance else 1.0 if h else 0.5


def check_match_rate(match_rate: float, *, linked: bool) -> list[Leak]:
    """Check the match rate of a job, which its proposer chooses. Only the key node knows the true rate."""
    if not linked or match_rate <= MOST_MATCH_RATE:
        return []
    text = f"nobody knows beforehand that align.match_rate = {match_rate:g} holds; with fewer matches, rows stand out"
    return [Leak("match rate", text, f"set align.match_rate = {MOST_MATCH_RATE:g}, or less", "leverage")]


def check_hold_out(rows: int, of: int) -> list[Leak]:
    """Check the number of hold-out rows, whose loss the key node reads in every epoch; 0 rows have no loss.

    Args:
        of: number of all rows.
    """
    return _few(rows, of, "hold-out", "the key node would see the loss", "taylor.validation_fraction")


def check_test(rows: int, of: int) -> list[Leak]:
    """Check the number of test rows, whose figures are in the coordinator's report; 0 rows have no figures.

    Args:
        of: number of all rows.
    """
    return _few(rows, of, "test rows", "the coordinator would see the figures", "split.test_fraction")


def _few(rows: int, of: int, rule: str, who: str, option: str) -> list[Leak]:
    if rows == 0 or rows >= LEAST_HOLD_OUT_ROWS:
        return []
    text = f"{who} of only {rows} rows (at least {LEAST_HOLD_OUT_ROWS})"
    return [Leak(rule, text, hold_out_more(option, LEAST_HOLD_OUT_ROWS, of), "small-hold-out")]


def check_class_weights(weighted: bool) -> list[Leak]:
    """Check that the job requests no class weights.

    A residual is c (z/4 - y/2 + jitter): its weight c follows from the label, and multiplies the score, which moves.
    In differences of gradients jitter cancels, and labels stay.
    """
    if not weighted:
        return []
    text = "with class weights differences of gradients show labels, for every jitter"
    advice = 'set taylor.class_weights = "none", and lower taylor.threshold'
    return [Leak("class weights", text, advice, "class-weights")]
