"""`blindfit init`: write party files and a job for tables on this machine, ready to check and run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.init import files, guess, words
from blindfit.coordinator.init.asked import Asked, Unclear
from blindfit.coordinator.init.files import KEY_NODE, Seat
from blindfit.coordinator.init.guess import Guessed
from blindfit.coordinator.init.hosts import hosts_of
from blindfit.coordinator.init.places import Place
from blindfit.coordinator.init.public_facts import Levels, PublicTable, agree
from blindfit.coordinator.init.systems import BUDGET, PLANS, Plan
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.wording import quantity
from blindfit.parties.data.origin import Reader, refuse_missing_names
from blindfit.parties.systems import load_party

LEAST_COMMON = 100
Ask = Callable[[str], str]


def init(asked: Asked, out: Path, ask: Ask | None = None) -> Found:
    """Write the files of a job into a new folder, or nothing.

    Args:
        ask: function that asks the person at the terminal; None without a terminal.

    Raises:
        ConfigError, DataError: a table or an option is wrong; names the file or column, and what to do.
    """
    refuse_existing(out)
    while True:
        try:
            return _init(asked, out)
        except Unclear as question:
            if ask is None:
                raise ConfigError(question.message, hint=question.hint) from None
            asked = asked.with_answer(question.option, ask(question.message))


def _init(asked: Asked, out: Path) -> Found:
    asked.check()
    plan = PLANS[asked.system]
    drafted = draft(asked, plan)
    seats = drafted.seats
    texts = texts_of(asked.system, plan, drafted, out)
    write_folder(texts, out)
    document = {"folder": out, "id": drafted.row_id, "parties": {seat.name: seat.role for seat in seats}}
    said = words.describe_tables(drafted.row_id, seats), words.advice(seats, out), words.next_steps(plan, seats, out)
    return Found(document, tuple(line for part in said for line in part))


# --- the parties -- -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draft:
    """Content of the files to write.

    Attributes:
        row_id: column that names a row.
        seats: parties, the active party first.
        more: tables of the job that follow from the tables of rows.
    """

    row_id: str
    seats: Sequence[Seat]
    more: Mapping[str, Sequence[str]] = field(default_factory=dict)


def draft(asked: Asked, plan: Plan, known_levels: Levels | None = None) -> Draft:
    """Choose the parties, and find what each table holds.

    Args:
        known_levels: levels of dp-lr's categories that are known without the private and public rows.

    Raises:
        ConfigError, DataError: a table or an option is wrong; names the file or column, and what to do.
    """
    places = _places(asked, plan)
    tables = {place: guess.open_table(place) for place in places}
    owner = guess.owner_of(asked.label, tables)
    row_id = guess.id_column(tables, asked.row_id, asked.label)
    more: Mapping[str, Sequence[str]] = {}
    seats: list[Seat] = []
    for place, table in tables.items():
        name = files.party_name(place, [seat.name for seat in seats])
        if place != owner:
            is_first = all(seat.role != plan.other for seat in seats)
            role = plan.other if is_first or not plan.further else plan.further
            seat = Seat(name, role, _read(asked, plan, place, table, row_id, has_label=False))
        else:
            budget = BUDGET if plan.charges_budget else None
            seat = Seat(name, plan.owner, _read(asked, plan, place, table, row_id), budget=budget)
        if asked.system == "dp-lr":
            seat, more = _with_public_facts(asked, plan, seat, table, row_id, known_levels or {})
        if asked.system == "label-dp" and place == owner:
            seat = replace(seat, label_range=asked.range_of_labels())
        seats.append(seat)
    seats.sort(key=lambda seat: seat.role != "active")
    _check_rows(seats)
    for seat in seats:
        _check_features(seat)
    seats += [Seat(KEY_NODE, "key-node", None)] if plan.key_node else []
    hosts = hosts_of([seat.name for seat in seats], asked.hosts)
    return Draft(row_id, [seat.at(hosts[seat.name]) for seat in seats], more)


def _places(asked: Asked, plan: Plan) -> list[Place]:
    places = [Place(word) for word in asked.tables]
    least, most = plan.tables
    if not least <= len(places) <= most:
        takes = quantity(least, "table") if least == most else f"{least} to {most} tables"
        raise ConfigError(
            f"--system {asked.system} takes {takes}, not {len(places)}",
            hint=f"name {takes}, one of each organisation",
        )
    if len({place.url_from(Path()) for place in places}) < len(places):
        raise ConfigError("a table is named twice", hint="name a different table for each organisation")
    return places


def _read(asked: Asked, plan: Plan, place: Place, table: Reader, row_id: str, *, has_label: bool = True) -> Guessed:
    """Return a guess of what a table holds."""
    label, positive = (asked.label, asked.positive) if has_label else ("", None)
    texts = [row_id, *([label] if positive is not None else [])]
    declared = place.as_declared(table, texts)
    read = guess.guess_table(
        place, declared, row_id, label=label, positive=positive, as_number=has_label and plan.label_is_number
    )
    if read.label_is_number and not plan.model and not plan.label_is_number:
        raise Unclear(
            "positive",
            f"which value of {label} is label 1? It is a number, and {asked.system} needs labels 0 and 1",
            hint="name the value that counts as label 1, all others being 0: --positive VALUE",
        )
    return read


def _with_public_facts(
    asked: Asked, plan: Plan, seat: Seat, table: Reader, row_id: str, known_levels: Levels
) -> tuple[Seat, Mapping[str, Sequence[str]]]:
    """Return the party of a dp-lr job with the public facts about its columns, and the job's table of them."""
    private, public = seat.table, None
    if private is None:
        return seat, {}
    names = [name for name in table.names if name not in (row_id, asked.label)]
    if asked.public:
        place = Place(asked.public)
        if place.url_from(Path()) == private.place.url_from(Path()):
            raise ConfigError("--public names the private table", hint="name a table whose rows anyone may have")
        other = guess.open_table(place)
        refuse_missing_names([row_id, asked.label], other.names, other.origin)
        alike = replace(asked, positive=private.positive or None)
        features = [name for name in other.names if name not in (row_id, asked.label)]
        public = PublicTable(_read(alike, plan, place, other, row_id), place.as_declared(other, [row_id]), features)
    facts = agree(private, names, public, asked.bounds, known_levels)
    seat = replace(seat, table=facts.private, public=facts.public, levels=facts.levels)
    return seat, {"dp_lr": facts.options}


