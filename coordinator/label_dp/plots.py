"""The plots of a label-dp report: the effect of the mechanism on a label, and the fit to noisy labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blindfit.coordinator.report.plots import INK, LINE, MUTED, NEGATIVE, POSITIVE, Plot, figure_of, svg_of
from blindfit.coordinator.terminal.wording import figure

LAW_COLOURS = (POSITIVE, INK, NEGATIVE)


def plot_fit(held_out: Mapping[str, Sequence[float]], *, unbiased: str) -> Plot | None:
    """Return a plot of fitted against noisy labels; None if no row was held out.

    Args:
        unbiased: reason why the labels have no bias; empty if they have a bias.
    """
    fitted, noisy = held_out["fitted"], held_out["noisy"]
    if not fitted:
        return None
    drawn, axes = figure_of(height_inches=3.0)
    axes.scatter(fitted, noisy, s=7, color=POSITIVE, alpha=0.45, linewidths=0)
    low, high = min(fitted), max(fitted)
    axes.plot([low, high], [low, high], color=INK, linewidth=1.0)
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel("fitted", color=MUTED)
    axes.set_ylabel("released label", color=MUTED)
    note = f"{len(fitted)} held-out rows. On the line both are equal. The scatter around it is mostly noise."
    if unbiased:
        note += f" {unbiased}: where the model is right, labels average to the line."
    return Plot("Noisy labels against fitted", note, svg_of(drawn))


def laws_plot(laws: Sequence[Mapping[str, Any]]) -> Plot:
    """Return a plot of the law of released labels, for three labels."""
    drawn, axes = figure_of(height_inches=2.7)
    discrete = any(law["discrete"] for law in laws)
    for law, colour in zip(laws, LAW_COLOURS, strict=True):
        style = "o" if discrete else "-"
        (curve,) = axes.plot(law["outputs"], law["density"], style, color=colour, label=figure(law["label"]))
        if discrete:
            curve.set(markersize=4, alpha=0.75)
        else:
            curve.set_drawstyle("steps-mid")
    axes.set_ylim(bottom=0)
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel("released", color=MUTED)
    axes.set_ylabel("probability" if discrete else "density", color=MUTED)
    legend = axes.legend(title="label", frameon=False, labelcolor=MUTED, fontsize=8)
    legend.get_title().set_color(MUTED)
    note = (
        "The law of released labels for three labels, before debiasing and without the far tails: the more the curves "
        "overlap, the less a released label reveals."
    )
    return Plot("Law of the mechanism", note, svg_of(drawn))
