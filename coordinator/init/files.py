"""The texts of the files that `blindfit init` writes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.vertical.score_leaks import LEAST_COLUMNS
from blindfit.coordinator.init.guess import Guessed
from blindfit.parties.settings import PARTY_NAME
from blindfit.parties.tables import toml_of

DATASET, KEY_NODE, POPULATION, COORDINATOR = "rows", "notary", "people", "coordinator"
EPSILON, BUDGET = 1.0, 3.0


@dataclass(frozen=True)
class Seat:
    """A party as it is written: its role, and its table; None at a key node."""

    name: str
    role: str
    table: Guessed | None


def party_name(path: Path, taken: Sequence[str]) -> str:
    """Of a table's file: hospital.csv is the hospital's."""
    base = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:40]
    name = base if re.fullmatch(PARTY_NAME, base) else f"party-{base}".rstrip("-")
    if name in (KEY_NODE, COORDINATOR, *taken):
        raise ConfigError(f"{path} would be the table of a second {name}", hint="rename one of the files")
    return name


# --- a party ---------------------------------------------------------------------------------------------


def party_text(seat: Seat, seats: Sequence[Seat], row_id: str, out: Path, systems: Sequence[str]) -> str:
    lines = [
        f'name = "{seat.name}"',
        f'role = "{seat.role}"',
        f'data_dir = "state/{seat.name}"  # its database, keys and models',
        "",
        "[identity]  # `blindfit run` puts certificates of its own here",
        *_identity(seat.name),
        "",
        "[peers.coordinator]",
        'role = "coordinator"',
    ]
    for other in seats:
        if other is not seat:
            lines += ["", f"[peers.{other.name}]", f'role = "{other.role}"']
    lines += ["", "[policy]", f"systems = {toml_of(list(systems))}"]
    if seat.table is not None:
        lines += _dataset(seat, seats, seat.table, row_id, out)
    return "\n".join(lines) + "\n"


def _identity(name: str) -> list[str]:
    """Where `blindfit certs` puts the files, the revocation list next to the certificate."""
    return [f'{kind} = "certificates/{name}/{kind}.pem"' for kind in ("certificate", "key", "authority")]


def _dataset(seat: Seat, seats: Sequence[Seat], table: Guessed, row_id: str, out: Path) -> Iterator[str]:
    is_server = seat.role == "measurement"
    if is_server:
        yield from ("", f"[populations.{POPULATION}]  # one budget for all datasets about the same people")
        yield from (f"epsilon = {BUDGET}", "delta = 1e-5")
    yield from ("", f"[datasets.{DATASET}]", f"url = {toml_of(_url(table.path, out))}", f"id = {toml_of(row_id)}")
    yield from (f"{option} = {toml_of(value)}" for option, value in table.dialect.options().items())
    if table.label:
        yield f"label = {toml_of(table.label)}"
        if table.positive:
            yield f"positive = {toml_of(table.positive)}  # label 1; every other one is 0"
        if table.label_is_number:
            yield 'label_kind = "number"'
    if is_server:
        consumer = next(other.name for other in seats if other.role == "active")
        yield from (f'population = "{POPULATION}"', f'active_parties = ["{consumer}"]')
        if count_unknown_ids(seats):
            yield 'unknown_rows = "refuse"  # "zero" takes rows whose ids this table does not have as label 0'
        return
    yield from (_comment(f"{name or 'a column without a name'}: {why}") for name, why in table.left_out.items())
    if table.features:
        yield f"features = {toml_of(list(table.features))}"
    else:
        yield 'features = "rest"'
        yield from [f"except = {toml_of(list(table.left_out))}"] if table.left_out else []
    if table.categories:
        yield f"categories = {toml_of(list(table.categories))}  # a column of zeros and ones for each level"
    if table.dates:
        yield f"dates = {toml_of(list(table.dates))}  # as days since 1970-01-01"
    if table.lacks_values:
        yield 'missing = "indicator"  # the mean, and a column that says where it was put'
    if seat.role == "passive" and few_columns(table):
        yield '# models_per_row = "unlimited"  # its columns are so few that scores reveal them; 0 gives no scores'


def _comment(text: str) -> str:
    return f"# left out: {''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)}"


def count_unknown_ids(seats: Sequence[Seat]) -> int:
    """Return how many ids of the active party the measurement server's table does not have."""
    ids = {seat.role: seat.table.ids for seat in seats if seat.table is not None}
    return len(ids["active"] - ids["measurement"]) if "measurement" in ids else 0


def few_columns(table: Guessed) -> bool:
    return table.n_features < LEAST_COLUMNS


def _url(path: Path, out: Path) -> str:
    return f"{path.suffix.removeprefix('.').lower()}:{Path(os.path.relpath(path.resolve(), out.resolve())).as_posix()}"


# --- jobs --------------------------------------------------------------------------------------------------


def job_text(name: str, protocol: str, seats: Sequence[Seat], tables: Mapping[str, Sequence[str]], head: str) -> str:
    """Args:
    tables: of the job, each with its lines.
    head: what it is, as a comment.
    """
    lines = [*(f"# {line}" for line in head.splitlines()), f'name = "{name}"', f'protocol = "{protocol}"']
    for seat in seats:
        lines += ["", f"[parties.{seat.name}]", f'role = "{seat.role}"', f'config = "{seat.name}.toml"']
        lines += [f'dataset = "{DATASET}"'] if seat.table is not None else []
        lines += ['# address = "host:7100"  # where it is up, for `blindfit submit`']
    lines += ["", f"[{COORDINATOR}]  # who submits the job; `blindfit run` makes a certificate of its own"]
    lines += _identity(COORDINATOR)
    for table, options in tables.items():
        lines += ["", f"[{table}]", *options]
    return "\n".join(lines) + "\n"
