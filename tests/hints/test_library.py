"""Reasons to refuse calls of the library, and the argument that leads past each."""

from __future__ import annotations

import pickle
import re
import sys
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

import joblib
import numpy as np
import pytest
from packaging.requirements import Requirement
from pydantic import ValidationError
from scipy import optimize
from sklearn.model_selection import GridSearchCV, cross_val_score

from blindfit.algorithms.alignment import psi
from blindfit.algorithms.alignment.psi import require_sound_library
from blindfit.algorithms.estimators.dp_logistic_regression import DPLogisticRegression
from blindfit.algorithms.estimators.label_noise import epsilon_of_row
from blindfit.algorithms.estimators.privacy_budget import PrivacyBudget
from blindfit.algorithms.estimators.walr_classifier import WALRClassifier
from blindfit.algorithms.fixed_point import MAX_NARROW_BOUND, MAX_NORM_BOUND, Fixed, norm_bound_steps
from blindfit.algorithms.paillier.interop import load_phe, vector_to_phe
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.packing import Layout
from blindfit.algorithms.paillier.randomisers import FullExponent
from blindfit.algorithms.paillier.vectors import encrypt
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import GaussianMechanism, analytic_noise_multiplier, noise_multiplier
from blindfit.algorithms.privacy.label_mechanisms.base import LabelGrid
from blindfit.algorithms.privacy.label_mechanisms.fitting import MechanismSettings, make_mechanism
from blindfit.algorithms.privacy.label_mechanisms.gaussian import Gaussian, fine_enough
from blindfit.algorithms.privacy.label_mechanisms.prior import Prior
from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, several_parties, two_servers
from blindfit.algorithms.protocols.walr.grid import Room, auto_grid
from blindfit.algorithms.sharing.short_rows import MOST_NUMBERS, Plan, longest_to_prove
from blindfit.algorithms.statistics.label_dp.fit import evaluate_released
from blindfit.algorithms.statistics.linear import pretraining, solvers
from blindfit.algorithms.statistics.linear.pretraining import pretrain
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.solvers import fit
from blindfit.algorithms.statistics.quality.evaluation import evaluate_classes, evaluate_values
from blindfit.algorithms.statistics.walr.defaults import clip_mu, project_mu
from blindfit.parties.compute import ComputeSettings
from blindfit.parties.job.tables import PrivacySettings
from blindfit.parties.work import compute
from tests.each_case import each_case
from tests.hints.following import Told, led_past, refused, refused_value, says
from tests.walr.seats import SETTINGS

DRAW = np.random.default_rng(6)
FEATURES = DRAW.normal(size=(60, 2))
LABELS = (FEATURES[:, 0] + DRAW.normal(size=60) > 0).astype(int)
GRID = LabelGrid(0.0, 4.0)
PRIOR = Prior(np.array([0.0, 4.0]), np.array([1.0]))


# --- what is installed ------------------------------------------------------------------------------------------------


