"""A large dataset of labels."""

from __future__ import annotations

from pathlib import Path

from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import PartyDatasetSettings
from tests.measurement.indexes import built

FEW, MANY, COLUMNS, PERSONS = 50_000, 200_000, 20, 50_000  # 12 MB more of weights, and as much of ids


def dataset_in(directory: Path):
    settings = PartyDatasetSettings(url="parquet:labels.parquet", id="id", label="label", person="person")
    return built(open_source(settings, directory, "labels"), directory / "index")
