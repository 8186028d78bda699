"""One table becomes, for each repeat, a folder of party tables, a job for each system, and held-out rows."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blindfit.algorithms.columns import values
from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.coordinator.init import asked as drafts
from blindfit.coordinator.init.command import build_folder, draft, refuse_existing, texts_of, write_files
from blindfit.coordinator.init.files import KEY_NODE, Seat
from blindfit.coordinator.init.systems import BUDGET, PLANS, Plan
from blindfit.coordinator.simulate.asked import AT_ONE_PARTY, FEATURES, JOINED, LABELS, PRIVATE, Asked
from blindfit.coordinator.simulate.deal import Dealt, Floats, Rows, deal_rows, draw_gaps
from blindfit.coordinator.simulate.held_out import HeldOut, Report, fill_gaps, score_rows
from blindfit.coordinator.simulate.table import Whole, days_to_moments, deal_columns, find_copies, judge_table
from blindfit.coordinator.terminal.wording import join_names
from blindfit.parties.settings import PolicySettings
from blindfit.parties.systems import MOST_PASSIVE
from blindfit.parties.training.feature_bounds import ALL_OTHERS

NOT_CALIBRATED = (
    "its log loss is too high, because a real job calibrates probabilities on test rows and this one has none"
)
NO_VALUE = "(no value)"  # a separate level in a dp-lr job, which takes no missing value
LEARNT_AS_VALUES = (
    "labels 0 and 1 are learnt as values from 0 to 1, and the log loss takes all of them between 0.001 and 0.999 if "
    "one lies outside"
)
#: Folders of tables.
VERTICAL, MEASURED = "columns-by-party", "columns-by-party-without-label"
ONE_PARTY, FILLED = "columns-together", "columns-together-without-gaps"


@dataclass(frozen=True)
class Cut:
    """Tables and jobs of one repeat.

    Attributes:
        jobs: path of job.toml for each system that fits the label and the table.
        not_for: reason why a system does not fit, by system.
        private: systems that take an epsilon.
        columns: columns of each party; the first party is active.
        held_out: rows that no party has, the same for all systems.
        remarks: remarks about a system's parties, by system.
        left_out: reasons, by each column that no party has.
        rows: number of rows of each party.
        common: number of training rows that all parties have.
        twice: number of ids that each party leaves out, because they occur twice in its records.
        positive: text of label 1; empty if labels are 0 and 1, or numbers.
        copies: columns of parties that are the label in another form.
        known: number of held-out rows that equal a training row, with the label.
        clipped: share of values outside the given bounds or the label's range, for each column with a value
            outside.
    """

    folder: Path
    jobs: Mapping[str, Path]
    not_for: Mapping[str, str]
    private: frozenset[str]
    columns: Mapping[str, tuple[str, ...]]
    held_out: HeldOut
    id_name: str
    label: str
    is_linear: bool
    remarks: Mapping[str, str]
    left_out: Mapping[str, str]
    rows: Mapping[str, int]
    common: int
    twice: Mapping[str, int]
    positive: str
    copies: tuple[str, ...]
    known: int
    clipped: Mapping[str, float]

    @property
    def active(self) -> str:
        return next(iter(self.columns))

    @property
    def table_of_active(self) -> Path:
        return self.folder / VERTICAL / f"{self.active}.parquet"

    @property
    def joined_table(self) -> Path:
        return self.folder / ONE_PARTY / f"{JOINED}.parquet"


def cut(table: pa.Table, asked: Asked, folder: Path, repeat: int) -> Cut:
    """Write the tables and jobs of one repeat into a new folder, or no file.

    Raises:
        ConfigError, DataError: the table or an option is wrong; names what to do.
    """
    asked.check()
    refuse_existing(folder)
    whole = judge_table(table, asked)
    columns = deal_columns(whole, asked)
    dealt = deal_rows(whole.labels, list(columns), asked, repeat, label_is_number=whole.label_is_number)
    with build_folder(folder) as building:
        return _Cutter(whole, columns, dealt, asked, repeat, building, folder).cut()


def score(cut: Cut, system: str, result: Report, out: Path) -> Floats:
    """Return (n,) scores of the held-out rows, from the models of a run of this system's job.

    Args:
        out: folder of the run's reports.

    Raises:
        DataError: the run left no model, or only a part of it; or its columns are not those of the cut.
    """
    if system not in cut.jobs:
        raise DataError(f"{system} has no job in {cut.folder}", hint=f"take one of {', '.join(cut.jobs)}")
    held_out = cut.held_out if system == "dp-lr" else replace(cut.held_out, fill={})
    return score_rows(held_out, result, out)


# --- the tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cutter:
    """Maker of the tables and jobs of one repeat.

    Args:
        building: folder in which files are written.
        folder: final folder.
    """

    whole: Whole
    columns: Mapping[str, tuple[str, ...]]
    dealt: Dealt
    asked: Asked
    repeat: int
    building: Path
    folder: Path

    def cut(self) -> Cut:
        whole, dealt, asked = self.whole, self.dealt, self.asked
        bounds = self._bounds(self.dealt_names)
        fill = self._fill(self.dealt_names, bounds)
        gaps = draw_gaps(dealt.training, self.dealt_names, asked, self.repeat)
        self._write_tables(_empty(whole.features.select(self.dealt_names), gaps), fill)
        jobs: dict[str, Path] = {}
        not_for: dict[str, str] = {}
        for system in asked.systems:
            if why := self._why_not(system):
                not_for[system] = why
                continue
            try:
                self._write_job(system, [f"{name}:{low!r}:{high!r}" for name, (low, high) in bounds.items()])
            except (ConfigError, DataError) as error:
                said = error.message.replace(str(self.building), str(self.folder))
                not_for[system] = f"not for this table: {said}"
                shutil.rmtree(self.building / system, ignore_errors=True)
                continue
            jobs[system] = self.folder / system / "job.toml"
        unused = {
            name: "not given to any party" for name in whole.features.column_names if name not in self.dealt_names
        }
        rest = whole.features.select(self.dealt_names).take(dealt.held_out)
        return Cut(
            self.folder,
            jobs,
            not_for,
            PRIVATE & frozenset(asked.systems),
            self.columns,
            HeldOut(whole.ids.take(pa.array(dealt.held_out)), rest, whole.labels[dealt.held_out], fill),
            whole.id_name,
            whole.label_name,
            whole.label_is_number,
            {system: text for system in jobs if (text := self._remark(system))},
            {**whole.left_out, **unused},
            {party: len(rows) for party, rows in dealt.by_party.items()},
            len(dealt.common),
            dealt.twice,
            whole.positive,
            find_copies(whole.features.select(self.dealt_names), whole.labels),
            _count_known(whole.features.select(self.dealt_names), whole.labels, dealt),
            self._find_clipped(),
        )

    @property
    def dealt_names(self) -> list[str]:
        """Return the columns of all parties."""
        return [name for columns in self.columns.values() for name in columns]

    def _write_tables(self, emptied: pa.Table, fill: Mapping[str, Any]) -> None:
        dealt, active = self.dealt, next(iter(self.columns))
        for party, columns in self.columns.items():
            features, rows = emptied.select(columns), dealt.by_party[party]
            self._write(VERTICAL, party, features, rows, has_label=party == active)
            self._write(MEASURED, party, features, rows, has_label=False)
        none = emptied.select([])
        self._write(MEASURED, LABELS, none, dealt.training, has_label=True)
        self._write(ONE_PARTY, LABELS, none, dealt.training, has_label=True)
        self._write(ONE_PARTY, FEATURES, emptied, dealt.common, has_label=False)
        self._write(ONE_PARTY, JOINED, emptied, dealt.common, has_label=True)
        self._write(FILLED, JOINED, fill_gaps(emptied, fill), dealt.common, has_label=True)

    def _write(self, group: str, party: str, features: pa.Table, rows: Rows, *, has_label: bool) -> None:
        whole, places = self.whole, pa.array(rows)
        columns = {whole.id_name: whole.ids.take(places)}
        columns |= {name: features.column(name).take(places) for name in features.column_names}
        if has_label:
            labels = whole.labels[rows]
            columns[whole.label_name] = labels if whole.label_is_number else labels.astype(np.int8)
        (self.building / group).mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), self.building / group / f"{party}.parquet")

    # --- the jobs

    def _why_not(self, system: str) -> str:
        """Return why a system cannot fit this label or table; empty if no reason is known."""
        plan, label = PLANS[system], self.whole.label_name
        if self.whole.label_is_number and not (plan.model or plan.label_is_number):
            return f"not for this label: {system} fits labels 0 and 1, and {label} is a number"
        most = 1 + MOST_PASSIVE if system == "walr" else plan.tables[1]
        if system not in AT_ONE_PARTY and len(self.columns) > most:
            return f"not for this table: {system} takes at most {most} parties with columns, not {len(self.columns)}"
        return ""

    def _write_job(self, system: str, bounds: Sequence[str]) -> None:
        """Raise ConfigError, DataError: the system takes no such tables."""
        parties = list(self.columns)
        group, names = {
            "taylor": (VERTICAL, parties),
            "falcon": (VERTICAL, parties),
            "walr": (MEASURED, [*parties, LABELS]),
            "label-dp": (ONE_PARTY, [FEATURES, LABELS]),
            "dp-lr": (FILLED, [JOINED]),
        }[system]
        paths, plan = [self.building / group / f"{name}.parquet" for name in names], self._plan(system)
        low, high = self._label_range
        asked = drafts.Asked(
            system,
            tuple(map(str, paths)),
            self.whole.label_name,
            self.whole.id_name,
            label_range=f"{low!r}:{high!r}",
            bounds=tuple(bounds),
        )
        drafted = draft(asked, plan, self._levels())
        drafted = replace(drafted, seats=[self._seat(seat, system) for seat in drafted.seats])
        out = self.building / system
        out.mkdir()
        write_files(texts_of(system, plan, drafted, out, self.folder / system), out)

    def _plan(self, system: str) -> Plan:
        """Return the plan of `init` without a test split, because no party has the held-out rows."""
        plan = replace(PLANS[system], also="", split=("test_fraction = 0",))
        if system == "walr":
            plan = replace(plan, tables=(2, 2 + MOST_PASSIVE), further="passive")
        return (
            replace(plan, privacy=(f"epsilon = {self.asked.epsilons[0]:g}", *plan.privacy[1:]))
            if plan.privacy
            else plan
        )

    def _seat(self, seat: Seat, system: str) -> Seat:
        """Return a party whose budget and rules for gaps go with every run of the simulation."""
        most = max(self.asked.epsilons)
        found = replace(
            seat,
            host=None,
            budget=None if seat.budget is None else max(BUDGET, most),
            max_epsilon=most if system in PRIVATE and most > PolicySettings().max_epsilon else None,
            models_per_row=0 if seat.role == "passive" else None,
        )
        if seat.table is None:
            return found
        table = replace(seat.table, label_is_number=seat.table.label_is_number or self._learns_numbers(seat))
        columns = self.columns.get(seat.name, self.whole.features.column_names)
        if system != "dp-lr" and (self.asked.missing or any(name in columns for name in self.whole.gaps)):
            table = replace(table, lacks_values=True)
        return replace(found, table=table)

    def _learns_numbers(self, seat: Seat) -> bool:
        return self.whole.label_is_number and seat.table is not None and seat.table.label != ""

    # --- facts that are public in a real job, and come from the table here

    @property
    def _label_range(self) -> tuple[float, float]:
        labels = self.whole.labels
        return self.asked.label_range or (float(labels.min()), float(labels.max()))

    def _levels(self) -> dict[str, list[str]]:
        """Return the levels of each category, with the level for a missing value."""
        found = {}
        for name in self.whole.categories:
            levels = sorted(pc.unique(self.whole.features.column(name).drop_null()).to_pylist())
            found[name] = list(dict.fromkeys([*levels, *([NO_VALUE] if self._has_gaps(name) else [])]))
        return found

    def _has_gaps(self, name: str) -> bool:
        return self.asked.missing > 0 or name in self.whole.gaps

    def _bounds(self, names: Sequence[str]) -> dict[str, tuple[float, float]]:
        """Return the bounds of each number and date (in days): given bounds, or the smallest and largest value."""
        found = {}
        for name in names:
            if name in self.whole.categories:
                continue
            given = self.asked.bounds.get(name, self.asked.bounds.get(ALL_OTHERS))
            found[name] = given or _range_of(self.whole.features.column(name))
        return found

    def _find_clipped(self) -> dict[str, float]:
        """Return the share of values outside given bounds or ranges, by column; only shares above zero."""
        low_high = {name: self.asked.bounds.get(name, self.asked.bounds.get(ALL_OTHERS)) for name in self.dealt_names}
        values_in = {
            name: (_numbers_of(self.whole.features.column(name)), given)
            for name, given in low_high.items()
            if given and name not in self.whole.categories
        }
        if self.asked.label_range:
            values_in[self.whole.label_name] = (self.whole.labels, self.asked.label_range)
        shares = {
            name: float(np.mean((numbers < given[0]) | (numbers > given[1])))
            for name, (numbers, given) in values_in.items()
        }
        return {name: share for name, share in shares.items() if share > 0}

    def _fill(self, names: Sequence[str], bounds: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
        """Return the replacement of a missing value if a job takes none: the middle of the bounds, or a level."""
        found: dict[str, Any] = {}
        for name in filter(self._has_gaps, names):
            if name in self.whole.categories:
                found[name] = NO_VALUE
                continue
            middle = sum(bounds[name]) / 2
            found[name] = days_to_moments(np.array([middle]))[0] if name in self.whole.dates else middle
        return found

    def _remark(self, system: str) -> str:
        """Return remarks about the parties of a system."""
        if system in ("taylor", "falcon"):
            raw = "" if system == "falcon" or self.whole.label_is_number else f"; {NOT_CALIBRATED}"
            return f"{KEY_NODE} is the key node, a party without data{raw}"
        if system == "walr":
            return f"the label is at {LABELS}, a measurement server"
        if system == "label-dp":
            taken = "" if self.asked.label_range else "; the range of the labels is that of the table"
            values = "" if self.whole.label_is_number else f"; {LEARNT_AS_VALUES}"
            return f"all columns are at {FEATURES}, and the label is at {LABELS}, a measurement server{values}{taken}"
        own = [name for name in self._bounds(self.dealt_names) if not {name, ALL_OTHERS} & self.asked.bounds.keys()]
        named = [*(["bounds of features"] if own else []), *(["levels of texts"] if self.whole.categories else [])]
        said = f"; {join_names(named)} are those of the table, and a real job needs public ones" if named else ""
        has_gaps = any(map(self._has_gaps, self.dealt_names))
        filled = "; a missing value is the middle of the bounds, or a level" if has_gaps else ""
        return f"all columns and the label are at {JOINED}{said}{filled}"


def _count_known(features: pa.Table, labels: Floats, dealt: Dealt) -> int:
    """Return how many held-out rows equal a training row; a missing value equals another missing value."""
    columns = [*features.columns, pa.chunked_array([labels])]
    codes = np.stack(
        [pc.rank(column.combine_chunks(), tiebreaker="dense").to_numpy(zero_copy_only=False) for column in columns],
        axis=1,
    )
    _, rows = np.unique(codes, axis=0, return_inverse=True)
    return int(np.isin(rows.ravel()[dealt.held_out], rows.ravel()[dealt.training]).sum())


def _range_of(column: Any) -> tuple[float, float]:
    numbers = _numbers_of(column)
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    return (low, high) if low < high else (low, low + 1)


def _numbers_of(column: Any) -> Floats:
    """Return the values of a column of numbers, or the days of its dates."""
    return values.to_days(column) if pa.types.is_timestamp(column.type) else values.to_numbers(column)


def _empty(features: pa.Table, gaps: Mapping[str, Rows]) -> pa.Table:
    """Return the table without the values of these rows, by column."""
    for place, (name, rows) in enumerate(gaps.items()):
        if len(rows):
            is_gap = np.zeros(features.num_rows, np.bool_)
            is_gap[rows] = True
            column = features.column(name)
            features = features.set_column(
                place, name, pc.if_else(pa.array(is_gap), pa.scalar(None, column.type), column)
            )
    return features
