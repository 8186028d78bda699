"""A passive party sends other columns in each epoch and session, through the real parties: no count bounds this."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.protocols.taylor import roles
from tests.vertical.in_process import Finished, finished
from tests.world import World
from tests.world.vertical import bank_and_shops, label_bits

ROWS, EPOCHS, SESSIONS = 120, 10, 2
NO_SCORES = ("split.test_fraction=0", f"taylor.epochs={EPOCHS}", "taylor.patience=0")
ATTACKER = "shop-a"


class Changing:
    """Replacement of two steps of the attacker, which keeps its equations in the labels of each batch.

    Args:
        honest: True to send the columns of its table.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, honest: bool) -> None:
        self._draw = None if honest else np.random.default_rng(5)
        self._step_3, self._step_5 = roles.step_3_gradient, roles.step_5_gradient
        self.equations: dict[tuple[int, ...], list[tuple[np.ndarray, np.ndarray]]] = defaultdict(list)
        monkeypatch.setattr(roles, "step_3_gradient", self._send)
        monkeypatch.setattr(roles, "step_5_gradient", self._receive)

    def _send(self, seat: Any, batch: Any, grid: Any, residuals: Any) -> Any:
        if seat.name != ATTACKER:
            return self._step_3(seat, batch, grid, residuals)
        if self._draw is not None:  # its scores stay 0, because its own weights need no training
            seat = replace(seat, features=seat.features.copy())
            seat.features[batch] = self._draw.choice([-1, 1], seat.features[batch].shape) * grid.feature_steps
        sent = self._step_3(seat, batch, grid, residuals)
        self._sent = tuple(batch.tolist()), grid.reals(seat.features[batch]), sent[1]
        return sent

    def _receive(self, answer: Any, rho: Any, rows: int, parameters: Any) -> Any:
        found = self._step_5(answer, rho, rows, parameters)
        if rho is self._sent[2]:
            batch, columns, _ = self._sent
            self.equations[batch].append((columns, found * rows))
            if self._draw is not None:
                return np.zeros_like(found)
        return found

    def share_read(self, made: Finished) -> float:
        """Return the share of training labels that the equations give right; a kept noise is one more unknown."""
        y = made.seats["bank"].y
        assert y is not None
        guesses: dict[int, float] = {}
        for batch, found in self.equations.items():
            width = found[0][0].shape[1]
            matrix = np.vstack([np.hstack([columns.T, 100 * np.eye(width)]) for columns, _ in found])
            values = np.concatenate([gradient for _, gradient in found])
            ridge = matrix.T @ matrix + 0.1 * np.eye(matrix.shape[1])
            residuals = np.linalg.solve(ridge, matrix.T @ values)[: len(batch)]
            guesses.update(zip(batch, -residuals, strict=True))
        return float(np.mean([(guess > 0) == (y[row] > 0) for row, guess in guesses.items()]))


def train(project: World, key: PrivateKey, *overrides: str) -> Finished:
    for session in range(SESSIONS):
        made = finished(project, *NO_SCORES, *overrides, key=key, session=f"s{session}")
    return made


def bits_read(share: float, rows: int) -> float:
    """Return the bits of random labels that an attacker has who guesses this share of them right."""
    wrong = 1 - share
    return rows * (1 + share * np.log2(share) + (wrong * np.log2(wrong) if wrong else 0.0))


def test_columns_that_change_read_more_labels_than_the_layout_counts(
    tmp_path: Path, real_key: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count holds only against parties that follow the protocol, and every page states this."""
    project = bank_and_shops(tmp_path, rows=ROWS)
    attack = Changing(monkeypatch, honest=False)
    made = train(project, real_key)
    counted, share = sum(label_bits(project)), attack.share_read(made)
    assert share > 0.9
    assert bits_read(share, len(made.plan.train)) > 2 * counted


def test_columns_that_stay_read_no_more_than_the_layout_counts(
    tmp_path: Path, real_key: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = bank_and_shops(tmp_path, rows=ROWS)
    attack = Changing(monkeypatch, honest=True)
    made = train(project, real_key)
    counted, share = sum(label_bits(project)), attack.share_read(made)
    assert bits_read(share, len(made.plan.train)) < counted


def test_columns_that_change_cancel_the_kept_noise_of_label_dp(
    tmp_path: Path, real_key: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch has the same kept noise for every request. At a small rate the others' scores stay near 0."""
    project = bank_and_shops(tmp_path, rows=ROWS)
    attack = Changing(monkeypatch, honest=False)
    made = train(project, real_key, "privacy.epsilon=0.5", "taylor.learning_rate=1e-6", "taylor.patience=3")
    assert attack.share_read(made) > 0.9
