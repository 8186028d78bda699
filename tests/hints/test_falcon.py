"""Reasons to refuse a Falcon training, and the change that each refusal proposes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy
from blindfit.algorithms.protocols.falcon import EncryptedScales, FalconParameters, Noise, check_parameters
from blindfit.algorithms.sharing.descent_scales import Scales
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.algorithms.statistics.vertical.row_plan import rows_of_batches
from tests.each_case import each_case
from tests.falcon.local import Case, train
from tests.hints.following import found, not_found, refused, says
from tests.world import World
from tests.world.loans import DATA_PARTIES, loans, with_columns

OPTIMISER = OptimiserSettings(0.5, "inverse", 0.1, "sgd", 0.9, 0.01, 0.0)


def of(train_rows: int, batch_rows: int, epsilon: float = 0.0, **changes: Any) -> FalconParameters:
    """Return a training of two parties, with rows as its job requires."""
    optimiser = replace(OPTIMISER, **changes.pop("optimiser", {}))
    epochs, columns = changes.pop("epochs", 20), changes.pop("columns", (5, 4))
    batches = tuple(rows_of_batches(train_rows, batch_rows))
    noise = None
    if epsilon:
        bounds = tuple(int(count**0.5 * 2**12) for count in columns)
        noise = Noise(RunPrivacy(epsilon, 1e-5, epochs).noise_multiplier(), bounds)
    given = {"kept_bits": None if epsilon else 5, **changes}
    return FalconParameters(("a", "b"), "k", columns, batches, 0, 0, epochs, optimiser, noise=noise, **given)


# --- batches -------------------------------------------------------------------------------------------------


@each_case(
    ("rows", "batch_rows", "changes"),
    [
        (400_000, 300_000, {"model": "linear"}),
        (2_000_000, 2**20, {"model": "linear"}),
        (1_000_000, 2**20, {"optimiser": {"learning_rate": 1e-4}, "waves_name": "narrow"}),
        (1_000_000, 2**20, {"optimiser": {"learning_rate": 1e-4}, "waves_name": "narrow", "epsilon": 20.0}),
    ],
)
def test_batches_that_are_too_large(rows: int, batch_rows: int, changes: dict[str, Any]) -> None:
    with refused("set falcon.batch_rows = {}") as told:
        check_parameters(of(rows, batch_rows, **changes))
    check_parameters(of(rows, told.options["falcon.batch_rows"], **changes))


def test_a_rate_that_is_too_small_for_its_batches() -> None:
    small = {"optimiser": {"learning_rate": 1e-4}, "waves_name": "narrow", "epsilon": 20.0}
    with refused("set falcon.batch_rows = {}, or {}") as told:
        check_parameters(of(1_000_000, 2**20, **small))
    assert "raise falcon.learning_rate" in told.text
    with refused("raise falcon.learning_rate"):
        check_parameters(of(1_000_000, 2**20, **small))
    check_parameters(of(1_000_000, 2**20, **{**small, "optimiser": {"learning_rate": 0.5}}))


def test_where_no_batch_is_small_enough() -> None:
    """The noise at this rate moves a weight too far with any number of smaller batches."""
    small: dict[str, Any] = {"optimiser": {"learning_rate": 1e-6}, "waves_name": "narrow", "epsilon": 20.0}
    with refused("no falcon.batch_rows is small enough: {}") as told:
        check_parameters(of(1_000_000, 2**20, **small))
    assert "raise falcon.learning_rate" in told.text
    check_parameters(of(1_000_000, 2**20, **{**small, "optimiser": {"learning_rate": 0.5}}))


# --- numbers ---------------------------------------------------------------------------------------------------


@each_case(
    ("wrong", "text", "mends"),
    [
        (
            {"optimiser": {"learning_rate": 10.0, "l2": 0.5}},
            says("lower falcon.learning_rate or falcon.l2"),
            [{"optimiser": {"learning_rate": 1.0, "l2": 0.5}}, {"optimiser": {"learning_rate": 10.0, "l2": 0.01}}],
        ),
        (
            {"optimiser": {"l1": 1e-6}},
            says("raise falcon.l1, or set falcon.l1 = 0"),
            [{"optimiser": {"l1": 0.01}}, {"optimiser": {"l1": 0.0}}],
        ),
        ({"epochs": 2**31}, says("lower falcon.epochs"), [{"epochs": 100}]),
        (
            {"epsilon": 0.05},
            says("raise privacy.epsilon, or lower falcon.learning_rate or falcon.epochs"),
            [
                {"epsilon": 20.0},
                {"epsilon": 0.05, "optimiser": {"learning_rate": 0.001}},
                {"epsilon": 1.0, "epochs": 1},
            ],
        ),
        (
            {"key_bits": 2048, "macs": True},
            says('set falcon.backend = "shares"'),
            [{"macs": True}],
        ),
        (
            {"key_bits": 2048, "macs": False, "optimiser": {"l2": 1.5}},
            says("lower falcon.l2 or falcon.epochs"),
            [
                {"key_bits": 2048, "macs": False},
                {"key_bits": 2048, "macs": False, "optimiser": {"l2": 1.5}, "epochs": 1},
            ],
        ),
    ],
)
def test_numbers_that_do_not_fit(wrong: dict[str, Any], text: str, mends: list[dict[str, Any]]) -> None:
    with refused(text):
        check_parameters(of(1000, 128, **wrong))
    for mend in mends:
        check_parameters(of(1000, 128, **mend))


def test_many_encrypted_residuals() -> None:
    encrypted: dict[str, Any] = {"key_bits": 2048, "macs": False, "optimiser": {"l2": 1e-9}}
    with refused('lower falcon.epochs, or set falcon.backend = "shares"'):
        check_parameters(of(1_000_000, 2**20, epochs=9, **encrypted))
    check_parameters(of(1_000_000, 2**20, epochs=2, **encrypted))
    check_parameters(of(1_000_000, 2**20, epochs=9, optimiser={"l2": 1e-9}))


def test_a_key_that_holds_no_score() -> None:
    """Only the library can meet this: the keys of a job have room for a score."""
    parameters = of(1000, 128, macs=False)
    with refused("set falcon.key_bits = 3072"):
        EncryptedScales(parameters).check(128)
    EncryptedScales(parameters).check(3072)


def test_noise_that_is_too_large_for_the_field() -> None:
    given: dict[str, Any] = {"batch_rows": 100, "rate": 0.1, "feature_bound": 8.0}
    with refused("raise privacy.epsilon, or lower falcon.epochs"):
        Scales.fitting(**given, noise=2.0**40)
    Scales.fitting(**given, noise=2.0**10)


def test_residuals_that_are_too_coarse_for_noise() -> None:
    """Only the library can meet this: no job has such parameters."""
    parameters = of(1000, 128, epsilon=20.0)
    assert parameters.noise is not None
    coarse = replace(parameters, noise=Noise(1e9, parameters.noise.row_bounds))
    with refused("raise privacy.epsilon"):
        check_parameters(coarse)
    check_parameters(parameters)


def test_many_columns() -> None:
    with refused("use at most {} columns") as told:
        check_parameters(of(1000, 128, columns=(3, 20_000)))
    (most,) = re.findall(r"at most (\d+) columns", told.text)
    check_parameters(of(1000, 128, columns=(3, int(most) - 3)))


@each_case(
    ("rows", "option", "others"),
    [
        (400, "split.test_fraction", []),
        (200, "falcon.validation_fraction", ["split.test_fraction=0.25"]),
    ],
)
def test_few_rows_that_are_held_out(tmp_path: Path, rows: int, option: str, others: list[str]) -> None:
    project = loans(tmp_path, "falcon", rows=rows)
    wrong = f"{option}=0.05"
    told = found("set {} = {}, or more, or {} = 0", project.check(wrong, *others))
    ways = [way for way in told.sets if way.startswith(option)]
    assert len(ways) == 2
    for way in ways:
        not_found(told, project.check(wrong, *others, way))


def test_scores_that_leave_the_range() -> None:
    wild = {"optimiser": OptimiserSettings(learning_rate=100.0, l2=0.0), "waves_name": "narrow", "epochs": 3}
    with refused('lower falcon.learning_rate, raise falcon.l2, or, for a logistic model, set falcon.waves = "wide"'):
        train(Case(options=wild))
    train(Case(options={**wild, "optimiser": OptimiserSettings(learning_rate=0.5, l2=0.0)}))


# --- what is revealed about labels -----------------------------------------------------------------------------


def test_many_weights_for_few_labels(falcon: World) -> None:
    with_columns(falcon, "post", 40)
    told = found('or set falcon.weights = "shared"', falcon.check())
    not_found(told, falcon.check(told.set("falcon.weights")))
    told = found('falcon.unsafe = ["weight-bits"] allows it', falcon.check())
    falcon.set("policy.unsafe", ["weight-bits"])
    not_found(told, falcon.check(told.set("falcon.unsafe")))
    with_columns(falcon, "post", 3)
    not_found(told, falcon.check())


def test_many_weights_of_a_linear_model(falcon: World) -> None:
    """A linear model does not stay shared, so its refusal does not propose that."""
    with_columns(falcon, "post", 40)
    falcon.set("datasets.loans.label_kind", "number", "bank")
    told = found('falcon.unsafe = ["weight-bits"] allows it', falcon.check("falcon.model=linear"))
    assert "shared" not in told.text
    falcon.set("policy.unsafe", ["weight-bits"])
    not_found(told, falcon.check("falcon.model=linear", told.set("falcon.unsafe")))


def test_noise_that_leaves_little(falcon: World) -> None:
    falcon.set("populations.people", {"epsilon": 100.0, "delta": 1e-5}, *DATA_PARTIES)
    falcon.set("datasets.loans.population", "people", *DATA_PARTIES)
    falcon.set("policy.max_epsilon", 50.0)
    falcon.set("falcon", {"validation_fraction": 0.0, "feature_bounds": ["*:-4:4"], "epochs": 2}, "job")
    falcon.set("split", {"test_fraction": 0.0}, "job")
    told = found("expect a weak model; use more rows or a larger privacy.epsilon", falcon.check("privacy.epsilon=0.5"))
    not_found(told, falcon.check("privacy.epsilon=50"))
