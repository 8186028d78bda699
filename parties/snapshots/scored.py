"""Decide, when a passive party's rows are published, whether they hold enough for the scores that the party gives.

Only the operator learns the decision. A job reads what the party's file declares: a refusal or a number that followed
from the rows would reveal them.
"""

from __future__ import annotations

from collections.abc import Sequence

from blindfit.algorithms.errors import ConfigError, PolicyRefused
from blindfit.algorithms.statistics.vertical.score_leaks import RowContent, default_models
from blindfit.algorithms.statistics.vertical.selection import FOLDS
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.row_content import count_unknowns
from blindfit.parties.snapshots.snapshot import content_of, record_of
from blindfit.parties.store.snapshots import SnapshotRow

# The smallest grid has 2 points, each with one fold that leaves the row out; then comes the final training.
LEAST_MODELS_OF_A_GRID = 2 * (min(FOLDS) - 1) + 1
GIVE_SCORES = frozenset({"taylor", "predict"})


def models_declared(settings: PartySettings, dataset: str) -> int | str:
    """Return how many models may score a row of a dataset, in the form of a snapshot; 0 if no job of the party scores.

    The number follows from the party's file: "default" if the file declares no number.
    """
    if settings.role != "passive" or not GIVE_SCORES.intersection(settings.policy.systems):
        return 0
    declared = settings.datasets[dataset].models_per_row
    return "default" if declared is None else declared


def refuse_weak_rows(row: SnapshotRow, known: Sequence[SnapshotRow], settings: PartySettings) -> None:
    """Refuse rows that hold too little for the scores that the party gives. Only the operator sees the error.

    Args:
        known: all snapshots of the party.

    Raises:
        ConfigError: the reason, and what to set.
    """
    if models_declared(settings, row.dataset) not in (0, "unlimited"):
        refuse_weak_content(row.dataset, content_of(row, known), count_unknowns(record_of(row)), settings)


def refuse_weak_content(dataset: str, content: RowContent, table_columns: int, settings: PartySettings) -> None:
    """Refuse rows whose content is too little for the scores that the party gives.

    Raises:
        ConfigError: the reason, and what to set.
    """
    declared = models_declared(settings, dataset)
    if declared in (0, "unlimited"):
        return
    models = declared if isinstance(declared, int) else default_models(table_columns)
    name = f"datasets.{dataset}"
    if weakness := content.weakness():
        raise ConfigError(
            f"{settings.name}: {name}: a party that gets scores could compute its features: {weakness}",
            hint=f'set {name}.models_per_row = 0 to give no scores, or {name}.models_per_row = "unlimited" if its '
            "features are not secret",
        )
    if models > content.models:
        said = " (the default for its columns)" if declared == "default" else ""
        raise ConfigError(
            f"{settings.name}: {name}: its rows hold enough for scores of {models_in_words(content.models)}, "
            f"not of {models}{said}",
            hint=f"set {name}.models_per_row = {content.models}",
        )


def models_in_words(models: int) -> str:
    """Return a number of models with its noun."""
    return f"{models} model" if models == 1 else f"{models} models"


def are_too_weak(row: SnapshotRow, known: Sequence[SnapshotRow], settings: PartySettings) -> ConfigError | None:
    """Return why rows hold too little for the scores that the party gives; None if they do not."""
    try:
        refuse_weak_rows(row, known, settings)
    except ConfigError as error:
        return error
    return None


def check_number_of_models(party: PartySettings, dataset: str, allowed: int, asked: int) -> None:
    """Check a job on its own, against the party's declaration.

    Args:
        asked: number of trainings of each row, with those of folds.

    Raises:
        PolicyRefused: the trainings are more than a row may ever have.
    """
    if asked > max(1, allowed):
        too_many = f"the trainings of all folds and grid points are {asked} models on each row, and it allows "
        too_many += models_in_words(max(1, allowed))
        if allowed >= LEAST_MODELS_OF_A_GRID:
            reason = (
                f"{too_many}: have the job list fewer grid points (select.grid) or use fewer folds (select.folds), or "
                f'train with protocol = "falcon", or have its operator set datasets.{dataset}.models_per_row = {asked}'
            )
        else:
            reason = (
                f"{too_many}; the smallest grid, 2 points in {min(FOLDS)} folds, needs {LEAST_MODELS_OF_A_GRID}: have "
                'the job train with protocol = "falcon", or have its operator set '
                f"datasets.{dataset}.models_per_row = {asked}"
            )
        raise PolicyRefused(party=party.name, field="models_per_row", reason=reason)
