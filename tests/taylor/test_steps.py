"""Taylor training, at least one test for each step of its table: each result is decrypted and compared."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import FreshCiphertext
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.packing import Layout, decrypt_packed, encrypt_packed
from blindfit.algorithms.paillier.vectors import EncryptedVector, decrypt, encrypt
from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.protocols.taylor import DataSeat, TaylorParameters, roles
from blindfit.algorithms.protocols.taylor.messages import NoisyGradient
from blindfit.algorithms.statistics.vertical.grid import HIDING_BITS, SCORE_TERM_BOUND, Grid
from tests.each_case import each_case
from tests.oracles import taylor as taylor_oracle
from tests.privacy.noise_checks import faults_of_normal
from tests.taylor.seats import FACTOR_BITS, NOISE_KEY, Case, case_of, held_out_locally, randomisers

WEIGHTINGS: list[dict[str, bool]] = [
    {},
    {"masked": True},
    {"class_weights": True},
    {"masked": True, "class_weights": True},
]
weighted = pytest.mark.parametrize("weights", WEIGHTINGS, ids=lambda weights: "+".join(weights) or "plain")


def ready(key: PrivateKey, n_passive: int = 2, **changes: Any) -> tuple[Case, list[DataSeat]]:
    """Return parties after step 0, with some weights."""
    case = case_of(key, n_passive=n_passive, **changes)
    seats = case.seats()
    rng = np.random.default_rng(7)
    for seat in seats:
        seat.optimiser.weights = rng.normal(size=len(seat.optimiser.weights))
    taylor.local.share_locally(seats[0], seats[1:], case.parameters)
    return case, seats


def weights_of(seats: list[DataSeat]) -> dict[str, np.ndarray]:
    return {seat.name: seat.optimiser.weights for seat in seats}


def own_terms(case: Case, seat: DataSeat) -> np.ndarray:
    return case.grid.score_terms(case.grid.scores(seat.features[case.batch], seat.optimiser.weights))


def opened(vector: EncryptedVector[Any], case: Case) -> list[int]:
    return decrypt(vector, case.key).values.tolist()


# --- step 0 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
def test_step_0_factors_are_the_class_weights_of_rows_under_the_mask(
    insecure_test_key: PrivateKey, masked: bool
) -> None:
    case = case_of(insecure_test_key, class_weights=True, masked=masked)
    sent = taylor.steps.step_0_factors(case.seat(case.names[0]), case.grid)
    assert type(sent.ciphertext) is FreshCiphertext
    assert (sent.frac_bits, sent.bound) == (FACTOR_BITS, case.grid.factor_bound)
    assert opened(sent, case) == case.table.factors.tolist()
    assert (0 in opened(sent, case)) == masked


def test_step_0_a_party_without_class_weights_has_the_mask_or_nothing(insecure_test_key: PrivateKey) -> None:
    masked, plain = case_of(insecure_test_key, masked=True), case_of(insecure_test_key)
    seat = masked.seat(masked.names[1])
    assert taylor.steps.step_0_own_factors(seat, masked.grid) is seat.mask_enc
    assert taylor.steps.step_0_own_factors(plain.seat(plain.names[0]), plain.grid) is None
    with pytest.raises(LocalProtocolError, match="no factors"):
        taylor.steps.step_0_factors(seat, masked.grid)


def test_step_0_a_factor_past_its_bound_is_refused(insecure_test_key: PrivateKey) -> None:
    for masked in (False, True):
        case = case_of(insecure_test_key, class_weights=True, masked=masked)
        seat = case.seat(case.names[0])
        seat.factors = seat.factors + case.grid.factor_bound
        with pytest.raises(RangeError):
            taylor.steps.step_0_factors(seat, case.grid)


@weighted
@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_step_0_labels_and_mu(insecure_test_key: PrivateKey, weights: dict[str, bool], model: str) -> None:
    case, seats = ready(insecure_test_key, model=model, **weights)
    rows, grid = case.held_out, case.grid
    labels = taylor.hold_out.step_0_labels(seats[0], rows, grid)
    y = np.rint(case.table.y[rows] * 2**grid.label_bits).astype(np.int64)
    expected = case.table.row_factors(rows) * y
    assert opened(labels, case) == expected.tolist()
    mu = taylor.hold_out.step_0_mu(seats[1], rows, grid, labels)
    assert opened(mu, case) == (seats[1].features[rows].T @ expected).tolist()
    assert mu.frac_bits == grid.label_bits + grid.factor_bits + grid.feature_bits


# --- steps 1 and 2 ----------------------------------------------------------------------------------------


@weighted
@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_step_1_is_the_active_partys_part_of_the_residuals(
    insecure_test_key: PrivateKey, weights: dict[str, bool], model: str
) -> None:
    case, seats = ready(insecure_test_key, model=model, **weights)
    residuals = taylor.steps.step_1_residuals(seats[0], case.batch, case.grid)
    expected = case.table.row_factors(case.batch) * (own_terms(case, seats[0]) + case.table.label_terms[case.batch])
    assert opened(residuals, case) == expected.tolist()
    assert residuals.frac_bits == case.grid.weighted_residual_bits
    assert residuals.bound == case.grid.residual_bound_after(1) * case.grid.factor_bound


@weighted
def test_step_2_adds_a_passive_partys_part(insecure_test_key: PrivateKey, weights: dict[str, bool]) -> None:
    case, seats = ready(insecure_test_key, **weights)
    before = taylor.steps.step_1_residuals(seats[0], case.batch, case.grid)
    after = taylor.steps.step_2_add(seats[1], case.batch, case.grid, before)
    expected = case.table.row_factors(case.batch) * own_terms(case, seats[1])
    assert np.subtract(opened(after, case), opened(before, case)).tolist() == expected.tolist()
    assert after.bound == case.grid.residual_bound_after(2) * case.grid.factor_bound
    assert after.frac_bits == before.frac_bits


def test_step_1_belongs_to_the_active_party(insecure_test_key: PrivateKey) -> None:
    case, seats = ready(insecure_test_key)
    for step in (taylor.steps.step_1_residuals, taylor.hold_out.step_0_labels, taylor.hold_out.step_6_start):
        with pytest.raises(LocalProtocolError, match="active party"):
            step(seats[1], case.batch, case.grid)


def test_scores_past_their_bound_are_cut_in_residuals(insecure_test_key: PrivateKey) -> None:
    case, seats = diverged(insecure_test_key)
    sent = taylor.steps.step_1_residuals(seats[0], case.batch, case.grid)
    received = taylor.steps.step_2_add(seats[1], case.batch, case.grid, sent)
    largest = SCORE_TERM_BOUND << case.grid.residual_bits
    scores = case.grid.scores(seats[1].features[case.batch], seats[1].optimiser.weights)
    assert np.subtract(opened(received, case), opened(sent, case)).tolist() == (largest * np.sign(scores)).tolist()


def diverged(key: PrivateKey, **options: Any) -> tuple[Case, list[DataSeat]]:
    case, seats = ready(key, **options)
    for seat in seats:
        seat.optimiser.weights = np.full_like(seat.optimiser.weights, 1e4)
    return case, seats


# --- step 3 -------------------------------------------------------------------------------------------------


@weighted
@pytest.mark.parametrize("place", [0, 1])
def test_step_3_is_the_gradient_and_a_mask_that_its_owner_knows(
    insecure_test_key: PrivateKey, weights: dict[str, bool], place: int
) -> None:
    case, seats = ready(insecure_test_key, **weights)
    expected = taylor_oracle.gradient_sums(case.table, case.batch, case.grid, weights_of(seats))
    start = sum(case.parameters.columns[:place])
    residuals = residuals_of(case, seats)
    asked: list[int] = []
    uniform = seats[place].uniform
    seats[place].uniform = lambda m: (asked.append(m), uniform(m))[1]
    masked, rho = taylor.steps.step_3_gradient(seats[place], case.batch, case.grid, residuals)
    gradient = decrypt_packed(masked, case.key).values - np.array(rho, dtype=object)
    assert gradient.tolist() == expected[start : start + len(rho)]
    assert type(masked.ciphertext) is FreshCiphertext
    assert asked == [case.grid.hiding_bound(len(case.batch))] * len(rho)
    assert asked[0] > case.grid.gradient_bound(len(case.batch)) << HIDING_BITS
    assert len(set(rho)) == len(rho)


def residuals_of(case: Case, seats: list[DataSeat]) -> EncryptedVector[Any]:
    residuals = taylor.steps.step_1_residuals(seats[0], case.batch, case.grid)
    for seat in seats[1:]:
        residuals = taylor.steps.step_2_add(seat, case.batch, case.grid, residuals)
    return residuals


def test_step_3_packs_many_columns_into_few_ciphertexts(insecure_test_key: PrivateKey) -> None:
    case, seats = ready(insecure_test_key, n_passive=1, columns=(3, 23))
    masked, rho = taylor.steps.step_3_gradient(seats[1], case.batch, case.grid, residuals_of(case, seats))
    slots = (512 - 2) // case.grid.slot_bits(len(case.batch))
    assert (len(rho), len(masked.ciphertext)) == (23, -(-23 // slots))
    gradient = decrypt_packed(masked, case.key).values - np.array(rho, dtype=object)
    assert gradient.tolist() == taylor_oracle.gradient_sums(case.table, case.batch, case.grid, weights_of(seats))[3:]


# --- step 4 -------------------------------------------------------------------------------------------------


def test_step_4_answers_with_the_plaintext_and_the_noise_of_the_place(insecure_test_key: PrivateKey) -> None:
    case, seats = ready(insecure_test_key, noise_std=1.0)
    masked, _ = taylor.steps.step_3_gradient(seats[1], case.batch, case.grid, residuals_of(case, seats))
    where = (seats[1].name, 4, 1)
    answer = taylor.steps.step_4_answer(case.key_seat(), masked, case.parameters, where)
    noise = np.array(taylor.steps.integers_of(answer.values)) - decrypt_packed(masked, case.key).values
    assert noise.tolist() == case.noise(*where, len(masked))
    assert 0 not in noise.tolist()


def test_step_4_a_plaintext_that_no_masked_gradient_can_be_is_refused(insecure_test_key: PrivateKey) -> None:
    case, rows = case_of(insecure_test_key), 12
    bound = case.grid.gradient_bound(rows) + case.grid.hiding_bound(rows)
    wide = encrypt_packed(
        Fixed(np.array([0, -bound - 1], dtype=object), case.grid.gradient_bits),
        case.grid.slot_bits(rows),
        randomisers(case.key, 1),
    )
    claimed = replace(wide, bound=bound)
    with pytest.raises(MalformedMessage) as refused:
        taylor.steps.step_4_answer(case.key_seat(), claimed, case.parameters, ("shop", 0, 0))
    assert (refused.value.culprit, refused.value.field) == ("shop", "gradient")


def noise_of(case: Case, where: tuple[str, int, int], columns: int = 4, key: bytes = NOISE_KEY) -> list[int]:
    return taylor.gradient_noise(key, case.parameters, where, columns)


NOISES = [{"noise_std": 1.0}, {"noise_std": 0.0, "kept_noise_std": 1.0}, {"noise_std": 1.0, "kept_noise_std": 1.0}]


@each_case("noise", NOISES, ids=["fresh", "kept", "both"])
def test_noise_differs_by_party_batch_and_key_and_by_epoch_unless_kept(
    insecure_test_key: PrivateKey, noise: dict[str, float]
) -> None:
    case, kept = case_of(insecure_test_key, **noise), noise["noise_std"] == 0
    one = noise_of(case, ("shop", 3, 1))
    assert noise_of(case, ("shop", 3, 1)) == one
    others = [noise_of(case, ("bank", 3, 1)), noise_of(case, ("shop", 3, 2)), noise_of(case, ("shop", 3, 1), key=b"k")]
    later = noise_of(case, ("shop", 4, 1))
    assert (later == one) == kept
    assert len({tuple(noise) for noise in [one, later, *others]}) == (4 if kept else 5)


@pytest.mark.parametrize("class_weights", [False, True])
@pytest.mark.parametrize("noise_std", [1.0, 3.7])
def test_noise_has_the_standard_deviation_that_was_asked_for(
    insecure_test_key: PrivateKey, class_weights: bool, noise_std: float
) -> None:
    case = case_of(insecure_test_key, noise_std=noise_std, class_weights=class_weights)
    drawn = np.array(noise_of(case, ("shop", 0, 0), 5000), dtype=np.float64)
    assert faults_of_normal(np.ldexp(drawn, -case.grid.gradient_bits), noise_std) == []
    assert faults_of_normal(np.ldexp(drawn, -case.grid.gradient_bits), noise_std * 1.15) != []


def test_under_label_dp_fresh_noise_is_added_to_what_is_kept(insecure_test_key: PrivateKey) -> None:
    """Kept noise cancels in differences of a batch's gradients: what is left must be the fresh noise of two epochs."""
    case = case_of(insecure_test_key, noise_std=1.0, kept_noise_std=3.0)
    first, second = (np.array(noise_of(case, ("shop", epoch, 0), 5000), dtype=np.float64) for epoch in (0, 1))
    one = 2.0**case.grid.gradient_bits
    assert faults_of_normal(first / one, math.sqrt(10)) == []
    assert faults_of_normal((first - second) / one, math.sqrt(2)) == []


