"""A training is stopped several times, and goes on: nothing that was dealt hides two things."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.protocols.falcon import Model, Progress
from blindfit.algorithms.sharing.dealing import Arrays, Dealer, Item
from blindfit.algorithms.sharing.field import Elements
from tests.falcon.local import KEY_NODE, Case, train

EPOCHS = 3


class Kept:
    """State that each party has kept, as its checkpoints would: that of the last run for each epoch."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.of: dict[str, dict[int, Model]] = {name: {} for name in names}

    def progress(self, name: str) -> Progress:
        def keep(model: Model, _go_on: bool) -> None:
            self.of[name][model.epochs] = replace(model)

        return Progress(keep=keep)

    def resumed(self) -> dict[str, Model]:
        """Return the state of the last epoch that all parties have; drop later epochs."""
        last = min(max(kept, default=0) for kept in self.of.values())
        self.of = {name: {epoch: kept[epoch] for epoch in kept if epoch <= last} for name, kept in self.of.items()}
        return {name: replace(kept[last]) for name, kept in self.of.items()} if last else {}


class Dealt:
    """Names of items, and digests of what the key node dealt."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.names: Counter[str] = Counter()
        self.arrays: Counter[bytes] = Counter()
        real = Dealer.deal

        def deal(dealer: Dealer, item: Item) -> tuple[Arrays, Elements]:
            found, correction = real(dealer, item)
            self.names[item.name] += 1
            for name in [*item.random, *item.known]:
                self.arrays[hashlib.sha256(found[name].tobytes()).digest()] += 1
            return found, correction

        patch.setattr(Dealer, "deal", deal)

    @property
    def twice(self) -> list[Any]:
        return [what for counted in (self.names, self.arrays) for what, times in counted.items() if times > 1]


def stopped_at(number: int) -> Any:
    left = [number]

    def wire(_sender: str, _receiver: str, _step: str, data: bytes) -> bytes:
        left[0] -= 1
        if left[0] == 0:
            raise DataError("stopped")
        return data

    return wire


def stopped_and_resumed(case: Case, times: int, draw: random.Random) -> Kept:
    kept, names = Kept(case.parameters.data_parties), case.parameters.data_parties
    progress = {name: kept.progress(name) for name in names}
    for run in range(times):
        with pytest.raises(DataError, match="stopped"):
            # A whole run sends some 120 messages; a run that is resumed late ends before some of these.
            train(
                case, run=f"run-{run}", models=kept.resumed(), progress=progress, wire=stopped_at(draw.randint(1, 30))
            )
        if all(max(of, default=0) == case.parameters.epochs for of in kept.of.values()):
            kept = Kept(names)  # only the opening is left: from the beginning again, under the same seeds
            progress = {name: kept.progress(name) for name in names}
    return kept


@pytest.mark.parametrize("times", [12, pytest.param(500, marks=[pytest.mark.soak, pytest.mark.timeout(36_000)])])
def test_nothing_is_dealt_twice(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the end the training has the weights of one that was never stopped."""
    case = Case(rows=160, batches=1, options={"epochs": EPOCHS})
    plain = case.plain(EPOCHS)
    dealt = Dealt(monkeypatch)
    kept = stopped_and_resumed(case, times, random.Random(times))
    trained = train(case, run="the last", models=kept.resumed())
    assert len(dealt.names) > 5 * times
    assert not dealt.twice
    found = [weight for name in case.parameters.data_parties for weight in trained[name].weights]
    assert max(abs(found - plain)) < 1e-3
    assert trained[KEY_NODE].epochs == EPOCHS
