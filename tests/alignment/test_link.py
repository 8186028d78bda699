"""Linkage with all three roles: its messages, the same result as `run_locally`, and every fault."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from blindfit.algorithms.alignment import matching
from blindfit.algorithms.alignment.clk import Encoding, Field
from blindfit.algorithms.alignment.matching import Pairs
from blindfit.algorithms.errors import ConfigError, DataError, MalformedMessage
from blindfit.algorithms.messages import parameters_digest
from blindfit.algorithms.paillier.ciphertexts import FreshCiphertext
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.randomisers import FullExponent, OwnKey
from blindfit.algorithms.paillier.vectors import EncryptedVector, decrypt
from blindfit.algorithms.protocols import link
from blindfit.algorithms.protocols.link import Filters, KeyShare, Slots
from blindfit.algorithms.protocols.linkage import LinkageSettings, LinkageSummary, LinkedRows, Matched
from blindfit.parties.wire import codec, error_codes
from blindfit.parties.wire.channel import LocalNetwork, Wire
from examples.linkage.dirty_records import Registers, registers
from tests.each_case import each_case
from tests.protocols.counts import assert_as_often

FIELDS = (Field("first_name"), Field("last_name"), Field("birth_date", "date"), Field("postcode"))
ROLES = {"bank": "active", "shop": "passive", "keys": "key-node"}
SETTINGS = LinkageSettings(Encoding(FIELDS), min_matches=10)
PEOPLE = registers(70, 40, 25, seed=2)
TABLE = [
    ("bank", "shop", "KeyShare"),
    ("shop", "bank", "KeyShare"),
    ("bank", "keys", "Filters"),
    ("shop", "keys", "Filters"),
    ("keys", "bank", "Outcome"),
    ("keys", "shop", "Outcome"),
    ("keys", "bank", "Slots"),
    ("keys", "shop", "Slots"),
]


def randomness() -> tuple[Callable[[int], int], ...]:
    """Return the randomness of the first party, the second, the key node and its randomisers."""
    return tuple(random.Random(seat).randrange for seat in range(4))


def as_sent(_sender: str, _receiver: str, _step: str, data: bytes) -> bytes:
    return data


def uncounted() -> None:
    """Count nothing: a caller with a database counts linkages."""


def seats(
    key: PrivateKey, network: LocalNetwork, settings: LinkageSettings, people: Registers
) -> list[Coroutine[Any, Any, Any]]:
    """Return bank, shop and key node."""
    uniforms, shared = randomness(), (settings, key.public_key)
    bank, shop, keys = (network.channel(name) for name in ("bank", "shop", "keys"))
    randomisers = FullExponent(key.public_key, uniform=uniforms[3])
    return [
        link.run_data_party(
            people.first, *shared, "bank", "shop", "keys", bank, first=True, begin=uncounted, uniform=uniforms[0]
        ),
        link.run_data_party(
            people.second, *shared, "shop", "bank", "keys", shop, first=False, begin=uncounted, uniform=uniforms[1]
        ),
        link.run_key_node(("bank", "shop"), settings, randomisers, "keys", keys, draw=lambda _: uniforms[2]),
    ]


def run_all(
    key: PrivateKey,
    *,
    settings: LinkageSettings = SETTINGS,
    people: Registers = PEOPLE,
    wire: Wire = as_sent,
    to_the_end: bool = False,
) -> tuple[list[Any], list[tuple[str, str, str]]]:
    """Return what each party ends with, and what was sent.

    Args:
        to_the_end: True to return each party's error as its result; otherwise the first error is raised.
    """
    network = LocalNetwork(ROLES, link.TABLE, wire=wire)

    async def run() -> list[Any]:
        tasks = [asyncio.ensure_future(seat) for seat in seats(key, network, settings, people)]
        try:
            return await asyncio.gather(*tasks, return_exceptions=to_the_end)
        finally:
            for task in tasks:
                task.cancel()

    return asyncio.run(run()), network.sent


def linked(key: PrivateKey, **changes: Any) -> tuple[LinkedRows, LinkedRows, LinkageSummary]:
    (bank, shop, summary), _ = run_all(key, **changes)
    return bank, shop, summary


def mask_of(rows: LinkedRows, key: PrivateKey) -> np.ndarray[Any, Any]:
    return decrypt(rows.mask_enc, key).values


def residues_of(rows: LinkedRows) -> list[int]:
    return [int(c) for c in rows.mask_enc.public_key.kernel.integers(rows.mask_enc.residues)]


# --- the run ----------------------------------------------------------------------------------------


def test_the_roles_compute_what_the_specification_says(insecure_test_key: PrivateKey) -> None:
    uniforms = randomness()
    randomisers = FullExponent(insecure_test_key.public_key, uniform=uniforms[3])
    records = PEOPLE.first, PEOPLE.second
    local = link.run_locally(records, SETTINGS, randomisers, ("bank", "shop"), (uniforms[0], uniforms[1], uniforms[2]))
    over_channels = linked(insecure_test_key)
    for mine, theirs in zip(local[:2], over_channels[:2], strict=True):
        np.testing.assert_array_equal(mine.positions, theirs.positions)
        assert residues_of(mine) == residues_of(theirs)
    assert local[2] == over_channels[2]


def test_nothing_is_sent_but_the_table(insecure_test_key: PrivateKey) -> None:
    _, sent = run_all(insecure_test_key)
    assert Counter(sent) == Counter(TABLE)
    assert_as_often(link.TABLE, ROLES, sent, having=["enough matches"])


def test_matches_share_a_slot_and_nobody_else_does(insecure_test_key: PrivateKey) -> None:
    clean = registers(70, 40, 25, seed=3, error_rate=0.0)
    bank, shop, summary = linked(insecure_test_key, people=clean)
    mask = mask_of(bank, insecure_test_key)
    np.testing.assert_array_equal(mask, mask_of(shop, insecure_test_key))
    together = np.column_stack([bank.positions, shop.positions])
    assert set(map(tuple, together[mask == 1].tolist())) == set(map(tuple, clean.true_pairs.tolist()))
    assert set(mask.tolist()) == {0, 1}
    assert summary.n_matches == mask.sum() == 25
    assert summary.sizes == (70, 40)
    assert sum(summary.histogram.matches) == 25


def test_slots_hold_each_row_once_and_zeros_in_place_of_what_is_missing(insecure_test_key: PrivateKey) -> None:
    bank, shop, _ = linked(insecure_test_key)
    assert sorted(bank.positions.tolist()) == list(range(70))
    assert sorted(shop.positions.tolist()) == [-1] * 30 + list(range(40))
    assert not mask_of(shop, insecure_test_key)[shop.positions == -1].any()


def test_with_typing_errors_most_are_found(insecure_test_key: PrivateKey) -> None:
    bank, shop, _ = linked(insecure_test_key)
    mask = mask_of(bank, insecure_test_key) == 1
    together = np.column_stack([bank.positions, shop.positions])[mask]
    truth = set(map(tuple, PEOPLE.true_pairs.tolist()))
    assert len(truth & set(map(tuple, together.tolist()))) >= 20


def test_each_party_gets_a_mask_of_its_own(insecure_test_key: PrivateKey) -> None:
    """From two copies of one ciphertext the parties could see that they hold the same slots' mask; these differ."""
    bank, shop, _ = linked(insecure_test_key)
    assert not set(residues_of(bank)) & set(residues_of(shop))
    assert len({*residues_of(bank), *residues_of(shop)}) == 140
    assert (bank.mask_enc.bound, bank.mask_enc.frac_bits) == (1, 0)