def test_without_noise_the_answer_is_exact(insecure_test_key: PrivateKey) -> None:
    case = case_of(insecure_test_key, noise_std=0.0)
    assert noise_of(case, ("shop", 0, 0)) == [0] * 4


@each_case(
    "values", [[], [0], [-1, 0, 1], [2**127 - 1, -(2**127)], [random.Random(1).randrange(-(2**100), 2**100)] * 3]
)
def test_octets_are_the_integers(values: list[int]) -> None:
    octets = taylor.steps.octets_of(values, 16)
    assert octets.shape == (len(values), 16)
    assert taylor.steps.integers_of(octets) == values


# --- step 5 -------------------------------------------------------------------------------------------------


def answer_of(values: list[int]) -> NoisyGradient:
    return NoisyGradient(taylor.steps.octets_of(values, 24))


def test_step_5_takes_the_mask_off_and_the_mean_over_the_batch(insecure_test_key: PrivateKey) -> None:
    parameters = case_of(insecure_test_key).parameters
    one, rho = 1 << parameters.grid.gradient_bits, [5, 1 << 90]
    gradient = taylor.steps.step_5_gradient(answer_of([3 * one + 5, (1 << 90) - one]), rho, 12, parameters)
    assert gradient.tolist() == [3 / 12, -1 / 12]


