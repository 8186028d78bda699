"""Parts that the reports of vertical trainings share. Data parties hold columns of the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.coordinator.report.evaluation import FEW_TEST_ROWS, Evaluation
from blindfit.coordinator.report.kind import Report
from blindfit.coordinator.report.reading import fullest, read
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import count, percent, quantity
from blindfit.coordinator.vertical.roles import Learnt, Roles
from blindfit.coordinator.vertical.selection import Selected
from blindfit.parties.training.report import TimingFigures
from blindfit.parties.vertical.report import FitFigures, RowFigures

MOST_SHRUNK = 0.05
ON_ONE_MACHINE = (
    "In this run, however, all parties ran on this machine: anyone who can read its files sees all of them. This "
    "report shows every party's part of the model. Between organisations the coordinator never gets a part."
)


@dataclass(frozen=True, kw_only=True)
class JointFigures:
    """The parties of a training, and what all of them reported.

    Attributes:
        rows, timing: figures of each data party that reported.
        evaluation: figures of test rows; None without test rows, or if only another party knows them.
        selected: outcome of the job's grid; None without a grid. The job then has the chosen options.
    """

    roles: Roles
    rows: Mapping[str, RowFigures]
    timing: Mapping[str, TimingFigures]
    fit: FitFigures
    evaluation: Evaluation | None
    selected: Selected | None = None

    @property
    def owners(self) -> list[str]:
        """Parties that have the model, or a part of it."""
        return list(self.roles.chain)

    @property
    def shared_rows(self) -> RowFigures:
        """Split of the rows, from the first data party that reported. The split is the same for all parties."""
        return next(self.rows[name] for name in self.roles.chain if name in self.rows)

    @property
    def first_timing(self) -> TimingFigures:
        """Times of the first data party that reported. Parties wait for each other, so their times are similar."""
        return next(iter(self.timing.values()))

    @property
    def features(self) -> int | None:
        """Number of features of all parties; None if a party's number is not known."""
        return sum(rows.features for rows in self.rows.values()) if self.knows_all else None

    @property
    def knows_all(self) -> bool:
        return not set(self.roles.chain) - self.rows.keys()


# --- reading -----------------------------------------------------------------------------------------


def roles_of(report: Report) -> Roles:
    return Roles.of({name: party["role"] for name, party in report["parties"].items()})


def collect_summaries(report: Report, roles: Roles) -> dict[str, Mapping[str, Any]]:
    """Return the data parties' summaries. A party's own report, without times of other parties, has only its own."""
    said = {name: report["parties"][name]["summary"] for name in roles.chain}
    return said if report["seconds"] else {name: summary for name, summary in said.items() if summary}


def rows_of(report: Report, told: Mapping[str, Any]) -> dict[str, RowFigures]:
    return {name: read(RowFigures, fullest(report, name), name, "rows") for name in told}


def timing_of(told: Mapping[str, Mapping[str, Any]]) -> dict[str, TimingFigures]:
    return {name: read(TimingFigures, summary, name, "timing") for name, summary in told.items()}


def fit_of(told: Mapping[str, Mapping[str, Any]], roles: Roles) -> FitFigures:
    first = next(name for name in roles.chain if name in told)
    return read(FitFigures, told[first], first, "fit")


def members_in(party_report: Report) -> dict[str, str]:
    """Return name and role of the other parties that a party's own report names."""
    me = party_report["party"]
    return {str(name): str(role) for name, role in dict(party_report["members"]).items() if name != me}


# --- the terminal ---------------------------------------------------------------------------------------


def row_lines(facts: JointFigures, held_out: str) -> Iterator[tuple[str, str]]:
    """Yield the lines about rows and features.

    Args:
        held_out: name of the validation rows.
    """
    rows = facts.shared_rows
    apart = f"{count(rows.validation)} {held_out}, {count(rows.test)} test"
    yield "rows", f"{count(rows.common)} in common: {count(rows.trained)} trained on, {apart}"
    yield "features", ", ".join(f"{count(own.features)} of {party}" for party, own in facts.rows.items())


# --- cautions -------------------------------------------------------------------------------------------


def warn_of_unsafe(option: str, flags: Iterable[str], given_up: Mapping[str, str]) -> Iterator[str]:
    for flag in flags:
        yield f"Unsafe, but allowed by the job ({option}, {flag}): {given_up[flag]}."


def warn_of_few_test_rows(facts: JointFigures) -> str:
    rows = facts.shared_rows.test
    if facts.evaluation is None or rows >= FEW_TEST_ROWS:
        return ""
    return f"The model was tested on only {quantity(rows, 'row')}: its figures are rough. Raise split.test_fraction."


def warn_of_shrunk_rows(facts: JointFigures) -> Iterator[str]:
    for party, rows in facts.rows.items():
        if rows.shrunk and rows.shrunk > MOST_SHRUNK * rows.trained:
            yield (
                f"{quantity(rows.shrunk, 'training row')} of {party} ({percent(rows.shrunk / rows.trained)}) stood out "
                f"among its {count(rows.features)} features and were shortened, which weakens them in the fit. Larger "
                "batches or fewer rare columns would help."
            )


def describe_shortened(facts: JointFigures) -> str:
    """Describe how many rows of each party were shortened, as far as that is known."""
    known = [f"{count(rows.shrunk)} of {party}" for party, rows in facts.rows.items() if rows.shrunk is not None]
    return f"Here {', '.join(known)}." if known else "The numbers are in each party's own report."


# --- the statement --------------------------------------------------------------------------------------


def list_learnt_sections(
    everybody: Iterator[Learnt], *, all_here: bool, on_one_machine: str = ON_ONE_MACHINE
) -> Iterator[Section]:
    for learnt in everybody:
        sentences = learnt.sentences
        if all_here and learnt.topic == "coordinator":
            sentences = (*sentences, on_one_machine)
        yield Section(f"learnt-{learnt.topic}", f"What {learnt.who} learnt", sentences)


MODEL_AND_TIME = (
    "A model depends on the rows that it was fitted to: consider that before giving a part of it away.",
    "Conclusions from a true correlation: a good model predicts labels, even of people outside the data.",
    "The duration of a computation, and the number of rows.",
)


def not_covered(*more: str) -> Section:
    return Section("not-covered", "Other sources of information", (*MODEL_AND_TIME, *more))
