"""The page of a joint prediction."""

from __future__ import annotations

from collections.abc import Iterator

from blindfit.coordinator.predict.figures import Figures, figures_of
from blindfit.coordinator.report import page
from blindfit.coordinator.report.curves import row_histogram
from blindfit.coordinator.report.kind import Report
from blindfit.coordinator.report.page import UNKNOWN, Card
from blindfit.coordinator.terminal.wording import count, duration, figure, quantity
from blindfit.parties.predict.report import ScoreFigures


def render(report: Report) -> str:
    facts = figures_of(report)
    return page.render(
        "predict/page.html.j2",
        report,
        facts=facts,
        cautions=[],
        cards=list(_cards(facts, report)),
        histogram=row_histogram(facts.histogram, facts.scores.of) if facts.scores and facts.histogram else None,
        steps=page.steps(report, _laps(facts)),
        parties=[page.party_row(report, name, rows=_rows(facts, name), has_model=False) for name in report["parties"]],
        dropped_columns=[],
    )


def _rows(facts: Figures, name: str) -> int | None:
    """Return the party's number of rows, of which the common rows were scored."""
    return facts.rows[name].read if name in facts.rows else None


def _cards(facts: Figures, report: Report) -> Iterator[Card]:
    yield Card("Rows scored", count(facts.common), "rows that every data party has")
    if facts.scores is not None:
        yield from _score_cards(facts.scores, facts.common)
    yield Card("Time", duration(page.total_seconds(report, facts.timing)), "from start to end")


def _score_cards(scores: ScoreFigures, rows: int) -> Iterator[Card]:
    if scores.mean is None or scores.median is None:
        return
    expected = f"{figure(scores.mean * rows)} positives expected of {quantity(rows, 'row')}"
    yield Card(f"Mean {scores.of}", figure(scores.mean), expected if scores.of == "probability" else "of all rows")
    least, largest = (UNKNOWN if end is None else figure(end) for end in (scores.least, scores.largest))
    yield Card("Median", figure(scores.median), f"from {least} to {largest}")


def _laps(facts: Figures) -> dict[str, float | None]:
    return {
        "read rows": facts.timing.read_s,
        "align": facts.timing.align_s,
        "score": facts.timing.score_s,
    }
