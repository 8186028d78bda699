"""Pairs of valid worlds that differ in one private unit, and are equal in what the protocol's table lets others read.

Each pair is a line of PAIRS: a system, a name, the party whose data differ, and a function from the system's case to
two cases. The nastiest pairs first look up which rows a job holds out (`Probe`), so that the unit decides the content
of a part.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import io
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from blindfit.algorithms.protocols.walr import two_servers
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.coordinator.running.snapshots import snapshots_of
from blindfit.parties.job.tables import SplitSettings
from blindfit.parties.store.database import Store
from blindfit.parties.systems import load_party
from tests.interference.systems import SYSTEMS, with_a_region
from tests.interference.views import differences
from tests.interference.world import Begun, Case, Data, Ran, Rows, begin, go_on, run, write_rows

COORDINATOR = "coordinator"
LAST, FIRST = "p063", "p000"


@dataclass(frozen=True, repr=False)
class Side:
    """One of two worlds; `then` holds the tables of further jobs, which all parties publish or do not."""

    case: Case
    then: tuple[Data, ...] = ()
    publish: bool = False
    cut: bool = False  # in the middle of the first job, which the later jobs resume


class Refused(Exception):
    """A job was refused, although its parts are needed to build a pair."""


@dataclass(repr=False)  # pytest prints what a failing test was given
class Probe:
    """Runs each case once; several further jobs can start from the same first job."""

    authority: Path
    _worlds: dict[Pair, tuple[Ran, Ran]] = field(default_factory=dict)
    _ran: dict[str, Ran] = field(default_factory=dict)
    _begun: dict[str, Begun] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="interference-"))
        self.close = weakref.finalize(self, shutil.rmtree, self._folder)

    def run(self, case: Case, *then: Data, publish: bool = False, cut: bool = False, time: int = 1) -> Ran:
        key = repr((vars(case), then, publish, cut, time))
        if key not in self._ran:
            if then:
                self._ran[key] = go_on(self._begin(case, cut=cut), self.authority, then, publish=publish)
            elif time == 1 and case.data in data_of_systems():  # other jobs may go on from it
                self._ran[key] = self._begin(case).ran
            else:
                self._ran[key] = run(case, self.authority)
        return self._ran[key]

    def _begin(self, case: Case, *, cut: bool = False) -> Begun:
        """Run the first job; its folder stays as long as this probe."""
        key = repr((vars(case), cut))
        if key not in self._begun:
            root = Path(tempfile.mkdtemp(prefix="world-", dir=self._folder))
            self._begun[key] = begin(case, self.authority, root, cut=cut)
        return self._begun[key]

    def side(self, side: Side) -> Ran:
        return self.run(side.case, *side.then, publish=side.publish, cut=side.cut)

    def worlds(self, pair: Pair) -> tuple[Ran, Ran]:
        """Return both worlds of the pair, as all observers see them."""
        if pair not in self._worlds:
            one, other = pair.build(pair.case, self)
            self._worlds[pair] = self.side(one), self.side(other)
        return self._worlds[pair]

    @property
    def errors(self) -> list[str]:
        """Errors of all jobs that have run."""
        return [error for ran in self._ran.values() for error in ran.errors if error]

    def again(self, case: Case) -> Ran:
        """Run the case a second time, from nothing."""
        return self.run(case, time=2)

    def held_out(self, case: Case) -> list[str]:
        """Return the held-out ids that the evaluating party has written.

        Raises:
            Refused: the job ends before that.
        """
        ran = self.run(case)
        if ran.errors != ("",):
            raise Refused(ran.errors)
        texts = [text for path, text in ran.kept.items() if Path(path).name in HELD_OUT_FILES]
        return sorted(line["id"] for text in texts for line in csv.DictReader(io.StringIO(text)))

    def trained(self, case: Case) -> list[str]:
        """Return the ids of all other rows. Those of a hold-out loss are among them: changing them can
        have an effect.
        """
        rows = next(iter(case.data.values()))
        return sorted(set(rows) - set(self.held_out(case)))


@cache
def set_up(system: str) -> Case:
    """Return the system's case, built once: nobody changes a case."""
    return SYSTEMS[system]()


@cache
def data_of_systems() -> list[Data]:
    """Return the unchanged data of each system's case."""
    return [set_up(system).data for system in SYSTEMS]


HELD_OUT_FILES = ("test_scores.csv", "test_rows.csv", "held_out_scores.csv", "held_out_rows.csv")
HELD_OUT_FILES += ("held_out_predictions.csv",)
Build = Callable[[Case, Probe], tuple[Side, Side]]


