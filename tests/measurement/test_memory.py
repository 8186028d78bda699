"""The server's memory does not grow with the rows of a request."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blindfit.parties.measurement.call import SPOOL_BYTES, Call
from blindfit.parties.measurement.release_labels import LabelsDesk
from tests.measurement.large import FEW, MANY, PERSONS, dataset_in
from tests.measurement.talking import said_by

STREAM = """
    import sys
    from pathlib import Path
    import numpy as np
    from blindfit.algorithms.protocols.walr import Tally, WeightRows
    from tests.measurement.large import COLUMNS, dataset_in
    from tests.walr.seats import request_for, rows_of

    weights = np.random.default_rng(0).integers(-2**14, 2**14, (16384, COLUMNS), np.int32)
    for n_rows in map(int, sys.argv[2:]):
        request = request_for(rows_of(), n_rows=n_rows, n_columns=COLUMNS)
        kept = open(Path(sys.argv[1]) / "kept", "wb")
        with dataset_in(Path(sys.argv[1])) as index, index.new_request(3, "refuse") as state:
            def join(ids):
                batch = state.join(list(ids))
                return batch.labels, batch.kept
            tally = Tally(request, kept.write)
            for start in range(0, n_rows, len(weights)):
                stop = min(start + len(weights), n_rows)
                ids = tuple(f"row-{i}" for i in range(start, stop))
                tally.add(WeightRows(ids, weights[: stop - start]), join, consumer="shop")
        print(tally.rows, tally.rows_kept, peak_mib())
"""


def peaks_mib(directory: Path, *sizes: int) -> list[float]:
    """Return the peak memory of one process after each request, the small one first."""
    said = said_by(STREAM, directory, *sizes)
    expected = [[n_rows, min(n_rows, 3 * PERSONS)] for n_rows in sizes]
    assert [[int(rows), int(kept)] for rows, kept in zip(said[::3], said[1::3], strict=True)] == expected
    return [float(peak) for peak in said[2::3]]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's own figure of peak memory")
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    numbers = np.arange(MANY)
    columns = {
        "id": pa.array([f"row-{i}" for i in numbers]),
        "label": pa.array(numbers % 2),
        "person": pa.array([f"person-{i % PERSONS}" for i in numbers]),
    }
    pq.write_table(pa.table(columns), tmp_path / "labels.parquet")
    dataset_in(tmp_path).close()
    few, many = peaks_mib(tmp_path, FEW, MANY)
    assert many - few < 7  # 2; 12 with all ids held


def test_what_a_request_keeps_goes_to_the_disk_when_it_is_large() -> None:
    """The flags of counted rows and the ids of a release both grow with the rows."""
    charging: Any = SimpleNamespace(threads=None)
    spools: list[Any] = [Call(charging, "shop")._kept, LabelsDesk(charging, charging, "shop")._ids]
    for spool in spools:
        spool.write(bytes(SPOOL_BYTES))
        assert not spool._rolled
        spool.write(b"1")
        assert spool._rolled
        spool.close()
