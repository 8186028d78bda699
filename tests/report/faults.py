"""Faults of a drawn figure about which a reader would complain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any
from unittest import mock

SVG_DPI = 72.0
POINTS = 8.0  # a text as pixels may be this much wider than one of lines


def faults_of(figure: Any) -> list[str]:
    """Return labels that cover each other or are cut, axes without ticks, and a plot without space."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(SVG_DPI)
    renderer: Any = FigureCanvasAgg(figure).get_renderer()
    found: list[str] = []
    for axes in figure.axes:
        if axes.get_window_extent(renderer).width < 0.3 * figure.bbox.width:
            found.append("the labels leave no room for the plot")
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * max(abs(low), abs(high))
            ticks = [tick for tick in axis.get_major_ticks() if low - slack <= tick.get_loc() <= high + slack]
            labels = [tick.label1 for tick in ticks if tick.label1.get_text()]
            found += [] if labels else [f"the {axis.axis_name} axis has no label"]
            boxes = [(label.get_text(), label.get_window_extent(renderer)) for label in labels]
            found += [f"{a} covers {b}" for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]
            for text in (*labels, axis.label, axis.get_offset_text()):
                box = text.get_window_extent(renderer)
                within = min(box.x0, box.y0, figure.bbox.x1 - box.x1, figure.bbox.y1 - box.y1) > -POINTS
                found += [f"{text.get_text()} is cut"] if text.get_text() and not within else []
    return found


@contextmanager
def drawn_figures() -> Iterator[list[Any]]:
    """Collect every figure that is drawn inside the block."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figures: list[Any] = []
    drawn = FigureCanvasSVG.print_svg

    def draw(canvas: Any, *arguments: Any, **more: Any) -> Any:
        result = drawn(canvas, *arguments, **more)
        figures.append(canvas.figure)
        return result

    with mock.patch.object(FigureCanvasSVG, "print_svg", draw):
        yield figures
