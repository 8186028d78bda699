"""What a job asks of its parties: validated, public, the same for everyone; compared again in the handshake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from algorithms import fixed_point
from algorithms.errors import ConfigError
from algorithms.messages import ParameterValue
from algorithms.statistics.solvers import SolverName, SolverSettings
from parties.settings import Settings, validate

DEFAULT_NORM_QUANTILE = 0.99


class PrivacySettings(Settings):
    epsilon: float = Field(gt=0, le=50)
    delta: float = Field(1e-5, gt=0, lt=0.5)
    mechanism: Literal["analytic", "classic"] = "analytic"
    max_rows_per_person: int | None = Field(None, ge=1, le=2**16)  # None: what the dataset declares
    release: str = Field("", max_length=64)  # another name asks for another draw, charged again

    @model_validator(mode="after")
    def _classic_is_proved_below_1(self) -> PrivacySettings:
        if self.mechanism == "classic" and self.epsilon >= 1:
            raise ValueError('mechanism = "classic" is proved for epsilon < 1 alone: take "analytic"')
        return self


class SplitSettings(Settings):
    test_fraction: float = Field(0.2, ge=0, lt=1)  # rows that are not sent and not trained on


class WalrSettings(Settings):
    intercept: bool = True
    constant_columns: Literal["error", "drop"] = "error"
    norm_bound: float | Literal["auto"] = "auto"  # of a standardised row, the constant included
    norm_quantile: float = Field(DEFAULT_NORM_QUANTILE, gt=0, le=1)  # what "auto" takes of the row norms
    frac_bits: int = Field(16, ge=fixed_point.MIN_FRAC_BITS, le=fixed_point.MAX_FRAC_BITS)
    l2: float | Literal["auto"] = "auto"  # "auto": from the noise
    mu: Literal["clip", "as-released", "project"] = "clip"
    solver: SolverName = "auto"
    tolerance: float | None = None
    max_iterations: int | None = None
    warm_start_rows: int | None = None
    memory: int | None = None
    rate: float | None = None
    decay: float | None = None
    batch_rows: int | None = None
    averaging: bool | None = None
    centred: bool | None = None

    def solver_settings(self, l2: float) -> SolverSettings:
        return SolverSettings(
            l2=l2,
            solver=self.solver,
            unpenalised=-1 if self.intercept else None,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            warm_start_rows=self.warm_start_rows,
            memory=self.memory,
            rate=self.rate,
            decay=self.decay,
            batch_rows=self.batch_rows,
            averaging=self.averaging,
            centred=self.centred,
        )

    @model_validator(mode="after")
    def _numbers_fit(self) -> WalrSettings:
        for name in ("norm_bound", "l2"):
            value = getattr(self, name)
            if value != "auto" and not 0 <= value < float("inf"):
                raise ValueError(f'{name} must be "auto" or a number that is not negative')
        if self.norm_bound == 0:
            raise ValueError("norm_bound must be above 0")
        if self.norm_bound != "auto" and self.norm_quantile != DEFAULT_NORM_QUANTILE:
            raise ValueError('norm_quantile does nothing beside a norm_bound of your own: take norm_bound = "auto"')
        try:
            self.solver_settings(0.0)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self


class TimeoutSettings(Settings):
    step_s: float = Field(120.0, gt=0, le=86400)  # the longest a peer may take for one step
    reconnect_s: float = Field(30.0, gt=0, le=86400)  # the longest a cut may last
    session_s: float = Field(3600.0, gt=0, le=30 * 86400)  # the longest a party may prepare or compute
    approval_s: float = Field(3600.0, gt=0, le=30 * 86400)  # the longest an operator may take to approve


class JobParameters(Settings):
    protocol: Literal["walr"]
    seed: int = Field(0, ge=0, lt=2**63)  # public randomness alone: the split, the batches
    privacy: PrivacySettings
    split: SplitSettings = SplitSettings()
    walr: WalrSettings = WalrSettings()
    timeouts: TimeoutSettings = TimeoutSettings()

    def to_parameters(self) -> dict[str, ParameterValue]:
        return dict(_flat("", self.model_dump(exclude_none=True)))

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, ParameterValue]) -> JobParameters:
        nested: dict[str, Any] = {}
        for name, value in parameters.items():
            *path, last = name.split(".")
            table = nested
            for part in path:
                table = table.setdefault(part, {})
                if not isinstance(table, dict):
                    raise ConfigError(f"the proposed job: {name} is both a value and a table")
            table[last] = value
        return validate(nested, cls, source="the proposed job")


def _flat(prefix: str, values: Mapping[str, Any]) -> list[tuple[str, ParameterValue]]:
    flat: list[tuple[str, ParameterValue]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            flat += _flat(f"{prefix}{name}.", value)
        else:
            flat.append((prefix + name, value))
    return flat
