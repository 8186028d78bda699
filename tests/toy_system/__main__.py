"""Blindfit's command with one system more. A party starts as a process of this same command, so it has it too."""

from __future__ import annotations

import sys
from typing import Any

from blindfit.coordinator.cli.main import main
from blindfit.coordinator.systems import VIEWS
from blindfit.coordinator.view import View
from blindfit.parties.sessions.system import Role, System
from blindfit.parties.systems import SYSTEMS
from tests import toy
from tests.toy_system import room


def system() -> System[Any]:
    return System(
        room.ToyJob,
        {"active": Role(1, 1, room.Holder), "passive": Role(1, 1, room.Holder), "key-node": Role(1, 1, room.Dealer)},
        tables=lambda: (toy.TABLE,),
    )


def view() -> View[Any]:
    return View(leaks=room.leaks, check_rows=room.check_rows, write=room.write)


SYSTEMS["toy"] = system
VIEWS["toy"] = view

if __name__ == "__main__":
    main(command=(sys.executable, "-m", "tests.toy_system"))
