"""What a person sees while a job runs: a bar for each party, the time left, and for whom it waits."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from blindfit.protos import control_pb2 as pb

_DONE = {pb.DONE: "done", pb.FAILED: "failed", pb.REFUSED: "refused", pb.ENDED: "cancelled"}


class JobProgress:
    """A line for each party. Where there is no terminal, a line for each new step."""

    def __init__(self, parties: list[str], console: Console) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.fields[party]}"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=False,
            disable=not console.is_terminal,
        )
        width = max(map(len, parties))
        self._tasks: dict[str, TaskID] = {
            party: self._progress.add_task("starting", total=None, party=party.ljust(width)) for party in parties
        }
        self._steps: dict[str, str] = {}

    def __enter__(self) -> JobProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, party: str, event: pb.Event) -> None:
        task = self._tasks[party]
        if event.state in _DONE:
            self._progress.update(task, description=_DONE[event.state], total=1, completed=1)
            self._print_step(party, _DONE[event.state])
            return
        progress = event.progress
        if not progress.step:
            return
        waiting = f" (waits for {progress.waiting_for})" if progress.waiting_for else ""
        text = f"{progress.step}{waiting}"
        if progress.step != self._steps.get(party):
            self._progress.reset(task)
            self._print_step(party, progress.step, waiting)
        self._progress.update(task, description=text, completed=progress.done)
        # update() takes None for "as before", and here it means "not known".
        next(t for t in self._progress.tasks if t.id == task).total = progress.total or None

    def _print_step(self, party: str, step: str, waiting: str = "") -> None:
        """A line for the step; for whom it waits then, and not each time that this changes within it."""
        self._steps[party] = step
        if not self._console.is_terminal:
            self._console.print(f"  {party}: {step}{waiting}", highlight=False)
