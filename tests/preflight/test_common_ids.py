"""If no ids are in common, their differences are counted, and no id is shown."""

from __future__ import annotations

import pyarrow as pa
import pytest

from blindfit.algorithms.columns.spelling import one_spelling
from blindfit.coordinator.vertical.common_ids import none_in_common

SAID = "0 common rows: no id is in the tables of all parties"


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (["a1", "b2", "c3"], ["A1", "B2", "D4"], f"{SAID}; 2 would be in all tables without capitals"),
        (["a 1"], ["a1"], f"{SAID}; 1 would be in all tables without white space within"),
        (["0042", "7"], ["42", "9"], f"{SAID}; 1 would be in all tables without leading zeros"),
        (["P42"], ["ID-42"], f"{SAID}; 1 would be in all tables without leading letters"),
        (["P 042"], ["p42"], f"{SAID}; 1 would be in all tables without all of these"),
        (["anna"], ["ben"], SAID),
    ],
)
def test_what_they_differ_in(ours: list[str], theirs: list[str], said: str) -> None:
    error = none_in_common({"bank": pa.array(ours), "post": pa.array(theirs)})
    assert error.message == said
    assert not any(i in f"{error} {error.hint}".split() for i in (*ours, *theirs) if not i.isdecimal())


def test_white_space_around_them_is_never_the_reason() -> None:
    assert one_spelling(pa.array(["a1 ", "\tb2", "c3\u00a0"])).to_pylist() == ["a1", "b2", "c3"]
