"""Checks with the features: the rows are rounded again and hashed, and the model is fitted again, bit for bit."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.protocols.walr import SALT_BYTES, ConsumerRows, ContentDigest
from blindfit.algorithms.randomness import generator_of
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.coordinator.verify.checks import Check
from blindfit.coordinator.verify.read import Read
from blindfit.parties.data.opening import open_for_model
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.files.written import read_json
from blindfit.parties.training.rows import read_rows
from blindfit.parties.walr.fit import fit_sum, rows_to_fit
from blindfit.parties.walr.release_file import ROWS_FORMAT


@dataclass(frozen=True)
class SentRows:
    """The rows that were sent, from `training_rows.json`."""

    salt: bytes
    ids: list[str]
    not_counted: list[int] | None  # None: only the server knows, because others hold columns too

    @classmethod
    def read(cls, path: Path) -> SentRows:
        """Raise DataError: the file is not a training_rows.json."""
        content = read_json(path)
        if not isinstance(content, dict) or content.get("format") != ROWS_FORMAT or not _is_rows(content):
            raise DataError(f"{path} is not the training_rows.json of a WALR training")
        return cls(bytes.fromhex(content["content_salt"]), content["ids"], content["not_counted"])


def _is_rows(content: dict[str, Any]) -> bool:
    ids, left_out, salt = content.get("ids"), content.get("not_counted"), content.get("content_salt")
    return (
        isinstance(salt, str)
        and re.fullmatch(f"[0-9a-f]{{{2 * SALT_BYTES}}}", salt) is not None
        and isinstance(ids, list)
        and all(isinstance(i, str) for i in ids)
        and (left_out is None or isinstance(left_out, list))
        and all(type(i) is int and 0 <= i < len(ids) for i in left_out or [])
    )


@dataclass
class Refit:
    """
    Args:
        table: file or URL, as in a party file; it has a column `row_id`, and the model's columns.
    """

    table: str
    row_id: str
    sent: SentRows
    _rows: dict[int, IntegerRows] = field(default_factory=dict)

    def checks(self, read: Read) -> dict[str, Check]:
        """Return the checks. If several parties hold columns, only the server can fit the model again."""
        checks: dict[str, Check] = {"features: hash of the rows": self.hash}
        return checks if read.request.blocks else {**checks, "features: model fitted again": self.fit}

    def hash(self, read: Read) -> str:
        request, rows = read.request, self._integers(read)
        content = ContentDigest(self.sent.salt)
        for batch in ConsumerRows(tuple(self.sent.ids), rows).batches():
            content.update(batch)
        if len(rows) != request.n_rows or content.digest() != request.content_sha256:
            raise DataError("these rows and ids are not the ones that were sent")
        if request.in_shares or request.key:
            how = "in shares" if request.in_shares else "encrypted"
            return f"{len(rows)} rows, as charged; no server could see that they are the rows which came {how}"
        return f"{len(rows)} rows"

    def fit(self, read: Read) -> str:
        request, answer = read.request, read.answer
        fit, model, settings = read.parts.fit, read.model, read.settings
        if self.sent.not_counted is None:
            raise DataError("training_rows.json comes from a training with columns at several parties")
        if fit.batches_seed is None:
            raise DataError("the seed of the fit is missing")
        kept = np.ones(len(self.sent.ids), np.bool_)
        kept[self.sent.not_counted] = False
        rows = self._integers(read)
        if kept.sum() != answer.rows_kept:
            raise DataError("training_rows.json has another number of counted rows than the release")
        start = None if fit.init is None else np.array(fit.init.weights)
        columns, generator = read.sent, generator_of(bytes.fromhex(fit.batches_seed))
        to_fit = rows_to_fit(rows, kept, columns.trained_on, request)
        found, _ = fit_sum(to_fit, columns.trained_on, answer, request, settings, start, generator, lambda *_: None)
        weights = found.result.weights
        if weights.tobytes() != model.weights.tobytes():
            furthest = float(np.abs(weights - model.weights).max()) if weights.shape == model.weights.shape else np.inf
            raise DataError(f"the weights differ by up to {furthest:.3g}")
        if (found.l2, found.result.solver, found.result.iterations) != (fit.l2, fit.solver, fit.iterations):
            raise DataError("the fit differs from the file in its penalty, solver or iterations")
        return "the same weights, bit for bit"

    def _integers(self, read: Read) -> IntegerRows:
        if id(read) not in self._rows:
            self._rows[id(read)] = self._round_rows(read)
        return self._rows[id(read)]

    def _round_rows(self, read: Read) -> IntegerRows:
        request, columns = read.own, read.sent
        if len(self.sent.ids) != request.n_rows or columns.width != request.n_columns:
            raise DataError("training_rows.json and the release have different numbers of rows or columns")
        features = self._features(columns.standardiser)
        return fixed_point.quantise_rows(columns.of(features), request.norm_bound, request.frac_bits)

    def _features(self, scale: Standardiser) -> NDArray[np.float64]:
        """Return the features of the rows that were sent, in their order."""
        if self.row_id in scale.record.names:
            raise ConfigError(
                f"{self.row_id} is a column of the model: it cannot be the id", hint="name another column: --id COLUMN"
            )
        settings = DatasetSettings(url=self.table, id=self.row_id)
        source = open_for_model(settings, scale.record, scale.columns, Path(), "features", "--features")
        read = read_rows(source, labels=False, report=lambda *_: None)
        places = pa.compute.index_in(pa.array(self.sent.ids, pa.string()), value_set=read.ids.cast(pa.string()))
        if places.null_count:
            raise DataError(f"{self.table} does not have {places.null_count} of the rows that were sent")
        chosen: NDArray[np.float64] = read.features[places.to_numpy(zero_copy_only=False)]
        return chosen
