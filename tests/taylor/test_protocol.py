"""Taylor training with all roles agrees with `run_locally` and the plain table; its messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.paillier.ciphertexts import Randomisers
from blindfit.algorithms.paillier.kernel import Residues
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.vectors import decrypt
from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.protocols.taylor import Progress
from blindfit.algorithms.protocols.taylor.messages import ChainedResiduals, Residuals
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from tests.protocols.counts import assert_as_often
from tests.taylor.seats import KEY_NODE, QUICK, Case, Tap, case_of

MOMENTUM = OptimiserSettings(0.2, "inverse", decay=0.1, optimiser="momentum", momentum=0.7, l2=0.02)
SAG = OptimiserSettings(0.4, "exponential", decay=0.05, optimiser="sag", l1=0.01)

CASES: dict[str, dict[str, Any]] = {
    "one passive party": {},
    "two passive parties": {"n_passive": 2},
    "four passive parties": {"n_passive": 4, "epochs": 2},
    "linear": {"model": "linear"},
    "linear, four passive parties": {"model": "linear", "n_passive": 4, "epochs": 2},
    "class weights": {"class_weights": True, "n_passive": 2},
    "class weights, linear": {"class_weights": True, "model": "linear"},
    "mask": {"masked": True},
    "mask, linear": {"masked": True, "model": "linear", "n_passive": 2},
    "mask and class weights": {"masked": True, "class_weights": True, "n_passive": 2},
    "no penalty": {"settings": replace(QUICK, l2=0.0)},
    "momentum, l2, falling rate": {"settings": MOMENTUM, "epochs": 4},
    "sag, l1, exponential rate": {"settings": SAG, "epochs": 4, "n_batches": 3},
    "no noise, no jitter": {"noise_std": 0.0, "jitter": 0.0},
    "label DP": {"noise_std": 0.5, "kept_noise_std": 2.0, "jitter": 0.0, "hold_out_loss": False},
    "epochs fixed": {"hold_out_loss": False, "n_passive": 2},
    "stops early": {"settings": replace(QUICK, learning_rate=4.0), "patience": 1, "epochs": 9},
    "a wide party": {"columns": (3, 23), "epochs": 1},
    "coarser grids": {"grid": {"residual_bits": 14, "score_bits": 20, "label_bits": 10, "feature_bits": 8}},
    "coarser scores": {"grid": {"score_bits": 16, "label_bits": 2, "feature_bits": 6}, "n_passive": 2},
}


@pytest.mark.parametrize("name", CASES)
def test_the_roles_compute_what_the_specification_and_the_plain_table_say(
    insecure_test_key: PrivateKey, name: str
) -> None:
    case = case_of(insecure_test_key, **CASES[name])
    over_channels, locally = (case.seats(), case.key_seat()), (case.seats(), case.key_seat())
    epochs = case.run(*over_channels)
    expected = case.oracle()
    assert {*epochs, case.run_locally(*locally), expected.epochs} == {expected.epochs}
    assert (expected.epochs < case.parameters.epochs) == (name == "stops early")
    for one, other in zip(over_channels[0], locally[0], strict=True):
        assert one.optimiser.weights.tolist() == other.optimiser.weights.tolist() == expected.weights[one.name].tolist()
        assert one.uniform(2**64) == other.uniform(2**64)  # both drew as many masks
        assert next_randomiser(one, case) == next_randomiser(other, case)
        assert np.abs(one.optimiser.weights).max() > 0
    losses, same = over_channels[1].patience.losses, locally[1].patience.losses
    assert losses == same
    assert len(losses) == len(expected.losses) == (expected.epochs if case.parameters.hold_out_loss else 0)


NEEDED = ("two passive parties", "class weights", "mask and class weights", "label DP", "a wide party", "calibrated")


@pytest.mark.parametrize("name", NEEDED)
def test_each_party_draws_as_many_randomisers_as_it_needs(insecure_test_key: PrivateKey, name: str) -> None:
    case = case_of(insecure_test_key, **(CASES | {"calibrated": {"masked": True, "calibrate": True}})[name])
    seats = case.seats()
    for seat in seats:
        seat.randomisers = Counted(seat.randomisers)
    case.run(seats, case.key_seat())
    public_key, rows, parameters = insecure_test_key.public_key, len(seats[0].features), case.parameters
    assert {seat.name: seat.randomisers.drawn for seat in seats if isinstance(seat.randomisers, Counted)} == {
        party: taylor.randomisers_needed(party, public_key, case.plan, rows, parameters, parameters.epochs)
        for party in case.names
    }


class Counted:
    def __init__(self, source: Randomisers) -> None:
        self.public_key, self.drawn, self._source = source.public_key, 0, source

    def draw(self, count: int) -> Residues:
        self.drawn += count
        return self._source.draw(count)


def next_randomiser(seat: taylor.DataSeat, case: Case) -> list[int]:
    return case.key.public_key.kernel.integers(seat.randomisers.draw(1))


@pytest.mark.parametrize("name", [name for name, changes in CASES.items() if changes.get("hold_out_loss", True)])
def test_every_hold_out_loss_is_as_near_as_its_roundings_allow(insecure_test_key: PrivateKey, name: str) -> None:
    """The test compares each epoch with the bound that taylor_oracle.loss_error derives for that epoch's weights."""
    case = case_of(insecure_test_key, **CASES[name])
    key_seat = case.key_seat()
    epochs = case.run_locally(case.seats(), key_seat)
    first, of_first = 1.0, 0.0
    for epoch in range(epochs):
        after = case.with_parameters(epochs=epoch + 1).oracle()
        error, loss = case.loss_error(after.weights), after.losses[epoch]
        assert error < (1e-3 if "grid" in CASES[name] else 1e-5)
        if case.parameters.masked and epoch == 0:
            first, of_first = key_seat.patience.first, error
        assert abs(key_seat.patience.losses[epoch] - loss) <= (error + loss * of_first) / (first - of_first)


