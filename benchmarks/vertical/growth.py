"""Growth of a training's time and bytes with one thing varied at a time, and its picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from rich.console import Console

BLUE, ORANGE = "#1f5fbf", "#c4581a"
Shape = dict[str, int]


def grow(
    shapes: Mapping[str, Sequence[int]],
    base: Shape,
    measure: Callable[[Shape], Mapping[str, float]],
    console: Console,
    *,
    digits: int,
) -> dict[str, list[dict[str, Any]]]:
    """Measure each shape that differs from the base in one thing, and return the points by what is varied."""
    grown: dict[str, list[dict[str, Any]]] = {}
    for varied, values in shapes.items():
        grown[varied] = []
        for value in values:
            shape = base | {varied: value}
            with console.status(f"{varied} = {value:,}"):
                figures = measure(shape)
            grown[varied].append({**shape, **{name: round(figure, digits) for name, figure in figures.items()}})
    return grown


def draw(
    grown: Mapping[str, Sequence[Mapping[str, Any]]], path: Path, title: str, time_key: str, unit: str, bytes_key: str
) -> None:
    """Draw a column for each thing varied, the time above and the bytes below.

    Args:
        grown: points for each varied thing.
        time_key, bytes_key: names of a point's figures; bytes are drawn in KiB.
        unit: unit of the time.
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
