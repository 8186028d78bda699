"""The page of a dp-lr job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.report import label_dp, page
from blindfit.coordinator.report.dp_lr.cautions import cautions_of
from blindfit.coordinator.report.dp_lr.figures import Figures, figures_of
from blindfit.coordinator.report.dp_lr.plots import evaluation_plots, loss_plot, model_plot
from blindfit.coordinator.report.page import Card
from blindfit.coordinator.report.wording import count, counted, duration, figure, percent


def render(report: Mapping[str, Any]) -> str:
    facts = figures_of(report)
    model = report["models"].get(facts.active)
    return page.render(
        "dp_lr/page.html.j2",
        report,
        cautions=cautions_of(facts),
        cards=list(_cards(facts, report)),
        weights=model_plot(model, facts),
        all_weights=_all_weights(model),
        loss=loss_plot(facts),
        curves=evaluation_plots(facts),
        evaluation=list(_evaluation(facts)),
        no_evaluation=why_no_evaluation(facts),
        descent=list(_descent(facts)),
        releases=releases(facts),
        steps=page.bars(_steps(facts, report["seconds"])),
        parties=[
            page.party_row(report, name, rows=facts.rows.trained + facts.rows.held_out, has_model=True)
            for name in report["parties"]
        ],
        facts=facts,
        dropped_columns=_dropped(facts),
    )


def releases(facts: Figures) -> str:
    done = counted(facts.privacy.releases, "release")
    return f"{done}, this one included." if facts.privacy.charged_now else f"{done}; this job was charged before."


def _cards(facts: Figures, report: Mapping[str, Any]) -> Iterator[Card]:
    rows = facts.rows
    yield Card("Rows trained on", count(rows.trained), f"{count(rows.held_out)} held out")
    dropped = len(rows.dropped_columns)
    yield Card("Features", count(rows.features), f"{count(dropped)} constant dropped" if dropped else "none dropped")
    yield from label_dp.cards(facts.privacy)
    yield Card("Noise", figure(facts.fit.gradient_noise_std), "std of each coordinate of a mean gradient")
    yield Card("Start", facts.start, f"{counted(facts.settings.iterations, 'iteration')} from there")
    if facts.evaluation is not None:
        classes = facts.evaluation.classes
        yield Card("Accuracy", percent(classes.accuracy), f"on {counted(classes.rows, 'held-out row')}")
    yield Card("Time", duration(total_seconds(facts, report)), "from start to end")


def _evaluation(facts: Figures) -> Iterator[tuple[str, str]]:
    if facts.evaluation is not None:
        classes = facts.evaluation.classes
        yield "Accuracy", f"{classes.accuracy:.4f}"
        yield "AUC", f"{classes.auc:.4f}"
        yield "KS statistic", f"{classes.ks:.4f}"
        yield "Log loss", f"{classes.log_loss:.4f}"


def why_no_evaluation(facts: Figures) -> str:
    if not facts.rows.held_out:
        return "None: no rows were held out (split.test_fraction)."
    return (
        f"{facts.active} keeps it, in its own report: it was made from private rows without noise. (Where the held-out "
        "rows are of one class, there is none.)"
    )


def _descent(facts: Figures) -> Iterator[tuple[str, str]]:
    chosen = facts.settings
    yield "start", facts.start
    yield "features", facts.scale
    yield "iterations", count(chosen.iterations)
    yield "rows of each", "all" if chosen.batch_fraction == 1 else f"each with probability {chosen.batch_fraction:g}"
    rate = figure(facts.fit.learning_rate)
    yield "learning rate", f"{rate}, from the noise" if chosen.learning_rate == "auto" else rate
    yield "clip norm", figure(chosen.clip_norm)
    yield "noise of each gradient", f"{figure(facts.privacy.noise_multiplier)} times its sensitivity"
    if chosen.shrinkage:
        yield "shrinkage towards the start", figure(chosen.shrinkage)


def _all_weights(model: Mapping[str, Any] | None) -> list[tuple[str, str, float]]:
    if model is None:
        return []
    return sorted((("", name, weight) for name, weight in model["weights"].items()), key=lambda row: -abs(row[2]))


def _steps(facts: Figures, seconds: Mapping[str, float]) -> dict[str, float | None]:
    return {
        "start the process": seconds.get("launch"),
        "connect and agree": seconds.get("set_up"),
        "read rows, find the start": facts.timing.prepare_s,
        "fit and charge": facts.timing.fit_s,
    }


def total_seconds(facts: Figures, report: Mapping[str, Any]) -> float:
    return page.total_seconds(report, vars(facts.timing))


def _dropped(facts: Figures) -> list[tuple[str, str]]:
    dropped = facts.rows.dropped_columns
    return [("columns constant in the public rows, dropped", ", ".join(dropped))] if dropped else []