def test_a_row_outside_the_mask_counts_for_nothing(insecure_test_key: PrivateKey) -> None:
    """This holds for any features and label; a masked training is that of the rows inside, over all slots."""
    case = case_of(insecure_test_key, masked=True)
    outside = case.mask == 0
    blocks = {name: block.copy() for name, block in case.table.blocks.items()}
    for block in blocks.values():
        block[outside] = 3 << 12
    terms = case.table.label_terms.copy()
    terms[outside] = 1 << 20
    other = replace(
        case, table=replace(case.table, blocks=blocks, label_terms=terms, y=case.table.y * (1 - 2 * outside))
    )
    results = []
    for one in (case, other):
        seats, key_seat = one.seats(), one.key_seat()
        one.run_locally(seats, key_seat)
        results.append(([seat.optimiser.weights.tolist() for seat in seats], key_seat.patience.losses))
    assert outside.any()
    assert results[0] == results[1]


RESUMED: list[dict[str, Any]] = [{}, {"settings": MOMENTUM}, {"settings": SAG}, {"class_weights": True}]
RESUMED.append({"kept_noise_std": 2.0, "jitter": 0.0, "hold_out_loss": False})


@pytest.mark.parametrize("changes", RESUMED)
def test_a_resumed_training_ends_as_one_that_was_never_cut(
    insecure_test_key: PrivateKey, changes: dict[str, Any]
) -> None:
    """The key node's noise follows from its secret and the place, so a repeated step gets the same noise."""
    case = case_of(insecure_test_key, n_passive=2, **{"epochs": 3, "noise_std": 1.0, **changes})
    whole, key_seat = case.seats(), case.key_seat()
    case.run(whole, key_seat)
    first, first_key = case.seats(), case.key_seat()
    case.with_parameters(epochs=1).run(first, first_key)
    again, again_key = case.seats(run=1), case.key_seat()
    for seat, kept in zip(again, first, strict=True):
        seat.optimiser.restore(kept.optimiser.state())
    again_key.patience.losses = list(first_key.patience.losses)
    assert case.run(again, again_key, first_epoch=1) == [3, 3, 3, 3]
    assert [s.optimiser.weights.tolist() for s in again] == [s.optimiser.weights.tolist() for s in whole]
    assert again_key.patience.losses == key_seat.patience.losses


def test_an_epoch_is_kept_after_its_verdict(insecure_test_key: PrivateKey) -> None:
    """A checkpoint of a party that has not heard the verdict would be one epoch ahead of the others."""
    case = case_of(insecure_test_key, epochs=2)
    network = case.network()
    kept: list[tuple[int, int]] = []

    def keep(epoch: int, _go_on: bool) -> None:
        kept.append((epoch, sum(step == "Verdict" for _, _, step in network.sent)))

    case.run(case.seats(), case.key_seat(), network, progress=Progress(keep=keep))
    assert sorted(kept) == [(1, 2)] * 3 + [(2, 4)] * 3
    kept.clear()
    stops = case_of(insecure_test_key, **CASES["stops early"])
    epochs = stops.run(stops.seats(), stops.key_seat(), progress=Progress(keep=keep))
    assert [epoch for epoch, _ in kept].count(epochs[0]) == 3  # the last one too