@dataclass(frozen=True, repr=False)
class Pair:
    """
    Attributes:
        private: party whose data differ; everybody else is an observer.
        declared: fields that may show this unit to others by the protocol's table, in addition to those in
            kinds.py.
        omitted: fields that are present or absent depending on what is declared.
        refused: True if the job ends badly in both worlds.
    """

    system: str
    name: str
    private: str
    build: Build
    declared: tuple[str, ...] = ()
    source: str = "csv"
    refused: bool = False
    omitted: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self.id

    @property
    def id(self) -> str:
        return f"{self.system}-{self.name}" + ("" if self.source == "csv" else f"-{self.source}")

    @property
    def case(self) -> Case:
        return replace(set_up(self.system), source=self.source)

    @property
    def observers(self) -> list[str]:
        return [*(name for name in self.case.roles if name != self.private), COORDINATOR]


def told_apart(pair: Pair, observer: str, probe: Probe) -> list[str]:
    """Return one line for each difference by which this observer can distinguish the pair's two worlds."""
    case, (one, other) = pair.case, probe.worlds(pair)
    declared, covered = (*case.declares, *pair.declared), pair.private in case.covered
    return differences(one.record, other.record, observer, declared=declared, omitted=pair.omitted, covered=covered)


# --- changes of one unit -------------------------------------------------------------------------------------


def changed(data: Data, party: str, rows: Mapping[str, Mapping[str, Any] | None]) -> Data:
    """Return the data with other values in some rows. None removes a row."""
    table: Rows = {row: dict(values) for row, values in data[party].items()}
    for row, values in rows.items():
        if values is None:
            del table[row]
        else:
            table[row] = {**table.get(row, {}), **values}
    return {**data, party: table}


def flip(data: Data, party: str, *rows: str) -> Data:
    return changed(data, party, {row: {"label": 1 - data[party][row]["label"]} for row in rows})


def labels(data: Data, party: str, ones: Iterable[str]) -> Data:
    """Set the label of these rows to 1, and of all others to 0."""
    chosen = set(ones)
    return changed(data, party, {row: {"label": int(row in chosen)} for row in data[party]})


def renamed(data: Data, party: str, row: str, name: str) -> Data:
    table = {name if i == row else i: values for i, values in data[party].items()}
    return {**data, party: table}


def pair(case: Case, one: Data, other: Data) -> tuple[Side, Side]:
    return Side(case.with_data(one)), Side(case.with_data(other))


# --- pairs of every system ------------------------------------------------------------------------------------


def a_label(party: str, row: str = "") -> Build:
    """Change the label of this row, or of the first row that is trained on."""
    return lambda case, probe: pair(case, case.data, flip(case.data, party, row or probe.trained(case)[0]))


def labels_of_a_person(party: str) -> Build:
    """Change all labels of a person with four rows, and their sum; two of the rows count."""
    rows = [f"p{i:03}" for i in range(4, 8)]

    def build(case: Case, _: Probe) -> tuple[Side, Side]:
        if isinstance(case.data[party][FIRST]["label"], int):
            return pair(case, case.data, flip(case.data, party, *rows))
        return pair(case, case.data, changed(case.data, party, {row: {"label": LEAST_PRICE} for row in rows}))

    return build


LEAST_PRICE, MOST_PRICE = 0.0, 10.0


def far_from(price: float) -> float:
    """Return the end of the range that is further away."""
    return LEAST_PRICE if price > (LEAST_PRICE + MOST_PRICE) / 2 else MOST_PRICE


def a_price(party: str, row: str = "", price: float | None = None) -> Build:
    """Change the price of this row, or of the first row that is trained on, to this price or to one far away."""

    def build(case: Case, probe: Probe) -> tuple[Side, Side]:
        chosen = row or probe.trained(case)[0]
        label = far_from(case.data[party][chosen]["label"]) if price is None else price
        return pair(case, case.data, changed(case.data, party, {chosen: {"label": label}}))

    return build


def a_share(party: str) -> Build:
    """Change a server's share of the first training row's label as another label would change it."""

    def build(case: Case, probe: Probe) -> tuple[Side, Side]:
        row = probe.trained(case)[0]
        share = int(case.data[party][row]["share"])
        return pair(case, case.data, changed(case.data, party, {row: {"share": (share + 1) % two_servers.P}}))

    return build


def rare_class(party: str) -> Build:
    """Return a class that has two rows, or one, among the training rows."""

    def build(case: Case, probe: Probe) -> tuple[Side, Side]:
        two = probe.trained(case)[5:7]
        return pair(case, labels(case.data, party, two), labels(case.data, party, two[:1]))

    return build


