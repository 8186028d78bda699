"""How long a first answer takes does not hang on a label: until the charge the same modules are imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interference.neighbours import Probe

ROOT = Path(__file__).parents[2]
CHARGED = [("walr", "meter"), ("label-dp", "meter"), ("dp-lr", "clinic"), ("taylor-label-dp", "bank")]


def imported(probe: Probe, *arguments: str) -> tuple[set[str], set[str]]:
    """In each of two worlds that differ in one label."""
    words = [sys.executable, "-m", "tests.interference.imports", str(probe.authority), *arguments]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert len(done.stdout.splitlines()) == 2, done.stderr
    one, other = map(json.loads, done.stdout.splitlines())
    return set(one), set(other)


@pytest.mark.parametrize(("system", "party"), CHARGED)
def test_no_import_hangs_on_a_label_before_the_charge(system: str, party: str, probe: Probe) -> None:
    one, other = imported(probe, system, party)
    assert one == other
    assert {name for name in one if name.startswith("blindfit.parties.")}  # else nothing was heard


def test_an_import_that_hangs_on_a_label_is_noticed(probe: Probe) -> None:
    one, other = imported(probe, "walr", "meter", "planted")
    assert one ^ other == {"wave"}
