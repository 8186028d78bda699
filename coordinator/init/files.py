"""The texts of the files that `blindfit init` writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.vertical.score_leaks import LEAST_COLUMNS
from blindfit.algorithms.texts import printable
from blindfit.coordinator.init.guess import Guessed
from blindfit.coordinator.init.hosts import Host
from blindfit.coordinator.init.places import Place
from blindfit.coordinator.init.systems import DELTA
from blindfit.parties.settings import PARTY_NAME
from blindfit.parties.tables import toml_of

OTHER_FILES = ("job", "predict", "evaluate")  # files that `init` writes in addition to the party files
DATASET, PUBLIC, KEY_NODE, POPULATION, COORDINATOR = "rows", "public", "notary", "people", "coordinator"


@dataclass(frozen=True)
class Seat:
    """A party, as its file describes it.

    Attributes:
        table: guess of its table; None for a key node.
        levels: texts of categories that are known without the rows; empty for those of the rows.
        label_range: public range of a label that is a number and is released with noise.
        public: table of rows that anyone may have, with the same columns.
        budget: epsilon that pays for releases of the table; None if nothing is released.
        max_epsilon: largest epsilon that its policy allows a job; None for the default.
        models_per_row: number of models that may reveal something of a row; None for the party's default.
    """

    name: str
    role: str
    table: Guessed | None
    host: Host | None = None
    levels: Mapping[str, Sequence[str]] | None = None
    label_range: tuple[float, float] | None = None
    public: Guessed | None = None
    budget: float | None = None
    max_epsilon: float | None = None
    models_per_row: int | None = None

    def at(self, host: Host) -> Seat:
        return replace(self, host=host)


def party_name(place: Place, taken: Sequence[str]) -> str:
    """Return the name of a party, from the file of its table: hospital.csv gives hospital."""
    base = re.sub(r"[^a-z0-9]+", "-", place.stem.lower()).strip("-")[:40].rstrip("-")
    name = base if re.fullmatch(PARTY_NAME, base) else f"party-{base}".rstrip("-")
    if name in (*OTHER_FILES, KEY_NODE, COORDINATOR, *taken):
        raise ConfigError(
            f"{place} would be the table of a party called {name}, and this name is taken",
            hint="rename one of the files",
        )
    return name


# --- a party ---------------------------------------------------------------------------------------------


def party_text(seat: Seat, seats: Sequence[Seat], row_id: str, out: Path, systems: Sequence[str]) -> str:
    lines = [f'name = "{seat.name}"', f'role = "{seat.role}"']
    lines += [f'listen = "{seat.host.listen}"  # its address, unless `blindfit run` starts it'] if seat.host else []
    lines += [
        f'data_dir = "state/{seat.name}"  # its database, keys and models',
        "",
        "[identity]  # from `blindfit certs issue`; `blindfit run` makes its own certificates",
        *_identity(seat.name),
        "",
        "[peers.coordinator]",
        'role = "coordinator"',
    ]
    for other in seats:
        if other is not seat:
            lines += ["", f"[peers.{other.name}]", f'role = "{other.role}"']
    lines += ["", "[policy]", f"systems = {toml_of(list(systems))}"]
    lines += [f"max_epsilon = {seat.max_epsilon}"] if seat.max_epsilon is not None else []
    if seat.table is not None:
        lines += _dataset(seat, seats, seat.table, row_id, out)
    if seat.public is not None:
        lines += _public_dataset(seat, seat.public, row_id, out)
    return "\n".join(lines) + "\n"


def _identity(name: str) -> list[str]:
    """Return the places in which `blindfit certs` puts the files."""
    files = {"certificate": "certificate", "key": "key", "authority": "authority", "revoked": "crl"}
    return [f'{option} = "certificates/{name}/{file}.pem"' for option, file in files.items()]


def _dataset(seat: Seat, seats: Sequence[Seat], table: Guessed, row_id: str, out: Path) -> Iterator[str]:
    if seat.budget is not None:
        yield from ("", f"[populations.{POPULATION}]  # one budget for all datasets about the same people")
        yield from (f"epsilon = {seat.budget}", f"delta = {DELTA}")
    yield from ("", f"[datasets.{DATASET}]", *_source(table, row_id, out))
    yield from [f'population = "{POPULATION}"'] if seat.budget is not None else []
    if seat.label_range is not None:
        yield f"label_range = {list(seat.label_range)}  # public; a label outside counts as the nearest end"
    if seat.role == "measurement":
        consumer = next(other.name for other in seats if other.role == "active")
        yield f'active_parties = ["{consumer}"]'
        if passives := [other.name for other in seats if other.role == "passive"]:
            yield f"passive_parties = {toml_of(passives)}"
        if count_unknown_ids(seats) and not table.label_is_number:
            yield 'unknown_rows = "refuse"  # "zero" takes rows whose ids this table does not have as label 0'
        return
    yield from _features(table, seat.levels)
    if table.lacks_values:
        yield 'missing = "indicator"  # use the mean, and add a column that marks these rows'
    if seat.models_per_row is not None:
        yield f"models_per_row = {seat.models_per_row}"
    elif seat.role == "passive" and few_columns(table):
        yield '# models_per_row = "unlimited"  # its columns are so few that scores reveal them; 0 gives no scores'


def _public_dataset(seat: Seat, table: Guessed, row_id: str, out: Path) -> Iterator[str]:
    yield from ("", f"[datasets.{PUBLIC}]", "public = true  # its owner declares that anyone may have these rows")
    yield from (*_source(table, row_id, out), *_features(table, seat.levels))


def _source(table: Guessed, row_id: str, out: Path) -> Iterator[str]:
    yield from (f"url = {toml_of(table.place.url_from(out))}", f"id = {toml_of(row_id)}")
    yield from (f"{option} = {toml_of(value)}" for option, value in table.dialect.options().items())
    if table.label:
        yield f"label = {toml_of(table.label)}"
        if table.positive:
            yield f"positive = {toml_of(table.positive)}  # label 1; every other text is 0"
        if table.label_is_number:
            yield 'label_kind = "number"'


def _features(table: Guessed, levels: Mapping[str, Sequence[str]] | None) -> Iterator[str]:
    yield from (_comment(f"{name or 'a column without a name'}: {why}") for name, why in table.left_out.items())
    if table.features:
        yield f"features = {toml_of(list(table.features))}"
    else:
        yield 'features = "rest"'
        yield from [f"except = {toml_of(list(table.left_out))}"] if table.left_out else []
    if table.categories and levels is None:
        yield f"categories = {toml_of(list(table.categories))}  # a column of zeros and ones for each level"
    elif table.categories and levels is not None:
        declared = (f"{toml_of(name)} = {toml_of(list(levels[name]))}" for name in table.categories)
        yield f"categories = {{ {', '.join(declared)} }}"
    if table.dates:
        yield f"dates = {toml_of(list(table.dates))}  # as days since 1970-01-01"


def _comment(text: str) -> str:
    return f"# left out: {''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)}"


def count_unknown_ids(seats: Sequence[Seat]) -> int:
    """Return the number of the active party's ids that the measurement server's table does not have."""
    ids = {seat.role: seat.table.ids for seat in seats if seat.table is not None}
    return len(ids["active"] - ids["measurement"]) if "measurement" in ids else 0


def few_columns(table: Guessed) -> bool:
    return table.n_features < LEAST_COLUMNS


# --- jobs --------------------------------------------------------------------------------------------------


def job_text(name: str, protocol: str, seats: Sequence[Seat], tables: Mapping[str, Sequence[str]], head: str) -> str:
    """Return the text of a job file.

    Args:
        tables: additional tables of the job, each with its lines.
        head: description of the job, as a comment.
    """
    lines = [*(f"# {printable(line)}" for line in head.splitlines()), f'name = "{name}"', f'protocol = "{protocol}"']
    for seat in seats:
        lines += ["", f"[parties.{seat.name}]", f'role = "{seat.role}"', f'config = "{seat.name}.toml"']
        lines += [f'address = "{seat.host.address}"  # for `blindfit submit`'] if seat.host else []
        lines += [f'dataset = "{DATASET}"'] if seat.table is not None else []
    lines += ["", f"[{COORDINATOR}]  # submits the job; `blindfit run` makes its own certificate"]
    lines += _identity(COORDINATOR)
    for table, options in tables.items():
        lines += ["", f"[{table}]", *options]
    return "\n".join(lines) + "\n"
