"""The deal of rows: every row is accounted for, the overlap is as requested, and seed and repeat decide everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.coordinator.simulate.asked import Asked
from blindfit.coordinator.simulate.deal import deal_rows, draw_gaps

shares = st.floats(0.3, 1.0)


@st.composite
def deals(draw: st.DrawFn) -> tuple[np.ndarray, list[str], Asked, bool]:
    rows, parties = draw(st.integers(6000, 8000)), draw(st.integers(2, 5))
    is_number, seed = draw(st.booleans()), draw(st.integers(0, 2**40))
    labels = np.random.default_rng(seed).random(rows) if is_number else (np.arange(rows) % 5 == 0).astype(float)
    asked = Asked(
        "y",
        parties=parties,
        overlap=draw(shares),
        duplicates=draw(st.sampled_from([0.0, 0.0, 0.1])),
        missing=draw(st.sampled_from([0.0, 0.2])),
        shuffle=draw(st.booleans()),
        test_fraction=draw(st.floats(0.1, 0.5)),
        seed=seed,
    )
    return labels, [f"party-{i}" for i in range(1, parties + 1)], asked, is_number


@settings(max_examples=60, deadline=None)
@given(deals(), st.integers(0, 3))
def test_every_row_is_accounted_for(deal: tuple[np.ndarray, list[str], Asked, bool], repeat: int) -> None:
    labels, parties, asked, is_number = deal
    dealt = deal_rows(labels, parties, asked, repeat, label_is_number=is_number)
    everyone = np.arange(len(labels))
    assert np.array_equal(np.sort(np.concatenate([dealt.held_out, dealt.training])), everyone)
    assert abs(len(dealt.held_out) - asked.test_fraction * len(labels)) <= 1
    for party in parties:
        rows = dealt.by_party[party]
        assert len(np.unique(rows)) == len(rows)
        assert not np.isin(rows, dealt.held_out).any()
        assert np.isin(dealt.common, rows).all()
        kept = len(rows) + dealt.twice[party]
        assert dealt.twice[party] == round(asked.duplicates * kept)
    all_rows = np.concatenate(list(dealt.by_party.values()))
    counts = np.bincount(all_rows, minlength=len(labels))
    assert np.array_equal(np.flatnonzero(counts == len(parties)), np.sort(dealt.common))
    if not asked.duplicates:
        assert set(counts[dealt.training]) <= {1, len(parties)}  # no training row is lost, or belongs to some parties
        for rows in dealt.by_party.values():
            assert abs(len(dealt.common) / len(rows) - asked.overlap) < 3 / len(rows)
    if not is_number:
        share = labels.mean()
        assert abs(labels[dealt.held_out].mean() - share) < 2 / len(dealt.held_out)


@settings(max_examples=20, deadline=None)
@given(deals())
def test_seed_and_repeat_decide_everything(deal: tuple[np.ndarray, list[str], Asked, bool]) -> None:
    labels, parties, asked, is_number = deal

    def held_out_and_owners(asked: Asked, repeat: int) -> tuple[np.ndarray, ...]:
        dealt = deal_rows(labels, parties, asked, repeat, label_is_number=is_number)
        return (dealt.held_out, dealt.training, dealt.common, *dealt.by_party.values())

    first = held_out_and_owners(asked, 0)
    assert all(map(np.array_equal, first, held_out_and_owners(asked, 0)))
    assert not np.array_equal(first[0], held_out_and_owners(asked, 1)[0])
    assert not np.array_equal(first[0], held_out_and_owners(replace(asked, seed=asked.seed + 1), 0)[0])
    others = held_out_and_owners(replace(asked, missing=0.5, shuffle=not asked.shuffle), 0)
    assert all(np.array_equal(np.sort(one), np.sort(other)) for one, other in zip(first, others, strict=True))
    assert np.array_equal(first[0], held_out_and_owners(replace(asked, overlap=0.5, duplicates=0.05), 0)[0])


@settings(max_examples=20, deadline=None)
@given(deals(), st.integers(0, 3))
def test_gaps_are_the_share_that_is_asked_for(deal: tuple[np.ndarray, list[str], Asked, bool], repeat: int) -> None:
    labels, parties, asked, is_number = deal
    dealt = deal_rows(labels, parties, asked, repeat, label_is_number=is_number)
    gaps = draw_gaps(dealt.training, ["a", "b"], asked, repeat)
    for rows in gaps.values():
        assert len(np.unique(rows)) == round(asked.missing * len(dealt.training))
        assert not np.isin(rows, dealt.held_out).any()
    assert not asked.missing or not np.array_equal(gaps["a"], gaps["b"])


def test_rows_are_in_one_order_unless_they_are_shuffled() -> None:
    labels = (np.arange(600) % 2).astype(float)
    plain = deal_rows(labels, ["a", "b"], Asked("y", shuffle=False), 0, label_is_number=False)
    assert all((np.diff(rows) > 0).all() for rows in (plain.common, plain.training, *plain.by_party.values()))
    mixed = deal_rows(labels, ["a", "b"], Asked("y"), 0, label_is_number=False)
    assert not np.array_equal(mixed.by_party["a"], mixed.by_party["b"])