def _check_features(seat: Seat) -> None:
    table = seat.table
    if table is not None and not table.n_features and seat.role != "measurement":
        left = f": it leaves out {', '.join(table.left_out)}" if table.left_out else ""
        raise ConfigError(
            f"{table.place} has no column to learn from{left}",
            hint="add a column of numbers, of dates or of texts with few levels, or leave the table out",
        )


def _check_rows(seats: Sequence[Seat]) -> None:
    tables = [seat.table for seat in seats if seat.table is not None]
    common = frozenset.intersection(*(table.ids for table in tables))
    if len(common) >= LEAST_COMMON:
        return
    if len(tables) == 1:
        raise ConfigError(
            f"{tables[0].place} has {quantity(len(common), 'row')}: fewer than {LEAST_COMMON} are too few",
            hint="name a table with more rows",
        )
    raise ConfigError(
        f"the tables have {quantity(len(common), 'row')} in common: fewer than {LEAST_COMMON} are too few",
        hint="check that they name rows in the same way; --id COLUMN names the column of the ids",
    )


# --- the files ---- ------------------------------------------------------------------------------------


def texts_of(system: str, plan: Plan, drafted: Draft, out: Path, shown: Path | None = None) -> dict[str, str]:
    """Return the text of each file, by name.

    Args:
        out: folder for which the files are written.
        shown: folder that commands in comments name, if it is another folder.
    """
    seats, systems = drafted.seats, [system, *([plan.also] if plan.also else [])]
    texts = {f"{seat.name}.toml": files.party_text(seat, seats, drafted.row_id, out, systems) for seat in seats}
    is_linear = any(seat.table is not None and seat.table.label_is_number for seat in seats)
    tables = plan.job_tables(is_linear=is_linear) | dict(drafted.more)
    folder = shown or out
    job, run = folder / "job.toml", folder / "run"
    head = f"{words.command('check', job)}\n{words.command('run', job, '--out', run)}"
    texts["job.toml"] = files.job_text(system, system, seats, tables, head)
    if plan.also:
        file = f"{plan.also}.toml"
        head = ABOUT[plan.also] + words.command(plan.also, folder / file, "--model", run)
        tables = {"privacy": plan.privacy} if plan.privacy else {}
        texts[file] = files.job_text(plan.also, plan.also, seats, tables, head)
    return texts


ABOUT = {
    "predict": "New rows: name their dataset in each party's file, and here.\n"
    "Fewer than 100 rows need a lower align.min_common here: 20, or the largest policy.min_common of a party.\n",
    "evaluate": "How good the model is on held-out rows; the answer is one more release, and costs epsilon.\n",
}


def write_folder(texts: Mapping[str, str], out: Path) -> None:
    """Write all files or no file. Each file is read back as `run` would read it."""
    with build_folder(out) as building:
        write_files(texts, building)


def write_files(texts: Mapping[str, str], folder: Path) -> None:
    """Write the files, and read them back as `run` would."""
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in texts:
        _read_back(folder / name)


@contextmanager
def build_folder(out: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes `out` on success; after an error no part of it is left.

    Raises:
        ConfigError: the folder cannot be made or written.
    """
    absent = [folder for folder in out.parents if not folder.exists()]  # the nearest first
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=".init-", dir=out.parent))
        try:
            yield building
            building.chmod(0o755)
            if out.exists():
                out.rmdir()  # it is empty
            building.rename(out)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise
    except OSError as error:
        _remove(absent)
        raise ConfigError(
            f"{out} cannot be made: {error.strerror or error}", hint="name another folder: --out DIR"
        ) from None
    except BaseException:
        _remove(absent)
        raise


def refuse_existing(out: Path) -> None:
    """Raise ConfigError: a file has this name, or a folder that is not empty."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} already exists", hint="name another folder: --out DIR")


def _remove(folders: Sequence[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _read_back(path: Path) -> None:
    if path.name == "job.toml":
        load_job(path)
    elif path.stem in ABOUT:
        load_job(path, [f"{path.stem}.session=named-later"])
    else:
        load_party(path, [])
