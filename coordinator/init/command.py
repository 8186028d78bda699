"""`blindfit init`: party files and a job for tables that are at hand, ready to be checked and run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import RenderableType
from rich.markup import escape

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.init import files, guess
from blindfit.coordinator.init.files import EPSILON, KEY_NODE, Seat
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.terminal import line
from blindfit.coordinator.terminal.wording import quantity
from blindfit.parties.systems import load_party

Kind = Literal["vertical", "walr"]
LEAST_COMMON = 100
ROLES = {"vertical": ("passive", "active"), "walr": ("active", "measurement")}  # of others, of the label's owner


@dataclass(frozen=True)
class Asked:
    """
    Attributes:
        tables: files, one of each organisation.
        label: the column to learn.
        row_id: the column that names a row; None: guessed.
        positive: the text of label 1; None: guessed.
    """

    kind: Kind
    tables: tuple[Path, ...]
    label: str
    row_id: str | None = None
    positive: str | None = None


def init(asked: Asked, out: Path) -> Found:
    """Write the files of a job into a new folder, or nothing.

    Raises:
        ConfigError, DataError: which file or column, and what to say.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is there already", hint="name another folder: --out DIR")
    row_id, seats = _seats(asked)
    texts = _vertical(row_id, seats, out) if asked.kind == "vertical" else _walr(row_id, seats, out)
    _write(texts, out)
    document = {"folder": out, "id": row_id, "parties": {seat.name: seat.role for seat in seats}}
    return Found(document, (*_seats_in_words(row_id, seats), *_advice(seats, out), *_next_steps(seats, out)))


def _seats(asked: Asked) -> tuple[str, list[Seat]]:
    """The active party first."""
    _check_tables(asked)
    tables = {path: guess.open_table(path) for path in asked.tables}
    owner = guess.owner_of(asked.label, tables)
    row_id = guess.id_column(tables, asked.row_id, asked.label)
    found: list[Seat] = []
    for path, table in tables.items():
        is_owner = path == owner
        label, positive = (asked.label, asked.positive) if is_owner else ("", None)
        name = files.party_name(path, [seat.name for seat in found])
        role = (
            ("measurement" if is_owner else "active") if asked.kind == "walr" else "active" if is_owner else "passive"
        )
        read = guess.guess_table(path, table, row_id, label=label, positive=positive)
        if read.label_is_number and asked.kind == "walr":
            raise ConfigError(
                f"the label {asked.label} is a number, and an aggregate needs labels 0 and 1",
                hint="name the value that counts as label 1, all others being 0: --positive VALUE",
            )
        if not read.n_features and role != "measurement":
            left = f": it leaves out {', '.join(read.left_out)}" if read.left_out else ""
            raise ConfigError(
                f"{path} has no column to learn from{left}",
                hint="add a column of numbers, of dates or of texts with few levels, or leave the table out",
            )
        found.append(Seat(name, role, read))
    found.sort(key=lambda seat: seat.role != "active")
    _check_common(found)
    return row_id, [*found, Seat(KEY_NODE, "key-node", None)] if asked.kind == "vertical" else found


def _check_tables(asked: Asked) -> None:
    if len(set(asked.tables)) < len(asked.tables):
        raise ConfigError("a table is named twice", hint="each organisation has a file of its own")
    if asked.kind == "walr" and len(asked.tables) != 2:
        raise ConfigError(f"--walr takes two tables, features and labels, not {len(asked.tables)}")
    if not 2 <= len(asked.tables) <= 16:
        raise ConfigError(f"--vertical takes 2 to 16 tables, not {len(asked.tables)}")


def _check_common(seats: Sequence[Seat]) -> None:
    tables = [seat.table for seat in seats if seat.table is not None]
    common = frozenset.intersection(*(table.ids for table in tables))
    if len(common) < LEAST_COMMON:
        raise ConfigError(
            f"the tables have {quantity(len(common), 'row')} in common: fewer than {LEAST_COMMON} are too few",
            hint="do they name rows alike? --id COLUMN names the column of the ids",
        )


# --- what is written ------------------------------------------------------------------------------------


def _vertical(row_id: str, seats: Sequence[Seat], out: Path) -> dict[str, str]:
    systems = ("taylor", "falcon", "predict")
    texts = {f"{seat.name}.toml": files.party_text(seat, seats, row_id, out, systems) for seat in seats}
    is_linear = any(seat.table is not None and seat.table.label_is_number for seat in seats)
    taylor = ['model = "linear"'] if is_linear else ["# epochs = 20"]
    tables = {"split": ["test_fraction = 0.2"], "taylor": taylor}
    job = files.job_text("vertical", "taylor", seats, tables, _head(out))
    head = "New rows: name their dataset in each party's file, and here.\n"
    head += "Fewer than 100 rows need a lower align.min_common here: 20, or the largest policy.min_common of a party.\n"
    head += f"blindfit predict {out}/predict.toml --model {out}/run"
    return {**texts, "job.toml": job, "predict.toml": files.job_text("predict", "predict", seats, {}, head)}


