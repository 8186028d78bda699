"""The stations of a training: guards stand in the order of the stations, and nothing happens after one refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from blindfit.algorithms.errors import DataError
from blindfit.parties.falcon.data_party import Falcon
from blindfit.parties.taylor.data_party import Taylor
from blindfit.parties.vertical import training
from blindfit.parties.vertical.training import Agreed, Aligned, Compared, Computed, Guard, Read, Trained, Work

STATIONS = (Work, Read, Aligned, Agreed, Compared, Computed, Trained)
PASSED = ["Work", "read", "Aligned", "agree", "Agreed", "train", "Computed", "weights opened", "keep"]


@pytest.mark.parametrize("method", [Taylor, Falcon])
def test_guards_are_listed_in_the_order_of_their_stations_with_what_they_protect(method: type[Any]) -> None:
    guards = method.__new__(method).guards
    places = [STATIONS.index(guard.station) for guard in guards]
    assert places == sorted(places)
    assert len({guard.protects for guard in guards}) == len(guards)
    assert len({guard.check.__name__ for guard in guards}) == len(guards)


class Recorded:
    """A method whose guards and steps note that they were reached; the guard of one station refuses."""

    def __init__(self, refused: type[Any] | None) -> None:
        self.refused, self.reached = refused, list[str]()

    @property
    def guards(self) -> list[Guard[Any]]:
        return [Guard(station, station.__name__, self.check) for station in (Work, Aligned, Agreed, Computed)]

    async def check(self, reached: object) -> None:
        self.reached.append(type(reached).__name__)
        if type(reached) is self.refused:
            raise DataError("refused")

    def find_answer(self, _agreed: object) -> None:
        return None

    async def train(self, agreed: Any) -> Trained:
        self.reached.append("train")
        await training.pass_guards(self.guards, Computed(agreed))
        self.reached.append("weights opened")
        return Trained(1, None)

    def step(self, name: str, result: object) -> Any:
        async def reach(*_: object) -> object:
            self.reached.append(name)
            return result

        return reach


@pytest.mark.parametrize("refused", [Work, Aligned, Agreed, Computed, None])
def test_nothing_happens_after_a_guard_refuses(refused: type[Any] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    method: Any = Recorded(refused)
    blank = {station: object.__new__(station) for station in (Work, Read, Aligned, Agreed)}
    monkeypatch.setattr(training, "read_own_rows", method.step("read", blank[Read]))
    monkeypatch.setattr(training, "align", method.step("align", blank[Aligned]))
    monkeypatch.setattr(training, "agree", method.step("agree", blank[Agreed]))
    monkeypatch.setattr(training, "keep", method.step("keep", None))
    if refused is None:
        asyncio.run(training.run_training(method, blank[Work]))
        assert [step for step in method.reached if step != "align"] == PASSED
        return
    with pytest.raises(DataError, match="refused"):
        asyncio.run(training.run_training(method, blank[Work]))
    assert method.reached[-1] == refused.__name__
