"""A party imports no pandas on pyarrow's behalf."""

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
LEFT_OUT = "from blindfit.parties.work.plain_arrow import leave_pandas_out; leave_pandas_out()"


@pytest.mark.parametrize(("before", "imported"), [("", "True"), (LEFT_OUT, "False")])
def test_arrays_are_made_without_pandas(before: str, imported: str) -> None:
    """The first shows that pyarrow would: else this module of ours is not needed."""
    done = subprocess.run([sys.executable, "-c", ARRAYS.format(before=before)], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == (imported, 0), done.stderr
