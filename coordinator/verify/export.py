"""`blindfit export`: write the release file of an active party's finished training, after checking all it states."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.rehearsal import STAMP, stamp_of
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.wording import plain
from blindfit.coordinator.verify import checks
from blindfit.parties.files.written import read_json, write_file
from blindfit.parties.walr.release_document import RELEASE_FILE, read_file


def export(directory: Path, out: Path) -> Found:
    """Write the release file.

    Args:
        directory: folder of the active party's files, or a folder that contains it.

    Raises:
        ConfigError: the directory has no such files.
        DataError: the files do not pass an auditor's checks, or the model was replaced; nothing is written.
    """
    source = _find_release(directory)
    if stamp_of(read_json(source.parent / "model.json")):
        raise DataError(f"{source} comes from a {STAMP}", hint="run the job without --rehearse")
    encoded = read_file(source)
    checked = checks.verify(encoded)
    if failed := [result for result in checked.results if result.why]:
        raise DataError(
            f"{source}: {plain(failed[0].name)}: {plain(failed[0].why)}",
            hint="export the files as the training wrote them",
        )
    model = read_json(source.parent / "model.json")
    if not isinstance(model, dict) or any(model.get(name) != value for name, value in checked.model.items()):
        raise DataError(f"{source.parent / 'model.json'} is not the model of {source}", hint="train again")
    write_file(out, encoded)
    why = "a party that knows the noise learns from this file the sum of rows that it could not read"
    keep = [f"Keep it from the operator of {plain(server)}: {why}." for server in checked.not_for]
    lines = (f"{out}: check it with `blindfit verify {quote(str(out))}`", *keep)
    return Found({"file": out, "keep_from": checked.not_for}, lines)


def _find_release(directory: Path) -> Path:
    found = [path / RELEASE_FILE for path in _places(directory) if (path / RELEASE_FILE).is_file()]
    if len(found) != 1:
        raise ConfigError(
            f"{directory} has {'more than one' if found else 'no'} {RELEASE_FILE}",
            hint="after `blindfit submit` it is at the active party, in output_dir or in models/SESSION of data_dir",
        )
    return found[0]


def _places(directory: Path) -> list[Path]:
    return [directory, *sorted(path for path in directory.glob("*") if path.is_dir())]
