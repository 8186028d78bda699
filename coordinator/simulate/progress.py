"""Progress of a simulation, with the time left; without a terminal nothing is shown."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from blindfit.coordinator.simulate.runs import Watch
from blindfit.coordinator.terminal.wording import duration, plain

MOST_SHOWN = 2  # of the current runs


class Progress:
    """Progress line of a simulation.

    Args:
        at_once: number of runs at once.
    """

    def __init__(self, console: Console, watch: Watch, at_once: int) -> None:
        self._watch, self._at_once = watch, at_once
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("[bold]runs"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not (console.is_terminal or console.is_jupyter),
        )
        self._task = self._bars.add_task("", total=watch.total, completed=watch.done)

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def draw(self) -> None:
        self._bars.update(self._task, completed=self._watch.done, description=describe(self._watch, self._at_once))


def describe(watch: Watch, at_once: int) -> str:
    """Return the time left, and the steps of current runs: "2 min 10 s left; taylor-1: epoch 7"."""
    left_s = watch.seconds_left(at_once)
    doing = [f"{name}: {plain(step)}" for name, step in list(watch.doing.items())]
    more = [f"{len(doing) - MOST_SHOWN} more"] if len(doing) > MOST_SHOWN else []
    left = [] if left_s is None else [f"about {duration(max(left_s, 1.0))} left"]
    return "; ".join([*left, *doing[:MOST_SHOWN], *more])
