from __future__ import annotations

from tests.world.loans import speed_is_not_measured

__all__ = ["speed_is_not_measured"]
