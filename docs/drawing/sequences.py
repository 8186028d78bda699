"""Draw the messages of each system, from the tables that bind its parties: one line for each message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from kit import LINE, Canvas, wrap

from blindfit.algorithms.protocols import falcon, taylor, walr
from blindfit.algorithms.protocols.label_dp import release as release_labels
from blindfit.algorithms.protocols.table import Arrow, Table

TEXT_WIDTH, LANE, TOP = 430, 184, 112
ROLES = ("passive", "active", "key-node", "measurement")
NAMES = {
    "passive": "passive party",
    "active": "active party",
    "key-node": "key node",
    "measurement": "measurement server",
}
KINDS = {"passive": "passive", "active": "active", "key-node": "key", "measurement": "server"}


@dataclass(frozen=True)
class Sequence:
    """
    Attributes:
        file: name of the picture, without its ending.
        holds: data or keys of each role, by role.
        result: last line of the picture: the outcome.
    """

    file: str
    title: str
    table: Table
    holds: dict[str, str]
    result: str


SEQUENCES = (
    Sequence(
        "walr",
        "WALR: who sends what",
        walr.TABLE,
        {"active": "features", "measurement": "labels, budget"},
        "The active party trains on the noisy sum as often as it likes. It has the model.",
    ),
    Sequence(
        "label_dp",
        "label-dp: who sends what",
        release_labels.TABLE,
        {"active": "features", "measurement": "labels, budget"},
        "The active party fits as many regressions to the noisy labels as it likes.",
    ),
    Sequence(
        "taylor",
        "Taylor: who sends what",
        taylor.TABLE,
        {"passive": "columns", "active": "columns, labels", "key-node": "private key"},
        "Each party with columns keeps its own part of the model.",
    ),
    Sequence(
        "falcon",
        "Falcon: who sends what",
        falcon.TABLE,
        {"passive": "columns", "active": "columns, labels", "key-node": "no data"},
        "Each party with columns learns its own weights, or keeps a share of the model.",
    ),
)


def words_of(message: type) -> str:
    """Return a message's name in words: "Masked gradient"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", message.__name__).capitalize()


def rows_of(table: Table) -> Iterator[tuple[Arrow, str]]:
    """Yield each line of the picture: arrows of one step that go the same way and are read alike are one line."""
    for _, group in groupby(
        table.arrows, key=lambda arrow: (arrow.step, arrow.senders, arrow.receivers, arrow.opened, arrow.only_with)
    ):
        arrows = list(group)
        yield arrows[0], ", ".join(dict.fromkeys(words_of(arrow.message) for arrow in arrows)).capitalize()


def draw(sequence: Sequence) -> Canvas:
    roles = [role for role in ROLES if role in sequence.holds]
    lanes = {role: TEXT_WIDTH + LANE * (number + 0.5) for number, role in enumerate(roles)}
    rows = []
    height = float(TOP)
    for arrow, title in rows_of(sequence.table):
        lines = wrap(f"{arrow.step}  {title}", TEXT_WIDTH - 30, 14.5)
        notes = wrap(f"reads {arrow.opened}; {_how_often(arrow)}", TEXT_WIDTH - 50, 13)
        rows.append((height, arrow, lines, notes))
        height += LINE * (len(lines) + len(notes)) + 14
    canvas = Canvas(TEXT_WIDTH + LANE * len(roles) + 10, height + 44, sequence.title, _description(sequence))
    for role, x in lanes.items():
        canvas.line([(x, 66), (x, height + 2)], arrow=False, dashed=True)
        canvas.box((x - LANE / 2 + 6, 14), (LANE - 12, 54), NAMES[role], sequence.holds[role], kind=KINDS[role])
    canvas.text((20, 36), sequence.title, size=17, bold=True)
    canvas.text((20, 58), "step, message, and what the receiver reads of it", muted=True)
    for y, arrow, lines, notes in rows:
        for number, line in enumerate(lines):
            canvas.text((20, y + number * LINE), line, size=14.5, bold=True)
        for number, line in enumerate(notes):
            canvas.text((36, y + (len(lines) + number) * LINE), line, muted=True)
        _arrows(canvas, arrow, lanes, y + LINE * 0.4)
    canvas.text((20, height + 22), sequence.result)
    return canvas


def _how_often(arrow: Arrow) -> str:
    return f"{arrow.how_often}, with {arrow.only_with}" if arrow.only_with else str(arrow.how_often)


def _arrows(canvas: Canvas, arrow: Arrow, lanes: dict[str, float], y: float) -> None:
    for sender in arrow.senders:
        canvas.dot((lanes[sender], y))
        for receiver in arrow.receivers:
            start, end = lanes[sender], lanes[receiver]
            if sender == receiver:
                if arrow.senders == arrow.receivers and len(arrow.senders) > 1:
                    continue  # drawn from one role to the other
                canvas.line([(start, y), (start + 34, y), (start + 34, y + 15), (start + 4, y + 15)])
            else:
                shift = 4 if end > start else -4
                canvas.line([(start, y), (end - shift, y)])


def _description(sequence: Sequence) -> str:
    lines = [
        f"Step {arrow.step}: {', '.join(arrow.senders)} to {', '.join(arrow.receivers)}: {title}; reads {arrow.opened}."
        for arrow, title in rows_of(sequence.table)
    ]
    return " ".join([*lines, sequence.result])


def pictures() -> Iterator[tuple[str, Canvas]]:
    for sequence in SEQUENCES:
        yield sequence.file, draw(sequence)
