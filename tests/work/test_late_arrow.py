"""A party loads Arrow with the first table that it reads, all of it at once, and without pandas."""

from __future__ import annotations

import subprocess
import sys

import pytest

ARRAYS = """
import sys
{before}
import pyarrow as pa
assert pa.array(["a", None]).to_pylist() == ["a", None]
assert pa.array(__import__("numpy").arange(3)).to_pylist() == [0, 1, 2]
print("pandas" in sys.modules)
import pandas  # whoever wants it, gets it
assert len(sys.meta_path) == len(set(map(id, sys.meta_path))) and not any("Hidden" in repr(f) for f in sys.meta_path)
"""
NOW = "from blindfit.parties.work.late_arrow import load_arrow; load_arrow()"
LATE = "from blindfit.parties.work.late_arrow import defer_arrow; defer_arrow()"

USES = f"""
{LATE}
import sys
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import blindfit.parties.node
import blindfit.parties.falcon.data_party, blindfit.parties.predict.prediction, blindfit.parties.walr.consumer
import blindfit.parties.label_dp.consumer, blindfit.parties.dp_lr.trainer, blindfit.parties.measurement.seat
import blindfit.parties.taylor.data_party, blindfit.parties.evaluate.consumer, blindfit.parties.walr.passive
assert "pyarrow.lib" not in sys.modules, "a module of a party uses Arrow as it is imported"
assert {{use}}
names = "pyarrow", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet"
late = [name for name in names if "Late" in str(type(sys.modules[name]))]
assert late == [], f"{{{{late}}}} would be loaded by another use, whose time may depend on a label"
assert pyarrow.compute is pc and sys.modules["pyarrow"] is pa and isinstance(pa.table({{{{"a": [1]}}}}), pa.lib.Table)
"""

THREADS = f"""
{LATE}
import threading
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
wrong, start = [], threading.Barrier(6)

def use(number):
    start.wait()
    try:
        if number % 2:
            assert pc.sum(pa.array([1, 2])).as_py() == 3
        else:
            assert pyarrow.csv.ReadOptions().block_size and pa.scalar(3).as_py() == 3
    except BaseException as error:
        wrong.append(repr(error))

threads = [threading.Thread(target=use, args=(number,)) for number in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, wrong
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("before", "imported"), [("", "True"), (NOW, "False"), (LATE, "False")])
def test_arrays_are_made_without_pandas(before: str, imported: str) -> None:
    """The first assertion shows that pyarrow would import it: otherwise our module is not needed."""
    assert run(ARRAYS.format(before=before)) == imported


@pytest.mark.parametrize(
    "use", ["pa.array([1])", "pc.sum", "pyarrow.csv.read_csv", "pq.ParquetFile", "isinstance(pa.int8(), pa.DataType)"]
)
def test_the_first_use_of_any_name_loads_all_of_arrow(use: str) -> None:
    run(USES.format(use=use))


def test_threads_that_use_arrow_first_wait_for_each_other() -> None:
    run(THREADS)
