"""`blindfit ledger` of a server whose consumers name their releases as they like."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import blindfit
from tests.release_labels.house import Counter

PARTY = """
name = "meter"
role = "measurement"
data_dir = "."
identity = { certificate = "c", key = "k", authority = "a" }
peers = { coordinator = { role = "coordinator" }, shop = { role = "active" } }
populations = { people = { epsilon = 50.0, delta = 1e-6 } }
[datasets.prices]
url = "csv:prices.csv"
id = "id"
label = "price"
label_kind = "number"
label_range = [0, 10]
population = "people"
active_parties = ["shop"]
"""


@pytest.mark.parametrize("release", ["[/x]", "a[green] all is well[/]b", "[link=http://x]y[/link]"])
def test_the_name_of_a_release_is_no_markup(counter: Counter, tmp_path: Path, release: str) -> None:
    """The ledger of one that was called "[/x]" could not be shown any more, and a ledger loses no entry."""
    counter.ask(release=release)
    (tmp_path / "meter.toml").write_text(PARTY)
    shown = blindfit(tmp_path, "ledger", "meter.toml")
    assert shown.returncode == 0, shown.stderr
    assert f'"{release}"' in shown.stdout
