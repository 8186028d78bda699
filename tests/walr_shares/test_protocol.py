"""All parties of WALR in shares: the sum, lies and liars, and each party's view."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from blindfit.algorithms.errors import MacCheckFailed, MalformedMessage
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols.walr import dealt_masks, shared_rows
from blindfit.algorithms.protocols.walr.messages import Dimensions, MaskedRows, ZeroSharePart
from blindfit.algorithms.protocols.walr.shared_rows import (
    SEED_BYTES,
    DealtSeed,
    Server,
    SharedRows,
    SharedRowsTally,
)
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing import short_rows
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.shares import Share
from tests.walr_shares.rows import huge_row
from tests.walr_shares.seats import NORM_BOUND, SERVERS, Seats, rows_of

RED_BY_CHANCE = 1e-7


def labels_for(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(0, 2, n).astype(np.uint8)


@pytest.mark.parametrize(("n_rows", "n_columns"), [(1, 1), (40, 3), (9000, 2)])
def test_the_sum_is_exact(n_rows: int, n_columns: int) -> None:
    """The sum is exact in several blocks, too."""
    rows, labels = rows_of(n_rows, n_columns), labels_for(n_rows)
    seats = Seats(rows, labels)
    assert f.integers(seats.run()).tolist() == (rows.weights.astype(np.int64).T @ labels).tolist()
    assert not seats.network.unread


def test_rows_that_do_not_count_are_not_summed() -> None:
    rows, labels = rows_of(), np.ones(40, np.uint8)
    kept = np.arange(40) % 3 > 0
    total = f.integers(Seats(rows, labels, kept=kept).run())
    assert total.tolist() == rows.weights[kept].astype(np.int64).sum(axis=0).tolist()


@pytest.mark.parametrize("octets", [0, SEED_BYTES - 1, SEED_BYTES + 1])
async def test_a_dealer_whose_seed_has_another_length_is_refused(octets: int) -> None:
    async def receive(_sender: str, _kind: type) -> DealtSeed:
        return DealtSeed(bytes(octets))

    channel: Any = SimpleNamespace(receive=receive)
    with pytest.raises(MalformedMessage, match=r"dealer .*seed: has the wrong length"):
        await dealt_masks.receive_seed("dealer", channel)


# --- who lies ------------------------------------------------------------------------------------------------


def shifted(batch: MaskedRows, place: int, by: int) -> MaskedRows:
    values = batch.values.copy()
    values[place] = f.add(values[place : place + 1], f.elements([by]))[0]
    return replace(batch, values=values)


@pytest.mark.parametrize("by", [1, -1, 2**30, 2**59])
def test_a_shop_that_sends_both_a_longer_row_is_refused_by_both(by: int) -> None:
    with pytest.raises(MalformedMessage, match=r"shop.*longer than the norm bound"):
        Seats(rows_of(), labels_for(40), masked=lambda _server, batch: shifted(batch, 0, by)).run()


def test_a_shop_that_sends_a_huge_row_with_small_squares_is_refused() -> None:
    """The shop proves what it can: the sums are too large for its bits."""
    rows = rows_of()
    plan = dealt_masks.plan_of(Seats(rows, labels_for(40)).request)
    row = f.elements(np.array(huge_row(plan), np.int64))

    def masked(_server: str, batch: MaskedRows) -> MaskedRows:
        values = batch.values.copy()
        own = f.elements(short_rows.fill_rows(rows.weights[:1], plan))[0]
        values[: plan.width] = f.add(values[: plan.width], f.subtract(row, own))
        return replace(batch, values=values)

    async def proves(shared: SharedRows, channel: Channel) -> None:
        seeds = [(await channel.receive(server, shared_rows.Challenge)).seed for server in SERVERS]
        signs = short_rows.signs_of(short_rows.Seed(seeds[0]), plan, 0)
        numbers = f.elements(shared.fill(slice(0, 40)))
        numbers[0] = row
        sums = f.integers(short_rows._project(signs, numbers))
        assert np.abs(sums).max() > 1 << plan.bits
        bits = short_rows.bits_of(np.clip(sums, -(1 << plan.bits), (1 << plan.bits) - 1), plan)
        told = f.subtract(f.elements(bits), short_rows.bit_masks(plan, 0, shared.seed))
        for server in SERVERS:
            await channel.send(server, shared_rows.MaskedInput(told.reshape(-1)))

    with pytest.raises(MalformedMessage, match="longer than the norm bound"):
        Seats(rows, labels_for(40), masked=masked, prove=proves).run()


def test_a_shop_that_sends_the_servers_different_rows_is_noticed() -> None:
    def masked(server: str, batch: MaskedRows) -> MaskedRows:
        return shifted(batch, 0, 1) if server == "east" else batch

    with pytest.raises(MalformedMessage, match="other openings"):
        Seats(rows_of(), labels_for(40), masked=masked).run()


class SaysZero(Server):
    """A server that colludes with a shop whose rows are too long: it opens what makes the sum 0, which
    it can compute.
    """

    async def _require_zero(self, parts: Any) -> None:
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        lie = replace_value(total, f.subtract(total.value, self.excess))
        await super()._require_zero([lie])

    excess: Elements = f.elements([0])


def replace_value(share: Share, value: Elements) -> Share:
    return Share(value, share.mac)


@pytest.mark.parametrize("liar", SERVERS)
def test_a_server_that_hides_a_long_row_is_caught_by_the_mac(liar: str) -> None:
    """The server knows by how much the rows exceed the bound; it does not know the MAC key."""

    class Colludes(SaysZero):
        excess = f.elements([12345])

    with pytest.raises((MacCheckFailed, MalformedMessage)):
        Seats(
            rows_of(),
            labels_for(40),
            masked=lambda _server, batch: shifted(batch, 0, 2**30),
            servers={liar: Colludes},
        ).run()
    with pytest.raises(MacCheckFailed):  # an honest shop's zero may not be another number either
        Seats(rows_of(), labels_for(40), servers={liar: Colludes}).run()


@pytest.mark.parametrize("server", SERVERS)
def test_a_shop_that_tells_the_servers_different_bits_is_noticed(server: str) -> None:
    async def proves(shared: SharedRows, channel: Channel) -> None:
        class Twisted:
            async def send(self, to: str, message: Any) -> None:
                if to == server:
                    message = shared_rows.MaskedInput(f.add(message.values, f.elements([1])))
                await channel.send(to, message)

            async def receive(self, sender: str, kind: Any) -> Any:
                return await channel.receive(sender, kind)

        await shared_rows.run_active(shared, SERVERS, Twisted())

    with pytest.raises(MalformedMessage, match="other openings"):
        Seats(rows_of(), labels_for(40), prove=proves).run()


def test_coefficients_are_drawn_when_nobody_can_choose_what_they_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server shares all that it knows with the shop, with which it colludes.

    So signs are drawn after the rows have come, and coefficients after the bits have: neither is known before.
    """
    events: list[tuple[str, str, bytes]] = []

    def note(me: str, event: str, octets: bytes = b"") -> None:
        events.append((me, event, octets))

    class Watched(Server):
        async def sum_of(self, tally: SharedRowsTally) -> Elements:
            note(self.me, "rows")
            return await super().sum_of(tally)

        async def _receive_masked_bits(self) -> Elements:
            found = await super()._receive_masked_bits()
            note(self.me, "bits")
            return found

        async def _draw(self, what: str) -> Seed:
            seed = await super()._draw(what)
            note(self.me, "drawn", seed.octets)
            return seed

    signs_of, of_bits = short_rows.signs_of, short_rows.Verifier.of_bits

    def signs(seed: Seed, *args: Any) -> Any:
        note("", "signs", seed.octets)
        return signs_of(seed, *args)

    def tested(verifier: Any, coefficients: Seed, *args: Any) -> Any:
        note("", "tested", coefficients.octets)
        return of_bits(verifier, coefficients, *args)

    monkeypatch.setattr(short_rows, "signs_of", signs)
    monkeypatch.setattr(short_rows.Verifier, "of_bits", tested)
    Seats(rows_of(), labels_for(40), servers=dict.fromkeys(SERVERS, Watched)).run()
    for server in SERVERS:
        seen = [(event, octets) for me, event, octets in events if me == server]
        assert [event for event, _ in seen] == ["rows", "drawn", "bits", "drawn", "drawn"]
        (_, first), (_, second), (_, third) = [one for one in seen if one[0] == "drawn"]
        assert len({first, second, third}) == 3
        assert {octets for _, event, octets in events if event == "signs"} == {first}
        assert {octets for _, event, octets in events if event == "tested"} == {second}


