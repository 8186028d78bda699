"""The model of a link and of TCP's slow start, by a clock of its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.coordinator.job.network import Line
from blindfit.coordinator.running.network.link import (
    FIRST_WINDOW_BYTES,
    IDLE_S,
    MOST_WINDOW_BYTES,
    QUEUE_S,
    SEGMENT_BYTES,
    Link,
    Window,
)

ROUND_TRIP_S = 0.08


@given(
    st.lists(st.tuples(st.integers(0, 100_000), st.floats(0, 1)), min_size=1),
    st.floats(1e4, 1e9),
    st.floats(0, 5),
)
def test_no_byte_arrives_before_the_link_has_carried_all_bytes_before_it(
    sent: list[tuple[int, float]], bits_per_s: float, latency_s: float
) -> None:
    link, now, began, total, last = Link(Line(latency_s, 0.0, bits_per_s)), 0.0, sent[0][1], 0, 0.0
    for size, wait_s in sent:
        now += wait_s
        total += size
        arrival = link.carry(size, now)
        assert arrival >= last
        assert arrival >= now + latency_s + size * 8 / bits_per_s - 1e-9
        assert arrival >= began + latency_s + total * 8 / bits_per_s - 1e-9
        last = arrival


def test_a_link_without_limit_adds_the_latency_and_the_drawn_jitter() -> None:
    link = Link(Line(0.04, 0.01), draw=lambda low, high: low + (high - low) / 4)
    assert link.carry(10**6, 3.0) == pytest.approx(3.0425)
    assert link.find_room_at(3.0) == 3.0
    drawn = [Link(Line(0.04, 0.01)).carry(1, 0.0) for _ in range(100)]
    assert 0.04 <= min(drawn) < max(drawn) <= 0.05


def test_a_packet_takes_its_headers_along() -> None:
    link = Link(Line(bits_per_s=12_000.0))
    assert link.carry(SEGMENT_BYTES, 0.0) == pytest.approx(1.0)  # 1500 bytes on Ethernet
    assert link.carry(SEGMENT_BYTES + 1, 1.0) == pytest.approx(1 + 1 + 53 * 8 / 12_000)


def test_a_queue_that_is_full_takes_no_more_until_it_has_sent() -> None:
    link = Link(Line(bits_per_s=1e8))
    while link.find_room_at(0.0) == 0.0:
        link.carry(link.turn_bytes, 0.0)
    assert QUEUE_S < link.free_at < QUEUE_S + 0.002
    assert link.find_room_at(0.0) == pytest.approx(link.free_at - QUEUE_S)
    assert link.find_room_at(1.0) == 1.0


def fill(window: Window, now: float) -> int:
    """Send a whole window, and return its size once it is acknowledged."""
    size = window.find_room(now)
    for _ in range(10):
        window.send(size // 10, now)
    window.send(size - size // 10 * 10, now)
    assert window.find_room(now) == 0
    for _ in range(10):
        window.acknowledge(size // 10)
    window.acknowledge(size - size // 10 * 10)
    return size


def test_a_window_that_is_filled_doubles_each_round_trip_up_to_a_limit() -> None:
    window = Window(ROUND_TRIP_S)
    rounds = [fill(window, ROUND_TRIP_S * n) for n in range(10)]
    assert rounds[:4] == [FIRST_WINDOW_BYTES * 2**n for n in range(4)]
    assert rounds[-1] == MOST_WINDOW_BYTES


def test_a_window_that_is_not_filled_does_not_grow() -> None:
    window = Window(ROUND_TRIP_S)
    for n in range(20):
        window.send(2000, ROUND_TRIP_S * n)
        window.acknowledge(2000)
    assert window.size == FIRST_WINDOW_BYTES


def test_a_silent_connection_starts_slowly_again() -> None:
    window, timeout_s = Window(ROUND_TRIP_S), ROUND_TRIP_S + IDLE_S
    for _ in range(6):
        fill(window, 0.0)
    full = window.size
    assert window.find_room(timeout_s) == full
    assert window.find_room(timeout_s * 2 - 1e-6) == full / 2
    assert window.find_room(timeout_s * 2 - 1e-6) == full / 2  # to ask again takes nothing
    assert window.find_room(timeout_s * 3 - 1e-6) == full / 4
    assert window.find_room(timeout_s * 100) == FIRST_WINDOW_BYTES


def test_a_connection_that_waits_for_an_answer_keeps_its_window() -> None:
    window = Window(ROUND_TRIP_S)
    for _ in range(6):
        fill(window, 0.0)
    full = window.size
    window.send(1000, 0.0)
    assert window.find_room(100.0) == full - 1000
