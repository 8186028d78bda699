"""Roles in a vertical job, and the form of a statement about what each role learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blindfit.algorithms.errors import DataError


@dataclass(frozen=True, slots=True)
class Roles:
    """Roles in a vertical job; passive parties in the order of the chain."""

    active: str
    passives: tuple[str, ...]
    key_node: str

    @classmethod
    def of(cls, roles: Mapping[str, str]) -> Roles:
        """Take each party's role.

        Raises:
            DataError: a role is missing.
        """
        by_role = {role: sorted(name for name in roles if roles[name] == role) for role in set(roles.values())}
        if not {"active", "passive", "key-node"} <= by_role.keys():
            raise DataError("the job names no active party, passive party and key node")
        return cls(by_role["active"][0], tuple(by_role["passive"]), by_role["key-node"][0])

    @property
    def chain(self) -> tuple[str, ...]:
        return (self.active, *self.passives)


@dataclass(frozen=True, slots=True)
class Learnt:
    """Knowledge of one role: `topic` is the role, for programs; `who` is text for a person."""

    topic: str
    who: str
    sentences: tuple[str, ...]
