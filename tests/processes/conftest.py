"""A shop and a meter on disk, and the command line to run them, as a user would."""

from __future__ import annotations

from tests.done_once import run_once
from tests.world.measured import project, shop_and_meter

__all__ = ["project"]  # a fixture


first_run, ran = run_once(shop_and_meter, "out")
