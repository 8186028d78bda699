"""The page of a vertical training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.coordinator.report import label_privacy, page
from blindfit.coordinator.report.evaluation import curves
from blindfit.coordinator.report.page import UNKNOWN, Card, PartyRow
from blindfit.coordinator.report.plots import Plot
from blindfit.coordinator.report.vertical import plots
from blindfit.coordinator.report.vertical.cautions import cautions_of
from blindfit.coordinator.report.vertical.defences import defences_of
from blindfit.coordinator.report.vertical.figures import Confusion, Evaluation, Figures, figures_of
from blindfit.coordinator.report.wording import count, counted, duration, figure, percent

CARDS_IN_A_ROW = 4


@dataclass(frozen=True)
class Cell:
    """Of the confusion matrix."""

    count: str
    name: str
    is_right: bool


def render(report: Mapping[str, Any]) -> str:
    facts, models = figures_of(report), report["models"]
    return page.render(
        "vertical/page.html.j2",
        report,
        facts=facts,
        cautions=cautions_of(facts),
        cards=list(_cards(facts, report)),
        fitted=_fitted(facts),
        weights=plots.weight_plots(models),
        all_weights=page.all_weights(models),
        loss=plots.loss_plot(facts.losses, facts.shared_rows.validation),
        evaluation=list(_evaluation(facts.evaluation)),
        confusion=_cells(facts.evaluation.confusion) if facts.evaluation and facts.evaluation.confusion else None,
        curves=_curves(facts.evaluation),
        no_evaluation=_why_no_evaluation(facts),
        defences=defences_of(facts),
        rows=facts.rows,
        steps=page.steps(report, _laps(facts)),
        parties=[_party_row(facts, report, name) for name in report["parties"]],
        dropped_columns=[
            (f"constant columns of {name}, dropped", ", ".join(dropped)) for name, dropped in _dropped(facts)
        ],
    )


def _dropped(facts: Figures) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, rows in facts.rows.items():
        if rows.dropped_columns:
            yield name, rows.dropped_columns


# --- what was fitted -----------------------------------------------------------------------------------


def _fitted(facts: Figures) -> str:
    """Two sentences."""
    settings, roles, rows = facts.job.taylor, facts.roles, facts.shared_rows
    which = "slots, of which the matches count" if facts.job.align.method == "linkage" else "rows that all have"
    penalties = [f"{name} {figure(value)}" for name, value in (("l2", settings.l2), ("l1", settings.l1)) if value]
    return (
        f"{settings.model.capitalize()} regression on the Taylor loss, on {count(rows.common)} {which}: {roles.active} "
        f"has the labels, {count(len(roles.chain))} parties have features, {roles.key_node} has the key "
        f"({settings.key_bits} bits). Optimiser {settings.optimiser}, batches of {count(facts.batch_rows)} rows, "
        f"{', '.join(penalties) or 'no penalty'}."
    )


def _cards(facts: Figures, report: Mapping[str, Any]) -> Iterator[Card]:
    rows = facts.shared_rows
    yield Card("Rows trained on", count(rows.trained), f"of {count(rows.common)}; {count(rows.test)} for the test")
    if facts.features is not None:
        of_each = " + ".join(count(own.features) for own in facts.rows.values())
        yield Card("Features", count(facts.features), of_each)
    ended = f"hold-out loss {figure(facts.losses[-1])}" if facts.losses else "as many as were asked for"
    yield Card("Epochs", count(facts.fit.epochs), ended)
    yield Card("Time", duration(page.total_seconds(report, facts.first_timing)), "from start to end")
    promise = _promise(facts)
    yield from list(_quality(facts.evaluation))[: CARDS_IN_A_ROW - len(promise)]
    yield from promise


def _promise(facts: Figures) -> list[Card]:
    if facts.job.privacy is None:
        return [Card("Epsilon", "none", "no differential privacy")]
    if facts.privacy is None:  # in a passive party's own report
        return [Card("Epsilon", figure(facts.job.epsilon), f"at delta {figure(facts.job.privacy.delta)}")]
    return list(label_privacy.cards(facts.privacy))


def _quality(evaluation: Evaluation | None) -> Iterator[Card]:
    if evaluation is not None and evaluation.classes is not None:
        classes = evaluation.classes
        yield Card("AUC", f"{classes.auc:.4f}", f"KS {classes.ks:.3f}, on {counted(classes.rows, 'test row')}")
        yield Card("Log loss", f"{classes.log_loss:.4f}", "on the test rows")
        yield Card("Accuracy", percent(classes.accuracy), f"at probability {figure(classes.threshold)}")
    if evaluation is not None and evaluation.values is not None:
        values = evaluation.values
        yield Card("R squared", f"{values.r2:.4f}", f"on {counted(values.rows, 'test row')}")
        yield Card("Mean squared error", figure(values.mse), "on the test rows")
        yield Card("Mean absolute error", figure(values.mae), "on the test rows")


# --- the evaluation ------------------------------------------------------------------------------------


def _evaluation(evaluation: Evaluation | None) -> Iterator[tuple[str, str]]:
    if evaluation is not None and evaluation.classes is not None:
        classes = evaluation.classes
        yield "AUC", f"{classes.auc:.4f}"
        yield "KS statistic", f"{classes.ks:.4f}"
        yield "Log loss", f"{classes.log_loss:.4f}"
        yield f"Accuracy at {figure(classes.threshold)}", f"{classes.accuracy:.4f}"
    if evaluation is not None and evaluation.confusion is not None:
        yield from _rates(evaluation.confusion)
    if evaluation is not None and evaluation.values is not None:
        yield "R squared", f"{evaluation.values.r2:.4f}"
        yield "Mean squared error", figure(evaluation.values.mse)
        yield "Mean absolute error", figure(evaluation.values.mae)


def _rates(cells: Confusion) -> Iterator[tuple[str, str]]:
    named, positive = cells.true_positives + cells.false_positives, cells.true_positives + cells.false_negatives
    yield "Precision", f"{cells.true_positives / named:.4f}" if named else UNKNOWN
    yield "Recall", f"{cells.true_positives / positive:.4f}" if positive else UNKNOWN


def _cells(confusion: Confusion) -> list[tuple[str, list[Cell]]]:
    """Rows are what happened, columns what was predicted."""
    return [
        (
            "positive",
            [
                Cell(count(confusion.true_positives), "true positives", True),
                Cell(count(confusion.false_negatives), "false negatives", False),
            ],
        ),
        (
            "negative",
            [
                Cell(count(confusion.false_positives), "false positives", False),
                Cell(count(confusion.true_negatives), "true negatives", True),
            ],
        ),
    ]


def _curves(found: Evaluation | None) -> list[Plot]:
    return [] if found is None else curves(found.calibration, found.lift)


def _why_no_evaluation(facts: Figures) -> str:
    if facts.job.align.method == "linkage":
        return "None: after linkage nobody knows which rows match, so none can be evaluated by itself."
    if facts.shared_rows.test == 0:
        return "None: no rows were kept for a test (split.test_fraction)."
    return f"{facts.roles.active} keeps it, in its own report" + (
        ": under label DP figures made from labels are not published." if facts.job.privacy else "."
    )


# --- the rest --------------------------------------------------------------------------------------------


def _laps(facts: Figures) -> dict[str, float | None]:
    timing = facts.first_timing
    return {
        "read rows": timing.read_s,
        "make keys, align": timing.align_s,
        "scale, check what would leak": timing.prepare_s,
        "train": timing.train_s,
        "score the test rows": timing.evaluate_s,
    }


def _party_row(facts: Figures, report: Mapping[str, Any], name: str) -> PartyRow:
    own = facts.rows.get(name)
    return page.party_row(report, name, rows=own.common if own else None, has_model=name in facts.roles.chain)
