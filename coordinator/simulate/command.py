"""`blindfit simulate`: cut one table into parties, rehearse every system on it, and show their figures side by side."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console, RenderableType
from rich.text import Text

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.job.network import NetworkSettings
from blindfit.coordinator.job.out_dir import hold_folder, make_out
from blindfit.coordinator.running.nursery import Nursery
from blindfit.coordinator.running.watcher import Stop
from blindfit.coordinator.simulate import page, shown
from blindfit.coordinator.simulate.asked import Asked
from blindfit.coordinator.simulate.baselines import baselines
from blindfit.coordinator.simulate.cut import Cut, cut
from blindfit.coordinator.simulate.kept import Done, Failed, Kept, Repeat, Run
from blindfit.coordinator.simulate.progress import Progress
from blindfit.coordinator.simulate.recommendation import recommend
from blindfit.coordinator.simulate.results import TIMES, Results, Row, gather
from blindfit.coordinator.simulate.runs import Runner, Settings, Watch, choose_number, job_of, run_all
from blindfit.coordinator.simulate.simulation import DOCUMENT, PAGE, SHEET, Simulation
from blindfit.coordinator.simulate.table import read_table
from blindfit.coordinator.terminal.exit_codes import ExitCode
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.summary_table import places
from blindfit.coordinator.terminal.wording import count, join_names, quantity
from blindfit.parties.files.written import write_file, write_json
from blindfit.parties.work.compute import cores
from blindfit.version import __version__

OPTION_OF = {
    "row_id": "id",
    "parties": "parties or --party",
    "repeats": "repeat",
}  # other options have the name of their field
MAY_DIFFER = ("systems", "epsilons", "repeats")  # they add runs and change no run
MOST_AT_ONCE = 64
MANY_KNOWN = 0.05  # share of held-out rows; fewer change no figure that is shown
MOST_NAMES = 12  # of columns, in a sentence


@dataclass(frozen=True)
class Wish:
    """The request for a simulation.

    Attributes:
        asked: options of the cut and the runs.
        network: network of all runs, as `network` of a job takes it; empty for this machine's own.
        overrides: options, each as "SYSTEM.option=value".
        at_once: number of runs at once; None for as many as the cores allow.
        warn_only: True if limits of budgets and accounts only warn.
    """

    asked: Asked
    network: str = ""
    overrides: tuple[str, ...] = ()
    at_once: int | None = None
    warn_only: bool = False

    def check(self) -> None:
        """Raise ConfigError: an option is wrong for every table."""
        self.asked.check()
        if self.at_once is not None and not 1 <= self.at_once <= MOST_AT_ONCE:
            raise ConfigError(f"--jobs {self.at_once}: 1 to {MOST_AT_ONCE} runs go at once", hint="such as --jobs 2")
        self.by_system()

    def by_system(self) -> dict[str, list[str]]:
        """Return the options of each system's jobs.

        Raises:
            ConfigError: an option names no system of this simulation.
        """
        found: dict[str, list[str]] = {system: [] for system in self.asked.systems}
        if self.network:
            for own in found.values():
                own.append(f"network={json.dumps(self.network)}")
        for text in self.overrides:
            key, equals, value = text.partition("=")
            system, dot, option = key.strip().partition(".")
            if not (equals and dot and option) or system not in found:
                raise ConfigError(
                    f"--set {key}: the option does not begin with a system of this simulation and a dot",
                    hint=f"such as --set {self.asked.systems[0]}.OPTION=VALUE",
                )
            if option.partition(".")[0] == "network":
                raise ConfigError(
                    f"--set {key.strip()}: all systems are compared on one network",
                    hint='name it with --network, such as --network "40ms 100mbit"',
                )
            table = "" if "." in option else system.replace("-", "_") + "."
            found[system].append(f"{table}{option}={value}")
        return found

    def deciding(self, table: pa.Table) -> dict[str, Any]:
        """Return the options that decide the figures of a run, by their names in errors."""
        asked = {OPTION_OF.get(n, n.replace("_", "-")): v for n, v in asdict(self.asked).items() if n not in MAY_DIFFER}
        if not isinstance(self.asked.parties, int):  # their order counts: the first party is active
            asked[OPTION_OF["parties"]] = list(self.asked.parties.items())
        more = {"network": self.network, "set": self.overrides}  # the last value of an option counts
        options = {f"--{name}": value for name, value in {**asked, **more}.items()}
        content: dict[str, Any] = json.loads(json.dumps({"table": _digest(table), **options, "version": __version__}))
        return content


def simulate(source: Any, wish: Wish, out: Path, console: Console, command: Sequence[str] | None = None) -> Simulation:
    """Run the missing runs in `out`, and write the page.

    Args:
        source: path, database table or data frame.
        command: command line that starts a party's process.

    Raises:
        ConfigError, DataError: an option, file or column is wrong; finished runs stay in `out`.
        Stopped: by Ctrl-C or SIGTERM; finished runs stay in `out`.
    """
    wish.check()
    table = read_table(source, wish.asked)
    kept = Kept(out, wish.deciding(table))
    make_out(out)
    with hold_folder(out):
        kept.open()
        return _Study(table, wish, kept, console, command).complete()


@dataclass
class _Study:
    """A simulation as it goes on: the cuts that its runs share, and how many of them are left."""

    table: pa.Table
    wish: Wish
    kept: Kept
    console: Console
    command: Sequence[str] | None
    repeats: dict[int, Repeat] = field(default_factory=dict)
    _cuts: dict[int, Cut] = field(default_factory=dict)

    def complete(self) -> Simulation:
        try:
            self.repeats[0] = self._repeat(0)
            runs = self._list_runs(self.repeats[0])
            at_once = self.wish.at_once or choose_number(self.repeats[0].processes)
            settings = Settings(self.wish.by_system(), self.wish.warn_only, at_once)
            ended = self._run_missing(runs, settings)
            for repeat in range(self.wish.asked.repeats):
                self.repeats[repeat] = self._repeat(repeat)
        finally:
            self.kept.remove()
        results = gather(ended, self.repeats, self.wish.asked.systems)
        most_at_once = max((end.at_once for end in ended.values() if isinstance(end, Done)), default=1)
        return self._write(results, most_at_once)

    # --- cuts

    def _repeat(self, number: int) -> Repeat:
        found = self.kept.read_repeat(number)
        if found is None:
            made = self._cut(number)
            found = Repeat(
                {name: quality.figures for name, quality in baselines(made).items()},
                dict(made.not_for),
                sorted(made.private),
                max((len(load_job(job).parties) for job in made.jobs.values()), default=1),
                {name: list(columns) for name, columns in made.columns.items()},
                list(notes(made)),
            )
            self.kept.write_repeat(number, found)
        return found

    def _cut(self, number: int) -> Cut:
        if number not in self._cuts:
            folder = self.kept.folder(_cut_folder(number))
            self._cuts[number] = cut(self.table, self.wish.asked, folder, number)
        return self._cuts[number]

    def _list_runs(self, first: Repeat) -> list[Run]:
        """Return the runs, one repeat after the other, so that results appear early."""
        asked = self.wish.asked
        return [
            Run(system, epsilon, repeat)
            for repeat in range(asked.repeats)
            for system in asked.systems
            if system not in first.not_for
            for epsilon in (asked.epsilons if system in first.private else (None,))
        ]

    # --- runs

    def _run_missing(self, runs: Sequence[Run], settings: Settings) -> dict[Run, Done | Failed]:
        ended: dict[Run, Done | Failed] = {}
        for run in runs:
            found = self.kept.read(run)
            if isinstance(found, Done) and (settings.warn_only or not found.warnings):
                ended[run] = found
        todo = [run for run in runs if run not in ended]
        if not todo:
            return ended
        first = self._cut(todo[0].repeat)
        for run in todo:
            if run.repeat == todo[0].repeat and run.system in first.jobs:
                job_of(first, run, settings)  # a wrong option ends the command before the first run
        stop, watch = Stop(), Watch(len(runs), len(ended), left=list(todo))

        def remove_tables(run: Run) -> None:
            if all(other.repeat != run.repeat for other in watch.left):
                self.kept.remove(_cut_folder(run.repeat))
                self._cuts.pop(run.repeat, None)

        def cut_of(run: Run) -> Cut:
            self.repeats[run.repeat] = self._repeat(run.repeat)
            return self._cut(run.repeat)

        with (
            Nursery(self.command) as nursery,
            Progress(self.console, watch, settings.at_once) as progress,
        ):
            runner = Runner(self.kept, settings, stop, nursery)
            more = run_all(todo, cut_of, runner, settings, watch, progress.draw, stop, remove_tables)
        return {**ended, **more}

    # --- reports

    def _write(self, results: Results, most_at_once: int) -> Simulation:
        asked = _options_of(self.wish)
        recommendation, about = list(recommend(results)), list(self._about(most_at_once))
        out = self.kept.out
        document = {
            "blindfit": __version__,
            "folder": str(out),
            "asked": asked,
            "columns": self.repeats[0].columns,
            **shown.document(results),
            "about": about,
            "recommendation": recommendation,
        }
        write_json(out / DOCUMENT, document)
        write_file(out / SHEET, shown.to_csv(results))
        write_file(out / PAGE, page.render(results, recommendation, about, asked).encode())
        files = [("report", out / PAGE), ("", out / DOCUMENT), ("", out / SHEET)]
        lines = (*_summarise(results, about, recommendation), *places(files))
        has_failed = any(row.failed for row in results.rows)
        found = Found(document, lines, ExitCode.FAILED if has_failed else ExitCode.DONE)
        return Simulation(out, results, recommendation, found)

    def _about(self, most_at_once: int) -> Iterator[str]:
        """Yield sentences on how the figures came about.

        Args:
            most_at_once: largest number of runs at once in any command whose runs are shown.
        """
        asked, here = self.wish.asked, quantity(cores(), "core")
        yield (
            f"The table has {count(self.table.num_rows)} rows. {asked.test_fraction:.0%} of them are held out: no "
            "party has them, and all systems are measured on the same rows."
        )
        if asked.repeats > 1:
            yield (
                f"Figures are means of {asked.repeats} repeats with other held-out rows; \N{PLUS-MINUS SIGN} is one "
                "standard deviation."
            )
        yield from self.repeats[0].notes
        yield f"The network was {self._network()}."
        if most_at_once == 1:
            yield f"One run went at a time, so each had this machine with its {here} to itself."
        else:
            yield f"Up to {most_at_once} runs went at once on {here}, so their times include waiting for each other."
        yield (
            f"Time at {TIMES} times the rows is a forecast: set-up takes as long as here, and the rest grows with the "
            f"operations that taylor and falcon count. In other systems, the rest takes at most {TIMES} times as long."
        )
        yield (
            "Bits count what a run reveals without differential privacy: about all labels together, about the score of "
            "each row, and about all columns. An epsilon bounds what bits do not count."
        )
        yield "All of this was rehearsed: nothing was charged, and nothing may be released from it."

    def _network(self) -> str:
        if not self.wish.network:
            return "this machine's own"
        return f"simulated: {NetworkSettings.model_validate(self.wish.network).in_words()}"


def _summarise(results: Results, about: Sequence[str], recommendation: Sequence[str]) -> Iterator[RenderableType]:
    """Yield the table first and the recommendation last: these two stay in sight."""
    yield shown.terminal_table(results)
    for head, named in (
        ("Without a result", shown.failures(results)),
        ("Limits that a real run would not pass", shown.limits_passed(results)),
    ):
        if named:
            yield Text(head, style="bold")
            yield from (Text.assemble((f"{name}: ", "bold yellow"), why) for name, why in named)
            yield ""
    yield Text("Conditions of the figures", style="bold")
    yield from (Text(sentence, style="dim") for sentence in about)
    yield ""
    if results.done:
        yield Text("What is protected from whom", style="bold")
        for row in _first_of_each_system(results):
            yield Text.assemble((f"{row.name}: ", "bold"), f"{row.title}. {row.statement}")
        yield ""
    yield Text("Recommendation", style="bold")
    for sentence in recommendation:
        text = Text(sentence)
        text.highlight_words([row.name for row in results.done], "bold")
        yield text
    yield ""


def _first_of_each_system(results: Results) -> list[Row]:
    first = {row.system: row for row in reversed(results.done)}
    return list(reversed(first.values()))


def _cut_folder(number: int) -> str:
    return f"cut-{number + 1}"


def notes(made: Cut) -> Iterator[str]:
    """Yield what the cut did with rows and columns."""
    has = "; ".join(f"{name} {_names(columns)}" for name, columns in made.columns.items())
    yield f"Columns of each party: {has}. {made.active} is the active party, and in taylor and falcon it has the label."
    if made.positive:
        yield f"Label 1 is {made.positive!r} in the column {made.label}, and label 0 is any other text."
    for name in made.copies:
        yield (
            f"The column {name} is the label in another form: every quality here comes from a model that knows the "
            "label. Remove the column if nobody knows it before the label."
        )
    for name, share in made.clipped.items():
        option, system = ("--label-range", "label-dp") if name == made.label else ("--bounds", "dp-lr")
        yield f"{share:.1%} of the values of {name} lie outside {option}: {system} clips them, and its quality suffers."
    n_held_out = len(made.held_out.truth)
    if made.known >= MANY_KNOWN * n_held_out:
        yield (
            f"{count(made.known)} of {count(n_held_out)} held-out rows are equal to a training row in every column. If "
            "these are of the same person, every quality here is too high: keep one row of each person."
        )
    each = ", ".join(f"{name} {count(rows)}" for name, rows in made.rows.items())
    yield f"Rows to train on: {each}; {count(made.common)} of them are at all parties."
    if any(made.twice.values()):
        yield f"Ids that a party leaves out because its records have them twice: {_counts(made.twice)}."
    for why in dict.fromkeys(made.left_out.values()):
        names = [name for name, reason in made.left_out.items() if reason == why]
        left_out = f"column {names[0]} is" if len(names) == 1 else f"columns {_names(names)} are"
        yield f"The {left_out} left out: {why}."


def _names(columns: Sequence[str]) -> str:
    """Return the first names, and the number of other names."""
    more = len(columns) - MOST_NAMES
    return join_names(columns) if more <= 0 else f"{', '.join(columns[:MOST_NAMES])} and {count(more)} more"


def _counts(of_each: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count(number)}" for name, number in of_each.items())


def _options_of(wish: Wish) -> dict[str, Any]:
    """Return every option with its value, typed as JSON has it; null where an option is not given."""
    more = {"network": wish.network or None, "set": wish.overrides, "warn_only": wish.warn_only}
    content: dict[str, Any] = json.loads(json.dumps({**asdict(wish.asked), **more}))
    return content


def _digest(table: pa.Table) -> str:
    """Return a hash of a table's content, without the place of its file."""
    found = hashlib.sha256()
    sink = pa.PythonFile(_Hashed(found), mode="w")
    content = table.replace_schema_metadata(None).combine_chunks()
    with pa.ipc.new_stream(sink, content.schema) as writer:
        writer.write_table(content)
    return found.hexdigest()


class _Hashed:
    """A file that is only hashed."""

    closed = False

    def __init__(self, into: Any) -> None:
        self._into = into

    def write(self, data: Any) -> int:
        self._into.update(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: each write is hashed at once."""

    def close(self) -> None:
        self.closed = True
