"""One step after the other: the same integers as in the clear, the content of a ciphertext, the server's refusals."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import DataError, MalformedMessage
from blindfit.algorithms.fixed_point import MAX_NORM_BOUND, Fixed
from blindfit.algorithms.paillier.ciphertexts import ReceivedCiphertext
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey, generate_private_key
from blindfit.algorithms.paillier.packing import encrypt_packed
from blindfit.algorithms.paillier.randomisers import FullExponent, OwnKey
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, NoisySum, encrypted_rows
from blindfit.algorithms.protocols.walr.encrypted_rows import EncryptedRows, EncryptedTally, HiddenRows, Opening
from tests.each_case import each_case
from tests.quick_keys import quick_keys
from tests.walr.seats import labels_of, request_for, rows_of


def hidden_request(rows: ConsumerRows, under: PublicKey, **changes: Any) -> AggregateOpen:
    return replace(encrypted_rows.step_1_open(request_for(rows), under), **changes)


def joined(labels: dict[str, int], dropped: tuple[str, ...] = ()) -> walr.Join:
    def join(ids: Any) -> Any:
        return np.array([labels[i] for i in ids], np.uint8), np.array([i not in dropped for i in ids])

    return join


def encrypted_answer(
    rows: ConsumerRows, labels: dict[str, int], key: PrivateKey, seed: int, dropped: tuple[str, ...] = ()
) -> tuple[NoisySum, AggregateOpen]:
    request = hidden_request(rows, key.public_key)
    tally = EncryptedTally(request, lambda _: None, key.public_key, FullExponent(key.public_key))
    layout = encrypted_rows.layout_of(request, key.public_key)
    for batch in HiddenRows(rows, layout, OwnKey(key)).batches():
        width, octets = batch.rows.to_wire()  # type: ignore[union-attr]
        received = EncryptedRows(batch.ids, ReceivedCiphertext(width, octets))
        tally.add(received, joined(labels, dropped), consumer="shop")
    tally.finish(consumer="shop")
    draft = walr.step_5_draft(tally, random.Random(seed).randrange, neighbours="row")
    return walr.answer_of(draft, unit="row", terms=walr.Terms()), request


@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 2**20))
@settings(max_examples=30, deadline=None)
def test_the_released_integers_are_those_of_a_server_that_reads_the_rows(
    insecure_test_key: PrivateKey, n_rows: int, n_columns: int, seed: int
) -> None:
    """The noise is equal too: the same code draws it, here from the same numbers, so it has the same law.

    With 512 bits some of these rows take several ciphertexts."""
    rows = rows_of(n_rows, n_columns, seed, largest=3)
    labels = labels_of(rows, seed)
    hidden, request = encrypted_answer(rows, labels, insecure_test_key, seed)
    plain = walr.run_locally(rows, request_for(rows), labels, random.Random(seed).randrange)
    opened = encrypted_rows.step_6_decrypt(hidden, request, insecure_test_key, server="labels")
    assert opened.sums.tolist() == plain.sums.tolist()
    assert opened.noise_std == plain.noise_std
    assert hidden.sums.tolist() == []
    assert hidden.rows_kept == n_rows


@given(st.integers(1, 9), st.integers(0, 2**20))
@settings(max_examples=20, deadline=None)
def test_an_answer_is_opened_to_its_sum_and_to_no_other(
    insecure_test_key: PrivateKey, n_columns: int, seed: int
) -> None:
    """The sum may take several ciphertexts: one number is moved, two are exchanged, or one slot lends to the next."""
    rows = rows_of(5, n_columns, seed, largest=3)
    with quick_keys():
        answer, request = encrypted_answer(rows, labels_of(rows, seed), insecure_test_key, seed)
        opening = encrypted_rows.step_6_open(answer, insecure_test_key)
        sums = encrypted_rows.step_6_decrypt(answer, request, insecure_test_key, server="labels").sums.tolist()
        asked = replace(request, public_key=opening.public_key)

        def check(claimed: list[int], changed: Opening = opening) -> None:
            encrypted_rows.step_6_check_opening(changed, claimed, asked, server="labels", consumer="shop")

        check(sums)
        lent = [sums[0] - (1 << request.slot_bits), *(value + (place == 0) for place, value in enumerate(sums[1:]))]
        others = [[sums[0] + 1, *sums[1:]], [*sums[:-1], sums[-1] - 1], sums[:-1], [*sums, 0], sums[::-1], lent]
        for other in others:
            if other != sums:
                with pytest.raises(DataError):
                    check(other)
        roots = opening.roots
        for bad in (roots[:-1], (*roots, 1), (*roots[:-1], roots[-1] + 1), (*roots[:-1], insecure_test_key.p)):
            with pytest.raises(DataError):
                check(sums, replace(opening, roots=bad))
        with pytest.raises(MalformedMessage):
            check(sums, replace(opening, ciphertexts=opening.ciphertexts[:-1]))
        with pytest.raises(MalformedMessage):
            check(sums, replace(opening, ciphertexts=bytes(len(opening.ciphertexts))))


@each_case(("past", "fits"), [(0, True), (1, False)])
def test_an_opened_sum_may_be_the_largest_and_no_larger(insecure_test_key: PrivateKey, past: int, fits: bool) -> None:
    """A larger one could be the plaintext of another sum."""
    with quick_keys():
        answer, request = encrypted_answer(
            rows_of(5, 2, largest=3), labels_of(rows_of(5, 2, largest=3)), insecure_test_key, 1
        )
        sums = [encrypted_rows.reach_of(request) + past] * 2
        vector = encrypt_packed(Fixed(np.array(sums, object), 0), request.slot_bits, OwnKey(insecure_test_key))
        opening = encrypted_rows.step_6_open(
            replace(answer, ciphertexts=vector.ciphertext.to_wire()[1]), insecure_test_key
        )
        asked = replace(request, public_key=opening.public_key)
        with contextlib.nullcontext() if fits else pytest.raises(DataError):
            encrypted_rows.step_6_check_opening(opening, sums, asked, server="labels", consumer="shop")


def test_rows_that_do_not_count_are_not_summed(insecure_test_key: PrivateKey) -> None:
    rows = rows_of(6, 2, largest=3)
    ones, kept = dict.fromkeys(rows.ids, 1), np.array([True, False, True, True, False, True])
    dropped = tuple(i for i, counts in zip(rows.ids, kept, strict=True) if not counts)
    answer, request = encrypted_answer(rows, ones, insecure_test_key, 1, dropped)
    opened = encrypted_rows.step_6_decrypt(answer, request, insecure_test_key, server="labels")
    fewer = ConsumerRows(tuple(np.array(rows.ids)[kept]), rows.weights[kept])
    plain = walr.run_locally(fewer, request_for(fewer), ones, random.Random(1).randrange)
    assert opened.sums.tolist() == plain.sums.tolist()
    assert answer.rows_kept == 4


def test_the_largest_rows_do_not_spill_into_the_next_number(insecure_test_key: PrivateKey) -> None:
    """One column has all of the norm bound, of one sign, and every label is 1."""
    weights = np.zeros((8, 4), np.int32)
    weights[:, 1], weights[:, 2] = MAX_NORM_BOUND, 0
    rows = ConsumerRows(tuple(f"row-{i}" for i in range(8)), weights)
    open_ = encrypted_rows.step_1_open(request_for(rows, norm_bound=MAX_NORM_BOUND), insecure_test_key.public_key)
    layout = encrypted_rows.layout_of(open_, insecure_test_key.public_key)
    layout.check_bound(encrypted_rows.reach_of(open_))
    tally = EncryptedTally(open_, lambda _: None, insecure_test_key.public_key, OwnKey(insecure_test_key))
    for batch in HiddenRows(rows, layout, OwnKey(insecure_test_key)).batches():
        tally.add(batch, joined(dict.fromkeys(rows.ids, 1)), consumer="shop")
    draft = walr.step_5_draft(tally, random.Random(5).randrange, neighbours="row")
    answer = walr.answer_of(draft, unit="row", terms=walr.Terms())
    opened = encrypted_rows.step_6_decrypt(answer, open_, insecure_test_key, server="labels")
    noise = walr.mechanism_of(open_).release([0] * 4, random.Random(5).randrange)
    assert (opened.sums - noise).tolist() == [0, 8 * MAX_NORM_BOUND, 0, 0]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 1.0])
def test_the_work_is_the_same_whatever_the_labels(insecure_test_key: PrivateKey, share: float) -> None:
    rows = rows_of(20, 30)
    key = PublicKey(insecure_test_key.public_key.n, insecure_test_key.public_key.hs)  # counts from 0
    request = hidden_request(rows, key)
    tally = EncryptedTally(request, lambda _: None, key, FullExponent(key))
    width = encrypted_rows.layout_of(request, key).ciphertexts
    ciphertexts = OwnKey(insecure_test_key).draw(20 * width)
    before = key.kernel.counts.products
    tally._multiply(np.arange(20) < share * 20, ciphertexts)
    assert width > 1
    assert key.kernel.counts.products - before == 20 * width


def test_two_answers_of_one_sum_share_no_ciphertext(insecure_test_key: PrivateKey) -> None:
    """Rows, labels and noise are the same: only the randomness of encryption differs, and all of it does."""
    rows = rows_of(5, 2)
    labels = labels_of(rows)
    one, other = (encrypted_answer(rows, labels, insecure_test_key, seed=3)[0] for _ in range(2))
    assert one.ciphertexts != other.ciphertexts


# --- the active party's statement about its key --------------------------------------------------------------


def test_the_request_is_named_by_its_key_and_keeps_its_salt(real_key: PrivateKey) -> None:
    rows = rows_of()
    plain = request_for(rows, content_salt=b"s" * 32)
    asked = encrypted_rows.step_1_open(plain, real_key.public_key)
    other = encrypted_rows.step_1_open(plain, generate_private_key().public_key)
    assert asked.content_salt == b""
    assert len({plain.request_id, asked.request_id, other.request_id}) == 3
    assert asked == encrypted_rows.step_1_open(plain, real_key.public_key)
    assert walr.request_digest(asked) != walr.request_digest(replace(asked, key=other.key))


def test_a_sound_request_is_taken(real_key: PrivateKey) -> None:
    request = hidden_request(rows_of(), real_key.public_key)
    walr.step_2_check(request, consumer="shop")
    assert encrypted_rows.step_2_key(request, consumer="shop") == real_key.public_key


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"public_key": b"nonsense"}, "public_key"),
        ({"key": "0" * 64}, "key: is not the fingerprint"),
        ({"content_salt": b"s" * 32}, "content_salt"),
        ({"slot_bits": 8}, "slot_bits"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_key_that_does_not_fit_is_refused(changes: dict[str, Any], wanted: str, real_key: PrivateKey) -> None:
    request = hidden_request(rows_of(), real_key.public_key, **changes)
    walr.step_2_check(request, consumer="shop")
    with pytest.raises(MalformedMessage, match=wanted):
        encrypted_rows.step_2_key(request, consumer="shop")


def test_a_weak_key_is_refused(insecure_test_key: PrivateKey, real_key: PrivateKey) -> None:
    with pytest.raises(MalformedMessage, match="512 bits"):
        encrypted_rows.step_2_key(hidden_request(rows_of(), insecure_test_key.public_key), consumer="shop")
    unproved = PublicKey(real_key.public_key.n, real_key.public_key.hs)
    with pytest.raises(MalformedMessage, match="nothing proves that r\\^n hides"):
        encrypted_rows.step_2_key(hidden_request(rows_of(), unproved), consumer="shop")


@pytest.mark.parametrize("changes", [{"key": ""}, {"public_key": b""}, {"slot_bits": 0}, {"slot_bits": 2**20}])
def test_a_request_says_all_of_its_key_or_nothing(changes: dict[str, Any], real_key: PrivateKey) -> None:
    with pytest.raises(MalformedMessage, match=r"key|slot_bits"):
        walr.step_2_check(hidden_request(rows_of(), real_key.public_key, **changes), consumer="shop")
    with pytest.raises(MalformedMessage, match="slot_bits"):
        walr.step_2_check(request_for(rows_of(), slot_bits=60), consumer="shop")


# --- what comes over the wire --------------------------------------------------------------------------------


def wrong_rows(key: PrivateKey, wrong: str) -> EncryptedRows:
    n = key.public_key.n
    width = key.public_key.ciphertext_bytes
    numbers = {"zero": 0, "a factor": key.p, "too large": n * n}
    number = numbers.get(wrong, n * n - 2)
    ids = ("row-0",) * (2 if wrong == "fewer rows than ids" else 1)
    octets = number.to_bytes(width + 1, "big")[1:] if number < 1 << 8 * width else b"\xff" * width
    return EncryptedRows(ids, ReceivedCiphertext(width + (wrong == "another width"), octets))


@pytest.mark.parametrize("wrong", ["zero", "a factor", "too large", "another width", "fewer rows than ids"])
def test_what_is_no_ciphertext_is_refused(insecure_test_key: PrivateKey, wrong: str) -> None:
    rows = rows_of(2, 1)
    request = hidden_request(rows, insecure_test_key.public_key)
    tally = EncryptedTally(request, lambda _: None, insecure_test_key.public_key, OwnKey(insecure_test_key))
    with pytest.raises(MalformedMessage, match="ciphertext"):
        tally.add(wrong_rows(insecure_test_key, wrong), joined({"row-0": 1}), consumer="shop")
    assert tally.rows == 0


def test_more_rows_than_were_announced_are_refused(insecure_test_key: PrivateKey) -> None:
    rows = rows_of(3, 1)
    request = hidden_request(rows, insecure_test_key.public_key, n_rows=2)
    tally = EncryptedTally(request, lambda _: None, insecure_test_key.public_key, OwnKey(insecure_test_key))
    layout = encrypted_rows.layout_of(request, insecure_test_key.public_key)
    batch = next(HiddenRows(rows, layout, OwnKey(insecure_test_key)).batches())
    with pytest.raises(MalformedMessage, match="more rows than n_rows"):
        tally.add(batch, joined(dict.fromkeys(rows.ids, 1)), consumer="shop")


@pytest.mark.parametrize("wrong", ["nothing", "more", "out of range"])
def test_an_answer_that_no_honest_server_gives_is_refused(insecure_test_key: PrivateKey, wrong: str) -> None:
    rows = rows_of(4, 2)
    answer, request = encrypted_answer(rows, labels_of(rows), insecure_test_key, seed=2)
    walr.step_6_check(answer, request, server="labels")
    if wrong == "nothing":
        answer = replace(answer, ciphertexts=b"")
        with pytest.raises(MalformedMessage, match="ciphertexts"):
            walr.step_6_check(answer, request, server="labels")
        return
    if wrong == "more":
        answer = replace(answer, ciphertexts=2 * answer.ciphertexts)
    else:
        key = insecure_test_key.public_key
        far = key.kernel.ones_plus([1 << 400])
        fresh = encrypted_rows.randomize(encrypted_rows.Ciphertext(key, far), OwnKey(insecure_test_key))
        answer = replace(answer, ciphertexts=fresh.to_wire()[1])
    with pytest.raises(MalformedMessage, match="labels"):
        encrypted_rows.step_6_decrypt(answer, request, insecure_test_key, server="labels")
