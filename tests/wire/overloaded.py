"""A measurement server in a separate process, to be attacked: it prints its port, and its memory on request.

python -m tests.wire.overloaded AUTHORITY DIRECTORY
"""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import psutil

from blindfit.parties.node import serve, set_up_logs
from blindfit.parties.settings import PartySettings, PeerSettings, PopulationSettings
from blindfit.parties.work.memory import one_heap
from tests.wire.meter import settings_of

ROWS = 5000


def settings(authority: Path, directory: Path) -> PartySettings:
    """Return the settings of other tests with one more coordinator, one more active party, and a budget for many
    requests.
    """
    plain = settings_of(authority, directory)
    (directory / "labels.csv").write_text("id,label\n" + "".join(f"{i},{i % 2}\n" for i in range(ROWS)))
    more = {"boss": PeerSettings(role="coordinator"), "rival": PeerSettings(role="active")}
    labels = plain.datasets["labels"].model_copy(update={"active_parties": ["shop", "rival"]})
    return plain.model_copy(
        update={
            "peers": {**plain.peers, **more},
            "datasets": {"labels": labels},
            "populations": {"people": PopulationSettings(epsilon=100.0, delta=1e-5)},
        }
    )


def tell(port: int) -> None:
    def answer() -> None:
        for _ in sys.stdin:
            print(psutil.Process().memory_info().rss / 2**20, flush=True)

    print(port, flush=True)
    threading.Thread(target=answer, daemon=True).start()


if __name__ == "__main__":
    one_heap()  # as `blindfit party`
    set_up_logs("error", "text")
    root, folder = map(Path, sys.argv[1:])
    asyncio.run(serve(settings(root, folder), folder, tell))
