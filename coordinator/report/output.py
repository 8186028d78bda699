"""Writing a job's report, and telling it in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from coordinator.report import html
from coordinator.report.cautions import cautions_of
from coordinator.report.content import content_of
from coordinator.report.figures import Figures, figures_of
from coordinator.report.statement import two_sentences
from coordinator.report.wording import count, counted, duration, figure
from coordinator.session import JobSession
from parties.models import write_file, write_json


@dataclass(frozen=True)
class Written:
    """A report that is on the disk."""

    json_path: Path
    html_path: Path
    content: Mapping[str, Any] = field(repr=False)

    def show(self, console: Console) -> None:
        """The report in short."""
        facts = figures_of(self.content)
        console.print(_summary_table(facts, self.content))
        for caution in cautions_of(facts):
            console.print(Text.assemble(("! ", "bold yellow"), caution))
        console.print(Text(two_sentences(facts), style="dim"))
        # A path is for copying: it is neither wrapped nor read as markup.
        for label, path in self._paths(facts):
            console.print(Text.assemble((f"{label:<8}", "bold"), str(path)), soft_wrap=True)

    def _paths(self, facts: Figures) -> Iterator[tuple[str, object]]:
        yield "report", self.html_path
        yield "", self.json_path
        if facts.active in self.content["models"]:
            yield "model", self.json_path.parent / facts.active / "model.json"
        else:
            yield "model", f"kept by {facts.active}, with its own report"


def write(session: JobSession, out: Path, parties_here: list[str]) -> Written:
    """Writes `out/report.json` and `out/report.html`.

    Args:
        parties_here: parties whose own directories are `out/<name>/`; with none of them the report holds only what a
            coordinator may know.

    Raises:
        MalformedMessage, DataError: a party's summary or file is not what a report can be made of; nothing is written.
    """
    content = content_of(session, out, parties_here)
    page = html.render(content)
    written = Written(out / "report.json", out / "report.html", content)
    write_json(written.json_path, content)
    write_file(written.html_path, page.encode())
    return written


def _summary_table(facts: Figures, content: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    for label, value in _summary(facts, content):
        table.add_row(label, Text(value))
    return table


def _summary(facts: Figures, content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    rows, privacy, fit = facts.rows, facts.privacy, facts.fit
    ended = "converged" if fit.converged else "did not converge"
    yield "job", f"{content['name']} ({content['session']})"
    yield "rows", f"{count(rows.trained)} trained on, {count(rows.held_out)} held out"
    yield "features", count(rows.features)
    yield "privacy", f"epsilon {figure(privacy.epsilon)}, delta {figure(privacy.delta)}, {privacy.unit}"
    yield "noise", f"{figure(privacy.noise_std_of_mean)} in each mean, {figure(privacy.noise_std_of_sum)} in each sum"
    yield "fit", f"{fit.solver}, {counted(fit.iterations, 'iteration')}, {ended}, l2 {figure(fit.l2)}"
    spent, budget = figure(privacy.spent_epsilon), figure(privacy.budget_epsilon)
    yield "budget", f"{spent} of {budget} spent on {privacy.population}, {figure(privacy.left_epsilon)} left"
    yield "time", duration(html.total_seconds(content))
