"""Messages of a vertical training's parties before and after it, and messages that none of them may send."""

from __future__ import annotations

import pytest

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.protocols.ready import MOST_COLUMNS, MOST_NAME, Ready, step_2_check, step_2_drawn
from tests.each_case import each_case


@pytest.mark.parametrize("columns", [-1, MOST_COLUMNS + 1])
def test_step_2_a_width_that_no_party_has(columns: int) -> None:
    with pytest.raises(MalformedMessage) as caught:
        step_2_check(Ready(columns), sender="post")
    assert str(caught.value) == "post sent a malformed message: columns: is out of range"


@pytest.mark.parametrize("columns", [0, MOST_COLUMNS])
def test_step_2_the_least_and_the_greatest_width(columns: int) -> None:
    assert step_2_check(Ready(columns), sender="post") == Ready(columns)


def test_step_2_what_all_have_drawn() -> None:
    assert step_2_drawn({"bank": Ready(3, drawn="d"), "post": Ready(4, drawn="d")}) == "d"


@each_case(
    ("banks", "posts", "culprit"), [("d", "e", "post"), ("d", "", "post"), ("d" * (MOST_NAME + 1),) * 2 + ("bank",)]
)
def test_step_2_noise_is_for_one_draw_alone(banks: str, posts: str, culprit: str) -> None:
    """A key node that sent the same noise twice, for two splits, would reveal it."""
    with pytest.raises(MalformedMessage) as caught:
        step_2_drawn({"bank": Ready(3, drawn=banks), "post": Ready(4, drawn=posts)})
    assert str(caught.value) == f"{culprit} sent a malformed message: drawn: is not what the others have drawn"
