"""Every option is explained, as it is validated; the page of all of them is what the code says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from rich.console import Console

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.explain import command as explain
from blindfit.coordinator.explain.options import _table_in, all_options, kind_of
from blindfit.coordinator.job.job import JobFile, load_job, shown
from blindfit.parties.settings import PartySettings
from blindfit.parties.systems import SYSTEMS, system
from tests.each_case import each_case

ROOT = Path(__file__).parents[2]


def printed(name: str | None) -> str:
    console = Console(record=True, width=200)
    explain.explain(name).show(console)
    return console.export_text()


def test_every_option_says_what_it_is_for() -> None:
    assert len(all_options()) > 150
    assert [option.path for option in all_options() if len(option.text) < 8] == []


def test_the_page_is_what_the_code_says() -> None:
    """make options-page"""
    assert (ROOT / "docs" / "options.md").read_text() == explain.page()


def test_each_is_found_by_its_path() -> None:
    paths = {option.path for option in all_options()}
    assert [path for path in sorted(paths) if path not in printed(path)] == []


def test_a_table_a_bare_name_a_value_and_anybodys_name_are_found() -> None:
    assert printed("timeouts").count("default:") == 4
    assert "policy.min_rows  (in party files)" in printed("min_rows")
    assert printed("taylor.leverage").startswith("taylor.unsafe ")
    assert printed("datasets.visits.label") == printed("datasets.NAME.label") == printed("datasets.label")
    assert "[falcon]: backend" in printed(None)


def test_one_that_is_not_there_is_told_with_what_is_near() -> None:
    with pytest.raises(ConfigError, match=r"there is no option taylor\.epoch") as caught:
        explain.explain("taylor.epoch")
    assert "taylor.epochs" in caught.value.hint


# --- ranges ------------------------------------------------------------------------------------------------


def fields_of(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    found = []
    for name, field in model.model_fields.items():
        inner, _ = _table_in(field.annotation)
        found += fields_of(inner) if inner is not None else [(f"{model.__name__}.{name}", field)]
    return found


BOUNDED = {
    name: field
    for model in (*(system(name).job for name in SYSTEMS), JobFile, PartySettings)
    for name, field in fields_of(model)
    if kind_of(field)[1]
}


@each_case("name", sorted(BOUNDED))
def test_a_range_that_is_said_is_the_one_that_is_held_to(name: str) -> None:
    field = BOUNDED[name]
    whole = (field.annotation, *field.metadata)
    adapter: Any = TypeAdapter(Annotated[whole] if field.metadata else field.annotation)  # type: ignore[misc]
    said, outside = kind_of(field)[1], []
    for word in re.split(r", (?=a|b)", said):
        text = (word.split()[0] if word.endswith("or more") else word.split()[-1]).replace(",", "")
        number = 2 ** int(text[2:]) if text.startswith("2^") else float(text)
        is_low = word.startswith("above") or word.endswith("or more")
        outside.append(number - 1 if is_low else number * 1.01 + 1)
        if word.startswith(("above", "below")):
            outside.append(number)
    for value in outside:
        assert refused(adapter, int(value) if value == int(value) else value), (name, said, value)


def refused(adapter: Any, value: float) -> bool:
    try:
        adapter.validate_python(value)
    except ValidationError:
        return True
    return False


def test_show_says_what_each_table_is_for_and_reads_back(tmp_path: Path) -> None:
    job = load_job(ROOT / "examples" / "taylor" / "job.toml")
    text = shown(job)
    assert "[taylor]  # training under encryption, and its defences" in text
    assert "[walr]" not in text
    (tmp_path / "job.toml").write_text(text)
    assert load_job(tmp_path / "job.toml").to_dict() == job.to_dict()
