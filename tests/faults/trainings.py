"""Worlds of trainings that are long enough for a fault in the middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.world import World
from tests.world.vertical import bank_and_shops, bank_and_shops_in_shares

EPOCHS = 40  # many more than are over before a fault at epoch 2 is heard


def taylor(root: Path, **tables: Any) -> World:
    world = bank_and_shops(root, rows=75)
    for option, value in {"taylor.epochs": EPOCHS, "taylor.patience": 0, **tables}.items():
        world.set(option, value, "job")
    return world


def falcon(root: Path) -> World:
    epochs = {"epochs": EPOCHS, "patience": 0, "validation_fraction": 0.0}
    return bank_and_shops_in_shares(root, rows=300, falcon=epochs, split={"test_fraction": 0.0})


MAKERS = {"taylor": taylor, "falcon": falcon}