def test_a_library_of_curves_that_is_not_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command installs the wheel that this environment has."""
    require_sound_library.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(psi.bindings, "crypto_core_ed25519_is_valid_point", lambda _point: True)
        with refused("run `pip install --force-reinstall --only-binary PyNaCl 'PyNaCl>=1.6.2'`") as told:
            require_sound_library()
    (wanted,) = re.findall(r"'(PyNaCl[^']*)'", told.text)
    assert Requirement(wanted).specifier.contains(version("PyNaCl"))
    led_past(told, require_sound_library)


def test_packages_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "phe", None)
        with refused("run `pip install 'phe>=1.5'`"):
            load_phe()
    assert load_phe()
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "distributed", None)
        with (
            refused("run `pip install 'dask[distributed]>=2025.1'`"),
            compute.open_workers(ComputeSettings(backend="dask", address="tcp://127.0.0.1:1")),
        ):
            pass


# --- estimators -------------------------------------------------------------------------------------------------------


def test_public_rows_that_are_not_given() -> None:
    model = DPLogisticRegression(epsilon=5.0, n_iterations=2, init="public")
    with refused("call fit(X, y, X_public, y_public), or set init = None"):
        model.fit(FEATURES, LABELS)
    model.fit(FEATURES, LABELS, FEATURES[:40], LABELS[:40])
    DPLogisticRegression(epsilon=5.0, n_iterations=2, init=None).fit(FEATURES, LABELS)


def test_a_model_that_nothing_shrinks_towards() -> None:
    known = pretrain(FEATURES[:40], LABELS[:40])
    with refused('set l2 above 0, or l2 = "auto"'):
        WALRClassifier(epsilon=5.0, init=known, l2=0.0).fit(FEATURES, LABELS)
    for l2 in (0.1, "auto"):
        WALRClassifier(epsilon=5.0, init=known, l2=l2).fit(FEATURES, LABELS)


def test_a_budget_that_is_spent() -> None:
    def search(epsilon: float, settings: int = 2, folds: int = 3) -> None:
        GridSearchCV(
            WALRClassifier(epsilon=epsilon), {"norm_bound": [1.0, 2.0][:settings]}, cv=folds, error_score="raise"
        ).fit(FEATURES, LABELS)

    with PrivacyBudget(2.6), refused("try fewer settings or folds, lower the epsilon of each fit, or raise") as told:
        search(1.0)
    assert told.text.endswith("raise that of the PrivacyBudget")
    for budget, search_of in (
        (2.6, (1.0, 1)),
        (2.6, (1.0, 2, 2)),
        (2.6, (0.4,)),
        (40.0, (1.0,)),
    ):
        with PrivacyBudget(budget):
            search(*search_of)  # type: ignore[arg-type]


def test_a_budget_in_another_process() -> None:
    with PrivacyBudget(40.0):
        with refused('set n_jobs=1, or use joblib.parallel_config("threading"); save a model after the `with` block'):
            pickle.dumps(WALRClassifier())
        cross_val_score(WALRClassifier(epsilon=1.0), FEATURES, LABELS, cv=2, n_jobs=1, error_score="raise")
        with joblib.parallel_config("threading"):
            cross_val_score(WALRClassifier(epsilon=1.0), FEATURES, LABELS, cv=2, n_jobs=2, error_score="raise")
    pickle.dumps(WALRClassifier())


# --- privacy ----------------------------------------------------------------------------------------------------------


def test_noise_that_is_proved_for_little_epsilon() -> None:
    with refused('set privacy.mechanism = "analytic"') as told:
        noise_multiplier("classic", 1.5, 1e-5)
    noise_multiplier(told.options["privacy.mechanism"], 1.5, 1e-5)


@each_case("multiplier", [0.9, 0.001, 1e-9])
def test_noise_on_a_coarse_grid(multiplier: float) -> None:
    """Each bit of a fraction doubles the steps of a sensitivity."""
    with refused("use at least {} more fraction bits (frac_bits), as the noise must be 2^16 steps wide") as told:
        GaussianMechanism(multiplier, 2**32)
    GaussianMechanism(multiplier, 2**32 * 4 ** int(told.parts[0]))
    if multiplier < 0.4:
        with refused("more fraction bits"):
            GaussianMechanism(multiplier, 2**32 * 4 ** (int(told.parts[0]) - 1))


def test_a_label_whose_epsilon_is_out_of_range() -> None:
    with refused('use {} or less, or the mechanism "gaussian" up to 50') as told:
        MechanismSettings("laplace", GRID, 40.0)
    assert Told(says(', or the mechanism "gaussian" up to 50')).is_in(told.text)
    MechanismSettings("laplace", GRID, float(told.parts[0]))
    MechanismSettings("gaussian", GRID, 50.0, delta=1e-6)
    with refused("use {} or less") as told:
        MechanismSettings("gaussian", GRID, 60.0, delta=1e-6)
    MechanismSettings("gaussian", GRID, float(told.parts[0].split()[0]), delta=1e-6)


def test_label_noise_without_a_delta() -> None:
    with refused("set a delta above 0, or use staircase or laplace, which need no delta"):
        MechanismSettings("gaussian", GRID, 1.0)
    MechanismSettings("gaussian", GRID, 1.0, delta=1e-9)
    MechanismSettings("staircase", GRID, 1.0)
    MechanismSettings("laplace", GRID, 1.0)


def test_an_epsilon_that_the_estimate_of_a_prior_uses_up() -> None:
    with refused("use a larger epsilon, or a mechanism without a prior, such as laplace or staircase"):
        MechanismSettings("rr-on-bins", GRID, 2e-4)
    MechanismSettings("rr-on-bins", GRID, 1e-3)
    MechanismSettings("laplace", GRID, 2e-4)
    MechanismSettings("staircase", GRID, 2e-4)


def test_a_delta_that_is_finer_than_the_tables() -> None:
    with refused("use a delta of {} or more") as told:
        assert not Gaussian(GRID, 1.0, 1e-60).noise_std_steps
    assert Gaussian(GRID, 1.0, float(told.parts[0])).noise_std_steps > 0


def test_many_rows_of_a_person() -> None:
    case: dict[str, Any] = {"mechanism": "gaussian", "epsilon": 0.01, "delta": 0.01, "rows_per_unit": 64}
    with refused("lower privacy.delta, raise privacy.epsilon, or lower privacy.max_rows_per_person"):
        epsilon_of_row(**case)
    for change in ({"delta": 1e-9}, {"epsilon": 3.0}, {"rows_per_unit": 1}):
        assert epsilon_of_row(**{**case, **change}) > 0


def test_a_program_that_is_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    real = optimize.linprog

    def solve(costs: Any, **options: Any) -> Any:
        found = real(costs, **options)
        found.status = 4 if len(costs) > 200 else found.status
        return found

    monkeypatch.setattr(optimize, "linprog", solve)
    large = MechanismSettings("unbiased", GRID, 1.0, prior=PRIOR, rounding=1.0, output_cells=60)
    with refused("lower output_cells, or use another mechanism without bias: laplace or staircase"):
        make_mechanism(large, 1.0, PRIOR)
    make_mechanism(replace(large, output_cells=12), 1.0, PRIOR)
    for name in ("laplace", "staircase"):
        make_mechanism(MechanismSettings(name, GRID, 1.0), 1.0, None)


def test_a_label_mechanism_whose_noise_is_too_narrow() -> None:
    with refused("use a smaller epsilon or a smaller delta"):
        fine_enough(GRID, 80.0, 0.999)
    fine_enough(GRID, 10.0, 0.999)
    fine_enough(GRID, 80.0, 1e-6)


# --- numbers on a grid ------------------------------------------------------------------------------------------------


def test_numbers_that_are_no_integers() -> None:
    with refused("use Fixed.from_reals, which rounds them"):
        Fixed.from_integers([0.5])
    assert Fixed.from_reals([0.5], 8).to_reals().tolist() == [0.5]


def test_bits_of_a_fraction_that_another_library_has_not(insecure_test_key: PrivateKey) -> None:
    randomisers = FullExponent(insecure_test_key.public_key)
    with refused("encrypt with a frac_bits that is a multiple of 4"):
        vector_to_phe(encrypt(Fixed.from_reals([0.5], 18), randomisers))
    vector_to_phe(encrypt(Fixed.from_reals([0.5], 20), randomisers))


@each_case("bits", [0, 1, 10_000])
def test_slots_that_do_not_fit(insecure_test_key: PrivateKey, bits: int) -> None:
    with refused("use slots of at least 2 bits, and of at most {}") as told:
        Layout.of(insecure_test_key.public_key, 3, bits)
    for fits in (2, int(told.parts[0])):
        Layout.of(insecure_test_key.public_key, 3, fits)


@each_case(("bound", "bits", "other"), [(1e3, 24, 12), (1e-3, 6, 20), (1e30, 4, None), (1e-30, 24, None)])
def test_a_norm_that_is_no_number_of_steps(bound: float, bits: int, other: int | None) -> None:
    with refused("{} norm_bound{}") as told:
        norm_bound_steps(bound, bits)
    assert told.parts[0].endswith("lower" if bound > 1 else "raise")
    norm_bound_steps(1.0, bits)
    assert Told(says(", or choose {} fraction bits")).is_in(told.text) == (other is not None)
    if other is not None:
        assert ("fewer" if other < bits else "more") in told.text
        norm_bound_steps(bound, other)


def test_rows_of_16_bits() -> None:
    rows = ConsumerRows(("a", "b"), np.array([[1, 2], [3, 4]], np.int16))
    with refused("send rows of 32 bits"):
        walr.step_1_open(rows, MAX_NARROW_BOUND + 1, SETTINGS)
    wide = ConsumerRows(rows.ids, rows.weights.astype(np.int32))
    walr.step_1_open(wide, MAX_NARROW_BOUND + 1, SETTINGS)


def multiplier_at(epsilon: float) -> float:
    return analytic_noise_multiplier(epsilon, 1e-6)


def test_noise_that_no_grid_is_fine_enough_for() -> None:
    with refused("lower privacy.epsilon"):
        Room.of(multiplier_at(1e9), (1, 1), largest_sum=2**62)
    Room.of(multiplier_at(1.0), (1, 1), largest_sum=2**62)
    with refused("raise norm_bound, or lower privacy.epsilon"):
        auto_grid(1e-4, multiplier_at(50.0), 1)
    auto_grid(1.0, multiplier_at(50.0), 1)
    auto_grid(1e-2, multiplier_at(1.0), 1)


def test_a_sum_of_two_servers_that_is_too_large() -> None:
    def request(bits: int = 20, rows: int = 2**24, epsilon: float = 1e-6) -> AggregateOpen:
        names = ConsumerRows(("a",), np.array([[1, 2]], np.int32))
        asked = walr.step_1_open(names, min(2**bits, MAX_NORM_BOUND), SETTINGS)
        return replace(asked, max_rows_per_person=2**12, epsilon=epsilon, n_rows=rows)

    with refused("lower frac_bits in [walr] or [evaluate]; raise privacy.epsilon; or use fewer"):
        two_servers.step_1_check(request(25))
    two_servers.step_1_check(request(bits=8))
    two_servers.step_1_check(request(25, epsilon=1.0))
    with refused("lower frac_bits"):
        two_servers.step_1_check(request(25, rows=2**40, epsilon=1.0))
    two_servers.step_1_check(request(25, rows=1, epsilon=1.0))


def test_rows_that_are_too_many_or_too_long_to_share() -> None:
    columns = 250
    with refused('use fewer rows or columns, or a trust other than "shared-rows" in [walr] or [evaluate]'):
        Plan(MOST_NUMBERS // 256 + 1, columns, 2**16)
    Plan(MOST_NUMBERS // 256, columns, 2**16)
    Plan(MOST_NUMBERS // 256 + 1, columns - 1, 2**16)
    with refused("lower frac_bits in [walr] or [evaluate]") as told:
        Plan(100, 1000, MAX_NORM_BOUND)
    assert "fewer columns" not in told.text
    Plan(100, 1000, MAX_NORM_BOUND >> 8)
    with refused("; or use fewer columns"):
        Plan(100, 1000, longest_to_prove(1))
    Plan(100, 1, longest_to_prove(1))


# --- fits -------------------------------------------------------------------------------------------------------------


def test_public_rows_without_a_finite_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column separates them; few steps are enough, as weights that tend to infinity may be taken for some."""
    monkeypatch.setattr(pretraining, "SolverSettings", partial(SolverSettings, max_iterations=10))
    features, labels = np.array([[-1.0], [1.0], [2.0]]), np.array([0, 1, 1])
    with refused("set l2 above 0"):
        pretrain(features, labels, l2=0.0)
    pretrain(features, labels, l2=0.1)


