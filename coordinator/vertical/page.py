"""Parts that the pages of vertical trainings share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from blindfit.coordinator.report import page, quality
from blindfit.coordinator.report.kind import Report
from blindfit.coordinator.report.page import Card, PartyRow
from blindfit.coordinator.report.plots import weight_plots
from blindfit.coordinator.terminal.wording import count, duration
from blindfit.coordinator.vertical.report import JointFigures

CARDS_IN_A_ROW = 4


def render(template: str, report: Report, facts: JointFigures, **parts: Any) -> str:
    """Return the page.

    Args:
        parts: parts of the template that not every page of a vertical training has.
    """
    models = report["models"]
    return page.render(
        template,
        report,
        facts=facts,
        weights=weight_plots(models),
        all_weights=page.all_weights(models),
        evaluation=list(quality.lines(facts.evaluation)),
        confusion=quality.matrix(facts.evaluation),
        remark=quality.remark(facts.evaluation),
        selected=facts.selected,
        rows=facts.rows,
        dropped_columns=_list_dropped_columns(facts),
        **parts,
    )


def cards(facts: JointFigures, report: Report, *, ended: str, promise: Sequence[Card]) -> Iterator[Card]:
    """Yield the cards.

    Args:
        ended: reason why the training ended.
    """
    yield from _row_cards(facts)
    yield Card("Epochs", count(facts.fit.epochs), ended)
    yield Card("Time", duration(page.total_seconds(report, facts.first_timing)), "from start to end")
    yield from list(quality.cards(facts.evaluation))[: CARDS_IN_A_ROW - len(promise)]
    yield from promise


def _row_cards(facts: JointFigures) -> Iterator[Card]:
    rows = facts.shared_rows
    yield Card("Rows trained on", count(rows.trained), f"of {count(rows.common)}; {count(rows.test)} for the test")
    if facts.features is not None:
        of_each = " + ".join(count(own.features) for own in facts.rows.values())
        yield Card("Features", count(facts.features), of_each)


def party_rows(facts: JointFigures, report: Report) -> list[PartyRow]:
    return [_party_row(facts, report, name) for name in report["parties"]]


def _party_row(facts: JointFigures, report: Report, name: str) -> PartyRow:
    own = facts.rows.get(name)
    return page.party_row(report, name, rows=own.common if own else None, has_model=name in facts.roles.chain)


def _list_dropped_columns(facts: JointFigures) -> list[tuple[str, str]]:
    """Return lines of the job's table about dropped columns."""
    return [
        (f"constant columns of {name}, dropped", ", ".join(rows.dropped_columns))
        for name, rows in facts.rows.items()
        if rows.dropped_columns
    ]
