"""The pictures of a simulation stay readable for any figures."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from blindfit.coordinator.simulate.kept import Done
from blindfit.coordinator.simulate.pictures import draw
from tests.report.faults import drawn_figures, faults_of
from tests.simulate.studies import done, results

SYSTEMS = (("taylor", None), ("falcon", None), ("walr", 1.0), ("label-dp", 1.0), ("dp-lr", 1.0))


def all_systems(scale: float, epsilons: tuple[float, ...] = (1.0,), auc: float = 0.8) -> dict[Any, list[Done]]:
    found: dict[Any, list[Done]] = {}
    for place, (system, private) in enumerate(SYSTEMS):
        for epsilon in epsilons if private else (None,):
            quality = auc + 0.01 * place
            found[system, epsilon] = [done(quality, scale * (1 + place), bytes_sent=int(1000 * scale * (place + 1)))]
    return found


def texts_cover_each_other(figure: Any) -> list[str]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer: Any = FigureCanvasAgg(figure).get_renderer()
    texts = [text for legend in figure.legends for text in legend.get_texts()]
    texts += [axes.xaxis.label for axes in figure.axes]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    return [f"{a} covers {b}" for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]


@pytest.mark.parametrize("scale", [1e-3, 0.3, 12.0, 1e5])
@pytest.mark.parametrize("epsilons", [(1.0,), (0.1, 0.11, 0.5, 1, 2, 8)])
@pytest.mark.parametrize("auc", [0.5, 0.95])
def test_no_label_covers_another(scale: float, epsilons: tuple[float, ...], auc: float) -> None:
    with drawn_figures() as figures:
        titles = [plot.title for plot in draw(results(all_systems(scale, epsilons, auc)))]
    assert titles == ["Quality and epsilon", "Quality and time", "Quality and bytes"]
    assert [faults_of(figure) for figure in figures] == [[]] * 3
    assert [texts_cover_each_other(figure) for figure in figures] == [[]] * 3


def test_the_only_point_has_an_axis() -> None:
    with drawn_figures() as figures:
        list(draw(results({("walr", 1.0): [done(0.5)]}, joined=0.5, alone=0.5, constant=0.5)))
    assert [faults_of(figure) for figure in figures] == [[]] * 3


def test_what_has_no_value_is_not_drawn() -> None:
    titles = [plot.title for plot in draw(results({("taylor", None): [done(0.8)]}))]
    assert titles == ["Quality and time", "Quality and bytes"]
    titles = [plot.title for plot in draw(results({("dp-lr", 1.0): [done(0.8, bytes_sent=0)]}))]
    assert titles == ["Quality and epsilon", "Quality and time"]
    assert list(draw(results({}))) == []
