"""`blindfit party`, which ends itself where a file says: at a message or a file of a session, by any signal.

    python -m tests.vertical.victim FOLDER party bank.toml ...

A point is passed before each message is sent, after each one was received, and before and after each file of the party
takes the place of an older one. FOLDER/order, where there is one, says at which point to end; FOLDER/points, where
there is one, gets a line for each point that was passed. FOLDER/quick-keys, where there is one: its keys are small.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from signal import SIGKILL
from typing import Any

ORDER, POINTS, OBEYED = "order", "points", "obeyed"


@dataclass(frozen=True)
class Order:
    """End at the nth point that begins with `label`, so many seconds later."""

    label: str
    nth: int = 1
    delay_s: float = 0.0
    signal: int = SIGKILL

    def give(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / OBEYED).unlink(missing_ok=True)
        (folder / ORDER).write_text(json.dumps(asdict(self)))


class Points:
    """Counts the points of one session at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._passed = folder, 0
        self._order: Order | None = None

    def begin(self) -> None:
        order = self._folder / ORDER
        self._passed, self._order = 0, Order(**json.loads(order.read_text())) if order.exists() else None

    def passed(self, label: str) -> None:
        if (points := self._folder / POINTS).exists():
            with points.open("a") as file:
                file.write(f"{label}\n")
        order = self._order
        if order is not None and label.startswith(order.label):
            self._passed += 1
            if self._passed == order.nth:
                self._obey(order)

    def _obey(self, order: Order) -> None:
        def end() -> None:
            (self._folder / OBEYED).write_text(repr(time.time()))
            os.kill(os.getpid(), order.signal)

        if order.delay_s:
            threading.Timer(order.delay_s, end).start()
        else:
            end()


def watch(points: Points) -> None:
    """Make every channel and file of this process pass its points."""
    from blindfit.parties.files import written
    from blindfit.parties.wire.exchange import Encoded, ExchangeChannel

    init, bring, receive = ExchangeChannel.__init__, ExchangeChannel.bring, ExchangeChannel.receive
    replace = written.replace_file

    def watched_init(self: Any, *arguments: Any, **named: Any) -> None:
        points.begin()
        init(self, *arguments, **named)

    async def watched_bring(self: Any, to: str, message: Encoded) -> None:
        points.passed(f"send {message.step}")
        await bring(self, to, message)

    async def watched_receive(self: Any, sender: str, kind: type[Any]) -> Any:
        message = await receive(self, sender, kind)
        points.passed(f"receive {kind.__name__}")
        return message

    def watched_replace(path: Path, *arguments: Any, **named: Any) -> None:
        points.passed(f"write {path.name}")
        replace(path, *arguments, **named)
        points.passed(f"wrote {path.name}")

    ExchangeChannel.__init__ = watched_init  # type: ignore[method-assign]
    ExchangeChannel.bring = watched_bring  # type: ignore[method-assign]
    ExchangeChannel.receive = watched_receive  # type: ignore[method-assign]
    written.replace_file = watched_replace  # type: ignore[assignment]


if __name__ == "__main__":
    folder = Path(sys.argv.pop(1))
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from blindfit.__main__ import main

    watch(Points(folder))
    main()
