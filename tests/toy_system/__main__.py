"""Blindfit's command with one more system. A party starts as a process of the same command, so it knows the system."""

from __future__ import annotations

import sys
from typing import Any

from blindfit.coordinator.cli.main import main
from blindfit.coordinator.systems import VIEWS
from blindfit.coordinator.view import View
from blindfit.parties.sessions.system import Role, System
from blindfit.parties.systems import SYSTEMS
from tests import toy
from tests.toy_system.seats import Dealer, Holder, ToyJob
from tests.toy_system.view import VIEW


def system() -> System[Any]:
    return System(
        ToyJob,
        {"active": Role(1, 1, Holder), "passive": Role(1, 1, Holder), "key-node": Role(1, 1, Dealer)},
        tables=lambda: (toy.TABLE,),
    )


def view() -> View[Any]:
    return VIEW


SYSTEMS["toy"] = system
VIEWS["toy"] = view

if __name__ == "__main__":
    main(command=(sys.executable, "-m", "tests.toy_system"))
