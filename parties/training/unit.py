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
