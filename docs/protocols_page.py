"""Write docs/reference/messages.md from the tables of messages that bind every party."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from blindfit.algorithms.protocols import (
    align,
    draw,
    falcon,
    handshake,
    link,
    predict,
    ready,
    receipts,
    shared_scores,
    taylor,
    walr,
)
from blindfit.algorithms.protocols.label_dp import release as release_labels
from blindfit.algorithms.protocols.table import Arrow, Table
from blindfit.algorithms.protocols.walr import (
    encrypted_rows,
    several_parties,
    shared_rows,
    two_servers,
)

PAGE = Path(__file__).parent / "reference/messages.md"
PROTOCOLS = (
    handshake,
    draw,
    align,
    link,
    ready,
    receipts,
    taylor,
    falcon,
    predict,
    shared_scores,
    walr,
    several_parties,
    encrypted_rows,
    shared_rows,
    two_servers,
    release_labels,
)
HEAD = """# Messages

This page lists every message of every system and sub-protocol: who sends it to whom, how often, and what the receiver
can read of it. A party sends nothing else. A message without a line here does not leave a party. If such a message
arrives all the same, the session ends with its X a party sends only to the next one.

`make protocols-page` writes this page from the tables in
[algorithms/protocols](../../algorithms/protocols).
"""
COLUMNS = ("step", "from", "to", "message", "how often", "what the receiver reads")


def page() -> str:
    return "\n".join([HEAD, *("\n".join(section(protocol)) for protocol in PROTOCOLS)])


def section(protocol: ModuleType) -> Iterator[str]:
    table: Table = protocol.TABLE
    about = inspect.cleandoc(protocol.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    yield f"## {table.name}\n\n{about}\n"
    yield row(COLUMNS)
    yield "|---" * len(COLUMNS) + "|"
    for arrow in table.arrows:
        yield row(
            (
                arrow.step,
                ", ".join(arrow.senders),
                ", ".join(arrow.receivers),
                arrow.message.__name__,
                how_often(arrow),
                arrow.opened,
            )
        )
    yield ""


def how_often(arrow: Arrow) -> str:
    return f"{arrow.how_often}, with {arrow.only_with}" if arrow.only_with else str(arrow.how_often)


def row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page())
