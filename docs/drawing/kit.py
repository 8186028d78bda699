"""Shapes of one style for all pictures: boxes, arrows and texts as SVG, readable on a light and on a dark page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from xml.sax.saxutils import escape

STYLE = """
.page { fill: #ffffff } .ink { fill: #1c2733 } .muted { fill: #51606d } .line { stroke: #51606d; fill: none }
.tip { fill: #51606d } .active { fill: #dbe8f4 } .passive { fill: #dcefe0 } .server { fill: #f6e7d2 }
.key { fill: #e6e2f0 } .plain { fill: #eef1f4 } .good { fill: #d7efe4 } .bad { fill: #f6dcd9 }
@media (prefers-color-scheme: dark) {
.page { fill: #14181d } .ink { fill: #e8edf2 } .muted { fill: #aab6c1 } .line { stroke: #aab6c1 }
.tip { fill: #aab6c1 } .active { fill: #1f3a54 } .passive { fill: #1f4129 } .server { fill: #4b3a1e }
.key { fill: #3a3257 } .plain { fill: #262d35 } .good { fill: #1d4536 } .bad { fill: #552a26 }
}
"""
TITLE_SIZE, TEXT_SIZE = 15, 13
LINE = 17  # height of a line of text
CHARACTER = 0.51  # mean width of a character, of its height: texts are wrapped by it

Point = tuple[float, float]


class Canvas:
    """A picture in the making, in units of a pixel at its natural size."""

    def __init__(self, width: float, height: float, title: str, description: str) -> None:
        self.width, self.height = width, height
        self._head = (title, description)
        self._shapes: list[str] = []

    def box(
        self, corner: Point, size: Point, title: str, *lines: str, kind: str = "plain", dashed: bool = False
    ) -> None:
        """Draw a rounded box with a bold title and lines below it, all in its middle; an empty title draws no title."""
        (x, y), (width, height) = corner, size
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8"'
        self._shapes.append(f'<rect class="{kind}" {place}/>')
        self._shapes.append(f'<rect class="line" {place} stroke-width="1"{dash}/>')
        rows = [(title, TITLE_SIZE, True)]
        wrapped = [part for line in lines for part in wrap(line, width - 10, TEXT_SIZE)]
        rows += [(line, TEXT_SIZE, False) for line in wrapped]
        first = y + height / 2 - (len(rows) - 1) * LINE / 2 + TEXT_SIZE * 0.35
        for number, (line, text_size, bold) in enumerate(rows):
            self.text((x + width / 2, first + number * LINE), line, size=text_size, bold=bold, anchor="middle")

    def text(
        self,
        at: Point,
        text: str,
        *,
        size: float = TEXT_SIZE,
        bold: bool = False,
        muted: bool = False,
        anchor: str = "start",
        mono: bool = False,
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        family = ' font-family="ui-monospace, monospace"' if mono else ""
        self._shapes.append(
            f'<text class="{"muted" if muted else "ink"}" x="{at[0]:g}" y="{at[1]:g}" font-size="{size:g}"'
            f' text-anchor="{anchor}"{weight}{family}>{escape(text)}</text>'
        )

    def paragraph(self, at: Point, text: str, width: float, *, muted: bool = False) -> None:
        for number, line in enumerate(wrap(text, width, TEXT_SIZE)):
            self.text((at[0], at[1] + number * LINE), line, muted=muted)

    def line(self, points: Iterable[Point], *, arrow: bool = True, dashed: bool = False, both: bool = False) -> None:
        """Draw a line through points, with an arrowhead at its end, or at both ends."""
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        ends = ' marker-end="url(#tip)"' if arrow else ""
        ends += ' marker-start="url(#tip)"' if both else ""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self._shapes.append(f'<path class="line" d="{path}" stroke-width="1.3"{ends}{dash}/>')

    def dot(self, at: Point) -> None:
        self._shapes.append(f'<circle class="tip" cx="{at[0]:g}" cy="{at[1]:g}" r="3.2"/>')

    def svg(self) -> str:
        title, description = self._head
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}"'
                f' width="{self.width:g}" role="img" font-family="system-ui, sans-serif">',
                f"<title>{escape(title)}</title>",
                f"<desc>{escape(description)}</desc>",
                f"<style>{STYLE}</style>",
                '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="8" refY="4" orient="auto-start-reverse">'
                '<path class="tip" d="M0 0 L8 4 L0 8 z"/></marker></defs>',
                f'<rect class="page" width="{self.width:g}" height="{self.height:g}" rx="6"/>',
                *self._shapes,
                "</svg>\n",
            )
        )


def wrap(text: str, width: float, size: float) -> list[str]:
    """Return the lines of a text that are at most so wide."""
    return textwrap.wrap(text, max(8, int(width / (size * CHARACTER)))) or [""]
