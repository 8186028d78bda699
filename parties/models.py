"""Files that a party writes: readable JSON, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from algorithms.errors import DataError
from algorithms.statistics.walr_model import WALRModel
from parties.private_files import replace_file


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_file(path, json.dumps(content, indent=2, allow_nan=False).encode() + b"\n")


def write_file(path: Path, content: bytes) -> None:
    """A reader sees the old file or the new one; the owner alone may read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content, mode=0o600)


def load_model(path: str | Path) -> WALRModel:
    """The model of a model.json.

    Raises:
        DataError: names the file and what is wrong with it.
    """
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise DataError(f"{path} is not JSON") from None
    try:
        return WALRModel.from_dict(content)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
