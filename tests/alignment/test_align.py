"""Private set intersection with every role: the result, the messages, links with little capacity, and every fault."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.alignment import psi
from blindfit.algorithms.alignment.psi import Threads
from blindfit.algorithms.errors import (
    BlindfitError,
    ConfigError,
    DataError,
    MalformedMessage,
    PeerTimeout,
    UnexpectedStep,
)
from blindfit.algorithms.protocols import align, align_ring
from blindfit.algorithms.protocols.align import (
    Alignment,
    BlindedPoints,
    CommonRows,
    Outcome,
    PassedPoints,
    SetSize,
    SetSizes,
)
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.parties.wire import codec
from blindfit.parties.wire.channel import LocalNetwork, Wire
from tests import quick_points
from tests.alignment.bad_points import BAD_POINTS
from tests.each_case import each_case
from tests.protocols.counts import assert_as_often

KEY_NODE = "key node"
NAMES = ("advertiser", "bank", "courier", "doctor", "editor")
ROLES = {KEY_NODE: "key-node", **dict.fromkeys(NAMES, "passive"), NAMES[0]: "active"}
Ids = Sequence[str]
Sent = list[tuple[str, str, str]]


def untouched(_sender: str, _receiver: str, _step: str, data: bytes) -> bytes:
    return data


def overlapping(parties: int, common: int = 6, own: int = 5) -> list[list[str]]:
    """Return sorted ids: each party has the common ids, its own ids, and from three parties on ids shared with one
    other.
    """
    sets = [
        [f"everywhere-{n}" for n in range(common)] + [f"only-{seat}-{n}" for n in range(own * (seat + 1))]
        for seat in range(parties)
    ]
    for seat in range(parties if parties > 2 else 0):
        sets[seat] += [f"pair-{pair}-{n}" for pair in (seat, (seat + 1) % parties) for n in range(2)]
    return [sorted(ids) for ids in sets]


def seeded(seats: int, seed: int = 0) -> list[UniformInt]:
    return [random.Random(f"{seed}/{seat}").randrange for seat in range(seats + 1)]


class Session:
    """All parties over one network, with the result or error of each."""

    def __init__(self, id_sets: Sequence[Ids], *, wire: Wire = untouched, network: Any = None) -> None:
        self.id_sets, self.parties = id_sets, NAMES[: len(id_sets)]
        self.network = network or LocalNetwork(ROLES, align.TABLE, timeout_s=60.0, wire=wire)
        self.ended: dict[str, Any] = {}

    def run(
        self,
        uniforms: Sequence[UniformInt] | None = None,
        min_common: Sequence[int] = (),
        **options: Any,
    ) -> Session:
        uniforms = uniforms or [system_uniform] * (len(self.parties) + 1)
        min_common = min_common or [1] * len(self.parties)
        seats: dict[str, Awaitable[Any]] = {
            party: align.run_data_party(
                ids,
                party,
                self.parties,
                KEY_NODE,
                self.network.channel(party),
                uniform=uniform,
                min_common=least,
                **options,
            )
            for party, ids, uniform, least in zip(self.parties, self.id_sets, uniforms, min_common, strict=False)
        }
        seats[KEY_NODE] = align.run_key_node(
            self.parties, KEY_NODE, self.network.channel(KEY_NODE), uniform=uniforms[-1], **options
        )
        self.ended = asyncio.run(_all_ended(seats))
        return self

    @property
    def alignments(self) -> list[Alignment]:
        for error in self.ended.values():
            if isinstance(error, BaseException):
                raise error
        return [self.ended[party] for party in self.parties]

    @property
    def aligned_ids(self) -> list[list[str]]:
        return [[ids[row] for row in own.positions] for ids, own in zip(self.id_sets, self.alignments, strict=True)]


async def _all_ended(seats: dict[str, Awaitable[Any]]) -> dict[str, Any]:
    """Wait until every party has ended, or the first has failed for another reason than a silent peer."""
    tasks = {name: asyncio.ensure_future(seat) for name, seat in seats.items()}
    await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_EXCEPTION)
    for _ in range(100):
        await asyncio.sleep(0)  # the others may end in the same way
    for task in tasks.values():
        task.cancel()
    results = await asyncio.gather(*tasks.values(), return_exceptions=True)
    return dict(zip(tasks, results, strict=True))


def failure(session: Session) -> BlindfitError:
    """Return the one error that did not come from waiting for another party."""
    waited = (PeerTimeout,)  # on a busy machine
    errors = [e for e in session.ended.values() if isinstance(e, BlindfitError) and not isinstance(e, waited)]
    assert len(errors) == 1
    return errors[0]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align_ring, "CHUNK_POINTS", 4)
    monkeypatch.setattr(align, "CHUNK_ROWS", 5)


# --- the result -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("parties", [2, 3, 5])
@pytest.mark.usefixtures("small_chunks")
def test_every_party_gets_the_same_common_rows_in_the_same_order(parties: int) -> None:
    id_sets = overlapping(parties)
    session = Session(id_sets).run()
    first = session.aligned_ids[0]
    assert set(first) == set.intersection(*map(set, id_sets))
    assert all(ids == first for ids in session.aligned_ids)
    assert session.ended[KEY_NODE] == len(first)
    assert all(own.positions.dtype == np.int64 for own in session.alignments)


@pytest.mark.parametrize("parties", [2, 3, 5])
@pytest.mark.usefixtures("small_chunks")
def test_the_roles_compute_what_the_specification_says(parties: int) -> None:
    id_sets = overlapping(parties)
    expected = align.run_locally(id_sets, seeded(parties))
    for got, want in zip(Session(id_sets).run(seeded(parties)).alignments, expected, strict=True):
        assert got.positions.tolist() == want.positions.tolist()


id_sets_drawn = st.integers(2, 4).flatmap(
    lambda parties: st.lists(
        st.lists(st.sampled_from("abcdefgh") | st.text(max_size=3), min_size=1, max_size=9, unique=True),
        min_size=parties,
        max_size=parties,
    )
)


def encodable(text: str) -> bool:
    return not any(0xD800 <= ord(character) < 0xE000 for character in text)


@settings(max_examples=60, deadline=None)
@given(id_sets_drawn.filter(lambda sets: all(encodable(text) for ids in sets for text in ids)), st.integers(0, 99))
def test_the_specification_is_the_intersection(id_sets: list[list[str]], seed: int) -> None:
    common = set.intersection(*map(set, id_sets))
    if not common:
        with pytest.raises(DataError, match="no row in common"):
            align.run_locally(id_sets, seeded(len(id_sets), seed))
        return
    alignments = align.run_locally(id_sets, seeded(len(id_sets), seed))
    aligned = [[ids[row] for row in own.positions] for ids, own in zip(id_sets, alignments, strict=True)]
    assert all(ids == aligned[0] for ids in aligned)
    assert sorted(aligned[0]) == sorted(common)


def test_the_common_order_is_drawn_anew_in_every_run() -> None:
    id_sets = overlapping(2, common=30)
    first, second = (Session(id_sets).run().aligned_ids[0] for _ in range(2))
    assert first != second
    assert sorted(first) == sorted(second)
    assert first != sorted(first)


def test_the_common_order_is_the_key_nodes_and_uniform() -> None:
    """This holds even if the data parties' shuffles and secrets never change."""
    id_sets = overlapping(2, common=3, own=1)
    *own, _ = seeded(2)
    sets = [align.step_1_prepare(ids, uniform, owner="x") for ids, uniform in zip(id_sets, own, strict=True)]
    points = [align._blind_by_all(sets, seat, align.Ring(("a", "b"))) for seat in range(2)]
    uniform = random.Random(3).randrange
    orders = Counter(tuple(align.step_5_compare(points, 1, uniform)[0].tolist()) for _ in range(3000))
    assert len(orders) == 6
    assert min(orders.values()) > 400  # 500 +- 20


