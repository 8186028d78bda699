"""When a training of numbers ends tells nobody anything of labels, as long as no hold-out loss decides it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.nodes import Nodes
from tests.vertical.project import Project

ROWS = 150


def epochs_told(root: Path, labels: np.ndarray, *overrides: str) -> dict[str, object]:
    """By role that is told of it, with labels that nobody but the bank has."""
    root.mkdir()
    project = Project.make(root, rows=ROWS, epochs=6)
    project.with_numbers(labels)
    session = Nodes(root).run('taylor.model="linear"', *overrides)
    return {name: told["fit.epochs"] for name, told in session.summaries.items() if "fit.epochs" in told}


def two_sets(root: Path, *overrides: str) -> tuple[dict[str, object], dict[str, object]]:
    """Labels that columns explain, and the same with one that is far out."""
    draw = np.random.default_rng(5)
    labels = draw.normal(size=ROWS)
    other = labels.copy()
    other[3] = 1e6
    return epochs_told(root / "one", labels, *overrides), epochs_told(root / "other", other, *overrides)


def test_by_default_every_epoch_runs_whatever_the_labels(tmp_path: Path) -> None:
    one, other = two_sets(tmp_path)
    assert one == other
    assert set(one.values()) == {6}


def test_where_a_hold_out_loss_decides_the_labels_do(tmp_path: Path) -> None:
    """The defence off: an early stop is of the labels."""
    told, _ = two_sets(tmp_path, "taylor.patience=1", "taylor.tolerance=0.9")
    assert all(int(str(epochs)) < 6 for epochs in told.values())
