"""Messages of a whole run, counted against "how often" of the protocol's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from blindfit.algorithms.protocols.table import Table

Sent = Iterable[tuple[str, str, str]]  # sender, receiver, message class


def assert_as_often(
    table: Table,
    roles: Mapping[str, str],
    sent: Sent,
    *,
    epochs: int = 0,
    batches: int = 0,
    having: Collection[str] = (),
) -> None:
    """Args:
    having: conditions of arrows that the run meets.
    """
    counted = Counter(sent)
    gone = set()
    for (sender, receiver, name), times in counted.items():
        ends = (roles[sender], roles[receiver])
        arrows = {
            arrow
            for arrow in table.arrows
            if arrow.message.__name__ == name and ends in {(s, r) for s in arrow.senders for r in arrow.receivers}
        }
        assert arrows, f"{name} from {sender} to {receiver} is not in the table"
        assert any(arrow.only_with in ("", *having) for arrow in arrows), f"{name} was sent without what it needs"
        expected = {arrow.how_often.messages(epochs=epochs, batches=batches) for arrow in arrows} - {None}
        assert expected <= {times}, f"{times} of {name} from {sender} to {receiver}"
        gone |= arrows
    missing = {arrow for arrow in table.arrows if arrow.only_with in ("", *having)} - gone
    assert not missing, f"never sent: {missing}"
