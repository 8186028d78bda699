"""Tasks of an index that end their worker, once; another worker then does their work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from blindfit.algorithms.workers import Workers
from blindfit.parties.data.parquet_file import ParquetFile
from blindfit.parties.data.source import Source
from tests.work.tasks import die_once


@dataclass(frozen=True)
class MortalFile(ParquetFile):
    """A file whose reader dies when some of its rows are in a file, and more are to come."""

    marker: Path = Path()

    def arrow_batches(self, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        for number, batch in enumerate(super().arrow_batches(names, batch_rows)):
            if number == 3:
                die_once(self.marker, number)
            yield batch


def mortal(source: Source, marker: Path) -> Source:
    file: Any = source._reader
    return replace(source, _reader=MortalFile(**vars(file), marker=marker))


@dataclass
class MortalWorkers:
    """Workers of which one dies between the end of its first task of a function and its report.

    Args:
        asked: functions of all maps, with the number of tasks of each.
    """

    workers: Workers
    function: Callable[..., Any]
    marker: Path
    asked: dict[str, int]

    @property
    def count(self) -> int:
        return self.workers.count

    def map(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        self.asked[function.__name__] = len(tasks)
        if function is self.function:
            return self.workers.map(done_unheard, [(self.marker, function, task) for task in tasks])
        return self.workers.map(function, tasks)


def done_unheard(marker: Path, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    result = function(*arguments)
    die_once(marker, 0)
    return result
