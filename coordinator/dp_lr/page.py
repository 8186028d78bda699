"""The page of a dp-lr job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.dp_lr.cautions import cautions_of
from blindfit.coordinator.dp_lr.figures import Figures, figures_of
from blindfit.coordinator.dp_lr.plots import loss_plot, model_plot
from blindfit.coordinator.report import fitted_rows, label_privacy, page, quality
from blindfit.coordinator.report.page import Card
from blindfit.coordinator.terminal.wording import count, duration, figure, percent, quantity


def render(report: Mapping[str, Any]) -> str:
    facts = figures_of(report)
    model = report["models"].get(facts.active)
    return page.render(
        "dp_lr/page.html.j2",
        report,
        cautions=cautions_of(facts),
        cards=list(_cards(facts, report)),
        weights=model_plot(model, facts),
        all_weights=page.all_weights({facts.active: model} if model else {}),
        loss=loss_plot(facts),
        curves=quality.plots(facts.evaluation),
        evaluation=list(quality.lines(facts.evaluation)),
        confusion=quality.matrix(facts.evaluation),
        remark=quality.remark(facts.evaluation),
        evaluated_on=_describe_evaluation(facts),
        no_evaluation=why_no_evaluation(facts),
        descent=list(_descent(facts)),
        releases=releases(facts),
        steps=page.steps(report, _laps(facts), start="start the process"),
        parties=[
            page.party_row(report, name, rows=facts.rows.trained + facts.rows.held_out, has_model=True)
            for name in report["parties"]
        ],
        facts=facts,
        dropped_columns=fitted_rows.list_dropped(facts.rows, "columns constant in the public rows"),
    )


def releases(facts: Figures) -> str:
    done = quantity(facts.privacy.releases, "release")
    return f"{done}, this one included." if facts.privacy.charged_now else f"{done}; this job was charged before."


def _cards(facts: Figures, report: Mapping[str, Any]) -> Iterator[Card]:
    yield from fitted_rows.cards(facts.rows)
    yield from label_privacy.cards(facts.privacy)
    yield Card("Noise", figure(facts.fit.gradient_noise_std), "std of each coordinate of a mean gradient")
    yield Card("Start", facts.start, f"{quantity(facts.settings.iterations, 'iteration')} from there")
    if facts.evaluation is not None and (classes := facts.evaluation.classes) is not None:
        on = f"on {quantity(classes.rows, 'held-out row')}"
        yield Card("Accuracy", percent(classes.accuracy), f"{on}; {quality.by_the_larger_class(classes)}")
    yield Card("Time", duration(page.total_seconds(report, facts.timing)), "from start to end")


def _describe_evaluation(facts: Figures) -> str:
    return (
        f"Exact figures on {facts.rows.held_out} held-out rows, outside the privacy promise: only {facts.active} has "
        "them. Publishing these figures is a separate release."
    )


def why_no_evaluation(facts: Figures) -> str:
    if not facts.rows.held_out:
        return "None: no rows were held out (split.test_fraction)."
    return (
        f"{facts.active} keeps the evaluation in its own report: private rows gave it, without noise. (If all held-out "
        "rows have one class, nothing is evaluated.)"
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


def _laps(facts: Figures) -> dict[str, float | None]:
    return {
        "read rows, find the start": facts.timing.prepare_s,
        "fit and charge": facts.timing.fit_s,
    }
