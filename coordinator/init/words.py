"""The output of `blindfit init`: what it found, what is left to decide, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import join, quote

from rich.console import RenderableType
from rich.markup import escape

from blindfit.coordinator.init import files
from blindfit.coordinator.init.files import COORDINATOR, Seat
from blindfit.coordinator.init.systems import Plan
from blindfit.coordinator.terminal.summary_table import lines_with_labels
from blindfit.coordinator.terminal.terminal import line
from blindfit.coordinator.terminal.wording import join_names, quantity

NOT_WRITTEN = (
    "its password is not written into a file: set PGPASSWORD for every command that reads the table, or write the "
    "password into ~/.pgpass"
)


def command(*words: object) -> str:
    """Return a command in a form that a person can paste into a shell."""
    return join(["blindfit", *map(str, words)])


def describe_tables(row_id: str, seats: Sequence[Seat]) -> Iterator[RenderableType]:
    yield from lines_with_labels([(seat.name, _in_words(seat)) for seat in seats], least=16)
    yield f"rows are named by {row_id}"
    for seat in seats:
        tables = [table for table in (seat.table, seat.public) if table is not None]
        for table in tables:
            yield from (_note(seat.name, remark) for remark in table.remarks)
            if seat.role == "measurement":
                continue  # none of its columns is learnt from
            named = ((name or "a column without a name", why) for name, why in table.left_out.items())
            yield from (_note(seat.name, f"leaves out {name}: {why}") for name, why in named)
        if any(table.place.hides_password for table in tables):
            yield _note(seat.name, NOT_WRITTEN)


def _note(name: str, text: str) -> RenderableType:
    return line(f"[yellow]{name}:[/] {escape(text)}")


def advice(seats: Sequence[Seat], out: Path) -> Iterator[RenderableType]:
    """Yield the decisions that operators must make before the job can run."""
    for seat in seats:
        if seat.role == "passive" and seat.table is not None and files.few_columns(seat.table):
            yield line(
                f"[yellow]{seat.name}: scores could reveal its {quantity(seat.table.n_features, 'column')}.[/] To run "
                f"the job, set models_per_row in {escape(f'{out / seat.name}.toml')}: "
                '"unlimited", or 0 with split.test_fraction = 0 in the job (no scores)'
            )
        if seat.levels is not None:  # rows are private, and so is which of their columns can be used
            yield line(
                f"[yellow]{seat.name}: the choice of columns comes from the rows,[/] and epsilon does not cover it: "
                f"check `except` in {escape(f'{out / seat.name}.toml')} before the model leaves your organisation"
            )
    if unknown := files.count_unknown_ids(seats):
        server, active = (next(seat for seat in seats if seat.role == role) for role in ("measurement", "active"))
        is_number = server.table is not None and server.table.label_is_number
        zero = f', or {out / server.name}.toml sets unknown_rows = "zero", so that they count as label 0'
        yield line(
            f"[yellow]{server.name} does not have the ids of {quantity(unknown, 'row')} of {active.name};[/] the job "
            f"is refused until these rows are out of {active.name}'s table{'' if is_number else escape(zero)}"
        )


def next_steps(plan: Plan, seats: Sequence[Seat], out: Path) -> Iterator[str]:
    """Yield the commands to type next; a line that is a command begins with two spaces."""
    certificates, job, run = out / "certificates", out / "job.toml", out / "run"
    yield "next:"
    yield from (f"  {command('check', job)}", f"  {command('run', job, '--out', run)}")
    if plan.also:
        yield f"  {command(plan.also, out / f'{plan.also}.toml', '--model', run, '--out', out / plan.also)}"
    yield from ("", f"between organisations, make certificates first{_where(seats)}:")
    yield f"  {command('certs', 'authority', certificates)}"
    for seat in seats:
        host = ("--host", seat.host.in_certificate) if seat.host else ()
        yield f"  {command('certs', 'issue', certificates, seat.name, '--role', seat.role, *host)}"
    yield f"  {command('certs', 'issue', certificates, COORDINATOR, '--role', COORDINATOR)}"
    for seat in seats:
        belongings = join_names(list(_belongings(seat, out)))
        yield f"{belongings} go to {seat.name}, in the same places; there, start the party:"
        yield f"  {command('party', out / f'{seat.name}.toml')}"
    submitted = [job, *([out / f"{plan.also}.toml"] if plan.also else []), certificates / COORDINATOR]
    yield f"{join_names([quote(str(path)) for path in submitted])} go to the operator who submits the job:"
    yield from (f"  {command('check', job)}", f"  {command('submit', job)}")
    if plan.also:
        yield f"  {command('submit', out / f'{plan.also}.toml', '--session', 'SESSION')}"


def _belongings(seat: Seat, out: Path) -> Iterator[str]:
    yield from (quote(f"{out / seat.name}.toml"), quote(str(out / "certificates" / seat.name)))
    files_of_rows = [table.place.file for table in (seat.table, seat.public) if table is not None]
    yield from (quote(str(file)) for file in dict.fromkeys(files_of_rows) if file is not None)


def _where(seats: Sequence[Seat]) -> str:
    if not any(seat.host and seat.host.is_here for seat in seats):
        return ""
    return "; the files have localhost for each party without `--host NAME=HOST:PORT`"


def _in_words(seat: Seat) -> str:
    table = seat.table
    if table is None:
        return "key node: keys, and no data"
    said = [f"{seat.role}: {table.place}, {quantity(len(table.ids), 'row')}"]
    if seat.role != "measurement":  # a measurement server's table has a label, and no features
        said[0] += f", {quantity(table.n_features, 'feature')}"
        said += [f"{', '.join(table.categories)} as levels"] if table.categories else []
        said += [f"{', '.join(table.dates)} as days"] if table.dates else []
        said += ["missing values as the mean, and a column that marks them"] if table.lacks_values else []
    said += [f"learns {table.label}" + (f" = {table.positive}" if table.positive else "")] if table.label else []
    said += [f"labels in {seat.label_range[0]:g} to {seat.label_range[1]:g}"] if seat.label_range else []
    said += [f"public rows: {seat.public.place}"] if seat.public else []
    if table.left_out and seat.role != "measurement":
        said += [f"leaves out {', '.join(name or 'a column without a name' for name in table.left_out)}"]
    return "; ".join(said)