@pytest.mark.parametrize(
    "change",
    [{"n_rows": 48}, {"n_rows": 39}, {"n_columns": 2}, {"n_columns": 4}, {"norm_bound": NORM_BOUND - 1}],
)
def test_where_a_dealer_deals_for_other_rows_than_a_server_was_told_both_who_may_lie_are_named(change: Any) -> None:
    """Masks of another length may be the key node's fault, or the shop's, if it asked for another length."""
    seats = Seats(rows_of(), labels_for(40), told_dealer=lambda plan: replace(plan, **change))
    with pytest.raises(MalformedMessage, match="which of the two lies") as refused:
        seats.run()
    assert refused.value.culprit == "shop or dealer"


@pytest.mark.parametrize(
    "said",
    [
        Dimensions(0, 3, 5),
        Dimensions(2**40, 3, 5),
        Dimensions(5, 2**20, 5),
        Dimensions(5, 3, 2**26),
        Dimensions(5, 3, 0),
    ],
)
def test_dimensions_out_of_range_are_refused(said: Dimensions) -> None:
    with pytest.raises(MalformedMessage, match=r"shop.*out of range"):
        dealt_masks.plan_of(said, culprit="shop")
    with pytest.raises(MalformedMessage, match="too long to be proved"):
        dealt_masks.plan_of(Dimensions(5, 20, 2**25), culprit="shop")


