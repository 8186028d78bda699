"""DP-LR: one party's rows, public rows if there are any, and a model that may be published."""

from __future__ import annotations

from collections.abc import Iterator

from kit import Canvas

WHAT = (
    "Public rows, if there are any, give a starting point: a model, or directions. The party's own rows are fitted "
    "from there with noise and a charge to its budget. The model and its privacy statement may be published. The "
    "party's own report may not: it has exact figures of held-out rows."
)


def pictures() -> Iterator[tuple[str, Canvas]]:
    canvas = Canvas(880, 250, "DP-LR: one party, and no message to any other", WHAT)
    canvas.text((20, 36), "DP-LR: one party, and no message to any other", size=17, bold=True)
    canvas.box((20, 66), (220, 66), "public rows", "optional; not protected", dashed=True)
    canvas.box((20, 164), (220, 66), "own rows", "features and labels: protected", kind="active")
    canvas.box((330, 66), (220, 66), "blindfit pretrain", "fits a model without noise")
    canvas.box((330, 164), (220, 66), "blindfit run", "charges, fits with noise", kind="active")
    canvas.box((640, 164), (220, 66), "model, privacy statement", "may be published", kind="good")
    canvas.line([(240, 99), (328, 99)])
    canvas.line([(440, 132), (440, 162)])
    canvas.text((450, 151), "a starting point", muted=True)
    canvas.line([(240, 197), (328, 197)])
    canvas.line([(550, 197), (638, 197)])
    yield "dp_lr", canvas
