"""Whom a promise is about: a training on a party's own rows protects rows, each alone."""

from __future__ import annotations

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.data.settings import DatasetSettings

UNDER_LABEL_DP = "a vertical training with privacy.epsilon"


def refuse_persons(dataset: DatasetSettings, name: str, job: str) -> None:
    """Raises ConfigError: the rows are of persons, who may have several, and the promise would be of each row alone.

    Args:
        job: what promises it, in words.
    """
    if dataset.person is not None:
        raise ConfigError(
            f"datasets.{name}.person: {job} protects rows, and its budget would count persons",
            hint="make a dataset of one row for each person, without a person column",
        )


def refuse_filled(dataset: DatasetSettings, name: str) -> None:
    """Raises ConfigError: what becomes of a missing value would depend on other rows, or change their number."""
    if dataset.missing != "refuse":
        raise ConfigError(
            f'datasets.{name}.missing = "{dataset.missing}": one row would then change others, or their number',
            hint="fill in missing values beforehand, by a rule that looks at no other row",
        )
    if dataset.levels_are_found:
        raise ConfigError(
            f"datasets.{name}.categories: levels that are found in the rows would tell of them",
            hint=f"name the levels that are known without the rows, such as datasets.{name}.categories = "
            '{ region = ["north", "south"] }',
        )