def class_alone_in_test(party: str) -> Build:
    """Make one positive label among the held-out rows, or none there; the training rows have one in both worlds."""

    def build(case: Case, probe: Probe) -> tuple[Side, Side]:
        test, train = probe.held_out(case)[0], probe.trained(case)[0]
        return pair(case, labels(case.data, party, [test, train]), labels(case.data, party, [train]))

    return build


def class_alone_in_training(party: str) -> Build:
    """Make one positive label among the training rows, or none there: both tables are valid and have both classes.

    The first of these worlds is the first of the pair above, which runs once for both."""

    def build(case: Case, probe: Probe) -> tuple[Side, Side]:
        test, train = probe.held_out(case)[0], probe.trained(case)[0]
        return pair(case, labels(case.data, party, [test, train]), labels(case.data, party, [test]))

    return build


def a_feature(party: str, value: float = 0.777) -> Build:
    return lambda case, probe: pair(case, case.data, changed(case.data, party, {probe.trained(case)[0]: {"x0": value}}))


def a_held_out_feature(party: str) -> Build:
    """Change a feature of a row that is not sent."""
    return lambda case, probe: pair(
        case, case.data, changed(case.data, party, {probe.held_out(case)[0]: {"x0": 0.777}})
    )


def an_outlier(party: str) -> Build:
    """Make one training row's feature 16 standard deviations."""
    return lambda case, probe: pair(case, case.data, changed(case.data, party, {probe.trained(case)[3]: {"x0": 16.0}}))


def column_constant_in_training(party: str) -> Build:
    """Give one training row another value than all others, or the same; the table's column is not constant."""

    def build(case: Case, probe: Probe) -> tuple[Side, Side]:
        train = probe.trained(case)
        constant = changed(case.data, party, {row: {"x0": 1.0} for row in train})
        return pair(case, changed(constant, party, {train[3]: {"x0": 1.5}}), constant)

    return build


def one_price_in_training(party: str) -> Build:
    """Give one training row another price than all others, or the same."""

    def build(case: Case, probe: Probe) -> tuple[Side, Side]:
        train = probe.trained(case)
        equal = changed(case.data, party, {row: {"label": 5.0 if row in train else 5.5} for row in case.data[party]})
        return pair(case, changed(equal, party, {train[3]: {"label": 6.0}}), equal)

    return build


def a_far_price(party: str) -> Build:
    """Move a held-out row's price: hundreds of the training labels' standard deviations from their mean, or near it."""

    def build(case: Case, probe: Probe) -> tuple[Side, Side]:
        return pair(case, case.data, changed(case.data, party, {probe.held_out(case)[0]: {"label": 1000.0}}))

    return build


def a_missing_value(party: str) -> Build:
    """Remove a value, which the column's mean replaces."""

    def build(case: Case, probe: Probe) -> tuple[Side, Side]:
        with_means = case.with_dataset(party, missing="mean")
        return pair(with_means, case.data, changed(case.data, party, {probe.trained(case)[0]: {"x0": ""}}))

    return build


def derived(party: str, build: Build, **numbers: Any) -> Build:
    """Build the pair where x0 is not a feature itself, and recipes compute columns from it.

    Args:
        numbers: options of the bins; by default the training rows decide them.
    """
    recipes = {"bin": {"by": "bins", "of": "x0", **(numbers or {"bins": 3})}}
    if not numbers:
        recipes["curve"] = {"by": "spline", "of": "x0", "knots": 3}

    def built(case: Case, probe: Probe) -> tuple[Side, Side]:
        return build(case.with_dataset(party, **{"except": ["x0"]}, derive=recipes), probe)

    return built


def a_name(party: str, name: str) -> Build:
    """Change the last row's name, so that a linkage finds the row or does not."""
    return lambda case, _: pair(case, case.data, changed(case.data, party, {LAST: {"name": name}}))


def dated(build: Build) -> Build:
    """Build the pair for a job that links by dates."""

    def built(case: Case, probe: Probe) -> tuple[Side, Side]:
        data = case.data
        for party in case.holders:
            data = changed(data, party, {row: {"name": str(day_of(row))} for row in data[party]})
        return build(case.with_data(data).with_job(align__fields=["name:date"]), probe)

    return built


def a_text(party: str, column: str, value: Any) -> Build:
    """Change a value of a party that scores rows by a category, next to a column that its model does not need."""

    def build(case: Case, _: Probe) -> tuple[Side, Side]:
        case = with_a_region(case, party)
        return pair(case, case.data, changed(case.data, party, {LAST: {column: value}}))

    return build


