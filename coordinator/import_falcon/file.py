"""The job file of the public Falcon code in its own terms: JSON -> validated tables, with its own defaults.

A field that is not in these tables is refused, unless `--without` names it. No field is ignored silently.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.private_files import read_file
from blindfit.parties.systems import MOST_PASSIVE_IN_SHARES
from blindfit.parties.tables import Settings, mistakes
from blindfit.parties.wire.addresses import split_address

CONFIG = "tasks.model_training.input_configs.algorithm_config"


class Table(Settings):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)  # "128" is not a number, and neither is JSON's NaN


class Paths(Table):
    data_input: str = Field(min_length=1)  # a folder; the task names the file in it
    data_output: str = ""
    model_path: str = ""


class Party(Table):
    id: int = Field(ge=0, lt=2**32)
    addr: str
    party_type: Literal["active", "passive"]
    path: Paths

    @property
    def name(self) -> str:
        return f"party{self.id}"

    @property
    def is_active(self) -> bool:
        return self.party_type == "active"

    @field_validator("addr")
    @classmethod
    def _is_an_address(cls, addr: str) -> str:
        try:
            split_address(addr)
        except ConfigError:
            raise ValueError("is not of the form host:port") from None
        return addr


class Distributed(Table):
    enable: int = 0
    worker_number: int = 0
    average: int = 0


class AlgorithmConfig(Table):
    """Settings with the bounds of the options that carry them."""

    batch_size: int = Field(128, ge=2, le=2**20)
    max_iteration: int = Field(100, ge=1)
    convergence_threshold: float | None = Field(None, ge=0, le=10)
    converge_threshold: float | None = Field(None, ge=0, le=10)  # the same, in a linear regression
    with_regularization: bool = False
    penalty: Literal["l1", "l2"] = "l2"
    alpha: float = Field(0.1, ge=0, le=500)
    learning_rate: float = Field(0.1, ge=1e-6, le=1e3)
    decay: float = Field(0.1, ge=0)
    optimizer: Literal["sgd"] = "sgd"  # the Falcon code has no other
    multi_class: str = "ovr"
    metric: str = "acc"
    differential_privacy_budget: float = Field(0.1, ge=0)
    fit_bias: bool = True

    @model_validator(mode="after")
    def _has_one_threshold(self) -> AlgorithmConfig:
        if self.convergence_threshold is not None and self.converge_threshold is not None:
            raise ValueError("convergence_threshold and converge_threshold are one option: remove one of them")
        return self


class DataInput(Table):
    data: str = Field(min_length=1)
    key: str = ""


class InputConfigs(Table):
    data_input: DataInput
    algorithm_config: AlgorithmConfig


class OutputConfigs(Table):
    trained_model: str = ""
    evaluation_report: str = ""


class ModelTraining(Table):
    mpc_algorithm_name: str = ""
    algorithm_name: Literal["logistic_regression", "linear_regression"]
    input_configs: InputConfigs
    output_configs: OutputConfigs = OutputConfigs()


class Tasks(Table):
    model_training: ModelTraining


class FalconFile(Table):
    job_name: str = Field(min_length=1)
    job_info: str = ""
    job_fl_type: Literal["vertical"]
    existing_key: int = 0
    party_nums: int
    task_num: int = 1
    party_info: list[Party] = Field(min_length=2, max_length=1 + MOST_PASSIVE_IN_SHARES)
    distributed_task: Distributed = Distributed()
    tasks: Tasks

    @property
    def training(self) -> ModelTraining:
        return self.tasks.model_training

    @property
    def is_linear(self) -> bool:
        return self.training.algorithm_name == "linear_regression"

    @property
    def config(self) -> AlgorithmConfig:
        return self.training.input_configs.algorithm_config

    @model_validator(mode="after")
    def _parties_are_one_active_and_others(self) -> FalconFile:
        parties = self.party_info
        if self.party_nums != len(parties):
            raise ValueError(f"party_nums: {self.party_nums}, but party_info lists {len(parties)}: correct one of them")
        for field in ("id", "addr"):
            values = [getattr(party, field) for party in parties]
            if twice := [n for n, value in enumerate(values) if value in values[:n]]:
                first = values.index(values[twice[0]])
                raise ValueError(f"party_info.{twice[0]}.{field}: party_info.{first} has the same: give it another")
        active = [n for n, party in enumerate(parties) if party.is_active]
        if not active:
            raise ValueError('party_info: no party has party_type = "active": set it for the party that has the labels')
        if len(active) > 1:
            raise ValueError(
                f'party_info.{active[1]}.party_type: party_info.{active[0]} is "active" too: set one of them to '
                '"passive"'
            )
        return self


class Without:
    """The fields that `--without` names, by their whole path or its end; each must be needed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._needed = dict.fromkeys(names, False)

    def covers(self, field: str) -> bool:
        named = [name for name in self._needed if f".{field}".endswith(f".{name}")]
        self._needed.update(dict.fromkeys(named, True))
        return bool(named)

    def check_needed(self) -> None:
        for name, needed in self._needed.items():
            if not needed:
                raise ConfigError(f"--without {name} does nothing, because the import carries this field: remove it")


def read_falcon(path: Path, without: Without) -> tuple[FalconFile, list[str]]:
    """Return the file, and the unknown fields that `without` left out of it.

    Raises:
        ConfigError: one line that names the file and each field that is wrong.
    """
    try:
        values = _read_object(path)
        unknown = _drop_unknown(values, without)
        wrong = mistakes(values, FalconFile)
    except RecursionError:
        raise ConfigError(f"{path} is not a Falcon job: its tables are nested too deeply") from None
    if wrong:
        raise ConfigError(
            f"{path}: {'; '.join(wrong)}", hint="to go on without a field that is unknown, add --without FIELD"
        )
    return FalconFile.model_validate(values), unknown


def _read_object(path: Path) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if twice := [name for n, name in enumerate(names) if name in names[:n]]:
            raise ConfigError(f"{path}: {twice[0][:64]} occurs twice")
        return dict(pairs)

    try:
        values = json.loads(read_file(path).decode("utf-8-sig"), object_pairs_hook=once)
    except ValueError:
        raise ConfigError(f"{path} is not JSON") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path} is not a Falcon job: it is not a JSON object")
    return values


def _drop_unknown(values: dict[str, Any], without: Without) -> list[str]:
    try:
        FalconFile.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        unknown = [e["loc"] for e in found if e["type"] == "extra_forbidden"]
        dropped = [place for place in unknown if without.covers(_path(place))]
        for place in dropped:
            del reduce(getitem, place[:-1], values)[place[-1]]  # type: ignore[arg-type]
        return [_path(place) for place in dropped]
    return []


def _path(place: tuple[int | str, ...]) -> str:
    return ".".join(map(str, place))
