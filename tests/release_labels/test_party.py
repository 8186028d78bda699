"""A real party process that releases labels, its settings, and its operator's view."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import BudgetExhausted
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, MechanismSettings
from blindfit.parties.identity.identity import load_identity
from blindfit.parties.measurement.calls import MeasurementCalls, ReleasedLabels
from tests.ports import held_address
from tests.processes.reading import error_line
from tests.world import World
from tests.world.measured import project

__all__ = ["project"]  # a fixture

IDS = [f"u{i}" for i in range(400)]
FAR = 4711.25  # a label outside the range
STAIRCASE = MechanismSettings("staircase", LabelGrid(0.0, 100.0), 1.0)
NUMBERS = ('label = "label"\n', 'label = "label"\nlabel_kind = "number"\nlabel_range = [0, 100]\n')


@pytest.fixture
def numbers(project: World) -> World:
    """A project with numeric labels, one of them outside the range."""
    address = held_address()
    project.edit("meter.toml", *NUMBERS)
    listen = next(line for line in project.path("meter.toml").read_text().splitlines() if line.startswith("listen"))
    project.edit("meter.toml", listen, f'listen = "{address}"')
    values = np.random.default_rng(0).uniform(0, 100, len(IDS)).round(3)
    values[7] = FAR
    rows = "".join(f"{name},{value}\n" for name, value in zip(IDS, values, strict=True))
    project.path("labels.csv").write_text("id,label\n" + rows)
    project.path("address").write_text(address)
    return project


def ask(project: World, ids: list[str] = IDS, **more: Any) -> ReleasedLabels:
    ca = project.path("ca")
    files = [ca / "shop" / name for name in ("certificate.pem", "key.pem", "authority.pem")]
    client = MeasurementCalls(load_identity(*files, ca / "crl.pem"), "meter", project.path("address").read_text())

    async def describe_and_ask() -> ReleasedLabels:
        return await client.release_labels(await client.describe("labels"), ids, STAIRCASE, **more)

    return asyncio.run(describe_and_ask())


def test_a_killed_party_comes_back_with_the_same_labels(numbers: World) -> None:
    numbers.start("meter")
    first = ask(numbers)
    for number in (signal.SIGKILL, signal.SIGTERM):
        numbers.kill("meter", number)
        numbers.start("meter")
        again = ask(numbers, IDS[::-3], receipt=first.receipt)
        assert again.labels.tolist() == first.labels[::-3].tolist()
    ask(numbers, release="second", receipt=first.receipt)
    with pytest.raises(BudgetExhausted):
        ask(numbers, release="third", receipt=first.receipt)
    shown = numbers.blindfit("ledger", "meter.toml").stdout
    assert 'every label, staircase, "first"' in shown
    assert 'every label, staircase, "second"' in shown
    export = numbers.blindfit("ledger", "meter.toml", "--export", "ledger.jsonl")
    assert export.returncode == 0, export.stderr
    assert numbers.blindfit("ledger", "--verify", "ledger.jsonl").returncode == 0
    log = numbers.log("meter")
    assert "labels outside label_range are clipped" in log
    assert "rows=1" in log
    written = log + shown + numbers.path("ledger.jsonl").read_text()
    assert repr(FAR) not in written
    assert max(map(repr, first.labels.tolist()), key=len) not in written  # a short one is found anywhere


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["label_range=[100,0]"], "the labels' range must be finite and not empty, not [100.0, 0.0]"),
        (["label_range=[0,inf]"], "label_range.1: must be a finite number, not inf"),
        (["label_range=[0]"], "label_range.1 is missing"),
        (["label_kind=binary"], "label_range: does nothing with binary labels, remove it"),
        (['unknown_rows="zero"'], "an id that the table does not have has no label"),
    ],
)
def test_settings_of_a_dataset_of_numbers(numbers: World, options: list[str], expected: str) -> None:
    arguments = [part for option in options for part in ("--set", f"datasets.labels.{option}")]
    refused = numbers.blindfit("party", "meter.toml", *arguments)
    assert refused.returncode == 2
    assert error_line(refused).endswith(expected)


def test_mechanisms_of_the_policy(numbers: World, tmp_path: Path) -> None:
    unknown = numbers.blindfit("party", "meter.toml", "--set", 'policy.label-dp.mechanisms=["exponential"]')
    assert "policy.label-dp.mechanisms: 'exponential' is not one of laplace" in error_line(unknown)
    numbers.edit("meter.toml", NUMBERS[1], NUMBERS[0])
    in_vain = numbers.blindfit("party", "meter.toml", "--set", 'policy.label-dp.mechanisms=["laplace"]')
    assert error_line(in_vain).endswith(
        '[policy.label-dp] is for a measurement server\'s datasets of label_kind = "number", remove it'
    )