# --- what is seen ------------------------------------------------------------------------------------------------


def test_what_a_server_gets_of_rows_is_uniform_whatever_they_are() -> None:
    """Rows of zeros and others: a Kolmogorov-Smirnov test of 40,000 numbers, red by chance once in 10^7."""
    for weights in (np.zeros((4000, 4), np.int32), rows_of(4000, 4).weights):
        seats = Seats(replace(rows_of(4000, 4), weights=weights), labels_for(4000))
        seats.run()
        for name in SERVERS:
            got = np.concatenate([batch.values for batch in seats.seen[name]]) / f.P
            assert stats.kstest(got, "uniform").pvalue > RED_BY_CHANCE


def test_each_servers_share_of_the_sum_is_uniform() -> None:
    """The shares are uniform over dealings for the same rows and labels, so one answer by itself reveals nothing."""
    taken: list[float] = []
    sum_of = Server.sum_of

    class Noted(Server):
        async def sum_of(self, tally: Any) -> Elements:
            share = await sum_of(self, tally)
            taken.append(float(share[0]) / f.P)
            return share

    for _ in range(80):  # no 50 shares of half the range pass
        Seats(rows_of(2, 1), np.ones(2, np.uint8), servers={"west": Noted}).run()
    assert stats.kstest(taken, "uniform").pvalue > RED_BY_CHANCE


def test_shares_of_zero_serve_one_sum_and_need_both_servers() -> None:
    """They cancel; another half of the secret, session or question gives others, and a server draws its half afresh."""
    request = Seats(rows_of(), labels_for(40)).request
    parts, share = (bytes(32), bytes(range(32))), f.elements(np.arange(3))
    seed = shared_rows.step_6_zero_share_seed(parts, "one", request)
    first, second = (shared_rows.step_6_reshare(share, seed, place) for place in (0, 1))
    assert f.add(first, second).tolist() == f.add(share, share).tolist()
    assert not set(first.tolist()) & set(share.tolist())
    own = replace(request, dataset="the other server's", snapshot="too")
    assert shared_rows.step_6_zero_share_seed(parts, "one", own) == seed
    others = [
        shared_rows.step_6_zero_share_seed((bytes(32), bytes(32)), "one", request),
        shared_rows.step_6_zero_share_seed((bytes(range(32)), bytes(range(32))), "one", request),
        shared_rows.step_6_zero_share_seed(parts, "another", request),
        shared_rows.step_6_zero_share_seed(parts, "one", replace(request, content_sha256=bytes(32))),
        shared_rows.step_6_zero_share_seed(parts, "one", replace(request, epsilon=request.epsilon / 2)),
    ]
    assert len({seed.octets, *(other.octets for other in others)}) == 6


@pytest.mark.parametrize("length", [0, 31, 33])
def test_half_a_secret_of_another_length_is_refused(length: int) -> None:
    class Short(Server):
        async def _zero_share_seed(self, request: Any) -> Any:
            await self.channel.send(self.other, ZeroSharePart(bytes(length)))
            return await super()._zero_share_seed(request)

    with pytest.raises(MalformedMessage, match="wrong length") as refused:
        Seats(rows_of(), labels_for(40), servers={"west": Short}).run()
    assert refused.value.culprit == "west"


def test_a_server_draws_its_half_of_the_secret_for_each_sum() -> None:
    halves: list[bytes] = []

    def noted(_sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        if step == "ZeroSharePart":
            halves.append(data)
        return data

    for _ in range(2):
        Seats(rows_of(), labels_for(40), wire=noted).run()
    assert len(set(halves)) == len(halves) == 4


def test_all_that_goes_is_in_the_table() -> None:
    seats = Seats(rows_of(), labels_for(40))
    seats.run()
    sent = {step for _, _, step in seats.network.sent}
    documented = {arrow.message.__name__ for arrow in shared_rows.TABLE.arrows}
    assert sent == documented - {"MaskedRows"}  # masked rows have a separate call


def test_the_norm_bound_is_the_longest_row_that_passes() -> None:
    weights = np.zeros((3, 2), np.int32)
    weights[1, 0] = NORM_BOUND
    rows = replace(rows_of(3, 2), weights=weights)
    assert f.integers(Seats(rows, np.ones(3, np.uint8)).run()).tolist() == [NORM_BOUND, 0]