ROWS = np.column_stack([FEATURES, np.ones(60)])
MU = ROWS.T @ LABELS / 60


def test_a_noisy_count_that_no_labels_have() -> None:
    far = np.append(MU[:-1], 1.2)
    settings = SolverSettings(l2=0.1)
    with refused("clip mu (clip_mu), set unpenalised = None, or release mu with a larger epsilon"):
        fit(ROWS, far, settings)
    fit(ROWS, clip_mu(ROWS, far), settings)
    fit(ROWS, far, replace(settings, unpenalised=None))
    fit(ROWS, MU, settings)  # the limit for a large epsilon


def test_a_descent_that_is_too_fast() -> None:
    settings = SolverSettings(l2=1.0, solver="gradient-descent", rate=1e40, unpenalised=None)
    with refused('lower rate below 2 / l2, or set solver = "newton" or "lbfgs", which have no rate'):
        fit(ROWS, MU, settings)
    for rows in (ROWS, 1e6 * ROWS):
        fit(rows, rows.T @ LABELS / 60, replace(settings, rate=1.99, max_iterations=500))
    for solver in ("newton", "lbfgs"):
        assert fit(ROWS, MU, SolverSettings(l2=1.0, solver=solver, unpenalised=None)).converged  # type: ignore[arg-type]