def test_more_rows_than_a_chunk_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psi, "bindings", quick_points.QUICK)  # 17,000 points, three times
    sizes = [align_ring.CHUNK_POINTS + 500, 1_000]
    id_sets = [
        [f"customer-{n:06d}" for n in range(start, start + size)]
        for start, size in zip((0, align_ring.CHUNK_POINTS), sizes, strict=True)
    ]
    told: list[tuple[str, int, int]] = []
    session = Session(id_sets, network=LocalNetwork(ROLES, align.TABLE, timeout_s=60.0)).run(
        workers=Threads(os.cpu_count() or 1), in_thread=asyncio.to_thread, report=lambda *said: told.append(said)
    )
    first, second = session.aligned_ids
    assert first == second
    assert len(set(first)) == session.ended[KEY_NODE] == 500
    assert len(told) == 3 * (2 + 1)  # each role, each chunk
    assert told[-1] == ("align", sum(sizes), sum(sizes))


# --- what is sent ---------------------------------------------------------------------------------------


def table(sizes: Sequence[int], common: int) -> Sent:
    """Return the module's table, for chunks of 4 points and 5 rows."""
    ring = NAMES[: len(sizes)]
    sent: Sent = []
    for seat, party in enumerate(ring):
        sent += [(party, KEY_NODE, "SetSize"), (KEY_NODE, party, "SetSizes"), (KEY_NODE, party, "Outcome")]
        sent += [(KEY_NODE, party, "CommonRows")] * -(-common // 5)
        chunks = -(-sizes[seat] // 4)
        way = [ring[(seat + hop) % len(ring)] for hop in range(len(ring))]
        for sender, receiver in pairwise(way):
            sent += [(sender, receiver, "PassedPoints")] * chunks
        sent += [(way[-1], KEY_NODE, "BlindedPoints")] * chunks
    return sent


@pytest.mark.parametrize("parties", [2, 3, 5])
@pytest.mark.usefixtures("small_chunks")
def test_the_messages_are_those_of_the_table(parties: int) -> None:
    id_sets = overlapping(parties)
    session = Session(id_sets).run()
    assert sorted(session.network.sent) == sorted(table(list(map(len, id_sets)), 6))
    having = ["enough common rows", *(["three data parties or more"] if parties > 2 else [])]
    assert_as_often(align.TABLE, ROLES, session.network.sent, having=having)
    assert not session.network.unread


@pytest.mark.usefixtures("small_chunks")
def test_no_id_and_no_unblinded_point_leaves() -> None:
    id_sets = overlapping(3)
    seen: list[bytes] = []

    def listening(_sender: str, _receiver: str, _step: str, data: bytes) -> bytes:
        seen.append(data)
        return data

    Session(id_sets, wire=listening).run()
    everything = b"".join(seen)
    for text in set().union(*id_sets):
        assert text.encode() not in everything
        assert align.psi.hash_id(text) not in everything


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.usefixtures("small_chunks")
def test_no_point_is_sent_twice_and_two_runs_share_none(parties: int) -> None:
    """Each point is sent under another product of secrets, so the points of one link reveal nothing about another
    link's.
    """
    points: list[bytes] = []

    def listening(sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        if step in ("PassedPoints", "BlindedPoints"):
            kind: type[Any] = PassedPoints if step == "PassedPoints" else BlindedPoints
            chunk = codec.decode(data, kind, culprit=sender).points
            points.extend(point.tobytes() for point in chunk if step == "PassedPoints")
        return data

    id_sets = overlapping(parties)
    for _ in range(2):
        Session(id_sets, wire=listening).run()
    assert len(points) == 2 * sum(map(len, id_sets)) * (parties - 1)
    assert len(set(points)) == len(points)


def test_kept_order_does_not_leak() -> None:
    """Both files are sorted; at both parties the matching places look random."""
    ids = [f"customer-{n:04d}" for n in range(300)]
    rows: list[np.ndarray] = []

    def listening(sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        if step == "CommonRows":
            rows.append(codec.decode(data, CommonRows, culprit=sender).rows)
        return data

    session = Session([ids, ids], wire=listening).run()
    positions = [own.positions for own in session.alignments]
    for one, other in ((rows[0], rows[1]), (rows[0], positions[0]), (rows[1], positions[1])):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.3  # 5.2 standard deviations, thrice: 6e-7
    assert np.array_equal(positions[0], positions[1])


# --- little room ----------------------------------------------------------------------------------------


class TightNetwork(LocalNetwork):
    """A network whose sender waits while its link holds `room` messages that were not received; parties act in random
    order.
    """

    def __init__(self, room: int, seed: int) -> None:
        super().__init__(ROLES, align.TABLE, timeout_s=60.0)
        self.room, self.fullest, self._random = room, 0, random.Random(seed)

    def channel(self, name: str) -> Any:
        return TightChannel(self, name)

    async def pause(self) -> None:
        for _ in range(self._random.choice((0, 0, 1, 7, 50))):
            await asyncio.sleep(0)


class TightChannel:
    def __init__(self, network: TightNetwork, name: str) -> None:
        self._network, self._name = network, name
        self._open = LocalNetwork.channel(network, name)

    async def send(self, to: str, message: object) -> None:
        queue = self._network.queue(self._name, to)
        while queue.qsize() >= self._network.room:
            await asyncio.sleep(0.001)
        await self._open.send(to, message)
        self._network.fullest = max(self._network.fullest, queue.qsize())
        await self._network.pause()

    async def receive(self, sender: str, kind: type[Any]) -> Any:
        await self._network.pause()
        return await self._open.receive(sender, kind)


@pytest.mark.parametrize("parties", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("small_chunks")
def test_links_with_room_for_one_chunk_of_each_party_are_enough(parties: int, seed: int) -> None:
    """The sets have very different sizes; the window of a real link holds many times as much."""
    own = [1, 60, 8, 0, 33]
    random.Random(seed).shuffle(own)
    id_sets = [["everywhere"] + [f"{seat}-{n}" for n in range(own[seat])] for seat in range(parties)]
    network = TightNetwork(room=parties, seed=seed)
    session = Session(id_sets, network=network).run()
    assert session.aligned_ids == [["everywhere"]] * parties
    assert network.fullest <= parties


@pytest.mark.usefixtures("small_chunks")
def test_what_a_party_waits_for_was_sent_a_turn_before() -> None:
    """Otherwise the parties would compute in turns, or wait for the network at every chunk."""
    ring = align.Ring(("a", "b", "c"), counts=(12, 5, 1))
    assert [(piece.owner, piece.chunk, piece.size) for piece in ring.timetable("b")] == [
        ("b", 0, 4),
        *[("b", 1, 1), ("a", 0, 4)],
        *[("a", 1, 4), ("c", 0, 1)],
        ("a", 2, 4),
    ]


# --- sets that cannot be aligned --------------------------------------------------------------------------


def test_no_common_row_is_told_to_everybody_in_one_line() -> None:
    session = Session([["anna", "ben"], ["Anna", "BEN", "carl"]]).run()
    for name in (*NAMES[:2], KEY_NODE):
        error = session.ended[name]
        assert isinstance(error, DataError)
        assert error.message == "the parties have no row in common (ids: advertiser 2, bank 3)"
        assert "written the same way" in error.hint


def test_too_few_common_rows_end_the_session_for_all() -> None:
    id_sets = overlapping(3)
    session = Session(id_sets).run(min_common=[1, 7, 2])
    for name in (*NAMES[:3], KEY_NODE):
        error = session.ended[name]
        assert isinstance(error, DataError)
        assert error.message.startswith(
            "the parties have fewer than 7 rows in common, and bank requires at least so many (ids"
        )
        assert "written the same way" in error.hint
    assert "CommonRows" not in {step for _, _, step in session.network.sent}
    assert len(Session(id_sets).run(min_common=[1, 6, 2]).aligned_ids[0]) == 6


def test_a_party_with_too_few_ids_is_named_with_the_option() -> None:
    session = Session([["anna", "ben"], ["anna", "carl", "dora"], ["anna", "ben", "emil", "fred"]]).run(
        min_common=[4] * 3
    )
    for name in (*NAMES[:3], KEY_NODE):
        error = session.ended[name]
        assert isinstance(error, DataError)
        assert error.hint == (
            f"{NAMES[0]}, {NAMES[1]} must bring more ids; or set a lower align.min_common, which may not be below any "
            "party's policy.min_common"
        )


def test_how_few_rows_are_common_is_not_told() -> None:
    """Otherwise a set of one real id and inventions could test whether somebody is a customer."""
    told: list[list[bytes]] = []
    for probe in ("customer", "stranger"):
        seen: list[bytes] = []

        def listening(sender: str, _receiver: str, _step: str, data: bytes, seen: list[bytes] = seen) -> bytes:
            if sender == KEY_NODE:
                seen.append(data)
            return data

        Session([[probe, *"123456"], ["customer", *"abcdef"]], wire=listening).run(min_common=[1, 5])
        told.append(seen)
    assert told[0] == told[1]


def test_sets_smaller_than_the_least_are_not_even_blinded() -> None:
    session = Session(overlapping(2)).run(min_common=[1, 12])
    assert all(isinstance(error, DataError) for error in session.ended.values())
    assert {step for _, _, step in session.network.sent} == {"SetSize", "SetSizes"}


@pytest.mark.parametrize(("ids", "said"), [([], "no rows"), (["a", "b", "a"], "1 of 3 rows")])
def test_a_wrong_own_set_is_refused_before_anything_is_sent(ids: list[str], said: str) -> None:
    session = Session([ids, ["a"]]).run()
    assert said in str(session.ended["advertiser"])
    assert not any(sender == "advertiser" for sender, _, _ in session.network.sent)


def test_a_set_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "MAX_IDS", 3)
    with pytest.raises(DataError, match="has 4 rows"):
        align.run_locally([list("abcd"), list("abc")], seeded(2))


@each_case(
    ("parties", "key_node"),
    [(["a"], "k"), ([], "k"), (["a", "a"], "k"), (["a", "b"], "a"), ([str(n) for n in range(18)], "k")],
)
def test_parties_that_cannot_align_are_refused(parties: list[str], key_node: str) -> None:
    with pytest.raises(ConfigError):
        align.step_0_ring(parties, key_node)


@each_case("min_common", [0, -1, 2**24 + 1])
def test_a_senseless_least_is_refused(min_common: int) -> None:
    with pytest.raises(ConfigError):
        align.run_locally(overlapping(2), seeded(2), min_common=min_common)


# --- faults: who sends what it should not is named ----------------------------------------------------------


def tampered(kind: type[Any], sender: str, change: Callable[[Any], Any], number: int = 0) -> Wire:
    """Change the `number`-th message of one kind from one sender."""
    count = 0

    def wire(from_: str, _receiver: str, step: str, data: bytes) -> bytes:
        nonlocal count
        if (step, from_) != (kind.__name__, sender):
            return data
        count += 1
        return data if count != number + 1 else codec.encode(change(codec.decode(data, kind, culprit=from_)))

    return wire


def points_changed(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], Any]:
    return lambda message: replace(message, points=change(message.points.copy()))


def put(point: bytes) -> Callable[[np.ndarray], np.ndarray]:
    def change(points: np.ndarray) -> np.ndarray:
        points[-1] = np.frombuffer(point, np.uint8)
        return points

    return change


def repeat_first(points: np.ndarray) -> np.ndarray:
    points[-1] = points[0]
    return points


POINT_FAULTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "one point less than announced": lambda points: points[:-1],
    "one point more than announced": lambda points: np.vstack([points, points[:1]]),
    "no points": lambda points: points[:0],
    "points cut short": lambda points: points[:, :31],
    "a point twice": repeat_first,
    **{name: put(BAD_POINTS[name]) for name in BAD_POINTS if name.startswith(("identity", "order", "y =", "a point"))},
    "not canonical": put(BAD_POINTS["p + 3, sign 0"]),
}


@each_case("parties", [2, 3])
@each_case("kind", [PassedPoints, BlindedPoints])
@each_case("fault", POINT_FAULTS)
@pytest.mark.usefixtures("small_chunks")
def test_wrong_points_are_refused_by_whoever_gets_them(fault: str, kind: type[Any], parties: int) -> None:
    sender = NAMES[1]
    number = 2 if kind is PassedPoints else 1  # neither the first chunk nor the last
    wire = tampered(kind, sender, points_changed(POINT_FAULTS[fault]), number)
    session = Session(overlapping(parties), wire=wire).run()
    error = failure(session)
    assert isinstance(error, MalformedMessage)
    assert (error.culprit, error.field, error.step) == (sender, "points", kind.__name__)
    refuser = KEY_NODE if kind is BlindedPoints else NAMES[2 % parties]
    assert session.ended[refuser] is error
    assert "CommonRows" not in {step for _, _, step in session.network.sent}


@pytest.mark.parametrize("kind", [PassedPoints, BlindedPoints])
@pytest.mark.usefixtures("small_chunks")
def test_a_point_twice_in_different_chunks_is_refused(kind: type[Any]) -> None:
    first: list[np.ndarray] = []
    count = 0

    def wire(sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        nonlocal count
        if (step, sender) != (kind.__name__, "bank"):
            return data
        message = codec.decode(data, kind, culprit=sender)
        count += 1
        first.append(message.points[0])
        return codec.encode(points_changed(put(first[0].tobytes()))(message)) if count == 3 else data

    error = failure(Session(overlapping(2), wire=wire).run())
    assert isinstance(error, MalformedMessage)
    assert (error.culprit, error.reason) == ("bank", "hold one twice")


def with_first(rows: np.ndarray, row: int) -> np.ndarray:
    return np.concatenate([np.array([row], np.int32), rows[1:]])


RING_FAULTS: dict[str, tuple[type[Any], str, Callable[[Any], Any], str, str]] = {
    "no ids": (SetSize, "bank", lambda m: replace(m, count=0), "bank", "count"),
    "too many ids": (SetSize, "bank", lambda m: replace(m, count=2**24 + 1), "bank", "count"),
    "a negative size": (SetSize, "bank", lambda m: replace(m, count=-1), "bank", "count"),
    "a senseless least": (SetSize, "bank", lambda m: replace(m, min_common=0), "bank", "min_common"),
    "one size too few": (SetSizes, KEY_NODE, lambda m: replace(m, counts=m.counts[:1]), KEY_NODE, "counts"),
    "sizes in a column": (SetSizes, KEY_NODE, lambda m: replace(m, counts=m.counts[:, None]), KEY_NODE, "counts"),
    "no sizes": (SetSizes, KEY_NODE, lambda m: replace(m, counts=m.counts[:0]), KEY_NODE, "counts"),
    "a size changed": (SetSizes, KEY_NODE, lambda m: replace(m, counts=m.counts + 1), KEY_NODE, "counts"),
    "a size out of range": (
        SetSizes,
        KEY_NODE,
        lambda m: replace(m, counts=m.counts + np.array([0, 2**24])),
        KEY_NODE,
        "counts",
    ),
    "a least changed": (
        SetSizes,
        KEY_NODE,
        lambda m: replace(m, min_common=m.min_common + 1),
        KEY_NODE,
        "min_common",
    ),
    "more common than rows": (Outcome, KEY_NODE, lambda _: Outcome(7), KEY_NODE, "common"),
    "a negative outcome": (Outcome, KEY_NODE, lambda _: Outcome(-1), KEY_NODE, "common"),
    "a row too few": (CommonRows, KEY_NODE, lambda m: replace(m, rows=m.rows[:-1]), KEY_NODE, "rows"),
    "rows in a column": (CommonRows, KEY_NODE, lambda m: replace(m, rows=m.rows[:, None]), KEY_NODE, "rows"),
    "a row before the first": (
        CommonRows,
        KEY_NODE,
        lambda m: replace(m, rows=with_first(m.rows, -1)),
        KEY_NODE,
        "rows",
    ),
    "a row past the last": (
        CommonRows,
        KEY_NODE,
        lambda m: replace(m, rows=with_first(m.rows, 6)),
        KEY_NODE,
        "rows",
    ),
    "a row twice": (
        CommonRows,
        KEY_NODE,
        lambda m: replace(m, rows=m.rows[[0, 0, 2, 3, 4]]),
        KEY_NODE,
        "rows",
    ),
}


@each_case("fault", RING_FAULTS)
@pytest.mark.usefixtures("small_chunks")
def test_a_fault_is_named(fault: str) -> None:
    kind, sender, change, culprit, field = RING_FAULTS[fault]
    error = failure(Session(overlapping(2, own=0), wire=tampered(kind, sender, change)).run())
    assert isinstance(error, MalformedMessage)
    assert (error.culprit, error.field, error.step) == (culprit, field, kind.__name__)


@each_case(
    ("kind", "other", "sender"),
    [(PassedPoints, BlindedPoints, "bank"), (BlindedPoints, PassedPoints, "bank"), (CommonRows, Outcome, KEY_NODE)],
)
@pytest.mark.usefixtures("small_chunks")
def test_a_message_out_of_turn_is_refused(kind: type[Any], other: type[Any], sender: str) -> None:
    def wire(from_: str, _receiver: str, step: str, data: bytes) -> bytes:
        if (step, from_) != (kind.__name__, sender):
            return data
        return codec.encode(Outcome(1) if other is Outcome else other(codec.decode(data, kind, culprit="").points))

    errors = [e for e in Session(overlapping(2), wire=wire).run().ended.values() if isinstance(e, UnexpectedStep)]
    assert errors
    assert {(e.culprit, e.expected, e.got) for e in errors} == {(sender, kind.__name__, other.__name__)}


def test_secrets_and_results_have_no_repr() -> None:
    own = align.step_1_prepare(["anna"], system_uniform, owner="x")
    for secret in (own, own.key, Alignment(np.arange(3)), PassedPoints(np.zeros((1, 32), np.uint8))):
        assert repr(secret).startswith("<")
