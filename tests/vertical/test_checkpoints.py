"""Checkpoints that a party keeps of a training that stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from blindfit.algorithms.errors import DataError, MalformedMessage, PolicyRefused
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.randomisers import OwnKey
from blindfit.algorithms.paillier.vectors import decrypt, encrypt
from blindfit.algorithms.protocols import ready
from blindfit.parties.taylor.settings import TaylorJob, TaylorSettings
from blindfit.parties.vertical.alignment import decode_mask, encode_mask
from blindfit.parties.vertical.checkpoints import KEPT_EPOCHS, Checkpoints, common_epoch, refuse_unknown
from blindfit.parties.wire.channel import LocalNetwork

OPTION, QUESTION = "taylor.resume", b"who with whom about what"


def job(**taylor: object) -> TaylorJob:
    return TaylorJob(taylor=TaylorSettings(**taylor))


def test_the_newest_epochs_are_kept_and_come_back(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, "s", OPTION)
    kept.begin(QUESTION, {"positions": [3, 1]})
    for epoch in range(1, 9):
        kept.keep(epoch, True, {"weights": [0.1 * epoch]})
    assert kept.epochs() == tuple(range(9 - KEPT_EPOCHS, 9))
    assert kept.at(8) == {"weights": [0.8]}
    assert kept.base(QUESTION)["positions"] == [3, 1]
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.rglob("*.json"))


def test_a_training_that_had_stopped_is_not_gone_on_with(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, "s", OPTION)
    kept.keep(3, True, {})
    kept.keep(4, False, {})
    assert (kept.first_epoch(0, 20), kept.first_epoch(3, 20), kept.first_epoch(4, 20)) == (0, 3, 20)


def test_a_job_is_resumed_with_the_options_that_it_began_with(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, "s", OPTION)
    kept.begin(QUESTION, {})
    assert kept.base(QUESTION) == {"question": QUESTION.hex()}
    with pytest.raises(DataError, match="was of another job"):
        kept.base(b"another")


@pytest.mark.parametrize("weights", ["x", ["x"], [[1.0], [1.0, 2.0]], {"a": 1.0}])
def test_weights_that_are_no_numbers_are_not_gone_on_with(tmp_path: Path, weights: object) -> None:
    kept = Checkpoints(tmp_path, "s", OPTION)
    kept.keep(3, True, {"weights": weights})
    with pytest.raises(DataError, match="checkpoint") as refused:
        kept.arrays_at(3)
    assert "taylor.resume" in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize("content", ["", "[1]", "{"])
def test_a_damaged_checkpoint_is_one_clear_line(tmp_path: Path, content: str) -> None:
    kept = Checkpoints(tmp_path, "s", OPTION)
    kept.begin(QUESTION, {})
    (tmp_path / "checkpoints" / "s" / "base.json").write_text(content)
    with pytest.raises(DataError, match=r"base\.json is not"):
        kept.base(QUESTION)


def test_without_a_checkpoint_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no checkpoint of the training s") as raised:
        Checkpoints(tmp_path, "s", OPTION).base(QUESTION)
    assert "taylor.resume" in raised.value.hint


def test_nothing_stays_when_the_training_is_done(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, "s", OPTION)
    kept.begin(QUESTION, {"private_key": "00"})
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
    assert common_epoch({name: ready.Ready(1, epochs) for name, epochs in told.items()}) == common


# --- in the session -----------------------------------------------------------------------------------------


def test_a_training_that_a_party_does_not_know_is_refused_before_it_starts(tmp_path: Path) -> None:
    refuse_unknown(tmp_path, job(), "shop")
    with pytest.raises(PolicyRefused, match=r"shop refuses the job: taylor\.resume: there is no"):
        refuse_unknown(tmp_path, job(resume="s"), "shop")
    kept = Checkpoints(tmp_path, "s", OPTION)
    kept.begin(QUESTION, {})
    refuse_unknown(tmp_path, job(resume="s"), "shop")
    kept.check_begun(True)
    with pytest.raises(PolicyRefused, match="it stopped during a check of its shares, after which no training goes on"):
        refuse_unknown(tmp_path, job(resume="s"), "shop")


DATA_ROLES = {"bank": "active", "shop": "passive"}


def test_nobody_goes_on_before_every_party_has_stored() -> None:
    network = LocalNetwork(DATA_ROLES, ready.TABLE, timeout_s=5)
    removed = []

    async def party(name: str, others: list[str], *, stores: asyncio.Event) -> None:
        await stores.wait()
        await ready.run_stored(3, others, network.channel(name))
        removed.append(name)

    async def both() -> None:
        at_once, later = asyncio.Event(), asyncio.Event()
        at_once.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(party("bank", ["shop"], stores=at_once))
            group.create_task(party("shop", ["bank"], stores=later))
            await asyncio.sleep(0.05)
            assert removed == []
            later.set()

    asyncio.run(both())
    assert sorted(removed) == ["bank", "shop"]


def test_who_trained_for_another_number_of_epochs_is_named() -> None:
    network = LocalNetwork(DATA_ROLES, ready.TABLE)

    async def both() -> None:
        await network.channel("shop").send("bank", ready.Stored(2))
        await ready.run_stored(3, ["shop"], network.channel("bank"))

    with pytest.raises(MalformedMessage) as raised:
        asyncio.run(both())
    assert (raised.value.culprit, raised.value.field) == ("shop", "epochs")


def test_an_encrypted_mask_comes_back(insecure_test_key: PrivateKey) -> None:
    mask = np.array([1, 0, 0, 1, 1])
    stored = encode_mask(encrypt(Fixed(mask, 0), OwnKey(insecure_test_key), bound=1))
    restored = decode_mask(stored, insecure_test_key.public_key, len(mask), "shop", OPTION)
    assert restored is not None
    assert decrypt(restored, insecure_test_key).values.tolist() == mask.tolist()
    assert decode_mask(encode_mask(None), insecure_test_key.public_key, 5, "shop", OPTION) is None


@pytest.mark.parametrize("damage", [lambda s: s[:-2], lambda s: "xx" + s[2:], lambda s: "00" * (len(s) // 2)])
def test_a_damaged_mask_is_one_clear_line(insecure_test_key: PrivateKey, damage: Callable[[str], str]) -> None:
    stored = encode_mask(encrypt(Fixed(np.array([1, 0]), 0), OwnKey(insecure_test_key), bound=1))
    with pytest.raises(DataError, match="a checkpoint of the training is damaged"):
        decode_mask(damage(str(stored)), insecure_test_key.public_key, 2, "shop", OPTION)


def test_an_epoch_that_is_gone_already_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = Checkpoints(tmp_path, "s", "taylor.resume")
    checkpoints.begin(bytes(32), {})
    checkpoints.keep(1, True, {})
    monkeypatch.setattr(checkpoints, "epochs", lambda: (1, 2, 3, 4, 5))
    checkpoints.drop_after(1)
    checkpoints.keep(6, True, {})
    monkeypatch.undo()
    assert checkpoints.epochs() == (6,)