def values_of_columns(party: str, distinct: int, columns: int, models_per_row: int | str) -> Build:
    """Give one person a value that nobody else has; the columns hold `distinct` other values."""

    def build(case: Case, _: Probe) -> tuple[Side, Side]:
        case = case.with_dataset(party, models_per_row=models_per_row)
        few = {
            row: {**values, **{f"x{j}": float((place + j) % distinct) for j in range(columns)}}
            for place, (row, values) in enumerate(case.data[party].items())
        }
        data = {**case.data, party: few}
        return pair(case, changed(data, party, {LAST: {"x0": 77.0}}), data)

    return build


def day_of(row: str) -> dt.date:
    """Return another day for each row's number."""
    return dt.date(1940, 1, 1) + dt.timedelta(days=31 * int(row[1:]))


def an_unknown_id(party: str) -> Build:
    """Add a row that nobody else has: of one person, or of another."""

    def build(case: Case, _: Probe) -> tuple[Side, Side]:
        one, other = strangers(case)
        return pair(case, renamed(case.data, party, LAST, one), renamed(case.data, party, LAST, other))

    return build


def strangers(case: Case) -> list[str]:
    """Return two ids that nobody has, both of one part. A row's part follows from its id, and a part's
    size is public.
    """
    names = [f"stranger-{i}" for i in range(64)]
    fraction = case.job.get("split", {}).get("test_fraction", SplitSettings().test_fraction)
    held_out = PublicRandomness.from_seed(case.job.get("seed", 0)).choose("split", names, fraction)
    return [name for name, out in zip(names, held_out, strict=True) if not out][:2]


def another_stranger(party: str) -> Build:
    """Give one party a person whom the others do not have: one person, or another."""

    def build(case: Case, probe: Probe) -> tuple[Side, Side]:
        one, other = strangers(case)
        row = case.data[party][probe.trained(case)[0]]
        return pair(case, changed(case.data, party, {one: row}), changed(case.data, party, {other: row}))

    return build


def a_row(party: str) -> Build:
    """Remove a row."""
    return lambda case, probe: pair(case, case.data, changed(case.data, party, {probe.trained(case)[0]: None}))


def a_row_of_zero(party: str) -> Build:
    """Remove a row with label 0, which must look the same as an absent row."""

    def build(case: Case, probe: Probe) -> tuple[Side, Side]:
        row = next(row for row in probe.trained(case) if case.data[party][row]["label"] == 0)
        return pair(case, case.data, changed(case.data, party, {row: None}))

    return build


def min_rows(party: str, build: Build, least: Callable[[Case, Probe], int]) -> Build:
    """Build the pair where the policy requires exactly as many rows as there are."""

    def built(case: Case, probe: Probe) -> tuple[Side, Side]:
        return build(case.with_policy(party, min_rows=least(case, probe)), probe)

    return built


def n_trained(case: Case, probe: Probe) -> int:
    return len(probe.trained(case))


def the_only_row(party: str) -> Build:
    """Remove the only row that is trained on."""

    def build(case: Case, probe: Probe) -> tuple[Side, Side]:
        rows, (row, *_) = case.data[party], probe.trained(case)
        data = {party: {name: rows[name] for name in (*probe.held_out(case), row)}}
        return pair(case, data, changed(data, party, {row: None}))

    return build


def between_jobs(build: Build, *, publish: bool = False) -> Build:
    """Run the same job twice. In between, the source has changed in one world; it is published in both worlds or
    neither.
    """

    def built(case: Case, probe: Probe) -> tuple[Side, Side]:
        one, other = build(case, probe)
        return Side(one.case, (one.case.data,), publish), Side(one.case, (other.case.data,), publish)

    return built


def resumed(build: Build, *, publish: bool = False) -> Build:
    """Cut a job off, and resume it on a source that has changed since in one world."""

    def built(case: Case, probe: Probe) -> tuple[Side, Side]:
        # The same rows are held out for any number of epochs and any kind of source.
        one, other = build(replace(case, source="csv"), probe)
        begun = replace(one.case, source=case.source).with_job(**{f"{case.system}__epochs": 2})
        return Side(begun, (one.case.data,), publish, True), Side(begun, (other.case.data,), publish, True)

    return built


def asked(party: str, build: Build) -> Build:
    """Build the pair where the party's operator approves each job."""
    return lambda case, probe: build(case.with_policy(party, approve="ask"), probe)


def never_published(party: str, build: Build) -> Build:
    """Build the pair where the operator has already published the first world's rows as rows of another population."""

    def built(case: Case, probe: Probe) -> tuple[Side, Side]:
        one, other = build(case, probe)
        known = {**case.datasets[party], "url": "csv:others.csv", "id": "id", "population": "visitors"}
        more = case.more.get(party, {})
        budgets = {**more.get("populations", {}), "visitors": {"epsilon": 8.0, "delta": 1e-5}}
        more = {**more, "datasets": {"others": known}, "populations": budgets}

        def prepare(root: Path) -> None:
            case.prepare(root)
            write_rows(root, "others", one.case.data[party], "csv")
            settings = load_party(root / f"{party}.toml")
            with contextlib.closing(Store.of(settings, root)) as store:
                snapshots_of(settings, root, store).publish("others")

        def prepared(side: Side) -> Side:
            return replace(side, case=replace(side.case, more={**case.more, party: more}, prepare=prepare))

        return prepared(one), prepared(other)

    return built