def test_every_power_is_left_to_the_thread_that_a_role_is_given(insecure_test_key: PrivateKey) -> None:
    """A party that answers others while it trains must not block its event loop with long computations."""
    case, calls = case_of(insecure_test_key, epochs=1), 0

    async def counting(function: Any) -> Any:
        nonlocal calls
        calls += 1
        return function()

    case.run(case.seats(), case.key_seat(), in_thread=counting)
    data_party = 1 + 1 + 2 * (1 + 1) + 1  # factors, labels or mu, two batches of residuals and gradient, the loss
    key_node = 2 * 2 + 1  # an answer to each party and batch, the verdict
    assert calls == 2 * data_party + key_node


# --- what is sent ---------------------------------------------------------------------------------------------


def table_of(chain: tuple[str, str, str], batches: int, epochs: int, *, class_weights: bool, hold_out: bool) -> Counter:
    """Return the module's table for three data parties, as (sender, receiver, message)."""
    active, middle, last = chain
    sent = Counter({(KEY_NODE, party, "TaylorKey"): 1 for party in chain})
    for passive in (middle, last):
        sent[active, passive, "RowFactors"] = int(class_weights)
        sent[active, passive, "HoldOutLabels"] = int(hold_out)
    steps, losses = batches * epochs, epochs * hold_out
    for link in ((active, middle), (middle, last)):
        sent[*link, "ChainedResiduals"] = steps
        sent[*link, "PartialLoss"] = losses
    for other in (active, middle):
        sent[last, other, "Residuals"] = steps
    for party in chain:
        sent[party, KEY_NODE, "MaskedGradient"] = sent[KEY_NODE, party, "NoisyGradient"] = steps
        sent[KEY_NODE, party, "Verdict"] = losses
    sent[last, KEY_NODE, "HoldOutLoss"] = losses
    return +sent


