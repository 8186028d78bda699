"""The error about a value of the wrong type names the option, the expected type, and the value."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.tables import Settings, validate
from tests.command import blindfit
from tests.world.measured import files_of_shop_and_meter


class Inner(Settings):
    count: int = 1
    names: tuple[str, ...] | Literal["rest"] = ()
    rate: float | Literal["auto"] = "auto"
    on: bool = False
    kind: Literal["a", "b"] = "a"


class Outer(Settings):
    inner: Inner = Inner()
    url: str = ""
    place: Path = Path()
    many: dict[str, float] = {}
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | Literal["auto"] = "auto"
    rows: int = Field(1, ge=1, lt=10_000_000)
    name: str = Field("a", pattern="^[a-z]+$", max_length=5)
    levels: tuple[str, ...] = Field(("x",), min_length=1, max_length=2)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"inner": {"count": "many"}}, 'inner.count: must be a whole number, not the text "many"'),
        ({"inner": {"count": 1.5}}, "inner.count: must be a whole number, not 1.5"),
        ({"inner": {"count": [1]}}, "inner.count: must be a whole number, not a list"),
        ({"inner": {"names": 3}}, "inner.names: must be a list in square brackets or 'rest', not 3"),
        ({"inner": {"rate": "quick"}}, "inner.rate: must be a number or 'auto', not the text \"quick\""),
        ({"inner": {"on": 7}}, "inner.on: must be true or false, not 7"),
        ({"inner": {"kind": "c"}}, "inner.kind: must be 'a' or 'b', not the text \"c\""),
        ({"inner": 5}, "inner: must be a table, not 5"),
        ({"url": False}, "url: must be a text, not false"),
        ({"place": {}}, "place: must be a path, as a text, not a table"),
        ({"many": {"people": "x"}}, 'many.people: must be a number, not the text "x"'),
        ({"many": "x"}, "many: must be a table, not a text"),
        ({"share": 0}, "share: must be above 0 or 'auto', not 0"),
        ({"share": 1.5}, "share: must be at most 1 or 'auto', not 1.5"),
        ({"share": float("nan")}, "share: must be a finite number or 'auto', not nan"),
        ({"rows": 0}, "rows: must be at least 1, not 0"),
        ({"rows": 10_000_000}, "rows: must be below 10000000, not 10000000"),
        ({"name": "B 1"}, 'name: must be a text of the form ^[a-z]+$, not the text "B 1"'),
        ({"name": "abcdef"}, "name: must be a text of 5 or fewer characters, not one of 6"),
        ({"rows": True}, "rows: must be a whole number, not true"),
        ({"rows": "5"}, 'rows: must be a whole number, not the text "5"'),
        ({"share": False}, "share: must be a number, not false"),
        ({"share": "0.5"}, 'share: must be a number, not the text "0.5"'),
        ({"levels": []}, "levels: must be a list of 1 or more values, not one of 0"),
        ({"levels": ["a", "b", "c"]}, "levels: must be a list of 2 or fewer values, not one of 3"),
    ],
)
def test_what_is_wanted_and_what_was_given(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        validate(values, Outer, source="job.toml")
    assert str(refused.value) == f"job.toml: {said}"


def test_a_long_or_strange_text_is_shown_in_part_and_in_printable_characters() -> None:
    with pytest.raises(ConfigError) as refused:
        validate({"inner": {"count": "\x1b[2J" + "x" * 1000}}, Outer, source="job.toml")
    assert "\\u001b[2Jxxx" in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 150


@pytest.mark.parametrize(
    ("command", "file", "override", "said"),
    [
        (
            "show",
            "job.toml",
            "privacy.epsilon=much",
            'job.toml with --set privacy.epsilon: privacy.epsilon: must be a number, not the text "much"',
        ),
        (
            "party",
            "shop.toml",
            "policy.min_rows=few",
            'policy.min_rows: must be a whole number, not the text "few"',
        ),
        (
            "party",
            "shop.toml",
            "datasets.rows.url=3",
            "shop.toml with --set datasets.rows.url: datasets.rows.url: must be a text, not 3",
        ),
    ],
)
def test_in_the_files_of_jobs_and_parties(tmp_path: Path, command: str, file: str, override: str, said: str) -> None:
    files_of_shop_and_meter(tmp_path)
    done = blindfit(tmp_path, command, file, "--set", override)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert said in done.stderr.splitlines()[0]
    assert "Input should" not in done.stderr