def in_job(build: Build, **changes: Any) -> Build:
    return lambda case, probe: build(case.with_job(**changes), probe)


def in_batches(build: Build, party: str, rows: int) -> Build:
    """Build the pair where the party holds at most this many rows in memory at a time."""
    return lambda case, probe: build(case.with_dataset(party, batch_rows=rows), probe)


LARGEST = 1e100  # the largest number that a snapshot takes
EXTREME = {"dp_lr__feature_bounds": ["*:0:1e-100"], "dp_lr__clip_norm": 1e-9, "dp_lr__learning_rate": 1e20}
"""Options of a dp-lr job under which numbers overflow that nothing bounds."""
ONE_TRAINED = {"dp_lr__public_rows": 10**6, "dp_lr__loss_share": 0.1}

NORM = (
    "AggregateOpen.norm_bound",
    "Dimensions.norm_bound",
    "summary/privacy.norm_bound",
    "summary/privacy.sensitivity",
)
NORM += ("summary/privacy.noise_std_of_*", "summary/fit.l2", "NoisySum.*")
NORM += ("BlockColumns.norm_bound", "BlockGrid.*", "BlockOpen.norm_bound")
NORM += ("AggregateOpen.frac_bits", "summary/privacy.mechanism")  # the grid, by walr_grid only from norm bound and job
"""What the threat model lets server and coordinator see of an active party's rows: the norm bound, and
so noise and grid.
"""
IDS = ("*.ids", "*.content_sha256")
"""Fields of a request that the table lets a measurement server read."""

FIGURES = ("summary/evaluation.*",)
"""Figures whose confusion matrix the table declares: it shows whether there are two classes to compute figures from."""

