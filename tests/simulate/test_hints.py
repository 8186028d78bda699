"""The advice of each refusal of a simulation is followed, and then the simulation runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from blindfit.coordinator.simulate.asked import Asked, read_parties
from blindfit.coordinator.simulate.cut import cut
from blindfit.coordinator.simulate.table import read_table
from tests.hints.following import led_past, refused, says
from tests.simulate.frames import people


@dataclass(frozen=True)
class Case:
    """
    Args:
        hint: hint as in the code.
        wrong: options that are refused.
        right: options that follow the hint.
        table: change of the table that is cut.
        other: change that follows the hint, if it asks for another table.
    """

    hint: str
    wrong: dict[str, Any]
    right: dict[str, Any] = field(default_factory=dict)
    table: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table
    other: Callable[[pd.DataFrame], pd.DataFrame] | None = None


def _texts(table: pd.DataFrame) -> pd.DataFrame:
    return table[["client", "region", "churned"]].assign(town=np.where(table.smokes, "a", "b"))


def _rare(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(churned=np.where(table.index < 2, "yes", "no"))


def _two_amounts(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(amount=np.where(table.index < 1, 3.5, 2.5))


CASES = [
    Case(says("name it: --label COLUMN"), {"label": ""}),
    Case(says("take a whole number from 0 up"), {"seed": -1}, {"seed": 0}),
    Case(says("take 1 or more"), {"repeats": 0}, {"repeats": 1}),
    Case(says("give one or more, such as --epsilon 0.5,1"), {"epsilons": ()}, {"epsilons": (0.5, 1.0)}),
    Case(says("take a number such as --epsilon 1"), {"epsilons": (99.0,)}, {"epsilons": (1.0,)}),
    Case(says("such as 0:110"), {"bounds": {"age": (9.0, 1.0)}}, {"bounds": {"age": (0.0, 110.0)}}),
    Case(says("take --parties 2 or more, or name them"), {"parties": 1}, {"parties": 2}),
    Case(
        says('name its columns: --party "{}: age"'),
        {"parties": {"shop": (), "bank": ("income",)}},
        {"parties": {"shop": ("age",), "bank": ("income",)}},
    ),
    Case(
        says("lower --test-fraction, or name a table with more rows"),
        {"test_fraction": 0.9},
        {"test_fraction": 0.2},
    ),
    Case(
        says("name a table with more rows of the rarer label, or change --test-fraction or --seed"),
        {"test_fraction": 0.2},
        {"test_fraction": 0.5},
        table=_rare,
    ),
    Case(
        says("name a table with more rows, or change --test-fraction or --seed"),
        {"label": "amount"},
        table=_two_amounts,
        other=lambda table: table,
    ),
    Case(
        says("leave out --bounds"),
        {"parties": 2, "bounds": {"region": (0.0, 1.0)}},
        {"parties": 2},
        table=_texts,
    ),
    Case(
        says("remove rows, name another column with --id, or leave --id out: rows are then numbered"),
        {"row_id": "region"},
        {"row_id": None},
    ),
    Case(says("take --parties {}"), {"parties": 9}, {"parties": 8}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.hint)
def test_a_hint_is_followed(tmp_path: Path, case: Case) -> None:
    def cut_people(frame: pd.DataFrame, **asked: Any) -> None:
        wanted = Asked(**{"label": "churned", "row_id": "client", **asked})
        cut(read_table(frame, wanted), wanted, tmp_path / "cut", 0)

    table = case.table(people())
    with refused(case.hint) as told:
        cut_people(table, **case.wrong)
    label = {name: value for name, value in case.wrong.items() if name == "label" and value}
    led_past(told, lambda: cut_people(case.other(people()) if case.other else table, **label, **case.right))
    assert (tmp_path / "cut/taylor/job.toml").exists()


def test_a_party_is_named_with_its_columns() -> None:
    with refused('such as --party "shop: age, income"') as told:
        read_parties(["shop"])
    led_past(told, lambda: read_parties(["shop: age, income"]))
