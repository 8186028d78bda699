"""Scores in shares equal those of the weights that nobody knows, and deviating parties are caught."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from blindfit.algorithms.errors import BlindfitError, MacCheckFailed, MalformedMessage, SharesDoNotFit
from blindfit.algorithms.protocols import shared_scores
from blindfit.algorithms.protocols.falcon import messages
from blindfit.algorithms.protocols.falcon.seats import DataSeat, coefficients_of
from blindfit.algorithms.protocols.shared_scores import ModelTold, program
from blindfit.algorithms.protocols.shared_scores.parameters import bits_to_drop, part_bits
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.field import P
from blindfit.algorithms.sharing.kept import KeptShares
from blindfit.parties.wire import codec
from tests.falcon.local import KEY_NODE, UNTESTED, train
from tests.falcon.tampering import TAMPERED, Tamper
from tests.protocols.counts import assert_as_often
from tests.shared_scores.local import KEPT_BITS, LIMIT, Scoring, case_of, changed, shares_of, trained

SCALE = 12 + KEPT_BITS


def rounded(part: np.ndarray, bits: int) -> np.ndarray:
    dropped, limit = bits_to_drop(bits, LIMIT, SCALE), round(LIMIT * 2**SCALE)
    return (np.clip(part, -limit, limit) >> dropped << dropped) + (1 << dropped >> 1)


# --- what it computes -------------------------------------------------------------------------------------


def test_weights_are_kept_as_they_would_be_opened() -> None:
    case = case_of(3, weights_stay_shared=False, **UNTESTED)
    opened = np.concatenate([train(case)[name].weights for name in case.parameters.data_parties])
    assert np.array_equal(Scoring(3).weights, opened * 2**KEPT_BITS)
    assert all(model.weights.size == 0 for model in trained(3).values())
    assert trained(3)[KEY_NODE].kept is not None
    assert not shares_of(trained(3)[KEY_NODE]).flat.any()  # the key node's are zeros


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("macs", [True, False])
@pytest.mark.parametrize("bits", [0, 8])
def test_scores_are_exact_but_for_the_rounding_that_a_part_asks_for(n_parties: int, macs: bool, bits: int) -> None:
    scoring = Scoring(n_parties, macs=macs, bits=bits)
    network = scoring.network()
    scores = scoring.run(network)
    parts = [scoring.part(place) for place in range(n_parties)]
    expected = sum(parts) if not bits else parts[0] + sum(rounded(part, bits) for part in parts[1:])
    assert np.array_equal(scores["hospital"], expected)
    assert [scores[name] for name in scoring.parties[1:]] == [None] * (n_parties - 1)
    having = [shared_scores.SHARED, *([arrow.only_with for arrow in shared_scores.TABLE.arrows] if macs else [])]
    assert_as_often(shared_scores.TABLE, network.roles, network.sent, having=having)
    assert not network.unread


def test_parts_past_the_limit_are_clipped() -> None:
    scoring = Scoring(limit=1.0, bits=6, scaled=3.0)
    part = scoring.part(1)
    assert np.abs(part).max() > 2**SCALE
    scores = scoring.run()["hospital"]
    assert scores is not None
    assert np.abs(scores - scoring.part(0)).max() <= 2**SCALE * (1 + 2**-5)


def test_rows_in_blocks_are_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Scoring(bits=8).run()["hospital"]
    monkeypatch.setattr(program, "BLOCK_PARTS", 7)
    assert np.array_equal(Scoring(bits=8).run()["hospital"], whole)


def test_a_part_is_rounded_alike_whatever_the_others_put_in() -> None:
    """Otherwise a party that shifts the sum, again and again, would find the part itself."""
    first, second = Scoring(bits=6), Scoring(bits=6, run_name="predict-2")
    second.features[0] = second.features[0] + 37
    scores = [scoring.run()["hospital"] for scoring in (first, second)]
    assert scores[0] is not None
    assert scores[1] is not None
    assert np.array_equal(scores[0] - first.part(0), scores[1] - second.part(0))


@pytest.mark.parametrize("limit", [12.0, 28.0, 56.0])
@pytest.mark.parametrize("bits", range(4, 17))
def test_a_part_has_no_more_bits_than_it_asks_for(limit: float, bits: int) -> None:
    dropped = bits_to_drop(bits, limit, SCALE)
    assert bits - 1.6 < part_bits(limit, SCALE, dropped) <= bits


# --- what a party keeps --------------------------------------------------------------------------------------


def test_what_a_party_keeps_is_uniform() -> None:
    """The test takes many trainings of one model: shares of equal weights, their MACs and the key."""
    kept = [train(case_of(epochs=1, **UNTESTED), run=f"run-{number}") for number in range(8)]
    for name in ("hospital", "laboratory"):
        # the key follows only from the seed
        numbers = np.concatenate([shares_of(model[name]).flat[:-1] for model in kept])
        found = np.bincount((numbers.astype(np.float64) / P * 10).astype(int), minlength=10)
        expected = len(numbers) / 10
        assert ((found - expected) ** 2 / expected).sum() < chi2.isf(1e-6, 9)


def test_shares_do_not_show_in_a_repr() -> None:
    kept = shares_of(trained()["hospital"])
    for text in (
        repr(kept),
        repr(kept.share),
        repr(trained()["hospital"]),
        repr(program.HeldRows(np.zeros((1, 1), int), kept)),
    ):
        assert str(kept.flat[0]) not in text


# --- shares that do not fit -----------------------------------------------------------------------------------


def kept_of(name: str) -> KeptShares:
    return shares_of(trained()[name])


@pytest.mark.parametrize("place", [0, 7, 8, 16])
@pytest.mark.parametrize("party", ["hospital", "laboratory"])
def test_another_number_than_the_one_kept_ends_the_prediction(party: str, place: int) -> None:
    """The changed number is a weight's share, that of the number that nobody knows, a MAC, or the key."""
    called: list[str] = []
    scoring = Scoring(kept={party: changed(kept_of(party), place)}, before_scores=called.append)
    with pytest.raises(SharesDoNotFit, match="do not fit together"):
        scoring.run()
    assert not called