def test_rows_that_no_model_can_be_evaluated_on() -> None:
    with refused("raise split.test_fraction"):
        evaluate_classes(np.array([1.0, 1.0]), np.array([0.4, 0.5]), 0.5)
    evaluate_classes(np.array([1.0, 1.0, 0.0]), np.array([0.4, 0.5, 0.6]), 0.5)
    none, one = np.zeros(0), np.ones(1)
    for evaluate in (evaluate_values, lambda *given: evaluate_released(*given, None, 0.0)):
        with refused("raise split.test_fraction"):
            evaluate(none, none)
        evaluate(one, one)


def test_a_matrix_that_is_not_positive() -> None:
    matrix = np.array([[1.0, 2.0], [2.0, 1.0]])
    with refused("raise l2, or leave out columns that repeat others"):
        solvers.solve_positive(matrix, np.ones(2))
    solvers.solve_positive(matrix + 1.1 * np.eye(2), np.ones(2))
    solvers.solve_positive(matrix[:1, :1], np.ones(1))


def test_a_projection_that_arithmetic_does_not_reach() -> None:
    far = MU + DRAW.normal(size=3) * 0.8
    with refused("raise the tolerance, or use clip_mu in place of project_mu"):
        project_mu(ROWS, far, tolerance=1e-13)
    project_mu(ROWS, far, tolerance=1e-4)
    clip_mu(ROWS, far)


