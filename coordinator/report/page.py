"""report.html: one file that needs no other file and no network. This is the common part of all systems' pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from blindfit.coordinator.report.reading import process_of
from blindfit.coordinator.terminal.titles import with_title
from blindfit.coordinator.terminal.wording import count, duration, size

UNKNOWN = "\N{EN DASH}"
STATES = {"DONE": "done", "FAILED": "failed", "CANCELLED": "cancelled"}
ROLES = {
    "measurement": "measurement server",
    "active": "active party",
    "passive": "passive party",
    "key-node": "key node",
}


@dataclass(frozen=True)
class Card:
    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Bar:
    label: str
    value: str
    share: float  # share of the longest bar, or of the whole


@dataclass(frozen=True)
class PartyRow:
    name: str
    role: str
    dataset: str
    rows: str
    peak_memory: str
    sent: str
    model: str  # place of the model


def render(template: str, report: Mapping[str, Any], **parts: Any) -> str:
    """Return the page.

    Args:
        template: path, from the coordinator's folder, of a template that extends report/base.html.j2.
        parts: values that the template and its base need.
    """
    return render_template(
        template,
        title=report["name"],
        report=report,
        state=STATES.get(report["state"], report["state"].lower()),
        job=sorted(flat("", report["job"])),
        **parts,
    )


def render_template(template: str, **parts: Any) -> str:
    style = Markup(_resource("report/style.css"))  # noqa: S704 - our own file
    return _environment().get_template(template).render(style=style, **parts)


@cache  # keeps the compiled templates
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_resource),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["with_title"] = with_title
    return environment


def _resource(name: str) -> str:
    return resources.files("blindfit.coordinator").joinpath(name).read_text("utf-8")


def party_row(report: Mapping[str, Any], name: str, *, rows: int | None, has_model: bool) -> PartyRow:
    party, process = report["parties"][name], process_of(report, name)
    return PartyRow(
        name=name,
        role=ROLES.get(party["role"], party["role"]),
        dataset=party["dataset"] or UNKNOWN,
        rows=UNKNOWN if rows is None else count(rows),
        peak_memory=UNKNOWN if process.peak_memory_mib is None else f"{process.peak_memory_mib:,.0f} MiB",
        sent=UNKNOWN if process.bytes_sent is None else size(process.bytes_sent),
        model=_model_place(report, name) if has_model else UNKNOWN,
    )


def _model_place(report: Mapping[str, Any], name: str) -> str:
    if name not in report["models"]:
        return f"kept by {name}"
    return f"{name}/model.json" if report["parties_here"] else "model.json"


def bars(steps: Mapping[str, float | None]) -> list[Bar]:
    """Return bars of the steps whose time is known."""
    known = {name: float(value) for name, value in steps.items() if value is not None}
    longest = max([*known.values(), 1e-9])
    return [Bar(name, duration(value), value / longest) for name, value in known.items()]


def steps(report: Mapping[str, Any], laps: Mapping[str, float | None], start: str = "start the processes") -> list[Bar]:
    """Return bars of the coordinator's times, then of a party's own laps."""
    seconds = report["seconds"]
    return bars({start: seconds.get("launch"), "connect and agree": seconds.get("set_up"), **laps})


def total_seconds(report: Mapping[str, Any], timing: object) -> float:
    """Return seconds from start to end; for a party's own report, which lacks them, the sum of its own laps.

    Args:
        timing: dataclass of seconds, None for an unknown lap.
    """
    laps: Mapping[str, float | None] = vars(timing)
    seconds = report["seconds"]
    if "job" in seconds:
        return float(seconds["job"] + seconds.get("launch", 0.0))
    return sum(value for value in laps.values() if value is not None)


def all_weights(models: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """Return owner, feature and weight of each weight, the largest first."""
    rows = [(party, name, weight) for party, model in models.items() for name, weight in model["weights"].items()]
    return sorted(rows, key=lambda row: -abs(row[2]))


def flat(prefix: str, table: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for name, value in table.items():
        if isinstance(value, Mapping):
            lines += flat(f"{prefix}{name}.", value)
        else:
            lines.append((prefix + name, str(value).lower() if isinstance(value, bool) else str(value)))
    return lines
