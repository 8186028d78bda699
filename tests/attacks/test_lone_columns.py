"""A passive party of a joint WALR fit chooses its columns to read single people.

Where the fit ends, the gradient is 0. So a combination of columns that is only one row gives that row's probability,
and with it the other parties' part of its score. The measurement server leaves out such columns, and shortens such
rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from blindfit.algorithms.protocols.walr import ConsumerRows, lone_rows, several_parties
from blindfit.algorithms.statistics.linear import solvers
from blindfit.algorithms.statistics.linear.logistic import QuantisedRows, sigmoid
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.parties.walr import lead
from blindfit.parties.walr import server as walr_server
from tests.walr_split.released import released
from tests.world import holders
from tests.world.holders import Holders

TARGETS = 12
NEAR = 0.1  # difference of two probabilities
NOISE_IS_NEAR = 0.02  # chance that the noise of the sum, some 7 in these units, is so small: 0.2 / (7 sqrt(2 pi))
RIDGE = 0.004  # times some 1,100 rows and half a step of a weight, 2^-7, it is 0.035; noise of 7 makes weights below 10
FLAGS = 45  # rows of the wider column of two nested ones
BY_CHANCE = 1e-9

Floats = np.ndarray


@dataclass
class Attack:
    """
    Attributes:
        columns: the attacker's columns, (rows, its columns), the constant last, in units of one.
        lone: for each target the combination of columns that is only this row.
    """

    columns: Floats
    lone: Floats


def flags(n_rows: int, *of: slice) -> Floats:
    columns = np.zeros((n_rows, len(of)))
    for column, rows in enumerate(of):
        columns[rows, column] = 1
    return columns


def one_row(n_rows: int) -> Attack:
    """Return columns that are each 1 in one row."""
    lone = flags(n_rows, *(slice(i, i + 1) for i in range(TARGETS)))
    return Attack(np.column_stack([lone, np.ones(n_rows)]), np.eye(TARGETS, TARGETS + 1))


def beside_the_constant(n_rows: int) -> Attack:
    """Return columns that are each a quarter, and 1 more in one row: such a column has hundreds of effective rows."""
    attack, is_constant = one_row(n_rows), np.arange(TARGETS + 1) == TARGETS
    return Attack(attack.columns + 0.25 * ~is_constant, attack.lone - 0.25 * is_constant)


def nested(n_rows: int) -> Attack:
    """Return pairs of columns: the second is 1 where the first is, except in one row."""
    pairs = TARGETS // 2
    starts = [FLAGS * pair for pair in range(pairs)]
    of = [rows for start in starts for rows in (slice(start, start + FLAGS), slice(start + 1, start + FLAGS))]
    lone = np.kron(np.eye(pairs), [1.0, -1.0])
    return Attack(np.column_stack([flags(n_rows, *of), np.ones(n_rows)]), np.column_stack([lone, np.zeros(pairs)]))


@dataclass
class Read:
    """Results of the attack, and the truth.

    Attributes:
        guesses, probabilities: value of each target.
        leverages: largest leverage of the fitted rows, in each passive party's block.
    """

    guesses: Floats
    probabilities: Floats
    leverages: list[float]
    left_out: list[int]

    @property
    def near(self) -> int:
        return int((np.abs(self.guesses - self.probabilities) < NEAR).sum())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Holders:
    monkeypatch.setitem(holders.COLUMNS, "shop", tuple(f"c{i}" for i in range(TARGETS)))
    house = Holders(tmp_path)
    house.write_job("job.toml", ("bank", "shop", "meter"))
    return house


def read_by(house: Holders, made: Callable[[int], Attack], monkeypatch: pytest.MonkeyPatch) -> Read:
    """Run a job in which the shop sends columns of its choice, of rows that the bank has first, and solves for them."""
    fitted: list[Any] = []
    attacks: list[Attack] = []
    release, fit = lead.release_sum, walr_server.fit_blocks
    banks = set(house.ids("bank"))

    async def chosen(party: Any, session: Any, rows: ConsumerRows, grid: Any, *args: Any) -> Any:
        order = sorted(range(len(rows.ids)), key=lambda row: rows.ids[row] not in banks)
        attacks.append(made(len(order)))
        weights = np.ldexp(attacks[0].columns, grid.frac_bits).astype(np.int32)
        return await release(party, session, ConsumerRows(tuple(rows.ids[i] for i in order), weights), grid, *args)

    def noted(to_fit: Any, *args: Any) -> Any:
        fits = fit(to_fit, *args)
        fitted.append((to_fit, fits))
        return fits

    monkeypatch.setattr(lead, "release_sum", chosen)
    monkeypatch.setattr(walr_server, "fit_blocks", noted)
    told = released(monkeypatch)
    house.run('walr.mu="as-released"', "walr.tolerance=1e-10", f"walr.l2={RIDGE}")
    ((to_fit, fits),) = fitted
    (attack,) = attacks
    scale, rows_kept = 2.0**-to_fit.request.frac_bits, int(to_fit.answer.rows_kept)
    own = fits[-1]
    penalty = np.append(np.full(TARGETS, own.l2), 0.0)
    moments = told[0].sums * scale - rows_kept * penalty * own.weights
    rows = to_fit.rows.joined * scale
    scores = rows @ np.concatenate([f.weights for f in fits])
    blocks = np.split(rows, np.cumsum(to_fit.rows.n_columns)[:-1], axis=1)
    found = [float(np.einsum("ij,ji->i", b, np.linalg.pinv(b, rcond=1e-12)).max()) for b in blocks]
    n = len(attack.lone)
    at = np.flatnonzero((attack.columns @ attack.lone.T).any(axis=1))
    assert len(at) == n
    return Read(attack.lone @ moments, sigmoid(scores[at]), found, own.left_out.tolist())


ATTACKS = pytest.mark.parametrize("made", [one_row, beside_the_constant, nested], ids=lambda made: made.__name__)


@ATTACKS
def test_without_defences_every_target_is_read(
    world: Holders, made: Callable[[int], Attack], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lone_rows, "shape_rows", lambda rows, _columns: (rows, np.zeros(rows.shape[1], np.bool_)))
    read = read_by(world, made, monkeypatch)
    assert read.near == len(read.guesses)
    assert max(read.leverages) > 0.99


@ATTACKS
def test_a_server_lets_nobody_stand_out(
    world: Holders, made: Callable[[int], Attack], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the noise of the sum is left of the equation, and it is near the truth by chance."""
    read = read_by(world, made, monkeypatch)
    assert max(read.leverages) <= lone_rows.MOST_LEVERAGE * (1 + 2e-6)
    assert read.near <= stats.binom.isf(BY_CHANCE, len(read.guesses), NOISE_IS_NEAR) < len(read.guesses)
    assert read.left_out == (list(range(TARGETS)) if made is one_row else [])