@pytest.mark.parametrize("kept_noise_std", [0.0, 5.0])
def test_step_5_a_number_past_gradient_and_noise_is_refused(
    insecure_test_key: PrivateKey, kept_noise_std: float
) -> None:
    parameters = case_of(insecure_test_key, kept_noise_std=kept_noise_std).parameters
    std = taylor.steps.fresh_noise_steps(parameters) + taylor.steps.steps_of_kept_noise(parameters)
    most = parameters.grid.gradient_bound(12) + taylor.parameters.NOISE_REACH * std
    rho = [7, 7]
    taylor.steps.step_5_gradient(answer_of([7 + most, 7 - most]), rho, 12, parameters)
    for wrong in ([7 + most + 1, 7], [7, 7 - most - 1], [7], [7, 7, 7], []):
        with pytest.raises(MalformedMessage) as refused:
            taylor.steps.step_5_gradient(answer_of(wrong), rho, 12, parameters)
        assert (refused.value.culprit, refused.value.field) == (parameters.key_node, "values")


# --- steps 6 and 7 ------------------------------------------------------------------------------------------


@weighted
@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_step_6_adds_up_to_the_hold_out_loss(
    insecure_test_key: PrivateKey, weights: dict[str, bool], model: str
) -> None:
    """After each party there are the scores of all parties up to it, and the loss without the others."""
    case, seats = ready(insecure_test_key, model=model, **weights)
    rows, grid = case.held_out, case.grid
    for n, (scores, loss) in enumerate(held_out_locally(seats, rows, grid), start=1):
        table = replace(case.table, blocks={name: case.table.blocks[name] for name in case.names[:n]})
        expected = taylor_oracle.mean_loss(table, rows, grid, weights_of(seats))
        found = float(decrypt(loss, case.key).to_reals()[0]) / len(rows)
        error = taylor_oracle.loss_error(table, rows, grid, weights_of(seats))
        assert abs(found - expected) <= error < 2e-5
        steps = sum(
            np.rint(np.ldexp(grid.scores(one.features[rows], one.optimiser.weights), grid.score_bits)).astype(np.int64)
            for one in seats[:n]
        )
        assert opened(scores, case) == (case.table.row_factors(rows) * steps).tolist()
        assert (type(scores.ciphertext), type(loss.ciphertext)) == (FreshCiphertext, FreshCiphertext)


