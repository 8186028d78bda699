"""Whom a promise is about: a training on a party's own rows protects rows, each alone."""

from __future__ import annotations

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.data.recipe_settings import GIVEN
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.source import Source
from blindfit.parties.tables import toml_of

UNDER_LABEL_DP = "a vertical training with privacy.epsilon"


def refuse_persons(dataset: DatasetSettings, name: str, job: str) -> None:
    """Raise ConfigError: the rows are of persons, who may have several, and the promise would be of each row alone.

    Args:
        job: what promises it, in words.
    """
    if dataset.person is not None:
        raise ConfigError(
            f"datasets.{name}.person: {job} protects rows, and its budget would count persons",
            hint="make a dataset of one row for each person, without a person column",
        )


def refuse_dependent_rows(source: Source) -> None:
    """Raise ConfigError: a row's numbers, or how many columns there are, would depend on other rows.

    The levels are judged by the record of the columns: the settings of a snapshot do not say how its levels were found.
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
                f"datasets.{name}.derive.{recipe.name}: {numbers} that are found in the rows would tell of them",
                hint=f"give {numbers} that are known without the rows, such as "
                f"datasets.{name}.derive.{recipe.name} = "
                f'{{ by = "{recipe.by}", of = {toml_of(recipe.of[0])}, {how} }}',
            )
    if any(column.kind == "category" and not column.declared for column in source.record.columns):
        raise ConfigError(
            f"datasets.{name}.categories: levels that are found in the rows would tell of them",
            hint=f"name the levels that are known without the rows, such as datasets.{name}.categories = "
            '{ region = ["north", "south"] }',
        )