# --- groups of people ------------------------------------------------------------------------------------------

ROWS, GROUPS, L2, SCALE = 4000, 90, 0.002, 2.0**-12


def auc_of(rows_each: int, *, defended: bool) -> float:
    """Return how well an attacker with a column for each of 90 groups guesses a partner's binary column, as an AUC."""
    rng = np.random.default_rng(rows_each)
    secret = rng.choice([-1.0, 1.0], size=ROWS)
    columns = flags(ROWS, *(slice(g * rows_each, (g + 1) * rows_each) for g in range(GROUPS)))
    columns *= 2.0  # the longer, the better for the attacker
    rows = np.rint(np.column_stack([secret, columns, np.ones(ROWS)]) / SCALE).astype(np.int32)
    if defended:
        rows, _ = lone_rows.shape_rows(rows, (1, GROUPS + 1))
    labels = rng.uniform(size=ROWS) < sigmoid(2 * secret - 0.5)
    real = rows * SCALE
    mu = (real.T @ labels + rng.normal(scale=3.0, size=GROUPS + 2)) / ROWS
    trained_on = np.flatnonzero(rows.any(axis=0))
    settings = SolverSettings(l2=L2, unpenalised=-1, tolerance=1e-10)
    weights = np.zeros(GROUPS + 2)
    fit = solvers.fit(QuantisedRows(np.ascontiguousarray(rows[:, trained_on]), 12), mu[trained_on], settings)
    weights[trained_on] = several_parties.step_8_rounded(fit.weights, ROWS)
    of_groups = (ROWS * (mu - L2 * weights))[1:-1] / (2.0 * rows_each)
    people = slice(0, GROUPS * rows_each)
    guesses, truth = np.repeat(of_groups, rows_each), secret[people] > 0
    return float(stats.mannwhitneyu(guesses[truth], guesses[~truth]).statistic / truth.sum() / (~truth).sum())


@pytest.mark.parametrize(("rows_each", "least"), [(1, 0.95), (5, 0.68)])
def test_without_defences_groups_of_few_people_tell_a_partners_column(rows_each: int, least: float) -> None:
    assert auc_of(rows_each, defended=False) > least


@pytest.mark.parametrize("rows_each", [1, 5, 19, 20, 40])
def test_a_partners_column_stays_in_doubt(rows_each: int) -> None:
    """With 90 people a coin's AUC varies by 0.06, and groups of 20 give 0.6: the bound is five times
    0.06 above a half.
    """
    assert auc_of(rows_each, defended=True) < 0.8
