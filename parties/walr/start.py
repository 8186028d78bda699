"""The model towards which a WALR fit shrinks: a model of public rows, or the model of an earlier release.

A released model is computed from noisy sums that were charged when they were released, so a new start from it costs
labels nothing. This holds only for labels: the model's features are the active party's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.rehearsal import STAMP, stamp_of
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.walr.model import FORMAT, WALRModel
from blindfit.parties.data.source import Source
from blindfit.parties.files.written import read_json
from blindfit.parties.settings import PartySettings
from blindfit.parties.training.public_model import dataset_declared_public, within
from blindfit.parties.walr import release_document
from blindfit.parties.walr.release_document import RELEASE_FILE
from blindfit.parties.walr.settings import WalrJob


@dataclass(frozen=True)
class Start:
    """The model towards which a fit shrinks, and the proof that its weights reveal nothing uncharged about labels.

    Args:
        public: dataset of the party that the model was fitted to, if the party's file declares it public.
        release: SHA-256 of the release file of the training that made the model, if the file lies next to it.
    """

    model: Pretrained
    public: str | None = None
    release: str | None = None


def read_start(job: WalrJob, base_dir: Path, source: Source, settings: PartySettings) -> Start | None:
    """Read the model that the job names, if it names one.

    Raises:
        ConfigError: its path leads out of the party's directory.
        DataError: names the file and what is wrong with it.
    """
    if job.walr.init is None:
        return None
    path = within("walr.init", job.walr.init, base_dir)
    if stamp_of(read_json(path)) and not settings.rehearses:
        raise DataError(
            f"{path} comes from a {STAMP}", hint="set walr.init to the model of a real training, or add --rehearse"
        )
    model = read_known_model(path, source)
    return Start(model, dataset_declared_public(model, settings) or None, _release_beside(path))


def _release_beside(path: Path) -> str | None:
    """Return the digest of the release file next to a model, if it is the file of this model."""
    content, beside = read_json(path), path.with_name(RELEASE_FILE)
    if not _is_released(content) or not beside.is_file():
        return None
    try:
        encoded = release_document.read_file(beside)
        model = release_document.read(encoded).parts.model
    except DataError:
        return None
    is_its = all(content.get(name) == value for name, value in model.items())
    return hashlib.sha256(encoded).hexdigest() if is_its else None


def read_known_model(path: Path, source: Source) -> Pretrained:
    """Return a pretrained.json, or a model.json of an earlier WALR job, for the columns of this source.

    Raises:
        DataError: names the file and what is wrong with it.
    """
    content = read_json(path)
    try:
        model = as_pretrained(WALRModel.from_dict(content)) if _is_released(content) else Pretrained.from_dict(content)
        model.check_columns(source.model_columns, source.record)
    except DataError as error:
        raise DataError(f"{path}: {error.message}", hint=error.hint) from None
    return model


def _is_released(content: object) -> bool:
    return isinstance(content, Mapping) and content.get("format") == FORMAT


def as_pretrained(model: WALRModel) -> Pretrained:
    """Return the model of an earlier training as a start."""
    weights = tuple(map(float, model.weights))
    if not model.intercept:
        return Pretrained(model.standardiser, weights, 0.0)
    return Pretrained(model.standardiser, weights[:-1], weights[-1])
