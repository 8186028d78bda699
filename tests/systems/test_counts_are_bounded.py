"""Every count that a job or a party file may name has a largest value: nobody computes with 10^30 rows."""

from __future__ import annotations

import typing
from collections.abc import Iterator

import pytest
from pydantic import BaseModel, ValidationError

from blindfit.parties.systems import SYSTEMS, party_class, system

HUGE = 10**30


def leaves(annotation: object) -> Iterator[object]:
    inner = typing.get_args(annotation)
    if inner and typing.get_origin(annotation) is not typing.Literal:
        for each in inner:
            yield from leaves(each)
    else:
        yield annotation


def counts_of(model: type[BaseModel], seen: set[type]) -> Iterator[tuple[type[BaseModel], str]]:
    """Yield every option that may be a whole number, with the table that it is in."""
    if model in seen:
        return
    seen.add(model)
    for name, field in model.model_fields.items():
        kinds = list(leaves(field.annotation))
        if int in kinds and dict not in kinds and typing.get_origin(field.annotation) is not dict:
            yield model, field.alias or name
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from counts_of(kind, seen)


MODELS = [*(system(name).job for name in SYSTEMS), party_class(tuple(SYSTEMS))]
SEEN: set[type] = set()
COUNTS = [found for model in MODELS for found in counts_of(model, SEEN)]


def test_counts_are_found() -> None:
    assert {"min_common", "iterations", "min_rows", "models_per_row", "batch_rows"} < {name for _, name in COUNTS}


@pytest.mark.parametrize(("model", "name"), COUNTS, ids=[f"{model.__name__}.{name}" for model, name in COUNTS])
def test_a_count_has_a_largest_value(model: type[BaseModel], name: str) -> None:
    with pytest.raises(ValidationError) as refused:
        model.model_validate({name: HUGE})
    assert any(error["loc"][:1] == (name,) for error in refused.value.errors()), refused.value.errors()
