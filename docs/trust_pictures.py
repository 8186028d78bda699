"""Draws walr-trust.svg: who sends what to whom in each of WALR's four ways to trust.

python docs/trust_pictures.py
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

PAGE = Path(__file__).parent / "pictures/walr-trust.svg"
INK, MUTED, HOLDS, SERVES, DEALS = "#1c2733", "#5b6770", "#dbe8f4", "#f6e7d2", "#e6e2f0"
WIDTH, HEIGHT = 0.27, 0.2

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    at: Point  # its middle
    name: str
    knows: str
    colour: str


@dataclass(frozen=True)
class Arrow:
    start: Point
    end: Point
    text: str
    at: Point  # of the text


@dataclass(frozen=True)
class Mode:
    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


LEFT, RIGHT, HIGH, MIDDLE, LOW = 0.15, 0.85, 0.76, 0.5, 0.2
MODES = (
    Mode(
        'walr.trust = "trusted"',
        (
            Box((LEFT, MIDDLE), "active party", "features, model", HOLDS),
            Box((RIGHT, MIDDLE), "server", "labels; sees rows", SERVES),
        ),
        (
            Arrow((0.29, 0.55), (0.71, 0.55), "ids, rows", (0.5, 0.6)),
            Arrow((0.71, 0.45), (0.29, 0.45), "noisy sum", (0.5, 0.38)),
        ),
    ),
    Mode(
        '"two-servers"',
        (
            Box((LEFT, MIDDLE), "active party", "features, model", HOLDS),
            Box((RIGHT, HIGH), "server", "a share of each\nlabel; sees rows", SERVES),
            Box((RIGHT, LOW), "server", "a share of each\nlabel; sees rows", SERVES),
        ),
        (
            Arrow((0.29, 0.58), (0.71, 0.8), "ids, rows", (0.42, 0.73)),
            Arrow((0.71, 0.68), (0.29, 0.52), "share + noise", (0.6, 0.55)),
            Arrow((0.29, 0.46), (0.71, 0.3), "ids, rows", (0.6, 0.42)),
            Arrow((0.71, 0.17), (0.29, 0.4), "share + noise", (0.42, 0.22)),
        ),
    ),
    Mode(
        '"encrypted-rows"',
        (
            Box((LEFT, MIDDLE), "active party", "features, key,\nmodel", HOLDS),
            Box((RIGHT, MIDDLE), "server", "labels; sees\nno feature", SERVES),
        ),
        (
            Arrow((0.29, 0.55), (0.71, 0.55), "ids, Enc(rows)", (0.5, 0.6)),
            Arrow((0.71, 0.45), (0.29, 0.45), "Enc(noisy sum)", (0.5, 0.38)),
        ),
    ),
    Mode(
        '"shared-rows"',
        (
            Box((LEFT, MIDDLE), "active party", "features, model", HOLDS),
            Box((RIGHT, HIGH), "server", "a share of each\nlabel and feature", SERVES),
            Box((RIGHT, LOW), "server", "a share of each\nlabel and feature", SERVES),
            Box((LEFT, 0.9), "key node", "masks alone", DEALS),
        ),
        (
            Arrow((0.29, 0.56), (0.71, 0.72), "ids, rows - masks", (0.43, 0.7)),
            Arrow((0.71, 0.66), (0.29, 0.5), "share + noise", (0.61, 0.54)),
            Arrow((0.29, 0.46), (0.71, 0.3), "ids, rows - masks", (0.63, 0.41)),
            Arrow((0.71, 0.17), (0.29, 0.4), "share + noise", (0.42, 0.2)),
            Arrow((0.15, 0.79), (0.15, 0.61), "masks", (0.07, 0.7)),
            Arrow((0.29, 0.93), (0.71, 0.85), "shares of masks", (0.52, 0.95)),
        ),
    ),
)


def draw(mode: Mode, axes: Axes) -> None:
    axes.set(xlim=(0, 1), ylim=(0.05, 1.03))
    axes.axis("off")
    axes.set_title(mode.title, fontsize=10, color=INK, loc="left", family="monospace")
    for box in mode.boxes:
        x, y = box.at
        corner = (x - WIDTH / 2, y - HEIGHT / 2)
        patch = FancyBboxPatch(corner, WIDTH, HEIGHT, "round,pad=0,rounding_size=0.03", fc=box.colour, ec=MUTED, lw=0.8)
        axes.add_patch(patch)
        axes.text(x, y + 0.055, box.name, ha="center", va="center", fontsize=9, color=INK, weight="bold")
        axes.text(x, y - 0.03, box.knows, ha="center", va="center", fontsize=7.5, color=INK)
    for arrow in mode.arrows:
        style = {"arrowstyle": "-|>", "color": MUTED, "lw": 1.1, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", xy=arrow.end, xytext=arrow.start, arrowprops=style)
        axes.text(*arrow.at, arrow.text, ha="center", va="center", fontsize=7.5, color=INK)


def figure() -> Figure:
    made = Figure(figsize=(9, 6.2), layout="constrained")
    for place, mode in enumerate(MODES, 1):
        draw(mode, made.add_subplot(2, 2, place))
    return made


if __name__ == "__main__":
    mpl.rcParams |= {"svg.hashsalt": "walr-trust", "svg.fonttype": "none"}
    figure().savefig(PAGE, metadata={"Date": None})
