"""`blindfit attack MODEL.JSON`: measure what a fitted logistic model reveals about its training rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.algorithms.statistics.linear import pretraining
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.quality.model_attacks import (
    Auc,
    Inversion,
    Membership,
    Predict,
    inversion,
    membership,
    row_losses,
)
from blindfit.algorithms.statistics.quality.model_attacks import Table as Rows
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.parties.data.duplicates import DuplicateSearch
from blindfit.parties.data.opening import open_for_model
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.files.written import read_json
from blindfit.parties.systems import load_model
from blindfit.parties.training.public_model import load_pretrained


@dataclass(frozen=True)
class Attacked:
    """A model as an attacker uses it.

    Args:
        scale: columns, in the order in which `predict` wants them, and their standardisation.
        weights: weight of each standardised feature, by name.
    """

    scale: Standardiser
    weights: dict[str, float]
    predict: Predict

    @property
    def columns(self) -> tuple[str, ...]:
        return self.scale.columns


@dataclass(frozen=True)
class ModelAudit:
    confidence: float
    membership: Membership
    inversion: Inversion

    def to_dict(self) -> dict[str, Any]:
        content = asdict(self)
        content["membership"]["found"] = self.membership.found
        content["inversion"]["found"] = self.inversion.found
        return content


def audit_model(
    path: Path, members: Path, non_members: Path, *, label: str, row_id: str, sensitive: str | None, confidence: float
) -> ModelAudit:
    """
    Raises:
        ConfigError: the confidence is out of range, or the model has no such column.
        DataError: names the file and what is wrong with it.
    """
    if not 0.5 <= confidence < 1:
        raise ConfigError(f"--confidence must lie in [0.5, 1), not {confidence:g}")
    attacked = open_attacked(path)
    column = sensitive if sensitive is not None else max(attacked.weights, key=lambda name: abs(attacked.weights[name]))
    if column not in attacked.columns:
        raise ConfigError(
            f"--sensitive {column}: the model has no such column", hint=f"it has {', '.join(attacked.columns)}"
        )
    (ids, trained), (other_ids, others) = (
        _read(file, whose, attacked.scale, label, row_id)
        for file, whose in ((members, "members"), (non_members, "non-members"))
    )
    if shared := len(ids & other_ids):
        raise DataError(
            f"{non_members}: {shared} of its ids are in {members} too: a row is either a member or a non-member",
            hint="leave the members out of the non-members",
        )
    losses, other_losses = (row_losses(rows.labels, attacked.predict(rows.features)) for rows in (trained, others))
    found = membership(losses, other_losses, confidence)
    place = attacked.columns.index(column)
    return ModelAudit(confidence, found, inversion(attacked.predict, trained, others, place, column, confidence))


# --- the model ----------------------------------------------------------------------------------


def open_attacked(path: Path) -> Attacked:
    """Raise DataError: the file is not a whole logistic model."""
    content = read_json(path)
    if isinstance(content, dict) and content.get("format") == pretraining.FORMAT:
        start = load_pretrained(path)
        weights = dict(zip(start.standardiser.kept_columns, start.weights, strict=True))
        return Attacked(start.standardiser, weights, start.probabilities)
    model = load_model(path)
    if isinstance(model, WALRModel):
        return Attacked(model.standardiser, model.feature_weights, model.probabilities)
    if isinstance(model, DPLogisticModel):
        return Attacked(model.standardiser, model.feature_weights, model.probabilities)
    if not isinstance(model, VerticalModelPart) or model.model != "logistic":
        raise DataError(f"{path} is not a logistic model: the attacks need probabilities")
    if len(model.data_parties) > 1:
        raise DataError(
            f"{path} is only the part of {model.party}: {len(model.data_parties)} parties share this model",
            hint="an audit needs the whole model: fit one to all columns at one party",
        )
    weights = dict(zip(model.standardiser.kept_columns, model.weights.tolist(), strict=True))
    return Attacked(model.standardiser, weights, lambda features: model.predictions(model.score_parts(features)))


# --- the rows -----------------------------------------------------------------------------------


def _read(path: Path, whose: str, scale: Standardiser, label: str, row_id: str) -> tuple[set[str], Rows]:
    if taken := {label, row_id} & {*scale.columns, *scale.record.names}:
        raise ConfigError(
            f"{', '.join(sorted(taken))}: a feature of the model, and named as the label or the id",
            hint="name other columns: --label COLUMN, --id COLUMN",
        )
    settings = DatasetSettings(url=f"csv:{path}", id=row_id, label=label)
    source = open_for_model(settings, scale.record, scale.columns, Path(), whose, f"--{whose}")
    batches, duplicates = [], DuplicateSearch()
    for batch in source.batches():
        duplicates.add(batch)
        batches.append(batch)
    duplicates.refuse_duplicates(source)
    labels = np.concatenate([np.asarray(batch.labels, dtype=bool) for batch in batches])
    if labels.all() or not labels.any():
        raise source.origin.error(
            f"every label is {int(labels[0])}", column=label, hint="an audit needs rows of both classes"
        )
    ids = {name for batch in batches for name in batch.ids.to_pylist()}
    return ids, Rows(np.concatenate([batch.features for batch in batches]), labels)


# --- output ------------------------------------------------------------------------------------------


def table_of(found: ModelAudit) -> Table:
    member, inverted = found.membership, found.inversion
    table = Table(box=SIMPLE_HEAD)
    table.add_column("attack")
    table.add_column("figure")
    for name in ("found", "without a leak"):
        table.add_column(name, justify="right")
    guess = f"inversion of {inverted.column}"
    rows = (
        ("membership", "AUC of the loss", _auc(member.auc), "0.500"),
        ("membership", "advantage, TPR - FPR", f"{member.advantage:.3f}", f"< {member.advantage_by_chance:.3f}"),
        ("membership", "TPR at 1% FPR", f"{member.tpr_at_low_fpr:.3f}", "0.010"),
        (guess, "AUC, members", _auc(inverted.members), f"as for non-members, {_auc(inverted.non_members)}"),
        (guess, "right guesses, members", f"{inverted.accuracy:.3f}", f"guessing blindly: {inverted.baseline:.3f}"),
    )
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _auc(area: Auc) -> str:
    return f"{area.value:.3f} [{area.low:.3f}, {area.high:.3f}]"


def in_words(found: ModelAudit) -> list[str]:
    member, inverted = found.membership, found.inversion
    confidence = f"at a confidence of {found.confidence * 100:g}%"
    pick = f"The attack picks the member of a pair right {member.auc.value:.0%} of the time"
    return [
        f"Membership: {member.members} members, {member.non_members} non-members. {pick}: "
        + (f"{confidence} better than by chance." if member.found else f"{confidence} no better than by chance."),
        f"Inversion: from a member's other features and label, the attack guesses right {inverted.accuracy:.0%} of the "
        f"time whether {inverted.column} is above the middle. The more common answer of non-members "
        f"would be right {inverted.baseline:.0%} of the time. "
        + (
            f"It works better on members than on non-members, {confidence}: training revealed the difference."
            if inverted.found
            else f"It works no better on members than on non-members, {confidence}: other people are guessed as well."
        ),
    ]