@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_a_diverged_loss_stays_within_its_bound(insecure_test_key: PrivateKey, model: str) -> None:
    """The loss is that of bounded weights: a key node that got a larger one would end the job because of the rows."""
    case, seats = diverged(insecure_test_key, model=model)
    rows, grid = case.held_out, case.grid
    *_, (_scores, loss) = held_out_locally(seats, rows, grid)
    expected = taylor_oracle.mean_loss(case.table, rows, grid, weights_of(seats))
    assert float(decrypt(loss, case.key).to_reals()[0]) / len(rows) == pytest.approx(expected, rel=1e-6)
    assert expected > 100


def test_step_7_takes_the_mean_and_says_when_to_stop(insecure_test_key: PrivateKey) -> None:
    case = case_of(insecure_test_key, patience=1, tolerance=0.1)
    seat, bits = case.key_seat(), case.grid.loss_bits
    verdicts = [
        taylor.hold_out.step_7_verdict(seat, loss_of(case, round(9 * mean * 2.0**bits)), 9, case.parameters).go_on
        for mean in (0.75, 0.5, 0.45)
    ]
    assert verdicts == [1, 1, 0]
    assert seat.patience.losses == pytest.approx([0.75, 0.5, 0.45], abs=2.0**-40)


def test_step_7_a_loss_that_cannot_be_is_refused(insecure_test_key: PrivateKey) -> None:
    case = case_of(insecure_test_key)
    seat, bound = case.key_seat(), case.grid.loss_bound(9)
    wrong = replace(loss_of(case, bound + 1), bound=bound)
    with pytest.raises(MalformedMessage) as refused:
        taylor.hold_out.step_7_verdict(seat, wrong, 9, case.parameters)
    assert (refused.value.culprit, refused.value.field) == (case.names[-1], "loss")
    assert seat.patience.losses == []


