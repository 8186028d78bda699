"""An evaluation as the coordinator sees it: its training and cost; figures if the active party ran here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from blindfit.coordinator.evaluate.page import render_evaluation
from blindfit.coordinator.measured.trust import GIVEN_UP
from blindfit.coordinator.report.label_privacy import budget_summary
from blindfit.coordinator.report.label_privacy import summary as privacy_summary
from blindfit.coordinator.report.network import describe_network, network_lines
from blindfit.coordinator.report.reading import check_range, read
from blindfit.coordinator.report.rehearsed import describe_rehearsal, rehearsal_lines
from blindfit.coordinator.report.timeline import show_faults
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.terminal.summary_table import places, summary_table
from blindfit.coordinator.terminal.wording import count, duration, quantity
from blindfit.parties.evaluate.report import RowFigures
from blindfit.parties.files.written import read_json, write_file, write_json
from blindfit.parties.measurement.trust import ASK_TWO_SERVERS, ENCRYPTED_ROWS, SHARED_ROWS, UNCHECKED_ROWS, Trust
from blindfit.parties.training.report import Between, SumPrivacy
from blindfit.version import __version__

NAMES = {
    "log_loss": "log loss",
    "normalised_entropy": "log loss / that of a constant",
    "accuracy": "accuracy",
    "positive_rate": "positive labels",
    "mean_prediction": "mean prediction",
    "auc": "AUC of score bins",
    "ks": "KS of score bins",
}


@dataclass(frozen=True)
class Estimate:
    """A figure that was computed from noisy sums, and the range that holds it with 95% chance over the noise."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class EvaluationFigures:
    """
    Attributes:
        figures: estimates by name, such as "auc"; None if the active party ran elsewhere and kept them.
    """

    session: str
    trained_in: str
    rows: RowFigures
    privacy: SumPrivacy
    figures: Mapping[str, Estimate] | None


@dataclass(frozen=True)
class Written:
    """The files report.json and report.html."""

    json_path: Path
    html_path: Path
    content: Mapping[str, Any] = field(repr=False)

    def summarise(self) -> Iterator[RenderableType]:
        yield from show_faults(self.content)
        yield summary_table(facts_of(self.content))
        yield summary_table(figure_lines(self.content))
        yield from (Text(sentence, style="dim") for sentence in self.content["statement"])
        yield from rehearsal_lines(self.content)
        yield from places([("report", self.html_path), ("", self.json_path)])


def write(session: JobSession, out: Path, parties_here: list[str]) -> Written:
    """Write `out/report.json` and `out/report.html`.

    Args:
        parties_here: parties whose own directories are `out/<name>/`; only summaries of the others are known.

    Raises:
        DataError: a party's summary or file cannot make a report; nothing is written.
    """
    job, active = session.job, session.job.with_role("active")[0]
    own = _own_word(out / active, session.id) if active in parties_here else {}
    summary = session.summaries[active]
    told = {name.removeprefix("privacy."): value for name, value in summary.items() if name.startswith("privacy.")}
    content = {
        "blindfit": __version__,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "session": session.id,
        "name": job.name,
        "protocol": job.protocol,
        "state": session.state,
        **describe_rehearsal(session, out, parties_here),
        "job": {name: value for name, value in job.to_dict().items() if name != "coordinator"},
        **describe_network(job),
        "active": active,
        "servers": job.with_role("measurement"),
        "key_node": next(iter(job.with_role("key-node")), None),
        "rows": {name: summary.get(f"rows.{name}", 0) for name in ("sent", "counted", "unknown")},
        "privacy": told,
        "figures": own.get("figures"),
        "seconds": dict(session.seconds),
        **session.notes,
    }
    content["statement"] = list(statement(content))
    written = Written(out / "report.json", out / "report.html", content)
    page = render_evaluation(content, facts_of(content), figure_lines(content))
    write_json(written.json_path, content)
    write_file(written.html_path, page.encode())
    return written


def _own_word(directory: Path, session: str) -> dict[str, Any]:
    """Return the active party's own report of this session; the directory may hold an earlier run's."""
    report = read_json(directory / "report.json")
    return report if isinstance(report, dict) and report.get("session") == session else {}


