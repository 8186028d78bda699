"""What others can tell today and should not: each of these is expected to fail until it is mended, and then not to.

The line goes with the change that mends it; a test that passes in spite of a line here fails.
"""

from __future__ import annotations

from tests.interference.neighbours import Pair

_NO_SNAPSHOT = (
    "no snapshot: a job reads the source as it is now, so asking the same again tells that a label changed "
    "(another version, no remembered answer, another charge)"
)
_ONE_CLASS = "refused before anything is charged where {} are all of one class, under a split that the asker chooses"
_CONSTANT = "refused where a column is constant on the training rows, which are known to whoever chose the seed"
_WIDTH = "a column that is constant on the training rows is dropped, and the number of columns is told to all"
_ALL = ("*",)

LEAKS: dict[str, tuple[tuple[str, ...], str]] = {
    "walr-between-jobs": (_ALL, _NO_SNAPSHOT),
    "label-dp-between-jobs": (_ALL, _NO_SNAPSHOT),
    "dp-lr-between-jobs": (_ALL, _NO_SNAPSHOT),
    "walr-unknown-a-row-of-zero": (
        ("coordinator",),
        "the server's summary tells the exact number of its rows (dataset_rows), where absence counts as label 0",
    ),
    "walr-unknown-a-row": (
        ("coordinator",),
        "the server's summary tells the exact number of its rows (dataset_rows), where absence counts as label 0",
    ),
    "walr-outlier-clipped": (
        ("coordinator",),
        "the consumer's summary tells how many of its rows were longer than the bound (rows.clipped)",
    ),
    "walr-constant-in-training": (_ALL, _CONSTANT),
    "label-dp-constant-in-training": (_ALL, _CONSTANT + ": after the release, so the server sees no further call"),
    "dp-lr-class-alone-in-training": (_ALL, _ONE_CLASS.format("the rows to train on")),
    "dp-lr-add-or-remove-a-row": (
        _ALL,
        "add-or-remove is claimed, and progress (rows read) and summary (rows.trained, fit.learning_rate, "
        "fit.gradient_noise_std) tell the exact number of rows",
    ),
    "dp-lr-add-or-remove-a-row-at-the-least": (
        _ALL,
        "add-or-remove is claimed, and policy.least_rows is held against the exact number of rows, as TooFewRows tells",
    ),
    "taylor-class-alone-in-training": (_ALL, _ONE_CLASS.format("the training rows")),
    "taylor-class-alone-in-test": (_ALL, _ONE_CLASS.format("the test rows")),
    "taylor-label-dp-class-alone-in-training": (_ALL, _ONE_CLASS.format("the training rows")),
    "taylor-label-dp-class-alone-in-test": (_ALL, _ONE_CLASS.format("the test rows")),
    "taylor-weights-rare-class": (
        _ALL,
        "refused where a class's weight would pass its bound, and so by a count of labels",
    ),
    "taylor-linear-one-price-in-training": (_ALL, "refused where every label of the training rows is the same"),
    "taylor-linear-far-price-in-test": (
        _ALL,
        "refused (RANGE) in the midst of the training where a held-out label is 16 standard deviations of the training "
        "labels from their mean",
    ),
    "taylor-outlier": (
        ("coordinator",),
        "a passive party's summary tells how many of its rows stood out (rows.shrunk)",
    ),
    "taylor-outlier-refused": (
        _ALL,
        'leverage = "refuse": the refusal names batch, row and leverage to the coordinator, and its being there tells '
        "everybody that a row stands out",
    ),
    "taylor-constant-in-training": (_ALL, _CONSTANT),
    "taylor-active-constant-in-training": (_ALL, _CONSTANT),
    "taylor-label-dp-constant-in-training": (_ALL, _CONSTANT),
    "taylor-constant-in-training-dropped": (_ALL, _WIDTH + " (Ready.columns, rows.features, rows.dropped_columns)"),
}
"""By pair: which observers, and why."""

FIELDS = ("summary/rows.shrunk", "summary/rows.clipped")
"""Which of them random settings meet again and again, and disregard."""

NOT_RANDOM: dict[str, str] = dict.fromkeys(
    ("walr", "walr-persons", "walr-unknown", "label-dp", "label-dp-persons"),
    "a dataset's version is a plain hash of its ids, persons and labels",
)
"""By system: ids that a second run on the same data gives again."""


def leak(pair: Pair, observer: str) -> str:
    """Why the pair can be told apart today; empty where it cannot."""
    observers, reason = LEAKS.get(pair.id, ((), ""))
    return reason if observers == _ALL or observer in observers else ""
