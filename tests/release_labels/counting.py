"""A server with many labels."""

from __future__ import annotations

from pathlib import Path

from blindfit.algorithms.privacy.ledger import Budget
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.measurement.charging import LabelDataset
from tests.measurement.house import House
from tests.measurement.indexes import built
from tests.release_labels.house import Counter

FEW, MANY, BATCH = 50_000, 200_000, 16384


def counter_in(directory: Path) -> Counter:
    settings = PartyDatasetSettings(
        url="parquet:labels.parquet",
        id="id",
        label="label",
        label_kind="number",
        label_range=(0.0, 10.0),
        population="people",
        active_parties=["shop"],
    )
    index = built(open_source(settings, directory, "prices"), directory / "index")
    dataset = LabelDataset("prices", settings, index, "5eed")
    return Counter(House(directory, {"prices": dataset}, Budget(50.0, 1e-6)))
