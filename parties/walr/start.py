"""What a WALR fit shrinks towards: a model of public rows, or that of an earlier release.

A released model is computed from noisy sums that were charged when they were released, so it costs labels nothing to
start from it again. That holds for labels: its features are the active party's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.walr.model import FORMAT, WALRModel
from blindfit.parties.data.source import Source
from blindfit.parties.files.written import read_json
from blindfit.parties.training.public_model import within
from blindfit.parties.walr.settings import WalrJob


def read_start(job: WalrJob, base_dir: Path, source: Source) -> Pretrained | None:
    """The model that the job names, if any.

    Raises:
        ConfigError: its path leads out of the party's directory.
        DataError: names the file and what is wrong with it.
    """
    if job.walr.init is None:
        return None
    return read_known_model(within("walr.init", job.walr.init, base_dir), source)


def read_known_model(path: Path, source: Source) -> Pretrained:
    """A pretrained.json, or a model.json of an earlier WALR job, for the columns of this source.

    Raises:
        DataError: names the file and what is wrong with it.
    """
    content = read_json(path)
    try:
        model = _read_released(content) if _is_released(content) else Pretrained.from_dict(content)
        model.check_columns(source.feature_names, source.record)
    except DataError as error:
        raise DataError(f"{path}: {error.message}", hint=error.hint) from None
    return model


def _is_released(content: object) -> bool:
    return isinstance(content, Mapping) and content.get("format") == FORMAT


def _read_released(content: Mapping[str, Any]) -> Pretrained:
    model = WALRModel.from_dict(content)
    weights = tuple(map(float, model.weights))
    if not model.intercept:
        return Pretrained(model.standardiser, weights, 0.0)
    return Pretrained(model.standardiser, weights[:-1], weights[-1])
