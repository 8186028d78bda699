"""A party's own page, for its own operator: after `blindfit submit` no other party has its model."""

from __future__ import annotations

from pathlib import Path

from blindfit.coordinator.report.content import content_of_party
from blindfit.coordinator.systems import kind_of
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.summary_table import places
from blindfit.parties.files.written import write_file


def render_party(directory: Path) -> Found:
    """Make report.html from the report.json and the model.json that a party wrote into its directory.

    Raises:
        DataError: a file is wrong; names the file and the error.
    """
    path = directory / "report.html"
    content = content_of_party(kind_of, directory)
    write_file(path, kind_of(content["protocol"]).render(content).encode())
    return Found({"file": path}, tuple(places([("report", path)])))
