"""The picture of how a training's time and bytes grow: a column for each thing varied, time above, bytes below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

BLUE, ORANGE = "#1f5fbf", "#c4581a"


def draw(
    grown: Mapping[str, Sequence[Mapping[str, Any]]], path: Path, title: str, time_key: str, unit: str, bytes_key: str
) -> None:
    """Args:
    grown: by what is varied, its points.
    time_key, bytes_key: of a point's figures; bytes are drawn in KiB.
    unit: of the time.
    """
    figure, grid = plt.subplots(
        2, len(grown), figsize=(11, 5.6), sharex="col", sharey="row", squeeze=False, layout="constrained"
    )
    for (varied, points), column in zip(grown.items(), grid.T, strict=True):
        shape = [point[varied] for point in points]
        for axis, key, divisor, colour in zip(column, (time_key, bytes_key), (1, 1024), (BLUE, ORANGE), strict=True):
            axis.plot(shape, [point[key] / divisor for point in points], marker="o", color=colour)
            axis.grid(alpha=0.3)
            axis.spines[["top", "right"]].set_visible(False)
        column[1].set_xlabel("data parties" if varied == "parties" else varied)
        if varied == "parties":
            column[1].set_xticks(shape)
        else:
            column[1].set_xscale("log")
    for axis, label in zip(grid[:, 0], (unit, "KiB"), strict=True):
        axis.set_ylim(bottom=0)
        axis.set_ylabel(f"{label} for each row and epoch")
    figure.suptitle(title)
    figure.savefig(path)
    plt.close(figure)
