"""Recommend a system for each kind of protection, by rules that the page prints next to the sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from blindfit.coordinator.simulate.results import ACTIVE_ONLY, CONSTANT, JOINED, Results, Row, Spread
from blindfit.coordinator.terminal.wording import duration, join_names, size

NAMES = {"auc": "AUC", "log_loss": "log loss", "r2": "R2"}
DIGITS = 3

#: Condition of a system whose simulation brings all columns to one party.
NEEDS = {
    "dp-lr": " It needs one party that has all columns and the label.",
    "label-dp": " It needs one party that has all columns.",
}

RULES = (
    "A system that cannot fit the label, or whose runs all failed, is left out.",
    "A setting is left out if its quality is no better than that of only the active party, or of the constant, within "
    "the spread. The mean of the difference over repeats must be above its standard deviation.",
    "Settings are grouped by what they protect. Different kinds of protection are never weighed against each other.",
    "In each group, the smallest epsilon that is left wins; among settings of the same epsilon, the fastest.",
    "If another setting of the group has a better quality by more than the spread, a sentence names it too.",
)


@dataclass(frozen=True)
class Protection:
    """A kind of protection.

    Attributes:
        wish: beginning of the sentence, as a condition.
        systems: systems with this protection.
    """

    wish: str
    systems: tuple[str, ...]


PROTECTIONS = (
    Protection(
        "If nobody may learn from the model whether a row is in the table (whole rows have an epsilon)",
        ("dp-lr",),
    ),
    Protection(
        "If only the owner of the labels may know a person's label (labels have an epsilon)",
        ("walr", "label-dp"),
    ),
    Protection(
        "If labels and columns must stay with their owners during the fit, and the model itself needs no epsilon",
        ("taylor", "falcon"),
    ),
)


def recommend(results: Results) -> Iterator[str]:
    """Yield sentences, each with the figures that it follows from."""
    if not results.done:
        yield "No run has a result yet, so nothing is recommended."
        return
    yield from _warn_of_little_gain(results)
    for protection in PROTECTIONS:
        group = [row for row in results.done if row.system in protection.systems]
        if group:
            yield from _of_group(protection, group, results)
    if results.repeats == 1:
        yield (
            "There was one repeat, so the spread is not known and small differences may be chance: "
            "--repeat 5 measures it."
        )


def _warn_of_little_gain(results: Results) -> Iterator[str]:
    """Yield a warning if the columns of the other parties add little, because no system can gain much then."""
    fits = results.baselines
    name = results.main
    if not all(fit in fits and name in fits[fit] for fit in (JOINED, ACTIVE_ONLY)):
        return
    joined, active_only = fits[JOINED][name], fits[ACTIVE_ONLY][name]
    gain = joined.mean - active_only.mean
    if gain <= max(joined.std or 0.0, active_only.std or 0.0):
        yield (
            "The columns of the other parties add little: without any privacy the joined fit has "
            f"{_text(name, joined)}, and only the active party's columns give {_text(name, active_only)}."
        )


def _of_group(protection: Protection, group: Sequence[Row], results: Results) -> Iterator[str]:
    left = [row for row in group if row.gain is not None and row.gain.mean > (row.gain.std or 0.0)]
    name = results.main
    if not left:
        best = max(group, key=_mean)
        yield (
            f"{protection.wish}: no setting here is better than {_bar(results)}; the best of them is {best.name}, with "
            f"{_text(name, best.quality[name])}. More rows{' or a larger epsilon' if best.epsilon else ''} may help."
        )
        return
    winner = min(left, key=lambda row: (row.epsilon or 0.0, row.seconds.mean if row.seconds else 0.0))
    figures, why = _figures(winner, name), _why(winner, left)
    yield f"{protection.wish}: {winner.name}. It has {figures}, against {_bar(results)}{why}.{_cautions(winner)}"
    better = [row for row in left if _mean(row) - _mean(winner) > max(_std(row), _std(winner))]
    if better:
        best = max(better, key=_mean)
        yield f"{best.name} of the same kind has a better quality: {_figures(best, name)}.{_cautions(best)}"
    dropped = [row.name for row in group if row not in left]
    if dropped:
        verb = "is" if len(dropped) == 1 else "are"
        yield f"{join_names(dropped)} {verb} left out: no better than {_bar(results)} within the spread."


def _cautions(row: Row) -> str:
    """Return cautions about a recommendation: who has the columns, and repeats without a result."""
    text = NEEDS.get(row.system, "")
    if row.failed:
        text += f" {row.failed} of {row.runs + row.failed} repeats ended without a result: its figures leave them out."
    return text


def _why(winner: Row, left: Sequence[Row]) -> str:
    """Return the rule by which the winner won; empty if it is the only remaining setting."""
    equals = [row for row in left if row.epsilon == winner.epsilon and row is not winner]
    if equals:
        slower = min(equals, key=lambda row: row.seconds.mean if row.seconds else 0.0)
        return f"; the next, {slower.name}, takes {_seconds(slower)}"
    return "; it is the smallest epsilon here that is better" if winner.epsilon is not None and len(left) > 1 else ""


def _figures(row: Row, name: str) -> str:
    sent = f"{size(row.bytes_sent)} sent" if row.bytes_sent else "nothing sent"
    return f"{_text(name, row.quality[name])} in {_seconds(row)}, {sent}"


def _seconds(row: Row) -> str:
    return duration(row.seconds.mean) if row.seconds else "an unknown time"


def _bar(results: Results) -> str:
    """Return what a setting must beat: the active party only or the constant, with the figure."""
    name = results.main
    fits: Mapping[str, Mapping[str, Spread]] = results.baselines
    known = [fit for fit in (ACTIVE_ONLY, CONSTANT) if name in fits.get(fit, {})]
    if not known:
        return "the active party only"
    best = max(known, key=lambda fit: fits[fit][name].mean)
    return f"the {best} ({_text(name, fits[best][name])})"


def _text(name: str, spread: Spread) -> str:
    return f"{NAMES[name]} {spread.text(DIGITS)}"


def _mean(row: Row) -> float:
    return row.figure.mean if row.figure else 0.0


def _std(row: Row) -> float:
    return (row.figure.std if row.figure else None) or 0.0
