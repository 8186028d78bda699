"""Rows and start of a dp-lr job: the private rows, public facts about them, and the start of descent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.linear.pretraining import Pretrained, PublicRows, pretrain
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.source import Source
from blindfit.parties.dp_lr.settings import DPLRJob
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.populations import refuse_private_copy
from blindfit.parties.training.feature_bounds import scale_of
from blindfit.parties.training.public_model import dataset_declared_public, read_public_model
from blindfit.parties.training.rows import PartyRows, Report, read_rows
from blindfit.parties.training.split import hold_out
from blindfit.parties.training.unit import refuse_dependent_rows, refuse_persons


@dataclass(frozen=True, repr=False)
class PrivateRows:
    """The private rows.

    Args:
        test: True for each held-out row.
    """

    ids: pa.StringArray
    features: Floats
    labels: Floats
    test: NDArray[np.bool_]

    @property
    def n_trained(self) -> int:
        return int((~self.test).sum())


@dataclass(frozen=True, repr=False)
class Start:
    """Start of descent. All of it is public, as its owner declares.

    Args:
        model: model whose standardiser scales the private rows; all its weights are 0 if nothing is known.
        identity: digest of the file or of the public rows; not of the fitted weights, whose last digits may differ on
            another machine.
        public: features and labels of the rows that it was fitted to, if the job names them.
    """

    model: Pretrained
    kind: str  # key of STARTS
    scale: str  # key of SCALES
    identity: str
    public: tuple[Floats, Floats] | None = None


STARTS = {
    "zero": "zero weights",
    "file": "a pre-trained file",
    "undeclared": "a pre-trained file that no declaration covers",
    "public": "a fit to public rows",
}
SCALES = {"none": "as they were read", "bounds": "mapped by declared bounds", "public": "standardised by public rows"}


# --- private rows ------------------------------------------------------------------------------------


def check_private(source: Source) -> Source:
    """Return the source.

    Raises:
        ConfigError: the dataset's settings would let one row show in others, or it has no label.
    """
    name = source.name
    _check_has_both(source)
    refuse_persons(source.settings, name, "a dp-lr job")
    refuse_dependent_rows(source)
    return source.with_given_recipes()


def _check_has_both(source: Source) -> None:
    if not source.model_columns:
        raise ConfigError(
            f"datasets.{source.name}: a dp-lr job needs features", hint=f'set datasets.{source.name}.features = "rest"'
        )
    if source.settings.label is None or source.settings.label_kind != "binary":
        raise ConfigError(f"datasets.{source.name}: a dp-lr job needs a label of 0 and 1")


def read_private(source: Source, job: DPLRJob, randomness: PublicRandomness, report: Report) -> PrivateRows:
    """Read the private rows. A row is held out only by its id, so that no row moves another."""
    rows = read_rows(source, labels=True, report=report)
    return PrivateRows(rows.ids, rows.features, _labels(rows), hold_out(rows.ids, job, randomness))


def _labels(rows: PartyRows) -> Floats:
    if rows.labels is None:
        raise DataError("the rows were read without labels")
    return rows.labels


# --- what is public ----------------------------------------------------------------------------------


Opened = Callable[[str], Source]
"""Function that returns the rows of a dataset by its name."""


def check_start(settings: PartySettings, base_dir: Path, job: DPLRJob, private: Source, opened: Opened) -> None:
    """Check the start as far as possible without fitting it.

    Args:
        opened: function that opens the public dataset.

    Raises:
        ConfigError: the public dataset is not public, or bounds do not fit the features.
        DataError: the file or the public dataset is for other features.
    """
    job.dp_lr.bounds_of(private.feature_names)
    if job.dp_lr.init is not None:
        read_public_model("dp_lr.init", job.dp_lr.init, base_dir, private)
    elif job.dp_lr.public_dataset is not None:
        public_source(settings, job.dp_lr.public_dataset, opened, private)


def find_start(
    settings: PartySettings, base_dir: Path, job: DPLRJob, private: Source, opened: Opened, report: Report
) -> Start:
    """Return the start. Raise ConfigError or DataError as `check_start` does, or if the public rows have no fit."""
    # Imported here because scikit-learn takes a second, and most processes fit nothing with it.
    from blindfit.algorithms.estimators.initial_model import keep_scale

    names, kind, identity, public = private.feature_names, "zero", "", None
    model = Pretrained(keep_scale(names), (0.0,) * len(names), 0.0)
    if job.dp_lr.init is not None:
        model = read_public_model("dp_lr.init", job.dp_lr.init, base_dir, private).in_order(names)
        kind, identity = "file" if dataset_declared_public(model, settings) else "undeclared", model.identity()
    elif job.dp_lr.public_dataset is not None:
        public = _read_public(public_source(settings, job.dp_lr.public_dataset, opened, private), names, report)
        model, kind = pretrain(*public, columns=names), "public"
        identity = hashlib.sha256(b"".join(part.tobytes() for part in public)).hexdigest()
    bounds = job.dp_lr.bounds_of(names)
    if bounds is not None:
        return Start(_scale(model, scale_of(names, bounds)), kind, "bounds", identity, public)
    return Start(model, kind, "none" if kind == "zero" else "public", identity, public)


def _scale(model: Pretrained, scale: Standardiser) -> Pretrained:
    """Return the same model, for features of this scale."""
    *weights, intercept = map(float, model.weights_for(scale))
    return Pretrained(scale, tuple(weights), intercept)


def public_source(settings: PartySettings, name: str, opened: Opened, private: Source | None = None) -> Source:
    """Open a dataset of the party whose rows its owner declares public.

    The declaration is in the owner's own file. A dataset without a population is not public because of that: its file
    can be a copy of private rows.

    Raises:
        ConfigError: there is no dataset of this name, or the party's file does not declare it public.
        DataError: its features are not those of the private rows.
    """
    if name not in settings.datasets:
        raise ConfigError(f"{settings.name} has no dataset named {name}")
    chosen = settings.datasets[name]
    if not chosen.public:
        raise ConfigError(
            f"datasets.{name}: {settings.name} does not declare these rows public, and pre-training adds no noise",
            hint=f"if every row is public, its owner sets datasets.{name}.public = true in the party's file",
        )
    source = opened(name)
    _check_has_both(source)
    if private is None:
        return source
    if strangers := sorted(set(source.model_columns) ^ set(private.model_columns)):
        raise DataError(f"datasets.{name} and {private.name} do not both have the feature {strangers[0]}")
    if others := set(source.record.recipes) ^ set(private.record.recipes):
        recipe = min(recipe.name for recipe in others)
        raise DataError(
            f"datasets.{name} and {private.name} do not compute {recipe} in the same way",
            hint=f"set datasets.{name}.derive.{recipe} to what datasets.{private.name} has there",
        )
    return source.with_given_recipes()


def _read_public(source: Source, names: Sequence[str], report: Report) -> tuple[Floats, Floats]:
    """Return features in the order of `names`, and labels."""
    rows = read_rows(source, labels=True, report=report)
    return rows.features[:, [source.feature_names.index(name) for name in names]], _labels(rows)


def fit_public(settings: PartySettings, base_dir: Path, name: str, l2: float | None) -> Pretrained:
    """Return the model of `blindfit pretrain`.

    Raises:
        ConfigError: as in `public_source`, or the rows are those of a snapshot with a population.
    """

    def open_dataset(dataset: str) -> Source:
        return open_source(settings.datasets[dataset], base_dir, dataset)

    source = public_source(settings, name, open_dataset).with_recipes()
    refuse_private_copy(settings, base_dir, name, source)
    features, labels = _read_public(source, source.feature_names, lambda *_: None)
    fitted = pretrain(features, labels, columns=source.feature_names, table=source.record, l2=l2)
    return replace(fitted, public=PublicRows(settings.name, name))
