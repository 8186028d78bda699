"""The option that carries each field of a Falcon job, or the reason why no option does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.algorithms.texts import cut
from blindfit.coordinator.import_falcon.file import CONFIG, FalconFile, Without
from blindfit.coordinator.terminal.wording import quantity
from blindfit.parties.falcon.settings import FalconSettings

TEST_FRACTION = 0.2  # SPLIT_TRAIN_TEST_RATIO of the Falcon code is 0.8
MOST_EPOCHS = 10_000  # largest value of falcon.epochs
METRICS = {"acc", "auc", "ks"}  # the active party's report has enough for these
METRICS_OF_NUMBERS = {"mse", "rmse", "r2"}


@dataclass(frozen=True)
class Carried:
    """
    Attributes:
        asked: fields and their values, as the Falcon code's file has them.
        option: option of our job, with its table.
    """

    asked: Mapping[str, Any]
    option: str
    value: str | float | bool
    note: str = ""

    def __str__(self) -> str:
        return f"{format_fields(self.asked)}: {self.option} = {json.dumps(self.value)}" + (
            f"; {self.note}" if self.note else ""
        )


@dataclass(frozen=True)
class NotCarried:
    asked: Mapping[str, Any]
    why: str

    def __str__(self) -> str:
        return f"{format_fields(self.asked)}: {self.why}"


def format_fields(asked: Mapping[str, Any]) -> str:
    """Return fields with their values; a field without a value is one whose value nobody knows."""
    return ", ".join(
        name if value is None else f"{name} = {cut(json.dumps(value), 200)}" for name, value in asked.items()
    )


# --- the job -----------------------------------------------------------------------------------------


def carry_over(asked: FalconFile, rows: int | None) -> Iterator[Carried]:
    """Yield the options that carry fields.

    Args:
        rows: number of rows that all parties have; None if none of their files is here.
    """
    config = asked.config
    yield Carried({"job_name": asked.job_name}, "name", _job_name(asked.job_name))
    yield Carried({"job_fl_type": asked.job_fl_type}, "protocol", "falcon")
    model, note = ("linear", "of labels that Blindfit standardises") if asked.is_linear else ("logistic", "")
    yield Carried({"algorithm_name": asked.training.algorithm_name}, "falcon.model", model, note)
    yield Carried({"batch_size": config.batch_size}, "falcon.batch_rows", config.batch_size)
    epochs, why = epochs_of(config.max_iteration, config.batch_size, rows)
    yield Carried({"max_iteration": config.max_iteration}, "falcon.epochs", epochs, why)
    note = "each iteration draws its batch from all rows; Blindfit draws other rows"
    yield Carried({"max_iteration": config.max_iteration}, "falcon.sampling", "replacement", note)
    note = "of columns that Blindfit standardises and the Falcon code does not"
    yield Carried({"learning_rate": config.learning_rate}, "falcon.learning_rate", float(config.learning_rate), note)
    if config.decay:
        note = "the rate in epoch t is learning_rate / (1 + decay t); the Falcon code reads it and keeps its rate"
        yield Carried({"decay": config.decay}, "falcon.decay", float(config.decay), note)
    else:
        yield Carried({"decay": 0}, "falcon.schedule", "constant")
    yield Carried({"optimizer": config.optimizer}, "falcon.optimiser", config.optimizer)
    yield from _penalty(asked)
    yield _tolerance(asked)
    note = "no penalty acts on it; in the Falcon code the penalty does" if config.fit_bias else ""
    yield Carried({"fit_bias": config.fit_bias}, "falcon.intercept", config.fit_bias, note)


def _penalty(asked: FalconFile) -> Iterator[Carried]:
    config = asked.config
    if not config.with_regularization:
        yield Carried({"with_regularization": False}, "falcon.l2", 0.0)
        return
    fields = {"with_regularization": True, "penalty": config.penalty, "alpha": config.alpha}
    if config.penalty == "l1":
        yield Carried({"with_regularization": True, "penalty": config.penalty}, "falcon.l2", 0.0)
        note = "a weight that the penalty would draw past 0 becomes 0 here, and changes its sign in the Falcon code"
        yield Carried(fields, "falcon.l1", float(config.alpha), note)
        return
    yield Carried(fields, "falcon.l2", 2.0 * config.alpha, "its gradient has 2 alpha w where ours has l2 w")


def _tolerance(asked: FalconFile) -> Carried:
    config = asked.config
    name = "convergence_threshold" if config.converge_threshold is None else "converge_threshold"
    value = getattr(config, name)
    value = 1e-4 if value is None else float(value)
    note = (
        f"of the loss of {FalconSettings().validation_fraction:.0%} of the rows: after {FalconSettings().patience} "
        "epochs without a loss lower by it training ends; the Falcon code reads it and runs every iteration"
    )
    return Carried({name: value}, "falcon.tolerance", value, note)


def epochs_of(max_iteration: int, batch_rows: int, rows: int | None) -> tuple[int, str]:
    """Return as many epochs as have at least these iterations, and why.

    An iteration there is one random batch, an epoch here is all batches. Without rows, each iteration counts as an
    epoch, which reads at least as many rows.

    Raises:
        DataError: there are too few rows for a batch, a validation loss and a test.
    """
    if rows is None:
        epochs, why = max_iteration, "no party's rows are here, so each iteration of one batch became a whole epoch"
        why += "; write iterations x batch_size / training rows instead"
    else:
        plan = _plan(rows, batch_rows)
        epochs = -(-max_iteration // len(plan.batches))
        why = f"an iteration is one random batch, an epoch all {quantity(len(plan.batches), 'batch', 'batches')}"
        why += f" of {len(plan.train):,} training rows"
    if epochs > MOST_EPOCHS:
        why += f"; {epochs:,} epochs are above the limit of {MOST_EPOCHS:,}"
    return min(epochs, MOST_EPOCHS), why


def _plan(rows: int, batch_rows: int) -> RowPlan:
    """Return the plan that the parties will make if all rows are common."""
    validation = FalconSettings().validation_fraction
    try:
        return RowPlan.of(
            np.arange(rows), test_fraction=TEST_FRACTION, validation_fraction=validation, batch_rows=batch_rows
        )
    except DataError:
        raise DataError(
            f"the parties' files have {quantity(rows, 'row')}: too few to train, validate and test"
        ) from None


def _job_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:40]


# --- what is not carried --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A setting that a job here cannot have.

    Attributes:
        instead: description of the job without it.
    """

    field: str
    value: str
    reason: str
    instead: str

    @property
    def asked(self) -> dict[str, str]:
        return {self.field.rpartition(".")[2]: self.value}