COARSE = {"taylor__jitter": 0.5, "taylor__batch_rows": 1000}  # so that two layouts fit into the limit of labels
PAIRS = (
    # walr
    Pair("walr", "a-label", "meter", a_label("meter")),
    Pair("walr", "a-label", "meter", a_label("meter"), source="sqlite"),
    Pair("walr", "a-label", "meter", a_label("meter"), source="parquet"),
    Pair("walr", "a-label-asked", "meter", asked("meter", a_label("meter"))),
    Pair("walr", "last-label", "meter", a_label("meter", LAST)),
    Pair("walr", "rare-class", "meter", rare_class("meter")),
    Pair("walr", "between-jobs", "meter", between_jobs(a_label("meter"))),
    Pair("walr", "published-anew", "meter", between_jobs(a_label("meter"), publish=True)),
    Pair("walr-persons", "labels-of-a-person", "meter", labels_of_a_person("meter")),
    Pair("walr-unknown", "a-row-of-zero", "meter", a_row_of_zero("meter")),
    Pair("walr-unknown", "a-row", "meter", a_row("meter")),
    Pair("walr", "held-out-feature", "shop", a_held_out_feature("shop")),
    Pair("walr", "a-feature", "shop", a_feature("shop"), NORM),
    Pair("walr", "outlier", "shop", an_outlier("shop"), NORM),
    Pair("walr", "outlier-clipped", "shop", in_job(an_outlier("shop"), walr__norm_bound=4.0), NORM),
    Pair("walr", "constant-in-training", "shop", column_constant_in_training("shop"), NORM),
    Pair("walr", "unknown-id", "shop", an_unknown_id("shop"), IDS, refused=True),
    # walr-holders: the parties see the norm bound of each other's columns, and the results for their own weights
    Pair("walr-holders", "a-label", "meter", a_label("meter")),
    Pair("walr-holders", "between-jobs", "meter", between_jobs(a_label("meter"))),
    Pair("walr-holders", "published-anew", "meter", between_jobs(a_label("meter"), publish=True)),
    Pair("walr-holders", "a-feature", "shop", a_feature("shop"), NORM),
    Pair("walr-holders", "a-feature-of-another", "bank", a_feature("bank"), NORM),
    Pair("walr-holders", "held-out-feature", "bank", a_held_out_feature("bank")),
    Pair("walr-holders", "an-id-that-no-other-has", "bank", another_stranger("bank"), ("*.ids", *NORM)),
    # walr-split: a changed label is another share at one of the two servers; the other server's share stays as it was
    Pair("walr-split", "a-share", "east", a_share("east")),
    Pair("walr-split", "a-share-of-the-other", "west", a_share("west")),
    Pair("walr-split", "a-share-asked", "west", asked("west", a_share("west"))),
    Pair("walr-split", "published-anew", "west", between_jobs(a_share("west"), publish=True)),
    Pair("walr-split", "a-feature", "shop", a_feature("shop"), NORM),
    # walr-hidden: the server sees only that there are rows
    Pair("walr-hidden", "a-label", "meter", a_label("meter")),
    Pair("walr-hidden", "between-jobs", "meter", between_jobs(a_label("meter"))),
    Pair("walr-hidden", "published-anew", "meter", between_jobs(a_label("meter"), publish=True)),
    Pair("walr-hidden", "unknown-id", "shop", an_unknown_id("shop"), IDS, refused=True),
    Pair("walr-hidden", "a-feature", "shop", a_feature("shop"), NORM),
    Pair("walr-hidden", "held-out-feature", "shop", a_held_out_feature("shop")),
    # walr-shares: neither features nor labels
    Pair("walr-shares", "a-share", "east", a_share("east")),
    Pair("walr-shares", "a-share-of-the-other", "west", a_share("west")),
    Pair("walr-shares", "a-share-asked", "west", asked("west", a_share("west"))),
    Pair("walr-shares", "between-jobs", "east", between_jobs(a_share("east"))),
    Pair("walr-shares", "published-anew", "west", between_jobs(a_share("west"), publish=True)),
    Pair("walr-shares", "a-feature", "shop", a_feature("shop"), NORM),
    Pair("walr-shares", "held-out-feature", "shop", a_held_out_feature("shop")),
    # label-dp
    Pair("label-dp", "a-price", "meter", a_price("meter")),
    Pair("label-dp", "last-price", "meter", a_price("meter", LAST)),
    Pair("label-dp", "out-of-range", "meter", a_price("meter", price=1e6)),
    Pair("label-dp", "between-jobs", "meter", between_jobs(a_price("meter"))),
    Pair("label-dp", "published-anew", "meter", between_jobs(a_price("meter"), publish=True)),
    Pair("label-dp-persons", "prices-of-a-person", "meter", labels_of_a_person("meter")),
    Pair(
        "label-dp-persons",
        "too-few-count",
        "meter",
        min_rows("meter", labels_of_a_person("meter"), lambda case, _: len(case.data["meter"])),
        refused=True,
    ),
    Pair("label-dp", "a-feature", "shop", a_feature("shop")),
    Pair("label-dp", "constant-in-training", "shop", column_constant_in_training("shop")),
    Pair("label-dp", "unknown-id", "shop", an_unknown_id("shop"), IDS, refused=True),
    # dp-lr
    Pair("dp-lr", "a-label", "clinic", a_label("clinic")),
    Pair("dp-lr", "a-label", "clinic", a_label("clinic"), source="sqlite"),
    Pair("dp-lr", "a-label-asked", "clinic", asked("clinic", a_label("clinic"))),
    Pair("dp-lr", "class-alone-in-training", "clinic", class_alone_in_training("clinic")),
    Pair("dp-lr", "class-alone-in-test", "clinic", class_alone_in_test("clinic")),
    Pair("dp-lr", "a-feature", "clinic", a_feature("clinic")),
    Pair("dp-lr", "outlier", "clinic", an_outlier("clinic")),
    Pair("dp-lr", "outlier-overflows", "clinic", in_job(a_feature("clinic", LARGEST), **EXTREME)),
    Pair("dp-lr", "constant-in-training", "clinic", column_constant_in_training("clinic")),
    Pair("dp-lr", "between-jobs", "clinic", between_jobs(a_label("clinic"))),
    Pair("dp-lr", "published-anew", "clinic", between_jobs(a_label("clinic"), publish=True)),
    Pair("dp-lr-add-or-remove", "a-row", "clinic", a_row("clinic")),
    Pair("dp-lr-add-or-remove", "a-row-in-batches", "clinic", in_batches(a_row("clinic"), "clinic", 7)),
    Pair("dp-lr-add-or-remove", "a-row-at-the-least", "clinic", min_rows("clinic", a_row("clinic"), n_trained)),
    Pair("dp-lr-add-or-remove", "the-only-row", "clinic", in_job(the_only_row("clinic"), **ONE_TRAINED)),
    # taylor: labels
    Pair("taylor", "a-label", "bank", a_label("bank")),
    Pair("taylor", "class-alone-in-training", "bank", class_alone_in_training("bank")),
    Pair("taylor", "class-alone-in-test", "bank", class_alone_in_test("bank"), omitted=FIGURES),
    Pair("taylor", "between-jobs", "bank", between_jobs(a_label("bank"))),
    Pair("taylor", "published-anew", "bank", between_jobs(a_label("bank"), publish=True)),
    Pair("taylor", "resumed", "bank", resumed(a_label("bank"))),
    Pair("taylor", "resumed-published-anew", "bank", resumed(a_label("bank"), publish=True)),
    Pair("taylor", "resumed-feature", "shop-a", resumed(a_feature("shop-a"))),
    Pair("taylor-drawn", "a-label", "bank", a_label("bank", LAST), omitted=FIGURES),
    Pair("taylor-drawn", "between-jobs", "bank", between_jobs(a_label("bank", LAST)), omitted=FIGURES),
    Pair("taylor-drawn", "published-anew", "bank", between_jobs(a_label("bank", LAST), publish=True), omitted=FIGURES),
    Pair("taylor-weights", "rare-class", "bank", rare_class("bank")),
    Pair("taylor-linear", "a-price", "bank", a_price("bank")),
    Pair("taylor-linear", "far-price-in-test", "bank", a_far_price("bank")),
    Pair("taylor-linear", "one-price-in-training", "bank", one_price_in_training("bank")),
    Pair("taylor-linear", "between-jobs", "bank", between_jobs(a_price("bank"))),
    Pair("taylor-linear", "published-anew", "bank", in_job(between_jobs(a_price("bank"), publish=True), **COARSE)),
    Pair("taylor-label-dp", "a-label", "bank", a_label("bank")),
    Pair("taylor-label-dp", "a-label", "bank", a_label("bank"), source="sqlite"),
    Pair("taylor-label-dp", "a-label", "bank", a_label("bank"), source="parquet"),
    Pair("taylor-label-dp", "a-label-asked", "bank", asked("bank", a_label("bank"))),
    Pair("taylor-label-dp", "resumed", "bank", resumed(a_label("bank"))),
    Pair("taylor-label-dp", "resumed-published-anew", "bank", resumed(a_label("bank"), publish=True)),
    Pair("taylor-label-dp", "class-alone-in-training", "bank", class_alone_in_training("bank")),
    Pair("taylor-label-dp", "class-alone-in-test", "bank", class_alone_in_test("bank")),
    Pair("taylor-linkage", "a-label", "bank", a_label("bank")),
    # taylor: features
    Pair("taylor", "a-feature", "shop-a", a_feature("shop-a")),
    Pair("taylor", "outlier", "shop-a", an_outlier("shop-a")),
    Pair("taylor", "constant-in-training", "shop-a", column_constant_in_training("shop-a")),
    Pair("taylor", "unknown-id", "shop-a", an_unknown_id("shop-a")),
    Pair("taylor", "between-jobs-feature", "shop-a", between_jobs(a_feature("shop-a"))),
    Pair("taylor", "missing-value", "shop-a", a_missing_value("shop-a")),
    Pair("taylor", "active-feature", "bank", a_feature("bank")),
    Pair("taylor", "active-constant-in-training", "bank", column_constant_in_training("bank")),
    Pair("taylor-label-dp", "a-feature", "shop-a", a_feature("shop-a")),
    Pair("taylor-label-dp", "outlier", "shop-a", an_outlier("shop-a")),
    Pair("taylor-label-dp", "constant-in-training", "shop-a", column_constant_in_training("shop-a")),
    Pair("taylor-linkage", "a-feature", "shop-a", a_feature("shop-a")),
    Pair("taylor-selecting", "a-label", "bank", a_label("bank")),
    Pair("taylor-selecting", "a-feature", "shop-a", a_feature("shop-a")),
    # falcon
    Pair("falcon", "a-label", "bank", a_label("bank")),
    Pair("falcon", "class-alone-in-training", "bank", class_alone_in_training("bank")),
    Pair("falcon", "class-alone-in-test", "bank", class_alone_in_test("bank"), omitted=FIGURES),
    Pair("falcon-untested", "between-jobs", "bank", between_jobs(a_label("bank"))),
    Pair("falcon-untested", "resumed", "bank", resumed(a_label("bank"))),
    Pair("falcon-untested", "resumed-published-anew", "bank", resumed(a_label("bank"), publish=True)),
    Pair("falcon", "a-feature", "shop-a", a_feature("shop-a")),
    Pair("falcon-untested", "outlier", "shop-a", an_outlier("shop-a")),
    Pair("falcon-untested", "constant-in-training", "shop-a", column_constant_in_training("shop-a")),
    Pair("falcon-untested", "missing-value", "shop-a", a_missing_value("shop-a")),
    Pair("falcon-untested", "active-feature", "bank", a_feature("bank")),
    Pair("falcon-weights", "rare-class", "bank", rare_class("bank")),
    Pair("falcon-threshold", "a-label", "bank", a_label("bank")),
    Pair("falcon-threshold", "a-feature", "shop-a", a_feature("shop-a")),
    Pair("falcon-selecting", "a-label", "bank", a_label("bank")),
    Pair("falcon-selecting", "a-feature", "shop-a", a_feature("shop-a")),
    Pair("falcon-private", "a-label", "bank", a_label("bank")),
    Pair("falcon-private", "a-feature", "shop-a", a_feature("shop-a")),
    Pair("falcon-private", "between-jobs", "bank", between_jobs(a_label("bank"))),
    Pair("falcon-private", "resumed", "bank", resumed(a_label("bank"))),
    # predict
    Pair("predict", "a-feature", "shop-a", a_feature("shop-a")),
    Pair("predict", "outlier", "shop-a", a_feature("shop-a", value=1e6)),
    Pair("predict", "active-feature", "bank", a_feature("bank")),
    Pair("predict", "missing-value", "shop-a", a_missing_value("shop-a")),
    Pair("predict", "unknown-id", "shop-a", an_unknown_id("shop-a")),
    # evaluate
    Pair("evaluate", "a-label", "meter", a_label("meter")),
    Pair("evaluate", "rare-class", "meter", rare_class("meter")),
    Pair("evaluate", "between-jobs", "meter", between_jobs(a_label("meter"))),
    Pair("evaluate", "published-anew", "meter", between_jobs(a_label("meter"), publish=True)),
    Pair("evaluate", "a-feature", "shop", a_feature("shop")),
    # taylor: quasi-identifiers
    Pair("taylor-linkage", "missing-name", "bank", a_name("bank", "")),
    Pair("taylor-linkage", "no-date", "shop-a", dated(a_name("shop-a", "1990011"))),
    # predict: texts, and columns that no model needs
    Pair("predict", "a-level", "shop-a", a_text("shop-a", "region", "north")),
    Pair("predict", "a-level-that-training-did-not-meet", "shop-a", a_text("shop-a", "region", "East")),
    Pair("predict", "a-level-spelled-otherwise", "bank", a_text("bank", "region", "NORTH")),
    Pair("predict", "a-column-that-nobody-needs", "shop-a", a_text("shop-a", "note", "x")),
    Pair("predict", "a-value-that-nobody-needs", "bank", a_text("bank", "note", "")),
    # derived columns, whose numbers training rows decide; some bins are empty and some knots are equal
    Pair("walr", "derived-feature", "shop", derived("shop", a_feature("shop")), NORM),
    Pair("walr", "derived-constant-in-training", "shop", derived("shop", column_constant_in_training("shop")), NORM),
    Pair("label-dp", "derived-constant-in-training", "shop", derived("shop", column_constant_in_training("shop"))),
    Pair("dp-lr", "derived-feature", "clinic", derived("clinic", a_feature("clinic"), edges=[-0.5, 0.5])),
    Pair("taylor", "derived-feature", "shop-a", derived("shop-a", a_feature("shop-a"))),
    Pair("taylor", "derived-constant-in-training", "shop-a", derived("shop-a", column_constant_in_training("shop-a"))),
    Pair("falcon-untested", "derived-outlier", "shop-a", derived("shop-a", an_outlier("shop-a"))),
    # scores: 16 or 17 values of a column decide whether any score would reveal the rows; no job shows it
    *(
        Pair(
            system,
            f"{distinct}-values-{models}",
            "shop-a",
            values_of_columns("shop-a", distinct, columns, models),
            refused=models == 0,
        )
        for system in ("taylor", "predict")
        for distinct, columns, models in ((16, 4, 0), (16, 4, "unlimited"), (60, 5, 1))
    ),
)

FIRST_USES = (
    *(
        Pair(system, "never-published", party, never_published(party, build(party)), refused=True, source=source)
        for system, party, build in (
            ("walr", "meter", a_label),
            ("walr-persons", "meter", labels_of_a_person),
            ("walr-split", "east", a_share),
            ("label-dp", "meter", a_price),
            ("evaluate", "meter", a_label),
            ("dp-lr", "clinic", a_label),
            ("taylor-label-dp", "bank", a_label),
            ("falcon-private", "bank", a_label),
        )
        for source in ("csv", *(("sqlite", "parquet") if system in ("walr", "dp-lr", "taylor-label-dp") else ()))
    ),
    Pair("taylor", "published-at-the-start", "bank", never_published("bank", a_label("bank"))),
)
"""First uses of a dataset that was never published, while another population has its rows in one world. There is a pair
for each kind of party that a budget is for, and one for a party without a budget.
"""
