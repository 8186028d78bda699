"""The lines of a transcript: every arrow's step and what is read, from the tables."""

from __future__ import annotations

import json

from blindfit.algorithms.protocols import handshake
from blindfit.parties.sessions.transcript import Transcript
from blindfit.parties.systems import system
from tests.each_case import each_case

# Transcripts that are kept have these words, and their readers compare lines with them.
LINES = {
    "Hello": ("handshake", "members and public parameters"),
    "TaylorKey": ("taylor 0", "the public key"),
    "SetSize": ("align 1", "the size of a set"),
    "SetSizes": ("align 2", "the sizes of the sets"),
    "PassedPoints": ("align 3, 4", "nothing: blinded points"),
    "BlindedPoints": ("align 4", "the shuffled positions that match"),
    "CommonRows": ("align 5", "own common rows"),
    "Outcome": ("align 5, link 2", "whether enough rows match"),
    "Known": ("draw 1", "whether the sender still has the earlier draw"),
    "Commitment": ("draw 2", "nothing: a commitment"),
    "Opening": ("draw 3", "the sender's part of the draw"),
    "KeyShare": ("link 0", "half of the filters' secret"),
    "Filters": ("link 1", "the likeness of keyed filters"),
    "Slots": ("link 3", "own rows' slots; nothing about the mask"),
    "Ready": (
        "ready 1",
        "number of columns, checkpoints, names of draws, the session that answered a training",
    ),
    "Stored": ("ready 3", "that a party has stored its part"),
    "RowFactors": ("taylor 0", "nothing: ciphertexts"),
    "ReceiptAsked": ("receipts 1", "the name of the population that pays"),
    "ReceiptHeld": ("receipts 2", "its own receipt of an earlier charge"),
    "ReceiptGiven": ("receipts 3", "the releases charged to the population"),
    "HoldOutLabels": ("taylor 0", "nothing: ciphertexts"),
    "ChainedResiduals": ("taylor 1, 2", "nothing: ciphertexts"),
    "Residuals": ("taylor 2", "nothing: ciphertexts"),
    "MaskedGradient": ("taylor 3", "a gradient plus a uniform mask"),
    "NoisyGradient": ("taylor 4", "own noisy gradient"),
    "PartialLoss": ("taylor 6", "nothing: ciphertexts"),
    "HoldOutLoss": ("taylor 6", "the hold-out loss"),
    "Verdict": ("taylor 7", "go on or stop"),
    "GridFigures": ("taylor 7", "a rounded loss of each grid point"),
    "GridChoice": ("taylor 7", "the grid point with the lowest loss"),
    "PartialSums": ("taylor 8", "nothing: ciphertexts"),
    "CalibrationSums": ("taylor 8", "five sums over matches"),
    "Calibration": ("taylor 9", "slope and offset"),
    "MaskSeed": ("predict 1", "a mask shared with another passive party"),
    "MaskedScores": ("predict 2", "a part of scores, masked with two or more passive parties"),
}
IN_CHUNKS = {"PassedPoints", "BlindedPoints", "CommonRows", "Slots"}


def lines_of(protocol: str, kinds: list[str]) -> list[dict[str, object]]:
    transcript = Transcript((handshake.TABLE, *system(protocol).tables()))
    for kind in kinds:
        transcript.add("shop", kind, b"12")
    return [json.loads(line) for line in transcript.encode().splitlines()]


def test_every_message_of_a_training_has_its_line() -> None:
    lines = lines_of("taylor", list(LINES))
    assert {line["kind"]: (line["step"], line["opened"]) for line in lines} == LINES
    names = {arrow.message.__name__ for table in system("taylor").tables() for arrow in table.arrows}
    assert names | {"Hello"} == set(LINES)


@each_case("kind", LINES)
def test_chunks_of_one_sender_are_one_line(kind: str) -> None:
    lines = lines_of("taylor", [kind, kind])
    assert [line["messages"] for line in lines] == ([2] if kind in IN_CHUNKS else [1, 1])
    assert sum(int(str(line["bytes"])) for line in lines) == 4


def test_a_prediction_has_only_its_own_steps() -> None:
    (line,) = lines_of("predict", ["Outcome"])
    assert line["step"] == "align 5"
    (unheard,) = lines_of("predict", ["Verdict"])
    assert (unheard["step"], unheard["opened"]) == ("", "not in the table")
