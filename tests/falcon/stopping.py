"""Trainings that stop, and the weights that they must have."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, DataError, PolicyRefused
from blindfit.parties.vertical.checkpoints import Checkpoints
from tests.falcon.project import table
from tests.world import World
from tests.world.vertical import DATA_PARTIES


def plain_descent(root: Path, *, epochs: int, rate: float = 0.5, l2: float = 0.01) -> np.ndarray:
    """Return the weights of the job's defaults on plain numbers, with one batch of all rows.

    The intercept stands after the bank's own columns.
    """
    x, y = table(root)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    x = np.insert(x, 3, 1.0, axis=1)
    pull = np.ones(x.shape[1])
    pull[3] = 0.0
    w = np.zeros(x.shape[1])
    for _ in range(epochs):
        w = w - rate * (x.T @ (1 / (1 + np.exp(-x @ w)) - y) / len(y) + l2 * pull * w)
    return w


def together(found: dict[str, Any]) -> np.ndarray:
    return np.concatenate([found[name] for name in DATA_PARTIES])


def stopped_after(epoch: int, project: World, *overrides: str, party: str = "shop-a", keeps: bool = True) -> str:
    """Interrupt a training when a party has kept this epoch, or could not keep it; return its session."""
    keep, sessions = Checkpoints.keep, set()

    def lost(self: Checkpoints, kept: int, go_on: bool, state: Any) -> None:
        sessions.add(self.session)
        loses = kept == epoch and f"/{party}/" in str(self.directory)
        if keeps or not loses:
            keep(self, kept, go_on, state)
        if loses:
            others = [name for name in DATA_PARTIES if name != party]
            until(lambda: all(epoch in epochs_at(project, name, self.session) for name in others))
            raise DataError("the disk is gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "keep", lost)
        try:
            project.run(*overrides)
        except PolicyRefused:
            raise
        except BlindfitError:
            (session,) = sessions
            return session
    raise AssertionError("the training was not lost")


def until(come: Callable[[], bool]) -> None:
    """Wait until the condition holds: each party computes in its own thread."""
    for _ in range(1000):
        if come():
            return
        time.sleep(0.02)


def epochs_at(project: World, name: str, session: str) -> set[int]:
    folder = project.root / f"state/{name}/checkpoints/{session}"
    return {int(path.stem.removeprefix("epoch-")) for path in folder.glob("epoch-*.json")}
