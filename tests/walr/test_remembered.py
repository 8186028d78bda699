"""Answers that servers remember, after requests for other draws: each draw keeps its own answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.walr_split.released import released
from tests.world.holders import Holders
from tests.world.split_labels import Split

DRAWS = ("", "second", "third", "", "third", "second")


@pytest.mark.parametrize("job", ["trusted.toml", "job.toml", "hidden.toml", "shares.toml"])
def test_each_draw_is_remembered_by_itself(tmp_path: Path, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    house = Split(tmp_path)
    house.write_party("whole", unsafe=["unchecked-rows"])
    sums = released(monkeypatch)
    for draw in DRAWS:
        house.run(f'privacy.release="{draw}"', job=job)
    answers = [answer.sums.tolist() for answer in sums]
    assert answers == [answers[DRAWS.index(draw)] for draw in DRAWS]
    assert len({str(answer) for answer in answers}) == 3
    servers = [name for name in house.load(job=job).parties if name in ("east", "west", "whole")]
    assert [len(house.ledger(name)) for name in servers] == [3] * len(servers)


def test_each_draw_of_several_holders_has_a_fit_of_its_own(tmp_path: Path) -> None:
    house = Holders(tmp_path)
    fits = []
    for draw in ("", "second", "", "second"):
        session = house.run(f'privacy.release="{draw}"')
        fits.append({name: house.written(name, session)["weights"] for name in ("bank", "chain", "shop")})
    assert fits[2:] == fits[:2]
    assert fits[0] != fits[1]
    assert house.spent() == 2