def figures_of(content: Mapping[str, Any]) -> EvaluationFigures:
    """Raise DataError: a figure is missing or wrong; names the party and the figure."""
    found = content["figures"]
    return EvaluationFigures(
        content["session"],
        content["job"]["evaluate"]["session"],
        _rows(content),
        _privacy(content),
        None if found is None else {name: read(Estimate, found, content["active"], name) for name in found},
    )


def _privacy(content: Mapping[str, Any]) -> SumPrivacy:
    return read(SumPrivacy, content, content["active"], "privacy")


def _rows(content: Mapping[str, Any]) -> RowFigures:
    party = content["active"]
    rows = read(RowFigures, content, party, "rows")
    check_range(party, "rows.sent", rows.sent, Between(0))
    check_range(party, "rows.counted", rows.counted, Between(0, rows.sent))
    check_range(party, "rows.unknown", rows.unknown, Between(0, rows.sent))
    return rows


def facts_of(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows, privacy = _rows(content), _privacy(content)
    of = content["job"]["evaluate"]["session"]
    not_counted = rows.sent - rows.counted
    left_out = f", {count(not_counted)} more rows of persons with too many rows" if not_counted else ""
    unknown = (
        f"; {count(rows.unknown)} counted as label 0, because no table of labels has their ids" if rows.unknown else ""
    )
    return [
        ("job", f"{content['name']} ({content['session']})"),
        ("model", f"of the training {of}"),
        ("rows", f"{count(rows.counted)} of {content['active']}{left_out}{unknown}"),
        privacy_summary(privacy),
        budget_summary(privacy),
        ("time", duration(content["seconds"]["job"])),
        *network_lines(content),
    ]


def figure_lines(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    if content["figures"] is None:
        return [("figures", f"kept by {content['active']}, in its own report")]
    return [(name, _format_figure(content["figures"][key])) for key, name in NAMES.items() if key in content["figures"]]


def _format_figure(figure: Mapping[str, float]) -> str:
    value, low, high = (figure[name] for name in ("value", "low", "high"))
    return f"{value:.4f}" if low == high else f"{value:.4f}  ({low:.4f} to {high:.4f})"


def statement(content: Mapping[str, Any]) -> Iterator[str]:
    active, servers, privacy = content["active"], " and ".join(content["servers"]), _privacy(content)
    trust = content["job"]["evaluate"]["trust"]
    follows = f", if {active} follows the protocol" if trust == ENCRYPTED_ROWS else ""
    yield (
        f"Released: {active} learnt one noisy sum, and computed these figures from it. Epsilon {privacy.epsilon:g} at "
        f"delta {privacy.delta:g} protects {privacy.unit}{follows}."
    )
    yield (
        "A range holds the figure of these rows with 95% chance over the noise. It does not cover how other rows would "
        "differ."
    )
    yield from _servers_learnt(content, trust)
    if (both := privacy.epsilon_of_both) is not None and trust in ASK_TWO_SERVERS:
        known = "the labels are known"
        if trust == SHARED_ROWS:
            known = f"or one of them with {content['key_node']}, labels and scores are known"
        yield (
            f"Each of {servers} holds shares of the labels and added the full noise. Epsilon holds even if {active} "
            f"and one of them collude. Against only {active} epsilon is {both:.3g}; if both collude, {known}."
        )
    yield "The coordinator learnt no figure, unless the active party ran on its machine."


def _servers_learnt(content: Mapping[str, Any], trust: Trust) -> Iterator[str]:
    """Yield what each server and the key node learnt; it depends only on `evaluate.trust`."""
    active, servers = content["active"], " and ".join(content["servers"])
    learnt = f"{servers} learnt the ids of {quantity(_rows(content).sent, 'row')}, "
    if trust == ENCRYPTED_ROWS:
        yield f"{learnt}and no score: the scores came encrypted under a key of {active}."
        yield f"{servers}'s operator has allowed unchecked-rows (policy.unsafe): {GIVEN_UP[UNCHECKED_ROWS]}."
    elif trust == SHARED_ROWS:
        yield (
            f"{learnt}and no score or label: each server has uniform numbers in their place, which reveal nothing by "
            "themselves."
        )
        yield f"{content['key_node']} dealt masks for the rows and their columns, and learnt only their numbers."
    else:
        yield f"{learnt}and their scores, rounded."
