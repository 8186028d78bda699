"""The output of a WALR plan, from its forecasts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from blindfit.algorithms.statistics.walr.forecast import Assumed, Forecast, min_epsilon
from blindfit.coordinator.plan.asked import Asked, Table
from blindfit.coordinator.plan.pictures import figure_by_epsilon
from blindfit.coordinator.report.plots import MUTED, POSITIVE, Plot, svg_of
from blindfit.coordinator.terminal.wording import figure
from blindfit.coordinator.walr.rows import Read

AS_IN_THE_JOB = "as in the job"
MOST_TOLD = 100.0  # largest loss that is printed; at larger losses, weights have run to infinity
WORTH_A_WORD = 0.002  # smallest gain in loss for which other settings are named


@dataclass(frozen=True, repr=False)
class Outcome:
    read: Read
    assumed: Assumed
    asked: Asked
    exact: Forecast  # without noise
    by_epsilon: list[Forecast]
    settings: dict[str, Forecast]

    @property
    def best(self) -> str:
        return min(self.settings, key=lambda name: self.settings[name].mean)

    def epsilon_table(self) -> Table:
        rows = [
            (
                f"{one.case.epsilon:g}",
                f"{one.case.noise_std:.2g}",
                _format_loss(one.mean),
                " to ".join(map(_format_loss, one.spread(self.exact))),
                self._format_kept_gain(one),
                *self._together(one),
            )
            for one in self.by_epsilon
        ]
        n_columns = 6 if self.asked.cadences else 5
        rows.append(("no noise", "0", f"{self.exact.mean:.3f}", "", self._format_kept_gain(self.exact), "")[:n_columns])
        together = (f"{self.asked.cadences} releases cost",) if self.asked.cadences else ()
        return Table(
            "Expected loss by epsilon",
            "Log loss divided by the log loss of a constant; 1 is a model that knows only the base rate. The range "
            "holds nine in ten draws of labels and noise.",
            ("epsilon", "noise of the mean", "expected loss", "range", "gain kept", *together),
            tuple(rows),
        )

    def _together(self, one: Forecast) -> tuple[str, ...]:
        cost = self._compose(one)
        return () if cost is None else (f"{cost:.3g}",)

    def _compose(self, one: Forecast) -> float | None:
        """Return the epsilon, at the job's delta, of all planned releases together."""
        if self.asked.cadences is None:
            return None
        return self.read.compose(one.case.epsilon, self.asked.cadences)

    def _format_kept_gain(self, one: Forecast) -> str:
        """Return the kept share of the gain as text; empty if a constant predicts as well without noise."""
        return f"{(1 - one.mean) / (1 - self.exact.mean):.0%}" if self.exact.mean < 1 else ""

    def settings_table(self) -> Table:
        ordered = sorted(self.settings.items(), key=lambda item: item[1].mean)
        rows = tuple((name, _format_loss(one.mean)) for name, one in ordered)
        return Table(
            f"Other settings of the fit, at epsilon {self.read.epsilon:g}",
            "All settings have the same draws of labels and noise.",
            ("set", "expected loss"),
            rows,
        )

    def advice(self) -> Iterator[str]:
        wanted = self.asked.wanted
        if wanted is not None:
            least = min_epsilon(self.by_epsilon, wanted)
            largest = self.by_epsilon[-1].case.epsilon
            if least is None:
                yield f"No epsilon up to {largest:g} is expected to reach a loss of {wanted:g}."
            else:
                yield f"A loss of {wanted:g} is expected from epsilon {figure(least)}."
        own, best = self.settings[AS_IN_THE_JOB], self.settings[self.best]
        if own.mean - best.mean > WORTH_A_WORD * own.mean:
            flags = " ".join(f"--set {one}" for one in self.best.split())
            yield f"At epsilon {self.read.epsilon:g} a loss of {best.mean:.3f}, not {own.mean:.3f}: {flags}"
        else:
            yield f"At epsilon {self.read.epsilon:g} other settings of the fit bring no gain."
        if own.mean >= 1:
            yield "At the job's epsilon a constant is expected to predict as well: take more rows or a larger epsilon."

    def plot(self) -> Plot:
        epsilons = [one.case.epsilon for one in self.by_epsilon]
        drawn, axes = figure_by_epsilon(epsilons, "loss / that of a constant")
        low, high = zip(*(one.spread(self.exact) for one in self.by_epsilon), strict=True)
        axes.fill_between(epsilons, low, high, color=POSITIVE, alpha=0.2, linewidth=0)
        axes.plot(
            epsilons, [one.mean for one in self.by_epsilon], color=POSITIVE, linewidth=1.6, marker="o", markersize=4
        )
        axes.axhline(self.exact.mean, color=MUTED, linewidth=1, linestyle="--")
        axes.axhline(1, color=MUTED, linewidth=1, linestyle=":")
        note = (
            f"Expected loss, and the range of nine in ten of {len(self.exact.losses)}. Dashed: without noise. "
            "Dotted: a constant."
        )
        return Plot("Expected loss by epsilon", note, svg_of(drawn))

    def to_dict(self) -> dict[str, Any]:
        assumed, wanted = self.assumed, self.asked.wanted
        return {
            "rows": self.read.rows.n_rows,
            "columns": self.read.rows.n_features,
            "norm_bound": self.read.norm_bound,
            "rows_of_unit": self.read.unit.count,
            "base_rate": assumed.base_rate,
            "strength": assumed.strength,
            "assumes_weights": assumed.theta is not None,
            "cadences": self.asked.cadences,
            "draws": len(self.exact.losses),
            "without_noise": self.exact.mean,
            "epsilons": [
                {
                    "epsilon": one.case.epsilon,
                    "noise_std": one.case.noise_std,
                    "epsilon_of_cadences": self._compose(one),
                    **self._losses(one),
                }
                for one in self.by_epsilon
            ],
            "settings": {name: self._losses(one) for name, one in self.settings.items()},
            "best_settings": self.best,
            "wanted": wanted,
            "min_epsilon": None if wanted is None else min_epsilon(self.by_epsilon, wanted),
        }

    def _losses(self, one: Forecast) -> dict[str, Any]:
        """Return losses for JSON, which has no infinity: None if a draw has no finite fit."""
        if not np.isfinite(one.losses).all():
            return {"loss": None, "range": None}
        return {"loss": one.mean, "range": list(one.spread(self.exact))}


def _format_loss(loss: float) -> str:
    return f"{loss:.3f}" if loss < MOST_TOLD else "runs away"
