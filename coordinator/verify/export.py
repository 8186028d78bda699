"""`blindfit export`: the release file of an active party's finished training, once all that it says was checked."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.walr_model import WALRModel
from blindfit.coordinator.verify import checks
from blindfit.parties.files.written import read_json, write_file
from blindfit.parties.walr.release_file import RELEASE_FILE


def export(directory: Path, out: Path, console: Console) -> None:
    """
    Args:
        directory: of the active party's files, or one that has it.

    Raises:
        ConfigError: it is no such directory.
        DataError: what is there does not pass an auditor's checks, or the model was replaced; nothing is written.
    """
    source = _found(directory)
    encoded = checks.read_bytes(source)
    checked = checks.verify(encoded)
    if failed := [result for result in checked.results if result.why]:
        raise DataError(
            f"{source}: {failed[0].name}: {failed[0].why}", hint="export the files as the training left them"
        )
    if WALRModel.from_dict(read_json(source.parent / "model.json")).to_dict() != checked.model:
        raise DataError(f"{source.parent / 'model.json'} is not the model of {source}", hint="train again")
    write_file(out, encoded)
    console.print(f"{out}: check it with `blindfit verify {out}`", soft_wrap=True, highlight=False)


def _found(directory: Path) -> Path:
    found = [
        path for path in (directory / RELEASE_FILE, *sorted(directory.glob(f"*/{RELEASE_FILE}"))) if path.is_file()
    ]
    if len(found) != 1:
        raise ConfigError(
            f"{directory} has {'more than one' if found else 'no'} {RELEASE_FILE}",
            hint="after `blindfit submit` the active party has it: in models/SESSION of its data_dir, or output_dir",
        )
    return found[0]
