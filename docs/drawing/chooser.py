"""Draw a decision tree of the systems."""

from __future__ import annotations

from collections.abc import Iterator

from kit import Canvas, Point

WHAT = (
    "Who has the data? One party has columns and labels, and wants to publish a model: dp-lr. A measurement server "
    "has the labels and parties have the features: walr for labels 0 and 1, label-dp for numbers or for many "
    "regressions. Several parties have columns of the same people, and one of them has the labels: taylor if each "
    "of them may read noisy gradients of its own columns, falcon if nobody may read a gradient. Parties have the "
    "same columns of different people: Blindfit does not serve that."
)
QUESTION, SYSTEM = (250, 66), (270, 66)


def pictures() -> Iterator[tuple[str, Canvas]]:
    canvas = Canvas(960, 520, "Which system to take", WHAT)
    canvas.box((20, 218), (190, 84), "Who has the data?", "follow one arrow")
    questions: dict[str, tuple[float, str, tuple[str, ...], str]] = {
        "one": (20, "One party has it all", ("and wants to publish", "a model"), "active"),
        "server": (136, "A server has the labels", ("parties have the features:", "which labels?"), "server"),
        "columns": (
            284,
            "Several parties have columns",
            ("of the same people, one has labels:", "who may read a gradient?"),
            "passive",
        ),
        "rows": (432, "Several parties have rows", ("the same columns", "of different people"), "plain"),
    }
    for y, title, lines, kind in questions.values():
        canvas.box((270, y), (280, 74), title, *lines, kind=kind)
        canvas.line([(210, 260), (240, 260), (240, y + 37), (268, y + 37)])
    systems: tuple[tuple[float, float, str, tuple[str, ...], str, str], ...] = (
        (23, 57, "dp-lr", ("A private model", "from one party's rows"), "active", ""),
        (108, 173, "walr", ("One noisy sum",), "server", "0 and 1"),
        (188, 173, "label-dp", ("Noisy labels",), "server", "numbers"),
        (274, 321, "taylor", ("Vertical training with", "encrypted gradients"), "passive", "its own"),
        (354, 321, "falcon", ("Vertical training on", "secret shares"), "passive", "nobody"),
        (435, 469, "not served", ("horizontal federated learning",), "bad", ""),
    )
    for y, start, name, lines, kind, answer in systems:
        canvas.box((680, y), (260, 68), name, *lines, kind=kind)
        middle = y + 34
        canvas.line(_elbow((550, start), (678, middle)))
        if answer:
            canvas.text((604, middle - 6), answer, muted=True)
    yield "chooser", canvas


def _elbow(start: Point, end: Point) -> list[Point]:
    if start[1] == end[1]:
        return [start, end]
    return [start, (580, start[1]), (580, end[1]), end]
