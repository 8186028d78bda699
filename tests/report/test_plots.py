"""Every plot stays readable for any names and numbers: no label covers another, none is cut, each axis has ticks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from blindfit.coordinator.label_dp.plots import laws_plot, plot_fit
from blindfit.coordinator.plan.pictures import figure_by_epsilon
from blindfit.coordinator.report import curves
from blindfit.coordinator.report.plots import objective_plot, set_log_scale, svg_of, weights_plot
from blindfit.coordinator.taylor.plots import loss_plot
from tests.report.faults import faults_of

SCALES = (1e-9, 0.3, 1.00001, 87_654.3, 1e9)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Faults of every figure that is drawn from now on; a test that draws nothing has a fault, too."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    found, drawn = ["nothing was drawn"], FigureCanvasSVG.print_svg

    def draw(canvas: Any, *arguments: Any, **more: Any) -> Any:
        result = drawn(canvas, *arguments, **more)
        found[:] = faults_of(canvas.figure)
        return result

    monkeypatch.setattr(FigureCanvasSVG, "print_svg", draw)
    return found


@pytest.mark.parametrize(
    "names",
    [
        ["W" * 60, "b"],
        ["年" * 60, "b"],
        ["average_number_of_transactions_per_month_in_eur", "b"],
        [f"column {place}" for place in range(40)],
        ["a"],
    ],
)
def test_names_of_any_width(names: list[str], faults: list[str]) -> None:
    weights_plot({name: 1.0 / (1 + place) for place, name in enumerate(names)}, 0.1)
    assert faults == []


SCALED: dict[str, Callable[[float], object]] = {
    "weights": lambda scale: weights_plot({"a": scale, "b": -scale / 3}, 0.1),
    "reach": lambda scale: weights_plot({"a": scale / 9}, None, reach=scale),
    "loss": lambda scale: loss_plot([scale, 0.9 * scale, 0.85 * scale], 100),
    "objective": lambda scale: objective_plot([0.3 * scale, 0.2 * scale, 0.1 * scale, 0.05 * scale]),
    "fitted": lambda scale: plot_fit({"fitted": [scale, 2 * scale], "noisy": [-scale, 3 * scale]}, unbiased=""),
    "laws": lambda scale: laws_plot(
        [
            {"discrete": False, "outputs": [-scale, 0, scale], "density": [1 / scale, 2 / scale, 0], "label": place}
            for place in range(3)
        ]
    ),
    "rows": lambda scale: curves.row_histogram(
        [curves.RowBin(0.0, scale, 10**7), curves.RowBin(scale, 2 * scale, 5)], ""
    ),
    "lift": lambda scale: curves.lift_plot([curves.LiftPoint(0.1, scale), curves.LiftPoint(1.0, scale / 2)]),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("plot", SCALED)
def test_numbers_of_any_size(plot: str, scale: float, faults: list[str]) -> None:
    SCALED[plot](scale)
    assert faults == []


@pytest.mark.parametrize("decades", [0.01, 0.5, 1.5, 14])
def test_an_objective_over_any_number_of_decades(decades: float, faults: list[str]) -> None:
    objective_plot([*(10 ** (-decades * step / 20) for step in range(20)), 0.0])
    assert faults == []


@pytest.mark.parametrize(
    "epsilons",
    [[1.0], [0.1, 0.11, 0.12, 0.13, 1.0, 1.05, 1.1], [1.0, 1.000001], [0.001 * 3**i for i in range(12)]],
)
def test_epsilons_at_any_distance(epsilons: list[float], faults: list[str]) -> None:
    figure, axes = figure_by_epsilon(epsilons, "of the range")
    axes.plot(epsilons, [0.3 / epsilon for epsilon in epsilons])
    set_log_scale(axes, lambda value: f"{100 * value:g}%")
    svg_of(figure)
    assert faults == []


def test_a_fault_is_found(faults: list[str]) -> None:
    figure, axes = figure_by_epsilon([1.0, 2.0], "")
    axes.set_xticks([1.0, 1.01, 2.0], ["one", "nearly one", "a long way outside of the figure" * 2])
    svg_of(figure)
    assert len(faults) >= 2
