"""`blindfit split-labels`: a party's labels -> two tables of shares, one for each server of a two-server job.

Every split draws new shares for all rows: if some rows kept their shares, a changed share would show whose label has
changed. Rows are in the order of their ids, because the order of the source may depend on labels.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.protocols.walr import two_servers
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.wording import quantity
from blindfit.parties.data.duplicates import DuplicateSearch
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.source import Source
from blindfit.parties.files.private_files import make_private, sync_directory
from blindfit.parties.settings import PartySettings

ID, PERSON, SHARE, SPLIT = "id", "person", "share", "split_id"
SPLIT_ID_BYTES = 16


def split_labels(settings: PartySettings, base_dir: Path, dataset: str, out: tuple[Path, Path]) -> Found:
    """Write both files of shares, or no file.

    Raises:
        ConfigError: the dataset does not exist, its labels are not 0 and 1, or a file exists or cannot be written.
        DataError: a label is wrong; names the row and the column.
    """
    _check_files(out)
    tables = shares_of(_source(settings, base_dir, dataset))
    _write_both(tables, out)
    rows = quantity(len(tables[0]), "row")
    lines = [f"{path}: a share of each label of {rows}" for path in out]
    advice = "Give each server only one file: anyone who has both knows every label."
    return Found({"files": out, "rows": len(tables[0])}, (*lines, advice))


def _source(settings: PartySettings, base_dir: Path, dataset: str) -> Source:
    if dataset not in settings.datasets:
        known = ", ".join(settings.datasets) or "none"
        raise ConfigError(f"{settings.name} has no dataset named {dataset}", hint=f"it has {known}")
    chosen = settings.datasets[dataset]
    if chosen.label is None:
        raise ConfigError(f"datasets.{dataset}.label is missing: there are no labels to split")
    if chosen.label_kind != "binary":
        raise ConfigError(
            f'datasets.{dataset}.label_kind = "{chosen.label_kind}": only labels that are 0 or 1 are split',
            hint="noisy sums take only such labels",
        )
    return open_source(chosen, base_dir, dataset)


def shares_of(source: Source) -> tuple[Any, Any]:
    """Return two `pyarrow.Table`s of the same ids and persons, in the order of the ids, with a new split id.

    Raises:
        DataError: a label is neither 0 nor 1, or an id is missing or repeats.
    """
    search, batches, labels = DuplicateSearch(), [], []
    for batch in source.batches(features=False):
        search.add(batch)
        columns = {ID: batch.ids} | ({} if batch.persons is None else {PERSON: batch.persons})
        batches.append(pa.table(columns))
        labels.append(batch.labels)
    search.refuse_duplicates(source)
    rows, found = pa.concat_tables(batches), np.concatenate([each for each in labels if each is not None])
    order = pc.sort_indices(rows[ID])
    rows, found = rows.take(order), found[order.to_numpy()]
    split_id = pa.array([secrets.token_hex(SPLIT_ID_BYTES)]).take(pa.array(np.zeros(len(rows), np.int32)))
    first, second = (
        rows.append_column(SHARE, pa.array(shares.astype(np.int64))).append_column(SPLIT, split_id)
        for shares in two_servers.split(found)
    )
    return first, second


def _check_files(out: tuple[Path, Path]) -> None:
    if out[0].resolve() == out[1].resolve():
        raise ConfigError(f"--out: {out[0]} is named twice: each server needs its own file")
    for path in out:
        if path.exists():
            raise ConfigError(f"{path} exists already and is not overwritten", hint="rename it first")


def _write_both(tables: tuple[Any, Any], out: tuple[Path, Path]) -> None:
    """Write both whole files or no file. From their first moment only their owner can read them."""
    made: list[Path] = []
    unfinished: list[Path] = []
    try:
        for table, path in zip(tables, out, strict=True):
            make_private(path.parent)
            handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # mode 0600
            unfinished.append(Path(name))
            with os.fdopen(handle, "wb") as file:
                pq.write_table(table, file)
                file.flush()
                os.fsync(file.fileno())
        for path, temporary in zip(out, unfinished, strict=True):
            os.link(temporary, path)  # unlike a rename, a link does not replace
            made.append(path)
            sync_directory(path.parent)
    except BaseException as error:
        for path in made:
            path.unlink()
        if isinstance(error, OSError):
            raise ConfigError(f"{' and '.join(map(str, out))} cannot be written: {error.strerror}") from None
        raise
    finally:
        for path in unfinished:
            path.unlink()
