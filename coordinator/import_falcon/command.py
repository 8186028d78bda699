"""`blindfit import-falcon`: a job file of the public Falcon code -> our job file and a file for each party.

Every field is listed: as the option that carries it, or with the reason why no option does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from rich.console import RenderableType

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.texts import printable
from blindfit.coordinator.import_falcon.fields import (
    TEST_FRACTION,
    NotCarried,
    carry_over,
    format_fields,
    leave_out,
    not_carried,
)
from blindfit.coordinator.import_falcon.file import FalconFile, Party, Without, read_falcon
from blindfit.coordinator.import_falcon.rows import ID, LABEL, Shape, convert, missing
from blindfit.coordinator.job.job import read_job
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.terminal import line
from blindfit.coordinator.terminal.wording import capitalise, quantity
from blindfit.parties.files.private_files import make_private, open_private
from blindfit.parties.job.parameters import nest
from blindfit.parties.systems import read_party

DEALER, COORDINATOR, DATASET = "dealer", "coordinator", "rows"
MADE = "# Made by `blindfit import-falcon`. `blindfit show job.toml` prints every option.\n"


@dataclass(frozen=True)
class Brought:
    """The rows of one party.

    Attributes:
        source: file of the Falcon code.
        shape: shape of the converted table; None if the file is not on this machine.
        why_not: reason why the file is not converted here.
    """

    party: Party
    source: Path
    shape: Shape | None = None
    why_not: str = ""


def import_falcon(path: Path, out: Path, without: Sequence[str]) -> Found:
    """Raise ConfigError, DataError: the job or the rows are wrong; no file is left behind."""
    named = Without(without)
    asked, unknown = read_falcon(path, named)
    left = [*leave_out(asked, path, named), *(NotCarried({name: None}, "unknown, left out") for name in unknown)]
    named.check_needed()
    with _new_folder(out):
        brought = [_bring(party, asked, path.parent, out) for party in asked.party_info]
        options = list(carry_over(asked, _rows_in_common(brought)))
        files = {b.party.name: _party_file(asked, b) for b in brought} | {DEALER: _dealer_file(asked)}
        for name, content in files.items():
            read_party(content, f"{path}, as {name}.toml")
            _write(out / f"{name}.toml", content)
        job = nest({option.option: option.value for option in options}) | _rest_of_job(asked)
        read_job(job, f"{path}, as job.toml")
        _write(out / "job.toml", job)  # last: a folder with job.toml is complete
    fields: dict[str, list[Any]] = {
        "carried": [*options, *_parties_carried(asked), *_rows_here(brought)],
        "not carried": [*left, *not_carried(asked), *_rows_not_here(brought)],
        "added": list(_list_defaults(asked)),
    }
    found = {title: [printable(str(field)) for field in of_title] for title, of_title in fields.items()}
    document: dict[str, Any] = {"job": out / "job.toml", "parties": list(files)}
    document |= {title.replace(" ", "_"): of_title for title, of_title in found.items()}
    return Found(document, (*_list_fields(found), f"{out / 'job.toml'}: {quantity(len(files), 'party', 'parties')}"))


def _list_fields(found: Mapping[str, Sequence[str]]) -> Iterator[RenderableType]:
    for title, fields in found.items():
        yield line(f"[bold]{capitalise(title)}[/]")
        yield from (f"  {field}" for field in fields)


# --- the job -----------------------------------------------------------------------------------------


def _rest_of_job(asked: FalconFile) -> dict[str, Any]:
    data_parties = {
        p.name: {"role": p.party_type, "config": f"{p.name}.toml", "address": p.addr, "dataset": DATASET}
        for p in asked.party_info
    }
    return {
        "coordinator": _identity(COORDINATOR),
        "parties": data_parties | {DEALER: {"role": "key-node", "config": f"{DEALER}.toml"}},
        "split": {"test_fraction": TEST_FRACTION},
    }


# --- parties -----------------------------------------------------------------------------------------


def _party_file(asked: FalconFile, brought: Brought) -> dict[str, Any]:
    party = brought.party
    label = {"label": LABEL} if party.is_active else {}
    if party.is_active and asked.is_linear:
        label |= {"label_kind": "number"}
    made_by = f"blindfit import-falcon JOB.JSON --out DIR, where {brought.source} is"
    scores = {} if party.is_active else {"models_per_row": 0}  # the operator decides whether it gives any
    dataset = {"url": f"csv:{party.name}.csv", "id": ID, **label, "features": "rest", **scores, "made_by": made_by}
    head = {"name": party.name, "role": party.party_type, "listen": party.addr}
    return head | _common(asked, party.name) | {"datasets": {DATASET: dataset}}


def _dealer_file(asked: FalconFile) -> dict[str, Any]:
    return {"name": DEALER, "role": "key-node"} | _common(asked, DEALER)


def _common(asked: FalconFile, name: str) -> dict[str, Any]:
    """Return the options that the data party `name` or the dealer has in common with all parties.

    The job names the addresses of peers: an address here would have precedence over those of `blindfit run`. The party
    lists itself too, for its health check.
    """
    roles = {COORDINATOR: "coordinator", **{p.name: p.party_type for p in asked.party_info}, DEALER: "key-node"}
    return {
        "data_dir": f"state/{name}",
        "identity": _identity(name),
        "peers": {peer: {"role": role} for peer, role in roles.items()},
        "policy": {"systems": ["falcon", "predict"]},
    }


def _identity(name: str) -> dict[str, str]:
    return {part: f"certificates/{name}/{part}.pem" for part in ("certificate", "key", "authority")}


def _bring(party: Party, asked: FalconFile, base_dir: Path, out: Path) -> Brought:
    place = base_dir / party.path.data_input
    source = place if place.is_file() else place / asked.training.input_configs.data_input.data
    if why_not := missing(source):
        return Brought(party, source, why_not=why_not)
    classes = party.is_active and not asked.is_linear
    shape = convert(source, out / f"{party.name}.csv", has_label=party.is_active, has_classes=classes)
    return Brought(party, source, shape)


def _rows_in_common(brought: Sequence[Brought]) -> int | None:
    """Return the number of rows of the files on this machine; None if no file is here.


    Raises:
        DataError: the files have different rows. By the Falcon code's rule, the same place means the same person.
    """
    here = [(b.source, b.shape.rows) for b in brought if b.shape is not None]
    for source, rows in here[1:]:
        if rows != here[0][1]:
            first = f"{here[0][0]} has {here[0][1]:,}"
            raise DataError(
                f"{source} has {quantity(rows, 'row')}, but {first}: the rows at one place must belong to one person"
            )
    return here[0][1] if here else None


# --- files -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """Yield a new or an empty folder; restore it if an error occurs.

    Raises:
        ConfigError: the folder has content, or it cannot be written.
    """
    with _in_a_line(out):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ConfigError(
                f"--out {out}: the folder is not empty, and nothing is overwritten", hint="name a new folder"
            )
        missing_folders = [folder for folder in (out, *out.parents) if not folder.exists()]
        try:
            make_private(out)
            yield out
        except BaseException:
            _undo(out, missing_folders)
            raise


@contextlib.contextmanager
def _in_a_line(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{error.filename or out}: {error.strerror}") from None


def _undo(out: Path, made: Sequence[Path]) -> None:
    """Remove the files of the folder, and the folders that were made, the innermost first."""
    with contextlib.suppress(OSError):  # the first error is the one to report
        for file in out.iterdir():
            file.unlink()
    for folder in made:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with open_private(path, "xb") as file:
        file.write((MADE + tomli_w.dumps(content)).encode())


# --- output ------------------------------------------------------------------------------------------


def _parties_carried(asked: FalconFile) -> Iterator[str]:
    for n, party in enumerate(asked.party_info):
        fields = {"id": party.id, "party_type": party.party_type, "addr": party.addr}
        yield f"party_info.{n}: {format_fields(fields)}: {party.name}.toml, which listens at this address, and job.toml"


def _rows_here(brought: Sequence[Brought]) -> Iterator[str]:
    for n, b in enumerate(brought):
        if b.shape is not None:
            columns = f"x1 .. x{b.shape.features}" + (f" and {LABEL}, the last" if b.party.is_active else "")
            how = f"{b.party.name}.csv, with ids r1 .. r{b.shape.rows} by place and columns {columns}"
            yield f"party_info.{n}.path.data_input, data_input.data: {b.source}: {how}"


def _rows_not_here(brought: Sequence[Brought]) -> Iterator[str]:
    for n, b in enumerate(brought):
        if b.shape is None:
            what = f"import the job on the machine that has the file: the import makes {b.party.name}.csv there"
            yield f"party_info.{n}.path.data_input, data_input.data: {b.source}: {b.why_not}; {what}"


def _list_defaults(asked: FalconFile) -> Iterator[str]:
    absent = asked.config.model_dump(exclude_none=True, exclude=asked.config.model_fields_set)
    if absent:
        yield f"fields that the file does not have: {format_fields(absent)}"
    yield (
        f"{DEALER} is a key node. In the Falcon code the active party deals, and so knows every key; here another "
        f"party deals. For `blindfit submit`, set its address: `listen` in {DEALER}.toml, parties.{DEALER}.address in "
        "job.toml"
    )
    yield f"split.test_fraction = {TEST_FRACTION}: the fraction that the Falcon code tests on"
    yield "certificates: `blindfit run` makes its own; `blindfit certs` makes the certificates that the files name"
    yield "other random batches, and weights that start at 0: the model is not the Falcon code's bit for bit"
