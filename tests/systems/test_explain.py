"""Every option is explained as it is validated, and the page of all options agrees with the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, get_origin

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from rich.console import Console

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.explain import command as explain
from blindfit.coordinator.explain import pages
from blindfit.coordinator.explain.options import JOB, PARTY, Option, advice, all_options
from blindfit.coordinator.job.job import JobFile, load_job, to_toml
from blindfit.coordinator.terminal.titles import TITLES
from blindfit.parties.renamed import NAME
from blindfit.parties.systems import SYSTEMS, party_class, system
from blindfit.parties.tables import _models_in, option_of
from tests.each_case import each_case

ROOT = Path(__file__).parents[2]
WELL_PUT = re.compile(r"(?!(Of|By|At|As|Which|What|Whether|None|The|An?) )[A-Z].{10,}\.")
"""A noun phrase first, and whole sentences."""


def printed(name: str | None) -> str:
    console = Console(record=True, width=200)
    explain.explain(name).show(console)
    return console.export_text()


def fields_of(model: type[BaseModel], prefix: str = "") -> dict[str, FieldInfo]:
    """Return the fields of all tables of a file, by the paths that options have."""
    found = {}
    for name, field in model.model_fields.items():
        path, inner = f"{prefix}{option_of(model, name)}", list(_models_in(field.annotation))
        for table in inner:
            named = f"{NAME}." if get_origin(field.annotation) is dict else ""
            found |= fields_of(table, f"{path}.{named}")
        found |= {} if inner else {path: field}
    return found


MODELS = {JOB: [*(system(name).job for name in SYSTEMS), JobFile], PARTY: [party_class(tuple(SYSTEMS))]}
FIELDS = {
    (file, path): field for file, models in MODELS.items() for m in models for path, field in fields_of(m).items()
}


def test_every_option_says_what_it_is_for() -> None:
    assert len(all_options()) > 150
    assert [option.path for option in all_options() if not WELL_PUT.fullmatch(option.text)] == []


def test_the_pages_are_what_the_code_writes() -> None:
    folder = ROOT / "docs/reference/options"
    assert {path.stem: path.read_text() for path in folder.iterdir()} == pages.pages(), "run `make options-page`"


def test_each_option_stands_on_one_page() -> None:
    names = [name for name in pages.PAGES for _ in pages.options_of_page(name)]
    listed = [option for name in pages.PAGES for option in pages.options_of_page(name)]
    assert sorted(map(repr, listed)) == sorted(map(repr, all_options()))
    assert len(set(names)) == len(pages.PAGES)


def test_each_is_found_by_its_path() -> None:
    paths = {option.path for option in all_options()}
    assert [path for path in sorted(paths) if path not in printed(path)] == []


def test_every_option_has_all_facts() -> None:
    """The effect of an option with a few values may be in the description of each value."""
    without = {
        option.path: lacks
        for option in all_options()
        if (lacks := [name for name in ("default", "when", "example") if not getattr(option, name)])
        or (lacks := ["effect"] * (not option.effect and not describes_its_values(option)))
    }
    assert without == {}


def describes_its_values(option: Option) -> bool:
    values = re.findall(r'"[^"]*"', option.kind)
    return bool(values) and all(value in option.text for value in values)


def test_no_default_hides_what_acts() -> None:
    hidden = {"none", "", "null", "None", "needed"}
    assert [option.path for option in all_options() if option.default in hidden] == []


def test_advice_is_about_options_and_repeats_no_description() -> None:
    known = {(option.file, option.path) for option in all_options()}
    about = {(file, path) for file, paths in advice().items() for path in paths}
    assert about == known
    for option in all_options():
        assert option.effect not in option.text or not option.effect, option.path


@each_case("option", all_options(), ids=lambda option: f"{option.file} {option.path}")
def test_an_example_is_a_value_that_the_option_takes(option: Option) -> None:
    values: Any = tomllib.loads("\n".join(option.toml))
    for word in [*filter(None, re.findall(r'"[^"]*"|[^.]+', option.toml[0].strip("[]") if option.table else ""))]:
        values = values[word.strip('"')]
    value = values[option.path.rpartition(".")[2]]
    if option.path == "protocol":
        assert value in SYSTEMS
        return
    field = FIELDS[option.file, option.path]
    whole = (field.annotation, *field.metadata)
    adapter: Any = TypeAdapter(Annotated[whole] if field.metadata else field.annotation)  # type: ignore[misc]
    adapter.validate_python(value)


def test_an_explanation_has_its_facts_in_the_order_of_a_decision() -> None:
    lines = printed("taylor.epochs").splitlines()
    assert lines[0] == f"taylor.epochs  (in job files of taylor, {TITLES['taylor']})"
    assert [line.split("  ")[0] for line in lines[1:7]] == [
        "what it is",
        "value",
        "default",
        "effect",
        "change it",
        "example",
    ]
    assert [line.strip() for line in lines[6:8]] == ["example     [taylor]", "epochs = 40"]


def test_a_table_a_bare_name_a_value_and_anybodys_name_are_found() -> None:
    assert printed("timeouts").count("default  ") == printed("[timeouts]").count("default  ") == 4
    assert "policy.min_rows  (in party files)" in printed("min_rows")
    assert printed("taylor.leverage").startswith("taylor.unsafe ")
    assert printed("datasets.visits.label") == printed("datasets.NAME.label") == printed("datasets.label")
    assert "[falcon]: backend" in printed(None)


def test_one_that_is_not_there_is_told_with_what_is_near() -> None:
    with pytest.raises(ConfigError, match=r"there is no option taylor\.epoch") as caught:
        explain.explain("taylor.epoch")
    assert "taylor.epochs" in caught.value.hint


# --- ranges ------------------------------------------------------------------------------------------------

BOUNDED = [option for option in all_options() if option.limits]


def test_there_is_an_option_for_each_field() -> None:
    assert {(option.file, option.path) for option in all_options()} == set(FIELDS)
    assert len(BOUNDED) > 70


@each_case("option", BOUNDED, ids=lambda option: option.path)
def test_a_range_that_is_said_is_the_one_that_is_held_to(option: Option) -> None:
    field = FIELDS[option.file, option.path]
    whole = (field.annotation, *field.metadata)
    adapter: Any = TypeAdapter(Annotated[whole] if field.metadata else field.annotation)  # type: ignore[misc]
    outside = []
    for word in re.split(r", (?=a|b)", option.limits):
        text = (word.split()[0] if word.endswith("or more") else word.split()[-1]).replace(",", "")
        number = 2 ** int(text[2:]) if text.startswith("2^") else float(text)
        is_low = word.startswith("above") or word.endswith("or more")
        outside.append(number - 1 if is_low else number * 1.01 + 1)
        if word.startswith(("above", "below")):
            outside.append(number)
    for value in outside:
        assert refused(adapter, int(value) if value == int(value) else value), (option.path, option.limits, value)


def refused(adapter: Any, value: float) -> bool:
    try:
        adapter.validate_python(value)
    except ValidationError:
        return True
    return False


def test_show_says_what_each_table_is_for_and_reads_back(tmp_path: Path) -> None:
    job = load_job(ROOT / "examples" / "taylor" / "job.toml")
    text = to_toml(job)
    assert "[taylor]  # training under encryption, and its defences" in text
    assert "[walr]" not in text
    (tmp_path / "job.toml").write_text(text)
    assert load_job(tmp_path / "job.toml").to_dict() == job.to_dict()
