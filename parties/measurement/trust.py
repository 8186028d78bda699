"""Who is trusted with what: one measurement server with labels and rows, or with labels alone; or neither of two that
hold shares of the labels, with rows or with shares of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Trust = Literal["trusted", "two-servers", "encrypted-rows", "shared-rows"]
TRUSTED: Trust = "trusted"
TWO_SERVERS: Trust = "two-servers"
ENCRYPTED_ROWS: Trust = "encrypted-rows"  # rows go to the server encrypted
SHARED_ROWS: Trust = "shared-rows"  # rows go to two servers in shares; a key node deals masks
ASK_TWO_SERVERS = (TWO_SERVERS, SHARED_ROWS)  # that hold shares of labels
UNCHECKED_ROWS = "unchecked-rows"  # the flag of a policy that lets them


def wrong_labels(option: str, dataset: str, *, shares: bool, asks_shares: bool) -> str:
    """Return why the labels of a measurement server do not go with a job, and what to change; "" if they do.

    Args:
        option: the option of the job that says whom it trusts; empty if it has none.
        shares: whether the dataset holds shares of labels.
    """
    if shares == asks_shares:
        return ""
    has = "holds shares of labels" if shares else "holds labels, and no shares of them"
    one, other = ASK_TWO_SERVERS if shares else (TRUSTED, ENCRYPTED_ROWS)
    change = f'set {option} = "{one}" or "{other}", or name another dataset' if option else "name another dataset"
    return f"its dataset {dataset} {has}: {change}"


def unsafe(trust: Trust) -> tuple[str, ...]:
    """The defences that a job does without at its measurement servers."""
    return (UNCHECKED_ROWS,) if trust == ENCRYPTED_ROWS else ()


def wrong_servers(option: str, trust: Trust, roles: Sequence[str]) -> str:
    """What is wrong with how many measurement servers there are; empty: nothing.

    Args:
        option: of the job, which says whom it trusts.
    """
    wanted, dealers = (2 if trust in ASK_TWO_SERVERS else 1), int(trust == SHARED_ROWS)
    if (roles.count("measurement"), roles.count("key-node")) == (wanted, dealers):
        return ""
    words = {1: "exactly one measurement server", 2: "exactly two, each with one of the tables of a split"}
    return f'{option} = "{trust}" needs {words[wanted]}, and {"one" if dealers else "no"} key node'
