"""What a party keeps of a training that stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from algorithms.errors import DataError
from parties.checkpoints import KEPT_EPOCHS, Checkpoints, common_epoch
from parties.jobs import JobParameters, TaylorSettings


def job(**taylor: object) -> JobParameters:
    return JobParameters(protocol="taylor", taylor=TaylorSettings(**taylor))


def test_the_newest_epochs_are_kept_and_come_back(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, "s")
    kept.begin(job(), {"positions": [3, 1]})
    for epoch in range(1, 9):
        kept.keep(epoch, True, {"weights": [0.1 * epoch]})
    assert kept.epochs() == tuple(range(9 - KEPT_EPOCHS, 9))
    assert kept.at(8) == {"weights": [0.8]}
    assert kept.base(job())["positions"] == [3, 1]
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.rglob("*.json"))


def test_a_training_that_had_stopped_is_not_gone_on_with(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, "s")
    kept.keep(3, True, {})
    kept.keep(4, False, {})
    assert (kept.first_epoch(0, 20), kept.first_epoch(3, 20), kept.first_epoch(4, 20)) == (0, 3, 20)


def test_a_job_is_resumed_with_the_options_that_it_began_with(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, "s")
    kept.begin(job(), {})
    assert kept.base(job(resume="s")) == kept.base(job())
    with pytest.raises(DataError, match="was of another job"):
        kept.base(job(learning_rate=0.2))


@pytest.mark.parametrize("content", ["", "[1]", "{"])
def test_a_damaged_checkpoint_is_one_clear_line(tmp_path: Path, content: str) -> None:
    kept = Checkpoints(tmp_path, "s")
    kept.begin(job(), {})
    (tmp_path / "checkpoints" / "s" / "base.json").write_text(content)
    with pytest.raises(DataError, match=r"base\.json is not"):
        kept.base(job())


def test_without_a_checkpoint_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no checkpoint of the training s") as raised:
        Checkpoints(tmp_path, "s").base(job())
    assert "taylor.resume" in raised.value.hint


def test_nothing_stays_when_the_training_is_done(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, "s")
    kept.begin(job(), {"private_key": "00"})
    kept.keep(1, True, {})
    kept.remove()
    assert list((tmp_path / "checkpoints").iterdir()) == []


@pytest.mark.parametrize(
    ("told", "common"),
    [
        ({"a": "1,2,3", "b": "2,3,4"}, 3),
        ({"a": "4,5,6", "b": "1,2,3"}, 0),
        ({"a": "", "b": "1"}, 0),
        ({"a": "1,x,-2,3", "b": "3,1"}, 3),
    ],
)
def test_parties_go_on_from_the_last_epoch_that_all_have(told: dict[str, str], common: int) -> None:
    assert common_epoch(told) == common
