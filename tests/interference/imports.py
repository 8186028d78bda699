"""Print the modules that parties import in a job until its charge, in processes that have not imported them before.

An import takes up to half a second, which a party that waits for an answer can see. So the imports must not depend on
anybody's rows. Each world runs in a fork of one process, which has imported only the harness. The fork ends at its
charge: later imports do not matter. Each line of input asks for two worlds:

    echo "SYSTEM PARTY [planted]" | python -m tests.interference.imports AUTHORITY
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import structlog

from blindfit.parties.data.source import Source
from blindfit.parties.store.database import Writes
from blindfit.parties.work.late_arrow import load_arrow
from tests.interference.neighbours import changed
from tests.interference.systems import SYSTEMS
from tests.interference.world import Case, run


def worlds(system: str, party: str) -> tuple[Case, Case]:
    """Return two worlds: in the second, the first row has another row's label."""
    case = SYSTEMS[system]()
    labels = {row: values["label"] for row, values in case.data[party].items()}
    first, *others = labels
    another = next(labels[row] for row in others if labels[row] != labels[first])
    return case, case.with_data(changed(case.data, party, {first: {"label": another}}))


def tell(case: Case, authority: Path, label: str) -> None:
    """Print the names of the imported modules in alphabetical order, since several parties run at once; end at the
    charge.

    Args:
        label: name of a party. If it is given, that party's first row decides on an import, planted where rows are
            read.
    """
    found: set[str] = set()

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "import":
            found.add(str(arguments[0]))

    def charged(*_: object) -> NoReturn:
        sys.stdout.write(json.dumps(sorted(found.copy())) + "\n")  # other threads still add names
        sys.stdout.flush()
        os._exit(0)

    mock.patch.object(Writes, "add_entry", charged).start()
    if label:
        _plant(float(label))
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    sys.addaudithook(heard)
    raise AssertionError(f"no charge: {run(case, authority).errors}")


def _plant(label: float) -> None:
    batches = Source.batches

    def told(self: Source, *arguments: Any, **named: Any) -> Any:
        for batch in batches(self, *arguments, **named):
            if batch.labels is not None and float(batch.labels[0]) == label:
                __import__("wave")
            yield batch

    mock.patch.object(Source, "batches", told).start()


def main(authority: str) -> None:
    load_arrow()  # as a party's process does with its first table
    for line in sys.stdin:
        system, party, *planted = line.split()
        one, other = worlds(system, party)
        label = str(next(iter(one.data[party].values()))["label"]) if planted else ""
        for case in (one, other):
            with tempfile.TemporaryDirectory(prefix="interference-") as folder:
                tempfile.tempdir = folder  # the world leaves its own folder there
                process = multiprocessing.get_context("fork").Process(target=tell, args=(case, Path(authority), label))
                process.start()
                process.join()
                tempfile.tempdir = None
            if process.exitcode:
                sys.stdout.write("null\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
