"""Who is trusted with what: one measurement server with labels and rows, or with labels alone; or neither of two that
hold shares of the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Trust = Literal["trusted", "split-labels", "paillier"]
SPLIT_LABELS: Trust = "split-labels"
PAILLIER: Trust = "paillier"  # rows go to the server encrypted
UNCHECKED_ROWS = "unchecked-rows"  # the flag of a policy that lets them


def unsafe(trust: Trust) -> tuple[str, ...]:
    """The defences that a job does without at its measurement servers."""
    return (UNCHECKED_ROWS,) if trust == PAILLIER else ()


def wrong_servers(option: str, trust: Trust, roles: Sequence[str]) -> str:
    """What is wrong with how many measurement servers there are; empty: nothing.

    Args:
        option: of the job, which says whom it trusts.
    """
    wanted = 2 if trust == SPLIT_LABELS else 1
    if roles.count("measurement") == wanted:
        return ""
    words = {1: "exactly one measurement server", 2: "exactly two, each with one of the tables of a split"}
    return f'{option} = "{trust}" needs {words[wanted]}'
