"""Rows that stand out in their party's columns: 2,000 rows, labels that nothing else reveals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.attacks.lone_rows import ATTACKED, Flags, attack, label_dp, median_error
from tests.attacks.views import DEFAULTS, Setting, most_right_within, without_defences

BOTH = pytest.mark.parametrize("ones", ATTACKED)


@BOTH
def test_without_defences_a_lone_row_gives_its_label(ones: Flags) -> None:
    assert attack(ones, without_defences()).share > 0.99


@BOTH
def test_jitter_and_noise_do_not_hide_a_lone_row_but_it_stands_out(ones: Flags) -> None:
    guesses = attack(ones, replace(DEFAULTS, shorten=False))
    assert guesses.share > 0.95
    assert all(guesses.stood_out)


@BOTH
def test_a_shortened_row_does_not_stand_out_and_its_label_stays_in_doubt(ones: Flags) -> None:
    """A guess is right with probability 0.79 at a leverage of 0.5 and a jitter of 0.25."""
    guesses = attack(ones, DEFAULTS)
    assert not any(guesses.stood_out)
    assert guesses.share < 0.79 + 0.1


# --- label DP: it covers the label, not the others' score of the row ------------------------------------------


@BOTH
def test_under_label_dp_a_lone_rows_label_is_guessed_no_better_than_epsilon_allows(
    ones: Flags,
) -> None:
    guesses = attack(ones, Setting(epsilon=0.5, shorten=False, epochs=3))
    assert guesses.share <= most_right_within(0.5, len(guesses.right))


def test_under_label_dp_a_lone_rows_score_is_read_where_nothing_hides_it() -> None:
    assert median_error(label_dp(0, shorten=False, gradient_noise=0.0)) < 1e-3


@pytest.mark.parametrize("changes", [{"gradient_noise": 0.0}, {"shorten": False}, {}], ids=["short", "noise", "both"])
def test_under_label_dp_shortening_hides_it_and_fresh_noise_too(changes: dict[str, object]) -> None:
    assert median_error(label_dp(0, **changes)) > 0.3
