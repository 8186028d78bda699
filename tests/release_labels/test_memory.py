"""The server's memory grows neither with the rows of a request nor, without an estimated prior, with the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.measurement.talking import said_by
from tests.release_labels.counting import FEW, MANY, counter_in

STREAM = """
    import sys
    from pathlib import Path
    from blindfit.algorithms.protocols.label_dp.release import LabelIds, RollCall, step_6_pieces
    from blindfit.parties.measurement.release_labels import LabelsDesk
    from tests.release_labels.counting import BATCH, counter_in

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


def write_table(directory: Path, n_rows: int) -> None:
    numbers = np.arange(n_rows)
    columns = {"id": pa.array([f"row-{i}" for i in numbers]), "label": pa.array((numbers % 10).astype(float))}
    directory.mkdir()
    pq.write_table(pa.table(columns), directory / "labels.parquet")
    counter_in(directory).house.close()  # builds the index, in this process


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's own figure of peak memory")
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """The peak of one process after few rows and after many is nearly the same."""
    for name, n_rows in (("few", FEW), ("many", MANY)):
        write_table(tmp_path / name, n_rows)
    said = said_by(STREAM, tmp_path / "few", FEW, tmp_path / "many", MANY)
    assert [int(number) for number in (*said[:2], *said[3:5])] == [FEW, 1, MANY, 1]
    # 5.5, most of it of the index, of which at most 8 MiB are mapped; 15 with all ids of the request held.
    assert float(said[5]) - float(said[2]) < 10