def loss_of(case: Case, steps: int) -> EncryptedVector[Any]:
    return encrypt(Fixed(np.array([steps], dtype=object), case.grid.loss_bits), randomisers(case.key, 3))


# --- messages -----------------------------------------------------------------------------------------------


def test_a_gradient_in_slots_is_laid_out_as_the_key_node_reads_it(insecure_test_key: PrivateKey) -> None:
    case, seats = ready(insecure_test_key, n_passive=1, columns=(3, 9))
    masked, _ = taylor.steps.step_3_gradient(seats[1], case.batch, case.grid, residuals_of(case, seats))
    assert masked.layout == Layout.of(case.key.public_key, 9, case.grid.slot_bits(len(case.batch)))
    read = taylor.roles.receive_masked_gradient(
        taylor.messages.MaskedGradient(masked.ciphertext),
        seats[1].name,
        len(case.batch),
        case.key.public_key,
        case.parameters,
    )
    assert (read.layout, read.frac_bits) == (masked.layout, masked.frac_bits)
    assert decrypt_packed(read, case.key).values.tolist() == decrypt_packed(masked, case.key).values.tolist()


@pytest.mark.parametrize("place", [1, 2])
def test_step_6_scores_that_arrive_have_the_bound_of_all_parties_before(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of ciphertexts are checked against bounds: one that is too small would hide an overflow."""
    parameters = TaylorParameters(("a", "b", "c"), "k", (3, 3, 3), Grid("logistic", 2))
    monkeypatch.setattr(roles._Chain, "_receive", lambda _self, _scores, _rows, _bits, bound, _sender: bound)
    seat: Any = SimpleNamespace(name=parameters.data_parties[place])
    nothing: Any = None
    chain = roles._Chain(seat, parameters, nothing, nothing)
    largest_part = parameters.grid.score_bound * parameters.grid.factor_bound
    assert chain._scores_before(nothing, 5, "b") == place * largest_part
