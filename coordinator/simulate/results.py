"""Results of a simulation: one row for each system and setting, next to fits without a partner or privacy."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from blindfit.coordinator.simulate.kept import Done, Failed, Repeat, Run
from blindfit.coordinator.terminal.titles import TITLES

TIMES = 10  # factor of the rows in the forecast
JOINED, ACTIVE_ONLY, CONSTANT = "joined, no privacy", "active party only", "constant"
FIGURES = ("auc", "log_loss", "r2")
MAIN = ("auc", "r2")  # one of them ranks; larger is better


@dataclass(frozen=True)
class Spread:
    """A figure over repeats.

    Attributes:
        std: standard deviation over repeats; None after one repeat.
    """

    mean: float
    std: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)

    def text(self, digits: int) -> str:
        return f"{self.mean:z.{digits}f}" + ("" if self.std is None else f" ± {self.std:.{digits}f}")


@dataclass(frozen=True)
class Row:
    """A system with one setting, over all repeats.

    Attributes:
        epsilon: budget of the setting; None if the system takes none.
        why: reason for a missing result: "not for this label: ...", or the error of a run. Empty for a result.
        failed: number of repeats that ended without a result.
        quality: figures by name.
        gain: quality above the better of the active party only and the constant, repeat by repeat.
        bits: bits of the disclosure accounts, by their subject: the mean of the runs.
        forecast_s: seconds of a run on ten times the rows; an upper bound if no code counts how its work grows.
        is_counted: True if code counts this growth.
        forecast_rule: sentence on the forecast.
    """

    system: str
    epsilon: float | None
    why: str = ""
    hint: str = ""
    fits: bool = True
    runs: int = 0
    failed: int = 0
    quality: Mapping[str, Spread] = field(default_factory=dict)
    gain: Spread | None = None
    delta: float | None = None
    bits: Mapping[str, float] = field(default_factory=dict)
    rows: int | None = None
    seconds: Spread | None = None
    bytes_sent: int | None = None
    messages_sent: int | None = None
    peak_memory_mib: Mapping[str, float] = field(default_factory=dict)
    forecast_s: float | None = None
    is_counted: bool = False
    forecast_rule: str = ""
    protects: str = ""
    laid_out: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.system if self.epsilon is None else f"{self.system}, epsilon {self.epsilon:g}"

    @property
    def title(self) -> str:
        return TITLES[self.system]

    @property
    def statement(self) -> str:
        """Sentence on what is protected from whom, and the place of the columns in this simulation."""
        return f"{self.protects} In this simulation {self.laid_out}." if self.laid_out else self.protects

    @property
    def figure(self) -> Spread | None:
        """Figure that ranks; None without a result."""
        return next((self.quality[name] for name in MAIN if name in self.quality), None)


@dataclass(frozen=True)
class Results:
    """All rows of a simulation.

    Attributes:
        baselines: figures by name of the fit, then by figure.
        repeats: number of cuts.
    """

    rows: tuple[Row, ...]
    baselines: Mapping[str, Mapping[str, Spread]]
    repeats: int

    @property
    def done(self) -> list[Row]:
        return [row for row in self.rows if row.quality]

    @property
    def main(self) -> str:
        """Name of the figure that ranks."""
        found = {name for row in self.rows for name in row.quality} | {n for b in self.baselines.values() for n in b}
        return next((name for name in MAIN if name in found), MAIN[0])


def gather(ended: Mapping[Run, Done | Failed], repeats: Mapping[int, Repeat], order: Sequence[str]) -> Results:
    """Return the results.

    Args:
        ended: every run that has ended.
        repeats: facts about each cut, by its number.
        order: systems, in the order of the table.
    """
    rows: list[Row] = []
    for system in order:
        if reason := next((repeat.not_for[system] for repeat in repeats.values() if system in repeat.not_for), ""):
            rows.append(Row(system, None, reason, fits=False))
        settings = sorted({run.epsilon for run in ended if run.system == system}, key=lambda e: e or 0.0)
        for epsilon in settings:
            of_it = {run: end for run, end in ended.items() if (run.system, run.epsilon) == (system, epsilon)}
            rows.append(_row(system, epsilon, of_it, repeats))
    cuts = list(repeats.values())
    fits = [fit for fit in (JOINED, ACTIVE_ONLY, CONSTANT) if all(fit in cut.quality for cut in cuts)]
    return Results(tuple(rows), {fit: _spreads(cut.quality[fit] for cut in cuts) for fit in fits}, len(cuts))


def _row(system: str, epsilon: float | None, ended: Mapping[Run, Done | Failed], repeats: Mapping[int, Repeat]) -> Row:
    failures = [end for end in ended.values() if isinstance(end, Failed)]
    done = {run: end for run, end in ended.items() if isinstance(end, Done)}
    first_failure = failures[0] if failures else Failed("")
    row = Row(system, epsilon, first_failure.reason, first_failure.hint, runs=len(done), failed=len(failures))
    if not done:
        return row
    ends = list(done.values())
    last = ends[-1]
    growths = [end.growth for end in ends if end.growth is not None]
    growth = statistics.fmean(growths) if growths else None
    set_up_s = statistics.fmean(end.set_up_s for end in ends)
    rest_s = statistics.fmean(end.seconds - end.set_up_s for end in ends)
    return Row(
        system,
        epsilon,
        first_failure.reason,
        first_failure.hint,
        runs=len(done),
        failed=len(failures),
        quality=_spreads(end.quality for end in ends),
        gain=_gain(done, repeats),
        delta=last.delta,
        bits=_means([end.bits for end in ends]),
        rows=last.rows,
        seconds=Spread.of([end.seconds for end in ends]),
        bytes_sent=round(statistics.fmean(end.bytes_sent for end in ends)),
        messages_sent=round(statistics.fmean(end.messages_sent for end in ends)),
        peak_memory_mib=_means([end.peak_memory_mib for end in ends]),
        forecast_s=set_up_s + rest_s * (TIMES if growth is None else growth),
        is_counted=growth is not None,
        forecast_rule=_rule(set_up_s, growth),
        protects=last.protects,
        laid_out=last.laid_out,
        warnings=tuple(dict.fromkeys(warning for end in ends for warning in end.warnings)),
    )


def _rule(set_up_s: float, growth: float | None) -> str:
    counted = f"at most {TIMES} times as long" if growth is None else f"{growth:.3g} times as long, as counted"
    return f"{set_up_s:.2g} s of set-up stay, the rest takes {counted}"


def _gain(done: Mapping[Run, Done], repeats: Mapping[int, Repeat]) -> Spread | None:
    """Return the quality above the better of the two fits that need no partner, repeat by repeat."""
    gains = [gain for run, end in done.items() if (gain := _gain_of(end, repeats[run.repeat])) is not None]
    return Spread.of(gains) if gains else None


def _gain_of(end: Done, repeat: Repeat) -> float | None:
    name = next((name for name in MAIN if name in end.quality), "")
    others = [repeat.quality[fit][name] for fit in (ACTIVE_ONLY, CONSTANT) if name in repeat.quality.get(fit, {})]
    return end.quality[name] - max(others) if others else None


def _spreads(qualities: Iterable[Mapping[str, float]]) -> dict[str, Spread]:
    found = list(qualities)
    return {name: Spread.of([each[name] for each in found]) for name in FIGURES if all(name in q for q in found)}


def _means(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: statistics.fmean(table[name] for table in tables if name in table) for name in tables[-1]}
