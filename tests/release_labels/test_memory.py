"""The server's memory grows neither with the rows of a request nor, where no prior is estimated, with the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blindfit.algorithms.privacy.ledger import Budget
from blindfit.parties.data.source import open_source
from blindfit.parties.measurement.charging import LabelDataset
from blindfit.parties.settings import PartyDatasetSettings
from tests.measurement.house import House
from tests.measurement.indexes import built
from tests.measurement.talking import said_by
from tests.release_labels.house import Counter

FEW, MANY, BATCH = 50_000, 200_000, 16384

STREAM = """
    import sys
    from pathlib import Path
    from blindfit.algorithms.protocols.label_dp.release import LabelIds, RollCall, step_6_pieces
    from blindfit.parties.measurement.release_labels import LabelsDesk
    from tests.release_labels.test_memory import BATCH, counter_in

    for directory, n_rows in zip(map(Path, sys.argv[1::2]), map(int, sys.argv[2::2])):
        counter = counter_in(directory)
        request = counter.request(["row-0"], n_rows=n_rows)
        desk = LabelsDesk(counter.house.service, counter.releases, "shop")
        desk.admit(request)
        roll = RollCall(request)
        for start in range(0, n_rows, BATCH):
            ids = tuple(f"row-{i}" for i in range(start, min(start + BATCH, n_rows)))
            roll.add(LabelIds(ids), desk.look_up, consumer="shop")
        desk.release(roll)
        rows = sum(len(piece.steps) for block in desk.labels() for piece in step_6_pieces(block))
        desk.close()
        print(rows, counter.charges, peak_mib())
"""


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


def write_table(directory: Path, n_rows: int) -> None:
    numbers = np.arange(n_rows)
    columns = {"id": pa.array([f"row-{i}" for i in numbers]), "label": pa.array((numbers % 10).astype(float))}
    directory.mkdir()
    pq.write_table(pa.table(columns), directory / "labels.parquet")
    counter_in(directory).house.close()  # builds the index, in this process


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's own figure of peak memory")
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """What one process had at most, after few rows and then after many."""
    for name, n_rows in (("few", FEW), ("many", MANY)):
        write_table(tmp_path / name, n_rows)
    said = said_by(STREAM, tmp_path / "few", FEW, tmp_path / "many", MANY)
    assert [int(number) for number in (*said[:2], *said[3:5])] == [FEW, 1, MANY, 1]
    # 5.5, most of it of the index, of which at most 8 MiB are mapped; 15 with all ids of the request held.
    assert float(said[5]) - float(said[2]) < 10
