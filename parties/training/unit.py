"""Unit of a promise: a training on a party's own rows protects each row by itself."""

from __future__ import annotations

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.data.recipe_settings import GIVEN
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.source import Source
from blindfit.parties.tables import toml_of

UNDER_LABEL_DP = "a vertical training with privacy.epsilon"


def refuse_persons(dataset: DatasetSettings, name: str, job: str) -> None:
    """Raise ConfigError if the rows belong to persons, who may have several, because the promise would protect only
    each row.

    Args:
        job: description of the job that makes the promise.
    """
    if dataset.person is not None:
        raise ConfigError(
            f"datasets.{name}.person: {job} protects rows, and its budget would count persons",
            hint="make a dataset of one row for each person, without a person column",
        )


def refuse_dependent_rows(source: Source) -> None:
    """Raise ConfigError if a row's numbers, or the number of columns, would depend on other rows.

    The check of levels uses the record of the columns: a snapshot's settings do not show where its levels came from.
    """
    name, missing = source.name, source.settings.missing
    if missing != "refuse":
        raise ConfigError(
            f'datasets.{name}.missing = "{missing}": one row would then change others, or their number',
            hint="fill in missing values beforehand, by a rule that looks at no other row",
        )
    for recipe in source.record.recipes:
        if not recipe.has_numbers:
            numbers, how = GIVEN[recipe.by]
            raise ConfigError(
                f"datasets.{name}.derive.{recipe.name}: {numbers} from the rows would reveal something of them",
                hint=f"give {numbers} that are known without the rows, such as "
                f"datasets.{name}.derive.{recipe.name} = "
                f'{{ by = "{recipe.by}", of = {toml_of(recipe.of[0])}, {how} }}',
            )
    if any(column.kind == "category" and not column.declared for column in source.record.columns):
        raise ConfigError(
            f"datasets.{name}.categories: levels from the rows would reveal something of them",
            hint=f"name the levels that are known without the rows, such as datasets.{name}.categories = "
            '{ region = ["north", "south"] }',
        )