def _changes(asked: FalconFile) -> Iterator[Change]:
    config = asked.config
    if config.multi_class != "ovr":
        reason = "a falcon job has two classes"
        yield Change(f"{CONFIG}.multi_class", config.multi_class, reason, "one model separates label 1 from label 0")


def leave_out(asked: FalconFile, source: Path, without: Without) -> Iterator[NotCarried]:
    """Raise ConfigError: `--without` does not name the field."""
    for change in _changes(asked):
        if not without.covers(change.field):
            (name,) = change.asked
            hint = f"to go on without it, add --without {name}: {change.instead}"
            raise ConfigError(f"{source}: {change.field} = {json.dumps(change.value)}: {change.reason}", hint=hint)
        yield NotCarried(change.asked, f"left out by --without: {change.instead}")


def not_carried(asked: FalconFile) -> Iterator[NotCarried]:
    config, training, distributed = asked.config, asked.training, asked.distributed_task
    budget = {"differential_privacy_budget": config.differential_privacy_budget}
    why = "the Falcon code reads this and never uses it"
    yield NotCarried(budget, f"{why}; here [privacy] has an epsilon and a delta, and asks for falcon.feature_bounds")
    if not config.with_regularization:
        why = "without with_regularization it does nothing"
        yield NotCarried({"penalty": config.penalty, "alpha": config.alpha}, why)
    yield NotCarried({"metric": config.metric}, _metric(config.metric, asked.is_linear))
    if config.multi_class == "ovr":
        why = "numbers have no classes" if asked.is_linear else "labels are 0 and 1, so there is nothing to choose"
        yield NotCarried({"multi_class": "ovr"}, why)
    yield NotCarried({"mpc_algorithm_name": training.mpc_algorithm_name}, "there is no program to choose")
    keys = {"existing_key": asked.existing_key, "data_input.key": training.input_configs.data_input.key}
    yield NotCarried(keys, "no key outlives a session; certificates name the parties")
    why = "each party's [compute] table names its workers"
    yield NotCarried({"distributed_task": distributed.model_dump()}, why)
    why = "each party writes its own model.json and report.json, in Blindfit's formats"
    yield NotCarried(training.output_configs.model_dump(), why)
    for n, party in enumerate(asked.party_info):
        fields = {"data_output": party.path.data_output, "model_path": party.path.model_path}
        prefixed = {f"party_info.{n}.path.{name}": value for name, value in fields.items()}
        yield NotCarried(prefixed, f"state/{party.name} (data_dir) has what the party keeps")
    yield NotCarried({"job_info": asked.job_info}, "a job has no description")
    yield NotCarried({"task_num": asked.task_num}, "a job is one training")
    yield NotCarried({"party_nums": asked.party_nums}, "the list of parties gives their number")


def _metric(metric: str, is_linear: bool) -> str:
    of_classes, of_numbers = "the confusion matrix, log loss, AUC and KS", "the mean squared error and R squared"
    had = of_numbers if is_linear else of_classes
    figures = f"the active party's report has {had} of the test rows, for every metric"
    return (
        figures
        if metric in (METRICS_OF_NUMBERS if is_linear else METRICS)
        else f"this metric is not computed; {figures}"
    )