@pytest.mark.parametrize("class_weights", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("hold_out", [False, True])
def test_what_is_sent_is_the_table_and_nothing_else(
    insecure_test_key: PrivateKey, class_weights: bool, masked: bool, hold_out: bool
) -> None:
    changes = {"class_weights": class_weights, "masked": masked, "hold_out_loss": hold_out}
    case = case_of(insecure_test_key, n_passive=2, epochs=2, **changes)
    network = case.network()
    case.run(case.seats(), case.key_seat(), network)
    expected = table_of(case.names, 2, 2, class_weights=class_weights, hold_out=hold_out)
    assert Counter(network.sent) == expected
    conditions = {"class weights": class_weights, "a hold-out loss": hold_out, "two passive parties or more": True}
    having = [what for what, is_there in conditions.items() if is_there]
    assert_as_often(taylor.TABLE, network.roles, network.sent, epochs=2, batches=2, having=having)
    assert not network.unread


def test_a_training_that_stops_early_sends_for_the_epochs_that_ran(insecure_test_key: PrivateKey) -> None:
    case = case_of(insecure_test_key, **CASES["stops early"])
    network = case.network()
    epochs = case.run(case.seats(), case.key_seat(), network)[0]
    assert epochs < case.parameters.epochs
    assert not network.unread
    having = ["a hold-out loss", *(["two passive parties or more"] if len(case.names) > 2 else [])]
    batches = len(case.plan.batches)
    assert_as_often(taylor.TABLE, network.roles, network.sent, epochs=epochs, batches=batches, having=having)


def wire_of(case: Case, run: int = 0) -> Tap:
    tap = Tap()
    case.run(case.seats(run), case.key_seat(), case.network(wire=tap))
    return tap


def test_no_ciphertext_is_sent_twice_and_none_without_a_randomiser(insecure_test_key: PrivateKey) -> None:
    """Only the last party's residuals go to several parties in a run; two runs on the same rows share no ciphertext."""
    case = case_of(insecure_test_key, n_passive=2, class_weights=True, masked=True, settings=replace(QUICK, l1=9.0))
    runs = [wire_of(case, run) for run in (0, 1)]
    sent = [[c for _, _, vector in tap.ciphertexts() for c in vector] for tap in runs]
    copies = sum(len(vector) for _, _, vector in runs[0].ciphertexts(Residuals)) // 2
    assert len(set(sent[0])) == len(sent[0]) - copies
    assert not set(sent[0]) & set(sent[1])
    assert all(c % case.key.public_key.n != 1 for c in (*sent[0], *sent[1]))


# --- the chain ------------------------------------------------------------------------------------------------


def quotients(sent: list[int], back: list[int], n: int) -> list[int]:
    return [b * pow(s, -1, n * n) % (n * n) for s, b in zip(sent, back, strict=True)]


def test_the_active_party_cannot_divide_the_chains_end_by_its_start(insecure_test_key: PrivateKey) -> None:
    """A quotient 1 + m n would be the passive parties' scores in the clear; re-randomised, none is 1 mod n."""
    case = case_of(insecure_test_key, n_passive=1)
    tap, n = wire_of(case), insecure_test_key.public_key.n
    active, passive = case.names
    sent = [vector for sender, _, vector in tap.ciphertexts(ChainedResiduals) if sender == active]
    back = [vector for _, receiver, vector in tap.ciphertexts(Residuals) if receiver == active]
    assert len(sent) == len(back) == 6
    for one, other in zip(sent, back, strict=True):
        assert all(quotient % n != 1 for quotient in quotients(one, other, n))
    assert passive != active


def test_without_re_randomising_the_quotient_is_the_score(insecure_test_key: PrivateKey) -> None:
    """The attack uses what step 2 makes before it re-randomises: it reads every score, to the last digit."""
    case, n = case_of(insecure_test_key, n_passive=1), insecure_test_key.public_key.n
    active, passive = case.seats()
    passive.optimiser.weights = np.array([0.7, -1.3])
    kernel, grid, batch = insecure_test_key.public_key.kernel, case.grid, case.batch
    sent = taylor.steps.step_1_residuals(active, batch, grid)
    own = grid.score_terms(grid.scores(passive.features[batch], passive.optimiser.weights))
    bare = taylor.steps.add_weighted(passive, batch, sent, own, grid.residual_bits)
    read = quotients(kernel.integers(sent.residues), kernel.integers(bare.residues), n)
    assert [quotient % n for quotient in read] == [1] * len(batch)
    assert [quotient // n for quotient in read] == [int(term) % n for term in own]
    hidden = taylor.steps.step_2_add(passive, batch, grid, sent)
    assert decrypt(hidden, case.key).values.tolist() == decrypt(bare, case.key).values.tolist()
    assert all(q % n != 1 for q in quotients(kernel.integers(sent.residues), kernel.integers(hidden.residues), n))


def test_parties_whose_terms_are_all_zero_still_re_randomise(insecure_test_key: PrivateKey) -> None:
    """With weights 0, as every training starts, a passive party adds nothing, and its message must not show that."""
    case = case_of(insecure_test_key, n_passive=3, epochs=1, n_batches=1)
    links = [vector for _, _, vector in wire_of(case).ciphertexts(ChainedResiduals)]
    links.append(wire_of(case).ciphertexts(Residuals)[0][2])
    assert len(links) == 4
    assert len({c for vector in links for c in vector}) == 4 * len(case.batch)


# --- learning -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_a_rate_that_is_too_large_ends_no_training(insecure_test_key: PrivateKey, model: str) -> None:
    """The time and the place of an end would reveal what rows hold; the weights are those of the same plain
    computation.
    """
    settings = replace(QUICK, learning_rate=60.0)
    case = case_of(insecure_test_key, model=model, settings=settings, epochs=20)
    seats = case.seats()
    case.run(seats, case.key_seat())
    expected = case.oracle()
    for seat in seats:
        np.testing.assert_array_equal(seat.optimiser.weights, expected.weights[seat.name])
    assert max(seat.optimiser.shortened for seat in seats) == len(case.plan.batches)


def test_progress_is_told_batch_by_batch(insecure_test_key: PrivateKey) -> None:
    case = case_of(insecure_test_key, epochs=2)
    told: list[tuple[str, int, int]] = []
    case.run(case.seats(), case.key_seat(), progress=Progress(report=lambda *step: told.append(step)))
    expected = [(f"epoch {epoch}", batch, 2) for epoch in (1, 2) for batch in (0, 1)]
    assert Counter(told) == Counter(expected * 3)
