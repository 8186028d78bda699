"""The privacy statement of a prediction: who learnt what. No privacy budget pays for it."""

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
    """Return the knowledge of each party.

    Args:
        in_shares: True if the model is in shares, so that nobody has it.
    """
    return dict(_list_what_each_learns(roles, common, in_shares=in_shares))


def _list_what_each_learns(roles: Roles, common: int, *, in_shares: bool) -> Iterator[tuple[str, str]]:
    aligned = "the number of rows of each data party, and which of its own rows all data parties have"
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
    key_node = (
        f"{roles.key_node} learnt the number of rows of each data party and the positions that match; no id, no score."
    )
    if in_shares:
        key_node += " It dealt with seeds of only this prediction, and keeps nothing."
    yield roles.key_node, key_node


def _parts(roles: Roles, *, in_shares: bool) -> str:
    if in_shares:
        return (
            "it has no weights, but scores are equations in the weights. It could solve them with scores of as many "
            "rows as "
            "there are columns, if another party reveals their features, or if they differ only in its own features"
        )
    if len(roles.passives) > 1:
        return "the scores are sums of parts, of which it learnt only its own"
    return "the scores minus its own part are the other party's part, which no protocol can hide from it"
