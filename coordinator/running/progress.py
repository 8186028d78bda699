"""The progress that a person sees while a job runs.

A terminal has a bar for each party, with the time left. A file or a log gets a line for each step that a party begins,
for each epoch, and for each fold of a grid point.
"""

from __future__ import annotations

import re
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from blindfit.coordinator.terminal.wording import plain
from blindfit.protos import control_pb2 as pb

_DONE = {pb.DONE: "done", pb.FAILED: "failed", pb.REFUSED: "refused", pb.ENDED: "cancelled"}
EPOCH = re.compile(r"epoch (\d+)(?:, hold-out loss ([0-9.e+-]{1,20}))?$")
FOLD = re.compile(r"(point \d+ of \d+, fold \d+ of \d+)\b")
SHORT_WAIT_S = 1.0  # shorter forecasts are not printed


class JobProgress:
    """Progress of a job.

    Args:
        epochs: largest number of epochs of the training; 0 if it has none.
        judge: party that reports the hold-out loss, if a party does; after its first epoch, lines are at its pace.
        verbose: without a terminal, also print what each party waits for, and every party's epochs.
        quiet: print nothing.
    """

    def __init__(
        self,
        parties: list[str],
        console: Console,
        *,
        epochs: int = 0,
        judge: str = "",
        verbose: bool = False,
        quiet: bool = False,
    ) -> None:
        self._console, self._verbose, self._quiet = console, verbose, quiet
        self._has_bars = console.is_terminal or console.is_jupyter
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.fields[party]}"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            _Counted("{task.completed}"),
            TimeElapsedColumn(),
            console=console,
            transient=False,
            disable=quiet or not self._has_bars,
        )
        width = max(map(len, parties))
        self._tasks: dict[str, TaskID] = {
            party: self._progress.add_task("starting", total=None, party=party.ljust(width)) for party in parties
        }
        self._steps: dict[str, str] = {}
        self._epochs = _Epochs(epochs)
        self._folds: set[str] = set()  # folds that some party has begun
        self._judge, self._judge_tells = judge, False
        self.epoch_begun = False  # by some party; all had agreed on the start then

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
        progress, step = event.progress, plain(event.progress.step)  # a peer's text must not control a terminal
        if not step:
            return
        waiting = f" (waits for {plain(progress.waiting_for)})" if progress.waiting_for else ""
        epoch = EPOCH.match(step)
        self.epoch_begun |= epoch is not None
        if epoch and party == self._judge:
            self._judge_tells = True
            self._epochs.loss = epoch[2] or ""
        said = self._epochs.describe(int(epoch[1])) if epoch else step
        if step != self._steps.get(party):
            self._progress.reset(task)
            self._print_step(party, step, waiting)
        self._progress.update(task, description=f"{said}{waiting}", completed=progress.done)
        # update() takes None for "unchanged", and here it means "not known".
        next(t for t in self._progress.tasks if t.id == task).total = progress.total or None

    def _print_step(self, party: str, step: str, waiting: str = "") -> None:
        """Print a line for the step, with the party that it waits for, but not for each change within the step."""
        self._steps[party] = step
        if self._has_bars or self._quiet:
            return
        if self._verbose:
            self._console.print(f"  {party}: {step}{waiting}", highlight=False, markup=False)
        elif epoch := EPOCH.match(step):
            at_its_pace = party == self._judge or not self._judge_tells
            if at_its_pace and self._epochs.is_new(int(epoch[1])):  # all parties begin it at nearly the same time
                self._console.print(f"  {self._epochs.describe(int(epoch[1]))}", highlight=False, markup=False)
        elif fold := FOLD.match(step):  # it has too many epochs for a line each
            if fold[1] not in self._folds:
                self._folds.add(fold[1])
                self._console.print(f"  {fold[1]}", highlight=False, markup=False)
        elif not is_message(step):
            self._console.print(f"  {party}: {step}{waiting}", highlight=False, markup=False)


def is_message(step: str) -> bool:
    """Return True if the step is a wait for a peer's message, in the protocol's words, and nothing else."""
    return step[:1].isupper()


class _Epochs:
    """Epochs of a training: the newest, and the forecast of the time left."""

    def __init__(self, epochs: int) -> None:
        self._epochs, self._newest = epochs, 0
        self.loss = ""  # newest hold-out loss
        self._first: tuple[int, float] | None = None  # a resumed training begins later

    def is_new(self, epoch: int) -> bool:
        new, self._newest = epoch > self._newest, max(epoch, self._newest)
        return new

    def describe(self, epoch: int) -> str:
        """Return "epoch 7 of 20, hold-out loss 0.341, at most 12 s left"."""
        now = time.monotonic()
        self._first = first, began = self._first or (epoch, now)
        of = f" of {self._epochs}" if self._epochs else ""
        passed = epoch - first
        left = (now - began) / passed * (self._epochs - epoch + 1) if passed > 0 and of else 0.0
        forecast = f", at most {in_words(left)} left" if left > SHORT_WAIT_S else ""  # early stopping may end it
        loss = f", hold-out loss {self.loss}" if self.loss else ""
        return f"epoch {epoch}{of}{loss}{forecast}"


def in_words(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.0f} h"


class _Counted(TextColumn):
    """Column such as 3/12; empty without a number of steps."""

    def render(self, task: Task) -> Text:
        return Text(f"{int(task.completed):,}/{int(task.total):,}" if task.total and not task.finished else "")
