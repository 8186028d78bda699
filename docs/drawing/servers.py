"""Draw the messages of each of the four values of walr.trust."""

from __future__ import annotations

from collections.abc import Iterator

from kit import Canvas

WHAT = (
    "Trusted: one server has the labels and reads the rows. Two servers: each has a share of each label and reads "
    "the rows. Encrypted rows: one server has the labels and reads no feature. Shared rows: each of two servers has"
    " a share of each label and feature, and a key node deals the masks. In all four, the active party gets noisy "
    "sums and has the model."
)
WIDTH, HEIGHT = 470, 280
BOX = (150, 64)


def pictures() -> Iterator[tuple[str, Canvas]]:
    canvas = Canvas(2 * WIDTH, 2 * HEIGHT, "Four values of walr.trust: who sends what to whom", WHAT)
    trusted(canvas, 0, 0)
    two_servers(canvas, WIDTH, 0)
    encrypted(canvas, 0, HEIGHT)
    shared(canvas, WIDTH, HEIGHT)
    yield "two_servers", canvas


def _head(canvas: Canvas, x: float, y: float, value: str, *holds: str) -> None:
    canvas.text((x + 20, y + 30), f'walr.trust = "{value}"', size=14, mono=True)
    canvas.box((x + 16, y + 110), BOX, "active party", *holds, kind="active")


def _exchange(canvas: Canvas, x: float, y: float, up: str, down: str) -> None:
    """Draw two arrows between the active party and a server at height `y`."""
    canvas.line([(x + 166, y - 10), (x + 298, y - 10)])
    canvas.text((x + 232, y - 17), up, anchor="middle")
    canvas.line([(x + 300, y + 12), (x + 168, y + 12)])
    canvas.text((x + 232, y + 29), down, anchor="middle")


def trusted(canvas: Canvas, x: float, y: float) -> None:
    _head(canvas, x, y, "trusted", "features, model")
    canvas.box((x + 300, y + 110), BOX, "server", "labels; reads rows", kind="server")
    _exchange(canvas, x, y + 141, "ids, rows", "noisy sum")


def two_servers(canvas: Canvas, x: float, y: float) -> None:
    _head(canvas, x, y, "two-servers", "features, model")
    for top in (50, 176):
        canvas.box((x + 300, y + top), (154, 76), "server", "shares of labels;", "reads rows", kind="server")
    _fork(canvas, x, y, "ids, rows", "share + noise")


def encrypted(canvas: Canvas, x: float, y: float) -> None:
    _head(canvas, x, y, "encrypted-rows", "features, key, model")
    canvas.box((x + 300, y + 110), BOX, "server", "labels; no feature", kind="server")
    _exchange(canvas, x, y + 141, "ids, Enc(rows)", "Enc(noisy sum)")


def shared(canvas: Canvas, x: float, y: float) -> None:
    _head(canvas, x, y, "shared-rows", "features, model")
    for top in (50, 176):
        canvas.box((x + 300, y + top), (154, 76), "server", "shares of labels", "and features", kind="server")
    _fork(canvas, x, y, "ids, rows - masks", "share + noise")
    canvas.box((x + 16, y + 204), BOX, "key node", "deals only masks", kind="key")
    canvas.line([(x + 91, y + 204), (x + 91, y + 174)])
    canvas.line([(x + 166, y + 252), (x + 375, y + 264), (x + 375, y + 250)], dashed=True)
    canvas.text((x + 178, y + 246), "shares of masks, to both", muted=True)


def _fork(canvas: Canvas, x: float, y: float, up: str, down: str) -> None:
    """Draw the exchanges of the active party with two servers."""
    canvas.line([(x + 166, y + 120), (x + 298, y + 74)])
    canvas.line([(x + 300, y + 98), (x + 168, y + 136)])
    canvas.text((x + 222, y + 76), up, anchor="middle")
    canvas.line([(x + 166, y + 148), (x + 298, y + 196)])
    canvas.line([(x + 300, y + 222), (x + 168, y + 164)])
    canvas.text((x + 236, y + 152), down, anchor="middle")