def test_many_chunks_are_many_messages_and_one_result(
    insecure_test_key: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _, _ = linked(insecure_test_key)
    monkeypatch.setattr(link, "CHUNK_SLOTS", 32)
    results, sent = run_all(insecure_test_key)
    np.testing.assert_array_equal(results[0].positions, whole.positions)
    np.testing.assert_array_equal(mask_of(results[0], insecure_test_key), mask_of(whole, insecure_test_key))
    assert Counter(sent) == Counter(TABLE + TABLE[-2:] * 2)


def test_the_key_nodes_own_randomisers_do(insecure_test_key: PrivateKey) -> None:
    matched = found([(0, 1)], (3, 2))
    (positions, _), mask = link.step_3_slots(matched, random.Random(0).randrange)
    slots = link.step_3_encrypt(positions, mask, OwnKey(insecure_test_key))
    opened = link.step_4_open(slots, 3, insecure_test_key.public_key, key_node="keys")
    np.testing.assert_array_equal(decrypt(opened, insecure_test_key).values, mask)


def test_progress_is_told(insecure_test_key: PrivateKey) -> None:
    told: list[tuple[str, int, int]] = []
    network = LocalNetwork(ROLES, link.TABLE)
    filters = Filters(np.random.default_rng(0).integers(0, 256, (40, 128)).astype(np.uint8))

    async def key_node() -> None:
        for party in ("bank", "shop"):
            await network.channel(party).send("keys", filters)
        await link.run_key_node(
            *(("bank", "shop"), SETTINGS, OwnKey(insecure_test_key), "keys", network.channel("keys")),
            report=lambda *progress: told.append(progress),
        )

    asyncio.run(key_node())
    assert told == [("match", 32, 40), ("match", 40, 40), ("encrypt", 40, 40)]


# --- who learns what ----------------------------------------------------------------------------------


def found(matches: list[tuple[int, int]], sizes: tuple[int, int]) -> Matched:
    first, second = np.array(matches, np.int64).reshape(-1, 2).T
    summary = LinkageSummary(sizes, len(matches), 0.8, None, None)  # type: ignore[arg-type]
    return Matched(Pairs(first, second, np.ones(len(matches))), summary)


@pytest.mark.parametrize("matches", [[], [(0, 1)], [(0, 0), (2, 1)], [(1, 1), (3, 0), (0, 2)]])
def test_a_partys_slots_do_not_depend_on_who_matches(matches: list[tuple[int, int]]) -> None:
    """Over many runs, every order of either party's rows is equally frequent."""
    uniform = random.Random(len(matches)).randrange
    seen = [Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()]
    for _ in range(4800):
        for counter, positions in zip(seen, link.step_3_slots(found(matches, (4, 3)), uniform)[0], strict=True):
            counter[tuple(positions.tolist())] += 1
    for counter in seen:
        assert len(counter) == 24
        assert chisquare(list(counter.values())).pvalue > 1e-4


def test_secrets_agree_and_are_of_one_session() -> None:
    keys = [link.step_0_private_key(random.Random(i).randrange) for i in range(3)]
    shares = [link.step_0_key_share(key) for key in keys]

    def secret(mine: int, theirs: int, me: str, other: str, first: bool) -> bytes:
        return link.step_1_secret(keys[mine], shares[theirs], me=me, other=other, first=first)

    agreed = secret(0, 1, "bank", "shop", True)
    assert agreed == secret(1, 0, "shop", "bank", False)
    others = [
        secret(0, 2, "bank", "shop", True),
        secret(0, 1, "bank", "shop", False),
        secret(0, 1, "bank", "store", True),
    ]
    assert len({agreed, *others}) == 4


def test_a_party_in_the_middle_makes_filters_that_match_nothing(insecure_test_key: PrivateKey) -> None:
    intruder = link.step_0_key_share(link.step_0_private_key(random.Random(9).randrange))

    def wire(_sender: str, receiver: str, step: str, data: bytes) -> bytes:
        return codec.encode(intruder) if (receiver, step) == ("shop", "KeyShare") else data

    results, _ = run_all(insecure_test_key, settings=replace(SETTINGS, min_matches=1), wire=wire, to_the_end=True)
    assert all(isinstance(result, DataError) for result in results)


def test_too_few_matches_end_the_session_in_one_line_for_all(insecure_test_key: PrivateKey) -> None:
    results, sent = run_all(insecure_test_key, settings=replace(SETTINGS, min_matches=26), to_the_end=True)
    assert [type(result) for result in results] == [DataError] * 3
    assert {result.message for result in results} == {
        "fewer than 26 rows of the two parties match, which is the least that the job accepts"
    }
    assert all(result.hint for result in results)
    assert Counter(sent) == Counter(TABLE[:-2])
    assert_as_often(link.TABLE, ROLES, sent)


def test_too_few_matches_end_the_specification_too(insecure_test_key: PrivateKey) -> None:
    randomisers, uniforms = FullExponent(insecure_test_key.public_key), randomness()
    with pytest.raises(DataError, match="fewer than 26 rows"):
        link.run_locally(
            (PEOPLE.first, PEOPLE.second),
            replace(SETTINGS, min_matches=26),
            randomisers,
            ("bank", "shop"),
            (uniforms[0], uniforms[1], uniforms[2]),
        )


def key_node_alone(
    key: PrivateKey, settings: LinkageSettings, filters: np.ndarray[Any, Any]
) -> tuple[DataError, list[tuple[str, bytes]], list[tuple[str, int, int]]]:
    """Return the error of a linkage of a table with itself, the messages to the parties, and the progress."""
    sent: list[tuple[str, bytes]] = []
    told: list[tuple[str, int, int]] = []

    def noted(sender: str, receiver: str, _step: str, data: bytes) -> bytes:
        if sender == "keys":
            sent.append((receiver, data))
        return data

    network = LocalNetwork(ROLES, link.TABLE, wire=noted)

    async def run() -> None:
        for party in ("bank", "shop"):
            await network.channel(party).send("keys", Filters(filters))
        await link.run_key_node(
            *(("bank", "shop"), settings, OwnKey(key), "keys", network.channel("keys")),
            report=lambda *progress: told.append(progress),
        )

    with pytest.raises(DataError) as refusal:
        asyncio.run(run())
    return refusal.value, sent, told


def test_where_anybody_matches_the_parties_are_told_what_too_few_matches_tell(
    insecure_test_key: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once 262,144 copies of an invention were refused by another error if at least 20 records were like it."""
    copies = np.random.default_rng(0).integers(0, 256, (1, 128)).astype(np.uint8).repeat(70, axis=0)
    too_few, sent, told = key_node_alone(insecure_test_key, replace(SETTINGS, min_matches=71), copies)
    monkeypatch.setattr(matching, "MAX_CANDIDATES", 32 * 70 - 1)  # 4900 candidates: the first tile has more
    anybody, sent_then, told_then = key_node_alone(insecure_test_key, SETTINGS, copies)
    assert anybody.message.endswith("as any two people would be")  # at the key node
    assert (sent_then, told_then) == (sent, told)
    assert len(sent) == 2
    assert error_codes.status_of(anybody) == error_codes.status_of(too_few)


# --- what is refused ------------------------------------------------------------------------------------


def change(step: str, to: str, key: PrivateKey, **changes: Any) -> Wire:
    """Return a wire that changes fields of one message on its way; a callable gets the old value."""

    def wire(_sender: str, receiver: str, name: str, data: bytes) -> bytes:
        if (name, receiver) != (step, to):
            return data
        message = codec.decode(data, getattr(link, step), culprit="test")
        if isinstance(message, Slots):
            message = replace(message, mask=sent_again(message, key, 70))
        fields = {field: new(getattr(message, field)) if callable(new) else new for field, new in changes.items()}
        return codec.encode(replace(message, **fields))

    return wire


def sent_again(slots: Slots, key: PrivateKey, count: int) -> FreshCiphertext:
    """Return the first `count` ciphertexts of a received mask of 70."""
    public_key = key.public_key
    mask = EncryptedVector.receive(slots.mask, public_key, length=70, frac_bits=0, bound=1, culprit="keys")
    return mask[:count].rerandomize(FullExponent(public_key)).ciphertext


def swapped_for(value: int, place: int) -> Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    def swap(positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        positions = positions.copy()
        positions[place] = value
        return positions

    return swap


def repeated(positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Repeat one row, and omit another."""
    return np.where(positions == 1, 0, positions)


def of_sizes(*sizes: int) -> np.ndarray[Any, Any]:
    return np.array(sizes, np.int64)


FAULTS = [
    ("KeyShare", "shop", {"public_value": bytes(31)}, "bank", "public_value"),
    ("KeyShare", "shop", {"public_value": bytes(32)}, "bank", "public_value"),  # of small order
    ("Filters", "keys", {"filters": lambda f: f[:, :64].copy()}, "bank", "filters"),
    ("Filters", "keys", {"filters": lambda f: f[:0]}, "bank", "filters"),
    ("Outcome", "shop", {"sizes": of_sizes(70, 41)}, "keys", "sizes"),
    ("Outcome", "shop", {"sizes": of_sizes(40, 70)}, "keys", "sizes"),
    ("Outcome", "shop", {"sizes": of_sizes(0, 40)}, "keys", "sizes"),
    ("Outcome", "shop", {"sizes": of_sizes(2**40, 40)}, "keys", "sizes"),
    ("Outcome", "shop", {"sizes": of_sizes(70, 40, 1)}, "keys", "sizes"),
    ("Outcome", "shop", {"enough": 2}, "keys", "enough"),
    ("Outcome", "shop", {"enough": -1}, "keys", "enough"),
    ("Slots", "shop", {"positions": lambda p: p[:-1]}, "keys", "positions"),
    ("Slots", "shop", {"positions": lambda p: p[:, None]}, "keys", "positions"),
    ("Slots", "shop", {"positions": repeated}, "keys", "positions"),
    ("Slots", "shop", {"positions": lambda p: np.where(p == 3, -1, p)}, "keys", "positions"),
    ("Slots", "shop", {"positions": lambda p: np.where(p == 3, 40, p)}, "keys", "positions"),
    ("Slots", "shop", {"positions": lambda p: np.where(p == -1, -2, p)}, "keys", "positions"),
    ("Slots", "bank", {"positions": swapped_for(-1, 5)}, "keys", "positions"),
    ("Slots", "bank", {"positions": swapped_for(-(2**63), 5)}, "keys", "positions"),
]


@each_case(("step", "to", "changes", "culprit", "field"), FAULTS)
def test_a_wrong_message_is_refused_and_its_sender_named(
    step: str, to: str, changes: dict[str, Any], culprit: str, field: str, insecure_test_key: PrivateKey
) -> None:
    with pytest.raises(MalformedMessage) as refusal:
        run_all(insecure_test_key, wire=change(step, to, insecure_test_key, **changes))
    assert (refusal.value.culprit, refusal.value.field, refusal.value.step) == (culprit, field, step)


@each_case("wrong", ["a zero", "too short", "not prime to n"])
def test_a_wrong_ciphertext_is_refused(wrong: str, insecure_test_key: PrivateKey) -> None:
    width = insecure_test_key.public_key.ciphertext_bytes
    replaced = {"a zero": 0, "not prime to n": insecure_test_key.p}

    def wire(_sender: str, receiver: str, step: str, data: bytes) -> bytes:
        if (receiver, step) != ("shop", "Slots"):
            return data
        at = len(data) - width  # the last field's last element
        if wrong in replaced:
            return data[:at] + replaced[wrong].to_bytes(width, "big")
        slots = codec.decode(data, Slots, culprit="keys")
        return codec.encode(Slots(slots.positions, sent_again(slots, insecure_test_key, 69)))

    with pytest.raises(MalformedMessage) as refusal:
        run_all(insecure_test_key, wire=wire)
    assert (refusal.value.culprit, refusal.value.field) == ("keys", "ciphertext")


def test_exactly_two_data_parties(insecure_test_key: PrivateKey) -> None:
    def refused(*data_parties: str) -> str:
        with pytest.raises(ConfigError) as refusal:
            asyncio.run(
                link.run_key_node(
                    *(
                        data_parties,
                        SETTINGS,
                        OwnKey(insecure_test_key),
                        "keys",
                        LocalNetwork(ROLES, link.TABLE).channel("keys"),
                    )
                )
            )
        return refusal.value.message

    assert refused("a", "b", "c") == "3 data parties: linkage is for exactly two"
    assert refused("a") == "1 data parties: linkage is for exactly two"
    assert "different names" in refused("a", "a")
    assert "different names" in refused("a", "keys")


def test_records_that_cannot_be_linked_are_refused_before_anything_is_sent(
    insecure_test_key: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(records: dict[str, list[str]]) -> str:
        network = LocalNetwork(ROLES, link.TABLE)
        with pytest.raises(DataError) as refusal:
            asyncio.run(
                link.run_data_party(
                    *(records, SETTINGS, insecure_test_key.public_key, "bank", "shop", "keys", network.channel("bank")),
                    first=True,
                    begin=uncounted,
                )
            )
        assert network.sent == []
        return refusal.value.message

    assert "postcode" in refused({name: PEOPLE.first[name] for name in PEOPLE.first if name != "postcode"})
    monkeypatch.setattr(link, "MAX_RECORDS", 69)
    assert refused(PEOPLE.first) == "bank has 70 rows: linkage takes 69 at most"


@each_case(("name", "value"), [("threshold", 0.3), ("min_matches", 0), ("min_matches", 2**18 + 1)])
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        replace(SETTINGS, **{name: value})  # type: ignore[arg-type]


def test_the_handshake_compares_all_settings() -> None:
    others = [
        replace(SETTINGS, threshold=0.81),
        replace(SETTINGS, min_matches=11),
        replace(SETTINGS, encoding=Encoding(FIELDS, fold=True)),
    ]
    digests = {parameters_digest(settings.parameters()) for settings in [SETTINGS, *others]}
    assert len(digests) == 4


def test_secrets_show_in_no_text(insecure_test_key: PrivateKey) -> None:
    bank, _, _ = linked(insecure_test_key)
    for message in (KeyShare(b"12345"), Filters(np.zeros((1, 128), np.uint8)), bank):
        assert repr(message).startswith("<")
