"""Label indexes as snapshots have them, without a party."""

from __future__ import annotations

from pathlib import Path

from blindfit.parties.data.source import Source
from blindfit.parties.measurement.label_index import LabelIndex, open_index, write_index


def built(source: Source, directory: Path) -> LabelIndex:
    """Return the index of a source, in a directory that is made; an index that is there is returned as it is."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    if not directory.exists():
        directory.mkdir(mode=0o700)
        write_index(source, directory)
    return open_index(directory)
