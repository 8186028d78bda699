"""One job that both commands refuse."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.world import World

Build = Callable[[Path], World]
Change = Callable[[World], object]


@dataclass(frozen=True)
class Case:
    """
    Attributes:
        at: beginning of the place's name.
        world: function that makes the files.
        change: function that makes them wrong.
        party: party that refuses.
        sets: options of the job, as `--set` takes them.
        is_same_place: argument of `assert_equal`.
        within: context of both commands.
    """

    at: str
    world: Build
    party: str
    change: Change = lambda _world: None
    sets: Sequence[str] = ()
    is_same_place: bool = True
    within: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext

    def __str__(self) -> str:
        return f"{self.world.__name__}: {self.at}"


POLICY = "parties/sessions/admission.py Admission._check_policy: "
EVALUATE = "parties/evaluate/consumer.py Evaluation"
BUDGET = "algorithms/privacy/ledger.py check_budget"
