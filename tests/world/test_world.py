"""A World reads like the sentence of a test, and its files have what was requested."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world import World
from tests.world.files import toml_of

README = Path(__file__).parents[1] / "README.md"
KEYS = st.text("abcxyz_-019", min_size=1)
VALUES = st.one_of(st.booleans(), st.integers(-(10**9), 10**9), st.floats(allow_nan=False), st.text("ab\"'\\ \n\té"))
TABLES = st.recursive(
    st.dictionaries(KEYS, VALUES | st.lists(VALUES, max_size=3), max_size=3),
    lambda inner: st.dictionaries(KEYS, VALUES | inner, max_size=3),
    max_leaves=6,
)


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(from tests\.world.*?)```", README.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    names["test_a_release_is_charged_once"](tmp_path)


def test_an_edit_of_a_text_that_is_not_there_fails(tmp_path: Path) -> None:
    world = World(tmp_path).active("shop", {"id": ["u1"], "x": [1]})
    with pytest.raises(AssertionError, match=r"shop\.toml does not have 'least_rowz'"):
        world.edit("shop.toml", "least_rowz", "min_rows")


@given(TABLES)
def test_what_is_written_is_what_is_read(content: dict[str, Any]) -> None:
    finite = {key: value for key, value in content.items() if "inf" not in repr(value)}
    assert tomllib.loads(toml_of(finite)) == finite
