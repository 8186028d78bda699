"""An option that is missing, or has an invalid choice, is refused with the option's meaning."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from blindfit.coordinator.job.job import JobFile
from blindfit.parties.systems import SYSTEMS, party_class, system
from blindfit.parties.tables import mistakes, option_of

ROOTS = (JobFile, party_class(tuple(SYSTEMS)), *(system(name).job for name in SYSTEMS))


def tables() -> dict[str, type[BaseModel]]:
    """Return every table of a job file and of a party file, by its class's name."""
    found: dict[str, type[BaseModel]] = {}
    waiting: list[Any] = list(ROOTS)
    while waiting:
        one = waiting.pop()
        if isinstance(one, type) and issubclass(one, BaseModel):
            if found.get(one.__name__) is not one:
                found[one.__name__] = one
                waiting += [field.annotation for field in one.model_fields.values()]
        else:
            waiting += get_args(one)
    return found


def only_texts(annotation: Any) -> bool:
    """Return True if every value of the option is one of its choices, or nothing."""
    parts = [annotation] if get_origin(annotation) in (Literal, tuple, list, dict) else get_args(annotation)
    return any(get_origin(one) is Literal for one in parts) and all(
        get_origin(one) is Literal or one is type(None) for one in parts
    )


TABLES = tables()


@pytest.mark.parametrize("name", sorted(TABLES))
def test_what_is_missing_is_explained(name: str) -> None:
    model = TABLES[name]
    said = " ".join(mistakes({}, model))
    for field, info in model.model_fields.items():
        if info.is_required() and info.description:
            option = option_of(model, field)
            assert f"{option} is missing ({' '.join(info.description.split())})" in said


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_choice_that_is_not_there_is_explained(name: str) -> None:
    model = TABLES[name]
    for field, info in model.model_fields.items():
        if only_texts(info.annotation) and info.description:
            said = " ".join(mistakes({option_of(model, field): "no such choice"}, model))
            assert f'not the text "no such choice" ({" ".join(info.description.split())})' in said


def test_a_table_that_is_missing_is_explained() -> None:
    said = " ".join(mistakes({}, TABLES["PartySettings"]))
    assert "identity is missing (Identity of the party for others: certificate and key.)" in said
