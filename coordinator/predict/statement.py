"""The privacy statement of a prediction: who learnt what. It is not part of any privacy budget."""

from __future__ import annotations

from collections.abc import Iterator

from blindfit.coordinator.predict.figures import Figures, figures_of
from blindfit.coordinator.report.kind import Report
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import quantity
from blindfit.coordinator.vertical.roles import Roles


def privacy_statement(report: Report) -> list[Section]:
    facts = figures_of(report)
    learnt = who_learnt_what(facts.roles, facts.common, in_shares=facts.in_shares)
    return [Section(f"learnt-{name}", f"What {name} learnt", (said,)) for name, said in learnt.items()]


def two_sentences(facts: Figures) -> str:
    return "\n".join(who_learnt_what(facts.roles, facts.common, in_shares=facts.in_shares).values())


def who_learnt_what(roles: Roles, common: int, *, in_shares: bool = False) -> dict[str, str]:
    """Of each party.

    Args:
        in_shares: the model is, and nobody has it.
    """
    return dict(_list_what_each_learns(roles, common, in_shares=in_shares))


def _list_what_each_learns(roles: Roles, common: int, *, in_shares: bool) -> Iterator[tuple[str, str]]:
    aligned = "how many rows each data party brought, and which of its own rows all of them have"
    active = roles.active
    yield (
        active,
        (
            f"{active} learnt the scores of {quantity(common, 'row')}; {_parts(roles, in_shares=in_shares)}. It also "
            f"learnt {aligned}."
        ),
    )
    for name in roles.passives:
        yield name, f"{name} learnt {aligned}; no score."
    key_node = f"{roles.key_node} learnt how many rows each data party brought and which match; no id, no score."
    if in_shares:
        key_node += " It dealt, under seeds of this prediction alone, and keeps nothing of it."
    yield roles.key_node, key_node


def _parts(roles: Roles, *, in_shares: bool) -> str:
    if in_shares:
        return (
            "it has no weights, but scores of as many rows as there are columns, whose features somebody tells it, or "
            "that differ in its own alone, are equations that give weights away"
        )
    if len(roles.passives) > 1:
        return "of the parts that these are sums of it learnt none but its own"
    return "less its own part these are the other's, which no protocol can hide from it"
