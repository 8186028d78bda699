"""The epoch at which a training of numbers ends reveals nothing about labels, unless a hold-out loss decides it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.world import World
from tests.world.vertical import bank_and_shops, with_numbers

ROWS, EPOCHS = 90, 4


def epochs_told(root: Path, labels: np.ndarray, *overrides: str) -> dict[str, object]:
    """Return the reported number of epochs by role, with labels that only the bank has."""
    root.mkdir()
    project = bank_and_shops(root, rows=ROWS, epochs=EPOCHS)
    with_numbers(project, labels)
    session = World(root).run('taylor.model="linear"', *overrides)
    return {name: told["fit.epochs"] for name, told in session.summaries.items() if "fit.epochs" in told}


LABELS = np.random.default_rng(5).normal(size=ROWS)


def test_by_default_every_epoch_runs_whatever_the_labels(tmp_path: Path) -> None:
    """One label may be far out."""
    other = LABELS.copy()
    other[3] = 1e6
    one = epochs_told(tmp_path / "one", LABELS)
    assert one == epochs_told(tmp_path / "other", other)
    assert set(one.values()) == {EPOCHS}


def test_where_a_hold_out_loss_decides_the_labels_do(tmp_path: Path) -> None:
    """Without the defence, the labels decide an early stop."""
    told = epochs_told(tmp_path / "one", LABELS, "taylor.patience=1", "taylor.tolerance=0.9")
    assert all(int(str(epochs)) < EPOCHS for epochs in told.values())
