"""`blindfit ledger` of a server whose active parties name their releases as they like."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.release_labels.house import Counter
from tests.world import World


@pytest.mark.parametrize("release", ["[/x]", "a[green] all is well[/]b", "[link=http://x]y[/link]"])
def test_the_name_of_a_release_is_no_markup(counter: Counter, tmp_path: Path, release: str) -> None:
    """The ledger of a release called "[/x]" could once not be printed, and a ledger loses no entry."""
    counter.ask(release=release)
    about = {"label": "price", "label_kind": "number", "label_range": [0, 10], "active_parties": ["shop"]}
    world = World(tmp_path).server("meter", dataset="prices", about=about, data_dir=".")
    world.set("peers.shop.role", "active")
    shown = world.blindfit("ledger", "meter.toml")
    assert shown.returncode == 0, shown.stderr
    assert f'"{release}"' in shown.stdout
