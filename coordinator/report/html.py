"""report.html: one file that needs nothing else, offline or online."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from coordinator.report.cautions import cautions_of
from coordinator.report.figures import Figures, figures_of, process_of
from coordinator.report.plots import Plot, objective_plot, weights_plot
from coordinator.report.wording import count, duration, figure, percent, size

UNKNOWN = "\N{EN DASH}"
STATES = {"DONE": "done", "FAILED": "failed", "CANCELLED": "cancelled"}


@dataclass(frozen=True)
class Card:
    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Bar:
    label: str
    value: str
    share: float  # of the longest, or of the whole


@dataclass(frozen=True)
class PartyRow:
    name: str
    role: str
    dataset: str
    rows: str
    peak_memory: str
    sent: str
    model: str  # where it is


def render(report: Mapping[str, Any], *, title: str = "") -> str:
    """Args:
    report: as `content.content_of` makes it.
    """
    facts = figures_of(report)
    model = report["models"].get(facts.active)
    return (
        _environment()
        .get_template("template.html.j2")
        .render(
            title=title or report["name"],
            report=report,
            state=STATES.get(report["state"], report["state"].lower()),
            style=Markup(_resource("style.css")),  # noqa: S704 - our own file
            cautions=cautions_of(facts),
            cards=list(_cards(facts, report)),
            weights=weights_plot(model["weights"], model["intercept"]) if model else None,
            model_weights=sorted(model["weights"].items(), key=lambda item: -abs(item[1])) if model else [],
            convergence=_convergence(report["party_reports"].get(facts.active, {})),
            budget=_budget(facts),
            steps=_steps(facts, report["seconds"]),
            parties=[_party_row(report, name) for name in report["parties"]],
            facts=facts,
            job=sorted(flat("", report["job"])),
        )
    )


def _environment() -> Environment:
    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_resource),
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


# --- parts of the page -----------------------------------------------------------------------------------


def _cards(facts: Figures, report: Mapping[str, Any]) -> Iterator[Card]:
    rows, privacy, fit = facts.rows, facts.privacy, facts.fit
    yield Card("Rows trained on", count(rows.trained), f"{count(rows.held_out)} held out")
    dropped = len(rows.dropped_columns)
    yield Card("Features", count(rows.features), f"{count(dropped)} constant dropped" if dropped else "none dropped")
    yield Card("Epsilon", figure(privacy.epsilon), f"at delta {figure(privacy.delta)}")
    yield Card("Budget left", figure(privacy.left_epsilon), f"of {figure(privacy.budget_epsilon)}")
    yield Card("Noise", figure(privacy.noise_std_of_mean), "standard deviation of a mean")
    ended = "converged" if fit.converged else "did not converge"
    yield Card("Iterations", count(fit.iterations), f"{fit.solver}, {ended}")
    yield Card("Time", duration(total_seconds(report)), "from start to end")
    mean = report["party_reports"].get(facts.active, {}).get("fit", {}).get("mean_prediction")
    if isinstance(mean, float):
        yield Card("Mean prediction", percent(mean), "on the held-out rows")
    else:
        yield Card("Regulariser", figure(fit.l2), "l2")


def _convergence(own_report: Mapping[str, Any]) -> Plot | None:
    history = own_report.get("fit", {}).get("objective_history", [])
    return objective_plot([float(value) for value in history])


def _budget(facts: Figures) -> float:
    """The share that is spent."""
    return min(1.0, facts.privacy.spent_epsilon / facts.privacy.budget_epsilon)


def _steps(facts: Figures, seconds: Mapping[str, float]) -> list[Bar]:
    timing = facts.timing
    known = {
        "start the processes": seconds.get("launch"),
        "connect and agree": seconds.get("set_up"),
        "read and prepare rows": timing.prepare_s,
        "send rows, get the noisy sum": timing.aggregate_s,
        "fit": timing.fit_s,
    }
    steps = {name: float(value) for name, value in known.items() if value is not None}
    longest = max([*steps.values(), 1e-9])
    return [Bar(name, duration(value), value / longest) for name, value in steps.items()]


def total_seconds(report: Mapping[str, Any]) -> float:
    seconds = report["seconds"]
    if "job" in seconds:
        return float(seconds["job"] + seconds.get("launch", 0.0))
    timing = figures_of(report).timing
    return (timing.prepare_s or 0.0) + (timing.aggregate_s or 0.0) + (timing.fit_s or 0.0)


def _party_row(report: Mapping[str, Any], name: str) -> PartyRow:
    party, process = report["parties"][name], process_of(report, name)
    n_rows = figures_of(report).rows.sent if party["role"] == "active" else process.dataset_rows
    return PartyRow(
        name=name,
        role={"measurement": "measurement server", "active": "active party"}.get(party["role"], party["role"]),
        dataset=party["dataset"] or UNKNOWN,
        rows=UNKNOWN if n_rows is None else count(n_rows),
        peak_memory=UNKNOWN if process.peak_memory_mib is None else f"{process.peak_memory_mib:,.0f} MiB",
        sent=UNKNOWN if process.bytes_sent is None else size(process.bytes_sent),
        model=_model_place(report, name) if party["role"] == "active" else UNKNOWN,
    )


def _model_place(report: Mapping[str, Any], name: str) -> str:
    if name not in report["models"]:
        return f"kept by {name}"
    return f"{name}/model.json" if report["parties_here"] else "model.json"


def flat(prefix: str, table: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for name, value in table.items():
        if isinstance(value, Mapping):
            lines += flat(f"{prefix}{name}.", value)
        else:
            lines.append((prefix + name, str(value).lower() if isinstance(value, bool) else str(value)))
    return lines