@pytest.mark.parametrize("are_known", [False, True])
def test_what_is_put_in_cannot_be_made_for_coefficients_that_are_known(
    are_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes of two numbers cancel out in the check, if a party knows the coefficients when it sends its numbers.

    Args:
        are_known: without the check that draws them.
    """
    scoring = Scoring()
    length = len(kept_of("laboratory").share)
    x = [int(each) for each in coefficients_of(scoring.run_name).elements("kept shares", (length,))]
    by = x[1] * pow(x[0], -1, P) % P  # x_0 (-by) + x_1 = 0
    scoring.held_shares["laboratory"] = changed(changed(kept_of("laboratory"), 0, -by), 1)
    if are_known:
        without_the_first_check(monkeypatch)
        assert scoring.run()["hospital"] is not None
    else:
        with pytest.raises(SharesDoNotFit):
            scoring.run()


def without_the_first_check(monkeypatch: pytest.MonkeyPatch) -> None:
    checked, made = DataSeat.check, set[DataSeat]()

    async def but_the_first(seat: DataSeat) -> None:
        if seat in made:
            await checked(seat)
        made.add(seat)

    monkeypatch.setattr(DataSeat, "check", but_the_first)


def test_shares_of_another_training_do_not_fit() -> None:
    other = shares_of(train(case_of(**UNTESTED), run="another")["laboratory"])
    with pytest.raises(SharesDoNotFit):
        Scoring(kept={"laboratory": other}).run()


def test_who_guesses_all_weights_is_not_told_that_the_guess_is_right() -> None:
    """a + 1 with m + w passes a check of weights only; here the check includes the number behind them, which nobody
    knows.
    """
    kept, weights = kept_of("laboratory"), Scoring().weights
    assert kept.share.mac is not None
    assert kept.mac_key_share is not None
    behind = f.total([kept_of(name).share.value for name in ("hospital", "laboratory")])[-1:]

    def moved(last: np.ndarray) -> KeptShares:
        by = np.concatenate([f.elements(weights), last])
        mac = f.add(kept.share.mac, by)  # type: ignore[arg-type]
        return KeptShares(replace(kept.share, mac=mac), f.add(kept.mac_key_share, f.elements([1])))  # type: ignore[arg-type]

    with pytest.raises(SharesDoNotFit):
        Scoring(kept={"laboratory": moved(f.elements([12345]))}).run()
    assert Scoring(kept={"laboratory": moved(behind)}).run()["hospital"] is not None  # this number is the protection


# --- who deviates ----------------------------------------------------------------------------------------------


@cache
def steps_of_a_run() -> list[str]:
    seen: list[str] = []

    def wire(_sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        seen.extend([step] if step in TAMPERED else [])
        return data

    scoring = Scoring(bits=8)
    scoring.run(scoring.network(wire))
    return seen


@pytest.mark.parametrize("step", TAMPERED)
def test_a_changed_message_ends_the_prediction_and_not_the_model(step: str) -> None:
    numbers = [number for number, name in enumerate(steps_of_a_run(), 1) if name == step]
    for number in {
        numbers[0],
        numbers[len(numbers) // 2],
        numbers[-1 if step in ("OpenedShares", "Correction") else -2],
    }:
        tamper, scoring = Tamper(number, place=2), Scoring(bits=8)
        error = ended(scoring, tamper)
        assert tamper.what is not None
        assert tamper.what[2] == step
        assert isinstance(error, MacCheckFailed | MalformedMessage | SharesDoNotFit)
    again = Scoring(bits=8, run_name="predict-2")
    assert np.array_equal(again.run()["hospital"], again.part(0) + rounded(again.part(1), 8))


def ended(scoring: Scoring, tamper: Tamper) -> BlindfitError:
    with pytest.raises(BlindfitError) as error:
        scoring.run(scoring.network(tamper.wire))
    return error.value


def test_a_prediction_masks_with_seeds_of_its_own() -> None:
    """An input that is sent twice under one name gets new masks: none follows from the training or
    another prediction.
    """
    sent: list[np.ndarray] = []

    def wire(sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        if (sender, step) == ("hospital", "MaskedInput"):
            sent.append(codec.decode(data, messages.MaskedInput, culprit=sender).values)
        return data

    for _ in range(2):
        scoring = Scoring()
        scoring.run(scoring.network(wire))
    half = len(sent) // 2
    assert all(not np.any(a == b) for a, b in zip(sent[:half], sent[half:], strict=True))


# --- reports about the model --------------------------------------------------------------------------------------


def test_models_that_differ_are_refused_with_whose_it_is() -> None:
    told = {name: Scoring().told(name) for name in ("hospital", "laboratory")}
    for change in (
        {"kept_bits": 6},
        {"columns": np.array([4, 4])},
        {"score_limit": 12.0},
        {"macs": 0},
        {"score_bits": 3},
    ):
        wrong = told | {"laboratory": replace(told["laboratory"], **change)}  # type: ignore[arg-type]
        with pytest.raises(MalformedMessage) as error:
            shared_scores.parameters_of(wrong, ("hospital", "laboratory"), KEY_NODE, 30)
        assert error.value.culprit == "laboratory"


def test_shares_at_some_and_weights_at_others_are_refused() -> None:
    class Mixed(Scoring):
        def told(self, name: str) -> ModelTold:
            return super().told(name) if name == "hospital" else ModelTold.of_open_weights()

    with pytest.raises(MalformedMessage, match="by only some of the data parties"):
        Mixed().run()
