"""If a party changes one message, all parties end, nothing is revealed, and the error names the party where it can."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, MacCheckFailed, MalformedMessage
from blindfit.algorithms.protocols.falcon import Trained
from tests.falcon.local import KEY_NODE, UNTESTED, Case, train
from tests.falcon.tampering import TAMPERED, Tamper

SMALL = {"epochs": 2, "patience": 1, "kept_bits": 4}


@dataclass(frozen=True)
class Training:
    """
    Attributes:
        tested: True to have test rows too, whose figures take half of a run.
    """

    n_parties: int
    tested: bool = False

    @property
    def case(self) -> Case:
        return Case(n_parties=self.n_parties, rows=160, options=SMALL if self.tested else SMALL | UNTESTED)


@cache
def undisturbed(training: Training) -> tuple[list[str], dict[str, Trained]]:
    """Return the messages of a run, and what each party ends with."""
    seen: list[str] = []

    def wire(_sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        if step in TAMPERED:
            seen.append(step)
        return data

    return seen, train(training.case, wire=wire)


def messages_of_a_run(training: Training) -> list[str]:
    return undisturbed(training)[0]


def one_run(training: Training, number: int, place: int) -> tuple[BlindfitError, tuple[str, str, str]]:
    """Return the first error, and what was changed; fail if the training went on to its end."""
    error, what = outcome(training, number, place)
    assert error is not None, f"{what}: not noticed"
    return error, what


def outcome(training: Training, number: int, place: int) -> tuple[BlindfitError | None, tuple[str, str, str]]:
    """Return the same as `one_run`; no error if nobody noticed, and the models are those of an undisturbed run."""
    tamper, error = Tamper(number, place), None
    try:
        same(train(training.case, wire=tamper.wire), undisturbed(training)[1])
    except (MacCheckFailed, MalformedMessage) as noticed:
        error = noticed
    assert tamper.what is not None
    return error, tamper.what


def same(models: dict[str, Trained], expected: dict[str, Trained]) -> None:
    for name, model in models.items():
        np.testing.assert_equal(asdict(model), asdict(expected[name]))


def check_named(error: BlindfitError, what: tuple[str, str, str], n_parties: int) -> None:
    """Check that a message that differs from its commitment, or another digest, names its sender between
    two parties.
    """
    sender, _receiver, step = what
    if isinstance(error, MalformedMessage) and step != "OpenedShares" and step != "MaskedInput":
        assert error.culprit == sender or n_parties > 2
    if step == "Correction":
        assert isinstance(error, MacCheckFailed)
    if step in ("MaskedInput", "CheckSeed", "Residue", "ResidueCommitment"):
        assert isinstance(error, MalformedMessage)  # digests and commitments are compared before any MAC


def check_noticed_or_unused(error: BlindfitError | None, what: tuple[str, str, str], n_parties: int) -> None:
    """Check that a change was noticed, or was in the set of bits that the comparison does not take.

    The key node deals two sets of bits for each comparison, and an opened uniform number discards one.
    """
    if error is None:
        assert what[2] == "Correction"
    else:
        check_named(error, what, n_parties)


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("step", TAMPERED)
def test_a_change_of_any_kind_of_message_ends_the_training(step: str, n_parties: int) -> None:
    """The first message of its kind and a late one."""
    training = Training(n_parties)
    numbers = [number for number, name in enumerate(messages_of_a_run(training), 1) if name == step]
    for number in (numbers[0], numbers[-2]):
        error, what = one_run(training, number, place=3)
        assert what[2] == step
        check_named(error, what, n_parties)


def test_a_change_is_noticed_before_a_weight_is_opened() -> None:
    """This holds for every message before the last round: no party has unmasked anything."""
    training = Training(2, tested=True)
    last = len(messages_of_a_run(training))
    for number in np.linspace(1, last, 6).astype(int).tolist():
        one_run(training, number, place=number)


@pytest.mark.soak
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("_of_ten_thousand", range(0, 10_000, 500))
def test_ten_thousand_single_changes_all_end_the_training(_of_ten_thousand: int) -> None:
    """Each run ends where its change is noticed, so half of a run on average."""
    counts = {Training(n, tested=True): len(messages_of_a_run(Training(n, tested=True))) for n in (2, 3)}
    for turn in range(500):
        training = Training(2 + turn % 2, tested=True)
        number = 1 + secrets.randbelow(counts[training])
        check_noticed_or_unused(*outcome(training, number, secrets.randbelow(2**20)), training.n_parties)


def test_a_dealt_bit_that_is_not_taken_is_the_only_change_without_consequence() -> None:
    """The test changes successive places of what is dealt for a comparison: some are in the set that is taken."""
    training = Training(2)
    number = max(n for n, name in enumerate(messages_of_a_run(training), 1) if name == "Correction")
    # the first comparison: weights against their limits
    ends = [outcome(training, number, place) for place in range(4)]
    for error, what in ends:
        check_noticed_or_unused(error, what, 2)
    assert {error is None for error, _ in ends} == {True, False}


def test_a_dealer_that_is_wrong_is_noticed_by_the_macs_or_by_lengths() -> None:
    """This does not hold in general: a key node that knows the MAC key can make the MACs fit
    (docs/explanation/falcon.md).
    """
    training = Training(2)
    numbers = [number for number, name in enumerate(messages_of_a_run(training), 1) if name == "Correction"]
    error, what = one_run(training, numbers[len(numbers) // 2], place=99)
    assert what[0] == KEY_NODE
    assert isinstance(error, MacCheckFailed)
