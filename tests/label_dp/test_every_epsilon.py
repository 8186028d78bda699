"""From 0.001 to 50 a mechanism either releases labels that a model learns from, or prints one line with what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError, MalformedMessage
from blindfit.algorithms.privacy.accountant import composed_epsilon
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import LEAST_STD_STEPS, analytic_noise_multiplier
from blindfit.algorithms.privacy.label_mechanisms import (
    NAMES,
    LabelGrid,
    MechanismSettings,
    fine_enough,
    fit,
    from_parameters,
)
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.coordinator.job.job import Job, read_job
from blindfit.coordinator.label_dp.preflight import expected_mechanism
from blindfit.parties.label_dp.consumer import fit_rows, settings_on
from blindfit.parties.label_dp.fit import Rows
from blindfit.parties.measurement import labels_codec
from blindfit.parties.measurement.calls import _make_released
from tests.each_case import each_case
from tests.label_dp.conftest import COLUMNS, LABEL_RANGE, PARTIES, rows_and_labels
from tests.measurement.house import House
from tests.privacy.label_mechanisms.examples import uniform
from tests.release_labels.house import Counter, make_labels

GRID = LabelGrid(*LABEL_RANGE)
NEEDED: dict[str, dict[str, Any]] = {
    "rp-banded": {"half_width": 1.0, "debias": False},
    "rr-on-bins": {"debias": False, "rounding": 0.5},
    "unbiased": {"rounding": 1.0, "output_cells": 40},
}
EPSILONS = [1e-4, 1e-3, 0.01, 0.1, 1.0, 4.3, 4.5, 8.0, 16.0, 20.0, 30.0, 40.0, 50.0]


def job(mechanism: str, epsilon: float, **privacy: Any) -> Job:
    label_dp = {"mechanism": mechanism, "regressor": "linear", **NEEDED.get(mechanism, {})}
    content = {"protocol": "label-dp", "parties": PARTIES, "privacy": {"epsilon": epsilon, **privacy}}
    return read_job({**content, "label_dp": label_dp})


@pytest.mark.parametrize("epsilon", [4.5, 5.0, 20.0, 50.0])
def test_a_gaussian_job_goes_through_the_server_and_its_model_learns(tmp_path: Path, epsilon: float) -> None:
    """Asked, charged, drawn and remembered by a measurement server, whose messages are those of the wire."""
    asked = job("gaussian", epsilon).parameters
    features, labels = rows_and_labels(800)
    ids = [f"u{i}" for i in range(800)]
    dataset = make_labels(tmp_path, dict(zip(ids, labels.tolist(), strict=True)), label_range=LABEL_RANGE)
    house = House(tmp_path, datasets={"prices": dataset}, budget=Budget(epsilon, 1e-5))
    try:
        received = Counter(house).ask(ids, settings_on(GRID, asked, 0))
        (entry,) = house.entries
    finally:
        house.close()
    mechanism = received.mechanism
    assert entry.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert composed_epsilon([ReleaseEvent.from_canonical(entry.event)], 1e-5) <= epsilon
    assert mechanism.noise_std_steps >= LEAST_STD_STEPS  # type: ignore[attr-defined]
    noise_std = analytic_noise_multiplier(epsilon, 1e-5) * GRID.width
    noise = mechanism.grid.reals(received.steps) - labels
    assert noise.std() == pytest.approx(noise_std, rel=0.15)  # 800 draws: six standard errors
    rows = Rows(ids, features[:600], features[600:], COLUMNS)
    fitted = fit_rows(rows, _make_released(received, 0, 0), asked, asked.trial_randomness, lambda *_: None)
    assert np.mean((fitted.test_predictions - labels[600:]) ** 2) < (0.3 if epsilon > 10 else 0.9) * np.var(labels)


@pytest.mark.parametrize("mechanism", NAMES)
def test_every_epsilon_fits_or_is_refused_by_what_helps(mechanism: str) -> None:
    _, labels = rows_and_labels(300)
    fitted_at = []
    for epsilon in EPSILONS:
        try:
            settings = settings_on(GRID, job(mechanism, epsilon).parameters, 0)
            fitted = fit(settings, labels, uniform(1))
        except ConfigError as error:
            said = f"{error} {error.hint}"
            assert "\n" not in said
            assert ("use 30 or less" if epsilon > 1 else "use a larger epsilon") in said
            continue
        fitted_at.append(epsilon)
        assert np.isfinite(fitted.mechanism.randomise(labels, uniform(2))).all()
        loss, delta = fitted.mechanism.privacy_loss()
        assert fitted.epsilon_prior + loss <= epsilon
        assert delta <= settings.delta
        expected, _ = expected_mechanism(GRID, job(mechanism, epsilon), 0)
        assert expected.grid == fitted.mechanism.grid  # the grid that the pre-flight reported
    most = 50.0 if mechanism == "gaussian" else 30.0
    least = 1e-4 if mechanism in ("laplace", "staircase", "gaussian") else 1e-3
    assert fitted_at == [epsilon for epsilon in EPSILONS if least <= epsilon <= most]


RANGES = [
    (0.0, 1.0),
    (-1e6, 1e6),
    (1e9, 1e9 + 1),
    (0.15, 5.0),
    (0.0, 1e-12),
    (-1e99, 1e99),
    (1e12, 1e12 + 1),
    (0.0, 1e101),
]
WALKED = [0.01, 0.1, 1.0, 4.0, 4.5, 8.0, 16.0, 30.0, 40.0, 50.0, 75.0, 100.0]


@pytest.mark.parametrize("mechanism", NAMES)
@each_case(
    ("ends", "cells"), [*((ends, None) for ends in RANGES), *((RANGES[0], cells) for cells in (1, 7, 1000, 2**20))]
)
def test_accepted_settings_make_a_mechanism_and_others_are_refused_in_a_line(
    mechanism: str, ends: tuple[float, float], cells: int | None
) -> None:
    """This holds for any epsilon, delta, range and grid. If a hint names a number, that number helps."""
    width, made = ends[1] - ends[0], 0
    labels = np.clip(ends[0] + width * np.linspace(0, 1, 40), *ends)
    options = {name: value for name, value in NEEDED.get(mechanism, {}).items() if name != "debias"}
    scaled = {name: value * width / 8 if name != "output_cells" else value for name, value in options.items()}
    for epsilon in WALKED:
        for delta in (1e-2, 1e-5, 1e-18, 1e-30, 1e-100) if mechanism == "gaussian" else (0.0,):
            try:
                grid = LabelGrid(*ends) if cells is None else LabelGrid(*ends, cells)
                fitted = fit(MechanismSettings(mechanism, grid, epsilon, delta, **scaled), labels, uniform(1))
            except ConfigError as error:
                if number := re.search(r"use a delta of (\S+) or more", error.hint):
                    mended = MechanismSettings(mechanism, grid, epsilon, float(number[1]), **scaled)
                    fit(mended, labels, uniform(1))
                continue
            made += 1
            assert np.isfinite(fitted.mechanism.randomise(labels, uniform(2))).all()
            loss, spent_delta = fitted.mechanism.privacy_loss()
            assert fitted.epsilon_prior + loss <= epsilon * (1 + 1e-9)
            assert spent_delta <= delta
            assert from_parameters(fitted.mechanism.parameters()) == fitted.mechanism
            if mechanism == "gaussian" and cells is None:
                assert fitted.mechanism.noise_std_steps >= LEAST_STD_STEPS  # type: ignore[attr-defined]
    fits_no_grid = ends in RANGES[-2:]
    coarse = cells is not None and cells < 40 and mechanism in NEEDED  # such labels cannot be rounded to fewer numbers
    assert made or fits_no_grid or coarse


@each_case("epsilon", [0.01, 1.0, 4.3, 4.5, 8.0, 20.0, 50.0])
def test_a_server_takes_the_default_grid_at_every_epsilon(tmp_path: Path, epsilon: float) -> None:
    dataset = make_labels(tmp_path, label_range=LABEL_RANGE)
    house = House(tmp_path, datasets={"prices": dataset}, budget=Budget(50.0, 1e-5))
    try:
        received = Counter(house).ask(settings=MechanismSettings("gaussian", GRID, epsilon, 1e-5))
        assert received.mechanism.grid == fine_enough(GRID, epsilon, 1e-5)
    finally:
        house.close()


def test_a_default_count_of_another_client_is_refused_with_the_count_that_does(tmp_path: Path) -> None:
    """Nothing is released on another grid than the request names."""
    settings = MechanismSettings("gaussian", LabelGrid(*LABEL_RANGE, 2**15), 20.0, 1e-5)
    sent = labels_codec.settings_to_pb(settings)
    sent.cells = GRID.cells
    with pytest.raises(MalformedMessage, match=f"take {fine_enough(GRID, 20.0, 1e-5).cells} cells or more"):
        labels_codec._settings_from_pb(sent, "shop")


def test_rows_of_a_person_may_take_less_than_a_label_can_have() -> None:
    asked = job("laplace", 1e-3).parameters
    assert settings_on(GRID, asked, 10).epsilon == pytest.approx(1e-4)
    with pytest.raises(ConfigError, match=r"must lie in \[0.0001, 30\] with laplace") as refused:
        settings_on(GRID, asked, 20)
    assert refused.value.hint == "use a larger one, or release fewer rows of a person"


@each_case("rows", [1, 3, 50])
@each_case(("epsilon", "delta"), [(0.01, 1e-12), (5.0, 1e-12), (5.0, 1e-2), (50.0, 1e-12), (50.0, 1e-2)])
def test_the_grid_of_a_job_has_room_for_the_noise(rows: int, epsilon: float, delta: float) -> None:
    settings = settings_on(GRID, job("gaussian", epsilon, delta=delta).parameters, rows)
    assert analytic_noise_multiplier(settings.epsilon, delta) * settings.grid.cells >= LEAST_STD_STEPS
    assert fit(settings, [1.0], uniform(3)).mechanism.privacy_loss()[1] <= delta


def test_a_delta_that_leaves_no_epsilon_for_a_row_is_named() -> None:
    with pytest.raises(ConfigError, match="3 rows of a person leave no epsilon for one") as refused:
        settings_on(GRID, job("gaussian", 0.001, delta=1e-2).parameters, 3)
    assert "lower privacy.delta" in refused.value.hint
    assert settings_on(GRID, job("gaussian", 0.001, delta=1e-5).parameters, 3).epsilon > 1e-4


def test_a_client_that_chose_too_coarse_a_grid_is_told_how_many_cells_do(tmp_path: Path) -> None:
    dataset = make_labels(tmp_path, label_range=LABEL_RANGE)
    house = House(tmp_path, datasets={"prices": dataset}, budget=Budget(50.0, 1e-5))
    try:
        counter = Counter(house)
        with pytest.raises(MalformedMessage, match=r"take (\d+) cells or more") as refused:
            counter.ask(settings=MechanismSettings("gaussian", LabelGrid(*LABEL_RANGE, 2**15), 20.0, 1e-5))
        cells = int(str(refused.value).split("take ")[1].split()[0])
        assert GRID.cells < cells <= fine_enough(GRID, 20.0, 1e-5).cells
        counter.ask(settings=MechanismSettings("gaussian", LabelGrid(*LABEL_RANGE, cells), 20.0, 1e-5))
        assert counter.charges == 1
    finally:
        house.close()