def test_weights_that_are_too_large_to_tell() -> None:
    """A column separates the rows; a smaller epsilon's noise moves a mean that far."""
    positive = (ROWS[:, 0] > 0).astype(float)
    mu = ROWS.T @ positive / 60

    def weights(l2: float, share: float = 1.0) -> np.ndarray:
        mean = share * mu + (1 - share) * MU
        return fit(ROWS, mean, SolverSettings(l2=l2, unpenalised=None, max_iterations=200)).weights

    with refused("raise walr.l2 or privacy.epsilon; this release is charged"):
        several_parties.step_8_rounded(weights(1e-9), 60)
    several_parties.step_8_rounded(weights(0.01), 60)
    several_parties.step_8_rounded(weights(1e-9, share=0.0), 60)


# --- noise ------------------------------------------------------------------------------------------------------------


def test_noise_that_no_accountant_composes() -> None:
    def event(epsilon: float, delta: float = 1e-6, parts: int = 1) -> ReleaseEvent:
        return ReleaseEvent("gaussian", analytic_noise_multiplier(epsilon, delta) / parts**0.5, "rows")

    with refused("use a {}") as told:
        event(1e11, parts=16)
    assert Told(says("smaller privacy.epsilon")).is_in(told.text)
    event(1.0, parts=16)
    with refused("use a {}") as told:
        event(1e-11, 1e-300)
    assert Told(says("larger privacy.epsilon or privacy.delta")).is_in(told.text)
    event(1.0, 1e-300)
    event(1e-11, 0.5)


def test_a_sample_that_needs_no_noise() -> None:
    """A row is in a sample of each iteration with this chance: that may be less than delta."""

    def noise(delta: float, fraction: float = 1e-4, iterations: int = 2) -> float:
        return RunPrivacy(1.0, delta, iterations, fraction).noise_multiplier()

    with refused("use a smaller privacy.delta, a larger batch_fraction or more iterations"):
        noise(1e-3)
    assert noise(1e-6) > 0
    assert noise(1e-3, fraction=0.5) > 0
    assert noise(1e-3, iterations=100) > 0


def test_noise_of_an_iteration_that_is_too_narrow() -> None:
    def fitted(**options: Any) -> DPLogisticRegression:
        return DPLogisticRegression(**{"epsilon": 1e9, "delta": 0.5, "feature_bounds": (-5, 5), **options}).fit(
            FEATURES, LABELS
        )

    with refused("choose a smaller epsilon, more iterations or a smaller loss_share"):
        fitted()
    fitted(epsilon=1.0)


def test_a_loss_that_public_rows_show_at_no_cost() -> None:
    def fitted(loss_share: float, *public: np.ndarray) -> DPLogisticRegression:
        model = DPLogisticRegression(delta=1e-5, feature_bounds=(-5, 5), loss_share=loss_share)
        return model.fit(FEATURES, LABELS, *public)

    with refused("set loss_share = 0, or pass no public rows"):
        fitted(0.1, FEATURES, LABELS)
    fitted(0.0, FEATURES, LABELS)
    fitted(0.1)


@each_case(
    ("text", "options"),
    [
        (says("epsilon must be at least {}: an answer would be nothing but noise"), {"epsilon": 1e-12}),
        (says("delta must be at least {}"), {"epsilon": 1.0, "delta": 1e-301}),
    ],
)
def test_a_promise_that_is_too_small(text: str, options: dict[str, float]) -> None:
    with pytest.raises(ValidationError) as caught:
        PrivacySettings(**options)
    told = refused_value(text, str(caught.value))
    PrivacySettings(**{**options, text.split()[0]: float(told.parts[0].split()[0])})