def _head(out: Path) -> str:
    return f"blindfit check {out}/job.toml\nblindfit run {out}/job.toml --out {out}/run"


def _walr(row_id: str, seats: Sequence[Seat], out: Path) -> dict[str, str]:
    systems = ("walr", "evaluate")
    texts = {f"{seat.name}.toml": files.party_text(seat, seats, row_id, out, systems) for seat in seats}
    tables: Mapping[str, list[str]] = {
        "privacy": [f"epsilon = {EPSILON}  # the budget in the label holder's file is {files.BUDGET}", "delta = 1e-5"],
        "split": ["test_fraction = 0.2"],
    }
    return {**texts, "job.toml": files.job_text("walr", "walr", seats, tables, _head(out))}


def _write(texts: Mapping[str, str], out: Path) -> None:
    """All of it, or nothing: what is written is read back as `run` would."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=".init-", dir=out.parent))
    except OSError as error:
        raise ConfigError(
            f"{out} cannot be made: {error.strerror or error}", hint="name another folder: --out DIR"
        ) from None
    try:
        for name, text in texts.items():
            (building / name).write_text(text)
        for name in texts:
            _read_back(building / name)
        building.chmod(0o755)
        if out.exists():
            out.rmdir()  # it is empty
        building.rename(out)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def _read_back(path: Path) -> None:
    if path.name == "job.toml":
        load_job(path)
    elif path.name == "predict.toml":
        load_job(path, ["predict.session=named-later"])
    else:
        load_party(path, [])


def _seats_in_words(row_id: str, seats: Sequence[Seat]) -> Iterator[RenderableType]:
    yield from (f"{seat.name:<16}{_in_words(seat)}" for seat in seats)
    yield f"rows are named by {row_id}"
    for seat in seats:
        for remark in seat.table.remarks if seat.table is not None else ():
            yield line(f"[yellow]{seat.name}:[/] {escape(remark)}")


def _advice(seats: Sequence[Seat], out: Path) -> Iterator[RenderableType]:
    """Say which decisions are left to the operators, without which the job is refused."""
    for seat in seats:
        if seat.role == "passive" and seat.table is not None and files.few_columns(seat.table):
            yield line(
                f"[yellow]{seat.name}: scores could tell its {quantity(seat.table.n_features, 'column')};[/] the job "
                f"cannot run until {escape(f'{out / seat.name}.toml')} says models_per_row = "
                '"unlimited", or until it says models_per_row = 0 and the job says split.test_fraction = 0 (no scores)'
            )
    if unknown := files.count_unknown_ids(seats):
        server, active = (next(seat.name for seat in seats if seat.role == role) for role in ("measurement", "active"))
        yield line(
            f"[yellow]{server} does not have the ids of {quantity(unknown, 'row')} of {active};[/] the job is refused "
            f"until these rows are out of {active}'s table, or {escape(f'{out / server}.toml')} says "
            'unknown_rows = "zero": then they count as label 0'
        )


def _next_steps(seats: Sequence[Seat], out: Path) -> Iterator[str]:
    yield from ("next:", f"  blindfit check {out}/job.toml", f"  blindfit run {out}/job.toml --out {out}/run")
    yield "between organisations, each with its own file, and addresses in job.toml:"
    yield f"  blindfit certs authority {out}/certificates"
    yield from (f"  blindfit certs issue {out}/certificates {seat.name} --host HOST" for seat in seats)
    yield f"  blindfit certs issue {out}/certificates coordinator"


def _in_words(seat: Seat) -> str:
    table = seat.table
    if table is None:
        return "key node: keys, and no data"
    said = [f"{seat.role}: {table.path}, {quantity(len(table.ids), 'row')}, {quantity(table.n_features, 'feature')}"]
    said += [f"{', '.join(table.categories)} as levels"] if table.categories else []
    said += [f"{', '.join(table.dates)} as days"] if table.dates else []
    said += ["missing values as the mean, and a column that says so"] if table.lacks_values else []
    said += [f"learns {table.label}" + (f" = {table.positive}" if table.positive else "")] if table.label else []
    said += [f"leaves out {', '.join(table.left_out)}"] if table.left_out else []
    return "; ".join(said)


def ask(
    kind: Kind | None, tables: Sequence[Path], label: str | None, *, may_ask: bool
) -> tuple[Kind, tuple[Path, ...], str]:
    """Ask the person at the terminal for what was not given.

    Raises:
        ConfigError: nobody may be asked.
    """
    if not may_ask and (kind is None or not tables or label is None):
        raise ConfigError(
            "say which tables and which label",
            hint="such as: blindfit init --vertical hospital.csv laboratory.csv --label malignant",
        )
    import typer

    if kind is None:
        text = "One party has the labels and gives a noisy sum alone (walr), or all have columns (vertical)?"
        said = typer.prompt(text, default="vertical")
        if said not in ("vertical", "walr"):
            raise ConfigError(f"{said}: neither vertical nor walr")
        kind = said
    if not tables:
        tables = [Path(word) for word in typer.prompt("Tables, one of each organisation").split()]
    return kind, tuple(tables), label if label is not None else typer.prompt("Column to learn")
