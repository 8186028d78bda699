"""Rows that no model can be fitted to, and public models that do not fit them, are named before anything is sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics.linear.pretraining import pretrain
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.source import Source
from blindfit.parties.training.public_model import load_pretrained, read_public_model
from blindfit.parties.training.rows import check_features
from blindfit.parties.training.split import read_split
from blindfit.parties.walr.settings import WalrJob
from tests.each_case import each_case
from tests.hints.following import refused

ROWS = "id,age,income\na,31,10\nb,44,11\nc,27,12.5\n"


def opened(directory: Path, rows: str = ROWS, **settings: Any) -> Source:
    (directory / "rows.csv").write_text(rows)
    return open_source(DatasetSettings(url="csv:rows.csv", id="id", **{"features": "rest"} | settings), directory, "r")


def silent(*_: object) -> None:
    pass


def test_a_dataset_without_features(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"datasets\.r: a passive party's dataset needs features( \(|$)") as refused:
        check_features(opened(tmp_path, features=[]), "a passive party")
    assert refused.value.hint == 'set datasets.r.features = "rest"'


def test_a_split_that_leaves_nothing_to_train_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = WalrJob(privacy={"epsilon": 1.0}, split={"test_fraction": 0.5})
    monkeypatch.setattr(PublicRandomness, "choose", lambda _self, _purpose, ids, _share: np.ones(len(ids), np.bool_))
    with refused("lower split.test_fraction") as told:
        read_split(opened(tmp_path), job, PublicRandomness.from_seed(1), silent)
    assert told.text.startswith("r: no row is left to train on\n")
    less = WalrJob(privacy={"epsilon": 1.0}, split={"test_fraction": 0.0})
    train, _ = read_split(opened(tmp_path), less, PublicRandomness.from_seed(1), silent)
    assert train.ids


# --- public models ---------------------------------------------------------------------------------------


def write_model(directory: Path, *columns: str, **changes: Any) -> Path:
    features = np.arange(4.0 * len(columns)).reshape(4, -1) ** 1.5
    content = json.loads(pretrain(features, np.array([0, 1, 0, 1]), columns=columns).to_json())
    (directory / "pretrained.json").write_text(json.dumps(content | changes))
    return directory / "pretrained.json"


def test_a_public_model_is_read(tmp_path: Path) -> None:
    write_model(tmp_path, "age", "income")
    model = read_public_model("walr.init", "pretrained.json", tmp_path, opened(tmp_path))
    assert len(model.weights) == 2


@each_case("changes", [{"format": "another"}, {"weights": {}}, {"weights": {"age": "x"}}])
def test_a_file_that_is_no_public_model(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = write_model(tmp_path, "age", **changes)
    with pytest.raises(DataError) as refused:
        load_pretrained(path)
    assert str(refused.value).startswith(f"{path}: ")


def test_a_public_model_of_other_columns(tmp_path: Path) -> None:
    path = write_model(tmp_path, "age", "height")
    with pytest.raises(DataError) as refused:
        read_public_model("walr.init", "pretrained.json", tmp_path, opened(tmp_path))
    assert str(refused.value).startswith(f"{path}: ")
    assert "height" in str(refused.value)
    assert refused.value.hint
